//! Health, readiness and metrics of the server.

use super::app::App;
use super::listener::Caller;
use super::metrics::{OPEN_METRICS, OPEN_METRICS_1, PLAIN_TEXT, plain_text};
use crate::api::Problem;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::ErrorCode;
use windlass_engine::report::count_runs;

/// If the driver has been executing the same step for longer than this, it counts as stalled.
const MOVES_WITHIN: Duration = Duration::from_secs(3);

/// Check that the process answers.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "server",
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Check that the server accepts work.
///
/// It does if earlier runs have been recovered, runs progress, its store accepts writes, and it is not stopping.
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
    app.check_writable().await?;
    Ok("ready\n")
}

/// Get the metrics of the server.
///
/// The format is OpenMetrics if the header `Accept` requests it, else the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "server",
    responses((status = 200, description = "The metrics", content((String = "application/openmetrics-text"), (String = "text/plain")))))]
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !app.metrics.is_fresh() {
        let began = Instant::now();
        let counted = app.inspect(count_runs).await?;
        app.metrics.take(&counted, began.elapsed());
    }
    let text = app.metrics.open_metrics()?;
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    let open = accepted.any(|value| value.to_str().is_ok_and(|text| text.contains(OPEN_METRICS)));
    let (kind, text) = match open {
        true => (OPEN_METRICS_1, text),
        false => (PLAIN_TEXT, plain_text(&text)),
    };
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
