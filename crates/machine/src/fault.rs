//! The unwinding rule: a fault pops to the nearest try, which retries or catches it, to a loop
//! that survives it, or to the end of its branch; at the root it ends the run.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult, StepResult, split_fault};
use super::change::{Change, VariableChange};
use super::event::HistoryKind;
use super::movement::depth_to_u32;
use super::record::Output;
use super::retry::{self, RaisedAt};
use super::state::{CursorId, DeadlineState, FrameKind, RunError, TimerPurpose, TryState, Wait};
use crate::program::{RetryPolicy, Scope, ScopeId, ScopeKind};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::model::{FAILURE, Fault, Name, Status, fault_kind};

impl<'a> Stepper<'a> {
    /// Raises a fault where a cursor is.
    pub fn raise_here(&mut self, cursor: CursorId, fault: Fault) -> MachineResult {
        let error = self.locate_fault(cursor, fault)?;
        self.raise(cursor, error, RaisedAt::Here)
    }

    /// Raises the fault that stopped an operation, if one did.
    pub fn raise_on_fault(&mut self, cursor: CursorId, done: StepResult) -> MachineResult {
        match split_fault(done)? {
            Ok(()) => Ok(()),
            Err(fault) => self.raise_here(cursor, fault),
        }
    }

    pub fn raise(
        &mut self,
        cursor: CursorId,
        mut error: RunError,
        raised: RaisedAt,
    ) -> MachineResult {
        if self.run.paused.is_some() {
            return self.defer_fault(cursor, error, raised);
        }
        let mut raised = raised;
        loop {
            let (depth, frame) = self.top_frame(cursor)?;
            let (scope, entered_at) = (self.scope(frame.scope)?, frame.entered_at);
            match &scope.kind {
                ScopeKind::Root => {
                    let status = error.fault.status();
                    return self.finish(status, Value::Null, Some(error));
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
                        && self.is_retried(cursor, retry, &mut error, raised)
                    {
                        return self.retry((cursor, depth), scope, retry, attempt, &error.fault);
                    }
                    if let Some((variable, to)) = catch {
                        if !variable.is_empty() {
                            let value = match self.is_body(frame.scope) {
                                true => failure_value(&error, error.fault.status()),
                                false => error_value(&error, true),
                            };
                            let change = VariableChange::Set(variable.clone(), value);
                            self.change_variable(cursor, change)?;
                        }
                        self.pop(cursor, depth)?;
                        return self.emit(Change::Moved(cursor, *to));
                    }
                }
                ScopeKind::Loop(_, spec) => {
                    let this = self.loop_on_top(cursor)?;
                    // An iteration that fails ends: that is a boundary like any other.
                    let running = self.loop_state(this)?.iteration_started_at.is_some();
                    if running && !self.try_cross_boundary(cursor, cursor, true) {
                        return self.defer_fault(cursor, error, RaisedAt::Through);
                    }
                    if running && spec.survives_failure {
                        return self.iteration_failed(this);
                    }
                    self.loop_failed(this, &error.fault)?;
                }
                ScopeKind::Branch => return self.branch_failed(cursor, error),
                ScopeKind::Block => {
                    if let Some(action) = scope.action {
                        let output = Output::Actions(scope.children.clone());
                        let fault = Some(error.fault.without_output());
                        self.record(cursor, action, Status::Failed, output, fault, entered_at)?;
                    }
                }
                ScopeKind::FollowUp => {
                    if let Some(action) = scope.action {
                        let fault = error.fault.without_output();
                        let status = fault.status();
                        self.follow_up_ended(cursor, action, status, Some(fault))?;
                    }
                }
                ScopeKind::Graph { .. }
                | ScopeKind::Deadline { .. }
                | ScopeKind::ForEach { .. }
                | ScopeKind::Parallel { .. }
                | ScopeKind::Dag { .. } => {}
            }
            self.pop(cursor, depth)?;
            raised = RaisedAt::Through;
        }
    }

    /// Whether a scope is the body of a workflow that does something at its end.
    fn is_body(&self, scope: ScopeId) -> bool {
        let ending = self.program.ending.as_ref();
        ending.is_some_and(|ending| ending.body == scope)
    }

