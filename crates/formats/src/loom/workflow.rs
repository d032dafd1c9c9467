//! The file as a whole.
//! It is a workflow or one bare action. A workflow has inputs, variables, limits, outputs, and steps for the end of
//! the run.

use super::Loom;
use crate::actions::Settings;
use crate::actions::{ActionReader, places};
use crate::builder;
use crate::fields::Fields;
use windlass_expression::{Template, Value};
use windlass_model::hir::{Outputs, Step, Workflow};
use windlass_model::model::{Dialect, Input, InputKind, Name};
use windlass_source::source::{Entry, Kind, Node};

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

impl ActionReader<'_, Loom> {
    pub(super) fn workflow(
        &mut self,
        node: &Node,
        settings: &Settings<'_>,
        stem: &str,
    ) -> Workflow {
        let mut workflow = builder::workflow(stem, Dialect::Loom, node.span);
        let bare = node.get("type").is_some() && node.get("definition").is_none();
        if bare && (node.get("actions").is_none() || is_container(node)) {
            self.one_action(node, &mut workflow);
            return workflow;
        }
        let Some(mut fields) = self.fields(node, "the workflow", "a map") else {
            return workflow;
        };
        self.keys(&mut fields, node, settings, &mut workflow);
        fields.finish(self);
        workflow
    }

    fn one_action(&mut self, node: &Node, workflow: &mut Workflow) {
        self.is_fragment = true;
        let kind = node.get("type").and_then(Node::as_str).unwrap_or("action");
        let step = self.read_unnamed_action(node, kind, node.span);
        if let Some(name) = node.get("name").and_then(Node::as_str) {
            workflow.name = Name::from(name);
        }
        self.clean_up(None, workflow);
        // A bare action without a name is named by its type, and the outputs of the run show this name.
        workflow.body = builder::only(Step {
            anonymous: false,
            ..step
        });
    }

    fn keys(
        &mut self,
        fields: &mut Fields<'_>,
        node: &Node,
        settings: &Settings<'_>,
        workflow: &mut Workflow,
    ) {
        fields.allow(&["dialect", "description", "version", "metadata", "$schema"]);
        if fields.get("$schema").is_some() {
            fields.allow(&["contentVersion"]);
        }
        // A file with actions of Loom may have the form and the keys of a Logic Apps definition.
        let definition = fields.get("$schema").is_some() && node.get("triggers").is_some();
        if definition {
            fields.allow(&["contentVersion", "triggers", "staticResults"]);
            let declared = fields.get("parameters");
            workflow.parameters = self.parameters(declared, None, settings, false);
        }
        if let Some(entry) = fields.non_null(self, "name")
            && let Some(name) = self.text(entry, "for example name: nightly-sync")
        {
            workflow.name = Name::from(name);
        }
        if let Some(entry) = fields.non_null(self, "limits") {
            let (count, timeout) = (self.count.clone(), self.timeout.clone());
            (self.count, self.timeout) = self.limit(entry, count, timeout);
        }
        self.read_defaults(fields);
        workflow.rates = self.read_rates(fields);
        if !definition && let Some(entry) = fields.non_null(self, "triggers") {
            workflow.event_triggers = self.event_triggers(entry);
        }
        if let Some(entry) = fields.non_null(self, "schedule") {
            workflow.schedule = self.schedule(entry);
            workflow.places.schedule = Some(entry.value.span);
        }
        if let Some(entry) = fields.non_null(self, "inputs") {
            workflow.inputs = self.workflow_inputs(entry);
            if workflow.schedule.is_some() {
                self.scheduled_inputs(&workflow.inputs);
            }
            self.triggered_inputs(&workflow.inputs, &workflow.event_triggers);
        }
        if let Some(entry) = fields.non_null(self, "variables") {
            workflow.variables = self.workflow_variables(entry);
            workflow.places.variables = places(entry);
        }
        if let Some(entry) = fields.non_null(self, "state") {
            workflow.state = self.declared_state(entry);
        }
        if let Some(entry) = fields.non_null(self, "handlers") {
            workflow.handlers = self.handlers(entry);
        }
        let hint = "for example actions: { check: { type: http, inputs: { uri: \"…\" } } }";
        match fields.get("actions") {
            Some(entry) => workflow.body = self.actions(entry),
            None => {
                fields.required(self, "actions", node.span, hint);
            }
        }
        if let Some(entry) = fields.non_null(self, "concurrency") {
            workflow.concurrency = self.run_concurrency(entry);
            self.await_turn(workflow, entry.key_span);
        }
        self.endings(fields, workflow);
        if let Some(entry) = fields.non_null(self, "outputs") {
            if definition {
                return self.definition_outputs(entry, workflow);
            }
            workflow.outputs = Outputs::Template(self.template(&entry.value));
            workflow.places.outputs = places(entry);
        }
    }

    /// Reads the steps for the end of the run (`on_failure`, `on_finish`). They can read the variable `failure`.
    fn endings(&mut self, fields: &mut Fields<'_>, workflow: &mut Workflow) {
        let mut first = None;
        for key in ["on_failure", "on_finish"] {
            let Some(entry) = fields.non_null(self, key) else {
                continue;
            };
            first = first.or(Some(entry.key_span));
            let block = match Self::is_alert(&entry.value) {
                true => self.alert(entry),
                false => self.action_or_actions(entry, key),
            };
            match key {
                "on_failure" => workflow.on_failure = block,
                _ => workflow.on_finish = block,
            }
        }
        self.clean_up(first, workflow);
    }

    /// Warns of inputs without a default, because a schedule cannot provide them. A person who starts the workflow
    /// can.
    fn scheduled_inputs(&mut self, inputs: &[Input]) {
        for input in inputs.iter().filter(|input| input.default.is_none()) {
            let what = format!(
                "the schedule cannot start runs: the input `{}` has no default",
                input.name
            );
            let hint = format!("for example {}: {{ default: \"…\" }}", input.name);
            self.warning("no-default", input.span, what, hint);
        }
    }

    fn workflow_inputs(&mut self, entry: &Entry) -> Vec<Input> {
        let hint = "for example inputs: { job: { type: string, default: nightly } }";
        self.map(entry, hint)
            .iter()
            .map(|entry| {
                let (kind, default, description) = match &entry.value.kind {
                    Kind::Null => (InputKind::Any, None, None),
                    Kind::Object(_) => self.input(entry, hint),
                    _ => {
                        let what = format!("the input `{}`", entry.key);
                        self.wrong_type(&entry.value, &what, "a map", hint);
                        (InputKind::Any, None, None)
                    }
                };
                Input {
                    name: Name::from(entry.key.as_str()),
                    kind,
                    default,
                    description,
                    span: entry.key_span,
                }
            })
            .collect()
    }

    /// Reads the type, the default and the description of an input.
    fn input(&mut self, entry: &Entry, hint: &str) -> (InputKind, Option<Value>, Option<String>) {
        let name = &entry.key;
        let what = format!("the input `{name}`");
        let Some(mut fields) = self.fields(&entry.value, &what, hint) else {
            return (InputKind::Any, None, None);
        };
        let kind = fields.non_null(self, "type").and_then(|entry| {
            self.choice(entry, &KINDS, |text| {
                format!("`{text}` is not a valid type of input")
            })
        });
        let kind = kind.unwrap_or(InputKind::Any);
        let default = fields
            .get("default")
            .map(|entry| (entry.value.to_value(), entry));
        if let Some((value, entry)) = &default
            && !value.is_null()
            && !kind.accepts(value)
        {
            let what = format!("the default of `{name}`");
            let hint = "change the default or the type";
            self.wrong_type(&entry.value, &what, kind.described(), hint);
        }
        let required = fields.non_null(self, "required");
        let is_optional = required.and_then(|entry| self.flag(entry, hint)) == Some(false);
        let description = fields.get("description");
        let description = description.and_then(|entry| entry.value.as_str().map(str::to_owned));
        fields.finish(self);
        let default = default.map(|(value, _)| value);
        let default = default.or(is_optional.then_some(Value::Null));
        (kind, default, description)
    }

    fn workflow_variables(&mut self, entry: &Entry) -> Vec<(Name, Template)> {
        let hint = "for example variables: { status: pending, page: 1 }";
        self.map(entry, hint)
            .iter()
            .map(|entry| {
                let template = self.template(&entry.value);
                (Name::from(entry.key.as_str()), template)
            })
            .collect()
    }
}

/// Returns true if a map with `type` and `actions` is an action, not a workflow.
fn is_container(node: &Node) -> bool {
    let kind = node.get("type").and_then(Node::as_str).unwrap_or_default();
    let known = crate::vocabulary::loom::types().any(|known| known.eq_ignore_ascii_case(kind));
    known || node.get("variables").is_none() && node.get("outputs").is_none()
}
