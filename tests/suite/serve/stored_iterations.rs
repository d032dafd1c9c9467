//! The stored iterations of a cancelled run, of very many failures, and of a damaged store.

use super::{PATIENCE, Server, windlass};
use crate::store::damage::database;
use serde_json::{Value, json};
use std::time::Duration;

/// Never ends on its own. Each iteration fails if the input requests it.
const ENDLESS: &str = r#"{
  "actions": {
    "Init": { "type": "InitializeVariable", "inputs": { "variables": [ { "name": "n", "type": "integer", "value": 0 } ] } },
    "grow": {
      "type": "Until",
      "expression": "@greater(variables('n'), 100000)",
      "limit": { "count": 5000, "timeout": "PT1H" },
      "actions": {
        "more": { "type": "IncrementVariable", "inputs": { "name": "n", "value": 1 } },
        "a": { "type": "Compose", "inputs": "@div(10, triggerBody()['divisor'])", "runAfter": { "more": [ "Succeeded" ] } },
        "b": { "type": "Compose", "inputs": "@div(20, triggerBody()['divisor'])", "runAfter": { "more": [ "Succeeded" ] } },
        "c": { "type": "Compose", "inputs": "@div(30, triggerBody()['divisor'])", "runAfter": { "more": [ "Succeeded" ] } },
        "d": { "type": "Compose", "inputs": "@div(40, triggerBody()['divisor'])", "runAfter": { "more": [ "Succeeded" ] } }
      },
      "runAfter": { "Init": [ "Succeeded" ] }
    }
  },
  "triggers": { "manual": { "type": "Request", "kind": "Http" } },
  "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
  "contentVersion": "1.0.0.0"
}"#;

async fn begin(server: &Server, divisor: u32) -> String {
    let body = json!({ "text": ENDLESS, "file": "endless.json", "dialect": "azure",
        "input": { "divisor": divisor } });
    let (status, run) = server.post("/v1/runs", &body).await;
    assert_eq!(status, 201, "{run}");
    run["run"].as_str().unwrap().to_owned()
}

async fn get(server: &Server, path: &str) -> Value {
    let (status, value) = server.get(path).await;
    assert_eq!(status, 200, "{path}: {value}");
    value
}

/// Waits until `iterations` iterations have ended.
async fn until(server: &Server, run: &str, iterations: u64) {
    for _ in 0..PATIENCE.as_millis() / 50 {
        let strip = get(server, &format!("/v1/runs/{run}/strip?loop=grow&buckets=1")).await;
        if strip["iterations"].as_u64().unwrap() >= iterations {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("run {run} is slow");
}

/// All iterations, page by page.
async fn pages(server: &Server, run: &str, more: &str) -> Vec<Value> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let path = format!("/v1/runs/{run}/iterations?loop=grow&limit=1000&from={from}{more}");
        let page = get(server, &path).await;
        all.extend(page["iterations"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_cancelled_run_every_iteration_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = begin(&server, 2).await;
    until(&server, &run, 1_500).await;
    server
        .post(&format!("/v1/runs/{run}/cancel"), &json!(null))
        .await;
    assert_eq!(server.end(&run).await["status"], "Cancelled");
    let strip = get(
        &server,
        &format!("/v1/runs/{run}/strip?loop=grow&buckets=10000"),
    )
    .await;
    let count = strip["iterations"].as_u64().unwrap();
    assert!(count >= 1_500 && strip["forgotten"] == 0, "{count}");
    let rows = pages(&server, &run, "").await;
    let numbers: Vec<u64> = rows
        .iter()
        .map(|row| row["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, Vec::from_iter(0..count));
    for n in [0, 1, 99, 100, count / 2, count - 2, count - 1] {
        let one = get(
            &server,
            &format!("/v1/runs/{run}/iteration?path=grow%23{n}"),
        )
        .await;
        assert_eq!(one["iteration"], n);
        assert!(one["ended_at"].is_string(), "{one}");
        if one["stored"] == "whole" {
            assert_eq!(one["variables"]["n"], n + 1, "{one}");
        }
    }
    let one = get(&server, &format!("/v1/runs/{run}/iteration")).await;
    assert_eq!(one["status"], "Cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_very_many_failures_all_are_counted_and_most_are_short() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = begin(&server, 0).await;
    server.end(&run).await;
    let strip = get(&server, &format!("/v1/runs/{run}/strip?loop=grow")).await;
    let count = strip["iterations"].as_u64().unwrap();
    assert_eq!(
        (count, &strip["totals"]["failed"]),
        (5_000, &json!(5_000)),
        "{strip}"
    );
    assert_eq!(strip["failed"].as_array().unwrap().len(), 1_000);
    assert_eq!(strip["failed_more"], true);
    let rows = pages(&server, &run, "&status=Failed").await;
    assert_eq!(rows.len(), 5_000);
    for row in &rows {
        assert!(row["error"].as_str().unwrap().contains("zero"), "{row}");
    }
    let storage = |at: usize| rows[at]["stored"].as_str().unwrap();
    assert_eq!((storage(0), storage(600)), ("row", "row"));
    let short = rows.iter().filter(|row| row["stored"] == "summary").count();
    assert!((1..3_000).contains(&short), "{short}");
    assert_eq!(rows.last().unwrap()["stored"], "whole");
    // What is not stored is not compared, and reported.
    let at = rows.iter().position(|row| row["stored"] == "summary");
    let path = format!(
        "/v1/runs/{run}/difference?from=grow%230&to=grow%23{}",
        at.unwrap()
    );
    let (status, problem) = server.get(&path).await;
    assert_eq!(status, 404, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("are not stored"), "{detail}");
    let skipped = async |filter: &str| {
        let path = format!("/v1/runs/{run}/iterations?loop=grow&limit=1000{filter}");
        get(&server, &path).await["not_stored"].clone()
    };
    assert!(skipped("&changed=/nothing").await.as_u64().unwrap() >= short as u64);
    assert_eq!(skipped("&text=nowhere").await, short);
    assert_eq!(skipped("").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_iterations_count_as_pruned_and_the_rest_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = begin(&server, 0).await;
    server.end(&run).await;
    server.stop();
    let db = database(dir.path());
    let mut damaged = 0;
    for row in db.iter() {
        let (key, value) = row.unwrap();
        if key[0] == b'i' {
            let mut value = value.to_vec();
            let middle = value.len() / 2;
            value[middle] ^= 4;
            db.insert(key, value).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 2, "{damaged}");
    db.flush().unwrap();
    drop(db);
    let server = Server::start(dir.path());
    let strip = get(&server, &format!("/v1/runs/{run}/strip?loop=grow")).await;
    let failed = strip["totals"]["failed"].as_u64().unwrap();
    let forgotten = strip["forgotten"].as_u64().unwrap();
    assert!(
        failed >= 1_000 && forgotten > 1_000,
        "{failed}, {forgotten}"
    );
    assert_eq!(failed + forgotten, 5_000);
    assert_eq!(pages(&server, &run, "").await.len() as u64, failed);
    get(&server, &format!("/v1/runs/{run}/loops")).await;
    get(
        &server,
        &format!("/v1/runs/{run}/iteration?path=grow%234999"),
    )
    .await;
    let (status, problem) = server
        .get(&format!("/v1/runs/{run}/iteration?path=grow%230"))
        .await;
    assert_eq!(status, 404, "{problem}");
    server.stop();
    let checked = windlass(dir.path(), &["doctor"]);
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    assert!(
        printed.contains("iterations") && printed.contains(&run),
        "{printed}"
    );
}
