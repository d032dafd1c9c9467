//! The movement rule: `go` pops frames until the target's scope is on top. And what a popped
//! frame leaves behind: its timers are disarmed, its effects aborted, its branches dropped, and
//! whatever was open in it gets its last record.

use super::advance::Stepper;
use super::change::Change;
use super::evaluate::Faulty;
use super::event::{Effect, Happening};
use super::record::Output;
use super::state::{
    BranchOutcome, CursorId, EffectId, Frame, FrameKind, PendingTimer, TimerId, TimerPurpose, Wait,
};
use crate::expression::Value;
use crate::model::{Dialect, Fault, Name, Secured, Status};
use crate::program::{ActionId, Op, ScopeId, ScopeKind, State, StateId};
use crate::time::Timestamp;

impl<'a> Stepper<'a> {
    /// Stands a cursor at `target`, popping frames until the target's scope is on top. Out of a
    /// branch, the cursor that forked it moves instead and the other branches are dropped.
    pub fn go(&mut self, cursor: CursorId, target: StateId) {
        let Some(scope) = self.program.state(target).map(|state| state.scope) else {
            return;
        };
        let mut at = cursor;
        while let Some(here) = self.run.cursors.get(&at) {
            if let Some(depth) = here.frames.iter().rposition(|frame| frame.scope == scope) {
                self.close_frames(at, depth + 1, Status::Succeeded);
                if at != cursor {
                    // Into the fork itself: `break_when` in a foreach.
                    self.drop_branches(at, depth);
                }
                return self.emit(Change::Moved(at, target));
            }
            let Some(parent) = here.forked_by(at) else {
                return;
            };
            self.leave_branch(at, parent, scope);
            at = parent;
        }
    }

    /// A jump leads out of this branch. An iteration of the foreach that it ends was its last
    /// and counts; any other branch is gone with what it was part of.
    fn leave_branch(&mut self, cursor: CursorId, parent: CursorId, target: ScopeId) {
        self.close_frames(cursor, 1, Status::Succeeded);
        let place = self.branch_of(cursor).zip(self.top(parent));
        if let Some(((_, index), (depth, frame))) = place
            && frame.scope == target
        {
            let outcome = BranchOutcome {
                status: Status::Succeeded,
                error: None,
                records: super::Records::new(),
            };
            return self.emit(Change::BranchEnded {
                cursor: parent,
                depth: narrow(depth),
                index,
                outcome,
            });
        }
        self.emit(Change::CursorDropped(cursor));
    }

    /// Cuts what a cursor does, down to `keep` frames: what is open in them ends with `status`.
    pub fn cut(&mut self, cursor: CursorId, keep: usize, status: Status) {
        self.cut_wait(cursor, status);
        self.close_frames(cursor, keep, status);
    }

    /// Pops frames, innermost first, until `keep` are left.
    fn close_frames(&mut self, cursor: CursorId, keep: usize, status: Status) {
        let Some(here) = self.run.cursors.get(&cursor) else {
            return;
        };
        let frames = here.frames.len();
        if frames <= keep {
            return;
        }
        for depth in (keep..frames).rev() {
            self.close_frame(cursor, depth, status);
        }
        self.emit(Change::Popped(cursor, narrow(keep)));
    }

    fn close_frame(&mut self, cursor: CursorId, depth: usize, status: Status) {
        let Some(frame) = self.frame(cursor, depth) else {
            return;
        };
        let (id, entered_at) = (frame.scope, frame.entered_at);
        match &frame.kind {
            FrameKind::Loop(_) => self.loop_cut(cursor, depth),
            FrameKind::Deadline { timer, .. } => {
                let timer = *timer;
                self.disarm(timer);
            }
            FrameKind::Fork(_) => {
                self.drop_branches(cursor, depth);
                if let Some(scope) = self.program.scope(id) {
                    self.record_fork(cursor, depth, scope, status, None, None);
                }
            }
            FrameKind::Plain => {
                let scope = self.program.scope(id);
                let block = scope.filter(|scope| matches!(scope.kind, ScopeKind::Block));
                if let Some((scope, action)) =
                    block.and_then(|scope| scope.action.map(|action| (scope, action)))
                {
                    let own = Output::Actions(scope.children.clone());
                    // A block that is left before its end may have nothing to make its output of.
                    let output = match status {
                        Status::Succeeded => self.shaped(cursor, action, own.clone()),
                        _ => Ok(own.clone()),
                    };
                    let output = output.unwrap_or(own);
                    self.record(cursor, action, status, output, None, entered_at);
                }
            }
            FrameKind::Graph { .. }
            | FrameKind::Try(_)
            | FrameKind::Branch { .. }
            | FrameKind::Apart { .. }
            | FrameKind::Root { .. } => {}
        }
    }

