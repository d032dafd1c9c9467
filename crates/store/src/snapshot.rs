//! The rows of a store as they are at one moment, for a copy that is made while others write: before a group is
//! applied, the rows that it replaces or removes are saved, as far as they were not copied. Nothing is saved while
//! there is no copy in progress.

use super::kv::KvError;
use super::rows::lock;
use super::write_batch::WriteBatch;
use std::collections::BTreeMap;
use std::ops::Bound;
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
    rows: BTreeMap<Vec<u8>, SavedRow>,
    /// Why a row could not be saved.
    failed: Option<KvError>,
}

/// What is under a key is not what was there.
enum SavedRow {
    /// This was there.
    Row(Vec<u8>),
    /// Nothing was there, or it was copied ahead of its turn.
    Left,
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
                if key <= saved.copied.as_slice() || saved.rows.contains_key(key) {
                    continue;
                }
                match row(key) {
                    Ok(row) => {
                        let row = row.map_or(SavedRow::Left, SavedRow::Row);
                        saved.rows.insert(key.to_vec(), row);
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
        let later = match end {
            Some(end) => {
                let behind = (Bound::Excluded(end), Bound::Unbounded);
                let first = saved.rows.range::<[u8], _>(behind).next();
                let first = first.map(|(key, _)| key.clone());
                let later = first.map(|first| saved.rows.split_off(&first));
                saved.copied = end.to_vec();
                later.unwrap_or_default()
            }
            None => BTreeMap::new(),
        };
        for (key, row) in std::mem::replace(&mut saved.rows, later) {
            match row {
                SavedRow::Row(value) => found.insert(key, value),
                SavedRow::Left => found.remove(&key),
            };
        }
        for (key, row) in &mut saved.rows {
            if let SavedRow::Row(value) = std::mem::replace(row, SavedRow::Left) {
                found.insert(key.clone(), value);
            }
        }
        Ok(found)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        lock(&self.snapshots.open).retain(|saved| !Arc::ptr_eq(saved, &self.saved));
        self.snapshots.count.fetch_sub(1, Ordering::SeqCst);
    }
}
