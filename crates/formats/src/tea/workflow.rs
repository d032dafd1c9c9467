//! The file as a whole: its keys, its initial state and its constants.

use super::Tea;
use super::interrupt::INTERRUPTS;
use crate::append;
use crate::builder;
use crate::checks;
use crate::environment;
use crate::reader::Mention;
use windlass_expression::{Object, Reference, Template, Value};
use windlass_model::hir::{Outputs, Workflow};
use windlass_model::model::{Dialect, FILES_VARIABLE, Name};
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node};
use windlass_value::words;

/// Keys that would change the result of a run, and that Windlass does not support.
const UNSUPPORTED: [&str; 1] = ["imports"];
/// Keys at the top of the file that are arguments of `validate.extraction`, with the names of the arguments.
const EXTRACTION: [(&str, &str); 3] = [
    ("extraction_schema", "schema"),
    ("validation_constraints", "constraints"),
    ("validation_probes", "probes"),
];
/// Default of `settings.max_steps`, the maximum number of nodes that a run enters (docs/reference/tea.md).
const MAX_STEPS: u32 = 1000;
pub(super) const PROVIDERS: &str = "shell_providers";
/// The top-level names in templates.
const ROOTS: [&str; 7] = words! { state variables data settings env secrets result };
const SETTINGS: &str = "for example settings: { max_steps: 1000 }";

