//! `reflection.loop`: generate, evaluate, correct, and repeat.
//!
//! The loop works on the state itself. So templates of the next iteration can read the loop's variables, and the
//! generator sees the changes of the corrector. When the loop ends, the state is restored, and the result is
//! merged into it.

use super::builder::{
    FAULT_TEXT, anonymous_step, assign, assignment, condition, expressions, forget_fault, merge,
    output_of, remove, replace, set, set_all, state, with_result,
};
use super::evaluate::{EVALUATION, Evaluator};
use super::node::{LoweredNode, ResultTarget};
use super::worker::Worker;
use super::{SourcePosition, Tea};
use crate::builder::{self, expression, jinja, only, text};
use crate::reader::Reader;
use windlass_expression::{Binding, Condition, Syntax, Template, Value};
use windlass_model::hir::{Block, Loop, Step, StepKind};
use windlass_model::model::{AssignOp, Name, fault_kind};
use windlass_source::source::{Entry, Kind, Span};

const HINT: &str =
    "for example with: { generator: { run: … }, evaluator: { type: schema, schema: … } }";
/// Default maximum number of iterations.
const MAX_ITERATIONS: i64 = 3;
/// The variable with the best output so far. After the first evaluation, the state also has the output as
/// `reflection_best`.
const BEST: &str = "_windlass_best";
/// The variable with the score of that output, which the state also has as `reflection_best_score`.
const BEST_SCORE: &str = "_windlass_best_score";
const VALID: &str = "(state.reflection_history | last).valid";

