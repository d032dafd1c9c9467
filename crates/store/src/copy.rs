//! Copies of a store: a backup, a restored store, and a compacted store, which has no space of deleted rows. A copy is
//! an independent store.
//! A copy is created at a temporary path next to its final path. It is moved to the final path when all of it is durable
//! and was read.
//! Other threads may write to the source during the copying, and no commit waits for it. The copy has the rows that the
//! source had when the copying began.

use super::creation_lock::{CopyLock, lock, locked};
use super::directory::{
    DIRECTORY, check_not_symlink, create_directories, exchange, free_numbered_path,
    fresh_store_path, give_to_owner, remove_unfinished_stores, swap, sync_files,
};
use super::disk::{DiskKv, StoreOptions, with_database};
use super::integrity::IntegrityReport;
use super::keys::{self, Family};
use super::kind::StoreKind;
use super::kv::{Kv, KvError, Range, prefixed};
use super::rows::{Rows, corrupt};
use super::snapshot::CopiedRows;
use super::watermark::read_watermark;
use super::write_batch::WriteBatch;
#[cfg(feature = "fjall")]
use super::{MemoryStore, memory::Memory};
use super::{Store, StoreError};
use nix::fcntl::FlockArg;
use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Maximum number of attempts to lock a database that was just closed. On a busy machine, its lock may be released
/// late.
const MAX_ATTEMPTS: u32 = 1_000;
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// If the batch has more bytes than this, it is applied. If a batch of a copy is damaged, a repair loses at most this
/// batch.
const FULL: usize = 8 << 10;

/// A copy is made durable in steps of this many bytes, so that the disk can sync commits in between.
const STEP: usize = 4 << 20;

/// Maximum number of bytes read with one iterator. While an iterator exists, the database cannot be opened again after
/// a failed write.
const SLICE: usize = 256 << 10;

/// Writes rows into a copy, in batches.
struct Copy<'a, T: Kv> {
    into: &'a T,
    batch: WriteBatch,
    /// Number of bytes in the copy that are not durable yet.
    unsynced: usize,
}

impl<T: Kv> Copy<'_, T> {
    fn flush(&mut self, above: usize) -> Result<(), KvError> {
        if self.batch.len() > above {
            self.into.apply(&self.batch)?;
            self.into.flush()?;
            self.unsynced += self.batch.len();
            self.batch.clear();
        }
        if self.unsynced > STEP {
            self.into.sync(0)?;
            self.unsynced = 0;
        }
        Ok(())
    }
}

/// Returns true if a row is copied. The row of the mark and the padding are not: a copy has its own.
fn is_copied(key: &[u8]) -> bool {
    let family = key.first().and_then(|byte| Family::of(*byte));
    !matches!(family, Some(Family::Marked | Family::Padding))
}

impl<K: Kv> Rows<K> {
    /// Copies all rows as they are now. Other threads may write during the copying, and do not wait for it.
    pub(super) fn copy_into<T: Kv>(&self, into: &T) -> Result<(), StoreError> {
        let (snapshot, group) = {
            let _reading = self.reader.hold_groups();
            let group = self.reader.root()?.map_or(0, |root| root.group);
            (self.snapshots.open(), group)
        };
        let mut copy = Copy {
            into,
            batch: WriteBatch::default(),
            unsynced: 0,
        };
        copy.batch.put_keys(&T::padding_rows());
        let (root_key, mut root) = ([Family::Root.byte()], None);
        let (mut range, mut is_done) = (prefixed(&[]), false);
        while !is_done {
            let (found, end) = self.slice(&range)?;
            for (key, value) in snapshot.rows(found, end.as_deref())? {
                if key == root_key {
                    root = Some(value);
                } else if is_copied(&key) {
                    copy.batch.copy(&key, &value);
                    copy.flush(FULL)?;
                }
            }
            is_done = end.is_none();
            range.0 = end.map_or(range.0, Bound::Excluded);
        }
        drop(snapshot);
        // The last row of a copy is its root, as in a group: then a copy without its end is noticed.
        if let Some(root) = root {
            copy.batch.copy(&root_key, &root);
        }
        copy.flush(0)?;
        into.sync(group)?;
        Ok(())
    }

    /// Reads the first rows of a range. Also returns the key of the last of them; `None` if the range has no further
    /// rows.
    fn slice(&self, range: &Range) -> Result<(CopiedRows, Option<Vec<u8>>), StoreError> {
        let (mut found, mut bytes) = (CopiedRows::new(), 0);
        for row in self.reader.rows(range.clone()) {
            let (key, value) = row?;
            let (key, value) = (key.as_ref(), value.as_ref());
            found.insert(key.to_vec(), value.to_vec());
            bytes += key.len() + value.len();
            if bytes > SLICE {
                return Ok((found, Some(key.to_vec())));
            }
        }
        Ok((found, None))
    }

