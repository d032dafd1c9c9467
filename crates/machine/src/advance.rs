//! `advance`: one event in, one transition out. This file handles each kind of event.

use super::bug::{Bug, MachineResult};
use super::change::{Change, VariableChange};
use super::event::{Event, Transition};
use super::state::{CursorId, FrameKind, PauseReason, RunState, TimerId};
use super::transition::{EventHandler, Next, TransitionBuilder, new_cursor};
use crate::program::{Op, Outputs, Program, ScopeId, StateId};
use windlass_expression::{Budget, Value};
use windlass_model::model::{Fault, Name, NamedSpan, STATE_VARIABLE, Status, fault_kind};
use windlass_value::time::Timestamp;

/// Advances a run by one event. `now` is the time of the event.
///
/// # Errors
/// As [`advance_into`].
pub fn advance(
    program: &Program,
    run: &mut RunState,
    now: Timestamp,
    event: Event,
) -> Result<Transition, Bug> {
    advance_into(Vec::new(), program, run, now, event, &Budget::default())
}

/// Does the same as [`advance`], and reuses the buffer for changes of an earlier transition. Otherwise a driver of many
/// runs would spend more time on allocating buffers than on the steps. All evaluations share the budget. If they exceed
/// the budget and also its reserve for handling the fault, the caller must discard the transition and the run.
///
/// # Errors
/// The run is in a state that the machine's rules exclude.
pub fn advance_into(
    changes: Vec<Change>,
    program: &Program,
    run: &mut RunState,
    now: Timestamp,
    event: Event,
    budget: &Budget,
) -> Result<Transition, Bug> {
    let mut transition = TransitionBuilder::new(changes, program, run, now, budget);
    let next = transition.events().handle(event)?;
    transition.faults().settle(next)?;
    while let Some(cursor) = transition.next_ready() {
        let next = transition.steps().step(cursor)?;
        transition.faults().settle(next)?;
    }
    Ok(transition.finish())
}

impl EventHandler<'_, '_> {
    fn handle(&mut self, event: Event) -> MachineResult<Next> {
        if self.read().run.outcome.is_some() {
            return Ok(Next::Nothing);
        }
        match event {
            Event::Started { input, environment } => self.handle_started(input, environment),
            Event::Restored(state) => self.handle_restored(state),
            Event::EffectCompleted { id, result } => self.steps().complete_call(id, result),
            Event::TimerFired { id } => self.handle_timer(id),
            Event::Signalled(signal) => match self.steps().waits().receive_signal(signal)? {
                Some((cursor, value, since)) => self.steps().complete_wait(cursor, value, since),
                None => Ok(Next::Nothing),
            },
            Event::PauseRequested => self.pauses().pause(PauseReason::Requested),
            Event::Resumed => self.handle_resumed(),
            Event::CancelRequested => self.handle_cancel(),
            Event::StateTooLarge { bytes, limit } => self.handle_too_large(bytes, limit),
            Event::Continued => Ok(Next::Nothing),
        }
    }

    fn handle_started(&mut self, input: Value, mut environment: Value) -> MachineResult<Next> {
        let read = self.read();
        if !read.run.cursors.is_empty() {
            return Ok(Next::Nothing);
        }
        let program = read.program;
        let state = program.take_state(&mut environment);
        let (now, root) = (read.now, CursorId(read.run.next_id));
        self.start(now, input)?;
        self.report_start();
        let known = environment.as_object();
        let kind = match known.is_some_and(|known| !known.is_empty()) {
            false => FrameKind::Plain,
            true => FrameKind::Root { environment },
        };
        let cursor = new_cursor(None, ScopeId(0), program.entry, kind, now);
        self.spawn_root(root, cursor)?;
        if let Some(state) = state {
            let change = VariableChange::Set(Name::from(STATE_VARIABLE), state);
            self.variables().change(root, change)?;
        }
        for (name, initial) in &program.variables {
            match self.read().eval(root, initial) {
                Ok(value) => {
                    let change = VariableChange::Set(name.clone(), value);
                    self.variables().change(root, change)?;
                }
                Err(fault) => {
                    let mut places = program.places.variables.iter();
                    let place = places.find(|place| place.name == *name).cloned();
                    let place = place.unwrap_or_else(|| NamedSpan {
                        name: name.clone(),
                        span: Default::default(),
                    });
                    let mut ends = self.ends();
                    return ends.finish_with_fault("variable", Some(&place), fault);
                }
            }
        }
        // The caller's input replaces parts of the initial state (docs/reference/tea.md).
        if program.outputs == Outputs::State {
            let input = self.read().run.input.clone();
            self.variables().merge_all(root, &input)?;
        }
        Ok(Next::Nothing)
    }

