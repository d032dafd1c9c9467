//! The generators and correctors of `reflection.loop`.
//! Each is an action with its arguments, or code. Code may return its value or set `result` (docs/reference/tea.md).

use super::action::{action_names, canonical};
use super::builder::{anonymous_step, call, executor_result, recording, replace, script_state};
use super::script::Language;
use super::{SourcePosition, Tea};
use crate::builder::expression;
use crate::reader::Reader;
use windlass_expression::Template;
use windlass_model::hir::{Assignment, Step};
use windlass_model::model::Name;
use windlass_source::source::Entry;

/// One call that returns a value to the reflection loop.
pub(super) struct Worker {
    pub executor: Name,
    pub label: Name,
    pub inputs: Template,
    pub timeout: Option<Template>,
    /// The template of the value, which reads the executor's result.
    pub value: Template,
    /// Further assignments to the state.
    pub then: Vec<Assignment>,
    pub is_llm: bool,
}

impl<'n> Tea<'_, 'n> {
    /// Reads the generator or the corrector of a `reflection.loop`.
    pub(super) fn worker(&mut self, entry: &'n Entry, place: &SourcePosition) -> Option<Worker> {
        let role = &entry.key;
        let what = format!("`{role}`");
        let hint =
            "for example { action: llm.call, prompt: \"…\" } or { run: \"return {'n': 1}\" }";
        let mut fields = self.fields(&entry.value, &what, hint)?;
        let action = fields.non_null(self, "action");
        let uses = fields.non_null(self, "uses");
        if let Some(action) = action.or(uses) {
            // All other keys next to the action are its arguments.
            let with: Vec<&'n Entry> = fields.rest().collect();
            let name = canonical(self.text(action, hint)?);
            let what = format!("reflection.loop: Unknown {role}");
            return self.action_worker(&what, name, action, &with, place);
        }
        let run = fields.non_null(self, "run");
        let language = fields.non_null(self, "language");
        let Some(run) = run else {
            let message = format!("reflection.loop: the {role} needs either `action` or `run`");
            self.error("missing-key", entry.key_span, message, hint);
            return None;
        };
        let timeout = fields.non_null(self, "timeout");
        let timeout = timeout.and_then(|timeout| self.seconds(timeout));
        fields.finish(self);
        let language = self.language(language)?;
        Some(Worker {
            timeout,
            then: live(language, place),
            ..self.code_worker(language, run)?
        })
    }

    /// Makes a worker of code that can read the variables of the reflection.
    pub(super) fn code_worker(&mut self, language: Language, run: &'n Entry) -> Option<Worker> {
        Some(Worker {
            executor: Name::from(language.executor()),
            label: Name::from("run"),
            inputs: self.code(language, &run.value, reflected(self, script_state()))?,
            timeout: None,
            value: value_of(self, language),
            then: Vec::new(),
            is_llm: false,
        })
    }

    /// Makes a worker that calls an action. `what` begins the error message about an unknown action.
    pub(super) fn action_worker(
        &mut self,
        what: &str,
        name: String,
        entry: &'n Entry,
        with: &[&'n Entry],
        place: &SourcePosition,
    ) -> Option<Worker> {
        if !action_names().any(|known| known == name) {
            let message = format!("{what} action: {name}");
            let span = entry.value.span;
            self.unknown("unknown-action", message, span, &name, action_names());
            return None;
        }
        // In an action that asks a model, `timeout` is an argument and not the timeout of the call.
        let is_timeout = |entry: &&'n Entry| entry.key == "timeout" && !asks_model(&name);
        let timeout = with.iter().copied().find(is_timeout);
        let with: Vec<&'n Entry> = with
            .iter()
            .copied()
            .filter(|entry| !is_timeout(entry))
            .collect();
        let timeout = timeout.and_then(|entry| self.seconds(entry));
        let invocation = self.invocation(&name, entry, &with, place)?;
        Some(Worker {
            executor: invocation.executor,
            is_llm: name == "llm.call",
            label: Name::from(name),
            inputs: invocation.inputs,
            timeout,
            value: invocation.value,
            then: invocation.then,
        })
    }
}

fn asks_model(action: &str) -> bool {
    matches!(
        action,
        "llm.call" | "ai" | "reflection.evaluate" | "validate.extraction"
    )
}

impl Worker {
    /// Makes the step of the call. `then` are the assignments that store the value.
    pub(super) fn step(
        self,
        place: SourcePosition,
        value: &Template,
        then: Vec<Assignment>,
    ) -> Step {
        let then = self.then.into_iter().chain(then).collect();
        let call = call(&self.executor, self.inputs, self.timeout, then);
        recording(anonymous_step(place, &self.label, call), value)
    }
}

pub(super) fn reflected(reader: &Reader<'_>, state: Template) -> Vec<(&'static str, Template)> {
    vec![
        ("state", state),
        ("output", expression(reader, "state.get('output')")),
        (
            "reflection_output",
            expression(reader, "state.get('reflection_output')"),
        ),
        (
            "reflection_errors",
            expression(reader, "state.get('reflection_errors', [])"),
        ),
        (
            "reflection_iteration",
            expression(reader, "state.get('reflection_iteration', 0)"),
        ),
    ]
}

/// Makes the template of the value of inline code.
/// In Python, it is the returned value. Without `return`, it is the code's `result`, or else its `output` if the code
/// changed it. In Lua and Prolog, it is the result of the script.
pub(super) fn value_of(reader: &Reader<'_>, language: Language) -> Template {
    match language {
        Language::Python => expression(
            reader,
            "result.result if (result.returned or 'result' in result.locals) \
             else result.locals.get('output')",
        ),
        Language::Lua | Language::Prolog => executor_result().part("result"),
    }
}

/// Makes the assignments that store the state after code has changed it. Only Python code changes the state; other code
/// has a copy.
fn live(language: Language, place: &SourcePosition) -> Vec<Assignment> {
    match language {
        Language::Python => {
            let state = executor_result().part("state");
            vec![replace(state, place.span)]
        }
        Language::Lua | Language::Prolog => Vec::new(),
    }
}
