//! Counts the runs of a store by status.

use crate::{EngineError, Inspector};
use std::collections::BTreeMap;
use windlass_machine::RunStatus;

/// The number of runs of a store by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    by_status: BTreeMap<RunStatus, u64>,
    /// Number of runs that sleep for long, and so are not in memory.
    pub sleeping: u64,
}

impl RunCounts {
    /// Returns the number of runs with this status.
    #[must_use]
    pub fn of(&self, status: RunStatus) -> u64 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }
}

/// Counts the runs of a store.
///
/// # Errors
/// Returns store errors.
pub fn count_runs(inspector: &Inspector) -> Result<RunCounts, EngineError> {
    inspector.run_index(|index| {
        let mut counts = RunCounts::default();
        for entry in index.all() {
            *counts.by_status.entry(entry.status).or_default() += 1;
            counts.sleeping += u64::from(entry.due_at().is_some());
        }
        counts
    })
}
