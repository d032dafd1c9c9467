//! The life of a server: it is stopped or killed, and the runs continue.

use super::{COUNT, Server, Start};
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::post;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A step whose answer waits until the test allows it.
const EFFECT: &str = r#"
name: effect
inputs: { uri: { type: string } }
actions:
  work: { type: http, inputs: { method: POST, uri: "@inputs('uri')", body: {} } }
outputs: "@body('work')"
"#;

/// A server that holds calls until the test allows the answers.
#[derive(Clone)]
struct Gate {
    keys: Arc<Mutex<Vec<String>>>,
    calls: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gate {
    fn new() -> Self {
        Self {
            keys: Arc::default(),
            calls: watch::channel(0).0,
            open: watch::channel(false).0,
        }
    }

    async fn serve(&self) -> String {
        let router = Router::new()
            .route("/", post(hold))
            .with_state(self.clone());
        serve(router).await
    }

    async fn called(&self, times: usize) {
        let mut calls = self.calls.subscribe();
        calls.wait_for(|count| *count >= times).await.unwrap();
    }

    fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }
}

async fn hold(State(gate): State<Gate>, headers: HeaderMap) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    gate.keys.lock().unwrap().push(key);
    gate.calls.send_modify(|count| *count += 1);
    let mut open = gate.open.subscribe();
    open.wait_for(|open| *open).await.unwrap();
    Json(json!({ "done": true }))
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods)] // The test measures real time.
async fn a_stop_leaves_in_time_and_the_next_server_repeats_the_effect() {
    let gate = Gate::new();
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--grace", "2s"]).spawn();
    let run = server.begin(EFFECT, json!({ "uri": uri })).await;
    gate.called(1).await;
    let began = Instant::now();
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );

    gate.open.send_replace(true);
    let server = Server::start(dir.path());
    let outcome = server.end(&run).await;
    assert_eq!(outcome["output"], json!({ "done": true }), "{outcome}");
    let keys = gate.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "the same step has the same key");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_about_to_leave_says_so_and_can_be_looked_at() {
    let gate = Gate::new();
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--grace", "60s"]).spawn();
    let run = server.begin(EFFECT, json!({ "uri": uri })).await;
    gate.called(1).await;
    let stream = format!("/v1/runs/{run}/events");
    let stream = server.ask(Method::GET, &stream).send().await.unwrap();
    server.signal(nix::sys::signal::Signal::SIGTERM);
    // The stream ends when the server stops.
    assert!(!stream.text().await.unwrap().contains("finished"));
    assert_eq!(server.get("/healthz").await.0, 200);
    let ready = server.ask(Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(ready.status(), 503);
    assert_eq!(ready.headers()["retry-after"], "1");
    let (status, problem) = server.post("/v1/runs", &json!({ "text": EFFECT })).await;
    assert_eq!(status, 503, "{problem}");
    assert_eq!(problem["type"], "urn:windlass:unavailable");
    let (status, problem) = server.get(&format!("/v1/runs/{run}/events")).await;
    assert_eq!(status, 503, "{problem}");
    let (status, report) = server.get(&format!("/v1/runs/{run}")).await;
    assert_eq!((status, &report["status"]), (200, &json!("Running")));
    let path = format!("/v1/runs/{run}/pause");
    let (status, paused) = server.post(&path, &json!(null)).await;
    assert_eq!((status, &paused["status"]), (200, &json!("Paused")));
    gate.open.send_replace(true);
    let (status, stderr) = server.ended();
    assert!(status.success(), "{stderr}");
    assert_eq!(gate.keys().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_ends_in_the_grace_is_not_repeated() {
    let gate = Gate::new();
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--grace", "30s"]).spawn();
    let run = server.begin(EFFECT, json!({ "uri": uri })).await;
    gate.called(1).await;
    server.signal(nix::sys::signal::Signal::SIGTERM);
    gate.open.send_replace(true);
    let (status, _) = server.ended();
    assert!(status.success());
    let server = Server::start(dir.path());
    assert_eq!(server.end(&run).await["status"], "Succeeded");
    assert_eq!(gate.keys().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing() {
    let gate = Gate::new();
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(EFFECT, json!({ "uri": uri })).await;
    let counting = server.begin(COUNT, json!({ "to": 300 })).await;
    gate.called(1).await;
    server.kill();
    gate.open.send_replace(true);
    let server = Server::start(dir.path());
    assert_eq!(server.end(&run).await["status"], "Succeeded");
    assert_eq!(server.end(&counting).await["output"], 300);
    let keys = gate.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_is_notified() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = tokio::net::UnixDatagram::bind(&path).unwrap();
    let server = Start::new(&dir.path().join("state")).spawn_with(|command| {
        command
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "300000");
    });
    let mut messages = Vec::new();
    for _ in 0..4 {
        messages.push(next(&socket).await);
    }
    assert!(messages.contains(&String::from("READY=1")), "{messages:?}");
    assert!(
        messages.contains(&String::from("WATCHDOG=1")),
        "{messages:?}"
    );
    let (status, _) = server.stop();
    assert!(status.success());
    let mut rest = Vec::new();
    let mut bytes = [0; 256];
    while let Ok(length) = socket.try_recv(&mut bytes) {
        rest.push(String::from_utf8_lossy(&bytes[..length]).trim().to_owned());
    }
    assert!(rest.contains(&String::from("STOPPING=1")), "{rest:?}");
}

async fn next(socket: &tokio::net::UnixDatagram) -> String {
    let mut bytes = [0; 256];
    let read = tokio::time::timeout(super::PATIENCE, socket.recv(&mut bytes)).await;
    let length = read.expect("the server says nothing").unwrap();
    String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_badly_is_started_once_more() {
    let gate = Gate::new();
    gate.open.send_replace(true);
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    // At the first attempt no server runs.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let effect = EFFECT.replace("body: {} }", "body: {} }, retry: { type: none }");
    let failed = server.begin(&effect, json!({ "uri": address })).await;
    assert_eq!(server.end(&failed).await["status"], "Failed");
    let path = format!("/v1/runs/{failed}/retry");
    let (status, again) = server.post(&path, &json!({ "run": "again" })).await;
    assert_eq!(status, 201, "{again}");
    assert_eq!(again["labels"]["windlass.retry_of"], json!(failed));
    assert_eq!(server.end("again").await["status"], "Failed");

    let good = server.begin(EFFECT, json!({ "uri": uri })).await;
    assert_eq!(server.end(&good).await["status"], "Succeeded");
    let (status, problem) = server
        .post(&format!("/v1/runs/{good}/retry"), &json!({}))
        .await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &json!("urn:windlass:not-retried"))
    );
    let (status, _) = server.post(&path, &json!({ "from": "nobody" })).await;
    assert_eq!(status, 409);

    let left = ["retry", &failed, "--id", "left", "--detach"];
    let left = super::windlass(dir.path(), &left);
    assert_eq!(left.stdout, b"left\n", "{left:?}");
    assert_eq!(server.end("left").await["status"], "Failed");

    // The same on the command line, with the server and without one.
    for stop in [false, true] {
        if stop {
            server.signal(nix::sys::signal::Signal::SIGTERM);
        }
        let retried = super::windlass(dir.path(), &["retry", &failed, "-o", "json"]);
        assert_eq!(retried.status.code(), Some(1), "{retried:?}");
        let outcome: Value = serde_json::from_slice(&retried.stdout).unwrap();
        assert_eq!(outcome["error"]["kind"], "connection", "{outcome}");
    }
    let from = super::windlass(dir.path(), &["retry", &failed, "--from", "nobody"]);
    assert_eq!(from.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so() {
    let gate = Gate::new();
    let uri = gate.serve().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--max-runs", "2"]).spawn();
    let body = json!({ "text": EFFECT, "input": { "uri": uri } });
    let keyed = || {
        let request = server.ask(reqwest::Method::POST, "/v1/runs");
        super::answer(super::with(request.header("idempotency-key", "k"), &body))
    };
    assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    assert_eq!(keyed().await.0, 201);
    gate.called(2).await;
    assert_eq!(keyed().await.0, 200, "what is there is found all the same");
    let request = server.ask(reqwest::Method::POST, "/v1/runs");
    let response = super::with(request, &body).send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "1");
    let (status, problem) = super::parts(response).await;
    assert_eq!(
        (status, &problem["type"]),
        (429, &json!("urn:windlass:busy"))
    );
    gate.open.send_replace(true);
    let (_, list) = server.get("/v1/runs").await;
    for run in list["runs"].as_array().unwrap() {
        server.end(run["run"].as_str().unwrap()).await;
    }
    assert_eq!(server.post("/v1/runs", &body).await.0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_starts_on_a_full_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--max-runs", "1"]).spawn();
    let child = json!({ "text": "actions: { a: { type: compose, inputs: 1 } }" });
    let put = server.ask(reqwest::Method::PUT, "/v1/workflows/child");
    assert_eq!(super::answer(super::with(put, &child)).await.0, 201);
    let parent = "actions: { call: { type: workflow, workflow: child } }";
    let run = server.begin(parent, json!(null)).await;
    assert_eq!(server.end(&run).await["status"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_an_id_is_repeated_only_by_its_own_request() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let text = "actions: { a: { type: compose, inputs: 1 } }";
    let start = async |run: Option<&str>, request_id: &str| {
        let body =
            json!({ "text": text, "run": run, "request_id": request_id, "input": { "n": 1 } });
        server.post("/v1/runs", &body).await
    };
    let (status, first) = start(Some("r"), "one").await;
    assert_eq!((status, &first["labels"]), (201, &json!({})), "{first}");
    server.end("r").await;
    assert_eq!(start(Some("r"), "one").await.0, 200);
    assert_eq!(start(Some("r"), "two").await.0, 409);
    // Another request with the same id.
    let put = server.ask(reqwest::Method::PUT, "/v1/workflows/saved");
    assert_eq!(
        super::answer(super::with(put, &json!({ "text": text })))
            .await
            .0,
        201
    );
    for (member, value) in [
        ("input", json!({ "n": 2 })),
        ("labels", json!({ "a": "b" })),
        ("text", json!(text.replace('1', "2"))),
        ("workflow", json!("saved")),
    ] {
        let mut body =
            json!({ "text": text, "run": "r", "request_id": "one", "input": { "n": 1 } });
        body[member] = value;
        if member == "workflow" {
            body.as_object_mut().unwrap().remove("text");
        }
        let (status, problem) = server.post("/v1/runs", &body).await;
        assert_eq!(status, 422, "{member}: {problem}");
        assert_eq!(problem["type"], "urn:windlass:key-reused");
    }
    for (run, request_id) in [
        (None, "one"),
        (Some("s"), ""),
        (Some("s"), &*"x".repeat(9_999)),
        // The path `/v1/runs/bulk` is not a run.
        (Some("bulk"), "one"),
    ] {
        let (status, problem) = start(run, request_id).await;
        assert_eq!(status, 400, "{problem}");
    }
}
