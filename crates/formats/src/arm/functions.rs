//! The functions of deployment expressions.
//! Nothing is deployed. So each value that only a deployment knows (subscriptions, keys, addresses) has a stand-in,
//! which is a constant.

use super::collections;
use super::compute::{NoValue, Outcome};
use super::time::{self, formatted};
use std::sync::Arc;
use windlass_expression::{Context, Object, Template, Value, wdl_functions};
use windlass_model::model::sha256_of_parts;
use windlass_source::diagnostic::did_you_mean;
use windlass_value::{hex, words};

/// The key of an object that is the stand-in for a value of unknown type.
/// Each member of the object is the same object, so that expressions can read members of it.
const STAND_IN: &str = "$standIn";

const ZEROS: &str = "00000000-0000-0000-0000-000000000000";
const GROUP: &str = "group";
const LOCATION: &str = "westeurope";

/// The time at which every deployment happens, because this crate uses no clock.
const NOW: &str = "2000-01-01T00:00:00Z";

/// The functions that work as in WDL, which implements them.
const SHARED: [&str; 50] = words! {
    add and array base64 base64tostring bool coalesce contains createarray datauri datauritostring
    div empty endswith equals first float greater greaterorequals indexof int intersection join json
    last lastindexof length less lessorequals max min mod mul not or range replace skip split
    startswith string sub substring take tolower toupper trim union uricomponent
    uricomponenttostring
};

/// The names of the functions that WDL does not have, or not with the same arguments.
const OWN: [&str; 48] = words! {
    base64ToJson concat copyIndex createObject dateTimeAdd dateTimeFromEpoch dateTimeToEpoch deployment environment
    extensionResourceId false filter flatten format guid if indexFromEnd items lambdaVariables listCallbackUrl listKeys
    managementGroup managementGroupResourceId map newGuid null objectKeys padLeft parameters pickZones providers reduce
    reference resourceGroup resourceId shallowMerge sort subscription subscriptionResourceId tenant tenantResourceId
    toObject true tryGet uniqueString uri utcNow variables
};

/// Which part of a function's result is a stand-in.
pub(super) enum StandInKind {
    /// The value is a stand-in, but its type is known.
    Value,
    /// The value is a stand-in, and not even its type is known.
    Whole,
}

/// Returns which part of a function's result is a stand-in. Returns `None` if the result is computed.
pub(super) fn stand_in_kind(lower: &str) -> Option<StandInKind> {
    match lower {
        "reference" | "providers" => Some(StandInKind::Whole),
        list if list.starts_with("list") => Some(StandInKind::Whole),
        "subscription"
        | "resourcegroup"
        | "tenant"
        | "managementgroup"
        | "deployment"
        | "environment"
        | "uniquestring"
        | "guid"
        | "newguid"
        | "utcnow"
        | "pickzones"
        | "resourceid"
        | "subscriptionresourceid"
        | "managementgroupresourceid" => Some(StandInKind::Value),
        _ => None,
    }
}

/// Returns the name of a function in lower case, without the namespace of built-in functions (`sys.`, `az.`).
pub(super) fn function_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("sys.");
    let bare = bare.or_else(|| lower.strip_prefix("az."));
    bare.unwrap_or(&lower).to_owned()
}

