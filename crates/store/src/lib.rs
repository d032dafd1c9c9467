//! Where runs are stored: the trait [`Store`], and what goes through it. Implementations: `memory`, `sled`, `fjall`.
//! One contract suite holds for all of them.
//!
//! It never schedules anything, and no type of a database leaks out of it.
//!
//! The most important types: [`Store`], [`Commit`], [`Receipt`], [`StoredRun`], [`StoreError`].
//!
//! Test it alone with `cargo test -p windlass-store`.

// Not published for others: where the name says all, nothing is added.
#![allow(missing_docs)]
// What only a second database would use.
#![cfg_attr(not(feature = "fjall"), allow(dead_code, unused_imports))]

mod archive;
mod codec;
mod commit;
mod compaction;
mod compress;
mod copy;
mod creation_lock;
mod directory;
mod disk;
mod feed;
mod file_identity;
#[cfg(feature = "fjall")]
mod fjall;
mod header;
mod integrity;
mod journal;
mod journal_walk;
mod keys;
mod kind;
mod kv;
mod memory;
mod named;
mod pack;
mod quarantine;
mod raw;
mod recover;
mod repair;
mod rows;
mod sled;
mod snapshot;
mod state_key;
mod store;
mod watermark;
mod workflow_state;
mod write_batch;

pub use archive::{EndedIteration, LoopIterations, RowLocation, iteration_of};
pub use copy::{ConversionSummary, compact, convert, restore};
pub use disk::{DiskStore, StoreOptions, open, open_for_inspection, open_with};
pub use feed::{Feed, Wake};
pub use integrity::{IntegrityReport, Issue};
pub use journal::LastStatus;
pub use journal_walk::CommitRecord;
pub use keys::MAX_RUN_ID;
pub use kind::StoreKind;
pub use memory::MemoryStore;
pub use raw::{RawRow, raw_record};
pub use repair::{dump_damaged, inspect_damaged, repair};
pub use rows::{FORMAT, Retention};
pub use sled::{SledStore, open_read_only};
pub use state_key::StateKey;
pub use store::{DueRun, HistoryTable, ReadStore, RunTable, Store, WorkflowTable, sealed};
pub use workflow_state::{
    StateEntry, StateExpectation, StateOutcome, StateOwner, StateWrite, StateWriter,
};

use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode};
use std::collections::BTreeMap;
use windlass_machine::program::ProgramHash;
use windlass_machine::{
    Bug, Change, HistoryEvent, HistoryKind, IterationRow, LoopState, RunState, RunStatus,
    failed_actions,
};
use windlass_model::model::{Dialect, Name, Origin, Status};
use windlass_source::source::Bundle;
use windlass_value::time::Timestamp;

/// The label of a run in quarantine: why.
pub const QUARANTINE_LABEL: &str = "windlass.parked";

/// The label of a run that has not failed, with the number of its actions that did: what waits for them handled that.
pub const FAILED_ACTIONS_LABEL: &str = "windlass.failed_actions";

/// What a run was compiled from; stored once per hash, so that a run is pinned to it even when
/// the files change.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ProgramSource {
    /// The workflow and the files it refers to.
    pub bundle: Bundle,
    /// The format it was read as.
    pub dialect: Dialect,
    /// The operator's cap on the count of loops when it was loaded.
    pub max_count: u64,
    /// The operator's cap on the timeout of loops when it was loaded, in milliseconds.
    pub max_timeout_ms: u64,
    pub origin: Origin,
    /// What relative paths of its actions are from; without it, the folder of the process.
    pub folder: Option<String>,
}

/// A workflow that is stored under a name.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredWorkflow {
    /// Its name; 1 to [`MAX_RUN_ID`] bytes.
    pub name: Name,
    /// What it is compiled from.
    pub source: ProgramSource,
    /// When it was put there.
    pub stored_at: Timestamp,
    /// The state of its schedule; none before its first time.
    pub schedule: Option<ScheduleState>,
}

