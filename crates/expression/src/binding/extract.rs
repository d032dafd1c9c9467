//! Extracts one value from a text.
//! This is done by a regular expression, or by a path in the text's JSON. Both are parsed once, when the workflow is
//! loaded.

use crate::Value;
use crate::budget::pattern_work;
use crate::wdl::text::text_size;
use regex::{Regex, RegexBuilder};
use std::sync::Arc;

/// Maximum size in bytes of a compiled pattern.
const MAX_PATTERN: usize = 1 << 20;

/// How to extract a value.
#[derive(Clone, Debug)]
pub enum Extract {
    /// By a pattern. The value is the first group of the first match, or the whole match if the pattern has no group.
    Regex(Regex),
    /// The whole text, without white space at its ends.
    Full,
    /// By the path of members and elements.
    Path(Arc<[Hop]>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A member of a map.
    Member(String),
    /// An element of a list; a negative number counts from the end.
    Element(i64),
}

impl PartialEq for Extract {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Regex(a), Self::Regex(b)) => a.as_str() == b.as_str(),
            (Self::Path(a), Self::Path(b)) => a == b,
            (Self::Full, Self::Full) => true,
            _ => false,
        }
    }
}

impl Extract {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why the pattern is not valid.
    pub fn regex(pattern: &str) -> Result<Self, String> {
        RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN)
            .build()
            .map(Self::Regex)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => String::from("the pattern is too large"),
                other => {
                    // The last line of the message has the reason. The lines before it show the position in the
                    // pattern.
                    let text = other.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    last.trim_start_matches("error: ").to_owned()
                }
            })
    }

    /// Parses a path such as `$.items[0].name` or `items[-1]['a b']`.
    ///
    /// # Errors
    /// The reason why the path is not valid.
    pub fn path(text: &str) -> Result<Self, String> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut hops = Vec::new();
        while !rest.is_empty() {
            let (hop, after) = next_hop(rest, hops.is_empty())?;
            hops.push(hop);
            rest = after;
        }
        Ok(Self::Path(hops.into()))
    }

    /// Returns the work of the extraction, in units of the budget.
    pub(super) fn work(&self, from: &Value) -> usize {
        match (self, from.as_str()) {
            (Self::Regex(regex), Some(text)) => pattern_work(regex.as_str(), text.len()),
            (Self::Regex(regex), None) => pattern_work(regex.as_str(), text_size(from)),
            (Self::Path(_), Some(text)) => text.len() / 4,
            (Self::Path(_) | Self::Full, _) => 0,
        }
    }

    /// Returns the extracted value, or null if it is not found.
    #[must_use]
    pub fn find(&self, text: &str) -> Value {
        match self {
            Self::Regex(regex) => {
                let found = regex
                    .captures(text.trim_end_matches(['\n', '\r']))
                    .and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
                found.map_or(Value::Null, |found| Value::text(found.as_str()))
            }
            Self::Full => Value::text(text.trim()),
            Self::Path(hops) => match Value::from_json(text.trim()) {
                Ok(value) => follow(&value, hops),
                Err(_) => Value::Null,
            },
        }
    }

    /// Returns the value that is extracted from a value of any type. A pattern is matched against the value's JSON.
    #[must_use]
    pub fn find_in(&self, value: &Value) -> Value {
        match self {
            Self::Regex(_) if value.is_null() => Value::Null,
            Self::Regex(_) => self.find(&value.to_json()),
            Self::Full => value.clone(),
            Self::Path(hops) => follow(value, hops),
        }
    }

    /// Returns the text of the pattern or path, nearly as the author wrote it.
    #[must_use]
    pub fn source(&self) -> String {
        match self {
            Self::Regex(regex) => format!("/{}/", regex.as_str()),
            Self::Full => String::from("in full"),
            Self::Path(hops) => {
                let hop = |hop: &Hop| match hop {
                    Hop::Member(name) => format!(".{name}"),
                    Hop::Element(index) => format!("[{index}]"),
                };
                format!("${}", hops.iter().map(hop).collect::<String>())
            }
        }
    }
}

/// Returns the value at the end of a path, or null if the path does not exist.
#[must_use]
pub(super) fn follow(value: &Value, hops: &[Hop]) -> Value {
    let mut at = value;
    for hop in hops {
        let next = match hop {
            Hop::Member(name) => at.get(name),
            Hop::Element(index) => at.as_array().and_then(|items| {
                let index = match usize::try_from(*index) {
                    Ok(index) => index,
                    Err(_) => items
                        .len()
                        .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
                };
                items.get(index)
            }),
        };
        match next {
            Some(next) => at = next,
            None => return Value::Null,
        }
    }
    at.clone()
}

fn next_hop(rest: &str, first: bool) -> Result<(Hop, &str), String> {
    if let Some(inside) = rest.strip_prefix('[') {
        let quote = inside.chars().next().filter(|c| matches!(c, '\'' | '"'));
        if let Some(quote) = quote {
            let inside = inside.get(1..).unwrap_or_default();
            let (name, after) = inside
                .split_once(quote)
                .ok_or_else(|| format!("`{rest}` has no closing quote"))?;
            let after = after
                .strip_prefix(']')
                .ok_or_else(|| format!("`{rest}` has no closing `]`"))?;
            return Ok((Hop::Member(name.to_owned()), after));
        }
        let (index, after) = inside
            .split_once(']')
            .ok_or_else(|| format!("`{rest}` has no closing `]`"))?;
        let index = index.trim().parse().map_err(|_| {
            format!("`[{index}]` is not a valid element: paths accept only names and numbers")
        })?;
        return Ok((Hop::Element(index), after));
    }
    let name = match rest.strip_prefix('.') {
        Some(name) => name,
        None if first => rest,
        None => return Err(format!("expected `.` or `[` before `{rest}`")),
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (name, after) = name.split_at_checked(end).unwrap_or((name, ""));
    match name {
        "" => Err(format!("a name is missing before `{rest}`")),
        "*" => Err(String::from("a path names one value, without `*`")),
        name => Ok((Hop::Member(name.to_owned()), after)),
    }
}
