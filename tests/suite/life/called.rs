//! Workflows that start others as separate runs (`type: workflow`): kills, cancels, pauses, faults, and how mistakes
//! are reported.

use super::first_use::Folder;
use serde_json::{Value as Json, json};

const CHILD: &str = "
name: child
inputs: { city: { type: string } }
outputs: { hello: \"@concat('Hello ', triggerBody()['city'])\" }
actions:
  look: { type: compose, inputs: \"@triggerBody()['city']\" }
";

/// A child that waits for a signal.
const WAITS: &str = "
name: waits
actions:
  approval: { type: waitForSignal, signal: go }
";

fn status(folder: &Folder, run: &str) -> Json {
    let out = folder.run(&["status", run, "-o", "json"]).left(0, &[]).out;
    serde_json::from_str(&out).unwrap()
}

/// The runs that a run has started.
fn children(folder: &Folder, run: &str) -> Vec<Json> {
    let label = format!("windlass.parent={run}");
    let out = folder
        .run(&["list", "--label", &label, "-o", "jsonl"])
        .left(0, &[])
        .out;
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until a run and its child are in the store and the child has this status; returns the child's id.
fn wait_for_child(folder: &Folder, run: &str, wanted: &str) -> String {
    folder.wait_for(|files| files.iter().any(|file| file == "state"));
    loop {
        let label = format!("windlass.parent={run}");
        let listed = folder.run(&["list", "--label", &label, "-o", "jsonl"]);
        let child = listed
            .out
            .lines()
            .next()
            .map(|line| serde_json::from_str::<Json>(line).unwrap());
        if let Some(child) = child.filter(|child| child["status"] == wanted) {
            return child["run"].as_str().unwrap().to_owned();
        }
    }
}

#[test]
fn a_child_is_a_run_of_its_own_and_gives_its_outputs() {
    let folder = Folder::new();
    folder.file("child.yaml", CHILD);
    folder.file(
        "w.yaml",
        "
outputs: { all: \"@outputs('each')\" }
actions:
  each:
    type: foreach
    foreach: [Oslo, Rome]
    concurrency: 2
    actions:
      call: { type: workflow, workflow: child.yaml, inputs: { city: \"@item()\" } }
",
    );
    let ran = folder
        .run(&["run", "w.yaml", "--id", "r", "-o", "json"])
        .left(0, &[]);
    let outcome: Json = serde_json::from_str(&ran.out).unwrap();
    let text = outcome.to_string();
    assert!(
        text.contains("Hello Oslo") && text.contains("Hello Rome"),
        "{text}"
    );
    let children = children(&folder, "r");
    assert_eq!(children.len(), 2);
    for child in children {
        assert_eq!(child["workflow"], "child");
        let child = status(&folder, child["run"].as_str().unwrap());
        assert_eq!(child["status"], "Succeeded");
    }
}

#[test]
fn a_kill_neither_loses_nor_repeats_a_child() {
    let folder = Folder::new();
    folder.file(
        "child.yaml",
        "
name: rows
outputs: { rows: \"@variables('n')\" }
variables: { n: 0 }
actions:
  turn:
    type: until
    condition: \"@equals(variables('n'), 40)\"
    limit: { count: 100 }
    actions:
      add: { type: incrementVariable, name: n }
      row: { type: appendFile, path: rows.txt, text: \"row @{variables('n')}\\n\" }
",
    );
    folder.file(
        "w.yaml",
        "
outputs: { rows: \"@outputs('call')['rows']\" }
actions:
  call: { type: workflow, workflow: ./child.yaml }
",
    );
    for lines in [1, 15, 30] {
        let mut child = match lines {
            1 => folder.start(&["run", "w.yaml", "--id", "r"]),
            _ => folder.start(&["resume", "r"]),
        };
        while folder.lines("rows.txt") < lines {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let resumed = folder.run(&["resume", "-o", "jsonl"]);
    resumed.left(0, &[]);
    let parent = status(&folder, "r");
    assert_eq!(parent["status"], "Succeeded");
    assert_eq!(parent["outcome"]["output"], json!({ "rows": 40 }));
    assert_eq!(children(&folder, "r").len(), 1);
    assert_eq!(folder.lines("rows.txt"), 40);
}

#[test]
fn a_pause_a_cancel_and_a_timeout_go_down() {
    let folder = Folder::new();
    folder.file("child.yaml", WAITS);
    folder.file(
        "w.yaml",
        "actions: { call: { type: workflow, workflow: child.yaml } }\n",
    );
    folder.file(
        "short.yaml",
        "actions: { call: { type: workflow, workflow: child.yaml, timeout: 200ms } }\n",
    );
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    let child = wait_for_child(&folder, "r", "Waiting");
    let doing = status(&folder, "r")["doing"][0].clone();
    assert_eq!(doing["child"], *child);
    let printed = folder.run(&["status", "r"]).left(0, &[]).out;
    assert!(
        printed.contains(&format!(
            "call (workflow child.yaml)  waits for run {child}"
        )),
        "{printed}"
    );
    folder.run(&["pause", "r"]).left(0, &[]);
    assert_eq!(wait_for_child(&folder, "r", "Paused"), child);
    let mut resumed = folder.start(&["resume", "r"]);
    assert_eq!(wait_for_child(&folder, "r", "Waiting"), child);
    folder.run(&["cancel", "r"]).left(0, &[]);
    assert_eq!(wait_for_child(&folder, "r", "Cancelled"), child);
    run.wait().unwrap();
    resumed.wait().unwrap();

    let ran = folder.run(&["run", "short.yaml", "--id", "s"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    wait_for_child(&folder, "s", "Cancelled");
}

#[test]
fn a_cancel_without_a_process_cancels_the_child_too() {
    let folder = Folder::new();
    folder.file("child.yaml", WAITS);
    folder.file(
        "w.yaml",
        "actions: { call: { type: workflow, workflow: child.yaml } }\n",
    );
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    wait_for_child(&folder, "r", "Waiting");
    run.kill().unwrap();
    run.wait().unwrap();
    folder.run(&["cancel", "r"]).left(0, &[]);
    wait_for_child(&folder, "r", "Cancelled");
}

#[test]
fn a_child_is_not_pruned_before_its_parent_has_its_result() {
    let folder = Folder::new();
    let child = "
name: effect
actions:
  approval: { type: waitForSignal, signal: go }
  row: { type: appendFile, path: rows.txt, text: \"row\\n\" }
";
    folder.file("child.yaml", child);
    folder.file(
        "w.yaml",
        "actions: { call: { type: workflow, workflow: child.yaml } }\n",
    );
    let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
    let child = wait_for_child(&folder, "r", "Waiting");
    run.kill().unwrap();
    run.wait().unwrap();
    folder.run(&["signal", &child, "go"]).left(0, &[]);
    folder.run(&["resume", &child]).left(0, &[]);
    let prune = |dry: &[&str]| {
        let args = [&["prune", "--keep", "0"], dry].concat();
        folder.run(&args).left(0, &[]).out
    };
    for dry in [&["--dry-run"][..], &[]] {
        let out = prune(dry);
        assert!(out.starts_with("0 runs "), "{out}");
    }
    folder.run(&["resume", "r"]).left(0, &[]);
    assert_eq!(children(&folder, "r").len(), 1);
    assert_eq!(folder.lines("rows.txt"), 1);
    let out = prune(&[]);
    assert!(out.starts_with("2 runs "), "{out}");
}

#[test]
fn a_child_that_fails_is_a_fault_and_each_attempt_is_a_run() {
    let folder = Folder::new();
    folder.file(
        "child.yaml",
        "
name: child
actions:
  end: { type: terminate, runStatus: Failed, runError: { code: E7, message: no luck } }
",
    );
    folder.file(
        "w.yaml",
        "
actions:
  call:
    type: workflow
    workflow: child.yaml
    retry: { type: fixed, count: 2, interval: 1ms, on: [workflow] }
",
    );
    let ran = folder.run(&["run", "w.yaml", "--id", "r"]);
    ran.left(1, &["ended as Failed: no luck"]);
    let report = status(&folder, "r");
    assert_eq!(report["outcome"]["error"]["kind"], "workflow");
    assert_eq!(children(&folder, "r").len(), 3);
}

#[test]
fn a_recursion_ends_with_a_fault() {
    let folder = Folder::new();
    folder.file(
        "again.yaml",
        "name: again\nactions: { call: { type: workflow, workflow: again.yaml } }\n",
    );
    let ran = folder.run(&["run", "again.yaml", "--id", "r"]);
    ran.left(
        1,
        &["`again` was not started: 16 runs wait for each other already"],
    );
    // It never waits for the turn of a run that waits for it.
    for policy in ["queue", "replace"] {
        let text = format!(
            "concurrency: {policy}\nactions: {{ call: {{ type: workflow, workflow: again.yaml }} }}\n"
        );
        folder.file("again.yaml", text);
        let ran = folder.run(&["run", "again.yaml", "--id", policy]);
        let why = format!(
            "`again.yaml` was not started: run {policy} waits for it and has the same concurrency key"
        );
        ran.left(1, &[&why]);
    }
}

#[test]
fn mistakes_of_a_child_are_reported_with_the_parent() {
    let folder = Folder::new();
    let parent = |call: &str| {
        folder.file(
            "w.yaml",
            format!("actions: {{ call: {{ type: workflow, {call} }} }}\n"),
        );
        folder.run(&["validate", "w.yaml"])
    };
    parent("inputs: {}").left(3, &["`workflow`"]);
    parent("workflow: missing.yaml").left(3, &["missing.yaml"]);
    parent("workflow: \"@{workflow().name}.yaml\"").left(3, &["known only when it runs"]);
    parent("workflow: child.yaml, inputs: 3").left(3, &["`inputs`", "a map"]);
    folder.file(
        "child.yaml",
        "name: child\nactions: { look: { type: htpp } }\n",
    );
    let refused = parent("workflow: child.yaml").left(3, &["child.yaml:2", "`htpp`"]);
    assert!(refused.err.contains("did you mean `http`"), "{refused:?}");
    folder.file("child.yaml", CHILD);
    let secret = "workflow: child.yaml, inputs: { city: \"@secret('TOKEN')\" }";
    parent(secret).left(3, &["TOKEN", "would be stored"]);
    parent("workflow: child.yaml").left(3, &["needs the input `city`"]);
    parent("workflow: child.yaml, inputs: \"@json('{}')\"").left(0, &[]);
    folder
        .run(&["run", "w.yaml"])
        .left(1, &["`child.yaml` was not started", "input `city`"]);
    parent("workflow: nothing").left(0, &[]);
    folder
        .run(&["run", "w.yaml"])
        .left(1, &["unknown workflow `nothing`"]);
}

#[test]
fn a_saved_workflow_is_called_by_its_name() {
    let folder = Folder::new();
    folder.file("child.yaml", CHILD);
    folder
        .run(&["workflow", "put", "greet", "child.yaml"])
        .left(0, &[]);
    folder.file(
        "w.yaml",
        "
outputs: { all: \"@outputs('call')\" }
actions:
  call: { type: workflow, workflow: greet, inputs: { city: Oslo } }
",
    );
    let ran = folder.run(&["run", "w.yaml", "--id", "r"]).left(0, &[]);
    assert!(ran.out.contains("Hello Oslo"), "{ran:?}");
    // Its runs have the name in its file.
    for command in [
        &["list", "--workflow", "greet"][..],
        &["prune", "--workflow", "greet", "--keep", "0"],
        &["workflow", "put", "greet", "child.yaml"],
    ] {
        folder
            .run(command)
            .left(0, &["`greet`", "`--workflow child`"]);
    }
}

#[test]
fn inputs_of_a_called_file_are_checked_before_the_run() {
    let folder = Folder::new();
    let child = "inputs: { city: { type: string }, unit: { type: string, default: C } }\n\
                 actions: { a: { type: compose, inputs: \"@inputs('city')\" } }\n";
    folder.file("child.yaml", child);
    let parent = |inputs: &str| {
        let call = format!("{{ type: workflow, workflow: child.yaml, inputs: {inputs} }}");
        folder.file("parent.yaml", format!("actions:\n  ask: {call}\n"));
        folder.run(&["validate", "parent.yaml"])
    };
    parent("{ city: Oslo }").left(0, &[]);
    parent("\"@json('{}')\"").left(0, &[]);
    let messages = [
        "the workflow that `ask` calls has no input `ctiy`",
        "did you mean `city`?",
        "the workflow that `ask` calls needs the input `city`",
    ];
    parent("{ ctiy: Oslo }").left(3, &messages);
}
