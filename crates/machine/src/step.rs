//! Executes the operations of cursors.

use super::bug::{MachineResult, StepResult, split_fault};
use super::evaluate::text;
use super::record::Output;
use super::retry::FaultOrigin;
use super::state::{CursorId, EffectId, RunError, TimerPurpose, Wait};
use super::transition::{Next, StepHandler};
use crate::program::{Op, State};
use windlass_expression::Value;
use windlass_model::model::{Fault, fault_kind};
use windlass_value::time::Timestamp;

/// Returns a fault if a response has a status that is not an HTTP status.
fn check_status(response: &Value) -> Result<(), Fault> {
    let status = response.get("statusCode").unwrap_or(&Value::Null);
    let is_valid = |status: i64| (100..=599).contains(&status);
    if status.is_null() || status.as_whole().is_some_and(is_valid) {
        return Ok(());
    }
    let message = "`statusCode` of a response must be a whole number from 100 to 599";
    Err(Fault::new(fault_kind::INPUT, message))
}

impl StepHandler<'_, '_> {
    /// Executes the operation of a ready cursor. If a fault was deferred at the cursor, raises this fault instead.
    pub fn step(&mut self, cursor: CursorId) -> MachineResult<Next> {
        let read = self.read();
        if let Wait::Faulted { error, here } = &read.run.cursor(cursor)?.wait {
            let origin = if *here {
                FaultOrigin::Operation
            } else {
                FaultOrigin::Scope
            };
            return Ok(Next::Raise(
                cursor,
                Box::new(RunError::clone(error)),
                origin,
            ));
        }
        let state = read.state_of(cursor)?;
        if let Some(action) = state.action {
            self.begin_action(cursor, action)?;
        }
        let done = self.operate(cursor, state);
        self.raise_on_fault(cursor, state, done)
    }

    fn operate(&mut self, cursor: CursorId, state: &State) -> StepResult<Next> {
        let now = self.read().now;
        match &state.op {
            Op::Enter(scope) => self.scopes().enter(cursor, *scope),
            Op::Leave => self.scopes().leave(cursor),
            Op::Visit => self.scopes().visit(cursor, state),
            Op::Repeat => self.loops().repeat(cursor),
            Op::Break => self.break_out(cursor),
            Op::Join => Ok(self.forks().join(cursor)?),
            Op::Call(call, secrets) => self.calls().call(cursor, state, call, secrets),
            Op::Expect(action, expect) => {
                self.calls().expect(cursor, *action, expect)?;
                Ok(self.movement().move_to(cursor, state.next)?)
            }
            Op::Sleep(sleep) => self.waits().sleep(cursor, state, sleep),
            Op::AwaitSignal(awaited) => self.waits().await_signal(cursor, state, awaited),
            Op::Assign {
                assignments,
                output,
            } => {
                let last = self.variables().assign(cursor, assignments, None)?;
                let output = match output {
                    Some(template) => Output::Value(self.read().eval(cursor, template)?),
                    None => last.unwrap_or(Output::Value(Value::Null)),
                };
                self.movement().complete_step(cursor, state, output, now)
            }
            Op::Compose(template) => {
                let output = Output::Value(self.read().eval(cursor, template)?);
                self.movement().complete_step(cursor, state, output, now)
            }
            Op::Branch(arms) => {
                let mut target = state.next;
                for (when, to) in arms {
                    if self.read().holds(cursor, when, false)? {
                        target = *to;
                        break;
                    }
                }
                Ok(self.movement().jump_to(cursor, target)?)
            }
            Op::FollowUp { when, to } => {
                let target = match self.read().holds(cursor, when, false)? {
                    true => *to,
                    false => state.next,
                };
                Ok(self.movement().jump_to(cursor, target)?)
            }
            Op::Switch { on, cases } => {
                let value = self.read().eval(cursor, on)?.revealed();
                let are_text = self.read().program.rules.cases_are_text;
                let mut cases = cases.iter();
                let case = cases.find(|(case, _)| case_equals(case, &value, are_text));
                let target = case.map_or(state.next, |(_, to)| *to);
                Ok(self.movement().move_to(cursor, target)?)
            }
            Op::Raise { kind, message } => {
                let message = text(&self.read().eval(cursor, message)?);
                Err(Fault::new(kind, message).transient().into())
            }
            Op::Respond(template) => {
                let read = self.read();
                let value = read.eval(cursor, template)?;
                check_status(&value)?;
                let value = read.seal_if_secure(state, value);
                // Only the first response counts: it is the one that the caller receives.
                if read.run.response.is_none() {
                    self.ends().respond(value.clone())?;
                }
                let output = Output::Value(value);
                self.movement().complete_step(cursor, state, output, now)
            }
            Op::Terminate { status, error } => self.ends().terminate(cursor, state, *status, error),
            Op::Succeed => Ok(self.ends().conclude(cursor)?),
        }
    }

