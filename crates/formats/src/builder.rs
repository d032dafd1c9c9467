//! Functions that make parts of `hir` and templates, for the readers of all formats. Nothing here
//! reads a file.

use super::reader::Reader;
use std::sync::Arc;
use windlass_expression::{Binding, Condition, Syntax, Template, Value};
use windlass_model::hir::{Block, Call, Loop, Outputs, Step, StepKind, Workflow};
use windlass_model::model::{Dialect, EventTriggers, Name, NamedSpans, OnLimit, OnMissing, Test};
use windlass_source::source::Span;

/// Makes a workflow that does nothing.
pub fn workflow(name: &str, dialect: Dialect, span: Span) -> Workflow {
    Workflow {
        name: Name::from(name),
        dialect,
        rules: super::rules(dialect),
        inputs: Vec::new(),
        variables: Vec::new(),
        state: Vec::new(),
        last_run: false,
        places: NamedSpans::default(),
        types: Vec::new(),
        parameters: Vec::new(),
        trigger: None,
        schedule: None,
        event_triggers: EventTriggers::default(),
        concurrency: None,
        rates: Vec::new(),
        body: nothing(),
        on_failure: nothing(),
        on_finish: nothing(),
        cleanup: nothing(),
        at_success: None,
        secure: Vec::new(),
        outputs: Outputs::Actions,
        handlers: Vec::new(),
        links: Vec::new(),
        environment: Vec::new(),
        scripts: Vec::new(),
        span,
    }
}

pub fn step(name: Name, label: &str, kind: StepKind, span: Span) -> Step {
    Step {
        name,
        label: Name::from(label),
        title: None,
        anonymous: false,
        kind,
        output: None,
        expect: None,
        retry: None,
        timeout: None,
        follow_up: None,
        is_repeat: false,
        catch: None,
        break_when: None,
        continue_when: None,
        span,
    }
}

/// Makes a loop that checks its condition after each iteration. If the loop reaches a limit, the run continues.
pub fn looped(stop_when: Condition, count: Template, body: Block) -> Loop {
    Loop {
        name: None,
        test: Test::After,
        stop_when,
        condition_text: String::new(),
        negated: false,
        count,
        timeout: None,
        tokens: None,
        cost: None,
        delay: None,
        on_missing: OnMissing::Fail,
        on_limit: OnLimit::Continue,
        on_timeout: OnLimit::Continue,
        test_when_spent: true,
        survives_failure: false,
        keep: Vec::new(),
        pages: None,
        unchanged: None,
        feedback: false,
        body,
    }
}

/// Makes an input of an `http` action with a `page`: the URL of the action's last output. A relative address of a
/// next page is resolved against this URL (RFC 3986, 5.1.3).
pub(super) fn page_base(action: Name) -> (Template, Template) {
    let last = Template::binding(Binding::Previous(action, None));
    (text("page_base"), last.part("url"))
}

pub fn call(executor: &str, inputs: Template) -> Call {
    Call {
        executor: Name::from(executor),
        inputs,
        attempt_timeout: None,
        then: Vec::new(),
    }
}

/// Makes a step that executes `then` if a condition holds, else nothing.
pub(super) fn when(condition: Condition, then: Block) -> StepKind {
    StepKind::If {
        arms: vec![(condition, then)],
        otherwise: nothing(),
    }
}

pub(super) fn nothing() -> Block {
    Block::Sequence(Vec::new())
}

pub(super) fn only(step: Step) -> Block {
    Block::Sequence(vec![step])
}

pub fn text(text: &str) -> Template {
    Template::constant(Value::text(text))
}

/// Makes a map with fixed keys.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Template)>) -> Template {
    let members = members.into_iter().map(|(name, value)| (text(name), value));
    Template::object(members.collect())
}

/// Parses a template that is written in the code of a format, not by an author.
pub(super) fn jinja(reader: &Reader<'_>, text: &str) -> Template {
    let template = Template::parse_cached(text, Syntax::Jinja, &reader.templates);
    debug_assert!(template.is_ok(), "{text}: {template:?}");
    template.unwrap_or_else(|_| Template::constant(Value::Null))
}

/// Makes the template of an expression that is written in the code of a format.
pub(super) fn expression(reader: &Reader<'_>, text: &str) -> Template {
    jinja(reader, &format!("{{{{ {text} }}}}"))
}

/// Makes the template of an expression that can read the given names.
pub(super) fn scoped<const N: usize>(
    reader: &Reader<'_>,
    names: [(&str, Template); N],
    text: &str,
) -> Template {
    let names = names.map(|(name, value)| (Name::from(name), value));
    Template::binding(Binding::Scoped(Arc::from(names), expression(reader, text)))
}

/// Makes the condition of a template that is written in the code of a format.
pub(super) fn condition_of(template: Template) -> Condition {
    Condition::from_template(template).unwrap_or_else(|_| Condition::never())
}
