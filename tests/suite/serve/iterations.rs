//! The iterations of loops over HTTP: strips, pages, single iterations, differences, and items of a foreach.

use super::{PATIENCE, Server, Start};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// How many iterations the loop has.
const MANY: u64 = 4_000;

/// A loop that sends a request in each iteration; a failed request does not end it.
const POLL: &str = r#"{
  "actions": {
    "Init": { "type": "InitializeVariable", "inputs": { "variables": [ { "name": "n", "type": "integer", "value": -1 } ] } },
    "Poll": {
      "type": "Until",
      "expression": "@equals(variables('n'), sub(triggerBody()['to'], 1))",
      "limit": { "count": 5000, "timeout": "PT1H" },
      "actions": {
        "Count": { "type": "IncrementVariable", "inputs": { "name": "n", "value": 1 } },
        "Ask": {
          "type": "Http",
          "inputs": { "method": "GET", "uri": "@{triggerBody()['base']}/ask?n=@{variables('n')}",
            "retryPolicy": { "type": "fixed", "count": 3, "interval": "PT0.01S" } },
          "runAfter": { "Count": [ "Succeeded" ] }
        }
      },
      "runAfter": { "Init": [ "Succeeded" ] }
    }
  },
  "triggers": { "manual": { "type": "Request", "kind": "Http" } },
  "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
  "contentVersion": "1.0.0.0"
}"#;

/// Three items at a time; the second item is requested twice.
const ITEMS: &str = r#"
name: items
inputs: { base: { type: string } }
actions:
  each:
    type: foreach
    foreach: [7, 407, 9]
    concurrency: 3
    actions:
      charge:
        type: http
        uri: "@{inputs('base')}/ask?n=@{item()}"
        retry: { type: fixed, count: 3, interval: PT0.01S }
"#;

type RequestCounts = Arc<Mutex<HashMap<u64, u32>>>;

fn is_retried(n: u64) -> bool {
    n % 400 == 7
}

fn fails(n: u64) -> bool {
    n % 100 == 50
}

async fn answer(State(requests): State<RequestCounts>, uri: Uri) -> (StatusCode, Json<Value>) {
    let n: u64 = uri
        .query()
        .unwrap()
        .strip_prefix("n=")
        .unwrap()
        .parse()
        .unwrap();
    let times = {
        let mut requests = requests.lock().unwrap();
        let times = requests.entry(n).or_default();
        *times += 1;
        *times
    };
    if fails(n) {
        return (
            StatusCode::BAD_REQUEST,
            Json(json!({ "error": "no such order" })),
        );
    }
    if is_retried(n) && times < 3 {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "error": "later" })),
        );
    }
    (StatusCode::OK, Json(json!({ "n": n, "state": n / 1_000 })))
}

/// Starts a server for the requests; returns its address.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn outside() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .fallback(answer)
        .with_state(RequestCounts::default());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

fn serve(state: &Path) -> Server {
    Start::new(state).spawn_with(|command| {
        command.env("NO_PROXY", "127.0.0.1");
    })
}

async fn get(server: &Server, path: &str) -> Value {
    let (status, value) = server.get(path).await;
    assert_eq!(status, 200, "{path}: {value}");
    value
}

fn numbers(report: &Value) -> Vec<u64> {
    let rows = report["iterations"].as_array().unwrap().iter();
    rows.map(|row| row["iteration"].as_u64().unwrap()).collect()
}

