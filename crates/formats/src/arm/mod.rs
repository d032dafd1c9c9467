//! ARM templates that contain a definition.
//! This module finds the workflows among the resources of a template, as a deployment would create them. `compute`
//! evaluates the template's expressions. Nothing is deployed.

mod collections;
mod compute;
mod expression;
mod functions;
mod lambda;
mod names;
mod resources;
mod text;
mod time;
mod values;

pub(crate) use compute::parameter_stand_in;
pub(crate) use resources::workflow_resource;

use crate::missing::MissingInputs;
use crate::reader::Reader;
use compute::{Deployment, MAX_STEPS};
use expression::inside;
use names::{Frame, null};
use values::declared;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node, Span};
use windlass_value::words;

const WORKFLOW: &str = "Microsoft.Logic/workflows";
const DEPLOYMENT: &str = "Microsoft.Resources/deployments";

/// The keys of a resource that have an effect here.
const USED_KEYS: [&str; 8] = words! {
    type name location kind condition copy properties resources
};

/// A workflow of a template, with its name and its resource as a deployment would create it.
struct Candidate {
    name: Option<String>,
    resource: Node,
    span: Span,
}

/// Returns the chosen workflow among the resources of a template, as a separate tree.
pub(crate) fn workflow(
    reader: &mut Reader<'_>,
    missing: &mut MissingInputs,
    node: &Node,
    given: &[&Node],
    chosen: Option<&str>,
) -> Option<Node> {
    reader.check_given(node, given);
    let mut template = Deployment::of(reader, missing);
    template.enter(node, given);
    let mut found = Vec::new();
    template.collect(node, &mut found);
    let undeployed = template.undeployed;
    let mut names: Vec<String> = Vec::new();
    for name in found.iter().filter_map(|one| one.name.clone()) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            names.push(name);
        }
    }
    missing.workflows.clone_from(&names);
    if let Some(wanted) = chosen {
        let is = |one: &Candidate| {
            one.name
                .as_deref()
                .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        };
        // A nested deployment may deploy the same workflow again with more content, so the last one is used.
        let at = found.iter().rposition(is);
        if at.is_none() {
            let what = format!("unknown workflow `{wanted}` in this template");
            let hint = did_you_mean(wanted, &names)
                .unwrap_or_else(|| format!("its workflows are: {}", names.join(", ")));
            reader.error("no-workflow", node.span, what, hint);
        }
        return at.map(|at| found.swap_remove(at).resource);
    }
    match (found.len(), names.len()) {
        (0, _) => {
            let (span, what, hint) = match undeployed {
                Some(condition) => (
                    condition,
                    "this ARM template deploys no workflow: the `condition` of its workflow is false",
                    "the condition can read parameters: set them with --parameters FILE",
                ),
                None => (
                    node.span,
                    "this ARM template holds no workflow",
                    "it must hold a resource of type Microsoft.Logic/workflows",
                ),
            };
            reader.error("no-workflow", span, what, hint);
            None
        }
        (1, _) | (_, 1) => found.pop().map(|only| only.resource),
        _ => {
            let span = found.get(1).map_or(node.span, |second| second.span);
            let what = "this ARM template holds several workflows";
            let hint = format!("choose one with --workflow NAME: {}", names.join(", "));
            reader.error("several-workflows", span, what, hint);
            None
        }
    }
}

/// Maximum depth at which members that are null are removed.
const MAX_NULL_DEPTH: usize = 100;

