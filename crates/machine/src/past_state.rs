//! Reads three parts of a run: its variables at the end of an earlier iteration, the records of its actions outside of
//! loops, and the foreaches that it is in now. Nothing here changes a run.

use super::bug::Bug;
use super::change::{Change, VariableChange};
use super::env::View;
use super::record::{ActionRecord, RecordReader};
use super::state::{BranchState, CursorId, ForkState, FrameKind, RunState};
use crate::program::{Program, Scope, ScopeKind};
use std::collections::BTreeMap;
use windlass_expression::{Budget, Value};
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// A foreach that a run is in.
#[derive(Clone, Copy, Debug)]
pub struct ActiveForeach<'a> {
    /// The state of the foreach, with its items.
    pub state: &'a ForkState,
    /// The name of its scope.
    pub name: &'a str,
    pub cursor: CursorId,
    program: &'a Program,
    run: &'a RunState,
}

impl ActiveForeach<'_> {
    #[must_use]
    pub fn path(&self) -> String {
        View::of(self.program, self.run, self.cursor, &Budget::default()).path_of(self.name)
    }

    /// Returns the index of each item in flight, and when the item began.
    pub fn items_in_flight(&self) -> impl Iterator<Item = (u32, Timestamp)> + '_ {
        let branches = (0..).zip(&self.state.branches);
        branches.filter_map(|(index, branch)| match branch {
            BranchState::Running(cursor) => {
                let cursor = self.run.cursors.get(cursor)?;
                Some((index, cursor.frames.first()?.entered_at))
            }
            BranchState::Pending | BranchState::Ended(_) => None,
        })
    }
}

/// Returns the foreaches that a run is in.
pub fn active_foreaches<'a>(
    program: &'a Program,
    run: &'a RunState,
) -> impl Iterator<Item = ActiveForeach<'a>> {
    run.cursors.iter().filter_map(move |(id, cursor)| {
        // If a cursor waits for branches, its top frame is the fork of these branches.
        let top = cursor.frames.last()?;
        let FrameKind::Fork(state) = &top.kind else {
            return None;
        };
        let scope = program.scope(top.scope)?;
        matches!(scope.kind, ScopeKind::ForEach { .. }).then_some(ActiveForeach {
            state,
            name: &scope.name,
            cursor: *id,
            program,
            run,
        })
    })
}

/// The record of an action outside of all loops and foreaches.
pub struct OuterRecord<'a> {
    pub name: &'a str,
    pub record: &'a ActionRecord,
    /// The value of the record's output.
    pub output: Value,
}

/// Returns the records of the actions outside of all loops and foreaches. Also returns the outputs of the outermost of
/// these actions.
#[must_use]
pub fn outer_records<'a>(program: &'a Program, run: &'a RunState) -> (Vec<OuterRecord<'a>>, Value) {
    let mut roots = run.cursors.values().filter(|one| one.parent.is_none());
    let Some(root) = roots.next() else {
        return (Vec::new(), Value::Null);
    };
    let reading = RecordReader {
        program,
        records: &root.records,
    };
    let inside =
        |scope: &&Scope| matches!(scope.kind, ScopeKind::Loop(..) | ScopeKind::ForEach { .. });
    let loops: Vec<&Scope> = program.scopes.iter().filter(inside).collect();
    let outer = root.records.iter().filter_map(|(id, record)| {
        let within = loops.iter().any(|scope| scope.action_range.contains(&id.0));
        let action = program.action(*id).filter(|_| !within)?;
        Some(OuterRecord {
            name: &action.name,
            record,
            output: reading.output(&record.output),
        })
    });
    let mut scopes = program.scopes.iter();
    let whole = scopes.find(|scope| matches!(scope.kind, ScopeKind::Root));
    let outputs = whole.map(|scope| reading.bounded(&scope.children));
    (outer.collect(), outputs.unwrap_or_default())
}

