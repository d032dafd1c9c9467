//! Loops: their iterations, rows and ends.

use super::IterationHandler;
use crate::bug::MachineResult;
use crate::change::Change;
use crate::event::{HistoryKind, IterationRow};
use crate::reader::LoopRef;
use crate::record::{LoopEnd, Output};
use crate::state::{CursorId, LoopState};
use windlass_model::model::{Fault, Status, Test};

impl<'a> IterationHandler<'_, 'a> {
    /// Returns true if the loop may cross an iteration boundary in this transition. If false, its cursor continues in
    /// the next transition.
    pub fn try_cross_boundary(&mut self, this: LoopRef<'_>) -> bool {
        self.0.try_cross_boundary(this.cursor, this.cursor, true)
    }

    fn report_iteration(&mut self, this: LoopRef<'a>, condition: Option<bool>) -> MachineResult {
        let state = self.read().loop_state(this)?;
        let (path, iteration) = (state.path.clone(), state.iteration);
        let node_name = self.read().reported_loop(this.scope);
        self.0.report(HistoryKind::LoopIteration {
            node_name,
            path,
            iteration,
            condition_result: condition,
        });
        Ok(())
    }

    pub fn begin(&mut self, this: LoopRef<'a>) -> MachineResult {
        if this.spec.test == Test::Before && !self.0.program.rules.reports_checks {
            let seen = self.read().loop_state(this)?.last_condition;
            self.report_iteration(this, seen)?;
        }
        self.0.emit(Change::IterationBegan {
            frame: this.frame_ref(),
            action_range: this.action_range(),
            at: self.0.now,
        })
    }

    /// Ends the current iteration, if there is one: adds its row, and counts the iteration.
    /// A cancelled iteration has a row, too, but is not counted. So the state of the loop does not depend on the place
    /// at which the iteration was cancelled.
    pub fn end(&mut self, this: LoopRef<'a>, status: Status) -> MachineResult {
        let read = self.read();
        let state = read.loop_state(this)?;
        let Some(started_at) = state.iteration_started_at else {
            return Ok(());
        };
        let before = this.spec.test == Test::Before;
        let records = read.reading(read.run.records_of(this.cursor)?);
        let row = IterationRow {
            path: state.path.clone(),
            iteration: state.iteration,
            condition: state.last_condition.filter(|_| before),
            status,
            result: records.bounded(&this.scope.children),
            started_at,
            ended_at: read.now,
        };
        self.0.out.iterations.push(row);
        if !before {
            self.report_iteration(this, None)?;
        }
        let frame = this.frame_ref();
        let change = match status {
            Status::TimedOut | Status::Cancelled => Change::IterationCancelled {
                frame,
                action_range: this.action_range(),
            },
            Status::Succeeded | Status::Failed | Status::Skipped => {
                Change::IterationEnded { frame, status }
            }
        };
        self.0.emit(change)
    }

    /// Stores the result of a check in the state of the loop, without an event.
    pub fn note_condition(&mut self, this: LoopRef<'a>, value: bool) -> MachineResult {
        let frame = this.frame_ref();
        self.0.emit(Change::ConditionSeen { frame, value })
    }

    pub fn record_condition(&mut self, this: LoopRef<'a>, value: bool) -> MachineResult {
        self.note_condition(this, value)?;
        if this.spec.test != Test::Before {
            // The condition is checked after an iteration, so its result belongs to the row and the event of the
            // iteration that has just ended.
            if let Some(row) = self.0.out.iterations.last_mut() {
                row.condition = Some(value);
            }
            let event = self.0.out.history.last_mut().map(|event| &mut event.what);
            if let Some(HistoryKind::LoopIteration {
                condition_result, ..
            }) = event
            {
                *condition_result = Some(value);
            }
        } else if self.0.program.rules.reports_checks {
            self.report_iteration(this, Some(value))?;
        }
        Ok(())
    }

    /// Records the end of a loop, and reports it to the history. The caller must pop the loop's frame.
    pub fn close(
        &mut self,
        this: LoopRef<'a>,
        end: LoopEnd,
        status: Status,
        output: Option<Output>,
        error: Option<Fault>,
    ) -> MachineResult {
        let frame = this.frame_ref();
        self.0.emit(Change::LoopEnded { frame, end })?;
        let read = self.read();
        let state = read.loop_state(this)?;
        let output = output.unwrap_or_else(|| own_output(this, state, end, status));
        let started_at = state.started_at;
        let what = HistoryKind::LoopEnd {
            node_name: read.reported_loop(this.scope),
            path: state.path.clone(),
            iterations_completed: state.iteration,
            exit_reason: read.exit_reason(&state.kind, end),
        };
        let row = state.row();
        self.0.out.loops.push(row);
        self.0.report(what);
        let (action, mut records) = (this.scope.action, self.records());
        records.record(this.cursor, action, status, output, error, started_at)
    }

    /// Ends a loop because a fault leaves it.
    pub fn fail(&mut self, this: LoopRef<'a>, fault: &Fault) -> MachineResult {
        self.end(this, Status::Failed)?;
        let fault = Some(fault.without_output());
        self.close(this, LoopEnd::Failed, Status::Failed, None, fault)
    }

    /// Ends the loop at this depth because an enclosing scope ends. The caller must pop the loop's frame.
    pub fn cancel(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let this = self.read().loop_of_frame(cursor, depth)?;
        if let Some(timer) = self.read().loop_state(this)?.deadline_timer {
            self.timers().disarm(timer)?;
        }
        self.end(this, Status::Cancelled)?;
        self.close(this, LoopEnd::Cancelled, Status::Cancelled, None, None)
    }
}

/// Returns the output of a loop whose step does not map outputs.
pub(crate) fn own_output(
    this: LoopRef<'_>,
    state: &LoopState,
    end: LoopEnd,
    status: Status,
) -> Output {
    Output::Loop {
        iterations: state.iteration,
        status,
        end,
        body: this.scope.children.clone(),
    }
}
