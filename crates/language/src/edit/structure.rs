//! Adds and removes nodes.
//! The edges and orders of the nodes next to them are changed, too.

use super::nodes::{AuthoredNode, word};
use super::{Document, Edit, Where, keys, remove, set, types};
use serde_json::{Map, Value, json};
use windlass_engine::Dialect;

/// Adds a node. Returns the path of the new node.
pub(super) fn add(document: &mut Document, edit: &Edit) -> Result<String, String> {
    let Edit::Add {
        place,
        node,
        name,
        kind,
        value,
        x,
        y,
    } = edit
    else {
        return Err(String::from("nothing is added"));
    };
    let mut new = match value {
        Some(value) => value.clone(),
        None => types::smallest(document.dialect, kind)
            .ok_or_else(|| format!("the type `{kind}` cannot be added here"))?,
    };
    let anchor = match node.as_str() {
        "" => None,
        node => Some(document.find(node)?),
    };
    let all = document.nodes();
    let taken = |name: &str| all.iter().any(|one| one.name.eq_ignore_ascii_case(name));
    let name = match name {
        Some(name) if taken(name) => return Err(format!("there is a node `{name}` already")),
        Some(name) => name.clone(),
        None => {
            let stem: String = kind
                .chars()
                .map(|c| if c.is_alphanumeric() { c } else { '_' })
                .collect();
            let mut names = (1..).map(|number| match number {
                1 => stem.clone(),
                number => format!("{stem}_{number}"),
            });
            names.find(|name| !taken(name)).unwrap_or_default()
        }
    };
    if value.is_none() {
        assign_inner_names(document, &mut new, &name);
    }
    let mut value = document.value.clone();
    let container = insert_pointer(document, &value, anchor.as_ref(), *place)?;
    match document.dialect {
        Dialect::Loom | Dialect::Azure => {
            add_action(&mut value, &container, anchor.as_ref(), *place, &name, new)?;
        }
        Dialect::Tea => {
            prepend(&mut new, "name", Value::from(name.clone()));
            add_item(&mut value, &container, anchor.as_ref(), *place, new)?;
            if let (Some(anchor), "/nodes") = (&anchor, container.as_str()) {
                order_tea(&mut value, &anchor.name, &name, *place);
            }
        }
        Dialect::Canvas => {
            prepend(&mut new, "id", Value::from(name.clone()));
            let at = (*x, *y);
            if let (Some(x), Some(y)) = at
                && let Some(members) = new.as_object_mut()
            {
                let place = json!({ "x": super::canvas::whole(x), "y": super::canvas::whole(y) });
                let after = members
                    .keys()
                    .position(|key| key == "type")
                    .map_or(1, |at| at + 1);
                members.shift_insert(after, String::from("position"), place);
            }
            if let Some(anchor) = anchor.as_ref().filter(|_| *place == Where::Inside)
                && container.ends_with("/nodes")
                && !container.contains(&format!("{}/data/", anchor.pointer))
            {
                // The nodes inside of a drawn loop are in the same list as the loop, and name it as `parentId`.
                prepend(&mut new, "parentId", Value::from(anchor.name.clone()));
            }
            add_item(&mut value, &container, anchor.as_ref(), *place, new)?;
        }
    }
    document.replace_value(value)?;
    let added = document.nodes();
    let found = added
        .iter()
        .find(|one| one.name == name && one.container == container);
    Ok(found.map_or(name, |found| found.path.clone()))
}

/// Sets unique names for the inner nodes of a new node.
/// In a new `retry.loop`, an existing node becomes the corrector.
fn assign_inner_names(document: &Document, new: &mut Value, name: &str) {
    for inside in ["/actions", "/default/actions"] {
        if let Some(actions) = new.pointer_mut(inside).and_then(Value::as_object_mut) {
            let inner = std::mem::take(actions).into_iter();
            *actions = inner
                .map(|(key, action)| (format!("{name}_{key}"), action))
                .collect();
        }
    }
    let body = new.get_mut("body").and_then(Value::as_array_mut);
    for step in body.into_iter().flatten() {
        if let Some(inner) = step.get_mut("name") {
            *inner = Value::from(format!("{name}_step"));
        }
    }
    if word(new, "uses") == "retry.loop"
        && let Some(first) = document
            .nodes()
            .iter()
            .find(|node| node.container == "/nodes")
        && let Some(with) = new.get_mut("with").and_then(Value::as_object_mut)
    {
        with.insert(String::from("correct"), Value::from(first.name.clone()));
    }
}

