//! The errors of a client.

use crate::api::Problem;
use std::error::Error;
use std::io::{self, ErrorKind};
use windlass_engine::ErrorCode;

/// Why a client received no answer, or the refusal that it received.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The owner of the store ended before it answered. It may or may not have executed the request.
    #[error("the process that owns the store went away")]
    Lost,
    /// The owner of the store listens, but does not answer.
    #[error("the process that owns the store does not answer; is it stopped?")]
    Silent,
    /// The other process refuses the request.
    #[error("{message}")]
    Refused {
        /// The kind of the refusal.
        code: ErrorCode,
        /// The description from the other process.
        message: String,
    },
    /// The other process has a version with a different API.
    #[error("the other process says what this version does not understand: {0}")]
    Foreign(String),
    /// A server at a URL does not answer.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The socket cannot be used.
    #[error("control.sock cannot be used: {0}")]
    Socket(#[source] io::Error),
}

impl ClientError {
    /// Returns the code of a refusal, or `None` for other errors.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns true if the owner has ended or is about to end, so that another process may own the store.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Lost) || self.code() == Some(ErrorCode::Unavailable)
    }

    /// Returns true if the same request may succeed later: the server does not answer, or is about to end.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable(_)) || self.is_gone()
    }

    /// Converts an error of the control socket.
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

/// The message also has the positions of all mistakes, if the problem is about a workflow.
impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        let code = problem.code();
        let Problem { title, detail, .. } = &problem;
        let mut message = match code {
            // The details of these problems say only what to do. The title says what the problem is, so it is added
            // to the message.
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

/// Returns the messages of an error and its sources.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}
