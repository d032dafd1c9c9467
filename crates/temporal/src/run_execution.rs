//! A run on Temporal: computes the commands to Temporal (orders) from the inputs of a workflow task. A run has one or
//! more executions. If its history gets long, the run **carries over**: it continues as a new execution, which begins
//! with the run's state. It carries over after a step and before the effects of this step start. The new execution
//! starts them (`RunHost::outstanding`). The result of a task depends only on the sources, the carried-over state and
//! the events of the history. A worker uses this to continue a run, and a reader to compute the state of a run from its
//! history. So both see the same run.

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

/// Maximum number of steps without external input in one workflow task. After that the run yields: the task ends, so
/// that the run can receive commands.
const MAX_STEPS_PER_TASK: u32 = 2_000;

/// After this number of steps without external input, an execution carries over, so that a replay of its history does
/// not take long.
const CARRY_OVER_STEPS: u32 = 20_000;

/// The activity that a run starts when it yields. It does nothing: its answer begins the next task. A timer would have
/// the same purpose, but could fire up to a second late.
pub const YIELD: EffectId = EffectId(u64::MAX);

/// Minimum size of a large request. It is not sent with the activity: it remains in the run's state, and the activity
/// reads it from there.
const LARGE_REQUEST_BYTES: usize = 16 << 10;

/// If a history is longer by this factor than the limit for carrying over, the run carries over even with effects in
/// flight.
const FORCED_CARRY_OVER_FACTOR: u32 = 8;

/// Maximum time to wait for effects in flight before a run carries over. Effects that have not ended by then are
/// repeated with the same idempotency keys.
const GRACE: Duration = Duration::from_secs(10);

/// The number of the timer that ends the wait of [`GRACE`]. Other timers are numbered from 1.
const GRACE_TIMER: u32 = u32::MAX;

/// The proof that a step on Temporal is durable. The events that caused the step were read from the history, so the
/// step can be computed again. Temporal records all commands of the step or none.
struct Recorded;

impl sealed::Sealed for Recorded {}
impl Durable for Recorded {}

/// An input of a workflow task. A run handles the inputs of one task in the order of `Input::rank`.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A signal that was sent with Temporal's own tools.
    Signal(Name, Value),
    /// An update: its id, its command, and whether it may still be refused.
    Update(String, Command, bool),
    /// Temporal received a request to cancel the run.
    Cancel,
    /// An effect ended.
    Done(EffectId, Result<Value, Fault>),
    /// A timer fired.
    Fired(u32),
    /// Temporal's answer to a request to cancel another run. It also arrives if the other run had ended or never began.
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
    /// When the task began.
    pub now: Timestamp,
    /// Number of events in the history when the task began.
    pub length: u32,
    /// Whether Temporal suggests that the run carries over.
    pub suggested: bool,
    /// The task's inputs.
    pub inputs: Vec<Input>,
}

/// A command to Temporal.
#[derive(Debug)]
pub enum Order {
    /// Run an activity.
    Start(EffectId, Vec<u8>),
    /// Cancel an activity.
    Abort(EffectId),
    /// Cancel a run that was called.
    CancelRun(Name),
    /// Start the timer with this number.
    Arm(u32, Duration),
    /// Cancel the timer with this number.
    Disarm(u32),
    /// Answer an update.
    Answer(String, RunStatus),
    Refuse(String, String),
    /// Continue as a new execution with this input.
    CarryOver(Vec<u8>),
    /// Set the run's status in the search attributes, with which Temporal finds runs.
    SetStatus(RunStatus),
    /// The run has ended.
    Finish(Outcome),
}

/// A function that is called for every step, with the run after the step, the step, and the time of the step.
pub type Sink<'a> = &'a mut dyn FnMut(&RunHost, &mut Transition, Timestamp);

/// How far the run is with carrying over to the next execution.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CarryOver {
    /// Carrying over is not necessary yet.
    Later,
    /// The run waits for the effects in flight and starts no further ones. [`GRACE_TIMER`] ends the wait.
    Waiting,
    /// The wait has ended: the run carries over at the end of this task.
    Now,
}

