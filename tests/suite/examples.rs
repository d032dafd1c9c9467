//! The files in `examples/`, run against their server.

use crate::{app, support};
use serde_json::{Value as Json, json};
use windlass_engine::Engine;
use windlass_expression::Value;

/// Runs an example with these inputs in addition to `base`. Returns its outputs and the server's log.
async fn run(example: &str, inputs: Json) -> (Json, Json) {
    let base = support::serve(app::router(app::Options::default())).await;
    let store = tempfile::tempdir().unwrap();
    let engine = Engine::builder().open(store.path()).unwrap();
    let path = format!("{}/examples/{example}.yaml", env!("CARGO_MANIFEST_DIR"));
    let workflow = engine.load_file(&path, None).unwrap();
    let mut inputs = inputs;
    let declared = &workflow.program().inputs;
    let is_agent = workflow.program().format == "tea";
    if is_agent || declared.iter().any(|input| &*input.name == "base") {
        inputs["base"] = json!(base);
    }
    let input = Value::from_json(&inputs.to_string()).unwrap();
    let run = engine.start(&workflow, input).await.unwrap();
    let result = run.result::<Value>().await.unwrap();
    let log = reqwest::get(format!("{base}/log")).await.unwrap();
    let log: Json = serde_json::from_str(&log.text().await.unwrap()).unwrap();
    (serde_json::from_str(&result.to_json()).unwrap(), log)
}

/// How many requests the server received whose path begins with `path`.
fn requests(log: &Json, path: &str) -> u64 {
    let requests = log["requests"].as_array().unwrap();
    requests
        .iter()
        .filter(|request| request["path"].as_str().unwrap().starts_with(path))
        .map(|request| request["count"].as_u64().unwrap())
        .sum()
}

#[tokio::test]
async fn polling_until_complete() {
    let (outputs, log) = run(
        "polling-until-complete",
        json!({ "job": "x", "pause": "PT0.01S" }),
    )
    .await;
    // Five polls say `running`, the sixth `complete`.
    assert_eq!(outputs["polls"], 6);
    assert!(outputs["url"].as_str().unwrap().ends_with("/jobs/x/result"));
    assert_eq!(requests(&log, "/jobs/x"), 6);
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // It measures the server's `Retry-After`.
async fn polling_with_retry() {
    let given = json!({ "job": "x", "fails": 2, "after": 1, "pause": "PT0.01S" });
    let begin = std::time::Instant::now();
    let (outputs, log) = run("polling-with-retry", given).await;
    assert_eq!(outputs["calls"], 3);
    assert_eq!(outputs["polls"], 6);
    assert_eq!(requests(&log, "/flaky"), 3);
    // The server sent `Retry-After: 1` twice; the policy alone would have waited 0.3 seconds.
    assert!(begin.elapsed() >= std::time::Duration::from_secs(2));
}

#[tokio::test]
async fn polling_with_retry_gives_up() {
    let base = support::serve(app::router(app::Options::default())).await;
    let engine = Engine::builder().in_memory().unwrap();
    let path = format!(
        "{}/examples/polling-with-retry.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let workflow = engine.load_file(&path, None).unwrap();
    let given = json!({ "base": base, "fails": 0, "pause": "PT0S", "most": 3 });
    let input = Value::from_json(&given.to_string()).unwrap();
    let run = engine.start(&workflow, input).await.unwrap();
    let outcome = run.outcome().await.unwrap();
    let fault = outcome.error.unwrap().fault;
    assert_eq!(fault.code.as_deref(), Some("NotDone"));
    assert_eq!(fault.message, "nightly is not complete after 3 polls");
}

#[tokio::test]
async fn react_agent() {
    let (outputs, _) = run("react-agent", json!({})).await;
    assert_eq!(
        outputs,
        json!({
            "answer": "it is 42",
            "steps": 3,
            "observations": [
                { "action": "SEARCH", "result": "to multiply" },
                { "action": "CALCULATE", "result": 42 },
                { "action": "FINAL_ANSWER", "result": "it is 42" },
            ],
        })
    );
}

#[tokio::test]
async fn retry_until_success() {
    let (outputs, log) = run(
        "retry-until-success",
        json!({ "fails": 3, "pause": "PT0.01S" }),
    )
    .await;
    assert_eq!(outputs, json!({ "status": 200, "iterations": 4 }));
    assert_eq!(requests(&log, "/flaky"), 8);
}

#[tokio::test]
async fn process_queue_until_empty() {
    let (outputs, log) = run("process-queue-until-empty", json!({})).await;
    assert_eq!(outputs, json!({ "processed": [1, 2, 3, 4, 5] }));
    assert_eq!(requests(&log, "/process"), 5);
}

#[tokio::test]
async fn paginated_calls() {
    let (outputs, log) = run("paginated-calls", json!({})).await;
    assert_eq!(outputs["pages"], 4);
    let ids: Vec<i64> = outputs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, (1..=12).collect::<Vec<i64>>());
    assert_eq!(requests(&log, "/pages"), 4);
}

#[tokio::test]
async fn batch_with_pagination() {
    let (outputs, log) = run("batch-with-pagination", json!({})).await;
    assert_eq!(outputs["pages"], 4);
    assert_eq!(outputs["processed"].as_array().unwrap().len(), 12);
    assert_eq!(requests(&log, "/data"), 4);
}

#[tokio::test]
async fn nested_loops() {
    let (outputs, log) = run("nested-loops", json!({ "pause": "PT0.01S" })).await;
    assert_eq!(outputs, json!({ "pages": 4, "items": 12 }));
    assert_eq!(requests(&log, "/data"), 4);
    // Each of the twelve jobs is complete at its third poll.
    assert_eq!(requests(&log, "/jobs/page-"), 36);
}

#[tokio::test]
async fn paginated_backfill() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.jsonl");
    let (outputs, log) = run("paginated-backfill", json!({ "file": file })).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        outputs,
        json!({ "pages": 4, "rows": 12, "bytes": text.len() })
    );
    assert_eq!(text.lines().count(), 12);
    assert!(text.starts_with("{\"id\":1,"), "{text}");
    assert_eq!(requests(&log, "/data"), 4);
}

