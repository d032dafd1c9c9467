//! All there is to know about a run, as plain data that the store can keep.
//!
//! Nothing here moves; `apply` is the only code that changes any of it.

use super::bug::{Bug, MachineResult};
use super::record::{LoopEnd, Records};
use crate::program::{ActionId, ProgramHash, ScopeId, StateId};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::Value;
use windlass_model::model::{
    FAILED_ENDINGS, FAILURE, Fault, Name, RECEIVED_VARIABLE, Request, SIGNAL_IDS_VARIABLE, Status,
    fault_kind,
};
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
    /// A cursor of a run. Never used twice.
    CursorId
);
run_id!(
    /// An effect of a run. Never used twice, so a late completion finds nothing.
    EffectId
);
run_id!(
    /// A timer of a run. Never used twice.
    TimerId
);

/// A run between two events.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct RunState {
    /// The run's own id, part of every idempotency key.
    pub id: Name,
    /// The program it is pinned to.
    pub program: ProgramHash,
    pub started_at: Timestamp,
    /// What the caller gave.
    pub input: Value,
    /// The next cursor, effect or timer gets this number.
    pub next_id: u64,
    /// How it ended; none while it has not.
    pub outcome: Option<Box<Outcome>>,
    /// Since when and why it is paused.
    pub paused: Option<(Timestamp, PauseReason)>,
    /// Variables by name: always an object. A branch may have others: [`RunState::variables_of`].
    pub variables: Value,
    /// What `Respond` recorded.
    pub response: Option<Value>,
    /// Its positions in the program. Boxed, as its records are: most runs have one.
    pub cursors: BTreeMap<CursorId, Box<Cursor>>,
    /// Those of the cursors that can continue without hearing from outside.
    pub ready: BTreeSet<CursorId>,
    /// The effects that it requested and that have not ended.
    pub effects: BTreeMap<EffectId, Box<PendingEffect>>,
    /// What it sleeps on. Boxed as well.
    pub timers: BTreeMap<TimerId, Box<PendingTimer>>,
    /// Signals that came before anything waited for them.
    pub signals: Vec<(Name, Value)>,
}

/// One thread of control.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Cursor {
    /// Its current state.
    pub at: StateId,
    /// The cursor that forked it; none: the root.
    pub parent: Option<CursorId>,
    pub wait: Wait,
    /// The scopes it is in, outermost first.
    pub frames: Vec<Frame>,
    /// The records of the actions it ran. A foreach iteration has its own; other branches write
    /// to the cursor they came from, and theirs stays empty.
    pub records: Records,
    /// Whether its records are its own.
    pub owns_records: bool,
}

impl Cursor {
    /// The cursor that forked this one, which is `own`: an older one. A store that was tampered with may
    /// say another, and who goes from cursor to cursor must come to an end.
    #[must_use]
    pub fn forked_by(&self, own: CursorId) -> Option<CursorId> {
        self.parent.filter(|parent| *parent < own)
    }

    /// The variables that it and its branches have to themselves, if they do.
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
    /// Nothing: it can continue at once.
    Ready,
    /// An effect's completion.
    Effect(EffectId),
    Timer(TimerId),
    Signal(Name),
    Branches,
    /// A new budget for the loop on top: the run paused at its limit.
    Budget,
    /// Nothing, but it continues by raising this fault: it occurred while the run was paused, or at a
    /// second iteration boundary of one transition.
    Faulted {
        /// The fault.
        error: Box<RunError>,
        /// Whether it is from the operation where the cursor is, not from inside a scope.
        here: bool,
    },
    /// The answer to a question.
    Question(Box<PendingQuestion>),
}

/// A question to people that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct PendingQuestion {
    /// The signal that answers it.
    pub signal: Name,
    /// The question itself.
    pub title: Option<String>,
    pub since: Timestamp,
}

impl Wait {
    /// The signal that ends it.
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

    /// Whether a cursor that waits for this can continue at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready | Self::Faulted { .. })
    }
}

/// A scope a cursor is in.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Frame {
    pub scope: ScopeId,
    /// What is stored for it.
    pub kind: FrameKind,
    pub entered_at: Timestamp,
}

