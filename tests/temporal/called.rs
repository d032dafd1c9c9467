//! Runs that start others and wait for them (`type: workflow`): their results, and the effects of kills and cancels.

use super::server::{Place, Server, counting, printed_by, until};
use serde_json::{Value, json};

/// Calls a file.
const CALLS: &str = r#"
outputs: "@outputs('call')"
actions:
  call: { type: workflow, workflow: child.yaml }
"#;

/// A child that waits for a signal.
const WAITS: &str = "name: waits\nactions: { approval: { type: waitForSignal, signal: go } }\n";

/// The runs that the place's run has started, of all statuses.
fn children(place: &Place) -> Vec<Value> {
    let label = format!("windlass.parent={}", place.id);
    let done = place.ask(&["list", "--label", &label, "--limit", "all", "-o", "jsonl"]);
    assert!(done.status.success(), "{}", printed_by(&done));
    let out = String::from_utf8(done.stdout).unwrap();
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until the run that was started has this status; returns its id.
fn wait_for_child(place: &Place, wanted: &str) -> String {
    let mut found = String::new();
    until(&format!("the called run is {wanted}"), || {
        let all = children(place);
        let child = all.iter().find(|child| child["status"] == wanted);
        child.is_some_and(|child| {
            found = child["run"].as_str().unwrap().to_owned();
            true
        })
    });
    found
}

/// A wait for a called run does not occupy the only slot, which the called runs need for their effects.
#[test]
fn called_runs_return_their_outputs() {
    let place = Server::shared().place("called");
    let _worker = place.worker(&["--max-effects", "1"]);
    let child = r#"
name: child
inputs: { city: { type: string } }
outputs: { hello: "@outputs('say')" }
actions:
  say: { type: shell, inputs: { run: "echo Hello @{triggerBody()['city']}" } }
"#;
    place.file("child.yaml", child);
    let parent = r#"
outputs: { all: "@outputs('each')" }
actions:
  each:
    type: foreach
    foreach: [Oslo, Rome, Lima]
    concurrency: 3
    actions:
      call: { type: workflow, workflow: child.yaml, inputs: { city: "@item()" } }
"#;
    place.start(parent, &[]);
    place.await_status("Succeeded");
    let output = place.report(&["status", &place.id])["outcome"]["output"].to_string();
    for city in ["Oslo", "Rome", "Lima"] {
        assert!(output.contains(&format!("Hello {city}")), "{output}");
    }
    until("all are listed", || children(&place).len() == 3);
}

#[test]
fn a_called_run_that_fails_is_a_fault_and_each_attempt_is_a_run() {
    let place = Server::shared().place("attempts");
    let _worker = place.worker(&[]);
    let child = "
name: child
actions:
  end: { type: terminate, runStatus: Failed, runError: { code: E7, message: no luck } }
";
    place.file("child.yaml", child);
    let parent = "
actions:
  call:
    type: workflow
    workflow: child.yaml
    retry: { type: fixed, count: 2, interval: 1ms, on: [workflow] }
";
    place.start(parent, &[]);
    place.await_status("Failed");
    let error = place.report(&["status", &place.id])["outcome"]["error"].clone();
    assert_eq!(error["kind"], "workflow", "{error}");
    let text = error.to_string();
    assert!(text.contains("ended as Failed: no luck"), "{text}");
    until("all are listed", || children(&place).len() == 3);
}

/// Neither the calling run nor the called one loses anything, and the call joins the run that was started before. Both
/// carry over meanwhile.
#[test]
fn kills_neither_lose_nor_repeat_a_called_run() {
    let place = Server::shared().place("joined");
    let mut worker = place.worker(&["--heartbeat", "1s", "--sticky", "1s"]);
    place.file("child.yaml", &counting(12, "0.1", "PT0S"));
    place.start_carrying(CALLS, "20");
    for count in [1, 5, 9] {
        place.await_traces(count);
        worker.kill();
        worker = place.worker(&["--heartbeat", "1s", "--sticky", "1s"]);
    }
    place.await_status("Succeeded");
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["outcome"]["output"], json!({ "n": 12 }), "{report}");
    assert_eq!(children(&place).len(), 1);
    // An effect in flight is repeated at most once for each kill, under its key.
    let begun = place.begun();
    assert_eq!(begun.len(), 12, "{begun:?}");
}

