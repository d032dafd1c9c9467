//! Applies one change to a run: the only code that mutates a [`RunState`].
//!
//! A change that names a missing item is a [`Bug`].
//! The machine never makes such a change. If a store returns one, the store has altered what it received.

use super::bug::{Bug, MachineResult};
use super::change::{Change, VariableChange};
use super::record::{ActionRecord, Output, Records};
use super::state::{
    BranchOutcome, BranchState, Cursor, CursorId, ForkState, Frame, FrameKind, FrameRef, LoopState,
    RunState, TryState, Wait,
};
use crate::program::{ActionId, StateId};
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

pub(super) fn apply(run: &mut RunState, change: &Change) -> MachineResult {
    match change {
        Change::Started { at, input } => {
            run.started_at = *at;
            run.input = input.clone();
        }
        Change::VariableChanged { owner, change } => {
            change_variable(variables_of(run, *owner)?, change)?;
        }
        Change::ActionBegan { cursor: id, .. } => {
            cursor(run, *id)?;
        }
        Change::CursorSpawned(id, cursor) => {
            used(run, id.0);
            if cursor.wait.is_ready() {
                run.ready.insert(*id);
            }
            let mut cursor = cursor.clone();
            if let Some(parent) = cursor.parent
                && let Some(FrameKind::Isolated(own)) =
                    cursor.frames.first_mut().map(|frame| &mut frame.kind)
            {
                own.variables = run.variables_of(parent).clone();
            }
            run.cursors.insert(*id, Box::new(cursor));
        }
        Change::CursorDropped(id) => {
            drop_cursor(run, *id)?;
        }
        Change::Moved(id, to) => {
            let here = cursor(run, *id)?;
            here.at = *to;
            here.wait = Wait::Ready;
            run.ready.insert(*id);
        }
        Change::Waits(id, wait) => {
            cursor(run, *id)?.wait = wait.clone();
            match wait.is_ready() {
                true => run.ready.insert(*id),
                false => run.ready.remove(id),
            };
        }
        Change::Entered(id, frame) => {
            let frames = &mut cursor(run, *id)?.frames;
            // Reserve space for only one frame: every cursor of every run has this list, and most lists are short.
            frames.reserve_exact(1);
            frames.push(frame.clone());
        }
        Change::Popped(id, keep) => cursor(run, *id)?.frames.truncate(*keep as usize),
        Change::Visited(cursor, node) => count_visit(run, *cursor, *node)?,
        Change::Recorded {
            owner,
            action,
            status,
            output,
            error,
            started_at,
            at,
        } => {
            let variable = |name: &Name| run.variable_of(*owner, name);
            let output = match output {
                // The record and the variable share the value; it is not copied.
                Output::Variable(name) => {
                    Output::Value(variable(name).cloned().unwrap_or_default())
                }
                Output::LastOf(name) => Output::Appended {
                    variable: name.clone(),
                    more: last_of(variable(name)),
                },
                other => other.clone(),
            };
            let record = ActionRecord {
                status: *status,
                inputs: Value::Null,
                output,
                error: error.clone().map(Box::new),
                started_at: *started_at,
                ended_at: *at,
                attempts: 1,
            };
            cursor(run, *owner)?
                .records
                .insert(*action, Box::new(record));
        }
        Change::RecordsRemoved(owner, action_range) => {
            take_range(&mut cursor(run, *owner)?.records, *action_range);
        }
        Change::EffectRequested(id, effect) => {
            used(run, id.0);
            run.effects.insert(*id, Box::new(effect.clone()));
        }
        Change::EffectEnded {
            id,
            owner,
            status,
            output,
            error,
            at,
        } => {
            let effect = run.effects.remove(id);
            let effect = effect.ok_or_else(|| missing("effect", id.0))?;
            let record = ActionRecord {
                status: *status,
                inputs: effect.request.inputs,
                output: Output::Value(output.clone()),
                error: error.clone().map(Box::new),
                started_at: effect.requested_at,
                ended_at: *at,
                attempts: effect.request.attempt,
            };
            if let Some(action) = effect.action {
                cursor(run, *owner)?
                    .records
                    .insert(action, Box::new(record));
            }
        }
        Change::EffectDropped(id) => {
            let gone = run.effects.remove(id);
            gone.ok_or_else(|| missing("effect", id.0))?;
        }
        Change::TimerArmed(id, timer) => {
            used(run, id.0);
            run.timers.insert(*id, Box::new(timer.clone()));
        }
        Change::TimerDropped(id) => {
            let gone = run.timers.remove(id);
            gone.ok_or_else(|| missing("timer", id.0))?;
        }
        Change::IterationBegan {
            frame,
            action_range,
            at,
        } => {
            let owner = run.record_owner(frame.cursor);
            let last = take_range(&mut cursor(run, owner)?.records, *action_range);
            let state = loop_frame(run, *frame)?;
            state.last = last;
            state.iteration_started_at = Some(*at);
            state.next_due_at = None;
        }
        Change::IterationEnded { frame, status } => {
            let state = loop_frame(run, *frame)?;
            state.iteration += 1;
            state.iteration_started_at = None;
            state.last_status = Some(*status);
            // Until the next iteration begins, the records of the last iteration are still the owner's records.
            state.last = Records::new();
        }
        Change::IterationCancelled {
            frame,
            action_range,
        } => {
            let state = loop_frame(run, *frame)?;
            let mut last = std::mem::take(&mut state.last);
            state.iteration_started_at = None;
            let owner = run.record_owner(frame.cursor);
            let records = &mut cursor(run, owner)?.records;
            take_range(records, *action_range);
            records.append(&mut last);
        }
        Change::IterationStored {
            frame,
            name,
            value,
            append,
        } => keep_value(loop_frame(run, *frame)?, name, value, *append)?,
        Change::ConditionSeen { frame, value } => {
            loop_frame(run, *frame)?.last_condition = Some(*value)
        }
        Change::LoopDelayed { frame, due_at } => {
            loop_frame(run, *frame)?.next_due_at = Some(*due_at)
        }
        Change::PageSeen {
            frame,
            iteration,
            page,
        } => {
            let pages = &mut loop_frame(run, *frame)?.pages;
            pages.insert(*page, *iteration);
        }
        Change::LoopEnded { frame, end } => {
            loop_frame(run, *frame)?.ended = Some(*end);
        }
        Change::BudgetGranted {
            frame,
            max_iterations,
            deadline,
        } => {
            let state = loop_frame(run, *frame)?;
            state.max_iterations = *max_iterations;
            state.deadline = deadline.map(|(at, _)| at).or(state.deadline);
            state.deadline_timer = deadline.map(|(_, timer)| timer).or(state.deadline_timer);
        }
        Change::AttemptFailed {
            frame,
            fault,
            at,
            due_at,
        } => {
            let state = try_frame(run, *frame)?;
            state.last_fault = Some(Box::new((fault.clone(), *at)));
            state.next_due_at = Some(*due_at);
        }
        Change::AttemptBegan { frame } => {
            let state = try_frame(run, *frame)?;
            state.attempt += 1;
            state.next_due_at = None;
        }
        Change::BranchStarted {
            frame,
            index,
            branch,
        } => {
            let fork = fork_frame(run, *frame)?;
            *branch_frame(fork, *index)? = BranchState::Running(*branch);
            fork.started = fork.started.max(index.saturating_add(1));
            fork.running = fork.running.saturating_add(1);
        }
        Change::BranchEnded {
            frame,
            index,
            outcome,
        } => branch_ended(run, *frame, *index, outcome.clone())?,
        Change::ForkClosed { frame } => fork_frame(run, *frame)?.closed = true,
        Change::ForEachRecorded {
            frame,
            owner,
            action,
            body,
            status,
            error,
            output,
            at,
        } => {
            let branches = std::mem::take(&mut fork_frame(run, *frame)?.branches);
            let ended = branches.into_iter().filter_map(|branch| match branch {
                BranchState::Ended(outcome) => Some((outcome.status, outcome.records)),
                BranchState::Pending | BranchState::Running(_) => None,
            });
            let record = ActionRecord {
                status: *status,
                inputs: Value::Null,
                output: match output {
                    Some(value) => Output::Value(value.clone()),
                    None => Output::Iterations {
                        records: ended.collect(),
                        body: body.clone(),
                    },
                },
                error: error.clone().map(Box::new),
                started_at: frame_of(run, *frame)?.entered_at,
                ended_at: *at,
                attempts: 1,
            };
            cursor(run, *owner)?
                .records
                .insert(*action, Box::new(record));
        }
        Change::Restored(state) => {
            let own = (run.id.clone(), run.program);
            *run = RunState::clone(state);
            (run.id, run.program) = own;
        }
        Change::Responded(value) => run.response = Some(value.clone()),
        Change::SignalStored(name, payload) => run.signals.push((name.clone(), payload.clone())),
        Change::SignalTaken(name) => {
            let at = run.signals.iter().position(|(stored, _)| stored == name);
            run.signals
                .remove(at.ok_or_else(|| Bug::new(format!("no signal {name} is stored")))?);
        }
        Change::Paused { at, reason } => run.paused = Some((*at, reason.clone())),
        Change::Resumed { shift_ms } => resumed(run, *shift_ms),
        Change::Finished(outcome) => {
            run.outcome = Some(Box::new(outcome.clone()));
            run.paused = None;
            // The root's records remain, because `outputs`, `status` and `dump` read them. Everything else is removed.
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
    Ok(())
}

/// Marks an id as used. No id is assigned twice, so the completion of a removed effect finds no other effect.
fn used(run: &mut RunState, id: u64) {
    run.next_id = run.next_id.max(id.saturating_add(1));
}

fn missing(what: &str, id: u64) -> Bug {
    Bug::new(format!("the run has no {what} {id}, which a change names"))
}

// ── variables ───────────────────────────────────────────────────────────────────────────────────

/// Returns the variables of the isolated branch `owner`, or those of the run.
fn variables_of(run: &mut RunState, owner: Option<CursorId>) -> MachineResult<&mut Object> {
    let variables = match owner {
        None => &mut run.variables,
        Some(branch) => match cursor(run, branch)?.frames.first_mut() {
            Some(Frame {
                kind: FrameKind::Isolated(own),
                ..
            }) => &mut own.variables,
            _ => return Err(missing("variables of its own for cursor", branch.0)),
        },
    };
    match variables {
        Value::Object(map) => Ok(Arc::make_mut(map)),
        _ => Err(Bug::new("the variables are not an object")),
    }
}

fn change_variable(variables: &mut Object, change: &VariableChange) -> MachineResult {
    let missing = |name: &Name, what: &str| Bug::new(format!("unknown variable {name} {what}"));
    match change {
        VariableChange::Set(name, value) => {
            variables.insert(name.clone(), value.clone());
        }
        VariableChange::ElementAppended(name, value) => match variables.get_mut(name) {
            Some(Value::Array(items)) => Arc::make_mut(items).push(value.clone()),
            _ => return Err(missing(name, "that is an array")),
        },
        VariableChange::TextAppended(name, more) => match variables.get_mut(name) {
            Some(Value::String(text)) => Arc::make_mut(text).push_str(more),
            _ => return Err(missing(name, "that is text")),
        },
        VariableChange::Removed(name) => {
            let gone = variables.shift_remove(name);
            gone.ok_or_else(|| missing(name, "to remove"))?;
        }
    }
    Ok(())
}

pub(super) fn last_of(array: Option<&Value>) -> Value {
    let last = array.and_then(|array| array.as_array()?.last());
    last.cloned().unwrap_or_default()
}

// ── cursors and frames ──────────────────────────────────────────────────────────────────────────

fn cursor(run: &mut RunState, id: CursorId) -> MachineResult<&mut Cursor> {
    let found = run.cursors.get_mut(&id).map(|cursor| &mut **cursor);
    found.ok_or_else(|| missing("cursor", id.0))
}

fn drop_cursor(run: &mut RunState, id: CursorId) -> MachineResult<Box<Cursor>> {
    run.ready.remove(&id);
    let gone = run.cursors.remove(&id);
    gone.ok_or_else(|| missing("cursor", id.0))
}

fn frame_of(run: &mut RunState, at: FrameRef) -> MachineResult<&mut Frame> {
    let found = cursor(run, at.cursor)?.frames.get_mut(at.depth as usize);
    found.ok_or_else(|| missing("frame", at.depth.into()))
}

fn loop_frame(run: &mut RunState, at: FrameRef) -> MachineResult<&mut LoopState> {
    match &mut frame_of(run, at)?.kind {
        FrameKind::Loop(state) => Ok(state),
        _ => Err(missing("loop", at.depth.into())),
    }
}

fn try_frame(run: &mut RunState, at: FrameRef) -> MachineResult<&mut TryState> {
    match &mut frame_of(run, at)?.kind {
        FrameKind::Try(state) => Ok(state),
        _ => Err(missing("try", at.depth.into())),
    }
}

fn fork_frame(run: &mut RunState, at: FrameRef) -> MachineResult<&mut ForkState> {
    match &mut frame_of(run, at)?.kind {
        FrameKind::Fork(state) => Ok(state),
        _ => Err(missing("fork", at.depth.into())),
    }
}

fn branch_frame(fork: &mut ForkState, index: u32) -> MachineResult<&mut BranchState> {
    let found = fork.branches.get_mut(index as usize);
    found.ok_or_else(|| missing("branch", index.into()))
}

fn count_visit(run: &mut RunState, id: CursorId, node: StateId) -> MachineResult {
    let mut frames = cursor(run, id)?.frames.iter_mut().rev();
    let graph = frames.find_map(|frame| match &mut frame.kind {
        FrameKind::Graph(graph) => Some(graph),
        _ => None,
    });
    let graph = graph.ok_or_else(|| missing("graph for cursor", id.0))?;
    graph.steps = graph.steps.saturating_add(1);
    let of_node = graph.visits.entry(node).or_default();
    *of_node = of_node.saturating_add(1);
    graph.visit = *of_node;
    Ok(())
}

fn keep_value(state: &mut LoopState, name: &Name, value: &Value, append: bool) -> MachineResult {
    let Value::Object(map) = &mut state.collected else {
        return Err(Bug::new(format!("loop {} keeps nothing", state.path)));
    };
    let map = Arc::make_mut(map);
    match map.get_mut(name) {
        Some(Value::Array(items)) if append => Arc::make_mut(items).push(value.clone()),
        _ => {
            let value = value.clone();
            let first = if append {
                Value::array(vec![value])
            } else {
                value
            };
            map.insert(name.clone(), first);
        }
    }
    Ok(())
}

/// Removes and returns the records of the actions in a range of ids, from `action_range.0` to before `action_range.1`.
fn take_range(records: &mut Records, action_range: (u32, u32)) -> Records {
    let mut taken = records.split_off(&ActionId(action_range.0));
    let mut rest = taken.split_off(&ActionId(action_range.1));
    records.append(&mut rest);
    taken
}

fn branch_ended(
    run: &mut RunState,
    at: FrameRef,
    index: u32,
    mut outcome: BranchOutcome,
) -> MachineResult {
    if let BranchState::Running(branch) = *branch_frame(fork_frame(run, at)?, index)? {
        let gone = drop_cursor(run, branch)?;
        if gone.owns_records {
            outcome.records = gone.records;
        }
        let fork = fork_frame(run, at)?;
        fork.running = fork.running.saturating_sub(1);
    }
    *branch_frame(fork_frame(run, at)?, index)? = BranchState::Ended(outcome);
    Ok(())
}

/// Resumes a run. The time of the pause does not count, so every due time and deadline moves by it
/// (docs/reference/loops.md).
fn resumed(run: &mut RunState, shift_ms: i64) {
    run.paused = None;
    let moved = |at: Timestamp| Timestamp(at.0.saturating_add(shift_ms));
    for timer in run.timers.values_mut() {
        timer.due_at = moved(timer.due_at);
    }
    let cursors = run.cursors.values_mut();
    for frame in cursors.flat_map(|cursor| cursor.frames.iter_mut()) {
        match &mut frame.kind {
            FrameKind::Loop(state) => {
                state.deadline = state.deadline.map(moved);
                state.next_due_at = state.next_due_at.map(moved);
            }
            FrameKind::Try(state) => state.next_due_at = state.next_due_at.map(moved),
            FrameKind::Plain
            | FrameKind::Graph(_)
            | FrameKind::Deadline(_)
            | FrameKind::Fork(_)
            | FrameKind::Branch(_)
            | FrameKind::Isolated(_)
            | FrameKind::Root { .. } => {}
        }
    }
}

impl RunState {
    /// Changes the run. The live path and recovery share this function, so that folding the stored changes results in
    /// exactly the state in memory.
    ///
    /// # Errors
    /// The change names an item that the run does not have. So the change is not from this run's journal.
    pub fn apply(&mut self, change: &Change) -> Result<(), Bug> {
        apply(self, change)
    }
}
