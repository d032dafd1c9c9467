//! The keys of the rows of a file. `appendFile` with the input `key` drops a row if the file already has its key. The
//! keys are on disk, so they need constant memory.
//!
//! `FILE.keys` is a list with one record per row: the hash of the row's key, and the position in the file where the row
//! ends. The end in the last record is the end of the file. If it is not, rows were written without keys. The list is
//! synced before the rows are written, so it has the key of every row in the file. If the end in a record is after the
//! committed end of the file, the append of the row was not committed. Such a record is ignored, and the next append
//! cuts it off.
//!
//! `FILE.keys.index` is a hash table of positions in that list. A lookup reads and compares the record at each position
//! that it finds in the table, so positions in the table may be out of date. If the table is missing, it is built again
//! from the list.

use crate::sink;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use windlass_expression::Value;
use windlass_model::model::sha256;

/// The first bytes of a list.
const LIST_HEADER: [u8; RECORD] = *b"windlass keys of rows 1\n";

/// The offset of the hash of the key expression, which is after the header.
const EXPRESSION: u64 = RECORD as u64;
/// Number of records that the header and this hash occupy.
const HEADERS: u64 = 2;

/// Size in bytes of a record: a hash and an end.
const RECORD: usize = HASH + 8;

/// Size in bytes of the hash of a key: among ten million keys, two different ones have the same hash in one of 10^24
/// files.
const HASH: usize = 16;

/// The first bytes of a table.
const TABLE_MAGIC: u64 = u64::from_be_bytes(*b"wl-idx-1");

/// Number of bytes before the slots of a table: the magic number, the number of slots, and the number of synced
/// records.
const TABLE_HEADER: usize = 24;

/// The number of slots of a new table, a power of two.
const FIRST_SLOTS: u64 = 1 << 12;
/// The factor by which a table grows, a power of two.
const GROWTH: u64 = 8;

/// Number of slots that are read at once.
const CHUNK: usize = 8;

/// Number of low bits of a slot that hold the position of a record plus one. The high bits hold a part of its hash.
const POSITION_BITS: u32 = 40;
const POSITION: u64 = (1 << POSITION_BITS) - 1;

/// Number of records that are inserted into the table between two syncs. At most this number of records is inserted
/// again after a crash.
const UNSYNCED: u64 = 1 << 16;

/// The hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyHash([u8; HASH]);

impl KeyHash {
    /// The hash in a record that has an end but no row, such as the end of the header of a CSV file.
    pub(super) const NONE: Self = Self([0; HASH]);

    /// Hashes the JSON of a key: `1` and `"1"` are two keys.
    pub(super) fn of(key: &Value) -> Self {
        let mut hash = [0; HASH];
        let digest = sha256(key.to_json().as_bytes());
        hash.iter_mut()
            .zip(digest)
            .for_each(|(to, from)| *to = from);
        Self(hash)
    }

    fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Returns the slot at which the search for this hash begins.
    fn home(self, slots: u64) -> u64 {
        let low = self.number() & u128::from(slots - 1);
        u64::try_from(low).unwrap_or_default()
    }

    fn slot(self, position: u64) -> u64 {
        let tag = u64::try_from(self.number() >> 104).unwrap_or_default();
        (tag << POSITION_BITS) | (position + 1)
    }
}

/// Returns for each key whether this is its first position in the slice.
pub(super) fn first_of_each(keys: &[KeyHash]) -> Vec<bool> {
    let mut seen = HashSet::new();
    keys.iter().map(|key| seen.insert(*key)).collect()
}

/// The keys of the rows of a file, up to its committed end.
pub(super) struct KeyIndex {
    list: File,
    list_path: PathBuf,
    table: Table,
    /// Number of records whose rows end at or before the committed end.
    count: u64,
}

