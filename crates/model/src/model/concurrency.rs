//! How many runs of a workflow may be under way at a time.

use windlass_expression::Template;

/// The signal that a run waits for until it is its turn.
pub const TURN_SIGNAL: &str = "windlass.turn";

/// Which runs of a workflow exclude each other: those with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct Concurrency {
    /// Without one, all runs of the workflow have the same.
    pub key: Option<Template>,
    pub policy: ConcurrencyPolicy,
    /// How many of them may be under way, at least 1.
    pub max: u32,
}

/// What becomes of a run that is one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// It waits until an earlier one has ended.
    Queue,
    /// It is not started.
    Skip,
    /// The earlier one is cancelled.
    Replace,
}
