//! Writes values as Python's `str`, `repr` and `json.dumps` do.
//! The written bytes are counted against the limits of the evaluation.

use super::session;
use crate::MAX_DEPTH;
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::fmt::Write;

fn too_deep() -> Error {
    let message = format!("the value nests deeper than {MAX_DEPTH} levels");
    Error::new(ErrorKind::InvalidOperation, message)
}

pub(super) fn str(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    push_str(&mut out, value)?;
    Ok(out)
}

/// Appends `str(value)` to a text.
pub(super) fn push_str(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => {
            session::bytes(text.len())?;
            out.push_str(text);
            Ok(())
        }
        None => repr(out, value, 0, false),
    }
}

/// Appends `repr(value)`. If `is_sorted` is true, the keys of maps are sorted.
fn repr(out: &mut String, value: &Value, depth: usize, is_sorted: bool) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    session::bytes(4)?;
    match value.kind() {
        ValueKind::Undefined => {}
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => number(out, value),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            session::bytes(text.len())?;
            out.push_str(&quoted(text));
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in keys(value, is_sorted)?.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                repr(out, key, depth + 1, is_sorted)?;
                out.push_str(": ");
                repr(out, &value.get_item(key)?, depth + 1, is_sorted)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = value.is_tuple();
            out.push(if tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter()?.checked() {
                if count > 0 {
                    out.push_str(", ");
                }
                repr(out, &item?, depth + 1, is_sorted)?;
                count += 1;
            }
            out.push_str(match (tuple, count) {
                (true, 1) => ",)",
                (true, _) => ")",
                (false, _) => "]",
            });
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

fn keys(map: &Value, is_sorted: bool) -> Result<Vec<Value>, Error> {
    let keys: Result<Vec<Value>, Error> = map.try_iter()?.checked().collect();
    let mut keys = keys?;
    if is_sorted {
        keys.sort();
    }
    Ok(keys)
}

/// The maximum length of a line of `pprint`.
const LINE_WIDTH: usize = 80;

/// Returns `pprint.pformat(value)`. In contrast to Python, a long text is not split.
pub(super) fn pprint(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    pretty(&mut out, value, 0, 0)?;
    Ok(out)
}

/// Appends a value in the column `column`, which `after` further characters follow.
fn pretty(out: &mut String, value: &Value, column: usize, after: usize) -> Result<(), Error> {
    let mut line = String::new();
    repr(&mut line, value, 0, true)?;
    let is_map = value.kind() == ValueKind::Map;
    let nests = is_map || matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !nests || line.chars().count() + column + after <= LINE_WIDTH {
        out.push_str(&line);
        return Ok(());
    }
    let items = keys(value, is_map)?;
    let closing = match (is_map, value.is_tuple(), items.len()) {
        (true, ..) => "}",
        (false, true, 1) => ",)",
        (false, true, _) => ")",
        (false, false, _) => "]",
    };
    out.extend(line.chars().next());
    let column = column + 1;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            session::bytes(column)?;
            let _ = write!(out, ",\n{:column$}", "");
        }
        let after = if index + 1 == items.len() {
            after + closing.len()
        } else {
            1
        };
        if is_map {
            let mut key = String::new();
            repr(&mut key, item, 0, true)?;
            let width = key.chars().count() + 2;
            let _ = write!(out, "{key}: ");
            pretty(out, &value.get_item(item)?, column + width, after)?;
        } else {
            pretty(out, item, column, after)?;
        }
    }
    out.push_str(closing);
    Ok(())
}

fn number(out: &mut String, value: &Value) {
    if value.is_integer() {
        let _ = write!(out, "{value}");
    } else {
        float(out, f64::try_from(value.clone()).unwrap_or(f64::NAN));
    }
}

/// Appends `repr(float)`.
/// It has the shortest digits, and an exponent if the number is 1e16 or above, or below 0.0001.
fn float(out: &mut String, float: f64) {
    let magnitude = float.abs();
    if float.is_nan() {
        out.push_str("nan");
    } else if float.is_infinite() {
        out.push_str(if float < 0.0 { "-inf" } else { "inf" });
    } else if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{float:?}");
    }
}

