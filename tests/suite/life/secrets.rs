//! A canary: a secret is sent in headers, in a body, in an environment and in a failure, and comes back from all of
//! them. It must not appear in anything that Windlass writes.

use super::first_use::Folder;
use super::process::{Place, bytes_of};
use crate::serve::{Server, Start};
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::Output;
use std::sync::{Arc, Mutex};

const CANARY: &str = "cAnAry-8f3d/\"quoted\" 71";

type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Stores each request, and returns it in every form; the second time with a failure.
async fn echo(State(seen): State<Seen>, headers: HeaderMap, body: String) -> Response {
    let bearer = headers["authorization"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push((bearer.clone(), body.clone()));
    let status = if headers.contains_key("x-fail") {
        StatusCode::IM_A_TEAPOT
    } else {
        StatusCode::OK
    };
    let encoded = STANDARD.encode(format!("user:{CANARY}"));
    let response = json!({ "bearer": bearer, "body": body, "encoded": encoded, CANARY: 1 });
    (status, [("x-echo", bearer)], Json(response)).into_response()
}

const WORKFLOW: &str = r#"
name: canary
inputs: { base: { type: string } }
variables: { kept: null }
actions:
  call:
    type: http
    inputs:
      method: POST
      uri: "@{inputs('base')}/echo"
      headers: { authorization: "Bearer ${secret:TOKEN}" }
      body: { a: "@secret('TOKEN')", b: "{{ secrets.TOKEN }}!" }
  keep: { type: setVariable, name: kept, value: "@body('call')" }
  shell:
    type: shell
    run: 'printf "%s" "$TOKEN"; printf "%s" "$TOKEN" >&2'
    env: { TOKEN: "@secret('TOKEN')" }
  approval: { type: waitForSignal, signal: go }
  refused:
    type: http
    inputs:
      method: POST
      uri: "@{inputs('base')}/echo"
      headers: { authorization: "Bearer ${secret:TOKEN}", x-fail: "1" }
      body: "@outputs('shell').stdout"
"#;

fn holds(text: &[u8], needle: &str) -> bool {
    text.windows(needle.len())
        .any(|part| part == needle.as_bytes())
}

/// The text must not contain the canary in any form.
fn assert_clean(what: &str, text: &[u8]) {
    for form in ["cAnAry", &STANDARD.encode("user:cAnAry")[8..12]] {
        assert!(
            !holds(text, form),
            "{what}: {}",
            String::from_utf8_lossy(text)
        );
    }
}

fn clean(what: &str, output: Output) -> Output {
    assert_clean(what, &output.stdout);
    assert_clean(what, &output.stderr);
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_world_and_nothing_that_is_written() {
    let seen = Seen::default();
    let router = Router::new().route("/echo", post(echo));
    let base = serve(router.with_state(seen.clone())).await;
    let place = Place::new();
    let secrets = place.dir.path().join("secrets");
    std::fs::create_dir(&secrets).unwrap();
    std::fs::write(secrets.join("TOKEN"), format!("{CANARY}\n")).unwrap();
    let secrets = secrets.to_str().unwrap().to_owned();
    let file = place.file("canary.yaml", WORKFLOW);

    let stdout = tokio::task::spawn_blocking(move || {
        let base = format!("base={base}");
        let args = [
            "run",
            &file,
            "--id",
            "c",
            "-i",
            &base,
            "--secrets",
            &secrets,
        ];
        let mut run = place.follow(&args);
        run.until("ActionEnded", "shell");
        // The process is killed during the run, so that intermediate data is checked too.
        run.kill();
        assert_clean("the store of a killed process", &bytes_of(&place.state()));
        assert!(place.run(&["signal", "c", "go"]).status.success());
        let resume = [
            "resume",
            "c",
            "--secrets",
            &secrets,
            "--events",
            "jsonl",
            "-v",
            "-v",
        ];
        let resumed = clean("resume", place.run(&resume));
        assert_eq!(resumed.status.code(), Some(1), "{resumed:?}");
        for args in [
            &["dump", "c", "-o", "json"][..],
            &["dump", "c"],
            &["status", "c", "-o", "json"],
            &["status", "c"],
            &["history", "c", "-o", "json"],
            &["list", "-o", "json"],
        ] {
            let output = clean(&args.join(" "), place.run(args));
            assert!(output.status.success(), "{args:?} {output:?}");
        }
        assert_clean("the store", &bytes_of(&place.state()));
        // The masked text is present.
        let dump = place.run(&["dump", "c", "-o", "json"]).stdout;
        assert!(
            holds(&dump, "Bearer ***"),
            "{}",
            String::from_utf8_lossy(&dump)
        );
    });
    stdout.await.unwrap();

    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "{seen:?}");
    let bearer = format!("Bearer {CANARY}");
    assert!(seen.iter().all(|(header, _)| *header == bearer), "{seen:?}");
    let body: Value = serde_json::from_str(&seen[0].1).unwrap();
    assert_eq!(body, json!({ "a": CANARY, "b": format!("{CANARY}!") }));
    // The output of the shell was stored masked.
    assert_eq!(seen[1].1, "***");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_server_says_holds_a_secret() {
    let seen = Seen::default();
    let router = Router::new().route("/echo", post(echo));
    let base = serve(router.with_state(seen.clone())).await;
    let place = Place::new();
    let state = place.state();
    let args = ["--allow-shell", "--allow-secret", "TOKEN", "-v", "-v"];
    let begin = || {
        Start::new(&state).args(&args).spawn_with(|command| {
            command.env("WINDLASS_SECRET_TOKEN", CANARY);
        })
    };
    let server = begin();
    let request = server.ask(Method::PUT, "/v1/workflows/canary");
    let request = request.header("content-type", "application/yaml");
    let stored = request.body(WORKFLOW).send().await.unwrap();
    assert_eq!(stored.status(), 201);
    let body = json!({ "workflow": "canary", "run": "c", "input": { "base": base } });
    assert_eq!(server.post("/v1/runs", &body).await.0, 201);
    for _ in 0..1_000 {
        let (_, status) = server.get("/v1/runs/c").await;
        if status["doing"][0]["waits_for"] == "signal" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // A call in flight is checked, too.
    assert_answers_clean(&server).await;
    let (status, stderr) = server.stop();
    assert!(status.success());
    assert_clean("standard error", stderr.as_bytes());
    let server = begin();
    server
        .post("/v1/runs/c/signal", &json!({ "name": "go" }))
        .await;
    let outcome = server.end("c").await;
    assert_eq!(outcome["status"], "Failed", "{outcome}");
    assert_answers_clean(&server).await;
    assert_clean("the store", &bytes_of(&state));
    let again = json!({ "from": "failed", "run": "d" });
    assert_eq!(server.post("/v1/runs/c/retry", &again).await.0, 201);
    assert_eq!(server.end("d").await["status"], "Failed");
    assert_answers_clean(&server).await;
    let (_, stderr) = server.stop();
    assert_clean("standard error", stderr.as_bytes());
    assert_clean("the store", &bytes_of(&state));
    // The secret was sent each time.
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// No answer of the API contains the canary.
async fn assert_answers_clean(server: &Server) {
    for path in [
        "/v1/runs",
        "/v1/runs/c",
        "/v1/runs/c/result",
        "/v1/runs/c/history?events=true",
        "/v1/runs/c/dump",
        "/v1/dump",
        "/v1/workflows",
        "/v1/workflows/canary",
        "/metrics",
    ] {
        let response = server.ask(Method::GET, path).send().await.unwrap();
        assert!(response.status().is_success(), "{path}");
        let headers = format!("{:?}", response.headers());
        assert_clean(path, headers.as_bytes());
        assert_clean(path, &response.bytes().await.unwrap());
    }
    // Reads everything that the stream has sent, until it waits or ends.
    let path = "/v1/runs/c/events";
    let mut stream = server.ask(Method::GET, path).send().await.unwrap();
    let mut received = Vec::new();
    let (_, history) = server
        .get("/v1/runs/c/history?events=true&limit=10000")
        .await;
    let events = history["events"].as_array().unwrap().len();
    while String::from_utf8_lossy(&received)
        .matches("event: history")
        .count()
        < events
    {
        received.extend(stream.chunk().await.unwrap().unwrap());
    }
    assert_clean(path, &received);
}

#[test]
fn a_secret_that_is_not_there_is_a_warning_and_then_a_fault() {
    let place = Place::new();
    let file = place.file(
        "missing.yaml",
        "actions: { a: { type: shell, run: 'true', env: { T: \"${secret:NOPE}\" } } }",
    );
    let output = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(warned.contains("missing-secret"), "{warned}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["kind"], "secret", "{report}");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("WINDLASS_SECRET_NOPE"), "{message}");

    // The secret from the environment.
    let mut command = place.command(&["run", &file]);
    let output = command.env("WINDLASS_SECRET_NOPE", "x").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The secret as systemd provides it.
    std::fs::write(place.dir.path().join("NOPE"), "y").unwrap();
    let mut command = place.command(&["run", &file]);
    let output = command.env("CREDENTIALS_DIRECTORY", place.dir.path());
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_definition_is_warned_of_before_it_fails_or_ignores_its_input() {
    let place = Place::new();
    let file = place.file(
        "hook.yaml",
        r#"
definition:
  parameters: { n: { type: Int, defaultValue: 1 } }
  actions:
    hook:
      type: HttpWebhook
      inputs:
        subscribe: { method: POST, uri: http://127.0.0.1:9/, body: "@listCallbackUrl()" }
        unsubscribe: {}
"#,
    );
    let ran = place.run(&["run", &file, "-i", "n=5"]);
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.contains("missing-server"), "{stderr}");
    assert!(stderr.contains("file for --parameters"), "{stderr}");
    // A stub answers the request.
    let stubs = place.file(
        "stubs.json",
        r#"{"hook": {"statusCode": 200, "body": {}}, "hook.subscribe": {"statusCode": 200, "body": {}}}"#,
    );
    let mut run = place.follow(&["run", &file, "--stub", &stubs, "--id", "r"]);
    run.until("ActionEnded", "hook.subscribe");
    let signalled = place.run(&["signal", "r", "hook", "--payload", "1"]);
    assert!(signalled.status.success(), "{signalled:?}");
    run.result();
}

#[test]
fn nothing_is_computed_from_a_secret_and_data_names_none() {
    let place = Place::new();
    // The mark itself, as data might contain it.
    let mark = "\u{E0F0}secret:T\u{E0F1}";
    for (name, env) in [
        ("encoded", "@{base64(secret('T'))}".to_owned()),
        ("measured", "@{length(secret('T'))}".to_owned()),
        ("injected", "@{inputs('data')} @{secret('T')}".to_owned()),
    ] {
        let text = format!(
            "inputs: {{ data: {{ type: string }} }}\n\
             actions: {{ a: {{ type: shell, run: 'true', env: {{ X: \"{env}\" }} }} }}"
        );
        let file = place.file(&format!("{name}.yaml"), &text);
        let input = format!("data={mark}");
        let mut command = place.command(&["run", &file, "-i", &input, "-o", "json"]);
        let output = command.env("WINDLASS_SECRET_T", "tttt").output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["error"]["kind"], "secret", "{name} {output:?}");
    }
    // An action that names no secret gets none.
    let text = "inputs: { data: { type: string } }\n\
                actions:\n\
                \x20 a: { type: shell, run: 'printf %s \"$X\"', env: { X: \"@{inputs('data')}\" } }\n\
                \x20 b: { type: shell, run: 'true', env: { X: \"@secret('T')\" } }\n\
                outputs: \"@outputs('a').stdout\"";
    let file = place.file("bystander.yaml", text);
    let input = format!("data={mark}");
    let mut command = place.command(&["run", &file, "-i", &input, "-o", "json"]);
    let output = command.env("WINDLASS_SECRET_T", "tttt").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report, json!(mark), "{output:?}");
}

/// Prints its request, unchanged.
async fn mirror(uri: axum::http::Uri) -> (StatusCode, String) {
    (StatusCode::IM_A_TEAPOT, format!("no such thing as {uri}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_url_is_masked_whatever_was_escaped_of_it() {
    let base = serve(Router::new().fallback(mirror)).await;
    let place = Place::new();
    let stderr = tokio::task::spawn_blocking(move || {
        for (number, secret) in ["pa ss/cAnAry", "tok\"en/cAnAry"].into_iter().enumerate() {
            let text = format!(
                "actions:\n\
                 \x20 a: {{ type: http, uri: \"{base}/bot/${{secret:PW}}/send?a=${{secret:PW}}\" }}\n"
            );
            let file = place.file("url.yaml", &text);
            let id = format!("u{number}");
            let mut run = place.command(&["run", &file, "--id", &id]);
            let output = run.env("WINDLASS_SECRET_PW", secret).output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(message.contains("/bot/***/send"), "{message}");
            clean("run", output);
            clean("dump", place.run(&["dump", &id, "-o", "json"]));
            clean("status", place.run(&["status", &id, "-o", "json"]));
        }
        assert_clean("the store", &bytes_of(&place.state()));
    });
    stderr.await.unwrap();
}

#[test]
fn no_process_of_an_action_has_the_engines_secrets_in_its_environment() {
    let place = Place::new();
    let shell = r#"
handlers:
  told: { command: [env] }
actions:
  shell: { type: shell, run: env }
  told: { type: activity, activityType: told }
  given: { type: shell, run: 'printf %s "$MINE" | wc -c', env: { MINE: "${secret:S}" } }
outputs: "@createArray(outputs('shell').stdout, outputs('told'), outputs('given').body)"
"#;
    let python = "
name: looks
nodes:
  - name: look
    run: |
      import os
      return {'seen': dict(os.environ)}
edges:
  - { from: __start__, to: look }
  - { from: look, to: __end__ }
";
    // What is passed by name is available.
    for (name, text, mine) in [
        ("shell.yaml", shell, ",8]"),
        ("python.yaml", python, "WINDLASS_ATTEMPT"),
    ] {
        let file = place.file(name, text);
        let mut run = place.command(&["run", &file, "-o", "json"]);
        run.env("WINDLASS_SECRET_S", "cAnAry-1")
            .env("WINDLASS_SECRET_OTHER", "cAnAry-2")
            .env("WINDLASS_TOKEN", "cAnAry-3");
        let output = run.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(holds(&output.stdout, mine), "{output:?}");
        assert!(!holds(&output.stdout, "WINDLASS_SECRET_"), "{output:?}");
        clean(name, output);
    }
    assert_clean("the store", &bytes_of(&place.state()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_owner_has_is_not_missed() {
    let place = Place::new();
    let file = place.file(
        "owner.yaml",
        "
name: owner
actions:
  say:
    type: shell
    run: 'test \"$WORD\" = open'
    env: { WORD: \"@secret('WORD')\" }
  ask: { type: activity, inputs: { activityType: ask } }
outputs: \"@outputs('ask')\"
",
    );
    let handlers = place.file("handlers.yaml", "ask: { command: [echo, '1'] }");
    let server = Start::new(&place.state())
        .args(&["--handlers", &handlers])
        .spawn_with(|command| {
            command.env("WINDLASS_SECRET_WORD", "open");
        });
    let ran = place.run(&["run", &file, "-o", "json"]);
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "1\n");
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(!stderr.contains("missing"), "{stderr}");
    server.stop();

    // Without an owner, this process is the one that lacks both.
    let ran = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.contains("missing-secret"), "{stderr}");
    assert!(stderr.contains("missing-handler"), "{stderr}");
}

#[test]
fn a_secret_in_a_text_with_braces_is_resolved() {
    let folder = Folder::new();
    for (text, reversed) in [
        ("{{.Name}} ${secret:TOKEN}", "fedcba }}emaN.{{"),
        (
            "${secret:TOKEN} {{.Name}} @{1} {% endraw %}",
            "}% wardne %{ }1{@ }}emaN.{{ fedcba",
        ),
    ] {
        let reverses = "printf %s \"$1\" | rev";
        let line = ["try", "--times", "1", "--", "sh", "-c", reverses, "x", text];
        let mut command = folder.command(&line);
        let ran = command
            .env("WINDLASS_SECRET_TOKEN", "abcdef")
            .output()
            .unwrap();
        let printed = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(printed.trim_end(), reversed);
    }
}