/// Returns the variables at the end of an iteration of the loop or foreach `path`. If the iteration ended several
/// times, the last time counts. If it has not ended, returns its current variables. Returns `None` if the changes do
/// not contain the iteration.
/// `start` is the state at the journal's beginning, and `changes` are all later changes.
///
/// # Errors
/// The changes are not those of the run.
pub fn variables_at(
    program: &Program,
    start: &RunState,
    changes: &[Change],
    path: &str,
    iteration: u64,
) -> Result<Option<Value>, Bug> {
    let mut state = start.clone();
    let mut found = None;
    for change in changes {
        match change {
            Change::IterationEnded { frame: at, .. }
            | Change::IterationCancelled { frame: at, .. } => {
                let frame = state.frame(at.cursor, at.depth as usize)?;
                if let FrameKind::Loop(here) = &frame.kind
                    && (here.iteration, here.path.as_str()) == (iteration, path)
                {
                    found = Some(state.variables_of(at.cursor).clone());
                }
            }
            Change::BranchEnded {
                frame: at, index, ..
            } if u64::from(*index) == iteration => {
                let frame = state.frame(at.cursor, at.depth as usize)?;
                if let FrameKind::Fork(fork) = &frame.kind
                    && let Some(scope) = program.scope(frame.scope)
                    && let Some(BranchState::Running(branch)) = fork.branches.get(*index as usize)
                    && View::of(program, &state, at.cursor, &Budget::default()).path_of(&scope.name)
                        == path
                {
                    found = Some(state.variables_of(*branch).clone());
                }
            }
            _ => {}
        }
        state.apply(change)?;
    }
    Ok(found.or_else(|| current_variables(program, &state, path, iteration)))
}

/// Returns the current variables of an iteration that has not ended.
fn current_variables(
    program: &Program,
    run: &RunState,
    path: &str,
    iteration: u64,
) -> Option<Value> {
    let of_loop = run.loops().find_map(|(cursor, _, state)| {
        let own = state.path == path && state.iteration == iteration;
        (own && state.iteration_started_at.is_some()).then_some(cursor)
    });
    let of_item = || {
        let index = usize::try_from(iteration).ok()?;
        let fork = active_foreaches(program, run).find(|fork| fork.path() == path)?;
        match fork.state.branches.get(index)? {
            BranchState::Running(branch) => Some(*branch),
            BranchState::Pending | BranchState::Ended(_) => None,
        }
    };
    let cursor = of_loop.or_else(of_item)?;
    Some(run.variables_of(cursor).clone())
}

/// Finds the variables that a run had at the end of an iteration, from a later snapshot and the commits before it. The
/// caller passes these commits, the newest first.
pub struct EarlierState {
    /// The commit in which the iteration ended.
    at: u64,
    /// The index of the item, for a foreach.
    item: Option<u64>,
    /// Whether the search has passed the end of the iteration: the current change was made before it.
    before: bool,
    variables: BTreeMap<Name, Variable>,
    /// Whether the search has failed, because the commits do not contain the needed changes.
    is_lost: bool,
}

/// What is known of a variable during the search.
enum Variable {
    /// The value is known. The number says how many elements or bytes at its end were appended after the iteration.
    Known(Value, usize),
    /// The value is still unknown, because a change after the iteration replaced it. The list has the parts that were
    /// appended before the iteration's end, the newest first.
    Sought(Vec<VariableChange>),
    /// The variable did not exist.
    Absent,
}

impl EarlierState {
    /// Begins a search. `variables` are the variables in the snapshot. `at` is the commit in which the iteration, or
    /// the item `item` of a foreach, ended.
    #[must_use]
    pub fn new(variables: &Value, at: u64, item: Option<u64>) -> Self {
        let Value::Object(object) = variables else {
            return Self {
                at,
                item,
                before: false,
                variables: BTreeMap::new(),
                is_lost: true,
            };
        };
        let known = object.iter();
        let known = known
            .map(|(name, value)| (Name::from(&**name), Variable::Known(value.clone(), 0)))
            .collect();
        Self {
            at,
            item,
            before: false,
            variables: known,
            is_lost: false,
        }
    }

