//! The engine's settings: strict names, Python's methods, bounds; and its errors in our words.

use super::free_variables::{self, FreeVariable};
use super::{filters, operators, python};
use crate::Env;
use crate::error::Missing;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use std::sync::LazyLock;
use windlass_value::did_you_mean;

/// The name of the one template that an engine holds.
pub(super) const SOURCE_NAME: &str = "template";
/// Instructions one evaluation may take.
const FUEL: u64 = 500_000;
/// Macros and loops may call each other this deep.
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

/// Values are written as graph editors have them: JSON without spaces, and text as it is.
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
        // A whole number has no fraction, however it was computed.
        let text = match value.is_number() {
            true => text.strip_suffix(".0").unwrap_or(&text),
            false => &text,
        };
        out.write_str(text).map_err(Error::from)
    });
}

/// Text stays as it is written, the newline at its end included, as TEA has it.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
}

/// What the engine says, without its place.
pub(super) fn plain(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (_, None) => error.kind().to_string(),
        (ErrorKind::UnknownMethod, Some(detail)) => format!("unknown method: {detail}"),
        (_, Some(detail)) => detail.to_owned(),
    }
}

/// A hint for an unintended comment: `${#list}` of a shell in text that is a template.
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

/// A hint for text that is not Jinja but looks like WDL, and for misspelt filters.
pub(super) fn parse_hint(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let name = trimmed.split('(').next().unwrap_or_default().trim();
    let wdl = crate::wdl::functions::find(name).is_some() && trimmed.contains('(');
    wdl.then(|| format!("did you mean `@{trimmed}`?"))
}

/// The message of an error of an evaluation, and what it read that does not exist, if that is why. An unknown name
/// comes with the nearest known one. `piece` is where the error occurred.
pub(super) fn describe(
    error: &Error,
    text: &str,
    piece: &str,
    known: &[FreeVariable],
    env: &dyn Env,
) -> (String, Option<Missing>) {
    let plain = plain(error);
    // The member that the message names, else the piece.
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
        // An operator or a filter that got an undefined value: the message of the operator names its operand.
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

/// Whether a message, outside of what it quotes, is about an undefined value.
fn mentions_undefined(message: &str) -> bool {
    let unquoted = message.split(['`', '\'', '"']).step_by(2);
    unquoted.into_iter().any(|part| part.contains("undefined"))
}
