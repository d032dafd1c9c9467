//! A snapshot of all rows of a store at one moment, for a copy that is made while other threads write. (It is not the
//! snapshot of a run's state.)
//! Before a group (writes of several commits together) is applied, the rows that it replaces or removes are saved for
//! the copy, unless they were copied already. If no copy is in progress, nothing is saved.

use super::kv::KvError;
use super::rows::lock;
use super::write_batch::WriteBatch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The snapshots of all copies in progress.
#[derive(Default)]
pub(super) struct Snapshots {
    count: AtomicUsize,
    open: Mutex<Vec<Arc<Mutex<SavedRows>>>>,
}

/// Rows that changed after the snapshot's moment, before the copy reached them. The copy proceeds in the order of the
/// keys.
#[derive(Default)]
struct SavedRows {
    /// The key of the last row that was copied.
    copied_up_to: Vec<u8>,
    /// The keys of rows that were changed, added or removed.
    changed: BTreeSet<Vec<u8>>,
    /// The rows of these keys at the snapshot's moment, until the copy reads its next slice. A key that was added later
    /// has none.
    rows: CopiedRows,
    /// Why a row could not be saved.
    failed: Option<KvError>,
}

/// The rows of a store at the moment when the snapshot was opened.
pub(super) struct Snapshot<'a> {
    snapshots: &'a Snapshots,
    saved: Arc<Mutex<SavedRows>>,
}

/// Rows with their keys, in order.
pub(super) type CopiedRows = BTreeMap<Vec<u8>, Vec<u8>>;

impl Snapshots {
    /// Opens a snapshot of the current rows. The caller must ensure that no group is applied during this call.
    pub fn open(&self) -> Snapshot<'_> {
        let saved = Arc::default();
        lock(&self.open).push(Arc::clone(&saved));
        self.count.fetch_add(1, Ordering::SeqCst);
        Snapshot {
            snapshots: self,
            saved,
        }
    }

    /// Returns true if no copy is in progress.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Saves the rows that a batch replaces or removes. Must be called before the batch is applied. `row` reads a row
    /// of the store.
    pub fn save(
        &self,
        batch: &WriteBatch,
        mut row: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, KvError>,
    ) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for saved in lock(&self.open).iter() {
            let mut saved = lock(saved);
            for (key, _) in batch.ops() {
                if key <= saved.copied_up_to.as_slice() || saved.changed.contains(key) {
                    continue;
                }
                match row(key) {
                    Ok(row) => {
                        saved.rows.extend(row.map(|row| (key.to_vec(), row)));
                        saved.changed.insert(key.to_vec());
                    }
                    // The copy fails, but the commit does not.
                    Err(error) => drop(saved.failed.get_or_insert(error)),
                }
            }
        }
    }
}

impl Snapshot<'_> {
    /// Returns the snapshot's rows after the last copied row, up to the key `end`. If `end` is `None`, returns all
    /// remaining rows. `found` has the current rows of this range. The result can also contain saved rows after `end`,
    /// so that they do not stay in memory.
    pub fn rows(&self, mut found: CopiedRows, end: Option<&[u8]>) -> Result<CopiedRows, KvError> {
        let mut saved = lock(&self.saved);
        if let Some(error) = saved.failed.take() {
            return Err(error);
        }
        if let Some(end) = end {
            saved.copied_up_to = end.to_vec();
        }
        while let Some(key) = saved.changed.pop_first() {
            if end.is_some_and(|end| key.as_slice() > end) {
                saved.changed.insert(key);
                break;
            }
            found.remove(&key);
        }
        found.append(&mut saved.rows);
        Ok(found)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        lock(&self.snapshots.open).retain(|saved| !Arc::ptr_eq(saved, &self.saved));
        self.snapshots.count.fetch_sub(1, Ordering::SeqCst);
    }
}
