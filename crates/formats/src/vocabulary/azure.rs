//! The vocabulary of Logic Apps definitions, for completions and hovers of editors. It has what the reader uses. A
//! definition may have more keys: Azure has a complete schema, which a definition names under `$schema`.

use super::loom::{METHODS, STATUSES};
use super::schema::{document, members, merge, word};
use super::{Definition, FLAG, Key, LIST, Map, OBJECT, OPEN, TEXT, Type, define, key, required};
use serde_json::{Value as Json, json};

/// A type of action with its keys and the keys of its `inputs`.
struct Action {
    kind: &'static str,
    description: &'static str,
    keys: &'static [Key],
}

const ACTIONS: Type = Type::Def("actions");
const CONDITION: Type = Type::Json(&["string", "object", "boolean"]);
const LIST_OR_TEXT: Type = Type::Json(&["array", "string"]);
const NUMBER_OR_TEXT: Type = Type::Json(&["number", "string"]);

/// Makes a type of action.
const fn action(kind: &'static str, description: &'static str, keys: &'static [Key]) -> Action {
    Action { kind, description, keys }
}

/// Makes the required key `inputs` of an action.
const fn inputs(value: Type) -> Key {
    required("inputs", value, "what the action uses")
}

const COMMON: &[Key] = &[
    key("type", Type::Any, "the type of the action"),
    key("kind", TEXT, "a variant of the type; no effect, except of Expression"),
    key("runAfter", Type::MapOf(&Type::ListOf(&Type::AnyCase(STATUSES))), "the actions that must end first, each with the accepted statuses"),
    key("description", TEXT, "for people; no effect"),
    key("metadata", Type::Any, "for people; no effect"),
    key("trackedProperties", OBJECT, "values that the history of the run shows with the action"),
    key("operationOptions", TEXT, "options of the action, such as DisableAsyncPattern or Sequential"),
    key(
        "runtimeConfiguration",
        open![
            key("concurrency", open![key("repetitions", NUMBER_OR_TEXT, "items of a Foreach at a time")], ""),
            key("paginationPolicy", open![key("minimumItemCount", NUMBER_OR_TEXT, "pages are read until this number of items")], ""),
            key("secureData", open![key("properties", Type::ListOf(&Type::Words(&["inputs", "outputs"])), "what every view hides")], ""),
            key("contentTransfer", open![key("transferMode", Type::Words(&["Chunked"]), "")], "of large messages; no effect"),
            key("staticResult", OBJECT, "not used; a warning if it is enabled"),
        ],
        "how the action runs",
    ),
];

const TIMEOUT: Key = key("limit", open![key("timeout", TEXT, "ISO 8601, such as PT1H")], "how long the action may take");

const SCHEMA: Key = key("schema", OBJECT, "the JSON Schema of the body, for designers; no effect");

const REQUEST: &[Key] = &[
    required("method", Type::AnyCase(METHODS), ""),
    required("uri", TEXT, "the address; text that may contain @{expressions}"),
    key("headers", OBJECT, ""),
    key("queries", OBJECT, "the parameters of the address"),
    key("body", Type::Any, ""),
    key("cookie", TEXT, ""),
    key(
        "authentication",
        open![key("type", Type::Words(&["Basic", "ClientCertificate", "ActiveDirectoryOAuth", "Raw", "ManagedServiceIdentity"]), "")],
        "",
    ),
    RETRY_POLICY,
];

const RETRY_POLICY: Key = key(
    "retryPolicy",
    Type::AnyOf(&[TEXT, open![
        required("type", Type::AnyCase(&["none", "fixed", "exponential"]), ""),
        key("count", NUMBER_OR_TEXT, "attempts after the first one; default 4"),
        key("interval", TEXT, "ISO 8601, such as PT10S"),
        key("minimumInterval", TEXT, "of exponential: the shortest wait"),
        key("maximumInterval", TEXT, "of exponential: the longest wait"),
    ]]),
    "when a failed request is repeated; default: 4 times, with exponential waits",
);

