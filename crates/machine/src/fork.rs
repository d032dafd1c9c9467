//! Foreach, parallel and DAGs: one frame with branches, each a cursor of its own. A branch may be
//! isolated, with variables of its own: then its fork gets nothing of it but its result.
//!
//! A branch that fails never cancels the others: a foreach starts no new ones (unless its `on_error`
//! says so), the rest of a DAG is skipped or not as its `runAfter` says, and the
//! fork fails when all that run have ended.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult, StepResult};
use super::change::Change;
use super::evaluate::EvalResult;
use super::event::{HistoryKind, IterationRow};
use super::fault::error_value;
use super::movement::{branch_outcome, depth_to_u32};
use super::record::{LoopEnd, Output, Records};
use super::retry::RaisedAt;
use super::state::{
    BranchState, Cursor, CursorId, ForkState, Frame, FrameKind, IsolatedState, ItemState, RunError,
    Wait,
};
use crate::program::{DagNode, Scope, ScopeId, ScopeKind, StateId};
use std::collections::BTreeSet;
use windlass_expression::{Template, Value};
use windlass_model::model::{Fault, Name, OnError, Status, fault_kind};
use windlass_value::time::Timestamp;

/// As many items as a foreach takes (Azure's limit is the same).
const MAX_ITEMS: usize = 100_000;

/// Items of a foreach may share a checkpoint when each of their actions left no more than this many bytes.
const LIGHT_ITEM_BYTES: usize = 1 << 10;

/// What a branch has to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchIsolation {
    /// Nothing: it works on what its fork works on.
    Nothing,
    /// An item, and records.
    Item,
    /// Variables, and records.
    Variables,
}

