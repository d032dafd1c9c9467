//! Applies one change to a run: the only code that mutates a [`RunState`].
//!
//! A change that names something that is not there changes nothing. The machine never makes one;
//! a store that was tampered with might, and must not be able to stop the engine.

use super::change::{Change, VariableChange};
use super::record::{ActionRecord, Output, Records};
use super::state::{
    BranchState, Cursor, CursorId, ForkState, FrameKind, LoopState, RunState, TryState, Wait,
};
use crate::expression::{Object, Value};
use crate::model::Name;
use crate::program::{ActionId, StateId};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn apply(run: &mut RunState, change: &Change) {
    match change {
        Change::Started { at, input } => {
            run.started_at = *at;
            run.input = input.clone();
        }
        Change::VariableSet(name, value) => set(&mut run.variables, name, value),
        Change::VariableRemoved(name) => remove(&mut run.variables, name),
        Change::ElementAppended(name, value) => append_element(&mut run.variables, name, value),
        Change::TextAppended(name, more) => append_text(&mut run.variables, name, more),
        Change::OwnVariable(branch, change) => {
            let frames = run.cursors.get_mut(branch).map(|here| &mut here.frames);
            let bottom = frames.and_then(|frames| frames.first_mut());
            if let Some(FrameKind::Apart { variables, .. }) = bottom.map(|frame| &mut frame.kind) {
                match change {
                    VariableChange::Set(name, value) => set(variables, name, value),
                    VariableChange::Removed(name) => remove(variables, name),
                    VariableChange::ElementAppended(name, value) => {
                        append_element(variables, name, value);
                    }
                    VariableChange::TextAppended(name, more) => append_text(variables, name, more),
                }
            }
        }
        Change::CursorSpawned(id, cursor) => {
            used(run, id.0);
            if cursor.wait.is_ready() {
                run.ready.insert(*id);
            }
            let mut cursor = cursor.clone();
            if let Some(parent) = cursor.parent
                && let Some(FrameKind::Apart { variables, .. }) =
                    cursor.frames.first_mut().map(|frame| &mut frame.kind)
            {
                *variables = run.variables_of(parent).clone();
            }
            run.cursors.insert(*id, cursor);
        }
        Change::CursorDropped(id) => {
            run.ready.remove(id);
            run.cursors.remove(id);
        }
        Change::Moved(id, to) => {
            if let Some(cursor) = run.cursors.get_mut(id) {
                cursor.at = *to;
                cursor.wait = Wait::Ready;
                run.ready.insert(*id);
            }
        }
        Change::Waits(id, wait) => {
            if let Some(cursor) = run.cursors.get_mut(id) {
                cursor.wait = wait.clone();
                if wait.is_ready() {
                    run.ready.insert(*id);
                } else {
                    run.ready.remove(id);
                }
            }
        }
        Change::Entered(cursor, frame) => {
            if let Some(cursor) = run.cursors.get_mut(cursor) {
                cursor.frames.push(frame.clone());
            }
        }
        Change::Popped(cursor, keep) => {
            if let Some(cursor) = run.cursors.get_mut(cursor) {
                cursor.frames.truncate(*keep as usize);
            }
        }
        Change::Visited(cursor, node) => visited(run, *cursor, *node),
        Change::Recorded {
            home,
            action,
            status,
            output,
            error,
            started_at,
            at,
        } => {
            let output = match output {
                // The variable's value is in memory already: a counter, not a second copy.
                Output::Variable(name) => {
                    let variables = run.variables_of(*home);
                    Output::Value(variables.get(name).cloned().unwrap_or_default())
                }
                Output::LastOf(name) => Output::Appended {
                    variable: name.clone(),
                    more: last_of(run.variables_of(*home).get(name)),
                },
                other => other.clone(),
            };
            let record = ActionRecord {
                status: *status,
                inputs: Value::Null,
                output,
                error: error.clone(),
                started_at: *started_at,
                ended_at: *at,
                attempts: 1,
            };
            keep(run, *home, *action, record);
        }
        Change::Forgotten(home, inner) => {
            if let Some(cursor) = run.cursors.get_mut(home) {
                take_range(&mut cursor.records, *inner);
            }
        }
        Change::EffectRequested(id, effect) => {
            used(run, id.0);
            run.effects.insert(*id, effect.clone());
        }
        Change::EffectEnded {
            id,
            home,
            status,
            output,
            error,
            at,
        } => {
            let Some(effect) = run.effects.remove(id) else {
                return;
            };
            let record = ActionRecord {
                status: *status,
                inputs: effect.request.inputs,
                output: Output::Value(output.clone()),
                error: error.clone(),
                started_at: effect.requested_at,
                ended_at: *at,
                attempts: effect.request.attempt,
            };
            if let Some(action) = effect.action {
                keep(run, *home, action, record);
            }
        }
        Change::EffectDropped(id) => {
            run.effects.remove(id);
        }
        Change::TimerArmed(id, timer) => {
            used(run, id.0);
            run.timers.insert(*id, timer.clone());
        }
        Change::TimerDropped(id) => {
            run.timers.remove(id);
        }
        Change::IterationBegan {
            cursor,
            depth,
            inner,
            at,
        } => {
            iteration_began(run, *cursor, *depth, *inner, *at);
        }
        Change::IterationEnded {
            cursor,
            depth,
            status,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                state.iteration += 1;
                state.iteration_started_at = None;
                state.last_status = Some(*status);
            });
        }
        Change::IterationCut {
            cursor,
            depth,
            inner,
        } => iteration_cut(run, *cursor, *depth, *inner),
        Change::IterationKept {
            cursor,
            depth,
            name,
            value,
            append,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                kept(state, name, value, *append)
            });
        }
        Change::ConditionSeen {
            cursor,
            depth,
            value,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                state.last_condition = Some(*value)
            });
        }
        Change::LoopDelayed {
            cursor,
            depth,
            due_at,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                state.next_due_at = Some(*due_at)
            });
        }
        Change::PageSeen {
            cursor,
            depth,
            iteration,
            page,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                state.pages.insert(*page, *iteration);
            });
        }
        Change::LoopEnded { cursor, depth, end } => {
            with_loop(run, *cursor, *depth, |state| state.ended = Some(*end));
        }
        Change::BudgetGranted {
            cursor,
            depth,
            max_iterations,
            deadline,
        } => {
            with_loop(run, *cursor, *depth, |state| {
                state.max_iterations = *max_iterations;
                state.deadline = deadline.map(|(at, _)| at).or(state.deadline);
                state.deadline_timer = deadline.map(|(_, timer)| timer).or(state.deadline_timer);
            });
        }
        Change::AttemptFailed {
            cursor,
            depth,
            fault,
            at,
            due_at,
        } => {
            with_try(run, *cursor, *depth, |state| {
                state.last_fault = Some((fault.clone(), *at));
                state.next_due_at = Some(*due_at);
            });
        }
        Change::AttemptBegan { cursor, depth } => {
            with_try(run, *cursor, *depth, |state| {
                state.attempt += 1;
                state.next_due_at = None;
            });
        }
        Change::BranchStarted {
            cursor,
            depth,
            index,
            branch,
        } => {
            with_fork(run, *cursor, *depth, |fork| {
                if let Some(state) = fork.branches.get_mut(*index as usize) {
                    *state = BranchState::Running(*branch);
                }
                fork.started = fork.started.max(index.saturating_add(1));
                fork.running = fork.running.saturating_add(1);
            });
        }
        Change::BranchEnded {
            cursor,
            depth,
            index,
            outcome,
        } => {
            branch_ended(run, *cursor, *depth, *index, outcome);
        }
        Change::ForkClosed { cursor, depth } => {
            with_fork(run, *cursor, *depth, |fork| fork.closed = true);
        }
        Change::ForEachRecorded {
            cursor,
            depth,
            home,
            action,
            body,
            status,
            error,
            output,
            at,
        } => {
            let mut records = Vec::new();
            let mut started_at = *at;
            if let Some(frame) = frame(run, *cursor, *depth) {
                started_at = frame.entered_at;
                if let FrameKind::Fork(fork) = &mut frame.kind {
                    records = std::mem::take(&mut fork.branches)
                        .into_iter()
                        .filter_map(|branch| match branch {
                            BranchState::Ended(outcome) => Some((outcome.status, outcome.records)),
                            BranchState::Pending | BranchState::Running(_) => None,
                        })
                        .collect();
                }
            }
            let record = ActionRecord {
                status: *status,
                inputs: Value::Null,
                output: match output {
                    Some(value) => Output::Value(value.clone()),
                    None => Output::Iterations {
                        records,
                        body: body.clone(),
                    },
                },
                error: error.clone(),
                started_at,
                ended_at: *at,
                attempts: 1,
            };
            keep(run, *home, *action, record);
        }
        Change::TakenUp(state) => {
            let own = (run.id.clone(), run.program);
            *run = RunState::clone(state);
            (run.id, run.program) = own;
        }
        Change::Responded(value) => run.response = Some(value.clone()),
        Change::SignalKept(name, payload) => run.signals.push((name.clone(), payload.clone())),
        Change::SignalTaken(name) => {
            if let Some(at) = run.signals.iter().position(|(kept, _)| kept == name) {
                run.signals.remove(at);
            }
        }
        Change::Paused { at, reason } => run.paused = Some((*at, reason.clone())),
        Change::Resumed { shift_ms } => resumed(run, *shift_ms),
        Change::Finished(outcome) => {
            run.outcome = Some(outcome.clone());
            run.paused = None;
            // The root's records stay for `outputs`, `status` and `dump`; nothing else does.
            run.cursors.retain(|_, cursor| cursor.parent.is_none());
            run.ready.clear();
            for cursor in run.cursors.values_mut() {
                cursor.frames.clear();
                cursor.wait = Wait::Branches;
            }
            run.effects.clear();
            run.timers.clear();
            run.signals.clear();
        }
    }
}

