//! Events, steps and time: "Checkpoints" and "Pause, resume, cancel".
//!
//! A step begins with one event and runs until all branches wait. Of branches that can continue, the one that
//! started first runs first. Only at the end of the step its requests are sent.

use super::loops::LoopState;
use super::records::Place;
use super::{Ended, Run, Story};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

/// A branch of the run, numbered by its start. The run itself is 0.
pub type Branch = usize;
pub type TimerId = usize;
pub type CallId = usize;

/// The items of a foreach that leave little may end in one step, up to so many.
const LIGHT_ITEMS: u32 = 50;

/// What arrives at a run from outside.
#[derive(Clone, Debug)]
pub enum Arrival {
    Pause,
    Resume,
    Cancel,
    Signal(Name, Value),
}

/// What the world does with a request: it answers after some time, or never.
pub type Reply = Option<(Duration, Result<Value, Fault>)>;

struct Timer {
    branch: Branch,
    due: Timestamp,
    fired: bool,
}

/// A request and what is known of it.
pub struct Call {
    pub name: Name,
    pub place: Place,
    kind: CallKind,
    /// The answer and when it arrives, once the request was sent.
    reply: Option<(Timestamp, Result<Value, Fault>)>,
    answer: Option<Result<Value, Fault>>,
}

/// What an action waits for.
enum CallKind {
    /// An answer to this request, which is sent at the end of the step.
    Request(String),
    /// An answer to a request that was sent.
    Sent,
    Signal(Name),
}

#[derive(Default)]
pub struct Clock {
    now: Cell<Timestamp>,
    last_id: Cell<usize>,
    timers: RefCell<BTreeMap<TimerId, Timer>>,
    calls: RefCell<BTreeMap<CallId, Call>>,
    /// How many requests of an action were sent.
    sent: RefCell<HashMap<Name, usize>>,
    /// The branch that each branch was started by.
    parents: RefCell<BTreeMap<Branch, Branch>>,
    ready: RefCell<BTreeSet<Branch>>,
    /// The branch that runs now.
    current: Cell<Branch>,
    /// The branch of a loop that was granted its limits: that begins its iteration first.
    granted: Cell<Option<Branch>>,
    /// How many boundaries each branch crossed in this step, and which wait for the next one.
    crossed: RefCell<BTreeMap<Branch, u32>>,
    deferred: RefCell<BTreeSet<Branch>>,
    /// Since when it is paused, and at the limit of which loop.
    paused: RefCell<Option<(Timestamp, Option<Rc<LoopState>>)>>,
    /// Signals that nothing waited for yet.
    signals: RefCell<Vec<(Name, Value)>>,
    /// A `terminate` ended the run.
    terminated: RefCell<Option<Ended>>,
}

enum Next {
    /// What is left of the step before.
    Rest,
    Arrival(usize),
    Answer(CallId),
    Timer(TimerId),
}

impl Clock {
    pub fn new(now: Timestamp) -> Self {
        let clock = Self::default();
        clock.now.set(now);
        clock.wake(0);
        clock
    }

    pub fn now(&self) -> Timestamp {
        self.now.get()
    }

