//! One iteration with everything that is stored of it: the inputs and outputs of its actions, each attempt, and the
//! variables at its end.

use super::action_log::{ActionLog, ActionLogScope, Progress, complete};
use super::outermost::outermost;
use super::variables::variables;
use super::waits::waits;
use super::{
    ActionReport, LoopView, StoredDetail, WaitReport, at_pointer, shorten_large, split, without_own,
};
use crate::report::view::shown;
use crate::runs::Extent;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_store::RowLocation;
use windlass_value::time::Timestamp;

/// One iteration, or what a run did outside of its loops (then `path` and `loop` are empty). A value over 64 KiB is
/// `{"$large": {bytes, preview, pointer}}`: its size, its beginning and the pointer with which it is requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationReport {
    /// Id of the run.
    pub run: String,
    /// Path of the iteration: `outer#2/inner#7`. Empty outside of loops.
    pub path: String,
    /// Path of the loop: `outer#2/inner`. Empty outside of loops.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// Number of the iteration, from 0. Outside of loops it is 0.
    pub iteration: u64,
    /// Status of the iteration: `Running`, or how it ended.
    pub status: Progress,
    /// Value of the loop's condition before the iteration. Absent if the loop checks its condition only after
    /// iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
    /// Time when the iteration began. Outside of loops, the time when the run started.
    pub started_at: Timestamp,
    /// Time when the iteration ended. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Highest number of attempts of one of its actions, at least 1.
    pub attempts: u32,
    /// Message of its failure. If it succeeded with failures, the message of the last one. Absent without a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much of the iteration is stored.
    pub stored: StoredDetail,
    /// Outputs of its actions, by name. Absent while it runs, and if they are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Variables at the end of the iteration, by name. Absent if they are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// Actions of the iteration, as far as they are stored.
    pub actions: Vec<ActionReport>,
    /// Times in which the iteration, or the loop before it, waited.
    pub waits: Vec<WaitReport>,
}

/// Returns one iteration. With an empty path, returns what a run did outside of its loops.
///
/// # Errors
/// Returns store errors, or an error for an unknown run, loop or iteration.
pub fn iteration(
    inspector: &Inspector,
    run: &str,
    path: &str,
) -> Result<IterationReport, EngineError> {
    let mut report = whole(inspector, run, path)?;
    let cut = |value: &mut Option<Value>, pointer: String| {
        *value = value.as_ref().map(|value| shorten_large(value, pointer));
    };
    cut(&mut report.result, String::from("/result"));
    if let Some(Value::Object(variables)) = &report.variables {
        let member = |(name, value): (&std::sync::Arc<str>, &Value)| {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            (
                name.clone(),
                shorten_large(value, format_args!("/variables/{escaped}")),
            )
        };
        report.variables = Some(Value::object(variables.iter().map(member).collect()));
    }
    for (index, action) in report.actions.iter_mut().enumerate() {
        cut(&mut action.inputs, format!("/actions/{index}/inputs"));
        cut(&mut action.outputs, format!("/actions/{index}/outputs"));
    }
    Ok(report)
}

/// Returns one iteration with complete values, however long the values are.
///
/// # Errors
/// Returns the errors of [`iteration`].
pub fn iteration_values(
    inspector: &Inspector,
    run: &str,
    path: &str,
) -> Result<IterationReport, EngineError> {
    let mut report = whole(inspector, run, path)?;
    let actions = report.actions.iter_mut();
    let actions = actions.flat_map(|action| [&mut action.inputs, &mut action.outputs]);
    let values = actions.chain([&mut report.result, &mut report.variables]);
    for value in values.flatten() {
        *value = shown(value);
    }
    Ok(report)
}

/// Returns a complete value of an iteration. `None` if there is no value at this pointer.
///
/// # Errors
/// Returns the errors of [`iteration`].
pub fn iteration_value(
    inspector: &Inspector,
    run: &str,
    path: &str,
    pointer: &str,
) -> Result<Option<Value>, EngineError> {
    let report = whole(inspector, run, path)?;
    let (first, rest) = split_pointer(pointer);
    let (value, rest) = match first {
        "result" => (report.result, rest),
        "variables" => (report.variables, rest),
        "actions" => {
            let (index, rest) = split_pointer(rest);
            let (part, rest) = split_pointer(rest);
            let index = index.parse().unwrap_or(usize::MAX);
            let action = report.actions.into_iter().nth(index);
            let value = action.and_then(|action| match part {
                "inputs" => action.inputs,
                "outputs" => action.outputs,
                _ => None,
            });
            (value, rest)
        }
        _ => (None, rest),
    };
    Ok(value.and_then(|value| at_pointer(&value, rest).map(shown)))
}

