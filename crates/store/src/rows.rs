//! A store as rows (keys with their values) of a sorted map. `root` opens the store, `reader` reads it, and `durable`
//! makes groups (writes of several commits together) durable. `commit` determines what a commit writes; `keys` and
//! `codec` define the bytes of keys and values.

mod durable;
mod reader;
mod root;
#[cfg(test)]
mod tests;

pub(super) use reader::{Record, RowReader};
pub(super) use root::{Meta, ends_too_early, older_mark};

use durable::Durability;

use super::codec::{self, BadRecord};
use super::commit::{Writer, encode_group};
use super::feed::{Feed, Wake};
use super::header::StoredHeader;
use super::keys::{self, Family};
use super::kv::{Kv, KvError, prefixed};
use super::snapshot::Snapshots;
use super::{
    Commit, CommitRecord, Committed, ConsistentRun, DueRun, IntegrityReport, Journal, LastStatus,
    LoopIterations, MemoryStore, Placement, ProgramSource, RawRow, ReadStore, RowLocation,
    RunHeader, StateEntry, StateOutcome, StateOwner, StateWrite, Store, StoreError, StoredRun,
    StoredWorkflow, WorkflowVersion,
};
use std::io;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use windlass_expression::Sealer;
use windlass_machine::program::ProgramHash;
use windlass_machine::{Change, HistoryEvent, IterationRow, LoopState};
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// The version of the store's format: its families (kinds of rows), and the layout of their keys.
pub const FORMAT: u32 = 2;

/// How much data a run retains that is only for display. A run never needs this data to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Minimum number of iteration rows that are retained for each loop of a run.
    pub iterations: usize,
    /// Minimum number of history events that are retained for a run.
    pub events: u64,
    /// Minimum number of rows of ended loops that are retained for each loop of a run. A nested loop has one row for
    /// each iteration of the enclosing loop.
    pub ended_loops: usize,
    /// Every time a run has made this many commits, the rows above these minimums are removed.
    pub compact_every: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            iterations: 1_000,
            events: 10_000,
            ended_loops: 64,
            compact_every: 512,
        }
    }
}

/// Number of attempts to read a run without a lock on the writer. Each attempt may fail because commits are applied
/// meanwhile. The attempt after the last of them locks the writer.
const UNLOCKED_READS: usize = 3;

/// A store on a sorted map.
pub struct Rows<K: Kv> {
    pub(super) reader: RowReader<K>,
    pub(super) writer: Mutex<Writer>,
    /// Held while a thread waits for the writer. A thread that writes several groups must wait here again for each
    /// group, so other threads can write between its groups.
    writer_queue: Mutex<()>,
    durability: Durability,
    /// The runs that changed since the feed was last read.
    feed: Feed,
    /// Called after a failed write.
    on_failure: OnceLock<Wake>,
    /// The snapshots of the copies in progress.
    pub(super) snapshots: Snapshots,
}

impl<K: Kv> Rows<K> {
    pub(super) fn into_database(self) -> K {
        self.reader.kv
    }

    /// Returns the database for direct access. Use this only if nothing else uses the store.
    pub(super) fn database(&self) -> &K {
        &self.reader.kv
    }

    /// Reads several records of a run. Commits that are applied meanwhile may remove some of them. If the result is
    /// inconsistent for that reason, all of them are read again. The last attempt prevents commits while it reads.
    fn read_run<T>(
        &self,
        run: &str,
        is_consistent: impl Fn(&T) -> bool,
        read: impl Fn() -> T,
    ) -> T {
        // Each commit of a run changes the checksum of the run's header. So if the checksum is unchanged, no commit was
        // applied during the read.
        let header = || {
            self.reader
                .crc_at(|key| keys::of_run(key, Family::Header, run))
                .ok()
        };
        for _ in 0..UNLOCKED_READS {
            let before = header();
            let found = read();
            if is_consistent(&found) || header() == before {
                return found;
            }
        }
        let _writer = lock(&self.writer);
        read()
    }

