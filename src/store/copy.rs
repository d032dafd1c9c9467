//! Copies of a store: a backup, a store that is restored, and one without the room that rows left
//! which are gone. A copy is a store of its own: made beside its place, read again, and put there when
//! all of it is durable. The store that is copied may be written to meanwhile; what the copy has is what
//! that was at one moment, at the end.

use super::codec;
use super::creation_lock::{lock, locked};
use super::directory::{
    DIRECTORY, create_directories, exchange, fresh_store, not_a_link, numbered, swap,
};
use super::disk::{Disk, StoreOptions, with_database};
use super::integrity::IntegrityReport;
use super::keys::{self, Family};
use super::kind::StoreKind;
use super::kv::{Kv, KvError, prefixed};
use super::mark::acknowledged;
use super::rows::{Rows, corrupt};
use super::write_batch::WriteBatch;
#[cfg(feature = "fjall")]
use super::{MemoryStore, memory::Memory};
use super::{Store, StoreError};
use nix::fcntl::FlockArg;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A database that was closed lets go of its lock while somebody asks so often, on a busy machine too.
const ASKED: u32 = 1_000;
const ASKED_EVERY: Duration = Duration::from_millis(10);

/// A batch with more than this is applied.
const FULL: usize = 1 << 20;

/// What is under way to a copy.
struct Copy<'a, T: Kv> {
    into: &'a T,
    batch: WriteBatch,
    /// The runs that it has, each with the checksum of its head.
    runs: BTreeMap<Vec<u8>, u32>,
    programs: BTreeSet<Vec<u8>>,
}

