//! Evaluators: a JSON Schema, a model, or code. Each evaluation is `{valid, score, errors, suggestions}`, even if the
//! code returned another form (TEA-AGENT-001.2, AC2 to AC4, AC7).

use super::builder::{FAULT_TEXT, anonymous_step, forget_fault, set, state, with_result};
use super::script::Language;
use super::worker::{reflected, value_of};
use super::{SourcePosition, Tea, builder};
use crate::builder::{expression, jinja, object, text};
use crate::reader::Reader;
use windlass_expression::{Template, Value};
use windlass_model::hir::Step;
use windlass_source::source::Entry;

/// The variable with an evaluation until it is recorded.
pub(super) const EVALUATION: &str = "_windlass_evaluation";
const HINT: &str = "for example evaluator: { type: schema, schema: { type: object } }";
/// The keys that only an evaluator of the type `llm` has, in addition to those of a question to a model.
const MODEL_EVALUATOR: [&str; 1] = ["examples"];
/// The keys of `reflection.evaluate` in addition to those of a question to a model.
pub(super) const EVALUATE: [&str; 9] = [
    "data",
    "evaluator_type",
    "type",
    "schema",
    "schemas",
    "coerce",
    "examples",
    "run",
    "language",
];
const TYPES: [&str; 3] = ["schema", "llm", "custom"];

pub(super) enum Evaluator {
    /// A call of the executor `reflection.evaluate`. The inputs do not have the data yet.
    Call {
        inputs: Vec<(Template, Template)>,
        /// Whether the evaluator is a schema. Then the text of a model's answer is parsed as JSON before it is
        /// judged.
        text_is_json: bool,
    },
    Custom {
        language: Language,
        inputs: Template,
        timeout: Option<Template>,
    },
}

/// The template that converts the value of custom code to an evaluation.
const NORMAL: &str = "{{ \
    {'valid': false, 'score': 0.0, 'suggestions': [], 'errors': [{'message': \
      'Custom evaluator error: `valid` must be true or false, not ' ~ (result.valid | tojson)}]} \
    if result is mapping and (result.get('valid') is string or result.get('valid') is iterable) else \
    ({'valid': result.get('valid', false), \
      'score': (result.score | trim | float) if result.score is string else \
               (result.get('score', 1.0 if result.get('valid') else 0.0) | float), \
      'errors': result.get('errors', []), 'suggestions': result.get('suggestions', [])} \
     if 'score' not in result or result.score is number or result.score is boolean or \
        (result.score is string and (result.score | trim | float(-7654321.5)) != -7654321.5) else \
     {'valid': false, 'score': 0.0, 'suggestions': [], 'errors': [{'message': \
        'Custom evaluator error: ' ~ \
        (\"could not convert string to float: '\" ~ result.score ~ \"'\" \
         if result.score is string else \
         \"float() argument must be a string or a real number, not '\" ~ \
         ('NoneType' if result.score is none else 'dict' if result.score is mapping else 'list') ~ \"'\")}]}) \
    if result is mapping else \
    ({'valid': result >= 0.5, 'score': result | float, \
      'errors': [] if result >= 0.5 else [{'message': 'Score ' ~ (result | float) ~ ' below threshold'}], \
      'suggestions': []} \
     if (result is number and result is not boolean) else \
     {'valid': (result | bool), 'score': 1.0 if result else 0.0, \
      'errors': [] if result else [{'message': 'Validation failed'}], 'suggestions': []}) }}";

