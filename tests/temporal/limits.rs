//! Temporal's limits: a history that must be carried over in time, and payloads that are too large.

use super::server::{Server, counting, until};
use std::fs;

#[test]
fn a_long_loop_carries_over_and_is_whole() {
    let place = Server::shared().place("carry");
    place.start_carrying(&counting(60, "0", "PT0S"), "60");
    let mut worker = place.worker(&["--heartbeat", "1s", "--sticky", "1s"]);
    // Repeated kills; some of them happen during a carry-over.
    for traces in [10, 20, 30, 40] {
        place.await_traces(traces);
        let next = place.worker(&["--heartbeat", "1s", "--sticky", "1s"]);
        worker.kill();
        worker = next;
    }
    place.await_status("Succeeded");
    let begun = place.begun();
    assert_eq!(begun.len(), 60);
    let repeated: usize = begun.iter().map(|(_, count)| count - 1).sum();
    assert!(repeated <= 4, "{begun:?}");
    let history = place.report(&["history", &place.id, "--iterations", "all"]);
    assert_eq!(history["iterations"].as_array().unwrap().len(), 60);
    drop(worker);
}

#[test]
fn an_output_that_is_too_large_is_a_fault() {
    let place = Server::shared().place("output");
    let _worker = place.worker(&[]);
    place.start(
        r#"
name: large
actions:
  large: { type: shell, inputs: { run: "head -c 6000000 /dev/urandom | base64 -w0" } }
"#,
        &[],
    );
    place.await_status("Failed");
    let report = place.report(&["status", &place.id]);
    assert!(report.to_string().contains("Temporal accepts"), "{report}");
}

#[test]
fn a_state_that_is_too_large_ends_with_a_clear_fault() {
    let place = Server::shared().place("state");
    let _worker = place.worker(&[]);
    place.start_carrying(
        r#"
name: grows
variables: { all: [] }
actions:
  grow:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 1000, timeout: PT1H }
    actions:
      more: { type: shell, inputs: { run: "head -c 300000 /dev/urandom | base64 -w0" } }
      keep: { type: appendToArrayVariable, inputs: { name: all, value: "@outputs('more')" } }
"#,
        "60",
    );
    until("the run ends", || place.status() == "Failed");
    let report = place.report(&["status", &place.id]);
    assert!(report.to_string().contains("large"), "{report}");
}

/// An edited file does not change active runs. The sources travel with a run, so the worker never reads the file.
#[test]
fn the_sources_travel_with_a_run() {
    let place = Server::shared().place("sources");
    place.start(&counting(2, "0", "PT0S"), &[]);
    fs::remove_file(place.path(&format!("{}.yaml", place.id))).unwrap();
    let _worker = place.worker(&[]);
    place.await_status("Succeeded");
}

/// An agent that sends all earlier messages with each request: the history contains each answer, but no request.
#[test]
fn large_requests_go_by_reference() {
    let place = Server::shared().place("agent");
    let _worker = place.worker(&[]);
    place.start(
        r#"
name: agent
variables: { talk: "" }
actions:
  seed:
    type: shell
    inputs: { run: "head -c 600000 /dev/urandom | base64 -w0" }
  keep: { type: setVariable, inputs: { name: talk, value: "@outputs('seed')" } }
  asks:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 100, timeout: PT1H }
    on_limit: continue
    actions:
      ask: { type: shell, inputs: { run: 'wc -c', stdin: "@variables('talk')" } }
outputs: { last: "@outputs('ask')" }
"#,
        &[],
    );
    place.await_status("Succeeded");
    let info = Server::shared().describe(&place.id);
    let size: u64 = info["historySizeBytes"].as_str().unwrap().parse().unwrap();
    // 100 times 800,000 bytes would be 80 MB.
    assert!(size < 3_000_000, "{size} bytes of history");
}

/// The loop receives commands meanwhile, and none of its executions is long.
#[test]
fn a_loop_without_effects_yields_and_carries_over() {
    let place = Server::shared().place("pure");
    let _worker = place.worker(&[]);
    let text = counting(1_000_000, "0", "PT0S");
    let (before, after) = text.split_once("type: shell").unwrap();
    let (_, after) = after.split_once("      next:").unwrap();
    let text = format!("{before}type: compose\n        inputs: 1\n      next:{after}");
    // After two workflow tasks of 2,000 steps each.
    place.start_carrying(&text, "8");
    let done = || {
        let report = place.report(&["status", &place.id]);
        // The loop exists only after the worker has finished the first task.
        report["loops"][0]["iterations_completed"]
            .as_u64()
            .unwrap_or(0)
    };
    until("it goes on behind a carry-over", || done() > 4_500);
    assert_eq!(place.report(&["pause", &place.id])["status"], "Paused");
    let completed = done();
    let info = Server::shared().describe(&place.id);
    let events: u64 = info["historyLength"].as_str().unwrap().parse().unwrap();
    assert!(events < 60, "{events} events");
    assert_ne!(info["firstRunId"], info["execution"]["runId"], "{info}");
    assert_eq!(done(), completed);
    assert_eq!(place.report(&["cancel", &place.id])["status"], "Cancelled");
}
