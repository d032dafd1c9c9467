//! The use cases: load a workflow, start, resume, pause, cancel and inspect runs. The server and the command line use
//! only these.
//!
//! [`scheduler`] drives the runs of this process: it passes events to the machine, makes each step durable, and only
//! then starts the effects of the step. A host that keeps its runs elsewhere, such as Temporal, implements
//! [`RunBackend`].
//!
//! This crate contains no HTTP server and no command line.
//!
//! The most important types: [`Engine`], [`EngineBuilder`], [`Run`], [`RunBackend`], [`EngineError`].
//!
//! Test it alone with `cargo test -p windlass-engine`.

// Only the exports of the crate `windlass` are a published library. So an item whose name says everything has no
// comment.
#![allow(missing_docs)]
// Without these features, some of the code is unused.
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
mod schedule_failures;
mod shape;
mod simulate;
mod state;
mod stubs;
mod turns;
mod workflow;

pub use actor::Actor;
pub use audit::{
    AUDIT_DONE, AuditEntry, AuditFilter, AuditLog, AuditReport, audit, check_audit_log,
};
pub use backup::{BackedUp, Compacted, Migrated, compact, migrate, restore};
pub use builder::{Connect, EngineBuilder};
#[doc(hidden)]
pub use called::result as call_result;
pub use code::ErrorCode;
pub use error::{EngineError, LoadError, is_full};
pub use event_start::{Delivery, SavedWebhook, SignedDelivery};
pub use folder_start::{SeenFiles, WatchingWorkflows};
pub use follow::{ActionBegan, Follower, Notice, Retry};
pub use idempotent_start::{
    KeyedStart, REQUEST_LABEL, RequestId, START_LABEL, Started, check_labels,
};
pub use inspect::Inspector;
pub use load::{LoadOptions, load, load_bundle, load_text, read_file};
pub use named::PutIf;
#[cfg(feature = "http")]
pub use otlp::OtlpTarget;
pub use prune::{PRINTED_ROWS, ROWS, ROWS_LOCK, chosen_to_prune};
pub use prune::{PruneFilter, Pruned};
pub use retry::{FAILED_ITEMS, RETRY_LABEL};
pub use run::{Run, RunFailure};
pub use run_index::{RunIndex, RunIndexEntry};
pub use runs::StoreReader;
pub use runs::{Extent, RunBackend, RunReader};
pub use simulate::{SimulatedStep, SimulatedStepKind, SimulationReport, SimulationSpec, simulate};
pub use stubs::{Stubs, stubs, stubs_of, workflows_of};
pub use workflow::{Workflow, check_refused_scripts};

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
/// Returns the format of a workflow, as far as it can be recognised.
pub use windlass_formats::{Caps, detect_dialect as dialect_of};
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
pub use windlass_store::{QUARANTINE_LABEL, StateCondition, StateKey, StoreError, StoreKind};
pub use windlass_value::check_unique;
pub use windlass_value::time::{
    Timestamp, format_duration, human_duration, parse_duration, shown_duration,
};

use crate::scheduler::{Loaded, watch};
use follow::FirstNotice;
use launch::Launcher;
use runs::LocalBackend;
use schedule_failures::ScheduleFailures;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub use turns::CONCURRENCY_LABEL;
use ulid::Ulid;
use windlass_machine::Event;

/// Interval of the checks that the store is still where it was opened.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An engine on one store.
pub struct Engine {
    /// Notified when a workflow was stored under a name.
    changed: tokio::sync::watch::Sender<()>,
    /// Notified at the first change of a run after each read of the changed runs.
    changes: tokio::sync::watch::Sender<()>,
    launcher: Arc<Launcher>,
    /// The runs of this process, for recovery, draining and metrics.
    local: Arc<LocalBackend>,
    /// The directory of the store. `None` for a store in memory.
    state: Option<PathBuf>,
    process_start: Timestamp,
    /// Why schedules start no runs.
    schedule_failures: ScheduleFailures,
    #[cfg(feature = "http")]
    exporter: Option<otlp::Exporter>,
}

