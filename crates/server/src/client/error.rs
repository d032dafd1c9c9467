//! Why a client got no answer.

use crate::api::Problem;
use std::error::Error;
use std::io::{self, ErrorKind};
use windlass_engine::ErrorCode;

/// Why a client got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It went away before it answered: it may or may not have carried out the request.
    #[error("the process that owns the store went away")]
    Lost,
    /// It listens, but says nothing.
    #[error("the process that owns the store does not answer; is it stopped?")]
    Silent,
    /// It does not do it.
    #[error("{message}")]
    Refused {
        /// What kind of reason.
        code: ErrorCode,
        /// In words, as the other process says it.
        message: String,
    },
    /// It is of a version that speaks differently.
    #[error("the other process says what this version does not understand: {0}")]
    Foreign(String),
    /// A server elsewhere does not answer.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The socket cannot be used.
    #[error("control.sock cannot be used: {0}")]
    Socket(#[source] io::Error),
}

impl ClientError {
    /// Its kind, where the other process reported one.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether to ask another process: the owner has gone, or is about to.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Lost) || self.code() == Some(ErrorCode::Unavailable)
    }

    /// Why nothing came over the control socket.
    pub(super) fn of_socket(error: &reqwest::Error) -> Self {
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(inner) = source {
            if let Some(io) = inner.downcast_ref::<io::Error>()
                && io.kind() == ErrorKind::PermissionDenied
            {
                return Self::Socket(io::Error::new(io.kind(), io.to_string()));
            }
            source = inner.source();
        }
        let text = chain(error);
        match text.contains("invalid HTTP") {
            true => Self::Foreign(String::from(
                "no HTTP, as versions before this one; end it, or ask it with its own version",
            )),
            false => Self::Lost,
        }
    }
}

/// With the places of all mistakes of a workflow.
impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        let code = problem.code();
        let Problem { title, detail, .. } = &problem;
        let mut message = match code {
            // Their details say what to do, and the title what it is about.
            ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::LocalOnly
            | ErrorCode::NotFound
            | ErrorCode::MethodNotAllowed
            | ErrorCode::TooLarge
            | ErrorCode::TooSlow
            | ErrorCode::MediaType
            | ErrorCode::Unavailable
            | ErrorCode::Internal => format!("{title}: {detail}"),
            ErrorCode::RefusedWorkflow if !problem.diagnostics.is_empty() => title.clone(),
            _ => detail.clone(),
        };
        for one in &problem.diagnostics {
            let file = one.file.as_deref().unwrap_or("workflow");
            let place = format!("{file}:{}:{}", one.line, one.column);
            message.push_str(&format!("\n{place}: {}: {}", one.severity, one.message));
            if let Some(hint) = &one.hint {
                message.push_str(&format!("\n  hint: {hint}"));
            }
        }
        Self::Refused { code, message }
    }
}

/// An error and what it came from.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}
