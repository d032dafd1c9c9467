//! Commands that print as something happens end when their reader is gone.

use crate::life::first_use::Folder;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_command_that_watches_ends_with_its_reader() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "actions: { a: { type: waitForSignal, signal: go } }\n",
    );
    let mut run = folder
        .command(&["run", "w.yaml", "--id", "r", "--events", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(events.any(|line| line.unwrap().contains("RunStarted")));
    for args in [
        &["logs", "-f", "r"][..],
        &["status", "--watch", "r"],
        &["list", "--watch"],
        &["history", "--watch", "r"],
    ] {
        let mut watching = folder
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(watching.stdout.take().unwrap());
        printed.read_line(&mut String::new()).unwrap();
        drop(printed);
        // The run still waits, so nothing else ends the command.
        assert_eq!(watching.wait().unwrap().code(), Some(0), "{args:?}");
    }
    folder.run(&["signal", "r", "go"]).left(0, &[]);
    assert!(run.wait().unwrap().success());
}
