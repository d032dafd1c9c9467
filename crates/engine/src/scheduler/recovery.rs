//! Loads runs into memory: after a start, when they are due, and after an error. If a run has an error, it is loaded
//! again a few times, and then parked. The other runs continue.

use super::active::ActiveRun;
use super::driver::{Driver, MANY_PROGRAMS};
use super::outage::{FIRST_WAIT, backoff};
use super::timers::LOAD_AHEAD;
use super::{Loaded, ScheduleError, Update};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass_expression::holds_sealed;
use windlass_machine::program::ProgramHash;
use windlass_machine::{Event, RunStatus};
use windlass_model::model::Name;
use windlass_store::{Placement, QUARANTINE_LABEL, RunHeader, StoreError};
use windlass_value::time::Timestamp;

/// Maximum number of due runs that are loaded at a time. It is limited because all other runs wait meanwhile.
const DUE_PAGE: usize = 256;

/// Number of headers that are read at a time.
const PAGE: usize = 1_024;

/// A run that could not be read is loaded again after this time.
const READ_AGAIN: Duration = Duration::from_secs(4);

/// Number of failures in a row after which a run is parked.
const MAX_LOAD_ATTEMPTS: u32 = 3;

/// Maximum length of the reason in the label of a parked run, in characters.
const MAX_REASON_BYTES: usize = 500;

/// The label of a run whose actions are answered from a file of stubs, instead of being carried out.
pub const STUBS_LABEL: &str = "windlass.stubs";

/// Refuses a run with stubs in a process without any: its actions would have their real effects.
///
/// # Errors
/// Returns [`ScheduleError::Unloadable`].
pub fn check_stubs(header: &RunHeader, loaded: &Loaded) -> Result<(), ScheduleError> {
    match header.labels.contains_key(STUBS_LABEL) && !loaded.registry.has_stubs() {
        true => Err(ScheduleError::Unloadable {
            run: header.id.clone(),
            reason: String::from(
                "it was started with --stub, and its actions would have their real effects: repeat --stub FILE",
            ),
        }),
        false => Ok(()),
    }
}

/// Loads a program. A panic of the loader becomes an error of the run.
fn load_program(
    run: &Name,
    load: impl FnOnce() -> Result<Loaded, String>,
) -> Result<Loaded, ScheduleError> {
    catch_unwind(AssertUnwindSafe(load))
        .unwrap_or_else(|_| Err(String::from("the engine failed at its program")))
        .map_err(|reason| ScheduleError::Unloadable {
            run: run.clone(),
            reason,
        })
}

impl Driver {
    // ── loading runs ───────────────────────────────────────────────────────────────────────

    /// Recovers runs for a command. A store that refuses writes is reopened at once.
    pub(super) fn recover_now(&mut self, paused: bool) -> Result<Vec<Name>, ScheduleError> {
        if self.outage.is_some() {
            self.reopen_store(self.clock.now());
        }
        if let Some(outage) = &self.outage {
            return Err(outage.error.clone());
        }
        self.recover(paused)
    }

    pub(super) fn recover(&mut self, paused: bool) -> Result<Vec<Name>, ScheduleError> {
        let mut found = Vec::new();
        let runnable = self.store.runnable()?;
        let waiting = self.store.due(None, Timestamp(i64::MAX), PAGE)?;
        let sleepers = waiting.iter().map(|(_, run)| run);
        let headers = runnable.iter().chain(sleepers);
        let written = headers.filter_map(|run| Some(self.store.header(run).ok()?.updated_at));
        if let Some(last) = written.max() {
            self.clock.not_before(last);
        }
        for run in runnable {
            match self.load_if_room(&run) {
                Ok(()) => found.push(run),
                Err(error) => self.on_run_failed(&run, error),
            }
        }
        self.due.last = None;
        self.due.load_at = self.next_load()?;
        self.runtime.waits.executed().insert_all();
        found.extend(waiting.into_iter().map(|(_, run)| run));
        if paused {
            found.extend(self.resume_paused()?);
        }
        Ok(found)
    }

