//! Handlers: they carry out the actions `activity`, `actor`, `connector` and `runner`. A handler is a Rust closure, a
//! command or a URL. The idempotency key allows it to distinguish a repetition from a new call.

use super::activity::{ActivityContext, Closure};
use super::execution_context::is_quiet;
use super::http::{Client, Reply};
use super::inputs::Inputs;
use super::json;
use super::mask::MASK;
use super::process::{ProcessOutput, Processes, Spec};
use super::shell::files;
use super::stub::Stubs;
use super::{Attempt, Executor};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use url::Url;
use windlass_expression::{Value, shared_key};
use windlass_model::model::{
    Fault, HANDLER_NAMES, HandlerTarget, Name, Policy, Request, fault_kind,
};
use windlass_source::diagnostic::nearest;
use windlass_value::shortened;

#[derive(Clone)]
pub(super) enum Target {
    Closure(Closure),
    Command(Vec<String>),
    Url(String),
    /// A URL that a guest's workflow (from HTTP or MCP) declares.
    GuestUrl(String),
    /// A command that a guest's workflow declares, although guests may not run commands.
    Denied,
}

/// The handlers by name. They are also the executor of `activity`, `actor`, `connector` and `runner`.
#[derive(Clone)]
pub(super) struct Handlers {
    targets: BTreeMap<Name, Target>,
    stubs: Stubs,
    client: Arc<Client>,
    /// The client for URLs in guests' workflows: it reaches only the public internet.
    guests: Arc<Client>,
    processes: Arc<Processes>,
}

impl Handlers {
    /// The executors whose actions the handlers carry out.
    pub(super) const EXECUTORS: [&'static str; 4] = ["activity", "actor", "connector", "runner"];

    pub(super) fn new(client: Arc<Client>, guests: Arc<Client>, processes: Arc<Processes>) -> Self {
        Self {
            targets: BTreeMap::new(),
            stubs: Stubs::default(),
            client,
            guests,
            processes,
        }
    }

    pub(super) fn add(&mut self, name: Name, target: HandlerTarget) {
        let target = match target {
            HandlerTarget::Command(argv) => Target::Command(argv),
            HandlerTarget::Url(url) => Target::Url(url),
            HandlerTarget::Stub(answers) => return self.stubs.add(name, answers),
        };
        self.targets.insert(name, target);
    }

    /// Adds a handler that a workflow declares, restricted by the policy.
    pub(super) fn add_declared(&mut self, name: Name, target: HandlerTarget, policy: Policy) {
        match target {
            HandlerTarget::Command(_) if !policy.shell => {
                self.targets.insert(name, Target::Denied);
            }
            HandlerTarget::Url(url) if !policy.private_network => {
                self.targets.insert(name, Target::GuestUrl(url));
            }
            other => self.add(name, other),
        }
    }

    pub(super) fn add_closure(&mut self, name: Name, closure: Closure) {
        self.targets.insert(name, Target::Closure(closure));
    }

    /// Returns the handler of a name. If an operation of a connector (`CONNECTOR/OPERATION`) has no handler, returns
    /// the handler of the connector.
    pub(super) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(name).or_else(|| {
            let (connector, _) = name.split_once('/')?;
            self.targets.get(connector)
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.targets.keys().map(|name| &**name)
    }

    /// Returns true if this handler is registered, or a stub has its name.
    pub(super) fn answers(&self, name: &str) -> bool {
        self.target(name).is_some() || self.stubs.has_stub(name, &[], name)
    }

    pub(super) fn stubs(&self) -> &Stubs {
        &self.stubs
    }

    pub(super) fn stubs_mut(&mut self) -> &mut Stubs {
        &mut self.stubs
    }

    async fn call(&self, request: &Request) -> Result<Value, Fault> {
        if &*request.executor == "runner" {
            return self.runner(request).await;
        }
        let (name, input) = name_and_input(request)?;
        let value = self
            .ask(self.resolve_name(name, request), input, request)
            .await?;
        match &*request.executor {
            "connector" => of_connector(value),
            _ => Ok(value),
        }
    }

    /// Returns the name whose handler answers a request. A request may have several names: returns the first with a
    /// handler, or `name` if none has a handler.
    fn resolve_name<'r>(&self, name: &'r str, request: &'r Request) -> &'r str {
        let mut names = handler_names(&request.executor, &request.inputs).into_iter();
        names
            .find(|name| self.target(name).is_some())
            .unwrap_or(name)
    }

    /// Returns the answer of the stub with the name of the handler, or else of the handler itself, to this input.
    pub(super) async fn ask(
        &self,
        name: &str,
        input: Value,
        request: &Request,
    ) -> Result<Value, Fault> {
        if let Some(answer) = self.stubs.answer_of_handler(name) {
            return answer.map_err(as_transient);
        }
        match self.target(name) {
            None => Err(unknown("handler", name, self.names())),
            Some(Target::Closure(closure)) => {
                closure(ActivityContext {
                    input,
                    idempotency_key: request.key.clone(),
                    attempt: request.attempt,
                    action: Arc::clone(&request.action),
                })
                .await
            }
            Some(Target::Command(argv)) => self.command(request, name, argv, &input).await,
            Some(Target::Url(url)) => {
                let reply = self.client.post_json(url, &input, request).await;
                answer(name, reply).map_err(as_transient)
            }
            Some(Target::Denied) => {
                let message = format!("the handler `{name}` may not run a command: --allow-shell");
                Err(Fault::new(fault_kind::DENIED, message))
            }
            Some(Target::GuestUrl(url)) => {
                let reply = self.guests.post_json(url, &input, request).await;
                answer(name, reply).map_err(as_transient)
            }
        }
    }

    async fn command(
        &self,
        request: &Request,
        name: &str,
        argv: &[String],
        input: &Value,
    ) -> Result<Value, Fault> {
        let mut spec = Spec::new(argv.to_vec(), request);
        spec.stdin = Some(input.to_json().into_bytes());
        // Without the key `input`, all keys together are the input. Then `files` is a part of the input, and not a list
        // of files.
        if request.inputs.get("input").is_some() {
            spec.files = files(Inputs::of(request)?)?;
        }
        let finished = self.run(name, spec).await?;
        parse_or_text(&finished.stdout)
    }

    /// Runs a command. An exit code other than 0 is a fault.
    pub(super) async fn run(&self, name: &str, spec: Spec) -> Result<ProcessOutput, Fault> {
        let finished = self.processes.run(spec).await;
        let finished = finished.map_err(|error| {
            error.fault(&format!("the handler `{name}`: "), fault_kind::HANDLER)
        })?;
        if finished.code == 0 {
            let stderr = if is_quiet() { MASK } else { &finished.stderr };
            tracing::debug!(handler = name, stderr, "handler done");
            return Ok(finished);
        }
        Err(finished.fault(&format!("the handler `{name}`"), fault_kind::HANDLER))
    }
}

impl Executor for Handlers {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.call(request))
    }

