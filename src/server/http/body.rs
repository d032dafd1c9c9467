//! How requests are read: bounded in size and time, and refused as problems.

use super::problem::{Kind, Problem};
use super::workflows::WorkflowText;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The largest body, in bytes.
pub const MAX_BODY: usize = 16 << 20;

/// A body that has not come after this time is refused.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A body of JSON.
pub(super) struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        // A form of another site's page cannot send this type without being asked first.
        if !is_json(request.headers()) {
            let detail = "send the header `Content-Type: application/json`";
            return Err(Problem::new(Kind::MediaType, detail));
        }
        let bytes = read(request.into_body()).await?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(Problem::new(Kind::BadRequest, error.to_string())),
        }
    }
}

/// A workflow: text as it is, or JSON with the text in it.
pub(super) struct Source(pub WorkflowText);

impl<S: Send + Sync> FromRequest<S> for Source {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if is_json(request.headers()) {
            let Json(text) = Json::from_request(request, state).await?;
            return Ok(Self(text));
        }
        let bytes = read(request.into_body()).await?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(WorkflowText {
                text,
                ..WorkflowText::default()
            })),
            Err(_) => Err(Problem::new(Kind::BadRequest, "the body is not UTF-8")),
        }
    }
}

/// What stands behind the question mark.
pub(super) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Query::<T>::try_from_uri(&parts.uri)
            .map(|Query(value)| Self(value))
            .map_err(|error| Problem::new(Kind::BadRequest, error.body_text()))
    }
}

/// The one name in a path.
pub(super) struct Named(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Path::<String>::from_request_parts(parts, state)
            .await
            .map(|Path(name)| Self(name))
            .map_err(|error| Problem::new(Kind::BadRequest, error.body_text()))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|value| value.to_str().ok());
    let essence = given.and_then(|text| text.split(';').next()).map(str::trim);
    essence.is_some_and(|word| word.eq_ignore_ascii_case("application/json"))
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let whole = async {
        let mut stream = body.into_data_stream();
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| Problem::new(Kind::BadRequest, error.to_string()))?;
            if bytes.len() + chunk.len() > MAX_BODY {
                let detail = format!("a body has {MAX_BODY} bytes at most");
                return Err(Problem::new(Kind::TooLarge, detail));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Bytes::from(bytes))
    };
    match tokio::time::timeout(BODY_TIME, whole).await {
        Ok(read) => read,
        Err(_) => {
            let detail = format!("a body comes within {} seconds", BODY_TIME.as_secs());
            Err(Problem::new(Kind::TooSlow, detail))
        }
    }
}
