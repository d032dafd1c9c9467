//! How many runs of a workflow may be in progress at the same time.

use windlass_expression::Template;

/// The name of the signal that a run of a limited workflow waits for before it may proceed.
pub const TURN_SIGNAL: &str = "windlass.turn";

/// Which runs of a workflow exclude each other: those with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct Concurrency {
    /// The key of a run. Without a template, all runs of the workflow have the same key.
    pub key: Option<Template>,
    pub policy: ConcurrencyPolicy,
    /// Maximum number of runs in progress with the same key, at least 1.
    pub max: u32,
}

/// What happens if a run is started although the maximum is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// The new run waits until an earlier run has ended.
    Queue,
    /// The new run is not started.
    Skip,
    /// The earlier run is cancelled, and the new run is started.
    Replace,
}
