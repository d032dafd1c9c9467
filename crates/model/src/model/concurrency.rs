//! How many runs of a workflow may be in progress at a time.

use windlass_expression::Template;

/// The signal that a run waits for until its turn.
pub const TURN_SIGNAL: &str = "windlass.turn";

/// Which runs of a workflow exclude each other: those with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct Concurrency {
    /// The key of a run; without it, all runs of the workflow count as having the same key.
    pub key: Option<Template>,
    pub policy: ConcurrencyPolicy,
    /// Maximum number of runs in progress with the same key, at least 1.
    pub max: u32,
}

/// What happens to a run above the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// It waits until an earlier run has ended.
    Queue,
    /// It is not started.
    Skip,
    /// The earlier run is cancelled.
    Replace,
}
