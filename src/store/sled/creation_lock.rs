//! How a store comes to be: made in its place, and known as unfinished until all of it is durable. This
//! file never opens the database.

use super::{file, locked};
use crate::store::StoreError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Whoever makes a directory of a store may use it, and nobody else.
const PRIVATE: u32 = 0o700;

/// What the directory of a new store is called before it is put in its place, before the number of
/// the process.
const FRESH: &str = "store.new-";
/// A file in the directory of a store that is not finished, locked by the process that makes it. A
/// store that has it never acknowledged anything.
pub(in crate::store) const MAKING: &str = "making";

/// A store that this process makes. A power cut leaves a half made one that looks like a damaged one;
/// so it is known by a file that is there before anything else is, and goes when all is durable.
pub(in crate::store) struct Making {
    path: PathBuf,
    lock: Flock<File>,
}

impl Making {
    /// Begins a store, or takes over one whose maker is gone; none when there is one.
    pub fn of(dir: &Path, path: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let fresh = fresh_store(dir);
        let begun = (!path.exists()).then(|| Self::begin(&fresh, path));
        // Also when there is one: a start that was killed while another made it left its own.
        sweep(dir, &fresh);
        let making = match begun.transpose()?.flatten() {
            Some(begun) => Some(begun),
            None => Self::left(path, name)?,
        };
        if let Some(making) = &making {
            making.clear().map_err(StoreError::Io)?;
        }
        Ok(making)
    }

    /// Puts an empty one in its place; none when another process was faster.
    fn begin(fresh: &Path, path: &Path) -> Result<Option<Self>, StoreError> {
        let move_in = || -> io::Result<Flock<File>> {
            create_directories(fresh)?;
            let file = File::create(fresh.join(MAKING))?;
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
    fn left(path: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let file = match file(path, MAKING) {
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
            if entry.file_name() == MAKING {
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
        std::fs::remove_file(self.path.join(MAKING))?;
        File::open(&self.path)?.sync_all()?;
        drop(self.lock);
        Ok(())
    }
}

/// Where this process makes a store that is to be put into a state directory. What is left of one by a
/// process that is gone is removed by the next one that opens the store there.
pub(in crate::store) fn fresh_store(dir: &Path) -> PathBuf {
    dir.join(format!("{FRESH}{}", Pid::this()))
}

/// Creates the directories that are missing on the way to `path`, for this user alone; gives those it
/// created.
pub(in crate::store) fn create_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .take_while(|directory| *directory != Path::new("") && !directory.exists())
        .map(Path::to_path_buf)
        .collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE).create(path)?;
    Ok(missing)
}

/// Lets those use the files of a database who may use its directory, and nobody else: the database
/// makes files as the process makes all of them.
pub(in crate::store) fn keep_private(path: &Path) -> io::Result<()> {
    let most = std::fs::metadata(path)?.mode();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let mode = entry.metadata()?.mode();
        if mode & !most & 0o777 != 0 {
            std::fs::set_permissions(entry.path(), Permissions::from_mode(mode & most & 0o777))?;
        }
    }
    Ok(())
}

/// Removes stores that were never finished: this process's, and those of processes that are gone.
fn sweep(dir: &Path, own: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(process) = name.and_then(|name| name.strip_prefix(FRESH)) else {
            continue;
        };
        if path == own || !Path::new("/proc").join(process).exists() {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
