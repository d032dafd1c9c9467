//! `retry.loop`: validate, correct, and validate again.
//!
//! Each iteration except the first begins with the corrector. Each iteration ends with the validator. The loop ends
//! when a validation succeeds. The first iteration is not a retry, so n retries are n + 1 iterations. While the loop
//! runs, the state has the loop's four variables.

use super::action::action_names;
use super::builder::{
    FAULT_TEXT, anonymous_step, assign, condition, forget_fault, merge, output_of, recording,
    replace, set, set_all, state, with_result,
};
use super::node::{LoweredNode, ResultTarget};
use super::{SourcePosition, Tea};
use crate::builder::{self, expression, jinja, only, text};
use windlass_expression::{Condition, Template, Value};
use windlass_model::hir::{Block, Loop, Step, StepKind, Wait};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind};

const HINT: &str =
    "for example with: { validate: validate.extraction, correct: fix, max_retries: 2 }";
/// Maximum number of copies of correctors in a file. A corrector with a loop of its own is copied for each use.
const MAX_COPIES: usize = 500;
/// The expression for whether the last validation succeeded.
const VALID: &str = "state._retry_result.get('valid', false)";
const CORRECTION_FAILED: &str = "'correction_error' in state._retry_result";

impl<'n> Tea<'_, 'n> {
    pub(super) fn retry_loop(
        &mut self,
        named: &'n Entry,
        with: Option<&'n Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let Some(with) = with else {
            self.required(named, "'validate' parameter is required");
            self.required(named, "'correct' parameter is required");
            return None;
        };
        let mut fields = self.fields(&with.value, "`with` of retry.loop", HINT)?;
        let validate = fields.non_null(self, "validate");
        let arguments = fields.get("validate_args");
        let correct = fields.non_null(self, "correct");
        let retries = fields.get("max_retries");
        let delay = fields.non_null(self, "retry_delay");
        fields.finish(self);

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

        let mut body = vec![self.correct_again(correction, delay, place)?];
        body.extend(validation);
        let looped = self.part(place, "loop");
        let spec = Loop {
            name: Some(place.name.clone()),
            condition_text: String::from("state._retry_result.valid"),
            ..builder::looped(
                condition(self, VALID)?,
                retries.count,
                Block::Sequence(body),
            )
        };
        let looped = anonymous_step(looped, "retry.loop", StepKind::Loop(Box::new(spec)));

        let mut steps = retries.before;
        let result_steps = self.result_steps(target, place);
        steps.extend(result_steps.before);
        steps.push(looped);
        let exhausted = format!("not {VALID} and not ({CORRECTION_FAILED})");
        let fields = format!("{{'valid': false}} if {CORRECTION_FAILED} else state._retry_result");
        let span = place.span;
        let last = vec![
            set("_retry_exhausted", expression(self, &exhausted), span),
            merge(expression(self, &fields), span),
        ];
        steps.push(anonymous_step(
            result_steps.result,
            "assign",
            assign(last, result_steps.whole),
        ));
        steps.extend(result_steps.after);
        Some(LoweredNode {
            // The record has only the result, not the values of the loop's parts.
            output: Some(expression(self, "state.get('_retry_result')")),
            ..LoweredNode::new("retry.loop", super::builder::block(steps))
        })
    }

    fn required(&mut self, named: &Entry, what: &str) {
        let message = format!("retry.loop: {what}");
        self.error("missing-key", named.value.span, message, HINT);
    }

    /// Reads `max_retries`. The maximum number of iterations is one more than this number.
    fn max_retries(&mut self, entry: Option<&'n Entry>, place: &SourcePosition) -> Option<Retries> {
        let known = |count| {
            Some(Retries {
                count: Template::constant(Value::Int(count)),
                before: Vec::new(),
            })
        };
        let Some(entry) = entry else { return known(2) };
        match &entry.value.kind {
            // In Python, true is the number 1, so this is one retry.
            Kind::Bool(true) => known(2),
            Kind::Int(retries) if *retries >= 0 => {
                let count = retries.saturating_add(1);
                let cap = self.max_count;
                self.within_cap(count, cap, entry.value.span);
                known(count)
            }
            Kind::String(_) => {
                let template = self.template(&entry.value);
                if template.as_constant().is_some() {
                    return self.invalid_retries(entry);
                }
                let computed = self.part(place, "max");
                let value = output_of(&computed.name);
                let guard = self.part(place, "bounds");
                let wrong = expression(self, "not (result is integer and result >= 0)");
                let message = "retry.loop: max_retries must be a non-negative integer, \
                               got {{ result | tojson }}";
                let raised = self.part(place, "refused");
                let raise = StepKind::Raise {
                    kind: Name::from("input"),
                    message: with_result(&value, jinja(self, message)),
                };
                let wrong = Condition::from_template(with_result(&value, wrong)).ok()?;
                let refuse = builder::when(wrong, only(anonymous_step(raised, "raise", raise)));
                Some(Retries {
                    count: with_result(&value, expression(self, "result + 1")),
                    before: vec![
                        anonymous_step(computed, "compose", StepKind::Compose(template)),
                        anonymous_step(guard, "if", refuse),
                    ],
                })
            }
            _ => self.invalid_retries(entry),
        }
    }

    fn invalid_retries<T>(&mut self, entry: &Entry) -> Option<T> {
        let got = entry.value.to_value().to_json();
        let message = format!("retry.loop: max_retries must be a non-negative integer, got {got}");
        self.error("out-of-range", entry.value.span, message, HINT);
        None
    }

    /// Makes the steps of a validation. They store its result in the state.
    /// A fault of the validator's call counts as a failed validation.
    fn validation(
        &mut self,
        validate: Option<&'n Entry>,
        arguments: Vec<&'n Entry>,
        place: &SourcePosition,
    ) -> Option<Vec<Step>> {
        let validate = validate?;
        let name = super::action::canonical(self.text(validate, HINT)?);
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
        let call = super::builder::call(&invocation.executor, invocation.inputs, None, then);
        let inner = recording(anonymous_step(inner, &name, call), &value);
        let failed = format!(
            "{{'valid': false, 'errors': [{{'message': {FAULT_TEXT}, 'type': 'validation_error'}}]}}"
        );
        let failed = vec![
            set("_retry_result", expression(self, &failed), span),
            forget_fault(span),
        ];
        let handler = vec![self.assigned(place, "validation_failed", failed)];
        let tried = self.catch_step(place, "validation", inner, handler);
        let errors = format!("[] if {VALID} else state._retry_result.get('errors', [])");
        let errors = set_all(self, &[("_retry_errors", &errors)], span);
        Some(vec![tried, self.assigned(place, "errors", errors)])
    }

    /// Makes the step of the corrector's node, without its edges.
    fn correction(&mut self, correct: Option<&'n Entry>, place: &SourcePosition) -> Option<Step> {
        let correct = correct?;
        let name = self.text(correct, HINT)?;
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
            self.error("corrector-cycle", span, message, hint);
            return None;
        }
        self.corrector_copies += 1;
        if self.corrector_copies > MAX_COPIES {
            let message = format!("retry.loop: more than {MAX_COPIES} copies of correctors");
            let hint =
                "each loop has its corrector inside of it: correctors of correctors multiply";
            self.error("too-large", span, message, hint);
            return None;
        }
        self.correctors.insert(name);
        self.correcting.push(name);
        let inner = SourcePosition {
            in_body: false,
            ..self.place(name, &place.name, span, false)
        };
        let step = self.node(node, &inner);
        self.correcting.pop();
        Some(step)
    }

    /// Makes the first steps of an iteration: the corrector, the wait, and the count.
    /// The first iteration has only the count. If the corrector fails, the loop ends (TEA-YAML-005, AC 14).
    fn correct_again(
        &mut self,
        corrector: Step,
        delay: Option<Template>,
        place: &SourcePosition,
    ) -> Option<Step> {
        let span = place.span;
        let name = corrector.title.as_ref().unwrap_or(&corrector.name).clone();
        let result = format!(
            "{{'valid': false, 'errors': state._retry_errors, 'correction_error': {FAULT_TEXT}}}"
        );
        let errors = format!(
            "state._retry_errors + [{{'message': \"Correction node '\" ~ result ~ \"' failed: \" \
             ~ {FAULT_TEXT}, 'type': 'correction_error'}}]"
        );
        let errors = with_result(&text(&name), expression(self, &errors));
        let failed = vec![
            set("_retry_result", expression(self, &result), span),
            set("_retry_errors", errors, span),
            forget_fault(span),
        ];
        let handler = vec![self.assigned(place, "correction_failed", failed)];
        let tried = Step {
            break_when: Some(condition(self, CORRECTION_FAILED)?),
            ..self.catch_step(place, "correction", corrector, handler)
        };
        let mut steps = vec![tried];
        let none = Value::Int(0);
        if let Some(delay) = delay.filter(|delay| delay.as_constant() != Some(&none)) {
            let wait = StepKind::Wait(Wait::For(delay));
            steps.push(anonymous_step(self.part(place, "delay"), "wait", wait));
        }
        let again = builder::when(condition(self, "loop.index > 0")?, Block::Sequence(steps));
        let again = anonymous_step(self.part(place, "again"), "if", again);
        let count = set_all(self, &[("_retry_count", "loop.index")], span);
        let count = self.assigned(place, "count", count);
        let both = self.part(place, "begin");
        Some(anonymous_step(
            both,
            "block",
            super::builder::block(vec![again, count]),
        ))
    }

    /// Makes the steps that store the result of a node whose parts change the state itself. If the target merges the
    /// result, these changes stay. For any other target, the state is restored, and then only the keys of the target
    /// change.
    pub(super) fn result_steps(
        &mut self,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> ResultSteps {
        let result = self.part(place, "result");
        if matches!(target, ResultTarget::Merge) {
            return ResultSteps {
                before: None,
                result,
                whole: None,
                after: None,
            };
        }
        let before = self.part(place, "before");
        let mut back = vec![replace(output_of(&before.name), place.span)];
        back.extend(self.store_result(target, &output_of(&result.name), place));
        ResultSteps {
            before: Some(anonymous_step(
                before,
                "compose",
                StepKind::Compose(state()),
            )),
            result,
            whole: Some(state()),
            after: Some(self.assigned(place, "output", back)),
        }
    }
}

/// The maximum number of iterations of a loop, and the steps that compute this number.
struct Retries {
    count: Template,
    before: Vec<Step>,
}

/// See [`Tea::result_steps`].
pub(super) struct ResultSteps {
    /// Saves the state, if it must be restored.
    pub before: Option<Step>,
    /// The position of the step that makes the result from the state.
    pub result: SourcePosition,
    /// The output of that step.
    pub whole: Option<Template>,
    /// Restores the saved state and adds the result to it.
    pub after: Option<Step>,
}
