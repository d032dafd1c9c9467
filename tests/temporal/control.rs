//! Commands to runs, and what is reported if they arrive too late or if there is no worker.

use super::server::{Server, counting, printed_by, program};
use serde_json::Value;

#[test]
fn a_run_is_followed_to_its_end() {
    let place = Server::shared().place("follow");
    let _worker = place.worker(&[]);
    let file = place.file("workflow.yaml", &counting(3, "0.01", "PT0S"));
    let done = place.ask(&["run", &file, "--id", &place.id, "--events", "jsonl"]);
    assert!(done.status.success(), "{}", printed_by(&done));
    let out = String::from_utf8(done.stdout).unwrap();
    let events: Vec<Value> = out
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let started = events
        .iter()
        .filter(|event| event["event"] == "ActionStarted");
    assert!(started.count() >= 3, "{out}");
    // The same id does not start a second run.
    let again = place.ask(&["run", &file, "--id", &place.id]);
    assert_eq!(again.status.code(), Some(2), "{}", printed_by(&again));
    assert!(
        printed_by(&again).contains("already"),
        "{}",
        printed_by(&again)
    );
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
    // `resume` follows the run, so another process cancels it.
    let resumed = std::thread::scope(|scope| {
        let resuming = scope.spawn(|| place.ask(&["resume", &place.id]));
        place.await_traces(before + 2);
        let cancelled = place.report(&["cancel", &place.id]);
        assert_eq!(cancelled["status"], "Cancelled");
        resuming.join().unwrap()
    });
    assert_eq!(resumed.status.code(), Some(6), "{}", printed_by(&resumed));
    assert_eq!(place.status(), "Cancelled");
    let late = place.ask(&["pause", &place.id]);
    assert_eq!(late.status.code(), Some(2), "{}", printed_by(&late));
    assert!(
        printed_by(&late).contains("has ended"),
        "{}",
        printed_by(&late)
    );
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
    let file = place.file("workflow.yaml", SIGNALLED);
    let following = std::process::Command::new(program())
        .args(["run", &file, "--id", &place.id, "--engine", &place.url])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    super::server::until("the run waits", || {
        let done = place.ask(&["status", &place.id]);
        printed_by(&done).contains("waiting")
    });
    // A client that is stopped leaves the run to the worker.
    let client = nix::unistd::Pid::from_raw(i32::try_from(following.id()).unwrap());
    nix::sys::signal::kill(client, nix::sys::signal::Signal::SIGTERM).unwrap();
    let stopped = following.wait_with_output().unwrap();
    let printed = printed_by(&stopped);
    assert_eq!(stopped.status.code(), Some(7), "{printed}");
    let status = format!("windlass status --engine '{}' {}", place.url, place.id);
    let says = format!("continues on Temporal: {status}");
    assert!(printed.contains(&says), "{printed}");
    let listed = printed_by(&place.ask(&["list"]));
    assert!(!listed.contains("moves"), "{listed}");
    let wrong = place.ask(&["signal", &place.id, "approvd"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        printed_by(&wrong).contains("approved"),
        "{}",
        printed_by(&wrong)
    );
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

const QUESTION: &str = r#"
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
    place.start(QUESTION, &[]);
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
        assert!(
            printed_by(&refused).contains(says),
            "{}",
            printed_by(&refused)
        );
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

/// What needs the store of one machine is refused before a run starts.
#[test]
fn state_and_concurrency_are_refused() {
    let place = Server::shared().place("refused");
    let state = "state: { n: 0 }\nactions: { a: { type: compose, inputs: \"@state('n')\" } }\n";
    let concurrency = "concurrency: skip\nactions: { a: { type: compose, inputs: 1 } }\n";
    for text in [state, concurrency] {
        let file = place.file("refused.yaml", text);
        let refused = place.ask(&["run", &file, "--detach"]);
        assert!(!refused.status.success(), "{}", printed_by(&refused));
        assert!(
            printed_by(&refused).contains("Temporal"),
            "{}",
            printed_by(&refused)
        );
    }
}

/// Commands are sent near the end of the run: each is accepted before the end, or refused as too late.
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
                    let printed = printed_by(&done);
                    let late = printed.contains("has ended") || printed.contains("no signal");
                    assert!(done.status.success() || late, "{printed}");
                });
            }
        });
        // It may be paused.
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
    assert!(done.status.success(), "{}", printed_by(&done));
    assert_eq!(place.traces(), ["first", "second", "second"]);
}

