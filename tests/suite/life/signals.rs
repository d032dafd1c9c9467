//! `waitForSignal`: the wait survives the process, signals are stored, and the wait can time out.

use super::process::Place;
use crate::store::power::strace_works;
use serde_json::json;
use std::process::{Command, Stdio};
use windlass_engine::{Engine, ErrorCode, Signal, StartOptions};
use windlass_expression::Value;
use windlass_model::model::Status;

const WORKFLOW: &str = "
name: approval
actions:
  before: { type: shell, run: 'true' }
  approval: { type: waitForSignal, inputs: { signal: approved, timeout: PT1H } }
  again: { type: waitForSignal, signal: approved }
outputs: { first: \"@outputs('approval').by\", second: \"@outputs('again')\" }
";

#[test]
fn a_wait_for_a_signal_survives_a_kill() {
    let place = Place::new();
    let file = place.file("approval.yaml", WORKFLOW);
    let mut run = place.follow(&["run", &file, "--id", "a"]);
    // The wait begins in the step that ends `before`.
    run.until("ActionEnded", "before");
    run.kill();
    let status = place.json(&["status", "a", "-o", "json"]);
    assert_eq!(status["status"], "Waiting", "{status}");

    // The store has no owner: the signal is stored, and only the wait changes.
    let payload = ["--payload", "{\"by\": \"eve\"}"];
    let sent = place.run(&["signal", "a", "approved", payload[0], payload[1]]);
    assert!(sent.status.success(), "{sent:?}");

    // With a live owner.
    let mut resumed = place.follow(&["resume", "a"]);
    resumed.until("Answered", "");
    let sent = place.run(&["signal", "a", "approved", "--payload", "[2]"]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(resumed.result(), json!({ "first": "eve", "second": [2] }));
}

#[test]
fn early_signals_are_stored_through_a_kill() {
    let place = Place::new();
    let file = place.file(
        "early.yaml",
        "
name: early
actions:
  long: { type: waitForSignal, signal: go }
  first: { type: waitForSignal, signal: data }
  second: { type: waitForSignal, signal: data }
outputs: \"@createArray(outputs('first'), outputs('second'))\"
",
    );
    let mut run = place.follow(&["run", &file, "--id", "e"]);
    run.until("RunStarted", "");
    for payload in ["1", "2"] {
        let sent = place.run(&["signal", "e", "data", "--payload", payload]);
        assert!(sent.status.success(), "{sent:?}");
    }
    run.kill();
    assert!(place.run(&["signal", "e", "go"]).status.success());
    let resumed = place.follow(&["resume", "e"]);
    assert_eq!(resumed.result(), json!([1, 2]));
}

#[test]
fn a_wait_without_a_signal_times_out() {
    let place = Place::new();
    let file = place.file(
        "late.yaml",
        "
actions:
  approval: { type: waitForSignal, signal: never, timeout: PT0.2S }
",
    );
    let output = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"]["kind"], "timeout", "{report}");
    assert_eq!(report["error"]["action"], "approval", "{report}");
}

#[test]
fn a_name_that_nothing_waits_for_is_refused_with_those_there_are() {
    let place = Place::new();
    let file = place.file("approval.yaml", WORKFLOW);
    let mut run = place.follow(&["run", &file, "--id", "a"]);
    run.until("ActionEnded", "before");
    let misspelt = || {
        let sent = place.run(&["signal", "a", "aproved"]);
        assert_eq!(sent.status.code(), Some(2), "{sent:?}");
        let stderr = String::from_utf8(sent.stderr).unwrap();
        let why = "run a waits for no signal `aproved`; its workflow waits for approved; did you \
                   mean `approved`?";
        assert!(stderr.contains(why), "{stderr}");
    };
    // The same with an owner, and in a store without an owner.
    misspelt();
    run.kill();
    misspelt();
    let dump = place.json(&["dump", "a", "-o", "json"]);
    assert!(!dump.to_string().contains("aproved"), "{dump}");

    let none = place.file(
        "none.yaml",
        "actions: { nap: { type: wait, inputs: PT1H } }",
    );
    let mut run = place.follow(&["run", &none, "--id", "n"]);
    run.until("RunStarted", "");
    let sent = place.run(&["signal", "n", "go"]);
    assert_eq!(sent.status.code(), Some(2), "{sent:?}");
    let stderr = String::from_utf8(sent.stderr).unwrap();
    assert!(stderr.contains("its workflow waits for none"), "{stderr}");
    run.kill();
}

/// A client that receives `cancelled` has cancelled the run, even if the run ends in the same step.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_arrives_too_late_is_reported() {
    let engine = Engine::builder().in_memory().unwrap();
    let place = Place::new();
    let file = place.file(
        "go.yaml",
        "actions: { go: { type: waitForSignal, signal: go } }",
    );
    let workflow = engine.load_file(&file, None).unwrap();
    for number in 0..300 {
        let id = format!("r{number}");
        let options = StartOptions {
            id: Some(id.clone()),
            ..StartOptions::default()
        };
        let run = engine
            .start_with(&workflow, Value::Null, options)
            .await
            .unwrap();
        let (_, cancelled) = tokio::join!(
            engine.signal(&id, Signal::new("go".into(), Value::Null)),
            engine.cancel(&id)
        );
        let succeeded = run.outcome().await.unwrap().status == Status::Succeeded;
        match cancelled {
            Ok(status) => assert!(!succeeded, "{id}: {status:?}"),
            Err(error) => assert!(succeeded && error.code() == ErrorCode::RunEnded),
        }
    }
}

#[test]
fn a_list_shows_the_signal_that_a_run_waits_for_and_an_id_is_received_once() {
    let place = Place::new();
    let workflow = "
actions:
  first: { type: waitForSignal, signal: go, timeout: 1h }
  second: { type: waitForSignal, signal: go }
outputs: \"@outputs('first')\"
";
    let file = place.file("w.yaml", workflow);
    let mut run = place.follow(&["run", &file, "--id", "r"]);
    run.until("RunStarted", "");
    let listed = || String::from_utf8(place.run(&["list"]).stdout).unwrap();
    while !listed().contains("signal go, in ") {}
    let once = ["signal", "r", "go", "--payload", "1", "--id", "one"];
    for _ in 0..3 {
        let sent = place.run(&once);
        assert!(sent.status.success(), "{sent:?}");
    }
    while !listed().contains("  signal go\n") {}
    // Another signal with this id would be lost, so it is refused.
    for other in [
        ["signal", "r", "go", "--payload", "3", "--id", "one"],
        ["signal", "r", "go", "--payload", "null", "--id", "one"],
    ] {
        let refused = place.run(&other);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(
            stderr.contains("another signal with the id `one`"),
            "{stderr}"
        );
    }
    let refused = place.run(&["signal", "r", "go", "--id", "no id"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("an id has 1 to"), "{stderr}");
    let sent = place.run(&["signal", "r", "go", "--payload", "2"]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(run.result(), json!(1));
}

#[test]
fn a_process_that_ends_with_a_signal_answers_the_sender_first() {
    for round in 0..60 {
        let place = Place::new();
        let workflow = "actions: { go: { type: waitForSignal, signal: go } }\n";
        let file = place.file("w.yaml", workflow);
        let mut run = place.follow(&["run", &file, "--id", "r"]);
        run.until("RunStarted", "");
        let sent = place.run(&["signal", "r", "go"]);
        assert!(sent.status.success(), "round {round}: {sent:?}");
        run.result();
    }
}

/// The owner of the store may be killed before its answer has arrived. Then the next owner gets the request, or this
/// process becomes the owner.
#[test]
fn a_signal_is_received_once_though_its_receiver_is_killed() {
    const SIGNALS: u64 = 30;
    let place = Place::new();
    let text = format!(
        "
name: received
variables: {{ seen: [] }}
actions:
  each:
    type: until
    condition: \"@greaterOrEquals(length(variables('seen')), {SIGNALS})\"
    limit: {{ count: 100, timeout: PT1H }}
    actions:
      next: {{ type: waitForSignal, signal: next }}
      keep: {{ type: appendToArrayVariable, name: seen, value: \"@outputs('next')\" }}
outputs: \"@variables('seen')\"
"
    );
    let file = place.file("received.yaml", &text);
    let mut owner = place.follow(&["run", &file, "--id", "r"]);
    owner.until("RunStarted", "");
    for number in 0..SIGNALS {
        let payload = number.to_string();
        let args = ["signal", "r", "next", "--payload", &payload];
        let mut sender = place.command(&args).spawn().unwrap();
        // A process that resumes prints the whole history. Every second one is killed as soon as it prints, perhaps
        // before it has received the signal. The others are killed when this step is durable and the answer is on its
        // way.
        let answers = if number % 2 == 0 { 1 } else { number + 1 };
        for _ in 0..answers {
            owner.until("Answered", "");
        }
        owner.kill();
        owner = place.follow(&["resume", "r"]);
        let sent = sender.wait().unwrap();
        assert!(sent.success(), "{number}: {sent}");
    }
    let all: Vec<u64> = (0..SIGNALS).collect();
    assert_eq!(owner.result(), json!(all));
}

/// An owner writes sled's index under a temporary name and renames it. Another command may list the files before the
/// rename and get the owner's lock after it.
#[test]
fn a_command_opens_the_store_although_its_owner_has_just_renamed_an_index() {
    if !strace_works() {
        return;
    }
    let place = Place::new();
    let file = place.file(
        "w.yaml",
        "actions: { go: { type: waitForSignal, signal: go } }\n",
    );
    let mut owner = place.follow(&["run", &file, "--id", "r"]);
    owner.until("RunStarted", "");
    owner.kill();
    let delayed = |call: &str, micros: u32, args: &[&str]| {
        let command = place.command(args);
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}")])
            .args(["-e", &format!("inject={call}:delay_enter={micros}")])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let has_unfinished_index = || {
        let names = std::fs::read_dir(place.state().join("store")).unwrap();
        let mut names = names.map(|entry| entry.unwrap().path());
        names.any(|path| path.extension().is_some_and(|end| end == "generating"))
    };
    let mut owner = delayed("rename", 800_000, &["signal", "r", "go"]);
    while !has_unfinished_index() {
        assert!(owner.try_wait().unwrap().is_none(), "it wrote no index");
    }
    let other = delayed("flock", 1_500_000, &["resume", "r"]);
    for command in [owner, other] {
        let ended = command.wait_with_output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
}
