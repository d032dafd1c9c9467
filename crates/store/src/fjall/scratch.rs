//! A temporary copy of a database's files. fjall writes when it opens a database, so a command that only reads uses a
//! copy. The copy is next to the store if possible. There it needs little space: fjall never changes a table, so a table
//! is a hard link.

use super::TABLES_FOLDER;
use crate::directory::{DIRECTORY, create_directories, files, written_bytes};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use std::env::temp_dir;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// Prefix of the directories' names. The process id follows it.
const NAME: &str = "windlass-copy-";

/// The file in a copy that its process locks. In another container, the process id does not show whether the process
/// lives.
const LOCK: &str = "lock";

/// A directory that is removed when this value is dropped.
pub(super) struct Scratch {
    directory: TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    /// Creates a state directory that contains a copy of a state directory's store.
    pub fn copy_store(dir: &Path) -> io::Result<Self> {
        remove_left(dir);
        remove_left(&temp_dir());
        // Next to the store may be no permission or no space.
        Self::copy_into(dir, dir).or_else(|_| Self::copy_into(dir, &temp_dir()))
    }

    fn copy_into(dir: &Path, place: &Path) -> io::Result<Self> {
        let store = dir.join(DIRECTORY);
        // The name is not predictable, because other users may write to this folder, too.
        let directory = tempfile::Builder::new()
            .prefix(&format!("{NAME}{}-", Pid::this()))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        let lock = File::create_new(directory.path().join(LOCK))?;
        let lock =
            Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?;
        let to = directory.path().join(DIRECTORY);
        for file in files(&store)? {
            let inside = file.strip_prefix(&store).map_err(io::Error::other)?;
            let copy = to.join(inside);
            let folder = copy.parent().unwrap_or(&to);
            create_directories(folder)?;
            let is_table = folder.ends_with(TABLES_FOLDER);
            if !is_table || fs::hard_link(&file, &copy).is_err() {
                copy_file(&file, &copy)?;
            }
        }
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the copies in a folder that killed processes have left.
pub(super) fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let left = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let Some((process, _)) = left.and_then(|left| left.split_once('-')) else {
            continue;
        };
        let is_used = match File::open(path.join(LOCK)) {
            Ok(file) => Flock::lock(file, FlockArg::LockExclusiveNonblock)
                .is_err_and(|(_, errno)| errno == Errno::EWOULDBLOCK),
            // Its process may be about to create the file.
            Err(_) => Path::new("/proc").join(process).exists(),
        };
        if !is_used {
            // Copies of other users cannot be removed; such errors are ignored.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Copies the written part of a file, without the space that was reserved after it.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let written = written_bytes(&from)?;
    from.rewind()?;
    io::copy(&mut from.by_ref().take(written), &mut to)?;
    to.set_len(from.metadata()?.len())
}
