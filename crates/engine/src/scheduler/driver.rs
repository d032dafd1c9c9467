//! The driver's thread: gather messages, fire timers, commit (`commits`), release effects.

use super::active::{ActiveRun, HeldStep};
use super::buffers::BufferPool;
use super::children::PARENT_LABEL;
use super::compute::Pool;
use super::effects::{Completion, EffectRuntime, OwnRuntime};
use super::guest_memory::GuestMemory;
use super::limiter::Limits;
use super::outage::{Outage, RetryQueue};
use super::timers::{DueRuns, Timers};
use super::watch::Watchers;
use super::writers::Writers;
use super::{Loaded, Loader, Message, Reply, ScheduleError, Start, Update, clock::Clock};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use windlass_machine::program::ProgramHash;
use windlass_machine::{Delivery, Effect, Event, RunStatus, Signal};
use windlass_model::model::Name;
use windlass_store::{Placement, RunHeader, Store, StoreError};
use windlass_value::time::Timestamp;

/// Maximum number of cached programs that no run in memory uses.
pub(super) const MANY_PROGRAMS: usize = 256;

/// Maximum number of messages that are gathered in one round.
const MAX_GROUP: usize = 4_096;

/// Maximum time between two reads of the clock while timers are armed. A longer sleep could miss that the wall clock
/// was set forward.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) store: Arc<dyn Store>,
    pub(super) loader: Arc<dyn Loader>,
    pub(super) clock: Clock,
    pub(super) runtime: EffectRuntime,
    inbox: UnboundedReceiver<Message>,
    pub(super) limits: Limits,
    pub(super) runs: HashMap<Name, Box<ActiveRun>>,
    pub(super) guests: GuestMemory,
    pub(super) programs: HashMap<ProgramHash, Loaded>,
    /// With this many cached programs, those that no run in memory uses are dropped.
    pub(super) max_programs: usize,
    pub(super) watchers: Watchers,
    pub(super) timers: Timers,
    pub(super) due: DueRuns,
    /// The busy runs: those with something to store or an event to handle. Each is listed once.
    pub(super) busy: VecDeque<Name>,
    pub(super) writers: Writers,
    /// The runs with a held step (one that is not stored yet), and when the step is stored at the latest.
    pub(super) held: VecDeque<(Timestamp, Name)>,
    /// Whether steps may be held. The safe requests of a held step start before the step is stored. After the store
    /// refused a group of commits, no step is held until the store accepts a group. Otherwise the same requests would
    /// start again after each failed write.
    pub(super) can_hold_steps: bool,
    /// Requests to runs that have a step in flight. The requests wait until the step is durable.
    pub(super) deferred: HashMap<Name, Vec<Message>>,
    pub(super) buffers: BufferPool,
    /// The threads that compute long steps. `None` for a driver without its own thread (`manual`).
    pub(super) pool: Option<Pool>,
    /// Units of work that the current batch may still do on this thread.
    pub(super) allowance: u64,
    /// Runs that failed and are loaded again later.
    pub(super) retries: RetryQueue,
    /// The current outage, if the store refuses writes.
    pub(super) outage: Option<Outage>,
    /// Number of times that the store was reopened after it last accepted a group.
    pub(super) reopened: u32,
    pub(super) stopping: Option<oneshot::Sender<()>>,
    /// Whether only commands are accepted: steps are stored, but no effect starts and no timer fires.
    pub(super) commands_only: bool,
    /// Callers that wait until nothing is in flight.
    draining: Vec<oneshot::Sender<()>>,
    /// One receiver for each run that is being resumed, if a caller resumes all paused runs.
    pub(super) resuming: Vec<oneshot::Receiver<Result<RunStatus, ScheduleError>>>,
}

