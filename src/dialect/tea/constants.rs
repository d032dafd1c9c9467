//! `${name}` in texts of nodes and edges: replaced by a constant of the file before anything is
//! read (spec: tea-observed.md, "Conditions"). A name that is no constant stays as it is.

use crate::source::{Entry, Kind, Node};

/// The file with its constants put in.
pub(super) fn replaced(workflow: &Node) -> Node {
    let mut workflow = workflow.clone();
    let constants: Vec<(String, String)> = workflow
        .get("variables")
        .and_then(Node::entries)
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| Some((format!("${{{}}}", entry.key), word(&entry.value)?)))
        .collect();
    if let Kind::Object(entries) = &mut workflow.kind
        && !constants.is_empty()
    {
        let places = entries
            .iter_mut()
            .filter(|entry| matches!(&*entry.key, "nodes" | "edges"));
        places.for_each(|Entry { value, .. }| put_in(value, &constants));
    }
    workflow
}

fn put_in(node: &mut Node, constants: &[(String, String)]) {
    match &mut node.kind {
        Kind::String(text) if text.text.contains("${") => {
            for (name, word) in constants {
                text.text = text.text.replace(name, word);
            }
        }
        Kind::Array(items) => items.iter_mut().for_each(|item| put_in(item, constants)),
        Kind::Object(entries) => entries
            .iter_mut()
            .for_each(|entry| put_in(&mut entry.value, constants)),
        _ => {}
    }
}

/// A constant as Python writes it.
fn word(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Null => Some(String::from("None")),
        Kind::Bool(true) => Some(String::from("True")),
        Kind::Bool(false) => Some(String::from("False")),
        Kind::Int(number) => Some(number.to_string()),
        Kind::Float(number) => Some(format!("{number:?}")),
        Kind::String(text) => Some(text.text.clone()),
        Kind::Array(_) | Kind::Object(_) => None,
    }
}
