//! `reflection.loop` (story TEA-AGENT-001.2): generate, evaluate, correct, again.
//!
//! The loop works on the state itself: its variables are there for the templates of the next
//! round, and what the corrector changes is seen by the generator. When it ends, the state is what
//! it was before, and the result is merged into it.

use super::evaluate::Evaluator;
use super::make::{
    FAULT, assign, assignment, condition, forget_fault, helper, jinja, merge, object, output_of,
    recording, replace, set, state,
};
use super::node::{Made, Sink};
use super::retry_loop::sequence;
use super::worker::{Role, Worker};
use super::{Place, Tea, make};
use crate::expression::{Condition, Syntax, Template, Value};
use crate::hir::{Block, Loop, Step, StepKind};
use crate::model::{AssignOp, Name, OnLimit, Test};
use crate::source::{Entry, Kind};

const HINT: &str =
    "for example with: { generator: { run: … }, evaluator: { type: schema, schema: … } }";
/// How many rounds at most when nothing is said.
const MAX_ITERATIONS: i64 = 3;
const VALID: &str = "(state.reflection_history | last).valid";
/// What the evaluator said, until it is recorded.
pub(super) const EVALUATION: &str = "_windlass_evaluation";

/// What is given when no round was valid (AC6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnFailure {
    ReturnBest,
    ReturnLast,
    Raise,
}

