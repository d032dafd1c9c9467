//! Makes fields from the JSON Schema of a format.

use super::View;
use crate::edit::fields::{Choice, Field, FieldKind};
use crate::edit::nodes::{escaped, word};
use serde_json::{Map, Value};

impl View<'_> {
    /// Returns the fields of a map: one for each property of the schema, then one for each other member.
    pub(super) fn by_schema(
        &self,
        schema: &Value,
        rule: Option<&Value>,
        own: Option<&Map<String, Value>>,
        below: &str,
        skipped: &[&str],
    ) -> Vec<Field> {
        let rules = rule.and_then(Value::as_object);
        let known = rules.into_iter().flat_map(|rules| rules.keys());
        let mut keys: Vec<&String> = known.collect();
        for key in own.into_iter().flat_map(|own| own.keys()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let fields = keys
            .into_iter()
            .filter(|key| !skipped.contains(&key.as_str()));
        let fields = fields.map(|key| {
            let rule = rules
                .and_then(|rules| rules.get(key))
                .unwrap_or(&Value::Null);
            let value = own.and_then(|own| own.get(key));
            let (kind, choices) = kind_of(schema, rule, key, value);
            let id = match below {
                "" => key.clone(),
                below => format!("{}.{key}", below.trim_start_matches('/')),
            };
            let label = key.clone();
            let field = Field {
                help: rule
                    .get("description")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                choices: choices.into_iter().map(Choice::of).collect(),
                default: rule.get("default").cloned(),
                ..Field::new(&id, &label, kind)
            };
            self.at(field, &format!("{below}/{}", escaped(key)))
        });
        fields.collect()
    }
}

/// Returns the schema that a `$ref` refers to. A schema without `$ref` is returned itself.
fn resolved<'s>(schema: &'s Value, rule: &'s Value) -> &'s Value {
    let reference = word(rule, "$ref").strip_prefix('#');
    let found = reference.and_then(|pointer| schema.pointer(pointer));
    found.unwrap_or(rule)
}

/// Returns the first alternative of a schema that allows a map.
pub(super) fn object_of<'s>(schema: &'s Value, rule: &'s Value) -> &'s Value {
    let rule = resolved(schema, rule);
    let any = rule
        .get("anyOf")
        .or_else(|| rule.get("oneOf"))
        .and_then(Value::as_array);
    let mut any = any.into_iter().flatten().map(|rule| resolved(schema, rule));
    any.find(|rule| rule.get("properties").is_some())
        .unwrap_or(rule)
}

fn kind_of(
    schema: &Value,
    rule: &Value,
    key: &str,
    value: Option<&Value>,
) -> (FieldKind, Vec<String>) {
    let reference = word(rule, "$ref")
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let rule = resolved(schema, rule);
    let any = rule
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut words = [rule]
        .into_iter()
        .chain(any)
        .filter_map(|rule| rule.get("enum")?.as_array());
    let words = words.next().into_iter().flatten();
    let words: Vec<String> = words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    if !words.is_empty() {
        return (FieldKind::Choice, words);
    }
    let codes = [
        "run", "code", "script", "prompt", "body", "commands", "system",
    ];
    let kind = match (reference.as_str(), word(rule, "type"), value) {
        (_, _, Some(Value::Object(_) | Value::Array(_))) | (_, "object" | "array", _) => {
            FieldKind::Code
        }
        ("condition", ..) => FieldKind::Condition,
        ("duration" | "delay", ..) => FieldKind::Duration,
        (_, "integer" | "number", _) | (_, _, Some(Value::Number(_))) => FieldKind::Number,
        (_, "boolean", _) | (_, _, Some(Value::Bool(_))) => FieldKind::Bool,
        _ if codes.contains(&key) => FieldKind::Code,
        (_, _, Some(Value::String(text))) if text.contains('\n') => FieldKind::Code,
        (_, _, Some(Value::String(text))) if text.starts_with('@') || text.contains("{{") => {
            FieldKind::Expression
        }
        _ if ["timeout", "interval", "delay"].contains(&key) => FieldKind::Duration,
        _ if key == "workflowRef" => FieldKind::File,
        _ => FieldKind::Text,
    };
    (kind, Vec::new())
}