/// Options for the start of a run.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// The run's id. By default the workflow's name and a ULID.
    pub id: Option<String>,
    pub labels: BTreeMap<String, String>,
}

impl StartOptions {
    /// Sets the run's id, instead of one that the engine makes.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}

impl Engine {
    /// Returns a builder for an engine.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Returns a receiver that is notified at the first change of a run after each call of [`Inspector::run_index`].
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads a workflow's file, and the files in its folder that it names.
    ///
    /// # Errors
    /// Returns [`LoadError`]. If the workflow is refused, the error has all of its mistakes.
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
    /// Returns [`LoadError`].
    pub fn load_text(&self, path: &str, text: &str) -> Result<Workflow, LoadError> {
        let bundle = Bundle::single(path, text);
        self.launcher.workflows.load_bundle(bundle, None, None)
    }

    /// Reads a workflow from the texts of all its files, and with `options` of its own. Reads nothing from disk.
    ///
    /// # Errors
    /// Returns [`LoadError`].
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
    /// Returns [`EngineError::Input`] if the workflow does not accept the input; store errors.
    pub async fn start(&self, workflow: &Workflow, input: Value) -> Result<Run, EngineError> {
        self.start_with(workflow, input, StartOptions::default())
            .await
    }

    /// Starts a run with an id or labels of the caller.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::start`], and [`crate::scheduler::ScheduleError::Exists`] if a run has the id.
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

    /// Starts a run without following it. Returns its id.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::start_with`].
    pub async fn launch(
        &self,
        workflow: &Workflow,
        input: Value,
        options: StartOptions,
    ) -> Result<Name, EngineError> {
        self.launcher.start(workflow, input, options, None).await
    }

    /// Continues every run that a crash or a stop left unfinished. Returns the ids of these runs.
    ///
    /// With `paused`, it also continues paused runs.
    ///
    /// # Errors
    /// Returns store errors.
    pub async fn recover(&self, paused: bool) -> Result<Vec<Name>, EngineError> {
        let runs = self.local.scheduler.recover(paused).await?;
        if self.launcher.turns.is_some() {
            tokio::runtime::Handle::current().spawn(self.launcher.recover());
        }
        Ok(runs)
    }

    /// Continues a run that is paused, or that a crash left, and its child runs. A running run is unchanged.
    ///
    /// # Errors
    /// Returns [`crate::scheduler::ScheduleError::Ended`] or store errors, also of a child run. Then the others are
    /// resumed nevertheless.
    pub async fn resume(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self.launcher.runs.deliver(run, Event::Resumed).await?;
        if let Some(turns) = &self.launcher.turns
            && turns.has_key(run)
        {
            turns.start_next_runs().await?;
        }
        let mut resumed = Ok(status);
        for child in self.launcher.children_of(run)? {
            resumed = resumed.and(unless_absent(Box::pin(self.resume(&child)).await, status));
        }
        resumed
    }

    /// Pauses a run and its child runs. Effects in flight may end. No new effect starts, and the run's clock stops.
    ///
    /// # Errors
    /// Returns [`crate::scheduler::ScheduleError::Ended`] or store errors, also of a child run. Then the others are
    /// paused nevertheless.
    pub async fn pause(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self
            .launcher
            .runs
            .deliver(run, Event::PauseRequested)
            .await?;
        let mut paused = Ok(status);
        for child in self.launcher.children_of(run)? {
            paused = paused.and(unless_absent(Box::pin(self.pause(&child)).await, status));
        }
        paused
    }

    /// Cancels a run and its child runs. Effects in flight are aborted. An operation may have a `cancel` request: then
    /// the run ends when the server has answered this request. A second call of this function ends the run at once.
    ///
    /// # Errors
    /// Returns [`crate::scheduler::ScheduleError::Ended`] or store errors.
    pub async fn cancel(&self, run: &str) -> Result<RunStatus, EngineError> {
        let status = self
            .launcher
            .runs
            .deliver(run, Event::CancelRequested)
            .await?;
        // The same step may have ended the run for another reason. Then the cancel came too late.
        if status.is_final() && status != RunStatus::Cancelled {
            let run = Name::from(run);
            return Err(ScheduleError::Ended { run, status }.into());
        }
        Ok(status)
    }

