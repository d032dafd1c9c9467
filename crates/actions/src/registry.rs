//! The executors and handlers by name, and the one place where an attempt is bounded: in time, in
//! panics, in the size of what it gives. It never retries; that is the machine's.

use super::activity::{ActivityContext, ActivityError, typed};
use super::append::AppendFile;
use super::callback::Callbacks;
#[cfg(feature = "tea")]
use super::data::{DataMerge, JsonParse, Notify};
use super::execution_context::ExecutionContext;
#[cfg(feature = "tea")]
use super::extraction::Extraction;
#[cfg(feature = "tea")]
use super::files::{FileRead, FileWrite};
use super::handler::{Handlers, unknown};
#[cfg(feature = "http")]
use super::http::Http;
use super::http::{Client, DEFAULT_TIMEOUT};
use super::identity;
use super::inputs::{invalid, scalar};
use super::live::Listener;
#[cfg(feature = "llm")]
use super::llm::Ai;
use super::mask::Mask;
use super::process::Processes;
#[cfg(feature = "tea")]
use super::reflection::Evaluate;
#[cfg(feature = "tea")]
use super::schema::{DataValidate, ValidateSchema};
#[cfg(feature = "lua")]
use super::script::Lua;
use super::script::{Prolog, Python};
use super::secrets::{ResolvedSecrets, SecretSources, Secrets};
use super::secure;
use super::shell::Shell;
use super::state::{SharedState, StateAction};
use super::untrusted;
use super::{Attempt, Executor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::{MAX_ACTION_DEPTH, Value};
use windlass_model::model::{
    Dialect, Fault, GET_STATE, Handler, HandlerTarget, HostRate, Name, Origin, Policy, RATE,
    Request, SET_STATE, fault_kind, short_digest,
};
use windlass_value::first_chars;

/// The largest result of an action as a whole, in bytes. Executors bound what they read to 16 MiB,
/// which may be in a result twice, as text and parsed.
const MAX_RESULT_BYTES: usize = 40 << 20;

/// A longer name of a rate, in bytes, is shortened to this many letters and a digest.
const LONGEST_RATE_NAME: usize = 200;
const SHOWN_RATE_NAME: usize = 64;

type Executors = BTreeMap<Name, Arc<dyn Executor>>;

/// Executors and handlers by name. A clone shares them and costs two counters.
#[derive(Clone)]
pub struct Registry {
    executors: Arc<Executors>,
    handlers: Arc<Handlers>,
    /// How often a workflow calls a host.
    rates: Arc<[HostRate]>,
    /// What reaches the public internet only, for guests.
    guests: Arc<Executors>,
    secrets: Secrets,
    /// What guests may do.
    guest_policy: Policy,
    /// What its actions may do.
    policy: Policy,
    context: ExecutionContext,
    /// The actions of which something is secure.
    secure: Arc<BTreeSet<Name>>,
}

impl Registry {
    /// The executors that Windlass brings, as far as its features are on. No handlers.
    #[must_use]
    pub fn new() -> Self {
        let client = Arc::new(Client::default());
        let guests = Arc::new(Client::public_only());
        let processes = Arc::new(Processes::default());
        let prolog = Arc::new(Prolog::new(Arc::clone(&processes)));
        let mut executors = callers(&client, &processes, &prolog);
        executors.extend([
            executor("appendFile", AppendFile::default()),
            executor(GET_STATE, StateAction),
            executor(SET_STATE, StateAction),
            executor("python", Python::new(Arc::clone(&processes))),
            executor("shell", Shell::new(Arc::clone(&processes))),
        ]);
        #[cfg(feature = "lua")]
        executors.extend([executor("lua", Lua::new(Arc::clone(&processes)))]);
        #[cfg(feature = "tea")]
        executors.extend([
            executor("data.merge", DataMerge),
            executor("data.validate", DataValidate),
            executor("file.read", FileRead),
            executor("file.write", FileWrite),
            executor("json.parse", JsonParse),
            executor("notify", Notify),
            executor("validate.schema", ValidateSchema),
        ]);
        let for_guests = callers(&guests, &processes, &prolog);
        executors.insert(Name::from("prolog"), prolog);
        Self {
            executors: Arc::new(executors),
            guests: Arc::new(for_guests),
            handlers: Arc::new(Handlers::new(client, guests, processes)),
            rates: Arc::default(),
            secrets: Secrets::default(),
            guest_policy: Policy::GUEST,
            policy: Policy::TRUSTED,
            context: ExecutionContext {
                origin: Origin::Operator,
                folder: None,
                quiet: false,
                replayed: true,
                traced: false,
                state: None,
                shared: None,
                secrets: Vec::new(),
                listener: None,
            },
            secure: Arc::default(),
        }
    }

    /// Adds an executor, or replaces the one of that name. `activity`, `actor`,
    /// `connector` and `runner` cannot be replaced.
    pub fn register_executor(&mut self, name: &str, executor: impl Executor) {
        Arc::make_mut(&mut self.executors).insert(Name::from(name), Arc::new(executor));
    }

    /// Adds a Rust closure as the handler of activities and actors of that name, or replaces it.
    ///
    /// A panic in it becomes a fault that is retried. It is cut by dropping its future, so code that
    /// blocks belongs on `tokio::task::spawn_blocking`.
    pub fn register<F, I, O, Fut>(&mut self, name: &str, activity: F)
    where
        F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        Fut: Future<Output = Result<O, ActivityError>> + Send + 'static,
    {
        let name = Name::from(name);
        let closure = typed(&name, activity);
        Arc::make_mut(&mut self.handlers).add_closure(name, closure);
    }

    /// Adds a command or a URL as the handler of activities and actors of that name, or replaces
    /// it.
    pub fn register_handler(&mut self, name: &str, target: HandlerTarget) {
        Arc::make_mut(&mut self.handlers).add(Name::from(name), target);
    }

    /// This registry with the handlers that a workflow declares laid over its own. Connections
    /// and processes stay shared.
    #[must_use]
    pub fn with_handlers<'a>(&self, declared: impl IntoIterator<Item = &'a Handler>) -> Self {
        let mut layered = self.clone();
        for handler in declared {
            Arc::make_mut(&mut layered.handlers).add_declared(
                Arc::clone(&handler.name),
                handler.target.clone(),
                self.policy,
            );
        }
        layered
    }

    /// This registry for a workflow that calls hosts no more often than this.
    #[must_use]
    pub fn with_rates(&self, rates: &[HostRate]) -> Self {
        Self {
            rates: rates.into(),
            ..self.clone()
        }
    }

    /// How often its workflow calls a host.
    #[must_use]
    pub fn rates(&self) -> &[HostRate] {
        &self.rates
    }

    /// What guests may do; without this nothing.
    pub fn set_guest_policy(&mut self, policy: Policy) {
        self.guest_policy = policy;
    }

    /// What workflows of an origin may do.
    #[must_use]
    pub fn policy_of(&self, origin: Origin) -> Policy {
        match origin {
            Origin::Operator => Policy::TRUSTED,
            Origin::Guest => self.guest_policy,
        }
    }

    /// This registry for a program of this origin and format. Handlers that the operator gave stay as they
    /// are; what a workflow declares after this is bound by its policy.
    #[must_use]
    pub fn of(&self, origin: Origin, dialect: Dialect) -> Self {
        let policy = self.policy_of(origin);
        // TEA reads the environment freely, and who may run commands sees it anyway.
        let free = dialect == Dialect::Tea && policy.shell;
        Self {
            policy,
            context: ExecutionContext {
                origin,
                ..self.context.clone()
            },
            secrets: self.secrets.of_guest(origin == Origin::Guest).reading(free),
            ..self.clone()
        }
    }

    /// Whose program it is for.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.context.origin
    }

    /// This registry for runs that were started in a folder: relative paths in shell commands,
    /// handlers, scripts and `appendFile` are from there, wherever the engine itself is.
    #[must_use]
    pub fn in_folder(mut self, folder: Option<&Path>) -> Self {
        self.context.folder = folder.map(Arc::from);
        self
    }

    /// Sets whether an attempt may have been started before, by a process that no longer exists. Without
    /// this, any attempt may.
    #[must_use]
    pub fn with_replayed(mut self, replayed: bool) -> Self {
        self.context.replayed = replayed;
        self
    }

    /// This registry for attempts whose commands report their output while they run.
    #[must_use]
    pub fn with_output_listener(mut self, listener: Listener) -> Self {
        self.context.listener = Some(listener);
        self
    }

    /// The state directory of the engine that this is for: no action writes in its store.
    pub fn set_state(&mut self, state: &Path) {
        self.context.state = Some(Arc::from(state));
        self.secrets.set_callbacks(Callbacks::of(state));
    }

    /// Whether a file of stubs answers instead of what actions call.
    #[must_use]
    pub fn has_stubs(&self) -> bool {
        self.handlers.has_stubs()
    }

    /// The addresses that answer signals.
    #[must_use]
    pub fn callbacks(&self) -> &Callbacks {
        self.secrets.callbacks()
    }

    /// Where values of workflows between their runs are; without this, no action reads or writes one.
    pub fn set_shared_state(&mut self, state: Arc<dyn SharedState>) {
        self.context.shared = Some(state);
    }

    /// Sends the trace context to callees: `traceparent` of W3C Trace Context.
    pub fn set_traced(&mut self, traced: bool) {
        self.context.traced = traced;
    }

    /// One with the state directory, the store and the tracing of another: itself, when it has them.
    #[must_use]
    pub fn in_engine(mut this: Arc<Self>, other: &Self) -> Arc<Self> {
        let (here, there) = (&this.context, &other.context);
        let is_same = match (&here.shared, &there.shared) {
            (Some(here), Some(there)) => Arc::ptr_eq(here, there),
            (None, None) => true,
            _ => false,
        };
        if here.state != there.state || here.traced != there.traced || !is_same {
            let context = &mut Arc::make_mut(&mut this).context;
            context.state.clone_from(&other.context.state);
            context.shared.clone_from(&other.context.shared);
            context.traced = other.context.traced;
        }
        this
    }

    /// Where secrets come from; without this, systemd's credentials and the environment.
    pub fn set_secrets(&mut self, sources: SecretSources) {
        self.secrets.set_sources(sources);
    }

    /// Which secrets workflows of guests may name; a `*` matches any text. Without this none.
    pub fn allow_guest_secrets(&mut self, patterns: Vec<String>) {
        self.secrets.allow_guest_secrets(patterns);
    }

    /// Which variables of the environment expressions may read, besides those that they may
    /// already; a `*` matches any text.
    pub fn allow_env(&mut self, patterns: &[String]) {
        self.secrets.allow_env(patterns);
    }

    /// Whether the program may read this variable of the environment.
    #[must_use]
    pub fn can_read_env(&self, variable: &str) -> bool {
        self.secrets.can_read_env(variable)
    }

    /// Whether workflows of guests may name this secret.
    #[must_use]
    pub fn allows_guest_secret(&self, name: &str) -> bool {
        self.secrets.allows_guest_secret(name)
    }

    /// Where secrets come from.
    #[must_use]
    pub fn secret_sources(&self) -> &SecretSources {
        self.secrets.sources()
    }

    /// This registry for the actions of a program, with the secrets that each names.
    #[must_use]
    pub fn with_secrets(mut self, uses: BTreeMap<Name, Vec<Name>>) -> Self {
        self.secrets = self.secrets.used_by(uses);
        self
    }

    /// This registry for the actions of a program, with those of which something is secure.
    #[must_use]
    pub fn with_secure(mut self, actions: BTreeSet<Name>) -> Self {
        self.secure = Arc::new(actions);
        self
    }

    /// Those of this registry, then those of handlers.
    pub fn executor_names(&self) -> impl Iterator<Item = &str> {
        let own = self.executors.keys().map(|name| &**name);
        own.chain(Handlers::EXECUTORS)
    }

    /// Whether anything answers an action that asks for this handler: the handler, or a stub for it
    /// or for the action.
    #[must_use]
    pub fn answers(&self, handler: &str, action: &str) -> bool {
        self.handlers.answers(handler, action)
    }

    /// Whether a stub answers a call to a server.
    #[must_use]
    pub fn stubs_http(&self, action: &str) -> bool {
        self.handlers.stubs_http(action)
    }

    /// The actions and handlers that a stub answers for.
    pub fn stub_names(&self) -> impl Iterator<Item = &str> {
        self.handlers.stub_names()
    }

    /// The names of all handlers of activities and actors, in order.
    pub fn handler_names(&self) -> impl Iterator<Item = &str> {
        self.handlers.names()
    }

    /// One attempt of one action. Dropping the future cuts it.
    pub async fn execute(&self, request: &Request) -> Result<Value, Fault> {
        match secure::revealed(request) {
            None => self.resolve_secrets(request, Vec::new()).await,
            Some(revealed) => {
                let masks = vec![Arc::clone(&revealed.mask)];
                revealed.outcome(self.resolve_secrets(&revealed.request, masks).await)
            }
        }
    }

    /// One attempt with the secrets that it names; `masks` find what is secure in its inputs.
    async fn resolve_secrets(
        &self,
        request: &Request,
        mut masks: Vec<Arc<Mask>>,
    ) -> Result<Value, Fault> {
        let quiet = !masks.is_empty() || self.secure.contains(&request.action);
        self.secrets.fetch(request).await?;
        let opened = self.secrets.open(request)?;
        match opened {
            None => self.in_working_context(request, masks, quiet).await,
            Some(ResolvedSecrets { request, mask }) => {
                masks.push(Arc::clone(&mask));
                mask.outcome(self.in_working_context(&request, masks, quiet).await)
            }
        }
    }

    /// One attempt that knows where it is, and whether it is the first.
    async fn in_working_context(
        &self,
        request: &Request,
        secrets: Vec<Arc<Mask>>,
        quiet: bool,
    ) -> Result<Value, Fault> {
        let here = ExecutionContext {
            secrets,
            quiet,
            ..self.context.clone()
        };
        here.scope(self.attempt(request)).await
    }

    /// The host and port that a request goes to, as far as that is known before.
    #[must_use]
    pub fn host(&self, request: &Request) -> Option<Name> {
        let executor = self.executor(&request.executor)?;
        let url = match request.inputs.has_secure() {
            false => executor.destination(request),
            true => executor.destination(&Request {
                inputs: request.inputs.revealed(),
                ..request.clone()
            }),
        }?;
        let port = url.port_or_known_default()?;
        Some(Name::from(format!("{}:{port}", url.host_str()?)))
    }

    /// The name that the inputs of a request have as `rate`, shortened if it is long. A digest replaces a secure one.
    #[must_use]
    pub fn rate_name(&self, request: &Request) -> Option<Name> {
        let named = request.rate()?;
        let text = scalar(RATE, &named.revealed()).ok().flatten();
        let text = text.filter(|text| !text.is_empty())?;
        Some(match named.has_secure() {
            true => Name::from(format!("secure-{}", short_digest(&text))),
            false if text.len() > LONGEST_RATE_NAME => {
                let digest = short_digest(&text);
                Name::from(format!("{}-{digest}", first_chars(&text, SHOWN_RATE_NAME)))
            }
            false => Name::from(text),
        })
    }

    async fn attempt(&self, request: &Request) -> Result<Value, Fault> {
        if let Some(named) = request.rate()
            && scalar(RATE, &named.revealed())?.is_none_or(|name| name.is_empty())
        {
            return Err(invalid("`rate` is empty: it is the name of a rate limit"));
        }
        if let Some(flag) = self.policy.denies(&request.executor) {
            let message = format!("`{}` is not allowed here: {flag}", request.executor);
            return Err(Fault::new(fault_kind::DENIED, message));
        }
        if let Some(flag) = self
            .policy
            .denies_inputs(&request.executor, &request.inputs)
        {
            let message = format!("`{}` may not use files here: {flag}", request.executor);
            return Err(Fault::new(fault_kind::DENIED, message));
        }
        if let Some(what) = untrusted::denied(self.policy, request) {
            return Err(Fault::new(fault_kind::DENIED, what));
        }
        if &*request.executor == "http" {
            if let Some(answer) = self.handlers.instead_of_http(request) {
                return answer;
            }
            // Boxed: else each attempt of any action has room for it.
            let signed = Box::pin(identity::signed(&self.handlers, request)).await?;
            if let Some(signed) = signed {
                return self.run_executor(&signed).await;
            }
        }
        self.run_executor(request).await
    }

    async fn run_executor(&self, request: &Request) -> Result<Value, Fault> {
        let Some(executor) = self.executor(&request.executor) else {
            let names = self.executor_names();
            return Err(unknown("executor", &request.executor, names));
        };
        let limit = self.timeout_of(executor, request);
        let attempt = catch_panic(&request.action, || executor.execute(request));
        let outcome = match limit {
            None => attempt.await,
            Some(limit) => tokio::time::timeout(limit, attempt)
                .await
                .unwrap_or_else(|_| Err(timeout_fault(limit))),
        };
        enforce_result_limits(outcome)
    }

    /// How long an attempt may take. A guest that waits for an event without an end would hold its place for ever.
    fn timeout_of(&self, executor: &dyn Executor, request: &Request) -> Option<Duration> {
        let own = executor.timeout(request);
        match self.origin() {
            Origin::Guest if request.reads_events() => own.or(Some(DEFAULT_TIMEOUT)),
            Origin::Guest | Origin::Operator => own,
        }
    }

    fn executor(&self, name: &str) -> Option<&dyn Executor> {
        if !self.policy.private_network
            && let Some(executor) = self.guests.get(name)
        {
            return Some(&**executor);
        }
        if Handlers::EXECUTORS.contains(&name) {
            return Some(&*self.handlers);
        }
        self.executors.get(name).map(AsRef::as_ref)
    }
}

