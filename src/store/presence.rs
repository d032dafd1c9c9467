//! Whether an open store is still where it was opened. A file that was deleted, or over which another
//! file system was mounted, takes writes and syncs as before, and nobody ever finds them again.

use super::kv::KvError;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files, and where they were opened.
pub(super) struct Presence(Vec<(PathBuf, Identity)>);

/// A file, however it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<Metadata> for Identity {
    fn from(of: Metadata) -> Self {
        Self {
            device: of.dev(),
            inode: of.ino(),
        }
    }
}

impl Presence {
    /// Of files in a directory, by their names.
    pub fn of(path: &Path, files: &[(&str, &File)]) -> io::Result<Self> {
        let one = |(name, file): &(&str, &File)| -> io::Result<_> {
            Ok((path.join(name), file.metadata()?.into()))
        };
        files.iter().map(one).collect::<io::Result<_>>().map(Self)
    }

    /// Fails when something else is in the place of one, or nothing.
    pub fn check(&self) -> Result<(), KvError> {
        let away = |(path, identity): &&(PathBuf, Identity)| {
            let found = std::fs::metadata(path).map(Identity::from);
            found.ok() != Some(*identity)
        };
        match self.0.iter().find(away) {
            Some((path, _)) => Err(KvError::Gone(path.display().to_string())),
            None => Ok(()),
        }
    }
}
