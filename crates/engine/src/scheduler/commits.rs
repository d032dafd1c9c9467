//! The commit pipeline: advance the busy runs, make their steps durable, and release the effects. An effect starts when
//! its step is durable. Requests without side effects (`Request::is_safe`, "safe requests") are an exception in two
//! cases. In both, all requests of the step must be safe, the step must abort no effect, and no loop may reach a limit
//! in the step (all conditions: `Transition::take_idempotent`).
//!
//! - A held step. All events that led to the step are redelivered after a crash (`RunHost::is_redelivered`), and all
//!   data that its requests depend on is durable. The requests start at once. The step is held: it is stored together
//!   with the answer, or after [`HOLD`].
//! - A step that the disk syncs. The operating system has the step (`Store::commit_with_callback`), so only a power cut
//!   can remove it. No event that led to the step had side effects (`RunHost::is_side_effect_free`). Its safe requests
//!   start while the driver's own thread waits for the disk.
//!
//! A step is not held in these cases:
//!
//! - The run has a row in the store's index of due times. Only a commit removes this row, and until then the driver
//!   would find the run there again and again.
//! - The process stops and waits for the end of all effects (`Driver::commands_only`).
//! - The store refused a group, and has accepted none since (`Driver::can_hold_steps`).

use super::active::{ActiveRun, Advance, HeldStep, LARGE_COMMIT, PendingComputation};
use super::buffers::BATCH;
use super::compute::{ComputedStep, Job, panic_message};
use super::driver::{Driver, refused_signal, reply_all};
use super::effects::EffectRuntime;
use super::metrics::Metrics;
use super::run_log::log_step;
use super::traces::Attempts;
use super::writers::{MAX_IN_FLIGHT, WRITERS, WrittenBatch};
use super::{Reply, ScheduleError, Step, Update};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;
use windlass_machine::{Budget, Effect, Event, HistoryKind, RunStatus, Transition};
use windlass_model::model::{Name, Origin};
use windlass_store::{Commit, Committed, Placement, Store, StoreError};
use windlass_value::time::Timestamp;

/// If at most this many runs are busy, the driver's own thread writes their steps, because waking another thread costs
/// more.
const FEW_RUNS: usize = 4;

/// While one batch is being written, a second batch needs at least this many busy runs: each batch costs a sync.
const SMALL_BATCH: usize = 4;

/// A held step is stored after this time at the latest, so that readers of the store can see a slow call.
const HOLD: Duration = Duration::from_millis(100);

/// Units of work that one step may do on the driver's thread, about 5 ms. A longer step is computed on another thread.
const STEP_WORK: u64 = 100_000;

/// Units of work that all steps of a batch may do together. When this is used up, each further step of the batch may do
/// [`LEAST_WORK`].
const BATCH_WORK: u64 = 300_000;
const LEAST_WORK: u64 = 4_000;

/// A time before all due times. During a sync, safe requests start however early a timer of the same step is due.
const NEVER_DUE: Timestamp = Timestamp(i64::MIN);

/// The outcome of each commit of a group (commits that are written together). After an error, it is not known whether
/// any commit is durable.
pub(super) type Outcomes = Result<Vec<Result<Committed, StoreError>>, StoreError>;

/// A step of a batch. Its effects and replies wait until the batch is durable.
struct PendingStep {
    run: Name,
    step: Transition,
    /// Whether the step has a commit in the group.
    stored: bool,
    replies: Vec<Reply<RunStatus>>,
    attempts: Attempts,
    /// Whether no event that led to the step had side effects.
    is_side_effect_free: bool,
}

/// The steps of some busy runs that are written to the store together.
pub(super) struct Batch {
    group: Vec<Commit>,
    waiting: Vec<PendingStep>,
    /// Whether the batch has the steps that took long or are large.
    is_large: bool,
}

impl Batch {
    fn new(is_large: bool) -> Self {
        Self {
            group: Vec::new(),
            waiting: Vec::new(),
            is_large,
        }
    }

    /// Returns whether the batch is slow to encode.
    pub fn is_large(&self) -> bool {
        self.is_large
    }

    /// Writes the commits of the batch as one group, and waits until they are durable.
    pub fn write(&self, store: &dyn Store, metrics: &Metrics) -> Outcomes {
        write(&self.group, store, metrics, &mut || ())
    }
}

