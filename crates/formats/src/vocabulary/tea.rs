//! The vocabulary of The Edge Agent: docs/reference/tea.md.

use super::schema::{document, of, with};
use super::{CLOSED, Case, Definition, FLAG, Key, LIST, Map, OBJECT, OPEN, TEXT, Type, RequiredSets, key, required};
use serde_json::{Value as Json, json};

const CONDITION_TEXT: &str = "A Jinja expression or template: `state.count < 3`, `{{ state.done }}`, a key of the state, `!key`.";
const CODE_TEXT: &str = "Code; default Python. The result of code with `return` is the returned value, that of other code is its new names.";
const RESULT_TEXT: &str = "A key of the state, or a map from keys to templates that see `result`.";
const PROVIDERS_TEXT: &str = "Commands that are models: {name: {command, args, stdin_mode, timeout, env}}.";
const SECONDS_TEXT: &str = "Seconds, an ISO 8601 duration, or a template for one.";

const TIMEOUT: Key = key("timeout", SECONDS, SECONDS_TEXT);
const OUTPUT_KEY: Key = key("output_key", TEXT, "The same as output, for one key of the state.");
const USES: Key = key("uses", Type::Def("actionName"), "The name of an action.");

/// The type of the generator or the corrector of a reflection loop.
const WORK: Type = Type::Map(&Map {
    keys: &[&[key("action", Type::Def("actionName"), "The name of an action."), USES, key("run", TEXT, ""), key("language", LANGUAGES, ""), TIMEOUT]],
    required_sets: RequiredSets::Any(&[&["action"], &["uses"], &["run"]]),
    ..OPEN
});

