//! Shows whether the driver makes progress. A reader does not wait for the driver.

use super::clock::now;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use windlass_value::time::Timestamp;

/// Since when the driver has been busy, in milliseconds; 0 while it waits. Clones share the value.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse(Arc<AtomicI64>);

impl Pulse {
    /// Records that the driver begins to work on a message or a step.
    pub fn beat(&self) {
        self.0.store(now().0, Ordering::Relaxed);
    }

    /// Records that the driver waits for work.
    pub fn rest(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns for how long the driver has worked on the same message or step. `None` while it waits for work.
    pub fn stalled_for(&self) -> Option<Duration> {
        let since = self.0.load(Ordering::Relaxed);
        (since != 0).then(|| now().since(Timestamp(since)))
    }
}
