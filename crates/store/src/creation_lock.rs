//! How a store comes to be: made in its place, and known as unfinished until all of it is durable. This
//! file never opens the database.

use super::StoreError;
use super::directory::{create_directories, file, fresh_store_path, sweep};
use super::kind::StoreKind;
use super::rows::corrupt;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file in the directory of a store that is not finished, locked by the process that makes it. A
/// store that has it never acknowledged anything.
pub(super) const CREATING: &str = "making";

/// Why a store without anything that a database keeps is damaged.
pub(super) const NO_LOG: &str = "its log `store/db` and `store/fjall` are missing";

/// A store that this process makes. A power cut leaves a half made one that looks like a damaged one;
/// so it is known by a file that is there before anything else is, and goes when all is durable.
pub(super) struct CreationLock {
    path: PathBuf,
    lock: Flock<File>,
}

impl CreationLock {
    /// Begins a store, or takes over one whose maker is gone; none when there is one.
    pub fn of(dir: &Path, path: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let fresh = fresh_store_path(dir);
        let begun = is_vacant(path).then(|| Self::begin(&fresh, path));
        // Also when there is one: a start that was killed while another made it left its own.
        sweep(dir, &fresh);
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

    /// Puts an empty one in its place; none when another process was faster.
    fn begin(fresh: &Path, path: &Path) -> Result<Option<Self>, StoreError> {
        let move_in = || -> io::Result<Flock<File>> {
            create_directories(fresh)?;
            let file = File::create(fresh.join(CREATING))?;
            let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
            // The directory is nowhere without it, also after a power cut.
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

    /// One that a process left; none when it is finished.
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
        // Its maker may have finished it in this moment.
        let there = lock.metadata().map_err(StoreError::Io)?.nlink() > 0;
        let path = path.to_owned();
        Ok(there.then_some(Self { path, lock }))
    }

    /// Removes what a process that is gone had made so far.
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

    /// Nothing is acknowledged before this.
    pub fn done(self) -> io::Result<()> {
        std::fs::remove_file(self.path.join(CREATING))?;
        File::open(&self.path)?.sync_all()?;
        drop(self.lock);
        Ok(())
    }
}

/// Whether there is nothing, or an empty folder.
fn is_vacant(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !path.exists(),
    }
}

/// The error of a store that another process has.
pub(super) fn locked(name: &str) -> StoreError {
    StoreError::Locked {
        path: name.to_owned(),
    }
}

/// The lock that the database takes, or one that keeps it away.
pub(super) fn lock(dir: &Path, path: &Path, how: FlockArg) -> Result<Flock<File>, StoreError> {
    let kind = StoreKind::at(path);
    let name = kind.lock_file();
    let log = File::open(path.join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => corrupt(&match kind {
            StoreKind::Sled => String::from(NO_LOG),
            StoreKind::Fjall => format!(
                "its lock `store/{name}` is missing: an empty file, which `touch` makes while no \
                 process has the store"
            ),
        }),
        _ => StoreError::Io(error),
    })?;
    Flock::lock(log, how).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => locked(&dir.display().to_string()),
        errno => StoreError::Io(errno.into()),
    })
}
