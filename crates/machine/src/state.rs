//! The complete state of a run, as plain data for the store.
//!
//! Only `apply` changes it.

mod reads;

use super::record::{LoopEnd, Records};
use crate::program::{ActionId, ProgramHash, ScopeId, StateId};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request, Status};
use windlass_value::time::Timestamp;

macro_rules! run_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize,
            Deserialize,
        )]
        pub struct $name(pub u64);
    };
}
run_id!(
    /// The id of a cursor. Never used twice in a run.
    CursorId
);
run_id!(
    /// The id of an effect. Never used twice in a run, so the completion of an effect that was removed finds no other
    /// effect.
    EffectId
);
run_id!(
    /// The id of a timer. Never used twice in a run.
    TimerId
);

/// A run's state between two events.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct RunState {
    /// The run's own id. It is a part of every idempotency key.
    pub id: Name,
    /// The program that the run is pinned to.
    pub program: ProgramHash,
    pub started_at: Timestamp,
    /// The input that the caller passed.
    pub input: Value,
    /// The id of the next cursor, effect or timer.
    pub next_id: u64,
    /// How the run ended; `None` until it has ended.
    pub outcome: Option<Box<Outcome>>,
    /// Since when and why the run is paused. Meanwhile, the results of effects are recorded, but no step follows.
    pub paused: Option<(Timestamp, PauseReason)>,
    /// The run's variables by name; always an object. An isolated branch has variables of its own:
    /// [`RunState::variables_of`].
    pub variables: Value,
    /// The value that `Respond` recorded.
    pub response: Option<Value>,
    /// The run's positions in the program. Boxed because a node of the map has room for eleven, and most runs have one
    /// cursor.
    pub cursors: BTreeMap<CursorId, Box<Cursor>>,
    /// The cursors that can continue without an event.
    pub ready: BTreeSet<CursorId>,
    /// The effects that were requested and have not ended.
    pub effects: BTreeMap<EffectId, Box<PendingEffect>>,
    /// The armed timers. Boxed like the cursors.
    pub timers: BTreeMap<TimerId, Box<PendingTimer>>,
    /// Signals that arrived before a cursor waited for them.
    pub signals: Vec<(Name, Value)>,
}

/// A frame of a cursor. A change of a fork names the frame of the fork's cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct FrameRef {
    pub cursor: CursorId,
    /// The index of the frame in the stack of the cursor.
    pub depth: u32,
}

impl FrameRef {
    pub(super) fn new(cursor: CursorId, depth: usize) -> Self {
        Self {
            cursor,
            depth: to_u32(depth),
        }
    }
}

/// Converts a depth or an index to the type in changes.
pub(super) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// One thread of control in a run.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Cursor {
    /// The state of the program that the cursor is at.
    pub at: StateId,
    /// The cursor that forked this one; `None` for the root.
    pub parent: Option<CursorId>,
    pub wait: Wait,
    /// The enclosing scopes, outermost first.
    pub frames: Vec<Frame>,
    /// The records of the cursor's actions. The root, items of a foreach, and isolated branches own their records. Any
    /// other branch writes its records to the cursor that forked it, and its own map stays empty.
    pub records: Records,
    /// Whether the cursor owns its records.
    pub owns_records: bool,
}

impl Cursor {
    /// Returns the cursor that forked this one, whose id is `own`. A parent must have a smaller id than its child. A
    /// manipulated store may contain another parent. It is ignored, so that a walk from parent to parent always ends.
    #[must_use]
    pub fn forked_by(&self, own: CursorId) -> Option<CursorId> {
        self.parent.filter(|parent| *parent < own)
    }

    /// Returns the variables of an isolated branch; `None` for other cursors.
    #[must_use]
    pub fn own_variables(&self) -> Option<&Value> {
        match &self.frames.first()?.kind {
            FrameKind::Isolated(frame) => Some(&frame.variables),
            _ => None,
        }
    }
}

/// What a cursor waits for.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// For nothing: the cursor can continue at once.
    Ready,
    /// An effect's completion.
    Effect(EffectId),
    Timer(TimerId),
    Signal(Name),
    Branches,
    /// More iterations or time for the innermost loop: the run is paused because the loop reached a limit.
    Budget,
    /// The cursor continues by raising this fault.
    /// The fault is deferred, because it occurred while the run was paused, or because raising it would cross a second
    /// iteration boundary in one transition.
    Faulted {
        error: Box<RunError>,
        /// True if the operation at the cursor raised the fault. False if the fault passed through an inner scope.
        here: bool,
    },
    /// The answer to a question.
    Question(Box<PendingQuestion>),
}

/// A question to people that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct PendingQuestion {
    /// The signal that answers the question.
    pub signal: Name,
    /// The question itself.
    pub title: Option<String>,
    pub since: Timestamp,
}

impl Wait {
    /// Returns the signal that ends this wait.
    #[must_use]
    pub fn signal(&self) -> Option<&Name> {
        match self {
            Self::Signal(name) => Some(name),
            Self::Question(question) => Some(&question.signal),
            Self::Ready
            | Self::Effect(_)
            | Self::Timer(_)
            | Self::Branches
            | Self::Budget
            | Self::Faulted { .. } => None,
        }
    }

