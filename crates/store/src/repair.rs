//! Repairs a store on disk: makes a new store from the readable part of the damaged one, and exchanges the two. The
//! damaged store remains next to the new one, unchanged: nothing is ever written to it.

use super::codec;
use super::creation_lock::lock;
use super::directory::{
    DIRECTORY, check_not_symlink, exchange, free_numbered_path, fresh_store_path, give_to_owner,
    remove_unfinished_stores,
};
use super::disk::{DiskKv, with_database};
use super::keys;
use super::kind::StoreKind;
use super::memory::{Memory, MemoryStore};
use super::recover::{RecoverySummary, rebuild};
use super::rows::{Retention, Rows, corrupt};
use super::watermark;
use super::{IntegrityReport, StoreError};
use nix::fcntl::FlockArg;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use windlass_model::model::Name;

const ALONE: FlockArg = FlockArg::LockExclusiveNonblock;

/// The result of a repair.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairResult {
    /// What the new store has, and what is lost.
    pub recovered: RecoverySummary,
    /// The new path of the damaged store.
    pub old: PathBuf,
}

/// Makes a new store from the readable part of the store in a state directory.
///
/// # Errors
/// [`StoreError::Locked`] if a process owns the store, [`StoreError::Unreadable`] if nothing of it can be read,
/// [`StoreError::Io`] if the disk has not enough space for the new store. After an error, the store is unchanged.
pub fn repair(dir: &Path) -> Result<RepairResult, StoreError> {
    let path = dir.join(DIRECTORY);
    check_not_symlink(&path).map_err(StoreError::Io)?;
    StoreKind::at(&path)
        .make_lock(&path)
        .map_err(StoreError::Io)?;
    // Held until the new store is in place.
    let _alone = lock(dir, &path, ALONE)?;
    check_permissions(&path)?;
    let fresh = fresh_store_path(dir);
    remove_unfinished_stores(dir, &fresh);
    let renewed = with_database!(StoreKind::at(&path), dir, Database => {
        renew::<Database>(&path, &fresh)
    });
    let repaired = renewed.and_then(|recovered| {
        let old = free_numbered_path(dir, "store.damaged");
        exchange(dir, &path, &fresh, &old).map_err(StoreError::Io)?;
        give_to_owner(dir);
        Ok(RepairResult { recovered, old })
    });
    // If the removal fails, the remaining directory does no harm.
    let _ = fs::remove_dir_all(&fresh);
    repaired
}

/// Refuses a store with files that this user may not read. Such a file is not damaged.
fn check_permissions(path: &Path) -> Result<(), StoreError> {
    let refused = |error: io::Error, of: &Path| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let text = format!("{error}: `chmod u+rwX {}` permits it", of.display());
            StoreError::Unopened {
                path: path.display().to_string(),
                error: io::Error::new(error.kind(), text),
            }
        }
        _ => StoreError::Io(error),
    };
    for entry in fs::read_dir(path).map_err(|error| refused(error, path))? {
        let entry = entry.map_err(StoreError::Io)?;
        let (of, kind) = (entry.path(), entry.file_type().map_err(StoreError::Io)?);
        if kind.is_dir() {
            check_permissions(&of)?;
        } else if kind.is_file() {
            File::open(&of).map_err(|error| refused(error, &of))?;
        }
    }
    Ok(())
}

/// Reads a damaged store that does not open, into memory. Also returns a report of each part that cannot be read. The
/// damaged store is not changed.
pub fn inspect_damaged(dir: &Path) -> Result<(MemoryStore, IntegrityReport), StoreError> {
    let path = dir.join(DIRECTORY);
    let _alone = lock(dir, &path, ALONE)?;
    let (rows, report) = with_database!(StoreKind::at(&path), dir, Database => {
        read::<Database>(&path)
    })?;
    let whole = Memory::default();
    let recovered = rebuild(rows, watermark::read_watermark(&path), &whole, report)?;
    let store = MemoryStore::recover(whole, Retention::default(), "the damaged store")?;
    Ok((store, recovered.issues))
}

/// Reads the raw rows of a store that does not open, as far as they are readable.
pub fn dump_damaged(dir: &Path) -> Result<MemoryStore, StoreError> {
    let path = dir.join(DIRECTORY);
    let _alone = lock(dir, &path, ALONE)?;
    let (rows, _) = with_database!(StoreKind::at(&path), dir, Database => {
        read::<Database>(&path)
    })?;
    Ok(Rows::fresh(rows, Retention::default(), "the damaged store"))
}

/// Reads the rows of a damaged store. Also returns a report of each part that cannot be read.
fn read<D: DiskKv>(path: &Path) -> Result<(Memory, IntegrityReport), StoreError> {
    let (mut rows, mut report) = D::read_intact_rows(path)?;
    rows.retain(|key, value| {
        // Leave out index rows and padding: the new store creates its own.
        let parsed = keys::parse(key).filter(|parsed| !parsed.family.has_no_value());
        let Some(parsed) = parsed else {
            return false;
        };
        let read = codec::check(key, value);
        if let Err(error) = &read {
            let run = parsed.run.as_deref().map(Name::from);
            let error = corrupt(&format!("{parsed}: {error}"));
            report.note(run.as_ref(), "a row", &error);
        }
        read.is_ok()
    });
    if rows.is_empty() {
        return Err(StoreError::Unreadable("nothing of it can be read"));
    }
    let name = path.display().to_string();
    let rows = Rows::fresh(Memory::of(rows, 0), Retention::default(), &name);
    // Check the format before any record: records of another format would look damaged.
    rows.reader.check_format()?;
    Ok((rows.into_database(), report))
}

/// Writes the readable part of a damaged store into a new database.
fn renew<D: DiskKv>(path: &Path, fresh: &Path) -> Result<RecoverySummary, StoreError> {
    let (rows, report) = read::<D>(path)?;
    let _ = fs::remove_dir_all(fresh);
    let db = D::open_unchecked(fresh)?;
    let recovered = rebuild(rows, watermark::read_watermark(path), &db, report)?;
    db.close_durably(fresh).map_err(StoreError::Io)?;
    Ok(recovered)
}
