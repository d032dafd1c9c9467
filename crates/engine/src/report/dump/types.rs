//! The JSON of `dump`, field by field. `docs/dump.schema.json` describes the same.

use super::super::{ErrorReport, OutcomeReport, PausedSince};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_machine::{IterationRow, LoopState, RunStatus};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

/// A store's runs as they lie in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpReport {
    /// The version of the store's format.
    pub format: u32,
    /// When this was made.
    pub at: Timestamp,
    /// The runs.
    pub runs: Vec<RunDump>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The run, when it is known.
    pub run: Option<String>,
    /// Which part of it.
    pub what: String,
    /// Why.
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDump {
    /// Its head.
    pub header: HeaderDump,
    /// Its state; none where it cannot be read.
    pub state: Option<StateDump>,
    /// The store's row of every loop, also of those that ended.
    pub loops: Vec<LoopState>,
    /// Its last iterations, in the order they ended.
    pub iterations: Vec<IterationRow>,
    /// Which values go from where to where (canvas).
    pub links: Vec<LinkDump>,
    /// How much room it takes.
    pub sizes: SizesDump,
    /// What it hashes to.
    pub checksums: ChecksumsDump,
}

/// A value that goes from one node to another, or in or out of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDump {
    /// The node it comes from; none: the run's inputs.
    pub from: Option<String>,
    /// Which of its outputs, or of the inputs around it.
    pub output: String,
    /// The node it goes to.
    pub to: String,
    /// Which of its inputs; for a `result`, of its outputs.
    pub input: String,
    /// `edge`, `outer`, `previous` or `result`.
    pub kind: String,
    /// In which iterations, or of which: `first`, `subsequent`, `last`, `all`.
    pub when: Option<String>,
}

/// A run's head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeaderDump {
    /// The run.
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow file as it was named.
    pub file: Option<String>,
    /// The format of the file.
    pub dialect: Option<String>,
    /// What it is doing.
    pub status: RunStatus,
    /// How many commits it has.
    pub commit: u64,
    /// The commit of its last snapshot; 0 when it has none.
    pub snapshot: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// When its last commit was made.
    pub updated_at: Timestamp,
    /// How it is found after a restart: `runnable`, `due` or `resting`.
    pub placement: String,
    /// When it is due.
    pub due_at: Option<Timestamp>,
    /// What it was marked with.
    pub labels: BTreeMap<String, String>,
}

/// A run's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateDump {
    /// What the caller gave.
    pub input: Value,
    /// The next cursor, effect or timer gets this number.
    pub next_id: u64,
    /// Its variables.
    pub variables: Value,
    /// What `Response` recorded.
    pub response: Value,
    /// Since when and why it is paused.
    pub pause: Option<PausedSince>,
    /// How it ended.
    pub outcome: Option<OutcomeReport>,
    /// Its cursors.
    pub cursors: Vec<CursorDump>,
    /// What it asked of the world and has not heard of.
    pub effects: Vec<EffectDump>,
    /// What it sleeps on.
    pub timers: Vec<TimerDump>,
    /// Signals that nothing has waited for yet.
    pub signals: Vec<SignalDump>,
}

/// One thread of control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CursorDump {
    /// Its number.
    pub id: u64,
    /// The number of its current state.
    pub at: u32,
    /// Its current step.
    pub step: Option<String>,
    /// The cursor that forked it.
    pub parent: Option<u64>,
    /// What it waits for.
    pub wait: WaitDump,
    /// The scopes it is in, outermost first.
    pub frames: Vec<FrameDump>,
    /// What the actions it ran left behind.
    pub records: Vec<RecordDump>,
    /// Whether its records are its own; else they lie with the cursor it was forked from.
    pub owns_records: bool,
}

/// What a cursor waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitDump {
    /// Nothing.
    Nothing,
    /// An effect.
    Effect {
        /// Its number.
        id: u64,
    },
    /// A timer.
    Timer {
        /// Its number.
        id: u64,
    },
    /// A signal.
    Signal {
        /// Its name.
        name: String,
    },
    /// Its branches.
    Branches,
    /// A new budget for the loop on top.
    Budget,
    /// Nothing; it continues by raising this fault, which occurred while the run was paused.
    Fault {
        /// What happened.
        message: String,
    },
}

