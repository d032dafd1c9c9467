//! Effects in flight: one task each. Aborting a task drops the attempt, which cuts it.

use super::Message;
use super::gates::Gates;
use super::metrics::Metrics;
use crate::action::Registry;
use crate::expression::Value;
use crate::machine::EffectId;
use crate::model::{Fault, Name, Request};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Where effects are carried out.
pub(super) struct Workshop {
    pub handle: Handle,
    pub gates: Gates,
    pub metrics: Metrics,
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
    pub again: bool,
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

    /// Carries out a request when its turn comes, unless it is being carried out.
    pub fn start(&mut self, on: &Workshop, of: Of<'_>, id: EffectId, request: Request) {
        if self.running.contains_key(&id) {
            return;
        }
        let (run, workflow) = (of.run.clone(), of.workflow.clone());
        let registry = of.registry.clone().again(of.again);
        let (gates, to) = (on.gates.clone(), on.messages.clone());
        let metrics = on.metrics.clone();
        let task = on.handle.spawn(async move {
            let pass = gates.pass(&workflow, registry.host(&request)).await;
            let in_flight = metrics.effect();
            let result = registry.execute(&request).await;
            drop((pass, in_flight));
            // Without a receiver the engine is going down: the effect is repeated later.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }
}
