//! A temporary copy of a database's files. fjall writes when it opens a database, so a command that only reads uses a
//! copy. The copy is next to the store if possible. There it needs little space: fjall never changes a table, so a table
//! is a hard link.

use super::TABLES_FOLDER;
use crate::directory::{DIRECTORY, create_directories, files, fresh_store_path, written_bytes};
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
    /// Creates a state directory that contains a copy of a state directory's store.
    pub fn copy_store(dir: &Path) -> io::Result<Self> {
        remove_left();
        let near = fresh_store_path(dir)
            .file_name()
            .map(|name| name.display().to_string());
        let near = format!("{}-", near.unwrap_or_default());
        // Next to the store may be no permission or no space.
        Self::copy_into(dir, dir, &near)
            .or_else(|_| Self::copy_into(dir, &temp_dir(), &format!("{NAME}{}-", Pid::this())))
    }

    fn copy_into(dir: &Path, place: &Path, prefix: &str) -> io::Result<Self> {
        let store = dir.join(DIRECTORY);
        // The name is not predictable, because other users may write to this folder, too.
        let scratch = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        let to = scratch.path().join(DIRECTORY);
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
