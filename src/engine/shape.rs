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

/// Something that expressions read members of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Root {
    Trigger,
    /// The outputs of an action, by its name in lower case.
    Action(String),
    Variable(String),
    /// An item of a list, by the text of that list's expression. Where a text reads one, until it is
    /// known of which list: by the name of its foreach, or without a name.
    Item(String),
}

/// What a root has at a path, another one has at its path.
#[derive(Clone)]
struct Alias {
    from: (Root, Vec<Step>),
    to: (Root, Vec<Step>),
}

/// What the expressions of a definition read.
#[derive(Default)]
pub(super) struct Shapes {
    read: BTreeMap<Root, Shape>,
    /// Roots that are what another one has at a path. Of a parsed answer, only the body is.
    same: Vec<Alias>,
    /// The declared types of variables.
    types: BTreeMap<String, String>,
    /// What each foreach goes through, by its name in lower case.
    lists: BTreeMap<String, String>,
}

/// Where in a definition a text stands.
#[derive(Clone, Copy, Default)]
struct Place<'n> {
    key: &'n str,
    around: Option<&'n Node>,
    /// Within a `not`.
    negated: bool,
    /// What the innermost foreach, select or query goes through.
    list: &'n str,
    /// In an action that appends.
    appends: bool,
    depth: usize,
}

impl Shapes {
    /// Of the strings of a file.
    pub fn of(node: &Node) -> Self {
        let mut shapes = Self::default();
        shapes.link(node, "", 0);
        shapes.walk(node, Place::default());
        // An alias may lead to another one.
        for _ in 0..4 {
            for alias in shapes.same.clone() {
                let ((from, strip), (to, path)) = (&alias.from, alias.to);
                let shape = shapes.read.get(from).and_then(|shape| shape.at(strip));
                if let Some(shape) = shape.cloned() {
                    shapes.read.entry(to).or_default().grow(&path, shape);
                }
            }
        }
        shapes
    }

    /// What an action should give: its body, and what else of it is read.
    pub fn answer(&self, action: &str) -> Object {
        let root = Root::Action(action.to_lowercase());
        let mut answer = Object::new();
        answer.insert(Name::from("statusCode"), Value::Int(200));
        answer.insert(Name::from("body"), empty());
        answer.extend(self.members(&root));
        answer
    }

    /// What a trigger should deliver, as a run takes it; none when nothing reads it.
    pub fn input(&self) -> Option<Value> {
        const OF_A_REQUEST: [&str; 3] = ["headers", "queries", "relativePathParameters"];
        self.read.get(&Root::Trigger)?;
        let members = self.members(&Root::Trigger);
        let of_request = |(name, value): &(&Name, &Value)| {
            OF_A_REQUEST.contains(&&***name) && value.as_object().is_some()
        };
        let mut request: Object = members
            .iter()
            .filter(of_request)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let body = members.get("body").cloned().unwrap_or_else(empty);
        if request.is_empty() {
            return Some(body);
        }
        request.insert(Name::from("body"), body);
        Some(Value::object(request))
    }

    fn members(&self, root: &Root) -> Object {
        let Some(Shape::Map(members)) = self.read.get(root) else {
            return Object::new();
        };
        let members = members.iter().map(|(key, shape)| {
            let value = match shape {
                Shape::Unknown => empty(),
                shape => shape.value(),
            };
            (Name::from(key.as_str()), value)
        });
        members.collect()
    }

