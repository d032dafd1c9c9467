//! Timeouts and what a loop does at its limits.

use super::play::{Answer, Case, Outside, Played, fails, ok};
use std::time::Duration;
use windlass_machine::{HistoryEvent, HistoryKind, RunStatus};

#[test]
fn a_timeout_cuts_a_hanging_action_in_the_middle() {
    for kind in ["until", "while", "doUntil"] {
        let condition = if kind == "while" { "@true" } else { "@false" };
        let played = Case::yaml(&format!(
            "
actions:
  poll:
    type: {kind}
    condition: {{ equals: [1, {}] }}
    limit: {{ timeout: PT2S }}
    actions:
      hang: {{ type: shell, run: x }}
",
            if condition == "@true" { 1 } else { 2 }
        ))
        .world(|_| Answer::Never)
        .play();
        assert_eq!(played.status(), RunStatus::TimedOut, "{kind}");
        assert_eq!(played.took_ms(), 2000);
        assert_eq!(
            played.error(),
            "timeout: loop `poll` was not done within its timeout of 2s; action poll; line 3"
        );
        assert_eq!(played.rows().len(), 1);
        assert!(played.rows()[0].starts_with("poll#0 TimedOut"));
        assert!(
            played
                .story()
                .contains(&r#"ActionEnded node_name="hang" status="Cancelled" error=null attempt=1 path="poll" iteration=0"#.into()),
            "{:#?}",
            played.story()
        );
    }
}

fn until_never(limit: &str, more: &str, body: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  poll:
    type: until
    condition: \"@equals(outputs('check')?.state, 'done')\"
    limit: {limit}
    {more}
    actions:
      {body}
outputs: \"@outputs('poll')\"
"
    ))
}

const CHECK: &str = "check: { type: shell, run: x }";

#[test]
fn a_timeout_applies_during_a_delay() {
    let played = until_never("{ timeout: PT25S }", "delay: PT10S", CHECK).play();
    assert_eq!(played.calls("check"), 3);
    assert_eq!(played.took_ms(), 25_000);
    assert_eq!(played.status(), RunStatus::TimedOut);
    assert_eq!(played.rows().len(), 3, "no iteration was cut");
}

#[test]
fn a_timeout_applies_between_attempts() {
    let body = "check: { type: shell, run: x, retry: { type: fixed, interval: PT1H, count: 9 } }";
    let played = until_never("{ timeout: PT90M }", "", body)
        .world(|_| fails("shell"))
        .play();
    assert_eq!(played.calls("check"), 2);
    assert_eq!(played.took_ms(), 90 * 60_000);
    assert_eq!(played.status(), RunStatus::TimedOut);
}

#[test]
fn a_timeout_of_an_outer_loop_cuts_the_inner_ones() {
    let played = Case::yaml(
        "
actions:
  outer:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { timeout: PT5S }
    actions:
      inner:
        type: until
        condition: \"@equals(1, 2)\"
        limit: { timeout: PT1H }
        delay: PT1S
        actions:
          both:
            type: parallel
            branches:
              left: { actions: { a: { type: shell, run: x } } }
              right: { actions: { b: { type: wait, interval: PT1H } } }
",
    )
    .play();
    assert_eq!(played.status(), RunStatus::TimedOut);
    assert_eq!(played.took_ms(), 5000);
    assert_eq!(
        played.error(),
        "timeout: loop `outer` was not done within its timeout of 5s; action outer; line 3"
    );
    let ends = ["outer", "outer#0/inner"].map(|path| played.loops[path].ended.unwrap().as_str());
    assert_eq!(ends, ["timeout", "cancelled"]);
    assert_eq!(
        played.rows(),
        [
            r#"outer#0/inner#0 Cancelled false {}"#,
            r#"outer#0 TimedOut false {}"#
        ]
    );
}

#[test]
fn an_inner_timeout_fails_the_outer_loop_with_its_place() {
    let played = Case::yaml(
        "
actions:
  outer:
    type: until
    condition: \"@equals(1, 2)\"
    actions:
      inner:
        type: until
        condition: \"@equals(1, 2)\"
        limit: { timeout: PT3S }
        actions:
          a: { type: shell, run: x }
",
    )
    .world(|_| ok("{}").after(2))
    .play();
    assert_eq!(
        played.error(),
        "timeout: loop `inner` was not done within its timeout of 3s; action inner; iteration 0 of outer; line 7"
    );
    assert_eq!(played.status(), RunStatus::TimedOut);
}

