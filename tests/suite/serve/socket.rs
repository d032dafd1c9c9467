//! The control socket: the same API as over TCP, only for the operator.

use super::{COUNT, PATIENCE, SLEEP, Server, Start, parts, windlass, with};
use crate::life::process::Place;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use tokio::time::Instant;

fn ask(state: &Path, method: Method, path: &str) -> RequestBuilder {
    let client = Client::builder()
        .unix_socket(state.join("control.sock"))
        .timeout(PATIENCE);
    let url = format!("http://localhost{path}");
    client.build().unwrap().request(method, url)
}

async fn get(state: &Path, path: &str) -> (u16, Value) {
    parts(ask(state, Method::GET, path).send().await.unwrap()).await
}

async fn post(state: &Path, path: &str, body: &Value) -> (u16, Value) {
    let request = with(ask(state, Method::POST, path), body);
    parts(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_serves_the_api_to_the_operator() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).token("secret").spawn();
    let mode = std::fs::metadata(state.join("control.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let (status, owner) = get(&state, "/v1/owner").await;
    assert_eq!(status, 200);
    assert_eq!(owner["pid"], server.child.id());
    assert_eq!(owner["serves"], true);
    // No token, any host name, and what only the operator may do.
    let mark = place.dir.path().join("mark");
    let shell = format!(
        "actions: {{ a: {{ type: shell, run: touch {} }} }}",
        mark.display()
    );
    let folder = place.dir.path().to_str().unwrap();
    let start =
        json!({ "text": shell, "run": "mine", "local": { "max_count": 3, "folder": folder } });
    let (status, run) = post(&state, "/v1/runs", &start).await;
    assert_eq!(status, 201, "{run}");
    let (_, outcome) = get(&state, "/v1/runs/mine/result?wait=60").await;
    assert_eq!(outcome["status"], "Succeeded", "{outcome}");
    assert!(mark.exists());
    let copy = place.dir.path().join("copy");
    let (status, copied) = post(&state, "/v1/backup", &json!({ "dir": copy })).await;
    assert_eq!((status, &copied["runs"]), (200, &json!(1)), "{copied}");
    let (status, problem) = post(&state, "/v1/backup", &json!({ "dir": copy })).await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &json!("urn:windlass:store-exists"))
    );

    // A process that only executes its own runs serves the socket, too.
    let other = Place::new();
    let file = other.file("sleep.yaml", SLEEP);
    let mut run = other.follow(&["run", &file, "--id", "r"]);
    run.until("TimerSet", "nap");
    let (_, owner) = get(&other.state(), "/v1/owner").await;
    assert_eq!(owner["pid"], run.child.id());
    assert_eq!(owner["serves"], false);
    let (_, list) = get(&other.state(), "/v1/runs").await;
    assert_eq!(list["runs"][0]["run"], "r");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_operators_is_refused_over_tcp() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let server = Start::new(&state).token("secret").spawn();
    let copy = dir.path().join("copy");
    let shell = "actions: { a: { type: shell, run: 'true' } }";
    let stub = json!([["h", { "stub": [] }]]);
    for (path, body) in [
        ("/v1/backup", json!({ "dir": copy })),
        ("/v1/runs", json!({ "text": COUNT, "local": {} })),
        (
            "/v1/runs",
            json!({ "text": COUNT, "local": { "handlers": stub } }),
        ),
        (
            "/v1/runs",
            json!({ "text": COUNT, "local": { "max_count": 1 } }),
        ),
        (
            "/v1/runs",
            json!({ "text": COUNT, "local": { "folder": "/" } }),
        ),
        (
            "/v1/runs",
            json!({ "text": shell, "local": { "folder": "/" } }),
        ),
    ] {
        let with_body = || with(server.ask(Method::POST, path), &body);
        assert_eq!(
            parts(with_body().send().await.unwrap()).await.0,
            401,
            "{path}"
        );
        // No header of a request gives it the operator's permissions.
        for (name, value) in [
            ("x-forwarded-for", "127.0.0.1"),
            ("forwarded", "for=unix:"),
            ("accept", "*/*"),
        ] {
            let request = with_body().bearer_auth("secret").header(name, value);
            let (status, problem) = parts(request.send().await.unwrap()).await;
            assert_eq!(status, 403, "{path} {body}: {problem}");
            assert_eq!(problem["type"], "urn:windlass:local-only", "{path}");
        }
    }
    let owner = server.ask(Method::GET, "/v1/owner").bearer_auth("secret");
    assert_eq!(parts(owner.send().await.unwrap()).await.0, 403);
    // A workflow that arrived over TCP stays untrusted, whichever client starts it.
    let put = with(
        server.ask(Method::PUT, "/v1/workflows/w"),
        &json!({ "text": COUNT }),
    );
    assert_eq!(
        parts(put.bearer_auth("secret").send().await.unwrap())
            .await
            .0,
        201
    );
    let denied = with(
        server.ask(Method::POST, "/v1/runs"),
        &json!({ "text": shell }),
    );
    let (status, problem) = parts(denied.bearer_auth("secret").send().await.unwrap()).await;
    assert_eq!(
        (status, &problem["type"]),
        (422, &json!("urn:windlass:refused-workflow"))
    );
    assert!(!copy.exists());
    let (_, list) = get(&state, "/v1/runs").await;
    assert_eq!(list["runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_owner_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.signal(nix::sys::signal::Signal::SIGSTOP);
    let begun = Instant::now();
    let output = windlass(dir.path(), &["list"]);
    server.signal(nix::sys::signal::Signal::SIGCONT);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(
        stderr.contains("does not answer; is it stopped?"),
        "{stderr}"
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(windlass(dir.path(), &["list"]).status.success());
}

/// An owner of an earlier version, which uses JSON lines.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_another_version_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("control.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let reply =
                "{\"reply\":\"refused\",\"kind\":\"bad_request\",\"message\":\"no JSON\"}\n";
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    let output = windlass(dir.path(), &["list"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(
        stderr.contains("this version does not understand"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_in_a_deep_directory_and_one_that_a_crash_left_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir
        .path()
        .join("a-directory-with-a-long-name".repeat(6))
        .join("state");
    std::fs::create_dir_all(&state).unwrap();
    for round in 0..2 {
        let server = Server::start(&state);
        let run = server.begin(COUNT, json!({ "to": 2 })).await;
        server.end(&run).await;
        let listed = windlass(&state, &["list", "-o", "json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), round + 1, "{listed}");
        server.kill();
        assert!(state.join("control.sock").exists());
    }
    // No server runs, so the command opens the store itself.
    assert!(windlass(&state, &["list"]).status.success());
}
