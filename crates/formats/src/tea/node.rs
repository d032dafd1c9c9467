//! Reads one node: its form, and what happens with its result.

use super::builder::{map_of, merge, set, step, with_result};
use super::{MAX_STEPS, SourcePosition, Tea, builder};
use crate::fields::Fields;
use windlass_expression::{Template, Value};
use windlass_model::hir::{Assignment, Step, StepKind};
use windlass_model::model::Name;
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node};

pub(super) const DYNAMIC_PARALLEL: &str = "dynamic_parallel";
pub(super) const WHILE_LOOP: &str = "while_loop";
/// Keys that change what a node does, and that Windlass does not support.
const UNSUPPORTED: [&str; 3] = ["parallel_each", "strategy", "steps_parallel"];
/// Types of nodes that TEA has and Windlass does not.
const UNSUPPORTED_TYPES: [&str; 1] = ["interrupt"];
const NODE: &str = "a node is a map: { name: step, run: \"return {'done': True}\" }";

#[derive(Clone, Debug)]
pub(super) enum ResultTarget {
    /// If the result is a map, it is merged into the state.
    Merge,
    /// The result is stored under this key.
    Key(Name),
    /// Each key of the state is set to the value of a template that reads `result`.
    Map(Vec<(Name, Template)>),
}

pub(super) struct LoweredNode {
    pub label: Name,
    pub kind: StepKind,
    /// The value in the node's record, if it differs from the executor's result.
    pub output: Option<Template>,
    /// Timeout of the whole node.
    pub timeout: Option<Template>,
}

impl LoweredNode {
    pub fn new(label: &str, kind: StepKind) -> Self {
        Self {
            label: Name::from(label),
            kind,
            output: None,
            timeout: None,
        }
    }

    pub fn step(self, place: SourcePosition) -> Step {
        Step {
            output: self.output,
            timeout: self.timeout,
            ..step(place, &self.label, self.kind)
        }
    }
}

