//! Computes the state of a run at an earlier point of its journal. A new run begins with this state, and the old run
//! does not change.
//!
//! The changes since the last snapshot are applied again, up to the point where the target began for the last time. At
//! that point every cursor is between two operations.

use super::bug::Bug;
use super::change::Change;
use super::env::View;
use super::failed_items::{ends_with, failed, failed_foreaches};
use super::state::{
    BranchState, CursorId, ForkState, FrameKind, FrameRef, ItemState, PauseReason, RunState, Wait,
};
use super::transition::new_cursor;
use crate::program::{Action, Program, ScopeKind};
use std::collections::{HashSet, VecDeque};
use windlass_expression::Budget;
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// The point to which a run is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An action or an iteration, by its path or the end of its path: `fetch`, `poll#14`, `poll#14/fetch`.
    Path(String),
    /// The action that the run failed at, and the enclosing iteration.
    Action(Name, Option<(String, u64)>),
    /// The end of a foreach that had failed items. The failed items begin again. If there are several such foreaches,
    /// the path, or the end of the path, selects one: `each`, `outer#1/inner`.
    FailedItems(Option<String>),
}

/// The result of searching a journal for a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewound {
    State(Box<RunState>),
    /// The target is the first step of the run, so a new run can start from the beginning.
    Beginning,
    /// The target is not in the journal.
    Nowhere,
    /// Several foreaches have failed items, and the target does not select one of them. Contains their paths.
    Several(Vec<String>),
}

/// Returns the state that a run had when it last reached `target`, as the state of a new run with the id `id` that
/// continues at `now`. `start` is the state at the journal's beginning, and `changes` are all later changes.
///
/// # Errors
/// The changes are not those of the run.
pub fn rewind(
    program: &Program,
    start: &RunState,
    changes: &[Change],
    target: &Target,
    id: &Name,
    now: Timestamp,
) -> Result<Rewound, Bug> {
    let found = match target {
        Target::FailedItems(place) => {
            let mut all = failed_foreaches(program, start, changes, place.as_deref())?;
            if place.is_none() && all.len() > 1 {
                let paths = all.into_iter().map(|one| one.path);
                return Ok(Rewound::Several(paths.collect()));
            }
            all.pop().map(|one| FoundPoint {
                change_count: one.change_count,
                cursor: one.cursor,
                is_beginning: false,
            })
        }
        Target::Path(_) | Target::Action(..) => {
            PointSearch { program, target }.last(start, changes)?
        }
    };
    let Some(found) = found else {
        return Ok(Rewound::Nowhere);
    };
    let mut state = start.clone();
    let mut then = last_seen(start);
    for change in changes.iter().take(found.change_count) {
        then = then.max(time_of(change).unwrap_or(then));
        state.apply(change)?;
    }
    if found.is_beginning {
        return Ok(Rewound::Beginning);
    }
    undo_call(&mut state, found.cursor);
    stop_at_point(&mut state, then, now)?;
    reset_action_limits(program, &mut state, found.cursor, now);
    if matches!(target, Target::FailedItems(_)) {
        begin_failed_items(program, &mut state, found.cursor, now)?;
    }
    set_run_id(&mut state, id);
    state.started_at = now;
    Ok(Rewound::State(Box::new(state)))
}

/// A point that a run reached. The text can be used as [`Target::Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VisitedPoint {
    /// An iteration of a loop, or an item of a foreach.
    Iteration(String),
    /// An action that began.
    Action(String),
}

