//! The vocabulary of canvases: docs/reference/canvas.md.

use super::schema::document;
use super::{Case, Definition, FLAG, Key, MAP, Map, OBJECT, Others, TEXT, Type, Ways, key, required};
use serde_json::{Value as Json, json};

const TEXT_OR_NULL: Type = Type::Json(&["string", "null"]);
/// The types of nodes.
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
const INPUT_MAPPINGS: Type = Type::ListOrNull(&Type::Def("inputMapping"));
const OUTPUT_MAPPINGS: Type = Type::ListOrNull(&Type::Def("outputMapping"));
const DURATION: Type = Type::With(
    r#"{"pattern":"^\\s*P(?=[\\dT])(?:\\d+W|(?:\\d+D)?(?:T(?=\\d)(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:[.,]\\d+)?S)?)?)\\s*$|\\{\\{|\\{%"}"#,
    &Type::Json(&["string", "object"]),
);
const PORTS_IN: Type = Type::ListOrNull(&Type::Def("input"));
const PORTS_OUT: Type = Type::ListOrNull(&Type::Def("output"));
const INLINE: Type = Type::AnyOf(&[Type::Def("workflow"), Type::Json(&["null"])]);
const PORT_TYPES: Type = Type::Words(&["string", "number", "boolean", "json", "any", "file", "files", "object", "array"]);
/// What each node has in its `data`.
const NODE_DATA: &[Key] = &[
    key("label", TEXT, "The title for people."),
    key("nodeType", Type::Words(NODE_TYPES), IGNORED),
    key("inputs", PORTS_IN, ""),
    key("outputs", PORTS_OUT, ""),
    key("timeout", DURATION, "ISO 8601, such as PT30S; {count, unit}; or a template."),
];

