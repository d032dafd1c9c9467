//! Effects in flight: one task each. Aborting a task drops the attempt, which cuts it.
//!
//! An effect that only waits, and is the only one in flight of a few runs, runs on the driver's thread: to wake two
//! threads costs more than most calls. Everything else runs on the workers, which may be busy for long.

use super::Message;
use super::limiter::Limiter;
use super::metrics::Metrics;
use super::printed::{OutputLine, OutputLog};
use super::pulse::Pulse;
use super::queue::Queue;
use super::traces::Traces;
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;
use windlass_actions::{Listener, Registry};
use windlass_expression::Value;
use windlass_machine::EffectId;
use windlass_model::model::{Fault, Name, Request};

/// With more runs in memory, the driver's thread has enough to do.
const FEW_RUNS: usize = 8;

/// Where effects are carried out.
pub(super) struct EffectRuntime {
    pub handle: Handle,
    /// On the driver's thread; none where a caller starts its rounds.
    pub own: Option<OwnRuntime>,
    /// A clone for each effect in flight.
    pub in_flight: Arc<()>,
    pub limiter: Limiter,
    pub queue: Queue,
    pub printing: OutputLog,
    pub pulse: Pulse,
    pub metrics: Metrics,
    pub traces: Traces,
    /// Where they report.
    pub messages: UnboundedSender<Message>,
}

impl EffectRuntime {
    /// Where the next effect of a run is carried out. `runs` is the number of runs in memory.
    fn place(&self, runs: usize, only_waits: bool) -> &Handle {
        let alone = runs <= FEW_RUNS && only_waits && Arc::strong_count(&self.in_flight) == 1;
        let own = self.own.as_ref().filter(|_| alone);
        own.map_or(&self.handle, |own| own.0.handle())
    }
}

/// The runtime of the driver's thread. Its tasks continue only while the driver waits in it.
pub(super) struct OwnRuntime(Runtime);

impl OwnRuntime {
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Waits for a message; none after the timeout, or when all senders are gone.
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

    /// Ends without waiting for a name that is looked up.
    pub fn stop(self) {
        self.0.shutdown_background();
    }

    /// Runs its tasks with what has arrived.
    pub fn turn(&self) {
        self.0.block_on(tokio::task::yield_now());
    }
}

/// An effect's end.
pub(super) struct Completion {
    pub id: EffectId,
    pub result: Result<Value, Fault>,
}

pub(super) struct EffectContext<'a> {
    pub run: &'a Name,
    pub workflow: &'a Name,
    pub registry: &'a Registry,
    /// How many runs are in memory.
    pub runs: usize,
    /// Whether it may have been begun by a process that no longer exists.
    pub replayed: bool,
}

/// The tasks of one run.
#[derive(Default)]
pub(super) struct Tasks {
    running: BTreeMap<EffectId, AbortHandle>,
}

impl Tasks {
    pub fn len(&self) -> usize {
        self.running.len()
    }

    pub fn done(&mut self, id: EffectId) {
        self.running.remove(&id);
        if self.running.is_empty() {
            // A tree keeps its last node, and most runs wait for a timer.
            self.running.clear();
        }
    }

    pub fn abort(&mut self, id: EffectId) {
        if let Some(task) = self.running.get(&id) {
            task.abort();
        }
        self.done(id);
    }

    pub fn abort_all(&mut self) {
        let all = std::mem::take(&mut self.running);
        all.into_values().for_each(|task| task.abort());
    }

    /// Carries out a request when there is a permit for it.
    pub fn start(
        &mut self,
        on: &EffectRuntime,
        of: EffectContext<'_>,
        id: EffectId,
        request: Request,
    ) {
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
        let (metrics, queue) = (on.metrics.clone(), on.queue.clone());
        let host = registry.host(&request);
        // For a server, or for the thread that writes a file.
        let only_waits = host.is_some() || request.appends();
        let place = on.place(of.runs, only_waits);
        let counted = on.in_flight.clone();
        let task = place.spawn(async move {
            let mut turn = pin!(limiter.acquire(origin, &workflow, host));
            let (permit, _waited) = match turn.as_mut().now_or_never() {
                Some(permit) => (permit, None),
                None => {
                    let waiting = queue.wait(&run, id);
                    let permit = turn.await;
                    waiting.mark_begun();
                    (permit, Some(waiting))
                }
            };
            let in_flight = metrics.effect();
            let result = registry.execute(&request).await;
            drop((permit, in_flight, prints, counted));
            // Without a receiver the engine is going down: the effect is repeated later.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }
}
