//! The ports of the nodes of a canvas, which a panel offers.
//! They are declared in the text, or implied by it.

use super::fields::{Choice, Column, Field, FieldKind};
use super::nodes::word;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The types of ports.
const TYPES: [&str; 9] = [
    "string", "number", "boolean", "json", "any", "object", "array", "file", "files",
];

/// A port that may be connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortOf {
    /// Path of its node.
    pub node: String,
    /// Name of the port.
    pub name: String,
    /// Type of the port: `string`, `number`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Side of the port: `in` or `out`.
    pub side: String,
}

impl PortOf {
    fn new(node: &str, name: &str, kind: &str, side: &str) -> Self {
        Self {
            node: node.to_owned(),
            name: name.to_owned(),
            kind: if kind.is_empty() { "any" } else { kind }.to_owned(),
            side: side.to_owned(),
        }
    }

    pub(super) fn choice(&self) -> Choice {
        Choice {
            kind: Some(self.kind.clone()),
            ..Choice::of(format!("{}.{}", self.node, self.name))
        }
    }
}

fn declared(node: &Value, side: &str) -> Vec<PortOf> {
    let ports = node.pointer(&format!("/data/{side}puts"));
    let ports = ports.and_then(Value::as_array).into_iter().flatten();
    let id = word(node, "id");
    ports
        .map(|port| PortOf::new(id, word(port, "name"), word(port, "type"), side))
        .collect()
}

/// Returns the output ports of a node.
pub(super) fn outputs(node: &Value) -> Vec<PortOf> {
    let mut ports = declared(node, "out");
    let none = ports.is_empty();
    let id = word(node, "id");
    let mut known = |ports_of: &[(&str, &str)]| {
        for (name, kind) in ports_of {
            if !ports.iter().any(|port| port.name == *name) {
                ports.push(PortOf::new(id, name, kind, "out"));
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

/// Returns the input ports of a node.
pub(super) fn inputs(node: &Value) -> Vec<PortOf> {
    declared(node, "in")
}

pub(super) fn nodes_of(graph: &Value) -> impl Iterator<Item = &Value> {
    let nodes = graph.get("nodes").and_then(Value::as_array);
    nodes.into_iter().flatten()
}

/// Returns the inputs of a node to which edges are connected.
pub(super) fn connected_inputs(graph: &Value, node: &str) -> Vec<PortOf> {
    let edges = graph.get("edges").and_then(Value::as_array);
    let edges = edges
        .into_iter()
        .flatten()
        .filter(|edge| word(edge, "target") == node);
    let names = edges.filter_map(|edge| word(edge, "targetHandle").strip_prefix("input:"));
    names
        .map(|name| PortOf::new(node, name, "any", "in"))
        .collect()
}

/// Returns the ports of the graph that contains the node at this path.
pub(super) fn ports_of_graph(graph: &Value, path: &str) -> Vec<PortOf> {
    let ports = nodes_of(graph).flat_map(outputs);
    let mut ports: Vec<PortOf> = ports.chain(nodes_of(graph).flat_map(inputs)).collect();
    if let Some((above, _)) = path.rsplit_once('/') {
        for port in &mut ports {
            port.node = format!("{above}/{}", port.node);
        }
    }
    ports
}

/// Returns a field that is a table of the ports that a node declares on one side.
pub(super) fn table_of(id: &str, label: &str) -> Field {
    let column = |(id, label, kind): (&str, &str, FieldKind)| Column {
        id: id.to_owned(),
        label: label.to_owned(),
        kind,
        choices: Vec::new(),
    };
    let name = column(("name", "Name", FieldKind::Text));
    let kind = Column {
        choices: TYPES.map(Choice::of).into(),
        ..column(("type", "Type", FieldKind::Choice))
    };
    let mut columns = vec![name, kind];
    if id == "inputs" {
        columns.push(column(("default", "Default", FieldKind::Text)));
        columns.push(column(("required", "Required", FieldKind::Bool)));
    }
    Field {
        columns,
        ..Field::new(id, label, FieldKind::Table)
    }
}
