//! `advance`: one event in, one transition out. Here: what each kind of event does, and how far a
//! transition goes.

use super::bug::{Bug, MachineResult};
use super::change::{Change, VariableChange};
use super::event::{Effect, Event, HistoryEvent, HistoryKind, Transition};
use super::fault::failure_value;
use super::state::{
    Cursor, CursorId, EffectId, Frame, FrameKind, Outcome, PauseReason, RunError, RunState,
    TimerId, TimerPurpose, Wait,
};
use crate::program::{Op, Outputs, Program, ScopeId, StateId};
use rand::rngs::StdRng;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::{Budget, Value};
use windlass_model::model::{FAILURE, Fault, Name, NamedSpan, STATE_VARIABLE, Status, fault_kind};
use windlass_value::time::Timestamp;

/// Maximum number of states in one transition; what is left continues with `Continued`.
const MAX_STEPS: u32 = 10_000;

/// After so much work a transition ends as well, and what is left continues with `Continued`: others have their turn.
const MAX_SPENT: u64 = 50_000;

/// The work of a step itself.
const STEP: usize = 4;

/// Maximum number of items of a foreach that end in one transition.
const LIGHT_ITEMS: u32 = 50;

/// Moves a run through its program. `now` is the time of the event.
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

/// The same with the buffer of an earlier transition's changes: to allocate one for every step costs a
/// driver of many runs more than the steps. All that is evaluated shares the budget. Where that is exceeded for
/// good, nothing that comes of this is of use.
///
/// # Errors
/// As [`advance`].
pub fn advance_into(
    mut changes: Vec<Change>,
    program: &Program,
    run: &mut RunState,
    now: Timestamp,
    event: Event,
    budget: &Budget,
) -> Result<Transition, Bug> {
    changes.clear();
    let mut stepper = Stepper {
        program,
        run,
        now,
        out: Transition {
            changes,
            ..Transition::default()
        },
        at_boundary: BTreeMap::new(),
        deferred: BTreeSet::new(),
        touched: BTreeSet::new(),
        random: RefCell::new(None),
        steps: 0,
        budget,
    };
    stepper.handle(event)?;
    stepper.run_ready_cursors()?;
    Ok(stepper.finish_transition())
}

pub(super) struct Stepper<'a> {
    pub program: &'a Program,
    pub run: &'a mut RunState,
    pub now: Timestamp,
    pub out: Transition,
    /// The cursors whose loop or foreach crossed iteration boundaries in this transition, and how many.
    /// A loop may cross one, so that every iteration has a checkpoint of its own.
    at_boundary: BTreeMap<CursorId, u32>,
    /// Ready cursors that have to wait for the next transition.
    deferred: BTreeSet<CursorId>,
    /// The loops that changed: cursor and depth.
    touched: BTreeSet<(CursorId, u32)>,
    /// What `rand` and `guid` draw from; seeded by the first step that draws.
    pub random: RefCell<Option<StdRng>>,
    steps: u32,
    /// What the expressions of this transition may do.
    pub budget: &'a Budget,
}

