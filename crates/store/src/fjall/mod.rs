//! The database on disk: fjall 3 with one keyspace, made durable.
//!
//! fjall does not do everything that a store needs:
//!
//! - `persist` locks fjall's journal while it syncs. So we sync the journal through our own handle, and meanwhile the
//!   next group (writes of several commits together) is applied.
//! - fjall truncates a damaged journal at the damage. So we refuse such a journal before fjall opens it (`journal`).
//! - If a worker thread of fjall ended with an error, a writer waits for it for ever. So we wait for the workers first
//!   and detect such an error (`OpenedFjall::wait_for_workers`).
//! - fjall panics on some damaged files. So every call is guarded.
//!
//! The number of the last durable group is stored in a file next to the database, the mark (`watermark`), as with sled.
//! No code here knows what a row means, with one exception: `journal` reads the number of a group from its root row, to
//! compare it with the mark.

mod archive;
mod journal;
mod scratch;
mod tables;

use self::archive::check_archives;
use self::journal::{ActiveJournal, check_journals, prepare_journals};
use self::scratch::{Scratch, remove_left};
use crate::creation_lock::{CreationLock, lock, locked};
use crate::directory::{
    DIRECTORY, OwnedDirectory, create_directories, files, forget_cached, restrict_modes,
    sync_files, sync_names,
};
use crate::disk::{DiskKv, ReadableRows, StoreOptions, path_error};
use crate::file_identity::FileIdentities;
use crate::kind::{FJALL, StoreKind};
use crate::kv::{GuardedIter, Kv, KvError, KvRow, Range, guard};
use crate::rows::Rows;
use crate::watermark::{MARK, Watermark, read_watermark};
use crate::write_batch::WriteBatch;
use crate::{MemoryStore, StoreError};
use fjall::compaction::Leveled;
use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, KvPair, PersistMode, Slice};
use nix::fcntl::FlockArg;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// The name of our keyspace.
const ROWS: &str = "rows";

/// The folder of our keyspace's tables: the keyspace has number 1.
const TABLES_FOLDER: &str = "keyspaces/1/tables";

/// Size of a table in memory at which fjall writes it to disk. When the store is opened, fjall reads the content of
/// these tables from the journal.
const MEMTABLE_BYTES: u64 = 3 << 20;

/// With more than one worker, the first worker would pass merge requests to itself in a loop while another one merges.
const WORKERS: usize = 1;

/// Maximum size of a table on disk. A table is synced as a whole, and a commit waits on the disk until this sync ends.
const MAX_TABLE_BYTES: u64 = 4 << 20;

/// If this many tables in memory are not written yet, fjall makes writers wait in steps of 100 ms.
const STALLING_MEMTABLES: usize = 3;

/// If more tables than this are not merged yet, fjall makes writers wait.
const MAX_UNMERGED_TABLES: usize = 19;

/// Interval of the checks whether the workers have finished enough work.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The error of a database with a worker that ended with an error.
const POISONED: &str = "a background write failed, so no more writes are accepted";

/// A store on disk that uses fjall.
pub type FjallStore = Rows<Fjall>;

impl FjallStore {
    /// Opens a store as [`crate::SledStore::open_with`] does.
    pub fn open_with(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let name = dir.display().to_string();
        let path = dir.join(DIRECTORY);
        StoreKind::Fjall.check(dir)?;
        remove_left(dir);
        if StoreKind::of(dir).is_some() {
            // fjall would wait for the lock, but this returns an error at once. The lock is released again, so that
            // fjall can lock it.
            let _alone = lock(dir, &path, FlockArg::LockExclusiveNonblock)
                .map_err(|error| path_error(error, &name))?;
            prepare_journals(&path)?;
            check_archives(&path.join(FJALL))?;
            sync_journal(&path)?;
        }
        let opened =
            OpenedFjall::open(dir, options, &name).map_err(|error| path_error(error, &name))?;
        let database = Fjall::of(opened, dir, options, &name)?;
        Self::recover(database, options.retention, &name)
    }
}

