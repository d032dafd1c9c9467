//! Workflows over HTTP: storing workflows under a name, inspecting and checking them.

use super::app::{App, Lane, blocking, compute};
use super::body::{PathParam, ValidatedQuery, flag, page};
use super::graph::view;
use super::listener::Caller;
use super::schema::OrWorkflow;
use super::source::{BodyForm, Envelope, Source, bundle, dialect};
use crate::api::{Problem, WorkflowList, WorkflowText};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use windlass_engine::report::{
    DiagnosticReport, InputReport, LoopLimits, ScheduleReport, ScheduledTimes, VersionsReport,
    WorkflowReport, diagnostics, inputs, loop_limits,
};
use windlass_engine::{
    Bundle, EngineError, ErrorCode, Graph, LoadError, LoadOptions, Origin, PutIf, dialect_of, graph,
};

/// The body of a request that contains a workflow: a `WorkflowText`, or only the workflow.
pub(super) type WorkflowBody = OrWorkflow<WorkflowText>;

/// The default size of a page of workflows.
const PAGE: usize = 100;
/// The maximum size of a page of workflows.
const MAX_PAGE: usize = 1_000;

impl Envelope for WorkflowText {
    const MEMBERS: &'static [&'static str] = &["text", "file", "files", "dialect"];
    const ACCEPTS_ANY_MEDIA_TYPE: bool = true;

    fn plain_start(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Returns the files of a workflow that was sent, and the options for loading them.
pub(super) fn parts(
    text: WorkflowText,
    stem: &str,
    form: BodyForm,
    caller: Caller,
) -> Result<(Bundle, LoadOptions), Problem> {
    let options = LoadOptions {
        dialect: dialect(text.dialect.as_deref())?,
        origin: caller.origin(),
        ..LoadOptions::default()
    };
    let file = text.file.unwrap_or_else(|| form.file(stem));
    let bundle = bundle(file, text.text, &text.files);
    Ok((bundle, options))
}

/// Result of a check of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(super) struct Validation {
    /// Whether the workflow is valid: it has no errors.
    pub valid: bool,
    /// Format of the workflow. Absent if it cannot be detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Errors and warnings.
    pub diagnostics: Vec<DiagnosticReport>,
    /// Limits of its loops. Empty if the workflow cannot be compiled.
    pub loops: Vec<LoopLimits>,
    /// Inputs of the workflow. Empty if it cannot be compiled.
    pub inputs: Vec<InputReport>,
    /// Graph of the workflow. Absent unless it is requested and the workflow is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
}

/// Selects the parts of the result, in addition to the diagnostics.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ValidateQuery {
    /// Whether the result has the graph: `false` by default.
    #[serde(default, deserialize_with = "flag")]
    graph: bool,
    /// Scopes that are drawn with their inside: `all` (the default), `none`, or ids or paths of nodes, separated by
    /// commas.
    open: Option<String>,
    /// Id or path of a node: the graph shows only its inside. If absent, the whole workflow.
    root: Option<String>,
    /// Whether the workflow is checked with the rights of a guest, even if the caller has more: `false` by default.
    #[serde(default, deserialize_with = "flag")]
    guest: bool,
}

/// Store a workflow under a name.
///
/// It replaces the workflow of that name, which becomes a former version. Runs continue with the version that they were
/// started with. The body is the workflow itself, YAML or JSON, or JSON with its text as `text`.
#[utoipa::path(put, path = "/v1/workflows/{name}", operation_id = "put_workflow", tag = "workflows",
    params(
        ("name" = String, Path, description = "Name of the workflow: letters, digits and -_."),
        ("If-Match" = Option<String>, Header, description = "Only if this is the current version, as in `ETag`"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if the name is unused"),
    ),
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 201, description = "Saved", body = WorkflowReport),
        (status = 200, description = "Saved; it replaced an earlier version", body = WorkflowReport),
        (status = "4XX", description = "422: invalid, with all diagnostics; 412: another version is current, see `current`", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn put(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    PathParam(name): PathParam,
    headers: HeaderMap,
    Source(text, form): Source<WorkflowText>,
) -> Result<Response, Problem> {
    app.check_accepts_work(caller)?;
    let condition = condition(&headers)?;
    let (bundle, options) = parts(text, &name, form, caller)?;
    let location = format!("/v1/workflows/{name}");
    let engine = Arc::clone(&app.engine);
    let put = compute(lane, move |_| {
        Ok(engine.put_workflow_if(&name, bundle, &options, &condition)?)
    });
    let (report, replaced) = put.await?;
    let status = if replaced {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let headers = [(header::LOCATION, location)];
    let headers = (headers, version_headers(&report));
    Ok((status, headers.0, headers.1, axum::Json(report)).into_response())
}

/// Reads which stored version a request expects to replace, from its headers.
fn condition(headers: &HeaderMap) -> Result<PutIf, Problem> {
    let given = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let refused = |detail: &str| Err(Problem::new(ErrorCode::BadRequest, detail));
    match (given(header::IF_MATCH), given(header::IF_NONE_MATCH)) {
        (None, None) => Ok(PutIf::Always),
        (None, Some("*")) => Ok(PutIf::Absent),
        (None, Some(_)) => refused("If-None-Match is `*`: only if the name is unused"),
        (Some(tag), None) => match tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) {
            Some(version) => Ok(PutIf::Version(version.to_owned())),
            None => refused("If-Match is one version in quotes, as the header `ETag` has it"),
        },
        (Some(_), Some(_)) => refused("send either If-Match or If-None-Match"),
    }
}

/// Returns the headers with the version of a workflow.
/// They also forbid caching, because the workflow may be replaced.
fn version_headers(report: &WorkflowReport) -> [(HeaderName, String); 2] {
    let tag = format!("\"{}\"", report.program);
    let fresh = String::from("no-store");
    [(header::ETAG, tag), (header::CACHE_CONTROL, fresh)]
}

/// Selects the listed workflows.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WorkflowsQuery {
    /// Maximum number of workflows: 100 by default, at most 1000.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Start of the page: `next` of the page before.
    after: Option<String>,
}

