//! Requests of editors over HTTP.
//! A request contains the text of a workflow, and nothing is stored.

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
use windlass_language::{Completion, ConditionTest, Hover, IterationContext, Position, Symbol};
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

/// A position in the text of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextPlace {
    /// Text of the workflow, YAML or JSON. It may have errors.
    text: String,
    /// File name of the text. If absent, `workflow.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Further files that the text names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
    /// Position in the text.
    at: Position,
    /// Id of a run whose values a hover shows. Only together with `iteration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Path of an iteration of the run: `outer#2/inner#7`. Only together with `run`.
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
    /// Actions and nodes at the top. The others are in their `children`.
    symbols: Vec<Symbol>,
}

/// List the completions at a position of a text.
///
/// They are keys, values, and in expressions names, functions and members.
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

/// Describe a position of a text.
///
/// With `run` and `iteration`, the response also has the value that an expression had in that iteration.
#[utoipa::path(post, path = "/v1/language/hover", operation_id = "hover", tag = "language",
    request_body = TextPlace,
    responses(
        (status = 200, description = "Text of the hover; null where nothing is known", body = Option<Hover>),
        (status = 404, description = "Unknown run or iteration", body = Problem, content_type = "application/problem+json"),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
async fn hover(
    State(app): State<Arc<App>>,
    lane: Lane,
    Json(mut place): Json<TextPlace>,
) -> Result<axum::Json<Option<Hover>>, Problem> {
    let (bundle, dialect) = place.bundle()?;
    let past = iteration_context(&app, place.run, place.iteration).await?;
    let format = dialect.map(Into::into);
    let found = compute(lane, move |budget| {
        let past = past.map(|past| past.with_budget(budget));
        Ok(hover_at(&bundle, format, place.at, past.as_ref()))
    });
    Ok(axum::Json(found.await?))
}

/// Reads the values of an iteration. `None` if neither a run nor an iteration is given.
pub(super) async fn iteration_context(
    app: &App,
    run: Option<String>,
    iteration: Option<String>,
) -> Result<Option<IterationContext>, Problem> {
    match (run, iteration) {
        (Some(run), Some(iteration)) => {
            let context = app.inspect(move |store| load_iteration_context(store, &run, &iteration));
            Ok(Some(context.await?))
        }
        (None, None) => Ok(None),
        _ => {
            let detail = "`run` and `iteration` go together";
            Err(Problem::new(ErrorCode::BadRequest, detail))
        }
    }
}

/// A condition to test in a loop of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestOf {
    /// Path of the loop: `poll`, `outer#2/inner`.
    #[serde(rename = "loop")]
    loop_path: String,
    /// Condition as its format has it: a text or an object.
    condition: Value,
    /// Value of the condition that ends the loop. If absent, false for loops that repeat while their condition is true,
    /// else true.
    #[serde(default)]
    stops_when: Option<bool>,
}

/// Test a condition in the iterations of a past loop.
///
/// It is evaluated up to the iteration after which the loop would have stopped.
#[utoipa::path(post, path = "/v1/runs/{run}/test-condition", operation_id = "test_condition", tag = "language",
    params(("run" = String, Path, description = "Run id")),
    request_body = TestOf,
    responses(
        (status = 200, description = "Value of the condition in each iteration", body = ConditionTest),
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

/// List the actions and nodes of a text as a tree.
///
/// The body is the same as for `POST /v1/validate`.
#[utoipa::path(post, path = "/v1/language/symbols", operation_id = "symbols", tag = "language",
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 200, description = "Nodes of the text, as an outline", body = Symbols),
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
