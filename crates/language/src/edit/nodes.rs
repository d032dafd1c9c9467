//! Finds the actions and nodes of a workflow in its text, by name and path.
//! Only the tree of values is needed, so this also works for a text with mistakes.

use serde_json::Value;
use windlass_engine::Dialect;

/// An action or node in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthoredNode {
    pub name: String,
    /// The names of the enclosing loops and the node's name, separated by slashes.
    pub path: String,
    /// The position of the node in the text, as a JSON pointer.
    pub pointer: String,
    /// The pointer of the map of actions or the list of nodes that contains the node.
    pub container: String,
    /// The type of the node, as the text has it.
    pub kind: String,
}

/// Maximum depth of actions in other actions. Deeper actions are not found.
const MAX_DEPTH: usize = 128;

/// The keys under which an action of Loom and Logic Apps contains further actions.
const INSIDE: [&str; 10] = [
    "inputs",
    "else",
    "default",
    "cases",
    "branches",
    "action",
    "definition",
    "properties",
    "resources",
    "template",
];

pub(super) fn nodes(document: &Value, dialect: Dialect) -> Vec<AuthoredNode> {
    let mut found = Vec::new();
    match dialect {
        Dialect::Loom | Dialect::Azure => actions(document, "", "", 0, &mut found),
        Dialect::Tea => steps(document, "", "", &["nodes"], 0, &mut found),
        Dialect::Canvas => graph(document, "", "", 0, &mut found),
    }
    found
}

/// Returns the node with this path or name.
pub(super) fn find(nodes: &[AuthoredNode], path_or_name: &str) -> Result<AuthoredNode, String> {
    let exact = nodes.iter().find(|node| node.path == path_or_name);
    if let Some(found) = exact {
        return Ok(found.clone());
    }
    let name = path_or_name.rsplit('/').next().unwrap_or(path_or_name);
    let same = |node: &&AuthoredNode| node.name.eq_ignore_ascii_case(name);
    let mut named = nodes.iter().filter(same);
    match (named.next(), named.next()) {
        (Some(found), None) => Ok(found.clone()),
        (Some(_), Some(_)) => Err(format!(
            "several nodes are called `{name}`: use the path of one"
        )),
        (None, _) => Err(format!("unknown node `{path_or_name}`")),
    }
}

pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

pub(super) fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn actions(value: &Value, at: &str, path: &str, depth: usize, found: &mut Vec<AuthoredNode>) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            actions(item, &format!("{at}/{index}"), path, depth + 1, found);
        }
    }
    let Some(members) = value.as_object() else {
        return;
    };
    for (key, member) in members {
        let at = format!("{at}/{}", escaped(key));
        match member.as_object() {
            Some(named) if key == "actions" => {
                for (name, action) in named.iter().filter(|(_, action)| action.is_object()) {
                    let kind = word(action, "type").to_owned();
                    let loops = ["until", "while", "dountil", "foreach"];
                    let is_loop = loops.contains(&kind.to_lowercase().as_str());
                    let own = below(path, name);
                    let pointer = format!("{at}/{}", escaped(name));
                    found.push(AuthoredNode {
                        name: name.clone(),
                        path: own.clone(),
                        pointer: pointer.clone(),
                        container: at.clone(),
                        kind,
                    });
                    let path = if is_loop { &own } else { path };
                    actions(action, &pointer, path, depth + 1, found);
                }
            }
            // The keys in these maps are the names of cases and branches, not the names of actions.
            Some(named) if ["cases", "branches"].contains(&key.as_str()) => {
                for (name, case) in named {
                    let at = format!("{at}/{}", escaped(name));
                    actions(case, &at, path, depth + 1, found);
                }
            }
            _ if INSIDE.contains(&key.as_str()) => {
                actions(member, &at, path, depth + 1, found);
            }
            _ => {}
        }
    }
}

fn steps(
    value: &Value,
    at: &str,
    path: &str,
    keys: &[&str],
    depth: usize,
    found: &mut Vec<AuthoredNode>,
) {
    for key in keys {
        let nodes = value
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for (index, node) in nodes.enumerate() {
            let name = word(node, "name").to_owned();
            let own = below(path, &name);
            let container = format!("{at}/{key}");
            let pointer = format!("{container}/{index}");
            let kind = [word(node, "type"), word(node, "uses")];
            let kind = kind.into_iter().find(|kind| !kind.is_empty());
            if depth < MAX_DEPTH {
                found.push(AuthoredNode {
                    name,
                    path: own.clone(),
                    pointer: pointer.clone(),
                    container,
                    kind: kind.unwrap_or("run").to_owned(),
                });
                steps(node, &pointer, &own, &["body", "steps"], depth + 1, found);
            }
        }
    }
}

fn graph(value: &Value, at: &str, path: &str, depth: usize, found: &mut Vec<AuthoredNode>) {
    let nodes: Vec<&Value> = value
        .get("nodes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let around = |node: &Value| {
        // In a drawn loop, the loop is the parent (`parentId`) of the nodes inside.
        let mut path = Vec::new();
        let mut parent = word(node, "parentId");
        while !parent.is_empty() && path.len() < MAX_DEPTH {
            path.push(parent);
            let next = nodes.iter().find(|node| word(node, "id") == parent);
            parent = next.map(|node| word(node, "parentId")).unwrap_or_default();
        }
        path.reverse();
        path.join("/")
    };
    for (index, node) in nodes.iter().enumerate() {
        let name = word(node, "id").to_owned();
        let own = match around(node).as_str() {
            "" => below(path, &name),
            around => below(&below(path, around), &name),
        };
        let container = format!("{at}/nodes");
        let pointer = format!("{container}/{index}");
        found.push(AuthoredNode {
            name,
            path: own.clone(),
            pointer: pointer.clone(),
            container,
            kind: word(node, "type").to_owned(),
        });
        if let Some(inner) = node.pointer("/data/inlineWorkflow")
            && depth < MAX_DEPTH
        {
            let kind = word(node, "type");
            let path = if kind == "component" { path } else { &own };
            graph(
                inner,
                &format!("{pointer}/data/inlineWorkflow"),
                path,
                depth + 1,
                found,
            );
        }
    }
}
