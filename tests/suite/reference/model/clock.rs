//! Events, steps and time: "Checkpoints" and "Pause, resume, cancel".
//!
//! A step begins with one event and runs until all branches wait. Of branches that can continue, the one that
//! started first runs first. Only at the end of the step its requests are sent.

use super::loops::LoopState;
use super::records::{Place, Record};
use super::{Ended, OnDrop, Run, Story};
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
pub type WaitId = usize;

/// How many items of a foreach may end in one step, if they leave little.
const LIGHT_ITEMS: u32 = 50;

/// What arrives at a run from outside.
#[derive(Clone, Debug)]
pub enum Arrival {
    Pause,
    Resume,
    Cancel,
    Signal(Name, Value),
}

type Answer = Result<Value, Fault>;

/// What the world does with a request: it answers after some time, or never.
pub type Reply = Option<(Duration, Answer)>;

/// What a branch waits for.
#[derive(PartialEq)]
pub enum For {
    /// The end of a delay, a wait between attempts, or a deadline.
    Timer,
    /// The end of a `wait` action.
    Sleep,
    /// The answer to a request, whose line is here until it is sent.
    Request(Option<String>),
    Signal(Name),
}

struct Wait {
    place: Place,
    what: For,
    due: Option<Timestamp>,
    answer: Answer,
    is_over: bool,
}

#[derive(Default)]
pub struct Clock {
    pub now: Cell<Timestamp>,
    last_id: Cell<usize>,
    waits: RefCell<BTreeMap<WaitId, Wait>>,
    /// How many requests of an action were sent.
    sent: RefCell<HashMap<Name, usize>>,
    /// The branch that each branch was started by.
    parents: RefCell<BTreeMap<Branch, Branch>>,
    ready: RefCell<BTreeSet<Branch>>,
    /// The branch of a loop that was granted its limits: that one begins its iteration first.
    granted: Cell<Option<Branch>>,
    /// The branch that runs now.
    current: Cell<Branch>,
    /// How many boundaries each branch crossed in this step, and which branches wait for the next one.
    crossed: RefCell<BTreeMap<Branch, u32>>,
    deferred: RefCell<BTreeSet<Branch>>,
    /// Since when it is paused, and at the limit of which loop.
    paused: RefCell<Option<(Timestamp, Option<Rc<LoopState>>)>>,
    /// Signals that nothing waited for yet.
    signals: RefCell<Vec<(Name, Value)>>,
    /// A `terminate` ended the run.
    pub terminated: RefCell<Option<Ended>>,
}

impl Clock {
    pub fn new(now: Timestamp) -> Self {
        let clock = Self::default();
        clock.now.set(now);
        clock.wake(0);
        clock
    }

    fn next_id(&self) -> usize {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

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
        let current = Some(self.current.get());
        let mut line = std::iter::successors(current, |at| parents.get(at).copied());
        line.any(|at| at == branch)
    }

    /// The branch that runs next in this step.
    fn next_branch(&self) -> Option<Branch> {
        let (deferred, mut ready) = (self.deferred.borrow(), self.ready.borrow_mut());
        let first = || ready.iter().find(|one| !deferred.contains(one)).copied();
        let next = self.granted.take().or_else(first)?;
        ready.remove(&next);
        Some(next)
    }

    pub fn grant(&self, branch: Branch) {
        self.granted.set(Some(branch));
    }

    /// Waits until the branches that started before have run.
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

    pub fn wait_for(&self, place: &Place, what: For, after: Option<Duration>) -> WaitId {
        let (id, place) = (self.next_id(), place.clone());
        let due = after.map(|after| self.now.get().plus(after));
        let (answer, is_over) = (Ok(Value::Null), false);
        let wait = Wait {
            place,
            what,
            due,
            answer,
            is_over,
        };
        self.waits.borrow_mut().insert(id, wait);
        id
    }

    pub fn forget(&self, wait: WaitId) {
        self.waits.borrow_mut().remove(&wait);
    }

    pub fn is_over(&self, wait: WaitId) -> bool {
        self.waits
            .borrow()
            .get(&wait)
            .is_some_and(|wait| wait.is_over)
    }

    /// Whether a deadline has passed, also if its timer has not fired yet.
    pub fn is_due(&self, wait: WaitId) -> bool {
        let due = self.waits.borrow().get(&wait).and_then(|wait| wait.due);
        due.is_some_and(|due| due <= self.now.get())
    }

    /// A signal that arrived before anything waited for it.
    pub fn stored_signal(&self, name: &Name) -> Option<Value> {
        let mut signals = self.signals.borrow_mut();
        let at = signals.iter().position(|(stored, _)| stored == name)?;
        Some(signals.remove(at).1)
    }

    /// What waits for a signal: in the branch that started first.
    fn listener(&self, name: &Name) -> Option<WaitId> {
        let waits = self.waits.borrow();
        let listen = waits.iter().filter(|(_, wait)| {
            !wait.is_over && matches!(&wait.what, For::Signal(known) if known == name)
        });
        listen
            .min_by_key(|(_, wait)| wait.place.branch)
            .map(|(id, _)| *id)
    }

    pub fn is_paused(&self) -> bool {
        self.paused.borrow().is_some()
    }
}

