//! The driver's thread: gather, take a turn (`turn`), release.

use super::gates::Limits;
use super::live::Live;
use super::recovery::{MANY_PROGRAMS, Outage, Setbacks};
use super::tasks::{Completion, Workshop};
use super::timers::Timers;
use super::turn::Spare;
use super::watch::Watchers;
use super::{Loaded, Loader, Message, Reply, ScheduleError, Start, Update, clock::Clock};
use crate::machine::{Effect, Event, RunStatus, TimerId};
use crate::model::Name;
use crate::program::ProgramHash;
use crate::store::{Placement, RunHeader, Store, StoreError};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

/// As many messages are gathered into one group at most.
const GROUP: usize = 4_096;

/// The wall clock may be set forward: with timers armed it is looked at this often at least.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) store: Arc<dyn Store>,
    pub(super) loader: Arc<dyn Loader>,
    pub(super) clock: Clock,
    pub(super) workshop: Workshop,
    inbox: Receiver<Message>,
    /// A message that came in the middle of a turn.
    called: Option<Message>,
    pub(super) limits: Limits,
    pub(super) runs: HashMap<Name, Live>,
    pub(super) programs: HashMap<ProgramHash, Loaded>,
    /// With so many it is looked for those that can be forgotten.
    pub(super) max_programs: usize,
    pub(super) watchers: Watchers,
    pub(super) timers: Timers,
    /// When the first run in the store's index of waiting ones is due.
    pub(super) stored_due: Option<Timestamp>,
    /// Runs with something in their inbox, each once.
    pub(super) busy: Vec<Name>,
    pub(super) spare: Spare,
    /// Runs that could not go on.
    pub(super) setbacks: Setbacks,
    /// While the store takes no writes.
    pub(super) outage: Option<Outage>,
    stopping: Option<oneshot::Sender<()>>,
    /// Steps are stored, but nothing new starts: whoever recovers the store goes on.
    pub(super) quiet: bool,
    /// Those who wait until nothing is in flight.
    draining: Vec<oneshot::Sender<()>>,
    /// Runs that are about to go on because somebody asked for all of them.
    pub(super) resuming: Vec<oneshot::Receiver<Result<RunStatus, ScheduleError>>>,
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
            clock: Clock::Process,
            workshop,
            inbox,
            called: None,
            limits,
            runs: HashMap::new(),
            programs: HashMap::new(),
            max_programs: MANY_PROGRAMS,
            watchers: Watchers::default(),
            timers: Timers::default(),
            stored_due: None,
            busy: Vec::new(),
            spare: Spare::default(),
            setbacks: Setbacks::default(),
            outage: None,
            stopping: None,
            quiet,
            draining: Vec::new(),
            resuming: Vec::new(),
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
        self.turn(may_wait);
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

    /// Whether something has come or is due, so that a turn should end.
    pub(super) fn is_called(&mut self) -> bool {
        if self.called.is_none() {
            self.called = self.inbox.try_recv().ok();
        }
        let due = self.due_at();
        self.called.is_some() || due.is_some_and(|due| due <= self.clock.now())
    }

    fn gather(&mut self, may_wait: bool) {
        let first = if let Some(called) = self.called.take() {
            Some(called)
        } else if !may_wait || self.is_busy() {
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
        let waiting = !self.draining.is_empty();
        if waiting && self.busy.is_empty() && self.in_flight() == 0 {
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
                let outcome = self.recover_now(paused);
                let resuming = std::mem::take(&mut self.resuming);
                if resuming.is_empty() {
                    let _ = reply.send(outcome);
                    return;
                }
                // Who asked finds none of them paused any more.
                self.workshop.handle.spawn(async move {
                    for one in resuming {
                        // One that could not go on has told why.
                        let _ = one.await;
                    }
                    let _ = reply.send(outcome);
                });
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
        }
        self.queue(run);
    }

    /// A run in whose inbox there is something is busy.
    pub(super) fn queue(&mut self, run: &Name) {
        if let Some(live) = self.runs.get_mut(run)
            && !live.inbox.is_empty()
            && !std::mem::replace(&mut live.queued, true)
        {
            self.busy.push(run.clone());
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
        if !self.programs.contains_key(&loaded.program.hash) {
            self.keep_program(loaded.clone());
        }
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
        let brought = match (self.bring(run), &event) {
            (
                Err(ScheduleError::Unloadable { .. } | ScheduleError::Sealed(_)),
                Event::CancelRequested,
            ) => self.bring_to_end(run),
            (brought, _) => brought,
        };
        match brought {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok(status) if status.is_final() => {
                let _ = reply.send(Err(ScheduleError::Ended {
                    run: run.clone(),
                    status,
                }));
            }
            Ok(_) => match self.unawaited(run, &event) {
                Some(error) => {
                    let _ = reply.send(Err(error));
                }
                None => self.post(run, event, Some(reply)),
            },
        }
    }

    /// A signal that nothing in the run's workflow waits for would be kept for nobody. Names of
    /// signals are fixed, so its program knows them all.
    fn unawaited(&self, run: &Name, event: &Event) -> Option<ScheduleError> {
        let Event::Signalled { name, .. } = event else {
            return None;
        };
        let known = self.runs.get(run)?.loaded.program.signals();
        (!known.contains(name)).then(|| ScheduleError::NoSignal {
            run: run.clone(),
            name: name.clone(),
            known: known.into_iter().collect(),
        })
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

    // ── what a durable step asks for ────────────────────────────────────────────────────────

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
                    self.watchers.tell(run, || Update::Finished(outcome));
                    self.watchers.close(run);
                }
            }
        }
    }

    /// A run that has ended, rests, or sleeps for long leaves memory.
    pub(super) fn let_go(&mut self, run: &Name) {
        let Some(live) = self.runs.get(run) else {
            return;
        };
        if !live.may_leave() || live.queued {
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

pub(super) fn reply_all(
    replies: Vec<Reply<RunStatus>>,
    outcome: &Result<RunStatus, ScheduleError>,
) {
    for reply in replies {
        // Whoever asked may have gone.
        let _ = reply.send(outcome.clone());
    }
}
