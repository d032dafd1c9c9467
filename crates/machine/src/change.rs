//! Every way a run can change, as data: what a commit stores and recovery folds.

use super::record::{LoopEnd, Output};
use super::state::{
    BranchOutcome, Cursor, CursorId, EffectId, Frame, Outcome, PauseReason, PendingEffect,
    PendingTimer, RunState, TimerId, Wait,
};
use crate::program::{ActionId, StateId};
use bincode::{Decode, Encode};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

/// One change of a run.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Change {
    /// The run began.
    Started {
        at: Timestamp,
        /// What the caller gave.
        input: Value,
    },
    VariableChanged {
        /// The branch that has it to itself; none: it is the run's.
        owner: Option<CursorId>,
        change: VariableChange,
    },
    /// An action begins at the cursor's state: nothing of it has been done yet. One that has a
    /// deadline or retries begins in each of them too.
    ActionBegan {
        cursor: CursorId,
        action: ActionId,
    },
    /// The iteration of the loop at this depth of this cursor was cancelled: it counts for nothing,
    /// and the records are those of the iteration before.
    IterationCancelled {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// The first and the end of the action ids in its body.
        inner: (u32, u32),
    },
    /// A cursor came to be; its id is the run's next.
    CursorSpawned(CursorId, Cursor),
    /// A cursor is gone.
    CursorDropped(CursorId),
    /// A cursor moved to another state, and is ready.
    Moved(CursorId, StateId),
    Waits(CursorId, Wait),
    /// A cursor is one scope deeper.
    Entered(CursorId, Frame),
    /// A cursor left scopes: this many of its frames remain.
    Popped(CursorId, u32),
    /// A cursor entered one more node of its innermost graph; the state that counts the node.
    Visited(CursorId, StateId),
    /// An action ended without an effect.
    Recorded {
        /// Where its record lies.
        owner: CursorId,
        action: ActionId,
        /// How it ended.
        status: Status,
        /// Its result.
        output: Output,
        /// Why it failed.
        error: Option<Fault>,
        started_at: Timestamp,
        /// When it ended.
        at: Timestamp,
    },
    /// The records of these actions, from the first up to the second, are of another round.
    Forgotten(CursorId, (u32, u32)),
    /// An effect was requested; its id is the run's next.
    EffectRequested(EffectId, PendingEffect),
    /// An effect is done: its record takes the request's inputs.
    EffectEnded {
        id: EffectId,
        /// Where its record lies.
        owner: CursorId,
        /// How it ended.
        status: Status,
        /// Its result.
        output: Value,
        /// Why it failed.
        error: Option<Fault>,
        at: Timestamp,
    },
    /// An effect no longer matters.
    EffectDropped(EffectId),
    /// A timer was armed; its id is the run's next.
    TimerArmed(TimerId, PendingTimer),
    /// A timer fired or no longer matters.
    TimerDropped(TimerId),
    /// The loop at this depth of this cursor began an iteration: the records of its body become
    /// those of the iteration before.
    IterationBegan {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// The first and the end of the action ids in its body.
        inner: (u32, u32),
        at: Timestamp,
    },
    /// The loop at this depth of this cursor ended an iteration.
    IterationEnded {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        status: Status,
    },
    /// A value of an ended iteration is stored with the loop at this depth.
    IterationStored {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        name: Name,
        value: Value,
        /// Appended to an array of that name: costs the element.
        append: bool,
    },
    /// A loop checked its condition.
    ConditionSeen {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// What the authored condition gave.
        value: bool,
    },
    /// The loop at this depth delays until then.
    LoopDelayed {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// When the next iteration begins.
        due_at: Timestamp,
    },
    /// A loop is over; its frame is popped next.
    LoopEnded {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        end: LoopEnd,
    },
    /// A loop that paused at its limit got its budget again.
    BudgetGranted {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// The new count limit.
        max_iterations: u64,
        /// The new deadline and its timer, when it has one.
        deadline: Option<(Timestamp, TimerId)>,
    },
    /// An attempt of the try at this depth failed and another follows.
    AttemptFailed {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        fault: Fault,
        /// When it failed.
        at: Timestamp,
        /// When the next begins.
        due_at: Timestamp,
    },
    /// The next attempt of the try at this depth began.
    AttemptBegan {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
    },
    /// A branch of the fork at this depth runs.
    BranchStarted {
        /// The fork's cursor.
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// Which branch.
        index: u32,
        branch: CursorId,
    },
    /// A branch of the fork at this depth ended; its cursor is gone and, for a foreach, the
    /// cursor's records are the outcome's.
    BranchEnded {
        /// The fork's cursor.
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// Which branch.
        index: u32,
        outcome: BranchOutcome,
    },
    /// No further branch of the fork at this depth starts.
    ForkClosed {
        /// The fork's cursor.
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
    },
    /// A foreach is over: its iterations' records become its output.
    ForEachRecorded {
        /// The fork's cursor.
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// Where its record lies.
        owner: CursorId,
        action: ActionId,
        body: Vec<ActionId>,
        /// How it ended.
        status: Status,
        /// Why it failed.
        error: Option<Fault>,
        /// What it gave, where that is not its iterations' results.
        output: Option<Value>,
        at: Timestamp,
    },
    /// The run's response was recorded.
    Responded(Value),
    /// A signal came before anything waited for it.
    SignalStored(Name, Value),
    /// A stored signal was taken.
    SignalTaken(Name),
    /// The run is paused.
    Paused {
        /// Since when.
        at: Timestamp,
        reason: PauseReason,
    },
    /// It continues; every due time and deadline moved by this many milliseconds.
    Resumed {
        /// How long it stood still.
        shift_ms: i64,
    },
    /// The run ended: nothing is pending any more.
    Finished(Outcome),
    /// The run began where another one had come to: as this state, under its own id.
    Restored(Box<RunState>),
    /// The loop at this depth is at a page that it has not been at.
    PageSeen {
        cursor: CursorId,
        /// The frame's index.
        depth: u32,
        /// The iteration that reads it, from 0.
        iteration: u64,
        /// What its token hashes to.
        page: u128,
    },
}

/// Every way a variable can change.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum VariableChange {
    /// It got a value.
    Set(Name, Value),
    /// An array got one more element: costs the element.
    ElementAppended(Name, Value),
    /// A text got more at its end: costs that.
    TextAppended(Name, String),
    /// The variable was removed.
    Removed(Name),
}

impl Change {
    /// Whether the values that it brings have no more than about this many bytes each.
    #[must_use]
    pub fn fits_in_bytes(&self, bytes: usize) -> bool {
        let fits = |value: &Value| value.fits_in_bytes(bytes);
        match self {
            Self::Started { input: value, .. }
            | Self::EffectEnded { output: value, .. }
            | Self::IterationStored { value, .. }
            | Self::Recorded {
                output: Output::Value(value),
                ..
            }
            | Self::Responded(value)
            | Self::SignalStored(_, value) => fits(value),
            Self::VariableChanged { change, .. } => match change {
                VariableChange::Set(_, value) | VariableChange::ElementAppended(_, value) => {
                    fits(value)
                }
                VariableChange::TextAppended(_, more) => more.len() <= bytes,
                VariableChange::Removed(_) => true,
            },
            Self::EffectRequested(_, effect) => fits(&effect.request.inputs),
            Self::Restored(_) => false,
            // Nothing, or what other changes brought.
            _ => true,
        }
    }

    /// A variable of the run gets a value.
    #[must_use]
    pub fn set(name: Name, value: Value) -> Self {
        Self::VariableChanged {
            owner: None,
            change: VariableChange::Set(name, value),
        }
    }
}
