//! Reads a store that no process owns straight from its log, and writes nothing. To open the database
//! is to write, which takes longer than to read a small store, and needs room and the right to. What
//! cannot be read in full and checked is left to the database, which says what is wrong.

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

/// The database does not read the whole of a log of more bytes than this, and is as fast.
const SMALL: u64 = 8 << 20;

/// Nothing of a log of more bytes than this is held in memory, though the database does not open.
const LARGE: u64 = 1 << 30;

/// Opens the store of a state directory for inspection.
///
/// # Errors
/// As [`SledStore::open`], when it can neither be opened nor be read without that.
pub fn open_for_inspection(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(store) = open_read_only(dir)? {
        return Ok(Arc::new(store));
    }
    match SledStore::open(dir) {
        Ok(store) => Ok(Arc::new(store)),
        // A full disk, one that is mounted to be read, a store of another user.
        Err(error @ (StoreError::Io(_) | StoreError::Unopened { .. })) => {
            let store = read_locked(dir, LARGE)?.ok_or(error)?;
            Ok(Arc::new(store))
        }
        Err(error) => Err(error),
    }
}

/// What lies in the store of a state directory, as it is now; none when it is large, or when it takes
/// the database to say what is in it.
pub fn open_read_only(dir: &Path) -> Result<Option<MemoryStore>, StoreError> {
    match read_locked(dir, SMALL) {
        Err(error @ StoreError::Locked { .. }) => Err(error),
        Err(_) => Ok(None),
        seen => seen,
    }
}

/// What was acknowledged of a database that this process has, and that takes no writes; none when there
/// is more on the disk, of which it is not known whether it is durable.
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
    // What a process that was killed had written is reported as durable, and may not be durable yet.
    match log.sync_data() {
        Ok(()) => read(&path, most),
        Err(_) => Ok(None),
    }
}

/// None when it is not plain what is in it, or its log has more bytes than `most`.
fn read(path: &Path, most: u64) -> Result<Option<MemoryStore>, StoreError> {
    let log = path.join("db").metadata();
    let fits = log.is_ok_and(|log| log.len() <= most);
    let Some(acknowledged) = watermark::read_watermark(path).ok().filter(|_| fits) else {
        return Ok(None);
    };
    let mut log = Log::open(path).map_err(StoreError::Io)?;
    let cut = log.cut().map_err(StoreError::Io)?;
    if cut.is_some_and(|cut| log.is_indexed(cut)) {
        return Ok(None);
    }
    let read = Pages::read(&mut log, cut.unwrap_or(u64::MAX));
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
    use crate::RunTable;
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
