//! What a run says on a terminal, and what it is called, can be looked at and typed.

use super::process::Place;

#[test]
fn what_a_run_failed_with_does_not_steer_the_terminal() {
    let place = Place::new();
    let text = "actions:\n\
                \x20 a:\n\
                \x20   type: shell\n\
                \x20   run: printf 'said \\033]0;owned\\007\\033[31mred\\302\\233' >&2; exit 1\n";
    let file = place.file("steers.yaml", text);
    for args in [&["run", &file][..], &["run", &file, "-v", "-v"]] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("Failed: the command ended"), "{told:?}");
        assert!(told.contains("owned") && told.contains("red"), "{told:?}");
        assert!(
            told.chars().all(|c| c == '\n' || !c.is_control()),
            "{told:?}"
        );
    }
}

#[test]
fn a_run_of_any_workflow_has_an_id_that_can_be_typed() {
    let place = Place::new();
    for (name, begin) in [
        ("ünï/😀 name", "n----name-"),
        ("-- _x", "x-"),
        ("😀", "run-"),
        ("sync", "sync-"),
    ] {
        let text = format!("name: \"{name}\"\nactions: {{ a: {{ type: compose, inputs: 1 }} }}");
        let file = place.file("named.yaml", &text);
        let output = place.run(&["run", &file, "-o", "jsonl"]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let id = told["run"].as_str().unwrap().to_owned();
        assert!(id.starts_with(begin), "{id}");
        let status = place.json(&["status", &id, "-o", "json"]);
        assert_eq!(status["status"], "Succeeded", "{status}");
    }
}
