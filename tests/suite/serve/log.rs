//! What a server and a command without a terminal log.

use super::{COUNT, SLEEP, Server, Start, answer, with};
use crate::app;
use crate::support::serve;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// A workflow that fails, with control characters in its message.
const FAIL: &str = "name: fails\nactions:\n  stop: { type: terminate, inputs: { runStatus: Failed, \
                    runError: { code: broken, message: \"red \\e[31m text\" } } }\n";

/// The members of a log line, without its time.
fn members(line: &Value) -> BTreeMap<&str, &Value> {
    let members = line.as_object().unwrap().iter();
    let members = members.map(|(name, value)| (name.as_str(), value));
    members.filter(|(name, _)| *name != "timestamp").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_log_in_json_is_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state)
        .roles(dir.path(), &[("operate", "works-token")])
        .args(&["--log-format", "json"])
        .spawn();
    let start = async |run: &str, text: &str, input: Value| {
        let body = json!({ "run": run, "text": text, "input": input });
        let request = server
            .ask(Method::POST, "/v1/runs")
            .bearer_auth("works-token");
        let (status, response) = answer(with(request, &body)).await;
        assert_eq!(status, 201, "{response}");
        let result = format!("/v1/runs/{run}/result?wait=60");
        answer(server.ask(Method::GET, &result).bearer_auth("works-token")).await;
    };
    start("counts", COUNT, json!({ "to": 2 })).await;
    start("breaks", FAIL, Value::Null).await;
    let wrong = server
        .ask(Method::GET, "/v1/runs")
        .bearer_auth("wrong-token");
    assert_eq!(answer(wrong).await.0, 401);
    let (status, stderr) = server.stop();
    assert!(status.success());
    assert!(!stderr.contains("-token"), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "{stderr}");
    let lines: Vec<Value> = stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}")))
        .collect();
    let mut found = Vec::new();
    for line in &lines {
        assert!(
            line["timestamp"].is_string() && line["level"].is_string(),
            "{line}"
        );
        let mut members = members(line);
        if let Some(seconds) = members.remove("seconds") {
            assert!(seconds.as_f64().unwrap() < 60.0, "{line}");
        }
        found.push(json!(members));
    }
    let ready = found
        .iter()
        .find(|line| line["message"].as_str().unwrap().starts_with("ready at "));
    assert_eq!(ready.unwrap()["level"], "INFO");
    for wanted in [
        json!({ "level": "INFO", "target": "run", "message": "run started", "run": "counts", "workflow": "count" }),
        json!({ "level": "INFO", "target": "run", "message": "run ended", "run": "counts", "workflow": "count",
            "status": "Succeeded" }),
        json!({ "level": "WARN", "target": "run", "message": "run ended", "run": "breaks", "workflow": "fails",
            "status": "Failed", "action": "stop", "error": "red \u{1b}[31m text" }),
        json!({ "level": "INFO", "target": "audit", "message": "client request", "name": "operate", "from": "127.0.0.1",
            "action": "start", "subject": "breaks", "result": "done" }),
        json!({ "level": "WARN", "target": "windlass_server::http::app", "message": "request refused",
            "from": "127.0.0.1", "method": "GET", "path": "/v1/runs", "more": 0, "why": "the token is another one" }),
    ] {
        assert!(found.contains(&wanted), "no {wanted} in {found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_text_has_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(SLEEP, Value::Null).await;
    let path = format!("/v1/runs/{run}/cancel");
    assert_eq!(answer(server.ask(Method::POST, &path)).await.0, 200);
    let (_, stderr) = server.stop();
    for wanted in [
        format!(" INFO run: run started run={run} workflow=sleep"),
        format!(" INFO run: run ended run={run} workflow=sleep status=\"Cancelled\""),
        String::from(
            " INFO audit: client request name=\"anonymous\" from=\"127.0.0.1\" action=\"cancel\"",
        ),
    ] {
        assert!(stderr.contains(&wanted), "no {wanted} in {stderr}");
    }
}

/// A call that fails three times.
const FLAKY: &str = r#"
name: flaky
inputs: { base: { type: string } }
actions:
  fetch:
    type: http
    inputs: { uri: "@{inputs('base')}/flaky?fails=3&key=log" }
    retry: { type: fixed, count: 4, interval: PT0.05S }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_terminal_prints_each_failed_attempt() {
    let base = serve(app::router(app::Options::default())).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flaky.yaml");
    std::fs::write(&file, FLAKY).unwrap();
    let ran = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_windlass"))
            .arg("run")
            .arg(&file)
            .args(["-i", &format!("base={base}")])
            .arg("--state")
            .arg(dir.path().join("state"))
            .env_remove("WINDLASS_SERVER")
            .output()
            .unwrap()
    });
    let ran = ran.await.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let stderr = String::from_utf8(ran.stderr).unwrap();
    let failed: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("an attempt of `fetch` failed: "))
        .collect();
    assert_eq!(failed.len(), 3, "{stderr}");
    assert!(
        failed.iter().all(|line| line.contains("; next attempt ")),
        "{stderr}"
    );
}
