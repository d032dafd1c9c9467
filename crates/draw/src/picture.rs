//! A program as nodes and edges with positions: the API returns it, and SVG is drawn from it.

use super::{BoxId, BoxShape, DrawnBox, Facts, ScopeDrawing, layout, tree};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;
use windlass_machine::program::Program;

/// A workflow as nodes and edges with places, laid out from top to bottom. Places are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// How wide all of it is.
    pub width: i64,
    /// How high all of it is.
    pub height: i64,
    /// The node whose inside this is, when it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Box<Node>>,
    /// The nodes, frames before what is in them.
    pub nodes: Vec<Node>,
    /// The edges between nodes of the same frame.
    pub edges: Vec<Edge>,
}

/// A step, a scope, or the start or end of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its id: the same in every graph of the same text, whatever is open.
    pub id: String,
    /// Its path in a run, without numbers: the loops around it and its name.
    pub path: String,
    /// What a status and a history call it.
    pub name: String,
    /// The action that it is, where that has another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What people call it, where that is not the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `loop`, `foreach`, `parallel`, `lane` (a branch of a parallel), `graph`, `if`, `switch`,
    /// `try`, `tried` (what a `try` catches the faults of), `block`; `action`, `set`, `compute`,
    /// `wait`, `signal`, `respond`, `raise`, `terminate`; `choice`, `start`, `end`, `break`.
    pub kind: String,
    /// Its type as written: `until`, `http`, …
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it does, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The line where it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The place of its file among those of the workflow, when that is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u16>,
    /// The id of the frame that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether it is drawn open, with its inside in it.
    pub frame: bool,
    /// Whether it has an inside.
    pub foldable: bool,
    /// The condition of a loop, or the items of a foreach, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What bounds it.
    #[serde(default, skip_serializing_if = "NodeLimits::is_empty")]
    pub limits: NodeLimits,
    /// The ports of a canvas that something is wired to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Its left side.
    pub x: i64,
    /// Its upper side.
    pub y: i64,
    /// How wide it is.
    pub width: i64,
    /// How high it is.
    pub height: i64,
}

/// What bounds a node: numbers and durations, or the expressions that give them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLimits {
    /// How many iterations, or steps of a graph, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// How long a loop at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What lies between two iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// How many items at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How it is retried, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// After how long it is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

impl NodeLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A port of a canvas's node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// `in`, at the upper side, or `out`, at the lower side.
    pub side: String,
    /// Its place.
    pub x: i64,
    /// Its place.
    pub y: i64,
}

/// A line from a node to another one of the same frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    /// The id of the node at its start.
    pub from: String,
    /// The id of the node that it goes to.
    pub to: String,
    /// The text next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `next`; `branch`, out of a choice; `failed`, when the node before it did not succeed; `data`,
    /// from port to port of a canvas; `previous`, the same from the iteration before; `again`, from
    /// the end of an iteration to the next one; `break`, out of a loop.
    pub kind: String,
    /// Whether it leads upwards, to what ran before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// The port at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_port: Option<String>,
    /// The port that it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_port: Option<String>,
    /// A line of horizontal and vertical parts.
    #[schema(value_type = Vec<(i64, i64)>)]
    pub points: Vec<[i64; 2]>,
    /// Where the label begins: the left end of the middle of its text, which has room for 36
    /// characters.
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
    /// The id or path of a node: only its inside is drawn.
    pub root: Option<String>,
}

/// The error of a view that names a node with an inside that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNode {
    /// The requested id or path.
    pub name: String,
    /// Whether the node exists, but has no inside.
    pub flat: bool,
    /// The paths of the nodes with an inside.
    pub known: Vec<String>,
}

/// Returns the graph of a program.
///
/// # Errors
/// The view names a node that does not exist, or has no inside.
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
    let inside = inside.open(&|drawn| open.as_ref().is_none_or(|open| open.contains(&drawn.id)));
    let (mut graph, _) = layout::layout(&inside, around.as_ref());
    graph.root = around.map(|drawn| Box::new(node(&drawn)));
    Ok(graph)
}

impl ScopeDrawing {
    /// Finds a frame by its id, else by its path: loops and foreaches first, then the outermost frame.
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

/// Returns a box as a node without its position.
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
