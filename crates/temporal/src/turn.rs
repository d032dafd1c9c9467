//! A run inside of Temporal: what came in with a workflow task, and what is ordered in return. It is
//! a function of the sources, the carried state and the events of the history. The worker and the
//! fold of a history both use it, so a reader sees the run as the worker continues it.

use super::TemporalError;
use super::wire::{ActivityInput, Command, MAX_PAYLOAD, RunStart, StartState, Wire};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::scheduler;
use windlass_expression::Value;
use windlass_machine::hosted::RunHost;
use windlass_machine::program::Program;
use windlass_machine::{
    Durable, Effect, EffectId, Event, Outcome, RunStatus, Signal, TimerId, Transition,
    check_signal, sealed,
};
use windlass_model::model::{Fault, Name, Request};
use windlass_value::time::Timestamp;

/// Maximum number of steps that need nothing from outside in one workflow task. Then the run
/// yields, so that it hears of commands.
const STEPS_A_TASK: u32 = 2_000;

/// An execution of this many such steps carries over, so that a replay does not take long.
const STEPS_AN_EXECUTION: u32 = 20_000;

/// The activity of a run that yields, which does nothing. A timer would fire up to a second late.
pub const YIELD: EffectId = EffectId(u64::MAX);

/// Requests of at least this many bytes are left in the run's state, where an activity finds them.
const LARGE: usize = 16 << 10;

/// A history this many times as long as one that carries over does so even when something is in flight.
const BUSY: u32 = 8;

/// How long effects in flight may take to end before a run carries over all the same. They are
/// repeated then, under the same keys.
const GRACE: Duration = Duration::from_secs(10);

/// The number of the timer that ends this wait. Others count from 1.
const GRACE_TIMER: u32 = u32::MAX;

/// Temporal's word that a step is durable: what led to it was read from its history, and what the
/// step asks for is recorded with it or not at all.
struct Recorded;

impl sealed::Sealed for Recorded {}
impl Durable for Recorded {}

/// Something that a workflow task brings. The order is that in which a run takes what came together.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A signal of Temporal's own tools.
    Signal(Name, Value),
    /// An update: its id, and the command; whether it may still be refused.
    Update(String, Command, bool),
    /// Temporal received a request to cancel the run.
    Cancel,
    /// An effect ended.
    Done(EffectId, Result<Value, Fault>),
    /// A timer fired.
    Fired(u32),
    /// The answer to a request to cancel another run, also if that had ended or never began.
    RunCancelled,
}

impl Input {
    fn rank(&self) -> (u8, u64) {
        match self {
            Self::Signal(..) => (0, 0),
            Self::Update(..) => (1, 0),
            Self::Cancel => (2, 0),
            Self::Done(id, _) => (3, id.0),
            Self::Fired(number) => (4, u64::from(*number)),
            Self::RunCancelled => (5, 0),
        }
    }
}

/// A workflow task.
pub struct Task {
    /// When it began.
    pub now: Timestamp,
    /// How many events the history had then.
    pub length: u32,
    /// Whether Temporal would like the run to carry over.
    pub suggested: bool,
    /// What it brings.
    pub inputs: Vec<Input>,
}

/// Something that Temporal is to do.
#[derive(Debug)]
pub enum Order {
    /// Run an activity.
    Start(EffectId, Vec<u8>),
    /// Cancel it.
    Abort(EffectId),
    /// Cancel a run that was called.
    CancelRun(Name),
    /// Start the timer of this number.
    Arm(u32, Duration),
    /// Cancel it.
    Disarm(u32),
    /// Answer an update.
    Answer(String, RunStatus),
    Refuse(String, String),
    /// Continue as a new execution with this input.
    CarryOver(Vec<u8>),
    /// Make it known to those who search that the run has this status.
    Mark(RunStatus),
    /// The run has ended.
    Finish(Outcome),
}

/// Sees every step: the run after it, the step, its time.
pub type Sink<'a> = &'a mut dyn FnMut(&RunHost, &mut Transition, Timestamp);

/// How a run comes to its next execution.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CarryOver {
    /// There is no need yet.
    Later,
    /// Nothing starts any more, and [`GRACE_TIMER`] ends the wait.
    Waiting,
    /// The wait is over.
    Now,
}