    /// Finds what is the same as something else: copies, parsed texts, variables.
    fn link(&mut self, node: &Node, name: &str, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        if let Kind::Array(items) = &node.kind {
            items
                .iter()
                .for_each(|item| self.link(item, name, depth + 1));
        }
        let kind = node.get_any_case("type").and_then(Node::as_str);
        let inputs = node.get_any_case("inputs");
        if let (Some(kind), Some(inputs)) = (kind, inputs) {
            let action = Root::Action(name.to_lowercase());
            let body = || vec![Step::Key(String::from("body"))];
            match kind.to_ascii_lowercase().as_str() {
                "compose" => self.alias(action, Vec::new(), Some(inputs)),
                "parsejson" => self.alias(action, body(), inputs.get_any_case("content")),
                "query" => self.alias(action, body(), inputs.get_any_case("from")),
                "initializevariable" => {
                    let variables = inputs.get_any_case("variables").map(|node| &node.kind);
                    if let Some(Kind::Array(variables)) = variables {
                        variables
                            .iter()
                            .for_each(|variable| self.variable(variable));
                    }
                }
                "setvariable" => self.variable(inputs),
                _ => {}
            }
        }
        for list in ["foreach", "from"] {
            let list = node.get_any_case(list);
            if let Some(text) = list.and_then(Node::as_str) {
                self.lists.insert(name.to_lowercase(), text.to_owned());
                let before = self.same.len();
                self.alias(Root::Item(text.to_owned()), Vec::new(), list);
                let added = self.same.iter_mut().skip(before);
                added.for_each(|alias| alias.to.1.push(Step::Item));
            }
        }
        for entry in node.entries().unwrap_or_default() {
            self.link(&entry.value, &entry.key, depth + 1);
        }
    }

    /// With the list that an item is of; none when that is not known.
    fn listed(&self, root: Root, list: &str) -> Option<Root> {
        match root {
            Root::Item(name) if name.is_empty() => {
                (!list.is_empty()).then(|| Root::Item(list.to_owned()))
            }
            Root::Item(name) => self.lists.get(&name).cloned().map(Root::Item),
            other => Some(other),
        }
    }

    fn variable(&mut self, given: &Node) {
        let Some(name) = given.get_any_case("name").and_then(Node::as_str) else {
            return;
        };
        let name = name.to_lowercase();
        if let Some(kind) = given.get_any_case("type").and_then(Node::as_str) {
            self.types.insert(name.clone(), kind.to_ascii_lowercase());
        }
        self.alias(
            Root::Variable(name),
            Vec::new(),
            given.get_any_case("value"),
        );
    }

    fn alias(&mut self, from: Root, strip: Vec<Step>, value: Option<&Node>) {
        let text = value.and_then(Node::as_str).unwrap_or_default();
        let Some(text) = text.strip_prefix("@{").or_else(|| text.strip_prefix('@')) else {
            return;
        };
        if let Some((0, root, path, rest)) = reads(text).into_iter().next()
            && matches!(rest, "" | "}")
            && let Some(root) = self.listed(root, "")
        {
            self.same.push(Alias {
                from: (from, strip),
                to: (root, path),
            });
        }
    }