fn executor(name: &str, executor: impl Executor) -> (Name, Arc<dyn Executor>) {
    (Name::from(name), Arc::new(executor))
}

/// The executors that call servers, with this client.
#[cfg_attr(not(feature = "tea"), allow(unused_variables, unused_mut))]
fn callers(client: &Arc<Client>, processes: &Arc<Processes>, prolog: &Arc<Prolog>) -> Executors {
    let mut executors = Executors::new();
    #[cfg(feature = "http")]
    executors.extend([executor("http", Http::new(Arc::clone(client)))]);
    #[cfg(feature = "llm")]
    let ai = Arc::new(Ai::new(Arc::clone(client), Arc::clone(processes)));
    #[cfg(feature = "tea")]
    executors.extend([
        executor("reflection.evaluate", Evaluate::new(Arc::clone(&ai))),
        executor(
            "validate.extraction",
            Extraction::new(Arc::clone(prolog), Arc::clone(&ai)),
        ),
    ]);
    #[cfg(feature = "llm")]
    executors.insert(Name::from("ai"), ai);
    executors
}

/// The feature that an executor belongs to, where this build was made without it.
#[must_use]
pub fn required_feature(executor: &str) -> Option<&'static str> {
    match executor {
        "ai" if !cfg!(feature = "llm") => Some("llm"),
        "http" if !cfg!(feature = "http") => Some("http"),
        _ => None,
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("executors", &self.executor_names().collect::<Vec<_>>())
            .field("handlers", &self.handler_names().collect::<Vec<_>>())
            .finish()
    }
}