    fn resume_paused(&mut self) -> Result<Vec<Name>, ScheduleError> {
        let mut found = Vec::new();
        let mut after: Option<Name> = None;
        loop {
            let page = self.store.list(after.as_deref(), PAGE)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            after = Some(last.id.clone());
            for header in page
                .iter()
                .filter(|header| header.status == RunStatus::Paused)
            {
                if self.load_run(&header.id).is_ok() {
                    let (durable, receiver) = oneshot::channel();
                    self.post(&header.id, Event::Resumed, Some(durable));
                    self.resuming.push(receiver);
                    found.push(header.id.clone());
                }
            }
        }
    }

    /// Loads a run into memory and starts its outstanding effects and timers.
    pub(super) fn load_run(&mut self, run: &Name) -> Result<RunStatus, ScheduleError> {
        if let Some(active) = self.runs.get(run) {
            return Ok(active.hosted.status());
        }
        let stored = self.store.load(run)?;
        let status = stored.state.status();
        if status.is_final() {
            self.guests.stop_waiting(run);
            return Ok(status);
        }
        let loaded = self.program(run, stored.header.program)?;
        check_stubs(&stored.header, &loaded)?;
        if loaded.program.secure && holds_sealed(&stored.state) {
            return Err(ScheduleError::Sealed(run.clone()));
        }
        let mut active = ActiveRun::from_stored(stored, loaded);
        if self.runs.is_empty() && self.due.load_at.is_none() {
            // If other runs were in memory, setting the clock forward would fire their timers early.
            self.clock.not_before(active.header.updated_at);
        }
        if active.header.labels.remove(QUARANTINE_LABEL).is_some() {
            let placement = active.placement(self.clock.now());
            self.store.set_quarantine(run, placement, None)?;
            active.header.placement = placement;
        }
        if let Some(first_not_begun) = self.guests.stop_waiting(run) {
            active.hosted.continue_from(first_not_begun);
        }
        let mut outstanding = active.hosted.outstanding();
        if self.lacks_room(&mut active) {
            active.withheld = std::mem::take(&mut outstanding);
        }
        self.runs.insert(run.clone(), Box::new(active));
        self.runtime.waits.executed().insert(run);
        self.carry_out(run, outstanding);
        Ok(status)
    }

    /// Loads a run only to cancel or to pause it, although this process lacks something that its workflow needs: `error`
    /// says what. The only requests that start are those that cancel operations of the run. A paused run is parked. The
    /// program is not cached, so that a resume of another run of this program still reports what is missing.
    pub(super) fn load_run_to_stop(
        &mut self,
        run: &Name,
        event: &Event,
        error: &ScheduleError,
    ) -> Result<RunStatus, ScheduleError> {
        let stored = self.store.load(run)?;
        let status = stored.state.status();
        let hash = stored.header.program;
        let source = self.store.program(hash)?;
        let loaded = load_program(run, || self.loader.load_to_end(hash, &source))?;
        let mut active = ActiveRun::from_stored(stored, loaded);
        active.missing = match event {
            Event::PauseRequested => Some(error.to_string()),
            _ => self.loader.missing_to_cancel(&source),
        };
        active.header.labels.remove(QUARANTINE_LABEL);
        self.guests.stop_waiting(run);
        self.runs.insert(run.clone(), Box::new(active));
        Ok(status)
    }

    pub(super) fn program(
        &mut self,
        run: &Name,
        hash: ProgramHash,
    ) -> Result<Loaded, ScheduleError> {
        if let Some(loaded) = self.programs.get(&hash) {
            return Ok(loaded.clone());
        }
        let source = self.store.program(hash)?;
        let loaded = load_program(run, || self.loader.load(hash, &source))?;
        self.cache_program(loaded.clone());
        Ok(loaded)
    }

    /// Caches a program. If there are many programs, those that no run in memory uses are dropped.
    pub(super) fn cache_program(&mut self, loaded: Loaded) {
        if self.programs.len() >= self.max_programs {
            let runs = self.runs.values();
            let used: HashSet<ProgramHash> =
                runs.map(|active| active.hosted.program().hash).collect();
            self.programs.retain(|hash, _| used.contains(hash));
            self.max_programs = MANY_PROGRAMS + self.programs.len() * 2;
        }
        self.programs.insert(loaded.program.hash, loaded);
    }

