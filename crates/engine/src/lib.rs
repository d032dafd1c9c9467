//! The use cases: load a workflow, start, resume, pause, cancel and inspect runs. The server and the command line
//! use nothing behind it.
//!
//! [`scheduler`] drives the runs of this process: it feeds events to the machine, makes each step durable, and only
//! then does what the step asks for. [`RunBackend`] is what an engine that keeps its runs elsewhere implements.
//!
//! It knows no HTTP server and no command line.
//!
//! The most important types: [`Engine`], [`EngineBuilder`], [`Run`], [`RunBackend`], [`EngineError`].
//!
//! Test it alone with `cargo test -p windlass-engine`.

// Not published for others: where the name says all, nothing is added.
#![allow(missing_docs)]
// What only the features that are left out would use.
#![cfg_attr(
    not(all(feature = "http", feature = "metrics", feature = "tea")),
    allow(dead_code, unused_imports)
)]

pub mod scheduler;

mod actor;
mod audit;
mod backup;
mod builder;
mod calendar;
mod called;
mod code;
pub mod doctor;
mod error;
mod event_start;
mod files;
mod folder_start;
mod follow;
mod idempotent_start;
mod inspect;
mod launch;
mod load;
mod missing;
mod named;
#[cfg(feature = "http")]
mod otlp;
mod prune;
pub mod report;
mod retry;
mod run;
mod run_index;
mod runs;
mod schedule;
mod shape;
mod simulate;
mod state;
mod stubs;
mod turns;
mod workflow;

pub use actor::Actor;
pub use audit::{AUDIT_DONE, AuditEntry, AuditFilter, AuditLog, AuditReport, audit};
pub use backup::{BackedUp, Compacted, Migrated, compact, migrate, restore};
pub use builder::{Connect, EngineBuilder};
#[doc(hidden)]
pub use called::result as call_result;
pub use code::ErrorCode;
pub use error::{EngineError, LoadError, is_full};
pub use event_start::{Delivery, SavedWebhook, SignedDelivery};
pub use folder_start::{SeenFiles, WatchingWorkflows};
pub use follow::{ActionBegan, Follower, Notice, Retry};
pub use idempotent_start::{REQUEST_LABEL, Started, own_labels};
pub use inspect::Inspector;
pub use load::{LoadOptions, load, load_bundle, load_text, read_file};
pub use named::PutIf;
#[cfg(feature = "http")]
pub use otlp::OtlpTarget;
pub use prune::{PruneFilter, Pruned};
pub use prune::{ROWS, ROWS_LOCK, chosen_to_prune, run_of_rows};
pub use retry::FAILED_ITEMS;
pub use run::{Run, RunFailure};
pub use run_index::{RunIndex, RunIndexEntry};
pub use runs::StoreReader;
pub use runs::{Extent, RunBackend, RunReader};
pub use simulate::{SimulatedStep, SimulatedStepKind, SimulationReport, SimulationSpec, simulate};
pub use state::StateCondition;
pub use stubs::{Stubs, stubs, stubs_of, workflows_of};
pub use workflow::Workflow;

pub use crate::scheduler::{Limits, Metrics, OutputLine, ScheduleError, now};
pub use windlass_actions::{
    ActivityContext, ActivityError, CALLBACK_PATH, Callbacks, OutputStream, Registry,
    SecretSources, replace_private_file,
};
pub use windlass_draw::{Detail, Graph, Node, Open, View, dot, graph, mermaid, picture, svg};
use windlass_expression::excerpt;
pub use windlass_expression::{
    Context, MAX_MEMORY, Object, Subject, TryError, Value, evaluate_line, inexact_json,
    memory_of_json, memory_of_yaml, over_memory,
};
pub use windlass_formats::json_schema;
/// Which format a workflow has, as far as that is to be seen.
pub use windlass_formats::{Caps, of as dialect_of};
pub use windlass_machine::{
    HistoryEvent, HistoryKind, IterationRow, LoopEnd, LoopState, RunStatus, Signal,
};
pub use windlass_model::model::{
    CHOICE, CallbackClaim, Dialect, HandlerTarget, HostRate, Name, Origin, Policy, Rate, Status,
    StubAnswer, TURN_SIGNAL, name_of_part, path_part, sha256,
};
pub use windlass_source::diagnostic::{Diagnostics, Fix, TerminalText, drives_terminals, visible};
pub use windlass_source::source::{Bundle, SourceFile};
use windlass_store::MAX_RUN_ID;
pub use windlass_store::{QUARANTINE_LABEL, StateKey, StoreError, StoreKind};
pub use windlass_value::time::{
    Timestamp, format_duration, human_duration, parse_duration, shown_duration,
};

use crate::scheduler::{Loaded, watch};
use follow::FirstNotice;
use launch::Launcher;
use runs::LocalBackend;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub use turns::CONCURRENCY_LABEL;
use ulid::Ulid;
use windlass_machine::Event;

