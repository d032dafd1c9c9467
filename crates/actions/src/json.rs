//! Parses JSON from outside: decides whether a text is JSON, and refuses JSON that is too large or too deeply nested.

use windlass_expression::{MAX_ACTION_DEPTH, Value, inexact_json, over_memory_json};
use windlass_model::model::{Fault, fault_kind};

/// Parses a JSON text. Returns `None` if the text is not JSON. Also returns `None` for a single number that a value
/// cannot represent exactly.
pub(super) fn parsed(text: &str, what: &str) -> Result<Option<Value>, Fault> {
    check_memory(text.as_bytes(), what)?;
    match Value::from_json(text) {
        Ok(value) => Ok(Some(value)),
        // Compare the message, because serde_json has no other sign of this error.
        Err(error) if error.to_string().starts_with("recursion limit exceeded") => {
            let message = format!("{what} nests deeper than {MAX_ACTION_DEPTH} levels");
            Err(Fault::new(fault_kind::TOO_LARGE, message))
        }
        Err(_) if text.trim_start().starts_with(['{', '[', '"']) => exact(text.as_bytes(), what)
            .map_err(|fault| fault.output(Value::text(text)))
            .map(|()| None),
        Err(_) => Ok(None),
    }
}

/// Refuses JSON whose parsed value would differ from the text.
pub(super) fn exact(text: &[u8], what: &str) -> Result<(), Fault> {
    match inexact_json(text) {
        Some(reason) => {
            let message = format!("{what} cannot be stored exactly: {reason}");
            Err(Fault::new(fault_kind::INEXACT, message))
        }
        None => Ok(()),
    }
}

/// Refuses JSON whose values would need too much memory, before it is parsed. Text that is not JSON is accepted here,
/// because no values are made from it.
pub(super) fn check_memory(text: &[u8], what: &str) -> Result<(), Fault> {
    match over_memory_json(text) {
        Some(reason) => {
            let message = format!("the values of {what} would {reason}");
            Err(Fault::new(fault_kind::TOO_LARGE, message))
        }
        None => Ok(()),
    }
}