impl<'a> Stepper<'a> {
    pub fn enter_fork(&mut self, cursor: CursorId, id: ScopeId, scope: &'a Scope) -> StepResult {
        let (items, branches) = match &scope.kind {
            ScopeKind::ForEach { items, count, .. } => {
                let items = self.eval(cursor, items)?.into_shared();
                let length = items.as_array().map(Vec::len);
                let Some(length) = length.filter(|length| *length <= MAX_ITEMS) else {
                    return Err(invalid_items(scope, &items, length).into());
                };
                match count {
                    Some(count) => self.first_items(cursor, scope, items, count)?,
                    None => (items, length),
                }
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
        self.push(cursor, id, FrameKind::Fork(fork))?;
        self.emit(Change::Waits(cursor, Wait::Branches))?;
        Ok(self.schedule_branches(cursor, None)?)
    }

    /// The items that a limit leaves, and how many. A limit never passes silently.
    fn first_items(
        &mut self,
        cursor: CursorId,
        scope: &'a Scope,
        items: Value,
        count: &Template,
    ) -> EvalResult<(Value, usize)> {
        let count = usize::try_from(self.eval_count(cursor, count)?).unwrap_or(usize::MAX);
        let all = items.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.len() <= count {
            let length = all.len();
            return Ok((items, length));
        }
        self.report(HistoryKind::LoopLimit {
            node_name: self.reported_loop(scope),
            path: self.view(cursor).path_of(&scope.name),
            limit: LoopEnd::Count,
        });
        let first = all.iter().take(count).cloned().collect();
        Ok((Value::array(first), count))
    }

    /// Starts what can start, at the beginning or after the end of a branch; ends the fork when nothing runs and
    /// nothing can.
    fn schedule_branches(&mut self, cursor: CursorId, over: Option<u32>) -> MachineResult {
        let scope = self.fork_scope(cursor)?;
        match &scope.kind {
            ScopeKind::ForEach {
                concurrency,
                branch,
                ..
            } => {
                while let Some(index) = self.fork(cursor)?.next_item(*concurrency) {
                    self.spawn(cursor, *branch, index, BranchIsolation::Item)?;
                }
            }
            ScopeKind::Parallel { .. } if over.is_some() => {}
            ScopeKind::Parallel { branches, isolated } => {
                let own = if *isolated {
                    BranchIsolation::Variables
                } else {
                    BranchIsolation::Nothing
                };
                for (index, (_, branch)) in (0..).zip(branches) {
                    if self.fork(cursor)?.is_pending(index) {
                        self.spawn(cursor, *branch, index, own)?;
                    }
                }
            }
            ScopeKind::Dag { nodes } => self.schedule_dag(cursor, nodes, over)?,
            _ => return Err(Bug::new(format!("scope `{}` is not a fork", scope.name))),
        }
        match self.fork(cursor)?.running {
            0 => self.end_fork(cursor, scope),
            _ => Ok(()),
        }
    }

    fn spawn(
        &mut self,
        parent: CursorId,
        branch: ScopeId,
        index: u32,
        own: BranchIsolation,
    ) -> MachineResult {
        let scope = self.scope(branch)?;
        let (depth, _) = self.top_frame(parent)?;
        let id = CursorId(self.run.next_id);
        let kind = match own {
            BranchIsolation::Item | BranchIsolation::Nothing => FrameKind::Branch(ItemState {
                index,
                item: self.fork(parent)?.item(index),
            }),
            // Applied, the variables are a copy.
            BranchIsolation::Variables => FrameKind::Isolated(IsolatedState {
                index,
                variables: Value::Null,
            }),
        };
        let cursor = Cursor {
            owns_records: own != BranchIsolation::Nothing,
            ..branch_cursor(parent, branch, scope.body, kind, self.now)
        };
        self.emit(Change::CursorSpawned(id, cursor))?;
        self.emit(Change::BranchStarted {
            cursor: parent,
            depth: depth_to_u32(depth),
            index,
            branch: id,
        })
    }

    /// Whether an item may end in this transition. Those that leave little share a checkpoint, so that many
    /// short ones do not wait for the disk one by one.
    fn item_may_end(&mut self, parent: CursorId, cursor: CursorId) -> MachineResult<bool> {
        let mut records = self.run.cursor(cursor)?.records.values();
        let light = records.all(|record| record.fits_in_bytes(LIGHT_ITEM_BYTES));
        Ok(self.try_cross_boundary(parent, cursor, !light))
    }

    /// `Op::Join`: a branch is done.
    pub fn join(&mut self, cursor: CursorId) -> MachineResult {
        let (parent, index) = self.branch_of(cursor)?;
        match self.is_foreach(parent)? && !self.item_may_end(parent, cursor)? {
            true => Ok(()),
            false => self.branch_ended(parent, index, Status::Succeeded, None),
        }
    }

    /// A fault reached the bottom of a branch.
    pub fn branch_failed(&mut self, cursor: CursorId, error: RunError) -> MachineResult {
        let (parent, index) = self.branch_of(cursor)?;
        if self.is_foreach(parent)? && !self.try_cross_boundary(parent, cursor, true) {
            return self.defer_fault(cursor, error, RaisedAt::Through);
        }
        let mut status = error.fault.status();
        match &self.fork_scope(parent)?.kind {
            // What waits for an action of a DAG asks how that action ended, not why.
            ScopeKind::Dag { nodes } => {
                let records = self.run.records_of(parent)?;
                let node = nodes.get(index as usize);
                let record = node.and_then(|node| records.get(&node.action));
                // One that succeeded and whose jump cannot be computed has failed all the same.
                let record = record.filter(|record| record.status != Status::Succeeded);
                status = record.map_or(status, |record| record.status);
            }
            ScopeKind::ForEach {
                on_error: OnError::Stop,
                ..
            } => {
                let (cursor, depth) = (parent, depth_to_u32(self.top_frame(parent)?.0));
                self.emit(Change::ForkClosed { cursor, depth })?;
            }
            _ => {}
        }
        self.branch_ended(parent, index, status, Some(error))
    }

    fn branch_ended(
        &mut self,
        parent: CursorId,
        index: u32,
        status: Status,
        error: Option<RunError>,
    ) -> MachineResult {
        if let Some(BranchState::Running(branch)) = self.fork(parent)?.branches.get(index as usize)
        {
            self.item_row(parent, *branch, status)?;
        }
        self.emit(Change::BranchEnded {
            cursor: parent,
            depth: depth_to_u32(self.top_frame(parent)?.0),
            index,
            outcome: branch_outcome(status, error),
        })?;
        self.schedule_branches(parent, Some(index))
    }

    /// The items of a foreach have rows, as the iterations of a loop do.
    pub fn item_row(
        &mut self,
        parent: CursorId,
        branch: CursorId,
        status: Status,
    ) -> MachineResult {
        let frame = self.run.frame(branch, 0)?;
        let FrameKind::Branch(item) = &frame.kind else {
            return Ok(());
        };
        let (index, started_at) = (item.index, frame.entered_at);
        let fork = self.scope(frame.scope)?.parent;
        let Some(scope) = fork.and_then(|fork| self.program.scope(fork)) else {
            return Ok(());
        };
        if !matches!(scope.kind, ScopeKind::ForEach { .. }) {
            return Ok(());
        }
        let reading = self.reading(&self.run.cursor(branch)?.records);
        let row = IterationRow {
            path: self.view(parent).path_of(&scope.name),
            iteration: u64::from(index),
            condition: None,
            status,
            result: reading.bounded(&scope.children),
            started_at,
            ended_at: self.now,
        };
        self.out.iterations.push(row);
        Ok(())
    }

    // ── DAGs ────────────────────────────────────────────────────────────────────────────────

    /// An action starts when every predecessor ended in one of the listed statuses, and is
    /// skipped when one did not (docs/reference/loom.md).
    /// Starts or skips the nodes that wait for nothing any more, in the order of the file, again and again. Only
    /// those can be ready that waited for the one that ended; without one, it is the beginning.
    fn schedule_dag(
        &mut self,
        cursor: CursorId,
        nodes: &'a [DagNode],
        over: Option<u32>,
    ) -> MachineResult {
        let waited_by = |index: u32| nodes.get(index as usize).map(|node| &node.waited_by);
        let mut candidates: BTreeSet<usize> = match over {
            None => (0..nodes.len()).collect(),
            Some(over) => waited_by(over).into_iter().flatten().copied().collect(),
        };
        let mut from = 0;
        while let Some(at) = candidates
            .range(from..)
            .next()
            .or(candidates.first())
            .copied()
        {
            candidates.remove(&at);
            from = at;
            let (Some(node), index) = (nodes.get(at), depth_to_u32(at)) else {
                continue;
            };
            let fork = self.fork(cursor)?;
            if !fork.is_pending(index) {
                continue;
            }
            let verdict = node.after.iter().try_fold(true, |runs, (before, wanted)| {
                let ended = fork.branch_status(*before)?;
                Some(runs && wanted.contains(&ended))
            });
            match verdict {
                Some(true) => self.spawn(cursor, node.branch, index, BranchIsolation::Nothing)?,
                Some(false) => {
                    self.skip(cursor, index, node)?;
                    candidates.extend(&node.waited_by);
                }
                // A predecessor has not ended.
                None => {}
            }
        }
        Ok(())
    }

    fn skip(&mut self, cursor: CursorId, index: u32, node: &DagNode) -> MachineResult {
        let (status, output) = (Status::Skipped, Output::Value(Value::Null));
        self.record(cursor, node.action, status, output, None, self.now)?;
        self.emit(Change::BranchEnded {
            cursor,
            depth: depth_to_u32(self.top_frame(cursor)?.0),
            index,
            outcome: branch_outcome(status, None),
        })
    }

    /// The failure of a DAG: that of a last action, or, where that was skipped, of what it waited
    /// for. A failure that another action took care of by its `runAfter` is none.
    fn dag_failure(&self, fork: &ForkState, nodes: &[DagNode]) -> Option<RunError> {
        let last = |(index, node): (usize, &DagNode)| node.waited_by.is_empty().then_some(index);
        let mut open: Vec<usize> = nodes.iter().enumerate().filter_map(last).collect();
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
            if let Some(why) = self.half_handled_message(fork, nodes, index) {
                error.fault.message.push_str(&why);
            }
            Some(error)
        })
    }

