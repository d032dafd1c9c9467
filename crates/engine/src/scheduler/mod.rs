//! The driver: it passes events to the machine, makes each step durable, and only then starts the effects of the step.
//!
//! ```text
//!   commands, completions ─▶ inbox of a run ─▶ advance ─▶ group ─▶ store.commit ─▶ release
//!   timers ────────────────▶                                          (one sync)      │
//!        ▲                                                                            │
//!        └──────────────── tasks of executors, armed timers ◀─────────────────────────┘
//! ```
//!
//! One thread owns all runs. A **group** is the commits of several runs that are written together. While the thread
//! writes a group to the store, the messages for the next group wait in its channel. So a lone commit is never delayed,
//! and a thousand commits share one sync. This module owns the clock and the tasks; it never interprets a program.

mod active;
mod breaker;
mod buffers;
mod children;
mod clock;
mod commits;
mod compute;
mod driver;
mod effects;
mod executed;
mod guest_memory;
mod limiter;
mod manual;
#[cfg_attr(not(feature = "metrics"), path = "metrics_off.rs")]
mod metrics;
mod outage;
mod printed;
mod pulse;
mod rate_window;
mod rates;
mod recovery;
mod run_log;
mod timers;
mod traces;
mod wait_registry;
mod watch;
mod writers;

use children::WorkflowCaller;
pub(crate) use children::{CallWorkflow, ChildCall};
#[doc(hidden)]
pub use children::{PARENT_LABEL, child_id};
pub use clock::now;
pub use limiter::Limits;
pub use manual::{ManualDriver, ReplyReceiver};
pub use metrics::Metrics;
pub use printed::{OutputLine, OutputLog};
pub use rates::{RateLimitWait, Rates, remove_old_rates};
pub use recovery::{STUBS_LABEL, check_stubs};
pub use traces::{SpanSink, TraceSpan};
pub use wait_registry::{Queued, WaitRegistry};
pub use watch::{Update, Updates, Watcher, Watchers, watch};

use crate::error::{did_you_mean_suffix, listed_names};
use effects::{EffectRuntime, OwnRuntime};
use pulse::Pulse;
use traces::Traces;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_machine::program::{Program, ProgramHash};
use windlass_machine::{
    Event, HistoryEvent, LoopState, RunState, RunStatus, Signal, SignalRefusal,
};
use windlass_model::model::{Fault, Name, Request, fault_kind};
use windlass_store::{ProgramSource, RunHeader, Store, StoreError};

/// A program that is ready to run, with the executors that its workflow may call.
#[derive(Clone)]
pub struct Loaded {
    pub program: Arc<Program>,
    /// The executors of the workflow's actions.
    pub registry: Arc<Registry>,
}

/// Compiles stored sources. The engine implements this trait, because it knows the dialects.
pub trait Loader: Send + Sync + 'static {
    /// Compiles a stored source.
    ///
    /// # Errors
    /// Returns the reason, in words, if this version of the engine cannot run the workflow.
    fn load(&self, hash: ProgramHash, source: &ProgramSource) -> Result<Loaded, String>;

    /// Compiles the source of a run that is only loaded to be ended. None of the run's actions starts, so it is not an
    /// error if this process lacks something that they need.
    ///
    /// # Errors
    /// Returns the reason, in words, if this version of the engine cannot compile the source.
    fn load_to_end(&self, hash: ProgramHash, source: &ProgramSource) -> Result<Loaded, String> {
        self.load(hash, source)
    }

    /// Returns, in words, what this process lacks to carry out a cancel of a run. `None` if it lacks nothing.
    fn missing_to_cancel(&self, _source: &ProgramSource) -> Option<String> {
        None
    }

    /// Returns the [`Start`] of the child run that a call requests. Only a backend whose runs store all sources that
    /// they need calls this.
    ///
    /// # Errors
    /// Returns the call's fault if the run cannot be started.
    fn child(&self, _caller: &CallingRun<'_>, _call: &Request) -> Result<Start, Fault> {
        let message = "this engine cannot start workflows of other workflows";
        Err(Fault::new(fault_kind::WORKFLOW, message))
    }
}