#[test]
fn a_pause_a_resume_and_a_cancel_go_down() {
    let place = Server::shared().place("down");
    let _worker = place.worker(&[]);
    place.file("child.yaml", WAITS);
    place.start(CALLS, &[]);
    let child = wait_for_child(&place, "Waiting");
    let doing = place.report(&["status", &place.id])["doing"][0].clone();
    assert_eq!(doing["child"], *child, "{doing}");
    place.report(&["pause", &place.id]);
    assert_eq!(wait_for_child(&place, "Paused"), child);
    std::thread::scope(|scope| {
        let resuming = scope.spawn(|| place.ask(&["resume", &place.id]));
        assert_eq!(wait_for_child(&place, "Waiting"), child);
        assert_eq!(place.report(&["cancel", &place.id])["status"], "Cancelled");
        assert_eq!(wait_for_child(&place, "Cancelled"), child);
        assert_eq!(resuming.join().unwrap().status.code(), Some(6));
    });
}

#[test]
fn a_timeout_cancels_the_called_run() {
    let place = Server::shared().place("short");
    let _worker = place.worker(&[]);
    place.file("child.yaml", WAITS);
    let parent = CALLS.replace("child.yaml", "child.yaml, timeout: 2s");
    place.start(&parent, &[]);
    wait_for_child(&place, "Cancelled");
    assert!(["Failed", "TimedOut"].contains(&&*place.status()));
}

/// The worker that waited for the called run is gone, and no other one waits for it yet. Another one would start only
/// after a missed heartbeat, which takes longer than this test.
#[test]
fn a_cancel_reaches_a_called_run_that_no_worker_waits_for() {
    let place = Server::shared().place("alone");
    let worker = place.worker(&["--heartbeat", "1h"]);
    place.file("child.yaml", WAITS);
    place.start(CALLS, &[]);
    let child = wait_for_child(&place, "Waiting");
    worker.kill();
    let _worker = place.worker(&["--heartbeat", "1h"]);
    assert_eq!(place.report(&["cancel", &place.id])["status"], "Cancelled");
    assert_eq!(wait_for_child(&place, "Cancelled"), child);
    until("Temporal closes the run, too", || {
        Server::shared().describe(&place.id)["status"] == "WORKFLOW_EXECUTION_STATUS_CANCELED"
    });
}

/// A terminated run has no further workflow task in which it could cancel the called run, so the worker cancels it.
#[test]
fn a_run_that_is_terminated_takes_its_called_run_along() {
    let place = Server::shared().place("terminated");
    let _worker = place.worker(&[]);
    place.file("child.yaml", WAITS);
    place.start(CALLS, &[]);
    let child = wait_for_child(&place, "Waiting");
    Server::shared().tool(&["workflow", "terminate", "--workflow-id", &place.id]);
    assert_eq!(wait_for_child(&place, "Cancelled"), child);
}

#[test]
fn a_recursion_ends_with_a_fault() {
    let place = Server::shared().place("again");
    let _worker = place.worker(&[]);
    let text = "name: again\nactions: { call: { type: workflow, workflow: again.yaml } }\n";
    place.file("again.yaml", text);
    place.start(text, &[]);
    place.await_status("Failed");
    let error = place.report(&["status", &place.id])["outcome"]["error"].to_string();
    let bound = "`again` was not started: 16 runs wait for each other already";
    assert!(error.contains(bound), "{error}");
}

/// An execution with too long a history ends although a call is in flight. The next execution waits for the same run.
#[test]
fn a_run_that_carries_over_waits_for_the_same_called_run() {
    let place = Server::shared().place("carried");
    let _worker = place.worker(&[]);
    place.file("child.yaml", WAITS);
    let (head, actions) = counting(100_000, "0", "PT0S")
        .split_once("actions:\n")
        .map(|(head, actions)| (head.to_owned(), actions.to_owned()))
        .unwrap();
    let (loops, _) = actions.split_once("outputs:").unwrap();
    let loops = loops.replace("type: until", "type: until\n    runAfter: {}");
    let call = "  call: { type: workflow, workflow: child.yaml, runAfter: {} }\n";
    let ends =
        "  end: { type: terminate, runStatus: Succeeded, runAfter: { call: [Succeeded] } }\n";
    let text = format!("{head}actions:\n{call}{ends}{loops}");
    place.start_carrying(&text, "10");
    let child = wait_for_child(&place, "Waiting");
    until("it carries over", || {
        let info = Server::shared().describe(&place.id);
        info["firstRunId"] != info["execution"]["runId"]
    });
    assert_eq!(wait_for_child(&place, "Waiting"), child);
    place.report(&["signal", &child, "go"]);
    place.await_status("Succeeded");
    assert_eq!(children(&place).len(), 1);
}
