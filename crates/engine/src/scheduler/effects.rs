//! Effects in flight: one task each. Aborting a task drops the future of the attempt, which cancels the attempt.
//!
//! An effect runs on the driver's thread if three things hold: it only waits for work that is done elsewhere, no other
//! effect is in flight, and few runs are in memory. Then waking two threads would cost more than most calls. All other
//! effects run on worker threads, which may be busy for long. Calls of guests (workflows from HTTP or MCP) have
//! separate worker threads. So their computations, such as parsing a large output, delay no request to the API.

use super::Message;
use super::children::{ChildCall, WorkflowCaller, child_id};
use super::limiter::{Limiter, Limits};
use super::metrics::Metrics;
use super::printed::{OutputLine, OutputLog};
use super::pulse::Pulse;
use super::rates::Rates;
use super::traces::Traces;
use super::wait_registry::WaitRegistry;
use futures_util::FutureExt;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use windlass_actions::{Listener, Registry};
use windlass_expression::Value;
use windlass_machine::EffectId;
use windlass_model::model::{Fault, Name, Origin, Request};

/// With more runs than this in memory, the driver's thread carries out no effects.
const FEW_RUNS: usize = 8;

/// Where effects are carried out.
pub(super) struct EffectRuntime {
    pub handle: Handle,
    pub guests: GuestRuntime,
    /// The runtime of the driver's thread. `None` for a driver without its own thread (`manual`).
    pub own: Option<OwnRuntime>,
    /// Each effect in flight has a clone of this, so its reference count shows how many there are.
    pub in_flight: Arc<()>,
    pub limiter: Limiter,
    pub rates: Rates,
    pub waits: WaitRegistry,
    pub printing: OutputLog,
    pub pulse: Pulse,
    pub metrics: Metrics,
    pub traces: Traces,
    /// Starts the runs of `workflow` actions.
    pub caller: WorkflowCaller,
    /// Notified when the store was opened again after an outage.
    pub reopened: watch::Sender<()>,
    /// The driver's inbox for the results of effects.
    pub messages: UnboundedSender<Message>,
}

impl EffectRuntime {
    /// Makes a runtime without an own thread, which sends no spans.
    pub fn new(
        handle: Handle,
        limits: Limits,
        rates: Rates,
        messages: UnboundedSender<Message>,
    ) -> Self {
        Self {
            handle,
            guests: GuestRuntime::default(),
            own: None,
            in_flight: Arc::default(),
            limiter: Limiter::new(limits),
            rates,
            waits: WaitRegistry::default(),
            printing: OutputLog::default(),
            pulse: Pulse::default(),
            metrics: Metrics::default(),
            traces: Traces::default(),
            caller: WorkflowCaller::default(),
            reopened: watch::Sender::default(),
            messages,
        }
    }

    /// Returns the runtime that carries out the next effect of a run. `runs` is the number of runs in memory.
    fn handle_for(&self, origin: Origin, runs: usize, only_waits: bool) -> &Handle {
        let alone = runs <= FEW_RUNS && only_waits && Arc::strong_count(&self.in_flight) == 1;
        match (&self.own, origin) {
            (Some(own), _) if alone => own.0.handle(),
            (Some(_), Origin::Guest) => self.guests.handle().unwrap_or(&self.handle),
            (Some(_), Origin::Operator) | (None, _) => &self.handle,
        }
    }
}

/// The runtime of the guests' calls. It is made for the first of them. If its threads cannot start, guests' calls run
/// on the operator's runtime.
#[derive(Default)]
pub(super) struct GuestRuntime(OnceCell<Option<Runtime>>);

impl GuestRuntime {
    fn handle(&self) -> Option<&Handle> {
        let runtime = self.0.get_or_init(|| {
            let mut threads = Builder::new_multi_thread();
            threads.thread_name("windlass-guest").enable_all();
            // tokio panics if the system cannot start another thread.
            let made = catch_unwind(AssertUnwindSafe(|| threads.build()));
            let made = made.ok().and_then(Result::ok);
            if made.is_none() {
                tracing::warn!("the calls of guests have no threads of their own");
            }
            made
        });
        runtime.as_ref().map(Runtime::handle)
    }
}

impl Drop for GuestRuntime {
    fn drop(&mut self) {
        // Shut down in the background: otherwise this waits for host names that are being resolved.
        if let Some(runtime) = self.0.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

/// The runtime of the driver's thread. Its tasks continue only while the driver waits in this runtime.
pub(super) struct OwnRuntime(Runtime);

impl OwnRuntime {
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Waits for a message. Returns `None` after the timeout, or if all senders are gone.
    pub fn receive(
        &self,
        inbox: &mut UnboundedReceiver<Message>,
        wait: Option<Duration>,
    ) -> Option<Message> {
        self.0.block_on(async {
            match wait {
                None => inbox.recv().await,
                Some(wait) => tokio::time::timeout(wait, inbox.recv()).await.ok()?,
            }
        })
    }

    /// Ends the runtime without waiting for host names that are being resolved.
    pub fn stop(self) {
        self.0.shutdown_background();
    }

    /// Runs the ready tasks of the runtime once.
    pub fn turn(&self) {
        self.0.block_on(tokio::task::yield_now());
    }
}

pub(super) struct Completion {
    pub id: EffectId,
    pub result: Result<Value, Fault>,
}

pub(super) struct EffectContext<'a> {
    pub run: &'a Name,
    pub workflow: &'a Name,
    pub registry: &'a Registry,
    /// Number of runs in memory.
    pub runs: usize,
    /// Whether an earlier process may have begun the effect.
    pub replayed: bool,
}

/// The tasks of one run.
#[derive(Default)]
pub(super) struct Tasks {
    running: BTreeMap<EffectId, AbortHandle>,
    /// The child runs that the tasks wait for.
    children: BTreeMap<EffectId, Name>,
}

impl Tasks {
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the number of tasks that do more than wait for a child run.
    pub fn working(&self) -> usize {
        let waits = |id: &EffectId| self.children.contains_key(id);
        self.running.keys().filter(|id| !waits(id)).count()
    }

