//! What each operation does.

use super::advance::Stepper;
use super::bug::{MachineResult, StepError, StepResult, split_fault};
use super::change::Change;
use super::env::View;
use super::evaluate::{EvalResult, check_computed_result, millis, text};
use super::event::{Effect, HistoryKind};
use super::fault::failure_of;
use super::record::Output;
use super::retry::RaisedAt;
use super::state::{
    AskedQuestion, CursorId, DeadlineState, EffectId, Frame, FrameKind, GraphState, PendingEffect,
    RunError, TimerPurpose, TryState, Wait,
};
use crate::program::{ActionId, Call, Op, Outputs, RetryPolicy, Scope, ScopeId, ScopeKind, State};
use windlass_expression::{Template, Value};
use windlass_model::model::{
    AwaitedSignal, FAILURE, Fault, Name, NamedSpan, OWN_KEYS, Request, Status, fault_kind,
};
use windlass_value::time::Timestamp;

/// The most bytes that the result of a run may have, far below what can be read back from a store.
const MAX_RESULT: usize = 256 << 20;

impl<'a> Stepper<'a> {
    /// Does the operation at which a ready cursor is, or raises the fault it still holds.
    pub fn step(&mut self, cursor: CursorId) -> MachineResult {
        if let Wait::Faulted { error, here } = &self.run.cursor(cursor)?.wait {
            let raised = if *here {
                RaisedAt::Here
            } else {
                RaisedAt::Through
            };
            let error = RunError::clone(error);
            return self.raise(cursor, error, raised);
        }
        let state = self.state_of(cursor)?;
        if let Some(action) = state.action {
            self.emit(Change::ActionBegan { cursor, action })?;
        }
        let done = self.operate(cursor, state);
        self.record_and_raise(cursor, state, done)
    }

    /// Records and raises the fault that stopped a state's operation, if one did.
    fn record_and_raise(
        &mut self,
        cursor: CursorId,
        state: &State,
        done: StepResult,
    ) -> MachineResult {
        if let Err(StepError::Fault(fault)) = &done {
            self.record_failure(cursor, state, fault)?;
        }
        self.raise_on_fault(cursor, done)
    }

    fn operate(&mut self, cursor: CursorId, state: &State) -> StepResult {
        match &state.op {
            Op::Call(call, secrets) => self.call(cursor, state, call, secrets)?,
            Op::Assign {
                assignments,
                output,
            } => {
                let last = self.assign(cursor, assignments, None)?;
                let output = match output {
                    Some(template) => Output::Value(self.eval(cursor, template)?),
                    None => last.unwrap_or(Output::Value(Value::Null)),
                };
                self.complete_step(cursor, state, output)?;
            }
            Op::Compose(template) => {
                let value = self.eval(cursor, template)?;
                self.complete_step(cursor, state, Output::Value(value))?;
            }
            Op::Branch(arms) => {
                let mut target = state.next;
                for (when, to) in arms {
                    if self.holds(cursor, when, false)? {
                        target = *to;
                        break;
                    }
                }
                self.jump_to(cursor, target)?;
            }
            Op::FollowUp { when, to } => {
                let target = match self.holds(cursor, when, false)? {
                    true => *to,
                    false => state.next,
                };
                self.jump_to(cursor, target)?;
            }
            Op::Switch { on, cases } => {
                let value = self.eval(cursor, on)?.revealed();
                let case = cases
                    .iter()
                    .find(|(case, _)| self.case_equals(case, &value));
                let target = case.map_or(state.next, |(_, to)| *to);
                self.emit(Change::Moved(cursor, target))?;
            }
            Op::Enter(scope) => self.enter(cursor, *scope)?,
            Op::Visit => self.visit(cursor, state)?,
            Op::Repeat => self.repeat(cursor)?,
            Op::Break => self.break_out(cursor)?,
            Op::Leave => self.leave(cursor)?,
            Op::Join => self.join(cursor)?,
            Op::Sleep(sleep) => {
                let due_at = self.wake_at(cursor, sleep)?;
                let id = self.arm(cursor, due_at, TimerPurpose::SleepSince(self.now))?;
                self.report(HistoryKind::TimerSet {
                    node_name: self.display_name(state.action, &state.name),
                    due_at,
                });
                self.emit(Change::Waits(cursor, Wait::Timer(id)))?;
            }
            Op::AwaitSignal(awaited) => self.await_signal(cursor, awaited)?,
            Op::Expect(action, expect) => {
                self.expect(cursor, *action, expect)?;
                self.emit(Change::Moved(cursor, state.next))?;
            }
            Op::Raise { kind, message } => {
                let message = text(&self.eval(cursor, message)?);
                return Err(Fault::new(kind, message).transient().into());
            }
            Op::Respond(template) => {
                let value = self.eval(cursor, template)?;
                let value = self.seal_if_secure(state, value);
                // The caller has the first one.
                if self.run.response.is_none() {
                    self.emit(Change::Responded(value.clone()))?;
                }
                self.complete_step(cursor, state, Output::Value(value))?;
            }
            Op::Terminate { status, error } => self.terminate(cursor, state, *status, error)?,
            Op::Succeed => self.conclude(cursor)?,
        }
        Ok(())
    }