const NAME: Key = required("name", TEXT, "the name of the variable");
const COUNTED: Type = open![NAME, key("value", NUMBER_OR_TEXT, "by how much; default 1")];
const CHANGED: Type = open![NAME, required("value", Type::Any, "")];

const HTTP: Map = Map { keys: &[REQUEST], ..OPEN };

const TYPES: &[Action] = &[
    action("Http", "a request; its outputs are statusCode, headers and body", &[inputs(Type::Map(&HTTP)), TIMEOUT]),
    action(
        "HttpWebhook",
        "sends a request with a callback address, and waits for a request to that address",
        &[inputs(open![required("subscribe", Type::Map(&HTTP), "has the address @{listCallbackUrl()}"), key("unsubscribe", Type::Map(&HTTP), ""), SCHEMA]), TIMEOUT],
    ),
    action(
        "Response",
        "the answer to the request that started the run",
        &[inputs(open![required("statusCode", NUMBER_OR_TEXT, "from 100 to 599"), key("headers", OBJECT, ""), key("body", Type::Any, ""), SCHEMA])],
    ),
    action("Compose", "its output is its inputs", &[inputs(Type::Any)]),
    action(
        "ParseJson",
        "its output is the value of a JSON text",
        &[inputs(open![required("content", Type::Any, ""), key("schema", OBJECT, "the JSON Schema of the value")])],
    ),
    action(
        "Select",
        "maps each element of a list",
        &[inputs(open![required("from", LIST_OR_TEXT, "the list"), required("select", Type::Any, "an expression over each element, item()")])],
    ),
    action(
        "Query",
        "the elements of a list for which a condition holds",
        &[inputs(open![required("from", LIST_OR_TEXT, "the list"), required("where", CONDITION, "")])],
    ),
    action(
        "Join",
        "joins the elements of a list to a text",
        &[inputs(open![required("from", LIST_OR_TEXT, "the list"), required("joinWith", TEXT, "")])],
    ),
    action(
        "Table",
        "a list as CSV or HTML",
        &[inputs(open![
            required("from", LIST_OR_TEXT, "the list"),
            required("format", Type::AnyCase(&["CSV", "HTML"]), ""),
            key("columns", Type::ListOf(&open![key("header", TEXT, ""), key("value", Type::Any, "")]), "default: the members of the items"),
        ])],
    ),
    action(
        "Expression",
        "computes a time, a text or a number",
        &[required("kind", Type::AnyCase(EXPRESSION_KINDS), "what it computes"), inputs(OBJECT)],
    ),
    action(
        "InitializeVariable",
        "declares a variable; at the top level only",
        &[inputs(open![required(
            "variables",
            Type::ListOf(&open![NAME, required("type", Type::AnyCase(&["Array", "Boolean", "Float", "Integer", "Object", "String"]), ""), key("value", Type::Any, "the first value")]),
            "",
        )])],
    ),
    action("SetVariable", "sets a variable", &[inputs(CHANGED)]),
    action("IncrementVariable", "increases a variable", &[inputs(COUNTED)]),
    action("DecrementVariable", "decreases a variable", &[inputs(COUNTED)]),
    action("AppendToArrayVariable", "appends to a variable", &[inputs(CHANGED)]),
    action("AppendToStringVariable", "appends to a variable", &[inputs(CHANGED)]),
    action(
        "Wait",
        "waits for a time, or until an instant",
        &[inputs(open![
            key("interval", open![required("count", NUMBER_OR_TEXT, ""), required("unit", FREQUENCY, "")], ""),
            key("until", open![required("timestamp", TEXT, "such as 2026-11-20T14:00:00Z")], ""),
        ])],
    ),
    action(
        "Terminate",
        "ends the run",
        &[inputs(open![
            required("runStatus", Type::AnyCase(&["Succeeded", "Failed", "Cancelled"]), ""),
            key("runError", open![key("code", Type::Any, ""), key("message", Type::Any, "")], "of Failed"),
        ])],
    ),
    action("Scope", "groups actions", &[key("actions", ACTIONS, "")]),
    action(
        "If",
        "does its actions if the condition is true",
        &[required("expression", CONDITION, "the condition"), key("actions", ACTIONS, ""), key("else", BLOCK, "")],
    ),
    action(
        "Switch",
        "does the actions of one case",
        &[
            required("expression", Type::Any, "the value that selects a case"),
            key("cases", Type::MapOf(&open![required("case", Type::Json(&["string", "number", "boolean"]), ""), required("actions", ACTIONS, "")]), ""),
            key("default", BLOCK, ""),
        ],
    ),
    action(
        "Foreach",
        "does its actions for each item of a list",
        &[required("foreach", LIST_OR_TEXT, "the list"), required("actions", ACTIONS, "")],
    ),
    action(
        "Until",
        "repeats its actions until the condition is true; checks after each iteration",
        &[
            required("expression", CONDITION, "the condition"),
            required("actions", ACTIONS, ""),
            required("limit", open![key("count", NUMBER_OR_TEXT, "default 60"), key("timeout", TEXT, "default PT1H")], "when it ends in any case"),
        ],
    ),
    action(
        "ApiConnection",
        "a call of a managed connector: a handler does its work",
        &[inputs(open![
            required("host", OBJECT, "names the connection"),
            key("method", Type::AnyCase(METHODS), ""),
            key("path", TEXT, ""),
            key("queries", OBJECT, ""),
            key("body", Type::Any, ""),
            RETRY_POLICY,
        ]), TIMEOUT],
    ),
    action(
        "ServiceProvider",
        "a call of a built-in connector of a Standard app: a handler does its work",
        &[inputs(open![
            key("parameters", OBJECT, ""),
            required(
                "serviceProviderConfiguration",
                open![required("connectionName", TEXT, ""), required("operationId", TEXT, ""), required("serviceProviderId", TEXT, "")],
                "",
            ),
            RETRY_POLICY,
        ]), TIMEOUT],
    ),
    action("Function", "a call of a function: a handler does its work", &[inputs(OBJECT), TIMEOUT]),
    action("Workflow", "a call of another workflow: a handler does its work", &[inputs(OBJECT), TIMEOUT]),
    action("JavaScriptCode", "a script: a handler does its work", &[inputs(open![required("code", TEXT, "")]), TIMEOUT]),
];

