//! The variables at the end of an iteration.
//!
//! If the iteration ended after the last snapshot of the run, the changes after the snapshot are replayed. If it ended
//! before, the variables are rebuilt backwards, from the newest commit before the snapshot.

use super::LoopView;
use crate::runs::Extent;
use crate::{EngineError, Inspector};
use windlass_expression::Value;
use windlass_machine::program::ScopeKind;
use windlass_machine::{EarlierState, variables_at};
use windlass_store::{EndedIteration, Journal, RowLocation, StoreError};

/// Maximum number of commits that are read at a time.
const READ: usize = 64;
/// Maximum number of commits that are read in total.
const MOST: usize = 4_096;

pub fn variables(
    inspector: &Inspector,
    view: &LoopView,
    number: u64,
    ended: Option<&EndedIteration>,
) -> Result<Option<Value>, EngineError> {
    let Some(program) = view.program.as_deref() else {
        return Ok(None);
    };
    let Journal {
        header,
        start,
        changes,
    } = inspector.journal(&view.header.id)?;
    let at = match ended.map(|one| one.row) {
        Some(RowLocation::Retained) => return Ok(None),
        Some(RowLocation::Commit(at)) if at <= header.snapshot => at,
        _ => {
            let found = variables_at(program, &start, &changes, &view.path, number);
            return Ok(found.map_err(|bug| StoreError::replay_failed(&header.id, &bug))?);
        }
    };
    let isolates = |kind: &ScopeKind| matches!(kind, ScopeKind::Parallel { isolated: true, .. });
    if program.scopes.iter().any(|scope| isolates(&scope.kind)) {
        // The variables cannot be rebuilt: an isolated branch has its own variables, and a change does not say which
        // branch it belongs to.
        return Ok(None);
    }
    let item = view.of.state.is_none().then_some(number);
    let mut earlier = EarlierState::new(&start.variables, at, item);
    let mut last = header.snapshot;
    for _ in 0..MOST / READ {
        let commits = inspector.read(Extent::Entire(&header.id), |store| {
            store.changes_back(&header.id, last, READ)
        })?;
        let Some((first, _)) = commits.last() else {
            break;
        };
        last = first.saturating_sub(1);
        for (number, changes) in &commits {
            if earlier.read_earlier_commit(*number, changes) {
                return Ok(earlier.into_variables());
            }
        }
        if last == 0 {
            break;
        }
    }
    Ok(None)
}
