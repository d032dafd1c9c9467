//! Builds questions and reads answers in the protocols of the models. Nothing is sent here. An answer that violates its
//! protocol is a fault of kind `ai`, never an empty text.

use super::settings::{Provider, Settings};
use crate::json;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, fault_kind};
use windlass_value::{one_line, shortened};

/// Number of characters of an answer that a message quotes.
const EXCERPT: usize = 200;

/// Why an answer ended, if a content filter removed a part of it.
const FILTERED: &str = "content_filter";

pub(super) fn question(provider: Provider, settings: &Settings) -> Value {
    let mut body = Object::new();
    body.insert("model".into(), Value::text(&settings.model));
    body.insert("messages".into(), Value::array(settings.messages.clone()));
    body.insert("stream".into(), Value::Bool(false));
    match provider {
        Provider::OpenAi | Provider::Azure => {
            if let Some(temperature) = settings.temperature {
                body.insert("temperature".into(), Value::Float(temperature));
            }
            body.extend(settings.extra_parameters.clone());
        }
        Provider::Ollama => {
            let mut options = Object::new();
            if let Some(temperature) = settings.temperature {
                options.insert("temperature".into(), Value::Float(temperature));
            }
            for (key, value) in &settings.extra_parameters {
                match &**key {
                    "max_tokens" | "max_completion_tokens" => {
                        options.insert("num_predict".into(), value.clone());
                    }
                    "response_format" => {
                        body.insert("format".into(), ollama_format(value));
                    }
                    "tools" => {
                        body.insert(key.clone(), value.clone());
                    }
                    _ => {
                        options.insert(key.clone(), value.clone());
                    }
                }
            }
            body.insert("options".into(), Value::object(options));
        }
    }
    Value::object(body)
}

/// Returns the format for Ollama: `json`, or the JSON Schema that OpenAI's form of the format contains.
fn ollama_format(format: &Value) -> Value {
    let schema = format
        .get("json_schema")
        .and_then(|wrapped| wrapped.get("schema"));
    schema.cloned().unwrap_or_else(|| Value::text("json"))
}

/// Returns the output for an answer: `{content, usage, finish_reason}`.
pub(super) fn answer(provider: Provider, body: &Value) -> Result<Value, Fault> {
    // If the answer is text, parse it: some servers declare their JSON as text.
    let parsed = body
        .as_str()
        .map(|text| json::parsed(text, "the model's answer"));
    let parsed = parsed.transpose()?.flatten();
    let body = parsed.as_ref().unwrap_or(body);
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        let words = error
            .get("message")
            .filter(|words| words.as_str().is_some());
        let words = short(&words.unwrap_or(error).to_text());
        return Err(malformed(
            format!("the model's server failed: {words}"),
            body,
        ));
    }
    let (message, usage, ended) = match provider {
        Provider::OpenAi | Provider::Azure => {
            let choices = body.get("choices").and_then(Value::as_array);
            let first = choices.and_then(|choices| choices.first());
            let message = first.and_then(|choice| choice.get("message"));
            let ended = first.and_then(|choice| choice.get("finish_reason"));
            (message, body.get("usage").cloned(), ended)
        }
        Provider::Ollama => (
            body.get("message"),
            Some(ollama_usage(body)),
            body.get("done_reason"),
        ),
    };
    let ended = ended.filter(|ended| ended.as_str().is_some());
    if ended.and_then(Value::as_str) == Some(FILTERED) {
        return Err(malformed(filtered(body), body));
    }
    let message = message
        .ok_or_else(|| malformed(format!("the model gave no answer: {}", excerpt(body)), body))?;
    let usage = usage.filter(|usage| usage.as_object().is_some());
    let usage = usage.unwrap_or_else(|| Value::object(Object::new()));
    if let Some(text) = content(message.get("content")) {
        return Ok(completed(&text, usage, message, ended));
    }
    if message
        .get("tool_calls")
        .is_some_and(|calls| !calls.is_null())
    {
        return Ok(completed("", usage, message, ended));
    }
    let refusal = message.get("refusal").and_then(Value::as_str);
    Err(malformed(
        match refusal {
            Some(words) => format!("the model refused: {}", short(words)),
            None => format!("the model gave no text: {}", excerpt(body)),
        },
        body,
    ))
}

/// Returns the message for an answer that a content filter removed, with the results of the filter and the remaining text.
fn filtered(body: &Value) -> String {
    let choices = body.get("choices").and_then(Value::as_array);
    let choice = choices.and_then(|choices| choices.first());
    let results = choice.and_then(|choice| choice.get("content_filter_results"));
    let details = excerpt(results.unwrap_or(body));
    let text = choice.and_then(|choice| content(choice.get("message")?.get("content")));
    let text = text.filter(|text| !text.trim().is_empty());
    let rest = text.map_or_else(String::new, |text| format!("; its text: {}", short(&text)));
    format!("the answer of the model was removed by a content filter: {details}{rest}")
}

fn completed(content: &str, usage: Value, message: &Value, ended: Option<&Value>) -> Value {
    let calls = message.get("tool_calls");
    let calls = calls.filter(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty()));
    let members = [
        ("content", Some(Value::text(content))),
        ("usage", Some(usage)),
        ("finish_reason", ended.cloned()),
        ("tool_calls", calls.cloned()),
    ];
    let given = members
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Value::from_pairs(given)
}

/// Returns the content of a message: its text, or the joined texts of its parts.
fn content(content: Option<&Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text.as_str().to_owned()),
        Value::Array(parts) => {
            let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
            let parts: Option<Vec<String>> = parts.iter().map(text).collect();
            Some(parts?.concat())
        }
        _ => None,
    }
}

fn ollama_usage(body: &Value) -> Value {
    let count = |key: &str| body.get(key).and_then(Value::as_int).unwrap_or(0);
    let (prompt, completion) = (count("prompt_eval_count"), count("eval_count"));
    Value::from_pairs([
        ("prompt_tokens", Value::Int(prompt)),
        ("completion_tokens", Value::Int(completion)),
        (
            "total_tokens",
            Value::Int(prompt.saturating_add(completion)),
        ),
    ])
}

fn malformed(message: String, body: &Value) -> Fault {
    Fault::new(fault_kind::AI, message)
        .output(Value::from_pairs([("body", body.clone())]))
        .transient()
}

fn excerpt(body: &Value) -> String {
    match body {
        Value::Null => String::from("nothing at all"),
        Value::String(text) if text.trim().is_empty() => String::from("nothing at all"),
        other => short(&other.to_text()),
    }
}

fn short(words: &str) -> String {
    shortened(&one_line(words), EXCERPT)
}

/// Returns the messages as one text, for a command.
pub(super) fn as_text(messages: &[Value]) -> String {
    let texts = messages.iter().map(|message| {
        let text = content(message.get("content")).unwrap_or_default();
        match message.get("role").and_then(Value::as_str) {
            Some("system") => format!("System: {text}"),
            Some("assistant") => format!("Assistant: {text}"),
            _ => text,
        }
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
