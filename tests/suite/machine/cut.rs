//! Where a timeout interrupts a loop makes no difference for what follows.

use super::play::{Answer, Case, Outside, ok};
use windlass_machine::RunStatus;

/// The places where a timeout can interrupt, after one iteration that ended.
const CUTS: [&str; 4] = ["delay", "flight", "middle", "retry"];

/// A loop that is interrupted after `after` iterations, and an action that handles it.
fn cut(at: &str, after: i64, more: &str) -> Case {
    let text = format!(
        "
actions:
  poll:
    type: until
    condition: \"@equals(body('check')?.state, 'done')\"
    limit: {{ timeout: PT10S }}
    {more}
    delay: \"@if(equals(inputs('at'), 'delay'), 'PT1H', 'PT0S')\"
    actions:
      check:
        type: activity
        inputs: {{ activityType: check }}
        retry: {{ type: fixed, interval: PT1H, count: 5 }}
      rest: {{ type: wait, interval: \"@if(or(less(variables('loopIndex'), {after}), not(equals(inputs('at'), 'middle'))), 'PT0S', 'PT1H')\" }}
      last: {{ type: compose, inputs: \"@variables('loopIndex')\" }}
  expired:
    type: compose
    runAfter: {{ poll: [TimedOut, Succeeded] }}
    inputs:
      loop: \"@outputs('poll')\"
      check: \"@body('check')?.state\"
      last: \"@outputs('last')\"
      of: \"@actions('poll').status\"
outputs: \"@outputs('expired')\"
"
    );
    let (kind, after) = (at.to_owned(), usize::try_from(after).unwrap());
    Case::yaml(&text)
        .input(&format!(r#"{{"at":"{at}"}}"#))
        .world(move |call| match &*kind {
            "flight" if call.n == after => Answer::Never,
            "retry" if call.n == after => super::play::fails("busy"),
            _ => ok(r#"{"state":"busy"}"#),
        })
}

#[test]
fn a_loop_that_timed_out_is_the_same_wherever_the_cut_fell() {
    for (more, of, status) in [
        ("", "TimedOut", "TimedOut"),
        ("on_limit: continue", "Succeeded", "Succeeded"),
    ] {
        for at in CUTS {
            let played = cut(at, 1, more).play();
            assert_eq!(played.status(), RunStatus::Succeeded, "{at} {more}");
            assert_eq!(played.took_ms(), 10_000, "{at} {more}");
            let expected = format!(
                r#"{{"loop":{{"iterations":1,"status":"{status}","reason":"timeout","result":{{"check":{{"state":"busy"}},"rest":null,"last":0}}}},"check":"busy","last":0,"of":"{of}"}}"#
            );
            assert_eq!(played.output(), expected, "{at} {more}");
        }
    }
}

/// No iteration has ended, so a result without an answer is null.
#[test]
fn a_cut_in_the_first_iteration_leaves_nulls() {
    for at in ["flight", "middle", "retry"] {
        let played = cut(at, 0, "").play();
        assert_eq!(
            played.output(),
            r#"{"loop":{"iterations":0,"status":"TimedOut","reason":"timeout","result":{}},"check":null,"last":null,"of":"TimedOut"}"#,
            "{at}"
        );
    }
}

/// A pause before the timeout, and a resume after it: the timeout's clock stops during the pause.
#[test]
fn a_cut_after_a_pause_is_the_same_too() {
    for at in CUTS {
        let played = cut(at, 1, "")
            .at(4, Outside::Pause)
            .at(400, Outside::Resume)
            .play();
        assert_eq!(played.took_ms(), 406_000, "{at}");
        assert!(
            played.output().starts_with(r#"{"loop":{"iterations":1,"#),
            "{at}: {}",
            played.output()
        );
    }
}

/// The results of an inner loop in an interrupted iteration of the outer loop are deleted with it.
#[test]
fn a_cut_of_an_outer_loop_is_as_if_its_iteration_had_not_begun() {
    let text = "
actions:
  outer:
    type: until
    condition: \"@false\"
    limit: { timeout: PT10S }
    actions:
      inner:
        type: until
        condition: \"@equals(variables('loopIndex'), 2)\"
        actions: { check: { type: activity, inputs: { activityType: check } } }
  expired:
    type: compose
    runAfter: { outer: [TimedOut] }
    inputs: [\"@body('check')\", \"@outputs('inner').iterations\", \"@outputs('outer').iterations\"]
outputs: \"@outputs('expired')\"
";
    let played = Case::yaml(text)
        .world(|call| match call.n {
            3 => Answer::Never,
            n => ok(&n.to_string()),
        })
        .play();
    assert_eq!(played.output(), "[1,2,1]");
}

/// The `timeout` of a scope interrupts as well: an action that did not run reads as null.
#[test]
fn what_a_timeout_prevented_reads_as_null() {
    for hangs in ["first", "second"] {
        let text = "
actions:
  all:
    type: scope
    timeout: PT5S
    actions:
      first: { type: activity, inputs: { activityType: first } }
      second: { type: activity, inputs: { activityType: second } }
      third: { type: compose, inputs: 3 }
  expired:
    type: compose
    runAfter: { all: [TimedOut] }
    inputs: [\"@body('second')?.x\", \"@body('third')?.x\"]
outputs: \"@outputs('expired')\"
";
        let played = Case::yaml(text)
            .world(move |call| match call.name == hangs {
                true => Answer::Never,
                false => ok("{}"),
            })
            .play();
        assert_eq!(played.output(), "[null,null]", "{hangs}");
    }
}

/// Azure: the last iteration that ended decides, even if the next one was interrupted.
#[test]
fn a_failed_iteration_of_azure_counts_wherever_the_cut_fell_behind_it() {
    let statuses = ["PT1H", "PT0S"].map(|delay| {
        let text = format!(
            r#"{{
  "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
  "contentVersion": "1.0.0.0",
  "actions": {{ "poll": {{ "type": "Until", "runAfter": {{}}, "expression": "@equals(1, 2)",
    "limit": {{ "count": 9, "timeout": "PT10S" }}, "delay": "{delay}",
    "actions": {{ "check": {{ "type": "Http", "runAfter": {{}},
      "inputs": {{ "method": "GET", "uri": "http://x", "retryPolicy": {{ "type": "none" }} }} }} }} }} }}
}}"#
        );
        let played = Case::yaml(&text)
            .world(|call| match call.n {
                0 => super::play::fails("http"),
                _ => Answer::Never,
            })
            .play();
        (played.status(), played.error())
    });
    assert_eq!(statuses[0].0, RunStatus::Failed, "{}", statuses[0].1);
    assert_eq!(statuses[0], statuses[1]);
}

const HANDLED: &str = "
actions:
  poll: { type: activity, inputs: { activityType: poll } }
  decide: { type: compose, inputs: 1, runAfter: { poll: [Succeeded] } }
  expired: { type: compose, inputs: 2, runAfter: { poll: [Failed] } }
";

#[test]
fn a_failure_handled_next_to_a_skipped_action_says_so_and_what_to_do() {
    let fails = |text: &str| {
        Case::yaml(text)
            .world(|_| super::play::fails("handler"))
            .play()
    };
    assert_eq!(
        fails(HANDLED).error(),
        "handler: it was handler; it was handled by `expired`, but `decide` was skipped because of \
         it: end with an action that accepts both, runAfter: { expired: [Succeeded, Skipped], \
         decide: [Succeeded, Skipped] }; action poll; line 3"
    );
    // The message's advice works.
    let after = "runAfter: { expired: [Succeeded, Skipped], decide: [Succeeded, Skipped] }";
    let text = format!("{HANDLED}  end: {{ type: compose, inputs: 3, {after} }}\n");
    assert_eq!(fails(&text).status(), RunStatus::Succeeded);
    // The same with longer branches.
    let longer = format!(
        "{HANDLED}  told: {{ type: compose, inputs: 4, runAfter: {{ expired: [Succeeded] }} }}\n  \
         more: {{ type: compose, inputs: 5, runAfter: {{ decide: [Succeeded] }} }}\n"
    );
    let after = "runAfter: { told: [Succeeded, Skipped], more: [Succeeded, Skipped] }";
    let error = fails(&longer).error();
    assert!(error.contains(after), "{error}");
    let text = format!("{longer}  end: {{ type: compose, inputs: 3, {after} }}\n");
    assert_eq!(fails(&text).status(), RunStatus::Succeeded);
    // No such error is reported for a limit without a handler.
    let alone = HANDLED.replace("[Failed]", "[TimedOut]");
    assert_eq!(
        fails(&alone).error(),
        "handler: it was handler; action poll; line 3"
    );
}
