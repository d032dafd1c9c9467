//! What the crates provide to a format: docs/internals/add-a-format.md.

#![allow(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod driver;

use driver::run;
use toy_format::{compile, schema};
use windlass_draw::{Detail, graph, mermaid};
use windlass_expression::Value;
use windlass_language::{Format, complete, hover};
use windlass_model::model::{Dialect, Status};
use windlass_source::source::{Bundle, Lines};

const JOB: &str = include_str!("../../job.toy");

fn bundle(text: &str) -> Bundle {
    Bundle::single("job.toy", text)
}

/// The mistakes of a text as the command line prints them.
fn mistakes(text: &str) -> String {
    let bundle = bundle(text);
    compile(&bundle)
        .unwrap_err()
        .render(&bundle, false)
        .to_string()
}

/// The example with one replacement.
fn job_with(old: &str, new: &str) -> String {
    assert!(JOB.contains(old), "{old}");
    JOB.replace(old, new)
}

fn is_valid(text: &str) -> bool {
    let json = serde_yaml::from_str(text).unwrap();
    jsonschema::validator_for(schema()).unwrap().is_valid(&json)
}

#[test]
fn a_loop_runs_until_its_condition_holds() {
    let mut calls = Vec::new();
    let outcome = run(compile(&bundle(JOB)).unwrap(), |inputs| {
        calls.push(inputs.to_json());
        Value::text(if calls.len() < 3 { "running" } else { "done" })
    })
    .unwrap();
    assert_eq!(outcome.status, Status::Succeeded);
    assert_eq!(outcome.output.to_json(), r#"{"status":"done","checks":3}"#);
    assert_eq!(outcome.at.0, 15_000, "it waits 5s in each iteration");
    let call = r#"{"activityType":"check-job","input":{"job":7}}"#;
    assert_eq!(calls, [call; 3]);
}

#[test]
fn nothing_to_set_is_not_a_mistake() {
    let program = compile(&bundle("steps: [set: {}]\nresult: 1")).unwrap();
    let outcome = run(program, |_| Value::Null).unwrap();
    assert_eq!(outcome.output.to_json(), "1");
}

#[test]
fn a_loop_ends_at_its_limit() {
    let program = compile(&bundle(&job_with("times: 20", "times: 2"))).unwrap();
    let outcome = run(program, |_| Value::text("running")).unwrap();
    assert_eq!(
        outcome.output.to_json(),
        r#"{"status":"running","checks":2}"#
    );
}

#[test]
fn a_mistake_is_shown_at_its_place_with_a_hint() {
    assert_eq!(
        mistakes(&job_with("times: 20", "tmies: 20")),
        "\
error[unknown-key]: unknown key `tmies` in `repeat`
 --> job.toy:6:7
  |
6 |       tmies: 20
  |       ^^^^^
  = hint: did you mean `times`?
"
    );
}

/// What is replaced in the example, the replacement, the code of the mistake, its place, and its hint.
#[rustfmt::skip]
const MISTAKES: [[&str; 5]; 12] = [
    ["times: 20", "times: often", "wrong-type", "6:14", "for example repeat: "],
    ["times: 20", "times: 0", "out-of-range", "6:14", "how many iterations at most"],
    ["wait: 5s", "wait: 5", "bad-duration", "8:17", "for seconds write 5s"],
    ["wait: 5s", "wiat: 5s", "unknown-key", "8:11", "did you mean `wait`?"],
    ["wait: 5s", "wait:", "missing-value", "8:15", "durations look like"],
    ["wait: 5s", "{ wait: 5s, set: {} }", "not-one-key", "8:11", "a step has call"],
    ["wait: 5s", "x-note: mine", "not-one-key", "8:11", "a step has call"],
    ["activity: check-job, ", "", "missing-key", "9:11", "for example call: "],
    ["into: status", "into: state", "unknown-variable", "9:64", "did you mean `status`?"],
    ["('checks'), 1", "('check'), 1", "unknown-variable", "10:43", "did you mean `checks`?"],
    ["'done')", "'done'", "bad-expression", "5:50", ""],
    ["steps:\n  - repeat", "step:\n  - repeat", "unknown-key", "3:1", "did you mean `steps`?"],
];

#[test]
fn each_mistake_is_reported() {
    for [old, new, code, place, hint] in MISTAKES {
        let shown = mistakes(&job_with(old, new));
        let code = format!("error[{code}]");
        let place = format!("job.toy:{place}\n");
        let hint = format!("hint: {hint}");
        for part in [code, place, hint] {
            assert!(shown.contains(&part), "{new}: {part} is not in\n{shown}");
        }
        assert_eq!(shown.matches("error[").count(), 1, "{shown}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = job_with("times: 20", "tmies: 20").replace("wait: 5s", "wiat: 5s");
    let shown = mistakes(&text.replace("into: status", "into: 7"));
    assert_eq!(shown.matches("error[").count(), 3, "{shown}");
}

#[test]
fn the_schema_accepts_the_example_and_refuses_mistakes() {
    assert!(is_valid(JOB));
    for (old, new) in [
        ("times: 20", "tmies: 20"),
        ("times: 20", "times: often"),
        ("times: 20", "times: 0"),
        ("wait: 5s", "wait: 5"),
        ("wait: 5s", "{ wait: 5s, set: {} }"),
        ("activity: check-job, ", ""),
    ] {
        assert!(!is_valid(&job_with(old, new)), "{new}");
    }
}

/// The labels that are offered at the `|` of a text.
fn offered(text: &str) -> Vec<String> {
    let (before, after) = text.split_once('|').unwrap();
    let text = format!("{before}{after}");
    let at = Lines::new(&text).position(before.len());
    let items = complete(&bundle(&text), Some(format()), at).items;
    items.into_iter().map(|item| item.label).collect()
}

fn format() -> Format {
    Format {
        dialect: Dialect::Loom,
        schema: Some(schema()),
    }
}

#[test]
fn completion_offers_the_keys_of_a_place() {
    assert_eq!(offered("|"), ["steps", "name", "variables", "result"]);
    let steps = "steps:\n  - ";
    let all = ["call", "wait", "repeat", "set"];
    assert_eq!(offered(&format!("{steps}|")), all);
    assert_eq!(
        offered(&format!("{steps}repeat:\n      |")),
        ["until", "times", "steps"]
    );
    assert_eq!(
        offered(&format!("{steps}call: {{ activity: check, | }}")),
        ["with", "into"]
    );
    let inner = format!("{steps}repeat:\n      steps:\n        - |");
    assert_eq!(offered(&inner), all);
}

#[test]
fn completion_offers_the_variables_in_an_expression() {
    let text = job_with("variables('status'), ", "variables('|'), ");
    assert_eq!(offered(&text), ["status", "checks"]);
}

#[test]
fn hover_shows_the_line_about_a_key() {
    let at = Lines::new(JOB).position(JOB.find("until").unwrap());
    let found = hover(&bundle(JOB), Some(format()), at, None).unwrap();
    assert_eq!(
        found.text,
        "until: string\nThe condition that ends the loop."
    );
}

#[test]
fn a_program_is_drawn() {
    let program = compile(&bundle(JOB)).unwrap();
    let diagram = mermaid(&program, Detail::default());
    for part in ["repeat_1", "wait_2", "call_3", "set_4", "at most 20 times"] {
        assert!(diagram.contains(part), "{part} is not in\n{diagram}");
    }
    let nodes = graph(&program, &Default::default()).unwrap().nodes;
    let wait = nodes.iter().find(|node| node.name == "wait_2").unwrap();
    assert_eq!(wait.line, Some(8));
}

#[test]
fn the_format_has_fewer_than_300_lines() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let lines: usize = texts.map(|text| text.lines().count()).sum();
    assert!((150..300).contains(&lines), "{lines} lines");
}
