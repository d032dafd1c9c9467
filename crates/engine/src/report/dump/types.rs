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
    /// The parts of the store that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A part of a store that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The run, if it is known.
    pub run: Option<String>,
    /// Which part could not be read.
    pub what: String,
    /// Why it could not be read.
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDump {
    pub header: HeaderDump,
    /// The complete state of the run, in the form of the machine's types. `None` if it cannot be read.
    pub state: Option<Value>,
    /// The current state of every loop of the run, also of loops that have ended.
    pub loops: Vec<LoopState>,
    /// The last iterations of the run, in the order in which they ended.
    pub iterations: Vec<IterationRow>,
    /// The links between values that a canvas workflow defines.
    pub links: Vec<Link>,
    /// The sizes of the run's data.
    pub sizes: SizesDump,
    /// The checksums of the run.
    pub checksums: ChecksumsDump,
}

/// The header of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeaderDump {
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// Path of the workflow file, as the start of the run named it.
    pub file: Option<String>,
    /// The format of the file.
    pub dialect: Option<String>,
    /// The status of the run.
    pub status: RunStatus,
    /// Number of the run's commits.
    pub commit: u64,
    /// The number of the commit with the run's last snapshot. 0 if it has no snapshot.
    pub snapshot: u64,
    /// When the run was started.
    pub started_at: Timestamp,
    /// Time of the run's last commit.
    pub updated_at: Timestamp,
    /// The index of the store that lists the run, so that a restarted process finds it: `runnable`, `due` or `resting`.
    pub placement: String,
    /// When the run is due, if it is in the index of due times.
    pub due_at: Option<Timestamp>,
    /// The labels of the run.
    pub labels: BTreeMap<String, String>,
}

/// The sizes of a run's data, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizesDump {
    /// Size of the run's last snapshot.
    pub snapshot_bytes: u64,
    /// Size of the changes after the last snapshot.
    pub tail_bytes: u64,
    /// Size of the run's sources.
    pub source_bytes: u64,
}

/// The checksums of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumsDump {
    /// Hash of the sources of the run's program. The run always uses these sources.
    pub program: String,
    /// Hash of the run's complete state. Two stores with the same commits of a run have the same hash.
    pub state: Option<String>,
}
