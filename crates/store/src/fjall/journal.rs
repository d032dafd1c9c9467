//! fjall's journal: the file to which fjall appends every batch before the batch is in a table. (It is not the journal
//! of a run.) This file syncs the journal, and reads a journal that may be damaged. It never opens the database.
//! A batch has a start with its number of items and its sequence number, then the items, then an end with a checksum
//! and four fixed bytes.

use super::FJALL;
use super::archive::{check_archives, check_plain};
use super::tables::{self, Versions};
use crate::StoreError;
use crate::codec;
use crate::directory::{sync_files, written_bytes};
use crate::disk::ReadableRows;
use crate::header::Root;
use crate::integrity::IntegrityReport;
use crate::keys::Family;
use crate::kv::{KvError, guard};
use crate::rows::{corrupt, ends_too_early, lock};
use crate::watermark::read_watermark;
use lsm_tree::{AbstractTree, Config, SequenceNumberCounter as Counter};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use std::{iter, mem, thread};
use windlass_inode::Inode;
use xxhash_rust::xxh3::xxh3_64;

/// The extension of a journal's name.
const ENDING: &str = "jnl";

/// The journals are rewritten only if at least this many bytes of them are already in tables.
const STALE: usize = 1 << 20;

/// A removed journal is truncated in steps of this many bytes, with a pause after each step.
const CUT: u64 = 4 << 20;
const BETWEEN_CUTS: Duration = Duration::from_millis(20);

/// The last bytes of a batch.
const MAGIC: &[u8] = b"FJL\x03";

/// The active journal, with a file handle of our own. fjall's handle is not accessible. A sync through fjall would
/// prevent other threads from writing while it runs.
pub(super) struct ActiveJournal {
    folder: PathBuf,
    /// The number of the journal, and its file.
    current: Mutex<(u64, File)>,
    /// Earlier journals whose files are still open here. fjall has not removed them yet.
    earlier: Mutex<Vec<File>>,
}

impl ActiveJournal {
    /// Finds the journal of a database that was just opened.
    pub fn find(folder: PathBuf) -> io::Result<Self> {
        let last = numbered_journals(&folder)?.pop_last();
        let (number, path) = last.ok_or_else(|| io::Error::other("it has no journal"))?;
        Ok(Self {
            current: Mutex::new((number, open_journal(&path)?)),
            earlier: Mutex::default(),
            folder,
        })
    }

    /// Makes all data durable that was handed to the system before. Fails if the journal is not at its path. When a
    /// journal is full, fjall syncs it and its name before it creates the next one, so only the active journal needs a
    /// sync here.
    pub fn sync(&self) -> Result<(), KvError> {
        let mut current = lock(&self.current);
        self.free_removed();
        loop {
            while let Some(next) = self.next(current.0)? {
                let (_, earlier) = mem::replace(&mut *current, next);
                lock(&self.earlier).push(earlier);
            }
            current.1.sync_data()?;
            if self.is_in_place(&current)? {
                return Ok(());
            }
        }
    }

    /// Releases the space of journals that fjall has removed. The system retains a removed file's space while the file
    /// is open, so the space can be released in steps. Freeing a whole journal at once would make commits wait for the
    /// file system.
    fn free_removed(&self) {
        let mut earlier = lock(&self.earlier);
        for file in earlier.extract_if(.., |file| is_removed(file)) {
            // If no thread can be started, the file is closed here, which releases the space at once.
            drop(thread::Builder::new().spawn(move || free(&file)));
        }
    }

    /// Fails if the journal is not at its path.
    pub fn check(&self) -> Result<(), KvError> {
        match self.current.try_lock() {
            Ok(current) => self.is_in_place(&current).map(drop),
            // Another thread has the lock: it syncs the journal now, and checks the path as well.
            Err(_) => Ok(()),
        }
    }

    /// Returns true if the journal is at its path. Returns false if fjall has removed it, because all of it is in
    /// tables, and there is a later one. Fails if the journal is missing for another reason.
    fn is_in_place(&self, (number, file): &(u64, File)) -> Result<bool, KvError> {
        let path = self.path(*number);
        if Inode::at(&path).ok() == Some(Inode::of(file)?) {
            return Ok(true);
        }
        match self.next(*number)? {
            Some(_) => Ok(false),
            None => Err(KvError::Gone(path.display().to_string())),
        }
    }

