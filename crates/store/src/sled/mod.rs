//! The database on disk: sled 0.34 with one tree, made durable.
//!
//! sled does not do everything that a store needs:
//!
//! - Its `flush` is not an fsync. So after every group (writes of several commits together) we call `sync_data` on a
//!   second handle of sled's file.
//! - It syncs no directory. So we sync directories when a store is created.
//! - It panics on some damaged files. So every call is guarded.
//! - A thread that waits for a failed write may wait for ever. So we wake it (`flush_watchdog`).
//! - After a process was killed, sled reads the index that this process left unfinished. So we remove such an index.
//! - It removes a damaged end of its log silently, as after a crash. So the number of the last durable group is stored
//!   next to the database (`watermark`). If the log has only earlier groups, the store is damaged.
//!
//! No code here knows what a row means.

mod end;
mod flush_watchdog;
mod log_pages;
mod log_reader;
mod log_segment;
mod padding;
mod read_only;

pub(super) use self::read_only::open_for_inspection;
pub use self::read_only::open_read_only;

use self::end::check_end;
use self::flush_watchdog::FlushWatchdog;
use self::log_pages::Pages;
use self::log_reader::Log;
use self::read_only::durable_snapshot;
use crate::creation_lock::{CreationLock, lock, locked};
use crate::directory::{
    DIRECTORY, OwnedDirectory, create_directories, file, forget_cached, restrict_modes, sync_files,
    sync_names,
};
use crate::disk::{DiskKv, ReadableRows, StoreOptions, path_error};
use crate::file_identity::FileIdentities;
use crate::kind::StoreKind;
use crate::kv::{GuardedIter, Kv, KvError, KvRow, Range, guard};
use crate::rows::Rows;
use crate::watermark::{MARK, Watermark};
use crate::write_batch::WriteBatch;
use crate::{MemoryStore, StoreError};
use nix::fcntl::{Flock, FlockArg};
use sled::IVec;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Size of a segment (a part of the log) in bytes. The data between two syncs must be in at most two segments. If it is
/// in three, and a power cut preserves the third and loses the second, sled refuses the log.
const SEGMENT: usize = 2 << 20;

/// A store on disk that uses sled.
pub type SledStore = Rows<Sled>;

impl SledStore {
    /// Opens the store in a state directory, or creates it there.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process owns the store, [`StoreError::Foreign`] if the directory contains
    /// something other than a store, [`StoreError::Corrupt`] if files are damaged, [`StoreError::Io`] if the disk
    /// reports an error.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, StoreOptions::default())
    }

    /// Does the same as [`SledStore::open`], with options.
    pub fn open_with(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let name = dir.display().to_string();
        let path = dir.join(DIRECTORY);
        StoreKind::Sled.check(dir)?;
        if let Err(error @ (StoreError::Corrupt { .. } | StoreError::Unreadable(_))) =
            check_end(&path)
        {
            match lock(dir, &path, FlockArg::LockExclusiveNonblock) {
                // The owner may have been writing at that moment. Opening sled reports that the store is locked.
                Err(StoreError::Locked { .. }) => {}
                Err(_) => return Err(error),
                Ok(_alone) => check_end(&path)?,
            }
        }
        let db = Sled::open(dir, options, &name).map_err(|error| path_error(error, &name))?;
        Self::recover(db, options.retention, &name)
    }
}

/// The sled database, with guarded calls and durable writes.
pub struct Sled {
    dir: PathBuf,
    name: String,
    options: StoreOptions,
    identities: FileIdentities,
    /// `None` while the database is opened again, and after an attempt to open it has failed.
    open: RwLock<Option<OpenedSled>>,
    /// Dropped after the database.
    _owned: OwnedDirectory,
}

/// sled's handle. When a handle is dropped, sled syncs, and it panics if this sync fails. This type ignores the panic.
struct Handle {
    db: Option<sled::Db>,
    watchdog: Option<FlushWatchdog>,
}

impl Handle {
    fn of(config: &sled::Config) -> Result<Self, KvError> {
        let db = guard(|| config.open())?;
        let watchdog = FlushWatchdog::of(config.clone(), db.clone())?;
        Ok(Self {
            db: Some(db),
            watchdog: Some(watchdog),
        })
    }

    fn db(&self) -> sled::Result<&sled::Db> {
        let closed = || sled::Error::Unsupported(String::from("it is closed"));
        self.db.as_ref().ok_or_else(closed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Drop the watchdog first, because it has a handle, too: sled closes the database when the last handle is
        // dropped.
        self.watchdog = None;
        let db = self.db.take();
        // The data of a failed sync was not acknowledged.
        let _ = guard(|| {
            drop(db);
            Ok::<_, sled::Error>(())
        });
    }
}

/// An open database.
struct OpenedSled {
    db: Handle,
    /// A second handle of sled's file, because sled's own handle is not accessible.
    file: File,
    mark: Watermark,
}

impl Sled {
    /// Size of a segment of the log, in bytes.
    pub(crate) const SEGMENT: usize = SEGMENT;

