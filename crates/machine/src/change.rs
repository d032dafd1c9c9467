//! Every change of a run, as data: a commit stores changes and recovery folds them.

use super::record::{LoopEnd, Output};
use super::state::{
    BranchOutcome, Cursor, CursorId, EffectId, Frame, FrameRef, Outcome, PauseReason,
    PendingEffect, PendingTimer, RunState, TimerId, Wait,
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
        /// The input that the caller passed.
        input: Value,
    },
    VariableChanged {
        /// The isolated branch that has the variable; `None` for a variable of the run.
        owner: Option<CursorId>,
        change: VariableChange,
    },
    /// An action begins at the cursor's state; no part of it was executed before.
    /// If the action has a deadline or retries, it begins at the state that enters their scope.
    ActionBegan {
        cursor: CursorId,
        action: ActionId,
    },
    /// The iteration of the loop at this depth of this cursor was cancelled.
    /// The iteration does not count, and the records are again those of the iteration before.
    IterationCancelled {
        frame: FrameRef,
        /// The range of action ids in the body of the loop: the first, and the end (exclusive).
        action_range: (u32, u32),
    },
    /// A cursor was created. Its id is the run's next id.
    CursorSpawned(CursorId, Cursor),
    /// A cursor was removed.
    CursorDropped(CursorId),
    /// A cursor moved to another state, and can continue there.
    Moved(CursorId, StateId),
    Waits(CursorId, Wait),
    /// A cursor entered a scope.
    Entered(CursorId, Frame),
    /// A cursor left scopes. The number says how many of its frames remain.
    Popped(CursorId, u32),
    /// A cursor entered a node of its innermost graph. The visits of a node are counted under this state.
    Visited(CursorId, StateId),
    /// An action that requested no effect has ended.
    Recorded {
        /// The cursor that owns the record of the action.
        owner: CursorId,
        action: ActionId,
        status: Status,
        /// The result of the action.
        output: Output,
        /// Why the action failed; `None` if it did not fail.
        error: Option<Fault>,
        started_at: Timestamp,
        /// When the action ended.
        at: Timestamp,
    },
    /// The records of actions were removed, because the actions run again. The range is the first action id and the end
    /// (exclusive).
    RecordsRemoved(CursorId, (u32, u32)),
    /// An effect was requested. Its id is the run's next id.
    EffectRequested(EffectId, PendingEffect),
    /// An effect ended. The action's record gets the inputs of the effect's request.
    EffectEnded {
        id: EffectId,
        /// The cursor that owns the record of the action.
        owner: CursorId,
        /// How the action ended.
        status: Status,
        output: Value,
        /// Why the action failed; `None` if it did not fail.
        error: Option<Fault>,
        at: Timestamp,
    },
    /// An effect was dropped. If it completes, the completion is ignored.
    EffectDropped(EffectId),
    /// A timer was armed. Its id is the run's next id.
    TimerArmed(TimerId, PendingTimer),
    /// A timer fired or was disarmed.
    TimerDropped(TimerId),
    /// The loop at this depth of this cursor began an iteration. The current records of the loop's body become the
    /// records of the iteration before.
    IterationBegan {
        frame: FrameRef,
        /// The range of action ids in the body of the loop: the first, and the end (exclusive).
        action_range: (u32, u32),
        at: Timestamp,
    },
    /// The loop at this depth of this cursor ended an iteration.
    IterationEnded {
        frame: FrameRef,
        status: Status,
    },
    /// A value of an ended iteration is stored with the loop at this depth.
    IterationStored {
        frame: FrameRef,
        name: Name,
        value: Value,
        /// Whether the value is appended to an array with this name. Then the change contains only the new element.
        append: bool,
    },
    /// A loop checked its condition.
    ConditionSeen {
        frame: FrameRef,
        /// Result of the authored condition.
        value: bool,
    },
    /// The loop at this depth delays its next iteration.
    LoopDelayed {
        frame: FrameRef,
        /// When the next iteration begins.
        due_at: Timestamp,
    },
    /// A loop ended. The next change pops its frame.
    LoopEnded {
        frame: FrameRef,
        end: LoopEnd,
    },
    /// The run had paused at a limit of a loop. This loop was granted more iterations and time.
    BudgetGranted {
        frame: FrameRef,
        /// The new maximum number of iterations.
        max_iterations: u64,
        /// The new deadline and its timer, if the loop has one.
        deadline: Option<(Timestamp, TimerId)>,
    },
    /// An attempt of the try at this depth failed and another follows.
    AttemptFailed {
        frame: FrameRef,
        fault: Fault,
        /// When the attempt failed.
        at: Timestamp,
        /// When the next attempt begins.
        due_at: Timestamp,
    },
    /// The next attempt of the try at this depth began.
    AttemptBegan {
        frame: FrameRef,
    },
    /// A branch of the fork at this depth started.
    BranchStarted {
        frame: FrameRef,
        /// The index of the branch.
        index: u32,
        branch: CursorId,
    },
    /// A branch of the fork at this depth ended.
    /// The branch's cursor is removed. If the cursor owned records, they become part of the outcome.
    BranchEnded {
        frame: FrameRef,
        /// The index of the branch.
        index: u32,
        outcome: BranchOutcome,
    },
    /// The fork at this depth starts no further branches.
    ForkClosed {
        frame: FrameRef,
    },
    /// A foreach ended. The records of its iterations become its output.
    ForEachRecorded {
        frame: FrameRef,
        /// The cursor that owns the record of the action.
        owner: CursorId,
        action: ActionId,
        body: Vec<ActionId>,
        /// How the action ended.
        status: Status,
        /// Why the action failed; `None` if it did not fail.
        error: Option<Fault>,
        /// The output of the foreach; `None` if it is the results of its iterations.
        output: Option<Value>,
        at: Timestamp,
    },
    /// The run's response was recorded.
    Responded(Value),
    /// A signal arrived before a cursor waited for it.
    SignalStored(Name, Value),
    /// A stored signal was consumed by a cursor.
    SignalTaken(Name),
    /// The run is paused.
    Paused {
        /// Since when the run is paused.
        at: Timestamp,
        reason: PauseReason,
    },
    /// The run continues. Every due time and deadline moves by the duration of the pause.
    Resumed {
        /// Duration of the pause, in milliseconds.
        shift_ms: i64,
    },
    /// The run ended. Nothing of it is pending any more.
    Finished(Outcome),
    /// The run began at a point of another run: with the state at that point, and with its own id.
    Restored(Box<RunState>),
    /// The loop at this depth reached a page for the first time.
    PageSeen {
        frame: FrameRef,
        /// The iteration that reads the page, from 0.
        iteration: u64,
        /// Hash of the page's token.
        page: u128,
    },
}

/// Every change of a variable.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum VariableChange {
    /// The variable got a value.
    Set(Name, Value),
    /// An element was appended to an array. The change contains only the element.
    ElementAppended(Name, Value),
    /// A text was appended to a text. The change contains only the appended part.
    TextAppended(Name, String),
    /// The variable was removed.
    Removed(Name),
}

impl VariableChange {
    /// Returns the name of the variable.
    pub(super) fn name(&self) -> &Name {
        match self {
            Self::Set(name, _)
            | Self::ElementAppended(name, _)
            | Self::TextAppended(name, _)
            | Self::Removed(name) => name,
        }
    }
}

impl Change {
    /// Returns true if each value in the change has at most about this many bytes.
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
            // These changes have no values, or only values that other changes have, too.
            _ => true,
        }
    }

    /// Returns the change that sets a variable of the run.
    #[must_use]
    pub fn set(name: Name, value: Value) -> Self {
        Self::VariableChanged {
            owner: None,
            change: VariableChange::Set(name, value),
        }
    }
}
