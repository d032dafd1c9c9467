//! Runs as tasks of the Model Context Protocol (`io.modelcontextprotocol/tasks`, SEP-2663).
//! A task has the id of its run. So it continues even if the client, the model or this process ends.

use crate::cli::status::waiting_line;
use rmcp::model::{
    CallToolResult, ContentBlock, DetailedTask, ElicitRequest, ElicitRequestParams,
    ElicitationSchema, InputRequest, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_engine::report::{
    CurrentActivity, FieldKind, FormField, PauseReport, QuestionReport, StatusReport,
};
use windlass_engine::{CHOICE, RunStatus, TURN_SIGNAL};
use windlass_value::first_bytes;

/// Maximum size of a result in bytes. It is small, because a model has to read all of it.
const MAX_RESULT: usize = 8 * 1024;

/// The minimum time between two requests of a client for a task.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum time between two requests of a client for a task.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// Returns a run as a task.
pub fn task(report: &StatusReport) -> Task {
    let interval = report
        .next_due_at
        .map_or(MIN_INTERVAL, |due| due.since(report.at));
    let interval = interval.clamp(MIN_INTERVAL, MAX_INTERVAL);
    let created = report.started_at.to_utc().to_rfc3339();
    let updated = report.updated_at.to_utc().to_rfc3339();
    Task::new(&report.run, status(report), created, updated)
        .with_status_message(message(report))
        .with_poll_interval_ms(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX))
}

/// Returns a run as a task, together with its result or its open questions.
pub fn detailed(report: &StatusReport) -> DetailedTask {
    let payload = match status(report) {
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        TaskStatus::Completed => TaskPayload::Completed {
            result: result(report),
        },
        TaskStatus::InputRequired => {
            let requests = questions(report).map(|(key, doing)| (key, request(doing)));
            TaskPayload::InputRequired {
                input_requests: requests.chain(limit_request(report)).collect(),
            }
        }
        _ => TaskPayload::Working,
    };
    DetailedTask::new(task(report), payload)
}

fn status(report: &StatusReport) -> TaskStatus {
    match report.status {
        RunStatus::Cancelled => TaskStatus::Cancelled,
        status if status.is_final() => TaskStatus::Completed,
        _ if questions(report).next().is_some() => TaskStatus::InputRequired,
        _ if limit_pause(report).is_some() => TaskStatus::InputRequired,
        _ => TaskStatus::Working,
    }
}

/// Returns one sentence about what the run is doing, or how it ended.
pub fn message(report: &StatusReport) -> String {
    let outcome = report.outcome.as_ref();
    let error = outcome.and_then(|outcome| outcome.error.as_ref());
    match (error, report.status.is_final()) {
        (Some(error), _) => format!("{}: {}", report.status.as_str(), error.message),
        (None, true) => report.status.as_str().to_owned(),
        (None, false) if report.pause.is_some() => format!("{}  paused", waiting_line(report, "")),
        (None, false) => waiting_line(report, ""),
    }
}

/// Returns the status of a run and its result, as JSON.
fn outcome(report: &StatusReport) -> Json {
    let mut members = Map::from_iter([
        (String::from("run"), json!(report.run)),
        (String::from("status"), json!(report.status.as_str())),
    ]);
    match &report.outcome {
        None => {
            members.insert(String::from("doing"), json!(message(report)));
        }
        Some(outcome) => {
            if let Some(error) = &outcome.error {
                members.insert(String::from("error"), json!(error.message));
            }
            if !outcome.output.is_null() {
                members.insert(String::from("output"), json!(outcome.output));
            }
            let reached = outcome.limits.iter().map(|limit| json!(limit));
            let reached: Vec<Json> = reached.collect();
            if !reached.is_empty() {
                members.insert(String::from("limits"), Json::Array(reached));
            }
        }
    }
    Json::Object(members)
}

/// Returns the status and the result of a run as the result of a tool. It is cut to [`MAX_RESULT`] bytes.
pub fn tool_result(report: &StatusReport) -> CallToolResult {
    let text = outcome(report).to_string();
    let text = match text.len() > MAX_RESULT {
        false => text,
        true => format!(
            "{}… cut: {} bytes in all; get_run returns more",
            first_bytes(&text, MAX_RESULT),
            text.len()
        ),
    };
    let content = vec![ContentBlock::text(text)];
    match report.status.is_final() && report.status != RunStatus::Succeeded {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    }
}

/// Returns the result of a tool ([`tool_result`]) in the JSON of the protocol.
pub fn result(report: &StatusReport) -> JsonObject {
    match serde_json::to_value(tool_result(report)) {
        Ok(Json::Object(result)) => result,
        Ok(_) | Err(_) => JsonObject::new(),
    }
}

/// Returns the waits of a run that a person or an agent can end, each with its key.
fn questions(report: &StatusReport) -> impl Iterator<Item = (String, &CurrentActivity)> {
    report.doing.iter().filter_map(|doing| {
        let signal = doing
            .signal
            .as_deref()
            .filter(|signal| *signal != TURN_SIGNAL)?;
        // The key contains the start of the wait, so that several branches that wait for the same signal have
        // different keys.
        let since = doing.since.map_or(0, |since| since.0);
        let received = doing.received.unwrap_or(0);
        Some((format!("{signal}@{since}.{received}"), doing))
    })
}

