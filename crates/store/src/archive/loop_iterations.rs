//! The iterations of one loop, for readers. A million iterations need a few megabytes of memory, because their cells (a
//! few encoded bytes for each iteration) are decoded only while they are read.

use super::cells::Cells;
use super::gather::EndedIteration;
use crate::codec::BadRecord;
use windlass_machine::LoopState;

/// Maximum number of iterations that are decoded at a time.
const BLOCK: usize = 4_096;

/// The stored iterations of a loop, or the stored items of a foreach.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopIterations {
    /// The loop's current or final row; `None` for a foreach.
    pub state: Option<LoopState>,
    path: String,
    /// Blocks in the order of the iterations. No iteration is in two blocks.
    parts: Vec<Block>,
}

/// Consecutive iterations.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    /// Encoded cells, as they are stored.
    Packed(PackedCells),
    Rows(Vec<EndedIteration>),
}

/// A row of cells. It may also have cells of other loops, which a reader of this loop skips.
#[derive(Clone, Debug, PartialEq)]
struct PackedCells {
    bytes: Vec<u8>,
    /// The lowest and the highest iteration in the cells.
    range: (u64, u64),
}

impl PackedCells {
    fn each(&self, path: &str, take: impl FnMut(EndedIteration)) -> Result<(), BadRecord> {
        Cells::decode(&self.bytes)?.of(path, take)
    }
}

impl Block {
    fn range(&self) -> Option<(u64, u64)> {
        match self {
            Self::Packed(cells) => Some(cells.range),
            Self::Rows(rows) => Some((rows.first()?.iteration, rows.last()?.iteration)),
        }
    }
}

impl LoopIterations {
    /// Creates the list from three sources, each in the order in which the iterations ended. `before` has retained rows
    /// of iterations whose records were removed. `cells` has the archived cells of all iterations whose records were
    /// removed. `recent` has iterations from stored records.
    pub(super) fn new(
        path: &str,
        state: Option<LoopState>,
        before: Vec<EndedIteration>,
        cells: Vec<Vec<u8>>,
        recent: Vec<EndedIteration>,
    ) -> Self {
        let mut of = Self {
            state,
            path: path.to_owned(),
            parts: Vec::new(),
        };
        let mut packed = Vec::with_capacity(cells.len());
        let mut last = None;
        let mut ascending = true;
        for bytes in cells {
            let mut cells = PackedCells {
                bytes,
                range: (u64::MAX, 0),
            };
            let mut range = None;
            // The caller has decoded the cells before, so decoding returns no error here.
            let _ = cells.each(path, |one| {
                if of.is_of_another_entry(&one) {
                    return;
                }
                ascending &= last.is_none_or(|last| last < one.iteration);
                last = Some(one.iteration);
                let (first, _) = range.unwrap_or((one.iteration, one.iteration));
                range = Some((first, one.iteration));
            });
            cells.range = range.unwrap_or(cells.range);
            packed.extend(range.map(|_| cells));
        }
        let recent = of.sorted(recent);
        let mut before = of.sorted(before);
        // If an iteration has both a cell and a retained row, the cell is used: only the cell has the attempts and the
        // reason of a failure.
        let is_packed = |one: &EndedIteration| {
            let mut ranges = packed.iter().map(|cells| cells.range);
            ranges.any(|(first, last)| (first..=last).contains(&one.iteration))
        };
        before.retain(|one| !is_packed(one));
        let first = packed.first().map(|cells| cells.range.0);
        let at = before.partition_point(|one| first.is_none_or(|first| one.iteration < first));
        let after = before.split_off(at);
        of.parts.push(Block::Rows(before));
        of.parts.extend(packed.into_iter().map(Block::Packed));
        of.parts.extend([Block::Rows(after), Block::Rows(recent)]);
        of.parts.retain(|part| part.range().is_some());
        let ranges: Vec<(u64, u64)> = of.parts.iter().filter_map(Block::range).collect();
        ascending &= ranges
            .windows(2)
            .all(|two| matches!(two, [one, next] if one.1 < next.0));
        if !ascending {
            // Items of a foreach that run concurrently end in any order, so all iterations are sorted again.
            let parts = std::mem::take(&mut of.parts);
            let all = parts.iter().flat_map(|part| of.read(part));
            let all = all.collect();
            of.parts = vec![Block::Rows(of.sorted(all))];
        }
        of
    }

    /// Returns true if the iteration belongs to an earlier entry of the loop. In a retry, a loop is entered again with
    /// the same path.
    fn is_of_another_entry(&self, one: &EndedIteration) -> bool {
        let entered = self.state.as_ref().map(|state| state.started_at);
        entered.is_some_and(|entered| one.started_at < entered)
    }

    /// Sorts iterations by number. If several have the same number, only the last one remains.
    fn sorted(&self, mut all: Vec<EndedIteration>) -> Vec<EndedIteration> {
        all.retain(|one| !self.is_of_another_entry(one));
        all.reverse();
        all.sort_by_key(|one| one.iteration);
        all.dedup_by_key(|one| one.iteration);
        all
    }

    fn read(&self, part: &Block) -> Vec<EndedIteration> {
        match part {
            Block::Rows(rows) => rows.clone(),
            Block::Packed(cells) => {
                let mut read = Vec::with_capacity(BLOCK);
                let _ = cells.each(&self.path, |one| {
                    if !self.is_of_another_entry(&one) {
                        read.push(one);
                    }
                });
                read
            }
        }
    }

