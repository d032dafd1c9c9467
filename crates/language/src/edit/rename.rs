//! Renames a node, and changes the references to it in the text.

use super::nodes::{AuthoredNode, find, word};
use super::{Document, keys};
use crate::schema::is_condition;
use regex::{Captures, Regex};
use serde_json::Value;
use windlass_engine::Dialect;

/// The functions in expressions that have the name of an action as an argument.
const READERS: &str = "actions|body|outputs|result|items|iterationIndexes|actionBody|actionOutputs|\
                       formDataValue|formDataMultiValues|multipartBody";

pub(super) fn rename(document: &mut Document, node: &str, name: &str) -> Result<String, String> {
    let target = document.find(node)?;
    if name.is_empty() || name == target.name {
        return Err(String::from("rename the node"));
    }
    let all = document.nodes();
    let others = |one: &&AuthoredNode| one.pointer != target.pointer;
    if all
        .iter()
        .filter(others)
        .any(|one| one.name.eq_ignore_ascii_case(name))
    {
        return Err(format!("there is a node `{name}` already"));
    }
    match document.dialect {
        Dialect::Loom | Dialect::Azure => loom(document, &target, name)?,
        Dialect::Tea => tea(document, &target, name)?,
        Dialect::Canvas => canvas(document, &target, name)?,
    }
    let path = match target.path.rsplit_once('/') {
        Some((around, _)) => format!("{around}/{name}"),
        None => name.to_owned(),
    };
    find(&document.nodes(), &path).map(|found| found.path)
}

/// Words that Jinja does not accept as a name after a dot, or reads as something else.
const JINJA_WORDS: [&str; 13] = [
    "and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True",
];

/// Calls `change` for every string in a value, with the key that contains the string. Keys of maps are not included.
fn texts(key: &str, value: &mut Value, change: &mut impl FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => change(key, text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(key, item, change)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(key, member)| texts(key, member, change)),
        _ => {}
    }
}

/// Returns whether Jinja reads a member of this name after a dot.
fn is_jinja_name(name: &str) -> bool {
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_');
    begins && letters.all(|c| c.is_alphanumeric() || c == '_') && !JINJA_WORDS.contains(&name)
}

/// Returns a name as it is between single quotes in Jinja.
fn escaped_in_jinja(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\'', "\\'")
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

fn loom(document: &mut Document, target: &AuthoredNode, name: &str) -> Result<(), String> {
    // The keys of `runAfter` are renamed before the action itself, so that the pointers in `after` remain valid.
    let mut after = Vec::new();
    let actions = document.at(&target.container).and_then(Value::as_object);
    for (action, own) in actions.into_iter().flatten() {
        let keys = own.get("runAfter").and_then(Value::as_object);
        let mut keys = keys.into_iter().flat_map(|keys| keys.keys());
        if let Some(key) = keys.find(|key| key.eq_ignore_ascii_case(&target.name)) {
            let pointer = format!(
                "{}/{}/runAfter",
                target.container,
                super::nodes::escaped(action)
            );
            after.push((pointer, key.clone()));
        }
    }
    for (pointer, key) in after {
        document.rename_key(&pointer, &key, name)?;
    }
    document.rename_key(&target.container, &target.name, name)?;
    let old_name = &target.name;
    let old = regex::escape(old_name);
    // The parts of an action have names that begin with its name: `batch.status` is a part of the operation `batch`.
    let part = r"(?P<part>(?:\.[^'\x22]*)?)";
    let called = pattern(&format!(
        r"(?i)\b(?P<reader>{READERS})(?P<open>\(\s*)'{old}{part}'"
    ))?;
    let member = pattern(&format!(
        r"(?i)\b(?P<root>actions|outputs|results)(?:\.{old}\b|\[(?P<quote>['\x22]){old}{part}['\x22]\])"
    ))?;
    let others: Vec<String> = document
        .nodes()
        .iter()
        .map(|node| node.name.to_lowercase())
        .collect();
    let is_another = |found: &Captures<'_>| {
        let part = found.name("part").map_or("", |part| part.as_str());
        !part.is_empty() && others.contains(&format!("{old_name}{part}").to_lowercase())
    };
    let mut value = document.value.clone();
    let quoted = name.replace('\'', "''");
    let in_jinja = escaped_in_jinja(name);
    texts("", &mut value, &mut |key, text| {
        let is_expression = text.contains('@') || text.contains("{{") || text.contains("{%");
        if !is_expression && !is_condition(key) {
            return;
        }
        let new = called.replace_all(text, |found: &Captures<'_>| match is_another(found) {
            true => found[0].to_owned(),
            false => format!(
                "{}{}'{quoted}{}'",
                &found["reader"], &found["open"], &found["part"]
            ),
        });
        let new = member.replace_all(&new, |found: &Captures<'_>| match found.name("quote") {
            _ if is_another(found) => found[0].to_owned(),
            None if is_jinja_name(name) => format!("{}.{name}", &found["root"]),
            None => format!("{}['{in_jinja}']", &found["root"]),
            Some(_) => format!("{}['{in_jinja}{}']", &found["root"], &found["part"]),
        });
        if new != text.as_str() {
            *text = new.into_owned();
        }
    });
    document.replace_value(value)
}

