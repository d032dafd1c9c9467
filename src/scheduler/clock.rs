//! The one place where the wall clock is read.

use crate::time::Timestamp;

/// The wall clock. Due times and deadlines are on it, so that they mean the same after a restart.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    chrono::Utc::now().into()
}
