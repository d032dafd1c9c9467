//! A GET that only depends on answers to GETs is sent while the disk syncs the step that requests it; no other effect
//! is. strace records the order of the calls, and makes a sync fail.

use super::outage::{disturbed, outcome};
use super::process::Place;
use crate::store::power::strace_works;
use crate::support::serve;
use axum::Router;
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::any;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::{Arc, Mutex};

const POLLS: usize = 30;

const WORKFLOW: &str = r#"
name: early
inputs: { base: { type: string } }
variables: { seen: [] }
actions:
  wait:
    type: until
    condition: "@equals(body('check').poll, 30)"
    limit: { count: 50, timeout: PT1H }
    actions:
      check: { type: http, inputs: { method: GET, uri: "@{inputs('base')}/poll" } }
      keep: { type: appendToArrayVariable, inputs: { name: seen, value: "@body('check').poll" } }
outputs: "@variables('seen')"
"#;

/// A server that answers with the number of different keys that it received, and those keys.
async fn counts() -> (String, Arc<Mutex<Vec<String>>>) {
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let counted = keys.clone();
    let poll = move |headers: HeaderMap| async move {
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        let mut keys = counted.lock().unwrap();
        if !keys.contains(&key) {
            keys.push(key.clone());
        }
        let place = keys.iter().position(|known| *known == key).unwrap() + 1;
        Json(json!({ "poll": place }))
    };
    let look = any(|| async { "seen" });
    let router = Router::new().route("/poll", any(poll)).route("/look", look);
    let base = serve(router).await;
    (base, keys)
}

/// How many requests of a method were sent while the store had unsynced writes, and how many while it had none.
async fn requests(workflow: &str, method: &str) -> (usize, usize) {
    let (base, _) = counts().await;
    let place = Place::new();
    let (file, base) = (place.file("early.yaml", workflow), format!("base={base}"));
    let log = place.dir.path().join("log");
    let traced = "trace=write,pwrite64,writev,sendto,fdatasync";
    let run = place.command(&["run", &file, "-i", &base]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "8", "-e", traced, "-o"]);
    strace.arg(&log).arg(run.get_program()).args(run.get_args());
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (mut dirty, mut early, mut late) = (false, 0, 0);
    for call in std::fs::read_to_string(&log).unwrap().lines() {
        let of_store = call.contains("/store/") && !call.contains("/mark>");
        if call.contains(&format!("\"{method} /")) {
            *(if dirty { &mut early } else { &mut late }) += 1;
        } else if of_store {
            dirty = !call.contains("fdatasync(");
        }
    }
    (early, late)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_leaves_while_the_answer_before_it_is_synced() {
    if strace_works() {
        // The first one depends on the start of the run.
        assert_eq!(requests(WORKFLOW, "GET").await, (POLLS - 1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_a_post_leaves_when_its_answer_is_synced() {
    if !strace_works() {
        return;
    }
    let posts = WORKFLOW.replace("GET", "POST");
    assert_eq!(requests(&posts, "POST").await, (0, POLLS));
    let look = "look: { type: http, inputs: { method: GET, uri: \"@{inputs('base')}/look\" } }";
    let then_gets = posts.replace("      keep:", &format!("      {look}\n      keep:"));
    assert_eq!(requests(&then_gets, "GET").await, (0, POLLS));
}

/// A server may treat such a GET as something else. It is the same request after a kill, so it is stored first.
#[tokio::test(flavor = "multi_thread")]
async fn a_get_with_a_body_or_another_method_leaves_when_its_step_is_synced() {
    if !strace_works() {
        return;
    }
    for more in [
        "body: { id: 1 }",
        "headers: { X-HTTP-Method-Override: DELETE }",
    ] {
        let gets = WORKFLOW.replace("method: GET,", &format!("method: GET, {more},"));
        assert_eq!(requests(&gets, "GET").await, (0, POLLS), "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_a_limit_leaves_when_that_is_synced() {
    if !strace_works() {
        return;
    }
    let inner = "inner: { type: until, condition: \"@false\", on_limit: continue, \
                 limit: { count: 1 }, actions: { look: { type: http, inputs: { method: HEAD, \
                 uri: \"@{inputs('base')}/look\" } } } }";
    let limited = WORKFLOW.replace("      check:", &format!("      {inner}\n      check:"));
    assert_eq!(requests(&limited, "GET").await, (0, POLLS));
}

/// Effects that started before the sync are aborted, and started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_get_that_left_before_a_sync_that_failed_leaves_again() {
    if !strace_works() {
        return;
    }
    let (base, keys) = counts().await;
    let place = Place::new();
    let (server, _) = disturbed(&place, "fdatasync", "fdatasync:error=EIO:when=12");
    let run = server.begin(WORKFLOW, json!({ "base": base })).await;
    let outcome = outcome(&server, &run).await;
    let seen: Vec<usize> = (1..=POLLS).collect();
    assert_eq!(outcome["output"], json!(seen), "{outcome}");
    let (_, stderr) = server.stop();
    assert!(stderr.contains("the store refused"), "{stderr}");
    let keys: Vec<Value> = keys.lock().unwrap().iter().map(|key| json!(key)).collect();
    let wanted = (0..POLLS).map(|at| json!(format!("{run}/wait#{at}/check")));
    assert_eq!(keys, wanted.collect::<Vec<_>>());
}

/// Names may contain the characters of which paths are made. Two different calls never have the same key, because a
/// service that checks keys would treat them as one.
#[tokio::test(flavor = "multi_thread")]
async fn no_two_actions_have_one_key() {
    let (base, keys) = counts().await;
    let place = Place::new();
    let call = "{ type: http, inputs: { method: POST, uri: \"@{inputs('base')}/poll\" } }";
    let text = format!(
        "name: keys\ninputs: {{ base: {{ type: string }} }}\nactions:\n  poll:\n    type: doUntil\n    \
         condition: '@true'\n    actions: {{ a: {call} }}\n  'poll#0/a': {call}\n  'poll%230%2Fa': {call}\n  \
         'ü x': {call}\n"
    );
    let file = place.file("keys.yaml", &text);
    let done = place.run(&["run", &file, "--id", "r", "-i", &format!("base={base}")]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    // The keys of ordinary names are unchanged.
    let wanted = [
        "r/poll#0/a",
        "r/poll%230%2Fa",
        "r/poll%25230%252Fa",
        "r/%C3%BC%20x",
    ];
    assert_eq!(*keys.lock().unwrap(), wanted);
}
