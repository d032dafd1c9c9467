//! The vocabulary of Loom: docs/reference/loom.md and docs/reference/actions.md.

use super::authentication;
use super::model::{MODEL_TIMEOUT, MODEL};
use super::schema::{self, document, merge};
use super::{
    Definition, FLAG, Key, LIST, MAP, Map, OBJECT, RequiredSets, TEXT, Type, UnknownKeys, define, key, required,
};
use serde_json::{Value as Json, json};

/// A type of action, or several types with the same keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    pub types: &'static [&'static str],
    pub description: &'static str,
    /// The keys in addition to those that every action has ([`COMMON`] and [`OUTCOME`]).
    pub map: Map,
}

const CONDITION: Type = Type::Def("condition");
const DURATION: Type = Type::Def("duration");
const DELAY: Type = Type::Def("delay");
const LIMIT: Type = Type::Def("limit");
const RETRY: Type = Type::Def("retryPolicy");
const ACTION: Type = Type::Def("action");
const ACTIONS: Type = Type::Def("actions");
const BLOCK: Type = Type::Def("actionOrActions");
const EXPRESSION: Type = Type::Def("expression");
const UNIT: Type = Type::Def("unit");

const LIST_OR_TEXT: Type = Type::Json(&["array", "string"]);
const MAP_OR_TEXT: Type = Type::Json(&["object", "string"]);
const FLAG_OR_TEXT: Type = Type::Json(&["boolean", "string"]);
/// Whether a call may fail: a flag, or the exit codes or statuses that are not a fault.
const CHECK: Type = Type::AnyOf(&[FLAG_OR_TEXT, Type::ListOf(&Type::Json(&["integer", "string"]))]);
const TEXT_OR_NULL: Type = Type::Json(&["string", "null"]);

/// The description of a text that may contain expressions.
const TEMPLATE_TEXT: &str = "text that may contain @{expressions} or {{ templates }}";

/// The keys that every action has.
pub(super) const COMMON: &[Key] = &[
    key("type", Type::Any, "the type of the action, in any case")
        .reference("the type, in any case"),
    NAME,
    key("description", TEXT, "for people; no effect")
        .reference("for people"),
    key("metadata", Type::Any, "for people; no effect")
        .reference("for people"),
    key("trackedProperties", Type::Any, "of Logic Apps; no effect"),
    key("operationOptions", TEXT, "of Logic Apps; no effect"),
    key("runtimeConfiguration", OBJECT, "of Logic Apps; no effect"),
    key("runAfter", Type::Def("runAfter"), "the actions that must end first, each with the accepted statuses")
        .reference("[Order](#order)"),
    key("retry", RETRY, "when a failed attempt is repeated")
        .reference("a [retry policy](#retry)"),
    key("break_when", CONDITION, "checked after this action: true ends the enclosing loop")
        .reference("a condition, checked after the action. If it is true, the enclosing loop ends"),
    key("secure", Type::Def("secure"), "")
        .reference("`[inputs]`, `[outputs]` or both: [Secure values](secrets.md#secure-values)"),
    key("continue_when", CONDITION, "checked after this action: true starts the loop's next iteration")
        .reference("a condition, checked after the action. If it is true, the loop continues with its next iteration"),
];

const NAME: Key = key("name", TEXT, "of a variable: its name; else the key of the action")
    .reference("the variable of a variable action; the name of an action without a key, such as that of `catch`. Every other action is named by its key");

/// The keys of every action that concern its outcome.
pub(super) const OUTCOME: &[Key] = &[
    key("catch", BLOCK, "done when the action failed for good; the failure counts as handled")
        .reference("what happens after a failure: [When something fails](#when-something-fails)"),
    key("continue_on_error", FLAG, "a failure of the action counts as handled")
        .reference("with `true`, a failure of the action counts as handled: [When something fails](#when-something-fails)"),
    key("expect", CONDITION, "json, or a condition on the output; else the attempt has failed")
        .reference("`json`, or a condition on the output: [Retry](#retry)"),
];

pub(super) const TIMEOUT: Key = key("timeout", DURATION, "time limit of one attempt (http, shell, activity, actor, ai), or of all attempts together (other types)")
    .reference("the time of one attempt for `http`, `shell`, `activity`, `actor` and `ai`. The time of all attempts for `scope`, `if`, `switch`, `parallel`, `foreach`, `retry`, `workflow` and `waitForSignal`");

const RATE: Key = key("rate", TEXT_OR_NULL, "name of the rate limit that the call counts against, instead of its host's");

// Loops.

