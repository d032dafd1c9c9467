//! Checks whether an open store is still at the path where it was opened. If its file was deleted or hidden by a mount,
//! writes and syncs still succeed, but their data is lost.

use super::kv::KvError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use windlass_inode::Inode;

/// The identities of open files, with the paths where they were opened.
pub(super) struct FileIdentities(Vec<(PathBuf, Inode)>);

impl FileIdentities {
    /// Records the identities of open files in a directory. Each file is passed with its name.
    pub fn of(path: &Path, files: &[(&str, &File)]) -> io::Result<Self> {
        let one = |(name, file): &(&str, &File)| -> io::Result<_> {
            Ok((path.join(name), Inode::of(file)?))
        };
        files.iter().map(one).collect::<io::Result<_>>().map(Self)
    }

    /// Fails if another file or nothing is at one of the paths.
    pub fn check(&self) -> Result<(), KvError> {
        let away = |(path, inode): &&(PathBuf, Inode)| Inode::at(path).ok() != Some(*inode);
        match self.0.iter().find(away) {
            Some((path, _)) => Err(KvError::Gone(path.display().to_string())),
            None => Ok(()),
        }
    }
}
