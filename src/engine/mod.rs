//! The use cases: load a workflow, start, resume, pause and cancel runs, look at them. The face of
//! the library; the server and the command line use nothing else.

mod backup;
mod calendar;
mod code;
pub mod doctor;
mod error;
mod files;
mod follow;
mod heads;
mod idempotent_start;
mod inspect;
mod load;
mod missing;
mod named;
#[cfg(feature = "http")]
mod otlp;
mod prune;
mod rehearsal;
pub mod report;
mod retry;
mod run;
mod runs;
mod schedule;
mod shape;
mod stubs;

pub use backup::{BackedUp, Compacted, Migrated, compact, migrate, restore};
pub use code::ErrorCode;
pub use error::{EngineError, LoadError};
pub use follow::{Began, Follower, Notice};
pub use heads::{Head, Heads};
pub use idempotent_start::{REQUEST_LABEL, Started, own_labels};
pub use inspect::Inspector;
pub use load::{LoadOptions, Workflow, load, load_bundle, load_text, read_file};
pub use named::PutIf;
#[cfg(feature = "http")]
pub use otlp::OtlpTarget;
#[cfg(feature = "temporal")]
pub use prune::chosen_to_prune;
pub use prune::{PruneFilter, Pruned};
pub use rehearsal::{Rehearsal, Rehearsed, RehearsedStep, What, rehearse};
pub use retry::FAILED_ITEMS;
pub use run::{Run, RunFailure};
#[cfg(feature = "temporal")]
pub use runs::Stored;
pub use runs::{Inspect, Runs};
pub use stubs::{Stubs, stubs, stubs_of, workflows_of};

pub use crate::action::{ActivityContext, ActivityError, OutputStream, Registry, SecretSources};
pub use crate::diagnostic::{Diagnostics, Fix, TerminalText, drives_terminals, visible};
pub use crate::dialect::json_schema;
/// Which format a workflow has, as far as that is to be seen.
pub use crate::dialect::{Caps, of as dialect_of};
pub use crate::expression::{
    Context, MAX_MEMORY, Object, Subject, TryError, Value, evaluate_line, inexact_json,
    memory_of_json, memory_of_yaml, over_memory,
};
pub use crate::machine::{HistoryEvent, IterationRow, LoopEnd, LoopState, RunStatus};
pub use crate::model::{Answer, Dialect, HandlerTarget, Name, Origin, Policy, Status, sha256};
pub use crate::program::{Detail, Graph, Node, Open, View, dot, graph, mermaid, picture, svg};
pub use crate::scheduler::{Limits, Metrics, Printed, ScheduleError, now};
pub use crate::source::{Bundle, SourceFile};
pub use crate::store::{QUARANTINE_LABEL, StateKey, StoreError, StoreKind};
pub use crate::time::{Timestamp, format_duration, parse_duration};

use crate::machine::Event;
use crate::scheduler::{Loaded, Loader, Scheduler, Start, Watcher, watch};
use crate::store::{self, MemoryStore, Store};
use error::existing;
use load::Workflows;
use named::Compiled;
use runs::Local;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ulid::Ulid;

/// Connects to runs that others keep. It is given what compiles their sources, and the workflows that
/// are kept under names.
pub(crate) type Connect =
    dyn Fn(Arc<dyn Loader>, Arc<dyn Inspect>) -> Result<Arc<dyn Runs>, EngineError> + Send + Sync;

/// How often it is looked whether the store is still where it was.
const LOOK: Duration = Duration::from_secs(1);

/// What an engine is made from.
#[derive(Default)]
pub struct EngineBuilder {
    registry: Registry,
    caps: Caps,
    limits: Limits,
    commands_only: bool,
    key: Option<StateKey>,
    store: Option<StoreKind>,
    #[cfg(feature = "http")]
    otlp: Option<OtlpTarget>,
}

