//! Retries of actions and blocks.

use super::play::{Answer, Case, Outside, Played, START, fails, failure, json, ok};
use windlass_machine::FrameKind;
use windlass_model::model::Fault;
use windlass_value::time::Timestamp;

fn retried(policy: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  a:
    type: shell
    run: x
    retry: {policy}
outputs: {{ result: \"@outputs('a')\" }}
"
    ))
}

fn http(status: u16) -> Answer {
    let fault = Fault::new("http", format!("status {status}")).code(status);
    let fault = match status {
        408 | 429 | 500.. => fault.transient(),
        _ => fault,
    };
    failure(fault.output(json(&format!("{{\"statusCode\": {status}}}"))))
}

fn times(played: &Played) -> Vec<i64> {
    played.started.iter().map(|one| one.at_ms).collect()
}

/// A fault that is not transient is not retried, even if it waited for the end of a pause.
#[test]
fn a_fault_that_came_during_a_pause_is_the_actions_own() {
    let tries = |fault: Fault| {
        let played = retried("{ type: fixed, interval: PT7S, count: 1 }")
            .world(move |_| failure(fault.clone()).after(10))
            .at(5, Outside::Pause)
            .at(20, Outside::Resume)
            .play();
        played.requests()
    };
    let fault = || Fault::new("shell", "it was refused");
    assert_eq!(tries(fault()), ["0 a 1"]);
    assert_eq!(tries(fault().transient()), ["0 a 1", "27000 a 2"]);
}