/// Removes the members that are null, as a deployment does.
/// The inputs of actions and the values of parameters stay unchanged.
fn without_null(mut node: Node, depth: usize) -> Node {
    if depth > MAX_NULL_DEPTH {
        return node;
    }
    match &mut node.kind {
        Kind::Object(entries) => {
            entries
                .retain(|entry| is_retained(&entry.key) || !matches!(entry.value.kind, Kind::Null));
            for entry in entries.iter_mut().filter(|entry| !is_retained(&entry.key)) {
                let value = std::mem::replace(&mut entry.value, null(node.span));
                entry.value = without_null(value, depth + 1);
            }
        }
        Kind::Array(items) => {
            for item in items {
                let value = std::mem::replace(item, null(node.span));
                *item = without_null(value, depth + 1);
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::String(_) => {}
    }
    node
}

fn is_retained(key: &str) -> bool {
    ["inputs", "value", "defaultValue"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(key))
}

fn is_type(resource: &Node, wanted: &str) -> bool {
    let kind = resource.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(wanted))
}

/// Returns the resources of a template, which are a list or a map by symbolic names.
fn resources(template: &Node) -> Vec<&Node> {
    match template.get_any_case("resources").map(|node| &node.kind) {
        Some(Kind::Array(items)) => items.iter().collect(),
        Some(Kind::Object(entries)) => entries.iter().map(|entry| &entry.value).collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a resource is a workflow or contains one.
/// Other resources are not computed, because nothing is deployed.
fn leads_to_workflow(resource: &Node) -> bool {
    let holds = |template: &Node| resources(template).into_iter().any(leads_to_workflow);
    let carried = |key: &str| resource.get_any_case("properties")?.get_any_case(key);
    is_type(resource, WORKFLOW)
        || holds(resource)
        || carried("mainTemplate").is_some_and(holds)
        || carried("template").is_some_and(holds)
}

impl Deployment<'_, '_> {
    fn collect(&mut self, template: &Node, found: &mut Vec<Candidate>) {
        self.depth += 1;
        if self.depth <= MAX_STEPS {
            for resource in resources(template) {
                self.collect_resource(resource, found);
            }
        }
        self.depth -= 1;
    }

    fn collect_resource(&mut self, resource: &Node, found: &mut Vec<Candidate>) {
        if !leads_to_workflow(resource) {
            return;
        }
        let Some(copy) = resource.get_any_case("copy") else {
            self.collect_one(resource, found);
            return;
        };
        let count = self.count_of(copy);
        for index in 0..count {
            self.begin_copy(copy, index);
            let is_understood = self.collect_one(resource, found);
            self.end_copy();
            // A mistake is the same in all copies, so it is reported only for the first copy.
            if !is_understood {
                return;
            }
        }
    }

    /// Collects the workflows of a resource, or of one copy of it. Returns false if the resource has a mistake.
    fn collect_one(&mut self, resource: &Node, found: &mut Vec<Candidate>) -> bool {
        if !self.is_within(resource.span) {
            return false;
        }
        self.reader.misspelt_keys(
            resource,
            "a resource",
            &USED_KEYS,
            &["plan", "sku", "scope"],
        );
        match self.is_deployed(resource) {
            Some(true) => {}
            Some(false) => {
                let condition = resource.get_any_case("condition");
                self.undeployed = condition.map(|condition| condition.span);
                return true;
            }
            None => return false,
        }
        if is_type(resource, WORKFLOW) {
            let candidate = self.candidate(resource);
            found.push(candidate);
        }
        self.collect(resource, found);
        let Some(properties) = resource.get_any_case("properties") else {
            return true;
        };
        if let Some(template) = properties.get_any_case("mainTemplate") {
            // This template only wraps `mainTemplate`, whose own expressions are escaped.
            let template = self.eval_tree(template);
            self.nested(&template, None, found);
        }
        let Some(template) = properties.get_any_case("template") else {
            return true;
        };
        let scope = properties.get_any_case("expressionEvaluationOptions");
        let scope = scope.and_then(|options| options.get_any_case("scope")?.as_str());
        let inner = scope.is_some_and(|scope| scope.eq_ignore_ascii_case("inner"));
        let given = properties.get_any_case("parameters");
        // All parameters together may be one expression.
        let given = given.map(|given| match given.as_str() {
            Some(_) => self.eval_tree(given),
            None => given.clone(),
        });
        if let Some(given) = &given {
            self.reader.check_given_names(template, given);
        }
        match is_type(resource, DEPLOYMENT) && !inner && declared(template).is_empty() {
            true => self.collect(template, found),
            false => self.nested(template, given.as_ref(), found),
        }
        true
    }

    /// Collects the workflows of a nested template. `given` has the values of its parameters.
    fn nested(&mut self, template: &Node, given: Option<&Node>, found: &mut Vec<Candidate>) {
        let given: Vec<&Node> = given.into_iter().collect();
        self.enter(template, &given);
        self.collect(template, found);
        self.frames.pop();
    }

    /// Enters a template.
    /// Parameters that can be computed are checked now. The others are reported only when a workflow needs them.
    fn enter(&mut self, template: &Node, given: &[&Node]) {
        self.reader.check_declared(template);
        self.frames.push(Frame::of(template, given));
        self.lenient_depth += 1;
        for parameter in declared(template) {
            // If a value is missing, this is reported where the value is used.
            let _unknown = self.parameter(&parameter.key);
        }
        self.lenient_depth -= 1;
    }

    /// Evaluates the condition of a resource. Reports an invalid condition, and returns `None`.
    fn is_deployed(&mut self, resource: &Node) -> Option<bool> {
        let Some(condition) = resource.get_any_case("condition") else {
            return Some(true);
        };
        let before = self.seen;
        let condition = self.eval_tree(condition);
        let seen = self.seen.since(before);
        match &condition.kind {
            _ if seen.misses > 0 => None,
            Kind::Bool(deployed) => Some(*deployed),
            // A condition that only a deployment knows may be true, so the resource is included.
            _ if seen.unknown > 0 => Some(true),
            _ => {
                let what = "the `condition` of a resource is neither true nor false";
                let hint = "a deployment would refuse it, too";
                self.reader
                    .error("arm-condition", condition.span, what, hint);
                None
            }
        }
    }

    /// Makes a candidate from a resource, with its expressions replaced by values. Its name may stay unknown.
    fn candidate(&mut self, resource: &Node) -> Candidate {
        self.lenient_depth += 1;
        self.is_naming = true;
        self.has_stand_in_name = false;
        let name = resource
            .get_any_case("name")
            .map(|name| self.eval_tree(name));
        self.is_naming = false;
        self.lenient_depth -= 1;
        let known = name.as_ref().and_then(Node::as_str);
        let known = known
            .filter(|name| inside(name).is_none())
            .map(str::to_owned);
        let entries = resource.entries().unwrap_or_default().iter();
        let entries = entries.filter_map(|entry| {
            let value = match entry.key.to_ascii_lowercase().as_str() {
                "properties" => without_null(self.eval_tree(&entry.value), 0),
                "name" => name
                    .clone()
                    .filter(|_| known.is_some() && !self.has_stand_in_name)?,
                "kind" => entry.value.clone(),
                _ => return None,
            };
            Some(Entry {
                value,
                key: entry.key.to_ascii_lowercase(),
                key_span: entry.key_span,
            })
        });
        Candidate {
            resource: Node {
                span: resource.span,
                kind: Kind::Object(entries.collect()),
            },
            name: known,
            span: resource.span,
        }
    }
}
