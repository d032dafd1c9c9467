//! Whether the driver moves: others may ask without waiting for it.

use super::clock::now;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use windlass_value::time::Timestamp;

/// Since when the driver has been busy; 0 while it waits. A clone is about the same driver.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse(Arc<AtomicI64>);

impl Pulse {
    /// The driver begins something.
    pub fn beat(&self) {
        self.0.store(now().0, Ordering::Relaxed);
    }

    /// The driver waits for something to do.
    pub fn rest(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// For how long it has done one and the same thing; none while it waits.
    pub fn stalled_for(&self) -> Option<Duration> {
        let since = self.0.load(Ordering::Relaxed);
        (since != 0).then(|| now().since(Timestamp(since)))
    }
}
