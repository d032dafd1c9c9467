//! Where runs are stored: the trait [`Store`] and its types. Implementations: `memory`, `sled`, `fjall`. All of them
//! pass one contract suite.
//!
//! This crate never schedules anything, and its API has no type of a database.
//!
//! The most important types: [`Store`], [`Commit`], [`Receipt`], [`StoredRun`], [`StoreError`].
//!
//! Test it alone with `cargo test -p windlass-store`.

// Not published for others: an item whose name says everything has no comment.
#![allow(missing_docs)]
// Without fjall, code for a second database is unused.
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
pub use directory::give_entry_to_owner;
pub use disk::{StoreOptions, open, open_for_inspection, open_to_examine, open_with};
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
pub use store::{DueRun, ReadStore, Store, sealed};
pub use workflow_state::{
    StateCondition, StateEntry, StateOutcome, StateOwner, StateWrite, StateWriter,
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

/// The label of a run in quarantine; its value is the reason.
pub const QUARANTINE_LABEL: &str = "windlass.parked";

/// The label of a run that handled failures of its actions and so did not fail itself. Its value is the number of
/// failed actions.
pub const FAILED_ACTIONS_LABEL: &str = "windlass.failed_actions";

/// The source that a run was compiled from. A store has each source once, under the program's hash. A run is pinned to
/// its hash: if the files change, the run does not.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ProgramSource {
    /// The workflow and the files it refers to.
    pub bundle: Bundle,
    /// The format that the workflow was read as.
    pub dialect: Dialect,
    /// The operator's limit on the count of loops when the workflow was loaded.
    pub max_count: u64,
    /// The operator's limit on the timeout of loops when the workflow was loaded, in milliseconds.
    pub max_timeout_ms: u64,
    pub origin: Origin,
    /// The folder of the relative paths in its actions; if `None`, the working folder of the process.
    pub folder: Option<String>,
}

/// A workflow that is stored under its name.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredWorkflow {
    /// The workflow's name; 1 to [`MAX_RUN_ID`] bytes.
    pub name: Name,
    pub source: ProgramSource,
    pub stored_at: Timestamp,
    /// The state of the workflow's schedule; `None` before the first scheduled time.
    pub schedule: Option<ScheduleState>,
}

/// A text that a stored workflow had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowVersion {
    pub stored_at: Timestamp,
    /// The hash of the compiled program.
    pub program: ProgramHash,
}

/// The state of a stored workflow's schedule.
/// This must stay the last field of a workflow's record, because later versions add fields at the end of this state.
#[derive(Clone, Debug, Default, PartialEq, Encode)]
pub struct ScheduleState {
    /// All scheduled times up to this one were handled.
    pub until: Timestamp,
    /// The run of the last scheduled time that started a run.
    pub last_run: Option<Name>,
    /// Number of scheduled times that were missed and have no run.
    pub missed: u64,
    /// The last missed time.
    pub last_missed: Option<Timestamp>,
    /// The schedule's pauses, in order. A pause that ended before `until` is removed.
    pub pauses: Vec<SchedulePause>,
}

impl<Context> Decode<Context> for ScheduleState {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (until, last_run) = Decode::decode(decoder)?;
        // Earlier versions did not store the other fields.
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

/// A pause of a schedule. Scheduled times after `from`, up to and including `to`, start nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SchedulePause {
    pub from: Timestamp,
    /// The pause's end; `None` while the pause lasts.
    pub to: Option<Timestamp>,
}

/// The header of a run: what `list` shows, and the position of the run's journal.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct RunHeader {
    pub id: Name,
    /// The workflow's name.
    pub workflow: Name,
    /// The program that the run is pinned to.
    pub program: ProgramHash,
    pub status: RunStatus,
    /// Number of commits of the run; 0 for a run that was never stored.
    pub revision: u64,
    /// The revision of the last snapshot; 0 without a snapshot.
    pub snapshot: u64,
    pub started_at: Timestamp,
    /// When the run last changed.
    pub updated_at: Timestamp,
    /// The index that contains the run.
    pub placement: Placement,
    /// The caller's labels.
    pub labels: BTreeMap<String, String>,
}

