//! The timers of the runs in memory, earliest first. Runs that wait for long are not here but in
//! the store's index.

use crate::machine::TimerId;
use crate::model::Name;
use crate::time::Timestamp;
use std::collections::{BTreeSet, HashMap};

/// Armed timers.
#[derive(Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Timestamp, Name, TimerId)>,
    due: HashMap<(Name, TimerId), Timestamp>,
}

impl Timers {
    /// Arms a timer; one that is armed already is moved.
    pub fn arm(&mut self, run: &Name, id: TimerId, due_at: Timestamp) {
        self.disarm(run, id);
        self.queue.insert((due_at, run.clone(), id));
        self.due.insert((run.clone(), id), due_at);
    }

    pub fn disarm(&mut self, run: &Name, id: TimerId) {
        if let Some(due_at) = self.due.remove(&(run.clone(), id)) {
            self.queue.remove(&(due_at, run.clone(), id));
        }
    }

    /// When the first one fires.
    pub fn first(&self) -> Option<Timestamp> {
        self.queue.first().map(|(due_at, ..)| *due_at)
    }

    /// How many are armed.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes the first one that is due, with its due time.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Name, TimerId)> {
        if self.first()? > now {
            return None;
        }
        let (due_at, run, id) = self.queue.pop_first()?;
        self.due.remove(&(run.clone(), id));
        Some((due_at, run, id))
    }
}
