//! The iterations of a run's loops over HTTP.

use super::app::App;
use super::body::{PathParam, ValidatedQuery, page};
use super::listener::Caller;
use crate::api::Problem;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_engine::report::{
    DifferenceReport, ExportReport, IterationReport, IterationsFilter, IterationsReport,
    LoopsReport, StatusFilter, StripFilter, StripReport,
};
use windlass_engine::report::{
    difference as difference_report, export as export_report, iteration as iteration_report,
    iteration_value, iterations as iterations_report, loops as loops_report, strip as strip_report,
};
use windlass_engine::{ErrorCode, Status, now};

/// The default size of a page.
const PAGE: usize = 100;
/// The maximum size of a page.
const MAX_PAGE: usize = 1_000;

/// The default number of cells of a strip (the iterations of a loop, summarized in cells).
const CELLS: u64 = 400;

/// List the loops and foreaches of a run, newest first.
#[utoipa::path(get, path = "/v1/runs/{run}/loops", operation_id = "get_loops", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "Loops with stored iterations, at most 1000", body = LoopsReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn loops(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<LoopsReport>, Problem> {
    let report = app.inspect(move |store| loops_report(store, &run));
    Ok(axum::Json(report.await?))
}

/// Export a run as one document.
///
/// It has the status, the graph, how the iterations of its loops ended, and complete reports of a few iterations. Its
/// size is bounded, however large the run is.
#[utoipa::path(get, path = "/v1/runs/{run}/export", operation_id = "export_run", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "The run in one document", body = ExportReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn export(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<ExportReport>, Problem> {
    let report = app.inspect(move |store| export_report(store, &run, now()));
    Ok(axum::Json(report.await?))
}

/// Selects a part of a loop.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StripQuery {
    /// Path of the loop or foreach: `poll`, `outer#2/inner`.
    #[serde(rename = "loop")]
    loop_path: String,
    /// Number of the first iteration, from 0. If absent, 0.
    from: Option<u64>,
    /// Number of the iteration after the last one. If absent, all that have ended.
    to: Option<u64>,
    /// Maximum number of cells: 400 by default, at most 10000. If there are enough cells, each iteration has its own.
    #[param(minimum = 1)]
    buckets: Option<u64>,
}

