//! Copies of a store: backups, with or without a running engine, and restored, compacted and migrated stores.

use super::error::existing;
use super::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use windlass_store::{IntegrityReport, StoreError, StoreKind, open_for_inspection};

/// A copy of a store that was read completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// The state directory of the copy.
    pub dir: String,
    /// Number of runs in the copy.
    pub runs: u64,
    /// Path of the store that was in `dir` before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}

/// Size of a store before and after it was compacted, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    pub before: u64,
    pub after: u64,
}

impl Engine {
    /// Copies the store to another state directory, as the store is at one moment. Runs continue meanwhile. Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::StoreExists`] if the directory has a store already, [`EngineError::BackupRunning`] if
    /// another backup is being written there, or store errors. After an error, no copy exists.
    pub fn backup(&self, dir: &Path) -> Result<BackedUp, EngineError> {
        check_no_store(dir)?;
        let copied = self.launcher.store.backup(dir);
        let copied = copied.map_err(|error| match error {
            StoreError::Locked { .. } => EngineError::BackupRunning(dir.to_owned()),
            StoreError::Io(error) if error.kind() == ErrorKind::AlreadyExists => {
                EngineError::StoreExists(dir.to_owned())
            }
            error => of_destination(dir, error),
        })?;
        check_intact(copied)?.into_report(dir, None)
    }
}

/// Copies the store of the state directory `from` to `dir`. If `dir` already has a store, it is replaced only with
/// `replace`. The replaced store remains next to the new one.
///
/// # Errors
/// Returns [`EngineError::NoStore`], [`EngineError::StoreExists`], or store errors. After an error `dir` is unchanged.
pub fn restore(from: &Path, dir: &Path, replace: bool) -> Result<BackedUp, EngineError> {
    existing(from)?;
    if !replace {
        check_no_store(dir)?;
    }
    let restored = windlass_store::restore(&*open_for_inspection(from)?, dir);
    let (found, old) = restored.map_err(|error| of_destination(dir, error))?;
    check_intact(found)?.into_report(dir, old.as_deref())
}

/// Rewrites the store of a state directory that no process owns. This frees the disk space of deleted records.
///
/// # Errors
/// Returns [`EngineError::NoStore`] or store errors. After an error the store is unchanged.
pub fn compact(dir: &Path) -> Result<Compacted, EngineError> {
    existing(dir)?;
    let (before, after) = windlass_store::compact(dir)?;
    Ok(Compacted { before, after })
}

/// A store that was migrated to another database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// The database of the store: `sled` or `fjall`.
    pub store: String,
    /// Number of records that were compared.
    pub records: u64,
    /// Path of the old store. `None` if it used this database already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}

/// Migrates the store of a state directory that no process owns to another database. Every record is compared before
/// the new store replaces the old one. The old store remains next to the new one.
///
/// # Errors
/// Returns [`EngineError::NoStore`] or store errors. After an error the store is unchanged.
pub fn migrate(dir: &Path, to: StoreKind) -> Result<Migrated, EngineError> {
    existing(dir)?;
    let converted = windlass_store::convert(dir, to)?;
    Ok(Migrated {
        store: to.to_string(),
        records: converted.as_ref().map_or(0, |converted| converted.records),
        old: converted.map(|converted| converted.old.display().to_string()),
    })
}

/// Returns the error of a copy that was to be written to `dir`.
fn of_destination(dir: &Path, error: StoreError) -> EngineError {
    match error {
        StoreError::Io(error) | StoreError::Unopened { error, .. } => EngineError::Destination {
            dir: dir.to_owned(),
            error,
        },
        error => error.into(),
    }
}

fn check_no_store(dir: &Path) -> Result<(), EngineError> {
    if dir.join("store").exists() {
        return Err(EngineError::StoreExists(dir.to_owned()));
    }
    Ok(())
}

/// Checks that a copy was read without an error. A copy that cannot be read completely is not valid.
fn check_intact(found: IntegrityReport) -> Result<IntactRuns, StoreError> {
    match found.issues.first() {
        None => Ok(IntactRuns(found.whole)),
        Some(wrong) => Err(StoreError::Corrupt {
            what: format!("{}: {}", wrong.what, wrong.error),
        }),
    }
}

/// Number of runs in a copy that was read completely and without an error.
struct IntactRuns(u64);

impl IntactRuns {
    fn into_report(self, dir: &Path, old: Option<&Path>) -> Result<BackedUp, EngineError> {
        Ok(BackedUp {
            dir: dir.display().to_string(),
            runs: self.0,
            old: old.map(|old| old.display().to_string()),
        })
    }
}
