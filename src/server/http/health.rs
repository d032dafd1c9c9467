//! Whether the server is there, and whether it takes work.

use super::app::App;
use super::listener::Caller;
use crate::api::Problem;
use axum::extract::State;
use std::sync::Arc;

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "server",
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server takes work: runs of before have been recovered, its store takes writes, and it is
/// not stopping.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "server",
    responses(
        (status = 200, description = "It takes work", body = String, content_type = "text/plain"),
        (status = 503, description = "It is starting or stopping, or its disk is full or fails", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.takes_work(Caller::Remote)?;
    app.inspect(|runs| runs.takes_writes()).await?;
    Ok("ready\n")
}
