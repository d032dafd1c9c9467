//! A signal stops a process, not a run: another process continues the run, and only `pause` pauses it.

use super::first_use::Folder;
use super::paginate::serve;
use super::process::{Following, Place};
use crate::serve::{Server, Start};
use nix::sys::signal::Signal::{self, SIGHUP, SIGINT, SIGTERM};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};

const NAP: &str = "
name: nap
actions:
  before: { type: compose, inputs: 1 }
  nap: { type: wait, interval: { unit: Second, count: 1 } }
outputs: \"@outputs('before')\"
";

/// Sends a signal; returns the exit code and standard error.
fn exit_and_stderr(mut run: Following, signal: Signal) -> (Option<i32>, String) {
    send(&run, signal);
    let stderr = run.stderr_text();
    (run.child.wait().unwrap().code(), stderr)
}

fn send(run: &Following, signal: Signal) {
    send_to(&run.child, signal);
}

fn send_to(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}

/// Waits until a command of a workflow has written `count` lines.
fn lines(file: &Path, count: usize) -> Vec<String> {
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_signal_leaves_the_run_unfinished() {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let place = Place::new();
        let file = place.file("nap.yaml", NAP);
        let mut run = place.follow(&["run", &file, "--id", "r"]);
        run.until("TimerSet", "nap");
        let (code, stderr) = exit_and_stderr(run, signal);
        assert_eq!(code, Some(7), "{signal} {stderr}");
        assert!(stderr.contains("run r is unfinished"), "{signal} {stderr}");
        let resume = format!("windlass resume --state {} r", place.state().display());
        assert!(stderr.contains(&resume), "{signal} {stderr}");
        let status = place.json(&["status", "r", "-o", "json"]);
        assert_eq!(status["status"], "Waiting", "{signal} {status}");
        assert_eq!(status["pause"], json!(null), "{signal} {status}");
        assert_eq!(place.json(&["resume", "-o", "json"]), json!(1), "{signal}");
    }
}

#[test]
fn what_is_in_flight_is_cut_and_repeated_under_its_key() {
    let place = Place::new();
    let (keys, open) = (place.dir.path().join("keys"), place.dir.path().join("open"));
    let file = place.file(
        "slow.yaml",
        &format!(
            "actions:\n  slow:\n    type: shell\n    run: |\n      \
             echo $WINDLASS_IDEMPOTENCY_KEY >> {}\n      [ -e {} ] || sleep 1000\n",
            keys.display(),
            open.display()
        ),
    );
    let run = place.follow(&["run", &file, "--id", "r"]);
    lines(&keys, 1);
    let (code, stderr) = exit_and_stderr(run, SIGINT);
    assert_eq!(code, Some(7), "{stderr}");
    std::fs::write(&open, "").unwrap();
    assert!(place.run(&["resume"]).status.success());
    let keys = lines(&keys, 2);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], keys[1]);
}

/// Ctrl-C and a service manager send a signal to the whole process group. A command that was just started may not yet
/// be in its own group. Here, the command sends the signal to both processes.
#[test]
fn a_command_that_dies_of_the_signal_that_stops_windlass_is_repeated() {
    for signal in ["INT", "TERM", "HUP"] {
        let place = Place::new();
        let open = place.dir.path().join("open");
        let script = format!(
            "[ -e {0} ] || {{ touch {0}; kill -{signal} $PPID; kill -{signal} $$; }}",
            open.display()
        );
        let workflow = json!({ "actions": { "hit": { "type": "shell", "run": script } } });
        let file = place.file("hit.json", &workflow.to_string());
        let stopped = place.run(&["run", &file, "--id", "r"]);
        assert_eq!(stopped.status.code(), Some(7), "{signal} {stopped:?}");
        let resumed = place.run(&["resume"]);
        assert!(resumed.status.success(), "{signal} {resumed:?}");
        let status = place.json(&["status", "r", "-o", "json"]);
        assert_eq!(status["status"], "Succeeded", "{signal} {status}");
    }
}