    /// Copies all rows into memory, where no other thread can change them.
    #[cfg(feature = "fjall")]
    pub(super) fn in_memory(&self) -> Result<MemoryStore, StoreError> {
        let rows = self.reader.rows(prefixed(&[])).map(|row| {
            let (key, value) = row?;
            Ok((key.as_ref().to_vec(), value.as_ref().to_vec()))
        });
        let rows = rows.collect::<Result<_, StoreError>>()?;
        MemoryStore::recover(
            Memory::of(rows, self.database().synced()),
            self.reader.retention,
            "the store",
        )
    }

    /// Does what [`Store::backup`] does; `copy` writes the rows into the new database.
    pub(super) fn copy_to<D: DiskKv>(
        &self,
        dir: &Path,
        copy: impl FnOnce(&Self, &D) -> Result<(), StoreError>,
    ) -> Result<IntegrityReport, StoreError> {
        let created = create_directories(dir).map_err(StoreError::Io)?;
        let _alone = CopyLock::of(dir)?;
        let (path, staging) = (dir.join(DIRECTORY), fresh_store_path(dir));
        if path.exists() {
            return Err(StoreError::Io(io::ErrorKind::AlreadyExists.into()));
        }
        remove_unfinished_stores(dir, &staging);
        let fresh = staging.join(DIRECTORY);
        let put = || {
            sync_files(&fresh)?;
            fs::rename(&fresh, &path)?;
            for folder in created.iter().filter_map(|folder| folder.parent()) {
                let here = folder.as_os_str().is_empty();
                File::open(if here { Path::new(".") } else { folder })?.sync_all()?;
            }
            give_to_owner(dir);
            File::open(dir)?.sync_all()
        };
        let copied = self.copy_to_staging(&staging, copy).and_then(|found| {
            // A copy that cannot be read in full must not be used.
            if found.issues.is_empty() {
                put().map_err(StoreError::Io)?;
            }
            Ok(found)
        });
        // If this removal fails, the next process that opens the store removes the directory.
        let _ = fs::remove_dir_all(&staging);
        copied
    }

    /// Writes a copy to a temporary state directory, and reads the copy in full. When this returns, every copied row is
    /// durable in the source.
    fn copy_to_staging<D: DiskKv>(
        &self,
        staging: &Path,
        copy: impl FnOnce(&Self, &D) -> Result<(), StoreError>,
    ) -> Result<IntegrityReport, StoreError> {
        let epoch = self.epoch();
        let fresh = staging.join(DIRECTORY);
        let db = D::open_unchecked(&fresh)?;
        copy(self, &db)?;
        db.close_durably(&fresh).map_err(StoreError::Io)?;
        // Some of the copied rows may not be durable in the source yet.
        self.wait_durable(epoch)?;
        reopen_copy::<D>(staging)?.check()
    }
}

/// Opens a store that this process has just closed. For a short time, threads of the database may still hold its lock.
fn reopen_copy<D: DiskKv>(dir: &Path) -> Result<Rows<D>, StoreError> {
    for _ in 0..MAX_ATTEMPTS {
        match D::open_store(dir, StoreOptions::default()) {
            Err(StoreError::Locked { .. }) => thread::sleep(RETRY_INTERVAL),
            opened => return opened,
        }
    }
    D::open_store(dir, StoreOptions::default())
}

/// Rewrites the store of a state directory that no process owns, without the space of deleted rows. Returns its
/// size before and after, in bytes.
pub fn compact(dir: &Path) -> Result<(u64, u64), StoreError> {
    let path = dir.join(DIRECTORY);
    let before = size(&path)?;
    with_database!(StoreKind::at(&path), dir, Database => {
        let store = Database::open_store(dir, StoreOptions::default())?;
        replace(dir, store, Rows::backup, |path, fresh| {
            swap(path, fresh)?;
            File::open(dir)?.sync_all()
        })
    })?;
    Ok((before, size(&path)?))
}

/// The result of moving a store to another database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionSummary {
    /// Number of records that were compared.
    pub records: u64,
    /// The path of the unchanged old store.
    pub old: PathBuf,
}

/// Moves a store that no process owns to another database. Before the new store replaces the old one, all records of
/// the two are compared. The old store remains next to the new one. Returns `None` if the store already uses the
/// requested database.
///
/// # Errors
/// [`StoreError::Corrupt`] if the store cannot be read in full. [`StoreError::Io`] if the disk has not enough space for
/// both stores. In both cases the store is unchanged.
pub fn convert(dir: &Path, to: StoreKind) -> Result<Option<ConversionSummary>, StoreError> {
    let from = StoreKind::at(&dir.join(DIRECTORY));
    if from == to {
        return Ok(None);
    }
    with_database!(from, dir, From => {
        let store = From::open_store(dir, StoreOptions::default())?;
        with_database!(to, dir, To => {
            let name = format!("store.{from}");
            convert_to::<From, To>(dir, store, &name).map(Some)
        })
    })
}

