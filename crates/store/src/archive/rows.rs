//! The rows of the archive. A row of the archive is a key of the store whose value has many cells (a few bytes for each
//! iteration) or several whole iteration rows. When a row is full, it is never written again. [`ArchiveRows`] lists all
//! archive rows of a run with their checksums.

use super::cells::Cells;
use super::facts::{IterationFacts, reported_facts};
use crate::StoreError;
use crate::codec::{self, BadRecord};
use crate::commit::Entry;
use crate::compress;
use crate::header::Bounds;
use crate::journal::CommitReport;
use crate::keys::{self, Family, LoopPath};
use crate::kv::{Kv, prefixed};
use crate::rows::{RowReader, corrupt};
use bincode::{Decode, Encode};
use std::collections::{BTreeMap, HashMap};
use windlass_machine::IterationRow;

/// Maximum number of iterations in one row of cells.
const MAX_CELLS: u64 = 4_096;
/// Maximum size of a row of cells in bytes.
const MAX_CELLS_BYTES: usize = 16 << 10;

/// Number of a loop's first iteration rows that are stored whole.
const FIRST_ROWS: u64 = 100;
/// Maximum size of all of these rows in bytes.
const FIRST_ROWS_BYTES: u64 = 4 << 20;

/// Number of iteration rows that are stored whole for a loop's first failures, and the same number for its last
/// failures.
const FAILED_ROWS: u64 = 1_000;
/// Maximum size in bytes of the rows of the first failures, and also of those of the last failures.
const FAILED_ROWS_BYTES: u64 = 16 << 20;

/// Maximum number of whole iteration rows in one row of the archive. They are stored and removed together.
const MAX_ROWS_TOGETHER: u64 = 250;

/// Approximate maximum size of the result in a whole iteration row, in bytes.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Maximum number of unfinished iterations whose reported facts are stored.
const MAX_UNFINISHED: usize = 1_000;

/// The list of a run's archive rows.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct ArchiveRows {
    /// The last number that was assigned to an archive row.
    last_number: u64,
    rows: Vec<ArchiveRow>,
    /// The facts reported about iterations that have not ended, by loop path and iteration.
    begun: BTreeMap<(String, u64), IterationFacts>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct ArchiveRow {
    number: u64,
    crc: u32,
    bytes: u64,
    kind: Kind,
    /// The names in the path of the row's loop, without iterations.
    names: Vec<u8>,
    /// The iterations of the enclosing loops: for the first path in the row, and for the last one.
    outer: (Vec<u64>, Vec<u64>),
    /// The lowest and the highest iteration in the row.
    range: (u64, u64),
    count: u64,
}

/// The content of an archive row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
enum Kind {
    Cells,
    /// The first iteration rows of a loop, whole.
    First,
    /// Iteration rows of failed iterations, whole.
    Failed,
}

impl ArchiveRows {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.begun.is_empty()
    }

    /// Returns the facts reported about the unfinished iterations of a loop.
    pub(super) fn facts_of_unfinished(&self, path: &str) -> HashMap<u64, IterationFacts> {
        let own = self.begun.iter().filter(|((of, _), _)| of == path);
        own.map(|((_, iteration), facts)| (*iteration, facts.clone()))
            .collect()
    }

    pub fn has(&self, number: Option<u64>) -> bool {
        self.rows
            .iter()
            .any(|archive_row| Some(archive_row.number) == number)
    }

    fn of(&self, path: &LoopPath) -> impl Iterator<Item = &ArchiveRow> {
        self.rows.iter().filter(|archive_row| {
            let (first, last) = (
                archive_row.outer.0.as_slice(),
                archive_row.outer.1.as_slice(),
            );
            archive_row.names == path.names() && (first..=last).contains(&path.outer())
        })
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

/// The lowest and the highest iteration over several archive rows.
#[derive(Default)]
struct Span {
    outer: Option<(Vec<u64>, Vec<u64>)>,
    range: Option<(u64, u64)>,
    count: u64,
}

impl Span {
    fn add(&mut self, row: &IterationRow) {
        let outer = LoopPath::new(&row.path).outer().to_vec();
        let around = self.outer.take();
        let (first, last) = around.unwrap_or_else(|| (outer.clone(), outer.clone()));
        self.outer = Some((first.min(outer.clone()), last.max(outer)));
        let (low, high) = self.range.unwrap_or((row.iteration, row.iteration));
        self.range = Some((low.min(row.iteration), high.max(row.iteration)));
        self.count += 1;
    }
}

/// An ended iteration, and the facts reported about it.
type EndedRow<'a> = (&'a IterationRow, IterationFacts);