    // ── calls ───────────────────────────────────────────────────────────────────────────────

    fn call(
        &mut self,
        cursor: CursorId,
        state: &State,
        call: &Call,
        secrets: &[Name],
    ) -> StepResult {
        let mut inputs = self.call_inputs(cursor, &call.inputs, secrets)?;
        if self.secured_parts(state.action).inputs {
            inputs = inputs.secure();
        }
        let timeout_ms = match &call.attempt_timeout {
            None => None,
            Some(timeout) => Some(millis(self.eval_duration(cursor, timeout, "a timeout")?)),
        };
        let request = Request {
            executor: call.executor.clone(),
            action: state.name.clone(),
            inputs,
            key: self.view(cursor).key(&state.name),
            attempt: self.view(cursor).current_attempt(),
            timeout_ms,
        };
        let (path, iteration) = self.view(cursor).innermost_iteration().unzip();
        self.report(HistoryKind::ActionStarted {
            node_name: self.display_name(state.action, &state.name),
            attempt: request.attempt,
            key: request.key.clone(),
            path,
            iteration,
        });
        let id = EffectId(self.run.next_id);
        let asked = request.with_state(self.run.variables_of(cursor));
        let pending = PendingEffect {
            cursor,
            action: state.action,
            request,
            requested_at: self.now,
        };
        self.emit(Change::EffectRequested(id, pending))?;
        self.emit(Change::Waits(cursor, Wait::Effect(id)))?;
        self.effect(Effect::Start { id, request: asked });
        Ok(())
    }

    pub fn assign_call_result(&mut self, cursor: CursorId, result: &Value) -> MachineResult {
        let state = self.state_of(cursor)?;
        let done = self.assign_result(cursor, state, result);
        self.record_and_raise(cursor, state, done)
    }

    fn assign_result(&mut self, cursor: CursorId, state: &State, result: &Value) -> StepResult {
        if let Op::Call(call, _) = &state.op {
            self.assign(cursor, &call.then, Some(("result", result)))?;
        }
        Ok(self.emit(Change::Moved(cursor, state.next))?)
    }

    /// Takes a stored signal, or waits for one.
    fn await_signal(&mut self, cursor: CursorId, awaited: &AwaitedSignal) -> StepResult {
        let name = &awaited.name;
        let stored = self.run.signals.iter().find(|(stored, _)| stored == name);
        if let Some((_, payload)) = stored {
            let payload = payload.clone();
            self.emit(Change::SignalTaken(name.clone()))?;
            return Ok(self.complete_wait(cursor, payload, self.now)?);
        }
        let wait = match &awaited.question {
            None => Wait::Signal(name.clone()),
            Some(question) => {
                let title = question.title.as_ref();
                let title = title.map(|title| self.eval(cursor, title)).transpose()?;
                Wait::Question(Box::new(AskedQuestion {
                    signal: name.clone(),
                    title: title.as_ref().map(text),
                    since: self.now,
                }))
            }
        };
        Ok(self.emit(Change::Waits(cursor, wait))?)
    }

    /// What a cursor waited for has come, and is what its step gives.
    pub fn complete_wait(
        &mut self,
        cursor: CursorId,
        value: Value,
        since: Timestamp,
    ) -> MachineResult {
        let state = self.state_of(cursor)?;
        let done = self.complete_step_since(cursor, state, Output::Value(value), since);
        self.record_and_raise(cursor, state, done)
    }

    // ── scopes ──────────────────────────────────────────────────────────────────────────────