#[test]
fn a_taken_id_stays_taken_while_the_owner_ends() {
    let place = Place::new();
    let seen = place.dir.path().join("seen");
    let text = format!(
        "actions: {{ slow: {{ type: shell, run: \"touch {}; sleep 1000\" }} }}\n",
        seen.display()
    );
    let file = place.file("slow.yaml", &text);
    let first = place.file(
        "first.yaml",
        "actions: { a: { type: compose, inputs: yesterday } }\noutputs: { a: \"@outputs('a')\" }\n",
    );
    let ran = place.run(&["run", &first, "--id", "job"]);
    assert!(ran.status.success(), "{ran:?}");
    let other = place.file(
        "other.yaml",
        "actions: { a: { type: compose, inputs: today } }\n",
    );
    let owner = place.follow(&["run", &file, "--id", "slow"]);
    while !seen.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // It ends only when its grace period is over, and refuses requests until then.
    send(&owner, SIGTERM);
    let start = place.run(&["run", &other, "--id", "job"]);
    let stderr = String::from_utf8_lossy(&start.stderr);
    assert_eq!(start.status.code(), Some(2), "{start:?}");
    assert!(stderr.contains("there is a run job already"), "{stderr}");
    let retry = place.run(&["retry", "slow", "--id", "job"]);
    assert_eq!(retry.status.code(), Some(2), "{retry:?}");
    drop(owner);
}

#[test]
fn a_command_that_ends_does_not_abort_the_action_of_another_one() {
    let place = Place::new();
    let in_place = |name: &str| place.dir.path().join(name).display().to_string();
    let (first, second, log) = (in_place("first"), in_place("second"), in_place("log"));
    let waits = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.01; done");
    let action = |run: String| format!("actions: {{ a: {{ type: shell, run: \"{run}\" }} }}\n");
    let own = place.file("own.yaml", &action(waits(&first)));
    let other = place.file(
        "other.yaml",
        &action(format!("echo begun >> {log}; {}", waits(&second))),
    );
    let mut owner = place.follow(&["run", &own]);
    owner.until("ActionStarted", "a");
    let joined = place.follow(&["run", &other]);
    lines(Path::new(&log), 1);
    place.file("first", "");
    let stderr = BufReader::new(owner.child.stderr.take().unwrap());
    let mut said = stderr.lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("executes an action for another command")));
    place.file("second", "");
    assert!(owner.child.wait().unwrap().success());
    joined.result();
    assert_eq!(lines(Path::new(&log), 1).len(), 1);
}

#[test]
fn a_server_that_starts_again_gets_the_store_back() {
    let place = Place::new();
    let in_place = |name: &str| place.dir.path().join(name).display().to_string();
    let (log, open, executor) = (in_place("log"), in_place("open"), in_place("executor"));
    let text = format!(
        "actions:\n  a: {{ type: shell, run: \"echo begun >> {log}; while [ ! -e {open} ]; do sleep 0.01; done\" }}\n  \
         b: {{ type: shell, run: \"echo $PPID >> {executor}\" }}\n"
    );
    let file = place.file("two.yaml", &text);
    let state = place.state();
    let mut server = Start::new(&state).spawn();
    let joined = place.follow(&["run", &file, "--id", "r"]);
    lines(Path::new(&log), 1);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    // The command takes the store over and repeats the action.
    lines(Path::new(&log), 2);
    let mut again = Start::new(&state)
        .command()
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(again.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let reason = said
        .find(|line| line.contains("took the store over"))
        .unwrap();
    assert!(reason.contains(&joined.child.id().to_string()), "{reason}");
    place.file("open", "");
    assert!(said.any(|line| line.contains("ready at")));
    joined.result();
    assert_eq!(lines(Path::new(&log), 2).len(), 2);
    assert_eq!(lines(Path::new(&executor), 1), [again.id().to_string()]);
    again.kill().unwrap();
    again.wait().unwrap();
}

#[test]
fn runs_that_end_in_the_grace_period_are_reported() {
    let place = Place::new();
    let (began, open) = (
        place.dir.path().join("began"),
        place.dir.path().join("open"),
    );
    let file = place.file(
        "short.yaml",
        &format!(
            "actions:\n  a:\n    type: shell\n    run: |\n      echo x >> {}\n      \
             until [ -e {} ]; do sleep 0.01; done\n",
            began.display(),
            open.display()
        ),
    );
    let run = place.follow(&["run", &file, "--id", "r"]);
    lines(&began, 1);
    std::fs::write(&open, "").unwrap();
    let (code, stderr) = exit_and_stderr(run, SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("unfinished"), "{stderr}");
}

#[test]
fn a_run_that_was_started_with_nohup_outlives_the_terminal() {
    let place = Place::new();
    let file = place.file("nap.yaml", NAP);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_windlass"), "run", &file, "--state"])
        .arg(place.state())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut run = Following::of(command);
    run.until("TimerSet", "nap");
    send(&run, SIGHUP);
    assert_eq!(run.result(), json!(1));
}

#[test]
fn one_who_follows_leaves_the_run_alone() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let (began, open) = (
        place.dir.path().join("began"),
        place.dir.path().join("open"),
    );
    let text = format!(
        "actions:\n  a:\n    type: shell\n    run: |\n      echo x >> {}\n      \
         until [ -e {} ]; do sleep 0.01; done\n",
        began.display(),
        open.display()
    );
    let file = place.file("held.yaml", &text);
    let run = place.follow(&["run", &file, "--id", "r"]);
    lines(&began, 1);
    let (code, stderr) = exit_and_stderr(run, SIGINT);
    assert_eq!(code, Some(7), "{stderr}");
    assert!(
        stderr.contains("run r continues in the process"),
        "{stderr}"
    );
    // The same over HTTP.
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(["resume", "r", "--server", &server.url])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut follower = Following::of(command);
    follower.until("ActionStarted", "a");
    let (code, stderr) = exit_and_stderr(follower, SIGTERM);
    assert_eq!(code, Some(7), "{stderr}");
    assert!(stderr.contains("run r continues on the server"), "{stderr}");
    let status = place.json(&["status", "r", "-o", "json"]);
    assert_eq!(status["status"], "Running", "{status}");
    std::fs::write(&open, "").unwrap();
    assert_eq!(place.follow(&["resume", "r"]).result()["a"]["exitCode"], 0);
    assert_eq!(lines(&began, 1).len(), 1, "it was begun once");
}

