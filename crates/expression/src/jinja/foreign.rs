//! Forms of other languages that authors write by habit, and the form of Jinja.

use super::names::is_filter;

/// Returns a hint for the operator at a byte offset where a text stopped being Jinja.
pub(super) fn operator_hint(text: &str, offset: usize) -> Option<&'static str> {
    let (before, here) = text.split_at_checked(offset)?;
    // A mistake may be found at the second character of an operator.
    let earlier = text.get(offset.saturating_sub(1)..).unwrap_or_default();
    let begins = |operator: &str| here.starts_with(operator) || earlier.starts_with(operator);
    let word = |text: &str| text.trim().to_ascii_lowercase();
    let next = here.split(|c: char| !c.is_alphanumeric()).next();
    let last = before.trim_end().rsplit(|c: char| !c.is_alphanumeric());
    let last = last.map(word).next().unwrap_or_default();
    match &*next.map(word).unwrap_or_default() {
        "and" | "or" | "not" => return Some("write `and`, `or` and `not` in small letters"),
        "contains" | "includes" | "has" => return Some("write `value in list`"),
        "startswith" | "endswith" | "matches" | "like" => {
            return Some("write `text.startswith('a')`, `text.endswith('a')` or `'a' in text`");
        }
        _ if last == "not" => return Some("write `and`, `or` and `not` in small letters"),
        _ => {}
    }
    match () {
        () if begins("&&") => Some("write `and`"),
        () if begins("||") => Some("write `or`"),
        () if begins("=<") => Some("write `<=`"),
        () if begins("=>") => Some("write `>=`"),
        () if here.starts_with('=') => Some("`==` compares two values"),
        () if begins("??") => Some("write `a or b`, or the filter `default`"),
        () if begins("?.") => Some("write `a.b`, and the filter `default` for a missing member"),
        () if begins("<>") => Some("write `!=`"),
        () if here.starts_with('!') => Some("write `not`"),
        () if here.starts_with('?') => Some("write `a if condition else b`"),
        () => None,
    }
}

/// Returns a hint for an unknown function that Jinja has as a filter or a test.
pub(super) fn function_hint(name: &str) -> Option<String> {
    let filter = match name {
        "len" | "size" | "count" | "strlen" => "length",
        "str" => "string",
        "isinstance" | "type" | "typeof" => {
            return Some(
                "write `x is string`, `x is number`, `x is mapping` or `x is sequence`".into(),
            );
        }
        name => name,
    };
    is_filter(filter).then(|| format!("write `x | {filter}`"))
}

/// Returns a hint for an unknown test.
pub(super) fn test_hint(name: &str) -> Option<String> {
    name_hint(name).map(|_| String::from("write `is none`"))
}

/// Returns a hint for an unknown name that other languages have for a missing value.
#[must_use]
pub fn name_hint(name: &str) -> Option<&'static str> {
    match &*name.to_ascii_lowercase() {
        "null" | "nil" | "none" => Some("write `none`"),
        "undefined" => Some("write `x is undefined`"),
        _ => None,
    }
}