/// The fjall database, with guarded calls and durable writes.
pub struct Fjall {
    dir: PathBuf,
    name: String,
    options: StoreOptions,
    identities: FileIdentities,
    /// `None` while the database is opened again, and after an attempt to open it has failed.
    open: RwLock<Option<OpenedFjall>>,
    /// Dropped after the database.
    _owned: OwnedDirectory,
    /// The temporary directory of the database, if it is a copy. It is removed when the database is closed.
    _scratch: Option<Scratch>,
}

struct OpenedFjall {
    database: Database,
    rows: Keyspace,
    journal: ActiveJournal,
    lock: File,
    tables: File,
    mark: Watermark,
}

impl Fjall {
    fn of(
        opened: OpenedFjall,
        dir: &Path,
        options: StoreOptions,
        name: &str,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            name: name.to_owned(),
            options,
            identities: opened.file_identities(&dir.join(DIRECTORY))?,
            open: RwLock::new(Some(opened)),
            _owned: OwnedDirectory(dir.to_owned()),
            _scratch: None,
        })
    }

    /// Calls a function with the open database.
    fn with<T>(&self, call: impl FnOnce(&OpenedFjall) -> Result<T, KvError>) -> Result<T, KvError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(opened) => call(opened),
            None => Err(KvError::Closed),
        }
    }
}

impl OpenedFjall {
    fn open(dir: &Path, options: StoreOptions, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(DIRECTORY);
        let created = create_directories(dir).map_err(StoreError::Io)?;
        let making = CreationLock::of(dir, &path, name)?;
        let mark = || match &making {
            None => Watermark::open(&path),
            Some(_) => Watermark::fresh(&path).map_err(StoreError::Io),
        };
        let opened = Self::at(&path, options, mark, name)?;
        restrict_modes(&path).map_err(StoreError::Io)?;
        if let Some(making) = making {
            let durable = sync_files(&path).and_then(|()| sync_names(&path, &created));
            durable
                .and_then(|()| making.done())
                .map_err(StoreError::Io)?;
        }
        Ok(opened)
    }

    /// Opens the database in a directory, and then the mark with the function `mark`. Until fjall has the lock, another
    /// process could own the store and write its mark.
    fn at(
        path: &Path,
        options: StoreOptions,
        mark: impl FnOnce() -> Result<Watermark, StoreError>,
        name: &str,
    ) -> Result<Self, StoreError> {
        let folder = path.join(FJALL);
        let database = database(&folder, options.cache_bytes, name)?;
        let rows = guard(|| {
            database.keyspace(ROWS, || {
                let merging = Leveled::default().with_table_target_size(MAX_TABLE_BYTES);
                KeyspaceCreateOptions::default()
                    .max_memtable_size(MEMTABLE_BYTES)
                    .compaction_strategy(Arc::new(merging))
            })
        })?;
        let mark = mark()?;
        Ok(Self {
            rows,
            journal: ActiveJournal::find(folder.clone()).map_err(StoreError::Io)?,
            lock: File::open(folder.join("lock")).map_err(StoreError::Io)?,
            tables: File::open(folder.join(TABLES_FOLDER)).map_err(StoreError::Io)?,
            database,
            mark,
        })
    }

    fn file_identities(&self, path: &Path) -> Result<FileIdentities, StoreError> {
        let lock = StoreKind::Fjall.lock_file();
        let tables = format!("{FJALL}/{TABLES_FOLDER}");
        let files = [
            (lock, &self.lock),
            (&*tables, &self.tables),
            (MARK, &self.mark.file),
        ];
        FileIdentities::of(path, &files).map_err(StoreError::Io)
    }

