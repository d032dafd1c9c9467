//! Those who watch a run: what the driver tells them, after it is durable. The driver never waits for
//! one of them.

use super::{ScheduleError, Step};
use crate::machine::{Outcome, PauseReason};
use crate::model::Name;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// So many updates may wait for one who watches a run.
const WATCHED: usize = 1_024;

/// So many of them may be steps: with more, one who does not look would only hold memory. The rest is
/// for pauses and the end.
const STEPS_WATCHED: usize = 64;

/// So many runs that nobody watches any more may be among those that are watched.
const MANY: usize = 128;

/// What the scheduler tells those who watch a run, after it is durable.
#[derive(Clone, Debug)]
pub enum Update {
    /// A step of the run.
    Step(Box<Step>),
    /// The run stands still.
    Paused(PauseReason),
    /// The run ended.
    Finished(Outcome),
    /// The run cannot go on in this process; it is as it was in the store.
    Stuck(ScheduleError),
}

/// The driver's end of what one who watches a run is told.
pub struct Watcher {
    updates: mpsc::Sender<Update>,
    only_end: Arc<AtomicBool>,
}

/// Hears of a run.
pub struct Updates {
    updates: mpsc::Receiver<Update>,
    only_end: Arc<AtomicBool>,
}

/// Both ends.
#[must_use]
pub fn watch() -> (Watcher, Updates) {
    let (to, from) = mpsc::channel(WATCHED);
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
    /// The next step, pause or end; none when there is nothing more to come.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.recv().await
    }

    /// What has come already.
    pub fn try_next(&mut self) -> Option<Update> {
        self.updates.try_recv().ok()
    }

    /// From now on only pauses and the end are of interest: to be woken for each step of a long loop
    /// costs as much as the step.
    pub fn only_end(&self) {
        self.only_end.store(true, Ordering::Relaxed);
    }
}

impl Watcher {
    fn wants_steps(&self) -> bool {
        let waiting = self.updates.max_capacity() - self.updates.capacity();
        !self.only_end.load(Ordering::Relaxed) && waiting < STEPS_WATCHED
    }
}

/// Those who watch a run.
#[derive(Default)]
pub(super) struct Watchers {
    of: HashMap<Name, Vec<Watcher>>,
    /// With more runs than this it is looked for those who have gone: most who start a run do not
    /// stay, and a channel costs some kilobytes.
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
            self.sweep_at = self.of.len() * 2 + MANY;
        }
    }

    /// Tells of a step those who want to know. One who does not keep up misses some, which it finds
    /// in the store.
    pub fn step(&mut self, run: &Name, step: impl FnOnce() -> Step) {
        let Some(watchers) = self.of.get(run) else {
            return;
        };
        if watchers.iter().any(Watcher::wants_steps) {
            let step = Update::Step(Box::new(step()));
            self.send(run, step, Watcher::wants_steps);
        } else if watchers.iter().all(|watcher| watcher.updates.is_closed()) {
            self.of.remove(run);
        }
    }

    /// Tells all; one who is so far behind that it cannot be told is let go, rather than left without
    /// a pause or an end.
    pub fn tell(&mut self, run: &Name, update: impl FnOnce() -> Update) {
        if self.of.contains_key(run) {
            self.send(run, update(), |_| true);
        }
    }

    /// Those who have gone are forgotten.
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
            // Most are watched by one, who gets it as it is.
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

    /// The run has ended: there is nothing more to tell.
    pub fn close(&mut self, run: &Name) {
        self.of.remove(run);
    }
}