    fn enter(&mut self, cursor: CursorId, id: ScopeId) -> StepResult {
        let scope = self.scope(id)?;
        self.forget(cursor, scope)?;
        let kind = match &scope.kind {
            ScopeKind::Root | ScopeKind::Branch | ScopeKind::Block | ScopeKind::FollowUp => {
                FrameKind::Plain
            }
            ScopeKind::Graph { .. } => FrameKind::Graph(GraphState::default()),
            ScopeKind::Try { retry, .. } => FrameKind::Try(TryState {
                attempt: 1,
                max_attempts: self.max_attempts(cursor, retry.as_ref())?,
                last_fault: None,
                next_due_at: None,
            }),
            ScopeKind::Deadline { after } => {
                let after = self.eval_duration(cursor, after, "a timeout")?;
                let due_at = self.now.plus(after);
                FrameKind::Deadline(DeadlineState {
                    timer: self.arm(cursor, due_at, TimerPurpose::Deadline(id))?,
                    after_ms: millis(after),
                })
            }
            ScopeKind::Loop(label, spec) => {
                return self.enter_loop(cursor, id, scope, (label, spec));
            }
            ScopeKind::ForEach { .. } | ScopeKind::Parallel { .. } | ScopeKind::Dag { .. } => {
                return self.enter_fork(cursor, id, scope);
            }
        };
        self.push(cursor, id, kind)?;
        Ok(self.emit(Change::Moved(cursor, scope.body))?)
    }

    pub fn push(&mut self, cursor: CursorId, scope: ScopeId, kind: FrameKind) -> MachineResult {
        let frame = Frame {
            scope,
            kind,
            entered_at: self.now,
        };
        self.emit(Change::Entered(cursor, frame))
    }

