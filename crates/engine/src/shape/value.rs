//! Guesses a value from the members that expressions read, from the function that it is passed to, or from a JSON
//! Schema.

use super::reads::{MAX_DEPTH, Step, quoted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Node};

const TIME: &str = "2026-01-01T00:00:00Z";
pub(super) const ZONE: &str = "UTC";

/// The form of a value. It grows with each expression that reads the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum InferredSchema {
    /// Nothing is known of the value.
    #[default]
    Unknown,
    Leaf(Value),
    /// A value from a JSON Schema. Expressions that read the value do not change its type.
    Firm(Value),
    /// Text that is JSON of this value.
    Json(Box<InferredSchema>),
    /// Text that is base64 of this value.
    Base64(Box<InferredSchema>),
    /// Text that is XML of this value.
    Xml(Box<InferredSchema>),
    /// A list, with the form of its items, and whether it must have an item.
    List(Box<InferredSchema>, bool),
    Map(BTreeMap<String, InferredSchema>),
}

impl InferredSchema {
    pub(super) fn at(&self, path: &[Step]) -> Option<&Self> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        match (step, self) {
            (Step::Key(key), Self::Map(members)) => members.get(key)?.at(rest),
            (Step::Item, Self::List(item, _)) => item.at(rest),
            (Step::Json, Self::Json(inner))
            | (Step::Base64, Self::Base64(inner))
            | (Step::Xml, Self::Xml(inner)) => inner.at(rest),
            _ => None,
        }
    }

    /// Adds what one expression reads: a path, and the form at its end.
    pub(super) fn grow(&mut self, path: &[Step], leaf: InferredSchema) {
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
            Step::Json => {
                if !matches!(self, Self::Json(_)) {
                    // If members are known, retain them, even if an expression also parses the text of the object.
                    let known = matches!(self, Self::Map(_) | Self::List(..));
                    let inner = if known {
                        std::mem::take(self)
                    } else {
                        Self::Unknown
                    };
                    *self = Self::Json(Box::new(inner));
                }
                if let Self::Json(inner) = self {
                    inner.grow(rest, leaf);
                }
            }
            Step::Base64 => {
                if !matches!(self, Self::Base64(_)) {
                    *self = Self::Base64(Box::default());
                }
                if let Self::Base64(inner) = self {
                    inner.grow(rest, leaf);
                }
            }
            Step::Xml => {
                if !matches!(self, Self::Xml(_)) {
                    *self = Self::Xml(Box::default());
                }
                if let Self::Xml(inner) = self {
                    inner.grow(rest, leaf);
                }
            }
            // The caller has resolved all computed steps.
            Step::Computed(_) => {}
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Unknown) | (Self::Map(_) | Self::List(..), Self::Leaf(_)) => {}
            (Self::Json(_) | Self::Base64(_) | Self::Xml(_), Self::Leaf(_) | Self::Firm(_)) => {}
            (Self::Json(own), Self::Json(other))
            | (Self::Base64(own), Self::Base64(other))
            | (Self::Xml(own), Self::Xml(other)) => own.merge(*other),
            (Self::Json(own), other @ (Self::Map(_) | Self::List(..))) => own.merge(other),
            (Self::Firm(own), Self::Leaf(other) | Self::Firm(other)) => {
                if own.kind() == other.kind() && is_any(own) {
                    *own = other;
                }
            }
            (Self::Leaf(own), Self::Firm(other)) => {
                let better = own.kind() == other.kind() && !is_any(own);
                let value = if better { own.clone() } else { other };
                *self = Self::Firm(value);
            }
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
                let is_number = own.as_int() == Some(1) && other.as_int().is_some();
                if own.as_str() == Some("text") || is_number || length(own) < length(&other) {
                    *own = other;
                }
            }
            (_, other) => *self = other,
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Unknown => Value::text("text"),
            Self::Leaf(value) | Self::Firm(value) => value.clone(),
            Self::Json(inner) => Value::text(inner.as_json().to_json()),
            Self::Base64(inner) => Value::text(STANDARD.encode(inner.value().to_text())),
            Self::Xml(inner) => {
                // An XML document is read as JSON, so its content has the form of that JSON.
                let inner = match &**inner {
                    Self::Json(inner) => inner,
                    _ => inner,
                };
                Value::text(xml(&inner.as_json()))
            }
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