impl<'n> Tea<'_, 'n> {
    pub(super) fn evaluator(&mut self, entry: &'n Entry) -> Option<Evaluator> {
        let mut fields = self.fields(&entry.value, "`evaluator`", HINT)?;
        let kind = fields.non_null(self, "type");
        let word = match kind {
            Some(kind) => self.text(kind, "schema, llm or custom")?,
            None => "schema",
        };
        if word == "custom" {
            let run = fields.non_null(self, "run");
            let language = fields.non_null(self, "language");
            let timeout = fields.non_null(self, "timeout");
            let Some(run) = run else {
                let message = "a custom evaluator needs `run`";
                let hint = "for example run: \"return len(output) > 0\"";
                self.error("missing-key", entry.key_span, message, hint);
                return None;
            };
            fields.finish(self);
            let language = self.language(language)?;
            let timeout = timeout.and_then(|timeout| self.seconds(timeout));
            let data = jinja(self, "{{ state.reflection_output }}");
            let inputs = self.judge(language, run, data)?;
            return Some(Evaluator::Custom {
                language,
                inputs,
                timeout,
            });
        }
        if !TYPES.contains(&word) {
            let message = format!("reflection.loop: Unknown evaluator type: {word}");
            let span = kind.map_or(entry.key_span, |kind| kind.value.span);
            self.unknown("unknown-value", message, span, word, TYPES);
            return None;
        }
        let with: Vec<&'n Entry> = if word == "schema" {
            let schema = fields.get("schema");
            let with = [schema, fields.get("coerce")];
            if schema.is_none() && !fields.has_misspelling_of("schema") {
                let message = "a schema evaluator needs `schema`";
                self.error("missing-key", entry.key_span, message, HINT);
                return None;
            }
            fields.finish(self);
            with.into_iter().flatten().collect()
        } else {
            let with: Vec<&'n Entry> = fields.rest().collect();
            self.model_keys("`evaluator`", &MODEL_EVALUATOR, with.iter().copied());
            with
        };
        let mut inputs = self.inputs_of("reflection.evaluate", &with);
        inputs.push((text("evaluator_type"), text(word)));
        Some(Evaluator::Call {
            inputs,
            text_is_json: word == "schema",
        })
    }

    /// Makes the inputs for code that evaluates `data`.
    pub(super) fn judge(
        &mut self,
        language: Language,
        run: &'n Entry,
        data: Template,
    ) -> Option<Template> {
        let seen = Template::call("setProperty", vec![state(), text("output"), data.clone()]);
        let mut globals = reflected(self, seen.ok()?);
        globals.retain(|(name, _)| *name != "output");
        globals.push(("output", data));
        self.code(language, &run.value, globals)
    }

    /// Makes the steps that evaluate `reflection_output`, and store the evaluation in the state.
    pub(super) fn evaluation(
        &mut self,
        evaluator: Evaluator,
        place: &SourcePosition,
    ) -> Option<Vec<Step>> {
        let span = place.span;
        let judge = self.part(place, "evaluator");
        let mut handler = Vec::new();
        let (label, call, value, failed) = match evaluator {
            Evaluator::Call { inputs, .. } => {
                handler.push(self.unless_unrendered("evaluator", place)?);
                let mut inputs = inputs;
                inputs.push((text("data"), jinja(self, "{{ state.reflection_output }}")));
                let then = vec![set(EVALUATION, builder::executor_result(), span)];
                let inputs = Template::object(inputs);
                let call = builder::call("reflection.evaluate", inputs, None, then);
                let given = builder::executor_result();
                ("reflection.evaluate", call, given, "Evaluation failed: ")
            }
            Evaluator::Custom {
                language,
                inputs,
                timeout,
            } => {
                let value = normal(self, language);
                let then = vec![set(EVALUATION, value.clone(), span)];
                let call = builder::call(language.executor(), inputs, timeout, then);
                ("run", call, value, "Custom evaluator error: ")
            }
        };
        let message = format!("[{{'message': result ~ {FAULT_TEXT}}}]");
        let error = object([
            ("valid", Template::constant(Value::Bool(false))),
            ("score", Template::constant(Value::Float(0.0))),
            (
                "errors",
                with_result(&text(failed), expression(self, &message)),
            ),
        ]);
        let failed = vec![set(EVALUATION, error, span), forget_fault(span)];
        handler.push(self.assigned(place, "evaluator_failed", failed));
        let judge = builder::recording(anonymous_step(judge, label, call), &value);
        Some(vec![self.catch_step(place, "evaluation", judge, handler)])
    }
}

/// Makes the template of the evaluation by custom code.
pub(super) fn normal(reader: &Reader<'_>, language: Language) -> Template {
    with_result(&value_of(reader, language), jinja(reader, NORMAL))
}
