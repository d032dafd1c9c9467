//! Responses as real HTTP APIs send them: members that do not exist yet, refusals, servers that are briefly
//! unavailable.

use crate::life::first_use::Folder;
use crate::support::{serve, serve_at};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Status, headers and body of an answer.
type Reply = (u16, &'static [(&'static str, &'static str)], Value);

/// Names and values.
type Headers = Vec<(String, String)>;

/// A server with prepared answers. The last one repeats.
#[derive(Clone)]
struct Script {
    replies: Arc<Vec<Reply>>,
    /// The headers of each request.
    requests: Arc<Mutex<Vec<Headers>>>,
}

impl Script {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Arc::new(replies.into_iter().collect()),
            requests: Arc::default(),
        }
    }

    async fn start(&self) -> String {
        let router = Router::new().fallback(reply).with_state(self.clone());
        format!("{}/job", serve(router).await)
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The values of a header in the requests.
    fn header(&self, name: &str) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let headers = requests.iter().flatten();
        let values = headers.filter(|(known, _)| known == name);
        values.map(|(_, value)| value.clone()).collect()
    }
}

async fn reply(State(script): State<Script>, request: Request) -> Response {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| {
        let value = value.to_str().unwrap_or_default();
        (name.to_string(), value.to_owned())
    });
    let number = {
        let mut requests = script.requests.lock().unwrap();
        requests.push(headers.collect());
        requests.len() - 1
    };
    let last = script.replies.last().unwrap();
    let (status, headers, body) = script.replies.get(number).unwrap_or(last);
    let status = StatusCode::from_u16(*status).unwrap();
    let mut response = match body {
        Value::Null => status.into_response(),
        body => (status, Json(body)).into_response(),
    };
    for (name, value) in *headers {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        response.headers_mut().append(name, value);
    }
    response
}

