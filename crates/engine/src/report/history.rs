//! The history of a run: its iterations and its events.

use super::iterations::last_name;
use super::loop_limits;
use super::view::shown;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_machine::{HistoryEvent, IterationRow, LoopState, RunStatus};
use windlass_store::RunHeader;

/// Selects a part of a run's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryFilter {
    /// Only iterations of the loop with this path. If no loop has this path, iterations of all loops with this name.
    #[serde(rename = "loop")]
    pub loop_path: Option<String>,
    /// Maximum number of iterations, the last ones. `None`: all stored iterations.
    pub iterations: Option<usize>,
    /// Whether events are included, too.
    pub events: bool,
    /// Only events after this sequence number.
    pub after: u64,
    /// Maximum number of events. `None`: all stored events.
    pub limit: Option<usize>,
}

/// The iterations of a run and, if requested, its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryReport {
    /// Id of the run.
    pub run: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Format of the workflow: `loom`, `azure`, `tea` or `canvas`. Null if the files cannot be read.
    pub dialect: Option<String>,
    /// Iterations that have ended, in the order of their ends.
    pub iterations: Vec<IterationRow>,
    /// Number of stored iterations that ended before the listed ones.
    pub earlier: usize,
    /// Number of iterations of these loops that are no longer stored.
    pub forgotten: u64,
    /// Events, oldest first. Null if they were not requested.
    pub events: Option<Vec<NumberedEvent>>,
    /// Number of requested events before the listed ones that are no longer stored.
    pub forgotten_events: u64,
}

/// An event of a run, with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NumberedEvent {
    /// Number of the event in the run, from 1.
    pub sequence: u64,
    /// Event, with its time.
    #[serde(flatten)]
    pub event: HistoryEvent,
}

/// Returns the history of a run.
///
/// # Errors
/// Returns store errors, including the error for an unknown run.
pub fn history(
    inspector: &Inspector,
    run: &str,
    filter: &HistoryFilter,
) -> Result<HistoryReport, EngineError> {
    let header = inspector.header(run)?;
    let mut iterations = inspector.iterations(run, filter.loop_path.as_deref(), usize::MAX)?;
    if let (true, Some(name)) = (iterations.is_empty(), &filter.loop_path) {
        let own = |path: &str| last_name(path) == name;
        iterations = inspector.iterations(run, None, usize::MAX)?;
        iterations.retain(|row| own(&row.path));
        if iterations.is_empty() {
            has_loop(inspector, &header, name)?;
        }
    }
    let forgotten = count_forgotten(&inspector.loops(run)?, &iterations, filter);
    iterations.sort_by_key(|row| row.ended_at);
    let limit = filter.iterations.unwrap_or(usize::MAX);
    let earlier = iterations.len().saturating_sub(limit);
    iterations.drain(..earlier);
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
    let first = events
        .iter()
        .flatten()
        .map(|event: &NumberedEvent| event.sequence);
    let forgotten_events = first.min().map_or(0, |first| {
        first.saturating_sub(1).saturating_sub(filter.after)
    });
    Ok(HistoryReport {
        run: header.id.to_string(),
        status: header.status,
        dialect: inspector
            .source(header.program)
            .ok()
            .map(|source| source.dialect.as_str().to_owned()),
        iterations,
        earlier,
        forgotten,
        events,
        forgotten_events,
    })
}

/// Returns the number of iterations that are no longer stored. These are the iterations of each requested loop before
/// its first stored one.
fn count_forgotten(loops: &[LoopState], rows: &[IterationRow], filter: &HistoryFilter) -> u64 {
    let is_requested = |path: &str| {
        let requested = filter.loop_path.as_deref();
        requested.is_none_or(|requested| path == requested || last_name(path) == requested)
    };
    // If no iteration of a loop is stored, this is the number of its ended iterations.
    let ended = loops.iter().map(|row| (&*row.path, row.iteration));
    let stored = rows.iter().map(|row| (&*row.path, row.iteration));
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    for (path, iteration) in ended.chain(stored).filter(|(path, _)| is_requested(path)) {
        let known = first.entry(path).or_insert(iteration);
        *known = iteration.min(*known);
    }
    first.values().sum()
}

/// Returns an error if a run cannot have a loop with this name.
fn has_loop(inspector: &Inspector, header: &RunHeader, requested: &str) -> Result<(), EngineError> {
    let begun = inspector.loops(&header.id)?;
    let mut known: Vec<String> = begun.iter().map(|row| row.path.to_string()).collect();
    // If this version cannot compile the program, the names of its loops are not known, so any name is accepted.
    let Some(program) = inspector.program_of(header.program) else {
        return Ok(());
    };
    for row in loop_limits(&program) {
        let own = |path: &String| last_name(path) == row.name;
        if !known.iter().any(own) {
            known.push(row.name);
        }
    }
    let requested_name = last_name(requested);
    if known.iter().any(|path| last_name(path) == requested_name) {
        return Ok(());
    }
    Err(EngineError::NoLoop {
        run: header.id.clone(),
        path: requested.to_owned(),
        known,
    })
}
