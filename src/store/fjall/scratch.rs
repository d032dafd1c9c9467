//! A copy of a database's files in the folder for temporary files. A database that is opened writes: a
//! damaged one, or one where nothing can be written, is read in a copy.

use crate::store::directory::{DIRECTORY, create_directories, files, written_bytes};
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that goes when this does.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A state directory with a copy of the files of a store for which `wanted` says so.
    pub fn of(store: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-{}-{number}", Pid::this());
        let scratch = Self(std::env::temp_dir().join(name));
        // Of a process that had this number before.
        let _ = fs::remove_dir_all(&scratch.0);
        let to = scratch.0.join(DIRECTORY);
        for file in files(store)?.into_iter().filter(|file| wanted(file)) {
            let inside = file.strip_prefix(store).map_err(io::Error::other)?;
            let copy = to.join(inside);
            create_directories(copy.parent().unwrap_or(&to))?;
            copy_file(&file, &copy)?;
        }
        Ok(scratch)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Copies what was written; room that was set aside behind it takes none in the copy.
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

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}
