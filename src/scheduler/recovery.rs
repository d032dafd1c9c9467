//! How runs come back into memory: after a start, when their time has come, and after something
//! went wrong. What goes wrong with one run is that run's alone: it is tried again a few times,
//! then parked. What goes wrong with the store is everybody's: it is opened again until it takes
//! writes, and then every run goes on from what is stored.

use super::driver::Driver;
use super::live::Live;
use super::{Loaded, ScheduleError, Update};
use crate::expression::holds_sealed;
use crate::machine::{Effect, Event, RunStatus};
use crate::model::Name;
use crate::program::ProgramHash;
use crate::store::{PARKED_LABEL, Placement, StoreError};
use crate::time::Timestamp;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::sync::oneshot;

/// So many due runs are loaded at a time.
const DUE_PAGE: usize = 1_024;

/// So many programs that no run in memory has may be remembered.
pub(super) const MANY_PROGRAMS: usize = 256;

/// So often in a row a run is tried before it is parked.
const TRIES: u32 = 3;

/// The first wait before a run is tried again, or the store opened again; each is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait before the store is opened again.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// How much of a reason is kept with a parked run, in characters.
const REASON: usize = 500;

/// Runs that could not go on, and when they are tried again.
#[derive(Default)]
pub(super) struct Setbacks {
    tries: HashMap<Name, u32>,
    again: BTreeSet<(Timestamp, Name)>,
}

impl Setbacks {
    /// When the first of them is tried again.
    pub fn first(&self) -> Option<Timestamp> {
        self.again.first().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<Name> {
        if self.first()? > now {
            return None;
        }
        self.again.pop_first().map(|(_, run)| run)
    }

    /// The run made a durable step: what was, is over.
    pub fn overcome(&mut self, run: &Name) {
        if !self.tries.is_empty() {
            self.tries.remove(run);
        }
    }
}

/// The store takes no writes.
pub(super) struct Outage {
    /// The first error.
    pub error: ScheduleError,
    tries: u32,
    /// When it is opened again.
    pub again_at: Timestamp,
}

fn wait(tries: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << tries.min(16));
    doubled.min(LONGEST_WAIT)
}

