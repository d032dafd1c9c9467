//! The tree of a canvas: nodes with their ports, edges and inner graphs.
//! Every name in the tree is resolved, and nothing in it runs.

use crate::reader::Mention;
use windlass_expression::{Comparison, Extract, Port, PortKind, Template, Value};
use windlass_model::model::{CollectMode, Name};
use windlass_source::source::Span;

/// Nodes and edges. A graph is a workflow or the inside of a node.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// The edges. Both ends of every edge exist, and the edges never form a cycle. They are set by
    /// [`Graph::connect`].
    pub edges: Vec<Edge>,
    /// For each node, the indexes of the edges that lead to it.
    entering: Vec<Vec<usize>>,
    pub span: Span,
}

pub(super) struct Node {
    /// The author's id of the node. Unique in its graph.
    pub id: Name,
    /// The name of the step. Unique in the whole workflow; see `names`.
    pub step: Name,
    pub kind: &'static str,
    pub title: Option<Name>,
    pub span: Span,
    pub inputs: Ports,
    pub outputs: Ports,
    pub timeout: Option<Text>,
    pub spec: NodeKind,
}

#[derive(Default)]
pub(super) struct Ports {
    pub list: Vec<Socket>,
    /// Whether the side may have ports that are not declared, with any name.
    pub open: bool,
}

#[derive(Clone)]
pub(super) struct Socket {
    pub port: Port,
    pub span: Span,
    /// How the port's value is extracted from the node's result.
    pub extract: Option<Extract>,
    /// Whether the author wrote `required: false`.
    pub is_optional: bool,
}

/// A text of the file that is rendered as a template, and the names that it reads.
pub(super) struct Text {
    pub template: Template,
    pub mentions: Vec<Mention>,
}

/// An edge from an output to an input. An edge without ports only orders two nodes.
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub ports: Option<(Name, Name)>,
    pub span: Span,
}

