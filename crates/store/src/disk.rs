//! Stores on disk, with any database: what a database on disk does in addition to [`Kv`], and the choice of the
//! database.

use super::directory::sync_files;
use super::integrity::IntegrityReport;
use super::kind::StoreKind;
use super::kv::Kv;
use super::rows::{Retention, Rows};
use super::{Store, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Options of a store on disk.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Size of the database's cache, in bytes.
    pub cache_bytes: u64,
    /// How much data is retained that is only for display.
    pub retention: Retention,
}

/// The default size of the cache, in bytes. The operating system caches the files, so this cache is useful only for
/// pages that are written again and again. In a measurement with a thousand loops, a cache for the whole database was
/// not faster.
/// sled counts a page by its size on disk, which is smaller than its size in memory, and checks the limit only now and
/// then.
const CACHE: u64 = 8 << 20;

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_bytes: CACHE,
            retention: Retention::default(),
        }
    }
}

/// The rows of a damaged database that can be read, and a report of what cannot be read.
pub type ReadableRows = (BTreeMap<Vec<u8>, Vec<u8>>, IntegrityReport);

/// A database in a directory, with what a store on disk needs in addition to [`Kv`].
pub trait DiskKv: Kv + Sized {
    /// Opens the store in a state directory, or creates it there.
    fn open_store(dir: &Path, options: StoreOptions) -> Result<Rows<Self>, StoreError>;

    /// Opens or creates a database without checking its content. For a copy that is not used as a store yet.
    fn open_unchecked(path: &Path) -> Result<Self, StoreError>;

    /// Closes the database and makes all of its files durable.
    fn close_durably(self, path: &Path) -> io::Result<()> {
        drop(self);
        sync_files(path)
    }

    /// Reads the rows of a damaged database without changing it. The result also contains a report of the parts that
    /// cannot be read.
    fn read_intact_rows(path: &Path) -> Result<ReadableRows, StoreError>;
}

/// Evaluates an expression in which `$database` is the database type of a [`StoreKind`].
macro_rules! with_database {
    ($kind:expr, $dir:expr, $database:ident => $call:expr) => {
        match $kind {
            StoreKind::Sled => {
                type $database = crate::sled::Sled;
                $call
            }
            #[cfg(feature = "fjall")]
            StoreKind::Fjall => {
                type $database = crate::fjall::Fjall;
                $call
            }
            #[cfg(not(feature = "fjall"))]
            StoreKind::Fjall => Err(crate::disk::unsupported_backend($dir)),
        }
    };
}
pub(super) use with_database;

/// Returns the error of a store whose database this build does not support.
#[cfg(not(feature = "fjall"))]
pub(super) fn unsupported_backend(dir: &Path) -> StoreError {
    StoreError::Foreign {
        path: dir.display().to_string(),
        reason: String::from(
            "it uses fjall, and this binary was built without the feature `fjall`",
        ),
    }
}

/// Opens the store in a state directory, or creates it there. A new store uses the `wanted` database, by default sled.
///
/// # Errors
/// The errors of `SledStore::open`. [`StoreError::OtherKind`] if the store does not use the `wanted` database.
pub fn open(dir: &Path, wanted: Option<StoreKind>) -> Result<Arc<dyn Store>, StoreError> {
    open_with(dir, wanted, StoreOptions::default())
}

/// Does the same as [`open`], with options.
pub fn open_with(
    dir: &Path,
    wanted: Option<StoreKind>,
    options: StoreOptions,
) -> Result<Arc<dyn Store>, StoreError> {
    let found = StoreKind::of(dir);
    let kind = wanted.or(found).unwrap_or_default();
    kind.check(dir)?;
    with_database!(kind, dir, Database => {
        Ok(Arc::new(Database::open_store(dir, options)?))
    })
}

/// Opens the store of a state directory for inspection.
///
/// # Errors
/// The errors of [`open`], if the store can neither be opened nor be read without opening it.
pub fn open_for_inspection(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    match StoreKind::of(dir).unwrap_or_default() {
        StoreKind::Sled => super::sled::open_for_inspection(dir),
        #[cfg(feature = "fjall")]
        StoreKind::Fjall => Ok(Arc::new(super::fjall::open_for_inspection(dir)?)),
        #[cfg(not(feature = "fjall"))]
        StoreKind::Fjall => Err(unsupported_backend(dir)),
    }
}

/// Opens the store of a state directory to read all of it. Of a fjall store, opens a copy, because fjall writes when it
/// opens a database.
///
/// # Errors
/// The errors of [`open`].
pub fn open_to_examine(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    match StoreKind::of(dir) {
        #[cfg(feature = "fjall")]
        Some(StoreKind::Fjall) => Ok(Arc::new(super::fjall::open_for_inspection(dir)?)),
        _ => open(dir, None),
    }
}

/// Converts an I/O error. If it concerns the path of the store and not the disk, the result is
/// [`StoreError::Unopened`].
pub(super) fn path_error(error: StoreError, name: &str) -> StoreError {
    use io::ErrorKind as Kind;
    match error {
        StoreError::Io(error)
            if matches!(
                error.kind(),
                Kind::PermissionDenied
                    | Kind::NotADirectory
                    | Kind::AlreadyExists
                    | Kind::NotFound
                    | Kind::ReadOnlyFilesystem
                    | Kind::InvalidInput
                    | Kind::InvalidFilename
            ) =>
        {
            StoreError::Unopened {
                path: name.to_owned(),
                error,
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sled::retry_while_locked;
    use crate::watermark::MARK;
    use std::fs;

    /// A command that finds the store locked must not touch the mark, because the owner is writing it.
    #[test]
    fn a_locked_store_is_reported_as_locked_while_its_owner_writes_the_mark() {
        for kind in StoreKind::ALL {
            if kind == StoreKind::Fjall && !cfg!(feature = "fjall") {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let owner = retry_while_locked(|| open(dir.path(), Some(kind))).unwrap();
            let mark = dir.path().join("store").join(MARK);
            let half_written = [7; 12];
            fs::write(&mark, half_written).unwrap();
            let opened = open(dir.path(), None);
            assert!(matches!(opened, Err(StoreError::Locked { .. })), "{kind}");
            assert_eq!(fs::read(&mark).unwrap(), half_written);
            drop(owner);
        }
    }
}
