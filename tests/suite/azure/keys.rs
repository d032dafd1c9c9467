//! The reader of definitions and the schema for editors know the same keys.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_formats::Caps;
use windlass_model::model::Dialect;
use windlass_source::source::Bundle;

/// The types whose work a handler does.
const HANDLERS: [&str; 5] = [
    "ApiConnection",
    "Function",
    "JavaScriptCode",
    "ServiceProvider",
    "Workflow",
];

/// Returns whether the reader warns of this key as unknown.
fn is_unknown(key: &str, definition: &Value) -> bool {
    let bundle = Bundle::single("keys.json", definition.to_string());
    let (_, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
    let text = diagnostics.render(&bundle, false);
    text.contains(&format!("unknown key `{key}`"))
}

fn keys_of(schema: &Value) -> BTreeSet<&str> {
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect()
}

/// A file with one action, and with a trigger that an answer needs.
fn with_action(action: &Value) -> Value {
    json!({ "definition": {
        "triggers": { "manual": { "type": "Request" } },
        "actions": { "a": action },
    } })
}

/// The differences: `KEY is known only to the schema`, or only to the reader.
fn differences<'k>(
    place: &str,
    keys: impl IntoIterator<Item = &'k str>,
    schema: &BTreeSet<&str>,
    document: impl Fn(&str) -> Value,
) -> Vec<String> {
    let mut found = Vec::new();
    for key in keys {
        match (schema.contains(key), !is_unknown(key, &document(key))) {
            (true, false) => found.push(format!("{place}: only the schema knows {key}")),
            (false, true) => found.push(format!("{place}: only the reader knows {key}")),
            _ => {}
        }
    }
    found
}

#[test]
fn a_definition_has_the_keys_that_its_schema_says() {
    let schema = windlass_formats::json_schema(Dialect::Azure).unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    let action = &schema["$defs"]["action"];
    let types = action["properties"]["type"]["examples"].as_array().unwrap();
    let branches = action["allOf"].as_array().unwrap();
    assert_eq!(types.len(), branches.len());
    let common = keys_of(action);
    let own = branches.iter().map(|branch| keys_of(&branch["then"]));
    let all: BTreeSet<&str> = own.flatten().chain(common.iter().copied()).collect();
    let inputs = branches
        .iter()
        .map(|branch| &branch["then"]["properties"]["inputs"]);
    let all_inputs: BTreeSet<&str> = inputs.flat_map(keys_of).collect();
    let mut found = Vec::new();
    for (kind, branch) in types.iter().zip(branches) {
        let kind = kind.as_str().unwrap();
        let known: BTreeSet<&str> = keys_of(&branch["then"]).union(&common).copied().collect();
        let others = all.iter().copied().filter(|key| *key != "type");
        found.extend(differences(kind, others, &known, |key| {
            with_action(&json!({ "type": kind, key: "x" }))
        }));
        let inputs = &branch["then"]["properties"]["inputs"];
        let known = keys_of(inputs);
        let required = inputs["required"].as_array().into_iter().flatten();
        let required: Map<String, Value> = required
            .map(|name| (name.as_str().unwrap().to_owned(), json!("x")))
            .collect();
        // A handler may have any inputs.
        if !known.is_empty() && !HANDLERS.contains(&kind) {
            let place = format!("inputs of {kind}");
            found.extend(differences(
                &place,
                all_inputs.iter().copied(),
                &known,
                |key| {
                    let mut given = required.clone();
                    given.insert(key.to_owned(), json!("x"));
                    with_action(&json!({ "type": kind, "inputs": given }))
                },
            ));
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
