//! Events, turns and time: "Checkpoints" and "Pause, resume, cancel".
//!
//! A step begins with one event. In it, each branch has a turn, in the order in which the branches started; in its turn
//! a branch runs until it waits. The requests of a step are sent only at its end.

use super::*;
use std::task::{Context, Waker};

/// A branch of the run, numbered in the order of starts. The run itself is 0.
pub type Branch = usize;

/// A timer or a request, numbered in the order of starts.
pub type Wait = usize;

/// How many items of a foreach with small results may end in one step.
const LIGHT_ITEMS: u32 = 50;

type Answer = Result<Value, Fault>;

/// An event of a run.
pub enum Event {
    Pause,
    Resume,
    Cancel,
    Signal(Name, Value),
    /// The answer to a request.
    Answer(Answer),
    Timer,
}

/// What the world does with a request: it answers after some time, or never.
pub type Reply = Option<(Duration, Answer)>;

#[derive(Default)]
pub struct Clock {
    pub now: Cell<Timestamp>,
    /// The last number that was given to a branch or a wait.
    last: Cell<usize>,
    /// The future events.
    pub due: RefCell<BTreeMap<Wait, (Timestamp, Event)>>,
    /// The requests of this step, with their actions.
    pub requests: RefCell<BTreeMap<Wait, (Name, String)>>,
    /// Answers (by number) and signals (by name) that have not been received yet.
    received: RefCell<Vec<(Name, Answer)>>,
    paused: Cell<Option<Timestamp>>,
    /// The branch that has its turn.
    pub turn: Cell<Branch>,
    /// The branch of a loop that paused the run at its limit. It has the first turn after the resume.
    pub first: Cell<Option<Branch>>,
    /// How many boundaries each branch crossed in this step, and whether another one is left for the next step.
    crossed: RefCell<BTreeMap<Branch, u32>>,
    is_left: Cell<bool>,
    is_aborting: Cell<bool>,
}

impl Clock {
    /// A number for a new branch, which has its turn in this step, or for a wait.
    pub fn number(&self) -> usize {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    pub fn happens_at(&self, due: Timestamp, event: Event) -> Wait {
        let wait = self.number();
        self.due.borrow_mut().insert(wait, (due, event));
        wait
    }

    pub fn timer(&self, time: Duration) -> Wait {
        self.happens_at(self.now.get().plus(time), Event::Timer)
    }

    pub fn has_fired(&self, timer: Wait) -> bool {
        !self.due.borrow().contains_key(&timer)
    }

    /// Whether a timer has fired, or is about to.
    pub fn is_due(&self, timer: Wait) -> bool {
        let due = self.due.borrow();
        let due = due.get(&timer);
        due.is_none_or(|(due, _)| *due <= self.now.get())
    }

    /// The next event. At the same time, events from outside come first, then answers, then timers. No timer fires
    /// during a pause.
    fn next_event(&self) -> Option<(Wait, (Timestamp, Event))> {
        let rank = |event: &Event| match event {
            Event::Pause | Event::Resume | Event::Cancel | Event::Signal(..) => 0,
            Event::Answer(_) => 1,
            Event::Timer => 2,
        };
        let mut due = self.due.borrow_mut();
        let all = due
            .iter()
            .map(|(wait, (due, event))| (*due, rank(event), *wait));
        let next = all
            .filter(|(_, rank, _)| *rank < 2 || !self.is_paused())
            .min()?;
        due.remove_entry(&next.2)
    }

    fn is_paused(&self) -> bool {
        self.paused.get().is_some()
    }
}

/// Plays a workflow: `world` answers a request by the action's name, and `events` are the other events.
pub fn play(
    workflow: &Workflow,
    start: Timestamp,
    world: &mut dyn FnMut(&str) -> Reply,
    events: Vec<(Timestamp, Event)>,
) -> Story {
    let run = Run {
        workflow,
        clock: Clock::default(),
        story: RefCell::default(),
    };
    let clock = &run.clock;
    clock.now.set(start);
    for (due, event) in events {
        clock.happens_at(due, event);
    }
    let mut body = pin!(run.body());
    loop {
        run.step(body.as_mut());
        if run.has_ended() {
            break;
        }
        run.send(world);
        if clock.is_left.get() && !clock.is_paused() {
            continue;
        }
        let Some((wait, (due, event))) = clock.next_event() else {
            return run.story.take();
        };
        clock.now.set(clock.now.get().max(due));
        run.happens(wait, event);
    }
    // Everything that still runs is Cancelled.
    run.abort(body);
    let ended = run.story.borrow().ended.clone();
    let status = ended.map_or("", |ended| ended.0.as_str());
    run.note(format!("run {status}"));
    run.story.take()
}

impl Run<'_> {
    /// A step, in which each branch has its turn.
    fn step(&self, mut body: Pin<&mut impl Future>) {
        let clock = &self.clock;
        let mut turn = |branch: Branch| {
            clock.turn.set(branch);
            poll(body.as_mut());
        };
        clock.crossed.take();
        clock.is_left.set(false);
        if !clock.is_paused() {
            clock.first.get().into_iter().for_each(&mut turn);
        }
        if !clock.is_paused() {
            clock.first.set(None);
        }
        let mut next = 0;
        while next <= clock.last.get() && !self.has_ended() {
            turn(next);
            next += 1;
        }
    }

