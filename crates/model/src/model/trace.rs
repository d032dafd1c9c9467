//! The ids of traces and spans, as OpenTelemetry has them. An id follows from what the span is of, so that
//! every process that resumes a run reports the same trace, and nothing is reported under two ids.

use super::sha256;
use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq)]
pub enum SpanOf {
    /// The run itself.
    Run,
    /// An iteration: `outer#2/inner#7`.
    Iteration(String),
    /// An attempt: its idempotency key, and its number from 1.
    Attempt(String, u32),
}

impl SpanOf {
    /// The id of the span, in hexadecimal digits.
    #[must_use]
    pub fn id(&self, run: &str) -> String {
        let place = match self {
            Self::Run => format!("run {run}"),
            Self::Iteration(path) => format!("iteration {run} {path}"),
            Self::Attempt(key, attempt) => format!("attempt {attempt} {key}"),
        };
        digits(&place, 8)
    }
}

/// The id of a run's trace, in hexadecimal digits.
#[must_use]
pub fn trace_id(run: &str) -> String {
    digits(&format!("trace {run}"), 16)
}

/// What an attempt hands on to whom it calls: `traceparent` of W3C Trace Context.
#[must_use]
pub fn traceparent(key: &str, attempt: u32) -> String {
    let run = key.split('/').next().unwrap_or_default();
    let span = SpanOf::Attempt(key.to_owned(), attempt).id(run);
    format!("00-{}-{span}-01", trace_id(run))
}

fn digits(of: &str, bytes: usize) -> String {
    let digest = sha256(of.as_bytes());
    digest
        .iter()
        .take(bytes)
        .fold(String::new(), |mut text, byte| {
            // Writing to text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
