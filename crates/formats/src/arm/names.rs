//! The names that an ARM template defines: parameters with their values, variables, and functions.

use super::expression::inside;
use super::functions::StandIn;
use super::values::{declared, is_nullable};
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_source::source::{Entry, Kind, Node, Span};

/// The names that one template defines.
#[derive(Default)]
pub(super) struct Frame {
    /// The `parameters` and `definitions` of the template, as the file has them.
    pub declarations: Option<Node>,
    pub parameters: BTreeMap<String, Slot>,
    pub variables: BTreeMap<String, Slot>,
    /// The functions that the template declares, by `namespace.name`.
    pub functions: BTreeMap<String, Node>,
    /// The copy loops that enclose the current expression: name and index, the innermost last.
    pub copies: Vec<(String, i64)>,
    /// The variables of the lambdas that enclose the current expression, the innermost last.
    pub lambdas: Vec<(String, Value)>,
}

/// Counts what makes a computed value uncertain: missing values and stand-ins.
#[derive(Clone, Copy, Default)]
pub(super) struct ValueOrigins {
    /// Number of expressions that had no value.
    pub misses: usize,
    /// Number of stand-ins for values that only a deployment knows.
    pub stand_ins: usize,
    /// Number of those stand-ins whose type is not known either.
    pub unknown: usize,
}

impl ValueOrigins {
    /// Returns the counts since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            misses: self.misses.saturating_sub(before.misses),
            stand_ins: self.stand_ins.saturating_sub(before.stand_ins),
            unknown: self.unknown.saturating_sub(before.unknown),
        }
    }

    /// Returns true if a value that only a deployment knows, or a missing value, may be the reason for a wrong value.
    pub fn is_uncertain(self) -> bool {
        self.unknown > 0 || self.misses > 0
    }

    /// Counts the call of a function whose result may be a stand-in.
    pub fn count(&mut self, part: StandIn) {
        self.stand_ins += usize::from(!matches!(part, StandIn::None));
        self.unknown += usize::from(matches!(part, StandIn::Whole));
    }

    pub fn add(&mut self, more: Self) {
        self.misses = self.misses.saturating_add(more.misses);
        self.stand_ins = self.stand_ins.saturating_add(more.stand_ins);
        self.unknown = self.unknown.saturating_add(more.unknown);
    }
}

#[derive(Clone)]
pub(super) enum Slot {
    Written(Node),
    /// The value `{value: …}` that the enclosing deployment sets, with that deployment's expressions.
    Outer(Node),
    /// The value is being computed. If the slot is read meanwhile, the recursion is endless.
    InProgress,
    /// The value, and what was used to compute it.
    Known(Node, ValueOrigins),
    /// A parameter that has no value. The slot has its declaration.
    Missing(Node, Span),
}

impl Frame {
    pub fn of(template: &Node, given: &[&Node]) -> Self {
        let entries = |key: &str| {
            let node = template.get_any_case(key);
            node.and_then(Node::entries).unwrap_or_default()
        };
        let parameters = declared(template).iter().map(|entry| {
            let own = given.iter().find_map(|given| {
                let given = given.get_any_case("parameters").unwrap_or(given);
                given.get_any_case(&entry.key).filter(|own| has_value(own))
            });
            let slot = match (own, entry.value.get_any_case("defaultValue")) {
                (Some(own), _) => Slot::Outer(own.clone()),
                (None, Some(default)) => Slot::Written(default.clone()),
                (None, None) if is_nullable(&entry.value) => {
                    Slot::Known(null(entry.key_span), ValueOrigins::default())
                }
                (None, None) => Slot::Missing(entry.value.clone(), entry.key_span),
            };
            (entry.key.to_lowercase(), slot)
        });
        let mut variables: BTreeMap<String, Slot> = BTreeMap::new();
        for entry in entries("variables") {
            match (entry.key.as_str(), &entry.value.kind) {
                ("copy", Kind::Array(copies)) => {
                    for copy in copies {
                        if let Some(name) = copy.get_any_case("name").and_then(Node::as_str) {
                            variables.insert(name.to_lowercase(), Slot::Written(copied(copy)));
                        }
                    }
                }
                _ => {
                    variables.insert(entry.key.to_lowercase(), Slot::Written(entry.value.clone()));
                }
            }
        }
        let mut functions = BTreeMap::new();
        if let Some(Kind::Array(spaces)) = template.get_any_case("functions").map(|node| &node.kind)
        {
            for space in spaces {
                let name = space.get_any_case("namespace").and_then(Node::as_str);
                let members = space.get_any_case("members").and_then(Node::entries);
                for member in members.unwrap_or_default() {
                    let name = format!("{}.{}", name.unwrap_or_default(), member.key);
                    functions.insert(name.to_lowercase(), member.value.clone());
                }
            }
        }
        Self {
            declarations: Some(declarations(template)),
            parameters: parameters.collect(),
            variables,
            functions,
            copies: Vec::new(),
            lambdas: Vec::new(),
        }
    }
}

/// Returns true if the entry for a parameter has a value.
/// A reference to a secret of a key vault does not count as a value here.
pub(super) fn has_value(given: &Node) -> bool {
    let is_computed = given.as_str().is_some_and(|text| inside(text).is_some());
    is_computed || given.get_any_case("value").is_some()
}

fn declarations(template: &Node) -> Node {
    let entries = template.entries().unwrap_or_default().iter();
    let declared = entries.filter(|entry| {
        let key = entry.key.as_str();
        key.eq_ignore_ascii_case("parameters") || key.eq_ignore_ascii_case("definitions")
    });
    Node {
        span: template.span,
        kind: Kind::Object(declared.cloned().collect()),
    }
}

/// Wraps a copy loop of a variable in a map that has only this copy loop.
fn copied(copy: &Node) -> Node {
    let entry = Entry {
        key: String::from("copy"),
        key_span: copy.span,
        value: Node {
            span: copy.span,
            kind: Kind::Array(vec![copy.clone()]),
        },
    };
    Node {
        span: copy.span,
        kind: Kind::Object(vec![entry]),
    }
}

pub(super) fn null(span: Span) -> Node {
    Node {
        span,
        kind: Kind::Null,
    }
}
