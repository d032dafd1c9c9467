//! Lists of runs with the current action of each: pages by number, rows by id, and what changed meanwhile.

use super::{COUNT, SLEEP, Server};
use serde_json::{Value, json};
use std::time::Duration;

/// A loop whose third iteration fails, and the run with it.
const FAILS: &str = r#"
name: fails
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: "@greaterOrEquals(variables('n'), 5)"
    limit: { count: 10, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      check:
        type: if
        condition: "@equals(variables('n'), 3)"
        actions:
          stop: { type: terminate, inputs: { runStatus: Failed, runError: { code: no-good, message: three is no good } } }
"#;

async fn row(server: &Server, run: &str) -> Value {
    let (status, list) = server
        .get(&format!("/v1/runs?detail=true&runs={run}"))
        .await;
    assert_eq!(status, 200, "{list}");
    assert_eq!(list["total"], 1, "{list}");
    list["runs"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_says_what_a_run_is_at() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let counted = server.begin(COUNT, json!(null)).await;
    let failed = server.begin(FAILS, json!(null)).await;
    let asleep = server.begin(SLEEP, json!(null)).await;
    server.end(&counted).await;
    server.end(&failed).await;
    let of = row(&server, &counted).await;
    assert_eq!(of["run"], counted);
    assert_eq!(of["status"], "Succeeded");
    assert_eq!(
        of["loop"],
        json!({
            "path": "grow", "name": "grow", "iteration": 20, "iterations_completed": 20,
            "max_iterations": 1000, "recent": "s".repeat(20),
        })
    );
    assert!(
        of.get("waits_for").is_none() && of.get("error").is_none(),
        "{of}"
    );
    let of = row(&server, &failed).await;
    assert_eq!(of["error"]["message"], "three is no good", "{of}");
    assert_eq!(of["error"]["code"], "no-good");
    assert_eq!(of["loop"]["path"], "poll");
    assert_eq!(of["loop"]["max_iterations"], 10);
    let of = row(&server, &asleep).await;
    assert_eq!(of["waits_for"]["waits_for"], "sleep", "{of}");
    assert_eq!(of["waits_for"]["action"], "nap");
    assert!(of["next_due_at"].is_string());
    server
        .post(&format!("/v1/runs/{asleep}/pause"), &json!(null))
        .await;
    let of = row(&server, &asleep).await;
    assert_eq!(of["status"], "Paused");
    assert_eq!(of["pause"]["reason"], "requested", "{of}");
    // Without detail the list is unchanged.
    let (_, list) = server
        .get(&format!("/v1/runs?runs={failed},{asleep},nobody"))
        .await;
    assert_eq!(list["total"], 2);
    assert!(list["runs"][0].get("loop").is_none(), "{list}");
    let many = vec!["x"; 201].join(",");
    assert_eq!(server.get(&format!("/v1/runs?runs={many}")).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_page_is_found_by_its_number_and_follows_what_happens() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let page = async |server: &Server, query: &str| {
        let (status, list) = server.get(&format!("/v1/runs?limit=3&{query}")).await;
        assert_eq!(status, 200, "{list}");
        let runs = list["runs"].as_array().unwrap().iter();
        let runs: Vec<String> = runs
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect();
        (runs, list)
    };
    let mut newest = Vec::new();
    for _ in 0..8 {
        newest.insert(0, server.begin(SLEEP, json!(null)).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
        let (runs, list) = page(&server, "").await;
        assert_eq!(runs, newest[..newest.len().min(3)]);
        assert_eq!(list["total"], newest.len());
    }
    let (runs, list) = page(&server, "offset=4").await;
    assert_eq!(runs, newest[4..7]);
    assert_eq!((&list["total"], &list["more"]), (&json!(8), &json!(1)));
    let (runs, list) = page(&server, "offset=7").await;
    assert_eq!((runs.as_slice(), &list["more"]), (&newest[7..], &json!(0)));
    assert_eq!(page(&server, "offset=8").await.0, [""; 0]);
    // Changes are found immediately, including those that an earlier process wrote.
    let cancelled = format!("/v1/runs/{}/cancel", newest[2]);
    assert_eq!(server.post(&cancelled, &json!(null)).await.0, 200);
    let (runs, list) = page(&server, "status=Cancelled").await;
    assert_eq!(
        (runs.as_slice(), &list["total"]),
        (&newest[2..3], &json!(1))
    );
    server.kill();
    let server = Server::start(dir.path());
    let (runs, _) = page(&server, "status=Cancelled").await;
    assert_eq!(runs, newest[2..3]);
    let (_, pruned) = server.post("/v1/prune", &json!({ "keep": 0 })).await;
    assert_eq!(pruned["runs"], json!([newest[2]]));
    let (runs, list) = page(&server, "offset=1").await;
    assert_eq!(list["total"], 7);
    assert_eq!(runs, [&newest[1], &newest[3], &newest[4]].map(Clone::clone));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_is_done_to_many_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(server.begin(SLEEP, json!(null)).await);
    }
    let ended = server.begin(COUNT, json!({ "to": 1 })).await;
    server.end(&ended).await;
    let bulk = async |verb: &str, more: &[&str]| {
        let named: Vec<&str> = runs
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        let body = json!({ "do": verb, "runs": named });
        server.post("/v1/runs/bulk", &body).await
    };
    let (status, report) = bulk("pause", &["nobody", &ended, &runs[0]]).await;
    assert_eq!(status, 200);
    let done = report["done"].as_array().unwrap();
    assert_eq!(done.len(), 100);
    assert!(
        done.iter().all(|done| done["status"] == "Paused"),
        "{report}"
    );
    let failed = report["failed"].as_array().unwrap().iter();
    let mut failed: Vec<(&str, &str)> = failed
        .map(|one| (one["run"].as_str().unwrap(), one["code"].as_str().unwrap()))
        .collect();
    failed.sort_unstable();
    let mut expected = [(&*ended, "run-ended"), ("nobody", "unknown-run")];
    expected.sort_unstable();
    assert_eq!(failed, expected);
    let (_, list) = server.get("/v1/runs?status=Paused&limit=1").await;
    assert_eq!(list["total"], 100);
    let (_, report) = bulk("resume", &[]).await;
    assert_eq!(report["done"][99]["status"], "Waiting", "{report}");
    bulk("cancel", &[]).await;
    let (_, report) = bulk("retry", &[]).await;
    let again = report["done"][0]["new_run"].as_str().unwrap();
    assert_eq!(row(&server, again).await["status"], "Waiting");
    let (_, list) = server.get("/v1/runs?limit=1").await;
    assert_eq!(list["total"], 201);
    let many = json!({ "do": "pause", "runs": vec!["x"; 1_001] });
    assert_eq!(server.post("/v1/runs/bulk", &many).await.0, 400);
    let odd = json!({ "do": "forget", "runs": [] });
    assert_eq!(server.post("/v1/runs/bulk", &odd).await.0, 400);
}
