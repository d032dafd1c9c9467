//! The driver's thread: gather, advance, commit, release.

use super::gates::Limits;
use super::live::{Live, Watchers};
use super::recovery::{Outage, Setbacks};
use super::tasks::{Completion, Workshop};
use super::timers::Timers;
use super::{Loaded, Loader, Message, Reply, ScheduleError, Start, Step, Update, clock::Clock};
use crate::machine::{Effect, Event, PauseReason, RunStatus, TimerId, Transition, advance};
use crate::model::Name;
use crate::program::ProgramHash;
use crate::store::{Commit, Committed, Placement, RunHeader, Store, StoreError};
use crate::time::Timestamp;
use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

/// As many messages are gathered into one group at most.
const GROUP: usize = 4_096;

/// The wall clock may jump: with timers armed it is looked at this often at least.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) store: Arc<dyn Store>,
    pub(super) loader: Arc<dyn Loader>,
    pub(super) clock: Clock,
    workshop: Workshop,
    inbox: Receiver<Message>,
    limits: Limits,
    pub(super) runs: HashMap<Name, Live>,
    pub(super) programs: HashMap<ProgramHash, Loaded>,
    pub(super) watchers: Watchers,
    pub(super) timers: Timers,
    /// When the first run in the store's index of waiting ones is due.
    pub(super) stored_due: Option<Timestamp>,
    /// Runs with something in their inbox.
    pub(super) busy: BTreeSet<Name>,
    /// Runs that could not go on.
    pub(super) setbacks: Setbacks,
    /// While the store takes no writes.
    pub(super) outage: Option<Outage>,
    stopping: Option<oneshot::Sender<()>>,
    /// Steps are stored, but nothing new starts: whoever recovers the store goes on.
    pub(super) quiet: bool,
    /// Those who wait until nothing is in flight.
    draining: Vec<oneshot::Sender<()>>,
}

/// A step that waits for its commit.
struct InCommit {
    run: Name,
    step: Transition,
    /// Whether it has a commit in the group.
    stored: bool,
    /// How many iterations ended in it.
    iterations: u64,
    replies: Vec<Reply<RunStatus>>,
}

impl Driver {
    pub fn new(
        store: Arc<dyn Store>,
        loader: Arc<dyn Loader>,
        workshop: Workshop,
        inbox: Receiver<Message>,
        limits: Limits,
        quiet: bool,
    ) -> Self {
        Self {
            store,
            loader,
            clock: Clock::wall(),
            workshop,
            inbox,
            limits,
            runs: HashMap::new(),
            programs: HashMap::new(),
            watchers: Watchers::default(),
            timers: Timers::default(),
            stored_due: None,
            busy: BTreeSet::new(),
            setbacks: Setbacks::default(),
            outage: None,
            stopping: None,
            quiet,
            draining: Vec::new(),
        }
    }