/// The strip at several zooms; the counts of each add up.
async fn strips(server: &Server, run: &str, path: &str) -> Value {
    const COUNTS: [&str; 6] = [
        "succeeded",
        "failed",
        "timed_out",
        "cancelled",
        "skipped",
        "retried",
    ];
    let mut first = None;
    for query in [
        "",
        "&buckets=1",
        "&buckets=7",
        "&buckets=10000",
        "&from=17&to=1000&buckets=13",
    ] {
        let strip = get(server, &format!("/v1/runs/{run}/strip?loop={path}{query}")).await;
        let cells = strip["cells"].as_array().unwrap();
        for count in COUNTS {
            let sum: u64 = cells.iter().map(|cell| cell[count].as_u64().unwrap()).sum();
            assert_eq!(sum, strip["totals"][count], "{query} {count}");
        }
        let totals = COUNTS[..5]
            .iter()
            .map(|count| strip["totals"][count].as_u64().unwrap());
        let (from, to) = (
            strip["from"].as_u64().unwrap(),
            strip["to"].as_u64().unwrap(),
        );
        assert_eq!(
            totals.sum::<u64>() + strip["forgotten"].as_u64().unwrap(),
            to - from
        );
        if from < to {
            assert_eq!(cells[0]["from"], from);
            assert_eq!(cells[cells.len() - 1]["to"], to);
        }
        assert!(cells.windows(2).all(|two| two[0]["to"] == two[1]["from"]));
        if query.is_empty() {
            first = Some(strip);
        } else if query == "&buckets=10000" {
            assert_eq!(strip["exact"], true);
            assert_eq!(cells.len() as u64, to - from);
        }
    }
    first.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_iteration_vanishes() {
    let base = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let body = json!({ "text": POLL, "file": "poll.json", "dialect": "azure", "run": "r",
        "input": { "base": base, "to": MANY } });
    assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    let mut ended = false;
    for _ in 0..PATIENCE.as_secs() {
        let (status, _) = server.get("/v1/runs/r/result?wait=10").await;
        strips(&server, "r", "Poll").await;
        if status == 200 {
            ended = true;
            break;
        }
    }
    assert!(ended);

    let strip = strips(&server, "r", "Poll").await;
    let failed: Vec<u64> = (0..MANY).filter(|n| fails(*n)).collect();
    let retried = (0..MANY).filter(|n| is_retried(*n)).count() as u64;
    assert_eq!(strip["iterations"], MANY);
    assert_eq!(strip["forgotten"], 0);
    assert_eq!(strip["failed"], json!(failed));
    assert_eq!(strip["totals"]["failed"], failed.len() as u64);
    assert_eq!(strip["totals"]["retried"], retried);
    assert_eq!(
        strip["messages"][0]["count"],
        failed.len() as u64,
        "{strip}"
    );
    assert_eq!(strip["messages"].as_array().unwrap().len(), 1);
    assert_eq!(strip["type"], "until");
    assert_eq!(strip["running"], false);
    assert_eq!(strip["exact"], false);

    pages(&server).await;
    whole(&server).await;

    let loops = get(&server, "/v1/runs/r/loops").await;
    assert_eq!(loops["loops"][0]["path"], "Poll");
    assert_eq!(loops["loops"][0]["status"], "condition");
    assert_eq!(loops["loops"][0]["iterations"], MANY);

    server.kill();
    let server = serve(dir.path());
    assert_eq!(strips(&server, "r", "Poll").await, strip);
    refused(&server).await;
}

async fn pages(server: &Server) {
    let failed = "/v1/runs/r/iterations?loop=Poll&status=Failed&from=3000";
    let page = get(server, failed).await;
    assert_eq!(
        numbers(&page),
        [3050, 3150, 3250, 3350, 3450, 3550, 3650, 3750, 3850, 3950]
    );
    assert!(page["iterations"][0]["duration_ms"].is_u64());
    assert!(
        page["iterations"][0]["error"]
            .as_str()
            .unwrap()
            .contains("400"),
        "{page}"
    );
    assert!(page["next"].is_null());
    // All pages in both directions contain each iteration once.
    for order in ["asc", "desc"] {
        let mut seen = Vec::new();
        let mut place = String::new();
        loop {
            let path = format!("{failed}&limit=3&order={order}{place}");
            let path = match order {
                "asc" if !place.is_empty() => path.replace("&from=3000", ""),
                _ => path,
            };
            let page = get(server, &path).await;
            seen.extend(numbers(&page));
            let Some(next) = page["next"].as_u64() else {
                break;
            };
            place = format!("&{}={next}", if order == "asc" { "from" } else { "to" });
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen.len(), 10, "{seen:?}");
        assert!(seen.is_sorted());
    }
    let changed = "/v1/runs/r/iterations?loop=Poll&changed=/Ask/body/state&from=2960&limit=1";
    assert_eq!(
        numbers(&get(server, &format!("{changed}&status=Succeeded")).await),
        [3000]
    );
    let text = "/v1/runs/r/iterations?loop=Poll&text=%22N%22:3333&from=3000";
    assert_eq!(numbers(&get(server, text).await), [3333]);
    let retried = get(server, "/v1/runs/r/iterations?loop=Poll&from=3607&to=3608").await;
    let retried = &retried["iterations"][0];
    assert_eq!(retried["attempts"], 3, "{retried}");
    assert_eq!(retried["status"], "Succeeded");
}

async fn whole(server: &Server) {
    let last = MANY - 1;
    let one = get(server, &format!("/v1/runs/r/iteration?path=Poll%23{last}")).await;
    assert_eq!(one["stored"], "whole", "{one}");
    assert_eq!(one["variables"]["n"], last);
    assert_eq!(one["result"]["Ask"]["body"]["n"], last);
    let retried = get(server, "/v1/runs/r/iteration?path=Poll%233607").await;
    let [count, ask] = [0, 1].map(|at| &retried["actions"][at]);
    assert_eq!(count["path"], "Poll#3607/Count", "{retried}");
    assert_eq!(ask["path"], "Poll#3607/Ask", "{retried}");
    let numbers: Vec<u64> = ask["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(
        ask["attempts"][0]["error"]
            .as_str()
            .unwrap()
            .contains("503"),
        "{ask}"
    );
    assert_eq!(ask["status"], "Succeeded");
    let waits = retried["waits"].as_array().unwrap().iter();
    assert_eq!(
        waits.filter(|wait| wait["kind"] == "retry").count(),
        2,
        "{retried}"
    );
    let pointer = "/v1/runs/r/iteration?path=Poll%233607&pointer=/result/Ask/body/n";
    assert_eq!(get(server, pointer).await, 3607);

    // Snapshots were made meanwhile; the variables are those of that iteration.
    for n in [MANY - 700, MANY - 20] {
        let one = get(server, &format!("/v1/runs/r/iteration?path=Poll%23{n}")).await;
        assert_eq!(
            (&one["stored"], &one["variables"]["n"]),
            (&json!("whole"), &json!(n)),
            "{one}"
        );
    }
    outermost(server).await;

    let (from, to) = (MANY - 3, MANY - 2);
    let path = format!("/v1/runs/r/difference?from=Poll%23{from}&to=Poll%23{to}");
    let difference = get(server, &path).await;
    let changed: BTreeSet<&str> = difference["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    let expected = [
        "inputs.Ask.uri",
        "result.Ask.body.n",
        "result.Count",
        "variables.n",
    ];
    assert_eq!(changed, BTreeSet::from(expected), "{difference}");
    assert!(difference["unchanged"].as_u64().unwrap() > 3);
}

/// What the run did outside its loop.
async fn outermost(server: &Server) {
    let one = get(server, "/v1/runs/r/iteration").await;
    assert_eq!(
        (&one["path"], &one["status"]),
        (&json!(""), &json!("Succeeded"))
    );
    assert_eq!(one["variables"]["n"], MANY - 1);
    let actions = one["actions"].as_array().unwrap().iter();
    let names: Vec<&str> = actions.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["Init", "Poll"], "{one}");
    assert_eq!(one["actions"][1]["outputs"]["iterations"], MANY);
    let pointer = "/v1/runs/r/iteration?pointer=/actions/1/outputs/reason";
    assert_eq!(get(server, pointer).await, "condition");
}

