//! A run's journal: one record a commit, with what the commit changed and what it reports.
//! The same records are what a run is loaded from, what its history is read from, and where the
//! rows of its loops and iterations lie. A row of the store has the record of one commit, or those of
//! several, packed. This file decodes them; `journal_walk` reads their rows, `commit` writes them, `pack` packs them,
//! and `compaction` removes the oldest.

use super::archive::{Chunks, reported_facts};
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

/// What one commit reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The sequence number of the last event so far.
    pub events: u64,
    /// The loops that changed.
    pub loops: Vec<LoopState>,
    /// The iterations that ended.
    pub iterations: Vec<IterationRow>,
    /// What the history reports.
    pub history: Vec<HistoryEvent>,
}

/// What is stored of commits that were let go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetainedRows {
    /// The last row of each loop.
    pub loops: Vec<LoopState>,
    /// The last iterations, in the order they ended.
    pub iterations: Vec<IterationRow>,
    /// The rows of all iterations.
    pub ended: Chunks,
}

impl RetainedRows {
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty() && self.iterations.is_empty() && self.ended.is_empty()
    }

    /// Appends it. The list of archived rows is left out when it is empty, as in older records.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        codec::encode_all(out, &self.loops)?;
        codec::encode_all(out, &self.iterations)?;
        match self.ended.is_empty() {
            true => Ok(()),
            false => codec::encode(out, &self.ended),
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let mut at = 0;
        Ok(Self {
            loops: codec::decode_next(bytes, &mut at)?,
            iterations: codec::decode_next(bytes, &mut at)?,
            ended: match bytes.get(at..) {
                None | Some([]) => Chunks::default(),
                Some(rest) => codec::decode(rest)?,
            },
        })
    }
}

/// The parts of a commit's record.
struct SplitRecord {
    /// What it reports, then its changes.
    whole: Vec<u8>,
    /// Where the changes begin.
    changes: usize,
}

/// A commit with more bytes is long. The engine gives those to a thread of their own.
const LONG: usize = 256 << 10;

/// How many bytes say how long the part before the changes is.
const LENGTH: usize = 4;

/// What of a commit is encoded before its turn: other commits do not wait for it.
pub(super) struct EncodedCommit {
    /// Its record, without the number of its events.
    record: Vec<u8>,
    /// How many bytes the body of the record has before it is compressed.
    body_bytes: u64,
    pub snapshot: Option<Vec<u8>>,
    /// What of it is stored.
    pub written: Option<WrittenCommit>,
}

/// The part of a long commit that is stored before its turn.
pub(super) struct WrittenCommit {
    /// Who wrote it: [`Writer::pieces`](super::commit::Writer).
    pub token: u64,
    /// The number of the last event before the commit.
    pub events: u64,
    /// None: it has no further pieces, or they are not all there.
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

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.record.len() + self.snapshot.as_ref().map_or(0, Vec::len)
    }

    /// Whether it is stored in several groups.
    pub fn is_long(&self) -> bool {
        self.bytes() > LONG
    }

    /// How many bytes its body has before it is compressed.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Appends the record.
    pub fn write_record(&self, out: &mut Vec<u8>, events: u64) -> Result<(), EncodeError> {
        codec::encode(out, &events)?;
        out.extend_from_slice(&self.record);
        Ok(())
    }
}

/// Appends the record of a commit without the number of its events; returns how many bytes its body has.
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
    // A snapshot has them too, but not what was before them: reports go back over it.
    let mut changes = Vec::new();
    codec::encode_all(&mut changes, &commit.changes)?;
    write_body(out, &report, &changes)
}

/// Appends the body of a record with these parts; returns how many bytes it has before it is compressed.
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
        // Where there is less than it says, nothing is read.
        let changes = LENGTH + u32::from_le_bytes(*length) as usize;
        Ok(Self { whole, changes })
    }

    fn report_bytes(&self) -> &[u8] {
        self.whole.get(LENGTH..self.changes).unwrap_or_default()
    }

    fn changes(&self) -> &[u8] {
        self.whole.get(self.changes..).unwrap_or_default()
    }
}

/// How many bytes a body has when it is not compressed, and its changes.
pub(super) fn changes(bytes: &[u8]) -> Result<(u64, Vec<Change>), BadRecord> {
    let parts = SplitRecord::read(bytes)?;
    let changes = codec::decode_all(parts.changes())?;
    Ok((parts.whole.len() as u64, changes))
}

/// The loops that a commit changed.
fn loops(bytes: &[u8]) -> Result<Vec<LoopState>, BadRecord> {
    codec::decode_next(SplitRecord::read(bytes)?.report_bytes(), &mut 0)
}

/// The sequence number of the last event up to a commit.
pub(super) fn last_event(bytes: &[u8]) -> Result<u64, BadRecord> {
    codec::decode_first(bytes).map(|(events, _)| events)
}