impl<K: Kv> RowReader<K> {
    /// Archives the iterations that these commits ended.
    pub(crate) fn archive_iterations(
        &self,
        entry: &mut Entry<'_>,
        mut archive: ArchiveRows,
        reports: &[CommitReport],
    ) -> Result<ArchiveRows, StoreError> {
        let mut groups: BTreeMap<Vec<u8>, Vec<EndedRow<'_>>> = BTreeMap::new();
        for report in reports {
            for fact in reported_facts(&report.history) {
                let key = (fact.path.to_owned(), fact.iteration);
                archive.begun.entry(key).or_default().add(&fact);
            }
            for row in &report.iterations {
                let facts = archive.begun.remove(&(row.path.clone(), row.iteration));
                let names = LoopPath::new(&row.path).names().to_vec();
                let group = groups.entry(names).or_default();
                group.push((row, facts.unwrap_or_default()));
            }
        }
        for (names, mut group) in groups {
            self.archive_rows(entry, &mut archive, &names, &group)?;
            // Sort by loop path. The sort is stable, so iterations of a loop stay in the order in which they ended.
            group.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
            self.archive_cells(entry, &mut archive, &names, &group)?;
        }
        while archive.begun.len() > MAX_UNFINISHED {
            archive.begun.pop_last();
        }
        Ok(archive)
    }

