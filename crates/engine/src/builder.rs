//! What an engine is assembled from: executors and secrets, limits, and the store.

use super::error::existing;
use super::launch::Launcher;
use super::load::Workflows;
use super::runs::LocalBackend;
use super::state::StoreState;
use super::turns::Turns;
use super::{Engine, EngineError, Inspector, RunBackend, RunReader, files, now};
#[cfg(feature = "http")]
use super::{OtlpTarget, otlp};
use crate::scheduler::{CallWorkflow, Limits, Loader, Rates, Scheduler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use windlass_actions::{ActivityContext, ActivityError, Registry, SecretSources};
use windlass_formats::Caps;
use windlass_model::model::{HandlerTarget, HostRate, Origin, Policy};
use windlass_store::{MemoryStore, StateKey, Store, StoreKind};

/// Connects to a backend that has the runs.
///
/// The first argument compiles stored sources. The second one reads the store of the workflows that are stored under
/// names.
pub type Connect = dyn Fn(Arc<dyn Loader>, Arc<dyn RunReader>) -> Result<Arc<dyn RunBackend>, EngineError>
    + Send
    + Sync;

/// Assembles an engine.
#[derive(Default)]
pub struct EngineBuilder {
    registry: Registry,
    caps: Caps,
    limits: Limits,
    rates: Vec<HostRate>,
    /// The state directory. It contains the store.
    state: Option<PathBuf>,
    commands_only: bool,
    key: Option<StateKey>,
    store: Option<StoreKind>,
    #[cfg(feature = "http")]
    otlp: Option<OtlpTarget>,
}

impl EngineBuilder {
    /// Exports a span of each run, iteration and attempt to a collector. Also sends the span of the call to the called
    /// service (header `traceparent`). Runs never wait for the collector, so spans may be lost.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn otlp(mut self, target: OtlpTarget) -> Self {
        self.registry.set_traced(true);
        self.otlp = Some(target);
        self
    }

    /// Encrypts secure values in the store with this key. Without a key they are stored as plain text.
    #[must_use]
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Registers a Rust closure that carries out activities and actors of this name. The closure's argument is decoded
    /// from the action's input, and the action's output is encoded from its result; both with serde. A panic in the
    /// closure is a failure that is retried. An attempt is aborted by dropping its future, so run blocking code with
    /// `tokio::task::spawn_blocking`.
    ///
    /// ```
    /// # extern crate windlass_engine as windlass;
    /// # use serde::{Deserialize, Serialize};
    /// # use windlass::{ActivityError, Engine};
    /// #[derive(Deserialize)]
    /// struct Order {
    ///     amount: u32,
    /// }
    ///
    /// #[derive(Serialize)]
    /// struct Receipt {
    ///     number: String,
    /// }
    ///
    /// Engine::builder().register("charge", |ctx, order: Order| async move {
    ///     if order.amount == 0 {
    ///         return Err(ActivityError::permanent("there is nothing to charge"));
    ///     }
    ///     // A card network that knows the key charges once, however often this is repeated.
    ///     Ok(Receipt { number: ctx.idempotency_key })
    /// });
    /// ```
    #[must_use]
    pub fn register<F, I, O, Fut>(mut self, name: &str, activity: F) -> Self
    where
        F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        Fut: Future<Output = Result<O, ActivityError>> + Send + 'static,
    {
        self.registry.register(name, activity);
        self
    }

    /// Registers a command or URL that carries out activities and actors of this name.
    #[must_use]
    pub fn register_handler(mut self, name: &str, target: HandlerTarget) -> Self {
        self.registry.register_handler(name, target);
        self
    }

    /// Sets where secrets are read from. By default: the credentials that systemd passes, and the environment
    /// (`WINDLASS_SECRET_NAME`).
    #[must_use]
    pub fn secrets(mut self, sources: SecretSources) -> Self {
        self.registry.set_secrets(sources);
        self
    }

    /// Sets which secrets guest workflows (those from HTTP or MCP) may name. By default none.
    ///
    /// A `*` in a pattern matches any text.
    #[must_use]
    pub fn guest_secrets(mut self, patterns: Vec<String>) -> Self {
        self.registry.allow_guest_secrets(patterns);
        self
    }

    /// Sets which environment variables expressions may read.
    ///
    /// A `*` in a pattern matches any text. By default they may read none, except in TEA files (The Edge Agent) of the
    /// operator.
    #[must_use]
    pub fn allow_env(mut self, patterns: &[String]) -> Self {
        self.registry.allow_env(patterns);
        self
    }

    /// Sets the maximum number of iterations that a workflow may state for a loop.
    #[must_use]
    pub fn max_count(mut self, count: u64) -> Self {
        self.caps.count = Some(count);
        self
    }

    /// Sets the maximum timeout that a workflow may state for a loop.
    #[must_use]
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.caps.timeout = Some(timeout);
        self
    }

    /// Sets what guest workflows, those from HTTP or MCP, may do.
    ///
    /// By default [`Policy::GUEST`]: nothing. This policy applies to every action that this engine starts, even if
    /// another policy applied when the run began.
    #[must_use]
    pub fn guest_policy(mut self, policy: Policy) -> Self {
        self.registry.set_guest_policy(policy);
        self
    }

    /// Sets how many effects and runs may exist at a time, and how large states may get.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how often hosts may be called, over all runs. Rates in workflow files apply, too: for each host, the slower
    /// rate counts.
    #[must_use]
    pub fn rates(mut self, rates: Vec<HostRate>) -> Self {
        self.rates = rates;
        self
    }

    /// Makes an engine that only accepts commands to runs.
    ///
    /// It stores what the commands change and never advances a run. A command uses such an engine for a store that no
    /// process owns.
    #[must_use]
    pub fn commands_only(mut self) -> Self {
        self.commands_only = true;
        self
    }

    /// Sets the database of the store. By default sled, or the database of an existing store.
    #[must_use]
    pub fn store(mut self, kind: StoreKind) -> Self {
        self.store = Some(kind);
        self
    }

    /// Opens the store in a directory, or creates it. Call this inside a tokio runtime.
    ///
    /// Unfinished runs in the store are unchanged until [`Engine::recover`] is called.
    ///
    /// # Errors
    /// Returns [`EngineError::Store`] if the store is locked by another process, damaged or not writable.
    pub fn open(mut self, dir: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let store = windlass_store::open(dir.as_ref(), self.store)?;
        self.registry.set_state(dir.as_ref());
        self.state = Some(dir.as_ref().to_owned());
        self.with_store(store)
    }

    /// Opens an existing store, as [`EngineBuilder::open`] does.
    ///
    /// # Errors
    /// Returns [`EngineError::NoStore`], and the errors of [`EngineBuilder::open`].
    pub fn open_existing(self, dir: impl AsRef<Path>) -> Result<Engine, EngineError> {
        existing(dir.as_ref())?;
        self.open(dir)
    }

    /// Makes an engine that has its runs only in memory: for tests, and for runs that need not survive the process.
    ///
    /// # Errors
    /// Returns [`EngineError::Thread`].
    pub fn in_memory(self) -> Result<Engine, EngineError> {
        self.with_store(Arc::new(MemoryStore::default()))
    }

    /// Makes an engine on a store of any kind.
    ///
    /// # Errors
    /// Returns [`EngineError::Thread`].
    pub fn with_store(self, store: Arc<dyn Store>) -> Result<Engine, EngineError> {
        self.assemble(store, None)
    }

    /// Returns a loader that compiles stored sources, with the executors of this builder.
    #[doc(hidden)]
    pub fn loader(self) -> Arc<dyn Loader> {
        Arc::new(self.workflows())
    }

    /// Makes an engine whose runs are in another backend.
    ///
    /// The store in `dir` contains only the workflows that are stored under names. Without `dir` there are no such
    /// workflows.
    ///
    /// # Errors
    /// Returns store errors, [`EngineError::Thread`], and the error of `connect`.
    #[doc(hidden)]
    pub fn elsewhere(
        mut self,
        dir: Option<&Path>,
        connect: &Connect,
    ) -> Result<Engine, EngineError> {
        let store = match dir {
            Some(dir) => {
                self.registry.set_state(dir);
                windlass_store::open(dir, self.store)?
            }
            None => Arc::new(MemoryStore::default()),
        };
        self.assemble(store, Some(connect))
    }

    fn workflows(self) -> Workflows {
        Workflows {
            registry: self.registry,
            caps: self.caps,
            definition: files::WorkflowContext::default(),
            folder: None,
            origin: Origin::Operator,
            commands_only: self.commands_only,
            sealed: self.key.is_some(),
        }
    }

    fn assemble(
        mut self,
        store: Arc<dyn Store>,
        connect: Option<&Connect>,
    ) -> Result<Engine, EngineError> {
        if let Some(key) = self.key.clone() {
            store.seal_with(Arc::new(key));
        }
        let (limits, commands_only) = (self.limits, self.commands_only);
        let state = self.state.clone();
        let rates = Rates::new(std::mem::take(&mut self.rates), state.as_deref());
        // The other backend executes the runs, so a handler that this process lacks is not missing.
        self.commands_only |= connect.is_some();
        #[cfg(feature = "http")]
        let exporter = self.otlp.take().map(otlp::Exporter::start).transpose()?;
        #[cfg(feature = "http")]
        let spans = exporter.as_ref().map(otlp::Exporter::sink);
        #[cfg(not(feature = "http"))]
        let spans = None;
        let shared = StoreState(Arc::downgrade(&store));
        self.registry.set_shared_state(Arc::new(shared));
        let workflows = Arc::new(self.workflows());
        let tasks = tokio::runtime::Handle::try_current().map_err(|_| EngineError::NoRuntime)?;
        let handle = tasks.clone();
        let scheduler = Scheduler::new(
            store.clone(),
            workflows.clone(),
            tasks,
            limits,
            rates,
            commands_only,
            spans,
        )
        .map_err(EngineError::Thread)?;
        let local = Arc::new(LocalBackend::new(scheduler, store.clone()));
        let runs: Arc<dyn RunBackend> = match connect {
            Some(connect) => connect(workflows.clone(), local.inspect())?,
            None => local.clone(),
        };
        let (changes, _) = tokio::sync::watch::channel(());
        let sender = changes.clone();
        runs.inspect()
            .on_change(Arc::new(move || sender.send_modify(|()| ())));
        let inspector = Inspector::new(runs.inspect());
        let turns = connect
            .is_none()
            .then(|| Turns::new(inspector.clone(), Arc::clone(&runs)));
        if let Some(turns) = &turns {
            handle.spawn(turns.follow(changes.subscribe()));
        }
        let launcher = Arc::new(Launcher {
            inspector,
            runs,
            turns,
            workflows,
            store,
            compiled: RwLock::default(),
            called: Mutex::default(),
        });
        let caller: Arc<dyn CallWorkflow> = launcher.clone();
        local.scheduler.set_caller(&caller);
        Ok(Engine {
            changes,
            changed: tokio::sync::watch::Sender::new(()),
            launcher,
            local,
            state,
            process_start: now(),
            schedule_failures: super::ScheduleFailures::default(),
            #[cfg(feature = "http")]
            exporter,
        })
    }
}
