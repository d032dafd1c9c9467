//! Runs that start by themselves: the named workflows that have a schedule. Up to when its times
//! are decided is stored with each, and a run's id is made of its time, so that each time is one
//! run, through crashes.

use super::calendar::{Decision, Earlier, decide};
use super::{Engine, EngineError, ScheduleError, StartOptions, Workflow, run_name};
use crate::expression::Value;
use crate::model::Name;
use crate::store::{ScheduleState, StoredWorkflow};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The label of a run that a schedule started: the workflow's name.
pub const SCHEDULE_LABEL: &str = "windlass.schedule";

/// So many workflows are read at a time.
const PAGE: usize = 256;

/// When what could not be started now is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Engine {
    /// Starts what is due of all schedules; gives when to look again.
    ///
    /// # Errors
    /// Store errors. A workflow that cannot be started is logged, and is no matter of the others.
    #[doc(hidden)]
    pub async fn fire_schedules(&self, now: Timestamp) -> Result<Option<Timestamp>, EngineError> {
        let mut next: Option<Timestamp> = None;
        let mut after: Option<Name> = None;
        loop {
            let page = self.store.workflows(after.as_deref(), PAGE)?;
            let Some(last) = page.last() else {
                return Ok(next);
            };
            after = Some(last.name.clone());
            for stored in &page {
                let again = self.fire(stored, now).await?;
                next = [next, again].into_iter().flatten().min();
            }
        }
    }

    /// Ends when a workflow was put or removed.
    #[doc(hidden)]
    pub async fn schedules_changed(&self) {
        self.changed.notified().await;
    }

    async fn fire(
        &self,
        stored: &StoredWorkflow,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, EngineError> {
        let workflow = match self.workflow(&stored.name) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(workflow = %stored.name, %error, "its schedule cannot be read");
                return Ok(None);
            }
        };
        let Some(schedule) = &workflow.program().schedule else {
            return Ok(None);
        };
        let state = stored.schedule.clone().unwrap_or(ScheduleState {
            until: stored.stored_at,
            last_run: None,
        });
        let earlier = self.earlier(state.last_run.as_deref());
        let decision = decide(schedule, stored.stored_at, state.until, now, earlier);
        let Decision { start, until, next } = decision;
        let mut last_run = state.last_run;
        if let Some(at) = start {
            let run = run_of(&stored.name, at);
            match self.begin(&workflow, &stored.name, &run).await {
                Ok(()) => last_run = Some(run),
                Err(
                    error @ EngineError::Schedule(
                        ScheduleError::Busy | ScheduleError::Stopped | ScheduleError::Store(_),
                    ),
                ) => {
                    tracing::warn!(workflow = %stored.name, %error, "its time is late");
                    return Ok(Some(now.plus(AGAIN)));
                }
                Err(error) => {
                    tracing::warn!(workflow = %stored.name, %error, "it cannot be started");
                }
            }
        }
        if let Some(until) = until {
            self.decided(stored, ScheduleState { until, last_run })?;
        }
        Ok(next)
    }

    async fn begin(&self, workflow: &Workflow, name: &Name, run: &Name) -> Result<(), EngineError> {
        let options = StartOptions {
            id: Some(run.to_string()),
            labels: BTreeMap::from([(SCHEDULE_LABEL.to_owned(), name.to_string())]),
        };
        match self.launch(workflow, Value::Null, options).await {
            // It was started before a crash.
            Ok(_) | Err(EngineError::Schedule(ScheduleError::Exists(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn earlier(&self, run: Option<&str>) -> Earlier {
        match run.map(|run| self.inspector().header(run)) {
            Some(Ok(header)) if header.status.is_final() => Earlier::Ended(header.updated_at),
            Some(Ok(_)) => Earlier::UnderWay,
            Some(Err(_)) | None => Earlier::None,
        }
    }

    /// Stores up to when the times are decided, unless the workflow is another one by now.
    fn decided(&self, of: &StoredWorkflow, state: ScheduleState) -> Result<(), EngineError> {
        let _compiled = self.compiled();
        let Some(mut stored) = self.store.workflow(&of.name)? else {
            return Ok(());
        };
        if stored.stored_at == of.stored_at {
            stored.schedule = Some(state);
            self.store.put_workflow(&stored)?;
        }
        Ok(())
    }
}

/// The run of a time.
fn run_of(name: &str, at: Timestamp) -> Name {
    let time = at.to_utc().format("%Y%m%dT%H%M%SZ");
    let short = run_name(name);
    let told_apart = if short == *name {
        String::new()
    } else {
        format!("-{:08x}", crc32fast::hash(name.as_bytes()))
    };
    Name::from(format!("{short}{told_apart}-at-{time}"))
}
