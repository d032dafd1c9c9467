//! What a run prints on a terminal, and its name: both can be shown and typed safely.

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
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("Failed: the command ended"), "{stderr:?}");
        assert!(
            stderr.contains("owned") && stderr.contains("red"),
            "{stderr:?}"
        );
        assert!(
            stderr.chars().all(|c| c == '\n' || !c.is_control()),
            "{stderr:?}"
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
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let id = report["run"].as_str().unwrap().to_owned();
        assert!(id.starts_with(begin), "{id}");
        let status = place.json(&["status", &id, "-o", "json"]);
        assert_eq!(status["status"], "Succeeded", "{status}");
    }
}

/// Control characters that must never reach a terminal from outside; written as in JSON.
const DRIVES: &str = r"\u001b]0;owned\u0007\u001b[31m\r\u0000\u009b2J\u007f\u202e\u2066";

/// The output must contain no control characters, and must still contain `text`.
fn assert_tame(what: &str, bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let drives = |c: char| {
        c != '\n' && c.is_control()
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    assert!(!text.contains(drives), "{what}: {text:?}");
}

#[test]
fn nothing_from_elsewhere_drives_the_terminal() {
    let place = Place::new();
    let wild: String = serde_json::from_str(&format!("\"{DRIVES}\"")).unwrap();
    let text = format!(
        "{{\"name\": \"n{DRIVES}\", \"variables\": {{\"v{DRIVES}\": \"{DRIVES}\"}}, \"actions\": {{\
         \"l{DRIVES}\": {{\"type\": \"doUntil\", \"condition\": \"@true\", \"actions\": {{\
         \"a{DRIVES}\": {{\"type\": \"compose\", \"inputs\": \"{DRIVES}\"}}}}}},\
         \"s\": {{\"type\": \"waitForSignal\", \"signal\": \"go{DRIVES}\", \"timeout\": \"PT1H\"}}}}}}"
    );
    let file = place.file("wild.json", &text);
    let label = format!("team={}", wild.replace('\0', ""));
    let mut run = place.follow(&["run", &file, "--id", "r", "--label", &label]);
    run.until("LoopIteration", "");
    run.kill();
    let commands = [
        &["status", "r"][..],
        &["dump", "-o", "table"],
        &["dump", "--raw", "-o", "table"],
        &["list"],
        &["history", "r", "--events"],
        &["logs", "r"],
        &["compile", &file],
        &["validate", &file],
        &["status", "no\u{1b}[31m"],
        &["no\u{1b}[31m"],
        &["signal", "r", "other\u{9b}"],
        &["eval", "concat('\u{202e}', '\u{9b}"],
        &["eval", "concat('\u{202e}', '\u{9b}')", "-o", "table"],
        &["run", "no\u{1b}[31m"],
    ];
    for args in commands {
        let output = place.run(args);
        let what = format!("{args:?}");
        assert_tame(&what, &output.stdout);
        assert_tame(&what, &output.stderr);
        let all = [output.stdout, output.stderr].concat();
        assert!(!all.is_empty(), "{what}");
    }
    let shown = String::from_utf8(place.run(&["status", "r"]).stdout).unwrap();
    assert!(shown.contains("\\u{1b}]0;owned\\u{7}"), "{shown}");
    // Only Windlass's own colours.
    let coloured = place.run(&["logs", "r", "--color", "always"]).stdout;
    let coloured = String::from_utf8(coloured).unwrap();
    assert!(coloured.contains("\u{1b}[1;36m"), "{coloured:?}");
    let own = coloured
        .replace("\u{1b}[1;36m", "")
        .replace("\u{1b}[0m", "");
    assert_tame("logs --color", own.as_bytes());
    // JSON is unchanged.
    let status = place.json(&["status", "r", "-o", "json"]);
    assert_eq!(status["labels"]["team"], wild.replace('\0', ""));
    let log = place.run(&["resume", "r", "-v", "-v", "--handlers", "no\u{1b}"]);
    assert_tame("resume", &log.stderr);
}

#[test]
fn what_a_run_and_its_scripts_say_does_not_drive_the_terminal() {
    let place = Place::new();
    let text = format!(
        "nodes:\n  - name: a\n    run: |\n      print('said', \"{0}\")\n      \
         return {{\"a\": \"{0}\"}}\n",
        DRIVES
    );
    let file = place.file("says.yaml", &text);
    let output = place.run(&["run", &file, "-v", "-v"]);
    assert!(output.status.success(), "{output:?}");
    assert_tame("stdout", &output.stdout);
    assert_tame("stderr", &output.stderr);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("said"), "{stderr}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let wild: String = serde_json::from_str(&format!("\"{DRIVES}\"")).unwrap();
    assert_eq!(result["a"], wild);
}
