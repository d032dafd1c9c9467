//! The rows of the archive. A full row is never written again. The run's retained rows list all archive rows with their
//! checksums.

use super::cells::Cells;
use super::facts::{IterationFacts, is_failure, reported_facts};
use crate::StoreError;
use crate::codec::{self, BadRecord};
use crate::commit::Entry;
use crate::compress;
use crate::header::Bounds;
use crate::journal::Line;
use crate::keys::{self, Family, LoopPath};
use crate::kv::{Kv, prefixed};
use crate::rows::{RowReader, corrupt};
use bincode::{Decode, Encode};
use std::collections::{BTreeMap, HashMap};
use windlass_machine::IterationRow;

/// Maximum number of iterations in one row of cells, and maximum size of the row in bytes.
const MAX_CELLS: u64 = 4_096;
const MAX_CELLS_BYTES: usize = 16 << 10;

/// Number of each loop's first rows that are stored whole, and their maximum size in total in bytes.
const FIRST_ROWS: u64 = 100;
const FIRST_ROWS_BYTES: u64 = 4 << 20;

/// Number of failed rows that are stored of a loop's first ones and again of its last ones; maximum bytes of each part.
const FAILED_ROWS: u64 = 1_000;
const FAILED_ROWS_BYTES: u64 = 16 << 20;

/// Maximum number of whole iteration rows in one row of the store. These are stored and removed together.
const MAX_ROWS_TOGETHER: u64 = 250;

/// Approximate maximum size of an iteration's result in a whole row, in bytes.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Maximum number of unfinished iterations whose reported facts are stored.
const MAX_UNFINISHED: usize = 1_000;

/// The list of a run's archive rows.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Chunks {
    /// The last number that was assigned to a row.
    next: u64,
    chunks: Vec<Chunk>,
    /// The facts reported about iterations that have not ended, by the loop's path and the iteration.
    begun: BTreeMap<(String, u64), IterationFacts>,
}

/// An archive row.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Chunk {
    number: u64,
    crc: u32,
    bytes: u64,
    kind: Kind,
    /// The names that the paths of the row's loop share.
    names: Vec<u8>,
    /// The iterations of the enclosing loops: of the row's first and of its last path.
    outer: (Vec<u64>, Vec<u64>),
    /// The lowest and the highest iteration.
    range: (u64, u64),
    count: u64,
}

/// The content of an archive row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
enum Kind {
    Cells,
    /// The first rows of a loop, whole.
    First,
    /// Rows of failed iterations, whole.
    Failed,
}

