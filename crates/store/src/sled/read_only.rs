//! Reads a store without an owner directly from its log, and writes nothing. The alternative is to open the database.
//! Opening is slower for a small store, writes to it, and needs space and write permission. If the log cannot be read
//! in full or its check fails, the database is opened instead, which reports what is wrong.

use super::log_pages::Pages;
use super::log_reader::Log;
use crate::creation_lock::lock;
use crate::directory::DIRECTORY;
use crate::memory::Memory;
use crate::rows::{Retention, Rows, corrupt};
use crate::watermark;
use crate::{MemoryStore, SledStore, Store, StoreError};
use nix::fcntl::FlockArg;
use std::path::Path;
use std::sync::Arc;

/// A log with more bytes than this is opened with the database, which does not read the whole log and so is not slower.
const SMALL: u64 = 8 << 20;

/// A log with more bytes than this is not read into memory, even if the database cannot be opened.
const LARGE: u64 = 1 << 30;

/// Opens the store of a state directory for inspection.
///
/// # Errors
/// The errors of [`SledStore::open`], if the store can neither be opened nor be read without opening it.
pub fn open_for_inspection(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(store) = open_read_only(dir)? {
        return Ok(Arc::new(store));
    }
    match SledStore::open(dir) {
        Ok(store) => Ok(Arc::new(store)),
        // The disk is full or read-only, or another user owns the store.
        Err(error @ (StoreError::Io(_) | StoreError::Unopened { .. })) => {
            let store = read_locked(dir, LARGE)?.ok_or(error)?;
            Ok(Arc::new(store))
        }
        Err(error) => Err(error),
    }
}

/// Reads the store of a state directory as it is now. Returns `None` if the log is too large, or if only opening the
/// database can determine its content.
pub fn open_read_only(dir: &Path) -> Result<Option<MemoryStore>, StoreError> {
    match read_locked(dir, SMALL) {
        Err(error @ StoreError::Locked { .. }) => Err(error),
        Err(_) => Ok(None),
        seen => seen,
    }
}

/// Reads the acknowledged data of a database that this process owns and that accepts no writes. Returns `None` if the
/// disk has later groups, which may not be durable.
pub(super) fn durable_snapshot(path: &Path) -> Option<MemoryStore> {
    let store = read(path, LARGE).ok().flatten()?;
    let last = store.reader.root().ok()??.group;
    (watermark::read_watermark(path).ok()? == last).then_some(store)
}

fn read_locked(dir: &Path, most: u64) -> Result<Option<MemoryStore>, StoreError> {
    let path = dir.join(DIRECTORY);
    let log = match lock(dir, &path, FlockArg::LockSharedNonblock) {
        Err(error @ StoreError::Locked { .. }) => return Err(error),
        Err(_) => return Ok(None),
        Ok(log) => log,
    };
    // Sync the data that a killed process has written, because this data is reported as durable.
    match log.sync_data() {
        Ok(()) => read(&path, most),
        Err(_) => Ok(None),
    }
}

/// Reads a log. Returns `None` if it has more than `most` bytes, or if its content is not certain.
fn read(path: &Path, most: u64) -> Result<Option<MemoryStore>, StoreError> {
    let log = path.join("db").metadata();
    let fits = log.is_ok_and(|log| log.len() <= most);
    let Some(acknowledged) = watermark::read_watermark(path).ok().filter(|_| fits) else {
        return Ok(None);
    };
    let mut log = Log::open(path).map_err(StoreError::Io)?;
    let end = log.sled_end().map_err(StoreError::Io)?;
    if end.is_some_and(|end| log.is_indexed(end)) {
        return Ok(None);
    }
    let read = Pages::read(&mut log, end.unwrap_or(u64::MAX));
    let (pages, report) = read.map_err(StoreError::Io)?;
    if let Some(issue) = report.issues.first() {
        return Err(corrupt(&issue.error));
    }
    match pages.whole() {
        Some(rows) => {
            let rows = Memory::of(rows, acknowledged);
            Rows::found(rows, Retention::default(), "the store")
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadStore;
    use crate::sled::retry_while_locked;

    #[test]
    fn a_store_that_a_process_has_is_locked_and_one_without_anything_is_left_to_the_database() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open_read_only(dir.path()).unwrap().is_none());
        let store = retry_while_locked(|| SledStore::open(dir.path())).unwrap();
        assert!(matches!(
            open_read_only(dir.path()),
            Err(StoreError::Locked { .. })
        ));
        drop(store);
        let seen = retry_while_locked(|| open_read_only(dir.path())).unwrap();
        assert_eq!(seen.unwrap().list(None, 10).unwrap(), []);
    }
}
