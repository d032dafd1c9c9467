//! Guesses the form of an action's answer from the expressions that read it. The guesses are written to a file of stubs
//! (answers for tests) that the user edits. So a wrong guess only means more editing.

mod reads;
mod value;

use self::reads::{Root, Step, arguments, reads};
use self::value::{InferredSchema, ZONE, called, example, ordered, typed};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::{Object, Value};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Node};
/// The value of `from` at its path is also the value of `to` at its path.
#[derive(Clone)]
struct Alias {
    from: (Root, Vec<Step>),
    to: (Root, Vec<Step>),
}

/// The forms of the values that the expressions of a Logic Apps definition read. A **root** is a value such as the
/// outputs of an action or a variable.
#[derive(Default)]
pub(super) struct InferredSchemas {
    read: BTreeMap<Root, InferredSchema>,
    /// Roots that have the same value as a path in another root. For an action that parses a value, only the body of
    /// its answer is this value.
    same: Vec<Alias>,
    /// The declared types of variables.
    types: BTreeMap<String, String>,
    /// The list of each foreach, by the name of the foreach in lower case.
    lists: BTreeMap<String, String>,
    /// The first key of each root that the definition writes as a map: variables, parameters and outputs.
    keys: BTreeMap<Root, String>,
    /// The names of the parameters that a definition or template declares, in lower case.
    declared: BTreeSet<String>,
}

/// The position of a text in a definition, as far as it matters for what the text reads.
#[derive(Clone, Copy, Default)]
struct TreePath<'n> {
    key: &'n str,
    around: Option<&'n Node>,
    /// Whether the text is within a `not` condition.
    negated: bool,
    /// The expression of the list that the innermost foreach, select or query around the text iterates over.
    list: &'n str,
    /// Whether the text is in an action that appends to a variable.
    appends: bool,
    depth: usize,
}

impl InferredSchemas {
    /// Reads all strings of a definition's file.
    pub fn of(node: &Node) -> Self {
        let mut shapes = Self::default();
        shapes.link(node, "", "", 0);
        shapes.walk(node, TreePath::default());
        // Repeat this, because the target of an alias may be an alias itself.
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

    /// Returns the guessed answer of an action: its body, and the other members that expressions read.
    pub fn answer(&self, action: &str) -> Object {
        let root = Root::Action(action.to_lowercase());
        let mut answer = Object::new();
        answer.insert(Name::from("statusCode"), Value::Int(200));
        answer.insert(Name::from("body"), empty());
        answer.extend(self.members(&root));
        answer
    }

    /// Returns the guessed request to the address of a webhook action.
    pub fn callback(&self, action: &str) -> Value {
        let mut members = self.members(&Root::Action(action.to_lowercase()));
        members.shift_remove("body").unwrap_or_else(empty)
    }

    /// Returns a guessed value for a parameter, if the value in the definition (`first`) is empty.
    pub fn parameter(&self, name: &str, first: &Value) -> Option<Value> {
        let lower = name.to_lowercase();
        let is_free = !self.declared.contains(&lower);
        let shape = self.read.get(&Root::Parameter(lower))?;
        let is_empty = |value: &Value| match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Null => true,
            value => value.as_str() == Some(name),
        };
        let better = match shape {
            InferredSchema::Map(members) if members.is_empty() => None,
            InferredSchema::Unknown => None,
            shape => Some(shape.value()),
        };
        let fits =
            |value: &Value| is_free || matches!(first, Value::Null) || value.kind() == first.kind();
        better.filter(|value| is_empty(first) && fits(value))
    }

    /// Returns the text for an app setting that expressions convert to another type. `None` if any text will do.
    pub fn setting(&self, name: &str) -> Option<Value> {
        match self.read.get(&Root::Setting(name.to_lowercase()))? {
            InferredSchema::Unknown => None,
            shape => Some(Value::text(shape.value().to_text())),
        }
    }