const SECONDS: Type = Type::With(
    r#"{"minimum":0,"pattern":"^\\s*P(?=[\\dT])(?:\\d+W|(?:\\d+D)?(?:T(?=\\d)(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:[.,]\\d+)?S)?)?)\\s*$|\\{\\{|\\{%"}"#,
    &Type::Json(&["number", "string"]),
);
const LANGUAGES: Type = Type::Words(&["python", "lua", "prolog"]);
const CONDITION: Type = Type::Json(&["string", "boolean", "integer"]);
const EDGE_CONDITION: Type = Type::AnyOf(&[
    CONDITION,
    Type::Map(&Map {
        keys: &[&[required("type", Type::Exactly(r#""expression""#), ""), required("value", Type::Json(&["string", "boolean", "number"]), "")]],
        ..OPEN
    }),
]);
const CODE: Type = Type::Map(&Map { keys: &[&[required("code", TEXT, ""), TIMEOUT, key("type", LANGUAGES, "")]], ..OPEN });
const RESULT: Type = Type::AnyOf(&[TEXT, OBJECT]);
const EXPRESSION: Type = Type::Map(&Map {
    keys: &[&[
        key("output", RESULT, RESULT_TEXT),
        OUTPUT_KEY,
        required("type", Type::Exactly(r#""expression""#), ""),
        required("value", Type::Any, ""),
    ]],
    ..OPEN
});
const NULL: Type = Type::Json(&["null"]);
const NODE: &[Key] = &[
    key("description", TEXT, ""),
    key("metadata", Type::Any, ""),
    key(
        "goto",
        Type::AnyOf(&[TEXT, Type::ListOf(&Type::Map(&Map { keys: &[&[key("if", CONDITION, CONDITION_TEXT), required("to", TEXT, "")]], ..CLOSED }))]),
        "The next node: a name, or the first rule whose condition is true.",
    ),
    key(
        "type",
        Type::With(r#"{"examples":["while_loop","dynamic_parallel"]}"#, &TEXT),
        "`while_loop` or `dynamic_parallel`; others have no meaning.",
    ),
    key("run", Type::AnyOf(&[TEXT, CODE, EXPRESSION, NULL]), CODE_TEXT),
    key("script", Type::AnyOf(&[TEXT, CODE, EXPRESSION]), CODE_TEXT),
    key("language", LANGUAGES, ""),
    USES,
    key(
        "action",
        Type::AnyOf(&[
            Type::Name,
            Type::About(
                "Of a dynamic_parallel: an action for each item.",
                &Type::Map(&Map {
                    keys: &[&[
                        key("output", Type::Json(&["string", "object"]), ""),
                        required("uses", Type::Def("actionName"), ""),
                        key("with", Type::Json(&["object", "null"]), ""),
                    ]],
                    ..OPEN
                }),
            ),
        ]),
        "",
    ),
    key("with", OBJECT, ""),
    key("output", Type::AnyOf(&[TEXT, OBJECT, NULL]), RESULT_TEXT),
    OUTPUT_KEY,
    TIMEOUT,
    key("steps", Type::ListOf(&Type::Def("inner")), "Nodes one after the other, as one."),
    key("condition", CONDITION, CONDITION_TEXT),
    key("max_iterations", Type::Integer(1, Some(1000)), "The most iterations; to reach them is not an error."),
    key("body", Type::With(r#"{"minItems":1}"#, &Type::ListOf(&Type::Def("inner"))), "The nodes of an iteration, in order."),
];

/// The keys of a `dynamic_parallel`.
pub(super) const PARALLEL: &[Key] = &[
    key("items", Type::Any, "Of a dynamic_parallel: a list, or a template for one.")
        .explained("required; a list, or a template for a list. None means an empty list; the items of a map are its keys"),
    key("item_var", TEXT, "The key of the item; default item.")
        .explained("the key of the item; default `item`"),
    key("index_var", TEXT, "The key of the item's number; default index.")
        .explained("the key of the item's number; default `index`"),
    key("subgraph", TEXT, "Of a dynamic_parallel: a workflow file that runs for each item.")
        .explained("a workflow file in the folder of this file, which runs for each item"),
    key("input", OBJECT, "The initial state of the subgraph; with templates.")
        .explained("the initial state of the `subgraph`, which may have templates"),
    key("max_concurrency", Type::With(r#"{"minimum":1}"#, &Type::Json(&["integer", "string"])), "How many items at a time; default 32.")
        .explained("the maximum of branches at a time; default 32. A template counts as 1"),
    key("fail_fast", FLAG, "Begins no more branches after one that failed.")
        .explained("with `true`, no branches begin after a branch has failed"),
    key(
        "fan_in",
        Type::Json(&["boolean", "string"]),
        "This node joins parallel branches; of a dynamic_parallel, the node that collects its results.",
    )
    .explained("required; a node's name. The edges decide which node is next"),
];
pub(super) const ROOT: Map = Map {
    keys: &[&[
        key("dialect", Type::Words(&["loom", "azure", "tea", "canvas"]), "")
            .explained("`tea`, if the shape of the file does not decide its format"),
        key("name", Type::Json(&["string", "null"]), "")
            .explained("the workflow's name"),
        key("description", TEXT, ""),
        key("version", Type::Any, ""),
        key("metadata", Type::Any, ""),
        key("$schema", TEXT, ""),
        key("variables", OBJECT, "Constants: `variables.x`.")
            .explained("constants: `variables.limit`"),
        key("data", OBJECT, "Constants: `data.x`.")
            .explained("constants: `data.words`"),
        key("initial_state", Type::Json(&["object", "null"]), "The state at the start; a run's input overrides it.")
            .explained("the state at the start; the input of a run overrides it"),
        key(
            "settings",
            Type::Map(&Map {
                keys: &[&[
                    key("max_steps", Type::Integer(1, None), "How many nodes a run may enter; default 1000."),
                    key("error_handling", OBJECT, "What on_error of a node leaves out."),
                    key(
                        "llm",
                        Type::Map(&Map { keys: &[&[key("shell_providers", OBJECT, PROVIDERS_TEXT)]], ..OPEN }),
                        "Defaults for calls of a model.",
                    ),
                    key("shell_providers", OBJECT, PROVIDERS_TEXT),
                ]],
                ..OPEN
            }),
            "",
        )
        .explained("`max_steps`; `llm`: defaults for `llm.call` and for evaluators of the type `llm`; any other key is `settings.x`"),
        key("handlers", OBJECT, "Commands and addresses that answer for actions, by name.")
            .explained("programs and addresses for `activity` and `actor`, as in [Loom](loom.md#handlers), Windlass's own YAML format"),
        key("extraction_schema", Type::Any, "Default for `schema` of validate.extraction.")
            .explained("default for `schema` of `validate.extraction`"),
        key("validation_constraints", Type::Any, "Default for `constraints` of validate.extraction.")
            .explained("default for `constraints` of `validate.extraction`"),
        key("validation_probes", Type::Any, "Default for `probes` of validate.extraction.")
            .explained("default for `probes` of `validate.extraction`"),
        required("nodes", Type::ListOf(&Type::Def("node")), "")
            .explained("see below"),
        key("edges", Type::ListOrNull(&Type::Def("edge")), "")
            .explained("see below"),
        key(
            "config",
            Type::MapOrNull(&Map {
                keys: &[&[
                    key("interrupt_before", Type::ListOrNull(&TEXT), "Nodes before which a run waits for the signal with their name."),
                    key("interrupt_after", Type::ListOrNull(&TEXT), "Nodes after which a run waits for the signal with their name."),
                ]],
                ..OPEN
            }),
            "",
        )
        .explained("`interrupt_before`, `interrupt_after`: see [Interrupts](#interrupts)"),
    ]],
    ..OPEN
};
/// The required keys of a node, by its type or its action.
const CASES: &[Case] = &[
    Case { key: "type", is: "while_loop", then: Map { required: &["condition", "max_iterations", "body"], ..OPEN } },
    Case { key: "type", is: "dynamic_parallel", then: Map { required: &["items", "fan_in"], ..OPEN } },
    Case { key: "uses", is: "retry.loop", then: RETRY_LOOP },
    Case { key: "uses", is: "reflection.loop", then: REFLECTION_LOOP },
    Case { key: "action", is: "retry.loop", then: RETRY_LOOP },
    Case { key: "action", is: "reflection.loop", then: REFLECTION_LOOP },
];

/// The keys in `with` of a `retry.loop`.
pub(super) const CORRECTIONS: Map = Map {
    keys: &[&[
        required("validate", Type::Def("actionName"), "The name of an action.")
            .explained("an action that returns `{valid, errors}`"),
        key("validate_args", OBJECT, "")
            .explained("the arguments of `validate`, rendered before every validation"),
        required("correct", TEXT, "The name of a top-level node.")
            .explained("a top-level node; its edges are not followed"),
        key("max_retries", Type::AnyOf(&[Type::Integer(0, None), TEXT, Type::Exactly("true")]), "The most corrections; default 1.")
            .explained("the maximum number of corrections, from 0, or a template; default 1"),
        key("retry_delay", SECONDS, SECONDS_TEXT)
            .explained("the seconds between a correction and the next validation"),
    ]],
    ..OPEN
};

const RETRY_LOOP: Map = Map {
    keys: &[&[required("with", Type::Map(&CORRECTIONS), "")]],
    ..OPEN
};

/// The keys in `with` of a `reflection.loop`.
pub(super) const REFLECTIONS: Map = Map {
    keys: &[&[
        required("generator", WORK, "An action with its arguments next to it, or code that returns its value or sets `result`.")
            .explained("`action` with its arguments next to it, or `run` (and `language`)"),
        key("corrector", WORK, "An action with its arguments next to it, or code that returns its value or sets `result`.")
            .explained("the same keys as in `generator`"),
        required(
            "evaluator",
            Type::Map(&Map {
                keys: &[&[
                    key("type", Type::Words(&["schema", "llm", "custom"]), ""),
                    key("schema", Type::Json(&["object", "boolean", "string"]), "A JSON Schema; `$ref` may name files next to the workflow."),
                    key("prompt", TEXT, ""),
                    key("model", TEXT, ""),
                    key("examples", LIST, ""),
                    key("run", TEXT, ""),
                    key("language", LANGUAGES, ""),
                    TIMEOUT,
                ]],
                ..OPEN
            }),
            "",
        )
        .explained("`type: schema` with `schema`; `type: llm` with `prompt`, `model`, `examples`; `type: custom` with `run`"),
        key("max_iterations", Type::AnyOf(&[Type::Integer(1, None), TEXT]), "")
            .or("3")
            .explained("the maximum number of iterations; default 3"),
        key("on_failure", Type::Words(&["return_best", "return_last", "raise"]), "")
            .or("\"return_best\"")
            .explained("what happens if no iteration was valid; default `return_best`"),
    ]],
    ..OPEN
};

const REFLECTION_LOOP: Map = Map {
    keys: &[&[required("with", Type::Map(&REFLECTIONS), "")]],
    ..OPEN
};

/// The keys of `on_error`.
pub(super) const ON_ERROR: Map = Map {
    keys: &[&[
        key(
            "mode",
            Type::Words(&["raise", "graceful", "retry"]),
            "graceful: the error becomes the key __error__ of the state. retry: the same after more attempts.",
        )
        .explained("`raise` (default) ends the run. `graceful`: the error becomes the key `__error__` of the state, and the run continues. `retry`: the same, but after more attempts"),
        key("max_retries", Type::Integer(0, Some(100)), "Attempts after the first; default 3.")
            .explained("the number of attempts after the first one; default 3"),
        key(
            "retry_delay",
            Type::With(r#"{"minimum":0,"maximum":300}"#, &Type::Json(&["number"])),
            "Seconds before the second attempt; default 1.",
        )
        .explained("the seconds before the first of these attempts; default 1. The wait doubles up to a minute"),
        key(
            "backoff_multiplier",
            Type::With(r#"{"enum":[1,2]}"#, &Type::Any),
            "2: each wait is twice the one before; 1: all are the same.",
        )
        .explained("`1` makes the wait constant; other factors are refused. Default 2"),
        key("retryable_errors", Type::ListOf(&TEXT), "The classes of errors that are tried again.")
            .explained("the Python classes that are retried. Default: those of TEA (`TimeoutError`, `ConnectionError`, `HTTPError` and so on). The kind of an action's fault decides whether it is one of these three; any other fault is `RuntimeError`"),
    ]],
    ..OPEN
};

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        name: "node",
        value: Type::Map(&Map {
            keys: &[
                NODE,
                PARALLEL,
                &[
                    required("name", Type::Name, "Unique in the file, regardless of case."),
                    key("on_error", Type::MapOrNull(&ON_ERROR), "What is done when the node fails; without it that ends the run."),
                    key(
                        "interrupt",
                        Type::With(r#"{"enum":["before","after",null]}"#, &Type::Any),
                        "Waits for the signal with the node's name, before or after the node.",
                    ),
                ],
            ],
            cases: CASES,
            ..OPEN
        }),
    },
    Definition {
        name: "inner",
        value: Type::Map(&Map { keys: &[NODE, PARALLEL, &[key("name", Type::Name, "Unique in the file, regardless of case.")]], cases: CASES, ..OPEN }),
    },
    Definition {
        name: "edge",
        value: Type::Map(&Map {
            keys: &[&[
                required("from", TEXT, "A node's name, or __start__."),
                required("to", TEXT, "A node's name, or __end__."),
                key("condition", EDGE_CONDITION, CONDITION_TEXT),
                key("when", EDGE_CONDITION, CONDITION_TEXT),
            ]],
            ..OPEN
        }),
    },
];

const UNSUPPORTED: &str = r"^(web|graph|neo4j)\.|^(github\.search_issues|llamaextract\.extract|rag\.llamaindex\.create_index|reason\.dspy\.(compile|optimize)|llm\.embed|code\.execute)$";

/// Makes the schema of an action's name.
/// For each name with a dot, TEA also accepts a second name, and a third one with the name of its module.
fn action_names(names: &[&str]) -> Json {
    let second = |name: &&str| name.contains('.').then(|| name.replace('.', "_"));
    let second: Vec<String> = names.iter().filter_map(second).collect();
    let third: Vec<String> = names.iter().map(|name| format!("actions.{}", name.replace('.', "_"))).collect();
    json!({
        "anyOf": [
            { "enum": names },
            { "description": "The second names of TEA.", "enum": second },
            { "description": "The same with their module.", "enum": third },
            {
                "description": "Not supported: its result is an error object, as in TEA without its service.",
                "type": "string",
                "pattern": UNSUPPORTED,
            },
        ],
    })
}

/// Makes the JSON Schema of the format, whose actions have these names.
pub(crate) fn schema(actions: &[&str]) -> Json {
    let head = json!({
        "title": "A workflow of The Edge Agent",
        "description": "Nodes and edges over one state; docs/reference/tea.md describes it.",
    });
    let root = with(head, of(&Type::Map(&ROOT)));
    let mut schema = document("tea", root, DEFINITIONS);
    if let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) {
        definitions.insert(String::from("actionName"), action_names(actions));
    }
    Json::Object(schema)
}