fn write(
    group: &[Commit],
    store: &dyn Store,
    metrics: &Metrics,
    written: &mut dyn FnMut(),
) -> Outcomes {
    match group.len() {
        0 => Ok(Vec::new()),
        size => metrics.group(size, || store.commit_with_callback(group, written)),
    }
}

impl Driver {
    /// Advances the busy runs, stores their steps and releases the effects. If more than a few runs are busy, or steps
    /// are large, other threads write batches while this thread advances the next one. A driver without its own thread
    /// (`manual`) writes one batch after the other.
    pub(super) fn run_commits(&mut self) {
        if self.runtime.own.is_none() {
            let mut left = self.busy.len();
            while left > 0 && self.outage.is_none() {
                let size = left.min(BATCH);
                for batch in self.next_batches(size) {
                    self.write_here(batch);
                }
                left -= size;
            }
            return;
        }
        while self.can_commit() {
            let size = self.busy.len().min(BATCH);
            let [usual, large] = self.next_batches(size);
            if !large.waiting.is_empty() {
                self.hand_over(large);
            }
            if usual.waiting.is_empty() {
                continue;
            }
            // Write here only if no batch is in flight: a write on this thread would wait for a large batch.
            if size <= FEW_RUNS && self.writers.are_idle() {
                return self.write_here(usual);
            }
            self.hand_over(usual);
        }
    }

    /// Hands a batch to another thread, which writes it.
    fn hand_over(&mut self, batch: Batch) {
        let (metrics, messages) = (&self.runtime.metrics, &self.runtime.messages);
        let handed = self.writers.write(batch, &self.store, metrics, messages);
        if let Err((batch, error)) = handed {
            tracing::warn!(%error, "steps are stored one batch after the other");
            self.write_here(batch);
        }
    }

    /// Makes a batch durable on this thread. While the disk syncs the batch, the safe requests of a step start if the
    /// events that led to the step had no side effects.
    fn write_here(&mut self, mut batch: Batch) {
        let may_leave = self.can_hold_steps && !self.commands_only && self.stopping.is_none();
        let (runs, runtime, waiting) = (&mut self.runs, &self.runtime, &mut batch.waiting);
        // While memory is short, start no call of a guest's run: a run with a call in flight cannot leave memory.
        let guests_may = self.guests.has_room(0);
        let mut written = || {
            if may_leave {
                release_idempotent(runs, runtime, waiting, guests_may);
            }
        };
        let outcome = write(&batch.group, &*self.store, &runtime.metrics, &mut written);
        self.complete(batch, outcome);
    }

    /// Returns whether there are enough busy runs for a batch. A small batch waits for the batches in flight. These may
    /// make more runs busy, and each sync costs as much as many steps.
    pub(super) fn can_commit(&self) -> bool {
        let enough = match self.writers.in_flight() {
            0 => 1,
            1..WRITERS => SMALL_BATCH,
            WRITERS..MAX_IN_FLIGHT => BATCH,
            _ => return false,
        };
        self.is_busy() && self.busy.len() >= enough
    }

    /// Completes the batches that other threads have written.
    pub(super) fn drain_completed(&mut self) {
        while let Some(written) = self.writers.try_recv_batch() {
            self.on_batch_written(written);
        }
    }

    /// Waits until no batch is in flight.
    pub(super) fn await_completed(&mut self) {
        while let Some(written) = self.writers.recv_batch() {
            self.on_batch_written(written);
        }
    }

    fn on_batch_written(&mut self, (batch, outcome): WrittenBatch) {
        self.complete(batch, outcome.unwrap_or_else(|panic| resume_unwind(panic)));
    }

    /// Advances the next `size` busy runs in the order of their ids. Returns a batch of the usual steps and a batch of
    /// the large ones.
    fn next_batches(&mut self, size: usize) -> [Batch; 2] {
        let size = size.min(self.busy.len());
        let mut runs: Vec<Name> = self.busy.drain(..size).collect();
        runs.sort_unstable();
        self.advance_all(&runs)
    }

    fn advance_all(&mut self, runs: &[Name]) -> [Batch; 2] {
        let [mut usual, mut large] = [false, true].map(Batch::new);
        usual.group.reserve(runs.len());
        usual.waiting.reserve(runs.len());
        self.allowance = BATCH_WORK;
        for run in runs {
            if let Some((commit, step)) = self.advance(run) {
                let is_large = self.runs.get(run).is_some_and(|active| active.is_large);
                let most = LARGE_COMMIT as usize;
                let fits =
                    |commit: &Commit| commit.changes.iter().all(|one| one.fits_in_bytes(most));
                let is_large = is_large || !commit.as_ref().is_none_or(fits);
                let batch = if is_large { &mut large } else { &mut usual };
                batch.group.extend(commit);
                batch.waiting.push(step);
            }
        }
        [usual, large]
    }

