//! Secrets in expressions.
//! `secret('NAME')`, `{{ secrets.NAME }}` and `${secret:NAME}` return a mark, a placeholder for the secret. Only an
//! action replaces the mark by the secret, just before the action runs. This crate never handles a secret itself.

use super::template::{is_jinja, is_wdl};
use super::{Object, Secure, Syntax, Value};
use std::ops::Range;
use std::sync::Arc;

/// The beginning of a mark.
/// It has a private-use character, so that text written by people does not contain a mark by accident. When the
/// inputs of an action are rendered, data that contains a mark on purpose is refused.
const OPEN: &str = "\u{E0F0}secret:";
const CLOSE: char = '\u{E0F1}';

/// The separator between the name and a default in a mark, if the default is only for an unset variable.
const DEFAULT_IF_UNSET: char = '\u{E0F2}';
/// The same separator, if the default is for an unset or empty variable.
const DEFAULT_IF_EMPTY: char = '\u{E0F3}';

/// The maximum length in bytes of a secret's name.
const MAX_NAME: usize = 128;

/// Returns true if a secret can have this name. The name can also be the name of a file.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(fits)
}

/// The prefix of a secret's name that means an environment variable. Names of other secrets have no colon.
const ENVIRONMENT: &str = "env:";

/// Returns the name of the secret that means an environment variable.
#[must_use]
pub fn environment_secret(variable: &str) -> String {
    format!("{ENVIRONMENT}{variable}")
}

/// Returns the environment variable that a secret's name means. Returns `None` for the name of another secret.
#[must_use]
pub fn of_environment(secret: &str) -> Option<&str> {
    secret.strip_prefix(ENVIRONMENT)
}

/// The prefix of a secret's name that means the address of a callback. The name of the signal follows.
const CALLBACK: &str = "callback:";

/// Returns the name of the secret that means the address of a signal's callback.
#[must_use]
pub fn callback_secret(signal: &str) -> String {
    format!("{CALLBACK}{signal}")
}

/// Returns the signal of the callback address that a secret's name means. Returns `None` for the name of another
/// secret.
#[must_use]
pub fn of_callback(secret: &str) -> Option<&str> {
    secret.strip_prefix(CALLBACK)
}

/// Returns the mark of a callback's address. `claim` is what the address contains in addition to the signal. It is
/// where other marks have a default.
#[must_use]
pub fn callback_mark(signal: &str, claim: &str) -> String {
    format!("{OPEN}{CALLBACK}{signal}{DEFAULT_IF_UNSET}{claim}{CLOSE}")
}

#[must_use]
pub fn secret_mark(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// Adds a default to the mark of an environment variable (`env.X | default('else')`).
/// With `or_empty`, the default also replaces an empty value. Returns `None` if the text is not exactly such a mark.
pub(super) fn with_fallback(text: &str, fallback: &str, or_empty: bool) -> Option<String> {
    let own = |c: char| matches!(c, '\u{E0F0}'..='\u{E0F3}');
    let name = text.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    if !name.starts_with(ENVIRONMENT) || name.contains(own) || fallback.contains(own) {
        return None;
    }
    let separator = if or_empty {
        DEFAULT_IF_EMPTY
    } else {
        DEFAULT_IF_UNSET
    };
    Some(format!("{OPEN}{name}{separator}{fallback}{CLOSE}"))
}

/// The content of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretMark<'m> {
    pub name: &'m str,
    /// The default, which is used if the secret is missing.
    pub fallback: Option<&'m str>,
    /// Whether the default also replaces an empty secret.
    pub or_empty: bool,
}

impl<'m> SecretMark<'m> {
    /// Parses the text of a mark without its beginning and end.
    #[must_use]
    pub fn of(inside: &'m str) -> Self {
        let end = inside.find([DEFAULT_IF_UNSET, DEFAULT_IF_EMPTY]);
        let (name, rest) = end.map_or((inside, ""), |end| inside.split_at(end));
        Self {
            name,
            fallback: rest.strip_prefix([DEFAULT_IF_UNSET, DEFAULT_IF_EMPTY]),
            or_empty: rest.starts_with(DEFAULT_IF_EMPTY),
        }
    }

    /// Returns the text that replaces the mark if every secret is empty.
    #[must_use]
    pub fn blank(self) -> &'m str {
        match self.fallback {
            Some(fallback) if self.or_empty => fallback,
            _ => "",
        }
    }
}