impl Line {
    /// What a commit's record reports.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let parts = SplitRecord::read(bytes)?;
        let (report, mut at) = (parts.report_bytes(), 0);
        let line = Self {
            events: last_event(bytes)?,
            loops: codec::decode_next(report, &mut at)?,
            iterations: codec::decode_next(report, &mut at)?,
            history: codec::decode_next(report, &mut at)?,
        };
        match report.len().saturating_sub(at) {
            0 => Ok(line),
            more => Err(BadRecord::Trailing(more)),
        }
    }

    /// The sequence number of the last event before this commit.
    pub fn events_before(&self) -> u64 {
        self.events.saturating_sub(self.history.len() as u64)
    }
}

/// Keeps the newest rows: the first ones that it receives, this many of each loop, none twice.
pub struct NewestRows {
    keep: usize,
    seen: HashSet<(String, u64)>,
    of_loop: HashMap<Vec<u8>, usize>,
}

impl NewestRows {
    /// Maximum number of rows of each loop.
    pub fn new(keep: usize) -> Self {
        Self {
            keep,
            seen: HashSet::new(),
            of_loop: HashMap::new(),
        }
    }

    /// Whether this one, older than those before it, is among them.
    pub fn takes(&mut self, row: &IterationRow) -> bool {
        let path = LoopPath::new(&row.path);
        if self
            .of_loop
            .get(path.names())
            .is_some_and(|taken| *taken >= self.keep)
        {
            return false;
        }
        // A loop that a graph enters again ends the same iterations again.
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
    /// Whether an action of it failed.
    pub has_failure: bool,
}

/// Rows of loops by their paths; the newest of those that ended are stored.
#[derive(Default)]
pub struct LoopRows(BTreeMap<LoopPath, LoopState>);

impl LoopRows {
    /// Later rows take the place of earlier ones.
    pub fn put(&mut self, rows: Vec<LoopState>) {
        let rows = rows.into_iter();
        self.0
            .extend(rows.map(|row| (LoopPath::new(&row.path), row)));
    }

    /// All that still run, and of each loop the last `keep` that ended.
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
    /// What is stored of commits that were let go.
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
        self.read_with_crc(key, bounds.retained, RetainedRows::decode)?
            .ok_or_else(wrong)
    }

    /// The row of every loop as of a commit, by default the newest, in the order of their paths.
    pub(super) fn loop_rows(
        &self,
        run: &str,
        last: Option<u64>,
    ) -> Result<Vec<LoopState>, StoreError> {
        let header = self.known(run)?;
        let mut rows = LoopRows::default();
        rows.put(self.retained_rows(run, &header.bounds)?.loops);
        let all = header.revisions_to(last)?;
        self.walk(run, all, Order::OldestFirst, loops, |_, loops| {
            rows.put(loops);
            ControlFlow::Continue(())
        })?;
        Ok(rows.retained(self.retention.ended_loops))
    }

    /// The last iterations as of a commit, by default the newest; the oldest first.
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
                if path.is_none_or(|path| row.path == path) && newest.takes(&row) {
                    found.push(row);
                }
            }
            ControlFlow::Continue(())
        };
        let all = header.revisions_to(last)?;
        let mut full = ControlFlow::Continue(());
        self.walk(run, all, Order::NewestFirst, Line::decode, |_, line| {
            full = take(line.iterations);
            full
        })?;
        if full.is_continue() {
            let _ = take(self.retained_rows(run, &header.bounds)?.iterations);
        }
        found.reverse();
        Ok(found)
    }

    /// How the iterations of a loop with these numbers ended, as far as the last `commits` report it; the
    /// newest first.
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
        let all = (first.max(header.bounds.first), last);
        let mut found: Vec<LastStatus> = Vec::new();
        let mut began = Timestamp(i64::MAX);
        self.walk(run, all, Order::NewestFirst, Line::decode, |_, line| {
            let own = line.iterations.iter().rev().filter(|row| row.path == path);
            for row in own.filter(|row| wanted.contains(&row.iteration)) {
                began = began.min(row.started_at);
                found.push(LastStatus {
                    iteration: row.iteration,
                    status: row.status,
                    has_failure: false,
                });
            }
            for fact in reported_facts(&line.history).filter(|fact| fact.error.is_some()) {
                let own =
                    |one: &&mut LastStatus| fact.path == path && fact.iteration == one.iteration;
                if let Some(failed) = found.iter_mut().find(own) {
                    failed.has_failure = true;
                }
            }
            let all = found.len() as u64 >= wanted.end.saturating_sub(wanted.start);
            match all && line.history.iter().any(|event| event.at < began) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }

    /// Events after `after`, with their numbers.
    pub(super) fn events(
        &self,
        run: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, HistoryEvent)>, StoreError> {
        let header = self.known(run)?;
        let (bounds, last) = (header.bounds, header.header.revision);
        let after = after.max(bounds.trimmed);
        let mut found = Vec::new();
        if after >= bounds.events || limit == 0 {
            return Ok(found);
        }
        // The first commit with an event after it.
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
            Line::decode,
            |_, line| {
                let before = line.events_before();
                if seen.is_some_and(|seen| seen != before) || seen.is_none() && before > after {
                    return ControlFlow::Break(());
                }
                seen = Some(line.events);
                let numbers = before.saturating_add(1)..;
                let events = numbers.zip(line.history);
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
