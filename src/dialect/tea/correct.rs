//! `reflection.correct` by itself (AC8): an action, code or a prompt that corrects data. It never
//! fails: what went wrong is in its result.

use super::action::{action_names, canonical};
use super::make::{
    FAULT, assign, forget_fault, helper, jinja, object, output_of, replace, script_state, set,
    state,
};
use super::node::{Made, Sink};
use super::retry_loop::sequence;
use super::worker::{Role, Worker, reflected, value_of};
use super::{Place, Tea, make};
use crate::expression::{Template, Value};
use crate::hir::StepKind;
use crate::model::Name;
use crate::source::Entry;

/// The result, until the state is what it was before.
const RESULT: &str = "_windlass_result";
const HINT: &str = "for example with: { data: \"{{ state.draft }}\", prompt: \"…\" }";

impl<'n> Tea<'_, 'n> {
    pub(super) fn reflection_correct(
        &mut self,
        named: &'n Entry,
        with: Option<&'n Entry>,
        sink: &Sink,
        place: &Place,
    ) -> Option<Made> {
        let with = self.arguments(with)?;
        let find = |key: &str| with.iter().copied().find(|entry| entry.key == key);
        let or_else = |tea: &mut Self, key: &str, absent: &str| match find(key) {
            Some(entry) => tea.reader.template(&entry.value),
            None => jinja(absent),
        };
        let data = or_else(
            self,
            "data",
            "{{ state.get('reflection_output', state.get('output')) }}",
        );
        let errors = or_else(self, "errors", "{{ state.get('reflection_errors', []) }}");
        let worker = self.the_corrector(named, &with, place)?;

        let span = place.span;
        let before = self.part(place, "before");
        let saved = output_of(&before.name);
        let seen = vec![
            set("reflection_output", data, span),
            set("reflection_errors", errors, span),
        ];
        let good = object(vec![
            ("corrected_output", worker.value.clone()),
            ("success", Template::constant(Value::Bool(true))),
        ]);
        let then = vec![set(RESULT, good, span)];
        let call = make::call(&worker.executor, worker.inputs, worker.timeout, then);
        let correct = helper(self.part(place, "corrector"), &worker.label, call);
        let correct = make::recording(correct, &worker.value);
        let bad = object(vec![
            ("corrected_output", jinja("{{ state.reflection_output }}")),
            ("success", Template::constant(Value::Bool(false))),
            ("error", jinja("{{ state._windlass_fault.message }}")),
        ]);
        let failed = vec![set(RESULT, bad, span), forget_fault(span)];
        let handled = self.part(place, "corrector_failed");
        let tried = StepKind::Catch {
            body: sequence(correct),
            error: Name::from(FAULT),
            handler: sequence(helper(handled, "assign", assign(failed, None))),
        };
        let result = self.part(place, "result");
        let value = output_of(&result.name);
        let of_state = jinja(&format!("{{{{ state.{RESULT} }}}}"));
        let mut back = vec![replace(saved, span)];
        back.extend(self.keep(sink, &value, place));
        let steps = vec![
            helper(before, "compose", StepKind::Compose(state())),
            helper(self.part(place, "begin"), "assign", assign(seen, None)),
            helper(self.part(place, "correction"), "catch", tried),
            helper(result, "compose", StepKind::Compose(of_state)),
            helper(self.part(place, "output"), "assign", assign(back, None)),
        ];
        Some(Made {
            output: Some(value),
            ..Made::new("reflection.correct", make::block(steps))
        })
    }

    fn the_corrector(
        &mut self,
        named: &'n Entry,
        with: &[&'n Entry],
        place: &Place,
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
            return Some(Worker {
                executor: Name::from(language.executor()),
                label: Name::from("run"),
                inputs: self.code(language, &run.value, reflected(script_state()))?,
                timeout: None,
                value: value_of(language),
                then: Vec::new(),
                is_llm: false,
            });
        }
        let (name, entry) = match (action, find("prompt")) {
            (Some(action), _) => {
                let name = canonical(self.reader.text(action, "an action's name")?);
                (name, action)
            }
            (None, Some(prompt)) => (String::from("llm.call"), prompt),
            (None, None) => {
                let message = "reflection.correct needs `corrector_action`, `run` or `prompt`";
                self.reader
                    .error("missing-key", named.value.span, message, HINT);
                return None;
            }
        };
        if !action_names().any(|known| known == name) {
            let role = Role::Corrector.word();
            let message = format!("reflection.correct: Unknown {role} action: {name}");
            self.unknown(
                "unknown-action",
                message,
                entry.value.span,
                &name,
                action_names(),
            );
            return None;
        }
        let invocation = self.invocation(&name, entry, &arguments, place)?;
        Some(Worker {
            executor: invocation.executor,
            label: Name::from(name),
            inputs: invocation.inputs,
            timeout: None,
            value: invocation.value,
            then: Vec::new(),
            is_llm: false,
        })
    }
}