/// Returns the pointer of the map or list to which the new node is added.
fn insert_pointer(
    document: &Document,
    value: &Value,
    anchor: Option<&AuthoredNode>,
    place: Where,
) -> Result<String, String> {
    let Some(anchor) = anchor else {
        let known = document.nodes();
        let first = known.iter().min_by_key(|node| node.container.len());
        let usual = match document.dialect {
            Dialect::Loom | Dialect::Azure => "/actions",
            Dialect::Tea | Dialect::Canvas => "/nodes",
        };
        return Ok(first.map_or(usual.to_owned(), |first| first.container.clone()));
    };
    if place != Where::Inside {
        return Ok(anchor.container.clone());
    }
    let own = value.pointer(&anchor.pointer).unwrap_or(&Value::Null);
    let kind = anchor.kind.to_lowercase();
    let refused = || Err(format!("a node of type `{}` has no inside", anchor.kind));
    let inside = match document.dialect {
        Dialect::Loom | Dialect::Azure => match kind.as_str() {
            "until" | "while" | "dountil" | "foreach" | "scope" | "if" | "parallel" => {
                match own.pointer("/inputs/actions") {
                    Some(_) => "/inputs/actions",
                    None => "/actions",
                }
            }
            "switch" => "/default/actions",
            _ => return refused(),
        },
        Dialect::Tea => match kind.as_str() {
            "while_loop" => "/body",
            "dynamic_parallel" => "/steps",
            _ => return refused(),
        },
        Dialect::Canvas if ["loop", "map", "component"].contains(&kind.as_str()) => {
            let drawn = document.nodes().iter().any(|node| {
                node.container == anchor.container
                    && value
                        .pointer(&node.pointer)
                        .is_some_and(|node| word(node, "parentId") == anchor.name)
            });
            if drawn {
                return Ok(anchor.container.clone());
            }
            "/data/inlineWorkflow/nodes"
        }
        Dialect::Canvas => return refused(),
    };
    Ok(format!("{}{inside}", anchor.pointer))
}

fn prepend(value: &mut Value, key: &str, first: Value) {
    if let Some(members) = value.as_object_mut() {
        members.shift_insert(0, key.to_owned(), first);
    }
}

fn add_action(
    value: &mut Value,
    container: &str,
    anchor: Option<&AuthoredNode>,
    place: Where,
    name: &str,
    mut new: Value,
) -> Result<(), String> {
    if value.pointer(container).is_none_or(Value::is_null) {
        set(value, container, Value::Object(Map::new()))?;
    }
    let actions = value.pointer_mut(container).and_then(Value::as_object_mut);
    let actions = actions.ok_or_else(|| format!("`{container}` is not a map of actions"))?;
    let anchor = anchor
        .filter(|_| place != Where::Inside)
        .map(|anchor| anchor.name.as_str());
    let at = anchor.and_then(|anchor| actions.keys().position(|key| key == anchor));
    let graph = actions
        .values()
        .any(|action| action.get("runAfter").is_some());
    if graph {
        let succeeded = |name: &str| json!({ name: ["Succeeded"] });
        let last = actions.keys().next_back().cloned();
        let run_after = match (place, anchor) {
            (Where::Before, Some(anchor)) => {
                let own = actions.get_mut(anchor).and_then(Value::as_object_mut);
                let own = own.and_then(|own| own.insert(String::from("runAfter"), succeeded(name)));
                own.unwrap_or_else(|| json!({}))
            }
            (Where::After, Some(anchor)) => {
                for action in actions.values_mut() {
                    let after = action.get_mut("runAfter").and_then(Value::as_object_mut);
                    if let Some(after) = after
                        && let Some(statuses) = after.shift_remove(anchor)
                    {
                        after.insert(name.to_owned(), statuses);
                    }
                }
                succeeded(anchor)
            }
            _ => last.as_deref().map_or_else(|| json!({}), succeeded),
        };
        if let Some(members) = new.as_object_mut() {
            members.insert(String::from("runAfter"), run_after);
        }
    }
    let index = match (place, at) {
        (Where::Before, Some(at)) => at,
        (Where::After, Some(at)) => at + 1,
        _ => actions.len(),
    };
    actions.shift_insert(index, name.to_owned(), new);
    Ok(())
}