/// What a loader gives for a run; one that panics gives nothing.
fn loaded(
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
    // ── bringing runs ───────────────────────────────────────────────────────────────────────

    /// Recovers because somebody asks: then a store that takes no writes is opened again at once.
    pub(super) fn recover_now(&mut self, paused: bool) -> Result<Vec<Name>, ScheduleError> {
        if self.outage.is_some() {
            self.open_again(self.clock.now());
        }
        if let Some(outage) = &self.outage {
            return Err(outage.error.clone());
        }
        self.recover(paused)
    }

    fn recover(&mut self, paused: bool) -> Result<Vec<Name>, ScheduleError> {
        let mut found = Vec::new();
        let runnable = self.store.runnable()?;
        let waiting = self.store.due(Timestamp(i64::MAX), DUE_PAGE)?;
        let sleepers = waiting.iter().map(|(_, run)| run);
        let headers = runnable.iter().chain(sleepers);
        let written = headers.filter_map(|run| Some(self.store.header(run).ok()?.updated_at));
        if let Some(last) = written.max() {
            self.clock.not_before(last);
        }
        for run in runnable {
            match self.bring(&run) {
                Ok(_) => found.push(run),
                Err(error) => self.setback(&run, error),
            }
        }
        self.stored_due = self.store.next_due_at()?;
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
            let page = self.store.list(after.as_deref(), DUE_PAGE)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            after = Some(last.id.clone());
            for header in page
                .iter()
                .filter(|header| header.status == RunStatus::Paused)
            {
                if self.bring(&header.id).is_ok() {
                    let (durable, told) = oneshot::channel();
                    self.post(&header.id, Event::Resumed, Some(durable));
                    self.resuming.push(told);
                    found.push(header.id.clone());
                }
            }
        }
    }

    /// Brings a run into memory and starts what a crash or its absence left outstanding.
    pub(super) fn bring(&mut self, run: &Name) -> Result<RunStatus, ScheduleError> {
        if let Some(live) = self.runs.get(run) {
            return Ok(live.state.status());
        }
        let stored = self.store.load(run)?;
        let status = stored.state.status();
        if status.is_final() {
            return Ok(status);
        }
        let loaded = self.program(run, stored.header.program)?;
        if loaded.program.secure && holds_sealed(&stored.state) {
            return Err(ScheduleError::Sealed(run.clone()));
        }
        let mut live = Live::stored(stored, loaded);
        if self.runs.is_empty() && self.stored_due.is_none() {
            // Nobody else's time is moved by that.
            self.clock.not_before(live.header.updated_at);
        }
        if live.header.labels.remove(PARKED_LABEL).is_some() {
            let placement = live.placement(self.clock.now());
            self.store.park(run, placement, None)?;
            live.header.placement = placement;
        }
        let outstanding: Vec<Effect> = live.state.outstanding().collect();
        self.runs.insert(run.clone(), live);
        self.release(run, outstanding);
        Ok(status)
    }

    /// Brings a run into memory that lacks what it needs to go on, to be ended: nothing of it
    /// starts, and its program is not kept, so that whoever resumes another is told what it lacks.
    pub(super) fn bring_to_end(&mut self, run: &Name) -> Result<RunStatus, ScheduleError> {
        let stored = self.store.load(run)?;
        let status = stored.state.status();
        let hash = stored.header.program;
        let source = self.store.program(hash)?;
        let loaded = loaded(run, || self.loader.load_to_end(hash, &source))?;
        let mut live = Live::stored(stored, loaded);
        live.header.labels.remove(PARKED_LABEL);
        self.runs.insert(run.clone(), live);
        Ok(status)
    }

    fn program(&mut self, run: &Name, hash: ProgramHash) -> Result<Loaded, ScheduleError> {
        if let Some(loaded) = self.programs.get(&hash) {
            return Ok(loaded.clone());
        }
        let source = self.store.program(hash)?;
        let loaded = loaded(run, || self.loader.load(hash, &source))?;
        self.keep_program(loaded.clone());
        Ok(loaded)
    }

    /// Remembers a program; when there are many, those of no run in memory are forgotten.
    pub(super) fn keep_program(&mut self, loaded: Loaded) {
        if self.programs.len() >= self.max_programs {
            let runs = self.runs.values();
            let used: HashSet<ProgramHash> = runs.map(|live| live.loaded.program.hash).collect();
            self.programs.retain(|hash, _| used.contains(hash));
            self.max_programs = MANY_PROGRAMS + self.programs.len() * 2;
        }
        self.programs.insert(loaded.program.hash, loaded);
    }

    /// Runs whose wait is over come back; bringing them arms their timers, which are due.
    pub(super) fn bring_due(&mut self, now: Timestamp) {
        let due = match self.store.due(now, DUE_PAGE) {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%error, "the index of waiting runs cannot be read");
                self.stored_due = Some(now.plus(FIRST_WAIT));
                return;
            }
        };
        let full = due.len() == DUE_PAGE;
        for (_, run) in due {
            // One that failed a moment ago has a time of its own.
            if self.setbacks.tries.contains_key(&run) {
                continue;
            }
            if let Err(error) = self.bring(&run) {
                self.setback(&run, error);
            }
        }
        self.stored_due = if full {
            // The index is as it was until those that were brought have made their step.
            Some(now.plus(Duration::from_millis(1)))
        } else {
            match self.store.next_due_after(now) {
                Ok(next) => next,
                Err(_) => Some(now.plus(FIRST_WAIT)),
            }
        };
    }

    /// Tries again what had a setback, and the store after an outage.
    pub(super) fn try_again(&mut self, now: Timestamp) {
        if self
            .outage
            .as_ref()
            .is_some_and(|outage| outage.again_at <= now)
        {
            self.open_again(now);
        }
        if self.outage.is_some() {
            return;
        }
        while let Some(run) = self.setbacks.pop_due(now) {
            if let Err(error) = self.bring(&run) {
                self.setback(&run, error);
            }
        }
    }

    // ── what goes wrong with one run ────────────────────────────────────────────────────────

    /// A run could not go on: it is tried again, and parked when that was often enough.
    pub(super) fn setback(&mut self, run: &Name, error: ScheduleError) {
        tracing::error!(%run, %error, "the run cannot go on");
        self.watchers.tell(run, || Update::Stuck(error.clone()));
        if self.quiet {
            return;
        }
        if let ScheduleError::Store(reason) = &error
            && matches!(
                **reason,
                StoreError::Io(_) | StoreError::Gone { .. } | StoreError::Failed { .. }
            )
        {
            // The store's trouble, not the run's.
            return;
        }
        let tries = self.setbacks.tries.entry(run.clone()).or_default();
        *tries += 1;
        if *tries < TRIES {
            let at = self.clock.now().plus(wait(*tries));
            self.setbacks.again.insert((at, run.clone()));
            return;
        }
        self.setbacks.tries.remove(run);
        let said = error.to_string();
        let line = said.lines().next().unwrap_or_default();
        let reason: String = line.chars().take(REASON).collect();
        match self.store.park(run, Placement::Resting, Some(&reason)) {
            Ok(()) => tracing::error!(%run, "the run is parked: resume it when it is mended"),
            Err(error) => tracing::error!(%run, %error, "the run cannot be parked"),
        }
    }

    /// Forgets what is in memory of a run: it may be ahead of the store.
    pub(super) fn throw_away(&mut self, run: &Name, error: ScheduleError) {
        if let Some(mut live) = self.runs.remove(run) {
            live.tasks.abort_all();
            live.state
                .timers
                .keys()
                .for_each(|id| self.timers.disarm(run, *id));
        }
        self.busy.retain(|busy| busy != run);
        self.setback(run, error);
    }

    // ── what goes wrong with the store ──────────────────────────────────────────────────────

    /// Begins an outage, unless there is one, when the store takes no writes any more.
    pub(super) fn outage_of(&mut self, error: &ScheduleError) {
        let ScheduleError::Store(reason) = error else {
            return;
        };
        let broken = matches!(
            **reason,
            StoreError::Io(_)
                | StoreError::Gone { .. }
                | StoreError::Failed { .. }
                | StoreError::Corrupt { .. }
        );
        if broken && !self.quiet && self.outage.is_none() {
            self.outage = Some(Outage {
                error: error.clone(),
                tries: 0,
                again_at: self.clock.now().plus(wait(0)),
            });
        }
    }

    /// Opens the store again, and goes on with every run.
    fn open_again(&mut self, now: Timestamp) {
        let outcome = self
            .store
            .reopen()
            .map_err(ScheduleError::from)
            .and_then(|()| self.recover(false));
        match outcome {
            Ok(runs) => {
                self.outage = None;
                tracing::warn!(runs = runs.len(), "the store takes writes again");
            }
            Err(error) => {
                if let Some(outage) = &mut self.outage {
                    outage.tries += 1;
                    outage.again_at = now.plus(wait(outage.tries));
                    outage.error = error;
                }
            }
        }
    }
}