#[test]
fn a_condition_that_holds_at_the_last_moment_counts() {
    // The answer and the deadline are due at the same time; the answer is processed first.
    let played = until_never("{ timeout: PT5S }", "", CHECK)
        .world(|_| ok(r#"{"state":"done"}"#).after(5))
        .play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    let late = until_never("{ timeout: PT5S }", "", CHECK)
        .world(|_| ok(r#"{"state":"busy"}"#).after(5))
        .play();
    assert_eq!(late.status(), RunStatus::TimedOut);
}

#[test]
fn on_limit_continue_continues_the_run_and_says_why() {
    let played = until_never("{ count: 2 }", "on_limit: continue", CHECK).play();
    assert_eq!(
        played.output(),
        r#"{"iterations":2,"status":"Succeeded","reason":"count","result":{"check":null}}"#
    );
    assert!(
        played
            .story()
            .contains(&r#"LoopLimit node_name="poll" path="poll" limit="count""#.into())
    );
    let played = until_never("{ timeout: PT3S }", "on_limit: continue", CHECK)
        .world(|_| ok("{}").after(2))
        .play();
    assert_eq!(
        played.output(),
        r#"{"iterations":1,"status":"Succeeded","reason":"timeout","result":{"check":{}}}"#
    );
    assert_eq!(played.took_ms(), 3000);
    assert!(played.rows()[1].starts_with("poll#1 TimedOut"));
}

#[test]
fn on_limit_pause_grants_the_same_count_again() {
    let case = until_never("{ count: 3 }", "on_limit: pause", CHECK);
    let played = case.play();
    assert_eq!(played.status(), RunStatus::Paused);
    assert_eq!(played.calls("check"), 3);
    let case = until_never("{ count: 3 }", "on_limit: pause", CHECK)
        .world(|call| {
            ok(if call.n == 7 {
                r#"{"state":"done"}"#
            } else {
                "{}"
            })
        })
        .at(60, Outside::Resume)
        .at(120, Outside::Resume);
    let played = case.play();
    assert_eq!(played.calls("check"), 8);
    assert_eq!(
        played.requests()[2..4],
        ["0 check 1".to_string(), "60000 check 1".to_string()]
    );
    assert!(
        played
            .output()
            .starts_with(r#"{"iterations":8,"status":"Succeeded""#)
    );
}

#[test]
fn on_limit_pause_with_a_delay_waits_before_it_resumes() {
    let played = until_never("{ count: 1 }", "on_limit: pause\n    delay: PT5S", CHECK)
        .world(|call| {
            ok(if call.n == 1 {
                r#"{"state":"done"}"#
            } else {
                "{}"
            })
        })
        .at(60, Outside::Resume)
        .play();
    assert_eq!(played.requests(), ["0 check 1", "65000 check 1"]);
}

#[test]
fn on_limit_pause_grants_the_same_time_again() {
    // During an action, the action stays in flight and the loop gets five more seconds.
    let case = |answer: u64| {
        until_never("{ timeout: PT5S }", "on_limit: pause", CHECK)
            .world(move |_| ok(r#"{"state":"done"}"#).after(answer))
            .at(60, Outside::Resume)
    };
    let played = case(64).play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.took_ms(), 64_000);
    assert_eq!(played.calls("check"), 1);
    let played = case(100).play();
    assert_eq!(
        played.status(),
        RunStatus::Paused,
        "it reached its limit again"
    );
    let (since, _) = played.state.paused.as_ref().unwrap();
    assert_eq!(since.0 - super::play::START.0, 65_000);
    // The action answers while the run is paused.
    let played = case(30).play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.took_ms(), 60_000);
}

#[test]
fn on_limit_pause_in_a_delay_keeps_what_is_left_of_it() {
    let played = until_never(
        "{ timeout: PT15S }",
        "on_limit: pause\n    delay: PT10S",
        CHECK,
    )
    .at(115, Outside::Resume)
    .play();
    // Polls at 0 and 10, and five seconds after the pause from 15 to 115. Then its 15 more seconds are over.
    assert_eq!(
        played.requests(),
        ["0 check 1", "10000 check 1", "120000 check 1"]
    );
    let (since, _) = played.state.paused.as_ref().unwrap();
    assert_eq!(since.0 - super::play::START.0, 130_000);
}

#[test]
fn a_loop_that_pauses_at_its_limit_inside_of_others() {
    let played = Case::yaml(
        "
actions:
  each:
    type: foreach
    foreach: [1, 2]
    concurrency: 2
    actions:
      poll:
        type: until
        condition: \"@equals(outputs('check')?.state, 'done')\"
        limit: { count: 2 }
        on_limit: pause
        actions:
          check: { type: shell, run: x }
",
    )
    .world(|call| {
        ok(if call.n >= 4 {
            r#"{"state":"done"}"#
        } else {
            "{}"
        })
    })
    .at(10, Outside::Resume)
    .at(20, Outside::Resume)
    .play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.calls("check"), 6);
}

#[test]
fn a_step_has_a_timeout_of_its_own() {
    let played = Case::yaml(
        "
actions:
  slow:
    type: scope
    timeout: PT4S
    actions:
      a: { type: shell, run: x }
      b: { type: wait, interval: PT1H }
  after:
    type: compose
    inputs: \"@concat(actions('slow').status, ' ', actions('b').status, ' ', actions('slow').error.message)\"
    runAfter: { slow: [TimedOut] }
outputs: \"@outputs('after')\"
",
    )
    .play();
    assert_eq!(
        played.output(),
        r#""TimedOut Cancelled `slow` was not done within its timeout of 4s""#
    );
    assert_eq!(played.took_ms(), 4000);
}

#[test]
fn the_timeout_of_a_step_covers_its_attempts() {
    let case = |more: &str| {
        Case::yaml(&format!(
            "
actions:
  slow:
    type: scope
    timeout: PT10S
    retry: {{ type: fixed, interval: PT4S, count: 9 }}
    actions:
      a: {{ type: shell, run: x }}
{more}
"
        ))
    };
    let played = case("").world(|_| fails("shell")).play();
    assert_eq!(played.requests(), ["0 a 1", "4000 a 2", "8000 a 3"]);
    assert_eq!(played.took_ms(), 10_000);
    assert_eq!(played.status(), RunStatus::TimedOut);
}

/// A computed limit must be within the operator's maximum, as a written one.
#[test]
fn computed_limits_are_within_the_caps() {
    let run = |count: u64, timeout: &str| {
        let text = format!(
            "
variables: {{ count: {count}, timeout: {timeout} }}
actions:
  poll:
    type: until
    condition: \"@equals(1, 1)\"
    limit: {{ count: \"@variables('count')\", timeout: \"@variables('timeout')\" }}
    actions: {{ a: {{ type: compose, inputs: 1 }} }}
outputs: done
"
        );
        let mut case = Case::yaml(&text);
        case.program.caps.count = 5;
        case.program.caps.timeout = Duration::from_secs(60);
        case.play()
    };
    for fits in [(5, "PT1M"), (4, "PT59S")] {
        assert_eq!(run(fits.0, fits.1).output(), "\"done\"");
    }
    let error = run(6, "PT1M").error();
    assert!(
        error.contains("asks for 6 iterations; the cap is 5"),
        "{error}"
    );
    for long in ["PT61S", "PT1H"] {
        let error = run(5, long).error();
        assert!(error.contains("asks for a timeout of"), "{error}");
    }
}

/// Only iterations have boundaries: branches that only compute end in one step.
#[test]
fn branches_that_are_computed_end_in_one_transition() {
    let played = Case::yaml(
        "
actions:
  all:
    type: parallel
    actions:
      a: { type: compose, inputs: 1 }
      b: { type: compose, inputs: 2 }
      c: { type: compose, inputs: \"@div(1, 0)\" }
      d: { type: compose, inputs: 4 }
",
    )
    .play();
    assert!(played.error().contains("divides by zero"));
    assert_eq!(played.steps.len(), 1);
}

/// The ends that the history reports: the action, its status, and the surrounding loop.
fn ends(played: &Played) -> Vec<String> {
    let end = |event: &HistoryEvent| match &event.what {
        HistoryKind::ActionEnded {
            node_name,
            status,
            path,
            ..
        } => {
            let path = path.as_deref().unwrap_or("-");
            Some(format!("{node_name} {} {path}", status.as_str()))
        }
        _ => None,
    };
    played.history.iter().filter_map(end).collect()
}

#[test]
fn what_a_timeout_aborts_ends_once_and_where_it_is() {
    let block = |action: &str| {
        Case::yaml(&format!(
            "
actions:
  block:
    type: scope
    timeout: PT4S
    actions:
      {action}
"
        ))
        .world(|_| Answer::Never)
        .play()
    };
    let ask = block("ask: { type: waitForSignal, signal: go }");
    let aborted = ["ask Cancelled -", "block Cancelled -", "block TimedOut -"];
    assert_eq!(ends(&ask), aborted);
    let poll = block(
        "poll: { type: until, condition: \"@false\", actions: { check: { type: shell, run: x } } }",
    );
    let aborted = [
        "check Cancelled poll",
        "poll Cancelled poll",
        "block Cancelled -",
        "block TimedOut -",
    ];
    assert_eq!(ends(&poll), aborted);
}
