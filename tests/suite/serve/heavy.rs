//! One guest's expression stops nothing else: neither runs, nor the API, a cancel, SIGTERM or a restart.

#![allow(
    clippy::disallowed_methods,
    reason = "requests are tasks, and a test that hangs ends"
)]

use super::{PATIENCE, SLEEP, Server, Start, windlass};
use crate::support::sized;
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// A loop with ten iterations per second.
const TICKS: &str = r#"
name: ticks
variables: { n: 0 }
actions:
  tick:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 10000, timeout: P1D }
    delay: PT0.1S
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
"#;

/// Searches ten megabytes a hundred thousand times after its signal.
const QUERY: &str = r#"
name: query
actions:
  wait: { type: waitForSignal, inputs: { signal: go } }
  big: { type: compose, inputs: "@join(range(0, 100000), 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')" }
  look:
    type: query
    inputs: { from: "@range(0, 100000)", where: "@contains(outputs('big'), 'zz')" }
"#;

/// Repeated loops of Jinja.
const JINJA: &str = r#"
name: jinja
variables: { out: "" }
actions:
  again:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 10000, timeout: P1D }
    actions:
      make:
        type: setVariable
        inputs:
          name: out
          value: "{% for a in range(300) %}{% for b in range(300) %}{% if a < b %}{% endif %}{% endfor %}{% endfor %}{{ loop.index }}"
"#;

/// Definitions that each refer twice to the next one.
fn schema() -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/definitions/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert(String::from("d60"), json!({"type": "integer"}));
    json!({"definitions": definitions, "$ref": "#/definitions/d0"})
}

async fn ticks(server: &Server, run: &str) -> u64 {
    let (status, response) = server.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(status, 200, "{response}");
    response["loops"][0]["iteration"]
        .as_u64()
        .unwrap_or_default()
}

/// Waits until a loop has made `by` more iterations.
async fn await_iterations(server: &Server, run: &str, by: u64) {
    let from = ticks(server, run).await;
    let patience = Instant::now() + PATIENCE;
    while ticks(server, run).await < from + by {
        assert!(Instant::now() < patience, "the loop makes no progress");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn status(server: &Server, run: &str) -> String {
    let (_, response) = server.get(&format!("/v1/runs/{run}")).await;
    response["status"].as_str().unwrap_or_default().to_owned()
}

/// Sends the signal that a run waits for. The answer arrives when its step has ended.
fn go(server: &Server, run: &str) -> tokio::task::JoinHandle<u16> {
    let request = server.ask(Method::POST, &format!("/v1/runs/{run}/signal"));
    let request = super::with(request, &json!({"name": "go"}));
    tokio::spawn(async move {
        request
            .send()
            .await
            .map_or(0, |answer| answer.status().as_u16())
    })
}

#[tokio::test]
async fn others_go_on_while_a_guest_computes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let loop_run = server.begin(TICKS, Value::Null).await;
    let mut heavy = Vec::new();
    for _ in 0..sized(4, 3) {
        heavy.push(server.begin(QUERY, Value::Null).await);
    }
    await_iterations(&server, &loop_run, 2).await;
    let before = ticks(&server, &loop_run).await;
    let began = Instant::now();
    for run in &heavy {
        go(&server, run);
    }
    let mut ready = 0;
    for run in &heavy {
        while !matches!(&*status(&server, run).await, "Failed" | "Succeeded") {
            let (status, response) = server.get("/readyz").await;
            assert_eq!(status, 200, "{response}");
            ready += 1;
            // Requests to start runs are answered, too.
            let nap = server.begin(SLEEP, Value::Null).await;
            assert!(nap.starts_with("sleep"), "{nap}");
        }
        let outcome = server.end(run).await;
        let error = outcome["error"].to_string();
        assert!(error.contains("more work than one step"), "{outcome}");
        assert!(error.contains("look"), "it says where: {outcome}");
    }
    let due = began.elapsed().as_millis() as u64 / 100;
    let made = ticks(&server, &loop_run).await - before;
    assert!(ready > 0 && made >= due / 3, "{made} of {due} iterations");
}

#[tokio::test]
async fn a_run_that_computes_is_cancelled_and_does_not_keep_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut heavy = Vec::new();
    for _ in 0..4 {
        heavy.push(server.begin(QUERY, Value::Null).await);
    }
    for run in &heavy {
        go(&server, run);
    }
    let (status_code, response) = server
        .post(&format!("/v1/runs/{}/cancel", heavy[3]), &Value::Null)
        .await;
    assert_eq!(status_code, 200, "{response}");
    assert_eq!(status(&server, &heavy[3]).await, "Cancelled");
    let began = Instant::now();
    let (left, stderr) = server.stop();
    assert!(left.success(), "{left}: {stderr}");
    assert!(
        began.elapsed() < Duration::from_secs(29),
        "within its grace"
    );
}

