//! The API for another protocol of the same server.
//! Its requests become API requests with the credentials of the request that the protocol received.

use super::app::EndSignal;
use super::body::unreadable;
use super::listener::{Caller, ConnectionInfo};
use crate::api::Problem;
use crate::client::ClientError;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::Response;
use futures_util::StreamExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tower_service::Service;
use windlass_engine::ErrorCode;

/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// The headers that determine the identity of the caller.
const CREDENTIALS: [header::HeaderName; 4] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::HOST,
    header::ORIGIN,
];

/// The API of the server, called without a connection.
#[derive(Clone)]
pub struct InnerApi {
    router: Router,
    ends: EndSignal,
}

impl InnerApi {
    pub(super) fn new(router: Router, ends: EndSignal) -> Self {
        Self { router, ends }
    }

    /// Ends an answer without an end, such as a stream, when the server stops or the accepted tokens change.
    pub fn until_stop(&self, response: Response) -> Response {
        let ends = self.ends.clone();
        let ended = Box::pin(async move { ends.must_end(Caller::Remote).await });
        response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)))
    }

    /// Sends a request to the API, with the credentials of the received request `serves`. Returns the answer as JSON.
    ///
    /// # Errors
    /// The error of the API.
    pub async fn json(
        &self,
        serves: &Parts,
        method: Method,
        path: &str,
        query: &[(&'static str, String)],
        body: Option<&serde_json::Value>,
    ) -> Result<serde_json::Value, ClientError> {
        let query: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
            .collect();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{path}?{}", query.join("&")));
        for name in CREDENTIALS {
            if let Some(value) = serves.headers.get(&name) {
                request = request.header(name, value);
            }
        }
        if let Some(info) = serves.extensions.get::<ConnectInfo<ConnectionInfo>>() {
            request = request.extension(info.clone());
        }
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let request =
            request.map_err(|error| Problem::new(ErrorCode::BadRequest, error.to_string()))?;
        let Ok(response) = self.router.clone().call(request).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), MAX_ANSWER).await;
        let bytes = bytes.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        if status.is_success() {
            return match bytes.is_empty() {
                true => Ok(serde_json::Value::Null),
                false => Ok(serde_json::from_slice(&bytes).map_err(unreadable)?),
            };
        }
        let problem: Problem = serde_json::from_slice(&bytes).map_err(unreadable)?;
        Err(problem.into())
    }
}
