//! The inputs of an action, and the readers of inputs that several types of actions have.

use super::action_fields::ActionFields;
use super::{ActionReader, Format};
use crate::builder::{call, text};
use crate::fields::Fields;
use std::ops::RangeInclusive;
use windlass_expression::Template;
use windlass_model::hir::{Call, StepKind};
use windlass_source::source::{Entry, Kind, Node};

/// The inputs of an action: under `inputs` or, where the format allows it, next to the type.
pub(crate) struct Inputs<'n> {
    pub(super) under: Option<Fields<'n>>,
    pub members: Vec<(Template, Template)>,
}

impl<'n> Inputs<'n> {
    pub fn get<F: Format>(
        &mut self,
        act: &mut ActionFields<'n>,
        actions: &mut ActionReader<'_, F>,
        key: &'static str,
    ) -> Option<&'n Entry> {
        let under = self.under.as_mut().and_then(|fields| fields.get(key));
        if !F::CONVENTIONS.inputs_next_to_type {
            return under;
        }
        let own = act.fields.get(key);
        if let (Some(_), Some(own)) = (under, own) {
            let what = format!("`{key}` is in `inputs` and next to it");
            actions.error("conflict", own.key_span, what, "remove one of the two");
        }
        under.or(own)
    }

    /// Like `pass`, but reads the key only under `inputs`, because next to the type it has another meaning.
    pub(super) fn pass_under<F: Format>(
        &mut self,
        actions: &mut ActionReader<'_, F>,
        key: &'static str,
    ) -> Option<&'n Entry> {
        let entry = self.under.as_mut()?.get(key)?;
        let template = actions.template(&entry.value);
        self.members.push((text(key), template));
        Some(entry)
    }

    /// Like `get`, but also passes the value to the executor, as a template.
    pub fn pass<F: Format>(
        &mut self,
        act: &mut ActionFields<'n>,
        actions: &mut ActionReader<'_, F>,
        key: &'static str,
    ) -> Option<&'n Entry> {
        let entry = self.get(act, actions, key)?;
        let template = actions.template(&entry.value);
        self.members.push((text(key), template));
        Some(entry)
    }

    pub fn finish<F: Format>(self, actions: &mut ActionReader<'_, F>) -> Template {
        if let Some(fields) = self.under {
            fields.finish(actions);
        }
        Template::object(self.members)
    }
}

impl<F: Format> ActionReader<'_, F> {
    pub(crate) fn inputs<'n>(&mut self, act: &mut ActionFields<'n>, hint: &str) -> Inputs<'n> {
        let what = format!("`inputs` of `{}`", act.name);
        let under = act
            .fields
            .non_null(self, "inputs")
            .and_then(|entry| self.fields(&entry.value, &what, hint));
        Inputs {
            under,
            members: Vec::new(),
        }
    }

    pub(crate) fn missing_input(&mut self, act: &ActionFields<'_>, key: &str, hint: &str) {
        let what = format!("`{}` needs `{key}`", act.name);
        self.error("missing-key", act.span, what, hint);
    }

    pub(super) fn call(
        executor: &str,
        inputs: Template,
        attempt_timeout: Option<Template>,
    ) -> StepKind {
        StepKind::Call(Call {
            attempt_timeout,
            ..call(executor, inputs)
        })
    }

    /// Reads `timeout`, in the inputs or next to the type. It is the timeout of one attempt.
    pub(super) fn attempt_timeout<'n>(
        &mut self,
        act: &mut ActionFields<'n>,
        inputs: &mut Inputs<'n>,
    ) -> Option<Template> {
        let entry = inputs.get(act, self, "timeout")?;
        if matches!(entry.value.kind, Kind::Null) {
            let hint = "durations look like 30s, 5m or PT30S";
            self.wrong_type(&entry.value, "`timeout`", "a duration", hint);
            return None;
        }
        Some(self.duration(entry)?.template)
    }

    /// Reads `limit: {timeout}`. It is the timeout of the whole action.
    pub(crate) fn limit_timeout_of(&mut self, act: &mut ActionFields<'_>) -> Option<Template> {
        let entry = act.fields.non_null(self, "limit")?;
        let hint = "for example limit: { timeout: PT30S }";
        let mut fields = self.fields(&entry.value, "`limit`", hint)?;
        let timeout = fields.non_null(self, "timeout");
        fields.finish(self);
        Some(self.duration(timeout?)?.template)
    }

    /// Checks the value of `check`: a flag, or the exit codes or statuses that are not a fault.
    pub(super) fn check_accepted(&mut self, entry: &Entry, codes: RangeInclusive<i64>, hint: &str) {
        let is_code = |code: &Node| matches!(code.kind, Kind::Int(code) if codes.contains(&code));
        let is_valid = match &entry.value.kind {
            Kind::Bool(_) => true,
            Kind::Array(given) => given
                .iter()
                .all(|code| is_code(code) || self.is_computed(code)),
            _ => self.is_computed(&entry.value),
        };
        if !is_valid {
            let (first, last) = (codes.start(), codes.end());
            let what =
                format!("`check` must be true, false or a list of numbers from {first} to {last}");
            self.error("wrong-type", entry.value.span, what, hint);
        }
    }
}
