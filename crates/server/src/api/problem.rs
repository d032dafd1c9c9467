//! The error responses of the API: problem details (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_engine::report::{CurrentWorkflow, DiagnosticReport, StateReport, diagnostics};
use windlass_engine::{EngineError, ErrorCode, LoadError};

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// The prefix of every `type`.
const PREFIX: &str = "urn:windlass:";

/// Problem details of an error (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Type of the error: `urn:windlass:` and a stable word such as `unknown-run` or `refused-workflow`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Short description of the type.
    pub title: String,
    /// HTTP status of the response.
    pub status: u16,
    /// Message about this occurrence.
    pub detail: String,
    /// All errors and warnings of a refused workflow, with their positions. Absent for other errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<DiagnosticReport>,
    /// Workflow that is stored under the name, if a `PUT` expected another version. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<CurrentWorkflow>>,
    /// Value that is stored, if a write expected another version or value. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<StateReport>>,
}

impl Problem {
    /// Creates a problem with this code.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("{}{}", PREFIX, code.word()),
            title: code.title().to_owned(),
            status: code.http_status(),
            detail: detail.into(),
            diagnostics: Vec::new(),
            current: None,
            state: None,
        }
    }

    /// Returns the problem's code. If this version of Windlass does not know the problem's type, the code depends on
    /// the HTTP status.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        let word = self.kind.strip_prefix(PREFIX);
        let known = word.and_then(ErrorCode::from_word);
        known.unwrap_or(match self.status {
            400..500 => ErrorCode::BadRequest,
            _ => ErrorCode::Internal,
        })
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match &error {
            LoadError::Unreadable { .. } => Self::new(error.code(), error.to_string()),
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
                    ..Self::new(ErrorCode::RefusedWorkflow, detail)
                }
            }
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Load(error) => error.into(),
            EngineError::WorkflowChanged { ref current, .. } => Self {
                current: current.clone(),
                ..Self::new(error.code(), error.to_string())
            },
            EngineError::StateChanged { ref current, .. } => Self {
                state: current.clone(),
                ..Self::new(error.code(), error.to_string())
            },
            error => Self::new(error.code(), error.to_string()),
        }
    }
}