    /// Cancels a run like [`Engine::cancel`], for a command that may be repeated.
    ///
    /// It is not an error if the run was cancelled or is being cancelled.
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

    /// Sends a signal to a run. If nothing waits for the signal yet, it is stored.
    ///
    /// # Errors
    /// Returns [`ScheduleError::NoSignal`] if nothing in the workflow waits for a signal of this name;
    /// [`crate::scheduler::ScheduleError::RefusedAnswer`] if the question that the signal answers does not accept the
    /// payload; [`crate::scheduler::ScheduleError::Answered`] if the wait that the signal answers is over;
    /// [`crate::scheduler::ScheduleError::Ended`]; store errors.
    pub async fn signal(&self, run: &str, signal: Signal) -> Result<RunStatus, EngineError> {
        let event = Event::Signalled(signal);
        self.launcher.runs.deliver(run, event).await
    }

    /// Returns the callbacks: addresses at which a run accepts a signal without an API token.
    #[must_use]
    pub fn callbacks(&self) -> &Callbacks {
        self.launcher.workflows.registry.callbacks()
    }

    /// Returns whether secure values are encrypted in the store.
    #[must_use]
    pub fn encrypts_values(&self) -> bool {
        self.launcher.workflows.sealed
    }

    /// Returns a handle on an existing run. The handle receives the updates from now on, and the result.
    ///
    /// # Errors
    /// Returns store errors, including the error for an unknown run.
    pub async fn handle(&self, run: &str) -> Result<Run, EngineError> {
        let (watcher, updates) = watch();
        let header = self.launcher.runs.follow(run, watcher).await?;
        Ok(Run::new(
            header.id,
            updates,
            self.launcher.inspector.clone(),
        ))
    }

    /// Follows an existing run. With `events`, the follower first sends the history after this sequence number (0: the
    /// whole history).
    ///
    /// # Errors
    /// Returns store errors, including the error for an unknown run.
    pub async fn follow(&self, run: &str, events: Option<u64>) -> Result<Follower, EngineError> {
        let printed = self.local.scheduler.printing().listen(run);
        let handle = self.handle(run).await?;
        let inspector = self.launcher.inspector.clone();
        let begin = FirstNotice::CurrentState;
        Ok(Follower::new(handle, inspector, events, printed, begin))
    }

    /// Follows a run that was started with this handle. The follower sends all steps since the start, in order.
    #[doc(hidden)]
    #[must_use]
    pub fn follow_from_start(&self, run: Run, events: Option<u64>) -> Follower {
        let printed = self.local.scheduler.printing().listen(run.id());
        let inspector = self.launcher.inspector.clone();
        Follower::new(run, inspector, events, printed, FirstNotice::FirstStep)
    }

    /// Returns the last output of the run's running commands, at most 64 KiB for each command.
    #[doc(hidden)]
    #[must_use]
    pub fn printed(&self, run: &str) -> Vec<OutputLine> {
        self.local.scheduler.printing().recent(run)
    }

    /// Waits until the engine cannot continue, and returns the reason.
    ///
    /// There are two reasons: the store is no longer where it was opened (checked once a second), or the driver has
    /// ended.
    #[doc(hidden)]
    pub async fn lost(&self) -> EngineError {
        loop {
            tokio::select! {
                () = self.local.scheduler.ended() => return ScheduleError::Stopped.into(),
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            if let Err(error) = self.in_place().await {
                return error;
            }
        }
    }

    /// Checks that the store is still where it was opened. If it is not, the store acknowledges no commit any more.
    ///
    /// # Errors
    /// Returns [`StoreError::Gone`].
    #[doc(hidden)]
    pub async fn in_place(&self) -> Result<(), EngineError> {
        let store = Arc::clone(&self.launcher.store);
        // The check may hang with the disk, so it has a thread for blocking work.
        let looked = tokio::task::spawn_blocking(move || store.check_present()).await;
        looked.map_or(Ok(()), |looked| Ok(looked?))
    }

    /// Returns the reader of the store. It can read while runs continue.
    #[doc(hidden)]
    #[must_use]
    pub fn inspector(&self) -> &Inspector {
        &self.launcher.inspector
    }

    /// Returns the counters of the driver.
    #[doc(hidden)]
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.local.scheduler.metrics()
    }

