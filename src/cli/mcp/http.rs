//! The transport over HTTP, at `/mcp` of a server.

use super::{Agent, Api, MAX_WAIT, message};
use axum::body::{Body, to_bytes};
use axum::extract;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get_service;
use axum::{Json, Router};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass_server::InnerApi;

/// Maximum number of sessions on a server. A session exists for an hour after its client has disappeared.
const MAX_SESSIONS: usize = 1_000;
const TOO_MANY: &str = "the server has as many sessions of agents as it may have: try again later";

/// Maximum size of a message in bytes. It is also the limit of the MCP library.
const MAX_MESSAGE: usize = 4 << 20;

/// Returns the routes for the protocol over HTTP, at `/mcp` of a server.
pub fn routes(api: InnerApi) -> Router {
    // This check is disabled, because the guard of the server already checks host names and origins.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    let agent = Agent(Api::Inner(api.clone()));
    let mut sessions = LocalSessionManager::default();
    // A call may wait for [`MAX_WAIT`] without a message, so a session must exist longer than that.
    sessions.session_config.keep_alive = Some(MAX_WAIT + Duration::from_secs(60));
    let sessions = Arc::new(sessions);
    let counted = Arc::clone(&sessions);
    let service = StreamableHttpService::new(move || Ok(agent.clone()), sessions, config);
    let check = from_fn(move |request: extract::Request, next: Next| {
        let (counted, api) = (Arc::clone(&counted), api.clone());
        async move {
            let begins = !request.headers().contains_key(HEADER_SESSION_ID);
            if begins && counted.sessions.read().await.len() >= MAX_SESSIONS {
                return (StatusCode::SERVICE_UNAVAILABLE, TOO_MANY).into_response();
            }
            let method = request.method().clone();
            let request = match checked(request).await {
                Ok(request) => request,
                Err(answer) => return answer,
            };
            let mut response = next.run(request).await;
            match method {
                Method::GET => api.until_stop(response),
                // Clients would interpret a 202 as a session that has not ended.
                Method::DELETE if response.status() == StatusCode::ACCEPTED => {
                    *response.status_mut() = StatusCode::NO_CONTENT;
                    response
                }
                _ => response,
            }
        }
    });
    // A GET request opens the stream with the notifications of a session.
    let methods = get_service(service.clone())
        .post_service(service.clone())
        .delete_service(service);
    Router::new().route("/mcp", methods.layer(check))
}

/// Checks the message of a request.
///
/// # Errors
/// The answer to a message that cannot be read.
async fn checked(request: extract::Request) -> Result<extract::Request, Response> {
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let is_json = media_type.is_some_and(|name| name.as_bytes().starts_with(b"application/json"));
    if request.method() != Method::POST || !is_json {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let (status, answer) = match to_bytes(body, MAX_MESSAGE).await {
        Err(_) => (
            StatusCode::PAYLOAD_TOO_LARGE,
            message::too_long(b"", MAX_MESSAGE),
        ),
        Ok(bytes) => match message::read(&bytes) {
            Ok(Some(_)) => return Ok(extract::Request::from_parts(parts, Body::from(bytes))),
            Ok(None) => return Err(StatusCode::ACCEPTED.into_response()),
            Err(answer) => (StatusCode::BAD_REQUEST, answer),
        },
    };
    let answer = json!({ "jsonrpc": "2.0", "id": answer.id, "error": answer.error });
    Err((status, Json(answer)).into_response())
}
