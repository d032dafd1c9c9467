//! Generators and correctors of `reflection.loop`: an action with its arguments, or code. Code may
//! return its value or set `result` (spec: tea.md, "reflection.loop").

use super::action::{action_names, canonical};
use super::make::{given, jinja, replace, script_state};
use super::script::Language;
use super::{Place, Tea};
use crate::expression::Template;
use crate::hir::Assignment;
use crate::model::Name;
use crate::source::Entry;

/// Which part of a loop a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Generator,
    Corrector,
}

impl Role {
    pub fn word(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Corrector => "corrector",
        }
    }
}

/// One call that gives a value.
pub(super) struct Worker {
    pub executor: Name,
    pub label: Name,
    pub inputs: Template,
    pub timeout: Option<Template>,
    /// The value, of what the executor gave.
    pub value: Template,
    /// What the call does to the state besides.
    pub then: Vec<Assignment>,
    /// It is a model's answer.
    pub is_llm: bool,
}

impl<'n> Tea<'_, 'n> {
    /// Reads a generator or corrector.
    pub(super) fn worker(&mut self, role: Role, entry: &'n Entry, place: &Place) -> Option<Worker> {
        let what = format!("`{}`", entry.key);
        let hint =
            "for example { action: llm.call, prompt: \"…\" } or { run: \"return {'n': 1}\" }";
        let mut fields = self.reader.fields(&entry.value, &what, hint)?;
        let action = fields.some(&mut self.reader, "action");
        let uses = fields.some(&mut self.reader, "uses");
        if let Some(action) = action.or(uses) {
            // What stands beside the action are its arguments.
            let with: Vec<&'n Entry> = fields.rest().collect();
            return self.action_worker(role, action, &with, hint, place);
        }
        let run = fields.some(&mut self.reader, "run");
        let language = fields.some(&mut self.reader, "language");
        let Some(run) = run else {
            let role = role.word();
            let message = format!("reflection.loop: the {role} needs either `action` or `run`");
            self.reader
                .error("missing-key", entry.key_span, message, hint);
            return None;
        };
        let timeout = fields.some(&mut self.reader, "timeout");
        let timeout = timeout.and_then(|timeout| self.seconds(timeout));
        fields.finish(&mut self.reader);
        let language = self.language(language)?;
        let inputs = self.code(language, &run.value, reflected(script_state()))?;
        Some(Worker {
            executor: Name::from(language.executor()),
            label: Name::from("run"),
            inputs,
            timeout,
            value: value_of(language),
            then: live(language, place),
            is_llm: false,
        })
    }

    fn action_worker(
        &mut self,
        role: Role,
        action: &'n Entry,
        with: &[&'n Entry],
        hint: &str,
        place: &Place,
    ) -> Option<Worker> {
        let name = canonical(self.reader.text(action, hint)?);
        if !action_names().any(|known| known == name) {
            let role = role.word();
            let message = format!("reflection.loop: Unknown {role} action: {name}");
            let span = action.value.span;
            self.unknown("unknown-action", message, span, &name, action_names());
            return None;
        }
        let invocation = self.invocation(&name, action, with, place)?;
        Some(Worker {
            executor: invocation.executor,
            is_llm: name == "llm.call",
            label: Name::from(name),
            inputs: invocation.inputs,
            timeout: None,
            value: invocation.value,
            then: invocation.then,
        })
    }
}

/// What inline code sees.
pub(super) fn reflected(state: Template) -> Vec<(&'static str, Template)> {
    vec![
        ("state", state),
        ("output", jinja("{{ state.get('output') }}")),
        (
            "reflection_output",
            jinja("{{ state.get('reflection_output') }}"),
        ),
        (
            "reflection_errors",
            jinja("{{ state.get('reflection_errors', []) }}"),
        ),
        (
            "reflection_iteration",
            jinja("{{ state.get('reflection_iteration', 0) }}"),
        ),
    ]
}

/// The value of inline code: what it returned, else its `result`, else a changed `output`.
pub(super) fn value_of(language: Language) -> Template {
    match language {
        Language::Python => jinja(
            "{{ result.result if (result.returned or 'result' in result.locals) \
             else result.locals.get('output') }}",
        ),
        Language::Lua | Language::Prolog => given().part("result"),
    }
}

/// Python works on the live state.
pub(super) fn live(language: Language, place: &Place) -> Vec<Assignment> {
    match language {
        Language::Python => {
            let state = given().part("state");
            vec![replace(state, place.span)]
        }
        Language::Lua | Language::Prolog => Vec::new(),
    }
}
