//! One command to many runs, chosen by label, status, workflow, or because they make no progress.

use super::process::Place;
use serde_json::Value;

const WAITS: &str = "
name: waits
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 5)\"
    delay: 30m
    actions: { n: { type: compose, inputs: 1 } }
";

fn ids(listed: &Value) -> Vec<&str> {
    let mut ids: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["run"].as_str().or(one.as_str()).unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn many_runs_are_commanded_at_once() {
    let place = Place::new();
    let file = place.file("waits.yaml", WAITS);
    let hangs = place.file(
        "hangs.yaml",
        "name: hangs\nactions: { s: { type: shell, run: sleep 100 } }\n",
    );
    let mut all = Vec::new();
    for (id, label) in [("a1", "team=a"), ("a2", "team=a"), ("b1", "team=b")] {
        let mut run = place.follow(&["run", &file, "--id", id, "--label", label]);
        run.until("LoopIteration", "");
        all.push(run);
    }
    let mut hanging = place.follow(&["run", &hangs, "--id", "h", "--label", "team=a"]);
    hanging.until("ActionStarted", "");

    // A run that sleeps is not stuck; one that hangs is.
    let stuck = place.json(&["list", "--stuck", "1ms", "-o", "json"]);
    assert_eq!(ids(&stuck), ["h"]);
    assert_eq!(
        place.json(&["list", "--stuck", "10m", "-o", "json"]),
        Value::Array(Vec::new())
    );
    let newest = place.json(&["status", "-o", "json"]);
    assert_eq!(newest["run"], "h");

    let report = place.json(&[
        "pause",
        "--label",
        "team=a",
        "--workflow",
        "waits",
        "-o",
        "json",
    ]);
    assert_eq!(ids(&report["done"]), ["a1", "a2"]);
    assert!(
        report["done"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["status"] == "Paused")
    );
    let would = place.json(&[
        "resume",
        "--workflow",
        "waits",
        "--status",
        "Paused",
        "--dry-run",
        "-o",
        "json",
    ]);
    assert_eq!(ids(&would), ["a1", "a2"]);

    let report = place.json(&["cancel", "--stuck", "1ms", "-o", "json"]);
    assert_eq!(ids(&report["done"]), ["h"]);
    let report = place.json(&["cancel", "--workflow", "waits", "-o", "json"]);
    assert_eq!(ids(&report["done"]), ["a1", "a2", "b1"]);
    let report = place.json(&["cancel", "--workflow", "waits", "-o", "json"]);
    assert_eq!(report["done"], Value::Array(Vec::new()));
    let would = place.json(&["retry", "--label", "team=a", "--dry-run", "-o", "json"]);
    assert_eq!(ids(&would), ["a1", "a2", "h"]);
    all.into_iter().for_each(super::process::Following::kill);
    hanging.kill();

    // The same in a store without an owner.
    let pruned = place.json(&[
        "prune",
        "--label",
        "team=a",
        "--status",
        "Cancelled",
        "-o",
        "json",
    ]);
    assert_eq!(ids(&pruned["runs"]), ["a1", "a2", "h"]);
    assert_eq!(ids(&place.json(&["list", "-o", "json"])), ["b1"]);
}

#[test]
fn retried_runs_are_followed_together() {
    let place = Place::new();
    let there = place.state().with_file_name("there");
    let text = format!(
        "actions: {{ s: {{ type: shell, run: \"test -e {}\" }} }}\n",
        there.display()
    );
    let file = place.file("w.yaml", &text);
    for id in ["r1", "r2"] {
        assert_eq!(
            place.run(&["run", &file, "--id", id]).status.code(),
            Some(1)
        );
    }
    place.file("there", "");
    let again = place.run(&["retry", "--workflow", "w"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let ended = place.json(&["list", "--status", "Succeeded", "-o", "json"]);
    assert_eq!(ids(&ended).len(), 2);
    // What was retried is not retried once more.
    let third = place.run(&["retry", "--status", "Failed"]);
    let stderr = String::from_utf8_lossy(&third.stderr);
    assert!(
        stderr.contains("2 runs left out: retried before"),
        "{stderr}"
    );
    let ended = place.json(&["list", "--status", "Succeeded", "-o", "json"]);
    assert_eq!(ids(&ended).len(), 2);
    for command in ["cancel", "pause", "resume"] {
        let refused = place.run(&[command, "--status", "Succeeded", "--dry-run"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let refused = place.run(&["prune", "--status", "Waiting"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let both = [
        "prune",
        "--workflow",
        "other,w",
        "--keep",
        "1",
        "--dry-run",
        "-o",
        "json",
    ];
    assert_eq!(ids(&place.json(&both)["runs"]).len(), 3);
}

#[test]
fn nothing_is_meant_by_nothing() {
    let place = Place::new();
    for args in [
        &["cancel"][..],
        &["pause"],
        &["retry"],
        &["cancel", "r", "--label", "a=b"],
        &["cancel", "--dry-run"],
    ] {
        let refused = place.run(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
    }
}
