//! The types of nodes that can be added, each with the smallest valid value.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use windlass_engine::Dialect;

/// A type of node that can be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeType {
    /// Type, as files have it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Display name of the type.
    pub title: String,
    /// Description of what such a node does.
    pub description: String,
    /// Smallest valid node of the type, without its name.
    pub value: Value,
}

/// Returns the node types of a format.
#[must_use]
pub fn types(dialect: Dialect) -> Vec<NodeType> {
    let one = |(kind, title, description, value): (&str, &str, &str, Value)| NodeType {
        kind: kind.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        value,
    };
    let all = match dialect {
        Dialect::Loom => loom(),
        Dialect::Azure => azure(),
        Dialect::Tea => tea(),
        Dialect::Canvas => canvas(),
    };
    all.into_iter().map(one).collect()
}

pub(super) fn smallest(dialect: Dialect, kind: &str) -> Option<Value> {
    let types = types(dialect);
    let mut types = types.into_iter();
    types
        .find(|one| one.kind.eq_ignore_ascii_case(kind))
        .map(|one| one.value)
}

type Row = (&'static str, &'static str, &'static str, Value);

fn loom() -> Vec<Row> {
    let limit = json!({ "count": 10, "timeout": "1h" });
    let empty = json!({ "step": { "type": "compose", "inputs": "" } });
    let body = json!({ "step": { "type": "wait", "inputs": "1s" } });
    vec![
        (
            "http",
            "HTTP request",
            "Calls an address",
            json!({ "type": "http", "inputs": { "method": "GET", "uri": "https://example.org/" } }),
        ),
        (
            "shell",
            "Command",
            "Runs a command",
            json!({ "type": "shell", "inputs": { "run": "echo done" } }),
        ),
        (
            "until",
            "Until",
            "Repeats until a condition is true",
            json!({ "type": "until", "condition": "@equals(variables('loopCount'), 3)", "limit": limit, "actions": body }),
        ),
        (
            "while",
            "While",
            "Repeats while a condition is true",
            json!({ "type": "while", "condition": "@less(variables('loopCount'), 3)", "limit": limit, "actions": body }),
        ),
        (
            "doUntil",
            "Do until",
            "Repeats at least once, until a condition is true",
            json!({ "type": "doUntil", "condition": "@equals(variables('loopCount'), 3)", "limit": limit, "actions": body }),
        ),
        (
            "foreach",
            "For each",
            "Does the same with every item of a list",
            json!({ "type": "foreach", "foreach": [1, 2, 3], "actions": { "step": { "type": "compose", "inputs": "@item()" } } }),
        ),
        (
            "retry",
            "Retry",
            "Repeats an action until it succeeds",
            json!({ "type": "retry", "action": { "type": "shell", "inputs": { "run": "echo done" } }, "retryPolicy": { "type": "exponential", "count": 3, "interval": "5s" } }),
        ),
        (
            "if",
            "If",
            "Chooses by a condition",
            json!({ "type": "if", "condition": "@equals(1, 1)", "actions": empty }),
        ),
        (
            "switch",
            "Switch",
            "Chooses by a value",
            json!({ "type": "switch", "on": "a", "cases": {}, "default": { "actions": empty } }),
        ),
        (
            "scope",
            "Scope",
            "Actions that belong together",
            json!({ "type": "scope", "actions": empty }),
        ),
        (
            "parallel",
            "Parallel",
            "Actions at the same time",
            json!({ "type": "parallel", "actions": empty }),
        ),
        (
            "compose",
            "Compose",
            "Makes a value",
            json!({ "type": "compose", "inputs": "" }),
        ),
        (
            "setVariable",
            "Set variable",
            "Sets a variable",
            json!({ "type": "setVariable", "inputs": { "name": "result", "value": "" } }),
        ),
        (
            "incrementVariable",
            "Increment variable",
            "Adds to a number",
            json!({ "type": "incrementVariable", "inputs": { "name": "count", "value": 1 } }),
        ),
        (
            "appendToArrayVariable",
            "Append to list",
            "Adds an element to a list",
            json!({ "type": "appendToArrayVariable", "inputs": { "name": "all", "value": "" } }),
        ),
        (
            "appendFile",
            "Append to file",
            "Writes rows exactly once",
            json!({ "type": "appendFile", "inputs": { "path": "rows.jsonl", "rows": [] } }),
        ),
        (
            "operation",
            "Long operation",
            "Starts an operation and waits for its end",
            json!({ "type": "operation", "inputs": { "method": "POST", "uri": "https://" } }),
        ),
        (
            "workflow",
            "Workflow",
            "Runs another workflow and waits for its end",
            json!({ "type": "workflow", "workflow": "child.yaml", "inputs": {} }),
        ),
        (
            "wait",
            "Wait",
            "Waits for a time",
            json!({ "type": "wait", "inputs": "10s" }),
        ),
        (
            "waitForSignal",
            "Wait for signal",
            "Asks a person, or waits for a signal",
            json!({ "type": "waitForSignal", "title": "Approve?", "choices": ["approve", "reject"] }),
        ),
        (
            "terminate",
            "Terminate",
            "Ends the run",
            json!({ "type": "terminate", "inputs": { "runStatus": "Succeeded" } }),
        ),
    ]
}

fn azure() -> Vec<Row> {
    let actions = json!({});
    vec![
        (
            "Http",
            "HTTP request",
            "Calls an address",
            json!({ "type": "Http", "inputs": { "method": "GET", "uri": "https://example.org/" } }),
        ),
        (
            "Until",
            "Until",
            "Repeats until an expression is true",
            json!({ "type": "Until", "expression": "@equals(1, 1)", "limit": { "count": 60, "timeout": "PT1H" }, "actions": actions }),
        ),
        (
            "Foreach",
            "For each",
            "Does the same with every item of a list",
            json!({ "type": "Foreach", "foreach": "@createArray(1, 2)", "actions": actions }),
        ),
        (
            "If",
            "Condition",
            "Chooses by an expression",
            json!({ "type": "If", "expression": { "equals": [1, 1] }, "actions": actions }),
        ),
        (
            "Scope",
            "Scope",
            "Actions that belong together",
            json!({ "type": "Scope", "actions": actions }),
        ),
        (
            "Compose",
            "Compose",
            "Makes a value",
            json!({ "type": "Compose", "inputs": "" }),
        ),
        (
            "Wait",
            "Delay",
            "Waits for a time",
            json!({ "type": "Wait", "inputs": { "interval": { "count": 10, "unit": "Second" } } }),
        ),
        (
            "Terminate",
            "Terminate",
            "Ends the run",
            json!({ "type": "Terminate", "inputs": { "runStatus": "Succeeded" } }),
        ),
    ]
}

fn tea() -> Vec<Row> {
    let step = json!({ "name": "step", "run": "return {}" });
    vec![
        (
            "run",
            "Code",
            "Python that changes the state",
            json!({ "run": "return {}" }),
        ),
        (
            "while_loop",
            "While loop",
            "Repeats while a condition is true",
            json!({ "type": "while_loop", "max_iterations": 5, "condition": "state.again", "body": [step] }),
        ),
        (
            "retry.loop",
            "Retry loop",
            "Validates and corrects",
            json!({ "uses": "retry.loop", "with": { "validate": "validate.schema", "max_retries": 3 } }),
        ),
        (
            "reflection.loop",
            "Reflection loop",
            "Generates, evaluates and corrects",
            json!({ "uses": "reflection.loop", "with": { "generator": { "run": "return {}" }, "evaluator": { "type": "custom", "run": "return True" }, "max_iterations": 3 } }),
        ),
        (
            "llm.call",
            "Model",
            "Asks a model",
            json!({ "uses": "llm.call", "with": { "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "" }] } }),
        ),
        (
            "http.get",
            "HTTP GET",
            "Reads an address",
            json!({ "uses": "http.get", "with": { "url": "https://example.org/" } }),
        ),
    ]
}

fn canvas() -> Vec<Row> {
    let inner = json!({ "nodes": [{ "id": "step", "type": "function", "data": { "outputs": [{ "name": "done", "type": "boolean" }], "code": "return { done = true }" } }], "edges": [] });
    let while_not = json!({ "output": "step.done", "operator": "==", "value": false });
    vec![
        (
            "loop",
            "Loop",
            "Repeats an inner workflow",
            json!({ "type": "loop", "data": { "label": "Loop", "continueWhile": while_not, "maxIterations": 10, "inputMappings": [], "outputMappings": [], "inlineWorkflow": inner } }),
        ),
        (
            "function",
            "Function",
            "Code in Lua or Python",
            json!({ "type": "function", "data": { "outputs": [{ "name": "result", "type": "any" }], "code": "return { result = 1 }" } }),
        ),
        (
            "agent",
            "Agent",
            "Asks an agent",
            json!({ "type": "agent", "data": { "label": "Agent", "runner": "openai", "model": "gpt-4o-mini", "prompt": "Say hello.", "outputs": [{ "name": "response", "type": "string" }] } }),
        ),
        (
            "shell",
            "Command",
            "Runs a script",
            json!({ "type": "shell", "data": { "script": "echo done" } }),
        ),
        (
            "http",
            "HTTP request",
            "Calls an address",
            json!({ "type": "http", "data": { "method": "GET", "url": "https://example.org/" } }),
        ),
        (
            "constant",
            "Constant",
            "A value",
            json!({ "type": "constant", "data": { "value": "" } }),
        ),
        (
            "interface-input",
            "Input",
            "Inputs of the graph",
            json!({ "type": "interface-input", "data": { "outputs": [{ "name": "input", "type": "any" }] } }),
        ),
        (
            "interface-output",
            "Output",
            "Outputs of the graph",
            json!({ "type": "interface-output", "data": { "inputs": [{ "name": "output", "type": "any" }] } }),
        ),
    ]
}
