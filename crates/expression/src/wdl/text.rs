//! Converts values to text, and counts text in UTF-16 units, as the reference does.

use super::content;
use super::number::float_text;
use crate::{SECURE_MASK, Value};

/// Appends a value inside a text, as `@{…}` and `concat` do: True and False, null as nothing, 5.0 as 5, arrays and
/// objects as compact JSON, and a binary or XML value as the text of its bytes.
pub(crate) fn push_text(out: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(int) => out.push_str(&int.to_string()),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::Decimal(decimal) => out.push_str(&decimal.to_string()),
        Value::String(text) => out.push_str(text),
        Value::Array(_) => out.push_str(&value.to_json()),
        Value::Object(_) => {
            out.push_str(&content::text_of(value).unwrap_or_else(|| value.to_json()))
        }
        Value::Secure(_) => out.push_str(SECURE_MASK),
    }
}

/// Returns a value as it is inside of a text: True and False, null as nothing, 5.0 as 5, arrays and objects as JSON.
#[must_use]
pub fn text_inside(value: &Value) -> String {
    let mut text = String::new();
    push_text(&mut text, value);
    text
}

/// Returns the text of [`push_text`] as a value. A value that is text already is not copied.
pub(crate) fn to_text(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        other => Value::text(text_inside(other)),
    }
}

/// Returns about the number of bytes of `value` as text. This is cheaper than rendering.
pub(crate) fn text_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) => 24,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| text_size(item) + 3).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| key.len() + text_size(item) + 6)
            .sum(),
        Value::Secure(_) => SECURE_MASK.len(),
    }
}

/// A text as UTF-16 units. ASCII, the usual case, is not converted.
pub(crate) enum Units<'t> {
    Ascii(&'t str),
    Wide(Vec<u16>),
}

impl<'t> Units<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        if text.is_ascii() {
            Self::Ascii(text)
        } else {
            Self::Wide(text.encode_utf16().collect())
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Ascii(text) => text.len(),
            Self::Wide(units) => units.len(),
        }
    }

    /// Returns the units from `start` to `end`, or `None` if they are out of range. Half of a surrogate pair becomes
    /// U+FFFD.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Option<String> {
        match self {
            Self::Ascii(text) => text.get(start..end).map(str::to_owned),
            Self::Wide(units) => units.get(start..end).map(String::from_utf16_lossy),
        }
    }
}

/// Returns the number of UTF-16 units of the text.
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}
