//! Reads the rendered inputs of an action. An input of the wrong type is a fault of kind `input` that names the key.
//! The meaning of the inputs is decided by the executors, not here.

use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(fault_kind::INPUT, message)
}

/// Returns true if the input `check` of a call that failed with this exit code or status says that this is not a fault.
/// `false` accepts every code, a list its codes, and a computed number only this code.
pub(super) fn is_accepted(inputs: &Value, code: i64) -> bool {
    let code = code.to_string();
    match inputs.get("check") {
        Some(Value::Bool(check)) => !check,
        Some(Value::Array(codes)) => codes.iter().any(|one| one.to_text() == code),
        Some(other) => other.to_text() == code,
        None => false,
    }
}

/// The inputs of one action, by key. A null counts as missing.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    map: &'a Object,
}

impl<'a> Inputs<'a> {
    /// Returns the inputs of a request, which must be a map.
    pub(super) fn of(request: &'a Request) -> Result<Self, Fault> {
        Self::from_value("inputs", &request.inputs)
    }

    pub(super) fn from_value(key: &str, value: &'a Value) -> Result<Self, Fault> {
        match value {
            Value::Object(map) => Ok(Self { map }),
            other => Err(mismatch(key, "a map", other)),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.get(key)
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| mismatch(key, "a string", value))
            })
            .transpose()
    }

    /// Returns the path of a file, which must not be empty.
    pub(super) fn path(self, key: &str) -> Result<Option<&'a str>, Fault> {
        match self.text(key)? {
            Some("") => Err(invalid(format!(
                "`{key}` is empty: it is the path of a file"
            ))),
            path => Ok(path),
        }
    }

    pub(super) fn required_text(self, key: &str) -> Result<&'a str, Fault> {
        self.text(key)?
            .ok_or_else(|| invalid(format!("`{key}` is missing")))
    }

    /// Returns the members of the map under a key. If the key is missing, there are no members.
    pub(super) fn members(self, key: &str) -> Result<Vec<(&'a str, &'a Value)>, Fault> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        Ok(Self::from_value(key, value)?.all().collect())
    }

    pub(super) fn all(self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn without(self, key: &str) -> Value {
        let rest = self.map.iter().filter(|(name, _)| ***name != *key);
        Value::object(
            rest.map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }
}

/// Returns a single value as text, for headers, queries and environment variables. Null is `None`.
pub(super) fn scalar(key: &str, value: &Value) -> Result<Option<String>, Fault> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.as_str().to_owned())),
        Value::Decimal(decimal) => Ok(Some(decimal.to_string())),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Ok(Some(value.to_json())),
        Value::Array(_) | Value::Object(_) | Value::Secure(_) => {
            Err(mismatch(key, "a single value", value))
        }
    }
}

/// Returns the words of a command. `wanted` is what a message calls a list of words.
pub(super) fn words(key: &str, wanted: &str, value: &Value) -> Result<Vec<String>, Fault> {
    let words = value.as_array();
    let words = words.ok_or_else(|| mismatch(key, wanted, value))?.iter();
    words
        .map(|word| Ok(scalar(key, word)?.unwrap_or_default()))
        .collect()
}

pub(super) fn mismatch(key: &str, wanted: &str, value: &Value) -> Fault {
    match value {
        // The number has the right type but is out of range, so the message shows it.
        Value::Int(number) if wanted.contains("number") => {
            invalid(format!("`{key}` must be {wanted}, not {number}"))
        }
        _ => invalid(format!("`{key}` must be {wanted}, not {}", value.kind())),
    }
}
