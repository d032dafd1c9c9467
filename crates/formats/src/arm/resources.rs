//! Functions of deployment expressions about what only a deployment knows: subscriptions, resources, keys, addresses.
//! Nothing is deployed, so each has a stand-in, which is a constant.

use super::functions::as_text;
use windlass_expression::{Object, Value};
use windlass_model::model::sha256_of_parts;
use windlass_value::hex;

pub(super) const ZEROS: &str = "00000000-0000-0000-0000-000000000000";
const GROUP: &str = "group";
const LOCATION: &str = "westeurope";

pub(super) fn subscription() -> Value {
    object(&[
        ("id", &format!("/subscriptions/{ZEROS}")),
        ("subscriptionId", ZEROS),
        ("tenantId", ZEROS),
        ("displayName", "subscription"),
    ])
}

pub(super) fn resource_group() -> Value {
    object(&[
        (
            "id",
            &format!("/subscriptions/{ZEROS}/resourceGroups/{GROUP}"),
        ),
        ("name", GROUP),
        ("location", LOCATION),
        ("type", "Microsoft.Resources/resourceGroups"),
    ])
}

pub(super) fn tenant() -> Value {
    object(&[("tenantId", ZEROS), ("displayName", "tenant"), ("id", "/")])
}

pub(super) fn management_group() -> Value {
    let id = format!("/providers/Microsoft.Management/managementGroups/{GROUP}");
    object(&[("id", &id), ("name", GROUP)])
}

pub(super) fn deployment() -> Value {
    object(&[("name", "deployment"), ("location", LOCATION)])
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
            resource_id(Scope::Group, &[kind, name].map(Value::from)),
        ),
        ("name", Value::from(name)),
        ("type", Value::from(kind)),
        ("location", Value::from(location.unwrap_or(LOCATION))),
        ("tags", tags),
    ])
}

fn object(members: &[(&str, &str)]) -> Value {
    let members = members.iter();
    Value::from_pairs(members.map(|(key, value)| (*key, Value::text(*value))))
}

/// Returns a made-up address of a trigger: the whole address and its parts.
pub(super) fn callback_url() -> Value {
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

pub(super) fn environment() -> Value {
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

/// What a resource belongs to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scope {
    Group,
    Subscription,
    Tenant,
    ManagementGroup,
}

/// Returns the id of a resource. A subscription and a group may precede the type in the arguments.
pub(super) fn resource_id(scope: Scope, arguments: &[Value]) -> Value {
    let is_type = |value: &Value| value.as_str().is_some_and(|text| text.contains('/'));
    let at = arguments.iter().position(is_type).unwrap_or(0);
    let (before, rest) = arguments.split_at(at.min(arguments.len()));
    let path = typed_path(rest);
    let before: Vec<String> = before.iter().map(as_text).collect();
    let (subscription, group) = match (scope, before.as_slice()) {
        (Scope::ManagementGroup, [group, ..]) | (Scope::Group, [group]) => (ZEROS, group.as_str()),
        (Scope::Subscription, [subscription]) => (subscription.as_str(), GROUP),
        (_, [subscription, group, ..]) => (subscription.as_str(), group.as_str()),
        _ => (ZEROS, GROUP),
    };
    let parent = match scope {
        Scope::Group => format!("/subscriptions/{subscription}/resourceGroups/{group}"),
        Scope::Subscription => format!("/subscriptions/{subscription}"),
        Scope::Tenant => String::new(),
        Scope::ManagementGroup => {
            format!("/providers/Microsoft.Management/managementGroups/{group}")
        }
    };
    Value::text(format!("{parent}/providers/{path}"))
}

/// Returns the id of a resource that extends another one, whose id is the first argument.
pub(super) fn extension_resource_id(arguments: &[Value]) -> Result<Value, String> {
    let base = arguments.first().map(as_text).unwrap_or_default();
    let path = typed_path(arguments.get(1..).unwrap_or_default());
    Ok(Value::text(format!("{base}/providers/{path}")))
}

fn hash(arguments: &[Value]) -> String {
    let texts: Vec<String> = arguments.iter().map(Value::to_json).collect();
    let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let digest = sha256_of_parts(&parts);
    hex(&digest)
}

/// Implements `uniqueString`: returns thirteen letters that depend only on the arguments.
pub(super) fn unique_string(arguments: &[Value]) -> Result<Value, String> {
    let letters = |c: char| match c {
        '0'..='9' => char::from(b'a' + (c as u8 - b'0')),
        other => char::from(other as u8 + 10),
    };
    let text: String = hash(arguments).chars().take(13).map(letters).collect();
    Ok(Value::text(text))
}

/// Returns an id that depends only on the arguments.
pub(super) fn guid(arguments: &[Value]) -> Result<Value, String> {
    let hash = hash(arguments);
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    Ok(Value::text(parts.join("-")))
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
