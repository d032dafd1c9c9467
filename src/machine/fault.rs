//! The unwinding rule: a fault pops to the nearest try, which retries or catches it, to a loop
//! that survives it, or to the end of its branch; at the root it ends the run.

use super::advance::Stepper;
use super::change::{Change, VariableChange};
use super::event::Happening;
use super::movement::narrow;
use super::record::Output;
use super::retry;
use super::state::{CursorId, FrameKind, RunError, TimerPurpose, Wait};
use crate::expression::Value;
use crate::model::{Fault, Name, Status, fault_kind};
use crate::program::{Retry, Scope, ScopeKind};
use std::time::Duration;

/// Where a fault comes from, as the innermost try sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// From the operation itself: a policy without `on` asks whether the fault is transient.
    Here,
    /// Through a scope: a policy without `on` around a block retries any failure.
    Through,
}

/// How an action counts that ended with this fault.
pub(super) fn status_of(fault: &Fault) -> Status {
    if &*fault.kind == fault_kind::TIMEOUT {
        Status::TimedOut
    } else {
        Status::Failed
    }
}

impl<'a> Stepper<'a> {
    /// Raises a fault where a cursor stands.
    pub fn raise_here(&mut self, cursor: CursorId, fault: Fault) {
        let error = self.located(cursor, fault);
        self.raise(cursor, error, Raised::Here);
    }

    pub fn raise(&mut self, cursor: CursorId, error: RunError, raised: Raised) {
        if self.run.paused.is_some() {
            return self.defer(cursor, error, raised);
        }
        let mut raised = raised;
        let program = self.program;
        while let Some((depth, frame)) = self.top(cursor) {
            let (entered_at, attempts) = (frame.entered_at, attempts(&frame.kind));
            let Some(scope) = program.scope(frame.scope) else {
                return;
            };
            match &scope.kind {
                ScopeKind::Root => {
                    let status = status_of(&error.fault);
                    return self.finish(status, Value::Null, Some(error));
                }
                ScopeKind::Try { retry, catch } => {
                    if let Some(retry) = retry
                        && attempts.is_some_and(|(attempt, max)| attempt < max)
                        && retry::applies(&retry.on, &error.fault, raised)
                    {
                        return self.retry(cursor, depth, scope, retry, &error.fault);
                    }
                    if let Some((variable, to)) = catch {
                        if !variable.is_empty() {
                            let value = error_value(&error);
                            self.vary(cursor, VariableChange::Set(variable.clone(), value));
                        }
                        self.pop(cursor, depth);
                        return self.emit(Change::Moved(cursor, *to));
                    }
                }
                ScopeKind::Loop(spec) => {
                    // An iteration that fails ends: that is a boundary like any other.
                    let running = self.iteration_runs(cursor, depth);
                    if running && !self.may_cross(cursor, cursor) {
                        return self.defer(cursor, error, Raised::Through);
                    }
                    if running && spec.survives_failure {
                        return self.iteration_failed(cursor, depth);
                    }
                    self.loop_failed(cursor, depth, &error.fault);
                }
                ScopeKind::Branch => return self.branch_failed(cursor, error),
                ScopeKind::Block => {
                    if let Some(action) = scope.action {
                        let output = Output::Actions(scope.children.clone());
                        let fault = Some(error.fault.without_output());
                        self.record(cursor, action, Status::Failed, output, fault, entered_at);
                    }
                }
                ScopeKind::Graph { .. }
                | ScopeKind::Deadline { .. }
                | ScopeKind::ForEach { .. }
                | ScopeKind::Parallel { .. }
                | ScopeKind::Dag { .. } => {}
            }
            self.pop(cursor, depth);
            raised = Raised::Through;
        }
    }

    /// The cursor raises its fault later: after the pause, or in the next transition.
    pub fn defer(&mut self, cursor: CursorId, error: RunError, raised: Raised) {
        let wait = Wait::Faulted {
            error: Box::new(error),
            here: raised == Raised::Here,
        };
        self.emit(Change::Waits(cursor, wait));
    }

    /// Arms the wait before the next attempt.
    fn retry(
        &mut self,
        cursor: CursorId,
        depth: usize,
        scope: &'a Scope,
        policy: &Retry,
        fault: &Fault,
    ) {
        let state = self.frame(cursor, depth).map(|frame| &frame.kind);
        let (attempt, _) = state.and_then(attempts).unwrap_or((1, 1));
        let seed = self.view(cursor).seed(&format!("{}/{attempt}", scope.name));
        let delay = retry::delay(&policy.backoff, attempt, fault.retry_after_ms, seed);
        let due_at = self.now.plus(delay);
        let timer = self.arm(cursor, due_at, TimerPurpose::Retry);
        self.emit(Change::AttemptFailed {
            cursor,
            depth: narrow(depth),
            fault: fault.without_output(),
            at: self.now,
            due_at,
        });
        self.emit(Change::Waits(cursor, Wait::Timer(timer)));
        self.note(Happening::RetryScheduled {
            node_name: self
                .told(scope.action)
                .unwrap_or_else(|| scope.name.clone()),
            attempt,
            next_at: due_at,
            error: fault.message.clone(),
        });
    }

    /// The wait before an attempt is over.
    pub fn begin_attempt(&mut self, cursor: CursorId) {
        let Some((depth, frame)) = self.top(cursor) else {
            return;
        };
        let Some(scope) = self.program.scope(frame.scope) else {
            return;
        };
        let depth = narrow(depth);
        self.emit(Change::AttemptBegan { cursor, depth });
        self.emit(Change::Moved(cursor, scope.body));
    }

    /// A step's own deadline passed: whatever it does is cut.
    pub fn step_timed_out(&mut self, cursor: CursorId, depth: usize) {
        let Some(frame) = self.frame(cursor, depth) else {
            return;
        };
        let (id, entered_at) = (frame.scope, frame.entered_at);
        let after = match &frame.kind {
            FrameKind::Deadline { after_ms, .. } => Duration::from_millis(*after_ms),
            _ => return,
        };
        let Some(scope) = self.program.scope(id) else {
            return;
        };
        let after = crate::time::format_duration(after);
        let message = format!(
            "`{}` was not done within its timeout of {after}",
            scope.name
        );
        let fault = Fault::new(fault_kind::TIMEOUT, message).transient();
        self.cut(cursor, depth + 1, Status::Cancelled);
        if let Some(action) = scope.action {
            // What was cut has left a record; of a loop it tells how far it came.
            let home = self.run.cursors.get(&self.run.home(cursor));
            let cut = home.and_then(|home| home.records.get(&action));
            let output = cut.map_or(Output::Value(Value::Null), |cut| cut.output.clone());
            let error = Some(fault.without_output());
            self.record(cursor, action, Status::TimedOut, output, error, entered_at);
        }
        self.pop(cursor, depth);
        let error = self.located_at(cursor, scope.action, fault);
        self.raise(cursor, error, Raised::Through);
    }
}

/// Which attempt a try is at, and how many it may have.
fn attempts(kind: &FrameKind) -> Option<(u32, u32)> {
    match kind {
        FrameKind::Try(state) => Some((state.attempt, state.max_attempts)),
        _ => None,
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

fn error_value(error: &RunError) -> Value {
    let name = |name: &Option<Name>| Value::from(name.as_deref());
    Value::from_pairs([
        ("kind", Value::from(&*error.fault.kind)),
        ("code", name(&error.fault.code)),
        ("message", Value::from(error.fault.message.as_str())),
        ("action", name(&error.action)),
        ("output", error.fault.output.clone().unwrap_or_default()),
    ])
}
