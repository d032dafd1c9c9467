//! The messages of Python's JSON Schema library for validation errors. The Edge Agent uses these messages. So models
//! that correct an output, and workflows that compare messages, expect the same words.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value as Json;
use windlass_expression::{Value, python_quoted as quoted};

pub(super) fn messages(error: &ValidationError<'_>) -> Vec<String> {
    vec![message(error)]
}

fn message(error: &ValidationError<'_>) -> String {
    let value = repr(error.instance());
    let length = |limit: u64, short: &str| match limit {
        1 => format!("{value} should be non-empty"),
        _ => format!("{value} {short}"),
    };
    let empty = |limit: u64, long: &str| match limit {
        0 => format!("{value} is expected to be empty"),
        _ => format!("{value} {long}"),
    };
    match error.kind() {
        Kind::Required { property } => format!("{} is a required property", repr(property)),
        Kind::Type { kind } => format!("{value} is not of type {}", types(kind)),
        Kind::Enum { options } => format!("{value} is not one of {}", repr(options)),
        Kind::Constant { expected_value } => format!("{} was expected", repr(expected_value)),
        Kind::Minimum { limit } => format!("{value} is less than the minimum of {}", repr(limit)),
        Kind::Maximum { limit } => {
            format!("{value} is greater than the maximum of {}", repr(limit))
        }
        Kind::ExclusiveMinimum { limit } => {
            let limit = repr(limit);
            format!("{value} is less than or equal to the minimum of {limit}")
        }
        Kind::ExclusiveMaximum { limit } => {
            let limit = repr(limit);
            format!("{value} is greater than or equal to the maximum of {limit}")
        }
        Kind::MinLength { limit } | Kind::MinItems { limit } => length(*limit, "is too short"),
        Kind::MaxLength { limit } | Kind::MaxItems { limit } => empty(*limit, "is too long"),
        Kind::MinProperties { limit } => length(*limit, "does not have enough properties"),
        Kind::MaxProperties { limit } => empty(*limit, "has too many properties"),
        Kind::Pattern { pattern } => {
            let pattern = repr(&Json::String(pattern.clone()));
            format!("{value} does not match {pattern}")
        }
        Kind::UniqueItems => format!("{value} has non-unique elements"),
        Kind::AdditionalProperties { unexpected } => {
            let mut names = unexpected.clone();
            names.sort();
            let shown: Vec<String> = names
                .into_iter()
                .map(|name| repr(&Json::String(name)))
                .collect();
            let verb = if shown.len() == 1 { "was" } else { "were" };
            let shown = shown.join(", ");
            format!("Additional properties are not allowed ({shown} {verb} unexpected)")
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("{value} is not valid under any of the given schemas")
        }
        Kind::Not { schema } => format!("{value} should not be valid under {}", repr(schema)),
        Kind::FalseSchema => format!("False schema does not allow {value}"),
        _ => error.to_string(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => format!("'{one}'"),
        TypeKind::Multiple(many) => {
            let names: Vec<String> = many.iter().map(|one| format!("'{one}'")).collect();
            names.join(", ")
        }
    }
}

fn repr(value: &Json) -> String {
    match value {
        Json::Null => String::from("None"),
        Json::Bool(true) => String::from("True"),
        Json::Bool(false) => String::from("False"),
        Json::Number(number) => number.to_string(),
        Json::String(text) => quoted(text),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(repr).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(key, member)| format!("{}: {}", quoted(key), repr(member)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Returns a value as Python writes it.
pub(crate) fn repr_of(value: &Value) -> String {
    repr(&serde_json::to_value(value).unwrap_or_default())
}