impl<T: Kv> Copy<'_, T> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        self.batch.copy(key, value);
        self.flush(FULL)
    }

    fn flush(&mut self, above: usize) -> Result<(), KvError> {
        if self.batch.len() > above {
            self.into.apply(&self.batch)?;
            self.into.flush()?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Takes away what the copy has of a run.
    fn remove_run(&mut self, run: &str) -> Result<(), KvError> {
        self.flush(0)?;
        for prefix in rows_of(run) {
            let keys: Result<Vec<_>, _> = self.into.range(prefixed(&prefix)).collect();
            for (key, _) in keys? {
                self.batch.remove(|out| out.extend_from_slice(key.as_ref()));
            }
        }
        self.flush(0)
    }
}

/// What the keys of all rows of a run begin with.
fn rows_of(run: &str) -> impl Iterator<Item = Vec<u8>> {
    Family::OF_RUN.into_iter().map(move |family| {
        let mut prefix = Vec::new();
        keys::of_run(&mut prefix, family, run);
        prefix
    })
}

fn run_of(key: &[u8]) -> Result<String, StoreError> {
    let run = keys::parse(key).and_then(|parsed| parsed.run);
    run.ok_or_else(|| corrupt(&format!("{}: its key does not read", keys::describe(key))))
}

impl<K: Kv> Rows<K> {
    /// Copies all rows as they are at one moment. Runs are copied one by one while others are written
    /// to; at the end, while nothing is written, those that moved meanwhile once more.
    pub(super) fn copy_into(&self, into: &impl Kv) -> Result<(), StoreError> {
        let mut copy = Copy {
            into,
            batch: WriteBatch::default(),
            runs: BTreeMap::new(),
            programs: BTreeSet::new(),
        };
        for (key, _) in self.heads()? {
            let _reading = self.reading();
            self.copy_run(&key, &mut copy)?;
        }
        self.copy_programs(&mut copy)?;
        let _reading = self.reading();
        let heads = self.heads()?;
        for key in copy.runs.keys().cloned().collect::<Vec<_>>() {
            if !heads.contains_key(&key) {
                copy.remove_run(&run_of(&key)?)?;
            }
        }
        for (key, crc) in &heads {
            if copy.runs.get(key) != Some(crc) {
                copy.remove_run(&run_of(key)?)?;
                self.copy_run(key, &mut copy)?;
            }
        }
        self.copy_programs(&mut copy)?;
        for family in Family::ALL {
            // The copy has a mark of its own.
            let apart = [Family::Program, Family::Marked].contains(&family);
            if apart || Family::OF_RUN.contains(&family) {
                continue;
            }
            for row in self.rows(prefixed(&[family.byte()])) {
                let (key, value) = row?;
                copy.put(key.as_ref(), value.as_ref())?;
            }
        }
        copy.flush(0)?;
        into.sync(self.root()?.map_or(0, |root| root.group))?;
        Ok(())
    }

    /// The same rows in memory, where nothing can change them.
    #[cfg(feature = "fjall")]
    pub(super) fn in_memory(&self) -> Result<MemoryStore, StoreError> {
        let rows = self.rows(prefixed(&[])).map(|row| {
            let (key, value) = row?;
            Ok((key.as_ref().to_vec(), value.as_ref().to_vec()))
        });
        let rows = rows.collect::<Result<_, StoreError>>()?;
        MemoryStore::recover(
            Memory::of(rows, self.kv.synced()),
            self.retention,
            "the store",
        )
    }

    /// The keys of all heads, with the checksums of those.
    fn heads(&self) -> Result<BTreeMap<Vec<u8>, u32>, StoreError> {
        let records = self.records(prefixed(&[Family::Header.byte()]));
        let heads = records.map(|row| {
            let (key, first) = row?;
            Ok((key.as_ref().to_vec(), codec::crc_of(first.as_ref())))
        });
        heads.collect()
    }

    /// Copies the run of a head, unless it is gone meanwhile.
    fn copy_run(&self, head: &[u8], copy: &mut Copy<'_, impl Kv>) -> Result<(), StoreError> {
        let Some(first) = self.kv.get(head)? else {
            return Ok(());
        };
        for prefix in rows_of(&run_of(head)?) {
            for row in self.rows(prefixed(&prefix)) {
                let (key, value) = row?;
                copy.put(key.as_ref(), value.as_ref())?;
            }
        }
        copy.runs
            .insert(head.to_vec(), codec::crc_of(first.as_ref()));
        Ok(())
    }

    /// Copies the programs that the copy does not have; one never changes.
    fn copy_programs(&self, copy: &mut Copy<'_, impl Kv>) -> Result<(), StoreError> {
        for row in self.rows(prefixed(&[Family::Program.byte()])) {
            let (key, value) = row?;
            if copy.programs.insert(key.as_ref().to_vec()) {
                copy.put(key.as_ref(), value.as_ref())?;
            }
        }
        Ok(())
    }

    /// As [`Store::backup`], with what `copy` puts into the new database.
    pub(super) fn copy_to<D: Disk>(
        &self,
        dir: &Path,
        copy: impl FnOnce(&Self, &D) -> Result<(), StoreError>,
    ) -> Result<IntegrityReport, StoreError> {
        let created = create_directories(dir).map_err(StoreError::Io)?;
        let fresh = self.copy_beside(dir, copy)?;
        let path = dir.join(DIRECTORY);
        let put = || {
            fs::rename(&fresh, &path)?;
            for folder in created.iter().filter_map(|folder| folder.parent()) {
                let here = folder.as_os_str().is_empty();
                File::open(if here { Path::new(".") } else { folder })?.sync_all()?;
            }
            File::open(dir)?.sync_all()
        };
        if let Err(error) = put() {
            // Not in its place, where another one may be meanwhile.
            let _ = fs::remove_dir_all(&fresh);
            return Err(StoreError::Io(error));
        }
        let found = opened_again::<D>(dir).and_then(|copy| copy.check());
        if found
            .as_ref()
            .map_or(true, |found| !found.issues.is_empty())
        {
            // It is not what was to be copied: nobody may take it for that.
            let _ = fs::remove_dir_all(&path);
        }
        found
    }

    /// Makes a copy in a state directory, not in its place yet. Nothing of it can be taken back.
    fn copy_beside<D: Disk>(
        &self,
        dir: &Path,
        copy: impl FnOnce(&Self, &D) -> Result<(), StoreError>,
    ) -> Result<PathBuf, StoreError> {
        let epoch = self.epoch();
        let fresh = fresh_store(dir);
        let _ = fs::remove_dir_all(&fresh);
        let copied = D::raw(&fresh).and_then(|db| {
            copy(self, &db)?;
            db.finish(&fresh).map_err(StoreError::Io)?;
            // What can be read may still be on its way to the disk.
            self.wait_durable(epoch)
        });
        if copied.is_err() {
            let _ = fs::remove_dir_all(&fresh);
        }
        copied.map(|()| fresh)
    }
}

/// Opens a store that this process has just closed: threads of the database may have its lock for a moment.
fn opened_again<D: Disk>(dir: &Path) -> Result<Rows<D>, StoreError> {
    for _ in 0..ASKED {
        match D::open_store(dir, StoreOptions::default()) {
            Err(StoreError::Locked { .. }) => thread::sleep(ASKED_EVERY),
            opened => return opened,
        }
    }
    D::open_store(dir, StoreOptions::default())
}

/// Writes the store of a state directory that no process owns anew, without the room that rows left
/// which are gone. Gives how many bytes it had, and has.
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

/// A store that another database keeps now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// How many records were compared.
    pub records: u64,
    /// Where the store is as it was before.
    pub old: PathBuf,
}