/// What is stored for a scope while a cursor is in it.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Nothing.
    Plain,
    /// How many nodes of a graph were entered.
    Graph(GraphState),
    /// The progress of a loop.
    Loop(Box<LoopState>),
    /// The progress of a try.
    Try(TryState),
    Deadline(DeadlineState),
    /// Branches.
    Fork(ForkState),
    /// The bottom of a branch's cursor: which one it is, and its item.
    Branch(ItemState),
    /// The bottom of a branch's cursor that works on variables of its own. Its records are its own
    /// too, because they may refer to its variables.
    Isolated(IsolatedState),
    /// The bottom of the root's cursor, of a program that reads the environment or its last run, or of a run with a
    /// scheduled time.
    Root {
        /// What that was when the run began, by name: a repetition sees the same.
        environment: Value,
    },
}

/// How many nodes of a graph were entered.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
pub struct GraphState {
    /// Number of nodes entered in total.
    pub steps: u32,
    /// Which visit of its node the current one is, from 1.
    pub visit: u32,
    /// By the state that counts the node: how often it was entered.
    pub visits: BTreeMap<StateId, u32>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct DeadlineState {
    /// The timer that cancels what is in it.
    pub timer: TimerId,
    /// How long it may take, in milliseconds.
    pub after_ms: u64,
}

/// A branch that works on the variables of its fork.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ItemState {
    /// Its index in the fork.
    pub index: u32,
    /// The item of a foreach; null elsewhere.
    pub item: Value,
}

/// A branch that works on variables of its own.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct IsolatedState {
    /// Its index in the fork.
    pub index: u32,
    /// Its variables by name: an object. Null in the change that spawns the cursor: applied, it is a
    /// copy of what the fork's cursor works on, which costs the journal nothing.
    pub variables: Value,
}

/// The progress of a loop: what `status` and `dump` show.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct LoopState {
    /// Its place in the run: `outer#2/inner`, the iterations (from 0) of the loops around it.
    pub path: String,
    /// The authored type: `until`, `while`, …
    pub kind: Name,
    /// What people call it, where that is not its name.
    pub title: Option<Name>,
    /// How many iterations have ended.
    pub iteration: u64,
    /// How many may run.
    pub max_iterations: u64,
    /// How many a pause at the limit grants again.
    pub budget: u64,
    /// How long it may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// When it was entered.
    pub started_at: Timestamp,
    /// When it is cut.
    pub deadline: Option<Timestamp>,
    pub deadline_timer: Option<TimerId>,
    /// When the current iteration began; none between iterations.
    pub iteration_started_at: Option<Timestamp>,
    /// When the next iteration begins, while it delays.
    pub next_due_at: Option<Timestamp>,
    /// What the authored condition gave at the last check.
    pub last_condition: Option<bool>,
    /// How the last iteration ended.
    pub last_status: Option<Status>,
    /// The records of the iteration before the current one; none between iterations.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub last: Records,
    /// What is collected of its iterations, by name: always an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub collected: Value,
    /// How it ended; none while it runs.
    pub ended: Option<LoopEnd>,
    /// The pages it has been at, by what their tokens hash to: the iteration that read each.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<u128, u64>,
}

impl LoopState {
    /// The same without what its iterations gave, but with its budgets: what a store keeps next to the journal.
    #[must_use]
    pub fn row(&self) -> Self {
        // Field by field: a copy of the records, made to be thrown away, would cost the most.
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
    /// Which attempt runs or is waited for, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// The last attempt's fault, and when.
    pub last_fault: Option<Box<(Fault, Timestamp)>>,
    /// When the next attempt begins, while it waits.
    pub next_due_at: Option<Timestamp>,
}

/// Branches and their outcomes.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ForkState {
    /// A foreach's items, an array; null for other forks.
    pub items: Value,
    /// By index: how far each branch is.
    pub branches: Vec<BranchState>,
    /// The number of started items: a foreach starts them in order.
    pub started: u32,
    /// Number of branches that run.
    pub running: u32,
    /// No further branch starts: one failed.
    pub closed: bool,
}