impl Driver {
    pub fn new(
        store: Arc<dyn Store>,
        loader: Arc<dyn Loader>,
        runtime: EffectRuntime,
        inbox: UnboundedReceiver<Message>,
        limits: Limits,
        commands_only: bool,
    ) -> Self {
        let threaded = runtime.own.is_some();
        let pool = threaded.then(|| Pool::new(runtime.messages.clone()));
        Self {
            store,
            loader,
            clock: Clock::Process,
            runtime,
            inbox,
            limits,
            runs: HashMap::new(),
            guests: GuestMemory::new(limits.guest_memory),
            programs: HashMap::new(),
            max_programs: MANY_PROGRAMS,
            watchers: Watchers::default(),
            timers: Timers::default(),
            due: DueRuns::default(),
            busy: VecDeque::new(),
            writers: Writers::default(),
            held: VecDeque::new(),
            can_hold_steps: true,
            deferred: HashMap::new(),
            buffers: BufferPool::default(),
            pool,
            allowance: 0,
            retries: RetryQueue::default(),
            outage: None,
            reopened: 0,
            stopping: None,
            commands_only,
            draining: Vec::new(),
            resuming: Vec::new(),
        }
    }

    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    pub fn run(mut self) {
        loop {
            self.round();
            if self.stopping.is_some() {
                self.await_completed();
            }
            if let Some(done) = self.stopping.take() {
                self.runs.values_mut().for_each(|active| {
                    active.tasks.abort_all();
                    active.cancel_computation();
                });
                let own = self.runtime.own.take();
                // Close the store before replying to the caller that requested the stop.
                drop(self);
                own.into_iter().for_each(OwnRuntime::stop);
                let _ = done.send(());
                return;
            }
        }
    }

    /// Does one round. With a thread of its own, the driver first waits for a message or a timer.
    pub fn round(&mut self) {
        self.gather();
        self.runtime.pulse.beat();
        self.fire_timers();
        self.run_commits();
        self.admit_waiting();
        self.reply_to_drained();
        let (metrics, guests) = (&self.runtime.metrics, self.guests.totals());
        metrics.set_in_memory(self.runs.len(), self.timers.len(), guests);
    }

    /// Returns whether the next round has steps to commit.
    pub fn is_busy(&self) -> bool {
        !self.busy.is_empty() && self.outage.is_none()
    }

    /// Returns when the driver has to act next: to fire a timer, load due runs, retry a failed run, store a held step,
    /// or reopen the store.
    pub fn due_at(&self) -> Option<Timestamp> {
        if let Some(outage) = &self.outage {
            return Some(outage.again_at);
        }
        let held = self.held.front().map(|(until, _)| *until);
        let due = [
            self.timers.first(),
            self.due.load_at,
            self.retries.first(),
            held,
        ];
        due.into_iter().flatten().min()
    }

    // ── gather ──────────────────────────────────────────────────────────────────────────────

    fn gather(&mut self) {
        let Some(first) = self.wait() else { return };
        self.handle_message(first);
        for _ in 0..MAX_GROUP {
            match self.inbox.try_recv() {
                Ok(message) => self.handle_message(message),
                Err(_) => break,
            }
        }
    }

    /// Waits for a message until the next due time. Does not wait while there are steps to commit.
    fn wait(&mut self) -> Option<Message> {
        let wait = match self.can_commit() {
            true => Some(Duration::ZERO),
            false => self.wait_for(),
        };
        match &self.runtime.own {
            Some(own) if wait == Some(Duration::ZERO) => own.turn(),
            Some(own) => {
                self.runtime.pulse.rest();
                let first = own.receive(&mut self.inbox, wait);
                self.runtime.pulse.beat();
                return first;
            }
            None => {}
        }
        self.inbox.try_recv().ok()
    }

    /// If nothing is in flight, replies to the callers that wait for this.
    fn reply_to_drained(&mut self) {
        let waiting = !self.draining.is_empty();
        let idle = self.busy.is_empty() && self.writers.are_idle();
        if waiting && idle && self.in_flight() == 0 {
            self.draining.drain(..).for_each(|reply| {
                let _ = reply.send(());
            });
        }
    }

