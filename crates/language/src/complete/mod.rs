//! Completions at a position.
//! They are keys and values of the format's schema, and names in the text. In an expression, they are functions and
//! everything that the expression can read.

mod expression;

pub(super) use expression::describe_function;

use super::cursor::UnescapedText;
use super::names::{Action, Names};
use super::schema::{Rule, Schema, is_condition, types};
use super::sketch::{
    Kind, LocationKind, Scalar, SketchLocation, SketchNode, Step, Style, locate, read,
};
use super::{Format, Lines, MARK, Position, TextRange, dialect};
use expression::{action_item, named_items, variables};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect};

/// Completions at a position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Completion {
    /// Range of the text that a chosen completion replaces.
    pub range: TextRange,
    /// Completions, the likeliest first. They are not filtered by the text that is typed already.
    pub items: Vec<CompletionItem>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletionItem {
    /// Label of the completion.
    pub label: String,
    /// Kind of the completion.
    pub kind: CompletionKind,
    /// Type of the value, or signature of a function. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Description of the completion. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// Text that is inserted.
    pub insert: String,
    /// Whether the text has placeholders such as `$0` and `${1:name}`. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snippet: bool,
}

/// Kind of a completion. A `port` is of a canvas node; a `snippet` is a whole action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionKind {
    /// A key of a map.
    Key,
    /// A word that a value may be.
    Value,
    /// A function, filter or test.
    Function,
    /// An action or node.
    Action,
    /// A variable, or a key of the state.
    Variable,
    /// A port of a node.
    Port,
    /// An input or parameter.
    Input,
    /// A whole action.
    Snippet,
}

use CompletionKind as Is;

impl CompletionItem {
    fn new(label: impl Into<String>, kind: CompletionKind) -> Self {
        let label = label.into();
        Self {
            insert: label.clone(),
            label,
            kind,
            detail: None,
            documentation: None,
            snippet: false,
        }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }

    fn about(mut self, about: impl Into<String>) -> Self {
        self.documentation = Some(about.into()).filter(|about| !about.is_empty());
        self
    }

    fn inserts(mut self, insert: String, snippet: bool) -> Self {
        self.insert = insert;
        self.snippet = snippet;
        self
    }
}

/// Keys of the formats whose schemas do not name conditions. Their text is an expression without a marker.
const CONDITIONS: [&str; 8] = [
    "condition",
    "when",
    "if",
    "break_when",
    "continue_when",
    "unless",
    "until",
    "while",
];

/// Returns true if a text under these keys (the path to it) is an expression without any marker such as `@` or braces.
pub(super) fn is_bare(dialect: Dialect, keys: &[&str]) -> bool {
    let Some(key) = keys.last().map(|key| key.to_lowercase()) else {
        return false;
    };
    match dialect {
        Dialect::Loom => is_condition(&key),
        Dialect::Tea | Dialect::Canvas | Dialect::Azure => CONDITIONS.contains(&&*key),
    }
}

/// Returns the completions for a position in the first file of a bundle.
#[must_use]
pub fn complete(bundle: &Bundle, format: Option<Format>, at: Position) -> Completion {
    let Some(file) = bundle.file(0) else {
        return Completion::default();
    };
    let content = file.content();
    let lines = Lines::new(content);
    let at = lines.offset(at);
    let (before, after) = content.split_at_checked(at).unwrap_or((content, ""));
    let text = format!("{before}{MARK}{after}");
    let root = read(&text);
    let format = format.unwrap_or_else(|| dialect(bundle, None, &root, &text).into());
    let request = CompletionRequest {
        bundle,
        text: &text,
        root: &root,
        at,
        dialect: format.dialect,
        schema: format.schema.map(|schema| Schema::new(schema, &text)),
        json: text.trim_start().starts_with(['{', '[']),
    };
    let (range, items) = request.items();
    // The real text is shorter, because it does not have the mark. So positions after the mark are moved back.
    let place = |byte: usize| match byte > at {
        true => byte.saturating_sub(MARK.len_utf8()).max(at),
        false => byte,
    };
    Completion {
        range: lines.range(place(range.start)..place(range.end)),
        items,
    }
}