/// Returns the last `most` points that a run reached, the newest first and each only once. `start` is the state at the
/// journal's beginning, and `changes` are all later changes.
///
/// # Errors
/// The changes are not those of the run.
pub fn visited(
    program: &Program,
    start: &RunState,
    changes: &[Change],
    most: usize,
) -> Result<Vec<VisitedPoint>, Bug> {
    let mut state = start.clone();
    let mut places = VecDeque::new();
    for change in changes {
        let action = match change {
            Change::ActionBegan { cursor, .. } => {
                action_at(program, &state, *cursor).map(|action| {
                    View::of(program, &state, *cursor, &Budget::default()).path_of(&action.name)
                })
            }
            _ => None,
        };
        state.apply(change)?;
        let iteration = match change {
            Change::IterationBegan { frame, .. } => Some(frame.cursor),
            Change::BranchStarted { branch, .. } if is_item(program, &state, *branch) => {
                Some(*branch)
            }
            _ => None,
        };
        let iteration =
            iteration.map(|cursor| View::of(program, &state, cursor, &Budget::default()).path());
        places.extend(action.map(VisitedPoint::Action));
        places.extend(iteration.map(VisitedPoint::Iteration));
        // Several entries may be of the same point, which is returned once. So more entries than `most` are stored.
        while places.len() > most.saturating_mul(2) {
            places.pop_front();
        }
    }
    let mut known = HashSet::new();
    let newest = places.into_iter().rev();
    Ok(newest
        .filter(|place| known.insert(place.clone()))
        .take(most)
        .collect())
}

fn action_at<'p>(program: &'p Program, run: &RunState, cursor: CursorId) -> Option<&'p Action> {
    let state = program.state(run.cursors.get(&cursor)?.at)?;
    program.action(state.action?)
}

/// The point that was found.
struct FoundPoint {
    /// Number of changes before the point.
    change_count: usize,
    /// The cursor at the point.
    cursor: CursorId,
    is_beginning: bool,
}

struct PointSearch<'a> {
    program: &'a Program,
    target: &'a Target,
}

impl PointSearch<'_> {
    /// Finds the last time that a cursor was at the target.
    fn last(&self, start: &RunState, changes: &[Change]) -> Result<Option<FoundPoint>, Bug> {
        let mut state = start.clone();
        // If an effect was in flight at the snapshot, its action began before the snapshot, so no change reports its
        // beginning.
        let mut calling = state.cursors.iter().filter_map(|(id, cursor)| {
            let calls = matches!(cursor.wait, Wait::Effect(_));
            (calls && self.is_at(start, *id)).then_some(*id)
        });
        let mut found = calling.next_back().map(|cursor| FoundPoint {
            change_count: 0,
            cursor,
            is_beginning: false,
        });
        drop(calling);
        // Whether the run has started and executed nothing yet.
        let mut fresh = start.cursors.is_empty();
        for (index, change) in changes.iter().enumerate() {
            if let Change::ActionBegan { cursor, .. } = change
                && self.is_at(&state, *cursor)
            {
                found = Some(FoundPoint {
                    change_count: index,
                    cursor: *cursor,
                    is_beginning: fresh,
                });
            }
            state.apply(change)?;
            fresh &= matches!(
                change,
                Change::Started { .. }
                    | Change::CursorSpawned(..)
                    | Change::VariableChanged { .. }
                    | Change::ActionBegan { .. }
            );
            let iteration = match change {
                // The cursor moves to the body with the next change.
                Change::IterationBegan { frame, .. } => Some((frame.cursor, 1)),
                Change::BranchStarted { branch, .. } if is_item(self.program, &state, *branch) => {
                    Some((*branch, siblings(changes.get(index + 1..))))
                }
                _ => None,
            };
            let iteration = match change {
                Change::Restored(_) => self.restored(&state).map(|cursor| (cursor, 0)),
                _ => iteration.filter(|(cursor, _)| self.is_iteration(&state, *cursor)),
            };
            if let Some((cursor, more)) = iteration {
                found = Some(FoundPoint {
                    change_count: index + 1 + more,
                    cursor,
                    is_beginning: false,
                });
            }
        }
        Ok(found)
    }

    /// Returns the cursor at the target in a run that itself began at a point of another run.
    fn restored(&self, run: &RunState) -> Option<CursorId> {
        let mut ready = run.ready.iter().copied();
        ready.find(|cursor| {
            let here = run.cursors.get(cursor);
            let body = here.and_then(|here| self.program.scope(here.frames.last()?.scope));
            let begins = body.map(|scope| scope.body) == here.map(|here| here.at);
            self.is_at(run, *cursor) || (begins && self.is_iteration(run, *cursor))
        })
    }

    /// Returns true if the cursor is at the target action.
    fn is_at(&self, run: &RunState, cursor: CursorId) -> bool {
        let Some(action) = action_at(self.program, run, cursor) else {
            return false;
        };
        let budget = Budget::default();
        let view = View::of(self.program, run, cursor, &budget);
        match self.target {
            Target::Path(path) => ends_with(&view.path_of(&action.name), path),
            Target::Action(name, iteration) => {
                action.name == *name && view.innermost_iteration() == *iteration
            }
            Target::FailedItems(_) => false,
        }
    }

    /// Returns true if the cursor is in the target iteration.
    fn is_iteration(&self, run: &RunState, cursor: CursorId) -> bool {
        match self.target {
            Target::Path(path) => ends_with(
                &View::of(self.program, run, cursor, &Budget::default()).path(),
                path,
            ),
            Target::Action(..) | Target::FailedItems(_) => false,
        }
    }
}