/// Returns `repr(text)`.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == quote => out.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// The style of JSON.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Json {
    /// As the filter `tojson` writes JSON: `< > & '` are written as `\u003c` and so on.
    pub html: bool,
    /// Whether keys are sorted.
    pub is_sorted: bool,
    /// Number of spaces for each level of nesting. `None` writes everything on one line.
    pub indent: Option<usize>,
}

/// Returns `json.dumps(value)`.
pub(super) fn json(value: &Value, style: Json) -> Result<String, Error> {
    let mut out = String::new();
    dump(&mut out, value, style, 0)?;
    Ok(out)
}

fn line(out: &mut String, style: Json, depth: usize) -> Result<(), Error> {
    if let Some(indent) = style.indent {
        let width = indent.saturating_mul(depth);
        session::bytes(width)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width));
    }
    Ok(())
}

fn dump(out: &mut String, value: &Value, style: Json, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    session::bytes(4)?;
    let comma = if style.indent.is_some() { "," } else { ", " };
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => {
            if f64::try_from(value.clone()).is_ok_and(|float| !float.is_finite()) {
                let message = "JSON has neither infinity nor not-a-number";
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
            number(out, value);
        }
        ValueKind::String => json_text(out, value.as_str().unwrap_or_default(), style.html)?,
        ValueKind::Map => {
            let keys = keys(value, style.is_sorted)?;
            out.push('{');
            for (index, key) in keys.iter().enumerate() {
                if index > 0 {
                    out.push_str(comma);
                }
                line(out, style, depth + 1)?;
                let mut text = String::new();
                match key.kind() {
                    ValueKind::String => text.push_str(key.as_str().unwrap_or_default()),
                    _ => dump(&mut text, key, style, depth + 1)?,
                }
                json_text(out, &text, style.html)?;
                out.push_str(": ");
                dump(out, &value.get_item(key)?, style, depth + 1)?;
            }
            if !keys.is_empty() {
                line(out, style, depth)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut some = false;
            for item in value.try_iter()?.checked() {
                if some {
                    out.push_str(comma);
                }
                some = true;
                line(out, style, depth + 1)?;
                dump(out, &item?, style, depth + 1)?;
            }
            if some {
                line(out, style, depth)?;
            }
            out.push(']');
        }
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        _ => {
            let message = format!("{} has no JSON", value.kind());
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(())
}

/// Appends a JSON text in ASCII, as `json.dumps` does.
fn json_text(out: &mut String, text: &str, html: bool) -> Result<(), Error> {
    session::bytes(text.len())?;
    out.push('"');
    let mut units = [0_u16; 2];
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\'' if html => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            ' '..='~' => out.push(letter),
            other => {
                for unit in other.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats() {
        for (float, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (123_456_789.5, "123456789.5"),
            (-0.0, "-0.0"),
        ] {
            assert_eq!(str(&Value::from(float)).unwrap(), text);
        }
    }

    #[test]
    fn containers() {
        let value = Value::from(minijinja::value::Serde(
            serde_json::json!({"b": [1, null, true, "it's"], "a": "<ü>"}),
        ));
        assert_eq!(
            str(&value).unwrap(),
            r#"{'b': [1, None, True, "it's"], 'a': '<ü>'}"#
        );
        let plain = json(&value, Json::default()).unwrap();
        assert_eq!(plain, r#"{"b": [1, null, true, "it's"], "a": "<\u00fc>"}"#);
        let html = json(
            &value,
            Json {
                html: true,
                is_sorted: true,
                indent: None,
            },
        )
        .unwrap();
        assert_eq!(
            html,
            r#"{"a": "\u003c\u00fc\u003e", "b": [1, null, true, "it\u0027s"]}"#
        );
        let value = Value::from(minijinja::value::Serde(
            serde_json::json!({"a": [1], "e": []}),
        ));
        let lines = json(
            &value,
            Json {
                html: true,
                is_sorted: true,
                indent: Some(2),
            },
        )
        .unwrap();
        assert_eq!(lines, "{\n  \"a\": [\n    1\n  ],\n  \"e\": []\n}");
    }
}
