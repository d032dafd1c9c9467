//! Runs that start automatically: the named workflows that have a schedule. Up to when its times
//! are decided is stored with each, and a run's id is made of its time, so that each time is one
//! run, through crashes.

use super::calendar::{Decision, PreviousRun, decide};
use super::{Engine, EngineError, ScheduleError, StartOptions, Workflow, run_name};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::Name;
use windlass_store::{ScheduleState, StoredWorkflow};
use windlass_value::time::Timestamp;

/// The label of a run that a schedule started: the workflow's name.
pub const SCHEDULE_LABEL: &str = "windlass.schedule";

/// Number of workflows read at a time.
const PAGE: usize = 256;

/// A schedule that is ahead of the clock by more than this was decided by a clock that was wrong.
const AHEAD: Duration = Duration::from_secs(60);

/// When what could not be started now is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Engine {
    /// Starts what is due of all schedules; gives when to look again.
    ///
    /// # Errors
    /// Store errors. A workflow that cannot be started is logged, and does not affect the others.
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
        if let Some(back) = set_back(stored, now) {
            tracing::warn!(
                workflow = %stored.name,
                "its schedule is ahead of the clock, which was wrong once: it continues from now"
            );
            self.keep(stored, back)?;
            // If another caller changed it meanwhile, that caller has sent a notification.
            return Ok(Some(now));
        }
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

    fn earlier(&self, run: Option<&str>) -> PreviousRun {
        match run.map(|run| self.inspector().header(run)) {
            Some(Ok(header)) if header.status.is_final() => PreviousRun::Ended(header.updated_at),
            Some(Ok(_)) => PreviousRun::UnderWay,
            Some(Err(_)) | None => PreviousRun::None,
        }
    }

    /// Stores up to when the times are decided.
    fn decided(&self, of: &StoredWorkflow, state: ScheduleState) -> Result<(), EngineError> {
        let decided = StoredWorkflow {
            schedule: Some(state),
            ..of.clone()
        };
        self.keep(of, decided)
    }

    /// Stores a workflow as it is from now on, unless it is another one by then.
    fn keep(&self, of: &StoredWorkflow, next: StoredWorkflow) -> Result<(), EngineError> {
        let _compiled = self.compiled();
        let found = self.store.workflow(&of.name)?;
        if found.is_some_and(|found| found.stored_at == of.stored_at) {
            self.store.put_workflow(&next)?;
        }
        Ok(())
    }
}

/// A workflow whose schedule is ahead of the clock, changed to continue from now: otherwise none of its times
/// would be due before the clock is there again. A run of a later time that has begun is not begun again.
fn set_back(stored: &StoredWorkflow, now: Timestamp) -> Option<StoredWorkflow> {
    let is_ahead = |at: Timestamp| at > now.plus(AHEAD);
    let of_schedule = stored.schedule.as_ref().map(|state| state.until);
    if !is_ahead(stored.stored_at) && !of_schedule.is_some_and(is_ahead) {
        return None;
    }
    let mut back = stored.clone();
    // Recurrences count from it.
    back.stored_at = stored.stored_at.min(now);
    if let Some(state) = &mut back.schedule {
        state.until = state.until.min(now);
    }
    Some(back)
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
