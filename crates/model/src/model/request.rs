//! Requests to executors, and faults. Plain data; nothing here executes a request.

use super::{Name, Status, name_of_part};
use bincode::{Decode, Encode};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use windlass_expression::Value;
use windlass_value::words;

/// What the machine requests of an executor: one attempt of one action, fully rendered.
///
/// A request is stored before it starts, so that a repetition after a crash is the same request with the same key.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Request {
    /// The executor: `http`, `shell`, `activity`, …
    pub executor: Name,
    /// The action's name.
    pub action: Name,
    /// Its rendered inputs.
    pub inputs: Value,
    /// The idempotency key: run, loop path, iteration and step, without the attempt.
    pub key: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Timeout of the attempt in milliseconds. `None` means the executor's default.
    pub timeout_ms: Option<u64>,
}

/// Options of a question to a model (an `ai` action) that are passed to the model unchanged
/// (docs/reference/actions.md).
pub const MODEL_OPTIONS: [&str; 17] = words! {
    max_tokens max_completion_tokens response_format top_p stop seed presence_penalty
    frequency_penalty tools tool_choice reasoning_effort top_k n user logprobs top_logprobs
    logit_bias
};

/// The values of `provider` in a question to a model.
pub const MODEL_PROVIDERS: [&str; 5] = words! { auto openai azure ollama shell };

/// The number of retries of a question to a model within one attempt.
pub const MODEL_RETRIES: RangeInclusive<i64> = 0..=20;

/// A placeholder in the stored inputs of a script, at `globals.state`, for the whole state of the run.
/// The store already has the state. Without the placeholder, it would store the state again with every script.
pub const WHOLE_STATE: &str = "(the whole state)";

impl Request {
    /// Returns the id of the request's run, with which the idempotency key begins.
    #[must_use]
    pub fn run(&self) -> Cow<'_, str> {
        let run = self.key.split_once('/').map_or("", |(run, _)| run);
        name_of_part(run)
    }

    /// Returns true if the request has no side effects, so that it may be sent again.
    /// Such a request is GET or HEAD (RFC 9110, 9.2.1). It has no body, because a body may be a command, and no
    /// header that names another method. It neither sends nor writes a file of this machine.
    ///
    /// A driver may start such a request before its step is durable. If a crash loses the step, the machine may compute
    /// another request. Every other request is repeated with the same bytes.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        let method = self.inputs.get("method").map_or(Some("GET"), Value::as_str);
        let is = |name| method.is_some_and(|method| method.eq_ignore_ascii_case(name));
        let sends = self.inputs.get("body").is_some_and(|body| !body.is_null());
        let headers = self.inputs.get("headers").and_then(Value::as_object);
        let overrides = headers.is_some_and(|all| all.keys().any(|name| overrides_method(name)));
        &*self.executor == "http"
            && (is("GET") || is("HEAD"))
            && !sends
            && !overrides
            && !self.transfers_file()
    }

    /// Returns true if the body of the request or of its answer is a file of this machine, of any size.
    #[must_use]
    pub fn transfers_file(&self) -> bool {
        &*self.executor == "http" && names_file(&self.inputs)
    }

    /// Returns true if the request reads one event of a stream, however long it has to wait for the event.
    #[must_use]
    pub fn reads_events(&self) -> bool {
        &*self.executor == "http" && self.input(EVENTS).is_some()
    }

    /// Returns true if the request appends to a file. Repeating such a request has the same outcome.
    #[must_use]
    pub fn appends(&self) -> bool {
        &*self.executor == "appendFile"
    }

    /// Returns true if the request starts a workflow as a run of its own and waits for the end of that run.
    #[must_use]
    pub fn calls_workflow(&self) -> bool {
        &*self.executor == WORKFLOW
    }

    /// Returns the name of the rate that limits the request, if its action names one.
    #[must_use]
    pub fn rate(&self) -> Option<Value> {
        let can_have = matches!(&*self.executor, "http" | "ai" | "shell");
        let named = self.input(RATE).filter(|_| can_have);
        named.filter(|name| !name.is_null())
    }

    /// Returns one input. The returned value is secure if all inputs are secure together.
    fn input(&self, key: &str) -> Option<Value> {
        match &self.inputs {
            Value::Secure(_) => self.inputs.revealed().get(key).cloned().map(Value::secure),
            inputs => inputs.get(key).cloned(),
        }
    }

    /// Returns the request as an executor gets it: the state replaces [`WHOLE_STATE`].
    ///
    /// `state` is the state at the time of the call, not at the time when the request was stored. So a format may use
    /// the placeholder only where nothing else changes variables while a script runs. Then a repetition after a crash
    /// is the same request.
    #[must_use]
    pub fn with_state(&self, state: &Value) -> Self {
        let globals = self.inputs.get("globals").and_then(Value::as_object);
        let Some(globals) = globals.filter(|globals| {
            let marked = globals.get("state").and_then(Value::as_str);
            marked == Some(WHOLE_STATE)
        }) else {
            return self.clone();
        };
        let mut globals = globals.clone();
        globals.insert(Name::from("state"), state.clone());
        let mut inputs = self.inputs.as_object().cloned().unwrap_or_default();
        inputs.insert(Name::from("globals"), Value::object(globals));
        Self {
            inputs: Value::object(inputs),
            ..self.clone()
        }
    }
}