fn add_item(
    value: &mut Value,
    container: &str,
    anchor: Option<&AuthoredNode>,
    place: Where,
    new: Value,
) -> Result<(), String> {
    if value.pointer(container).is_none_or(Value::is_null) {
        set(value, container, Value::Array(Vec::new()))?;
    }
    let items = value.pointer_mut(container).and_then(Value::as_array_mut);
    let items = items.ok_or_else(|| format!("`{container}` is not a list of nodes"))?;
    let index = anchor.and_then(|anchor| super::index(&keys(&anchor.pointer).ok()?.pop()?));
    let index = match (place, index) {
        (Where::Before, Some(index)) => index,
        (Where::After, Some(index)) => index + 1,
        _ => items.len(),
    };
    items.insert(index.min(items.len()), new);
    Ok(())
}

/// Redirects the edges of a file of The Edge Agent, so that they lead through the new node.
/// If the file has no edges, the order of the list is the order of the nodes.
fn order_tea(value: &mut Value, anchor: &str, name: &str, place: Where) {
    let Some(edges) = value.get_mut("edges").and_then(Value::as_array_mut) else {
        return;
    };
    let (end, edge) = match place {
        Where::Before => ("to", json!({ "from": name, "to": anchor })),
        Where::After => ("from", json!({ "from": anchor, "to": name })),
        Where::Inside => return,
    };
    let mut led = false;
    for one in edges.iter_mut().filter(|one| word(one, end) == anchor) {
        if let Some(one) = one.get_mut(end) {
            *one = Value::from(name);
            led = true;
        }
    }
    if led {
        edges.push(edge);
    }
}

/// Removes a node.
pub(super) fn delete(document: &mut Document, node: &str) -> Result<(), String> {
    let found = document.find(node)?;
    let mut value = document.value.clone();
    match document.dialect {
        Dialect::Loom | Dialect::Azure => {
            let own = value.pointer(&found.pointer);
            let before = own.and_then(|own| own.get("runAfter")).cloned();
            remove(&mut value, &found.pointer);
            let actions = value
                .pointer_mut(&found.container)
                .and_then(Value::as_object_mut);
            for action in actions.into_iter().flat_map(|actions| actions.values_mut()) {
                let Some(after) = action.get_mut("runAfter").and_then(Value::as_object_mut) else {
                    continue;
                };
                let key = after
                    .keys()
                    .find(|key| key.eq_ignore_ascii_case(&found.name))
                    .cloned();
                if let Some(key) = key {
                    after.shift_remove(&key);
                    let before = before.as_ref().and_then(Value::as_object);
                    for (name, statuses) in before.into_iter().flatten() {
                        after
                            .entry(name.clone())
                            .or_insert_with(|| statuses.clone());
                    }
                }
            }
        }
        Dialect::Tea => {
            remove(&mut value, &found.pointer);
            if found.container == "/nodes" {
                redirect_edges(&mut value, &found.name);
            }
        }
        Dialect::Canvas => {
            let mut gone = vec![found.name.clone()];
            let nodes = value
                .pointer(&found.container)
                .and_then(Value::as_array)
                .cloned();
            let nodes = nodes.unwrap_or_default();
            // The nodes inside of a drawn loop are removed together with the loop.
            while let Some(more) = nodes.iter().find(|node| {
                gone.iter().any(|name| word(node, "parentId") == name)
                    && !gone.iter().any(|name| word(node, "id") == name)
            }) {
                gone.push(word(more, "id").to_owned());
            }
            super::canvas::without(&mut value, &found.container, &gone);
        }
    }
    document.replace_value(value)
}

/// Redirects the edges that end at a removed node to the node that follows it.
fn redirect_edges(value: &mut Value, name: &str) {
    let Some(edges) = value.get_mut("edges").and_then(Value::as_array_mut) else {
        return;
    };
    let next = edges.iter().find(|edge| word(edge, "from") == name);
    let next = next.map(|edge| word(edge, "to").to_owned());
    edges.retain(|edge| word(edge, "from") != name);
    match next {
        Some(next) => {
            for edge in edges.iter_mut().filter(|edge| word(edge, "to") == name) {
                if let Some(to) = edge.get_mut("to") {
                    *to = Value::from(next.clone());
                }
            }
        }
        None => edges.retain(|edge| word(edge, "to") != name),
    }
}
