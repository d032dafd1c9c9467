//! Edits of a canvas: connections between ports, and positions of nodes.

use super::nodes::word;
use super::{Document, remove, set};
use serde_json::{Map, Value};
use windlass_engine::Dialect;

/// One end of a connection: a node and its port.
struct End {
    node: String,
    port: Option<String>,
}

/// Returns the pointer of the graph that an edit changes.
/// It is the graph at the top, or the graph inside of the loop at the path `inside`.
fn graph_of(document: &Document, inside: &str) -> Result<String, String> {
    if document.dialect != Dialect::Canvas {
        return Err(String::from(
            "only nodes of a canvas are connected and placed",
        ));
    }
    if inside.is_empty() {
        return Ok(String::new());
    }
    let found = document.find(inside)?;
    let inner = format!("{}/data/inlineWorkflow", found.pointer);
    match document.at(&inner) {
        Some(_) => Ok(inner),
        // In a loop that is drawn with its nodes around it (`parentId`), the nodes are in the same list as the loop.
        None => Ok(found.container.trim_end_matches("/nodes").to_owned()),
    }
}

/// Splits a text such as `node.port` into the id of a node and its port. The id may contain dots.
fn end(document: &Document, graph: &str, text: &str) -> Result<End, String> {
    let nodes = document
        .at(&format!("{graph}/nodes"))
        .and_then(Value::as_array);
    let mut longest: Option<End> = None;
    for node in nodes.into_iter().flatten() {
        let id = word(node, "id");
        let port = match text.strip_prefix(id) {
            Some("") => None,
            Some(rest) => match rest.strip_prefix('.') {
                Some(port) => Some(port.to_owned()),
                None => continue,
            },
            None => continue,
        };
        if longest
            .as_ref()
            .is_none_or(|known| known.node.len() < id.len())
        {
            longest = Some(End {
                node: id.to_owned(),
                port,
            });
        }
    }
    longest.ok_or_else(|| format!("`{text}` does not name a node of this graph: write `node.port`"))
}

fn edge_of(from: &End, to: &End) -> Value {
    let mut edge = Map::new();
    edge.insert(String::from("source"), Value::from(from.node.clone()));
    edge.insert(String::from("target"), Value::from(to.node.clone()));
    if let (Some(output), Some(input)) = (&from.port, &to.port) {
        edge.insert(String::from("sourceHandle"), handle("output", output));
        edge.insert(String::from("targetHandle"), handle("input", input));
    }
    Value::Object(edge)
}

/// Converts the name of a port to a handle. A text that is already a handle (`dock:i:output`) is returned unchanged.
fn handle(side: &str, port: &str) -> Value {
    match port.contains(':') {
        true => Value::from(port),
        false => Value::from(format!("{side}:{port}")),
    }
}

fn ends(
    document: &Document,
    from: &str,
    to: &str,
    inside: &str,
) -> Result<(String, Value), String> {
    let graph = graph_of(document, inside)?;
    let (from, to) = (end(document, &graph, from)?, end(document, &graph, to)?);
    if from.port.is_some() != to.port.is_some() {
        return Err(String::from(
            "a connection has a port at both ends, or at none",
        ));
    }
    Ok((format!("{graph}/edges"), edge_of(&from, &to)))
}

fn is_same(edge: &Value, wanted: &Value) -> bool {
    let keys = ["source", "target", "sourceHandle", "targetHandle"];
    keys.iter().all(|key| word(edge, key) == word(wanted, key))
}

pub(super) fn connect(
    document: &mut Document,
    from: &str,
    to: &str,
    inside: &str,
) -> Result<(), String> {
    let (edges, edge) = ends(document, from, to, inside)?;
    let known = document.at(&edges).and_then(Value::as_array);
    for one in known.into_iter().flatten() {
        if is_same(one, &edge) {
            return Err(format!("`{from}` and `{to}` are connected already"));
        }
        let input = word(&edge, "targetHandle");
        if !input.is_empty()
            && word(one, "target") == word(&edge, "target")
            && word(one, "targetHandle") == input
        {
            let other = word(one, "source");
            return Err(format!(
                "`{to}` has its value from `{other}` already: an input has one"
            ));
        }
    }
    let mut value = document.value.clone();
    if value.pointer(&edges).is_none_or(Value::is_null) {
        set(&mut value, &edges, Value::Array(Vec::new()))?;
    }
    set(&mut value, &format!("{edges}/-"), edge)?;
    document.replace_value(value)
}

pub(super) fn disconnect(
    document: &mut Document,
    from: &str,
    to: &str,
    inside: &str,
) -> Result<(), String> {
    let (edges, edge) = ends(document, from, to, inside)?;
    let known = document.at(&edges).and_then(Value::as_array);
    let found = known.and_then(|known| known.iter().position(|one| is_same(one, &edge)));
    let found = found.ok_or_else(|| format!("`{from}` and `{to}` are not connected"))?;
    let mut value = document.value.clone();
    remove(&mut value, &format!("{edges}/{found}"));
    document.replace_value(value)
}

/// Converts a coordinate to a whole number.
pub(super) fn whole(number: f64) -> Value {
    let rounded = format!("{:.0}", number).parse::<i64>();
    Value::from(rounded.unwrap_or(0))
}

/// Sets the position of a node.
pub(super) fn place(document: &mut Document, node: &str, x: f64, y: f64) -> Result<(), String> {
    graph_of(document, "")?;
    let found = document.find(node)?;
    let mut value = document.value.clone();
    let own = value
        .pointer_mut(&found.pointer)
        .and_then(Value::as_object_mut);
    let own = own.ok_or_else(|| format!("`{node}` is not a map"))?;
    let at = own
        .keys()
        .position(|key| key == "type")
        .map_or(own.len(), |at| at + 1);
    let (x, y) = (whole(x), whole(y));
    match own.get_mut("position").and_then(Value::as_object_mut) {
        Some(position) => {
            position.insert(String::from("x"), x);
            position.insert(String::from("y"), y);
        }
        None => {
            let position: Map<String, Value> = [("x", x), ("y", y)]
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            own.shift_insert(at, String::from("position"), Value::Object(position));
        }
    }
    document.replace_value(value)
}

/// Removes nodes from a graph, and everything in the graph that refers to them.
pub(super) fn without(value: &mut Value, container: &str, gone: &[String]) {
    let is_gone = |name: &str| gone.iter().any(|one| one == name);
    if let Some(nodes) = value.pointer_mut(container).and_then(Value::as_array_mut) {
        nodes.retain(|node| !is_gone(word(node, "id")));
    }
    let graph = container.trim_end_matches("/nodes");
    let edges = format!("{graph}/edges");
    if let Some(edges) = value.pointer_mut(&edges).and_then(Value::as_array_mut) {
        edges.retain(|edge| !is_gone(word(edge, "source")) && !is_gone(word(edge, "target")));
    }
    let Some(data) = graph.strip_suffix("/inlineWorkflow") else {
        return;
    };
    for (list, end) in [("inputMappings", "target"), ("outputMappings", "source")] {
        let mappings = format!("{data}/{list}");
        if let Some(mappings) = value.pointer_mut(&mappings).and_then(Value::as_array_mut) {
            mappings.retain(|mapping| {
                let named = |end: &str| {
                    mapping
                        .get(end)
                        .map(|end| word(end, "node"))
                        .unwrap_or_default()
                };
                !is_gone(named(end)) && !is_gone(named("source"))
            });
        }
    }
}
