//! Starts runs of the named workflows that have a schedule. A scheduled time is decided when it has a run or will never
//! get one. For each workflow, the store has the time up to which all scheduled times are decided. The id of a run is
//! made from its scheduled time, so that each time has at most one run, even after a crash.

use super::calendar::{Decision, Past, PreviousRun, decide, neighbours, range, start_of_day};
use super::report::{ScheduleReport, ScheduledTime};
use super::schedule_failures::Failing;
use super::{Engine, EngineError, Inspector, ScheduleError, StartOptions, Workflow, now, run_name};
use chrono::SecondsFormat;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use windlass_expression::{SCHEDULE_MEMBERS, Value};
use windlass_machine::SCHEDULE;
use windlass_machine::program::Program;
use windlass_model::model::{Name, Overlap, Schedule};
use windlass_store::{RunHeader, SchedulePause, ScheduleState, StoredWorkflow};
use windlass_value::time::Timestamp;

/// The label of a run that a schedule started. Its value is the name of the stored workflow.
pub const SCHEDULE_LABEL: &str = "windlass.schedule";

/// The label with the scheduled time of a run. A retry of the run has it, too.
const TIME_LABEL: &str = "windlass.scheduled_time";

/// A run counts as late if it was started more than this after its scheduled time.
const BEHIND: Duration = Duration::from_secs(10);

/// If the decided times of a schedule are ahead of the clock by more than this, the clock was wrong when they were
/// decided.
const AHEAD: Duration = Duration::from_secs(60);