    fn open(dir: &Path, options: StoreOptions, name: &str) -> Result<Self, StoreError> {
        let opened = OpenedSled::open(dir, options, name)?;
        Ok(Self {
            dir: dir.to_owned(),
            name: name.to_owned(),
            options,
            identities: opened.file_identities(&dir.join(DIRECTORY))?,
            open: RwLock::new(Some(opened)),
            _owned: OwnedDirectory(dir.to_owned()),
        })
    }

    /// Calls a function with the open database.
    fn with<T>(&self, call: impl FnOnce(&OpenedSled) -> Result<T, KvError>) -> Result<T, KvError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(opened) => call(opened),
            None => Err(KvError::Closed),
        }
    }
}

impl OpenedSled {
    fn open(dir: &Path, options: StoreOptions, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(DIRECTORY);
        let created = create_directories(dir).map_err(StoreError::Io)?;
        let making = CreationLock::of(dir, &path, name)?;
        remove_unfinished(&path).map_err(StoreError::Io)?;
        // The data that a killed process has written may not be durable. Sync it, because runs continue from it and
        // sled makes an index from it.
        if making.is_none() {
            let file = file(&path, "db").map_err(StoreError::Io)?;
            file.sync_data().map_err(StoreError::Io)?;
        }
        let db = database(&path, options.cache_bytes, name)?;
        // Open the mark only now: until sled has its lock, another process could own the store.
        let mark = match &making {
            None => Watermark::open(&path)?,
            Some(_) => Watermark::fresh(&path).map_err(StoreError::Io)?,
        };
        restrict_modes(&path).map_err(StoreError::Io)?;
        let file = file(&path, "db").map_err(StoreError::Io)?;
        let opened = Self { db, file, mark };
        if let Some(making) = making {
            let done = opened
                .make_durable(&path, &created)
                .and_then(|()| making.done());
            done.map_err(StoreError::Io)?;
        }
        Ok(opened)
    }

    fn file_identities(&self, path: &Path) -> Result<FileIdentities, StoreError> {
        let files = [("db", &self.file), (MARK, &self.mark.file)];
        FileIdentities::of(path, &files).map_err(StoreError::Io)
    }

    /// Makes the content and the name of a new store durable.
    fn make_durable(&self, path: &Path, created: &[PathBuf]) -> io::Result<()> {
        guard(|| self.db.db()?.flush()).map_err(|error| match error {
            KvError::Io(error) => error,
            other => io::Error::other(other.to_string()),
        })?;
        sync_files(path)?;
        sync_names(path, created)
    }
}

/// Opens sled's database in a directory.
fn database(path: &Path, cache_bytes: u64, name: &str) -> Result<Handle, StoreError> {
    let config = sled::Config::new()
        .path(path)
        .cache_capacity(cache_bytes)
        .segment_size(SEGMENT)
        .flush_every_ms(None);
    Handle::of(&config).map_err(|error| match error {
        KvError::Io(error) => open_error(path, error, name),
        other => other.into(),
    })
}

/// Removes the unfinished indexes of a killed process. sled would use such an index as the newest one, and refuse the
/// store each time it is opened. sled can open the store without any index, from the log alone.
fn remove_unfinished(path: &Path) -> io::Result<()> {
    if unfinished_indexes(path)?.is_empty() {
        return Ok(());
    }
    // This is sled's own lock. If another process has it, that process may be writing an index at this moment.
    let Ok(_alone) = Flock::lock(file(path, "db")?, FlockArg::LockExclusiveNonblock) else {
        return Ok(());
    };
    // Listed again, because the former owner of the lock may have finished its index.
    unfinished_indexes(path)?
        .iter()
        .try_for_each(std::fs::remove_file)
}

fn unfinished_indexes(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path)?.flatten();
    let unfinished = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "generating"));
    Ok(unfinished.collect())
}

impl DiskKv for Sled {
    fn open_store(dir: &Path, options: StoreOptions) -> Result<SledStore, StoreError> {
        SledStore::open_with(dir, options)
    }

    fn open_unchecked(path: &Path) -> Result<Self, StoreError> {
        create_directories(path).map_err(StoreError::Io)?;
        let name = path.display().to_string();
        let db = database(path, StoreOptions::default().cache_bytes, &name)?;
        restrict_modes(path).map_err(StoreError::Io)?;
        let file = file(path, "db").map_err(StoreError::Io)?;
        let mark = Watermark::fresh(path).map_err(StoreError::Io)?;
        let opened = OpenedSled { db, file, mark };
        Ok(Self {
            dir: path.to_owned(),
            name,
            options: StoreOptions::default(),
            identities: opened.file_identities(path)?,
            open: RwLock::new(Some(opened)),
            _owned: OwnedDirectory(path.to_owned()),
        })
    }

