//! The access that each route needs, and its word in the audit log.

use axum::http::Method;

/// What a caller may do. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Begin a session with a ticket, and nothing else.
    Nothing,
    /// Read, and change nothing.
    View,
    /// Start runs, and send commands to them.
    Operate,
    /// Everything.
    Admin,
}

impl Access {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::View => "view",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// Returns the access of a role in a token file.
    pub fn of_role(word: &str) -> Option<Self> {
        let mut roles = [Self::View, Self::Operate, Self::Admin].into_iter();
        roles.find(|role| role.as_str() == word)
    }
}

/// The access that a route needs, and how its requests appear in the audit log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub access: Access,
    /// The word for the request in the audit log. `None` if the request changes nothing or the handler writes to the
    /// log.
    pub action: Option<&'static str>,
}

impl Rule {
    /// Returns the rule of a route. A path that has no route has a rule as well.
    pub fn of(method: &Method, route: Option<&str>) -> Self {
        let (access, action) = match (method.as_str(), route.unwrap_or_default()) {
            ("GET" | "HEAD", "/v1/audit") => (Access::Admin, None),
            ("POST", "/v1/session") => (Access::Nothing, None),
            // The signature of these URLs replaces a token.
            ("GET" | "HEAD", "/v1/callbacks/{run}/{signal}") => (Access::Nothing, None),
            // No word here: the handlers write to the audit log themselves, after they have checked the signature.
            ("POST", "/v1/callbacks/{run}/{signal}" | "/v1/hooks/{workflow}") => {
                (Access::Nothing, None)
            }
            // Each message of MCP becomes an API request, which needs its own access.
            ("DELETE", "/v1/session") | ("GET" | "POST" | "DELETE", "/mcp") => (Access::View, None),
            // These requests compute without changing anything.
            (
                "POST",
                "/v1/validate"
                | "/v1/language/complete"
                | "/v1/language/hover"
                | "/v1/language/symbols"
                | "/v1/language/panel"
                | "/v1/language/edit"
                | "/v1/language/types"
                | "/v1/language/stubs"
                | "/v1/language/try"
                | "/v1/language/schedule"
                | "/v1/runs/{run}/test-condition",
            ) => (Access::View, None),
            ("POST", "/v1/runs") => (Access::Operate, Some("start")),
            // No word here: the handler writes one entry for each run.
            ("POST", "/v1/runs/bulk") => (Access::Operate, None),
            ("POST", "/v1/runs/{run}/pause") => (Access::Operate, Some("pause")),
            ("POST", "/v1/runs/{run}/resume") => (Access::Operate, Some("resume")),
            ("POST", "/v1/runs/{run}/cancel") => (Access::Operate, Some("cancel")),
            ("POST", "/v1/runs/{run}/signal") => (Access::Operate, Some("signal")),
            ("POST", "/v1/runs/{run}/retry") => (Access::Operate, Some("retry")),
            ("POST", "/v1/resume") => (Access::Operate, Some("resume-all")),
            ("PUT", "/v1/workflows/{name}") => (Access::Admin, Some("put-workflow")),
            ("DELETE", "/v1/workflows/{name}") => (Access::Admin, Some("delete-workflow")),
            ("POST", "/v1/workflows/{name}/schedule/pause") => {
                (Access::Admin, Some("pause-schedule"))
            }
            ("POST", "/v1/workflows/{name}/schedule/resume") => {
                (Access::Admin, Some("resume-schedule"))
            }
            ("PUT", "/v1/state/{workflow}/{name}") => (Access::Admin, Some("put-state")),
            ("DELETE", "/v1/state/{workflow}/{name}") => (Access::Admin, Some("delete-state")),
            ("POST", "/v1/prune") => (Access::Admin, Some("prune")),
            ("POST", "/v1/backup") => (Access::Admin, Some("backup")),
            ("GET" | "HEAD", _) => (Access::View, None),
            _ => (Access::Admin, None),
        };
        Self { access, action }
    }
}