    /// Loads the runs that are due soon. Loading arms their timers. Runs are loaded ahead because many runs may be due
    /// at once, and would then be late.
    pub(super) fn load_due(&mut self, now: Timestamp) {
        let again = Some(now.plus(FIRST_WAIT));
        let until = now.plus(self.load_ahead());
        let page = match self.store.due(self.due.last.as_ref(), until, DUE_PAGE) {
            Ok(page) => page,
            Err(error) => {
                tracing::error!(%error, "the index of waiting runs cannot be read");
                self.due.load_at = again;
                self.begin_outage_if_closed(&error.into());
                return;
            }
        };
        let full = page.len() == DUE_PAGE;
        for due in page {
            // Do not load a run that has just failed: it waits for its retry.
            if !self.retries.is_queued(&due.1)
                && let Err(error) = self.load_if_room(&due.1)
            {
                self.on_run_failed(&due.1, error);
            }
            self.due.last = Some(due);
        }
        self.due.load_at = match full {
            true => Some(now),
            false => self.next_load().unwrap_or(again),
        };
    }

    /// Returns how long before their due time runs are loaded. It is zero while many runs are in memory, so that runs
    /// that are loaded early do not take the places of new runs.
    fn load_ahead(&self) -> Duration {
        match self.runs.len() < self.limits.live_runs / 2 {
            true => LOAD_AHEAD,
            false => Duration::ZERO,
        }
    }

    /// Returns when the next waiting runs have to be loaded.
    fn next_load(&self) -> Result<Option<Timestamp>, StoreError> {
        let last = self.due.last.as_ref();
        let next = self.store.due(last, Timestamp(i64::MAX), 1)?;
        let ahead = self.load_ahead() / 2;
        Ok(next.first().map(|(due, _)| due.minus(ahead)))
    }

    /// Loads failed runs again, and reopens the store after an outage, when it is time.
    pub(super) fn retry_due(&mut self, now: Timestamp) {
        if self
            .outage
            .as_ref()
            .is_some_and(|outage| outage.again_at <= now)
        {
            self.reopen_store(now);
        }
        if self.outage.is_some() {
            return;
        }
        while let Some(run) = self.retries.pop_due(now) {
            if let Err(error) = self.load_if_room(&run) {
                self.on_run_failed(&run, error);
            }
        }
    }

    // ── errors of one run ────────────────────────────────────────────────────────

    /// Handles an error of a run that cannot continue. The run is loaded again later. After too many failures it is
    /// parked.
    pub(super) fn on_run_failed(&mut self, run: &Name, error: ScheduleError) {
        tracing::error!(%run, %error, "the run cannot continue");
        self.watchers.notify(run, || Update::Stuck(error.clone()));
        if self.commands_only {
            return;
        }
        if error.is_of_store() {
            self.begin_outage_if_closed(&error);
            // During an outage, do not schedule a load: at its end all runs are recovered.
            if self.outage.is_none() {
                let at = self.clock.now().plus(READ_AGAIN);
                self.retries.again.insert((at, run.clone()));
            }
            return;
        }
        let tries = self.retries.tries.entry(run.clone()).or_default();
        *tries += 1;
        if *tries < MAX_LOAD_ATTEMPTS {
            let at = self.clock.now().plus(backoff(*tries));
            self.retries.again.insert((at, run.clone()));
            return;
        }
        self.retries.tries.remove(run);
        self.park(run, Placement::Idle, &error.to_string());
    }

    /// Parks a run: stores the reason why it does not continue as a label.
    pub(super) fn park(&mut self, run: &Name, placement: Placement, reason: &str) {
        let line = reason.lines().next().unwrap_or_default();
        let reason: String = line.chars().take(MAX_REASON_BYTES).collect();
        match self.store.set_quarantine(run, placement, Some(&reason)) {
            Ok(()) => tracing::error!(%run, "the run is parked: resume it when it is mended"),
            Err(error) => tracing::error!(%run, %error, "the run cannot be parked"),
        }
    }

    /// Removes a run from memory, because its state there may be ahead of the store. Handles the run's error.
    pub(super) fn discard(&mut self, run: &Name, error: ScheduleError) {
        self.remove(run);
        self.on_run_failed(run, error);
    }

    /// Removes a run from memory. Aborts its tasks and its computation.
    pub(super) fn remove(&mut self, run: &Name) {
        if let Some(mut active) = self.runs.remove(run) {
            active.tasks.abort_all();
            active.cancel_computation();
            self.timers.disarm_all(run, active.hosted.state());
        }
        self.guests.remove(run);
        self.pool.iter().for_each(|pool| pool.close(run));
        self.busy.retain(|busy| busy != run);
    }
}