    /// Returns for how long the driver has worked on the same message or step. `None` while it waits for work.
    #[doc(hidden)]
    #[must_use]
    pub fn stalled_for(&self) -> Option<std::time::Duration> {
        self.local.scheduler.stalled_for()
    }

    /// Returns the number of effects in flight.
    pub async fn in_flight(&self) -> usize {
        self.local.scheduler.in_flight().await
    }

    /// Starts nothing new from now on, and waits until all effects in flight have ended and are stored. Commands to
    /// runs are still accepted.
    pub async fn drain(&self) {
        self.local.scheduler.drain().await;
    }

    /// Stops the engine. Effects in flight are aborted; the process that recovers the store repeats them with the same
    /// idempotency keys.
    pub async fn stop(&self) {
        self.local.scheduler.stop().await;
        #[cfg(feature = "http")]
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }
}

/// Returns the values of the environment with which a run of this program starts.
///
/// These are the environment variables that the program reads, if they are set and may be read. For a run that a
/// schedule started (`labels`), they include its scheduled time.
fn environment(loaded: &Loaded, labels: &BTreeMap<String, String>) -> Value {
    let names = loaded.program.environment.iter();
    let names = names.filter(|name| loaded.registry.can_read_env(name));
    let set =
        names.filter_map(|name| Some((name.clone(), Value::from(std::env::var(&**name).ok()?))));
    Value::from_pairs(set.chain(schedule::schedule_of(&loaded.program, labels)))
}

/// An id that no run may have, because the HTTP API has a path of this name.
const RESERVED_ID: &str = "bulk";

/// Checks an id of a run that a caller chose.
///
/// # Errors
/// Returns [`EngineError::Input`].
pub fn check_run_id(id: &str) -> Result<(), EngineError> {
    if id == RESERVED_ID {
        let message = format!("the id `{id}` is reserved for `/v1/runs/{id}` of the HTTP API");
        return Err(EngineError::Input(message));
    }
    check_id(id)
}

/// Checks an id that a caller chose. An id must be usable as a key, as a part of a path and of a header, and as a word
/// on a command line.
///
/// # Errors
/// Returns [`EngineError::Input`].
pub fn check_id(id: &str) -> Result<(), EngineError> {
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

/// Returns whether clients would remove a name from a URL's path, because it is `.` or `..`.
fn is_dots(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// Makes the id of a new run, `name-ULID`. Ids sort by time within a workflow.
#[must_use]
pub fn new_id(workflow: &str) -> String {
    format!("{}-{}", run_name(workflow), Ulid::generate())
}

/// Returns the outcome of a command to a child run. It is `status`, the status of the parent, if the child run has ended
/// or has not started.
fn unless_absent(
    outcome: Result<RunStatus, EngineError>,
    status: RunStatus,
) -> Result<RunStatus, EngineError> {
    match outcome {
        Err(error) if !matches!(error.code(), ErrorCode::RunEnded | ErrorCode::UnknownRun) => {
            Err(error)
        }
        _ => Ok(status),
    }
}

/// Returns the part before the ULID of an id that Windlass made. `None` if a caller chose the id.
#[must_use]
pub fn made_name(id: &str) -> Option<&str> {
    let (name, ulid) = id.rsplit_once('-')?;
    Ulid::from_string(ulid).is_ok().then_some(name)
}

/// Returns the first part of the ids of a workflow's runs. It begins with a letter or a digit, because a word that
/// begins with `-` is an option on a command line.
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
