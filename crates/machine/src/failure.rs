//! Faults as values for expressions.

use super::state::RunError;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Name, Status};

/// Returns a fault as the value that expressions read in `catch` and in `actions('x').error`.
pub(super) fn fault_value(fault: &Fault) -> Value {
    Value::from_pairs([
        ("kind", Value::from(&*fault.kind)),
        ("code", Value::from(fault.code.as_deref())),
        ("message", Value::from(fault.message.as_str())),
    ])
}

/// Returns a fault with its place: `{kind, code, message, action}`.
/// `with_output` adds the output of the failed action.
pub(super) fn error_value(error: &RunError, with_output: bool) -> Value {
    let name = |name: &Option<Name>| Value::from(name.as_deref());
    let mut pairs = vec![
        ("kind", Value::from(&*error.fault.kind)),
        ("code", name(&error.fault.code)),
        ("message", Value::from(error.fault.message.as_str())),
        ("action", name(&error.action)),
    ];
    if with_output {
        let output = error.fault.output.clone().unwrap_or_default();
        pairs.push(("output", output));
    }
    Value::from_pairs(pairs)
}

/// Returns how the body of a workflow failed, as a value. The workflow's ending and the end of the run read this value.
pub(super) fn failure_value(error: &RunError, status: Status) -> Value {
    let iteration = error.iteration.as_ref();
    let (file, line) = error.place.unzip();
    let more = Value::from_pairs([
        ("status", Value::from(status.as_str())),
        (
            "loop",
            Value::from(iteration.map(|(path, _)| path.as_str())),
        ),
        (
            "iteration",
            Value::from(iteration.and_then(|(_, at)| i64::try_from(*at).ok())),
        ),
        ("line", Value::from(line)),
    ]);
    // The index of the file, if the workflow has several files and this is not the first.
    let file = file.filter(|file| *file > 0).map(i64::from);
    let mut all = match error_value(error, false) {
        Value::Object(all) => Arc::unwrap_or_clone(all),
        _ => Object::new(),
    };
    if let Value::Object(more) = more {
        all.extend(Arc::unwrap_or_clone(more));
    }
    all.extend(file.map(|file| ("file".into(), Value::Int(file))));
    Value::object(all)
}

/// Converts a value that `failure_value` returned back to a status and an error.
pub(super) fn failure_of(value: &Value) -> Option<(Status, RunError)> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| value.get(key).and_then(Value::as_int);
    let mut fault = Fault::new(&text("kind")?, text("message")?);
    fault.code = text("code").map(Name::from);
    let iteration = number("iteration").and_then(|at| u64::try_from(at).ok());
    let file = u16::try_from(number("file").unwrap_or(0)).ok();
    let line = number("line").and_then(|line| u32::try_from(line).ok());
    let error = RunError {
        fault,
        action: text("action").map(Name::from),
        iteration: text("loop").zip(iteration),
        place: file.zip(line),
    };
    Some((Status::parse(&text("status")?)?, error))
}
