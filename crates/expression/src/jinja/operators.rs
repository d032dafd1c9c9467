//! The operations that [`super::rewrite`] inserts into templates.
//! They work as in Python, and count their work against the limits of the evaluation. Their last two arguments are the
//! names of the operands, for errors.

use super::{python, session};
use crate::MAX_DEPTH;
use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use std::cmp::Ordering;

/// A test of an order, such as `<=`.
type OrderTest = fn(Ordering) -> bool;

pub(super) fn register(engine: &mut Environment<'static>) {
    let orders: [(&str, &str, OrderTest); 4] = [
        ("__lt", "<", Ordering::is_lt),
        ("__le", "<=", Ordering::is_le),
        ("__gt", ">", Ordering::is_gt),
        ("__ge", ">=", Ordering::is_ge),
    ];
    for (name, op, holds) in orders {
        engine.add_filter(name, move |a: Value, b: Value, x: &str, y: &str| {
            Ok::<_, Error>(holds(order(op, &a, &b, x, y)?))
        });
    }
    engine.add_filter("__eq", |a: Value, b: Value, x: &str, y: &str| {
        equal(&a, &b, x, y)
    });
    engine.add_filter("__ne", |a: Value, b: Value, x: &str, y: &str| {
        Ok::<_, Error>(!equal(&a, &b, x, y)?)
    });
    engine.add_filter("__in", |a: Value, b: Value, x: &str, y: &str| {
        defined(&a, x)?;
        defined(&b, y)?;
        contains(&a, &b)
    });
    engine.add_filter("__add", add);
    engine.add_filter("__mul", multiply);
    engine.add_filter("__mod", remainder);
    engine.add_filter("__cat", |a: Value, b: Value, x: &str, y: &str| {
        defined(&a, x)?;
        defined(&b, y)?;
        let mut out = String::new();
        python::push_str(&mut out, &a)?;
        python::push_str(&mut out, &b)?;
        Ok::<_, Error>(out)
    });
    engine.add_filter("__count", |value: Value| {
        session::work(size(&value))?;
        Ok::<_, Error>(value)
    });
    // `each` is the work of one iteration of a loop, or in `__tick` of one call of a macro.
    engine.add_filter("__loop", |value: Value, each: usize| {
        session::spend(size(&value).saturating_mul(each))?;
        Ok::<_, Error>(value)
    });
    engine.add_filter("__tick", |value: Value, each: usize| {
        session::spend(each)?;
        Ok::<_, Error>(value)
    });
    engine.add_filter("__keep", |value: Value| {
        let value = listed(value)?;
        nesting(&value)?;
        Ok::<_, Error>(value)
    });
    engine.add_filter("__raw", |value: Value| value);
    engine.add_filter("__slice", slice);
    // The built-in test would read attributes of the operands, and a lenient map (see `object`) seems to have every
    // key. So the tests are replaced.
    for name in ["eq", "equalto", "=="] {
        engine.add_test(name, |a: Value, b: Value| {
            compared(&a, &b)?;
            Ok::<_, Error>(a == b)
        });
    }
    for name in ["ne", "!="] {
        engine.add_test(name, |a: Value, b: Value| {
            compared(&a, &b)?;
            Ok::<_, Error>(a != b)
        });
    }
    let orders: [(&[&str], OrderTest); 4] = [
        (&["lt", "lessthan", "<"], Ordering::is_lt),
        (&["le", "<="], Ordering::is_le),
        (&["gt", "greaterthan", ">"], Ordering::is_gt),
        (&["ge", ">="], Ordering::is_ge),
    ];
    for (names, holds) in orders {
        for name in names {
            engine.add_test(*name, move |a: Value, b: Value| {
                compared(&a, &b)?;
                Ok::<_, Error>(holds(a.cmp(&b)))
            });
        }
    }
    engine.add_test("in", |item: Value, all: Value| contains(&item, &all));
    engine.add_test("divisibleby", |value: Value, by: Value| {
        let rest = rest(&value, &by).transpose()?;
        Ok::<_, Error>(rest.is_some_and(|rest| !rest.is_true()))
    });
}

