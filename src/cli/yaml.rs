//! YAML that every reader takes for the same, those of YAML 1.1 too: text that one of them would
//! read as something else is in quotes.

use serde_json::{Number, Value};
use std::fmt::Write as _;
use windlass_engine::drives_terminals;

/// Text that is a boolean or null to some reader, whatever its case.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A document.
pub fn to_text(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, 0);
    out
}

/// A map, a list, or what stands on one line, which begins where the text ends.
fn node(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (number, (name, value)) in members.iter().enumerate() {
                if number > 0 {
                    out.extend(std::iter::repeat_n(' ', indent));
                }
                out.push_str(&text(name));
                out.push(':');
                let inner = match value {
                    Value::Object(inner) if !inner.is_empty() => indent + 2,
                    Value::Array(inner) if !inner.is_empty() => indent,
                    _ => {
                        out.push(' ');
                        node(out, value, indent + 2);
                        continue;
                    }
                };
                let _ = write!(out, "\n{:inner$}", "");
                node(out, value, inner);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.extend(std::iter::repeat_n(' ', indent));
                }
                out.push_str("- ");
                node(out, item, indent + 2);
            }
        }
        scalar => {
            let _ = writeln!(out, "{}", in_line(scalar, indent));
        }
    }
}

/// What stands behind a key or a dash; lines of a longer text are indented so far.
fn in_line(value: &Value, indent: usize) -> String {
    match value {
        Value::Null => String::from("null"),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(value) if is_block(value) => block(value, indent),
        Value::String(value) => text(value),
        Value::Array(_) => String::from("[]"),
        Value::Object(_) => String::from("{}"),
    }
}

/// A number of YAML 1.1 with an exponent has a point and a sign.
fn number(value: &Number) -> String {
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

/// Text on one line, in quotes where anybody could take it for something else.
fn text(value: &str) -> String {
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(value));
    let begins = value.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '/');
    let tame = |c: char| c.is_alphanumeric() || " _-./+@%(),".contains(c);
    if begins && !word && value.chars().all(tame) && !value.ends_with(' ') {
        return value.to_owned();
    }
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let mut out = String::with_capacity(quoted.len());
    for char in quoted.chars() {
        if drives_terminals(char) || is_odd(char) {
            let _ = write!(out, "\\u{:04x}", u32::from(char));
        } else {
            out.push(char);
        }
    }
    out
}

/// Whether a text has lines that can stand as they are.
fn is_block(value: &str) -> bool {
    let tame = |c: char| c == '\n' || !(drives_terminals(c) || is_odd(c));
    value.trim_end_matches('\n').contains('\n')
        && !value.starts_with([' ', '\n'])
        && value.chars().all(tame)
}

/// Line breaks to some readers, and marks of order.
fn is_odd(char: char) -> bool {
    matches!(
        char,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

fn block(value: &str, indent: usize) -> String {
    let body = value.trim_end_matches('\n');
    let ends = value.len() - body.len();
    let indent = indent.max(2);
    let mut out = String::from(match ends {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
    }
    out.extend(std::iter::repeat_n('\n', ends.saturating_sub(1)));
    out
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
