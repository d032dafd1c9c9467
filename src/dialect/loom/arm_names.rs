//! The names of an ARM template: parameters with their values, variables, functions of its own.

use super::Loom;
use crate::diagnostic::did_you_mean;
use crate::dialect::reader::constant;
use crate::source::{Entry, Kind, Node, Span};
use std::collections::BTreeMap;

impl Loom<'_> {
    /// Checks the values of parameters that came with a template, as a deployment would.
    pub(super) fn check_given(&mut self, template: &Node, given: &[&Node]) {
        let declared = template.get_any_case("parameters");
        let declared = declared.and_then(Node::entries).unwrap_or_default();
        for given in given {
            let given = given.get_any_case("parameters").unwrap_or(given);
            for entry in given.entries().unwrap_or_default() {
                let same = |own: &&Entry| own.key.eq_ignore_ascii_case(&entry.key);
                match declared.iter().find(same) {
                    Some(own) => self.check_value(own, entry),
                    None if entry.key.starts_with('$') || entry.key == "contentVersion" => {}
                    None => {
                        let what = format!("the template has no parameter `{}`", entry.key);
                        let names = declared.iter().map(|own| own.key.as_str());
                        let hint = did_you_mean(&entry.key, names);
                        let hint = hint.unwrap_or_else(|| String::from("leave it out"));
                        self.error("unknown-parameter", entry.key_span, what, hint);
                    }
                }
            }
        }
    }

    fn check_value(&mut self, declared: &Entry, given: &Entry) {
        let Some(value) = given.value.get_any_case("value") else {
            return;
        };
        let kind = declared.value.get_any_case("type").and_then(Node::as_str);
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let fits = match (kind.as_str(), &value.kind) {
            (_, Kind::Null) => is_nullable(&declared.value),
            ("string" | "securestring", found) => matches!(found, Kind::String(_)),
            ("int", found) => matches!(found, Kind::Int(_)),
            ("bool", found) => matches!(found, Kind::Bool(_)),
            ("array", found) => matches!(found, Kind::Array(_)),
            ("object" | "secureobject", found) => matches!(found, Kind::Object(_)),
            _ => true,
        };
        if !fits {
            let what = format!("the parameter `{}` takes {kind}", declared.key);
            let hint = "the template declares its type";
            self.error("parameter-type", value.span, what, hint);
            return;
        }
        let allowed = declared.value.get_any_case("allowedValues");
        let Some(Kind::Array(allowed)) = allowed.map(|allowed| &allowed.kind) else {
            return;
        };
        let plain = |node: &Node| constant(node).to_json();
        let value_text = plain(value);
        if !allowed.iter().any(|one| plain(one) == value_text) {
            let what = format!("the parameter `{}` may not be {value_text}", declared.key);
            let allowed: Vec<String> = allowed.iter().map(plain).collect();
            let hint = format!("allowed are: {}", allowed.join(", "));
            self.error("parameter-value", value.span, what, hint);
        }
    }
}

/// The names of one template.
pub(super) struct Frame {
    pub parameters: BTreeMap<String, Slot>,
    pub variables: BTreeMap<String, Slot>,
    /// The functions that it declares, by `namespace.name`.
    pub functions: BTreeMap<String, Node>,
}

#[derive(Clone)]
pub(super) enum Slot {
    /// As it is written.
    Written(Node),
    /// Being computed: to ask for it again would never end.
    Open,
    Known(Node),
    /// A parameter without a value: how it is declared.
    Missing(Node, Span),
}

impl Frame {
    pub fn of(template: &Node, given: &[&Node]) -> Self {
        let entries = |key: &str| {
            let node = template.get_any_case(key);
            node.and_then(Node::entries).unwrap_or_default()
        };
        let parameters = entries("parameters").iter().map(|entry| {
            let own = given.iter().find_map(|given| {
                let given = given.get_any_case("parameters").unwrap_or(given);
                given.get_any_case(&entry.key)?.get_any_case("value")
            });
            let slot = match (own, entry.value.get_any_case("defaultValue")) {
                (Some(own), _) => Slot::Known(own.clone()),
                (None, Some(default)) => Slot::Written(default.clone()),
                (None, None) if is_nullable(&entry.value) => Slot::Known(null(entry.key_span)),
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
            parameters: parameters.collect(),
            variables,
            functions,
        }
    }
}

/// A copy loop of a variable as a map that only the loop reads.
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

fn is_nullable(declared: &Node) -> bool {
    let nullable = declared.get_any_case("nullable").map(|node| &node.kind);
    matches!(nullable, Some(Kind::Bool(true)))
}

pub(super) fn null(span: Span) -> Node {
    Node {
        span,
        kind: Kind::Null,
    }
}
