//! Which rows changed: for a copy of a store while others write to it. Nothing is recorded while there is
//! no copy in progress.

use super::keys::Family;
use super::rows::lock;
use super::write_batch::WriteBatch;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Keys = Arc<Mutex<HashSet<Vec<u8>>>>;

/// The changed keys of each follower.
#[derive(Default)]
pub(super) struct RowChanges {
    count: AtomicUsize,
    followers: Mutex<Vec<Keys>>,
}

/// The keys that changed since it began, and were not taken.
pub(super) struct Follower<'a> {
    changes: &'a RowChanges,
    keys: Keys,
}

impl RowChanges {
    /// From now on whatever is applied is remembered for this follower.
    pub fn track_changes(&self) -> Follower<'_> {
        let keys = Keys::default();
        lock(&self.followers).push(keys.clone());
        self.count.fetch_add(1, Ordering::SeqCst);
        Follower {
            changes: self,
            keys,
        }
    }

    /// Whether there is no follower.
    #[cfg(test)]
    pub fn is_quiet(&self) -> bool {
        lock(&self.followers).is_empty()
    }

    /// Records what was applied. A reader that must see all of it does not read before this returns.
    pub fn applied(&self, batch: &WriteBatch) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for keys in lock(&self.followers).iter() {
            let changed = batch.ops().map(|(key, _)| key);
            // A copy has a mark of its own.
            let changed = changed.filter(|key| key.first() != Some(&Family::Marked.byte()));
            lock(keys).extend(changed.map(<[u8]>::to_vec));
        }
    }
}

impl Follower<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        lock(&self.keys).len()
    }

    /// Removes and returns some of them, `most` at most.
    pub fn take(&self, most: usize) -> Vec<Vec<u8>> {
        let mut keys = lock(&self.keys);
        if keys.len() <= most {
            return keys.drain().collect();
        }
        let some: Vec<_> = keys.iter().take(most).cloned().collect();
        for key in &some {
            keys.remove(key);
        }
        some
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        lock(&self.changes.followers).retain(|keys| !Arc::ptr_eq(keys, &self.keys));
        self.changes.count.fetch_sub(1, Ordering::SeqCst);
    }
}
