//! A program as nodes and edges with positions.
//! The API returns this graph, and the SVG image is drawn from it.

use super::{BoxId, BoxShape, DrawnBox, Facts, ScopeDrawing, layout, tree};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;
use windlass_machine::program::Program;

/// A workflow as nodes and edges with positions, laid out from top to bottom. Positions and sizes are in pixels, from
/// the top left corner of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// Width of the graph in pixels.
    pub width: i64,
    /// Height of the graph in pixels.
    pub height: i64,
    /// Node whose inside the graph shows. Absent if the graph shows the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Box<Node>>,
    /// Nodes of the graph. A frame is before the nodes in it.
    pub nodes: Vec<Node>,
    /// Edges between nodes of the same frame.
    pub edges: Vec<Edge>,
}

/// A node of a graph: a step, a scope, or the start or end of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Id of the node. It is the same in every graph of the same text.
    pub id: String,
    /// Path of the node in a run, without iterations: the names of the loops around it, and its name.
    pub path: String,
    /// Name of the node, as status and history have it.
    pub name: String,
    /// Name of its action, if that differs from the name. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Display name, if it differs from the name. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Kind of the node: `loop`, `foreach`, `parallel`, `lane` (a branch of a parallel), `graph`, `if`, `switch`,
    /// `try`, `tried` (the part of a `try` whose failures are handled), `block`; `action`, `set`, `compute`, `wait`,
    /// `signal`, `respond`, `raise`, `terminate`; `choice`, `start`, `end`, `break`.
    pub kind: String,
    /// Type of the node, as its file has it: `until`, `http`, … Absent if it has none.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Description of what the node does, in one line. Absent if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Line of the node in its file, from 1. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Index of its file among the files of the workflow. Absent for the first file, 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u16>,
    /// Id of the frame that contains the node. Absent at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether the node is drawn as a frame, with its inside in it.
    pub frame: bool,
    /// Whether the node has an inside.
    pub foldable: bool,
    /// Condition of a loop or branch, or items of a foreach, as the file has it. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Limits of the node. Absent if it has none.
    #[serde(default, skip_serializing_if = "NodeLimits::is_empty")]
    pub limits: NodeLimits,
    /// Connected ports of a canvas node. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Position of its left side, in pixels.
    pub x: i64,
    /// Position of its top side, in pixels.
    pub y: i64,
    /// Width of the node in pixels.
    pub width: i64,
    /// Height of the node in pixels.
    pub height: i64,
}

/// Limits of a node: numbers and durations, or the expressions that compute them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLimits {
    /// Maximum number of iterations of a loop, or of steps of a graph. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// Timeout of a loop. Absent without a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Delay between two iterations: `every 5s`. Absent without a delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Maximum number of items of a foreach that run concurrently. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Retry policy, as text. Absent without a policy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Timeout of an action or block. Absent without a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

impl NodeLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A port of a canvas node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Name of the port.
    pub name: String,
    /// Side of the port: `in` at the top of the node, or `out` at the bottom.
    pub side: String,
    /// Horizontal position in pixels.
    pub x: i64,
    /// Vertical position in pixels.
    pub y: i64,
}

/// An edge between two nodes of the same frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    /// Id of the node at its start.
    pub from: String,
    /// Id of the node at its end.
    pub to: String,
    /// Label of the edge. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Kind of the edge: `next`; `branch`, out of a choice; `failed`, if the node before did not succeed; `data`, from
    /// port to port of a canvas; `previous`, such data of the iteration before; `again`, from the end of an iteration
    /// to the next one; `break`, out of a loop.
    pub kind: String,
    /// Whether the edge leads upwards, to a node that ran before. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// Port at its start. Absent if it connects no ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_port: Option<String>,
    /// Port at its end. Absent if it connects no ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_port: Option<String>,
    /// Corners of the edge as `[x, y]` in pixels. Its parts are horizontal or vertical.
    #[schema(value_type = Vec<(i64, i64)>)]
    pub points: Vec<[i64; 2]>,
    /// Position of the label as `[x, y]` in pixels: the left end of its text, at half its height. There is room for 36
    /// characters. Absent without a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<(i64, i64)>)]
    pub label_at: Option<[i64; 2]>,
}