/// Implements `value[start:stop:step]`.
/// minijinja's own implementation fails on an empty value if the step is negative, and returns a lazy sequence, which is
/// no list. And minijinja does not find the names that a slice reads.
fn slice(
    value: &Value,
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Result<Value, Error> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(invalid(String::from("slice step cannot be zero")));
    }
    session::work(size(value))?;
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::String => {
            let letters: Vec<char> = value.as_str().unwrap_or_default().chars().collect();
            let taken = places(start, stop, step, letters.len());
            Ok(Value::from(
                taken.filter_map(|at| letters.get(at)).collect::<String>(),
            ))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let taken = places(start, stop, step, items.len());
            let taken: Vec<Value> = taken.filter_map(|at| items.get(at).cloned()).collect();
            Ok(match value.is_tuple() {
                true => Value::from(Tuple::from(taken)),
                false => Value::from(taken),
            })
        }
        kind => Err(invalid(format!("value of type {kind} cannot be sliced"))),
    }
}

/// Returns the indices that a slice selects from `length` elements, by Python's rules.
fn places(
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
    length: usize,
) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (lowest, highest) = match step > 0 {
        true => (0, length),
        false => (-1, length - 1),
    };
    let within = |place: i64| {
        let from_the_end = if place < 0 { length } else { 0 };
        place.saturating_add(from_the_end).clamp(lowest, highest)
    };
    let (first, end) = match step > 0 {
        true => (lowest, highest),
        false => (highest, lowest),
    };
    let (first, end) = (start.map_or(first, within), stop.map_or(end, within));
    let more = move |at: &i64| if step > 0 { *at < end } else { *at > end };
    std::iter::successors(Some(first).filter(more), move |at| {
        at.checked_add(step).filter(more)
    })
    .filter_map(|at| usize::try_from(at).ok())
}

/// Returns true if an operation did not accept the types of its operands, which is a `TypeError` in Python.
pub(super) fn is_ill_typed(error: &Error) -> bool {
    let words = ["` does not compare ", "` does not accept ", "`in` looks "];
    let says = |detail: &str| words.iter().any(|word| detail.contains(word));
    error.kind() == ErrorKind::InvalidOperation && error.detail().is_some_and(says)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Returns about how many elements an operation on the value inspects. 16 bytes of text count as one element.
pub(super) fn size(value: &Value) -> usize {
    match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len) / 16,
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => value.len().unwrap_or(1),
        _ => 1,
    }
}

fn defined(value: &Value, name: &str) -> Result<(), Error> {
    if !value.is_undefined() {
        return Ok(());
    }
    Err(match name {
        "" => Error::from(ErrorKind::UndefinedError),
        name => Error::new(
            ErrorKind::UndefinedError,
            format!("`{name}` is not defined"),
        ),
    })
}

/// Returns the kind of a value, in words.
pub(super) fn kind_of(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => "none".to_owned(),
        kind => format!("a {kind}"),
    }
}

/// Returns the name and the kind of an operand for a message. Without a name, returns only the kind.
fn named(value: &Value, name: &str) -> String {
    let kind = kind_of(value);
    if name.is_empty() {
        kind
    } else {
        format!("`{name}` ({kind})")
    }
}

/// Converts a boolean to 1 or 0, because Python's booleans equal these numbers in a comparison. Returns any other value
/// unchanged.
pub(super) fn comparable(value: &Value) -> Value {
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        _ => value.clone(),
    }
}

fn order(op: &str, a: &Value, b: &Value, x: &str, y: &str) -> Result<Ordering, Error> {
    defined(a, x)?;
    defined(b, y)?;
    let (left, right) = (comparable(a), comparable(b));
    if !has_order(&left, &right) {
        let (one, other) = (named(a, x), named(b, y));
        return Err(invalid(format!(
            "`{op}` does not compare {one} and {other}"
        )));
    }
    compared(&left, &right)?;
    Ok(left.cmp(&right))
}

fn has_order(left: &Value, right: &Value) -> bool {
    let sequence = |kind| matches!(kind, ValueKind::Seq | ValueKind::Iterable);
    match (left.kind(), right.kind()) {
        (ValueKind::Number, ValueKind::Number) | (ValueKind::String, ValueKind::String) => true,
        (one, other) => sequence(one) && sequence(other),
    }
}

