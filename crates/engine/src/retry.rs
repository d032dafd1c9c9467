//! Retries a run that did not succeed. The retry is a new run of the same program. It starts at its beginning with the
//! same input, or at an iteration or an action, with the state that the run had there. The old run is unchanged.

use super::{
    Engine, EngineError, REQUEST_LABEL, START_LABEL, StartOptions, Started, Workflow, new_id, now,
};
use crate::error::{and_more, hint_suffix};
use crate::launch::DEPTH_LABEL;
use crate::scheduler::{Loader, PARENT_LABEL, ScheduleError, Start, check_stubs};
use crate::state::adopt_writes;
use windlass_expression::holds_sealed;
use windlass_machine::program::Program;
use windlass_machine::{Outcome, Rewound, RunState, RunStatus, Target, rewind};
use windlass_model::model::{Name, name_of_part};
use windlass_source::diagnostic::{Diagnostics, did_you_mean};
use windlass_store::{FAILED_ACTIONS_LABEL, Journal, RunHeader, StoreError};

/// The label with the id of the retried run.
pub const RETRY_LABEL: &str = "windlass.retry_of";

/// The label with the position that the retry starts from, if it is not the beginning.
pub const RETRY_FROM_LABEL: &str = "windlass.retry_from";

/// The word for the position of the action that a run failed at.
pub const FAILED: &str = "failed";

/// The word for the position of the failed items of the only foreach that had failed items.
pub const FAILED_ITEMS: &str = "failed-items";

impl Engine {
    /// Retries a run that failed, timed out or was cancelled. `options` may have an id, and further labels. `from` is a
    /// position: an action, an iteration, or the last parts of a path to one, as in the idempotency keys
    /// (`poll#14/fetch`). If the run was there several times, the retry starts from the last time. `FAILED` is the
    /// action that the run failed at. [`FAILED_ITEMS`] means the failed items of the only foreach that had failed
    /// items. If several had, the path of one follows. This position is also valid for a run that succeeded. Without `from`, the new run starts at the
    /// beginning.
    ///
    /// # Errors
    /// Returns [`EngineError::NotRetried`] if the run has not ended, or if it has succeeded. Returns
    /// [`EngineError::NoPlace`] if the run was never at `from`, or the steps since then are no longer stored. Also
    /// returns the errors of [`Engine::start_with`].
    pub async fn retry(
        &self,
        run: &str,
        from: Option<&str>,
        options: StartOptions,
    ) -> Result<Started, EngineError> {
        let header = self.inspector().header(run)?;
        let of_items = from.and_then(failed_items);
        let with_items = of_items.is_some() && header.status == RunStatus::Succeeded;
        let ended_badly = matches!(
            header.status,
            RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled
        );
        if !ended_badly && !with_items {
            return Err(EngineError::NotRetried {
                run: header.id,
                status: header.status,
            });
        }
        let workflow = self.workflow_of(&header)?;
        check_stubs(&header, &workflow.loaded)?;
        let id = Name::from(options.id.unwrap_or_else(|| new_id(&header.workflow)));
        let mut labels = header.labels;
        // These belong to the request that started the retried run.
        labels.remove(REQUEST_LABEL);
        labels.remove(START_LABEL);
        labels.remove(RETRY_FROM_LABEL);
        labels.remove(FAILED_ACTIONS_LABEL);
        // No run waits for the retry.
        labels.remove(PARENT_LABEL);
        labels.remove(DEPTH_LABEL);
        labels.extend(options.labels);
        labels.insert(RETRY_LABEL.to_owned(), header.id.to_string());
        let mut state = None;
        if let Some(from) = from {
            state = self.state_at(run, &workflow, from, &id)?;
            if let Some(state) = &mut state {
                adopt_writes(
                    &*self.launcher.store,
                    &workflow,
                    &header.id,
                    &mut state.variables,
                )?;
            }
            labels.insert(RETRY_FROM_LABEL.to_owned(), from.to_owned());
        }
        // The stored input has defaults and converted values, so check that the workflow accepts it again.
        let input = match &state {
            Some(state) => state.input.clone(),
            None => workflow.accept(self.inspector().load(run)?.state.input)?,
        };
        let environment = self.launcher.start_values(&workflow, &labels).await?;
        let saved = self.launcher.saved_for(&workflow)?;
        let start = Start {
            run: id.clone(),
            environment,
            loaded: workflow.loaded,
            source: workflow.source,
            input,
            from: state,
            labels,
            watcher: None,
            saved,
        };
        self.launcher.runs.start(start).await?;
        Ok(Started {
            run: id,
            fresh: true,
        })
    }