    /// Reads the commit before the commits that were read so far. Returns true if the search has ended.
    pub fn read_earlier_commit(&mut self, number: u64, changes: &[Change]) -> bool {
        // An earlier version of the engine stored no changes in a commit with a snapshot, so nothing before such a
        // commit can be found.
        self.is_lost |= changes.is_empty();
        let item = self.item;
        let ends = |change: &Change| match change {
            Change::IterationEnded { .. } | Change::IterationCancelled { .. } => item.is_none(),
            Change::BranchEnded { index, .. } => item == Some(u64::from(*index)),
            _ => false,
        };
        // If several iterations ended in this commit, it is unknown which of them is the searched one.
        self.is_lost |= number == self.at && changes.iter().filter(|one| ends(one)).count() != 1;
        for change in changes.iter().rev() {
            if self.is_lost {
                return true;
            }
            self.before |= number < self.at || (number == self.at && ends(change));
            self.undo(change);
        }
        self.is_lost || (self.before && self.is_complete())
    }

    fn is_complete(&self) -> bool {
        let sought = |one: &Variable| matches!(one, Variable::Sought(_));
        !self.variables.values().any(sought)
    }

    fn undo(&mut self, change: &Change) {
        match change {
            Change::Started { .. } => {
                for variable in self.variables.values_mut() {
                    if matches!(variable, Variable::Sought(_)) {
                        *variable = Variable::Absent;
                    }
                }
            }
            Change::Restored(_) => self.is_lost |= !(self.before && self.is_complete()),
            Change::VariableChanged {
                owner: None,
                change,
            } => self.undo_variable(change),
            _ => {}
        }
    }

    fn undo_variable(&mut self, change: &VariableChange) {
        let (name, more) = match change {
            VariableChange::Set(name, _) | VariableChange::Removed(name) => (name, 0),
            VariableChange::ElementAppended(name, _) => (name, 1),
            VariableChange::TextAppended(name, text) => (name, text.len()),
        };
        let variable = self
            .variables
            .entry(name.clone())
            .or_insert(Variable::Absent);
        match (&mut *variable, change) {
            (Variable::Sought(appended), VariableChange::Set(_, value)) if self.before => {
                let mut whole = Some(value.clone());
                while let Some(change) = appended.pop() {
                    whole = whole.and_then(|whole| with_appended(&whole, &change));
                }
                match whole {
                    Some(whole) => *variable = Variable::Known(whole, 0),
                    None => self.is_lost = true,
                }
            }
            (Variable::Sought(_), VariableChange::Removed(_)) if self.before => {
                *variable = Variable::Absent;
            }
            (Variable::Sought(appended), _) if self.before => appended.push(change.clone()),
            // The value at the end of the iteration is known, so earlier changes do not affect it.
            _ if self.before => {}
            (_, VariableChange::Set(..) | VariableChange::Removed(_)) => {
                *variable = Variable::Sought(Vec::new());
            }
            (Variable::Known(_, dropped), _) => *dropped += more,
            (Variable::Sought(_) | Variable::Absent, _) => {}
        }
    }

    /// Returns the variables; `None` if not all of them were found.
    #[must_use]
    pub fn into_variables(self) -> Option<Value> {
        if self.is_lost || !self.is_complete() {
            return None;
        }
        let mut pairs = Vec::new();
        for (name, variable) in self.variables {
            if let Variable::Known(value, dropped) = variable {
                pairs.push((name, without_suffix(&value, dropped)?));
            }
        }
        Some(Value::from_pairs(pairs))
    }
}

/// Returns a value without the last `dropped` elements or bytes.
fn without_suffix(value: &Value, dropped: usize) -> Option<Value> {
    match value {
        _ if dropped == 0 => Some(value.clone()),
        Value::String(text) => Some(Value::from(text.get(..text.len().checked_sub(dropped)?)?)),
        other => {
            let items = other.as_array()?;
            let items = items.get(..items.len().checked_sub(dropped)?)?;
            Some(Value::array(items.to_vec()))
        }
    }
}

/// Returns a value after one append.
fn with_appended(value: &Value, change: &VariableChange) -> Option<Value> {
    match (value, change) {
        (Value::String(text), VariableChange::TextAppended(_, more)) => {
            Some(Value::from(format!("{text}{more}")))
        }
        (other, VariableChange::ElementAppended(_, item)) => {
            let mut items = other.as_array()?.to_vec();
            items.push(item.clone());
            Some(Value::array(items))
        }
        _ => None,
    }
}