    /// What to say of a failure that one action took care of, while another that waited for its
    /// success was skipped, so that it counts all the same.
    fn half_handled_message(
        &self,
        fork: &ForkState,
        nodes: &[DagNode],
        index: usize,
    ) -> Option<String> {
        let failed = fork.branch_status(index)?;
        let named = |takes: bool, ended: Status| {
            let mut nodes = nodes.iter().enumerate();
            let found = nodes.find(|(at, node)| {
                let mut after = node.after.iter();
                let wanted = after.find(|(before, _)| *before == index);
                wanted.is_some_and(|(_, wanted)| wanted.contains(&failed) == takes)
                    && fork.branch_status(*at) == Some(ended)
            });
            found.map(|(at, _)| at)
        };
        let name = |at: usize| Some(&self.program.action(nodes.get(at)?.action)?.name);
        let handler = named(true, Status::Succeeded)?;
        let skipped = named(false, Status::Skipped)?;
        let ends: Option<Vec<String>> = last_successors(nodes, &[handler, skipped])
            .into_iter()
            .map(|at| Some(format!("{}: [Succeeded, Skipped]", name(at)?)))
            .collect();
        Some(format!(
            "; it was handled by `{}`, but `{}` was skipped because of it: end with an action that \
             accepts both, runAfter: {{ {} }}",
            name(handler)?,
            name(skipped)?,
            ends?.join(", ")
        ))
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    fn end_fork(&mut self, cursor: CursorId, scope: &'a Scope) -> MachineResult {
        let fork = self.fork(cursor)?;
        let error = match &scope.kind {
            ScopeKind::Dag { nodes } => self.dag_failure(fork, nodes),
            ScopeKind::ForEach {
                on_error: OnError::Continue,
                ..
            } => None,
            _ => fork.first_failure(),
        };
        self.close_fork(cursor, scope, error)
    }

    /// `break_when` in a foreach: the iterations that ended are its result.
    pub fn break_fork(&mut self, cursor: CursorId) -> MachineResult {
        let scope = self.fork_scope(cursor)?;
        self.close_fork(cursor, scope, None)
    }

    fn close_fork(
        &mut self,
        cursor: CursorId,
        scope: &'a Scope,
        error: Option<RunError>,
    ) -> MachineResult {
        let (depth, _) = self.top_frame(cursor)?;
        let (output, error) = match (error, self.fork_output(cursor, scope)?) {
            (Some(error), _) => (None, Some(error)),
            (None, Ok(output)) => (output, None),
            (None, Err(fault)) => (
                None,
                Some(self.locate_fault_at(cursor, scope.action, fault)),
            ),
        };
        let status = match error {
            Some(_) => Status::Failed,
            None => Status::Succeeded,
        };
        self.record_fork_end(cursor, depth, scope, status, output, error.as_ref())?;
        self.pop(cursor, depth)?;
        match error {
            None => self.emit(Change::Moved(cursor, scope.exit)),
            Some(error) => self.raise(cursor, error, RaisedAt::Through),
        }
    }

    /// What the step of a fork makes of its output, when it makes anything of it.
    fn fork_output(
        &self,
        cursor: CursorId,
        scope: &'a Scope,
    ) -> MachineResult<EvalResult<Option<Value>>> {
        let mapping = scope.action.and_then(|action| self.mapping_of(action));
        let own = match (&scope.kind, mapping) {
            // Its branches took their records with them.
            (ScopeKind::Parallel { isolated: true, .. }, _) => self.results(cursor, scope)?,
            (
                ScopeKind::ForEach {
                    on_error: OnError::Continue,
                    ..
                },
                _,
            ) => self.results_and_failed(cursor, scope)?,
            (_, None) => return Ok(Ok(None)),
            (ScopeKind::ForEach { .. }, Some(_)) => self.results(cursor, scope)?,
            (ScopeKind::Parallel { branches, .. }, Some(_)) => {
                self.read(cursor, &self.branches(branches))
            }
            (_, Some(_)) => Value::Null,
        };
        Ok(match mapping {
            Some(template) => self.map_output(cursor, template, &own).map(Some),
            None => Ok(Some(own)),
        })
    }

    /// The results of all items that ended, null for one that failed, and what failed.
    fn results_and_failed(&self, cursor: CursorId, scope: &'a Scope) -> MachineResult<Value> {
        let fork = self.fork(cursor)?;
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        for (index, branch) in (0..).zip(&fork.branches) {
            let BranchState::Ended(outcome) = branch else {
                continue;
            };
            let Some(error) = &outcome.error else {
                results.push(self.reading(&outcome.records).actions(&scope.children));
                continue;
            };
            results.push(Value::Null);
            failed.push(Value::from_pairs([
                ("index", Value::from(i64::from(index))),
                ("item", fork.item(index)),
                ("error", error_value(error, false)),
            ]));
        }
        Ok(Value::from_pairs([
            ("results", Value::array(results)),
            ("failed", Value::array(failed)),
        ]))
    }

    /// What the record of a foreach says that succeeded although items of it failed, or items of a foreach in
    /// one of its own.
    fn failed_items(&self, cursor: CursorId, scope: &Scope) -> MachineResult<Option<Fault>> {
        let fork = self.fork(cursor)?;
        let ended = fork.branches.iter().filter_map(|branch| match branch {
            BranchState::Ended(outcome) => Some(outcome),
            BranchState::Pending | BranchState::Running(_) => None,
        });
        let (failed, others): (Vec<_>, Vec<_>) = ended.partition(|one| one.error.is_some());
        let records = others.iter().flat_map(|one| one.records.values());
        let within: Vec<&Fault> = records.filter_map(|record| record.failed_items()).collect();
        let count_of = |fault: &Fault| fault.code.as_ref()?.parse::<usize>().ok();
        let count: usize = within.iter().filter_map(|fault| count_of(fault)).sum();
        let name = &scope.name;
        let within = within.first().map(|first| {
            let message = &first.message;
            format!("in the items of `{name}` {count} items failed; {message}")
        });
        let all = fork.branches.len();
        let own = fork.first_failure().map(|first| {
            let (failed, why) = (failed.len(), first.fault.message);
            format!("{failed} of {all} items of `{name}` failed, the first with: {why}")
        });
        let told: Vec<String> = own.into_iter().chain(within).collect();
        let fault = Fault::new(fault_kind::ITEMS, told.join("; "));
        Ok((!told.is_empty()).then(|| fault.code(failed.len() + count)))
    }

    /// The results of the branches that ended and had records of their own, in order.
    fn results(&self, cursor: CursorId, scope: &'a Scope) -> MachineResult<Value> {
        let branches = self.fork(cursor)?.branches.iter();
        let results = branches.filter_map(|branch| match branch {
            BranchState::Ended(outcome) => {
                let reading = self.reading(&outcome.records);
                Some(reading.actions(&scope.children))
            }
            BranchState::Pending | BranchState::Running(_) => None,
        });
        Ok(Value::array(results.collect()))
    }

    /// The record of the fork at this depth; a DAG has none.
    pub fn record_fork_end(
        &mut self,
        cursor: CursorId,
        depth: usize,
        scope: &'a Scope,
        status: Status,
        output: Option<Value>,
        error: Option<&RunError>,
    ) -> MachineResult {
        let Some(action) = scope.action else {
            return Ok(());
        };
        let entered_at = self.run.frame(cursor, depth)?.entered_at;
        let error = error.map(|error| error.fault.without_output());
        match &scope.kind {
            ScopeKind::ForEach { .. } => {
                let error = match error {
                    None => self.failed_items(cursor, scope)?,
                    error => error,
                };
                self.emit(Change::ForEachRecorded {
                    cursor,
                    depth: depth_to_u32(depth),
                    owner: self.run.record_owner(cursor),
                    action,
                    body: scope.children.clone(),
                    status,
                    error: error.clone(),
                    output,
                    at: self.now,
                })?;
                self.report_end(cursor, action, status, error.as_ref())
            }
            ScopeKind::Parallel { branches, isolated } => {
                let output = match output {
                    Some(output) => Output::Value(output),
                    None if *isolated => Output::Value(Value::Null),
                    None => self.branches(branches),
                };
                self.record(cursor, action, status, output, error, entered_at)
            }
            _ => Ok(()),
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

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    fn fork(&self, cursor: CursorId) -> MachineResult<&ForkState> {
        match &self.top_frame(cursor)?.1.kind {
            FrameKind::Fork(fork) => Ok(fork),
            _ => Err(Bug::new(format!("cursor {} is in no fork", cursor.0))),
        }
    }

    fn fork_scope(&self, cursor: CursorId) -> MachineResult<&'a Scope> {
        self.scope(self.top_frame(cursor)?.1.scope)
    }

    fn is_foreach(&self, cursor: CursorId) -> MachineResult<bool> {
        let scope = self.fork_scope(cursor)?;
        Ok(matches!(scope.kind, ScopeKind::ForEach { .. }))
    }
}

/// A cursor at the beginning of a branch, with records of its own.
pub(super) fn branch_cursor(
    parent: CursorId,
    branch: ScopeId,
    at: StateId,
    kind: FrameKind,
    now: Timestamp,
) -> Cursor {
    Cursor {
        at,
        parent: Some(parent),
        wait: Wait::Ready,
        frames: vec![Frame {
            scope: branch,
            kind,
            entered_at: now,
        }],
        records: Records::new(),
        owns_records: true,
    }
}

impl ForkState {
    fn is_pending(&self, index: u32) -> bool {
        self.branches.get(index as usize) == Some(&BranchState::Pending)
    }

    /// How a branch ended, if it has.
    fn branch_status(&self, index: usize) -> Option<Status> {
        match self.branches.get(index)? {
            BranchState::Ended(outcome) => Some(outcome.status),
            BranchState::Pending | BranchState::Running(_) => None,
        }
    }

    fn first_failure(&self) -> Option<RunError> {
        self.branches.iter().find_map(|branch| match branch {
            BranchState::Ended(outcome) => outcome.error.clone(),
            BranchState::Pending | BranchState::Running(_) => None,
        })
    }

    pub(super) fn next_item(&self, concurrency: u32) -> Option<u32> {
        if self.closed || self.running >= concurrency {
            return None;
        }
        // In a run that continues with the items that failed, those between have ended.
        let mut rest = (self.started..).zip(self.branches.iter().skip(self.started as usize));
        let next = rest.find(|(_, branch)| **branch == BranchState::Pending);
        next.map(|(index, _)| index)
    }

    pub(super) fn item(&self, index: u32) -> Value {
        let items = self.items.as_array();
        let item = items.and_then(|items| items.get(index as usize));
        item.cloned().unwrap_or_default()
    }
}

fn invalid_items(scope: &Scope, items: &Value, length: Option<usize>) -> Fault {
    let name = &scope.name;
    let message = match length {
        Some(length) => format!("foreach `{name}` accepts at most {MAX_ITEMS} items, not {length}"),
        None => format!("foreach `{name}` needs an array, not {}", items.kind()),
    };
    Fault::new(fault_kind::EXPRESSION, message)
}

/// The last actions of what comes after these, themselves where nothing does: in that order.
fn last_successors(nodes: &[DagNode], from: &[usize]) -> Vec<usize> {
    let (mut last, mut seen) = (Vec::new(), BTreeSet::from_iter(from.iter().copied()));
    let mut open: Vec<usize> = from.iter().rev().copied().collect();
    while let Some(at) = open.pop() {
        let behind = nodes.get(at).map_or(&[][..], |node| &node.waited_by);
        if behind.is_empty() {
            last.push(at);
        }
        open.extend(behind.iter().filter(|next| seen.insert(**next)));
    }
    last
}
