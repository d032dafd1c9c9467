//! The executors and handlers by name, with what an attempt may do and use.

mod attempt;

use super::Executor;
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
use super::handler::Handlers;
use super::http::Client;
#[cfg(feature = "http")]
use super::http::Http;
use super::inputs::scalar;
use super::live::Listener;
#[cfg(feature = "llm")]
use super::llm::Ai;
use super::process::Processes;
#[cfg(feature = "tea")]
use super::reflection::Evaluate;
#[cfg(feature = "tea")]
use super::schema::{DataValidate, ValidateSchema};
#[cfg(feature = "lua")]
use super::script::Lua;
use super::script::{Prolog, Python};
use super::secrets::{SecretSources, Secrets};
use super::shell::Shell;
use super::state::{SharedState, StateAction};
use super::stub::Stubs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use windlass_model::model::{
    Dialect, GET_STATE, Handler, HandlerTarget, HostRate, Name, Origin, Policy, RATE, Request,
    SET_STATE, short_digest,
};
use windlass_value::first_chars;

/// Maximum length in bytes of a rate's name. A longer name is shortened to [`SHOWN_RATE_NAME`] letters and a digest.
const LONGEST_RATE_NAME: usize = 200;
const SHOWN_RATE_NAME: usize = 64;

type Executors = BTreeMap<Name, Arc<dyn Executor>>;

/// Executors and handlers by name. A clone shares both, so cloning is cheap.
#[derive(Clone)]
pub struct Registry {
    executors: Arc<Executors>,
    handlers: Arc<Handlers>,
    /// The rate limits of the workflow: how often it may call each host.
    rates: Arc<[HostRate]>,
    /// Executors that reach only the public internet, for guests (workflows from HTTP or MCP).
    guests: Arc<Executors>,
    secrets: Secrets,
    /// What guests' workflows may do.
    guest_policy: Policy,
    /// What the actions of this registry may do.
    policy: Policy,
    context: ExecutionContext,
    /// The actions that have secure inputs or outputs.
    secure: Arc<BTreeSet<Name>>,
}

impl Registry {
    /// A registry with the executors of Windlass, except those of disabled features. It has no handlers.
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

    /// Adds an executor, or replaces the executor of that name. The executors `activity`, `actor`, `connector` and
    /// `runner` cannot be replaced.
    pub fn register_executor(&mut self, name: &str, executor: impl Executor) {
        Arc::make_mut(&mut self.executors).insert(Name::from(name), Arc::new(executor));
    }

    /// Adds a Rust closure as the handler of activities and actors of that name, or replaces that handler.
    ///
    /// A panic in the closure becomes a fault that is retried. Aborting an attempt drops the closure's future, so run
    /// blocking code with `tokio::task::spawn_blocking`.
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

    /// Adds a command or a URL as the handler of activities and actors of that name, or replaces that handler.
    pub fn register_handler(&mut self, name: &str, target: HandlerTarget) {
        Arc::make_mut(&mut self.handlers).add(Name::from(name), target);
    }

    /// Returns this registry with a workflow's own handlers, which replace handlers of the same name. Connections and
    /// processes remain shared with this registry.
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