    /// Returns the guessed output of the trigger, in the form of a run's input. `None` if no expression reads it.
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
        // A SlidingWindow trigger delivers the times of its window, and no body.
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
                InferredSchema::Unknown if key == "statusCode" => Value::Int(200),
                InferredSchema::Unknown => empty(),
                shape => shape.value(),
            };
            (Name::from(key.as_str()), value)
        });
        members.collect()
    }

    /// Finds aliases: actions that copy or parse a value, and variables that are set to a value.
    fn link(&mut self, node: &Node, name: &str, outer: &str, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        if let Kind::Array(items) = &node.kind {
            items
                .iter()
                .for_each(|item| self.link(item, name, outer, depth + 1));
        }
        let kind = node.get_any_case("type").and_then(Node::as_str);
        let inputs = node.get_any_case("inputs");
        if let (Some(kind), Some(inputs)) = (kind, inputs) {
            let action = Root::Action(name.to_lowercase());
            let body = || vec![Step::Key(String::from("body"))];
            match kind.to_ascii_lowercase().as_str() {
                "compose" => self.alias(action, Vec::new(), Some(inputs), outer),
                "parsejson" => self.alias(action, body(), inputs.get_any_case("content"), outer),
                "query" => self.alias(action, body(), inputs.get_any_case("from"), outer),
                "select" => {
                    let from = inputs.get_any_case("from").and_then(Node::as_str);
                    let made = inputs.get_any_case("select");
                    let mut item = body();
                    item.push(Step::Item);
                    self.alias(action, item, made, from.unwrap_or_default());
                }
                "initializevariable" => {
                    let variables = inputs.get_any_case("variables").map(|node| &node.kind);
                    if let Some(Kind::Array(variables)) = variables {
                        variables
                            .iter()
                            .for_each(|variable| self.variable(variable, outer));
                    }
                }
                "setvariable" => self.variable(inputs, outer),
                _ => {}
            }
        }
        let mut own = outer;
        for list in ["foreach", "from"] {
            let list = node.get_any_case(list);
            if let Some(text) = list.and_then(Node::as_str) {
                own = text;
                self.lists.insert(name.to_lowercase(), text.to_owned());
                let before = self.same.len();
                self.alias(Root::Item(text.to_owned()), Vec::new(), list, outer);
                let added = self.same.iter_mut().skip(before);
                added.for_each(|alias| alias.to.1.push(Step::Item));
            }
        }
        for entry in node.entries().unwrap_or_default() {
            if entry.key == "parameters" {
                self.declare(&entry.value);
            }
            self.link(&entry.value, &entry.key, own, depth + 1);
        }
    }

    /// Records the parameters of a definition or template, and the first keys of those that are written as a map.
    fn declare(&mut self, parameters: &Node) {
        for own in parameters.entries().unwrap_or_default() {
            let name = own.key.to_lowercase();
            let value = ["value", "defaultValue"];
            let mut value = value.iter().filter_map(|key| own.value.get_any_case(key));
            if let Some(value) = value.next() {
                self.keyed(Root::Parameter(name.clone()), value);
            }
            if own.value.get_any_case("type").is_some() {
                self.declared.insert(name);
            }
        }
    }

    fn keyed(&mut self, root: Root, value: &Node) {
        if let Some(first) = value.entries().and_then(<[Entry]>::first) {
            self.keys.insert(root, first.key.clone());
        }
    }

    /// Replaces computed steps of a path (`[expression]`) by a step to an item, if the expression is a number. Other
    /// computed steps may select a member with an unknown name: the path ends before the first of them, and the second
    /// value is true.
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

    /// Returns whether an expression in brackets returns a number. Then it selects an item of a list.
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
            // An item that is used as an index is a number, such as an item of `range`.
            Some((0, Root::Item(_), path, _)) => path.is_empty(),
            _ => false,
        }
    }

    /// Returns the root of an item with the expression of its list. Any other root is returned unchanged. `None` if the
    /// list is not known.
    fn listed(&self, root: Root, list: &str) -> Option<Root> {
        match root {
            Root::Item(name) if name.is_empty() => {
                (!list.is_empty()).then(|| Root::Item(list.to_owned()))
            }
            Root::Item(name) => self.lists.get(&name).cloned().map(Root::Item),
            other => Some(other),
        }
    }

    fn variable(&mut self, given: &Node, list: &str) {
        let Some(name) = given.get_any_case("name").and_then(Node::as_str) else {
            return;
        };
        let name = name.to_lowercase();
        if let Some(kind) = given.get_any_case("type").and_then(Node::as_str) {
            self.types.insert(name.clone(), kind.to_ascii_lowercase());
        }
        let value = given.get_any_case("value");
        self.alias(Root::Variable(name), Vec::new(), value, list);
    }

    /// Records that a root has the value that an expression reads. If `value` is a map, records this for its members.
    fn alias(&mut self, from: Root, strip: Vec<Step>, value: Option<&Node>, list: &str) {
        let Some(value) = value else { return };
        if let Some(entries) = value.entries().filter(|_| strip.len() < MAX_MEMBERS) {
            if strip.is_empty() {
                self.keyed(from.clone(), value);
            }
            for entry in entries {
                let mut inner = strip.clone();
                inner.push(Step::Key(entry.key.clone()));
                self.alias(from.clone(), inner, Some(&entry.value), list);
            }
            return;
        }
        let text = value.as_str().unwrap_or_default();
        match text.strip_prefix("@{") {
            Some(text) => {
                if let Some(text) = text.strip_suffix('}') {
                    self.same_as(&from, strip, text, list, 0);
                }
            }
            None => {
                if let Some(text) = text.strip_prefix('@') {
                    self.same_as(&from, strip, text, list, 0);
                }
            }
        }
    }

    fn same_as(&mut self, from: &Root, mut strip: Vec<Step>, text: &str, list: &str, depth: usize) {
        if depth > MAX_CALLS {
            return;
        }
        if let Some(given) = arguments(text, "if") {
            for given in given.iter().skip(1) {
                self.same_as(from, strip.clone(), given, list, depth + 1);
            }
            return;
        }
        if let Some([only]) = arguments(text, "array").as_deref() {
            strip.push(Step::Item);
            return self.same_as(from, strip, only, list, depth + 1);
        }
        if let Some((0, root, path, rest)) = reads(text).into_iter().next()
            && rest.trim().is_empty()
            && let Some(root) = self.listed(root, list)
            && let (path, false) = self.resolved(path)
        {
            self.same.push(Alias {
                from: (from.clone(), strip),
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
                let fails = |key: &str| node.get_any_case(key).is_some_and(|node| ends(node, 0));
                let is_if = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("If"));
                let avoids = is_if && fails("actions") && !fails("else");
                for Entry { key, value, .. } in entries {
                    if key == "triggers" {
                        self.read_triggers(value);
                    }
                    // The expression of the list is evaluated outside of its own loop, so it belongs to the enclosing
                    // one.
                    let is_list = ["foreach", "from"].contains(&&*key.to_ascii_lowercase());
                    let inner = TreePath {
                        key,
                        around: Some(node),
                        negated: place.negated
                            != (key == "not" || avoids && key.eq_ignore_ascii_case("expression")),
                        list: if is_list { place.list } else { list },
                        appends,
                        depth,
                    };
                    self.walk(value, inner);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
        }
    }

    /// Reads a condition that is written as a map: `{equals: ["@…", "Done"]}`.
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

    /// Reads a switch. What its expression reads gets the value of the first case.
    fn switch(&mut self, node: &Node, list: &str) {
        let cases = node.get_any_case("cases").and_then(Node::entries);
        let case = cases.and_then(|cases| cases.first()?.value.get_any_case("case"));
        let expression = node.get_any_case("expression");
        let case = case.and_then(|case| match &case.kind {
            Kind::String(text) => Some(Value::text(&text.text)),
            Kind::Int(number) => Some(Value::Int(*number)),
            _ => None,
        });
        if let (Some(case), Some(expression)) = (case, expression) {
            self.read_whole_text(expression, list, InferredSchema::Leaf(case));
        }
    }

    /// Records what a text reads if the text is only a path. `leaf` is the form of the value at its end.
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

    /// Reads the JSON Schemas that triggers declare for what they deliver.
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

    /// Records what a text reads.
    fn read(&mut self, text: &str, place: TreePath<'_>) {
        // In a string of a deployment expression (in `[…]`), two quotes mean one quote.
        let text = match text.starts_with('[') && text.ends_with(']') {
            true => Cow::Owned(text.replace("''", "'")),
            false => Cow::Borrowed(text),
        };
        for (at, root, path, rest) in reads(&text) {
            let before = text.get(..at).unwrap_or_default();
            let is_document = path.last() == Some(&Step::Xml);
            let leaf = match self.leaf(before, rest, place) {
                InferredSchema::Xml(_) if is_document => InferredSchema::Unknown,
                leaf => leaf,
            };
            let Some(root) = self.listed(root, place.list) else {
                continue;
            };
            // Ignore the name and the id of a connection: no answer depends on them.
            let is_connection = matches!(&root, Root::Parameter(name) if name == "$connections");
            if is_connection && ["name", "connectionid"].contains(&&*place.key.to_lowercase()) {
                continue;
            }
            let (path, ends_early) = self.resolved(path);
            let leaf = match ends_early {
                true => InferredSchema::Map(BTreeMap::new()),
                false => leaf,
            };
            self.read.entry(root).or_default().grow(&path, leaf);
        }
    }

    /// Returns the form of a value, guessed from the place and the function that reads it.
    fn leaf(&self, before: &str, rest: &str, place: TreePath<'_>) -> InferredSchema {
        let key = place.key.to_ascii_lowercase();
        if let Some(key) = self.key_of(before) {
            return InferredSchema::Leaf(Value::text(key));
        }
        if !matches!(before, "@" | "@{" | "[") {
            let is_compared = before.to_ascii_lowercase().ends_with("equals(");
            return match place.negated && is_compared {
                true => InferredSchema::Unknown,
                false => called(before.trim_end(), rest),
            };
        }
        let around = |name: &str| place.around.and_then(|around| around.get_any_case(name));
        match key.as_str() {
            // Guess a list with one item, so that the actions of the loop are executed.
            "foreach" => InferredSchema::List(Box::default(), true),
            "from" => InferredSchema::List(Box::default(), false),
            "timezone" => InferredSchema::Leaf(Value::text(ZONE)),
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

impl InferredSchemas {
    /// If the text before a value ends with `map[`, the value is a key of that map. Then returns the first key of the
    /// map.
    fn key_of(&self, before: &str) -> Option<&str> {
        let map = before.trim_end().strip_suffix('[')?;
        let map = map.strip_suffix('?').unwrap_or(map);
        let start = map.rfind(['@', '{', ',']);
        let map = map.get(start.map_or(0, |at| at + 1)..)?;
        let (_, root, path, _) = reads(map).into_iter().next_back()?;
        let path = path
            .iter()
            .filter(|step| **step != Step::Key(String::from("body")));
        let key = self.keys.get(&root)?;
        (path.count() == 0).then_some(key)
    }
}

/// Returns whether one of these actions ends the run as failed.
fn ends(node: &Node, depth: usize) -> bool {
    if depth > MAX_NESTING {
        return false;
    }
    let text = |key: &str| node.get_any_case(key).and_then(Node::as_str);
    if text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("Terminate")) {
        let inputs = node.get_any_case("inputs");
        let status = inputs.and_then(|inputs| inputs.get_any_case("runStatus")?.as_str());
        return status.is_none_or(|status| status.eq_ignore_ascii_case("Failed"));
    }
    let mut entries = node.entries().unwrap_or_default().iter();
    entries.any(|entry| ends(&entry.value, depth + 1))
}

/// The members of a SlidingWindow trigger's output, with examples.
const WINDOW: [(&str, &str); 3] = [
    ("windowStartTime", "2026-01-01T00:00:00Z"),
    ("windowEndTime", "2026-01-01T01:00:00Z"),
    ("sequenceNumber", "1"),
];

/// Maximum depth of maps and lists that are read.
const MAX_NESTING: usize = 100;
/// Maximum depth of the members of a map for which aliases are recorded.
const MAX_MEMBERS: usize = 8;
/// Maximum depth of function calls within function calls.
const MAX_CALLS: usize = 8;

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
