//! Forks (foreach, parallel, DAG): their branches, the rows of items, and the records at the end of a fork.

use super::BranchHandler;
use crate::bug::MachineResult;
use crate::change::Change;
use crate::event::IterationRow;
use crate::program::{Program, Scope, ScopeId, ScopeKind, StateId};
use crate::reader::Reader;
use crate::record::{Output, Records};
use crate::state::{
    BranchOutcome, BranchState, Cursor, CursorId, ForkState, Frame, FrameKind, FrameRef,
    IsolatedState, ItemState, RunError, Wait,
};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Status, fault_kind};
use windlass_value::time::Timestamp;

/// Which data a branch has of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchIsolation {
    /// No data: the branch uses the variables and records of its fork's cursor.
    Shared,
    /// An item, and its own records.
    Item,
    /// Its own variables and records.
    Variables,
}

impl BranchHandler<'_, '_> {
    /// Returns true if the foreach may cross an iteration boundary (end an item) in this transition. If false, the
    /// cursor `waiting` continues in the next transition.
    pub fn try_cross_boundary(&mut self, fork: CursorId, waiting: CursorId, alone: bool) -> bool {
        self.0.try_cross_boundary(fork, waiting, alone)
    }

    pub fn spawn(
        &mut self,
        parent: CursorId,
        branch: ScopeId,
        index: u32,
        isolation: BranchIsolation,
    ) -> MachineResult {
        let read = self.read();
        let scope = read.scope(branch)?;
        let (depth, _) = read.top_frame(parent)?;
        let id = CursorId(read.run.next_id);
        let kind = match isolation {
            BranchIsolation::Item | BranchIsolation::Shared => FrameKind::Branch(ItemState {
                index,
                item: read.fork(parent)?.item(index),
            }),
            // `apply` replaces null by a copy of the variables of the fork's cursor.
            BranchIsolation::Variables => FrameKind::Isolated(IsolatedState {
                index,
                variables: Value::Null,
            }),
        };
        let cursor = Cursor {
            owns_records: isolation != BranchIsolation::Shared,
            ..new_cursor(Some(parent), branch, scope.body, kind, read.now)
        };
        self.0.emit(Change::CursorSpawned(id, cursor))?;
        self.0.emit(Change::BranchStarted {
            frame: FrameRef::new(parent, depth),
            index,
            branch: id,
        })
    }

    pub fn end(
        &mut self,
        fork: CursorId,
        index: u32,
        status: Status,
        error: Option<RunError>,
    ) -> MachineResult {
        let frame = FrameRef::new(fork, self.read().top_frame(fork)?.0);
        let branch = self.read().fork(fork)?.branches.get(index as usize);
        if let Some(BranchState::Running(branch)) = branch {
            let branch = *branch;
            self.add_item_row(fork, branch, status)?;
        }
        // `apply` moves the records of the branch's cursor into the outcome.
        let outcome = BranchOutcome {
            status,
            error,
            records: Records::new(),
        };
        self.0.emit(Change::BranchEnded {
            frame,
            index,
            outcome,
        })
    }

    /// Adds the row of an item. It has the same form as the row of an iteration.
    pub fn add_item_row(
        &mut self,
        parent: CursorId,
        branch: CursorId,
        status: Status,
    ) -> MachineResult {
        let read = self.read();
        let frame = read.run.frame(branch, 0)?;
        let FrameKind::Branch(item) = &frame.kind else {
            return Ok(());
        };
        let fork = read.scope(frame.scope)?.parent;
        let Some(scope) = fork.and_then(|fork| read.program.scope(fork)) else {
            return Ok(());
        };
        if !matches!(scope.kind, ScopeKind::ForEach { .. }) {
            return Ok(());
        }
        let records = read.reading(&read.run.cursor(branch)?.records);
        let row = IterationRow {
            path: read.view(parent).path_of(&scope.name),
            iteration: u64::from(item.index),
            condition: None,
            status,
            result: records.bounded(&scope.children),
            started_at: frame.entered_at,
            ended_at: read.now,
        };
        self.0.out.iterations.push(row);
        Ok(())
    }