impl RunHeader {
    /// Returns how many actions failed without failing the run.
    #[must_use]
    pub fn failed_actions(&self) -> u64 {
        let label = self.labels.get(FAILED_ACTIONS_LABEL);
        label.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Adds the actions that failed in the step that led to the current status.
    pub fn count_failed_actions(&mut self, history: &[HistoryEvent]) {
        if self.status.is_final() && self.status != RunStatus::Succeeded {
            self.labels.remove(FAILED_ACTIONS_LABEL);
            return;
        }
        // A foreach that continues after failed items has an error although it does not fail, so only the status
        // counts.
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

/// The index by which a recovery finds the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Placement {
    /// The run continues at once.
    Runnable,
    /// The run continues at this time.
    Due(Timestamp),
    /// The run continues only on request: it is paused, waits for a signal, or has ended.
    Idle,
}

/// One durable step of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The header after this step. Its revision is the stored revision plus one.
    pub header: RunHeader,
    /// The changes of the run's state.
    pub changes: Vec<Change>,
    /// The rows of the loops that changed.
    pub loops: Vec<LoopState>,
    /// The rows of the iterations that ended.
    pub iterations: Vec<IterationRow>,
    /// The events for the run's history.
    pub history: Vec<HistoryEvent>,
    /// The whole state after this step. Present only if the changes since the last snapshot are larger than that
    /// snapshot: a run is loaded from its last snapshot and the later changes.
    pub snapshot: Option<RunState>,
    /// The program, with a run's first commit. It is stored if the store does not have it yet.
    pub program: Option<ProgramSource>,
}

/// A run that was loaded from the store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    pub header: RunHeader,
    /// The run's state: the last snapshot with the later changes applied.
    pub state: RunState,
    /// Size in bytes of the commits after the snapshot.
    pub tail_bytes: u64,
    pub snapshot_bytes: u64,
}

/// The stored part of a run's journal: a state, and all later changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    pub header: RunHeader,
    /// The state at the last snapshot; without a snapshot, the state before the first step.
    pub start: RunState,
    /// All changes since that state, in order.
    pub changes: Vec<Change>,
}

/// A store's proof that a step is durable. The machine releases a step's effects only with this proof.
///
/// ```compile_fail
/// let forged = windlass_store::Receipt { revision: 1 };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    revision: u64,
}

impl Receipt {
    /// Returns the revision that is durable.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl windlass_machine::sealed::Sealed for Receipt {}
impl windlass_machine::Durable for Receipt {}

/// A store's answer for a commit that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The proof that the step is durable.
    pub receipt: Receipt,
    /// Size in bytes of the commit's record before compression. A reader decodes this many bytes to read the commit's
    /// changes.
    pub change_bytes: u64,
    /// Size in bytes of the commit's snapshot, if it has one.
    pub snapshot_bytes: Option<u64>,
}

/// Why a store did not execute a request.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the store open.
    #[error("the store in {path} is in use by another process")]
    Locked {
        /// The store's directory.
        path: String,
    },
    /// The directory contains something other than a store of this version.
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
        found: StoreKind,
        wanted: StoreKind,
    },
    /// Stored bytes differ from the bytes that were written.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// The damaged record and its run, if known.
        what: String,
    },
    /// The store is damaged, and a repair would recover nothing.
    #[error("the store is damaged: {0}")]
    Unreadable(&'static str),
    /// The store's files are not at the path where they were opened, so no commit can be acknowledged.
    #[error("the store is gone: {path} was deleted, replaced or hidden by a mount")]
    Gone {
        /// The file that was removed or replaced by another one.
        path: String,
    },
    /// The store cannot be created or opened: for example no permission, or a file in the place of a directory.
    #[error("the store in {path} cannot be opened: {error}")]
    Unopened {
        /// The store's directory.
        path: String,
        #[source]
        error: std::io::Error,
    },
    /// The disk is full or reports an error.
    #[error("the store cannot write: {0}")]
    Io(#[source] std::io::Error),
    /// The run changed since it was read.
    #[error("run {run} is at revision {found}, not {expected}: someone else moved it")]
    Conflict {
        run: Name,
        /// The revision that the commit was made for.
        expected: u64,
        /// The stored revision.
        found: u64,
    },
    /// The store does not have this run.
    #[error("unknown run {0} in this store")]
    UnknownRun(Name),
    /// The store cannot represent a commit: its values nest too deep, a record is too long, or the run's id is empty or
    /// has more than [`MAX_RUN_ID`] bytes. Nothing of the commit was written.
    #[error("run {run} cannot be stored: {reason}")]
    Rejected { run: Name, reason: String },
    /// An earlier write failed. Data that the database still has in memory may not be on disk, so no commit is
    /// acknowledged until the store is opened again.
    #[error("the store stopped after an error: {reason}")]
    Failed {
        /// The first error.
        reason: String,
    },
}

impl StoreError {
    /// The error of a run whose stored changes do not apply to its state.
    pub fn replay_failed(run: &str, bug: &Bug) -> Self {
        Self::Corrupt {
            what: format!("the changes of run {run} are not those of its state: {bug}"),
        }
    }
}

/// All data of a run that is shown to users. A part that cannot be read contains the error instead.
#[derive(Debug)]
pub struct ConsistentRun {
    /// The run's header and state.
    pub stored: Result<StoredRun, StoreError>,
    /// The result of `loops`.
    pub loops: Result<Vec<LoopState>, StoreError>,
    /// The result of `iterations` for all loops of the run.
    pub iterations: Result<Vec<IterationRow>, StoreError>,
}
