//! What was in a run at the end of an earlier iteration, and which foreaches it is in now. Nothing here
//! changes a run.

use super::bug::Bug;
use super::change::Change;
use super::env::View;
use super::state::{BranchState, CursorId, ForkState, FrameKind, RunState};
use crate::expression::Value;
use crate::program::{Program, ScopeKind};

/// A foreach that a run is in.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'a> {
    /// The foreach and its items.
    pub state: &'a ForkState,
    /// The name of its scope.
    pub name: &'a str,
    /// Its cursor.
    cursor: CursorId,
    program: &'a Program,
    run: &'a RunState,
}

impl Fork<'_> {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> String {
        View::of(self.program, self.run, self.cursor).path_of(self.name)
    }
}

/// The foreaches that a run is in.
pub fn forks<'a>(program: &'a Program, run: &'a RunState) -> impl Iterator<Item = Fork<'a>> {
    run.cursors.iter().filter_map(move |(id, cursor)| {
        // A cursor that waits for branches stands in their fork.
        let top = cursor.frames.last()?;
        let FrameKind::Fork(state) = &top.kind else {
            return None;
        };
        let scope = program.scope(top.scope)?;
        matches!(scope.kind, ScopeKind::ForEach { .. }).then_some(Fork {
            state,
            name: &scope.name,
            cursor: *id,
            program,
            run,
        })
    })
}

/// The variables at the end of an iteration of the loop or foreach `path`, when it ended for the last
/// time; those of now, while it has not ended. None when the changes do not have it. `start` is the
/// state at the journal's beginning, `changes` everything since.
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
            Change::IterationEnded { cursor, depth, .. }
            | Change::IterationCancelled { cursor, depth, .. } => {
                let frame = state.frame(*cursor, *depth as usize)?;
                if let FrameKind::Loop(here) = &frame.kind
                    && (here.iteration, here.path.as_str()) == (iteration, path)
                {
                    found = Some(state.variables_of(*cursor).clone());
                }
            }
            Change::BranchEnded {
                cursor,
                depth,
                index,
                ..
            } if u64::from(*index) == iteration => {
                let frame = state.frame(*cursor, *depth as usize)?;
                if let FrameKind::Fork(fork) = &frame.kind
                    && let Some(scope) = program.scope(frame.scope)
                    && let Some(BranchState::Running(branch)) = fork.branches.get(*index as usize)
                    && View::of(program, &state, *cursor).path_of(&scope.name) == path
                {
                    found = Some(state.variables_of(*branch).clone());
                }
            }
            _ => {}
        }
        state.apply(change)?;
    }
    Ok(found.or_else(|| under_way(program, &state, path, iteration)))
}

/// The variables of now in an iteration that has not ended.
fn under_way(program: &Program, run: &RunState, path: &str, iteration: u64) -> Option<Value> {
    let of_loop = run.loops().find_map(|(cursor, _, state)| {
        let own = state.path == path && state.iteration == iteration;
        (own && state.iteration_started_at.is_some()).then_some(cursor)
    });
    let of_item = || {
        let index = usize::try_from(iteration).ok()?;
        let fork = forks(program, run).find(|fork| fork.path() == path)?;
        match fork.state.branches.get(index)? {
            BranchState::Running(branch) => Some(*branch),
            BranchState::Pending | BranchState::Ended(_) => None,
        }
    };
    let cursor = of_loop.or_else(of_item)?;
    Some(run.variables_of(cursor).clone())
}
