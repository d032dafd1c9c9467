//! Which runs a driver executes: all runs of the store after a recovery, otherwise the runs that it started, resumed or
//! found due. Only for reports: no decision depends on it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_model::model::Name;

#[derive(Default)]
pub(super) struct ExecutedRuns {
    all: AtomicBool,
    /// The unfinished runs. Empty if `all` is set.
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

    /// Adds every run of the store, also later ones.
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
