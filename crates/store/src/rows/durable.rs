//! Makes the groups of a store durable, and allows readers to wait for that. A group is the writes of several commits
//! together. This file never decides what is written.
//! One thread at a time fills a batch and applies it. While this thread flushes and syncs, the next thread fills its
//! own batch.
//! Data that the database has in memory after a failed write may not be on disk. So after a failed write, no commit is
//! acknowledged and no run is loaded until the store is opened again.

use super::super::commit::Writer;
use super::super::kv::{Kv, KvError};
use super::super::{Store, StoreError};
use super::{Rows, corrupt, lock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How far a store's groups are applied and durable.
pub(super) struct Durability {
    /// The last group that readers can read.
    applied: AtomicU64,
    /// The last group that is durable.
    synced: Mutex<u64>,
    /// Notified when `synced` changes, and after a failed write.
    synced_changed: Condvar,
    /// Number of bytes that are applied and not durable yet.
    unsynced: Mutex<usize>,
    /// Notified when `unsynced` decreases.
    unsynced_decreased: Condvar,
    /// Number of times that the store was opened again. A group that was being written at such a time may not be
    /// durable.
    epoch: AtomicU64,
}

impl Durability {
    /// Creates the state of a store whose groups up to the number `group` are durable.
    pub fn new(group: u64) -> Self {
        Self {
            applied: AtomicU64::new(group),
            synced: Mutex::new(group),
            synced_changed: Condvar::new(),
            unsynced: Mutex::new(0),
            unsynced_decreased: Condvar::new(),
            epoch: AtomicU64::new(0),
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::SeqCst)
    }
}

impl<K: Kv> Rows<K> {
    /// Opens the database again after a failed write, and continues with the data that it contains.
    pub(super) fn open_again(&self) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        let _alone = self
            .reader
            .gate
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut synced = lock(&self.durability.synced);
        self.durability.epoch.fetch_add(1, Ordering::SeqCst);
        self.reader.kv.reopen()?;
        // The database may contain data that is not synced yet. Sync this data before later commits depend on it.
        let root = self.reader.checked_root()?;
        let root = root.ok_or_else(|| corrupt("all that was acknowledged is missing"))?;
        self.reader.kv.flush()?;
        self.reader.kv.sync(root.group)?;
        *writer = Writer::new(root);
        self.durability.applied.store(root.group, Ordering::SeqCst);
        *synced = root.group;
        *lock(&self.reader.failed) = None;
        self.feed.mark_all_changed();
        self.durability.synced_changed.notify_all();
        Ok(())
    }

    /// Records an error after which no commit is acknowledged. If the database's files are missing, any call may fail
    /// with any error. So the files are checked, and if they are missing, this is reported as the cause.
    fn fail(&self, error: KvError) -> StoreError {
        let error = StoreError::from(match self.reader.kv.check_present() {
            Err(gone @ KvError::Gone(_)) => gone,
            Ok(()) | Err(_) => error,
        });
        lock(&self.reader.failed).get_or_insert_with(|| error.to_string());
        if let Some(wake) = self.on_failure.get() {
            wake();
        }
        error
    }

    /// Checks the store's files; see [`Store::check_present`].
    pub(super) fn check_files(&self) -> Result<(), StoreError> {
        self.reader.kv.check_present().map_err(|error| {
            let error = self.fail(error);
            let _synced = lock(&self.durability.synced);
            self.durability.synced_changed.notify_all();
            error
        })
    }

    /// Applies the batch and makes it durable. Releases the writer as soon as another thread can fill the next batch.
    /// Calls `on_flushed` when the operating system has the whole batch.
    pub(crate) fn make_durable(
        &self,
        writer: MutexGuard<'_, Writer>,
        on_flushed: impl FnOnce(),
    ) -> Result<(), StoreError> {
        let done = self.sync_group(writer, on_flushed);
        if done.is_err() {
            // Hold the lock during the notification. Otherwise a reader could check for an error just before the
            // notification, begin to wait just after it, and then wait for ever.
            let _synced = lock(&self.durability.synced);
            self.durability.synced_changed.notify_all();
        }
        done
    }

    fn sync_group(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        on_flushed: impl FnOnce(),
    ) -> Result<(), StoreError> {
        let group = writer.next_group(self.reader.kv.mark_floor())?;
        let bytes = writer.batch.len();
        let _unsynced = UnsyncedBytes::new(
            &self.durability.unsynced,
            &self.durability.unsynced_decreased,
            bytes,
            K::MAX_UNSYNCED,
        );
        let epoch = self.durability.epoch();
        let row = |key: &[u8]| {
            let row = self.reader.kv.get(key)?;
            Ok(row.map(|row| row.as_ref().to_vec()))
        };
        self.snapshots.save(&writer.batch, row);
        {
            let _alone = self
                .reader
                .gate
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            // Save again: a snapshot may have been opened since the first call of `save`.
            self.snapshots.save(&writer.batch, row);
            self.reader
                .kv
                .apply(&writer.batch)
                .map_err(|e| self.fail(e))?;
            self.durability.applied.store(group, Ordering::SeqCst);
        }
        self.feed.changed(writer.touched.drain(..));
        drop(writer);
        self.reader.kv.flush().map_err(|e| self.fail(e))?;
        on_flushed();
        let mut synced = lock(&self.durability.synced);
        // The sync of an earlier group may have failed meanwhile, and this group depends on it.
        self.check_writable()?;
        self.same_epoch(epoch)?;
        // All groups are in one log: the flush and sync of a later group include this one.
        if *synced < group {
            self.reader.kv.sync(group).map_err(|e| self.fail(e))?;
            *synced = group;
            self.durability.synced_changed.notify_all();
        }
        Ok(())
    }

    /// Fails if the store was opened again since `epoch` was read: groups that were being written at that moment may be
    /// lost.
    fn same_epoch(&self, epoch: u64) -> Result<(), StoreError> {
        if self.durability.epoch() == epoch {
            return Ok(());
        }
        let reason = String::from("it was opened again meanwhile");
        Err(StoreError::Failed { reason })
    }

    /// Waits until all data that is readable now is durable; see [`Store::wait_durable`].
    pub(super) fn wait_until_durable(&self, epoch: u64) -> Result<(), StoreError> {
        let group = self.durability.applied.load(Ordering::SeqCst);
        let mut synced = lock(&self.durability.synced);
        loop {
            self.same_epoch(epoch)?;
            if *synced >= group {
                return Ok(());
            }
            self.check_writable()?;
            let woken = self.durability.synced_changed.wait(synced);
            synced = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Reserves a group's bytes until they are durable. All groups that are being written reserve together at most
/// [`Kv::MAX_UNSYNCED`] bytes. A single larger group may exceed this.
struct UnsyncedBytes<'a> {
    all: &'a Mutex<usize>,
    decreased: &'a Condvar,
    own: usize,
}

impl<'a> UnsyncedBytes<'a> {
    /// Waits until there is room for `own` bytes.
    fn new(all: &'a Mutex<usize>, decreased: &'a Condvar, own: usize, most: usize) -> Self {
        let full = |all: &mut usize| *all > 0 && all.saturating_add(own) > most;
        let unsynced = decreased.wait_while(lock(all), full);
        *unsynced.unwrap_or_else(PoisonError::into_inner) += own;
        Self {
            all,
            decreased,
            own,
        }
    }
}

impl Drop for UnsyncedBytes<'_> {
    fn drop(&mut self) {
        *lock(self.all) -= self.own;
        self.decreased.notify_all();
    }
}
