//! Stubs: answers from a file for handlers that are not registered, so that a workflow can be tested without the
//! systems that it calls. A handler always has priority over a stub.

use super::handler::{as_reply, as_transient, of_connector};
use super::http::of_stub;
use super::shell::as_command;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Name, Request, StubAnswer, fault_kind};

/// Converts an answer to a result. A failure without a kind gets the kind `usual`.
fn answer_value(answer: &StubAnswer, usual: &str) -> Result<Value, Fault> {
    match answer {
        StubAnswer::Value(value) => Ok(value.clone()),
        StubAnswer::Error {
            kind,
            code,
            message,
            output,
        } => {
            let mut fault = Fault::new(kind.as_deref().unwrap_or(usual), message.clone());
            fault.code = code.as_deref().map(Name::from);
            fault.output = output.clone();
            Err(fault)
        }
    }
}

/// Returns the result of a call that is not carried out, because this answer replaces it.
///
/// # Errors
/// Returns the fault that the answer declares.
pub fn stand_in(request: &Request, answer: &StubAnswer) -> Result<Value, Fault> {
    let usual = match &*request.executor {
        "http" => fault_kind::HTTP,
        "shell" => fault_kind::SHELL,
        "python" | "lua" | "prolog" => fault_kind::SCRIPT,
        _ => fault_kind::HANDLER,
    };
    let value = answer_value(answer, usual).map_err(as_transient)?;
    match &*request.executor {
        "http" => of_stub(as_reply(value), request),
        "connector" => of_connector(value),
        "shell" => as_command(value, request),
        "runner" => Ok(Value::from_pairs([("content", value)])),
        "ai" if value.as_object().is_none() => Ok(Value::from_pairs([("content", value)])),
        // The answer is the value that the script returns. But if it has the member `returned`, it is the complete
        // output of a script.
        "python" | "lua" | "prolog" if value.get("returned").is_none() => {
            let state = request
                .inputs
                .get("globals")
                .and_then(|globals| globals.get("state"));
            Ok(Value::from_pairs([
                ("result", value),
                ("returned", Value::Bool(true)),
                ("state", state.cloned().unwrap_or_default()),
                ("locals", Value::object(Object::new())),
            ]))
        }
        _ => Ok(value),
    }
}

/// The stubs by name. Clones share, for each stub, the position in its sequence of answers.
#[derive(Clone, Default)]
pub(super) struct Stubs {
    /// The stubs, by their names in lower case.
    stubs: BTreeMap<String, Stub>,
}

#[derive(Clone)]
struct Stub {
    name: Name,
    answers: Vec<StubAnswer>,
    answer_count: Arc<AtomicUsize>,
}

impl Stubs {
    pub(super) fn is_empty(&self) -> bool {
        self.stubs.is_empty()
    }

    /// Adds a stub, or replaces the stub of that name.
    pub(super) fn add(&mut self, name: Name, answers: Vec<StubAnswer>) {
        let stub = Stub {
            name: Arc::clone(&name),
            answers,
            answer_count: Arc::default(),
        };
        self.stubs.insert(name.to_lowercase(), stub);
    }

    pub(super) fn has_stub(&self, handler: &str, action: &str) -> bool {
        self.stub(handler, action).is_some()
    }

    /// Returns the names in their original case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stubs.values().map(|stub| &*stub.name)
    }

    /// Returns the next answer for this handler, or `None` if it has no stub. After the end of a sequence, the last
    /// answer is repeated.
    pub(super) fn answer(&self, handler: &str, request: &Request) -> Option<Result<Value, Fault>> {
        let answer = self.next(handler, request)?;
        Some(answer_value(answer, fault_kind::HANDLER))
    }

    /// Returns the next answer as it is in the file of stubs.
    pub(super) fn next(&self, handler: &str, request: &Request) -> Option<&StubAnswer> {
        let stub = self.stub(handler, &request.action)?;
        let last = stub.answers.len().checked_sub(1)?;
        let next = stub.answer_count.fetch_add(1, Ordering::Relaxed).min(last);
        stub.answers.get(next)
    }

    /// Returns the stub of the action. If there is no such stub, returns that of the handler, or else that of the
    /// handler's connector.
    fn stub(&self, handler: &str, action: &str) -> Option<&Stub> {
        let connector = handler.split_once('/').map(|(connector, _)| connector);
        [Some(action), Some(handler), connector]
            .into_iter()
            .flatten()
            .find_map(|name| self.stubs.get(&name.to_lowercase()))
    }
}
