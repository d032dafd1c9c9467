//! Watchers of runs. The driver sends each durable step to them, and never waits for a watcher.

use super::{ScheduleError, Step};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use windlass_machine::{Outcome, PauseReason};
use windlass_model::model::Name;

/// Maximum number of updates that may wait for a watcher.
const MAX_UPDATES: usize = 1_024;

/// Maximum number of steps among the waiting updates, so that a slow watcher uses little memory. The remaining places
/// are for pauses and the end.
const MAX_STEP_UPDATES: usize = 64;

/// Approximate number of runs that may be listed although all their watchers are closed.
const SWEEP_ABOVE: usize = 128;

/// What the scheduler sends to a watcher. A step, a pause or the end is durable before it is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Update {
    Step(Arc<Step>),
    Paused(PauseReason),
    Finished(Outcome),
    /// The run cannot continue in this process. Its stored state is unchanged.
    Stuck(ScheduleError),
}

/// The sending end, for the driver.
pub struct Watcher {
    updates: mpsc::Sender<Update>,
    only_end: Arc<AtomicBool>,
}

/// The receiving end: the updates of a run.
pub struct Updates {
    updates: mpsc::Receiver<Update>,
    only_end: Arc<AtomicBool>,
}

/// Makes a channel of updates.
#[must_use]
pub fn watch() -> (Watcher, Updates) {
    let (to, from) = mpsc::channel(MAX_UPDATES);
    let only_end = Arc::new(AtomicBool::new(false));
    let watcher = Watcher {
        updates: to,
        only_end: Arc::clone(&only_end),
    };
    let updates = Updates {
        updates: from,
        only_end,
    };
    (watcher, updates)
}

impl Updates {
    /// Waits for the next step, pause or end. Returns `None` after the last update.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.recv().await
    }

    /// Returns the next update, if it has arrived already.
    pub fn try_next(&mut self) -> Option<Update> {
        self.updates.try_recv().ok()
    }

    /// Limits the updates to pauses, the end and failed attempts. Waking a watcher for each step of a long loop costs
    /// as much as the step.
    pub fn only_end(&self) {
        self.only_end.store(true, Ordering::Relaxed);
    }
}

impl Watcher {
    /// Returns whether the watcher wants a step. `retries`: an attempt failed in the step.
    fn wants_step(&self, retries: bool) -> bool {
        let waiting = self.updates.max_capacity() - self.updates.capacity();
        (retries || !self.only_end.load(Ordering::Relaxed)) && waiting < MAX_STEP_UPDATES
    }
}

/// The watchers of all runs.
#[derive(Default)]
pub struct Watchers {
    of: HashMap<Name, Vec<Watcher>>,
    /// If more runs than this have watchers, closed watchers are dropped, because the channel of each costs some
    /// kilobytes.
    sweep_at: usize,
}

impl Watchers {
    pub fn add(&mut self, run: &Name, watcher: Watcher) {
        self.of.entry(run.clone()).or_default().push(watcher);
        if self.of.len() > self.sweep_at {
            self.of.retain(|_, watchers| {
                watchers.retain(|watcher| !watcher.updates.is_closed());
                !watchers.is_empty()
            });
            self.sweep_at = self.of.len() * 2 + SWEEP_ABOVE;
        }
    }

    /// Sends a step to the watchers that want steps. A slow watcher misses steps, and can read them from the store.
    pub fn step(&mut self, run: &Name, retries: bool, step: impl FnOnce() -> Step) {
        let Some(watchers) = self.of.get(run) else {
            return;
        };
        if watchers.iter().any(|watcher| watcher.wants_step(retries)) {
            let step = Update::Step(Arc::new(step()));
            self.send(run, step, |watcher| watcher.wants_step(retries));
        } else if watchers.iter().all(|watcher| watcher.updates.is_closed()) {
            self.of.remove(run);
        }
    }

    /// Sends a pause or the end to all watchers. A watcher whose channel is full is dropped: its updates end, which
    /// shows it that it missed something.
    pub fn notify(&mut self, run: &Name, update: impl FnOnce() -> Update) {
        if self.of.contains_key(run) {
            self.send(run, update(), |_| true);
        }
    }

    /// Sends an update to the watchers that `to` selects, and drops the closed ones.
    fn send(&mut self, run: &Name, update: Update, to: impl Fn(&Watcher) -> bool) {
        let Some(watchers) = self.of.get_mut(run) else {
            return;
        };
        let mut further = watchers.len();
        let mut update = Some(update);
        watchers.retain(|watcher| {
            further -= 1;
            if !to(watcher) {
                return !watcher.updates.is_closed();
            }
            // Send the update itself to the last watcher, and copies to the others. Most runs have one watcher, so most
            // updates are not copied.
            let update = match further {
                0 => update.take(),
                _ => update.clone(),
            };
            update.is_none_or(|update| watcher.updates.try_send(update).is_ok())
        });
        if watchers.is_empty() {
            self.of.remove(run);
        }
    }

    /// Returns whether a run has a watcher that is not closed.
    pub fn has(&self, run: &Name) -> bool {
        self.of
            .get(run)
            .is_some_and(|of| of.iter().any(|watcher| !watcher.updates.is_closed()))
    }

    /// Removes the watchers of a run that has ended.
    pub fn close(&mut self, run: &Name) {
        self.of.remove(run);
    }
}
