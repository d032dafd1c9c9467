//! Forks: foreach, parallel and DAG. A fork is a frame with branches, and each branch has a cursor of its own. An
//! isolated branch also has variables of its own, and only its result is passed to the fork. Only parallel branches of
//! The Edge Agent are isolated.
//!
//! A branch that fails never cancels the others.
//! After a failure, a foreach with [`OnError::Stop`] starts no new items, and in a DAG, `runAfter` decides which of the
//! other nodes are skipped. The fork itself fails after all running branches have ended.

use super::bug::{Bug, MachineResult, StepResult};
use super::failure::error_value;
use super::reader::Reader;
use super::record::{LoopEnd, Output};
use super::retry::FaultOrigin;
use super::state::{BranchState, CursorId, ForkState, FrameKind, FrameRef, RunError, to_u32};
use super::transition::{BranchIsolation, ForkHandler, Next, branches_output};
use crate::program::{DagNode, Program, Scope, ScopeId, ScopeKind};
use std::collections::BTreeSet;
use windlass_expression::{Template, Value};
use windlass_model::model::{Fault, OnError, Status, fault_kind};

/// Maximum number of items of a foreach. Logic Apps has the same limit.
const MAX_ITEMS: usize = 100_000;

/// Several items of a foreach may end in one checkpoint, if each record of their actions has at most this many bytes.
const LIGHT_ITEM_BYTES: usize = 1 << 10;

