//! The movement rule: `jump_to` pops frames until the target's scope is on top.
//! When a frame is popped, its timers are disarmed, its effects aborted, and its branches dropped. Every action in it
//! that has not ended gets its last record.

use super::{Movement, Next};
use crate::bug::{Bug, MachineResult, StepResult};
use crate::change::Change;
use crate::event::Effect;
use crate::program::{ActionId, ScopeId, ScopeKind, State, StateId};
use crate::record::Output;
use crate::retry::FaultOrigin;
use crate::state::{
    CursorId, DeadlineState, EffectId, Frame, FrameKind, RunError, TimerPurpose, Wait, to_u32,
};
use windlass_expression::Value;
use windlass_model::model::{Name, Status};
use windlass_value::time::Timestamp;

impl Movement<'_, '_> {
    /// Moves a cursor to a state in the same scope. The cursor is then ready to continue there.
    pub fn move_to(&mut self, cursor: CursorId, target: StateId) -> MachineResult<Next> {
        self.0.emit(Change::Moved(cursor, target))?;
        Ok(Next::Nothing)
    }

    pub fn wait(&mut self, cursor: CursorId, wait: Wait) -> MachineResult<Next> {
        self.0.emit(Change::Waits(cursor, wait))?;
        Ok(Next::Nothing)
    }

    /// Defers a fault: the cursor raises it after the pause if the run is paused, and otherwise in the next transition.
    pub fn defer_fault(
        &mut self,
        cursor: CursorId,
        error: RunError,
        origin: FaultOrigin,
    ) -> MachineResult<Next> {
        let wait = Wait::Faulted {
            error: Box::new(error),
            here: origin == FaultOrigin::Operation,
        };
        self.wait(cursor, wait)
    }

    pub fn enter(&mut self, cursor: CursorId, scope: ScopeId, kind: FrameKind) -> MachineResult {
        let frame = Frame {
            scope,
            kind,
            entered_at: self.0.now,
        };
        self.0.emit(Change::Entered(cursor, frame))
    }

    /// Moves a cursor to `target`, popping frames until the target's scope is on top. If the target is outside of the
    /// cursor's branch, the cursor that forked the branch moves instead, and the fork's other branches are dropped.
    pub fn jump_to(&mut self, cursor: CursorId, target: StateId) -> MachineResult<Next> {
        let state = self.read().state(target)?;
        let mut at = cursor;
        loop {
            let mut frames = self.0.run.cursor(at)?.frames.iter();
            if let Some(depth) = frames.rposition(|frame| frame.scope == state.scope) {
                self.close_frames(at, depth + 1, Status::Succeeded)?;
                if at != cursor {
                    // The target is in the fork's own scope, as with `break_when` in a foreach.
                    self.drop_branches(at, depth)?;
                }
                return self.move_to(at, target);
            }
            at = self.leave_branch(at, state.scope)?;
        }
    }

    /// Leaves a branch by a jump and returns the fork's cursor. If the jump ends the foreach of the branch, the
    /// branch's iteration is the last one and is counted. Any other branch is dropped with its fork.
    fn leave_branch(&mut self, cursor: CursorId, target: ScopeId) -> MachineResult<CursorId> {
        self.close_frames(cursor, 1, Status::Succeeded)?;
        let (parent, index) = self.read().branch_of(cursor)?;
        if self.read().top_frame(parent)?.1.scope != target {
            self.0.emit(Change::CursorDropped(cursor))?;
            return Ok(parent);
        }
        let mut branches = self.branches();
        branches.end(parent, index, Status::Succeeded, None)?;
        Ok(parent)
    }

    /// Cancels the wait of a cursor, and pops its frames until `keep` are left. Actions in the popped frames that have
    /// not ended get the status `status`.
    pub fn cancel(&mut self, cursor: CursorId, keep: usize, status: Status) -> MachineResult {
        self.cancel_wait(cursor, status)?;
        self.close_frames(cursor, keep, status)
    }

    /// Pops frames, innermost first, until `keep` are left. Each frame is popped before its action's end is reported,
    /// so that the end is not reported as inside the action's own scope.
    fn close_frames(&mut self, cursor: CursorId, keep: usize, status: Status) -> MachineResult {
        let frames = self.0.run.cursor(cursor)?.frames.len();
        for depth in (keep..frames).rev() {
            self.close_frame(cursor, depth, status)?;
            self.0.emit(Change::Popped(cursor, to_u32(depth)))?;
        }
        Ok(())
    }

    fn close_frame(&mut self, cursor: CursorId, depth: usize, status: Status) -> MachineResult {
        let frame = self.0.run.frame(cursor, depth)?;
        let (scope, entered_at) = (self.read().scope(frame.scope)?, frame.entered_at);
        match &frame.kind {
            FrameKind::Loop(_) => self.iterations().cancel(cursor, depth),
            FrameKind::Deadline(DeadlineState { timer, .. }) => {
                let timer = *timer;
                self.timers().disarm(timer)
            }
            FrameKind::Fork(_) => {
                self.drop_branches(cursor, depth)?;
                let mut branches = self.branches();
                branches.record_fork_end(cursor, depth, scope, status, None, None)
            }
            FrameKind::Plain => match (&scope.kind, scope.action) {
                (ScopeKind::Block, action @ Some(id)) => {
                    let own = Output::Actions(scope.children.clone());
                    // If a block is left before its end, values that its output needs may be missing.
                    let output = match status {
                        Status::Succeeded => self.read().map_step_output(cursor, id, own.clone()),
                        _ => Ok(own.clone()),
                    };
                    let (output, mut records) = (output.unwrap_or(own), self.records());
                    records.record(cursor, action, status, output, None, entered_at)
                }
                (ScopeKind::FollowUp, Some(action)) => {
                    self.records().follow_up_ended(cursor, action, status, None)
                }
                _ => Ok(()),
            },
            FrameKind::Graph(_)
            | FrameKind::Try(_)
            | FrameKind::Branch(_)
            | FrameKind::Isolated(_)
            | FrameKind::Root { .. } => Ok(()),
        }
    }