impl ForkState {
    /// The cursors of the branches that run.
    pub fn running_cursors(&self) -> impl Iterator<Item = CursorId> + '_ {
        self.branches.iter().filter_map(|branch| match branch {
            BranchState::Running(cursor) => Some(*cursor),
            BranchState::Pending | BranchState::Ended(_) => None,
        })
    }
}

/// How far a branch is.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchState {
    /// It has not started.
    Pending,
    /// It runs.
    Running(CursorId),
    Ended(BranchOutcome),
}

/// How a branch ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct BranchOutcome {
    /// Succeeded, Failed, TimedOut, Skipped, or Cancelled by a `break_when`.
    pub status: Status,
    /// Why, when it failed.
    pub error: Option<RunError>,
    /// The records of a foreach iteration.
    pub records: Records,
}

/// An effect that was requested and has not ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct PendingEffect {
    /// The cursor that waits for it.
    pub cursor: CursorId,
    /// Whose record it fills.
    pub action: Option<ActionId>,
    /// The call, as it is sent and, after a crash, sent again.
    pub request: Request,
    pub requested_at: Timestamp,
}

/// A timer that was armed.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct PendingTimer {
    pub cursor: CursorId,
    /// When it fires.
    pub due_at: Timestamp,
    pub purpose: TimerPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerPurpose {
    /// Between two iterations.
    Delay,
    /// Between two attempts.
    Retry,
    /// A `wait` action of which an earlier version did not keep when it began.
    Sleep,
    /// The deadline of the frame with this scope.
    Deadline(ScopeId),
    /// A `wait` action that began then.
    SleepSince(Timestamp),
}

/// Why a run is paused.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Requested,
    /// A loop with `on_limit: pause` reached a limit: which loop, which limit.
    Limit(String, LoopEnd),
}

impl RunState {
    /// Whether it was cancelled, and ends when its operations are.
    #[must_use]
    pub fn is_cancelling(&self) -> bool {
        let failure = self.variables.get(FAILURE);
        let is = |key: &str, word: &str| {
            failure.and_then(|failure| failure.get(key)?.as_str()) == Some(word)
        };
        self.outcome.is_none()
            && is("status", Status::Cancelled.as_str())
            && is("kind", fault_kind::CANCELLED)
    }

