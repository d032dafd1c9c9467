//! Reads a small store that no process owns straight from its log, for those who only look: opening
//! the database writes, and takes longer than all of it together. What is not plain to see, whole and
//! vouched for is left to the database, which finds out what is wrong. It writes nothing.

use super::log_pages::Pages;
use super::log_reader::Log;
use super::memory::Memory;
use super::repair::lock;
use super::rows::{Retention, Rows};
use super::salvage::VOUCH;
use super::sled::{DIRECTORY, Sled};
use super::{Checkup, MemoryStore, StoreError};
use nix::fcntl::FlockArg;
use std::path::Path;

/// The database does not read the whole of a log of more bytes than this, and is as fast.
const SMALL: u64 = 8 << 20;

/// What lies in the store of a state directory, as it is now; none when it is large, or when it takes
/// the database to say what is in it.
///
/// # Errors
/// [`StoreError::Locked`] when a process has it.
pub fn glance(dir: &Path) -> Result<Option<MemoryStore>, StoreError> {
    let path = dir.join(DIRECTORY);
    let log = match lock(dir, &path, FlockArg::LockSharedNonblock) {
        Err(error @ StoreError::Locked { .. }) => return Err(error),
        Err(_) => return Ok(None),
        Ok(log) => log,
    };
    // What a process that was killed had written is told as durable, and may not be yet.
    let durable = log.sync_data().is_ok();
    let small = log.metadata().is_ok_and(|log| log.len() <= SMALL);
    Ok((durable && small).then(|| read(&path)).flatten())
}

fn read(path: &Path) -> Option<MemoryStore> {
    let acknowledged = Sled::acknowledged(path)?;
    let mut told = Checkup::default();
    let mut log = Log::open(path).ok()?;
    log.find_lost(&mut told).ok()?;
    if log.cut().ok()?.is_some() {
        return None;
    }
    let mut pages = Pages::new(VOUCH);
    let mut plain = true;
    log.messages(&mut told, |message| plain &= pages.take(message))
        .ok()?;
    if !plain || !told.wrong.is_empty() {
        return None;
    }
    let rows = Memory::of(pages.whole()?, acknowledged);
    Rows::found(rows, Retention::default(), "the store").ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sled::alone;
    use crate::store::{SledStore, Store};

    #[test]
    fn a_store_that_a_process_has_is_locked_and_one_without_anything_is_left_to_the_database() {
        let dir = tempfile::tempdir().unwrap();
        assert!(glance(dir.path()).unwrap().is_none());
        let store = alone(|| SledStore::open(dir.path())).unwrap();
        assert!(matches!(glance(dir.path()), Err(StoreError::Locked { .. })));
        drop(store);
        let seen = alone(|| glance(dir.path())).unwrap();
        assert_eq!(seen.unwrap().list(None, 10).unwrap(), []);
    }
}
