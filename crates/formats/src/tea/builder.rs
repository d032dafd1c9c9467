//! Pieces of `hir` that the readers of this format put together. Nothing here reads a file.

use super::{SourcePosition, Tea};
use crate::builder;
pub(super) use crate::builder::{expression, jinja, object, only, text, when};
use crate::reader::Reader;
use windlass_expression::{Binding, Condition, Syntax, Template, Value};
use windlass_model::hir::{Assign, Assignment, Block, Call, Step, StepKind};
use windlass_model::model::{AssignOp, Name, WHOLE_STATE};
use windlass_source::source::Span;

/// The variable of a fault while it is handled; gone when the state is seen again.
pub(super) const FAULT: &str = "_windlass_fault";

/// What that fault says, without the class and the line that the message of a script has.
pub(super) const FAULT_TEXT: &str = "(state._windlass_fault.message \
     if state._windlass_fault.kind != 'script' else state._windlass_fault.message\
     .removeprefix((state._windlass_fault.code or '') ~ ': ').rsplit(' (line ', 1)[0])";

pub(super) fn condition(reader: &Reader<'_>, text: &str) -> Option<Condition> {
    let condition = Condition::parse_cached(text, Syntax::Jinja, &reader.templates);
    debug_assert!(condition.is_ok(), "{text}: {condition:?}");
    condition.ok()
}

pub(super) fn state() -> Template {
    Template::binding(Binding::Root(Name::from("state")))
}

/// The whole state, as a script gets it: it is stored once.
pub(super) fn script_state() -> Template {
    text(WHOLE_STATE)
}

/// What an executor gave, in the assignments of its call.
pub(super) fn executor_result() -> Template {
    Template::binding(Binding::Root(Name::from("result")))
}

/// What a step left as its output; null when it did not run.
pub(super) fn output_of(step: &Name) -> Template {
    Template::binding(Binding::Outputs(step.clone()))
}

/// A template that sees this value as `result`.
pub(super) fn with_result(value: &Template, body: Template) -> Template {
    if *value == executor_result() {
        return body;
    }
    // A name sees itself, so the value is bound in two steps.
    let outer: [(Name, Template); 1] = [(Name::from("_given"), value.clone())];
    let inner = [(
        Name::from("result"),
        Template::binding(Binding::Root(Name::from("_given"))),
    )];
    let body = Template::binding(Binding::Scoped(inner.into(), body));
    Template::binding(Binding::Scoped(outer.into(), body))
}

pub(super) fn assignment(variable: &str, op: AssignOp, value: Template, span: Span) -> Assignment {
    Assignment {
        variable: Name::from(variable),
        op,
        value,
        span,
    }
}

pub(super) fn set(variable: &str, value: Template, span: Span) -> Assignment {
    assignment(variable, AssignOp::Set, value, span)
}

pub(super) fn merge(value: Template, span: Span) -> Assignment {
    assignment("", AssignOp::MergeAll, value, span)
}

pub(super) fn replace(value: Template, span: Span) -> Assignment {
    assignment("", AssignOp::ReplaceAll, value, span)
}

/// A variable is none any more.
pub(super) fn remove(variable: &str, span: Span) -> Assignment {
    let names = Template::constant(Value::array(vec![Value::text(variable)]));
    assignment("", AssignOp::RemoveAll, names, span)
}

pub(super) fn forget_fault(span: Span) -> Assignment {
    remove(FAULT, span)
}

/// Variables, each with the value of an expression.
pub(super) fn set_all(
    reader: &Reader<'_>,
    variables: &[(&str, &str)],
    span: Span,
) -> Vec<Assignment> {
    let all = variables.iter();
    all.map(|(name, text)| set(name, expression(reader, text), span))
        .collect()
}

/// A map, each member with the value of an expression.
pub(super) fn expressions(reader: &Reader<'_>, members: &[(&str, &str)]) -> Template {
    let members = members.iter();
    object(members.map(|(name, text)| (*name, expression(reader, text))))
}

pub(super) fn assign(assignments: Vec<Assignment>, output: Option<Template>) -> StepKind {
    StepKind::Assign(Assign {
        assignments,
        output,
    })
}

pub(super) fn call(
    executor: &str,
    inputs: Template,
    attempt_timeout: Option<Template>,
    then: Vec<Assignment>,
) -> StepKind {
    StepKind::Call(Call {
        attempt_timeout,
        then,
        ..builder::call(executor, inputs)
    })
}

/// Steps one after the other, as one.
pub(super) fn block(steps: Vec<Step>) -> StepKind {
    StepKind::Block(Block::Sequence(steps))
}

/// A step that this format named, not its author.
pub(super) fn anonymous_step(place: SourcePosition, label: &str, kind: StepKind) -> Step {
    Step {
        anonymous: true,
        ..step(place, label, kind)
    }
}

/// The same with what its record holds, where that is not what the executor gave: a script's answer
/// holds the whole state.
pub(super) fn recording(step: Step, value: &Template) -> Step {
    let output = (*value != executor_result()).then(|| value.clone());
    Step { output, ..step }
}

pub(super) fn step(place: SourcePosition, label: &str, kind: StepKind) -> Step {
    Step {
        title: place.title,
        ..builder::step(place.name, label, kind, place.span)
    }
}

impl Tea<'_, '_> {
    /// A part of a node that only assigns.
    pub(super) fn assigned(
        &mut self,
        of: &SourcePosition,
        part: &str,
        then: Vec<Assignment>,
    ) -> Step {
        anonymous_step(self.part(of, part), "assign", assign(then, None))
    }

    /// A part of a node whose fault is handled by further steps.
    pub(super) fn catch_step(
        &mut self,
        of: &SourcePosition,
        part: &str,
        step: Step,
        handler: Vec<Step>,
    ) -> Step {
        let tried = StepKind::Catch {
            body: only(step),
            error: Name::from(FAULT),
            handler: Block::Sequence(handler),
        };
        anonymous_step(self.part(of, part), "catch", tried)
    }
}