    /// Waits for the workers, as fjall itself would. If a worker ended with an error, fjall would wait for ever; this
    /// returns the error instead.
    fn wait_for_workers(&self) -> Result<(), KvError> {
        while self.rows.sealed_memtable_count() >= STALLING_MEMTABLES
            || self.rows.l0_table_count() > MAX_UNMERGED_TABLES
        {
            self.hand_over()?;
            thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    /// Hands the journal's data in memory to the operating system. Fails if a worker ended with an error.
    fn hand_over(&self) -> Result<(), KvError> {
        guard(|| self.database.persist(PersistMode::Buffer))
    }
}

/// Makes the journal of a store durable. A killed process may have left data that is not durable, and runs continue
/// from this data.
fn sync_journal(path: &Path) -> Result<(), StoreError> {
    let journal = ActiveJournal::find(path.join(FJALL)).map_err(StoreError::Io)?;
    Ok(journal.sync()?)
}

/// Opens fjall's database in a folder.
fn database(folder: &Path, cache_bytes: u64, name: &str) -> Result<Database, StoreError> {
    let opened = guard(|| {
        let opened = Database::builder(folder)
            .cache_size(cache_bytes)
            .manual_journal_persist(true)
            .worker_threads(WORKERS)
            .open();
        match opened {
            Err(fjall::Error::Locked) => Ok(None),
            opened => opened.map(Some),
        }
    });
    opened?.ok_or_else(|| locked(name))
}

impl DiskKv for Fjall {
    fn open_store(dir: &Path, options: StoreOptions) -> Result<FjallStore, StoreError> {
        FjallStore::open_with(dir, options)
    }

    fn open_unchecked(path: &Path) -> Result<Self, StoreError> {
        create_directories(path).map_err(StoreError::Io)?;
        let options = StoreOptions::default();
        let name = path.display().to_string();
        let mark = || Watermark::fresh(path).map_err(StoreError::Io);
        let opened = OpenedFjall::at(path, options, mark, &name)?;
        restrict_modes(path).map_err(StoreError::Io)?;
        Ok(Self {
            dir: path.to_owned(),
            name,
            options,
            identities: opened.file_identities(path)?,
            open: RwLock::new(Some(opened)),
            _owned: OwnedDirectory(path.to_owned()),
            _scratch: None,
        })
    }

    fn read_intact_rows(path: &Path) -> Result<ReadableRows, StoreError> {
        journal::read_intact_rows(path)
    }
}

impl Kv for Fjall {
    type Bytes = Slice;
    type Backup = Self;
    // A commit may have to wait until this many bytes of other commits are durable.
    const MAX_UNSYNCED: usize = 1 << 20;

    fn get(&self, key: &[u8]) -> Result<Option<Slice>, KvError> {
        self.with(|open| guard(|| open.rows.get(key)))
    }

    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Slice>> + '_ {
        let pair: fn(Guard) -> fjall::Result<KvPair> = Guard::into_inner;
        GuardedIter::of(self.with(|open| {
            guard(|| Ok::<_, fjall::Error>(open.rows.range::<Vec<u8>, _>(range).map(pair)))
        }))
    }

    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError> {
        self.with(|open| {
            open.wait_for_workers()?;
            guard(|| {
                let mut ops = open.database.batch();
                for (key, value) in batch.ops() {
                    match value {
                        Some(value) => ops.insert(&open.rows, key, value),
                        None => ops.remove(&open.rows, key),
                    }
                }
                ops.commit()
            })
        })
    }

    fn flush(&self) -> Result<(), KvError> {
        self.with(OpenedFjall::hand_over)
    }

    fn sync(&self, group: u64) -> Result<(), KvError> {
        self.with(|open| {
            open.journal.sync()?;
            self.identities.check()?;
            open.mark.set(group);
            Ok(())
        })
    }

    fn durable_snapshot(&self) -> Option<MemoryStore> {
        // The lock prevents `reopen` from changing the files while they are read. Even a `reopen` that fails may have
        // written to them.
        let _open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        check_undamaged(&self.dir).ok()?;
        let scratch = Scratch::copy_store(&self.dir).ok()?;
        let store = open_copy(scratch, &self.name).ok()?;
        let last = store.reader.root().ok()??.group;
        let whole = (read_watermark(&self.dir.join(DIRECTORY)).ok()? == last).then_some(store)?;
        whole.in_memory().ok()
    }

    fn reopen(&self) -> Result<(), StoreError> {
        // If files are missing, opening would create an empty database, so check first.
        self.check_present()?;
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        drop(open.take());
        for file in files(&self.dir.join(DIRECTORY)).map_err(StoreError::Io)? {
            forget_cached(&file);
        }
        let path = self.dir.join(DIRECTORY);
        check_archives(&path.join(FJALL))?;
        sync_journal(&path)?;
        *open = Some(OpenedFjall::open(&self.dir, self.options, &self.name)?);
        Ok(())
    }

    fn synced(&self) -> u64 {
        self.with(|open| Ok(open.mark.group())).unwrap_or(0)
    }

    fn mark_floor(&self) -> u64 {
        self.with(|open| Ok(open.mark.floor())).unwrap_or(0)
    }

    fn check_present(&self) -> Result<(), KvError> {
        self.identities.check()?;
        match self.with(|open| open.journal.check()) {
            Err(KvError::Closed) => Ok(()),
            checked => checked,
        }
    }
}

/// Opens a temporary copy of the store of a state directory that no process owns. Without space for a copy, opens
/// the store itself. A damaged store is refused first, because fjall would truncate its journal.
///
/// # Errors
/// The errors of [`FjallStore::open_with`].
pub(super) fn open_for_inspection(dir: &Path) -> Result<FjallStore, StoreError> {
    let (name, path) = (dir.display().to_string(), dir.join(DIRECTORY));
    let unowned = lock(dir, &path, FlockArg::LockSharedNonblock);
    let unowned = unowned.map_err(|error| path_error(error, &name))?;
    check_undamaged(dir)?;
    let scratch = Scratch::copy_store(dir).map_err(StoreError::Io);
    drop(unowned);
    match scratch.and_then(|scratch| open_copy(scratch, &name)) {
        Err(StoreError::Io(_) | StoreError::Unopened { .. }) => {
            FjallStore::open_with(dir, StoreOptions::default())
        }
        opened => opened,
    }
}

/// Refuses a store if fjall would lose acknowledged groups of it.
fn check_undamaged(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(DIRECTORY);
    check_journals(&path)?;
    check_archives(&path.join(FJALL))
}

/// Opens a temporary copy of a store. The copy is removed when the store is closed.
fn open_copy(scratch: Scratch, name: &str) -> Result<FjallStore, StoreError> {
    let at = scratch.path().to_owned();
    let path = at.join(DIRECTORY);
    prepare_journals(&path)?;
    let options = StoreOptions::default();
    // Not with `open`, which changes the modes of files: the tables may be those of the store.
    let opened = OpenedFjall::at(&path, options, || Watermark::open(&path), name)?;
    let mut database = Fjall::of(opened, &at, options, name)?;
    database._scratch = Some(scratch);
    FjallStore::recover(database, options.retention, name)
}

impl From<fjall::Error> for KvError {
    fn from(error: fjall::Error) -> Self {
        use fjall::{Error, LsmError};
        use io::ErrorKind as Kind;
        match error {
            Error::Io(error) | Error::Storage(LsmError::Io(error)) => match error.kind() {
                // fjall seeks to a negative offset if a file is too short.
                Kind::UnexpectedEof | Kind::InvalidData | Kind::InvalidInput => {
                    Self::Corrupt(error.to_string())
                }
                Kind::NotFound => Self::Corrupt(String::from("a file of the database is missing")),
                _ => Self::Io(error),
            },
            Error::Poisoned => Self::Io(io::Error::other(POISONED)),
            Error::JournalRecovery(why) => {
                Self::Corrupt(format!("a journal in `store/fjall` does not read: {why:?}"))
            }
            Error::Storage(LsmError::Unrecoverable) => {
                Self::Corrupt(String::from("a table in `store/fjall` is missing"))
            }
            Error::InvalidVersion(_) => Self::Corrupt(String::from(
                "`store/fjall/version` is not what was written",
            )),
            other => Self::Corrupt(other.to_string()),
        }
    }
}
