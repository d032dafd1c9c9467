//! `concurrency` of a file: which of its runs exclude each other, also after a kill.

use super::first_use::Folder;
use crate::serve::{Server, Start};
use serde_json::{Value, json};
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// Runs that wait for a signal. The runs of one customer exclude each other.
fn file(policy: &str, max: u32) -> String {
    format!(
        "
name: exclusive
inputs: {{ customer: {{ type: string }} }}
concurrency: {{ key: \"@{{inputs('customer')}}\", policy: {policy}, max: {max} }}
actions:
  go: {{ type: waitForSignal, signal: go }}
outputs: \"@outputs('go')\"
"
    )
}

/// The signal that a run waits for, or its status.
async fn waits_for(server: &Server, run: &str) -> String {
    let (_, report) = server.get(&format!("/v1/runs/{run}")).await;
    let signal = report["doing"][0]["signal"].as_str();
    signal
        .or(report["status"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Waits until `waits_for` a run is `what`.
async fn until(server: &Server, run: &str, what: &str) {
    for _ in 0..6_000 {
        if waits_for(server, run).await == what {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!(
        "{run} waits for {}, not {what}",
        waits_for(server, run).await
    );
}

async fn begin(server: &Server, text: &str, customer: &str) -> String {
    server.begin(text, json!({ "customer": customer })).await
}

async fn go(server: &Server, run: &str) {
    let signal = json!({ "name": "go", "payload": 1 });
    let (status, response) = server
        .post(&format!("/v1/runs/{run}/signal"), &signal)
        .await;
    assert!(status < 300, "{response}");
    assert_eq!(server.end(run).await["status"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_a_key_wait_for_each_other_in_their_order() {
    let state = tempfile::tempdir().unwrap();
    let server = Start::new(state.path()).spawn();
    let text = file("queue", 2);
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(begin(&server, &text, "a").await);
    }
    let other = begin(&server, &text, "b").await;
    for run in [&runs[0], &runs[1], &other] {
        until(&server, run, "go").await;
    }
    for run in &runs[2..] {
        assert_eq!(waits_for(&server, run).await, "windlass.turn");
    }
    go(&server, &runs[1]).await;
    until(&server, &runs[2], "go").await;
    assert_eq!(waits_for(&server, &runs[3]).await, "windlass.turn");
    // A cancelled run frees its place, even one that only waits for its turn.
    let (status, _) = server
        .post(&format!("/v1/runs/{}/cancel", runs[3]), &Value::Null)
        .await;
    assert!(status < 300);
    // After a kill the order is the same.
    server.kill();
    let server = Start::new(state.path()).spawn();
    until(&server, &runs[0], "go").await;
    until(&server, &runs[2], "go").await;
    assert_eq!(waits_for(&server, &runs[4]).await, "windlass.turn");
    go(&server, &runs[0]).await;
    until(&server, &runs[4], "go").await;
    for run in [&runs[2], &runs[4], &other] {
        go(&server, run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_skipped_or_replaces_the_earlier_one() {
    let state = tempfile::tempdir().unwrap();
    let server = Start::new(state.path()).spawn();
    let text = file("skip", 1);
    let first = begin(&server, &text, "a").await;
    let body = json!({ "text": text, "input": { "customer": "a" } });
    let (status, response) = server.post("/v1/runs", &body).await;
    let kind = json!("urn:windlass:same-key");
    assert_eq!((status, &response["type"]), (409, &kind), "{response}");
    assert!(
        response["detail"].as_str().unwrap().contains(&first),
        "{response}"
    );
    go(&server, &first).await;
    let second = begin(&server, &text, "a").await;
    go(&server, &second).await;

    let text = file("replace", 1);
    let old = begin(&server, &text, "a").await;
    let new = begin(&server, &text, "a").await;
    assert_eq!(server.end(&old).await["status"], "Cancelled");
    until(&server, &new, "go").await;
    go(&server, &new).await;
}

#[test]
fn the_policy_alone_is_for_all_runs_of_a_file() {
    let folder = Folder::new();
    let text = "concurrency: skip\nactions: { go: { type: waitForSignal, signal: go } }\n";
    folder.file("w.yaml", text);
    let mut first = folder.start(&["run", "w.yaml", "--id", "first"]);
    let listed = || folder.run(&["list", "-o", "json"]).out;
    while !listed().contains("\"first\"") {}
    folder
        .run(&["run", "w.yaml", "--id", "second"])
        .left(2, &["skipped: run first", "has not ended"]);
    folder.run(&["signal", "first", "go"]).left(0, &[]);
    assert!(first.wait().unwrap().success());
    // A run that was killed before its turn gets it after it is resumed.
    folder.file("queued.yaml", text.replace("skip", "queue"));
    let mut killed = folder.start(&["run", "queued.yaml", "--id", "third"]);
    while !listed().contains("\"third\"") {}
    killed.kill().unwrap();
    killed.wait().unwrap();
    folder.run(&["signal", "third", "go"]).left(0, &[]);
    folder.run(&["resume", "third"]).left(0, &[]);
    for (wrong, message) in [
        ("concurrency: sometimes", "is not a policy"),
        ("concurrency: { max: 0 }", "a whole number from 1"),
        ("concurrency: { keys: x }", "unknown key `keys`"),
    ] {
        folder.file("wrong.yaml", text.replace("concurrency: skip", wrong));
        folder.run(&["validate", "wrong.yaml"]).left(3, &[message]);
    }
}

/// Starts a command in a folder, with its messages written to a file there.
fn start_logged(folder: &Folder, args: &[&str], log: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .current_dir(folder.path())
        .env_remove("WINDLASS_STATE")
        .stdout(Stdio::null())
        .stderr(File::create(folder.path().join(log)).unwrap())
        .spawn()
        .unwrap()
}

/// Waits until the status of a run fits, and returns it.
fn until_status(folder: &Folder, run: &str, fits: impl Fn(&str) -> bool) -> String {
    for _ in 0..600 {
        let shown = folder.run(&["status", run]).out;
        if fits(&shown) {
            return shown;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{}", folder.run(&["status", run]).out);
}

const QUEUED: &str = "concurrency: queue\nactions: { go: { type: waitForSignal, signal: go } }\n";

#[test]
fn a_run_behind_a_killed_one_says_so_and_continues_after_it() {
    let folder = Folder::new();
    folder.file("w.yaml", QUEUED);
    let mut killed = folder.start(&["run", "w.yaml", "--id", "first"]);
    until_status(&folder, "first", |shown| shown.contains("signal `go`"));
    let mut queued = start_logged(&folder, &["run", "w.yaml", "--id", "second"], "log");
    let waits = until_status(&folder, "second", |shown| shown.contains("its turn"));
    assert!(
        waits.contains("waits for its turn: run first has the same concurrency key\n"),
        "{waits}"
    );
    assert!(!waits.contains("windlass.turn --payload"), "{waits}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The other process owns the store then, and executes only its own run.
    let resume = "`windlass resume first` continues it";
    let waits = until_status(&folder, "second", |shown| {
        shown.contains("its turn") && !shown.contains("stopped")
    });
    let turn =
        format!("run first has the same concurrency key and is executed by no process; {resume}");
    assert!(waits.contains(&turn), "{waits}");
    assert!(
        waits.contains("next        windlass resume first"),
        "{waits}"
    );
    let left = folder.run(&["status", "first"]).left(0, &[]).out;
    let stopped = format!("stopped   no process executes it; {resume}");
    assert!(left.contains(&stopped), "{left}");
    until_status(&folder, "second", |_| folder.read("log").contains(&turn));
    let mut resumed = folder.start(&["resume", "first"]);
    until_status(&folder, "first", |shown| !shown.contains("stopped"));
    for (run, process) in [("first", &mut resumed), ("second", &mut queued)] {
        until_status(&folder, run, |shown| shown.contains("signal `go`"));
        folder.run(&["signal", run, "go"]).left(0, &[]);
        assert!(process.wait().unwrap().success(), "{run}");
    }
}

#[test]
fn killed_runs_of_one_key_continue_in_their_order_after_a_resume_of_all() {
    let folder = Folder::new();
    folder.file("w.yaml", QUEUED);
    let mut processes = Vec::new();
    for run in ["first", "second", "third"] {
        processes.push(folder.start(&["run", "w.yaml", "--id", run]));
        until_status(&folder, run, |shown| shown.contains("waits for"));
    }
    for process in &mut processes {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let mut resumed = folder.start(&["resume"]);
    until_status(&folder, "first", |shown| !shown.contains("stopped"));
    for run in ["first", "second", "third"] {
        until_status(&folder, run, |shown| shown.contains("signal `go`"));
        folder.run(&["signal", run, "go"]).left(0, &[]);
    }
    for run in ["first", "second", "third"] {
        until_status(&folder, run, |shown| shown.contains("succeeded"));
    }
    assert!(resumed.wait().unwrap().success());
}

#[test]
fn the_next_owner_executes_the_runs_of_all_processes_that_follow_one() {
    let folder = Folder::new();
    folder.file("w.yaml", QUEUED);
    folder.file(
        "counts.yaml",
        "actions:
  counts:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 1000, timeout: PT1H }
    delay: 20ms
    actions:
      note: { type: appendFile, inputs: { path: \"@{workflow().run.name}.jsonl\", rows: [1] } }
",
    );
    let mut owner = folder.start(&["run", "w.yaml", "--id", "owner"]);
    until_status(&folder, "owner", |shown| shown.contains("signal `go`"));
    let runs = ["one", "two"];
    let mut others = runs.map(|run| folder.start(&["run", "counts.yaml", "--id", run]));
    let count = |run: &str| match folder.path().join(format!("{run}.jsonl")).exists() {
        true => folder.lines(&format!("{run}.jsonl")),
        false => 0,
    };
    let grow = || {
        for run in runs {
            let before = count(run);
            let mut times = 0;
            while count(run) < before + 3 {
                std::thread::sleep(std::time::Duration::from_millis(50));
                times += 1;
                assert!(times < 600, "{run} stopped after {before}");
            }
        }
    };
    grow();
    owner.kill().unwrap();
    owner.wait().unwrap();
    grow();
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn the_wait_for_a_turn_is_in_no_outputs() {
    let folder = Folder::new();
    let actions =
        "actions:\n  a: { type: compose, inputs: 1 }\n  b: { type: compose, inputs: 2 }\n";
    let graph = "\
        actions:\n  a: { type: compose, inputs: 1 }\n  b: { type: compose, inputs: 2, runAfter: {} }\n";
    for text in [actions, graph] {
        folder.file("plain.yaml", text);
        folder.file("queued.yaml", format!("concurrency: queue\n{text}"));
        let outputs = |file: &str| folder.run(&["run", file, "-o", "json"]);
        let (plain, queued) = (outputs("plain.yaml"), outputs("queued.yaml"));
        assert!(plain.out.contains("\"b\""), "{plain:?}");
        assert_eq!(plain.out, queued.out, "{queued:?}");
    }
}
