//! What waits to be tried again: runs that could not continue, and a store that takes no writes.

use super::ScheduleError;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// The first wait before a run is loaded again, or the store opened again. Each wait doubles.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(250);

const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Runs that could not continue, and when each is loaded again.
#[derive(Default)]
pub(super) struct RetryQueue {
    pub tries: HashMap<Name, u32>,
    pub again: BTreeSet<(Timestamp, Name)>,
}

impl RetryQueue {
    /// Whether a run is loaded again.
    pub fn is_queued(&self, run: &Name) -> bool {
        self.again.iter().any(|(_, queued)| queued == run)
    }

    /// When the first of them is loaded again.
    pub fn first(&self) -> Option<Timestamp> {
        self.again.first().map(|(at, _)| *at)
    }

    pub fn pop_due(&mut self, now: Timestamp) -> Option<Name> {
        if self.first()? > now {
            return None;
        }
        self.again.pop_first().map(|(_, run)| run)
    }

    /// The run made a durable step: its failures no longer count.
    pub fn clear_failures(&mut self, run: &Name) {
        if !self.tries.is_empty() {
            self.tries.remove(run);
        }
    }
}

/// The store takes no writes.
pub(super) struct Outage {
    /// The first error.
    pub error: ScheduleError,
    pub tries: u32,
    /// When the store is opened again.
    pub again_at: Timestamp,
}

/// The wait before the next try.
pub(super) fn wait(tries: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << tries.min(16));
    doubled.min(LONGEST_WAIT)
}