    /// Begins the run at a point of another run. The effects that were in flight at this point start again.
    fn handle_restored(&mut self, state: Box<RunState>) -> MachineResult<Next> {
        if self.read().run.cursors.is_empty() {
            self.restore_run(state)?;
            self.start_outstanding();
        }
        Ok(Next::Nothing)
    }

    fn handle_timer(&mut self, id: TimerId) -> MachineResult<Next> {
        let read = self.read();
        let timer = read.run.timers.get(&id);
        // A paused run does not handle timers. A timer that was disarmed is not in the run any more, so its event does
        // nothing.
        let Some(timer) = timer.filter(|_| read.run.paused.is_none()) else {
            return Ok(Next::Nothing);
        };
        let (cursor, purpose, due_at) = (timer.cursor, timer.purpose, timer.due_at);
        if read.now < due_at {
            self.arm_again(id, due_at);
            return Ok(Next::Nothing);
        }
        self.timers().drop_fired(id)?;
        self.steps().complete_timer(cursor, purpose)
    }

    fn handle_resumed(&mut self) -> MachineResult<Next> {
        let Some(reason) = self.pauses().resume()? else {
            return Ok(Next::Nothing);
        };
        // If the process was restarted during the pause, no effect is in flight any more.
        self.start_outstanding();
        match reason {
            PauseReason::Limit(path, _) => self.loops().grant_budget(&path),
            PauseReason::Requested => Ok(Next::Nothing),
        }
    }

    /// Ends a run whose state is too large.
    /// No step of the run could make the state smaller, so no part of the workflow can catch this fault.
    fn handle_too_large(&mut self, bytes: u64, limit: u64) -> MachineResult<Next> {
        let message = format!(
            "the state of the run has {bytes} bytes; the limit is {limit}: store less in variables \
             and outputs of actions, or write rows with appendFile"
        );
        let fault = Fault::new(fault_kind::TOO_LARGE, message);
        self.ends().finish_with_fault("state", None, fault)
    }

    /// Cancels the run: the workflow's cleanup runs, then the run ends. A second cancel ends the run without waiting
    /// for the cleanup.
    fn handle_cancel(&mut self) -> MachineResult<Next> {
        let read = self.read();
        let cleanup = read.program.ending.and_then(|ending| ending.cancelled);
        let root = read.run.root().ok().map(|(root, _)| root);
        let (Some(cleanup), Some(root)) = (cleanup, root) else {
            return self.ends().finish(Status::Cancelled, Value::Null, None);
        };
        // The cleanup may already run, because the run failed before.
        let has_begun = self.is_in_cleanup(root, cleanup)?;
        let waits = match has_begun {
            true => !read.run.is_cancelling(),
            false => read.is_in_body(root)?,
        };
        if !waits {
            return self.ends().finish(Status::Cancelled, Value::Null, None);
        }
        if has_begun {
            let next = self.handle_resumed()?;
            self.steps().faults().settle(next)?;
        } else {
            self.movement().cancel(root, 1, Status::Cancelled)?;
            self.pauses().resume()?;
        }
        let fault = Fault::new(fault_kind::CANCELLED, "the run was cancelled");
        let error = self.read().locate_fault(root, fault)?;
        self.ends().set_failure(root, &error, Status::Cancelled)?;
        match has_begun {
            true => Ok(Next::Nothing),
            false => self.movement().move_to(root, cleanup),
        }
    }

    /// Returns true if the root cursor is in the cleanup, whose first state is `cleanup`.
    fn is_in_cleanup(&self, root: CursorId, cleanup: StateId) -> MachineResult<bool> {
        let read = self.read();
        if read.run.cursor(root)?.at == cleanup {
            return Ok(true);
        }
        let Some(Op::Enter(entered)) = read.program.state(cleanup).map(|state| &state.op) else {
            return Ok(false);
        };
        let here = read.state_of(root)?.scope;
        Ok(read.program.ancestry(here).any(|(id, _)| id == *entered))
    }
}
