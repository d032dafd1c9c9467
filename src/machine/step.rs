//! What each operation does, and the movement rule.

use super::advance::Stepper;
use super::change::Change;
use super::env::View;
use super::event::{Effect, Happening};
use super::record::{Output, Reading};
use super::state::{
    CursorId, EffectId, Frame, FrameKind, PendingEffect, PendingTimer, RunError, TimerId,
    TimerPurpose, TryState, Wait,
};
use crate::expression::{EvalError, MAX_RESULT_DEPTH, Object, Template, Value};
use crate::model::{AssignOp, Dialect, Fault, Name, Request, Status, fault_kind};
use crate::program::{
    ActionId, Assignment, Call, Op, Outputs, Retry, ScopeId, ScopeKind, Sleep, State, StateId,
};
use crate::time::{Timestamp, parse_duration};
use chrono::DateTime;
use std::time::Duration;

/// What an operation or an evaluation comes to.
pub(super) type Faulty<T> = Result<T, Fault>;

impl<'a> Stepper<'a> {
    /// Does the operation at which a ready cursor stands.
    pub fn step(&mut self, cursor: CursorId) {
        let Some(at) = self.run.cursors.get(&cursor).map(|cursor| cursor.at) else {
            return;
        };
        let program = self.program;
        let Some(state) = program.state(at) else {
            let fault = Fault::new("internal", format!("state {at} is not in the program"));
            return self.raise_here(cursor, fault);
        };
        if let Err(fault) = self.operate(cursor, state) {
            self.record_failure(cursor, state, &fault);
            self.raise_here(cursor, fault);
        }
    }

    fn operate(&mut self, cursor: CursorId, state: &State) -> Faulty<()> {
        match &state.op {
            Op::Call(call) => self.call(cursor, state, call)?,
            Op::Assign {
                assignments,
                output,
            } => {
                let last = self.assign(cursor, assignments, None)?;
                let output = match (output, last) {
                    (Some(template), _) => Output::Value(self.eval(cursor, template)?),
                    (None, Some(name)) => Output::Variable(name),
                    (None, None) => Output::Value(Value::Null),
                };
                self.done(cursor, state, output)?;
            }
            Op::Compose(template) => {
                let value = self.eval(cursor, template)?;
                self.done(cursor, state, Output::Value(value))?;
            }
            Op::Branch(arms) => {
                let mut target = state.next;
                for (when, to) in arms {
                    if self.holds(cursor, when, false)? {
                        target = *to;
                        break;
                    }
                }
                self.go(cursor, target);
            }
            Op::Switch { on, cases } => {
                let value = self.eval(cursor, on)?;
                let case = cases
                    .iter()
                    .find(|(case, _)| self.case_equals(case, &value));
                let target = case.map_or(state.next, |(_, to)| *to);
                self.go(cursor, target);
            }
            Op::Enter(scope) => self.enter(cursor, *scope)?,
            Op::Visit => self.visit(cursor, state)?,
            Op::Repeat => self.repeat(cursor)?,
            Op::Break => self.break_out(cursor)?,
            Op::Leave => self.leave(cursor)?,
            Op::Join => self.join(cursor),
            Op::Sleep(sleep) => {
                let due_at = self.wake_at(cursor, sleep)?;
                let id = self.arm(cursor, due_at, TimerPurpose::Sleep);
                self.note(Happening::TimerSet {
                    node_name: state.name.clone(),
                    due_at,
                });
                self.emit(Change::Waits(cursor, Wait::Timer(id)));
            }
            Op::AwaitSignal(name) => {
                let kept = self.run.signals.iter().find(|(kept, _)| kept == name);
                match kept.map(|(_, payload)| payload.clone()) {
                    Some(payload) => {
                        self.emit(Change::SignalTaken(name.clone()));
                        self.waited(cursor, payload);
                    }
                    None => self.emit(Change::Waits(cursor, Wait::Signal(name.clone()))),
                }
            }
            Op::Raise { kind, message } => {
                let message = text(&self.eval(cursor, message)?);
                return Err(Fault::new(kind, message).transient());
            }
            Op::Respond(template) => {
                let value = self.eval(cursor, template)?;
                self.emit(Change::Responded(value.clone()));
                self.done(cursor, state, Output::Value(value))?;
            }
            Op::Terminate { status, error } => self.terminate(cursor, state, *status, error)?,
            Op::Succeed => {
                let output = self.outputs(cursor)?;
                self.finish(Status::Succeeded, output, None);
            }
        }
        Ok(())
    }

