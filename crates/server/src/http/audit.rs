//! The audit log over HTTP.

use super::app::{App, blocking};
use super::body::{ValidatedQuery, page};
use super::listener::Caller;
use crate::api::Problem;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_engine::{AuditFilter, AuditReport, Timestamp};

/// The default and the maximum size of a page.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// Which entries are listed.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only those of this token or Unix user.
    name: Option<String>,
    /// Only this command: `start`, `pause`, `put-workflow`, …
    action: Option<String>,
    /// Only those about this run, workflow, or WORKFLOW/NAME of a value.
    target: Option<String>,
    /// Only those at this instant (RFC 3339) or later.
    since: Option<Timestamp>,
    /// Maximum number: 100 by default, 10000 at most.
    #[param(minimum = 1)]
    limit: Option<usize>,
}

/// The audit log: the changes by clients, with names and addresses. Only for the role admin.
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "server", params(AuditQuery),
    responses(
        (status = 200, description = "The newest entries, newest first", body = AuditReport),
        (status = "4XX", description = "A parameter cannot be read, or the token has another role", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ValidatedQuery(query): ValidatedQuery<AuditQuery>,
) -> Result<axum::Json<AuditReport>, Problem> {
    let filter = AuditFilter {
        name: query.name,
        action: query.action,
        target: query.target,
        since: query.since,
        limit: Some(page(query.limit, PAGE, MAX_PAGE, caller)?),
    };
    let report = blocking(move || Ok(app.audit.read(&filter)?));
    Ok(axum::Json(report.await?))
}
