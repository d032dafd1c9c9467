//! Values that an author declared secure. A token that an action fetched is sent to other services, and appears in no
//! view, log, event or error. With a key it is sealed in the store.

use super::process::{Following, Place, bytes_of};
use crate::serve::{Server, Start};
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::process::Output;
use std::sync::{Arc, Mutex};

/// The token that the service returns, and a part that appears in any encoding of it.
const TOKEN: &str = "tOk3n-5f1c77e0-Zq9/XW==";
const PART: &str = "5f1c77e0";
const MASK: &str = "*** secure ***";

type Seen = Arc<Mutex<Vec<String>>>;

async fn login() -> Response {
    Json(json!({ "token": TOKEN, "expires": 3600 })).into_response()
}

/// Stores the token of each request, and returns it.
async fn work(State(seen): State<Seen>, headers: HeaderMap, body: String) -> Response {
    let bearer = headers["authorization"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push(format!("{bearer} {body}"));
    let fails = body.contains("fail");
    let response = json!({ "you": bearer, "done": true });
    let status = if fails {
        StatusCode::FORBIDDEN
    } else {
        StatusCode::OK
    };
    (status, Json(response)).into_response()
}

async fn world() -> (String, Seen) {
    let seen = Seen::default();
    let router = Router::new()
        .route("/login", get(login))
        .route("/work", post(work));
    (serve(router.with_state(seen.clone())).await, seen)
}

/// Uses the token in every possible way.
const WORKFLOW: &str = r#"
name: secure
inputs: { base: { type: string } }
variables: { bearer: "", all: [], text: "", plain: 1 }
actions:
  login: { type: http, inputs: { uri: "@{inputs('base')}/login" }, secure: [outputs] }
  bearer: { type: setVariable, name: bearer, value: "Bearer @{body('login').token}" }
  list: { type: appendToArrayVariable, name: all, value: "@body('login').token" }
  text: { type: appendToStringVariable, name: text, value: "@{body('login').token}!" }
  each:
    type: foreach
    foreach: "@createArray(body('login').token, 'two')"
    actions:
      use:
        type: http
        inputs:
          method: POST
          uri: "@{inputs('base')}/work"
          headers: { authorization: "@variables('bearer')" }
          body: { item: "@item()", text: "@variables('text')", list: "@variables('all')" }
  seen: { type: compose, inputs: { known: "@equals(variables('bearer'), '')", plain: "@variables('plain')" } }
  go: { type: waitForSignal, signal: go }
  shell:
    type: shell
    run: 'printf "%s" "$T"; printf "%s" "$T" >&2; exit 3'
    env: { T: "@body('login').token" }
    retry: { type: none }
  handled:
    type: http
    runAfter: { shell: [Failed] }
    retry: { type: none }
    inputs:
      method: POST
      uri: "@{inputs('base')}/work"
      headers: { authorization: "@variables('bearer')" }
      body: fail
  wrong:
    type: compose
    runAfter: { handled: [Failed] }
    inputs: "@int(body('login').token)"
  last: { type: compose, inputs: done, runAfter: { wrong: [Failed] } }
outputs: { token: "@body('login').token", plain: "@variables('plain')", seen: "@outputs('seen')" }
"#;

fn workflow() -> String {
    // The actions run one after the other, up to the shell.
    let names = [
        "login", "bearer", "list", "text", "each", "seen", "go", "shell",
    ];
    let mut text = WORKFLOW.to_owned();
    for pair in names.windows(2) {
        let line = format!("\n  {}:", pair[1]);
        let (head, rest) = text.split_once(&line).unwrap();
        let after = format!("runAfter: {{ {}: [Succeeded] }}", pair[0]);
        text = match rest.strip_prefix(" {") {
            Some(rest) => format!("{head}{line} {{ {after},{rest}"),
            None => format!("{head}{line}\n    {after}{rest}"),
        };
    }
    text
}

fn holds(text: &[u8], needle: &str) -> bool {
    text.windows(needle.len())
        .any(|part| part == needle.as_bytes())
}

fn assert_clean(what: &str, text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    assert!(!holds(text, PART), "{what}: {shown}");
}

fn clean(what: &str, output: Output) -> Output {
    assert_clean(what, &output.stdout);
    assert_clean(what, &output.stderr);
    output
}

/// Checks the run in every view that exists.
fn views(place: &Place, run: &str) {
    for args in [
        &["status", run][..],
        &["status", run, "-o", "json"],
        &["history", run, "-o", "json"],
        &["history", run],
        &["logs", run],
        &["list", "-o", "json"],
        &["dump", "-o", "json"],
        &["dump", "-o", "table"],
        &["dump", "-o", "yaml"],
        &["doctor", "-o", "json"],
    ] {
        let output = clean(&args.join(" "), place.run(args));
        assert!(output.status.success(), "{args:?} {output:?}");
    }
}

/// Follows a run until it waits; returns what was printed.
fn waiting(run: &mut Following) -> String {
    let (mut printed, mut used) = (String::new(), 0);
    while used < 2 {
        let line = run.line().expect("it ended");
        printed += &line.to_string();
        used += u32::from(line["event"] == "ActionEnded" && line["node_name"] == "use");
    }
    printed
}

fn key(place: &Place, name: &str, digit: &str) -> String {
    place.file(name, &digit.repeat(32))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secure_token_reaches_the_world_and_no_view_and_is_sealed() {
    let (base, seen) = world().await;
    let place = Place::new();
    let file = place.file("secure.yaml", &workflow());
    let key = key(&place, "key", "7a");
    tokio::task::spawn_blocking(move || {
        let base = format!("base={base}");
        let sealed = ["--state-key", &*key];
        let run = ["run", &file, "--id", "s", "-i", &base, "-vv"];
        let mut run = place.follow(&[&run[..], &sealed].concat());
        let events = waiting(&mut run);
        run.kill();
        assert_clean("the events", events.as_bytes());
        assert_clean("the store of a killed process", &bytes_of(&place.state()));
        views(&place, "s");
        // Signals can also be sent to a store without an owner.
        let signal = [&["signal", "s", "go"][..], &sealed].concat();
        let signalled = place.run(&signal);
        assert!(signalled.status.success(), "{signalled:?}");
        let resume = [&["resume", "s", "-vv", "-o", "json"][..], &sealed].concat();
        let output = clean("resume", place.run(&resume));
        assert!(output.status.success(), "{output:?}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        // A value that depends on nothing secure is shown.
        let expected = json!({ "token": MASK, "plain": 1, "seen": MASK });
        assert_eq!(result, expected);
        assert_clean("the store", &bytes_of(&place.state()));
        views(&place, "s");
        let dump = place.run(&["dump", "-o", "json"]);
        assert!(holds(&dump.stdout, MASK), "the dump has no mask");
        let seen = format!("{{\"known\":\"{MASK}\",\"plain\":1}}");
        assert!(
            holds(&dump.stdout, &seen),
            "a member is hidden that need not be"
        );
    })
    .await
    .unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3, "{seen:?}");
    for (call, item) in seen.iter().zip([TOKEN, "two", "fail"]) {
        assert!(call.starts_with(&format!("Bearer {TOKEN} ")), "{call}");
        assert!(call.contains(item), "{call}");
    }
    assert!(seen[0].contains(&format!("{TOKEN}!")), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_author_hides_of_any_action_is_hidden() {
    let (base, seen) = world().await;
    let place = Place::new();
    let text = format!(
        r#"
actions:
  sent: {{ type: waitForSignal, signal: sent, secure: [outputs] }}
  all:
    type: scope
    secure: [inputs, outputs]
    actions:
      inner: {{ type: compose, inputs: {PART} }}
  count: {{ type: setVariable, name: count, value: 3, secure: [inputs] }}
  more: {{ type: incrementVariable, name: count, value: 2 }}
  case:
    type: switch
    on: "@variables('count')"
    cases: {{ 5: {{ type: compose, inputs: five }} }}
  twice:
    type: until
    condition: "@equals(variables('loopIndex'), variables('count'))"
    limit: {{ count: "@variables('count')" }}
    actions: {{ nothing: {{ type: compose, inputs: "@variables('loopIndex')" }} }}
  refused:
    type: http
    secure: [inputs, outputs]
    retry: {{ type: none }}
    inputs:
      method: POST
      uri: "{base}/work"
      headers: {{ authorization: "Bearer {TOKEN}" }}
      body: fail
"#
    );
    // The file contains the token and the store contains the file, so only the views are searched.
    let file = place.file("any.yaml", &text);
    let output = tokio::task::spawn_blocking(move || {
        let sealed = key(&place, "key", "7a");
        let sealed = ["--state-key", &*sealed];
        let mut run = place.follow(&[&["run", &*file, "--id", "a"][..], &sealed].concat());
        run.until("RunStarted", "");
        run.kill();
        let payload = format!("\"only-{}\"", "sent-5ea1ed");
        let signal = ["signal", "a", "sent", "--payload", &payload];
        let signalled = place.run(&[&signal[..], &sealed].concat());
        assert!(signalled.status.success(), "{signalled:?}");
        let resumed = clean(
            "resume",
            place.run(&[&["resume", "a", "-vv"][..], &sealed].concat()),
        );
        assert!(!holds(&bytes_of(&place.state()), "5ea1ed"));
        for args in [&["dump", "-o", "json"][..], &["history", "a", "-o", "json"]] {
            let mut shown: Value = serde_json::from_slice(&place.run(args).stdout).unwrap();
            if let Some(runs) = shown["runs"].as_array_mut() {
                runs.iter_mut().for_each(|run| run["source"] = Value::Null);
            }
            assert_clean("a view", shown.to_string().as_bytes());
        }
        resumed
    })
    .await
    .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("the outputs of this action are secure"),
        "{stderr}"
    );
    assert!(seen.lock().unwrap()[0].starts_with(&format!("Bearer {TOKEN}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_key_a_run_is_set_aside_and_not_lost() {
    let (base, _seen) = world().await;
    let place = Place::new();
    let file = place.file("secure.yaml", &workflow());
    let (good, bad) = (key(&place, "key", "7a"), key(&place, "other", "7b"));
    let short = place.file("short", "7a7a");
    tokio::task::spawn_blocking(move || {
        let base = format!("base={base}");
        // Without sealing there is a warning, and the token is stored in plain text.
        let validated = place.run(&["validate", &file]);
        let stderr = String::from_utf8_lossy(&validated.stderr).into_owned();
        assert!(
            validated.status.success() && stderr.contains("lie readable in the store"),
            "{stderr}"
        );
        assert!(stderr.contains("--state-key FILE"), "{stderr}");
        let validated = place.run(&["validate", &file, "--state-key", &good]);
        let stderr = String::from_utf8_lossy(&validated.stderr).into_owned();
        assert!(!stderr.contains("readable"), "{stderr}");
        let refused = place.run(&["run", &file, "-i", &base, "--state-key", &short]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(2) && stderr.contains("32 random bytes"),
            "{stderr}"
        );

        let args = ["run", &file, "--id", "s", "-i", &base, "--state-key", &good];
        let mut run = place.follow(&args);
        waiting(&mut run);
        run.kill();
        let signal = ["signal", "s", "go", "--state-key", &good];
        assert!(place.run(&signal).status.success());
        for key in [&["--state-key", &*bad][..], &[]] {
            let resumed = place.run(&[&["resume", "s"][..], key].concat());
            let stderr = String::from_utf8_lossy(&resumed.stderr).into_owned();
            assert_eq!(resumed.status.code(), Some(3), "{stderr}");
            assert!(
                stderr.contains("encrypted with a key that this process does not have"),
                "{stderr}"
            );
        }
        let signalled = place.run(&["signal", "s", "go"]);
        assert_eq!(signalled.status.code(), Some(3), "{signalled:?}");
        views(&place, "s");
        let mut resume = place.command(&["resume", "s"]);
        // The key as systemd provides it.
        let credentials = place.dir.path().join("credentials");
        std::fs::create_dir(&credentials).unwrap();
        std::fs::copy(&good, credentials.join("windlass.state-key")).unwrap();
        let resumed = resume
            .env("CREDENTIALS_DIRECTORY", &credentials)
            .output()
            .unwrap();
        assert!(resumed.status.success(), "{resumed:?}");

        // A new run retries one that was ended without the key, from one of its places.
        let args = ["run", &file, "--id", "c", "-i", &base, "--state-key", &good];
        let mut run = place.follow(&args);
        waiting(&mut run);
        run.kill();
        assert!(place.run(&["cancel", "c"]).status.success());
        let retry = ["retry", "c", "--from", "each", "--id", "again"];
        let refused = place.run(&retry);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let mut run = place.follow(&[&retry[..], &["--state-key", &good]].concat());
        waiting(&mut run);
        let signal = ["signal", "again", "go", "--state-key", &good];
        assert!(place.run(&signal).status.success());
        assert_eq!(run.result()["plain"], 1);
        views(&place, "again");

        // Without a key it also resumes. The token is then readable in the store, and nowhere else.
        let other = Place::new();
        let args = ["run", &file, "--id", "s", "-i", &base];
        let mut run = other.follow(&args);
        waiting(&mut run);
        run.kill();
        assert!(holds(&bytes_of(&other.state()), PART));
        views(&other, "s");
        assert!(other.run(&["signal", "s", "go"]).status.success());
        let resumed = clean("resume", other.run(&["resume", "s"]));
        assert!(resumed.status.success(), "{resumed:?}");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_shows_no_secure_value() {
    let (base, _seen) = world().await;
    let place = Place::new();
    let key = key(&place, "key", "7a");
    let state = place.state();
    let server: Server = Start::new(&state)
        .args(&["--allow-shell", "--state-key", &key])
        .spawn();
    let run = server.begin(&workflow(), json!({ "base": base })).await;
    let signal = format!("/v1/runs/{run}/signal");
    let (status, response) = server.post(&signal, &json!({ "name": "go" })).await;
    assert!(status < 300, "{response}");
    // The key of the server matters, and not that of the command.
    let file = place.file("secure.yaml", &workflow());
    let begun = place.run(&["run", &file, "-i", &format!("base={base}"), "--detach"]);
    let stderr = String::from_utf8_lossy(&begun.stderr).into_owned();
    assert!(begun.status.success(), "{stderr}");
    assert!(!stderr.contains("readable"), "{stderr}");
    let ended = server.end(&run).await;
    assert_clean("the end", ended.to_string().as_bytes());
    for path in ["", "/history", "/dump", "/iterations?loop=each"] {
        let (_, response) = server.get(&format!("/v1/runs/{run}{path}")).await;
        assert_clean(path, response.to_string().as_bytes());
    }
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
    assert_clean("the log", stderr.as_bytes());
    assert_clean("the store", &bytes_of(&place.state()));
}

#[test]
fn a_definition_hides_what_its_secure_data_says() {
    let place = Place::new();
    let definition = json!({
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "contentVersion": "1.0.0.0",
        "parameters": { "key": { "type": "securestring", "defaultValue": format!("par-{PART}") } },
        "triggers": { "manual": { "type": "Request" } },
        "actions": {
            "Make": {
                "type": "Compose", "inputs": { "token": "@concat('a', triggerBody()?['t'])" },
                "runAfter": {},
                "runtimeConfiguration": { "secureData": { "properties": ["inputs"] } }
            },
            "Use": {
                "type": "Compose", "inputs": "@concat(outputs('Make').token, '!')",
                "runAfter": { "Make": ["Succeeded"] }
            },
            "Parameter": {
                "type": "Compose", "inputs": "@parameters('key')",
                "runAfter": { "Use": ["Succeeded"] }
            },
            "Plain": { "type": "Compose", "inputs": "plain", "runAfter": { "Use": ["Succeeded"] } }
        },
    });
    let file = place.file("d.json", &definition.to_string());
    let run = place.run(&["run", &file, "--id", "d", "-o", "json", "-i", "t=x"]);
    assert!(run.status.success(), "{run:?}");
    let result: Value = serde_json::from_slice(&run.stdout).unwrap();
    for (action, given) in [
        ("Make", MASK),
        ("Use", MASK),
        ("Parameter", MASK),
        ("Plain", "plain"),
    ] {
        assert_eq!(result[action], given, "{result}");
    }
    views(&place, "d");
    for (properties, message) in [
        (json!(["output"]), "did you mean `outputs`"),
        (json!("outputs"), "must be a list"),
    ] {
        let mut wrong = definition.clone();
        wrong["actions"]["Make"]["runtimeConfiguration"]["secureData"]["properties"] = properties;
        let file = place.file("wrong.json", &wrong.to_string());
        let output = place.run(&["validate", &file]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(3) && stderr.contains(message),
            "{stderr}"
        );
    }
}
