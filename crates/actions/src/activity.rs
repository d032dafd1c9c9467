//! Activities: Rust closures that carry out actions, typed by serde.

use super::Attempt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, fault_kind};

/// What an activity is given for one attempt, in addition to its input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActivityContext {
    /// The input as it is, before it was decoded.
    pub input: Value,
    /// The same for every attempt and every repetition after a crash.
    pub idempotency_key: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The action's name in the workflow.
    pub action: Name,
}

/// Why an attempt of an activity failed.
///
/// Any error becomes one that is retried, so `?` works in an activity.
///
/// ```
/// # extern crate windlass_actions as windlass;
/// use windlass::ActivityError;
///
/// let busy = ActivityError::retryable("the card network is busy").code(503);
/// let wrong = ActivityError::permanent("there is no such card");
/// # let _ = (busy, wrong);
/// ```
pub struct ActivityError(Fault);

impl ActivityError {
    /// A failure that the action's retry policy retries.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self(Fault::new(fault_kind::HANDLER, message).transient())
    }

    /// A failure that is retried only where the retry policy names its kind.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self(Fault::new(fault_kind::HANDLER, message))
    }

    /// What `on:` of a retry policy and `error.kind` call it; without this `handler`.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.0.kind = Name::from(kind);
        self
    }

    /// What `error.code` gives.
    #[must_use]
    pub fn code(mut self, code: impl fmt::Display) -> Self {
        self.0 = self.0.code(code);
        self
    }

    /// What the action gives all the same. What serde cannot write is left out.
    #[must_use]
    pub fn output(mut self, output: impl Serialize + 'static) -> Self {
        self.0.output = Value::encode(output).ok();
        self
    }

    /// The wait before the next attempt that the other side requested.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after_ms = u64::try_from(wait.as_millis()).ok();
        self
    }
}

impl<E: std::error::Error> From<E> for ActivityError {
    fn from(error: E) -> Self {
        Self::retryable(error.to_string())
    }
}

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

/// An activity with its types erased.
pub(super) type Closure = Arc<dyn Fn(ActivityContext) -> Attempt<'static> + Send + Sync>;

/// Decodes the input for an activity, and encodes what it gives.
pub(super) fn typed<F, I, O, Fut>(name: &Name, activity: F) -> Closure
where
    F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
    I: DeserializeOwned + 'static,
    O: Serialize + 'static,
    Fut: Future<Output = Result<O, ActivityError>> + Send + 'static,
{
    let name = Arc::clone(name);
    Arc::new(move |context| {
        let input = match context.input.decode() {
            Ok(input) => input,
            Err(error) => {
                let message = format!("the activity `{name}` cannot read its input: {error}");
                return Box::pin(ready(Err(Fault::new(fault_kind::INPUT, message))));
            }
        };
        let running = activity(context, input);
        let name = Arc::clone(&name);
        Box::pin(async move {
            let output = running.await.map_err(|error| error.0)?;
            Value::encode(output).map_err(|error| {
                let message =
                    format!("the output of the activity `{name}` is not valid JSON: {error}");
                Fault::new(fault_kind::HANDLER, message)
            })
        })
    })
}