fn tea(document: &mut Document, target: &AuthoredNode, name: &str) -> Result<(), String> {
    const NAMED: [&str; 7] = [
        "from",
        "to",
        "goto",
        "fan_in",
        "correct",
        "interrupt_before",
        "interrupt_after",
    ];
    fn refer(value: &mut Value, named: bool, old: &str, name: &str) {
        match value {
            Value::String(text) if named && text == old => *text = name.to_owned(),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| refer(item, named, old, name)),
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    refer(member, NAMED.contains(&key.as_str()), old, name);
                }
            }
            _ => {}
        }
    }
    let mut value = document.value.clone();
    refer(&mut value, false, &target.name, name);
    super::set(
        &mut value,
        &format!("{}/name", target.pointer),
        Value::from(name),
    )?;
    document.replace_value(value)
}

fn canvas(document: &mut Document, target: &AuthoredNode, name: &str) -> Result<(), String> {
    let mut value = document.value.clone();
    let old = target.name.clone();
    let container = keys(&target.container)?;
    // The pointer of the node's graph. For an inner graph, it is the pointer of its loop's `data`, because other keys
    // of `data` (mappings, conditions) also refer to the inner nodes.
    let mut around = container.clone();
    around.pop();
    if around.last().is_some_and(|key| key == "inlineWorkflow") {
        around.pop();
    }
    let escaped = regex::escape(&old);
    let template = pattern(r"\{\{.*?\}\}|\{%.*?%\}")?;
    let read = pattern(&format!(
        r"(?P<before>^|[^\w.'\x22-]){escaped}\.|nodes\[(?P<quote>['\x22]){escaped}['\x22]\]"
    ))?;
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let in_jinja = escaped_in_jinja(name);
    let pointer: String = around
        .iter()
        .map(|key| format!("/{}", super::nodes::escaped(key)))
        .collect();
    let graph = value
        .pointer_mut(&pointer)
        .ok_or("its graph is not there")?;
    fn refer(value: &mut Value, old: &str, name: &str) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| refer(item, old, name)),
            Value::Object(members) => {
                let point = format!("{old}.");
                for (key, member) in members.iter_mut() {
                    let named = ["source", "target", "node", "parentId"].contains(&key.as_str());
                    match member {
                        Value::String(text) if named && text == old => *text = name.to_owned(),
                        Value::String(text) if key == "output" && text.starts_with(&point) => {
                            *text =
                                format!("{name}.{}", text.get(point.len()..).unwrap_or_default());
                        }
                        // The nodes of an inner workflow have names of their own. Only if the renamed node is in this
                        // inner workflow, the code below changes it.
                        member if key != "inlineWorkflow" => refer(member, old, name),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    refer(graph, &old, name);
    if pointer.ends_with("/data")
        && let Some(inner) = graph.get_mut("inlineWorkflow")
    {
        refer(inner, &old, name);
    }
    let own = value
        .pointer_mut(&pointer)
        .ok_or("its graph is not there")?;
    texts("", own, &mut |_, text| {
        if !text.contains("{{") && !text.contains("{%") {
            return;
        }
        let new = template.replace_all(text, |whole: &Captures<'_>| {
            let whole = whole.get(0).map(|whole| whole.as_str()).unwrap_or_default();
            let new = read.replace_all(whole, |found: &Captures<'_>| {
                let before = found.name("before").map_or("", |before| before.as_str());
                match found.name("quote") {
                    None if plain => format!("{before}{name}."),
                    None => format!("{before}nodes['{in_jinja}']."),
                    Some(_) => format!("nodes['{in_jinja}']"),
                }
            });
            new.into_owned()
        });
        if new != text.as_str() {
            *text = new.into_owned();
        }
    });
    let id = value
        .pointer_mut(&target.pointer)
        .and_then(|node| node.get_mut("id"));
    if let Some(id) = id.filter(|id| id.as_str() == Some(&old)) {
        *id = Value::from(name);
    }
    debug_assert!(
        value
            .pointer(&target.pointer)
            .is_some_and(|node| word(node, "id") == name)
    );
    document.replace_value(value)
}