/// Splits a JSON pointer into its first part, and the rest, which begins with a slash.
fn split_pointer(pointer: &str) -> (&str, &str) {
    let inner = pointer.strip_prefix('/').unwrap_or(pointer);
    inner.split_at(inner.find('/').unwrap_or(inner.len()))
}

/// Returns one iteration with complete values. The caller has to mask secrets.
pub(super) fn whole(
    inspector: &Inspector,
    run: &str,
    path: &str,
) -> Result<IterationReport, EngineError> {
    if path.is_empty() {
        return outermost(inspector, run);
    }
    let missing = |run: &str| EngineError::NoIteration {
        run: windlass_model::model::Name::from(run),
        path: path.to_owned(),
    };
    let (loop_path, number) = split(path).ok_or_else(|| missing(run))?;
    let view = LoopView::load(inspector, run, loop_path)?;
    let ended = view.of.one(number);
    let ended = ended.as_ref();
    let last = match ended.map(|one| one.row) {
        Some(RowLocation::Commit(number)) => Some(number),
        Some(RowLocation::Retained) => Some(0),
        None => None,
    };
    let state = view.of.state.as_ref();
    let current = state.filter(|state| state.iteration == number);
    let began = current.and_then(|state| state.iteration_started_at);
    let lane = view.lanes.iter().find(|(item, _)| *item == number);
    let began = ended.map(|one| one.started_at).or(began);
    let began = began.or(lane.map(|(_, since)| *since));
    let since = began.unwrap_or(view.header.started_at);
    let of = ActionLogScope::Iteration(&view.path, number, ended);
    let records = match last {
        Some(0) => Vec::new(),
        last => inspector.read(Extent::Entire(run), |store| {
            store.commits_between(run, since, last, &|event| of.includes(event))
        })?,
    };
    let mut acted = ActionLog::new(view.program.as_deref(), of);
    acted.read(&records);
    let mut actions = acted.actions;
    let first = actions.iter().filter_map(|action| action.started_at).min();
    // An iteration that has begun and not ended exists only while the loop is running.
    let started_at = match (began.or(first), ended) {
        (Some(at), _) if ended.is_some() || view.running => at,
        _ => return Err(missing(run)),
    };
    let rows = match ended {
        Some(one) => view.rows(inspector, &[one])?,
        None => Vec::new(),
    };
    let result = rows.into_iter().next_back().map(|row| row.result);
    let retention = match ended {
        Some(_) if result.is_none() => StoredDetail::Summary,
        Some(one) => view.retention_of(one),
        None => StoredDetail::Whole,
    };
    let variables = match retention {
        StoredDetail::Whole | StoredDetail::Row => {
            variables(inspector, &view, number, ended)?.map(without_own)
        }
        StoredDetail::Summary => None,
    };
    if let (Some(result), Some(program)) = (&result, view.program.as_deref()) {
        complete(&mut actions, result, program, path);
    }
    Ok(IterationReport {
        run: view.header.id.to_string(),
        path: path.to_owned(),
        loop_path: loop_path.to_owned(),
        iteration: number,
        status: ended.map_or(Progress::Running, |one| Progress::Ended(one.status)),
        condition: ended.and_then(|one| one.condition),
        started_at,
        ended_at: ended.map(|one| one.ended_at),
        attempts: ended.map_or(most_attempts(&actions), |one| one.attempts),
        error: ended.and_then(|one| one.error.as_deref().map(str::to_owned)),
        stored: match (retention, &variables) {
            (StoredDetail::Whole, None) => StoredDetail::Row,
            (StoredDetail::Row, Some(_)) => StoredDetail::Whole,
            (retention, _) => retention,
        },
        result,
        variables,
        waits: waits(&view, number, started_at, &actions, &records),
        actions,
    })
}

pub(super) fn most_attempts(actions: &[ActionReport]) -> u32 {
    let attempts = actions.iter().flat_map(|action| &action.attempts);
    attempts.map(|one| one.attempt).max().unwrap_or(1)
}
