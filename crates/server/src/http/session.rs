//! Sessions of browsers.
//! A browser sends the token once. After that, a cookie replaces the token (see `sessions`).

use super::app::{App, blocking};
use super::body::Optional;
use super::guard::Admitted;
use super::roles::Access;
use crate::api::{BeginSession, Problem, Ticket};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_engine::{Actor, ErrorCode};

/// The caller and its role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(super) struct Me {
    /// Role of the caller: `view`, `operate` or `admin`.
    access: String,
    /// Name of its token, or of its Unix user. Absent for an anonymous caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Get the role and the name of the caller.
#[utoipa::path(get, path = "/v1/me", operation_id = "get_me", tag = "server",
    responses((status = 200, description = "What the token or the session of the caller allows", body = Me)))]
pub(super) async fn me(Extension(admitted): Extension<Admitted>) -> axum::Json<Me> {
    axum::Json(Me {
        access: admitted.access.as_str().to_owned(),
        name: admitted.name().map(str::to_owned),
    })
}

/// Begin a browser session.
///
/// The response sets a cookie with the rights of the request's token. With a ticket of `windlass ui`, the cookie has
/// all rights.
#[utoipa::path(post, path = "/v1/session", operation_id = "begin_session", tag = "server", request_body = Option<BeginSession>,
    responses(
        (status = 204, description = "The cookie is set; a server without a token needs none"),
        (status = "4XX", description = "No token, or a ticket that was used or is too old", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Optional(request): Optional<BeginSession>,
) -> Result<(StatusCode, [(HeaderName, String); 1]), Problem> {
    let admitted = match request.ticket {
        Some(ticket) => {
            let used = "the ticket was used, or is older than a minute: get another one with `windlass ui`";
            let user = app.tickets.take(&ticket);
            let user = user.ok_or_else(|| Problem::new(ErrorCode::Unauthorized, used))?;
            Admitted::operator(user)
        }
        None => admitted,
    };
    if admitted.access == Access::Nothing {
        let detail = "send the header `Authorization: Bearer TOKEN`, or a ticket of `windlass ui`";
        return Err(Problem::new(ErrorCode::Unauthorized, detail));
    }
    let credential = admitted.credential;
    let cookie = blocking(move || app.guard.cookie(&credential).map_err(no_session)).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}

/// End a browser session.
///
/// The response removes the cookie, and the server no longer accepts it.
#[utoipa::path(delete, path = "/v1/session", operation_id = "end_session", tag = "server",
    responses((status = 204, description = "The session has ended")))]
pub(super) async fn end(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<(StatusCode, [(HeaderName, String); 1]), Problem> {
    let cookie = app.guard.no_cookie();
    blocking(move || app.guard.end_sessions(&headers).map_err(no_session)).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}

fn no_session(error: std::io::Error) -> Problem {
    Problem::new(ErrorCode::Internal, error.to_string())
}

/// Creates a ticket with which a browser can begin a session.
pub(super) async fn ticket(
    State(app): State<Arc<App>>,
    Extension(actor): Extension<Actor>,
) -> Result<axum::Json<Ticket>, Problem> {
    let Some(console) = &app.console else {
        let detail = "the process that owns the store has no console (`windlass serve`, --ui)";
        return Err(Problem::new(ErrorCode::NotFound, detail));
    };
    let ticket = app.tickets.make(actor.name)?;
    let url = format!("{console}#ticket={ticket}");
    Ok(axum::Json(Ticket { ticket, url }))
}
