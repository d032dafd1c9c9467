//! A run's journal has one record for each commit: the commit's changes, and its report (events, and rows of loops and
//! iterations). Loading a run reads the changes; reading its history reads the reports.
//! A **row of the store** is a key and its value. Here it contains the record of one commit, or the packed records of
//! several. A **row of a loop** (or of an iteration) is the loop's state as a commit reported it.
//! This file encodes and decodes records. `journal_walk` reads them from the store, `commit` writes them, `pack` packs
//! them, and `compaction` removes the oldest.

use super::archive::{ArchiveRows, reported_facts};
use super::codec::{self, BadRecord};
use super::compress;
use super::header::Bounds;
use super::journal_walk::{Order, missing_changes};
use super::keys::{self, Family, LoopPath};
use super::kv::Kv;
use super::rows::{RowReader, corrupt};
use super::write_batch::WrittenPieces;
use super::{Commit, StoreError};
use bincode::error::EncodeError;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use windlass_machine::{Change, HistoryEvent, IterationRow, LoopState, RunState};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

/// The report of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitReport {
    /// The sequence number of the last event up to this commit.
    pub last_event: u64,
    /// The loops that changed.
    pub loops: Vec<LoopState>,
    /// The iterations that ended.
    pub iterations: Vec<IterationRow>,
    pub history: Vec<HistoryEvent>,
}

/// The retained rows: what remains stored of commits whose records were removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetainedRows {
    /// The last row of each loop.
    pub loops: Vec<LoopState>,
    /// The last iterations, in the order in which they ended.
    pub iterations: Vec<IterationRow>,
    /// The list of the archive's rows, which have all removed iterations in short form.
    pub archive: ArchiveRows,
}

impl RetainedRows {
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty() && self.iterations.is_empty() && self.archive.is_empty()
    }

    /// Appends the encoded rows. Earlier versions had no archive, so an empty list of archive rows is left out: the
    /// bytes are then the same as in those versions.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        codec::encode_all(out, &self.loops)?;
        codec::encode_all(out, &self.iterations)?;
        match self.archive.is_empty() {
            true => Ok(()),
            false => codec::encode(out, &self.archive),
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let mut at = 0;
        Ok(Self {
            loops: codec::decode_next(bytes, &mut at)?,
            iterations: codec::decode_next(bytes, &mut at)?,
            archive: match bytes.get(at..) {
                None | Some([]) => ArchiveRows::default(),
                Some(rest) => codec::decode(rest)?,
            },
        })
    }
}

/// The decompressed body of a commit's record, in two parts.
struct SplitRecord {
    /// The whole body: the length of the report, the report, then the changes.
    whole: Vec<u8>,
    /// Offset of the changes in `whole`, in bytes.
    changes_start: usize,
}

/// A commit with more bytes than this is long. The engine commits long commits on a thread of their own.
const LONG: usize = 256 << 10;

/// Size in bytes of the number at the start of a body. This number is the length of the report.
const LENGTH: usize = 4;

/// The parts of a commit that are encoded before the writer is locked. So other commits do not wait for the encoding.
pub(super) struct EncodedCommit {
    /// The commit's record without its beginning, which is the sequence number of the commit's last event.
    record: Vec<u8>,
    /// Size in bytes of the record's body before compression.
    body_bytes: u64,
    pub snapshot: Option<Vec<u8>>,
    /// The pieces of the commit that are already stored; `None` if no piece is.
    pub written: Option<WrittenCommit>,
}

/// The pieces of a long commit that are stored before the group that has the commit. A value that is too long for one
/// key is split into pieces, each under a key of its own.
pub(super) struct WrittenCommit {
    /// Identifies the commit that stored the pieces, in [`Writer::claims`](super::commit::Writer).
    pub claim: u64,
    /// The sequence number of the last event before the commit.
    pub events_before: u64,
    /// `None` if the record has only one piece, or if its further pieces are not all stored.
    pub record: Option<WrittenPieces>,
    pub snapshot: Option<WrittenPieces>,
}

impl EncodedCommit {
    pub fn of(commit: &Commit) -> Result<Self, EncodeError> {
        let mut record = Vec::new();
        let body_bytes = encode(&mut record, commit)?;
        let encode_state = |state: &RunState| {
            let mut bytes = Vec::new();
            codec::encode(&mut bytes, state).map(|()| bytes)
        };
        Ok(Self {
            record,
            body_bytes,
            snapshot: commit.snapshot.as_ref().map(encode_state).transpose()?,
            written: None,
        })
    }

