//! Edits of a workflow's text, and panels of its nodes, over HTTP.
//! A request contains the text, and nothing is stored.

use super::app::{App, Lane, compute};
use super::body::Json;
use super::language::iteration_context;
use super::listener::Caller;
use super::source::{BodyForm, Source, dialect};
use super::workflows::{WorkflowBody, parts};
use crate::api::{FileText, Problem, WorkflowText};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_engine::report::ScheduleReport;
use windlass_engine::{Dialect, ErrorCode, Value, dialect_of, now, stubs_of};
use windlass_language::{DryRunInput, DryRunResult, Edit, Edited, NodeType, Panel, try_action};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/language/panel", post(panel))
        .route("/v1/language/edit", post(edit))
        .route("/v1/language/types", post(types))
        .route("/v1/language/stubs", post(stubs))
        .route("/v1/language/try", post(attempt))
        .route("/v1/language/schedule", post(schedule))
}

/// Returns the files of a request's text, and the options for loading them.
macro_rules! source_of {
    ($request:ident, $caller:ident) => {{
        let text = WorkflowText {
            text: $request.text,
            file: $request.file,
            files: $request.files,
            dialect: $request.dialect,
        };
        parts(text, "workflow", BodyForm::Text, $caller)
    }};
}

/// A node of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PanelOf {
    /// Text of the workflow, YAML or JSON.
    text: String,
    /// File name of the text. If absent, `workflow.yaml`.
    #[serde(default)]
    file: Option<String>,
    /// Further files that the text names.
    #[serde(default)]
    files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected.
    #[serde(default)]
    dialect: Option<String>,
    /// Path of the node, as in the graph, or its name.
    node: String,
}

/// An action of a text, with the values that it reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TryOf {
    /// Text of the workflow, YAML or JSON.
    text: String,
    /// File name of the text. If absent, `workflow.yaml`.
    #[serde(default)]
    file: Option<String>,
    /// Further files that the text names.
    #[serde(default)]
    files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected.
    #[serde(default)]
    dialect: Option<String>,
    /// Path of the action, as in the graph, or its name.
    node: String,
    /// Inputs of the run, by name. They have precedence over those of `run`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    inputs: Option<Value>,
    /// Variables, by name. They have precedence over those of the iteration.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    variables: Option<Value>,
    /// Outputs of other actions, by action. They have precedence over those of the iteration.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    outputs: Option<Value>,
    /// Id of a run whose values the action reads. Only together with `iteration`.
    #[serde(default)]
    run: Option<String>,
    /// Path of an iteration of the run: `outer#2/inner#7`. Only together with `run`.
    #[serde(default)]
    iteration: Option<String>,
}

/// Try one action of a text without sending anything.
///
/// The response has the request that the action would send, or its result.
#[utoipa::path(post, path = "/v1/language/try", operation_id = "try_action", tag = "language", request_body = TryOf,
    responses(
        (status = 200, description = "Result of the dry run", body = DryRunResult),
        (status = "4XX", description = "422: unknown action, or the text is invalid", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn attempt(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    Json(request): Json<TryOf>,
) -> Result<axum::Json<DryRunResult>, Problem> {
    let (bundle, options) = source_of!(request, caller)?;
    let seen = iteration_context(&app, request.run, request.iteration).await?;
    let given = DryRunInput {
        inputs: request.inputs,
        variables: request.variables,
        outputs: request.outputs,
    };
    let engine = Arc::clone(&app.engine);
    let tried = compute(lane, move |budget| {
        let workflow = engine.load_bundle(bundle, &options)?;
        try_action(&workflow, &request.node, seen.as_ref(), &given, budget).map_err(refused)
    });
    Ok(axum::Json(tried.await?))
}

/// A text and its edits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditText {
    /// Text of the workflow, YAML or JSON.
    text: String,
    /// File name of the text. If absent, `workflow.yaml`.
    #[serde(default)]
    file: Option<String>,
    /// Further files that the text names.
    #[serde(default)]
    files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected.
    #[serde(default)]
    dialect: Option<String>,
    /// Edits, applied in order; at most 1,000.
    edits: Vec<Edit>,
}

/// A format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TypesOf {
    /// Name of the format: `loom`, `azure`, `tea` or `canvas`.
    dialect: String,
}

/// The node types of a format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(super) struct Types {
    /// Types of nodes that can be added.
    types: Vec<NodeType>,
}

fn refused(why: String) -> Problem {
    Problem::new(ErrorCode::RefusedEdit, why)
}

