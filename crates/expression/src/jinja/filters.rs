//! Filters and methods for Jinja.
//! They are those of TEA, those of Jinja2 that minijinja does not have, and limited versions of those whose result
//! may be much larger than their input.

use super::arguments::{ONLY_FORM, arrange};
use super::operators::{check_order, comparable, size};
use super::python::{self, Json};
use super::{object, session, text};
use crate::over_memory_json;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA256, digest};
use std::sync::LazyLock;
use windlass_value::hex;

/// minijinja's own filters, which the limited versions call.
static BUILTIN: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    minijinja_contrib::add_to_environment(&mut engine);
    engine
});

/// The characters that are escaped in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');
/// The characters that are escaped in other parts of a URL.
const PATH: &AsciiSet = &QUERY.remove(b'/');

pub(super) fn register(engine: &mut Environment<'static>) {
    minijinja_contrib::add_to_environment(engine);
    engine.add_filter("tojson", tojson);
    engine.add_filter("json", json);
    engine.add_filter("fromjson", fromjson);
    engine.add_filter("sha256", |value: Value| {
        let text = python::str(&value)?;
        session::work(text.len() / 16)?;
        Ok::<_, Error>(hex(digest(&SHA256, text.as_bytes()).as_ref()))
    });
    engine.add_filter("string", |value: Value| python::str(&value));
    engine.add_filter("truncate", truncate);
    engine.add_filter("int", int);
    engine.add_filter("float", float);
    for name in ["escape", "e", "forceescape"] {
        engine.add_filter(name, move |value: Value| {
            if value.is_safe() && name != "forceescape" {
                return Ok(value);
            }
            let text = python::str(required_argument(Some(&value))?)?;
            session::bytes(text.len().saturating_mul(5))?;
            Ok::<_, Error>(Value::from_safe_string(text::escape(&text)))
        });
    }
    engine.add_filter("pprint", |value: Value| python::pprint(&value));
    for name in ONLY_FORM {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            call(name, args.0, &kwargs)
        });
    }
    engine.add_test("iterable", |value: Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
    engine.add_test("sequence", |value: Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::String | ValueKind::Map
        )
    });
    engine.add_filter("wordcount", wordcount);
    engine.add_filter("urlencode", urlencode);
    for name in [
        "replace", "join", "indent", "format", "batch", "slice", "center",
    ] {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            bounded(name, &args, &kwargs)
        });
    }
    // The list that these filters return needs memory, so its elements are counted.
    for name in [
        "list", "unique", "reverse", "items", "split", "lines", "dictsort",
    ] {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            charge_list(args.first())?;
            call(name, args.0, &kwargs)
        });
    }
    for name in ["sort", "max", "min"] {
        engine.add_filter(name, move |args: Rest<Value>, kwargs: Kwargs| {
            ordering(name, &args, &kwargs)
        });
    }
    engine.add_filter("map", map);
    engine.add_function("cycler", |values: Rest<Value>| {
        minijinja_contrib::globals::cycler(values.0)
    });
    engine.add_function("range", |state: &mut State<'_, '_>, args: Rest<Value>| {
        let _ = state;
        // minijinja's calculation of the length would overflow.
        let is_large = |number: i64| number.unsigned_abs() > 1 << 60;
        let numbers = args.iter().flat_map(|arg| i64::try_from(arg.clone()));
        if numbers.into_iter().any(is_large) {
            let message = "`range` needs numbers of at most 60 bits";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        let range = BUILTIN
            .empty_state()
            .lookup("range")
            .ok_or_else(|| Error::from(ErrorKind::UnknownFunction))?
            .call(&mut BUILTIN.empty_state(), &args.0)?;
        session::work(range.len().unwrap_or(0))?;
        Ok::<_, Error>(range)
    });
    // `debug` is removed, because it would print every existing name.
    engine.remove_global("debug");
    engine.set_unknown_method_callback(method);
}