/// Returns whether a value is only the default example of its type. Such a value may be replaced by a better one.
fn is_any(value: &Value) -> bool {
    value.as_str() == Some("text") || value.as_int() == Some(1)
}

impl InferredSchema {
    /// Returns the value as a JSON document: an object if nothing is known of the value.
    fn as_json(&self) -> Value {
        match self {
            Self::Unknown => Value::object(Object::new()),
            known => known.value(),
        }
    }
}

/// Returns an XML document whose elements are the members of this value.
fn xml(value: &Value) -> String {
    let mut out = String::new();
    match value.as_object() {
        Some(map) if map.len() == 1 => element_content(&mut out, value, 0),
        _ => {
            out.push_str("<root>");
            element_content(&mut out, value, 0);
            out.push_str("</root>");
        }
    }
    out
}

/// Appends members as elements. Keys that cannot be names of elements are omitted.
fn element_content(out: &mut String, value: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter() {
                let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
                if !key.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    || !key.chars().all(plain)
                {
                    continue;
                }
                let items = match inner {
                    Value::Array(items) => items.as_slice(),
                    one => std::slice::from_ref(one),
                };
                for item in items {
                    out.push_str(&format!("<{key}>"));
                    element_content(out, item, depth + 1);
                    out.push_str(&format!("</{key}>"));
                }
            }
        }
        Value::String(text) => {
            out.push_str(&text.replace('&', "&amp;").replace('<', "&lt;"));
        }
        Value::Null | Value::Array(_) => {}
        other => out.push_str(&other.to_json()),
    }
}

pub(super) fn typed(kind: &str) -> InferredSchema {
    match kind {
        "array" => InferredSchema::List(Box::default(), false),
        "integer" | "float" => InferredSchema::Leaf(Value::Int(1)),
        "boolean" => InferredSchema::Leaf(Value::Bool(false)),
        "object" => InferredSchema::Map(BTreeMap::new()),
        _ => InferredSchema::Unknown,
    }
}

/// Returns what the function that encloses a value accepts. `before` and `rest` are the text before and after the
/// value.
pub(super) fn called(before: &str, rest: &str) -> InferredSchema {
    let list = || InferredSchema::List(Box::default(), false);
    let Some((call, earlier)) = enclosing(before) else {
        return InferredSchema::Unknown;
    };
    let start = call
        .rfind(|c: char| !c.is_ascii_alphanumeric())
        .map_or(0, |at| at + 1);
    let function = call.get(start..).unwrap_or_default().to_ascii_lowercase();
    let first = earlier.is_empty();
    match function.as_str() {
        "greater" | "less" | "greaterorequals" | "lessorequals" => {
            let other = if first {
                rest.trim_start().trim_start_matches(',')
            } else {
                earlier
            };
            ordered(other)
        }
        // Use the value that the result is compared with: it ends a loop or selects a branch.
        "equals" if !call.to_ascii_lowercase().ends_with("not(equals") => match first {
            true => compared(rest),
            false => constant(earlier),
        },
        // The dividend is large, so that the quotient is not zero.
        "div" if first => InferredSchema::Leaf(Value::Int(1000)),
        "add" | "sub" | "mul" | "div" | "mod" | "range" | "min" | "max" | "rand" => {
            InferredSchema::Leaf(Value::Int(1))
        }
        "datedifference" => InferredSchema::Leaf(Value::text(TIME)),
        name if name.starts_with("add") && !first && name != "addproperty" => {
            InferredSchema::Leaf(Value::Int(1))
        }
        "union" | "intersection" => list(),
        name if name.starts_with("convert") && !first => InferredSchema::Leaf(Value::text(ZONE)),
        _ if !first => InferredSchema::Unknown,
        "first" | "last" | "join" | "skip" | "take" | "reverse" | "chunk" | "sort" => list(),
        "length" => InferredSchema::Unknown,
        "int" | "float" | "decimal" | "formatnumber" => InferredSchema::Leaf(Value::Int(1)),
        "bool" | "not" | "if" => InferredSchema::Leaf(Value::Bool(true)),
        "json" => InferredSchema::Json(Box::default()),
        "xml" | "xpath" => InferredSchema::Xml(Box::default()),
        "base64tostring" | "base64tobinary" | "decodebase64" => {
            InferredSchema::Base64(Box::default())
        }
        "datauritobinary" | "datauritostring" | "decodedatauri" => {
            InferredSchema::Leaf(Value::text("data:text/plain;base64,dGV4dA=="))
        }
        "setproperty" | "addproperty" | "removeproperty" => InferredSchema::Map(BTreeMap::new()),
        name if name.starts_with("uri") && !name.starts_with("uricomponent") => {
            InferredSchema::Leaf(Value::text("https://example.com/text"))
        }
        name if [
            "date", "days", "hours", "minutes", "seconds", "ticks", "time", "utc", "startof",
            "dayof",
        ]
        .iter()
        .any(|part| name.contains(part)) =>
        {
            InferredSchema::Leaf(Value::text(TIME))
        }
        // The text has enough separators for the parts that expressions read.
        "split" => match rest.trim_start().strip_prefix(',').and_then(quoted) {
            Some((by, _)) if !by.is_empty() => {
                InferredSchema::Leaf(Value::text(vec!["text"; 16].join(&by)))
            }
            _ => InferredSchema::Leaf(Value::text("text")),
        },
        // `substring(x, 11, …)` extracts the hours and minutes of a time, so the text is a time.
        "substring" if rest.replace(' ', "").starts_with(",11,") => {
            InferredSchema::Leaf(Value::text(TIME))
        }
        "substring" => InferredSchema::Leaf(Value::text("text/".repeat(16))),
        "replace" | "trim" | "startswith" | "endswith" | "indexof" | "lastindexof"
        | "uricomponent" | "encodeuricomponent" => InferredSchema::Leaf(Value::text("text")),
        _ => InferredSchema::Unknown,
    }
}