fn convert_to<F: DiskKv, T: DiskKv>(
    dir: &Path,
    store: Rows<F>,
    name: &str,
) -> Result<ConversionSummary, StoreError> {
    let mut records = 0;
    let old = match dir.join(name) {
        taken if taken.exists() => free_numbered_path(dir, name),
        free => free,
    };
    let copy = |store: &Rows<F>, staging: &Path| {
        let found = store.copy_to(staging, |store, into: &T| store.copy_into(into))?;
        records = same(store, &T::open_store(staging, StoreOptions::default())?)?;
        Ok(found)
    };
    replace(dir, store, copy, |path, fresh| {
        exchange(dir, path, fresh, &old)
    })?;
    Ok(ConversionSummary { records, old })
}

/// Compares all rows of two stores. Returns the number of rows.
fn same(one: &Rows<impl Kv>, other: &Rows<impl Kv>) -> Result<u64, StoreError> {
    fn rows<K: Kv>(of: &Rows<K>) -> impl Iterator<Item = Result<(K::Bytes, K::Bytes), StoreError>> {
        of.reader.rows(prefixed(&[])).filter(|row| match row {
            Ok((key, _)) => is_copied(key.as_ref()),
            Err(_) => true,
        })
    }
    let (mut ones, mut others, mut count) = (rows(one), rows(other), 0);
    loop {
        let (one, other) = (ones.next().transpose()?, others.next().transpose()?);
        let (key, alike) = match (&one, &other) {
            (None, None) => return Ok(count),
            (Some((key, value)), Some(copy)) => {
                let alike = (key.as_ref(), value.as_ref()) == (copy.0.as_ref(), copy.1.as_ref());
                (key.as_ref(), alike)
            }
            (Some((key, _)), None) => (key.as_ref(), false),
            (None, Some((key, _))) => (key.as_ref(), false),
        };
        if !alike {
            let what = format!("{} is not the same in the copy", keys::describe(key));
            return Err(corrupt(&what));
        }
        count += 1;
    }
}

