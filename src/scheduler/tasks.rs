//! Effects in flight: one task each. Aborting a task drops the attempt, which cuts it.

use super::Message;
use super::metrics::Metrics;
use crate::action::Registry;
use crate::expression::Value;
use crate::machine::EffectId;
use crate::model::{Fault, Name, Request};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// An effect's end.
pub(super) struct Completion {
    pub id: EffectId,
    pub result: Result<Value, Fault>,
}

/// An effect to be carried out.
pub(super) struct Job {
    pub run: Name,
    pub id: EffectId,
    pub request: Request,
    pub registry: Registry,
    /// Who hears of its end.
    pub to: Sender<Message>,
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

    /// Carries out a request, unless it is being carried out.
    pub fn start(&mut self, on: &Handle, metrics: &Metrics, job: Job) {
        let Job {
            run,
            id,
            request,
            registry,
            to,
        } = job;
        if self.running.contains_key(&id) {
            return;
        }
        let in_flight = metrics.effect();
        let task = on.spawn(async move {
            let result = registry.execute(&request).await;
            drop(in_flight);
            // Without a receiver the engine is going down: the effect is repeated later.
            let _ = to.send(Message::EffectDone(run, Completion { id, result }));
        });
        self.running.insert(id, task.abort_handle());
    }
}
