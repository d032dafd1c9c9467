//! `waitForSignal`: a signal that the run waits for, and the question to people that the signal answers.

use super::action_fields::{ActionFields, Body};
use super::inputs::Inputs;
use super::{ActionReader, Format};
use std::sync::Arc;
use windlass_expression::{Schema, Value};
use windlass_model::hir::StepKind;
use windlass_model::model::{ANSWERED_BY, AwaitedSignal, CHOICE, Form, Name, Question};
use windlass_source::source::{Entry, Kind, Span};

const HINT: &str = "for example inputs: { signal: approved, timeout: P1D }";
const CHOICES_HINT: &str = "for example choices: [approve, reject]";
const SCHEMA_HINT: &str = "for example schema: { properties: { comment: { type: string } } }";

/// Maximum number of choices of a question. It is small because each choice is shown as a button.
const MAX_CHOICES: usize = 20;

impl<F: Format> ActionReader<'_, F> {
    /// Reads `signal`, `timeout` and the question.
    /// The timeout limits the whole step, because a wait has no attempts.
    pub(super) fn wait_for_signal(&mut self, act: &mut ActionFields<'_>) -> Body {
        let mut inputs = self.inputs(act, HINT);
        let signal = inputs.get(act, self, "signal");
        let timeout = inputs
            .get(act, self, "timeout")
            .and_then(|entry| self.duration(entry))
            .map(|duration| duration.template);
        let question = self.question(act, &mut inputs);
        inputs.finish(self);
        let name = match signal {
            Some(entry) => self.signal_name(entry).map(|name| (name, entry.value.span)),
            // By default, the signal of a question has the name of the action.
            None if question.is_some() => Some((act.name.clone(), act.span)),
            None => {
                self.missing_input(act, "signal", HINT);
                None
            }
        };
        let kind = name.map_or(StepKind::Nothing, |(name, span)| {
            self.note_signal(&name, question.as_ref(), span);
            StepKind::AwaitSignal(AwaitedSignal {
                name,
                question: question.map(Arc::new),
            })
        });
        Body {
            timeout,
            ..kind.into()
        }
    }

    /// Reads the name of a signal. It must be constant, because only the name identifies a signal.
    fn signal_name(&mut self, entry: &Entry) -> Option<Name> {
        let text = self.text(entry, HINT)?;
        if self.template(&entry.value).as_constant().is_none() {
            let what = "a signal's name cannot be an expression";
            let hint = "use a fixed name, and distinguish cases by the payload of the signal";
            self.error("computed-name", entry.value.span, what, hint);
            return None;
        }
        if text.is_empty() {
            let what = "a signal has a name";
            self.error("empty-name", entry.value.span, what, HINT);
            return None;
        }
        Some(Name::from(text))
    }

    fn question<'n>(
        &mut self,
        act: &mut ActionFields<'n>,
        inputs: &mut Inputs<'n>,
    ) -> Option<Question> {
        let title = inputs.get(act, self, "title");
        let choices = inputs.get(act, self, "choices");
        let schema = inputs.get(act, self, "schema");
        if title.is_none() && choices.is_none() && schema.is_none() {
            return None;
        }
        let choices = choices.map(|entry| self.choices(entry)).unwrap_or_default();
        let schema = schema.and_then(|entry| self.form_schema(entry, &choices));
        Some(Question {
            title: title.map(|entry| self.template(&entry.value)),
            form: Form { choices, schema },
        })
    }

    fn choices(&mut self, entry: &Entry) -> Vec<Name> {
        let mut choices: Vec<Name> = Vec::new();
        for node in self.list(entry, CHOICES_HINT).unwrap_or_default() {
            let text = match node.to_value() {
                Value::String(text) if !text.is_empty() => Name::from(text.as_str()),
                _ => {
                    self.wrong_type(node, "a choice", "a text that is not empty", CHOICES_HINT);
                    continue;
                }
            };
            if choices.contains(&text) {
                let what = format!("the choice `{text}` is listed twice");
                self.error("duplicate", node.span, what, "remove one of the two");
                continue;
            }
            choices.push(text);
        }
        if choices.len() > MAX_CHOICES {
            let what = format!("a question has at most {MAX_CHOICES} choices");
            let hint = "use `schema` with a member that has an `enum`";
            self.error("bad-value", entry.value.span, what, hint);
        }
        choices
    }

    /// Reads the JSON Schema of an answer, an object whose members are the fields of a form.
    fn form_schema(&mut self, entry: &Entry, choices: &[Name]) -> Option<Arc<Schema>> {
        if !matches!(entry.value.kind, Kind::Object(_)) {
            self.wrong_type(&entry.value, "`schema`", "a JSON Schema", SCHEMA_HINT);
            return None;
        }
        let source = entry.value.to_value();
        let kind = source.get("type");
        if kind.is_some_and(|kind| kind.as_str() != Some("object")) {
            let what = "the `schema` of a question describes an object";
            self.error("bad-value", entry.value.span, what, SCHEMA_HINT);
            return None;
        }
        let properties = source.get("properties");
        if !choices.is_empty() && properties.is_some_and(|all| all.get(CHOICE).is_some()) {
            let what = format!("`{CHOICE}` is the member of an answer with one of the `choices`");
            let hint = "give the member of `schema` another name";
            self.error("conflict", entry.value.span, what, hint);
            return None;
        }
        let required = source.get("required").and_then(Value::as_array);
        let is_recorded = |name: &Value| name.as_str() == Some(ANSWERED_BY);
        if properties.is_some_and(|all| all.get(ANSWERED_BY).is_some())
            || required.is_some_and(|names| names.iter().any(is_recorded))
        {
            let what = format!("`{ANSWERED_BY}` is the member of an answer with who gave it");
            let hint = "Windlass adds it; remove it from `schema`";
            self.error("conflict", entry.value.span, what, hint);
            return None;
        }
        match Schema::read(&source) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(why) => {
                self.error("bad-value", entry.value.span, why, SCHEMA_HINT);
                None
            }
        }
    }

    /// Records the form of a signal's answers.
    /// An answer is checked when it is sent. At that time it is not known which of the run's waits the answer ends.
    /// So all waits for a signal must accept the same answers.
    pub(crate) fn note_signal(&mut self, name: &Name, question: Option<&Question>, span: Span) {
        let form = question.map(|question| question.form.clone());
        let form = form.unwrap_or_default();
        match self.signals.get(name) {
            None => {
                self.signals.insert(name.clone(), form);
            }
            Some(known) if *known == form => {}
            Some(_) => {
                let what = format!("another wait for `{name}` has other choices or another schema");
                let hint = "give this wait another `signal`, or the same `choices` and `schema`";
                self.error("conflict", span, what, hint);
            }
        }
    }
}