/// The executor that starts a workflow as a run of its own.
/// Its inputs are `workflow` and `inputs`. `workflow` is a file of the bundle (the files that are stored with the
/// run) or the name of a saved workflow.
pub const WORKFLOW: &str = "workflow";

/// The input of `http`, `ai` and `shell` that names a rate. The call counts against this rate instead of its host's.
pub const RATE: &str = "rate";

/// The input of `http` with the path of the file to which the body of the answer is written.
pub const SAVE_TO: &str = "saveTo";

/// The input of `http` for the asynchronous pattern of Logic Apps, a 202 with a `Location`.
/// It is true for the request that may start an operation. For later requests, it is the address of the operation.
pub const ASYNC_PATTERN: &str = "asyncPattern";

/// The input of `http` with the path of the file that is sent as the body of the request.
pub const BODY_FILE: &str = "bodyFile";

/// The input of `http` that makes it read one event of a stream.
/// Its value is the position after the last event, or null at the beginning. In a loop, the format passes the
/// position of the previous iteration.
pub const EVENTS: &str = "events";

/// The input of `http` with which a request sends the version of the last answer, so that an unchanged answer is not
/// sent again.
pub const IF_CHANGED: &str = "ifChanged";

/// Returns true if these inputs of `http` name a file of this machine.
pub(super) fn names_file(inputs: &Value) -> bool {
    let named = |key| inputs.get(key).is_some_and(|file| !file.is_null());
    named(SAVE_TO) || named(BODY_FILE)
}

/// Returns true if a header may make a server treat a GET as another method: `X-HTTP-Method-Override`,
/// `X-HTTP-Method`, `X-Method-Override`, and others of that kind.
#[must_use]
pub fn overrides_method(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["method", "verb", "override"]
        .iter()
        .any(|word| header.contains(word))
}

/// The key in a connector's inputs with alternative names of its handler.
pub const HANDLER_NAMES: &str = "names";

/// The input of a connector's action with the `host` of its definition. The input is not passed to a handler.
pub const CONNECTOR_HOST: &str = "host";

/// A failure in a run. It belongs to the run, can be caught and retried, and is never the engine's own error.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Fault {
    /// The kind, which `on:` of a retry policy and `error.kind` name: see [`fault_kind`].
    pub kind: Name,
    /// A status or exit code, if there is one: `503`.
    pub code: Option<Name>,
    /// What happened, in one line.
    pub message: String,
    /// The output of the failed action, such as the response of a failed HTTP call.
    pub output: Option<Value>,
    /// How long the other side requests to wait (`Retry-After`), in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether a retry policy without `on` retries the fault.
    pub transient: bool,
}

/// The prefix of the keys in a run's state that Windlass itself uses. The output of a run does not contain these
/// keys.
pub const OWN_KEYS: &str = "_windlass_";

/// The input of `ai` that turns a failed question into the answer `{error, success: false}`.
pub const ANSWER_ERRORS: &str = "answer_errors";

/// The code of a `connection` fault if no connection was made, so that nothing was sent.
pub const NOT_CONNECTED: &str = "not-connected";

