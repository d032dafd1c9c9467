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
        if String::from_utf8_lossy(&dump.stdout).contains("waits for signal publish") {
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
    let (_dir, file, state) = folder("actions: { a: { type: compose, inputs: 1 } }");
    let run = output(windlass(&[
        "run",
        &file,
        "--auto-continue",
        "--state",
        &state,
    ]))
    .await;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(said.contains("others have no interrupts"), "{said}");
}
