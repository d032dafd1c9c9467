//! The functions of deployment expressions.

use super::compute::{Deployment, Outcome};
use super::expression::Expr;
use super::resources::{self, Scope, ZEROS};
use super::{collections, text, time};
use std::sync::Arc;
use windlass_expression::{Context, Template, Value};
use windlass_source::diagnostic::did_you_mean;
use windlass_value::words;

/// The key of an object that is the stand-in for a value of unknown type.
/// Each member of the object is the same object, so that expressions can read members of it.
const STAND_IN: &str = "$standIn";

/// The maximum of a function that accepts any number of arguments.
const ANY: usize = usize::MAX;

/// A function of deployment expressions.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// The name in the reference of ARM templates.
    pub name: &'static str,
    /// Minimum and maximum number of arguments.
    counts: (usize, usize),
    /// Which part of the result only a deployment knows.
    pub stand_in: StandIn,
    /// Refuses arguments whose type the function would ignore or have to guess.
    pub check: fn(&[Value]) -> Result<(), String>,
    pub body: Body,
}

/// Which part of a function's result is a stand-in.
#[derive(Clone, Copy)]
pub(super) enum StandIn {
    /// The result is computed.
    None,
    /// The value is a stand-in, but its type is known.
    Value,
    /// The value is a stand-in, and not even its type is known.
    Whole,
}

#[derive(Clone, Copy)]
pub(super) enum Body {
    /// Computes from the values of its arguments.
    Eager(fn(&[Value]) -> Result<Value, String>),
    /// Evaluates its arguments itself, or does not need them. The text is the name as the template has it.
    Lazy(fn(&mut Deployment<'_, '_>, &str, &[Expr]) -> Outcome<Value>),
    /// Works as in WDL, which implements it and checks its arguments.
    Wdl,
}

