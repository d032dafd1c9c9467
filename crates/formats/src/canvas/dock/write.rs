//! Writes the graph that results from a drawing, in which each loop has an inner workflow with mappings.

use super::{Drawing, End, Start, Wire, ports};
use windlass_expression::Value;
use windlass_source::source::{Entry, Kind, Node, Span};

impl Drawing<'_> {
    /// Writes the nodes and the edges inside of a loop. Without a loop, those at the top level.
    pub(super) fn scope(&self, around: Option<usize>) -> (Node, Node) {
        let inside = (0..self.nodes.len()).filter(|at| self.parent(*at) == around);
        let nodes = inside.map(|at| self.node(at)).collect();
        let mut edges = Vec::new();
        for wire in &self.wires {
            if let (Start::Out(from, output), End::In(to, input)) = (&wire.from, &wire.to)
                && self.parent(*to) == around
            {
                let (output, input) = (format!("output:{output}"), format!("input:{input}"));
                edges.push(record(
                    wire.span,
                    [
                        ("source", self.id(*from)),
                        ("target", self.id(*to)),
                        ("sourceHandle", &output),
                        ("targetHandle", &input),
                    ],
                ));
            }
        }
        for (from, to, span) in &self.orders {
            if let Some((from, to)) = self.order(*from, *to, around) {
                let ends = [("source", self.id(from)), ("target", self.id(to))];
                edges.push(record(*span, ends));
            }
        }
        if around.is_none() {
            edges.extend(self.strays.iter().map(|edge| (*edge).clone()));
        }
        let span = around
            .and_then(|at| self.nodes.get(at))
            .map(|node| node.span);
        let list = |items| Node {
            span: span.unwrap_or_default(),
            kind: Kind::Array(items),
        };
        (list(nodes), list(edges))
    }

    /// Returns the two nodes of this graph that an order connects. Each is an end of the order, or contains it.
    fn order(&self, from: usize, to: usize, around: Option<usize>) -> Option<(usize, usize)> {
        let here = |at: usize| {
            let mut chain = vec![at];
            chain.extend(self.enclosing_loops(at));
            chain.into_iter().find(|at| self.parent(*at) == around)
        };
        let (from, to) = (here(from)?, here(to)?);
        (from != to).then_some((from, to))
    }

    fn node(&self, at: usize) -> Node {
        let Some(drawn) = self.nodes.get(at) else {
            return Node::made(Value::Null, Span::default());
        };
        let span = drawn.span;
        let Some(node) = drawn.node else {
            return record(span, [("id", drawn.id.as_str()), ("type", drawn.made)]);
        };
        if !self.has_children(at) {
            return node.clone();
        }
        let mut node = node.clone();
        let Some(data) = data_of(&mut node) else {
            return node;
        };
        data.retain(|entry| entry.key != "dockSlots");
        for (input, side) in [(true, "inputs"), (false, "outputs")] {
            self.declare(at, input, side, data, span);
        }
        let (nodes, edges) = self.scope(Some(at));
        let inner = [("nodes", nodes), ("edges", edges)];
        put(data, "inlineWorkflow", map(span, inner));
        add(data, "inputMappings", self.inputs(at), span);
        add(data, "outputMappings", self.outputs(at), span);
        let mut continue_nodes = (0..self.nodes.len())
            .filter(|one| self.parent(*one) == Some(at) && self.kind(*one) == "interface-continue");
        if let Some(continue_node) = continue_nodes.next()
            && !data.iter().any(|entry| entry.key == "continueWhile")
        {
            let declared = self.nodes.get(continue_node).and_then(|one| one.node);
            let port = ports(declared, "inputs")
                .first()
                .copied()
                .unwrap_or("continue");
            let output = format!("{}.{port}", self.id(continue_node));
            let mut test = record(span, [("output", output.as_str()), ("operator", "==")]);
            if let Kind::Object(entries) = &mut test.kind {
                let value = Node {
                    span,
                    kind: Kind::Bool(true),
                };
                put(entries, "value", value);
            }
            put(data, "continueWhile", test);
        }
        node
    }

    /// Adds the ports that a loop needs and does not declare.
    /// If a loop declares no outputs, its outputs are those to which a wire leads.
    fn declare(&self, at: usize, input: bool, side: &str, data: &mut Vec<Entry>, span: Span) {
        let Some(more) = self.more.get(&(at, input)) else {
            return;
        };
        let declared = data.iter().any(|entry| entry.key == side);
        if input || declared {
            let more = more.iter();
            let ports = more.map(|name| record(span, [("name", name.as_str()), ("type", "any")]));
            add(data, side, ports.collect(), span);
        }
    }

    fn inputs(&self, around: usize) -> Vec<Node> {
        let mut found = Vec::new();
        for Wire { from, to, span } in &self.wires {
            let End::In(to, input) = to else { continue };
            let source = match from {
                Start::Given(at, name) if *at == around => {
                    record(*span, [("type", "outer"), ("name", name.as_str())])
                }
                Start::Iteration(at) if *at == around => {
                    record(*span, [("type", "builtin"), ("name", "iteration_count")])
                }
                Start::Previous(at, slot) if *at == around => {
                    match self.source_of_slot(around, slot) {
                        Some((node, output)) => record(
                            *span,
                            [
                                ("type", "previous"),
                                ("node", self.id(node)),
                                ("output", output),
                            ],
                        ),
                        // If no wire leads to the slot, its value is always null.
                        None => continue,
                    }
                }
                _ => continue,
            };
            let target = [("node", self.id(*to)), ("input", input.as_str())];
            let target = record(*span, target);
            found.push(map(*span, [("source", source), ("target", target)]));
        }
        found
    }

    fn outputs(&self, around: usize) -> Vec<Node> {
        let mut found = Vec::new();
        for Wire { from, to, span } in &self.wires {
            if let (Start::Out(from, output), End::Result(at, name)) = (from, to)
                && *at == around
            {
                let source = [("node", self.id(*from)), ("output", output.as_str())];
                let target = Node::made(Value::text(name.as_str()), *span);
                let source = record(*span, source);
                found.push(map(*span, [("source", source), ("target", target)]));
            }
        }
        found
    }
}

