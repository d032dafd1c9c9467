//! Requests of actions, and what follows from their answers.

use super::bug::{MachineResult, StepResult};
use super::evaluate::millis;
use super::state::{CursorId, EffectId, PendingEffect};
use super::transition::{CallHandler, Next};
use crate::program::{Call, Op, State};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request, Status, fault_kind};

impl CallHandler<'_, '_> {
    pub fn call(
        &mut self,
        cursor: CursorId,
        state: &State,
        call: &Call,
        secrets: &[Name],
    ) -> StepResult<Next> {
        let read = self.read();
        let mut inputs = read.call_inputs(cursor, &call.inputs, secrets)?;
        if read.secured_parts(state.action).inputs {
            inputs = inputs.secure();
        }
        let timeout_ms = match &call.attempt_timeout {
            None => None,
            Some(timeout) => Some(millis(read.eval_duration(cursor, timeout, "a timeout")?)),
        };
        let request = Request {
            executor: call.executor.clone(),
            action: state.name.clone(),
            inputs,
            key: read.view(cursor).key(&state.name),
            attempt: read.view(cursor).current_attempt(),
            timeout_ms,
        };
        let with_state = request.with_state(&read.run.visible_variables(cursor));
        let pending = PendingEffect {
            cursor,
            action: state.action,
            request,
            requested_at: read.now,
        };
        self.request(pending, with_state)?;
        Ok(Next::Nothing)
    }

    /// Completes an effect. Returns the cursor that waited for the effect, and the result for this cursor.
    pub fn complete(
        &mut self,
        id: EffectId,
        result: Result<Value, Fault>,
    ) -> MachineResult<Option<(CursorId, Result<Value, Fault>)>> {
        let read = self.read();
        // If the id was removed, for example because a deadline was faster, the completion does nothing.
        let Some(effect) = read.run.effects.get(&id) else {
            return Ok(None);
        };
        let (cursor, action, attempt) = (effect.cursor, effect.action, effect.request.attempt);
        let node_name = read.display_name(action, &effect.request.action);
        let hides = read.secured_parts(action).outputs;
        let result = match hides {
            true => result.map(Value::secure).map_err(hide_message),
            false => result,
        };
        let result = result.and_then(|own| {
            let output = match action.and_then(|action| read.mapping_of(action)) {
                Some(template) => read
                    .map_output(cursor, template, &own)
                    .map_err(|fault| fault.output(own.clone()))?,
                None => own.clone(),
            };
            let output = if hides { output.secure() } else { output };
            Ok((own, output))
        });
        let (status, output, error) = match &result {
            Ok((_, output)) => (Status::Succeeded, output.clone(), None),
            Err(fault) => {
                let output = fault.output.clone().unwrap_or_default();
                (fault.status(), output, Some(fault.without_output()))
            }
        };
        let message = error.as_ref().map(|fault| fault.message.clone());
        let (owner, now) = (read.run.record_owner(cursor), read.now);
        let mut records = self.records();
        records.record_result(id, owner, status, output, error, now)?;
        let answer = match &result {
            Ok((own, _)) => Some(own),
            Err(fault) => fault.output.as_ref(),
        };
        self.iterations().count_usage(cursor, answer)?;
        let mut records = self.records();
        records.report_end_of_attempt(cursor, node_name, attempt, status, message);
        Ok(Some((cursor, result.map(|(own, _)| own))))
    }

    /// Assigns the result of a call to variables (`then`), and moves the cursor to the next state.
    pub fn assign_result(
        &mut self,
        cursor: CursorId,
        state: &State,
        result: &Value,
    ) -> StepResult<Next> {
        if let Op::Call(call, _) = &state.op {
            let mut variables = self.variables();
            variables.assign(cursor, &call.then, Some(("result", result)))?;
        }
        Ok(self.movement().move_to(cursor, state.next)?)
    }
}

/// Hides the message of a fault, because it may contain the secure outputs of the action.
fn hide_message(fault: Fault) -> Fault {
    let own = [fault_kind::TIMEOUT, fault_kind::DENIED, fault_kind::SECRET];
    let status = |code: &Name| code.len() <= 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    Fault {
        message: match own.contains(&&*fault.kind) {
            true => fault.message,
            false => String::from("what it says is hidden: the outputs of this action are secure"),
        },
        code: fault.code.filter(status),
        output: fault.output.map(Value::secure),
        ..fault
    }
}
