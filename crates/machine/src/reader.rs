//! Reads a run from the position of a cursor. Changes nothing.

use super::bug::{Bug, MachineResult};
use super::record::LoopEnd;
use super::state::{CursorId, ForkState, Frame, FrameKind, FrameRef, LoopState, RunState, to_u32};
use crate::program::{
    Action, ActionId, LoopSpec, Program, Scope, ScopeId, ScopeKind, State, StateId,
};
use rand::rngs::StdRng;
use std::cell::RefCell;
use windlass_expression::{Budget, Value};
use windlass_model::model::{Fault, Name, Secured};
use windlass_value::time::Timestamp;

/// A run in a transition, with its program and the time.
#[derive(Clone, Copy)]
pub(super) struct Reader<'r, 'a: 'r> {
    pub program: &'a Program,
    pub run: &'r RunState,
    pub now: Timestamp,
    /// The budget of work for all expressions of the transition.
    pub budget: &'a Budget,
    /// The generator of `rand` and `guid`, seeded at its first use.
    pub random: &'r RefCell<Option<StdRng>>,
}

/// A loop that a cursor is in.
#[derive(Clone, Copy)]
pub(super) struct LoopRef<'a> {
    pub cursor: CursorId,
    pub depth: u32,
    pub id: ScopeId,
    pub scope: &'a Scope,
    pub spec: &'a LoopSpec,
}

impl LoopRef<'_> {
    pub fn frame(&self) -> usize {
        self.depth as usize
    }

    pub fn frame_ref(&self) -> FrameRef {
        FrameRef::new(self.cursor, self.frame())
    }

    /// Returns the range of action ids in the loop's body: the first, and the end (exclusive).
    pub fn action_range(&self) -> (u32, u32) {
        (self.scope.action_range.start, self.scope.action_range.end)
    }
}

impl<'r, 'a> Reader<'r, 'a> {
    pub fn top_frame(self, cursor: CursorId) -> MachineResult<(usize, &'r Frame)> {
        let depth = self.run.cursor(cursor)?.frames.len().saturating_sub(1);
        Ok((depth, self.run.frame(cursor, depth)?))
    }

    /// Returns the depth of a scope in the frames of a cursor.
    pub fn depth_of(self, cursor: CursorId, scope: ScopeId) -> MachineResult<usize> {
        let mut frames = self.run.cursor(cursor)?.frames.iter();
        let depth = frames.rposition(|frame| frame.scope == scope);
        depth.ok_or_else(|| Bug::new(format!("cursor {} is not in {scope}", cursor.0)))
    }