#[test]
fn what_a_person_paused_stays_so() {
    let place = Place::new();
    let file = place.file("nap.yaml", NAP);
    for id in ["kept", "left"] {
        let mut run = place.follow(&["run", &file, "--id", id]);
        run.until("TimerSet", "nap");
        run.kill();
    }
    assert!(place.run(&["pause", "kept"]).status.success());
    let resumed = place.run(&["resume", "-o", "jsonl"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let result: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(result["run"], "left");
    let nothing = place.run(&["resume"]);
    assert!(nothing.status.success(), "{nothing:?}");
    let stderr = String::from_utf8(nothing.stderr).unwrap();
    assert!(stderr.contains("1 paused run: "), "{stderr}");
    assert!(stderr.contains("--paused"), "{stderr}");
    assert_eq!(
        place.json(&["status", "kept", "-o", "json"])["status"],
        "Paused"
    );
    assert_eq!(place.json(&["resume", "--paused", "-o", "json"]), json!(1));
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods)] // How long it takes is what is tested.
async fn a_second_signal_ends_the_grace_of_a_server() {
    let place = Place::new();
    let began = place.dir.path().join("began");
    let text = format!(
        "actions:\n  a:\n    type: shell\n    run: echo x >> {}; sleep 1000\n",
        began.display()
    );
    let file = place.file("long.yaml", &text);
    let server = Start::new(&place.state()).args(&["--grace", "10m"]).spawn();
    let run = place.run(&["run", &file, "--id", "r", "--detach"]);
    assert!(run.status.success(), "{run:?}");
    lines(&began, 1);
    let begun = std::time::Instant::now();
    server.signal(SIGHUP);
    // When it answers 503, it has received the first signal.
    while server.get("/readyz").await.0 != 503 {}
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
    assert!(begun.elapsed().as_secs() < 300, "{stderr}");
    let status = place.json(&["status", "r", "-o", "json"]);
    assert_eq!(status["status"], "Running", "{status}");
}

#[test]
fn the_second_signal_ends_a_process_whose_output_is_not_read() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!({ "items": vec!["a row"; 20_000] })));
    for line in [
        ["paginate", &base, "--items", "body.items", "--to", "-"],
        ["poll", "--url", &base, "--until", "body.items", "--id=p"],
    ] {
        let mut command = folder.command(&line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The pipe is smaller than the output, so the process is writing now.
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        send_to(&child, SIGINT);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut printed = stderr.lines().map(Result::unwrap);
        assert!(printed.any(|line| line.contains("again to leave at once")));
        send_to(&child, SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(7), "{line:?}");
    }
    // The rows were not printed completely, so they remain.
    let rows = std::fs::read_dir(folder.path().join("state/rows")).unwrap();
    assert_eq!(rows.count(), 2);
}

#[test]
fn an_interrupted_line_that_prints_rows_recommends_itself() {
    let folder = Folder::new();
    let (requested, is_requested) = std::sync::mpsc::channel();
    let (base, _) = serve(move |_| {
        requested.send(()).unwrap();
        (503, vec![], json!(null))
    });
    let line = ["paginate", &base, "--to", "-", "--id", "z"];
    let mut command = folder.command(&line);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    is_requested.recv().unwrap();
    send_to(&child, SIGINT);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("the same command line again"), "{stderr}");
    assert!(!stderr.contains("windlass resume"), "{stderr}");
}
