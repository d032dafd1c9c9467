//! `env` in files of TEA, from outside. What a run reads from the environment stays as it was at the run's start, a key
//! appears in nothing that Windlass writes, and a guest reads nothing.

use crate::life::process::{Following, Place, bytes_of};
use crate::serve::Start;
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use serde_json::{Value as Json_, json};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

const CANARY: &str = "cAnAry-51b2\"quoted\"";
const TOKEN: &str = "tOkEn-99c7-of-a-service";

type Seen = Arc<Mutex<Vec<String>>>;

/// A model that records the key of each request.
async fn chat(State(seen): State<Seen>, headers: HeaderMap) -> Json<Json_> {
    let key = headers["authorization"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push(key.clone());
    let content = format!("you came with {key}");
    Json(json!({ "choices": [{ "message": { "role": "assistant", "content": content } }] }))
}

/// Refuses each request, and returns what it refused.
async fn refuse(State(seen): State<Seen>, headers: HeaderMap) -> Response {
    let key = headers["x-gate"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push(key.clone());
    (StatusCode::FORBIDDEN, format!("not with {key}")).into_response()
}

/// The first variable is a key because of its use, the second because of its name.
const KEYS: &str = r#"
name: keys
settings:
  llm: {api_base: "{{ state.base }}/v1", model: m, api_key: "{{ env.WINDLASS_TEST_CANARY }}"}
nodes:
  - {name: ask, uses: llm.call, with: {prompt: hello}, output: answer}
  - name: script
    run: |
      print("{{ env.WINDLASS_TEST_TOKEN }}")
      return {"length": len("{{ env.WINDLASS_TEST_TOKEN }}"), "echo": "{{ env.WINDLASS_TEST_TOKEN }}"}
  - {name: hold, uses: waitForSignal, with: {signal: go}, output: signal}
  - name: refused
    uses: http.post
    with:
      url: "{{ state.base }}/refuse"
      headers: {x-gate: "{{ env.get('WINDLASS_TEST_CANARY') }}"}
      json: {}
"#;

fn assert_clean(what: &str, text: &[u8]) {
    for canary in ["cAnAry", TOKEN] {
        let found = text
            .windows(canary.len())
            .any(|part| part == canary.as_bytes());
        assert!(!found, "{what}: {}", String::from_utf8_lossy(text));
    }
}

fn clean(what: &str, output: Output) -> Output {
    assert_clean(what, &output.stdout);
    assert_clean(what, &output.stderr);
    output
}

/// Runs the binary with both keys in its environment.
fn with_keys(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command
        .env("WINDLASS_TEST_CANARY", CANARY)
        .env("WINDLASS_TEST_TOKEN", TOKEN);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_environment_is_sent_and_never_written() {
    let seen = Seen::default();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/refuse", post(refuse));
    let base = serve(router.with_state(seen.clone())).await;
    let reported = tokio::task::spawn_blocking(move || {
        let place = Place::new();
        let file = place.file("keys.yaml", KEYS);
        let base = format!("base={base}");
        let args = ["run", &file, "--id", "k", "-i", &base, "-v", "-v"];
        let mut run = Following::of(with_keys(&place, &args));
        run.until("ActionEnded", "script");
        // The process is killed during the run, so that intermediate data is checked too.
        run.kill();
        assert_clean("the store of a killed process", &bytes_of(&place.state()));
        assert!(place.run(&["signal", "k", "go"]).status.success());
        let args = ["resume", "k", "--events", "jsonl", "-v", "-v"];
        let resumed = clean("resume", with_keys(&place, &args).output().unwrap());
        assert_eq!(resumed.status.code(), Some(1), "{resumed:?}");
        for args in [
            &["dump", "k", "-o", "json"][..],
            &["dump", "k"],
            &["status", "k", "-o", "json"],
            &["history", "k", "-o", "json"],
            &["history", "k", "--events"],
            &["list", "-o", "json"],
            &["compile", &file],
        ] {
            let output = clean(&args.join(" "), place.run(args));
            assert!(output.status.success(), "{args:?} {output:?}");
        }
        assert_clean("the store", &bytes_of(&place.state()));
        // The results with a key in them are masked, and the script had the real key.
        let dump = place.json(&["dump", "k", "-o", "json"]);
        let state = &dump["runs"][0]["state"]["variables"];
        assert_eq!(state["answer"]["content"], "you came with Bearer ***");
        assert_eq!(state["echo"], "***");
        assert_eq!(state["length"], TOKEN.len());
        String::from_utf8(resumed.stderr).unwrap()
    });
    let reported = reported.await.unwrap();
    assert!(reported.contains("not with ***"), "{reported}");
    let bearer = format!("Bearer {CANARY}");
    assert_eq!(*seen.lock().unwrap(), [bearer.as_str(), CANARY]);
}

#[test]
fn an_unset_key_is_reported() {
    let place = Place::new();
    let text = "name: k\nnodes: [{name: s, language: python, run: \"return '{{ env.WINDLASS_TEST_TOKEN }}'\"}]";
    let file = place.file("k.yaml", text);
    let warned = place.run(&["validate", &file]);
    let stderr = String::from_utf8(warned.stderr).unwrap();
    let what = "needs the secret `WINDLASS_TEST_TOKEN`, which is not there";
    assert!(stderr.contains(what), "{stderr}");
    let failed = place.run(&["run", &file]);
    let stderr = String::from_utf8(failed.stderr).unwrap();
    let what = "the environment has no WINDLASS_TEST_TOKEN";
    assert!(stderr.contains(what), "{stderr}");
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn a_default_replaces_an_unset_key() {
    let place = Place::new();
    let text = r#"
name: d
nodes:
  - name: s
    uses: shell
    with:
      command: [printf, "%s,", "{{ env.WINDLASS_TEST_TOKEN | default('a') }}",
                "{{ env['WINDLASS_TEST_TOKEN'] | d('b', true) }}",
                "x{{ env.get('WINDLASS_TEST_TOKEN', 'c') }}",
                "{{ env.get('WINDLASS_TEST_TOKEN') | default('d', boolean=true) }}",
                "{{ env.WINDLASS_TEST_NONE | default(5) }}",
                "{{ env.WINDLASS_TEST_NONE | default('e', true) }}"]
    output: out
"#;
    let file = place.file("d.yaml", text);
    let given = |token: Option<&str>| {
        let mut command = place.command(&["run", &file, "-o", "json"]);
        if let Some(token) = token {
            command.env("WINDLASS_TEST_TOKEN", token);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // Nothing is missing, so there is no warning.
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        let state: Json_ = serde_json::from_slice(&output.stdout).unwrap();
        state["out"]["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(given(None), "a,b,xc,d,5,e,");
    assert_eq!(given(Some("")), ",b,x,d,5,e,");
    assert_eq!(given(Some(TOKEN)), "***,***,x***,***,5,e,");
    assert_clean("the store", &bytes_of(&place.state()));
    // If no place has a default, the variable is required.
    let bare = text.replace(" | default('a')", "");
    let failed = place.run(&["run", &place.file("b.yaml", &bare)]);
    assert_eq!(failed.status.code(), Some(1));
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert!(
        stderr.contains("the environment has no WINDLASS_TEST_TOKEN"),
        "{stderr}"
    );
}

/// A variable that is not a key, in every place that can read it.
const SAVED: &str = r#"
name: kept
initial_state: {n: 0}
nodes:
  - {name: first, uses: compose, with: {value: "{{ env.WINDLASS_TEST_MODE }}"}, output: first}
  - {name: hold, uses: waitForSignal, with: {signal: go}, output: signal}
  - name: loop
    type: while_loop
    max_iterations: 3
    condition: "env.WINDLASS_TEST_MODE == 'fast' and state.n < 2"
    body: [{name: more, uses: incrementVariable, with: {name: n}}]
  - {name: script, run: "return {'mode': '{{ env[\"WINDLASS_TEST_MODE\"] }}'}"}
  - {name: absent, uses: compose, with: {value: "{{ env.get('WINDLASS_TEST_NONE', 'else') }}"}, output: absent}
"#;

#[test]
fn a_run_resumes_with_the_environment_it_began_with() {
    let place = Place::new();
    let file = place.file("kept.yaml", SAVED);
    let mut run = place.command(&["run", &file, "--id", "e"]);
    run.env("WINDLASS_TEST_MODE", "fast");
    let mut run = Following::of(run);
    run.until("RunStarted", "");
    run.kill();
    assert!(place.run(&["signal", "e", "go"]).status.success());
    let mut resume = place.command(&["resume", "e", "-o", "json"]);
    // Another machine with another environment.
    resume.env("WINDLASS_TEST_MODE", "slow");
    resume.env("WINDLASS_TEST_NONE", "set since");
    let output = resume.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let end: Json_ = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "first": "fast", "n": 2, "mode": "fast", "absent": "else", "signal": null,
    });
    assert_eq!(end, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_reads_the_environment_only_where_it_may_run_commands() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name: g\nnodes: [{name: look, uses: compose, \
                with: {value: \"{{ env.WINDLASS_TEST_MODE }}\"}, output: mode}]";
    for (args, allowed) in [(&[][..], false), (&["--allow-shell"][..], true)] {
        let state = dir.path().join(format!("{allowed}"));
        let start = Start::new(&state).args(args);
        let server = start.spawn_with(|command| {
            command.env("WINDLASS_TEST_MODE", "fast");
        });
        if allowed {
            let run = server.begin(text, json!({})).await;
            let end = server.end(&run).await;
            assert_eq!(end["output"]["mode"], "fast", "{end}");
        } else {
            let body = json!({ "text": text, "input": {} });
            let (status, problem) = server.post("/v1/runs", &body).await;
            assert_eq!(status, 422, "{problem}");
            let message = problem.to_string();
            assert!(message.contains("may not be read"), "{message}");
            assert!(message.contains("--allow-shell"), "{message}");
        }
    }
}