impl KeyIndex {
    /// Opens the keys of the file at `real`, whose committed length is `end` bytes. `key` is the expression of the
    /// keys. `inserted` is the number of records that this process inserted into the table. Returns `None` if the path
    /// of the list is inside the engine's store.
    ///
    /// # Errors
    /// Returns an error if the file has rows but no list, or if the list is damaged or belongs to other rows or another
    /// expression.
    pub(super) fn open(
        real: &Path,
        end: u64,
        key: &str,
        inserted: u64,
        state: Option<&Path>,
    ) -> io::Result<Option<Self>> {
        let list_path = list_path(real);
        if end > 0 && !list_path.exists() {
            let what = format!(
                "it has rows already, and {}, which has their keys, does not exist: write to a new file, or leave out \
                 `key`",
                list_path.display()
            );
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let Some(list) = sink::open(&list_path, state, true)? else {
            return Ok(None);
        };
        let first = first_bytes(&list)?;
        // The list is new, or a power cut left only parts of its header and the file has no rows. Then begin the list
        // again.
        let is_new = end == 0
            && first
                .iter()
                .zip(LIST_HEADER)
                .all(|(is, of)| *is == of || *is == 0);
        if first != LIST_HEADER && !is_new {
            let what = format!("{} is not a list of keys", list_path.display());
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        if first != LIST_HEADER {
            list.set_len(0)?;
            list.write_all_at(&LIST_HEADER, 0)?;
            sink::sync_name(&list_path)?;
        }
        let expression = KeyHash::of(&Value::text(key));
        if end == 0 {
            list.write_all_at(&expression.0, EXPRESSION)?;
        } else if hash_at_offset(&list, EXPRESSION)? != expression {
            let what = format!("{} has keys of another `key`", list_path.display());
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let count = committed(&list, end)?;
        let last = match count.checked_sub(1) {
            None => 0,
            Some(last) => u64_at(&list, offset(last) + HASH as u64)?,
        };
        if last != end {
            let what = format!(
                "it has rows that were written without `key`, or {} is of another file: write to a new file",
                list_path.display()
            );
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let mut keys = Self {
            table: Table::open(&table_path(real), inserted)?,
            list,
            list_path,
            count,
        };
        keys.insert_from(keys.table.inserted.min(count))?;
        Ok(Some(keys))
    }

    /// Number of records in the table. After a power cut, the table on disk may have fewer.
    pub(super) fn inserted(&self) -> u64 {
        self.table.inserted
    }

    /// Returns for each key whether it is new: not in the file, and not earlier in `keys`.
    pub(super) fn new_keys(&self, keys: &[KeyHash]) -> io::Result<Vec<bool>> {
        let first = first_of_each(keys).into_iter().zip(keys);
        let is_new = |(first, key): (bool, &KeyHash)| Ok(first && !self.contains(*key)?);
        first.map(is_new).collect()
    }

    fn contains(&self, key: KeyHash) -> io::Result<bool> {
        self.table.probe(key, |position| {
            Ok(position < self.count && hash_at(&self.list, position)? == key)
        })
    }

    /// Adds keys with the ends of their rows, durably. Call this before the rows are written, so that no row in the
    /// file lacks its key.
    pub(super) fn add(&mut self, rows: &[(KeyHash, u64)]) -> io::Result<()> {
        let end = offset(self.count);
        if self.list.metadata()?.len() > end {
            // Remove the records of an aborted append from the table first, because their positions get other keys.
            self.table.forget_after(self.count)?;
            self.list.set_len(end)?;
        }
        if rows.is_empty() {
            return Ok(());
        }
        let bytes = rows
            .iter()
            .flat_map(|(KeyHash(hash), end)| hash.iter().copied().chain(end.to_be_bytes()));
        self.list.write_all_at(&bytes.collect::<Vec<u8>>(), end)?;
        self.list.sync_data()?;
        let first = self.count;
        self.count += rows.len() as u64;
        self.insert_from(first)
    }

    /// Inserts the records from position `first` on into the table.
    fn insert_from(&mut self, first: u64) -> io::Result<()> {
        let first = match self.table.has_room_for(self.count) {
            true => first,
            false => {
                self.table = self.table.grown(self.count, &self.list)?;
                self.count
            }
        };
        for position in first..self.count {
            let key = hash_at(&self.list, position)?;
            self.table.insert(key, position)?;
        }
        self.table.inserted = self.count;
        self.table.sync_sometimes()
    }
}

impl std::fmt::Debug for KeyIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeyIndex").field(&self.list_path).finish()
    }
}

/// A hash table on disk, with open addressing.
struct Table {
    file: File,
    path: PathBuf,
    slots: u64,
    /// Number of records in the table.
    inserted: u64,
    /// Number of records in the table's header: these records are still in the table after a power cut.
    synced: u64,
}

impl Table {
    /// Opens the table at a path. Creates an empty one if the file is not a complete table.
    fn open(path: &Path, inserted: u64) -> io::Result<Self> {
        let file = options().open(path)?;
        let slots = u64_at(&file, 8).unwrap_or_default();
        let size = slots
            .checked_mul(8)
            .map(|bytes| bytes + TABLE_HEADER as u64);
        let is_whole = slots.is_power_of_two() && size == Some(file.metadata()?.len());
        if !is_whole || u64_at(&file, 0)? != TABLE_MAGIC {
            return Self::create(path, file, FIRST_SLOTS);
        }
        let synced = u64_at(&file, 16)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            slots,
            inserted: synced.max(inserted),
            synced,
        })
    }

