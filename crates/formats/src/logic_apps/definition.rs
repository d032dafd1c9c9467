//! A Logic Apps definition as a whole: its wrappers, the targets of its connections, and its parts
//! (docs/reference/azure.md).

use super::LogicApps;
use super::trigger::run_first;
use crate::actions::ActionReader;
use crate::actions::{ConnectionKind, Settings, last_path_segment};
use crate::arm::{self, workflow_resource};
use windlass_model::hir::{Block, Workflow};
use windlass_model::model::Name;
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node};
use windlass_value::words;

/// The keys around a definition that have an effect here.
const USED_KEYS: [&str; 9] = words! {
    definition parameters connectionReferences properties type name displayName location kind
};

/// The kinds of workflows of Standard apps.
const KINDS: [&str; 2] = ["Stateful", "Stateless"];

/// A definition, and what is next to it in its wrapper, such as the values of its parameters.
struct DefinitionParts<'n> {
    definition: &'n Node,
    values: Option<&'n Node>,
    /// The targets of the definition's connections, in the form that Power Automate exports.
    references: Option<&'n Node>,
    is_flow: bool,
    name: Option<&'n str>,
    /// The display name of the workflow.
    title: Option<&'n str>,
    location: Option<&'n str>,
}

impl ActionReader<'_, LogicApps> {
    /// Reads a definition in any of its wrappers, with the files next to it.
    pub(super) fn definition(
        &mut self,
        node: &Node,
        settings: &Settings<'_>,
        workflow: &mut Workflow,
    ) {
        self.format.connection_targets = settings.connection_targets();
        self.format.connections = settings.connections();
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
            &mut self.missing_inputs,
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
        let Some(found) = self.definition_parts(node, deployed) else {
            return;
        };
        if let Some(name) = found.name {
            workflow.name = Name::from(name);
        }
        self.connect(&found);
        self.format.is_flow = found.is_flow;
        let with_settings = self.with_settings_in_definition(found.definition, settings);
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
        self.parameters.clone_from(&workflow.parameters);
        let mut guard = None;
        if let Some(entry) = fields.get("triggers") {
            let name = &*workflow.name;
            let title = found.title.unwrap_or(name);
            let resource = workflow_resource(name, title, found.location);
            guard = self.trigger(entry, resource, workflow);
        }
        // A definition may have no actions.
        workflow.body = match fields.get("actions") {
            Some(entry) => self.actions(entry),
            None => Block::Dag(Vec::new()),
        };
        self.clean_up(None, workflow);
        if let Some(guard) = guard {
            run_first(guard, &mut workflow.body);
        }
        self.await_turn(workflow, definition.span);
        if let Some(entry) = fields.get("outputs") {
            self.definition_outputs(entry, workflow);
        }
        fields.finish(self);
    }

    /// Finds the definition in its wrapper. Reports misspelt keys of the wrapper.
    fn definition_parts<'n>(
        &mut self,
        node: &'n Node,
        deployed: bool,
    ) -> Option<DefinitionParts<'n>> {
        let inner = node.get("properties").unwrap_or(node);
        let is_wrapped = inner.get("definition").is_some();
        if deployed && !is_wrapped {
            let what = "the workflow of this template has no `definition`";
            let keys = inner.entries().unwrap_or_default().iter();
            let is_near = |entry: &&Entry| nearest(&entry.key, ["definition"]).is_some();
            let (span, hint) = match keys.clone().find(is_near) {
                Some(near) => (near.key_span, "did you mean `definition`?"),
                None => (inner.span, "write it as `definition` in `properties`"),
            };
            self.error("missing-key", span, what, hint);
            return None;
        }
        if is_wrapped {
            for node in [Some(node), node.get("properties")].into_iter().flatten() {
                let other = ["installedConnectionReferences"];
                self.misspelt_keys(node, "the wrapper of the definition", &USED_KEYS, &other);
                if let Some(kind) = node.get_any_case("kind") {
                    self.misspelt_kind(kind);
                }
            }
        }
        Some(find(node))
    }

    /// Warns of a misspelt kind of a workflow. Azure has kinds that are not known here.
    fn misspelt_kind(&mut self, kind: &Node) {
        let word = kind.as_str().unwrap_or_default();
        if let Some(near) = nearest(word, KINDS)
            && !near.eq_ignore_ascii_case(word)
        {
            let what = format!("unknown kind `{word}` of a workflow");
            let hint = format!("did you mean `{near}`?");
            self.warning("unknown-value", kind.span, what, hint);
        }
    }

    /// Replaces the app settings that a definition reads, except in its parameters, whose values are computed.
    fn with_settings_in_definition(&mut self, definition: &Node, settings: &Settings<'_>) -> Node {
        let Some(entries) = definition.entries() else {
            return definition.clone();
        };
        let entries = entries.iter().map(|entry| match entry {
            declared if declared.key.eq_ignore_ascii_case("parameters") => entry.clone(),
            _ => Entry {
                value: self.with_settings(&entry.value, settings, false),
                ..entry.clone()
            },
        });
        let kind = Kind::Object(entries.collect());
        Node {
            kind,
            ..definition.clone()
        }
    }

    /// Records the targets of the connections that are next to a definition.
    fn connect(&mut self, found: &DefinitionParts<'_>) {
        let connections = found.values.and_then(|values| {
            let connections = values.get_any_case("$connections")?;
            connections.get_any_case("value")
        });
        for connections in [connections, found.references].into_iter().flatten() {
            let entries = connections.entries().unwrap_or_default();
            if !entries.is_empty() {
                let known = self
                    .format
                    .connections
                    .entry(ConnectionKind::Managed)
                    .or_default();
                known.extend(entries.iter().map(|entry| entry.key.to_lowercase()));
            }
            for entry in connections.entries().unwrap_or_default() {
                let api = entry.value.get_any_case("api");
                let id = entry.value.get_any_case("id").and_then(Node::as_str);
                let name = api.and_then(|api| api.get_any_case("name")?.as_str());
                let led = id
                    .map(last_path_segment)
                    .or_else(|| name.map(str::to_owned));
                let led = led.map(|led| (entry.key.to_lowercase(), led));
                self.format.connection_targets.extend(led);
            }
        }
    }
}

/// Finds the definition in its wrapper.
/// It is bare, or in `{definition, …}` or `{properties: {definition, …}}`.
fn find(node: &Node) -> DefinitionParts<'_> {
    let inner = node.get("properties").unwrap_or(node);
    let Some(definition) = inner.get("definition") else {
        return DefinitionParts {
            definition: node,
            values: None,
            references: None,
            is_flow: is_flow(node),
            name: None,
            title: None,
            location: None,
        };
    };
    let references = inner.get_any_case("connectionReferences");
    let kind = node.get("type").and_then(Node::as_str);
    let is_typed = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("Microsoft.Flow/flows"));
    DefinitionParts {
        definition,
        values: inner.get_any_case("parameters"),
        references,
        is_flow: is_typed || references.is_some() || is_flow(definition),
        name: node.get("name").and_then(Node::as_str),
        title: inner.get("displayName").and_then(Node::as_str),
        location: node.get("location").and_then(Node::as_str),
    }
}

/// Returns true if a definition declares the parameter that Power Automate adds to each flow.
fn is_flow(definition: &Node) -> bool {
    let parameters = definition.get_any_case("parameters");
    parameters.is_some_and(|parameters| parameters.get_any_case("$authentication").is_some())
}
