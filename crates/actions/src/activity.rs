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

/// What an activity receives for one attempt, in addition to its decoded input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActivityContext {
    /// The input before decoding.
    pub input: Value,
    /// The idempotency key. It is the same for every attempt at the action, and for every repetition after a crash.
    pub idempotency_key: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The action's name in the workflow.
    pub action: Name,
}

/// Why an attempt at an activity failed.
///
/// Any other error type converts to a retryable `ActivityError`, so `?` works in an activity.
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

    /// A failure that is retried only if the retry policy names its kind.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self(Fault::new(fault_kind::HANDLER, message))
    }

    /// Sets the kind of the error, for `on:` of a retry policy and for `error.kind`. The default is `handler`.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.0.kind = Name::from(kind);
        self
    }

    /// Sets `error.code`.
    #[must_use]
    pub fn code(mut self, code: impl fmt::Display) -> Self {
        self.0 = self.0.code(code);
        self
    }

    /// Sets an output for the failed action. A value that serde cannot serialize is ignored.
    #[must_use]
    pub fn output(mut self, output: impl Serialize + 'static) -> Self {
        self.0.output = Value::encode(output).ok();
        self
    }

    /// Sets the wait before the next attempt, for example the one that a called service requests.
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

/// An activity whose input and output types are erased.
pub(super) type Closure = Arc<dyn Fn(ActivityContext) -> Attempt<'static> + Send + Sync>;

/// Wraps an activity: decodes its input and encodes its output.
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