    /// Whether a cursor is in such a body.
    pub fn is_in_body(&self, cursor: CursorId) -> MachineResult<bool> {
        let here = self.state_of(cursor)?.scope;
        Ok(self.program.ancestry(here).any(|(id, _)| self.is_body(id)))
    }

    /// The workflow ends its run. From its body it first does what is to be done then, and true is
    /// given.
    pub fn end_body(
        &mut self,
        cursor: CursorId,
        status: Status,
        error: Option<&RunError>,
    ) -> MachineResult<bool> {
        let Some(ending) = self.program.ending else {
            return Ok(false);
        };
        if !self.is_in_body(cursor)? {
            return Ok(false);
        }
        self.jump_to(
            cursor,
            match status {
                Status::Failed => ending.failed,
                _ => ending.ended,
            },
        )?;
        if let Some(error) = error {
            let change = VariableChange::Set(Name::from(FAILURE), failure_value(error, status));
            self.change_variable(self.run.root()?.0, change)?;
        }
        Ok(true)
    }

    /// The cursor raises its fault later: after the pause, or in the next transition.
    pub fn defer_fault(
        &mut self,
        cursor: CursorId,
        error: RunError,
        raised: RaisedAt,
    ) -> MachineResult {
        let wait = Wait::Faulted {
            error: Box::new(error),
            here: raised == RaisedAt::Here,
        };
        self.emit(Change::Waits(cursor, wait))
    }

    /// Whether a policy retries a fault. A condition that cannot be computed retries nothing.
    fn is_retried(
        &self,
        cursor: CursorId,
        retry: &RetryPolicy,
        error: &mut RunError,
        raised: RaisedAt,
    ) -> bool {
        let Some(when) = &retry.when else {
            return retry::applies(&retry.on, &error.fault, raised);
        };
        if !retry.on.is_empty() && !retry::applies(&retry.on, &error.fault, raised) {
            return false;
        }
        match self.holds(cursor, when, true) {
            Ok(holds) => holds,
            Err(fault) => {
                let why = format!("; `retry.when` cannot be computed: {}", fault.message);
                error.fault.message.push_str(&why);
                false
            }
        }
    }

    /// Arms the wait before the next attempt.
    fn retry(
        &mut self,
        (cursor, depth): (CursorId, usize),
        scope: &'a Scope,
        policy: &RetryPolicy,
        attempt: u32,
        fault: &Fault,
    ) -> MachineResult {
        let seed = self.view(cursor).seed(&format!("{}/{attempt}", scope.name));
        let delay = retry::delay(&policy.backoff, attempt, fault.retry_after_ms, seed);
        let due_at = self.now.plus(delay);
        let timer = self.arm(cursor, due_at, TimerPurpose::Retry)?;
        self.emit(Change::AttemptFailed {
            cursor,
            depth: depth_to_u32(depth),
            fault: fault.without_output(),
            at: self.now,
            due_at,
        })?;
        self.emit(Change::Waits(cursor, Wait::Timer(timer)))?;
        self.report(HistoryKind::RetryScheduled {
            node_name: self.display_name(scope.action, &scope.name),
            attempt,
            next_at: due_at,
            error: fault.message.clone(),
        });
        Ok(())
    }

    /// The wait before an attempt is over.
    pub fn begin_attempt(&mut self, cursor: CursorId) -> MachineResult {
        let (depth, frame) = self.top_frame(cursor)?;
        let (depth, body) = (depth_to_u32(depth), self.scope(frame.scope)?.body);
        self.emit(Change::AttemptBegan { cursor, depth })?;
        self.emit(Change::Moved(cursor, body))
    }

    /// The last attempt that failed inside of the frame at this depth, of an action that was tried again.
    pub fn failed_attempt(&self, cursor: CursorId, depth: usize) -> MachineResult<String> {
        let frames = self.run.cursor(cursor)?.frames.iter().skip(depth + 1);
        let mut tried = frames.rev().filter_map(|frame| match &frame.kind {
            FrameKind::Try(state) => state.last_fault.as_deref(),
            _ => None,
        });
        let because =
            |(fault, _): &(Fault, _)| format!("; an attempt had failed: {}", fault.message);
        Ok(tried.next().map(because).unwrap_or_default())
    }

