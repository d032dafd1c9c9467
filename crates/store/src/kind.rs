//! Which database keeps a store. Its directory says so: fjall's files are in a folder of their own, and
//! sled's are not. This file opens no database.

use super::StoreError;
use super::creation_lock::CREATING;
use super::directory::DIRECTORY;
use super::watermark::MARK;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// The folder of fjall's files in the directory of a store.
pub(super) const FJALL: &str = "fjall";

/// A database that keeps a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// One tree in one log.
    #[default]
    Sled,
    /// A journal and sorted tables.
    Fjall,
}

impl StoreKind {
    /// All databases.
    pub const ALL: [Self; 2] = [Self::Sled, Self::Fjall];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sled => "sled",
            Self::Fjall => "fjall",
        }
    }

    /// Which one keeps the store of a state directory; none when there is no finished store. It may be
    /// damaged.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        let path = dir.join(DIRECTORY);
        let files = ["db", MARK, FJALL];
        let there = files.iter().any(|name| path.join(name).exists());
        (there && !path.join(CREATING).exists()).then(|| Self::at(&path))
    }

    /// Which one keeps the store in a directory.
    pub(super) fn at(path: &Path) -> Self {
        match path.join(FJALL).exists() {
            true => Self::Fjall,
            false => Self::Sled,
        }
    }

    /// What it keeps a store in.
    pub(super) fn log(self) -> &'static str {
        match self {
            Self::Sled => "db",
            Self::Fjall => FJALL,
        }
    }

    /// The file that the process has locked which owns such a store.
    pub(super) fn lock_file(self) -> &'static str {
        match self {
            Self::Sled => "db",
            Self::Fjall => "fjall/lock",
        }
    }

    /// Makes the locked file again if it was deleted. That of fjall is empty.
    pub(super) fn make_lock(self, path: &Path) -> io::Result<()> {
        if self == Self::Fjall {
            let mut options = File::options();
            options
                .create(true)
                .append(true)
                .open(path.join(self.lock_file()))?;
        }
        Ok(())
    }

    /// Fails when another database keeps the store of a state directory.
    ///
    /// # Errors
    /// [`StoreError::OtherKind`].
    pub fn check(self, dir: &Path) -> Result<(), StoreError> {
        match Self::of(dir) {
            // If there is neither, opening the store reports it.
            Some(found) if found != self && dir.join(DIRECTORY).join(found.log()).exists() => {
                Err(StoreError::OtherKind {
                    path: dir.display().to_string(),
                    found,
                    wanted: self,
                })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
