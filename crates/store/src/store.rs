//! What a store does. It is read as three tables; only [`Store`] writes.

use crate::{
    Commit, CommitRecord, Committed, ConsistentRun, IntegrityReport, Journal, LastStatus,
    LoopIterations, MemoryStore, Placement, ProgramSource, RowLocation, RunHeader, StateEntry,
    StateOutcome, StateOwner, StateWrite, StoreError, StoredRun, StoredWorkflow, Wake,
    WorkflowVersion,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use windlass_expression::Sealer;
use windlass_machine::program::ProgramHash;
use windlass_machine::{Change, HistoryEvent, IterationRow, LoopState};
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// Seals [`Store`]: it grows with the engine, so that only the crates of this workspace implement it.
#[doc(hidden)]
pub mod sealed {
    pub trait Store {}
}

/// A run that waits, and when it continues.
pub type DueRun = (Timestamp, Name);

/// The latest of each run, and the indexes of what continues when.
pub trait RunTable: sealed::Store {
    /// A run's head.
    fn header(&self, run: &str) -> Result<RunHeader, StoreError>;

    /// A run's head and state.
    fn load(&self, run: &str) -> Result<StoredRun, StoreError>;

    /// A run as it is at one moment, with the current rows of its loops and its last `iterations`.
    fn consistent_read(&self, run: &str, iterations: usize) -> Result<ConsistentRun, StoreError>;

    /// A program's source.
    fn program(&self, hash: ProgramHash) -> Result<ProgramSource, StoreError>;

    /// Heads of runs in the order of their ids, after `after`.
    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, StoreError>;

    /// The runs that continue at once.
    fn runnable(&self) -> Result<Vec<Name>, StoreError>;

    /// The runs that are due by `until`, earliest first and then in the order of their ids, those behind `after` and
    /// `limit` at most. What was removed before `after` is not passed again.
    fn due(
        &self,
        after: Option<&DueRun>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError>;
}

/// How runs came to their state: their journals, and the iterations of their loops.
pub trait HistoryTable: sealed::Store {
    /// What is stored of how a run came to its state.
    fn journal(&self, run: &str) -> Result<Journal, StoreError>;

    /// A run's history after sequence number `after`, with sequence numbers from 1, in order.
    fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError>;

    /// The commits of a run that were made since `since`, up to the one with the number `last`, and
    /// contain something that is wanted, as far as they are stored; the oldest first.
    fn commits_between(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError>;

    /// The changes of the `limit` commits up to the one with the number `last`, with their numbers, as
    /// far as they are stored; the newest first.
    fn changes_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError>;

    /// How the iterations of a loop with these numbers ended, as far as the last `commits` report it; the
    /// newest first.
    fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<LastStatus>, StoreError>;

    /// The current row of every loop that a run has, by path.
    fn loops(&self, run: &str) -> Result<Vec<LoopState>, StoreError>;

    /// The last `limit` iteration rows of a run in the order they ended per loop, of one loop
    /// path if given.
    fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, StoreError>;

    /// What is stored of the iterations of one loop, or of the items of one foreach.
    fn iterations_of(&self, run: &str, path: &str) -> Result<LoopIterations, StoreError>;

    /// The rows of these iterations of a loop, as far as they are still where they were found.
    fn whole_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError>;
}

/// The workflows that are stored under names, and the values that workflows have between their runs.
pub trait WorkflowTable: sealed::Store {
    fn workflow(&self, name: &str) -> Result<Option<StoredWorkflow>, StoreError>;

    /// Workflows in the order of their names, after `after`.
    fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredWorkflow>, StoreError>;

    /// The former texts of a workflow, the oldest first.
    fn former_workflows(&self, name: &str) -> Result<Vec<WorkflowVersion>, StoreError>;

    /// One of them.
    fn former_workflow(
        &self,
        name: &str,
        version: &WorkflowVersion,
    ) -> Result<Option<ProgramSource>, StoreError>;

    /// The values that a workflow has between its runs, by name, or those of all workflows. Those that were deleted
    /// are there, without a value.
    fn state(&self, of: Option<&StateOwner>) -> Result<Vec<StateEntry>, StoreError>;
}

/// All that can be read of a store.
pub trait ReadStore: RunTable + HistoryTable + WorkflowTable {}

impl<T: RunTable + HistoryTable + WorkflowTable + ?Sized> ReadStore for T {}

/// A place to store runs: [`SledStore`](crate::SledStore), [`MemoryStore`], or what [`open`](crate::open) finds. All
/// methods block; `commit` is durable against a power cut when it returns.
pub trait Store: ReadStore + Send + Sync + 'static {
    /// Whether it takes writes: not after one that failed, until it was opened again.
    fn check_writable(&self) -> Result<(), StoreError>;

    /// Whether it is still where it was opened; without that it takes no writes any more.
    fn check_present(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How often it was opened again.
    fn epoch(&self) -> u64;

    /// Waits until what could be read until now is durable: a group can be read as soon as it is on
    /// its way to the disk, and nothing may be reported that a power cut can still take back. `epoch`
    /// is its value from before it was read.
    fn wait_durable(&self, epoch: u64) -> Result<(), StoreError>;

    /// Opens the store again after a write that failed. Whether the groups that failed are there
    /// must be read: runs are loaded again.
    ///
    /// # Errors
    /// What opening it fails with; it can be tried again.
    fn reopen(&self) -> Result<(), StoreError>;

    /// From now on secure values are sealed with this key, and those that it sealed are read. What
    /// another key sealed stays as it is: it can be shown, masked, but no run continues with it.
    fn seal_with(&self, key: Arc<dyn Sealer>);

    /// Makes steps of several runs durable in one group. Each is atomic; all are durable when
    /// this returns. A run appears at most once per call. The outcome is per commit and in order:
    /// one with the wrong revision is refused with [`StoreError::Conflict`] and the others stand.
    ///
    /// # Errors
    /// The outer error means that nothing of the group is known to be durable.
    fn commit(&self, group: &[Commit]) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        self.commit_with_callback(group, &mut || ())
    }

    /// As `commit`. Calls `written` when the operating system has the whole group and none of it was refused: the
    /// end of this process takes nothing of it away any more, but a power cut may.
    fn commit_with_callback(
        &self,
        group: &[Commit],
        written: &mut dyn FnMut(),
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError>;

    /// Moves a run to another index without a step of its own. With a reason, which its label
    /// [`QUARANTINE_LABEL`] keeps, for one that cannot continue: no recovery loads it before someone
    /// asks for it. Durable when this returns.
    fn set_quarantine(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Forgets a run and all of its rows. Its program stays until [`Store::sweep`].
    fn delete(&self, run: &str) -> Result<(), StoreError>;

    /// Stores a workflow under its name, instead of the one that was there; durable when this returns. In one step with
    /// it, `former` becomes one of its former texts, and those of `gone` are deleted. Returns whether there was one.
    fn replace_workflow(
        &self,
        workflow: &StoredWorkflow,
        former: Option<(&WorkflowVersion, &ProgramSource)>,
        gone: &[WorkflowVersion],
    ) -> Result<bool, StoreError>;

    /// Forgets the workflow of a name and its former texts; runs of it continue. Returns whether there was one.
    fn remove_workflow(&self, name: &str) -> Result<bool, StoreError>;

    /// Writes such a value if it is as expected; durable when this returns. The same write once more, by its
    /// idempotency key, changes nothing.
    fn write_state(&self, write: &StateWrite) -> Result<StateOutcome, StoreError>;

    /// The runs whose heads changed, or went, since the last call; none when that is not known: the
    /// first time, when it was opened again, and when they are very many. For one asker.
    fn changed_runs(&self) -> Option<Vec<Name>> {
        None
    }

    /// Sets what is called at the first change of a run after each call of [`Self::changed_runs`].
    fn on_change(&self, _wake: Wake) {}

    /// While it accepts no writes, what was acknowledged, read from the disk; none when that cannot be
    /// distinguished from what was not.
    fn durable_snapshot(&self) -> Option<MemoryStore>;

    /// Copies it, as it is at one moment, to a store of its own in another state directory, which has
    /// none. Returns what was found when that was opened and read in full; when that is not all, there is
    /// no copy.
    fn backup(&self, dir: &Path) -> Result<IntegrityReport, StoreError>;

    /// Forgets the programs that no run pins; returns how many.
    fn sweep(&self) -> Result<u64, StoreError>;
}