    /// Returns the first existing journal after journal `number`, if there is one. fjall removes journals in order,
    /// after all of their content is in tables. So if the last sync was long ago, several journals may be missing.
    fn next(&self, number: u64) -> io::Result<Option<(u64, File)>> {
        let mut next = (number + 1, self.path(number + 1));
        loop {
            match open_journal(&next.1) {
                Ok(file) => return Ok(Some((next.0, file))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            // `Inode` does not read the file's times, because reading them would slow the sync that follows.
            if Inode::at(&self.path(number)).is_ok() {
                return Ok(None);
            }
            let mut journals = match numbered_journals(&self.folder) {
                // The folder was removed together with the journals.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                journals => journals?,
            };
            // A journal that is removed between these calls is never the last one, so this loop ends.
            match journals.split_off(&(number + 1)).pop_first() {
                Some(later) => next = later,
                None => return Ok(None),
            }
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.{ENDING}"))
    }
}

fn open_journal(journal: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(journal)
}

fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() == 0)
}

fn free(removed: &File) {
    let mut length = removed.metadata().map_or(0, |found| found.len());
    while length > 0 {
        length = length.saturating_sub(CUT);
        if removed.set_len(length).is_err() {
            return;
        }
        thread::sleep(BETWEEN_CUTS);
    }
}

/// Returns the journals in a folder by number. fjall wrote them in the order of these numbers.
fn numbered_journals(folder: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let journal = path.extension().is_some_and(|ending| ending == ENDING);
        let number = path
            .file_stem()
            .and_then(|name| name.to_str()?.parse().ok());
        if let (true, Some(number)) = (journal, number) {
            found.insert(number, path);
        }
    }
    Ok(found)
}

/// Reads the written part of a journal, without the space that fjall reserved after it.
fn read_written(journal: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(journal)?;
    let length = written_bytes(&file)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.rewind()?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A complete batch.
struct Batch<'a> {
    sequence: u64,
    count: u32,
    items: &'a [u8],
    /// The checksum of the items.
    checksum: u64,
    /// The bytes of the whole batch, with its start and its end.
    whole: &'a [u8],
}

/// A key with its value. The value is `None` if the item removes the key.
type Item<'a> = (&'a [u8], Option<&'a [u8]>);

impl<'a> Batch<'a> {
    fn items(&self) -> impl Iterator<Item = Item<'a>> {
        let mut rest = self.items;
        (0..self.count).map_while(move |_| item(&mut rest))
    }

    /// Returns true if the checksum matches. A power cut may leave a start and an end, with damaged items between them.
    fn is_what_was_written(&self) -> bool {
        xxh3_64(self.items) == self.checksum
    }
}

/// Splits off the first batch of `bytes`. Returns `None` if the bytes do not begin with a complete batch.
fn batch<'a>(bytes: &mut &'a [u8]) -> Option<Batch<'a>> {
    let mut rest = *bytes;
    let (1, count) = take(&mut rest, 5)?.split_first()? else {
        return None;
    };
    let count = u32::from_le_bytes(count.try_into().ok()?);
    let sequence = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
    let from = rest;
    for _ in 0..count {
        item(&mut rest)?;
    }
    let (items, _) = from.split_at_checked(from.len() - rest.len())?;
    let (3, end) = take(&mut rest, 13)?.split_first()? else {
        return None;
    };
    let (checksum, MAGIC) = end.split_first_chunk()? else {
        return None;
    };
    let whole = take(bytes, bytes.len() - rest.len())?;
    Some(Batch {
        sequence,
        count,
        items,
        checksum: u64::from_le_bytes(*checksum),
        whole,
    })
}

/// Splits off the first item of a batch.
fn item<'a>(rest: &mut &'a [u8]) -> Option<Item<'a>> {
    // The first bytes of an item: its tag, the kind of the value, the compression, the keyspace, and the lengths.
    let head = take(rest, 21)?;
    let (&[2, kind, 0], lengths) = head.split_first_chunk()? else {
        return None;
    };
    let (key, lengths) = lengths.get(8..)?.split_first_chunk()?;
    let (value, stored) = lengths.split_first_chunk()?;
    if value != stored {
        return None;
    }
    let key = take(rest, usize::from(u16::from_le_bytes(*key)))?;
    let value = take(rest, usize::try_from(u32::from_le_bytes(*value)).ok()?)?;
    Some((key, (kind == 0).then_some(value)))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Returns the complete batches of a journal. Also returns the offset of the first incomplete batch; `None` if only
/// unused space follows the last complete batch.
fn batches(bytes: &[u8]) -> (Vec<Batch<'_>>, Option<u64>) {
    let mut rest = bytes;
    let next = || {
        let mut behind = rest;
        let found = batch(&mut behind).filter(Batch::is_what_was_written)?;
        rest = behind;
        Some(found)
    };
    let found = iter::from_fn(next).collect();
    let torn = rest.iter().any(|byte| *byte != 0);
    (found, torn.then_some((bytes.len() - rest.len()) as u64))
}

