//! Webhooks: requests of other services that start runs of saved workflows (`triggers: {webhook}`).
//! The sender signs each request with a secret that the workflow names, so the request needs no token.

use super::app::{App, blocking};
use super::body::{PathParam, ValidatedQuery, check_memory, essence, is_json, json_value, read};
use super::listener::Caller;
use crate::api::{HookStart, Problem};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_engine::{AUDIT_DONE, Actor, Delivery, EngineError, ErrorCode, now};

const PATH: &str = "/v1/hooks/";

/// Headers that are not passed to the run: they contain secrets of the sender, or do not concern the event.
const DROPPED: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(&format!("{PATH}{{workflow}}"), post(start))
}

/// Returns true if a path is the URL of a webhook. Its signature replaces a token.
pub(super) fn is_hook(path: &str) -> bool {
    path.starts_with(PATH)
}

/// Start a run of a stored workflow that has a webhook.
///
/// The request needs no token, but a signature in the form that the workflow defines.
#[utoipa::path(post, path = "/v1/hooks/{workflow}", operation_id = "start_by_webhook", tag = "workflows",
    params(("workflow" = String, Path, description = "The saved workflow")),
    request_body(content = Option<Object>, description = "Payload that the run gets as `body`"),
    responses(
        (status = 201, description = "The run was started", body = HookStart),
        (status = 200, description = "The same delivery started it before", body = HookStart),
        (status = "4XX", description = "400 the body is not JSON, and the header says so, 401 another signature, 404 no workflow with a webhook, 422 refused input", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    Extension(actor): Extension<Actor>,
    PathParam(workflow): PathParam,
    ValidatedQuery(query): ValidatedQuery<Vec<(String, String)>>,
    request: Request,
) -> Result<(StatusCode, axum::Json<HookStart>), Problem> {
    app.check_accepts_work(Caller::Remote)?;
    let refused = |error: EngineError| refuse(&app, &actor, &workflow, error);
    let (engine, name) = (Arc::clone(&app.engine), workflow.clone());
    let webhook = blocking(move || Ok(engine.webhook(&name))).await?;
    let webhook = webhook.map_err(refused)?;
    let headers = named(request.headers());
    // The headers are checked before the body is received, so that clients without the secret cannot send large
    // bodies.
    webhook.check_headers(&headers).map_err(refused)?;
    let says_json = is_json(&essence(request.headers()));
    let body = read(request).await?;
    let delivery = Delivery {
        headers,
        body: &body,
        query,
    };
    check_memory(&body)?;
    let signed = app.engine.check_delivery(&webhook, &delivery, now()).await;
    let signed = signed.map_err(refused)?;
    if says_json && !body.is_empty() {
        json_value(&body)?;
    }
    let sender = Actor {
        name: String::from("webhook"),
        from: actor.from.clone(),
    };
    let begun = app.audit.begin(now(), sender, "start", Some(&workflow));
    let begun = begun.await?;
    let started = app.engine.start_by_webhook(signed).await;
    match &started {
        Ok(started) => begun.end(AUDIT_DONE, Some(&started.run)).await,
        Err(error) => begun.end(error.code().word(), None).await,
    }
    let started = started?;
    let status = match started.fresh {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let run = started.run.to_string();
    Ok((status, axum::Json(HookStart { run })))
}

/// Logs why a request without a valid signature is refused. The answer says only what concerns the request, and nothing
/// about the configuration of the server.
fn refuse(app: &App, actor: &Actor, workflow: &str, error: EngineError) -> Problem {
    let path = format!("{PATH}{workflow}");
    let why = error.to_string();
    match error {
        error @ (EngineError::Unsigned(_) | EngineError::NoWebhook(_)) => {
            app.refusals.log(&actor.from, &Method::POST, &path, &why);
            Problem::from(error)
        }
        _ => {
            // This is logged separately, so that requests with invalid signatures cannot suppress the message.
            app.unchecked.log(&actor.from, &Method::POST, &path, &why);
            let detail = "the server cannot check requests to this webhook; its log says why";
            Problem::new(ErrorCode::Unavailable, detail)
        }
    }
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