/// Returns an error if a filter would compare values that Python does not compare, for example a text and a number.
pub(super) fn check_order(
    filter: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<(), Error> {
    let mut values = values.into_iter();
    let Some(first) = values.next() else {
        return Ok(());
    };
    match values.find(|value| !has_order(&comparable(&first), &comparable(value))) {
        None => Ok(()),
        Some(other) => Err(invalid(format!(
            "`{filter}` does not compare {} and {}",
            kind_of(&first),
            kind_of(&other)
        ))),
    }
}

fn equal(a: &Value, b: &Value, x: &str, y: &str) -> Result<bool, Error> {
    defined(a, x)?;
    defined(b, y)?;
    compared(a, b)?;
    Ok(comparable(a) == comparable(b))
}

/// Counts the work of comparing two values. A comparison reads at most the size of the smaller one.
fn compared(a: &Value, b: &Value) -> Result<(), Error> {
    let nests = |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::Map | ValueKind::Iterable
        )
    };
    if !nests(a) || !nests(b) {
        return session::work(size(a).min(size(b)));
    }
    let (left, right) = (size(a), size(b));
    charge_nested(if left <= right { a } else { b }, 0)
}

/// Counts all elements in a value, at any depth.
fn charge_nested(value: &Value, depth: usize) -> Result<(), Error> {
    session::work(size(value))?;
    let map = value.kind() == ValueKind::Map;
    let nests = map || matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !nests || depth > MAX_DEPTH {
        return Ok(());
    }
    for item in value.try_iter()?.checked() {
        let item = item?;
        let inner = if map { value.get_item(&item)? } else { item };
        if inner.as_object().is_some() || inner.as_str().is_some_and(|text| text.len() > 64) {
            charge_nested(&inner, depth + 1)?;
        }
    }
    Ok(())
}

