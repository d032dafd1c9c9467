//! A run's journal: one record a commit, with what the commit changed and what it has to tell.
//! The same records are what a run is loaded from, what its history is read from, and where the
//! rows of its loops and iterations lie. A row of the store has the record of one commit, or those of
//! several, packed. This file reads them; `commit` writes them, `pack` packs them, and `compaction`
//! lets the oldest go.

use super::codec::{self, BadRecord};
use super::compress;
use super::header::Bounds;
use super::iteration_archive::Chunks;
use super::iterations::{LastStatus, action_facts};
use super::keys::{self, Family, LoopPath};
use super::kv::{Kv, Range};
use super::pack;
use super::rows::{Record, Rows, corrupt, unknown};
use super::{Commit, RunHeader, StoreError, iteration_of};
use bincode::error::EncodeError;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Bound, ControlFlow};
use windlass_machine::{Change, HistoryEvent, IterationRow, LoopState, RunState, failed_actions};
use windlass_value::time::Timestamp;

/// What one commit has to tell.
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
    /// What it has to tell, then its changes.
    whole: Vec<u8>,
    /// Where the changes begin.
    changes: usize,
}

/// How many bytes say how long the part before the changes is.
const LENGTH: usize = 4;

/// What of a commit is encoded before its turn: other commits do not wait for it.
pub(super) struct EncodedCommit {
    /// Its record, without the number of its events.
    record: Vec<u8>,
    /// How many bytes the body of the record has before it is compressed.
    body_bytes: u64,
    pub snapshot: Option<Vec<u8>>,
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
        })
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.record.len() + self.snapshot.as_ref().map_or(0, Vec::len)
    }

    /// Appends the record; returns how many bytes its body has before it is compressed.
    pub fn write_record(&self, out: &mut Vec<u8>, events: u64) -> Result<u64, EncodeError> {
        codec::encode(out, &events)?;
        out.extend_from_slice(&self.record);
        Ok(self.body_bytes)
    }
}