impl<'n> Tea<'_, 'n> {
    pub(super) fn reflection_loop(
        &mut self,
        named: &'n Entry,
        with: Option<&'n Entry>,
        sink: &Sink,
        place: &Place,
    ) -> Option<Made> {
        let Some(with) = with else {
            let message = "reflection.loop needs `generator` and `evaluator`";
            self.reader
                .error("missing-key", named.value.span, message, HINT);
            return None;
        };
        let mut fields = self
            .reader
            .fields(&with.value, "`with` of reflection.loop", HINT)?;
        let span = named.value.span;
        let generator = fields.need(&mut self.reader, "generator", span, HINT);
        let evaluator = fields.need(&mut self.reader, "evaluator", span, HINT);
        let corrector = fields.some(&mut self.reader, "corrector");
        let count = fields.some(&mut self.reader, "max_iterations");
        let on_failure = fields.some(&mut self.reader, "on_failure");
        fields.finish(&mut self.reader);

        let count = self.rounds(count);
        let on_failure = self.on_failure(on_failure);
        let evaluator = evaluator.and_then(|entry| self.evaluator(entry, place));
        let generator = generator.and_then(|entry| self.worker(Role::Generator, entry, place));
        let corrector = match corrector {
            Some(entry) => Some(self.worker(Role::Corrector, entry, place)?),
            None => None,
        };
        let (count, on_failure) = (count?, on_failure?);
        let (generator, evaluator) = (generator?, evaluator?);

        let before = self.part(place, "before");
        let saved = output_of(&before.name);
        let body = self.round(generator, evaluator, corrector, &count, place)?;
        let looped = self.part(place, "loop");
        let spec = Loop {
            name: Some(place.name.clone()),
            test: Test::After,
            stop_when: condition(VALID)?,
            condition_text: String::from("the last round was valid"),
            negated: false,
            count,
            timeout: None,
            delay: None,
            on_limit: OnLimit::Continue,
            on_timeout: OnLimit::Continue,
            test_when_spent: true,
            survives_failure: false,
            keep: Vec::new(),
            pages: None,
            body: Block::Sequence(body),
        };
        let mut steps = vec![
            helper(before, "compose", StepKind::Compose(state())),
            self.at_first(place),
            helper(looped, "reflection.loop", StepKind::Loop(Box::new(spec))),
        ];
        if on_failure == OnFailure::Raise {
            steps.push(self.raise(place)?);
        }
        let result = self.part(place, "result");
        let name = result.name.clone();
        steps.push(helper(result, "assign", self.result(on_failure, place)));
        let mut back = vec![replace(saved, place.span)];
        back.extend(self.keep(sink, &output_of(&name), place));
        let after = self.part(place, "output");
        steps.push(helper(after, "assign", assign(back, None)));
        Some(Made {
            output: Some(output_of(&name)),
            ..Made::new("reflection.loop", make::block(steps))
        })
    }

    fn rounds(&mut self, entry: Option<&'n Entry>) -> Option<Template> {
        let Some(entry) = entry else {
            return Some(Template::constant(Value::Int(MAX_ITERATIONS)));
        };
        match entry.value.kind {
            Kind::Int(count) if count >= 1 => {
                self.within_cap(count, entry);
                Some(Template::constant(Value::Int(count)))
            }
            Kind::String(_) => {
                let template = self.reader.template(&entry.value);
                if template.as_constant().is_none() {
                    return Some(template);
                }
                self.bad_rounds(entry)
            }
            _ => self.bad_rounds(entry),
        }
    }

    fn bad_rounds<T>(&mut self, entry: &Entry) -> Option<T> {
        let got = crate::dialect::reader::constant(&entry.value).to_json();
        let message = format!("reflection.loop: max_iterations must be at least 1, got {got}");
        let hint = "a whole number from 1";
        self.reader
            .error("out-of-range", entry.value.span, message, hint);
        None
    }

    fn on_failure(&mut self, entry: Option<&'n Entry>) -> Option<OnFailure> {
        let Some(entry) = entry else {
            return Some(OnFailure::ReturnBest);
        };
        let known = ["return_best", "return_last", "raise"];
        match self
            .reader
            .text(entry, "return_best, return_last or raise")?
        {
            "return_best" => Some(OnFailure::ReturnBest),
            "return_last" => Some(OnFailure::ReturnLast),
            "raise" => Some(OnFailure::Raise),
            other => {
                let message = format!("reflection.loop: Invalid on_failure strategy: {other}");
                self.unknown("unknown-value", message, entry.value.span, other, known);
                None
            }
        }
    }

    /// What the loop's variables are before the first round.
    fn at_first(&mut self, place: &Place) -> Step {
        let span = place.span;
        let first = vec![
            set("reflection_history", jinja("{{ [] }}"), span),
            set("reflection_best", Template::constant(Value::Null), span),
            set(
                "reflection_best_score",
                Template::constant(Value::Float(-1.0)),
                span,
            ),
        ];
        helper(self.part(place, "begin"), "assign", assign(first, None))
    }

    /// One round: the generator; when it gave something, the evaluator and its record; when that
    /// was not valid and there is another round, the corrector.
    fn round(
        &mut self,
        generator: Worker,
        evaluator: Evaluator,
        corrector: Option<Worker>,
        count: &Template,
        place: &Place,
    ) -> Option<Vec<Step>> {
        let span = place.span;
        let number = vec![set("reflection_iteration", jinja("{{ loop.count }}"), span)];
        let number = helper(self.part(place, "number"), "assign", assign(number, None));

        let generate = self.part(place, "generator");
        let generated = generate.name.clone();
        let mut then = generator.then;
        let value = match &evaluator {
            Evaluator::Call {
                text_is_json: true, ..
            } if generator.is_llm => make::with_result(&generator.value, jinja(JSON_OF_CONTENT)),
            _ => generator.value,
        };
        then.push(set("reflection_output", value.clone(), span));
        let call = make::call(
            &generator.executor,
            generator.inputs,
            generator.timeout,
            then,
        );
        let failed = vec![
            set(
                "reflection_errors",
                jinja("{{ [{'message': 'Generator failed: ' ~ state._windlass_fault.message}] }}"),
                span,
            ),
            forget_fault(span),
            assignment(
                "reflection_history",
                AssignOp::AppendToArray,
                jinja(FAILED_ROUND),
                span,
            ),
        ];
        let handled = self.part(place, "generator_failed");
        let tried = StepKind::Catch {
            body: sequence(recording(helper(generate, &generator.label, call), &value)),
            error: Name::from(FAULT),
            handler: Block::Sequence(vec![
                self.unless_broken(place)?,
                helper(handled, "assign", assign(failed, None)),
            ]),
        };
        let tried = helper(self.part(place, "generation"), "catch", tried);

        let mut then = self.evaluation(evaluator, place)?;
        then.push(self.recorded(place));
        if let Some(corrector) = corrector {
            then.push(self.correction_of(corrector, count, place)?);
        }
        // WDL's record of the step: the state has no word for it that could not be the user's.
        let generated = format!("@equals(actions('{generated}').status, 'Succeeded')");
        let generated = Condition::parse(&generated, Syntax::Loom).ok()?;
        let judged = StepKind::If {
            arms: vec![(generated, Block::Sequence(then))],
            otherwise: Block::Sequence(Vec::new()),
        };
        let judged = helper(self.part(place, "judged"), "if", judged);
        Some(vec![number, tried, judged])
    }

    /// What Python calls a wrong value ends the run, as in TEA: the generator itself is wrong then
    /// (spec: tea-observed.md, "generator raises").
    fn unless_broken(&mut self, place: &Place) -> Option<Step> {
        let broken = "state._windlass_fault.code in ['ValueError', 'JSONDecodeError', \
                      'UnicodeDecodeError', 'UnicodeEncodeError']";
        let raise = StepKind::Raise {
            kind: Name::from("script"),
            message: jinja("{{ state._windlass_fault.message }}"),
        };
        let raise = helper(self.part(place, "broken"), "raise", raise);
        let check = StepKind::If {
            arms: vec![(condition(broken)?, sequence(raise))],
            otherwise: Block::Sequence(Vec::new()),
        };
        Some(helper(self.part(place, "generator_error"), "if", check))
    }

    /// The round in the history, and the best so far: of equals the first.
    fn recorded(&mut self, place: &Place) -> Step {
        let span = place.span;
        let score = format!("state.{EVALUATION}.score > state.reflection_best_score");
        let best =
            format!("{{{{ state.reflection_output if {score} else state.reflection_best }}}}");
        let best_score = format!(
            "{{{{ state.{EVALUATION}.score if {score} else state.reflection_best_score }}}}"
        );
        let entry = object(vec![
            ("iteration", jinja("{{ state.reflection_iteration }}")),
            ("output", jinja("{{ state.reflection_output }}")),
            (
                "score",
                jinja(&format!("{{{{ state.{EVALUATION}.score }}}}")),
            ),
            (
                "valid",
                jinja(&format!("{{{{ state.{EVALUATION}.valid }}}}")),
            ),
            (
                "errors",
                jinja(&format!("{{{{ state.{EVALUATION}.errors }}}}")),
            ),
        ]);
        let done = Template::constant(Value::array(vec![Value::text(EVALUATION)]));
        let all = vec![
            assignment("reflection_history", AssignOp::AppendToArray, entry, span),
            set("reflection_best", jinja(&best), span),
            set("reflection_best_score", jinja(&best_score), span),
            set(
                "reflection_errors",
                jinja(&format!("{{{{ state.{EVALUATION}.errors }}}}")),
                span,
            ),
            assignment("", AssignOp::RemoveAll, done, span),
        ];
        helper(self.part(place, "recorded"), "assign", assign(all, None))
    }

    /// The corrector, unless it was the last round or a valid one. Its fault is an error of the
    /// round and nothing more.
    fn correction_of(
        &mut self,
        corrector: Worker,
        count: &Template,
        place: &Place,
    ) -> Option<Step> {
        let span = place.span;
        let mut then = corrector.then;
        let value = corrector.value;
        then.push(merge(value.clone(), span));
        let call = make::call(
            &corrector.executor,
            corrector.inputs,
            corrector.timeout,
            then,
        );
        let correct = helper(self.part(place, "corrector"), &corrector.label, call);
        let correct = recording(correct, &value);
        let failed = vec![
            set(
                "reflection_errors",
                jinja(
                    "{{ state.reflection_errors + [{'message': 'Corrector failed: ' ~ \
                     state._windlass_fault.message, 'type': 'corrector_error'}] }}",
                ),
                span,
            ),
            forget_fault(span),
            // The same errors are those of the round in the history.
            set("reflection_history", with_errors()?, span),
        ];
        let handled = self.part(place, "corrector_failed");
        let tried = StepKind::Catch {
            body: sequence(correct),
            error: Name::from(FAULT),
            handler: sequence(helper(handled, "assign", assign(failed, None))),
        };
        let tried = helper(self.part(place, "correction"), "catch", tried);
        let more = make::with_result(
            count,
            jinja(&format!("{{{{ not {VALID} and loop.count < result }}}}")),
        );
        let again = StepKind::If {
            arms: vec![(Condition::from_template(more).ok()?, sequence(tried))],
            otherwise: Block::Sequence(Vec::new()),
        };
        Some(helper(self.part(place, "again"), "if", again))
    }

    /// `on_failure: raise`: the error holds the whole history.
    fn raise(&mut self, place: &Place) -> Option<Step> {
        let raise = StepKind::Raise {
            kind: Name::from("reflection"),
            message: jinja(
                "Reflection loop failed after {{ state.reflection_iteration }} iterations; \
                 history: {{ state.reflection_history | json }}",
            ),
        };
        let raise = helper(self.part(place, "failed"), "raise", raise);
        let failed = StepKind::If {
            arms: vec![(condition(&format!("not {VALID}"))?, sequence(raise))],
            otherwise: Block::Sequence(Vec::new()),
        };
        Some(helper(self.part(place, "unless_valid"), "if", failed))
    }

    /// Makes the result of the loop's variables: the state is the result, until it is brought
    /// back.
    fn result(&self, on_failure: OnFailure, place: &Place) -> StepKind {
        let span = place.span;
        let last = "(state.reflection_history | last).output";
        let output = match on_failure {
            OnFailure::ReturnLast | OnFailure::Raise => last.to_owned(),
            OnFailure::ReturnBest => {
                format!("{last} if {VALID} else state.reflection_best")
            }
        };
        let keys = object(vec![
            (
                "reflection_iteration",
                jinja("{{ state.reflection_iteration }}"),
            ),
            ("reflection_output", jinja(&format!("{{{{ {output} }}}}"))),
            (
                "reflection_errors",
                jinja(&format!(
                    "{{{{ [] if {VALID} else (state.reflection_history | last).errors }}}}"
                )),
            ),
            (
                "reflection_history",
                jinja("{{ state.reflection_history }}"),
            ),
            (
                "reflection_best",
                jinja(&format!(
                    "{{{{ {last} if {VALID} else state.reflection_best }}}}"
                )),
            ),
            (
                "reflection_best_score",
                jinja(&format!(
                    "{{{{ (state.reflection_history | last).score if {VALID} \
                     else state.reflection_best_score }}}}"
                )),
            ),
            ("success", jinja(&format!("{{{{ {VALID} }}}}"))),
            ("valid", jinja(&format!("{{{{ {VALID} }}}}"))),
        ]);
        let all = vec![
            replace(keys, span),
            merge(
                jinja("{{ {} if state.valid else {'exhausted': true} }}"),
                span,
            ),
            merge(
                jinja(
                    "{{ state.reflection_output if state.reflection_output is mapping \
                     else {'result': state.reflection_output} }}",
                ),
                span,
            ),
        ];
        assign(all, Some(state()))
    }
}

/// What a model says, as its JSON when it is JSON: a schema is about that, not about the answer's
/// envelope.
const JSON_OF_CONTENT: &str =
    "{{ result if (result.content | fromjson) is string else (result.content | fromjson) }}";

const FAILED_ROUND: &str = "{{ {'iteration': state.reflection_iteration, 'output': none, \
     'score': 0.0, 'valid': false, 'errors': state.reflection_errors} }}";

/// The history with the errors of its last round as they are now.
fn with_errors() -> Option<Template> {
    let last = jinja("{{ state.reflection_history | last }}");
    let errors = jinja("{{ state.reflection_errors }}");
    let changed = Template::call("setProperty", vec![last, make::text("errors"), errors]).ok()?;
    let before = jinja("{{ state.reflection_history[:-1] }}");
    let before = make::with_result(&changed, make::with_before(before));
    Some(before)
}
