//! Effects in flight: one task each. Aborting a task drops the attempt, which cuts it.

use super::Message;
use super::limiter::Limiter;
use super::metrics::Metrics;
use super::printed::{Printed, Printing};
use super::queue::Queue;
use super::traces::Traces;
use crate::action::{Listener, Registry};
use crate::expression::Value;
use crate::machine::EffectId;
use crate::model::{Fault, Name, Request};
use futures_util::FutureExt;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Where effects are carried out.
pub(super) struct EffectRuntime {
    pub handle: Handle,
    pub limiter: Limiter,
    pub queue: Queue,
    pub printing: Printing,
    pub metrics: Metrics,
    pub traces: Traces,
    /// Where they report.
    pub messages: Sender<Message>,
}

/// An effect's end.
pub(super) struct Completion {
    pub id: EffectId,
    pub result: Result<Value, Fault>,
}

/// Whose effect it is.
pub(super) struct Of<'a> {
    pub run: &'a Name,
    pub workflow: &'a Name,
    pub registry: &'a Registry,
    /// Whether it may have been begun by a process that is no more.
    pub replayed: bool,
}

/// The tasks of one run.
#[derive(Default)]
pub(super) struct Tasks {
    running: HashMap<EffectId, AbortHandle>,
}

impl Tasks {
    pub fn len(&self) -> usize {
        self.running.len()
    }

    pub fn done(&mut self, id: EffectId) {
        self.running.remove(&id);
    }

    pub fn abort(&mut self, id: EffectId) {
        if let Some(task) = self.running.remove(&id) {
            task.abort();
        }
    }

    pub fn abort_all(&mut self) {
        self.running.drain().for_each(|(_, task)| task.abort());
    }

    /// Carries out a request when there is a permit for it.
    pub fn start(&mut self, on: &EffectRuntime, of: Of<'_>, id: EffectId, request: Request) {
        let (run, workflow) = (of.run.clone(), of.workflow.clone());
        let (printing, of_run) = (on.printing.clone(), run.clone());
        let action = request.action.clone();
        let prints = printing.begins(&run, id);
        let listener = Listener::new(move |stream, text| {
            let action = action.clone();
            printing.tell(
                &of_run,
                id,
                Printed {
                    action,
                    stream,
                    text,
                },
            );
        });
        let registry = of.registry.clone().again(of.replayed).telling(listener);
        let (limiter, to) = (on.limiter.clone(), on.messages.clone());
        let (metrics, queue) = (on.metrics.clone(), on.queue.clone());
        let task = on.handle.spawn(async move {
            let mut turn = pin!(limiter.acquire(&workflow, registry.host(&request)));
            let (permit, _waited) = match turn.as_mut().now_or_never() {
                Some(permit) => (permit, None),
                None => {
                    let waiting = queue.wait(&run, id);
                    let permit = turn.await;
                    waiting.begins();
                    (permit, Some(waiting))
                }
            };
            let in_flight = metrics.effect();
            let result = registry.execute(&request).await;
            drop((permit, in_flight, prints));
            // Without a receiver the engine is going down: the effect is repeated later.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }
}