const EXPRESSION_KINDS: &[&str] = &[
    "AddToTime", "ConvertTimeZone", "CurrentTime", "FormatNumber", "GetFutureTime", "GetPastTime", "IndexOf", "Substring", "SubtractFromTime",
];
const BLOCK: Type = open![key("actions", ACTIONS, "")];
/// A unit of time, or an expression.
const FREQUENCY: Type = Type::WithRules(r#"{"examples":["Second","Minute","Hour","Day","Week","Month"]}"#, &TEXT);

const TRIGGER: Type = open![
    required(
        "type",
        Type::WithRules(r#"{"examples":["Request","Recurrence","SlidingWindow","Http","HttpWebhook","ApiConnection","ApiConnectionWebhook","ServiceProvider"]}"#, &TEXT),
        "",
    ),
    key("kind", TEXT, "of Request: Http, Button, …"),
    key(
        "inputs",
        open![key("schema", OBJECT, "the JSON Schema of the body, which a run's input must have"), key("method", Type::AnyCase(METHODS), ""), key("relativePath", TEXT, "")],
        "",
    ),
    key(
        "recurrence",
        open![
            required("frequency", FREQUENCY, ""),
            required("interval", NUMBER_OR_TEXT, ""),
            key("startTime", TEXT, "such as 2026-11-20T14:00:00Z"),
            key("endTime", TEXT, ""),
            key("timeZone", TEXT, "such as W. Europe Standard Time"),
            key("schedule", open![key("hours", LIST, ""), key("minutes", LIST, ""), key("weekDays", LIST, "")], ""),
        ],
        "when a server starts runs",
    ),
    key("conditions", Type::ListOf(&open![required("expression", CONDITION, ""), key("dependsOn", TEXT, "")]), "a run starts only if all hold"),
    key("splitOn", TEXT, "not split here: one run gets the complete body"),
    key("runtimeConfiguration", open![key("concurrency", open![key("runs", NUMBER_OR_TEXT, "runs at a time; further runs wait")], "")], ""),
    key("operationOptions", TEXT, "SingleInstance: a run starts only if no other is active"),
];

const PARAMETER: Type = open![
    required("type", Type::AnyCase(&["Array", "Bool", "Float", "Int", "Object", "SecureObject", "SecureString", "String"]), ""),
    key("defaultValue", Type::Any, "the value if no other is set"),
    key("allowedValues", LIST, ""),
    key("metadata", OBJECT, "for people; no effect"),
];

const DEFINITIONS: &[Definition] = &[
    define("actions", Type::MapOf(&Type::Def("action"))),
    define("definition", open![
        key("$schema", TEXT, "the schema of Azure"),
        key("contentVersion", TEXT, "for people; no effect"),
        key("parameters", Type::MapOf(&PARAMETER), "values that differ between environments"),
        key("triggers", Type::MapOf(&TRIGGER), "what starts runs"),
        required("actions", ACTIONS, ""),
        key("outputs", Type::MapOf(&Type::AnyOf(&[TEXT, open![key("type", TEXT, ""), key("value", Type::Any, "")]])), "the outputs of the run"),
        key("staticResults", OBJECT, "not used"),
    ]),
    define("workflow", open![
        required("definition", Type::Def("definition"), ""),
        key("kind", Type::WithRules(r#"{"examples":["Stateful","Stateless"]}"#, &TEXT), "of a Standard app; no effect"),
        key("parameters", Type::MapOf(&open![required("value", Type::Any, "")]), "the values of the parameters"),
        key("state", TEXT, "of Azure; no effect"),
        key("tags", OBJECT, "of Azure; no effect"),
        key("isEnabled", FLAG, "of Azure; no effect"),
    ]),
];

/// Makes the JSON Schema of the format. A file is a definition, a map with the key `definition`, or such a map under
/// `properties`. It says nothing about ARM templates.
pub(crate) fn schema() -> Json {
    let root = json!({
        "title": "A Logic Apps definition",
        "description": "What Windlass uses of it; docs/reference/azure.md describes it.",
        "type": "object",
        "if": { "required": ["definition"] },
        "then": { "$ref": "#/$defs/workflow" },
        "else": {
            "if": { "required": ["resources"] },
            "else": {
                "if": { "required": ["properties"] },
                "then": { "properties": { "properties": { "$ref": "#/$defs/workflow" } } },
                "else": { "$ref": "#/$defs/definition" },
            },
        },
    });
    let mut schema = document("azure", root, DEFINITIONS);
    if let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) {
        let kinds: Vec<&str> = TYPES.iter().map(|action| action.kind).collect();
        let common = members(&Map { keys: &[COMMON], ..OPEN });
        let branches: Vec<Json> = TYPES.iter().map(branch).collect();
        let action = merge(common, json!({ "type": "object", "required": ["type"], "allOf": branches }));
        let action = with_kinds(action, &kinds);
        definitions.insert(String::from("action"), action);
    }
    Json::Object(schema)
}

/// Sets the names of the types in the schema of an action. There are more: a handler may do the work of any type.
fn with_kinds(mut action: Json, kinds: &[&str]) -> Json {
    if let Some(kind) = action.pointer_mut("/properties/type") {
        *kind = merge(kind.take(), json!({ "type": "string", "examples": kinds }));
    }
    action
}

/// Makes the part of the schema that holds for one type of action.
fn branch(action: &'static Action) -> Json {
    let own = members(&Map { keys: std::slice::from_ref(&action.keys), ..OPEN });
    let then = merge(json!({ "description": action.description }), own);
    json!({ "if": { "properties": { "type": word(action.kind) }, "required": ["type"] }, "then": then })
}
