//! Foreach, parallel and DAGs: one frame with branches, each a cursor of its own. A branch may work
//! on variables of its own: then its fork gets nothing of it but its result.
//!
//! A branch that fails never cuts the others: a foreach starts no new ones (unless it survives
//! failure, as Azure's does), the rest of a DAG is skipped or not as its `runAfter` says, and the
//! fork fails when all that run have ended.

use super::advance::Stepper;
use super::change::Change;
use super::evaluate::Faulty;
use super::event::IterationRow;
use super::fault::{Raised, status_of};
use super::movement::narrow;
use super::record::{Output, Reading, Records};
use super::state::{
    BranchOutcome, BranchState, Cursor, CursorId, ForkState, Frame, FrameKind, RunError, Wait,
};
use crate::expression::Value;
use crate::model::{Fault, Name, Status, fault_kind};
use crate::program::{DagNode, Scope, ScopeId, ScopeKind};

/// As many items as a foreach takes (Azure's limit is the same).
const MAX_ITEMS: usize = 100_000;

/// What a branch has to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing: it works on what its fork works on.
    Shared,
    /// An item, and records.
    Item,
    /// Variables, and records.
    Apart,
}

impl<'a> Stepper<'a> {
    pub fn enter_fork(&mut self, cursor: CursorId, id: ScopeId, scope: &'a Scope) -> Faulty<()> {
        let (items, branches) = match &scope.kind {
            ScopeKind::ForEach { items, .. } => {
                let items = self.eval(cursor, items)?.shared_out();
                let length = items.as_array().map(Vec::len);
                let Some(length) = length.filter(|length| *length <= MAX_ITEMS) else {
                    return Err(bad_items(scope, &items, length));
                };
                (items, length)
            }
            ScopeKind::Parallel { branches, .. } => (Value::Null, branches.len()),
            ScopeKind::Dag { nodes } => (Value::Null, nodes.len()),
            _ => (Value::Null, 0),
        };
        let fork = ForkState {
            items,
            branches: vec![BranchState::Pending; branches],
            started: 0,
            running: 0,
            closed: false,
        };
        self.push(cursor, id, FrameKind::Fork(fork));
        self.emit(Change::Waits(cursor, Wait::Branches));
        self.pump(cursor);
        Ok(())
    }

    /// Starts what can start; ends the fork when nothing runs and nothing can.
    fn pump(&mut self, cursor: CursorId) {
        let program = self.program;
        let Some((_, frame)) = self.top(cursor) else {
            return;
        };
        let Some(scope) = program.scope(frame.scope) else {
            return;
        };
        match &scope.kind {
            ScopeKind::ForEach {
                concurrency,
                branch,
                ..
            } => {
                while let Some(index) = self.next_item(cursor, *concurrency) {
                    self.spawn(cursor, *branch, index, Kind::Item);
                }
            }
            ScopeKind::Parallel { branches, apart } => {
                let kind = if *apart { Kind::Apart } else { Kind::Shared };
                for (index, (_, branch)) in branches.iter().enumerate() {
                    let index = narrow(index);
                    if self.branch(cursor, index) == Some(&BranchState::Pending) {
                        self.spawn(cursor, *branch, index, kind);
                    }
                }
            }
            ScopeKind::Dag { nodes } => self.pump_dag(cursor, nodes),
            _ => return,
        }
        if self.fork(cursor).is_some_and(|fork| fork.running == 0) {
            self.end_fork(cursor, scope);
        }
    }

    fn next_item(&self, cursor: CursorId, concurrency: u32) -> Option<u32> {
        let fork = self.fork(cursor)?;
        let more = (fork.started as usize) < fork.branches.len();
        (more && !fork.closed && fork.running < concurrency).then_some(fork.started)
    }

