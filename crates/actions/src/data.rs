//! `json.parse`, `data.merge` and `notify`. As in The Edge Agent, an error in the data is not a fault but a value with
//! `success: false`.

use super::inputs::{Inputs, invalid};
use super::json;
use super::script;
use super::{Attempt, Executor};
use std::borrow::Cow;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request};

/// Maps `{text, strict}` to `{data, success}`. A value that is not text is returned as data.
pub(super) struct JsonParse;

impl Executor for JsonParse {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let inputs = Inputs::of(request)?;
            let Some(text) = inputs.get("text") else {
                if request.inputs.get("text").is_some() {
                    return Ok(Value::object(failure("Input text is None", "parse")));
                }
                return Err(invalid("`text` is missing"));
            };
            let Value::String(text) = text else {
                return Ok(success("data", text.clone()));
            };
            let is_strict = inputs.get("strict") != Some(&Value::Bool(false));
            let tidy = match is_strict {
                true => Cow::Borrowed(text.as_str()),
                false => Cow::Owned(tidied(text)),
            };
            json::check_memory(tidy.as_bytes(), "`text`")?;
            let parsed = Value::from_json(&tidy);
            Ok(match parsed {
                Ok(data) => success("data", data),
                Err(error) => match inputs.get("default") {
                    Some(default) if !is_strict => success("data", default.clone()),
                    _ => not_json(&error),
                },
            })
        })
    }
}

/// Maps `{channel, message}` to `{sent: true}`. It writes a line to the log, where The Edge Agent prints a line.
pub(super) struct Notify;

impl Executor for Notify {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let inputs = Inputs::of(request)?;
            if inputs.get("channel").is_none() {
                return Err(invalid("`channel` is missing"));
            }
            let text = |key: &str| {
                let value = inputs.get(key).unwrap_or(&Value::Null);
                let text = value.as_str().map(str::to_owned);
                text.unwrap_or_else(|| value.to_json())
            };
            let line = format!("[{}] {}", text("channel").to_uppercase(), text("message"));
            script::log_line(&request.action, &line);
            Ok(Value::from_pairs([("sent", Value::Bool(true))]))
        })
    }
}

/// Describes the error in a JSON text, with its position.
fn not_json(error: &serde_json::Error) -> Value {
    let message = error.to_string();
    let (words, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    let mut failed = failure(&format!("JSON parse error: {words}"), "parse");
    let number = |count: usize| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let place = [
        ("line", number(error.line())),
        ("column", number(error.column())),
    ];
    failed.insert("position".into(), Value::from_pairs(place));
    Value::object(failed)
}

/// Removes comments and trailing commas from JSON.
fn tidied(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_text = false;
    while let Some(char) = chars.next() {
        if in_text {
            out.push(char);
            match char {
                '\\' => out.extend(chars.next()),
                '"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                for next in chars.by_ref() {
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
            }
            (']' | '}', _) => {
                let end = out.trim_end().trim_end_matches(',').len();
                out.truncate(end);
                out.push(char);
            }
            (char, _) => {
                in_text = char == '"';
                out.push(char);
            }
        }
    }
    out
}

/// Maps `{sources, strategy}` to `{result, source_count, success}`.
pub(super) struct DataMerge;

impl Executor for DataMerge {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async { merge(Inputs::of(request)?) })
    }
}

fn merge(inputs: Inputs<'_>) -> Result<Value, Fault> {
    let merge_failure = |words: &str| Ok(Value::object(failure(words, "merge")));
    let Some(Value::Array(sources)) = inputs.get("sources") else {
        return merge_failure("sources must be a list of dictionaries");
    };
    let mut result = Object::new();
    for source in sources.iter().filter(|source| **source != Value::Null) {
        let Value::Object(source) = source else {
            return merge_failure("every source must be a dictionary");
        };
        match inputs.text("strategy")?.unwrap_or("deep") {
            "deep" => deep(&mut result, source),
            "shallow" => result.extend(
                source
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            ),
            "replace" => result = source.as_ref().clone(),
            other => return merge_failure(&format!("Unknown merge strategy: {other}")),
        }
    }
    let mut merged = Object::new();
    merged.insert("result".into(), Value::object(result));
    let count = i64::try_from(sources.len()).unwrap_or(i64::MAX);
    merged.insert("source_count".into(), Value::Int(count));
    merged.insert("success".into(), Value::Bool(true));
    Ok(Value::object(merged))
}

/// The recursion is as deep as the values, whose depth is limited.
fn deep(into: &mut Object, from: &Object) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => deep(Arc::make_mut(old), new),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn success(key: &str, value: Value) -> Value {
    Value::from_pairs([(key, value), ("success", Value::Bool(true))])
}

fn failure(error: &str, kind: &str) -> Object {
    let mut failed = Object::new();
    failed.insert("error".into(), Value::text(error));
    failed.insert("success".into(), Value::Bool(false));
    failed.insert("error_type".into(), Value::text(kind));
    failed
}