/// No id is ever given twice, so a completion of a forgotten one finds nothing.
fn used(run: &mut RunState, id: u64) {
    run.next_id = run.next_id.max(id.saturating_add(1));
}

fn members(variables: &mut Value) -> Option<&mut Object> {
    match variables {
        Value::Object(map) => Some(Arc::make_mut(map)),
        _ => None,
    }
}

fn set(variables: &mut Value, name: &Name, value: &Value) {
    if let Some(map) = members(variables) {
        map.insert(name.clone(), value.clone());
    }
}

fn remove(variables: &mut Value, name: &Name) {
    if let Some(map) = members(variables) {
        map.shift_remove(name);
    }
}

fn append_element(variables: &mut Value, name: &Name, value: &Value) {
    if let Some(Value::Array(items)) = members(variables).and_then(|map| map.get_mut(name)) {
        Arc::make_mut(items).push(value.clone());
    }
}

fn append_text(variables: &mut Value, name: &Name, more: &str) {
    if let Some(Value::String(text)) = members(variables).and_then(|map| map.get_mut(name)) {
        Arc::make_mut(text).push_str(more);
    }
}

fn keep(run: &mut RunState, home: CursorId, action: ActionId, record: ActionRecord) {
    if let Some(cursor) = run.cursors.get_mut(&home) {
        cursor.records.insert(action, record);
    }
}

