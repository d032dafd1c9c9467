//! The variable actions: azure writes them under `inputs`, loom also beside the type.

use super::Loom;
use super::action::Act;
use crate::expression::{Template, Value};
use crate::hir::{Assign, Assignment, StepKind};
use crate::model::{AssignOp, Name};
use crate::source::{Kind, Node};

/// Whether `name` of an action without a key is the name of its variable.
pub(super) fn names_its_variable(node: &Node) -> bool {
    let kind = node.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.to_ascii_lowercase().ends_with("variable"))
}

impl Loom<'_> {
    pub(super) fn variable(&mut self, act: &mut Act<'_>, label: &str) -> StepKind {
        let op = match label {
            "incrementVariable" => AssignOp::Increment,
            "decrementVariable" => AssignOp::Decrement,
            "appendToArrayVariable" => AssignOp::AppendToArray,
            "appendToStringVariable" => AssignOp::AppendToString,
            _ => AssignOp::Set,
        };
        let hint = format!("for example {{ type: {label}, name: status, value: done }}");
        let under = act.fields.some(&mut self.reader, "inputs");
        if let Some(entry) = under
            && label == "initializeVariable"
            && entry.value.get_any_case("variables").is_some()
        {
            return self.initialize(act, &entry.value);
        }
        let what = format!("`inputs` of `{}`", act.name);
        let mut inputs = under.and_then(|entry| self.reader.fields(&entry.value, &what, &hint));
        let fields = match &mut inputs {
            Some(fields) => fields,
            None if under.is_some() => return StepKind::Nothing,
            None => &mut act.fields,
        };
        let variable = fields.need(&mut self.reader, "name", act.span, &hint);
        let variable = variable.and_then(|entry| Some((self.reader.text(entry, &hint)?, entry)));
        let value = fields.get("value");
        let default = match op {
            AssignOp::Increment | AssignOp::Decrement => Some(Value::Int(1)),
            _ if label == "initializeVariable" => Some(Value::Null),
            _ => None,
        };
        let template = match (value, default) {
            (Some(entry), _) => Some(self.reader.template(&entry.value)),
            (None, Some(default)) => Some(Template::constant(default)),
            (None, None) => {
                fields.need(&mut self.reader, "value", act.span, &hint);
                None
            }
        };
        if label == "initializeVariable" {
            fields.allow(&["type"]);
        }
        if let Some(fields) = inputs {
            fields.finish(&mut self.reader);
        }
        let (Some((variable, entry)), Some(value)) = (variable, template) else {
            return StepKind::Nothing;
        };
        let name = Name::from(variable);
        if self.azure() && label != "initializeVariable" {
            self.assigned.push((name.clone(), entry.value.span));
        } else {
            self.made.push(name.clone());
        }
        StepKind::Assign(Assign {
            assignments: vec![Assignment {
                variable: name,
                op,
                value,
                span: entry.value.span,
            }],
            output: None,
        })
    }

    /// Azure's `inputs: {variables: [{name, type, value}]}`.
    fn initialize(&mut self, act: &Act<'_>, inputs: &Node) -> StepKind {
        let hint = "for example variables: [{ name: status, type: string, value: pending }]";
        let mut assignments = Vec::new();
        let list = inputs.get_any_case("variables");
        let items = match list.map(|node| (&node.kind, node)) {
            Some((Kind::Array(items), _)) => items.as_slice(),
            Some((_, node)) => {
                self.reader.wrong_type(node, "`variables`", "a list", hint);
                &[]
            }
            None => &[],
        };
        for item in items {
            let Some(mut fields) = self.reader.fields(item, "a variable", hint) else {
                continue;
            };
            let name = fields.need(&mut self.reader, "name", item.span, hint);
            let name = name.and_then(|entry| self.reader.text(entry, hint));
            fields.allow(&["type", "description"]);
            let value = match fields.get("value") {
                Some(entry) => self.reader.template(&entry.value),
                None => Template::constant(Value::Null),
            };
            fields.finish(&mut self.reader);
            let Some(name) = name else { continue };
            self.made.push(Name::from(name));
            assignments.push(Assignment {
                variable: Name::from(name),
                op: AssignOp::Set,
                value,
                span: item.span,
            });
        }
        if assignments.is_empty() {
            let what = format!("`{}` initializes nothing", act.name);
            self.reader.error("empty-body", act.span, what, hint);
        }
        StepKind::Assign(Assign {
            assignments,
            output: None,
        })
    }
}