    /// Locks the writer. If another thread already waits for the writer, that thread gets it first.
    pub(super) fn next_writer(&self) -> MutexGuard<'_, Writer> {
        let _queue = lock(&self.writer_queue);
        lock(&self.writer)
    }
}

/// Returns false if a record was missing, was damaged, or belonged to another commit.
fn is_consistent<T>(read: &Result<T, StoreError>) -> bool {
    !matches!(read, Err(StoreError::Corrupt { .. }))
}

fn is_unknown<T>(read: &Result<T, StoreError>) -> bool {
    matches!(read, Err(StoreError::UnknownRun(_)))
}

impl<K: Kv> super::store::sealed::Store for Rows<K> {}

impl<K: Kv> ReadStore for Rows<K> {
    fn header(&self, run: &str) -> Result<RunHeader, StoreError> {
        Ok(self.reader.known(run)?.header)
    }

    fn load(&self, run: &str) -> Result<StoredRun, StoreError> {
        self.check_writable()?;
        let _sealing = self.reader.sealing_guard();
        self.reader.stored_run(run)
    }

    fn consistent_read(&self, run: &str, iterations: usize) -> Result<ConsistentRun, StoreError> {
        self.check_writable()?;
        let whole = |read: &ConsistentRun| {
            // If the run is deleted between the reads, some of them report an unknown run and others do not.
            let unknown = is_unknown(&read.stored);
            is_consistent(&read.stored)
                && is_consistent(&read.loops)
                && is_consistent(&read.iterations)
                && is_unknown(&read.loops) == unknown
                && is_unknown(&read.iterations) == unknown
        };
        Ok(self.read_run(run, whole, || {
            let stored = self.reader.stored_run(run);
            // Read only loops and iterations of commits up to the commit of the state.
            let last = stored.as_ref().ok().map(|stored| stored.header.revision);
            ConsistentRun {
                stored,
                loops: self.reader.loop_rows(run, last),
                iterations: self.reader.iteration_rows(run, None, iterations, last),
            }
        }))
    }

    fn program(&self, hash: ProgramHash) -> Result<ProgramSource, StoreError> {
        self.reader
            .read(
                |key| keys::program(key, hash),
                codec::decode::<ProgramSource>,
            )?
            .ok_or_else(|| corrupt(&format!("program {hash} is missing")))
    }

    fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunHeader>, StoreError> {
        let key = |key: &mut Vec<u8>, run: &str| keys::of_run(key, Family::Header, run);
        self.reader
            .page(Family::Header, key, after, limit, decode_header)
    }

    fn runnable(&self) -> Result<Vec<Name>, StoreError> {
        self.check_writable()?;
        let _reading = self.reader.hold_groups();
        self.reader
            .rows(prefixed(&[Family::Runnable.byte()]))
            .map(|row| run_of(row?.0.as_ref()))
            .collect()
    }

    fn due(
        &self,
        after: Option<&DueRun>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        self.check_writable()?;
        if after.is_some_and(|(at, _)| *at > until) {
            return Ok(Vec::new());
        }
        let (first, end) = prefixed(&[Family::Due.byte()]);
        let from = after.map_or(first, |(at, run)| {
            let mut key = Vec::new();
            keys::due(&mut key, *at, run);
            Bound::Excluded(key)
        });
        let to = match until.0.checked_add(1) {
            Some(next) => {
                let mut key = Vec::new();
                keys::due_from(&mut key, Timestamp(next));
                Bound::Excluded(key)
            }
            None => end,
        };
        let _reading = self.reader.hold_groups();
        self.reader
            .rows((from, to))
            .take(limit)
            .map(|row| due_row(row?.0.as_ref()))
            .collect()
    }

    fn journal(&self, run: &str) -> Result<Journal, StoreError> {
        self.check_writable()?;
        let _sealing = self.reader.sealing_guard();
        let mut copied = self.reader.copy_run(run)?;
        let mut changes = Vec::new();
        let (start, _) = copied.start()?;
        copied.tail(|more| changes.extend(more))?;
        Ok(Journal {
            header: copied.header,
            start,
            changes,
        })
    }

