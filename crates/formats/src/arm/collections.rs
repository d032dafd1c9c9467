//! Functions of deployment expressions on objects, arrays and text, which WDL does not have or defines differently.

use super::functions::{as_text, member, wdl};
use std::sync::Arc;
use windlass_expression::{Object, Value};

type Checked = Result<(), String>;
type Computed = Result<Value, String>;

/// Makes the error for an argument of the wrong type.
fn wrong(name: &str, wanted: &str, value: &Value) -> String {
    format!("`{name}` needs {wanted}, and has {}", value.kind())
}

/// An object contains a key; a text contains a number. Other arguments are as in WDL.
pub(super) fn contains(arguments: &[Value]) -> Computed {
    match arguments {
        [Value::Object(map), key] => {
            let key = as_text(key);
            let same = |own: &Arc<str>| own.eq_ignore_ascii_case(&key);
            Ok(Value::Bool(map.keys().any(same)))
        }
        [Value::String(text), part @ Value::Int(_)] => {
            Ok(Value::Bool(text.contains(&as_text(part))))
        }
        _ => wdl("contains", arguments.to_vec()),
    }
}

pub(super) fn create_object(arguments: &[Value]) -> Computed {
    let (pairs, []) = arguments.as_chunks::<2>() else {
        let given = arguments.len();
        return Err(format!(
            "`createObject` needs keys and values in turn, and has {given} arguments"
        ));
    };
    let pairs = pairs.iter();
    let pairs = pairs.map(|[key, value]| (Arc::from(as_text(key)), value.clone()));
    Ok(Value::object(pairs.collect()))
}

pub(super) fn flatten(arguments: &[Value]) -> Computed {
    let lists = arguments
        .first()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let items = lists.filter_map(Value::as_array).flatten();
    Ok(Value::array(items.cloned().collect()))
}

pub(super) fn check_flatten(arguments: &[Value]) -> Checked {
    let is_list = |value: &Value| value.as_array().is_some();
    check_all(arguments, is_list, "flatten", "an array of arrays")
}

/// Refuses an argument that is not an array of values of this kind.
fn check_all(
    arguments: &[Value],
    is_valid: fn(&Value) -> bool,
    name: &str,
    wanted: &str,
) -> Checked {
    let is_wrong = |value: &&Value| value.as_array().is_none_or(|all| !all.iter().all(is_valid));
    match arguments.iter().find(is_wrong) {
        Some(value) => Err(wrong(name, wanted, value)),
        None => Ok(()),
    }
}

pub(super) fn items(arguments: &[Value]) -> Computed {
    let pair = |(key, value): (&Arc<str>, &Value)| {
        Value::from_pairs([("key", Value::text(&**key)), ("value", value.clone())])
    };
    let members = arguments.first().and_then(Value::as_object);
    let mut pairs: Vec<_> = members.into_iter().flat_map(Object::iter).collect();
    pairs.sort_by_key(|(key, _)| (*key).clone());
    Ok(Value::array(pairs.into_iter().map(pair).collect()))
}

pub(super) fn object_keys(arguments: &[Value]) -> Computed {
    let members = arguments.first().and_then(Value::as_object);
    let keys = members.into_iter().flat_map(Object::keys);
    Ok(Value::array(keys.map(|key| Value::text(&**key)).collect()))
}

pub(super) fn check_object(name: &str, arguments: &[Value]) -> Checked {
    match arguments.iter().find(|value| value.as_object().is_none()) {
        Some(value) => Err(wrong(name, "an object", value)),
        None => Ok(()),
    }
}

/// An object has a length, too.
pub(super) fn length(arguments: &[Value]) -> Computed {
    match arguments {
        [Value::Object(map)] => Ok(Value::Int(i64::try_from(map.len()).unwrap_or(i64::MAX))),
        _ => wdl("length", arguments.to_vec()),
    }
}

pub(super) fn shallow_merge(arguments: &[Value]) -> Computed {
    let maps = arguments
        .first()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let members = maps.filter_map(Value::as_object).flat_map(Object::iter);
    let members = members.map(|(key, value)| (key.clone(), value.clone()));
    Ok(Value::object(members.collect()))
}

pub(super) fn check_shallow_merge(arguments: &[Value]) -> Checked {
    let is_object = |value: &Value| value.as_object().is_some();
    check_all(arguments, is_object, "shallowMerge", "an array of objects")
}

/// A text without its first characters, which may be fewer than the count.
pub(super) fn skip(arguments: &[Value]) -> Computed {
    match arguments {
        [Value::String(text), Value::Int(count)] => Ok(Value::text(
            text.chars().skip(at_least_none(*count)).collect::<String>(),
        )),
        _ => wdl("skip", arguments.to_vec()),
    }
}

/// The first characters of a text, which may be fewer than the count.
pub(super) fn take(arguments: &[Value]) -> Computed {
    match arguments {
        [Value::String(text), Value::Int(count)] => Ok(Value::text(
            text.chars().take(at_least_none(*count)).collect::<String>(),
        )),
        _ => wdl("take", arguments.to_vec()),
    }
}

/// A text may be split at several separators.
pub(super) fn split(arguments: &[Value]) -> Computed {
    match arguments {
        [Value::String(text), Value::Array(by)] => Ok(split_by_any(text, by)),
        _ => wdl("split", arguments.to_vec()),
    }
}

pub(super) fn try_get(arguments: &[Value]) -> Computed {
    let (base, keys) = arguments.split_first().unwrap_or((&Value::Null, &[]));
    keys.iter()
        .try_fold(base.clone(), |base, key| member(&base, key, true))
}

pub(super) fn index_from_end(arguments: &[Value]) -> Computed {
    item_from_end(arguments).ok_or_else(|| {
        let back = arguments.get(1).and_then(Value::as_int).unwrap_or_default();
        let count = arguments
            .first()
            .and_then(Value::as_array)
            .map_or(0, |items| items.len());
        format!("`indexFromEnd` requests item {back} from the end, of {count}")
    })
}

pub(super) fn try_index_from_end(arguments: &[Value]) -> Computed {
    Ok(item_from_end(arguments).unwrap_or_default())
}

fn item_from_end(arguments: &[Value]) -> Option<Value> {
    let [Value::Array(items), Value::Int(back)] = arguments else {
        return None;
    };
    let index = items.len().checked_sub(at_least_none(*back))?;
    items.get(index).cloned()
}

pub(super) fn check_index(name: &str, arguments: &[Value]) -> Checked {
    match arguments {
        [items, back] if items.as_array().is_none() || back.as_int().is_none() => {
            Err(wrong(name, "an array and a whole number", items))
        }
        _ => Ok(()),
    }
}

/// Objects are merged recursively.
pub(super) fn union(arguments: &[Value]) -> Computed {
    match arguments {
        [first, rest @ ..] if arguments.iter().all(|value| value.as_object().is_some()) => {
            Ok(rest.iter().fold(first.clone(), merged))
        }
        _ => wdl("union", arguments.to_vec()),
    }
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
