//! Converts the mappings of a canvas loop to rows of a table in the panel, and rows back to mappings.

use crate::edit::fields::{Choice, Column, Field, FieldKind};
use crate::edit::nodes::word;
use crate::edit::ports::PortOf;
use serde_json::{Value, json};

const BUILTIN: &str = "builtin:";
const OUTER: &str = "outer:";
const PREVIOUS: &str = "previous:";

pub(super) fn builtins<'b>(names: &'b [&'b str]) -> impl Iterator<Item = Choice> + 'b {
    let one = |name: &&str| Choice::called(format!("{BUILTIN}{name}"), *name);
    names.iter().map(one)
}

/// Returns the sources from which an input can have its value.
pub(super) fn sources(outer: &[PortOf], given: &[PortOf], previous: bool) -> Vec<Choice> {
    let outer = outer.iter().map(|port| Choice {
        kind: Some(port.kind.clone()),
        ..Choice::called(
            format!("{OUTER}{}", port.name),
            format!("{} (outer)", port.name),
        )
    });
    let before = given.iter().filter(|_| previous).map(|port| {
        let name = format!("{}.{}", port.node, port.name);
        Choice {
            kind: Some(port.kind.clone()),
            ..Choice::called(format!("{PREVIOUS}{name}"), format!("{name} (previous)"))
        }
    });
    outer
        .chain(before)
        .chain(builtins(&["iteration_count"]))
        .collect()
}

pub(super) fn input_row(mapping: &Value) -> Value {
    let nothing = Value::Null;
    let source = mapping.get("source").unwrap_or(&nothing);
    let target = mapping.get("target").unwrap_or(&nothing);
    let text = match word(source, "type") {
        "outer" => format!("{OUTER}{}", word(source, "name")),
        "previous" => format!(
            "{PREVIOUS}{}.{}",
            word(source, "node"),
            word(source, "output")
        ),
        _ => format!("{BUILTIN}{}", word(source, "name")),
    };
    let iterations = match word(mapping, "iterations") {
        "" => "all",
        word => word,
    };
    json!({
        "source": text,
        "target": format!("{}.{}", word(target, "node"), word(target, "input")),
        "iterations": iterations,
    })
}

pub(super) fn output_row(mapping: &Value) -> Value {
    let source = mapping.get("source").unwrap_or(&Value::Null);
    let text = match word(source, "type") {
        "builtin" => format!("{BUILTIN}{}", word(source, "name")),
        _ => format!("{}.{}", word(source, "node"), word(source, "output")),
    };
    let take = match word(mapping, "take") {
        "" => "last",
        word => word,
    };
    json!({ "source": text, "target": word(mapping, "target"), "take": take })
}

fn port(text: &str) -> Result<(&str, &str), String> {
    text.split_once('.')
        .ok_or_else(|| format!("`{text}` is not a valid port: write `node.port`"))
}

pub(super) fn input_mapping(row: &Value) -> Result<Value, String> {
    let source = word(row, "source");
    let source = if let Some(name) = source.strip_prefix(OUTER) {
        json!({ "type": "outer", "name": name })
    } else if let Some(name) = source.strip_prefix(BUILTIN) {
        json!({ "type": "builtin", "name": name })
    } else {
        let (node, output) = port(source.strip_prefix(PREVIOUS).unwrap_or(source))?;
        json!({ "type": "previous", "node": node, "output": output })
    };
    let (node, input) = port(word(row, "target"))?;
    let mut mapping = json!({ "source": source, "target": { "node": node, "input": input } });
    let iterations = word(row, "iterations");
    if !iterations.is_empty()
        && let Some(members) = mapping.as_object_mut()
    {
        members.insert(String::from("iterations"), Value::from(iterations));
    }
    Ok(mapping)
}

pub(super) fn output_mapping(row: &Value) -> Result<Value, String> {
    let source = word(row, "source");
    let source = match source.strip_prefix(BUILTIN) {
        Some(name) => json!({ "type": "builtin", "name": name }),
        None => {
            let (node, output) = port(source)?;
            json!({ "node": node, "output": output })
        }
    };
    let take = match word(row, "take") {
        "" => "last",
        word => word,
    };
    Ok(json!({ "source": source, "target": word(row, "target"), "take": take }))
}

/// Converts the rows of the panel's table to mappings.
/// A mapping that is not changed stays as the author wrote it.
pub(super) fn mappings(
    old: Option<&Value>,
    rows: &Value,
    row_of: fn(&Value) -> Value,
    mapping_of: fn(&Value) -> Result<Value, String>,
) -> Result<Value, String> {
    let old = old.and_then(Value::as_array);
    let mut old: Vec<(Value, &Value)> = old
        .into_iter()
        .flatten()
        .map(|one| (row_of(one), one))
        .collect();
    let rows = rows.as_array().ok_or("a table is a list of rows")?;
    let mapping = |row: &Value| match old.iter().position(|(known, _)| known == row) {
        Some(place) => Ok(old.remove(place).1.clone()),
        None => mapping_of(row),
    };
    let mapped: Result<Vec<Value>, String> = rows.iter().map(mapping).collect();
    Ok(Value::Array(mapped?))
}

impl Field {
    pub(super) fn columns(self, columns: [(&str, &str, Vec<Choice>); 3]) -> Self {
        let columns = columns.map(|(id, label, choices)| Column {
            id: id.to_owned(),
            label: label.to_owned(),
            kind: if choices.is_empty() {
                FieldKind::Text
            } else {
                FieldKind::Choice
            },
            choices,
        });
        Self {
            columns: columns.into(),
            ..self
        }
    }
}
