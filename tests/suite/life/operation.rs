//! `operation` with servers of fourteen kinds, each killed at every request: it never starts twice, and never ends
//! early.

use crate::life::first_use::Folder;
use crate::support::{serve, sized};
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// How a server reports its operations.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Location,
    OperationLocation,
    AzurePut,
    AzurePost,
    Google,
    Compute,
    Response,
    Batch,
    Job,
    Dispatch,
    /// A dispatch whose answer names no run.
    Sought,
    Describe,
    Words,
    /// The asynchronous pattern of a Logic Apps definition.
    Definition,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Location,
        Self::OperationLocation,
        Self::AzurePut,
        Self::AzurePost,
        Self::Google,
        Self::Compute,
        Self::Response,
        Self::Batch,
        Self::Job,
        Self::Dispatch,
        Self::Sought,
        Self::Describe,
        Self::Words,
        Self::Definition,
    ];

    /// The action, for a server at an address.
    fn action(self, url: &str) -> String {
        if let Self::Definition = self {
            let inputs = json!({ "method": "POST", "uri": format!("{url}/start"), "body": { "name": "nightly" } });
            let rows = json!({ "type": "int", "value": "@body('op').rows" });
            let schema = "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#";
            let op = json!({ "type": "Http", "inputs": inputs });
            return json!({
                "$schema": schema, "contentVersion": "1.0.0.0", "actions": { "op": op }, "outputs": { "rows": rows }
            })
            .to_string();
        }
        let (method, path, more) = match self {
            Self::AzurePut => ("PUT", "/machines/m", ""),
            Self::Google => ("POST", "/v1/export", ""),
            Self::Response => ("POST", "/v1/responses", ""),
            Self::Batch => ("POST", "/v1/batches", ""),
            Self::Job => ("POST", "/apis/batch/v1/namespaces/n/jobs?pretty=1", ""),
            Self::Dispatch | Self::Sought => ("POST", "/repos/o/r/actions/workflows/w/dispatches", ""),
            Self::Describe => (
                "POST",
                "/start",
                "status: { method: POST, uri: \"URL/describe\", body: { arn: \"@body('op.start').arn\" } }
    done: \"@equals(body('op.status').description, 'ENDED')\"
    failed: \"@equals(body('op.status').description, 'BROKEN')\"
    result: { uri: \"URL/described\" }",
            ),
            _ => ("POST", "/start", ""),
        };
        let more = more.replace("URL", url);
        format!(
            "
actions:
  op:
    type: operation
    inputs: {{ method: {method}, uri: \"{url}{path}\", body: {{ name: nightly }} }}
    delay: 10ms
    {more}
outputs: \"@body('op')\"
"
        )
    }
}

/// A server of one kind.
#[derive(Clone)]
struct Server {
    kind: Kind,
    /// Whether the server's operations fail.
    fails: bool,
    /// The number of the request, from 1, that is not answered.
    silent_at: Option<usize>,
    is_silent: Arc<Notify>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: usize,
    /// The keys of the starts, and whether each was answered.
    starts: Vec<(String, bool)>,
    polls: usize,
}

impl Server {
    fn new(kind: Kind, fails: bool, silent_at: Option<usize>) -> Self {
        Self {
            kind,
            fails,
            silent_at,
            is_silent: Arc::default(),
            seen: Arc::default(),
        }
    }

    async fn start(&self) -> String {
        serve(Router::new().fallback(answer).with_state(self.clone())).await
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }
}

type Reply = (u16, Vec<(&'static str, String)>, Value);

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.as_str().to_owned(), head.uri.path().to_owned());
    let _ = to_bytes(body, 1 << 20).await;
    let is_start = !path.starts_with("/describe") && method != "GET";
    let key = head.headers.get("idempotency-key");
    let key = key.map(|key| key.to_str().unwrap().to_owned());
    let (silent, polls) = {
        let mut seen = server.seen.lock().unwrap();
        seen.requests += 1;
        let silent = server.silent_at == Some(seen.requests);
        match is_start {
            true => seen.starts.push((key.unwrap_or_default(), !silent)),
            false if !silent => seen.polls += 1,
            false => {}
        }
        (silent, seen.polls)
    };
    if silent {
        server.is_silent.notify_one();
        std::future::pending::<()>().await;
    }
    let (status, headers, body) = match is_start {
        true => started(server.kind),
        false => polled(server.kind, &path, polls, server.fails),
    };
    let status = StatusCode::from_u16(status).unwrap();
    let mut response = match body {
        Value::Null => status.into_response(),
        body => (status, Json(body)).into_response(),
    };
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_str(&value).unwrap();
        response.headers_mut().insert(name, value);
    }
    response
}

fn started(kind: Kind) -> Reply {
    let header = |name: &'static str, value: &str| (name, value.to_owned());
    match kind {
        Kind::Location => (202, vec![header("location", "lro/7")], json!({ "id": 7 })),
        Kind::Definition => {
            let headers = vec![header("location", "lro/7"), header("retry-after", "0")];
            (202, headers, Value::Null)
        }
        Kind::OperationLocation => {
            let headers = vec![header("operation-location", "/lro/7")];
            (201, headers, json!({ "status": "notStarted" }))
        }
        Kind::AzurePut => {
            let headers = vec![header("azure-asyncoperation", "/lro/7?api-version=1")];
            let body = json!({ "properties": { "provisioningState": "Creating" } });
            (201, headers, body)
        }
        Kind::AzurePost => {
            let headers = vec![
                header("azure-asyncoperation", "/lro/7"),
                header("location", "/result"),
            ];
            (202, headers, Value::Null)
        }
        Kind::Google => (200, vec![], json!({ "name": "operations/7" })),
        Kind::Compute => {
            let body =
                json!({ "kind": "compute#operation", "selfLink": "/lro/7", "status": "PENDING" });
            (200, vec![], body)
        }
        Kind::Response => (
            200,
            vec![],
            json!({ "id": "resp_7", "status": "queued", "error": null }),
        ),
        Kind::Batch => (
            200,
            vec![],
            json!({ "id": "batch_7", "status": "validating" }),
        ),
        Kind::Job => {
            let body = json!({ "kind": "Job", "metadata": { "name": "nightly" }, "status": {} });
            (201, vec![], body)
        }
        Kind::Dispatch => {
            let body = json!({ "workflow_run_id": 7, "run_url": "/repos/o/r/actions/runs/7" });
            (200, vec![], body)
        }
        Kind::Sought => (204, vec![], Value::Null),
        Kind::Describe => (200, vec![], json!({ "arn": "arn:7" })),
        Kind::Words => (200, vec![], json!({ "id": 7, "state": "in-progress" })),
    }
}

/// The answer to a request for the operation's status, or for its result. The operation ends with the third status
/// request.
fn polled(kind: Kind, path: &str, polls: usize, fails: bool) -> Reply {
    let rows = json!({ "rows": 3 });
    let body = |body: Value| (200, vec![], body);
    let ended = polls >= 3;
    let at = match kind {
        Kind::Location
        | Kind::OperationLocation
        | Kind::AzurePut
        | Kind::AzurePost
        | Kind::Definition => "/lro/7",
        Kind::Google => "/v1/operations/7",
        Kind::Compute => "/lro/7",
        Kind::Response => "/v1/responses/resp_7",
        Kind::Batch => "/v1/batches/batch_7",
        Kind::Job => "/apis/batch/v1/namespaces/n/jobs/nightly",
        Kind::Dispatch | Kind::Sought => "/repos/o/r/actions/runs/7",
        Kind::Describe => "/describe",
        Kind::Words => "/start/7",
    };
    if path == "/repos/o/r/actions/workflows/w/runs" {
        // The new run appears in the list a little later.
        let run = |at: &str, id: u32| json!({ "created_at": at, "url": format!("/repos/o/r/actions/runs/{id}") });
        let mut runs = vec![run("2020-01-01T00:00:00Z", 1)];
        if polls > 1 {
            runs.insert(0, run("2099-01-01T00:00:00Z", 7));
            runs.insert(0, run("2099-01-01T00:00:09Z", 8));
        }
        return body(json!({ "total_count": runs.len(), "workflow_runs": runs }));
    }
    if path != at {
        let results = [
            "/machines/m",
            "/result",
            "/v1/files/file_7/content",
            "/described",
        ];
        return match results.contains(&path) && ended {
            true => body(rows),
            false => (404, vec![], json!({ "path": path })),
        };
    }
    let error = json!({ "code": "quota", "message": "no room left" });
    match (kind, ended, fails) {
        // One answer before the last names no address.
        (Kind::Location, false, _) if polls == 2 => (202, vec![], json!({ "state": "running" })),
        (Kind::Location, false, _) => (202, vec![("location", "7".to_owned())], Value::Null),
        (Kind::Location, true, false) => body(rows),
        (Kind::Location, true, true) => body(json!({ "status": "failed", "error": error })),
        (Kind::OperationLocation | Kind::AzurePut | Kind::AzurePost, false, _) => {
            body(json!({ "status": "Running" }))
        }
        (Kind::OperationLocation, true, false) => {
            body(json!({ "status": "succeeded", "resourceLocation": "/result" }))
        }
        (Kind::AzurePut | Kind::AzurePost, true, false) => body(json!({ "status": "Succeeded" })),
        (Kind::OperationLocation | Kind::AzurePut | Kind::AzurePost, true, true) => {
            body(json!({ "status": "Failed", "error": error }))
        }
        (Kind::Google, false, _) => {
            body(json!({ "name": "operations/7", "metadata": { "progress": 20 } }))
        }
        (Kind::Google, true, false) => {
            body(json!({ "name": "operations/7", "done": true, "response": rows }))
        }
        (Kind::Google, true, true) => {
            body(json!({ "name": "operations/7", "done": true, "error": error }))
        }
        (Kind::Compute, false, _) => body(json!({ "status": "RUNNING" })),
        (Kind::Compute, true, false) => body(json!({ "status": "DONE", "rows": 3 })),
        (Kind::Compute, true, true) => body(json!({ "status": "DONE", "error": error })),
        (Kind::Response, false, _) => body(json!({ "status": "in_progress", "error": null })),
        (Kind::Response, true, false) => {
            body(json!({ "status": "completed", "error": null, "rows": 3 }))
        }
        (Kind::Response, true, true) => body(json!({ "status": "failed", "error": error })),
        (Kind::Batch, false, _) => body(json!({ "status": "finalizing" })),
        (Kind::Batch, true, false) => {
            body(json!({ "status": "completed", "output_file_id": "file_7" }))
        }
        (Kind::Batch, true, true) => body(json!({ "status": "expired", "error": error })),
        (Kind::Job, false, _) => body(json!({ "kind": "Job", "status": { "active": 1 } })),
        (Kind::Job, true, _) => {
            let kind = if fails { "Failed" } else { "Complete" };
            let condition = json!({ "type": kind, "status": "True", "message": "no room left" });
            body(json!({ "kind": "Job", "status": { "conditions": [condition] }, "rows": 3 }))
        }
        (Kind::Dispatch | Kind::Sought, false, _) => {
            body(json!({ "status": "in_progress", "conclusion": null }))
        }
        (Kind::Dispatch | Kind::Sought, true, _) => {
            let conclusion = if fails { "no room left" } else { "success" };
            body(json!({ "status": "completed", "conclusion": conclusion, "rows": 3 }))
        }
        (Kind::Describe, false, _) => body(json!({ "description": "WORKING" })),
        (Kind::Describe, true, false) => body(json!({ "description": "ENDED" })),
        (Kind::Describe, true, true) => body(json!({ "description": "BROKEN" })),
        // One answer before the last names no address, and the last may contain any text.
        (Kind::Definition, false, _) => {
            let location = (polls != 2).then(|| ("location", "7".to_owned()));
            let headers = location
                .into_iter()
                .chain([("retry-after", "0".to_owned())]);
            (202, headers.collect(), Value::Null)
        }
        (Kind::Definition, true, false) => body(json!({ "status": "failed", "rows": 3 })),
        (Kind::Definition, true, true) => {
            (404, vec![], json!("the operation failed: no room left"))
        }
        // One answer has no state.
        (Kind::Words, false, _) if polls == 2 => body(json!({})),
        (Kind::Words, false, _) => body(json!({ "state": "still working" })),
        (Kind::Words, true, false) => body(json!({ "state": "Finished", "rows": 3 })),
        (Kind::Words, true, true) => body(json!({ "state": "aborted", "message": "no room left" })),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_started_once_and_its_result_is_read_after_its_end() {
    let folder = Folder::new();
    for kind in Kind::ALL {
        let server = Server::new(kind, false, None);
        let url = server.start().await;
        let name = format!("{kind:?}.yaml");
        folder.file(&name, kind.action(&url));
        let ran = folder.run(&["run", &name, "--id", &format!("{kind:?}")]);
        let ran = ran.left(0, &[]);
        let output: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(output["rows"], 3, "{kind:?}: {output}");
        let seen = server.seen.lock().unwrap();
        assert_eq!(seen.starts.len(), 1, "{kind:?}");
        assert!(seen.polls >= 3, "{kind:?}: {}", seen.polls);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_operation_fails_the_action_with_its_reason() {
    let folder = Folder::new();
    for kind in Kind::ALL {
        let server = Server::new(kind, true, None);
        let url = server.start().await;
        let name = format!("{kind:?}.yaml");
        folder.file(&name, kind.action(&url));
        let id = format!("{kind:?}");
        let reason = match kind {
            Kind::Describe => {
                "the operation failed: `@equals(body('op.status').description, 'BROKEN')` is true of \
                 {\"description\":\"BROKEN\"}"
            }
            _ => "the operation failed: no room left",
        };
        folder.run(&["run", &name, "--id", &id]).left(1, &[reason]);
        let seen = server.seen.lock().unwrap();
        assert_eq!(seen.starts.len(), 1, "{kind:?}");
        if let Kind::Describe = kind {
            // It is not polled again.
            assert_eq!(seen.polls, 3);
            let status = folder
                .run(&["status", &id, "--output", "json"])
                .left(0, &[]);
            let status: Value = serde_json::from_str(&status.out).unwrap();
            assert_eq!(status["outcome"]["error"]["kind"], "operation");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_request_starts_no_second_operation() {
    let folder = Folder::new();
    for kind in Kind::ALL {
        let whole = Server::new(kind, false, None);
        let url = whole.start().await;
        folder.file("whole.yaml", kind.action(&url));
        folder.run(&["run", "whole.yaml"]).left(0, &[]);
        for silent_at in (1..=whole.requests()).step_by(sized(1, 2)) {
            let server = Server::new(kind, false, Some(silent_at));
            let url = server.start().await;
            folder.file("killed.yaml", kind.action(&url));
            let id = format!("{kind:?}-{silent_at}");
            let mut run = folder.start(&["run", "killed.yaml", "--id", &id]);
            server.is_silent.notified().await;
            run.kill().unwrap();
            run.wait().unwrap();
            let resumed = folder.run(&["resume", &id]).left(0, &[]);
            assert!(resumed.out.contains("\"rows\": 3"), "{id}: {}", resumed.out);
            let seen = server.seen.lock().unwrap();
            let answered = seen.starts.iter().filter(|(_, answered)| *answered);
            assert_eq!(answered.count(), 1, "{id}: {:?}", seen.starts);
            let first = &seen.starts[0].0;
            assert!(!first.is_empty(), "{id}");
            assert!(seen.starts.iter().all(|(key, _)| key == first), "{id}");
            assert_eq!(seen.starts.len(), 1 + usize::from(silent_at == 1), "{id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_address_says_what_to_give() {
    async fn running() -> Response {
        (StatusCode::ACCEPTED, "on it").into_response()
    }
    let url = serve(Router::new().fallback(running)).await;
    let folder = Folder::new();
    let action = Kind::Words.action(&url);
    folder.file("w.yaml", action);
    folder
        .run(&["run", "w.yaml"])
        .left(1, &["has no address for its status: set `status`"]);
    folder
        .run(&["operation", &url])
        .left(1, &["has no address for its status: set --status-url"]);
}

/// The status, the headers and the body of an answer.
type ScriptedAnswer = (u16, Vec<(&'static str, &'static str)>, &'static str);

/// Starts a server that answers a POST with the first answer, and each GET with the next one. Further requests get the
/// last answer. Returns its address and the number of requests.
async fn scripted(answers: Vec<ScriptedAnswer>) -> (String, Arc<Mutex<usize>>) {
    let requests = Arc::<Mutex<usize>>::default();
    let counted = Arc::clone(&requests);
    let router = Router::new().fallback(async move || {
        let mut requests = counted.lock().unwrap();
        let at = (*requests).min(answers.len() - 1);
        *requests += 1;
        let (status, headers, body) = &answers[at];
        let kind = if body.starts_with('<') {
            "text/html"
        } else {
            "application/json"
        };
        let mut response = (
            StatusCode::from_u16(*status).unwrap(),
            [("content-type", kind)],
            *body,
        )
            .into_response();
        for (name, value) in headers {
            response
                .headers_mut()
                .insert(*name, HeaderValue::from_static(value));
        }
        response
    });
    (serve(router).await, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_state_does_not_end_an_operation_that_had_one() {
    let folder = Folder::new();
    let (queued, running) = (r#"{"id":7,"status":"queued"}"#, r#"{"status":"running"}"#);
    let ended = r#"{"status":"succeeded","rows":3}"#;
    for (status, stateless) in [
        (200, "<html>maintenance</html>"),
        (200, "{}"),
        (200, "[]"),
        (200, r#"{"status":null}"#),
        (200, r#"{"error":"try later"}"#),
        (204, ""),
    ] {
        for with_address in [false, true] {
            let answers = vec![
                (201, vec![], queued),
                (status, vec![], stateless),
                (200, vec![], running),
                (status, vec![], stateless),
                (200, vec![], ended),
            ];
            let (url, requests) = scripted(answers).await;
            let at = format!("{url}/7");
            let mut line = vec!["operation", &*url, "--every", "0.01s"];
            if with_address {
                line.extend(["--status-url", &at]);
            }
            let ran = folder.run(&line).left(0, &[]);
            assert!(ran.out.contains("\"rows\": 3"), "{stateless}: {}", ran.out);
            assert_eq!(*requests.lock().unwrap(), 5, "{stateless}");
        }
    }
    let rows = r#"{"rows":3}"#;
    // The server redirects to a page, and then to the result.
    let redirected = vec![
        (202, vec![("location", "/7")], queued),
        (303, vec![("location", "/maintenance")], ""),
        (200, vec![], "<html>maintenance</html>"),
        (303, vec![("location", "/result")], ""),
        (200, vec![], rows),
    ];
    // The server reports the state in the body and with the status 202.
    let both = vec![
        (202, vec![("location", "/7")], queued),
        (202, vec![], running),
        (200, vec![], "<html>maintenance</html>"),
        (200, vec![], rows),
    ];
    // The operation ends before the first poll.
    let quick = vec![(202, vec![("location", "/7")], queued), (200, vec![], rows)];
    // The server reports it only with the status 202.
    let code = vec![
        (202, vec![("operation-location", "/7")], "{}"),
        (202, vec![], "{}"),
        (202, vec![], "{}"),
        (200, vec![], rows),
    ];
    for (answers, expected) in [(redirected, 5), (both, 4), (quick, 2), (code, 4)] {
        let (url, requests) = scripted(answers).await;
        let ran = folder.run(&["operation", &url, "--every", "0.01s"]);
        let ran = ran.left(0, &[]);
        assert!(ran.out.contains("\"rows\": 3"), "{}", ran.out);
        assert_eq!(*requests.lock().unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeout_includes_the_start_and_the_request_for_the_result() {
    async fn silent(request: Request) -> Response {
        match (request.method().as_str(), request.uri().path()) {
            ("POST", "/ends" | "/runs") | ("GET", "/runs/7") => {
                Json(json!({ "id": 7, "status": "running" })).into_response()
            }
            (_, "/ends/7") => {
                let ended = json!({ "status": "succeeded", "resourceLocation": "/result" });
                Json(ended).into_response()
            }
            _ => std::future::pending().await,
        }
    }
    let url = serve(Router::new().fallback(silent)).await;
    let folder = Folder::new();
    for (start, answer) in [
        ("silent", ""),
        ("ends", ""),
        (
            "runs",
            "; the last answer was 200: {\"id\":7,\"status\":\"running\"}",
        ),
    ] {
        let start = format!("{url}/{start}");
        let line = ["operation", &start, "--timeout", "1s", "--every", "0.01s"];
        let message = format!("`operation` was not done within its timeout of 1s{answer}");
        folder.run(&line).left(5, &[&message]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_address_of_a_server_is_named() {
    let (url, _) = scripted(vec![(202, vec![("location", "http://[x")], "")]).await;
    let folder = Folder::new();
    let message = "the header `location` has an invalid address of the operation, `http://[x`";
    folder.run(&["operation", &url]).left(1, &[message]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_not_known_at_once_is_polled_again() {
    async fn late(State(shared): State<Arc<Mutex<usize>>>, request: Request) -> Response {
        if request.method() == "POST" {
            let location = [("location", "/lro/7")];
            return (StatusCode::ACCEPTED, location).into_response();
        }
        let mut polls = shared.lock().unwrap();
        *polls += 1;
        match *polls {
            1 => StatusCode::NOT_FOUND.into_response(),
            _ => Json(json!({ "rows": 3 })).into_response(),
        }
    }
    let polls = Arc::<Mutex<usize>>::default();
    let url = serve(Router::new().fallback(late).with_state(Arc::clone(&polls))).await;
    let folder = Folder::new();
    let ran = folder.run(&["operation", &url, "--every", "0.01s"]);
    let ran = ran.left(0, &[]);
    assert!(ran.out.contains("\"rows\": 3"), "{}", ran.out);
    assert!(!ran.err.contains("note:"), "{}", ran.err);
    assert_eq!(*polls.lock().unwrap(), 2);
}

#[test]
fn an_address_without_a_scheme_is_found_before_the_run() {
    let folder = Folder::new();
    let url = "http://127.0.0.1:9/";
    for (flag, given) in [("--status-url", ""), ("--result", "jobs/7")] {
        let message = format!("{flag}: `{given}` is not a valid URL: it must begin with http");
        let refused = folder.run(&["operation", url, flag, given]);
        refused.left(2, &[&message]);
    }
    for flag in ["--status-url", "--result", "--cancel"] {
        let message = format!("{flag}: `http://[bad` is not a valid URL: invalid IPv6 address");
        let refused = folder.run(&["operation", url, flag, "http://[bad"]);
        refused.left(2, &[&message]);
    }
    for valid in ["http://${secret:HOST}:${secret:PORT}/jobs", url] {
        let line = ["operation", valid, "--cancel", "/c", "--result", "none"];
        let print = [&line[..], &["--print"]].concat();
        folder.run(&print).left(0, &[]);
    }
    let file = "actions:\n  a:\n    type: operation\n    inputs: {uri: 'http://127.0.0.1:9/'}\n    \
                status: jobs/7\n    result: {uri: jobs/8}\n    cancel: jobs/9\n";
    folder.file("a.yaml", file);
    let warned = folder.run(&["validate", "a.yaml"]);
    let warned = warned.left(0, &["`jobs/7` begins with neither", "`jobs/8` begins"]);
    assert!(!warned.err.contains("jobs/9"), "{}", warned.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_says_where_the_first_answer_names_no_operation() {
    let created = async || {
        (
            StatusCode::CREATED,
            Json(json!({ "id": 5, "name": "created" })),
        )
    };
    let ended = async || Json(json!({ "status": "succeeded" }));
    let router = Router::new()
        .route("/created", post(created))
        .route("/ended", post(ended));
    let url = serve(router).await;
    let folder = Folder::new();
    let note = "the first answer names no operation and counts as the result";
    folder
        .run(&["operation", &format!("{url}/created")])
        .left(0, &[note, "--status-url"]);
    let ran = folder.run(&["operation", &format!("{url}/ended")]);
    let ran = ran.left(0, &[]);
    assert!(!ran.err.contains(note), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_its_server_has_removed_is_gone() {
    async fn removing(State(shared): State<Arc<Mutex<usize>>>, request: Request) -> Response {
        if request.method() == "POST" {
            let location = [("location", "/lro/7")];
            return (StatusCode::ACCEPTED, location).into_response();
        }
        let mut polls = shared.lock().unwrap();
        *polls += 1;
        match *polls {
            1..=3 => (StatusCode::ACCEPTED, Json(json!({ "status": "running" }))).into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
    for done in [&[][..], &["--done", "body.status == 'ended'"]] {
        let polls = Arc::<Mutex<usize>>::default();
        let router = Router::new().fallback(removing);
        let url = serve(router.with_state(Arc::clone(&polls))).await;
        let folder = Folder::new();
        let mut line = vec!["operation", &url, "--every", "0.01s"];
        line.extend(done);
        folder
            .run(&line)
            .left(1, &["the operation is gone: GET", "answered 404"]);
        assert_eq!(*polls.lock().unwrap(), 4, "{done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_in_lines_is_printed_as_text() {
    async fn batch(request: Request) -> Response {
        let lines = "{\"custom_id\":\"a\"}\n{\"custom_id\":\"b\"}\n";
        match request.uri().path() {
            "/v1/batches" => Json(json!({ "id": "b", "status": "in_progress" })).into_response(),
            "/v1/batches/b" => {
                Json(json!({ "id": "b", "status": "completed", "output_file_id": "f" }))
                    .into_response()
            }
            "/v1/files/f/content" => {
                let kind = [("content-type", "application/octet-stream")];
                (kind, lines).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
    let url = serve(Router::new().fallback(batch)).await;
    let folder = Folder::new();
    let start = format!("{url}/v1/batches");
    let ran = folder.run(&["operation", &start, "--every", "0.01s"]);
    let ran = ran.left(0, &[]);
    assert_eq!(
        ran.out.trim_end(),
        "{\"custom_id\":\"a\"}\n{\"custom_id\":\"b\"}"
    );
}