    /// A step's own deadline passed: whatever it does is cancelled.
    pub fn step_timed_out(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let frame = self.run.frame(cursor, depth)?;
        let (scope, entered_at) = (self.scope(frame.scope)?, frame.entered_at);
        let FrameKind::Deadline(DeadlineState { after_ms, .. }) = frame.kind else {
            return Err(Bug::new(format!("`{}` has no deadline", scope.name)));
        };
        let after = windlass_value::time::human_duration(Duration::from_millis(after_ms));
        let name = &scope.name;
        let because = self.failed_attempt(cursor, depth)?;
        let message = format!("`{name}` was not done within its timeout of {after}{because}");
        let fault = Fault::new(fault_kind::TIMEOUT, message).transient();
        self.cancel(cursor, depth + 1, Status::Cancelled)?;
        if let Some(action) = scope.action {
            // What was cancelled has left a record; that of a loop has how far it came.
            let cancelled = self.run.records_of(cursor)?.get(&action);
            let output = cancelled.map_or(Output::Value(Value::Null), |one| one.output.clone());
            let error = Some(fault.without_output());
            self.record(cursor, action, Status::TimedOut, output, error, entered_at)?;
        }
        self.pop(cursor, depth)?;
        let error = self.locate_fault_at(cursor, scope.action, fault);
        self.raise(cursor, error, RaisedAt::Through)
    }
}

/// A fault as expressions see it, in `catch` and in `actions('x').error`.
pub(super) fn fault_value(fault: &Fault) -> Value {
    Value::from_pairs([
        ("kind", Value::from(&*fault.kind)),
        ("code", Value::from(fault.code.as_deref())),
        ("message", Value::from(fault.message.as_str())),
    ])
}

/// What went wrong, and where: `{kind, code, message, action}`, and what the action gave all the same.
pub(super) fn error_value(error: &RunError, with_output: bool) -> Value {
    let name = |name: &Option<Name>| Value::from(name.as_deref());
    let mut pairs = vec![
        ("kind", Value::from(&*error.fault.kind)),
        ("code", name(&error.fault.code)),
        ("message", Value::from(error.fault.message.as_str())),
        ("action", name(&error.action)),
    ];
    if with_output {
        let output = error.fault.output.clone().unwrap_or_default();
        pairs.push(("output", output));
    }
    Value::from_pairs(pairs)
}

/// How the body of a workflow ended, for what is done then and for the run's own end.
pub(super) fn failure_value(error: &RunError, status: Status) -> Value {
    let iteration = error.iteration.as_ref();
    let (file, line) = error.place.unzip();
    let more = Value::from_pairs([
        ("status", Value::from(status.as_str())),
        (
            "loop",
            Value::from(iteration.map(|(path, _)| path.as_str())),
        ),
        (
            "iteration",
            Value::from(iteration.and_then(|(_, at)| i64::try_from(*at).ok())),
        ),
        ("line", Value::from(line)),
    ]);
    // Of a workflow in several files: which one.
    let file = file.filter(|file| *file > 0).map(i64::from);
    let mut all = match error_value(error, false) {
        Value::Object(all) => Arc::unwrap_or_clone(all),
        _ => Object::new(),
    };
    if let Value::Object(more) = more {
        all.extend(Arc::unwrap_or_clone(more));
    }
    all.extend(file.map(|file| ("file".into(), Value::Int(file))));
    Value::object(all)
}

/// The same read back.
pub(super) fn failure_of(value: &Value) -> Option<(Status, RunError)> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| value.get(key).and_then(Value::as_int);
    let mut fault = Fault::new(&text("kind")?, text("message")?);
    fault.code = text("code").map(Name::from);
    let iteration = number("iteration").and_then(|at| u64::try_from(at).ok());
    let file = u16::try_from(number("file").unwrap_or(0)).ok();
    let line = number("line").and_then(|line| u32::try_from(line).ok());
    let error = RunError {
        fault,
        action: text("action").map(Name::from),
        iteration: text("loop").zip(iteration),
        place: file.zip(line),
    };
    Some((Status::parse(&text("status")?)?, error))
}