/// A scope a cursor is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameDump {
    /// The scope's number.
    pub scope: u32,
    /// Its name.
    pub name: String,
    /// When it was entered.
    pub entered_at: Timestamp,
    /// What is stored for it.
    #[serde(flatten)]
    pub kind: FrameKindDump,
}

/// What is stored for a scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum FrameKindDump {
    /// Nothing.
    Plain,
    /// A graph.
    Graph {
        /// How many nodes were entered.
        steps: u32,
        /// Which visit of its node the current one is, from 1.
        visit: u32,
    },
    /// A loop.
    Loop {
        /// All of its state.
        state: Box<LoopState>,
        /// What the iteration before the current one left behind.
        last: Vec<RecordDump>,
        /// What is collected of its iterations for its outputs, by their names (canvas).
        kept: Value,
    },
    /// A retry or a catch.
    Try {
        /// Which attempt runs or is waited for, from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// The last attempt's fault: kind and message.
        last_fault: Option<FaultDump>,
        /// When the next attempt begins, while it waits.
        next_due_at: Option<Timestamp>,
    },
    /// A deadline.
    Deadline {
        /// The timer that cuts it.
        timer: u64,
        /// How long it may take, in milliseconds.
        after_ms: u64,
    },
    /// Branches.
    Fork {
        /// A foreach's items.
        items: Value,
        /// How far each branch is.
        branches: Vec<BranchDump>,
        /// Number of branches that have started.
        started: u32,
        /// Number of branches that run.
        running: u32,
        /// No further branch starts.
        closed: bool,
    },
    /// The bottom of a branch.
    Branch {
        /// Its index in the fork.
        index: u32,
        /// A foreach's item.
        item: Value,
    },
    /// The bottom of a run that reads the environment.
    Root {
        /// What that was when it began, without what is secret.
        environment: Value,
    },
    /// The bottom of a branch that works on variables of its own.
    Apart {
        /// Its index in the fork.
        index: u32,
        /// Its variables.
        variables: Value,
    },
}

/// A fault and when it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultDump {
    /// Its kind.
    pub kind: String,
    /// A status or exit code, when there is one.
    pub code: Option<String>,
    /// What happened, in one line.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// How far a branch is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "branch", rename_all = "snake_case")]
pub enum BranchDump {
    /// It has not started.
    Pending,
    /// It runs.
    Running {
        /// Its cursor.
        cursor: u64,
    },
    /// It ended.
    Ended {
        /// How.
        status: Status,
        /// Why it failed.
        error: Option<ErrorReport>,
        /// What its actions left behind.
        records: Vec<RecordDump>,
    },
}

/// What an action left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordDump {
    /// The action.
    pub action: String,
    /// How it ended.
    pub status: Status,
    /// What it was given.
    pub inputs: Value,
    /// What it gave, or where that lies: `{value}`, `{variable}`, `{actions}`, ….
    pub output: Value,
    /// Why it failed.
    pub error: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How many attempts it took.
    pub attempts: u32,
}

/// An effect that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectDump {
    /// Its number.
    pub id: u64,
    /// The cursor that waits for it.
    pub cursor: u64,
    /// The action.
    pub action: String,
    /// What carries it out.
    pub executor: String,
    /// Its idempotency key.
    pub key: String,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// How long it may take, in milliseconds; none: the executor's default.
    pub timeout_ms: Option<u64>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// Its rendered inputs.
    pub inputs: Value,
}

/// A timer that was armed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerDump {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub cursor: u64,
    /// When it fires.
    pub due_at: Timestamp,
    /// What it is for: `delay`, `retry`, `sleep` or `deadline`.
    pub purpose: String,
    /// The scope that a deadline cuts.
    pub scope: Option<String>,
}

/// A signal that was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalDump {
    /// Its name.
    pub name: String,
    /// What it carries.
    pub payload: Value,
}

/// How much room a run takes, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizesDump {
    /// Its last snapshot.
    pub snapshot_bytes: u64,
    /// The changes behind it.
    pub tail_bytes: u64,
    /// What it was compiled from.
    pub source_bytes: u64,
}

/// What a run hashes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumsDump {
    /// Its program's sources: what the run is pinned to.
    pub program: String,
    /// Its whole state, folded: the same on every store that holds the same commits.
    pub state: Option<String>,
}