    /// Pops the top frame. The end of its scope has already been recorded.
    pub fn pop(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let timer = match &self.0.run.frame(cursor, depth)?.kind {
            FrameKind::Loop(state) => state.deadline_timer,
            FrameKind::Deadline(state) => Some(state.timer),
            _ => None,
        };
        if let Some(timer) = timer {
            self.timers().disarm(timer)?;
        }
        self.0.emit(Change::Popped(cursor, to_u32(depth)))
    }

    /// Drops the running branches of the fork at this depth.
    fn drop_branches(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let FrameKind::Fork(fork) = &self.0.run.frame(cursor, depth)?.kind else {
            return Ok(());
        };
        let running: Vec<CursorId> = fork.running_cursors().collect();
        for branch in running {
            // A branch's cursor has a larger id than its fork's. This is checked, so that a walk from fork to branch
            // ends even if a store contains something else.
            if branch <= cursor {
                return Err(Bug::new(format!("branch {} is its own fork", branch.0)));
            }
            // If the cursor left this branch by a jump, the branch's cursor was already removed.
            if self.0.run.cursors.contains_key(&branch) {
                self.cancel(branch, 1, Status::Cancelled)?;
                let mut branches = self.branches();
                branches.add_item_row(cursor, branch, Status::Cancelled)?;
                self.0.emit(Change::CursorDropped(branch))?;
            }
        }
        Ok(())
    }

    /// Cancels the wait of a cursor.
    fn cancel_wait(&mut self, cursor: CursorId, status: Status) -> MachineResult {
        match &self.0.run.cursor(cursor)?.wait {
            Wait::Effect(id) => {
                let id = *id;
                self.abort(cursor, id, status)
            }
            Wait::Timer(id) => {
                let id = *id;
                let purpose = self.0.run.timers.get(&id).map(|timer| timer.purpose);
                self.timers().disarm(id)?;
                let since = match purpose {
                    Some(TimerPurpose::Sleep) => self.0.now,
                    Some(TimerPurpose::SleepSince(since)) => since,
                    _ => return Ok(()),
                };
                let action = self.read().state_of(cursor)?.action;
                self.record_cancelled(cursor, action, status, since)
            }
            Wait::Signal(name) => {
                let name = name.clone();
                self.cancel_signal(cursor, &name, status, self.0.now)
            }
            Wait::Question(question) => {
                let (name, since) = (question.signal.clone(), question.since);
                self.cancel_signal(cursor, &name, status, since)
            }
            Wait::Ready | Wait::Branches | Wait::Budget | Wait::Faulted { .. } => Ok(()),
        }
    }

    /// Cancels the wait for a signal. The only trace of this wait is in the cursor, so the cursor must become ready.
    /// Otherwise the end of the run would cancel the wait again.
    fn cancel_signal(
        &mut self,
        cursor: CursorId,
        name: &Name,
        status: Status,
        since: Timestamp,
    ) -> MachineResult {
        self.variables().count_unanswered(name)?;
        let action = self.read().state_of(cursor)?.action;
        self.record_cancelled(cursor, action, status, since)?;
        self.0.emit(Change::Waits(cursor, Wait::Ready))
    }

    fn abort(&mut self, cursor: CursorId, id: EffectId, status: Status) -> MachineResult {
        // If the effect has already ended, its action has a record. An example is an effect whose own fault is the
        // reason for the cancel.
        let Some(effect) = self.0.run.effects.get(&id) else {
            return Ok(());
        };
        let (action, started_at) = (effect.action, effect.requested_at);
        self.0.emit(Change::EffectDropped(id))?;
        self.0.effect(Effect::Abort { id });
        self.record_cancelled(cursor, action, status, started_at)
    }

    fn record_cancelled(
        &mut self,
        cursor: CursorId,
        action: Option<ActionId>,
        status: Status,
        since: Timestamp,
    ) -> MachineResult {
        let output = Output::Value(Value::Null);
        let mut records = self.records();
        records.record(cursor, action, status, output, None, since)
    }

    /// Completes an operation that began at `since`: records its end, and moves the cursor to the next state, which is
    /// in the same scope.
    pub fn complete_step(
        &mut self,
        cursor: CursorId,
        state: &State,
        output: Output,
        since: Timestamp,
    ) -> StepResult<Next> {
        if let Some(action) = state.action {
            let output = self.read().map_step_output(cursor, action, output)?;
            let mut records = self.records();
            records.record(cursor, Some(action), Status::Succeeded, output, None, since)?;
        }
        Ok(self.move_to(cursor, state.next)?)
    }
}