/// Returns true if a branch is an item of a foreach.
fn is_item(program: &Program, run: &RunState, branch: CursorId) -> bool {
    let frame = run.cursors.get(&branch).and_then(|one| one.frames.first());
    let parent = frame.and_then(|frame| program.scope(program.scope(frame.scope)?.parent?));
    parent.is_some_and(|fork| matches!(fork.kind, ScopeKind::ForEach { .. }))
}

/// Counts the next changes that start further branches of the same fork. These changes must be a part of the point:
/// later, a fork starts branches only when one of its branches ends.
fn siblings(rest: Option<&[Change]>) -> usize {
    let starts = |change: &&Change| {
        matches!(change, Change::BranchStarted { .. })
            || matches!(change, Change::CursorSpawned(_, one) if one.parent.is_some())
    };
    rest.unwrap_or_default().iter().take_while(starts).count()
}

// ── from the past to now ────────────────────────────────────────────────────────────────────────

/// Removes a call in flight, so that the cursor requests it again.
fn undo_call(run: &mut RunState, cursor: CursorId) {
    let Some(here) = run.cursors.get_mut(&cursor) else {
        return;
    };
    if let Wait::Effect(effect) = here.wait {
        here.wait = Wait::Ready;
        run.ready.insert(cursor);
        run.effects.remove(&effect);
    }
}

/// Moves the run's times from `then` to `now`, so that no time passes for the run between them, as in a pause. A run
/// that was paused at a limit stays paused, because only a resume allows more.
fn stop_at_point(run: &mut RunState, then: Timestamp, now: Timestamp) -> Result<(), Bug> {
    let (since, limit) = match run.paused.take() {
        Some((since, reason @ PauseReason::Limit(..))) => (since, Some(reason)),
        Some((since, PauseReason::Requested)) => (since, None),
        None => (then, None),
    };
    let shift_ms = i64::try_from(now.since(since).as_millis()).unwrap_or(i64::MAX);
    run.apply(&Change::Resumed { shift_ms })?;
    run.paused = limit.map(|reason| (now, reason));
    Ok(())
}

/// Resets the attempts and the timeout of the action at the cursor.
fn reset_action_limits(program: &Program, run: &mut RunState, cursor: CursorId, now: Timestamp) {
    let Some(here) = run.cursors.get_mut(&cursor) else {
        return;
    };
    let Some(state) = program.state(here.at).filter(|at| at.action.is_some()) else {
        return;
    };
    for frame in here.frames.iter_mut().rev() {
        let scope = program.scope(frame.scope);
        if scope.is_none_or(|scope| scope.name != state.name) {
            break;
        }
        match &mut frame.kind {
            FrameKind::Try(state) => {
                state.attempt = 1;
                state.last_fault = None;
                state.next_due_at = None;
            }
            FrameKind::Deadline(state) => {
                if let Some(timer) = run.timers.get_mut(&state.timer) {
                    timer.due_at = now.plus(std::time::Duration::from_millis(state.after_ms));
                }
            }
            _ => break,
        }
    }
}

