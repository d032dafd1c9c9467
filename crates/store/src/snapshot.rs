//! The rows of a store as they are at one moment, for a copy that is made while others write: before a group is
//! applied, the rows that it replaces or removes are saved, as far as they were not copied. Without a copy in progress
//! nothing is saved.

use super::kv::KvError;
use super::rows::lock;
use super::write_batch::WriteBatch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The snapshots that are being copied.
#[derive(Default)]
pub(super) struct Snapshots {
    count: AtomicUsize,
    open: Mutex<Vec<Arc<Mutex<SavedRows>>>>,
}

/// The rows of one moment that others changed since then, behind those that were copied in order.
#[derive(Default)]
struct SavedRows {
    /// Rows up to this key were copied.
    copied: Vec<u8>,
    /// The keys under which something else is now, or nothing.
    changed: BTreeSet<Vec<u8>>,
    /// What was there, until the next slice: no row under a key that was new.
    rows: CopiedRows,
    /// Why a row could not be saved.
    failed: Option<KvError>,
}

/// The rows of a store as they were when it was opened.
pub(super) struct Snapshot<'a> {
    snapshots: &'a Snapshots,
    saved: Arc<Mutex<SavedRows>>,
}

/// Rows with their keys, in order.
pub(super) type CopiedRows = BTreeMap<Vec<u8>, Vec<u8>>;

impl Snapshots {
    /// The rows as they are now; the caller keeps groups from being applied meanwhile.
    pub fn open(&self) -> Snapshot<'_> {
        let saved = Arc::default();
        lock(&self.open).push(Arc::clone(&saved));
        self.count.fetch_add(1, Ordering::SeqCst);
        Snapshot {
            snapshots: self,
            saved,
        }
    }

    /// Whether nothing is being copied.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Saves what a batch replaces or removes, before it is applied; `row` reads a row.
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
                if key <= saved.copied.as_slice() || saved.changed.contains(key) {
                    continue;
                }
                match row(key) {
                    Ok(row) => {
                        saved.rows.extend(row.map(|row| (key.to_vec(), row)));
                        saved.changed.insert(key.to_vec());
                    }
                    // The copy fails, not the commit.
                    Err(error) => drop(saved.failed.get_or_insert(error)),
                }
            }
        }
    }
}

impl Snapshot<'_> {
    /// The rows behind those that were copied and up to the key `end`, or all others, as they were at the moment of the
    /// snapshot; `found` are those that are there now. Saved rows behind `end` come along, so that their values do not
    /// stay in memory.
    pub fn rows(&self, mut found: CopiedRows, end: Option<&[u8]>) -> Result<CopiedRows, KvError> {
        let mut saved = lock(&self.saved);
        if let Some(error) = saved.failed.take() {
            return Err(error);
        }
        if let Some(end) = end {
            saved.copied = end.to_vec();
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
