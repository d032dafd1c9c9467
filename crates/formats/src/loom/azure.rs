//! What only Logic Apps definitions have: their wrappers, parameters and triggers
//! (docs/reference/azure.md).

use super::Loom;
use super::settings::{ConnectionKind, Settings, last};
use super::trigger::before_all;
use crate::arm::{self, first_value, workflow_resource};
use windlass_expression::{Object, Template, Value};
use windlass_model::hir::{Block, Outputs, Workflow};
use windlass_model::model::Name;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node};

/// A definition with the values of its parameters next to it.
struct DefinitionParts<'n> {
    definition: &'n Node,
    values: Option<&'n Node>,
    /// What its connections lead to, as Power Automate exports it.
    references: Option<&'n Node>,
    name: Option<&'n str>,
    /// What people call it.
    title: Option<&'n str>,
    location: Option<&'n str>,
}

fn is_secure(declared: &Entry) -> bool {
    let kind = declared.value.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("secure"))
}

impl Loom<'_> {
    /// Reads a definition in any of its wrappers, with what lies next to it.
    pub(super) fn definition(
        &mut self,
        node: &Node,
        settings: &Settings<'_>,
        workflow: &mut Workflow,
    ) {
        self.connected = settings.connected();
        self.connections = settings.connections();
        for (values, _) in &settings.parameters {
            for given in values.entries().unwrap_or_default() {
                if let Some(reference) = given.value.get_any_case("reference") {
                    let what = format!(
                        "`{}` is a secret of a key vault, which is not read",
                        given.key
                    );
                    let hint = "set its value in another file with --parameters, or write @secret('NAME') \
                         where it is used";
                    self.warning("not-supported", reference.span, what, hint);
                }
            }
        }
        if node.get("resources").is_none() {
            return self.unwrapped(node, settings, false, workflow);
        }
        let given: Vec<&Node> = settings.parameters.iter().map(|(node, _)| *node).collect();
        if let Some(resource) = arm::workflow(
            &mut self.reader,
            &mut self.wanted,
            node,
            &given,
            settings.workflow,
        ) {
            self.unwrapped(&resource, settings, true, workflow);
        }
    }

    fn unwrapped(
        &mut self,
        node: &Node,
        settings: &Settings<'_>,
        deployed: bool,
        workflow: &mut Workflow,
    ) {
        let found = find(node);
        if let Some(name) = found.name {
            workflow.name = Name::from(name);
        }
        self.connect(&found);
        let with_settings = self.with_settings(found.definition, settings, false);
        let found = DefinitionParts {
            definition: &with_settings,
            ..found
        };
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
        workflow.parameters = self.parameters(declared, found.values, settings, deployed);
        let mut guard = None;
        if let Some(entry) = fields.get("triggers") {
            let name = &*workflow.name;
            let title = found.title.unwrap_or(name);
            let resource = workflow_resource(name, title, found.location);
            guard = self.trigger(entry, resource, workflow);
        }
        // A definition may do nothing.
        workflow.body = match fields.get("actions") {
            Some(entry) => self.actions(entry),
            None => Block::Dag(Vec::new()),
        };
        self.clean_up(None, workflow);
        if let Some(guard) = guard {
            before_all(guard, &mut workflow.body);
        }
        if let Some(entry) = fields.get("outputs") {
            self.definition_outputs(entry, workflow);
        }
        fields.finish(self);
    }

    /// `outputs: {name: {type, value}}`.
    pub(super) fn definition_outputs(&mut self, entry: &Entry, workflow: &mut Workflow) {
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

    /// Records the targets of the connections next to a definition.
    fn connect(&mut self, found: &DefinitionParts<'_>) {
        let connections = found.values.and_then(|values| {
            let connections = values.get_any_case("$connections")?;
            connections.get_any_case("value")
        });
        for connections in [connections, found.references].into_iter().flatten() {
            let entries = connections.entries().unwrap_or_default();
            if !entries.is_empty() {
                let known = self.connections.entry(ConnectionKind::Managed).or_default();
                known.extend(entries.iter().map(|entry| entry.key.to_lowercase()));
            }
            for entry in connections.entries().unwrap_or_default() {
                let api = entry.value.get_any_case("api");
                let id = entry.value.get_any_case("id").and_then(Node::as_str);
                let name = api.and_then(|api| api.get_any_case("name")?.as_str());
                let led = id.map(last).or_else(|| name.map(str::to_owned));
                let led = led.map(|led| (entry.key.to_lowercase(), led));
                self.connected.extend(led);
            }
        }
    }

    /// The value of every parameter: from a file, from next to the definition, or its default. In a
    /// Standard app, the app's file declares parameters, too.
    pub(super) fn parameters(
        &mut self,
        declared: Option<&Entry>,
        nearby: Option<&Node>,
        settings: &Settings<'_>,
        deployed: bool,
    ) -> Vec<(Name, Value)> {
        let entries = declared
            .and_then(|entry| entry.value.entries())
            .unwrap_or_default();
        let mut found = Vec::new();
        let mut secure: Vec<&Entry> = Vec::new();
        for entry in entries {
            let file = settings.parameter(&entry.key);
            let given = nearby.and_then(|values| {
                let value = values.get_any_case(&entry.key)?;
                value.get_any_case("value")
            });
            let default = entry.value.get_any_case("defaultValue");
            // What is given to a template are values of its own parameters.
            let value = match deployed {
                true => given.or(default).or(file),
                false => file.or(given).or(default),
            };
            let Some(node) = value else {
                self.without_value(entry);
                // It is there all the same, for those that refer to it.
                found.push((Name::from(entry.key.as_str()), Value::Null));
                continue;
            };
            let node = self.with_settings(node, settings, true);
            self.check_parameter(entry, &node);
            if is_secure(entry) && !matches!(node.kind, Kind::Null) {
                secure.push(entry);
            }
            let value = match is_secure(entry) {
                true => node.to_value().secure(),
                false => node.to_value(),
            };
            found.push((Name::from(entry.key.as_str()), value));
        }
        self.secure_values(&secure);
        for given in ["$connections", "$authentication"] {
            if !found
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(given))
            {
                found.push((Name::from(given), Value::object(Object::new())));
            }
        }
        let is_declared = |name: &str| {
            let mut entries = entries.iter();
            entries.any(|entry| entry.key.eq_ignore_ascii_case(name))
        };
        for (values, _) in &settings.parameters {
            for given in values.entries().unwrap_or_default() {
                let known = found
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case(&given.key));
                if let Some(value) = given.value.get_any_case("value").filter(|_| !known) {
                    let value = self.with_settings(value, settings, true);
                    let value = match is_secure(given) {
                        true => value.to_value().secure(),
                        false => value.to_value(),
                    };
                    found.push((Name::from(given.key.as_str()), value));
                }
            }
        }
        let files = settings
            .parameters
            .iter()
            .filter(|(_, strict)| *strict && !deployed);
        for values in files.map(|(values, _)| *values).chain(nearby) {
            for given in values.entries().unwrap_or_default() {
                let own = ["$schema", "contentVersion"].contains(&given.key.as_str());
                if !is_declared(&given.key) && !own {
                    let what = format!("unknown parameter `{}` of the definition", given.key);
                    let names = entries.iter().map(|entry| entry.key.as_str());
                    let hint = did_you_mean(&given.key, names)
                        .unwrap_or_else(|| String::from("the value is not used"));
                    self.warning("unknown-parameter", given.key_span, what, hint);
                } else if !own {
                    self.check_member(given);
                }
            }
        }
        found
    }

    /// Warns once of values that are hidden, but stored with the file.
    fn secure_values(&mut self, secure: &[&Entry]) {
        let Some(first) = secure.first() else { return };
        let names: Vec<String> = secure
            .iter()
            .map(|entry| format!("`{}`", entry.key))
            .collect();
        let (parameters, are, have) = match secure.len() {
            1 => ("the parameter", "is", "has its value"),
            _ => ("the parameters", "are", "has their values"),
        };
        let what = format!(
            "{parameters} {} {are} hidden from every view, but the store contains the file that \
             {have}",
            names.join(", ")
        );
        let hint = "leave it out and write @secret('NAME') where it is used";
        self.warning("secure-value", first.key_span, what, hint);
    }

    fn without_value(&mut self, declared: &Entry) {
        // A deployment gives them, and connectors have handlers here.
        if declared.key.eq_ignore_ascii_case("$connections")
            || declared.key.eq_ignore_ascii_case("$authentication")
        {
            return;
        }
        let value = first_value(&declared.key, &declared.value);
        self.wanted
            .parameter(&mut self.reader, &declared.key, declared.key_span, value);
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
        let Some(Kind::Array(allowed)) = declared
            .value
            .get_any_case("allowedValues")
            .map(|node| &node.kind)
        else {
            return;
        };
        let given = value.to_value();
        if !allowed.iter().any(|allowed| allowed.to_value() == given) {
            let shown: Vec<String> = allowed
                .iter()
                .map(|node| node.to_value().to_json())
                .collect();
            let hint = format!("allowed are: {}", shown.join(", "));
            let what = format!("{what} cannot be {}", given.to_json());
            self.error("not-allowed", value.span, what, hint);
        }
    }
}

/// The definition in its wrapper: bare, `{definition, …}`, or `{properties: {definition, …}}`.
fn find(node: &Node) -> DefinitionParts<'_> {
    let inner = node.get("properties").unwrap_or(node);
    match inner.get("definition") {
        Some(definition) => DefinitionParts {
            definition,
            values: inner.get_any_case("parameters"),
            references: inner.get_any_case("connectionReferences"),
            name: node.get("name").and_then(Node::as_str),
            title: inner.get("displayName").and_then(Node::as_str),
            location: node.get("location").and_then(Node::as_str),
        },
        None => DefinitionParts {
            definition: node,
            values: None,
            references: None,
            name: None,
            title: None,
            location: None,
        },
    }
}