    /// Pops the frame on top, whose end is recorded already.
    pub fn pop(&mut self, cursor: CursorId, depth: usize) {
        let timer = match self.frame(cursor, depth).map(|frame| &frame.kind) {
            Some(FrameKind::Loop(state)) => state.deadline_timer,
            Some(FrameKind::Deadline { timer, .. }) => Some(*timer),
            _ => None,
        };
        timer.into_iter().for_each(|timer| self.disarm(timer));
        self.emit(Change::Popped(cursor, narrow(depth)));
    }

    /// Drops the branches of the fork at this depth that run.
    fn drop_branches(&mut self, cursor: CursorId, depth: usize) {
        let running: Vec<CursorId> = match self.frame(cursor, depth).map(|frame| &frame.kind) {
            // A branch is younger than its fork. A store that was tampered with may say another, and who
            // goes from fork to branch must come to an end.
            Some(FrameKind::Fork(fork)) => {
                let running = fork.running_cursors();
                running.filter(|branch| *branch > cursor).collect()
            }
            _ => return,
        };
        for branch in running {
            if self.run.cursors.contains_key(&branch) {
                self.cut(branch, 0, Status::Cancelled);
                self.emit(Change::CursorDropped(branch));
            }
        }
    }

    /// What a cursor waits for is of no interest any more.
    fn cut_wait(&mut self, cursor: CursorId, status: Status) {
        let Some(here) = self.run.cursors.get(&cursor) else {
            return;
        };
        match &here.wait {
            Wait::Effect(id) => {
                let id = *id;
                self.abort(cursor, id, status);
            }
            Wait::Timer(id) => {
                let id = *id;
                let sleeps = self
                    .run
                    .timers
                    .get(&id)
                    .is_some_and(|timer| timer.purpose == TimerPurpose::Sleep);
                self.disarm(id);
                if sleeps {
                    self.record_cut(cursor, status);
                }
            }
            Wait::Signal(_) => self.record_cut(cursor, status),
            Wait::Ready | Wait::Branches | Wait::Budget | Wait::Faulted { .. } => {}
        }
    }

    fn abort(&mut self, cursor: CursorId, id: EffectId, status: Status) {
        let Some(effect) = self.run.effects.get(&id) else {
            return;
        };
        let (action, started_at) = (effect.action, effect.requested_at);
        self.emit(Change::EffectDropped(id));
        self.effect(Effect::Abort { id });
        if let Some(action) = action {
            let nothing = Output::Value(Default::default());
            self.record(cursor, action, status, nothing, None, started_at);
        }
    }

    fn record_cut(&mut self, cursor: CursorId, status: Status) {
        if let Some(action) = self.state_of(cursor).and_then(|state| state.action) {
            let nothing = Output::Value(Default::default());
            self.record(cursor, action, status, nothing, None, self.now);
        }
    }

    pub fn arm(&mut self, cursor: CursorId, due_at: Timestamp, purpose: TimerPurpose) -> TimerId {
        let id = TimerId(self.run.next_id);
        self.emit(Change::TimerArmed(
            id,
            PendingTimer {
                cursor,
                due_at,
                purpose,
            },
        ));
        self.effect(Effect::Arm { id, due_at });
        id
    }

    pub fn disarm(&mut self, id: TimerId) {
        if self.run.timers.contains_key(&id) {
            self.emit(Change::TimerDropped(id));
            self.effect(Effect::Disarm { id });
        }
    }

    // ── records ─────────────────────────────────────────────────────────────────────────────

