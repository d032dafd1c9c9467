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

impl Identity {
    /// Of what is in a place, asked for nothing else. After a question for its times too, as `metadata`
    /// asks, Linux from 6.13 on writes new ones at the next write, and each sync costs half as much again.
    #[cfg(target_os = "linux")]
    fn at(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(found) => Ok(Self {
                device: makedev(found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
            }),
            Err(rustix::io::Errno::NOSYS) => std::fs::metadata(path).map(Self::from),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(Self::from)
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
        let away =
            |(path, identity): &&(PathBuf, Identity)| Identity::at(path).ok() != Some(*identity);
        match self.0.iter().find(away) {
            Some((path, _)) => Err(KvError::Gone(path.display().to_string())),
            None => Ok(()),
        }
    }
}
