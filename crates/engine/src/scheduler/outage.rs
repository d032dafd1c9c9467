//! What waits to be tried again: runs that could not continue, and a store that takes no writes. Such a store is opened
//! again until it takes writes; then every run continues from what is stored.

use super::ScheduleError;
use super::driver::Driver;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use windlass_model::model::Name;
use windlass_store::StoreError;
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

impl Driver {
    /// Begins an outage when the store takes no writes any more.
    pub(super) fn begin_outage(&mut self, error: &ScheduleError) {
        let is_corrupt = matches!(
            error,
            ScheduleError::Store(reason) if matches!(**reason, StoreError::Corrupt { .. })
        );
        if (error.is_of_store() || is_corrupt) && !self.commands_only && self.outage.is_none() {
            self.outage = Some(Outage {
                error: error.clone(),
                tries: self.reopened,
                again_at: self.clock.now().plus(wait(self.reopened)),
            });
        }
    }

    /// Begins an outage when not one read failed, but the store refuses all.
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

    /// Opens the store again and recovers its runs.
    pub(super) fn reopen_store(&mut self, now: Timestamp) {
        // What is in flight fails, and its runs are discarded before they are loaded.
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
                // A store on a full disk can be opened, but refuses the next group: what is in flight would begin again
                // and again.
                self.reopened = tries;
                tracing::warn!(runs = runs.len(), "the store accepts writes again");
                return;
            }
            (Ok(_), Some(outage)) => outage.error,
            (Err(error), _) => error,
        };
        self.outage = Some(Outage {
            error,
            tries,
            again_at: now.plus(wait(tries)),
        });
    }
}
