//! `reflection.correct` outside of a loop (TEA-AGENT-001.2, AC8). It corrects data with another action, code or a
//! prompt. It never fails: its result reports an error.

use super::action::canonical;
use super::builder::{
    FAULT_TEXT, anonymous_step, expressions, forget_fault, output_of, replace, set, state,
};
use super::node::{LoweredNode, ResultTarget};
use super::worker::Worker;
use super::{SourcePosition, Tea, builder};
use crate::builder::{expression, object};
use windlass_expression::{Template, Value};
use windlass_model::hir::StepKind;
use windlass_source::source::Entry;

/// The variable with the result, until the state is restored.
const RESULT: &str = "_windlass_result";
const HINT: &str = "for example with: { data: \"{{ state.draft }}\", prompt: \"…\" }";

impl<'n> Tea<'_, 'n> {
    pub(super) fn reflection_correct(
        &mut self,
        named: &'n Entry,
        with: Option<&'n Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let with = self.arguments(with)?;
        let find = |key: &str| with.iter().copied().find(|entry| entry.key == key);
        let or_else = |tea: &mut Self, key: &str, absent: &str| match find(key) {
            Some(entry) => tea.template(&entry.value),
            None => expression(tea, absent),
        };
        let data = or_else(
            self,
            "data",
            "state.get('reflection_output', state.get('output'))",
        );
        let errors = or_else(self, "errors", "state.get('reflection_errors', [])");
        let worker = self.the_corrector(named, &with, place)?;

        let span = place.span;
        let before = self.part(place, "before");
        let saved = output_of(&before.name);
        let seen = vec![
            set("reflection_output", data, span),
            set("reflection_errors", errors, span),
        ];
        let value = worker.value.clone();
        let good = object([
            ("corrected_output", value.clone()),
            ("success", Template::constant(Value::Bool(true))),
        ]);
        let then = vec![set(RESULT, good, span)];
        let correct = worker.step(self.part(place, "corrector"), &value, then);
        let bad = expressions(
            self,
            &[
                ("corrected_output", "state.reflection_output"),
                ("success", "false"),
                ("error", FAULT_TEXT),
            ],
        );
        let failed = vec![set(RESULT, bad, span), forget_fault(span)];
        let handler = vec![self.assigned(place, "corrector_failed", failed)];
        let result = self.part(place, "result");
        let value = output_of(&result.name);
        let of_state = expression(self, &format!("state.{RESULT}"));
        let mut back = vec![replace(saved, span)];
        back.extend(self.store_result(target, &value, place));
        let steps = vec![
            anonymous_step(before, "compose", StepKind::Compose(state())),
            self.assigned(place, "begin", seen),
            self.catch_step(place, "correction", correct, handler),
            anonymous_step(result, "compose", StepKind::Compose(of_state)),
            self.assigned(place, "output", back),
        ];
        Some(LoweredNode {
            output: Some(value),
            ..LoweredNode::new("reflection.correct", builder::block(steps))
        })
    }

    fn the_corrector(
        &mut self,
        named: &'n Entry,
        with: &[&'n Entry],
        place: &SourcePosition,
    ) -> Option<Worker> {
        const OWN: [&str; 5] = ["data", "errors", "corrector_action", "run", "language"];
        let find = |key: &str| with.iter().copied().find(|entry| entry.key == key);
        let arguments: Vec<&'n Entry> = with
            .iter()
            .copied()
            .filter(|entry| !OWN.contains(&&*entry.key))
            .collect();
        let action = find("corrector_action");
        if let Some(run) = find("run").filter(|_| action.is_none()) {
            let language = self.language(find("language"))?;
            return self.code_worker(language, run);
        }
        let (name, entry) = match (action, find("prompt")) {
            (Some(action), _) => {
                let name = canonical(self.text(action, "an action's name")?);
                (name, action)
            }
            (None, Some(prompt)) => (String::from("llm.call"), prompt),
            (None, None) => {
                let message = "reflection.correct needs `corrector_action`, `run` or `prompt`";
                self.error("missing-key", named.value.span, message, HINT);
                return None;
            }
        };
        let what = "reflection.correct: Unknown corrector";
        let worker = self.action_worker(what, name, entry, &arguments, place)?;
        Some(Worker {
            then: Vec::new(),
            ..worker
        })
    }
}