    /// Sends the requests of the step.
    fn send(&self, world: &mut dyn FnMut(&str) -> Reply) {
        let now = self.clock.now.get();
        for (wait, (action, line)) in self.clock.requests.take() {
            let line = format!("{} {line}", now.0);
            self.story.borrow_mut().requests.push(line);
            if let Some((after, answer)) = world(&action) {
                let answer = (now.plus(after), Event::Answer(answer));
                self.clock.due.borrow_mut().insert(wait, answer);
            }
        }
    }

    fn happens(&self, wait: Wait, event: Event) {
        let received = &self.clock.received;
        match event {
            Event::Pause => self.pause(None),
            Event::Resume => self.resume(),
            Event::Cancel => self.end(Status::Cancelled, Err(Stop::Aborted)),
            Event::Signal(name, payload) => {
                self.note(format!("signal {name}"));
                received.borrow_mut().push((name, Ok(payload)));
            }
            Event::Answer(answer) => {
                let number = Name::from(wait.to_string());
                received.borrow_mut().push((number, answer));
            }
            Event::Timer => {}
        }
    }

    /// Pauses the run. `first` is the branch of a loop that reached its limit.
    pub fn pause(&self, first: Option<Branch>) {
        if !self.clock.is_paused() {
            self.note("paused");
            self.clock.paused.set(Some(self.clock.now.get()));
            self.clock.first.set(first);
        }
    }

    /// A resume moves due times and deadlines by the length of the pause. The times of answers are unchanged.
    fn resume(&self) {
        if let Some(since) = self.clock.paused.take() {
            let length = self.clock.now.get().since(since);
            for (due, event) in self.clock.due.borrow_mut().values_mut() {
                if let Event::Timer = event {
                    *due = due.plus(length);
                }
            }
            self.note("resumed");
        }
    }

    /// Ends a part immediately: everything that it awaits is aborted.
    pub fn abort(&self, part: Pin<&mut (impl Future + ?Sized)>) {
        let (turn, is_aborting) = (&self.clock.turn, &self.clock.is_aborting);
        let before = (turn.get(), is_aborting.replace(true));
        poll(part);
        turn.set(before.0);
        is_aborting.set(before.1);
    }
}

/// What a branch awaits.
impl Place<'_> {
    /// Waits until it is the branch's turn and `is_so` is true. Nothing new starts during a pause.
    pub async fn until(&self, mut is_so: impl FnMut() -> bool) -> Flow {
        let is_running = || !self.run.clock.is_paused() && !self.run.has_ended();
        self.until_in_pause(|| is_running() && is_so()).await
    }

    /// The same, but also during a pause.
    pub async fn until_in_pause(&self, mut is_so: impl FnMut() -> bool) -> Flow {
        let clock = &self.run.clock;
        poll_fn(|_| match clock.is_aborting.get() {
            true => Poll::Ready(Err(Stop::Aborted)),
            false if clock.turn.get() == self.branch && is_so() => Poll::Ready(Ok(())),
            false => Poll::Pending,
        })
        .await
    }

    pub async fn sleep(&self, time: Duration) -> Flow {
        let timer = self.run.clock.timer(time);
        self.until(|| self.run.clock.has_fired(timer)).await
    }

    /// Waits for a signal or an answer.
    pub async fn receive(&self, name: &str) -> Flow<Value> {
        let (mut found, received) = (None, &self.run.clock.received);
        self.until_in_pause(|| {
            let mut received = received.borrow_mut();
            found = received.extract_if(.., |(to, _)| **to == *name).next();
            found.is_some()
        })
        .await?;
        let answer = found.map_or(Ok(Value::Null), |(_, answer)| answer);
        answer.map_err(|fault| self.failed(fault))
    }

    /// The end of an iteration. A step never crosses two boundaries of loops of one branch, so that each iteration
    /// has a checkpoint; light items of a foreach share one.
    pub async fn boundary(&self, owner: Branch, is_light: bool) -> Flow {
        let clock = &self.run.clock;
        self.until(|| {
            let mut crossed = clock.crossed.borrow_mut();
            let crossed = crossed.entry(owner).or_default();
            let is_free = *crossed == 0 || is_light && *crossed < LIGHT_ITEMS;
            match is_free {
                true => *crossed += if is_light { 1 } else { LIGHT_ITEMS },
                false => clock.is_left.set(true),
            }
            is_free
        })
        .await
    }
}

/// Runs a part until something else has happened, such as the end of a deadline.
pub async fn race(
    other: impl Future<Output = Flow>,
    mut part: Pin<&mut impl Future<Output = Flow>>,
) -> Option<Flow> {
    let mut other = pin!(other);
    poll_fn(|context| match other.as_mut().poll(context) {
        Poll::Ready(Ok(())) => Poll::Ready(None),
        Poll::Ready(Err(_)) | Poll::Pending => part.as_mut().poll(context).map(Some),
    })
    .await
}

fn poll(part: Pin<&mut (impl Future + ?Sized)>) {
    let _ = part.poll(&mut Context::from_waker(Waker::noop()));
}
