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
    server.stop();
}
