//! Reading runs, with and without workers: the state that is computed from Temporal's history is that of the run.

use super::server::{Server, counting, program, windlass};
use serde_json::Value;

/// What must be equal for a run on any backend: the report without times and ids.
fn lines(report: &Value) -> Vec<String> {
    let events = report["events"].as_array().unwrap();
    let line = |event: &Value| {
        let mut event = event.as_object().unwrap().clone();
        for key in ["at", "due_at", "next_at", "key", "sequence"] {
            event.remove(key);
        }
        Value::Object(event).to_string()
    };
    events.iter().map(line).collect()
}

#[test]
fn a_run_reports_the_same_on_both_backends() {
    let place = Server::shared().place("same");
    let worker = place.worker(&[]);
    place.start(&counting(4, "0.01", "PT0.02S"), &[]);
    place.await_status("Succeeded");
    // No process has the run in memory.
    worker.kill();
    let there = place.report(&["history", &place.id, "--events"]);
    let state = place.path("state").display().to_string();
    let file = place
        .path(&format!("{}.yaml", place.id))
        .display()
        .to_string();
    let id = format!("{}-here", place.id);
    let begun = std::process::Command::new(program())
        .args(["run", &file, "--state", &state, "--id", &id])
        .env("PLACE", place.dir.path())
        .output()
        .unwrap();
    assert!(begun.status.success());
    let here = windlass(&["history", &id, "--events", "--state", &state, "-o", "json"]);
    let here: Value = serde_json::from_slice(&here.stdout).unwrap();
    assert_eq!(lines(&here), lines(&there));
    let results = |report: &Value| {
        let rows = report["iterations"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["result"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(results(&here), results(&there));
}

#[test]
fn a_run_is_looked_at_without_any_worker() {
    let place = Server::shared().place("alone");
    let worker = place.worker(&[]);
    place.start(&counting(1_000, "0.02", "PT0.02S"), &[]);
    place.await_traces(5);
    worker.kill();
    let report = place.report(&["status", &place.id]);
    let status = report["status"].as_str().unwrap();
    assert!(["Running", "Waiting"].contains(&status), "{report}");
    assert!(report["loops"][0]["iterations_completed"].as_u64().unwrap() >= 4);
    let dump = place.report(&["dump", &place.id]);
    assert!(dump.to_string().contains("counting"), "{dump}");
    let done = place.ask(&["logs", &place.id]);
    assert!(done.status.success());
}

/// Temporal's own tools find runs by the attributes that Windlass sets, also after a carry-over.
#[test]
fn runs_are_found_by_status_workflow_and_label() {
    let server = Server::shared();
    let mut place = server.place("search");
    place.url.push_str("&search=true");
    let _worker = place.worker(&[]);
    let found = |query: &str| {
        let query = format!("{query} AND WorkflowId STARTS_WITH '{}'", place.id);
        let count = server.tool(&["workflow", "count", "--query", &query]);
        count.contains("Total: 1")
    };
    let mine = "WindlassWorkflow = 'counting' AND WindlassLabels = 'team=blue'";
    let file = place.file("workflow.yaml", &counting(1_000, "0.01", "PT0.05S"));
    let done = std::process::Command::new(program())
        .args(["run", &file, "--detach", "--engine", &place.url])
        .args(["--id", &place.id, "--label", "team=blue"])
        .env("WINDLASS_TEMPORAL_CARRY_OVER", "40")
        .output()
        .unwrap();
    assert!(done.status.success());
    let ask = |status: &str| format!("{mine} AND WindlassStatus = '{status}'");
    super::server::until("it is found as running", || found(&ask("Running")));
    // After some executions.
    place.await_traces(20);
    place.report(&["pause", &place.id]);
    super::server::until("it is found as paused", || found(&ask("Paused")));
    place.report(&["cancel", &place.id]);
    super::server::until("it is found as cancelled", || found(&ask("Cancelled")));
}
