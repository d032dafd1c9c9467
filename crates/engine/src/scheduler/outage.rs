//! Retries runs that failed, and a store that refuses writes. The driver reopens the store again and again until it
//! accepts writes. Then every run continues from its stored state.

use super::ScheduleError;
use super::driver::Driver;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use windlass_model::model::Name;
use windlass_store::StoreError;
use windlass_value::time::Timestamp;

/// First wait before a run is loaded again, or the store is reopened. Each further wait is twice as long.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(250);

const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Runs that failed, and when each of them is loaded again.
#[derive(Default)]
pub(super) struct RetryQueue {
    pub tries: HashMap<Name, u32>,
    pub again: BTreeSet<(Timestamp, Name)>,
}

impl RetryQueue {
    /// Returns whether a run waits to be loaded again.
    pub fn is_queued(&self, run: &Name) -> bool {
        self.again.iter().any(|(_, queued)| queued == run)
    }

    /// Returns when the first run is loaded again.
    pub fn first(&self) -> Option<Timestamp> {
        self.again.first().map(|(at, _)| *at)
    }

    pub fn pop_due(&mut self, now: Timestamp) -> Option<Name> {
        if self.first()? > now {
            return None;
        }
        self.again.pop_first().map(|(_, run)| run)
    }

    /// Resets the number of failures of a run that made a durable step.
    pub fn clear_failures(&mut self, run: &Name) {
        if !self.tries.is_empty() {
            self.tries.remove(run);
        }
    }
}

/// A period in which the store refuses writes.
pub(super) struct Outage {
    /// The error that began the outage, or that of the last try to end it.
    pub error: ScheduleError,
    pub tries: u32,
    pub again_at: Timestamp,
}

/// Returns the wait before the next try.
pub(super) fn backoff(tries: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << tries.min(16));
    doubled.min(LONGEST_WAIT)
}

impl Driver {
    /// Begins an outage if the store failed or is corrupt.
    pub(super) fn begin_outage(&mut self, error: &ScheduleError) {
        let is_corrupt = matches!(
            error,
            ScheduleError::Store(reason) if matches!(**reason, StoreError::Corrupt { .. } | StoreError::Unreadable(_))
        );
        if (error.is_of_store() || is_corrupt) && !self.commands_only && self.outage.is_none() {
            self.outage = Some(Outage {
                error: error.clone(),
                tries: self.reopened,
                again_at: self.clock.now().plus(backoff(self.reopened)),
            });
        }
    }

    /// Begins an outage if the store refuses all requests. A single failed read begins none.
    pub(super) fn begin_outage_if_closed(&mut self, error: &ScheduleError) {
        if let ScheduleError::Store(reason) = error
            && matches!(
                **reason,
                StoreError::Gone { .. } | StoreError::Failed { .. }
            )
        {
            self.begin_outage(error);
        }
    }

    /// Reopens the store and recovers its runs.
    pub(super) fn reopen_store(&mut self, now: Timestamp) {
        // Wait for the batches in flight, which fail. Their runs have to be discarded before they are loaded again.
        self.await_completed();
        let outage = self.outage.take();
        let tries = outage.map_or(1, |outage| outage.tries.saturating_add(1));
        let outcome = self
            .store
            .reopen()
            .map_err(ScheduleError::from)
            .and_then(|()| self.recover(false));
        let error = match (outcome, self.outage.take()) {
            (Ok(runs), None) => {
                // Remember `tries` until the store accepts a group, so that the next waits get longer. A store on a
                // full disk can be reopened, but refuses the next group. Without longer waits, effects would be
                // repeated again and again.
                self.reopened = tries;
                tracing::warn!(runs = runs.len(), "the store accepts writes again");
                self.runtime.reopened.send_replace(());
                return;
            }
            (Ok(_), Some(outage)) => outage.error,
            (Err(error), _) => error,
        };
        self.outage = Some(Outage {
            error,
            tries,
            again_at: now.plus(backoff(tries)),
        });
    }
}
