//! A temporary copy of a database's files. fjall writes when it opens a database, so a database in a read-only
//! directory is read from a copy.

use crate::directory::{DIRECTORY, create_directories, files, written_bytes};
use nix::unistd::Pid;
use std::env::temp_dir;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// Prefix of the directories' names. The process id follows it.
const NAME: &str = "windlass-copy-";

/// A directory that is removed when this value is dropped.
pub(super) struct Scratch(TempDir);

impl Scratch {
    /// Creates a state directory that contains a copy of a store.
    pub fn copy_store(store: &Path) -> io::Result<Self> {
        remove_left();
        // The name is not predictable, because other users may write to this folder, too.
        let scratch = tempfile::Builder::new()
            .prefix(&format!("{NAME}{}-", Pid::this()))
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let to = scratch.path().join(DIRECTORY);
        for file in files(store)? {
            let inside = file.strip_prefix(store).map_err(io::Error::other)?;
            let copy = to.join(inside);
            create_directories(copy.parent().unwrap_or(&to))?;
            copy_file(&file, &copy)?;
        }
        Ok(Self(scratch))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the copies that killed processes have left.
fn remove_left() {
    for entry in fs::read_dir(temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let left = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let process = left.and_then(|left| Some(left.split_once('-')?.0));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Copies of other users cannot be removed; such errors are ignored.
            let _ = fs::remove_dir_all(entry.path());
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
