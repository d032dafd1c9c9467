//! Functions that make parts of `hir` for the readers of this format. Nothing here reads a file.

use super::{SourcePosition, Tea};
use crate::builder;
pub(super) use crate::builder::{expression, jinja, object, only, text, when};
use crate::reader::Reader;
use windlass_expression::{Binding, Condition, Syntax, Template, Value};
use windlass_model::hir::{Assign, Assignment, Block, Call, Step, StepKind};
use windlass_model::model::{AssignOp, Name, WHOLE_STATE};
use windlass_source::source::Span;

/// The variable with a fault while the fault is handled.
/// It is removed before a template of the author reads the state.
pub(super) const FAULT: &str = "_windlass_fault";

/// The expression for the message of that fault.
/// For a script, the class and the line are removed from the message.
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

/// Makes the placeholder for the whole state in the inputs of a script. It is used so that the state is not stored
/// again.
pub(super) fn script_state() -> Template {
    text(WHOLE_STATE)
}

/// Makes the template of an executor's result, for the assignments of its call.
pub(super) fn executor_result() -> Template {
    Template::binding(Binding::Root(Name::from("result")))
}

/// Makes the template of a step's output. It is null if the step did not run.
pub(super) fn output_of(step: &Name) -> Template {
    Template::binding(Binding::Outputs(step.clone()))
}

/// Makes a template in which `result` is this value.
pub(super) fn with_result(value: &Template, body: Template) -> Template {
    if *value == executor_result() {
        return body;
    }
    // The value itself may read another `result`, so it is bound to a different name first.
    let outer: [(Name, Template); 1] = [(Name::from("_given"), value.clone())];
    let inner = [(
        Name::from("result"),
        Template::binding(Binding::Root(Name::from("_given"))),
    )];
    let body = Template::binding(Binding::Scoped(inner.into(), body));
    Template::binding(Binding::Scoped(outer.into(), body))
}

/// Makes the template of the map that a value adds to the state: the value itself, or else a map with the key `result`.
pub(super) fn map_of(reader: &Reader<'_>, value: &Template) -> Template {
    let whole = "{{ result if result is mapping else {'result': result} }}";
    with_result(value, jinja(reader, whole))
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

/// Makes an assignment that removes a variable.
pub(super) fn remove(variable: &str, span: Span) -> Assignment {
    let names = Template::constant(Value::array(vec![Value::text(variable)]));
    assignment("", AssignOp::RemoveAll, names, span)
}

pub(super) fn forget_fault(span: Span) -> Assignment {
    remove(FAULT, span)
}

/// Makes assignments that set each variable to the value of an expression.
pub(super) fn set_all(
    reader: &Reader<'_>,
    variables: &[(&str, &str)],
    span: Span,
) -> Vec<Assignment> {
    let all = variables.iter();
    all.map(|(name, text)| set(name, expression(reader, text), span))
        .collect()
}

/// Makes a map whose members are the values of expressions.
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

/// Combines steps that run one after the other.
pub(super) fn block(steps: Vec<Step>) -> StepKind {
    StepKind::Block(Block::Sequence(steps))
}

/// Makes a step whose name was made by this format and not by the author.
pub(super) fn anonymous_step(place: SourcePosition, label: &str, kind: StepKind) -> Step {
    Step {
        anonymous: true,
        ..step(place, label, kind)
    }
}

/// Sets the value in a step's record if it differs from the executor's result.
/// The result of a script contains the whole state, which must not be stored again.
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
    /// Makes a step of a node that only assigns variables.
    pub(super) fn assigned(
        &mut self,
        of: &SourcePosition,
        part: &str,
        then: Vec<Assignment>,
    ) -> Step {
        anonymous_step(self.part(of, part), "assign", assign(then, None))
    }

    /// Makes a step of a node with a handler for its faults.
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
