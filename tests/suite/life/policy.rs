//! What workflows that arrive over HTTP may not do, at their start and while they run.

use super::process::Place;
use crate::serve::{Server, Start};
use crate::support::serve;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn strict(place: &Place, args: &[&str]) -> Server {
    let state = place.state();
    Start::new(&state).args(args).spawn_with(|command| {
        command.env_remove("WINDLASS_ALLOW_PRIVATE_NETWORK");
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_seen_before_a_run_is_refused_when_it_is_loaded() {
    let place = Place::new();
    let server = strict(&place, &[]);
    for (text, allowed_by) in [
        ("actions: { a: { type: shell, run: id } }", "--allow-shell"),
        (
            "actions: { a: { type: appendFile, path: /tmp/x, text: x } }",
            "--allow-files",
        ),
        (
            "actions: { a: { type: http, uri: 'http://h/x', saveTo: /tmp/x } }",
            "--allow-files",
        ),
        (
            "actions: { a: { type: http, method: PUT, uri: 'http://h/x', bodyFile: /etc/passwd } }",
            "--allow-files",
        ),
        (
            "handlers: { h: { command: [id] } }\n\
             actions: { a: { type: activity, inputs: { activityType: h } } }",
            "--allow-shell",
        ),
    ] {
        let (status, response) = server.post("/v1/runs", &json!({ "text": text })).await;
        assert_eq!(status, 422, "{response}");
        let found = &response["diagnostics"][0];
        assert_eq!(found["code"], "denied", "{response}");
        assert!(response.to_string().contains(allowed_by), "{response}");
    }
    // Each is permitted only by its own flag.
    drop(server);
    let server = strict(&place, &["--allow-shell"]);
    let text = "actions: { a: { type: shell, run: 'echo 7' } }\noutputs: \"@body('a')\"";
    let run = server.begin(text, json!({})).await;
    assert_eq!(server.end(&run).await["output"], 7);
    // The operator's own commands are not restricted.
    let file = place.file("own.yaml", "actions: { a: { type: shell, run: 'true' } }");
    let own = place.run(&["run", &file]);
    assert!(own.status.success(), "{own:?}");
}

const CALL: &str = "
inputs: { uri: { type: string } }
actions:
  wait: { type: waitForSignal, signal: go }
  call: { type: http, uri: \"@inputs('uri')\" }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_reaches_no_private_address_also_after_a_restart() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    let router = Router::new().route(
        "/",
        get(move || {
            count.fetch_add(1, Ordering::SeqCst);
            async { "reached" }
        }),
    );
    let base = serve(router).await;
    let port = base.rsplit(':').next().unwrap().to_owned();
    let place = Place::new();
    let server = strict(&place, &[]);
    let mut runs = Vec::new();
    for host in [
        "localhost",
        "[::1]",
        "0x7f.1",
        "169.254.169.254",
        "127.0.0.1",
    ] {
        let uri = format!("http://{host}:{port}/");
        runs.push(server.begin(CALL, json!({ "uri": uri })).await);
    }
    server.kill();

    let server = strict(&place, &[]);
    let last = runs.pop().unwrap();
    for run in &runs {
        let signal = json!({ "name": "go" });
        let (status, response) = server
            .post(&format!("/v1/runs/{run}/signal"), &signal)
            .await;
        assert!(status < 300, "{status} {response}");
        let outcome = server.end(run).await;
        assert_eq!(outcome["error"]["kind"], "denied", "{outcome}");
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("--allow-private-network"), "{message}");
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
    server.kill();
    // If the permissions change, a run that was started earlier may use them.
    let server = strict(&place, &["--allow-private-network"]);
    let run = last;
    let (status, response) = server
        .post(&format!("/v1/runs/{run}/signal"), &json!({ "name": "go" }))
        .await;
    assert!(status < 300, "{status} {response}");
    let outcome = server.end(&run).await;
    assert_eq!(outcome["error"], Value::Null, "{outcome}");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

const COMMANDS: &str = "
handlers: { h: { command: [cat] } }
actions:
  wait: { type: waitForSignal, signal: go }
  FIRST
outputs: \"@outputs('a')\"
";

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_are_those_of_the_server_that_starts_an_action() {
    let place = Place::new();
    let shell = COMMANDS.replace("FIRST", "a: { type: shell, run: 'echo 7' }");
    let handler = COMMANDS.replace(
        "FIRST",
        "a: { type: activity, inputs: { activityType: h, input: 7 } }",
    );
    let go = async |server: &Server, run: &str| {
        let path = format!("/v1/runs/{run}/signal");
        let (status, response) = server.post(&path, &json!({ "name": "go" })).await;
        assert!(status < 300, "{status} {response}");
        server.end(run).await
    };
    let by_name = json!({ "workflow": "kept" });
    let server = strict(&place, &["--allow-shell"]);
    let put = server.ask(reqwest::Method::PUT, "/v1/workflows/kept");
    let put = put.header("content-type", "application/yaml");
    let put = put.body(shell.clone()).send().await.unwrap();
    assert_eq!(put.status(), 201);
    let mut runs = Vec::new();
    for text in [&shell, &handler, &shell] {
        runs.push(server.begin(text, json!({})).await);
    }
    let last = runs.pop().unwrap();
    server.kill();

    // The permission is revoked for saved workflows and for active runs.
    let server = strict(&place, &[]);
    let (status, response) = server.post("/v1/runs", &by_name).await;
    assert_eq!(status, 422, "{response}");
    assert_eq!(response["diagnostics"][0]["code"], "denied", "{response}");
    assert!(response.to_string().contains("--allow-shell"), "{response}");
    // The workflow can still be read.
    let (status, response) = server.get("/v1/workflows/kept").await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["warnings"][0]["code"], "denied", "{response}");
    for run in &runs {
        let outcome = go(&server, run).await;
        assert_eq!(outcome["error"]["kind"], "denied", "{outcome}");
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("--allow-shell"), "{message}");
    }
    server.kill();

    // The permission is granted again, also to existing workflows and runs.
    let server = strict(&place, &["--allow-shell"]);
    let (status, response) = server.post("/v1/runs", &by_name).await;
    assert_eq!(status, 201, "{response}");
    let started = response["run"].as_str().unwrap().to_owned();
    for run in [&started, &last] {
        let outcome = go(&server, run).await;
        assert_eq!(outcome["output"]["body"], 7, "{outcome}");
    }
    // A process without a server uses its own flags.
    let run = server.begin(&shell, json!({})).await;
    let path = format!("/v1/runs/{run}/signal");
    server
        .post(&format!("/v1/runs/{run}/pause"), &json!({}))
        .await;
    server.post(&path, &json!({ "name": "go" })).await;
    assert!(server.stop().0.success());
    let resumed = place.run(&["resume", &run, "--allow-shell", "-o", "json"]);
    assert!(resumed.status.success(), "{resumed:?}");
}

const SECRET: &str = "
inputs: { uri: { type: string } }
actions:
  wait: { type: waitForSignal, signal: go }
  call: { type: http, uri: \"@inputs('uri')\", headers: { authorization: \"${secret:API_KEY}\" } }
outputs: \"@body('call')\"
";

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_names_only_the_secrets_that_it_is_let() {
    let echo = |headers: axum::http::HeaderMap| async move {
        let given = headers["authorization"].to_str().unwrap();
        axum::Json(json!({ "length": given.len() }))
    };
    let base = serve(Router::new().route("/", get(echo))).await;
    let place = Place::new();
    let state = place.state();
    let with = |args: &[&str]| {
        Start::new(&state).args(args).spawn_with(|command| {
            command.env("WINDLASS_SECRET_API_KEY", "0123456789");
        })
    };
    let input = json!({ "uri": base });
    let body = json!({ "text": SECRET, "input": input });
    for args in [&[][..], &["--allow-secret", "API,OTHER_*"]] {
        let server = with(args);
        let (status, response) = server.post("/v1/runs", &body).await;
        assert_eq!(status, 422, "{response}");
        let found = &response["diagnostics"][0];
        assert_eq!(found["code"], "denied", "{response}");
        let hint = found["hint"].as_str().unwrap();
        assert!(hint.ends_with("--allow-secret API_KEY"), "{hint}");
        // The answer does not reveal which secrets exist.
        let guess = body.to_string().replace("API_KEY", "GUESSED");
        let guess = serde_json::from_str(&guess).unwrap();
        let (_, other) = server.post("/v1/runs", &guess).await;
        let [diagnostics, other] =
            [response, other].map(|diagnostics| diagnostics["diagnostics"].clone());
        assert_eq!(
            other.as_array().unwrap().len(),
            diagnostics.as_array().unwrap().len(),
            "{other}"
        );
    }
    // The operator's own workflow may name it.
    let file = place.file(
        "own.yaml",
        &SECRET.replace("  wait: { type: waitForSignal, signal: go }\n", ""),
    );
    let uri = format!("uri={base}");
    let run = place.command(&["run", &file, "-i", &uri, "-o", "json"]);
    let output = { run }
        .env("WINDLASS_SECRET_API_KEY", "0123456789")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"{\"length\":10}\n", "{output:?}");

    let server = with(&["--allow-secret", "OTHER,API_*"]);
    let first = server.begin(SECRET, input.clone()).await;
    let second = server.begin(SECRET, input).await;
    let go = |run: &str| format!("/v1/runs/{run}/signal");
    server.post(&go(&first), &json!({ "name": "go" })).await;
    assert_eq!(server.end(&first).await["output"], json!({ "length": 10 }));
    server.kill();
    // The permission is revoked, also for active runs.
    let server = with(&[]);
    server.post(&go(&second), &json!({ "name": "go" })).await;
    let outcome = server.end(&second).await;
    assert_eq!(outcome["error"]["kind"], "denied", "{outcome}");
}
