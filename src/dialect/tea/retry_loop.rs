//! `retry.loop` (story TEA-YAML-005): validate, correct, validate again.
//!
//! A loop whose iterations begin with the corrector, but for the first one, and end with the
//! validator: so that what the loop looks at is whether the last validation was good, and n
//! retries are n + 1 iterations. The four variables lie in the state while it runs.

use super::action::action_names;
use super::make::{
    FAULT, assign, condition, forget_fault, helper, jinja, merge, output_of, recording, replace,
    set, state, text, with_result,
};
use super::node::{Made, Sink};
use super::{Place, Tea, make};
use crate::expression::{Condition, Template, Value};
use crate::hir::{Block, Loop, Step, StepKind, Wait};
use crate::model::{Name, OnLimit, Test};
use crate::source::{Entry, Kind};

const HINT: &str =
    "for example with: { validate: validate.extraction, correct: fix, max_retries: 2 }";
/// How many copies of correctors a file may come to: those of correctors multiply.
const MAX_COPIES: usize = 500;
/// Whether the last validation was good.
const VALID: &str = "state._retry_result.get('valid', false)";
const CORRECTION_FAILED: &str = "'correction_error' in state._retry_result";

impl<'n> Tea<'_, 'n> {
    pub(super) fn retry_loop(
        &mut self,
        named: &'n Entry,
        with: Option<&'n Entry>,
        sink: &Sink,
        place: &Place,
    ) -> Option<Made> {
        let Some(with) = with else {
            self.required(named, "'validate' parameter is required");
            self.required(named, "'correct' parameter is required");
            return None;
        };
        let mut fields = self
            .reader
            .fields(&with.value, "`with` of retry.loop", HINT)?;
        let validate = fields.some(&mut self.reader, "validate");
        let arguments = fields.get("validate_args");
        let correct = fields.some(&mut self.reader, "correct");
        let retries = fields.get("max_retries");
        let delay = fields.some(&mut self.reader, "retry_delay");
        fields.finish(&mut self.reader);

        let retries = self.max_retries(retries, place);
        let delay = delay.and_then(|delay| self.seconds(delay));
        let arguments = self.arguments(arguments);
        if validate.is_none() {
            self.required(named, "'validate' parameter is required");
        }
        if correct.is_none() {
            self.required(named, "'correct' parameter is required");
        }
        let validation = self.validation(validate, arguments?, place);
        let correction = self.correction(correct, place);
        let (retries, validation, correction) = (retries?, validation?, correction?);

        let mut body = Vec::new();
        body.push(self.correct_again(correction, delay, place)?);
        body.extend(validation);
        let count = retries.count;
        let looped = self.part(place, "loop");
        let spec = Loop {
            name: Some(place.name.clone()),
            test: Test::After,
            stop_when: condition(VALID)?,
            condition_text: String::from("state._retry_result.valid"),
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
        let looped = helper(looped, "retry.loop", StepKind::Loop(Box::new(spec)));

        let mut steps = retries.before;
        let kept = self.keep_from(sink, place);
        steps.extend(kept.before);
        steps.push(looped);
        let exhausted = format!("{{{{ not {VALID} and not ({CORRECTION_FAILED}) }}}}");
        let fields =
            format!("{{{{ {{'valid': false}} if {CORRECTION_FAILED} else state._retry_result }}}}");
        let span = place.span;
        let last = vec![
            set("_retry_exhausted", jinja(&exhausted), span),
            merge(jinja(&fields), span),
        ];
        steps.push(helper(kept.result, "assign", assign(last, kept.whole)));
        steps.extend(kept.after);
        Some(Made {
            // The parts of the loop are of no interest to who looks at the run.
            output: Some(jinja("{{ state.get('_retry_result') }}")),
            ..Made::new("retry.loop", make::block(steps))
        })
    }

    fn required(&mut self, named: &Entry, what: &str) {
        let message = format!("retry.loop: {what}");
        self.reader
            .error("missing-key", named.value.span, message, HINT);
    }

    /// How many iterations: one more than there are retries.
    fn max_retries(&mut self, entry: Option<&'n Entry>, place: &Place) -> Option<Retries> {
        let known = |count| {
            Some(Retries {
                count: Template::constant(Value::Int(count)),
                before: Vec::new(),
            })
        };
        let Some(entry) = entry else { return known(2) };
        match &entry.value.kind {
            // Python counts true as 1.
            Kind::Bool(true) => known(2),
            Kind::Int(retries) if *retries >= 0 => {
                let count = retries.saturating_add(1);
                self.within_cap(count, entry);
                known(count)
            }
            Kind::String(_) => {
                let template = self.reader.template(&entry.value);
                if template.as_constant().is_some() {
                    return self.bad_retries(entry);
                }
                let computed = self.part(place, "max");
                let value = output_of(&computed.name);
                let guard = self.part(place, "bounds");
                let wrong = "{{ not (result is integer and result >= 0) }}";
                let message =
                    "retry.loop: max_retries must be a non-negative integer, got {{ result }}";
                let raised = self.part(place, "refused");
                let raise = StepKind::Raise {
                    kind: Name::from("input"),
                    message: with_result(&value, jinja(message)),
                };
                let wrong = Condition::from_template(with_result(&value, jinja(wrong))).ok()?;
                let refuse = StepKind::If {
                    arms: vec![(wrong, sequence(helper(raised, "raise", raise)))],
                    otherwise: Block::Sequence(Vec::new()),
                };
                Some(Retries {
                    count: with_result(&value, jinja("{{ result + 1 }}")),
                    before: vec![
                        helper(computed, "compose", StepKind::Compose(template)),
                        helper(guard, "if", refuse),
                    ],
                })
            }
            _ => self.bad_retries(entry),
        }
    }

    fn bad_retries<T>(&mut self, entry: &Entry) -> Option<T> {
        let got = crate::dialect::reader::constant(&entry.value).to_json();
        let message = format!("retry.loop: max_retries must be a non-negative integer, got {got}");
        self.reader
            .error("out-of-range", entry.value.span, message, HINT);
        None
    }

    /// Validates: a call whose fault is a bad validation too. Then what it says is in the state.
    fn validation(
        &mut self,
        validate: Option<&'n Entry>,
        arguments: Vec<&'n Entry>,
        place: &Place,
    ) -> Option<Vec<Step>> {
        let validate = validate?;
        let name = super::action::canonical(self.reader.text(validate, HINT)?);
        if !action_names().any(|known| known == name) {
            let message = format!("retry.loop: Unknown validation action: {name}");
            let span = validate.value.span;
            self.unknown("unknown-action", message, span, &name, action_names());
            return None;
        }
        let span = place.span;
        let inner = self.part(place, "validate");
        let invocation = self.invocation(&name, validate, &arguments, &inner)?;
        let value = invocation.value;
        let then = vec![set("_retry_result", value.clone(), span)];
        let call = make::call(&invocation.executor, invocation.inputs, None, then);
        let failed = "{{ {'valid': false, 'errors': \
                      [{'message': state._windlass_fault.message, 'type': 'validation_error'}]} }}";
        let failed = vec![
            set("_retry_result", jinja(failed), span),
            forget_fault(span),
        ];
        let handled = self.part(place, "validation_failed");
        let tried = StepKind::Catch {
            body: sequence(recording(helper(inner, &name, call), &value)),
            error: Name::from(FAULT),
            handler: sequence(helper(handled, "assign", assign(failed, None))),
        };
        let tried = helper(self.part(place, "validation"), "catch", tried);
        let errors = format!("{{{{ [] if {VALID} else state._retry_result.get('errors', []) }}}}");
        let errors = vec![set("_retry_errors", jinja(&errors), span)];
        let seen = helper(self.part(place, "errors"), "assign", assign(errors, None));
        Some(vec![tried, seen])
    }

    /// The corrector's node, as it stands, without its edges.
    fn correction(&mut self, correct: Option<&'n Entry>, place: &Place) -> Option<Step> {
        let correct = correct?;
        let name = self.reader.text(correct, HINT)?;
        let found = self.nodes.iter().find(|(known, _)| *known == name).copied();
        let span = correct.value.span;
        let Some((name, node)) = found else {
            let message = format!("retry.loop: Correction node not found: {name}");
            let known = self.node_names();
            self.unknown("unknown-node", message, span, name, known);
            return None;
        };
        if self.correcting.contains(&name) {
            let message = format!("retry.loop: '{name}' corrects itself without end");
            let hint = "the corrector may not contain the loop that it corrects for";
            self.reader.error("corrector-cycle", span, message, hint);
            return None;
        }
        self.copies += 1;
        if self.copies > MAX_COPIES {
            let message = format!("retry.loop: more than {MAX_COPIES} copies of correctors");
            let hint =
                "each loop has its corrector inside of it: correctors of correctors multiply";
            self.reader.error("too-large", span, message, hint);
            return None;
        }
        self.correctors.insert(name);
        self.correcting.push(name);
        let inner = Place {
            in_body: false,
            ..self.place(name, &place.name, span, false)
        };
        let step = self.node(node, &inner);
        self.correcting.pop();
        Some(step)
    }

    /// What an iteration begins with, but for the first: the corrector and the wait; then the
    /// count. A corrector that fails ends the loop (AC 14).
    fn correct_again(
        &mut self,
        corrector: Step,
        delay: Option<Template>,
        place: &Place,
    ) -> Option<Step> {
        let span = place.span;
        let name = corrector.title.as_ref().unwrap_or(&corrector.name).clone();
        let failed = vec![
            set(
                "_retry_result",
                jinja(
                    "{{ {'valid': false, 'errors': state._retry_errors, \
                     'correction_error': state._windlass_fault.message} }}",
                ),
                span,
            ),
            set(
                "_retry_errors",
                with_result(
                    &text(&name),
                    jinja(
                        "{{ state._retry_errors + [{'message': \"Correction node '\" ~ result ~ \
                         \"' failed: \" ~ state._windlass_fault.message, \
                         'type': 'correction_error'}] }}",
                    ),
                ),
                span,
            ),
            forget_fault(span),
        ];
        let handled = helper(
            self.part(place, "correction_failed"),
            "assign",
            assign(failed, None),
        );
        let tried = StepKind::Catch {
            body: sequence(corrector),
            error: Name::from(FAULT),
            handler: sequence(handled),
        };
        let tried = Step {
            break_when: Some(condition(CORRECTION_FAILED)?),
            ..helper(self.part(place, "correction"), "catch", tried)
        };
        let mut steps = vec![tried];
        let none = Value::Int(0);
        if let Some(delay) = delay.filter(|delay| delay.as_constant() != Some(&none)) {
            let wait = StepKind::Wait(Wait::For(delay));
            steps.push(helper(self.part(place, "delay"), "wait", wait));
        }
        let again = StepKind::If {
            arms: vec![(condition("loop.index > 0")?, Block::Sequence(steps))],
            otherwise: Block::Sequence(Vec::new()),
        };
        let again = helper(self.part(place, "again"), "if", again);
        let count = vec![set("_retry_count", jinja("{{ loop.index }}"), span)];
        let count = helper(self.part(place, "count"), "assign", assign(count, None));
        let both = self.part(place, "begin");
        Some(helper(both, "block", make::block(vec![again, count])))
    }

    /// How a node that works on the state itself comes to its result: it merges, or all of it
    /// goes under a key and nothing else changes.
    pub(super) fn keep_from(&mut self, sink: &Sink, place: &Place) -> Kept {
        let result = self.part(place, "result");
        if matches!(sink, Sink::Merge) {
            return Kept {
                before: None,
                result,
                whole: None,
                after: None,
            };
        }
        let before = self.part(place, "before");
        let after = self.part(place, "output");
        let mut back = vec![replace(output_of(&before.name), place.span)];
        back.extend(self.keep(sink, &output_of(&result.name), place));
        Kept {
            before: Some(helper(before, "compose", StepKind::Compose(state()))),
            result,
            whole: Some(state()),
            after: Some(helper(after, "assign", assign(back, None))),
        }
    }
}

/// A loop's bound, and the steps that compute it.
struct Retries {
    count: Template,
    before: Vec<Step>,
}

/// See [`Tea::keep_from`].
pub(super) struct Kept {
    /// Remembers the state.
    pub before: Option<Step>,
    /// The place of the step that makes the result of the state.
    pub result: Place,
    /// The output of that step.
    pub whole: Option<Template>,
    /// Brings the state back and adds the result.
    pub after: Option<Step>,
}

pub(super) fn sequence(step: Step) -> Block {
    Block::Sequence(vec![step])
}
