//! Ids of traces and spans, as in OpenTelemetry.
//! An id is derived from what the span describes. So every process that resumes a run reports the same trace, and
//! nothing is reported under two ids.

use super::sha256;
use windlass_value::{first_chars, hex};

#[derive(Clone, Debug, PartialEq)]
pub enum SpanSubject {
    /// The run itself.
    Run,
    /// An iteration: `outer#2/inner#7`.
    Iteration(String),
    /// An attempt: the idempotency key of its request, and its number from 1.
    Attempt(String, u32),
}

impl SpanSubject {
    /// Returns the id of the span, in hexadecimal digits.
    #[must_use]
    pub fn id(&self, run: &str) -> String {
        let place = match self {
            Self::Run => format!("run {run}"),
            Self::Iteration(path) => format!("iteration {run} {path}"),
            Self::Attempt(key, attempt) => format!("attempt {attempt} {key}"),
        };
        digits(&place, 16)
    }
}

/// Returns the id of a run's trace, in hexadecimal digits.
#[must_use]
pub fn trace_id(run: &str) -> String {
    digits(&format!("trace {run}"), 32)
}

/// Returns the header `traceparent` (W3C Trace Context), which an attempt sends to the service that it calls.
#[must_use]
pub fn traceparent(key: &str, attempt: u32) -> String {
    let run = key.split('/').next().unwrap_or_default();
    let span = SpanSubject::Attempt(key.to_owned(), attempt).id(run);
    format!("00-{}-{span}-01", trace_id(run))
}

fn digits(of: &str, count: usize) -> String {
    first_chars(&hex(&sha256(of.as_bytes())), count).to_owned()
}
