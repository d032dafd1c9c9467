//! The actions that set variables.
//! Their keys are under `inputs` or, where the format allows this, next to the type.

use super::action_fields::ActionFields;
use super::state::names_its_value;
use super::{ActionReader, Format};
use windlass_expression::{Template, Value};
use windlass_model::hir::{Assign, Assignment, StepKind, Workflow};
use windlass_model::model::{AssignOp, InputKind, Name};
use windlass_source::source::{Entry, Kind, Node};

/// The types of variables (Logic Apps reference, "Initialize variable"). A float may be a whole number.
const TYPES: [(&str, InputKind); 7] = [
    ("string", InputKind::String),
    ("integer", InputKind::Integer),
    ("float", InputKind::Number),
    ("boolean", InputKind::Boolean),
    ("bool", InputKind::Boolean),
    ("array", InputKind::Array),
    ("object", InputKind::Object),
];

/// Returns true if the key `name` of an action is the name of its variable or stored value, not of the action.
pub(super) fn names_its_variable(node: &Node) -> bool {
    let kind = node.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| {
        kind.to_ascii_lowercase().ends_with("variable") || names_its_value(kind)
    })
}

const VARIABLES: &str = "for example variables: [{ name: status, type: string, value: pending }]";

/// Returns the initial value of a variable that is declared without one.
fn unset(declared: Option<&Entry>) -> Value {
    let declared = declared.and_then(|entry| entry.value.as_str());
    let kind = TYPES
        .iter()
        .find(|(word, _)| declared.is_some_and(|text| text.eq_ignore_ascii_case(word)));
    kind.map_or(Value::Null, |(_, kind)| kind.empty_value())
}

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn variable(&mut self, act: &mut ActionFields<'_>, label: &str) -> StepKind {
        let op = match label {
            "incrementVariable" => AssignOp::Increment,
            "decrementVariable" => AssignOp::Decrement,
            "appendToArrayVariable" => AssignOp::AppendToArray,
            "appendToStringVariable" => AssignOp::AppendToString,
            _ => AssignOp::Set,
        };
        let hint = match (F::CONVENTIONS.inputs_next_to_type, label) {
            (true, _) => format!("for example {{ type: {label}, name: status, value: done }}"),
            (false, "initializeVariable") => String::from(VARIABLES),
            (false, _) => String::from("for example inputs: { name: status, value: done }"),
        };
        let under = act.fields.non_null(self, "inputs");
        if let Some(entry) = under
            && label == "initializeVariable"
            && (entry.value.get_any_case("variables").is_some()
                || !F::CONVENTIONS.inputs_next_to_type
                    && entry.value.get_any_case("name").is_none())
        {
            return self.initialize(act, &entry.value);
        }
        let what = format!("`inputs` of `{}`", act.name);
        let mut inputs = under.and_then(|entry| self.fields(&entry.value, &what, &hint));
        let fields = match &mut inputs {
            Some(fields) => fields,
            None if under.is_some() => return StepKind::Nothing,
            None => &mut act.fields,
        };
        let variable = fields.required(self, "name", act.span, &hint);
        let variable = variable.and_then(|entry| Some((self.text(entry, &hint)?, entry)));
        let value = fields.get("value");
        let declared = match label {
            "initializeVariable" => fields.get("type"),
            _ => None,
        };
        let default = match op {
            AssignOp::Increment | AssignOp::Decrement => Some(Value::Int(1)),
            _ if label == "initializeVariable" => Some(unset(declared)),
            _ => None,
        };
        let template = match (value, default) {
            (Some(entry), _) => Some(self.template(&entry.value)),
            (None, Some(default)) => Some(Template::constant(default)),
            (None, None) => {
                fields.required(self, "value", act.span, &hint);
                None
            }
        };
        if let (Some((variable, _)), Some(declared)) = (variable, declared) {
            self.typed(variable, declared);
        }
        if let Some(fields) = inputs {
            fields.finish(self);
        }
        let (Some((variable, entry)), Some(value)) = (variable, template) else {
            return StepKind::Nothing;
        };
        let name = Name::from(variable);
        match label {
            "initializeVariable" => F::makes_variable(self, &name, entry.value.span),
            _ => F::sets_variable(self, &name, label, &value, entry.value.span),
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

    /// Reads the declared type, if the format has types of variables.
    /// The variable then accepts only values of this type.
    fn typed(&mut self, variable: &str, declared: &Entry) -> Option<InputKind> {
        let kind = self.choice_as("unknown-type", declared, &TYPES, |text| {
            format!("no variable has the type `{text}`")
        });
        let kind = kind.filter(|_| F::CONVENTIONS.declares_variables)?;
        self.types.push((Name::from(variable), kind));
        Some(kind)
    }

    /// Reads `inputs: {variables: [{name, type, value}]}`.
    fn initialize(&mut self, act: &ActionFields<'_>, inputs: &Node) -> StepKind {
        let hint = VARIABLES;
        let what = format!("`inputs` of `{}`", act.name);
        let Some(mut inputs) = self.fields(inputs, &what, hint) else {
            return StepKind::Nothing;
        };
        let list = inputs.get("variables").map(|entry| &entry.value);
        inputs.finish(self);
        let mut assignments = Vec::new();
        let items = match list.map(|node| (&node.kind, node)) {
            Some((Kind::Array(items), _)) => items.as_slice(),
            Some((_, node)) => {
                self.wrong_type(node, "`variables`", "a list", hint);
                &[]
            }
            None => &[],
        };
        for item in items {
            let Some(mut fields) = self.fields(item, "a variable", hint) else {
                continue;
            };
            let name = fields.required(self, "name", item.span, hint);
            let name = name.and_then(|entry| self.text(entry, hint));
            let declared = fields.get("type");
            fields.allow(&["description"]);
            let given = fields.get("value");
            let value = match given {
                Some(entry) => self.template(&entry.value),
                None => Template::constant(unset(declared)),
            };
            fields.finish(self);
            let Some(name) = name else { continue };
            let kind = declared.and_then(|declared| self.typed(name, declared));
            if let (Some(given), Some(kind), Some(value)) = (given, kind, value.as_constant())
                && !(value.is_null() || kind.accepts(&value.revealed()))
            {
                let what = format!("the value of `{name}`");
                let hint = "its `type` says so, and the variable accepts nothing else";
                self.wrong_type(&given.value, &what, kind.described(), hint);
            }
            F::makes_variable(self, name, item.span);
            assignments.push(Assignment {
                variable: Name::from(name),
                op: AssignOp::Set,
                value,
                span: item.span,
            });
        }
        if assignments.is_empty() {
            let what = format!("`{}` initializes nothing", act.name);
            self.error("empty-body", act.span, what, hint);
        }
        StepKind::Assign(Assign {
            assignments,
            output: None,
        })
    }

    /// Refuses actions that set a variable to a constant that its type does not accept, and actions that count or
    /// append to a variable of another type.
    pub(super) fn check_set_types(&mut self, workflow: &Workflow) {
        for step in workflow.steps() {
            let StepKind::Assign(assign) = &step.kind else {
                continue;
            };
            if step.label.eq_ignore_ascii_case("initializeVariable") {
                continue;
            }
            for assignment in &assign.assignments {
                let name = &assignment.variable;
                let mut types = workflow.types.iter();
                let declared = types.find(|(typed, _)| typed.eq_ignore_ascii_case(name));
                let Some((_, kind)) = declared else { continue };
                let (wanted, step, is) = (kind.described(), &step.name, assignment);
                if let Some(needed) = needed_type(is.op, *kind) {
                    let what = format!("`{step}` needs {needed}, and `{name}` must be {wanted}");
                    let hint = "its InitializeVariable says so: use SetVariable, or another type";
                    self.error("wrong-type", is.span, what, hint);
                } else if let (AssignOp::Set, Some(value)) = (is.op, is.value.as_constant())
                    && !(value.is_null() || kind.accepts(&value.revealed()))
                {
                    let what = format!("`{step}` sets `{name}`, which must be {wanted}");
                    let hint = "its InitializeVariable says so: set a value of this type";
                    self.error("wrong-type", is.span, what, hint);
                }
            }
        }
    }
}

/// Returns what the variable of an action must be, if the variable has another type.
fn needed_type(op: AssignOp, kind: InputKind) -> Option<&'static str> {
    let (kinds, needed): (&[InputKind], &str) = match op {
        AssignOp::Increment | AssignOp::Decrement => {
            (&[InputKind::Integer, InputKind::Number], "a number")
        }
        AssignOp::AppendToArray => (&[InputKind::Array], InputKind::Array.described()),
        AssignOp::AppendToString => (&[InputKind::String], InputKind::String.described()),
        AssignOp::Set | AssignOp::MergeAll | AssignOp::ReplaceAll | AssignOp::RemoveAll => {
            return None;
        }
    };
    (!kinds.contains(&kind)).then_some(needed)
}