/// Get counts of how the iterations of a loop ended, with durations, in cells.
#[utoipa::path(get, path = "/v1/runs/{run}/strip", operation_id = "get_strip", tag = "runs", params(("run" = String, Path, description = "Run id"), StripQuery),
    responses(
        (status = 200, description = "Counts and durations, in cells that add up to the whole", body = StripReport),
        (status = "4XX", description = "404 unknown run, 400 unknown loop", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn strip(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<StripQuery>,
) -> Result<axum::Json<StripReport>, Problem> {
    let filter = StripFilter {
        path: query.loop_path,
        from: query.from,
        to: query.to,
        buckets: query.buckets.unwrap_or(CELLS),
    };
    let report = app.inspect(move |store| strip_report(store, &run, &filter));
    Ok(axum::Json(report.await?))
}

/// Selects the listed iterations.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct IterationsQuery {
    /// Path of the loop or foreach: `poll`, `outer#2/inner`.
    #[serde(rename = "loop")]
    loop_path: String,
    /// Number of the first iteration, from 0. If absent, 0.
    from: Option<u64>,
    /// Number of the iteration after the last one. If absent, all that have ended.
    to: Option<u64>,
    /// Only iterations with these statuses, separated by commas: `Succeeded`, `SucceededWithFailures` (an action
    /// failed), `Failed`, `TimedOut`, `Cancelled`, `Skipped`.
    status: Option<String>,
    /// Only iterations whose result differs from the one before at this JSON pointer, such as `/check/body/state`.
    /// Empty: the whole result.
    changed: Option<String>,
    /// Only iterations with this text in their result or error, ignoring case.
    text: Option<String>,
    /// Maximum number of iterations: 100 by default, at most 1000.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Order of the iterations: `asc` (oldest first, the default) or `desc`.
    order: Option<String>,
}

/// List the iterations of a loop in pages.
///
/// `next` of a page is `from` of the next page, or its `to` with `order=desc`.
#[utoipa::path(get, path = "/v1/runs/{run}/iterations", operation_id = "list_iterations", tag = "runs", params(("run" = String, Path, description = "Run id"), IterationsQuery),
    responses(
        (status = 200, description = "A page of iterations", body = IterationsReport),
        (status = "4XX", description = "404 unknown run, 400 unknown loop", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<IterationsQuery>,
) -> Result<axum::Json<IterationsReport>, Problem> {
    let bad = |detail: String| Problem::new(ErrorCode::BadRequest, detail);
    let words = query.status.as_deref().unwrap_or_default().split(',');
    let words = words.map(str::trim).filter(|word| !word.is_empty());
    let status: Result<Vec<_>, Problem> = words
        .map(|word| {
            StatusFilter::<Status>::parse(word)
                .ok_or_else(|| bad(format!("`{word}` is not a valid status")))
        })
        .collect();
    let newest_first = match query.order.as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => return Err(bad(format!("`order` is `asc` or `desc`, not `{other}`"))),
    };
    let filter = IterationsFilter {
        path: query.loop_path,
        from: query.from,
        to: query.to,
        status: status?,
        changed: query.changed,
        text: query.text,
        newest_first,
        limit: page(query.limit, PAGE, MAX_PAGE, caller)?,
    };
    let report = app.inspect(move |store| iterations_report(store, &run, &filter));
    Ok(axum::Json(report.await?))
}

/// Selects an iteration.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct IterationQuery {
    /// Path of the iteration: `poll#14`, `outer#2/inner#7`. If absent, what the run did outside of its loops.
    path: Option<String>,
    /// JSON pointer to one value of the iteration, which is returned complete: `/result`, `/variables/rows`,
    /// `/actions/0/outputs`. If absent, the whole iteration.
    pointer: Option<String>,
}

/// Get one iteration, or what a run did outside of its loops.
///
/// It has the inputs, outputs and attempts of the actions, and the variables at its end. With `pointer`, the response
/// is only the value at that pointer.
#[utoipa::path(get, path = "/v1/runs/{run}/iteration", operation_id = "get_iteration", tag = "runs", params(("run" = String, Path, description = "Run id"), IterationQuery),
    responses(
        (status = 200, description = "The iteration, as far as it is stored", body = IterationReport),
        (status = "4XX", description = "404 unknown run or iteration, 400 unknown loop", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<IterationQuery>,
) -> Result<Response, Problem> {
    let path = query.path.unwrap_or_default();
    let Some(pointer) = query.pointer else {
        let report = app.inspect(move |store| iteration_report(store, &run, &path));
        return Ok(axum::Json(report.await?).into_response());
    };
    let requested = pointer.clone();
    let value = app.inspect(move |store| iteration_value(store, &run, &path, &requested));
    let missing = || {
        let detail = format!("the iteration has no value at `{pointer}`");
        Problem::new(ErrorCode::NotFound, detail)
    };
    Ok(axum::Json(value.await?.ok_or_else(missing)?).into_response())
}

/// Selects the compared iterations.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DifferenceQuery {
    /// Path of the first iteration: `poll#13`.
    from: String,
    /// Path of the second iteration: `poll#14`.
    to: String,
}

/// Compare two iterations of a run.
#[utoipa::path(get, path = "/v1/runs/{run}/difference", operation_id = "get_difference", tag = "runs", params(("run" = String, Path, description = "Run id"), DifferenceQuery),
    responses(
        (status = 200, description = "Paths at which the two iterations differ", body = DifferenceReport),
        (status = "4XX", description = "404 unknown run or iteration, 400 unknown loop", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn difference(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<DifferenceQuery>,
) -> Result<axum::Json<DifferenceReport>, Problem> {
    let report = app.inspect(move |store| difference_report(store, &run, &query.from, &query.to));
    Ok(axum::Json(report.await?))
}