/// How often it is looked whether the store is still where it was.
const LOOK: Duration = Duration::from_secs(1);

/// An engine on one store.
pub struct Engine {
    /// A workflow was put.
    changed: tokio::sync::watch::Sender<()>,
    /// A run changed after the last read of the changed runs.
    changes: tokio::sync::watch::Sender<()>,
    launcher: Arc<Launcher>,
    /// The runs of this process: recovery, draining, metrics.
    local: Arc<LocalBackend>,
    /// The directory with the store; none for one in memory.
    state: Option<PathBuf>,
    #[cfg(feature = "http")]
    exporter: Option<otlp::Exporter>,
}

/// How a run is started, beyond its workflow and input.
#[derive(Clone, Debug, Default)]
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

    /// Marked when a run changed after the last call of [`Inspector::heads`].
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
        self.launcher.workflows.load_file(path.as_ref(), dialect)
    }

    /// Reads a workflow from text; `path` is its name in diagnostics.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_text(&self, path: &str, text: &str) -> Result<Workflow, LoadError> {
        let bundle = Bundle::single(path, text);
        self.launcher.workflows.load_bundle(bundle, None, None)
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
        self.launcher
            .workflows
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
        let watcher = Some(watcher);
        let run = self.launcher.start(workflow, input, options, watcher);
        let run = run.await?;
        Ok(Run::new(run, updates, self.launcher.inspector.clone()))
    }

    /// Starts a run that no one follows; returns its id.
    ///
    /// # Errors
    /// Those of [`Engine::start_with`].
    pub async fn launch(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
    ) -> Result<Name, EngineError> {
        self.launcher.start(workflow, input, options, None).await
    }

    /// Continues every run that a crash or a stop left unfinished; with `paused`, also
    /// those that were paused. Gives their ids.
    ///
    /// # Errors
    /// Store errors.
    pub async fn recover(&self, paused: bool) -> Result<Vec<Name>, EngineError> {
        let runs = self.local.scheduler.recover(paused).await?;
        if self.launcher.turns.is_some() {
            tokio::runtime::Handle::current().spawn(self.launcher.recover());
        }
        Ok(runs)
    }

    /// Continues one run that is paused, or that a crash left. One that runs is left alone.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn resume(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self.launcher.runs.deliver(run, Event::Resumed).await?;
        if let Some(turns) = &self.launcher.turns
            && turns.has_key(run)
        {
            turns.give().await?;
        }
        for child in self.launcher.children_of(run)? {
            // It may have ended.
            let _ = Box::pin(self.resume(&child)).await;
        }
        Ok(status)
    }

    /// Pauses a run, and the runs that it waits for: effects in flight may end, nothing new starts, its clock stops.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn pause(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self
            .launcher
            .runs
            .deliver(run, Event::PauseRequested)
            .await?;
        for child in self.launcher.children_of(run)? {
            // It may have ended.
            let _ = Box::pin(self.pause(&child)).await;
        }
        Ok(status)
    }

    /// Cancels a run, and the runs that it waits for; effects in flight are aborted. If operations have `cancel`, it ends
    /// when their servers have answered; a second call ends it at once.
    ///
    /// # Errors
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn cancel(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self
            .launcher
            .runs
            .deliver(run, Event::CancelRequested)
            .await?;
        // It may have ended on its own in the same step.
        if status.is_final() && status != RunStatus::Cancelled {
            let run = Name::from(run);
            return Err(ScheduleError::Ended { run, status }.into());
        }
        Ok(status)
    }

    /// The same as a command that may come twice: one that was cancelled already is, and one that ends is waited for.
    #[doc(hidden)]
    pub async fn cancel_again(&self, run: &str) -> Result<RunStatus, EngineError> {
        if let Ok(stored) = self.launcher.inspector.load(run)
            && stored.state.is_cancelling()
        {
            return Ok(stored.state.status());
        }
        match self.cancel(run).await {
            Err(EngineError::Schedule(ScheduleError::Ended {
                status: status @ RunStatus::Cancelled,
                ..
            })) => Ok(status),
            outcome => outcome,
        }
    }

    /// Sends a signal to a run. One that arrives before anything waits for it is stored.
    ///
    /// # Errors
    /// [`EngineError::NoSignal`] when nothing in its workflow waits for one of this name;
    /// [`crate::scheduler::ScheduleError::RefusedAnswer`] when its question does not accept the payload;
    /// [`crate::scheduler::ScheduleError::Answered`] when the wait that it answers is over;
    /// [`crate::scheduler::ScheduleError::Ended`], store errors.
    pub async fn signal(&self, run: &str, signal: Signal) -> Result<RunStatus, EngineError> {
        let event = Event::Signalled(signal);
        self.launcher.runs.deliver(run, event).await
    }

    /// The addresses that answer signals without a token.
    #[must_use]
    pub fn callbacks(&self) -> &Callbacks {
        self.launcher.workflows.registry.callbacks()
    }

    /// A handle on a run that exists: its updates from now on, and its result.
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub async fn handle(&self, run: &str) -> Result<Run, EngineError> {
        let (watcher, updates) = watch();
        let header = self.launcher.runs.follow(run, watcher).await?;
        Ok(Run::new(
            header.id,
            updates,
            self.launcher.inspector.clone(),
        ))
    }

    /// Follows a run that exists. With `events`, its history after that sequence number comes
    /// first (0: all of it).
    ///
    /// # Errors
    /// Store errors, an unknown run.
    pub async fn follow(&self, run: &str, events: Option<u64>) -> Result<Follower, EngineError> {
        let printed = self.local.scheduler.printing().listen(run);
        let handle = self.handle(run).await?;
        let inspector = self.launcher.inspector.clone();
        let begin = FirstNotice::CurrentState;
        Ok(Follower::new(handle, inspector, events, printed, begin))
    }

    /// The same for a run that was started with this handle: its steps since then come in order.
    #[doc(hidden)]
    #[must_use]
    pub fn follow_from_start(&self, run: Run, events: Option<u64>) -> Follower {
        let printed = self.local.scheduler.printing().listen(run.id());
        let inspector = self.launcher.inspector.clone();
        Follower::new(run, inspector, events, printed, FirstNotice::FirstStep)
    }

    /// The last lines that commands of a run have printed which run now, at most 64 KiB of each.
    #[doc(hidden)]
    #[must_use]
    pub fn printed(&self, run: &str) -> Vec<OutputLine> {
        self.local.scheduler.printing().recent(run)
    }

    /// Waits until nothing can continue: the store is no longer where it was opened, which is checked
    /// once a second, or the driver has ended. Returns the reason.
    #[doc(hidden)]
    pub async fn lost(&self) -> EngineError {
        loop {
            tokio::select! {
                () = self.local.scheduler.ended() => return ScheduleError::Stopped.into(),
                () = tokio::time::sleep(LOOK) => {}
            }
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
        let store = Arc::clone(&self.launcher.store);
        // A disk that hangs is waited for without a limit.
        let looked = tokio::task::spawn_blocking(move || store.check_present()).await;
        looked.map_or(Ok(()), |looked| Ok(looked?))
    }

    /// Looks into the store, also while runs continue.
    #[doc(hidden)]
    #[must_use]
    pub fn inspector(&self) -> &Inspector {
        &self.launcher.inspector
    }

    /// What it counts while runs continue.
    #[doc(hidden)]
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.local.scheduler.metrics()
    }

    /// For how long its driver has done one and the same thing; none while it waits for something to do.
    #[doc(hidden)]
    #[must_use]
    pub fn stalled_for(&self) -> Option<std::time::Duration> {
        self.local.scheduler.stalled_for()
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

    /// Stops. What is in flight is aborted, and repeated with the same keys by the process that recovers.
    pub async fn stop(&self) {
        self.local.scheduler.stop().await;
        #[cfg(feature = "http")]
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }
}

