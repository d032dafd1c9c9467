//! The values that workflows store between their runs, over HTTP.

use super::app::{App, blocking};
use super::body::{Json, PathParam, ValidatedQuery, flag, read};
use crate::api::{Problem, StateList, StateValue};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_engine::report::StateReport;
use windlass_engine::{ErrorCode, Origin, StateCondition};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/state", get(list)).route(
        "/v1/state/{workflow}/{name}",
        get(one).put(set).delete(remove),
    )
}

/// Selects the listed values.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StateListQuery {
    /// Only values of this workflow.
    workflow: Option<String>,
}

/// Selects a value to read.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StateReadQuery {
    /// Whether the value belongs to guest workflows, which have values of their own: `false` by default.
    #[serde(default, deserialize_with = "flag")]
    guest: bool,
}

/// Selects a value to change.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StateQuery {
    /// Whether the value belongs to guest workflows, which have values of their own: `false` by default.
    #[serde(default, deserialize_with = "flag")]
    guest: bool,
    /// Change the value only if it has this version.
    if_version: Option<u64>,
}

fn origin(guest: bool) -> Origin {
    match guest {
        true => Origin::Guest,
        false => Origin::Operator,
    }
}

/// List the values that workflows store between their runs.
#[utoipa::path(get, path = "/v1/state", operation_id = "list_state", tag = "workflows", params(StateListQuery),
    responses((status = 200, description = "The stored values", body = StateList)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    ValidatedQuery(query): ValidatedQuery<StateListQuery>,
) -> Result<axum::Json<StateList>, Problem> {
    let read = app.inspect(move |store| store.state_values(query.workflow.as_deref()));
    Ok(axum::Json(StateList {
        values: read.await?,
    }))
}

/// Get a value that a workflow stores between its runs, with its version.
#[utoipa::path(get, path = "/v1/state/{workflow}/{name}", operation_id = "get_state", tag = "workflows",
    params(("workflow" = String, Path, description = "The name of the workflow, as its runs have it"), ("name" = String, Path, description = "The name of the value"), StateReadQuery),
    responses(
        (status = 200, description = "The stored value", body = StateReport),
        (status = 404, description = "It was never written, or was deleted", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathParam((workflow, name)): PathParam<(String, String)>,
    ValidatedQuery(query): ValidatedQuery<StateReadQuery>,
) -> Result<axum::Json<StateReport>, Problem> {
    let read = app.inspect(move |store| store.state_value(&workflow, &name, origin(query.guest)));
    Ok(axum::Json(read.await?))
}

/// Write a value that a workflow stores between its runs.
///
/// A run that has read the old value continues to use it. Its own write of the value then fails, unless it has
/// `overwrite: true`.
#[utoipa::path(put, path = "/v1/state/{workflow}/{name}", operation_id = "put_state", tag = "workflows", request_body = StateValue,
    params(("workflow" = String, Path, description = "The name of the workflow, as its runs have it"), ("name" = String, Path, description = "The name of the value"), StateQuery),
    responses(
        (status = 200, description = "The stored value; it is durable", body = StateReport),
        (status = "4XX", description = "412: it has another version or value, see `state`; 422: it is too large", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn set(
    State(app): State<Arc<App>>,
    PathParam((workflow, name)): PathParam<(String, String)>,
    ValidatedQuery(query): ValidatedQuery<StateQuery>,
    Json(given): Json<StateValue>,
) -> Result<axum::Json<StateReport>, Problem> {
    let both = || {
        Problem::new(
            ErrorCode::BadRequest,
            "send either `if_version` or `expect`",
        )
    };
    let condition = match (query.if_version, given.condition().ok_or_else(both)?) {
        (None, condition) => condition,
        (Some(version), StateCondition::Always) => StateCondition::Version(version),
        (Some(_), _) => return Err(both()),
    };
    let engine = Arc::clone(&app.engine);
    let written = blocking(move || {
        let value = Some(given.value);
        Ok(engine.write_state(&workflow, &name, value, condition, origin(query.guest))?)
    });
    Ok(axum::Json(written.await?))
}

/// Delete a value that a workflow stores between its runs.
///
/// The next run starts with the initial value.
#[utoipa::path(delete, path = "/v1/state/{workflow}/{name}", operation_id = "remove_state", tag = "workflows",
    params(("workflow" = String, Path, description = "The name of the workflow, as its runs have it"), ("name" = String, Path, description = "The name of the value"), StateQuery),
    responses(
        (status = 204, description = "Deleted"),
        (status = "4XX", description = "404: it was never written, or was deleted; 412: it has another version, see `state`", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    PathParam((workflow, name)): PathParam<(String, String)>,
    ValidatedQuery(query): ValidatedQuery<StateQuery>,
    request: Request,
) -> Result<StatusCode, Problem> {
    // An ignored condition would delete another value than the expected one.
    if !read(request).await?.is_empty() {
        let detail = "this request has no body: send `?if_version=` in the address";
        return Err(Problem::new(ErrorCode::BadRequest, detail));
    }
    let condition = query
        .if_version
        .map_or(StateCondition::Always, StateCondition::Version);
    let engine = Arc::clone(&app.engine);
    let removed = blocking(move || {
        engine.write_state(&workflow, &name, None, condition, origin(query.guest))?;
        Ok(StatusCode::NO_CONTENT)
    });
    removed.await
}