/// An operation as Google's APIs report it: `done` and `response` do not exist until it has ended.
fn operation() -> Vec<Reply> {
    let running = json!({ "name": "operations/7", "metadata": { "progress": 20 } });
    let response = json!({ "ok": 1, "items": [{ "x": 3 }] });
    let ended =
        json!({ "name": "operations/7", "done": true, "response": response, "tags": ["a"] });
    vec![
        (200, &[], running.clone()),
        (200, &[], running),
        (200, &[], ended),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_waits_for_a_missing_member_in_every_position() {
    let folder = Folder::new();
    for (number, until) in [
        "body.done",
        "body.done == true",
        "body.done != false",
        "not body.error_free and body.done",
        "body.response.ok > 0",
        "body.response.ok | int == 1",
        "body.response.items | length == 1",
        "body.response.items[0].x == 3",
        "body['response']['items'][0]['x'] == 3",
        "'a' in body.tags",
        "body.tags[0] == 'a'",
        "body.tags | join(',') == 'a'",
        "body.response.items | map(attribute='x') | first == 3",
        "@equals(body('look').response.ok, 1)",
        "@body('look').done",
    ]
    .iter()
    .enumerate()
    {
        let script = Script::new(operation());
        let url = script.start().await;
        let id = format!("poll-{number}");
        let ran = folder.run(&[
            "poll", "--url", &url, "--until", until, "--every", "50ms", "--times", "5", "--id", &id,
        ]);
        match until.contains("error_free") {
            false => {
                ran.left(0, &[]);
                assert_eq!(script.requests(), 3, "{until}");
            }
            // A member that never exists is also waited for, and the error at the end names it.
            true => {
                ran.left(4, &["`body.error_free` never appeared"]);
                assert_eq!(script.requests(), 5, "{until}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_names_the_member_that_never_appeared() {
    let folder = Folder::new();
    let running = json!({ "name": "operations/7", "metadata": {} });
    for (number, until, message) in [
        (
            0,
            "body.dune",
            "was not done after its 3 iterations: `body.dune` never appeared; `body`: it has name, metadata",
        ),
        (
            1,
            "body.metadata.rows > 3",
            "`body.metadata.rows` never appeared; `body.metadata`: the object is empty",
        ),
        (2, "body.items[0].x == 1", "`body.items` never appeared"),
    ] {
        let script = Script::new([(200, &[][..], running.clone())]);
        let url = script.start().await;
        let id = format!("poll-{number}");
        let ran = folder.run(&[
            "poll", "--url", &url, "--until", until, "--every", "10ms", "--times", "3", "--id", &id,
        ]);
        ran.left(4, &[message]);
        assert_eq!(script.requests(), 3, "{until}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_a_condition_is_not_waited_for() {
    let folder = Folder::new();
    let script = Script::new(operation());
    let url = script.start().await;
    let line = [
        "poll",
        "--url",
        &url,
        "--until",
        "body.name + 1 == 2",
        "--every",
        "10ms",
    ];
    folder.run(&line).left(1, &["body.name"]);
    assert_eq!(script.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_a_poll_and_what_may_exist_later_does_not() {
    let folder = Folder::new();
    for (status, waits) in [
        (404, true),
        (409, true),
        (425, true),
        (429, true),
        (503, true),
        (600, true),
        (999, true),
        (400, false),
        (401, false),
        (403, false),
        (410, false),
        (422, false),
    ] {
        let script = Script::new([
            (status, &[][..], json!({ "error": "no" })),
            (200, &[][..], json!({ "done": true })),
        ]);
        let url = script.start().await;
        let id = format!("poll-{status}");
        let ran = folder.run(&[
            "poll",
            "--url",
            &url,
            "--until",
            "body.done",
            "--every",
            "10ms",
            "--id",
            &id,
        ]);
        match waits {
            true => {
                ran.left(0, &[]);
                assert_eq!(script.requests(), 2, "{status}");
            }
            false => {
                ran.left(1, &[&status.to_string()]);
                assert_eq!(script.requests(), 1, "{status}");
            }
        }
    }
}

fn one(inputs: &str, more: &str) -> String {
    format!("{more}\nactions:\n  call: {{ type: http, inputs: {{ {inputs} }} }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_repeated_by_default_where_that_is_safe() {
    let folder = Folder::new();
    let busy: &[(&str, &str)] = &[("retry-after", "1")];
    for (number, method, status, headers, expected) in [
        (0, "GET", 503, &[][..], 2),
        (1, "PUT", 500, &[], 2),
        (2, "DELETE", 502, &[], 2),
        (3, "HEAD", 408, &[], 2),
        (4, "GET", 404, &[], 1),
        (5, "POST", 503, &[], 1),
        (6, "POST", 500, &[], 1),
        (7, "PATCH", 408, &[], 1),
        (8, "POST", 429, &[], 2),
        (9, "POST", 503, busy, 2),
        (10, "POST", 403, busy, 2),
        (11, "POST", 403, &[], 1),
        (12, "@{concat('GE', 'T')}", 503, &[], 1),
    ] {
        let script = Script::new([(status, headers, Value::Null), (200, &[][..], json!({}))]);
        let url = script.start().await;
        let name = format!("w{number}.yaml");
        let inputs = format!("method: \"{method}\", uri: \"{url}\"");
        folder.file(&name, one(&inputs, ""));
        let ran = folder.run(&["run", &name]);
        let code = if expected == 2 { 0 } else { 1 };
        ran.left(code, &[]);
        assert_eq!(script.requests(), expected, "{method} {status} {headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_repeated_if_there_was_no_connection() {
    let folder = Folder::new();
    // A port without a listener.
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    folder.file(
        "w.yaml",
        one(&format!("method: POST, uri: \"http://{address}/\""), ""),
    );
    let run = folder.start(&["run", "w.yaml", "--id", "w"]);
    let is_waiting = || {
        let status = folder.run(&["status", "w", "-o", "json"]);
        status.out.contains("not-connected") || status.out.contains("\"attempt\"")
    };
    for _ in 0..600 {
        if is_waiting() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let script = Script::new([(200, &[][..], json!({}))]);
    let router = Router::new().fallback(reply).with_state(script.clone());
    serve_at(address, router).await;
    let output = tokio::task::spawn_blocking(move || run.wait_with_output().unwrap());
    assert!(output.await.unwrap().status.success());
    assert_eq!(script.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_sets_retries_timeouts_and_headers_for_all_its_requests() {
    let folder = Folder::new();
    let fails: [Reply; 2] = [(503, &[], Value::Null), (200, &[], json!({}))];
    for (number, defaults, inputs, code, requests) in [
        (0, "defaults: { retry: none }", "", 1, 1),
        (1, "defaults: { retry: { type: none } }", "", 1, 1),
        (
            2,
            "defaults: { retry: { type: fixed, interval: 10ms, on: [429] } }",
            "",
            1,
            1,
        ),
        (
            3,
            "defaults: { retry: { type: fixed, interval: 10ms } }",
            "",
            0,
            2,
        ),
        (
            4,
            "defaults: { retry: { type: fixed, interval: 10ms } }",
            ", retryPolicy: { type: none }",
            1,
            1,
        ),
    ] {
        let script = Script::new(fails.clone());
        let url = script.start().await;
        let name = format!("w{number}.yaml");
        folder.file(&name, one(&format!("uri: \"{url}\"{inputs}"), defaults));
        folder.run(&["run", &name]).left(code, &[]);
        assert_eq!(script.requests(), requests, "{defaults} {inputs}");
    }
    let script = Script::new([(200, &[][..], json!({}))]);
    let url = script.start().await;
    let defaults =
        "defaults: { headers: { X-Team: \"@{concat('re', 'd')}\", Accept: text/plain } }";
    let inputs = format!("uri: \"{url}\", headers: {{ accept: application/json }}");
    folder.file("headers.yaml", one(&inputs, defaults));
    folder.run(&["run", "headers.yaml"]).left(0, &[]);
    assert_eq!(script.header("x-team"), ["red"]);
    assert_eq!(script.header("accept"), ["application/json"]);
}

#[test]
fn validate_shows_the_retries_of_a_file() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "
actions:
  read: { type: http, inputs: { uri: \"http://localhost/\" } }
  send: { type: http, inputs: { method: POST, uri: \"http://localhost/\" } }
  own: { type: http, inputs: { uri: \"http://localhost/\" }, retry: { type: fixed, count: 7, interval: 2s, on: [5xx] } }
  off: { type: http, inputs: { uri: \"http://localhost/\" }, retry: none }
  twice: { type: retry, action: { type: http, inputs: { uri: \"http://localhost/\" } } }
  both:
    type: scope
    retry: { type: fixed, count: 1, interval: 1s }
    actions:
      one: { type: http, inputs: { uri: \"http://localhost/\" }, retry: none }
  some: { type: http, inputs: { uri: \"http://localhost/\" }, retry: { count: 1, interval: 1s, when: \"1 > 0\" } }
",
    );
    let shown = folder
        .run(&["validate", "w.yaml", "-o", "json"])
        .left(0, &[]);
    let files: Value = serde_json::from_str(&shown.out).unwrap();
    let retries = files[0]["retries"].as_array().unwrap();
    let rows: Vec<String> = retries
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}",
                row["name"], row["count"], row["on"], row["is_default"]
            )
        })
        .collect();
    let expected = [
        r#""read" "3" ["transient"] true"#,
        r#""send" "3" ["unprocessed"] true"#,
        r#""own" "7" ["5xx"] false"#,
        r#""twice" "3" ["any"] false"#,
        r#""both" "1" ["any"] false"#,
        r#""some" "1" ["when 1 > 0"] false"#,
    ];
    assert_eq!(rows, expected);
    let table = folder.run(&["validate", "w.yaml"]).left(0, &[]).out;
    assert!(table.contains("(default)"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_ends_at_a_limit_shows_the_last_answer() {
    let long = "x".repeat(500);
    let server = Script::new([(200, &[][..], json!({ "status": "running", "more": long }))]);
    let url = server.start().await;
    let folder = Folder::new();
    let until = [
        "poll",
        "--url",
        &url,
        "--until",
        "body.status == 'done'",
        "--every",
        "20ms",
    ];
    for (limit, code) in [(["--times", "3"], 4), (["--timeout", "0.5s"], 5)] {
        let mut line = until.to_vec();
        line.extend(limit);
        let shown = "; the last answer was 200: {\"status\":\"running\",\"more\":\"xxx";
        let printed = folder.run(&line).left(code, &[shown]);
        assert!(printed.err.len() < 600, "{}", printed.err);
    }
    // The same with a command.
    let command = [
        "poll",
        "--every",
        "20ms",
        "--times",
        "2",
        "--",
        "sh",
        "-c",
        "echo not yet; exit 3",
    ];
    folder
        .run(&command)
        .left(4, &["; the last exit code was 3: not yet"]);
}
