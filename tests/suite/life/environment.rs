//! Which environment variables a Loom file reads: those that the operator allows.

use super::process::Place;
use crate::serve::Start;
use serde_json::{Value, json};

const READS: &str = r#"
name: reads
actions:
  wait: { type: waitForSignal, signal: go }
outputs: { wdl: "@env('GREETING')", jinja: "{{ env.GREETING }}", other: "{{ env.NOBODY | default('else') }}" }
"#;

fn without_wait(text: &str) -> String {
    let wait = "wait: { type: waitForSignal, signal: go }";
    text.replace(wait, "wait: { type: compose, inputs: 1 }")
}

#[test]
fn an_operators_file_reads_what_is_named() {
    let place = Place::new();
    let file = place.file("reads.yaml", &without_wait(READS));
    let run = |args: &[&str]| {
        let mut all = vec!["run", &*file, "-o", "json"];
        all.extend(args);
        let mut command = place.command(&all);
        command
            .env("GREETING", "hello")
            .env_remove("NOBODY")
            .output()
            .unwrap()
    };
    let refused = run(&["--allow-env", "OTHER"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        stderr.contains("hint: --allow-env GREETING allows it"),
        "{stderr}"
    );
    let given = run(&["--allow-env", "GREET*,NOBODY"]);
    assert!(given.status.success(), "{given:?}");
    let output: Value = serde_json::from_slice(&given.stdout).unwrap();
    assert_eq!(
        output,
        json!({ "wdl": "hello", "jinja": "hello", "other": "else" })
    );
    // The file can be validated without them.
    let checked = place.run(&["validate", &file]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn a_key_of_the_environment_is_a_secret() {
    let place = Place::new();
    let file = place.file(
        "key.yaml",
        "actions:\n  say: { type: shell, run: 'echo $KEY', env: { KEY: \"@env('MY_TOKEN')\" } }\n\
         outputs: \"@body('say')\"",
    );
    let args = ["run", &*file, "--allow-env", "MY_TOKEN", "-o", "json"];
    let given = place
        .command(&args)
        .env("MY_TOKEN", "cAnAryCaNaRy")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&given.stdout),
        "\"***\"\n",
        "{given:?}"
    );
    let workflow_file = place.file("kept.yaml", "actions: {}\noutputs: \"@env('MY_TOKEN')\"");
    let refused = place.run(&["validate", &workflow_file]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_reads_what_is_named_where_its_run_starts() {
    let place = Place::new();
    let state = place.state();
    let with = |args: &[&str]| {
        let set = |command: &mut std::process::Command| {
            command.env("GREETING", "hello").env_remove("NOBODY");
        };
        Start::new(&state).args(args).spawn_with(set)
    };
    // The permission to run commands does not permit more environment variables.
    let server = with(&["--allow-shell"]);
    let (status, response) = server.post("/v1/runs", &json!({ "text": READS })).await;
    assert_eq!(status, 422, "{response}");
    assert_eq!(response["diagnostics"][0]["code"], "denied", "{response}");
    server.kill();
    let server = with(&["--allow-env", "GREETING,NOBODY"]);
    let run = server.begin(READS, json!({})).await;
    server.kill();
    // The values that the run read at its start stay.
    let server = with(&[]);
    let go = json!({ "name": "go" });
    server.post(&format!("/v1/runs/{run}/signal"), &go).await;
    let outcome = server.end(&run).await;
    assert_eq!(outcome["output"]["wdl"], "hello", "{outcome}");
}

#[test]
fn a_command_may_fail_where_its_exit_code_is_not_checked() {
    let place = Place::new();
    let file = place.file(
        "check.yaml",
        "actions: { a: { type: shell, run: 'echo out; exit 3', check: false } }\n\
         outputs: \"@outputs('a').exitCode\"",
    );
    let strict = place.run(&["validate", "--strict", &file]);
    assert!(strict.status.success(), "{strict:?}");
    assert_eq!(place.json(&["run", &file, "-o", "json"]), 3);
}