/// If this text ends within the arguments of a call, returns the text up to the call's name, and the argument before
/// the last comma.
fn enclosing(before: &str) -> Option<(&str, &str)> {
    let before = before.trim_end();
    if let Some(call) = before.strip_suffix('(') {
        return Some((call, ""));
    }
    let arguments = before.strip_suffix(',')?;
    let mut depth = 0_usize;
    let mut is_quoted = false;
    let mut end = arguments.len();
    let mut last = None;
    for (at, letter) in arguments.char_indices().rev() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            ')' | ']' => depth += 1,
            '(' if depth == 0 => {
                let argument = arguments.get(at + 1..end)?;
                let argument = last.unwrap_or(argument);
                return Some((arguments.get(..at)?, argument));
            }
            '(' | '[' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 && last.is_none() => {
                last = arguments.get(at + 1..end);
                end = at;
            }
            _ => {}
        }
    }
    None
}

/// Returns the form of a value that is compared by order (`less`, `greater`) with `other`: a time, text or a number.
pub(super) fn ordered(other: &str) -> InferredSchema {
    let other = other.trim().trim_start_matches('@');
    if let Some(text) = other.strip_prefix('\'') {
        let text = text.split('\'').next().unwrap_or_default();
        return InferredSchema::Leaf(Value::text(text));
    }
    let lower = other.to_ascii_lowercase();
    let gives_time = [
        "utcnow(",
        "adddays(",
        "addhours(",
        "addminutes(",
        "addseconds(",
    ];
    let more = [
        "addtotime(",
        "subtractfromtime(",
        "getpasttime(",
        "getfuturetime(",
    ];
    let still = ["formatdatetime(", "startof", "convert", "parsedatetime("];
    let mut all = gives_time.iter().chain(&more).chain(&still);
    match all.any(|function| lower.starts_with(function)) {
        true => InferredSchema::Leaf(Value::text(TIME)),
        false => InferredSchema::Leaf(Value::Int(1)),
    }
}

/// Returns the form of a constant that a call compares its value with.
fn constant(text: &str) -> InferredSchema {
    compared(&format!(",{text}"))
}

