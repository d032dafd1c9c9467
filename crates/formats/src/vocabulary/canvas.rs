//! The vocabulary of canvases: docs/reference/canvas.md.

use super::schema::document;
use super::{CLOSED, Definition, FLAG, Key, Map, OBJECT, TEXT, Type, RequiredSets, define, key, required};
use serde_json::{Map as Object, Value as Json, json};

const RENDERED: &str = "Text is rendered: {{ input }}, {{ node.output }}.";
const ISO: &str = "ISO 8601, such as PT30S; {count, unit}; or a template.";
const TEXT_OR_NULL: Type = Type::Json(&["string", "null"]);
pub(crate) const NODE_TYPES: &[&str] = &[
    "loop",
    "map",
    "component",
    "agent",
    "shell",
    "function",
    "constant",
    "http",
    "trigger",
    "interface-input",
    "interface-output",
    "interface-continue",
    "wire",
];
const INPUT_MAPPING_LIST: Type = Type::ListOrNull(&Type::Def("inputMapping"));
const OUTPUT_MAPPING_LIST: Type = Type::ListOrNull(&Type::Def("outputMapping"));
const DURATION: Type = Type::WithRules(
    r#"{"pattern":"^\\s*P(?=[\\dT])(?:\\d+W|(?:\\d+D)?(?:T(?=\\d)(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:[.,]\\d+)?S)?)?)\\s*$|\\{\\{|\\{%"}"#,
    &Type::Json(&["string", "object"]),
);
const PORTS_IN: Type = Type::ListOrNull(&Type::Def("input"));
const PORTS_OUT: Type = Type::ListOrNull(&Type::Def("output"));
const INLINE: Type = Type::AnyOf(&[Type::Def("workflow"), Type::Json(&["null"])]);
const PORT_TYPES: Type = Type::Words(&["string", "number", "boolean", "json", "any", "file", "files", "object", "array"]);
/// Keys in the `data` of each node.
pub(super) const NODE_DATA: &[Key] = &[
    key("label", TEXT, "The title for people."),
    key("nodeType", Type::Words(NODE_TYPES), IGNORED),
    key("inputs", PORTS_IN, ""),
    key("outputs", PORTS_OUT, ""),
    key("timeout", DURATION, ISO)
        .reference("the time of the complete node, on the wall clock. After it the node fails with kind `timeout`"),
];

