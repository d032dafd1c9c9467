//! An editor's requests over HTTP. They change nothing, and the body carries the text.

use super::app::App;
use axum::Router;
use std::sync::Arc;

/// What only looks although it is a POST: a caller who may only look may ask it.
pub(super) fn only_looks(path: &str) -> bool {
    path == "/v1/validate" || path.starts_with("/v1/language/")
}

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
}