/// The functions that WDL does not have, or that accept other arguments here.
#[rustfmt::skip]
const OWN: &[Function] = &[
    eager("base64ToJson", 1, 1, |given| wdl("json", vec![wdl("base64ToString", given.to_vec())?])),
    eager("concat", 1, ANY, text::concat).checked(text::check_concat),
    eager("contains", 0, ANY, collections::contains),
    lazy("copyIndex", 0, 2, |it, _, given| it.copy_index(given)),
    eager("createObject", 0, ANY, collections::create_object),
    eager("dateTimeAdd", 2, 3, time::add),
    eager("dateTimeFromEpoch", 1, 1, time::from_epoch),
    eager("dateTimeToEpoch", 1, 1, time::to_epoch),
    eager("deployment", 0, ANY, |_| Ok(resources::deployment())).made_up(),
    eager("environment", 0, ANY, |_| Ok(resources::environment())).made_up(),
    eager("extensionResourceId", 0, ANY, resources::extension_resource_id),
    eager("false", 0, 0, |_| Ok(Value::Bool(false))),
    lazy("filter", 2, 2, |it, name, given| it.filter(name, given)),
    eager("flatten", 1, 1, collections::flatten).checked(collections::check_flatten),
    eager("format", 1, ANY, text::format),
    lazy("groupBy", 2, 2, |it, name, given| it.group_by(name, given)),
    eager("guid", 1, ANY, resources::guid).made_up(),
    lazy("if", 3, 3, |it, _, given| it.choose(given)),
    eager("indexFromEnd", 2, 2, collections::index_from_end).checked(|given| collections::check_index("indexFromEnd", given)),
    eager("items", 1, 1, collections::items).checked(|given| collections::check_object("items", given)),
    lazy("lambdaVariables", 1, 1, |it, _, given| it.lambda_variable(given)),
    eager("length", 0, ANY, collections::length),
    lazy("listCallbackUrl", 0, ANY, |_, _, _| Ok(resources::callback_url())).unknown(),
    LIST,
    eager("managementGroup", 0, ANY, |_| Ok(resources::management_group())).made_up(),
    eager("managementGroupResourceId", 0, ANY, |given| Ok(resources::resource_id(Scope::ManagementGroup, given))).made_up(),
    lazy("map", 2, 2, |it, name, given| it.map(name, given)),
    lazy("mapValues", 2, 2, |it, name, given| it.map_values(name, given)),
    eager("newGuid", 0, 0, |_| Ok(Value::text(ZEROS))).made_up(),
    eager("null", 0, 0, |_| Ok(Value::Null)),
    eager("objectKeys", 1, 1, collections::object_keys).checked(|given| collections::check_object("objectKeys", given)),
    eager("padLeft", 2, 3, text::pad_left).checked(text::check_pad_left),
    lazy("parameters", 1, 1, |it, _, given| it.read_parameter(given)),
    eager("pickZones", 0, ANY, |_| Ok(Value::array(vec![Value::text("1")]))).made_up(),
    lazy("providers", 0, ANY, |_, name, _| Ok(stand_in(name))).unknown(),
    lazy("reduce", 3, 3, |it, name, given| it.reduce(name, given)),
    lazy("reference", 0, ANY, |_, name, _| Ok(stand_in(name))).unknown(),
    eager("resourceGroup", 0, ANY, |_| Ok(resources::resource_group())).made_up(),
    eager("resourceId", 0, ANY, |given| Ok(resources::resource_id(Scope::Group, given))).made_up(),
    eager("shallowMerge", 1, 1, collections::shallow_merge).checked(collections::check_shallow_merge),
    eager("skip", 0, ANY, collections::skip),
    lazy("sort", 2, 2, |it, name, given| it.sort(name, given)),
    eager("split", 0, ANY, collections::split),
    eager("subscription", 0, ANY, |_| Ok(resources::subscription())).made_up(),
    eager("subscriptionResourceId", 0, ANY, |given| Ok(resources::resource_id(Scope::Subscription, given))).made_up(),
    eager("take", 0, ANY, collections::take),
    eager("tenant", 0, ANY, |_| Ok(resources::tenant())).made_up(),
    eager("tenantResourceId", 0, ANY, |given| Ok(resources::resource_id(Scope::Tenant, given))),
    lazy("toObject", 2, 3, |it, name, given| it.make_object(name, given)),
    eager("true", 0, 0, |_| Ok(Value::Bool(true))),
    eager("tryGet", 2, ANY, collections::try_get),
    eager("tryIndexFromEnd", 2, 2, collections::try_index_from_end)
        .checked(|given| collections::check_index("tryIndexFromEnd", given)),
    eager("union", 0, ANY, collections::union),
    eager("uniqueString", 1, ANY, resources::unique_string).made_up(),
    eager("uri", 2, 2, text::uri),
    eager("utcNow", 0, 1, time::now).made_up(),
    lazy("variables", 1, 1, |it, _, given| it.read_variable(given)),
];

/// Any function whose name begins with `list`: a list operation of a resource.
const LIST: Function = lazy("listKeys", 0, ANY, |_, name, _| Ok(stand_in(name))).unknown();

/// The functions that work as in WDL.
const SHARED: [&str; 44] = words! {
    add and array base64 base64ToString bool coalesce createArray dataUri dataUriToString div empty endsWith equals
    first float greater greaterOrEquals indexOf int intersection join json last lastIndexOf less lessOrEquals max min
    mod mul not or range replace startsWith string sub substring toLower toUpper trim uriComponent uriComponentToString
};

const fn eager(
    name: &'static str,
    min: usize,
    max: usize,
    body: fn(&[Value]) -> Result<Value, String>,
) -> Function {
    function(name, (min, max), Body::Eager(body))
}

const fn lazy(
    name: &'static str,
    min: usize,
    max: usize,
    body: fn(&mut Deployment<'_, '_>, &str, &[Expr]) -> Outcome<Value>,
) -> Function {
    function(name, (min, max), Body::Lazy(body))
}

const fn function(name: &'static str, counts: (usize, usize), body: Body) -> Function {
    Function {
        name,
        counts,
        stand_in: StandIn::None,
        check: |_| Ok(()),
        body,
    }
}

