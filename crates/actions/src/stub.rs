//! Stubs: answers from a file that replace the effects of actions, in `run` and in `test`. With them, a workflow can be
//! tested without the systems that it calls.

use super::append::{is_append_bookkeeping, simulate_append};
use super::handler::{as_reply, as_transient, handler_names, of_connector};
use super::http::of_stub;
use super::shell::as_command;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Name, Request, StubAnswer, WORKFLOW, fault_kind};

/// Returns the result of a call that is not carried out, because this answer replaces its effect.
///
/// # Errors
/// Returns the fault that the answer declares, or that the effect would have with these inputs.
fn stub_result(request: &Request, answer: &StubAnswer) -> Result<Value, Fault> {
    let (usual, is_transient) = match &*request.executor {
        "http" => (fault_kind::HTTP, true),
        "shell" => (fault_kind::SHELL, true),
        "python" | "lua" | "prolog" => (fault_kind::SCRIPT, true),
        WORKFLOW => (fault_kind::WORKFLOW, false),
        _ => (fault_kind::HANDLER, true),
    };
    let value = answer_value(answer, usual).map_err(|fault| match is_transient {
        true => as_transient(fault),
        false => fault,
    })?;
    match &*request.executor {
        // An answer does not know the length of the file, so it replaces only the write.
        "appendFile" => simulate_append(request),
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

/// The stubs by name. Clones share, for each stub, the position in its sequence of answers.
#[derive(Clone, Default)]
pub struct Stubs {
    /// The stubs, by their names in lower case.
    stubs: BTreeMap<String, Stub>,
    /// The titles of the workflow's actions. A stub may have the title of an action as its name.
    titles: BTreeMap<Name, Name>,
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

    /// Adds the titles of a workflow's actions, by action.
    pub(super) fn add_titles<'a>(&mut self, titles: impl Iterator<Item = (&'a Name, &'a str)>) {
        if !self.is_empty() {
            let titles = titles.map(|(action, title)| (action.clone(), Name::from(title)));
            self.titles.extend(titles);
        }
    }

    /// Returns a copy whose sequences are at their first answers.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let mut restarted = self.clone();
        for stub in restarted.stubs.values_mut() {
            stub.answer_count = Arc::default();
        }
        restarted
    }

    /// Returns the names in their original case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stubs.values().map(|stub| &*stub.name)
    }

    /// Returns true if a stub answers the calls of this action. `handlers` are the names of its handler.
    pub(super) fn has_stub(&self, executor: &str, handlers: &[&str], action: &str) -> bool {
        self.stub(executor, handlers, action).is_some()
    }

    /// Returns true if a stub answers this call.
    pub(super) fn has_stub_for(&self, request: &Request) -> bool {
        !self.is_empty() && self.stub_for(request).is_some()
    }

    /// Returns the result of the call with the next answer of its stub, or `None` if it has no stub. After the end of a
    /// sequence, the last answer is repeated.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Option<Result<Value, Fault>> {
        if self.is_empty() {
            return None;
        }
        let stub = self.stub_for(request)?;
        if is_append_bookkeeping(request) {
            return Some(simulate_append(request));
        }
        Some(stub_result(request, stub.next()?))
    }

    /// Returns the next answer of the stub with the name of this handler.
    pub(super) fn answer_of_handler(&self, handler: &str) -> Option<Result<Value, Fault>> {
        let answer = self.stubs.get(&handler.to_lowercase())?.next()?;
        Some(answer_value(answer, fault_kind::HANDLER))
    }

    fn stub_for(&self, request: &Request) -> Option<&Stub> {
        let inputs = request.inputs.revealed();
        let handlers = handler_names(&request.executor, &inputs);
        self.stub(&request.executor, &handlers, &request.action)
    }

    /// Returns the first stub with one of these names: the action, the handler, the handler's connector, the executor.
    fn stub(&self, executor: &str, handlers: &[&str], action: &str) -> Option<&Stub> {
        // The requests of an action with pages, of an `operation` and of an `appendFile` have the names `NAME.page`,
        // `NAME.start`, `NAME.append`, ….
        let author = action
            .rsplit_once('.')
            .filter(|_| matches!(executor, "http" | "appendFile"))
            .map(|(author, _)| author);
        let append = author.filter(|_| executor == "appendFile");
        let append = append.map(|author| format!("{author}.append"));
        let title = |action: &str| self.titles.get(action).map(|title| &**title);
        let connectors = handlers.iter().filter_map(|name| name.split_once('/'));
        let author_title = author.and_then(title);
        let names = [
            Some(action),
            title(action),
            append.as_deref(),
            author,
            author_title,
        ];
        let names = names.into_iter().flatten();
        let names = names.chain(handlers.iter().copied());
        let names = names.chain(connectors.map(|(connector, _)| connector));
        let mut names = names.chain([executor]);
        names.find_map(|name| self.stubs.get(&name.to_lowercase()))
    }
}

impl Stub {
    /// Returns the next answer as it is in the file of stubs.
    fn next(&self) -> Option<&StubAnswer> {
        let last = self.answers.len().checked_sub(1)?;
        let next = self.answer_count.fetch_add(1, Ordering::Relaxed).min(last);
        self.answers.get(next)
    }
}
