//! What a one-line command refuses, and what it says about the process that executes its run.

use super::first_use::Folder;
use super::paginate::serve;
use crate::serve::Start;
use serde_json::json;

#[test]
fn flags_without_effect_are_refused() {
    let folder = Folder::new();
    let url = "http://127.0.0.1:9/";
    let paginate = ["paginate", url, "--to", "rows"];
    let poll = ["poll", "--url", url, "--until", "body.ok", "--if-changed"];
    for (line, more, part) in [
        (
            &["poll"][..],
            &["-H", "A: b", "--", "true"][..],
            "`--header` needs `--url`",
        ),
        (
            &["poll"],
            &["-d", "x", "--", "true"],
            "`--data` needs `--url`",
        ),
        (&poll, &["-d", "x"], "`--if-changed` needs a GET"),
        (&paginate, &["-H", "a b: c"], "header `a b: c` is not valid"),
        (&paginate, &["-H", ": c"], "header `: c` is not valid"),
        (&paginate, &["-H", "a: b\nc: d"], "has control characters"),
        (&paginate, &["--param", "page"], "`--param` needs `--next`"),
        (
            &paginate,
            &["--next", "link", "--param", "p"],
            "`--param` needs `--next`",
        ),
    ] {
        let line: Vec<&str> = line.iter().chain(more).copied().collect();
        folder.run(&line).left(2, &[part]);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_first_request() {
    let folder = Folder::new();
    let (base, requested) = serve(|_| (200, vec![], json!([])));
    std::fs::create_dir(folder.path().join("a")).unwrap();
    for (to, message) in [
        ("x/", "`--to x/`: it must be a file"),
        ("a", "`--to a`: it must be a file"),
        ("b/x", "`b` is not a folder"),
    ] {
        for command in ["paginate", "events"] {
            folder
                .run(&[command, &base, "--to", to])
                .left(2, &[message]);
        }
    }
    assert!(!folder.path().join("x").exists());
    folder.run(&["paginate", &base, "--to", "a/x"]).left(0, &[]);
    assert_eq!(requested.lock().unwrap().len(), 1);
}

#[test]
fn a_request_of_another_process_has_its_environment() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!([])));
    let server = Start::new(&folder.path().join("state")).spawn_with(|_| {});
    for line in [
        &["poll", "--url", &base][..],
        &["paginate", &base, "--to", "rows"],
    ] {
        let note = "note: another process owns the store and executes the run";
        folder.run(line).left(0, &[note]);
    }
    // The note is about a run that was started.
    let line = |code| ["try", "--id", "same", "--", "sh", "-c", code];
    folder
        .run(&line("true"))
        .left(0, &["note: another process"]);
    let refused = folder
        .run(&line(":"))
        .left(2, &["there is a run same already"]);
    assert!(!refused.err.contains("note:"), "{refused:?}");
    server.stop();
}

#[test]
fn a_used_id_is_refused_with_the_state_of_its_run() {
    let folder = Folder::new();
    let poll = |code: &str| ["poll", "--id", "j", "--", "sh", "-c", code].map(str::to_owned);
    let slow = "touch began; while ! test -e go; do sleep 0.02; done";
    let line = poll(slow);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut child = folder.start(&line);
    folder.wait_for(|names| names.iter().any(|name| name == "began"));
    child.kill().unwrap();
    child.wait().unwrap();
    let other = poll("true");
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    let differs = "it is unfinished, and this line differs from its line; `windlass resume j`";
    folder
        .run(&other)
        .left(2, &["there is a run j already", differs]);
    let file = "actions: { a: { type: compose, inputs: 1 } }";
    folder.file("w.yaml", file);
    let differs = "it is unfinished, and this file differs from its file";
    folder
        .run(&["run", "w.yaml", "--id", "j"])
        .left(2, &[differs]);
    folder.file("go", "");
    folder.run(&line).left(0, &[]);
    folder
        .run(&other)
        .left(2, &["it has ended: choose another --id"]);
}