/// Appends the record of a commit without the number of its events; returns how many bytes its body has.
fn encode(out: &mut Vec<u8>, commit: &Commit) -> Result<u64, EncodeError> {
    let mut told = Vec::new();
    codec::encode(&mut told, &(commit.loops.len() as u64))?;
    for row in &commit.loops {
        if row.last.is_empty() && row.collected.is_null() && row.pages.is_empty() {
            codec::encode(&mut told, row)?;
        } else {
            codec::encode(&mut told, &row.row())?;
        }
    }
    codec::encode_all(&mut told, &commit.iterations)?;
    codec::encode_all(&mut told, &commit.history)?;
    // A snapshot has them too, but not what was before them: reports go back over it.
    let mut changes = Vec::new();
    codec::encode_all(&mut changes, &commit.changes)?;
    write_body(out, &told, &changes)
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

/// The first key behind all records of a run.
fn end_of_journal(run: &str) -> Vec<u8> {
    let mut prefix = Vec::new();
    keys::of_run(&mut prefix, Family::Changes, run);
    keys::after(&prefix)
}

/// The rows of a journal from the one that has the record of a revision, or of the next one that is there.
fn journal_from(run: &str, revision: u64) -> Range {
    let mut from = Vec::new();
    keys::numbered_row(&mut from, Family::Changes, run, revision);
    (Bound::Included(from), Bound::Excluded(end_of_journal(run)))
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
    /// What a commit's record has to tell.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadRecord> {
        let parts = SplitRecord::read(bytes)?;
        let (told, mut at) = (parts.report_bytes(), 0);
        let line = Self {
            events: last_event(bytes)?,
            loops: codec::decode_next(told, &mut at)?,
            iterations: codec::decode_next(told, &mut at)?,
            history: codec::decode_next(told, &mut at)?,
        };
        match told.len().saturating_sub(at) {
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

/// Which way a journal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From its beginning.
    OldestFirst,
    /// From its end.
    NewestFirst,
}

/// How many bytes of a journal are copied at first before they are decoded, and the maximum. Commits wait for the
/// copying, not for the decoding.
const FIRST_SLICE: usize = 16 << 10;
const MAX_SLICE: usize = 1 << 20;

/// What was read of a row.
struct ReadRow<T> {
    /// The revision of its last record.
    end: u64,
    /// Its records that were not read yet, with their revisions.
    records: Vec<(u64, T)>,
}

/// How far a journal was read: each record of some revisions must be there.
struct JournalWalk<'a> {
    run: &'a str,
    first: u64,
    last: u64,
    order: Order,
    /// The revision of the next record.
    expected: u64,
}

impl<'a> JournalWalk<'a> {
    fn new(run: &'a str, (first, last): (u64, u64), order: Order) -> Self {
        let expected = match order {
            Order::OldestFirst => first,
            Order::NewestFirst => last,
        };
        Self {
            run,
            first,
            last,
            order,
            expected,
        }
    }

    fn is_done(&self) -> bool {
        !(self.first..=self.last).contains(&self.expected)
    }

    fn missing(&self) -> StoreError {
        missing_changes(self.run, self.expected)
    }

    /// Reads the next row. None: all of its records were read before.
    fn read_row<T>(
        &mut self,
        row: &Record,
        decode: impl Fn(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<Option<ReadRow<T>>, StoreError> {
        let end = keys::parse(&row.key).and_then(|parsed| parsed.number);
        let end = end.ok_or_else(|| self.missing())?;
        let records = row.decode(|bytes| pack::each(bytes, &decode))?;
        let before = end.checked_sub(records.len() as u64);
        let before = before.ok_or_else(|| self.missing())?;
        if self.order == Order::NewestFirst && self.expected <= before {
            // An older row of what is packed.
            return Ok(None);
        }
        if self.expected <= before || end < self.expected {
            return Err(self.missing());
        }
        let (wanted, next) = match self.order {
            Order::OldestFirst => (self.expected..=self.last, end.saturating_add(1)),
            Order::NewestFirst => (self.first..=self.expected, before),
        };
        self.expected = next;
        let records = (before.saturating_add(1)..).zip(records);
        let records = records.filter(|(revision, _)| wanted.contains(revision));
        Ok(Some(ReadRow {
            end,
            records: records.collect(),
        }))
    }
}

fn missing_changes(run: &str, revision: u64) -> StoreError {
    corrupt(&format!("changes {revision} of run {run} are missing"))
}

/// What the state of a run is made of, copied at one moment.
pub(super) struct CopiedRun {
    pub header: RunHeader,
    snapshot: Option<Record>,
    /// The rows since then.
    tail: Vec<Record>,
}

impl CopiedRun {
    /// The state at the last snapshot, or before the first step, and how large the snapshot is.
    pub fn start(&mut self) -> Result<(RunState, u64), StoreError> {
        let header = &self.header;
        let Some(snapshot) = self.snapshot.take() else {
            return Ok((RunState::new(header.id.clone(), header.program), 0));
        };
        let state = snapshot.decode(codec::decode::<RunState>)?;
        if state.id != header.id || state.program != header.program {
            let run = &header.id;
            return Err(corrupt(&format!(
                "the snapshot of run {run} is another run's"
            )));
        }
        Ok((state, snapshot.value.len() as u64))
    }

    /// The changes of every commit since the snapshot, in order; returns how many bytes those have.
    pub fn tail(&self, mut take: impl FnMut(Vec<Change>)) -> Result<u64, StoreError> {
        let (run, last) = (&self.header.id, self.header.revision);
        let range = (self.header.snapshot.saturating_add(1), last);
        let mut walk = JournalWalk::new(run, range, Order::OldestFirst);
        let mut bytes = 0;
        let has_more = || {
            let what = format!("run {run} has more changes than its header says: {last}");
            corrupt(&what)
        };
        for row in &self.tail {
            if walk.is_done() {
                return Err(has_more());
            }
            let read = walk.read_row(row, changes)?.map(|read| read.records);
            for (_, (size, changes)) in read.unwrap_or_default() {
                bytes += size;
                take(changes);
            }
        }
        // The last row may be packed with later ones.
        match walk.expected.cmp(&last.saturating_add(1)) {
            Ordering::Less => Err(walk.missing()),
            Ordering::Equal => Ok(bytes),
            Ordering::Greater => Err(has_more()),
        }
    }
}

impl<K: Kv> Rows<K> {
    /// Reads the records of these revisions until `read` breaks; every one must be there.
    pub(super) fn walk<T>(
        &self,
        run: &str,
        revisions: (u64, u64),
        order: Order,
        decode: impl Fn(&[u8]) -> Result<T, BadRecord>,
        mut read: impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.walk_rows(run, revisions, order, decode, |_, mut records| {
            if order == Order::NewestFirst {
                records.reverse();
            }
            let mut records = records.into_iter();
            records.try_for_each(|(revision, record)| read(revision, record))
        })
    }

    /// Reads the rows that have the records of these revisions until `read` breaks; every one must be
    /// there. `read` gets the revision of a row's last record, and those of its records that were not read yet.
    pub(super) fn walk_rows<T>(
        &self,
        run: &str,
        revisions: (u64, u64),
        order: Order,
        decode: impl Fn(&[u8]) -> Result<T, BadRecord>,
        mut read: impl FnMut(u64, Vec<(u64, T)>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut walk = JournalWalk::new(run, revisions, order);
        let (mut range, mut size) = (None, FIRST_SLICE);
        while !walk.is_done() {
            let (mut from, mut to) = match range.take() {
                Some(range) => range,
                None => self.journal_range(&walk)?,
            };
            let rows = {
                let _reading = self.reading();
                self.copy_rows((from.clone(), to.clone()), &walk, size)?
            };
            let last = rows.last().ok_or_else(|| walk.missing())?;
            let after = Bound::Excluded(last.key.clone());
            match order {
                Order::OldestFirst => from = after,
                Order::NewestFirst => to = after,
            }
            range = Some((from, to));
            size = (size * 4).min(MAX_SLICE);
            for row in &rows {
                if walk.is_done() {
                    break;
                }
                if let Some(row) = walk.read_row(row, &decode)?
                    && read(row.end, row.records).is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The keys of the rows that have the records of a walk.
    fn journal_range(&self, walk: &JournalWalk<'_>) -> Result<Range, StoreError> {
        let run = walk.run;
        let mut from = Vec::new();
        keys::numbered_row(&mut from, Family::Changes, run, walk.first);
        let to = match walk.order {
            Order::OldestFirst => end_of_journal(run),
            // The last one may be packed with later ones.
            Order::NewestFirst => {
                let _reading = self.reading();
                let row = self
                    .records(journal_from(run, walk.last))
                    .next()
                    .transpose()?;
                keys::after(row.ok_or_else(|| walk.missing())?.0.as_ref())
            }
        };
        Ok((Bound::Included(from), Bound::Excluded(to)))
    }

    /// Copies the next rows of a walk from a range, about `bytes` bytes of them. A row that cannot be read is an error
    /// only if it is the first one: the walk may end before it.
    fn copy_rows(
        &self,
        range: Range,
        walk: &JournalWalk<'_>,
        bytes: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let mut rows = self.records(range);
        let mut next = || match walk.order {
            Order::OldestFirst => rows.next(),
            Order::NewestFirst => rows.next_back(),
        };
        let (mut copied, mut size) = (Vec::new(), 0);
        while size < bytes
            && let Some(row) = next()
        {
            let record = row.and_then(|(key, first)| self.record(key.as_ref(), first.as_ref()));
            let record = match record {
                Ok(record) => record,
                Err(error) if copied.is_empty() => return Err(error),
                Err(_) => break,
            };
            size += record.value.len();
            let number = keys::parse(&record.key).and_then(|parsed| parsed.number);
            copied.push(record);
            if walk.order == Order::OldestFirst && number >= Some(walk.last) {
                break;
            }
        }
        Ok(copied)
    }

    /// The row that has the record of a revision, or else of the next one that is there.
    fn row_with(&self, run: &str, revision: u64) -> Result<Option<Record>, StoreError> {
        let _reading = self.reading();
        let row = self.records(journal_from(run, revision)).next();
        let row = row.transpose()?;
        row.map(|(key, first)| self.record(key.as_ref(), first.as_ref()))
            .transpose()
    }

    /// Copies what the state of a run is made of.
    pub(super) fn copy_run(&self, run: &str) -> Result<CopiedRun, StoreError> {
        let _reading = self.reading();
        let (head, _) = self
            .stored_header_locked(run)?
            .ok_or_else(|| unknown(run))?;
        let header = head.header;
        let snapshot = match header.snapshot {
            0 => None,
            number => {
                let mut key = Vec::new();
                keys::numbered_row(&mut key, Family::Snapshot, run, number);
                let missing = || corrupt(&format!("snapshot {number} of run {run} is missing"));
                Some(self.record_at(&key)?.ok_or_else(missing)?)
            }
        };
        let tail = self.records(journal_from(run, header.snapshot.saturating_add(1)));
        let tail = tail.map(|row| {
            let (key, first) = row?;
            self.record(key.as_ref(), first.as_ref())
        });
        Ok(CopiedRun {
            snapshot,
            tail: tail.collect::<Result<_, StoreError>>()?,
            header,
        })
    }

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

    /// How the iterations of a loop with these numbers ended, as far as the last `commits` tell it; the
    /// newest first.
    pub(super) fn statuses_back(
        &self,
        run: &str,
        path: &str,
        wanted: std::ops::Range<u64>,
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
            for (what, _) in failed_actions(&line.history) {
                let failed = action_facts(what)
                    .and_then(|(inside, iteration, _)| iteration_of(path, inside, iteration));
                let failed = found.iter_mut().find(|one| Some(one.iteration) == failed);
                if let Some(one) = failed {
                    one.has_failure = true;
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
