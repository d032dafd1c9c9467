//! Sessions of browsers. The token comes once; then a cookie says that it was known. The cookie is made
//! from the token, so a server keeps no sessions: they outlive its restart, and end with the token.

use super::app::App;
use super::guard::Access;
use crate::api::Problem;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What the caller may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(super) struct Me {
    /// `full`, or `view` for one that may only look.
    access: String,
}

/// What the caller may do.
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "server",
    responses((status = 200, description = "What its token or its session allows", body = Me)))]
pub(super) async fn me(Extension(access): Extension<Access>) -> axum::Json<Me> {
    let access = access.as_str().to_owned();
    axum::Json(Me { access })
}

/// Begins the session of a browser: the answer sets a cookie that stands for the token of this request.
#[utoipa::path(post, path = "/v1/session", operation_id = "begin_session", tag = "server",
    responses((status = 204, description = "The cookie is set; a server without a token needs none")))]
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<(StatusCode, [(HeaderName, String); 1]), Problem> {
    let cookie = app.guard.cookie(access);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}

/// Ends the session of a browser: the answer takes its cookie away.
#[utoipa::path(delete, path = "/v1/session", operation_id = "end_session", tag = "server",
    responses((status = 204, description = "The cookie is gone")))]
pub(super) async fn end(State(app): State<Arc<App>>) -> (StatusCode, [(HeaderName, String); 1]) {
    let cookie = app.guard.no_cookie();
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)])
}