    fn next_id(&self) -> usize {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    // ── branches ────────────────────────────────────────────────────────────────────────────

    /// A new branch, which can run at once.
    pub fn start_branch(&self, parent: Branch) -> Branch {
        let branch = self.next_id();
        self.parents.borrow_mut().insert(branch, parent);
        self.wake(branch);
        branch
    }

    pub fn end_branch(&self, branch: Branch) {
        self.parents.borrow_mut().remove(&branch);
        self.ready.borrow_mut().remove(&branch);
        self.deferred.borrow_mut().remove(&branch);
    }

    pub fn wake(&self, branch: Branch) {
        self.ready.borrow_mut().insert(branch);
    }

    pub fn is_current(&self, branch: Branch) -> bool {
        self.current.get() == branch
    }

    /// Whether the branch that runs now is this one or in it.
    pub fn runs_in(&self, branch: Branch) -> bool {
        let parents = self.parents.borrow();
        let mut at = Some(self.current.get());
        while let Some(current) = at {
            if current == branch {
                return true;
            }
            at = parents.get(&current).copied();
        }
        false
    }

    /// The branch that runs next in this step.
    fn next_branch(&self) -> Option<Branch> {
        if let Some(granted) = self.granted.take() {
            self.ready.borrow_mut().remove(&granted);
            return Some(granted);
        }
        let deferred = self.deferred.borrow();
        let mut ready = self.ready.borrow_mut();
        let next = ready
            .iter()
            .find(|branch| !deferred.contains(branch))
            .copied()?;
        ready.remove(&next);
        Some(next)
    }

    pub fn grant(&self, branch: Branch) {
        self.granted.set(Some(branch));
    }

    /// Lets branches that started before run first.
    pub async fn yield_now(&self, branch: Branch) {
        let mut has_yielded = false;
        poll_fn(|_| match std::mem::replace(&mut has_yielded, true) {
            true => Poll::Ready(()),
            false => {
                self.wake(branch);
                Poll::Pending
            }
        })
        .await;
    }

    /// The end of an iteration. A step never crosses two boundaries of loops of one branch, so that each iteration
    /// has a checkpoint; light items of a foreach share one.
    pub async fn boundary(&self, owner: Branch, branch: Branch, alone: bool) {
        poll_fn(|_| {
            let mut crossed = self.crossed.borrow_mut();
            let crossed = crossed.entry(owner).or_default();
            if *crossed >= LIGHT_ITEMS || alone && *crossed > 0 {
                self.deferred.borrow_mut().insert(branch);
                self.wake(branch);
                return Poll::Pending;
            }
            *crossed = if alone { LIGHT_ITEMS } else { *crossed + 1 };
            Poll::Ready(())
        })
        .await;
    }

    // ── time ────────────────────────────────────────────────────────────────────────────────

    pub fn arm(&self, branch: Branch, due: Timestamp) -> TimerId {
        let timer = self.next_id();
        let fired = false;
        let entry = Timer { branch, due, fired };
        self.timers.borrow_mut().insert(timer, entry);
        timer
    }

    pub fn disarm(&self, timer: TimerId) {
        self.timers.borrow_mut().remove(&timer);
    }

    pub fn has_fired(&self, timer: TimerId) -> bool {
        self.timers
            .borrow()
            .get(&timer)
            .is_some_and(|timer| timer.fired)
    }

    /// Whether a timer is due, fired or not.
    pub fn is_due(&self, timer: TimerId) -> bool {
        let timers = self.timers.borrow();
        timers
            .get(&timer)
            .is_some_and(|timer| timer.due <= self.now())
    }

    /// Waits until an instant. Whatever ends the wait early disarms the timer.
    pub async fn wait_until(&self, branch: Branch, due: Timestamp) {
        let timer = Armed(self, self.arm(branch, due));
        poll_fn(|_| match self.has_fired(timer.1) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    // ── requests ────────────────────────────────────────────────────────────────────────────

    pub fn request(&self, name: &Name, place: &Place, line: String) -> CallId {
        self.await_answer(name, place, CallKind::Request(line))
    }

    pub fn await_signal(&self, name: &Name, place: &Place, signal: &Name) -> CallId {
        self.await_answer(name, place, CallKind::Signal(signal.clone()))
    }

    fn await_answer(&self, name: &Name, place: &Place, kind: CallKind) -> CallId {
        let id = self.next_id();
        let call = Call {
            name: name.clone(),
            place: place.clone(),
            kind,
            reply: None,
            answer: None,
        };
        self.calls.borrow_mut().insert(id, call);
        id
    }

    /// The answer of a request, once it arrived.
    pub fn answer(&self, id: CallId) -> Option<Result<Value, Fault>> {
        self.calls.borrow().get(&id)?.answer.clone()
    }

    /// Forgets a request. Returns it if its answer was still awaited.
    pub fn drop_call(&self, id: CallId) -> Option<Call> {
        let call = self.calls.borrow_mut().remove(&id);
        call.filter(|call| call.answer.is_none())
    }

    /// A signal that arrived before anything waited for it.
    pub fn stored_signal(&self, name: &Name) -> Option<Value> {
        let mut signals = self.signals.borrow_mut();
        let at = signals.iter().position(|(stored, _)| stored == name)?;
        Some(signals.remove(at).1)
    }

    /// The action that waits for a signal: in the branch that started first.
    fn waits_for(&self, name: &Name) -> Option<CallId> {
        let calls = self.calls.borrow();
        let waits = calls.iter().filter(|(_, call)| {
            let awaited = matches!(&call.kind, CallKind::Signal(awaited) if awaited == name);
            awaited && call.answer.is_none()
        });
        let first = waits.min_by_key(|(_, call)| call.place.branch);
        first.map(|(id, _)| *id)
    }

    pub fn is_paused(&self) -> bool {
        self.paused.borrow().is_some()
    }

    pub fn terminate(&self, ended: Ended) {
        *self.terminated.borrow_mut() = Some(ended);
    }
}

/// A timer that is disarmed when its wait is over, however that ends.
struct Armed<'a>(&'a Clock, TimerId);

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.0.disarm(self.1);
    }
}