    fn in_flight(&self) -> usize {
        let busy =
            |active: &ActiveRun| active.tasks.working() + usize::from(active.computing.is_some());
        self.runs.values().map(|active| busy(active)).sum()
    }

    /// Returns how long to wait for a message. `None`: without a limit.
    fn wait_for(&self) -> Option<Duration> {
        if self.commands_only {
            return None;
        }
        let due = self.due_at()?;
        Some(due.since(self.clock.now()).min(CLOCK_CHECK))
    }

    pub(super) fn handle_message(&mut self, message: Message) {
        // A cancel does not wait for a long computation of the run, but aborts it.
        if let Message::Deliver(run, Event::CancelRequested, _) = &message
            && let Some(active) = self.runs.get_mut(run)
            && let Some(computing) = &mut active.computing
        {
            computing.is_aborted.store(true, Ordering::Relaxed);
            if let Some(pool) = &self.pool {
                pool.prioritize(run);
            }
            if let Message::Deliver(_, _, reply) = message {
                computing.cancels.push(reply);
            }
            return;
        }
        if let Message::Deliver(run, ..) | Message::Watch(run, ..) = &message
            && self
                .runs
                .get(run)
                .is_some_and(|active| active.is_step_in_flight)
        {
            let calls = self.deferred.entry(run.clone()).or_default();
            calls.push(message);
            return;
        }
        match message {
            Message::Written => self.drain_completed(),
            Message::StoreFailed => {
                // The store may have been opened again meanwhile.
                if let Err(error) = self.store.check_writable() {
                    self.begin_outage(&error.into());
                }
            }
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
                if let Some(active) = self.runs.get_mut(&run) {
                    active.tasks.done(id);
                    self.post(&run, Event::EffectCompleted { id, result }, None);
                }
            }
            Message::Computed(done) => self.on_step_computed(*done),
            Message::InFlight(reply) => {
                let _ = reply.send(self.in_flight());
            }
            Message::Recover(paused, reply) => {
                let outcome = self.recover_now(paused);
                let resuming = std::mem::take(&mut self.resuming);
                if resuming.is_empty() {
                    let _ = reply.send(outcome);
                    return;
                }
                // Send the reply when none of these runs is paused any more.
                self.runtime.handle.spawn(async move {
                    for one in resuming {
                        // An error is ignored here: if the run cannot continue, the reason was logged.
                        let _ = one.await;
                    }
                    let _ = reply.send(outcome);
                });
            }
            Message::Drain(reply) => {
                self.commands_only = true;
                self.store_held(Timestamp(i64::MAX));
                self.draining.push(reply);
            }
            Message::Stop(reply) => self.stopping = Some(reply),
        }
    }

    pub(super) fn post(&mut self, run: &Name, event: Event, reply: Option<Reply<RunStatus>>) {
        if let Some(active) = self.runs.get_mut(run) {
            active.inbox.push_back(Box::new((event, reply)));
        }
        self.queue(run);
    }

    /// Makes a run with events in its inbox busy.
    pub(super) fn queue(&mut self, run: &Name) {
        self.make_busy(run, |active| !active.inbox.is_empty());
    }

    /// Makes a run busy if `has` finds something to store, and no step of the run is in flight.
    fn make_busy(&mut self, run: &Name, has: impl FnOnce(&ActiveRun) -> bool) {
        if let Some(active) = self.runs.get_mut(run)
            && has(active)
            && !active.is_step_in_flight
            && !std::mem::replace(&mut active.queued, true)
        {
            self.busy.push_back(run.clone());
        }
    }

    // ── commands ────────────────────────────────────────────────────────────────────────────

    fn start(&mut self, start: Start, reply: Reply<()>) {
        if let Some(error) = self.check_capacity(&start) {
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
            saved: _,
        } = start;
        if self.runs.contains_key(&run) || self.store.header(&run).is_ok() {
            let _ = reply.send(Err(ScheduleError::Exists(run)));
            return;
        }
        if let Some(parent) = labels.get(PARENT_LABEL)
            && !self.waits_for_child(parent, &run)
        {
            let _ = reply.send(Err(ScheduleError::Stopped));
            return;
        }
        if !self.programs.contains_key(&loaded.program.hash) {
            self.cache_program(loaded.clone());
        }
        let active = ActiveRun::new(&run, loaded, source, labels, self.clock.now());
        if let Some(watcher) = watcher {
            self.watchers.add(&run, watcher);
        }
        self.runs.insert(run.clone(), Box::new(active));
        self.runtime.waits.executed().insert(&run);
        let (durable, receiver) = oneshot::channel();
        let started = Event::Started { input, environment };
        let began = from.map_or(started, Event::Restored);
        self.post(&run, began, Some(durable));
        // Send the reply when the first step is durable.
        self.runtime.handle.spawn(async move {
            let outcome = receiver.await.unwrap_or(Err(ScheduleError::Stopped));
            let _ = reply.send(outcome.map(|_| ()));
        });
    }

    /// Returns whether a run waits for this child. If false, the call was aborted between its request and the start of
    /// the child run.
    fn waits_for_child(&self, parent: &str, child: &Name) -> bool {
        let parent = self.runs.get(parent);
        parent.is_some_and(|parent| parent.tasks.waits_for(child))
    }

    /// Cancels the runs of `workflow` actions that were aborted.
    fn cancel_children(&mut self, children: impl IntoIterator<Item = Name>) {
        for child in children {
            // The result is ignored: the child run may have ended, or may not have begun.
            let (reply, _) = oneshot::channel();
            self.handle_message(Message::Deliver(child, Event::CancelRequested, reply));
        }
    }

    /// Returns the reason if this run cannot be started now. A child run needs no room, because the runs in memory may
    /// wait for it.
    fn check_capacity(&self, start: &Start) -> Option<ScheduleError> {
        if self.commands_only {
            return Some(ScheduleError::Stopped);
        }
        if let Some(outage) = &self.outage {
            return Some(outage.error.clone());
        }
        let full = self.runs.len() >= self.limits.live_runs;
        let needs_room = !start.labels.contains_key(PARENT_LABEL);
        (full && needs_room).then_some(ScheduleError::Busy)
    }

    fn deliver(&mut self, run: &Name, event: Event, reply: Reply<RunStatus>) {
        if let Some(outage) = &self.outage {
            let _ = reply.send(Err(outage.error.clone()));
            return;
        }
        let brought = match (self.load_run(run), &event) {
            (
                Err(error @ (ScheduleError::Unloadable { .. } | ScheduleError::Sealed(_))),
                Event::CancelRequested | Event::PauseRequested,
            ) => self.load_run_to_stop(run, &event, &error),
            (brought, _) => brought,
        };
        match brought {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok(status) if status.is_final() => {
                let ended = || ScheduleError::Ended {
                    run: run.clone(),
                    status,
                };
                // The caller may have lost the reply to the signal that ended the run. Repeating this signal is not an
                // error.
                let repeated = self.has_received(run, &event);
                let _ = reply.send(repeated.then_some(status).ok_or_else(ended));
            }
            Ok(_) => self.post(run, event, Some(reply)),
        }
    }

    /// Returns whether a run that has ended received this signal before.
    fn has_received(&self, run: &Name, event: &Event) -> bool {
        match event {
            Event::Signalled(signal) if signal.id.is_some() => {
                let stored = self.store.load(run);
                stored.is_ok_and(|stored| Delivery::of(&stored.state, signal) == Delivery::Repeated)
            }
            _ => false,
        }
    }

    fn header(&self, run: &Name) -> Result<RunHeader, StoreError> {
        match self.runs.get(run) {
            Some(active) if active.header.revision > 0 => Ok(active.header.clone()),
            Some(_) | None => self.store.header(run),
        }
    }

    // ── timers ──────────────────────────────────────────────────────────────────────────────

    fn fire_timers(&mut self) {
        if self.commands_only {
            return;
        }
        let now = self.clock.now();
        self.retry_due(now);
        if self.outage.is_some() {
            return;
        }
        if self.due.load_at.is_some_and(|load_at| load_at <= now) {
            self.load_due(now);
        }
        while let Some((due_at, run, id)) = self.timers.pop_due(now) {
            self.runtime.metrics.fired(due_at, now);
            self.post(&run, Event::TimerFired { id }, None);
        }
        self.store_held(now);
    }

    /// Makes the runs busy whose held steps are due.
    fn store_held(&mut self, now: Timestamp) {
        while self.held.front().is_some_and(|(until, _)| *until <= now) {
            let Some((until, run)) = self.held.pop_front() else {
                return;
            };
            let is_due = |held: &HeldStep| held.until == until;
            self.make_busy(&run, |active| active.held.as_deref().is_some_and(is_due));
        }
    }

    // ── effects ─────────────────────────────────────────────────────────────────────────────

    /// Starts effects: those of a durable step, or safe requests.
    pub(super) fn carry_out(&mut self, run: &Name, effects: Vec<Effect>) {
        if self.stopping.is_some() {
            // Start nothing. The next owner of the store starts the outstanding effects.
            return;
        }
        let runs = self.runs.len();
        for effect in effects {
            let starts = matches!(
                effect,
                Effect::Start { .. } | Effect::Arm { .. } | Effect::Continue
            );
            if self.commands_only && starts {
                continue;
            }
            let Some(active) = self.runs.get_mut(run) else {
                return;
            };
            match effect {
                Effect::Start { id, request } => {
                    active.start(&self.runtime, runs, id, request);
                }
                Effect::Abort { id } => {
                    let child = active.tasks.abort(id);
                    self.cancel_children(child);
                }
                Effect::Arm { id, due_at } => self.timers.arm(run, id, due_at),
                Effect::Disarm { id, due_at } => self.timers.disarm(run, id, due_at),
                Effect::Continue => self.post(run, Event::Continued, None),
                Effect::Finish(outcome) => {
                    let children = active.tasks.abort_all();
                    self.runtime.waits.executed().remove(run);
                    self.watchers.notify(run, || Update::Finished(outcome));
                    self.watchers.close(run);
                    self.cancel_children(children);
                }
            }
        }
    }

    /// Drops a run from memory if it has ended, is idle, or sleeps for long.
    pub(super) fn evict(&mut self, run: &Name) {
        let Some(active) = self.runs.get(run) else {
            return;
        };
        if !active.can_evict() || active.queued {
            return;
        }
        if let Placement::Due(due) = active.header.placement {
            self.due.add(due);
        }
        if let Some(active) = self.runs.remove(run) {
            self.timers.disarm_all(run, active.hosted.state());
            self.guests.remove(run);
        }
    }
}

/// Returns the reason if a run cannot use a signal.
pub(super) fn refused_signal(
    run: &Name,
    active: &ActiveRun,
    signal: &Signal,
) -> Option<ScheduleError> {
    let (state, program) = (active.hosted.state(), active.hosted.program());
    match state.status() {
        status if status.is_final() && Delivery::of(state, signal) != Delivery::Repeated => {
            Some(ScheduleError::Ended {
                run: run.clone(),
                status,
            })
        }
        _ => super::check_signal(run, program, state, signal).err(),
    }
}

pub(super) fn reply_all(
    replies: Vec<Reply<RunStatus>>,
    outcome: &Result<RunStatus, ScheduleError>,
) {
    for reply in replies {
        // An error is ignored: the caller may no longer wait.
        let _ = reply.send(outcome.clone());
    }
}
