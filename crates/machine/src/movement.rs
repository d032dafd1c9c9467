//! The movement rule: `jump_to` pops frames until the target's scope is on top. And what a popped
//! frame leaves behind: its timers are disarmed, its effects aborted, its branches dropped, and
//! whatever was open in it gets its last record.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult, StepResult};
use super::change::Change;
use super::event::{Effect, HistoryKind};
use super::record::{Output, Records};
use super::state::{
    BranchOutcome, CursorId, DeadlineState, EffectId, Frame, FrameKind, PendingTimer, TimerId,
    TimerPurpose, Wait,
};
use crate::program::{Action, ActionId, Op, Scope, ScopeId, ScopeKind, State, StateId};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Secured, Status};
use windlass_value::time::Timestamp;

impl<'a> Stepper<'a> {
    /// Moves a cursor to `target`, popping frames until the target's scope is on top. Out of a
    /// branch, the cursor that forked it moves instead and the other branches are dropped.
    pub fn jump_to(&mut self, cursor: CursorId, target: StateId) -> MachineResult {
        let state = self.program.state(target);
        let state = state.ok_or_else(|| Bug::new(format!("the program has no state {target}")))?;
        let mut at = cursor;
        loop {
            let here = self.run.cursor(at)?;
            let mut frames = here.frames.iter();
            if let Some(depth) = frames.rposition(|frame| frame.scope == state.scope) {
                self.close_frames(at, depth + 1, Status::Succeeded)?;
                if at != cursor {
                    // Into the fork itself: `break_when` in a foreach.
                    self.drop_branches(at, depth)?;
                }
                return self.emit(Change::Moved(at, target));
            }
            at = self.leave_branch(at, state.scope)?;
        }
    }

    /// A jump leads out of this branch. An iteration of the foreach that it ends was its last
    /// and counts; any other branch is gone with what it was part of. Returns the fork's cursor.
    fn leave_branch(&mut self, cursor: CursorId, target: ScopeId) -> MachineResult<CursorId> {
        self.close_frames(cursor, 1, Status::Succeeded)?;
        let (parent, index) = self.branch_of(cursor)?;
        let (depth, frame) = self.top_frame(parent)?;
        if frame.scope != target {
            self.emit(Change::CursorDropped(cursor))?;
            return Ok(parent);
        }
        self.item_row(parent, cursor, Status::Succeeded)?;
        self.emit(Change::BranchEnded {
            cursor: parent,
            depth: depth_to_u32(depth),
            index,
            outcome: branch_outcome(Status::Succeeded, None),
        })?;
        Ok(parent)
    }

    /// Cancels what a cursor does, down to `keep` frames: what is open in them ends with `status`.
    pub fn cancel(&mut self, cursor: CursorId, keep: usize, status: Status) -> MachineResult {
        self.cancel_wait(cursor, status)?;
        self.close_frames(cursor, keep, status)
    }

    /// Pops frames, innermost first, until `keep` are left. Each one before the next is closed: the end of an action
    /// is not reported as inside of what was in it.
    fn close_frames(&mut self, cursor: CursorId, keep: usize, status: Status) -> MachineResult {
        let frames = self.run.cursor(cursor)?.frames.len();
        for depth in (keep..frames).rev() {
            self.close_frame(cursor, depth, status)?;
            self.emit(Change::Popped(cursor, depth_to_u32(depth)))?;
        }
        Ok(())
    }

