//! Whether the server is there, whether it takes work, and what it counts.

use super::app::App;
use super::listener::Caller;
use super::metrics::MEDIA_TYPE;
use crate::api::Problem;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::ErrorCode;
use windlass_engine::report::count_runs;

/// A driver that has done one and the same thing for so long does not move.
const MOVES_WITHIN: Duration = Duration::from_secs(3);

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "server",
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server takes work: runs of before have been recovered, runs move, its store takes writes, and it is
/// not stopping.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "server",
    responses(
        (status = 200, description = "The server accepts work", body = String, content_type = "text/plain"),
        (status = 503, description = "It is starting or stopping, its runs do not move, or its disk is full or fails", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.check_accepts_work(Caller::Remote)?;
    let held_up = app.engine.stalled_for().unwrap_or_default();
    if held_up > MOVES_WITHIN {
        let detail = format!("no run has moved for {} seconds", held_up.as_secs());
        return Err(Problem::new(ErrorCode::Unavailable, detail));
    }
    app.ready().await?;
    Ok("ready\n")
}

/// What the server counts, in the format of OpenMetrics.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "server",
    responses((status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text")))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if !app.metrics.is_fresh() {
        let began = Instant::now();
        let counted = app.inspect(count_runs).await?;
        app.metrics.take(&counted, began.elapsed());
    }
    let text = app.metrics.text()?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}
