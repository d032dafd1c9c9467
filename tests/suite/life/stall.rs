//! A loop without progress, seen from outside: the exit code, and the feedback for the next iteration.

use crate::life::first_use::Folder;
use serde_json::{Value, json};

#[test]
fn an_unchanged_loop_ends_as_at_a_limit_and_its_body_knows_why() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  fix:
    type: doUntil
    condition: "@equals(outputs('test').exitCode, 0)"
    limit: { count: 20, unchanged: 3, unchanged_of: "@outputs('test').stderr" }
    actions:
      agent:
        type: shell
        run: "cat $FEEDBACK >> told; echo >> told; echo $FEEDBACK >> names"
        files: { FEEDBACK: "@variables('loopFeedback')" }
      test: { type: shell, run: "echo out; echo two tests fail >&2; exit 3", check: false }
"#,
    );
    let file = file.to_str().unwrap();
    let message = "loop `fix` gave the same 3 times in a row";
    folder.run(&["run", file]).left(4, &[message]);
    let contents = folder.read("told");
    let lines: Vec<&str> = contents.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "");
    let second: Value = serde_json::from_str(lines[1]).unwrap();
    let printed = json!({ "exitCode": 3, "stdout": "out\n", "stderr": "two tests fail\n" });
    let wanted = json!({
        "iteration": 0,
        "condition": false,
        "reads": { "outputs('test').exitCode": 3 },
        "printed": { "test": printed },
    });
    assert_eq!(second, wanted);
    let names = folder.read("names");
    assert!(
        names
            .lines()
            .all(|name| !std::path::Path::new(name).exists())
    );
}

#[test]
fn limits_that_cannot_be_are_refused_with_their_place() {
    limits_are_refused(&[
        (
            "{ unchanged: 1 }",
            "`unchanged` must be a whole number from 2",
        ),
        (
            "{ unchanged_of: \"@body('a')\" }",
            "`unchanged_of` needs `unchanged`",
        ),
        (
            "{ unchanged: 2, unchanged_of: same }",
            "`unchanged_of` never changes",
        ),
    ]);
}

/// Checks that each limit of a loop is refused with these words at its line.
pub(super) fn limits_are_refused(cases: &[(&str, &str)]) {
    let folder = Folder::new();
    for (limit, message) in cases {
        let file = folder.file(
            "w.yaml",
            format!(
                "actions:\n  l:\n    type: until\n    condition: \"@equals(body('a'), 1)\"\n    limit: {limit}\n    actions: {{ a: {{ type: compose, inputs: \"@variables('loopIndex')\" }} }}\n"
            ),
        );
        folder
            .run(&["validate", file.to_str().unwrap()])
            .left(3, &[message, "w.yaml:5"]);
    }
}
