//! How many runs of a store do what.

use crate::engine::{EngineError, Inspector};
use crate::machine::RunStatus;
use crate::store::Placement;
use std::collections::BTreeMap;

/// So many headers are read at a time.
const PAGE: usize = 1_000;

/// The runs of a store, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    by_status: BTreeMap<RunStatus, u64>,
    /// Those that sleep for long.
    pub sleeping: u64,
}

impl RunCounts {
    /// How many do this.
    #[must_use]
    pub fn of(&self, status: RunStatus) -> u64 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }
}

/// Counts the runs of a store.
///
/// # Errors
/// Store errors.
pub fn count_runs(inspector: &Inspector) -> Result<RunCounts, EngineError> {
    let mut counts = RunCounts::default();
    let mut after: Option<String> = None;
    loop {
        let page = inspector.list(after.as_deref(), PAGE)?;
        for header in &page {
            *counts.by_status.entry(header.status).or_default() += 1;
            if matches!(header.placement, Placement::Due(_)) {
                counts.sleeping += 1;
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.id.to_string()),
            _ => return Ok(counts),
        }
    }
}