/// A run that calls another workflow, and its sources.
pub struct CallingRun<'a> {
    pub run: &'a Name,
    pub labels: &'a BTreeMap<String, String>,
    pub source: &'a ProgramSource,
    pub saved: &'a BTreeMap<Name, ProgramSource>,
}

/// Checks whether a run accepts a signal.
#[doc(hidden)]
pub fn check_signal(
    name: &Name,
    program: &Program,
    run: &RunState,
    signal: &Signal,
) -> Result<(), ScheduleError> {
    let (run_id, signal_name) = (name.clone(), signal.name.clone());
    windlass_machine::check_signal(program, run, signal).map_err(|refusal| match refusal {
        SignalRefusal::Unknown(known) => ScheduleError::NoSignal {
            run: run_id,
            name: signal_name,
            known,
        },
        SignalRefusal::Answer(reason) => ScheduleError::RefusedAnswer {
            run: run_id,
            name: signal_name,
            reason,
        },
        SignalRefusal::Answered => ScheduleError::Answered {
            run: run_id,
            name: signal_name,
        },
        SignalRefusal::IdReused(id) => ScheduleError::SignalIdReused { run: run_id, id },
    })
}

/// Why a command to the scheduler failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The store could not read or write.
    #[error("{0}")]
    Store(Arc<StoreError>),
    /// The run's stored program cannot be loaded.
    #[error("run {run} cannot be loaded: {reason}")]
    Unloadable { run: Name, reason: String },
    /// Secure values of the run are sealed with a key that this process does not have.
    #[error(
        "run {0} has secure values encrypted with a key that this process does not have: pass the \
         key with --state-key FILE and resume the run"
    )]
    Sealed(Name),
    /// The run has ended.
    #[error("run {run} has ended: it is {}", status.as_str())]
    Ended { run: Name, status: RunStatus },
    /// Nothing in the run's workflow waits for a signal of this name.
    #[error(
        "run {run} waits for no signal `{name}`; its workflow waits for {}{}",
        listed_names(known),
        did_you_mean_suffix(name, known)
    )]
    NoSignal {
        run: Name,
        name: Name,
        /// The signals that the run's workflow waits for.
        known: Vec<Name>,
    },
    /// The question that the signal answers does not accept the answer.
    #[error("run {run} does not accept this answer to `{name}`: {reason}")]
    RefusedAnswer {
        run: Name,
        name: Name,
        /// The reason: which answers the question accepts.
        reason: String,
    },
    /// The wait that the signal answers is over: it received another answer, or its time was over.
    #[error("run {run} does not wait for this `{name}` any more")]
    Answered {
        run: Name,
        /// The name of the signal.
        name: Name,
    },
    /// The run has received another signal with the same id.
    #[error(
        "run {run} has received another signal with the id `{id}`: only a repetition, with the same name and payload, \
         may have it"
    )]
    SignalIdReused {
        run: Name,
        /// The sender's id of the signal.
        id: Name,
    },
    /// A run with this id exists already.
    #[error("there is a run {0} already")]
    Exists(Name),
    /// The engine failed at this run, because of a bug or a panic.
    #[error("the engine failed at run {run}: {reason}")]
    Broken { run: Name, reason: String },
    /// The engine has as many runs or commands as its limits allow. The caller may try again later.
    #[error("engine at capacity, retry later")]
    Busy,
    /// The scheduler has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

impl ScheduleError {
    /// Returns whether the store is the cause of the error, and not a run.
    fn is_of_store(&self) -> bool {
        let Self::Store(reason) = self else {
            return false;
        };
        matches!(
            **reason,
            StoreError::Io(_) | StoreError::Gone { .. } | StoreError::Failed { .. }
        )
    }
}

impl From<StoreError> for ScheduleError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// A durable step, as watchers receive it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The history events of the step.
    pub history: Vec<HistoryEvent>,
    /// The loops that the step changed.
    pub loops: Vec<LoopState>,
    pub header: RunHeader,
}

