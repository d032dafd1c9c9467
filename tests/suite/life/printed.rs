//! The output of a command is shown while it runs.

use super::process::Place;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

/// Prints a line, waits for a file, and prints another one.
fn text(place: &Place, more: &str) -> (String, String) {
    let go = place.state().with_file_name("go").display().to_string();
    let run =
        format!("echo first $S; echo bad >&2; until [ -e {go} ]; do sleep 0.05; done; echo last");
    let file = format!("actions: {{ s: {{ type: shell, run: \"{run}\", {more} }} }}\n");
    (place.file("w.yaml", &file), go)
}

fn spawn(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Reads lines up to the first one that contains `part`.
fn until(lines: &mut impl BufRead, part: &str) {
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "no line with {part}"
        );
    }
}

#[test]
fn a_command_is_seen_while_it_runs_by_its_process_and_by_others() {
    let place = Place::new();
    let (file, go) = text(&place, "timeout: 1m");
    let mut run = spawn(&place, &["run", &file, "--id", "r", "-v"]);
    let mut err = BufReader::new(run.stderr.take().unwrap());
    until(&mut err, "s | first");
    until(&mut err, "s | bad");
    let mut logs = spawn(&place, &["logs", "r", "-f"]);
    let mut out = BufReader::new(logs.stdout.take().unwrap());
    // The earlier output comes first.
    until(&mut out, "first");
    until(&mut out, "ActionStarted");
    std::fs::write(go, "").unwrap();
    until(&mut err, "s | last");
    until(&mut out, "Printed");
    until(&mut out, "RunFinished");
    assert!(run.wait().unwrap().success());
    assert!(logs.wait().unwrap().success());
    // The output is not stored.
    let stdout = place.run(&["logs", "r"]).stdout;
    assert!(!String::from_utf8(stdout).unwrap().contains("Printed"));
}

#[test]
fn a_line_of_the_command_line_shows_what_its_command_prints() {
    let place = Place::new();
    let go = place.state().with_file_name("go").display().to_string();
    let run = format!("echo waiting; until [ -e {go} ]; do sleep 0.05; done; echo done");
    // After `--` the option would belong to the command.
    let state = place.state().display().to_string();
    let poll = ["--state", &state, "poll", "--every", "10ms", "--", "sh"];
    let mut poll = spawn(&place, &[&poll[..], &["-c", &run]].concat());
    let mut err = BufReader::new(poll.stderr.take().unwrap());
    until(&mut err, "waiting");
    std::fs::write(go, "").unwrap();
    let mut out = String::new();
    poll.stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert!(poll.wait().unwrap().success());
    assert_eq!(out, "waiting\ndone\n");
}

#[test]
fn a_command_that_ends_at_once_is_seen_too() {
    let place = Place::new();
    let file = place.file(
        "w.yaml",
        "actions: { s: { type: shell, run: echo quick } }\n",
    );
    let ran = place.run(&["run", &file, "-v"]);
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(stderr.contains("s | quick"), "{stderr}");
}

#[test]
fn output_that_may_hold_a_secret_is_not_printed_before_it_is_masked() {
    let place = Place::new();
    let (file, go) = text(&place, "env: { S: \"${secret:TOKEN}\" }");
    std::fs::write(go, "").unwrap();
    let mut command = place.command(&["run", &file, "-v"]);
    let ran = command
        .env("WINDLASS_SECRET_TOKEN", "hunter2-hunter2")
        .output()
        .unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{stderr}");
    assert!(
        !stderr.contains("hunter2") && !stderr.contains("s | "),
        "{stderr}"
    );
}