impl Run<'_> {
    /// Waits for something. Dropped before that, it is aborted, and its action Cancelled.
    pub async fn answer(&self, id: WaitId) -> Answer {
        let waits = &self.clock.waits;
        let _abort = OnDrop(Some(|| {
            let wait = waits.borrow_mut().remove(&id);
            let open = wait.filter(|wait| !wait.is_over && wait.what != For::Timer);
            if let Some(wait) = open {
                self.record(&wait.place, Record::new(Status::Cancelled, Value::Null));
            }
        }));
        poll_fn(|_| match waits.borrow().get(&id) {
            Some(wait) if wait.is_over => Poll::Ready(wait.answer.clone()),
            Some(_) | None => Poll::Pending,
        })
        .await
    }

    pub async fn sleep(&self, place: &Place, time: Duration) {
        let timer = self.clock.wait_for(place, For::Timer, Some(time));
        // A timer has no answer.
        let _ = self.answer(timer).await;
    }

    /// The end of a wait. What an action waited for is recorded at once, also in a pause; what follows from it waits
    /// for the resume.
    fn end_wait(&self, id: WaitId, answer: Option<Answer>) {
        if let Some(wait) = self.clock.waits.borrow_mut().get_mut(&id) {
            wait.answer = answer.unwrap_or(wait.answer.clone());
            wait.is_over = true;
            self.clock.wake(wait.place.branch);
            if wait.what != For::Timer {
                self.record(&wait.place, Record::of(&wait.answer));
            }
        }
    }

    pub fn play(
        &self,
        world: &dyn Fn(&str, usize) -> Reply,
        arrivals: &[(Timestamp, Arrival)],
    ) -> Story {
        let mut arrivals = arrivals.to_vec();
        let mut body: Pin<Box<dyn Future<Output = Ended> + '_>> = Box::pin(self.body());
        let ended = loop {
            if let Some(ended) = self.run_step(&mut body) {
                break ended;
            }
            self.send(world);
            match self.next_event(&mut arrivals) {
                // What it did up to here: no end of the run cancels what still waits.
                None => return self.story.take(),
                Some(Some(Arrival::Cancel)) => break Ended::new(Status::Cancelled, None),
                Some(Some(arrival)) => self.arrived(arrival),
                Some(None) => {}
            }
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
            match (clock.terminated.take(), polled) {
                (Some(ended), _) | (None, Poll::Ready(ended)) => return Some(ended),
                (None, Poll::Pending) => {}
            }
        }
        None
    }

    /// Sends the requests of the step.
    fn send(&self, world: &dyn Fn(&str, usize) -> Reply) {
        let now = self.clock.now.get();
        for wait in self.clock.waits.borrow_mut().values_mut() {
            let For::Request(line) = &mut wait.what else {
                continue;
            };
            let Some(line) = line.take() else { continue };
            let line = format!("{} {line}", now.0);
            self.story.borrow_mut().requests.push(line);
            let mut sent = self.clock.sent.borrow_mut();
            let before = sent.entry(wait.place.step.clone()).or_default();
            if let Some((after, answer)) = world(&wait.place.step, *before) {
                (wait.due, wait.answer) = (Some(now.plus(after)), answer);
            }
            *before += 1;
        }
    }

    /// The next event, if there is one: what is from outside is returned. Of several at the same time: what is from
    /// outside, then answers, then timers. In a pause no timer fires. What is left of a step is next in any case.
    fn next_event(&self, arrivals: &mut Vec<(Timestamp, Arrival)>) -> Option<Option<Arrival>> {
        let (clock, is_paused) = (&self.clock, self.clock.is_paused());
        if !is_paused && !clock.ready.borrow().is_empty() {
            return Some(None);
        }
        let outside = arrivals
            .iter()
            .enumerate()
            .map(|(at, (due, _))| (*due, 0, at));
        let (due, rank, at) = {
            let waits = clock.waits.borrow();
            let waits = waits.iter().filter_map(|(id, wait)| {
                let rank = if let For::Request(_) = wait.what {
                    1
                } else {
                    2
                };
                let can_end = !(wait.is_over || is_paused && rank == 2);
                wait.due.filter(|_| can_end).map(|due| (due, rank, *id))
            });
            outside.chain(waits).min()?
        };
        clock.now.set(clock.now.get().max(due));
        if rank == 0 {
            return Some(Some(arrivals.remove(at).1));
        }
        self.end_wait(at, None);
        Some(None)
    }

    fn arrived(&self, arrival: Arrival) {
        match arrival {
            Arrival::Pause => self.pause(None),
            Arrival::Resume => self.resume(),
            Arrival::Cancel => {}
            Arrival::Signal(name, payload) => {
                self.note(format!("signal {name}"));
                match self.clock.listener(&name) {
                    None => self.clock.signals.borrow_mut().push((name, payload)),
                    Some(id) => self.end_wait(id, Some(Ok(payload))),
                }
            }
        }
    }

    /// A pause starts nothing new. `limit`: a loop with `on_limit: pause` reached one.
    pub fn pause(&self, limit: Option<Rc<LoopState>>) {
        if !self.clock.is_paused() {
            self.note("paused");
            *self.clock.paused.borrow_mut() = Some((self.clock.now.get(), limit));
        }
    }

    /// A resume moves due times and deadlines by the length of the pause, and grants a loop that reached a limit
    /// the same again. Answers arrive when they arrive.
    fn resume(&self) {
        let Some((since, limit)) = self.clock.paused.take() else {
            return;
        };
        let length = self.clock.now.get().since(since);
        for wait in self.clock.waits.borrow_mut().values_mut() {
            if matches!(wait.what, For::Timer | For::Sleep) {
                wait.due = wait.due.map(|due| due.plus(length));
            }
        }
        self.note("resumed");
        limit.into_iter().for_each(|state| self.grant(&state));
    }
}