/// Keys that any node's `data` may have and that have no effect.
pub(crate) const NODE_NOTES: &[Key] = &[
    key("description", TEXT, ""),
    key("icon", Type::Any, IGNORED),
    key("color", Type::Any, IGNORED),
    key("notes", Type::Any, IGNORED),
    key("collapsed", Type::Any, IGNORED),
    key("expanded", Type::Any, IGNORED),
    key("metadata", Type::Any, ""),
    key("status", Type::Any, IGNORED),
    key("valueType", Type::Any, IGNORED),
    key("executionStatus", Type::Any, IGNORED),
    key("executionOutput", Type::Any, IGNORED),
];
pub(super) const REFERENCE_KEYS: &[Key] = &[
    key("workflowRef", TEXT_OR_NULL, "A file in this file's folder or below.")
        .reference("the inner workflow: a file in the folder of this file or below it"),
    key("inlineWorkflow", INLINE, "")
        .reference("the inner workflow itself"),
    key("workflowPath", TEXT_OR_NULL, "The same as workflowRef, as graph editors have it.")
        .reference("the same as `workflowRef`, as graph editors name it"),
    key("componentRef", TEXT_OR_NULL, "A name under components of this file.")
        .reference("the inner workflow: a name under the file's `components`"),
];
const PORT: &[Key] = &[
    required("name", Type::NonEmptyText, ""),
    key("type", PORT_TYPES, "").default_value(r#""any""#),
    key("required", FLAG, "").default_value("false"),
    key("default", Type::Any, ""),
    key("label", Type::Any, ""),
    key("description", Type::Any, ""),
    key("id", Type::Any, ""),
    key("schema", Type::Any, ""),
];

const DOCK_SLOTS: Type = Type::ListOf(&open![
    required("name", TEXT, ""),
    required("type", Type::Words(&["iteration", "continue", "feedback"]), ""),
    key("valueType", Type::Any, IGNORED),
    key("label", Type::Any, ""),
    key("description", Type::Any, ""),
]);
/// Keys of a graph that have no effect.
pub(crate) const WORKFLOW_NOTES: &[Key] = &[
    key("dialect", Type::Words(&["canvas"]), ""),
    key("id", Type::Any, ""),
    key("description", TEXT, ""),
    key("version", Type::Any, ""),
    key("metadata", Type::Any, ""),
    key("$schema", TEXT, ""),
    key("schemaVersion", Type::Any, IGNORED),
    key("viewport", Type::Any, IGNORED),
    key("createdAt", Type::Any, IGNORED),
    key("updatedAt", Type::Any, IGNORED),
    key("tags", Type::Any, IGNORED),
    key("interface", Type::Any, ""),
];

/// Keys of an edge that have no effect.
pub(crate) const EDGE_NOTES: &[Key] = keys![
    "" => ["id", "type", "label", "data"],
    IGNORED => [
        "style", "className", "animated", "selected", "selectable", "deletable", "hidden", "zIndex", "markerEnd",
        "markerStart", "interactionWidth",
    ],
];

/// Keys that drawing tools write and that have no effect.
pub(crate) const DRAWING: &[Key] = keys![
    IGNORED => [
        "position", "positionAbsolute", "width", "height", "measured", "selected", "dragging", "resizing", "parentId",
        "parentNode", "extent", "expandParent", "style", "className", "zIndex", "draggable", "selectable",
        "connectable", "deletable", "hidden", "sourcePosition", "targetPosition", "dragHandle", "ariaLabel",
    ],
];

const IGNORED: &str = "of drawing tools; no effect";

const INPUT_MAPPINGS: Key = key("inputMappings", INPUT_MAPPING_LIST, "")
    .reference("`{source, target: {node, input}, iterations: first | subsequent | all}`");
const OUTPUT_MAPPINGS: Key = key("outputMappings", OUTPUT_MAPPING_LIST, "")
    .reference("`{source: {node, output}, target, take: last | first | all}`");
const SLOTS: Key = key("dockSlots", DOCK_SLOTS, "What edges lead to inside the loop, as graph editors draw it.")
    .reference("a list of `{name, type}`: see [Drawn loops](#drawn-loops)");

/// The keys that only a loop has.
pub(super) const LOOP: &[Key] = &[
    INPUT_MAPPINGS,
    OUTPUT_MAPPINGS,
    key("continueWhile", Type::Def("test"), "")
        .reference(r#"`{output: "node.port", operator, value}`; operators `==` `!=` `<` `>` `<=` `>=`"#),
    key("breakWhen", Type::Def("test"), "")
        .reference("the same form. If it is true, the loop ends right after that node. With `breakWhen`, `continueWhile` is optional"),
    key("maxIterations", Type::AnyOf(&[Type::Integer(1, None), Type::About("A template.", &TEXT)]), "The most iterations.")
        .reference("the maximum of iterations; a number or a template. A value above the cap is refused (1,000,000, over HTTP 10,000; `--max-count`)")
        .default_value("10"),
    key("delay", DURATION, ISO)
        .reference("the time between iterations, such as `PT30S`"),
    SLOTS,
];

pub(super) const DEFINITIONS: &[Definition] = &[
    define("input", closed![PORT;]),
    define("output", closed![PORT; key(
        "extract",
        Type::OneOf(&[
            closed![required("type", Type::Exactly(r#""regex""#), ""), required("pattern", TEXT, "")],
            closed![required("type", Type::Exactly(r#""json""#), ""), required("path", TEXT, "")],
            closed![required("type", Type::Exactly(r#""json_path""#), ""), required("pattern", TEXT, "")],
            open![required("type", Type::Exactly(r#""full""#), "")],
        ]),
        "Where the output's value is in the node's result.",
    )]),
    define("runner", Type::About(
        "A program (prompt on standard input, answer on standard output), or an address that gets a POST of {prompt, session_id}.",
        &Type::OneOf(&[
            closed![required(
                "command",
                Type::AnyOf(&[Type::WithRules(r#"{"minItems":1}"#, &Type::ListOf(&TEXT)), TEXT]),
                "`{{ session_id }}` in a word becomes the current session.",
            )],
            closed![required("url", TEXT, "")],
        ]),
    )),
    define("workflow", closed![WORKFLOW_NOTES;
        key("name", TEXT, ""),
        key("runners", Type::MapOf(&Type::Def("runner")), ""),
        required("nodes", Type::WithRules(r#"{"minItems":1}"#, &Type::ListOf(&Type::Def("node"))), ""),
        key("edges", Type::ListOrNull(&Type::Def("edge")), ""),
        key("components", Type::MapOf(&Type::Def("workflow")), "Workflows that nodes name as componentRef."),
    ]),
    define("edge", closed![EDGE_NOTES;
        required("source", TEXT, ""),
        required("target", TEXT, ""),
        key(
            "sourceHandle",
            TEXT_OR_NULL,
            "output:NAME. Inside a loop that is drawn around its nodes: input:NAME, dock:NAME:output, dock:NAME:prev. Write both handles, or none: an edge without ports is only an order.",
        ),
        key(
            "targetHandle",
            TEXT_OR_NULL,
            "input:NAME. To a loop from its inside: output:NAME:internal, dock:NAME:input, dock:NAME:current.",
        ),
    ]),
    define("node", Type::Map(&Map {
        keys: &[DRAWING, &[required("id", Type::NonEmptyText, ""), required("type", Type::Words(NODE_TYPES), ""), key("data", OBJECT, "")]],
        rules: data_by_type,
        ..CLOSED
    })),
    define("test", closed![
        required("output", TEXT, "node.output of an inner node"),
        required("operator", Type::Words(&["==", "!=", "<", ">", "<=", ">="]), ""),
        required("value", Type::Any, ""),
    ]),
    define("inputMapping", closed![
        required(
            "source",
            Type::OneOf(&[
                closed![required("type", Type::Exactly(r#""outer""#), ""), required("name", TEXT, "")],
                closed![required("type", Type::Exactly(r#""previous""#), ""), required("node", TEXT, ""), required("output", TEXT, "")],
                closed![required("type", Type::Exactly(r#""builtin""#), ""), required("name", Type::Exactly(r#""iteration_count""#), "")],
            ]),
            "",
        ),
        required("target", closed![required("node", TEXT, ""), required("input", TEXT, "")], ""),
        key("iterations", Type::Words(&["first", "subsequent", "all"]), "").default_value(r#""all""#),
        key("id", Type::Any, ""),
        key("label", Type::Any, ""),
        key("description", Type::Any, ""),
    ]),
    define("outputMapping", closed![
        required(
            "source",
            Type::OneOf(&[
                closed![key("type", Type::Any, ""), required("node", TEXT, ""), required("output", TEXT, "")],
                closed![
                    required("type", Type::Exactly(r#""builtin""#), ""),
                    required("name", Type::Words(&["iteration_count", "status"]), ""),
                ],
            ]),
            "",
        ),
        required("target", TEXT, ""),
        key("take", Type::Words(&["last", "first", "all"]), "").default_value(r#""last""#),
        key("id", Type::Any, ""),
        key("label", Type::Any, ""),
        key("description", Type::Any, ""),
    ]),
    define("loop", Type::Map(&Map {
        keys: &[NODE_DATA, NODE_NOTES, REFERENCE_KEYS, LOOP],
        rules: loop_rules,
        ..CLOSED
    })),
    define("map", Type::Map(&Map {
        keys: &[NODE_DATA, NODE_NOTES, REFERENCE_KEYS, &[
            INPUT_MAPPINGS,
            OUTPUT_MAPPINGS,
            required("over", TEXT, "The input that has the list."),
            key("concurrency", Type::Integer(1, None), "").default_value("10"),
            key("breakWhen", Type::Def("test"), ""),
            key("maxIterations", Type::AnyOf(&[Type::Integer(1, None), Type::About("A template.", &TEXT)]), "The most iterations."),
            SLOTS,
        ]],
        rules: map_rules,
        ..CLOSED
    })),
    define("component", Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES, REFERENCE_KEYS], rules: component_rules, ..CLOSED })),
    define("agent", closed![
        NODE_DATA,
        NODE_NOTES,
        &[required("runner", TEXT, "openai, or the name of a runner."), required("prompt", TEXT, ""), key("session", FLAG, "").default_value("false")],
        keys![
            RENDERED => [
                "model", "system", "baseUrl", "base_url", "apiKey", "api_key", "apiKeyFile", "api_key_file",
                "temperature", "maxTokens", "max_tokens", "maxRetries", "max_retries", "responseFormat",
                "response_format", "provider",
            ],
        ];
    ]),
    define("shell", Type::Map(&Map {
        keys: &[NODE_DATA, NODE_NOTES, &[
            key("script", TEXT, ""),
            key("commands", Type::WithRules(r#"{"minItems":1}"#, &Type::ListOf(&TEXT)), ""),
            key("cwd", TEXT, ""),
            key("failOnError", FLAG, "Default: a failed command fails its node, unless something reads exitCode."),
            key("path", TEXT, "The same as cwd."),
            key("continueOnFailure", FLAG, ""),
        ]],
        required_sets: RequiredSets::Exactly(&[&["script"], &["commands"]]),
        ..CLOSED
    })),
    define("function", closed![NODE_DATA, NODE_NOTES; key("language", Type::Words(&["lua", "python"]), "").default_value(r#""lua""#), required("code", TEXT, "")]),
    define("constant", closed![NODE_DATA, NODE_NOTES; required("value", Type::Any, "")]),
    define("http", Type::Map(&Map {
        keys: &[
            NODE_DATA,
            NODE_NOTES,
            &[key("method", TEXT, ""), key("url", TEXT, ""), key("uri", TEXT, "")],
            keys![
                RENDERED => ["headers", "queries", "query", "body", "authentication"],
                "ca, certificate and key in PEM. Text is rendered: {{ input }}, {{ node.output }}." => ["tls"],
            ],
        ],
        required_sets: RequiredSets::Exactly(&[&["url"], &["uri"]]),
        ..CLOSED
    })),
    define("trigger", closed![NODE_DATA, NODE_NOTES, keys![IGNORED => ["triggerType", "schedule", "cron", "config", "payload"]];]),
    define("interface-input", closed![NODE_DATA, NODE_NOTES;]),
    define("interface-output", closed![NODE_DATA, NODE_NOTES;]),
    define("interface-continue", closed![NODE_DATA, NODE_NOTES;]),
    define("wire", closed![NODE_DATA, NODE_NOTES;]),
];

/// The keys with which a node refers to another workflow, each with the type of its value.
const REFERENCE_TYPES: [(&str, &str); 4] =
    [("workflowRef", "string"), ("inlineWorkflow", "object"), ("workflowPath", "string"), ("componentRef", "string")];

/// Makes the rule that exactly one of [`REFERENCE_TYPES`] is set, and that the others are null.
fn one_reference() -> Json {
    let only = |(name, _): &(&str, &str)| {
        let kind = |(own, kind): &(&str, &'static str)| if own == name { *kind } else { "null" };
        let properties = REFERENCE_TYPES.iter().map(|one| (one.0.to_owned(), json!({ "type": kind(one) })));
        json!({ "required": [name], "properties": Object::from_iter(properties) })
    };
    json!({ "oneOf": REFERENCE_TYPES.iter().map(only).collect::<Vec<_>>() })
}

fn component_rules() -> Json {
    json!({ "allOf": [one_reference()] })
}

/// Makes the rule of a loop: it refers to an inner workflow and has a condition. Graph editors draw a loop around its
/// nodes instead; such a loop has none of these keys.
fn loop_rules() -> Json {
    let conditions = ["continueWhile", "breakWhen"];
    let ends = conditions.map(|name| json!({ "required": [name] }));
    let all = json!({ "allOf": [one_reference(), { "anyOf": ends }] });
    either_or_none(all, &conditions)
}

/// Makes the rule of a map: it refers to an inner workflow, or is drawn around its nodes.
fn map_rules() -> Json {
    either_or_none(json!({ "allOf": [one_reference()] }), &[])
}

/// Makes the rule that `rule` holds, or that the node has no key of [`REFERENCE_TYPES`], no mappings and none of the keys
/// `further`.
fn either_or_none(rule: Json, further: &[&str]) -> Json {
    let names = REFERENCE_TYPES.map(|(name, _)| name).into_iter();
    let names = names.chain(further.iter().copied()).chain(["inputMappings", "outputMappings"]);
    let none: Object<String, Json> = names.map(|name| (name.to_owned(), json!(false))).collect();
    json!({ "allOf": [{ "anyOf": [rule, { "properties": none }] }] })
}

/// Makes the rule that the type of a node decides which keys its `data` has.
fn data_by_type() -> Json {
    let case = |kind: &&str| {
        json!({
            "if": { "properties": { "type": { "const": kind } }, "required": ["type"] },
            "then": { "properties": { "data": { "$ref": format!("#/$defs/{kind}") } } },
        })
    };
    json!({ "allOf": NODE_TYPES.iter().map(case).collect::<Vec<_>>() })
}

/// Finds a key that changes what a node of some type does, and that belongs into `data` of the node.
pub(crate) fn data_key(name: &str) -> Option<&'static str> {
    let of_node = |definition: &&Definition| NODE_TYPES.contains(&definition.name);
    let mut keys = DEFINITIONS.iter().filter(of_node).flat_map(|definition| match &definition.value {
        Type::Map(map) => map.keys,
        _ => &[],
    });
    // Graph editors have these keys next to `id`, too.
    let is_note = matches!(name, "label" | "nodeType" | "path")
        || NODE_NOTES.iter().any(|key| key.name == name);
    let found = keys.find_map(|keys| keys.iter().find(|key| key.name == name));
    found.filter(|_| !is_note).map(|key| key.name)
}

/// Makes the JSON Schema of the format.
pub(crate) fn schema() -> Json {
    let root = json!({
        "title": "A canvas",
        "description": "A graph of nodes with ports and loops; docs/reference/canvas.md describes the format.",
        "$ref": "#/$defs/workflow",
    });
    Json::Object(document("canvas", root, DEFINITIONS))
}