    /// Returns the size of the record and the snapshot together, in bytes.
    pub fn bytes(&self) -> usize {
        self.record.len() + self.snapshot.as_ref().map_or(0, Vec::len)
    }

    /// Returns true if the commit is long. The pieces of a long commit except the first are stored in groups of their
    /// own (a group is the writes of several commits together). The first commit of a run is an exception: all of its
    /// pieces are in one group.
    pub fn is_long(&self) -> bool {
        self.bytes() > LONG
    }

    /// Returns the size in bytes of the record's body before compression.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Appends the record, which begins with `events`, the sequence number of the commit's last event.
    pub fn write_record(&self, out: &mut Vec<u8>, events: u64) -> Result<(), EncodeError> {
        codec::encode(out, &events)?;
        out.extend_from_slice(&self.record);
        Ok(())
    }
}

/// Appends a commit's record without the sequence number of its last event.
/// Returns the body's size in bytes before compression.
fn encode(out: &mut Vec<u8>, commit: &Commit) -> Result<u64, EncodeError> {
    let mut report = Vec::new();
    codec::encode(&mut report, &(commit.loops.len() as u64))?;
    for row in &commit.loops {
        if row.last.is_empty() && row.collected.is_null() && row.pages.is_empty() {
            codec::encode(&mut report, row)?;
        } else {
            codec::encode(&mut report, &row.row())?;
        }
    }
    codec::encode_all(&mut report, &commit.iterations)?;
    codec::encode_all(&mut report, &commit.history)?;
    // A snapshot has only the results of the changes. So the changes are stored even with a snapshot: reports also read
    // changes from before a snapshot.
    let mut changes = Vec::new();
    codec::encode_all(&mut changes, &commit.changes)?;
    write_body(out, &report, &changes)
}

/// Appends a record's body with these two parts. Returns the body's size in bytes before compression.
fn write_body(out: &mut Vec<u8>, report: &[u8], changes: &[u8]) -> Result<u64, EncodeError> {
    let length = u32::try_from(report.len())
        .map_err(|_| EncodeError::Other("a commit has more data than a record can hold"))?;
    let body = [&length.to_le_bytes(), report, changes].concat();
    compress::write(out, &body)?;
    Ok(body.len() as u64)
}

impl SplitRecord {
    fn read(bytes: &[u8]) -> Result<Self, BadRecord> {
        let (_, used) = codec::decode_first::<u64>(bytes)?;
        let rest = bytes.get(used..).unwrap_or_default();
        let whole = compress::read(rest)?;
        let length = whole.first_chunk().ok_or(BadRecord::Short)?;
        // If the body is shorter than this length says, both parts are empty.
        let changes_start = LENGTH + u32::from_le_bytes(*length) as usize;
        Ok(Self {
            whole,
            changes_start,
        })
    }

    fn report_bytes(&self) -> &[u8] {
        self.whole
            .get(LENGTH..self.changes_start)
            .unwrap_or_default()
    }

    fn changes(&self) -> &[u8] {
        self.whole.get(self.changes_start..).unwrap_or_default()
    }
}

/// Decodes a record's changes. Also returns the size in bytes of the record's body before compression.
pub(super) fn changes(bytes: &[u8]) -> Result<(u64, Vec<Change>), BadRecord> {
    let parts = SplitRecord::read(bytes)?;
    let changes = codec::decode_all(parts.changes())?;
    Ok((parts.whole.len() as u64, changes))
}

/// Decodes the loops that a commit changed.
fn loops(bytes: &[u8]) -> Result<Vec<LoopState>, BadRecord> {
    codec::decode_next(SplitRecord::read(bytes)?.report_bytes(), &mut 0)
}

/// Decodes the sequence number of the last event up to and including a commit.
pub(super) fn last_event(bytes: &[u8]) -> Result<u64, BadRecord> {
    codec::decode_first(bytes).map(|(events, _)| events)
}

