//! The code of a node, `run`: the inputs for each language, and what happens with the result.

use super::builder::{executor_result, jinja, merge, object, replace, script_state};
use super::fan_out::PARALLEL_RESULTS;
use super::node::{LoweredNode, ResultTarget};
use super::{SourcePosition, Tea, builder};
use crate::checks;
use crate::fields::Fields;
use crate::reader::keep;
use windlass_expression::{Binding, Template};
use windlass_model::hir::Assignment;
use windlass_model::model::Name;
use windlass_source::source::{Entry, Kind, Node};

const LANGUAGES: [(&str, Language); 3] = [
    ("python", Language::Python),
    ("lua", Language::Lua),
    ("prolog", Language::Prolog),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Lua,
    Prolog,
}

impl Language {
    pub fn executor(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Lua => "lua",
            Self::Prolog => "prolog",
        }
    }
}

impl<'n> Tea<'_, 'n> {
    pub(super) fn run(
        &mut self,
        entry: &'n Entry,
        fields: &mut Fields<'n>,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let outer_language = fields.non_null(self, "language");
        let timeout = fields.non_null(self, "timeout");
        fields.allow(&["with"]);
        for key in ["output", "output_key"] {
            if let Some(entry) = fields.get(key) {
                self.ignored(
                    entry,
                    "the output of code is merged into the state, as in TEA",
                );
            }
        }
        let (language, code) = match &entry.value.kind {
            Kind::String(_) => (outer_language, &entry.value),
            Kind::Object(_) => {
                let hint = "for example run: { type: lua, code: \"return {n = 1}\" }";
                let mut inner = self.fields(&entry.value, "`run`", hint)?;
                let kind = inner.non_null(self, "type");
                if kind.and_then(|kind| kind.value.as_str()) == Some("expression") {
                    return self.expression(&mut inner, place);
                }
                let code = inner.required(self, "code", entry.key_span, hint);
                let own = inner.non_null(self, "timeout");
                inner.finish(self);
                let timeout = own.or(timeout);
                let (language, code) = (self.language(kind.or(outer_language))?, &code?.value);
                return self.script(language, code, timeout, &ResultTarget::Merge, place);
            }
            _ => {
                let hint = "code as text, or { type: lua, code: … }";
                self.wrong_type(&entry.value, "`run`", "code", hint);
                return None;
            }
        };
        let language = self.language(language)?;
        self.script(language, code, timeout, &ResultTarget::Merge, place)
    }

    /// Reads the language of the code. The default is Python.
    pub(super) fn language(&mut self, entry: Option<&Entry>) -> Option<Language> {
        let Some(entry) = entry else {
            return Some(Language::Python);
        };
        self.choice_as("unknown-language", entry, &LANGUAGES, |text| {
            format!("`{text}` is not a valid language of scripts")
        })
    }

    fn script(
        &mut self,
        language: Language,
        code: &Node,
        timeout: Option<&Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let inputs = self.code(language, code, vec![("state", script_state())])?;
        let timeout = timeout.and_then(|entry| self.seconds(entry));
        let value = value_of_script();
        let span = place.span;
        let mut then: Vec<Assignment> = Vec::new();
        if language == Language::Python {
            let live = executor_result().part("state");
            then.push(replace(live, span));
        }
        match target {
            ResultTarget::Merge => {
                then.push(merge(jinja(self, merged(language, place.in_body)), span));
            }
            ResultTarget::Key(_) | ResultTarget::Map(_) => {
                then.extend(self.store_result(target, &value, place))
            }
        }
        Some(LoweredNode {
            output: Some(value),
            ..LoweredNode::new(
                "run",
                builder::call(language.executor(), inputs, timeout, then),
            )
        })
    }

    /// Makes the inputs of a script's executor.
    /// As in TEA, code in Python is a template. Code in the other languages is not.
    pub(super) fn code(
        &mut self,
        language: Language,
        code: &Node,
        globals: Vec<(&str, Template)>,
    ) -> Option<Template> {
        let Some(text) = code.as_str() else {
            let hint = "code as text, in a block after `|`";
            self.wrong_type(code, "the code", "text", hint);
            return None;
        };
        self.remember(language, code, text);
        let template = match language {
            Language::Python => {
                self.comments(code, text);
                self.template(code)
            }
            Language::Lua | Language::Prolog => builder::text(text),
        };
        let is_template = language == Language::Python;
        let executor = language.executor();
        checks::data_in_code(self, executor, "state", code, is_template);
        let mut globals = globals;
        let variables = Template::binding(Binding::Root(Name::from("variables")));
        globals.push(("variables", variables));
        if let Some(branches) = &self.current_join {
            globals.push((PARALLEL_RESULTS, builder::output_of(branches)));
        }
        let mut members = vec![("code", template), ("globals", object(globals))];
        if language == Language::Python {
            members.push(("live", builder::text("state")));
        }
        Some(object(members))
    }

    /// Records code that is not a template, so that its syntax can be checked before a run.
    fn remember(&mut self, language: Language, code: &Node, text: &str) {
        let is_template = ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark));
        if language == Language::Python && is_template {
            return;
        }
        let script = self.reader.script(language.executor(), code, text);
        // A corrector is read once for each loop that uses it, but its code is recorded only once.
        keep(&mut self.scripts, script);
    }

    /// Warns of a comment of Jinja in code, because Jinja removes it even if it was meant as code.
    fn comments(&mut self, code: &Node, text: &str) {
        let Some(start) = text.find("{#").filter(|_| !text.contains("{% raw")) else {
            return;
        };
        let length = text.get(start..).and_then(|rest| rest.find("#}"));
        // A comment without an end was already reported as an error.
        if let Some(length) = length {
            let span = self.reader.place(code, start, length + 2);
            let what = "`{# … #}` is a comment of Jinja: it is left out of this code";
            let hint = "for a comment of Python write `# …`; for the letters, {{ '{#' }}";
            self.warning("jinja-comment", span, what, hint);
        }
    }

    /// Reads `run: {type: expression, value}`.
    /// It is a template, or an expression of Python whose value is stored as `result`.
    fn expression(
        &mut self,
        inner: &mut Fields<'n>,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let hint = "for example run: { type: expression, value: \"{{ state.n + 1 }}\" }";
        let value = inner.required(self, "value", place.span, hint)?;
        let own = self.result_target(inner);
        let template = self.template(&value.value);
        let is_value = !value.value.as_str().is_some_and(is_expression);
        if !is_value {
            let mut code = value.value.clone();
            if let Kind::String(text) = &mut code.kind {
                text.text = format!("return ({})", text.text.trim());
            }
            let target = match own {
                ResultTarget::Merge => ResultTarget::Key(Name::from("result")),
                own => own,
            };
            return self.script(Language::Python, &code, None, &target, place);
        }
        let value = template;
        let kind = builder::assign(self.store_result(&own, &value, place), Some(value));
        Some(LoweredNode::new("expression", kind))
    }
}

/// Returns true if a text is an expression of Python. This is any text that is not a single template.
fn is_expression(text: &str) -> bool {
    let text = text.trim();
    let is_one = text.starts_with("{{") && text.ends_with("}}") && text.matches("{{").count() == 1;
    !is_one && !text.contains("{%")
}

pub(super) fn value_of_script() -> Template {
    executor_result().part("result")
}

/// Returns the template of the value that is merged into the state if the node has no `output`. For Python, this is the
/// returned value (which may be None), or the new local variables of code without `return`. For Lua and Prolog, it is
/// the result, unless it is nil.
fn merged(language: Language, in_body: bool) -> &'static str {
    match (language, in_body) {
        (Language::Python, true) => "{{ result.result if result.returned else result.locals }}",
        (Language::Python, false) => {
            "{{ result.locals if not result.returned else \
             (result.result if result.result is mapping else {'result': result.result}) }}"
        }
        (Language::Lua | Language::Prolog, true) => "{{ result.result }}",
        (Language::Lua | Language::Prolog, false) => {
            "{{ result.result if (result.result is mapping or result.result is none) \
             else {'result': result.result} }}"
        }
    }
}