    fn workflow_of(&self, header: &RunHeader) -> Result<Workflow, EngineError> {
        let source = self.inspector().source(header.program)?;
        let loaded = self.launcher.workflows.load(header.program, &source);
        let loaded = loaded.map_err(|reason| ScheduleError::Unloadable {
            run: header.id.clone(),
            reason,
        })?;
        Ok(Workflow {
            loaded,
            source,
            scripts: Vec::new(),
            warnings: Diagnostics::default(),
        })
    }

    /// Returns the state from which the run `id` continues. `None`: the run starts at its beginning.
    fn state_at(
        &self,
        run: &str,
        workflow: &Workflow,
        from: &str,
        id: &Name,
    ) -> Result<Option<Box<RunState>>, EngineError> {
        let Journal {
            header,
            start,
            changes,
        } = self.inspector().journal(run)?;
        let program = workflow.program();
        let nowhere = |why: String| EngineError::NoPlace {
            run: header.id.clone(),
            from: from.to_owned(),
            why,
        };
        let named = program.actions.iter().any(|action| *action.name == *from);
        let place = if from == FAILED && !named {
            let outcome = self.inspector().load(run)?.state.outcome;
            failed_at(outcome).ok_or_else(|| nowhere(String::from("it failed at no action")))?
        } else {
            match failed_items(from).filter(|_| !named) {
                Some(of) => Target::FailedItems(of.map(str::to_owned)),
                None => Target::Path(from.to_owned()),
            }
        };
        let rewound = rewind(program, &start, &changes, &place, id, now());
        match rewound.map_err(|bug| StoreError::replay_failed(&header.id, &bug))? {
            Rewound::State(state) if program.secure && holds_sealed(&*state) => {
                Err(ScheduleError::Sealed(header.id).into())
            }
            Rewound::State(state) => Ok(Some(state)),
            Rewound::Beginning => Ok(None),
            Rewound::Several(paths) => Err(nowhere(several_foreaches_message(&header.id, &paths))),
            Rewound::Nowhere => Err(nowhere(match place {
                Target::FailedItems(_) => String::from(
                    "no item of a foreach failed in it; those of an earlier run are retried from that",
                ),
                Target::Action(..) => no_snapshot_message(header.snapshot),
                Target::Path(path) => did_you_mean_place(program, &path)
                    .unwrap_or_else(|| no_snapshot_message(header.snapshot)),
            })),
        }
    }
}

/// Returns the path of the foreach in `failed-items/PATH`. The outer `None`: it is another position. The inner `None`:
/// the position has no path.
fn failed_items(from: &str) -> Option<Option<&str>> {
    match from.strip_prefix(FAILED_ITEMS)? {
        "" => Some(None),
        of => of.strip_prefix('/').map(Some),
    }
}

/// Maximum number of positions in a message.
const MAX_LISTED: usize = 10;

/// Returns the message for items that failed in several foreaches.
fn several_foreaches_message(run: &Name, paths: &[String]) -> String {
    let shown = paths.iter().take(MAX_LISTED);
    let lines: String = shown
        .map(|path| format!("\n  --from {FAILED_ITEMS}/{path}"))
        .collect();
    let more = and_more("\n  ", paths.len().saturating_sub(MAX_LISTED));
    format!(
        "items of {} foreaches failed. Retry {run} from one of them, and what follows it is done \
         again as well:{lines}{more}",
        paths.len()
    )
}

/// Returns the message for a position that is not in the journal. `snapshot` is the commit with which the journal
/// begins: a snapshot, or 0 for the start of the run.
fn no_snapshot_message(snapshot: u64) -> String {
    if snapshot == 0 {
        return String::from("it never came there");
    }
    format!(
        "the run did not reach it since its commit {snapshot}, and earlier steps are not stored \
         one by one: retry it from a later place, or from its beginning"
    )
}

/// Returns a message with a similar name, if a part of a path is not in the workflow.
pub(super) fn did_you_mean_place(program: &Program, path: &str) -> Option<String> {
    let names = path
        .split('/')
        .map(|part| part.split_once('#').map_or(part, |(name, _)| name));
    let unknown = { names }.find(|name| program.find_action(&name_of_part(name)).is_none())?;
    let known = program.actions.iter().map(|action| &*action.name);
    let near = hint_suffix(&did_you_mean(unknown, known));
    Some(format!("its workflow has no `{unknown}`{near}"))
}

fn failed_at(outcome: Option<Box<Outcome>>) -> Option<Target> {
    let error = outcome?.error?;
    Some(Target::Action(error.action?, error.iteration))
}