/// Calls a function. The error says why it has no value.
pub(super) fn call(name: &str, arguments: Vec<Value>) -> Outcome<Value> {
    let lower = function_name(name);
    let arguments: Vec<Value> = arguments.into_iter().map(resolve_stand_in).collect();
    if let Some(value) = collections::call(name, &lower, &arguments)? {
        return Ok(value);
    }
    let text = |index: usize| arguments.get(index).map(as_text).unwrap_or_default();
    Ok(match lower.as_str() {
        "concat" => concat(&arguments),
        "format" => Value::text(format(&arguments)?),
        "resourceid"
        | "subscriptionresourceid"
        | "tenantresourceid"
        | "managementgroupresourceid" => Value::text(resource_id(&lower, &arguments)),
        "extensionresourceid" => {
            let rest = arguments.get(1..).unwrap_or_default();
            Value::text(format!("{}/providers/{}", text(0), typed_path(rest)))
        }
        "subscription" => object(&[
            ("id", &format!("/subscriptions/{ZEROS}")),
            ("subscriptionId", ZEROS),
            ("tenantId", ZEROS),
            ("displayName", "subscription"),
        ]),
        "resourcegroup" => object(&[
            (
                "id",
                &format!("/subscriptions/{ZEROS}/resourceGroups/{GROUP}"),
            ),
            ("name", GROUP),
            ("location", LOCATION),
            ("type", "Microsoft.Resources/resourceGroups"),
        ]),
        "tenant" => object(&[("tenantId", ZEROS), ("displayName", "tenant"), ("id", "/")]),
        "managementgroup" => object(&[
            (
                "id",
                &format!("/providers/Microsoft.Management/managementGroups/{GROUP}"),
            ),
            ("name", GROUP),
        ]),
        "deployment" => object(&[("name", "deployment"), ("location", LOCATION)]),
        "environment" => environment(),
        "uniquestring" => Value::text(unique(&arguments)),
        "guid" => Value::text(guid(&arguments)),
        "newguid" => Value::text(ZEROS),
        "utcnow" => {
            let form = arguments.first().map_or("yyyyMMddTHHmmssZ".into(), as_text);
            formatted("formatDateTime", Value::text(NOW), &form)?
        }
        "datetimeadd" => time::add(&text(0), &text(1), &text(2))?,
        "datetimefromepoch" => time::from_epoch(arguments.first().cloned().unwrap_or_default())?,
        "datetimetoepoch" => time::to_epoch(&text(0))?,
        "uri" => Value::text(joined_uri(&text(0), &text(1))),
        "base64tojson" => shared("json", vec![shared("base64ToString", arguments)?])?,
        "padleft" => Value::text(pad_left(&text(0), arguments.get(1), &text(2))),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "pickzones" => Value::array(vec![Value::text("1")]),
        "listcallbackurl" => callback_url(),
        "reference" | "providers" => stand_in(name),
        list if list.starts_with("list") => stand_in(name),
        shared_name if SHARED.contains(&shared_name) => shared(&lower, arguments)?,
        _ => {
            let why = format!("unknown deployment function `{name}`");
            let shared = wdl_functions().iter().map(|function| function.name);
            let shared = shared.filter(|name| SHARED.contains(&&*name.to_ascii_lowercase()));
            let hint = did_you_mean(name, OWN.into_iter().chain(shared));
            return Err(NoValue::Unknown(why, hint));
        }
    })
}

