//! The timers of the runs in memory, earliest first. Runs that sleep for long are not in memory, but in the store's
//! index of due times.

use std::collections::BTreeSet;
use std::time::Duration;
use windlass_machine::{RunState, TimerId};
use windlass_model::model::Name;
use windlass_store::DueRun;
use windlass_value::time::Timestamp;

/// Sleeping runs that are due within this time are loaded together, so that their timers are armed before they are due.
pub(super) const LOAD_AHEAD: Duration = Duration::from_secs(2);

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

    pub fn first(&self) -> Option<Timestamp> {
        self.0.first().map(|(due_at, ..)| *due_at)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes the first timer that is due. Returns it with its due time.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Name, TimerId)> {
        if self.first()? > now {
            return None;
        }
        self.0.pop_first()
    }
}

/// How far the store's index of sleeping runs has been loaded into memory.
#[derive(Default)]
pub(super) struct DueRuns {
    /// The last entry of the index that was read.
    pub last: Option<DueRun>,
    /// When the next entries have to be loaded. `None` if the index has no further entries.
    pub load_at: Option<Timestamp>,
}

impl DueRuns {
    /// Records that the index has a new entry: a run that sleeps until `due`.
    pub fn add(&mut self, due: Timestamp) {
        if self.last.as_ref().is_some_and(|(last, _)| due <= *last) {
            self.last = None;
        }
        let load_at = due.minus(LOAD_AHEAD / 2);
        self.load_at = Some(self.load_at.map_or(load_at, |first| first.min(load_at)));
    }
}
