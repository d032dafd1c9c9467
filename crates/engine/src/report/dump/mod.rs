//! Dumps the stored states of runs (docs/reference/cli.md). Unreadable parts are listed, and the rest is still shown.
//! `docs/dump.schema.json` describes the JSON.

mod encode;
mod types;

pub use types::{ChecksumsDump, DumpReport, HeaderDump, RunDump, SizesDump, Unreadable};

use super::view::{RunView, shown};
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use windlass_machine::RunState;
use windlass_model::model::sha256;
use windlass_store::{FORMAT, Placement, RunHeader, StoreError};
use windlass_value::hex;
use windlass_value::time::Timestamp;

/// Number of headers that are read at a time.
const PAGE: usize = 1_000;

/// Selects a part of a store to dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DumpFilter {
    /// Only this run.
    pub run: Option<String>,
    /// Maximum number of iterations of each run, the last ones. `None`: all stored iterations.
    pub iterations: Option<usize>,
    /// Only runs after this one, in the order of their ids.
    pub after: Option<String>,
    /// Maximum number of runs. `None`: all runs.
    pub limit: Option<usize>,
}

/// Dumps a store, or one run of it. `at` is the time of the dump.
///
/// # Errors
/// Returns store errors that occur before any run is read, including the error for an unknown run.
pub fn dump(
    inspector: &Inspector,
    filter: &DumpFilter,
    at: Timestamp,
) -> Result<DumpReport, EngineError> {
    let mut report = DumpReport {
        format: FORMAT,
        at,
        runs: Vec::new(),
        unreadable: Vec::new(),
    };
    if let Some(run) = &filter.run {
        let header = inspector.header(run)?;
        report.add(inspector, filter, &header)?;
        return Ok(report);
    }
    let mut after = filter.after.clone();
    let mut left = filter.limit.unwrap_or(usize::MAX);
    loop {
        let wanted = left.min(PAGE);
        let page = match inspector.list(after.as_deref(), wanted) {
            Ok(page) => page,
            Err(error) => {
                report.cannot_read(None, "the list of runs", &error);
                return Ok(report);
            }
        };
        left -= page.len();
        let full = page.len() == wanted && left > 0;
        after = page.last().map(|header| header.id.to_string());
        for header in &page {
            match report.add(inspector, filter, header) {
                // A run that was pruned after the list was read is not an error.
                Ok(()) | Err(EngineError::Store(StoreError::UnknownRun(_))) => {}
                Err(error) => report.cannot_read(Some(&header.id), "all of it", &error),
            }
        }
        if !full {
            return Ok(report);
        }
    }
}

impl DumpReport {
    fn cannot_read(&mut self, run: Option<&str>, what: &str, error: &EngineError) {
        self.unreadable.push(Unreadable {
            run: run.map(str::to_owned),
            what: what.to_owned(),
            error: error.to_string(),
        });
    }

    /// Returns what was read. If the read failed, records the error in the report and returns a default.
    fn part<T, E>(&mut self, run: &str, what: &str, read: Result<T, E>) -> T
    where
        T: Default,
        E: Into<EngineError>,
    {
        read.unwrap_or_else(|error| {
            self.cannot_read(Some(run), what, &error.into());
            T::default()
        })
    }

    /// Adds a run to the report, with everything that can be read of it.
    ///
    /// # Errors
    /// Returns an error if the run no longer exists, or if the store cannot make its data durable.
    fn add(
        &mut self,
        inspector: &Inspector,
        filter: &DumpFilter,
        header: &RunHeader,
    ) -> Result<(), EngineError> {
        let run = &*header.id;
        let before = self.unreadable.len();
        let whole = inspector.whole(run, filter.iterations.unwrap_or(usize::MAX))?;
        let stored = self.part(run, "state", whole.stored.map(Some));
        let view = stored.map(|stored| RunView::of(inspector, stored));
        let loops = self.part(run, "loops", whole.loops);
        let state = view.as_ref().map(encode::state).transpose();
        let state = self.part(run, "state", state);
        let mut iterations = self.part(run, "iterations", whole.iterations);
        iterations.sort_by_key(|row| row.ended_at);
        iterations
            .iter_mut()
            .for_each(|row| row.result = shown(&row.result));
        let source = match view.as_ref().and_then(|view| view.source.clone()) {
            Some(source) => Some(source),
            None => self.part(run, "program", inspector.source(header.program).map(Some)),
        };
        if self.unreadable.len() > before
            && let Err(gone @ EngineError::Store(StoreError::UnknownRun(_))) = inspector.header(run)
        {
            self.unreadable.truncate(before);
            return Err(gone);
        }
        // Use the header that belongs to the state: the run may have continued after the list was read.
        let header = view.as_ref().map_or(header, |view| &view.stored.header);
        let files = source.as_ref().map(|source| source.bundle.files.as_slice());
        let source_bytes = files
            .unwrap_or_default()
            .iter()
            .map(|file| file.text.len() as u64);
        let program = view.as_ref().and_then(|view| view.program.as_ref());
        let (placement, due_at) = match header.placement {
            Placement::Runnable => ("runnable", None),
            Placement::Due(due) => ("due", Some(due)),
            Placement::Idle => ("resting", None),
        };
        self.runs.push(RunDump {
            header: HeaderDump {
                run: run.to_owned(),
                workflow: header.workflow.to_string(),
                file: files.and_then(<[_]>::first).map(|file| file.path.clone()),
                dialect: source
                    .as_ref()
                    .map(|source| source.dialect.as_str().to_owned()),
                status: header.status,
                commit: header.revision,
                snapshot: header.snapshot,
                started_at: header.started_at,
                updated_at: header.updated_at,
                placement: placement.to_owned(),
                due_at,
                labels: header.labels.clone(),
            },
            loops,
            iterations,
            links: program
                .map(|program| program.links.clone())
                .unwrap_or_default(),
            sizes: SizesDump {
                snapshot_bytes: view.as_ref().map_or(0, |view| view.stored.snapshot_bytes),
                tail_bytes: view.as_ref().map_or(0, |view| view.stored.tail_bytes),
                source_bytes: source_bytes.sum(),
            },
            checksums: ChecksumsDump {
                program: header.program.to_string(),
                state: view.as_ref().and_then(|view| checksum(view.state())),
            },
            state,
        });
        Ok(())
    }
}

/// Returns the SHA-256 of the encoded state.
fn checksum(state: &RunState) -> Option<String> {
    let bytes = bincode::encode_to_vec(state, bincode::config::standard()).ok()?;
    Some(format!("sha256:{}", hex(&sha256(&bytes))))
}