/// Returns the part of `workflow()` that does not depend on a run.
/// The id has the form of ids in Azure, because definitions split it to get the subscription and the resource group.
pub(crate) fn workflow_resource(name: &str, title: &str, location: Option<&str>) -> Value {
    let kind = "Microsoft.Logic/workflows";
    let tags = object(&[
        ("flowDisplayName", title),
        ("logicAppName", name),
        ("environmentName", "local"),
    ]);
    Value::from_pairs([
        (
            "id",
            Value::text(resource_id("resourceid", &[kind, name].map(Value::from))),
        ),
        ("name", Value::from(name)),
        ("type", Value::from(kind)),
        ("location", Value::from(location.unwrap_or(LOCATION))),
        ("tags", tags),
    ])
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

fn stand_in(name: &str) -> Value {
    Value::from_pairs([(STAND_IN, Value::text(name))])
}

fn object(members: &[(&str, &str)]) -> Value {
    let members = members.iter();
    Value::from_pairs(members.map(|(key, value)| (*key, Value::text(*value))))
}

/// Returns a made-up address of a trigger: the whole address and its parts.
fn callback_url() -> Value {
    let base = format!(
        "https://prod-00.{LOCATION}.logic.azure.com:443/workflows/\
         00000000000000000000000000000000/triggers/manual/paths/invoke"
    );
    let query = "api-version=2016-10-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=listCallbackUrl";
    let queries = object(&[
        ("api-version", "2016-10-01"),
        ("sp", "/triggers/manual/run"),
        ("sv", "1.0"),
        ("sig", "listCallbackUrl"),
    ]);
    Value::from_pairs([
        ("value", Value::text(format!("{base}?{query}"))),
        ("method", Value::text("POST")),
        ("basePath", Value::text(base)),
        ("relativePath", Value::text("")),
        ("relativePathParameters", Value::array(Vec::new())),
        ("queries", queries),
    ])
}

fn environment() -> Value {
    let suffixes = object(&[
        ("storage", "core.windows.net"),
        ("keyvaultDns", ".vault.azure.net"),
        ("sqlServerHostname", ".database.windows.net"),
        ("acrLoginServer", ".azurecr.io"),
        ("azureFrontDoorEndpointSuffix", "azurefd.net"),
        ("azureDatalakeStoreFileSystem", "azuredatalakestore.net"),
        (
            "azureDatalakeAnalyticsCatalogAndJob",
            "azuredatalakeanalytics.net",
        ),
    ]);
    let mut authentication = vec![
        (
            "loginEndpoint",
            Value::text("https://login.microsoftonline.com/"),
        ),
        ("tenant", Value::text("common")),
        ("identityProvider", Value::text("AAD")),
    ];
    let audiences = [
        "https://management.core.windows.net/",
        "https://management.azure.com/",
    ];
    let audiences = audiences.map(Value::text).to_vec();
    authentication.push(("audiences", Value::array(audiences)));
    let authentication = Value::from_pairs(authentication);
    Value::from_pairs([
        ("name", Value::text("AzureCloud")),
        (
            "resourceManager",
            Value::text("https://management.azure.com/"),
        ),
        ("portal", Value::text("https://portal.azure.com")),
        ("graph", Value::text("https://graph.windows.net/")),
        ("graphAudience", Value::text("https://graph.windows.net/")),
        ("gallery", Value::text("https://gallery.azure.com/")),
        ("batch", Value::text("https://batch.core.windows.net/")),
        ("media", Value::text("https://rest.media.azure.net")),
        (
            "sqlManagement",
            Value::text("https://management.core.windows.net:8443/"),
        ),
        (
            "activeDirectoryDataLake",
            Value::text("https://datalake.azure.net/"),
        ),
        ("authentication", authentication),
        ("suffixes", suffixes),
    ])
}

/// Calls a function of WDL.
pub(super) fn shared(name: &str, arguments: Vec<Value>) -> Result<Value, String> {
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

fn concat(arguments: &[Value]) -> Value {
    if arguments
        .iter()
        .any(|value| matches!(value, Value::Array(_)))
    {
        let items = arguments.iter().filter_map(Value::as_array).flatten();
        return Value::array(items.cloned().collect());
    }
    Value::text(arguments.iter().map(as_text).collect::<String>())
}

/// Implements `format`: replaces `{0}`, `{1,8:N2}` and `{{` in the first argument.
fn format(arguments: &[Value]) -> Result<String, String> {
    let template = arguments.first().map(as_text).unwrap_or_default();
    let mut out = String::new();
    let mut rest = template.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let brace = from.get(..1).unwrap_or_default();
        let after = from.get(1..).unwrap_or_default();
        if let Some(doubled) = after.strip_prefix(brace) {
            out.push_str(brace);
            rest = doubled;
        } else if let Some((place, after)) = after.split_once('}').filter(|_| brace == "{") {
            out.push_str(&format_argument(place, arguments)?);
            rest = after;
        } else {
            return Err(format!("`format` has a single `{brace}`: write it twice"));
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the text that replaces the placeholder `INDEX[,WIDTH][:FORM]`.
fn format_argument(place: &str, arguments: &[Value]) -> Result<String, String> {
    let (place, form) = place
        .split_once(':')
        .map_or((place, ""), |(place, form)| (place, form));
    let (index, width) = place.split_once(',').unwrap_or((place, "0"));
    let index = index.trim().parse::<usize>();
    let value = index.ok().and_then(|index| arguments.get(index + 1));
    let value = value.ok_or_else(|| format!("`format` has no argument for `{{{place}}}`"))?;
    let width = width.trim().parse::<i16>();
    let width = width.map_err(|_| format!("`format`: `{place}` has no width"))?;
    let text = match value {
        _ if form.is_empty() => as_text(value),
        Value::Int(_) | Value::Float(_) => {
            as_text(&formatted("formatNumber", value.clone(), form)?)
        }
        other => as_text(other),
    };
    let missing = usize::from(width.unsigned_abs()).saturating_sub(text.chars().count());
    let spaces = " ".repeat(missing);
    Ok(if width < 0 {
        text + &spaces
    } else {
        spaces + &text
    })
}

/// Joins a type `Type/sub` and its names to the path `Type/name/sub/name`.
fn typed_path(arguments: &[Value]) -> String {
    let Some((kind, names)) = arguments.split_first() else {
        return String::new();
    };
    let kind = as_text(kind);
    let mut kinds = kind.split('/');
    let mut path = kinds.next().unwrap_or_default().to_owned();
    let mut names = names.iter().map(as_text);
    for kind in kinds {
        path.push_str(&format!("/{kind}"));
        if let Some(name) = names.next() {
            path.push_str(&format!("/{name}"));
        }
    }
    names.for_each(|name| path.push_str(&format!("/{name}")));
    path
}

/// Returns the id of a resource. A subscription and a group may precede the type in the arguments.
fn resource_id(function: &str, arguments: &[Value]) -> String {
    let is_type = |value: &&Value| value.as_str().is_some_and(|text| text.contains('/'));
    let at = arguments
        .iter()
        .position(|value| is_type(&value))
        .unwrap_or(0);
    let (before, rest) = arguments.split_at(at.min(arguments.len()));
    let path = typed_path(rest);
    let before: Vec<String> = before.iter().map(as_text).collect();
    let (subscription, group) = match (function, before.as_slice()) {
        ("tenantresourceid", _) => return format!("/providers/{path}"),
        ("managementgroupresourceid", [group, ..]) => {
            let root = "/providers/Microsoft.Management/managementGroups";
            return format!("{root}/{group}/providers/{path}");
        }
        (_, [subscription, group, ..]) => (subscription.as_str(), group.as_str()),
        ("subscriptionresourceid", [subscription]) => (subscription.as_str(), ""),
        ("resourceid", [group]) => (ZEROS, group.as_str()),
        _ => (ZEROS, GROUP),
    };
    match function {
        "resourceid" => {
            format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{path}")
        }
        _ => format!("/subscriptions/{subscription}/providers/{path}"),
    }
}

fn hash(arguments: &[Value]) -> String {
    let texts: Vec<String> = arguments.iter().map(Value::to_json).collect();
    let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let digest = sha256_of_parts(&parts);
    hex(&digest)
}

/// Implements `uniqueString`: returns thirteen letters that depend only on the arguments.
fn unique(arguments: &[Value]) -> String {
    let letters = |c: char| match c {
        '0'..='9' => char::from(b'a' + (c as u8 - b'0')),
        other => char::from(other as u8 + 10),
    };
    hash(arguments).chars().take(13).map(letters).collect()
}

fn guid(arguments: &[Value]) -> String {
    let hash = hash(arguments);
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}

fn joined_uri(base: &str, relative: &str) -> String {
    let resolved = url::Url::parse(base).and_then(|base| base.join(relative));
    resolved.map_or_else(|_| format!("{base}{relative}"), |url| url.to_string())
}

fn pad_left(text: &str, width: Option<&Value>, with: &str) -> String {
    const MAX_WIDTH: i64 = 10_000;
    let width = width.and_then(Value::as_int).unwrap_or(0).min(MAX_WIDTH);
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    let with = with.chars().next().unwrap_or(' ');
    std::iter::repeat_n(with, missing)
        .chain(text.chars())
        .collect()
}

/// Returns a stand-in for a deployment parameter that has no value. Its type is the declared one.
pub(super) fn typed_stand_in(name: &str, kind: &str, declared: &Object) -> Value {
    if let Some(first) = declared
        .get("allowedValues")
        .and_then(Value::as_array)
        .and_then(|all| all.first())
    {
        return first.clone();
    }
    match kind.to_ascii_lowercase().as_str() {
        "int" => declared.get("minValue").cloned().unwrap_or(Value::Int(1)),
        "float" => Value::Float(1.0),
        "bool" => Value::Bool(false),
        "array" => Value::array(Vec::new()),
        "object" | "secureobject" => Value::object(Object::new()),
        _ => Value::text(name),
    }
}
