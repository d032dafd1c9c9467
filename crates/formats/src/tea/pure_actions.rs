//! Actions that do not call an executor.
//! They are actions of the Loom format under their own names, `memory.store` and `memory.retrieve`. Their value is
//! stored in the state like any other result.

use super::builder::{anonymous_step, assign, expression, object, output_of, set, with_result};
use super::node::{LoweredNode, ResultTarget};
use super::{SourcePosition, Tea, builder};
use crate::{TABLES, TERMINAL_STATUSES};
use windlass_expression::{Binding, Template, Value};
use windlass_model::hir::{Assignment, StepKind, Wait};
use windlass_model::model::{AssignOp, AwaitedSignal, MEMORY_VARIABLE, Name};
use windlass_source::source::{Entry, Kind};

pub(super) const PURE: [&str; 17] = [
    "wait",
    "compose",
    "terminate",
    "waitForSignal",
    "initializeVariable",
    "setVariable",
    "incrementVariable",
    "decrementVariable",
    "appendToArrayVariable",
    "appendToStringVariable",
    "parseJson",
    "select",
    "query",
    "join",
    "table",
    "memory.store",
    "memory.retrieve",
];

impl<'n> Tea<'_, 'n> {
    pub(super) fn pure_action(
        &mut self,
        name: &str,
        named: &'n Entry,
        with: Option<&'n Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let with = self.arguments(with)?;
        self.check_known_keys(name, &with);
        let mut with = Arguments {
            with,
            named,
            missing: false,
        };
        let made = match name {
            "wait" => self.waits(&mut with),
            "terminate" => self.terminates(&mut with),
            "waitForSignal" => self.awaits(&mut with, target, place),
            "memory.store" | "memory.retrieve" => self.remembers(name, &mut with, target, place),
            _ if name.ends_with("Variable") => self.assigns(name, &mut with, place),
            _ => {
                let value = self.computes(name, &mut with)?;
                let then = self.store_result(target, &value, place);
                Some(assign(then, Some(value)))
            }
        };
        Some(LoweredNode::new(name, made?))
    }

    fn argument(&mut self, with: &mut Arguments<'n>, key: &str, hint: &str) -> Option<&'n Entry> {
        let found = with.find(key);
        if found.is_none() && !with.missing {
            let what = format!("`{}` needs `{key}`", with.shown());
            let span = with.named.value.span;
            self.error("missing-key", span, what, hint);
            with.missing = true;
        }
        found
    }

    fn waits(&mut self, with: &mut Arguments<'n>) -> Option<StepKind> {
        let hint = "for example with: { seconds: 5 }";
        if let Some(until) = with.find("until") {
            let until = self.template(&until.value);
            return Some(StepKind::Wait(Wait::Until(until)));
        }
        let interval = with.find("interval");
        let entry = match interval {
            Some(entry) => entry,
            None => self.argument(with, "seconds", hint)?,
        };
        let time = match entry.value.kind {
            Kind::Object(_) => self.duration(entry)?.template,
            _ => self.seconds(entry)?,
        };
        Some(StepKind::Wait(Wait::For(time)))
    }

    fn terminates(&mut self, with: &mut Arguments<'n>) -> Option<StepKind> {
        let hint = "for example with: { runStatus: Failed, runError: { message: no } }";
        let error = with.find("runError");
        let error = error.map(|entry| self.template(&entry.value));
        let entry = self.argument(with, "runStatus", hint)?;
        let status = self.choice_as("unknown-status", entry, &TERMINAL_STATUSES, |text| {
            format!("a run cannot end as `{text}`")
        })?;
        Some(StepKind::Terminate { status, error })
    }

    fn awaits(
        &mut self,
        with: &mut Arguments<'n>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<StepKind> {
        let hint = "for example with: { signal: approved }";
        let entry = self.argument(with, "signal", hint)?;
        let signal = AwaitedSignal::any(Name::from(self.text(entry, hint)?));
        let inner = self.part(place, "signal");
        let then = self.store_result(target, &output_of(&inner.name), place);
        let after = self.part(place, "output");
        Some(builder::block(vec![
            anonymous_step(inner, "waitForSignal", StepKind::AwaitSignal(signal)),
            anonymous_step(after, "assign", assign(then, None)),
        ]))
    }

    fn assigns(
        &mut self,
        name: &str,
        with: &mut Arguments<'n>,
        place: &SourcePosition,
    ) -> Option<StepKind> {
        let hint = "for example with: { name: status, value: done }";
        let (op, absent) = match name {
            "incrementVariable" => (AssignOp::Increment, Some(Value::Int(1))),
            "decrementVariable" => (AssignOp::Decrement, Some(Value::Int(1))),
            "appendToArrayVariable" => (AssignOp::AppendToArray, None),
            "appendToStringVariable" => (AssignOp::AppendToString, None),
            "initializeVariable" => (AssignOp::Set, Some(Value::Null)),
            _ => (AssignOp::Set, None),
        };
        let entry = self.argument(with, "name", hint)?;
        let variable = Name::from(self.text(entry, hint)?);
        let value = match (with.find("value"), absent) {
            (Some(value), _) => self.template(&value.value),
            (None, Some(absent)) => Template::constant(absent),
            (None, None) => {
                self.argument(with, "value", hint)?;
                return None;
            }
        };
        let one = Assignment {
            variable,
            op,
            value,
            span: place.span,
        };
        Some(assign(vec![one], None))
    }

    /// Reads `memory.store` and `memory.retrieve`.
    /// They use a map in the run, whose keys are made of a namespace and a key.
    fn remembers(
        &mut self,
        name: &str,
        with: &mut Arguments<'n>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<StepKind> {
        let hint = "for example with: { key: topic, value: \"{{ state.topic }}\" }";
        let key = self.argument(with, "key", hint)?;
        if let Some(entry) = with.find("ttl") {
            self.ignored(entry, "what is stored stays until the run ends");
        }
        let mut or_else = |key: &str, absent: Value| match with.find(key) {
            Some(entry) => self.template(&entry.value),
            None => Template::constant(absent),
        };
        let namespace = or_else("namespace", Value::text("default"));
        let (value, default) = (
            or_else("value", Value::Null),
            or_else("default", Value::Null),
        );
        let seen = object([
            ("key", self.template(&key.value)),
            ("namespace", namespace),
            ("value", value),
            ("default", default),
        ]);
        let seen = |text: &str| with_result(&seen, expression(self, text));
        // If the key is missing, the id is empty and nothing is stored. No other id is empty.
        let id = seen(
            "'' if result.key is none else result.namespace | string ~ ' ' ~ result.key | string",
        );
        let nothing = "'key': none, 'error': 'Key is required'} if result.key is none else";
        let memory = format!("({MEMORY_VARIABLE} | default({{}}))");
        let (result, store) = match name {
            "memory.store" => {
                let stored = vec![expression(self, &memory), id, seen("result.value")];
                let stored = Template::call("setProperty", stored).ok()?;
                let result = seen(&format!(
                    "{{'stored': false, {nothing} {{'stored': true, 'key': result.key | string, \
                     'namespace': result.namespace | string}}"
                ));
                (result, Some(set(MEMORY_VARIABLE, stored, place.span)))
            }
            _ => {
                let found = [(
                    Name::from("_found"),
                    with_result(&id, expression(self, &format!("{memory}.get(result)"))),
                )];
                let result = seen(&format!(
                    "{{'value': result.default, 'found': false, {nothing} \
                     {{'value': result.default if _found is none else _found, \
                     'found': _found is not none, 'key': result.key | string}}"
                ));
                (
                    Template::binding(Binding::Scoped(found.into(), result)),
                    None,
                )
            }
        };
        let inner = self.part(place, "memory");
        let value = output_of(&inner.name);
        let then = self.store_result(target, &value, place);
        let after = self.part(place, "output");
        Some(builder::block(vec![
            anonymous_step(
                inner,
                name,
                assign(store.into_iter().collect(), Some(result)),
            ),
            anonymous_step(after, "assign", assign(then, None)),
        ]))
    }

    /// Reads a data operation. Returns the template of its value.
    fn computes(&mut self, name: &str, with: &mut Arguments<'n>) -> Option<Template> {
        if name == "compose" {
            let hint = "for example with: { value: \"{{ state.n + 1 }}\" }";
            let entry = match with.find("inputs") {
                Some(entry) => entry,
                None => self.argument(with, "value", hint)?,
            };
            return Some(self.template(&entry.value));
        }
        if name == "parseJson" {
            let hint = "for example with: { content: \"{{ state.text }}\" }";
            let content = self.argument(with, "content", hint)?;
            let content = self.template(&content.value);
            let schema = with.find("schema");
            let value = schema.map(|entry| entry.value.to_value());
            return match Template::parse_json(content, value.as_ref()) {
                Ok(template) => Some(template),
                Err(mistake) => {
                    let span = schema.map_or(with.named.value.span, |entry| entry.value.span);
                    let hint = "the schema is JSON Schema: { type: object, properties: { … } }";
                    self.error("bad-schema", span, mistake, hint);
                    None
                }
            };
        }
        let hint = "for example with: { from: \"{{ state.items }}\", … }; an element is `item`";
        let from = self.argument(with, "from", hint)?;
        let from = self.template(&from.value);
        match name {
            "select" => {
                let each = self.argument(with, "select", hint)?;
                Some(Template::select(from, self.template(&each.value)))
            }
            "query" => {
                let when = self.argument(with, "where", hint)?;
                Some(Template::query(from, self.condition(when)?))
            }
            "join" => {
                let between = self.argument(with, "joinWith", hint)?;
                Some(Template::join(from, self.template(&between.value)))
            }
            _ => {
                let entry = self.argument(with, "format", hint)?;
                let format = self.choice(entry, &TABLES, |text| {
                    format!("`{text}` is not a valid format of a table")
                })?;
                Some(Template::table(from, format, None))
            }
        }
    }
}

/// The arguments of an action, and the entry that names it.
struct Arguments<'n> {
    with: Vec<&'n Entry>,
    named: &'n Entry,
    /// Whether a missing argument was reported.
    missing: bool,
}

impl<'n> Arguments<'n> {
    fn find(&self, key: &str) -> Option<&'n Entry> {
        self.with.iter().copied().find(|entry| entry.key == key)
    }

    fn shown(&self) -> &'n str {
        self.named.value.as_str().unwrap_or_default()
    }
}