    /// An operation is done: its record, and on to what follows, which is in the same scope.
    pub fn done(&mut self, cursor: CursorId, state: &State, output: Output) -> Faulty<()> {
        if let Some(action) = state.action {
            let output = self.shaped(cursor, action, output)?;
            self.record(cursor, action, Status::Succeeded, output, None, self.now);
        }
        self.emit(Change::Moved(cursor, state.next));
        Ok(())
    }

    pub fn record(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        output: Output,
        error: Option<Fault>,
        started_at: Timestamp,
    ) {
        let secured = self.secured(Some(action));
        let output = match output {
            Output::Value(value) if secured.inputs || secured.outputs => {
                Output::Value(value.secure())
            }
            output => output,
        };
        let home = self.run.home(cursor);
        let at = self.now;
        let message = error.as_ref().map(|fault| fault.message.clone());
        let calls = self
            .state_of(cursor)
            .is_some_and(|state| state.action == Some(action) && matches!(state.op, Op::Call(_)));
        // What was told to have started is told to have ended.
        if calls || !self.is_hidden(action) {
            self.note_end(action, status, message);
        }
        self.emit(Change::Recorded {
            home,
            action,
            status,
            output,
            error,
            started_at,
            at,
        });
    }

    /// The history tells of what did not succeed; what did is told by what follows.
    pub fn note_end(&mut self, action: ActionId, status: Status, error: Option<String>) {
        if status != Status::Succeeded
            && let Some(node_name) = self.told(Some(action))
        {
            self.note(Happening::ActionEnded {
                node_name,
                status,
                error,
            });
        }
    }

    /// What the history calls an action. In TEA it is the node that people wrote: a step of the
    /// format's own goes by the name of the node that it is part of.
    pub fn told(&self, action: Option<ActionId>) -> Option<Name> {
        let mut action = self.program.action(action?)?;
        while self.program.dialect == Dialect::Tea && action.anonymous {
            let mut scope = self.program.scope(action.scope);
            while let Some(inside) = scope.filter(|scope| scope.action.is_none()) {
                scope = self.program.scope(inside.parent?);
            }
            action = self.program.action(scope?.action?)?;
        }
        match &action.title {
            Some(title) if self.program.dialect == Dialect::Tea => Some(title.clone()),
            _ => Some(action.name.clone()),
        }
    }

    /// Whether an action is of the format's own and nothing that people would look for.
    fn is_hidden(&self, action: ActionId) -> bool {
        let action = self.program.action(action);
        self.program.dialect == Dialect::Tea && action.is_some_and(|action| action.anonymous)
    }

    /// What of an action nobody is to see.
    pub fn secured(&self, action: Option<ActionId>) -> Secured {
        let action = action.and_then(|action| self.program.action(action));
        action.map(|action| action.secure).unwrap_or_default()
    }

    /// What an action that calls nothing gives: it is what it was given.
    pub fn hidden(&self, state: &State, value: Value) -> Value {
        let secured = self.secured(state.action);
        match secured.inputs || secured.outputs {
            true => value.secure(),
            false => value,
        }
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    pub fn top(&self, cursor: CursorId) -> Option<(usize, &Frame)> {
        let frames = &self.run.cursors.get(&cursor)?.frames;
        frames.last().map(|frame| (frames.len() - 1, frame))
    }

    pub fn frame(&self, cursor: CursorId, depth: usize) -> Option<&Frame> {
        self.run.cursors.get(&cursor)?.frames.get(depth)
    }

    pub fn state_of(&self, cursor: CursorId) -> Option<&'a State> {
        let program = self.program;
        program.state(self.run.cursors.get(&cursor)?.at)
    }

    /// The fork a branch's cursor belongs to, and its index there.
    pub fn branch_of(&self, cursor: CursorId) -> Option<(CursorId, u32)> {
        let here = self.run.cursors.get(&cursor)?;
        match here.frames.first().map(|frame| &frame.kind) {
            Some(FrameKind::Branch { index, .. } | FrameKind::Apart { index, .. }) => {
                Some((here.forked_by(cursor)?, *index))
            }
            _ => None,
        }
    }
}

/// A depth as changes carry it.
pub(super) fn narrow(depth: usize) -> u32 {
    u32::try_from(depth).unwrap_or(u32::MAX)
}
