//! One turn of the driver: advance what is busy, store what changed, and settle it. Nothing that a
//! step asks for is done before its commit is durable.

use super::driver::{Driver, reply_all};
use super::metrics::Metrics;
use super::{Reply, ScheduleError, Step, Update};
use crate::machine::{Change, Event, Happening, RunStatus, Transition, advance_into};
use crate::model::Name;
use crate::store::{Commit, Committed, Store, StoreError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

/// So many runs are stored at once; of more, parts are advanced while others are written. A store
/// has no more bytes of two of them on their way than of one large one, so that they are not larger.
const PART: usize = 100;
/// So many parts are written at a time: one is handed to the database while the disk has another.
const WRITERS: usize = 2;
/// So many parts are under way at most: those that are written, and one that waits for its turn.
const UNDER_WAY: usize = WRITERS + 1;
/// After so many parts the driver looks around even if nothing has come.
const PARTS: usize = 128;

/// What became of the commits of a group, or why nothing is known to be durable.
type Outcomes = Result<Vec<Result<Committed, StoreError>>, StoreError>;

/// A step that waits for its commit.
struct InCommit {
    run: Name,
    step: Transition,
    /// Whether it has a commit in the group.
    stored: bool,
    replies: Vec<Reply<RunStatus>>,
}

/// The memory of changes that are stored, for those that come.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<Change>>);

impl Spare {
    /// Those of all parts that are under way.
    const MOST: usize = PART * UNDER_WAY;
    /// Steps with more changes are rare.
    const LONGEST: usize = 64;

    fn take(&mut self) -> Vec<Change> {
        self.0.pop().unwrap_or_default()
    }

    fn keep(&mut self, mut changes: Vec<Change>) {
        if self.0.len() < Self::MOST && changes.capacity() <= Self::LONGEST {
            changes.clear();
            self.0.push(changes);
        }
    }
}

/// A part of the runs that have something to do, on its way through the store.
struct Part {
    group: Vec<Commit>,
    waiting: Vec<InCommit>,
}

impl Part {
    fn write(&self, store: &dyn Store, metrics: &Metrics) -> Outcomes {
        match self.group.len() {
            0 => Ok(Vec::new()),
            size => metrics.group(size, || store.commit(&self.group)),
        }
    }
}

impl Driver {
    /// Advances the runs that have something to do, stores all that changed, and does what it asks
    /// for. Many runs are taken in parts: some are advanced while others are stored. With `on`,
    /// those that can go on at once do so in the same turn, until something else is to be done.
    pub(super) fn turn(&mut self, on: bool) {
        if self.outage.is_some() {
            return;
        }
        let busy = self.take_busy();
        if busy.len() <= PART {
            let part = self.advance_all(&busy);
            let outcome = part.write(&*self.store, &self.workshop.metrics);
            return self.settle(part, outcome);
        }
        self.turn_of_many(busy, on);
    }

    fn turn_of_many(&mut self, mut busy: Vec<Name>, on: bool) {
        let (store, metrics) = (self.store.clone(), self.workshop.metrics.clone());
        let (to_write, parts) = channel::<Part>();
        let parts = Mutex::new(parts);
        let (written, outcomes) = channel();
        std::thread::scope(|scope| {
            // In one order when somebody moves the driver by hand.
            let writers = if on { WRITERS } else { 1 };
            for _ in 0..writers {
                let (written, parts, store, metrics) = (written.clone(), &parts, &store, &metrics);
                scope.spawn(move || {
                    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    while let Ok(part) = next() {
                        // A panic is the driver's, who would wait for this part for ever.
                        let write = AssertUnwindSafe(|| part.write(&**store, metrics));
                        let outcome = catch_unwind(write);
                        // The driver takes all of them.
                        let _ = written.send((part, outcome));
                    }
                });
            }
            drop(written);
            let (mut under_way, mut left) = (0, PARTS);
            loop {
                let goes_on = on && left > 0 && !self.is_called();
                if goes_on && busy.len() < PART {
                    busy.append(&mut self.take_busy());
                }
                // A small part waits for those under way to bring more.
                let enough = busy.len() >= PART || under_way < writers && !busy.is_empty();
                if enough && under_way < UNDER_WAY && self.outage.is_none() {
                    let rest = busy.split_off(busy.len().min(PART));
                    let part = self.advance_all(&std::mem::replace(&mut busy, rest));
                    // The writers end when this is dropped, not before.
                    let _ = to_write.send(part);
                    under_way += 1;
                    left = left.saturating_sub(1);
                } else if under_way == 0 {
                    break;
                } else if let Ok((part, outcome)) = outcomes.recv() {
                    self.settle(part, outcome.unwrap_or_else(|panic| resume_unwind(panic)));
                    under_way -= 1;
                }
            }
            drop(to_write);
        });
        // After a write that failed nothing goes on.
        self.busy.append(&mut busy);
    }

    /// The runs that have something to do, in the order of their ids.
    fn take_busy(&mut self) -> Vec<Name> {
        let mut busy = std::mem::take(&mut self.busy);
        busy.sort_unstable();
        busy
    }

    fn advance_all(&mut self, runs: &[Name]) -> Part {
        let mut group = Vec::with_capacity(runs.len());
        let mut waiting = Vec::with_capacity(runs.len());
        for run in runs {
            if let Some((commit, step)) = self.advance(run) {
                group.extend(commit);
                waiting.push(step);
            }
        }
        Part { group, waiting }
    }

    fn settle(&mut self, part: Part, outcome: Outcomes) {
        let Part { group, waiting } = part;
        match outcome {
            Ok(results) => {
                let mut results = group.into_iter().zip(results);
                for step in waiting {
                    let result = if step.stored { results.next() } else { None };
                    self.settled(step, result);
                }
            }
            Err(error) => self.refused(waiting, error),
        }
    }

    /// Applies what is in a run's inbox; gives its commit, if anything changed. What is left there
    /// waits until that is settled: of two commits of a run under way the later could be written
    /// first.
    fn advance(&mut self, run: &Name) -> Option<(Option<Commit>, InCommit)> {
        let now = self.clock.now();
        let live = self.runs.get_mut(run)?;
        live.queued = false;
        let now = live.time(now);
        let mut step = Transition::default();
        let mut replies = Vec::new();
        while let Some((event, reply)) = live.inbox.pop_front() {
            // A step that goes on crosses an iteration boundary: it is a commit of its own.
            let alone = matches!(event, Event::Continued);
            if alone && !step.is_empty() {
                live.inbox.push_front((event, reply));
                break;
            }
            replies.extend(reply);
            let program = live.loaded.program.clone();
            let changes = self.spare.take();
            // Unwind safety: what a panic leaves of the run is thrown away.
            let next = catch_unwind(AssertUnwindSafe(|| {
                advance_into(changes, &program, &mut live.state, now, event)
            }));
            match next {
                Ok(next) => step.join(next),
                Err(panic) => {
                    self.panicked(run, replies, &*panic);
                    return None;
                }
            }
            if alone {
                break;
            }
        }
        // What changed nothing has nothing to be stored; its replies still go out.
        let commit = (!step.is_empty()).then(|| live.commit(&mut step, now));
        let stored = commit.is_some();
        Some((
            commit,
            InCommit {
                run: run.clone(),
                step,
                stored,
                replies,
            },
        ))
    }

    /// A run that the engine itself stumbles over is no matter of the others.
    fn panicked(&mut self, run: &Name, replies: Vec<Reply<RunStatus>>, panic: &(dyn Any + Send)) {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let error = ScheduleError::Broken {
            run: run.clone(),
            reason: said.unwrap_or("it does not say why").to_owned(),
        };
        reply_all(replies, &Err(error.clone()));
        self.throw_away(run, error);
    }

    fn settled(&mut self, done: InCommit, result: Option<(Commit, Result<Committed, StoreError>)>) {
        let InCommit {
            run, step, replies, ..
        } = done;
        let Some(live) = self.runs.get_mut(&run) else {
            return;
        };
        let status = live.state.status();
        match result {
            None => {
                reply_all(replies, &Ok(status));
                self.queue(&run);
            }
            Some((_, Err(error))) => {
                let error = ScheduleError::from(error);
                reply_all(replies, &Err(error.clone()));
                self.throw_away(&run, error);
            }
            Some((commit, Ok(committed))) => {
                live.committed(committed.change_bytes, committed.snapshot_bytes);
                let grown = live.outgrown(self.limits.state_bytes);
                let paused = live.state.paused.as_ref();
                let paused = paused.filter(|_| has_paused(&commit));
                let paused = paused.map(|(_, reason)| Update::Paused(reason.clone()));
                self.setbacks.overcome(&run);
                let iterations = commit.iterations.len() as u64;
                self.workshop.metrics.step(&commit.history, iterations);
                self.watchers.step(&run, || Step {
                    history: commit.history,
                    loops: commit.loops,
                    header: commit.header,
                });
                if let Some(paused) = paused {
                    self.watchers.tell(&run, || paused);
                }
                self.spare.keep(commit.changes);
                let effects = step.release(&committed.receipt);
                self.release(&run, effects);
                reply_all(replies, &Ok(status));
                if let Some(bytes) = grown.filter(|_| !status.is_final()) {
                    let limit = self.limits.state_bytes;
                    self.post(&run, Event::Outgrown { bytes, limit }, None);
                }
                self.queue(&run);
                self.let_go(&run);
            }
        }
    }

    /// Nothing of the group is known to be durable: what is in memory may be ahead of the store,
    /// so all of it is thrown away (spec: architecture.md, law 3). The runs are as the store has
    /// them; whoever asks for one again, or recovers the store, loads it from there.
    fn refused(&mut self, waiting: Vec<InCommit>, error: StoreError) {
        tracing::error!(%error, "the store refused a group of commits");
        let error = ScheduleError::from(error);
        self.outage_of(&error);
        for InCommit { run, replies, .. } in waiting {
            reply_all(replies, &Err(error.clone()));
            self.throw_away(&run, error.clone());
        }
    }
}

/// Whether a run stands still since this step.
fn has_paused(commit: &Commit) -> bool {
    let mut history = commit.history.iter();
    history.any(|event| matches!(event.what, Happening::RunPaused { .. }))
}