    fn archive_cells(
        &self,
        entry: &mut Entry<'_>,
        archive: &mut ArchiveRows,
        names: &[u8],
        group: &[EndedRow<'_>],
    ) -> Result<(), StoreError> {
        let own = |archive_row: &ArchiveRow| {
            archive_row.kind == Kind::Cells && archive_row.names == names
        };
        let open = archive.rows.iter().rposition(own);
        let open = open.filter(|at| {
            let archive_row = archive.rows.get(*at);
            archive_row.is_some_and(|archive_row| {
                archive_row.count < MAX_CELLS && archive_row.bytes < MAX_CELLS_BYTES as u64 / 4
            })
        });
        let (mut cells, mut span, mut number) = (Cells::default(), Span::default(), None);
        if let Some(at) = open {
            let archive_row = archive.rows.remove(at);
            cells = self.read_archive_row(entry.run, &archive_row, Cells::decode)?;
            span = Span {
                outer: Some(archive_row.outer),
                range: Some(archive_row.range),
                count: archive_row.count,
            };
            number = Some(archive_row.number);
            self.remove_archive_row(entry, archive_row.number)?;
        }
        let mut put = |cells: Cells, span| {
            let number = number.take().unwrap_or_else(|| archive.number());
            let put = |out: &mut Vec<u8>| cells.encode(out);
            put_archive_row(entry, archive, (number, Kind::Cells, names), span, put)
        };
        for (row, facts) in group {
            cells.push(row, facts);
            span.add(row);
            let full = span.count >= MAX_CELLS
                || (span.count.is_multiple_of(64) && cells.bytes() >= MAX_CELLS_BYTES);
            if full {
                put(std::mem::take(&mut cells), std::mem::take(&mut span))?;
            }
        }
        match span.count {
            0 => Ok(()),
            _ => put(cells, span),
        }
    }

    /// Stores whole iteration rows: the first ones of a loop, and those of failed iterations.
    fn archive_rows(
        &self,
        entry: &mut Entry<'_>,
        archive: &mut ArchiveRows,
        names: &[u8],
        group: &[EndedRow<'_>],
    ) -> Result<(), StoreError> {
        let first = |archive_row: &&ArchiveRow| {
            archive_row.kind == Kind::First && archive_row.names == names
        };
        let first = archive.rows.iter().filter(first);
        let (count, bytes) = first.fold((0, 0), |(count, bytes), archive_row| {
            (count + archive_row.count, bytes + archive_row.bytes)
        });
        let left = if bytes < FIRST_ROWS_BYTES {
            FIRST_ROWS.saturating_sub(count)
        } else {
            0
        };
        let left = usize::try_from(left).unwrap_or(0).min(group.len());
        let (first, rest) = group.split_at_checked(left).unwrap_or((group, &[]));
        self.write_rows(entry, archive, (Kind::First, names), first.iter())?;
        let failed = rest.iter().filter(|(row, _)| row.status.is_failure());
        self.write_rows(entry, archive, (Kind::Failed, names), failed)?;
        self.drop_failed(entry, archive, names)
    }

    fn write_rows<'r>(
        &self,
        entry: &mut Entry<'_>,
        archive: &mut ArchiveRows,
        (kind, names): (Kind, &[u8]),
        rows: impl Iterator<Item = &'r EndedRow<'r>>,
    ) -> Result<(), StoreError> {
        let rows = rows.map(|(row, _)| row);
        let mut rows = rows
            .filter(|row| row.result.fits_in_bytes(MAX_RESULT_BYTES))
            .peekable();
        while rows.peek().is_some() {
            let (mut body, mut span) = (Vec::new(), Span::default());
            while body.len() < MAX_RESULT_BYTES
                && span.count < MAX_ROWS_TOGETHER
                && let Some(row) = rows.next()
            {
                codec::encode(&mut body, *row).map_err(|error| corrupt(&error.to_string()))?;
                span.add(row);
            }
            let number = archive.number();
            let count = span.count;
            put_archive_row(entry, archive, (number, kind, names), span, |out| {
                let mut whole = Vec::with_capacity(body.len() + 9);
                codec::encode(&mut whole, &count)?;
                whole.extend_from_slice(&body);
                compress::write(out, &whole)
            })?;
        }
        Ok(())
    }

    /// Removes archive rows with failed iterations that are neither among the first nor among the last failures.
    fn drop_failed(
        &self,
        entry: &mut Entry<'_>,
        archive: &mut ArchiveRows,
        names: &[u8],
    ) -> Result<(), StoreError> {
        let own = |archive_row: &&ArchiveRow| {
            archive_row.kind == Kind::Failed && archive_row.names == names
        };
        let failed: Vec<(u64, u64, u64)> = { archive.rows.iter().filter(own) }
            .map(|archive_row| (archive_row.number, archive_row.count, archive_row.bytes))
            .collect();
        // An archive row is removed only if the rows before it have enough failures, and the rows after it as well.
        let enough = |part: &[(u64, u64, u64)]| {
            let (count, bytes) = part.iter().fold((0, 0), |(count, bytes), archive_row| {
                (count + archive_row.1, bytes + archive_row.2)
            });
            count >= FAILED_ROWS || bytes >= FAILED_ROWS_BYTES
        };
        for (place, (number, ..)) in failed.iter().enumerate() {
            let (before, rest) = failed.split_at(place);
            if enough(before) && enough(rest.get(1..).unwrap_or_default()) {
                self.remove_archive_row(entry, *number)?;
                archive
                    .rows
                    .retain(|archive_row| archive_row.number != *number);
            }
        }
        Ok(())
    }

    fn remove_archive_row(&self, entry: &mut Entry<'_>, number: u64) -> Result<(), StoreError> {
        let mut key = Vec::new();
        keys::numbered_row(&mut key, Family::Iterations, entry.run, number);
        self.remove_under(entry.batch, &key)
    }

    // ── reading ─────────────────────────────────────────────────────────────────────────────────

    /// Returns the archive rows with cells of a loop, still encoded, in the order in which the iterations ended. A
    /// damaged row is treated as missing: an integrity check reports it.
    pub(super) fn archived_cells(
        &self,
        run: &str,
        archive: &ArchiveRows,
        path: &str,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let of = LoopPath::new(path);
        let mut found = Vec::new();
        for archive_row in archive
            .of(&of)
            .filter(|archive_row| archive_row.kind == Kind::Cells)
        {
            let read = |bytes: &[u8]| {
                Cells::decode(bytes)?.check()?;
                Ok(bytes.to_vec())
            };
            found.extend(none_if_damaged(self.read_archive_row(
                run,
                archive_row,
                read,
            ))?);
        }
        Ok(found)
    }

    /// Returns the stored whole iteration rows of a loop for the iterations `wanted`.
    pub(super) fn archived_rows(
        &self,
        run: &str,
        archive: &ArchiveRows,
        path: &str,
        wanted: &[u64],
    ) -> Result<Vec<IterationRow>, StoreError> {
        let mut found = Vec::new();
        let of = LoopPath::new(path);
        for archive_row in archive.of(&of) {
            let (low, high) = archive_row.range;
            let any = wanted.iter().any(|number| (low..=high).contains(number));
            if archive_row.kind == Kind::Cells || !any {
                continue;
            }
            let rows = none_if_damaged(self.read_archive_row(run, archive_row, whole_rows))?;
            let rows = rows.unwrap_or_default().into_iter();
            found.extend(rows.filter(|row| row.path == path && wanted.contains(&row.iteration)));
        }
        Ok(found)
    }

    /// Reads every archive row of a run.
    pub(crate) fn check_archive(&self, run: &str, bounds: &Bounds) -> Result<(), StoreError> {
        let archive = self.retained_rows(run, bounds)?.archive;
        for archive_row in &archive.rows {
            self.check_archive_row(run, archive_row)?;
        }
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, Family::Iterations, run);
        match self.records(prefixed(&prefix)).count() == archive.rows.len() {
            true => Ok(()),
            false => Err(corrupt(&format!(
                "run {run} has rows of unknown iterations"
            ))),
        }
    }

