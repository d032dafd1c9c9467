//! A run's header as it is stored, and as the writer remembers it: the position of its journal, and the
//! bounds by which a reader knows that the run's other rows are those that were written.
//!
//! A database that loses a piece of its log shows older rows, each whole in itself. So every row is
//! checked by another (docs/internals/store-format.md): records of commits by their numbers, retained rows by a
//! checksum in the header, headers and indexes by a checksum in the store's root, and the root by the
//! number of the last acknowledged group, which lies next to the database.

use super::rows::corrupt;
use super::{Placement, RunHeader, StoreError};
use bincode::{Decode, Encode};

/// By what the other rows of a run are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Bounds {
    /// The sequence number of its last event.
    pub events: u64,
    /// Events up to this one were let go.
    pub trimmed: u64,
    /// The revision of the first commit whose record is there.
    pub first: u64,
    /// The checksum of the rows retained of those before it.
    pub retained: u32,
    /// How many bytes those have; 0: there are none.
    pub retained_bytes: u64,
}

/// A header as it is stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredHeader {
    /// What the caller gave.
    pub header: RunHeader,
    /// What the store adds.
    pub bounds: Bounds,
}

impl StoredHeader {
    /// The revisions whose records are there, up to `last` or the newest.
    ///
    /// # Errors
    /// When those up to `last` were pruned.
    pub fn revisions_to(&self, last: Option<u64>) -> Result<(u64, u64), StoreError> {
        let (first, newest) = (self.bounds.first, self.header.revision);
        let last = last.unwrap_or(newest);
        if last < first && last < newest {
            let run = &self.header.id;
            return Err(corrupt(&format!("changes {last} of run {run} are missing")));
        }
        Ok((first, last))
    }
}

/// What lies under the key `g`: by what headers and indexes are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Root {
    /// The number of the last group.
    pub group: u64,
    /// The checksums of all workflows, their state, heads and index rows, added up.
    pub checksum: u64,
}

impl Root {
    /// Counts a row in.
    pub fn add(&mut self, crc: u32) {
        self.checksum = self.checksum.wrapping_add(u64::from(crc));
    }

    /// Counts a row out.
    pub fn drop(&mut self, crc: u32) {
        self.checksum = self.checksum.wrapping_sub(u64::from(crc));
    }
}

/// A header as the writer remembers it.
#[derive(Clone, Debug, Default)]
pub struct KnownHeader {
    /// The last revision; 0 when the run is not stored.
    pub revision: u64,
    /// The revision of the last snapshot.
    pub snapshot: u64,
    /// Which index it is in; none when the run is not stored.
    pub placement: Option<Placement>,
    /// The checksum of its row; none when the run is not stored.
    pub crc: Option<u32>,
    /// By what its other rows are checked.
    pub bounds: Bounds,
    /// The group that moved it last, as far as it is remembered.
    pub group: u64,
    newest: Vec<(Box<str>, u64)>,
}

impl KnownHeader {
    /// Maximum number of loops in a header.
    const MAX_NEWEST: usize = 16;

    /// What is remembered of a stored header whose row has this checksum.
    pub fn of(stored: &StoredHeader, crc: u32) -> Self {
        Self {
            revision: stored.header.revision,
            snapshot: stored.header.snapshot,
            placement: Some(stored.header.placement),
            crc: Some(crc),
            bounds: stored.bounds,
            group: 0,
            newest: Vec::new(),
        }
    }

    /// Remembers that this iteration of a loop has a row.
    pub fn ended(&mut self, path: &str, iteration: u64) {
        if let Some((_, newest)) = self.newest.iter_mut().find(|(known, _)| **known == *path) {
            *newest = iteration;
            return;
        }
        if self.newest.len() >= Self::MAX_NEWEST {
            self.newest.remove(0);
        }
        // Most runs have one loop.
        self.newest.reserve_exact(1);
        self.newest.push((path.into(), iteration));
    }

    /// The last iteration of a loop that has a row, as far as it is remembered.
    pub fn newest(&self, path: &str) -> Option<u64> {
        let mut known = self.newest.iter();
        known.find(|(known, _)| **known == *path).map(|of| of.1)
    }
}