    // ── calls ───────────────────────────────────────────────────────────────────────────────

    fn call(&mut self, cursor: CursorId, state: &State, call: &Call) -> Faulty<()> {
        let inputs = self.eval(cursor, &call.inputs)?;
        let timeout_ms = match &call.attempt_timeout {
            None => None,
            Some(timeout) => Some(millis(self.eval_duration(cursor, timeout, "a timeout")?)),
        };
        let request = Request {
            executor: call.executor.clone(),
            action: state.name.clone(),
            inputs,
            key: self.view(cursor).key(&state.name),
            attempt: self.attempt(cursor),
            timeout_ms,
        };
        self.note(Happening::ActionStarted {
            node_name: state.name.clone(),
            attempt: request.attempt,
            key: request.key.clone(),
        });
        let id = EffectId(self.run.next_id);
        let pending = PendingEffect {
            cursor,
            action: state.action,
            request: request.clone(),
            requested_at: self.now,
        };
        self.emit(Change::EffectRequested(id, pending));
        self.emit(Change::Waits(cursor, Wait::Effect(id)));
        self.effect(Effect::Start { id, request });
        Ok(())
    }

    /// The attempt of the innermost try around a cursor.
    fn attempt(&self, cursor: CursorId) -> u32 {
        let frames = self
            .run
            .cursors
            .get(&cursor)
            .map(|cursor| cursor.frames.as_slice());
        let tries = frames
            .unwrap_or_default()
            .iter()
            .rev()
            .find_map(|frame| match &frame.kind {
                FrameKind::Try(state) => Some(state.attempt),
                _ => None,
            });
        tries.unwrap_or(1)
    }

    pub fn call_succeeded(&mut self, cursor: CursorId, result: &Value) {
        let Some(state) = self.state_of(cursor) else {
            return;
        };
        if let Op::Call(call) = &state.op
            && let Err(fault) = self.assign(cursor, &call.then, Some(("result", result)))
        {
            self.record_failure(cursor, state, &fault);
            return self.raise_here(cursor, fault);
        }
        self.go(cursor, state.next);
    }

    /// What a cursor waited for has come, and is what its step gives.
    pub fn waited(&mut self, cursor: CursorId, value: Value) {
        let Some(state) = self.state_of(cursor) else {
            return;
        };
        if let Err(fault) = self.done(cursor, state, Output::Value(value)) {
            self.record_failure(cursor, state, &fault);
            self.raise_here(cursor, fault);
        }
    }

    // ── variables ───────────────────────────────────────────────────────────────────────────

    /// Gives the last variable that changed.
    fn assign(
        &mut self,
        cursor: CursorId,
        assignments: &[Assignment],
        bound: Option<(&str, &Value)>,
    ) -> Faulty<Option<Name>> {
        let mut last = None;
        for one in assignments {
            let view = View {
                bound,
                ..self.view(cursor)
            };
            let value = computed(one.value.eval(&view))?;
            let name = self.variable_key(&one.variable);
            match one.op {
                AssignOp::Set => self.emit(Change::VariableSet(name.clone(), value)),
                AssignOp::Increment | AssignOp::Decrement => {
                    let current = self.variable(&name)?;
                    let sum = add(&current, &value, one.op == AssignOp::Decrement, &name)?;
                    self.emit(Change::VariableSet(name.clone(), sum));
                }
                AssignOp::AppendToArray => self.append_element(&name, value)?,
                AssignOp::AppendToString => self.append_text(&name, &value)?,
                AssignOp::MergeAll => self.merge_all(&value),
                AssignOp::ReplaceAll => self.replace_all(&value),
                AssignOp::RemoveAll => self.remove_all(&value),
            }
            last = Some(name);
        }
        Ok(last)
    }

