//! The health of a store that no process owns: what of it can be read, and a new one made of that.

use super::error::{existing, is_full};
use super::report::{RawReport, RepairReport, StoreReport, Unreadable};
use super::{EngineError, Inspector};
use std::path::Path;
use std::sync::Arc;
use windlass_actions::MASK;
use windlass_expression::mask_printed_marks;
use windlass_store::{DiskStore, IntegrityReport, StoreError};

/// Reads everything in a store. A store that cannot be opened is a report, not an error.
///
/// # Errors
/// [`EngineError::NoStore`]; a locked store, one that is not ours, a full disk.
pub fn examine(dir: impl AsRef<Path>) -> Result<StoreReport, EngineError> {
    let dir = existing(dir.as_ref())?;
    match windlass_store::open(dir, None).and_then(|store| store.check()) {
        Ok(found) => Ok(StoreReport {
            runs: found.whole,
            unreadable: unreadable(found),
        }),
        // A disk that is full says nothing of what is on it.
        Err(StoreError::Io(error)) if is_full(&error) => Err(StoreError::Io(error).into()),
        Err(error @ (StoreError::Corrupt { .. } | StoreError::Io(_))) => Ok(StoreReport {
            runs: 0,
            unreadable: vec![Unreadable {
                run: None,
                what: String::from("the store"),
                error: error.to_string(),
            }],
        }),
        Err(error) => Err(error.into()),
    }
}

/// What can be read of a store that does not open because it is damaged, and what cannot.
///
/// # Errors
/// As [`repair`].
pub fn inspect_damaged(dir: impl AsRef<Path>) -> Result<(Inspector, Vec<Unreadable>), EngineError> {
    let (store, wrong) = windlass_store::inspect_damaged(existing(dir.as_ref())?)?;
    Ok((
        Inspector::of_unowned_store(Arc::new(store)),
        unreadable(wrong),
    ))
}

/// The rows of a store that no process owns, as they lie there: all, or those of a run. Of one that is
/// damaged or on a full disk those that can be read.
///
/// # Errors
/// [`EngineError::NoStore`]; store errors.
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
    match windlass_store::open(dir, None) {
        Ok(store) => store.raw(run, &mut report)?,
        Err(StoreError::Corrupt { .. } | StoreError::Io(_) | StoreError::Unopened { .. }) => {
            windlass_store::dump_damaged(dir)?.raw(run, &mut report)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Makes a new store of what can be read, and keeps the old one next to it.
///
/// # Errors
/// [`EngineError::NoStore`]; a locked store, one of which nothing can be read, no room: nothing
/// was changed then.
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