    fn create(path: &Path, file: File, slots: u64) -> io::Result<Self> {
        file.set_len(0)?;
        file.set_len(TABLE_HEADER as u64 + 8 * slots)?;
        let header = [TABLE_MAGIC, slots, 0].map(u64::to_be_bytes);
        file.write_all_at(header.as_flattened(), 0)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            slots,
            inserted: 0,
            synced: 0,
        })
    }

    fn has_room_for(&self, count: u64) -> bool {
        count < self.slots / 10 * 7
    }

    /// Replaces the table by a larger one with the first `count` records of the list.
    fn grown(&self, count: u64, list: &File) -> io::Result<Self> {
        let mut slots = self.slots;
        while count >= slots / 10 * 7 {
            slots *= GROWTH;
        }
        let new = added(&self.path, ".new");
        let mut table = Self::create(&new, options().open(&new)?, slots)?;
        for position in 0..count {
            table.insert(hash_at(list, position)?, position)?;
        }
        table.inserted = count;
        table.sync()?;
        fs::rename(&new, &self.path)?;
        table.path.clone_from(&self.path);
        Ok(table)
    }

    /// Returns true if `is_it` accepts a position that is stored with the bits of this key's hash.
    fn probe(
        &self,
        key: KeyHash,
        mut is_it: impl FnMut(u64) -> io::Result<bool>,
    ) -> io::Result<bool> {
        self.probe_slots(key, |_, slot| {
            let position = (slot & POSITION).checked_sub(1);
            match position {
                None => Ok(Some(false)),
                Some(position) if slot == key.slot(position) && is_it(position)? => Ok(Some(true)),
                Some(_) => Ok(None),
            }
        })
    }

    fn insert(&mut self, key: KeyHash, position: u64) -> io::Result<()> {
        let wanted = key.slot(position);
        let free = self.probe_slots(key, |at, slot| {
            Ok(match slot {
                0 => Some(Some(at)),
                slot if slot == wanted => Some(None),
                _ => None,
            })
        })?;
        match free {
            Some(at) => self
                .file
                .write_all_at(&wanted.to_be_bytes(), slot_offset(at)),
            None => Ok(()),
        }
    }

    /// Visits the slots of a key, in the order of the search, until `visit` returns something.
    fn probe_slots<T>(
        &self,
        key: KeyHash,
        mut visit: impl FnMut(u64, u64) -> io::Result<Option<T>>,
    ) -> io::Result<T> {
        let mut at = key.home(self.slots);
        let mut chunk = [0; 8 * CHUNK];
        for _ in 0..=self.slots {
            let slots = (self.slots - at).min(CHUNK as u64);
            let bytes = usize::try_from(8 * slots).unwrap_or_default();
            let bytes = chunk.get_mut(..bytes).unwrap_or_default();
            self.file.read_exact_at(bytes, slot_offset(at))?;
            for slot in bytes.as_chunks().0 {
                if let Some(found) = visit(at, u64::from_be_bytes(*slot))? {
                    return Ok(found);
                }
                at += 1;
            }
            at %= self.slots;
        }
        Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("{} has no empty slot: remove it", self.path.display()),
        ))
    }

    /// Reduces the number of inserted records to at most `count`, durably.
    fn forget_after(&mut self, count: u64) -> io::Result<()> {
        self.inserted = self.inserted.min(count);
        if self.synced > count {
            self.write_synced(count)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn sync_sometimes(&mut self) -> io::Result<()> {
        match self.inserted.saturating_sub(self.synced) >= UNSYNCED {
            true => self.sync(),
            false => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.write_synced(self.inserted)
    }

    fn write_synced(&mut self, synced: u64) -> io::Result<()> {
        self.synced = synced;
        self.file.write_all_at(&synced.to_be_bytes(), 16)
    }
}

/// Copies the list of a file, if the file has keys, for a copy of the file. The table of the copy is built from its
/// list.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(list_path(from), list_path(to)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => sink::remove_if_there(&table_path(to)),
    }
}

