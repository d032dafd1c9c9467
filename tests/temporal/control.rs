//! Commands to runs, and what is said when they come too late or to nobody.

use super::server::{Server, counting, told};
use serde_json::Value;

#[test]
fn a_run_is_followed_to_its_end() {
    let place = Server::shared().place("follow");
    let _worker = place.worker(&[]);
    let file = place.file("workflow.yaml", &counting(3, "0.01", "PT0S"));
    let done = place.ask(&["run", &file, "--id", &place.id, "--events", "jsonl"]);
    assert!(done.status.success(), "{}", told(&done));
    let out = String::from_utf8(done.stdout).unwrap();
    let events: Vec<Value> = out
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let started = events
        .iter()
        .filter(|event| event["event"] == "ActionStarted");
    assert!(started.count() >= 3, "{out}");
    // The same id is not started twice.
    let again = place.ask(&["run", &file, "--id", &place.id]);
    assert_eq!(again.status.code(), Some(2), "{}", told(&again));
    assert!(told(&again).contains("already"), "{}", told(&again));
}

#[test]
fn a_pause_stops_the_clock_and_a_cancel_cuts() {
    let place = Server::shared().place("pause");
    let _worker = place.worker(&[]);
    place.start(&counting(1_000, "0.05", "PT0.1S"), &[]);
    place.await_traces(2);
    let paused = place.report(&["pause", &place.id]);
    assert_eq!(paused["status"], "Paused");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let before = place.traces().len();
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(place.traces().len(), before);
    let list = place.report(&["list", "--status", "Paused"]);
    assert!(list.to_string().contains(&place.id), "{list}");
    // Whoever resumes follows, so it is cancelled from beside.
    let resumed = std::thread::scope(|scope| {
        let resuming = scope.spawn(|| place.ask(&["resume", &place.id]));
        place.await_traces(before + 2);
        let cancelled = place.report(&["cancel", &place.id]);
        assert_eq!(cancelled["status"], "Cancelled");
        resuming.join().unwrap()
    });
    assert_eq!(resumed.status.code(), Some(6), "{}", told(&resumed));
    assert_eq!(place.status(), "Cancelled");
    let late = place.ask(&["pause", &place.id]);
    assert_eq!(late.status.code(), Some(2), "{}", told(&late));
    assert!(told(&late).contains("has ended"), "{}", told(&late));
}

const SIGNALLED: &str = r#"
name: signalled
actions:
  ask: { type: waitForSignal, signal: approved }
outputs:
  by: "@body('ask').by"
"#;

