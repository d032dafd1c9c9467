//! Runs that events start: signed requests, and files in a folder. A repeated event starts no second run.

use super::process::Place;
use crate::serve::{Server, Start, answer};
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

const SECRET: &str = "It's a Secret to Everybody";

const PUSHED: &str = r#"
name: pushed
triggers: { webhook: { secret: GITHUB, signature: github } }
inputs: { body: {}, headers: {} }
actions:
  note: { type: compose, inputs: "@inputs('body').ref" }
outputs: { ref: "@outputs('note')", event: "@inputs('headers')['x-github-event']", headers: "@inputs('headers')" }
"#;

fn serve(state: &Path) -> Server {
    Start::new(state).token("secret").spawn_with(|command| {
        command.env("WINDLASS_SECRET_GITHUB", SECRET);
    })
}

fn signature(body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signed = hmac::sign(&key, body.as_bytes());
    let digits: Vec<String> = signed
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256={}", digits.concat())
}

async fn deliver(server: &Server, delivery: &str, body: &str, signature: &str) -> (u16, Value) {
    deliver_to(server, "pushed", delivery, body, signature).await
}

async fn deliver_to(
    server: &Server,
    workflow: &str,
    delivery: &str,
    body: &str,
    signature: &str,
) -> (u16, Value) {
    let request = server.ask(Method::POST, &format!("/v1/hooks/{workflow}"));
    let request = request
        .header("content-type", "application/json")
        .header("x-github-event", "push")
        .header("x-github-delivery", delivery)
        .header("x-hub-signature-256", signature);
    answer(request.body(body.to_owned())).await
}

fn save(place: &Place, name: &str, text: &str) {
    let file = place.file(&format!("{name}.yaml"), text);
    let saved = place.run(&["workflow", "put", name, &file]);
    assert!(saved.status.success(), "{saved:?}");
}