impl CommitReport {
    /// Decodes what a commit's record reports.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let parts = SplitRecord::read(bytes)?;
        let (report_bytes, mut at) = (parts.report_bytes(), 0);
        let report = Self {
            last_event: last_event(bytes)?,
            loops: codec::decode_next(report_bytes, &mut at)?,
            iterations: codec::decode_next(report_bytes, &mut at)?,
            history: codec::decode_next(report_bytes, &mut at)?,
        };
        match report_bytes.len().saturating_sub(at) {
            0 => Ok(report),
            more => Err(BadRecord::Trailing(more)),
        }
    }

    /// Returns the sequence number of the last event before this commit.
    pub fn events_before(&self) -> u64 {
        self.last_event.saturating_sub(self.history.len() as u64)
    }
}

/// Selects the newest rows of each loop. The caller must pass the rows from the newest to the oldest.
pub struct NewestRows {
    keep: usize,
    seen: HashSet<(String, u64)>,
    of_loop: HashMap<Vec<u8>, usize>,
}

impl NewestRows {
    /// Selects at most `keep` rows of each loop.
    pub fn new(keep: usize) -> Self {
        Self {
            keep,
            seen: HashSet::new(),
            of_loop: HashMap::new(),
        }
    }

    /// Returns true if the row is one of the newest of its loop, and if no row of the same iteration was selected
    /// before.
    pub fn select(&mut self, row: &IterationRow) -> bool {
        let path = LoopPath::new(&row.path);
        if self
            .of_loop
            .get(path.names())
            .is_some_and(|taken| *taken >= self.keep)
        {
            return false;
        }
        // If a workflow's jump enters a loop again, the loop counts its iterations from the start again. Then only the
        // last iteration with a number is selected.
        if !self.seen.insert((row.path.clone(), row.iteration)) {
            return false;
        }
        *self.of_loop.entry(path.names().to_vec()).or_default() += 1;
        true
    }
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastStatus {
    pub iteration: u64,
    pub status: Status,
    /// Whether an action of the iteration failed.
    pub has_failure: bool,
}

/// Rows of loops, by path.
#[derive(Default)]
pub struct LoopRows(BTreeMap<LoopPath, LoopState>);

impl LoopRows {
    /// Adds rows. A later row of a loop replaces an earlier one.
    pub fn put(&mut self, rows: Vec<LoopState>) {
        let rows = rows.into_iter();
        self.0
            .extend(rows.map(|row| (LoopPath::new(&row.path), row)));
    }

    /// Returns the rows of all loops that still run, and for each loop the last `keep` rows that ended.
    pub fn retained(self, keep: usize) -> Vec<LoopState> {
        let mut ended: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut rows: Vec<LoopState> = Vec::with_capacity(self.0.len());
        for (path, row) in self.0.into_iter().rev() {
            if row.ended.is_some() {
                let count = ended.entry(path.names().to_vec()).or_default();
                *count += 1;
                if *count > keep {
                    continue;
                }
            }
            rows.push(row);
        }
        rows.reverse();
        rows
    }
}

impl<K: Kv> RowReader<K> {
    /// Reads the retained rows: what remains stored of commits whose records were removed.
    pub(super) fn retained_rows(
        &self,
        run: &str,
        bounds: &Bounds,
    ) -> Result<RetainedRows, StoreError> {
        if bounds.retained_bytes == 0 {
            return Ok(RetainedRows::default());
        }
        let wrong = || {
            corrupt(&format!(
                "the retained rows of run {run} are not those written"
            ))
        };
        let key = |key: &mut Vec<u8>| keys::of_run(key, Family::Retained, run);
        self.read_with_crc(key, bounds.retained_crc, RetainedRows::decode)?
            .ok_or_else(wrong)
    }

    /// Returns the row that every loop had after commit `last`, ordered by path. If `last` is `None`, returns the
    /// current rows.
    pub(super) fn loop_rows(
        &self,
        run: &str,
        last: Option<u64>,
    ) -> Result<Vec<LoopState>, StoreError> {
        let header = self.known(run)?;
        let mut rows = LoopRows::default();
        rows.put(self.retained_rows(run, &header.bounds)?.loops);
        let revisions = header.revisions_to(last)?;
        self.walk(run, revisions, Order::OldestFirst, loops, |_, loops| {
            rows.put(loops);
            ControlFlow::Continue(())
        })?;
        Ok(rows.retained(self.retention.ended_loops))
    }

