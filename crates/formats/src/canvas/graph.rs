//! Reads the nodes and edges of one workflow, which is the whole file or an inner workflow.
//! They are connected, and checked for cycles and for types that can never match.

use super::port::PortSide;
use super::tree::{Edge, Graph, Node, NodeKind, Ports};
use super::{Canvas, MAX_DEPTH, MAX_NODES};
use crate::MISSING_FILE;
use crate::cycle::cycle;
use crate::fields::Fields;
use crate::reader::list_known;
use crate::vocabulary::canvas::{EDGE_NOTES, WORKFLOW_NOTES};
use std::collections::HashMap;
use std::fmt::Display;
use std::rc::Rc;
use windlass_expression::{Port, PortKind};
use windlass_model::model::Name;
use windlass_source::diagnostic::{Diagnostic, did_you_mean};
use windlass_source::source::{self, Entry, Kind, Span};

const EDGE: &str = "for example { source: coder, target: review, sourceHandle: \"output:code\", \
                    targetHandle: \"input:code\" }";
const NODES: &str = "for example nodes: [{ id: coder, type: agent, data: { … } }]";

/// A part of a graph cannot be read. This was already reported.
struct InvalidGraph;

impl Canvas<'_> {
    /// Reads a workflow with its nodes and edges.
    pub(super) fn graph(&mut self, node: &source::Node, what: &str) -> Option<Graph> {
        let hint = "a map with nodes and edges";
        let mut fields = self.fields(node, what, hint)?;
        fields.allow_keys(WORKFLOW_NOTES);
        let name = fields.non_null(self, "name");
        if let Some(entry) = name
            && let Some(name) = self.text(entry, "for example name: code-review")
            && self.whole.depth == 0
        {
            self.whole.name = Name::from(name);
        }
        if let Some(entry) = fields.non_null(self, "runners") {
            let runners = self.handlers(entry);
            self.whole.runners.extend(runners);
        }
        let mut graph = Graph::at(node.span);
        let nodes = fields.required(self, "nodes", node.span, NODES);
        let edges = fields.get("edges");
        let ids = nodes.map_or(Vec::new(), |nodes| names_with_hyphens(&nodes.value));
        let ids = std::mem::replace(&mut self.whole.hyphened, ids);
        let components = fields.get("components");
        let components = components.and_then(|entry| entry.value.entries());
        let around = self.whole.components.len();
        for entry in components.unwrap_or_default() {
            let component = (entry.key.clone(), Rc::new(entry.value.clone()));
            self.whole.components.push(component);
        }
        let undocked = match (nodes.map(|entry| &entry.value.kind), edges) {
            (Some(Kind::Array(nodes)), edges) => {
                let edges = edges.map(|entry| &entry.value.kind);
                let edges: &[source::Node] = match edges {
                    Some(Kind::Array(edges)) => edges,
                    _ => &[],
                };
                self.inline_docks(nodes, edges)
            }
            _ => None,
        };
        if let Some((nodes, edges)) = undocked {
            let entry = |key: &str, value: source::Node| Entry {
                key: key.to_owned(),
                key_span: value.span,
                value,
            };
            self.nodes(&entry("nodes", nodes), &mut graph);
            self.edges(&entry("edges", edges), &mut graph);
        } else {
            if let Some(entry) = nodes {
                self.nodes(entry, &mut graph);
            }
            if let Some(entry) = edges {
                self.edges(entry, &mut graph);
            }
        }
        self.whole.components.truncate(around);
        self.whole.hyphened = ids;
        fields.finish(self);
        self.refuse_circles(&mut graph);
        Some(graph)
    }

    fn nodes(&mut self, entry: &Entry, graph: &mut Graph) {
        let Some(items) = self.list(entry, NODES) else {
            return;
        };
        if items.is_empty() {
            let what = "no node in `nodes`";
            self.error("empty-workflow", entry.key_span, what, NODES);
        }
        let mut seen: HashMap<String, Span> = HashMap::new();
        for item in items {
            self.whole.nodes += 1;
            if self.whole.nodes > MAX_NODES {
                let what = format!("a workflow has {MAX_NODES} nodes at most");
                let hint = "nodes of inner workflows count as often as they are used";
                self.error("too-many-nodes", item.span, what, hint);
                return;
            }
            let Some(node) = self.node(item) else {
                continue;
            };
            if let Some(first) = seen.insert(node.id.to_lowercase(), node.span) {
                let line = first.line;
                let what = format!("a node `{}` exists already, at line {line}", node.id);
                let hint = "ids are compared without case, and each is there once";
                self.error("duplicate-name", node.span, what, hint);
                continue;
            }
            graph.nodes.push(node);
        }
    }

    // ── edges ───────────────────────────────────────────────────────────────────────────────

    fn edges(&mut self, entry: &Entry, graph: &mut Graph) {
        let Some(items) = self.items(Some(entry), EDGE) else {
            return;
        };
        let index: HashMap<Name, usize> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.id.clone(), index))
            .collect();
        let mut fed: HashMap<(usize, Name), Span> = HashMap::new();
        let mut edges = Vec::with_capacity(items.len());
        for item in items {
            let Some(mut fields) = self.fields(item, "an edge", EDGE) else {
                continue;
            };
            fields.allow_keys(EDGE_NOTES);
            let from = self.end(&mut fields, "source", item.span, graph, &index);
            let to = self.end(&mut fields, "target", item.span, graph, &index);
            let output = self.handle(&mut fields, "sourceHandle", PortSide::Output);
            let input = self.handle(&mut fields, "targetHandle", PortSide::Input);
            fields.finish(self);
            let (Some((from, span)), Some((to, _))) = (from, to) else {
                continue;
            };
            let (Ok(output), Ok(input)) = (output, input) else {
                continue;
            };
            let ports = match (output, input) {
                (Some(output), Some(input)) => {
                    let output = self.known_port(graph, from, PortSide::Output, output);
                    let input = self.known_port(graph, to, PortSide::Input, input);
                    let (Some(output), Some(input)) = (output, input) else {
                        continue;
                    };
                    if let Some(first) = fed.insert((to, input.0.clone()), input.1) {
                        let to = graph.nodes.get(to).map_or("", |node| &node.id);
                        let what = format!(
                            "two edges lead to input `{}` of `{to}`, the first at line {}",
                            input.0, first.line
                        );
                        let hint =
                            "an input has one value: connect the other edge to its own input";
                        self.error("two-values", input.1, what, hint);
                        continue;
                    }
                    self.must_fit(graph, (from, &output.0), (to, &input.0), input.1);
                    Some((output.0, input.0))
                }
                (None, None) => None,
                _ => {
                    let what = "an edge names both its ports, or none of them";
                    self.error("missing-key", span, what, EDGE);
                    continue;
                }
            };
            edges.push(Edge {
                from,
                to,
                ports,
                span,
            });
        }
        graph.connect(edges);
    }

    /// Finds the node at an end of an edge. Reports an unknown node.
    fn end(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        span: Span,
        graph: &Graph,
        index: &HashMap<Name, usize>,
    ) -> Option<(usize, Span)> {
        let entry = fields.required(self, key, span, EDGE)?;
        let id = self.text(entry, EDGE)?;
        let found = index.get(id).copied();
        if found.is_none() {
            self.unknown_node(graph, id, entry.value.span);
        }
        found.map(|found| (found, entry.value.span))
    }

    /// Reads a handle: `output:x` or `x`.
    /// Returns `None` if the handle is missing. Reports an invalid handle.
    fn handle(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        side: PortSide,
    ) -> Result<Option<(Name, Span)>, InvalidGraph> {
        let given = fields.get(key);
        let Some(entry) = given.filter(|entry| !matches!(entry.value.kind, Kind::Null)) else {
            return Ok(None);
        };
        let text = self.text(entry, EDGE).ok_or(InvalidGraph)?;
        let name = match text.split_once(':') {
            None => text,
            Some((word, name)) if word == side.word() => name,
            Some(_) => {
                let word = side.word();
                let what = format!("`{key}` names an {word}, as `{word}:name`");
                self.error("bad-handle", entry.value.span, what, EDGE);
                return Err(InvalidGraph);
            }
        };
        Ok(Some((Name::from(name), entry.value.span)))
    }

    pub(super) fn unknown_node(&mut self, graph: &Graph, id: &str, span: Span) {
        let known = graph.nodes.iter().map(|node| &*node.id);
        let what = format!("unknown node `{id}` here");
        self.error_with("unknown-node", span, what, || {
            did_you_mean(id, known.clone()).unwrap_or_else(|| {
                let some: Vec<&str> = known.take(8).collect();
                match some.is_empty() {
                    true => String::from("no nodes here"),
                    false => format!("nodes here are: {}", some.join(", ")),
                }
            })
        });
    }

    /// Returns the port if the node has it. Otherwise reports an unknown port.
    pub(super) fn known_port(
        &mut self,
        graph: &Graph,
        node: usize,
        side: PortSide,
        (name, span): (Name, Span),
    ) -> Option<(Name, Span)> {
        let node = graph.nodes.get(node)?;
        let ports = node.side(side);
        if ports.open || ports.find(&name).is_some() {
            return Some((name, span));
        }
        let word = side.word();
        let what = format!("`{}` has no {word} `{name}`", node.id);
        let known: Vec<&str> = ports.names().collect();
        let near = did_you_mean(&name, known.iter().copied());
        let hint = near.unwrap_or_else(|| match known.is_empty() {
            true => format!(
                "declare it: {}: [{{ name: {name}, type: any }}]",
                side.key()
            ),
            false => format!("its {word}s are: {}", list_known(&known)),
        });
        self.error("unknown-port", span, what, hint);
        None
    }

    /// Refuses an edge whose value can never be converted to the type of its input.
    fn must_fit(
        &mut self,
        graph: &Graph,
        (from, output): (usize, &str),
        (to, input): (usize, &str),
        span: Span,
    ) {
        let (Some(from), Some(to)) = (graph.nodes.get(from), graph.nodes.get(to)) else {
            return;
        };
        let Some(target) = to.inputs.find(input) else {
            return;
        };
        let known = match &from.spec {
            NodeKind::Constant(outputs) => outputs.get(output),
            _ => None,
        };
        if let Some(value) = known
            && let Err(mistake) = target.port.accept(value)
        {
            let hint = "change the constant, or the type of the input";
            self.error("type-mismatch", span, mistake, hint);
            return;
        }
        let what = format_args!("output `{output}` of `{}`", from.id);
        let hint = "use the same type for both, or put a function between them";
        self.must_become(what, from.outputs.kind(output), &target.port, span, hint);
    }

    /// Refuses a value whose type can never be converted to that of a port.
    pub(super) fn must_become(
        &mut self,
        what: impl Display,
        kind: PortKind,
        port: &Port,
        span: Span,
        hint: &str,
    ) {
        if !kind.may_become(port.kind) {
            let (given, taken) = (kind.as_str(), port.kind.as_str());
            let what = format!("{what} is a {given}, and {} accepts a {taken}", port.shown);
            self.error("type-mismatch", span, what, hint);
        }
    }

    /// Reports the first cycle of edges. The graph then has no edges, so that later code needs no check.
    fn refuse_circles(&mut self, graph: &mut Graph) {
        let edge = |index: usize| graph.edges.get(index);
        let from = |index: usize| edge(index).map_or(usize::MAX, |edge| edge.from);
        let Some(circle) = cycle(graph.entering(), from) else {
            return;
        };
        let names: Vec<&str> = circle
            .iter()
            .chain(circle.first())
            .filter_map(|index| Some(&*graph.nodes.get(from(*index))?.id))
            .collect();
        let spans = circle.iter().filter_map(|index| Some(edge(*index)?.span));
        let span = spans.max().unwrap_or(graph.span);
        let what = format!("the edges lead round in a circle: {}", names.join(" → "));
        let hint = "a graph has no circles: put these nodes into a node of type loop";
        self.error("cycle", span, what, hint);
        graph.connect(Vec::new());
    }

    // ── inner workflows ─────────────────────────────────────────────────────────────────────

    /// Reads the inner workflow of a node: `workflowRef` or `inlineWorkflow`.
    pub(super) fn inner(
        &mut self,
        fields: &mut Fields<'_>,
        id: &Name,
        span: Span,
    ) -> Option<Graph> {
        let given = |entry: &&Entry| !matches!(entry.value.kind, Kind::Null);
        let named = fields.get("workflowRef").filter(given);
        let named = named.or(fields.get("workflowPath").filter(given));
        let component = fields.get("componentRef").filter(given);
        let inline = fields.get("inlineWorkflow").filter(given);
        let hint = "inlineWorkflow: { nodes: […], edges: […] }, or workflowRef: inner.yaml";
        if self.whole.depth >= MAX_DEPTH {
            let what = format!("inner workflows lie deeper than {MAX_DEPTH} in each other");
            self.error("too-deep", span, what, "put the nodes side by side");
            return None;
        }
        let what = format!("the inner workflow of `{id}`");
        if let (Some(component), None, None) = (component, named, inline) {
            return self.component_of(component, &what);
        }
        self.whole.depth += 1;
        let graph = match (named, inline) {
            (Some(named), None) => self.named(named, &what),
            (None, Some(inline)) => self.graph(&inline.value, &what),
            (Some(_), Some(inline)) => {
                let what = format!("`{id}` has either `workflowRef` or `inlineWorkflow`");
                self.error("conflict", inline.key_span, what, hint);
                None
            }
            (None, None) => {
                let what = format!("`{id}` has no inner workflow");
                self.error("missing-key", span, what, hint);
                None
            }
        };
        self.whole.depth -= 1;
        graph
    }

    /// Reads a workflow that is under `components` of this file.
    fn component_of(&mut self, entry: &Entry, what: &str) -> Option<Graph> {
        let hint = "a name under `components` of this file";
        let name = self.text(entry, hint)?;
        let mut known = self.whole.components.iter().rev();
        let Some((_, component)) = known.find(|(known, _)| known == name) else {
            let what = format!("unknown component `{name}` in this file");
            self.error("unknown-component", entry.value.span, what, hint);
            return None;
        };
        let component = Rc::clone(component);
        self.whole.depth += 1;
        let graph = self.graph(&component, what);
        self.whole.depth -= 1;
        graph
    }

    fn named(&mut self, entry: &Entry, what: &str) -> Option<Graph> {
        let hint = "a path from this file's folder: inner.yaml, parts/inner.yaml";
        let path = self.text(entry, hint)?;
        let span = entry.value.span;
        let bundle = self.bundle;
        let found = bundle.named_by(span.file, path);
        let Some((index, file)) = found.and_then(|index| Some((index, bundle.file(index)?))) else {
            let what = format!("`{path}` is not among the files of this workflow");
            self.error(MISSING_FILE, span, what, hint);
            return None;
        };
        if let Some(at) = self.whole.chain.iter().position(|file| *file == index) {
            let around = self.whole.chain.get(at..).unwrap_or_default();
            let around = around.iter().chain([&index]);
            let names = around.filter_map(|file| Some(bundle.file(*file)?.path.as_str()));
            let names: Vec<&str> = names.collect();
            let what = format!("workflows contain each other: {}", names.join(" → "));
            let hint = "a workflow cannot be inside of itself: repeat with a node of type loop";
            self.error("workflow-cycle", span, what, hint);
            return None;
        }
        let node = match self.whole.parsed.get(&index) {
            Some(node) => node.clone(),
            None => {
                let (node, mistakes) = source::parse(bundle, index);
                let mistakes = mistakes.into_iter().map(Diagnostic::from);
                self.diagnostics.extend(mistakes);
                let node = node.map(Rc::new);
                self.whole.parsed.insert(index, node.clone());
                node
            }
        }?;
        self.whole.chain.push(index);
        let mut inner = Canvas {
            reader: self.reader.of_file(file),
            bundle,
            whole: self.whole,
        };
        let graph = inner.graph(&node, what);
        self.whole.chain.pop();
        graph
    }
}

impl Node {
    pub(super) fn side(&self, side: PortSide) -> &Ports {
        match side {
            PortSide::Input => &self.inputs,
            PortSide::Output => &self.outputs,
        }
    }
}

/// Returns the node ids that have hyphens.
/// Templates may use such ids as names, although they are not valid names: `{{ my-node.x }}`.
fn names_with_hyphens(nodes: &source::Node) -> Vec<String> {
    let Kind::Array(nodes) = &nodes.kind else {
        return Vec::new();
    };
    let ids = nodes.iter().filter_map(|node| node.get("id")?.as_str());
    ids.filter(|id| id.contains('-'))
        .map(str::to_owned)
        .collect()
}