#[tokio::test]
async fn a_restart_after_a_kill_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let loop_run = server.begin(TICKS, Value::Null).await;
    let mut heavy = Vec::new();
    for _ in 0..4 {
        heavy.push(server.begin(QUERY, Value::Null).await);
    }
    for run in &heavy {
        go(&server, run);
    }
    await_iterations(&server, &loop_run, 3).await;
    server.kill();
    let server = Server::start(folder.path());
    let (status, response) = server.get("/readyz").await;
    assert_eq!(status, 200, "{response}");
    await_iterations(&server, &loop_run, 5).await;
}

#[tokio::test]
async fn eight_guests_with_loops_of_jinja_leave_room() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let loop_run = server.begin(TICKS, Value::Null).await;
    for _ in 0..8 {
        server.begin(JINJA, Value::Null).await;
    }
    let (before, began) = (ticks(&server, &loop_run).await, Instant::now());
    await_iterations(&server, &loop_run, 20).await;
    let due = began.elapsed().as_millis() as u64 / 100;
    let made = ticks(&server, &loop_run).await - before;
    assert!(made >= due / 3, "{made} of {due} iterations");
    assert_eq!(server.get("/readyz").await.0, 200);
}

#[tokio::test]
async fn schemas_of_guests_end_with_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let loop_run = server.begin(TICKS, Value::Null).await;
    let parse = json!({"name": "parse", "actions": {
        "read": {"type": "parseJson", "inputs": {"content": "1", "schema": schema()}},
    }});
    let run = server.begin(&parse.to_string(), Value::Null).await;
    let outcome = server.end(&run).await;
    assert!(
        outcome["error"].to_string().contains("more work"),
        "{outcome}"
    );
    for (uses, with) in [
        ("data.validate", json!({"data": 1, "schema": schema()})),
        ("validate.schema", json!({"data": 1, "schema": schema()})),
        (
            "reflection.evaluate",
            json!({"data": 1, "schema": schema()}),
        ),
    ] {
        let tea = json!({"name": "tea", "nodes": [{"name": "check", "uses": uses, "with": with}],
            "edges": [{"from": "__start__", "to": "check"}, {"from": "check", "to": "__end__"}]});
        let body = json!({"text": tea.to_string(), "file": "tea.yaml", "dialect": "tea"});
        let (status, run) = server.post("/v1/runs", &body).await;
        assert_eq!(status, 201, "{run}");
        let outcome = server.end(run["run"].as_str().unwrap()).await;
        assert!(
            outcome.to_string().contains("more work"),
            "{uses}: {outcome}"
        );
    }
    await_iterations(&server, &loop_run, 2).await;
}

/// The requests of an editor are bounded, and those of read-only clients do not block other clients.
#[tokio::test]
async fn tries_of_those_who_look_leave_the_api_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let roles = [("admin", "secret"), ("view", "looks-only")];
    let server = Start::new(&state).roles(folder.path(), &roles).spawn();
    let tried = json!({"text": QUERY.replace("outputs('big')", "variables('big')")
        .replace("name: query", "name: query\nvariables: { big: '' }"),
        "node": "look", "variables": {"big": "x".repeat(4 << 20)}});
    let ask = |token: &str| {
        let request = server
            .ask(Method::POST, "/v1/language/try")
            .bearer_auth(token);
        super::with(request, &tried)
    };
    let looking: Vec<_> = (0..10)
        .map(|_| tokio::spawn(ask("looks-only").send()))
        .collect();
    // Readiness checks, other tokens and the operator's socket have separate capacity.
    assert_eq!(server.get("/readyz").await.0, 200);
    let (status, response) = super::answer(ask("secret")).await;
    assert_eq!(status, 200, "{response}");
    assert!(
        response["error"].to_string().contains("more work"),
        "{response}"
    );
    let listed = windlass(Path::new(&state), &["list"]);
    assert!(listed.status.success(), "{listed:?}");
    // Requests end when their client has disconnected.
    looking.iter().for_each(tokio::task::JoinHandle::abort);
    let (status, response) = super::answer(ask("looks-only")).await;
    assert_eq!(status, 200, "{response}");
}
