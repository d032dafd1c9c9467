//! `break_when` and `continue_when`, in every permitted place.

use super::play::{Answer, Case, ok};
use windlass_machine::RunStatus;

/// A loop of five iterations around `body`, and a step after the break.
fn five(body: &str) -> Case {
    Case::yaml(&format!(
        "
variables: {{ seen: [] }}
actions:
  five:
    type: until
    condition: \"@equals(variables('loopIndex'), 5)\"
    actions:
{body}
outputs: {{ loop: \"@outputs('five')\", seen: \"@variables('seen')\" }}
"
    ))
    .world(|call| ok(&format!("{}", call.n)))
}

fn loop_of(played: &super::play::Played) -> String {
    let outcome = played.outcome();
    assert_eq!(outcome.error, None);
    outcome.output.get("loop").unwrap().to_json()
}

#[test]
fn break_ends_the_loop_after_the_action() {
    let played = five(
        "
      a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
      b: { type: shell, run: x }",
    )
    .play();
    assert_eq!((played.calls("a"), played.calls("b")), (3, 2));
    assert_eq!(
        loop_of(&played),
        r#"{"iterations":3,"status":"Succeeded","reason":"break","result":{"a":2}}"#
    );
}

#[test]
fn continue_skips_the_rest_of_the_iteration() {
    let played = five(
        "
      a: { type: shell, run: x, continue_when: \"@equals(mod(outputs('a'), 2), 0)\" }
      b: { type: shell, run: x }",
    )
    .play();
    assert_eq!((played.calls("a"), played.calls("b")), (5, 2));
    assert_eq!(
        loop_of(&played),
        r#"{"iterations":5,"status":"Succeeded","reason":"condition","result":{"a":4}}"#
    );
}

#[test]
fn break_comes_before_continue() {
    let played = five(
        "
      a: { type: shell, run: x, break_when: \"@equals(1, 1)\", continue_when: \"@equals(1, 1)\" }",
    )
    .play();
    assert_eq!(played.calls("a"), 1);
}

/// `break_when` on an action inside blocks; the surrounding blocks end correctly.
#[test]
fn break_in_blocks() {
    let places = [
        "
      block:
        type: scope
        actions:
          a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
          b: { type: shell, run: x }",
        "
      block:
        type: if
        condition: \"@equals(1, 1)\"
        actions:
          a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
          b: { type: shell, run: x }",
        "
      block:
        type: if
        condition: \"@equals(1, 2)\"
        actions: { never: { type: shell, run: x } }
        else:
          actions:
            a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
            b: { type: shell, run: x }",
        "
      block:
        type: switch
        on: \"@string('k')\"
        cases:
          k:
            actions:
              a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
              b: { type: shell, run: x }",
        "
      block:
        type: scope
        timeout: PT1H
        retry: { type: fixed, interval: PT1S, count: 3 }
        actions:
          a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 2)\" }
          b: { type: shell, run: x }",
    ];
    for place in places {
        let played = five(place).play();
        assert_eq!((played.calls("a"), played.calls("b")), (3, 2), "{place}");
        assert_eq!(
            loop_of(&played),
            r#"{"iterations":3,"status":"Succeeded","reason":"break","result":{"block":{"a":2}}}"#,
            "{place}"
        );
        assert!(played.state.timers.is_empty());
    }
}

#[test]
fn continue_in_blocks() {
    let played = five(
        "
      block:
        type: scope
        actions:
          a: { type: shell, run: x, continue_when: \"@less(outputs('a'), 4)\" }
          b: { type: shell, run: x }
      c: { type: shell, run: x }",
    )
    .play();
    assert_eq!(
        (played.calls("a"), played.calls("b"), played.calls("c")),
        (5, 1, 1)
    );
    assert_eq!(
        played.rows()[0],
        r#"five#0 Succeeded false {"block":{"a":0}}"#
    );
}

#[test]
fn break_ends_the_innermost_loop() {
    let played = five(
        "
      inner:
        type: until
        condition: \"@equals(variables('loopIndex'), 5)\"
        actions:
          a: { type: shell, run: x, break_when: \"@equals(variables('loopIndex'), 1)\" }
        break_when: \"@equals(variables('loopIndex'), 2)\"",
    )
    .play();
    // Two inner iterations in each of three outer ones.
    assert_eq!(played.calls("a"), 6);
    assert_eq!(
        played.loops["five#2/inner"].ended.unwrap().as_str(),
        "break"
    );
    assert_eq!(
        loop_of(&played),
        r#"{"iterations":3,"status":"Succeeded","reason":"break","result":{"inner":{"iterations":2,"status":"Succeeded","reason":"break","result":{"a":5}}}}"#
    );
}

#[test]
fn break_out_of_a_branch_drops_the_others() {
    let places = [
        "
      fork:
        type: parallel
        branches:
          left:
            actions:
              a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 1)\" }
              never: { type: shell, run: x, runAfter: { a: [Failed] } }
          right: { actions: { hang: { type: activity, inputs: { activityType: hang } } } }
          sleepy: { actions: { nap: { type: wait, interval: PT1M } } }",
        "
      a: { type: shell, run: x, break_when: \"@equals(outputs('a'), 1)\", runAfter: {} }
      hang: { type: activity, inputs: { activityType: hang }, runAfter: {} }
      nap: { type: wait, interval: PT1M, runAfter: {} }
      never: { type: shell, run: x, runAfter: { hang: [Succeeded], a: [Succeeded] } }",
    ];
    for place in places {
        let case = five(place).world(|call| match (call.name, call.n) {
            ("hang", 1) => Answer::Never,
            _ => ok(&call.n.to_string()),
        });
        let played = case.play();
        assert_eq!(played.status(), RunStatus::Succeeded, "{place}");
        assert_eq!(played.calls("a"), 2, "{place}");
        assert_eq!(played.took_ms(), 60_000, "{place}");
        let never = if place.contains("fork") { 0 } else { 1 };
        assert_eq!(played.calls("never"), never, "{place}");
        let loop_ = loop_of(&played);
        assert!(
            loop_.contains(r#""iterations":2"#) && loop_.contains(r#""a":1"#),
            "{loop_}"
        );
        assert!(!loop_.contains("hang"), "{loop_}");
    }
}

#[test]
fn continue_out_of_a_branch_drops_the_others() {
    let played = five(
        "
      fork:
        type: parallel
        branches:
          left: { actions: { a: { type: shell, run: x, continue_when: \"@equals(1, 1)\" } } }
          right: { actions: { nap: { type: wait, interval: PT1M } } }",
    )
    .play();
    assert_eq!(played.calls("a"), 5);
    assert_eq!(played.took_ms(), 0);
    assert_eq!(played.rows().len(), 5);
}

#[test]
fn a_break_that_leaves_a_loop_in_a_sibling_ends_that_one_too() {
    let played = five(
        "
      fork:
        type: parallel
        branches:
          left: { actions: { a: { type: shell, run: x, break_when: \"@equals(1, 1)\" } } }
          right:
            actions:
              inner:
                type: until
                condition: \"@equals(1, 2)\"
                actions: { b: { type: wait, interval: PT1M } }",
    )
    .play();
    let inner = &played.loops["five#0/inner"];
    assert_eq!(inner.ended.unwrap().as_str(), "cancelled");
    assert_eq!(played.rows()[0], "five#0/inner#0 Cancelled false {}");
}

fn each(more: &str, body: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  each:
    type: foreach
    foreach: [0, 1, 2, 3, 4]
    {more}
    actions:
{body}
"
    ))
}

#[test]
fn break_in_a_foreach_keeps_what_ended() {
    let body = "
      a: { type: activity, inputs: { activityType: x, item: \"@item()\" }, break_when: \"@equals(item(), 2)\" }
      b: { type: compose, inputs: \"@item()\" }";
    let played = each("", body).world(|call| ok(&call.n.to_string())).play();
    assert_eq!(played.calls("a"), 3);
    assert_eq!(
        played.output(),
        r#"{"each":[{"a":0,"b":0},{"a":1,"b":1},{"a":2}]}"#
    );
    // Concurrently: item 2 breaks while 3 and 4 are in flight, and 0 has not answered.
    let played = each("concurrency: 5", body)
        .world(|call| match call.n {
            0 | 3 => Answer::Never,
            4 => ok("4").after(9),
            n => ok(&n.to_string()).after(1),
        })
        .play();
    assert_eq!(played.output(), r#"{"each":[{"a":1,"b":1},{"a":2}]}"#);
    assert_eq!(played.took_ms(), 1000);
}

#[test]
fn continue_in_a_foreach() {
    let played = each(
        "",
        "
      block:
        type: scope
        actions:
          a: { type: compose, inputs: \"@item()\", continue_when: \"@less(item(), 3)\" }
          b: { type: compose, inputs: \"@item()\" }
      c: { type: compose, inputs: \"@item()\" }",
    )
    .play();
    assert_eq!(
        played.output(),
        r#"{"each":[{"block":{"a":0}},{"block":{"a":1}},{"block":{"a":2}},{"block":{"a":3,"b":3},"c":3},{"block":{"a":4,"b":4},"c":4}]}"#
    );
}

#[test]
fn break_in_a_foreach_from_within_a_branch() {
    let played = each(
        "",
        "
      fork:
        type: parallel
        branches:
          left: { actions: { a: { type: compose, inputs: \"@item()\", break_when: \"@equals(item(), 1)\" } } }
          right: { actions: { nap: { type: wait, interval: PT1M } } }",
    )
    .play();
    assert_eq!(
        played.output(),
        r#"{"each":[{"fork":{"left":{"a":0},"right":{"nap":null}}},{"fork":{"left":{"a":1},"right":{}}}]}"#
    );
    assert_eq!(played.took_ms(), 60_000);
}

#[test]
fn a_foreach_inside_of_a_loop_is_the_innermost_loop() {
    let played = five(
        "
      each:
        type: foreach
        foreach: [1, 2, 3]
        actions:
          a: { type: shell, run: x, break_when: \"@equals(item(), 2)\" }
        continue_when: \"@less(variables('loopIndex'), 4)\"
      b: { type: shell, run: x }",
    )
    .play();
    assert_eq!((played.calls("a"), played.calls("b")), (10, 1));
}

#[test]
fn a_fault_in_a_break_condition_has_the_place_of_its_action() {
    let played = five(
        "
      a: { type: shell, run: x, break_when: \"@less(outputs('a'), 'x')\" }",
    )
    .play();
    let error = played.error();
    assert!(error.starts_with("expression: "), "{error}");
    assert!(
        error.ends_with("; action a; iteration 0 of five; line 9"),
        "{error}"
    );
}

#[test]
fn the_item_that_breaks_a_foreach_has_a_row() {
    let body = "
      a: { type: compose, inputs: \"@item()\", break_when: \"@equals(item(), 1)\" }";
    let played = each("", body).play();
    let rows = [
        r#"each#0 Succeeded - {"a":0}"#,
        r#"each#1 Succeeded - {"a":1}"#,
    ];
    assert_eq!(played.rows(), rows);
}

/// Its row is written when everything in it has ended, and contains nothing of an earlier attempt.
#[test]
fn an_aborted_item_has_the_row_of_what_ended_in_it() {
    let body = "
      first: { type: wait, interval: \"PT@{mul(item(), 3)}S\", break_when: \"@equals(item(), 1)\" }
      poll:
        type: until
        condition: \"@false\"
        limit: { count: 1 }
        retry: { type: fixed, interval: PT1S, count: 1, jitter: none }
        actions: { a: { type: shell, run: x } }";
    let played = each("concurrency: 2", body)
        .world(|call| ok("7").after(1 + 4 * call.n as u64))
        .play();
    let rows = [
        r#"each#0/poll#0 Succeeded false {"a":7}"#,
        r#"each#1 Succeeded - {"first":null}"#,
        r#"each#0/poll#0 Cancelled false {}"#,
        r#"each#0 Cancelled - {"first":null}"#,
    ];
    assert_eq!(played.rows(), rows);
}

/// If an action's jump cannot be computed, the steps after it see a failure, which they may handle.
#[test]
fn a_break_that_cannot_be_computed_fails_its_graph() {
    let graph = |status: &str| {
        five(&format!(
            "
      a: {{ type: compose, inputs: x, break_when: \"@greater(outputs('a'), 1)\" }}
      b: {{ type: compose, inputs: y, runAfter: {{ a: [{status}] }} }}"
        ))
        .play()
    };
    let error = graph("Succeeded").error();
    assert!(error.starts_with("expression: "), "{error}");
    let place = "; action a; iteration 0 of five; line 9";
    assert!(error.ends_with(place), "{error}");
    let handled = graph("Failed");
    assert_eq!(handled.status(), RunStatus::Succeeded);
    let count = handled
        .story()
        .iter()
        .filter(|line| line.contains("\"b\""))
        .count();
    assert_eq!(count, 5);
}
