//! Polls and pages over HTTP, compared with a bare client of the same server.

use crate::floor::Shape;
use crate::loops::{engine, noise, on_runtime};
use crate::{directory, report};
use axum::Router;
use axum::routing::get;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use tempfile::TempDir;
use windlass_engine::Value;

const POLLS: usize = 200;
const ROUNDS: usize = 5;

/// Starts a server that answers polls, on its own thread. Returns its URL.
pub fn server() -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        on_runtime(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let body = r#"{"status":"running"}"#;
            let answer = ([("content-type", "application/json")], body);
            let page = ([("content-type", "application/json")], page());
            let router = Router::new()
                .route("/job", get(move || async move { answer }))
                .route("/page", get(move || async move { page }));
            axum::serve(listener, router).await.unwrap();
        });
    });
    format!("http://{}/job", receiver.recv().unwrap())
}

/// 200 polls without delay, on the disk and on a file system in memory. There a commit costs only CPU time.
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
        // The rounds alternate, so that both run under the same load of the machine.
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
    // The client polls and then syncs a file. Nothing that waits for both in this order can be faster.
    let synced = POLLS as f64 / synced(url, at.path(), shape.bytes());
    for (what, ratio) in [
        (
            "a bare client that syncs a file, of the bare client",
            synced / bare,
        ),
        ("of a bare client that syncs a file", ours / synced),
    ] {
        report(&format!("  {what}"), format!("{ratio:.2}"), None);
    }
}

/// The best time of a bare client that appends `bytes` bytes to a file after each poll and syncs it.
fn synced(url: &str, at: &Path, bytes: usize) -> f64 {
    let mut best = f64::MAX;
    on_runtime(async {
        let client = reqwest::Client::new();
        let mut file = File::create(at.join("synced")).unwrap();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..POLLS {
                let answer = client.get(url).send().await.unwrap();
                answer.bytes().await.unwrap();
                file.write_all(&vec![7; bytes]).unwrap();
                file.sync_data().unwrap();
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
    });
    best
}

/// The number of pages, and the number of rows in each.
const PAGES: usize = 5_000;
const ROWS: usize = 10;

/// A page of rows. The reader's request says which page is next.
fn page() -> String {
    let row = |number| serde_json::json!({ "id": number, "text": noise(80) });
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    serde_json::json!({ "items": rows }).to_string()
}

/// Appends pages of rows to a file, compared with a bare client that appends and syncs each page.
pub fn pages() {
    let url = server().replace("/job", "/page");
    let at = directory();
    let text = format!(
        "name: pages
variables: {{ n: 0 }}
actions:
  pages:
    type: until
    condition: \"@equals(variables('n'), {PAGES})\"
    limit: {{ count: {PAGES}, timeout: PT1H }}
    actions:
      page: {{ type: http, inputs: {{ method: GET, uri: '{url}' }} }}
      rows: {{ type: appendFile, inputs: {{ path: '{}', rows: \"@body('page').items\" }} }}
      next: {{ type: incrementVariable, name: n, value: 1 }}
outputs: {{ n: \"@variables('n')\" }}
",
        at.path().join("rows.ndjson").display()
    );
    let (bare, ours) = on_runtime(async {
        let client = reqwest::Client::new();
        let path = at.path().join("bare.ndjson");
        let mut file = std::fs::File::create(&path).unwrap();
        let start = Instant::now();
        for _ in 0..PAGES {
            let answer = client.get(&url).send().await.unwrap();
            let body: serde_json::Value =
                serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            let rows = body["items"].as_array().unwrap();
            let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
            file.write_all(lines.as_bytes()).unwrap();
            file.sync_data().unwrap();
        }
        let bare = start.elapsed().as_secs_f64();
        let engine = engine(at.path());
        let workflow = engine.load_text("pages.yaml", &text).unwrap();
        let start = Instant::now();
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        run.result::<Value>().await.unwrap();
        let ours = start.elapsed().as_secs_f64();
        engine.stop().await;
        (bare, ours)
    });
    let rows = std::fs::read(at.path().join("rows.ndjson")).unwrap();
    let lines = rows.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, PAGES * ROWS);
    let rate = |seconds| format!("{:.0}", PAGES as f64 / seconds);
    report("pages a second of a bare client", rate(bare), None);
    report("durable pages a second", rate(ours), None);
    let ratio = bare / ours;
    let met = (ratio >= 0.8, "at least 0.8");
    report(
        "of the bare client's rate",
        format!("{ratio:.2}"),
        Some(met),
    );
}
