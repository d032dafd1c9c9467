//! The health of a store that no process owns: what can be read of it, and a new store that is made from the readable
//! part.

use super::error::{existing, is_full};
use super::report::{RawReport, RepairReport, StoreReport, Unreadable};
use super::{EngineError, Inspector};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use windlass_actions::MASK;
use windlass_expression::mask_printed_marks;
use windlass_store::{IntegrityReport, Store, StoreError};

/// What is unreadable if a store does not open.
pub const THE_STORE: &str = "the store";

/// Reads everything in a store. If the store is damaged and cannot be opened, this returns a report, not an error.
///
/// # Errors
/// Returns [`EngineError::NoStore`], or store errors: the store is locked, not of this program, or on a full disk.
pub fn examine(dir: impl AsRef<Path>) -> Result<StoreReport, EngineError> {
    let dir = existing(dir.as_ref())?;
    match windlass_store::open_to_examine(dir).and_then(|store| store.check()) {
        Ok(found) => Ok(StoreReport {
            runs: found.whole,
            unreadable: unreadable(found),
        }),
        // If nothing can be written there, the store cannot be opened, but its data may be intact.
        Err(StoreError::Io(error)) if refuses_writes(&error) => Err(StoreError::Io(error).into()),
        Err(error @ (StoreError::Corrupt { .. } | StoreError::Io(_))) => Ok(StoreReport {
            runs: 0,
            unreadable: vec![Unreadable {
                run: None,
                what: THE_STORE.to_owned(),
                error: error.to_string(),
            }],
        }),
        Err(error) => Err(error.into()),
    }
}

fn refuses_writes(error: &io::Error) -> bool {
    let refuses = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::FileTooLarge
    );
    refuses || is_full(error)
}

/// Opens the readable part of a damaged store that cannot be opened. Also returns what cannot be read.
///
/// # Errors
/// Returns the errors of [`repair`].
pub fn inspect_damaged(dir: impl AsRef<Path>) -> Result<(Inspector, Vec<Unreadable>), EngineError> {
    let (store, wrong) = windlass_store::inspect_damaged(existing(dir.as_ref())?)?;
    Ok((
        Inspector::of_unowned_store(Arc::new(store)),
        unreadable(wrong),
    ))
}

/// Passes the rows of a store that no process owns to `sink`, as they are stored. With `run`, passes only the rows of
/// this run. If the store is damaged or on a full disk, passes the rows that can be read.
///
/// # Errors
/// Returns [`EngineError::NoStore`] or store errors.
pub fn raw(
    dir: impl AsRef<Path>,
    run: Option<&str>,
    sink: &mut dyn FnMut(RawReport),
) -> Result<(), EngineError> {
    let dir = existing(dir.as_ref())?;
    let mut report = |row: windlass_store::RawRow| {
        sink(RawReport {
            key: row.key,
            what: row.what,
            bytes: row.bytes,
            record: row.record.map(|record| mask_printed_marks(&record, MASK)),
            error: row.error,
        });
    };
    match windlass_store::open_to_examine(dir) {
        Ok(store) => store.raw(run, &mut report)?,
        Err(StoreError::Corrupt { .. } | StoreError::Io(_) | StoreError::Unopened { .. }) => {
            windlass_store::dump_damaged(dir)?.raw(run, &mut report)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Replaces a store with a new one that is made from the readable part. The old store remains next to the new one.
///
/// # Errors
/// Returns [`EngineError::NoStore`], or store errors: the store is locked, no part of it can be read, or the disk is
/// full. After an error the old store is unchanged.
pub fn repair(dir: impl AsRef<Path>) -> Result<RepairReport, EngineError> {
    let dir = existing(dir.as_ref())?;
    let repaired = windlass_store::repair(dir)?;
    let names =
        |runs: &[windlass_model::model::Name]| runs.iter().map(ToString::to_string).collect();
    Ok(RepairReport {
        retained: names(&repaired.recovered.retained),
        lost: names(&repaired.recovered.lost),
        stand_still: repaired.recovered.older,
        old: repaired.old.display().to_string(),
        unreadable: unreadable(repaired.recovered.issues),
    })
}

fn unreadable(found: IntegrityReport) -> Vec<Unreadable> {
    let one = |wrong: windlass_store::Issue| Unreadable {
        run: wrong.run.map(|run| run.to_string()),
        what: wrong.what.to_owned(),
        error: wrong.error,
    };
    found.issues.into_iter().map(one).collect()
}