    /// Returns this registry for a workflow whose actions have these titles. A stub may be named by a title.
    #[must_use]
    pub fn with_titles<'a>(mut self, titles: impl Iterator<Item = (&'a Name, &'a str)>) -> Self {
        if self.has_stubs() {
            Arc::make_mut(&mut self.handlers)
                .stubs_mut()
                .add_titles(titles);
        }
        self
    }

    /// Returns this registry for a workflow that calls each host at most at these rates.
    #[must_use]
    pub fn with_rates(&self, rates: &[HostRate]) -> Self {
        Self {
            rates: rates.into(),
            ..self.clone()
        }
    }

    /// Returns how often the workflow of this registry may call each host.
    #[must_use]
    pub fn rates(&self) -> &[HostRate] {
        &self.rates
    }

    /// Sets what guests' workflows may do. By default, they may do nothing.
    pub fn set_guest_policy(&mut self, policy: Policy) {
        self.guest_policy = policy;
    }

    /// Returns what workflows of an origin may do.
    #[must_use]
    pub fn policy_of(&self, origin: Origin) -> Policy {
        match origin {
            Origin::Operator => Policy::TRUSTED,
            Origin::Guest => self.guest_policy,
        }
    }

    /// Returns this registry for a program of this origin and format. The policy of the origin limits handlers that are
    /// declared after this call. The operator's own handlers are unchanged.
    #[must_use]
    pub fn of(&self, origin: Origin, dialect: Dialect) -> Self {
        let policy = self.policy_of(origin);
        // A TEA program (The Edge Agent) may read every environment variable if it may also run commands, because a
        // command can read them anyway.
        let has_full_env = dialect == Dialect::Tea && policy.shell;
        Self {
            policy,
            context: ExecutionContext {
                origin,
                ..self.context.clone()
            },
            secrets: Secrets {
                of_guest: origin == Origin::Guest,
                has_full_env,
                ..self.secrets.clone()
            },
            ..self.clone()
        }
    }

    /// Returns the origin of the program that this registry is for.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.context.origin
    }

    /// Returns this registry for runs that were started in a folder. Relative paths in shell commands, handlers,
    /// scripts and `appendFile` are relative to this folder, not to the working directory of the engine.
    #[must_use]
    pub fn in_folder(mut self, folder: Option<&Path>) -> Self {
        self.context.folder = folder.map(Arc::from);
        self
    }

    /// Sets whether an earlier process, which no longer exists, may have begun the attempt. By default, true.
    #[must_use]
    pub fn with_replayed(mut self, replayed: bool) -> Self {
        self.context.replayed = replayed;
        self
    }

    /// Returns this registry with a listener, which receives the output of commands while they run.
    #[must_use]
    pub fn with_output_listener(mut self, listener: Listener) -> Self {
        self.context.listener = Some(listener);
        self
    }

    /// Sets the engine's state directory. No action may write to the store in this directory.
    pub fn set_state(&mut self, state: &Path) {
        self.context.state = Some(Arc::from(state));
        self.secrets.callbacks = Callbacks::of(state);
    }

    /// Returns true if this registry has stubs: answers from a file that replace calls.
    #[must_use]
    pub fn has_stubs(&self) -> bool {
        !self.handlers.stubs().is_empty()
    }

    /// Returns the stubs, which answer calls whether or not a handler is registered.
    #[must_use]
    pub fn stubs(&self) -> &Stubs {
        self.handlers.stubs()
    }

    /// Returns true if a stub answers this call, so that it has no effect.
    #[must_use]
    pub fn is_stubbed(&self, request: &Request) -> bool {
        self.handlers.stubs().has_stub_for(request)
    }

    /// Returns the callbacks: the addresses at which requests can send signals to a run.
    #[must_use]
    pub fn callbacks(&self) -> &Callbacks {
        &self.secrets.callbacks
    }

    /// Sets where values that workflows share between runs are stored. By default, no action can use them.
    pub fn set_shared_state(&mut self, state: Arc<dyn SharedState>) {
        self.context.shared = Some(state);
    }

    /// Sets whether called services receive the trace context: `traceparent` of W3C Trace Context.
    pub fn set_traced(&mut self, traced: bool) {
        self.context.traced = traced;
    }

    /// Returns `this` with the state directory, the store and the tracing of `other`. If `this` has them already, it is
    /// returned without a copy.
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

    /// Sets where secrets are read from. By default, they are read from the credentials that systemd passes and from
    /// the environment.
    pub fn set_secrets(&mut self, sources: SecretSources) {
        self.secrets.sources = sources;
    }

    /// Sets which secrets guests' workflows may name; a `*` matches any text. By default, none.
    pub fn allow_guest_secrets(&mut self, patterns: Vec<String>) {
        self.secrets.for_guests = Arc::new(patterns);
    }

    /// Adds variables of the environment that expressions may read; a `*` matches any text.
    pub fn allow_env(&mut self, patterns: &[String]) {
        Arc::make_mut(&mut self.secrets.readable).extend_from_slice(patterns);
    }

    /// Returns true if the program may read this variable of the environment.
    #[must_use]
    pub fn can_read_env(&self, variable: &str) -> bool {
        self.secrets.can_read_env(variable)
    }

    /// Returns true if guests' workflows may name this secret.
    #[must_use]
    pub fn allows_guest_secret(&self, name: &str) -> bool {
        self.secrets.allows_guest_secret(name)
    }

    /// Returns where secrets are read from.
    #[must_use]
    pub fn secret_sources(&self) -> &SecretSources {
        &self.secrets.sources
    }

    /// Returns this registry for a program. `uses` has, for each action, the names of the secrets that it uses.
    #[must_use]
    pub fn with_secrets(mut self, uses: BTreeMap<Name, Vec<Name>>) -> Self {
        self.secrets.uses = Arc::new(uses);
        self
    }

    /// Returns this registry for a program. `actions` are the actions with secure inputs or outputs.
    #[must_use]
    pub fn with_secure(mut self, actions: BTreeSet<Name>) -> Self {
        self.secure = Arc::new(actions);
        self
    }

    /// Returns the names of this registry's executors, then those of the handlers' executors.
    pub fn executor_names(&self) -> impl Iterator<Item = &str> {
        let own = self.executors.keys().map(|name| &**name);
        own.chain(Handlers::EXECUTORS)
    }

    /// Returns true if this handler is registered, or a stub has its name.
    #[must_use]
    pub fn answers(&self, handler: &str) -> bool {
        self.handlers.answers(handler)
    }

    /// Returns true if a stub answers the calls of this action. `handlers` are the names of its handler, if it has one.
    #[must_use]
    pub fn has_stub(&self, executor: &str, handlers: &[&str], action: &str) -> bool {
        self.handlers.stubs().has_stub(executor, handlers, action)
    }

    /// Returns the names of all stubs.
    pub fn stub_names(&self) -> impl Iterator<Item = &str> {
        self.handlers.stubs().names()
    }

    /// Returns the names of all handlers of activities and actors, sorted.
    pub fn handler_names(&self) -> impl Iterator<Item = &str> {
        self.handlers.names()
    }

    /// Returns the host and port to which a request will be sent, if they are known before the attempt.
    #[must_use]
    pub fn host(&self, request: &Request) -> Option<Name> {
        if self.is_stubbed(request) {
            return None;
        }
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

    /// Returns the name of the rate limit in the input `rate` of a request. A long name is shortened, and a secure
    /// value becomes a digest.
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

/// Makes the executors that call servers. They use this client.
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

/// Returns the feature that an executor needs, if this build lacks that feature.
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