/// A run in one execution.
pub struct RunExecution {
    wire: Wire,
    hosted: RunHost,
    run_start: RunStart,
    is_begun: bool,
    /// Activities that were started and have not ended.
    in_flight: BTreeSet<EffectId>,
    /// The called runs that activities wait for.
    called: BTreeMap<EffectId, Name>,
    /// Number of requests to cancel other runs that Temporal has not answered yet. The run remains in its execution
    /// until all of them are answered, because unanswered requests of an execution are lost when the execution ends.
    cancelling: usize,
    /// The requests of the activities to start at the end of the task.
    requested: BTreeMap<EffectId, Request>,
    /// The armed timers, by their number in Temporal's history.
    timers: BTreeMap<u32, TimerId>,
    /// Numbers of the timers that fired in this task.
    fired: BTreeSet<u32>,
    /// The number of the next timer.
    next_timer: u32,
    /// Whether further steps are to be done after [`YIELD`] has ended.
    has_remaining_steps: bool,
    /// Whether [`YIELD`] was started and has not ended.
    yields: bool,
    carry_over: CarryOver,
    /// Number of steps without external input in this task.
    steps: u32,
    /// Number of steps without external input in this execution.
    all_steps: u32,
    /// The status that the search attributes have now.
    search_status: RunStatus,
}

impl RunExecution {
    /// Creates a run at the beginning of an execution.
    pub fn new(id: &Name, wire: Wire, program: Arc<Program>, run_start: RunStart) -> Self {
        let hosted = match &run_start.from {
            StartState::CarriedOver { state, at } => {
                RunHost::restored(program, (**state).clone(), *at, 0)
            }
            StartState::Start { .. } | StartState::Restored(_) => RunHost::new(id.clone(), program),
        };
        Self {
            wire,
            hosted,
            run_start,
            is_begun: false,
            in_flight: BTreeSet::new(),
            called: BTreeMap::new(),
            cancelling: 0,
            requested: BTreeMap::new(),
            timers: BTreeMap::new(),
            fired: BTreeSet::new(),
            next_timer: 1,
            has_remaining_steps: false,
            yields: false,
            carry_over: CarryOver::Later,
            steps: 0,
            all_steps: 0,
            search_status: RunStatus::Running,
        }
    }

    /// Returns the request of an effect.
    pub fn request(&self, id: EffectId) -> Option<Request> {
        let state = self.hosted.state();
        let effect = state.effects.get(&id)?;
        let visible = state.visible_variables(effect.cursor);
        Some(effect.request.with_state(&visible))
    }

