//! The file as a whole: a workflow or one bare action, its inputs, variables, limits, outputs
//! and handlers.

use super::Loom;
use crate::diagnostic::nearest;
use crate::dialect::reader::{Fields, constant};
use crate::expression::{Template, Value};
use crate::hir::{Block, Outputs, Workflow};
use crate::model::{Input, InputKind, Name, Place, Places};
use crate::source::{Entry, Kind, Node};

const KINDS: [(&str, InputKind); 11] = [
    ("any", InputKind::Any),
    ("string", InputKind::String),
    ("text", InputKind::String),
    ("integer", InputKind::Integer),
    ("int", InputKind::Integer),
    ("number", InputKind::Number),
    ("boolean", InputKind::Boolean),
    ("bool", InputKind::Boolean),
    ("array", InputKind::Array),
    ("list", InputKind::Array),
    ("object", InputKind::Object),
];

impl Loom<'_> {
    /// Reads the whole file.
    pub(super) fn workflow(
        &mut self,
        node: &Node,
        parameters: Option<&Node>,
        stem: &str,
    ) -> Workflow {
        let mut workflow = Workflow {
            name: Name::from(stem),
            dialect: self.dialect,
            inputs: Vec::new(),
            variables: Vec::new(),
            places: Places::default(),
            types: Vec::new(),
            parameters: Vec::new(),
            trigger: None,
            schedule: None,
            body: Block::Sequence(Vec::new()),
            at_success: None,
            secure: Vec::new(),
            outputs: Outputs::Actions,
            handlers: Vec::new(),
            links: Vec::new(),
            environment: Vec::new(),
            scripts: Vec::new(),
            span: node.span,
        };
        if self.azure() {
            self.definition(node, parameters, &mut workflow);
            return workflow;
        }
        let bare = node.get("type").is_some() && node.get("definition").is_none();
        if bare && (node.get("actions").is_none() || is_container(node)) {
            self.one_action(node, &mut workflow);
            return workflow;
        }
        let Some(mut fields) = self.reader.fields(node, "the workflow", "a map") else {
            return workflow;
        };
        self.whole(&mut fields, node, &mut workflow);
        fields.finish(&mut self.reader);
        workflow
    }

    /// One action is a workflow with that one action.
    fn one_action(&mut self, node: &Node, workflow: &mut Workflow) {
        let kind = node.get("type").and_then(Node::as_str).unwrap_or("action");
        let step = self.bare(node, kind, node.span);
        if let Some(name) = node.get("name").and_then(Node::as_str) {
            workflow.name = Name::from(name);
        }
        // The made name is the type, which its author sees in the outputs.
        workflow.body = Block::Sequence(vec![crate::hir::Step {
            anonymous: false,
            ..step
        }]);
    }

    fn whole(&mut self, fields: &mut Fields<'_>, node: &Node, workflow: &mut Workflow) {
        fields.allow(&["dialect", "description", "version", "metadata", "$schema"]);
        if let Some(entry) = fields.some(&mut self.reader, "name")
            && let Some(name) = self.reader.text(entry, "for example name: nightly-sync")
        {
            workflow.name = Name::from(name);
        }
        if let Some(entry) = fields.some(&mut self.reader, "limits") {
            let (count, timeout) = (self.count.clone(), self.timeout.clone());
            (self.count, self.timeout) = self.limit(entry, count, timeout);
        }
        if let Some(entry) = fields.some(&mut self.reader, "schedule") {
            workflow.schedule = self.schedule(entry);
        }
        if let Some(entry) = fields.some(&mut self.reader, "inputs") {
            workflow.inputs = self.workflow_inputs(entry);
        }
        if let Some(entry) = fields.some(&mut self.reader, "variables") {
            workflow.variables = self.workflow_variables(entry);
            workflow.places.variables = places(entry);
        }
        if let Some(entry) = fields.some(&mut self.reader, "handlers") {
            workflow.handlers = self.reader.handlers(entry);
        }
        let hint = "for example actions: { check: { type: http, inputs: { uri: \"…\" } } }";
        match fields.get("actions") {
            Some(entry) => workflow.body = self.actions(entry),
            None => {
                fields.need(&mut self.reader, "actions", node.span, hint);
            }
        }
        if let Some(entry) = fields.some(&mut self.reader, "outputs") {
            workflow.outputs = Outputs::Template(self.reader.template(&entry.value));
            workflow.places.outputs = places(entry);
        }
    }

    fn workflow_inputs(&mut self, entry: &Entry) -> Vec<Input> {
        let hint = "for example inputs: { job: { type: string, default: nightly } }";
        let Some(entries) = entry.value.entries() else {
            self.reader
                .wrong_type(&entry.value, "`inputs`", "a map", hint);
            return Vec::new();
        };
        entries
            .iter()
            .map(|entry| {
                let (kind, default) = match &entry.value.kind {
                    Kind::Null => (InputKind::Any, None),
                    Kind::Object(_) => self.input(entry, hint),
                    _ => {
                        let what = format!("the input `{}`", entry.key);
                        self.reader.wrong_type(&entry.value, &what, "a map", hint);
                        (InputKind::Any, None)
                    }
                };
                Input {
                    name: Name::from(entry.key.as_str()),
                    kind,
                    default,
                    span: entry.key_span,
                }
            })
            .collect()
    }

    fn input(&mut self, entry: &Entry, hint: &str) -> (InputKind, Option<Value>) {
        let what = format!("the input `{}`", entry.key);
        let Some(mut fields) = self.reader.fields(&entry.value, &what, hint) else {
            return (InputKind::Any, None);
        };
        let mut kind = InputKind::Any;
        if let Some(entry) = fields.some(&mut self.reader, "type")
            && let Some(text) = self.reader.text(entry, "string, integer, number, …")
        {
            let known = KINDS.map(|(name, _)| name);
            match KINDS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(text))
            {
                Some((_, found)) => kind = *found,
                None => {
                    let what = format!("`{text}` is no type of input");
                    let hint = nearest(text, known).map_or_else(
                        || String::from("any, string, integer, number, boolean, array, object"),
                        |near| format!("did you mean `{near}`?"),
                    );
                    self.reader
                        .error("unknown-value", entry.value.span, what, hint);
                }
            }
        }
        let default = fields
            .get("default")
            .map(|entry| (constant(&entry.value), entry));
        if let Some((value, entry)) = &default
            && !fits(value, kind)
        {
            let what = format!(
                "the default of `{}`",
                what.trim_start_matches("the input `").trim_end_matches('`')
            );
            let wanted = format!("of type {}", word(kind));
            self.reader.wrong_type(
                &entry.value,
                &what,
                &wanted,
                "change the default or the type",
            );
        }
        fields.allow(&["description", "required"]);
        fields.finish(&mut self.reader);
        (kind, default.map(|(value, _)| value))
    }

    fn workflow_variables(&mut self, entry: &Entry) -> Vec<(Name, Template)> {
        let hint = "for example variables: { status: pending, page: 1 }";
        let Some(entries) = entry.value.entries() else {
            self.reader
                .wrong_type(&entry.value, "`variables`", "a map", hint);
            return Vec::new();
        };
        entries
            .iter()
            .map(|entry| {
                let template = self.reader.template(&entry.value);
                (Name::from(entry.key.as_str()), template)
            })
            .collect()
    }
}

