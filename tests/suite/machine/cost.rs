//! What a checkpoint costs: the size of what changed, never the size of the whole state.

use super::play::{Case, ok};
use std::sync::Arc;
use std::time::Instant;
use windlass_expression::{Budget, Env, Lookup, Value};
use windlass_machine::{Change, IterationRow, Output, environment};

fn size<T: bincode::Encode>(value: &T) -> usize {
    let config = bincode::config::standard();
    bincode::encode_to_vec(value, config).unwrap().len()
}

/// A file with a loop of `count` iterations around these actions, within the limits of a file.
fn counting(count: u32, actions: &str) -> Case {
    Case::yaml(&format!(
        "
variables: {{ seen: [], text: \"\" }}
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), {count})\"
    limit: {{ count: {count} }}
    actions:
{actions}
outputs: {{ seen: \"@length(variables('seen'))\", text: \"@length(variables('text'))\" }}
"
    ))
}

const APPENDS: &str = "
      a: { type: shell, run: x }
      b: { type: appendToArrayVariable, name: seen, value: \"@outputs('a')\" }
      c: { type: appendToStringVariable, name: text, value: \"0123456789\" }
";

#[test]
fn an_append_costs_what_is_appended() {
    let played = counting(300, APPENDS)
        .world(|_| ok("\"0123456789\""))
        .play();
    assert_eq!(played.output(), r#"{"seen":300,"text":3000}"#);
    let bytes: Vec<usize> = played
        .steps
        .iter()
        .map(|step| size(&step.changes))
        .collect();
    let (early, late) = (bytes[10], bytes[bytes.len() - 10]);
    // Only its numbers grow by a byte.
    assert!(
        late <= early + 12,
        "a step took {early} bytes, later {late}"
    );
    let rows: Vec<usize> = played.iterations.iter().map(size::<IterationRow>).collect();
    assert!(rows[299] <= rows[0] + 12, "{} {}", rows[0], rows[299]);
    assert!(
        played.rows()[299].ends_with(r#"{"a":"0123456789","b":"0123456789","c":"0123456789"}"#)
    );
}

#[test]
fn reading_a_body_copies_nothing() {
    let body = format!(
        r#"{{"body":{{"status":"complete","note":"{}"}}}}"#,
        "n".repeat(10_000)
    );
    let case = Case::yaml("actions: { get: { type: shell, run: x } }").world(move |_| ok(&body));
    let played = case.play();
    let (id, cursor) = played.state.cursors.first_key_value().unwrap();
    let budget = Budget::default();
    let env = environment(&case.program, &played.state, *id, played.now, &budget);
    let record = cursor.records.first_key_value().unwrap().1;
    let Lookup::Found(seen) = env.action_outputs("get") else {
        panic!("it has run");
    };
    match (&record.output, &seen) {
        (Output::Value(Value::Object(stored)), Value::Object(seen)) => {
            assert!(Arc::ptr_eq(stored, seen), "the outputs were copied");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_is_stored_once() {
    let large = format!("\"{}\"", "x".repeat(10_000));
    let played = counting(
        3,
        "
      a: { type: shell, run: x }
      b: { type: setVariable, name: last, value: \"@outputs('a')\" }
      c: { type: scope, actions: { d: { type: scope, actions: { e: { type: shell, run: x } } } } }
",
    )
    .world(move |_| ok(&large))
    .play();
    let changes: Vec<Change> = played
        .steps
        .iter()
        .flat_map(|step| step.changes.clone())
        .collect();
    // Two answers per iteration; one of them is assigned to a variable as well.
    let copies = size(&changes) / 10_000;
    assert_eq!(copies, 9, "{copies} copies of what three iterations gave");
}

#[test]
fn one_commit_an_iteration_of_one_effect() {
    for delay in ["", "    delay: PT1S\n"] {
        let text = format!("      a: {{ type: shell, run: x }}\n{delay}");
        let played = counting(100, &text).play();
        let all = played.steps.len();
        let expected = if delay.is_empty() { 101 } else { 200 };
        assert_eq!(all, expected, "{delay:?}");
    }
}

#[test]
fn a_body_without_effects_has_a_checkpoint_an_iteration() {
    let played = counting(50, "      a: { type: compose, inputs: 1 }\n").play();
    assert_eq!(played.steps.len(), 51 - 1);
    let ended = |step: &&super::play::Step| {
        let ended = |change: &&Change| matches!(change, Change::IterationEnded { .. });
        step.changes.iter().filter(ended).count() == 1
    };
    assert_eq!(played.steps.iter().filter(ended).count(), 50);
}

#[test]
fn items_that_leave_much_have_a_checkpoint_each_and_others_share_some() {
    let ended = |inputs: &str| {
        let text = format!(
            "
actions:
  each:
    type: foreach
    foreach: \"@range(0, 120)\"
    concurrency: 8
    actions: {{ a: {{ type: compose, inputs: {inputs} }} }}
"
        );
        let played = Case::yaml(&text).play();
        let ended = |change: &&Change| matches!(change, Change::BranchEnded { .. });
        let steps = played.steps.iter();
        let counts = steps.map(|step| step.changes.iter().filter(ended).count());
        counts.filter(|count| *count > 0).collect::<Vec<_>>()
    };
    assert_eq!(ended("\"@item()\""), [50, 50, 20]);
    let long = "x".repeat(2_000);
    assert_eq!(ended(&long), [1; 120]);
}

#[test]
fn a_hundred_thousand_iterations_stay_flat() {
    for body in [
        "      a: { type: setVariable, name: n, value: \"@variables('loopIndex')\" }\n",
        "      a: { type: shell, run: x }\n",
    ] {
        let mut case = counting(100_000, body);
        case.quick = true;
        let played = case.play();
        assert_eq!(played.loops["poll"].iteration, 100_000);
        let bytes = size(&played.state);
        assert!(bytes < 2_000, "the state takes {bytes} bytes");
    }
}

/// Not a test of correctness: measures one transition. `cargo test --test suite cost -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
#[allow(clippy::disallowed_methods)] // A stopwatch.
fn how_long_a_transition_takes() {
    let many: String = (0..400)
        .map(|n| format!("  s{n}: {{ type: compose, inputs: {n} }}\n"))
        .collect();
    let polling = "
  poll:
    type: until
    condition: \"@equals(body('check').state, 'done')\"
    limit: { count: 100000, timeout: PT10H }
    actions:
      check: { type: shell, run: x }
";
    for (what, before) in [("alone", ""), ("after 400 actions", &*many)] {
        let mut case = Case::yaml(&format!("actions:\n{before}{}", &polling[1..])).world(|call| {
            ok(if call.n == 99_999 {
                r#"{"state": "done"}"#
            } else {
                r#"{"state": "busy"}"#
            })
        });
        case.quick = true;
        let begin = Instant::now();
        let played = case.play();
        let each = begin.elapsed() / 100_000;
        assert_eq!(played.loops["poll"].iteration, 100_000);
        println!("{what}: {each:?} a transition, the test's own part included");
    }
}

/// Python returns the whole state. Of a list that has grown, only the new elements are stored.
#[test]
fn a_list_that_a_script_appends_to_costs_what_is_appended() {
    let played = Case::yaml(
        "
name: grows
initial_state: { seen: [] }
nodes:
  - name: grow
    type: while_loop
    max_iterations: 100
    condition: \"true\"
    body:
      - { name: work, run: \"state['seen'].append('0123456789')\" }
",
    )
    .world(|call| {
        let seen = call.inputs.get("globals").unwrap().get("state").unwrap();
        let mut list = seen.get("seen").unwrap().as_array().unwrap().to_vec();
        list.push(Value::from("0123456789"));
        let state = Value::from_pairs([("seen", Value::array(list))]).to_json();
        // The executor separates the other members of the worker's answer.
        ok(&format!(
            r#"{{"result": null, "returned": false, "state": {state}, "locals": {{}}}}"#
        ))
    })
    .play();
    let appended = |change: &&Change| {
        let text = format!("{change:?}");
        text.starts_with("VariableChanged") && text.contains("ElementAppended")
    };
    let changes = played.steps.iter().flat_map(|step| &step.changes);
    // All but the first, because nothing existed before it.
    assert_eq!(changes.filter(appended).count(), 99);
}

/// The size by which the store decides when to write a snapshot, and when a run is too large.
#[test]
fn a_state_weighs_what_it_holds() {
    let weighs = |length: usize| {
        let text = "t".repeat(length);
        let text = format!("actions: {{ a: {{ type: compose, inputs: {text} }} }}");
        windlass_machine::hosted::state_size(&Case::yaml(&text).play().state).unwrap()
    };
    let (short, long) = (weighs(10), weighs(10_010));
    // Once as the action's output, and once as the run's output.
    assert!((20_000..20_100).contains(&(long - short)), "{short} {long}");
}
