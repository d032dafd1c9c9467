//! The commit pipeline: advance the busy runs, make their steps durable, and release the effects.
//! No effect of a step starts before its commit is durable.

use super::buffers::{BATCH, UNDER_WAY, WRITERS};
use super::driver::{Driver, reply_all};
use super::metrics::Metrics;
use super::traces::Attempts;
use super::{Reply, ScheduleError, Step, Update};
use crate::machine::{Event, HistoryKind, RunStatus, Transition};
use crate::model::Name;
use crate::store::{Commit, Committed, Store, StoreError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

/// After so many batches the driver gathers messages again.
const BATCHES: usize = 128;

/// The outcome of each commit of a group, or why nothing is known to be durable.
type Outcomes = Result<Vec<Result<Committed, StoreError>>, StoreError>;

/// A step that waits for its commit.
struct PendingStep {
    run: Name,
    step: Transition,
    /// Whether it has a commit in the group.
    stored: bool,
    replies: Vec<Reply<RunStatus>>,
    attempts: Attempts,
}

/// The steps of some busy runs, on their way through the store.
struct Batch {
    group: Vec<Commit>,
    waiting: Vec<PendingStep>,
}

impl Batch {
    fn write(&self, store: &dyn Store, metrics: &Metrics) -> Outcomes {
        match self.group.len() {
            0 => Ok(Vec::new()),
            size => metrics.group(size, || store.commit(&self.group)),
        }
    }
}

impl Driver {
    /// Advances the busy runs, stores their steps and releases the effects. Many runs go in batches:
    /// one is advanced while another is stored. Runs that are busy again join the next batch, until a message
    /// comes or a timer is due; not where a caller starts the rounds.
    pub(super) fn run_commits(&mut self) {
        if self.outage.is_some() {
            return;
        }
        let busy = self.take_busy();
        if busy.len() <= BATCH {
            let batch = self.advance_all(&busy);
            let outcome = batch.write(&*self.store, &self.runtime.metrics);
            return self.complete(batch, outcome);
        }
        self.pipeline(busy);
    }

    fn pipeline(&mut self, mut busy: Vec<Name>) {
        let keep_going = self.runtime.own.is_some();
        let (store, metrics) = (self.store.clone(), self.runtime.metrics.clone());
        let (to_write, batches) = channel::<Batch>();
        let batches = Mutex::new(batches);
        let (written, outcomes) = channel();
        std::thread::scope(|scope| {
            // One writer keeps the order fixed for the manual driver.
            let writers = if keep_going { WRITERS } else { 1 };
            for _ in 0..writers {
                let (written, batches, store, metrics) =
                    (written.clone(), &batches, &store, &metrics);
                scope.spawn(move || {
                    let next = || {
                        batches
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .recv()
                    };
                    while let Ok(batch) = next() {
                        // The panic goes to the driver, which would wait for this batch for ever.
                        let write = AssertUnwindSafe(|| batch.write(&**store, metrics));
                        let outcome = catch_unwind(write);
                        // The driver receives until all batches are back.
                        let _ = written.send((batch, outcome));
                    }
                });
            }
            drop(written);
            let (mut under_way, mut left) = (0, BATCHES);
            loop {
                let goes_on = keep_going && left > 0 && !self.is_called();
                if goes_on && busy.len() < BATCH {
                    busy.append(&mut self.take_busy());
                }
                // A small batch waits: those under way may make more runs busy.
                let enough = busy.len() >= BATCH || under_way < writers && !busy.is_empty();
                if enough && under_way < UNDER_WAY && self.outage.is_none() {
                    let rest = busy.split_off(busy.len().min(BATCH));
                    let batch = self.advance_all(&std::mem::replace(&mut busy, rest));
                    // The writers end only when this sender is dropped.
                    let _ = to_write.send(batch);
                    under_way += 1;
                    left = left.saturating_sub(1);
                } else if under_way == 0 {
                    break;
                } else if let Ok((batch, outcome)) = outcomes.recv() {
                    self.complete(batch, outcome.unwrap_or_else(|panic| resume_unwind(panic)));
                    under_way -= 1;
                }
            }
            drop(to_write);
        });
        // After a failed write these wait for the store.
        self.busy.append(&mut busy);
    }

    /// The busy runs, in the order of their ids.
    fn take_busy(&mut self) -> Vec<Name> {
        let mut busy = std::mem::take(&mut self.busy);
        busy.sort_unstable();
        busy
    }

    fn advance_all(&mut self, runs: &[Name]) -> Batch {
        let mut group = Vec::with_capacity(runs.len());
        let mut waiting = Vec::with_capacity(runs.len());
        for run in runs {
            if let Some((commit, step)) = self.advance(run) {
                group.extend(commit);
                waiting.push(step);
            }
        }
        Batch { group, waiting }
    }

    fn complete(&mut self, batch: Batch, outcome: Outcomes) {
        let Batch { group, waiting } = batch;
        match outcome {
            Ok(results) => {
                let mut results = group.into_iter().zip(results);
                for step in waiting {
                    let result = if step.stored { results.next() } else { None };
                    self.complete_step(step, result);
                }
            }
            Err(error) => self.commit_failed(waiting, error),
        }
    }

    /// Applies what is in a run's inbox; gives its commit, if anything changed. The rest of the inbox
    /// waits until that commit is done: of two commits of a run the later could be written first.
    fn advance(&mut self, run: &Name) -> Option<(Option<Commit>, PendingStep)> {
        let now = self.clock.now();
        let active = self.runs.get_mut(run)?;
        active.queued = false;
        let now = active.hosted.time(now);
        let mut step = Transition::default();
        let mut replies = Vec::new();
        let mut attempts = Attempts::default();
        while let Some((event, reply)) = active.inbox.pop_front() {
            // A step that goes on crosses an iteration boundary: it needs a commit of its own.
            let alone = matches!(event, Event::Continued);
            if alone && !step.is_empty() {
                active.inbox.push_front((event, reply));
                break;
            }
            replies.extend(reply);
            let (state, program) = (active.hosted.state(), active.hosted.program());
            self.runtime
                .traces
                .before(&mut attempts, state, program, &event);
            let changes = self.buffers.take();
            // Unwind safety: after a panic the run in memory is discarded.
            let next = catch_unwind(AssertUnwindSafe(|| active.hosted.on(changes, event, now)));
            match next {
                Ok(Ok(next)) => step.join(next),
                Ok(Err(bug)) => {
                    self.broken(run, replies, bug.to_string());
                    return None;
                }
                Err(panic) => {
                    self.broken(run, replies, said(&*panic));
                    return None;
                }
            }
            if alone {
                break;
            }
        }
        // A step without changes is not stored, but its replies still go out.
        let commit = (!step.is_empty()).then(|| active.commit(&mut step, now));
        let stored = commit.is_some();
        Some((
            commit,
            PendingStep {
                run: run.clone(),
                step,
                stored,
                replies,
                attempts,
            },
        ))
    }

    /// A bug or a panic in one run must not touch the others.
    fn broken(&mut self, run: &Name, replies: Vec<Reply<RunStatus>>, reason: String) {
        let error = ScheduleError::Broken {
            run: run.clone(),
            reason,
        };
        reply_all(replies, &Err(error.clone()));
        self.discard(run, error);
    }

    fn complete_step(
        &mut self,
        done: PendingStep,
        result: Option<(Commit, Result<Committed, StoreError>)>,
    ) {
        let PendingStep {
            run,
            step,
            replies,
            attempts,
            ..
        } = done;
        let Some(active) = self.runs.get_mut(&run) else {
            return;
        };
        let status = active.hosted.status();
        match result {
            None => {
                reply_all(replies, &Ok(status));
                self.queue(&run);
            }
            Some((_, Err(error))) => {
                let error = ScheduleError::from(error);
                reply_all(replies, &Err(error.clone()));
                self.discard(&run, error);
            }
            Some((commit, Ok(committed))) => {
                active.committed(committed.change_bytes, committed.snapshot_bytes);
                let too_large = active.hosted.too_large(self.limits.state_bytes);
                let paused = active.hosted.state().paused.as_ref();
                let paused = paused.filter(|_| has_paused(&commit));
                let paused = paused.map(|(_, reason)| Update::Paused(reason.clone()));
                self.retries.overcome(&run);
                let iterations = commit.iterations.len() as u64;
                let started_at = active.hosted.state().started_at;
                let name = &active.hosted.program().name;
                let metrics = &self.runtime.metrics;
                metrics.step(name, started_at, &commit.history, iterations);
                let (state, program) = (active.hosted.state(), active.hosted.program());
                self.runtime.traces.step(&commit, attempts, state, program);
                self.watchers.step(&run, || Step {
                    history: commit.history,
                    loops: commit.loops,
                    header: commit.header,
                });
                if let Some(paused) = paused {
                    self.watchers.notify(&run, || paused);
                }
                self.buffers.give_back(commit.changes);
                let effects = active.hosted.release(step, &committed.receipt);
                self.release(&run, effects);
                reply_all(replies, &Ok(status));
                if let Some(event) = too_large {
                    self.post(&run, event, None);
                }
                self.queue(&run);
                self.evict(&run);
            }
        }
    }

    /// Nothing of the group is known to be durable, and memory may be ahead of the store. So its runs
    /// are discarded, and loaded again from the store (docs/architecture.md, law 3).
    fn commit_failed(&mut self, waiting: Vec<PendingStep>, error: StoreError) {
        tracing::error!(%error, "the store refused a group of commits");
        let error = ScheduleError::from(error);
        self.outage_of(&error);
        for PendingStep { run, replies, .. } in waiting {
            reply_all(replies, &Err(error.clone()));
            self.discard(&run, error.clone());
        }
    }
}

/// Whether the run paused in this step.
fn has_paused(commit: &Commit) -> bool {
    let mut history = commit.history.iter();
    history.any(|event| matches!(event.what, HistoryKind::RunPaused { .. }))
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    said.unwrap_or("it does not say why").to_owned()
}