    /// Returns the run's outcome if the run has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.hosted.state().outcome.as_deref()
    }

    /// Handles a workflow task. Returns the commands to Temporal, in order.
    ///
    /// # Errors
    /// If the run's state is inconsistent or something cannot be encoded. Then the task fails and is retried.
    pub fn handle_task(
        &mut self,
        mut task: Task,
        sink: Sink<'_>,
    ) -> Result<Vec<Order>, TemporalError> {
        let now = task.now;
        let mut orders = Vec::new();
        self.steps = 0;
        if !std::mem::replace(&mut self.is_begun, true) {
            self.begin(now, sink, &mut orders)?;
        }
        // Record first which activities and timers have ended in this task. An input that is handled before their end
        // may cancel them, but Temporal must not receive a cancel of something that has ended.
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
        // A stable sort: inputs of one kind remain in the order of the history.
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
        // From now on the run has its own state, so drop the initial state to free its memory.
        let nothing = StartState::Start {
            input: Value::Null,
            environment: Value::Null,
        };
        match std::mem::replace(&mut self.run_start.from, nothing) {
            StartState::Start { input, environment } => {
                let event = Event::Started { input, environment };
                self.step(event, now, sink, orders)
            }
            StartState::Restored(state) => self.step(Event::Restored(state), now, sink, orders),
            StartState::CarriedOver { .. } => {
                let outstanding = self.hosted.outstanding();
                if self.apply_effects(outstanding, now, orders) {
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
            // Ignore these inputs: a run that has ended only waits for Temporal's answers to its requests to cancel
            // other runs.
            Input::Cancel | Input::Done(..) | Input::Fired(_) if self.is_final() => {}
            Input::Cancel => self.step(Event::CancelRequested, now, sink, orders)?,
            Input::Done(YIELD, _) => {
                self.yields = false;
                self.has_remaining_steps = false;
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
                    // Arm the timer again if it fired early: its due time moved after it was armed, or the clocks of
                    // Temporal's servers differ.
                    Some(due_at) if due_at > now => self.arm(id, due_at, now, orders),
                    Some(_) => self.step(Event::TimerFired { id }, now, sink, orders)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Returns why a command is refused. `None` if it is accepted.
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

    /// Handles one event, and then all steps that follow without further input.
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
            if !self.apply_effects(effects, now, orders) {
                return Ok(());
            }
            self.steps += 1;
            self.all_steps = self.all_steps.saturating_add(1);
            if self.steps >= MAX_STEPS_PER_TASK {
                self.has_remaining_steps = true;
                return Ok(());
            }
            event = Event::Continued;
        }
    }

    /// Adds the commands for the effects of a step to `orders`. Activities are only recorded in `requested`: the end of
    /// the task starts them. Returns true if another step follows at once.
    fn apply_effects(
        &mut self,
        effects: Vec<Effect>,
        now: Timestamp,
        orders: &mut Vec<Order>,
    ) -> bool {
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
                // The end of the task adds this command, from the run's outcome.
                Effect::Finish(_) => {}
            }
        }
        has_continue
    }

    /// Cancels called runs. The worker that waits for a called run cancels it, too, but that worker may have ended.
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
        // If a timer is armed and disarmed in one task, Temporal receives neither command.
        let before = orders.len();
        orders.retain(|order| !matches!(order, Order::Arm(armed, _) if *armed == number));
        if orders.len() == before {
            orders.push(Order::Disarm(number));
        }
    }

    /// Ends a task: the run ends, carries over, or starts the requested effects.
    fn end_task(
        &mut self,
        task: &Task,
        sink: Sink<'_>,
        orders: &mut Vec<Order>,
    ) -> Result<(), TemporalError> {
        if self.decide_carry_over(task, orders) && !self.is_final() {
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
            self.update_status(orders);
            if self.cancelling == 0 {
                orders.push(Order::Finish(*outcome));
            }
            return Ok(());
        }
        self.update_status(orders);
        if self.carry_over == CarryOver::Later {
            for (id, request) in std::mem::take(&mut self.requested) {
                if request.calls_workflow() {
                    let run = scheduler::child_id(&self.hosted.state().id, &request);
                    self.called.insert(id, run);
                }
                orders.push(Order::Start(id, self.encode_activity_input(request)?));
                self.in_flight.insert(id);
            }
            if self.has_remaining_steps && !std::mem::replace(&mut self.yields, true) {
                orders.push(Order::Start(YIELD, Vec::new()));
            }
        }
        Ok(())
    }

    /// Updates the status in the search attributes if it has changed.
    fn update_status(&mut self, orders: &mut Vec<Order>) {
        let status = match self.hosted.status() {
            // Each update is an event, and a polling loop switches between the two states all the time.
            RunStatus::Waiting => RunStatus::Running,
            other => other,
        };
        if self.run_start.searchable && std::mem::replace(&mut self.search_status, status) != status
        {
            orders.push(Order::SetStatus(status));
        }
    }

    /// Returns true if the run carries over now: its execution is long, and no effect is in flight or the wait of
    /// [`GRACE`] has ended. If an effect is always in flight and the execution gets much too long, this begins that
    /// wait: it arms [`GRACE_TIMER`], and the run starts no further effects.
    fn decide_carry_over(&mut self, task: &Task, orders: &mut Vec<Order>) -> bool {
        let limit = self.run_start.carry_over_at;
        let is_long = task.length >= limit || self.all_steps >= CARRY_OVER_STEPS;
        if !task.suggested && !is_long || self.cancelling > 0 {
            return false;
        }
        if self.in_flight.is_empty() || self.carry_over == CarryOver::Now {
            return true;
        }
        let is_too_long = task.length >= limit.saturating_mul(FORCED_CARRY_OVER_FACTOR)
            || self.all_steps >= CARRY_OVER_STEPS.saturating_mul(2);
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
            ..self.run_start.clone()
        };
        self.wire.write(&next)
    }

    /// Encodes the input of an activity. A large request is left out.
    fn encode_activity_input(&self, request: Request) -> Result<Vec<u8>, TemporalError> {
        let input = ActivityInput {
            program: self.run_start.program,
            request: Some(request),
        };
        let bytes = self.wire.write(&input)?;
        if bytes.len() < LARGE_REQUEST_BYTES {
            return Ok(bytes);
        }
        self.wire.write(&ActivityInput {
            request: None,
            ..input
        })
    }
}

/// Removes all commands except answers and cancels of called runs. A run sends no other commands in an execution that
/// it is leaving.
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
