//! A run's header, as it is stored and as the writer caches it. It contains the position of the run's journal, and the
//! bounds: numbers and a checksum with which a reader checks the run's other rows.
//!
//! A database that has lost a piece of its log returns old rows, and each of them is valid. So one row alone cannot
//! show the loss, and every row is checked with another row (docs/internals/store-format.md). The journal is checked
//! with the numbers of its records, and the retained rows with a checksum in the header. Headers and indexes are
//! checked with a checksum in the store's root. The root is checked with the number of the last acknowledged group
//! (writes of several commits together), in a file next to the database.

use super::rows::corrupt;
use super::{Placement, RunHeader, StoreError};
use bincode::{Decode, Encode};

/// The values with which the other rows of a run are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Bounds {
    /// The sequence number of the run's last event.
    pub events: u64,
    /// Events up to this sequence number were removed.
    pub last_removed_event: u64,
    /// The revision of the first commit whose record is stored.
    pub first: u64,
    /// The checksum of the rows that are retained of removed commits.
    pub retained_crc: u32,
    /// Size in bytes of these retained rows; 0 if nothing is retained.
    pub retained_bytes: u64,
}

/// A run's header as it is stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredHeader {
    /// The header of the last commit.
    pub header: RunHeader,
    /// The bounds, which the store adds to the header.
    pub bounds: Bounds,
}

impl StoredHeader {
    /// Returns the revisions of the first and the last stored record, up to revision `last`. If `last` is `None`, up to
    /// the newest revision.
    ///
    /// # Errors
    /// If all records up to `last` were removed.
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

/// The value under the key `g`, with which headers and indexes are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Root {
    /// The number of the last committed group.
    pub group: u64,
    /// The sum of the checksums of all run headers, index rows, named workflows, and stored values of workflows.
    pub checksum: u64,
}

impl Root {
    /// Adds a row's checksum.
    pub fn add_row(&mut self, crc: u32) {
        self.checksum = self.checksum.wrapping_add(u64::from(crc));
    }

    /// Subtracts a row's checksum.
    pub fn subtract_row(&mut self, crc: u32) {
        self.checksum = self.checksum.wrapping_sub(u64::from(crc));
    }
}

/// A run's header as the writer caches it.
#[derive(Clone, Debug, Default)]
pub struct KnownHeader {
    /// The revision of the last commit; 0 if the run is not stored.
    pub revision: u64,
    /// The revision of the last snapshot.
    pub snapshot: u64,
    /// The index that contains the run; `None` if the run is not stored.
    pub placement: Option<Placement>,
    /// The checksum of the header's row; `None` if the run is not stored.
    pub crc: Option<u32>,
    /// The values with which the run's other rows are checked.
    pub bounds: Bounds,
    /// The number of the group that contained the run's last commit; 0 if the header was read from the store.
    pub group: u64,
    newest: Vec<(Box<str>, u64)>,
}

impl KnownHeader {
    /// Maximum number of loops whose last iteration is remembered.
    const MAX_NEWEST: usize = 16;

    /// Creates the cached header from a stored header whose row has this checksum.
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

    /// Remembers that the row of this iteration is stored.
    pub fn ended(&mut self, path: &str, iteration: u64) {
        if let Some((_, newest)) = self.newest.iter_mut().find(|(known, _)| **known == *path) {
            *newest = iteration;
            return;
        }
        if self.newest.len() >= Self::MAX_NEWEST {
            self.newest.remove(0);
        }
        // Most runs have one loop, so space for one is reserved.
        self.newest.reserve_exact(1);
        self.newest.push((path.into(), iteration));
    }

    /// Returns the number of the loop's last iteration that has a row. Returns `None` if it is not remembered.
    pub fn newest(&self, path: &str) -> Option<u64> {
        let mut known = self.newest.iter();
        known.find(|(known, _)| **known == *path).map(|of| of.1)
    }
}
