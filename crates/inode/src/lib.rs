//! Which file a path leads to, however it is called: its device and its number there.
//!
//! It never asks for anything else, which keeps later syncs of the file cheap. Its one type is [`Inode`].

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file or folder, by its device and its number.
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
    /// That of an open file.
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

    /// That of what a path leads to.
    ///
    /// # Errors
    /// There is no such file, or its metadata cannot be read.
    pub fn at(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return linux::found(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), || {
            path.metadata()
        });
        #[cfg(not(target_os = "linux"))]
        path.metadata().map(Self::from)
    }
}

/// After a question for a file's times, as `metadata` asks, Linux from 6.13 on writes new ones at the next
/// write, and a sync after that costs half as much again.
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
            // An old kernel, or a sandbox that does not know it.
            Err(Errno::NOSYS) => or().map(Inode::from),
            Err(error) => Err(error.into()),
        }
    }
}
