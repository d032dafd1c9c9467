//! What each operation does.

use super::advance::Stepper;
use super::change::Change;
use super::env::View;
use super::evaluate::{Faulty, computed, millis, text};
use super::event::{Effect, Happening};
use super::fault::Raised;
use super::record::{Output, Reading};
use super::state::{
    Cursor, CursorId, EffectId, Frame, FrameKind, PendingEffect, RunError, TimerPurpose, TryState,
    Wait,
};
use crate::expression::{Template, Value};
use crate::model::{Fault, Name, Place, Request, Status, fault_kind};
use crate::program::{ActionId, Call, Op, Outputs, Retry, Scope, ScopeId, ScopeKind, State};
use std::collections::BTreeMap;

impl<'a> Stepper<'a> {
    /// Does the operation at which a ready cursor stands, or raises the fault it still holds.
    pub fn step(&mut self, cursor: CursorId) {
        let Some(here) = self.run.cursors.get(&cursor) else {
            return;
        };
        if let Wait::Faulted { error, here } = &here.wait {
            let raised = if *here { Raised::Here } else { Raised::Through };
            let error = RunError::clone(error);
            return self.raise(cursor, error, raised);
        }
        let (at, program) = (here.at, self.program);
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
                let output = match output {
                    Some(template) => Output::Value(self.eval(cursor, template)?),
                    None => last.unwrap_or(Output::Value(Value::Null)),
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
                let value = self.eval(cursor, on)?.revealed();
                let case = cases
                    .iter()
                    .find(|(case, _)| self.case_equals(case, &value));
                let target = case.map_or(state.next, |(_, to)| *to);
                self.emit(Change::Moved(cursor, target));
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
                    node_name: self
                        .told(state.action)
                        .unwrap_or_else(|| state.name.clone()),
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
                let value = self.hidden(state, value);
                self.emit(Change::Responded(value.clone()));
                self.done(cursor, state, Output::Value(value))?;
            }
            Op::Terminate { status, error } => self.terminate(cursor, state, *status, error)?,
            Op::Succeed => {
                self.succeed(cursor, false);
            }
        }
        Ok(())
    }

    // ── calls ───────────────────────────────────────────────────────────────────────────────

    fn call(&mut self, cursor: CursorId, state: &State, call: &Call) -> Faulty<()> {
        let mut inputs = self.call_inputs(cursor, call)?;
        if self.secured(state.action).inputs {
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
            attempt: self.attempt(cursor),
            timeout_ms,
        };
        self.note(Happening::ActionStarted {
            node_name: self
                .told(state.action)
                .unwrap_or_else(|| state.name.clone()),
            attempt: request.attempt,
            key: request.key.clone(),
        });
        let id = EffectId(self.run.next_id);
        let asked = request.with_state(self.run.variables_of(cursor));
        let pending = PendingEffect {
            cursor,
            action: state.action,
            request,
            requested_at: self.now,
        };
        self.emit(Change::EffectRequested(id, pending));
        self.emit(Change::Waits(cursor, Wait::Effect(id)));
        self.effect(Effect::Start { id, request: asked });
        Ok(())
    }

    /// The attempt of the innermost retry around a cursor.
    fn attempt(&self, cursor: CursorId) -> u32 {
        let here = self.run.cursors.get(&cursor);
        let frames = here.map(|here| here.frames.as_slice()).unwrap_or_default();
        let retries = frames.iter().rev().find_map(|frame| match &frame.kind {
            FrameKind::Try(state) if state.max_attempts > 1 => Some(state.attempt),
            _ => None,
        });
        retries.unwrap_or(1)
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
        self.emit(Change::Moved(cursor, state.next));
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

    // ── scopes ──────────────────────────────────────────────────────────────────────────────

    fn enter(&mut self, cursor: CursorId, id: ScopeId) -> Faulty<()> {
        let program = self.program;
        let Some(scope) = program.scope(id) else {
            return Err(Fault::new(
                "internal",
                format!("scope {id} is not in the program"),
            ));
        };
        self.forget(cursor, scope);
        let kind = match &scope.kind {
            ScopeKind::Root | ScopeKind::Branch | ScopeKind::Block => FrameKind::Plain,
            ScopeKind::Graph { .. } => FrameKind::Graph {
                steps: 0,
                visit: 0,
                visits: BTreeMap::new(),
            },
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
                    after_ms: millis(after),
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
        let count = count
            .revealed()
            .as_int()
            .and_then(|count| u32::try_from(count).ok());
        count.map(|count| count.saturating_add(1)).ok_or_else(|| {
            let message = "the count of a retry must be a whole number of at least 0";
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    /// Records of an earlier visit to this place are of no interest to this one.
    fn forget(&mut self, cursor: CursorId, scope: &Scope) {
        let inner = ActionId(scope.inner.start)..ActionId(scope.inner.end);
        if inner.is_empty() {
            return;
        }
        let home = self.run.home(cursor);
        let records = self.run.cursors.get(&home).map(|home| &home.records);
        if records.is_some_and(|records| records.range(inner.clone()).next().is_some()) {
            let inner = (inner.start.0, inner.end.0);
            self.emit(Change::Forgotten(home, inner));
        }
    }

    fn leave(&mut self, cursor: CursorId) -> Faulty<()> {
        let Some((depth, frame)) = self.top(cursor) else {
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
        self.pop(cursor, depth);
        self.emit(Change::Moved(cursor, scope.exit));
        Ok(())
    }

    fn visit(&mut self, cursor: CursorId, state: &State) -> Faulty<()> {
        let Some((_, frame)) = self.top(cursor) else {
            return Ok(());
        };
        let scope = self.program.scope(frame.scope).map(|scope| &scope.kind);
        if let (FrameKind::Graph { steps, .. }, Some(ScopeKind::Graph { max_steps })) =
            (&frame.kind, scope)
            && steps >= max_steps
        {
            let message = format!(
                "the graph took {max_steps} steps without reaching its end; it is in a cycle through `{}`",
                state.name
            );
            return Err(Fault::new(fault_kind::LIMIT, message));
        }
        let here = self
            .run
            .cursors
            .get(&cursor)
            .map_or(state.next, |here| here.at);
        self.emit(Change::Visited(cursor, here));
        self.emit(Change::Moved(cursor, state.next));
        Ok(())
    }

    /// A failed operation's record. The machine's own states (a branch, the end of a body) have
    /// none; neither has a scope that was entered, which keeps its own books from then on.
    fn record_failure(&mut self, cursor: CursorId, state: &State, fault: &Fault) {
        let Some(action) = state.action else { return };
        if let Op::Enter(scope) = state.op
            && self
                .top(cursor)
                .is_some_and(|(_, frame)| frame.scope == scope)
        {
            return;
        }
        let output = Output::Value(fault.output.clone().unwrap_or_default());
        let status = super::fault::status_of(fault);
        let error = Some(fault.without_output());
        self.record(cursor, action, status, output, error, self.now);
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    /// The run has done what it should; it ends well if what it gives can be computed. No action
    /// did that, so nothing in the workflow retries or catches it.
    fn succeed(&mut self, cursor: CursorId, forgiving: bool) {
        match self.outputs(cursor, forgiving) {
            Ok(output) => self.finish(Status::Succeeded, output, None),
            Err(fault) => {
                let place = self.failing_output(cursor, forgiving);
                self.finish_with("output", place, fault);
            }
        }
    }

    /// The first output that cannot be computed.
    fn failing_output(&self, cursor: CursorId, forgiving: bool) -> Option<&'a Place> {
        let program = self.program;
        let Outputs::Template(template) = &program.outputs else {
            return None;
        };
        let view = self.outputs_view(cursor, forgiving);
        program.places.outputs.iter().find(|place| {
            let value = match &*place.name {
                "" => Some(template),
                name => template.part_of(name),
            };
            value.is_some_and(|value| computed(view.value(value)).is_err())
        })
    }

    fn outputs_view(&self, cursor: CursorId, forgiving: bool) -> View<'_> {
        let mut cursors = self.run.cursors.iter();
        let root = cursors.find(|(_, one)| one.parent.is_none());
        let at = match root {
            Some((root, _)) if !forgiving => *root,
            _ => cursor,
        };
        View {
            forgiving,
            ..self.view(at)
        }
    }

    /// What the run gives. `forgiving`: it ends before its time, so that what has not run reads
    /// as null.
    fn outputs(&self, cursor: CursorId, forgiving: bool) -> Faulty<Value> {
        let root = self
            .run
            .cursors
            .iter()
            .find(|(_, one)| one.parent.is_none());
        let Some((_, Cursor { records, .. })) = root else {
            return Ok(Value::Null);
        };
        match &self.program.outputs {
            Outputs::Template(template) => {
                computed(self.outputs_view(cursor, forgiving).value(template))
            }
            Outputs::State => Ok(self.run.variables.clone()),
            Outputs::Actions => {
                if let Some(response) = &self.run.response {
                    return Ok(response.clone());
                }
                let scope = self.program.scope(ScopeId(0));
                let children = scope.map(|root| root.children.as_slice());
                let reading = Reading {
                    program: self.program,
                    variables: &self.run.variables,
                    records,
                    row: false,
                };
                reading.whole(children.unwrap_or_default())
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
            self.succeed(cursor, true);
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
}