/// A run in one execution.
pub struct Turn {
    wire: Wire,
    hosted: RunHost,
    begun: RunStart,
    is_begun: bool,
    /// Activities that were ordered and have not ended.
    in_flight: BTreeSet<EffectId>,
    /// The runs that those of them wait for that call workflows.
    called: BTreeMap<EffectId, Name>,
    /// How many runs it has cancelled without an answer of Temporal. Before that it stays in its execution: what an
    /// execution has ordered and not got is lost with it.
    cancelling: usize,
    /// Activities to order.
    requested: BTreeMap<EffectId, Request>,
    /// Timers by their number in Temporal's history.
    timers: BTreeMap<u32, TimerId>,
    /// Those that fired in this task.
    fired: BTreeSet<u32>,
    /// The next timer gets this number.
    next_timer: u32,
    /// Steps were left undone, and continue after [`YIELD`].
    cut: bool,
    /// Whether [`YIELD`] was ordered and has not ended.
    yields: bool,
    carry_over: CarryOver,
    /// Steps in this task that needed nothing from outside, and in this execution.
    steps: u32,
    all_steps: u32,
    /// What those who search know.
    marked: RunStatus,
}

impl Turn {
    /// A run that begins an execution.
    pub fn new(id: &Name, wire: Wire, program: Arc<Program>, begun: RunStart) -> Self {
        let hosted = match &begun.from {
            StartState::CarriedOver { state, at } => {
                RunHost::restored(program, (**state).clone(), *at, 0)
            }
            StartState::Start { .. } | StartState::Restored(_) => RunHost::new(id.clone(), program),
        };
        Self {
            wire,
            hosted,
            begun,
            is_begun: false,
            in_flight: BTreeSet::new(),
            called: BTreeMap::new(),
            cancelling: 0,
            requested: BTreeMap::new(),
            timers: BTreeMap::new(),
            fired: BTreeSet::new(),
            next_timer: 1,
            cut: false,
            yields: false,
            carry_over: CarryOver::Later,
            steps: 0,
            all_steps: 0,
            marked: RunStatus::Running,
        }
    }

    /// The request of an effect.
    pub fn request(&self, id: EffectId) -> Option<Request> {
        let state = self.hosted.state();
        let effect = state.effects.get(&id)?;
        Some(effect.request.with_state(state.variables_of(effect.cursor)))
    }