fn timeout_fault(limit: Duration) -> Fault {
    let message = format!("the attempt took longer than {limit:?}");
    Fault::new(fault_kind::TIMEOUT, message).transient()
}

/// Polls an attempt so that a panic in it becomes the fault of this attempt only.
async fn catch_panic<'a>(
    action: &str,
    start: impl FnOnce() -> Attempt<'a>,
) -> Result<Value, Fault> {
    let mut attempt =
        catch_unwind(AssertUnwindSafe(start)).map_err(|payload| panic_fault(action, &*payload))?;
    poll_fn(|context| {
        // Unwind safety: an attempt that panicked is never polled again.
        catch_unwind(AssertUnwindSafe(|| attempt.as_mut().poll(context)))
            .unwrap_or_else(|payload| Poll::Ready(Err(panic_fault(action, &*payload))))
    })
    .await
}

fn panic_fault(action: &str, payload: &(dyn Any + Send)) -> Fault {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Fault::new(fault_kind::HANDLER, format!("`{action}` panicked: {text}")).transient()
}

/// The result of an action, if it is within the limits for storage.
fn enforce_result_limits(outcome: Result<Value, Fault>) -> Result<Value, Fault> {
    match outcome {
        Ok(value) => match limit_violation(&value) {
            Some(why) => Err(Fault::new(
                fault_kind::TOO_LARGE,
                format!("what the action gave {why}"),
            )),
            None => Ok(value),
        },
        Err(fault) => Err(Fault {
            output: fault
                .output
                .filter(|output| limit_violation(output).is_none()),
            ..fault
        }),
    }
}

