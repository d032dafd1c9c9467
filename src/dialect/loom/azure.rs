//! What only Logic Apps definitions have: their wrappers, parameters and triggers
//! (docs/azure.md).

use super::Loom;
use super::action::member;
use crate::diagnostic::did_you_mean;
use crate::dialect::reader::constant;
use crate::expression::{Template, Value};
use crate::hir::{Outputs, Trigger, Workflow};
use crate::model::{Missed, Name, Overlap, Schedule, When};
use crate::source::{Entry, Kind, Node};

/// A definition with the values of its parameters beside it.
struct Found<'n> {
    definition: &'n Node,
    values: Option<&'n Node>,
    name: Option<&'n str>,
}

fn is_secure(declared: &Entry) -> bool {
    let kind = declared.value.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("secure"))
}

impl Loom<'_> {
    /// Reads a definition in any of its wrappers. `parameters` is the tree of a parameters file.
    pub(super) fn definition(
        &mut self,
        node: &Node,
        parameters: Option<&Node>,
        workflow: &mut Workflow,
    ) {
        if node.get("resources").is_some() {
            let Some(resource) = self.arm_resource(node, parameters) else {
                return;
            };
            self.unwrapped(&resource, parameters, workflow);
        } else {
            self.unwrapped(node, parameters, workflow);
        }
    }

    fn unwrapped(&mut self, node: &Node, parameters: Option<&Node>, workflow: &mut Workflow) {
        let found = find(node);
        if let Some(name) = found.name {
            workflow.name = Name::from(name);
        }
        let what = "the definition";
        let hint = "a map with `$schema`, `triggers` and `actions`";
        let definition = found.definition;
        let Some(mut fields) = self.fields(definition, what, hint) else {
            return;
        };
        fields.allow(&[
            "$schema",
            "contentVersion",
            "staticResults",
            "description",
            "metadata",
            "dialect",
            "name",
            "kind",
        ]);
        let declared = fields.get("parameters");
        workflow.parameters = self.parameters(declared, found.values, parameters);
        if let Some(entry) = fields.get("triggers") {
            workflow.trigger = self.trigger(entry);
            let recurrence = workflow.trigger.as_ref();
            let recurrence = recurrence.and_then(|trigger| trigger.recurrence.clone());
            workflow.schedule = recurrence.map(|recurrence| Schedule {
                when: When::Recurrence(recurrence),
                overlap: Overlap::Skip,
                missed: Missed::Skip,
            });
        }
        match fields.get("actions") {
            Some(entry) => workflow.body = self.actions(entry),
            None => {
                fields.need(self, "actions", definition.span, hint);
            }
        }
        if let Some(entry) = fields.get("outputs") {
            self.definition_outputs(entry, workflow);
        }
        fields.finish(self);
    }

    /// `outputs: {name: {type, value}}`.
    fn definition_outputs(&mut self, entry: &Entry, workflow: &mut Workflow) {
        let members: Vec<(Template, Template)> = entry
            .value
            .entries()
            .unwrap_or_default()
            .iter()
            .map(|entry| {
                let name = Template::constant(Value::text(entry.key.as_str()));
                let value = entry.value.get_any_case("value").unwrap_or(&entry.value);
                (name, self.template(value))
            })
            .collect();
        if !members.is_empty() {
            workflow.outputs = Outputs::Template(Template::object(members));
            workflow.places.outputs = super::workflow::places(entry);
        }
    }

    /// The value of every declared parameter: from the parameters file, from beside the
    /// definition, or its default.
    fn parameters(
        &mut self,
        declared: Option<&Entry>,
        beside: Option<&Node>,
        file: Option<&Node>,
    ) -> Vec<(Name, Value)> {
        let entries = declared
            .and_then(|entry| entry.value.entries())
            .unwrap_or_default();
        let file = file.map(|file| file.get_any_case("parameters").unwrap_or(file));
        let mut found = Vec::new();
        for entry in entries {
            let given = [file, beside]
                .into_iter()
                .flatten()
                .find_map(|values| values.get_any_case(&entry.key)?.get_any_case("value"));
            let value = given.or_else(|| entry.value.get_any_case("defaultValue"));
            let Some(node) = value else {
                let what = format!("the parameter `{}` has no value", entry.key);
                let hint = format!(
                    "give it a defaultValue, or a value with --parameters FILE: \
                     {{ \"{}\": {{ \"value\": … }} }}",
                    entry.key
                );
                self.error("missing-parameter", entry.key_span, what, hint);
                // It is there all the same, for those that refer to it.
                found.push((Name::from(entry.key.as_str()), Value::Null));
                continue;
            };
            self.check_parameter(entry, node);
            let value = match is_secure(entry) {
                true => constant(node).secure(),
                false => constant(node),
            };
            found.push((Name::from(entry.key.as_str()), value));
        }
        for values in [file, beside].into_iter().flatten() {
            for given in values.entries().unwrap_or_default() {
                let known = entries
                    .iter()
                    .any(|entry| entry.key.eq_ignore_ascii_case(&given.key));
                if !known && given.key != "$schema" && given.key != "contentVersion" {
                    let what = format!("the definition has no parameter `{}`", given.key);
                    let names = entries.iter().map(|entry| entry.key.as_str());
                    let hint = did_you_mean(&given.key, names)
                        .unwrap_or_else(|| String::from("the value is not used"));
                    self.warning("unknown-parameter", given.key_span, what, hint);
                }
            }
        }
        found
    }

    fn check_parameter(&mut self, declared: &Entry, value: &Node) {
        let kind = declared.value.get_any_case("type").and_then(Node::as_str);
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let (fits, wanted) = match (kind.as_str(), &value.kind) {
            (_, Kind::Null) => (true, ""),
            ("string" | "securestring", kind) => (matches!(kind, Kind::String(_)), "text"),
            ("int", kind) => (matches!(kind, Kind::Int(_)), "a whole number"),
            ("float", kind) => (matches!(kind, Kind::Int(_) | Kind::Float(_)), "a number"),
            ("bool", kind) => (matches!(kind, Kind::Bool(_)), "true or false"),
            ("array", kind) => (matches!(kind, Kind::Array(_)), "a list"),
            ("object" | "secureobject", kind) => (matches!(kind, Kind::Object(_)), "a map"),
            _ => (true, ""),
        };
        let what = format!("the parameter `{}`", declared.key);
        if !fits {
            let hint = "the value must be of the declared type";
            self.wrong_type(value, &what, wanted, hint);
        }
        if is_secure(declared) && !matches!(value.kind, Kind::Null) {
            let what = format!(
                "{what} is hidden from every view, but the store keeps the file that has its value"
            );
            let hint = "leave it out and write @secret('NAME') where it is used";
            self.warning("secure-value", declared.key_span, what, hint);
        }
        let Some(Kind::Array(allowed)) = declared
            .value
            .get_any_case("allowedValues")
            .map(|node| &node.kind)
        else {
            return;
        };
        let given = constant(value);
        if !allowed.iter().any(|allowed| constant(allowed) == given) {
            let shown: Vec<String> = allowed
                .iter()
                .map(|node| constant(node).to_json())
                .collect();
            let hint = format!("allowed are: {}", shown.join(", "));
            let what = format!("{what} cannot be {}", given.to_json());
            self.error("not-allowed", value.span, what, hint);
        }
    }

    /// The first trigger; a run begins as if it had fired.
    fn trigger(&mut self, entry: &Entry) -> Option<Trigger> {
        let hint = "for example triggers: { manual: { type: Request, kind: Http } }";
        let entries = self.map(entry, hint);
        let names = entries.iter().map(|entry| Name::from(entry.key.as_str()));
        self.triggers = names.collect();
        if let Some(second) = entries.get(1) {
            let what = "only the first trigger starts runs";
            let hint = "the input is taken as what the first trigger delivers";
            self.warning("second-trigger", second.key_span, what, hint);
        }
        let first = entries.first()?;
        let what = format!("the trigger `{}`", first.key);
        let mut fields = self.fields(&first.value, &what, hint)?;
        let kind = fields.need(self, "type", first.key_span, hint);
        let label = kind.and_then(|entry| self.text(entry, hint));
        if let Some(split) = fields.get("splitOn") {
            let what = "`splitOn` starts a run for each item in Azure; here one run gets the whole \
                        body, and no others are started";
            let hint = "put the actions into a Foreach over the list, or start a run for each item";
            self.warning("not-supported", split.key_span, what, hint);
        }
        if let Some(configuration) = fields.get("runtimeConfiguration")
            && let Some(data) = member(configuration, "secureData")
        {
            let what = "`secureData` of a trigger hides nothing here: its input lies readable in \
                        the store";
            let hint = "declare a parameter of type `securestring` for what nobody is to see";
            self.warning("not-supported", data.key_span, what, hint);
        }
        let is_recurrence = label?.eq_ignore_ascii_case("Recurrence");
        let schedule = fields
            .get("recurrence")
            .filter(|_| is_recurrence)
            .and_then(|entry| self.recurrence(entry));
        Some(Trigger {
            name: Name::from(first.key.as_str()),
            recurrence: schedule,
        })
    }
}

/// The definition in its wrapper: bare, `{definition, …}`, or `{properties: {definition, …}}`.
fn find(node: &Node) -> Found<'_> {
    let inner = node.get("properties").unwrap_or(node);
    match inner.get("definition") {
        Some(definition) => Found {
            definition,
            values: inner.get_any_case("parameters"),
            name: node.get("name").and_then(Node::as_str),
        },
        None => Found {
            definition: node,
            values: None,
            name: None,
        },
    }
}