/// Get the panel of a node: its fields, for a generic form.
#[utoipa::path(post, path = "/v1/language/panel", operation_id = "get_panel", tag = "language", request_body = PanelOf,
    responses(
        (status = 200, description = "Fields of the node", body = Panel),
        (status = "4XX", description = "422: unknown node, or the text is invalid", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn panel(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    Json(request): Json<PanelOf>,
) -> Result<axum::Json<Panel>, Problem> {
    let (bundle, options) = source_of!(request, caller)?;
    let engine = Arc::clone(&app.engine);
    let made = compute(lane, move |_| {
        let dialect = dialect_of(&bundle, options.dialect).unwrap_or(Dialect::Loom);
        let cap = engine.max_iterations(dialect, options.origin);
        windlass_language::panel(&bundle, options.dialect, &request.node, Some(cap))
            .map_err(refused)
    });
    Ok(axum::Json(made.await?))
}

/// Edit a text.
///
/// Comments, layout and quotes of the other parts stay unchanged. Nothing is stored.
#[utoipa::path(post, path = "/v1/language/edit", operation_id = "edit_text", tag = "language", request_body = EditText,
    responses(
        (status = 200, description = "The edited text, and the edits that lead to it", body = Edited),
        (status = "4XX", description = "422: it cannot be done, or the workflow would be refused then", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn edit(
    caller: Caller,
    lane: Lane,
    Json(request): Json<EditText>,
) -> Result<axum::Json<Edited>, Problem> {
    let (bundle, options) = source_of!(request, caller)?;
    let edited = compute(lane, move |_| {
        windlass_language::edit(&bundle, options.dialect, &request.edits).map_err(refused)
    });
    Ok(axum::Json(edited.await?))
}

/// List the types of nodes that can be added to a text of a format.
#[utoipa::path(post, path = "/v1/language/types", operation_id = "get_types", tag = "language", request_body = TypesOf,
    responses(
        (status = 200, description = "Types of nodes", body = Types),
        (status = "4XX", description = "Unknown format", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn types(Json(request): Json<TypesOf>) -> Result<axum::Json<Types>, Problem> {
    let dialect = dialect(Some(&request.dialect))?.unwrap_or(Dialect::Loom);
    let types = windlass_language::types(dialect);
    Ok(axum::Json(Types { types }))
}

/// Stubs for a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(super) struct Stubs {
    /// Answer of each action that needs one, by action, and the values that a definition needs.
    #[schema(value_type = Object)]
    stubs: Value,
    /// The stubs as the text of a file, as `validate --write-stubs` writes it.
    text: String,
}

/// Get stubs for a text.
///
/// They have a placeholder answer for each action that needs one. The body is the same as for `POST /v1/validate`.
#[utoipa::path(post, path = "/v1/language/stubs", operation_id = "get_stubs", tag = "language",
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 200, description = "Stubs for the calls of the workflow", body = Stubs),
        (status = "4XX", description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn stubs(
    caller: Caller,
    lane: Lane,
    Source(text, form): Source<WorkflowText>,
) -> Result<axum::Json<Stubs>, Problem> {
    let (bundle, options) = parts(text, "workflow", form, caller)?;
    let made = compute(lane, move |_| {
        let stubs = Value::object(stubs_of(bundle, &options));
        let text = format!("{}\n", stubs.to_json_pretty());
        Ok(Stubs { stubs, text })
    });
    Ok(axum::Json(made.await?))
}

/// Get the schedule of a text, with its next times.
///
/// The body is the same as for `POST /v1/validate`.
#[utoipa::path(post, path = "/v1/language/schedule", operation_id = "get_schedule", tag = "language",
    request_body(content((WorkflowBody = "application/json"), (String = "application/yaml"), (String = "text/plain"))),
    responses(
        (status = 200, description = "The schedule, with the next five times", body = ScheduleReport),
        (status = "4XX", description = "422: the workflow is refused", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn schedule(
    State(app): State<Arc<App>>,
    caller: Caller,
    lane: Lane,
    Source(text, form): Source<WorkflowText>,
) -> Result<axum::Json<ScheduleReport>, Problem> {
    let (bundle, options) = parts(text, "workflow", form, caller)?;
    let engine = Arc::clone(&app.engine);
    let made = compute(lane, move |_| {
        let workflow = engine.load_bundle(bundle, &options)?;
        Ok(ScheduleReport::new(&workflow, now(), now(), None))
    });
    Ok(axum::Json(made.await?))
}