/// Copies a store to a temporary path and reads the copy in full. Then calls `put` with the store's path and the copy's
/// path.
pub(super) fn replace<D: DiskKv>(
    dir: &Path,
    store: Rows<D>,
    copy: impl FnOnce(&Rows<D>, &Path) -> Result<IntegrityReport, StoreError>,
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<(), StoreError> {
    let (path, staging) = (dir.join(DIRECTORY), fresh_store_path(dir));
    check_not_symlink(&path).map_err(StoreError::Io)?;
    let fresh = staging.join(DIRECTORY);
    let replaced = copy(&store, &staging).and_then(|found| {
        if let Some(issue) = found.issues.first() {
            return Err(corrupt(&format!("{}: {}", issue.what, issue.error)));
        }
        let copied = read_watermark(&fresh)?;
        drop(store);
        // Another process may have written to the store since it was closed.
        let _alone = lock(dir, &path, FlockArg::LockExclusiveNonblock)?;
        if read_watermark(&path)? != copied {
            return Err(locked(&dir.display().to_string()));
        }
        put(&path, &fresh).map_err(StoreError::Io)?;
        give_to_owner(dir);
        Ok(())
    });
    // If this removal fails, the next process that opens the store removes the directory.
    let _ = fs::remove_dir_all(&staging);
    replaced
}

/// Copies a store into another state directory. If that directory has a store already, this store remains next to the
/// new one, and its new path is returned.
///
/// # Errors
/// If the source cannot be opened or read in full, or if a process owns the store that is replaced.
pub fn restore(
    from: &dyn Store,
    dir: &Path,
) -> Result<(IntegrityReport, Option<PathBuf>), StoreError> {
    let path = dir.join(DIRECTORY);
    if !path.exists() {
        return Ok((from.backup(dir)?, None));
    }
    check_not_symlink(&path).map_err(StoreError::Io)?;
    // The existing store may be damaged, but it must not be in use by a process.
    let _alone = match lock(dir, &path, FlockArg::LockExclusiveNonblock) {
        Err(error @ StoreError::Locked { .. }) => return Err(error),
        lock => lock.ok(),
    };
    // Copy into a temporary state directory first, so that the copy is opened and read before it replaces the store.
    let staging = fresh_store_path(dir);
    let _ = fs::remove_dir_all(&staging);
    let restored = from.backup(&staging).and_then(|found| {
        if !found.issues.is_empty() {
            return Ok((found, None));
        }
        let old = free_numbered_path(dir, "store.replaced");
        exchange(dir, &path, &staging.join(DIRECTORY), &old).map_err(StoreError::Io)?;
        give_to_owner(dir);
        Ok((found, Some(old)))
    });
    let _ = fs::remove_dir_all(&staging);
    restored
}

/// Returns the size of a database's files on the disk, in bytes.
fn size(path: &Path) -> Result<u64, StoreError> {
    use std::os::unix::fs::MetadataExt;
    let mut all = 0;
    for entry in fs::read_dir(path).map_err(StoreError::Io)? {
        let entry = entry.map_err(StoreError::Io)?;
        let about = entry.metadata().map_err(StoreError::Io)?;
        all += about.blocks() * 512;
        if about.is_dir() {
            all += size(&entry.path())?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Memory, MemoryStore};
    use crate::sled::Sled;
    use crate::{ProgramSource, ReadStore, StoredWorkflow};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use windlass_model::model::{Dialect, Origin};
    use windlass_source::source::{Bundle, SourceFile};
    use windlass_value::time::Timestamp;

    /// The target of a copy. At each write to the target, another thread writes to the source.
    struct WriteDuringCopy {
        copy: Memory,
        store: Arc<MemoryStore>,
        written: AtomicU64,
    }

    fn put(store: &MemoryStore, number: u64, size: usize) {
        let text = (0..size)
            .map(|at| char::from(b'a' + (at % 23) as u8))
            .collect();
        let files = vec![SourceFile {
            path: String::from("a.yaml"),
            text,
        }];
        let source = ProgramSource {
            bundle: Bundle { files },
            dialect: Dialect::Loom,
            max_count: 1,
            max_timeout_ms: 1,
            origin: Origin::Operator,
            folder: None,
        };
        let workflow = StoredWorkflow {
            name: format!("workflow-{number:04}").as_str().into(),
            source,
            stored_at: Timestamp(1),
            schedule: None,
        };
        store.replace_workflow(&workflow, None, &[]).unwrap();
    }

    impl WriteDuringCopy {
        fn others_write(&self) {
            let number = self.written.fetch_add(1, Ordering::SeqCst);
            let store = &self.store;
            // On another thread, which must not wait for the copying thread. Replaces one row, and adds one.
            let write = || {
                put(store, number % 7, 900_000);
                put(store, 1_000 + number, 10);
            };
            thread::scope(|scope| scope.spawn(write).join().unwrap());
        }
    }

    impl Kv for WriteDuringCopy {
        type Bytes = <Memory as Kv>::Bytes;
        type Backup = Sled;
        const MAX_UNSYNCED: usize = Memory::MAX_UNSYNCED;

        fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError> {
            self.copy.get(key)
        }

        fn range(
            &self,
            range: Range,
        ) -> impl DoubleEndedIterator<Item = crate::kv::KvRow<Self::Bytes>> + '_ {
            self.copy.range(range)
        }

        fn apply(&self, batch: &WriteBatch) -> Result<(), KvError> {
            self.others_write();
            self.copy.apply(batch)
        }

        fn flush(&self) -> Result<(), KvError> {
            self.copy.flush()
        }

        fn sync(&self, group: u64) -> Result<(), KvError> {
            self.others_write();
            self.copy.sync(group)
        }

        fn reopen(&self) -> Result<(), StoreError> {
            self.copy.reopen()
        }

        fn durable_snapshot(&self) -> Option<MemoryStore> {
            None
        }

        fn synced(&self) -> u64 {
            self.copy.synced()
        }
    }

    /// No writer waits for the disk of a copy, and the copy has the rows that the source had when the copying began.
    #[test]
    fn nobody_waits_for_the_disk_of_a_copy() {
        let store = Arc::new(MemoryStore::default());
        (0..12).for_each(|number| put(&store, number, 900_000));
        let into = WriteDuringCopy {
            copy: Memory::default(),
            store: store.clone(),
            written: AtomicU64::new(0),
        };
        let before = store.workflows(None, usize::MAX).unwrap();
        store.copy_into(&into).unwrap();
        let written = into.written.load(Ordering::SeqCst);
        assert!(written > 10, "{written}");
        // `recover` checks that the root of the copy has the checksum of its rows.
        let copy = MemoryStore::recover(into.copy, store.reader.retention, "the copy").unwrap();
        assert_eq!(copy.check().unwrap().issues, []);
        let copied = copy.workflows(None, usize::MAX).unwrap();
        assert_eq!(copied, before);
        assert_ne!(store.workflows(None, usize::MAX).unwrap(), before);
        assert!(store.snapshots.is_empty());
    }
}