    fn spawn(&mut self, parent: CursorId, branch: ScopeId, index: u32, kind: Kind) {
        let Some(scope) = self.program.scope(branch) else {
            return;
        };
        let Some((depth, frame)) = self.top(parent) else {
            return;
        };
        let item = match &frame.kind {
            FrameKind::Fork(fork) => {
                let items = fork.items.as_array();
                items
                    .and_then(|items| items.get(index as usize))
                    .cloned()
                    .unwrap_or_default()
            }
            _ => Value::Null,
        };
        let id = CursorId(self.run.next_id);
        let owns_records = kind != Kind::Shared;
        let kind = match kind {
            Kind::Item | Kind::Shared => FrameKind::Branch { index, item },
            // Applied, the variables are a copy.
            Kind::Apart => FrameKind::Apart {
                index,
                variables: Value::Null,
            },
        };
        self.emit(Change::CursorSpawned(
            id,
            Cursor {
                at: scope.body,
                parent: Some(parent),
                wait: Wait::Ready,
                frames: vec![Frame {
                    scope: branch,
                    kind,
                    entered_at: self.now,
                }],
                records: Records::new(),
                owns_records,
            },
        ));
        let depth = narrow(depth);
        self.emit(Change::BranchStarted {
            cursor: parent,
            depth,
            index,
            branch: id,
        });
    }

    /// `Op::Join`: a branch is done.
    pub fn join(&mut self, cursor: CursorId) {
        let Some((parent, index)) = self.branch_of(cursor) else {
            return;
        };
        if self.is_foreach(parent) && !self.may_cross(parent, cursor) {
            return;
        }
        let outcome = BranchOutcome {
            status: Status::Succeeded,
            error: None,
            records: Records::new(),
        };
        self.branch_ended(parent, index, outcome);
    }

    /// A fault reached the bottom of a branch.
    pub fn branch_failed(&mut self, cursor: CursorId, error: RunError) {
        let Some((parent, index)) = self.branch_of(cursor) else {
            return;
        };
        if self.is_foreach(parent) && !self.may_cross(parent, cursor) {
            return self.defer(cursor, error, Raised::Through);
        }
        let fork = self.fork_kind(parent);
        // What waits for an action of a DAG asks how that action ended, not why.
        let node = match fork {
            Some(ScopeKind::Dag { nodes }) => nodes.get(index as usize),
            _ => None,
        };
        let status = node.and_then(|node| self.status_of_action(parent, node));
        let status = status.unwrap_or_else(|| status_of(&error.fault));
        let closes = matches!(
            fork,
            Some(ScopeKind::ForEach {
                survives_failure: false,
                ..
            })
        );
        if closes && let Some((depth, _)) = self.top(parent) {
            self.emit(Change::ForkClosed {
                cursor: parent,
                depth: narrow(depth),
            });
        }
        let outcome = BranchOutcome {
            status,
            error: Some(error),
            records: Records::new(),
        };
        self.branch_ended(parent, index, outcome);
    }

