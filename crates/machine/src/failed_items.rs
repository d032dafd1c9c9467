//! Finds the foreaches in a journal that ended with failed items, so that these items can be started again. Leaves out
//! foreaches whose records were removed later. If several remain, the caller selects one. Nothing here changes a run.

use super::bug::Bug;
use super::change::Change;
use super::env::View;
use super::state::{BranchState, CursorId, ForkState, FrameKind, RunState};
use crate::program::{ActionId, Program};
use windlass_expression::Budget;
use windlass_model::model::Status;

/// A foreach that ended with items that failed.
pub(super) struct FailedForeach {
    /// The path of the foreach: `each`, `outer#1/inner`.
    pub path: String,
    /// The cursor that waits for the branches of the foreach.
    pub cursor: CursorId,
    /// Number of changes in the journal before the change that records the foreach.
    pub change_count: usize,
    action: ActionId,
    /// The cursors that own the record of the foreach, and the records of the enclosing branches.
    owners: Vec<CursorId>,
}

/// Returns the foreaches with this path, in the order in which they ended. Without a path, returns all of them.
pub(super) fn failed_foreaches(
    program: &Program,
    start: &RunState,
    changes: &[Change],
    place: Option<&str>,
) -> Result<Vec<FailedForeach>, Bug> {
    let mut state = start.clone();
    let mut found: Vec<FailedForeach> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        match change {
            Change::RecordsRemoved(owner, action_range) => {
                drop_removed(&mut found, *owner, *action_range)
            }
            Change::IterationBegan {
                frame,
                action_range,
                ..
            } => {
                drop_removed(&mut found, state.record_owner(frame.cursor), *action_range);
            }
            Change::ForEachRecorded { frame, action, .. } => {
                let cursor = &frame.cursor;
                let name = program.action(*action).map(|action| &*action.name);
                let path = View::of(program, &state, *cursor, &Budget::default())
                    .path_of(name.unwrap_or_default());
                let owners = owners(&state, *cursor);
                let fork = fork_of(&state, *cursor);
                found.retain(|one| !fork.is_some_and(|fork| is_in(one, &path, fork)));
                if fork.is_some_and(|fork| fork.branches.iter().any(failed)) {
                    found.push(FailedForeach {
                        path,
                        cursor: *cursor,
                        change_count: index,
                        action: *action,
                        owners,
                    });
                }
            }
            _ => {}
        }
        state.apply(change)?;
    }
    found.retain(|one| place.is_none_or(|place| ends_with(&one.path, place)));
    Ok(found)
}

/// Removes the foreaches whose records a change removes: their actions run again, so their failed items no longer
/// count.
fn drop_removed(found: &mut Vec<FailedForeach>, owner: CursorId, (first, end): (u32, u32)) {
    let range = ActionId(first)..ActionId(end);
    found.retain(|one| !(one.owners.contains(&owner) && range.contains(&one.action)));
}

/// Returns the cursors that own the records of a cursor and of the cursors that it was forked from.
fn owners(run: &RunState, cursor: CursorId) -> Vec<CursorId> {
    let mut owners = Vec::new();
    let mut next = Some(cursor);
    while let Some(here) = next {
        let owner = run.record_owner(here);
        owners.push(owner);
        next = run.cursors.get(&owner).and_then(|one| one.forked_by(owner));
    }
    owners
}

/// Returns true if `one` is the foreach at this path. Also returns true if it is inside a failed item of that foreach,
/// because such an item begins again as a whole.
fn is_in(one: &FailedForeach, path: &str, fork: &ForkState) -> bool {
    let Some(rest) = one.path.strip_prefix(path) else {
        return false;
    };
    let Some((index, _)) = rest.strip_prefix('#').and_then(|rest| rest.split_once('/')) else {
        return rest.is_empty();
    };
    let index = index
        .parse()
        .ok()
        .and_then(|index: usize| fork.branches.get(index));
    index.is_some_and(|branch: &BranchState| failed(branch))
}

/// Returns true if a path is `end`, or ends with a slash and `end`.
pub(super) fn ends_with(path: &str, end: &str) -> bool {
    let rest = path.strip_suffix(end);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Returns the fork that a cursor waits for.
fn fork_of(run: &RunState, cursor: CursorId) -> Option<&ForkState> {
    match &run.cursors.get(&cursor)?.frames.last()?.kind {
        FrameKind::Fork(fork) => Some(fork),
        _ => None,
    }
}

pub(super) fn failed(branch: &BranchState) -> bool {
    matches!(branch, BranchState::Ended(outcome) if outcome.status != Status::Succeeded)
}
