//! What an answer must look like for the expressions that read it: guessed from their text, so that
//! a file of stubs is a good start. A wrong guess is only a worse start.

use crate::expression::{Object, Value};
use crate::model::Name;
use crate::source::{Entry, Kind, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How deep paths and schemas are followed.
const MAX_DEPTH: usize = 24;
const TIME: &str = "2026-01-01T00:00:00Z";

/// A value that grows with each expression that reads it.
#[derive(Clone, Debug, Default, PartialEq)]
enum Shape {
    /// Nobody said anything of it.
    #[default]
    Unknown,
    Leaf(Value),
    /// With whether an item is read by its place.
    List(Box<Shape>, bool),
    Map(BTreeMap<String, Shape>),
}

/// What the expressions of a definition read.
#[derive(Default)]
pub(super) struct Shapes {
    /// The outputs of actions, by name in lower case.
    actions: BTreeMap<String, Shape>,
    /// What the trigger delivers.
    trigger: Shape,
}

impl Shapes {
    /// Of the strings of a file.
    pub fn of(node: &Node) -> Self {
        let mut shapes = Self::default();
        shapes.walk(node, "", None, 0);
        shapes
    }

    /// The body that an action should give.
    pub fn body(&self, action: &str) -> Value {
        let outputs = self.actions.get(&action.to_lowercase());
        let body = match outputs {
            Some(Shape::Map(members)) => members.get("body"),
            _ => None,
        };
        match body {
            None | Some(Shape::Unknown) => empty(),
            Some(body) => body.value(),
        }
    }

    /// The body that a trigger should deliver; none when nothing reads it.
    pub fn trigger_body(&self) -> Option<Value> {
        match &self.trigger {
            Shape::Map(members) => match members.get("body")? {
                Shape::Unknown => Some(empty()),
                body => Some(body.value()),
            },
            _ => None,
        }
    }

    fn walk(&mut self, node: &Node, key: &str, around: Option<&Node>, depth: usize) {
        if depth > 100 {
            return;
        }
        match &node.kind {
            Kind::String(text) => self.read(&text.text, key, around),
            Kind::Array(items) => {
                for item in items {
                    self.walk(item, key, around, depth + 1);
                }
            }
            Kind::Object(entries) => {
                for Entry { key, value, .. } in entries {
                    if key == "triggers" {
                        self.read_triggers(value);
                    }
                    self.walk(value, key, Some(node), depth + 1);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
        }
    }

    /// What a trigger says that it delivers.
    fn read_triggers(&mut self, triggers: &Node) {
        for entry in triggers.entries().unwrap_or_default() {
            let inputs = entry.value.get_any_case("inputs");
            let schema = inputs.and_then(|inputs| inputs.get_any_case("schema"));
            if let Some(schema) = schema.filter(|schema| schema.get("type").is_some()) {
                let body = [Step::Key(String::from("body"))];
                self.trigger.grow(&body, example(schema, 0));
            }
        }
    }

    /// Looks for what a text reads.
    fn read(&mut self, text: &str, key: &str, around: Option<&Node>) {
        let lower = text.to_ascii_lowercase();
        let roots = [
            ("body(", Some("body")),
            ("outputs(", None),
            ("triggerbody()", Some("body")),
            ("triggeroutputs()", None),
        ];
        for (word, inside) in roots {
            for (at, _) in lower.match_indices(word) {
                let before = text.get(..at).unwrap_or_default();
                if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                let after = text.get(at + word.len()..).unwrap_or_default();
                let (action, after) = match word.ends_with("()") {
                    true => (None, after),
                    false => {
                        let Some(rest) = after.trim_start().strip_prefix('\'') else {
                            continue;
                        };
                        let Some((name, rest)) = rest.split_once('\'') else {
                            continue;
                        };
                        let Some(rest) = rest.trim_start().strip_prefix(')') else {
                            continue;
                        };
                        (Some(name), rest)
                    }
                };
                let (mut path, rest) = path(after);
                if let Some(inside) = inside {
                    path.insert(0, Step::Key(inside.to_owned()));
                }
                let leaf = leaf(before, rest, key, around);
                let root = match action {
                    Some(name) => self.actions.entry(name.to_lowercase()).or_default(),
                    None => &mut self.trigger,
                };
                root.grow(&path, leaf);
            }
        }
    }
}

fn empty() -> Value {
    Value::object(Object::new())
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Item,
}

/// The members that an expression goes on to read, and what stands behind them.
fn path(text: &str) -> (Vec<Step>, &str) {
    let mut steps = Vec::new();
    let mut rest = text;
    while steps.len() < MAX_DEPTH {
        let next = rest.strip_prefix('?').unwrap_or(rest);
        if let Some(inner) = next.strip_prefix('[') {
            let inner = inner.trim_start();
            if let Some((name, after)) = inner
                .strip_prefix('\'')
                .and_then(|text| text.split_once('\''))
            {
                let Some(after) = after.trim_start().strip_prefix(']') else {
                    break;
                };
                steps.extend(name.split('/').map(|part| Step::Key(part.to_owned())));
                rest = after;
                continue;
            }
            let Some((_, after)) = inner.split_once(']') else {
                break;
            };
            if !inner.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            steps.push(Step::Item);
            rest = after;
        } else if let Some(inner) = next.strip_prefix('.') {
            let end = inner
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(inner.len());
            let (name, after) = inner.split_at(end);
            if name.is_empty() {
                break;
            }
            steps.push(Step::Key(name.to_owned()));
            rest = after;
        } else {
            break;
        }
    }
    (steps, rest)
}

/// What a value must be where it is read.
fn leaf(before: &str, rest: &str, key: &str, around: Option<&Node>) -> Shape {
    let list = || Shape::List(Box::default(), false);
    let alone = matches!(before, "@" | "@{");
    let key = key.to_ascii_lowercase();
    if alone && matches!(key.as_str(), "foreach" | "from") {
        return list();
    }
    if alone && key == "content" {
        let schema = around.and_then(|around| around.get_any_case("schema"));
        return schema.map_or(Shape::Unknown, |schema| example(schema, 0));
    }
    if alone && key == "value" {
        let kind = around.and_then(|around| around.get_any_case("type")?.as_str());
        match kind.map(str::to_ascii_lowercase).as_deref() {
            Some("array") => return list(),
            Some("integer" | "float") => return Shape::Leaf(Value::Int(1)),
            Some("boolean") => return Shape::Leaf(Value::Bool(false)),
            Some("object") => return Shape::Map(BTreeMap::new()),
            _ => {}
        }
    }
    let before = before.trim_end();
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
        "split" | "substring" | "tolower" | "toupper" | "replace" | "trim" | "startswith"
        | "endswith" | "indexof" | "lastindexof" | "uricomponent" | "encodeuricomponent" => {
            Shape::Leaf(Value::text("text"))
        }
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
fn example(schema: &Node, depth: usize) -> Shape {
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

impl Shape {
    /// Adds what one expression reads: a path, and what stands at its end.
    fn grow(&mut self, path: &[Step], leaf: Shape) {
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
            (Self::List(own, _), Self::List(other, _)) => own.merge(*other),
            (Self::Leaf(_), Self::Leaf(_)) => {}
            (_, other) => *self = other,
        }
    }

    fn value(&self) -> Value {
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

#[cfg(test)]
mod tests {
    use super::Shapes;
    use crate::source::{Bundle, parse};

    fn shapes(json: &str) -> Shapes {
        let (node, mistakes) = parse(&Bundle::single("a.json", json), 0);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        Shapes::of(&node.unwrap())
    }

    #[test]
    fn an_answer_has_what_is_read_of_it() {
        let shapes = shapes(
            r#"{
              "a": { "foreach": "@body('Get')?['value']" },
              "b": "@{body('Get')['page'].next}",
              "c": "@outputs('Get')?['body/rows'][0]['id']",
              "d": "@equals(body('Get')?['state'], 'Done')",
              "e": "@formatDateTime(body('get')?['at'], 'd')",
              "f": { "content": "@body('Other')", "schema": {
                  "type": "object", "properties": { "n": { "type": ["null", "integer"] }, "l": { "type": "array" } } } },
              "g": { "type": "Integer", "value": "@triggerBody()?['n']" }
            }"#,
        );
        assert_eq!(
            shapes.body("GET").to_json(),
            r#"{"at":"2026-01-01T00:00:00Z","page":{"next":"text"},"rows":[{"id":"text"}],"state":"Done","value":[]}"#
        );
        assert_eq!(shapes.body("other").to_json(), r#"{"l":[],"n":1}"#);
        assert_eq!(shapes.body("unread").to_json(), "{}");
        assert_eq!(shapes.trigger_body().unwrap().to_json(), r#"{"n":1}"#);
    }
}