    /// By default, a URL has the timeout of HTTP calls, and a command or a closure has no timeout.
    fn timeout(&self, request: &Request) -> Option<Duration> {
        let own = request.timeout_ms.map(Duration::from_millis);
        let default =
            || match self.target(self.resolve_name(name_and_input(request).ok()?.0, request))? {
                Target::Url(_) | Target::GuestUrl(_) => Some(super::http::DEFAULT_TIMEOUT),
                Target::Closure(_) | Target::Command(_) | Target::Denied => None,
            };
        own.or_else(default)
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        let (name, _) = name_and_input(request).ok()?;
        match self.target(self.resolve_name(name, request))? {
            Target::Url(url) | Target::GuestUrl(url) => Url::parse(url).ok(),
            Target::Closure(_) | Target::Command(_) | Target::Denied => None,
        }
    }
}

/// Returns the names of the handler of a call, in the order in which they are tried. Empty if the call needs none.
pub(super) fn handler_names<'v>(executor: &str, inputs: &'v Value) -> Vec<&'v str> {
    let Some(name) = inputs
        .get(&format!("{executor}Type"))
        .and_then(Value::as_str)
    else {
        return Vec::new();
    };
    let others = inputs.get(HANDLER_NAMES).and_then(Value::as_array);
    let others = others.into_iter().flatten().filter_map(Value::as_str);
    [name].into_iter().chain(others).collect()
}

