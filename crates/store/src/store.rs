//! The interface of a store: [`ReadStore`] to read, and [`Store`] to write.

use crate::{
    Commit, CommitRecord, Committed, ConsistentRun, IntegrityReport, Journal, LastStatus,
    LoopIterations, MemoryStore, Placement, ProgramSource, RawRow, RowLocation, RunHeader,
    StateEntry, StateOutcome, StateOwner, StateWrite, StoreError, StoredRun, StoredWorkflow, Wake,
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

/// Seals [`Store`]: only the crates of this workspace implement it, because it changes with the engine.
#[doc(hidden)]
pub mod sealed {
    pub trait Store {}
}

/// A waiting run, and the time at which it continues.
pub type DueRun = (Timestamp, Name);

/// All read access to a store.
pub trait ReadStore: sealed::Store {
    // The current state of each run, and the indexes of runs that continue.

    fn header(&self, run: &str) -> Result<RunHeader, StoreError>;

    /// Returns a run's header and state.
    fn load(&self, run: &str) -> Result<StoredRun, StoreError>;

    /// Reads a run as it is at one moment: the header, the state, the current rows of its loops, and the last
    /// `iterations` iterations.
    fn consistent_read(&self, run: &str, iterations: usize) -> Result<ConsistentRun, StoreError>;

    fn program(&self, hash: ProgramHash) -> Result<ProgramSource, StoreError>;

    /// Returns at most `limit` headers of runs, ordered by id. The first one is the first id that sorts after `after`.
    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, StoreError>;

    /// Returns the runs that continue at once.
    fn runnable(&self) -> Result<Vec<Name>, StoreError>;

    /// Returns at most `limit` runs that are due by `until`, ordered by due time and then by id. The first one is the
    /// first run that sorts after `after`. The database does not scan again the removed rows before `after`.
    fn due(
        &self,
        after: Option<&DueRun>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError>;

    // How runs reached their state: their journals, and the iterations of their loops.

    /// Returns the stored part of a run's journal.
    fn journal(&self, run: &str) -> Result<Journal, StoreError>;

    /// Returns at most `limit` events of a run's history, in order, each with its sequence number (from 1). The first
    /// one is the event after sequence number `after`.
    fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError>;

    /// Returns the stored commits of a run up to revision `last` that have an event for which `wanted` returns true,
    /// the oldest first.
    /// Reads backwards from `last`, and stops at the newest commit that has an event before `since`.
    fn commits_between(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError>;

    /// Returns the changes of at most `limit` stored commits up to revision `last`, with their revisions, the newest
    /// first.
    fn changes_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError>;

    /// Returns how the iterations with the numbers `wanted` of a loop ended, the newest first. Reads only the last
    /// `commits` commits of the run.
    fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<LastStatus>, StoreError>;

    /// Returns the current row of every loop of a run, ordered by path.
    fn loops(&self, run: &str) -> Result<Vec<LoopState>, StoreError>;

    /// Returns the last `limit` iteration rows of a run. If `path` is given, returns only rows of this loop. The rows
    /// of one loop are in the order in which the iterations ended.
    fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, StoreError>;

    /// Returns all stored data about the iterations of one loop, or about the items of one foreach.
    fn iterations_of(&self, run: &str, path: &str) -> Result<LoopIterations, StoreError>;

    /// Returns the rows of the `wanted` iterations of a loop. If a row is no longer at its location, it is left out.
    fn whole_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError>;

    // The workflows that are stored under names, and the values that workflows store between their runs.

    fn workflow(&self, name: &str) -> Result<Option<StoredWorkflow>, StoreError>;

    /// Returns at most `limit` workflows, ordered by name. The first one is the first name that sorts after `after`.
    fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredWorkflow>, StoreError>;

    /// Returns the former texts of a workflow, the oldest first.
    fn former_workflows(&self, name: &str) -> Result<Vec<WorkflowVersion>, StoreError>;

    fn former_workflow(
        &self,
        name: &str,
        version: &WorkflowVersion,
    ) -> Result<Option<ProgramSource>, StoreError>;

    /// Returns the values that workflows store between their runs, by name: those of one workflow, or of all workflows.
    /// A deleted value still has an entry, but the entry has no value.
    fn state(&self, of: Option<&StateOwner>) -> Result<Vec<StateEntry>, StoreError>;
}

/// A place to store runs: [`SledStore`](crate::SledStore), [`MemoryStore`], or the result of [`open`](crate::open).
/// All methods block. When `commit` returns, its commits survive a power cut.
pub trait Store: ReadStore + Send + Sync + 'static {
    /// Returns an error if a write failed and the store was not opened again after it.
    fn check_writable(&self) -> Result<(), StoreError>;

    /// Returns an error if the store is not at the path where it was opened. After such an error, the store accepts no
    /// writes.
    fn check_present(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns how often the store was opened again.
    fn epoch(&self) -> u64;

    /// Waits until all groups that are readable now are durable. A group (writes of several commits together) can be
    /// read before it is durable, but no report may contain data that a power cut can still remove.
    /// `epoch` must be the result of a call of [`Self::epoch`] before the read.
    fn wait_durable(&self, epoch: u64) -> Result<(), StoreError>;

    /// Opens the store again after a failed write. The groups that were being written may or may not be stored, so runs
    /// must be loaded again.
    ///
    /// # Errors
    /// The errors of opening the store. The call can be repeated.
    fn reopen(&self) -> Result<(), StoreError>;

    /// Sets the key that seals new secure values, and that opens the values it has sealed. A value that another key has
    /// sealed can be shown, masked, but a run that needs it does not continue.
    fn seal_with(&self, key: Arc<dyn Sealer>);

    /// Makes steps of several runs durable in one group. Each step is atomic, and all are durable when this returns.
    /// A run appears at most once in a group. Returns one result for each commit, in order. A commit with the wrong
    /// revision fails with [`StoreError::Conflict`]; the other commits are not affected.
    ///
    /// # Errors
    /// If the outer result is an error, none of the group's commits is known to be durable.
    fn commit(&self, group: &[Commit]) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        self.commit_with_callback(group, &mut || ())
    }

    /// Does the same as `commit`, and calls `on_flushed` when the operating system has the whole group. Does not call
    /// it if a commit was refused.
    /// After this call, a crash of this process cannot lose the group, but a power cut can.
    fn commit_with_callback(
        &self,
        group: &[Commit],
        on_flushed: &mut dyn FnMut(),
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError>;

    /// Moves a run to another index without a step of the run; durable when this returns.
    /// If `reason` is given, the run is put into quarantine, because it cannot continue. The reason is stored in the
    /// label `QUARANTINE_LABEL`, and recovery does not load the run until a user requests it.
    fn set_quarantine(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Deletes a run with all of its rows. The run's program remains until [`Store::sweep`].
    fn delete(&self, run: &str) -> Result<(), StoreError>;

    /// Stores a workflow under its name, in place of the earlier one; durable when this returns.
    /// In the same atomic write, adds the former text `former` and deletes the former texts `gone`. Returns true if the
    /// store had a workflow with this name.
    fn replace_workflow(
        &self,
        workflow: &StoredWorkflow,
        former: Option<(&WorkflowVersion, &ProgramSource)>,
        gone: &[WorkflowVersion],
    ) -> Result<bool, StoreError>;

    /// Deletes a workflow and its former texts. Runs of the workflow continue. Returns true if the store had a workflow
    /// with this name.
    fn remove_workflow(&self, name: &str) -> Result<bool, StoreError>;

    /// Writes a value of a workflow if the stored value is the expected one; durable when this returns. A repeated
    /// write with the same idempotency key changes nothing.
    fn write_state(&self, write: &StateWrite) -> Result<StateOutcome, StoreError>;

    /// Returns the runs whose headers were changed or deleted since the last call.
    /// Returns `None` if these runs are not known: at the first call, after the store was opened again, or if too many
    /// runs changed. Only one caller may use this method, because each call clears the list.
    fn changed_runs(&self) -> Option<Vec<Name>> {
        None
    }

    /// Sets the function that is called when the first run changes after each call of [`Self::changed_runs`].
    fn on_change(&self, _wake: Wake) {}

    /// Sets the function that is called when a write failed and the store accepts no writes any more.
    fn on_failure(&self, _wake: Wake) {}

    /// Reads all acknowledged data from the disk, while the store accepts no writes. Returns `None` if the acknowledged
    /// data cannot be distinguished from other data.
    fn durable_snapshot(&self) -> Option<MemoryStore>;

    /// Copies the store, as it is at one moment, into another state directory, which must have no store. Then opens the
    /// copy and reads it in full. Returns the result of this check. If the check finds issues, the copy is removed.
    fn backup(&self, dir: &Path) -> Result<IntegrityReport, StoreError>;

    /// Reads everything. The report contains each part that cannot be read.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if a write failed before.
    fn check(&self) -> Result<IntegrityReport, StoreError>;

    /// Passes rows to `sink` in the order of their keys: all rows, or the rows of one run. If a record cannot be read,
    /// its row has the reason.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database cannot read further rows.
    fn raw(&self, run: Option<&str>, sink: &mut dyn FnMut(RawRow)) -> Result<(), StoreError>;

    /// Deletes the programs that no run pins. Returns the number of programs.
    fn sweep(&self) -> Result<u64, StoreError>;
}