impl Chunks {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.begun.is_empty()
    }

    /// Returns the facts reported about the unfinished iterations of a loop.
    pub(super) fn facts_of_unfinished(&self, path: &str) -> HashMap<u64, IterationFacts> {
        let own = self.begun.iter().filter(|((of, _), _)| of == path);
        own.map(|((_, iteration), facts)| (*iteration, facts.clone()))
            .collect()
    }

    pub fn has(&self, number: Option<u64>) -> bool {
        self.chunks.iter().any(|chunk| Some(chunk.number) == number)
    }

    fn of(&self, path: &LoopPath) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|chunk| {
            let (first, last) = (chunk.outer.0.as_slice(), chunk.outer.1.as_slice());
            chunk.names == path.names() && (first..=last).contains(&path.outer())
        })
    }

    /// Returns the number for a new row.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// The ranges of the iterations in several rows.
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
        mut chunks: Chunks,
        lines: &[Line],
    ) -> Result<Chunks, StoreError> {
        let mut groups: BTreeMap<Vec<u8>, Vec<EndedRow<'_>>> = BTreeMap::new();
        for line in lines {
            for fact in reported_facts(&line.history) {
                let key = (fact.path.to_owned(), fact.iteration);
                chunks.begun.entry(key).or_default().add(&fact);
            }
            for row in &line.iterations {
                let facts = chunks.begun.remove(&(row.path.clone(), row.iteration));
                let names = LoopPath::new(&row.path).names().to_vec();
                let group = groups.entry(names).or_default();
                group.push((row, facts.unwrap_or_default()));
            }
        }
        for (names, mut group) in groups {
            self.archive_rows(entry, &mut chunks, &names, &group)?;
            // Sort by loop path. The sort is stable, so iterations of a loop stay in the order in which they ended.
            group.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
            self.archive_cells(entry, &mut chunks, &names, &group)?;
        }
        while chunks.begun.len() > MAX_UNFINISHED {
            chunks.begun.pop_last();
        }
        Ok(chunks)
    }

    fn archive_cells(
        &self,
        entry: &mut Entry<'_>,
        chunks: &mut Chunks,
        names: &[u8],
        group: &[EndedRow<'_>],
    ) -> Result<(), StoreError> {
        let own = |chunk: &Chunk| chunk.kind == Kind::Cells && chunk.names == names;
        let open = chunks.chunks.iter().rposition(own);
        let open = open.filter(|at| {
            let chunk = chunks.chunks.get(*at);
            chunk.is_some_and(|chunk| {
                chunk.count < MAX_CELLS && chunk.bytes < MAX_CELLS_BYTES as u64 / 4
            })
        });
        let (mut cells, mut span, mut number) = (Cells::default(), Span::default(), None);
        if let Some(at) = open {
            let chunk = chunks.chunks.remove(at);
            cells = self.chunk(entry.run, &chunk, Cells::decode)?;
            span = Span {
                outer: Some(chunk.outer),
                range: Some(chunk.range),
                count: chunk.count,
            };
            number = Some(chunk.number);
            self.remove_chunk(entry, chunk.number)?;
        }
        let mut put = |cells: Cells, span| {
            let number = number.take().unwrap_or_else(|| chunks.number());
            let put = |out: &mut Vec<u8>| cells.encode(out);
            put_chunk(entry, chunks, (number, Kind::Cells, names), span, put)
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

    /// Stores whole rows: the first rows of a loop, and rows of failed iterations.
    fn archive_rows(
        &self,
        entry: &mut Entry<'_>,
        chunks: &mut Chunks,
        names: &[u8],
        group: &[EndedRow<'_>],
    ) -> Result<(), StoreError> {
        let first = |chunk: &&Chunk| chunk.kind == Kind::First && chunk.names == names;
        let first = chunks.chunks.iter().filter(first);
        let (count, bytes) = first.fold((0, 0), |(count, bytes), chunk| {
            (count + chunk.count, bytes + chunk.bytes)
        });
        let left = if bytes < FIRST_ROWS_BYTES {
            FIRST_ROWS.saturating_sub(count)
        } else {
            0
        };
        let left = usize::try_from(left).unwrap_or(0).min(group.len());
        let (first, rest) = group.split_at_checked(left).unwrap_or((group, &[]));
        self.write_rows(entry, chunks, (Kind::First, names), first.iter())?;
        let failed = rest.iter().filter(|(row, _)| is_failure(row.status));
        self.write_rows(entry, chunks, (Kind::Failed, names), failed)?;
        self.drop_failed(entry, chunks, names)
    }

    fn write_rows<'r>(
        &self,
        entry: &mut Entry<'_>,
        chunks: &mut Chunks,
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
            let number = chunks.number();
            let count = span.count;
            put_chunk(entry, chunks, (number, kind, names), span, |out| {
                let mut whole = Vec::with_capacity(body.len() + 9);
                codec::encode(&mut whole, &count)?;
                whole.extend_from_slice(&body);
                compress::write(out, &whole)
            })?;
        }
        Ok(())
    }

    /// Removes rows of failed iterations that are neither among the first nor among the last ones.
    fn drop_failed(
        &self,
        entry: &mut Entry<'_>,
        chunks: &mut Chunks,
        names: &[u8],
    ) -> Result<(), StoreError> {
        let own = |chunk: &&Chunk| chunk.kind == Kind::Failed && chunk.names == names;
        let failed: Vec<(u64, u64, u64)> = { chunks.chunks.iter().filter(own) }
            .map(|chunk| (chunk.number, chunk.count, chunk.bytes))
            .collect();
        // A row is removed if enough rows are before it and enough after it.
        let enough = |part: &[(u64, u64, u64)]| {
            let (count, bytes) = part.iter().fold((0, 0), |(count, bytes), chunk| {
                (count + chunk.1, bytes + chunk.2)
            });
            count >= FAILED_ROWS || bytes >= FAILED_ROWS_BYTES
        };
        for (place, (number, ..)) in failed.iter().enumerate() {
            let (before, rest) = failed.split_at(place);
            if enough(before) && enough(rest.get(1..).unwrap_or_default()) {
                self.remove_chunk(entry, *number)?;
                chunks.chunks.retain(|chunk| chunk.number != *number);
            }
        }
        Ok(())
    }

    fn remove_chunk(&self, entry: &mut Entry<'_>, number: u64) -> Result<(), StoreError> {
        let mut key = Vec::new();
        keys::numbered_row(&mut key, Family::Iterations, entry.run, number);
        self.remove_under(entry.batch, &key)
    }

    // ── reading ─────────────────────────────────────────────────────────────────────────────────

    /// Returns the rows with cells of a loop, as they are stored, in the order in which the iterations ended. Damaged
    /// rows are treated as missing: an integrity check reports them.
    pub(super) fn archived_cells(
        &self,
        run: &str,
        chunks: &Chunks,
        path: &str,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let of = LoopPath::new(path);
        let mut found = Vec::new();
        for chunk in chunks.of(&of).filter(|chunk| chunk.kind == Kind::Cells) {
            let read = |bytes: &[u8]| {
                Cells::decode(bytes)?.check()?;
                Ok(bytes.to_vec())
            };
            found.extend(none_if_damaged(self.chunk(run, chunk, read))?);
        }
        Ok(found)
    }

    /// Returns the stored whole rows of a loop for the iterations `wanted`.
    pub(super) fn archived_rows(
        &self,
        run: &str,
        chunks: &Chunks,
        path: &str,
        wanted: &[u64],
    ) -> Result<Vec<IterationRow>, StoreError> {
        let mut found = Vec::new();
        let of = LoopPath::new(path);
        for chunk in chunks.of(&of) {
            let (low, high) = chunk.range;
            let any = wanted.iter().any(|number| (low..=high).contains(number));
            if chunk.kind == Kind::Cells || !any {
                continue;
            }
            let rows = none_if_damaged(self.chunk(run, chunk, whole_rows))?;
            let rows = rows.unwrap_or_default().into_iter();
            found.extend(rows.filter(|row| row.path == path && wanted.contains(&row.iteration)));
        }
        Ok(found)
    }

    /// Reads every archive row of a run.
    pub(crate) fn check_archive(&self, run: &str, bounds: &Bounds) -> Result<(), StoreError> {
        let chunks = self.retained_rows(run, bounds)?.ended;
        for chunk in &chunks.chunks {
            self.check_chunk(run, chunk)?;
        }
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, Family::Iterations, run);
        match self.records(prefixed(&prefix)).count() == chunks.chunks.len() {
            true => Ok(()),
            false => Err(corrupt(&format!(
                "run {run} has rows of unknown iterations"
            ))),
        }
    }

    /// Removes unreadable rows from the list. Returns whether the list changed.
    pub(crate) fn forget_unreadable(&self, run: &str, chunks: &mut Chunks) -> bool {
        let before = chunks.chunks.len();
        chunks
            .chunks
            .retain(|chunk| self.check_chunk(run, chunk).is_ok());
        chunks.chunks.len() < before
    }

    fn check_chunk(&self, run: &str, chunk: &Chunk) -> Result<(), StoreError> {
        match chunk.kind {
            Kind::Cells => self.chunk(run, chunk, |bytes| Cells::decode(bytes)?.check()),
            Kind::First | Kind::Failed => self.chunk(run, chunk, whole_rows).map(drop),
        }
    }

    fn chunk<T>(
        &self,
        run: &str,
        chunk: &Chunk,
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<T, StoreError> {
        let wrong = || {
            let number = chunk.number;
            corrupt(&format!(
                "iterations {number} of run {run} are not those written"
            ))
        };
        let key =
            |key: &mut Vec<u8>| keys::numbered_row(key, Family::Iterations, run, chunk.number);
        self.read_with_crc(key, chunk.crc, decode)?
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

fn put_chunk(
    entry: &mut Entry<'_>,
    chunks: &mut Chunks,
    (number, kind, names): (u64, Kind, &[u8]),
    span: Span,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), bincode::error::EncodeError>,
) -> Result<(), StoreError> {
    let run = entry.run;
    let key = |key: &mut Vec<u8>| keys::numbered_row(key, Family::Iterations, run, number);
    let put = entry.put(key, value)?;
    chunks.chunks.push(Chunk {
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

/// Decodes the whole iteration rows in one row of the store.
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
