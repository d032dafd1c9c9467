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

/// The default size of a page.
const PAGE: usize = 100;
/// The maximum size of a page.
const MAX_PAGE: usize = 10_000;

/// Selects the listed entries.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only entries of the token or Unix user with this name.
    name: Option<String>,
    /// Only entries of this command: `start`, `pause`, `put-workflow`, …
    action: Option<String>,
    /// Only entries with this target: a run, a workflow, or WORKFLOW/NAME of a value.
    target: Option<String>,
    /// Only entries at this time (RFC 3339) or later.
    since: Option<Timestamp>,
    /// Maximum number of entries: 100 by default, at most 10000.
    #[param(minimum = 1)]
    limit: Option<usize>,
}

/// List the entries of the audit log, newest first.
///
/// Each entry is a command of a client, with its name and address. Needs the role `admin`.
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