/// Resets the failed items of a foreach to the state before they began, and begins the first of them.
fn begin_failed_items(
    program: &Program,
    run: &mut RunState,
    parent: CursorId,
    now: Timestamp,
) -> Result<(), Bug> {
    let bug = || Bug::new(String::from("no foreach ended here"));
    let frames = &run.cursor(parent)?.frames;
    let depth = frames.len().saturating_sub(1);
    let scope = frames.last().and_then(|frame| program.scope(frame.scope));
    let Some(ScopeKind::ForEach {
        branch,
        concurrency,
        ..
    }) = scope.map(|scope| &scope.kind)
    else {
        return Err(bug());
    };
    let body = program.scope(*branch).ok_or_else(bug)?.body;
    let fork = fork_of(run, parent).ok_or_else(bug)?;
    fork.closed = false;
    fork.started = 0;
    for one in fork.branches.iter_mut().filter(|one| failed(one)) {
        *one = BranchState::Pending;
    }
    while let Some(index) = fork_of(run, parent).and_then(|fork| fork.next_item(*concurrency)) {
        let item = fork_of(run, parent).map(|fork| fork.item(index));
        let item = ItemState {
            index,
            item: item.unwrap_or_default(),
        };
        let id = CursorId(run.next_id);
        let cursor = new_cursor(Some(parent), *branch, body, FrameKind::Branch(item), now);
        run.apply(&Change::CursorSpawned(id, cursor))?;
        run.apply(&Change::BranchStarted {
            frame: FrameRef::new(parent, depth),
            index,
            branch: id,
        })?;
    }
    Ok(())
}

/// Changes the run's id. The idempotency keys of effects in flight contain the id, so they change, too, and receivers
/// treat the requests as new ones.
fn set_run_id(run: &mut RunState, id: &Name) {
    let old = super::path::key_of_run(&run.id);
    let new = super::path::key_of_run(id);
    for effect in run.effects.values_mut() {
        if let Some(path) = effect.request.key.strip_prefix(&old) {
            effect.request.key = format!("{new}{path}");
        }
    }
    run.id = id.clone();
}

/// Returns when a change was made, if the change has a time.
fn time_of(change: &Change) -> Option<Timestamp> {
    match change {
        Change::Started { at, .. }
        | Change::Recorded { at, .. }
        | Change::EffectEnded { at, .. }
        | Change::IterationBegan { at, .. }
        | Change::AttemptFailed { at, .. }
        | Change::ForEachRecorded { at, .. }
        | Change::Paused { at, .. } => Some(*at),
        Change::Entered(_, frame) => Some(frame.entered_at),
        Change::EffectRequested(_, effect) => Some(effect.requested_at),
        Change::Restored(state) => Some(state.started_at),
        _ => None,
    }
}

/// Returns the latest time in a state.
fn last_seen(run: &RunState) -> Timestamp {
    let cursors = run.cursors.values();
    let frames = cursors.flat_map(|cursor| cursor.frames.iter().map(|frame| frame.entered_at));
    let loops = run
        .loops()
        .filter_map(|(_, _, state)| state.iteration_started_at);
    let effects = run.effects.values().map(|effect| effect.requested_at);
    let cursors = run.cursors.values();
    let records = cursors.flat_map(|cursor| cursor.records.values().map(|record| record.ended_at));
    frames
        .chain(loops)
        .chain(effects)
        .chain(records)
        .fold(run.started_at, Timestamp::max)
}

/// Returns the fork that a cursor waits for.
fn fork_of(run: &mut RunState, cursor: CursorId) -> Option<&mut ForkState> {
    match &mut run.cursors.get_mut(&cursor)?.frames.last_mut()?.kind {
        FrameKind::Fork(fork) => Some(fork),
        _ => None,
    }
}