    fn fork_kind(&self, cursor: CursorId) -> Option<&'a ScopeKind> {
        let program = self.program;
        let (_, frame) = self.top(cursor)?;
        program.scope(frame.scope).map(|scope| &scope.kind)
    }

    fn is_foreach(&self, cursor: CursorId) -> bool {
        matches!(self.fork_kind(cursor), Some(ScopeKind::ForEach { .. }))
    }

    fn branch_ended(&mut self, parent: CursorId, index: u32, outcome: BranchOutcome) {
        let Some((depth, _)) = self.top(parent) else {
            return;
        };
        let depth = narrow(depth);
        self.map_row(parent, index, outcome.status);
        self.emit(Change::BranchEnded {
            cursor: parent,
            depth,
            index,
            outcome,
        });
        self.pump(parent);
    }

    /// The iterations of a map stay in the history as those of a loop do (spec: canvas.md).
    fn map_row(&mut self, parent: CursorId, index: u32, status: Status) {
        let program = self.program;
        let scope = self.top(parent).map(|(_, frame)| frame.scope);
        let Some(scope) = scope.and_then(|scope| program.scope(scope)) else {
            return;
        };
        let label = scope.action.and_then(|action| program.action(action));
        let is_map = label.is_some_and(|action| &*action.label == "map");
        let Some(BranchState::Running(branch)) = self.branch(parent, index).filter(|_| is_map)
        else {
            return;
        };
        let Some(branch) = self.run.cursors.get(branch) else {
            return;
        };
        let reading = Reading {
            program,
            variables: self.run.variables_of(parent),
            records: &branch.records,
            row: true,
        };
        let row = IterationRow {
            path: self.view(parent).path_of(&scope.name),
            iteration: u64::from(index),
            condition: None,
            status,
            result: reading.bounded(&scope.children),
            started_at: branch
                .frames
                .first()
                .map_or(self.now, |frame| frame.entered_at),
            ended_at: self.now,
        };
        self.out.iterations.push(row);
    }

    // ── DAGs ────────────────────────────────────────────────────────────────────────────────

    /// An action starts when every predecessor ended in one of the listed statuses, and is
    /// skipped when one did not (spec: loom.md, "Order inside a scope").
    fn pump_dag(&mut self, cursor: CursorId, nodes: &'a [DagNode]) {
        let mut moved = true;
        while moved {
            moved = false;
            for (index, node) in nodes.iter().enumerate() {
                let place = narrow(index);
                if self.branch(cursor, place) != Some(&BranchState::Pending) {
                    continue;
                }
                let verdict = node.after.iter().try_fold(true, |runs, (before, wanted)| {
                    let ended = self.dag_status(cursor, *before)?;
                    Some(runs && wanted.contains(&ended))
                });
                match verdict {
                    Some(true) => {
                        self.spawn(cursor, node.branch, place, Kind::Shared);
                        moved = true;
                    }
                    Some(false) => {
                        self.skip(cursor, place, node);
                        moved = true;
                    }
                    // A predecessor has not ended.
                    None => {}
                }
            }
        }
    }

    fn dag_status(&self, cursor: CursorId, index: usize) -> Option<Status> {
        match self.fork(cursor)?.branches.get(index)? {
            BranchState::Ended(outcome) => Some(outcome.status),
            BranchState::Pending | BranchState::Running(_) => None,
        }
    }

    fn skip(&mut self, cursor: CursorId, index: u32, node: &DagNode) {
        let output = Output::Value(Value::Null);
        self.record(cursor, node.action, Status::Skipped, output, None, self.now);
        let Some((depth, _)) = self.top(cursor) else {
            return;
        };
        let depth = narrow(depth);
        let outcome = BranchOutcome {
            status: Status::Skipped,
            error: None,
            records: Records::new(),
        };
        self.emit(Change::BranchEnded {
            cursor,
            depth,
            index,
            outcome,
        });
    }

    /// The failure of a DAG: that of a last action, or, where that was skipped, of what it waited
    /// for. A failure that another action took care of by its `runAfter` is none.
    fn dag_failure(&self, cursor: CursorId, nodes: &[DagNode]) -> Option<RunError> {
        let fork = self.fork(cursor)?;
        let waited_for: Vec<usize> = nodes
            .iter()
            .flat_map(|node| node.after.iter().map(|(index, _)| *index))
            .collect();
        let mut open: Vec<usize> = (0..nodes.len())
            .filter(|index| !waited_for.contains(index))
            .collect();
        let mut seen = vec![false; nodes.len()];
        let mut failures = Vec::new();
        while let Some(index) = open.pop() {
            if seen
                .get_mut(index)
                .is_none_or(|seen| std::mem::replace(seen, true))
            {
                continue;
            }
            let Some(BranchState::Ended(outcome)) = fork.branches.get(index) else {
                continue;
            };
            match outcome.status {
                Status::Skipped => {
                    let after = nodes.get(index).map(|node| node.after.as_slice());
                    open.extend(after.unwrap_or_default().iter().map(|(before, _)| *before));
                }
                Status::Succeeded => {}
                Status::Failed | Status::TimedOut | Status::Cancelled => {
                    failures.push((index, outcome.error.clone()));
                }
            }
        }
        failures.sort_by_key(|(index, _)| *index);
        failures.into_iter().find_map(|(index, error)| {
            let mut error = error?;
            if let Some(why) = self.half_handled(fork, nodes, index) {
                error.fault.message.push_str(&why);
            }
            Some(error)
        })
    }

    /// What to say of a failure that one action took care of, while another that waited for its
    /// success was skipped, so that it counts all the same.
    fn half_handled(&self, fork: &ForkState, nodes: &[DagNode], index: usize) -> Option<String> {
        let status = |at: usize| match fork.branches.get(at) {
            Some(BranchState::Ended(outcome)) => Some(outcome.status),
            _ => None,
        };
        let failed = status(index)?;
        let named = |takes: bool, ended: Status| {
            let mut nodes = nodes.iter().enumerate();
            let found = nodes.find(|(at, node)| {
                let mut after = node.after.iter();
                let wanted = after.find(|(before, _)| *before == index);
                wanted.is_some_and(|(_, wanted)| wanted.contains(&failed) == takes)
                    && status(*at) == Some(ended)
            });
            found.map(|(at, _)| at)
        };
        let name = |at: usize| Some(&self.program.action(nodes.get(at)?.action)?.name);
        let handler = named(true, Status::Succeeded)?;
        let skipped = named(false, Status::Skipped)?;
        let ends: Option<Vec<String>> = last_behind(nodes, &[handler, skipped])
            .into_iter()
            .map(|at| Some(format!("{}: [Succeeded, Skipped]", name(at)?)))
            .collect();
        Some(format!(
            "; it was handled by `{}`, but `{}` was skipped because of it: end with an action that \
             takes both, runAfter: {{ {} }}",
            name(handler)?,
            name(skipped)?,
            ends?.join(", ")
        ))
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    fn end_fork(&mut self, cursor: CursorId, scope: &'a Scope) {
        let error = match &scope.kind {
            ScopeKind::Dag { nodes } => self.dag_failure(cursor, nodes),
            _ => self.first_failure(cursor),
        };
        self.close_fork(cursor, scope, error);
    }

    /// `break_when` in a foreach: the iterations that ended are its result.
    pub fn break_fork(&mut self, cursor: CursorId) {
        let program = self.program;
        let scope = self.top(cursor).map(|(_, frame)| frame.scope);
        if let Some(scope) = scope.and_then(|scope| program.scope(scope)) {
            self.close_fork(cursor, scope, None);
        }
    }

    fn close_fork(&mut self, cursor: CursorId, scope: &'a Scope, error: Option<RunError>) {
        let Some((depth, _)) = self.top(cursor) else {
            return;
        };
        let (output, error) = match (error, self.fork_output(cursor, scope)) {
            (Some(error), _) => (None, Some(error)),
            (None, Ok(output)) => (output, None),
            (None, Err(fault)) => (None, Some(self.located_at(cursor, scope.action, fault))),
        };
        let status = if error.is_some() {
            Status::Failed
        } else {
            Status::Succeeded
        };
        self.record_fork(cursor, depth, scope, status, output, error.as_ref());
        self.pop(cursor, depth);
        match error {
            None => self.emit(Change::Moved(cursor, scope.exit)),
            Some(error) => self.raise(cursor, error, Raised::Through),
        }
    }

    /// What the step of a fork makes of its output, when it makes anything of it.
    fn fork_output(&self, cursor: CursorId, scope: &'a Scope) -> Faulty<Option<Value>> {
        let template = scope.action.and_then(|action| self.shape_of(action));
        let own = match (&scope.kind, template) {
            // Its branches took their records with them.
            (ScopeKind::Parallel { apart: true, .. }, _) => self.results(cursor, scope),
            (_, None) => return Ok(None),
            (ScopeKind::ForEach { .. }, Some(_)) => self.results(cursor, scope),
            (ScopeKind::Parallel { branches, .. }, Some(_)) => {
                self.read(cursor, &self.branches(branches))
            }
            (_, Some(_)) => Value::Null,
        };
        match template {
            Some(template) => self.shape(cursor, template, &own).map(Some),
            None => Ok(Some(own)),
        }
    }

    /// The results of the branches that ended and had records of their own, in order.
    fn results(&self, cursor: CursorId, scope: &'a Scope) -> Value {
        let branches = self.fork(cursor).map(|fork| fork.branches.as_slice());
        let results = branches.unwrap_or_default().iter().filter_map(|branch| {
            let BranchState::Ended(outcome) = branch else {
                return None;
            };
            let reading = Reading {
                program: self.program,
                variables: self.run.variables_of(cursor),
                records: &outcome.records,
                row: false,
            };
            Some(reading.actions(&scope.children))
        });
        Value::array(results.collect())
    }

    /// The record of the fork at this depth; a DAG has none.
    pub fn record_fork(
        &mut self,
        cursor: CursorId,
        depth: usize,
        scope: &'a Scope,
        status: Status,
        output: Option<Value>,
        error: Option<&RunError>,
    ) {
        let Some(action) = scope.action else { return };
        let Some(frame) = self.frame(cursor, depth) else {
            return;
        };
        let entered_at = frame.entered_at;
        let error = error.map(|error| error.fault.without_output());
        match &scope.kind {
            ScopeKind::ForEach { .. } => {
                let home = self.run.home(cursor);
                let message = error.as_ref().map(|fault| fault.message.clone());
                self.emit(Change::ForEachRecorded {
                    cursor,
                    depth: narrow(depth),
                    home,
                    action,
                    body: scope.children.clone(),
                    status,
                    error,
                    output,
                    at: self.now,
                });
                self.note_end(action, status, message);
            }
            ScopeKind::Parallel { branches, apart } => {
                let output = match output {
                    Some(output) => Output::Value(output),
                    None if *apart => Output::Value(Value::Null),
                    None => self.branches(branches),
                };
                self.record(cursor, action, status, output, error, entered_at);
            }
            _ => {}
        }
    }

    fn branches(&self, branches: &[(Name, ScopeId)]) -> Output {
        let named = branches.iter().map(|(name, branch)| {
            let scope = self.program.scope(*branch);
            let children = scope.map(|scope| scope.children.clone());
            (name.clone(), children.unwrap_or_default())
        });
        Output::Branches(named.collect())
    }

    fn first_failure(&self, cursor: CursorId) -> Option<RunError> {
        self.fork(cursor)?
            .branches
            .iter()
            .find_map(|branch| match branch {
                BranchState::Ended(outcome) => outcome.error.clone(),
                BranchState::Pending | BranchState::Running(_) => None,
            })
    }

    fn status_of_action(&self, cursor: CursorId, node: &DagNode) -> Option<Status> {
        let home = self.run.cursors.get(&self.run.home(cursor))?;
        home.records.get(&node.action).map(|record| record.status)
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    fn fork(&self, cursor: CursorId) -> Option<&ForkState> {
        match &self.top(cursor)?.1.kind {
            FrameKind::Fork(fork) => Some(fork),
            _ => None,
        }
    }

    fn branch(&self, cursor: CursorId, index: u32) -> Option<&BranchState> {
        self.fork(cursor)?.branches.get(index as usize)
    }
}

fn bad_items(scope: &Scope, items: &Value, length: Option<usize>) -> Fault {
    let name = &scope.name;
    let message = match length {
        Some(length) => format!("foreach `{name}` takes {MAX_ITEMS} items at most, not {length}"),
        None => format!("foreach `{name}` needs an array, not {}", items.kind()),
    };
    Fault::new(fault_kind::EXPRESSION, message)
}

/// The last actions of what comes after these, themselves where nothing does: in that order.
fn last_behind(nodes: &[DagNode], from: &[usize]) -> Vec<usize> {
    let behind = |at: usize| {
        let waits = move |node: &DagNode| node.after.iter().any(|(before, _)| *before == at);
        (0..nodes.len()).filter(move |next| nodes.get(*next).is_some_and(waits))
    };
    let (mut last, mut seen) = (Vec::new(), Vec::from(from));
    let mut open: Vec<usize> = from.iter().rev().copied().collect();
    while let Some(at) = open.pop() {
        if behind(at).next().is_none() {
            last.push(at);
        }
        for next in behind(at) {
            if !seen.contains(&next) {
                seen.push(next);
                open.push(next);
            }
        }
    }
    last
}
