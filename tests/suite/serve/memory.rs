//! The memory of guests' runs is bounded: runs that do not fit wait on disk, and nothing is lost or done twice.

#![allow(clippy::disallowed_methods, reason = "a server of the test is a task")]

use super::{PATIENCE, Server, Start, windlass};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Json, Router, routing::post};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Holds ten megabytes, and then calls.
const LARGE: &str = r#"
name: large
inputs: { uri: { type: string } }
variables: { big: "" }
actions:
  make:
    type: setVariable
    inputs: { name: big, value: "@join(range(0, 100000), 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')" }
  ask: { type: http, method: POST, uri: "@inputs('uri')" }
"#;

/// The same for a run that another one waits for.
const CALLER: &str = r#"
name: caller
inputs: { uri: { type: string } }
variables: { big: "" }
actions:
  make:
    type: setVariable
    inputs: { name: big, value: "@join(range(0, 100000), 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')" }
  call: { type: workflow, workflow: large, inputs: { uri: "@inputs('uri')" } }
"#;

const SMALL: &str = "name: small\nactions: { one: { type: compose, inputs: 1 } }\n";

/// Three runs fit: a step's value is stored in the variable and in the step's record.
const BOUND: f64 = 80e6;

/// Calls by key; they are answered when the gate opens.
#[derive(Clone)]
struct Gate {
    calls: Arc<Mutex<BTreeMap<String, u32>>>,
    called: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gate {
    async fn serve() -> (Self, String) {
        let gate = Self {
            calls: Arc::default(),
            called: watch::channel(0).0,
            open: watch::channel(false).0,
        };
        let router = Router::new()
            .route("/", post(hold))
            .with_state(gate.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (gate, format!("http://{address}/"))
    }

    fn calls(&self) -> BTreeMap<String, u32> {
        self.calls.lock().unwrap().clone()
    }
}

async fn hold(State(gate): State<Gate>, headers: HeaderMap) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    *gate.calls.lock().unwrap().entry(key).or_default() += 1;
    gate.called.send_modify(|count| *count += 1);
    let mut open = gate.open.subscribe();
    open.wait_for(|open| *open).await.unwrap();
    Json(json!({ "done": true }))
}

async fn metric(server: &Server, name: &str) -> f64 {
    let request = server.ask(Method::GET, "/metrics");
    let text = request.send().await.unwrap().text().await.unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name} ")));
    let value = line.and_then(|line| line.split(' ').nth(1));
    value
        .unwrap_or_else(|| panic!("no {name}"))
        .parse()
        .unwrap()
}

/// Waits until `runs` runs wait for memory.
async fn waiting(server: &Server, runs: f64) {
    let patience = Instant::now() + PATIENCE;
    while metric(server, "windlass_runs_waiting_for_memory").await < runs {
        assert!(Instant::now() < patience, "none waits");
        tokio::task::yield_now().await;
    }
}

fn spawn(folder: &std::path::Path) -> Server {
    Start::new(folder)
        .args(&["--max-guest-memory", "80MB"])
        .spawn()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_waits_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, uri) = Gate::serve().await;
    let server = spawn(folder.path());
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(server.begin(LARGE, json!({ "uri": uri })).await);
    }
    // A fourth run may have been loaded.
    waiting(&server, 6.0).await;
    let mut called = gate.called.subscribe();
    called.wait_for(|count| *count >= 3).await.unwrap();
    assert!(gate.calls().len() <= 4, "{:?}", gate.calls());
    let used = metric(&server, "windlass_guest_memory_bytes").await;
    assert!(used <= 1.25 * BOUND, "{used}");

    // The status of a waiting run reports it, and a small run does not wait.
    let status = |run: &String| windlass(folder.path(), &["status", run]);
    let waits = |run: &&String| {
        let out = String::from_utf8(status(run).stdout).unwrap();
        out.contains("waits for memory")
    };
    let held: Vec<_> = runs.iter().filter(waits).cloned().collect();
    assert!(held.len() >= 6, "{held:?}");
    let small = server.begin(SMALL, Value::Null).await;
    assert_eq!(server.end(&small).await["status"], "Succeeded");
    // A waiting run can be cancelled, and makes no call.
    let cancel = format!("/v1/runs/{}/cancel", held[0]);
    assert_eq!(server.post(&cancel, &Value::Null).await.0, 200);
    assert_eq!(server.end(&held[0]).await["status"], "Cancelled");
    runs.retain(|run| *run != held[0]);

    // The next process loads only what fits.
    server.kill();
    let server = spawn(folder.path());
    waiting(&server, 5.0).await;
    let used = metric(&server, "windlass_guest_memory_bytes").await;
    assert!(used <= 1.25 * BOUND, "{used}");
    assert!(gate.calls().len() <= 8, "{:?}", gate.calls());

    gate.open.send_replace(true);
    for run in &runs {
        assert_eq!(server.end(run).await["status"], "Succeeded", "{run}");
    }
    let calls = gate.calls();
    assert_eq!(calls.len(), runs.len(), "{calls:?}");
    // Only the calls in flight at the kill are repeated, with the same key.
    let repeated = calls.values().filter(|times| **times > 1).count();
    assert!(
        repeated <= 4 && calls.values().all(|times| *times <= 2),
        "{calls:?}"
    );
    assert_eq!(metric(&server, "windlass_guest_memory_bytes").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_those_that_they_wait_for_do_not_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, uri) = Gate::serve().await;
    gate.open.send_replace(true);
    let server = spawn(folder.path());
    let saved = json!({ "text": LARGE });
    let request = server.ask(Method::PUT, "/v1/workflows/large");
    let (status, answer) = super::answer(super::with(request, &saved)).await;
    assert!((200..300).contains(&status), "{answer}");
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(server.begin(CALLER, json!({ "uri": uri })).await);
    }
    for run in &runs {
        assert_eq!(server.end(run).await["status"], "Succeeded", "{run}");
    }
    assert_eq!(gate.calls().len(), 8);
}