pub(super) enum NodeKind {
    /// `trigger`, `interface-input`: each output has the value of the node's input of the same name.
    /// If the node declares no ports (`whole`), its only output has all inputs of the graph.
    Source {
        whole: bool,
    },
    /// `interface-output`, `wire`: each output has the value of the node's input of the same name.
    Sink,
    /// `interface-continue`: the node's input decides whether the enclosing loop continues.
    Continue,
    Constant(Value),
    Agent(Agent),
    Shell(Shell),
    Function {
        language: &'static str,
        code: String,
    },
    Http(Vec<(&'static str, Text)>),
    Component(Graph),
    Loop(Box<LoopNode>),
    /// A node that could not be read, which was already reported.
    Unknown,
}

pub(super) struct Agent {
    /// The program that executes the agent: `openai`, or the name of a runner that the file declares.
    pub runner: String,
    pub prompt: Text,
    pub session: bool,
    /// The options of the runner `openai`: model, base_url, …
    pub options: Vec<(&'static str, Text)>,
}

pub(super) struct Shell {
    pub script: Text,
    pub cwd: Option<Text>,
    /// Whether the node fails if a command fails. `None` means that it fails unless something reads its exit code.
    pub fails: Option<bool>,
}

/// `loop` or `map`.
pub(super) struct LoopNode {
    pub inner: Graph,
    /// The input with the items, and the number of items that run at the same time. Only for a map.
    pub over: Option<(Name, u32)>,
    /// Maximum number of iterations. For a map, `None` means that there is one iteration for each item.
    pub count: Option<Text>,
    pub continue_while: Option<Test>,
    pub break_when: Option<Test>,
    pub delay: Option<Text>,
    pub timeout: Option<Text>,
    pub mappings: Vec<Mapping>,
    pub output_mappings: Vec<Outcome>,
}

/// A comparison of an output of an inner node with a value.
pub(super) struct Test {
    pub at: PortRef,
    pub comparison: Comparison,
    pub value: Value,
    pub text: String,
    pub span: Span,
}

/// An output, or an input, of an inner node.
#[derive(Clone)]
pub(super) struct PortRef {
    pub node: usize,
    pub port: Name,
}

pub(super) struct Mapping {
    pub from: Origin,
    pub to: PortRef,
    pub when: MappingPhase,
}

pub(super) enum Origin {
    Outer(Name),
    Previous(PortRef),
    /// The variable `iteration_count`.
    Iteration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MappingPhase {
    First,
    Subsequent,
    All,
}

impl MappingPhase {
    pub const ALL: [Self; 3] = [Self::First, Self::Subsequent, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Subsequent => "subsequent",
            Self::All => "all",
        }
    }

    pub fn first(self) -> bool {
        self != Self::Subsequent
    }

    pub fn later(self) -> bool {
        self != Self::First
    }
}

pub(super) struct Outcome {
    pub from: Option<PortRef>,
    /// The name of the output if `from` is `None`: `iteration_count` or `status`.
    pub builtin: &'static str,
    pub target: Name,
    pub take: CollectMode,
}

impl Graph {
    /// Makes an output of an agent required in the agent's answers, unless the output is optional or has a default. The
    /// condition of a loop reads the output, and an answer that lacks it must not end the loop.
    pub fn require_of_agent(&mut self, output: &PortRef) {
        let leads = |edge: &&Edge| edge.to == output.node;
        let sources = self.edges.iter().filter(leads).filter_map(|edge| {
            let (port, _) = edge.ports.clone()?;
            Some(PortRef {
                node: edge.from,
                port,
            })
        });
        let sources: Vec<PortRef> = sources.collect();
        let Some(node) = self.nodes.get_mut(output.node) else {
            return;
        };
        match node.spec {
            NodeKind::Agent(_) => {
                let mut sockets = node.outputs.list.iter_mut();
                if let Some(socket) = sockets.find(|socket| socket.port.name == output.port) {
                    let has_default = socket.port.default.is_some();
                    socket.port.must_be_given = !has_default && !socket.is_optional;
                }
            }
            NodeKind::Continue => {
                for source in &sources {
                    self.require_of_agent(source);
                }
            }
            _ => {}
        }
    }

    pub fn at(span: Span) -> Self {
        Self {
            span,
            ..Self::default()
        }
    }

    pub fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| *node.id == *id)
    }

    /// Sets the edges. Must be called after all nodes were added.
    pub fn connect(&mut self, edges: Vec<Edge>) {
        self.entering = vec![Vec::new(); self.nodes.len()];
        for (index, edge) in edges.iter().enumerate() {
            if let Some(entering) = self.entering.get_mut(edge.to) {
                entering.push(index);
            }
        }
        self.edges = edges;
    }

    /// Returns the edges that lead to a node.
    pub fn into(&self, node: usize) -> impl Iterator<Item = &Edge> {
        let entering = self.entering.get(node);
        let entering = entering.into_iter().flatten();
        entering.filter_map(|edge| self.edges.get(*edge))
    }

    /// Returns for each node the indexes of the edges that lead to it.
    pub fn entering(&self) -> &[Vec<usize>] {
        &self.entering
    }

    pub fn is_fed(&self, node: usize, input: &str) -> bool {
        self.into(node)
            .any(|edge| matches!(&edge.ports, Some((_, to)) if **to == *input))
    }

    /// Returns the nodes from which edges lead to a node, directly or through other nodes.
    pub fn upstream(&self, node: usize) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![node];
        let mut found = Vec::new();
        while let Some(at) = open.pop() {
            for edge in self.into(at) {
                if let Some(seen) = seen.get_mut(edge.from)
                    && !std::mem::replace(seen, true)
                {
                    found.push(edge.from);
                    open.push(edge.from);
                }
            }
        }
        found
    }
}

impl Ports {
    pub fn of(list: Vec<Socket>) -> Self {
        Self { list, open: false }
    }

    pub fn find(&self, name: &str) -> Option<&Socket> {
        self.list.iter().find(|socket| *socket.port.name == *name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|socket| &*socket.port.name)
    }

    /// Returns the type of a port. For a port that is not declared, this is the type that accepts any value.
    pub fn kind(&self, name: &str) -> PortKind {
        self.find(name)
            .map_or(PortKind::Any, |socket| socket.port.kind)
    }
}