/// The result of the loop if the output of no iteration was valid (TEA-AGENT-001.2, AC6).
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
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let Some(with) = with else {
            let message = "reflection.loop needs `generator` and `evaluator`";
            self.error("missing-key", named.value.span, message, HINT);
            return None;
        };
        let mut fields = self.fields(&with.value, "`with` of reflection.loop", HINT)?;
        let span = named.value.span;
        let generator = fields.required(self, "generator", span, HINT);
        let evaluator = fields.required(self, "evaluator", span, HINT);
        let corrector = fields.non_null(self, "corrector");
        let count = fields.non_null(self, "max_iterations");
        let on_failure = fields.non_null(self, "on_failure");
        fields.finish(self);

        let count = self.iteration_count(count);
        let on_failure = self.on_failure(on_failure);
        let evaluator = evaluator.and_then(|entry| self.evaluator(entry));
        let generator = generator.and_then(|entry| self.worker(entry, place));
        let corrector = match corrector {
            Some(entry) => Some(self.worker(entry, place)?),
            None => None,
        };
        let (count, on_failure) = (count?, on_failure?);
        let (generator, evaluator) = (generator?, evaluator?);

        let before = self.part(place, "before");
        let saved = output_of(&before.name);
        let body = self.iteration_steps(generator, evaluator, corrector, &count, place)?;
        let looped = self.part(place, "loop");
        let spec = Loop {
            name: Some(place.name.clone()),
            condition_text: String::from("the last round was valid"),
            ..builder::looped(condition(self, VALID)?, count, Block::Sequence(body))
        };
        let looped = anonymous_step(looped, "reflection.loop", StepKind::Loop(Box::new(spec)));
        let before = anonymous_step(before, "compose", StepKind::Compose(state()));
        let mut steps = vec![before, self.at_first(place), looped];
        if on_failure == OnFailure::Raise {
            steps.push(self.raise(place)?);
        }
        let result = self.part(place, "result");
        let output = output_of(&result.name);
        steps.push(anonymous_step(
            result,
            "assign",
            result_of(self, on_failure, place.span),
        ));
        let mut back = vec![replace(saved, place.span)];
        back.extend(self.store_result(target, &output, place));
        steps.push(self.assigned(place, "output", back));
        Some(LoweredNode {
            output: Some(output),
            ..LoweredNode::new("reflection.loop", super::builder::block(steps))
        })
    }

    fn iteration_count(&mut self, entry: Option<&'n Entry>) -> Option<Template> {
        let Some(entry) = entry else {
            return Some(Template::constant(Value::Int(MAX_ITERATIONS)));
        };
        match entry.value.kind {
            Kind::Int(count) if count >= 1 => {
                let cap = self.max_count;
                self.within_cap(count, cap, entry.value.span);
                Some(Template::constant(Value::Int(count)))
            }
            Kind::String(_) => {
                let template = self.template(&entry.value);
                if template.as_constant().is_none() {
                    return Some(template);
                }
                self.invalid_iteration_count(entry)
            }
            _ => self.invalid_iteration_count(entry),
        }
    }

    fn invalid_iteration_count<T>(&mut self, entry: &Entry) -> Option<T> {
        let got = entry.value.to_value().to_json();
        let message = format!("reflection.loop: max_iterations must be at least 1, got {got}");
        let hint = "a whole number from 1";
        self.error("out-of-range", entry.value.span, message, hint);
        None
    }

    fn on_failure(&mut self, entry: Option<&'n Entry>) -> Option<OnFailure> {
        let known = [
            ("return_best", OnFailure::ReturnBest),
            ("return_last", OnFailure::ReturnLast),
            ("raise", OnFailure::Raise),
        ];
        let what = "reflection.loop: Invalid on_failure strategy:";
        match entry {
            Some(entry) => self.choice(entry, &known, |word| format!("{what} {word}")),
            None => Some(OnFailure::ReturnBest),
        }
    }

    /// Makes the step that sets the loop's variables before the first iteration.
    fn at_first(&mut self, place: &SourcePosition) -> Step {
        let first = [
            ("reflection_history", "[]"),
            (BEST, "none"),
            (BEST_SCORE, "-1.0"),
        ];
        self.assigned(place, "begin", set_all(self, &first, place.span))
    }

    /// Makes the steps of one iteration.
    /// The generator runs first. If it succeeds, the evaluator runs and its evaluation is recorded. If the output is
    /// not valid and another iteration follows, the corrector runs.
    fn iteration_steps(
        &mut self,
        generator: Worker,
        evaluator: Evaluator,
        corrector: Option<Worker>,
        count: &Template,
        place: &SourcePosition,
    ) -> Option<Vec<Step>> {
        let span = place.span;
        let number = set_all(self, &[("reflection_iteration", "loop.count")], span);
        let number = self.assigned(place, "number", number);

        let generate = self.part(place, "generator");
        let generated = generate.name.clone();
        let value = match &evaluator {
            Evaluator::Call {
                text_is_json: true, ..
            } if generator.is_llm => with_result(&generator.value, jinja(self, JSON_OF_CONTENT)),
            _ => generator.value.clone(),
        };
        let then = vec![set("reflection_output", value.clone(), span)];
        let generate = generator.step(generate, &value, then);
        let errors = format!("[{{'message': 'Generator failed: ' ~ {FAULT_TEXT}}}]");
        let failed = vec![
            set("reflection_errors", expression(self, &errors), span),
            forget_fault(span),
            assignment(
                "reflection_history",
                AssignOp::AppendToArray,
                expression(self, FAILED_ITERATION),
                span,
            ),
        ];
        let handler = vec![
            self.unless_broken(place)?,
            self.unless_unrendered("generator", place)?,
            self.assigned(place, "generator_failed", failed),
        ];
        let tried = self.catch_step(place, "generation", generate, handler);

        let mut then = self.evaluation(evaluator, place)?;
        then.push(self.recorded(place));
        if let Some(corrector) = corrector {
            then.push(self.correction_of(corrector, count, place)?);
        }
        // Read the record of the step with WDL. A Jinja condition needs a variable of the state, and the author could
        // use any name for a variable.
        let generated = format!("@equals(actions('{generated}').status, 'Succeeded')");
        let generated = Condition::parse(&generated, Syntax::Loom).ok()?;
        let judged = builder::when(generated, Block::Sequence(then));
        let judged = anonymous_step(self.part(place, "judged"), "if", judged);
        Some(vec![number, tried, judged])
    }

    /// Ends the run if the generator raised one of Python's value errors, as TEA does. Such an error means that its
    /// code is wrong.
    fn unless_broken(&mut self, place: &SourcePosition) -> Option<Step> {
        let broken = "state._windlass_fault.code in ['ValueError', 'JSONDecodeError', \
                      'UnicodeDecodeError', 'UnicodeEncodeError']";
        let raised = self.part(place, "broken");
        let check = self.part(place, "generator_error");
        self.raise_again("script", broken, raised, check)
    }

    /// Ends the run if a template of the generator or the evaluator could not be evaluated. TEA renders these templates
    /// before the loop.
    pub(super) fn unless_unrendered(&mut self, of: &str, place: &SourcePosition) -> Option<Step> {
        let unrendered = format!("state._windlass_fault.kind == '{}'", fault_kind::EXPRESSION);
        let raised = self.part(place, &format!("{of}_unrendered"));
        let check = self.part(place, &format!("{of}_expression"));
        self.raise_again(fault_kind::EXPRESSION, &unrendered, raised, check)
    }

    /// Makes the step that raises the fault again if a condition is true.
    fn raise_again(
        &self,
        kind: &str,
        wanted: &str,
        raised: SourcePosition,
        check: SourcePosition,
    ) -> Option<Step> {
        let raise = StepKind::Raise {
            kind: Name::from(kind),
            message: expression(self, "state._windlass_fault.message"),
        };
        let raise = anonymous_step(raised, "raise", raise);
        let when = builder::when(condition(self, wanted)?, only(raise));
        Some(anonymous_step(check, "if", when))
    }

    /// Adds the iteration to the history, and updates the best output. Of several outputs with the same score, the
    /// first is the best.
    fn recorded(&mut self, place: &SourcePosition) -> Step {
        let span = place.span;
        let evaluation = |member: &str| format!("state.{EVALUATION}.{member}");
        let better = format!("{} > state.{BEST_SCORE}", evaluation("score"));
        let best = format!("state.reflection_output if {better} else state.{BEST}");
        let best_score = format!(
            "{} if {better} else state.{BEST_SCORE}",
            evaluation("score")
        );
        let entry = expressions(
            self,
            &[
                ("iteration", "state.reflection_iteration"),
                ("output", "state.reflection_output"),
                ("score", &evaluation("score")),
                ("valid", &evaluation("valid")),
                ("errors", &evaluation("errors")),
            ],
        );
        let mut all = vec![assignment(
            "reflection_history",
            AssignOp::AppendToArray,
            entry,
            span,
        )];
        let changed = [
            (BEST, &*best),
            (BEST_SCORE, &best_score),
            ("reflection_best", &format!("state.{BEST}")),
            ("reflection_best_score", &format!("state.{BEST_SCORE}")),
            ("reflection_errors", &evaluation("errors")),
        ];
        all.extend(set_all(self, &changed, span));
        all.push(remove(EVALUATION, span));
        self.assigned(place, "recorded", all)
    }

    /// Makes the call of the corrector. It does not run if the iteration was the last one or its output was valid.
    /// A fault of the corrector is only recorded, as an error of the iteration.
    fn correction_of(
        &mut self,
        corrector: Worker,
        count: &Template,
        place: &SourcePosition,
    ) -> Option<Step> {
        let span = place.span;
        let value = corrector.value.clone();
        let then = vec![merge(value.clone(), span)];
        let correct = corrector.step(self.part(place, "corrector"), &value, then);
        let errors = format!(
            "state.reflection_errors + [{{'message': 'Corrector failed: ' ~ {FAULT_TEXT}, \
             'type': 'corrector_error'}}]"
        );
        let failed = vec![
            set("reflection_errors", expression(self, &errors), span),
            forget_fault(span),
            // Add the error to the iteration in the history, too.
            set("reflection_history", with_errors(self)?, span),
        ];
        let handler = vec![self.assigned(place, "corrector_failed", failed)];
        let tried = self.catch_step(place, "correction", correct, handler);
        let more = format!("not {VALID} and loop.count < result");
        let more = Condition::from_template(with_result(count, expression(self, &more))).ok()?;
        let again = builder::when(more, only(tried));
        Some(anonymous_step(self.part(place, "again"), "if", again))
    }

    /// Makes the step of `on_failure: raise`. The error contains the whole history.
    fn raise(&mut self, place: &SourcePosition) -> Option<Step> {
        let raise = StepKind::Raise {
            kind: Name::from("reflection"),
            message: jinja(
                self,
                "Reflection loop failed after {{ state.reflection_iteration }} iterations; \
                 history: {{ state.reflection_history | json }}",
            ),
        };
        let raise = anonymous_step(self.part(place, "failed"), "raise", raise);
        let failed = builder::when(condition(self, &format!("not {VALID}"))?, only(raise));
        Some(anonymous_step(
            self.part(place, "unless_valid"),
            "if",
            failed,
        ))
    }
}