/// A text that a stored workflow had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowVersion {
    /// When it was put there.
    pub stored_at: Timestamp,
    /// What it is compiled to.
    pub program: ProgramHash,
}

/// The state of a stored workflow's schedule. It is the end of what is stored.
#[derive(Clone, Debug, Default, PartialEq, Encode)]
pub struct ScheduleState {
    /// All times up to this one are decided.
    pub until: Timestamp,
    /// The run of the last time that had one.
    pub last_run: Option<Name>,
    /// How many times were missed and have no run.
    pub missed: u64,
    /// The last of them.
    pub last_missed: Option<Timestamp>,
    /// When it was paused, in order; those before `until` are not known any more.
    pub pauses: Vec<SchedulePause>,
}

impl<Context> Decode<Context> for ScheduleState {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (until, last_run) = Decode::decode(decoder)?;
        // Earlier versions stored nothing else.
        let (missed, last_missed, pauses) = match Decode::decode(decoder) {
            Err(DecodeError::UnexpectedEnd { .. }) => Default::default(),
            added => added?,
        };
        Ok(Self {
            until,
            last_run,
            missed,
            last_missed,
            pauses,
        })
    }
}
bincode::impl_borrow_decode!(ScheduleState);

/// A pause of a schedule: its times after the beginning, up to the end, start nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SchedulePause {
    pub from: Timestamp,
    /// None while it lasts.
    pub to: Option<Timestamp>,
}

/// The head of a run: what `list` shows, and the position of its journal.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct RunHeader {
    pub id: Name,
    /// The workflow's name.
    pub workflow: Name,
    /// The program it is pinned to.
    pub program: ProgramHash,
    /// What it is doing.
    pub status: RunStatus,
    /// How many commits it has; 0 for one that was never stored.
    pub revision: u64,
    /// The revision of its last snapshot; 0 when it has none.
    pub snapshot: u64,
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Which index it is in.
    pub placement: Placement,
    /// What the caller marked it with.
    pub labels: BTreeMap<String, String>,
}

impl RunHeader {
    /// How many of its actions failed without failing the run.
    #[must_use]
    pub fn failed_actions(&self) -> u64 {
        let label = self.labels.get(FAILED_ACTIONS_LABEL);
        label.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Counts the actions that failed in a step that led to its status.
    pub fn count_failed_actions(&mut self, history: &[HistoryEvent]) {
        if self.status.is_final() && self.status != RunStatus::Succeeded {
            self.labels.remove(FAILED_ACTIONS_LABEL);
            return;
        }
        // A foreach that continues after failed items has an error, too.
        let failed = |(what, _): &(&HistoryKind, &str)| match what {
            HistoryKind::ActionEnded { status, .. } => *status != Status::Succeeded,
            _ => false,
        };
        let more = failed_actions(history).filter(failed).count() as u64;
        if more > 0 {
            let count = self.failed_actions().saturating_add(more);
            let label = FAILED_ACTIONS_LABEL.to_owned();
            self.labels.insert(label, count.to_string());
        }
    }
}

/// Which index leads to a run after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Placement {
    /// It continues at once.
    Runnable,
    /// It continues when this time comes.
    Due(Timestamp),
    /// It continues when someone asks: paused, waiting for a signal, or ended.
    Idle,
}

/// One durable step of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The head after this step; its revision is one more than the stored one's.
    pub header: RunHeader,
    /// What changed.
    pub changes: Vec<Change>,
    /// The loops that changed.
    pub loops: Vec<LoopState>,
    /// The iterations that ended.
    pub iterations: Vec<IterationRow>,
    /// What the history reports.
    pub history: Vec<HistoryEvent>,
    /// The whole state after this step, when the journal's tail has outgrown the last snapshot:
    /// a run is loaded from it, and from nothing before it.
    pub snapshot: Option<RunState>,
    /// The program, with a run's first commit; stored when it is not there yet.
    pub program: Option<ProgramSource>,
}