/// Calls a filter of minijinja. The arguments may have any form that Jinja2 accepts.
fn call(name: &str, args: Vec<Value>, kwargs: &Kwargs) -> Result<Value, Error> {
    let mut args = args.into_iter();
    let mut all: Vec<Value> = args.next().into_iter().collect();
    let (by_position, named) = arrange(name, args.as_slice(), kwargs)?;
    all.extend(by_position);
    if named.args().next().is_some() {
        all.push(Value::from(named));
    }
    BUILTIN.empty_state().apply_filter(name, &all)
}

/// Implements `map`. minijinja would not pass named arguments to the filter.
fn map(
    state: &mut State<'_, '_>,
    value: Value,
    args: Rest<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let Some((name, args)) = args.split_first() else {
        return call("map", vec![value], &kwargs);
    };
    let Some(name) = name.as_str() else {
        let message = "`map` needs the name of a filter";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    let mut given = args.to_vec();
    if kwargs.args().next().is_some() {
        given.push(Value::from(kwargs));
    }
    let items = required_argument(Some(&value))?.try_iter()?.checked();
    let mapped = items.map(|item| {
        let all: Vec<Value> = std::iter::once(item?)
            .chain(given.iter().cloned())
            .collect();
        state.apply_filter(name, &all)
    });
    mapped.collect::<Result<Vec<_>, _>>().map(Value::from)
}

/// Implements `sort`, `max` and `min`.
fn ordering(name: &str, args: &[Value], kwargs: &Kwargs) -> Result<Value, Error> {
    charge_list(args.first())?;
    let (values, args) = match args.split_first() {
        Some((values, args)) => (values.clone(), args),
        None => return call(name, Vec::new(), kwargs),
    };
    let (args, kwargs) = arrange(name, args, kwargs)?;
    let attribute = kwargs.peek::<Value>("attribute").ok();
    let mut columns = Vec::new();
    for key in keys(name, &values, attribute.as_ref())? {
        check_order(name, key.iter().cloned())?;
        columns.push(key);
    }
    let has_bool = |key: &Vec<Value>| key.iter().any(|value| value.kind() == ValueKind::Bool);
    if columns.iter().any(has_bool) {
        return ordered_rows(name, &values, columns, &kwargs);
    }
    let values = match name {
        "max" => reversed(&values)?,
        _ => values,
    };
    let all = std::iter::once(values).chain(args).collect();
    call(name, all, &kwargs)
}

/// Returns the values in reverse order, because minijinja returns the last of several equal values, and Jinja2 the
/// first.
fn reversed(values: &Value) -> Result<Value, Error> {
    let items: Result<Vec<Value>, Error> = values.try_iter()?.checked().collect();
    Ok(items?.into_iter().rev().collect())
}

/// Orders values by keys of which some are booleans. minijinja does not compare these with numbers. So the filter is
/// applied to rows, each with its keys and its value.
fn ordered_rows(
    name: &str,
    values: &Value,
    columns: Vec<Vec<Value>>,
    kwargs: &Kwargs,
) -> Result<Value, Error> {
    let value_index = columns.len();
    let mut rows = Vec::new();
    for (index, value) in values.try_iter()?.checked().enumerate() {
        session::bytes((value_index + 1).saturating_mul(size_of::<Value>()))?;
        let keys = columns.iter().filter_map(|column| column.get(index));
        let mut row: Vec<Value> = keys.map(comparable).collect();
        row.push(value?);
        rows.push(Value::from(row));
    }
    let rows = match name {
        "max" => reversed(&Value::from(rows))?,
        _ => Value::from(rows),
    };
    let places: Vec<String> = (0..value_index).map(|index| index.to_string()).collect();
    let mut named = vec![("attribute", Value::from(places.join(",")))];
    for key in kwargs.args().filter(|key| *key != "attribute") {
        named.push((key, kwargs.peek(key)?));
    }
    let ordered = call(name, vec![rows], &Kwargs::from_iter(named))?;
    match name {
        "sort" => {
            let rows = ordered.try_iter()?.checked();
            let values = rows.map(|row| row?.get_item_by_index(value_index));
            Ok(Value::from(values.collect::<Result<Vec<_>, _>>()?))
        }
        _ => ordered.get_item_by_index(value_index),
    }
}

/// Returns the keys that a filter with an order compares: the elements themselves, or one list for each attribute.
fn keys(name: &str, values: &Value, attribute: Option<&Value>) -> Result<Vec<Vec<Value>>, Error> {
    if values.kind() == ValueKind::String {
        return Ok(Vec::new());
    }
    let Some(attribute) = attribute.filter(|attribute| !attribute.is_none()) else {
        // A value that is not a list is reported by the filter itself.
        let values = values.try_iter().map(Iterator::collect);
        return Ok(vec![values.unwrap_or_default()]);
    };
    let text = attribute.as_str().unwrap_or_default();
    let attributes: Vec<&str> = match name {
        "sort" => text.split(',').map(str::trim).collect(),
        _ => vec![text],
    };
    attributes
        .into_iter()
        .filter(|attribute| !attribute.is_empty())
        .map(|attribute| {
            let named = Kwargs::from_iter([("attribute", Value::from(attribute))]);
            let mapped = call("map", vec![values.clone()], &named)?;
            Ok(mapped.try_iter()?.collect())
        })
        .collect()
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
    let style = Json {
        html: true,
        is_sorted: true,
        indent: indent_of(indent)?,
    };
    python::json(&value, style)
}

/// Implements `json`: `json.dumps` with its arguments `indent` and `sort_keys`.
fn json(value: Value, kwargs: Kwargs) -> Result<String, Error> {
    let is_sorted: Option<Value> = kwargs.get("sort_keys")?;
    let style = Json {
        html: false,
        is_sorted: is_sorted.is_some_and(|sorted| sorted.is_true()),
        indent: indent_of(kwargs.get("indent")?)?,
    };
    kwargs.assert_all_used()?;
    python::json(&value, style)
}

fn indent_of(given: Option<Value>) -> Result<Option<usize>, Error> {
    let given = given.filter(|given| !given.is_none());
    given
        .map(|given| Ok(usize::try_from(given)?.min(64)))
        .transpose()
}

/// Counts the words of a text. As in Jinja2, a word has letters, digits and underscores.
fn wordcount(value: Value) -> Result<usize, Error> {
    let text = python::str(required_argument(Some(&value))?)?;
    session::work(text.len() / 16)?;
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Ok(words.filter(|word| !word.is_empty()).count())
}

/// Escapes a text for a URL. A map or a list of pairs becomes a query.
fn urlencode(value: Value) -> Result<String, Error> {
    let escaped = |value: &Value, set: &'static AsciiSet| {
        let text = python::str(required_argument(Some(value))?)?;
        session::bytes(text.len().saturating_mul(3))?;
        Ok::<_, Error>(utf8_percent_encode(&text, set).to_string())
    };
    let pairs = match value.kind() {
        ValueKind::Map => call("items", vec![value], &no_kwargs())?,
        ValueKind::Seq | ValueKind::Iterable => value,
        _ => return escaped(&value, PATH),
    };
    let mut query = Vec::new();
    for pair in pairs.try_iter()?.checked() {
        let pair = pair?;
        let mut parts = pair.try_iter()?.checked();
        let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
            let message = "`urlencode` of a list needs pairs: [['key', 'value']]";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        };
        let (key, value) = (escaped(&key?, QUERY)?, escaped(&value?, QUERY)?);
        query.push(format!("{key}={value}").replace("%20", "+"));
    }
    Ok(query.join("&"))
}