/// Removes the keys of a file that no run will append to.
pub(super) fn remove(real: &Path) -> io::Result<()> {
    sink::remove_if_there(&table_path(real))?;
    sink::remove_if_there(&list_path(real))
}

fn list_path(real: &Path) -> PathBuf {
    added(real, ".keys")
}

fn table_path(real: &Path) -> PathBuf {
    added(real, ".keys.index")
}

fn added(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the number of records whose rows end at or before `end`. The search relies on growing ends. Bytes that were
/// not written before a power cut read as zeros.
fn committed(list: &File, end: u64) -> io::Result<u64> {
    let records = (list.metadata()?.len() / RECORD as u64).saturating_sub(HEADERS);
    let (mut low, mut high) = (0, records);
    while low < high {
        let middle = low + (high - low) / 2;
        let ends = u64_at(list, offset(middle) + HASH as u64)?;
        match ends > 0 && ends <= end {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

fn hash_at(list: &File, position: u64) -> io::Result<KeyHash> {
    hash_at_offset(list, offset(position))
}

fn hash_at_offset(list: &File, at: u64) -> io::Result<KeyHash> {
    let mut hash = [0; HASH];
    list.read_exact_at(&mut hash, at)?;
    Ok(KeyHash(hash))
}

/// Reads the first record of a list. If the file is shorter, the missing bytes are zeros.
fn first_bytes(list: &File) -> io::Result<[u8; RECORD]> {
    let mut record = [0; RECORD];
    let mut length = 0;
    while let Some(rest) = record.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match list.read_at(rest, length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(record)
}

fn u64_at(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_be_bytes(bytes))
}

/// Returns the offset in bytes of a record in a list.
fn offset(position: u64) -> u64 {
    (position + HEADERS) * RECORD as u64
}

/// Returns the offset in bytes of a slot in a table.
fn slot_offset(slot: u64) -> u64 {
    TABLE_HEADER as u64 + 8 * slot
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).create(true).truncate(false);
    options.read(true).write(true);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(numbers: std::ops::Range<i64>) -> Vec<KeyHash> {
        numbers.map(|n| KeyHash::of(&Value::Int(n))).collect()
    }

    /// Adds rows with these keys after `from`, each of ten bytes. Returns the new end of the file.
    fn add(path: &Path, from: u64, inserted: u64, numbers: std::ops::Range<i64>) -> (u64, u64) {
        let mut keys = KeyIndex::open(path, from, "id", inserted, None)
            .unwrap()
            .unwrap();
        let hashes = hashes(numbers);
        assert!(keys.new_keys(&hashes).unwrap().iter().all(|new| *new));
        let ends = (1..).map(|n: u64| from + 10 * n);
        let rows: Vec<(KeyHash, u64)> = hashes.into_iter().zip(ends).collect();
        keys.add(&rows).unwrap();
        let end = rows.last().map_or(from, |(_, end)| *end);
        (end, keys.inserted())
    }

    fn count_new(path: &Path, from: u64, numbers: std::ops::Range<i64>) -> usize {
        let keys = KeyIndex::open(path, from, "id", 0, None).unwrap().unwrap();
        let new = keys.new_keys(&hashes(numbers)).unwrap();
        new.iter().filter(|new| **new).count()
    }

    #[test]
    fn keys_are_found_again_by_every_process_and_after_each_growth() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let (mut end, mut inserted) = (0, 0);
        for from in (0..40_000).step_by(1_000) {
            (end, inserted) = add(&path, end, inserted, from..from + 1_000);
        }
        assert_eq!(count_new(&path, end, 0..40_500), 500);
        fs::remove_file(table_path(&path)).unwrap();
        assert_eq!(count_new(&path, end, 0..40_500), 500);
    }

    #[test]
    fn keys_of_rows_that_were_cut_are_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let (end, _) = add(&path, 0, 0, 0..100);
        // This append is never committed: the next process cuts the file, and writes other rows.
        let _ = add(&path, end, 100, 100..200);
        assert_eq!(count_new(&path, end, 0..200), 100);
        let (end, _) = add(&path, end, 0, 300..350);
        assert_eq!(count_new(&path, end, 100..350), 200);
        assert_eq!(count_new(&path, end, 0..100), 0);
        assert_eq!(count_new(&path, end, 300..350), 0);
    }
}
