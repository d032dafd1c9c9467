//! What a run did: its iterations and its events.

use super::view::shown;
use crate::engine::{EngineError, Inspector};
use crate::machine::{HistoryEvent, IterationRow, RunStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which part of a run's history is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryFilter {
    /// Only the loop with this path; or else, wherever they are, the loops of this name.
    #[serde(rename = "loop")]
    pub loop_path: Option<String>,
    /// The last so many iterations; none: all that are kept.
    pub iterations: Option<usize>,
    /// Whether events are asked for too.
    pub events: bool,
    /// Only events after this one.
    pub after: u64,
    /// So many events at most; none: all that are kept.
    pub limit: Option<usize>,
}

/// A run's iterations and, when asked for, its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryReport {
    /// The run.
    pub run: String,
    /// What it is doing.
    pub status: RunStatus,
    /// The format of its workflow.
    pub dialect: Option<String>,
    /// The iterations that ended, in the order they ended.
    pub iterations: Vec<IterationRow>,
    /// The events; none when they were not asked for.
    pub events: Option<Vec<NumberedEvent>>,
}

/// An event and its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NumberedEvent {
    /// From 1.
    pub sequence: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: HistoryEvent,
}

/// The history of a run.
///
/// # Errors
/// Store errors, an unknown run.
pub fn history(
    inspector: &Inspector,
    run: &str,
    filter: &HistoryFilter,
) -> Result<HistoryReport, EngineError> {
    let header = inspector.header(run)?;
    let limit = filter.iterations.unwrap_or(usize::MAX);
    let mut iterations = inspector.iterations(run, filter.loop_path.as_deref(), limit)?;
    if let (true, Some(name)) = (iterations.is_empty(), &filter.loop_path) {
        let own = |path: &str| path.rsplit('/').next() == Some(name);
        iterations = inspector.iterations(run, None, usize::MAX)?;
        iterations.retain(|row| own(&row.path));
        iterations.sort_by_key(|row| row.ended_at);
        iterations.drain(..iterations.len().saturating_sub(limit));
    }
    iterations.sort_by_key(|row| row.ended_at);
    iterations
        .iter_mut()
        .for_each(|row| row.result = shown(&row.result));
    let events = if filter.events {
        let events = inspector
            .history(run, filter.after, filter.limit.unwrap_or(usize::MAX))?
            .into_iter();
        let numbered = events.map(|(sequence, event)| NumberedEvent { sequence, event });
        Some(numbered.collect())
    } else {
        None
    };
    Ok(HistoryReport {
        run: header.id.to_string(),
        status: header.status,
        dialect: inspector
            .source(header.program)
            .ok()
            .map(|source| source.dialect.as_str().to_owned()),
        iterations,
        events,
    })
}