impl Stepper<'_> {
    // ── output ──────────────────────────────────────────────────────────────────────────────

    pub fn emit(&mut self, change: Change) -> MachineResult {
        self.run.apply(&change)?;
        self.touched.extend(touched_loop(self.run, &change));
        self.out.changes.push(change);
        Ok(())
    }

    /// The transition, with the rows of the loops that changed and still run.
    fn finish_transition(mut self) -> Transition {
        self.out.loops.reserve_exact(self.touched.len());
        for (cursor, depth) in &self.touched {
            let cursor = self.run.cursors.get(cursor);
            let frame = cursor.and_then(|cursor| cursor.frames.get(*depth as usize));
            if let Some(FrameKind::Loop(state)) = frame.map(|frame| &frame.kind) {
                self.out.loops.push(state.row());
            }
        }
        self.out
    }

    pub fn effect(&mut self, effect: Effect) {
        self.out.add_effect(effect);
    }

    pub fn report(&mut self, what: HistoryKind) {
        self.out.history.push(HistoryEvent { at: self.now, what });
    }

    /// Whether this cursor's loop or foreach may cross an iteration boundary now; if not, `waiting` continues
    /// in the next transition. Who crosses alone is the only one in a transition; of others there may be
    /// [`LIGHT_ITEMS`].
    pub fn try_cross_boundary(&mut self, owner: CursorId, waiting: CursorId, alone: bool) -> bool {
        let crossed = self.at_boundary.entry(owner).or_default();
        if *crossed >= LIGHT_ITEMS || alone && *crossed > 0 {
            self.deferred.insert(waiting);
            return false;
        }
        *crossed = if alone { LIGHT_ITEMS } else { *crossed + 1 };
        true
    }

    // ── events ──────────────────────────────────────────────────────────────────────────────

    fn handle(&mut self, event: Event) -> MachineResult {
        if self.run.outcome.is_some() {
            return Ok(());
        }
        match event {
            Event::Started { input, environment } => self.handle_started(input, environment),
            Event::Restored(state) => self.handle_restored(state),
            Event::EffectCompleted { id, result } => self.handle_completed(id, result),
            Event::TimerFired { id } => self.handle_timer(id),
            Event::Signalled(signal) => self.handle_signal(signal),
            Event::PauseRequested => self.pause(PauseReason::Requested),
            Event::Resumed => self.handle_resumed(),
            Event::CancelRequested => self.handle_cancel(),
            Event::StateTooLarge { bytes, limit } => self.state_too_large(bytes, limit),
            Event::Continued => Ok(()),
        }
    }

    /// Nothing of the run could make it smaller, so nothing catches this.
    fn state_too_large(&mut self, bytes: u64, limit: u64) -> MachineResult {
        let message = format!(
            "the state of the run has {bytes} bytes; the limit is {limit}: store less in variables \
             and outputs of actions, or write rows with appendFile"
        );
        let error = RunError {
            fault: Fault::new(fault_kind::TOO_LARGE, message),
            action: None,
            iteration: None,
            place: None,
        };
        self.finish(Status::Failed, Value::Null, Some(error))
    }

    fn handle_started(&mut self, input: Value, mut environment: Value) -> MachineResult {
        if !self.run.cursors.is_empty() {
            return Ok(());
        }
        let state = self.program.take_state(&mut environment);
        self.emit(Change::Started {
            at: self.now,
            input,
        })?;
        self.report(HistoryKind::RunStarted);
        let root = Frame {
            scope: ScopeId(0),
            kind: match environment
                .as_object()
                .is_some_and(|known| !known.is_empty())
            {
                false => FrameKind::Plain,
                true => FrameKind::Root { environment },
            },
            entered_at: self.now,
        };
        let id = CursorId(self.run.next_id);
        self.emit(Change::CursorSpawned(
            id,
            Cursor {
                at: self.program.entry,
                parent: None,
                wait: Wait::Ready,
                frames: vec![root],
                records: super::Records::new(),
                owns_records: true,
            },
        ))?;
        if let Some(state) = state {
            let change = VariableChange::Set(Name::from(STATE_VARIABLE), state);
            self.change_variable(id, change)?;
        }
        for (name, initial) in &self.program.variables {
            match self.eval(id, initial) {
                Ok(value) => self.change_variable(id, VariableChange::Set(name.clone(), value))?,
                Err(fault) => {
                    let mut places = self.program.places.variables.iter();
                    let place = places.find(|place| place.name == *name).cloned();
                    let place = place.unwrap_or_else(|| NamedSpan {
                        name: name.clone(),
                        span: Default::default(),
                    });
                    return self.finish_with_fault("variable", Some(&place), fault);
                }
            }
        }
        // What the caller gives lies over the initial state (docs/reference/tea.md).
        if self.program.outputs == Outputs::State {
            let input = self.run.input.clone();
            self.merge_all(id, &input)?;
        }
        Ok(())
    }

    /// Continues where another run had been: what was in flight there starts again.
    fn handle_restored(&mut self, state: Box<RunState>) -> MachineResult {
        if !self.run.cursors.is_empty() {
            return Ok(());
        }
        self.emit(Change::Restored(state))?;
        self.report(HistoryKind::RunStarted);
        let rows: Vec<_> = self.run.loops().map(|(_, _, state)| state.row()).collect();
        self.out.loops.extend(rows);
        self.start_outstanding();
        Ok(())
    }

    /// Starts and arms all that is outstanding; a driver that holds it already ignores that. What
    /// is ready is settled in any case.
    fn start_outstanding(&mut self) {
        let again: Vec<Effect> = self
            .run
            .outstanding()
            .filter(|effect| *effect != Effect::Continue)
            .collect();
        again.into_iter().for_each(|effect| self.effect(effect));
    }

    /// A value of the workflow that cannot be computed does not belong to an action: it has a name and a
    /// place of its own.
    pub fn finish_with_fault(
        &mut self,
        what: &str,
        place: Option<&NamedSpan>,
        fault: Fault,
    ) -> MachineResult {
        let mut fault = fault;
        if let Some(NamedSpan { name, .. }) = place {
            fault.message = match &**name {
                "" => format!("{what}s: {}", fault.message),
                _ => format!("{what} `{name}`: {}", fault.message),
            };
        }
        let spot = place.map(|place| (place.span.file, place.span.line));
        let error = RunError {
            fault,
            action: None,
            iteration: None,
            place: spot.filter(|(_, line)| *line > 0),
        };
        self.finish(Status::Failed, Value::Null, Some(error))
    }

    fn handle_completed(&mut self, id: EffectId, result: Result<Value, Fault>) -> MachineResult {
        // A completion of a forgotten id is a no-op: a deadline was faster.
        let Some(effect) = self.run.effects.get(&id) else {
            return Ok(());
        };
        let (cursor, action) = (effect.cursor, effect.action);
        let attempt = effect.request.attempt;
        let node_name = self.display_name(action, &effect.request.action);
        let hides = self.secured_parts(action).outputs;
        let result = match hides {
            true => result.map(Value::secure).map_err(hide_message),
            false => result,
        };
        let result = result.and_then(|own| {
            let output = match action.and_then(|action| self.mapping_of(action)) {
                Some(template) => self
                    .map_output(cursor, template, &own)
                    .map_err(|fault| fault.output(own.clone()))?,
                None => own.clone(),
            };
            let output = if hides { output.secure() } else { output };
            Ok((own, output))
        });
        let (status, output, error) = match &result {
            Ok((_, output)) => (Status::Succeeded, output.clone(), None),
            Err(fault) => {
                let output = fault.output.clone().unwrap_or_default();
                (fault.status(), output, Some(fault.without_output()))
            }
        };
        let message = error.as_ref().map(|fault| fault.message.clone());
        self.emit(Change::EffectEnded {
            id,
            owner: self.run.record_owner(cursor),
            status,
            output,
            error,
            at: self.now,
        })?;
        let answer = match &result {
            Ok((own, _)) => Some(own),
            Err(fault) => fault.output.as_ref(),
        };
        self.count_usage(cursor, answer)?;
        let (path, iteration) = self.view(cursor).innermost_iteration().unzip();
        self.report(HistoryKind::ActionEnded {
            node_name,
            status,
            error: message,
            attempt,
            path,
            iteration,
        });
        match result {
            Ok((own, _)) => self.assign_call_result(cursor, &own),
            Err(fault) => self.raise_here(cursor, fault),
        }
    }

    fn handle_timer(&mut self, id: TimerId) -> MachineResult {
        let timer = self.run.timers.get(&id);
        // In a pause nothing moves, and a timer that was disarmed is a no-op.
        let Some(timer) = timer.filter(|_| self.run.paused.is_none()) else {
            return Ok(());
        };
        let (cursor, purpose, due_at) = (timer.cursor, timer.purpose, timer.due_at);
        if self.now < due_at {
            // It was on its way when a resume moved it.
            self.effect(Effect::Arm { id, due_at });
            return Ok(());
        }
        self.emit(Change::TimerDropped(id))?;
        match purpose {
            TimerPurpose::Delay => self.begin_iteration(cursor),
            TimerPurpose::Retry => self.begin_attempt(cursor),
            TimerPurpose::Sleep => self.complete_wait(cursor, Value::Null, self.now),
            TimerPurpose::SleepSince(since) => self.complete_wait(cursor, Value::Null, since),
            TimerPurpose::Deadline(scope) => self.deadline_passed(cursor, scope),
        }
    }

    /// The run is paused. Effects in flight may complete and are recorded; nothing else moves.
    pub fn pause(&mut self, reason: PauseReason) -> MachineResult {
        if self.run.paused.is_some() {
            return Ok(());
        }
        let text = match &reason {
            PauseReason::Requested => String::from("requested"),
            PauseReason::Limit(path, end) => {
                format!("loop {path} reached its {} limit", end.as_str())
            }
        };
        self.report(HistoryKind::RunPaused { reason: text });
        self.emit(Change::Paused {
            at: self.now,
            reason,
        })
    }

    fn handle_resumed(&mut self) -> MachineResult {
        let Some((since, reason)) = self.run.paused.clone() else {
            return Ok(());
        };
        // They move.
        let armed = self.run.timers.iter();
        let armed: Vec<_> = armed.map(|(id, timer)| (*id, timer.due_at)).collect();
        for (id, due_at) in armed {
            self.effect(Effect::Disarm { id, due_at });
        }
        let stood = self.now.since(since).as_millis();
        self.emit(Change::Resumed {
            shift_ms: i64::try_from(stood).unwrap_or(i64::MAX),
        })?;
        self.report(HistoryKind::RunResumed);
        // A restart may have ended what was in flight.
        self.start_outstanding();
        match reason {
            PauseReason::Limit(path, _) => self.grant_budget(&path),
            PauseReason::Requested => Ok(()),
        }
    }

    /// Ends the run, after what is to be done then. A second cancel does not wait for that.
    fn handle_cancel(&mut self) -> MachineResult {
        let cleanup = self.program.ending.and_then(|ending| ending.cancelled);
        let root = self.run.root().ok().map(|(root, _)| root);
        let (Some(cleanup), Some(root)) = (cleanup, root) else {
            return self.finish(Status::Cancelled, Value::Null, None);
        };
        // A failure may have led there.
        let has_begun = self.is_in_cleanup(root, cleanup)?;
        let waits = match has_begun {
            true => !self.run.is_cancelling(),
            false => self.is_in_body(root)?,
        };
        if !waits {
            return self.finish(Status::Cancelled, Value::Null, None);
        }
        if has_begun {
            self.handle_resumed()?;
        } else {
            self.cancel(root, 1, Status::Cancelled)?;
            self.end_pause()?;
        }
        let fault = Fault::new(fault_kind::CANCELLED, "the run was cancelled");
        let error = self.locate_fault(root, fault)?;
        let failure = failure_value(&error, Status::Cancelled);
        self.change_variable(root, VariableChange::Set(Name::from(FAILURE), failure))?;
        match has_begun {
            true => Ok(()),
            false => self.emit(Change::Moved(root, cleanup)),
        }
    }

    /// Whether the root is in what is done first at the end, which begins at `cleanup`.
    fn is_in_cleanup(&self, root: CursorId, cleanup: StateId) -> MachineResult<bool> {
        if self.run.cursor(root)?.at == cleanup {
            return Ok(true);
        }
        let Some(Op::Enter(entered)) = self.program.state(cleanup).map(|state| &state.op) else {
            return Ok(false);
        };
        let here = self.state_of(root)?.scope;
        Ok(self.program.ancestry(here).any(|(id, _)| id == *entered))
    }

    /// A paused run continues; nothing of it is in flight and no timer is armed.
    fn end_pause(&mut self) -> MachineResult {
        let Some((since, _)) = &self.run.paused else {
            return Ok(());
        };
        let shift_ms = i64::try_from(self.now.since(*since).as_millis()).unwrap_or(i64::MAX);
        self.emit(Change::Resumed { shift_ms })?;
        self.report(HistoryKind::RunResumed);
        Ok(())
    }

    // ── how far a transition goes ───────────────────────────────────────────────────────────

    fn run_ready_cursors(&mut self) -> MachineResult {
        while self.is_live() {
            let mut ready = self.run.ready.iter();
            let Some(cursor) = ready.find(|id| !self.deferred.contains(id)).copied() else {
                break;
            };
            self.steps += 1;
            if self.steps > MAX_STEPS || self.budget.spent() > MAX_SPENT {
                break;
            }
            // Beyond it, the loop ends above.
            let _ = self.budget.charge(STEP);
            self.step(cursor)?;
        }
        if self.is_live() && self.run.has_ready_cursor() {
            self.effect(Effect::Continue);
        }
        Ok(())
    }

    fn is_live(&self) -> bool {
        self.run.outcome.is_none() && self.run.paused.is_none()
    }

    /// The run ends: whatever it still does is cancelled.
    pub fn finish(
        &mut self,
        status: Status,
        output: Value,
        error: Option<RunError>,
    ) -> MachineResult {
        // One that is cancelled before it began has none.
        if let Ok((root, _)) = self.run.root() {
            self.cancel(root, 0, Status::Cancelled)?;
        }
        // A response that was recorded earlier is retained, however the run ends.
        let output = match status {
            Status::Succeeded => output,
            _ => self.run.response.clone().unwrap_or_default(),
        };
        let outcome = Outcome {
            status,
            output,
            error,
            at: self.now,
        };
        self.emit(Change::Finished(outcome.clone()))?;
        self.report(HistoryKind::RunFinished { status });
        self.effect(Effect::Finish(outcome));
        Ok(())
    }
}