    /// Records the end of the fork at this depth. Does nothing for a DAG, which has no record.
    pub fn record_fork_end(
        &mut self,
        cursor: CursorId,
        depth: usize,
        scope: &Scope,
        status: Status,
        output: Option<Value>,
        error: Option<&RunError>,
    ) -> MachineResult {
        let Some(action) = scope.action else {
            return Ok(());
        };
        let entered_at = self.0.run.frame(cursor, depth)?.entered_at;
        let error = error.map(|error| error.fault.without_output());
        match &scope.kind {
            ScopeKind::ForEach { .. } => {
                let error = match error {
                    None => failed_items(self.read(), cursor, scope)?,
                    error => error,
                };
                self.0.emit(Change::ForEachRecorded {
                    frame: FrameRef::new(cursor, depth),
                    owner: self.0.run.record_owner(cursor),
                    action,
                    body: scope.children.clone(),
                    status,
                    error: error.clone(),
                    output,
                    at: self.0.now,
                })?;
                let mut records = self.records();
                records.report_end(cursor, action, status, error.as_ref());
                Ok(())
            }
            ScopeKind::Parallel { branches, isolated } => {
                let output = match output {
                    Some(output) => Output::Value(output),
                    None if *isolated => Output::Value(Value::Null),
                    None => branches_output(self.0.program, branches),
                };
                let mut records = self.records();
                records.record(cursor, Some(action), status, output, error, entered_at)
            }
            _ => Ok(()),
        }
    }
}

impl ForkState {
    pub(crate) fn is_pending(&self, index: u32) -> bool {
        self.branches.get(index as usize) == Some(&BranchState::Pending)
    }

    /// Returns how a branch ended, if it has ended.
    pub(crate) fn branch_status(&self, index: usize) -> Option<Status> {
        match self.branches.get(index)? {
            BranchState::Ended(outcome) => Some(outcome.status),
            BranchState::Pending | BranchState::Running(_) => None,
        }
    }

    /// Returns the outcomes of the branches that have ended, in the order of the branches.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &BranchOutcome> {
        self.branches.iter().filter_map(|branch| match branch {
            BranchState::Ended(outcome) => Some(outcome),
            BranchState::Pending | BranchState::Running(_) => None,
        })
    }

    pub(crate) fn first_failure(&self) -> Option<RunError> {
        self.outcomes().find_map(|outcome| outcome.error.clone())
    }

    pub(crate) fn next_item(&self, concurrency: u32) -> Option<u32> {
        if self.closed || self.running >= concurrency {
            return None;
        }
        // In a run that repeats only failed items, items between the failed ones have already ended.
        let mut rest = (self.started..).zip(self.branches.iter().skip(self.started as usize));
        let next = rest.find(|(_, branch)| **branch == BranchState::Pending);
        next.map(|(index, _)| index)
    }

    pub(crate) fn item(&self, index: u32) -> Value {
        let items = self.items.as_array();
        let item = items.and_then(|items| items.get(index as usize));
        item.cloned().unwrap_or_default()
    }
}

/// Returns the error for the record of a foreach that succeeded although items failed. These are its own items, or
/// items of a foreach inside it.
fn failed_items(
    read: Reader<'_, '_>,
    cursor: CursorId,
    scope: &Scope,
) -> MachineResult<Option<Fault>> {
    let fork = read.fork(cursor)?;
    let (failed, others): (Vec<_>, Vec<_>) = fork.outcomes().partition(|one| one.error.is_some());
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
    let reasons: Vec<String> = own.into_iter().chain(within).collect();
    let fault = Fault::new(fault_kind::ITEMS, reasons.join("; "));
    Ok((!reasons.is_empty()).then(|| fault.code(failed.len() + count)))
}

/// Returns an output with the results of named branches.
pub(crate) fn branches_output(program: &Program, branches: &[(Name, ScopeId)]) -> Output {
    let named = branches.iter().map(|(name, branch)| {
        let scope = program.scope(*branch);
        let children = scope.map(|scope| scope.children.clone());
        (name.clone(), children.unwrap_or_default())
    });
    Output::Branches(named.collect())
}

/// Creates a cursor at the beginning of a branch or of the run, with records of its own.
pub(crate) fn new_cursor(
    parent: Option<CursorId>,
    scope: ScopeId,
    at: StateId,
    kind: FrameKind,
    now: Timestamp,
) -> Cursor {
    Cursor {
        at,
        parent,
        wait: Wait::Ready,
        frames: vec![Frame {
            scope,
            kind,
            entered_at: now,
        }],
        records: Records::new(),
        owns_records: true,
    }
}
