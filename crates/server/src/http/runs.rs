//! Runs over HTTP: listing, inspecting, and commands.
//! The answers are the same reports that the command line prints.

use super::app::App;
use super::body::{Json, PathParam, ValidatedQuery, flag, page, requested_limit};
use super::listener::Caller;
use crate::api::{PrintedReport, Problem, RunState, Signal};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;
use windlass_engine::report::source as source_report;
use windlass_engine::report::{
    DumpFilter, DumpReport, HistoryFilter, HistoryReport, ListFilter, ListReport, OutcomeReport,
    StatusFilter, StatusReport,
};
use windlass_engine::report::{PlacesReport, SourceReport, places as places_report};
use windlass_engine::report::{dump as dump_report, history as history_report};
use windlass_engine::report::{list as list_report, status as status_report};
use windlass_engine::{Actor, EngineError, ErrorCode, RunStatus, Timestamp, check_id, now};

/// The default size of a page of runs.
const PAGE: usize = 50;
/// The maximum size of a page of runs.
const MAX_PAGE: usize = 1_000;

/// Maximum number of runs that a request selects by their ids.
pub(super) const MAX_SELECTED_RUNS: usize = 200;

/// The default number of iterations, and of events, in one answer.
const ROWS: usize = 100;
/// The maximum number of iterations, and of events, in one answer.
const MAX_ROWS: usize = 10_000;

/// Maximum time to wait for a result, in seconds.
const MAX_WAIT: u64 = 60;

// ── read ────────────────────────────────────────────────────────────────────────────────────────

/// Selects the listed runs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Only runs with these statuses, separated by commas: `Running`, `Waiting`, `Paused`, `Succeeded`,
    /// `SucceededWithFailures` (actions failed), `Failed`, `TimedOut`, `Cancelled`.
    status: Option<String>,
    /// Only runs of these workflows, separated by commas.
    workflow: Option<String>,
    /// Only runs whose ids begin with this text.
    prefix: Option<String>,
    /// Only runs with all of these labels, as NAME=TEXT, separated by commas.
    label: Option<String>,
    /// Only runs with this text in their id, their workflow or a label, ignoring case.
    text: Option<String>,
    /// Only runs that were started at this time (RFC 3339) or later.
    since: Option<Timestamp>,
    /// Only runs that were started before this time (RFC 3339).
    until: Option<Timestamp>,
    /// Only `Running` and `Waiting` runs that have not progressed since this time (RFC 3339), although they should
    /// have.
    stuck_since: Option<Timestamp>,
    /// Only runs with these ids, separated by commas, at most 200.
    runs: Option<String>,
    /// Whether the response has counts by status, by workflow and by hour: `false` by default.
    #[serde(default, deserialize_with = "flag")]
    facets: bool,
    /// Whether the response has the current activity of each run: its loop, what it waits for, its error. `false` by
    /// default.
    #[serde(default, deserialize_with = "flag")]
    detail: bool,
    /// Number of the newest runs to skip: 0 by default.
    #[serde(default)]
    offset: usize,
    /// Maximum number of runs: 50 by default, at most 1000.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Start of the page: `next` of the page before.
    after: Option<String>,
}

/// List the runs, newest first.
#[utoipa::path(get, path = "/v1/runs", operation_id = "list_runs", tag = "runs", params(ListQuery),
    responses(
        (status = 200, description = "A page of runs", body = ListReport),
        (status = "4XX", description = "A parameter cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ValidatedQuery(query): ValidatedQuery<ListQuery>,
) -> Result<axum::Json<ListReport>, Problem> {
    let bad = |detail: String| Problem::new(ErrorCode::BadRequest, detail);
    // An empty selector is probably an unset variable of the client, and must not select every run.
    let empty = |name: &str| bad(format!("`{name}` is empty: leave it out, or set a value"));
    let words = |name: &str, text: &Option<String>| -> Result<Vec<String>, Problem> {
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let parts = text.split(',').map(str::trim);
        let parts: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
        match parts.is_empty() {
            true => Err(empty(name)),
            false => Ok(parts.into_iter().map(str::to_owned).collect()),
        }
    };
    let mut workflows = words("workflow", &query.workflow)?;
    // The name of a workflow may contain a comma, so the whole text may also be one name.
    workflows.extend(query.workflow.clone().filter(|text| text.contains(',')));
    let mut filter = ListFilter {
        workflows,
        prefix: query.prefix.clone(),
        limit: Some(page(query.limit, PAGE, MAX_PAGE, caller)?),
        after: query.after.clone(),
        text: query.text.clone(),
        since: query.since,
        until: query.until,
        stuck_since: query.stuck_since,
        runs: words("runs", &query.runs)?,
        facets: query.facets,
        // The facet by hour has 24 hours, including the current one.
        hours_since: query
            .facets
            .then(|| Timestamp(now().hour().0 - 23 * 3_600_000)),
        detail: query.detail,
        offset: query.offset,
        ..ListFilter::default()
    };
    if filter.runs.len() > MAX_SELECTED_RUNS {
        return Err(bad(format!("`runs` has {MAX_SELECTED_RUNS} ids at most")));
    }
    for word in words("status", &query.status)? {
        let status = StatusFilter::<RunStatus>::parse(&word)
            .ok_or_else(|| bad(format!("`{word}` is not a valid status")))?;
        filter.status.push(status);
    }
    if let Some(label) = &query.label {
        let invalid = || bad(format!("`{label}` is not a valid label: NAME=TEXT"));
        filter.labels = labels(label).ok_or_else(invalid)?;
    }
    let report = app
        .inspect(move |store| list_report(store, &filter))
        .await?;
    Ok(axum::Json(report))
}

/// Parses labels that are separated by commas.
/// A text of a label may contain a comma: a part without `=` belongs to the label before it.
fn labels(text: &str) -> Option<BTreeMap<String, String>> {
    let mut labels: Vec<(&str, String)> = Vec::new();
    for part in text.split(',') {
        match part.split_once('=') {
            Some((name, text)) => labels.push((name.trim(), text.to_owned())),
            None => {
                let (_, text) = labels.last_mut()?;
                text.push(',');
                text.push_str(part);
            }
        }
    }
    let owned = labels
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text));
    Some(owned.collect())
}