#[test]
fn a_signal_ends_a_run_and_is_answered() {
    let place = Server::shared().place("signal");
    let _worker = place.worker(&[]);
    place.start(SIGNALLED, &[]);
    place.await_status("Waiting");
    let wrong = place.ask(&["signal", &place.id, "approvd"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(told(&wrong).contains("approved"), "{}", told(&wrong));
    let sent = place.report(&[
        "signal",
        &place.id,
        "approved",
        "--payload",
        r#"{"by":"me"}"#,
    ]);
    assert_eq!(sent["status"], "Succeeded");
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["outcome"]["output"]["by"], "me", "{report}");
}

const ASKED: &str = r#"
name: asked
actions:
  ask:
    type: waitForSignal
    title: Deploy?
    choices: [approve, reject]
    schema: { properties: { ticket: { type: integer } }, required: [ticket] }
outputs: "@outputs('ask')"
"#;

#[test]
fn a_question_accepts_what_it_asks_for() {
    let place = Server::shared().place("question");
    let _worker = place.worker(&[]);
    place.start(ASKED, &[]);
    place.await_status("Waiting");
    let report = place.report(&["status", &place.id]);
    assert_eq!(
        report["doing"][0]["question"]["title"], "Deploy?",
        "{report}"
    );
    for (given, says) in [
        (r#""maybe""#, "is not a choice"),
        (r#"{"choice": "approve"}"#, "required"),
    ] {
        let refused = place.ask(&["signal", &place.id, "ask", "--payload", given]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(told(&refused).contains(says), "{}", told(&refused));
    }
    let given = r#"{"choice": "approve", "ticket": 7}"#;
    let sent = place.report(&["signal", &place.id, "--payload", given]);
    assert_eq!(sent["status"], "Succeeded");
    let report = place.report(&["status", &place.id]);
    let output = &report["outcome"]["output"];
    assert_eq!(
        (&output["choice"], &output["ticket"]),
        (&"approve".into(), &7.into()),
        "{report}"
    );
    assert!(output["answeredBy"].is_string(), "{report}");
}

/// What needs the store of one machine is refused before a run starts there.
#[test]
fn state_and_concurrency_are_refused() {
    let place = Server::shared().place("refused");
    let state = "state: { n: 0 }\nactions: { a: { type: compose, inputs: \"@state('n')\" } }\n";
    let concurrency = "concurrency: skip\nactions: { a: { type: compose, inputs: 1 } }\n";
    for text in [state, concurrency] {
        let file = place.file("refused.yaml", text);
        let refused = place.ask(&["run", &file, "--detach"]);
        assert!(!refused.status.success(), "{}", told(&refused));
        assert!(told(&refused).contains("Temporal"), "{}", told(&refused));
    }
}

/// Commands race the end of the run: each is taken before it, or told that it came too late.
#[test]
fn commands_that_race_the_end_are_answered() {
    let place = Server::shared().place("race");
    let _worker = place.worker(&[]);
    for round in 0..5 {
        let id = format!("{}-{round}", place.id);
        place.start_as(&id, &counting(1, "0.5", "PT0S"), &[]);
        place.await_traces(round + 1);
        std::thread::scope(|scope| {
            for wait in 0..8_u64 {
                let (place, id) = (&place, &id);
                scope.spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(wait * 70));
                    let command = if wait % 2 == 0 { "pause" } else { "signal" };
                    let mut args = vec![command, id];
                    args.extend((command == "signal").then_some("approved"));
                    let done = place.ask(&args);
                    let told = told(&done);
                    let late = told.contains("has ended") || told.contains("no signal");
                    assert!(done.status.success() || late, "{told}");
                });
            }
        });
        // It may stand still.
        let _ = place.ask(&["resume", &id]);
        super::server::until("the run ends", || {
            place.report(&["status", &id])["status"] == "Succeeded"
        });
        assert_eq!(place.traces().len(), round + 1);
    }
}

#[test]
fn a_run_that_failed_is_retried_from_its_place() {
    let place = Server::shared().place("retry");
    let _worker = place.worker(&[]);
    place.start(
        r#"
name: fails
actions:
  first:
    type: shell
    inputs: { run: 'echo first >> "$PLACE/traces"' }
  second:
    type: shell
    runAfter: { first: [Succeeded] }
    inputs: { run: 'echo second >> "$PLACE/traces"; test -e "$PLACE/well"' }
"#,
        &[],
    );
    place.await_status("Failed");
    place.file("well", "");
    let again = format!("{}-again", place.id);
    let done = place.ask(&["retry", &place.id, "--from", "failed", "--id", &again]);
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(place.traces(), ["first", "second", "second"]);
}

#[test]
fn a_command_without_a_worker_says_so() {
    let place = Server::shared().place("nobody");
    place.start(SIGNALLED, &[]);
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["status"], "Waiting", "{report}");
    let told_nobody = place.ask(&["pause", &place.id]);
    assert_eq!(told_nobody.status.code(), Some(8));
    assert!(
        told(&told_nobody).contains("windlass worker"),
        "{}",
        told(&told_nobody)
    );
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let done = super::server::windlass(&["list", "--engine", "temporal://127.0.0.1:1/x?queue=q"]);
    assert_eq!(done.status.code(), Some(8), "{}", told(&done));
    assert!(told(&done).contains("127.0.0.1:1"), "{}", told(&done));
    let done = super::server::windlass(&["list", "--engine", "http://127.0.0.1"]);
    assert!(told(&done).contains("temporal://"), "{}", told(&done));
}
