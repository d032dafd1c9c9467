//! Identifies the file at a path, whichever path leads to it, by its device and inode number.
//!
//! It queries no other metadata, so that later syncs of the file stay cheap. Its only type is [`Inode`].

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity of a file or folder: its device and its inode number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl From<Metadata> for Inode {
    fn from(of: Metadata) -> Self {
        Self {
            device: of.dev(),
            number: of.ino(),
        }
    }
}

impl Inode {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub fn of(file: &File) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return linux::found(file, "", rustix::fs::AtFlags::EMPTY_PATH, || {
            file.metadata()
        });
        #[cfg(not(target_os = "linux"))]
        file.metadata().map(Self::from)
    }

    /// Returns the identity of the file or folder at a path. Links are followed.
    ///
    /// # Errors
    /// The file does not exist, or its metadata cannot be read.
    pub fn at(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return linux::found(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), || {
            path.metadata()
        });
        #[cfg(not(target_os = "linux"))]
        path.metadata().map(Self::from)
    }
}

/// Queries the inode number alone. `metadata` also queries the file's timestamps. After that, Linux 6.13 and later
/// writes new timestamps at the next write, and a sync after it costs half as much again.
#[cfg(target_os = "linux")]
mod linux {
    use super::Inode;
    use rustix::fs::{AtFlags, StatxFlags, makedev, statx};
    use rustix::io::Errno;
    use std::fs::Metadata;
    use std::io;
    use std::os::fd::AsFd;

    pub fn found(
        from: impl AsFd,
        path: impl rustix::path::Arg,
        flags: AtFlags,
        or: impl FnOnce() -> io::Result<Metadata>,
    ) -> io::Result<Inode> {
        match statx(from, path, flags, StatxFlags::INO) {
            Ok(found) => Ok(Inode {
                device: makedev(found.stx_dev_major, found.stx_dev_minor),
                number: found.stx_ino,
            }),
            // The kernel is too old for `statx`, or a sandbox does not support it.
            Err(Errno::NOSYS) => or().map(Inode::from),
            Err(error) => Err(error.into()),
        }
    }
}
