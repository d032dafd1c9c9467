//! Loops and retries with their keys under `inputs`, in files with the `$schema` of Logic Apps.

use super::read;
use serde_json::{Value as Json, json};
use windlass_engine::Engine;
use windlass_expression::Value;
use windlass_model::model::Dialect;

const SCHEMA: &str = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#";

fn file(actions: &Json) -> String {
    let file = json!({
        "$schema": SCHEMA,
        "contentVersion": "1.0.0.0",
        "parameters": { "most": { "type": "int", "defaultValue": 3 } },
        "triggers": { "manual": { "type": "manual" } },
        "actions": actions,
    });
    file.to_string()
}

/// The output of a file with these actions; nothing in the file names its format.
async fn run(actions: &Json) -> Result<Json, String> {
    let engine = Engine::builder().in_memory().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flow.json");
    std::fs::write(&path, file(actions)).unwrap();
    let workflow = engine.load_file(&path, None).unwrap();
    let input = Value::from_json("{}").unwrap();
    let outcome = engine.start(&workflow, input).await.unwrap();
    let outcome = outcome.outcome().await.unwrap();
    engine.stop().await;
    match outcome.error {
        Some(error) => Err(error.fault.kind.to_string()),
        None => Ok(serde_json::from_str(&outcome.output.to_json()).unwrap()),
    }
}

fn looped(kind: &str, condition: &str, count: u64) -> Json {
    json!({ "round": { "type": kind, "inputs": {
        "condition": condition,
        "limit": { "count": count, "timeout": "PT1M" },
        "delay": { "interval": { "count": 0, "unit": "second" } },
        "actions": {
            "index": { "type": "Compose", "inputs": "@variables('loopIndex')" },
            "count": { "type": "Compose", "inputs": "@variables('loopCount')" },
        },
    } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_gives_every_result() {
    let until = looped(
        "Until",
        "@equals(variables('loopIndex'), parameters('most'))",
        9,
    );
    assert_eq!(
        run(&until).await.unwrap()["round"],
        json!({
            "iterations": 3,
            "status": "Succeeded",
            "reason": "condition",
            "result": { "index": 2, "count": 3 },
            "lastResult": { "index": 2, "count": 3 },
            "results": [
                { "index": 0, "count": 1 },
                { "index": 1, "count": 2 },
                { "index": 2, "count": 3 },
            ],
            "conditionMet": true,
            "completed": true,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_looks_when_it_should() {
    for (kind, condition, expected) in [
        ("While", "@less(variables('loopIndex'), 2)", Ok(2)),
        ("while", "@false", Ok(0)),
        ("Until", "true", Ok(0)),
        ("DoUntil", "true", Ok(1)),
        (
            "DoUntil",
            "@greaterOrEquals(variables('loopIndex'), 2)",
            Ok(2),
        ),
        ("Until", "@false", Err("limit")),
    ] {
        let came = run(&looped(kind, condition, 4)).await;
        let iterations = came.map(|came| came["round"]["iterations"].as_i64().unwrap());
        let expected = expected.map_err(str::to_owned);
        assert_eq!(iterations, expected, "{kind} {condition}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_in_a_loop_has_results_of_its_own() {
    let inner = looped("Until", "@equals(variables('loopIndex'), 2)", 5);
    let outer = json!({ "outer": { "type": "DoUntil", "inputs": {
        "condition": "@equals(variables('loopIndex'), 2)",
        "actions": inner,
    } } });
    let came = run(&outer).await.unwrap();
    assert_eq!(came["outer"]["iterations"], 2);
    for round in came["outer"]["results"].as_array().unwrap() {
        assert_eq!(round["round"]["results"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_reports_its_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = "test -e \"$MARK\" || { touch \"$MARK\"; exit 1; }; echo '{\"n\": 1}'";
    let actions = json!({
        "again": { "type": "Retry", "inputs": {
            "action": { "type": "shell", "inputs": { "run": script, "env": { "MARK": mark } } },
            "retryPolicy": { "type": "fixed", "count": 2, "interval": "PT0.01S" },
        } },
        "default": { "type": "Retry", "inputs": { "action": { "type": "Compose", "inputs": "x" } } },
    });
    let came = run(&actions).await.unwrap();
    assert_eq!(came["again"]["attempts"], 2, "{came}");
    assert_eq!(came["again"]["result"]["body"], json!({ "n": 1 }));
    assert_eq!(
        came["default"],
        json!({ "status": "Succeeded", "attempts": 1, "result": "x" })
    );
}

/// Any type of Loom in a definition makes it a Loom file.
#[test]
fn a_definition_with_types_of_loom_is_loom() {
    let compose = json!({ "type": "Compose", "inputs": 1 });
    let own = json!({ "type": "While", "condition": "@false", "actions": { "x": compose } });
    for (actions, dialect) in [
        (json!({ "a": compose }), Dialect::Azure),
        (json!({ "a": own }), Dialect::Loom),
        (
            json!({ "a": { "type": "Scope", "actions": { "b": own } } }),
            Dialect::Loom,
        ),
        (
            json!({ "a": { "type": "Until", "expression": "@true", "actions": { "b": compose } } }),
            Dialect::Azure,
        ),
    ] {
        assert_eq!(
            read("flow.json", &file(&actions)).dialect,
            dialect,
            "{actions}"
        );
    }
}

#[test]
fn a_key_is_at_one_place() {
    let text = file(
        &json!({ "a": { "type": "Until", "condition": "@true", "inputs": {
        "condition": "@false", "actions": { "b": { "type": "Compose", "inputs": 1 } },
    } } }),
    );
    let bundle = windlass_source::source::Bundle::single("flow.json", text);
    let caps = windlass_formats::Caps::default();
    let (_, diagnostics) = windlass_formats::read(&bundle, None, &caps);
    let text = diagnostics.render(&bundle, false);
    assert!(text.contains("next to `type` and under `inputs`"), "{text}");
}