fn frame(run: &mut RunState, cursor: CursorId, depth: u32) -> Option<&mut super::state::Frame> {
    run.cursors.get_mut(&cursor)?.frames.get_mut(depth as usize)
}

fn with_loop(run: &mut RunState, cursor: CursorId, depth: u32, f: impl FnOnce(&mut LoopState)) {
    if let Some(FrameKind::Loop(state)) = frame(run, cursor, depth).map(|frame| &mut frame.kind) {
        f(state);
    }
}

fn with_try(run: &mut RunState, cursor: CursorId, depth: u32, f: impl FnOnce(&mut TryState)) {
    if let Some(FrameKind::Try(state)) = frame(run, cursor, depth).map(|frame| &mut frame.kind) {
        f(state);
    }
}

fn with_fork(run: &mut RunState, cursor: CursorId, depth: u32, f: impl FnOnce(&mut ForkState)) {
    if let Some(FrameKind::Fork(state)) = frame(run, cursor, depth).map(|frame| &mut frame.kind) {
        f(state);
    }
}

fn visited(run: &mut RunState, cursor: CursorId, node: StateId) {
    let Some(cursor) = run.cursors.get_mut(&cursor) else {
        return;
    };
    let graphs = cursor
        .frames
        .iter_mut()
        .rev()
        .find_map(|frame| match &mut frame.kind {
            FrameKind::Graph {
                steps,
                visit,
                visits,
            } => Some((steps, visit, visits)),
            _ => None,
        });
    if let Some((steps, visit, visits)) = graphs {
        *steps = steps.saturating_add(1);
        let of_node = visits.entry(node).or_default();
        *of_node = of_node.saturating_add(1);
        *visit = *of_node;
    }
}

