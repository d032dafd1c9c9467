//! A value that is guessed: from what is read of it, what it is given to, or a JSON Schema.

use super::reads::{MAX_DEPTH, Step, quoted};
use crate::expression::Value;
use crate::model::Name;
use crate::source::{Entry, Kind, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

const TIME: &str = "2026-01-01T00:00:00Z";

/// A value that grows with each expression that reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Shape {
    /// Nobody said anything of it.
    #[default]
    Unknown,
    Leaf(Value),
    /// With whether an item is read by its place.
    List(Box<Shape>, bool),
    Map(BTreeMap<String, Shape>),
}

impl Shape {
    pub(super) fn at(&self, path: &[Step]) -> Option<&Self> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        match (step, self) {
            (Step::Key(key), Self::Map(members)) => members.get(key)?.at(rest),
            (Step::Item, Self::List(item, _)) => item.at(rest),
            _ => None,
        }
    }

    /// Adds what one expression reads: a path, and what stands at its end.
    pub(super) fn grow(&mut self, path: &[Step], leaf: Shape) {
        let Some((step, rest)) = path.split_first() else {
            return self.merge(leaf);
        };
        match step {
            Step::Key(key) => {
                if !matches!(self, Self::Map(_)) {
                    *self = Self::Map(BTreeMap::new());
                }
                if let Self::Map(members) = self {
                    members.entry(key.clone()).or_default().grow(rest, leaf);
                }
            }
            Step::Item => {
                if !matches!(self, Self::List(..)) {
                    *self = Self::List(Box::default(), true);
                }
                if let Self::List(item, needed) = self {
                    *needed = true;
                    item.grow(rest, leaf);
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Unknown) | (Self::Map(_) | Self::List(..), Self::Leaf(_)) => {}
            (Self::Map(own), Self::Map(others)) => {
                for (key, other) in others {
                    own.entry(key).or_default().merge(other);
                }
            }
            (Self::List(own, needed), Self::List(other, also)) => {
                *needed |= also;
                own.merge(*other);
            }
            (Self::Leaf(own), Self::Leaf(other)) => {
                let length = |value: &Value| value.as_str().map_or(0, str::len);
                if own.as_str() == Some("text") || length(own) < length(&other) {
                    *own = other;
                }
            }
            (_, other) => *self = other,
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Unknown => Value::text("text"),
            Self::Leaf(value) => value.clone(),
            Self::List(item, true) => Value::array(vec![item.value()]),
            Self::List(_, false) => Value::array(Vec::new()),
            Self::Map(members) => {
                let members = members
                    .iter()
                    .map(|(key, shape)| (Name::from(key.as_str()), shape.value()));
                Value::Object(Arc::new(members.collect()))
            }
        }
    }
}

pub(super) fn typed(kind: &str) -> Shape {
    match kind {
        "array" => Shape::List(Box::default(), false),
        "integer" | "float" => Shape::Leaf(Value::Int(1)),
        "boolean" => Shape::Leaf(Value::Bool(false)),
        "object" => Shape::Map(BTreeMap::new()),
        _ => Shape::Unknown,
    }
}

/// What a function takes that is called with the value first.
pub(super) fn called(before: &str, rest: &str) -> Shape {
    let list = || Shape::List(Box::default(), false);
    let Some(call) = before.strip_suffix('(') else {
        return Shape::Unknown;
    };
    let start = call
        .rfind(|c: char| !c.is_ascii_alphanumeric())
        .map_or(0, |at| at + 1);
    let function = call.get(start..).unwrap_or_default().to_ascii_lowercase();
    match function.as_str() {
        "first" | "last" | "join" | "skip" | "take" | "union" | "intersection" | "reverse"
        | "chunk" => list(),
        "length" => Shape::Unknown,
        "int" | "float" | "add" | "sub" | "mul" | "div" | "mod" | "greater" | "less"
        | "greaterorequals" | "lessorequals" | "range" => Shape::Leaf(Value::Int(1)),
        "bool" => Shape::Leaf(Value::Bool(true)),
        "json" => Shape::Leaf(Value::text("{}")),
        "xml" => Shape::Leaf(Value::text("<a/>")),
        "base64tostring" | "base64tobinary" | "decodebase64" => {
            Shape::Leaf(Value::text("dGV4dA=="))
        }
        name if [
            "date", "days", "hours", "minutes", "seconds", "ticks", "time", "utc",
        ]
        .iter()
        .any(|part| name.contains(part)) =>
        {
            Shape::Leaf(Value::text(TIME))
        }
        // What ends a loop or opens a branch is what it is compared with.
        "equals" if !call.to_ascii_lowercase().ends_with("not(equals") => compared(rest),
        // Long enough for the parts that are asked for.
        "split" => match rest.trim_start().strip_prefix(',').and_then(quoted) {
            Some((by, _)) => Shape::Leaf(Value::text(vec!["text"; 16].join(by))),
            None => Shape::Leaf(Value::text("text")),
        },
        "substring" => Shape::Leaf(Value::text("text/".repeat(16))),
        "tolower" | "toupper" | "replace" | "trim" | "startswith" | "endswith" | "indexof"
        | "lastindexof" | "uricomponent" | "encodeuricomponent" => Shape::Leaf(Value::text("text")),
        _ => Shape::Unknown,
    }
}

/// The constant behind a comma.
fn compared(rest: &str) -> Shape {
    let Some(rest) = rest.trim_start().strip_prefix(',') else {
        return Shape::Unknown;
    };
    let rest = rest.trim_start();
    if let Some((text, _)) = rest
        .strip_prefix('\'')
        .and_then(|text| text.split_once('\''))
    {
        return Shape::Leaf(Value::text(text));
    }
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default();
    Value::from_json(word).map_or(Shape::Unknown, Shape::Leaf)
}

/// A value that a JSON Schema takes.
pub(super) fn example(schema: &Node, depth: usize) -> Shape {
    if depth > MAX_DEPTH {
        return Shape::Unknown;
    }
    if let Some(Kind::Array(items)) = schema.get("enum").map(|node| &node.kind)
        && let Some(first) = items.first().and_then(Node::as_str)
    {
        return Shape::Leaf(Value::text(first));
    }
    let kind = schema.get("type").and_then(|kind| match &kind.kind {
        Kind::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Node::as_str);
            kinds.find(|kind| *kind != "null")
        }
        _ => kind.as_str(),
    });
    let properties = schema.get("properties").and_then(Node::entries);
    match (kind, properties) {
        (Some("object") | None, Some(entries)) => {
            let member = |entry: &Entry| (entry.key.clone(), example(&entry.value, depth + 1));
            Shape::Map(entries.iter().map(member).collect())
        }
        (Some("object"), None) => Shape::Map(BTreeMap::new()),
        (Some("array"), _) => {
            let item = schema.get("items");
            let item = item.map_or(Shape::Unknown, |item| example(item, depth + 1));
            Shape::List(Box::new(item), false)
        }
        (Some("integer" | "number"), _) => Shape::Leaf(Value::Int(1)),
        (Some("boolean"), _) => Shape::Leaf(Value::Bool(false)),
        (Some("string"), _) => {
            let format = schema.get("format").and_then(Node::as_str);
            let is_time = format.is_some_and(|format| format.starts_with("date"));
            Shape::Leaf(Value::text(if is_time { TIME } else { "text" }))
        }
        (Some("null"), _) => Shape::Leaf(Value::Null),
        _ => Shape::Unknown,
    }
}
