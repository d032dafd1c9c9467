//! The engine's settings: strict names, Python's methods, bounds; and its errors in our words.

use super::roots::{self, Root};
use crate::diagnostic::did_you_mean;
use crate::expression::Env;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use std::sync::LazyLock;

/// The name of the one template that an engine holds.
pub(super) const SOURCE_NAME: &str = "template";
/// Instructions one evaluation may take.
const FUEL: u64 = 500_000;
/// Macros and loops may call each other this deep.
const RECURSION: usize = 64;

pub(super) static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    engine.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    engine.set_debug(true);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(RECURSION);
    engine
});

/// What the engine says, without its place.
pub(super) fn plain(error: &Error) -> String {
    match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    }
}

/// A hint for text that is no Jinja but looks like WDL.
pub(super) fn parse_hint(text: &str, _error: &Error) -> Option<String> {
    let name = text.split('(').next().unwrap_or_default().trim();
    let wdl = crate::expression::wdl::functions::find(name).is_some() && text.contains('(');
    wdl.then(|| format!("did you mean `@{}`?", text.trim()))
}

/// An error of an evaluation; an unknown name comes with the nearest known one.
pub(super) fn message(error: &Error, known: &[Root], env: &dyn Env) -> String {
    let plain = plain(error);
    match error.kind() {
        ErrorKind::UndefinedError => match roots::unknown(known, env) {
            Some((name, candidates)) => match did_you_mean(&name, &candidates) {
                Some(hint) => format!("`{name}` is not defined; {hint}"),
                None => format!("`{name}` is not defined"),
            },
            None => plain,
        },
        ErrorKind::OutOfFuel => format!("the template takes more than {FUEL} steps"),
        _ => plain,
    }
}