    /// Removes unreadable archive rows from the list. Returns true if the list changed.
    pub(crate) fn forget_unreadable(&self, run: &str, archive: &mut ArchiveRows) -> bool {
        let before = archive.rows.len();
        archive
            .rows
            .retain(|archive_row| self.check_archive_row(run, archive_row).is_ok());
        archive.rows.len() < before
    }

    fn check_archive_row(&self, run: &str, archive_row: &ArchiveRow) -> Result<(), StoreError> {
        match archive_row.kind {
            Kind::Cells => {
                self.read_archive_row(run, archive_row, |bytes| Cells::decode(bytes)?.check())
            }
            Kind::First | Kind::Failed => self
                .read_archive_row(run, archive_row, whole_rows)
                .map(drop),
        }
    }

    fn read_archive_row<T>(
        &self,
        run: &str,
        archive_row: &ArchiveRow,
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<T, StoreError> {
        let wrong = || {
            let number = archive_row.number;
            corrupt(&format!(
                "iterations {number} of run {run} are not those written"
            ))
        };
        let key = |key: &mut Vec<u8>| {
            keys::numbered_row(key, Family::Iterations, run, archive_row.number)
        };
        self.read_with_crc(key, archive_row.crc, decode)?
            .ok_or_else(wrong)
    }
}

/// Returns `None` if the stored bytes are damaged.
fn none_if_damaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(StoreError::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn put_archive_row(
    entry: &mut Entry<'_>,
    archive: &mut ArchiveRows,
    (number, kind, names): (u64, Kind, &[u8]),
    span: Span,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), bincode::error::EncodeError>,
) -> Result<(), StoreError> {
    let run = entry.run;
    let key = |key: &mut Vec<u8>| keys::numbered_row(key, Family::Iterations, run, number);
    let put = entry.put(key, value)?;
    archive.rows.push(ArchiveRow {
        number,
        crc: put.crc,
        bytes: put.bytes,
        kind,
        names: names.to_vec(),
        outer: span.outer.unwrap_or_default(),
        range: span.range.unwrap_or_default(),
        count: span.count,
    });
    Ok(())
}

/// Decodes the whole iteration rows in one archive row.
fn whole_rows(bytes: &[u8]) -> Result<Vec<IterationRow>, BadRecord> {
    codec::decode_all(&compress::read(bytes)?)
}

/// Describes an archive row for messages.
pub fn describe_row(bytes: &[u8]) -> Result<String, BadRecord> {
    match whole_rows(bytes) {
        Ok(rows) => Ok(format!("{rows:?}")),
        Err(_) => Cells::decode(bytes).map(|cells| format!("{cells:?}")),
    }
}
