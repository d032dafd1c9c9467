//! Filters and methods: those TEA adds, those of Jinja2 that the engine lacks, and bounded
//! versions of those that make much from little.

use super::operators::size;
use super::python::{self, Json};
use super::{object, session};
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::LazyLock;

/// The engine's own filters, to call from ours.
static BUILTIN: LazyLock<Environment<'static>> = LazyLock::new(Environment::new);

pub(super) fn register(engine: &mut Environment<'static>) {
    minijinja_contrib::add_to_environment(engine);
    engine.add_filter("tojson", tojson);
    engine.add_filter("json", |value: Value| python::json(&value, Json::default()));
    engine.add_filter("fromjson", fromjson);
    engine.add_filter("sha256", |value: Value| {
        let text = python::str(&value)?;
        session::work(text.len() / 16)?;
        let mut out = String::new();
        for byte in Sha256::digest(text.as_bytes()) {
            let _ = write!(out, "{byte:02x}");
        }
        Ok::<_, Error>(out)
    });
    engine.add_filter("string", |value: Value| python::str(&value));
    engine.add_filter("center", center);
    engine.add_filter("wordcount", |text: &str| text.split_whitespace().count());
    for name in ["replace", "join", "indent", "format", "batch", "slice"] {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            bounded(name, args, kwargs)
        });
    }
    // Filters that make a list keep it: it counts.
    for name in [
        "list", "sort", "unique", "reverse", "dictsort", "items", "split", "lines",
    ] {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            charge_list(args.first())?;
            call(name, args.0, kwargs)
        });
    }
    engine.add_function("range", |state: &mut State<'_, '_>, args: Rest<Value>| {
        let _ = state;
        let range = BUILTIN
            .empty_state()
            .lookup("range")
            .ok_or_else(|| Error::from(ErrorKind::UnknownFunction))?
            .call(&mut BUILTIN.empty_state(), &args.0)?;
        session::work(range.len().unwrap_or(0))?;
        Ok::<_, Error>(range)
    });
    // It would print every name there is.
    engine.remove_global("debug");
    engine.set_unknown_method_callback(method);
}

/// A builtin filter.
fn call(name: &str, mut args: Vec<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    if kwargs.args().next().is_some() {
        args.push(Value::from(kwargs));
    }
    BUILTIN.empty_state().apply_filter(name, &args)
}

fn charge_list(value: Option<&Value>) -> Result<(), Error> {
    let count = match value {
        Some(value) if value.kind() == ValueKind::String => value.as_str().map_or(0, str::len) / 4,
        Some(value) => value.len().unwrap_or(1),
        None => 0,
    };
    session::bytes(count.saturating_mul(size_of::<Value>()))
}

fn tojson(value: Value, indent: Option<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get("indent")?,
    };
    kwargs.assert_all_used()?;
    let indent = match indent {
        None => None,
        Some(given) if given.is_none() => None,
        Some(given) => Some(usize::try_from(given)?.min(64)),
    };
    python::json(&value, Json { html: true, indent })
}

/// JSON text as its value; what is no JSON stays as it is, as TEA has it.
fn fromjson(value: Value) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return Ok(value);
    };
    session::bytes(text.len().saturating_mul(2))?;
    match crate::expression::Value::from_json(text) {
        Ok(parsed) => Ok(object::to_jinja(&parsed, false)),
        Err(_) => Ok(value),
    }
}

fn center(text: &str, width: Option<usize>) -> Result<String, Error> {
    let width = width.unwrap_or(80);
    session::bytes(width)?;
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2;
    Ok(format!(
        "{}{text}{}",
        " ".repeat(left),
        " ".repeat(missing - left)
    ))
}

fn text_length(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, str::len)
}

/// What a filter may make at most is counted before it is made.
fn bounded(name: &str, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let length = text_length(args.first());
    let number = |value: Option<&Value>| value.and_then(Value::as_usize).unwrap_or(0);
    let most = match name {
        "replace" => replaced(args.first(), args.get(1), args.get(2)),
        "join" => joined(args.first(), text_length(args.get(1)))?,
        "indent" => {
            let width = number(args.get(1)).max(kwargs.peek("width").unwrap_or(0));
            let lines = args
                .first()
                .and_then(Value::as_str)
                .map_or(0, |text| text.lines().count());
            length.saturating_add(width.saturating_mul(lines + 1))
        }
        "format" => formatted(
            args.first().and_then(Value::as_str).unwrap_or_default(),
            args.get(1..),
        ),
        _ => {
            let wide = number(args.get(1));
            let items = args.first().and_then(Value::len).unwrap_or(0);
            wide.saturating_add(items)
                .saturating_mul(size_of::<Value>())
        }
    };
    session::bytes(most)?;
    call(name, args.0, kwargs)
}

fn replaced(text: Option<&Value>, old: Option<&Value>, new: Option<&Value>) -> usize {
    let text = text.and_then(Value::as_str).unwrap_or_default();
    let old = old.and_then(Value::as_str).unwrap_or_default();
    let count = if old.is_empty() {
        text.len() + 1
    } else {
        text.matches(old).count()
    };
    text.len()
        .saturating_add(count.saturating_mul(text_length(new)))
}

fn joined(items: Option<&Value>, delimiter: usize) -> Result<usize, Error> {
    let Some(items) = items.filter(|items| items.kind() != ValueKind::String) else {
        return Ok(text_length(items).saturating_mul(delimiter + 4));
    };
    let mut total = 0_usize;
    for item in items.try_iter()?.checked() {
        let item = item?;
        let length = match item.as_str() {
            Some(text) => text.len(),
            None => size(&item).saturating_mul(8),
        };
        total = total.saturating_add(length).saturating_add(delimiter);
    }
    Ok(total)
}

/// At most what the digits in a pattern ask for, and the arguments once for each directive.
fn formatted(pattern: &str, args: Option<&[Value]>) -> usize {
    let mut widest = 0_usize;
    let mut number = 0_usize;
    for byte in pattern.bytes() {
        number = match byte {
            b'0'..=b'9' => number
                .saturating_mul(10)
                .saturating_add(usize::from(byte - b'0')),
            b'*' => usize::MAX,
            _ => 0,
        };
        widest = widest.max(number);
    }
    let directives = pattern
        .bytes()
        .filter(|byte| matches!(byte, b'%' | b'{'))
        .count();
    let longest = args
        .into_iter()
        .flatten()
        .map(|value| text_length(Some(value)).max(size(value).saturating_mul(32)))
        .max();
    let each = widest.saturating_add(longest.unwrap_or(0));
    pattern
        .len()
        .saturating_add(directives.saturating_mul(each))
}

/// Python's methods.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    session::work(size(value))?;
    let most = match (value.kind(), name) {
        (ValueKind::String, "replace") => replaced(Some(value), args.first(), args.get(1)),
        (ValueKind::String, "join") => joined(args.first(), text_length(Some(value)))?,
        (ValueKind::String, "format") => formatted(value.as_str().unwrap_or_default(), Some(args)),
        (ValueKind::String, "split" | "splitlines") => text_length(Some(value)).saturating_mul(8),
        (ValueKind::String, _) => text_length(Some(value)),
        _ => 0,
    };
    session::bytes(most)?;
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}