impl EngineBuilder {
    /// Sends a span of each run, iteration and attempt to a collector, and tells whom an action calls which
    /// span calls it (`traceparent`). Spans never keep a run waiting: some may be lost.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn otlp(mut self, target: OtlpTarget) -> Self {
        self.registry.set_traced(true);
        self.otlp = Some(target);
        self
    }

    /// Seals secure values in the store with this key; without it they lie there readable.
    #[must_use]
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.key = Some(key);
        self
    }

    /// A Rust closure that carries out activities and actors of this name. Its input is decoded from
    /// the action's input, what it gives is the action's output; both by serde. A panic in it is a
    /// failure that is retried. An attempt is cut by dropping its future, so code that blocks belongs on
    /// `tokio::task::spawn_blocking`.
    ///
    /// ```
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

    /// A command or URL that carries out activities and actors of this name.
    #[must_use]
    pub fn register_handler(mut self, name: &str, target: HandlerTarget) -> Self {
        self.registry.register_handler(name, target);
        self
    }

    /// Where secrets come from; without this, the credentials that systemd hands over and the
    /// environment (`WINDLASS_SECRET_NAME`).
    #[must_use]
    pub fn secrets(mut self, sources: SecretSources) -> Self {
        self.registry.set_secrets(sources);
        self
    }

    /// Which secrets workflows from elsewhere may name; a `*` stands for any text. Without this
    /// none.
    #[must_use]
    pub fn guest_secrets(mut self, patterns: Vec<String>) -> Self {
        self.registry.let_guests_name(patterns);
        self
    }

    /// The variables of the environment that expressions may read; a `*` stands for any text.
    /// Without this none, but for TEA files of the operator.
    #[must_use]
    pub fn allow_env(mut self, patterns: &[String]) -> Self {
        self.registry.let_read(patterns);
        self
    }

    /// Raises or lowers the cap on the count of a loop.
    #[must_use]
    pub fn max_count(mut self, count: u64) -> Self {
        self.caps.count = Some(count);
        self
    }

    /// Raises or lowers the cap on the timeout of a loop.
    #[must_use]
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.caps.timeout = Some(timeout);
        self
    }

    /// What workflows from elsewhere may do, such as those that come over HTTP; without this
    /// [`Policy::GUEST`]: nothing. It counts for every action that starts here, whatever was allowed
    /// where its run began.
    #[must_use]
    pub fn guest_policy(mut self, policy: Policy) -> Self {
        self.registry.let_guests(policy);
        self
    }

    /// How much goes on at a time, and how large things may get.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// An engine that only takes commands to runs: it stores what they change and never moves a
    /// run. For a store that no other process owns.
    #[must_use]
    pub fn commands_only(mut self) -> Self {
        self.commands_only = true;
        self
    }

    /// The database that keeps the store. Without this it is sled, or whatever keeps one that is there.
    #[must_use]
    pub fn store(mut self, kind: StoreKind) -> Self {
        self.store = Some(kind);
        self
    }

    /// Opens the store in a directory, making it when it is not there. Runs that a crash left are
    /// not touched before [`Engine::recover`]. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`EngineError::Store`]: locked by another process, damaged, not writable.
    pub fn open(mut self, dir: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let store = store::open(dir.as_ref(), self.store)?;
        self.registry.set_state(dir.as_ref());
        self.with_store(store)
    }

    /// Opens a store that exists, as [`EngineBuilder::open`] does.
    ///
    /// # Errors
    /// [`EngineError::NoStore`], and those of [`EngineBuilder::open`].
    pub fn open_existing(self, dir: impl AsRef<Path>) -> Result<Engine, EngineError> {
        existing(dir.as_ref())?;
        self.open(dir)
    }

    /// An engine that keeps its runs in memory: for tests, and for what need not survive.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub fn in_memory(self) -> Result<Engine, EngineError> {
        self.with_store(Arc::new(MemoryStore::default()))
    }

    /// An engine on a store of any kind.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub fn with_store(self, store: Arc<dyn Store>) -> Result<Engine, EngineError> {
        self.assemble(store, None)
    }

    /// Turns stored sources into programs again, with the executors of this builder.
    #[cfg(feature = "temporal")]
    pub(crate) fn loader(self) -> Arc<dyn Loader> {
        Arc::new(self.workflows())
    }

    /// An engine whose runs others keep. The store in `dir` has only the workflows that are kept under
    /// names; without one there are none.
    ///
    /// # Errors
    /// Store errors, [`EngineError::Thread`], and what connecting fails with.
    #[cfg(feature = "temporal")]
    pub(crate) fn elsewhere(
        mut self,
        dir: Option<&Path>,
        connect: &Connect,
    ) -> Result<Engine, EngineError> {
        let store = match dir {
            Some(dir) => {
                self.registry.set_state(dir);
                store::open(dir, self.store)?
            }
            None => Arc::new(MemoryStore::default()),
        };
        self.assemble(store, Some(connect))
    }

    fn workflows(self) -> Workflows {
        Workflows {
            registry: self.registry,
            caps: self.caps,
            definition: files::Beside::default(),
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
        // Others carry the runs out: nothing can be missing here.
        self.commands_only |= connect.is_some();
        #[cfg(feature = "http")]
        let exporter = self.otlp.take().map(otlp::Exporter::start).transpose()?;
        #[cfg(feature = "http")]
        let spans = exporter.as_ref().map(otlp::Exporter::sink);
        #[cfg(not(feature = "http"))]
        let spans = None;
        let workflows = Arc::new(self.workflows());
        let tasks = tokio::runtime::Handle::try_current().map_err(|_| EngineError::NoRuntime)?;
        let scheduler = Scheduler::new(
            store.clone(),
            workflows.clone(),
            tasks,
            limits,
            commands_only,
            spans,
        )
        .map_err(EngineError::Thread)?;
        let local = Arc::new(Local::new(scheduler, store.clone()));
        let runs: Arc<dyn Runs> = match connect {
            Some(connect) => connect(workflows.clone(), local.inspect())?,
            None => local.clone(),
        };
        let (changes, _) = tokio::sync::watch::channel(());
        let tell = changes.clone();
        runs.inspect()
            .on_change(Arc::new(move || tell.send_modify(|()| ())));
        Ok(Engine {
            changes,
            inspector: Inspector::new(runs.inspect()),
            changed: tokio::sync::Notify::new(),
            runs,
            local,
            workflows,
            store,
            compiled: Compiled::default(),
            #[cfg(feature = "http")]
            exporter,
        })
    }
}

