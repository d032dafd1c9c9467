//! Expectations: conditions for an action's output that are checked after the action has succeeded.

use super::bug::StepResult;
use super::state::CursorId;
use super::transition::CallHandler;
use crate::program::ActionId;
use windlass_expression::Value;
use windlass_model::model::{Expect, Fault, Status, fault_kind};
use windlass_value::{one_line, over_memory_json, requested_wait, shortened};

/// Maximum length of the output that a fault quotes.
const QUOTED: usize = 200;

impl CallHandler<'_, '_> {
    /// Checks the output of an action that has just succeeded. If it does not meet the expectation, the action fails,
    /// and its record retains the output.
    pub fn expect(&mut self, cursor: CursorId, action: ActionId, expect: &Expect) -> StepResult {
        let read = self.read();
        let Some(record) = read.run.records_of(cursor)?.get(&action) else {
            return Ok(());
        };
        let (output, started_at) = (record.output.clone(), record.started_at);
        let value = read.output_value(cursor, &output).revealed();
        let key = match expect {
            Expect::JsonContent => "content",
            Expect::Json | Expect::That(_) | Expect::NotFailed(_) => "body",
        };
        let body = value.get(key).unwrap_or(&value);
        let unmet = match expect {
            Expect::Json => match body {
                // An answer without content is accepted: it means that there is no result yet, or no new one.
                Value::Null if is_without_content(&value) => None,
                _ if is_pending(&value) => None,
                Value::Null | Value::String(_) => Some(not_json_message(&value)),
                _ => None,
            },
            Expect::JsonContent => {
                (!is_json_text(body)).then(|| String::from("answered no JSON object or list"))
            }
            Expect::That(condition) => match read.holds(cursor, condition, false)? {
                true => None,
                false => Some(format!(
                    "gave something else than {} wants",
                    condition.text()
                )),
            },
            Expect::NotFailed(condition) => match read.holds(cursor, condition, false)? {
                true => Some(condition.text()),
                false => None,
            },
        };
        let Some(unmet) = unmet else {
            return Ok(());
        };
        let hidden = read.secured_parts(Some(action)).outputs
            || read.output_value(cursor, &output).has_secure();
        let fault = match expect {
            // The fault is not transient: the operation has ended with a failure, so the next answer would be the same.
            Expect::NotFailed(_) => {
                let of = match hidden {
                    true => String::from("its answer"),
                    false => quoted(body),
                };
                let message = format!("the operation failed: `{unmet}` is true of {of}");
                Fault::new(fault_kind::OPERATION, message)
            }
            Expect::Json | Expect::JsonContent | Expect::That(_) => {
                let gave = match hidden {
                    true => String::new(),
                    false => format!(": {}", quoted(body)),
                };
                let name = read.program.action(action).map(|action| &*action.name);
                let message = format!("`{}` {unmet}{gave}", name.unwrap_or_default());
                let header = |name: &str| value.get("headers")?.get(name)?.as_str();
                let wait = requested_wait(header, read.now);
                Fault {
                    retry_after_ms: wait.and_then(|wait| u64::try_from(wait.as_millis()).ok()),
                    ..Fault::new(fault_kind::EXPECT, message).transient()
                }
            }
        };
        let error = Some(fault.clone());
        let mut records = self.records();
        records.record(
            cursor,
            Some(action),
            Status::Failed,
            output,
            error,
            started_at,
        )?;
        Err(fault.into())
    }
}

/// Returns true for the text of a JSON object or list.
fn is_json_text(content: &Value) -> bool {
    let text = content.as_str().unwrap_or_default();
    over_memory_json(text.as_bytes()).is_none()
        && matches!(
            Value::from_json(text),
            Ok(Value::Object(_) | Value::Array(_))
        )
}

/// Returns true for the statuses 204, 205 and 304 (RFC 9110).
fn is_without_content(output: &Value) -> bool {
    let status = output.get("statusCode").and_then(Value::as_int);
    status.is_some_and(|status| [204, 205, 304].contains(&status))
}

/// Returns true for an answer with status 202 whose operation still runs. The content will follow when the operation
/// ends.
fn is_pending(output: &Value) -> bool {
    let status = output.get("statusCode").and_then(Value::as_int);
    let operation = output.get("operation").and_then(Value::as_object);
    status == Some(202) && operation.is_some()
}

fn not_json_message(output: &Value) -> String {
    let headers = output.get("headers");
    let content_type = headers.and_then(|headers| headers.get("content-type")?.as_str());
    let is_empty = output.get("body").is_some_and(Value::is_null);
    match content_type {
        Some(content_type) if is_empty => format!("returned {content_type}, and its body is empty"),
        Some(content_type) => format!("returned {content_type}, and its body is not valid JSON"),
        None => String::from("returned no JSON"),
    }
}

/// Returns the beginning of a value, on one line.
pub(super) fn quoted(value: &Value) -> String {
    shortened(&one_line(&value.to_text()), QUOTED)
}
