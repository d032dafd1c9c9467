//! Estimates the work of checking a value against a JSON Schema.
//! The work is counted before the check, because the library cannot be interrupted. A schema with a few definitions
//! that refer to each other may need practically unlimited time. The estimate visits the same parts as the check, and
//! each visit costs at least one unit.

use super::budget::{pattern_weight, pattern_work};
use super::{Budget, BudgetExceeded};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, HashMap};

/// The cost of one visit of the library, in units.
const VISIT_COST: usize = 4;

/// The maximum depth of references and nested schemas. It is limited because the library recurses.
const MAX_DEPTH: usize = 500;

/// If schema and value have at most this many pairs of nodes, no estimate is made.
/// There are two exceptions: the schema may repeat checks, or the value has a long text.
const FEW: usize = 100_000;

/// Maximum weight of all patterns of a schema together: see [`pattern_weight`].
const MAX_PATTERNS: usize = 1_000_000;

/// Maximum number of units of a check for which mismatches are listed.
/// After a longer check, the errors of all alternatives could fill the memory.
pub const MAX_CHECKS_TO_LIST_ERRORS: u64 = 50_000;

/// The reason why a value is not checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaRefusal {
    #[error("{0}")]
    Exceeded(#[from] BudgetExceeded),
    #[error("the schema nests deeper than {MAX_DEPTH} levels, references included")]
    Deep,
}

type CheckResult<T = ()> = Result<T, SchemaRefusal>;

/// A schema, and the other documents that it may refer to, by their paths.
pub struct Documents<'a> {
    all: Vec<(&'a str, &'a Json)>,
    /// The parts of documents that have a name of their own (such as `$id`), by the last part of the name.
    named: BTreeMap<&'a str, Vec<SchemaPath<'a>>>,
    nodes: usize,
    repeats: bool,
    /// The total weight of all patterns.
    patterns: usize,
}

/// A part of one of the documents.
#[derive(Clone, Copy)]
struct SchemaPath<'a> {
    document: usize,
    part: &'a Json,
}

impl<'a> Documents<'a> {
    /// Makes an index of the documents. The first document is the schema.
    pub fn new(all: Vec<(&'a str, &'a Json)>) -> Self {
        let mut documents = Self {
            all: Vec::new(),
            named: BTreeMap::new(),
            nodes: 0,
            repeats: false,
            patterns: 0,
        };
        for (document, (_, part)) in all.iter().enumerate() {
            documents.index(SchemaPath { document, part });
        }
        documents.all = all;
        documents
    }

    fn index(&mut self, spot: SchemaPath<'a>) {
        self.nodes += 1;
        match spot.part {
            Json::Array(items) => items
                .iter()
                .for_each(|part| self.index(SchemaPath { part, ..spot })),
            Json::Object(members) => {
                for (key, part) in members {
                    match (key.as_str(), part.as_str()) {
                        ("$id" | "id" | "$anchor" | "$dynamicAnchor", Some(name)) => {
                            self.named.entry(end_of(name)).or_default().push(spot);
                        }
                        ("pattern", Some(pattern)) => self.weigh(pattern),
                        ("patternProperties", None) => {
                            let patterns = part.as_object().into_iter().flatten();
                            patterns.for_each(|(pattern, _)| self.weigh(pattern));
                        }
                        ("$ref" | "$dynamicRef" | "$recursiveRef", _) => self.repeats = true,
                        ("unevaluatedProperties" | "unevaluatedItems", _) => self.repeats = true,
                        _ => {}
                    }
                    self.index(SchemaPath { part, ..spot });
                }
            }
            _ => {}
        }
    }

    fn weigh(&mut self, pattern: &str) {
        self.patterns = self.patterns.saturating_add(pattern_weight(pattern));
    }

    /// Checks that all patterns can be compiled in a short time.
    ///
    /// # Errors
    /// The patterns are too large.
    pub fn check_patterns(&self) -> Result<(), String> {
        match self.patterns > MAX_PATTERNS {
            true => Err(String::from(
                "the patterns of the schema are too large together",
            )),
            false => Ok(()),
        }
    }

    /// Counts the work of a check against the budget, and returns its number of units.
    ///
    /// # Errors
    /// The budget is not sufficient, or the library would recurse too deep.
    pub fn charge(&self, instance: &Json, budget: &Budget) -> CheckResult<u64> {
        let before = budget.spent();
        let nodes = nodes(instance);
        budget.charge(nodes.saturating_mul(VISIT_COST))?;
        if self.repeats || self.nodes.saturating_mul(nodes) > FEW || has_long_text(instance) {
            let mut walk = WorkEstimate {
                documents: self,
                budget,
                resolved: HashMap::new(),
            };
            if let Some((_, schema)) = self.all.first() {
                let root = SchemaPath {
                    document: 0,
                    part: schema,
                };
                walk.check(root, instance, 0)?;
            }
        }
        Ok(budget.spent().saturating_sub(before))
    }

