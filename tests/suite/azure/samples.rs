//! Definitions written after the public samples of Logic Apps, with only the server's address changed. The real binary
//! runs them against a real server. `tests/azure/samples/NAME.json` is a definition, and `NAME.cases.json` has the
//! expected results. Also tests what the command line adds: values of parameters and stubs for connectors.

use crate::{app, support};
use axum::Router;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// The server's address in the definitions.
const BASE: &str = "http://127.0.0.1:8080";

type Polls = Arc<Mutex<HashMap<String, u32>>>;
type Queries = Query<HashMap<String, String>>;

/// The server of the examples, with further endpoints that answer with any status and that continue work after a 202.
async fn server() -> String {
    let more = Router::new()
        .route("/async/start", post(start))
        .route("/async/status", get(status))
        .with_state(Polls::default())
        .route("/status/{code}", any(answer));
    support::serve(app::router(app::Options::default()).merge(more)).await
}

async fn answer(UrlPath(code): UrlPath<u16>) -> Response {
    let body = Json(json!({ "code": code }));
    (StatusCode::from_u16(code).unwrap(), body).into_response()
}

fn accepted(query: &HashMap<String, String>) -> Response {
    let end = query.get("end").map_or("200", String::as_str);
    let location = format!("/async/status?key={}&end={end}", query["key"]);
    let head = [
        (header::LOCATION, location),
        (header::RETRY_AFTER, "0".into()),
    ];
    (StatusCode::ACCEPTED, head).into_response()
}

/// Counts a request, and returns the number of requests with this key.
fn counted(polls: &Polls, key: String) -> u32 {
    let mut all = polls.lock().unwrap();
    let count = all.entry(key).or_default();
    *count += 1;
    *count
}

async fn start(State(polls): State<Polls>, Query(query): Queries) -> Response {
    counted(&polls, format!("start of {}", query["key"]));
    accepted(&query)
}

/// Answers twice that the work is not done, and then with its result. The key `busy` gets a failure first.
async fn status(State(polls): State<Polls>, Query(query): Queries) -> Response {
    let key = &query["key"];
    let count = counted(&polls, key.clone());
    match count {
        1 if key == "busy" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        ..3 => accepted(&query),
        _ => {
            let end = StatusCode::from_u16(query["end"].parse().unwrap()).unwrap();
            let starts = polls
                .lock()
                .unwrap()
                .get(&format!("start of {key}"))
                .copied();
            (end, Json(json!({ "polls": count, "starts": starts }))).into_response()
        }
    }
}