    fn history(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError> {
        self.read_run(run, is_consistent, || self.reader.events(run, after, limit))
    }

    fn commits_between(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader.read_commits(run, since, last, wanted)
        })
    }

    fn changes_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader.read_back(run, last, limit)
        })
    }

    fn last_statuses(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<LastStatus>, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader
                .statuses_back(run, path, wanted.clone(), commits)
        })
    }

    fn loops(&self, run: &str) -> Result<Vec<LoopState>, StoreError> {
        self.read_run(run, is_consistent, || self.reader.loop_rows(run, None))
    }

    fn iterations(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IterationRow>, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader.iteration_rows(run, path, limit, None)
        })
    }

    fn iterations_of(&self, run: &str, path: &str) -> Result<LoopIterations, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader.gather_iterations(run, path)
        })
    }

    fn whole_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError> {
        self.read_run(run, is_consistent, || {
            self.reader.read_rows(run, path, wanted)
        })
    }

    fn workflow(&self, name: &str) -> Result<Option<StoredWorkflow>, StoreError> {
        self.reader
            .read(|key| keys::workflow(key, name), codec::decode)
    }

    fn workflows(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredWorkflow>, StoreError> {
        let key = keys::workflow;
        self.reader
            .page(Family::Workflow, key, after, limit, codec::decode)
    }

    fn former_workflows(&self, name: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        self.reader.former_of(name)
    }

    fn former_workflow(
        &self,
        name: &str,
        version: &WorkflowVersion,
    ) -> Result<Option<ProgramSource>, StoreError> {
        self.reader.read(
            |key| keys::former_workflow(key, name, version),
            codec::decode,
        )
    }

    fn state(&self, of: Option<&StateOwner>) -> Result<Vec<StateEntry>, StoreError> {
        self.reader.read_state(of)
    }
}

impl<K: Kv> Store for Rows<K> {
    fn check_writable(&self) -> Result<(), StoreError> {
        self.reader.check_writable()
    }

    fn check_present(&self) -> Result<(), StoreError> {
        self.check_files()
    }

    fn epoch(&self) -> u64 {
        self.durability.epoch()
    }

    fn wait_durable(&self, epoch: u64) -> Result<(), StoreError> {
        self.wait_until_durable(epoch)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.open_again()
    }

    fn seal_with(&self, key: Arc<dyn Sealer>) {
        // A store has one key while it is open: a later key is ignored.
        let _ = self.reader.key.set(key);
    }

