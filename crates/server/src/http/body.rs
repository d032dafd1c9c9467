//! Reads the parts of requests, limits their size and time, and refuses invalid ones with problems.

use super::listener::{Caller, ConnectionInfo};
use crate::api::Problem;
use axum::body::{BodyDataStream, Bytes, HttpBody};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use std::borrow::Cow;
use std::time::Duration;
use windlass_engine::{
    ErrorCode, MAX_MEMORY, Value, check_unique, inexact_json, memory_of_json, over_memory,
};

/// Maximum size of a body in bytes.
const MAX_BODY: usize = 16 << 20;

/// Maximum size of a body over the control socket, in bytes. It allows the largest workflow with every character
/// escaped.
const MAX_LOCAL_BODY: usize = 64 << 20;

/// Timeout for receiving a body, unless the connection has a timeout of its own.
const BODY_TIME: Duration = Duration::from_secs(30);

/// After a refusal, the server stops reading the rest of the body if nothing arrives for this time.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

/// A JSON body.
pub(super) struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        // Only JSON's media type is accepted: before a page of another site may send it, its browser asks with a
        // preflight request.
        if !is_json(&essence(request.headers())) {
            let detail = "send the header `Content-Type: application/json`";
            return Err(Problem::new(ErrorCode::MediaType, detail));
        }
        let caller = Caller::of(request.extensions());
        let bytes = read(request).await?;
        values(&bytes, caller).map(Self)
    }
}

/// An optional JSON body. A body that is `null` is the same as no body.
pub(super) struct Optional<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let nothing = request.body().size_hint().exact() == Some(0);
        if nothing && essence(request.headers()).is_empty() {
            return Ok(Self(T::default()));
        }
        let Json(value) = Json::<Option<T>>::from_request(request, state).await?;
        Ok(Self(value.unwrap_or_default()))
    }
}

/// Decodes JSON. If the caller is not the operator, a body whose values would need too much memory is refused.
pub(super) fn values<T: DeserializeOwned>(bytes: &[u8], caller: Caller) -> Result<T, Problem> {
    check_json(bytes, caller)?;
    // A list is refused, because Serde would decode it as the members of an object, in order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::new(
            ErrorCode::BadRequest,
            "the body must be an object, not a list",
        ));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(Problem::new(
            ErrorCode::BadRequest,
            "the body is empty: send a JSON object",
        ));
    }
    let decoded = serde_json::from_slice(bytes).map_err(unreadable)?;
    check_unique(&mut serde_json::Deserializer::from_slice(bytes)).map_err(unreadable)?;
    Ok(decoded)
}

/// Decodes any JSON value from a remote caller.
pub(super) fn json_value(bytes: &[u8]) -> Result<Value, Problem> {
    check_json(bytes, Caller::Remote)?;
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// Checks that the values of a JSON body do not need too much memory when they are decoded.
pub(super) fn check_memory(bytes: &[u8]) -> Result<(), Problem> {
    match over_memory(memory_of_json(bytes), MAX_MEMORY) {
        None => Ok(()),
        Some(why) => {
            let detail = format!("the values of the body would {why}");
            Err(Problem::new(ErrorCode::TooLarge, detail))
        }
    }
}

fn check_json(bytes: &[u8], caller: Caller) -> Result<(), Problem> {
    if caller == Caller::Remote {
        check_memory(bytes)?;
    }
    if let Some(reason) = inexact_json(bytes) {
        return Err(Problem::new(ErrorCode::BadRequest, reason));
    }
    Ok(())
}

pub(super) fn unreadable(error: serde_json::Error) -> Problem {
    let what = of_numbers(&error.to_string());
    Problem::new(
        ErrorCode::BadRequest,
        match error.classify() {
            Category::Data => what,
            Category::Io | Category::Syntax | Category::Eof => {
                format!("the body is not JSON: {what}")
            }
        },
    )
}

/// The parameters of the query string.
pub(super) struct ValidatedQuery<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ValidatedQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Query::<T>::try_from_uri(&parts.uri)
            .map(|Query(value)| Self(value))
            .map_err(|error| {
                let text = error.body_text();
                let (_, what) = text.split_once("query string: ").unwrap_or(("", &text));
                let what = what.replace("unknown field", "unknown parameter");
                let what = what.replace("duplicate field", "repeated parameter");
                Problem::new(ErrorCode::BadRequest, of_numbers(&what))
            })
    }
}