    /// Returns true if a cursor with this wait can continue at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready | Self::Faulted { .. })
    }
}

/// A scope that a cursor is in.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Frame {
    pub scope: ScopeId,
    /// The data of the scope.
    pub kind: FrameKind,
    pub entered_at: Timestamp,
}

/// The data of a scope while a cursor is in the scope.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// No data.
    Plain,
    /// The counted visits of a graph's nodes.
    Graph(GraphState),
    /// The progress of a loop.
    Loop(Box<LoopState>),
    /// The progress of a try.
    Try(TryState),
    Deadline(DeadlineState),
    /// The branches of a fork.
    Fork(ForkState),
    /// The bottom frame of a branch's cursor: the branch's index and its item.
    Branch(ItemState),
    /// The bottom frame of an isolated branch's cursor, which has variables of its own.
    /// The cursor owns its records, too, because the records may refer to these variables.
    Isolated(IsolatedState),
    /// The bottom frame of the root cursor. The root has such a frame if the program reads environment variables or its
    /// last run, or if the run has a scheduled time.
    Root {
        /// The environment variables, the last run and the scheduled time, by name, as they were when the run began. So
        /// an action that is repeated reads the same values.
        environment: Value,
    },
}

/// The counted visits of a graph.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
pub struct GraphState {
    /// Number of nodes entered in total.
    pub steps: u32,
    /// How often the current node was visited, including the current visit.
    pub visit: u32,
    /// Number of visits of each node, by the state that counts them.
    pub visits: BTreeMap<StateId, u32>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct DeadlineState {
    /// The timer that cancels everything inside the scope.
    pub timer: TimerId,
    /// Timeout in milliseconds.
    pub after_ms: u64,
}

/// A branch that uses the variables of its fork.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ItemState {
    /// Index of the branch in the fork.
    pub index: u32,
    /// The item of a foreach; null for other forks.
    pub item: Value,
}

/// A branch that has variables of its own.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct IsolatedState {
    /// Index of the branch in the fork.
    pub index: u32,
    /// The branch's variables by name; an object. The change that creates the cursor has null here. `apply` replaces
    /// null by a copy of the variables of the fork's cursor, so the journal does not store the copy.
    pub variables: Value,
}

/// The progress of a loop, as `status` and `dump` show it.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct LoopState {
    /// Path in the run: `outer#2/inner`, with the iterations (from 0) of the enclosing loops.
    pub path: String,
    /// The authored type: `until`, `while`, …
    pub kind: Name,
    /// Display name, if it differs from the name.
    pub title: Option<Name>,
    /// Number of iterations that have ended.
    pub iteration: u64,
    /// Maximum number of iterations.
    pub max_iterations: u64,
    /// Number of further iterations that are allowed when the run is resumed after a pause at the limit.
    pub budget: u64,
    /// Timeout in milliseconds.
    pub timeout_ms: Option<u64>,
    /// When the loop was entered.
    pub started_at: Timestamp,
    /// When the loop times out.
    pub deadline: Option<Timestamp>,
    pub deadline_timer: Option<TimerId>,
    /// When the current iteration began; `None` between two iterations.
    pub iteration_started_at: Option<Timestamp>,
    /// When the next iteration begins, if the loop is in the delay before it.
    pub next_due_at: Option<Timestamp>,
    /// Result of the authored condition at the last check.
    pub last_condition: Option<bool>,
    /// How the last iteration ended.
    pub last_status: Option<Status>,
    /// The records of the iteration before the current one; empty between two iterations.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub last: Records,
    /// Values collected from the iterations, by name: always an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub collected: Value,
    /// How the loop ended; `None` while it runs.
    pub ended: Option<LoopEnd>,
    /// The pages that the loop has read. The key is the hash of the page's token, the value the iteration that read the
    /// page.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<u128, u64>,
}

impl LoopState {
    /// Returns a copy without records, pages and collected values, but with the budgets. A store has this copy as the
    /// loop's row.
    #[must_use]
    pub fn row(&self) -> Self {
        // Copied field by field: a clone of everything would copy the records only to drop them, which costs most.
        Self {
            path: self.path.clone(),
            kind: self.kind.clone(),
            title: self.title.clone(),
            iteration: self.iteration,
            max_iterations: self.max_iterations,
            budget: self.budget,
            timeout_ms: self.timeout_ms,
            started_at: self.started_at,
            deadline: self.deadline,
            deadline_timer: self.deadline_timer,
            iteration_started_at: self.iteration_started_at,
            next_due_at: self.next_due_at,
            last_condition: self.last_condition,
            last_status: self.last_status,
            last: Records::new(),
            collected: self.collected_budgets(),
            ended: self.ended,
            pages: BTreeMap::new(),
        }
    }
}