    fn commit_with_callback(
        &self,
        group: &[Commit],
        on_flushed: &mut dyn FnMut(),
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        let mut outcomes = Vec::with_capacity(group.len());
        let mut already_encoded = None;
        while let Some(rest) = group.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
            let sealing = self.reader.sealing_guard();
            // Encode before the writer is locked, so that other commits do not wait for the encoding.
            let mut encoded = encode_group(rest, K::MAX_UNSYNCED, &mut already_encoded);
            for (commit, slot) in rest.iter().zip(&mut encoded) {
                let Ok(one) = slot else { continue };
                match self.write_further_pieces(commit, one) {
                    Ok(()) => {}
                    // If a run cannot be read or its commit is rejected, only this commit fails. The other commits of
                    // the group continue.
                    Err(error @ (StoreError::Corrupt { .. } | StoreError::Rejected { .. })) => {
                        *slot = Err(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            let mut writer = self.next_writer();
            self.check_writable()?;
            writer.begin();
            let before = outcomes.len();
            for (commit, encoded) in rest.iter().zip(encoded) {
                let put = |encoded| self.reader.put_commit(&mut writer, commit, &encoded);
                outcomes.push(encoded.and_then(put));
            }
            drop(sealing);
            let staged = outcomes.get(before..).unwrap_or_default();
            if staged.iter().any(Result::is_ok) {
                let all = outcomes.len() == group.len() && outcomes.iter().all(Result::is_ok);
                self.make_durable(writer, || {
                    if all {
                        on_flushed();
                    }
                })?;
            }
        }
        Ok(outcomes)
    }

    fn set_quarantine(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.set_quarantine_of(run, placement, reason)
    }

    fn delete(&self, run: &str) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        writer.batch.clear();
        self.reader.remove_run(&mut writer, run)?;
        writer.touched.push(Name::from(run));
        self.make_durable(writer, || ())
    }

    fn replace_workflow(
        &self,
        workflow: &StoredWorkflow,
        former: Option<(&WorkflowVersion, &ProgramSource)>,
        gone: &[WorkflowVersion],
    ) -> Result<bool, StoreError> {
        self.put_workflow(workflow, former, gone)
    }

    fn remove_workflow(&self, name: &str) -> Result<bool, StoreError> {
        self.remove_workflow_rows(name)
    }

    fn write_state(&self, write: &StateWrite) -> Result<StateOutcome, StoreError> {
        self.put_state(write)
    }

    fn changed_runs(&self) -> Option<Vec<Name>> {
        self.feed.take()
    }

    fn on_change(&self, wake: Wake) {
        self.feed.on_change(wake);
    }

    fn on_failure(&self, wake: Wake) {
        // A store has one driver: a later function is ignored.
        let _ = self.on_failure.set(wake);
    }

    fn durable_snapshot(&self) -> Option<MemoryStore> {
        self.reader.kv.durable_snapshot()
    }

    fn backup(&self, dir: &Path) -> Result<IntegrityReport, StoreError> {
        self.check_files()?;
        self.check_writable()?;
        self.copy_to(dir, |store, into: &K::Backup| store.copy_into(into))
    }

    fn check(&self) -> Result<IntegrityReport, StoreError> {
        Self::check(self)
    }

    fn raw(&self, run: Option<&str>, sink: &mut dyn FnMut(RawRow)) -> Result<(), StoreError> {
        self.reader.raw(run, sink)
    }

    fn sweep(&self) -> Result<u64, StoreError> {
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        writer.batch.clear();
        let swept = self.reader.remove_unused_programs(&mut writer)?;
        if swept > 0 {
            self.make_durable(writer, || ())?;
        }
        Ok(swept)
    }
}

/// Returns true if only a write can cause this error. If a read returns it nevertheless, a write has failed.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::StorageFull | Kind::FileTooLarge | Kind::QuotaExceeded
    )
}

/// Decodes a run's stored header. Leaves out the bounds that the store adds to it.
pub(super) fn decode_header(bytes: &[u8]) -> Result<RunHeader, BadRecord> {
    codec::decode::<StoredHeader>(bytes).map(|head| head.header)
}

fn due_row(key: &[u8]) -> Result<DueRun, StoreError> {
    let parsed = keys::parse(key).and_then(|parsed| Some((parsed.due?, parsed.run?)));
    let (at, run) = parsed.ok_or_else(|| damaged(key, &"its key does not read"))?;
    Ok((at, Name::from(run)))
}

fn run_of(key: &[u8]) -> Result<Name, StoreError> {
    let run = keys::parse(key).and_then(|parsed| parsed.run);
    run.map(Name::from)
        .ok_or_else(|| damaged(key, &"its key does not read"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt {
        what: what.to_owned(),
    }
}

pub(super) fn unknown(run: &str) -> StoreError {
    StoreError::UnknownRun(Name::from(run))
}

fn damaged(key: &[u8], why: &dyn std::fmt::Display) -> StoreError {
    corrupt(&format!("{}: {why}", keys::describe(key)))
}

impl From<KvError> for StoreError {
    fn from(error: KvError) -> Self {
        match error {
            KvError::Corrupt(what) => Self::Corrupt { what },
            KvError::Io(error) => Self::Io(error),
            KvError::Gone(path) => Self::Gone { path },
            KvError::Closed => Self::Failed {
                reason: error.to_string(),
            },
        }
    }
}