impl<'n> Tea<'_, 'n> {
    pub(super) fn workflow(&mut self, node: &'n Node, stem: &str) -> Workflow {
        let mut workflow = Workflow {
            outputs: Outputs::State,
            ..builder::workflow(stem, Dialect::Tea, node.span)
        };
        let Some(mut fields) = self.fields(node, "the workflow", "a map") else {
            return workflow;
        };
        fields.allow(&["dialect", "description", "version", "metadata", "$schema"]);
        if let Some(entry) = fields.non_null_quiet("name")
            && let Some(name) = self.text(entry, "for example name: agent")
        {
            workflow.name = Name::from(name);
        }
        if let Some(entry) = fields.non_null_quiet("initial_state") {
            let hint = "for example initial_state: { count: 0 }";
            let state = self.constants(entry, hint);
            let pairs = state.into_iter();
            workflow.variables = pairs
                .map(|(name, value)| (name, Template::constant(value)))
                .collect();
        }
        for key in ["variables", "data", "settings"] {
            let entry = fields.non_null(self, key);
            let hint = format!("for example {key}: {{ limit: 3 }}");
            let map = entry.map(|entry| self.constants(entry, &hint));
            let value = Value::object(map.unwrap_or_default());
            workflow.parameters.push((Name::from(key), value));
        }
        let max_steps = fields
            .get("settings")
            .map_or(MAX_STEPS, |entry| self.settings(entry));
        if let Some(entry) = fields.non_null(self, "handlers") {
            workflow.handlers = self.handlers(entry);
        }
        if let Some(config) = fields.get("config") {
            self.config(config);
        }
        for (key, argument) in EXTRACTION {
            if let Some(entry) = fields.non_null(self, key) {
                self.extraction.push((argument, entry.value.to_value()));
            }
        }
        for key in INTERRUPTS {
            if let Some(entry) = fields.get(key) {
                self.ignored(entry, "it means something under `config`, as in TEA");
            }
        }
        for key in UNSUPPORTED {
            if let Some(entry) = fields.get(key) {
                self.not_supported(entry);
            }
        }
        let nodes = fields.required(
            self,
            "nodes",
            node.span,
            "for example nodes: [{ name: step, run: \"return {'done': True}\" }]",
        );
        let edges = fields.get("edges");
        fields.finish(self);
        if let Some(nodes) = nodes {
            workflow.body = self.nodes(nodes, edges, &workflow.name, max_steps);
        }
        if self.replaces {
            workflow.at_success = append::put(self, FILES_VARIABLE).ok();
        }
        let mentions = std::mem::take(&mut self.mentions);
        self.misspelt_roots(&mentions, &workflow.variables);
        workflow.environment = environment::reads(self, &mentions, node);
        workflow.scripts = std::mem::take(&mut self.scripts);
        workflow
    }

    /// Warns of top-level names that are similar to those of templates. They are read as keys of the state, which is
    /// known only during a run.
    fn misspelt_roots(&mut self, mentions: &[Mention], state: &[(Name, Template)]) {
        for mention in mentions.iter().filter(|mention| !mention.is_optional) {
            let Reference::Root(name) = &mention.reference else {
                continue;
            };
            let is_known = ROOTS.contains(&&**name) || state.iter().any(|(key, _)| **key == **name);
            if let Some(near) = nearest(name, ROOTS).filter(|_| !is_known) {
                let what = format!("`{name}` is read as a key of the state");
                let hint = format!("did you mean `{near}`?");
                self.warning("unknown-name", mention.span, what, hint);
            }
        }
    }

    /// Reports a key that Windlass does not support, unless its value is empty.
    pub(super) fn not_supported(&mut self, entry: &Entry) {
        let nothing = match &entry.value.kind {
            Kind::Null | Kind::Bool(false) => true,
            Kind::Array(items) => items.is_empty(),
            _ => false,
        };
        if nothing {
            return self.ignored(entry, "it is not supported, and empty");
        }
        let what = format!("`{}` is not supported", entry.key);
        let hint = "it would change the result of a run, so it is not ignored; remove it";
        self.error("not-supported", entry.key_span, what, hint);
    }

    /// Warns of a key that is accepted but has no effect.
    pub(super) fn ignored(&mut self, entry: &Entry, why: &str) {
        let what = format!("`{}` is ignored", entry.key);
        self.warning("ignored-key", entry.key_span, what, why);
    }

    fn config(&mut self, config: &'n Entry) {
        for entry in config.value.entries().unwrap_or_default() {
            if self.is_interrupts(entry) {
                continue;
            }
            // A misspelt key of `INTERRUPTS` is an error, because runs would not wait at its nodes.
            match nearest(&entry.key, INTERRUPTS) {
                Some(near) => self.unknown_key("`config`", entry, Some(near), &INTERRUPTS),
                None => self.ignored(entry, "runs are stored, and faults are errors, in any case"),
            }
        }
    }

    fn constants(&mut self, entry: &Entry, hint: &str) -> Object {
        self.map(entry, hint);
        match entry.value.to_value() {
            Value::Object(map) => std::sync::Arc::unwrap_or_clone(map),
            _ => Object::new(),
        }
    }

    /// Reads `settings`: defaults for calls of a model, and the maximum number of nodes, which is returned.
    fn settings(&mut self, settings: &'n Entry) -> u32 {
        let entries = settings.value.entries().unwrap_or_default();
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        if let Some(llm) = find("llm").filter(|llm| !matches!(llm.value.kind, Kind::Null)) {
            let entries = self.map(llm, "for example llm: { model: gpt-4o }");
            self.model_keys("`settings.llm`", &[], entries.iter());
            for entry in entries {
                let template = self.template(&entry.value);
                // TEA has providers that Windlass does not have, and each action may name another one.
                if entry.key != "provider" {
                    checks::model_input(self, entry);
                }
                self.llm.push((Name::from(entry.key.as_str()), template));
            }
        }
        // `providers` under `llm` has precedence over this key.
        let has = self.llm.iter().any(|(key, _)| &**key == PROVIDERS);
        if let Some(providers) = find(PROVIDERS).filter(|_| !has) {
            let template = self.template(&providers.value);
            self.llm.push((Name::from(PROVIDERS), template));
        }
        if let Some(entry) = find("error_handling") {
            self.error_handling(entry);
        }
        let Some(entry) = find("max_steps") else {
            let slip = entries
                .iter()
                .find(|entry| nearest(&entry.key, ["max_steps"]).is_some());
            if let Some(entry) = slip {
                let what = format!(
                    "`{}` bounds nothing, so {MAX_STEPS} nodes are the most",
                    entry.key
                );
                self.warning(
                    "unknown-key",
                    entry.key_span,
                    what,
                    "did you mean `max_steps`?",
                );
            }
            return MAX_STEPS;
        };
        let steps = match entry.value.kind {
            Kind::Int(steps) => u32::try_from(steps).ok().filter(|steps| *steps > 0),
            _ => None,
        };
        if steps.is_none() {
            let what = "`max_steps` must be a whole number from 1";
            self.error("out-of-range", entry.value.span, what, SETTINGS);
        }
        steps.unwrap_or(MAX_STEPS)
    }
}
