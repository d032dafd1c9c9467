//! Functions of deployment expressions on objects, arrays and text.
//! They are those that WDL does not have or defines differently.

use super::functions::{as_text, member};
use std::sync::Arc;
use windlass_expression::{Object, Value};

/// Calls a function of this module.
/// Returns `None` if the function, or its form with these arguments, is not in this module.
pub(super) fn call(name: &str, lower: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
    Ok(Some(match (lower, arguments) {
        ("contains", [Value::Object(map), key]) => {
            let key = as_text(key);
            let same = |own: &Arc<str>| own.eq_ignore_ascii_case(&key);
            Value::Bool(map.keys().any(same))
        }
        ("contains", [Value::String(text), part @ Value::Int(_)]) => {
            Value::Bool(text.contains(&as_text(part)))
        }
        ("createobject", pairs) if pairs.len() % 2 == 1 => {
            let given = pairs.len();
            return Err(format!(
                "`{name}` needs keys and values in turn, and has {given} arguments"
            ));
        }
        ("createobject", pairs) => {
            let pairs = pairs.chunks(2).filter_map(|pair| match pair {
                [key, value] => Some((Arc::from(as_text(key)), value.clone())),
                _ => None,
            });
            Value::object(pairs.collect())
        }
        ("flatten", [Value::Array(lists)]) => {
            let items = lists.iter().filter_map(Value::as_array).flatten();
            Value::array(items.cloned().collect())
        }
        ("items", [Value::Object(map)]) => {
            let pair = |(key, value): (&Arc<str>, &Value)| {
                Value::from_pairs([("key", Value::text(&**key)), ("value", value.clone())])
            };
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| (*key).clone());
            Value::array(pairs.into_iter().map(pair).collect())
        }
        ("length", [Value::Object(map)]) => {
            Value::Int(i64::try_from(map.len()).unwrap_or(i64::MAX))
        }
        ("objectkeys", [Value::Object(map)]) => {
            Value::array(map.keys().map(|key| Value::text(&**key)).collect())
        }
        ("shallowmerge", [Value::Array(maps)]) => {
            let maps = maps.iter().filter_map(Value::as_object);
            let members = maps.flat_map(Object::iter);
            Value::object(
                members
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        ("skip", [Value::String(text), Value::Int(count)]) => {
            Value::text(text.chars().skip(at_least_none(*count)).collect::<String>())
        }
        ("split", [Value::String(text), Value::Array(by)]) => split_by_any(text, by),
        ("take", [Value::String(text), Value::Int(count)]) => {
            Value::text(text.chars().take(at_least_none(*count)).collect::<String>())
        }
        ("tryget", [base, keys @ ..]) => {
            let found = keys
                .iter()
                .try_fold(base.clone(), |base, key| member(&base, key, true));
            found?
        }
        ("indexfromend" | "tryindexfromend", [Value::Array(items), Value::Int(back)]) => {
            let at = items.len().checked_sub(at_least_none(*back));
            match at.and_then(|at| items.get(at)) {
                Some(item) => item.clone(),
                None if lower == "tryindexfromend" => Value::Null,
                None => {
                    let count = items.len();
                    return Err(format!(
                        "`{name}` asks for item {back} from the end, of {count}"
                    ));
                }
            }
        }
        ("union", [first @ Value::Object(_), rest @ ..])
            if rest.iter().all(|value| value.as_object().is_some()) =>
        {
            rest.iter().fold(first.clone(), merged)
        }
        _ => return Ok(None),
    }))
}

/// Converts a count. A negative count becomes 0.
fn at_least_none(count: i64) -> usize {
    usize::try_from(count.max(0)).unwrap_or(usize::MAX)
}

/// Splits a text at each of several separators.
fn split_by_any(text: &str, by: &[Value]) -> Value {
    let by: Vec<&str> = by
        .iter()
        .filter_map(Value::as_str)
        .filter(|one| !one.is_empty())
        .collect();
    let (mut parts, mut rest) = (Vec::new(), text);
    let next = |rest: &str| {
        let found = by.iter().filter_map(|one| Some((rest.find(one)?, *one)));
        found.min_by_key(|(at, _)| *at)
    };
    while let Some((at, one)) = next(rest) {
        let (part, behind) = rest.split_at(at);
        parts.push(Value::text(part));
        rest = behind.strip_prefix(one).unwrap_or_default();
    }
    parts.push(Value::text(rest));
    Value::array(parts)
}

/// Merges two objects recursively. If two values of a key are not both objects, the value of `later` is used.
fn merged(first: Value, later: &Value) -> Value {
    let (Value::Object(first), Value::Object(later)) = (&first, later) else {
        return later.clone();
    };
    let mut all = first.as_ref().clone();
    for (key, value) in later.iter() {
        let value = match all.get(key) {
            Some(own) => merged(own.clone(), value),
            None => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    Value::object(all)
}
