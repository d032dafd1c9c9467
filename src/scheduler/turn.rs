//! One turn of the driver: advance what is busy, store what changed, and settle it. Nothing that a
//! step asks for is done before its commit is durable.

use super::driver::{Driver, reply_all};
use super::{Reply, ScheduleError, Step, Update};
use crate::machine::{Event, PauseReason, RunStatus, Transition, advance};
use crate::model::Name;
use crate::store::{Commit, Committed, StoreError};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{channel, sync_channel};

/// So many runs are stored at once; of more, one part is advanced while another is written.
const PART: usize = 200;

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

impl Driver {
    /// Advances the runs that have something to do, stores all that changed, and does what it asks
    /// for. Many runs are taken in parts: one is advanced while the one before it is stored.
    pub(super) fn turn(&mut self) {
        if self.outage.is_some() {
            return;
        }
        let busy: Vec<Name> = std::mem::take(&mut self.busy).into_iter().collect();
        let (store, metrics) = (self.store.clone(), self.workshop.metrics.clone());
        let write = |group: &[Commit]| match group.len() {
            0 => Ok(Vec::new()),
            size => metrics.group(size, || store.commit(group)),
        };
        if busy.len() <= PART {
            let (group, waiting) = self.advance_all(&busy);
            let outcome = write(&group);
            return self.settle(waiting, &group, outcome);
        }
        std::thread::scope(|scope| {
            // One part may wait while another is written.
            let (to_write, parts) = sync_channel::<Vec<Commit>>(1);
            let (written, outcomes) = channel();
            scope.spawn(move || {
                for group in parts {
                    let outcome = write(&group);
                    // The driver takes all of them.
                    let _ = written.send((group, outcome));
                }
            });
            let mut in_commit = VecDeque::new();
            for part in busy.chunks(PART) {
                let (group, waiting) = self.advance_all(part);
                in_commit.push_back(waiting);
                // The writer ends when this is dropped, not before.
                let _ = to_write.send(group);
                while let Ok((group, outcome)) = outcomes.try_recv() {
                    self.settle(in_commit.pop_front().unwrap_or_default(), &group, outcome);
                }
            }
            drop(to_write);
            for (group, outcome) in outcomes {
                self.settle(in_commit.pop_front().unwrap_or_default(), &group, outcome);
            }
        });
    }

    fn advance_all(&mut self, runs: &[Name]) -> (Vec<Commit>, Vec<InCommit>) {
        let mut group = Vec::with_capacity(runs.len());
        let mut waiting = Vec::with_capacity(runs.len());
        for run in runs {
            if let Some((commit, step)) = self.advance(run) {
                group.extend(commit);
                waiting.push(step);
            }
        }
        (group, waiting)
    }

    fn settle(&mut self, waiting: Vec<InCommit>, group: &[Commit], outcome: Outcomes) {
        match outcome {
            Ok(results) => {
                let mut results = group.iter().zip(results);
                for step in waiting {
                    let result = if step.stored { results.next() } else { None };
                    self.settled(step, result);
                }
            }
            Err(error) => self.refused(waiting, error),
        }
    }

    /// Applies what is in a run's inbox; gives its commit, if anything changed.
    fn advance(&mut self, run: &Name) -> Option<(Option<Commit>, InCommit)> {
        let now = self.clock.now();
        let live = self.runs.get_mut(run)?;
        let now = live.time(now);
        let mut step = Transition::default();
        let mut replies = Vec::new();
        while let Some((event, reply)) = live.inbox.pop_front() {
            // A step that goes on crosses an iteration boundary: it is a commit of its own.
            let alone = matches!(event, Event::Continued);
            if alone && !step.is_empty() {
                live.inbox.push_front((event, reply));
                self.busy.insert(run.clone());
                break;
            }
            replies.extend(reply);
            let program = live.loaded.program.clone();
            // Unwind safety: what a panic leaves of the run is thrown away.
            let next = catch_unwind(AssertUnwindSafe(|| {
                advance(&program, &mut live.state, now, event)
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
        if !live.inbox.is_empty() {
            self.busy.insert(run.clone());
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

    fn settled(
        &mut self,
        done: InCommit,
        result: Option<(&Commit, Result<Committed, StoreError>)>,
    ) {
        let InCommit {
            run, step, replies, ..
        } = done;
        let Some(live) = self.runs.get_mut(&run) else {
            return;
        };
        let status = live.state.status();
        match result {
            None => reply_all(replies, &Ok(status)),
            Some((_, Err(error))) => {
                let error = ScheduleError::from(error);
                reply_all(replies, &Err(error.clone()));
                self.throw_away(&run, error);
            }
            Some((commit, Ok(committed))) => {
                live.committed(committed.change_bytes, committed.snapshot_bytes);
                let grown = live.outgrown(self.limits.state_bytes);
                self.setbacks.overcome(&run);
                let iterations = commit.iterations.len() as u64;
                self.workshop.metrics.step(&commit.history, iterations);
                if self.watchers.any(&run) {
                    let update = Update::Step(Box::new(Step {
                        history: commit.history.clone(),
                        loops: commit.loops.clone(),
                        header: commit.header.clone(),
                    }));
                    self.watchers.tell(&run, &update);
                    if let Some((_, reason)) = live.state.paused.clone() {
                        self.tell_paused(&run, commit, reason);
                    }
                }
                let effects = step.release(&committed.receipt);
                self.release(&run, effects);
                reply_all(replies, &Ok(status));
                if let Some(bytes) = grown.filter(|_| !status.is_final()) {
                    let limit = self.limits.state_bytes;
                    self.post(&run, Event::Outgrown { bytes, limit }, None);
                }
                self.let_go(&run);
            }
        }
    }

    fn tell_paused(&mut self, run: &Name, commit: &Commit, reason: PauseReason) {
        let now_paused = commit
            .history
            .iter()
            .any(|event| matches!(event.what, crate::machine::Happening::RunPaused { .. }));
        if now_paused {
            self.watchers.tell(run, &Update::Paused(reason));
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
