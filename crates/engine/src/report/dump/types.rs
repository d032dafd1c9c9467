//! The JSON of `dump`, field by field. `docs/dump.schema.json` describes the same.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_machine::{IterationRow, LoopState, RunStatus};
use windlass_model::model::Link;
use windlass_value::time::Timestamp;

/// A store's runs as they lie in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpReport {
    /// The version of the store's format.
    pub format: u32,
    /// When this was made.
    pub at: Timestamp,
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
    pub header: HeaderDump,
    /// All of its state, as the machine's types say; none where it cannot be read.
    pub state: Option<Value>,
    /// The store's row of every loop, also of those that ended.
    pub loops: Vec<LoopState>,
    /// Its last iterations, in the order they ended.
    pub iterations: Vec<IterationRow>,
    /// Which values go from where to where (canvas).
    pub links: Vec<Link>,
    /// How much room it takes.
    pub sizes: SizesDump,
    /// What it hashes to.
    pub checksums: ChecksumsDump,
}

/// A run's head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeaderDump {
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
