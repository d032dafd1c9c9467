//! What many waiting runs cost: the memory and the disk space of a server with 10,000 runs in delays of an hour, and
//! the time until it is ready again after a SIGKILL. Also whether the store's file stays bounded while runs are started
//! and forgotten. Run with `cargo bench --bench waiting`; `WINDLASS_WAITING` and `WINDLASS_ROUNDS` set the numbers of
//! runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs
)]

use futures_util::StreamExt;
use reqwest::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NAP: &str = "
name: nap
inputs: { n: { type: integer } }
variables: { seen: [] }
actions:
  nap: { type: wait, interval: { unit: Hour, count: 1 } }
  keep: { type: appendToArrayVariable, name: seen, value: \"@inputs('n')\" }
";

const SHORT: &str = "
name: short
variables: { pad: '' }
actions:
  pad: { type: setVariable, name: pad, value: \"@{join(range(0, 2000), '-')}\" }
";

struct Server {
    child: Child,
    url: String,
    /// The time from its start until it accepted requests.
    ready: Duration,
}

impl Server {
    fn start(state: &Path, args: &[&str]) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["serve", "--listen", "127.0.0.1:0", "--state"])
            .arg(state)
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("ready at ").map(str::to_owned)
        });
        let ready = begun.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url: url.unwrap(),
            ready,
        }
    }

    /// Resident memory, in MB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    }

    async fn get(&self, client: &Client, path: &str) -> Value {
        let answer = client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn begin(client: &Client, url: &str, workflow: &str, input: Value) -> String {
    let body = json!({ "workflow": workflow, "input": input }).to_string();
    let sent = client
        .post(format!("{url}/v1/runs"))
        .header("content-type", "application/json")
        .body(body)
        .send();
    let answer = sent.await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    let reply: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    reply["run"].as_str().unwrap().to_owned()
}

async fn put(client: &Client, server: &Server, name: &str, text: &str) {
    let sent = client
        .put(format!("{}/v1/workflows/{name}", server.url))
        .header("content-type", "application/yaml")
        .body(text.to_owned())
        .send();
    assert!(sent.await.unwrap().status().is_success());
}

fn megabytes(dir: &Path) -> f64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let files = std::fs::read_dir(dir).unwrap();
    let bytes: u64 = files.map(|file| size(&file.unwrap().path())).sum();
    #[allow(clippy::cast_precision_loss)]
    let bytes = bytes as f64;
    bytes / 1_048_576.0
}

fn amount(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

async fn waiting(client: &Client) {
    let runs = amount("WINDLASS_WAITING", 10_000);
    let place = TempDir::new().unwrap();
    let state = place.path().join("state");
    let server = Server::start(&state, &[]);
    put(client, &server, "nap", NAP).await;
    // A few runs first, so that what the server creates only once exists before the measurement.
    for n in 0..50 {
        begin(client, &server.url, "nap", json!({ "n": n })).await;
    }
    let empty = server.memory();
    let begun = Instant::now();
    let url = &server.url;
    futures_util::stream::iter(50..runs)
        .map(|n| async move { begin(client, url, "nap", json!({ "n": n })).await })
        .buffer_unordered(64)
        .for_each(|_| async {})
        .await;
    let took = begun.elapsed().as_secs_f64();
    let full = server.memory();
    println!("{runs} runs started in {took:.1} s");
    println!(
        "memory: {empty:.1} MB before, {full:.1} MB with them: {:.1} MB more",
        full - empty
    );
    println!("store: {:.1} MB", megabytes(&state.join("store")));
    drop(server);

    let server = Server::start(&state, &[]);
    let sent_at = Instant::now();
    let health = server.get(client, "/readyz").await;
    println!(
        "after a SIGKILL ready in {} ms, the first answer {} ms later ({health})",
        server.ready.as_millis(),
        sent_at.elapsed().as_millis()
    );
    println!("memory after the restart: {:.1} MB", server.memory());
}

async fn churn(client: &Client) {
    let rounds = amount("WINDLASS_ROUNDS", 8);
    let place = TempDir::new().unwrap();
    let state = place.path().join("state");
    let server = Server::start(&state, &[]);
    put(client, &server, "short", SHORT).await;
    for round in 1..=rounds {
        let url = &server.url;
        futures_util::stream::iter(0..250)
            .map(|_| async move { begin(client, url, "short", json!({})).await })
            .buffer_unordered(32)
            .for_each(|_| async {})
            .await;
        let before = megabytes(&state.join("store"));
        let pruned = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["prune", "--keep", "10", "-o", "json", "--state"])
            .arg(&state)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&pruned.stdout).unwrap();
        println!(
            "round {round}: 250 runs of 20 KB, store {before:.1} MB; {} forgotten, {:.1} MB",
            report["runs"].as_array().unwrap().len(),
            megabytes(&state.join("store"))
        );
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new();
        waiting(&client).await;
        churn(&client).await;
    });
}