/// Returns the number of the group (writes of several commits together) that a batch contains.
fn group(batch: &Batch<'_>) -> Option<u64> {
    let key = [Family::Root.byte()];
    group_of(batch.items().find(|(found, _)| *found == key)?.1?)
}

/// Returns the number of the group in a root row.
fn group_of(row: &[u8]) -> Option<u64> {
    let body = codec::check(&[Family::Root.byte()], row).ok()?.body;
    let root: Root = codec::decode(row.get(body)?).ok()?;
    Some(root.group)
}

/// The journals of a store, and what was read of each.
struct Journals {
    paths: BTreeMap<u64, PathBuf>,
    bytes: Vec<Vec<u8>>,
}

impl Journals {
    fn read(path: &Path) -> Result<Self, StoreError> {
        let folder = path.join(FJALL);
        let paths = numbered_journals(&folder).map_err(missing)?;
        let mut all = paths.values();
        all.try_for_each(|journal| check_plain(&folder, journal))?;
        let bytes: io::Result<_> = paths.values().map(|path| read_written(path)).collect();
        let bytes = bytes.map_err(StoreError::Io)?;
        Ok(Self { paths, bytes })
    }

    /// Returns the last journal, the complete batches of all journals, and the offset of an incomplete batch at the end
    /// of the last journal. Refuses the journals if fjall would lose acknowledged groups: it treats damage in a journal
    /// as the journal's end.
    fn check(&self, path: &Path) -> Result<(&Path, Vec<Batch<'_>>, Option<u64>), StoreError> {
        let acknowledged = read_watermark(path)?;
        let Some(active) = self.paths.values().next_back() else {
            return Err(corrupt("its journal is missing"));
        };
        let (mut found, mut torn) = (Vec::new(), None);
        for bytes in &self.bytes {
            // Only the last journal may have an incomplete end. This one is after an incomplete end.
            if torn.is_some() {
                return Err(corrupt("a journal of it cannot be read to its end"));
            }
            let (whole, end) = batches(bytes);
            found.extend(whole);
            torn = end;
        }
        // If no journal contains a group, the last group is in a table, or in an incomplete batch.
        let last = match found.iter().rev().find_map(group) {
            None if torn.is_some() => {
                let row = tables::newest(path, &[Family::Root.byte()])?;
                Some(row.and_then(|row| group_of(&row)).unwrap_or(0))
            }
            last => last,
        };
        match last.and_then(|last| ends_too_early(acknowledged, last)) {
            Some(error) => Err(error),
            None => Ok((active, found, torn)),
        }
    }
}

/// Refuses the journals of a store if fjall would lose acknowledged groups. Changes nothing.
pub(super) fn check_journals(path: &Path) -> Result<(), StoreError> {
    Journals::read(path)?.check(path).map(drop)
}

/// Prepares the journals of a store before fjall opens them. Refuses them as [`check_journals`] does.
/// This also truncates an incomplete end, because fjall cannot open every incomplete end that a full disk leaves. It
/// also removes batches that are already in tables.
pub(super) fn prepare_journals(path: &Path) -> Result<(), StoreError> {
    let journals = Journals::read(path)?;
    let (active, found, torn) = journals.check(path)?;
    if let Some(end) = torn {
        cut(active, end).map_err(StoreError::Io)?;
    }
    // This may fail because the disk is full. Then fjall reads the whole journals. fjall itself reports any other error
    // when it opens.
    if let Err(error) = drop_batches_in_tables(&path.join(FJALL), &found, &journals.paths) {
        tracing::debug!(%error, "the journal contains rows of tables");
    }
    Ok(())
}

fn cut(journal: &Path, end: u64) -> io::Result<()> {
    let journal = File::options().write(true).open(journal)?;
    journal.set_len(end)?;
    journal.sync_all()
}

