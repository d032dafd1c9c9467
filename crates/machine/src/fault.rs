//! The unwinding rule: a fault pops frames up to the nearest try that retries or catches it, to a loop that continues
//! after failures, or to the end of its branch. At the root cursor, a fault ends the run.

use super::bug::{Bug, MachineResult};
use super::change::VariableChange;
use super::condition::last_answer;
use super::failure::{error_value, failure_value};
use super::reader::describe_attempt;
use super::record::{LoopEnd, Output};
use super::retry::{self, FaultOrigin};
use super::state::{
    CursorId, DeadlineState, FrameKind, FrameRef, RunError, TimerPurpose, TryState, Wait,
};
use super::transition::{FaultHandler, Next};
use crate::program::{ActionId, RetryPolicy, Scope, ScopeId, ScopeKind};
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Status, fault_kind};
use windlass_value::time::human_duration;

impl<'a> FaultHandler<'_, 'a> {
    /// Raises the fault that a handler returned, and the faults that follow from it.
    pub fn settle(&mut self, mut next: Next) -> MachineResult {
        while let Next::Raise(cursor, error, origin) = next {
            next = match self.read().run.paused {
                Some(_) => self.movement().defer_fault(cursor, *error, origin)?,
                None => self.unwind(cursor, *error, origin)?,
            };
        }
        Ok(())
    }

    fn unwind(
        &mut self,
        cursor: CursorId,
        mut error: RunError,
        mut origin: FaultOrigin,
    ) -> MachineResult<Next> {
        loop {
            let read = self.read();
            let (depth, frame) = read.top_frame(cursor)?;
            let (id, entered_at) = (frame.scope, frame.entered_at);
            let scope = read.scope(id)?;
            match &scope.kind {
                ScopeKind::Root => {
                    let status = error.fault.status();
                    return self.ends().finish(status, Value::Null, Some(error));
                }
                ScopeKind::Try { retry, catch } => {
                    let FrameKind::Try(TryState {
                        attempt,
                        max_attempts,
                        ..
                    }) = frame.kind
                    else {
                        return Err(Bug::new(format!("`{}` has no try", scope.name)));
                    };
                    if let Some(retry) = retry
                        && attempt < max_attempts
                        && self.is_retried(cursor, retry, &mut error, origin)
                    {
                        return self.retry((cursor, depth), scope, retry, attempt, &error.fault);
                    }
                    if let Some((variable, to)) = catch {
                        self.set_caught(cursor, id, variable, &error)?;
                        let mut movement = self.movement();
                        movement.pop(cursor, depth)?;
                        return movement.move_to(cursor, *to);
                    }
                }
                ScopeKind::Loop(_, spec) => {
                    let this = read.loop_on_top(cursor)?;
                    // A failed iteration ends here, so this is an iteration boundary like any other.
                    let running = read.loop_state(this)?.iteration_started_at.is_some();
                    let mut loops = self.loops();
                    if running && !loops.iterations().try_cross_boundary(this) {
                        let mut movement = self.movement();
                        return movement.defer_fault(cursor, error, FaultOrigin::Scope);
                    }
                    if running && spec.survives_failure {
                        return loops.iteration_failed(this);
                    }
                    loops.iterations().fail(this, &error.fault)?;
                }
                ScopeKind::Branch => return self.forks().branch_failed(cursor, error),
                ScopeKind::Block => {
                    let output = Output::Actions(scope.children.clone());
                    let (action, fault) = (scope.action, Some(error.fault.without_output()));
                    let mut records = self.records();
                    records.record(cursor, action, Status::Failed, output, fault, entered_at)?;
                }
                ScopeKind::FollowUp => {
                    if let Some(action) = scope.action {
                        let fault = error.fault.without_output();
                        let status = fault.status();
                        let mut records = self.records();
                        records.follow_up_ended(cursor, action, status, Some(fault))?;
                    }
                }
                ScopeKind::Graph { .. }
                | ScopeKind::Deadline { .. }
                | ScopeKind::ForEach { .. }
                | ScopeKind::Parallel { .. }
                | ScopeKind::Dag { .. } => {}
            }
            self.movement().pop(cursor, depth)?;
            origin = FaultOrigin::Scope;
        }
    }

    /// Sets the variable of a catch.
    fn set_caught(
        &mut self,
        cursor: CursorId,
        scope: ScopeId,
        variable: &Name,
        error: &RunError,
    ) -> MachineResult {
        if variable.is_empty() {
            return Ok(());
        }
        let value = match self.read().is_body(scope) {
            true => failure_value(error, error.fault.status()),
            false => error_value(error, true),
        };
        let mut variables = self.variables();
        variables.change(cursor, VariableChange::Set(variable.clone(), value))
    }

    /// Returns true if a policy retries a fault. If the policy's condition cannot be computed, the fault is not
    /// retried.
    fn is_retried(
        &self,
        cursor: CursorId,
        retry: &RetryPolicy,
        error: &mut RunError,
        origin: FaultOrigin,
    ) -> bool {
        let Some(when) = &retry.when else {
            return retry::applies(&retry.on, &error.fault, origin);
        };
        if !retry.on.is_empty() && !retry::applies(&retry.on, &error.fault, origin) {
            return false;
        }
        match self.read().holds(cursor, when, true) {
            Ok(holds) => holds,
            Err(fault) => {
                let why = format!("; `retry.when` cannot be computed: {}", fault.message);
                error.fault.message.push_str(&why);
                false
            }
        }
    }

    /// Arms the timer of the next attempt.
    fn retry(
        &mut self,
        (cursor, depth): (CursorId, usize),
        scope: &'a Scope,
        policy: &RetryPolicy,
        attempt: u32,
        fault: &Fault,
    ) -> MachineResult<Next> {
        let read = self.read();
        let seed = read.view(cursor).seed(&format!("{}/{attempt}", scope.name));
        let delay = retry::delay(&policy.backoff, attempt, fault.retry_after_ms, seed);
        let (now, due_at) = (read.now, read.now.plus(delay));
        let name = read.display_name(scope.action, &scope.name);
        let timer = self.timers().arm(cursor, due_at, TimerPurpose::Retry)?;
        let fault = fault.without_output();
        let (frame, message) = (FrameRef::new(cursor, depth), fault.message.clone());
        self.record_attempt(frame, fault, now, due_at)?;
        self.report_retry(name, attempt, due_at, message);
        self.movement().wait(cursor, Wait::Timer(timer))
    }

    /// Begins the next attempt, when the wait before it is over.
    pub fn begin_attempt(&mut self, cursor: CursorId) -> MachineResult<Next> {
        let read = self.read();
        let (depth, frame) = read.top_frame(cursor)?;
        let body = read.scope(frame.scope)?.body;
        let records = read.run.records_of(cursor)?;
        let failed = read.state(body)?.action;
        let failed = failed.filter(|action| records.contains_key(action));
        let owner = read.run.record_owner(cursor);
        self.count_attempt(FrameRef::new(cursor, depth))?;
        // The records of the actions inside the failed action are removed later, when the cursor enters its scope.
        if let Some(ActionId(failed)) = failed {
            self.remove_records(owner, (failed, failed + 1))?;
        }
        self.movement().move_to(cursor, body)
    }

    /// Handles the deadline of a loop or a step.
    pub fn deadline_passed(&mut self, cursor: CursorId, scope: ScopeId) -> MachineResult<Next> {
        let read = self.read();
        let depth = read.depth_of(cursor, scope)?;
        match read.loop_at(cursor, depth)? {
            Some(this) => self.loops().limit(this, LoopEnd::Timeout, false),
            None => self.step_timed_out(cursor, depth),
        }
    }

    /// Cancels a step whose own deadline passed.
    fn step_timed_out(&mut self, cursor: CursorId, depth: usize) -> MachineResult<Next> {
        let read = self.read();
        let frame = read.run.frame(cursor, depth)?;
        let (scope, entered_at) = (read.scope(frame.scope)?, frame.entered_at);
        let FrameKind::Deadline(DeadlineState { after_ms, .. }) = frame.kind else {
            return Err(Bug::new(format!("`{}` has no deadline", scope.name)));
        };
        let after = human_duration(Duration::from_millis(after_ms));
        let name = &scope.name;
        let because = describe_attempt(read.failed_attempt(cursor, depth)?);
        let answer = read.outermost_loop(cursor, depth + 1)?;
        let answer = answer.map(|this| last_answer(read, this)).transpose()?;
        let answer = answer.unwrap_or_default();
        let message =
            format!("`{name}` was not done within its timeout of {after}{because}{answer}");
        let fault = Fault::new(fault_kind::TIMEOUT, message).transient();
        let mut movement = self.movement();
        movement.cancel(cursor, depth + 1, Status::Cancelled)?;
        if let Some(action) = scope.action {
            // The cancel has already recorded the action. Its output is used here, because the record of a loop
            // contains the loop's progress.
            let cancelled = movement.read().run.records_of(cursor)?.get(&action);
            let output = cancelled.map_or(Output::Value(Value::Null), |one| one.output.clone());
            let error = Some(fault.without_output());
            let mut records = movement.records();
            records.record(
                cursor,
                Some(action),
                Status::TimedOut,
                output,
                error,
                entered_at,
            )?;
        }
        movement.pop(cursor, depth)?;
        let error = self.read().locate_fault_at(cursor, scope.action, fault);
        Ok(Next::Raise(cursor, Box::new(error), FaultOrigin::Scope))
    }
}