    /// Returns the number of the highest iteration.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.parts
            .last()
            .and_then(Block::range)
            .map(|range| range.1)
    }

    /// Returns the iteration with this number.
    #[must_use]
    pub fn one(&self, iteration: u64) -> Option<EndedIteration> {
        let mut found = self.blocks(iteration, iteration.saturating_add(1), false);
        found.next()?.pop()
    }

    /// Returns the iterations with numbers from `from` to before `to`, in blocks of at most a few thousand. Each block
    /// is sorted by number. If `newest_first` is true, the last block is returned first.
    pub fn blocks(
        &self,
        from: u64,
        to: u64,
        newest_first: bool,
    ) -> impl Iterator<Item = Vec<EndedIteration>> + '_ {
        let within = move |part: &&Block| {
            let range = part.range();
            range.is_some_and(|(first, last)| first < to && from <= last)
        };
        let mut parts: Vec<&Block> = self.parts.iter().filter(within).collect();
        if newest_first {
            parts.reverse();
        }
        let blocks = parts.into_iter().flat_map(move |part| {
            let mut block = self.read(part);
            block.retain(|one| (from..to).contains(&one.iteration));
            let mut blocks: Vec<Vec<EndedIteration>> =
                block.chunks(BLOCK).map(<[_]>::to_vec).collect();
            if newest_first {
                blocks.reverse();
            }
            blocks
        });
        blocks.filter(|block| !block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::IterationFacts;
    use super::super::gather::RowLocation;
    use super::*;
    use std::sync::Arc;
    use windlass_expression::Value;
    use windlass_machine::IterationRow;
    use windlass_model::model::Status;
    use windlass_value::time::Timestamp;

    const ROW: u64 = 4_096;

    fn row(iteration: u64) -> IterationRow {
        let started_at = i64::try_from(iteration).unwrap() * 1_000;
        let failed = iteration.is_multiple_of(500);
        IterationRow {
            path: String::from("poll"),
            iteration,
            condition: Some(false),
            status: if failed {
                Status::Failed
            } else {
                Status::Succeeded
            },
            result: Value::Null,
            started_at: Timestamp(started_at),
            ended_at: Timestamp(started_at + 130 + started_at % 17),
        }
    }

    fn cells(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let mut cells = Cells::default();
        for number in numbers {
            let error = number
                .is_multiple_of(500)
                .then(|| String::from("no answer"));
            cells.push(&row(number), &IterationFacts { attempts: 1, error });
        }
        let mut out = Vec::new();
        cells.encode(&mut out).unwrap();
        out
    }

    fn ended(number: u64) -> EndedIteration {
        let row = row(number);
        EndedIteration {
            iteration: number,
            status: row.status,
            condition: row.condition,
            started_at: row.started_at,
            ended_at: row.ended_at,
            attempts: 1,
            error: None,
            row: RowLocation::Commit(number),
        }
    }

    #[test]
    fn a_million_iterations_take_little_memory() {
        let rows = (0..1_000_000 / ROW).map(|at| cells(at * ROW..(at + 1) * ROW));
        let rows: Vec<Vec<u8>> = rows.collect();
        let bytes: usize = rows.iter().map(Vec::len).sum();
        let last = 1_000_000 / ROW * ROW;
        let recent = (last..last + 500).map(ended).collect();
        #[allow(clippy::disallowed_methods)] // How long it took is only shown.
        let begun = std::time::Instant::now();
        let of = LoopIterations::new("poll", None, Vec::new(), rows, recent);
        let (mut next, mut failed) = (0, 0);
        for block in of.blocks(0, u64::MAX, false) {
            assert!(block.len() <= BLOCK);
            for one in block {
                assert_eq!(one.iteration, next);
                next += 1;
                failed += u64::from(one.status == Status::Failed);
            }
        }
        println!("{next} iterations, {bytes} bytes, {:?}", begun.elapsed());
        assert_eq!((next, of.last()), (last + 500, Some(last + 499)));
        assert_eq!(failed, next.div_ceil(500));
        // The encoded cells need less than 5 MiB. In addition, a reader needs the memory of one decoded block.
        assert!(bytes < 5 << 20, "{bytes}");
        assert_eq!(
            of.one(777_777).map(|one| one.started_at),
            Some(row(777_777).started_at)
        );
        assert_eq!(of.one(last + 500), None);
        let newest = of.blocks(0, 600_000, true).flatten().next().unwrap();
        assert_eq!(newest.iteration, 599_999 / ROW * ROW);
    }

    #[test]
    fn items_that_end_in_any_order_are_sorted_and_what_is_told_last_counts() {
        let mut early = cells(10..20);
        let later = cells(0..5);
        let mut recent: Vec<EndedIteration> = [30, 7, 12].map(ended).to_vec();
        recent[2].attempts = 3;
        let all = LoopIterations::new("poll", None, Vec::new(), vec![early.clone(), later], recent);
        let numbers: Vec<u64> = all
            .blocks(0, u64::MAX, false)
            .flatten()
            .map(|one| one.iteration)
            .collect();
        let expected: Vec<u64> = (0..5).chain([7]).chain(10..20).chain([30]).collect();
        assert_eq!(numbers, expected);
        assert_eq!(all.one(12).map(|one| one.attempts), Some(3));
        // Cells that cannot be read are left out here, although the caller usually refuses them.
        early.truncate(3);
        let before = vec![ended(2), ended(40)];
        let some = LoopIterations::new("poll", None, before, vec![early, cells(5..8)], Vec::new());
        let numbers: Vec<u64> = some
            .blocks(0, u64::MAX, false)
            .flatten()
            .map(|one| one.iteration)
            .collect();
        assert_eq!(numbers, [2, 5, 6, 7, 40]);
        let error: Option<Arc<str>> = some.one(5).and_then(|one| one.error);
        assert_eq!(error, None);
    }
}