struct CompletionRequest<'a> {
    bundle: &'a Bundle,
    /// The text with the mark ([`MARK`]) at the position.
    text: &'a str,
    root: &'a SketchNode,
    at: usize,
    dialect: Dialect,
    schema: Option<Schema<'a>>,
    json: bool,
}

impl CompletionRequest<'_> {
    fn names(&self) -> Names {
        let mut names = Names::of(self.root, self.text, self.dialect);
        let known = |name: &str| !name.contains(MARK) && !name.is_empty();
        for named in [
            &mut names.variables,
            &mut names.state,
            &mut names.inputs,
            &mut names.parameters,
        ] {
            named.retain(|one| known(&one.name));
        }
        names
    }

    fn items(&self) -> (Range<usize>, Vec<CompletionItem>) {
        let location = locate(self.root, self.at);
        let keys = location.keys();
        match location.at {
            LocationKind::Key(member) => {
                let line = self.own_line(member.key.start);
                let items = self.keys(&location, member.complete, member.quoted, line);
                (member.key.clone(), items)
            }
            LocationKind::Value(part) => {
                let Kind::Text(scalar) = &part.kind else {
                    return (self.at..self.at, Vec::new());
                };
                let meant = UnescapedText::of(self.text, scalar);
                let index = meant.index(self.at);
                let is_bare = is_bare(self.dialect, &keys);
                if let Some(region) = meant.region(index, self.dialect, is_bare) {
                    let found = self.in_expression(scalar, &meant, &region, index);
                    if !found.1.is_empty() || !is_bare {
                        return found;
                    }
                }
                let mut items = self.values(&location, scalar);
                // A word that is alone on its line may also become a key.
                let line = self.own_line(part.range.start);
                if scalar.style == Style::Plain && line && !self.json {
                    items.extend(self.keys(&location, false, false, true));
                }
                (scalar.inner.clone(), items)
            }
        }
    }

    /// Returns true if only blanks and dashes are before a byte on its line.
    fn own_line(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.chars().all(|letter| matches!(letter, ' ' | '-'))
    }

    /// Returns the keys that the map at the end of the path may have.
    fn keys(
        &self,
        location: &SketchLocation<'_>,
        complete: bool,
        quoted: bool,
        line: bool,
    ) -> Vec<CompletionItem> {
        let keyed = matches!(location.at, LocationKind::Key(_));
        let path = match keyed {
            true => location
                .path
                .get(..location.path.len().saturating_sub(1))
                .unwrap_or_default(),
            false => &location.path,
        };
        let map = match (keyed, location.path.last(), &location.at) {
            (true, Some((map, _)), _) => *map,
            (_, _, LocationKind::Value(part)) => part,
            _ => self.root,
        };
        let keys = SketchLocation {
            path: path.to_vec(),
            at: LocationKind::Value(map),
        };
        let keys = keys.keys();
        let insert = |key: &str| match (complete, quoted, self.json) {
            (true, ..) | (_, true, _) => key.to_owned(),
            (_, _, true) => format!("\"{key}\": "),
            _ => format!("{key}: "),
        };
        let here = |name: &str| map.get(name).is_none();
        let mut items = Vec::new();
        if keys
            .last()
            .is_some_and(|key| key.eq_ignore_ascii_case("runAfter"))
        {
            for name in self.siblings(path) {
                let value = match (complete || quoted, self.json) {
                    (true, _) => name.clone(),
                    (_, true) => format!("{}[\"Succeeded\"]", insert(&name)),
                    _ => format!("{}[Succeeded]", insert(&name)),
                };
                let item = CompletionItem::new(name, Is::Action);
                items.push(item.inserts(value, false));
            }
        }
        let Some(schema) = self.schema else {
            return items;
        };
        let rules = schema.at(self.root, path);
        let mut seen = BTreeSet::new();
        let required: BTreeSet<&str> = rules.iter().flat_map(|rule| required(rule)).collect();
        for rule in &rules {
            let properties = rule.get("properties").and_then(Value::as_object);
            for (name, rule) in properties.into_iter().flatten() {
                if !here(name) || !seen.insert(&**name) || rule == &Value::Bool(false) {
                    continue;
                }
                let kinds = rule.get("type").map(types).unwrap_or_default();
                let must = required.contains(&**name);
                let detail = match (kinds.join(" or "), must) {
                    (kinds, true) if kinds.is_empty() => String::from("required"),
                    (kinds, true) => format!("{kinds}, required"),
                    (kinds, false) => kinds,
                };
                let mut item = CompletionItem::new(name, Is::Key)
                    .detail(detail)
                    .about(schema.describe(rule).unwrap_or_default());
                let block = !complete && !quoted && !self.json && line;
                item.insert = insert(name);
                match kinds.first() {
                    Some(&"object") if block && kinds.len() == 1 => {
                        item = item.inserts(format!("{name}:\n  $0"), true);
                    }
                    Some(&"array") if block && kinds.len() == 1 => {
                        item = item.inserts(format!("{name}:\n  - $0"), true);
                    }
                    _ => {}
                }
                items.push(item);
            }
        }
        if self.dialect == Dialect::Tea
            && let Some(action) = self.action_with_arguments(path, map)
        {
            let arguments = windlass_formats::argument_keys(action).into_iter();
            let arguments = arguments.filter(|name| here(name) && !seen.contains(*name));
            items.extend(arguments.map(|name| {
                let item = CompletionItem::new(name, Is::Key);
                item.inserts(insert(name), false)
            }));
        }
        // Required keys are listed first.
        items.sort_by_key(|item| item.kind == Is::Key && !required.contains(&*item.label));
        let has_actions = matches!(self.dialect, Dialect::Loom | Dialect::Azure);
        if keys.last() == Some(&"actions") && has_actions && line && !quoted {
            items.extend(self.whole_actions(schema, map));
        }
        items
    }

    /// Returns the action of an agent whose arguments are the keys of this map.
    fn action_with_arguments(
        &self,
        path: &[(&SketchNode, Step)],
        map: &SketchNode,
    ) -> Option<&str> {
        let (node, Step::Key(key)) = path.last()? else {
            return None;
        };
        let action = |node: &SketchNode| {
            let mut keys = ["uses", "action"].into_iter();
            keys.find_map(|key| node.member_text(key, self.text))
        };
        match key.as_str() {
            "with" => map
                .member_text("corrector_action", self.text)
                .or_else(|| action(node)),
            "validate_args" => node.member_text("validate", self.text),
            "generator" | "corrector" => action(map),
            "evaluator" => {
                let kind = map.member_text("type", self.text);
                kind.filter(|kind| *kind == "llm").map(|_| "llm.call")
            }
            "llm" => {
                let is_settings = |(_, step): &(_, Step)| *step == Step::Key("settings".into());
                let parent = path.len().checked_sub(2).and_then(|at| path.get(at));
                parent.is_some_and(is_settings).then_some("llm.call")
            }
            _ => None,
        }
    }

    /// Returns a completion for each type of action: a whole action with the required keys of the type.
    fn whole_actions(&self, schema: Schema<'_>, map: &SketchNode) -> Vec<CompletionItem> {
        let words = schema.words(&["$defs", "action", "properties", "type", "examples"]);
        let free = |name: &str| {
            (1..)
                .map(|number| match number {
                    1 => name.to_owned(),
                    number => format!("{name}_{number}"),
                })
                .find(|name| map.get(name).is_none())
        };
        let snippet = |kind: &str| {
            let name = free(kind).unwrap_or_default();
            let mut insert = match self.json {
                true => format!("\"${{1:{name}}}\": {{\n  \"type\": \"{kind}\""),
                false => format!("${{1:{name}}}:\n  type: {kind}"),
            };
            let needed = schema.needed_by(kind);
            for (index, (key, inside)) in
                needed.iter().filter(|(key, _)| *key != "type").enumerate()
            {
                let tab = index + 2;
                insert.push_str(&match (self.json, inside) {
                    (true, true) => format!(",\n  \"{key}\": {{\n    ${tab}\n  }}"),
                    (true, false) => format!(",\n  \"{key}\": ${tab}"),
                    (false, true) => format!("\n  {key}:\n    ${tab}"),
                    (false, false) => format!("\n  {key}: ${tab}"),
                });
            }
            if self.json {
                insert.push_str("\n}");
            }
            CompletionItem::new(kind, Is::Snippet)
                .detail("a new action")
                .inserts(insert, true)
        };
        words.into_iter().map(snippet).collect()
    }

    /// Returns the names of the other actions in the scope of the action that has this `runAfter`.
    fn siblings(&self, path: &[(&SketchNode, Step)]) -> Vec<String> {
        let from_end = |steps: usize| path.len().checked_sub(steps).and_then(|at| path.get(at));
        let (Some((actions, Step::Key(own))), Some(_)) = (from_end(2), from_end(1)) else {
            return Vec::new();
        };
        let names = actions.members().iter().map(|member| member.name.clone());
        names
            .filter(|name| name != own && !name.contains(MARK))
            .collect()
    }

    /// Returns the possible values.
    fn values(&self, location: &SketchLocation<'_>, scalar: &Scalar) -> Vec<CompletionItem> {
        let mut items = self.references(location);
        if let Some(schema) = self.schema {
            for rule in schema.at(self.root, &location.path) {
                items.extend(values_of(rule));
            }
        }
        let mut seen = BTreeSet::new();
        items.retain(|item| seen.insert(item.label.clone()));
        for item in &mut items {
            let text = item.kind != Is::Value || item.detail.is_none();
            let needs = self.json || needs_quotes(&item.insert);
            if scalar.style == Style::Plain && text && needs {
                item.insert = Value::from(&*item.insert).to_string();
            }
        }
        items
    }

    /// Returns the names that a value can have if it refers to something in the text.
    fn references(&self, location: &SketchLocation<'_>) -> Vec<CompletionItem> {
        let keys = location.keys();
        let Some(last) = keys.last().copied() else {
            return Vec::new();
        };
        let map = location
            .path
            .iter()
            .rev()
            .find_map(|(part, step)| match step {
                Step::Key(_) => Some(*part),
                Step::Index(_) => None,
            });
        let names = self.names();
        match self.dialect {
            Dialect::Loom | Dialect::Azure if last.eq_ignore_ascii_case("runAfter") => {
                let path = location.path.len();
                let steps = location
                    .path
                    .iter()
                    .rposition(|(_, step)| matches!(step, Step::Key(_)));
                let path = location
                    .path
                    .get(..steps.map_or(path, |at| at + 1))
                    .unwrap_or_default();
                let actions = self.siblings(path).into_iter();
                actions
                    .map(|name| CompletionItem::new(name, Is::Action))
                    .collect()
            }
            Dialect::Loom | Dialect::Azure if last == "name" => {
                let around = names.enclosing_actions(self.at);
                let kind = around.first().map(|action| action.kind.to_lowercase());
                match kind.as_deref() {
                    Some("setstate" | "getstate") => named_items(&names.state, Is::Variable),
                    Some(kind) if kind.ends_with("variable") => variables(&names),
                    _ => Vec::new(),
                }
            }
            Dialect::Tea
                if matches!(
                    last,
                    "from" | "to" | "goto" | "entry_point" | "finish_point"
                ) =>
            {
                let end = match last {
                    "from" | "entry_point" => "__start__",
                    _ => "__end__",
                };
                let end = CompletionItem::new(end, Is::Value);
                top_level(&names).chain([end]).collect()
            }
            Dialect::Tea if last == "correct" => top_level(&names).collect(),
            Dialect::Canvas => self.references_of_canvas(&names, last, &keys, map),
            _ => Vec::new(),
        }
    }

    fn references_of_canvas(
        &self,
        names: &Names,
        last: &str,
        keys: &[&str],
        map: Option<&SketchNode>,
    ) -> Vec<CompletionItem> {
        let around = names.enclosing_actions(self.at);
        let within = around.first().copied();
        // The nodes to choose from are those of the graph that contains the edge, or of the loop that contains the
        // mapping.
        let graph = |owner: Option<&Action>| {
            let owner = owner.map(|owner| owner.selection.clone());
            let nodes = names.actions.iter().filter(move |node| {
                let parent = node.parent.and_then(|parent| names.actions.get(parent));
                parent.map(|parent| parent.selection.clone()) == owner
            });
            nodes
                .filter(|node| !node.name.contains(MARK))
                .collect::<Vec<_>>()
        };
        let named = |key: &str| {
            let name = map.and_then(|map| map.member_text(key, self.text))?;
            names.action(name)
        };
        let ports = |node: Option<&Action>, prefix: &str, outputs: bool| {
            let ports = node.map(|node| if outputs { &node.outputs } else { &node.inputs });
            let ports = ports.into_iter().flatten();
            let items = ports.map(|port| CompletionItem::new(format!("{prefix}{port}"), Is::Port));
            items.collect::<Vec<_>>()
        };
        let is = |key: &str| keys.contains(&key);
        match last {
            "source" | "target" if is("edges") => {
                graph(within).into_iter().map(action_item).collect()
            }
            "sourceHandle" => ports(named("source"), "output:", true),
            "targetHandle" => ports(named("target"), "input:", false),
            "node" => graph(within).into_iter().map(action_item).collect(),
            "output" if is("source") || is("target") => ports(named("node"), "", true),
            "input" if is("target") || is("source") => ports(named("node"), "", false),
            "output" => {
                let nodes = graph(within).into_iter();
                let ports =
                    nodes.flat_map(|node| ports(Some(node), &format!("{}.", node.name), true));
                ports.collect()
            }
            "name" if is("source") => {
                match map.and_then(|map| map.member_text("type", self.text)) {
                    Some("builtin") => vec![CompletionItem::new("iteration_count", Is::Variable)],
                    _ => ports(within, "", false),
                }
            }
            "workflowRef" | "workflowPath" => {
                let files = self.bundle.files.iter().skip(1);
                files
                    .map(|file| CompletionItem::new(&file.path, Is::Value))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the nodes at the top level of an agent.
fn top_level(names: &Names) -> impl Iterator<Item = CompletionItem> {
    let nodes = names.actions.iter().filter(|node| node.parent.is_none());
    nodes.map(action_item)
}

/// Returns the words that a schema accepts as a value.
fn values_of(rule: Rule) -> Vec<CompletionItem> {
    let listed = ["enum", "examples"].into_iter();
    let listed = listed.filter_map(|key| rule.get(key)?.as_array()).flatten();
    let all = listed.chain(rule.get("const")).chain(rule.get("default"));
    let boolean = rule
        .get("type")
        .is_some_and(|kinds| types(kinds) == ["boolean"]);
    let booleans = ["true", "false"].into_iter().filter(|_| boolean);
    let booleans = booleans.map(|word| CompletionItem::new(word, Is::Value).detail("boolean"));
    let item = |value: &Value| match value {
        Value::String(text) => Some(CompletionItem::new(text, Is::Value)),
        Value::Bool(_) | Value::Number(_) => {
            let item = CompletionItem::new(value.to_string(), Is::Value);
            Some(item.detail(if value.is_boolean() {
                "boolean"
            } else {
                "number"
            }))
        }
        _ => None,
    };
    all.filter_map(item).chain(booleans).collect()
}

fn required(rule: Rule) -> impl Iterator<Item = &'static str> {
    let required = rule.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str)
}

/// Returns true if YAML would read a word without quotes as something else than a text.
fn needs_quotes(word: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    word.is_empty()
        || !word.chars().all(plain) && !word.starts_with(|letter: char| letter.is_alphabetic())
        || matches!(
            word,
            "true" | "false" | "null" | "yes" | "no" | "on" | "off"
        )
}
