//! Starting a run that ended badly once more: a new run of the same program, from its beginning
//! with the same input, or from an iteration or an action with the state at that time. The old one
//! stays as it ended.

use super::{Engine, EngineError, REQUEST_LABEL, Started, Workflow, new_id, now};
use crate::launch::DEPTH_LABEL;
use crate::scheduler::{Loader, PARENT_LABEL, ScheduleError, Start};
use crate::state::adopt_writes;
use windlass_expression::holds_sealed;
use windlass_machine::program::Program;
use windlass_machine::{Outcome, Rewound, RunState, RunStatus, Target, rewind};
use windlass_model::model::{Name, name_of_part};
use windlass_source::diagnostic::{Diagnostics, did_you_mean};
use windlass_store::{FAILED_ACTIONS_LABEL, Journal, RunHeader, StoreError};

/// The label that names the run that was started again.
pub const RETRY_LABEL: &str = "windlass.retry_of";

/// The label that says from where, when it was not the beginning.
pub const RETRY_FROM_LABEL: &str = "windlass.retry_from";

/// As the place to retry from: the action that a run failed at.
pub const FAILED: &str = "failed";

/// As the place to retry from: the failed items of the last foreach that had any.
pub const FAILED_ITEMS: &str = "failed-items";

impl Engine {
    /// Starts a run that failed, timed out or was cancelled once more, under an id of the caller's
    /// or a new one. `from` is an action, an iteration, or the end of a path to one, as in the
    /// idempotency keys (`poll#14/fetch`); the last time that the run came there is meant.
    /// [`FAILED`] is the action that it failed at; [`FAILED_ITEMS`], also of a run that succeeded, are
    /// the items of its last foreach that failed. Without it the new run begins at its beginning.
    ///
    /// # Errors
    /// [`EngineError::NotRetried`] for one that has not ended or has succeeded,
    /// [`EngineError::NoPlace`] when it was never at `from`, or the store has let go of that; those
    /// of [`Engine::start_with`].
    pub async fn retry(
        &self,
        run: &str,
        from: Option<&str>,
        id: Option<String>,
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
        let id = Name::from(id.unwrap_or_else(|| new_id(&header.workflow)));
        let mut labels = header.labels;
        // The key began the other run.
        labels.remove(REQUEST_LABEL);
        labels.remove(RETRY_FROM_LABEL);
        labels.remove(FAILED_ACTIONS_LABEL);
        // No run waits for this one.
        labels.remove(PARENT_LABEL);
        labels.remove(DEPTH_LABEL);
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
        // What it was started with is what the workflow made of the input: it takes it again.
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

    /// The state in which the run `id` continues from a place of another run; none: it starts at its beginning.
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

/// The foreach of which `failed-items/PATH` means the failed items; none inside: it is not specified.
fn failed_items(from: &str) -> Option<Option<&str>> {
    match from.strip_prefix(FAILED_ITEMS)? {
        "" => Some(None),
        of => of.strip_prefix('/').map(Some),
    }
}

/// Maximum number of places listed.
const MAX_LISTED: usize = 10;

/// What to write where items of several foreaches failed.
fn several_foreaches_message(run: &Name, paths: &[String]) -> String {
    let shown = paths.iter().take(MAX_LISTED);
    let lines: String = shown
        .map(|path| format!("\n  --from {FAILED_ITEMS}/{path}"))
        .collect();
    let more = match paths.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    format!(
        "items of {} foreaches failed. Retry {run} from one of them, and what follows it is done \
         again as well:{lines}{more}",
        paths.len()
    )
}

/// Why a place that the workflow has is not in a journal that begins with a snapshot, or with the
/// run (0).
fn no_snapshot_message(snapshot: u64) -> String {
    if snapshot == 0 {
        return String::from("it never came there");
    }
    format!(
        "the run did not reach it since its commit {snapshot}, and earlier steps are not stored \
         one by one: retry it from a later place, or from its beginning"
    )
}

/// The part of a path that names nothing in the workflow, and what it was meant to be.
pub(super) fn did_you_mean_place(program: &Program, path: &str) -> Option<String> {
    let names = path
        .split('/')
        .map(|part| part.split_once('#').map_or(part, |(name, _)| name));
    let unknown = { names }.find(|name| program.find_action(&name_of_part(name)).is_none())?;
    let known = program.actions.iter().map(|action| &*action.name);
    let near = did_you_mean(unknown, known).map(|near| format!("; {near}"));
    let near = near.unwrap_or_default();
    Some(format!("its workflow has no `{unknown}`{near}"))
}

fn failed_at(outcome: Option<Box<Outcome>>) -> Option<Target> {
    let error = outcome?.error?;
    Some(Target::Action(error.action?, error.iteration))
}
