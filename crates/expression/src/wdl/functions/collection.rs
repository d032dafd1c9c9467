//! Collections: contains empty first intersection item join last length reverse skip sort take union. Arrays are copied
//! only if the result is a new array.

use super::logic::{holds, same};
use super::string::size;
use super::{ANY, Args, Function, eager, passing};
use crate::wdl::eval::{Ctx, Fail, Outcome, describe, find_member};
use crate::wdl::number::Number;
use crate::wdl::text::{Units, push_text, units};
use crate::{Object, Value};
use memchr::memmem;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const TABLE: &[Function] = &[
    eager("contains", 2, 2, contains),
    passing("empty", 1, 1, |_, args| match args.value(0) {
        Value::Null => Ok(true.into()),
        Value::String(text) => Ok(text.is_empty().into()),
        Value::Array(items) => Ok(items.is_empty().into()),
        Value::Object(map) => Ok(map.is_empty().into()),
        _ => Err(args.wrong(0, "text, an array or an object")),
    }),
    passing("first", 1, 1, |_, args| match args.value(0) {
        Value::Array(items) => Ok(items.first().cloned().unwrap_or_default()),
        Value::String(text) => Ok(Value::text(text.chars().take(1).collect::<String>())),
        _ => Err(args.wrong(0, "text or an array")),
    }),
    eager("intersection", 1, ANY, intersection),
    eager("join", 2, 2, join),
    passing("last", 1, 1, |_, args| match args.value(0) {
        Value::Array(items) => Ok(items.last().cloned().unwrap_or_default()),
        Value::String(text) => Ok(Value::text(
            text.chars().last().map(String::from).unwrap_or_default(),
        )),
        _ => Err(args.wrong(0, "text or an array")),
    }),
    eager("length", 1, 1, |_, args| match args.value(0) {
        Value::String(text) => Ok(size(units(text))),
        Value::Array(items) => Ok(size(items.len())),
        _ => Err(args.wrong(0, "text or an array")),
    }),
    eager("reverse", 1, 1, |ctx, args| {
        let items = args.array(0)?;
        ctx.charge_elements(items.len())?;
        Ok(Value::array(items.iter().rev().cloned().collect()))
    }),
    eager("skip", 2, 2, |ctx, args| {
        let (items, count) = (args.array(0)?, args.count(1)?);
        let rest = items.get(count.min(items.len())..).unwrap_or_default();
        ctx.charge_elements(rest.len())?;
        Ok(Value::array(rest.to_vec()))
    }),
    eager("sort", 1, 2, sort),
    eager("take", 2, 2, |ctx, args| {
        let count = args.count(1)?;
        match args.value(0) {
            Value::Array(items) => {
                let part = items.get(..count.min(items.len())).unwrap_or_default();
                ctx.charge_elements(part.len())?;
                Ok(Value::array(part.to_vec()))
            }
            Value::String(text) => {
                let text = Units::of(text);
                ctx.text(text.slice(0, count.min(text.len())).unwrap_or_default())
            }
            _ => Err(args.wrong(0, "text or an array")),
        }
    }),
    eager("union", 1, ANY, union),
];

/// Returns true if a text contains a part, an array an element, or an object a key. The case matters.
fn contains(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let wanted = args.value(1);
    match args.value(0) {
        Value::String(text) => {
            let at = memmem::find(text.as_bytes(), args.text(1)?.as_bytes());
            Ok(at.is_some().into())
        }
        Value::Array(items) => Ok(holds(ctx, items, wanted)?.into()),
        Value::Object(map) => Ok(map.contains_key(args.text(1)?).into()),
        _ => Err(args.wrong(0, "text, an array or an object")),
    }
}

fn join(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (items, delimiter) = (args.array(0)?, args.text(1)?);
    ctx.charge_work(items.len())?;
    ctx.charge_output(items.len().saturating_mul(delimiter.len()))?;
    for item in items.iter() {
        ctx.charge_rendering(item)?;
    }
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(delimiter);
        }
        push_text(&mut out, item);
    }
    Ok(Value::text(out))
}

