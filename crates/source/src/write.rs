//! Writes values as text: on one line or on several, in YAML or JSON.

use crate::diagnostic::drives_terminals;
use serde_json::{Number, Value};
use std::fmt::Write as _;

/// Maximum number of characters of a value on one line; longer values are written on several lines.
const WIDTH: usize = 88;

/// Texts that some readers of YAML read as a boolean or null, in upper or lower case.
const WORDS: [&str; 7] = ["yes", "no", "on", "off", "true", "false", "null"];

/// How a value is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteStyle {
    pub json: bool,
    /// Whether the value is inside of brackets.
    pub flow: bool,
    /// Whether all readers, including those of YAML 1.1, must read the same value. If true, text that any reader would
    /// read as something else is written in quotes, and no list or map is written in brackets.
    pub portable: bool,
}

/// Returns the value as a YAML document from which every reader reads the same value.
#[must_use]
pub fn to_text(value: &Value) -> String {
    let style = WriteStyle {
        portable: true,
        ..WriteStyle::default()
    };
    let mut text = match value {
        Value::Object(members) if !members.is_empty() => lines(value, style, 0),
        Value::Array(items) if !items.is_empty() => lines(value, style, 0),
        other => item_text(other, style, 0),
    };
    text.push('\n');
    text
}

pub fn line(value: &Value, style: WriteStyle) -> String {
    let inner = WriteStyle {
        flow: true,
        ..style
    };
    match value {
        Value::Null => String::from("null"),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) if style.portable => portable_number(value),
        Value::Number(value) => value.to_string(),
        Value::String(text) => scalar(text, style),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| line(item, inner)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => String::from("{}"),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| entry(key, value, inner));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn entry(key: &str, value: &Value, style: WriteStyle) -> String {
    format!("{}: {}", scalar(key, style), line(value, style))
}

/// Returns a text or a key, in quotes if a reader could read it as something else.
pub fn scalar(text: &str, style: WriteStyle) -> String {
    if style.json {
        return double(text);
    }
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if style.portable {
        return portable_scalar(text, word);
    }
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || "_/.$-".contains(c));
    let signs = match style.flow {
        true => " _-./+@%()$=<>'*!:",
        false => " _-./+@%(),$=<>'*![]{}\":",
    };
    let tame = |c: char| c.is_alphanumeric() || signs.contains(c);
    // Some readers read a text without letters as a time or a number, so such a text is written in quotes.
    let letters = text.chars().any(char::is_alphabetic);
    let reads = || serde_yaml::from_str::<Value>(text).is_ok_and(|read| read == *text);
    if begins
        && letters
        && !word
        && text.chars().all(tame)
        && !text.ends_with([' ', ':'])
        && reads()
    {
        return text.to_owned();
    }
    match text.contains(['"', '\\']) && !text.chars().any(|c| c.is_control() || c == '\'') {
        true => format!("'{text}'"),
        false => double(text),
    }
}

/// Returns a number for YAML 1.1, where a number with an exponent needs a point and a sign.
fn portable_number(value: &Number) -> String {
    let text = value.to_string();
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['-', '+']) {
                ""
            } else {
                "+"
            };
            format!("{mantissa}{point}e{sign}{exponent}")
        }
    }
}

fn portable_scalar(text: &str, word: bool) -> String {
    let word = word || matches!(text, "y" | "Y" | "n" | "N");
    let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '/');
    let tame = |c: char| c.is_alphanumeric() || " _-./+@%(),".contains(c);
    if begins && !word && text.chars().all(tame) && !text.ends_with(' ') {
        return text.to_owned();
    }
    let quoted = double(text);
    let mut out = String::with_capacity(quoted.len());
    for char in quoted.chars() {
        match is_odd(char) {
            true => drop(write!(out, "\\u{:04x}", u32::from(char))),
            false => out.push(char),
        }
    }
    out
}

