//! Branches of TEA that a `fan_in` joins, from outside: they meet at a server that answers only after all have arrived,
//! and a killed engine repeats nothing of them that had ended.

use crate::support::serve;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Barrier, watch};

/// A test that takes longer hangs.
const LONG: Duration = Duration::from_secs(60);

pub(super) fn windlass(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(super) async fn output(child: Child) -> Output {
    let waited = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    tokio::time::timeout(LONG, waited).await.unwrap().unwrap()
}

pub(super) fn folder(workflow: &str) -> (tempfile::TempDir, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workflow.yaml");
    std::fs::write(&file, workflow).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    (dir, file, state)
}

/// Three branches that meet: two Python scripts and a call.
const MEET: &str = r#"
name: meet
nodes:
  - {name: start}
  - name: one
    run: |
      from urllib.request import urlopen
      return {"met": urlopen(state["base"] + "/one").read().decode()}
  - name: two
    run: |
      from urllib.request import urlopen
      return {"met": urlopen(state["base"] + "/two").read().decode()}
  - {name: three, uses: http.get, with: {url: "{{ state.base }}/[3]"}, output: met}
  - {name: join, fan_in: true, run: "return {'met': [one['met'] for one in parallel_results]}"}
edges:
  - {from: start, to: one}
  - {from: start, to: two}
  - {from: start, to: three}
  - {from: one, to: join}
  - {from: two, to: join}
  - {from: three, to: join}
  - {from: join, to: __end__}
"#;

async fn meet(State(barrier): State<Arc<Barrier>>, Path(who): Path<String>) -> String {
    barrier.wait().await;
    who
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_run_at_the_same_time() {
    let router = Router::new()
        .route("/{who}", get(meet))
        .with_state(Arc::new(Barrier::new(3)));
    let base = serve(router).await;
    let (_dir, file, state) = folder(MEET);
    let input = format!("base={base}");
    let run = windlass(&["run", &file, "-i", &input, "--state", &state, "-o", "json"]);
    let output = output(run).await;
    assert!(output.status.success(), "{output:?}");
    let end: Json = serde_json::from_slice(&output.stdout).unwrap();
    // JSON with the content type of text is JSON.
    assert_eq!(end["met"], json!(["one", "two", [3]]));
}

/// Each branch has a step that ends before the kill and one that is in flight then.
const KILLED: &str = r#"
name: killed
initial_state: {n: 1}
nodes:
  - {name: start}
  - {name: l1, uses: http.get, with: {url: "{{ state.base }}/l1"}, output: answer}
  - {name: l2, run: "state['n'] += 10"}
  - {name: l3, uses: http.get, with: {url: "{{ state.base }}/l3?n={{ state.n }}"}, output: last}
  - {name: r1, uses: http.get, with: {url: "{{ state.base }}/r1"}, output: answer}
  - {name: r2, language: lua, run: "return {n = state.n + 100}"}
  - {name: r3, uses: http.get, with: {url: "{{ state.base }}/r3?n={{ state.n }}"}, output: last}
  - name: join
    fan_in: true
    run: "return {'seen': [[one['n'], one['answer'], one['last']] for one in parallel_results]}"
edges:
  - {from: start, to: l1}
  - {from: start, to: r1}
  - {from: l1, to: l2}
  - {from: l2, to: l3}
  - {from: l3, to: join}
  - {from: r1, to: r2}
  - {from: r2, to: r3}
  - {from: r3, to: join}
  - {from: join, to: __end__}
"#;

/// Answers the first steps immediately, and the last ones when the gate is open. Counts all of them.
#[derive(Clone)]
struct Gate {
    requests: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    count: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

async fn ask(State(gate): State<Gate>, Path(who): Path<String>, uri: axum::http::Uri) -> String {
    let query = uri.query().unwrap_or_default().to_owned();
    let count = |requests: &mut BTreeMap<String, Vec<String>>| {
        requests.entry(who.clone()).or_default().push(query);
    };
    count(&mut gate.requests.lock().unwrap());
    gate.count.send_modify(|count| *count += 1);
    if who.ends_with('3') {
        let mut open = gate.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
    }
    who
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_resumes_in_every_branch() {
    let gate = Gate {
        requests: Arc::default(),
        count: watch::channel(0).0,
        open: watch::channel(false).0,
    };
    let router = Router::new()
        .route("/{who}", get(ask))
        .with_state(gate.clone());
    let base = serve(router).await;
    let (_dir, file, state) = folder(KILLED);
    let input = format!("base={base}");
    let mut run = windlass(&[
        "run", &file, "--id", "k", "-i", &input, "--state", &state, "-o", "json",
    ]);
    // Both branches have reached their last steps.
    let mut count = gate.count.subscribe();
    let there = tokio::time::timeout(LONG, count.wait_for(|count| *count == 4));
    there.await.unwrap().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();

    gate.open.send_replace(true);
    let resumed = windlass(&["resume", "k", "--state", &state, "-o", "json"]);
    let output = output(resumed).await;
    assert!(output.status.success(), "{output:?}");
    let end: Json = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "n": 1, "base": base, "parallel_results": [
            { "n": 11, "base": base, "answer": "l1", "last": "l3" },
            { "n": 101, "base": base, "answer": "r1", "last": "r3" },
        ], "seen": [[11, "l1", "l3"], [101, "r1", "r3"]],
    });
    assert_eq!(end, expected);

    // Ended steps were not repeated. Steps in flight were, with the state of their branch.
    let received = gate.requests.lock().unwrap().clone();
    let received: Vec<(&str, Vec<&str>)> = received
        .iter()
        .map(|(who, with)| (&**who, with.iter().map(String::as_str).collect()))
        .collect();
    let expected = [
        ("l1", vec![""]),
        ("l3", vec!["n=11", "n=11"]),
        ("r1", vec![""]),
        ("r3", vec!["n=101", "n=101"]),
    ];
    assert_eq!(received, expected);
}