/// The same without effect.
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
const REFERENCE: &[Key] = &[
    key("workflowRef", TEXT_OR_NULL, "A file in this file's folder or below."),
    key("inlineWorkflow", INLINE, ""),
    key("workflowPath", TEXT_OR_NULL, "The same as workflowRef, as graph editors have it."),
    key("componentRef", TEXT_OR_NULL, "A name under components of this file."),
];
const PORT: &[Key] = &[
    required("name", Type::Name, ""),
    key("type", PORT_TYPES, "").or(r#""any""#),
    key("required", FLAG, "").or("false"),
    key("default", Type::Any, ""),
    key("label", Type::Any, ""),
    key("description", Type::Any, ""),
    key("id", Type::Any, ""),
    key("schema", Type::Any, ""),
];

const DOCK_SLOTS: Type = Type::ListOf(&Type::Map(&Map {
    keys: &[&[
        required("name", TEXT, ""),
        required("type", Type::Words(&["iteration", "continue", "feedback"]), ""),
        key("valueType", Type::Any, IGNORED),
        key("label", Type::Any, ""),
        key("description", Type::Any, ""),
    ]],
    others: Others::Any,
    ..MAP
}));
/// Keys of a graph without effect.
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

/// Keys of an edge without effect.
pub(crate) const EDGE_NOTES: &[Key] = &[
    key("id", Type::Any, ""),
    key("type", Type::Any, ""),
    key("label", Type::Any, ""),
    key("data", Type::Any, ""),
    key("style", Type::Any, IGNORED),
    key("className", Type::Any, IGNORED),
    key("animated", Type::Any, IGNORED),
    key("selected", Type::Any, IGNORED),
    key("selectable", Type::Any, IGNORED),
    key("deletable", Type::Any, IGNORED),
    key("hidden", Type::Any, IGNORED),
    key("zIndex", Type::Any, IGNORED),
    key("markerEnd", Type::Any, IGNORED),
    key("markerStart", Type::Any, IGNORED),
    key("interactionWidth", Type::Any, IGNORED),
];

/// Keys of drawing tools, which have no effect.
pub(crate) const DRAWING: &[Key] = &[
    key("position", Type::Any, IGNORED),
    key("positionAbsolute", Type::Any, IGNORED),
    key("width", Type::Any, IGNORED),
    key("height", Type::Any, IGNORED),
    key("measured", Type::Any, IGNORED),
    key("selected", Type::Any, IGNORED),
    key("dragging", Type::Any, IGNORED),
    key("resizing", Type::Any, IGNORED),
    key("parentId", Type::Any, IGNORED),
    key("parentNode", Type::Any, IGNORED),
    key("extent", Type::Any, IGNORED),
    key("expandParent", Type::Any, IGNORED),
    key("style", Type::Any, IGNORED),
    key("className", Type::Any, IGNORED),
    key("zIndex", Type::Any, IGNORED),
    key("draggable", Type::Any, IGNORED),
    key("selectable", Type::Any, IGNORED),
    key("connectable", Type::Any, IGNORED),
    key("deletable", Type::Any, IGNORED),
    key("hidden", Type::Any, IGNORED),
    key("sourcePosition", Type::Any, IGNORED),
    key("targetPosition", Type::Any, IGNORED),
    key("dragHandle", Type::Any, IGNORED),
    key("ariaLabel", Type::Any, IGNORED),
];

const IGNORED: &str = "of drawing tools; no effect";

const DEFINITIONS: &[Definition] = &[
    Definition { name: "input", value: Type::Map(&Map { keys: &[PORT], others: Others::None, ..MAP }) },
    Definition {
        name: "output",
        value: Type::Map(&Map {
            keys: &[
                PORT,
                &[key(
                    "extract",
                    Type::OneOf(&[
                        Type::Map(&Map {
                            keys: &[&[required("type", Type::Exactly(r#""regex""#), ""), required("pattern", TEXT, "")]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map {
                            keys: &[&[required("type", Type::Exactly(r#""json""#), ""), required("path", TEXT, "")]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map {
                            keys: &[&[required("type", Type::Exactly(r#""json_path""#), ""), required("pattern", TEXT, "")]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map { keys: &[&[required("type", Type::Exactly(r#""full""#), "")]], others: Others::Any, ..MAP }),
                    ]),
                    "Where the output's value is in the node's result.",
                )],
            ],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "runner",
        value: Type::About(
            "A program (prompt on standard input, answer on standard output), or an address that gets a POST of {prompt, session_id}.",
            &Type::OneOf(&[
                Type::Map(&Map {
                    keys: &[&[required(
                        "command",
                        Type::AnyOf(&[Type::With(r#"{"minItems":1}"#, &Type::ListOf(&TEXT)), TEXT]),
                        "`{{ session_id }}` in a word becomes the current session.",
                    )]],
                    others: Others::None,
                    ..MAP
                }),
                Type::Map(&Map { keys: &[&[required("url", TEXT, "")]], others: Others::None, ..MAP }),
            ]),
        ),
    },
    Definition {
        name: "workflow",
        value: Type::Map(&Map {
            keys: &[
                WORKFLOW_NOTES,
                &[
                    key("name", TEXT, ""),
                    key("runners", Type::MapOf(&Type::Def("runner")), ""),
                    required("nodes", Type::With(r#"{"minItems":1}"#, &Type::ListOf(&Type::Def("node"))), ""),
                    key("edges", Type::ListOrNull(&Type::Def("edge")), ""),
                    key("components", Type::MapOf(&Type::Def("workflow")), "Workflows that nodes name as componentRef."),
                ],
            ],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "edge",
        value: Type::Map(&Map {
            keys: &[
                EDGE_NOTES,
                &[
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
                ],
            ],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "node",
        value: Type::Map(&Map {
            keys: &[DRAWING, &[required("id", Type::Name, ""), required("type", Type::Words(NODE_TYPES), ""), key("data", OBJECT, "")]],
            others: Others::None,
            cases: &[
                Case { key: "type", is: "loop", then: Map { keys: &[&[key("data", Type::Def("loop"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "map", then: Map { keys: &[&[key("data", Type::Def("map"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "component", then: Map { keys: &[&[key("data", Type::Def("component"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "agent", then: Map { keys: &[&[key("data", Type::Def("agent"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "shell", then: Map { keys: &[&[key("data", Type::Def("shell"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "function", then: Map { keys: &[&[key("data", Type::Def("function"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "constant", then: Map { keys: &[&[key("data", Type::Def("constant"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "http", then: Map { keys: &[&[key("data", Type::Def("http"), "")]], others: Others::Any, ..MAP } },
                Case { key: "type", is: "trigger", then: Map { keys: &[&[key("data", Type::Def("trigger"), "")]], others: Others::Any, ..MAP } },
                Case {
                    key: "type",
                    is: "interface-input",
                    then: Map { keys: &[&[key("data", Type::Def("interface-input"), "")]], others: Others::Any, ..MAP },
                },
                Case {
                    key: "type",
                    is: "interface-output",
                    then: Map { keys: &[&[key("data", Type::Def("interface-output"), "")]], others: Others::Any, ..MAP },
                },
                Case {
                    key: "type",
                    is: "interface-continue",
                    then: Map { keys: &[&[key("data", Type::Def("interface-continue"), "")]], others: Others::Any, ..MAP },
                },
                Case { key: "type", is: "wire", then: Map { keys: &[&[key("data", Type::Def("wire"), "")]], others: Others::Any, ..MAP } },
            ],
            ..MAP
        }),
    },
    Definition {
        name: "test",
        value: Type::Map(&Map {
            keys: &[&[
                required("output", TEXT, "node.output of an inner node"),
                required("operator", Type::Words(&["==", "!=", "<", ">", "<=", ">="]), ""),
                required("value", Type::Any, ""),
            ]],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "inputMapping",
        value: Type::Map(&Map {
            keys: &[&[
                required(
                    "source",
                    Type::OneOf(&[
                        Type::Map(&Map {
                            keys: &[&[required("type", Type::Exactly(r#""outer""#), ""), required("name", TEXT, "")]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map {
                            keys: &[&[
                                required("type", Type::Exactly(r#""previous""#), ""),
                                required("node", TEXT, ""),
                                required("output", TEXT, ""),
                            ]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map {
                            keys: &[&[
                                required("type", Type::Exactly(r#""builtin""#), ""),
                                required("name", Type::Exactly(r#""iteration_count""#), ""),
                            ]],
                            others: Others::None,
                            ..MAP
                        }),
                    ]),
                    "",
                ),
                required(
                    "target",
                    Type::Map(&Map { keys: &[&[required("node", TEXT, ""), required("input", TEXT, "")]], others: Others::None, ..MAP }),
                    "",
                ),
                key("iterations", Type::Words(&["first", "subsequent", "all"]), "").or(r#""all""#),
                key("id", Type::Any, ""),
                key("label", Type::Any, ""),
                key("description", Type::Any, ""),
            ]],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "outputMapping",
        value: Type::Map(&Map {
            keys: &[&[
                required(
                    "source",
                    Type::OneOf(&[
                        Type::Map(&Map {
                            keys: &[&[key("type", Type::Any, ""), required("node", TEXT, ""), required("output", TEXT, "")]],
                            others: Others::None,
                            ..MAP
                        }),
                        Type::Map(&Map {
                            keys: &[&[
                                required("type", Type::Exactly(r#""builtin""#), ""),
                                required("name", Type::Words(&["iteration_count", "status"]), ""),
                            ]],
                            others: Others::None,
                            ..MAP
                        }),
                    ]),
                    "",
                ),
                required("target", TEXT, ""),
                key("take", Type::Words(&["last", "first", "all"]), "").or(r#""last""#),
                key("id", Type::Any, ""),
                key("label", Type::Any, ""),
                key("description", Type::Any, ""),
            ]],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "loop",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                REFERENCE,
                &[
                    key("inputMappings", INPUT_MAPPINGS, ""),
                    key("outputMappings", OUTPUT_MAPPINGS, ""),
                    key("continueWhile", Type::Def("test"), ""),
                    key("breakWhen", Type::Def("test"), ""),
                    key("maxIterations", Type::AnyOf(&[Type::Integer(1, None), Type::About("A template.", &TEXT)]), "The most iterations.").or("10"),
                    key("delay", DURATION, "ISO 8601, such as PT30S; {count, unit}; or a template."),
                    key("dockSlots", DOCK_SLOTS, "What edges lead to inside the loop, as graph editors draw it."),
                ],
            ],
            others: Others::None,
            rules: r#"{"allOf":[{"anyOf":[{"allOf":[{"oneOf":[{"required":["workflowRef"],"properties":{"workflowRef":{"type":"string"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["inlineWorkflow"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"object"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["workflowPath"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"string"},"componentRef":{"type":"null"}}},{"required":["componentRef"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"string"}}}]},{"anyOf":[{"required":["continueWhile"]},{"required":["breakWhen"]}]}]},{"properties":{"workflowRef":false,"inlineWorkflow":false,"workflowPath":false,"componentRef":false,"continueWhile":false,"breakWhen":false,"inputMappings":false,"outputMappings":false}}]}]}"#,
            ..MAP
        }),
    },
    Definition {
        name: "map",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                REFERENCE,
                &[
                    key("inputMappings", INPUT_MAPPINGS, ""),
                    key("outputMappings", OUTPUT_MAPPINGS, ""),
                    required("over", TEXT, "The input that has the list."),
                    key("concurrency", Type::Integer(1, None), "").or("10"),
                    key("breakWhen", Type::Def("test"), ""),
                    key("maxIterations", Type::AnyOf(&[Type::Integer(1, None), Type::About("A template.", &TEXT)]), "The most iterations."),
                    key("dockSlots", DOCK_SLOTS, "What edges lead to inside the loop, as graph editors draw it."),
                ],
            ],
            others: Others::None,
            rules: r#"{"allOf":[{"anyOf":[{"allOf":[{"oneOf":[{"required":["workflowRef"],"properties":{"workflowRef":{"type":"string"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["inlineWorkflow"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"object"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["workflowPath"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"string"},"componentRef":{"type":"null"}}},{"required":["componentRef"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"string"}}}]}]},{"properties":{"workflowRef":false,"inlineWorkflow":false,"workflowPath":false,"componentRef":false,"inputMappings":false,"outputMappings":false}}]}]}"#,
            ..MAP
        }),
    },
    Definition {
        name: "component",
        value: Type::Map(&Map {
            keys: &[NODE_DATA, NODE_NOTES, REFERENCE],
            others: Others::None,
            rules: r#"{"allOf":[{"oneOf":[{"required":["workflowRef"],"properties":{"workflowRef":{"type":"string"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["inlineWorkflow"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"object"},"workflowPath":{"type":"null"},"componentRef":{"type":"null"}}},{"required":["workflowPath"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"string"},"componentRef":{"type":"null"}}},{"required":["componentRef"],"properties":{"workflowRef":{"type":"null"},"inlineWorkflow":{"type":"null"},"workflowPath":{"type":"null"},"componentRef":{"type":"string"}}}]}]}"#,
            ..MAP
        }),
    },
    Definition {
        name: "agent",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                &[
                    required("runner", TEXT, "openai, or the name of a runner."),
                    required("prompt", TEXT, ""),
                    key("session", FLAG, "").or("false"),
                    key("model", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("system", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("baseUrl", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("base_url", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("apiKey", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("api_key", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("apiKeyFile", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("api_key_file", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("temperature", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("maxTokens", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("max_tokens", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("maxRetries", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("max_retries", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("responseFormat", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("response_format", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("provider", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                ],
            ],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "shell",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                &[
                    key("script", TEXT, ""),
                    key("commands", Type::With(r#"{"minItems":1}"#, &Type::ListOf(&TEXT)), ""),
                    key("cwd", TEXT, ""),
                    key("failOnError", FLAG, "Default: a failed command fails its node, unless something reads exitCode."),
                    key("path", TEXT, "The same as cwd."),
                    key("continueOnFailure", FLAG, ""),
                ],
            ],
            others: Others::None,
            ways: Ways::Exactly(&[&["script"], &["commands"]]),
            ..MAP
        }),
    },
    Definition {
        name: "function",
        value: Type::Map(&Map {
            keys: &[NODE_DATA, NODE_NOTES, &[key("language", Type::Words(&["lua", "python"]), "").or(r#""lua""#), required("code", TEXT, "")]],
            others: Others::None,
            ..MAP
        }),
    },
    Definition {
        name: "constant",
        value: Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES, &[required("value", Type::Any, "")]], others: Others::None, ..MAP }),
    },
    Definition {
        name: "http",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                &[
                    key("method", TEXT, ""),
                    key("url", TEXT, ""),
                    key("uri", TEXT, ""),
                    key("headers", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("queries", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("query", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("body", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("authentication", Type::Any, "Text is rendered: {{ input }}, {{ node.output }}."),
                    key("tls", Type::Any, "ca, certificate and key in PEM. Text is rendered: {{ input }}, {{ node.output }}."),
                ],
            ],
            others: Others::None,
            ways: Ways::Exactly(&[&["url"], &["uri"]]),
            ..MAP
        }),
    },
    Definition {
        name: "trigger",
        value: Type::Map(&Map {
            keys: &[
                NODE_DATA,
                NODE_NOTES,
                &[
                    key("triggerType", Type::Any, IGNORED),
                    key("schedule", Type::Any, IGNORED),
                    key("cron", Type::Any, IGNORED),
                    key("config", Type::Any, IGNORED),
                    key("payload", Type::Any, IGNORED),
                ],
            ],
            others: Others::None,
            ..MAP
        }),
    },
    Definition { name: "interface-input", value: Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES], others: Others::None, ..MAP }) },
    Definition { name: "interface-output", value: Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES], others: Others::None, ..MAP }) },
    Definition { name: "interface-continue", value: Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES], others: Others::None, ..MAP }) },
    Definition { name: "wire", value: Type::Map(&Map { keys: &[NODE_DATA, NODE_NOTES], others: Others::None, ..MAP }) },
];

/// The JSON Schema of the format.
pub(crate) fn schema() -> Json {
    let root = json!({
        "title": "A canvas",
        "description": "A graph of nodes with ports and loops; docs/reference/canvas.md describes the format.",
        "$ref": "#/$defs/workflow",
    });
    Json::Object(document("canvas", root, DEFINITIONS))
}
