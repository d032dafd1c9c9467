//! Many runs over the API with a server that is killed repeatedly. The long tests are ignored: run them with `cargo
//! test --test suite serve::soak -- --ignored --nocapture`. `WINDLASS_BIN` names another binary than that of this
//! build, such as a release.

use super::{PATIENCE, SLEEP, Server, Start, answer, with};
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Json;
use axum::routing::post;
use futures_util::StreamExt;
use futures_util::stream;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const TICKS: &str = r#"
name: ticks
inputs: { uri: { type: string }, to: { type: integer } }
variables: { n: 0 }
actions:
  tick:
    type: until
    condition: "@greaterOrEquals(variables('n'), inputs('to'))"
    limit: { count: 1000, timeout: PT1H }
    actions:
      call: { type: http, inputs: { method: POST, uri: "@inputs('uri')", body: {} } }
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
outputs: "@variables('n')"
"#;

/// How often each key was received.
#[derive(Clone)]
struct Ticks {
    keys: Arc<Mutex<HashMap<String, u32>>>,
    distinct: watch::Sender<usize>,
}

async fn tick(State(ticks): State<Ticks>, headers: HeaderMap) -> Json<Value> {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let distinct = {
        let mut keys = ticks.keys.lock().unwrap();
        *keys.entry(key).or_default() += 1;
        keys.len()
    };
    ticks.distinct.send_replace(distinct);
    Json(json!({}))
}

