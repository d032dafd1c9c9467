//! Which effects wait for a permit of a concurrency or rate limit, when effects that had to wait began, and which runs
//! this process executes. This is only for reports: no decision depends on it, and it is not stored.

use super::clock::now;
use super::executed::ExecutedRuns;
use super::rates::{RateLimitWait, RateLimitedCall};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_machine::EffectId;
use windlass_model::model::Name;
use windlass_store::{Feed, Wake};
use windlass_value::time::Timestamp;

/// The effects of all runs that wait for a permit, or that had to wait and have not ended.
#[derive(Clone, Default)]
pub struct WaitRegistry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    executed: ExecutedRuns,
    feed: Feed,
}

#[derive(Default)]
struct State {
    version: u64,
    runs: HashMap<Name, Queued>,
}

/// The effects of one run that had to wait.
#[derive(Clone, Debug, Default)]
pub struct Queued {
    /// Changes whenever an effect begins to wait or stops waiting. 0 if no effect of the run had to wait.
    pub version: u64,
    /// Whether the run waits on disk until there is memory for it.
    pub waits_for_memory: bool,
    calls: HashMap<EffectId, QueuedCall>,
}

/// A call that had to wait.
#[derive(Clone, Debug)]
enum QueuedCall {
    Waits(Option<RateLimitedCall>),
    Began(Timestamp),
}

impl Queued {
    /// Returns when an effect that had to wait began. The outer `None`: it did not have to wait. The inner `None`: it
    /// still waits.
    #[must_use]
    pub fn began(&self, effect: EffectId) -> Option<Option<Timestamp>> {
        self.calls.get(&effect).map(|call| match call {
            QueuedCall::Waits(_) => None,
            QueuedCall::Began(at) => Some(*at),
        })
    }

    /// Returns the place of an effect in the queue of a rate limit. `None` if it does not wait for one.
    #[must_use]
    pub fn rate_wait(&self, effect: EffectId) -> Option<RateLimitWait> {
        match self.calls.get(&effect)? {
            QueuedCall::Waits(call) => call.as_ref()?.wait(),
            QueuedCall::Began(_) => None,
        }
    }
}

/// An effect that had to wait. On drop, the effect is removed from the registry.
pub(super) struct WaitGuard {
    waits: WaitRegistry,
    run: Name,
    effect: EffectId,
}

/// A run that waits for memory. The wait ends on drop.
pub(super) struct MemoryWait {
    waits: WaitRegistry,
    run: Name,
}

impl WaitRegistry {
    #[must_use]
    pub fn of(&self, run: &str) -> Queued {
        self.state().runs.get(run).cloned().unwrap_or_default()
    }

    /// Returns whether this process executes a run. False for a run that has ended.
    #[must_use]
    pub fn executes(&self, run: &str) -> bool {
        self.0.executed.contains(run)
    }

    pub(super) fn executed(&self) -> &ExecutedRuns {
        &self.0.executed
    }

    /// Sets a callback. It is called at the first change after each call of [`WaitRegistry::changed`].
    pub fn on_change(&self, wake: Wake) {
        self.0.feed.on_change(wake);
    }

    /// Returns the runs for which something changed since the last call. `None`: it is not known which runs changed.
    #[must_use]
    pub fn changed(&self) -> Option<Vec<Name>> {
        self.0.feed.take()
    }

    pub(super) fn wait(
        &self,
        run: &Name,
        effect: EffectId,
        call: Option<RateLimitedCall>,
    ) -> WaitGuard {
        self.put(run, effect, QueuedCall::Waits(call));
        WaitGuard {
            waits: self.clone(),
            run: run.clone(),
            effect,
        }
    }

    pub(super) fn mark_waiting_for_memory(&self, run: &Name) -> MemoryWait {
        self.change(run, |queued| queued.waits_for_memory = true);
        MemoryWait {
            waits: self.clone(),
            run: run.clone(),
        }
    }

    fn put(&self, run: &Name, effect: EffectId, call: QueuedCall) {
        self.change(run, |queued| {
            queued.calls.insert(effect, call);
        });
    }

    fn change(&self, run: &Name, change: impl FnOnce(&mut Queued)) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let queued = state.runs.entry(run.clone()).or_default();
        queued.version = version;
        change(queued);
        drop(state);
        self.0.feed.changed(std::iter::once(run.clone()));
    }

    /// Changes the entry of a run with `end`, which removes an effect or a wait that is over. An entry that is then
    /// empty is removed.
    fn end(&self, run: &Name, end: impl FnOnce(&mut Queued)) {
        let mut state = self.state();
        if let Some(queued) = state.runs.get_mut(run) {
            end(queued);
            if queued.calls.is_empty() && !queued.waits_for_memory {
                state.runs.remove(run);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitGuard {
    /// Records that the effect has its permit.
    pub fn mark_begun(&self) {
        let began = QueuedCall::Began(now());
        self.waits.put(&self.run, self.effect, began);
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let end = |queued: &mut Queued| {
            queued.calls.remove(&self.effect);
        };
        self.waits.end(&self.run, end);
    }
}

impl Drop for MemoryWait {
    fn drop(&mut self) {
        self.waits
            .end(&self.run, |queued| queued.waits_for_memory = false);
    }
}