impl Function {
    const fn checked(self, check: fn(&[Value]) -> Result<(), String>) -> Self {
        Self { check, ..self }
    }

    /// The result is a stand-in, but its type is known.
    const fn made_up(self) -> Self {
        Self {
            stand_in: StandIn::Value,
            ..self
        }
    }

    /// The result is a stand-in, and not even its type is known.
    const fn unknown(self) -> Self {
        Self {
            stand_in: StandIn::Whole,
            ..self
        }
    }

    /// Finds a function by its name in lower case.
    pub(super) fn find(lower: &str) -> Option<Self> {
        let is_name = |name: &str| name.eq_ignore_ascii_case(lower);
        let own = OWN.iter().find(|function| is_name(function.name)).copied();
        let shared = SHARED.into_iter().find(|name| is_name(name));
        own.or_else(|| Some(function(shared?, (0, ANY), Body::Wdl)))
            .or_else(|| lower.starts_with("list").then_some(LIST))
    }

    /// Refuses a number of arguments that the function does not accept.
    pub(super) fn check_count(&self, given: usize) -> Result<(), String> {
        let (min, max) = self.counts;
        if (min..=max).contains(&given) {
            return Ok(());
        }
        let accepts = match max {
            ANY => format!("{min} or more"),
            max if min == max => min.to_string(),
            max => format!("{min} to {max}"),
        };
        Err(format!(
            "`{}` needs {accepts} arguments, and has {given}",
            self.name
        ))
    }
}

/// Returns the hint for an unknown function.
pub(super) fn suggest_function(name: &str) -> Option<String> {
    let own = OWN.iter().map(|function| function.name);
    did_you_mean(name, own.chain(SHARED))
}

/// Returns the name of a function in lower case, without the namespace of built-in functions (`sys.`, `az.`).
pub(super) fn function_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("sys.");
    let bare = bare.or_else(|| lower.strip_prefix("az."));
    bare.unwrap_or(&lower).to_owned()
}

pub(super) fn member(base: &Value, key: &Value, safe: bool) -> Result<Value, String> {
    if base.get(STAND_IN).is_some() {
        return Ok(base.clone());
    }
    let found = match (base, key.as_str(), key.as_int()) {
        (Value::Object(map), Some(key), _) => map
            .get(key)
            .or_else(|| {
                let same = |(own, _): &(&Arc<str>, &Value)| own.eq_ignore_ascii_case(key);
                map.iter().find(same).map(|(_, value)| value)
            })
            .cloned(),
        (Value::Array(items), _, Some(index)) => usize::try_from(index)
            .ok()
            .and_then(|index| items.get(index))
            .cloned(),
        _ => None,
    };
    match found {
        Some(value) => Ok(value),
        None if safe => Ok(Value::Null),
        None => Err(format!("{} has no member {}", base.kind(), key.to_json())),
    }
}

/// Converts a value for the definition: a stand-in of unknown type becomes a text, its name.
pub(super) fn resolve_stand_in(value: Value) -> Value {
    match value.get(STAND_IN) {
        Some(name) => name.clone(),
        None => value,
    }
}

pub(super) fn stand_in(name: &str) -> Value {
    Value::from_pairs([(STAND_IN, Value::text(name))])
}

/// Calls a function of WDL.
pub(super) fn wdl(name: &str, arguments: Vec<Value>) -> Result<Value, String> {
    let arguments = arguments.into_iter().map(Template::constant).collect();
    let call = Template::call(name, arguments).map_err(|error| error.message)?;
    let context = Value::from_pairs([("mode", Value::text("azure"))]);
    let context = Context::new(&context, chrono::DateTime::UNIX_EPOCH, 0);
    let context = context.map_err(|error| error.to_string())?;
    call.eval(&context).map_err(|error| error.to_string())
}

pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => String::from("True"),
        Value::Bool(false) => String::from("False"),
        other => other.to_text(),
    }
}
