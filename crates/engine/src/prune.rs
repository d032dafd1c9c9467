//! Prunes ended runs by age and by number, and the programs that no other run needs. Runs that have not ended are never
//! pruned, and neither are their child runs: a run may not have read the result of its child yet.

use super::report::StatusFilter;
use super::scheduler::{PARENT_LABEL, remove_old_rates};
use super::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use utoipa::ToSchema;
use windlass_machine::RunStatus;
use windlass_model::model::Name;
use windlass_store::{RunHeader, Store, StoreError};
use windlass_value::time::Timestamp;

/// Number of headers that are read at a time.
const PAGE: usize = 1_024;

/// Selects the runs to prune: ended runs for which all of these conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruneFilter {
    /// Only runs that ended longer ago than this, in milliseconds.
    pub older_than_ms: Option<u64>,
    /// Retains this number of the newest runs of each workflow.
    pub keep: Option<usize>,
    /// Only runs of one of these workflows. Empty: all.
    pub workflows: Vec<String>,
    /// Only runs with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only runs with one of these final statuses. Empty: all.
    pub status: Vec<StatusFilter<RunStatus>>,
    /// Deletes nothing, and reports what would be deleted.
    pub dry_run: bool,
}

/// Result of a prune.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pruned {
    /// Ids of the deleted runs, or with `dry_run` of the runs that would be deleted.
    pub runs: Vec<String>,
    /// Number of workflow versions that were deleted because no run uses them any more.
    pub programs: u64,
    /// Whether nothing was deleted.
    pub dry_run: bool,
}

impl Engine {
    /// Prunes runs that have ended, while others continue. Blocks.
    ///
    /// # Errors
    /// Returns store errors. Runs that were pruned before the error remain pruned.
    pub fn prune(&self, filter: &PruneFilter, now: Timestamp) -> Result<Pruned, EngineError> {
        let pruned = self.launcher.runs.prune(filter, now)?;
        if let Some(state) = self.state.as_deref().filter(|_| !filter.dry_run) {
            self.remove_rows(&state.join(ROWS));
            remove_old_rates(state, now);
        }
        Ok(pruned)
    }

    /// Removes row files of runs that do not exist. If a removal fails, the next call tries it again: nothing else uses
    /// these files.
    fn remove_rows(&self, folder: &Path) {
        // A process that has not printed its rows yet holds the lock, and may need its file although the run is pruned.
        let lock = fs::File::open(folder.join(ROWS_LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_err()) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(run) = name.to_str().map(run_of_rows) else {
                continue;
            };
            let header = self.launcher.store.header(run);
            if !run.starts_with('.') && matches!(header, Err(StoreError::UnknownRun(_))) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Folder in the state directory for runs that print their rows at their end. The file of a run has the name of the
/// run.
pub const ROWS: &str = "rows";

/// Lock file in [`ROWS`]. Each process holds it until it has printed its rows.
pub const ROWS_LOCK: &str = ".lock";

/// End of the name of an empty file in [`ROWS`]. It marks that the rows of the run were printed.
/// No id of a run can have this end.
pub const PRINTED_ROWS: &str = "~printed";

/// Returns the run to which the file with this name in [`ROWS`] belongs.
///
/// Until the run succeeds, the name is `RUN.RUN.new`.
fn run_of_rows(file: &str) -> &str {
    let file = file.strip_suffix(PRINTED_ROWS).unwrap_or(file);
    let mut runs = file.match_indices('.').filter_map(|(at, _)| {
        let (run, rest) = file.split_at_checked(at)?;
        let rest = rest.strip_prefix('.')?.strip_prefix(run)?;
        rest.starts_with(".new").then_some(run)
    });
    runs.next_back().unwrap_or(file)
}

/// Prunes the runs that the filter selects.
pub(super) fn prune(
    store: &dyn Store,
    filter: &PruneFilter,
    now: Timestamp,
) -> Result<Pruned, EngineError> {
    let old = chosen_to_prune(store, filter, now)?;
    let mut pruned = Pruned {
        runs: old.iter().map(ToString::to_string).collect(),
        programs: 0,
        dry_run: filter.dry_run,
    };
    if filter.dry_run || old.is_empty() {
        return Ok(pruned);
    }
    for run in &old {
        match store.delete(run) {
            // Another caller may have deleted the run meanwhile.
            Ok(()) | Err(StoreError::UnknownRun(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    pruned.programs = store.sweep()?;
    Ok(pruned)
}

/// Returns the runs that a filter selects, without deleting them.
pub fn chosen_to_prune(
    store: &dyn Store,
    filter: &PruneFilter,
    now: Timestamp,
) -> Result<Vec<Name>, EngineError> {
    let mut ended: BTreeMap<Name, Vec<(Timestamp, RunHeader)>> = BTreeMap::new();
    let mut after: Option<Name> = None;
    loop {
        let page = store.list(after.as_deref(), PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for header in page {
            if matches(&header, filter) {
                let of = ended.entry(header.workflow.clone()).or_default();
                of.push((header.updated_at, header));
            }
        }
    }
    let old = |ended_at: Timestamp| {
        let least = filter.older_than_ms.map(Duration::from_millis);
        least.is_none_or(|least| ended_at.plus(least) <= now)
    };
    let mut chosen = Vec::new();
    for (_, mut runs) in ended {
        // Sort the newest runs first.
        runs.sort_by(|a, b| (b.0, &b.1.id).cmp(&(a.0, &a.1.id)));
        for (at, header) in runs.into_iter().skip(filter.keep.unwrap_or(0)) {
            if old(at) && !has_unfinished_parent(store, &header)? {
                chosen.push(header.id);
            }
        }
    }
    Ok(chosen)
}

/// Returns whether a run is the child of a run that is stored and has not ended.
fn has_unfinished_parent(store: &dyn Store, header: &RunHeader) -> Result<bool, StoreError> {
    let Some(parent) = header.labels.get(PARENT_LABEL) else {
        return Ok(false);
    };
    match store.header(parent) {
        Ok(parent) => Ok(!parent.status.is_final()),
        Err(StoreError::UnknownRun(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn matches(header: &RunHeader, filter: &PruneFilter) -> bool {
    let of = |name: &String| **name == *header.workflow;
    let labelled = |(name, text): (&String, &String)| header.labels.get(name) == Some(text);
    let with_failures = header.status == RunStatus::Succeeded && header.failed_actions() > 0;
    let ended_so = |status: &StatusFilter<_>| status.accepts(header.status, with_failures);
    header.status.is_final()
        && filter.labels.iter().all(labelled)
        && (filter.status.is_empty() || filter.status.iter().any(ended_so))
        && (filter.workflows.is_empty() || filter.workflows.iter().any(of))
}
