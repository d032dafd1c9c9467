//! The sources of a run, and the positions that it can be retried from.

use super::workflow::FileReport;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_machine::{VisitedPoint, visited};
use windlass_store::{Journal, StoreError};

/// The files of a run, as they were when it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SourceReport {
    /// Id of the run.
    pub run: String,
    /// Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub program: String,
    /// Format of the workflow: `loom`, `azure`, `tea` or `canvas`.
    pub dialect: String,
    /// Files of the run: the workflow first, then the files that it names.
    pub files: Vec<FileReport>,
}

/// Places from which a run can be retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlacesReport {
    /// Id of the run.
    pub run: String,
    /// Places, newest first.
    pub places: Vec<PlaceReport>,
    /// Whether earlier places may be missing: the limit is reached, or the earlier steps are no longer stored one by
    /// one.
    pub cut: bool,
}

/// A place that a run reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlaceReport {
    /// Path of the place, for `from` of a retry: `poll#14` or `poll#14/fetch`.
    pub path: String,
    /// Type of the place: `iteration` or `action`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Returns the files of a run.
///
/// # Errors
/// Returns store errors.
pub fn source(inspector: &Inspector, run: &str) -> Result<SourceReport, EngineError> {
    let header = inspector.header(run)?;
    let source = inspector.source(header.program)?;
    Ok(SourceReport {
        run: header.id.to_string(),
        program: header.program.to_string(),
        dialect: source.dialect.as_str().to_owned(),
        files: source.bundle.files.iter().map(FileReport::new).collect(),
    })
}

/// Returns the positions that a run can be retried from, at most the last `most`.
///
/// # Errors
/// Returns store errors, or an error if this version cannot compile the run's program.
pub fn places(inspector: &Inspector, run: &str, most: usize) -> Result<PlacesReport, EngineError> {
    let Journal {
        header,
        start,
        changes,
    } = inspector.journal(run)?;
    let program = inspector.program_of_run(&header)?;
    let found = visited(&program, &start, &changes, most)
        .map_err(|bug| StoreError::replay_failed(&header.id, &bug))?;
    let cut = header.snapshot > 0 || found.len() == most;
    Ok(PlacesReport {
        run: header.id.to_string(),
        places: found.into_iter().map(PlaceReport::new).collect(),
        cut,
    })
}

impl PlaceReport {
    fn new(place: VisitedPoint) -> Self {
        let (path, kind) = match place {
            VisitedPoint::Iteration(path) => (path, "iteration"),
            VisitedPoint::Action(path) => (path, "action"),
        };
        let kind = kind.to_owned();
        Self { path, kind }
    }
}