    fn complete(&mut self, batch: Batch, outcome: Outcomes) {
        let Batch { group, waiting, .. } = batch;
        let deferred = !self.deferred.is_empty();
        let runs = waiting.iter().map(|step| step.run.clone());
        let runs: Vec<Name> = runs.filter(|_| deferred).collect();
        if !group.is_empty() {
            self.can_hold_steps = outcome.is_ok();
            if self.can_hold_steps {
                self.reopened = 0;
            }
        }
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
        for run in runs {
            let calls = self.deferred.remove(&run).unwrap_or_default();
            calls.into_iter().for_each(|call| self.handle_message(call));
        }
    }

    /// Applies the events in a run's inbox. Returns a commit, if anything changed. Further events wait until this
    /// commit is durable. Otherwise the later of two commits of a run could be written first.
    ///
    /// If only events that are redelivered after a crash led to the step, the step may be held instead. It is not held
    /// if the run is in the store's index of due times, because the driver would find the run there again and again.
    fn advance(&mut self, run: &Name) -> Option<(Option<Commit>, PendingStep)> {
        let clock = self.clock.now();
        let active = self.runs.get_mut(run)?;
        active.queued = false;
        if let Some(computed) = active.computed.take() {
            active.is_large = true;
            return self.commit_of_step(run, *computed);
        }
        let now = active.hosted.event_time(clock);
        let may_wait = self.can_hold_steps
            && !self.commands_only
            && active.held.is_none()
            && active.header.placement == Placement::Runnable
            && (active.origin() == Origin::Operator || self.guests.has_room(0));
        let (step, attempts) = match active.held.take() {
            Some(held) => (held.step, held.attempts),
            None => (Transition::default(), Attempts::default()),
        };
        let mut advance = Advance {
            step,
            attempts,
            replies: Vec::new(),
            now,
            may_wait,
            is_side_effect_free: true,
        };
        while let Some(next) = active.inbox.pop_front() {
            // `Continued` crosses the boundary of an iteration, so its step needs a commit of its own.
            let alone = matches!(next.0, Event::Continued);
            if alone && !advance.step.is_empty() {
                active.inbox.push_front(next);
                break;
            }
            let (event, reply) = *next;
            active.is_large |= !event.fits_in_bytes(LARGE_COMMIT as usize);
            // Check the signal again: an earlier event of this step may have answered the question or ended the run.
            let refused = match &event {
                Event::Signalled(signal) => refused_signal(run, active, signal),
                _ => None,
            };
            let reply = match (reply, refused) {
                (Some(reply), Some(refused)) => {
                    let _ = reply.send(Err(refused));
                    continue;
                }
                (reply, _) => reply,
            };
            advance.replies.extend(reply);
            advance.may_wait &= active.hosted.is_redelivered(&event);
            advance.is_side_effect_free &= active.hosted.is_side_effect_free(&event);
            let (state, program) = (active.hosted.state(), active.hosted.program());
            self.runtime
                .traces
                .attempts_before(&mut advance.attempts, state, program, &event);
            if self.pool.is_some() && active.heavy {
                self.compute_elsewhere(run, advance, event, true);
                return None;
            }
            let budget = match self.pool {
                Some(_) => Budget::to_give_up(self.allowance.clamp(LEAST_WORK, STEP_WORK)),
                None => Budget::default(),
            };
            let again = self.pool.is_some().then(|| event.clone());
            let changes = self.buffers.take();
            // This is unwind safe, because the run is removed from memory after a panic.
            let on = AssertUnwindSafe(|| {
                active
                    .hosted
                    .handle_event_within(changes, event, now, &budget)
            });
            let next = catch_unwind(on);
            self.allowance = self.allowance.saturating_sub(budget.spent());
            if budget.is_exceeded()
                && let Some(event) = again
            {
                self.compute_elsewhere(run, advance, event, false);
                return None;
            }
            match next {
                Ok(Ok(next)) => advance.step.join(next),
                Ok(Err(bug)) => {
                    self.fail_run(run, advance.replies, bug.to_string());
                    return None;
                }
                Err(panic) => {
                    self.fail_run(run, advance.replies, panic_message(&*panic));
                    return None;
                }
            }
            if alone {
                break;
            }
        }
        let until = clock.plus(HOLD);
        if advance.may_wait
            && active.inbox.is_empty()
            && let Some(safe) = active.hosted.release_idempotent(&mut advance.step, until)
        {
            let held = HeldStep {
                step: advance.step,
                attempts: advance.attempts,
                until,
            };
            active.held = Some(Box::new(held));
            self.held.push_back((until, run.clone()));
            self.carry_out(run, safe);
            return None;
        }
        self.commit_of_step(run, advance)
    }

