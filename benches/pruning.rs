//! Whether the store's file stays bounded while runs are started and pruned. Run with `cargo bench --bench pruning`;
//! `WINDLASS_ROUNDS` sets the number of rounds.

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
use tempfile::TempDir;

const SHORT: &str = "
name: short
variables: { pad: '' }
actions:
  pad: { type: setVariable, name: pad, value: \"@{join(range(0, 2000), '-')}\" }
";

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(state: &Path, args: &[&str]) -> Self {
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
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url: url.unwrap(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn begin(client: &Client, url: &str, workflow: &str) {
    let body = json!({ "workflow": workflow, "input": {} }).to_string();
    let sent = client
        .post(format!("{url}/v1/runs"))
        .header("content-type", "application/json")
        .body(body)
        .send();
    let answer = sent.await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
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

async fn churn(client: &Client) {
    let rounds = amount("WINDLASS_ROUNDS", 8);
    let place = TempDir::new().unwrap();
    let state = place.path().join("state");
    let server = Server::start(&state, &[]);
    put(client, &server, "short", SHORT).await;
    for round in 1..=rounds {
        let url = &server.url;
        futures_util::stream::iter(0..250)
            .map(|_| async move { begin(client, url, "short").await })
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
        churn(&client).await;
    });
}