/// An engine on one store.
pub struct Engine {
    /// A workflow was put.
    changed: tokio::sync::Notify,
    /// A run changed after it was asked which ones did.
    changes: tokio::sync::watch::Sender<()>,
    inspector: Inspector,
    runs: Arc<dyn Runs>,
    /// The same, for what only runs of this process have: recovery, draining, metrics.
    local: Arc<Local>,
    workflows: Arc<Workflows>,
    store: Arc<dyn Store>,
    compiled: Compiled,
    #[cfg(feature = "http")]
    exporter: Option<otlp::Exporter>,
}

/// How a run is started, beyond its workflow and input.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartOptions {
    /// The run's id; none: the workflow's name and a ULID.
    pub id: Option<String>,
    /// What the run is marked with.
    pub labels: BTreeMap<String, String>,
}

impl StartOptions {
    /// The run's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Marks the run.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}

impl Engine {
    /// What an engine is made from.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Marked when a run changed after [`Inspector::heads`] was asked.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads a workflow from a file, and the files that it names from the same folder.
    ///
    /// # Errors
    /// [`LoadError`]: the file cannot be read, or is refused with all of its mistakes.
    pub fn load_file(
        &self,
        path: impl AsRef<Path>,
        dialect: Option<Dialect>,
    ) -> Result<Workflow, LoadError> {
        self.workflows.load_file(path.as_ref(), dialect)
    }

