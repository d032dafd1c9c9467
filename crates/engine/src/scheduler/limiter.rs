//! Limits how many effects run at a time. There are limits for all effects, for the effects of one workflow, and for
//! the effects towards one host. An effect that waits here has started nothing: it has no process and no connection,
//! and the timeout of its request is not running.
//!
//! An effect waits for the narrowest limit first. So an effect that waits for a slow host does not use up the wider
//! limits, which other effects need.

use super::rates::{HostTry, RateLimitedCall};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_model::model::{Name, Origin};

/// With more hosts or workflows than this, the semaphores that are not in use are dropped.
const REMEMBERED: usize = 1_024;

/// The limits of a scheduler: how many effects and runs at a time, and how large states may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of effects that run at a time.
    pub effects: usize,
    /// Maximum number of effects of the runs of one workflow.
    pub effects_per_workflow: usize,
    /// Maximum number of effects towards one host and port.
    pub effects_per_host: usize,
    /// Maximum number of runs in memory. Idle runs and runs that sleep for long are not in memory. When it is reached,
    /// no run is started.
    pub live_runs: usize,
    /// Maximum number of commands that wait for their reply.
    pub pending: usize,
    /// Maximum size of the state of a run, in bytes as it is stored. A run with a larger state fails.
    pub state_bytes: u64,
    /// Approximate maximum memory of all runs of guests, in bytes. Runs that do not fit wait on disk.
    pub guest_memory: u64,
}

impl Limits {
    /// Returns the maximum number of effects of guests (workflows from HTTP or MCP). A quarter of all effects is
    /// reserved for the operator.
    fn of_guests(self) -> usize {
        let effects = self.effects.max(1);
        (effects - effects / 4).max(1)
    }
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
            guest_memory: 512_000_000,
        }
    }
}

/// The limiter that every effect goes through.
#[derive(Clone)]
pub(super) struct Limiter(Arc<Inner>);

struct Inner {
    limits: Limits,
    all: Arc<Semaphore>,
    /// The part of `all` for guests. The rest is reserved for the operator.
    guests: Arc<Semaphore>,
    workflows: Mutex<HashMap<Name, Arc<Semaphore>>>,
    hosts: Mutex<HashMap<Name, Arc<Semaphore>>>,
}

/// Allows an effect to run. Released on drop.
pub(super) struct Permit {
    _permits: Vec<OwnedSemaphorePermit>,
    _host_try: Option<HostTry>,
}

impl Limiter {
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner {
            limits,
            all: Arc::new(Semaphore::new(limits.effects.max(1))),
            guests: Arc::new(Semaphore::new(limits.of_guests())),
            workflows: Mutex::default(),
            hosts: Mutex::default(),
        }))
    }

    /// Waits for a permit: first for the host's concurrency limit, then for its rate limit, and last for the limits of
    /// the workflow, of guests and of all effects.
    pub async fn acquire(
        &self,
        origin: Origin,
        workflow: &Name,
        host: Option<Name>,
        call: Option<&RateLimitedCall>,
    ) -> Permit {
        let _place = call.and_then(RateLimitedCall::enqueue);
        let limits = self.0.limits;
        let of_host = host.map(|host| semaphore(&self.0.hosts, &host, limits.effects_per_host));
        let of_workflow = semaphore(&self.0.workflows, workflow, limits.effects_per_workflow);
        let of_guests = (origin == Origin::Guest).then(|| Arc::clone(&self.0.guests));
        let mut permits = Vec::with_capacity(4);
        let wide = of_guests.into_iter().chain([Arc::clone(&self.0.all)]);
        // A call with a named rate waits for this rate before it acquires a permit of its host.
        let mut host_try = None;
        if let Some(call) = call.filter(|call| call.is_named()) {
            host_try = call.begin().await;
        }
        // These semaphores are never closed, so this cannot fail.
        if let Some(of_host) = of_host {
            permits.extend(of_host.acquire_owned().await);
        }
        if let Some(call) = call.filter(|call| !call.is_named()) {
            host_try = call.begin().await;
        }
        for semaphore in std::iter::once(of_workflow).chain(wide) {
            permits.extend(semaphore.acquire_owned().await);
        }
        Permit {
            _permits: permits,
            _host_try: host_try,
        }
    }
}

fn semaphore(
    limiter: &Mutex<HashMap<Name, Arc<Semaphore>>>,
    name: &Name,
    limit: usize,
) -> Arc<Semaphore> {
    let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
    if limiter.len() >= REMEMBERED {
        limiter.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
    }
    let made = || Arc::new(Semaphore::new(limit.max(1)));
    Arc::clone(limiter.entry(name.clone()).or_insert_with(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn limiter(effects: usize, per_workflow: usize, per_host: usize) -> Limiter {
        Limiter::new(Limits {
            effects,
            effects_per_workflow: per_workflow,
            effects_per_host: per_host,
            ..Limits::default()
        })
    }

    fn try_acquire(limiter: &Limiter, workflow: &str, host: Option<&str>) -> Option<Permit> {
        let workflow = Name::from(workflow);
        limiter
            .acquire(Origin::Operator, &workflow, host.map(Name::from), None)
            .now_or_never()
    }

    #[test]
    fn every_limit_holds() {
        let limiter = limiter(3, 2, 1);
        let first = try_acquire(&limiter, "a", Some("x")).unwrap();
        assert!(
            try_acquire(&limiter, "a", Some("x")).is_none(),
            "one a host"
        );
        let second = try_acquire(&limiter, "a", Some("y")).unwrap();
        assert!(try_acquire(&limiter, "a", None).is_none(), "two a workflow");
        let third = try_acquire(&limiter, "b", None).unwrap();
        assert!(try_acquire(&limiter, "c", None).is_none(), "three in all");
        drop((first, third));
        assert!(try_acquire(&limiter, "c", Some("x")).is_some());
        drop(second);
    }

    #[test]
    fn guests_leave_some_to_the_operator() {
        let limiter = limiter(8, 8, 8);
        let ask = |origin, workflow: &str| {
            let workflow = Name::from(workflow);
            limiter
                .acquire(origin, &workflow, None, None)
                .now_or_never()
        };
        let guests: Vec<_> = (0..6).map(|_| ask(Origin::Guest, "a").unwrap()).collect();
        assert!(ask(Origin::Guest, "b").is_none(), "six of eight are theirs");
        let _own = [ask(Origin::Operator, "c"), ask(Origin::Operator, "c")].map(Option::unwrap);
        assert!(ask(Origin::Operator, "c").is_none());
        drop(guests);
        assert!(ask(Origin::Guest, "b").is_some());
    }

    #[test]
    fn who_waits_for_a_busy_host_keeps_nobody_out() {
        let limiter = limiter(2, 2, 1);
        let _busy = try_acquire(&limiter, "a", Some("slow")).unwrap();
        let name = Name::from("a");
        let mut waits =
            Box::pin(limiter.acquire(Origin::Operator, &name, Some(Name::from("slow")), None));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(try_acquire(&limiter, "b", Some("fast")).is_some());
    }
}
