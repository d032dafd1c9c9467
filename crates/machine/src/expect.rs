//! What an action's output must be, beyond that the action succeeded.

use super::advance::Stepper;
use super::bug::StepResult;
use super::state::CursorId;
use crate::program::ActionId;
use windlass_expression::Value;
use windlass_model::model::{Expect, Fault, Status, fault_kind};

/// So much of an output a fault quotes.
const QUOTED: usize = 200;

impl Stepper<'_> {
    /// Fails an action that has just succeeded, unless its output is what it must be. Its record
    /// keeps the output.
    pub fn expect(&mut self, cursor: CursorId, action: ActionId, expect: &Expect) -> StepResult {
        let Some(record) = self.run.records_of(cursor)?.get(&action) else {
            return Ok(());
        };
        let (output, started_at) = (record.output.clone(), record.started_at);
        let value = self.read(cursor, &output).revealed();
        let body = value.get("body").unwrap_or(&value);
        let unmet = match expect {
            Expect::Json => match body {
                Value::Null | Value::String(_) => Some(not_json_message(&value)),
                _ => None,
            },
            Expect::That(condition) => match self.holds(cursor, condition, false)? {
                true => None,
                false => Some(format!(
                    "gave something else than {} wants",
                    condition.text()
                )),
            },
        };
        let Some(unmet) = unmet else {
            return Ok(());
        };
        let hidden =
            self.secured_parts(Some(action)).outputs || self.read(cursor, &output).has_secure();
        let gave = match hidden {
            true => String::new(),
            false => format!(": {}", quoted(body)),
        };
        let name = self.program.action(action).map(|action| &*action.name);
        let message = format!("`{}` {unmet}{gave}", name.unwrap_or_default());
        let fault = Fault::new(fault_kind::EXPECT, message).transient();
        let error = Some(fault.clone());
        self.record(cursor, action, Status::Failed, output, error, started_at)?;
        Err(fault.into())
    }
}

fn not_json_message(output: &Value) -> String {
    let headers = output.get("headers");
    let said = headers.and_then(|headers| headers.get("content-type")?.as_str());
    match said {
        Some(said) => format!("said {said}, and its body is not valid JSON"),
        None => String::from("gave no JSON"),
    }
}

/// The beginning of a value, on one line.
fn quoted(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.as_str().to_owned(),
        other => other.to_json(),
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}