    /// Reads a workflow from text; `path` is its name in diagnostics.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_text(&self, path: &str, text: &str) -> Result<Workflow, LoadError> {
        let bundle = Bundle::single(path, text);
        self.workflows.load_bundle(bundle, None, None)
    }

    /// Reads a workflow from the texts of all its files, with options of its own: caps, handlers,
    /// dialect. Nothing is read from disk.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_bundle(
        &self,
        bundle: Bundle,
        options: &LoadOptions,
    ) -> Result<Workflow, LoadError> {
        self.workflows
            .with(options)
            .load_bundle(bundle, None, options.dialect)
    }

    /// Starts a run. When this returns, its first step is durable.
    ///
    /// # Errors
    /// [`EngineError::Input`] when the input is not what the workflow declares; store errors.
    pub async fn start(&self, workflow: &Workflow, input: Value) -> Result<Run, EngineError> {
        self.start_with(workflow, input, StartOptions::default())
            .await
    }

    /// Starts a run with an id or labels of the caller's.
    ///
    /// # Errors
    /// As [`Engine::start`]; [`crate::scheduler::ScheduleError::Exists`] when the id is taken.
    pub async fn start_with(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
    ) -> Result<Run, EngineError> {
        let (watcher, updates) = watch();
        let run = self
            .start_watched(workflow, input, options, Some(watcher))
            .await?;
        Ok(Run::new(run, updates, self.inspector.clone()))
    }

    /// Starts a run that nobody follows; gives its id.
    ///
    /// # Errors
    /// Those of [`Engine::start_with`].
    pub async fn launch(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
    ) -> Result<Name, EngineError> {
        self.start_watched(workflow, input, options, None).await
    }

    async fn start_watched(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
        watcher: Option<Watcher>,
    ) -> Result<Name, EngineError> {
        let input = workflow.accept(input)?;
        let id = options
            .id
            .unwrap_or_else(|| new_id(&workflow.loaded.program.name));
        let run = Name::from(id);
        let mut loaded = workflow.loaded.clone();
        // It may have been loaded without an engine.
        loaded.registry = Registry::in_engine(loaded.registry, &self.workflows.registry);
        let start = Start {
            run: run.clone(),
            loaded,
            source: workflow.source.clone(),
            input,
            from: None,
            environment: environment(&workflow.loaded),
            labels: options.labels,
            watcher,
        };
        self.runs.start(start).await?;
        Ok(run)
    }

    /// Goes on with every run that a crash or a stop left unfinished; with `paused`, also with
    /// those that were paused. Gives their ids.
    ///
    /// # Errors
    /// Store errors.
    pub async fn recover(&self, paused: bool) -> Result<Vec<Name>, EngineError> {
        Ok(self.local.scheduler.recover(paused).await?)
    }

    /// Goes on with one run that is paused, or that a crash left. One that runs is left alone.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn resume(&self, run: &str) -> Result<RunStatus, EngineError> {
        self.runs.deliver(run, Event::Resumed).await
    }

    /// Pauses a run: effects in flight may end, nothing new starts, its clock stands still.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn pause(&self, run: &str) -> Result<RunStatus, EngineError> {
        self.runs.deliver(run, Event::PauseRequested).await
    }

    /// Ends a run as cancelled; effects in flight are cut.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn cancel(&self, run: &str) -> Result<RunStatus, EngineError> {
        self.runs.deliver(run, Event::CancelRequested).await
    }

    /// The same as a command that may come twice: one that was cancelled already is.
    pub(crate) async fn cancel_again(&self, run: &str) -> Result<RunStatus, EngineError> {
        match self.cancel(run).await {
            Err(EngineError::Schedule(ScheduleError::Ended {
                status: status @ RunStatus::Cancelled,
                ..
            })) => Ok(status),
            outcome => outcome,
        }
    }

    /// Sends a signal to a run. One that comes before anything waits for it is kept.
    ///
    /// # Errors
    /// [`EngineError::NoSignal`] when nothing in its workflow waits for one of this name;
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn signal(
        &self,
        run: &str,
        name: &str,
        payload: Value,
    ) -> Result<RunStatus, EngineError> {
        let event = Event::Signalled {
            name: Name::from(name),
            payload,
        };
        self.runs.deliver(run, event).await
    }

    /// A handle on a run that exists: its updates from now on, and its result.
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub async fn handle(&self, run: &str) -> Result<Run, EngineError> {
        let (watcher, updates) = watch();
        let header = self.runs.follow(run, watcher).await?;
        Ok(Run::new(header.id, updates, self.inspector.clone()))
    }

    /// Follows a run that exists. With `events`, its history after that sequence number comes
    /// first (0: all of it).
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub async fn follow(&self, run: &str, events: Option<u64>) -> Result<Follower, EngineError> {
        let printed = self.local.scheduler.printing().listen(run);
        let handle = self.handle(run).await?;
        let inspector = self.inspector.clone();
        Ok(Follower::new(handle, inspector, events, printed))
    }

    /// The last lines that commands of a run have printed which run now, at most 64 KiB of each.
    #[doc(hidden)]
    #[must_use]
    pub fn printed(&self, run: &str) -> Vec<Printed> {
        self.local.scheduler.printing().recent(run)
    }

    /// Waits until the store is not where it was opened any more, which is looked at once a second;
    /// gives what became of it.
    #[doc(hidden)]
    pub async fn lost(&self) -> EngineError {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(error) = self.in_place().await {
                return error;
            }
        }
    }

    /// Whether the store is still where it was opened. Without that nothing is acknowledged any more.
    ///
    /// # Errors
    /// [`StoreError::Gone`].
    #[doc(hidden)]
    pub async fn in_place(&self) -> Result<(), EngineError> {
        let store = Arc::clone(&self.store);
        // A disk that hangs is asked for as long as it takes.
        let looked = tokio::task::spawn_blocking(move || store.in_place()).await;
        looked.map_or(Ok(()), |looked| Ok(looked?))
    }

    /// Looks into the store, also while runs go on.
    #[doc(hidden)]
    #[must_use]
    pub fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    /// What it counts while runs go on.
    #[doc(hidden)]
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.local.scheduler.metrics()
    }

    /// How many effects are in flight.
    pub async fn in_flight(&self) -> usize {
        self.local.scheduler.in_flight().await
    }

    /// Starts nothing new from now on, and waits until what is in flight has ended and is stored.
    /// Commands to runs are still taken.
    pub async fn drain(&self) {
        self.local.scheduler.drain().await;
    }

    /// Stops. What is in flight is cut, and repeated with the same keys by whoever recovers.
    pub async fn stop(&self) {
        self.local.scheduler.stop().await;
        #[cfg(feature = "http")]
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }
}

/// What a program reads of the environment and keeps: what is not set, or may not be read, is not
/// there.
fn environment(loaded: &Loaded) -> Value {
    let names = loaded.program.environment.iter();
    let names = names.filter(|name| loaded.registry.reads(name));
    let set =
        names.filter_map(|name| Some((name.clone(), Value::from(std::env::var(&**name).ok()?))));
    Value::from_pairs(set)
}

/// A new run's id, `name-ULID`: sorts by time within a workflow.
#[must_use]
pub fn new_id(workflow: &str) -> String {
    format!("{}-{}", run_name(workflow), Ulid::generate())
}

/// What stands before the ULID of an id that Windlass made; none of one that somebody chose.
#[must_use]
pub fn made_name(id: &str) -> Option<&str> {
    let (name, ulid) = id.rsplit_once('-')?;
    Ulid::from_string(ulid).is_ok().then_some(name)
}

/// What the id of a workflow's run begins with: a letter or a digit, because a word that begins
/// with `-` is an option on a command line.
fn run_name(workflow: &str) -> String {
    let tame = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let tamed: String = workflow.chars().take(40).map(tame).collect();
    match tamed.trim_start_matches(['-', '_']) {
        "" => String::from("run"),
        name => name.to_owned(),
    }
}
