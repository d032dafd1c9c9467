//! JSON from outside: recognises whether it is JSON or text, and refuses what is too large or nests
//! too deep.

use windlass_expression::{MAX_ACTION_DEPTH, Value, inexact_json, over_memory_json};
use windlass_model::model::{Fault, fault_kind};

/// The value of a JSON text; none when it is not JSON, or is a lone number that only text
/// represents exactly.
pub(super) fn parsed(text: &str, what: &str) -> Result<Option<Value>, Fault> {
    check_memory(text.as_bytes(), what)?;
    match Value::from_json(text) {
        Ok(value) => Ok(Some(value)),
        // serde_json has no other sign of it.
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

/// Refuses JSON of which a value would be another than it says.
pub(super) fn exact(text: &[u8], what: &str) -> Result<(), Fault> {
    match inexact_json(text) {
        Some(reason) => {
            let message = format!("{what} cannot be stored exactly: {reason}");
            Err(Fault::new(fault_kind::INEXACT, message))
        }
        None => Ok(()),
    }
}

/// Refuses JSON whose values would take too much memory, before it is read. Text that is not JSON
/// may be as long as it likes: nothing is made of it.
pub(super) fn check_memory(text: &[u8], what: &str) -> Result<(), Fault> {
    match over_memory_json(text) {
        Some(reason) => {
            let message = format!("the values of {what} would {reason}");
            Err(Fault::new(fault_kind::TOO_LARGE, message))
        }
        None => Ok(()),
    }
}
