//! Saved workflows: their versions, which runs use which version, and conditional replacement. Also the commands for
//! them, with a server and without.

use super::{COUNT, SLEEP, Server, answer, windlass};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

const NIGHTLY: &str = "
name: nightly
schedule: { cron: '30 2 * * *', timezone: Europe/Berlin, overlap: queue }
actions: { a: { type: compose, inputs: 1 } }
";

async fn put(
    server: &Server,
    name: &str,
    text: &str,
    header: Option<(&str, &str)>,
) -> (u16, Value) {
    let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
    let request = request.header("content-type", "application/yaml");
    let request = match header {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    answer(request.body(text.to_owned())).await
}

fn text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn former_versions_are_stored_with_their_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let (_, first) = put(&server, "sync", SLEEP, None).await;
    let first = first["program"].as_str().unwrap().to_owned();
    let start = json!({ "workflow": "sync" });
    for _ in 0..2 {
        assert_eq!(server.post("/v1/runs", &start).await.0, 201);
    }
    let longer = SLEEP.replace("count: 1", "count: 2");
    let (status, second) = put(&server, "sync", &longer, None).await;
    assert_eq!(status, 200);
    let second = second["program"].as_str().unwrap().to_owned();

    // The replaced text is a version; it is durable and has its runs.
    server.kill();
    let server = Server::start(dir.path());
    let (status, report) = server.get("/v1/workflows/sync/versions").await;
    assert_eq!(status, 200, "{report}");
    let versions = report["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2, "{report}");
    assert_eq!(versions[0]["version"], json!(second));
    assert_eq!(versions[0]["current"], json!(true));
    assert_eq!(versions[0]["runs"], json!({}));
    assert_eq!(versions[1]["version"], json!(first));
    assert_eq!(versions[1]["current"], json!(false));
    let runs = versions[1]["runs"].as_object().unwrap();
    assert_eq!(runs.values().filter_map(Value::as_u64).sum::<u64>(), 2);
    let (_, old) = server
        .get(&format!("/v1/workflows/sync?version={first}"))
        .await;
    assert_eq!(old["files"][0]["text"], json!(SLEEP));
    let digits = &first["sha256:".len()..][..8];
    let (_, old) = server
        .get(&format!("/v1/workflows/sync?version={digits}"))
        .await;
    assert_eq!(old["program"], json!(first));
    let (status, problem) = server.get("/v1/workflows/sync?version=000000").await;
    assert_eq!(status, 404, "{problem}");
    assert_eq!(server.get("/v1/workflows/no/versions").await.0, 404);

    // The same text again makes no new version, and a text that returns becomes the newest.
    assert_eq!(put(&server, "sync", &longer, None).await.0, 200);
    assert_eq!(put(&server, "sync", SLEEP, None).await.0, 200);
    let (_, report) = server.get("/v1/workflows/sync/versions").await;
    let versions: Vec<_> = report["versions"].as_array().unwrap().iter().collect();
    let named: Vec<_> = versions.iter().map(|one| &one["version"]).collect();
    assert_eq!(named, [&json!(first), &json!(second)]);

    // The last fifty versions are always retained.
    for n in 10..65 {
        let text = SLEEP.replace("count: 1", &format!("count: {n}"));
        assert_eq!(put(&server, "sync", &text, None).await.0, 200);
    }
    let (_, report) = server.get("/v1/workflows/sync/versions").await;
    assert_eq!(report["versions"].as_array().map(Vec::len), Some(51));
    let remove = server.ask(Method::DELETE, "/v1/workflows/sync");
    assert_eq!(answer(remove).await.0, 204);
    assert_eq!(put(&server, "sync", SLEEP, None).await.0, 201);
    let (_, report) = server.get("/v1/workflows/sync/versions").await;
    assert_eq!(report["versions"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_put_only_in_place_of_the_known_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let none = Some(("if-none-match", "*"));
    let (status, first) = put(&server, "count", COUNT, none).await;
    assert_eq!(status, 201, "{first}");
    let (status, problem) = put(&server, "count", SLEEP, none).await;
    assert_eq!(
        (status, &problem["type"]),
        (412, &json!("urn:windlass:workflow-changed"))
    );
    assert_eq!(problem["current"]["text"], json!(COUNT));
    let got = server
        .ask(Method::GET, "/v1/workflows/count")
        .send()
        .await
        .unwrap();
    let tag = got.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(got.headers()["cache-control"], "no-store");
    assert_eq!(tag, format!("{}", first["program"]));
    assert_eq!(
        put(&server, "count", SLEEP, Some(("if-match", &tag)))
            .await
            .0,
        200
    );
    // Another client was faster.
    let (status, problem) = put(&server, "count", NIGHTLY, Some(("if-match", &tag))).await;
    assert_eq!(status, 412, "{problem}");
    assert_eq!(problem["current"]["text"], json!(SLEEP));
    assert_eq!(
        put(&server, "count", SLEEP, Some(("if-match", "x")))
            .await
            .0,
        400
    );
    let (status, problem) = put(&server, "gone", SLEEP, Some(("if-match", &tag))).await;
    assert_eq!((status, &problem["current"]), (412, &Value::Null));
    let delete = |path: &'static str| server.ask(Method::DELETE, path);
    let stale = delete("/v1/workflows/count").header("if-match", &tag);
    assert_eq!(stale.send().await.unwrap().status(), 412);
    let misplaced = delete("/v1/workflows/count?version=abcdef").send().await;
    assert_eq!(misplaced.unwrap().status(), 400);
    let all = json!({ "keep": 0 });
    let (status, problem) = server.post("/v1/prune?dry_run=true", &all).await;
    assert_eq!(status, 400, "{problem}");
    assert_eq!(server.get("/v1/workflows/count").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_reports_its_next_times() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    put(&server, "nightly", NIGHTLY, None).await;
    put(&server, "count", COUNT, None).await;
    let (_, report) = server.get("/v1/workflows/nightly/schedule").await;
    assert_eq!(report["schedule"], "30 2 * * *");
    assert_eq!(report["timezone"], "Europe/Berlin");
    assert_eq!(
        (&report["overlap"], &report["missed"]),
        (&json!("queue"), &json!("skip"))
    );
    let next = report["next"].as_array().unwrap();
    assert_eq!(next.len(), 5);
    assert!(
        next.iter()
            .all(|at| at.as_str().unwrap().ends_with(":30:00.000Z"))
    );
    let (_, report) = server.get("/v1/workflows/count/schedule").await;
    assert_eq!(report, json!({ "next": [], "missed_times": 0 }));
}

fn commands(state: &Path, folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ask = |args: &[&str]| windlass(state, args);
    let (count, nightly) = (write("count.yaml", COUNT), write("nightly.yaml", NIGHTLY));
    let put = ask(&["workflow", "put", "count", &count]);
    assert!(
        put.status.success() && text(&put).starts_with("count  "),
        "{}",
        text(&put)
    );
    let other = write("other.yaml", &COUNT.replace("value: 1", "value: 5"));
    let refused = ask(&["workflow", "put", "count", &other, "--new"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    let put = parsed(&ask(&["workflow", "put", "count", &other, "-o", "json"]));
    let versions = parsed(&ask(&[
        "workflow", "history", "count", "--diff", "-o", "json",
    ]));
    assert_eq!(versions[0]["version"], put["program"]);
    let diff = versions[0]["diff"].as_str().unwrap();
    assert!(
        diff.contains("-      more: { type: incrementVariable, inputs: { name: n, value: 1 } }")
    );
    assert!(
        diff.contains("+      more: { type: incrementVariable, inputs: { name: n, value: 5 } }")
    );
    let first = versions[1]["version"].as_str().unwrap();
    let stale = ask(&["workflow", "put", "count", &count, "--if-version", first]);
    assert_eq!(stale.status.code(), Some(2), "{}", text(&stale));
    let shown = ask(&["workflow", "show", "count", "--version", &first[7..19]]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), COUNT);
    let response = text(&ask(&["workflow", "history", "count"]));
    assert!(response.contains("current"), "{response}");
    assert!(
        ask(&["workflow", "put", "nightly", &nightly])
            .status
            .success()
    );
    let list = parsed(&ask(&["workflow", "list", "-o", "json"]));
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["count", "nightly"]);
    let list = text(&ask(&["schedule", "list"]));
    assert!(
        list.contains("Europe/Berlin") && !list.contains("count"),
        "{list}"
    );
    for workflow in ["nightly", &nightly] {
        let next = text(&ask(&["schedule", "next", workflow]));
        assert_eq!(next.lines().count(), 5, "{next}");
    }
    let unknown = text(&ask(&["workflow", "show", "nigthly"]));
    assert!(unknown.contains("did you mean `nightly`?"), "{unknown}");
    let deleted = ask(&["workflow", "delete", "count"]);
    assert!(deleted.status.success(), "{}", text(&deleted));
    assert_eq!(ask(&["workflow", "delete", "count"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_for_saved_workflows_need_no_server() {
    let dir = tempfile::tempdir().unwrap();
    // The first command creates the store.
    commands(&dir.path().join("alone"), dir.path());
    let state = dir.path().join("served");
    let _server = Server::start(&state);
    commands(&state, dir.path());
}

const GREET: &str = "
name: greet
inputs: { who: { type: string } }
actions: { a: { type: shell, run: 'echo hi $WHO', env: { WHO: \"@inputs('who')\" } } }
outputs: \"@trim(outputs('a').stdout)\"
";

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_workflow_is_started_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let file = dir.path().join("greet.yaml");
    std::fs::write(&file, GREET).unwrap();
    let file = file.to_str().unwrap();
    let say = |args: &[&str]| text(&windlass(&state, args));
    say(&["workflow", "put", "greet", file]);
    // Without an owner of the store, and then with one.
    assert!(say(&["workflow", "start", "greet", "-i", "who=Ada"]).contains("hi Ada"));
    assert!(say(&["workflow", "start", "gret"]).contains("did you mean `greet`?"));
    assert!(say(&["workflow", "start", "greet"]).contains("`who` has no default"));
    assert!(say(&["run", "greet"]).contains("windlass workflow start greet"));
    let detached = [
        "workflow", "start", "greet", "-i", "who=Bob", "--detach", "--id", "b",
    ];
    assert!(say(&detached).contains("no server owns the store"));
    let server = Server::start(&state);
    assert!(say(&["workflow", "start", "greet", "-i", "who=Eve"]).contains("hi Eve"));
    assert_eq!(say(&detached).trim(), "b");
    assert!(say(&["resume", "b"]).contains("hi Bob"));
    // It has the permissions with which it was saved: over TCP, none.
    let (status, _) = put(&server, "theirs", GREET, None).await;
    assert_eq!(status, 422);
    let harmless = GREET
        .replace("type: shell", "type: compose")
        .replace("run:", "inputs:");
    let harmless = harmless.replace(", env: { WHO: \"@inputs('who')\" }", "");
    let harmless = harmless.replace("outputs('a').stdout", "outputs('a')");
    let (status, report) = put(&server, "theirs", &harmless, None).await;
    assert_eq!(status, 201, "{report}");
    assert!(say(&["workflow", "start", "theirs", "-i", "who=x"]).contains("hi $WHO"));
}
