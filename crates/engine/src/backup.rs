//! Copies of a store: backups, with or without a running engine, and what is made of them.

use super::error::existing;
use super::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use windlass_store::{IntegrityReport, StoreError, StoreKind, open_for_inspection};

/// A copy of a store that was read in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// The state directory that it is in.
    pub dir: String,
    /// How many runs it has.
    pub runs: u64,
    /// Where the store is that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}

/// How much room a store took, in bytes, and takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Before.
    pub before: u64,
    /// Now.
    pub after: u64,
}

impl Engine {
    /// Copies the store, as it is at one moment, into another state directory, while runs continue. Blocks.
    ///
    /// # Errors
    /// [`EngineError::StoreExists`] when there is one already; store errors: there is no copy then.
    pub fn backup(&self, dir: &Path) -> Result<BackedUp, EngineError> {
        check_no_store(dir)?;
        check_intact(self.launcher.store.backup(dir)?)?.into_report(dir, None)
    }
}

/// Puts the store of the state directory `from`, copied, into `dir`. One that is there already is
/// replaced only when that is requested, and stays next to it.
///
/// # Errors
/// [`EngineError::NoStore`], [`EngineError::StoreExists`]; store errors: `dir` is as it was then.
pub fn restore(from: &Path, dir: &Path, replace: bool) -> Result<BackedUp, EngineError> {
    existing(from)?;
    if !replace {
        check_no_store(dir)?;
    }
    let (found, old) = windlass_store::restore(&*open_for_inspection(from)?, dir)?;
    check_intact(found)?.into_report(dir, old.as_deref())
}

/// Rewrites the store of a state directory that no process owns, without the space of deleted rows.
///
/// # Errors
/// [`EngineError::NoStore`]; store errors: it is as it was then.
pub fn compact(dir: &Path) -> Result<Compacted, EngineError> {
    existing(dir)?;
    let (before, after) = windlass_store::compact(dir)?;
    Ok(Compacted { before, after })
}

/// A store that another database keeps now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// What keeps it: `sled` or `fjall`.
    pub store: String,
    /// How many records were compared.
    pub records: u64,
    /// Where the old store is; none if it used this database already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}

/// Migrates the store of a state directory that no process owns to another database. Every record is
/// compared before the new store replaces the old one, which stays next to it.
///
/// # Errors
/// [`EngineError::NoStore`]; store errors: it is as it was then.
pub fn migrate(dir: &Path, to: StoreKind) -> Result<Migrated, EngineError> {
    existing(dir)?;
    let converted = windlass_store::convert(dir, to)?;
    Ok(Migrated {
        store: to.to_string(),
        records: converted.as_ref().map_or(0, |converted| converted.records),
        old: converted.map(|converted| converted.old.display().to_string()),
    })
}

fn check_no_store(dir: &Path) -> Result<(), EngineError> {
    if dir.join("store").exists() {
        return Err(EngineError::StoreExists(dir.to_owned()));
    }
    Ok(())
}

/// A copy has all that its original has, or it is none.
fn check_intact(found: IntegrityReport) -> Result<IntactRuns, StoreError> {
    match found.issues.first() {
        None => Ok(IntactRuns(found.whole)),
        Some(wrong) => Err(StoreError::Corrupt {
            what: format!("{}: {}", wrong.what, wrong.error),
        }),
    }
}

/// The number of runs in a copy that was read in full.
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
