//! Configures the Jinja engine: strict names, Python's methods, limits.
//! It also rewrites minijinja's errors as messages of Windlass.

use super::free_variables::{self, FreeVariable};
use super::{filters, operators, python};
use crate::Env;
use crate::error::Missing;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use std::sync::LazyLock;
use windlass_value::did_you_mean;

/// The name of the template in an engine, which has only one.
pub(super) const SOURCE_NAME: &str = "template";
/// Maximum number of instructions of one evaluation.
const FUEL: u64 = 500_000;
/// Maximum depth of calls of macros and loops.
const RECURSION: usize = 64;

pub(super) static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_syntax(syntax());
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    engine.set_formatter(|out, _state, value| match value.as_str() {
        Some(text) => {
            super::session::bytes(text.len())?;
            out.write_str(text).map_err(Error::from)
        }
        None => out.write_str(&python::str(value)?).map_err(Error::from),
    });
    engine.set_debug(true);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(RECURSION);
    filters::register(&mut engine);
    operators::register(&mut engine);
    engine
});

/// Sets the formatter for canvases: values are written as JSON without spaces, and texts are written unchanged.
pub(super) fn write_json(engine: &mut Environment<'static>) {
    engine.set_formatter(|out, _state, value| {
        let text = match value.as_str() {
            Some(text) => text.to_owned(),
            None if value.is_undefined() => String::new(),
            None => serde_json::to_string(value).map_err(|error| {
                Error::new(minijinja::ErrorKind::BadSerialization, error.to_string())
            })?,
        };
        super::session::bytes(text.len())?;
        // A whole number is written without a fraction, even if it was computed as a float.
        let text = match value.is_number() {
            true => text.strip_suffix(".0").unwrap_or(&text),
            false => &text,
        };
        out.write_str(text).map_err(Error::from)
    });
}

/// Returns the syntax settings of all templates. As in TEA, the text outside of braces stays unchanged, including the
/// newline at its end.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
}

/// Returns the message of minijinja without the position.
pub(super) fn plain(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (_, None) => error.kind().to_string(),
        (ErrorKind::UnknownMethod, Some(detail)) => format!("unknown method: {detail}"),
        (_, Some(detail)) => detail.to_owned(),
    }
}

/// Returns a hint if a comment is probably not intended: a shell's `${#list}` begins one in a template.
pub(super) fn comment_hint(error: &Error) -> Option<String> {
    let open = error
        .detail()
        .is_some_and(|detail| detail.contains("end of comment"));
    open.then(|| {
        String::from(
            "`{#` begins a comment of Jinja: write `{{ '{#' }}` for the letters themselves",
        )
    })
}

/// Returns a hint for a text that is not valid Jinja and appears to be WDL.
pub(super) fn parse_hint(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let name = trimmed.split('(').next().unwrap_or_default().trim();
    let wdl = crate::wdl::functions::find(name).is_some() && trimmed.contains('(');
    wdl.then(|| format!("did you mean `@{trimmed}`?"))
}

/// Returns the message for an error of an evaluation.
/// If a value is missing, also returns which one. For an unknown name, the message contains the most similar known
/// name. `piece` is the part of the text in which the error occurred.
pub(super) fn describe(
    error: &Error,
    text: &str,
    piece: &str,
    known: &[FreeVariable],
    env: &dyn Env,
) -> (String, Option<Missing>) {
    let plain = plain(error);
    // The missing member is the one that the message quotes. If it quotes none, it is `piece`.
    let member = || {
        let path = plain.split('`').nth(1).unwrap_or(piece).trim();
        let unnamed = || Missing {
            path: path.to_owned(),
            object: None,
        };
        match free_variables::missing_member(path, known, env) {
            Some((missing, message)) => (message, missing),
            None => (plain.clone(), unnamed()),
        }
    };
    match error.kind() {
        ErrorKind::UndefinedError => match free_variables::unknown(known, env) {
            Some((name, candidates)) if candidates.contains(&name) => {
                (format!("`{name}` has not run yet"), None)
            }
            Some((name, candidates)) => match did_you_mean(&name, &candidates) {
                Some(hint) => (format!("`{name}` is not defined; {hint}"), None),
                None => (format!("`{name}` is not defined"), None),
            },
            None => {
                let (message, missing) = member();
                (message, Some(missing))
            }
        },
        // An operator or a filter received an undefined value. The message of minijinja already names the operand.
        ErrorKind::InvalidOperation if mentions_undefined(&plain) => {
            let (_, missing) = member();
            (plain, Some(missing))
        }
        ErrorKind::UnknownFunction => match parse_hint(text) {
            Some(hint) => (format!("{plain}; {hint}"), None),
            None => (plain, None),
        },
        ErrorKind::OutOfFuel => (format!("the template needs more than {FUEL} steps"), None),
        _ => (plain, None),
    }
}

/// Returns true if a message is about an undefined value. Text in quotes is ignored.
fn mentions_undefined(message: &str) -> bool {
    let unquoted = message.split(['`', '\'', '"']).step_by(2);
    unquoted.into_iter().any(|part| part.contains("undefined"))
}