    fn break_out(&mut self, cursor: CursorId) -> StepResult<Next> {
        let (depth, _) = self.read().top_frame(cursor)?;
        match self.read().loop_at(cursor, depth)? {
            Some(this) => self.loops().break_out(this),
            None => Ok(self.forks().break_out(cursor)?),
        }
    }

    /// Completes a call with the result of its executor.
    pub fn complete_call(
        &mut self,
        id: EffectId,
        result: Result<Value, Fault>,
    ) -> MachineResult<Next> {
        let Some((cursor, result)) = self.calls().complete(id, result)? else {
            return Ok(Next::Nothing);
        };
        let state = self.read().state_of(cursor)?;
        match result {
            Ok(result) => {
                let done = self.calls().assign_result(cursor, state, &result);
                self.raise_on_fault(cursor, state, done)
            }
            Err(fault) => self.raise_here(cursor, fault),
        }
    }

    /// Completes the wait of a cursor. The wait began at `since`, and the value is the output of the waiting step.
    pub fn complete_wait(
        &mut self,
        cursor: CursorId,
        value: Value,
        since: Timestamp,
    ) -> MachineResult<Next> {
        let state = self.read().state_of(cursor)?;
        let mut movement = self.movement();
        let done = movement.complete_step(cursor, state, Output::Value(value), since);
        self.raise_on_fault(cursor, state, done)
    }

    /// Continues at the wait for which a timer was armed.
    pub fn complete_timer(
        &mut self,
        cursor: CursorId,
        purpose: TimerPurpose,
    ) -> MachineResult<Next> {
        let now = self.read().now;
        match purpose {
            TimerPurpose::Delay => self.loops().delay_ended(cursor),
            TimerPurpose::Retry => self.faults().begin_attempt(cursor),
            TimerPurpose::Deadline(scope) => self.faults().deadline_passed(cursor, scope),
            TimerPurpose::Sleep => self.complete_wait(cursor, Value::Null, now),
            TimerPurpose::SleepSince(since) => self.complete_wait(cursor, Value::Null, since),
        }
    }

    /// Returns what follows the operation of a state. If a fault stopped the operation, first records the fault, and
    /// returns that it is raised.
    fn raise_on_fault(
        &mut self,
        cursor: CursorId,
        state: &State,
        done: StepResult<Next>,
    ) -> MachineResult<Next> {
        match split_fault(done)? {
            Ok(next) => Ok(next),
            Err(fault) => {
                self.record_failure(cursor, state, &fault)?;
                self.raise_here(cursor, fault)
            }
        }
    }

    fn raise_here(&self, cursor: CursorId, fault: Fault) -> MachineResult<Next> {
        let error = self.read().locate_fault(cursor, fault)?;
        Ok(Next::Raise(cursor, Box::new(error), FaultOrigin::Operation))
    }

    /// Records a failed operation. States that the compiler adds (a branch, the end of a body) have no record. If the
    /// cursor has entered a scope, the scope's own handling records the failure.
    fn record_failure(&mut self, cursor: CursorId, state: &State, fault: &Fault) -> MachineResult {
        let read = self.read();
        if let Op::Enter(scope) = state.op
            && read.top_frame(cursor)?.1.scope == scope
        {
            return Ok(());
        }
        let output = Output::Value(fault.output.clone().unwrap_or_default());
        let (status, now) = (fault.status(), read.now);
        let error = Some(fault.without_output());
        let mut records = self.records();
        records.record(cursor, state.action, status, output, error, now)
    }
}

/// Compares a case with a value.
/// In some formats, cases are keys of a map and so always text (`are_text`). There, a key also equals the number or
/// boolean that it spells.
fn case_equals(case: &Value, value: &Value, are_text: bool) -> bool {
    if case == value {
        return true;
    }
    let Some(key) = case.as_str() else {
        return false;
    };
    match value {
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) | Value::Bool(_) if are_text => {
            value.to_json() == key
        }
        _ => false,
    }
}
