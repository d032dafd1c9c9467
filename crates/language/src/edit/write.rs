//! Values as text: on one line, or in lines of their own, in YAML or JSON.

use serde_json::Value;
use std::fmt::Write as _;

/// A value that is longer than this is written on several lines.
const WIDTH: usize = 88;

/// Text that is a boolean or null to some reader of YAML, whatever its case.
const WORDS: [&str; 9] = ["yes", "no", "on", "off", "true", "false", "null", "~", ""];

/// How a value is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteStyle {
    pub json: bool,
    /// Inside of brackets.
    pub flow: bool,
}

pub(super) fn line(value: &Value, manner: WriteStyle) -> String {
    let inner = WriteStyle {
        flow: true,
        ..manner
    };
    match value {
        Value::Null => String::from("null"),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => scalar(text, manner),
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

fn entry(key: &str, value: &Value, manner: WriteStyle) -> String {
    format!("{}: {}", scalar(key, manner), line(value, manner))
}

/// A text or a key, in quotes where anybody could take it for something else.
pub(super) fn scalar(text: &str, manner: WriteStyle) -> String {
    if manner.json {
        return double(text);
    }
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || "_/.$-".contains(c));
    let signs = match manner.flow {
        true => " _-./+@%()$=<>'*!:",
        false => " _-./+@%(),$=<>'*![]{}\":",
    };
    let tame = |c: char| c.is_alphanumeric() || signs.contains(c);
    // What has no letters may be a time or a number to some readers.
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

pub(super) fn double(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// A text in the lines of a block, behind its key.
pub(super) fn block(text: &str, indent: usize) -> Option<String> {
    let fits = |c: char| c == '\n' || c == '\t' || !c.is_control();
    let body = text.trim_end_matches('\n');
    let odd = body.starts_with([' ', '\n', '\t']) || !text.chars().all(fits);
    if odd || !body.contains('\n') && text.len() == body.len() || body.is_empty() {
        return None;
    }
    let header = match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => return None,
    };
    let mut out = String::from(header);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    Some(out)
}

/// Whether a value is written on one line.
pub(super) fn is_line(value: &Value, manner: WriteStyle) -> bool {
    match value {
        Value::Object(members) if !members.is_empty() => {}
        Value::Array(items) if !items.is_empty() => {}
        Value::String(text) => return manner.json || block(text, 0).is_none(),
        _ => return true,
    }
    !has_lines(value) && line(value, manner).chars().count() <= WIDTH
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(members) => members.values().any(has_lines),
        _ => false,
    }
}

/// A map or a list in lines of its own. The first one begins where the text ends, the others have this
/// indentation. No line break is at its end.
pub(super) fn lines(value: &Value, manner: WriteStyle, indent: usize) -> String {
    if manner.json {
        return json(value, manner, indent);
    }
    let mut out = String::new();
    match value {
        Value::Object(members) => {
            for (number, (key, value)) in members.iter().enumerate() {
                if number > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                out.push_str(&scalar(key, manner));
                out.push(':');
                out.push_str(&value_after_key(value, manner, indent));
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                out.push_str("- ");
                out.push_str(&item_text(item, manner, indent));
            }
        }
        other => out.push_str(&line(other, manner)),
    }
    out
}

/// The text to write after a key of this indentation and its colon.
pub(super) fn value_after_key(value: &Value, manner: WriteStyle, indent: usize) -> String {
    let inner = indent + 2;
    match value {
        Value::String(text) if !manner.json => match block(text, inner) {
            Some(block) => format!(" {block}"),
            None => format!(" {}", line(value, manner)),
        },
        value if manner.json || is_line(value, manner) => {
            format!(" {}", item_text(value, manner, indent))
        }
        value => format!("\n{:inner$}{}", "", lines(value, manner, inner)),
    }
}

/// The text to write after a dash of this indentation.
pub(super) fn item_text(value: &Value, manner: WriteStyle, indent: usize) -> String {
    match value {
        Value::String(text) if !manner.json => {
            block(text, indent + 2).unwrap_or_else(|| line(value, manner))
        }
        value if is_line(value, manner) => line(value, manner),
        value if manner.json => json(value, manner, indent),
        value => lines(value, manner, indent + 2),
    }
}

fn json(value: &Value, manner: WriteStyle, indent: usize) -> String {
    if is_line(value, manner) {
        return line(value, manner);
    }
    let inner = indent + 2;
    let (open, close, members): (_, _, Vec<String>) = match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", double(key), json(value, manner, inner))
            };
            ('{', '}', members.iter().map(member).collect())
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| json(item, manner, inner));
            ('[', ']', items.collect())
        }
        other => return line(other, manner),
    };
    let members = members.join(&format!(",\n{:inner$}", ""));
    format!("{open}\n{:inner$}{members}\n{:indent$}{close}", "", "")
}