    /// Returns all parts of documents that a reference may refer to.
    fn targets(&self, from: usize, reference: &'a str) -> Vec<SchemaPath<'a>> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut roots: Vec<SchemaPath<'a>> = Vec::new();
        if path.is_empty() {
            let here = self.all.get(from).map(|(_, part)| SchemaPath {
                document: from,
                part,
            });
            roots.extend(here);
        } else {
            let wanted = end_of(path);
            let documents = self.all.iter().enumerate();
            let documents = documents.filter(|(_, (name, _))| end_of(name) == wanted);
            roots.extend(documents.map(|(document, (_, part))| SchemaPath { document, part }));
            roots.extend(self.named.get(wanted).into_iter().flatten());
        }
        match fragment {
            "" => roots,
            pointer if pointer.starts_with('/') => {
                // A pointer may start from any named part that encloses the reference, so all of them are tried.
                let named = self.named.values().flatten().copied();
                let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
                let all = roots.into_iter().chain(named);
                let at = |spot: SchemaPath<'a>| {
                    let part = spot.part.pointer(&decoded)?;
                    Some(SchemaPath { part, ..spot })
                };
                all.filter_map(at).collect()
            }
            anchor => self.named.get(end_of(anchor)).cloned().unwrap_or_default(),
        }
    }
}

/// Returns the last part of a name.
/// A document or a part may be named by a whole address or by its last part.
fn end_of(name: &str) -> &str {
    let name = name.trim_end_matches('#');
    name.rsplit(['/', '#']).next().unwrap_or(name)
}

fn nodes(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.iter().map(nodes).fold(1, usize::saturating_add),
        Json::Object(map) => map.values().map(nodes).fold(1, usize::saturating_add),
        _ => 1,
    }
}

fn has_long_text(value: &Json) -> bool {
    match value {
        Json::String(text) => text.len() > FEW / 100,
        Json::Array(items) => items.iter().any(has_long_text),
        Json::Object(map) => map
            .iter()
            .any(|(key, value)| key.len() > FEW / 100 || has_long_text(value)),
        _ => false,
    }
}

