//! Actions that call handlers or models (activity, actor, ai), and the actions wait, compose and terminate.
//! This file decides which inputs the executors receive.

use super::action_fields::{ActionFields, Body};
use super::{ActionReader, Format};
use crate::TERMINAL_STATUSES;
use crate::builder::text;
use crate::checks;
use crate::vocabulary::model::MODEL;
use windlass_expression::{Template, Value};
use windlass_model::hir::{StepKind, Wait};
use windlass_model::model::{Dialect, RATE, Status};
use windlass_source::source::{Entry, Kind};

impl<F: Format> ActionReader<'_, F> {
    /// Reads `activity` and `actor`: the handler's name, and `input`. Without `input`, all other keys are its input.
    /// The name and `input` are also allowed next to the type.
    pub(super) fn handler(&mut self, act: &mut ActionFields<'_>, label: &str) -> Body {
        let key = if label == "activity" {
            "activityType"
        } else {
            "actorType"
        };
        let hint = format!("for example inputs: {{ {key}: processor, input: \"@item()\" }}");
        let timeout = act.fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|entry| Some(self.duration(entry)?.template));
        let own = act.fields.get(key);
        let input = act.fields.get("input");
        let under = match own {
            None => act.fields.required(self, "inputs", act.span, &hint),
            Some(_) => act.fields.non_null(self, "inputs"),
        };
        let mut members = Vec::new();
        if let Some(entry) = under {
            let what = format!("`inputs` of `{}`", act.name);
            if let Some(mut fields) = self.fields(&entry.value, &what, &hint) {
                let kind = match own {
                    None => fields.required(self, key, entry.key_span, &hint),
                    Some(_) => fields.get(key),
                };
                kind.and_then(|kind| self.text(kind, &hint));
                for (key, own) in [(key, own), ("input", input)] {
                    if let (Some(_), Some(own)) = (fields.get(key), own) {
                        let what = format!("`{key}` is in `inputs` and next to it");
                        let hint = "remove one of the two";
                        self.error("conflict", own.key_span, what, hint);
                    }
                }
            }
            members.extend(entry.value.entries().unwrap_or_default());
        }
        own.and_then(|kind| self.text(kind, &hint));
        members.extend([own, input].into_iter().flatten());
        let members = members
            .into_iter()
            .map(|entry| (text(&entry.key), self.template(&entry.value)));
        let inputs = Template::object(members.collect());
        Self::call(label, inputs, timeout).into()
    }

    pub(super) fn ai(&mut self, act: &mut ActionFields<'_>) -> Body {
        let hint = "for example inputs: { prompt: \"…\" }";
        let timeout = act.fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|entry| Some(self.duration(entry)?.template));
        let mut inputs = self.inputs(act, hint);
        let mut questions = Vec::new();
        for key in MODEL.iter().map(|key| key.name) {
            let Some(entry) = inputs.pass(act, self, key) else {
                continue;
            };
            questions.extend(checks::QUESTION_KEYS.contains(&key).then_some(entry));
            checks::model_input(self, entry);
        }
        // Only under `inputs`: a `timeout` next to the type is the timeout of the action.
        if let Some(entry) = inputs.pass_under(self, "timeout") {
            checks::model_input(self, entry);
        }
        let fields = inputs.under.as_ref();
        let is_misspelled = |key| {
            act.fields.has_misspelling_of(key)
                || fields.is_some_and(|fields| fields.has_misspelling_of(key))
        };
        checks::single_question(self, &questions);
        if questions.is_empty() && !is_misspelled("prompt") && !is_misspelled("messages") {
            self.missing_input(act, "prompt", "give `prompt` or `messages`");
        }
        let rate = inputs.get(act, self, RATE);
        inputs.members.extend(self.rate_member(rate));
        let inputs = inputs.finish(self);
        let timeout = timeout.or_else(|| self.default_timeout());
        Body {
            retry: self.default_retry(act, true),
            ..Self::call("ai", inputs, timeout).into()
        }
    }

    pub(super) fn compose(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "the value: for example inputs: \"@body('fetch').items\"";
        match act.fields.get("inputs") {
            Some(entry) => StepKind::Compose(self.template(&entry.value)),
            None => {
                act.fields.required(self, "inputs", act.span, hint);
                StepKind::Nothing
            }
        }
    }

    pub(super) fn wait(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { interval: { count: 5, unit: second } }, or PT5S";
        // In `inputs: PT5S`, the inputs are a duration instead of a map.
        if let Some(entry) = act.fields.get("inputs")
            && matches!(entry.value.kind, Kind::String(_) | Kind::Int(_))
        {
            return self.wait_for(entry);
        }
        let mut inputs = self.inputs(act, hint);
        let interval = inputs.get(act, self, "interval");
        let until = inputs.get(act, self, "until");
        let count = inputs.get(act, self, "count");
        let unit = inputs.get(act, self, "unit");
        let kind = match (interval, until, count.or(unit)) {
            (Some(entry), None, None) => self.wait_for(entry),
            (None, Some(entry), None) => self.wait_until(entry),
            (None, None, Some(_)) => match act.fields.get("inputs") {
                Some(entry) => self.wait_for(entry),
                None => {
                    self.missing_input(act, "interval", hint);
                    StepKind::Nothing
                }
            },
            (None, None, None) => {
                self.missing_input(act, "interval", hint);
                StepKind::Nothing
            }
            _ => {
                let what = "`wait` has either `interval` or `until`";
                self.error("conflict", act.span, what, hint);
                StepKind::Nothing
            }
        };
        inputs.finish(self);
        kind
    }

    fn wait_for(&mut self, entry: &Entry) -> StepKind {
        if let Some(kind) = F::wait(self, entry) {
            return kind;
        }
        self.duration(entry).map_or(StepKind::Nothing, |duration| {
            StepKind::Wait(Wait::For(duration.template))
        })
    }

    fn wait_until(&mut self, entry: &Entry) -> StepKind {
        let hint = "an instant such as 2026-11-20T14:00:00Z, or an expression that returns one";
        let mut node = &entry.value;
        if matches!(node.kind, Kind::Object(_))
            && let Some(mut fields) = self.fields(node, "`until`", hint)
        {
            let instant = fields.required(self, "timestamp", entry.key_span, hint);
            fields.finish(self);
            let Some(instant) = instant else {
                return StepKind::Nothing;
            };
            node = &instant.value;
        }
        if node.as_str().is_none() {
            self.wrong_type(node, "`until`", "an instant", hint);
            return StepKind::Nothing;
        }
        let template = self.template(node);
        let known = template.as_constant().and_then(Value::as_str);
        if known.is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_err()) {
            let what = format!("`{}` is not a valid instant", known.unwrap_or_default());
            self.error("bad-timestamp", node.span, what, hint);
        }
        StepKind::Wait(Wait::Until(template))
    }

    pub(super) fn terminate(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { runStatus: Failed, runError: { code: E1, message: no } }";
        let mut inputs = self.inputs(act, hint);
        let status = inputs.get(act, self, "runStatus");
        let error = inputs
            .get(act, self, "runError")
            .map(|entry| self.run_error(entry, hint));
        inputs.finish(self);
        let status = match status {
            Some(entry) => self.run_status(entry),
            None => {
                self.missing_input(act, "runStatus", hint);
                Status::Failed
            }
        };
        StepKind::Terminate { status, error }
    }

    /// Reads `runError`. In a definition it is a map of `code` and `message`, or an expression.
    fn run_error(&mut self, entry: &Entry, hint: &str) -> Template {
        if F::CONVENTIONS.dialect != Dialect::Azure || self.is_computed(&entry.value) {
            return self.template(&entry.value);
        }
        let mut members = Vec::new();
        if let Some(mut fields) = self.fields(&entry.value, "`runError`", hint) {
            for key in ["code", "message"] {
                let member = fields.get(key);
                members.extend(member.map(|member| (text(key), self.template(&member.value))));
            }
            fields.finish(self);
        }
        Template::object(members)
    }

    fn run_status(&mut self, entry: &Entry) -> Status {
        self.choice_as("unknown-status", entry, &TERMINAL_STATUSES, |text| {
            format!("a run cannot end as `{text}`")
        })
        .unwrap_or(Status::Failed)
    }
}