    /// Makes the commit of a step, if anything changed.
    fn commit_of_step(
        &mut self,
        run: &Name,
        advance: Advance,
    ) -> Option<(Option<Commit>, PendingStep)> {
        let active = self.runs.get_mut(run)?;
        let Advance { mut step, now, .. } = advance;
        active.is_step_in_flight = true;
        // A reached limit has to be durable before anything follows from it. Check this before the commit takes the
        // changes.
        let is_side_effect_free = advance.is_side_effect_free && !step.reaches_limit();
        // A step without changes is not stored, but its replies are still sent.
        let commit = (!step.is_empty()).then(|| active.commit(&mut step, now));
        let stored = commit.is_some();
        Some((
            commit,
            PendingStep {
                run: run.clone(),
                step,
                stored,
                replies: advance.replies,
                attempts: advance.attempts,
                is_side_effect_free,
            },
        ))
    }

    /// Hands an event of a run to another thread, which handles it.
    ///
    /// `whole` is true if the state in memory is the one before the event. It is false if this thread has stopped its
    /// own computation of the step, which leaves an invalid state.
    fn compute_elsewhere(&mut self, run: &Name, advance: Advance, event: Event, whole: bool) {
        let (Some(active), Some(pool)) = (self.runs.get_mut(run), &mut self.pool) else {
            return;
        };
        let is_aborted = Arc::default();
        let is_stored = active.header.revision > 0;
        pool.add(Job {
            run: run.clone(),
            workflow: active.header.workflow.clone(),
            origin: active.origin(),
            program: Arc::clone(active.hosted.program()),
            state: whole.then(|| Box::new(active.hosted.lend_for(&event))),
            store: is_stored.then(|| Arc::clone(&self.store)),
            changes: advance.step.changes.clone(),
            event,
            now: advance.now,
            is_aborted: Arc::clone(&is_aborted),
        });
        active.is_step_in_flight = true;
        active.computing = Some(Box::new(PendingComputation {
            advance,
            is_aborted,
            cancels: Vec::new(),
        }));
    }

    /// Continues with a run after another thread has handled its event.
    pub(super) fn on_step_computed(&mut self, done: ComputedStep) {
        let ComputedStep { run, outcome, .. } = done;
        let Some(active) = self.runs.get_mut(&run) else {
            self.pool.iter().for_each(|pool| pool.close(&run));
            return;
        };
        let own = |computing: &mut Box<PendingComputation>| {
            Arc::ptr_eq(&computing.is_aborted, &done.is_aborted)
        };
        let Some(computing) = active.computing.take_if(own) else {
            return;
        };
        let PendingComputation {
            mut advance,
            cancels,
            ..
        } = *computing;
        match outcome {
            Ok(advanced) => {
                active.hosted.take_over(advanced.state, advance.now);
                active.heavy = advanced.spent > STEP_WORK / 4;
                advance.step.join(advanced.step);
                advance.is_side_effect_free = false;
                if advanced.cancelled {
                    advance.replies.extend(cancels);
                } else {
                    let late = cancels
                        .into_iter()
                        .map(|reply| (Event::CancelRequested, Some(reply)));
                    active.inbox.extend(late.map(Box::new));
                }
                active.computed = Some(Box::new(advance));
                active.queued = true;
                self.busy.push_back(run);
            }
            Err(error) => {
                let replies = advance.replies.into_iter().chain(cancels).collect();
                reply_all(replies, &Err(error.clone()));
                self.discard(&run, error);
                let calls = self.deferred.remove(&run).unwrap_or_default();
                calls.into_iter().for_each(|call| self.handle_message(call));
            }
        }
    }