fn limit_violation(value: &Value) -> Option<String> {
    if !value.depth_within(MAX_ACTION_DEPTH) {
        return Some(format!("nests deeper than {MAX_ACTION_DEPTH} levels"));
    }
    let too_large = !value.fits_in_bytes(MAX_RESULT_BYTES);
    too_large.then(|| format!("has more than {MAX_RESULT_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::{Dialect, HandlerTarget, Origin, Registry, Value};
    use crate::asking;
    use std::time::Duration;

    fn default_timeout(registry: &Registry, executor: &str, inputs: &str) -> Option<Duration> {
        let request = asking(executor, inputs);
        let executor = registry.executor(executor).unwrap();
        registry.timeout_of(executor, &request)
    }

    #[test]
    fn only_what_speaks_http_has_a_timeout_of_its_own() {
        let mut registry = Registry::new();
        registry.register_handler("url", HandlerTarget::Url("http://x".into()));
        registry.register_handler("command", HandlerTarget::Command(vec!["x".into()]));
        registry.register("closure", |_, _: Value| async { Ok(Value::Null) });
        let own = Some(Duration::from_secs(100));
        for (executor, inputs, expected) in [
            ("http", "{}", own),
            ("activity", r#"{"activityType": "url"}"#, own),
            ("shell", "{}", None),
            ("actor", r#"{"actorType": "command"}"#, None),
            ("activity", r#"{"activityType": "closure"}"#, None),
            ("activity", r#"{"activityType": "unknown"}"#, None),
        ] {
            let given = default_timeout(&registry, executor, inputs);
            assert_eq!(given, expected, "{executor} {inputs}");
        }
        // A stream has none, unless it is that of a guest.
        let guest = registry.of(Origin::Guest, Dialect::Loom);
        for (registry, expected) in [(&registry, None), (&guest, own)] {
            let given = default_timeout(registry, "http", r#"{"events": true}"#);
            assert_eq!(given, expected);
        }
    }
}
