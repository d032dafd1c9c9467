//! Polls over HTTP, beside a bare client that polls the same server.

use crate::floor::{self, Shape};
use crate::loops::{engine, on_runtime};
use crate::{directory, on_sled, report};
use axum::Router;
use axum::routing::get;
use std::time::Instant;
use tempfile::TempDir;
use windlass::internals::engine::Value;

const POLLS: usize = 200;
const ROUNDS: usize = 5;

/// A server on a thread of its own that answers polls.
pub fn server() -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        on_runtime(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let body = r#"{"status":"running"}"#;
            let answer = ([("content-type", "application/json")], body);
            let router = Router::new().route("/job", get(move || async move { answer }));
            axum::serve(listener, router).await.unwrap();
        });
    });
    format!("http://{}/job", told.recv().unwrap())
}

/// 200 polls without delay, on the disk and on one of memory, where a commit costs nothing but CPU.
pub fn polls() {
    let url = server();
    polls_of(&url, directory, "");
    let memory = || tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    polls_of(&url, memory, ", without the disk");
}

fn polls_of(url: &str, directory: fn() -> TempDir, what: &str) {
    let text = format!(
        "name: polls
actions:
  poll:
    type: until
    condition: \"@equals(body('check').status, 'complete')\"
    limit: {{ count: {POLLS}, timeout: PT1H }}
    on_limit: continue
    actions:
      check: {{ type: http, inputs: {{ method: GET, uri: '{url}' }} }}
outputs: {{ n: 1 }}
"
    );
    let at = directory();
    let mut best = (f64::MAX, f64::MAX);
    on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("polls.yaml", &text).unwrap();
        let client = reqwest::Client::new();
        // Turn by turn, so that both meet the same machine.
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..POLLS {
                let answer = client.get(url).send().await.unwrap();
                let body: serde_json::Value =
                    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
                assert_eq!(body["status"], "running");
            }
            best.0 = best.0.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let run = engine.start(&workflow, Value::Null).await.unwrap();
            run.result::<Value>().await.unwrap();
            best.1 = best.1.min(start.elapsed().as_secs_f64());
        }
        engine.stop().await;
    });
    let shape = Shape::of(at.path());
    let (bare, ours) = (POLLS as f64 / best.0, POLLS as f64 / best.1);
    report(
        &format!("polls a second of a bare client{what}"),
        format!("{bare:.0}"),
        None,
    );
    report(
        &format!("durable polls a second{what}"),
        format!("{ours:.0}"),
        None,
    );
    let commits = shape.groups as f64 / (POLLS * ROUNDS) as f64;
    report("commits a poll", format!("{commits:.2}"), None);
    let ratio = ours / bare;
    report(
        &format!("of the bare client's rate{what}"),
        format!("{ratio:.2}"),
        Some((ratio >= 0.6, "at least 0.6")),
    );
    if !on_sled() {
        return;
    }
    // A poll, then a commit of the bare database: nothing that waits for both is faster.
    let floor = floor::store_at(&directory(), &shape, 1_000, 1, 1, 1).rate;
    let bound = 1.0 / (1.0 / bare + 1.0 / floor);
    report(
        "  with a bare client and the bare database",
        format!("{:.2}", bound / bare),
        None,
    );
}
