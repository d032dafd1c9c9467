//! `cancel` of `operation`: if the run ends before an operation at another server, the operation is cancelled once,
//! also after a kill.

use crate::life::first_use::Folder;
use crate::serve::Start;
use crate::support::serve;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A server with operations: `/start` runs until it is cancelled, `/fail` fails, `/end` ends, and `/refuse` is refused.
#[derive(Clone, Default)]
struct Server {
    seen: Arc<Mutex<Seen>>,
    polled: Arc<Notify>,
    cancelling: Arc<Notify>,
    /// Whether the first cancel is not answered.
    is_silent: bool,
}

#[derive(Default)]
struct Seen {
    /// Method, path, key and token of each cancel.
    cancels: Vec<[String; 4]>,
}

impl Server {
    async fn start(&self) -> String {
        serve(Router::new().fallback(answer).with_state(self.clone())).await
    }

    /// Method and path of the cancels.
    fn cancels(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let cancels = seen.cancels.iter();
        cancels
            .map(|[method, path, ..]| format!("{method} {path}"))
            .collect()
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let (method, path) = (head.method.to_string(), head.uri.path());
    let header = |name: &str| {
        let value = head.headers.get(name);
        value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    let operation = |state: &str| Json(json!({ "id": 7, "status": state })).into_response();
    match (method.as_str(), path) {
        ("POST", "/refuse") => StatusCode::BAD_REQUEST.into_response(),
        ("POST", "/start" | "/fail" | "/end") => operation("running"),
        ("GET", "/start/7") => {
            server.polled.notify_one();
            operation("running")
        }
        ("GET", "/fail/7") => operation("failed"),
        ("GET", "/end/7") => operation("succeeded"),
        ("POST", "/start/7/refused") => StatusCode::FORBIDDEN.into_response(),
        _ => {
            let cancel = [
                method.clone(),
                path.to_owned(),
                header("idempotency-key"),
                header("authorization"),
            ];
            let is_first = {
                let mut seen = server.seen.lock().unwrap();
                seen.cancels.push(cancel);
                seen.cancels.len() == 1
            };
            server.cancelling.notify_one();
            if server.is_silent && is_first {
                std::future::pending::<()>().await;
            }
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

/// A workflow with an operation that has further keys.
fn workflow(url: &str, start: &str, more: &str) -> String {
    format!(
        "
actions:
  query:
    type: operation
    inputs: {{ uri: \"{url}/{start}\", headers: {{ authorization: token }} }}
    delay: 10ms
    cancel: \"/{start}/@{{body('query.start').id}}/cancel\"
    {more}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_cancels_its_operation_once() {
    let folder = Folder::new();
    let server = Server::default();
    let url = server.start().await;
    folder.file(
        "w.yaml",
        workflow(&url, "start", "") + "on_finish: { type: shell, run: \"echo x >> finished\" }\n",
    );
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    server.polled.notified().await;
    tokio::task::block_in_place(|| {
        folder.run(&["cancel", "r"]).left(0, &[]);
        run.wait().unwrap();
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
        let resumed = folder.run(&["resume", "r"]);
        assert!(!resumed.out.contains("running"), "{resumed:?}");
    });
    assert_eq!(server.cancels(), ["POST /start/7/cancel"]);
    let seen = server.seen.lock().unwrap();
    let [_, _, key, token] = &seen.cancels[0];
    assert!(!key.is_empty());
    assert_eq!(token, "token");
    assert_eq!(folder.lines("finished"), 0, "no `on_finish` after a cancel");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_takes_too_long_is_cancelled_before_the_endings() {
    let folder = Folder::new();
    let server = Server::default();
    let url = server.start().await;
    let ending = "on_failure: { type: shell, run: \"echo $HOW >> failed\", env: { HOW: \"@actions('query.cancel').status\" } }
on_finish: { type: shell, run: \"echo x >> finished\" }
";
    let limit = "limit: { timeout: 300ms }";
    folder.file("w.yaml", workflow(&url, "start", limit) + ending);
    folder.run(&["run", "w.yaml"]).left(5, &["query"]);
    assert_eq!(server.cancels(), ["POST /start/7/cancel"]);
    assert_eq!(folder.read("failed"), "Succeeded\n");
    assert_eq!(folder.lines("finished"), 1);

    // The same if the failure is handled, and with other inputs of the cancel.
    let inputs = format!("{limit}\n    continue_on_error: true");
    let own = workflow(&url, "start", &inputs).replace(
        "cancel: \"/start/@{body('query.start').id}/cancel\"",
        &format!("cancel: {{ method: DELETE, uri: \"{url}/start/@{{body('query.start').id}}\" }}"),
    );
    folder.file("w.yaml", own);
    folder.run(&["run", "w.yaml"]).left(0, &[]);
    assert_eq!(server.cancels()[1..], ["DELETE /start/7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_has_ended_or_not_begun_is_not_cancelled() {
    let folder = Folder::new();
    let server = Server::default();
    let url = server.start().await;
    for (start, code) in [("end", 0), ("fail", 1), ("refuse", 1)] {
        folder.file("w.yaml", workflow(&url, start, ""));
        folder.run(&["run", "w.yaml"]).left(code, &[]);
        assert_eq!(server.cancels(), [""; 0], "{start}");
    }
    // The author's own conditions for the end.
    let failed = "failed: \"@equals(body('query.status').status, 'failed')\"
    done: \"@equals(body('query.status').status, 'ended')\"
    status: \"URL/fail/7\"";
    folder.file(
        "w.yaml",
        workflow(&url, "fail", &failed.replace("URL", &url)),
    );
    folder.run(&["run", "w.yaml"]).left(1, &["query.status"]);
    assert_eq!(server.cancels(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_around_the_cancel_neither_loses_nor_doubles_it() {
    let folder = Folder::new();
    // The process is killed while the cancel is sent, and the same request is sent again.
    let server = Server {
        is_silent: true,
        ..Server::default()
    };
    let url = server.start().await;
    let limit = "limit: { timeout: 300ms }";
    folder.file("w.yaml", workflow(&url, "start", limit));
    let mut run = folder.start(&["run", "w.yaml", "--id", "sent"]);
    server.cancelling.notified().await;
    run.kill().unwrap();
    run.wait().unwrap();
    tokio::task::block_in_place(|| folder.run(&["resume", "sent"]).left(5, &[]));
    {
        let seen = server.seen.lock().unwrap();
        let [first, second] = &seen.cancels[..] else {
            panic!("{:?}", seen.cancels);
        };
        assert_eq!(first, second);
        assert!(!first[2].is_empty());
    }

    // The process is killed before the cancel, and the run is cancelled while no process owns the store. The next
    // process sends the cancel.
    let server = Server::default();
    let url = server.start().await;
    folder.file("w.yaml", workflow(&url, "start", ""));
    let mut run = folder.start(&["run", "w.yaml", "--id", "before"]);
    server.polled.notified().await;
    run.kill().unwrap();
    run.wait().unwrap();
    tokio::task::block_in_place(|| {
        folder.run(&["cancel", "before"]).left(0, &[]);
        assert_eq!(server.cancels(), [""; 0]);
        folder.run(&["resume", "before"]);
        let status = folder.run(&["status", "before"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
    });
    assert_eq!(server.cancels(), ["POST /start/7/cancel"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_cancel_ends_the_run_also_one_that_was_paused() {
    let folder = Folder::new();
    let server = Server {
        is_silent: true,
        ..Server::default()
    };
    let url = server.start().await;
    folder.file("w.yaml", workflow(&url, "start", ""));
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    server.polled.notified().await;
    tokio::task::block_in_place(|| {
        folder.run(&["pause", "r"]).left(0, &[]);
        run.wait().unwrap();
        let printed = folder.run(&["cancel", "r"]);
        printed.left(0, &["`r` ends when what it started elsewhere is cancelled"]);
    });
    let mut run = folder.start(&["resume", "r"]);
    server.cancelling.notified().await;
    tokio::task::block_in_place(|| {
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        let address = format!("POST {url}/start/7/cancel");
        assert!(status.contains(&address), "{status}");
        folder.run(&["cancel", "r"]).left(0, &[]);
        run.wait().unwrap();
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
    });
    assert_eq!(server.cancels().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_cancels_its_operation() {
    let folder = Folder::new();
    let server = Server::default();
    let url = server.start().await;
    let start = format!("{url}/start");
    let line = ["operation", &start, "--every", "0.01s", "--timeout", "0.3s"];
    let mut line = line.to_vec();
    line.extend(["--cancel", "/start/@{body('operation.start').id}/cancel"]);
    folder.run(&line).left(5, &[]);
    assert_eq!(server.cancels(), ["POST /start/7/cancel"]);
}

#[test]
fn a_cancel_is_refused_where_the_end_knows_no_single_start() {
    let folder = Folder::new();
    let operation = "{ type: operation, inputs: { uri: \"http://127.0.0.1:1/\" }, cancel: /c }";
    let retried = operation.replace(
        "cancel:",
        "retry: { type: fixed, count: 2, interval: 1s }, cancel:",
    );
    let places = [
        (format!("actions: {{ query: {retried} }}"), "a retry"),
        (
            format!(
                "actions: {{ all: {{ type: foreach, foreach: [1], actions: {{ query: {operation} }} }} }}"
            ),
            "a foreach",
        ),
        (
            format!(
                "actions: {{ all: {{ type: until, condition: \"@equals(body('query').x, 1)\", delay: 1s, actions: {{ query: {operation} }} }} }}"
            ),
            "a loop",
        ),
        (
            format!(
                "actions: {{ a: {{ type: compose, inputs: 1 }} }}\non_finish: {{ actions: {{ query: {operation} }} }}"
            ),
            "`on_failure` and `on_finish`",
        ),
    ];
    for (text, place) in places {
        folder.file("w.yaml", text + "\n");
        let refused = format!("`cancel` of `query` does not work in {place}");
        folder.run(&["validate", "w.yaml"]).left(3, &[&refused]);
    }
    folder.file("w.yaml", format!("actions: {{ query: {operation} }}\n"));
    folder.run(&["validate", "w.yaml"]).left(0, &[]);
}

/// A command of a folder that has its workflow's secret.
fn start_with_secret(folder: &Folder, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .current_dir(folder.path())
        .env_remove("WINDLASS_STATE")
        .env("WINDLASS_SECRET_TOKEN", "open sesame")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_whose_secret_is_missing_waits_for_it() {
    let folder = Folder::new();
    let server = Server::default();
    let url = server.start().await;
    let file = workflow(&url, "start", "").replace(": token }", ": \"${secret:TOKEN}\" }");
    folder.file("w.yaml", file);
    let mut run = start_with_secret(&folder, &["run", "w.yaml", "--id", "r", "--label", "a=b"]);
    server.polled.notified().await;
    run.kill().unwrap();
    run.wait().unwrap();
    let state = folder.path().join("state");
    let without = Start::new(&state).spawn();
    tokio::task::block_in_place(|| {
        let printed = folder.run(&["cancel", "r"]);
        printed.left(0, &["which waits", "needs the secret `TOKEN`"]);
        // A repeated cancel changes nothing.
        folder.run(&["cancel", "--label", "a=b"]).left(0, &[]);
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(
            status.contains("parked    `query.cancel` needs"),
            "{status}"
        );
        folder
            .run(&["resume", "r"])
            .left(3, &["the secret `TOKEN`"]);
    });
    assert_eq!(server.cancels(), [""; 0]);
    without.kill();
    let mut resumed = start_with_secret(&folder, &["resume", "r"]);
    server.cancelling.notified().await;
    tokio::task::block_in_place(|| {
        resumed.wait().unwrap();
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
    });
    let seen = server.seen.lock().unwrap();
    let [[_, path, _, token]] = &seen.cancels[..] else {
        panic!("{:?}", seen.cancels);
    };
    assert_eq!((&**path, &**token), ("/start/7/cancel", "open sesame"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_cancel_is_reported_by_the_end_and_by_status() {
    let folder = Folder::new();
    let url = Server::default().start().await;
    let limit = "limit: { timeout: 300ms }";
    let file = workflow(&url, "start", limit).replace("/cancel\"", "/refused\"");
    folder.file("w.yaml", file);
    let failed = "the operation `query` was not cancelled: POST";
    folder
        .run(&["run", "w.yaml", "--id", "r"])
        .left(5, &[failed, "403 Forbidden"]);
    let status = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(status.contains(&format!("cancel    {failed}")), "{status}");
    let status = folder.run(&["status", "r", "-o", "json"]).left(0, &[]).out;
    assert!(status.contains("\"operation\":\"query\""), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_cancel_of_many_runs_waits_for_their_operations() {
    let folder = Folder::new();
    let server = Server {
        is_silent: true,
        ..Server::default()
    };
    let url = server.start().await;
    folder.file("w.yaml", workflow(&url, "start", ""));
    let mut run = folder.start(&["run", "w.yaml", "--id", "r", "--label", "a=b"]);
    server.polled.notified().await;
    let many = ["cancel", "--label", "a=b"];
    tokio::task::block_in_place(|| folder.run(&many).left(0, &["1 run in all"]));
    server.cancelling.notified().await;
    tokio::task::block_in_place(|| {
        for _ in 0..2 {
            let printed = folder.run(&many).left(0, &["1 run in all"]);
            assert!(printed.out.contains("r  Running"), "{printed:?}");
        }
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(!status.contains("ended"), "{status}");
        folder.run(&["cancel", "r"]);
        run.wait().unwrap();
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
    });
    assert_eq!(server.cancels().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cancel_of_a_parent_waits_for_the_operations_of_its_child() {
    let folder = Folder::new();
    let server = Server {
        is_silent: true,
        ..Server::default()
    };
    let url = server.start().await;
    folder.file("child.yaml", workflow(&url, "start", ""));
    folder.file(
        "w.yaml",
        "actions: { call: { type: workflow, workflow: child.yaml } }\n",
    );
    let mut serves = folder.start(&["serve", "--listen", "127.0.0.1:0"]);
    folder.wait_for(|files| files.iter().any(|file| file == "state"));
    tokio::task::block_in_place(|| {
        while folder.run(&["run", "w.yaml", "--id", "r", "--detach"]).code != Some(0) {}
    });
    server.polled.notified().await;
    tokio::task::block_in_place(|| folder.run(&["cancel", "r"]).left(0, &[]));
    server.cancelling.notified().await;
    let child = || {
        let listed = folder.run(&["list", "--label", "windlass.parent=r"]);
        listed.left(0, &[]).out
    };
    tokio::task::block_in_place(|| {
        assert!(!child().contains("Cancelled"), "its cancel is not answered");
        serves.kill().unwrap();
        serves.wait().unwrap();
        folder.run(&["resume"]);
        assert!(child().contains("Cancelled"));
    });
    assert_eq!(server.cancels().len(), 2, "sent again after the kill");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_cancel_of_a_run_that_fails_waits_for_its_operations() {
    let folder = Folder::new();
    let server = Server {
        is_silent: true,
        ..Server::default()
    };
    let url = server.start().await;
    let file = workflow(&url, "start", "limit: { timeout: 300ms }");
    folder.file(
        "w.yaml",
        file + "on_failure: { type: shell, run: \"echo x >> failed\" }\n",
    );
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    server.cancelling.notified().await;
    tokio::task::block_in_place(|| {
        let printed = folder.run(&["cancel", "r"]);
        printed.left(0, &["`r` ends when what it started elsewhere is cancelled"]);
        run.kill().unwrap();
        run.wait().unwrap();
        folder.run(&["resume", "r"]);
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        assert!(status.contains("cancelled"), "{status}");
    });
    assert_eq!(server.cancels().len(), 2, "sent again after the kill");
    assert_eq!(folder.lines("failed"), 0, "no `on_failure` after a cancel");
}