/// List the stored workflows, sorted by name.
#[utoipa::path(get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows", params(WorkflowsQuery),
    responses((status = 200, description = "A page of workflows", body = WorkflowList)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ValidatedQuery(query): ValidatedQuery<WorkflowsQuery>,
) -> Result<axum::Json<WorkflowList>, Problem> {
    let limit = page(query.limit, PAGE, MAX_PAGE, caller)?;
    let after = query.after;
    let workflows = app
        .inspect(move |store| store.workflows(after.as_deref(), limit))
        .await?;
    let next = workflows
        .last()
        .filter(|_| workflows.len() == limit)
        .map(|last| last.name.clone());
    Ok(axum::Json(WorkflowList { workflows, next }))
}

/// Selects a version of a workflow.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct VersionQuery {
    /// Version: its hash, or at least the first six digits of it. If absent, the current version.
    version: Option<String>,
}

/// Get a workflow with its text, its inputs and the limits of its loops.
///
/// The header `ETag` is its version.
#[utoipa::path(get, path = "/v1/workflows/{name}", operation_id = "get_workflow", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow"), VersionQuery),
    responses(
        (status = 200, description = "The workflow", body = WorkflowReport, headers(("ETag" = String, description = "Version of the workflow"))),
        (status = 404, description = "Unknown workflow or version", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
    ValidatedQuery(query): ValidatedQuery<VersionQuery>,
) -> Result<Response, Problem> {
    let version = query.version;
    let found = app.inspect(move |store| store.describe_workflow(&name, version.as_deref()));
    let report = found.await?;
    Ok((version_headers(&report), axum::Json(report)).into_response())
}

/// List the versions of a workflow, newest first, with the numbers of their runs.
///
/// A run always uses the version that it was started with.
#[utoipa::path(get, path = "/v1/workflows/{name}/versions", operation_id = "get_workflow_versions", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow")),
    responses(
        (status = 200, description = "Its versions", body = VersionsReport),
        (status = 404, description = "Unknown workflow", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn versions(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
) -> Result<axum::Json<VersionsReport>, Problem> {
    let found = app.inspect(move |store| store.workflow_versions(&name));
    Ok(axum::Json(found.await?))
}

/// Get the schedule of a workflow, with its next times.
#[utoipa::path(get, path = "/v1/workflows/{name}/schedule", operation_id = "get_workflow_schedule", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow")),
    responses(
        (status = 200, description = "The schedule, with the next five times", body = ScheduleReport),
        (status = 404, description = "Unknown workflow", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn schedule(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
) -> Result<axum::Json<ScheduleReport>, Problem> {
    let engine = Arc::clone(&app.engine);
    let found = blocking(move || Ok(engine.workflow_schedule(&name)?));
    Ok(axum::Json(found.await?))
}

/// Selects a range of times.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TimesQuery {
    /// Start of the range: a time (RFC 3339), or the beginning of a day in the time zone of the schedule
    /// (`2026-11-01`).
    from: String,
    /// End of the range, exclusive: a time (RFC 3339), or the beginning of a day. If absent, now.
    to: Option<String>,
}

/// List the past times of a schedule, with and without runs.
///
/// The range may have 1,000 times at most. `POST /v1/runs` with `workflow`, and with `run` and `time` of an entry as
/// `run` and `scheduled_time`, starts a missing run.
#[utoipa::path(get, path = "/v1/workflows/{name}/schedule/times", operation_id = "list_scheduled_times", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow"), TimesQuery),
    responses(
        (status = 200, description = "Due times, earliest first", body = ScheduledTimes),
        (status = "4XX", description = "404: unknown workflow; 422: it has no schedule, or the range is wrong", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn times(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
    ValidatedQuery(query): ValidatedQuery<TimesQuery>,
) -> Result<axum::Json<ScheduledTimes>, Problem> {
    let TimesQuery { from, to } = query;
    let found = app.inspect(move |store| store.scheduled_times(&name, &from, to.as_deref()));
    let times = found.await?;
    Ok(axum::Json(ScheduledTimes { times }))
}

/// Pause the schedule of a workflow.
///
/// It starts no runs until it is resumed. Times during the pause do not count as missed.
#[utoipa::path(post, path = "/v1/workflows/{name}/schedule/pause", operation_id = "pause_schedule", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow")),
    responses(
        (status = 200, description = "It is paused", body = ScheduleReport),
        (status = "4XX", description = "404: unknown workflow; 422: it has no schedule", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn pause_schedule(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
) -> Result<axum::Json<ScheduleReport>, Problem> {
    let engine = Arc::clone(&app.engine);
    let paused = blocking(move || Ok(engine.pause_schedule(&name)?));
    Ok(axum::Json(paused.await?))
}

/// Resume the schedule of a workflow.
#[utoipa::path(post, path = "/v1/workflows/{name}/schedule/resume", operation_id = "resume_schedule", tag = "workflows", params(("name" = String, Path, description = "Name of the workflow")),
    responses(
        (status = 200, description = "It starts runs", body = ScheduleReport),
        (status = "4XX", description = "404: unknown workflow; 422: it has no schedule", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn resume_schedule(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
) -> Result<axum::Json<ScheduleReport>, Problem> {
    let engine = Arc::clone(&app.engine);
    let resumed = blocking(move || Ok(engine.resume_schedule(&name)?));
    Ok(axum::Json(resumed.await?))
}

/// Delete a workflow and its former versions.
///
/// Its runs continue.
#[utoipa::path(delete, path = "/v1/workflows/{name}", operation_id = "remove_workflow", tag = "workflows",
    params(
        ("name" = String, Path, description = "Name of the workflow"),
        ("If-Match" = Option<String>, Header, description = "Only if this is the current version, as in `ETag`"),
    ),
    responses(
        (status = 204, description = "Deleted"),
        (status = "4XX", description = "404: unknown workflow; 412: it has another version than `If-Match`", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    PathParam(name): PathParam,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let condition = condition(&headers)?;
    let engine = Arc::clone(&app.engine);
    let removed = blocking(move || match engine.remove_workflow(&name, &condition)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(engine.inspector().no_workflow(&name).into()),
    });
    removed.await
}

/// Check a workflow and store nothing.
///
/// The body is the workflow itself, YAML or JSON, or JSON with its text as `text`.
#[utoipa::path(post, path = "/v1/validate", operation_id = "validate_workflow", tag = "workflows", params(ValidateQuery),
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 200, description = "Diagnostics of the text, empty if it is valid", body = Validation),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn validate(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    ValidatedQuery(query): ValidatedQuery<ValidateQuery>,
    Source(text, form): Source<WorkflowText>,
) -> Result<axum::Json<Validation>, Problem> {
    let (bundle, mut options) = parts(text, "workflow", form, caller)?;
    if query.guest {
        options.origin = Origin::Guest;
    }
    let engine = Arc::clone(&app.engine);
    let requested = options.dialect;
    let dialect = move |bundle: &Bundle| {
        dialect_of(bundle, requested).map(|dialect| dialect.as_str().to_owned())
    };
    let checked = compute(lane, move |_| match engine.load_bundle(bundle, &options) {
        Ok(workflow) => {
            let found = workflow.with_scripts();
            let drawn = query.graph && !found.has_errors();
            let view = view(query.open.as_deref(), query.root);
            let drawn = drawn.then(|| graph(workflow.program(), &view));
            Ok(Validation {
                valid: !found.has_errors(),
                dialect: dialect(workflow.bundle()),
                diagnostics: diagnostics(&found, workflow.bundle()),
                loops: loop_limits(workflow.program()),
                inputs: inputs(workflow.program()),
                graph: drawn.transpose().map_err(EngineError::from)?,
            })
        }
        Err(LoadError::Refused {
            diagnostics: found,
            bundle,
        }) => Ok(Validation {
            valid: false,
            dialect: dialect(&bundle),
            diagnostics: diagnostics(&found, &bundle),
            loops: Vec::new(),
            inputs: Vec::new(),
            graph: None,
        }),
        Err(error) => Err(error.into()),
    });
    Ok(axum::Json(checked.await?))
}
