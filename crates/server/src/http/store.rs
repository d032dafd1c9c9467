//! Requests for the store as a whole: recovering, dumping and pruning runs, the owner, backups.

use super::app::{App, Ownership, blocking};
use super::body::{Json, ValidatedQuery, page, requested_limit};
use super::listener::Caller;
use crate::api::{BackupTo, Owner, Problem, PruneRuns, Resumed};
use axum::extract::State;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_engine::report::{DumpFilter, DumpReport, dump as dump_report};
use windlass_engine::{BackedUp, ErrorCode, PruneFilter, Pruned, now, parse_duration};

/// The default size of a page of dumps.
const PAGE: usize = 20;
/// The maximum size of a page of dumps.
const MAX_PAGE: usize = 200;

/// Maximum number of iterations that the dump of a run has.
const MAX_ROWS: usize = 10_000;

/// Selects the runs to resume.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResumeQuery {
    /// Whether paused runs are resumed, too: `false` by default.
    #[serde(default)]
    paused: bool,
}

/// Resume all runs that have not ended.
///
/// Paused runs stay paused unless `paused` is true.
#[utoipa::path(post, path = "/v1/resume", operation_id = "resume_all", tag = "server", params(ResumeQuery),
    responses(
        (status = 200, description = "Number of runs that continue", body = Resumed),
        (status = "4XX", description = "A parameter cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The server is not ready, or the store cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    ValidatedQuery(query): ValidatedQuery<ResumeQuery>,
) -> Result<axum::Json<Resumed>, Problem> {
    app.check_accepts_work(caller)?;
    let runs = app.engine.recover(query.paused).await?;
    let runs = runs.iter().map(ToString::to_string).collect();
    Ok(axum::Json(Resumed { runs }))
}

/// Selects the dumped runs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DumpsQuery {
    /// Maximum number of last iterations of each run: 5 by default, at most 10000.
    iterations: Option<usize>,
    /// Maximum number of runs: 20 by default, at most 200.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// Only runs after this id: the last run of the page before.
    after: Option<String>,
}

/// Get the checkpoints of all runs in pages, as stored.
///
/// Runs are sorted by id. The schema is `docs/dump.schema.json`. A page without runs means that the page before was the
/// last.
#[utoipa::path(get, path = "/v1/dump", operation_id = "dump_all", tag = "server", params(DumpsQuery),
    responses(
        (status = 200, description = "A page of checkpoints", body = serde_json::Value),
        (status = "4XX", description = "A parameter cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn dump(
    State(app): State<Arc<App>>,
    caller: Caller,
    ValidatedQuery(query): ValidatedQuery<DumpsQuery>,
) -> Result<axum::Json<DumpReport>, Problem> {
    let last = requested_limit("iterations", query.iterations, 5, MAX_ROWS, caller)?;
    let filter = DumpFilter {
        run: None,
        iterations: Some(last),
        after: query.after,
        limit: Some(page(query.limit, PAGE, MAX_PAGE, caller)?),
    };
    let report = app.inspect(move |store| dump_report(store, &filter, now()));
    Ok(axum::Json(report.await?))
}

fn filter(request: PruneRuns) -> Result<PruneFilter, Problem> {
    let bad = |detail: String| Problem::new(ErrorCode::BadRequest, detail);
    let chosen = !request.labels.is_empty() || !request.status.is_empty();
    if request.older_than.is_none() && request.keep.is_none() && !chosen {
        return Err(bad(String::from(
            "one of `older_than`, `keep`, `labels` or `status` is required",
        )));
    }
    let age = request
        .older_than
        .as_deref()
        .map(parse_duration)
        .transpose();
    let age = age.map_err(|error| bad(format!("`older_than`: {error}")))?;
    Ok(PruneFilter {
        older_than_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        keep: request.keep,
        workflows: (request.workflow.iter())
            .flat_map(|names| names.split(','))
            .map(|name| name.trim().to_owned())
            .collect(),
        labels: request.labels,
        status: request.status,
        dry_run: request.dry_run,
    })
}

/// Delete ended runs.
///
/// Other runs continue meanwhile.
#[utoipa::path(post, path = "/v1/prune", operation_id = "prune_runs", tag = "server", request_body = PruneRuns,
    responses(
        (status = 200, description = "The deleted runs", body = Pruned),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn prune(
    State(app): State<Arc<App>>,
    Json(request): Json<PruneRuns>,
) -> Result<axum::Json<Pruned>, Problem> {
    let filter = filter(request)?;
    let engine = Arc::clone(&app.engine);
    let prune = blocking(move || Ok(engine.prune(&filter, now())?));
    Ok(axum::Json(prune.await?))
}

/// Returns information about the process that owns the store. Over the control socket only.
pub(super) async fn owner(State(app): State<Arc<App>>) -> axum::Json<Owner> {
    axum::Json(Owner {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        serves: matches!(app.ownership, Ownership::Served),
        releases: matches!(app.ownership, Ownership::UntilRequested(_)),
        encrypts: app.engine.encrypts_values(),
    })
}

/// Requests the store for a server. An owner that releases the store does so when its actions have ended. Over the
/// control socket only.
pub(super) async fn release(app: State<Arc<App>>) -> axum::Json<Owner> {
    if let Ownership::UntilRequested(requested) = &app.ownership {
        requested.send_replace(true);
    }
    owner(app).await
}

/// Copies the store to another state directory. Over the control socket only.
pub(super) async fn backup(
    State(app): State<Arc<App>>,
    Json(to): Json<BackupTo>,
) -> Result<axum::Json<BackedUp>, Problem> {
    let engine = Arc::clone(&app.engine);
    let backup = blocking(move || Ok(engine.backup(Path::new(&to.dir))?));
    Ok(axum::Json(backup.await?))
}