/// Get the status of a run.
///
/// It has the loops of the run, what their conditions read, and what the run waits for.
#[utoipa::path(get, path = "/v1/runs/{run}", operation_id = "get_run", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "Its loops, what they read, what it waits for", body = StatusReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn status(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<StatusReport>, Problem> {
    let report = app.inspect(move |store| status_report(store, &run, now()));
    Ok(axum::Json(report.await?))
}

/// Selects how long a request waits for a result.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResultQuery {
    /// Maximum time to wait for the end of the run, in seconds: 0 by default, at most 60.
    wait: Option<u64>,
}

/// Get the result of a run, or the reason why it failed.
#[utoipa::path(get, path = "/v1/runs/{run}/result", operation_id = "get_result", tag = "runs", params(("run" = String, Path, description = "Run id"), ResultQuery),
    responses(
        (status = 200, description = "The run has ended", body = OutcomeReport),
        (status = 202, description = "The run has not ended", body = RunState),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn result(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<ResultQuery>,
) -> Result<Response, Problem> {
    let wait = Duration::from_secs(query.wait.unwrap_or(0).min(MAX_WAIT));
    if !wait.is_zero() {
        let ended = async {
            let mut follower = app.engine.follow(&run, None).await?.through_pauses();
            while follower.next().await?.is_some() {}
            Ok::<(), Problem>(())
        };
        let end_signal = app.end_signal();
        tokio::select! {
            ended = tokio::time::timeout(wait, ended) => if let Ok(ended) = ended { ended? },
            () = end_signal.must_end(caller) => {}
        }
    }
    let report = app
        .inspect(move |store| status_report(store, &run, now()))
        .await?;
    Ok(match report.outcome {
        Some(outcome) => axum::Json(outcome).into_response(),
        None => {
            let state = RunState {
                run: report.run,
                status: report.status,
            };
            (StatusCode::ACCEPTED, axum::Json(state)).into_response()
        }
    })
}

/// Selects a part of the history.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// Only iterations of the loop with this path, such as `outer#2/inner`, or with this name.
    #[serde(rename = "loop")]
    loop_path: Option<String>,
    /// Maximum number of last iterations: 100 by default, at most 10000.
    iterations: Option<usize>,
    /// Whether the response has events: `false` by default.
    #[serde(default)]
    events: bool,
    /// Only events after the one with this number.
    #[serde(default)]
    after: u64,
    /// Maximum number of events: 100 by default, at most 10000.
    limit: Option<usize>,
}

/// Get the history of a run: the iterations of its loops, and its events.
#[utoipa::path(get, path = "/v1/runs/{run}/history", operation_id = "get_history", tag = "runs", params(("run" = String, Path, description = "Run id"), HistoryQuery),
    responses(
        (status = 200, description = "Its iterations and events", body = HistoryReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<HistoryQuery>,
) -> Result<axum::Json<HistoryReport>, Problem> {
    let rows = |name, requested| requested_limit(name, requested, ROWS, MAX_ROWS, caller);
    let filter = HistoryFilter {
        loop_path: query.loop_path,
        iterations: Some(rows("iterations", query.iterations)?),
        events: query.events,
        after: query.after,
        limit: Some(rows("limit", query.limit)?),
    };
    let report = app.inspect(move |store| history_report(store, &run, &filter));
    Ok(axum::Json(report.await?))
}

/// Get the files that a run was started from, as they were at that time.
#[utoipa::path(get, path = "/v1/runs/{run}/source", operation_id = "get_source", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "Its files: the workflow first", body = SourceReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn source(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<SourceReport>, Problem> {
    let report = app.inspect(move |store| source_report(store, &run));
    Ok(axum::Json(report.await?))
}