    /// How the run ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.hosted.state().outcome.as_deref()
    }

    /// Takes what a workflow task brings; returns what is to be ordered, in order.
    ///
    /// # Errors
    /// The run contradicts itself, or something cannot be encoded. The task fails and is tried again.
    pub fn take(&mut self, mut task: Task, sink: Sink<'_>) -> Result<Vec<Order>, TemporalError> {
        let now = task.now;
        let mut orders = Vec::new();
        self.steps = 0;
        if !std::mem::replace(&mut self.is_begun, true) {
            self.begin(now, sink, &mut orders)?;
        }
        // What ended on its own is not cancelled any more, even if the cancellation is earlier in the task.
        self.fired.clear();
        for input in &task.inputs {
            match input {
                Input::Done(id, _) => {
                    self.in_flight.remove(id);
                    self.called.remove(id);
                }
                Input::Fired(number) => drop(self.fired.insert(*number)),
                Input::RunCancelled => self.cancelling = self.cancelling.saturating_sub(1),
                Input::Signal(..) | Input::Update(..) | Input::Cancel => {}
            }
        }
        // Stable: what is of one kind stays in the order of the history.
        task.inputs.sort_by_key(Input::rank);
        for input in std::mem::take(&mut task.inputs) {
            self.input(input, now, sink, &mut orders)?;
        }
        self.end_task(&task, sink, &mut orders)?;
        Ok(orders)
    }

    fn begin(
        &mut self,
        now: Timestamp,
        sink: Sink<'_>,
        orders: &mut Vec<Order>,
    ) -> Result<(), TemporalError> {
        // From here on the state is the run's own: a copy of it would only grow old.
        let nothing = StartState::Start {
            input: Value::Null,
            environment: Value::Null,
        };
        match std::mem::replace(&mut self.begun.from, nothing) {
            StartState::Start { input, environment } => {
                let event = Event::Started { input, environment };
                self.step(event, now, sink, orders)
            }
            StartState::Restored(state) => self.step(Event::Restored(state), now, sink, orders),
            StartState::CarriedOver { .. } => {
                let outstanding = self.hosted.outstanding();
                if self.follow(outstanding, now, orders) {
                    self.step(Event::Continued, now, sink, orders)?;
                }
                Ok(())
            }
        }
    }

    fn input(
        &mut self,
        input: Input,
        now: Timestamp,
        sink: Sink<'_>,
        orders: &mut Vec<Order>,
    ) -> Result<(), TemporalError> {
        match input {
            Input::Signal(name, payload) => {
                let signal = Signal::new(name, payload);
                let accepted = check_signal(self.hosted.program(), self.hosted.state(), &signal);
                if accepted.is_ok() && !self.is_final() {
                    self.step(Event::Signalled(signal), now, sink, orders)?;
                }
            }
            Input::Update(id, command, may_refuse) => match self.refusal(&command) {
                Some(why) if may_refuse => orders.push(Order::Refuse(id, why)),
                Some(_) => orders.push(Order::Answer(id, self.hosted.status())),
                None => {
                    self.step(command.event(), now, sink, orders)?;
                    orders.push(Order::Answer(id, self.hosted.status()));
                }
            },
            Input::RunCancelled => {}
            // It only waits for what it has cancelled.
            Input::Cancel | Input::Done(..) | Input::Fired(_) if self.is_final() => {}
            Input::Cancel => self.step(Event::CancelRequested, now, sink, orders)?,
            Input::Done(YIELD, _) => {
                self.yields = false;
                self.cut = false;
                self.step(Event::Continued, now, sink, orders)?;
            }
            Input::Done(id, result) => {
                self.step(Event::EffectCompleted { id, result }, now, sink, orders)?;
            }
            Input::Fired(GRACE_TIMER) => self.carry_over = CarryOver::Now,
            Input::Fired(number) => {
                let Some(id) = self.timers.remove(&number) else {
                    return Ok(());
                };
                let timer = self.hosted.state().timers.get(&id);
                match timer.map(|timer| timer.due_at) {
                    // It was armed before its due time moved, or Temporal's clocks differ.
                    Some(due_at) if due_at > now => self.arm(id, due_at, now, orders),
                    Some(_) => self.step(Event::TimerFired { id }, now, sink, orders)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Why a command is refused, if it is.
    pub fn refusal(&self, command: &Command) -> Option<String> {
        if self.is_final() {
            return Some(String::from("the run has ended"));
        }
        let Event::Signalled(signal) = command.clone().event() else {
            return None;
        };
        let (program, state) = (self.hosted.program(), self.hosted.state());
        let checked = scheduler::check_signal(&state.id, program, state, &signal);
        checked.err().map(|why| why.to_string())
    }

    fn is_final(&self) -> bool {
        self.hosted.status().is_final()
    }

    /// Takes one event, and what follows from it alone.
    fn step(
        &mut self,
        event: Event,
        now: Timestamp,
        sink: Sink<'_>,
        orders: &mut Vec<Order>,
    ) -> Result<(), TemporalError> {
        let mut event = event;
        loop {
            let mut step = self.hosted.handle_event(Vec::new(), event, now)?;
            if step.is_empty() {
                return Ok(());
            }
            sink(&self.hosted, &mut step, self.hosted.event_time(now));
            let effects = self.hosted.release(step, &Recorded);
            if !self.follow(effects, now, orders) {
                return Ok(());
            }
            self.steps += 1;
            self.all_steps = self.all_steps.saturating_add(1);
            if self.steps >= STEPS_A_TASK {
                self.cut = true;
                return Ok(());
            }
            event = Event::Continued;
        }
    }

    /// Orders what a step asks for; returns whether it continues at once.
    fn follow(&mut self, effects: Vec<Effect>, now: Timestamp, orders: &mut Vec<Order>) -> bool {
        let mut has_continue = false;
        for effect in effects {
            match effect {
                Effect::Start { id, request } => {
                    self.requested.insert(id, request);
                }
                Effect::Abort { id } => {
                    if self.requested.remove(&id).is_none() && self.in_flight.remove(&id) {
                        orders.push(Order::Abort(id));
                        let called = self.called.remove(&id);
                        self.cancel_runs(called, orders);
                    }
                }
                Effect::Arm { id, due_at } => {
                    self.disarm(id, orders);
                    self.arm(id, due_at, now, orders);
                }
                Effect::Disarm { id, .. } => self.disarm(id, orders),
                Effect::Continue => has_continue = true,
                // The run's outcome says it, at the end of the task.
                Effect::Finish(_) => {}
            }
        }
        has_continue
    }

    /// Cancels runs that were called. The worker that waits for one does so too, but it may be gone.
    fn cancel_runs(&mut self, runs: impl IntoIterator<Item = Name>, orders: &mut Vec<Order>) {
        let before = orders.len();
        orders.extend(runs.into_iter().map(Order::CancelRun));
        self.cancelling += orders.len() - before;
    }

    fn number(&mut self) -> u32 {
        let number = self.next_timer;
        self.next_timer += 1;
        number
    }

    fn arm(&mut self, id: TimerId, due_at: Timestamp, now: Timestamp, orders: &mut Vec<Order>) {
        let number = self.number();
        self.timers.insert(number, id);
        let wait = due_at.since(now).max(Duration::from_millis(1));
        orders.push(Order::Arm(number, wait));
    }

    fn disarm(&mut self, id: TimerId, orders: &mut Vec<Order>) {
        let armed = self.timers.iter().find(|(_, timer)| **timer == id);
        let Some(number) = armed.map(|(number, _)| *number) else {
            return;
        };
        self.timers.remove(&number);
        if self.fired.contains(&number) {
            return;
        }
        // What is armed and disarmed in one task never was.
        let before = orders.len();
        orders.retain(|order| !matches!(order, Order::Arm(armed, _) if *armed == number));
        if orders.len() == before {
            orders.push(Order::Disarm(number));
        }
    }

    /// The end of a task: the run has ended, carries over, or starts the requested effects.
    fn end_task(
        &mut self,
        task: &Task,
        sink: Sink<'_>,
        orders: &mut Vec<Order>,
    ) -> Result<(), TemporalError> {
        if self.carries_over(task, orders) && !self.is_final() {
            let next = self.next_execution(task.now)?;
            if next.len() <= MAX_PAYLOAD {
                answers_only(orders);
                orders.push(Order::CarryOver(next));
                return Ok(());
            }
            let event = Event::StateTooLarge {
                bytes: next.len() as u64,
                limit: MAX_PAYLOAD as u64,
            };
            self.step(event, task.now, sink, orders)?;
        }
        if let Some(outcome) = self.hosted.state().outcome.clone() {
            answers_only(orders);
            let called = std::mem::take(&mut self.called);
            self.cancel_runs(called.into_values(), orders);
            self.mark(orders);
            if self.cancelling == 0 {
                orders.push(Order::Finish(*outcome));
            }
            return Ok(());
        }
        self.mark(orders);
        if self.carry_over == CarryOver::Later {
            for (id, request) in std::mem::take(&mut self.requested) {
                if request.calls_workflow() {
                    let run = scheduler::child_id(&self.hosted.state().id, &request);
                    self.called.insert(id, run);
                }
                orders.push(Order::Start(id, self.ask(request)?));
                self.in_flight.insert(id);
            }
            if self.cut && !std::mem::replace(&mut self.yields, true) {
                orders.push(Order::Start(YIELD, Vec::new()));
            }
        }
        Ok(())
    }

    /// Says what status the run has when that is another one.
    fn mark(&mut self, orders: &mut Vec<Order>) {
        let status = match self.hosted.status() {
            // Each change is an event, and a loop that polls does both in turns.
            RunStatus::Waiting => RunStatus::Running,
            other => other,
        };
        if self.begun.searchable && std::mem::replace(&mut self.marked, status) != status {
            orders.push(Order::Mark(status));
        }
    }

    /// Whether the run carries over now: when this execution is long and nothing is in flight. One that
    /// always has something in flight starts nothing more for a while.
    fn carries_over(&mut self, task: &Task, orders: &mut Vec<Order>) -> bool {
        let limit = self.begun.carry_over_at;
        let is_long = task.length >= limit || self.all_steps >= STEPS_AN_EXECUTION;
        if !task.suggested && !is_long || self.cancelling > 0 {
            return false;
        }
        if self.in_flight.is_empty() || self.carry_over == CarryOver::Now {
            return true;
        }
        let is_too_long = task.length >= limit.saturating_mul(BUSY)
            || self.all_steps >= STEPS_AN_EXECUTION.saturating_mul(2);
        if is_too_long && self.carry_over == CarryOver::Later {
            self.carry_over = CarryOver::Waiting;
            orders.push(Order::Arm(GRACE_TIMER, GRACE));
        }
        false
    }

    fn next_execution(&self, now: Timestamp) -> Result<Vec<u8>, TemporalError> {
        let next = RunStart {
            from: StartState::CarriedOver {
                state: Box::new(self.hosted.state().clone()),
                at: self.hosted.event_time(now),
            },
            ..self.begun.clone()
        };
        self.wire.write(&next)
    }

    fn ask(&self, request: Request) -> Result<Vec<u8>, TemporalError> {
        let ask = ActivityInput {
            program: self.begun.program,
            request: Some(request),
        };
        let bytes = self.wire.write(&ask)?;
        if bytes.len() < LARGE {
            return Ok(bytes);
        }
        self.wire.write(&ActivityInput {
            request: None,
            ..ask
        })
    }
}

/// A run that leaves this execution orders nothing more in it, except that runs that it called end.
fn answers_only(orders: &mut Vec<Order>) {
    let stays = |order: &Order| {
        matches!(
            order,
            Order::Answer(..) | Order::Refuse(..) | Order::CancelRun(_)
        )
    };
    orders.retain(stays);
}

#[cfg(test)]
mod tests;