/// Time until a failed start is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Engine {
    /// Starts the runs that are due in all schedules. Returns when to call this again.
    ///
    /// # Errors
    /// Returns store errors. A failed start of one workflow is logged, and does not affect the others.
    #[doc(hidden)]
    pub async fn fire_schedules(&self, now: Timestamp) -> Result<Option<Timestamp>, EngineError> {
        let mut next: Option<Timestamp> = None;
        let mut after: Option<Name> = None;
        loop {
            let page = self.saved_page(&mut after)?;
            if page.is_empty() {
                return Ok(next);
            }
            for stored in &page {
                let again = self.fire(stored, now).await?;
                next = [next, again].into_iter().flatten().min();
            }
        }
    }

    /// Returns a receiver that is notified when a workflow is put or removed, or its schedule is paused or resumed.
    #[doc(hidden)]
    #[must_use]
    pub fn workflow_changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns a receiver that is notified when the store accepts writes again after an outage.
    #[doc(hidden)]
    #[must_use]
    pub fn store_reopened(&self) -> watch::Receiver<()> {
        self.local.scheduler.reopened()
    }

    async fn fire(
        &self,
        stored: &StoredWorkflow,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, EngineError> {
        let failures = &self.schedule_failures;
        let workflow = match self.workflow(&stored.name) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => return Ok(None),
            Err(error) => {
                failures.record(&stored.name, Failing::Load, &error);
                return Ok(None);
            }
        };
        failures.clear(&stored.name, Failing::Load);
        let Some(schedule) = &workflow.program().schedule else {
            return Ok(None);
        };
        if is_ahead(stored, now) {
            tracing::warn!(
                workflow = %stored.name,
                "its schedule is ahead of the clock, which was wrong once: it continues from now"
            );
            self.update_stored(stored, |found| set_back(found, now))?;
            // Decide again at once. If the workflow was replaced meanwhile, the state was not set back. The caller that
            // replaced it has then sent a notification.
            return Ok(Some(now));
        }
        let state = state_of(stored);
        if is_paused(&state) {
            return Ok(None);
        }
        let past = Past {
            anchor: stored.stored_at,
            until: state.until,
            pauses: &state.pauses,
            process_start: self.process_start,
        };
        let earlier = self.earlier(state.last_run.as_deref());
        let decision = decide(schedule, past, now, earlier);
        let mut last_run = None;
        if let Some(at) = decision.start {
            if let (Overlap::Replace, true, Some(run)) =
                (schedule.overlap, earlier.is_under_way(), &state.last_run)
            {
                // An error is ignored, because the run may have ended meanwhile.
                let _ = self.cancel_again(run).await;
            }
            let run = run_of(&stored.name, at);
            match self.begin(&workflow, &stored.name, &run, at).await {
                Ok(()) => {
                    failures.clear(&stored.name, Failing::Start);
                    last_run = Some(run);
                }
                Err(
                    error @ EngineError::Schedule(
                        ScheduleError::Busy | ScheduleError::Stopped | ScheduleError::Store(_),
                    ),
                ) => {
                    failures.record(&stored.name, Failing::Late, &error);
                    return Ok(Some(now.plus(AGAIN)));
                }
                Err(error) => {
                    failures.record(&stored.name, Failing::Start, &error);
                }
            }
        }
        self.store_decision(stored, &decision, last_run)?;
        Ok(decision.next)
    }

    async fn begin(
        &self,
        workflow: &Workflow,
        name: &Name,
        run: &Name,
        at: Timestamp,
    ) -> Result<(), EngineError> {
        let options = StartOptions::default().id(&**run);
        let options = options.scheduled(Some(name), at);
        match self.launch(workflow, Value::Null, options).await {
            // If the run exists, an earlier process started it and then crashed.
            Ok(_) | Err(EngineError::Schedule(ScheduleError::Exists(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn earlier(&self, run: Option<&str>) -> PreviousRun {
        match run.map(|run| self.inspector().header(run)) {
            Some(Ok(header)) if header.status.is_final() => PreviousRun::Ended {
                at: header.updated_at,
            },
            Some(Ok(header)) => PreviousRun::UnderWay {
                is_late: is_late(&header),
            },
            Some(Err(_)) | None => PreviousRun::None,
        }
    }

    /// Stores a decision, and reports the missed times.
    fn store_decision(
        &self,
        of: &StoredWorkflow,
        decision: &Decision,
        last_run: Option<Name>,
    ) -> Result<(), EngineError> {
        let Some(until) = decision.until else {
            return Ok(());
        };
        self.update_stored(of, |stored| {
            // Change the state as it is stored now: the schedule may have been paused meanwhile.
            let mut state = state_of(stored);
            state.until = until;
            state.last_run = last_run.or(state.last_run);
            state.missed = state.missed.saturating_add(decision.missed);
            state.last_missed = decision.last_missed.or(state.last_missed);
            state
                .pauses
                .retain(|pause| pause.to.is_none_or(|to| to > until));
            stored.schedule = Some(state);
        })?;
        let late = self.schedule_failures.clear(&of.name, Failing::Late);
        if decision.missed > 0 {
            let last = decision.last_missed.unwrap_or(until);
            let cause = match late {
                _ if last < self.process_start => String::from("no server was there"),
                Some(cause) => cause,
                None => String::from("the server did not start them in time"),
            };
            tracing::warn!(
                workflow = %of.name, missed = decision.missed, %last,
                "scheduled times have no run: {cause}"
            );
            self.metrics().missed(&of.name, decision.missed);
        }
        Ok(())
    }

    /// Changes a stored workflow, unless another one has replaced it meanwhile.
    fn update_stored(
        &self,
        of: &StoredWorkflow,
        change: impl FnOnce(&mut StoredWorkflow),
    ) -> Result<(), EngineError> {
        let _compiled = self.launcher.compiled();
        let found = self.launcher.store.workflow(&of.name)?;
        if let Some(mut found) = found.filter(|found| found.stored_at == of.stored_at) {
            change(&mut found);
            self.launcher.store.replace_workflow(&found, None, &[])?;
        }
        Ok(())
    }

    /// Pauses the schedule of a workflow. Blocks.
    ///
    /// Until the schedule is resumed, it starts no run. Times in the pause do not count as missed. When this returns,
    /// the pause is durable.
    ///
    /// # Errors
    /// Returns [`EngineError::NoWorkflow`], [`EngineError::Input`] for a workflow without a schedule, or store errors.
    pub fn pause_schedule(&self, name: &str) -> Result<ScheduleReport, EngineError> {
        self.change_schedule(name, |state| {
            if !is_paused(state) {
                state.pauses.push(SchedulePause {
                    from: now(),
                    to: None,
                });
            }
        })
    }

    /// Ends the pause of a schedule. Blocks.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::pause_schedule`].
    pub fn resume_schedule(&self, name: &str) -> Result<ScheduleReport, EngineError> {
        self.change_schedule(name, |state| {
            if let Some(pause) = state.pauses.last_mut().filter(|pause| pause.to.is_none()) {
                pause.to = Some(now().max(pause.from));
            }
        })
    }

    /// Returns when the schedule of a named workflow starts runs, and why it starts none. Blocks.
    ///
    /// # Errors
    /// Returns the errors of [`Inspector::workflow_schedule`].
    pub fn workflow_schedule(&self, name: &str) -> Result<ScheduleReport, EngineError> {
        let mut report = self.inspector().workflow_schedule(name)?;
        report.cannot_start = self.schedule_failures.of(name);
        Ok(report)
    }

    fn change_schedule(
        &self,
        name: &str,
        change: impl FnOnce(&mut ScheduleState),
    ) -> Result<ScheduleReport, EngineError> {
        let inspector = self.inspector();
        let workflow = self.workflow(name)?;
        let workflow = workflow.ok_or_else(|| inspector.no_workflow(name))?;
        if workflow.program().schedule.is_none() {
            return Err(no_schedule(name));
        }
        let stored = self.launcher.store.workflow(name)?;
        let stored = stored.ok_or_else(|| inspector.no_workflow(name))?;
        self.update_stored(&stored, |stored| {
            let mut state = state_of(stored);
            change(&mut state);
            stored.schedule = Some(state);
        })?;
        self.changed.send_replace(());
        self.workflow_schedule(name)
    }
}

impl Inspector {
    /// Returns the times of a workflow's schedule from `from` to before `to` (by default now). Each has the id of its
    /// run, and the status of the run if it exists.
    ///
    /// `from` and `to` are instants (RFC 3339) or days. A day begins at midnight in the time zone of the schedule.
    ///
    /// # Errors
    /// Returns [`EngineError::NoWorkflow`] or store errors. Returns [`EngineError::Input`] if the workflow has no
    /// schedule, or if the range is empty, too long or not in the past.
    pub fn scheduled_times(
        &self,
        name: &str,
        from: &str,
        to: Option<&str>,
    ) -> Result<Vec<ScheduledTime>, EngineError> {
        let (stored, workflow) = self.stored_workflow(name)?;
        let schedule = workflow.program().schedule.as_ref();
        let schedule = schedule.ok_or_else(|| no_schedule(name))?;
        let refused = |why: String| Err(EngineError::Input(why));
        let from = instant_or_day(schedule, from)?;
        let to = to.map_or_else(|| Ok(now()), |to| instant_or_day(schedule, to))?;
        if from >= to {
            return refused(format!(
                "the range is empty: its beginning {from} is not before its end {to}"
            ));
        }
        if to > now() {
            return refused(format!(
                "the range ends at {to}, and only past times can be started: the schedule starts the others"
            ));
        }
        let (times, all) = range(schedule, stored.stored_at, from, to);
        if let (false, Some(last)) = (all, times.last()) {
            return refused(format!(
                "the range has more than {} times: begin with one that ends at {last}",
                times.len()
            ));
        }
        let runs: Vec<Name> = times.iter().map(|at| run_of(name, *at)).collect();
        let headers = self.headers(&runs)?;
        let times = times.into_iter().zip(runs).zip(headers);
        let times = times.map(|((time, run), header)| ScheduledTime {
            time,
            run: run.to_string(),
            status: header.map(|header| header.status),
        });
        Ok(times.collect())
    }
}

impl StartOptions {
    /// Sets the scheduled time of the run. The schedule of a saved workflow derives the id of a run from the time. If
    /// the run has this id, it counts as started by the schedule.
    #[must_use]
    pub fn scheduled(mut self, workflow: Option<&str>, time: Timestamp) -> Self {
        let is_of = |name: &&str| self.id.as_deref() == Some(&*run_of(name, time));
        if let Some(name) = workflow.filter(is_of) {
            self = self.label(SCHEDULE_LABEL, name);
        }
        self.label(TIME_LABEL, time.to_string())
    }
}

fn instant_or_day(schedule: &Schedule, text: &str) -> Result<Timestamp, EngineError> {
    let day = || start_of_day(schedule, text.parse().ok()?);
    let found = text.parse().ok().or_else(day);
    found.ok_or_else(|| {
        EngineError::Input(format!(
            "`{text}` is not a valid time: write a day such as 2026-11-01, or an instant such as 2026-11-01T06:00:00Z"
        ))
    })
}

/// Returns the values that a program can read about the scheduled time of a run with these labels. Returns `None` if
/// the run has no scheduled time.
pub(super) fn schedule_of(
    program: &Program,
    labels: &BTreeMap<String, String>,
) -> Option<(Name, Value)> {
    let time: Timestamp = labels.get(TIME_LABEL)?.parse().ok()?;
    let schedule = program.schedule.as_ref();
    let (before, after) = schedule
        .map(|schedule| neighbours(schedule, time))
        .unwrap_or_default();
    let text = |time: Timestamp| {
        let time = time.to_utc();
        Value::text(time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    };
    let values = [Some(time), before, after].map(|time| time.map(text).unwrap_or_default());
    let members = SCHEDULE_MEMBERS.into_iter().zip(values);
    Some((Name::from(SCHEDULE), Value::from_pairs(members)))
}

/// Returns the stored state of a workflow's schedule, or the initial state if none is stored yet.
pub(super) fn state_of(stored: &StoredWorkflow) -> ScheduleState {
    let fresh = || ScheduleState {
        until: stored.stored_at,
        ..ScheduleState::default()
    };
    stored.schedule.clone().unwrap_or_else(fresh)
}

fn is_paused(state: &ScheduleState) -> bool {
    state.pauses.last().is_some_and(|pause| pause.to.is_none())
}

fn no_schedule(name: &str) -> EngineError {
    EngineError::Input(format!(
        "the workflow `{name}` has no schedule: add `schedule` to its file, and put it again"
    ))
}

/// Returns whether a run was started more than [`BEHIND`] after its scheduled time.
fn is_late(header: &RunHeader) -> bool {
    scheduled_time(header).is_some_and(|time| header.started_at.since(time) > BEHIND)
}

/// Returns whether a schedule's decided times are ahead of the clock. If they are, the schedule would start nothing
/// until the clock has reached these times.
fn is_ahead(stored: &StoredWorkflow, now: Timestamp) -> bool {
    let is_ahead = |at: Timestamp| at > now.plus(AHEAD);
    let of_schedule = stored.schedule.as_ref().map(|state| state.until);
    is_ahead(stored.stored_at) || of_schedule.is_some_and(is_ahead)
}

/// Changes the state of a schedule that is ahead of the clock, so that it continues from now. A later time that already
/// has a run starts no second one.
fn set_back(stored: &mut StoredWorkflow, now: Timestamp) {
    // Recurrences count from this time, so it must not be ahead of the clock either.
    stored.stored_at = stored.stored_at.min(now);
    if let Some(state) = &mut stored.schedule {
        state.until = state.until.min(now);
        for pause in &mut state.pauses {
            pause.from = pause.from.min(now);
            pause.to = pause.to.map(|to| to.min(now));
        }
    }
}

/// Returns the scheduled time of a run, if it has one.
pub(super) fn scheduled_time(header: &RunHeader) -> Option<Timestamp> {
    header.labels.get(TIME_LABEL)?.parse().ok()
}

/// Format of the time in the id of a run that a schedule starts.
const TIME_FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// Returns the id of the run for a scheduled time.
fn run_of(name: &str, at: Timestamp) -> Name {
    let time = at.to_utc().format(TIME_FORMAT);
    let short = run_name(name);
    let suffix = if short == *name {
        String::new()
    } else {
        format!("-{:08x}", crc32fast::hash(name.as_bytes()))
    };
    Name::from(format!("{short}{suffix}-at-{time}"))
}