/// Returns true for characters that control terminals, that some readers read as line breaks, or that are byte order
/// marks.
fn is_odd(char: char) -> bool {
    drives_terminals(char)
        || matches!(
            char,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

pub fn double(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns a text as a block, to be written after its key. Returns `None` if the text cannot be written as a block.
pub fn block(text: &str, indent: usize, style: WriteStyle) -> Option<String> {
    let fits = |c: char| match style.portable {
        true => c == '\n' || !is_odd(c),
        false => c == '\n' || c == '\t' || !c.is_control(),
    };
    let body = text.trim_end_matches('\n');
    let ends = text.len() - body.len();
    let is_block = body.contains('\n') || !style.portable && !body.is_empty() && ends > 0;
    if !is_block || body.starts_with([' ', '\n', '\t']) || !text.chars().all(fits) {
        return None;
    }
    let header = match ends {
        0 => "|-",
        1 => "|",
        _ if style.portable => "|+",
        _ => return None,
    };
    let mut out = String::from(header);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    out.extend(std::iter::repeat_n('\n', ends.saturating_sub(1)));
    Some(out)
}

/// Returns true if a value is written on one line.
pub fn is_line(value: &Value, style: WriteStyle) -> bool {
    match value {
        Value::Object(members) if !members.is_empty() => {}
        Value::Array(items) if !items.is_empty() => {}
        Value::String(text) => return style.json || block(text, 0, style).is_none(),
        _ => return true,
    }
    !style.portable && !has_lines(value) && line(value, style).chars().count() <= WIDTH
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(members) => members.values().any(has_lines),
        _ => false,
    }
}

/// Returns a map or a list in several lines. The first line is not indented, because it is appended to existing text.
/// The other lines have this indentation. No line break follows the last line.
pub fn lines(value: &Value, style: WriteStyle, indent: usize) -> String {
    if style.json {
        return json(value, style, indent);
    }
    let mut out = String::new();
    match value {
        Value::Object(members) => {
            for (number, (key, value)) in members.iter().enumerate() {
                if number > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                out.push_str(&scalar(key, style));
                out.push(':');
                out.push_str(&value_after_key(value, style, indent));
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                out.push_str("- ");
                out.push_str(&item_text(item, style, indent));
            }
        }
        other => out.push_str(&line(other, style)),
    }
    out
}

/// Returns the text to write after the colon of a key with this indentation.
pub fn value_after_key(value: &Value, style: WriteStyle, indent: usize) -> String {
    let inner = match value {
        Value::Array(_) if style.portable => indent,
        _ => indent + 2,
    };
    match value {
        Value::String(text) if !style.json => match block(text, inner, style) {
            Some(block) => format!(" {block}"),
            None => format!(" {}", line(value, style)),
        },
        value if style.json || is_line(value, style) => {
            format!(" {}", item_text(value, style, indent))
        }
        value => format!("\n{:inner$}{}", "", lines(value, style, inner)),
    }
}

/// Returns the text to write after a dash with this indentation.
pub fn item_text(value: &Value, style: WriteStyle, indent: usize) -> String {
    match value {
        Value::String(text) if !style.json => {
            block(text, indent + 2, style).unwrap_or_else(|| line(value, style))
        }
        value if is_line(value, style) => line(value, style),
        value if style.json => json(value, style, indent),
        value => lines(value, style, indent + 2),
    }
}

fn json(value: &Value, style: WriteStyle, indent: usize) -> String {
    if is_line(value, style) {
        return line(value, style);
    }
    let inner = indent + 2;
    let (open, close, members): (_, _, Vec<String>) = match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", double(key), json(value, style, inner))
            };
            ('{', '}', members.iter().map(member).collect())
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| json(item, style, inner));
            ('[', ']', items.collect())
        }
        other => return line(other, style),
    };
    let members = members.join(&format!(",\n{:inner$}", ""));
    format!("{open}\n{:inner$}{members}\n{:indent$}{close}", "", "")
}

#[cfg(test)]
mod tests {
    use super::to_text;
    use serde_json::{Value, json};

    #[test]
    fn what_is_written_is_read() {
        let all = json!({
            "yes": ["no", "ON", "~", "", "=", "<<", "012", "0o17", "0x1f", "1:30", "1e3", "1_000"],
            "y": ["2026-11-22", ".inf", "-", "- a", "a: b", "a #b", "a:", ": a", "'a'", "\"a\"", "*a"],
            "1": [1, -1, 1.5, 1e300, 1e-7, u64::MAX, null, true, {}, [], [[1, [2]], {"a": []}]],
            "lines": {"a": "x\ny", "b": "x\n y\n", "c": "x\n\ny\n\n\n", "d": " x\ny", "e": "\nx"},
            "odd": ["\u{7f}\u{9b}\u{85}\u{2028}\u{feff}\t\r\0", "a\u{9b}\nb", "é", "😀", " a", "a "],
            "list": [[{"a": {"b": [{"c": "x\ny"}]}, "d": "x\ny\n"}], "x\ny"],
            "long": "%a, @b `c` !d &e [f] {g} |h >i ?j",
        });
        for value in [all, json!([]), json!("no"), json!(1e300), json!("a\nb")] {
            let text = to_text(&value);
            let read: Value = serde_yaml::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(read, value, "{text}");
        }
    }

    #[test]
    fn what_yaml_1_1_takes_for_something_else_is_in_quotes() {
        for word in [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "TRUE",
            "Null",
            "~",
            "",
            "012",
            "0o17",
            "1:30",
            "190:20:30",
            "1e3",
            "1_000",
            "2026-11-22",
            "2026-11-22T14:00:00.000Z",
            ".inf",
            "=",
            "<<",
            "+1",
            "0b11",
            "-",
            "?",
            "a: b",
            "a #b",
        ] {
            let quoted = format!("{}\n", serde_json::to_string(word).unwrap());
            assert_eq!(to_text(&json!(word)), quoted);
        }
        for word in ["yesterday", "Succeeded", "a b", "/tmp/x.yaml", "count-01M8"] {
            assert_eq!(to_text(&json!(word)), format!("{word}\n"));
        }
        assert_eq!(to_text(&json!({ "no": 1e300 })), "\"no\": 1.0e+300\n");
    }
}