pub(super) const LOOP: &[Key] = &[
    key("condition", CONDITION, "the condition that is checked"),
    key("actions", ACTIONS, "the body of the loop")
        .reference("the body"),
    key("limit", LIMIT, "when the loop ends in any case")
        .reference("see below"),
    key("delay", DELAY, "the time between two iterations")
        .reference("the time between two iterations. `{type: exponential, interval: 5s, maxInterval: 1m}`, with the keys of [Retry](#retry), doubles it each time. `server` waits as long as the last answer [requests](#when-a-server-says-how-long); `{type: server, interval: 5s}` waits at least `interval`"),
    key(
        "on_missing",
        Type::AnyCase(&["fail", "wait"]),
        "the effect of a missing member in the condition: fail, or wait: it is not met yet; default fail",
    )
    .reference("what happens if `condition` reads a member or element that does not exist. `fail` (default), or `wait`: the condition is not met yet. With `wait`, the message of a limit names what never appeared"),
    key("on_limit", Type::AnyCase(&["fail", "continue", "pause"]), "the effect of a reached limit; default fail")
        .reference("`fail` (default). `continue`: the loop succeeds. `pause`: the run pauses, and `resume` grants the same limits again"),
    key("page", Type::Any, "the page that the next iteration reads: an expression for a token, a number or an address")
        .reference("an expression whose value names the next page: a token or an address. The loop never reads a page twice"),
    key("on_repeat", Type::AnyCase(&["fail", "stop"]), "the effect of a page that was read before; default fail")
        .reference("what happens if `page` was read before. `fail` (default; kind `repeat`), or `stop`: the loop succeeds, with the reason `repeat`"),
];

const SAME_KEYS: &str = "The same keys, as Loom's own files have them.";

