//! Runs that have ended are forgotten by age and by number; the programs that no one needs any
//! more go with them. What has not ended is never touched.

use super::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;
use windlass_machine::RunStatus;
use windlass_model::model::Name;
use windlass_store::{RunHeader, Store};
use windlass_value::time::Timestamp;

/// Number of headers read at a time.
const PAGE: usize = 1_024;

/// Which runs are forgotten: of those that have ended, the ones that everything here applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruneFilter {
    /// Only those that ended longer ago than this, in milliseconds.
    pub older_than_ms: Option<u64>,
    /// Except this many of the newest runs of each workflow.
    pub keep: Option<usize>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only runs that ended so.
    pub status: Vec<RunStatus>,
    /// Deletes nothing, and reports what would be deleted.
    pub dry_run: bool,
}

/// What was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pruned {
    /// The runs.
    pub runs: Vec<String>,
    /// How many programs no run needed any more.
    pub programs: u64,
    /// Whether it was only looked.
    pub dry_run: bool,
}

impl Engine {
    /// Forgets runs that have ended, while others go on. Blocks.
    ///
    /// # Errors
    /// Store errors; what was forgotten before stays forgotten.
    pub fn prune(&self, filter: &PruneFilter, now: Timestamp) -> Result<Pruned, EngineError> {
        self.runs.prune(filter, now)
    }
}

/// Forgets what the filter chooses.
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
            // Someone else was faster.
            Ok(()) | Err(windlass_store::StoreError::UnknownRun(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    pruned.programs = store.sweep()?;
    Ok(pruned)
}

/// The runs that a filter means.
pub fn chosen_to_prune(
    store: &dyn Store,
    filter: &PruneFilter,
    now: Timestamp,
) -> Result<Vec<Name>, EngineError> {
    let mut ended: BTreeMap<Name, Vec<(Timestamp, Name)>> = BTreeMap::new();
    let mut after: Option<Name> = None;
    loop {
        let page = store.list(after.as_deref(), PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for header in page {
            if matches(&header, filter) {
                let of = ended.entry(header.workflow).or_default();
                of.push((header.updated_at, header.id));
            }
        }
    }
    let old = |ended_at: Timestamp| {
        let least = filter.older_than_ms.map(Duration::from_millis);
        least.is_none_or(|least| ended_at.plus(least) <= now)
    };
    let mut chosen = Vec::new();
    for (_, mut runs) in ended {
        // The newest first.
        runs.sort_by(|a, b| b.cmp(a));
        let beyond = runs.into_iter().skip(filter.keep.unwrap_or(0));
        chosen.extend(beyond.filter(|(at, _)| old(*at)).map(|(_, run)| run));
    }
    Ok(chosen)
}

fn matches(header: &RunHeader, filter: &PruneFilter) -> bool {
    let named = filter.workflow.as_deref();
    let labelled = |(name, text): (&String, &String)| header.labels.get(name) == Some(text);
    header.status.is_final()
        && filter.labels.iter().all(labelled)
        && (filter.status.is_empty() || filter.status.contains(&header.status))
        && named.is_none_or(|named| *header.workflow == *named)
}