#[test]
fn a_command_without_a_worker_says_so() {
    let place = Server::shared().place("nobody");
    place.start(SIGNALLED, &[]);
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["status"], "Waiting", "{report}");
    let without_worker = place.ask(&["pause", &place.id]);
    assert_eq!(without_worker.status.code(), Some(8));
    assert!(
        printed_by(&without_worker).contains("windlass worker"),
        "{}",
        printed_by(&without_worker)
    );
    for args in [&["list"][..], &["status", &place.id]] {
        let printed = printed_by(&place.ask(args));
        assert!(
            printed.contains("start `windlass worker --engine"),
            "{printed}"
        );
    }
}

const NEEDS_A_SECRET: &str = r#"
name: needs a secret
actions:
  all:
    type: scope
    timeout: 4s
    actions: { use: { type: shell, run: 'echo "$T" >> "$PLACE/traces"', env: { T: "${secret:TOKEN}" } } }
"#;

/// The reason is reported, the run accepts commands, its deadline passes, and a worker with the secret continues it.
#[test]
fn a_run_whose_worker_lacks_a_secret_says_so() {
    let mut place = Server::shared().place("lacks");
    let worker = place.worker(&[]);
    let until_passed = format!("{}-passed", place.id);
    place.start_as(&until_passed, NEEDS_A_SECRET, &[]);
    let text = NEEDS_A_SECRET.replace("4s", "1h");
    let file = place.file("workflow.yaml", &text);
    let stuck = place.ask(&["run", &file, "--id", &place.id]);
    let printed = printed_by(&stuck);
    assert_eq!(stuck.status.code(), Some(3), "{printed}");
    assert!(printed.contains("needs the secret `TOKEN`"), "{printed}");
    assert!(printed.contains("windlass status"), "{printed}");
    let report = place.report(&["status", &place.id]);
    let reason = report["labels"]["windlass.parked"].as_str().unwrap();
    assert!(reason.contains("`TOKEN`"), "{report}");
    assert_eq!(place.report(&["pause", &place.id])["status"], "Paused");
    assert_eq!(place.report(&["cancel", &place.id])["status"], "Cancelled");
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["labels"]["windlass.parked"], Value::Null, "{report}");
    super::server::until("the deadline passes", || {
        place.report(&["status", &until_passed])["status"] == "TimedOut"
    });

    let mended = format!("{}-mended", place.id);
    place.start_as(&mended, &text, &[]);
    place.settings = vec![("WINDLASS_SECRET_TOKEN", String::from("t0ken"))];
    worker.kill();
    let _worker = place.worker(&[]);
    place.await_traces(1);
    assert_eq!(place.traces(), ["t0ken"]);
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let done = super::server::windlass(&["list", "--engine", "temporal://127.0.0.1:1/x?queue=q"]);
    assert_eq!(done.status.code(), Some(8), "{}", printed_by(&done));
    assert!(
        printed_by(&done).contains("127.0.0.1:1"),
        "{}",
        printed_by(&done)
    );
    let url = Server::shared().url("q").replace("/default", "/nowhere");
    let done = super::server::windlass(&["worker", "--engine", &url]);
    let printed = printed_by(&done);
    assert_eq!(done.status.code(), Some(8), "{printed}");
    assert!(
        printed.ends_with("Namespace nowhere is not found.\n"),
        "{printed}"
    );
    let done = super::server::windlass(&["list", "--engine", "http://127.0.0.1"]);
    assert!(
        printed_by(&done).contains("temporal://"),
        "{}",
        printed_by(&done)
    );
}
