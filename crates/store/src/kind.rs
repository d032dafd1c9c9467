//! The database that a store uses. The store's directory shows which one: fjall's files are in a folder of their own,
//! sled's are not. This file opens no database.

use super::StoreError;
use super::creation_lock::CREATING;
use super::directory::DIRECTORY;
use super::watermark::MARK;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// The folder of fjall's files in a store's directory.
pub(super) const FJALL: &str = "fjall";

/// A database that a store can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// One tree in one log file.
    #[default]
    Sled,
    /// A journal and sorted tables.
    Fjall,
}

impl StoreKind {
    pub const ALL: [Self; 2] = [Self::Sled, Self::Fjall];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sled => "sled",
            Self::Fjall => "fjall",
        }
    }

    /// Returns the database of the store in a state directory; `None` if there is no finished store. The store may be
    /// damaged.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        let path = dir.join(DIRECTORY);
        let files = ["db", MARK, FJALL];
        let there = files.iter().any(|name| path.join(name).exists());
        (there && !path.join(CREATING).exists()).then(|| Self::at(&path))
    }

    /// Returns the database of the store in a store's directory.
    pub(super) fn at(path: &Path) -> Self {
        match path.join(FJALL).exists() {
            true => Self::Fjall,
            false => Self::Sled,
        }
    }

    /// Returns the name of the database's file or folder in a store's directory.
    pub(super) fn log(self) -> &'static str {
        match self {
            Self::Sled => "db",
            Self::Fjall => FJALL,
        }
    }

    /// Returns the file that the store's owner locks.
    pub(super) fn lock_file(self) -> &'static str {
        match self {
            Self::Sled => "db",
            Self::Fjall => "fjall/lock",
        }
    }

    /// Creates the lock file of fjall if it was deleted. The file is empty.
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

    /// Checks that the store of a state directory does not use another database.
    ///
    /// # Errors
    /// [`StoreError::OtherKind`] if it does.
    pub fn check(self, dir: &Path) -> Result<(), StoreError> {
        match Self::of(dir) {
            // If the files of the found database are missing, no error is returned here: opening the store reports
            // this.
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
