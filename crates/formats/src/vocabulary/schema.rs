//! Makes JSON Schemas (draft 7) from the vocabulary.

use super::{Case, Definition, Key, Map, RequiredSets, Type, UnknownKeys};
use serde_json::{Map as Object, Value as Json, json};

/// Makes the schema of a type.
pub fn schema_of(value: &Type) -> Json {
    match *value {
        Type::Any => json!({}),
        Type::Json([kind]) => json!({ "type": kind }),
        Type::Json(kinds) => json!({ "type": kinds }),
        Type::NonEmptyText => json!({ "type": "string", "minLength": 1 }),
        Type::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        Type::Integer(from, None) => json!({ "type": "integer", "minimum": from }),
        Type::Integer(from, Some(to)) => {
            json!({ "type": "integer", "minimum": from, "maximum": to })
        }
        Type::Words(words) => json!({ "enum": words }),
        Type::AnyCase(words) => any_case(words, None),
        Type::AnyCaseOrExpression(words) => {
            any_case(words, Some(schema_of(&Type::Def("expression"))))
        }
        Type::Exactly(value) => json!({ "const": parsed(value) }),
        Type::Def(name) => json!({ "$ref": format!("#/$defs/{name}") }),
        Type::ListOf(item) => json!({ "type": "array", "items": schema_of(item) }),
        Type::ListOrNull(item) => json!({ "type": ["array", "null"], "items": schema_of(item) }),
        Type::MapOf(member) => {
            json!({ "type": "object", "additionalProperties": schema_of(member) })
        }
        Type::Map(map) => merge(json!({ "type": "object" }), members(map)),
        Type::MapOrNull(map) => merge(json!({ "type": ["object", "null"] }), members(map)),
        Type::AnyOf(types) => json!({ "anyOf": types.iter().map(schema_of).collect::<Vec<_>>() }),
        Type::OneOf(types) => json!({ "oneOf": types.iter().map(schema_of).collect::<Vec<_>>() }),
        Type::About(about, value) => merge(json!({ "description": about }), schema_of(value)),
        Type::WithRules(rules, value) => merge(schema_of(value), parsed(rules)),
    }
}

/// Makes the schema of a map, without its type.
pub(crate) fn members(map: &Map) -> Json {
    let keys = || map.keys.iter().flat_map(|group| group.iter());
    let mut schema = Object::new();
    let required = keys().filter(|key| key.required).map(|key| key.name);
    let required: Vec<&str> = required.chain(map.required.iter().copied()).collect();
    if !required.is_empty() {
        schema.insert(String::from("required"), json!(required));
    }
    match map.unknown_keys {
        UnknownKeys::Own => {
            schema.insert(String::from("additionalProperties"), json!(false));
            schema.insert(String::from("patternProperties"), json!({ "^x-": {} }));
        }
        UnknownKeys::None => _ = schema.insert(String::from("additionalProperties"), json!(false)),
        UnknownKeys::Allowed => {
            _ = schema.insert(String::from("additionalProperties"), json!(true))
        }
        UnknownKeys::Any => {}
    }
    let properties = keys().map(|key| (key.name.to_owned(), property(key)));
    let properties: Object<String, Json> = properties.collect();
    if !properties.is_empty() {
        schema.insert(String::from("properties"), Json::Object(properties));
    }
    let ways = |ways: &[&[&str]]| -> Vec<Json> {
        ways.iter()
            .map(|keys| json!({ "required": keys }))
            .collect()
    };
    match map.required_sets {
        RequiredSets::One => {}
        RequiredSets::Any(all) => _ = schema.insert(String::from("anyOf"), json!(ways(all))),
        RequiredSets::Exactly(all) => _ = schema.insert(String::from("oneOf"), json!(ways(all))),
    }
    let cases: Vec<Json> = map.cases.iter().map(case).collect();
    if !cases.is_empty() {
        schema.insert(String::from("allOf"), json!(cases));
    }
    merge(Json::Object(schema), (map.rules)())
}

fn case(case: &Case) -> Json {
    let is = json!({ case.key: { "const": case.is } });
    json!({ "if": { "properties": is, "required": [case.key] }, "then": members(&case.then) })
}

fn property(key: &Key) -> Json {
    let mut schema = Object::new();
    if !key.description.is_empty() {
        schema.insert(String::from("description"), json!(key.description));
    }
    let mut schema = merge(Json::Object(schema), schema_of(&key.value));
    if let (Json::Object(schema), Some(default)) = (&mut schema, key.default) {
        schema.insert(String::from("default"), parsed(default));
    }
    schema
}

/// Makes a schema document whose root has these members.
pub fn document(id: &str, root: Json, definitions: &[Definition]) -> Object<String, Json> {
    let head = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": format!("https://windlass.example/schemas/{id}.json"),
    });
    let known = definitions
        .iter()
        .map(|one| (one.name.to_owned(), schema_of(&one.value)));
    let known: Object<String, Json> = known.collect();
    let Json::Object(mut schema) = merge(head, root) else {
        return Object::new();
    };
    schema.insert(String::from("$defs"), Json::Object(known));
    schema
}

/// Adds the members of one schema to another.
pub(crate) fn merge(schema: Json, more: Json) -> Json {
    match (schema, more) {
        (Json::Object(mut schema), Json::Object(more)) => {
            schema.extend(more);
            Json::Object(schema)
        }
        (schema, _) => schema,
    }
}

/// Parses a JSON text of the vocabulary. An empty text means null.
fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

fn any_case(words: &[&str], further: Option<Json>) -> Json {
    let all = words
        .iter()
        .map(|word| letters(word))
        .collect::<Vec<_>>()
        .join("|");
    let known = [
        json!({ "enum": words }),
        json!({ "pattern": format!("^(?:{all})$") }),
    ];
    let known: Vec<Json> = known.into_iter().chain(further).collect();
    json!({ "type": "string", "anyOf": known })
}

/// Makes the schema of the key `type` of an action, with these words.
pub(crate) fn types(words: &[&str]) -> Json {
    merge(json!({ "examples": words }), any_case(words, None))
}

/// Makes the schema of one word, in upper or lower case.
pub(crate) fn word(word: &str) -> Json {
    json!({ "type": "string", "pattern": format!("^{}$", letters(word)) })
}

/// Makes a regular expression for a word in upper or lower case. JSON Schema has no flag for this.
fn letters(word: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphabetic() {
        true => format!(
            "[{}{}]",
            letter.to_ascii_uppercase(),
            letter.to_ascii_lowercase()
        ),
        false => letter.to_string(),
    };
    word.chars().map(letter).collect()
}

/// Maximum length in bytes of a line of a schema's text.
const WIDTH: usize = 140;

/// Formats a schema as text. A value that fits into one line is written on one line.
pub(crate) fn text(schema: &Json) -> String {
    let mut text = String::new();
    write(schema, 0, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value at a depth. `before` is the length in bytes of the text before it on the line.
fn write(value: &Json, depth: usize, before: usize, text: &mut String) {
    let flat = value.to_string();
    let is_short = 2 * depth + before + flat.len() <= WIDTH;
    let indent = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    match value {
        Json::Object(members) if !is_short => {
            text.push('{');
            for (number, (name, member)) in members.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                indent(text, depth + 1);
                let name = format!("{}: ", json!(name));
                text.push_str(&name);
                write(member, depth + 1, name.len(), text);
            }
            indent(text, depth);
            text.push('}');
        }
        Json::Array(items) if !is_short => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                indent(text, depth + 1);
                write(item, depth + 1, 0, text);
            }
            indent(text, depth);
            text.push(']');
        }
        _ => text.push_str(&flat),
    }
}