impl<'n> Tea<'_, 'n> {
    /// Reads a node as a step.
    /// If the node cannot be read, this is reported, and the step does nothing.
    pub(super) fn node(&mut self, node: &'n Node, place: &SourcePosition) -> Step {
        let nothing = || step(place.clone(), "node", StepKind::Nothing);
        if self.used.len() > MAX_STEPS {
            let message = format!("the nodes need more than {MAX_STEPS} steps");
            let hint = "a loop does the same many times";
            self.error("too-large", place.span, message, hint);
            return nothing();
        }
        let what = format!("the node `{}`", place.shown());
        let Some(mut fields) = self.fields(node, &what, NODE) else {
            return nothing();
        };
        fields.allow(&[
            "name",
            "description",
            "metadata",
            "goto",
            "fan_in",
            "interrupt",
        ]);
        for key in UNSUPPORTED {
            if let Some(entry) = fields.get(key) {
                self.not_supported(entry);
            }
        }
        if place.in_body {
            // A node of this type needs `fan_in`, even in the body of a loop.
            let collects = node.get("type").and_then(Node::as_str) == Some(DYNAMIC_PARALLEL);
            for key in ["goto", "fan_in"] {
                if let Some(entry) = fields.get(key).filter(|_| !collects || key != "fan_in") {
                    self.ignored(entry, "the nodes of a body run one after the other");
                }
            }
            let interrupt = fields.get("interrupt");
            let waits =
                |entry: &&Entry| !matches!(entry.value.kind, Kind::Null | Kind::Bool(false));
            if let Some(entry) = interrupt.filter(waits) {
                let what = "a run does not wait at a node of a body";
                let hint =
                    "put `interrupt` on a node at the top level, or use `waitForSignal` here";
                self.error("not-supported", entry.key_span, what, hint);
            }
        }
        for key in ["retry", "fallback"] {
            if let Some(entry) = fields.get(key) {
                let why = "what fails ends the run; `on_error` and retry.loop try again";
                self.ignored(entry, why);
            }
        }
        let on_error = fields.get("on_error");
        let made = self.form(&mut fields, place);
        fields.finish(self);
        let Some(made) = made else { return nothing() };
        let step = made.step(place.clone());
        match on_error {
            Some(entry) if place.in_body => {
                self.ignored(entry, "in a body TEA does not read it: put it on the loop");
                step
            }
            Some(on_error) => self.with_on_error(step, node, on_error, place),
            None => step,
        }
    }

    fn form(&mut self, fields: &mut Fields<'n>, place: &SourcePosition) -> Option<LoweredNode> {
        if let Some(entry) = fields.non_null(self, "type") {
            let kind = self.text(entry, "while_loop, dynamic_parallel, or no `type` at all")?;
            if kind == WHILE_LOOP {
                return Some(self.while_loop(fields, place));
            }
            if kind == DYNAMIC_PARALLEL {
                return self.dynamic_parallel(fields, place);
            }
            if UNSUPPORTED_TYPES.contains(&kind) {
                let what = format!("nodes of type `{kind}` are not supported");
                let hint = "a node has `run`, `uses`, or a `type`: while_loop, dynamic_parallel";
                self.error("not-supported", entry.value.span, what, hint);
                return None;
            }
            let near = nearest(&kind.to_lowercase(), [WHILE_LOOP, DYNAMIC_PARALLEL]);
            let has_body = fields.get("body").map(|_| WHILE_LOOP);
            if let Some(near) = near.or(has_body) {
                let what = format!("`{kind}` is not a type of node");
                let hint = format!("did you mean `{near}`?");
                self.error("unknown-type", entry.value.span, what, hint);
                fields.allow_rest();
                return None;
            }
            self.ignored(
                entry,
                "only `while_loop` and `dynamic_parallel` are types of their own",
            );
        }
        let run = fields.non_null_quiet("run");
        let script = fields.non_null(self, "script");
        let uses = fields.non_null(self, "uses");
        let mut action = fields.non_null(self, "action");
        let mut idle = false;
        if self.ignores_actions
            && let Some(entry) = action.take()
        {
            self.ignored_action(entry);
            idle = true;
        }
        let steps = fields.non_null(self, "steps");
        let forms = [run, script, uses, action, steps];
        let mut forms = forms.into_iter().flatten();
        let first = forms.next();
        if let Some(second) = forms.next() {
            let what = format!("`{}` has more than one thing to do", place.shown());
            let hint = "use only one of `run`, `uses`, `action` and `steps`";
            self.error("conflict", second.key_span, what, hint);
            return None;
        }
        let Some(entry) = first else {
            fields.allow(&["with", "output", "output_key", "language", "timeout"]);
            if idle {
                fields.allow_rest();
            }
            return Some(LoweredNode::new("node", StepKind::Nothing));
        };
        match entry.key.as_str() {
            "run" | "script" => self.run(entry, fields, place),
            "steps" => self.steps(entry, place),
            _ => self.uses(entry, fields, place),
        }
    }

    /// Reads the nodes in a node, which run one after the other.
    fn steps(&mut self, entry: &'n Entry, place: &SourcePosition) -> Option<LoweredNode> {
        let steps = self.list(entry, NODE)?;
        let steps = self.inner(steps, place, "step");
        Some(LoweredNode::new("steps", builder::block(steps)))
    }

    /// Reads nodes inside of a node, in their order. A node without a name is named by its index.
    pub(super) fn inner(
        &mut self,
        nodes: &'n [Node],
        of: &SourcePosition,
        unnamed: &str,
    ) -> Vec<Step> {
        let mut steps = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let name = match node.get("name").and_then(Node::as_str) {
                Some(name) => name.to_owned(),
                None => format!("{unnamed}_{index}"),
            };
            let span = node.get("name").map_or(node.span, |name| name.span);
            let place = self.place(&name, &of.name, span, true);
            steps.push(self.node(node, &place));
        }
        steps
    }

    /// Reads `output` or `output_key`.
    pub(super) fn result_target(&mut self, fields: &mut Fields<'n>) -> ResultTarget {
        let output = fields.non_null_quiet("output");
        let key = fields.non_null_quiet("output_key");
        let Some(entry) = output.or(key) else {
            return ResultTarget::Merge;
        };
        match &entry.value.kind {
            Kind::String(text) => ResultTarget::Key(Name::from(text.text.as_str())),
            Kind::Object(entries) => {
                let pairs = entries.iter().map(|entry| {
                    let template = self.template(&entry.value);
                    // A null value becomes an empty text.
                    let empty = builder::text("");
                    let template = match template.as_constant() {
                        Some(Value::Null) => empty,
                        Some(_) => template,
                        None => Template::call("coalesce", vec![template.clone(), empty])
                            .unwrap_or(template),
                    };
                    (Name::from(entry.key.as_str()), template)
                });
                ResultTarget::Map(pairs.collect())
            }
            _ => {
                let hint =
                    "a key of the state: output: answer; or output: { answer: \"{{ result.x }}\" }";
                self.wrong_type(&entry.value, "`output`", "a key or a map", hint);
                ResultTarget::Merge
            }
        }
    }

    /// Makes the assignments that store a result in the state (docs/reference/tea.md).
    pub(super) fn store_result(
        &self,
        target: &ResultTarget,
        value: &Template,
        place: &SourcePosition,
    ) -> Vec<Assignment> {
        let span = place.span;
        match target {
            ResultTarget::Merge if place.in_body => vec![merge(value.clone(), span)],
            ResultTarget::Merge => vec![merge(map_of(self, value), span)],
            ResultTarget::Key(key) => vec![set(key, value.clone(), span)],
            // All templates read the state as it was before the assignments.
            ResultTarget::Map(members) => {
                let members = members.iter().map(|(key, template)| {
                    let template = with_result(value, template.clone());
                    (builder::text(key), template)
                });
                vec![merge(Template::object(members.collect()), span)]
            }
        }
    }

    /// Reads a duration: seconds, text such as ISO 8601, or a template.
    pub(super) fn seconds(&mut self, entry: &Entry) -> Option<Template> {
        match entry.value.kind {
            Kind::Int(seconds) if seconds >= 0 => Some(Template::constant(Value::Int(seconds))),
            Kind::Float(seconds) if seconds >= 0.0 => {
                Some(Template::constant(Value::Float(seconds)))
            }
            Kind::String(_) => Some(self.duration(entry)?.template),
            _ => {
                let what = format!("`{}`", entry.key);
                self.wrong_type(
                    &entry.value,
                    &what,
                    "a time",
                    "a number of seconds, or text such as PT30S",
                );
                None
            }
        }
    }
}