/// Runs the binary without blocking the server.
pub(super) async fn windlass(args: Vec<String>) -> Output {
    let run = move || {
        Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(args)
            .output()
            .unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

pub(super) fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(ToString::to_string).collect()
}

pub(super) fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

pub(super) fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Every key of `part` must have the same value in `whole`, which may have more keys.
fn assert_holds(what: &str, whole: &Value, part: &Value) {
    for (key, value) in part.as_object().unwrap() {
        assert_eq!(&whole[key], value, "{what}: `{key}` of {whole}");
    }
}

/// The status of every action that has a record, at the top and inside scopes.
async fn statuses(run: &str, state: &str) -> Value {
    let dump = windlass(strings(&["dump", run, "--state", state, "-o", "json"])).await;
    let dump = document(&dump);
    let mut cursors = dump["runs"][0]["state"]["cursors"]
        .as_object()
        .unwrap()
        .values();
    let records = cursors.next().unwrap()["records"]
        .as_object()
        .unwrap()
        .iter();
    let pairs = records.map(|(name, record)| (name.clone(), record["status"].clone()));
    Value::Object(pairs.collect())
}

async fn check(what: &str, definition: &str, case: &Value) {
    let dir = tempfile::tempdir().unwrap();
    let base = server().await;
    let file = write(
        dir.path(),
        "definition.json",
        &definition.replace(BASE, &base),
    );
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    let mut args = strings(&[
        "run", &file, "--id", "case", "--state", &state, "-o", "json",
    ]);
    if let Some(input) = case.get("input") {
        let input = write(dir.path(), "input.json", &input.to_string());
        args.extend(["--input".into(), input]);
    }
    if let Some(parameters) = case.get("parameters") {
        let parameters = write(dir.path(), "parameters.json", &parameters.to_string());
        args.extend(["--parameters".into(), parameters]);
    }
    let output = windlass(args).await;
    let result = document(&output);
    let (status, code) = match case["status"].as_str().unwrap() {
        "Succeeded" => (None, 0),
        "Cancelled" => (Some("Cancelled"), 6),
        other => (Some(other), 1),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{what}: {result} {stderr}"
    );
    if let Some(status) = status {
        assert_eq!(result["status"], status, "{what}");
    }
    if let Some(expected) = case.get("output") {
        assert_eq!(&result, expected, "{what}");
    }
    if let Some(expected) = case.get("error") {
        assert_holds(what, &result["error"], expected);
    }
    if let Some(expected) = case.get("actions") {
        assert_holds(what, &statuses("case", &state).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_samples_run_unchanged() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/azure/samples");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".cases.json")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() >= 12, "only {names:?}");
    for name in names {
        let read = |ending: &str| {
            std::fs::read_to_string(folder.join(format!("{name}.{ending}"))).unwrap()
        };
        let cases: Vec<Value> = serde_json::from_str(&read("cases.json")).unwrap();
        for case in cases {
            let what = format!("{name}: {}", case["about"]);
            check(&what, &read("json"), &case).await;
        }
    }
}

fn connectors() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/azure/connectors.json")
}

const STUBS: &str = r#"{
  "office365/post /v2/Mail": { "statusCode": 202, "body": { "id": "m1" } },
  "read_blob": "hello",
  "function": [{ "error": { "code": 429, "message": "slow down" } }, { "error": "again" }],
  "workflow/child-workflow": [[1, 2], 3]
}"#;

#[tokio::test]
async fn a_stub_answers_for_unregistered_connectors() {
    let dir = tempfile::tempdir().unwrap();
    let stub = write(dir.path(), "stub.json", STUBS);
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    let without = windlass(strings(&["validate", connectors()])).await;
    assert_eq!(without.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&without.stderr);
    assert_eq!(
        stderr.matches("error[missing-handler]").count(),
        1,
        "{stderr}"
    );
    let with = windlass(strings(&["validate", connectors(), "--stub", &stub])).await;
    assert!(with.status.success(), "{with:?}");

    let args = [
        "run",
        connectors(),
        "--stub",
        &stub,
        "--id",
        "a",
        "--state",
        &state,
        "-o",
        "json",
    ];
    let failed = windlass(strings(&args)).await;
    let marked = ["list", "--label", "windlass.stubs=true", "--state", &state];
    let marked = windlass(strings(&marked)).await;
    assert!(
        String::from_utf8_lossy(&marked.stdout).contains("windlass.stubs=true"),
        "{marked:?}"
    );
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let error = &document(&failed)["error"];
    assert_holds(
        "the stub's error",
        error,
        &json!({ "kind": "handler", "code": "429", "message": "slow down", "action": "Call_function" }),
    );
    let records = statuses("a", &state).await;
    assert_eq!(records["Send_an_email"], "Succeeded");
    assert_eq!(records["Child"], "Skipped");
}

#[tokio::test]
async fn a_handler_of_the_connector_takes_all_its_operations() {
    let dir = tempfile::tempdir().unwrap();
    let handlers = r#"
office365: { command: [sh, -c, "cat"] }
office365/get /v2/Mail: { command: [sh, -c, "exit 9"] }
AzureBlob/readBlob: { command: [sh, -c, "echo '{\"statusCode\": 200, \"body\": \"content\"}'"] }
function: { command: [sh, -c, "echo 7"] }
workflow/child-workflow: { command: [sh, -c, "true"] }
"#;
    let handlers = write(dir.path(), "handlers.yaml", handlers);
    let input = write(dir.path(), "input.json", r#"{"to": "ada@example.org"}"#);
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    let mut args = strings(&[
        "run",
        connectors(),
        "--handlers",
        &handlers,
        "--state",
        &state,
    ]);
    args.extend(strings(&["--input", &input, "-o", "json"]));
    let output = windlass(args).await;
    let result = document(&output);
    // `cat` returns its input: the action's inputs without the connection.
    let mail = json!({ "To": "ada@example.org", "Subject": "hello" });
    assert_eq!(result["Send_an_email"]["body"], mail, "{output:?}");
    assert_eq!(result["Send_an_email"]["operation"], "post /v2/Mail");
    assert_eq!(result["Read_blob"]["body"], "content");
    assert_eq!(result["Call_function"]["body"], 7);
    assert_eq!(result["Child"]["body"], json!(null));
}

#[tokio::test]
async fn answers_of_a_stub_follow_each_other_and_come_before_a_handler() {
    let dir = tempfile::tempdir().unwrap();
    let workflow = r#"
handlers: { real: { command: [echo, '"real"'] } }
actions:
  first: { type: activity, activityType: real, retry: { type: none } }
  each:
    type: foreach
    foreach: [1, 2, 3]
    actions:
      ask: { type: activity, activityType: counter, retry: { type: fixed, interval: PT0.01S } }
  named: { type: actor, actorType: unknown }
outputs: ["@body('first')", "@outputs('each')", "@body('named')"]
"#;
    let stubs = r#"
real: stubbed
counter: [one, { error: not now }, [2], { value: last }]
Named: { error: not this, and: more }
"#;
    let file = write(dir.path(), "w.yaml", workflow);
    let stub = write(dir.path(), "stub.yaml", stubs);
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    let args = [
        "run", &file, "--stub", &stub, "--state", &state, "-o", "json",
    ];
    let output = windlass(strings(&args)).await;
    assert_eq!(
        document(&output),
        json!([
            "stubbed",
            [{ "ask": "one" }, { "ask": [2] }, { "ask": { "value": "last" } }],
            { "error": "not this", "and": "more" }
        ]),
        "{output:?}"
    );
}

#[tokio::test]
async fn files_of_parameters_and_stubs_that_are_wrong_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let loom = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/nested-loops.yaml");
    let poll = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/azure/until-poll.json");
    let file = |text: &str| write(dir.path(), "given.json", text);
    let wrong = file(r#"{"base": {"value": 3}, "bas": {"value": 1}}"#);
    for (args, code, expected) in [
        (
            ["validate", poll, "--parameters", &wrong],
            3,
            "the parameter `base` must be text",
        ),
        (
            ["validate", poll, "--parameters", &wrong],
            3,
            "unknown parameter `bas`",
        ),
        (
            ["validate", loom, "--parameters", &wrong],
            3,
            "this is a loom file",
        ),
        (
            ["validate", poll, "--parameters", "nowhere.json"],
            2,
            "nowhere.json",
        ),
    ] {
        let output = windlass(strings(&args)).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?} {stderr}");
        assert!(stderr.contains(expected), "{args:?} {stderr}");
    }
    for (text, expected) in [
        (r#"[1]"#, "a map from handlers"),
        (r#"{"a": []}"#, "`a`: an empty list"),
        (r#"{"a": {"error": 1}}"#, "`a`: `error` is text"),
        (
            r#"{"a": {"error": {"mesage": ""}}}"#,
            "unknown key `mesage`",
        ),
        (
            r#"{"$paramters": {"x": 1}}"#,
            "unknown key `$paramters` (did you mean `$parameters`?)",
        ),
    ] {
        let stub = file(text);
        let output = windlass(strings(&["validate", poll, "--stub", &stub])).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text} {stderr}");
        assert!(stderr.contains(expected), "{text} {stderr}");
    }
}
