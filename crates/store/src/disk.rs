//! Stores on disk, whichever database keeps them: what a database does in addition to [`Kv`], and which
//! database is used.

use super::directory::sync_files;
use super::integrity::IntegrityReport;
use super::kind::StoreKind;
use super::kv::Kv;
use super::raw::RawRow;
use super::rows::{Retention, Rows};
use super::{Store, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Options of a store on disk.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// How much of the database may stay in memory, in bytes.
    pub cache_bytes: u64,
    /// How many rows are stored.
    pub retention: Retention,
}

/// As much of the database as is worth keeping in memory: pages that are written again and again. The
/// system keeps the rest of the files, and a thousand loops are no slower with this than with all of
/// it. sled counts a page as it is on disk, which is less than what it takes in memory, and looks
/// only now and then whether there are too many.
const CACHE: u64 = 8 << 20;

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_bytes: CACHE,
            retention: Retention::default(),
        }
    }
}

/// The rows of a damaged database that can be read, and what cannot.
pub type ReadableRows = (BTreeMap<Vec<u8>, Vec<u8>>, IntegrityReport);

/// A database on disk.
pub trait Disk: Kv + Sized {
    /// The store in a state directory, which is made when it is not there.
    fn open_store(dir: &Path, options: StoreOptions) -> Result<Rows<Self>, StoreError>;

    /// The database in a directory, whatever is in it, for a copy: nothing knows of it yet.
    fn raw(path: &Path) -> Result<Self, StoreError>;

    /// Closes it and makes all of its files durable.
    fn finish(self, path: &Path) -> io::Result<()> {
        drop(self);
        sync_files(path)
    }

    /// The rows of the damaged one in a directory, which stays as it is, and what cannot be read.
    fn readable(path: &Path) -> Result<ReadableRows, StoreError>;
}

/// What a store on disk reports about itself, in addition to its runs.
pub trait DiskStore: Store {
    /// Reads everything.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when a write failed before; what cannot be read is in the answer.
    fn check(&self) -> Result<IntegrityReport, StoreError>;

    /// Reports the rows in the order of their keys: all, or those of a run.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the database gives no further rows; a record that cannot be
    /// read is in its row.
    fn raw(&self, run: Option<&str>, sink: &mut dyn FnMut(RawRow)) -> Result<(), StoreError>;
}

impl<K: Kv> DiskStore for Rows<K> {
    fn check(&self) -> Result<IntegrityReport, StoreError> {
        Self::check(self)
    }

    fn raw(&self, run: Option<&str>, sink: &mut dyn FnMut(RawRow)) -> Result<(), StoreError> {
        self.reader.raw(run, sink)
    }
}

/// Does something with the type of a database.
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

/// The error of a store whose database this build does not have.
#[cfg(not(feature = "fjall"))]
pub(super) fn unsupported_backend(dir: &Path) -> StoreError {
    StoreError::Foreign {
        path: dir.display().to_string(),
        reason: String::from(
            "it uses fjall, and this binary was built without the feature `fjall`",
        ),
    }
}

/// Opens the store in a state directory, or makes it there, of the kind that is wanted or else of sled.
///
/// # Errors
/// As [`super::SledStore::open`]; [`StoreError::OtherKind`] when it is not of the kind that is wanted.
pub fn open(dir: &Path, wanted: Option<StoreKind>) -> Result<Arc<dyn DiskStore>, StoreError> {
    open_with(dir, wanted, StoreOptions::default())
}

/// The same with options.
pub fn open_with(
    dir: &Path,
    wanted: Option<StoreKind>,
    options: StoreOptions,
) -> Result<Arc<dyn DiskStore>, StoreError> {
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
/// As [`open`], when it can neither be opened nor be read without that.
pub fn open_for_inspection(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    match StoreKind::of(dir).unwrap_or_default() {
        StoreKind::Sled => super::sled::open_for_inspection(dir),
        #[cfg(feature = "fjall")]
        StoreKind::Fjall => super::fjall::open_for_inspection(dir),
        #[cfg(not(feature = "fjall"))]
        StoreKind::Fjall => Err(unsupported_backend(dir)),
    }
}

/// What is wrong with the place, and not with the disk.
pub(super) fn not_opened_error(error: StoreError, name: &str) -> StoreError {
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