    fn variable(&self, name: &Name) -> Faulty<Value> {
        self.run.variables.get(name).cloned().ok_or_else(|| {
            let message = format!("variable `{name}` has no value yet");
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    fn append_element(&mut self, name: &Name, value: Value) -> Faulty<()> {
        match self.run.variables.get(name) {
            Some(Value::Array(_)) => self.emit(Change::ElementAppended(name.clone(), value)),
            None | Some(Value::Null) => {
                self.emit(Change::VariableSet(name.clone(), Value::array(vec![value])));
            }
            Some(other) => return Err(not_a(name, "an array", other)),
        }
        Ok(())
    }

    fn append_text(&mut self, name: &Name, value: &Value) -> Faulty<()> {
        let more = text(value);
        match self.run.variables.get(name) {
            Some(Value::String(_)) => self.emit(Change::TextAppended(name.clone(), more)),
            None | Some(Value::Null) => {
                self.emit(Change::VariableSet(name.clone(), Value::text(more)));
            }
            Some(other) => return Err(not_a(name, "a string", other)),
        }
        Ok(())
    }

    // ── scopes ──────────────────────────────────────────────────────────────────────────────

    fn enter(&mut self, cursor: CursorId, id: ScopeId) -> Faulty<()> {
        let program = self.program;
        let Some(scope) = program.scope(id) else {
            return Err(Fault::new(
                "internal",
                format!("scope {id} is not in the program"),
            ));
        };
        let kind = match &scope.kind {
            ScopeKind::Root | ScopeKind::Branch | ScopeKind::Block => FrameKind::Plain,
            ScopeKind::Graph { .. } => FrameKind::Graph { steps: 0 },
            ScopeKind::Try { retry, .. } => FrameKind::Try(TryState {
                attempt: 1,
                max_attempts: self.max_attempts(cursor, retry.as_ref())?,
                last_fault: None,
                next_due_at: None,
            }),
            ScopeKind::Deadline { after } => {
                let after = self.eval_duration(cursor, after, "a timeout")?;
                let due_at = self.now.plus(after);
                FrameKind::Deadline {
                    timer: self.arm(cursor, due_at, TimerPurpose::Deadline(id)),
                }
            }
            ScopeKind::Loop(spec) => return self.enter_loop(cursor, id, scope, spec),
            ScopeKind::ForEach { .. } | ScopeKind::Parallel { .. } | ScopeKind::Dag { .. } => {
                return self.enter_fork(cursor, id, scope);
            }
        };
        self.push(cursor, id, kind);
        self.emit(Change::Moved(cursor, scope.body));
        Ok(())
    }

    pub fn push(&mut self, cursor: CursorId, scope: ScopeId, kind: FrameKind) {
        let frame = Frame {
            scope,
            kind,
            entered_at: self.now,
        };
        self.emit(Change::Entered(cursor, frame));
    }

    fn max_attempts(&mut self, cursor: CursorId, retry: Option<&Retry>) -> Faulty<u32> {
        let Some(retry) = retry else { return Ok(1) };
        let count = self.eval(cursor, &retry.count)?;
        let count = count.as_int().and_then(|count| u32::try_from(count).ok());
        count.map(|count| count.saturating_add(1)).ok_or_else(|| {
            let message = "the count of a retry must be a whole number of at least 0";
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    fn leave(&mut self, cursor: CursorId) -> Faulty<()> {
        let Some((_, frame)) = self.top(cursor) else {
            return Ok(());
        };
        let (scope, entered_at) = (frame.scope, frame.entered_at);
        let program = self.program;
        let Some(scope) = program.scope(scope) else {
            return Ok(());
        };
        if matches!(scope.kind, ScopeKind::Block)
            && let Some(action) = scope.action
        {
            let output = Output::Actions(scope.children.clone());
            let output = self.shaped(cursor, action, output)?;
            self.record(cursor, action, Status::Succeeded, output, None, entered_at);
        }
        self.go(cursor, scope.exit);
        Ok(())
    }

    fn visit(&mut self, cursor: CursorId, state: &State) -> Faulty<()> {
        let limit = self
            .program
            .ancestry(state.scope)
            .find_map(|(_, scope)| match scope.kind {
                ScopeKind::Graph { max_steps } => Some(max_steps),
                _ => None,
            });
        let steps = self.top(cursor).and_then(|(_, frame)| match frame.kind {
            FrameKind::Graph { steps } => Some(steps),
            _ => None,
        });
        if let (Some(limit), Some(steps)) = (limit, steps)
            && steps >= limit
        {
            let message = format!(
                "the graph took {limit} steps without reaching its end; it is in a cycle through `{}`",
                state.name
            );
            return Err(Fault::new(fault_kind::LIMIT, message));
        }
        self.emit(Change::Visited(cursor));
        self.emit(Change::Moved(cursor, state.next));
        Ok(())
    }

    // ── the movement rule ───────────────────────────────────────────────────────────────────

    /// Stands a cursor at `target`, popping frames until the target's scope is on top. A `break`
    /// out of a branch moves the cursor that forked it; the other branches are dropped.
    pub fn go(&mut self, cursor: CursorId, target: StateId) {
        let Some(scope) = self.program.state(target).map(|state| state.scope) else {
            return;
        };
        let mut owner = cursor;
        let depth = loop {
            let Some(here) = self.run.cursors.get(&owner) else {
                return;
            };
            if let Some(depth) = here.frames.iter().rposition(|frame| frame.scope == scope) {
                break depth;
            }
            match here.parent {
                Some(parent) => owner = parent,
                None => return,
            }
        };
        self.pop_to(owner, depth + 1);
        self.emit(Change::Moved(owner, target));
    }

    /// Pops a cursor's frames until `keep` are left: their timers are disarmed, their branches
    /// dropped, and what the cursor waited for is cut.
    pub fn pop_to(&mut self, cursor: CursorId, keep: usize) {
        self.cut_wait(cursor);
        let Some(here) = self.run.cursors.get(&cursor) else {
            return;
        };
        if here.frames.len() <= keep {
            return;
        }
        let mut timers = Vec::new();
        let mut branches = Vec::new();
        for frame in here.frames.iter().skip(keep) {
            match &frame.kind {
                FrameKind::Loop(state) => timers.extend(state.deadline_timer),
                FrameKind::Deadline { timer } => timers.push(*timer),
                FrameKind::Fork(fork) => branches.extend(fork.running_cursors()),
                FrameKind::Plain
                | FrameKind::Graph { .. }
                | FrameKind::Try(_)
                | FrameKind::Branch { .. } => {}
            }
        }
        timers.into_iter().for_each(|timer| self.disarm(timer));
        branches
            .into_iter()
            .for_each(|branch| self.drop_cursor(branch));
        self.emit(Change::Popped(
            cursor,
            u32::try_from(keep).unwrap_or(u32::MAX),
        ));
    }

    fn drop_cursor(&mut self, cursor: CursorId) {
        self.pop_to(cursor, 0);
        self.emit(Change::CursorDropped(cursor));
    }

    fn cut_wait(&mut self, cursor: CursorId) {
        match self
            .run
            .cursors
            .get(&cursor)
            .map(|cursor| cursor.wait.clone())
        {
            Some(Wait::Effect(id)) if self.run.effects.contains_key(&id) => {
                self.emit(Change::EffectDropped(id));
                self.effect(Effect::Abort { id });
            }
            Some(Wait::Timer(id)) => self.disarm(id),
            _ => {}
        }
    }

    pub fn arm(&mut self, cursor: CursorId, due_at: Timestamp, purpose: TimerPurpose) -> TimerId {
        let id = TimerId(self.run.next_id);
        self.emit(Change::TimerArmed(
            id,
            PendingTimer {
                cursor,
                due_at,
                purpose,
            },
        ));
        self.effect(Effect::Arm { id, due_at });
        id
    }

    fn disarm(&mut self, id: TimerId) {
        if self.run.timers.contains_key(&id) {
            self.emit(Change::TimerDropped(id));
            self.effect(Effect::Disarm { id });
        }
    }

    // ── records ─────────────────────────────────────────────────────────────────────────────

    /// An operation that takes no time is done.
    fn done(&mut self, cursor: CursorId, state: &State, output: Output) -> Faulty<()> {
        if let Some(action) = state.action {
            let output = self.shaped(cursor, action, output)?;
            self.record(cursor, action, Status::Succeeded, output, None, self.now);
        }
        self.go(cursor, state.next);
        Ok(())
    }

    pub fn record(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        output: Output,
        error: Option<Fault>,
        started_at: Timestamp,
    ) {
        let home = self.run.home(cursor);
        let at = self.now;
        self.emit(Change::Recorded {
            home,
            action,
            status,
            output,
            error,
            started_at,
            at,
        });
        if let Some(action) = self
            .program
            .action(action)
            .filter(|_| status != Status::Succeeded)
        {
            let node_name = action.name.clone();
            self.note(Happening::ActionEnded {
                node_name,
                status,
                error: None,
            });
        }
    }

    fn record_failure(&mut self, cursor: CursorId, state: &State, fault: &Fault) {
        // A scope that could not be entered failed as an action too; the machine's own states
        // (a branch, the end of a body) have no record.
        if let Some(action) = state.action {
            let output = Output::Value(fault.output.clone().unwrap_or_default());
            let error = Some(Fault {
                output: None,
                ..fault.clone()
            });
            self.record(
                cursor,
                action,
                super::fault::status_of(fault),
                output,
                error,
                self.now,
            );
        }
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    fn outputs(&mut self, cursor: CursorId) -> Faulty<Value> {
        match &self.program.outputs {
            Outputs::Template(template) => self.eval(cursor, template),
            Outputs::State => Ok(self.run.variables.clone()),
            Outputs::Actions => {
                if let Some(response) = &self.run.response {
                    return Ok(response.clone());
                }
                let children = self
                    .program
                    .scope(ScopeId(0))
                    .map(|root| root.children.as_slice());
                let home = self.run.home(cursor);
                let Some(records) = self.run.cursors.get(&home).map(|home| &home.records) else {
                    return Ok(Value::object(Object::new()));
                };
                let reading = Reading {
                    program: self.program,
                    variables: &self.run.variables,
                    records,
                };
                Ok(reading.actions(children.unwrap_or_default()))
            }
        }
    }

    fn terminate(
        &mut self,
        cursor: CursorId,
        state: &State,
        status: Status,
        error: &Option<Template>,
    ) -> Faulty<()> {
        let detail = match error {
            Some(error) => self.eval(cursor, error)?,
            None => Value::Null,
        };
        if let Some(action) = state.action {
            let output = Output::Value(detail.clone());
            self.record(cursor, action, Status::Succeeded, output, None, self.now);
        }
        if status == Status::Succeeded {
            let output = self.outputs(cursor).unwrap_or_default();
            self.finish(status, output, None);
            return Ok(());
        }
        let message = detail.get("message").map_or_else(
            || format!("`{}` ended the run as {}", state.name, status.as_str()),
            text,
        );
        let mut fault = Fault::new(fault_kind::TERMINATED, message);
        fault.code = detail.get("code").map(|code| Name::from(text(code)));
        let error = self.located(cursor, fault);
        self.finish(status, Value::Null, Some(error));
        Ok(())
    }

    // ── evaluation ──────────────────────────────────────────────────────────────────────────

    pub fn view(&self, cursor: CursorId) -> View<'_> {
        View::new(self.program, self.run, cursor, self.now)
    }

    pub fn eval(&self, cursor: CursorId, template: &Template) -> Faulty<Value> {
        computed(template.eval(&self.view(cursor)))
    }

    pub fn holds(
        &self,
        cursor: CursorId,
        condition: &crate::expression::Condition,
        forgiving: bool,
    ) -> Faulty<bool> {
        let view = View {
            forgiving,
            ..self.view(cursor)
        };
        condition
            .holds(&view)
            .map_err(|error| expression_fault(&error))
    }

    /// A duration: ISO 8601 text, a number of seconds, or `{count, unit}`.
    pub fn eval_duration(
        &self,
        cursor: CursorId,
        template: &Template,
        what: &str,
    ) -> Faulty<Duration> {
        let value = self.eval(cursor, template)?;
        duration(&value).ok_or_else(|| {
            let message = format!(
                "{what} must be an ISO 8601 duration, a number of seconds, or {{count, unit}}; it is {}",
                value.to_json()
            );
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    fn wake_at(&mut self, cursor: CursorId, sleep: &Sleep) -> Faulty<Timestamp> {
        match sleep {
            Sleep::For(duration) => Ok(self
                .now
                .plus(self.eval_duration(cursor, duration, "a wait")?)),
            Sleep::Until(instant) => {
                let value = self.eval(cursor, instant)?;
                let parsed = value.as_str().map(DateTime::parse_from_rfc3339);
                match parsed {
                    Some(Ok(instant)) => Ok(Timestamp(instant.timestamp_millis())),
                    Some(Err(_)) | None => Err(Fault::new(
                        fault_kind::EXPRESSION,
                        format!(
                            "`until` must be a timestamp such as 2026-01-31T08:00:00Z; it is {}",
                            value.to_json()
                        ),
                    )),
                }
            }
        }
    }

    /// A case written as a key is text; it equals the number or boolean it spells, in the formats
    /// where cases are keys.
    fn case_equals(&self, case: &Value, value: &Value) -> bool {
        if case == value {
            return true;
        }
        let Some(key) = case.as_str() else {
            return false;
        };
        match value {
            Value::Int(_) | Value::Float(_) | Value::Decimal(_) | Value::Bool(_)
                if self.program.dialect != Dialect::Azure =>
            {
                value.to_json() == key
            }
            _ => false,
        }
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    pub fn top(&self, cursor: CursorId) -> Option<(usize, &Frame)> {
        let frames = &self.run.cursors.get(&cursor)?.frames;
        frames.last().map(|frame| (frames.len() - 1, frame))
    }

    pub fn state_of(&self, cursor: CursorId) -> Option<&'a State> {
        let program = self.program;
        program.state(self.run.cursors.get(&cursor)?.at)
    }

    /// A fault with the place where it happened.
    pub fn located(&self, cursor: CursorId, fault: Fault) -> RunError {
        let state = self
            .run
            .cursors
            .get(&cursor)
            .and_then(|here| self.program.state(here.at));
        RunError {
            fault,
            action: state.map(|state| state.name.clone()),
            iteration: self.view(cursor).innermost_iteration(),
            place: state.map(|state| (state.span.file, state.span.line)),
        }
    }
}

/// A fault from an expression: never transient, for it would fail again.
pub(super) fn expression_fault(error: &EvalError) -> Fault {
    let message = if error.text.is_empty() {
        error.message.clone()
    } else {
        format!("{} in `{}`", error.message, error.text)
    };
    Fault::new(fault_kind::EXPRESSION, message)
}

/// What an evaluation gives to a run: never so deep that it could not be read back.
pub(super) fn computed(result: Result<Value, EvalError>) -> Faulty<Value> {
    let value = result.map_err(|error| expression_fault(&error))?;
    if value.nests_at_most(MAX_RESULT_DEPTH) {
        return Ok(value);
    }
    let message = format!("the value nests deeper than {MAX_RESULT_DEPTH} levels");
    Err(Fault::new(fault_kind::TOO_LARGE, message))
}

fn not_a(name: &Name, wanted: &str, value: &Value) -> Fault {
    let message = format!("variable `{name}` is not {wanted} but {}", value.kind());
    Fault::new(fault_kind::EXPRESSION, message)
}

fn add(current: &Value, by: &Value, negative: bool, name: &Name) -> Faulty<Value> {
    let fault = |message: String| Fault::new(fault_kind::EXPRESSION, message);
    match (current, by) {
        (Value::Int(a), Value::Int(b)) => {
            let sum = if negative {
                a.checked_sub(*b)
            } else {
                a.checked_add(*b)
            };
            sum.map(Value::Int)
                .ok_or_else(|| fault(format!("variable `{name}` would leave the 64-bit range")))
        }
        _ => match (number(current), number(by)) {
            (Some(a), Some(b)) => Ok(Value::Float(if negative { a - b } else { a + b })),
            (None, _) => Err(not_a(name, "a number", current)),
            (_, None) => Err(fault(format!(
                "`{name}` changes by a number, not by {}",
                by.to_json()
            ))),
        },
    }
}

#[allow(clippy::cast_precision_loss)]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        Value::Decimal(decimal) => f64::try_from(*decimal).ok(),
        _ => None,
    }
}

/// A value as plain text: strings as they are, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_json(), str::to_owned)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// ISO 8601 text, a number of seconds, or `{count, unit}` (also inside `interval`).
fn duration(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => parse_duration(text).ok(),
        Value::Object(map) => {
            if let Some(interval) = map.get("interval") {
                return duration(interval);
            }
            let count = number(map.get("count")?)?;
            let unit = map.get("unit")?.as_str()?.to_ascii_lowercase();
            let seconds = match unit.trim_end_matches('s') {
                "millisecond" => 0.001,
                "second" => 1.0,
                "minute" => 60.0,
                "hour" => 3_600.0,
                "day" => 86_400.0,
                "week" => 604_800.0,
                _ => return None,
            };
            Duration::try_from_secs_f64(count * seconds).ok()
        }
        other => Duration::try_from_secs_f64(number(other)?).ok(),
    }
}