/// Replaces the names of Rust's numbers in an error of Serde.
fn of_numbers(text: &str) -> String {
    const EXPECTED: &str = "expected a whole number";
    let text = text.replace("invalid digit found in string", EXPECTED);
    let types = ["usize", "u64", "u32", "u16", "u8", "i64"];
    types.iter().fold(text, |text, of| {
        text.replace(&format!("expected {of}"), EXPECTED)
    })
}

/// Decodes a boolean parameter: `true` or `1`, `false` or `0`.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match &*Cow::<str>::deserialize(deserializer)? {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(D::Error::custom(format!(
            "`{other}` is neither true nor false"
        ))),
    }
}

/// Returns the size of a page: the requested size, up to the caller's maximum.
pub(super) fn page(
    requested: Option<usize>,
    usual: usize,
    most: usize,
    caller: Caller,
) -> Result<usize, Problem> {
    let most = caller.at_most(most);
    match requested.unwrap_or(usual) {
        requested if (1..=most).contains(&requested) => Ok(requested),
        _ => Err(out_of_range("limit", 1, most)),
    }
}

/// Returns how many entries of something the caller requests. `most` is the maximum for callers other than the
/// operator.
pub(super) fn requested_limit(
    name: &str,
    requested: Option<usize>,
    usual: usize,
    most: usize,
    caller: Caller,
) -> Result<usize, Problem> {
    let most = caller.at_most(most);
    match requested.unwrap_or(usual) {
        requested if requested > most => Err(out_of_range(name, 0, most)),
        requested => Ok(requested),
    }
}

fn out_of_range(name: &str, least: usize, most: usize) -> Problem {
    let detail = format!("`{name}` must be a number from {least} to {most}");
    Problem::new(ErrorCode::BadRequest, detail)
}

/// The parameters in a path: one name or several.
pub(super) struct PathParam<T = String>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Path::<T>::from_request_parts(parts, state)
            .await
            .map(|Path(name)| Self(name))
            .map_err(|error| Problem::new(ErrorCode::BadRequest, error.body_text()))
    }
}

/// Returns the media type of a body without its parameters. Returns an empty text if the header is missing.
pub(super) fn essence(headers: &HeaderMap) -> String {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|value| value.to_str().ok());
    let essence = given.and_then(|text| text.split(';').next());
    essence.unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn is_json(essence: &str) -> bool {
    essence == "application/json"
}

/// Reads the rest of a refused body.
/// If the connection were closed while the client still sends, the client could not read why its request is refused.
async fn drain(stream: &mut BodyDataStream, max: usize) {
    let mut left = 4 * max;
    while let Ok(Some(Ok(chunk))) = tokio::time::timeout(ON_ITS_WAY, stream.next()).await {
        let Some(rest) = left.checked_sub(chunk.len()) else {
            return;
        };
        left = rest;
    }
}

pub(super) async fn read(request: Request) -> Result<Bytes, Problem> {
    let info = request.extensions().get::<ConnectInfo<ConnectionInfo>>();
    let info = info.map(|ConnectInfo(info)| info);
    let max = match Caller::of(request.extensions()) {
        Caller::Remote => MAX_BODY,
        Caller::Operator => MAX_LOCAL_BODY,
    };
    let too_large = || {
        let detail = format!("a body has {max} bytes at most");
        Problem::new(ErrorCode::TooLarge, detail)
    };
    let time = info.map_or(BODY_TIME, |info| info.idle_timeout);
    let _sends = info.map(|info| info.connection.sends());
    let body = request.into_body();
    let whole = async {
        let announced = body.size_hint().lower();
        let mut stream = body.into_data_stream();
        if announced > max as u64 {
            drain(&mut stream, max).await;
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            let chunk =
                chunk.map_err(|error| Problem::new(ErrorCode::BadRequest, error.to_string()))?;
            if bytes.len() + chunk.len() > max {
                drain(&mut stream, max).await;
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Bytes::from(bytes))
    };
    match tokio::time::timeout(time, whole).await {
        Ok(read) => read,
        Err(_) => {
            let detail = format!(
                "the body did not arrive within {} seconds",
                time.as_secs_f64()
            );
            Err(Problem::new(ErrorCode::TooSlow, detail))
        }
    }
}
