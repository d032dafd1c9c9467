//! A run in one document, to be stored or sent: its status, its graph, how the iterations of its loops ended, and all
//! data of a few iterations. The size is bounded, however large the run is.

use super::iterations::{
    IterationEntry, IterationReport, IterationsFilter, LoopSummary, StripFilter, StripReport,
    iteration, iterations, large_value, loops, strip,
};
use super::{StatusFilter, StatusReport, graph, status};
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_draw::{Graph, Open, View};
use windlass_expression::Value;
use windlass_model::model::Status;
use windlass_value::first_bytes;
use windlass_value::time::Timestamp;

/// Maximum number of loops in the document. If there are more, the newest ones are included.
const LOOPS: usize = 20;

/// Maximum number of iterations of each of three kinds: the first iterations, the last ones, and those that failed
/// last.
const ROWS: usize = 25;

/// Maximum number of actions of one iteration.
const ACTIONS: usize = 50;

const CELLS: u64 = 200;

/// Maximum size of one value, in bytes. If a value is longer, only its beginning is included.
const MAX_VALUE_BYTES: usize = 8 << 10;
/// Maximum size of all values together, in bytes.
const MAX_ALL_VALUES_BYTES: usize = 4 << 20;

/// A run in one document of bounded size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportReport {
    /// Status of the run.
    pub status: StatusReport,
    /// Graph of the workflow. Absent if this version of Windlass cannot compile the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// What the run did outside of its loops.
    pub outermost: IterationReport,
    /// Loops and foreaches of the run: the newest 20, newest first.
    pub loops: Vec<LoopExport>,
    /// Number of further stored loops.
    pub more_loops: u64,
}

/// A loop or foreach of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopExport {
    /// Status and limits of the loop.
    pub summary: LoopSummary,
    /// How its iterations ended, as counts in cells.
    pub strip: StripReport,
    /// First 25 iterations, last 25, and last 25 that failed or timed out, in the order of their numbers. Their results
    /// are null.
    pub iterations: Vec<IterationEntry>,
    /// Complete reports of the last iteration that failed or timed out, and of the last iteration.
    pub shown: Vec<IterationReport>,
}

/// Exports a run as one document. `at` is the current time.
///
/// # Errors
/// Returns store errors, including the error for an unknown run.
pub fn export(
    inspector: &Inspector,
    run: &str,
    at: Timestamp,
) -> Result<ExportReport, EngineError> {
    let mut left = MAX_ALL_VALUES_BYTES;
    let view = View {
        open: Open::All,
        root: None,
    };
    let mut all = loops(inspector, run)?.loops;
    let more_loops = all.len().saturating_sub(LOOPS) as u64;
    all.truncate(LOOPS);
    let status = status(inspector, run, at)?;
    let outermost = shortened(iteration(inspector, run, "")?, &mut left);
    let loops: Result<Vec<LoopExport>, EngineError> = all
        .into_iter()
        .map(|summary| of_loop(inspector, run, summary, &mut left))
        .collect();
    Ok(ExportReport {
        status,
        // If this version cannot compile the program, the document only lacks the graph.
        graph: graph(inspector, run, &view).ok(),
        outermost,
        loops: loops?,
        more_loops,
    })
}

fn of_loop(
    inspector: &Inspector,
    run: &str,
    summary: LoopSummary,
    left: &mut usize,
) -> Result<LoopExport, EngineError> {
    let path = summary.path.as_str();
    let cells = StripFilter {
        path: path.to_owned(),
        buckets: CELLS,
        ..StripFilter::default()
    };
    let strip = strip(inspector, run, &cells)?;
    let mut rows = BTreeMap::new();
    let mut read = |newest_first: bool, status: &[StatusFilter<Status>]| {
        let filter = IterationsFilter {
            path: path.to_owned(),
            status: status.to_vec(),
            newest_first,
            limit: ROWS,
            ..IterationsFilter::default()
        };
        let page = iterations(inspector, run, &filter)?.iterations;
        let newest = page.first().map(|entry| entry.row.iteration);
        for mut entry in page {
            entry.row.result = Value::Null;
            rows.insert(entry.row.iteration, entry);
        }
        Ok::<_, EngineError>(newest)
    };
    read(false, &[])?;
    let failed = [Status::Failed, Status::TimedOut].map(StatusFilter::Is);
    let failed = read(true, &failed)?;
    let last = read(true, &[])?;
    let mut chosen: Vec<u64> = failed.into_iter().chain(last).collect();
    chosen.dedup();
    let mut shown = Vec::with_capacity(chosen.len());
    for number in chosen {
        match iteration(inspector, run, &format!("{path}#{number}")) {
            Ok(report) => shown.push(shortened(report, left)),
            // Omit an iteration that was removed meanwhile.
            Err(EngineError::NoIteration { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(LoopExport {
        strip,
        iterations: rows.into_values().collect(),
        shown,
        summary,
    })
}

fn shortened(mut report: IterationReport, left: &mut usize) -> IterationReport {
    report.actions.truncate(ACTIONS);
    let of_actions = report
        .actions
        .iter_mut()
        .flat_map(|action| [&mut action.inputs, &mut action.outputs]);
    let values = of_actions.chain([&mut report.variables, &mut report.result]);
    for value in values {
        *value = value.take().map(|value| shorter(value, left));
    }
    report
}

fn shorter(value: Value, left: &mut usize) -> Value {
    let text = value.to_json();
    let most = MAX_VALUE_BYTES.min(*left);
    if text.len() <= most {
        *left -= text.len();
        return value;
    }
    let preview = first_bytes(&text, most);
    *left -= preview.len();
    large_value(text.len(), preview, None)
}
