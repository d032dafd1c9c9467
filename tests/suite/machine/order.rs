//! foreach, parallel, runAfter, if, switch and scope.

use super::play::{Answer, Case, Played, fails, failure, ok};
use windlass_machine::RunStatus;
use windlass_model::model::Fault;

fn each(more: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  each:
    type: foreach
    foreach: \"@inputs('items')\"
    {more}
    actions:
      a: {{ type: activity, inputs: {{ activityType: x, item: \"@item()\" }} }}
"
    ))
    .input(r#"{"items": [5, 4, 3, 2, 1]}"#)
    // Each action answers after the number of seconds in its item.
    .world(|call| {
        let item = call.inputs.get("item").unwrap().as_int().unwrap();
        ok(&format!("\"did {item}\"")).after(item.unsigned_abs())
    })
}

#[test]
fn a_foreach_does_one_after_the_other() {
    let played = each("").play();
    assert_eq!(
        played.requests(),
        ["0 a 1", "5000 a 1", "9000 a 1", "12000 a 1", "14000 a 1"]
    );
    assert_eq!(
        played.output(),
        r#"{"each":[{"a":"did 5"},{"a":"did 4"},{"a":"did 3"},{"a":"did 2"},{"a":"did 1"}]}"#
    );
    assert_eq!(played.keys()[4], "run/each#4/a");
}

#[test]
fn a_foreach_keeps_to_its_concurrency_and_to_the_order_of_its_items() {
    let played = each("concurrency: 3").play();
    assert_eq!(
        played.requests(),
        ["0 a 1", "0 a 1", "0 a 1", "3000 a 1", "4000 a 1"]
    );
    assert_eq!(
        played.output(),
        r#"{"each":[{"a":"did 5"},{"a":"did 4"},{"a":"did 3"},{"a":"did 2"},{"a":"did 1"}]}"#
    );
}

#[test]
fn a_foreach_over_nothing_and_over_no_list() {
    let played = each("").input(r#"{"items": []}"#).play();
    assert_eq!(played.output(), r#"{"each":[]}"#);
    let played = each("").input(r#"{"items": {"a": 1}}"#).play();
    assert_eq!(
        played.error(),
        "expression: foreach `each` needs an array, not object; action each; line 3"
    );
}

#[test]
fn a_foreach_starts_nothing_more_after_a_failure_but_waits_for_the_others() {
    let case = each("concurrency: 2").world(|call| match call.n {
        0 => ok("0").after(5),
        1 => fails("handler").after(1),
        _ => ok("more"),
    });
    let played = case.play();
    assert_eq!(played.calls("a"), 2);
    assert_eq!(played.took_ms(), 5000);
    assert_eq!(
        played.error(),
        "handler: it was handler; action a; iteration 1 of each; line 8"
    );
}

#[test]
fn azures_foreach_does_the_rest_after_a_failure() {
    let played = Case::yaml(
        "
dialect: azure
actions:
  each:
    type: Foreach
    foreach: [0, 1, 2]
    operationOptions: Sequential
    actions:
      a: { type: shell, inputs: { run: x } }
  after:
    type: Compose
    inputs: \"@length(outputs('each'))\"
    runAfter: { each: [Failed] }
",
    )
    .world(|call| if call.n == 0 { fails("shell") } else { ok("1") })
    .play();
    assert_eq!(played.calls("a"), 3);
    assert_eq!(played.status(), RunStatus::Succeeded);
}

#[test]
fn iterations_of_a_foreach_see_their_own_records_and_those_around_them() {
    let played = Case::yaml(
        "
actions:
  before: { type: compose, inputs: 10 }
  each:
    type: foreach
    foreach: [1, 2, 3]
    concurrency: 3
    actions:
      a: { type: activity, inputs: { activityType: x, n: \"@item()\" } }
      inner:
        type: foreach
        foreach: [1, 2]
        actions:
          b: { type: compose, inputs: \"@add(add(outputs('before'), mul(items('each'), 100)), item())\" }
      c: { type: compose, inputs: \"@outputs('a')\" }
",
    )
    .world(|call| {
        let n = call.inputs.get("n").unwrap().as_int().unwrap();
        ok(&n.to_string()).after(u64::try_from(4 - n).unwrap())
    })
    .play();
    assert_eq!(
        played.output(),
        concat!(
            r#"{"before":10,"each":["#,
            r#"{"a":1,"inner":[{"b":111},{"b":112}],"c":1},"#,
            r#"{"a":2,"inner":[{"b":211},{"b":212}],"c":2},"#,
            r#"{"a":3,"inner":[{"b":311},{"b":312}],"c":3}]}"#
        )
    );
}

#[test]
fn parallel_gives_a_map_of_its_branches() {
    let played = Case::yaml(
        "
actions:
  fork:
    type: parallel
    branches:
      left:
        actions:
          a: { type: shell, run: x }
          b: { type: compose, inputs: \"@outputs('a')\" }
      right: { type: shell, run: x }
  short:
    type: parallel
    actions:
      c: { type: shell, run: x }
      d: { type: compose, inputs: 4 }
",
    )
    .world(|call| ok("1").after(if call.name == "a" { 3 } else { 1 }))
    .play();
    assert_eq!(
        played.output(),
        r#"{"fork":{"left":{"a":1,"b":1},"right":1},"short":{"c":1,"d":4}}"#
    );
    assert_eq!(played.requests(), ["0 a 1", "0 fork.right 1", "3000 c 1"]);
}

#[test]
fn parallel_fails_when_all_its_branches_have_ended() {
    let played = Case::yaml(
        "
actions:
  fork:
    type: parallel
    actions:
      a: { type: shell, run: x }
      b: { type: shell, run: x }
",
    )
    .world(|call| match call.name {
        "a" => fails("shell").after(1),
        _ => ok("1").after(7),
    })
    .play();
    assert_eq!(played.took_ms(), 7000);
    assert_eq!(played.error(), "shell: it was shell; action a; line 6");
}

/// The statuses of the actions of a DAG.
fn statuses(played: &Played, names: &[&str]) -> Vec<&'static str> {
    let root = played.state.cursors.values().next().unwrap();
    let of = |name: &&str| {
        let mut records = root.records.iter();
        let record = records.find(|(id, _)| &*played.names[id.index()] == *name);
        record.map_or("-", |(_, record)| record.status.as_str())
    };
    names.iter().map(of).collect()
}

fn dag(answers: fn(&str) -> Answer) -> Played {
    Case::yaml(
        "
actions:
  a: { type: shell, run: x, runAfter: {} }
  b: { type: shell, run: x, runAfter: {} }
  after_a: { type: shell, run: x, runAfter: { a: [Succeeded] } }
  rescue: { type: shell, run: x, runAfter: { a: [Failed, TimedOut] } }
  both: { type: shell, run: x, runAfter: { after_a: [succeeded, skipped], b: [Succeeded] } }
  skipped_too: { type: shell, run: x, runAfter: { rescue: [Succeeded] } }
",
    )
    .world(move |call| answers(call.name))
    .play()
}

const DAG: [&str; 6] = ["a", "b", "after_a", "rescue", "both", "skipped_too"];

#[test]
fn a_dag_runs_what_may_run_and_skips_the_rest() {
    let played = dag(|name| ok("1").after(if name == "b" { 5 } else { 1 }));
    assert_eq!(
        played.requests(),
        ["0 a 1", "0 b 1", "1000 after_a 1", "5000 both 1"]
    );
    let expected = [
        "Succeeded",
        "Succeeded",
        "Succeeded",
        "Skipped",
        "Succeeded",
        "Skipped",
    ];
    assert_eq!(statuses(&played, &DAG), expected);
    // The skipped leaves depend on a skipped action, which depends on one that succeeded.
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.output(), r#"{"a":1,"b":1,"after_a":1,"both":1}"#);
}

#[test]
fn a_failure_that_a_run_after_takes_care_of_is_none() {
    let played = dag(|name| if name == "a" { fails("shell") } else { ok("1") });
    let expected = [
        "Failed",
        "Succeeded",
        "Skipped",
        "Succeeded",
        "Succeeded",
        "Succeeded",
    ];
    assert_eq!(statuses(&played, &DAG), expected);
    assert_eq!(played.status(), RunStatus::Succeeded);
    let timed_out = dag(|name| match name {
        "a" => failure(Fault::new("timeout", "too slow")),
        _ => ok("1"),
    });
    assert_eq!(statuses(&timed_out, &DAG)[0], "TimedOut");
    assert_eq!(timed_out.status(), RunStatus::Succeeded);
}

#[test]
fn a_failure_that_nothing_takes_care_of_fails_the_run() {
    let played = dag(|name| if name == "b" { fails("shell") } else { ok("1") });
    let expected = [
        "Succeeded",
        "Failed",
        "Succeeded",
        "Skipped",
        "Skipped",
        "Skipped",
    ];
    assert_eq!(statuses(&played, &DAG), expected);
    assert_eq!(played.error(), "shell: it was shell; action b; line 4");
    let played = dag(|name| {
        if name == "rescue" || name == "a" {
            fails("shell")
        } else {
            ok("1")
        }
    });
    assert_eq!(played.error(), "shell: it was shell; action rescue; line 6");
}

#[test]
fn azure_starts_everything_at_once() {
    let played = Case::yaml(
        "
dialect: azure
actions:
  a: { type: shell, inputs: { run: x } }
  b: { type: shell, inputs: { run: x } }
  c: { type: Scope, actions: { d: { type: shell, inputs: { run: x } } } }
",
    )
    .world(|_| ok("1").after(1))
    .play();
    assert_eq!(played.requests(), ["0 a 1", "0 b 1", "0 d 1"]);
    assert_eq!(played.took_ms(), 1000);
}

#[test]
fn if_and_switch() {
    let case = |n: i64| {
        Case::yaml(
            "
variables: { n: \"@inputs('n')\" }
actions:
  small:
    type: if
    condition: \"@less(variables('n'), 2)\"
    actions: { a: { type: compose, inputs: small } }
    else: { actions: { b: { type: compose, inputs: large } } }
  which:
    type: switch
    on: \"@variables('n')\"
    cases:
      1: { type: compose, inputs: one }
      2: { actions: { c: { type: compose, inputs: two }, d: { type: compose, inputs: 2 } } }
    default: { actions: { e: { type: compose, inputs: many } } }
  body: { type: compose, inputs: \"@outputs('which')\" }
",
        )
        .input(&format!("{{\"n\": {n}}}"))
        .play()
        .output()
    };
    assert_eq!(
        case(1),
        r#"{"small":{"a":"small"},"which":"one","body":"one"}"#
    );
    assert_eq!(
        case(2),
        r#"{"small":{"b":"large"},"which":{"c":"two","d":2},"body":{"c":"two","d":2}}"#
    );
    assert_eq!(
        case(3),
        r#"{"small":{"b":"large"},"which":{"e":"many"},"body":{"e":"many"}}"#
    );
}

#[test]
fn what_an_earlier_iteration_did_is_not_in_this_ones_result() {
    let played = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    actions:
      which:
        type: if
        condition: \"@equals(variables('loopIndex'), 0)\"
        actions: { a: { type: compose, inputs: 1 } }
        else: { actions: { b: { type: compose, inputs: 2 } } }
",
    )
    .play();
    assert_eq!(
        played.rows(),
        [
            r#"poll#0 Succeeded false {"which":{"a":1}}"#,
            r#"poll#1 Succeeded false {"which":{"b":2}}"#
        ]
    );
}

#[test]
fn a_scope_that_failed_keeps_what_it_did_and_can_be_handled() {
    let played = Case::yaml(
        "
actions:
  block:
    type: scope
    actions:
      a: { type: compose, inputs: 1 }
      b: { type: shell, run: x }
      c: { type: compose, inputs: 3 }
  after:
    type: compose
    inputs:
      status: \"@actions('block').status\"
      outputs: \"@outputs('block')\"
      error: \"@actions('block').error.message\"
      all: \"@length(result('block'))\"
      b: \"@actions('b').code\"
    runAfter: { block: [Failed] }
outputs: \"@outputs('after')\"
",
    )
    .world(|_| {
        let fault = Fault::new("shell", "exit code 3").code(3);
        failure(fault.output(super::play::json(r#"{"exitCode": 3}"#)))
    })
    .play();
    assert_eq!(
        played.output(),
        r#"{"status":"Failed","outputs":{"a":1,"b":{"exitCode":3}},"error":"exit code 3","all":2,"b":"3"}"#
    );
}

#[test]
fn terminate_in_a_branch_ends_everything() {
    let case = |status: &str| {
        Case::yaml(&format!(
            "
actions:
  fork:
    type: parallel
    branches:
      left:
        actions:
          nap: {{ type: wait, interval: PT1S }}
          stop: {{ type: terminate, inputs: {{ runStatus: {status}, runError: {{ code: E7, message: enough }} }} }}
      right:
        actions:
          poll:
            type: until
            condition: \"@equals(1, 2)\"
            actions: {{ hang: {{ type: shell, run: x }} }}
"
        ))
        .world(|_| Answer::Never)
        .play()
    };
    let played = case("Failed");
    assert_eq!(played.error(), "terminated: enough; action stop; line 9");
    let error = played.outcome().error.as_ref().unwrap();
    assert_eq!(error.fault.code.as_deref(), Some("E7"));
    assert_eq!(played.status(), RunStatus::Failed);
    assert_eq!(played.loops["poll"].ended.unwrap().as_str(), "cancelled");
    assert_eq!(case("Cancelled").status(), RunStatus::Cancelled);
    assert_eq!(case("Succeeded").status(), RunStatus::Succeeded);
}

#[test]
fn terminate_before_the_outputs_can_be_computed() {
    let played = Case::yaml(
        "
actions:
  stop: { type: terminate, inputs: { runStatus: Succeeded } }
  a: { type: shell, run: x }
outputs: { a: \"@outputs('a')\", b: 2 }
",
    )
    .play();
    assert_eq!(played.output(), r#"{"a":null,"b":2}"#);
}