/// Returns the pause of a run whose loop reached a limit, with the key of the pause.
/// A person or an agent decides whether the run continues.
fn limit_pause(report: &StatusReport) -> Option<(String, &PauseReport)> {
    let paused = report.pause.as_ref();
    let paused = paused.filter(|paused| paused.pause.limit.is_some())?;
    Some((format!("paused@{}", paused.since.0), &paused.pause))
}

/// Returns this pause as a question ([`limit_pause`]), with its key.
fn limit_request(report: &StatusReport) -> Option<(String, InputRequest)> {
    let (key, pause) = limit_pause(report)?;
    let message = format!("The run is paused: {}. Continue?", pause.text());
    let choice = json!({ "type": "string", "enum": [CONTINUE, CANCEL] });
    let properties = Map::from_iter([(String::from(CHOICE), choice)]);
    Some((key, form(message, &properties, &[CHOICE])))
}

/// The choice with which a paused run continues.
const CONTINUE: &str = "continue";
/// The choice that cancels a paused run.
const CANCEL: &str = "cancel";

/// The answer to one of the questions of a task.
pub enum InputAnswer {
    Signal {
        name: String,
        payload: Json,
        /// The member `received` of the wait that this signal answers.
        received: Option<u64>,
    },
    Continue,
    Cancel,
}

/// Reads the answer to the question with this key. Returns `None` if the question is not open.
/// The forms of the protocol have a text field where a question demands other JSON.
///
/// # Errors
/// The first field that is invalid.
pub fn answer(
    report: &StatusReport,
    key: &str,
    content: &Json,
) -> Result<Option<InputAnswer>, String> {
    if limit_pause(report).is_some_and(|(known, _)| known == key) {
        return match content.get(CHOICE).and_then(Json::as_str) {
            Some(CONTINUE) => Ok(Some(InputAnswer::Continue)),
            Some(CANCEL) => Ok(Some(InputAnswer::Cancel)),
            _ => Err(format!("`{CHOICE}` has to be {CONTINUE} or {CANCEL}")),
        };
    }
    let Some((_, doing)) = questions(report).find(|(known, _)| known == key) else {
        return Ok(None);
    };
    let with = |payload: Json| InputAnswer::Signal {
        name: doing.signal.clone().unwrap_or_default(),
        payload,
        received: doing.received,
    };
    let question = doing.question.as_ref();
    let question = question.filter(|question| !question.fields.is_empty());
    let (Some(question), Json::Object(members)) = (question, content) else {
        return Ok(Some(with(content.clone())));
    };
    let text_of = |name: &str| {
        let value = members.get(name).filter(|value| !value.is_null())?;
        let json = || value.to_string();
        Some(value.as_str().map_or_else(json, str::to_owned))
    };
    let choice = text_of(CHOICE);
    let answer = question.answer(choice.as_deref(), |field| text_of(&field.name))?;
    let answer = serde_json::from_str(&answer.to_json()).map_err(|error| error.to_string())?;
    Ok(Some(with(answer)))
}

fn request(doing: &CurrentActivity) -> InputRequest {
    let signal = doing.signal.as_deref().unwrap_or_default();
    let empty = QuestionReport::default();
    let question = doing.question.as_ref().unwrap_or(&empty);
    let message = question.title.clone();
    let mut properties = Map::new();
    let mut required = Vec::new();
    if !question.choices.is_empty() {
        let choice = json!({ "type": "string", "enum": question.choices });
        properties.insert(String::from(CHOICE), choice);
        required.push(CHOICE);
    }
    for field in &question.fields {
        properties.insert(field.name.clone(), property(field));
        if field.required {
            required.push(&field.name);
        }
    }
    let message = message.unwrap_or_else(|| format!("The run waits for the signal `{signal}`."));
    form(message, &properties, &required)
}

fn form(message: String, properties: &Map<String, Json>, required: &[&str]) -> InputRequest {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: serde_json::from_value(schema)
            .unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new())),
    };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

/// Returns the JSON Schema of a field in a form.
/// The forms of the protocol have only simple fields, so other JSON is entered as text.
fn property(field: &FormField) -> Json {
    let mut property = Map::from_iter([(String::from("title"), json!(field.label))]);
    let kind = match field.kind {
        FieldKind::Boolean => "boolean",
        FieldKind::Integer => "integer",
        FieldKind::Number => "number",
        FieldKind::Text | FieldKind::Json | FieldKind::Options => "string",
    };
    property.insert(String::from("type"), json!(kind));
    let texts = field
        .options
        .iter()
        .map(windlass_engine::report::field_text);
    let texts: Vec<String> = texts.collect();
    if !texts.is_empty() {
        property.insert(String::from("enum"), json!(texts));
    }
    Json::Object(property)
}