/// Where the members of a map are; of anything else, where it is.
pub(super) fn places(entry: &Entry) -> Vec<Place> {
    let place = |name: &str, span| Place {
        name: Name::from(name),
        span,
    };
    match entry.value.entries() {
        Some(members) => {
            let of = |member: &Entry| place(&member.key, member.key_span);
            members.iter().map(of).collect()
        }
        None => vec![place("", entry.value.span)],
    }
}

/// Whether the `type` of this map is one whose actions are its own.
fn is_container(node: &Node) -> bool {
    let kind = node.get("type").and_then(Node::as_str).unwrap_or_default();
    let known = super::action::TYPES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(kind));
    known || node.get("variables").is_none() && node.get("outputs").is_none()
}

fn fits(value: &Value, kind: InputKind) -> bool {
    match kind {
        InputKind::Any => true,
        _ if value.is_null() => true,
        InputKind::String => value.as_str().is_some(),
        InputKind::Integer => value.as_int().is_some(),
        InputKind::Number => matches!(value.kind(), "integer" | "number"),
        InputKind::Boolean => matches!(value, Value::Bool(_)),
        InputKind::Array => value.as_array().is_some(),
        InputKind::Object => value.as_object().is_some(),
    }
}

fn word(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Any => "any",
        InputKind::String => "string",
        InputKind::Integer => "integer",
        InputKind::Number => "number",
        InputKind::Boolean => "boolean",
        InputKind::Array => "array",
        InputKind::Object => "object",
    }
}
