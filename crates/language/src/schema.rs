//! Finds which keys and values the JSON Schema of a format allows at a position in a tolerant tree.
//! It supports only the parts of JSON Schema that this project's schemas use. All other parts allow everything.

use super::sketch::{Kind, SketchNode, Step};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};
use windlass_engine::{Dialect, json_schema};

/// Maximum depth of references and alternatives that are followed.
const MAX_DEPTH: usize = 40;

fn parsed(text: Option<&str>) -> Value {
    let parsed = text.map(serde_json::from_str);
    parsed.and_then(Result::ok).unwrap_or_default()
}

static AZURE: LazyLock<Value> = LazyLock::new(|| parsed(json_schema(Dialect::Azure)));
static LOOM: LazyLock<Value> = LazyLock::new(|| parsed(json_schema(Dialect::Loom)));
static TEA: LazyLock<Value> = LazyLock::new(|| parsed(json_schema(Dialect::Tea)));
static CANVAS: LazyLock<Value> = LazyLock::new(|| parsed(json_schema(Dialect::Canvas)));
static PATTERNS: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);

/// Returns the schema of a format.
pub(super) fn root(dialect: Dialect) -> Rule {
    match dialect {
        Dialect::Loom => &LOOM,
        Dialect::Tea => &TEA,
        Dialect::Canvas => &CANVAS,
        Dialect::Azure => &AZURE,
    }
}

/// The keys of Loom whose values are conditions.
static CONDITION_KEYS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let mut keys = BTreeSet::new();
    collect_conditions(&LOOM, &mut keys);
    keys
});

fn collect_conditions<'s>(schema: &'s Value, keys: &mut BTreeSet<&'s str>) {
    let is_condition =
        |rule: &Value| rule.get("$ref").and_then(Value::as_str) == Some("#/$defs/condition");
    match schema {
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let conditions = properties.into_iter().flatten();
            let conditions = conditions.filter(|(_, rule)| is_condition(rule));
            keys.extend(conditions.map(|(key, _)| key.as_str()));
            members
                .values()
                .for_each(|inner| collect_conditions(inner, keys));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|inner| collect_conditions(inner, keys)),
        _ => {}
    }
}

/// Returns true if the value of this key is a condition in Loom. Its text is an expression even without `@` or braces.
pub(super) fn is_condition(key: &str) -> bool {
    CONDITION_KEYS.contains(key)
}

/// The schema of a format.
#[derive(Clone, Copy)]
pub(super) struct Schema<'t> {
    root: &'static Value,
    text: &'t str,
}

/// A schema that applies at a position.
pub(super) type Rule = &'static Value;

impl<'t> Schema<'t> {
    pub fn new(root: Rule, text: &'t str) -> Self {
        Self { root, text }
    }

