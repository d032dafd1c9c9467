//! Unchanged loops, and what a loop reports about its condition to its next iteration.

use super::play::{Case, Outside, ok};
use windlass_machine::RunStatus;

/// A poll whose check returns these answers; the last one repeats.
fn poll(limit: &str, more: &str, answers: &'static [&'static str]) -> Case {
    Case::yaml(&format!(
        "
actions:
  poll:
    type: until
    condition: \"@equals(outputs('check')?.state, 'done')\"
    limit: {limit}
    {more}
    actions:
      check: {{ type: shell, run: x }}
outputs: \"@outputs('poll')\"
"
    ))
    .world(|call| ok(answers.get(call.n).or(answers.last()).unwrap()))
}

const STILL: &[&str] = &[r#"{"state":"a","n":1}"#, r#"{"state":"b","n":2}"#];

#[test]
fn a_loop_whose_result_stays_the_same_reaches_a_limit() {
    let played = poll("{ unchanged: 3 }", "", STILL).play();
    assert_eq!(played.calls("check"), 4);
    assert_eq!(
        played.error(),
        "limit: loop `poll` gave the same 3 times in a row; action poll; line 3"
    );
    let on = poll("{ unchanged: 3 }", "on_limit: continue", STILL).play();
    let output = on.output();
    assert!(
        output.contains(r#""iterations":4,"status":"Succeeded","reason":"unchanged""#),
        "{output}"
    );
}

#[test]
fn what_is_compared_can_be_named() {
    const COUNTS: &[&str] = &[
        r#"{"state":"a","at":1}"#,
        r#"{"state":"b","at":2}"#,
        r#"{"state":"b","at":3}"#,
        r#"{"state":"a","at":4}"#,
        r#"{"state":"a","at":5}"#,
        r#"{"state":"a","at":6}"#,
    ];
    let limit = "{ unchanged: 3, unchanged_of: \"@outputs('check').state\" }";
    let played = poll(limit, "on_limit: continue", COUNTS).play();
    assert_eq!(played.calls("check"), 6);
    // The whole result differs each time, up to the last answer, which repeats.
    let played = poll("{ unchanged: 3 }", "on_limit: continue", COUNTS).play();
    assert_eq!(played.calls("check"), 8);
}

#[test]
fn the_condition_comes_first_and_the_other_limits_too() {
    let done = poll("{ unchanged: 2 }", "", &[r#"{"state":"done"}"#]).play();
    assert!(done.output().contains(r#""reason":"condition""#));
    let spent = poll("{ unchanged: 3, count: 3 }", "", &[r#"{"state":"a"}"#]).play();
    assert!(
        spent.error().contains("after its 3 iterations"),
        "{}",
        spent.error()
    );
}

#[test]
fn a_resume_after_a_pause_resets_the_count() {
    let played = poll("{ unchanged: 2 }", "on_limit: pause", STILL)
        .at(1, Outside::Resume)
        .at(2, Outside::Cancel)
        .play();
    // The same result twice after three checks, and two more after the resume.
    assert_eq!(played.calls("check"), 5);
    assert_eq!(played.status(), RunStatus::Cancelled);
}

#[test]
fn what_was_appended_counts_not_what_it_was_appended_to() {
    let played = Case::yaml(
        "
variables: { log: [] }
actions:
  poll:
    type: until
    condition: \"@greater(length(variables('log')), 9)\"
    limit: { unchanged: 3 }
    on_limit: continue
    actions:
      check: { type: shell, run: x }
      keep: { type: appendToArrayVariable, name: log, value: \"@outputs('check')\" }
outputs: \"@length(variables('log'))\"
",
    )
    .world(|_| ok("1"))
    .play();
    assert_eq!(played.output(), "3");
}

#[test]
fn the_next_iteration_knows_what_the_condition_read() {
    let played = Case::yaml(
        "
variables: { seen: [], n: 0 }
actions:
  fix:
    type: until
    condition: \"@equals(outputs('check')?.exitCode, variables('n'))\"
    limit: { count: 2 }
    on_limit: continue
    actions:
      keep: { type: appendToArrayVariable, name: seen, value: \"@variables('loopFeedback')\" }
      moved: { type: setVariable, name: n, value: \"@add(variables('n'), 1)\" }
      see: { type: compose, inputs: \"{{ loop.feedback.printed.check.stderr if loop.feedback else 'none' }}\" }
      check: { type: shell, run: x }
outputs: { seen: \"@variables('seen')\", last: \"@outputs('see')\" }
",
    )
    .world(|_| ok(r#"{"exitCode":9,"stdout":"two tests fail","stderr":"a.rs:7","body":"two"}"#))
    .play();
    assert_eq!(
        played.output(),
        r#"{"seen":[null,{"iteration":0,"condition":false,"reads":{"outputs('check')?.exitCode":9,"n":1},"printed":{"check":{"exitCode":9,"stdout":"two tests fail","stderr":"a.rs:7"}}}],"last":"a.rs:7"}"#
    );
}

#[test]
fn feedback_has_at_most_64_kib_and_retains_the_end_of_a_text() {
    let played = Case::yaml(
        "
variables: { long: 0 }
actions:
  fix:
    type: doUntil
    condition: \"@equals(outputs('check').body, 'done')\"
    limit: { count: 2 }
    on_limit: continue
    actions:
      see:
        type: compose
        inputs: { size: \"@length(string(variables('loopFeedback')))\", end: \"@variables('loopFeedback')?.printed?.check?.stdout\" }
      check: { type: shell, run: x }
outputs: { size: \"@outputs('see').size\", end: \"@last(split(outputs('see').end, ' '))\" }
",
    )
    .world(|_| {
        let long = "é ".repeat(100_000);
        ok(&format!(r#"{{"stdout":"{long}END","stderr":"","body":[{}1]}}"#, "1,".repeat(90_000)))
    })
    .play();
    let output = played.output();
    let size: usize = output.split([':', ',']).nth(1).unwrap().parse().unwrap();
    assert!((20_000..=65_536).contains(&size), "{output}");
    assert!(output.ends_with(r#""end":"END"}"#), "{output}");
}
