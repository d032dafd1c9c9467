//! Definitions and their results, case by case. Each file of `tests/azure/cases` is a case. It contains `why`,
//! `workflow`, and what the case needs of these:
//!
//! - `app`: files by name in the folder above the workflow's folder,
//! - `answers`: stubs by action, and `input`. Without `answers` the run uses the stubs that `validate --write-stubs`
//!   writes, unchanged,
//! - `stub`: parts that those stubs must have,
//! - `output`: parts that the run's output must have; `took_ms`: how long the run takes,
//! - `warnings`: texts that the warnings must contain,
//! - `refused`: texts that the reasons for refusing the file must contain.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

fn windlass(folder: &Path, args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .current_dir(folder)
        .output();
    output.unwrap()
}

/// Whether `given` has everything in `wanted`. Maps may have further members.
fn holds(given: &Value, wanted: &Value) -> bool {
    match (given, wanted) {
        (Value::Object(given), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| given.get(key).is_some_and(|given| holds(given, value))),
        _ => given == wanted,
    }
}

fn play(case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path();
    let folder = &app.join("w");
    std::fs::create_dir(folder).unwrap();
    let file = |name: &str, value: &Value| {
        std::fs::write(folder.join(name), value.to_string()).unwrap();
    };
    file("workflow.json", &case["workflow"]);
    for (name, value) in case["app"].as_object().into_iter().flatten() {
        std::fs::write(app.join(name), value.to_string()).unwrap();
    }
    let texts = |key: &str| -> Vec<String> {
        let texts = case[key].as_array().into_iter().flatten();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut args = vec![
        "test",
        "workflow.json",
        "-o",
        "json",
        "--stub",
        "stubs.json",
    ];
    if case["refused"].is_null() && case["answers"].is_null() {
        let written = windlass(
            folder,
            &["validate", "workflow.json", "--write-stubs", "stubs.json"],
        );
        let stubs = std::fs::read_to_string(folder.join("stubs.json"));
        let stubs = stubs.map_err(|_| format!("no stubs: {written:?}"))?;
        let stubs: Value = serde_json::from_str(&stubs).unwrap();
        if !case["stub"].is_null() && !holds(&stubs, &case["stub"]) {
            return Err(format!("the stubs are {stubs}"));
        }
    } else {
        let none = json!({});
        file("stubs.json", case.get("answers").unwrap_or(&none));
    }
    if !case["input"].is_null() {
        file("input.json", &case["input"]);
        args.extend(["--input", "input.json"]);
    }
    let output = windlass(folder, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let refused = texts("refused");
    if !refused.is_empty() {
        let all = refused.iter().all(|text| stderr.contains(text));
        return match all && output.status.code() == Some(3) {
            true => Ok(()),
            false => Err(format!("{output:?}")),
        };
    }
    let warnings = texts("warnings");
    if !warnings.is_empty() {
        let checked = windlass(
            folder,
            &["validate", "workflow.json", "--stub", "stubs.json"],
        );
        let stderr = String::from_utf8_lossy(&checked.stderr);
        if let Some(missing) = warnings.iter().find(|text| !stderr.contains(*text)) {
            return Err(format!("`{missing}` is not in {stderr}"));
        }
    }
    let given: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {output:?}"))?;
    let gives = case["output"].is_null() || holds(&given["output"], &case["output"]);
    let ended = given["status"] == "Succeeded" && gives;
    let took = case["took_ms"].is_null() || given["took_ms"] == case["took_ms"];
    match ended && took {
        true => Ok(()),
        false => Err(format!("{given} {stderr}")),
    }
}

#[test]
fn every_case_of_a_definition_comes_to_what_it_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/azure/cases");
    let mut wrong = String::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        count += 1;
        if let Err(why) = play(&case) {
            let _ = writeln!(wrong, "{}: {}\n    {why}", path.display(), case["why"]);
        }
    }
    assert!(wrong.is_empty() && count > 20, "{count} cases\n{wrong}");
}
