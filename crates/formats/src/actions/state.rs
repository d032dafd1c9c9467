//! `state`: the values that a workflow stores between its runs, and the actions `setState` and `getState`.
//! A variable of the run has, for each value, the content and version that the run read last. So both are part of the
//! checkpoint.

use super::action_fields::{ActionFields, Body};
use super::{ActionReader, Format};
use crate::builder::{call, object, text};
use crate::fields::Fields;
use windlass_expression::{LAST_RUN, ParseError, Reference, Syntax, Template, Value};
use windlass_model::hir::{Assignment, Call, StepKind, Workflow};
use windlass_model::model::{AssignOp, GET_STATE, Name, SET_STATE, STATE_VARIABLE};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Span};

const HINT: &str = "for example state: { since: \"2026-01-01\" }";
const SET_HINT: &str = "for example { type: setState, name: since, value: \"@utcNow()\" }";
const GET_HINT: &str = "for example { type: getState, name: since }";

/// Maximum length of a name in bytes. The store does not accept longer names.
const MAX_NAME: usize = 128;

/// Returns true if the key `name` of an action of this type is the name of the stored value, not of the action.
pub(super) fn names_its_value(label: &str) -> bool {
    label.eq_ignore_ascii_case(SET_STATE) || label.eq_ignore_ascii_case(GET_STATE)
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads the declared values: their names and initial values.
    pub(crate) fn declared_state(&mut self, entry: &Entry) -> Vec<(Name, Value)> {
        let mut declared = Vec::new();
        for entry in self.map(entry, HINT) {
            let name = &entry.key;
            if name.is_empty() || name.len() > MAX_NAME {
                let what = format!("a name of `state` has 1 to {MAX_NAME} bytes");
                self.error("bad-value", entry.key_span, what, HINT);
                continue;
            }
            if let Kind::String(text) = &entry.value.kind
                && self
                    .parse(&text.text)
                    .is_ok_and(|template| template.as_constant().is_none())
            {
                let what = format!("the initial value of `{name}` is not a constant");
                let hint = "write a constant, such as null, and let the run compute the value";
                self.error("bad-value", entry.value.span, what, hint);
            }
            declared.push((Name::from(name.as_str()), entry.value.to_value()));
        }
        self.state.clone_from(&declared);
        declared
    }

    /// Reads the actions `setState` and `getState`.
    pub(super) fn state_action(&mut self, act: &mut ActionFields<'_>, label: &str) -> Body {
        let hint = if label == SET_STATE {
            SET_HINT
        } else {
            GET_HINT
        };
        let what = format!("`inputs` of `{}`", act.name);
        let under = act.fields.non_null(self, "inputs");
        let mut inputs = under.and_then(|entry| self.fields(&entry.value, &what, hint));
        let fields = match &mut inputs {
            Some(fields) => fields,
            None if under.is_some() => return StepKind::Nothing.into(),
            None => &mut act.fields,
        };
        let members = self.state_members(fields, label, hint, act.span);
        if let Some(fields) = inputs {
            fields.finish(self);
        }
        let Some((name, members)) = members else {
            return StepKind::Nothing.into();
        };
        match lowered(label, &name, members, act.span) {
            Ok(call) => StepKind::Call(call).into(),
            Err(error) => {
                self.error("bad-expression", act.span, error.message, hint);
                StepKind::Nothing.into()
            }
        }
    }

    /// Reads the name of the stored value, and the inputs that the author set.
    fn state_members(
        &mut self,
        fields: &mut Fields<'_>,
        label: &str,
        hint: &str,
        span: Span,
    ) -> Option<(Name, Vec<(&'static str, Template)>)> {
        let named = fields.required(self, "name", span, hint);
        let named = named.and_then(|entry| Some((self.text(entry, hint)?, entry)));
        let mut members = Vec::new();
        if label == SET_STATE {
            match fields.get("value") {
                Some(value) => members.push(("value", self.template(&value.value))),
                None => drop(fields.required(self, "value", span, hint)),
            }
            let hint = "`overwrite: true` replaces the value of another run";
            let overwrite = fields.get("overwrite");
            if overwrite.and_then(|entry| self.flag(entry, hint)) == Some(true) {
                members.push(("overwrite", Template::constant(Value::Bool(true))));
            }
        }
        let (name, entry) = named?;
        let Some((name, initial)) = self.state.iter().find(|(known, _)| **known == *name) else {
            self.unknown_state(name, entry.value.span);
            return None;
        };
        if label == GET_STATE {
            members.push(("initial", Template::constant(initial.clone())));
        }
        Some((name.clone(), members))
    }

    /// Reports a name that `state` does not declare.
    pub(super) fn unknown_state(&mut self, name: &str, span: Span) {
        let known: Vec<Name> = self.state.iter().map(|(name, _)| name.clone()).collect();
        let hint = match known.as_slice() {
            [] => String::from(HINT),
            _ if self.has_variable(name) => format!(
                "the variable is `variables.{name}`: in a file with `state`, that has only the values between runs"
            ),
            known => did_you_mean(name, known)
                .unwrap_or_else(|| format!("known are: {}", known.join(", "))),
        };
        let what = format!("`state` of this file does not declare `{name}`");
        self.error("unknown-state", span, what, hint);
    }

    /// Returns true if an expression of the file reads `lastRun()`.
    pub(super) fn reads_last_run(&self, workflow: &Workflow) -> bool {
        let is_last =
            |reference: &Reference| matches!(reference, Reference::Root(name) if name == LAST_RUN);
        let mut variables = workflow.variables.iter().map(|(name, _)| name);
        let mut mentions = self.mentions.iter();
        F::CONVENTIONS.has_extended_requests
            && mentions.any(|mention| is_last(&mention.reference))
            && !variables.any(|name| **name == *LAST_RUN)
            && !self
                .declared_variables
                .iter()
                .any(|name| **name == *LAST_RUN)
    }
}

/// Makes the call that reads or writes a stored value, and the assignment of the call's result to the variable.
fn lowered(
    label: &str,
    name: &Name,
    given: Vec<(&'static str, Template)>,
    span: Span,
) -> Result<Call, ParseError> {
    let wdl = |text: &str| Template::parse(text, Syntax::Azure);
    let read = wdl(&format!("@variables('{STATE_VARIABLE}')"))?;
    let quoted = name.replace('\'', "''");
    let version = format!("@variables('{STATE_VARIABLE}')['{quoted}'].version");
    let mut members = vec![("workflow", wdl("@workflow().name")?), ("name", text(name))];
    if label == SET_STATE {
        members.extend([
            ("run", wdl("@workflow().run.name")?),
            ("startedAt", wdl("@trigger().startTime")?),
            ("version", wdl(&version)?),
        ]);
    }
    members.extend(given);
    let known = object([
        ("value", wdl("@variables('result').value")?),
        ("version", wdl("@variables('result').version")?),
    ]);
    let value = Template::call("setProperty", vec![read, text(name), known])?;
    Ok(Call {
        then: vec![Assignment {
            variable: Name::from(STATE_VARIABLE),
            op: AssignOp::Set,
            value,
            span,
        }],
        ..call(label, object(members))
    })
}