/// Returns the handler's name, and `input`. Without the key `input`, returns all inputs except the name: workflows may
/// have `{"activityType": "search", "query": …}`, too.
fn name_and_input(request: &Request) -> Result<(&str, Value), Fault> {
    let inputs = Inputs::of(request)?;
    let key = format!("{}Type", request.executor);
    let name = inputs.required_text(&key)?;
    let input = match request.inputs.get("input") {
        Some(input) => input.clone(),
        None => inputs.without(&key),
    };
    Ok((name, input))
}

/// Converts a stub's answer to the output of a call. An answer with none of the keys of an output is the body. A status
/// of 400 or above fails the action, as a server's status does.
pub(super) fn as_reply(answer: Value) -> Result<Value, Fault> {
    let parts = ["statusCode", "headers", "body"];
    let whole = parts.iter().any(|key| answer.get(key).is_some());
    let part = |key: &str, default: Value| match whole {
        true => answer.get(key).cloned().unwrap_or(default),
        false => default,
    };
    let body = match whole {
        true => part("body", Value::Null),
        false => answer.clone(),
    };
    let status = part("statusCode", Value::Int(200));
    let output = Value::from_pairs([
        ("statusCode", status),
        ("headers", part("headers", Value::from_pairs::<&str>([]))),
        ("body", body),
    ]);
    checked_status(output)
}

/// Puts the answer of a connector under the key `body`, because expressions of a Logic Apps definition read it with
/// `body('x')`.
pub(super) fn of_connector(value: Value) -> Result<Value, Fault> {
    if value.get("body").is_none() && value.get("statusCode").is_none() {
        return Ok(Value::from_pairs([("body", value)]));
    }
    checked_status(value)
}

/// Returns an answer of a handler or stub with its status as a number, which may be a text in the answer. A status of
/// 400 or above is a fault, and so is a value that is not a status. Null is the same as a missing status.
fn checked_status(mut answer: Value) -> Result<Value, Fault> {
    let Some(status) = answer.get("statusCode").filter(|status| !status.is_null()) else {
        return Ok(answer);
    };
    let Some(code) = status.as_whole().filter(|code| (100..1000).contains(code)) else {
        let status = shortened(&status.to_text(), 20);
        let what = "is not a valid `statusCode` of a handler or stub (expected e.g. 200)";
        return Err(Fault::new(fault_kind::HTTP, format!("`{status}` {what}")));
    };
    if let Some(mut members) = answer
        .as_object()
        .filter(|_| status.as_int().is_none())
        .cloned()
    {
        members.insert(shared_key("statusCode"), Value::Int(code));
        answer = Value::object(members);
    }
    if code < 400 {
        return Ok(answer);
    }
    let message = format!("its handler or stub answered {code}");
    let mut fault = Fault::new(fault_kind::HTTP, message).code(code);
    fault.transient = code >= 500 || code == 408 || code == 429;
    Err(fault.output(answer))
}

/// Makes a handler's fault transient: a retry policy without `on` retries any failure of a handler
/// (docs/reference/loom.md). Some faults remain permanent: inputs that are not valid, and answers that are too large or
/// cannot be represented exactly.
pub(super) fn as_transient(fault: Fault) -> Fault {
    let kinds = [
        fault_kind::INPUT,
        fault_kind::TOO_LARGE,
        fault_kind::INEXACT,
    ];
    if kinds.contains(&&*fault.kind) {
        return fault;
    }
    fault.transient()
}

/// Reports a failed call of a handler's URL as a fault of the handler. The HTTP status remains the code of the fault.
fn answer(name: &str, reply: Result<Reply, Fault>) -> Result<Value, Fault> {
    match reply {
        Ok(reply) => Ok(reply.body),
        Err(fault) if &*fault.kind == fault_kind::HTTP => Err(Fault {
            kind: Name::from(fault_kind::HANDLER),
            message: format!("the handler `{name}`: {}", fault.message),
            ..fault
        }),
        Err(fault) => Err(fault),
    }
}

/// Parses a command's output as JSON. Output that is not JSON becomes text, without the line ends at its end. Empty
/// output becomes null.
fn parse_or_text(stdout: &str) -> Result<Value, Fault> {
    let text = stdout.trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let parsed = json::parsed(text, "standard output")?;
    Ok(parsed.unwrap_or_else(|| Value::text(text)))
}

/// Makes the fault for an unknown name, with a hint to similar names.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Fault {
    let hint = nearest(name, known)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    Fault::new(fault_kind::INPUT, format!("unknown {what} `{name}`{hint}"))
}