#[tokio::test]
async fn append_keeps_what_is_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    std::fs::write(&path, "before\n").unwrap();
    let engine = Engine::builder().in_memory().unwrap();
    let text = format!(
        "actions:\n  lines:\n    type: foreach\n    foreach: [1, 2]\n    actions:\n      \
         add: {{ type: appendFile, path: {path:?}, text: \"@{{item()}};\" }}\n\
         outputs: \"@outputs('lines')\"\n"
    );
    let workflow = engine.load_text("append.yaml", &text).unwrap();
    for written in ["before\n1;2;", "before\n1;2;1;2;"] {
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        run.result::<Value>().await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    }
}

#[tokio::test]
async fn an_extraction_is_corrected() {
    let (state, log) = run("tea/extraction-with-retry", json!({})).await;
    assert_eq!(state["people"], json!(["Ada", "Charles"]));
    assert_eq!(state["_retry_count"], 1);
    assert_eq!(requests(&log, "/v1/chat"), 2);
}

#[tokio::test]
async fn generated_json_fits_its_schema() {
    let (state, log) = run("tea/json-generation-with-reflection", json!({})).await;
    assert_eq!(state["rounds"], 2);
    let wanted = json!({ "name": "Ada Lovelace", "born": "1815", "email": "ada@example.org" });
    assert_eq!(state["profile"], wanted);
    assert_eq!(requests(&log, "/v1/chat"), 2);
}

#[tokio::test]
async fn generated_code_passes_its_tests() {
    let (state, log) = run("tea/code-generation-with-tests", json!({})).await;
    assert_eq!(state["passed"], true);
    assert_eq!(state["scores"], json!([0.33, 1.0]));
    assert!(state["code"].as_str().unwrap().contains("split()"));
    assert_eq!(requests(&log, "/v1/chat"), 2);
}

#[tokio::test]
async fn a_model_judges_a_model() {
    let (state, log) = run("tea/llm-as-judge", json!({})).await;
    assert_eq!(
        (&state["accepted"], &state["score"]),
        (&json!(true), &json!(0.9))
    );
    assert!(state["text"].as_str().unwrap().contains("for example"));
    assert_eq!(requests(&log, "/v1/chat"), 4);
}
