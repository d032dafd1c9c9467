//! One command to many runs.

use super::app::App;
use super::body::Json;
use super::listener::Caller;
use crate::api::{BulkDone, BulkFailed, BulkReport, BulkRuns, BulkVerb, Problem};
use axum::Extension;
use axum::extract::State;
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{Actor, ErrorCode, StartOptions};

/// Maximum number of runs in one request.
const MANY: usize = 1_000;

/// Maximum number of runs that are changed concurrently. The store makes concurrent changes durable together.
const AT_A_TIME: usize = 64;

/// Pause, resume, cancel or retry many runs.
///
/// Each run succeeds or fails on its own, and a failure has a reason. The response is sent when all changes are
/// durable.
#[utoipa::path(post, path = "/v1/runs/bulk", operation_id = "bulk_runs", tag = "runs", request_body = BulkRuns,
    responses(
        (status = 200, description = "Runs for which the command succeeded, and runs for which it failed", body = BulkReport),
        (status = "4XX", description = "The request cannot be read, or has too many runs", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "The server is not ready", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn bulk(
    State(app): State<Arc<App>>,
    caller: Caller,
    Extension(actor): Extension<Actor>,
    Json(request): Json<BulkRuns>,
) -> Result<axum::Json<BulkReport>, Problem> {
    if request.runs.len() > MANY {
        let detail = format!("`runs` has {MANY} ids at most");
        return Err(Problem::new(ErrorCode::BadRequest, detail));
    }
    if matches!(request.verb, BulkVerb::Resume | BulkVerb::Retry) {
        app.check_accepts_work(caller)?;
    }
    let (app, verb, actor) = (&app, request.verb, &actor);
    // In a set, because a run that is named twice must be retried only once.
    let runs: BTreeSet<String> = request.runs.into_iter().collect();
    let mut outcomes = stream::iter(runs)
        .map(async |run| (audited(app, actor, verb, &run).await, run))
        .buffered(AT_A_TIME);
    let mut report = BulkReport::default();
    while let Some((outcome, run)) = outcomes.next().await {
        match outcome {
            Ok(done) => report.done.push(BulkDone { run, ..done }),
            Err(problem) => report.failed.push(BulkFailed {
                run,
                code: problem.code().word().to_owned(),
                detail: problem.detail,
            }),
        }
    }
    Ok(axum::Json(report))
}

/// Executes the command for one run, with its own entry in the audit log.
async fn audited(app: &App, actor: &Actor, verb: BulkVerb, run: &str) -> Result<BulkDone, Problem> {
    let action = match verb {
        BulkVerb::Pause => "pause",
        BulkVerb::Resume => "resume",
        BulkVerb::Cancel => "cancel",
        BulkVerb::Retry => "retry",
    };
    let command = one(app, verb, run);
    let audit = &app.audit;
    audit
        .record(actor.clone(), action, Some(run), command, Problem::code)
        .await
}

async fn one(app: &App, verb: BulkVerb, run: &str) -> Result<BulkDone, Problem> {
    let engine = &app.engine;
    let status = match verb {
        BulkVerb::Pause => engine.pause(run).await?,
        BulkVerb::Resume => engine.resume(run).await?,
        // Cancelling again succeeds, because a client that received no answer repeats the request.
        BulkVerb::Cancel => engine.cancel_again(run).await?,
        BulkVerb::Retry => {
            let started = engine.retry(run, None, StartOptions::default()).await?;
            return Ok(BulkDone {
                new_run: Some(started.run.to_string()),
                ..BulkDone::default()
            });
        }
    };
    Ok(BulkDone {
        status: Some(status),
        ..BulkDone::default()
    })
}
