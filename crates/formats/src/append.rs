//! `appendFile` in all formats.
//! A variable of the run has, for each file, its length after the run's last append. So the lengths are part of the
//! checkpoint. This module never reads a file.

use super::builder::{call, object, text};
use super::reader::Reader;
use windlass_expression::{Condition, ParseError, Syntax, Template, Value};
use windlass_model::hir::{Assignment, Call};
use windlass_model::model::{AssignOp, FILES_VARIABLE, Name};
use windlass_source::source::{Entry, Kind, Span};

pub(super) const EXECUTOR: &str = "appendFile";

/// The name of the variable with the lengths of files, in Loom.
pub(super) const LOOM_FILES: &str = "$files";
/// The reason of the fault if another append to the file ran at the same time. It is short, because the fault quotes
/// it.
const AT_ONCE: &str = "appended at the same time as another";

/// Makes the template that reads the variable with the run's files, as an input of the executor.
pub(super) fn files(reader: &Reader<'_>, variable: &str) -> Result<Template, ParseError> {
    jinja(reader, &format!("{{{{ {} }}}}", lengths(variable)))
}

/// Reads whether a file is rewritten (`replace: true`), or keeps its content (`append: true`, the default).
pub(super) fn replaces(
    reader: &mut Reader<'_>,
    append: Option<&Entry>,
    replace: Option<&Entry>,
) -> bool {
    const HINT: &str = "`replace: true` rewrites the file after the run has succeeded";
    match append.map(|entry| (&entry.value.kind, entry)) {
        None => {}
        Some((Kind::Bool(true), entry)) => {
            let what = "`append: true` says nothing: what is in the file always stays";
            let hint = format!("remove it; {HINT}");
            reader.warning("superfluous", entry.key_span, what, hint);
        }
        Some((_, entry)) => {
            let what = "`append` is not known here: what is in the file always stays";
            reader.error("unsupported", entry.key_span, what, HINT);
        }
    }
    let replaces = replace.and_then(|entry| reader.flag(entry, HINT));
    replaces.unwrap_or_default()
}

/// Makes the condition that holds if the run does not know the length of a file yet.
pub(super) fn unknown(
    reader: &Reader<'_>,
    variable: &str,
    path: &Template,
) -> Result<Condition, ParseError> {
    let known = Template::call("contains", vec![files(reader, variable)?, path.clone()])?;
    Ok(Condition::from_template(known)?.negated())
}

/// Makes the call that measures a file before the run's first append to it, so that existing content is never cut
/// off.
/// If a path is another spelling of a known file, it is measured as well, which changes nothing.
pub(super) fn measure(
    reader: &Reader<'_>,
    variable: &str,
    path: &Template,
    span: Span,
) -> Result<Call, ParseError> {
    let inputs = object([
        ("path", path.clone()),
        ("measure", Template::constant(Value::Bool(true))),
        ("files", files(reader, variable)?),
    ]);
    Ok(Call {
        then: vec![measured(reader, variable, span)?],
        ..call(EXECUTOR, inputs)
    })
}

/// Makes the call that replaces the old files by the new files that the run wrote.
pub(super) fn put(reader: &Reader<'_>, variable: &str) -> Result<Call, ParseError> {
    let put = Template::constant(Value::Bool(true));
    let inputs = object([("put", put), ("files", files(reader, variable)?)]);
    Ok(call(EXECUTOR, inputs))
}

/// Returns the files that a run rewrites.
/// Each is returned with the file that contains the new rows until the run has succeeded.
#[must_use]
pub fn replacements(variables: &Value) -> Vec<(String, String)> {
    let files = [LOOM_FILES, FILES_VARIABLE].map(|name| variables.get(name));
    let files = files.into_iter().flatten().filter_map(Value::as_object);
    let replaced = files.flat_map(|files| {
        files.iter().filter_map(|(sibling, known)| {
            let file = known.get("replaces")?.as_str()?;
            // The run may have copied the state of an earlier run. A file that the earlier run wrote is not replaced
            // by this run.
            let current = files.get(file).and_then(Value::as_str) == Some(sibling);
            current.then(|| (file.to_owned(), sibling.to_string()))
        })
    });
    replaced.collect()
}

/// Makes the assignment after a file was measured.
/// It changes nothing if the run already knows the length of the file.
fn measured(reader: &Reader<'_>, variable: &str, span: Span) -> Result<Assignment, ParseError> {
    let reported = jinja(reader, "{{ result.get('files') }}")?;
    let value = Template::call("union", vec![reported, files(reader, variable)?])?;
    Ok(set(variable, value, span))
}

/// Makes the assignment after an append. If the append did not start at the last known length, another append ran at
/// the same time, which is a fault. The fault is found even if a crash repeated the append, because the run has the
/// length.
pub(super) fn remember(
    reader: &Reader<'_>,
    variable: &str,
    span: Span,
) -> Result<Assignment, ParseError> {
    let last = format!("{{{{ {}.get(result.get('file')) }}}}", lengths(variable));
    let knew = jinja(reader, "{{ result.get('from') }}")?;
    let in_order = Template::call("equals", vec![jinja(reader, &last)?, knew])?;
    let reported = jinja(reader, "{{ result.get('files') }}")?;
    let all = Template::call("union", vec![files(reader, variable)?, reported])?;
    let fault = Template::call("int", vec![text(AT_ONCE)])?;
    let value = Template::call("if", vec![in_order, all, fault])?;
    Ok(set(variable, value, span))
}

/// Returns the expression for the run's files. In TEA, `state` is the state of a branch.
fn lengths(variable: &str) -> String {
    match variable {
        FILES_VARIABLE => format!("({variable} | default({{}}))"),
        _ => format!("variables.get('{variable}', {{}})"),
    }
}

fn jinja(reader: &Reader<'_>, text: &str) -> Result<Template, ParseError> {
    Template::parse_cached(text, Syntax::Jinja, &reader.templates)
}

fn set(variable: &str, value: Template, span: Span) -> Assignment {
    Assignment {
        variable: Name::from(variable),
        op: AssignOp::Set,
        value,
        span,
    }
}
