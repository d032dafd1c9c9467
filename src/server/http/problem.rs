//! What a client is told when it does not get what it asked for: RFC 9457 problem details. The
//! one place where errors of the engine become HTTP.

use crate::engine::report::{DiagnosticReport, diagnostics};
use crate::engine::{EngineError, LoadError, ScheduleError, StoreError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Problem details (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:windlass:` and a word that stays the same: `unknown-run`, `refused-workflow`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time.
    pub detail: String,
    /// All mistakes of a workflow that is refused, with line and column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<DiagnosticReport>,
}

/// The kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The request cannot be read.
    BadRequest,
    /// No token, or another one.
    Unauthorized,
    /// A page of elsewhere asks, or the server is not meant.
    Forbidden,
    /// There is no such address.
    NotFound,
    /// The address takes other methods.
    MethodNotAllowed,
    /// There is no such run.
    UnknownRun,
    /// There is no such workflow.
    UnknownWorkflow,
    /// There is a run of this id already.
    RunExists,
    /// The run has ended, and does not go on.
    RunEnded,
    /// The run has not ended badly.
    NotRetried,
    /// The run cannot be retried from there.
    NoPlace,
    /// Nothing in the run's workflow waits for the signal.
    NoSignal,
    /// The run lacks a handler or a secret here, or this version cannot read its workflow.
    NotLoaded,
    /// The idempotency key was used for something else.
    KeyReused,
    /// The body is too large.
    TooLarge,
    /// The body did not come in time.
    TooSlow,
    /// The body has another type.
    MediaType,
    /// The workflow has mistakes.
    RefusedWorkflow,
    /// The input is not what the workflow declares.
    RefusedInput,
    /// It has as much to do as it takes.
    Busy,
    /// It is about to leave, or not there yet.
    Unavailable,
    /// The store.
    Store,
    /// Anything else.
    Internal,
}

impl Kind {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::BadRequest => (S::BAD_REQUEST, "bad-request", "The request cannot be read"),
            Self::Unauthorized => (S::UNAUTHORIZED, "unauthorized", "A token is needed"),
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "The request is not let in"),
            Self::NotFound => (
                S::NOT_FOUND,
                "not-found",
                "There is nothing at this address",
            ),
            Self::MethodNotAllowed => (
                S::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "The address takes other methods",
            ),
            Self::UnknownRun => (S::NOT_FOUND, "unknown-run", "There is no such run"),
            Self::UnknownWorkflow => (
                S::NOT_FOUND,
                "unknown-workflow",
                "There is no such workflow",
            ),
            Self::RunExists => (S::CONFLICT, "run-exists", "There is a run of this id"),
            Self::RunEnded => (S::CONFLICT, "run-ended", "The run has ended"),
            Self::NotRetried => (S::CONFLICT, "not-retried", "The run did not end badly"),
            Self::NoPlace => (
                S::CONFLICT,
                "no-place",
                "The run cannot be retried from there",
            ),
            Self::NoSignal => (S::CONFLICT, "no-signal", "The run waits for no such signal"),
            Self::NotLoaded => (
                S::CONFLICT,
                "not-loaded",
                "The run cannot go on with what the server has",
            ),
            Self::KeyReused => (
                S::UNPROCESSABLE_ENTITY,
                "key-reused",
                "The idempotency key was used for another request",
            ),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too-large", "The body is too large"),
            Self::TooSlow => (S::REQUEST_TIMEOUT, "too-slow", "The body did not come"),
            Self::MediaType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "media-type",
                "The body has another type",
            ),
            Self::RefusedWorkflow => (
                S::UNPROCESSABLE_ENTITY,
                "refused-workflow",
                "The workflow is refused",
            ),
            Self::RefusedInput => (
                S::UNPROCESSABLE_ENTITY,
                "refused-input",
                "The input is refused",
            ),
            Self::Busy => (
                S::TOO_MANY_REQUESTS,
                "busy",
                "The server has as much to do as it takes",
            ),
            Self::Unavailable => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                "The server is not ready",
            ),
            Self::Store => (
                S::SERVICE_UNAVAILABLE,
                "store",
                "The store cannot do it now",
            ),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "The server failed"),
        }
    }
}

impl Problem {
    /// What kinds' `type` begins with.
    pub const PREFIX: &'static str = "urn:windlass:";

    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let (status, word, title) = kind.parts();
        Self {
            kind: format!("{}{word}", Self::PREFIX),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            diagnostics: Vec::new(),
        }
    }

    /// The word behind the prefix of its type.
    #[must_use]
    pub fn word(&self) -> &str {
        self.kind.strip_prefix(Self::PREFIX).unwrap_or(&self.kind)
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match &error {
            LoadError::Unreadable { .. } => Self::new(Kind::BadRequest, error.to_string()),
            LoadError::Refused {
                diagnostics: found,
                bundle,
            } => {
                let found = diagnostics(found, bundle);
                let wrong = found.iter().filter(|one| one.severity == "error").count();
                let detail = match found.iter().find(|one| one.severity == "error") {
                    Some(first) if wrong == 1 => {
                        format!("line {}: {}", first.line, first.message)
                    }
                    Some(first) => {
                        format!("{wrong} mistakes; line {}: {}", first.line, first.message)
                    }
                    None => error.to_string(),
                };
                Self {
                    diagnostics: found,
                    ..Self::new(Kind::RefusedWorkflow, detail)
                }
            }
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let kind = match &error {
            EngineError::Store(error) => of_store(error),
            EngineError::Schedule(error) => of_schedule(error),
            EngineError::Input(_) => Kind::RefusedInput,
            EngineError::KeyReused(_) => Kind::KeyReused,
            EngineError::NotRetried { .. } => Kind::NotRetried,
            EngineError::NoPlace { .. } => Kind::NoPlace,
            EngineError::NoSignal { .. } => Kind::NoSignal,
            EngineError::NoLoop { .. } | EngineError::NoPage(_) | EngineError::StoreExists(_) => {
                Kind::BadRequest
            }
            EngineError::Load(_) => {
                let EngineError::Load(error) = error else {
                    return Self::new(Kind::Internal, error.to_string());
                };
                return error.into();
            }
            EngineError::NoStore(_) | EngineError::Thread(_) | EngineError::NoRuntime => {
                Kind::Internal
            }
        };
        Self::new(kind, error.to_string())
    }
}

fn of_schedule(error: &ScheduleError) -> Kind {
    match error {
        ScheduleError::Store(error) => of_store(error),
        ScheduleError::Unloadable { .. } => Kind::NotLoaded,
        ScheduleError::Broken { .. } => Kind::Internal,
        ScheduleError::Busy => Kind::Busy,
        ScheduleError::Sealed(_) => Kind::Store,
        ScheduleError::Ended { .. } => Kind::RunEnded,
        ScheduleError::Exists(_) => Kind::RunExists,
        ScheduleError::NoSignal { .. } => Kind::NoSignal,
        ScheduleError::Stopped => Kind::Unavailable,
    }
}

fn of_store(error: &StoreError) -> Kind {
    match error {
        StoreError::UnknownRun(_) => Kind::UnknownRun,
        StoreError::Unfit { .. } => Kind::RefusedInput,
        StoreError::Locked { .. }
        | StoreError::Foreign { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Unopened { .. }
        | StoreError::Gone { .. }
        | StoreError::Io(_)
        | StoreError::Conflict { .. }
        | StoreError::Failed { .. } => Kind::Store,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::warn!(status = self.status, detail = %self.detail, "a request failed");
        }
        let text = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer realm=\"windlass\""),
                );
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
