//! What a loop's actions use counts against its limits `tokens` and `cost`.

use super::play::{Answer, Case, Outside, Played, failure, json, ok};
use windlass_machine::{Change, RunStatus};
use windlass_model::model::Fault;

fn work(limit: &str, more: &str, body: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  work:
    type: doUntil
    condition: \"@equals(outputs('ask')?.done, true)\"
    limit: {limit}
    {more}
    actions:
      {body}
outputs: \"@outputs('work')\"
"
    ))
}

const ASK: &str = "ask: { type: shell, run: x }";

/// A loop whose action always returns the same answer.
fn asks(limit: &str, more: &str, answer: &'static str) -> Case {
    work(limit, more, ASK).world(move |_| ok(answer))
}

fn used(played: &Played) -> Vec<String> {
    let budgets = played.loops["work"].budgets();
    budgets.map(|budget| budget.text()).collect()
}

#[test]
fn a_loop_ends_after_the_iteration_that_uses_up_its_tokens() {
    let answer = r#"{"content":"","usage":{"total_tokens":4100}}"#;
    let played = asks("{ tokens: 12300 }", "", answer).play();
    assert_eq!(played.calls("ask"), 3);
    let played = asks("{ tokens: 12301 }", "", answer).play();
    assert_eq!(played.calls("ask"), 4);
    assert_eq!(
        played.error(),
        "limit: loop `work` was not done within its budget: tokens 16,400 of 12,301; action work; line 3"
    );
    let played = asks("{ tokens: 5000 }", "on_limit: continue", answer).play();
    let output = played.output();
    assert!(
        output.contains(r#""iterations":2,"status":"Succeeded","reason":"tokens""#),
        "{output}"
    );
    assert_eq!(used(&played), ["tokens 8,200 of 5,000"]);
}

#[test]
fn a_sum_of_costs_is_exact() {
    // As binary fractions, ten times 0.1 is less than 1.
    let played = asks(
        "{ cost: 1 }",
        "on_limit: continue",
        r#"{"usage":{"cost":0.1}}"#,
    )
    .play();
    assert_eq!(played.calls("ask"), 10);
    assert_eq!(used(&played), ["cost 1 of 1"]);
    let played = asks(
        "{ cost: 0.25 }",
        "",
        r#"{"body":{"usage":{"cost":0.0625}}}"#,
    )
    .play();
    assert_eq!(
        played.error(),
        "limit: loop `work` was not done within its budget: cost 0.25 of 0.25; action work; line 3"
    );
}

#[test]
fn what_an_answer_says_of_its_usage_is_read_in_this_order() {
    for (usage, tokens) in [
        (r#"{"tokens":7,"total_tokens":9}"#, "7"),
        (r#"{"total_tokens":9,"prompt_tokens":1}"#, "9"),
        (r#"{"prompt_tokens":1,"completion_tokens":2}"#, "3"),
        (r#"{"input_tokens":3,"output_tokens":2}"#, "5"),
        (r#"{"input_tokens":3}"#, "3"),
        (r#"{"tokens":-7}"#, "0"),
        (r#"{"tokens":"7"}"#, "0"),
        ("{}", "0"),
        ("null", "0"),
        ("5", "0"),
    ] {
        let text = format!(r#"{{"usage":{usage},"done":true}}"#);
        let case = work("{ tokens: 100 }", "", ASK).world(move |_| ok(&text));
        let wanted = format!("tokens {tokens} of 100");
        assert_eq!(used(&case.play()), [wanted], "{usage}");
    }
}

#[test]
fn a_condition_that_holds_wins_and_both_limits_count() {
    let done = r#"{"done":true,"usage":{"tokens":500,"cost":3}}"#;
    let played = asks("{ tokens: 500, cost: 3 }", "", done).play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    let both = r#"{"usage":{"tokens":100,"cost":2}}"#;
    let played = asks("{ tokens: 500, cost: 3 }", "on_limit: continue", both).play();
    assert!(played.output().contains(r#""reason":"cost""#));
    assert_eq!(used(&played), ["tokens 200 of 500", "cost 4 of 3"]);
    // If a count is reached at the same time, it is named first.
    let played = asks("{ tokens: 200, count: 2 }", "on_limit: continue", both).play();
    assert!(played.output().contains(r#""reason":"count""#));
}

#[test]
fn inner_loops_and_branches_count_for_the_loops_around_them() {
    let body = "
        twice:
          type: doUntil
          condition: \"@equals(variables('loopCount'), 2)\"
          limit: { tokens: 1000 }
          actions:
            each:
              type: foreach
              foreach: [1, 2, 3]
              concurrency: 3
              actions: { ask: { type: shell, run: x } }
";
    let case = work("{ tokens: 70 }", "on_limit: continue", body);
    let case = case.world(|_| ok(r#"{"usage":{"tokens":10}}"#));
    let played = case.play();
    // Six calls per iteration.
    assert_eq!(used(&played), ["tokens 120 of 70"]);
    assert_eq!(played.calls("ask"), 12);
    let inner = played.loops["work#1/twice"].budgets();
    let inner: Vec<String> = inner.map(|budget| budget.text()).collect();
    assert_eq!(inner, ["tokens 60 of 1,000"]);
}

#[test]
fn failed_attempts_count() {
    let ask = "ask: { type: shell, run: x, retry: { count: 2, interval: 1s } }";
    let case = work("{ tokens: 100 }", "on_limit: continue", ask).world(|call| match call.n % 3 {
        2 => ok(r#"{"usage":{"tokens":20}}"#),
        _ => {
            let answer = json(r#"{"body":{"usage":{"tokens":20}}}"#);
            failure(Fault::new("ai", "no text").transient().output(answer))
        }
    });
    let played = case.play();
    assert_eq!(used(&played), ["tokens 120 of 100"]);
    assert_eq!(played.calls("ask"), 6);
}

#[test]
fn a_resume_after_a_pause_grants_the_same_again() {
    let answer = r#"{"usage":{"tokens":60}}"#;
    let case = work("{ tokens: 100 }", "on_limit: pause", ASK)
        .world(move |_| ok(answer).after(1))
        .at(10, Outside::Resume)
        .at(20, Outside::Cancel);
    let played = case.play();
    // 120 of 100, then 240 of 220.
    assert_eq!(played.calls("ask"), 4);
    assert_eq!(played.status(), RunStatus::Cancelled);
    assert_eq!(used(&played), ["tokens 240 of 220"]);
}

#[test]
fn a_computed_limit_must_be_positive() {
    for (limit, message) in [
        (
            "{ tokens: \"@sub(1, 1)\" }",
            "the limit `tokens` of a loop must be a whole number from 1, not 0",
        ),
        (
            "{ tokens: \"@div(5.0, 2)\" }",
            "the limit `tokens` of a loop must be a whole number from 1, not 2.5",
        ),
        (
            "{ cost: \"@sub(1, 1)\" }",
            "the limit `cost` of a loop must be a number above 0, not 0",
        ),
        (
            "{ cost: \"@string('much')\" }",
            "the limit `cost` of a loop must be a number above 0, not \"much\"",
        ),
    ] {
        let played = asks(limit, "", "{}").play();
        let error = played.error();
        assert!(error.contains(message), "{error}");
    }
    let played = asks(
        "{ tokens: \"@mul(2, 50)\" }",
        "",
        r#"{"usage":{"tokens":100}}"#,
    )
    .play();
    assert_eq!(played.calls("ask"), 1);
}

#[test]
fn only_loops_with_such_a_limit_store_what_is_used() {
    let stored_usage = |limit: &str, answer: &'static str| {
        let case = work(limit, "on_limit: continue", ASK).world(move |_| -> Answer { ok(answer) });
        let played = case.play();
        let changes = played.steps.iter().flat_map(|step| &step.changes);
        changes
            .filter(|change| matches!(change, Change::IterationStored { .. }))
            .count()
    };
    let answer = r#"{"usage":{"tokens":10}}"#;
    assert_eq!(stored_usage("{ count: 3 }", answer), 0);
    assert_eq!(stored_usage("{ count: 3, tokens: 100 }", answer), 3);
    assert_eq!(stored_usage("{ count: 3, tokens: 100 }", "{}"), 0);
}