/// Returns the elements that are in all arrays, in the order of the first array and without repetition; or the members
/// that all objects have with the same value.
fn intersection(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    if let Value::Object(first) = args.value(0) {
        let mut shared: Object = (**first).clone();
        ctx.charge_elements(shared.len())?;
        for index in 1..args.len() {
            let other = args.object(index)?;
            ctx.charge_work(shared.len())?;
            let mut common = Object::new();
            for (key, value) in &shared {
                if !other.contains_key(key) {
                    ctx.charge_search(other, key)?;
                }
                if let Some(found) = find_member(other, key)
                    && same(ctx, found, value)?
                {
                    common.insert(Arc::clone(key), value.clone());
                }
            }
            shared = common;
        }
        return Ok(Value::object(shared));
    }
    let arrays = arrays(args)?;
    let Some((first, others)) = arrays.split_first() else {
        return Ok(Value::array(Vec::new()));
    };
    let mut shared: Vec<Value> = Vec::new();
    'items: for item in first.iter() {
        for other in others {
            if !holds(ctx, other, item)? {
                continue 'items;
            }
        }
        if !holds(ctx, &shared, item)? {
            ctx.charge_elements(1)?;
            shared.push(item.clone());
        }
    }
    Ok(Value::array(shared))
}

/// Returns all elements without repetition, in the order of their first appearance; or the members of all objects,
/// where the last object with a key is used.
fn union(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    if let Value::Object(first) = args.value(0) {
        let mut all: Object = (**first).clone();
        ctx.charge_elements(all.len())?;
        for index in 1..args.len() {
            let other = args.object(index)?;
            ctx.charge_elements(other.len())?;
            all.extend(
                other
                    .iter()
                    .map(|(key, value)| (Arc::clone(key), value.clone())),
            );
        }
        return Ok(Value::object(all));
    }
    let mut all: Vec<Value> = Vec::new();
    for array in arrays(args)? {
        for item in array.iter() {
            if !holds(ctx, &all, item)? {
                ctx.charge_elements(1)?;
                all.push(item.clone());
            }
        }
    }
    Ok(Value::array(all))
}

fn arrays(args: &Args) -> Outcome<Vec<&Arc<Vec<Value>>>> {
    (0..args.len())
        .map(|index| match args.value(index) {
            Value::Array(items) => Ok(items),
            _ => Err(args.wrong(index, "arrays, or objects")),
        })
        .collect()
}

/// Sorts elements, or objects by a member. Equal elements stay in their order.
fn sort(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let items = args.array(0)?;
    let by = args.optional_text(1)?;
    ctx.charge_elements(items.len().saturating_mul(2))?;
    let mut bytes = 0_usize;
    let mut keyed: Vec<(Value, &Value)> = Vec::with_capacity(items.len());
    for item in items.iter() {
        let key = match (by, item) {
            (None, item) => item.clone(),
            (Some(name), Value::Object(map)) => {
                if !map.contains_key(name) {
                    ctx.charge_search(map, name)?;
                }
                find_member(map, name).cloned().unwrap_or_default()
            }
            (Some(_), other) => {
                let message = format!(
                    "`sort` by a member accepts objects, not {}",
                    describe(other)
                );
                return Err(Fail::argument(0, message));
            }
        };
        bytes = bytes.saturating_add(key.as_str().map_or(0, str::len));
        keyed.push((key, item));
    }
    // Each element is compared with several others, and equal beginnings of texts are read completely.
    let rounds = keyed.len().checked_ilog2().unwrap_or(0) as usize + 1;
    let each = keyed.len().saturating_add(bytes / 64);
    ctx.charge_work(each.saturating_mul(rounds))?;
    let mut trouble = None;
    keyed.sort_by(|(a, _), (b, _)| {
        sort_order(a, b).unwrap_or_else(|| {
            trouble.get_or_insert_with(|| {
                format!("`sort` cannot order {} and {}", describe(a), describe(b))
            });
            Ordering::Equal
        })
    });
    match trouble {
        Some(message) => Err(Fail::argument(0, message)),
        None => Ok(Value::array(
            keyed.into_iter().map(|(_, item)| item.clone()).collect(),
        )),
    }
}

fn sort_order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Null, _) => Some(Ordering::Less),
        (_, Value::Null) => Some(Ordering::Greater),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => Number::of(a)?.compare(Number::of(b)?),
    }
}