/// Puts a copy that another database keeps in the place of a store that no process owns. Every record of
/// both is compared before that. The old one stays beside it. None when that database keeps it already.
///
/// # Errors
/// [`StoreError::Corrupt`] when it cannot be read in full, [`StoreError::Io`] when there is no room for
/// both: the store is as it was then.
pub fn convert(dir: &Path, to: StoreKind) -> Result<Option<Converted>, StoreError> {
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

fn convert_to<F: Disk, T: Disk>(
    dir: &Path,
    store: Rows<F>,
    name: &str,
) -> Result<Converted, StoreError> {
    let mut records = 0;
    let old = match dir.join(name) {
        taken if taken.exists() => numbered(dir, name),
        free => free,
    };
    let copy = |store: &Rows<F>, beside: &Path| {
        let found = store.copy_to(beside, |store, into: &T| store.copy_into(into))?;
        records = same(store, &T::open_store(beside, StoreOptions::default())?)?;
        Ok(found)
    };
    replace(dir, store, copy, |path, fresh| {
        exchange(dir, path, fresh, &old)
    })?;
    Ok(Converted { records, old })
}

/// Compares all rows of two stores; gives how many each has.
fn same(one: &Rows<impl Kv>, other: &Rows<impl Kv>) -> Result<u64, StoreError> {
    // Each has a mark of its own.
    fn rows<K: Kv>(of: &Rows<K>) -> impl Iterator<Item = Result<(K::Bytes, K::Bytes), StoreError>> {
        of.rows(prefixed(&[])).filter(|row| match row {
            Ok((key, _)) => key.as_ref().first() != Some(&Family::Marked.byte()),
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

/// Puts a copy of a store, which is made beside it and read in full, in its place: `put` gets both.
pub(super) fn replace<D: Disk>(
    dir: &Path,
    store: Rows<D>,
    copy: impl FnOnce(&Rows<D>, &Path) -> Result<IntegrityReport, StoreError>,
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<(), StoreError> {
    let (path, beside) = (dir.join(DIRECTORY), fresh_store(dir));
    not_a_link(&path).map_err(StoreError::Io)?;
    let fresh = beside.join(DIRECTORY);
    let replaced = copy(&store, &beside).and_then(|found| {
        if let Some(issue) = found.issues.first() {
            return Err(corrupt(&format!("{}: {}", issue.what, issue.error)));
        }
        let copied = acknowledged(&fresh)?;
        drop(store);
        // Whoever was faster may have written to it.
        let _alone = lock(dir, &path, FlockArg::LockExclusiveNonblock)?;
        if acknowledged(&path)? != copied {
            return Err(locked(&dir.display().to_string()));
        }
        put(&path, &fresh).map_err(StoreError::Io)
    });
    // What cannot be removed is removed by the next process.
    let _ = fs::remove_dir_all(&beside);
    replaced
}

/// Puts the store of one state directory, copied, into another one. One that is there already stays
/// beside it; gives where.
///
/// # Errors
/// When the one cannot be opened or read in full, or a process owns the other.
pub fn restore(
    from: &dyn Store,
    dir: &Path,
) -> Result<(IntegrityReport, Option<PathBuf>), StoreError> {
    let path = dir.join(DIRECTORY);
    if !path.exists() {
        return Ok((from.backup(dir)?, None));
    }
    not_a_link(&path).map_err(StoreError::Io)?;
    // Whatever is there, as long as nobody owns it.
    let _alone = match lock(dir, &path, FlockArg::LockExclusiveNonblock) {
        Err(error @ StoreError::Locked { .. }) => return Err(error),
        lock => lock.ok(),
    };
    // In a state directory of its own it is read again before it is in its place.
    let beside = fresh_store(dir);
    let _ = fs::remove_dir_all(&beside);
    let restored = from.backup(&beside).and_then(|found| {
        if !found.issues.is_empty() {
            return Ok((found, None));
        }
        let old = numbered(dir, "store.replaced");
        exchange(dir, &path, &beside.join(DIRECTORY), &old).map_err(StoreError::Io)?;
        Ok((found, Some(old)))
    });
    let _ = fs::remove_dir_all(&beside);
    restored
}

/// How many bytes the files of a database take on the disk.
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
