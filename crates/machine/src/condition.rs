//! The condition of a loop, and the faults of a loop that ends before its condition is met.

use super::bug::MachineResult;
use super::evaluate::expression_fault;
use super::expect::quoted;
use super::reader::{LoopRef, Reader, describe_attempt};
use super::record::LoopEnd;
use std::time::Duration;
use windlass_expression::{Missing, Value};
use windlass_model::model::{Fault, OnMissing, fault_kind};
use windlass_value::members;
use windlass_value::time::human_duration;

/// The result of a loop's condition between two iterations.
pub(super) enum ConditionResult {
    Stop,
    Continue,
    /// The condition reads a value that does not exist yet.
    Missing(Box<Missing>),
}

pub(super) fn evaluate_condition(
    read: Reader<'_, '_>,
    this: LoopRef<'_>,
) -> Result<ConditionResult, Fault> {
    let view = read.condition_view(this.cursor);
    match (view.holds(&this.spec.stop_when), this.spec.on_missing) {
        (Ok(true), _) => Ok(ConditionResult::Stop),
        (Ok(false), _) => Ok(ConditionResult::Continue),
        (Err(error), OnMissing::Fail) => Err(expression_fault(&error)),
        (Err(mut error), OnMissing::Wait) => match error.missing.take() {
            Some(missing) => Ok(ConditionResult::Missing(missing)),
            None => Err(expression_fault(&error)),
        },
    }
}

pub(super) fn limit_fault(
    read: Reader<'_, '_>,
    this: LoopRef<'_>,
    end: LoopEnd,
) -> MachineResult<Fault> {
    let state = read.loop_state(this)?;
    let missing = missing_at_limit(read, this)?;
    let handled = fault_inside(read, this)?;
    let handled = handled.map(|fault| format!("; its last iteration had a failure{fault}"));
    let handled = handled.unwrap_or_default();
    let answer = match handled.is_empty() {
        true => last_answer(read, this)?,
        false => String::new(),
    };
    let rest = format!("{answer}{handled}");
    let (kind, how) = match end {
        LoopEnd::Timeout => {
            let after = human_duration(Duration::from_millis(state.timeout_ms.unwrap_or(0)));
            let attempt = read.failed_attempt(this.cursor, this.frame())?;
            // The last iteration may have failed with the same fault.
            let is_same =
                |fault: &Fault| !fault.message.is_empty() && handled.ends_with(&*fault.message);
            let handled = if attempt.is_some_and(is_same) {
                ""
            } else {
                &*handled
            };
            let because = describe_attempt(attempt);
            let how = format!(
                "was not done within its timeout of {after}{missing}{answer}{because}{handled}"
            );
            (fault_kind::TIMEOUT, how)
        }
        LoopEnd::Unchanged => {
            let times = this.spec.unchanged.as_ref().map_or(0, |limit| limit.times);
            (
                fault_kind::LIMIT,
                format!("gave the same {times} times in a row"),
            )
        }
        LoopEnd::Tokens | LoopEnd::Cost => {
            let mut budgets = state.budgets();
            let used = budgets.find(|budget| budget.kind.as_str() == end.as_str());
            let used = used.map(|used| used.text()).unwrap_or_default();
            let how = format!("was not done within its budget: {used}{missing}{rest}");
            (fault_kind::LIMIT, how)
        }
        _ => {
            let count = state.max_iterations;
            let how = format!("was not done after its {count} iterations{missing}{rest}");
            (fault_kind::LIMIT, how)
        }
    };
    Ok(Fault::new(kind, format!("loop `{}` {how}", this.scope.name)).transient())
}

/// Describes the value for which the condition still waited when the loop reached a limit. Returns an empty text if no
/// value is missing.
fn missing_at_limit(read: Reader<'_, '_>, this: LoopRef<'_>) -> MachineResult<String> {
    let state = read.loop_state(this)?;
    // During an iteration, some records of the last iteration are already removed, so the condition cannot be evaluated
    // then.
    let between = state.iteration_started_at.is_none();
    let waits = between && this.spec.on_missing == OnMissing::Wait;
    let missing = match waits.then(|| evaluate_condition(read, this)) {
        Some(Ok(ConditionResult::Missing(missing))) => missing,
        _ => return Ok(String::new()),
    };
    let path = &missing.path;
    let members = missing.object.map(|(object, names)| {
        let members = members(names.iter().map(String::as_str));
        format!("; `{object}`: {members}")
    });
    let members = members.unwrap_or_default();
    Ok(match state.last_condition {
        None => format!(": `{path}` never appeared{members}"),
        Some(_) => format!(": `{path}` is missing from the last result{members}"),
    })
}

/// Describes the last fault in the iteration that has just ended.
pub(super) fn fault_inside(
    read: Reader<'_, '_>,
    this: LoopRef<'_>,
) -> MachineResult<Option<String>> {
    let records = read.run.records_of(this.cursor)?;
    let mut faults = this.scope.children.iter().filter_map(|id| {
        let fault = records.get(id)?.error.as_ref()?;
        let name = &read.program.action(*id)?.name;
        Some(format!(": `{name}`: {}", fault.message))
    });
    Ok(faults.next_back())
}

/// Describes the last answer in a loop that waits for a value in an answer. Returns an empty text for other loops.
pub(super) fn last_answer(read: Reader<'_, '_>, this: LoopRef<'_>) -> MachineResult<String> {
    if this.spec.on_missing != OnMissing::Wait {
        return Ok(String::new());
    }
    let state = read.loop_state(this)?;
    // During an iteration, the last answer is that of the iteration before.
    let records = match state.iteration_started_at {
        None => read.run.records_of(this.cursor)?,
        Some(_) => &state.last,
    };
    let answers = this.scope.children.iter().rev().filter_map(|action| {
        let output = &records.get(action)?.output;
        let value = read.output_value(this.cursor, output);
        let hides = read.secured_parts(Some(*action)).outputs || value.has_secure();
        answer_text(&value.revealed(), hides)
    });
    Ok(answers.take(1).collect())
}

/// Returns the status and the beginning of an answer, or the exit code and the beginning of a command's output.
fn answer_text(output: &Value, hides: bool) -> Option<String> {
    let number = |name: &str| output.get(name).and_then(Value::as_int);
    let (what, body) = match (number("statusCode"), number("exitCode")) {
        (Some(status), _) => (format!("the last answer was {status}"), "body"),
        (None, Some(code)) => (format!("the last exit code was {code}"), "stdout"),
        (None, None) => return None,
    };
    let body = output.get(body).filter(|body| !hides && !body.is_null());
    let body = body.map(quoted).filter(|body| !body.is_empty());
    let body = body.map_or(String::new(), |body| format!(": {body}"));
    Some(format!("; {what}{body}"))
}
