//! Requests of editors over HTTP. The body has the text, and nothing is stored.

use super::app::{App, Lane, compute};
use super::body::Json;
use super::listener::Caller;
use super::source::{Source, bundle, dialect};
use super::workflows::{WorkflowBody, parts};
use crate::api::{FileText, Problem, WorkflowText};
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::post;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect, ErrorCode, Open, Value, View, graph};
use windlass_language::{Completion, ConditionTest, Hover, Position, Symbol};
use windlass_language::{
    complete as completion, hover as hover_at, load_iteration_context, symbols as symbols_of,
    test_condition,
};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/language/complete", post(complete))
        .route("/v1/language/hover", post(hover))
        .route("/v1/runs/{run}/test-condition", post(test))
        .route("/v1/language/symbols", post(symbols))
}

/// A place of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextPlace {
    /// The text of a workflow, YAML or JSON; it may be wrong.
    text: String,
    /// What its file is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The files that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileText>,
    /// Reads it as this format: `loom`, `azure`, `tea`, `canvas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
    /// The place.
    at: Position,
    /// A run whose values are shown. Only for hovers, with `iteration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// One of its iterations: `outer#2/inner#7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iteration: Option<String>,
}

impl TextPlace {
    fn bundle(&mut self) -> Result<(Bundle, Option<Dialect>), Problem> {
        let file = self
            .file
            .take()
            .unwrap_or_else(|| String::from("workflow.yaml"));
        let text = std::mem::take(&mut self.text);
        let dialect = dialect(self.dialect.as_deref())?;
        Ok((bundle(file, text, &self.files), dialect))
    }
}

/// The actions and nodes of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(super) struct Symbols {
    /// Those at the top; the others are in them.
    symbols: Vec<Symbol>,
}

/// Completions at a position of a text: keys, values, and names, functions and members in expressions.
#[utoipa::path(post, path = "/v1/language/complete", operation_id = "complete", tag = "language",
    request_body = TextPlace,
    responses(
        (status = 200, description = "Possible completions", body = Completion),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
async fn complete(
    lane: Lane,
    Json(mut place): Json<TextPlace>,
) -> Result<axum::Json<Completion>, Problem> {
    let (bundle, dialect) = place.bundle()?;
    let format = dialect.map(Into::into);
    let found = compute(lane, move |_| Ok(completion(&bundle, format, place.at)));
    Ok(axum::Json(found.await?))
}

/// What there is to say of a place of a text; of an expression also its value in an iteration of a run.
#[utoipa::path(post, path = "/v1/language/hover", operation_id = "hover", tag = "language",
    request_body = TextPlace,
    responses(
        (status = 200, description = "What there is to say; null for nothing", body = Option<Hover>),
        (status = 404, description = "Unknown run or iteration", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
async fn hover(
    State(app): State<Arc<App>>,
    lane: Lane,
    Json(mut place): Json<TextPlace>,
) -> Result<axum::Json<Option<Hover>>, Problem> {
    let (bundle, dialect) = place.bundle()?;
    let past = match (place.run, place.iteration) {
        (Some(run), Some(iteration)) => {
            let past = app.inspect(move |store| load_iteration_context(store, &run, &iteration));
            Some(past.await?)
        }
        (None, None) => None,
        _ => {
            let detail = "`run` and `iteration` go together";
            return Err(Problem::new(ErrorCode::BadRequest, detail));
        }
    };
    let format = dialect.map(Into::into);
    let found = compute(lane, move |budget| {
        let past = past.map(|past| past.with_budget(budget));
        Ok(hover_at(&bundle, format, place.at, past.as_ref()))
    });
    Ok(axum::Json(found.await?))
}

/// A condition for a loop of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestOf {
    /// The loop's path: `poll`, `outer#2/inner`.
    #[serde(rename = "loop")]
    loop_path: String,
    /// The condition as its format writes it: a text, or an object.
    condition: Value,
    /// What ends the loop; without it, as the loop's type has it.
    #[serde(default)]
    stops_when: Option<bool>,
}

/// Evaluates a condition in the iterations of a past loop, up to the iteration after which the loop would
/// have stopped.
#[utoipa::path(post, path = "/v1/runs/{run}/test-condition", operation_id = "test_condition", tag = "language",
    params(("run" = String, Path, description = "The run")),
    request_body = TestOf,
    responses(
        (status = 200, description = "Its value in each iteration", body = ConditionTest),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "Unknown loop, or the condition is invalid", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn test(
    State(app): State<Arc<App>>,
    lane: Lane,
    Path(run): Path<String>,
    Json(request): Json<TestOf>,
) -> Result<axum::Json<ConditionTest>, Problem> {
    let store = app.engine.inspector().clone();
    let tested = compute(lane, move |budget| {
        let tested = test_condition(
            &store,
            &run,
            &request.loop_path,
            &request.condition,
            request.stops_when,
            &budget,
        );
        Ok(tested?)
    });
    Ok(axum::Json(tested.await?))
}

/// The actions and nodes of a text, one within the other. The body is that of `validate`.
#[utoipa::path(post, path = "/v1/language/symbols", operation_id = "symbols", tag = "language",
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 200, description = "What is in the text", body = Symbols),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
async fn symbols(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    Source(text, form): Source<WorkflowText>,
) -> Result<axum::Json<Symbols>, Problem> {
    let (bundle, options) = parts(text, "workflow", form, caller)?;
    let engine = Arc::clone(&app.engine);
    let found = compute(lane, move |_| {
        let workflow = engine.load_bundle(bundle.clone(), &options).ok();
        let view = View {
            open: Open::All,
            root: None,
        };
        let drawn = workflow.and_then(|workflow| graph(workflow.program(), &view).ok());
        let symbols = symbols_of(&bundle, options.dialect, drawn.as_ref());
        Ok(Symbols { symbols })
    });
    Ok(axum::Json(found.await?))
}