/// Rewrites the journals without the batches that are in tables, if these batches are large. Otherwise fjall reads and
/// encodes all of them each time it opens. If the process ends during this, the journals still have all batches that
/// are in no table.
fn drop_batches_in_tables(
    folder: &Path,
    batches: &[Batch<'_>],
    journals: &BTreeMap<u64, PathBuf>,
) -> Result<(), StoreError> {
    let all: usize = batches.iter().map(|batch| batch.whole.len()).sum();
    let mut paths = journals.values().rev();
    let (Some(active), true) = (paths.next(), all > STALE) else {
        return Ok(());
    };
    let keyspaces = folder.join("keyspaces");
    let tree = keyspaces.join("1");
    // Check the folder first: if it is missing, opening would create an empty tree.
    check_archives(folder)?;
    let tree = Config::new(tree, Counter::default(), Counter::default());
    let tree = guard(|| tree.open().map_err(fjall::Error::from))?;
    let last = tree.get_highest_persisted_seqno();
    // The batches may not be sorted: a killed process may have left an old journal next to the rewritten one. So each
    // batch is compared on its own.
    let in_tables = |batch: &&Batch<'_>| last.is_some_and(|last| batch.sequence <= last);
    let (stale, retained): (Vec<_>, Vec<_>) = batches.iter().partition(in_tables);
    if stale.iter().map(|batch| batch.whole.len()).sum::<usize>() < STALE {
        return Ok(());
    }
    // A process that was killed may have left a table that is not durable. Sync the tables before batches are removed
    // from the journals.
    let written = sync_files(&keyspaces).and_then(|()| {
        let fresh = active.with_extension("new");
        let mut file = BufWriter::new(File::create(&fresh)?);
        for batch in retained {
            file.write_all(batch.whole)?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&fresh, active)?;
        File::open(folder)?.sync_all()?;
        paths.try_for_each(fs::remove_file)
    });
    written.map_err(StoreError::Io)
}

fn missing(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => corrupt("its folder `store/fjall` is missing"),
        _ => StoreError::Io(error),
    }
}

/// Reads the rows of a damaged store from its tables, and from those batches in its journals that are not in tables
/// yet.
pub(super) fn read_intact_rows(path: &Path) -> Result<ReadableRows, StoreError> {
    let mut report = IntegrityReport::default();
    let mut rows = Versions::new();
    let in_tables = tables::read(path, &mut rows, &mut report);
    for journal in numbered_journals(&path.join(FJALL))
        .map_err(missing)?
        .values()
    {
        if let Err(error) = check_plain(path, journal) {
            report.note(None, "a journal", &error);
            continue;
        }
        let bytes = read_written(journal).map_err(StoreError::Io)?;
        let mut rest = bytes.as_slice();
        let mut damaged = false;
        while !rest.is_empty() {
            let Some(batch) = batch(&mut rest) else {
                // The next complete batch may be after the damage, so search for the first byte of one.
                let next = rest.iter().skip(1).position(|byte| *byte == 1);
                damaged |= rest.iter().any(|byte| *byte != 0);
                rest = next
                    .and_then(|next| rest.get(next + 1..))
                    .unwrap_or_default();
                continue;
            };
            if in_tables.is_some_and(|last| batch.sequence <= last) {
                continue;
            }
            for (key, value) in batch.items() {
                tables::take(&mut rows, key, batch.sequence, value);
            }
        }
        if damaged {
            let name = journal.file_name().unwrap_or_default().display();
            let error = corrupt(&format!("`{name}` has bytes that are not a complete batch"));
            report.note(None, "a journal", &error);
        }
    }
    let rows = rows.into_iter();
    let rows = rows.filter_map(|(key, (_, value))| Some((key, value?)));
    Ok((rows.collect(), report))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the journal `made`, and removes the journal `removed`, as fjall does when all of `removed` is in tables.
    fn rotate(folder: &Path, made: u64, removed: u64) {
        File::create(folder.join(format!("{made}.{ENDING}"))).unwrap();
        fs::remove_file(folder.join(format!("{removed}.{ENDING}"))).unwrap();
    }

    #[test]
    fn a_journal_is_found_however_often_it_was_rotated_since_the_last_sync() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("0.jnl")).unwrap();
        let journal = ActiveJournal::find(dir.path().to_owned()).unwrap();
        journal.sync().unwrap();
        for rotations in 1..=5 {
            let last = lock(&journal.current).0;
            for number in last + 1..=last + rotations {
                rotate(dir.path(), number, number - 1);
            }
            journal.check().unwrap();
            journal.sync().unwrap();
            assert_eq!(lock(&journal.current).0, last + rotations);
        }
        // fjall never removes the last journal while it is open.
        let last = lock(&journal.current).0;
        fs::remove_file(dir.path().join(format!("{last}.{ENDING}"))).unwrap();
        assert!(matches!(journal.sync(), Err(KvError::Gone(_))));
        fs::remove_dir(dir.path()).unwrap();
        assert!(matches!(journal.check(), Err(KvError::Gone(_))));
        assert!(matches!(journal.sync(), Err(KvError::Gone(_))));
    }
}
