//! A run's head as it is stored, and as the writer remembers it: where the journal stands, and
//! the sums by which a reader knows that the run's other rows are those that were written.
//!
//! A database that loses a piece of its log shows older rows, each whole in itself. So every row
//! is vouched for: changes and events by their numbers, rows of loops and iterations by sums of
//! checksums in the head, heads and indexes by a sum in the store's root, and the root by the
//! number of the last acknowledged group beside the database (docs/store-format.md).

use super::{Placement, RunHeader};
use bincode::{Decode, Encode};

/// What the head of a run vouches for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Sums {
    /// The sequence number of its last event.
    pub events: u64,
    /// Events up to this one were let go.
    pub trimmed: u64,
    /// The checksums of its loop rows, added up.
    pub loops: u32,
    /// The checksums of its iteration rows, added up.
    pub iterations: u32,
}

/// A head as it is stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredHead {
    /// What the caller gave.
    pub header: RunHeader,
    /// What the store adds.
    pub sums: Sums,
}

/// What lies under the key `g`: the root of what vouches for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Root {
    /// The number of the last group.
    pub group: u64,
    /// The checksums of all workflows, heads and index rows, added up.
    pub digest: u64,
}

impl Root {
    /// Counts a row in.
    pub fn add(&mut self, crc: u32) {
        self.digest = self.digest.wrapping_add(u64::from(crc));
    }

    /// Counts a row out.
    pub fn drop(&mut self, crc: u32) {
        self.digest = self.digest.wrapping_sub(u64::from(crc));
    }
}

/// A head as the writer remembers it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The last revision; 0 when the run is not stored.
    pub revision: u64,
    /// The revision of the last snapshot.
    pub snapshot: u64,
    /// Which index it is in; none when the run is not stored.
    pub placement: Option<Placement>,
    /// The checksum of its row; none when the run is not stored.
    pub crc: Option<u32>,
    /// What it vouches for.
    pub sums: Sums,
    /// The group that moved it last, as far as it is remembered.
    pub group: u64,
    seen: Vec<Seen>,
}

/// What is known of a loop's rows without reading them.
#[derive(Clone, Debug)]
pub struct Seen {
    path: Box<str>,
    /// The checksum of its loop row, when it has one; unknown before it was looked for.
    pub row: Option<Option<u32>>,
    /// From this iteration on it has no rows; unknown before one was written.
    pub next: Option<u64>,
}

impl Head {
    /// So many loops are remembered.
    const MAX_SEEN: usize = 16;

    /// What is remembered of a stored head whose row has this checksum.
    pub fn of(stored: &StoredHead, crc: u32) -> Self {
        Self {
            revision: stored.header.revision,
            snapshot: stored.header.snapshot,
            placement: Some(stored.header.placement),
            crc: Some(crc),
            sums: stored.sums,
            group: 0,
            seen: Vec::new(),
        }
    }

    /// What is known of a loop.
    pub fn seen(&mut self, path: &str) -> &mut Seen {
        let at = self.seen.iter().position(|seen| &*seen.path == path);
        let at = at.unwrap_or_else(|| {
            if self.seen.len() >= Self::MAX_SEEN {
                self.seen.remove(0);
            }
            self.seen.push(Seen {
                path: path.into(),
                row: None,
                next: None,
            });
            self.seen.len() - 1
        });
        #[allow(clippy::indexing_slicing, reason = "the place was just found or made")]
        &mut self.seen[at]
    }

    /// Forgets what is known of loops: rows were removed.
    pub fn forget_seen(&mut self) {
        self.seen.clear();
    }
}
