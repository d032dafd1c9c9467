//! The description of the API, generated from the code that serves it.
//! `docs/openapi.json` has the same text; a test compares the two.

use super::{
    audit, bulk, callback, edits, events, graph, health, hook, iterations, language, live, runs,
    session, starts, state, store, workflows,
};
use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, ResponseBuilder};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Windlass",
        description = "Durable workflows: start, inspect and control runs. Errors are problem details (RFC \
             9457).",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        workflows::list, workflows::put, workflows::get, workflows::remove, workflows::versions, workflows::schedule, workflows::times,
        workflows::pause_schedule, workflows::resume_schedule, workflows::validate,
        state::list, state::one, state::set, state::remove,
        runs::list, starts::start, runs::status, runs::result, runs::history, iterations::export, runs::source, runs::places, runs::printed, runs::dump,
        graph::graph,
        language::complete, language::hover, language::symbols, language::test,
        iterations::loops, iterations::strip, iterations::list, iterations::one, iterations::difference,
        events::events, live::live,
        runs::pause, runs::resume, runs::cancel, runs::signal, callback::question, callback::answer, hook::start, starts::retry, bulk::bulk,
        session::me, session::begin, session::end,
        store::resume, store::dump, store::prune, audit::list,
        edits::panel, edits::edit, edits::types, edits::stubs, edits::schedule, edits::attempt,
        health::healthz, health::readyz, health::metrics,
    ),
    components(schemas(live::Hello)),
    tags(
        (name = "workflows", description = "Stored workflows"),
        (name = "runs", description = "Runs of workflows"),
        (name = "language", description = "Language services for editors; nothing is stored"),
        (name = "server", description = "The server itself, and all of its runs at once"),
    ),
    modifiers(&Bearer, &CommonErrors),
    security((), ("token" = [])),
)]
struct Api;

/// Adds the authentication with a token to the description.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", scheme);
    }
}

/// Adds to each request the errors that every request can have, unless the request describes them itself.
struct CommonErrors;

impl Modify for CommonErrors {
    fn modify(&self, document: &mut Document) {
        for (path, item) in &mut document.paths.paths {
            if ["/healthz", "/readyz"].contains(&path.as_str()) {
                continue;
            }
            let operations = [
                &mut item.get,
                &mut item.put,
                &mut item.post,
                &mut item.delete,
            ];
            for operation in operations.into_iter().flatten() {
                let responses = &mut operation.responses.responses;
                let refused = || {
                    let problem = Ref::from_schema_name("Problem");
                    let content = ContentBuilder::new().schema(Some(problem)).build();
                    ResponseBuilder::new()
                        .description(
                            "400 a parameter that cannot be used, 401 no token, 403 not allowed",
                        )
                        .content("application/problem+json", content)
                        .build()
                };
                let status = "4XX".to_owned();
                responses.entry(status).or_insert_with(|| refused().into());
            }
        }
    }
}

/// Returns the description of the API.
/// A release build contains only the text and not the generator, which saves 0.5 MB.
pub(super) async fn openapi() -> Response {
    if cfg!(debug_assertions) {
        return Json(Api::openapi()).into_response();
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json"));
    (kind, text).into_response()
}
