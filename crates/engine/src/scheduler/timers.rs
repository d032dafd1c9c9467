//! The timers of the runs in memory, earliest first. Runs that wait for long are not here but in
//! the store's index.

use std::collections::BTreeSet;
use std::time::Duration;
use windlass_machine::{RunState, TimerId};
use windlass_model::model::Name;
use windlass_store::DueRun;
use windlass_value::time::Timestamp;

/// Waiting runs that are due within this time are loaded together. They are read when half of it is left.
pub(super) const LOAD_AHEAD: Duration = Duration::from_secs(2);

/// Armed timers.
#[derive(Default)]
pub(super) struct Timers(BTreeSet<(Timestamp, Name, TimerId)>);

impl Timers {
    pub fn arm(&mut self, run: &Name, id: TimerId, due_at: Timestamp) {
        self.0.insert((due_at, run.clone(), id));
    }

    pub fn disarm(&mut self, run: &Name, id: TimerId, due_at: Timestamp) {
        self.0.remove(&(due_at, run.clone(), id));
    }

    /// Disarms all timers of a run that leaves memory.
    pub fn disarm_all(&mut self, run: &Name, state: &RunState) {
        for (id, timer) in &state.timers {
            self.disarm(run, *id, timer.due_at);
        }
    }

    /// When the first one fires.
    pub fn first(&self) -> Option<Timestamp> {
        self.0.first().map(|(due_at, ..)| *due_at)
    }

    /// How many are armed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the first one that is due, with its due time.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Name, TimerId)> {
        if self.first()? > now {
            return None;
        }
        self.0.pop_first()
    }
}

/// How far the store's index of waiting runs is loaded.
#[derive(Default)]
pub(super) struct DueRuns {
    /// The last one that was looked at.
    pub last: Option<DueRun>,
    /// When the next ones are to be loaded; none: there are none.
    pub load_at: Option<Timestamp>,
}

impl DueRuns {
    /// A run waits there now.
    pub fn add(&mut self, due: Timestamp) {
        if self.last.as_ref().is_some_and(|(last, _)| due <= *last) {
            self.last = None;
        }
        let load_at = due.minus(LOAD_AHEAD / 2);
        self.load_at = Some(self.load_at.map_or(load_at, |first| first.min(load_at)));
    }
}