/// Parses JSON text. As in TEA, text that is not JSON is returned unchanged.
fn fromjson(value: Value) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return Ok(value);
    };
    session::bytes(text.len().saturating_mul(2))?;
    if let Some(reason) = over_memory_json(text.as_bytes()) {
        let message = format!("`fromjson`: its values would {reason}");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    session::spend(text.len() / 4)?;
    match crate::Value::from_json(text) {
        Ok(parsed) => Ok(object::to_jinja(&parsed, false)),
        Err(_) => Ok(value),
    }
}

fn center(text: &str, width: usize) -> Result<Value, Error> {
    session::bytes(width)?;
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2;
    Ok(Value::from(format!(
        "{}{text}{}",
        " ".repeat(left),
        " ".repeat(missing - left)
    )))
}

fn text_length(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, str::len)
}

/// Implements `truncate`. The arguments are positional or named: length, killwords, end, leeway.
fn truncate(args: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let text = python::str(required_argument(args.first())?)?;
    if args.len() > 5 {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let argument = |index: usize, name: &str| match args.get(index) {
        Some(value) => Ok(Some(value.clone())),
        None => kwargs.get::<Option<Value>>(name),
    };
    let number = |value: Option<Value>, default: usize| match value {
        Some(value) => usize::try_from(value),
        None => Ok(default),
    };
    let length = number(argument(1, "length")?, 255)?;
    let kill = argument(2, "killwords")?.is_some_and(|kill| kill.is_true());
    let end = argument(3, "end")?;
    let end = end.as_ref().and_then(Value::as_str).unwrap_or("...");
    let leeway = number(argument(4, "leeway")?, 5)?;
    kwargs.assert_all_used()?;
    session::bytes(text.len().saturating_mul(4))?;
    Ok(text::truncate(&text, length, kill, end, leeway))
}

/// Returns the argument of a filter. An undefined name or member is an error, although minijinja would accept it
/// here.
fn required_argument(value: Option<&Value>) -> Result<&Value, Error> {
    value
        .filter(|value| !value.is_undefined())
        .ok_or_else(|| Error::from(ErrorKind::UndefinedError))
}

/// Returns a value as a whole number.
/// A text may begin with the number. If there is no number, returns the default.
fn int(
    value: Value,
    default: Option<Value>,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(kwargs.get("default")?);
    let base = base.or(kwargs.get("base")?).unwrap_or(10);
    kwargs.assert_all_used()?;
    required_argument(Some(&value))?;
    let otherwise = || default.unwrap_or_else(|| Value::from(0));
    match value.kind() {
        ValueKind::String => {
            let number = value.as_str().and_then(|text| text::int(text, base));
            Ok(number.map_or_else(otherwise, Value::from))
        }
        ValueKind::None => Ok(otherwise()),
        _ => Ok(call("int", vec![value], &no_kwargs()).unwrap_or_else(|_| otherwise())),
    }
}

fn float(value: Value, default: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = default.or(kwargs.get("default")?);
    kwargs.assert_all_used()?;
    required_argument(Some(&value))?;
    let number = match value.as_str() {
        Some(text) => text::float(text).map(Value::from),
        None if value.is_none() => None,
        None => call("float", vec![value], &no_kwargs()).ok(),
    };
    Ok(number.unwrap_or_else(|| default.unwrap_or_else(|| Value::from(0.0))))
}

fn no_kwargs() -> Kwargs {
    Kwargs::from_iter(Vec::<(&str, Value)>::new())
}

/// Counts the maximum size of a filter's result, before the filter runs.
fn bounded(name: &str, args: &[Value], kwargs: &Kwargs) -> Result<Value, Error> {
    let (value, args) = match args.split_first() {
        Some((value, args)) => (value, args),
        None => return Err(Error::from(ErrorKind::MissingArgument)),
    };
    let (mut args, kwargs) = arrange(name, args, kwargs)?;
    let mut value = value.clone();
    if let ("format", Some(pattern)) = (name, value.as_str())
        && pattern.contains('*')
    {
        let message = "`*` in a format needs an integer before its value";
        let error = || Error::new(ErrorKind::InvalidOperation, message);
        value = Value::from(text::with_widths(pattern, &mut args).ok_or_else(error)?);
    }
    let first = args.first().filter(|given| !given.is_undefined());
    let number = |given: Option<&Value>| given.and_then(Value::as_usize).unwrap_or(0);
    let most = match name {
        "replace" => replaced(Some(&value), first, args.get(1)),
        "join" => joined(Some(&value), text_length(first))?,
        "format" => {
            let pattern = value.as_str().unwrap_or_default();
            text::check_count(pattern, &args)?;
            formatted(pattern, '%', &args)?
        }
        "indent" => {
            let lines = value.as_str().map_or(1, |text| text.split('\n').count());
            let width = number(first).max(text_length(first)).max(4);
            text_length(Some(&value)).saturating_add(width.saturating_mul(lines))
        }
        _ => {
            let items = value.len().unwrap_or(0);
            number(first)
                .saturating_add(items)
                .saturating_mul(size_of::<Value>())
        }
    };
    session::bytes(most)?;
    let is_set = |index: usize| args.get(index).is_some_and(Value::is_true);
    let text = value.as_str();
    match (name, &*args) {
        ("replace", [old, new, count]) if !count.is_none() => {
            if let (Some(text), Some(old), Some(new)) = (text, old.as_str(), new.as_str()) {
                let count = usize::try_from(count.clone())?;
                return Ok(Value::from(text.replacen(old, new, count)));
            }
        }
        ("center", [_, _, ..]) => return Err(Error::from(ErrorKind::TooManyArguments)),
        ("center", _) => {
            let text = python::str(required_argument(Some(&value))?)?;
            let width = first.map(|width| usize::try_from(width.clone()));
            return center(&text, width.transpose()?.unwrap_or(80));
        }
        ("indent", [_, _, _, _, ..]) => return Err(Error::from(ErrorKind::TooManyArguments)),
        ("indent", _) => {
            let text = python::str(required_argument(Some(&value))?)?;
            let with = match first {
                Some(width) => match width.as_str() {
                    Some(prefix) => prefix.to_owned(),
                    None => " ".repeat(usize::try_from(width.clone())?),
                },
                None => " ".repeat(4),
            };
            return Ok(Value::from(text::indent(
                &text,
                &with,
                is_set(1),
                is_set(2),
            )));
        }
        _ => {}
    }
    let all = std::iter::once(value).chain(args).collect();
    call(name, all, &kwargs)
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

/// Returns the maximum size of a formatted text.
/// Each directive may write the largest number in the pattern (as a width) and all arguments. `mark` begins a directive.
fn formatted(pattern: &str, mark: char, args: &[Value]) -> Result<usize, Error> {
    text::check_precision(pattern, mark)?;
    let mut widest = 0_usize;
    let mut number = 0_usize;
    for byte in pattern.bytes() {
        number = match byte {
            b'0'..=b'9' => number
                .saturating_mul(10)
                .saturating_add(usize::from(byte - b'0')),
            _ => 0,
        };
        widest = widest.max(number);
    }
    let directives = pattern
        .bytes()
        .filter(|byte| matches!(byte, b'%' | b'{'))
        .count();
    let longest = args
        .iter()
        .map(|value| text_length(Some(value)).max(size(value).saturating_mul(32)))
        .max();
    let each = widest.saturating_add(longest.unwrap_or(0));
    let most = directives.saturating_mul(each);
    Ok(pattern.len().saturating_add(most))
}

fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    session::work(size(value))?;
    let arranged;
    let args = match args.split_last() {
        Some((last, before)) if last.is_kwargs() && value.kind() == ValueKind::String => {
            let (mut by_position, named) = arrange(name, before, &Kwargs::try_from(last.clone())?)?;
            if named.args().next().is_some() {
                by_position.push(Value::from(named));
            }
            arranged = by_position;
            &arranged
        }
        _ => args,
    };
    let most = match (value.kind(), name) {
        (ValueKind::String, "replace") => replaced(Some(value), args.first(), args.get(1)),
        (ValueKind::String, "join") => joined(args.first(), text_length(Some(value)))?,
        (ValueKind::String, "format") => formatted(value.as_str().unwrap_or_default(), '{', args)?,
        (ValueKind::String, "split" | "splitlines") => text_length(Some(value)).saturating_mul(8),
        (ValueKind::String, _) => text::grows_to(value.as_str().unwrap_or_default(), name, args),
        _ => 0,
    };
    session::bytes(most)?;
    let own = match value.kind() {
        ValueKind::String => text::method(value.as_str().unwrap_or_default(), name, args),
        ValueKind::Seq => text::list_method(value, name, args),
        _ => None,
    };
    if let Some(outcome) = own {
        return outcome;
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}
