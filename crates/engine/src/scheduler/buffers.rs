//! A pool of buffers for the steps in flight, and its size.

use super::writers::MAX_IN_FLIGHT;
use windlass_machine::Change;

/// Maximum number of runs in a batch. If more runs are busy, one batch is advanced while another is written.
pub(super) const BATCH: usize = 100;

/// Reusable buffers for the changes of steps.
///
/// If a driver has many runs, allocating a buffer for every step costs more than the steps.
#[derive(Default)]
pub(super) struct BufferPool(Vec<Vec<Change>>);

impl BufferPool {
    /// Maximum number of buffers that the batches in flight can use.
    const MOST: usize = BATCH * MAX_IN_FLIGHT;
    /// Maximum capacity of a buffer that is reused, in changes. Steps with more changes are rare.
    const LONGEST: usize = 64;

    pub fn take(&mut self) -> Vec<Change> {
        self.0.pop().unwrap_or_default()
    }

    pub fn give_back(&mut self, mut changes: Vec<Change>) {
        if self.0.len() < Self::MOST && changes.capacity() <= Self::LONGEST {
            changes.clear();
            self.0.push(changes);
        }
    }
}