const LOOP_MAP: Map = Map {
    keys: &[LOOP, &[
        key("expression", CONDITION, "the same, as Logic Apps call it"),
        key("inputs", Type::WithRules(r#"{"required":["condition","actions"]}"#, &map![LOOP;]), SAME_KEYS),
    ]],
    required_sets: RequiredSets::Any(&[&["condition", "actions"], &["expression", "actions"], &["inputs"]]),
    ..MAP
};

const RETRY_POLICY: Key = key("retryPolicy", RETRY, "");

// Requests.

pub(super) const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(super) const REQUEST: &[Key] = &[
    key("method", Type::AnyCaseOrExpression(METHODS), "default GET; of an operation POST")
        .reference("default `GET`. An action of the type [`operation`](long-operations.md) has the same keys; its default is `POST`"),
    key("uri", TEXT, TEMPLATE_TEXT)
        .reference("required; `http://` or `https://`. A user and password in the URI become Basic authentication"),
    key("headers", MAP_OR_TEXT, "a list repeats the header, null omits it")
        .reference("the headers. A list repeats the header, null omits it"),
    key("queries", MAP_OR_TEXT, "added to the URI's own; a list repeats the name, null omits it")
        .reference("parameters that are added to those of the URI. A list repeats the name, null omits it"),
    key("body", Type::Any, "text is sent as it is, anything else as JSON")
        .reference("see below"),
    key("authentication", Type::Def("authentication"), "")
        .reference("see [Authentication](#authentication)"),
    key(
        "tls",
        closed![key("ca", TEXT, "the trusted certificates"), key("certificate", TEXT, "the client certificate"), key("key", TEXT, "the private key")],
        "trusted certificates and client certificate of the call, each in PEM",
    )
    .reference("`{ca, certificate, key}`, each a text in PEM: [TLS](#authentication)"),
    TIMEOUT.reference("the time of one attempt"),
    key("parse", Type::Exactly(r#""json""#), "a body that is JSON is parsed, whatever its content type")
        .reference("a body that is JSON is parsed, whatever its content type. `expect: json` includes this"),
    RATE.reference("the name of a [rate limit](rate-limits.md#a-quota-of-several-hosts-or-of-a-customer), in place of the host's limit"),
];

pub(super) const HTTP: &[Key] = &[
    key("check", CHECK, "false: a status of 400 or above is not a fault; [404]: this status is not")
        .reference("with `false`, a status of 400 or above is not a fault; with a list such as `[404]`, these statuses are not. Read `statusCode` instead"),
    key("page", TEXT_OR_NULL, "the address of a next page, as the page before it named it")
        .reference("the address of the next page, in place of `uri` and `queries`. It is relative to the page before (the last output of the action), after redirects (RFC 3986, 5.1.3). If it is on another server than `uri`, that server gets only GET, without headers and credentials"),
    key("page_base", TEXT_OR_NULL, "with page: the base of a relative address; default the page before")
        .reference("with `page`: the base of a relative address, in place of the page before"),
    key("saveTo", TEXT, "the file for the body of the answer, of any size; each attempt continues the one before")
        .reference("the file for the body of the answer: [Files](#files)"),
    key("digest", TEXT, "sha256:HEX of the complete file of saveTo")
        .reference("the `sha256:HEX` of the file of `saveTo`: [Files](#files)"),
    key("bodyFile", TEXT, "the file that is the body of the request")
        .reference("the file that is sent, in place of `body`: [Files](#files)"),
    key("ifChanged", FLAG, "in a loop: names the ETag of the last answer; a 304 keeps its body")
        .reference("with `true`, in a loop: a 304 retains the last body: [Answers without news](#answers-without-news)"),
    key("events", FLAG, "reads one event of a stream (server-sent events), in a loop the next one")
        .reference("with `true`, the action reads one event of a stream: [Events](#events)"),
];

pub(super) const OPERATION: &[Key] = &[
    key("status", MAP_OR_TEXT, "the request about the operation: its address, or inputs of http; without it the answers say where to ask")
        .reference("the request that asks about the operation: its address, or inputs of `http`"),
    key("result", MAP_OR_TEXT, "the request for the result: its address, inputs of http, or none; without it the answers say where the result is")
        .reference("the request for the result: its address, inputs of `http`, or `none`"),
    key("cancel", MAP_OR_TEXT, "the request that cancels the operation if the run ends before it: its address, or inputs of http, with POST")
        .reference("the request that cancels the operation: its address, or inputs of `http`; default method POST. See [Cancelling](#cancelling)"),
    key("done", CONDITION, "true when the operation has ended; without it the answers say so")
        .reference("a condition on the answer to the request of `status`. Without `done`, the table above applies"),
    key("failed", CONDITION, "true when an answer says that the operation failed")
        .reference("a condition on the same answer. If it is true, the operation has failed"),
    key("delay", DELAY, "the time between two requests; default server, and at least 5 s")
        .reference("as in [loops](loom.md#loops). Default `server`, and at least 5 s"),
    key("limit", LIMIT, "")
        .reference("as in [loops](loom.md#loops). The timeout includes the start and the request for the result. Without `count`, only the timeout limits the polls"),
];

// Commands, handlers, models.

pub(super) const SHELL: &[Key] = &[
    key("run", TEXT, "text for sh; pass data through env")
        .reference("a text for `sh -c`. Pass data in `env`, not in this text (`validate` warns)"),
    key("command", LIST_OR_TEXT, "a program and its arguments")
        .reference("the program and its arguments, without a shell, in place of `run`"),
    key("env", OBJECT, "variables of its environment")
        .reference("variables that are added to the engine's environment. A value that is not text becomes JSON; null removes a variable"),
    key("files", OBJECT, "values in files that only this command reads, by the variable that has the path")
        .reference("a map from names of variables to values that the command reads from files. Each variable has the path of its file. Only the command's user can read the files; they are deleted when the command has ended"),
    key("cwd", TEXT, TEMPLATE_TEXT)
        .reference("the working directory. The default, and the base of a relative path, is the folder where the run was started; for a stored workflow the server's folder"),
    RATE.reference("the name of a [rate limit](rate-limits.md#a-quota-of-several-hosts-or-of-a-customer) that the command counts against"),
    key("stdin", Type::Any, "text, or anything else as JSON; default empty")
        .reference("a text, or any other value as JSON; default empty"),
    key("check", CHECK, "false: any exit code is a success; [1]: this exit code is, too")
        .reference("with `false`, an exit code other than 0 is not a fault; with a list such as `[1]`, these exit codes are not. Read `exitCode` instead"),
    TIMEOUT.reference("the time of one attempt; default: unlimited"),
];

/// The key `rate` of a question to a language model.
pub(super) const AI_RATE: Key =
    RATE.reference("in Loom files: the name of a [rate limit](rate-limits.md#a-quota-of-several-hosts-or-of-a-customer), in place of the host's limit");

/// The base of `inputs` of `activity` and `actor`. Without `input`, further keys are the handler's input, so none is a
/// misspelling.
const HANDLER_INPUTS: Map = Map { unknown_keys: UnknownKeys::Allowed, ..MAP };

const ACTIVITY: &[Key] = &[key("activityType", TEXT, "the handler's name"), INPUT];
const ACTOR: &[Key] = &[key("actorType", TEXT, "the handler's name"), INPUT];
const INPUT: Key = key("input", Type::Any, "the handler's input");

// Waits, variables, data.

const WAIT: &[Key] =
    &[key("interval", DURATION, ""), key("until", Type::Any, "an instant"), key("count", Type::Any, "how many units"), key("unit", UNIT, "")];

const SIGNAL: &[Key] = &[
    key("signal", Type::NonEmptyText, "the name of the signal; default for a question: the name of the action"),
    key("title", Type::Any, "the question, as text with expressions"),
    key(
        "choices",
        Type::WithRules(r#"{"uniqueItems":true,"maxItems":20}"#, &Type::ListOf(&Type::NonEmptyText)),
        "the buttons; the answer has one of them as `choice`",
    ),
    key("schema", OBJECT, "JSON Schema of an object: each property is a field of the form"),
    TIMEOUT,
];

const TERMINATE: &[Key] = &[
    key("runStatus", Type::AnyCase(&["Succeeded", "Failed", "Cancelled"]), "how the run ends"),
    key("runError", open![key("code", TEXT, TEMPLATE_TEXT), key("message", TEXT, TEMPLATE_TEXT)], "why"),
];

pub(super) const PATH: Key = required("path", TEXT, "the file");

pub(super) const FILE: &[Key] = &[
    key("row", Type::Any, "one row")
        .reference("one row; an action has one of `row`, `rows` and `text`"),
    key("rows", LIST_OR_TEXT, "a list of rows"),
    key("text", TEXT, "text as it is")
        .reference("a text that is appended as it is"),
    key("append", Type::WithRules(r#"{"deprecated":true}"#, &Type::Exactly("true")), "existing rows always stay")
        .reference("only `true`, which has no effect"),
    key("key", TEXT, "a member of a row, or an expression about item: a row whose key was written before is dropped")
        .reference(r#"a member of a row (`id`, `meta.id`), or an expression about `item`. A row is dropped if the file has a row with the same key. A null key fails the action. `1`, `1.0` and `"1"` are three keys"#),
    key("format", Type::Words(&["ndjson", "json", "csv"]), "of rows; default ndjson")
        .reference(r#"`ndjson` (default): a JSON document on each line. `json`: one JSON array, complete after each append. `csv`: RFC 4180 with a header; lines end with LF. There, `null` is an empty cell, an empty text is `""`, lists and objects are JSON"#),
    key("columns", LIST_OR_TEXT, "the columns of a CSV file; default: the members of the first rows")
        .reference("the columns of `csv`, in this order; other members are omitted. Default: the columns of the header, or else the members of the first append's rows. With the default, a row with another member fails the action. In a new file, a misspelt column fails it, too: no row has the member, and a row has one with a similar name"),
    key("replace", FLAG, "replace the file when the run has succeeded; default false")
        .reference("with `true`, the file is replaced when the run has succeeded; default `false`"),
];

const STATE_NAME: Key = key("name", Type::NonEmptyText, "a name that `state` declares");

const STATE_VALUE: &[Key] =
    &[key("value", Type::Any, "the new value"), key("overwrite", FLAG, "write over what another run wrote, too; default false")];

pub(super) const CALLED_WORKFLOW: &[Key] = &[
    required("workflow", Type::NonEmptyText, "a file next to this one, or the name of a saved workflow")
        .reference("a text with `/`, or a text that ends with `.yaml`, `.yml` or `.json`, is a file of any format below this file's folder. Any other text is a workflow that `workflow put` saved"),
    key("timeout", DURATION, "of all attempts together; the run is cancelled then")
        .reference("the time of all attempts together; after that the run is cancelled"),
    key("inputs", MAP_OR_TEXT, "the inputs of that workflow")
        .reference("the inputs of the other workflow, without secrets: they are stored with its run"),
];

/// Makes the key `inputs` of an action.
const fn inputs(value: Type) -> Key {
    key("inputs", value, "what the action uses")
}

/// Makes an action with these keys.
const fn action(types: &'static [&'static str], description: &'static str, keys: &'static [&'static [Key]]) -> Action {
    Action { types, description, map: Map { keys, ..MAP } }
}

/// All types of actions.
pub(crate) const TYPES: &[Action] = &[
    Action { types: &["until"], description: "checks before each iteration; stops when the condition is true", map: LOOP_MAP },
    Action { types: &["while"], description: "checks before each iteration; stops when the condition is false", map: LOOP_MAP },
    Action { types: &["doUntil"], description: "checks after each iteration; stops when the condition is true", map: LOOP_MAP },
    Action {
        types: &["retry"],
        description: "repeats an action until it succeeds",
        map: Map {
            keys: &[&[
                key("action", ACTION, ""),
                RETRY_POLICY,
                TIMEOUT,
                key("inputs", map![required("action", ACTION, ""), RETRY_POLICY, TIMEOUT], SAME_KEYS),
            ]],
            required_sets: RequiredSets::Any(&[&["action"], &["inputs"]]),
            ..MAP
        },
    },
    action(
        &["foreach"],
        "does its actions for each item of a list",
        &[&[
            required("foreach", LIST_OR_TEXT, "the list"),
            required("actions", ACTIONS, ""),
            key("concurrency", Type::Integer(1, Some(10_000)), "how many items at a time; default 1"),
            TIMEOUT,
            key("on_error", Type::AnyCase(&["fail", "continue"]), "continue: the other items run, and the result is {results, failed}"),
        ]],
    ),
    action(
        &["parallel"],
        "does its branches at the same time",
        &[&[key("branches", Type::MapOf(&BLOCK), "branches by name"), key("actions", ACTIONS, ""), TIMEOUT]],
    ),
    action(
        &["if"],
        "does its actions if the condition is true",
        &[&[key("condition", CONDITION, ""), key("expression", CONDITION, ""), required("actions", ACTIONS, ""), key("else", BLOCK, ""), TIMEOUT]],
    ),
    action(
        &["switch"],
        "does the actions of one case",
        &[&[
            key("on", Type::Any, "the value that selects a case"),
            key("expression", Type::Any, "the same, as Logic Apps call it"),
            required("cases", Type::MapOf(&Type::Def("case")), "actions by value"),
            key("default", BLOCK, ""),
            TIMEOUT,
        ]],
    ),
    action(&["scope"], "groups actions", &[&[required("actions", ACTIONS, ""), TIMEOUT]]),
    action(
        &["http"],
        "a request; its output is {statusCode, headers, body}",
        &[
            REQUEST,
            HTTP,
            &[
                key("limit", open![TIMEOUT], ""),
                inputs(map![REQUEST, HTTP; RETRY_POLICY]),
            ],
        ],
    ),
    action(&["shell"], "a command; its output is {exitCode, stdout, stderr, body}", &[SHELL, &[inputs(map![SHELL;])]]),
    Action {
        types: &["activity"],
        description: "a call of a handler",
        map: Map {
            keys: &[ACTIVITY, &[inputs(Type::Map(&Map { keys: &[ACTIVITY], ..HANDLER_INPUTS })), TIMEOUT]],
            rules: || handler_rules("activityType"),
            ..MAP
        },
    },
    Action {
        types: &["actor"],
        description: "a call of a handler",
        map: Map { keys: &[ACTOR, &[inputs(Type::Map(&Map { keys: &[ACTOR], ..HANDLER_INPUTS })), TIMEOUT]], rules: || handler_rules("actorType"), ..MAP },
    },
    Action {
        types: &["ai"],
        description: "a question to a language model; its output is {content, usage}",
        map: Map {
            keys: &[MODEL, &[inputs(map![MODEL; AI_RATE, MODEL_TIMEOUT]), AI_RATE, TIMEOUT]],
            required_sets: RequiredSets::Any(&[&["prompt"], &["messages"], &["inputs"]]),
            ..MAP
        },
    },
    action(
        &["wait"],
        "waits for a time, or until an instant",
        &[WAIT, &[inputs(Type::AnyOf(&[DURATION, map![WAIT;]]))]],
    ),
    action(&["waitForSignal"], "waits for a signal; its output is the payload", &[SIGNAL, &[inputs(map![SIGNAL;])]]),
    action(&["compose"], "its output is its inputs", &[&[required("inputs", Type::Any, "the value")]]),
    action(
        &["setVariable", "appendToArrayVariable", "appendToStringVariable"],
        "sets a variable, or appends to it",
        &[&[key("value", Type::Any, "the value; of increment and decrement: by how much, default 1"), inputs(OBJECT)]],
    ),
    action(
        &["incrementVariable", "decrementVariable", "initializeVariable"],
        "counts a variable, or sets its first value",
        &[&[key("value", Type::Any, "the value; of increment and decrement: by how much, default 1"), inputs(OBJECT)]],
    ),
    action(&["terminate"], "ends the run", &[TERMINATE, &[inputs(map![TERMINATE;])]]),
    action(
        &["parseJson"],
        "its output is the value of a JSON text",
        &[&[required(
            "inputs",
            map![required("content", Type::Any, "JSON as text"), key("schema", OBJECT, "JSON Schema of the value")],
            "",
        )]],
    ),
    action(
        &["select"],
        "maps each element of a list",
        &[&[required(
            "inputs",
            map![required("from", LIST_OR_TEXT, "the list"), required("select", Type::Any, "an expression over each element, `item()`")],
            "",
        )]],
    ),
    action(
        &["query"],
        "the elements of a list for which a condition holds",
        &[&[required(
            "inputs",
            map![required("from", LIST_OR_TEXT, "the list"), required("where", CONDITION, "")],
            "",
        )]],
    ),
    action(
        &["join"],
        "joins the elements of a list to a text",
        &[&[required(
            "inputs",
            map![required("from", LIST_OR_TEXT, "the list"), required("joinWith", TEXT, TEMPLATE_TEXT)],
            "",
        )]],
    ),
    action(
        &["table"],
        "a list as CSV or HTML",
        &[&[required(
            "inputs",
            map![
                required("from", LIST_OR_TEXT, "the list"),
                required("format", Type::AnyCaseOrExpression(&["CSV", "HTML"]), "the form of the table"),
                key("columns", LIST, "a list of {header, value}; default: the members of the rows"),
            ],
            "",
        )]],
    ),
    action(
        &["appendFile"],
        "appends to a file, exactly once",
        &[&[key("path", TEXT, "the file")], FILE, &[inputs(Type::Map(&Map { keys: &[&[PATH], FILE], ..MAP }))]],
    ),
    action(
        &["operation"],
        "starts a long operation of a server, polls it, and returns its result",
        &[REQUEST, OPERATION, &[inputs(map![REQUEST; RETRY_POLICY])]],
    ),
    action(
        &["workflow"],
        "starts a workflow as a run of its own and waits for its end; its output is the output of that run",
        &[CALLED_WORKFLOW],
    ),
    action(
        &["setState"],
        "writes a value between runs",
        &[&[STATE_NAME], STATE_VALUE, &[inputs(Type::Map(&Map { keys: &[&[STATE_NAME], STATE_VALUE], ..MAP }))]],
    ),
    action(&["getState"], "reads the newest value between runs", &[&[STATE_NAME, inputs(map![STATE_NAME])]]),
];

// What the format defines in addition to actions.

const TIME_UNITS: &[&str] = &["second", "minute", "hour", "day", "week", "seconds", "minutes", "hours", "days", "weeks"];

const INTERVALS: &[Key] = &[
    key("interval", DURATION, "")
        .reference("the wait (default 5s); an exponential wait doubles each time"),
    key("maxInterval", DURATION, "")
        .reference("the longest exponential wait. Default: 1m, or `interval` if it is longer"),
    key("maximumInterval", DURATION, "")
        .reference("the same as `maxInterval`"),
    key("minimumInterval", DURATION, "")
        .reference("the shortest exponential wait. Default: 1s, or `interval` if it is shorter"),
    key("minInterval", DURATION, "")
        .reference("the same as `minimumInterval`"),
    key(
        "jitter",
        Type::WithRules(r#"{"type":"string"}"#, &Type::Words(&["none", "equal", "full"])),
        "how much of a wait is random; without it up to a tenth of an exponential one",
    )
    .reference("the random part of a wait: `none`, `equal` (half of it) or `full` (all of it). Without `jitter`, up to 10 % is added to an exponential wait"),
];

pub(super) const RETRY_POLICY_KEYS: &[&[Key]] = &[
    &[
        key("type", Type::AnyCase(&["none", "fixed", "exponential"]), "")
            .reference("default `exponential`"),
        key("count", Type::AnyOf(&[Type::Integer(0, None), TEXT]), "")
            .reference("retries after the first attempt; default 3"),
    ],
    INTERVALS,
    &[
        key("on", Type::WithRules(r#"{"items":{"type":["string","integer"]}}"#, &Type::Json(&["array", "string", "integer"])), "")
            .reference("the faults to retry: status codes, classes (`5xx`, with 600 to 999), `timeout`, `connection` or another [kind](actions.md), `transient`, `unprocessed` ([below](#default-retries)). Without `on`, an action retries its transient faults; a block or a loop retries any failure"),
        key("when", CONDITION, "retry only if it is true; without on, only this condition decides")
            .reference(r#"a condition on the failed attempt, such as `"@equals(outputs('a').exitCode, 75)"`. Without `on`, only `when` decides"#),
    ],
];

pub(super) const LIMIT_KEYS: &[Key] = &[
    key("count", Type::AnyOf(&[Type::Integer(1, None), EXPRESSION]), "the most iterations; default 60")
        .reference("limits the iterations; default 60"),
    key("timeout", DURATION, "the time limit of the complete loop; default PT1H")
        .reference("limits the time since the loop began, also through crashes, and aborts a running action; default PT1H"),
    key("tokens", Type::AnyOf(&[Type::Integer(1, None), EXPRESSION]), "of a loop: the most tokens of language models that its actions may use")
        .reference("a [budget](loops.md#budgets) in tokens of language models"),
    key(
        "cost",
        Type::AnyOf(&[Type::WithRules(r#"{"exclusiveMinimum":0}"#, &Type::Json(&["number"])), EXPRESSION]),
        "of a loop: the most that its actions may cost, by the `usage.cost` of their results",
    )
    .reference("a [budget](loops.md#budgets) in money"),
    key("unchanged", Type::Integer(2, None), "of a loop: a limit, reached after this number of iterations in a row with the same result")
        .reference("ends the loop when this number of iterations in a row had the same result, or the same value of `unchanged_of`"),
    key("unchanged_of", Type::Any, "what `unchanged` compares, an expression; default the result of the iteration")
        .reference("an expression for the value that `unchanged` compares; default: the result of the iteration"),
];

pub(super) const SCHEDULE: &[Key] = &[
    required("cron", TEXT, "five fields, or @hourly, @daily, …")
        .reference("the times, as above; also `@hourly`, `@daily`, …"),
    key("timezone", TEXT, "a name of the IANA database; default UTC")
        .reference("a name such as `Europe/Berlin`; default UTC"),
    key("overlap", Type::Words(&["skip", "allow", "queue", "replace"]), "what happens at a scheduled time while the last run has not ended; default skip")
        .reference("what happens while an earlier run has not ended. `skip` (default) starts no run, `queue` starts one run afterwards, `allow` starts a concurrent run, `replace` cancels the earlier run"),
    key("missed", Type::Words(&["skip", "run_once", "run_all"]), "times while no server ran; default skip")
        .reference("what happens to the times while no server ran. `skip` (default) starts no run, `run_once` starts one run for all of them, `run_all` starts one run for each. A time whose run is queued (`overlap: queue`) does not count as missed"),
];

const CONCURRENCY_POLICIES: Type = Type::Words(&["queue", "skip", "replace"]);
const LOGIC_APPS: &str = "With the $schema of Logic Apps.";
const HOOKS: Type = Type::AnyOf(&[TEXT, Type::Def("alert"), BLOCK]);

pub(super) const WORKFLOW: &[Key] = &[
    key("dialect", Type::Words(&["loom", "azure", "tea", "canvas"]), "the format; without it the shape of the file decides")
        .reference("the format of the file; default: by the shape of the file"),
    key("name", TEXT, "the name of the workflow; default: the file's")
        .reference("the workflow's name; default: the name of the file"),
    key("description", TEXT, "for people; no effect")
        .reference("for people"),
    key("version", Type::Any, "for people; no effect")
        .reference("for people"),
    key("metadata", Type::Any, "for people; no effect")
        .reference("for people"),
    key("$schema", TEXT, "that of Logic Apps: the file may have what a definition has")
        .reference("that of Logic Apps: see [Loom's own files](#looms-own-files)"),
    key(
        "inputs",
        Type::MapOf(&Type::AnyOf(&[
            Type::Json(&["null"]),
            map![
                key(
                    "type",
                    Type::Words(&["any", "string", "text", "integer", "int", "number", "boolean", "bool", "array", "list", "object"]),
                    "",
                ),
                key("default", Type::Any, "the value if the run does not give one"),
                key("description", TEXT, ""),
                key("required", FLAG, "false: without a default and a value of the run, it is null"),
            ],
        ])),
        "",
    )
    .reference("a map of `{type, default, required, description}`. Types: `any` `string` `integer` `number` `boolean` `array` `object`. An input without a default is required, or null with `required: false`"),
    key("variables", OBJECT, "initial values, in order")
        .reference("initial values; each value can read the variables before it"),
    key(
        "defaults",
        map![
            key("retry", RETRY, ""),
            key("timeout", DURATION, "how long one attempt may take"),
            key("headers", OBJECT, "headers of each http action; its own replace them"),
            key("rate", TEXT, "name of the rate limit of calls to servers"),
        ],
        "retry, timeout, headers and rate of the http and ai actions that do not set them",
    )
    .reference("`{retry, timeout, headers, rate}` of actions that do not have these keys: [Default retries](#default-retries)"),
    key(
        "concurrency",
        Type::AnyOf(&[
            CONCURRENCY_POLICIES,
            map![
                key("key", TEXT, "runs with the same key exclude each other; it reads the inputs"),
                key("policy", CONCURRENCY_POLICIES, "what happens to a run above the maximum; default queue"),
                key("max", Type::Integer(1, Some(100_000)), "maximum number of runs of a key that run at a time; default 1"),
            ],
        ]),
        "which runs of the file exclude each other",
    )
    .reference("which runs [exclude each other](#concurrency)"),
    key(
        "rates",
        Type::MapOf(&TEXT),
        "how often hosts are called, or actions with that `rate`, over all runs of the store, e.g. api.example.com: 100/1s",
    )
    .reference("the rates of calls to hosts, e.g. `{api.example.com: 100/1s}`: [Rate limits](rate-limits.md)"),
    key("limits", LIMIT, "")
        .reference("default `{count, timeout}` of the file's loops"),
    key(
        "handlers",
        Type::MapOf(&map![key("command", LIST_OR_TEXT, ""), key("url", TEXT, "")]),
        "commands and addresses that answer for activities and actors, by name",
    )
    .reference("[programs and addresses](#handlers) for `activity` and `actor`"),
    required("actions", ACTIONS, "a map from names to actions"),
    key("outputs", Type::Any, "the outputs of the run")
        .reference("the outputs of the run; default: the output of every top-level action by name"),
    key(
        "schedule",
        Type::AnyOf(&[
            TEXT,
            map![SCHEDULE;],
        ]),
        "when a server that keeps the workflow starts runs",
    )
    .reference("when a server starts runs: [Schedules](#schedules)"),
    key("contentVersion", Type::Any, "with the $schema of Logic Apps; no effect"),
    key(
        "triggers",
        open![
            key(
                "webhook",
                open![
                    key("secret", TEXT, "the name of the secret that signs them"),
                    key("signature", Type::Words(&["github", "stripe", "standard"]), "who signs"),
                ],
                "signed requests to /v1/hooks/NAME",
            ),
            key(
                "folder",
                open![key("path", TEXT, "absolute"), key("pattern", TEXT, "names of the files; * matches any text")],
                "new files in a folder",
            ),
        ],
        "what starts runs of the saved workflow; with the $schema of Logic Apps: triggers of a definition",
    )
    .reference("when a server starts runs: [webhooks and folders](../guides/triggers.md)"),
    key("parameters", Type::Any, LOGIC_APPS),
    key("staticResults", Type::Any, "with the $schema of Logic Apps; no effect"),
    key("on_failure", HOOKS, "done when the run failed: an action, {actions}, or the address of a webhook")
        .reference("actions [after a run](#when-something-fails) that failed or timed out"),
    key("on_finish", HOOKS, "done whenever the run has ended: an action, {actions}, or the address of a webhook")
        .reference("actions [after a run](#when-something-fails)"),
    key("state", Type::WithRules(r#"{"propertyNames":{"minLength":1,"maxLength":128}}"#, &OBJECT), "values between runs: names and initial values")
        .reference("[values between runs](../guides/state.md); the actions `setState` and `getState` write and read them"),
];

/// The pattern of a duration: the form `5s`, or ISO 8601.
const DURATION_PATTERN: &str =
    r"^\s*(?:P(?=[\dT])(?:\d+W|(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d+)?S)?)?)|(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+)\s*$";

pub(super) const STATUSES: &[&str] = &["Succeeded", "Failed", "Skipped", "TimedOut", "Cancelled"];

pub(super) const DEFINITIONS: &[Definition] = &[
    define("authentication", authentication::TYPE),
    define("alert", Type::About(
        "a POST to a webhook, with ten attempts within an hour",
        &map![
            required("webhook", TEXT, "its address"),
            key("format", Type::Words(&["json", "slack", "teams"]), "the form of the body; default: json"),
            key("text", Type::Any, "what the alert says, instead of how the run ended"),
            key("body", Type::Any, "the whole body, instead of a format"),
            key("headers", OBJECT, "headers of the request"),
        ],
    )),
    define("workflow", map![WORKFLOW;]),
    define("actions", Type::WithRules(r#"{"minProperties":1}"#, &Type::MapOf(&ACTION))),
    define("actionOrActions", Type::AnyOf(&[
        Type::WithRules(r##"{"required":["type"],"allOf":[{"$ref":"#/$defs/action"}]}"##, &OBJECT),
        map![required("actions", Type::MapOf(&ACTION), "")],
    ])),
    define("case", Type::AnyOf(&[
        BLOCK,
        map![required("case", Type::Json(&["string", "number", "boolean"]), ""), key("actions", Type::MapOf(&ACTION), "")],
    ])),
    define("secure", Type::About(
        "values that are hidden in every view, and sealed in the store with --state-key",
        &Type::ListOf(&Type::Words(&["inputs", "outputs"])),
    )),
    define("runAfter", Type::MapOf(&Type::AnyOf(&[Type::ListOf(&Type::Def("status")), Type::Def("status")]))),
    define("status", Type::AnyCase(STATUSES)),
    define("condition", Type::About("WDL (\"@equals(…)\"), a bare Jinja expression, or the object form", &Type::Json(&["string", "object", "boolean"]))),
    define("delay", Type::About(
        "the time between two iterations: a duration, waits that grow, or what the server says",
        &Type::AnyOf(&[
            DURATION,
            Type::Exactly(r#""server""#),
            Type::Map(&Map { keys: &[&[required("type", Type::AnyCase(&["none", "fixed", "exponential", "server"]), "")], INTERVALS], ..MAP }),
        ]),
    )),
    define("duration", Type::About(
        "5s, 1h30m, ISO 8601 (PT30S), {count, unit}, {interval: …}, or an expression",
        &Type::AnyOf(&[
            Type::Pattern(DURATION_PATTERN),
            EXPRESSION,
            map![required("count", Type::AnyOf(&[Type::Integer(0, None), EXPRESSION]), ""), required("unit", UNIT, "")],
            map![required("interval", DURATION, "")],
        ]),
    )),
    define("limit", map![LIMIT_KEYS;]),
    define("retryPolicy", Type::AnyOf(&[
        Type::About("no retry", &Type::Pattern("^[Nn][Oo][Nn][Ee]$")),
        Type::Map(&Map { keys: RETRY_POLICY_KEYS, ..MAP }),
    ])),
    define("expression", Type::About("text with an expression: \"@…\", \"…@{…}…\" or \"{{ … }}\"", &Type::Pattern(r"^@|@\{|\{\{|\{%"))),
    define("unit", Type::AnyCase(TIME_UNITS)),
];

/// Makes the rule that the action itself or its `inputs` have the key `key`, which names the handler.
fn handler_rules(key: &str) -> Json {
    let under = json!({ "required": ["inputs"], "properties": { "inputs": { "required": [key] } } });
    json!({ "anyOf": [{ "required": [key] }, under] })
}

/// Returns true for a key that every action has.
pub(crate) fn is_action_key(name: &str) -> bool {
    let mut keys = COMMON.iter().chain(OUTCOME);
    keys.any(|key| key.name == name)
}

/// Returns the names of all types of actions.
pub(crate) fn types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().flat_map(|action| action.types.iter().copied())
}

/// Makes the JSON Schema of the format.
pub(crate) fn schema() -> Json {
    let root = json!({
        "title": "A Loom workflow",
        "description": "The Loom format of Windlass; docs/reference/loom.md describes it.",
        "type": "object",
        "anyOf": [{ "required": ["actions"] }, { "required": ["type"] }],
        "if": { "required": ["type"] },
        "then": { "$ref": "#/$defs/action" },
        "else": { "$ref": "#/$defs/workflow" },
    });
    let mut schema = document("loom", root, DEFINITIONS);
    if let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) {
        definitions.insert(String::from("action"), action_schema());
    }
    Json::Object(schema)
}

/// Makes the schema of an action, whose type decides which keys it has.
fn action_schema() -> Json {
    let names: Vec<&str> = types().collect();
    let of_type = schema::types(&names);
    let branches: Vec<Json> = TYPES.iter().map(branch).collect();
    json!({
        "type": "object",
        "required": ["type"],
        "properties": { "type": of_type },
        "allOf": branches,
    })
}

fn branch(action: &Action) -> Json {
    let mut words: Vec<Json> = action.types.iter().map(|word| schema::word(word)).collect();
    let kind = match (words.len(), words.pop()) {
        (1, Some(word)) => word,
        (_, last) => {
            words.extend(last);
            json!({ "anyOf": words })
        }
    };
    let description = match action.description {
        "" => json!({}),
        description => json!({ "description": description }),
    };
    let own = schema::members(&action.map);
    let properties = |schema: Json| schema.get("properties").cloned().unwrap_or_default();
    let common = Map { keys: &[COMMON, OUTCOME], ..MAP };
    let all = merge(properties(schema::members(&common)), properties(own.clone()));
    let then = merge(merge(description, own), json!({ "properties": all }));
    json!({ "if": { "properties": { "type": kind }, "required": ["type"] }, "then": then })
}