impl Run<'_> {
    pub fn play(
        &self,
        world: &dyn Fn(&str, usize) -> Reply,
        arrivals: &[(Timestamp, Arrival)],
    ) -> Story {
        let mut body: Pin<Box<dyn Future<Output = Ended> + '_>> = Box::pin(self.body());
        let mut arrivals = arrivals.to_vec();
        let ended = loop {
            if let Some(ended) = self.run_step(&mut body) {
                break Some(ended);
            }
            self.send(world);
            let Some(next) = self.next(&arrivals) else {
                break None;
            };
            if let Some(ended) = self.handle(next, &mut arrivals) {
                break Some(ended);
            }
        };
        let Some(ended) = ended else {
            // What it did up to here: no end of the run cancels what still waits.
            return self.story.take();
        };
        // Whatever still runs is Cancelled.
        drop(body);
        self.note(format!("run {}", ended.status.as_str()));
        let ended = Some(ended);
        Story {
            ended,
            ..self.story.take()
        }
    }

    /// One step: all branches that can run do, until they wait or are at a second boundary.
    fn run_step(&self, body: &mut Pin<Box<dyn Future<Output = Ended> + '_>>) -> Option<Ended> {
        let clock = &self.clock;
        clock.crossed.borrow_mut().clear();
        clock.deferred.borrow_mut().clear();
        while !clock.is_paused()
            && let Some(branch) = clock.next_branch()
        {
            clock.current.set(branch);
            let polled = body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Some(ended) = clock.terminated.take() {
                return Some(ended);
            }
            if let Poll::Ready(ended) = polled {
                return Some(ended);
            }
        }
        None
    }

    /// Sends the requests of the step.
    fn send(&self, world: &dyn Fn(&str, usize) -> Reply) {
        let now = self.clock.now();
        let mut calls = self.clock.calls.borrow_mut();
        for call in calls.values_mut() {
            let CallKind::Request(line) = &call.kind else {
                continue;
            };
            let line = format!("{} {line}", now.0);
            self.story.borrow_mut().requests.push(line);
            call.kind = CallKind::Sent;
            let mut sent = self.clock.sent.borrow_mut();
            let before = sent.entry(call.name.clone()).or_default();
            let reply = world(&call.name, *before);
            *before += 1;
            call.reply = reply.map(|(after, answer)| (now.plus(after), answer));
        }
    }

    /// The next event. Of several at the same time: what is from outside, then answers, then timers; in a pause no
    /// timer fires.
    fn next(&self, arrivals: &[(Timestamp, Arrival)]) -> Option<Next> {
        let clock = &self.clock;
        let is_paused = clock.is_paused();
        if !is_paused && !clock.ready.borrow().is_empty() {
            return Some(Next::Rest);
        }
        let (calls, timers) = (clock.calls.borrow(), clock.timers.borrow());
        let arrivals = arrivals.iter().enumerate();
        let arrivals = arrivals.map(|(at, (due, _))| (*due, 0, Next::Arrival(at)));
        let awaited = calls.iter().filter(|(_, call)| call.answer.is_none());
        let answers = awaited.filter_map(|(id, call)| {
            let (due, _) = call.reply.as_ref()?;
            Some((*due, 1, Next::Answer(*id)))
        });
        let timers = timers
            .iter()
            .filter(|(_, timer)| !timer.fired && !is_paused);
        let timers = timers.map(|(id, timer)| (timer.due, 2, Next::Timer(*id)));
        let all = arrivals.chain(answers).chain(timers);
        let (due, _, next) = all.min_by_key(|(due, kind, _)| (*due, *kind))?;
        clock.now.set(clock.now().max(due));
        Some(next)
    }

    /// What an event does at once, before its step. Returns the end of the run, if it is one.
    fn handle(&self, next: Next, arrivals: &mut Vec<(Timestamp, Arrival)>) -> Option<Ended> {
        match next {
            Next::Rest => {}
            Next::Answer(id) => {
                let mut calls = self.clock.calls.borrow_mut();
                let reply = calls.get_mut(&id).and_then(|call| call.reply.take());
                drop(calls);
                if let Some((_, answer)) = reply {
                    self.answered(id, answer);
                }
            }
            Next::Timer(id) => {
                if let Some(timer) = self.clock.timers.borrow_mut().get_mut(&id) {
                    timer.fired = true;
                    self.clock.wake(timer.branch);
                }
            }
            Next::Arrival(at) => match arrivals.remove(at).1 {
                Arrival::Pause => self.pause(None),
                Arrival::Resume => self.resume(),
                Arrival::Signal(name, payload) => {
                    self.note(format!("signal {name}"));
                    match self.clock.waits_for(&name) {
                        Some(id) => self.answered(id, Ok(payload)),
                        None => self.clock.signals.borrow_mut().push((name, payload)),
                    }
                }
                Arrival::Cancel => {
                    return Some(Ended {
                        status: Status::Cancelled,
                        output: Value::Null,
                        error: None,
                    });
                }
            },
        }
        None
    }

    /// An answer is recorded when it arrives, also in a pause; what follows from it waits for the resume.
    fn answered(&self, id: CallId, answer: Result<Value, Fault>) {
        let mut calls = self.clock.calls.borrow_mut();
        if let Some(call) = calls.get_mut(&id) {
            self.record_answer(call, &answer);
            call.answer = Some(answer);
            self.clock.wake(call.place.branch);
        }
    }

    /// A pause starts nothing new. `limit`: a loop with `on_limit: pause` reached one.
    pub fn pause(&self, limit: Option<Rc<LoopState>>) {
        if !self.clock.is_paused() {
            self.note("paused");
            *self.clock.paused.borrow_mut() = Some((self.clock.now(), limit));
        }
    }

    /// A resume moves due times and deadlines by the length of the pause, and grants a loop that reached a limit
    /// the same again.
    fn resume(&self) {
        let Some((since, limit)) = self.clock.paused.take() else {
            return;
        };
        let length = self.clock.now().since(since);
        for timer in self.clock.timers.borrow_mut().values_mut() {
            timer.due = timer.due.plus(length);
        }
        self.note("resumed");
        if let Some(state) = limit {
            self.grant(&state);
        }
    }
}