    /// The labels of a run that ended, and whose `on_failure` or `on_finish` failed.
    pub fn failed_endings(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let failed = |name: &&str| {
            // Each step asks, and most runs have not ended.
            self.outcome.is_some()
                && self
                    .variables
                    .get(name)
                    .is_some_and(|error| !error.is_null())
        };
        let labels = FAILED_ENDINGS.into_iter().filter(failed);
        labels.map(|name| (name.to_owned(), "failed".to_owned()))
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Outcome {
    /// Succeeded, Failed, TimedOut or Cancelled.
    pub status: Status,
    /// What it gives.
    pub output: Value,
    /// Why it did not succeed.
    pub error: Option<RunError>,
    pub at: Timestamp,
}

/// A fault and where in the run it happened.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct RunError {
    pub fault: Fault,
    pub action: Option<Name>,
    /// The innermost loop around it: its path, and the iteration from 0.
    pub iteration: Option<(String, u64)>,
    /// The file of the bundle and the line.
    pub place: Option<(u16, u32)>,
}

/// What a run is doing, in one word.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize,
)]
pub enum RunStatus {
    /// An effect is in flight, or it can continue at once.
    Running,
    /// It sleeps on a timer or waits for a signal.
    Waiting,
    /// It is paused until it is resumed.
    Paused,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// A deadline ended it.
    TimedOut,
    /// Someone ended it.
    Cancelled,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// The status named so, without case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = |status: &Self| status.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named)
    }

    /// Whether it can never change again.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::TimedOut | Self::Cancelled
        )
    }

    /// Whether it continues automatically, at once or when its time comes.
    #[must_use]
    pub fn is_progressing(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// The word in outputs.
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

    /// Gives back the room of what is empty: a tree keeps the last node that it had.
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

    /// What it is doing.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.outcome {
            Some(outcome) => match outcome.status {
                Status::Succeeded | Status::Skipped => RunStatus::Succeeded,
                Status::Failed => RunStatus::Failed,
                Status::TimedOut => RunStatus::TimedOut,
                Status::Cancelled => RunStatus::Cancelled,
            },
            None if self.paused.is_some() => RunStatus::Paused,
            None if self.effects.is_empty() && !self.has_ready_cursor() => RunStatus::Waiting,
            None => RunStatus::Running,
        }
    }

    /// Whether a cursor could continue without hearing from outside.
    #[must_use]
    pub fn has_ready_cursor(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many signals of a name it has received, or stopped to wait for where the signal has a form or an address.
    #[must_use]
    pub fn received(&self, signal: &str) -> u64 {
        let counts = self.variables.get(RECEIVED_VARIABLE);
        let count = counts.and_then(|counts| counts.get(signal)?.as_int());
        count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0)
    }

    /// The ids of the last signals that it received, as far as their senders gave some.
    pub fn signal_ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.variables.get(SIGNAL_IDS_VARIABLE);
        let ids = ids.and_then(Value::as_array);
        ids.into_iter().flatten().filter_map(Value::as_str)
    }

    /// When its first timer fires.
    #[must_use]
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.timers.values().map(|timer| timer.due_at).min()
    }

    pub(super) fn cursor(&self, id: CursorId) -> MachineResult<&Cursor> {
        let found = self.cursors.get(&id).map(|cursor| &**cursor);
        found.ok_or_else(|| Bug::new(format!("the run has no cursor {}", id.0)))
    }

    /// The cursor that nothing forked.
    pub(super) fn root(&self) -> MachineResult<(CursorId, &Cursor)> {
        let mut cursors = self.cursors.iter();
        let root = cursors.find(|(_, one)| one.parent.is_none());
        let root = root.map(|(id, cursor)| (*id, &**cursor));
        root.ok_or_else(|| Bug::new("the run has no root"))
    }

    pub(super) fn frame(&self, id: CursorId, depth: usize) -> MachineResult<&Frame> {
        let found = self.cursor(id)?.frames.get(depth);
        found.ok_or_else(|| Bug::new(format!("cursor {} has no frame {depth}", id.0)))
    }

    /// The records of what `cursor` runs.
    pub(super) fn records_of(&self, cursor: CursorId) -> MachineResult<&Records> {
        Ok(&self.cursor(self.record_owner(cursor))?.records)
    }

    /// The cursor that keeps the records of what `cursor` runs.
    #[must_use]
    pub fn record_owner(&self, cursor: CursorId) -> CursorId {
        let mut at = cursor;
        while let Some(here) = self.cursors.get(&at) {
            match here.forked_by(at) {
                Some(parent) if !here.owns_records => at = parent,
                Some(_) | None => break,
            }
        }
        at
    }

    /// The cursor whose variables `cursor` works on; none: those of the run.
    #[must_use]
    pub fn isolated_by(&self, cursor: CursorId) -> Option<CursorId> {
        let mut at = cursor;
        loop {
            let here = self.cursors.get(&at)?;
            if here.own_variables().is_some() {
                return Some(at);
            }
            at = here.forked_by(at)?;
        }
    }

    /// The variables that a cursor works on: always an object.
    #[must_use]
    pub fn variables_of(&self, cursor: CursorId) -> &Value {
        let branch = self.isolated_by(cursor);
        let branch = branch.and_then(|id| self.cursors.get(&id));
        let own = branch.and_then(|cursor| cursor.own_variables());
        own.unwrap_or(&self.variables)
    }

    /// All live loops: cursor by cursor, outermost first.
    pub fn loops(&self) -> impl Iterator<Item = (CursorId, ScopeId, &LoopState)> {
        self.cursors.iter().flat_map(|(id, cursor)| {
            cursor.frames.iter().filter_map(|frame| match &frame.kind {
                FrameKind::Loop(state) => Some((*id, frame.scope, &**state)),
                _ => None,
            })
        })
    }
}