fn contains(item: &Value, all: &Value) -> Result<bool, Error> {
    session::work(size(all))?;
    match all.kind() {
        ValueKind::String => match (all.as_str(), item.as_str()) {
            (Some(text), Some(part)) => Ok(text.contains(part)),
            _ => Err(invalid(format!(
                "`in` looks for text in text, not for {}",
                named(item, "")
            ))),
        },
        ValueKind::Map => super::object::has_key(all, item),
        ValueKind::Seq | ValueKind::Iterable => {
            for element in all.try_iter()?.checked() {
                let element = element?;
                compared(&element, item)?;
                if comparable(&element) == comparable(item) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Err(invalid(format!(
            "`in` looks in text, lists and maps, not in {}",
            named(all, "")
        ))),
    }
}

/// Converts a lazy sequence to a list when it is assigned to a variable.
/// Otherwise, lazy sequences could contain each other so deep that evaluating them recurses too deep.
fn listed(value: Value) -> Result<Value, Error> {
    let known = !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
        || value.is_tuple()
        || value.downcast_object_ref::<Vec<Value>>().is_some()
        || super::object::is_list(&value);
    if known {
        return Ok(value);
    }
    let mut items = Vec::new();
    elements(&value, &mut items)?;
    Ok(Value::from(items))
}

/// Refuses a value that is nested too deep, because dropping it would recurse too deep.
fn nesting(value: &Value) -> Result<(), Error> {
    let mut level = vec![value.clone()];
    for _ in 0..=MAX_DEPTH {
        let mut next = Vec::new();
        for container in level {
            let map = container.kind() == ValueKind::Map;
            let nests = map || matches!(container.kind(), ValueKind::Seq | ValueKind::Iterable);
            // Values from outside of the template were already checked when they were read from the file or the
            // store.
            if !nests || super::object::is_ours(&container) {
                continue;
            }
            session::work(container.len().unwrap_or(1))?;
            for item in container.try_iter()?.checked() {
                let item = item?;
                let inner = if map {
                    container.get_item(&item)?
                } else {
                    item
                };
                if inner.as_object().is_some() {
                    next.push(inner);
                }
            }
        }
        if next.is_empty() {
            return Ok(());
        }
        level = next;
    }
    Err(invalid(format!(
        "the value nests deeper than {MAX_DEPTH} levels"
    )))
}

fn int(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// Returns the result of a calculation with whole numbers. A result of more than 64 bits is an error.
fn whole(value: Option<i128>) -> Result<Value, Error> {
    let fitting = value.and_then(|value| i64::try_from(value).ok());
    fitting
        .map(Value::from)
        .ok_or_else(|| invalid("the result does not fit 64 bits".into()))
}

fn impossible(op: &str, a: &Value, b: &Value, x: &str, y: &str) -> Error {
    invalid(format!(
        "`{op}` does not accept {} and {}",
        named(a, x),
        named(b, y)
    ))
}

fn elements(value: &Value, into: &mut Vec<Value>) -> Result<(), Error> {
    session::bytes(value.len().unwrap_or(1).saturating_mul(size_of::<Value>()))?;
    for item in value.try_iter()?.checked() {
        into.push(item?);
    }
    Ok(())
}

fn add(a: Value, b: Value, x: &str, y: &str) -> Result<Value, Error> {
    defined(&a, x)?;
    defined(&b, y)?;
    let listed = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        session::bytes(left.len() + right.len())?;
        return Ok(Value::from(format!("{left}{right}")));
    }
    if let (Some(left), Some(right)) = (int(&a), int(&b)) {
        return whole(left.checked_add(right));
    }
    if let (Some(left), Some(right)) = (float(&a), float(&b)) {
        return Ok(Value::from(left + right));
    }
    if listed(&a) && listed(&b) {
        let mut all = Vec::new();
        elements(&a, &mut all)?;
        elements(&b, &mut all)?;
        return Ok(match a.is_tuple() && b.is_tuple() {
            true => Value::from(Tuple::from(all)),
            false => Value::from(all),
        });
    }
    Err(impossible("+", &a, &b, x, y))
}

fn multiply(a: Value, b: Value, x: &str, y: &str) -> Result<Value, Error> {
    defined(&a, x)?;
    defined(&b, y)?;
    if let (Some(left), Some(right)) = (int(&a), int(&b)) {
        return whole(left.checked_mul(right));
    }
    if let (Some(left), Some(right)) = (float(&a), float(&b)) {
        return Ok(Value::from(left * right));
    }
    let (repeated, times) = match (int(&a), int(&b)) {
        (None, Some(times)) => (&a, times),
        (Some(times), None) => (&b, times),
        _ => return Err(impossible("*", &a, &b, x, y)),
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    if let Some(text) = repeated.as_str() {
        session::bytes(text.len().saturating_mul(times))?;
        return Ok(Value::from(text.repeat(times)));
    }
    if !matches!(repeated.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(impossible("*", &a, &b, x, y));
    }
    let mut once = Vec::new();
    elements(repeated, &mut once)?;
    let length = once.len().saturating_mul(times);
    session::bytes(length.saturating_mul(size_of::<Value>()))?;
    let repeated = once.iter().cycle().take(length);
    Ok(Value::from(repeated.cloned().collect::<Vec<_>>()))
}

/// Implements `%`. For numbers, the remainder has the sign of the divisor. A text on the left is formatted as in
/// Python.
fn remainder(
    state: &mut State<'_, '_>,
    a: Value,
    b: Value,
    x: &str,
    y: &str,
) -> Result<Value, Error> {
    defined(&a, x)?;
    defined(&b, y)?;
    if a.as_str().is_some() {
        let mut arguments = vec![a];
        if b.is_tuple() {
            elements(&b, &mut arguments)?;
        } else {
            arguments.push(b);
        }
        return state.apply_filter("format", &arguments);
    }
    rest(&a, &b).unwrap_or_else(|| Err(impossible("%", &a, &b, x, y)))
}

/// Returns the remainder of a division. Returns `None` if one of the values is not a number.
fn rest(a: &Value, b: &Value) -> Option<Result<Value, Error>> {
    let zero = || invalid("the remainder of a division by zero".into());
    if let (Some(left), Some(right)) = (int(a), int(b)) {
        let Some(rest) = left.checked_rem(right) else {
            return Some(Err(zero()));
        };
        let wrong_sign = rest != 0 && (rest < 0) != (right < 0);
        return Some(whole(Some(if wrong_sign { rest + right } else { rest })));
    }
    let (left, right) = (float(a)?, float(b)?);
    if right == 0.0 {
        return Some(Err(zero()));
    }
    let rest = left % right;
    Some(Ok(Value::from(match rest == 0.0 {
        // Python gives the sign of the divisor to zero, too.
        true => 0.0_f64.copysign(right),
        false if (rest < 0.0) != (right < 0.0) => rest + right,
        false => rest,
    })))
}
