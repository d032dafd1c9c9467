//! Repairs a store on disk: lets `salvage` make a new store of what the damaged one's log comes to,
//! and puts that in its place. The damaged one is kept beside it, as it was found; nothing is ever
//! written to it.

use super::mark;
use super::salvage::{Salvaged, read_all, rebuild};
use super::{DIRECTORY, Sled};
use crate::store::kv::{Kv, prefixed};
use crate::store::memory::{Memory, MemoryStore};
use crate::store::rows::{Retention, Rows, corrupt};
use crate::store::{Checkup, StoreError};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const ALONE: FlockArg = FlockArg::LockExclusiveNonblock;

/// What a repair came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// What is in the new store, and what is not.
    pub salvaged: Salvaged,
    /// Where the damaged one is.
    pub old: PathBuf,
}

/// Makes a new store of what can be read of the one in a state directory.
///
/// # Errors
/// [`StoreError::Locked`] when a process has it, [`StoreError::Corrupt`] when there is nothing to be
/// read in it, [`StoreError::Io`] when there is no room for a new one: the store is as it was.
pub fn repair(dir: &Path) -> Result<Repaired, StoreError> {
    let path = dir.join(DIRECTORY);
    // Held until the new store is in place.
    let _alone = lock(dir, &path, ALONE)?;
    let fresh = dir.join(format!("store.repaired-{}", Pid::this()));
    let repaired = renew(&path, &fresh).and_then(|salvaged| {
        let old = exchange(dir, &path, &fresh, "store.damaged").map_err(StoreError::Io)?;
        Ok(Repaired { salvaged, old })
    });
    // What cannot be removed is in nobody's way.
    let _ = fs::remove_dir_all(&fresh);
    repaired
}

/// What can be read of the store in a state directory that does not open, in memory, and all that
/// cannot be read. The damaged one stays as it is.
///
/// # Errors
/// As [`repair`].
pub fn look(dir: &Path) -> Result<(MemoryStore, Checkup), StoreError> {
    let path = dir.join(DIRECTORY);
    let _alone = lock(dir, &path, ALONE)?;
    let (rows, told) = read(&path)?;
    let whole = Memory::default();
    let salvaged = rebuild(rows, mark::acknowledged(&path), &whole, told)?;
    let store = MemoryStore::recover(whole, Retention::default(), "the damaged store")?;
    Ok((store, salvaged.wrong))
}

/// The rows of a store that does not open, as they were written, as far as they can be read.
///
/// # Errors
/// As [`repair`].
pub fn written(dir: &Path) -> Result<MemoryStore, StoreError> {
    let path = dir.join(DIRECTORY);
    let _alone = lock(dir, &path, ALONE)?;
    let (rows, _) = read(&path)?;
    Ok(Rows::fresh(rows, Retention::default(), "the damaged store"))
}

/// The lock that the database takes, or one that keeps it away.
pub(in crate::store) fn lock(
    dir: &Path,
    path: &Path,
    how: FlockArg,
) -> Result<Flock<File>, StoreError> {
    let log = File::open(path.join("db")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => corrupt("its log `store/db` is missing"),
        _ => StoreError::Io(error),
    })?;
    Flock::lock(log, how).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => StoreError::Locked {
            path: dir.display().to_string(),
        },
        errno => StoreError::Io(errno.into()),
    })
}

/// The rows that the log comes to, and what of it cannot be read.
fn read(path: &Path) -> Result<(Memory, Checkup), StoreError> {
    let mut told = Checkup::default();
    let rows = read_all(path, &mut told).map_err(StoreError::Io)?;
    if rows.range(prefixed(&[])).next().is_none() {
        let what = String::from("nothing of it can be read");
        return Err(StoreError::Corrupt { what });
    }
    Ok((rows, told))
}

/// Writes what the log comes to into a new database.
fn renew(path: &Path, fresh: &Path) -> Result<Salvaged, StoreError> {
    let (rows, told) = read(path)?;
    let _ = fs::remove_dir_all(fresh);
    let db = Sled::raw(fresh)?;
    let salvaged = rebuild(rows, mark::acknowledged(path), &db, told)?;
    db.finish(fresh).map_err(StoreError::Io)?;
    Ok(salvaged)
}

/// Puts each of two directories in the place of the other, in one step.
pub(in crate::store) fn swap(one: &Path, other: &Path) -> io::Result<()> {
    let how = RenameFlags::RENAME_EXCHANGE;
    Ok(renameat2(AT_FDCWD, one, AT_FDCWD, other, how)?)
}

/// Puts the new store in its place, in one step; gives where the old one is, under this name and a
/// number.
pub(in crate::store) fn exchange(
    dir: &Path,
    path: &Path,
    fresh: &Path,
    name: &str,
) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    let old = loop {
        let old = dir.join(format!("{name}-{number}"));
        if !old.exists() {
            break old;
        }
        number += 1;
    };
    swap(path, fresh)?;
    fs::rename(fresh, &old)?;
    File::open(dir)?.sync_all()?;
    Ok(old)
}