/// A run as it lies in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Its head.
    pub header: RunHeader,
    /// Its state: the last snapshot with the later changes applied.
    pub state: RunState,
    /// How many bytes the commits behind the snapshot have.
    pub tail_bytes: u64,
    /// How many bytes the snapshot has.
    pub snapshot_bytes: u64,
}

/// What a store still has of how a run came to be what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The run's head.
    pub header: RunHeader,
    /// The state at its last snapshot; without one, before its first step.
    pub start: RunState,
    /// Everything that has changed since, in order.
    pub changes: Vec<Change>,
}

/// A store's word that a step is durable: the machine gives a step's effects for it.
///
/// ```compile_fail
/// let forged = windlass_store::Receipt { revision: 1 };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    revision: u64,
}

impl Receipt {
    /// The revision that is durable.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl windlass_machine::sealed::Sealed for Receipt {}
impl windlass_machine::Durable for Receipt {}

/// What a store says of one that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The step is durable.
    pub receipt: Receipt,
    /// How many bytes a reader goes through for it.
    pub change_bytes: u64,
    /// How many bytes its snapshot took, if it had one.
    pub snapshot_bytes: Option<u64>,
}

/// Why a store could not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the store open.
    #[error("the store in {path} is in use by another process")]
    Locked {
        /// The store's directory.
        path: String,
    },
    /// The directory holds something that is not a store of this version.
    #[error("{path} is not a store that this version can open: {reason}")]
    Foreign {
        /// The store's directory.
        path: String,
        /// What was found.
        reason: String,
    },
    /// The store uses another database than the requested one.
    #[error("the store in {path} uses {found}, not {wanted}")]
    OtherKind {
        /// The store's directory.
        path: String,
        /// What keeps it.
        found: StoreKind,
        /// The requested one.
        wanted: StoreKind,
    },
    /// Stored bytes are not what was written.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// Which record of which run, as far as it is known.
        what: String,
    },
    /// Its files are not where they were opened any more: nothing can be acknowledged.
    #[error("the store is gone: {path} was deleted, replaced or hidden by a mount")]
    Gone {
        /// The file that is another one now, or none.
        path: String,
    },
    /// It cannot be made or opened there: no permission, a file in the place of a directory.
    #[error("the store in {path} cannot be opened: {error}")]
    Unopened {
        /// The store's directory.
        path: String,
        #[source]
        error: std::io::Error,
    },
    /// The disk is full or refuses.
    #[error("the store cannot write: {0}")]
    Io(#[source] std::io::Error),
    /// The run changed since it was read.
    #[error("run {run} is at revision {found}, not {expected}: someone else moved it")]
    Conflict {
        run: Name,
        /// The revision the commit was made for.
        expected: u64,
        /// The stored one.
        found: u64,
    },
    /// There is no such run.
    #[error("unknown run {0} in this store")]
    UnknownRun(Name),
    /// A commit holds what the store cannot keep: values that nest too deep, a record that is
    /// too long, an id of no or more than [`MAX_RUN_ID`] bytes. Nothing of it was written.
    #[error("run {run} cannot be stored: {reason}")]
    Rejected { run: Name, reason: String },
    /// A write failed before. Nothing is acknowledged any more, because what the database still
    /// has in memory may not be on disk: the store must be opened again.
    #[error("the store stopped after an error: {reason}")]
    Failed {
        /// The first error.
        reason: String,
    },
}

impl StoreError {
    /// The changes of a run do not make a state.
    pub fn replay_failed(run: &str, bug: &Bug) -> Self {
        Self::Corrupt {
            what: format!("the changes of run {run} are not those of its state: {bug}"),
        }
    }
}

/// All that is shown of a run, each part with why it cannot be read.
#[derive(Debug)]
pub struct ConsistentRun {
    /// Its head and its state.
    pub stored: Result<StoredRun, StoreError>,
    /// As [`Store::loops`].
    pub loops: Result<Vec<LoopState>, StoreError>,
    /// As [`Store::iterations`] of all its loops.
    pub iterations: Result<Vec<IterationRow>, StoreError>,
}
