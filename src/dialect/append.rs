//! `appendFile` in all formats: how long each file is after the run's last append is a variable of
//! the run, so that it is part of the checkpoint. It never looks at a file.

use crate::expression::{ParseError, Syntax, Template, Value};
use crate::hir::Assignment;
use crate::model::{AssignOp, Name};
use crate::source::Span;

/// Why an append is none when it did not know of the last one; short, because the fault quotes it.
const AT_ONCE: &str = "appended at the same time as another";

/// What a run remembers of its files in a variable: for the executor.
pub(super) fn files(variable: &str) -> Result<Template, ParseError> {
    jinja(&format!("{{{{ state.get('{variable}', {{}}) }}}}"))
}

/// What a run remembers of a file before it appends: nothing new when it knows the file.
pub(super) fn measured(variable: &str, span: Span) -> Result<Assignment, ParseError> {
    let told = jinja("{{ result.get('files') }}")?;
    let value = Template::call("union", vec![told, files(variable)?])?;
    Ok(set(variable, value, span))
}

/// What a run remembers of an append. One that did not know of the last one ran at the same time:
/// that is a fault, also where it was repeated after a crash and only the run can tell.
pub(super) fn remember(variable: &str, span: Span) -> Result<Assignment, ParseError> {
    let last = format!("{{{{ state.get('{variable}', {{}}).get(result.get('file')) }}}}");
    let knew = jinja("{{ result.get('from') }}")?;
    let in_order = Template::call("equals", vec![jinja(&last)?, knew])?;
    let told = jinja("{{ result.get('files') }}")?;
    let all = Template::call("union", vec![files(variable)?, told])?;
    let fault = Template::call("int", vec![Template::constant(Value::text(AT_ONCE))])?;
    let value = Template::call("if", vec![in_order, all, fault])?;
    Ok(set(variable, value, span))
}

fn jinja(text: &str) -> Result<Template, ParseError> {
    Template::parse(text, Syntax::Jinja)
}

fn set(variable: &str, value: Template, span: Span) -> Assignment {
    Assignment {
        variable: Name::from(variable),
        op: AssignOp::Set,
        value,
        span,
    }
}