    /// Returns the schemas that apply at the end of a path.
    pub fn at(self, root: &SketchNode, path: &[(&SketchNode, Step)]) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.expand(self.root, root, 0, &mut rules);
        for (part, step) in path {
            let child = match step {
                Step::Key(key) => part.get(key),
                Step::Index(index) => part.items().get(*index),
            };
            let nothing = SketchNode {
                range: 0..0,
                kind: Kind::Nothing,
            };
            let child = child.unwrap_or(&nothing);
            let mut next = Vec::new();
            for rule in rules {
                for inner in inside(rule, step) {
                    self.expand(inner, child, 0, &mut next);
                }
            }
            next.dedup_by(|a, b| std::ptr::eq(*a, *b));
            rules = next;
        }
        rules
    }

    fn resolve(self, reference: &str) -> Option<Rule> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Adds to `found` a schema, and all schemas that this schema applies to the same part of the tree.
    fn expand(self, rule: Rule, part: &SketchNode, depth: usize, found: &mut Vec<Rule>) {
        if depth > MAX_DEPTH || !self.is_possible(rule, part) {
            return;
        }
        found.push(rule);
        if let Some(inner) = rule
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|to| self.resolve(to))
        {
            self.expand(inner, part, depth + 1, found);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for inner in rule
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.expand(inner, part, depth + 1, found);
            }
        }
        if let Some(condition) = rule.get("if") {
            let branch = match self.holds(condition, part) {
                true => "then",
                false => "else",
            };
            if let Some(inner) = rule.get(branch) {
                self.expand(inner, part, depth + 1, found);
            }
        }
    }

    /// Returns true if the part that is written so far does not contradict a schema.
    fn is_possible(self, rule: Rule, part: &SketchNode) -> bool {
        let of_kind = match (rule.get("type").map(types), &part.kind) {
            (None, _) | (_, Kind::Nothing) => true,
            (Some(types), Kind::Map(_)) => types.contains(&"object"),
            (Some(types), Kind::List(_)) => types.contains(&"array"),
            // A word may still be typed, so it may become a value of any type.
            (Some(_), Kind::Text(_)) => true,
        };
        of_kind && self.fits(rule, part)
    }

    /// Returns true if the existing members of a map have values that `properties` allows.
    fn fits(self, rule: Rule, part: &SketchNode) -> bool {
        let Some(properties) = rule.get("properties").and_then(Value::as_object) else {
            return true;
        };
        part.members().iter().all(|member| {
            let Some(word) = member.value.text(self.text) else {
                return true;
            };
            properties
                .get(&member.name)
                .is_none_or(|rule| self.is_word(rule, word.trim()))
        })
    }

    /// Returns true if a schema accepts a word.
    fn is_word(self, rule: Rule, word: &str) -> bool {
        if word.contains(super::MARK) {
            return true;
        }
        if let Some(only) = rule.get("const") {
            return only.as_str() == Some(word);
        }
        let listed = |list: &Value| {
            let mut words = list.as_array().into_iter().flatten();
            words.any(|one| match one {
                Value::String(one) => one == word,
                other => format!("{other}") == word,
            })
        };
        if let Some(list) = rule.get("enum") {
            return listed(list);
        }
        if let Some(pattern) = rule.get("pattern").and_then(Value::as_str) {
            return matches(pattern, word);
        }
        let either = rule.get("anyOf").and_then(Value::as_array);
        either.is_none_or(|either| either.iter().any(|rule| self.is_word(rule, word)))
    }

    /// Returns true if a condition (`if`) of the schema holds. As in JSON Schema, only required members must exist.
    fn holds(self, rule: Rule, part: &SketchNode) -> bool {
        let required = rule.get("required").and_then(Value::as_array);
        let there = |key: &Value| key.as_str().is_some_and(|key| part.get(key).is_some());
        let typed = |key: &str| {
            let word = part.member_text(key, self.text);
            word.is_some_and(|word| word.contains(super::MARK))
        };
        let mut properties = rule
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        required.is_none_or(|keys| keys.iter().all(there))
            && !properties.any(|(key, _)| typed(key))
            && self.fits(rule, part)
    }

    /// Returns the words of a list in the schema.
    pub fn words(self, path: &[&str]) -> Vec<&'static str> {
        let list = path.iter().try_fold(self.root, |value, key| value.get(key));
        let words = list.and_then(Value::as_array).into_iter().flatten();
        words.filter_map(Value::as_str).collect()
    }

    /// Returns the required keys of an action type, and whether the value of each is a map.
    pub fn needed_by(self, kind: &str) -> Vec<(&'static str, bool)> {
        let branches = self
            .root
            .pointer("/$defs/action/allOf")
            .and_then(Value::as_array);
        let mut branches = branches.into_iter().flatten();
        let of_kind = |branch: &&'static Value| {
            let rule = branch.pointer("/if/properties/type");
            rule.is_some_and(|rule| self.is_word(rule, kind))
        };
        let Some(branch) = branches.find(of_kind).and_then(|branch| branch.get("then")) else {
            return Vec::new();
        };
        // If the schema allows several ways of writing the action, the first one is used.
        let first = branch.pointer("/anyOf/0/required");
        let needed = branch.get("required").or(first).and_then(Value::as_array);
        let needed = needed.into_iter().flatten().filter_map(Value::as_str);
        let with_kind = needed.map(|key| {
            let rule = branch.get("properties").and_then(|rules| rules.get(key));
            let to = rule.and_then(|rule| self.resolve(rule.get("$ref")?.as_str()?));
            let kinds = to.or(rule).and_then(|rule| rule.get("type")).map(types);
            (key, kinds.is_some_and(|kinds| kinds == ["object"]))
        });
        with_kind.collect()
    }

    /// Returns the description of a schema, or of the schema that it refers to.
    pub fn describe(self, rule: Rule) -> Option<&'static str> {
        let description = |rule: Rule| rule.get("description").and_then(Value::as_str);
        description(rule).or_else(|| {
            let to = rule.get("$ref").and_then(Value::as_str)?;
            description(self.resolve(to)?)
        })
    }
}

fn matches(pattern: &str, word: &str) -> bool {
    let mut known = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).ok());
    known.as_ref().is_none_or(|regex| regex.is_match(word))
}

pub(super) fn types(types: &'static Value) -> Vec<&'static str> {
    match types {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the schemas that apply to the part of the tree that is one step inside.
fn inside(rule: Rule, step: &Step) -> Vec<Rule> {
    match step {
        Step::Key(key) => {
            if let Some(inner) = rule.get("properties").and_then(|all| all.get(key)) {
                return vec![inner];
            }
            let patterns = rule.get("patternProperties").and_then(Value::as_object);
            let mut patterns = patterns.into_iter().flatten();
            if patterns.any(|(pattern, _)| matches(pattern, key)) {
                return Vec::new();
            }
            let others = rule.get("additionalProperties");
            others.filter(|rule| rule.is_object()).into_iter().collect()
        }
        Step::Index(index) => match rule.get("items") {
            Some(Value::Array(items)) => items.get(*index).into_iter().collect(),
            Some(items) => vec![items],
            None => Vec::new(),
        },
    }
}
