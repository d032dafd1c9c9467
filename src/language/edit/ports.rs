//! The ports of a canvas's nodes, as far as the text says them: what a panel offers.

use super::fields::Choice;
use super::nodes::word;
use serde_json::Value;

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub node: String,
    pub name: String,
    pub kind: String,
}

impl Port {
    fn new(node: &str, name: &str, kind: &str) -> Self {
        Self {
            node: node.to_owned(),
            name: name.to_owned(),
            kind: if kind.is_empty() { "any" } else { kind }.to_owned(),
        }
    }

    pub fn choice(&self) -> Choice {
        Choice {
            kind: Some(self.kind.clone()),
            ..Choice::of(format!("{}.{}", self.node, self.name))
        }
    }
}

fn declared(node: &Value, side: &str) -> Vec<Port> {
    let ports = node
        .pointer(&format!("/data/{side}"))
        .and_then(Value::as_array);
    let ports = ports.into_iter().flatten();
    ports
        .map(|port| Port::new(word(node, "id"), word(port, "name"), word(port, "type")))
        .collect()
}

/// What a node gives.
pub(super) fn outputs(node: &Value) -> Vec<Port> {
    let mut ports = declared(node, "outputs");
    let none = ports.is_empty();
    let id = word(node, "id");
    let mut known = |ports_of: &[(&str, &str)]| {
        for (name, kind) in ports_of {
            if !ports.iter().any(|port| port.name == *name) {
                ports.push(Port::new(id, name, kind));
            }
        }
    };
    match word(node, "type") {
        "shell" => known(&[
            ("stdout", "string"),
            ("stderr", "string"),
            ("exitCode", "number"),
        ]),
        "http" => known(&[
            ("statusCode", "number"),
            ("headers", "object"),
            ("body", "any"),
        ]),
        "agent" if none => known(&[("response", "string")]),
        "constant" | "wire" if none => known(&[("value", "any")]),
        "loop" | "map" => {
            known(&[("iteration_count", "number"), ("status", "string")]);
            let mapped = node
                .pointer("/data/outputMappings")
                .and_then(Value::as_array);
            for mapping in mapped.into_iter().flatten() {
                known(&[(word(mapping, "target"), "any")]);
            }
        }
        _ => {}
    }
    ports
}

/// What a node takes.
pub(super) fn inputs(node: &Value) -> Vec<Port> {
    declared(node, "inputs")
}

pub(super) fn nodes_of(graph: &Value) -> impl Iterator<Item = &Value> {
    let nodes = graph.get("nodes").and_then(Value::as_array);
    nodes.into_iter().flatten()
}

/// The inputs that edges bring to a node.
pub(super) fn wired(graph: &Value, node: &str) -> Vec<Port> {
    let edges = graph.get("edges").and_then(Value::as_array);
    let edges = edges
        .into_iter()
        .flatten()
        .filter(|edge| word(edge, "target") == node);
    let names = edges.filter_map(|edge| word(edge, "targetHandle").strip_prefix("input:"));
    names.map(|name| Port::new(node, name, "any")).collect()
}
