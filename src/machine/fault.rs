//! The unwinding rule: a fault pops to the nearest try, which retries or catches it, to a loop
//! that survives it, or to the end of its branch; at the root it ends the run.

use super::advance::Stepper;
use super::change::Change;
use super::event::Happening;
use super::record::Output;
use super::retry;
use super::state::{CursorId, FrameKind, RunError, TimerPurpose, TryState, Wait};
use crate::expression::Value;
use crate::model::{Fault, Name, Status, fault_kind};
use crate::program::{Retry, Scope, ScopeId, ScopeKind};

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
        let mut raised = raised;
        let program = self.program;
        loop {
            let Some((depth, frame)) = self.top(cursor) else {
                return;
            };
            let (id, entered_at) = (frame.scope, frame.entered_at);
            let Some(scope) = program.scope(id) else {
                return;
            };
            let kind = frame.kind.clone();
            match (&scope.kind, kind) {
                (ScopeKind::Root, _) => {
                    let status = status_of(&error.fault);
                    return self.finish(status, Value::Null, Some(error));
                }
                (ScopeKind::Try { retry, catch }, FrameKind::Try(state)) => {
                    if let Some(retry) = retry
                        && self.retries(cursor, depth, scope, retry, &state, &error.fault, raised)
                    {
                        return;
                    }
                    if let Some((variable, to)) = catch {
                        if !variable.is_empty() {
                            let value = error_value(&error);
                            self.emit(Change::VariableSet(variable.clone(), value));
                        }
                        return self.go(cursor, *to);
                    }
                }
                (ScopeKind::Loop(spec), FrameKind::Loop(_)) => {
                    if spec.survives_failure {
                        self.pop_to(cursor, depth + 1);
                        return self.iteration_failed(cursor, depth);
                    }
                    self.loop_failed(cursor, depth, &error.fault);
                }
                (ScopeKind::Branch, FrameKind::Branch { index, .. }) => {
                    return self.branch_failed(cursor, index, error);
                }
                (ScopeKind::Block, _) => {
                    if let Some(action) = scope.action {
                        let output = Output::Actions(scope.children.clone());
                        let fault = Some(Fault {
                            output: None,
                            ..error.fault.clone()
                        });
                        self.record(cursor, action, Status::Failed, output, fault, entered_at);
                    }
                }
                _ => {}
            }
            self.pop_to(cursor, depth);
            raised = Raised::Through;
        }
    }

    /// Arms the wait before the next attempt, if there is to be one.
    #[allow(clippy::too_many_arguments)]
    fn retries(
        &mut self,
        cursor: CursorId,
        depth: usize,
        scope: &'a Scope,
        policy: &Retry,
        state: &TryState,
        fault: &Fault,
        raised: Raised,
    ) -> bool {
        if state.attempt >= state.max_attempts || !retry::applies(&policy.on, fault, raised) {
            return false;
        }
        let seed = self
            .view(cursor)
            .seed(&format!("{}/{}", scope.name, state.attempt));
        let delay = retry::delay(&policy.backoff, state.attempt, fault.retry_after_ms, seed);
        let due_at = self.now.plus(delay);
        self.pop_to(cursor, depth + 1);
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let timer = self.arm(cursor, due_at, TimerPurpose::Retry);
        let kept = Fault {
            output: None,
            ..fault.clone()
        };
        self.emit(Change::AttemptFailed {
            cursor,
            depth,
            fault: kept,
            at: self.now,
            due_at,
        });
        self.emit(Change::Waits(cursor, Wait::Timer(timer)));
        self.note(Happening::RetryScheduled {
            node_name: scope.name.clone(),
            attempt: state.attempt,
            next_at: due_at,
            error: fault.message.clone(),
        });
        true
    }

    /// The wait before an attempt is over.
    pub fn begin_attempt(&mut self, cursor: CursorId) {
        let Some((depth, frame)) = self.top(cursor) else {
            return;
        };
        let Some(scope) = self.program.scope(frame.scope) else {
            return;
        };
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        self.emit(Change::AttemptBegan { cursor, depth });
        self.emit(Change::Moved(cursor, scope.body));
    }

    /// A step's own deadline passed: whatever it does is cut.
    pub fn step_timed_out(&mut self, cursor: CursorId, depth: usize, scope: ScopeId) {
        let Some(scope) = self.program.scope(scope) else {
            return;
        };
        let entered_at = self
            .top(cursor)
            .map_or(self.now, |(_, frame)| frame.entered_at);
        let after = self.now.since(entered_at);
        let fault = Fault::new(
            fault_kind::TIMEOUT,
            format!(
                "`{}` was cut by its timeout after {}",
                scope.name,
                crate::time::format_duration(after)
            ),
        );
        let fault = fault.transient();
        let error = RunError {
            action: Some(scope.name.clone()),
            ..self.located(cursor, fault.clone())
        };
        self.pop_to(cursor, depth);
        if let Some(action) = scope.action {
            let output = Output::Value(Value::Null);
            self.record(
                cursor,
                action,
                Status::TimedOut,
                output,
                Some(fault),
                entered_at,
            );
        }
        self.raise(cursor, error, Raised::Through);
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
