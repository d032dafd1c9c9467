//! Interrupts through the binary: a durable wait for a signal, which `--auto-continue` passes.

use super::branches::{folder, output, windlass};
use serde_json::{Value as Json, json};
use std::time::Duration;

const REVIEW: &str = r#"
name: review
initial_state: {draft: one}
config: {interrupt_before: [publish]}
nodes:
  - {name: write, run: "return {'draft': state['draft'] + ' more'}"}
  - {name: publish, run: "return {'done': state['draft'], 'approved': state.get('approved')}"}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_still_waits_for_its_signal() {
    let (_dir, file, state) = folder(REVIEW);
    let mut run = windlass(&["run", &file, "--id", "k", "--state", &state]);
    for _ in 0..600 {
        let dump = output(windlass(&["dump", "k", "--state", &state])).await;
        if String::from_utf8_lossy(&dump.stdout).contains(r#"{"signal":"publish"}"#) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let payload = r#"{"approved": true}"#;
    let signal = windlass(&[
        "signal",
        "k",
        "publish",
        "--payload",
        payload,
        "--state",
        &state,
    ]);
    assert!(output(signal).await.status.success());
    let resumed = output(windlass(&["resume", "k", "--state", &state, "-o", "json"])).await;
    assert!(resumed.status.success(), "{resumed:?}");
    let end: Json = serde_json::from_slice(&resumed.stdout).unwrap();
    let expected = json!({ "draft": "one more", "approved": true, "done": "one more" });
    assert_eq!(end, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_continue_does_not_wait() {
    let (_dir, file, state) = folder(REVIEW);
    let run = windlass(&[
        "run",
        &file,
        "--auto-continue",
        "--state",
        &state,
        "-o",
        "json",
    ]);
    let run = output(run).await;
    assert!(run.status.success(), "{run:?}");
    let end: Json = serde_json::from_slice(&run.stdout).unwrap();
    let expected = json!({ "draft": "one more", "done": "one more", "approved": null });
    assert_eq!(end, expected);
    // No node can see that it does not wait. A subgraph does not wait either.
    let (dir, file, state) = folder(
        "
name: interrupts
config: {interrupt_before: [second], interrupt_after: [second]}
nodes:
  - {name: first, run: \"return {'keys': sorted(state)}\", interrupt: after}
  - {name: second, run: \"return {'n': 1}\"}
  - {name: each, type: dynamic_parallel, items: [1], steps: [{run: \"return {'x': 1}\"}], fan_in: third}
  - {name: third, run: \"return {'all': [sorted(one.state) for one in parallel_results]}\"}
  - {name: inner, type: dynamic_parallel, items: [1], subgraph: sub.yaml, fan_in: last}
  - {name: last, run: \"return {'sub': parallel_results[0].state['sub']}\"}
",
    );
    let sub = "name: sub\nnodes: [{name: only, interrupt: before, run: \"return {'sub': 2}\"}]\n";
    std::fs::write(dir.path().join("sub.yaml"), sub).unwrap();
    let args = [
        "run",
        &file,
        "--auto-continue",
        "--state",
        &state,
        "-o",
        "json",
    ];
    let run = output(windlass(&args)).await;
    let end: Json = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    assert_eq!(end["sub"], 2, "{end}");
    assert_eq!(end["keys"], json!([]), "{end}");
    assert_eq!(
        end["all"],
        json!([["index", "item", "keys", "n", "x"]]),
        "{end}"
    );
    let (_dir, file, state) = folder("actions: { a: { type: compose, inputs: 1 } }");
    let run = output(windlass(&[
        "run",
        &file,
        "--auto-continue",
        "--state",
        &state,
    ]))
    .await;
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(stderr.contains("others have no interrupts"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_opens_no_gate() {
    let (_dir, file, state) = folder(REVIEW);
    let dir = std::path::Path::new(&state).parent().unwrap().to_path_buf();
    let input = dir.join("input.json");
    let words = r#"{"_windlass_auto_continue": true, "--auto-continue": true}"#;
    std::fs::write(&input, words).unwrap();
    let input = input.display().to_string();
    let args = [
        "run", &file, "--input", &input, "--id", "g", "--state", &state,
    ];
    let mut run = windlass(&args);
    while !waits(&state, "g").await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

/// Whether a run waits for a signal.
async fn waits(state: &str, run: &str) -> bool {
    let status = output(windlass(&["status", run, "--state", state, "-o", "json"])).await;
    let status: Json = serde_json::from_slice(&status.stdout).unwrap_or_default();
    assert_ne!(status["status"], "Succeeded", "{status}");
    status["doing"][0]["waits_for"] == "signal"
}