    fn close_frame(&mut self, cursor: CursorId, depth: usize, status: Status) -> MachineResult {
        let frame = self.run.frame(cursor, depth)?;
        let (scope, entered_at) = (self.scope(frame.scope)?, frame.entered_at);
        match &frame.kind {
            FrameKind::Loop(_) => self.loop_cancelled(cursor, depth),
            FrameKind::Deadline(DeadlineState { timer, .. }) => {
                let timer = *timer;
                self.disarm(timer)
            }
            FrameKind::Fork(_) => {
                self.drop_branches(cursor, depth)?;
                self.record_fork_end(cursor, depth, scope, status, None, None)
            }
            FrameKind::Plain => match (&scope.kind, scope.action) {
                (ScopeKind::Block, Some(action)) => {
                    let own = Output::Actions(scope.children.clone());
                    // A block that is left before its end may have nothing to make its output of.
                    let output = match status {
                        Status::Succeeded => self.map_step_output(cursor, action, own.clone()),
                        _ => Ok(own.clone()),
                    };
                    let output = output.unwrap_or(own);
                    self.record(cursor, action, status, output, None, entered_at)
                }
                (ScopeKind::FollowUp, Some(action)) => {
                    self.follow_up_ended(cursor, action, status, None)
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

    /// A call had ended well, and what followed it as a part of it did not: the whole did not.
    pub fn follow_up_ended(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        fault: Option<Fault>,
    ) -> MachineResult {
        let Some(record) = self.run.records_of(cursor)?.get(&action) else {
            return Ok(());
        };
        if status == Status::Succeeded || record.status != Status::Succeeded {
            return Ok(());
        }
        let (output, started_at) = (record.output.clone(), record.started_at);
        self.record(cursor, action, status, output, fault, started_at)
    }

    /// Pops the frame on top, whose end is recorded already.
    pub fn pop(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let timer = match &self.run.frame(cursor, depth)?.kind {
            FrameKind::Loop(state) => state.deadline_timer,
            FrameKind::Deadline(state) => Some(state.timer),
            _ => None,
        };
        if let Some(timer) = timer {
            self.disarm(timer)?;
        }
        self.emit(Change::Popped(cursor, depth_to_u32(depth)))
    }

    /// Drops the branches of the fork at this depth that run.
    fn drop_branches(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let FrameKind::Fork(fork) = &self.run.frame(cursor, depth)?.kind else {
            return Ok(());
        };
        let running: Vec<CursorId> = fork.running_cursors().collect();
        for branch in running {
            // Who goes from fork to branch must come to an end, whatever a store says.
            if branch <= cursor {
                return Err(Bug::new(format!("branch {} is its own fork", branch.0)));
            }
            // The branch that a jump left is gone already.
            if self.run.cursors.contains_key(&branch) {
                self.cancel(branch, 1, Status::Cancelled)?;
                self.item_row(cursor, branch, Status::Cancelled)?;
                self.emit(Change::CursorDropped(branch))?;
            }
        }
        Ok(())
    }

    /// What a cursor waits for no longer matters.
    fn cancel_wait(&mut self, cursor: CursorId, status: Status) -> MachineResult {
        match &self.run.cursor(cursor)?.wait {
            Wait::Effect(id) => {
                let id = *id;
                self.abort(cursor, id, status)
            }
            Wait::Timer(id) => {
                let id = *id;
                let purpose = self.run.timers.get(&id).map(|timer| timer.purpose);
                self.disarm(id)?;
                match purpose {
                    Some(TimerPurpose::Sleep) => self.record_cancelled(cursor, status, self.now),
                    Some(TimerPurpose::SleepSince(since)) => {
                        self.record_cancelled(cursor, status, since)
                    }
                    _ => Ok(()),
                }
            }
            Wait::Signal(name) => {
                let name = name.clone();
                self.signal_wait_cancelled(cursor, &name, status, self.now)
            }
            Wait::Question(asked) => {
                let (name, since) = (asked.signal.clone(), asked.since);
                self.signal_wait_cancelled(cursor, &name, status, since)
            }
            Wait::Ready | Wait::Branches | Wait::Budget | Wait::Faulted { .. } => Ok(()),
        }
    }

    /// Nothing but the cursor says that it waits for a signal: it must not, or the end of the run would cancel the
    /// wait again.
    fn signal_wait_cancelled(
        &mut self,
        cursor: CursorId,
        name: &Name,
        status: Status,
        since: Timestamp,
    ) -> MachineResult {
        self.count_unanswered(name)?;
        self.record_cancelled(cursor, status, since)?;
        self.emit(Change::Waits(cursor, Wait::Ready))
    }

    fn abort(&mut self, cursor: CursorId, id: EffectId, status: Status) -> MachineResult {
        // One that has ended has its record: its fault is what cancels the rest.
        let Some(effect) = self.run.effects.get(&id) else {
            return Ok(());
        };
        let (action, started_at) = (effect.action, effect.requested_at);
        self.emit(Change::EffectDropped(id))?;
        self.effect(Effect::Abort { id });
        match action {
            Some(action) => self.record(cursor, action, status, NOTHING, None, started_at),
            None => Ok(()),
        }
    }

    fn record_cancelled(
        &mut self,
        cursor: CursorId,
        status: Status,
        since: Timestamp,
    ) -> MachineResult {
        match self.state_of(cursor)?.action {
            Some(action) => self.record(cursor, action, status, NOTHING, None, since),
            None => Ok(()),
        }
    }

    pub fn arm(
        &mut self,
        cursor: CursorId,
        due_at: Timestamp,
        purpose: TimerPurpose,
    ) -> MachineResult<TimerId> {
        let id = TimerId(self.run.next_id);
        self.emit(Change::TimerArmed(
            id,
            PendingTimer {
                cursor,
                due_at,
                purpose,
            },
        ))?;
        self.effect(Effect::Arm { id, due_at });
        Ok(id)
    }

    /// One that has fired is gone already.
    pub fn disarm(&mut self, id: TimerId) -> MachineResult {
        if let Some(timer) = self.run.timers.get(&id) {
            let due_at = timer.due_at;
            self.emit(Change::TimerDropped(id))?;
            self.effect(Effect::Disarm { id, due_at });
        }
        Ok(())
    }

    // ── records ─────────────────────────────────────────────────────────────────────────────

    /// An operation is done: its record, and on to what follows, which is in the same scope.
    pub fn complete_step(&mut self, cursor: CursorId, state: &State, output: Output) -> StepResult {
        self.complete_step_since(cursor, state, output, self.now)
    }

    /// The same of one that took its time.
    pub fn complete_step_since(
        &mut self,
        cursor: CursorId,
        state: &State,
        output: Output,
        since: Timestamp,
    ) -> StepResult {
        if let Some(action) = state.action {
            let output = self.map_step_output(cursor, action, output)?;
            self.record(cursor, action, Status::Succeeded, output, None, since)?;
        }
        Ok(self.emit(Change::Moved(cursor, state.next))?)
    }

    pub fn record(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        output: Output,
        error: Option<Fault>,
        started_at: Timestamp,
    ) -> MachineResult {
        let state = self.state_of(cursor)?;
        let calls = state.action == Some(action) && matches!(state.op, Op::Call(..));
        // What was reported as started is reported as ended.
        if calls || !self.is_hidden(action) {
            self.report_end(cursor, action, status, error.as_ref())?;
        }
        let secured = self.secured_parts(Some(action));
        let output = match output {
            Output::Value(value) if secured.inputs || secured.outputs => {
                Output::Value(value.secure())
            }
            output => output,
        };
        self.emit(Change::Recorded {
            owner: self.run.record_owner(cursor),
            action,
            status,
            output,
            error,
            started_at,
            at: self.now,
        })
    }

    pub fn report_end(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        error: Option<&Fault>,
    ) -> MachineResult {
        // The end of a loop reports its success.
        let told = |name: &Name| match self.out.history.last().map(|event| &event.what) {
            Some(HistoryKind::LoopEnd { node_name, .. }) => node_name == name,
            _ => false,
        };
        let name = self.history_name(Some(action));
        if let Some(node_name) = name.filter(|name| status != Status::Succeeded || !told(name)) {
            let (path, iteration) = self.view(cursor).innermost_iteration().unzip();
            self.report(HistoryKind::ActionEnded {
                node_name,
                status,
                error: error.map(|fault| fault.message.clone()),
                attempt: self.view(cursor).current_attempt(),
                path,
                iteration,
            });
        }
        Ok(())
    }

    /// What the history calls an action. Where it reports nodes, it is the node that people wrote: a
    /// step of the format's own goes by the name of the node that it is part of.
    pub fn history_name(&self, action: Option<ActionId>) -> Option<Name> {
        if !self.program.rules.reports_nodes {
            return Some(self.program.action(action?)?.name.clone());
        }
        let action = self.authored_action(action?)?;
        Some(action.title.as_ref().unwrap_or(&action.name).clone())
    }

    /// The action that people wrote: the one that a step of the format's own is part of.
    pub fn authored_action(&self, action: ActionId) -> Option<&'a Action> {
        let mut action = self.program.action(action)?;
        while action.anonymous {
            let mut scope = self.program.scope(action.scope);
            while let Some(inside) = scope.filter(|scope| scope.action.is_none()) {
                scope = self.program.scope(inside.parent?);
            }
            action = self.program.action(scope?.action?)?;
        }
        Some(action)
    }

    /// The same; `name` for what is part of nothing that people wrote.
    pub fn display_name(&self, action: Option<ActionId>, name: &Name) -> Name {
        self.history_name(action).unwrap_or_else(|| name.clone())
    }

    /// Whether an action is of the format's own and nothing that people would look for.
    fn is_hidden(&self, action: ActionId) -> bool {
        let action = self.program.action(action);
        self.program.rules.reports_nodes && action.is_some_and(|action| action.anonymous)
    }

    /// Which parts of an action are secure.
    pub fn secured_parts(&self, action: Option<ActionId>) -> Secured {
        let action = action.and_then(|action| self.program.action(action));
        action.map(|action| action.secure).unwrap_or_default()
    }

    /// What an action that calls nothing gives: it is what it was given.
    pub fn seal_if_secure(&self, state: &State, value: Value) -> Value {
        let secured = self.secured_parts(state.action);
        match secured.inputs || secured.outputs {
            true => value.secure(),
            false => value,
        }
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    pub fn top_frame(&self, cursor: CursorId) -> MachineResult<(usize, &Frame)> {
        let depth = self.run.cursor(cursor)?.frames.len().saturating_sub(1);
        Ok((depth, self.run.frame(cursor, depth)?))
    }

    pub fn scope(&self, id: ScopeId) -> MachineResult<&'a Scope> {
        let found = self.program.scope(id);
        found.ok_or_else(|| Bug::new(format!("the program has no scope {id}")))
    }

    pub fn state_of(&self, cursor: CursorId) -> MachineResult<&'a State> {
        let at = self.run.cursor(cursor)?.at;
        let found = self.program.state(at);
        found.ok_or_else(|| Bug::new(format!("the program has no state {at}")))
    }

    /// The fork a branch's cursor belongs to, and its index there.
    pub fn branch_of(&self, cursor: CursorId) -> MachineResult<(CursorId, u32)> {
        let here = self.run.cursor(cursor)?;
        let index = match here.frames.first().map(|frame| &frame.kind) {
            Some(FrameKind::Branch(branch)) => Some(branch.index),
            Some(FrameKind::Isolated(branch)) => Some(branch.index),
            _ => None,
        };
        let branch = here.forked_by(cursor).zip(index);
        branch.ok_or_else(|| Bug::new(format!("cursor {} is not a branch", cursor.0)))
    }
}

const NOTHING: Output = Output::Value(Value::Null);

/// The outcome of a branch; its records are added when it is applied.
pub(super) fn branch_outcome(
    status: Status,
    error: Option<super::state::RunError>,
) -> BranchOutcome {
    BranchOutcome {
        status,
        error,
        records: Records::new(),
    }
}

/// A depth as changes carry it.
pub(super) fn depth_to_u32(depth: usize) -> u32 {
    u32::try_from(depth).unwrap_or(u32::MAX)
}
