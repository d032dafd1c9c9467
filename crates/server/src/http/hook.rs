//! Requests of other services that start runs of saved workflows: `triggers: {webhook}`. Each is signed with a secret of
//! the workflow, so it needs no token.

use super::app::App;
use super::body::{PathParam, ValidatedQuery, read};
use super::listener::Caller;
use crate::api::{HookStart, Problem};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_engine::{AUDIT_DONE, Actor, Delivery, EngineError, now};

const PATH: &str = "/v1/hooks/";

/// Headers that hold secrets of the sender's, or say nothing about the event.
const DROPPED: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(&format!("{PATH}{{workflow}}"), post(start))
}

/// Whether a path is that of a webhook: its signature replaces a token.
pub(super) fn is_hook(path: &str) -> bool {
    path.starts_with(PATH)
}

/// Starts a run of a saved workflow that has a webhook. The request is signed as the workflow says.
#[utoipa::path(post, path = "/v1/hooks/{workflow}", operation_id = "start_by_webhook", tag = "workflows",
    params(("workflow" = String, Path, description = "The saved workflow")),
    request_body(content = Option<Object>, description = "What the run gets as `body`"),
    responses(
        (status = 201, description = "The run was started", body = HookStart),
        (status = 200, description = "The same delivery started it before", body = HookStart),
        (status = "4XX", description = "401 another signature, 404 no workflow with a webhook, 422 refused input", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    Extension(actor): Extension<Actor>,
    PathParam(workflow): PathParam,
    ValidatedQuery(query): ValidatedQuery<BTreeMap<String, String>>,
    request: Request,
) -> Result<(StatusCode, axum::Json<HookStart>), Problem> {
    app.check_accepts_work(Caller::Remote)?;
    let headers = named(request.headers());
    let body = read(request).await?;
    let delivery = Delivery {
        headers,
        body: &body,
        query,
    };
    let started = app
        .engine
        .start_by_webhook(&workflow, &delivery, now())
        .await;
    if let Err(EngineError::Unsigned(why)) = &started {
        tracing::warn!(workflow, why, "a request to a webhook was refused");
    }
    let started = started?;
    let actor = Actor {
        name: String::from("webhook"),
        ..actor
    };
    let begun = app
        .audit
        .begin(now(), actor, "start", Some(&workflow))
        .await?;
    begun.end(AUDIT_DONE, Some(&started.run)).await;
    let status = match started.fresh {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let run = started.run.to_string();
    Ok((status, axum::Json(HookStart { run })))
}

fn named(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut named = BTreeMap::new();
    for (name, value) in headers {
        if let Ok(text) = value.to_str()
            && !DROPPED.contains(&name.as_str())
        {
            named
                .entry(name.as_str().to_owned())
                .or_insert_with(|| text.to_owned());
        }
    }
    named
}