fn iteration_began(
    run: &mut RunState,
    cursor: CursorId,
    depth: u32,
    inner: (u32, u32),
    at: Timestamp,
) {
    let home = run.home(cursor);
    let last = match run.cursors.get_mut(&home) {
        Some(Cursor { records, .. }) => take_range(records, inner),
        None => Records::new(),
    };
    with_loop(run, cursor, depth, |state| {
        state.last = last;
        state.iteration_started_at = Some(at);
        state.next_due_at = None;
    });
}

fn iteration_cut(run: &mut RunState, cursor: CursorId, depth: u32, inner: (u32, u32)) {
    let mut last = Records::new();
    with_loop(run, cursor, depth, |state| {
        last = std::mem::take(&mut state.last);
        state.iteration_started_at = None;
    });
    let home = run.home(cursor);
    if let Some(Cursor { records, .. }) = run.cursors.get_mut(&home) {
        take_range(records, inner);
        records.append(&mut last);
    }
}

fn kept(state: &mut LoopState, name: &Name, value: &Value, append: bool) {
    let Value::Object(map) = &mut state.kept else {
        return;
    };
    let map = Arc::make_mut(map);
    match map.get_mut(name) {
        Some(Value::Array(items)) if append => Arc::make_mut(items).push(value.clone()),
        _ if append => {
            map.insert(name.clone(), Value::array(vec![value.clone()]));
        }
        _ => {
            map.insert(name.clone(), value.clone());
        }
    }
}

/// Takes the records of the actions from `inner.0` up to, but without, `inner.1`.
fn take_range(records: &mut Records, inner: (u32, u32)) -> Records {
    let mut taken: BTreeMap<_, _> = records.split_off(&ActionId(inner.0));
    let mut rest = taken.split_off(&ActionId(inner.1));
    records.append(&mut rest);
    taken
}

fn branch_ended(
    run: &mut RunState,
    cursor: CursorId,
    depth: u32,
    index: u32,
    outcome: &super::state::BranchOutcome,
) {
    let running = match frame(run, cursor, depth).map(|frame| &frame.kind) {
        Some(FrameKind::Fork(fork)) => match fork.branches.get(index as usize) {
            Some(BranchState::Running(branch)) => Some(*branch),
            _ => None,
        },
        _ => None,
    };
    let mut outcome = outcome.clone();
    let ran = u32::from(running.is_some());
    if let Some(branch) = running {
        run.ready.remove(&branch);
    }
    if let Some(gone) = running.and_then(|branch| run.cursors.remove(&branch))
        && gone.owns_records
    {
        outcome.records = gone.records;
    }
    with_fork(run, cursor, depth, |fork| {
        if let Some(state) = fork.branches.get_mut(index as usize) {
            *state = BranchState::Ended(outcome);
        }
        fork.running = fork.running.saturating_sub(ran);
    });
}

/// A paused run's clock stands still: every due time and deadline moves (spec: loom.md).
fn resumed(run: &mut RunState, shift_ms: i64) {
    run.paused = None;
    let moved = |at: Timestamp| Timestamp(at.0.saturating_add(shift_ms));
    for timer in run.timers.values_mut() {
        timer.due_at = moved(timer.due_at);
    }
    for frame in run
        .cursors
        .values_mut()
        .flat_map(|cursor| cursor.frames.iter_mut())
    {
        match &mut frame.kind {
            FrameKind::Loop(state) => {
                state.deadline = state.deadline.map(moved);
                state.next_due_at = state.next_due_at.map(moved);
            }
            FrameKind::Try(state) => state.next_due_at = state.next_due_at.map(moved),
            FrameKind::Plain
            | FrameKind::Graph { .. }
            | FrameKind::Deadline { .. }
            | FrameKind::Fork(_)
            | FrameKind::Branch { .. }
            | FrameKind::Apart { .. }
            | FrameKind::Root { .. } => {}
        }
    }
}

fn last_of(array: Option<&Value>) -> Value {
    let last = array.and_then(|array| array.as_array()?.last());
    last.cloned().unwrap_or_default()
}
