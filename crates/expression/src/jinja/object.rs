//! Converts values to values of minijinja and back.
//! Arrays and objects are wrapped and not converted, so reading one member costs only that member.

use super::{python, session};
use crate::secret::with_fallback;
use crate::{MAX_DEPTH, Object as Map, SECURE_MASK, Value};
use minijinja::value::{
    DynObject, Enumerator, Object, ObjectExt, ObjectRepr, Value as Jinja, ValueKind,
};
use minijinja::{Error, ErrorKind};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Debug)]
struct List(Arc<Vec<Value>>);

/// A wrapped map.
/// A lenient map is like TEA's `DotDict`: a missing key evaluates to None, unless it begins with `_`. A map that is
/// read from a lenient map with a dot is also lenient.
#[derive(Debug)]
struct Members {
    map: Arc<Map>,
    lenient: bool,
}

pub(super) fn to_jinja(value: &Value, lenient: bool) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(value) => Jinja::from(*value),
        Value::Int(value) => Jinja::from(*value),
        Value::Float(value) => Jinja::from(*value),
        Value::Decimal(value) => Jinja::from(value.to_string().parse::<f64>().unwrap_or(f64::NAN)),
        Value::String(value) => session::text(value),
        Value::Array(items) => Jinja::from_object(List(Arc::clone(items))),
        Value::Object(map) => Jinja::from_object(Members {
            map: Arc::clone(map),
            lenient,
        }),
        Value::Secure(_) => Jinja::from(SECURE_MASK),
    }
}

pub(super) fn is_list(value: &Jinja) -> bool {
    value.downcast_object_ref::<List>().is_some()
}

pub(super) fn is_ours(value: &Jinja) -> bool {
    is_list(value) || value.downcast_object_ref::<Members>().is_some()
}

/// Returns true if a map really has a key.
/// For a lenient map, a missing key that would evaluate to None does not count.
pub(super) fn has_key(map: &Jinja, key: &Jinja) -> Result<bool, Error> {
    match map.downcast_object_ref::<Members>() {
        Some(members) => Ok(key_of(key).is_some_and(|key| members.map.contains_key(&*key))),
        None => Ok(!map.get_item(key)?.is_undefined()),
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let index = key.as_usize()?;
        Some(to_jinja(self.0.get(index)?, false))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

/// Returns a key as text. All keys are text, including those that a file contains as numbers.
fn key_of(key: &Jinja) -> Option<Cow<'_, str>> {
    match key.kind() {
        ValueKind::String => key.as_str().map(Cow::Borrowed),
        ValueKind::Number | ValueKind::Bool => Some(Cow::Owned(key.to_string())),
        _ => None,
    }
}

impl Members {
    fn look_up(&self, key: &str, with_dot: bool) -> Option<Jinja> {
        let open = self.lenient && !key.starts_with('_');
        match self.map.get(key) {
            Some(value) => Some(to_jinja(value, open && with_dot)),
            None if open => Some(Jinja::from(())),
            None => None,
        }
    }
}

impl Object for Members {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.look_up(&key_of(key)?, false)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        self.look_up(key, true)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|this| {
            Box::new(this.map.keys().map(|key| Jinja::from(key.as_ref())))
        })
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.map.len())
    }

    /// Implements the method `get`.
    /// minijinja's own implementation would return None for a missing key of a lenient map, and not the default.
    fn call_method(
        self: &Arc<Self>,
        _state: &mut minijinja::State<'_, '_>,
        method: &str,
        args: &[Jinja],
    ) -> Result<Jinja, Error> {
        let (key, default, or_empty): (&Jinja, Option<Jinja>, bool) = match method {
            "get" => {
                let (key, default) = minijinja::value::from_args(args)?;
                (key, default, false)
            }
            DEFAULT_METHOD => {
                let (key, default, or_empty): (_, _, Option<Jinja>) =
                    minijinja::value::from_args(args)?;
                (
                    key,
                    Some(default),
                    or_empty.is_some_and(|given| given.is_true()),
                )
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        };
        let found = key_of(key).and_then(|key| self.map.get(&*key));
        Ok(match (found, default) {
            (Some(Value::String(text)), Some(default)) => match marked(text, &default, or_empty)? {
                Some(mark) => session::text(&mark.into()),
                None if or_empty && text.is_empty() => default,
                None => session::text(text),
            },
            (Some(value), _) => to_jinja(value, false),
            (None, default) => default.unwrap_or_else(|| Jinja::from(())),
        })
    }
}

/// The name of the method that replaces `env.X | default(…)`.
pub(super) const DEFAULT_METHOD: &str = "__default";

/// Returns the mark (placeholder) of an environment variable, extended by its default.
fn marked(text: &str, default: &Jinja, or_empty: bool) -> Result<Option<String>, Error> {
    match default.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool => {
            let default = python::str(default)?;
            Ok(with_fallback(text, &default, or_empty))
        }
        _ => Ok(None),
    }
}

pub(super) fn from_jinja(value: &Jinja) -> Result<Value, Error> {
    convert(value, 0)
}

fn convert(value: &Jinja, depth: usize) -> Result<Value, Error> {
    if depth > MAX_DEPTH {
        let message = format!("the value nests deeper than {MAX_DEPTH} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Ok(Value::Null),
        ValueKind::Bool => Ok(Value::Bool(value.is_true())),
        ValueKind::Number => number(value),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            session::bytes(text.len())?;
            Ok(Value::text(text))
        }
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => match value.as_object() {
            Some(object) => convert_object(value, object, depth),
            None => Ok(Value::Null),
        },
        _ => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a {} cannot be stored", value.kind()),
        )),
    }
}

fn number(value: &Jinja) -> Result<Value, Error> {
    if !value.is_integer() {
        let float = f64::try_from(value.clone())?;
        if !float.is_finite() {
            let message = "infinity and not-a-number are not valid values";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        return Ok(Value::Float(float));
    }
    match value.as_i64() {
        Some(int) => Ok(Value::Int(int)),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("{value} does not fit 64 bits"),
        )),
    }
}

fn convert_object(value: &Jinja, object: &DynObject, depth: usize) -> Result<Value, Error> {
    if let Some(list) = object.downcast_ref::<List>() {
        return Ok(Value::Array(Arc::clone(&list.0)));
    }
    if let Some(members) = object.downcast_ref::<Members>() {
        return Ok(Value::Object(Arc::clone(&members.map)));
    }
    let element = size_of::<Value>() + 16;
    if value.kind() == ValueKind::Map {
        let mut map = Map::new();
        for key in value.try_iter()?.checked() {
            session::bytes(element * 2)?;
            let key = key?;
            let member = value.get_item(&key)?;
            map.insert(key.to_string().into(), convert(&member, depth + 1)?);
        }
        return Ok(Value::object(map));
    }
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        session::bytes(element)?;
        items.push(convert(&item?, depth + 1)?);
    }
    Ok(Value::array(items))
}