/// The progress of a try.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct TryState {
    /// Number of the current attempt, or of the next one while the try waits; from 1.
    pub attempt: u32,
    pub max_attempts: u32,
    /// The fault of the last failed attempt, and when it occurred.
    pub last_fault: Option<Box<(Fault, Timestamp)>>,
    /// When the next attempt begins, while the try waits.
    pub next_due_at: Option<Timestamp>,
}

/// The branches of a fork (a foreach, a parallel or a DAG), and their outcomes.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ForkState {
    /// An array of the items of a foreach; null for other forks.
    pub items: Value,
    /// The state of each branch, by index.
    pub branches: Vec<BranchState>,
    /// Number of items that have been started. A foreach starts items in order.
    pub started: u32,
    /// Number of branches that are running.
    pub running: u32,
    /// Whether no further branch starts, because one failed.
    pub closed: bool,
}

impl ForkState {
    /// Returns the cursors of the branches that run.
    pub fn running_cursors(&self) -> impl Iterator<Item = CursorId> + '_ {
        self.branches.iter().filter_map(|branch| match branch {
            BranchState::Running(cursor) => Some(*cursor),
            BranchState::Pending | BranchState::Ended(_) => None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchState {
    Pending,
    Running(CursorId),
    Ended(BranchOutcome),
}

/// How a branch ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct BranchOutcome {
    /// Succeeded, Failed, TimedOut, Skipped, or Cancelled by a `break_when`.
    pub status: Status,
    /// Why the branch failed.
    pub error: Option<RunError>,
    /// The records of an item of a foreach or of an isolated branch.
    pub records: Records,
}

/// An effect that was requested and has not ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct PendingEffect {
    /// The cursor that waits for it.
    pub cursor: CursorId,
    /// The action whose record the effect fills.
    pub action: Option<ActionId>,
    /// The request as it is sent. After a crash, the same request is sent again.
    pub request: Request,
    pub requested_at: Timestamp,
}

/// A timer that was armed.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct PendingTimer {
    pub cursor: CursorId,
    /// When the timer fires.
    pub due_at: Timestamp,
    pub purpose: TimerPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerPurpose {
    /// The delay between two iterations.
    Delay,
    /// The delay between two attempts.
    Retry,
    /// A `wait` action of a run that an earlier version of the engine stored: that version did not store when the
    /// action began.
    Sleep,
    /// The deadline of the frame with this scope.
    Deadline(ScopeId),
    /// A `wait` action that began at this time.
    SleepSince(Timestamp),
}

impl TimerPurpose {
    /// Returns the word that is used in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Retry => "retry",
            Self::Sleep | Self::SleepSince(_) => "sleep",
            Self::Deadline(_) => "deadline",
        }
    }
}

/// Why a run is paused.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Requested,
    /// A loop with `on_limit: pause` reached a limit. Has the loop's path and the limit.
    Limit(String, LoopEnd),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Outcome {
    /// Succeeded, Failed, TimedOut or Cancelled.
    pub status: Status,
    pub output: Value,
    /// Why the run did not succeed.
    pub error: Option<RunError>,
    pub at: Timestamp,
}

/// A fault and where in the run it happened.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct RunError {
    pub fault: Fault,
    pub action: Option<Name>,
    /// The innermost enclosing loop: its path, and the iteration from 0.
    pub iteration: Option<(String, u64)>,
    /// The position in the sources: the index of the file in the bundle, and the line.
    pub place: Option<(u16, u32)>,
}

/// The status of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize,
)]
pub enum RunStatus {
    /// An effect is in flight, or a cursor can continue at once.
    Running,
    /// The run waits for a timer or for a signal.
    Waiting,
    /// The run is paused until it is resumed.
    Paused,
    /// The run ended without a failure.
    Succeeded,
    /// The run ended with a failure.
    Failed,
    /// A deadline ended the run.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

impl RunStatus {
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// Parses the name of a status, ignoring case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = |status: &Self| status.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named)
    }

    /// Returns true if the status can never change again.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::TimedOut | Self::Cancelled
        )
    }

    /// Returns true if the run is neither paused nor ended.
    #[must_use]
    pub fn is_progressing(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// Returns the word that is used in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Paused => "Paused",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::Cancelled => "Cancelled",
        }
    }
}

impl RunState {
    /// A run before its first event.
    #[must_use]
    pub fn new(id: Name, program: ProgramHash) -> Self {
        Self {
            id,
            program,
            started_at: Timestamp(0),
            input: Value::Null,
            next_id: 1,
            outcome: None,
            paused: None,
            variables: Value::object(windlass_expression::Object::new()),
            response: None,
            cursors: BTreeMap::new(),
            ready: BTreeSet::new(),
            effects: BTreeMap::new(),
            timers: BTreeMap::new(),
            signals: Vec::new(),
        }
    }

    /// Releases the memory of empty maps. Otherwise a B-tree retains its last node.
    pub fn shrink_to_fit(&mut self) {
        if self.ready.is_empty() {
            self.ready.clear();
        }
        if self.effects.is_empty() {
            self.effects.clear();
        }
        if self.timers.is_empty() {
            self.timers.clear();
        }
    }
}
