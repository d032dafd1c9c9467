//! The JSON of `dump`, field by field. `docs/dump.schema.json` describes the same.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_machine::{IterationRow, LoopState, RunStatus};
use windlass_model::model::Link;
use windlass_value::time::Timestamp;

/// The runs of a store, as they are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpReport {
    /// The version of the store's format.
    pub format: u32,
    /// Time of the dump.
    pub at: Timestamp,
    pub runs: Vec<RunDump>,
    /// The parts that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A part that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The run, if it is known.
    pub run: Option<String>,
    /// The part of the run.
    pub what: String,
    /// The error.
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDump {
    pub header: HeaderDump,
    /// Its complete state, in the form of the machine's types. `None` if it cannot be read.
    pub state: Option<Value>,
    /// The row of every loop, also of ended loops.
    pub loops: Vec<LoopState>,
    /// Its last iterations, in the order in which they ended.
    pub iterations: Vec<IterationRow>,
    /// The links between values (canvas).
    pub links: Vec<Link>,
    /// Its sizes in bytes.
    pub sizes: SizesDump,
    /// Its checksums.
    pub checksums: ChecksumsDump,
}

/// The header of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeaderDump {
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow file as it was named.
    pub file: Option<String>,
    /// The format of the file.
    pub dialect: Option<String>,
    /// The status of the run.
    pub status: RunStatus,
    /// Number of its commits.
    pub commit: u64,
    /// The commit of its last snapshot; 0 if it has none.
    pub snapshot: u64,
    /// When the run was started.
    pub started_at: Timestamp,
    /// Time of its last commit.
    pub updated_at: Timestamp,
    /// The index that lists the run for a restart: `runnable`, `due` or `resting`.
    pub placement: String,
    /// When the run is due, if it is in the index of due times.
    pub due_at: Option<Timestamp>,
    /// The labels of the run.
    pub labels: BTreeMap<String, String>,
}

/// The sizes of a run's data, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizesDump {
    /// Size of its last snapshot.
    pub snapshot_bytes: u64,
    /// Size of the changes after the snapshot.
    pub tail_bytes: u64,
    /// Size of its sources.
    pub source_bytes: u64,
}

/// The checksums of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumsDump {
    /// Hash of its program's sources, which the run is pinned to.
    pub program: String,
    /// Hash of its complete state. It is the same on every store with the same commits.
    pub state: Option<String>,
}
