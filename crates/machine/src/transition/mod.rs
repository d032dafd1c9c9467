//! A transition that is being built. Only the types in the table below (the handlers) add changes to it. The table
//! shows for each handler what it may change: the changes that it makes itself, and the handlers that it may use
//! (`lends`).

mod changes;
mod forks;
mod loops;
mod movement;
mod records;

use super::bug::MachineResult;
use super::change::Change;
use super::event::{Effect, HistoryEvent, HistoryKind, Transition};
use super::reader::{LoopRef, Reader};
use super::record::LoopEnd;
use super::retry::FaultOrigin;
use super::state::{
    Cursor, CursorId, EffectId, FrameKind, FrameRef, RunError, RunState, TimerId, Wait,
};
use crate::program::{ActionId, Program, StateId};
use rand::rngs::StdRng;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::{Budget, Value};
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

pub(super) use forks::{BranchIsolation, branches_output, new_cursor};
pub(super) use loops::own_output;

/// Maximum number of states that one transition executes. The next transition continues, with `Event::Continued`.
const MAX_STEPS: u32 = 10_000;

/// Maximum units of work in one transition. The next transition continues, with `Event::Continued`, after other runs
/// had time to advance.
const MAX_SPENT: u64 = 50_000;

/// Units of work for executing one state, in addition to its expressions.
const STEP: usize = 4;

/// Maximum number of items of a foreach that may end in one transition.
const LIGHT_ITEMS: u32 = 50;

/// Defines the handlers of the table. For each: the changes that it makes, the events that it reports to the history,
/// and the handlers that it lends to its caller. Code that makes more than one change is in the files of this folder.
macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident {
        $(makes { $($make:ident($($arg:ident: $of:ty),*) = $change:ident $fields:tt;)* })?
        $(reports { $($report:ident($($part:ident: $is:ty),*) = $event:ident $parts:tt;)* })?
        $(lends { $($lend:ident: $lent:ident),* })?
    })*) => { $(
        $(#[$doc])*
        pub(super) struct $name<'t, 'a>(&'t mut TransitionBuilder<'a>);

        impl<'a> $name<'_, 'a> {
            pub fn read(&self) -> Reader<'_, 'a> {
                self.0.read()
            }
            $($(pub fn $make(&mut self, $($arg: $of),*) -> MachineResult {
                self.0.emit(Change::$change $fields)
            })*)?
            $($(pub fn $report(&mut self, $($part: $is),*) {
                self.0.report(HistoryKind::$event $parts);
            })*)?
            $($(pub fn $lend(&mut self) -> $lent<'_, 'a> {
                $lent(self.0)
            })*)?
        }
    )* };
}

