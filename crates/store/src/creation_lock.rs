//! Creates a store. Until all of it is durable, other processes recognise it as unfinished. This file never opens the
//! database.

use super::StoreError;
use super::directory::{create_directories, file, fresh_store_path, remove_unfinished_stores};
use super::kind::StoreKind;
use super::rows::corrupt;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of a file in the directory of an unfinished store. The process that creates the store locks this file. A
/// store with this file has never acknowledged anything.
pub(super) const CREATING: &str = "making";

/// The name of a file in a state directory into which a store is copied. The process that writes the copy locks this
/// file.
const COPYING: &str = "store.copying";

/// Why a store without any file of a database is damaged.
pub(super) const NO_LOG: &str = "its log `store/db` and `store/fjall` are missing";

/// The lock on a store that this process creates. After a power cut, an unfinished store would look like a damaged one.
/// So the file [`CREATING`] is created before all other files, and removed when the whole store is durable.
pub(super) struct CreationLock {
    path: PathBuf,
    lock: Flock<File>,
}

impl CreationLock {
    /// Begins a store. Replaces an unfinished store whose process has ended. Returns `None` if there is a finished
    /// store.
    pub fn of(dir: &Path, path: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let fresh = fresh_store_path(dir);
        let begun = is_vacant(path).then(|| Self::begin(&fresh, path));
        // Do this even if a store exists: a process that was killed while it created a store may have left a directory.
        remove_unfinished_stores(dir, &fresh);
        let making = match begun.transpose()?.flatten() {
            Some(begun) => Some(begun),
            None => Self::lock_left_behind(path, name)?,
        };
        if making.is_none() && StoreKind::of(dir).is_none() {
            return Err(StoreError::Foreign {
                path: name.to_owned(),
                reason: String::from("its folder `store` has files of others, and no store"),
            });
        }
        if let Some(making) = &making {
            making.clear().map_err(StoreError::Io)?;
        }
        Ok(making)
    }

    /// Creates an empty store at its path. Returns `None` if another process was faster.
    fn begin(fresh: &Path, path: &Path) -> Result<Option<Self>, StoreError> {
        let move_in = || -> io::Result<Flock<File>> {
            create_directories(fresh)?;
            let file = File::create(fresh.join(CREATING))?;
            let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
            // The directory is moved only after this file in it is durable. So after a power cut, the moved directory
            // has the file.
            File::open(fresh)?.sync_all()?;
            std::fs::rename(fresh, path)?;
            Ok(lock)
        };
        let moved = move_in();
        let path = path.to_owned();
        match moved {
            Ok(lock) => Ok(Some(Self { path, lock })),
            Err(_) if path.exists() => Ok(None),
            Err(error) => Err(StoreError::Io(error)),
        }
    }

    /// Locks the unfinished store that another process left. Returns `None` if the store is finished.
    fn lock_left_behind(path: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let file = match file(path, CREATING) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(StoreError::Io)?,
        };
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => locked(name),
            errno => StoreError::Io(errno.into()),
        })?;
        // Another process may have finished the store just before this one got the lock. Then the file is removed.
        let there = lock.metadata().map_err(StoreError::Io)?.nlink() > 0;
        let path = path.to_owned();
        Ok(there.then_some(Self { path, lock }))
    }

    /// Removes the files that the ended process had created.
    fn clear(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == CREATING {
                continue;
            }
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Marks the store as finished. The store acknowledges nothing before this call.
    pub fn done(self) -> io::Result<()> {
        std::fs::remove_file(self.path.join(CREATING))?;
        File::open(&self.path)?.sync_all()?;
        drop(self.lock);
        Ok(())
    }
}

/// The lock on a state directory into which a store is copied. The file is removed when the copy has ended.
pub(super) struct CopyLock {
    path: PathBuf,
    _lock: Flock<File>,
}

impl CopyLock {
    /// Locks a state directory.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another copy is being written there.
    pub fn of(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(COPYING);
        let mut options = File::options();
        let file = options.create(true).append(true).open(&path);
        let file = file.map_err(StoreError::Io)?;
        let lock = lock_file(dir, file, FlockArg::LockExclusiveNonblock)?;
        // Another copy may have ended just before this one got the lock. Then the file is removed.
        match lock.metadata().map_err(StoreError::Io)?.nlink() {
            0 => Err(locked(&dir.display().to_string())),
            _ => Ok(Self { path, _lock: lock }),
        }
    }
}

impl Drop for CopyLock {
    fn drop(&mut self) {
        // A file that remains does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns true if the path does not exist, or is an empty folder.
fn is_vacant(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !path.exists(),
    }
}

/// Returns the error of a store that another process has locked.
pub(super) fn locked(name: &str) -> StoreError {
    StoreError::Locked {
        path: name.to_owned(),
    }
}

/// Locks the file that the database locks. `how` is the kind of lock: a shared lock excludes only an owner of the
/// store.
pub(super) fn lock(dir: &Path, path: &Path, how: FlockArg) -> Result<Flock<File>, StoreError> {
    let kind = StoreKind::at(path);
    let name = kind.lock_file();
    let log = File::open(path.join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => match kind {
            StoreKind::Sled => StoreError::Unreadable(NO_LOG),
            StoreKind::Fjall => corrupt(&format!(
                "its lock `store/{name}` is missing: an empty file, which `touch` makes while no \
                 process has the store"
            )),
        },
        _ => StoreError::Io(error),
    })?;
    lock_file(dir, log, how)
}

/// Locks a file. If another process has locked it, returns the error of a store in `dir` that another process owns.
fn lock_file(dir: &Path, file: File, how: FlockArg) -> Result<Flock<File>, StoreError> {
    Flock::lock(file, how).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => locked(&dir.display().to_string()),
        errno => StoreError::Io(errno.into()),
    })
}