/// Get the last output lines of the running commands of a run.
///
/// The lines of a command are removed when it has ended. Lines that may contain a secret are omitted.
#[utoipa::path(get, path = "/v1/runs/{run}/printed", operation_id = "get_printed", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "Output lines of the command", body = PrintedReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn printed(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<PrintedReport>, Problem> {
    let name = run.clone();
    app.inspect(move |store| store.header(&name)).await?;
    let lines = app.engine.printed(&run);
    Ok(axum::Json(PrintedReport { lines }))
}

/// Selects the listed places: iterations and actions from which a run can be retried.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PlacesQuery {
    /// Maximum number of places: 100 by default, at most 10000.
    limit: Option<usize>,
}

/// List the places that `retry` accepts as `from`, newest first.
///
/// They are the iterations and actions that the run reached.
#[utoipa::path(get, path = "/v1/runs/{run}/places", operation_id = "get_places", tag = "runs", params(("run" = String, Path, description = "Run id"), PlacesQuery),
    responses(
        (status = 200, description = "Places from which the run can be retried", body = PlacesReport),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn places(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<PlacesQuery>,
) -> Result<axum::Json<PlacesReport>, Problem> {
    let most = requested_limit("limit", query.limit, ROWS, MAX_ROWS, caller)?;
    let report = app.inspect(move |store| places_report(store, &run, most));
    Ok(axum::Json(report.await?))
}

/// Selects the dumped part of a run.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DumpQuery {
    /// Maximum number of last iterations: 5 by default, at most 10000.
    iterations: Option<usize>,
}

/// Get the checkpoint of a run, as stored.
///
/// The schema is `docs/dump.schema.json`.
#[utoipa::path(get, path = "/v1/runs/{run}/dump", operation_id = "get_dump", tag = "runs", params(("run" = String, Path, description = "Run id"), DumpQuery),
    responses(
        (status = 200, description = "The checkpoint", body = serde_json::Value),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn dump(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<DumpQuery>,
) -> Result<axum::Json<DumpReport>, Problem> {
    let last = requested_limit("iterations", query.iterations, 5, MAX_ROWS, caller)?;
    let filter = DumpFilter {
        run: Some(run),
        iterations: Some(last),
        ..DumpFilter::default()
    };
    let report = app.inspect(move |store| dump_report(store, &filter, now()));
    Ok(axum::Json(report.await?))
}

// ── commands ────────────────────────────────────────────────────────────────────────────────────

/// Pause a run.
///
/// Effects in flight may end, and no new ones start.
#[utoipa::path(post, path = "/v1/runs/{run}/pause", operation_id = "pause_run", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "State of the run; the change is durable", body = RunState),
        (status = "4XX", description = "404 unknown run, 409 it has ended", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<RunState>, Problem> {
    let status = app.engine.pause(&run).await?;
    Ok(axum::Json(RunState { run, status }))
}

/// Resume a paused run.
#[utoipa::path(post, path = "/v1/runs/{run}/resume", operation_id = "resume_run", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "State of the run; the change is durable", body = RunState),
        (status = "4XX", description = "404 unknown run, 409 it has ended", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathParam(run): PathParam,
) -> Result<axum::Json<RunState>, Problem> {
    app.check_accepts_work(caller)?;
    let status = app.engine.resume(&run).await?;
    Ok(axum::Json(RunState { run, status }))
}

/// Cancel a run.
///
/// Effects in flight are aborted.
#[utoipa::path(post, path = "/v1/runs/{run}/cancel", operation_id = "cancel_run", tag = "runs", params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "State of the run; the change is durable", body = RunState),
        (status = "4XX", description = "404 unknown run, 409 it has ended", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
) -> Result<axum::Json<RunState>, Problem> {
    let status = app.engine.cancel(&run).await?;
    Ok(axum::Json(RunState { run, status }))
}

/// Send a signal to a run, for an action that waits for it now or later.
#[utoipa::path(post, path = "/v1/runs/{run}/signal", operation_id = "signal_run", tag = "runs", request_body = Signal, params(("run" = String, Path, description = "Run id")),
    responses(
        (status = 200, description = "State of the run; the change is durable", body = RunState),
        (status = "4XX", description = "404 unknown run, 409 it has ended, or nothing in its workflow waits for a signal of this name, 422 the question does not accept the payload", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn signal(
    State(app): State<Arc<App>>,
    Extension(actor): Extension<Actor>,
    PathParam(run): PathParam,
    Json(signal): Json<Signal>,
) -> Result<axum::Json<RunState>, Problem> {
    if let Some(id) = &signal.id {
        check_id(id).map_err(invalid_parameter)?;
    }
    let signal = signal.sent_by(&actor.name);
    let status = app.engine.signal(&run, signal).await?;
    Ok(axum::Json(RunState { run, status }))
}

pub(super) fn invalid_parameter(error: EngineError) -> Problem {
    Problem::new(ErrorCode::BadRequest, error.to_string())
}
