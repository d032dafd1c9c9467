//! The vocabulary of The Edge Agent: docs/reference/tea.md.

use super::schema::{document, merge, schema_of};
use super::{Case, Definition, FLAG, Key, LIST, Map, OBJECT, OPEN, TEXT, Type, RequiredSets, define, key, required};
use serde_json::{Value as Json, json};

const CONDITION_TEXT: &str = "A Jinja expression or template: `state.count < 3`, `{{ state.done }}`, a key of the state, `!key`.";
const CODE_TEXT: &str = "Code; default Python. The result of code with `return` is the returned value, that of other code is its new names.";
const RESULT_TEXT: &str = "A key of the state, or a map from keys to templates that see `result`.";
const PROVIDERS_TEXT: &str = "Commands that are models: {name: {command, args, stdin_mode, timeout, env}}.";
const SECONDS_TEXT: &str = "Seconds, an ISO 8601 duration, or a template for one.";

const FAN_IN: Key = key(
    "fan_in",
    Type::Json(&["boolean", "string"]),
    "This node joins parallel branches; of a dynamic_parallel, the node that collects its results.",
)
.reference("required, as in TEA; here only the name of an existing node. It has no effect: the edges decide which node is next");
const TIMEOUT: Key = key("timeout", SECONDS, SECONDS_TEXT);
const OUTPUT_KEY: Key = key("output_key", TEXT, "The same as output, for one key of the state.");
const USES: Key = key("uses", Type::Def("actionName"), "The name of an action.");

/// The type of the generator or the corrector of a reflection loop.
const WORK: Type = Type::Map(&Map {
    keys: &[&[key("action", Type::Def("actionName"), "The name of an action."), USES, key("run", TEXT, ""), key("language", LANGUAGES, ""), TIMEOUT]],
    required_sets: RequiredSets::Any(&[&["action"], &["uses"], &["run"]]),
    ..OPEN
});

