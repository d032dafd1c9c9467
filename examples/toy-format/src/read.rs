//! Reads a tree as the format, and lowers it to `hir`. All mistakes are reported, not only the first.

use crate::keys::{
    ACTIVITY, CALL, INTO, NAME, REPEAT, RESULT, SET, STEPS, TIMES, UNTIL, VARIABLES, WAIT, WITH,
};
use std::time::Duration;
use windlass_expression::{Binding, Reference, Syntax, Template, Value};
use windlass_formats::builder;
use windlass_formats::fields::Fields;
use windlass_formats::reader::Reader;
use windlass_machine::program::Caps;
use windlass_model::hir::{
    Assign, Assignment, Block, Loop, Outputs, Step, StepKind, Wait, Workflow,
};
use windlass_model::model::{AssignOp, Dialect, Name};
use windlass_source::diagnostic::{Diagnostics, did_you_mean};
use windlass_source::source::{Entry, Kind, Node, SourceFile, Span};

/// The limits of a loop.
pub const CAPS: Caps = Caps {
    count: 10_000,
    timeout: Duration::from_secs(3600),
};

const STEPS_HINT: &str = "for example steps: [{ wait: 5s }]";
const STEP_HINT: &str = "a step has call, wait, repeat or set";
const CALL_HINT: &str = "for example call: { activity: check, into: status }";
const REPEAT_HINT: &str = "for example repeat: { until: \"@…\", times: 10, steps: [{ wait: 5s }] }";
const SET_HINT: &str = "for example set: { count: 1 }";

/// Reads a file. The workflow is valid if there is no error.
pub fn workflow(file: &SourceFile, node: &Node, diagnostics: &mut Diagnostics) -> Workflow {
    let mut toy = Toy {
        // Expressions and the rules of a run are those of Loom.
        reader: Reader::new(file, Syntax::Loom, diagnostics),
        steps: 0,
        assigned: Vec::new(),
    };
    let mut workflow = builder::workflow(&file.path, Dialect::Loom, node.span);
    if let Some(fields) = toy.reader.fields(node, "a workflow", STEPS_HINT) {
        toy.root(fields, node, &mut workflow);
    }
    workflow
}

struct Toy<'a> {
    reader: Reader<'a>,
    /// The number of steps so far, for their names.
    steps: usize,
    /// The variables that steps assign.
    assigned: Vec<(String, Span)>,
}

