//! Whether an open store is still where it was opened. A file that was deleted, or over which another
//! file system was mounted, takes writes and syncs as before, and no one ever finds them again.

use super::kv::KvError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use windlass_inode::Inode;

/// Files, and where they were opened.
pub(super) struct FileIdentity(Vec<(PathBuf, Inode)>);

impl FileIdentity {
    /// Of files in a directory, by their names.
    pub fn of(path: &Path, files: &[(&str, &File)]) -> io::Result<Self> {
        let one = |(name, file): &(&str, &File)| -> io::Result<_> {
            Ok((path.join(name), Inode::of(file)?))
        };
        files.iter().map(one).collect::<io::Result<_>>().map(Self)
    }

    /// Fails when something else is in the place of one, or nothing.
    pub fn check(&self) -> Result<(), KvError> {
        let away = |(path, inode): &&(PathBuf, Inode)| Inode::at(path).ok() != Some(*inode);
        match self.0.iter().find(away) {
            Some((path, _)) => Err(KvError::Gone(path.display().to_string())),
            None => Ok(()),
        }
    }
}