/// Replaces every mark in a value, including the names of members.
/// If `with` returns `None`, the mark stays unchanged.
pub fn replace_secret_marks(value: &Value, with: &mut dyn FnMut(&str) -> Option<String>) -> Value {
    map_texts(value, &mut |text| replaced(text, with))
}

/// Changes the texts in a value, including the names of members.
/// If `change` returns `None`, the text stays unchanged.
fn map_texts(value: &Value, change: &mut dyn FnMut(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => change(text).map_or_else(|| value.clone(), Value::text),
        Value::Array(items) => {
            Value::array(items.iter().map(|item| map_texts(item, change)).collect())
        }
        Value::Object(members) => {
            let mut map = Object::with_capacity(members.len());
            for (key, member) in members.iter() {
                let key = change(key).map_or_else(|| key.clone(), Into::into);
                map.insert(key, map_texts(member, change));
            }
            Value::object(map)
        }
        Value::Secure(secure) => match &**secure {
            Secure::Open(value) => Value::Secure(Arc::new(Secure::Open(map_texts(value, change)))),
            Secure::Sealed(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

fn replaced(text: &str, with: &mut dyn FnMut(&str) -> Option<String>) -> Option<String> {
    let mut rest = text;
    let mut out = String::new();
    let mut any = false;
    while let Some((before, from)) = rest.split_once(OPEN) {
        let found = from.split_once(CLOSE);
        let put = found.and_then(|(name, after)| Some((with(name)?, after)));
        out.push_str(before);
        match put {
            Some((secret, after)) => {
                out.push_str(&secret);
                rest = after;
                any = true;
            }
            None => {
                out.push_str(OPEN);
                rest = from;
            }
        }
    }
    out.push_str(rest);
    any.then_some(out)
}

/// Replaces every mark by `mask` in text that `Debug` printed.
/// If a mark has no end, the rest of the text is removed.
#[must_use]
pub fn mask_printed_marks(printed: &str, mask: &str) -> String {
    let (open, close) = (OPEN.escape_debug(), CLOSE.escape_debug());
    let (open, close) = (open.to_string(), close.to_string());
    let mut rest = printed;
    let mut out = String::with_capacity(printed.len());
    while let Some((before, from)) = rest.split_once(&open) {
        out.push_str(before);
        out.push_str(mask);
        rest = from.split_once(&close).map_or("", |(_, after)| after);
    }
    out + rest
}

/// A text whose `${secret:NAME}` was rewritten to the language of the text. Positions can be mapped to the author's
/// text.
pub(super) struct SecretShorthand {
    pub text: String,
    /// The replacements, sorted by position.
    replacements: Vec<Replacement>,
}

/// A range of the rewritten text, and the range of the author's text that it replaces.
struct Replacement {
    new: Range<usize>,
    old: Range<usize>,
}

/// Returns true if the end of a text is in a `raw` block of Jinja. `before`: whether its beginning is.
fn ends_in_raw_block(text: &str, before: bool) -> bool {
    let begin = text.rfind("{% raw").max(text.rfind("{%- raw"));
    match (begin, text.rfind("endraw")) {
        (None, None) => before,
        (begin, end) => begin > end,
    }
}

impl SecretShorthand {
    /// Rewrites a text. Returns `None` if the text has no `${secret:NAME}`.
    pub fn of(text: &str, syntax: Syntax) -> Option<Self> {
        const START: &str = "${secret:";
        if !text.contains(START) {
            return None;
        }
        let jinja = match syntax {
            Syntax::Azure => false,
            Syntax::Jinja | Syntax::Canvas => true,
            Syntax::Loom => is_jinja(text) && !is_wdl(text),
        };
        let mut out = String::with_capacity(text.len() + 16);
        let mut replacements = Vec::new();
        let mut rest = text;
        let mut in_raw = false;
        while let Some((before, from)) = rest.split_once(START) {
            out.push_str(before);
            in_raw = ends_in_raw_block(before, in_raw);
            let Some((name, after)) = from.split_once('}') else {
                out.push_str(START);
                rest = from;
                break;
            };
            let put = match jinja {
                true if in_raw => {
                    format!("{{% endraw %}}{{{{ secrets.{name} }}}}{{% raw %}}")
                }
                true => format!("{{{{ secrets.{name} }}}}"),
                false => format!("@{{secret('{name}')}}"),
            };
            let (new, end) = (out.len(), text.len() - after.len());
            out.push_str(&put);
            replacements.push(Replacement {
                new: new..out.len(),
                old: end - START.len() - name.len() - 1..end,
            });
            rest = after;
        }
        out.push_str(rest);
        Some(Self {
            text: out,
            replacements,
        })
    }

    /// Maps a range to the author's text.
    /// A range inside of a replacement becomes the range of the whole `${secret:NAME}`.
    pub fn original_range(&self, place: Range<usize>) -> Range<usize> {
        let start = self.offset(place.start, |inside| inside.old.start);
        let end = self.offset(place.end, |inside| inside.old.end);
        start..end.max(start)
    }

    fn offset(&self, offset: usize, inside: impl FnOnce(&Replacement) -> usize) -> usize {
        let before = self
            .replacements
            .partition_point(|one| one.new.end <= offset);
        match self.replacements.get(before) {
            Some(one) if one.new.start < offset => return inside(one),
            _ => {}
        }
        match before
            .checked_sub(1)
            .and_then(|last| self.replacements.get(last))
        {
            Some(last) => last.old.end + (offset - last.new.end),
            None => offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, Template};

    #[test]
    fn marks_are_replaced_wherever_they_are() {
        let mark = secret_mark("A");
        let value = Value::from_pairs([
            (mark.clone(), Value::text(format!("x{mark}y{mark}"))),
            (
                "l".to_owned(),
                Value::array(vec![Value::text(mark), Value::from(1_i64)]),
            ),
        ]);
        let filled = replace_secret_marks(&value, &mut |name| Some(format!("<{name}>")));
        assert_eq!(filled.to_json(), r#"{"<A>":"x<A>y<A>","l":["<A>",1]}"#);
        let kept = replace_secret_marks(&value, &mut |_| None);
        assert_eq!(kept, value);
    }

    #[test]
    fn a_mark_may_say_what_stands_there_without_its_variable() {
        let mark = secret_mark(&environment_secret("KEY"));
        for (or_empty, blank) in [(false, ""), (true, "else")] {
            let value = Value::text(with_fallback(&mark, "else", or_empty).unwrap());
            let mut seen = Vec::new();
            let filled = replace_secret_marks(&value, &mut |inside| {
                let marked = SecretMark::of(inside);
                seen.push((marked.name.to_owned(), marked.fallback.map(str::to_owned)));
                assert_eq!(marked.blank(), blank);
                Some(String::from("key"))
            });
            assert_eq!(filled, Value::text("key"));
            assert_eq!(seen, [("env:KEY".to_owned(), Some("else".to_owned()))]);
        }
        assert_eq!(SecretMark::of("NAME").fallback, None);
        // Only the mark of an environment variable can have a default: not other text, and not the mark of another
        // secret.
        assert_eq!(with_fallback("text", "else", false), None);
        assert_eq!(with_fallback(&format!("{mark}!"), "else", false), None);
        assert_eq!(with_fallback(&secret_mark("NAME"), "else", false), None);
        assert_eq!(with_fallback(&mark, &mark, false), None);
    }

    #[test]
    fn a_torn_mark_is_text() {
        let torn = Value::text(format!("{OPEN}A {}", secret_mark("B")));
        let filled = replace_secret_marks(&torn, &mut |name| (name == "B").then(|| "b".into()));
        assert!(!filled.to_json().contains("\u{E0F1}b"), "{filled:?}");
    }

    #[test]
    fn the_shorthand_is_read_in_every_language() {
        for (text, syntax) in [
            ("Bearer ${secret:T}", Syntax::Loom),
            ("@{inputs('a')} ${secret:T}", Syntax::Loom),
            ("{{ inputs.a }} ${secret:T}", Syntax::Loom),
            ("${secret:T}", Syntax::Azure),
            ("${secret:T}", Syntax::Jinja),
        ] {
            let template = Template::parse(text, syntax).unwrap();
            let secret = Reference::Secret("T".into());
            assert!(template.references().contains(&secret), "{text}");
        }
        let error = Template::parse("${secret:TOKEN}@{nothing()}", Syntax::Loom).unwrap_err();
        assert_eq!(error.offset, "${secret:TOKEN}@{".len());
    }

    #[test]
    fn names_are_those_of_files() {
        for good in ["A", "api-token", "db.password", "X_1"] {
            assert!(is_secret_name(good), "{good}");
        }
        for bad in ["", "..", ".hidden", "a/b", "a b", "é"] {
            assert!(!is_secret_name(bad), "{bad}");
        }
    }
}