const SECONDS: Type = Type::WithRules(
    r#"{"minimum":0,"pattern":"^\\s*P(?=[\\dT])(?:\\d+W|(?:\\d+D)?(?:T(?=\\d)(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:[.,]\\d+)?S)?)?)\\s*$|\\{\\{|\\{%"}"#,
    &Type::Json(&["number", "string"]),
);
const LANGUAGES: Type = Type::Words(&["python", "lua", "prolog"]);
const CONDITION: Type = Type::Json(&["string", "boolean", "integer"]);
const EDGE_CONDITION: Type = Type::AnyOf(&[
    CONDITION,
    open![required("type", Type::Exactly(r#""expression""#), ""), required("value", Type::Json(&["string", "boolean", "number"]), "")],
]);
const CODE: Type = open![required("code", TEXT, ""), TIMEOUT, key("type", LANGUAGES, "")];
const RESULT: Type = Type::AnyOf(&[TEXT, OBJECT]);
const EXPRESSION: Type = open![
    key("output", RESULT, RESULT_TEXT),
    OUTPUT_KEY,
    required("type", Type::Exactly(r#""expression""#), ""),
    required("value", Type::Any, ""),
];
const NULL: Type = Type::Json(&["null"]);
const NODE: &[Key] = &[
    key("description", TEXT, ""),
    key("metadata", Type::Any, ""),
    key(
        "goto",
        Type::AnyOf(&[TEXT, Type::ListOf(&closed![key("if", CONDITION, CONDITION_TEXT), required("to", TEXT, "")])]),
        "The next node: a name, or the first rule whose condition is true.",
    ),
    key(
        "type",
        Type::WithRules(r#"{"examples":["while_loop","dynamic_parallel"]}"#, &TEXT),
        "`while_loop` or `dynamic_parallel`; others have no meaning.",
    ),
    key("run", Type::AnyOf(&[TEXT, CODE, EXPRESSION, NULL]), CODE_TEXT),
    key("script", Type::AnyOf(&[TEXT, CODE, EXPRESSION]), CODE_TEXT),
    key("language", LANGUAGES, ""),
    USES,
    key(
        "action",
        Type::AnyOf(&[
            Type::NonEmptyText,
            Type::About(
                "Of a dynamic_parallel: an action for each item.",
                &open![
                    key("output", Type::Json(&["string", "object"]), ""),
                    required("uses", Type::Def("actionName"), ""),
                    key("with", Type::Json(&["object", "null"]), ""),
                    OUTPUT_KEY,
                    TIMEOUT,
                ],
            ),
        ]),
        "",
    ),
    key("with", OBJECT, ""),
    key("output", Type::AnyOf(&[TEXT, OBJECT, NULL]), RESULT_TEXT),
    OUTPUT_KEY,
    TIMEOUT,
    FAN_IN,
    key("steps", Type::ListOf(&Type::Def("inner")), "Nodes one after the other, as one."),
];

/// The keys of a `while_loop`.
const WHILE_LOOP: &[Key] = &[
    required("condition", CONDITION, CONDITION_TEXT),
    required("max_iterations", Type::Integer(1, Some(1000)), "The most iterations; to reach them is not an error."),
    required("body", Type::WithRules(r#"{"minItems":1}"#, &Type::ListOf(&Type::Def("inner"))), "The nodes of an iteration, in order."),
];

/// The keys of a `dynamic_parallel`.
pub(super) const PARALLEL: &[Key] = &[
    key("items", Type::Any, "Of a dynamic_parallel: a list, or a template for one.")
        .reference("required; a list, or a template for a list. None means an empty list; the items of a map are its keys"),
    key("item_var", TEXT, "The key of the item; default item.")
        .reference("the key of the item; default `item`"),
    key("index_var", TEXT, "The key of the item's number; default index.")
        .reference("the key of the item's number; default `index`"),
    key("subgraph", TEXT, "Of a dynamic_parallel: a workflow file that runs for each item.")
        .reference("a workflow file in the folder of this file, which runs for each item"),
    key("input", OBJECT, "The initial state of the subgraph; with templates.")
        .reference("the initial state of the `subgraph`; it may contain templates"),
    key("max_concurrency", Type::WithRules(r#"{"minimum":1}"#, &Type::Json(&["integer", "string"])), "How many items at a time; default 32.")
        .reference("the maximum of branches at a time; default 32. If the value is a template, the items run one at a time, with a warning"),
    key("fail_fast", FLAG, "Begins no more branches after one that failed.")
        .reference("with `true`, no branches begin after a branch has failed"),
    FAN_IN,
];
pub(super) const ROOT: Map = Map {
    keys: &[&[
        key("dialect", Type::Words(&["loom", "azure", "tea", "canvas"]), "")
            .reference("`tea`, if the shape of the file does not decide its format"),
        key("name", Type::Json(&["string", "null"]), "")
            .reference("the workflow's name"),
        key("description", TEXT, ""),
        key("version", Type::Any, ""),
        key("metadata", Type::Any, ""),
        key("$schema", TEXT, ""),
        key("variables", OBJECT, "Constants: `variables.x`.")
            .reference("constants: `variables.limit`"),
        key("data", OBJECT, "Constants: `data.x`.")
            .reference("constants: `data.words`"),
        key("initial_state", Type::Json(&["object", "null"]), "The state at the start; a run's input overrides it.")
            .reference("the state at the start; the input of a run overrides it. `-i NAME=TEXT` is converted if the value here is a number or a boolean"),
        key(
            "settings",
            open![
                key("max_steps", Type::Integer(1, None), "How many nodes a run may enter; default 1000."),
                key("error_handling", Type::Map(&ON_ERROR), "Defaults for the keys of on_error of all nodes."),
                key(
                    "llm",
                    open![key("shell_providers", OBJECT, PROVIDERS_TEXT)],
                    "Defaults for calls of a model.",
                ),
                key("shell_providers", OBJECT, PROVIDERS_TEXT),
            ],
            "",
        )
        .reference("`max_steps`; `llm`: defaults for `llm.call` and for evaluators of the type `llm`; templates read any other key `x` as `settings.x`"),
        key("handlers", OBJECT, "Commands and addresses that answer for actions, by name.")
            .reference("programs and addresses for `activity` and `actor`, as in [Loom](loom.md#handlers), Windlass's own YAML format"),
        key("extraction_schema", Type::Any, "Default for `schema` of validate.extraction.")
            .reference("default for `schema` of `validate.extraction`"),
        key("validation_constraints", Type::Any, "Default for `constraints` of validate.extraction.")
            .reference("default for `constraints` of `validate.extraction`"),
        key("validation_probes", Type::Any, "Default for `probes` of validate.extraction.")
            .reference("default for `probes` of `validate.extraction`"),
        required("nodes", Type::ListOf(&Type::Def("node")), "")
            .reference("see below"),
        key("edges", Type::ListOrNull(&Type::Def("edge")), "")
            .reference("see below"),
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
        .reference("`interrupt_before`, `interrupt_after`: see [Interrupts](#interrupts)"),
    ]],
    ..OPEN
};
/// The required keys of a node, by its type or its action.
const CASES: &[Case] = &[
    Case { key: "type", is: "while_loop", then: Map { keys: &[WHILE_LOOP], ..OPEN } },
    Case { key: "type", is: "dynamic_parallel", then: Map { keys: &[PARALLEL], required: &["items", "fan_in"], ..OPEN } },
    Case { key: "uses", is: "retry.loop", then: RETRY_LOOP },
    Case { key: "uses", is: "reflection.loop", then: REFLECTION_LOOP },
    Case { key: "action", is: "retry.loop", then: RETRY_LOOP },
    Case { key: "action", is: "reflection.loop", then: REFLECTION_LOOP },
];

/// The keys in `with` of a `retry.loop`.
pub(super) const RETRY_LOOP_ARGUMENTS: Map = Map {
    keys: &[&[
        required("validate", Type::Def("actionName"), "The name of an action.")
            .reference("an action that returns `{valid, errors}`"),
        key("validate_args", OBJECT, "")
            .reference("the arguments of `validate`, rendered before every validation"),
        required("correct", TEXT, "The name of a top-level node.")
            .reference("a top-level node; its edges are not followed"),
        key("max_retries", Type::AnyOf(&[Type::Integer(0, None), TEXT, Type::Exactly("true")]), "The most corrections; default 1.")
            .reference("the maximum number of corrections, from 0, or a template; default 1"),
        key("retry_delay", SECONDS, SECONDS_TEXT)
            .reference("the seconds between a correction and the next validation"),
    ]],
    ..OPEN
};

/// The rule for a node with the action `retry.loop`: it has a key `with`.
const RETRY_LOOP: Map = Map {
    keys: &[&[required("with", Type::Map(&RETRY_LOOP_ARGUMENTS), "")]],
    ..OPEN
};

/// The keys in `with` of a `reflection.loop`.
pub(super) const REFLECTION_LOOP_ARGUMENTS: Map = Map {
    keys: &[&[
        required("generator", WORK, "An action with its arguments next to it, or code that returns its value or sets `result`.")
            .reference("`action` with its arguments next to it, or `run` (and `language`)"),
        key("corrector", WORK, "An action with its arguments next to it, or code that returns its value or sets `result`.")
            .reference("the same keys as in `generator`"),
        required(
            "evaluator",
            open![
                key("type", Type::Words(&["schema", "llm", "custom"]), ""),
                key("schema", Type::Json(&["object", "boolean", "string"]), "A JSON Schema; `$ref` may name files next to the workflow."),
                key("prompt", TEXT, ""),
                key("model", TEXT, ""),
                key("examples", LIST, ""),
                key("coerce", FLAG, "Converts the answer to the types of the schema first."),
                key("run", TEXT, ""),
                key("language", LANGUAGES, ""),
                TIMEOUT,
            ],
            "",
        )
        .reference("`type: schema` with `schema`; `type: llm` with `prompt`, `model`, `examples`; `type: custom` with `run`"),
        key("max_iterations", Type::AnyOf(&[Type::Integer(1, None), TEXT]), "")
            .default_value("3")
            .reference("the maximum number of iterations; default 3"),
        key("on_failure", Type::Words(&["return_best", "return_last", "raise"]), "")
            .default_value("\"return_best\"")
            .reference("what happens if no iteration was valid; default `return_best`"),
    ]],
    ..OPEN
};

/// The rule for a node with the action `reflection.loop`: it has a key `with`.
const REFLECTION_LOOP: Map = Map {
    keys: &[&[required("with", Type::Map(&REFLECTION_LOOP_ARGUMENTS), "")]],
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
        .reference("`raise` (default) ends the run. `graceful`: the error becomes the key `__error__` of the state, and the run continues. `retry`: more attempts, and then as `graceful`"),
        key("max_retries", Type::Integer(0, Some(100)), "Attempts after the first; default 3.")
            .reference("the number of attempts after the first one; default 3"),
        key(
            "retry_delay",
            Type::WithRules(r#"{"minimum":0,"maximum":300}"#, &Type::Json(&["number"])),
            "Seconds before the second attempt; default 1.",
        )
        .reference("the seconds before the first of these attempts, at least 0.1; default 1. The wait doubles up to a minute"),
        key(
            "backoff_multiplier",
            Type::WithRules(r#"{"enum":[1,2]}"#, &Type::Any),
            "2: each wait is twice the one before; 1: all are the same.",
        )
        .reference("`1` makes the wait constant; other factors are refused. Default 2"),
        key("retryable_errors", Type::ListOf(&TEXT), "The classes of errors that are tried again.")
            .reference("the Python classes that are retried. Default: those of TEA (`TimeoutError`, `ConnectionError`, `HTTPError` and so on). A script's error has its own class. Of an action, a fault of the kind `timeout` is a `TimeoutError`, `connection` a `ConnectionError`, `http` an `HTTPError` and `expression` a `ValueError`. A `reflection.loop` with `on_failure: raise` fails with a `ReflectionFailedError`. Any other fault is a `RuntimeError`"),
    ]],
    ..OPEN
};

pub(super) const DEFINITIONS: &[Definition] = &[
    define("node", Type::Map(&Map {
        keys: &[NODE, &[
            required("name", Type::NonEmptyText, "Unique in the file, regardless of case."),
            key("on_error", Type::MapOrNull(&ON_ERROR), "What is done when the node fails; without it that ends the run."),
            key(
                "interrupt",
                Type::WithRules(r#"{"enum":["before","after",null]}"#, &Type::Any),
                "Waits for the signal with the node's name, before or after the node.",
            ),
        ]],
        cases: CASES,
        ..OPEN
    })),
    define("inner", Type::Map(&Map { keys: &[NODE, &[key("name", Type::NonEmptyText, "Unique in the file, regardless of case.")]], cases: CASES, ..OPEN })),
    define("edge", open![
        required("from", TEXT, "A node's name, or __start__."),
        required("to", TEXT, "A node's name, or __end__."),
        key("condition", EDGE_CONDITION, CONDITION_TEXT),
        key("when", EDGE_CONDITION, CONDITION_TEXT),
        key("type", Type::Words(&["simple", "conditional", "parallel"]), "`parallel`: the node begins together with the targets of the other parallel edges."),
        key("fan_in", TEXT, "Of a parallel edge: the node that joins the branches."),
        key("label", TEXT, ""),
        key("description", TEXT, ""),
        key("metadata", Type::Any, ""),
    ]),
];

const UNSUPPORTED: &str = r"^(web|graph|neo4j)\.|^(github\.search_issues|llamaextract\.extract|rag\.llamaindex\.create_index|reason\.dspy\.(compile|optimize)|llm\.embed|code\.execute)$";

/// Makes the schema of an action's name.
/// TEA also accepts a name with underscores in place of its dots (`a.b`: `a_b`), and any name with the module `actions`
/// before it (`actions.a_b`).
fn action_names(names: &[&str]) -> Json {
    let second = |name: &&str| name.contains('.').then(|| name.replace('.', "_"));
    let second: Vec<String> = names.iter().filter_map(second).collect();
    let third: Vec<String> = names.iter().map(|name| format!("actions.{}", name.replace('.', "_"))).collect();
    json!({
        "anyOf": [
            { "enum": names },
            { "description": "TEA's names with underscores in place of dots.", "enum": second },
            { "description": "TEA's names with their module `actions`.", "enum": third },
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
    let root = merge(head, schema_of(&Type::Map(&ROOT)));
    let mut schema = document("tea", root, DEFINITIONS);
    if let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) {
        definitions.insert(String::from("actionName"), action_names(actions));
    }
    Json::Object(schema)
}