    fn max_attempts(&mut self, cursor: CursorId, retry: Option<&RetryPolicy>) -> EvalResult<u32> {
        let Some(retry) = retry else { return Ok(1) };
        let count = self.eval(cursor, &retry.count)?;
        let count = count.revealed().as_whole();
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.map(|count| count.saturating_add(1)).ok_or_else(|| {
            let message = "the count of a retry must be a whole number of at least 0";
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    /// Records of an earlier visit to this place are of no interest to this one.
    fn forget(&mut self, cursor: CursorId, scope: &Scope) -> MachineResult {
        let inner = ActionId(scope.inner.start)..ActionId(scope.inner.end);
        let records = self.run.records_of(cursor)?;
        if inner.is_empty() || records.range(inner).next().is_none() {
            return Ok(());
        }
        let owner = self.run.record_owner(cursor);
        self.emit(Change::Forgotten(
            owner,
            (scope.inner.start, scope.inner.end),
        ))
    }

    fn leave(&mut self, cursor: CursorId) -> StepResult {
        let (depth, frame) = self.top_frame(cursor)?;
        let (scope, entered_at) = (self.scope(frame.scope)?, frame.entered_at);
        if let (ScopeKind::Block, Some(action)) = (&scope.kind, scope.action) {
            let output = Output::Actions(scope.children.clone());
            let output = self.map_step_output(cursor, action, output)?;
            self.record(cursor, action, Status::Succeeded, output, None, entered_at)?;
        }
        self.pop(cursor, depth)?;
        Ok(self.emit(Change::Moved(cursor, scope.exit))?)
    }

    fn visit(&mut self, cursor: CursorId, state: &State) -> StepResult {
        let (_, frame) = self.top_frame(cursor)?;
        let scope = self.scope(frame.scope)?;
        if let (FrameKind::Graph(graph), ScopeKind::Graph { max_steps }) =
            (&frame.kind, &scope.kind)
            && graph.steps >= *max_steps
        {
            let message = format!(
                "the graph took {max_steps} steps without reaching its end; it is in a cycle through `{}`",
                state.name
            );
            return Err(Fault::new(fault_kind::LIMIT, message).into());
        }
        let at = self.run.cursor(cursor)?.at;
        self.emit(Change::Visited(cursor, at))?;
        Ok(self.emit(Change::Moved(cursor, state.next))?)
    }

    /// A failed operation's record. The machine's own states (a branch, the end of a body) have
    /// none; neither has a scope that was entered, which keeps its own books from then on.
    fn record_failure(&mut self, cursor: CursorId, state: &State, fault: &Fault) -> MachineResult {
        let Some(action) = state.action else {
            return Ok(());
        };
        if let Op::Enter(scope) = state.op
            && self.top_frame(cursor)?.1.scope == scope
        {
            return Ok(());
        }
        let output = Output::Value(fault.output.clone().unwrap_or_default());
        let status = fault.status();
        let error = Some(fault.without_output());
        self.record(cursor, action, status, output, error, self.now)
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    /// The end of the root. Where something was done at the end, a variable contains how the body ended.
    fn conclude(&mut self, cursor: CursorId) -> MachineResult {
        if self.program.ending.is_none() {
            return self.succeed(cursor, false);
        }
        let failure = self
            .run
            .variables
            .get(FAILURE)
            .map(|value| value.clone().revealed());
        match failure.and_then(|failure| failure_of(&failure)) {
            Some((Status::Cancelled, error)) if &*error.fault.kind == fault_kind::CANCELLED => {
                self.finish(Status::Cancelled, Value::Null, None)
            }
            Some((status, error)) => self.finish(status, Value::Null, Some(error)),
            None => self.succeed(cursor, true),
        }
    }

    /// The run has done what it should; it ends well if what it gives can be computed. No action
    /// did that, so nothing in the workflow retries or catches it.
    fn succeed(&mut self, cursor: CursorId, missing_as_null: bool) -> MachineResult {
        let outputs = self.outputs(cursor, missing_as_null);
        match split_fault(outputs.and_then(|output| Ok(check_result_size(output)?)))? {
            Ok(output) => self.finish(Status::Succeeded, output, None),
            Err(fault) => {
                let place = self.failing_output(cursor, missing_as_null)?;
                self.finish_with_fault("output", place, fault)
            }
        }
    }

    /// The first output that cannot be computed.
    fn failing_output(
        &self,
        cursor: CursorId,
        missing_as_null: bool,
    ) -> MachineResult<Option<&'a NamedSpan>> {
        let program = self.program;
        let Outputs::Template(template) = &program.outputs else {
            return Ok(None);
        };
        let view = self.outputs_view(cursor, missing_as_null)?;
        Ok(program.places.outputs.iter().find(|place| {
            let value = match &*place.name {
                "" => Some(template),
                name => template.part_of(name),
            };
            value
                .is_some_and(|value| check_computed_result(view.value(value), self.budget).is_err())
        }))
    }

    fn outputs_view(&self, cursor: CursorId, missing_as_null: bool) -> MachineResult<View<'_>> {
        let at = match missing_as_null {
            true => cursor,
            false => self.run.root()?.0,
        };
        Ok(View {
            missing_as_null,
            ..self.view(at)
        })
    }

    /// What the run gives. `missing_as_null`: it ends before its time, so that what has not run reads
    /// as null.
    fn outputs(&self, cursor: CursorId, missing_as_null: bool) -> StepResult<Value> {
        if let Some(response) = &self.run.response {
            return Ok(response.clone());
        }
        match &self.program.outputs {
            Outputs::Template(template) => {
                let view = self.outputs_view(cursor, missing_as_null)?;
                Ok(check_computed_result(view.value(template), self.budget)?)
            }
            Outputs::State => Ok(without_own_keys(&self.run.variables)),
            Outputs::Actions => {
                let (_, root) = self.run.root()?;
                let children = &self.scope(ScopeId(0))?.children;
                Ok(self.reading(&root.records).whole(children)?)
            }
        }
    }

    fn terminate(
        &mut self,
        cursor: CursorId,
        state: &State,
        status: Status,
        error: &Option<Template>,
    ) -> StepResult {
        let detail = match error {
            Some(error) => self.eval(cursor, error)?,
            None => Value::Null,
        };
        if let Some(action) = state.action {
            let output = Output::Value(detail.clone());
            self.record(cursor, action, Status::Succeeded, output, None, self.now)?;
        }
        if status == Status::Succeeded {
            if !self.end_body(cursor, status, None)? {
                self.succeed(cursor, true)?;
            }
            return Ok(());
        }
        let message = detail.get("message").map_or_else(
            || format!("`{}` ended the run as {}", state.name, status.as_str()),
            text,
        );
        let mut fault = Fault::new(fault_kind::TERMINATED, message);
        fault.code = detail.get("code").map(|code| Name::from(text(code)));
        let error = self.locate_fault(cursor, fault)?;
        if self.end_body(cursor, status, Some(&error))? {
            return Ok(());
        }
        Ok(self.finish(status, Value::Null, Some(error))?)
    }
}

/// A state without the keys that are Windlass's own.
fn without_own_keys(state: &Value) -> Value {
    let own = |name: &str| name.starts_with(OWN_KEYS);
    match state {
        Value::Object(members) if members.keys().any(|name| own(name)) => {
            let members = members.iter().filter(|(name, _)| !own(name));
            Value::object(
                members
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// A run's result, unless it is so large that it could hardly be read again.
fn check_result_size(result: Value) -> Result<Value, Fault> {
    if result.fits_in_bytes(MAX_RESULT) {
        return Ok(result);
    }
    let message = format!(
        "the result of the run is larger than {} MiB: choose with `outputs` what it returns",
        MAX_RESULT >> 20
    );
    Err(Fault::new(fault_kind::TOO_LARGE, message))
}