fn count(place: &Place, workflow: &str) -> usize {
    let listed = place.json(&["list", "--workflow", workflow, "-o", "json"]);
    listed.as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_starts_one_run_however_often_it_is_delivered() {
    let place = Place::new();
    let state = place.state();
    save(&place, "pushed", PUSHED);
    let asked = PUSHED.replace("name: pushed", "name: asked");
    let asked = asked.replace("headers: {} }", "headers: {}, query: {} }");
    let asked = asked.replace("outputs: {", "outputs: { query: \"@inputs('query')\",");
    save(&place, "asked", &asked);
    let server = serve(&state);
    let body = r#"{"ref": "refs/heads/main"}"#;
    let (status, first) = deliver(&server, "d1", body, &signature(body)).await;
    assert_eq!(status, 201, "{first}");
    let (status, again) = deliver(&server, "d1", body, &signature(body)).await;
    assert_eq!((status, &again), (200, &first));
    server.kill();
    let server = serve(&state);
    let (status, again) = deliver(&server, "d1", body, &signature(body)).await;
    assert_eq!((status, &again), (200, &first));
    let (status, second) = deliver(&server, "d2", body, &signature(body)).await;
    assert_eq!(status, 201, "{second}");
    for (wrong, expected) in [
        (signature("{}"), 401),
        (String::from("sha256=zz"), 401),
        (String::new(), 401),
    ] {
        let (status, problem) = deliver(&server, "d3", body, &wrong).await;
        assert_eq!(status, expected, "{problem}");
        assert!(!problem.to_string().contains("Secret"), "{problem}");
    }
    // The header says that these are JSON.
    for wrong in [
        "{\"n\": 12345678901234567890}",
        "[1e400]",
        "{\"ref\":",
        "ref=1",
    ] {
        let (status, problem) = deliver(&server, "d4", wrong, &signature(wrong)).await;
        assert_eq!(status, 400, "{wrong}: {problem}");
    }
    let (status, asked) = deliver_to(
        &server,
        "asked?tag=x&z=1&tag=y",
        "d5",
        body,
        &signature(body),
    )
    .await;
    assert_eq!(status, 201, "{asked}");
    let other = server.ask(Method::POST, "/v1/hooks/other");
    assert_eq!(answer(other).await.0, 404);
    // Everything else still needs the token.
    assert_eq!(server.get("/v1/workflows/pushed").await.0, 401);
    server.stop();
    let id = first["run"].as_str().unwrap();
    let report = place.json(&["status", id, "-o", "json"]);
    assert_eq!(report["status"], "Succeeded", "{report}");
    let output = place.json(&["export", id, "-o", "json"]).to_string();
    assert!(output.contains("refs/heads/main"), "{output}");
    // A repeated parameter is a list.
    let asked = place.json(&["export", asked["run"].as_str().unwrap(), "-o", "json"]);
    let query = json!({ "tag": ["x", "y"], "z": "1" }).to_string();
    assert!(asked.to_string().contains(&query), "{asked}");
    // A client that may only read the run cannot repeat the request.
    assert!(output.contains("x-github-delivery"), "{output}");
    assert!(!output.contains("sha256="), "{output}");
    assert_eq!(count(&place, "pushed"), 2);
}

/// Two saved workflows may have the same `name` in their files.
#[tokio::test(flavor = "multi_thread")]
async fn each_saved_workflow_gets_its_own_deliveries_and_files() {
    let place = Place::new();
    let state = place.state();
    let inbox = place.dir.path().to_str().unwrap();
    let folder = format!(", folder: {{ path: \"{inbox}\", pattern: \"*.csv\" }} }}\n");
    let text = PUSHED.replace(" }\ninputs: { body: {}, headers: {} }\n", &folder);
    assert!(text.contains(inbox), "{text}");
    for name in ["one", "two"] {
        save(&place, name, &text);
    }
    let server = serve(&state);
    for name in ["one", "two"] {
        let (status, started) = deliver_to(&server, name, "d1", "{}", &signature("{}")).await;
        assert_eq!(status, 201, "{name}: {started}");
    }
    place.file("a.csv", "1");
    while count(&place, "pushed") < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop();
}

/// A misconfiguration of the server is in its log, and not in the answer to a stranger.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_does_not_see_what_the_server_lacks() {
    let place = Place::new();
    let state = place.state();
    save(&place, "pushed", PUSHED);
    let command = "echo hidden-reason >&2; echo asked >> asked; exit 1";
    let server = Start::new(&state)
        .args(&["--secret-command", command])
        .spawn_with(|start| {
            start.current_dir(place.dir.path());
        });
    // Refused requests do not hide the reason from the log.
    let (status, problem) = deliver_to(&server, "other", "d0", "{}", "").await;
    assert_eq!(status, 404, "{problem}");
    for _ in 0..3 {
        let (status, problem) = deliver(&server, "d1", "{}", &signature("{}")).await;
        assert_eq!(status, 503, "{problem}");
        let text = problem.to_string();
        assert!(!text.contains("hidden-reason"), "{text}");
        assert!(!text.contains("GITHUB"), "{text}");
    }
    server.log_until("hidden-reason");
    let calls = std::fs::read_to_string(place.dir.path().join("asked")).unwrap();
    assert_eq!(calls, "asked\n");
    // A request without a signature is refused without a secret.
    let request = server.ask(Method::POST, "/v1/hooks/pushed");
    let (status, problem) = answer(request.body("{}")).await;
    assert_eq!(status, 401, "{problem}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_by_a_webhook_is_in_the_audit_log() {
    let place = Place::new();
    let state = place.state();
    let text = PUSHED.replace("body: {}", "body: { type: object }");
    save(&place, "pushed", &text);
    let server = serve(&state);
    let (status, started) = deliver(&server, "d1", "{}", &signature("{}")).await;
    assert_eq!(status, 201, "{started}");
    let (status, problem) = deliver(&server, "d2", "[]", &signature("[]")).await;
    assert_eq!(status, 422, "{problem}");
    server.stop();
    let audit = place.json(&["audit", "--name", "webhook", "-o", "json"]);
    let entries = audit.as_array().unwrap().iter();
    let seen: Vec<(&Value, &Value)> = entries
        .map(|entry| (&entry["target"], &entry["result"]))
        .collect();
    let expected = [
        (&Value::from("pushed"), &Value::from("refused-input")),
        (&started["run"], &Value::from("done")),
    ];
    assert_eq!(seen, expected, "{audit}");
}

/// A file that cannot start a run is logged once, and the other files start theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_fit_is_logged_once() {
    let place = Place::new();
    let state = place.state();
    let inbox = place.dir.path().join("inbox");
    let text = format!(
        "name: arrived\ntriggers: {{ folder: {{ path: \"{}\" }} }}\n\
         actions:\n  a: {{ type: compose, inputs: 1 }}\n",
        inbox.display()
    );
    save(&place, "arrived", &text);
    let server = Start::new(&state).spawn();
    server.log_until("the folder cannot be read");
    std::fs::create_dir(&inbox).unwrap();
    std::fs::write(inbox.join(OsStr::from_bytes(b"\xff.csv")), "1").unwrap();
    std::fs::write(inbox.join("fits.csv"), "1").unwrap();
    until(&place, 1);
    std::fs::write(inbox.join("later.csv"), "1").unwrap();
    until(&place, 2);
    let (_, log) = server.stop();
    let times = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(times("no run starts for a file"), 1, "{log}");
    assert_eq!(times("the folder cannot be read"), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_starts_one_run() {
    let place = Place::new();
    let state = place.state();
    let inbox = place.dir.path().join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    let text = format!(
        "name: arrived\ntriggers: {{ folder: {{ path: \"{}\", pattern: \"*.csv\" }} }}\n\
         actions:\n  a: {{ type: compose, inputs: \"@inputs('name')\" }}\n",
        inbox.display()
    );
    save(&place, "arrived", &text);
    std::fs::write(inbox.join("a.csv"), "1").unwrap();
    std::fs::write(inbox.join("b.txt"), "1").unwrap();
    let server = Start::new(&state).spawn();
    until(&place, 1);
    server.kill();
    let server = Start::new(&state).spawn();
    std::fs::write(inbox.join("c.csv"), "1").unwrap();
    // The new file counts, and the file from before the kill does not count again.
    until(&place, 2);
    std::fs::write(inbox.join("a.csv"), "changed").unwrap();
    until(&place, 3);
    server.stop();
    assert_eq!(count(&place, "arrived"), 3);
}

fn until(place: &Place, runs: usize) {
    while count(place, "arrived") < runs {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_triggers_of_files_are_checked() {
    let place = Place::new();
    for (triggers, says) in [
        (
            "{ webhook: { secret: A, signature: gitlab } }",
            "`gitlab` is not a signature",
        ),
        (
            "{ webhook: { secret: \"a b\", signature: github } }",
            "cannot be the name of a secret",
        ),
        ("{ webhook: { signature: github } }", "secret"),
        ("{ folder: { path: inbox } }", "not an absolute path"),
        ("{ folder: { path: /tmp, patern: x } }", "patern"),
    ] {
        let text =
            format!("triggers: {triggers}\nactions: {{ a: {{ type: compose, inputs: 1 }} }}\n");
        let file = place.file("bad.yaml", &text);
        let checked = place.run(&["validate", &file]);
        assert_eq!(checked.status.code(), Some(3), "{text}: {checked:?}");
        let stderr = String::from_utf8_lossy(&checked.stderr);
        assert!(stderr.contains(says), "{says}: {stderr}");
    }
}

/// A guest's workflow can neither watch a folder of the server nor use a secret of its operator.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_has_no_triggers_of_the_operator() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    for (triggers, flag) in [
        ("{ folder: { path: /tmp } }", "--allow-files"),
        (
            "{ webhook: { secret: GITHUB, signature: github } }",
            "--allow-secret GITHUB",
        ),
    ] {
        let text =
            format!("triggers: {triggers}\nactions: {{ a: {{ type: compose, inputs: 1 }} }}\n");
        let request = server.ask(Method::PUT, "/v1/workflows/guest");
        let request = request
            .header("content-type", "application/yaml")
            .body(text);
        let (status, problem) = answer(request).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem.to_string().contains(flag), "{problem}");
    }
}