/// Makes the result of the loop from the loop's variables.
/// Until the state is restored, the state has only this result.
fn result_of(reader: &Reader<'_>, on_failure: OnFailure, span: Span) -> StepKind {
    let last = "(state.reflection_history | last)";
    let output = match on_failure {
        OnFailure::ReturnLast | OnFailure::Raise => format!("{last}.output"),
        OnFailure::ReturnBest => format!("{last}.output if {VALID} else state.{BEST}"),
    };
    let best = format!("{last}.output if {VALID} else state.{BEST}");
    let best_score = format!("{last}.score if {VALID} else state.{BEST_SCORE}");
    let keys = expressions(
        reader,
        &[
            ("reflection_iteration", "state.reflection_iteration"),
            ("reflection_output", &output),
            (
                "reflection_errors",
                &format!("[] if {VALID} else {last}.errors"),
            ),
            ("reflection_history", "state.reflection_history"),
            ("reflection_best", &best),
            ("reflection_best_score", &best_score),
            ("success", VALID),
            ("valid", VALID),
        ],
    );
    let exhausted = "{} if state.valid else {'exhausted': true}";
    let output = "state.reflection_output if state.reflection_output is mapping \
                  else {'result': state.reflection_output}";
    let all = vec![
        replace(keys, span),
        merge(expression(reader, exhausted), span),
        merge(expression(reader, output), span),
    ];
    assign(all, Some(state()))
}

/// The template for the JSON in the answer of a model. The JSON may be in a code fence.
/// A schema describes this JSON, and not the object that contains the answer.
const JSON_OF_CONTENT: &str = "{{ (result.content.split('```')[1].split('\\n', 1)[1] \
    if '```' in result.content and '\\n' in result.content.split('```')[1] \
    and (result.content | trim)[:1] not in ['{', '['] \
    else result.content) | fromjson }}";

const FAILED_ITERATION: &str = "{'iteration': state.reflection_iteration, 'output': none, \
     'score': 0.0, 'valid': false, 'errors': state.reflection_errors}";

/// Makes the history in which the last iteration has the current errors.
fn with_errors(reader: &Reader<'_>) -> Option<Template> {
    let last = expression(reader, "state.reflection_history | last");
    let errors = expression(reader, "state.reflection_errors");
    let changed = Template::call("setProperty", vec![last, text("errors"), errors]).ok()?;
    let before = [(
        Name::from("_list"),
        expression(reader, "state.reflection_history[:-1]"),
    )];
    let all = Template::binding(Binding::Scoped(
        before.into(),
        expression(reader, "_list + [result]"),
    ));
    Some(with_result(&changed, all))
}