/// Which frames are open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// All frames.
    #[default]
    All,
    /// No frame.
    None,
    /// The frames with these ids or paths.
    Only(Vec<String>),
}

/// The part of a program that is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Which frames are open.
    pub open: Open,
    /// The id or path of a node. If it is set, only the inside of this node is drawn.
    pub root: Option<String>,
}

/// The error if a view names a node that does not exist, or that has no inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNode {
    /// The requested id or path.
    pub name: String,
    /// Whether the node exists but has no inside.
    pub flat: bool,
    /// The paths of all nodes that have an inside.
    pub known: Vec<String>,
}

/// Returns the graph of a program.
///
/// # Errors
/// The view names a node that does not exist or has no inside.
pub fn graph(program: &Program, view: &View) -> Result<Graph, NoNode> {
    let inside = tree::drawing(program).into_program_drawing();
    let find = |name: &String| inside.find(name);
    let root = view.root.as_ref().map(find).transpose()?;
    let open: Option<HashSet<BoxId>> = match &view.open {
        Open::All => None,
        Open::None => Some(HashSet::new()),
        Open::Only(names) => Some(names.iter().map(find).collect::<Result<_, _>>()?),
    };
    let (around, inside) = match root {
        None => (None, inside),
        Some(root) => inside.into_inside_of(root),
    };
    let inside =
        inside.close_except(&|drawn| open.as_ref().is_none_or(|open| open.contains(&drawn.id)));
    let (mut graph, _) = layout::layout(&inside, around.as_ref());
    graph.root = around.map(|drawn| Box::new(node(&drawn)));
    Ok(graph)
}

impl ScopeDrawing {
    /// Finds a frame by its id or else by its path.
    /// If several frames have the path, a loop or foreach is preferred, then the outermost frame.
    fn find(&self, name: &str) -> Result<BoxId, NoNode> {
        let all = self.all();
        let plain = plain(name);
        let frame = |drawn: &&&DrawnBox| matches!(drawn.shape, BoxShape::Frame(_));
        let named = |drawn: &&&DrawnBox| drawn.facts.path == plain;
        let repeats = |drawn: &&&DrawnBox| ["loop", "foreach"].contains(&drawn.facts.kind);
        let frames = || all.iter().filter(frame);
        let by_id = frames().find(|drawn| drawn.id.to_string() == name);
        let found = by_id
            .or_else(|| frames().filter(repeats).find(named))
            .or_else(|| frames().find(named));
        match found {
            Some(drawn) => Ok(drawn.id),
            None => Err(NoNode {
                name: name.to_owned(),
                flat: all
                    .iter()
                    .any(|drawn| named(&drawn) || drawn.id.to_string() == name),
                known: frames().map(|drawn| drawn.facts.path.clone()).collect(),
            }),
        }
    }
}

/// Removes the numbers of iterations and visits from a path.
fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.starts_with('~'));
    let names = parts.map(|part| part.split_once('#').map_or(part, |(name, _)| name));
    names.collect::<Vec<_>>().join("/")
}

/// Converts a box to a node that has no position yet.
pub(super) fn node(drawn: &DrawnBox) -> Node {
    let Facts {
        kind,
        name,
        action,
        title,
        label,
        path,
        line,
        file,
        summary,
        condition,
        limits,
        ..
    } = &drawn.facts;
    let text = |name: &Option<windlass_model::model::Name>| name.as_ref().map(ToString::to_string);
    Node {
        id: drawn.id.to_string(),
        path: path.clone(),
        name: name.to_string(),
        action: text(action),
        title: text(title),
        kind: (*kind).to_owned(),
        label: text(label),
        summary: summary.clone(),
        line: Some(*line).filter(|line| *line > 0),
        file: Some(*file).filter(|file| *file > 0),
        frame: matches!(drawn.shape, BoxShape::Frame(_)),
        foldable: matches!(drawn.shape, BoxShape::Frame(_) | BoxShape::Closed),
        condition: condition.clone(),
        limits: limits.clone(),
        ..Node::default()
    }
}