// From the lowest to the highest handler: each lends only handlers above it in this table.
handlers! {
    /// Timers, with the effects that arm and disarm them.
    TimerHandler {
        makes { drop_fired(id: TimerId) = TimerDropped(id); }
    }
    /// Records of actions, and their ends in the history.
    RecordHandler {
        makes {
            record_result(id: EffectId, owner: CursorId, status: Status, output: Value, error: Option<Fault>, at: Timestamp)
                = EffectEnded { id, owner, status, output, error, at };
        }
    }
    /// Variables: those of the run, those of isolated branches, and the machine's own.
    VariableHandler {}
    /// Loops: their progress, what they collect, how they end.
    IterationHandler {
        makes {
            record_page(this: LoopRef<'_>, iteration: u64, page: u128)
                = PageSeen { frame: this.frame_ref(), iteration, page };
            delay(this: LoopRef<'_>, due_at: Timestamp)
                = LoopDelayed { frame: this.frame_ref(), due_at };
            grant(this: LoopRef<'_>, max_iterations: u64, deadline: Option<(Timestamp, TimerId)>)
                = BudgetGranted { frame: this.frame_ref(), max_iterations, deadline };
            collect(this: LoopRef<'_>, name: Name, value: Value, append: bool)
                = IterationStored { frame: this.frame_ref(), name, value, append };
        }
        reports {
            report_start(node_name: Name, path: String, max_iterations: u64)
                = LoopStart { node_name, path, max_iterations };
            report_limit(node_name: Name, path: String, limit: LoopEnd) = LoopLimit { node_name, path, limit };
        }
        lends { records: RecordHandler, timers: TimerHandler }
    }
    /// Branches of forks: their cursors, their ends, and the records of forks.
    BranchHandler {
        makes { stop_starting(frame: FrameRef) = ForkClosed { frame }; }
        reports {
            report_limit(node_name: Name, path: String, limit: LoopEnd) = LoopLimit { node_name, path, limit };
        }
        lends { records: RecordHandler }
    }
    /// Cursors: their states, their waits, and the scopes that they enter and leave.
    Movement {
        makes {
            wait_for_branches(cursor: CursorId) = Waits(cursor, Wait::Branches);
            wait_for_budget(cursor: CursorId) = Waits(cursor, Wait::Budget);
        }
        lends {
            branches: BranchHandler, iterations: IterationHandler, records: RecordHandler, timers: TimerHandler,
            variables: VariableHandler
        }
    }
    /// The pause of a run.
    PauseHandler {}
    /// When a loop begins and ends its iterations, and why it ends.
    LoopHandler {
        lends { iterations: IterationHandler, movement: Movement, pauses: PauseHandler, timers: TimerHandler }
    }
    /// When branches start, and how a fork ends.
    ForkHandler {
        lends { branches: BranchHandler, movement: Movement, records: RecordHandler }
    }
    /// How a run ends.
    EndHandler {
        makes { respond(value: Value) = Responded(value); }
        lends { movement: Movement, records: RecordHandler, variables: VariableHandler }
    }
    /// How a fault unwinds.
    FaultHandler {
        makes {
            record_attempt(frame: FrameRef, fault: Fault, at: Timestamp, due_at: Timestamp)
                = AttemptFailed { frame, fault, at, due_at };
            count_attempt(frame: FrameRef) = AttemptBegan { frame };
            remove_records(owner: CursorId, actions: (u32, u32)) = RecordsRemoved(owner, actions);
        }
        reports {
            report_retry(node_name: Name, attempt: u32, next_at: Timestamp, error: String)
                = RetryScheduled { node_name, attempt, next_at, error };
        }
        lends {
            ends: EndHandler, forks: ForkHandler, loops: LoopHandler, movement: Movement, records: RecordHandler,
            timers: TimerHandler, variables: VariableHandler
        }
    }
    /// Requests of actions, and their results.
    CallHandler {
        lends {
            iterations: IterationHandler, movement: Movement, records: RecordHandler, variables: VariableHandler
        }
    }
    /// Sleeps and signals.
    WaitHandler {
        makes {
            store_signal(name: Name, payload: Value) = SignalStored(name, payload);
            take_signal(name: Name) = SignalTaken(name);
        }
        reports {
            report_timer(node_name: Name, due_at: Timestamp) = TimerSet { node_name, due_at };
            report_signal(name: Name) = Signalled { name };
            report_answer(name: Name, by: Name) = Answered { name, by };
        }
        lends { movement: Movement, timers: TimerHandler, variables: VariableHandler }
    }
    /// Entering and leaving scopes.
    ScopeHandler {
        makes {
            remove_records(owner: CursorId, actions: (u32, u32)) = RecordsRemoved(owner, actions);
            count_visit(cursor: CursorId, node: StateId) = Visited(cursor, node);
        }
        lends {
            forks: ForkHandler, loops: LoopHandler, movement: Movement, records: RecordHandler, timers: TimerHandler
        }
    }
    /// One operation of a cursor.
    StepHandler {
        makes { begin_action(cursor: CursorId, action: ActionId) = ActionBegan { cursor, action }; }
        lends {
            calls: CallHandler, ends: EndHandler, faults: FaultHandler, forks: ForkHandler, loops: LoopHandler,
            movement: Movement, records: RecordHandler, scopes: ScopeHandler, variables: VariableHandler,
            waits: WaitHandler
        }
    }
    /// One event of a run.
    EventHandler {
        makes {
            start(at: Timestamp, input: Value) = Started { at, input };
            spawn_root(id: CursorId, cursor: Cursor) = CursorSpawned(id, cursor);
        }
        reports { report_start() = RunStarted {}; }
        lends {
            ends: EndHandler, loops: LoopHandler, movement: Movement, pauses: PauseHandler, steps: StepHandler,
            timers: TimerHandler, variables: VariableHandler
        }
    }
}

/// What must follow after a handler returns.
#[must_use]
pub(super) enum Next {
    /// Nothing: the cursor is where it should be.
    Nothing,
    /// This fault is raised at the cursor.
    Raise(CursorId, Box<RunError>, FaultOrigin),
}

/// A transition that is being built.
pub(super) struct TransitionBuilder<'a> {
    program: &'a Program,
    run: &'a mut RunState,
    now: Timestamp,
    out: Transition,
    /// By cursor: how many iteration boundaries its loop or foreach has crossed in this transition. A loop may cross
    /// only one, so that every iteration has a checkpoint of its own.
    boundaries_crossed: BTreeMap<CursorId, u32>,
    /// Ready cursors that must not continue before the next transition.
    deferred: BTreeSet<CursorId>,
    /// The loops that changed: cursor and depth.
    changed_loops: BTreeSet<FrameRef>,
    random: RefCell<Option<StdRng>>,
    steps: u32,
    budget: &'a Budget,
}

impl<'a> TransitionBuilder<'a> {
    /// Creates an empty transition. `changes` is the buffer of an earlier transition, to be used again.
    pub fn new(
        mut changes: Vec<Change>,
        program: &'a Program,
        run: &'a mut RunState,
        now: Timestamp,
        budget: &'a Budget,
    ) -> Self {
        changes.clear();
        Self {
            program,
            run,
            now,
            out: Transition {
                changes,
                ..Transition::default()
            },
            boundaries_crossed: BTreeMap::new(),
            deferred: BTreeSet::new(),
            changed_loops: BTreeSet::new(),
            random: RefCell::new(None),
            steps: 0,
            budget,
        }
    }

    pub fn events(&mut self) -> EventHandler<'_, 'a> {
        EventHandler(self)
    }

    pub fn steps(&mut self) -> StepHandler<'_, 'a> {
        StepHandler(self)
    }

    pub fn faults(&mut self) -> FaultHandler<'_, 'a> {
        FaultHandler(self)
    }

    /// Returns the next ready cursor. Returns `None` if no cursor is ready, or if this transition has reached a limit
    /// of work.
    pub fn next_ready(&mut self) -> Option<CursorId> {
        if !self.is_live() {
            return None;
        }
        let mut ready = self.run.ready.iter();
        let cursor = ready.find(|id| !self.deferred.contains(id)).copied()?;
        self.steps += 1;
        if self.steps > MAX_STEPS || self.budget.spent() > MAX_SPENT {
            return None;
        }
        // The error is ignored: if the budget is exceeded, the check above ends the transition at the next call.
        let _ = self.budget.charge(STEP);
        Some(cursor)
    }

    /// Returns the complete transition. Adds the rows of loops that changed and are still running.
    pub fn finish(mut self) -> Transition {
        if self.is_live() && self.run.has_ready_cursor() {
            self.effect(Effect::Continue);
        }
        self.out.loops.reserve_exact(self.changed_loops.len());
        for at in &self.changed_loops {
            let cursor = self.run.cursors.get(&at.cursor);
            let frame = cursor.and_then(|cursor| cursor.frames.get(at.depth as usize));
            if let Some(FrameKind::Loop(state)) = frame.map(|frame| &frame.kind) {
                self.out.loops.push(state.row());
            }
        }
        self.out
    }

    fn is_live(&self) -> bool {
        self.run.outcome.is_none() && self.run.paused.is_none()
    }

    fn read(&self) -> Reader<'_, 'a> {
        Reader {
            program: self.program,
            run: self.run,
            now: self.now,
            budget: self.budget,
            random: &self.random,
        }
    }

    fn emit(&mut self, change: Change) -> MachineResult {
        self.run.apply(&change)?;
        self.changed_loops.extend(changed_loop(self.run, &change));
        self.out.changes.push(change);
        Ok(())
    }

    fn effect(&mut self, effect: Effect) {
        self.out.add_effect(effect);
    }

    fn report(&mut self, what: HistoryKind) {
        self.out.history.push(HistoryEvent { at: self.now, what });
    }

    /// Returns true if the loop or foreach of the cursor `owner` may cross an iteration boundary in this transition. If
    /// false, the cursor `waiting` continues in the next transition.
    /// If `alone` is true, the boundary must be the owner's only one in the transition. If false, the owner may cross
    /// up to [`LIGHT_ITEMS`] boundaries.
    fn try_cross_boundary(&mut self, owner: CursorId, waiting: CursorId, alone: bool) -> bool {
        let crossed = self.boundaries_crossed.entry(owner).or_default();
        if *crossed >= LIGHT_ITEMS || alone && *crossed > 0 {
            self.deferred.insert(waiting);
            return false;
        }
        *crossed = if alone { LIGHT_ITEMS } else { *crossed + 1 };
        true
    }
}

/// Returns the frame of the loop that a change concerns; `None` for other changes.
fn changed_loop(run: &RunState, change: &Change) -> Option<FrameRef> {
    match change {
        Change::IterationBegan { frame, .. }
        | Change::IterationEnded { frame, .. }
        | Change::IterationCancelled { frame, .. }
        | Change::ConditionSeen { frame, .. }
        | Change::PageSeen { frame, .. }
        | Change::LoopDelayed { frame, .. }
        | Change::BudgetGranted { frame, .. } => Some(*frame),
        Change::Entered(cursor, frame) if matches!(frame.kind, FrameKind::Loop(_)) => {
            let frames = run.cursors.get(cursor)?.frames.len();
            Some(FrameRef::new(*cursor, frames.checked_sub(1)?))
        }
        _ => None,
    }
}