    /// Removes a run after a bug or a panic, so that the other runs are not affected.
    fn fail_run(&mut self, run: &Name, replies: Vec<Reply<RunStatus>>, reason: String) {
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
        active.is_step_in_flight = false;
        if active.origin() == Origin::Guest {
            self.pool.iter().for_each(|pool| pool.close(&run));
        }
        let status = active.hosted.status();
        match result {
            None => {
                reply_all(replies, &Ok(status));
                if active.has_withheld_effects() && !self.leave_when_full(&run, &mut Vec::new()) {
                    self.release_withheld(&run);
                }
                self.queue(&run);
                self.evict(&run);
            }
            Some((_, Err(error))) => {
                let error = ScheduleError::from(error);
                reply_all(replies, &Err(error.clone()));
                self.discard(&run, error);
            }
            Some((commit, Ok(committed))) => {
                active.on_committed(committed.change_bytes, committed.snapshot_bytes);
                let too_large = active.hosted.state_too_large_event(self.limits.state_bytes);
                let paused = active.hosted.state().paused.as_ref();
                let paused = paused.filter(|_| has_paused(&commit));
                let paused = paused.map(|(_, reason)| Update::Paused(reason.clone()));
                self.retries.clear_failures(&run);
                let iterations = commit.iterations.len() as u64;
                let started_at = active.hosted.state().started_at;
                let name = &active.hosted.program().name;
                let metrics = &self.runtime.metrics;
                metrics.step(name, started_at, &commit, iterations);
                let (state, program) = (active.hosted.state(), active.hosted.program());
                log_step(&commit, state, name);
                self.runtime.traces.step(&commit, attempts, state, program);
                let retries = commit.history.iter().any(|event| event.is_retry());
                self.watchers.step(&run, retries, || Step {
                    history: commit.history,
                    loops: commit.loops,
                    header: commit.header,
                });
                if let Some(paused) = paused {
                    self.watchers.notify(&run, || paused);
                }
                self.buffers.give_back(commit.changes);
                let mut effects = active.hosted.release(step, &committed.receipt);
                if too_large.is_none() && self.leave_when_full(&run, &mut effects) {
                    reply_all(replies, &Ok(status));
                    return;
                }
                let Some(active) = self.runs.get_mut(&run) else {
                    return;
                };
                let effects = active.take_withheld(effects);
                if !status.is_final()
                    && let Some(missing) = active.missing.take()
                {
                    // Load the run again, which starts its outstanding effects.
                    let placement = active.header.placement;
                    self.remove(&run);
                    self.park(&run, placement, &missing);
                    reply_all(replies, &Ok(status));
                    return;
                }
                self.carry_out(&run, effects);
                reply_all(replies, &Ok(status));
                if let Some(event) = too_large {
                    self.post(&run, event, None);
                }
                self.queue(&run);
                self.evict(&run);
            }
        }
    }

    /// Discards the runs of a group that the store refused.
    ///
    /// It is not known whether any commit of the group is durable, and the states in memory may be ahead of the store.
    /// So the runs are loaded again from the store (docs/architecture.md, law 3).
    fn commit_failed(&mut self, waiting: Vec<PendingStep>, error: StoreError) {
        tracing::error!(%error, "the store refused a group of commits");
        let error = ScheduleError::from(error);
        self.begin_outage(&error);
        for PendingStep { run, replies, .. } in waiting {
            reply_all(replies, &Err(error.clone()));
            self.discard(&run, error.clone());
        }
    }
}

/// Starts the safe requests of steps that the operating system has, but that are not durable yet.
fn release_idempotent(
    runs: &mut HashMap<Name, Box<ActiveRun>>,
    runtime: &EffectRuntime,
    waiting: &mut [PendingStep],
    guests_may: bool,
) {
    let (held, mut sent) = (runs.len(), false);
    for step in waiting.iter_mut().filter(|step| step.is_side_effect_free) {
        let Some(active) = runs.get_mut(&step.run) else {
            continue;
        };
        if !guests_may && active.origin() == Origin::Guest {
            continue;
        }
        let safe = active.hosted.release_idempotent(&mut step.step, NEVER_DUE);
        for effect in safe.into_iter().flatten() {
            if let Effect::Start { id, request } = effect {
                active.start(runtime, held, id, request);
                sent = true;
            }
        }
    }
    if let Some(own) = runtime.own.as_ref().filter(|_| sent) {
        own.turn();
    }
}

/// Returns whether the run paused in this step.
fn has_paused(commit: &Commit) -> bool {
    let mut history = commit.history.iter();
    history.any(|event| matches!(event.what, HistoryKind::RunPaused { .. }))
}