    pub fn scope(self, id: ScopeId) -> MachineResult<&'a Scope> {
        let found = self.program.scope(id);
        found.ok_or_else(|| Bug::new(format!("the program has no scope {id}")))
    }

    pub fn state_of(self, cursor: CursorId) -> MachineResult<&'a State> {
        self.state(self.run.cursor(cursor)?.at)
    }

    pub fn state(self, id: StateId) -> MachineResult<&'a State> {
        let found = self.program.state(id);
        found.ok_or_else(|| Bug::new(format!("the program has no state {id}")))
    }

    /// Returns the cursor of the fork that a branch belongs to, and the branch's index.
    pub fn branch_of(self, cursor: CursorId) -> MachineResult<(CursorId, u32)> {
        let here = self.run.cursor(cursor)?;
        let index = match here.frames.first().map(|frame| &frame.kind) {
            Some(FrameKind::Branch(branch)) => Some(branch.index),
            Some(FrameKind::Isolated(branch)) => Some(branch.index),
            _ => None,
        };
        let branch = here.forked_by(cursor).zip(index);
        branch.ok_or_else(|| Bug::new(format!("cursor {} is not a branch", cursor.0)))
    }

    pub fn loop_on_top(self, cursor: CursorId) -> MachineResult<LoopRef<'a>> {
        let (depth, _) = self.top_frame(cursor)?;
        self.loop_of_frame(cursor, depth)
    }

    pub fn loop_of_frame(self, cursor: CursorId, depth: usize) -> MachineResult<LoopRef<'a>> {
        self.loop_at(cursor, depth)?
            .ok_or_else(|| not_in_loop(cursor))
    }

    /// Returns the loop at this depth; `None` if the frame is not a loop.
    pub fn loop_at(self, cursor: CursorId, depth: usize) -> MachineResult<Option<LoopRef<'a>>> {
        let id = self.run.frame(cursor, depth)?.scope;
        let scope = self.scope(id)?;
        Ok(match &scope.kind {
            ScopeKind::Loop(_, spec) => Some(LoopRef {
                cursor,
                depth: to_u32(depth),
                id,
                scope,
                spec,
            }),
            _ => None,
        })
    }

    pub fn loop_state(self, this: LoopRef<'_>) -> MachineResult<&'r LoopState> {
        match &self.run.frame(this.cursor, this.frame())?.kind {
            FrameKind::Loop(state) => Ok(state),
            _ => Err(not_in_loop(this.cursor)),
        }
    }

    pub fn is_late(self, this: LoopRef<'a>) -> MachineResult<bool> {
        let deadline = self.loop_state(this)?.deadline;
        Ok(deadline.is_some_and(|deadline| self.now >= deadline))
    }

    pub fn fork(self, cursor: CursorId) -> MachineResult<&'r ForkState> {
        match &self.top_frame(cursor)?.1.kind {
            FrameKind::Fork(fork) => Ok(fork),
            _ => Err(Bug::new(format!("cursor {} is in no fork", cursor.0))),
        }
    }

    pub fn fork_scope(self, cursor: CursorId) -> MachineResult<&'a Scope> {
        self.scope(self.top_frame(cursor)?.1.scope)
    }

    /// Returns the fault of the last failed attempt of a retried action inside the frame at this depth.
    pub fn failed_attempt(
        self,
        cursor: CursorId,
        depth: usize,
    ) -> MachineResult<Option<&'r Fault>> {
        let frames = self.run.cursor(cursor)?.frames.iter().skip(depth + 1);
        let mut tried = frames.rev().filter_map(|frame| match &frame.kind {
            FrameKind::Try(state) => state.last_fault.as_deref(),
            _ => None,
        });
        Ok(tried.next().map(|(fault, _)| fault))
    }

    /// Returns the outermost loop among the frames of a cursor from `depth` on.
    pub fn outermost_loop(
        self,
        cursor: CursorId,
        depth: usize,
    ) -> MachineResult<Option<LoopRef<'a>>> {
        let depths = depth..self.run.cursor(cursor)?.frames.len();
        let mut loops = depths.filter_map(|depth| self.loop_at(cursor, depth).transpose());
        loops.next().transpose()
    }

    /// Returns true if a scope is the body of a workflow that has an ending.
    pub fn is_body(self, scope: ScopeId) -> bool {
        let ending = self.program.ending.as_ref();
        ending.is_some_and(|ending| ending.body == scope)
    }

    /// Returns true if a cursor is in the body of a workflow that has an ending.
    pub fn is_in_body(self, cursor: CursorId) -> MachineResult<bool> {
        let here = self.state_of(cursor)?.scope;
        Ok(self.program.ancestry(here).any(|(id, _)| self.is_body(id)))
    }

    /// Returns the name under which an action is in the history. In a format that reports nodes, a step that the format
    /// added has the name of the author's node to which it belongs.
    pub fn history_name(self, action: Option<ActionId>) -> Option<Name> {
        if !self.program.rules.reports_nodes {
            return Some(self.program.action(action?)?.name.clone());
        }
        let action = self.authored_action(action?)?;
        Some(action.title.as_ref().unwrap_or(&action.name).clone())
    }

    /// Returns the authored action. For a step that the format added, this is the action that it is part of.
    pub fn authored_action(self, action: ActionId) -> Option<&'a Action> {
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

    /// Does the same as `history_name`, but returns `name` if the action does not belong to an authored node.
    pub fn display_name(self, action: Option<ActionId>, name: &Name) -> Name {
        self.history_name(action).unwrap_or_else(|| name.clone())
    }

    /// Returns true if the history must not have an action: the format added it, and reports only authored nodes.
    pub fn is_hidden(self, action: ActionId) -> bool {
        let action = self.program.action(action);
        self.program.rules.reports_nodes && action.is_some_and(|action| action.anonymous)
    }

    /// Returns which parts of an action are secure.
    pub fn secured_parts(self, action: Option<ActionId>) -> Secured {
        let action = action.and_then(|action| self.program.action(action));
        action.map(|action| action.secure).unwrap_or_default()
    }

    /// Makes a value secure if the inputs or the outputs of the action are secure. Use this only for actions without a
    /// call, whose input and output are the same value.
    pub fn seal_if_secure(self, state: &State, value: Value) -> Value {
        let secured = self.secured_parts(state.action);
        match secured.inputs || secured.outputs {
            true => value.secure(),
            false => value,
        }
    }

    /// Returns the name of a loop in the history.
    pub fn reported_loop(self, scope: &Scope) -> Name {
        self.display_name(scope.action, &scope.name)
    }

    /// Returns why a loop ended, in the words of its format.
    pub fn exit_reason(self, loop_type: &Name, end: LoopEnd) -> Name {
        let mut words = self.program.rules.exit_words.iter();
        let own = words.find(|(kind, reason, _)| *kind == &**loop_type && *reason == end.as_str());
        Name::from(own.map_or(end.as_str(), |(_, _, word)| word))
    }
}

fn not_in_loop(cursor: CursorId) -> Bug {
    Bug::new(format!("cursor {} is in no loop there", cursor.0))
}

/// Describes the fault of an attempt, for the message of a timeout.
pub fn describe_attempt(fault: Option<&Fault>) -> String {
    let described = fault.map(|fault| format!("; an attempt had failed: {}", fault.message));
    described.unwrap_or_default()
}