impl Toy<'_> {
    fn root(&mut self, mut fields: Fields<'_>, node: &Node, workflow: &mut Workflow) {
        let reader = &mut self.reader;
        if let Some(entry) = fields.non_null(reader, NAME.name) {
            let name = reader.text(entry, "for example name: job");
            workflow.name = Name::from(name.unwrap_or_default());
        }
        if let Some(entry) = fields.non_null(reader, VARIABLES.name) {
            for entry in reader.map(entry, "for example variables: { count: 0 }") {
                let value = reader.template(&entry.value);
                workflow.variables.push((Name::from(&*entry.key), value));
            }
        }
        if let Some(entry) = fields.required(reader, STEPS.name, node.span, STEPS_HINT) {
            workflow.body = self.block(entry);
        }
        if let Some(entry) = fields.get(RESULT.name) {
            workflow.outputs = Outputs::Template(self.reader.template(&entry.value));
        }
        fields.finish(&mut self.reader);
        self.check_variables(workflow);
    }

    fn block(&mut self, entry: &Entry) -> Block {
        let steps = self.reader.list(entry, STEPS_HINT).unwrap_or_default();
        Block::Sequence(steps.iter().filter_map(|node| self.step(node)).collect())
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        let mut fields = self.reader.fields(node, "a step", STEP_HINT)?;
        let keys = [CALL, WAIT, REPEAT, SET].into_iter();
        let found: Vec<_> = keys.filter_map(|key| fields.get(key.name)).collect();
        let before = self.reader.diagnostics.len();
        fields.finish(&mut self.reader);
        let [entry] = found[..] else {
            if self.reader.diagnostics.len() == before {
                let what = format!("a step has one of these keys, this has {}", found.len());
                self.reader.error("not-one-key", node.span, what, STEP_HINT);
            }
            return None;
        };
        self.steps += 1;
        let name = Name::from(format!("{}_{}", entry.key, self.steps));
        let kind = match &*entry.key {
            key if key == CALL.name => self.call(entry)?,
            key if key == WAIT.name => {
                StepKind::Wait(Wait::For(self.reader.duration(entry)?.template))
            }
            key if key == REPEAT.name => self.repeat(entry)?,
            _ => self.set(entry),
        };
        Some(builder::step(name, &entry.key, kind, entry.key_span))
    }

    fn call(&mut self, entry: &Entry) -> Option<StepKind> {
        let reader = &mut self.reader;
        let mut fields = reader.fields(&entry.value, "`call`", CALL_HINT)?;
        let activity = fields.required(reader, ACTIVITY.name, entry.key_span, CALL_HINT);
        let activity = activity.and_then(|entry| reader.text(entry, CALL_HINT));
        let input = match fields.get(WITH.name) {
            Some(entry) => reader.template(&entry.value),
            None => Template::constant(Value::Null),
        };
        let into = fields.non_null(reader, INTO.name);
        let into = into.and_then(|entry| Some((reader.text(entry, CALL_HINT)?, entry.value.span)));
        fields.finish(reader);
        let activity = builder::text(activity?);
        let inputs = builder::object([("activityType", activity), ("input", input)]);
        let mut call = builder::call("activity", inputs);
        if let Some((variable, span)) = into {
            let result = Template::binding(Binding::Root(Name::from("result")));
            call.then.push(self.assignment(variable, result, span));
        }
        Some(StepKind::Call(call))
    }

    fn repeat(&mut self, entry: &Entry) -> Option<StepKind> {
        let reader = &mut self.reader;
        let mut fields = reader.fields(&entry.value, "`repeat`", REPEAT_HINT)?;
        let until = fields.required(reader, UNTIL.name, entry.key_span, REPEAT_HINT);
        let stop_when = until.and_then(|entry| reader.condition(entry));
        let times = fields.required(reader, TIMES.name, entry.key_span, REPEAT_HINT);
        if let Some(Entry { value, .. }) = times {
            match value.kind {
                Kind::Int(count) => reader.within_cap(count, CAPS.count, value.span),
                _ if reader.is_computed(value) => {}
                _ => reader.wrong_type(value, "`times`", "a whole number", REPEAT_HINT),
            }
        }
        let steps = fields.required(reader, STEPS.name, entry.key_span, REPEAT_HINT);
        fields.finish(reader);
        let body = self.block(steps?);
        let count = self.reader.template(&times?.value);
        let condition_text = until.and_then(|entry| entry.value.as_str());
        Some(StepKind::Loop(Box::new(Loop {
            condition_text: condition_text.unwrap_or_default().to_owned(),
            ..builder::looped(stop_when?, count, body)
        })))
    }

    fn set(&mut self, entry: &Entry) -> StepKind {
        let mut assignments = Vec::new();
        for entry in self.reader.map(entry, SET_HINT) {
            let value = self.reader.template(&entry.value);
            assignments.push(self.assignment(&entry.key, value, entry.key_span));
        }
        StepKind::Assign(Assign {
            assignments,
            output: None,
        })
    }

    fn assignment(&mut self, variable: &str, value: Template, span: Span) -> Assignment {
        self.assigned.push((variable.to_owned(), span));
        Assignment {
            variable: Name::from(variable),
            op: AssignOp::Set,
            value,
            span,
        }
    }

    /// Reports the variables that steps and expressions name and the file does not declare.
    fn check_variables(&mut self, workflow: &Workflow) {
        let known = || workflow.variables.iter().map(|(name, _)| &**name);
        let mut named = std::mem::take(&mut self.assigned);
        for mention in std::mem::take(&mut self.reader.mentions) {
            if let Reference::Variable(name) = mention.reference {
                named.push((name, mention.span));
            }
        }
        for (name, span) in named {
            if !known().any(|variable| variable.eq_ignore_ascii_case(&name)) {
                let hint = did_you_mean(&name, known());
                let hint = hint.unwrap_or_else(|| String::from("declare it in `variables`"));
                let what = format!("unknown variable `{name}`");
                self.reader.error("unknown-variable", span, what, hint);
            }
        }
    }
}