/// What a program reads of the environment and keeps: what is not set, or may not be read, is not
/// there. And the scheduled time of a run with these labels.
fn environment(loaded: &Loaded, labels: &BTreeMap<String, String>) -> Value {
    let names = loaded.program.environment.iter();
    let names = names.filter(|name| loaded.registry.can_read_env(name));
    let set =
        names.filter_map(|name| Some((name.clone(), Value::from(std::env::var(&**name).ok()?))));
    Value::from_pairs(set.chain(schedule::schedule_of(&loaded.program, labels)))
}

/// Checks an id that a caller chose: it can be a key, a part of a path and of a header, and a word of a
/// command line.
///
/// # Errors
/// [`EngineError::Input`].
pub fn check_run_id(id: &str) -> Result<(), EngineError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:@+".contains(c);
    let length = (1..=MAX_RUN_ID).contains(&id.len());
    if length && !id.starts_with('-') && id.chars().all(fits) && !is_dots(id) {
        return Ok(());
    }
    Err(EngineError::Input(format!(
        "an id has 1 to {MAX_RUN_ID} letters, digits and -_.:@+, does not begin with -, and is not `.` or `..`: `{}`",
        excerpt(&Value::text(id))
    )))
}

/// What an address does not keep as it is.
fn is_dots(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// A new run's id, `name-ULID`: sorts by time within a workflow.
#[must_use]
pub fn new_id(workflow: &str) -> String {
    format!("{}-{}", run_name(workflow), Ulid::generate())
}

/// The part before the ULID of an id that Windlass made; none for an id that a caller chose.
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