    /// Records that an effect waits for a child run, even if no task starts for it.
    pub fn note_child(&mut self, run: &Name, id: EffectId, request: &Request) {
        if request.calls_workflow() {
            self.children.insert(id, child_id(run, request));
        }
    }

    /// Returns whether a task waits for this child run.
    pub fn waits_for(&self, child: &Name) -> bool {
        self.children.values().any(|known| known == child)
    }

    pub fn done(&mut self, id: EffectId) {
        self.running.remove(&id);
        self.children.remove(&id);
        if self.running.is_empty() {
            // Free the map's last node, which `BTreeMap` frees only on `clear`. Most runs wait for a timer and need no
            // node.
            self.running.clear();
        }
    }

    /// Aborts a task. Returns the child run that it waited for.
    pub fn abort(&mut self, id: EffectId) -> Option<Name> {
        if let Some(task) = self.running.get(&id) {
            task.abort();
        }
        let child = self.children.remove(&id);
        self.done(id);
        child
    }

    /// Aborts all tasks. Returns the child runs that they waited for.
    pub fn abort_all(&mut self) -> Vec<Name> {
        let all = std::mem::take(&mut self.running);
        all.into_values().for_each(|task| task.abort());
        std::mem::take(&mut self.children).into_values().collect()
    }

    /// Waits for a child run. This needs no permit, because the child run may need one.
    fn call_workflow(
        &mut self,
        on: &EffectRuntime,
        of: &EffectContext<'_>,
        id: EffectId,
        request: Request,
    ) {
        let (caller, to) = (on.caller.clone(), on.messages.clone());
        self.note_child(of.run, id, &request);
        let call = ChildCall::new(of.run, request);
        let run = of.run.clone();
        let task = on.handle.spawn(async move {
            let result = caller.call(call).await;
            // Sending fails if the engine is stopping. Then the next process repeats the call.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }

    /// Starts a task that waits for a permit and then carries out a request.
    pub fn start(
        &mut self,
        on: &EffectRuntime,
        of: EffectContext<'_>,
        id: EffectId,
        request: Request,
    ) {
        if request.calls_workflow() && !of.registry.is_stubbed(&request) {
            return self.call_workflow(on, &of, id, request);
        }
        let (run, workflow) = (of.run.clone(), of.workflow.clone());
        let (printing, of_run) = (on.printing.clone(), run.clone());
        let action = request.action.clone();
        let prints = printing.begin_call(&run, id);
        let listener = Listener::new(move |stream, text| {
            let action = action.clone();
            printing.add_line(
                &of_run,
                id,
                OutputLine {
                    action,
                    stream,
                    text,
                },
            );
        });
        let origin = of.registry.origin();
        let registry = of
            .registry
            .clone()
            .with_replayed(of.replayed)
            .with_output_listener(listener);
        let (limiter, to) = (on.limiter.clone(), on.messages.clone());
        let (metrics, waits) = (on.metrics.clone(), on.waits.clone());
        let host = registry.host(&request);
        // Reading the next event of an open stream makes no call, so no rate limit counts it.
        let call = match host.is_none() && request.reads_events() {
            true => None,
            false => on
                .rates
                .rate_limited_call(host.as_ref(), &registry, &request),
        };
        // `only_waits`: a server, or the thread that writes a file, does the work. Transferring a file is work of the
        // effect itself. A stream of events stays open between two effects, so it must not be on the driver's thread.
        let is_work = request.transfers_file() || request.reads_events();
        let only_waits = host.is_some() && !is_work || request.appends();
        let called = host.clone();
        let handle = on.handle_for(origin, of.runs, only_waits);
        let counted = on.in_flight.clone();
        let task = handle.spawn(async move {
            let mut permit = pin!(limiter.acquire(origin, &workflow, host, call.as_ref()));
            let (permit, _waited) = match permit.as_mut().now_or_never() {
                Some(permit) => (permit, None),
                None => {
                    let waiting = waits.wait(&run, id, call.clone());
                    let permit = permit.await;
                    waiting.mark_begun();
                    (permit, Some(waiting))
                }
            };
            let in_flight = metrics.effect();
            let result = registry.execute(&request).await;
            if let (Err(_), Some(host)) = (&result, &called) {
                metrics.failed_call(&workflow, host);
            }
            if let Some(call) = &call {
                call.learn(&run, &result);
            }
            drop((permit, in_flight, prints, counted));
            // Sending fails if the engine is stopping. Then the next process repeats the effect.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }
}