struct WorkEstimate<'a, 'd> {
    documents: &'d Documents<'a>,
    budget: &'d Budget,
    resolved: HashMap<(usize, &'a str), Vec<SchemaPath<'a>>>,
}

impl<'a> WorkEstimate<'a, '_> {
    fn check(&mut self, spot: SchemaPath<'a>, instance: &Json, depth: usize) -> CheckResult {
        self.budget.charge(VISIT_COST)?;
        if depth > MAX_DEPTH {
            return Err(SchemaRefusal::Deep);
        }
        let Json::Object(schema) = spot.part else {
            return Ok(());
        };
        let unevaluated = ["unevaluatedProperties", "unevaluatedItems"];
        let again = unevaluated.iter().any(|key| schema.contains_key(*key));
        for (key, part) in schema {
            let at = |part: &'a Json| SchemaPath { part, ..spot };
            let in_place: Vec<SchemaPath<'a>> = match (key.as_str(), part) {
                ("allOf" | "anyOf" | "oneOf", Json::Array(parts)) => parts.iter().map(at).collect(),
                ("not" | "if" | "then" | "else", part) => vec![at(part)],
                ("dependentSchemas" | "dependencies", Json::Object(parts)) => {
                    let given = parts.iter().filter(|(key, _)| instance.get(key).is_some());
                    given.map(|(_, part)| at(part)).collect()
                }
                ("$ref" | "$dynamicRef" | "$recursiveRef", Json::String(reference)) => {
                    self.targets(spot.document, reference)
                }
                (key, part) => {
                    self.below(key, at(part), schema, instance, depth + 1)?;
                    continue;
                }
            };
            // To find out which members are not evaluated, the library checks everything again.
            for _ in 0..if again { 3 } else { 1 } {
                for target in &in_place {
                    self.check(*target, instance, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn targets(&mut self, document: usize, reference: &'a str) -> Vec<SchemaPath<'a>> {
        let known = self.resolved.entry((document, reference));
        let documents = self.documents;
        known
            .or_insert_with(|| documents.targets(document, reference))
            .clone()
    }

    /// Counts the work of a keyword that applies to the value itself or to its members.
    fn below(
        &mut self,
        key: &str,
        spot: SchemaPath<'a>,
        schema: &'a Map<String, Json>,
        instance: &Json,
        depth: usize,
    ) -> CheckResult {
        match (key, spot.part, instance) {
            ("pattern", Json::String(pattern), Json::String(text)) => {
                self.budget.charge(pattern_work(pattern, text.len()))?;
            }
            ("format", _, Json::String(text)) => self.budget.charge(text.len())?,
            ("minLength" | "maxLength", _, Json::String(text)) => {
                self.budget.charge(text.len() / 16)?;
            }
            ("enum", Json::Array(options), _) => {
                self.budget
                    .charge(options.len().saturating_add(nodes(instance)))?;
            }
            ("const", _, _) => self.budget.charge(nodes(instance))?,
            ("uniqueItems", Json::Bool(true), Json::Array(_)) => {
                self.budget.charge(nodes(instance).saturating_mul(16))?;
            }
            ("required", Json::Array(names), Json::Object(_)) => {
                self.budget.charge(names.len())?;
            }
            ("properties", Json::Object(parts), Json::Object(members)) => {
                self.budget.charge(parts.len().min(members.len()))?;
                for (key, part) in parts {
                    if let Some(member) = members.get(key) {
                        self.check(SchemaPath { part, ..spot }, member, depth)?;
                    }
                }
            }
            ("patternProperties", Json::Object(parts), Json::Object(members)) => {
                for (pattern, part) in parts {
                    for (key, member) in members {
                        self.budget.charge(pattern_work(pattern, key.len()))?;
                        self.check(SchemaPath { part, ..spot }, member, depth)?;
                    }
                }
            }
            (
                "additionalProperties" | "unevaluatedProperties",
                Json::Object(_),
                Json::Object(members),
            ) => {
                let known = schema.get("properties").and_then(Json::as_object);
                for (key, member) in members {
                    if !known.is_some_and(|known| known.contains_key(key)) {
                        self.check(spot, member, depth)?;
                    }
                }
            }
            ("propertyNames", _, Json::Object(members)) => {
                for key in members.keys() {
                    self.check(spot, &Json::String(key.clone()), depth)?;
                }
            }
            ("items" | "prefixItems", Json::Array(parts), Json::Array(items)) => {
                for (part, item) in parts.iter().zip(items) {
                    self.check(SchemaPath { part, ..spot }, item, depth)?;
                }
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                Json::Object(_),
                Json::Array(items),
            ) => {
                for item in items {
                    self.check(spot, item, depth)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn work(schema: &Json, instance: &Json) -> CheckResult<u64> {
        let documents = Documents::new(vec![("", schema)]);
        documents.charge(instance, &Budget::of(1_000_000))
    }

    fn doubled(levels: usize, part: impl Fn(Json) -> Json) -> Json {
        let next = |level: usize| json!({"$ref": format!("#/definitions/d{level}")});
        let mut definitions: Map<String, Json> = (0..levels)
            .map(|level| (format!("d{level}"), part(next(level + 1))))
            .collect();
        definitions.insert(format!("d{levels}"), json!({"type": "integer"}));
        json!({"definitions": definitions, "$ref": "#/definitions/d0"})
    }

    #[test]
    fn what_doubles_with_each_definition_is_refused() {
        let ways: [fn(Json) -> Json; 6] = [
            |next| json!({"allOf": [next, next]}),
            |next| json!({"anyOf": [next, next]}),
            |next| json!({"oneOf": [next, {"not": next}]}),
            |next| json!({"if": next, "then": next}),
            |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            |next| json!({"dependentSchemas": {"a": next, "b": next}}),
        ];
        let instance = json!({"a": 1, "b": 2});
        for part in ways {
            assert!(work(&doubled(4, part), &instance).is_ok());
            let refused = work(&doubled(60, part), &instance);
            assert!(
                matches!(refused, Err(SchemaRefusal::Exceeded(_))),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn patterns_that_take_long_to_compile_are_refused() {
        let wide: Vec<Json> = (0..200)
            .map(|number| json!({"pattern": format!("(\\pL{{1000}}{number}){{1000}}")}))
            .collect();
        let schema = json!({"anyOf": wide});
        assert!(
            Documents::new(vec![("", &schema)])
                .check_patterns()
                .is_err()
        );
        let schema = json!({"pattern": "^[a-z]{1,64}$", "patternProperties": {"^x-": true}});
        assert!(Documents::new(vec![("", &schema)]).check_patterns().is_ok());
    }

    #[test]
    fn names_are_followed_too() {
        let mut parts: Vec<Json> = (0..60)
            .map(|level| {
                let next = json!({"$ref": format!("#d{}", level + 1)});
                json!({"$anchor": format!("d{level}"), "allOf": [next, next]})
            })
            .collect();
        parts.push(json!({"$id": "#d60", "type": "integer"}));
        let schema = json!({"$defs": {"all": parts}, "$ref": "#d0"});
        assert!(matches!(
            work(&schema, &json!(1)),
            Err(SchemaRefusal::Exceeded(_))
        ));
    }

    #[test]
    fn a_chain_of_references_does_not_end_the_stack() {
        let chain = doubled(20_000, |next| json!({"allOf": [next]}));
        assert_eq!(work(&chain, &json!(1)), Err(SchemaRefusal::Deep));
        let short = doubled(100, |next| json!({"allOf": [next]}));
        assert!(work(&short, &json!(1)).is_ok());
    }

    #[test]
    fn a_tree_that_refers_to_itself_costs_what_the_value_has() {
        let schema = json!({"properties": {"next": {"$ref": "#"}}, "type": "object"});
        let mut value = json!({});
        for _ in 0..60 {
            value = json!({"next": value});
        }
        assert!(work(&schema, &value).is_ok_and(|units| units < 3_000));
        // A schema that refers to itself for the same value has no end.
        let itself = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        assert_eq!(work(&itself, &json!(1)), Err(SchemaRefusal::Deep));
    }
}