/// Returns the form of the constant after a comma, with which a call compares its value.
fn compared(rest: &str) -> InferredSchema {
    let Some(rest) = rest.trim_start().strip_prefix(',') else {
        return InferredSchema::Unknown;
    };
    let rest = rest.trim_start();
    if let Some((text, _)) = rest
        .strip_prefix('\'')
        .and_then(|text| text.split_once('\''))
    {
        return InferredSchema::Leaf(Value::text(text));
    }
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default();
    Value::from_json(word).map_or(InferredSchema::Unknown, InferredSchema::Leaf)
}

/// Returns an example value for a JSON Schema.
pub(super) fn example(schema: &Node, depth: usize) -> InferredSchema {
    if depth > MAX_DEPTH {
        return InferredSchema::Unknown;
    }
    if let Some(only) = schema.get("const") {
        return InferredSchema::Firm(only.to_value());
    }
    if let Some(Kind::Array(items)) = schema.get("enum").map(|node| &node.kind) {
        let first = items.iter().find(|item| !matches!(item.kind, Kind::Null));
        if let Some(first) = first.or(items.first()) {
            return InferredSchema::Firm(first.to_value());
        }
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        let Some(Kind::Array(choices)) = schema.get(choice).map(|node| &node.kind) else {
            continue;
        };
        if schema.get("type").is_some() || schema.get("properties").is_some() {
            break;
        }
        let mut shape = InferredSchema::Unknown;
        for one in choices {
            shape.merge(example(one, depth + 1));
            if choice != "allOf" && shape != InferredSchema::Unknown {
                break;
            }
        }
        return shape;
    }
    let kind = schema.get("type").and_then(|kind| match &kind.kind {
        Kind::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Node::as_str);
            kinds.find(|kind| *kind != "null")
        }
        _ => kind.as_str(),
    });
    let number = |key: &str| match schema.get(key).map(|node| &node.kind) {
        Some(Kind::Int(number)) => Some(*number),
        _ => None,
    };
    let properties = schema.get("properties").and_then(Node::entries);
    match (kind, properties) {
        (Some("object") | None, Some(entries)) => {
            let member = |entry: &Entry| {
                let key = unescaped(&entry.key).to_owned();
                (key, example(&entry.value, depth + 1))
            };
            let mut members: BTreeMap<String, InferredSchema> =
                entries.iter().map(member).collect();
            if let Some(Kind::Array(required)) = schema.get("required").map(|node| &node.kind) {
                for key in required.iter().filter_map(Node::as_str) {
                    members.entry(unescaped(key).to_owned()).or_default();
                }
            }
            InferredSchema::Map(members)
        }
        (Some("object"), None) => InferredSchema::Map(BTreeMap::new()),
        (Some("array"), _) => {
            let item = schema.get("items");
            let item = item.map_or(InferredSchema::Unknown, |item| example(item, depth + 1));
            let needed = number("minItems").is_some_and(|least| least > 0);
            InferredSchema::List(Box::new(item), needed)
        }
        (Some("integer" | "number"), _) => {
            InferredSchema::Firm(Value::Int(number("minimum").unwrap_or(1)))
        }
        (Some("boolean"), _) => InferredSchema::Firm(Value::Bool(false)),
        (Some("string"), _) => {
            let format = schema.get("format").and_then(Node::as_str);
            let text = match format {
                Some("date") => "2026-01-01",
                Some("time") => "00:00:00Z",
                Some(format) if format.starts_with("date") => TIME,
                Some("uuid") => "00000000-0000-4000-8000-000000000000",
                Some("email") => "text@example.com",
                Some("uri" | "url") => "https://example.com/text",
                Some("ipv4") => "192.0.2.1",
                _ => "text",
            };
            let least = number("minLength").and_then(|least| usize::try_from(least).ok());
            let times = least.unwrap_or(0).min(MAX_LENGTH).div_ceil(4).max(1);
            InferredSchema::Firm(Value::text(match text {
                "text" => text.repeat(times),
                other => other.to_owned(),
            }))
        }
        (Some("null"), _) => InferredSchema::Firm(Value::Null),
        _ => InferredSchema::Unknown,
    }
}

/// Maximum length of an example text, whatever minimum a schema requires.
const MAX_LENGTH: usize = 4096;

/// Returns the key that a definition means: two `@` at its beginning mean one.
fn unescaped(key: &str) -> &str {
    match key.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => rest,
        _ => key,
    }
}
