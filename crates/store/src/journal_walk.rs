//! Reads the rows of a journal. A row here is a key of the store with its value: the record of one commit, or the
//! packed records of several. Commits wait while rows are copied, but not while they are decoded.

use super::RunHeader;
use super::StoreError;
use super::codec::{self, BadRecord};
use super::journal::{CommitReport, changes};
use super::keys::{self, Family};
use super::kv::{Kv, Range};
use super::pack;
use super::rows::{Record, RowReader, corrupt, unknown};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use windlass_machine::{Change, HistoryEvent, RunState};
use windlass_value::time::Timestamp;

/// Returns the first key after all rows of a run's journal.
fn end_of_journal(run: &str) -> Vec<u8> {
    let mut prefix = Vec::new();
    keys::of_run(&mut prefix, Family::Changes, run);
    keys::after(&prefix)
}

/// Returns the range of a journal's rows that begins with the row of a revision's record. If this record is not stored,
/// the range begins with the row of the next stored record.
fn journal_from(run: &str, revision: u64) -> Range {
    let mut from = Vec::new();
    keys::numbered_row(&mut from, Family::Changes, run, revision);
    (Bound::Included(from), Bound::Excluded(end_of_journal(run)))
}

/// The direction in which a journal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the beginning.
    OldestFirst,
    /// From the end.
    NewestFirst,
}

/// Number of bytes of a journal that are copied at once at the beginning. Later copies are larger, up to [`MAX_SLICE`].
/// Commits wait for the copying, but not for the decoding.
const FIRST_SLICE: usize = 16 << 10;
/// Maximum number of bytes of a journal that are copied at once.
const MAX_SLICE: usize = 1 << 20;

/// The decoded records of a row.
struct ReadRow<T> {
    /// The revision of the row's last record.
    end: u64,
    /// The records of the row that the walk has not returned before, with their revisions.
    records: Vec<(u64, T)>,
}

/// The position of a walk over a journal. A walk fails if the record of one of its revisions is not stored.
struct JournalWalk<'a> {
    run: &'a str,
    first: u64,
    last: u64,
    order: Order,
    /// The revision of the next record to read.
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

    /// Reads the next row. Returns `None` if the walk has already returned all records of the row.
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
            // An old row: the walk has already read its records from a later, packed row.
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

pub(super) fn missing_changes(run: &str, revision: u64) -> StoreError {
    corrupt(&format!("changes {revision} of run {run} are missing"))
}

/// A copy of all records from which a run's state is computed, all read at one moment.
pub(super) struct CopiedRun {
    pub header: RunHeader,
    snapshot: Option<Record>,
    /// The rows after the snapshot.
    tail: Vec<Record>,
}

impl CopiedRun {
    /// Returns the state at the last snapshot, or the state before the first step if there is no snapshot. Also returns
    /// the snapshot's size in bytes.
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

    /// Passes the changes of every commit after the snapshot to `take`, in order. Returns the size of all their records
    /// in bytes.
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
        // The last row may also contain records after the run's revision.
        match walk.expected.cmp(&last.saturating_add(1)) {
            Ordering::Less => Err(walk.missing()),
            Ordering::Equal => Ok(bytes),
            Ordering::Greater => Err(has_more()),
        }
    }
}

/// The changes and events of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRecord {
    /// The changes; empty if an earlier version stored a snapshot instead.
    pub changes: Vec<Change>,
    pub history: Vec<HistoryEvent>,
}

impl<K: Kv> RowReader<K> {
    /// Reads the records of these revisions, until `read` returns `Break`. Fails if one of these records is not stored.
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

    /// Reads the rows with the records of these revisions, until `read` returns `Break`. Fails if one of these records
    /// is not stored. `read` gets the revision of a row's last record, and the records of the row that it did not get
    /// before.
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
                let _reading = self.hold_groups();
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

    /// Returns the range of the rows that contain the records of a walk.
    fn journal_range(&self, walk: &JournalWalk<'_>) -> Result<Range, StoreError> {
        let run = walk.run;
        let mut from = Vec::new();
        keys::numbered_row(&mut from, Family::Changes, run, walk.first);
        let to = match walk.order {
            Order::OldestFirst => end_of_journal(run),
            // The last row may also contain records after the walk, so its key may have a revision after the walk.
            Order::NewestFirst => {
                let _reading = self.hold_groups();
                let row = self
                    .records(journal_from(run, walk.last))
                    .next()
                    .transpose()?;
                keys::after(row.ok_or_else(|| walk.missing())?.0.as_ref())
            }
        };
        Ok((Bound::Included(from), Bound::Excluded(to)))
    }

    /// Copies about `bytes` bytes of the walk's next rows in a range. An unreadable row is an error only if it is the
    /// first row of the copy. The walk may end before a later row, and then it never needs that row.
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
            let record = match row.and_then(|row| self.record(&row)) {
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

    /// Copies the row with the record of a revision. If this record is not stored, copies the row with the next stored
    /// record.
    pub(super) fn row_with(&self, run: &str, revision: u64) -> Result<Option<Record>, StoreError> {
        let _reading = self.hold_groups();
        let row = self.records(journal_from(run, revision)).next();
        row.map(|row| self.record(&row?)).transpose()
    }

    /// Copies all records from which the state of a run is computed.
    pub(super) fn copy_run(&self, run: &str) -> Result<CopiedRun, StoreError> {
        let _reading = self.hold_groups();
        let (head, _) = self
            .stored_header_locked(run)?
            .ok_or_else(|| unknown(run))?;
        let header = head.header;
        let snapshot = match header.snapshot {
            0 => None,
            number => {
                let key = |key: &mut Vec<u8>| {
                    keys::numbered_row(key, Family::Snapshot, run, number);
                };
                let missing = || corrupt(&format!("snapshot {number} of run {run} is missing"));
                Some(self.record_at(key)?.ok_or_else(missing)?)
            }
        };
        let tail = self.records(journal_from(run, header.snapshot.saturating_add(1)));
        let tail = tail.map(|row| self.record(&row?));
        Ok(CopiedRun {
            snapshot,
            tail: tail.collect::<Result<_, StoreError>>()?,
            header,
        })
    }

    /// Returns the stored commits up to revision `last` that have an event for which `wanted` returns true, the oldest
    /// first.
    /// Reads backwards from `last`, and stops at the newest commit that has an event before `since`.
    pub(super) fn read_commits(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError> {
        let header = self.known(run)?;
        let newest = header.header.revision;
        let all = (
            header.bounds.first,
            last.map_or(newest, |last| last.min(newest)),
        );
        let mut found = Vec::new();
        let read = |bytes: &[u8]| {
            let report = CommitReport::decode(bytes)?;
            let changes = match report.history.iter().any(wanted) {
                true => Some(changes(bytes)?.1),
                false => None,
            };
            Ok((report.history, changes))
        };
        self.walk(
            run,
            all,
            Order::NewestFirst,
            read,
            |_, (history, changes)| {
                let before = history.iter().any(|event| event.at < since);
                found.extend(changes.map(|changes| CommitRecord { changes, history }));
                match before {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
        found.reverse();
        Ok(found)
    }

    /// Returns the changes of at most `limit` commits up to revision `last`, with their revisions, the newest first.
    /// Stops at the first commit whose record is not stored.
    pub(super) fn read_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError> {
        let header = self.known(run)?;
        let all = (header.bounds.first, last.min(header.header.revision));
        let mut found = Vec::new();
        let read = |bytes: &[u8]| Ok(changes(bytes)?.1);
        self.walk(run, all, Order::NewestFirst, read, |number, changes| {
            found.push((number, changes));
            match found.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(found)
    }
}