/// A fault of an action whose outputs are secure: what it says may come from them.
fn hide_message(fault: Fault) -> Fault {
    let own = [fault_kind::TIMEOUT, fault_kind::DENIED, fault_kind::SECRET];
    let status = |code: &Name| code.len() <= 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    Fault {
        message: match own.contains(&&*fault.kind) {
            true => fault.message,
            false => String::from("what it says is hidden: the outputs of this action are secure"),
        },
        code: fault.code.filter(status),
        output: fault.output.map(Value::secure),
        ..fault
    }
}

/// The loop that a change concerns: its cursor and depth.
fn touched_loop(run: &RunState, change: &Change) -> Option<(CursorId, u32)> {
    match change {
        Change::IterationBegan { cursor, depth, .. }
        | Change::IterationEnded { cursor, depth, .. }
        | Change::IterationCancelled { cursor, depth, .. }
        | Change::ConditionSeen { cursor, depth, .. }
        | Change::PageSeen { cursor, depth, .. }
        | Change::LoopDelayed { cursor, depth, .. }
        | Change::BudgetGranted { cursor, depth, .. } => Some((*cursor, *depth)),
        Change::Entered(
            cursor,
            Frame {
                kind: FrameKind::Loop(_),
                ..
            },
        ) => {
            let frames = run.cursors.get(cursor)?.frames.len();
            Some((*cursor, u32::try_from(frames.checked_sub(1)?).ok()?))
        }
        _ => None,
    }
}