#[test]
fn fixed_waits_are_all_the_same_and_attempts_are_counted() {
    let played = retried("{ type: fixed, interval: PT7S, count: 5 }")
        .world(|call| {
            if call.n < 3 {
                fails("shell")
            } else {
                ok("\"done\"")
            }
        })
        .play();
    assert_eq!(
        played.requests(),
        ["0 a 1", "7000 a 2", "14000 a 3", "21000 a 4"]
    );
    assert_eq!(played.output(), r#"{"result":"done"}"#);
    let keys = played.keys();
    assert!(
        keys.iter().all(|key| *key == "run/a"),
        "the key has no attempt: {keys:?}"
    );
    let root = played.state.cursors.values().next().unwrap();
    assert_eq!(root.records.values().next().unwrap().attempts, 4);
}

/// In its second attempt, as in its first, a block reads as not run yet.
#[test]
fn an_attempt_does_not_see_the_end_of_the_one_before() {
    let text = "
variables: { n: 0 }
actions:
  block:
    type: scope
    retry: { type: fixed, interval: PT1S, count: 1 }
    actions:
      read: { type: compose, inputs: \"{{ actions.block.status if variables.n > 0 else '-' }}\" }
      next: { type: incrementVariable, name: n }
      fail: { type: shell, run: x, retry: none }
";
    let played = Case::yaml(text).world(|_| fails("shell")).play();
    assert!(
        played.error().contains("`actions.block` has not run yet"),
        "{}",
        played.error()
    );
    assert_eq!(played.requests(), ["0 fail 1"]);
}

#[test]
fn exponential_waits_double_with_some_jitter() {
    let played = retried("{ type: exponential, interval: PT2S, maxInterval: PT10S, count: 5 }")
        .world(|_| fails("shell"))
        .play();
    let times = times(&played);
    let waits: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, base) in waits.iter().zip([2000, 4000, 8000, 10_000, 10_000]) {
        assert!(
            (base..=base + base / 10).contains(wait) && *wait <= 10_000,
            "{waits:?}"
        );
    }
    assert_ne!(waits[0], 2000, "{waits:?}");
    assert_eq!(times.len(), 6);
    assert_eq!(played.error(), "shell: it was shell; action a; line 3");
}

#[test]
fn no_retries() {
    for policy in ["{ type: none }", "{ type: fixed, count: 0 }"] {
        let played = retried(policy).world(|_| fails("shell")).play();
        assert_eq!(played.calls("a"), 1);
    }
}

#[test]
fn only_what_is_named_is_retried() {
    let case = |on: &str, answer: fn() -> Answer| {
        let policy = format!("{{ type: fixed, interval: PT1S, count: 2, on: [{on}] }}");
        retried(&policy).world(move |_| answer()).play().calls("a")
    };
    assert_eq!(case("503", || http(503)), 3);
    assert_eq!(case("503", || http(500)), 1);
    assert_eq!(case("5xx", || http(500)), 3);
    assert_eq!(case("5xx, 404", || http(404)), 3);
    assert_eq!(case("4xx", || http(500)), 1);
    assert_eq!(case("timeout", || fails("timeout")), 3);
    assert_eq!(case("timeout", || fails("connection")), 1);
    assert_eq!(case("TIMEOUT, connection", || fails("connection")), 3);
    assert_eq!(case("http", || http(404)), 3);
}

#[test]
fn without_names_what_is_transient_is_retried() {
    let case = |answer: fn() -> Answer| {
        let policy = "{ type: fixed, interval: PT1S, count: 2 }";
        retried(policy).world(move |_| answer()).play().calls("a")
    };
    assert_eq!(case(|| http(503)), 3);
    assert_eq!(case(|| http(429)), 3);
    assert_eq!(case(|| http(404)), 1);
    assert_eq!(case(|| fails("connection")), 3);
}

#[test]
fn an_expression_that_fails_is_not_tried_again() {
    let played = Case::yaml(
        "
actions:
  a:
    type: activity
    inputs: { activityType: x, n: \"@div(1, 0)\" }
    retry: { type: fixed, interval: PT1S, count: 2 }
",
    )
    .play();
    assert_eq!(played.calls("a"), 0);
    assert!(
        played.error().starts_with("expression: "),
        "{}",
        played.error()
    );
}

#[test]
fn retry_after_is_honoured_up_to_an_hour() {
    let case = |millis: u64| {
        retried("{ type: exponential, interval: PT1S, maxInterval: PT30S, count: 1 }")
            .world(move |call| {
                if call.n > 0 {
                    return ok("1");
                }
                let mut fault = Fault::new("http", "429").code(429).transient();
                fault.retry_after_ms = Some(millis);
                failure(fault)
            })
            .play()
            .took_ms()
    };
    assert_eq!(case(17_000), 17_000);
    assert_eq!(case(170_000), 170_000);
    assert_eq!(case(17_000_000), 3_600_000);
}

#[test]
fn a_failed_attempt_keeps_its_output_when_all_are_spent() {
    let played = Case::yaml(
        "
actions:
  a: { type: shell, run: x, retry: { type: fixed, interval: PT1S, count: 1 } }
  b:
    type: compose
    inputs: \"@concat(actions('a').status, ' ', string(outputs('a')), ' ', actions('a').code)\"
    runAfter: { a: [Failed] }
",
    )
    .world(|_| http(503))
    .play();
    assert_eq!(
        played.output(),
        r#"{"a":{"statusCode":503},"b":"Failed {\"statusCode\":503} 503"}"#
    );
}

#[test]
fn what_a_retry_reports() {
    let played = retried("{ type: fixed, interval: PT1S, count: 1 }")
        .world(|call| if call.n == 0 { fails("shell") } else { ok("1") })
        .play();
    assert_eq!(
        played.story(),
        [
            "RunStarted ",
            "ActionStarted node_name=\"a\" attempt=1 key=\"run/a\"",
            "ActionEnded node_name=\"a\" status=\"Failed\" error=\"it was shell\" attempt=1",
            "RetryScheduled node_name=\"a\" attempt=1 next_at=\"2023-11-14T22:13:21.000Z\" error=\"it was shell\"",
            "ActionStarted node_name=\"a\" attempt=2 key=\"run/a\"",
            "ActionEnded node_name=\"a\" status=\"Succeeded\" error=null attempt=2",
            "RunFinished status=\"Succeeded\"",
        ]
    );
}

#[test]
fn a_block_is_retried_as_a_whole() {
    let played = Case::yaml(
        "
actions:
  block:
    type: scope
    retry: { type: fixed, interval: PT1S, count: 3 }
    actions:
      a: { type: shell, run: x }
      which:
        type: if
        condition: \"@equals(outputs('a'), 0)\"
        actions: { b: { type: shell, run: x } }
        else: { actions: { c: { type: shell, run: x } } }
",
    )
    .world(|call| match call.name {
        "b" => failure(Fault::new("http", "404").code(404)),
        _ => ok(&call.n.to_string()),
    })
    .play();
    // Any failure of a block is retried, and the second attempt contains nothing of the first.
    assert_eq!(
        played.requests(),
        ["0 a 1", "0 b 1", "1000 a 2", "1000 c 2"]
    );
    assert_eq!(played.output(), r#"{"block":{"a":1,"which":{"c":0}}}"#);
}

#[test]
fn a_loop_is_retried_as_a_whole() {
    let played = Case::yaml(
        "
actions:
  again:
    type: retry
    retryPolicy: { type: fixed, interval: PT10S, count: 2 }
    action:
      type: until
      name: poll
      condition: \"@equals(outputs('a'), 4)\"
      limit: { count: 2 }
      actions: { a: { type: shell, run: x } }
",
    )
    .world(|call| ok(&call.n.to_string()))
    .play();
    // Two iterations each; in the third attempt only the first one is finished.
    assert_eq!(
        played.requests(),
        ["0 a 1", "0 a 1", "10000 a 2", "10000 a 2", "20000 a 3"]
    );
    assert_eq!(
        played.output(),
        r#"{"again":{"iterations":1,"status":"Succeeded","reason":"condition","result":{"a":4}}}"#
    );
}

#[test]
fn retries_nest() {
    let played = Case::yaml(
        "
actions:
  outer:
    type: scope
    retry: { type: fixed, interval: PT1M, count: 1 }
    actions:
      a: { type: shell, run: x, retry: { type: fixed, interval: PT1S, count: 1 } }
",
    )
    .world(|_| fails("shell"))
    .play();
    assert_eq!(
        played.requests(),
        ["0 a 1", "1000 a 2", "61000 a 1", "62000 a 2"]
    );
}

#[test]
fn azures_waits_are_within_their_bounds() {
    let played = Case::yaml(
        "
dialect: azure
actions:
  a:
    type: Http
    inputs:
      method: GET
      uri: http://x/
      retryPolicy: { type: exponential, count: 4, interval: PT8S, minimumInterval: PT5S, maximumInterval: PT60S }
",
    )
    .world(|_| http(503))
    .play();
    let times = times(&played);
    let waits: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, (low, high)) in waits.iter().zip([(5, 8), (8, 16), (16, 32), (32, 60)]) {
        assert!((low * 1000..=high * 1000).contains(wait), "{waits:?}");
    }
    assert_eq!(times.len(), 5);
}

#[test]
fn an_attempt_has_a_timeout_of_its_own() {
    let played = Case::yaml("actions: { a: { type: shell, run: x, timeout: PT3S } }").play();
    assert_eq!(played.started[0].request.timeout_ms, Some(3000));
}

/// What `status` reports of a run between two attempts, and during the next attempt.
#[test]
fn what_is_known_of_the_last_attempt() {
    let paused_at = |seconds: u64| {
        let case = retried("{ type: fixed, interval: PT7S, count: 5 }")
            .world(|_| fails("shell").after(2))
            .at(seconds, Outside::Pause);
        let played = case.play_with(&mut |_, _| None);
        let root = played.state.cursors.values().next().unwrap();
        let tried = root.frames.iter().find_map(|frame| match &frame.kind {
            FrameKind::Try(tried) => Some(tried.clone()),
            _ => None,
        });
        let tried = tried.unwrap();
        let (fault, at) = *tried.last_fault.unwrap();
        let since = |at: Timestamp| (at.0 - START.0) / 1000;
        let next = tried.next_due_at.map(since);
        (tried.attempt, fault.message, since(at), next)
    };
    let first = (1, String::from("it was shell"), 2, Some(9));
    assert_eq!(paused_at(5), first);
    // An answer that arrives during a pause is processed after it.
    let second = (2, String::from("it was shell"), 2, None);
    assert_eq!(paused_at(10), second);
}

/// The same in a branch of a block as in the block itself.
#[test]
fn what_is_in_a_retried_block_has_its_attempt() {
    for (kind, more) in [
        ("scope", ""),
        ("parallel", ""),
        ("scope", "runAfter: {}"),
        ("foreach", "foreach: [1]"),
    ] {
        let (each, after) = match more.starts_with("foreach") {
            true => (more, ""),
            false => ("", more),
        };
        let played = Case::yaml(&format!(
            "
actions:
  block:
    type: {kind}
    {each}
    retry: {{ type: fixed, interval: PT1S, count: 1, jitter: none }}
    actions:
      a: {{ type: compose, inputs: x }}
      b:
        type: shell
        run: x
        {after}
"
        ))
        .world(|call| if call.n == 0 { fails("shell") } else { ok("1") })
        .play();
        assert_eq!(played.requests(), ["0 b 1", "1000 b 2"], "{kind} {more}");
    }
}
