//! Ports: which values a port accepts, and how it converts them (docs/reference/canvas.md).
//! A port does not depend on where a value is from.

use crate::Value;
use std::sync::Arc;
use windlass_value::shortened;

/// The kind of value that a port accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Text. Any other value is converted to its JSON text.
    String,
    /// A number, or text that contains one.
    Number,
    /// A boolean, or the text `true` or `false`.
    Boolean,
    /// Any value. A text is parsed as JSON.
    Json,
    /// Like `Json`, but an empty map becomes an empty list: an empty table of Lua may be either.
    List,
    /// Any value, unchanged.
    Any,
}

impl PortKind {
    /// The kinds that have a name of their own; `List` is `json` under other names.
    pub const ALL: [Self; 5] = [
        Self::String,
        Self::Number,
        Self::Boolean,
        Self::Json,
        Self::Any,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Json | Self::List => "json",
            Self::Any => "any",
        }
    }

    /// Returns true if at least one value of this kind can be converted to the other kind.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        !matches!(
            (self, to),
            (Self::Number, Self::Boolean) | (Self::Boolean, Self::Number)
        )
    }

    /// Converts a value that is not null to this kind, or returns `None` if that is not possible.
    #[must_use]
    pub fn convert(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Any, _)
            | (Self::String, Value::String(_))
            | (Self::Number, Value::Int(_) | Value::Float(_) | Value::Decimal(_))
            | (Self::Boolean, Value::Bool(_)) => Some(value.clone()),
            (Self::String, Value::Decimal(number)) => Some(Value::text(number.to_string())),
            (Self::String, other) => Some(Value::text(other.to_json())),
            (Self::Number, Value::String(text)) => Value::from_json(text.trim())
                .ok()
                .filter(|value| matches!(value, Value::Int(_) | Value::Float(_))),
            (Self::Boolean, Value::String(text)) => {
                let text = text.trim();
                let is = |word: &str| text.eq_ignore_ascii_case(word);
                (is("true") || is("false")).then(|| Value::Bool(is("true")))
            }
            (Self::List, Value::Object(map)) if map.is_empty() => Some(Value::array(Vec::new())),
            (Self::Json, Value::String(text)) => Value::from_json(text).ok(),
            (Self::List, Value::String(text)) => match Value::from_json(text).ok()? {
                Value::Object(map) if map.is_empty() => Some(Value::array(Vec::new())),
                other => Some(other),
            },
            (Self::Json | Self::List, other) => Some(other.clone()),
            (Self::Number | Self::Boolean, _) => None,
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Json | Self::List => "JSON",
            Self::Any => "a value",
        }
    }
}

/// A named input or output of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    pub name: Arc<str>,
    /// The description of the port in messages: "input `task` of `coder` (line 12)".
    pub shown: Arc<str>,
    /// The kind of its value.
    pub kind: PortKind,
    /// Whether null is an error. If not, null is accepted.
    pub required: bool,
    /// Whether an answer must have the port, perhaps with null.
    pub must_be_given: bool,
    /// The value that replaces null.
    pub default: Option<Value>,
}

impl Port {
    /// Converts a value to the port's kind.
    ///
    /// # Errors
    /// The reason why the port does not accept the value, with the port's name and line.
    pub fn accept(&self, value: &Value) -> Result<Value, String> {
        let value = match (&self.default, value) {
            (Some(default), Value::Null) => default,
            _ => value,
        };
        if value.is_null() {
            return if self.required {
                Err(format!("{} is required and has no value", self.shown))
            } else {
                Ok(Value::Null)
            };
        }
        self.kind.convert(value).ok_or_else(|| {
            format!(
                "{} must be {}, not {}",
                self.shown,
                self.kind.wanted(),
                excerpt(value)
            )
        })
    }
}

/// Returns the beginning of a value, for a message.
pub fn excerpt(value: &Value) -> String {
    shortened(&value.to_json(), 60)
}
