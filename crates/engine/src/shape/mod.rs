//! What an answer must look like for the expressions that read it: guessed from their text, so that
//! a file of stubs is a good start. A wrong guess is only a worse start.

mod reads;
mod value;

use self::reads::{Root, Step, reads};
use self::value::{InferredSchema, called, example, ordered, typed};
use std::collections::BTreeMap;
use windlass_expression::{Object, Value};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Node};
/// What a root has at a path, another one has at its path.
#[derive(Clone)]
struct Alias {
    from: (Root, Vec<Step>),
    to: (Root, Vec<Step>),
}

/// What the expressions of a definition read.
#[derive(Default)]
pub(super) struct InferredSchemas {
    read: BTreeMap<Root, InferredSchema>,
    /// Roots that are what another one has at a path. Of a parsed answer, only the body is.
    same: Vec<Alias>,
    /// The declared types of variables.
    types: BTreeMap<String, String>,
    /// What each foreach goes through, by its name in lower case.
    lists: BTreeMap<String, String>,
}

/// Where in a definition a text is.
#[derive(Clone, Copy, Default)]
struct TreePath<'n> {
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

impl InferredSchemas {
    /// Of the strings of a file.
    pub fn of(node: &Node) -> Self {
        let mut shapes = Self::default();
        shapes.link(node, "", 0);
        shapes.walk(node, TreePath::default());
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

    /// What a parameter that is an object should hold; none when no member of it is read.
    pub fn parameter(&self, name: &str) -> Option<Value> {
        match self.read.get(&Root::Parameter(name.to_lowercase()))? {
            shape @ InferredSchema::Map(members) if !members.is_empty() => Some(shape.value()),
            _ => None,
        }
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
        // A SlidingWindow delivers its window and no body.
        if WINDOW.iter().any(|(key, _)| members.contains_key(*key)) {
            let window = WINDOW.iter().map(|(key, value)| {
                let number = value.parse().map(Value::Int);
                (*key, number.unwrap_or_else(|_| Value::text(*value)))
            });
            return Some(Value::from_pairs(window));
        }
        if request.is_empty() {
            return Some(body);
        }
        request.insert(Name::from("body"), body);
        Some(Value::object(request))
    }

    fn members(&self, root: &Root) -> Object {
        let Some(InferredSchema::Map(members)) = self.read.get(root) else {
            return Object::new();
        };
        let members = members.iter().map(|(key, shape)| {
            let value = match shape {
                InferredSchema::Unknown => empty(),
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

    /// A path whose computed steps are items where a number selects; it ends before one that may be a
    /// member.
    fn resolved(&self, path: Vec<Step>) -> (Vec<Step>, bool) {
        let mut steps = Vec::with_capacity(path.len());
        for step in path {
            match step {
                Step::Computed(text) if self.is_number(&text) => steps.push(Step::Item),
                Step::Computed(_) => return (steps, true),
                step => steps.push(step),
            }
        }
        (steps, false)
    }

    /// Whether an expression that selects gives a number.
    fn is_number(&self, text: &str) -> bool {
        const NUMBERS: [&str; 12] = [
            "int(",
            "add(",
            "sub(",
            "mul(",
            "div(",
            "mod(",
            "length(",
            "min(",
            "max(",
            "rand(",
            "iterationindexes(",
            "indexof(",
        ];
        let lower = text.trim().to_ascii_lowercase();
        if NUMBERS.iter().any(|function| lower.starts_with(function)) {
            return true;
        }
        match reads(text).into_iter().next() {
            Some((0, Root::Variable(name), path, _)) if path.is_empty() => {
                let kind = self.types.get(&name);
                kind.is_some_and(|kind| matches!(kind.as_str(), "integer" | "float"))
            }
            // A list's own items select by number, as those of `range` are.
            Some((0, Root::Item(_), path, _)) => path.is_empty(),
            _ => false,
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
            && let (path, false) = self.resolved(path)
        {
            self.same.push(Alias {
                from: (from, strip),
                to: (root, path),
            });
        }
    }

    fn walk(&mut self, node: &Node, place: TreePath<'_>) {
        if place.depth > MAX_NESTING {
            return;
        }
        let depth = place.depth + 1;
        match &node.kind {
            Kind::String(text) => self.read(&text.text, place),
            Kind::Array(items) => {
                self.compare(place, items);
                for item in items {
                    self.walk(item, TreePath { depth, ..place });
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
                    let inner = TreePath {
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
    fn compare(&mut self, place: TreePath<'_>, items: &[Node]) {
        const ORDERS: [&str; 4] = ["greater", "greaterOrEquals", "less", "lessOrEquals"];
        let is = |known: &str| place.key.eq_ignore_ascii_case(known);
        let [one, other] = items else { return };
        let numeric = ORDERS.iter().any(|order| is(order));
        if place.negated || !(numeric || is("equals")) {
            return;
        }
        for (one, other) in [(one, other), (other, one)] {
            let leaf = match &other.kind {
                Kind::String(text) if !text.text.contains('@') => {
                    InferredSchema::Leaf(Value::text(&text.text))
                }
                Kind::String(text) if numeric => ordered(&text.text),
                Kind::Int(number) => InferredSchema::Leaf(Value::Int(*number)),
                Kind::Bool(flag) => InferredSchema::Leaf(Value::Bool(*flag)),
                _ => continue,
            };
            self.read_whole_text(one, place.list, leaf);
        }
    }

    /// The first case of a switch is taken.
    fn switch(&mut self, node: &Node, list: &str) {
        let cases = node.get_any_case("cases").and_then(Node::entries);
        let case = cases.and_then(|cases| cases.first()?.value.get_any_case("case"));
        let expression = node.get_any_case("expression");
        if let (Some(case), Some(expression)) = (case.and_then(Node::as_str), expression) {
            self.read_whole_text(expression, list, InferredSchema::Leaf(Value::text(case)));
        }
    }

    /// Notes what a text that is nothing but a path reads.
    fn read_whole_text(&mut self, node: &Node, list: &str, leaf: InferredSchema) {
        let text = node.as_str().unwrap_or_default();
        let text = text.strip_prefix("@{").or_else(|| text.strip_prefix('@'));
        if let Some((0, root, path, "" | "}")) =
            text.and_then(|text| reads(text).into_iter().next())
            && let Some(root) = self.listed(root, list)
            && let (path, false) = self.resolved(path)
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
    fn read(&mut self, text: &str, place: TreePath<'_>) {
        for (at, root, path, rest) in reads(text) {
            let before = text.get(..at).unwrap_or_default();
            let leaf = self.leaf(before, rest, place);
            let Some(root) = self.listed(root, place.list) else {
                continue;
            };
            let (path, ends_early) = self.resolved(path);
            let leaf = match ends_early {
                true => InferredSchema::Map(BTreeMap::new()),
                false => leaf,
            };
            self.read.entry(root).or_default().grow(&path, leaf);
        }
    }

    /// What a value must be where it is read.
    fn leaf(&self, before: &str, rest: &str, place: TreePath<'_>) -> InferredSchema {
        let key = place.key.to_ascii_lowercase();
        if !matches!(before, "@" | "@{") {
            return called(before.trim_end(), rest);
        }
        let around = |name: &str| place.around.and_then(|around| around.get_any_case(name));
        match key.as_str() {
            // With an item, so that what is done with it is done.
            "foreach" => InferredSchema::List(Box::default(), true),
            "from" => InferredSchema::List(Box::default(), false),
            "content" => {
                around("schema").map_or(InferredSchema::Unknown, |schema| example(schema, 0))
            }
            "value" if !place.appends => {
                let named = around("name").and_then(Node::as_str);
                let own = around("type")
                    .and_then(Node::as_str)
                    .map(str::to_ascii_lowercase);
                let kind = own.or_else(|| self.types.get(&named?.to_lowercase()).cloned());
                typed(kind.as_deref().unwrap_or_default())
            }
            _ => InferredSchema::Unknown,
        }
    }
}

/// What a SlidingWindow delivers.
const WINDOW: [(&str, &str); 3] = [
    ("windowStartTime", "2026-01-01T00:00:00Z"),
    ("windowEndTime", "2026-01-01T01:00:00Z"),
    ("sequenceNumber", "1"),
];

/// How deep maps and lists are looked into.
const MAX_NESTING: usize = 100;

fn empty() -> Value {
    Value::object(Object::new())
}

#[cfg(test)]
mod tests {
    use super::InferredSchemas;
    use windlass_expression::Value;
    use windlass_source::source::{Bundle, parse};

    fn shapes(json: &str) -> InferredSchemas {
        let (node, mistakes) = parse(&Bundle::single("a.json", json), 0);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        InferredSchemas::of(&node.unwrap())
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
