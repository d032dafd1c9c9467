//! `shell`: a command, or a text for `sh`. Data reaches a command only through `env`, `stdin`, `files` and its
//! arguments. No data is rendered into the text for `sh`.

use super::execution_context::resolved;
use super::inputs::{Inputs, invalid, is_accepted, words};
use super::json;
use super::process::{ProcessOutput, Processes, Spec, with_error_lines};
use super::{Attempt, Executor};
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

/// The executor of `shell` (docs/reference/loom.md). It has no timeout unless the action has one.
pub(super) struct Shell {
    processes: Arc<Processes>,
}

impl Shell {
    pub(super) fn new(processes: Arc<Processes>) -> Self {
        Self { processes }
    }

    async fn run(&self, request: &Request) -> Result<Value, Fault> {
        let finished = self.processes.run(spec(request)?).await;
        let finished = finished.map_err(|error| error.fault("", fault_kind::SHELL))?;
        if finished.code == 0 || is_accepted(&request.inputs, finished.code.into()) {
            return output(&finished);
        }
        let fault = finished.fault("the command", fault_kind::SHELL);
        Err(match output(&finished) {
            Ok(output) => fault.output(output),
            Err(_) => fault,
        })
    }
}

impl Executor for Shell {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.run(request))
    }
}

fn spec(request: &Request) -> Result<Spec, Fault> {
    let inputs = Inputs::of(request)?;
    let argv = match (inputs.text("run")?, inputs.get("command")) {
        (Some(text), None) => vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()],
        (None, Some(command)) => words("command", "an array", command)?,
        (None, None) => return Err(invalid("`run` or `command` is missing")),
        (Some(_), Some(_)) => return Err(invalid("`run` and `command` exclude each other")),
    };
    let mut spec = Spec::new(argv, request);
    for (name, value) in inputs.members("env")? {
        spec.env.push((name.to_owned(), text_of(value)));
    }
    spec.files = files(inputs)?;
    if let Some(cwd) = inputs.text("cwd")? {
        spec.cwd = Some(resolved(cwd));
    }
    spec.stdin = inputs
        .get("stdin")
        .and_then(text_of)
        .map(String::into_bytes);
    Ok(spec)
}

/// Returns the texts in `files` of an action's inputs, each with the name of the environment variable that gets its
/// path.
pub(super) fn files(inputs: Inputs<'_>) -> Result<Vec<(String, String)>, Fault> {
    let members = inputs.members("files")?.into_iter();
    let written =
        members.map(|(name, value)| (name.to_owned(), text_of(value).unwrap_or_default()));
    Ok(written.collect())
}

/// Returns text as it is, `None` for null, and JSON for other values.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_str().to_owned()),
        other => Some(other.to_json()),
    }
}

/// Converts a stub's answer to the result of a command. If the answer has one of the keys `exitCode`, `stdout`,
/// `stderr` and `body`, it has these parts of the result. A text is the standard output, and any other answer the body.
pub(super) fn as_command(answer: Value, request: &Request) -> Result<Value, Fault> {
    let parts = ["exitCode", "stdout", "stderr", "body"];
    let whole = parts.iter().any(|key| answer.get(key).is_some());
    let given = match whole {
        true => answer.as_object().cloned().unwrap_or_default(),
        false if answer.as_str().is_some() => Object::from_iter([("stdout".into(), answer)]),
        false => Object::from_iter([("body".into(), answer)]),
    };
    let stdout = match (given.get("stdout"), given.get("body")) {
        (Some(stdout), _) => stdout.clone(),
        (None, body) => Value::text(body.and_then(text_of).unwrap_or_default()),
    };
    let text = stdout
        .as_str()
        .unwrap_or_default()
        .trim_end_matches(['\n', '\r']);
    let body = match given.get("body") {
        Some(body) => body.clone(),
        None => json::parsed(text, "standard output")?.unwrap_or_else(|| Value::text(text)),
    };
    let code = given.get("exitCode").and_then(Value::as_int).unwrap_or(0);
    let stderr = given
        .get("stderr")
        .cloned()
        .unwrap_or_else(|| Value::text(""));
    let output = Value::from_pairs([
        ("exitCode", Value::Int(code)),
        ("stdout", stdout),
        ("stderr", stderr),
        ("body", body),
    ]);
    if code == 0 || is_accepted(&request.inputs, code) {
        return Ok(output);
    }
    let how = format!("the command ended with exit code {code}");
    let message = with_error_lines(
        how,
        output
            .get("stderr")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
    let fault = Fault::new(fault_kind::SHELL, message).code(code);
    Err(fault.output(output).transient())
}

/// Builds `{exitCode, stdout, stderr, body}`. The body is standard output, parsed as JSON. If the output is not JSON,
/// the body is its text without the line ends at its end, as in `$(…)` of a shell.
fn output(finished: &ProcessOutput) -> Result<Value, Fault> {
    let text = finished.stdout.trim_end_matches(['\n', '\r']);
    let parsed = json::parsed(text, "standard output");
    let parsed = parsed.map_err(|fault| match fault.output {
        Some(_) => fault.output(finished.output()),
        None => fault,
    })?;
    let body = parsed.unwrap_or_else(|| Value::text(text));
    let mut output: Object = finished.output().as_object().cloned().unwrap_or_default();
    output.insert("body".into(), body);
    Ok(Value::object(output))
}