    /// Returns the last `limit` iterations up to commit `last`, the oldest first. If `last` is `None`, reads up to the
    /// newest commit.
    pub(super) fn iteration_rows(
        &self,
        run: &str,
        path: Option<&str>,
        limit: usize,
        last: Option<u64>,
    ) -> Result<Vec<IterationRow>, StoreError> {
        let header = self.known(run)?;
        let mut newest = NewestRows::new(self.retention.iterations);
        let mut found = Vec::new();
        let mut take = |rows: Vec<IterationRow>| {
            for row in rows.into_iter().rev() {
                if found.len() >= limit {
                    return ControlFlow::Break(());
                }
                if path.is_none_or(|path| row.path == path) && newest.select(&row) {
                    found.push(row);
                }
            }
            ControlFlow::Continue(())
        };
        let revisions = header.revisions_to(last)?;
        let mut full = ControlFlow::Continue(());
        self.walk(
            run,
            revisions,
            Order::NewestFirst,
            CommitReport::decode,
            |_, report| {
                full = take(report.iterations);
                full
            },
        )?;
        if full.is_continue() {
            let _ = take(self.retained_rows(run, &header.bounds)?.iterations);
        }
        found.reverse();
        Ok(found)
    }

    /// Returns how the iterations with the numbers `wanted` of a loop ended, the newest first. Reads only the last
    /// `commits` commits of the run.
    pub(super) fn statuses_back(
        &self,
        run: &str,
        path: &str,
        wanted: Range<u64>,
        commits: u64,
    ) -> Result<Vec<LastStatus>, StoreError> {
        let header = self.known(run)?;
        let last = header.header.revision;
        let first = last.saturating_sub(commits).saturating_add(1);
        let revisions = (first.max(header.bounds.first), last);
        let mut found: Vec<LastStatus> = Vec::new();
        let mut earliest_start = Timestamp(i64::MAX);
        self.walk(
            run,
            revisions,
            Order::NewestFirst,
            CommitReport::decode,
            |_, report| {
                let own = report
                    .iterations
                    .iter()
                    .rev()
                    .filter(|row| row.path == path);
                for row in own.filter(|row| wanted.contains(&row.iteration)) {
                    earliest_start = earliest_start.min(row.started_at);
                    found.push(LastStatus {
                        iteration: row.iteration,
                        status: row.status,
                        has_failure: false,
                    });
                }
                for fact in reported_facts(&report.history).filter(|fact| fact.error.is_some()) {
                    let own = |one: &&mut LastStatus| {
                        fact.path == path && fact.iteration == one.iteration
                    };
                    if let Some(failed) = found.iter_mut().find(own) {
                        failed.has_failure = true;
                    }
                }
                let found_all = found.len() as u64 >= wanted.end.saturating_sub(wanted.start);
                match found_all && report.history.iter().any(|event| event.at < earliest_start) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
        Ok(found)
    }

    /// Returns at most `limit` events, in order, with their sequence numbers. The first one is the event after sequence
    /// number `after`.
    pub(super) fn events(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError> {
        let header = self.known(run)?;
        let (bounds, last) = (header.bounds, header.header.revision);
        let after = after.max(bounds.last_removed_event);
        let mut found = Vec::new();
        if after >= bounds.events || limit == 0 {
            return Ok(found);
        }
        // Find the first commit with an event after `after`.
        let (mut low, mut high) = (bounds.first, last);
        while low < high {
            let middle = low + (high - low) / 2;
            let row = self.row_with(run, middle)?;
            let row = row.ok_or_else(|| missing_changes(run, middle))?;
            if row.decode(last_event)? > after {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let mut seen = None;
        self.walk(
            run,
            (low, last),
            Order::OldestFirst,
            CommitReport::decode,
            |_, report| {
                let before = report.events_before();
                if seen.is_some_and(|seen| seen != before) || seen.is_none() && before > after {
                    return ControlFlow::Break(());
                }
                seen = Some(report.last_event);
                let numbers = before.saturating_add(1)..;
                let events = numbers.zip(report.history);
                found.extend(events.filter(|(number, _)| *number > after));
                match found.len() >= limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
        let seen = seen.unwrap_or(after);
        if found.len() < limit && seen != bounds.events {
            let missing = seen.saturating_add(1);
            return Err(corrupt(&format!("event {missing} of run {run} is missing")));
        }
        found.truncate(limit);
        Ok(found)
    }
}