impl<'a> ForkHandler<'_, 'a> {
    pub fn enter(&mut self, cursor: CursorId, id: ScopeId, scope: &'a Scope) -> StepResult<Next> {
        let (items, branches) = match &scope.kind {
            ScopeKind::ForEach { items, count, .. } => {
                let items = self.read().eval(cursor, items)?.into_shared();
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
        let mut movement = self.movement();
        movement.enter(cursor, id, FrameKind::Fork(fork))?;
        movement.wait_for_branches(cursor)?;
        Ok(self.schedule_branches(cursor, None)?)
    }

    /// Starts the branches that can start now: at the beginning of the fork, or after the branch `ended_branch` has
    /// ended. If no branch is running and none can start, ends the fork.
    fn schedule_branches(
        &mut self,
        cursor: CursorId,
        ended_branch: Option<u32>,
    ) -> MachineResult<Next> {
        let scope = self.read().fork_scope(cursor)?;
        match &scope.kind {
            ScopeKind::ForEach {
                concurrency,
                branch,
                ..
            } => {
                let isolation = BranchIsolation::Item;
                while let Some(index) = self.read().fork(cursor)?.next_item(*concurrency) {
                    self.branches().spawn(cursor, *branch, index, isolation)?;
                }
            }
            ScopeKind::Parallel { .. } if ended_branch.is_some() => {}
            ScopeKind::Parallel { branches, isolated } => {
                let isolation = match isolated {
                    true => BranchIsolation::Variables,
                    false => BranchIsolation::Shared,
                };
                for (index, (_, branch)) in (0..).zip(branches) {
                    if self.read().fork(cursor)?.is_pending(index) {
                        self.branches().spawn(cursor, *branch, index, isolation)?;
                    }
                }
            }
            ScopeKind::Dag { nodes } => self.schedule_dag(cursor, nodes, ended_branch)?,
            _ => return Err(Bug::new(format!("scope `{}` is not a fork", scope.name))),
        }
        match self.read().fork(cursor)?.running {
            0 => self.end(cursor, scope),
            _ => Ok(Next::Nothing),
        }
    }

    /// `Op::Join`: ends a branch.
    pub fn join(&mut self, cursor: CursorId) -> MachineResult<Next> {
        let (parent, index) = self.read().branch_of(cursor)?;
        match self.is_foreach(parent)? && !self.item_may_end(parent, cursor)? {
            true => Ok(Next::Nothing),
            false => self.branch_ended(parent, index, Status::Succeeded, None),
        }
    }

    fn is_foreach(&self, cursor: CursorId) -> MachineResult<bool> {
        let scope = self.read().fork_scope(cursor)?;
        Ok(matches!(scope.kind, ScopeKind::ForEach { .. }))
    }

    /// Returns true if an item may end in this transition.
    /// Several items with small records may end in one transition, so that many short items do not wait for the disk
    /// one by one.
    fn item_may_end(&mut self, parent: CursorId, cursor: CursorId) -> MachineResult<bool> {
        let mut records = self.read().run.cursor(cursor)?.records.values();
        let light = records.all(|record| record.fits_in_bytes(LIGHT_ITEM_BYTES));
        let mut branches = self.branches();
        Ok(branches.try_cross_boundary(parent, cursor, !light))
    }

    /// Ends a branch with a fault that nothing inside the branch caught. No other item of the foreach ends in the same
    /// transition.
    pub fn branch_failed(&mut self, cursor: CursorId, error: RunError) -> MachineResult<Next> {
        let (parent, index) = self.read().branch_of(cursor)?;
        if self.is_foreach(parent)? && !self.branches().try_cross_boundary(parent, cursor, true) {
            let mut movement = self.movement();
            return movement.defer_fault(cursor, error, FaultOrigin::Scope);
        }
        let mut status = error.fault.status();
        match &self.read().fork_scope(parent)?.kind {
            // In a DAG, `runAfter` compares the status of the action's record, not that of the fault.
            ScopeKind::Dag { nodes } => {
                let records = self.read().run.records_of(parent)?;
                let node = nodes.get(index as usize);
                let record = node.and_then(|node| records.get(&node.action));
                // An action may have succeeded although its branch failed, because its jump could not be computed. Then
                // the record's status is not used.
                let record = record.filter(|record| record.status != Status::Succeeded);
                status = record.map_or(status, |record| record.status);
            }
            ScopeKind::ForEach {
                on_error: OnError::Stop,
                ..
            } => {
                let (depth, _) = self.read().top_frame(parent)?;
                self.branches()
                    .stop_starting(FrameRef::new(parent, depth))?;
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
    ) -> MachineResult<Next> {
        self.branches().end(parent, index, status, error)?;
        self.schedule_branches(parent, Some(index))
    }

    // ── DAGs ────────────────────────────────────────────────────────────────────────────────

    /// Starts or skips nodes, in the order of the file, until no further node can start (docs/reference/loom.md).
    /// A node is ready when all of its predecessors have ended. It starts if each predecessor ended in one of the
    /// listed statuses; otherwise it is skipped.
    /// Checks only the nodes that waited for `ended_branch`. If this is `None`, at the beginning, checks all nodes.
    fn schedule_dag(
        &mut self,
        cursor: CursorId,
        nodes: &'a [DagNode],
        ended_branch: Option<u32>,
    ) -> MachineResult {
        let waited_by = |index: u32| nodes.get(index as usize).map(|node| &node.waited_by);
        let mut candidates: BTreeSet<usize> = match ended_branch {
            None => (0..nodes.len()).collect(),
            Some(ended_branch) => waited_by(ended_branch)
                .into_iter()
                .flatten()
                .copied()
                .collect(),
        };
        let (mut from, isolation) = (0, BranchIsolation::Shared);
        while let Some(at) = candidates
            .range(from..)
            .next()
            .or(candidates.first())
            .copied()
        {
            candidates.remove(&at);
            from = at;
            let (Some(node), index) = (nodes.get(at), to_u32(at)) else {
                continue;
            };
            let fork = self.read().fork(cursor)?;
            if !fork.is_pending(index) {
                continue;
            }
            let verdict = node.after.iter().try_fold(true, |runs, (before, wanted)| {
                let ended = fork.branch_status(*before)?;
                Some(runs && wanted.contains(&ended))
            });
            match verdict {
                Some(true) => self
                    .branches()
                    .spawn(cursor, node.branch, index, isolation)?,
                Some(false) => {
                    self.skip(cursor, index, node)?;
                    candidates.extend(&node.waited_by);
                }
                // A predecessor has not ended yet, so the node must wait.
                None => {}
            }
        }
        Ok(())
    }

    fn skip(&mut self, cursor: CursorId, index: u32, node: &DagNode) -> MachineResult {
        let (status, output) = (Status::Skipped, Output::Value(Value::Null));
        let now = self.read().now;
        let mut records = self.records();
        records.record(cursor, Some(node.action), status, output, None, now)?;
        self.branches().end(cursor, index, status, None)
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    fn end(&mut self, cursor: CursorId, scope: &'a Scope) -> MachineResult<Next> {
        let read = self.read();
        let fork = read.fork(cursor)?;
        let error = match &scope.kind {
            ScopeKind::Dag { nodes } => dag_failure(read.program, fork, nodes),
            ScopeKind::ForEach {
                on_error: OnError::Continue,
                ..
            } => None,
            _ => fork.first_failure(),
        };
        self.close(cursor, scope, error)
    }

    /// `break_when` in a foreach: ends the foreach. Its output has the results of the iterations that have ended.
    pub fn break_out(&mut self, cursor: CursorId) -> MachineResult<Next> {
        let scope = self.read().fork_scope(cursor)?;
        self.close(cursor, scope, None)
    }

    fn close(
        &mut self,
        cursor: CursorId,
        scope: &'a Scope,
        error: Option<RunError>,
    ) -> MachineResult<Next> {
        let read = self.read();
        let (depth, _) = read.top_frame(cursor)?;
        let (output, error) = match (error, fork_output(read, cursor, scope)?) {
            (Some(error), _) => (None, Some(error)),
            (None, Ok(output)) => (output, None),
            (None, Err(fault)) => {
                let error = read.locate_fault_at(cursor, scope.action, fault);
                (None, Some(error))
            }
        };
        let status = match error {
            Some(_) => Status::Failed,
            None => Status::Succeeded,
        };
        let mut branches = self.branches();
        branches.record_fork_end(cursor, depth, scope, status, output, error.as_ref())?;
        let mut movement = self.movement();
        movement.pop(cursor, depth)?;
        match error {
            None => movement.move_to(cursor, scope.exit),
            Some(error) => Ok(Next::Raise(cursor, Box::new(error), FaultOrigin::Scope)),
        }
    }

    /// Returns at most `count` items, and the number of returned items. If items are left out, reports to the history
    /// that the foreach reached a limit.
    fn first_items(
        &mut self,
        cursor: CursorId,
        scope: &'a Scope,
        items: Value,
        count: &Template,
    ) -> Result<(Value, usize), Fault> {
        let count = usize::try_from(self.read().eval_count(cursor, count)?).unwrap_or(usize::MAX);
        let all = items.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.len() <= count {
            let length = all.len();
            return Ok((items, length));
        }
        let name = self.read().reported_loop(scope);
        let path = self.read().view(cursor).path_of(&scope.name);
        let mut branches = self.branches();
        branches.report_limit(name, path, LoopEnd::Count);
        let first = all.iter().take(count).cloned().collect();
        Ok((Value::array(first), count))
    }
}

/// Returns the output of a fork if it must be computed here: for isolated branches, for `on_error: continue`, and if
/// the fork's step maps outputs. Otherwise returns `None`.
fn fork_output(
    read: Reader<'_, '_>,
    cursor: CursorId,
    scope: &Scope,
) -> MachineResult<Result<Option<Value>, Fault>> {
    let mapping = scope.action.and_then(|action| read.mapping_of(action));
    let own = match (&scope.kind, mapping) {
        // Isolated branches have records of their own, so the fork's cursor has none.
        (ScopeKind::Parallel { isolated: true, .. }, _) => results(read, cursor, scope)?,
        (
            ScopeKind::ForEach {
                on_error: OnError::Continue,
                ..
            },
            _,
        ) => results_and_failed(read, cursor, scope)?,
        (_, None) => return Ok(Ok(None)),
        (ScopeKind::ForEach { .. }, Some(_)) => results(read, cursor, scope)?,
        (ScopeKind::Parallel { branches, .. }, Some(_)) => {
            read.output_value(cursor, &branches_output(read.program, branches))
        }
        (_, Some(_)) => Value::Null,
    };
    Ok(match mapping {
        Some(template) => read.map_output(cursor, template, &own).map(Some),
        None => Ok(Some(own)),
    })
}

/// Returns the results of all ended items, with null for each failed item. Also returns the failed items with their
/// errors.
fn results_and_failed(
    read: Reader<'_, '_>,
    cursor: CursorId,
    scope: &Scope,
) -> MachineResult<Value> {
    let fork = read.fork(cursor)?;
    let (mut results, mut failed) = (Vec::new(), Vec::new());
    for (index, branch) in (0..).zip(&fork.branches) {
        let BranchState::Ended(outcome) = branch else {
            continue;
        };
        let Some(error) = &outcome.error else {
            results.push(read.reading(&outcome.records).actions(&scope.children));
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

/// Returns the results of the ended branches, in the order of the branches. These branches have records of their own.
fn results(read: Reader<'_, '_>, cursor: CursorId, scope: &Scope) -> MachineResult<Value> {
    let outcomes = read.fork(cursor)?.outcomes();
    let results = outcomes.map(|one| read.reading(&one.records).actions(&scope.children));
    Ok(Value::array(results.collect()))
}

/// Returns the failure of a DAG. A last action is one for which no other action waits. The failure is that of a last
/// action. If a last action was skipped, it is that of an action for which the last action waited. If another action
/// handled a failure by its `runAfter`, the failure is not returned.
fn dag_failure(program: &Program, fork: &ForkState, nodes: &[DagNode]) -> Option<RunError> {
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
        if let Some(why) = half_handled_message(program, fork, nodes, index) {
            error.fault.message.push_str(&why);
        }
        Some(error)
    })
}

/// Explains a failure that one action handled although the DAG still fails: another action waited for success and so
/// was skipped. Returns a text to append to the error message.
fn half_handled_message(
    program: &Program,
    fork: &ForkState,
    nodes: &[DagNode],
    index: usize,
) -> Option<String> {
    let failed = fork.branch_status(index)?;
    let find_successor = |accepts_failure: bool, ended: Status| {
        let mut nodes = nodes.iter().enumerate();
        let found = nodes.find(|(at, node)| {
            let mut after = node.after.iter();
            let wanted = after.find(|(before, _)| *before == index);
            wanted.is_some_and(|(_, wanted)| wanted.contains(&failed) == accepts_failure)
                && fork.branch_status(*at) == Some(ended)
        });
        found.map(|(at, _)| at)
    };
    let name = |at: usize| Some(&program.action(nodes.get(at)?.action)?.name);
    let handler = find_successor(true, Status::Succeeded)?;
    let skipped = find_successor(false, Status::Skipped)?;
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

fn invalid_items(scope: &Scope, items: &Value, length: Option<usize>) -> Fault {
    let name = &scope.name;
    let message = match length {
        Some(length) => format!("foreach `{name}` accepts at most {MAX_ITEMS} items, not {length}"),
        None => format!("foreach `{name}` needs an array, not {}", items.kind()),
    };
    Fault::new(fault_kind::EXPRESSION, message)
}

/// Returns the last actions (for which no other action waits) that follow the actions `from`, in the order of `from`.
/// If an action of `from` is a last action itself, it is returned.
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
