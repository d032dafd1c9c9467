//! Reads the rows in the tables of a damaged store. Each table is read on its own. So a damaged table does not affect
//! other tables, and no other file of fjall is needed. This file never writes.

use super::archive::{LIST, fits, newest_list};
use super::{FJALL, TABLES_FOLDER};
use crate::StoreError;
use crate::integrity::IntegrityReport;
use crate::kv::{KvError, guard};
use crate::rows::corrupt;
use lsm_tree::{Cache, Checksum, InternalValue, Table, UserKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The size of the cache for reading tables, in bytes.
const CACHE: u64 = 1 << 20;

/// The newest row of each key, with its sequence number. The row is `None` if the key was removed.
pub(super) type Versions = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

/// Adds a row unless a newer row of its key was added.
pub(super) fn take(rows: &mut Versions, key: &[u8], sequence: u64, value: Option<&[u8]>) {
    if rows.get(key).is_none_or(|(newest, _)| *newest <= sequence) {
        rows.insert(key.to_vec(), (sequence, value.map(<[u8]>::to_vec)));
    }
}

/// Adds all readable rows of tables. Returns the last sequence number: the tables have every row up to this number.
/// Returns `None` if a table cannot be read.
pub(super) fn read(store: &Path, rows: &mut Versions, report: &mut IntegrityReport) -> Option<u64> {
    let folder = store.join(FJALL).join(TABLES_FOLDER);
    let (tables, mut whole) = match listed(&folder) {
        Ok(tables) => (tables, true),
        Err(error) => {
            report.note(None, "the list of its tables", &error);
            (found(&folder), false)
        }
    };
    let mut last = 0;
    for table in tables {
        match one(&folder.join(table.to_string()), rows) {
            Ok(sequence) => last = last.max(sequence),
            Err(error) => {
                whole = false;
                let error = corrupt(&format!("table {table}: {error}"));
                report.note(None, "a table", &error);
            }
        }
    }
    whole.then_some(last)
}

/// Returns the newest row of a key in the tables.
pub(super) fn newest(store: &Path, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let folder = store.join(FJALL).join(TABLES_FOLDER);
    let mut rows = Versions::new();
    for table in listed(&folder)? {
        let table = open(&folder.join(table.to_string()))?;
        let key = UserKey::from(key);
        let mut found = guard(|| Ok::<_, fjall::Error>(table.range(key.clone()..=key)))?;
        while step(&mut rows, &mut || found.next())? {}
    }
    Ok(rows.remove(key).and_then(|(_, row)| row))
}

/// Returns the numbers of the tables that the database uses. A killed process may have left other tables.
fn listed(folder: &Path) -> Result<BTreeSet<u64>, StoreError> {
    let current = folder.with_file_name(LIST);
    let list = newest_list(&current).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => corrupt("it is missing"),
        _ => corrupt(&error.to_string()),
    })?;
    let wrong = || corrupt("it is not what was written");
    let list = list.ok_or_else(wrong)?;
    if !fits(&list).unwrap_or(false) {
        return Err(wrong());
    }
    let bytes = guard(|| {
        let list_of = sfa::Reader::new(&list).map_err(io::Error::other)?;
        let section = list_of.toc().section(b"tables");
        let section = section.ok_or_else(|| io::Error::other("it does not name any tables"))?;
        let mut bytes = Vec::new();
        section.reader(&list)?.read_to_end(&mut bytes)?;
        Ok::<_, fjall::Error>(bytes)
    })?;
    numbers(&bytes).ok_or_else(wrong)
}

/// Reads the numbers of all tables from a list. The list has levels, the runs of each level (sequences of tables), and
/// the tables of each run. A table has a number, a kind of checksum, a checksum, and a sequence number.
fn numbers(bytes: &[u8]) -> Option<BTreeSet<u64>> {
    const BEHIND: usize = 1 + 16 + 8;
    let mut found = BTreeSet::new();
    let (levels, mut rest) = bytes.split_first()?;
    for _ in 0..*levels {
        let (runs, behind) = rest.split_first()?;
        rest = behind;
        for _ in 0..*runs {
            let (tables, behind) = rest.split_first_chunk()?;
            rest = behind;
            for _ in 0..u32::from_le_bytes(*tables) {
                let (number, behind) = rest.split_first_chunk()?;
                found.insert(u64::from_le_bytes(*number));
                rest = behind.get(BEHIND..)?;
            }
        }
    }
    Some(found)
}

/// Returns the numbers of all tables in a folder.
fn found(folder: &Path) -> BTreeSet<u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).collect()
}

fn open(path: &Path) -> Result<Table, KvError> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(KvError::Corrupt(String::from("it is not a regular file")));
    }
    if !fits(path)? {
        return Err(KvError::Corrupt(String::from("it is not what was written")));
    }
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE));
    let (checksum, numbers) = (Checksum::from_raw(0), 0);
    guard(|| {
        Table::recover(path.into(), checksum, numbers, 0, cache, None, false, true)
            .map_err(fjall::Error::from)
    })
}

/// Adds the next row of a table. Returns false after the last row.
fn step(
    rows: &mut Versions,
    next: &mut dyn FnMut() -> Option<lsm_tree::Result<InternalValue>>,
) -> Result<bool, KvError> {
    let row = guard(|| next().transpose().map_err(fjall::Error::from))?;
    let Some(InternalValue { key, value }) = row else {
        return Ok(false);
    };
    let value = (!key.value_type.is_tombstone()).then_some(&*value);
    take(rows, &key.user_key, key.seqno, value);
    Ok(true)
}

/// Adds the rows of a table. Reads from both ends, so that only the rows at an unreadable place in the middle are lost.
/// Returns the table's last sequence number.
fn one(path: &Path, rows: &mut Versions) -> Result<u64, KvError> {
    let table = open(path)?;
    let all = || guard(|| Ok::<_, fjall::Error>(table.iter()));
    let mut ahead = all()?;
    let forwards = loop {
        match step(rows, &mut || ahead.next()) {
            Ok(true) => {}
            Ok(false) => break Ok(table.get_highest_seqno()),
            Err(error) => break Err(error),
        }
    };
    if forwards.is_err() {
        let mut back = all()?;
        while step(rows, &mut || back.next_back()).unwrap_or(false) {}
    }
    forwards
}
