//! Evaluates expressions for the machine: values, conditions, durations, instants. An error is a fault of the run.

use super::bug::MachineResult;
use super::env::{Secrets, View};
use super::reader::Reader;
use super::state::{CursorId, RunError};
use crate::program::ActionId;
use std::cell::RefCell;
use std::time::Duration;
use windlass_expression::{
    Budget, Condition, EvalError, MAX_COMPUTED_DEPTH, Object, SECURE_MASK, SecretMark, Secure,
    Template, Value, replace_secret_marks,
};
use windlass_model::model::{Fault, Name, fault_kind};
use windlass_value::time::{DurationError, parse_duration};

/// Maximum size in bytes of an evaluated value. The engine's default limit for the state of a run is the same.
const MAX_COMPUTED_BYTES: usize = 64 << 20;

/// Maximum size in bytes of a run's result while it is evaluated. After that, `ending` checks it with its own, lower
/// limit.
const MAX_RESULT_BYTES: usize = 1 << 30;

/// Bytes that a value needs in addition to its text.
const VALUE_OVERHEAD_BYTES: usize = 16;

impl<'r, 'a> Reader<'r, 'a> {
    /// Returns a view of the run from the position of a cursor: the values that an expression can read there.
    pub fn view(self, cursor: CursorId) -> View<'r> {
        View {
            now: self.now,
            random: Some(self.random),
            ..View::of(self.program, self.run, cursor, self.budget)
        }
    }

    /// Returns the view for the condition of a loop. It differs from `view` in one rule: an action that has not run
    /// reads as null.
    pub fn condition_view(self, cursor: CursorId) -> View<'r> {
        View {
            missing_as_null: true,
            ..self.view(cursor)
        }
    }

    /// Evaluates the inputs of an action.
    /// If the inputs contain secrets, they are evaluated twice: first with a mark in place of each secret, then with
    /// empty text in its place. When the marks are removed from the first result, both results must be equal. They
    /// differ in two cases, which are refused:
    ///
    /// - A secret was used in a computation. The action knows only the mark's position, so it could not repeat the
    ///   computation with the real secret.
    /// - Data contained a mark, so that the action would put a secret at that place.
    pub fn call_inputs(
        self,
        cursor: CursorId,
        inputs: &Template,
        secrets: &[Name],
    ) -> Result<Value, Fault> {
        if secrets.is_empty() {
            return self.eval(cursor, inputs);
        }
        // Two generators with the same seed, so that both evaluations draw the same numbers.
        let (first, again) = (RefCell::new(None), RefCell::new(None));
        let marked = View {
            secrets: Secrets::Marked,
            random: Some(&first),
            ..self.view(cursor)
        };
        let blank = View {
            secrets: Secrets::Blank,
            random: Some(&again),
            ..self.view(cursor)
        };
        let rendered = marked.computed(inputs)?;
        let without = blank.computed(inputs).ok();
        let stripped = replace_secret_marks(&rendered, &mut |inside| {
            Some(SecretMark::of(inside).blank().to_owned())
        });
        if without.is_some_and(|without| without == stripped) {
            return Ok(rendered);
        }
        Err(Fault::new(
            fault_kind::SECRET,
            "a secret can be put into text and into members, but nothing can be computed from it, \
             and data cannot name one",
        ))
    }

    pub fn eval(self, cursor: CursorId, template: &Template) -> Result<Value, Fault> {
        self.view(cursor).computed(template)
    }

    pub fn holds(
        self,
        cursor: CursorId,
        condition: &Condition,
        missing_as_null: bool,
    ) -> Result<bool, Fault> {
        let view = View {
            missing_as_null,
            ..self.view(cursor)
        };
        view.holds(condition)
            .map_err(|error| expression_fault(&error))
    }

    /// Evaluates a duration: text in ISO 8601, or `{count, unit}`. Some formats also accept a number of seconds.
    pub fn eval_duration(
        self,
        cursor: CursorId,
        template: &Template,
        what: &str,
    ) -> Result<Duration, Fault> {
        let value = self.eval(cursor, template)?;
        let bare = self.program.rules.bare_seconds;
        duration(&value.revealed(), bare).map_err(|why| {
            let message = format!("{what} {why}; it is {}", value.to_json());
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    /// Adds the position of the cursor's state in the workflow file to a fault.
    pub fn locate_fault(self, cursor: CursorId, fault: Fault) -> MachineResult<RunError> {
        let state = self.state_of(cursor)?;
        let written = state.action.and_then(|action| self.authored_action(action));
        Ok(RunError {
            fault,
            action: Some(written.map_or(&state.name, |action| &action.name).clone()),
            iteration: self.view(cursor).innermost_iteration(),
            place: Some((state.span.file, state.span.line)),
        })
    }

    /// Adds the position of an action in the workflow file to a fault. The action as a whole raised the fault: its loop
    /// reached a limit, or its timeout passed. The cursor has already left the action.
    pub fn locate_fault_at(
        self,
        cursor: CursorId,
        action: Option<ActionId>,
        fault: Fault,
    ) -> RunError {
        let written = action.and_then(|action| self.authored_action(action));
        let action = action.and_then(|action| self.program.action(action));
        RunError {
            fault,
            action: written.or(action).map(|action| action.name.clone()),
            iteration: self.view(cursor).innermost_iteration(),
            place: action.map(|action| (action.span.file, action.span.line)),
        }
    }

    /// Evaluates the maximum number of iterations or items.
    pub fn eval_count(self, cursor: CursorId, count: &Template) -> Result<u64, Fault> {
        let count = self.eval(cursor, count)?;
        let whole = count.revealed().as_whole();
        let whole = whole.and_then(|count| u64::try_from(count).ok());
        whole.ok_or_else(|| {
            let count = count.to_json();
            let message = format!("the count of a loop must be a whole number from 0, not {count}");
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }
}

/// Makes a fault from an evaluation error. The fault is never transient, because the same error would occur in each
/// attempt.
pub(super) fn expression_fault(error: &EvalError) -> Fault {
    let message = if error.text.is_empty() {
        error.message.clone()
    } else {
        format!("{} in `{}`", error.message, error.text)
    };
    Fault::new(fault_kind::EXPRESSION, message)
}

impl View<'_> {
    /// Evaluates a template and checks depth and size of the value. A deeper value could not be read from the store,
    /// and a larger one would exceed the limit of a run's state. A part that occurs at several places is counted once
    /// for each place.
    pub fn computed(&self, template: &Template) -> Result<Value, Fault> {
        check_size(self.value(template), self.budget, MAX_COMPUTED_BYTES)
    }

    /// Evaluates the result of a run. Its limit is higher than that of other values, because it is stored only once.
    pub fn computed_result(&self, template: &Template) -> Result<Value, Fault> {
        check_size(self.value(template), self.budget, MAX_RESULT_BYTES)
    }
}

fn check_size(
    result: Result<Value, EvalError>,
    budget: &Budget,
    most: usize,
) -> Result<Value, Fault> {
    let value = result.map_err(|error| expression_fault(&error))?;
    let mut left = most;
    let fits = fits(&value, MAX_COMPUTED_DEPTH, &mut left).map_err(|excess| match excess {
        Excess::Depth => format!("the value nests deeper than {MAX_COMPUTED_DEPTH} levels"),
        Excess::Bytes => {
            let most = most >> 20;
            format!("the value has more than {most} MiB, as it would be written")
        }
    });
    let looked_at = (most - left) / 256;
    budget
        .charge(looked_at)
        .map_err(|exceeded| Fault::new(fault_kind::EXPRESSION, exceeded.to_string()))?;
    fits.map(|()| value)
        .map_err(|message| Fault::new(fault_kind::TOO_LARGE, message))
}

/// The limit that a value exceeds.
enum Excess {
    Depth,
    Bytes,
}

/// Subtracts the size of a value from the bytes that are left. Returns the limit that the value exceeds, if it does.
fn fits(value: &Value, levels: usize, left: &mut usize) -> Result<(), Excess> {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Object(map) => map.keys().map(|key| key.len()).sum(),
        _ => 0,
    };
    *left = left
        .checked_sub(own + VALUE_OVERHEAD_BYTES)
        .ok_or(Excess::Bytes)?;
    let below = |child: &Value| match levels.checked_sub(1) {
        Some(levels) => fits(child, levels, left),
        None => Err(Excess::Depth),
    };
    match value {
        Value::Array(items) => items.iter().try_for_each(below),
        Value::Object(map) => map.values().try_for_each(below),
        Value::Secure(secure) => match &**secure {
            Secure::Open(value) => fits(value, levels, left),
            Secure::Sealed(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        Value::Decimal(decimal) => f64::try_from(**decimal).ok(),
        _ => None,
    }
}

/// Returns a value as plain text. Text is returned unchanged, a secure value as a mask, and any other value as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Secure(_) => SECURE_MASK.to_owned(),
        other => other.to_text(),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a duration: text (`30s`, or ISO 8601), `{count, unit}` (also inside `interval`) or, if `bare` numbers are
/// allowed, seconds. The error describes what the value must be.
fn duration(value: &Value, bare: bool) -> Result<Duration, String> {
    let wrong = || {
        let seconds = if bare { ", a number of seconds" } else { "" };
        format!("must be a duration such as 30s or PT30S{seconds}, or {{count, unit}}")
    };
    match value {
        Value::String(text) => parse_duration(text).map_err(|error| match error {
            DurationError::Syntax(_) => wrong(),
            DurationError::Calendar(_) => {
                String::from("cannot have years or months, which have no fixed length: use days")
            }
        }),
        Value::Object(map) => match map.get("interval") {
            Some(interval) => duration(interval, bare),
            None => count_and_unit(map).ok_or_else(wrong),
        },
        other => match number(other) {
            Some(_) if !bare => Err(String::from(
                "is a number without a unit: for seconds use text such as 30s, or {count: 30, \
                 unit: second}",
            )),
            Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong()),
            None => Err(wrong()),
        },
    }
}

fn count_and_unit(map: &Object) -> Option<Duration> {
    let count = map.get("count")?;
    let text = count.as_str().and_then(|text| text.trim().parse().ok());
    let count = number(count).or(text)?;
    let unit = map.get("unit")?.as_str()?.to_ascii_lowercase();
    let seconds = match unit.trim_end_matches('s') {
        "millisecond" => 0.001,
        "second" => 1.0,
        "minute" => 60.0,
        "hour" => 3_600.0,
        "day" => 86_400.0,
        "week" => 604_800.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(count * seconds).ok()
}