    fn read_intact_rows(path: &Path) -> Result<ReadableRows, StoreError> {
        let pages = Log::open(path).and_then(|mut log| Pages::read(&mut log, u64::MAX));
        let (pages, report) = pages.map_err(StoreError::Io)?;
        Ok((pages.rows(), report))
    }
}

impl Kv for Sled {
    type Bytes = IVec;
    type Backup = Self;
    // For rows of this many bytes, sled writes several times more to its log. All of this must be in two segments.
    const MAX_UNSYNCED: usize = 128 * 1024;

    /// Returns rows without a value. sled writes whole pages, and these rows keep other rows on separate pages.
    fn padding_rows() -> Vec<Vec<u8>> {
        padding::rows()
    }

    fn get(&self, key: &[u8]) -> Result<Option<IVec>, KvError> {
        self.with(|open| guard(|| open.db.db()?.get(key)))
    }

    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<IVec>> + '_ {
        GuardedIter::of(self.with(|open| Ok(open.db.db()?.range(range))))
    }

    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError> {
        self.with(|open| {
            guard(|| {
                let mut ops = sled::Batch::default();
                for (key, value) in batch.ops() {
                    match value {
                        Some(value) => ops.insert(key, value),
                        None => ops.remove(key),
                    }
                }
                open.db.db()?.apply_batch(ops)
            })
        })
    }

    fn flush(&self) -> Result<(), KvError> {
        self.with(|open| guard(|| open.db.db()?.flush()).map(drop))
    }

    fn sync(&self, group: u64) -> Result<(), KvError> {
        self.with(|open| {
            open.file.sync_data()?;
            self.identities.check()?;
            open.mark.set(group);
            Ok(())
        })
    }

    fn durable_snapshot(&self) -> Option<MemoryStore> {
        // The lock prevents `reopen` from changing the files while they are read. Even a `reopen` that fails may have
        // written to them.
        let _open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        durable_snapshot(&self.dir.join(DIRECTORY))
    }

    /// Opens the database again. sled holds the lock of its file until every handle is dropped. So if a reader still
    /// has an iterator, this fails, and the caller must try again.
    fn reopen(&self) -> Result<(), StoreError> {
        // If the file is missing, opening would create an empty database, so check first.
        self.identities.check()?;
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        drop(open.take());
        forget_cached(&self.dir.join(DIRECTORY).join("db"));
        *open = Some(OpenedSled::open(&self.dir, self.options, &self.name)?);
        Ok(())
    }

    fn synced(&self) -> u64 {
        self.with(|open| Ok(open.mark.group())).unwrap_or(0)
    }

    fn mark_floor(&self) -> u64 {
        self.with(|open| Ok(open.mark.floor())).unwrap_or(0)
    }

    fn check_present(&self) -> Result<(), KvError> {
        self.identities.check()
    }
}

impl From<sled::Error> for KvError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => Self::Io(underlying_io_error(error)),
            sled::Error::Corruption { at: None, .. } => Self::Corrupt(String::from(
                "sled does not say where, as if `store/conf` or a file `store/snap.*` is damaged; a \
                 repair does not need these files",
            )),
            error => {
                let text = error.to_string();
                let message = text
                    .split_once(" backtrace")
                    .map_or(&*text, |(message, _)| message);
                Self::Corrupt(message.to_owned())
            }
        }
    }
}

/// Returns the operating system's error that the text of sled's error contains in debug form.
fn underlying_io_error(error: io::Error) -> io::Error {
    let text = error.to_string();
    let code = text
        .strip_prefix("Os { code: ")
        .and_then(|rest| rest.split_once(',')?.0.parse().ok());
    code.map_or(error, io::Error::from_raw_os_error)
}

/// Converts an error of opening sled. If sled cannot lock its file, its error has only a text. So this tries to lock
/// the file again, to get the operating system's error.
fn open_error(path: &Path, error: io::Error, name: &str) -> StoreError {
    let text = error.to_string();
    if !text.starts_with("could not acquire lock") {
        return StoreError::Io(error);
    }
    if text.contains("WouldBlock") {
        return locked(name);
    }
    let again = file(path, "db").map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock));
    match again {
        Ok(Err((_, errno))) => StoreError::Io(errno.into()),
        Ok(Ok(_)) | Err(_) => StoreError::Io(error),
    }
}

/// Retries a call while a closed store is still locked. This happens in tests: if another test starts a process, that
/// process inherits the lock, until it executes its own program.
#[cfg(test)]
pub(crate) fn retry_while_locked<T>(
    what: impl Fn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        match what() {
            Err(StoreError::Locked { .. }) => std::thread::yield_now(),
            other => return other,
        }
    }
}
