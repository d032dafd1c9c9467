//! Faults in expressions and variables, and the places that they name.

use super::build::{call_into, of_graph};
use super::play::{Answer, Case, ok};
use windlass_model::hir::Block;
use windlass_model::model::{AssignOp, Status};

fn error(text: &str) -> String {
    Case::yaml(text).play().error()
}

#[test]
fn a_fault_names_its_action_its_iteration_and_its_line() {
    assert_eq!(
        error("actions:\n  a: { type: compose, inputs: \"@div(1, 0)\" }\n"),
        "expression: `div` divides by zero in `@div(1, 0)`; action a; line 2"
    );
    let nested = error(
        "
actions:
  outer:
    type: until
    condition: \"@equals(variables('loopIndex'), 3)\"
    actions:
      each:
        type: foreach
        foreach: [4, 2, 0]
        actions:
          inner:
            type: doUntil
            condition: \"@equals(1, 1)\"
            actions:
              a: { type: compose, inputs: \"@div(1, sub(item(), mul(variables('outer_loopIndex'), 2)))\" }
",
    );
    assert!(
        nested.starts_with("expression: `div` divides by zero"),
        "{nested}"
    );
    assert!(
        nested.ends_with("action a; iteration 0 of outer#0/each#2/inner; line 15"),
        "{nested}"
    );
    let of_a_foreach = error(
        "
actions:
  outer:
    type: until
    condition: \"@equals(variables('loopIndex'), 3)\"
    actions:
      each:
        type: foreach
        foreach: [4, 2, 0]
        actions:
          a: { type: compose, inputs: \"@div(1, item())\" }
",
    );
    assert!(
        of_a_foreach.ends_with("action a; iteration 2 of outer#0/each; line 11"),
        "{of_a_foreach}"
    );
}

#[test]
fn a_fault_in_a_condition_of_an_if_is_the_ifs() {
    let fault = error(
        "
actions:
  which:
    type: if
    condition: \"@less('a', 1)\"
    actions: { a: { type: compose, inputs: 1 } }
",
    );
    assert!(fault.ends_with("; action which; line 3"), "{fault}");
}

#[test]
fn an_initial_value_that_cannot_be_computed_is_nobodys_action() {
    assert_eq!(
        error(
            "variables: { a: 1, b: \"@div(1, 0)\" }\nactions: { x: { type: compose, inputs: 1 } }"
        ),
        "expression: variable `b`: `div` divides by zero in `@div(1, 0)`; line 1"
    );
}

#[test]
fn outputs_that_cannot_be_computed_fail_the_run() {
    let fault = error("actions: { x: { type: compose, inputs: 1 } }\noutputs: \"@div(1, 0)\"");
    assert_eq!(
        fault,
        "expression: outputs: `div` divides by zero in `@div(1, 0)`; line 2"
    );
}

/// The same if an action deep inside ends the run; nothing retries it then.
#[test]
fn an_output_that_cannot_be_computed_is_reported_by_its_own_name_and_place() {
    for ends in [
        "x: { type: compose, inputs: 1 }",
        "x: { type: scope, retry: { type: fixed, count: 2, interval: PT1S }, actions: { y: { type: terminate, runStatus: Succeeded } } }",
        "x: { type: until, condition: \"@false\", actions: { y: { type: terminate, runStatus: Succeeded } } }",
    ] {
        let text = format!(
            "actions:\n  {ends}\noutputs:\n  good: 1\n  bad: \"@div(1, 0)\"\n  worse: \"@div(2, 0)\""
        );
        assert_eq!(
            error(&text),
            "expression: output `bad`: `div` divides by zero in `@div(1, 0)`; line 5",
            "{ends}"
        );
    }
}

fn variable(initial: &str, action: &str) -> Case {
    Case::yaml(&format!(
        "
variables: {initial}
actions:
  a: {action}
outputs: {{ all: \"@variables('x')\", output: \"@outputs('a')\" }}
"
    ))
}

#[test]
fn variables_change() {
    let gives = |initial: &str, action: &str| variable(initial, action).play().output();
    let cases = [
        (
            "{ x: 1 }",
            "{ type: setVariable, name: x, value: \"@add(variables('x'), 1)\" }",
            "2",
            "2",
        ),
        (
            "{ x: 1 }",
            "{ type: incrementVariable, name: X, value: 4 }",
            "5",
            "5",
        ),
        ("{ x: 1 }", "{ type: decrementVariable, name: x }", "0", "0"),
        (
            "{ x: 1 }",
            "{ type: incrementVariable, name: x, value: 0.5 }",
            "1.5",
            "1.5",
        ),
        (
            "{ x: \"a\" }",
            "{ type: appendToStringVariable, name: x, value: b }",
            "\"ab\"",
            "\"b\"",
        ),
        (
            "{ x: \"a\" }",
            "{ type: appendToStringVariable, name: x, value: 3 }",
            "\"a3\"",
            "\"3\"",
        ),
        (
            "{ x: [1] }",
            "{ type: appendToArrayVariable, name: x, value: [2] }",
            "[1,[2]]",
            "[2]",
        ),
        (
            "{ y: 0 }",
            "{ type: appendToArrayVariable, name: x, value: 2 }",
            "[2]",
            "2",
        ),
        (
            "{ y: 0 }",
            "{ type: appendToStringVariable, name: x, value: 2 }",
            "\"2\"",
            "\"2\"",
        ),
        (
            "{ y: 0 }",
            "{ type: incrementVariable, name: x, value: 2 }",
            "2",
            "2",
        ),
        (
            "{ x: null }",
            "{ type: appendToArrayVariable, name: x, value: 2 }",
            "[2]",
            "2",
        ),
        (
            "{ y: 0 }",
            "{ type: setVariable, name: x, value: { a: 1 } }",
            "{\"a\":1}",
            "{\"a\":1}",
        ),
    ];
    for (initial, action, all, output) in cases {
        assert_eq!(
            gives(initial, action),
            format!("{{\"all\":{all},\"output\":{output}}}"),
            "{initial} {action}"
        );
    }
}

#[test]
fn variables_that_cannot_change_so() {
    let fault = |initial: &str, action: &str| variable(initial, action).play().error();
    let max = i64::MAX;
    let cases = [
        (
            format!("{{ x: {max} }}"),
            "{ type: incrementVariable, name: x }",
            "variable `x` would leave the range of numbers",
        ),
        (
            format!("{{ x: -{max} }}"),
            "{ type: decrementVariable, name: x, value: 2 }",
            "variable `x` would leave the range of numbers",
        ),
        (
            "{ x: 1.5e308 }".into(),
            "{ type: incrementVariable, name: x, value: 1.5e308 }",
            "variable `x` would leave the range of numbers",
        ),
        (
            "{ x: a }".into(),
            "{ type: incrementVariable, name: x }",
            "variable `x` is not a number but string",
        ),
        (
            "{ x: 1 }".into(),
            "{ type: incrementVariable, name: x, value: \"@string('b')\" }",
            "`x` changes by a number, not by \"b\"",
        ),
        (
            "{ x: 1 }".into(),
            "{ type: appendToArrayVariable, name: x, value: 1 }",
            "variable `x` is not an array but integer",
        ),
        (
            "{ x: [1] }".into(),
            "{ type: appendToStringVariable, name: x, value: 1 }",
            "variable `x` is not a string but array",
        ),
    ];
    for (initial, action, message) in cases {
        assert_eq!(
            fault(&initial, action),
            format!("expression: {message}; action a; line 4"),
            "{initial} {action}"
        );
    }
}

#[test]
fn azure_wants_its_variables_initialized() {
    // A file that does this is refused, but the same can be reached in another way.
    let mut workflow = super::play::read(
        "
actions:
  a: { type: appendToArrayVariable, name: x, value: 1 }
",
    );
    workflow.dialect = windlass_model::model::Dialect::Azure;
    workflow.rules = windlass_formats::rules(workflow.dialect);
    assert_eq!(
        Case::hir(&workflow).play().error(),
        "expression: variable `x` is not initialized; action a; line 3"
    );
}

#[test]
fn an_output_is_what_a_variable_was_then() {
    let played = Case::yaml(
        "
variables: { x: 0 }
actions:
  one: { type: setVariable, name: x, value: 1 }
  two: { type: incrementVariable, name: x }
outputs: [\"@outputs('one')\", \"@outputs('two')\", \"@variables('x')\"]
",
    )
    .play();
    assert_eq!(played.output(), "[1,2,2]");
}

#[test]
fn values_that_nest_too_deep_are_refused() {
    let fault = error(
        "
variables: { x: 1 }
actions:
  deeper:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 500 }
    actions:
      a: { type: setVariable, name: x, value: [\"@variables('x')\"] }
",
    );
    assert!(fault.contains("nests deeper than"), "{fault}");
}

#[test]
fn results_of_loops_nest_as_deep_as_they_may() {
    // 24 nested loops around a deeply nested value: what is stored can be read.
    let mut text = String::from("actions:\n");
    for depth in 0..24 {
        let pad = " ".repeat(2 + depth * 4);
        text += &format!(
            "{pad}l{depth}:\n{pad}  type: doUntil\n{pad}  condition: \"@equals(1, 1)\"\n{pad}  actions:\n"
        );
    }
    let value = format!("{}{}", "[".repeat(80), "]".repeat(80));
    text += &format!("{}a: {{ type: shell, run: x }}\n", " ".repeat(98));
    let played = Case::yaml(&text).world(move |_| ok(&value)).play();
    let error = played.error();
    let message = "too_large: the results nest deeper than 96 levels in all";
    assert!(error.starts_with(message), "{error}");
}

/// Enough values to distinguish a seed of eight bytes from one of a single byte.
#[test]
fn random_numbers_differ_from_step_to_step() {
    let played = Case::yaml(
        "
variables: { seen: [] }
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 50)\"
    actions:
      a: { type: appendToArrayVariable, name: seen, value: \"@guid()\" }
      b: { type: appendToArrayVariable, name: seen, value: \"@guid()\" }
outputs: \"@variables('seen')\"
",
    )
    .play();
    let output = super::play::json(&played.output());
    let mut seen: Vec<String> = output
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.to_json())
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 100, "{seen:?}");
}

#[test]
fn a_wait_that_is_none() {
    let fault = error("actions: { a: { type: wait, interval: \"@string('soon')\" } }");
    assert!(
        fault.starts_with("expression: a wait must be a duration such as 30s"),
        "{fault}"
    );
    let played = Case::yaml(
        "
actions:
  a: { type: wait, until: \"2023-11-14T22:14:20Z\" }
  b: { type: wait, until: \"2000-01-01T00:00:00Z\" }
  c: { type: wait, interval: { count: \"@add(1, 1)\", unit: minutes } }
",
    )
    .world(|_| Answer::Never)
    .play();
    assert_eq!(played.took_ms(), 60_000 + 120_000);
}

/// The order in which an append is repeated after a crash, when it was requested before another append had ended.
#[test]
fn an_append_that_did_not_know_of_the_last_one_is_a_fault() {
    let loom = "actions:\n\
                \x20 both:\n\
                \x20   type: parallel\n\
                \x20   actions:\n\
                \x20     a: { type: appendFile, path: x, row: 1 }\n\
                \x20     b: { type: appendFile, path: x, row: 1 }\n";
    let tea = "name: t\nnodes:\n\
               \x20 - { name: a, uses: appendFile, with: { path: x, row: 1 } }\n\
               \x20 - { name: b, uses: appendFile, with: { path: x, row: 1 } }\n\
               edges:\n\
               \x20 - { from: __start__, to: a }\n\
               \x20 - { from: a, to: b }\n\
               \x20 - { from: b, to: __end__ }\n";
    for text in [loom, tea] {
        let unknowing = Case::yaml(text).world(|_| {
            ok(
                r#"{"path": "x", "length": 2, "rows": 1, "file": "/x", "from": null,
                "files": {"x": "/x", "/x": 2}}"#,
            )
        });
        let error = unknowing.play().error();
        assert!(error.contains("at the same time"), "{error}");
    }
    // An append that knew of the last one is not a fault.
    let knowing = Case::yaml(tea).world(|call| {
        let known = call.inputs.get("files").and_then(|files| files.get("/x"));
        let from = known.map_or(String::from("null"), windlass_expression::Value::to_json);
        ok(&format!(
            r#"{{"path": "x", "length": 2, "rows": 1, "file": "/x", "from": {from},
                "files": {{"x": "/x", "/x": 2}}}}"#
        ))
    });
    assert_eq!(
        knowing.play().state.outcome.unwrap().status,
        windlass_model::model::Status::Succeeded
    );
}

#[test]
fn a_call_whose_answer_cannot_be_assigned_has_failed() {
    let body = Block::Sequence(vec![call_into("ask", "n", AssignOp::Increment)]);
    let case = of_graph(&[("n", "1")], body).world(|_| ok("\"many\""));
    let played = case.play();
    assert!(played.error().contains("`n` changes by a number"));
    let root = played.state.cursors.values().next().unwrap();
    let record = root.records.values().next().unwrap();
    assert_eq!(record.status, Status::Failed);
    assert!(record.error.is_some());
}

/// Exact numbers stay exact when added and subtracted, and fractions work in both directions.
#[test]
fn variables_change_by_exact_numbers_and_by_fractions() {
    let gives = |first: &str, op: &str, by: &str| {
        let case = Case::yaml(&format!(
            "
variables: {{ x: 0 }}
actions:
  a: {{ type: setVariable, name: x, value: \"@{first}\" }}
  b: {{ type: {op}Variable, name: x, value: \"@{by}\" }}
outputs: \"@string(variables('x'))\"
"
        ));
        case.play().output()
    };
    assert_eq!(
        gives("decimal('0.1')", "increment", "decimal('0.2')"),
        "\"0.3\""
    );
    assert_eq!(
        gives("decimal('0.3')", "decrement", "decimal('0.1')"),
        "\"0.2\""
    );
    assert_eq!(gives("7", "decrement", "decimal('0.1')"), "\"6.9\"");
    // With floats the result would be 0.09999999999999998.
    assert_eq!(gives("1", "decrement", "decimal('0.9')"), "\"0.1\"");
    assert_eq!(
        gives("float('2.5')", "decrement", "float('0.25')"),
        "\"2.25\""
    );
    assert_eq!(
        gives("float('2.5')", "increment", "float('0.25')"),
        "\"2.75\""
    );
}
