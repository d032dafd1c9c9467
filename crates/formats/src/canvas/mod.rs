//! The canvas format: loop nodes in a graph of ports (docs/reference/canvas.md).
//!
//! A file is read in two steps. `graph`, `node`, `effect`, `loops` and `port` convert it to a tree ([`tree`]). In the
//! tree every name is resolved, across all files of the bundle (the files that are stored with a run). `lower`,
//! `lower_node` and `lower_loops` lower the tree to `hir`: a node becomes a step, and a graph a DAG. A loop node
//! becomes a loop, a component a block, and a map a foreach. Values are passed from port to port as bindings
//! ([`windlass_expression::Binding`]). A node's inputs are evaluated, converted and checked when the node starts.
//! [`scope`] decides which names a template can read.

mod dock;
mod effect;
mod files;
mod graph;
mod interface;
mod loops;
mod lower;
mod lower_loops;
mod lower_node;
mod mapping;
mod names;
mod node;
mod port;
mod scope;
mod tree;

pub(super) use files::collect_workflows;

use super::reader::Reader;
use super::{Caps, builder, workflow_name};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;
use windlass_expression::Syntax;
use windlass_model::hir::{Block, Script, Workflow};
use windlass_model::model::{Dialect, Handler, Name};
use windlass_source::diagnostic::Diagnostics;
use windlass_source::source::{Bundle, Node, SourceFile};

/// Maximum number of nodes of a workflow. The nodes of an inner workflow count once for each use of this workflow.
const MAX_NODES: usize = 10_000;
/// Maximum depth of inner workflows.
const MAX_DEPTH: usize = 24;

/// Reads a workflow. The result is valid only if no error was reported.
pub(super) fn read(
    bundle: &Bundle,
    file: &SourceFile,
    node: &Node,
    caps: &Caps,
    diagnostics: &mut Diagnostics,
) -> Workflow {
    let mut whole = WorkflowContext {
        max_count: caps.count(Dialect::Canvas),
        max_timeout: caps.timeout(),
        nodes: 0,
        chain: vec![0],
        depth: 0,
        runners: Vec::new(),
        parsed: BTreeMap::new(),
        components: Vec::new(),
        hyphened: Vec::new(),
        scripts: Vec::new(),
        name: Name::from(workflow_name(&file.path)),
    };
    let mut canvas = Canvas {
        reader: Reader::new(file, Syntax::Canvas, diagnostics),
        bundle,
        whole: &mut whole,
    };
    let mut graph = canvas.graph(node, "the workflow").unwrap_or_default();
    names::name(&mut graph);
    let lowered = lower::lower(&graph, &mut canvas.reader);
    Workflow {
        inputs: lowered.inputs,
        body: Block::Dag(lowered.steps),
        handlers: whole.runners,
        links: lowered.links,
        scripts: whole.scripts,
        ..builder::workflow(&whole.name, Dialect::Canvas, node.span)
    }
}

/// The reader of one file.
struct Canvas<'a> {
    reader: Reader<'a>,
    bundle: &'a Bundle,
    whole: &'a mut WorkflowContext,
}

impl<'a> Deref for Canvas<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

impl DerefMut for Canvas<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.reader
    }
}

/// The state of reading a whole workflow.
struct WorkflowContext {
    /// The operator's cap for the iterations of a loop.
    max_count: u64,
    max_timeout: Duration,
    nodes: usize,
    /// The files that led to the current file, outermost first. With them, a file that contains itself is found.
    chain: Vec<u16>,
    /// Number of graphs that enclose the current one.
    depth: usize,
    runners: Vec<Handler>,
    /// The scripts of the workflow's function nodes.
    scripts: Vec<Script>,
    /// The trees of the files that were read before. `None` for a file that could not be read.
    parsed: BTreeMap<u16, Option<Rc<Node>>>,
    /// The workflows under `components` of the enclosing graphs, innermost last.
    components: Vec<(String, Rc<Node>)>,
    /// The ids with hyphens among the nodes of the current graph.
    hyphened: Vec<String>,
    name: Name,
}