// ── nodes of the file's tree ────────────────────────────────────────────────────────────────

fn map<const N: usize>(span: Span, members: [(&str, Node); N]) -> Node {
    let entry = |(key, value): (&str, Node)| Entry {
        key: key.to_owned(),
        key_span: span,
        value,
    };
    Node {
        span,
        kind: Kind::Object(members.into_iter().map(entry).collect()),
    }
}

/// Makes a map of texts.
fn record<const N: usize>(span: Span, members: [(&str, &str); N]) -> Node {
    map(
        span,
        members.map(|(key, text)| (key, Node::made(Value::text(text), span))),
    )
}

/// Returns the members of a node's `data`.
fn data_of(node: &mut Node) -> Option<&mut Vec<Entry>> {
    let span = node.span;
    let Kind::Object(entries) = &mut node.kind else {
        return None;
    };
    if !entries.iter().any(|entry| entry.key == "data") {
        put(entries, "data", map(span, []));
    }
    let data = entries.iter_mut().find(|entry| entry.key == "data")?;
    match &mut data.value.kind {
        Kind::Object(entries) => Some(entries),
        _ => None,
    }
}

fn put(entries: &mut Vec<Entry>, key: &str, value: Node) {
    entries.retain(|entry| entry.key != key);
    entries.push(Entry {
        key: key.to_owned(),
        key_span: value.span,
        value,
    });
}

/// Adds items to the list of a member.
fn add(entries: &mut Vec<Entry>, key: &str, items: Vec<Node>, span: Span) {
    let known = entries.iter_mut().find(|entry| entry.key == key);
    match known.map(|entry| &mut entry.value.kind) {
        Some(Kind::Array(known)) => known.extend(items),
        _ => {
            let kind = Kind::Array(items);
            put(entries, key, Node { span, kind });
        }
    }
}
