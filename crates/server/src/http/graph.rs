//! The graphs of workflows over HTTP: nodes and edges, with their positions in the drawing.

use super::app::App;
use super::body::{PathParam, ValidatedQuery};
use crate::api::Problem;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use windlass_engine::report::graph as graph_report;
use windlass_engine::{Graph, Open, View};

/// Selects the drawn part of a workflow.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GraphQuery {
    /// Scopes that are drawn with their inside: `all` (the default), `none`, or ids or paths of nodes, separated by
    /// commas.
    open: Option<String>,
    /// Id or path of a node: the graph shows only its inside. If absent, the whole workflow.
    root: Option<String>,
}

/// Converts the query parameters to the view of a graph (which parts are drawn).
pub(super) fn view(open: Option<&str>, root: Option<String>) -> View {
    let open = match open {
        None | Some("all") => Open::All,
        Some("none" | "") => Open::None,
        Some(ids) => Open::Only(ids.split(',').map(|id| id.trim().to_owned()).collect()),
    };
    View { open, root }
}

/// Get the graph of the workflow of a run.
///
/// It is the version that the run was started with.
#[utoipa::path(get, path = "/v1/runs/{run}/graph", operation_id = "get_graph", tag = "runs", params(("run" = String, Path, description = "Run id"), GraphQuery),
    responses(
        (status = 200, description = "Nodes and edges with their places", body = Graph),
        (status = 400, description = "A requested node does not exist, or has no inside", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "Unknown run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn graph(
    State(app): State<Arc<App>>,
    PathParam(run): PathParam,
    ValidatedQuery(query): ValidatedQuery<GraphQuery>,
) -> Result<axum::Json<Graph>, Problem> {
    let view = view(query.open.as_deref(), query.root);
    let report = app.inspect(move |store| graph_report(store, &run, &view));
    Ok(axum::Json(report.await?))
}