/// The kinds of [`Fault`].
pub mod fault_kind {
    /// An HTTP response with a status of 400 or above.
    pub const HTTP: &str = "http";
    /// No answer was received, or the connection broke.
    pub const CONNECTION: &str = "connection";
    /// A server reports that a long operation failed.
    pub const OPERATION: &str = "operation";
    /// A workflow that was started as a run of its own did not succeed, or could not be started.
    pub const WORKFLOW: &str = "workflow";
    /// An attempt, a step or a loop exceeded its timeout.
    pub const TIMEOUT: &str = "timeout";
    /// A loop's count or another budget is used up.
    pub const LIMIT: &str = "limit";
    /// The result of an action is not what was expected.
    pub const EXPECT: &str = "expect";
    /// Items of a foreach failed, and the foreach continued.
    pub const ITEMS: &str = "items";
    /// A loop over pages reached a page that it had already read.
    pub const REPEAT: &str = "repeat";
    /// The evaluation of an expression failed.
    pub const EXPRESSION: &str = "expression";
    /// The executor cannot use its inputs.
    pub const INPUT: &str = "input";
    /// A command ended with a code other than 0, or could not be started.
    pub const SHELL: &str = "shell";
    /// A script or its interpreter failed.
    pub const SCRIPT: &str = "script";
    /// The answer of a model cannot be used.
    pub const AI: &str = "ai";
    /// A handler failed.
    pub const HANDLER: &str = "handler";
    /// The run was cancelled. Its steps that cancel operations elsewhere still run.
    pub const CANCELLED: &str = "cancelled";
    /// A `terminate` step ended the run.
    pub const TERMINATED: &str = "terminated";
    /// The operator does not allow this workflow to do something.
    pub const DENIED: &str = "denied";
    /// A secret does not exist, or was used in a computation.
    pub const SECRET: &str = "secret";
    /// A value exceeds a limit of the engine.
    pub const TOO_LARGE: &str = "too_large";
    /// Another run has changed a value of the workflow's state since this run read it.
    pub const CONFLICT: &str = "conflict";
    /// The store could not be read or written.
    pub const STORE: &str = "store";
    /// JSON has a number that no value can represent, or half of a surrogate pair.
    pub const INEXACT: &str = "inexact";
}

impl Fault {
    /// Returns the status of an action that ended with this fault.
    #[must_use]
    pub fn status(&self) -> Status {
        if &*self.kind == fault_kind::TIMEOUT {
            Status::TimedOut
        } else {
            Status::Failed
        }
    }

    /// Creates a fault that is not transient: a retry policy without `on` does not retry it.
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: Name::from(kind),
            code: None,
            message: message.into(),
            output: None,
            retry_after_ms: None,
            transient: false,
        }
    }

    /// Makes the fault transient: a retry policy without `on` retries it.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// Returns true if the server has certainly not processed the request.
    /// That is certain if there was no connection, or if the quota is used up (429, or a transient 403). It is also
    /// certain if the server is busy and says for how long (503 with `Retry-After`).
    #[must_use]
    pub fn is_unprocessed(&self) -> bool {
        match self.code.as_deref() {
            Some(NOT_CONNECTED) => &*self.kind == fault_kind::CONNECTION,
            Some("429") => true,
            Some("403") => self.transient,
            Some("503") => self.retry_after_ms.is_some(),
            _ => false,
        }
    }

    /// Adds a code.
    #[must_use]
    pub fn code(mut self, code: impl ToString) -> Self {
        self.code = Some(Name::from(code.to_string()));
        self
    }

    /// Adds the output of the action.
    #[must_use]
    pub fn output(mut self, output: Value) -> Self {
        self.output = Some(output);
        self
    }

    /// Returns the fault without its output, for records and errors. They store the output of the action separately.
    #[must_use]
    pub fn without_output(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
            output: None,
            retry_after_ms: self.retry_after_ms,
            transient: self.transient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(inputs: &str) -> Request {
        Request {
            executor: Name::from("http"),
            action: Name::from("ask"),
            inputs: Value::from_json(inputs).unwrap(),
            key: String::new(),
            attempt: 1,
            timeout_ms: None,
        }
    }

    #[test]
    fn only_a_get_that_is_nothing_else_is_safe() {
        let safe = [
            "{}",
            r#"{"method": "get", "body": null}"#,
            r#"{"method": "HEAD", "headers": {"Accept": "*/*", "X-Request-Id": "1"}}"#,
        ];
        for inputs in safe {
            assert!(asks(inputs).is_safe(), "{inputs}");
        }
        let unsafe_ones = [
            r#"{"method": "POST"}"#,
            r#"{"method": 1}"#,
            r#"{"body": ""}"#,
            r#"{"method": "GET", "body": {"delete": true}}"#,
            r#"{"headers": {"X-HTTP-Method-Override": "DELETE"}}"#,
            r#"{"headers": {"x-http-method": "PUT"}}"#,
            r#"{"headers": {"X-METHOD-OVERRIDE": "PATCH"}}"#,
            r#"{"method": "HEAD", "headers": {"X-Http-Verb": "POST"}}"#,
            r#"{"saveTo": "a.bin"}"#,
            r#"{"bodyFile": "a.bin"}"#,
        ];
        for inputs in unsafe_ones {
            assert!(!asks(inputs).is_safe(), "{inputs}");
        }
    }
}