    /// The same on another clock.
    pub fn on(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    pub fn run(mut self) {
        loop {
            self.round(true);
            if let Some(done) = self.stopping.take() {
                self.runs
                    .values_mut()
                    .for_each(|live| live.tasks.abort_all());
                // The store is let go before anyone hears of it.
                drop(self);
                let _ = done.send(());
                return;
            }
        }
    }

    /// Takes what has come, and if it may wait for it at least one message or timer.
    pub fn round(&mut self, may_wait: bool) {
        self.gather(may_wait);
        self.fire_timers();
        self.turn();
        self.drained();
        self.workshop
            .metrics
            .held(self.runs.len(), self.timers.len());
    }

    /// Whether runs have something in their inbox that can be done now.
    pub fn is_busy(&self) -> bool {
        !self.busy.is_empty() && self.outage.is_none()
    }

    /// When something happens by itself.
    pub fn due_at(&self) -> Option<Timestamp> {
        if let Some(outage) = &self.outage {
            return Some(outage.again_at);
        }
        let due = [self.timers.first(), self.stored_due, self.setbacks.first()];
        due.into_iter().flatten().min()
    }

    // ── gather ──────────────────────────────────────────────────────────────────────────────

    fn gather(&mut self, may_wait: bool) {
        let first = if !may_wait || self.is_busy() {
            self.inbox.try_recv().ok()
        } else {
            match self.wait_for() {
                Some(wait) => match self.inbox.recv_timeout(wait) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return self.stop(None),
                },
                None => match self.inbox.recv() {
                    Ok(message) => Some(message),
                    Err(_) => return self.stop(None),
                },
            }
        };
        let Some(first) = first else { return };
        self.take(first);
        for _ in 0..GROUP {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message),
                Err(_) => break,
            }
        }
    }

    /// Tells those who wait for it that nothing is in flight any more.
    fn drained(&mut self) {
        let idle = self.busy.is_empty() && self.in_flight() == 0;
        if idle {
            self.draining.drain(..).for_each(|reply| {
                let _ = reply.send(());
            });
        }
    }

    fn in_flight(&self) -> usize {
        self.runs.values().map(|live| live.tasks.len()).sum()
    }

    fn stop(&mut self, reply: Option<oneshot::Sender<()>>) {
        self.stopping = Some(reply.unwrap_or_else(|| oneshot::channel().0));
    }

    /// How long nothing happens by itself; none: for ever.
    fn wait_for(&self) -> Option<Duration> {
        if self.quiet {
            return None;
        }
        let due = self.due_at()?;
        Some(due.since(self.clock.now()).min(CLOCK_CHECK))
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Start(start, reply) => self.start(*start, reply),
            Message::Deliver(run, event, reply) => self.deliver(&run, event, reply),
            Message::Watch(run, watcher, reply) => {
                let header = self.header(&run);
                if header.is_ok() {
                    self.watchers.add(&run, watcher);
                }
                let _ = reply.send(header.map_err(Into::into));
            }
            Message::EffectDone(run, Completion { id, result }) => {
                if let Some(live) = self.runs.get_mut(&run) {
                    live.tasks.done(id);
                    self.post(&run, Event::EffectCompleted { id, result }, None);
                }
            }
            Message::InFlight(reply) => {
                let _ = reply.send(self.in_flight());
            }
            Message::Recover(paused, reply) => {
                let _ = reply.send(self.recover_now(paused));
            }
            Message::Drain(reply) => {
                self.quiet = true;
                self.draining.push(reply);
            }
            Message::Stop(reply) => self.stop(Some(reply)),
        }
    }

    pub(super) fn post(&mut self, run: &Name, event: Event, reply: Option<Reply<RunStatus>>) {
        if let Some(live) = self.runs.get_mut(run) {
            live.inbox.push_back((event, reply));
            self.busy.insert(run.clone());
        }
    }

    // ── commands ────────────────────────────────────────────────────────────────────────────

    fn start(&mut self, start: Start, reply: Reply<()>) {
        if let Some(error) = self.refuses_starts() {
            let _ = reply.send(Err(error));
            return;
        }
        let Start {
            run,
            loaded,
            source,
            input,
            from,
            environment,
            labels,
            watcher,
        } = start;
        if self.runs.contains_key(&run) || self.store.header(&run).is_ok() {
            let _ = reply.send(Err(ScheduleError::Exists(run)));
            return;
        }
        self.programs
            .entry(loaded.program.hash)
            .or_insert_with(|| loaded.clone());
        let live = Live::new(&run, loaded, source, labels, self.clock.now());
        if let Some(watcher) = watcher {
            self.watchers.add(&run, watcher);
        }
        self.runs.insert(run.clone(), live);
        let (durable, told) = oneshot::channel();
        let started = Event::Started { input, environment };
        let began = from.map_or(started, Event::TakenUp);
        self.post(&run, began, Some(durable));
        // The reply goes out when the first step is durable.
        self.workshop.handle.spawn(async move {
            let outcome = told.await.unwrap_or(Err(ScheduleError::Stopped));
            let _ = reply.send(outcome.map(|_| ()));
        });
    }

    /// Why no run can be started now.
    fn refuses_starts(&self) -> Option<ScheduleError> {
        if self.quiet {
            return Some(ScheduleError::Stopped);
        }
        if let Some(outage) = &self.outage {
            return Some(outage.error.clone());
        }
        let full = self.runs.len() >= self.limits.live_runs;
        full.then_some(ScheduleError::Busy)
    }

    fn deliver(&mut self, run: &Name, event: Event, reply: Reply<RunStatus>) {
        if let Some(outage) = &self.outage {
            let _ = reply.send(Err(outage.error.clone()));
            return;
        }
        match self.bring(run) {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok(status) if status.is_final() => {
                let _ = reply.send(Err(ScheduleError::Ended {
                    run: run.clone(),
                    status,
                }));
            }
            Ok(_) => self.post(run, event, Some(reply)),
        }
    }

    fn header(&self, run: &Name) -> Result<RunHeader, StoreError> {
        match self.runs.get(run) {
            Some(live) if live.header.revision > 0 => Ok(live.header.clone()),
            Some(_) | None => self.store.header(run),
        }
    }

    // ── timers ──────────────────────────────────────────────────────────────────────────────

    fn fire_timers(&mut self) {
        if self.quiet {
            return;
        }
        let now = self.clock.now();
        self.try_again(now);
        if self.outage.is_some() {
            return;
        }
        if self.stored_due.is_some_and(|due| due <= now) {
            self.bring_due(now);
        }
        while let Some((due_at, run, id)) = self.timers.pop_due(now) {
            self.workshop.metrics.fired(due_at, now);
            self.post(&run, Event::TimerFired { id }, None);
        }
    }

    // ── one turn: advance, commit, release ──────────────────────────────────────────────────

    fn turn(&mut self) {
        if self.outage.is_some() {
            return;
        }
        let busy = std::mem::take(&mut self.busy);
        let mut group = Vec::new();
        let mut waiting = Vec::new();
        for run in busy {
            if let Some((commit, step)) = self.advance(&run) {
                group.extend(commit);
                waiting.push(step);
            }
        }
        if waiting.is_empty() {
            return;
        }
        let outcome = if group.is_empty() {
            Ok(Vec::new())
        } else {
            let size = group.len();
            self.workshop
                .metrics
                .group(size, || self.store.commit(&group))
        };
        match outcome {
            Ok(results) => {
                let mut results = results.into_iter();
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
        let iterations = step.iterations.len() as u64;
        let commit = (!step.is_empty()).then(|| live.commit(&mut step, now));
        let stored = commit.is_some();
        Some((
            commit,
            InCommit {
                run: run.clone(),
                step,
                stored,
                iterations,
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

    fn settled(&mut self, done: InCommit, result: Option<Result<Committed, StoreError>>) {
        let InCommit {
            run,
            step,
            iterations,
            replies,
            ..
        } = done;
        let Some(live) = self.runs.get_mut(&run) else {
            return;
        };
        let status = live.state.status();
        match result {
            None => reply_all(replies, &Ok(status)),
            Some(Err(error)) => {
                let error = ScheduleError::from(error);
                reply_all(replies, &Err(error.clone()));
                self.throw_away(&run, error);
            }
            Some(Ok(committed)) => {
                live.committed(committed.change_bytes, committed.snapshot_bytes);
                let grown = live.outgrown(self.limits.state_bytes);
                self.setbacks.overcome(&run);
                self.workshop.metrics.step(&step.history, iterations);
                if self.watchers.any(&run) {
                    let update = Update::Step(Box::new(Step {
                        history: step.history.clone(),
                        loops: step.loops.clone(),
                        header: live.header.clone(),
                    }));
                    self.watchers.tell(&run, &update);
                    if let Some((_, reason)) = live.state.paused.clone() {
                        self.tell_paused(&run, &step, reason);
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

    fn tell_paused(&mut self, run: &Name, step: &Transition, reason: PauseReason) {
        let now_paused = step
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

    /// Does what a durable step asks for.
    pub(super) fn release(&mut self, run: &Name, effects: Vec<Effect>) {
        if self.stopping.is_some() {
            // Whoever recovers the store starts what is outstanding.
            return;
        }
        for effect in effects {
            let starts = matches!(
                effect,
                Effect::Start { .. } | Effect::Arm { .. } | Effect::Continue
            );
            if self.quiet && starts {
                continue;
            }
            let Some(live) = self.runs.get_mut(run) else {
                return;
            };
            match effect {
                Effect::Start { id, request } => {
                    live.start(&self.workshop, id, request);
                }
                Effect::Abort { id } => live.tasks.abort(id),
                Effect::Arm { id, due_at } => self.timers.arm(run, id, due_at),
                Effect::Disarm { id } => self.timers.disarm(run, id),
                Effect::Continue => self.post(run, Event::Continued, None),
                Effect::Finish(outcome) => {
                    live.tasks.abort_all();
                    self.watchers.tell(run, &Update::Finished(outcome));
                    self.watchers.close(run);
                }
            }
        }
    }

    /// A run that has ended, rests, or sleeps for long leaves memory.
    fn let_go(&mut self, run: &Name) {
        let Some(live) = self.runs.get(run) else {
            return;
        };
        if !live.may_leave() || self.busy.contains(run) {
            return;
        }
        if let Placement::Due(due) = live.header.placement {
            self.stored_due = Some(self.stored_due.map_or(due, |first| first.min(due)));
        }
        let timers: Vec<TimerId> = live.state.timers.keys().copied().collect();
        timers
            .into_iter()
            .for_each(|id| self.timers.disarm(run, id));
        self.runs.remove(run);
    }
}

fn reply_all(replies: Vec<Reply<RunStatus>>, outcome: &Result<RunStatus, ScheduleError>) {
    for reply in replies {
        // Whoever asked may have gone.
        let _ = reply.send(outcome.clone());
    }
}