    fn walk(&mut self, node: &Node, place: Place<'_>) {
        if place.depth > MAX_NESTING {
            return;
        }
        let depth = place.depth + 1;
        match &node.kind {
            Kind::String(text) => self.read(&text.text, place),
            Kind::Array(items) => {
                self.compare(place, items);
                for item in items {
                    self.walk(item, Place { depth, ..place });
                }
            }
            Kind::Object(entries) => {
                let list = ["foreach", "from"].iter();
                let list = list
                    .filter_map(|key| node.get_any_case(key)?.as_str())
                    .next();
                let list = list.unwrap_or(place.list);
                let kind = node.get_any_case("type").and_then(Node::as_str);
                let appends = kind.map_or(place.appends, |kind| {
                    kind.to_ascii_lowercase().starts_with("append")
                });
                self.switch(node, list);
                for Entry { key, value, .. } in entries {
                    if key == "triggers" {
                        self.read_triggers(value);
                    }
                    let inner = Place {
                        key,
                        around: Some(node),
                        negated: place.negated != (key == "not"),
                        list,
                        appends,
                        depth,
                    };
                    self.walk(value, inner);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
        }
    }

    /// A condition as a map: `{equals: ["@…", "Done"]}`.
    fn compare(&mut self, place: Place<'_>, items: &[Node]) {
        const ORDERS: [&str; 4] = ["greater", "greaterOrEquals", "less", "lessOrEquals"];
        let is = |known: &str| place.key.eq_ignore_ascii_case(known);
        let [one, other] = items else { return };
        let numeric = ORDERS.iter().any(|order| is(order));
        if place.negated || !(numeric || is("equals")) {
            return;
        }
        let leaf = match &other.kind {
            Kind::String(text) if !text.text.contains('@') => Value::text(&text.text),
            Kind::Int(number) => Value::Int(*number),
            Kind::Bool(flag) => Value::Bool(*flag),
            _ => return,
        };
        self.alone(one, place.list, Shape::Leaf(leaf));
    }

    /// The first case of a switch is taken.
    fn switch(&mut self, node: &Node, list: &str) {
        let cases = node.get_any_case("cases").and_then(Node::entries);
        let case = cases.and_then(|cases| cases.first()?.value.get_any_case("case"));
        let expression = node.get_any_case("expression");
        if let (Some(case), Some(expression)) = (case.and_then(Node::as_str), expression) {
            self.alone(expression, list, Shape::Leaf(Value::text(case)));
        }
    }

    /// Notes what a text that is nothing but a path reads.
    fn alone(&mut self, node: &Node, list: &str, leaf: Shape) {
        let text = node.as_str().unwrap_or_default();
        let text = text.strip_prefix("@{").or_else(|| text.strip_prefix('@'));
        if let Some((0, root, path, "" | "}")) =
            text.and_then(|text| reads(text).into_iter().next())
            && let Some(root) = self.listed(root, list)
        {
            self.read.entry(root).or_default().grow(&path, leaf);
        }
    }

    /// What a trigger says that it delivers.
    fn read_triggers(&mut self, triggers: &Node) {
        for entry in triggers.entries().unwrap_or_default() {
            let inputs = entry.value.get_any_case("inputs");
            let schema = inputs.and_then(|inputs| inputs.get_any_case("schema"));
            if let Some(schema) = schema.filter(|schema| schema.get("type").is_some()) {
                let body = [Step::Key(String::from("body"))];
                let trigger = self.read.entry(Root::Trigger).or_default();
                trigger.grow(&body, example(schema, 0));
            }
        }
    }

    /// Looks for what a text reads.
    fn read(&mut self, text: &str, place: Place<'_>) {
        for (at, root, path, rest) in reads(text) {
            let before = text.get(..at).unwrap_or_default();
            let leaf = self.leaf(before, rest, place);
            let Some(root) = self.listed(root, place.list) else {
                continue;
            };
            self.read.entry(root).or_default().grow(&path, leaf);
        }
    }

    /// What a value must be where it is read.
    fn leaf(&self, before: &str, rest: &str, place: Place<'_>) -> Shape {
        let key = place.key.to_ascii_lowercase();
        if !matches!(before, "@" | "@{") {
            return called(before.trim_end(), rest);
        }
        let around = |name: &str| place.around.and_then(|around| around.get_any_case(name));
        match key.as_str() {
            // With an item, so that what is done with it is done.
            "foreach" => Shape::List(Box::default(), true),
            "from" => Shape::List(Box::default(), false),
            "content" => around("schema").map_or(Shape::Unknown, |schema| example(schema, 0)),
            "value" if !place.appends => {
                let named = around("name").and_then(Node::as_str);
                let own = around("type")
                    .and_then(Node::as_str)
                    .map(str::to_ascii_lowercase);
                let kind = own.or_else(|| self.types.get(&named?.to_lowercase()).cloned());
                typed(kind.as_deref().unwrap_or_default())
            }
            _ => Shape::Unknown,
        }
    }
}

/// How deep maps and lists are looked into.
const MAX_NESTING: usize = 100;

fn typed(kind: &str) -> Shape {
    match kind {
        "array" => Shape::List(Box::default(), false),
        "integer" | "float" => Shape::Leaf(Value::Int(1)),
        "boolean" => Shape::Leaf(Value::Bool(false)),
        "object" => Shape::Map(BTreeMap::new()),
        _ => Shape::Unknown,
    }
}

/// Everything that a text reads: where, of what, at which path, and what stands behind it.
fn reads(text: &str) -> Vec<(usize, Root, Vec<Step>, &str)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (word, inside) in [
        ("body(", Some("body")),
        ("outputs(", None),
        ("variables(", None),
        ("triggerbody()", Some("body")),
        ("triggeroutputs()", None),
        ("trigger()", None),
        ("items(", None),
        ("item()", None),
    ] {
        for (at, _) in lower.match_indices(word) {
            let before = text.get(..at).unwrap_or_default();
            if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let after = text.get(at + word.len()..).unwrap_or_default();
            let (root, after) = match word {
                "item()" => (Root::Item(String::new()), after),
                word if word.ends_with("()") => (Root::Trigger, after),
                _ => {
                    let Some((name, rest)) = quoted(after) else {
                        continue;
                    };
                    let root = match word {
                        "variables(" => Root::Variable(name.to_lowercase()),
                        "items(" => Root::Item(name.to_lowercase()),
                        _ => Root::Action(name.to_lowercase()),
                    };
                    (root, rest)
                }
            };
            let (mut path, rest) = path(after);
            match (word, path.first()) {
                ("trigger()", Some(Step::Key(first))) if first == "outputs" => {
                    path.remove(0);
                }
                ("trigger()", _) => continue,
                _ => {}
            }
            if let Some(inside) = inside {
                path.insert(0, Step::Key(inside.to_owned()));
            }
            found.push((at, root, path, rest));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found
}

/// The name in `'name')`, and what stands behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix('\'')?.split_once('\'')?;
    Some((name, rest.trim_start().strip_prefix(')')?))
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

/// What a function takes that is called with the value first.
fn called(before: &str, rest: &str) -> Shape {
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
    fn at(&self, path: &[Step]) -> Option<&Self> {
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
    use crate::expression::Value;
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
        let body = |name: &str| shapes.answer(name).get("body").map(Value::to_json).unwrap();
        assert_eq!(
            body("GET"),
            r#"{"at":"2026-01-01T00:00:00Z","page":{"next":"text"},"rows":[{"id":"text"}],"state":"Done","value":["text"]}"#
        );
        assert_eq!(body("other"), r#"{"l":[],"n":1}"#);
        assert_eq!(body("unread"), "{}");
        assert_eq!(shapes.input().unwrap().to_json(), r#"{"n":1}"#);
    }

    #[test]
    fn a_list_has_an_item_with_what_is_read_of_it() {
        let shapes = shapes(
            r#"{ "actions": {
              "L": { "type": "Foreach", "foreach": "@body('Get')?['value']", "actions": {
                "a": { "type": "Compose", "inputs": "@items('l')?['Name']" },
                "b": { "type": "AppendToArrayVariable", "inputs": { "name": "V", "value": "@body('Get')?['path']" } },
                "c": { "type": "Foreach", "foreach": "@items('L')?['rows']", "actions": {
                  "d": { "type": "Compose", "inputs": "@int(item()?['n'])" } } } } },
              "S": { "type": "Select", "inputs": { "from": "@body('Get')?['list']", "select": { "x": "@item()?['x']" } } },
              "V": { "type": "InitializeVariable", "inputs": { "variables": [{ "name": "V", "type": "array" }] } }
            } }"#,
        );
        let get = Value::object(shapes.answer("get"));
        assert_eq!(
            get.get("body").unwrap().to_json(),
            r#"{"list":[{"x":"text"}],"path":"text","value":[{"Name":"text","rows":[{"n":1}]}]}"#
        );
    }

    #[test]
    fn what_is_read_of_a_copy_is_read_of_the_original() {
        let shapes = shapes(
            r#"{ "actions": {
              "Parse": { "type": "ParseJson", "inputs": { "content": "@body('Get')", "schema": {} } },
              "Copy": { "type": "Compose", "inputs": "@body('Parse')?['path']" },
              "Keep": { "type": "SetVariable", "inputs": { "name": "V", "value": "@triggerOutputs()?['headers']?['id']" } },
              "Use": { "foreach": "@body('Parse')['list']", "x": "@{split(outputs('Copy'), '/')[2]}", "y": "@int(variables('v'))",
                "z": { "and": [{ "equals": ["@body('Get')?['state']", "on"] }, { "not": { "equals": ["@body('Get')?['end']", true] } }] } }
            } }"#,
        );
        let get = Value::object(shapes.answer("get"));
        let body = get.get("body").unwrap();
        assert_eq!(body.get("list").unwrap().to_json(), "[\"text\"]");
        assert_eq!(body.get("state").unwrap().to_json(), "\"on\"");
        assert_eq!(body.get("end").unwrap().to_json(), "\"text\"");
        assert!(
            body.get("path")
                .and_then(Value::as_str)
                .unwrap()
                .contains("text/text/text")
        );
        assert_eq!(
            shapes.input().unwrap().to_json(),
            r#"{"headers":{"id":1},"body":{}}"#
        );
    }
}
