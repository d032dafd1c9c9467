//! The one place where the wall clock is read, and what stands for it in a simulation.

use crate::time::Timestamp;
use std::sync::Arc;

/// The wall clock. Due times and deadlines are on it, so that they mean the same after a restart.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    chrono::Utc::now().into()
}

/// Where a driver's time comes from.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub fn wall() -> Self {
        Self::of(now)
    }

    pub fn of(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
