//! Schedules: runs start by themselves, each time once, also when the server dies; and a schedule
//! means nothing to `run`.

use super::process::Place;
use crate::serve::{Server, answer, client};
use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

const EVERY_SECOND: &str = "
name: tick
schedule: { cron: '* * * * * *', overlap: allow }
actions: { a: { type: compose, inputs: 1 } }
";

async fn put(server: &Server, name: &str, text: &str) {
    let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
    let request = request.header("content-type", "application/yaml");
    let (status, told) = answer(request.body(text.to_owned())).await;
    assert!(status < 300, "{told}");
}

async fn runs(server: &Server) -> Vec<Value> {
    let (status, listed) = server.get("/v1/runs?limit=500").await;
    assert_eq!(status, 200, "{listed}");
    listed["runs"].as_array().unwrap().clone()
}

/// Waits until there are so many runs.
async fn at_least(server: &Server, count: usize) -> Vec<Value> {
    for _ in 0..600 {
        let found = runs(server).await;
        if found.len() >= count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no {count} runs: {:?}", runs(server).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_starts_each_time_once_and_survives_kills() {
    let place = Place::new();
    let server = Server::start(&place.state());
    put(&server, "tick", EVERY_SECOND).await;
    at_least(&server, 2).await;
    server.kill();
    let server = Server::start(&place.state());
    let before = runs(&server).await.len();
    let found = at_least(&server, before + 2).await;
    let times: Vec<&str> = found
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    let distinct: BTreeSet<&&str> = times.iter().collect();
    assert_eq!(distinct.len(), times.len(), "{times:?}");
    for run in &found {
        assert_eq!(run["labels"]["windlass.schedule"], "tick", "{run}");
    }
    // Removed, it starts nothing more.
    let gone = client().delete(format!("{}/v1/workflows/tick", server.url));
    assert!(gone.send().await.unwrap().status().is_success());
    let (status, _) = server.get("/v1/workflows/tick").await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_still_runs_is_not_joined_by_another() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let waits = "
name: long
schedule: '* * * * * *'
actions: { a: { type: waitForSignal, signal: go } }
";
    put(&server, "long", waits).await;
    put(&server, "tick", EVERY_SECOND).await;
    // While the clock of the one goes on, the other has one run.
    let found = at_least(&server, 4).await;
    let of = |name: &str| {
        let those = found.iter().filter(|run| run["workflow"] == name);
        those.count()
    };
    assert_eq!(of("long"), 1, "{found:?}");
    assert!(of("tick") >= 3, "{found:?}");
}

#[test]
fn run_pays_no_attention_to_a_schedule() {
    let place = Place::new();
    let file = place.file(
        "yearly.yaml",
        "schedule: { cron: '0 0 1 1 *', timezone: Europe/Berlin, missed: run_once }\n\
         actions: { a: { type: compose, inputs: 5 } }\noutputs: \"@outputs('a')\"",
    );
    let output = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(output.stdout, b"5\n", "{output:?}");
}