async fn refused(server: &Server) {
    for (path, status) in [
        ("/v1/runs/r/strip?loop=Nope", 400),
        ("/v1/runs/none/strip?loop=Poll", 404),
        ("/v1/runs/r/iteration?path=Poll%239999", 404),
        ("/v1/runs/r/iteration?path=Poll", 404),
        ("/v1/runs/r/iteration?pointer=/result/nope", 404),
        (
            "/v1/runs/r/iteration?path=Poll%233999&pointer=/result/nope",
            404,
        ),
        ("/v1/runs/r/iterations?loop=Poll&status=Nope", 400),
        ("/v1/runs/r/iterations?loop=Poll&order=up", 400),
    ] {
        assert_eq!(server.get(path).await.0, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_run_concurrently_are_distinguished() {
    let base = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let run = server.begin(ITEMS, json!({ "base": base })).await;
    assert_eq!(server.end(&run).await["status"], "Succeeded");
    let strip = strips(&server, &run, "each").await;
    assert_eq!(strip["type"], "foreach");
    assert_eq!(strip["totals"]["succeeded"], 3);
    assert_eq!(strip["totals"]["retried"], 2);
    for (item, n, attempts) in [(0, 7, 3), (1, 407, 3), (2, 9, 1)] {
        let path = format!("/v1/runs/{run}/iteration?path=each%23{item}");
        let one = get(&server, &path).await;
        assert_eq!(one["attempts"], attempts, "{one}");
        let charges = one["actions"].as_array().unwrap();
        assert_eq!(charges.len(), 1, "{one}");
        let charge = &charges[0];
        assert_eq!(charge["path"], format!("each#{item}/charge"));
        assert_eq!(charge["item"], item);
        assert_eq!(charge["attempts"].as_array().unwrap().len(), attempts);
        assert_eq!(charge["outputs"]["body"]["n"], n);
        assert_eq!(charge["key"], format!("{run}/each#{item}/charge"));
    }
    let loops = get(&server, &format!("/v1/runs/{run}/loops")).await;
    assert_eq!(loops["loops"][0]["path"], "each");
    assert_eq!(loops["loops"][0]["iterations"], 3);
}