/// Starts a run, with as many attempts as needed: the server may be down, and may have started the run already.
async fn begin(url: watch::Receiver<String>, key: usize, body: &Value) -> String {
    let client = super::client();
    for _ in 0..5_000 {
        let address = format!("{}/v1/runs", url.borrow().clone());
        let request = client.post(address).timeout(PATIENCE);
        let request = request.header("Idempotency-Key", format!("start-{key}"));
        if let Ok(response) = with(request, body).send().await {
            let status = response.status().as_u16();
            let text = response.text().await.unwrap_or_default();
            match (status, serde_json::from_str::<Value>(&text)) {
                (200 | 201, Ok(run)) => return run["run"].as_str().unwrap().to_owned(),
                (200 | 201 | 429 | 503, _) => {}
                (status, _) => panic!("{status}: {text}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("run {key} was never started");
}

#[allow(clippy::disallowed_methods)] // The test is a crowd of clients and measures real time.
async fn soak(runs: usize, iterations: usize, kills: usize) {
    let ticks = Ticks {
        keys: Arc::default(),
        distinct: watch::channel(0).0,
    };
    let router = Router::new()
        .route("/", post(tick))
        .with_state(ticks.clone());
    let uri = serve(router).await;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path());
    let put = server.ask(Method::PUT, "/v1/workflows/ticks").body(TICKS);
    assert_eq!(answer(put).await.0, 201);
    let (urls, url) = watch::channel(server.url.clone());
    let began = Instant::now();
    let body = json!({ "workflow": "ticks", "input": { "uri": uri, "to": iterations } });
    let starting = tokio::spawn(async move {
        let all = (0..runs).map(|key| begin(url.clone(), key, &body));
        stream::iter(all)
            .buffer_unordered(16)
            .collect::<Vec<String>>()
            .await
    });

    let mut random = StdRng::seed_from_u64(20_261_121);
    let total = runs * iterations;
    let mut distinct = ticks.distinct.subscribe();
    for kill in 1..=kills {
        let share = total * kill / (kills + 1);
        let at = share.saturating_sub(random.random_range(0..=total / (kills + 1) / 2));
        let reached = tokio::time::timeout(PATIENCE * 5, distinct.wait_for(|count| *count >= at));
        reached.await.expect("the runs stand still").unwrap();
        server.kill();
        server = Server::start(dir.path());
        urls.send_replace(server.url.clone());
    }
    let started: Vec<String> = starting.await.unwrap();
    let ids: HashSet<&String> = started.iter().collect();
    assert_eq!(ids.len(), runs, "each key is a run of its own");
    for run in &started {
        let outcome = server.end(run).await;
        assert_eq!(outcome["output"], json!(iterations), "{run}: {outcome}");
    }
    // No run is lost or doubled: the store has exactly these runs.
    let mut listed = HashSet::new();
    let mut path = String::from("/v1/runs?limit=1000&status=Succeeded");
    for _ in 0..=runs / 1_000 {
        let (_, page) = server.get(&path).await;
        for run in page["runs"].as_array().unwrap() {
            assert!(listed.insert(run["run"].as_str().unwrap().to_owned()));
        }
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/runs?limit=1000&status=Succeeded&after={next}"),
            None => break,
        }
    }
    assert_eq!(listed.len(), runs);
    assert!(started.iter().all(|run| listed.contains(run)));
    let (_, others) = server
        .get("/v1/runs?status=Running,Waiting,Paused,Failed,TimedOut,Cancelled")
        .await;
    assert_eq!(others["runs"], json!([]));
    // Every iteration was executed under its own key, and only those interrupted by a kill were repeated.
    let keys = ticks.keys.lock().unwrap().clone();
    assert_eq!(keys.len(), total);
    let repeated: u32 = keys.values().map(|count| count - 1).sum();
    let most = keys.values().max().copied().unwrap();
    assert!(
        most as usize <= kills + 1,
        "a step was carried out {most} times"
    );
    eprintln!(
        "{runs} runs, {iterations} iterations, {kills} kills: {:.1} s, {repeated} of {total} steps repeated",
        began.elapsed().as_secs_f64()
    );
    assert!(server.stop().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_runs_survive_five_kills() {
    soak(100, 20, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_thousand_runs_survive_twenty_kills() {
    soak(1_000, 20, 20).await;
}

/// The memory of sleeping runs in the process that started them and in the next one, in addition to that of an empty
/// server, in KiB.
#[allow(clippy::disallowed_methods)] // The test measures real time.
async fn sleepers() -> (u64, u64) {
    const SLEEPERS: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let empty = {
        let other = tempfile::tempdir().unwrap();
        let server = Start::new(other.path()).spawn();
        server.get("/readyz").await;
        server.resident_kib()
    };
    let server = Start::new(dir.path()).spawn();
    let put = server.ask(Method::PUT, "/v1/workflows/sleep").body(SLEEP);
    assert_eq!(answer(put).await.0, 201);
    let (_urls, url) = watch::channel(server.url.clone());
    let body = json!({ "workflow": "sleep" });
    let began = Instant::now();
    let all = (0..SLEEPERS).map(|key| begin(url.clone(), key, &body));
    let all = stream::iter(all).buffer_unordered(64).collect::<Vec<_>>();
    assert_eq!(all.await.len(), SLEEPERS);
    let took = began.elapsed().as_secs_f64();
    let grown = server.resident_kib();
    server.kill();
    let began = Instant::now();
    let server = Start::new(dir.path()).spawn();
    let ready = began.elapsed();
    assert_eq!(server.get("/readyz").await.0, 200);
    let again = server.resident_kib();
    let began = Instant::now();
    let (_, page) = server.get("/v1/runs?status=Waiting&limit=1").await;
    let listed = began.elapsed();
    assert_eq!(page["more"], json!(SLEEPERS - 1));
    eprintln!(
        "{SLEEPERS} sleepers started in {took:.1} s: {grown} KiB then, {again} KiB after a \
         restart, {empty} KiB empty; ready after {ready:?}, listed in {listed:?}"
    );
    assert!(ready < Duration::from_secs(1), "ready after {ready:?}");
    (grown.saturating_sub(empty), again.saturating_sub(empty))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures: only a release build is meant"]
async fn ten_thousand_sleepers_cost_little() {
    const TARGET: u64 = 20 * 1_024;
    let (grown, again) = sleepers().await;
    assert!(again < TARGET && grown < TARGET, "{grown} KiB, {again} KiB");
}