/// A run to be started.
pub struct Start {
    pub run: Name,
    pub loaded: Loaded,
    /// The source that the program was compiled from.
    pub source: ProgramSource,
    pub input: Value,
    /// The environment variables that the program reads and their values, as an object.
    pub environment: Value,
    /// The state to continue from. `None`: the run starts at its beginning.
    pub from: Option<Box<RunState>>,
    /// The labels that the caller sets.
    pub labels: BTreeMap<String, String>,
    /// Receives the updates of the run from its start.
    pub watcher: Option<Watcher>,
    /// The saved workflows that the run calls, directly or indirectly. Only for a backend that cannot read them from
    /// the store.
    pub saved: BTreeMap<Name, ProgramSource>,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, ScheduleError>>;

/// Messages to the driver's thread.
enum Message {
    Start(Box<Start>, Reply<()>),
    Deliver(Name, Event, Reply<RunStatus>),
    Watch(Name, Watcher, Reply<RunHeader>),
    EffectDone(Name, effects::Completion),
    /// A compute thread has computed a long step.
    Computed(Box<compute::ComputedStep>),
    InFlight(oneshot::Sender<usize>),
    /// A writer thread has written a batch of steps.
    Written,
    /// A write to the store failed; also one that is not of a run.
    StoreFailed,
    Recover(bool, Reply<Vec<Name>>),
    Drain(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// The scheduler of one store. If it is dropped, it stops when the steps in flight are durable.
pub struct Scheduler {
    messages: UnboundedSender<Message>,
    metrics: Metrics,
    waits: WaitRegistry,
    printing: OutputLog,
    pulse: Pulse,
    reopened: tokio::sync::watch::Sender<()>,
    caller: WorkflowCaller,
    /// Number of commands that wait for their reply.
    pending: AtomicUsize,
    max_pending: usize,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Scheduler {
    /// Starts a scheduler on a store. No run advances before [`Scheduler::recover`] or [`Scheduler::start`].
    ///
    /// With `commands_only`, the scheduler only stores what commands change, and never advances a run on its own. The
    /// command line uses this for a store that no process owns.
    ///
    /// # Errors
    /// Returns an error if its thread or its runtime cannot be made.
    pub fn new(
        store: Arc<dyn Store>,
        loader: Arc<dyn Loader>,
        tasks: tokio::runtime::Handle,
        limits: Limits,
        rates: Rates,
        commands_only: bool,
        traces: Option<SpanSink>,
    ) -> std::io::Result<Self> {
        let (messages, inbox) = unbounded_channel();
        let runtime = EffectRuntime {
            own: Some(OwnRuntime::new()?),
            traces: Traces(traces),
            ..EffectRuntime::new(tasks, limits, rates, messages.clone())
        };
        let (metrics, waits) = (runtime.metrics.clone(), runtime.waits.clone());
        let (printing, pulse) = (runtime.printing.clone(), runtime.pulse.clone());
        let (caller, reopened) = (runtime.caller.clone(), runtime.reopened.clone());
        let failed = messages.clone();
        store.on_failure(Arc::new(move || {
            // An error is ignored: after the end of the driver, the store is not used any more.
            let _ = failed.send(Message::StoreFailed);
        }));
        let driver = driver::Driver::new(store, loader, runtime, inbox, limits, commands_only);
        let thread = std::thread::Builder::new()
            .name(String::from("windlass-scheduler"))
            .spawn(move || driver.run())?;
        Ok(Self {
            messages,
            metrics,
            waits,
            printing,
            pulse,
            reopened,
            caller,
            pending: AtomicUsize::new(0),
            max_pending: limits.pending,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns the counters of the driver.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the effects that wait for a permit.
    #[must_use]
    pub fn waits(&self) -> &WaitRegistry {
        &self.waits
    }

    /// Returns the output of running commands.
    #[must_use]
    pub fn printing(&self) -> &OutputLog {
        &self.printing
    }

    /// Starts a run. When this returns, the first step of the run is durable.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Exists`], [`ScheduleError::Busy`] or [`ScheduleError::Store`].
    pub async fn start(&self, start: Start) -> Result<(), ScheduleError> {
        let _place = self.reserve_slot()?;
        self.ask(|reply| Message::Start(Box::new(start), reply))
            .await
    }

    /// Continues the runs that a crash or a stop interrupted: running and waiting runs, and with `paused` also paused
    /// runs.
    ///
    /// Returns the runs that it loaded or resumed, and up to 1,024 runs that wait for a due time.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Store`].
    pub async fn recover(&self, paused: bool) -> Result<Vec<Name>, ScheduleError> {
        self.ask(|reply| Message::Recover(paused, reply)).await
    }

    /// Delivers an event to a run, which is loaded if necessary. When this returns, the step that follows from the
    /// event is durable.
    ///
    /// # Errors
    /// Returns [`ScheduleError`].
    pub async fn deliver(&self, run: &str, event: Event) -> Result<RunStatus, ScheduleError> {
        let _place = self.reserve_slot()?;
        self.ask(|reply| Message::Deliver(Name::from(run), event, reply))
            .await
    }

    /// Watches a run. Returns its header; the watcher receives every later durable step.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Store`].
    pub async fn watch(&self, run: &str, watcher: Watcher) -> Result<RunHeader, ScheduleError> {
        self.ask(|reply| Message::Watch(Name::from(run), watcher, reply))
            .await
    }

    /// Returns a receiver that is notified when the store was opened again after an outage.
    pub(crate) fn reopened(&self) -> tokio::sync::watch::Receiver<()> {
        self.reopened.subscribe()
    }

    /// Sets what starts the runs of `workflow` actions.
    pub(crate) fn set_caller(&self, caller: &Arc<dyn CallWorkflow>) {
        self.caller.set(caller);
    }

    /// Returns for how long the driver has worked on the same message or step. `None` while it waits for work.
    #[must_use]
    pub fn stalled_for(&self) -> Option<Duration> {
        self.pulse.stalled_for()
    }

    /// Returns the number of effects and long computations in flight. An effect that only waits for a child run does
    /// not count.
    pub async fn in_flight(&self) -> usize {
        let (reply, answer) = oneshot::channel();
        if self.messages.send(Message::InFlight(reply)).is_err() {
            return 0;
        }
        answer.await.unwrap_or(0)
    }

    /// Starts nothing new from now on, and waits until nothing is in flight.
    pub async fn drain(&self) {
        let (reply, answer) = oneshot::channel();
        if self.messages.send(Message::Drain(reply)).is_ok() {
            let _ = answer.await;
        }
    }

    /// Stops the scheduler and releases the store. It accepts no more work and aborts effects in flight; the process
    /// that recovers the store repeats them with the same keys.
    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        if self.messages.send(Message::Stop(reply)).is_ok() {
            let _ = answer.await;
        }
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Waits until the driver's thread has ended, even if a panic ended it.
    pub async fn ended(&self) {
        self.messages.closed().await;
    }

    async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, ScheduleError> {
        let (reply, answer) = oneshot::channel();
        self.messages
            .send(message(reply))
            .map_err(|_| ScheduleError::Stopped)?;
        answer.await.unwrap_or(Err(ScheduleError::Stopped))
    }
}

impl Scheduler {
    /// Reserves a slot for a command that waits for its reply.
    fn reserve_slot(&self) -> Result<QueueSlot<'_>, ScheduleError> {
        let place = QueueSlot(&self.pending);
        if self.pending.fetch_add(1, Ordering::Relaxed) >= self.max_pending {
            return Err(ScheduleError::Busy);
        }
        Ok(place)
    }
}

/// A reserved slot. It is released on drop, even if the caller no longer waits for the reply.
struct QueueSlot<'a>(&'a AtomicUsize);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        let _ = self.messages.send(Message::Stop(reply));
    }
}
