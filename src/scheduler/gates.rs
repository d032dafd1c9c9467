//! How many effects run at a time: in all, of one workflow, and towards one host. An effect that
//! waits here has started nothing: it has no process, no connection, and its time is not running.
//!
//! The narrowest gate comes first, so that whoever waits for a slow host keeps nobody else out.

use crate::model::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many names of hosts and workflows are remembered before those nobody uses are forgotten.
const REMEMBERED: usize = 1_024;

/// What a scheduler takes upon itself at a time, and how large things may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Effects that run at a time.
    pub effects: usize,
    /// Of them, those of runs of one workflow.
    pub effects_per_workflow: usize,
    /// Of them, those towards one host and port.
    pub effects_per_host: usize,
    /// Runs in memory; those that wait for long or rest are not. Beyond that no run is started.
    pub live_runs: usize,
    /// Commands that wait for their answer at a time.
    pub pending: usize,
    /// How large the state of a run may grow, in bytes as it is stored. Beyond that the run fails.
    pub state_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            effects: 256,
            effects_per_workflow: 128,
            effects_per_host: 64,
            live_runs: 20_000,
            pending: 10_000,
            state_bytes: 64 << 20,
        }
    }
}

/// The gates that every effect goes through.
#[derive(Clone)]
pub(super) struct Gates(Arc<Inner>);

struct Inner {
    limits: Limits,
    all: Arc<Semaphore>,
    workflows: Mutex<HashMap<Name, Arc<Semaphore>>>,
    hosts: Mutex<HashMap<Name, Arc<Semaphore>>>,
}

/// Leave to run; given back when it is dropped.
pub(super) struct Pass {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Gates {
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner {
            limits,
            all: Arc::new(Semaphore::new(limits.effects.max(1))),
            workflows: Mutex::default(),
            hosts: Mutex::default(),
        }))
    }

    /// Waits for its turn.
    pub async fn pass(&self, workflow: &Name, host: Option<Name>) -> Pass {
        let limits = self.0.limits;
        let of_host = host.map(|host| gate(&self.0.hosts, &host, limits.effects_per_host));
        let of_workflow = gate(&self.0.workflows, workflow, limits.effects_per_workflow);
        let mut permits = Vec::with_capacity(3);
        for gate in of_host
            .into_iter()
            .chain([of_workflow, Arc::clone(&self.0.all)])
        {
            // A gate is never closed.
            permits.extend(gate.acquire_owned().await);
        }
        Pass { _permits: permits }
    }
}

fn gate(gates: &Mutex<HashMap<Name, Arc<Semaphore>>>, name: &Name, limit: usize) -> Arc<Semaphore> {
    let mut gates = gates.lock().unwrap_or_else(PoisonError::into_inner);
    if gates.len() >= REMEMBERED {
        gates.retain(|_, gate| Arc::strong_count(gate) > 1);
    }
    let made = || Arc::new(Semaphore::new(limit.max(1)));
    Arc::clone(gates.entry(name.clone()).or_insert_with(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn gates(effects: usize, per_workflow: usize, per_host: usize) -> Gates {
        Gates::new(Limits {
            effects,
            effects_per_workflow: per_workflow,
            effects_per_host: per_host,
            ..Limits::default()
        })
    }

    fn try_pass(gates: &Gates, workflow: &str, host: Option<&str>) -> Option<Pass> {
        let workflow = Name::from(workflow);
        gates.pass(&workflow, host.map(Name::from)).now_or_never()
    }

    #[test]
    fn every_gate_holds() {
        let gates = gates(3, 2, 1);
        let first = try_pass(&gates, "a", Some("x")).unwrap();
        assert!(try_pass(&gates, "a", Some("x")).is_none(), "one a host");
        let second = try_pass(&gates, "a", Some("y")).unwrap();
        assert!(try_pass(&gates, "a", None).is_none(), "two a workflow");
        let third = try_pass(&gates, "b", None).unwrap();
        assert!(try_pass(&gates, "c", None).is_none(), "three in all");
        drop((first, third));
        assert!(try_pass(&gates, "c", Some("x")).is_some());
        drop(second);
    }

    #[test]
    fn who_waits_for_a_busy_host_keeps_nobody_out() {
        let gates = gates(2, 2, 1);
        let _busy = try_pass(&gates, "a", Some("slow")).unwrap();
        let name = Name::from("a");
        let mut waits = Box::pin(gates.pass(&name, Some(Name::from("slow"))));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(try_pass(&gates, "b", Some("fast")).is_some());
    }
}
