//! Lists the loops and foreaches that a run reached.

use super::last_name;
use crate::report::view::RunView;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_machine::{HistoryEvent, HistoryKind, LoopEnd, active_foreaches};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

/// Maximum number of listed loops.
const MOST: usize = 1_000;

/// The status of a foreach that has ended. If an event reports another outcome, that is the status.
const ENDED: &str = "ended";

/// The loops and foreaches of a run, newest first, at most 1,000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopsReport {
    /// Id of the run.
    pub run: String,
    /// Loops and foreaches that the run reached. A foreach is listed if an ended item of it is stored.
    pub loops: Vec<LoopSummary>,
}

/// One loop or foreach of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopSummary {
    /// Path of the loop in the run: `outer#2/inner`.
    pub path: String,
    /// Name of the loop.
    pub name: String,
    /// Display name, if it differs from the name. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Type of the loop, as its file has it: `until`, `foreach`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of iterations that have ended. Of a foreach, the highest index of an ended item, plus 1.
    pub iterations: u64,
    /// Maximum number of iterations. Of a running foreach, the number of its items; absent if the foreach has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// `running`, or how the loop ended: `condition`, `break`, `count`, `timeout`, `unchanged`, `tokens`, `cost`,
    /// `failed`, `cancelled` or `repeat`. A foreach that succeeded has `ended`.
    pub status: String,
    /// Time when the run entered the loop.
    pub started_at: Timestamp,
    /// Time when its last iteration ended. Absent while the loop runs, and if no ended iteration is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// Returns the loops of a run.
///
/// # Errors
/// Returns store errors, including the error for an unknown run.
pub fn loops(inspector: &Inspector, run: &str) -> Result<LoopsReport, EngineError> {
    let view = RunView::load(inspector, run)?;
    let mut found: BTreeMap<String, LoopSummary> = BTreeMap::new();
    for row in inspector.loops(run)? {
        let summary = LoopSummary {
            name: last_name(&row.path).to_owned(),
            title: row.title.as_ref().map(ToString::to_string),
            kind: row.kind.to_string(),
            iterations: row.iteration,
            max_iterations: Some(row.max_iterations),
            status: row.ended.map_or("running", |end| end.as_str()).to_owned(),
            started_at: row.started_at,
            ended_at: None,
            path: row.path.clone(),
        };
        found.insert(row.path, summary);
    }
    for row in inspector.iterations(run, None, usize::MAX)? {
        let one = found.entry(row.path).or_insert_with_key(|path| {
            let name = last_name(path);
            let program = view.program.as_deref();
            let action = program.and_then(|program| program.action(program.find_action(name)?));
            let title = action.and_then(|action| action.title.as_ref());
            LoopSummary {
                name: name.to_owned(),
                title: title.map(ToString::to_string),
                kind: action.map(|one| one.label.to_string()).unwrap_or_default(),
                iterations: 0,
                max_iterations: None,
                status: ENDED.to_owned(),
                started_at: row.started_at,
                ended_at: None,
                path: path.clone(),
            }
        });
        one.iterations = one.iterations.max(row.iteration.saturating_add(1));
        one.started_at = one.started_at.min(row.started_at);
        one.ended_at = one.ended_at.max(Some(row.ended_at));
    }
    let running = view
        .program
        .as_deref()
        .map(|program| active_foreaches(program, view.state()));
    for fork in running.into_iter().flatten() {
        if let Some(one) = found.get_mut(&fork.path()) {
            one.status = String::from("running");
            one.max_iterations = Some(fork.state.branches.len() as u64);
        }
    }
    if found.values().any(|one| one.status == ENDED) {
        let history = inspector.history(run, 0, usize::MAX)?;
        history
            .iter()
            .for_each(|(_, event)| loop_outcome(&mut found, event));
    }
    let mut loops: Vec<LoopSummary> = found.into_values().collect();
    for one in loops.iter_mut().filter(|one| one.status == "running") {
        one.ended_at = None;
    }
    loops.sort_by_key(|one| std::cmp::Reverse(one.started_at));
    loops.truncate(MOST);
    Ok(LoopsReport {
        run: view.stored.header.id.to_string(),
        loops,
    })
}

/// Sets the status of a foreach that did not succeed. The event that reports the outcome follows the end of the last
/// item.
fn loop_outcome(found: &mut BTreeMap<String, LoopSummary>, event: &HistoryEvent) {
    let HistoryKind::ActionEnded {
        node_name,
        status,
        path,
        iteration,
        ..
    } = &event.what
    else {
        return;
    };
    let path = match (path, iteration) {
        (Some(path), Some(iteration)) => format!("{path}#{iteration}/{node_name}"),
        _ => node_name.to_string(),
    };
    let ended = found.get_mut(&path).filter(|one| one.status == ENDED);
    let Some(one) = ended.filter(|one| one.ended_at.is_none_or(|at| at <= event.at)) else {
        return;
    };
    let end = match status {
        Status::Succeeded | Status::Skipped => return,
        Status::Failed => LoopEnd::Failed,
        Status::TimedOut => LoopEnd::Timeout,
        Status::Cancelled => LoopEnd::Cancelled,
    };
    one.status = end.as_str().to_owned();
}
