//! Only `resume` and `serve` continue a run after a crash. If the resuming process lacks something that the run needs,
//! the run does not fail.

use super::process::Place;
use serde_json::json;
use std::fs;

const GREETS: &str = "
name: greets
actions:
  before: { type: shell, run: 'true' }
  go: { type: waitForSignal, signal: go }
  greeting: { type: activity, activityType: greet }
  asked: { type: shell, run: 'test -n \"$TOLD\"', env: { TOLD: '${secret:WORD}' } }
outputs: \"@outputs('greeting')\"
";

const COUNTS: &str = "
name: counts
actions:
  note: { type: shell, run: 'echo begun >> \"$LOG\"; sleep \"$FOR\"', env: { LOG: \"@inputs('log')\", FOR: \"@inputs('for')\" } }
inputs: { log: { type: string }, for: { type: string } }
";

#[test]
fn a_run_leaves_those_of_others_as_they_are() {
    let place = Place::new();
    let counts = place.file("counts.yaml", COUNTS);
    let log = place.dir.path().join("log");
    let log = format!("log={}", log.display());
    let mut left = place.follow(&["run", &counts, "--id", "left", "-i", &log, "-i", "for=1000"]);
    left.until("RunStarted", "");
    let begun = || fs::read_to_string(place.dir.path().join("log")).unwrap_or_default();
    while begun().is_empty() {
        std::thread::yield_now();
    }
    left.kill();
    let tiny = place.file("tiny.yaml", "type: compose\ninputs: 1");
    for _ in 0..3 {
        assert!(place.run(&["run", &tiny]).status.success());
    }
    assert_eq!(begun(), "begun\n");
    assert_eq!(
        place.json(&["status", "left", "-o", "json"])["status"],
        "Running"
    );
}

#[test]
fn a_run_without_its_handlers_or_secrets_is_parked() {
    let place = Place::new();
    let file = place.file("greets.yaml", GREETS);
    let handlers = place.file("handlers.yaml", "greet: { command: [echo, '\"hello\"'] }");
    let secrets = place.dir.path().join("secrets");
    fs::create_dir(&secrets).unwrap();
    fs::write(secrets.join("WORD"), "aside").unwrap();
    let secrets = secrets.to_str().unwrap();
    let given = ["--handlers", handlers.as_str(), "--secrets", secrets];
    let mut run = place.follow(&[&["run", file.as_str(), "--id", "g"], &given[..]].concat());
    run.until("ActionEnded", "before");
    run.kill();
    assert!(place.run(&["signal", "g", "go"]).status.success());

    for (args, what) in [
        (&["resume", "g"][..], "the handler `greet`"),
        (
            &["resume", "g", "--handlers", &handlers][..],
            "the secret `WORD`",
        ),
    ] {
        let refused = place.run(args);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
    }
    let resumed = place.follow(&[&["resume", "g"], &given[..]].concat());
    assert_eq!(resumed.result(), json!("hello"));
}
