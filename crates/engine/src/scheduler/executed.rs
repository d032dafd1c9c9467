//! Which runs a driver executes. After a recovery, these are all runs of the store; without a recovery, only the runs
//! that the driver started, resumed or found due. This is only for reports: no decision depends on it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_model::model::Name;

#[derive(Default)]
pub(super) struct ExecutedRuns {
    all: AtomicBool,
    /// The unfinished runs that the driver executes. Empty if `all` is set.
    runs: Mutex<HashSet<Name>>,
}

impl ExecutedRuns {
    pub fn contains(&self, run: &str) -> bool {
        self.has_all() || self.runs().contains(run)
    }

    pub fn insert(&self, run: &Name) {
        if !self.has_all() {
            self.runs().insert(run.clone());
        }
    }

    pub fn remove(&self, run: &Name) {
        if !self.has_all() {
            self.runs().remove(run);
        }
    }

    /// Adds every run of the store, also those that are started later.
    pub fn insert_all(&self) {
        self.all.store(true, Ordering::Release);
        *self.runs() = HashSet::new();
    }

    fn has_all(&self) -> bool {
        self.all.load(Ordering::Acquire)
    }

    fn runs(&self) -> MutexGuard<'_, HashSet<Name>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
