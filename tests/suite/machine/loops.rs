//! until, while and doUntil: when they check the condition, how often they run, and what they report and return.

use super::play::{Answer, Case, fails, ok, read};
use windlass_machine::RunStatus;
use windlass_model::hir::{Block, StepKind};

const KINDS: [&str; 4] = ["until", "while", "doUntil", "Until"];

/// A loop that calls `check` until it answers `done`. `Until` is Azure's.
fn polling(kind: &str, more: &str) -> Case {
    let done = "equals(outputs('check')?['state'], 'done')";
    let condition = match kind {
        "while" => format!("condition: '@not({})'", done.replace('\'', "''")),
        "Until" => format!("expression: \"@{done}\""),
        _ => format!("condition: \"@{done}\""),
    };
    let dialect = if kind == "Until" { "azure" } else { "loom" };
    Case::yaml(&format!(
        "
dialect: {dialect}
actions:
  poll:
    type: {kind}
    {condition}
    {more}
    actions:
      check: {{ type: shell, inputs: {{ run: x }} }}
"
    ))
}

fn busy() -> Answer {
    ok(r#"{"state":"busy"}"#)
}

fn done() -> Answer {
    ok(r#"{"state":"done"}"#)
}

#[test]
fn a_count_of_seven_runs_the_body_seven_times() {
    for kind in KINDS {
        let case = polling(kind, "limit: { count: 7 }").world(|_| busy());
        let played = case.play();
        assert_eq!(played.calls("check"), 7, "{kind}");
        if kind == "Until" {
            // Azure continues after a limit, and reports the limit.
            assert_eq!(
                played.output(),
                r#"{"poll":{"iterations":7,"status":"Succeeded","reason":"count","result":{"check":{"state":"busy"}}}}"#
            );
            continue;
        }
        assert_eq!(
            played.error(),
            "limit: loop `poll` was not done after its 7 iterations; action poll; line 4",
            "{kind}"
        );
    }
}

#[test]
fn the_last_allowed_iteration_may_be_the_one_that_is_done() {
    for kind in KINDS {
        let case = polling(kind, "limit: { count: 7 }");
        let case = case.world(|call| if call.n == 6 { done() } else { busy() });
        let played = case.play();
        assert_eq!(played.calls("check"), 7, "{kind}");
        assert_eq!(
            played.output(),
            r#"{"poll":{"iterations":7,"status":"Succeeded","reason":"condition","result":{"check":{"state":"done"}}}}"#,
            "{kind}"
        );
    }
}

#[test]
fn a_count_of_nothing_runs_nothing() {
    for kind in KINDS {
        let case = polling(kind, "limit: { count: \"@int('0')\" }").world(|_| done());
        let played = case.play();
        assert_eq!(played.calls("check"), 0, "{kind}");
        if kind == "Until" {
            assert_eq!(
                played.output(),
                r#"{"poll":{"iterations":0,"status":"Succeeded","reason":"count","result":{}}}"#
            );
        } else {
            assert_eq!(
                played.error(),
                "limit: loop `poll` was not done after its 0 iterations; action poll; line 4"
            );
        }
    }
}

/// A loop over a variable that is `true` at the start.
fn over_a_variable(kind: &str, condition: &str) -> Case {
    Case::yaml(&format!(
        "
variables: {{ ready: true }}
actions:
  poll:
    type: {kind}
    condition: \"{condition}\"
    limit: {{ count: 3 }}
    actions:
      check: {{ type: shell, run: x }}
"
    ))
}

#[test]
fn a_condition_that_holds_at_once() {
    let ready = "@variables('ready')";
    let counts = [
        over_a_variable("until", ready).play().calls("check"),
        over_a_variable("while", "@not(variables('ready'))")
            .play()
            .calls("check"),
        over_a_variable("doUntil", ready).play().calls("check"),
    ];
    assert_eq!(counts, [0, 0, 1]);
    let never_ran = over_a_variable("until", ready).play();
    assert_eq!(
        never_ran.output(),
        r#"{"poll":{"iterations":0,"status":"Succeeded","reason":"condition","result":{}}}"#
    );
}

#[test]
fn a_computed_count_beyond_the_cap_and_counts_that_are_none() {
    let count = |text: &str| polling("until", &format!("limit: {{ count: \"{text}\" }}"));
    assert_eq!(
        count("@sub(1, 2)").play().error(),
        "expression: the count of a loop must be a whole number from 0, not -1; action poll; line 4"
    );
    assert_eq!(
        count("@concat('a')").play().error(),
        "expression: the count of a loop must be a whole number from 0, not \"a\"; action poll; line 4"
    );
    let mut case = count("@add(2, 2)");
    case.program.caps.count = 3;
    assert_eq!(
        case.play().error(),
        "limit: loop `poll` asks for 4 iterations; the cap is 3; action poll; line 4"
    );
}

#[test]
fn the_delay_lies_between_iterations_only() {
    for kind in KINDS {
        let case = polling(kind, "delay: PT10S");
        let case = case.world(|call| if call.n == 2 { done() } else { busy() });
        let played = case.play();
        assert_eq!(
            played.requests(),
            ["0 check 1", "10000 check 1", "20000 check 1"],
            "{kind}"
        );
        assert_eq!(played.took_ms(), 20_000, "{kind}");
    }
}

#[test]
fn a_delay_may_be_computed_again_each_time() {
    let case = polling(
        "until",
        "delay: \"@{concat('PT', string(variables('loopCount')), 'S')}\"",
    );
    let played = case
        .world(|call| if call.n == 3 { done() } else { busy() })
        .play();
    assert_eq!(
        played.requests(),
        ["0 check 1", "2000 check 1", "5000 check 1", "9000 check 1"]
    );
}

#[test]
fn a_failed_body_fails_the_loop() {
    for kind in ["until", "while", "doUntil"] {
        let case = polling(kind, "limit: { count: 3 }");
        let played = case
            .world(|call| {
                if call.n == 1 {
                    fails("handler")
                } else {
                    busy()
                }
            })
            .play();
        assert_eq!(played.calls("check"), 2, "{kind}");
        assert_eq!(
            played.error(),
            "handler: it was handler; action check; iteration 1 of poll; line 9",
            "{kind}"
        );
        let row = &played.loops["poll"];
        assert_eq!(row.ended.unwrap().as_str(), "failed");
        assert_eq!(played.rows()[1].split(' ').nth(1), Some("Failed"));
    }
}

#[test]
fn azure_continues_after_a_failed_iteration_and_the_last_one_counts() {
    let case = polling("Until", "limit: { count: 3 }");
    let played = case
        .world(|call| match call.n {
            0 | 1 => fails("handler"),
            _ => done(),
        })
        .play();
    assert_eq!(played.calls("check"), 3);
    assert_eq!(played.status(), RunStatus::Succeeded);
    let case = polling("Until", "limit: { count: 3 }");
    let played = case
        .world(|call| {
            if call.n == 2 {
                fails("handler")
            } else {
                busy()
            }
        })
        .play();
    assert_eq!(played.calls("check"), 3);
    assert_eq!(
        played.error(),
        "iteration: the last iteration of loop `poll` failed: `check`: it was handler; action poll; line 4"
    );
}

#[test]
fn azure_does_not_survive_a_condition_that_cannot_be_computed() {
    let played = polling("Until", "limit: { count: 3 }")
        .world(|_| ok("[]"))
        .play();
    assert_eq!(played.calls("check"), 1);
    assert!(
        played.error().starts_with("expression: ") && played.error().contains("outputs('check')"),
        "{}",
        played.error()
    );
}

#[test]
fn a_fault_in_a_condition_is_the_loops() {
    for (kind, iterations) in [("until", 0), ("while", 0), ("doUntil", 1)] {
        let played = over_a_variable(kind, "@less('a', 1)").play();
        assert!(
            played.error().starts_with("expression: "),
            "{}",
            played.error()
        );
        assert_eq!(played.loops["poll"].iteration, iterations, "{kind}");
        assert_eq!(played.loops["poll"].ended.unwrap().as_str(), "failed");
        // The end is reported once.
        let is_poll_end = |line: &&String| line.starts_with("ActionEnded node_name=\"poll\"");
        assert_eq!(
            played.story().iter().filter(is_poll_end).count(),
            1,
            "{kind}"
        );
    }
}

#[test]
fn what_has_not_run_reads_as_null_in_a_condition_and_as_a_mistake_elsewhere() {
    let played = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(body('check').state, 'done')\"
    actions:
      look: { type: compose, inputs: \"@body('check')\" }
      check: { type: shell, run: x }
",
    )
    .play();
    assert_eq!(
        played.error(),
        "expression: the action `check` has not run in `@body('check')`; action look; iteration 0 of poll; line 7"
    );
}

#[test]
fn the_variables_of_a_loop() {
    let played = Case::yaml(
        "
actions:
  outer:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    actions:
      inner:
        type: while
        condition: \"@less(variables('loopIndex'), 2)\"
        actions:
          see:
            type: activity
            inputs:
              activityType: see
              index: \"@variables('loopIndex')\"
              count: \"@variables('LOOPCOUNT')\"
              result: \"@variables('loopResult')\"
              outer: \"@variables('outer_loopIndex')\"
              outer_result: \"@variables('outer_loopResult')\"
              jinja: \"{{ loop.index }}/{{ loops.outer.count }}/{{ loop.result }}\"
              indexes: \"@add(iterationIndexes('outer'), iterationIndexes('INNER'))\"
",
    )
    .world(|call| ok(&call.inputs.to_json()))
    .play();
    let seen: Vec<String> = played
        .started
        .iter()
        .map(|one| {
            let inputs = &one.request.inputs;
            ["index", "count", "outer", "jinja", "indexes"]
                .map(|key| inputs.get(key).unwrap().to_json())
                .join(" ")
        })
        .collect();
    assert_eq!(seen.len(), 4);
    assert!(seen[0].starts_with("0 1 0 \"0/1/"), "{}", seen[0]);
    assert!(seen[3].starts_with("1 2 1 \"1/2/"), "{}", seen[3]);
    let result = |place: usize, key: &str| {
        let inputs = &played.started[place].request.inputs;
        inputs.get(key).unwrap().clone()
    };
    // The result of the previous iteration, null at first.
    assert!(result(0, "result").is_null());
    let before = result(1, "result");
    let before = before.get("see").unwrap();
    assert_eq!(before.get("index").unwrap().as_int(), Some(0));
    assert!(result(2, "result").is_null());
    assert!(result(1, "outer_result").is_null());
    let outer = result(2, "outer_result");
    let inner = outer.get("inner").unwrap();
    assert_eq!(inner.get("iterations").unwrap().as_int(), Some(2));
    assert_eq!(inner.get("reason").unwrap().as_str(), Some("condition"));
}

#[test]
fn the_start_time_of_a_loop_stays() {
    let played = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    delay: PT1S
    actions:
      see: { type: compose, inputs: \"@concat(variables('loopStartTime'), ' {{ no }}')\" }
outputs: \"@variables('seen')\"
variables: { seen: [] }
",
    )
    .play();
    assert_eq!(
        played.rows()[0],
        played.rows()[1].replace("poll#1", "poll#0")
    );
}

#[test]
fn what_a_loop_reports() {
    let case = polling("until", "limit: { count: 9 }");
    let played = case
        .world(|call| if call.n == 1 { done() } else { busy() })
        .play();
    assert_eq!(
        played.story(),
        [
            "RunStarted ",
            "LoopStart node_name=\"poll\" path=\"poll\" max_iterations=9",
            "LoopIteration node_name=\"poll\" path=\"poll\" iteration=0 condition_result=false",
            "ActionStarted node_name=\"check\" attempt=1 key=\"run/poll#0/check\" path=\"poll\" iteration=0",
            "ActionEnded node_name=\"check\" status=\"Succeeded\" error=null attempt=1 path=\"poll\" iteration=0",
            "LoopIteration node_name=\"poll\" path=\"poll\" iteration=1 condition_result=false",
            "ActionStarted node_name=\"check\" attempt=1 key=\"run/poll#1/check\" path=\"poll\" iteration=1",
            "ActionEnded node_name=\"check\" status=\"Succeeded\" error=null attempt=1 path=\"poll\" iteration=1",
            "LoopEnd node_name=\"poll\" path=\"poll\" iterations_completed=2 exit_reason=\"condition\"",
            "RunFinished status=\"Succeeded\"",
        ]
    );
    assert_eq!(
        played.rows(),
        [
            r#"poll#0 Succeeded false {"check":{"state":"busy"}}"#,
            r#"poll#1 Succeeded false {"check":{"state":"done"}}"#,
        ]
    );
}

#[test]
fn a_loop_that_checks_afterwards_reports_values_of_the_iteration_before() {
    let case = polling("doUntil", "limit: { count: 9 }");
    let played = case
        .world(|call| if call.n == 1 { done() } else { busy() })
        .play();
    let looks = |line: &String| line.starts_with("LoopIteration");
    let story: Vec<String> = played.story().into_iter().filter(looks).collect();
    assert_eq!(
        story,
        [
            "LoopIteration node_name=\"poll\" path=\"poll\" iteration=0 condition_result=false",
            "LoopIteration node_name=\"poll\" path=\"poll\" iteration=1 condition_result=true",
        ]
    );
    assert_eq!(
        played.rows(),
        [
            r#"poll#0 Succeeded false {"check":{"state":"busy"}}"#,
            r#"poll#1 Succeeded true {"check":{"state":"done"}}"#,
        ]
    );
}

#[test]
fn a_while_reports_its_condition_as_it_was_written() {
    let case = polling("while", "limit: { count: 9 }");
    let played = case.world(|_| done()).play();
    let looks = |line: &String| line.starts_with("LoopIteration");
    let story: Vec<String> = played.story().into_iter().filter(looks).collect();
    assert_eq!(
        story,
        ["LoopIteration node_name=\"poll\" path=\"poll\" iteration=0 condition_result=true",]
    );
}

const CHECK: &str = "check: { type: shell, run: x }";

/// In all ways in which an iteration can end, with and without a check of the condition afterwards.
#[test]
fn an_iteration_is_reported_once() {
    for (kind, more, body, times) in [
        ("until", "limit: { count: 3 }", CHECK, 3),
        ("doUntil", "limit: { count: 3 }", CHECK, 3),
        (
            "doUntil",
            "",
            "check: { type: shell, run: x, break_when: \"@true\" }",
            1,
        ),
        (
            "until",
            "limit: { timeout: PT5S }",
            "hang: { type: wait, interval: PT2S }",
            3,
        ),
        (
            "doUntil",
            "limit: { timeout: PT5S }",
            "hang: { type: wait, interval: PT2S }",
            3,
        ),
        (
            "until",
            "delay: PT2S\n    limit: { timeout: PT5S }",
            CHECK,
            3,
        ),
        (
            "doUntil",
            "",
            "check: { type: compose, inputs: \"@div(1, 0)\" }",
            1,
        ),
    ] {
        let text = format!(
            "
actions:
  poll:
    type: {kind}
    condition: \"@equals(1, 2)\"
    {more}
    actions: {{ {body} }}
"
        );
        let played = Case::yaml(&text).play();
        let lines = played.story().into_iter();
        let iterations: Vec<String> = lines
            .filter(|line| line.starts_with("LoopIteration"))
            .collect();
        assert_eq!(
            iterations.len(),
            times,
            "{kind} {more} {body}: {iterations:#?}"
        );
        for (index, line) in iterations.iter().enumerate() {
            assert!(line.contains(&format!("iteration={index} ")), "{line}");
        }
    }
}

#[test]
fn a_do_until_counts_the_iteration_it_looks_at() {
    for (condition, times) in [
        ("@equals(variables('loopCount'), 3)", 3),
        ("@equals(variables('loopIndex'), 1)", 2),
        ("{{ loop.count == 3 }}", 3),
        ("@equals(iterationIndexes('poll'), 0)", 1),
    ] {
        let case = over_a_variable("doUntil", condition);
        assert_eq!(case.play().calls("check"), times, "{condition}");
    }
}

#[test]
fn loops_nest_five_deep() {
    let mut text = String::from("actions:\n");
    let kinds = ["until", "while", "doUntil", "until", "while"];
    for (depth, kind) in kinds.iter().enumerate() {
        let pad = "  ".repeat(1 + depth * 2);
        let condition = match *kind {
            "while" => "@less(variables('loopIndex'), 2)",
            "doUntil" => "@equals(variables('loopCount'), 2)",
            _ => "@equals(variables('loopIndex'), 2)",
        };
        text += &format!(
            "{pad}l{depth}:\n{pad}  type: {kind}\n{pad}  condition: \"{condition}\"\n{pad}  actions:\n"
        );
    }
    text += &format!("{}call: {{ type: shell, run: x }}\n", "  ".repeat(11));
    let played = Case::yaml(&text).play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.calls("call"), 32);
    let mut keys = played.keys();
    assert_eq!(keys[0], "run/l0#0/l1#0/l2#0/l3#0/l4#0/call");
    assert_eq!(keys[31], "run/l0#1/l1#1/l2#1/l3#1/l4#1/call");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 32, "every request has a key of its own");
}

/// The same if the actions of the body are a sequence, which no format with such loops has now.
#[test]
fn a_condition_that_fails_after_a_failed_iteration_has_the_place_of_its_loop() {
    let mut workflow = read(
        "
actions:
  poll:
    type: doUntil
    condition: \"@equals(div(1, 0), 1)\"
    actions:
      check: { type: shell, run: x }
",
    );
    if let Block::Sequence(steps) = &mut workflow.body
        && let StepKind::Loop(spec) = &mut steps[0].kind
    {
        spec.survives_failure = true;
    }
    let played = Case::hir(&workflow).world(|_| fails("shell")).play();
    let error = played.error();
    let place = "; action poll; iteration 0 of poll; line 3";
    assert!(error.ends_with(place), "{error}");
}
