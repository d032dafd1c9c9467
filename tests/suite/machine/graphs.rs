//! Graphs with goto, catches, and loops as in TEA.

use super::build::{
    call, call_into, compose, condition, graph, loop_while, node, of_graph, set, step, template,
    workflow,
};
use super::play::{Case, fails, failure, json, ok};
use windlass_machine::RunStatus;
use windlass_model::hir::{Block, Keep, Outputs, RetryPolicy, StepKind};
use windlass_model::model::{AssignOp, Backoff, CollectMode, Dialect, Fault, Name};

#[test]
fn a_cycle_runs_until_an_edge_leads_out() {
    let nodes = vec![
        node(call_into("work", "n", AssignOp::Set), &[("", "judge")]),
        node(
            compose("judge", "@variables('n')"),
            &[("@less(variables('n'), 3)", "work"), ("", "after")],
        ),
        node(
            set("after", "done", "@add(variables('n'), 10)"),
            &[("", "")],
        ),
    ];
    let played = of_graph(&[("n", "0")], graph("work", 100, nodes))
        .world(|call| ok(&call.n.to_string()))
        .play();
    assert_eq!(played.output(), r#"{"n":3,"done":13}"#);
    // Each visit is a separate step.
    assert_eq!(
        played.keys(),
        ["run/work", "run/~2/work", "run/~3/work", "run/~4/work"]
    );
}

#[test]
fn the_first_edge_that_holds_is_taken() {
    let nodes = vec![
        node(
            set("a", "x", "1"),
            &[("@equals(1, 2)", "b"), ("@equals(1, 1)", "c"), ("", "b")],
        ),
        node(set("b", "x", "b"), &[("", "")]),
        node(set("c", "x", "c"), &[("", "")]),
    ];
    let played = of_graph(&[], graph("a", 10, nodes)).play();
    assert_eq!(played.output(), r#"{"x":"c"}"#);
}

#[test]
fn a_graph_that_never_ends_is_stopped() {
    let nodes = vec![
        node(set("a", "x", "1"), &[("", "b")]),
        node(set("b", "x", "2"), &[("", "a")]),
    ];
    let played = of_graph(&[], graph("a", 9, nodes)).play();
    assert_eq!(
        played.error(),
        "limit: the graph took 9 steps without reaching its end, the maximum (`max_steps`); it is in a cycle \
         through `b`; action b; line 0"
    );
    let nodes = vec![
        node(set("a", "x", "1"), &[("@equals(1, 2)", "a"), ("", "b")]),
        node(set("b", "x", "2"), &[("", "")]),
    ];
    let played = of_graph(&[], graph("a", 1, nodes)).play();
    let error = played.error();
    assert!(error.contains("(`max_steps`); the next is `b`;"), "{error}");
    assert_eq!(played.status(), RunStatus::Failed);
    // Exactly the maximum is permitted.
    let nodes = vec![
        node(call("a"), &[("@equals(variables('n'), 1)", ""), ("", "b")]),
        node(call_into("b", "n", AssignOp::Set), &[("", "a")]),
    ];
    let played = of_graph(&[("n", "0")], graph("a", 3, nodes))
        .world(|_| ok("1"))
        .play();
    assert_eq!(played.output(), r#"{"n":1}"#);
}

#[test]
fn no_edge_holds() {
    let nodes = vec![node(set("a", "x", "1"), &[("@equals(1, 2)", "")])];
    let played = of_graph(&[], graph("a", 9, nodes)).play();
    assert_eq!(
        played.error(),
        "edge: no edge out of node `a` holds; action a; line 0"
    );
    let nodes = vec![node(set("a", "x", "1"), &[])];
    assert!(
        of_graph(&[], graph("a", 9, nodes))
            .play()
            .error()
            .starts_with("edge: ")
    );
}

#[test]
fn an_empty_graph_ends_at_once() {
    let played = of_graph(&[("x", "1")], graph("", 9, Vec::new())).play();
    assert_eq!(played.output(), r#"{"x":1}"#);
}

#[test]
fn edges_that_lead_nowhere_are_refused() {
    let caps = windlass_machine::program::Caps {
        count: 10,
        timeout: std::time::Duration::MAX,
    };
    let nodes = vec![node(set("a", "x", "1"), &[("", "nowhere")])];
    let workflow = workflow(Dialect::Tea, &[], graph("a", 9, nodes));
    let mistakes =
        windlass_machine::compile::compile(&workflow, Default::default(), caps).unwrap_err();
    assert!(format!("{mistakes:?}").contains("`nowhere` is not a node of this graph"));
}

#[test]
fn a_loop_in_a_graph_that_is_visited_again_starts_over() {
    let body = vec![call_into("work", "n", AssignOp::Set)];
    let nodes = vec![node(
        loop_while("refine", "@less(variables('n'), 100)", 2, body),
        &[("@less(variables('n'), 4)", "refine"), ("", "")],
    )];
    let played = of_graph(&[("n", "0")], graph("refine", 10, nodes))
        .world(|call| ok(&call.n.to_string()))
        .play();
    assert_eq!(played.output(), r#"{"n":5}"#);
    assert_eq!(
        played.keys(),
        [
            "run/refine#0/work",
            "run/refine#1/work",
            "run/~2/refine#0/work",
            "run/~2/refine#1/work",
            "run/~3/refine#0/work",
            "run/~3/refine#1/work",
        ]
    );
    assert_eq!(
        played.loops.keys().collect::<Vec<_>>(),
        ["refine", "~2/refine", "~3/refine"]
    );
}

#[test]
fn a_spent_loop_of_tea_does_not_look_again_and_ends_well() {
    let body = vec![call("work")];
    let nodes = vec![node(
        loop_while("refine", "@equals(1, 1)", 3, body),
        &[("", "")],
    )];
    let played = of_graph(&[], graph("refine", 10, nodes)).play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    let looks = |line: &&String| line.starts_with("LoopIteration");
    assert_eq!(played.story().iter().filter(looks).count(), 3);
    assert_eq!(played.loops["refine"].ended.unwrap().as_str(), "count");
}

#[test]
fn names_of_tea_have_case() {
    let nodes = vec![
        node(set("a", "X", "1"), &[("", "b")]),
        node(set("b", "x", "2"), &[("", "")]),
    ];
    let played = of_graph(&[], graph("a", 9, nodes)).play();
    assert_eq!(played.output(), r#"{"X":"1","x":"2"}"#);
}

#[test]
fn a_map_is_merged_into_the_variables() {
    let nodes = vec![
        node(call_into("a", "", AssignOp::MergeAll), &[("", "b")]),
        node(call_into("b", "", AssignOp::MergeAll), &[("", "")]),
    ];
    let played = of_graph(&[("x", "0"), ("y", "0")], graph("a", 9, nodes))
        .world(|call| match call.name {
            "a" => ok(r#"{"x": 1, "z": [2]}"#),
            _ => ok("5"),
        })
        .play();
    assert_eq!(played.output(), r#"{"x":1,"y":0,"z":[2]}"#);
}

fn catching(
    body: Vec<windlass_model::hir::Step>,
    handler: Vec<windlass_model::hir::Step>,
) -> Block {
    let kind = StepKind::Catch {
        body: Block::Sequence(body),
        error: Name::from("error"),
        handler: Block::Sequence(handler),
    };
    Block::Sequence(vec![step("careful", kind), set("after", "after", "1")])
}

#[test]
fn a_fault_is_caught_with_all_that_is_known_of_it() {
    let body = catching(
        vec![call("a"), call("never")],
        vec![set("handle", "seen", "@variables('error')")],
    );
    let played = of_graph(&[], body)
        .world(|_| {
            let fault = Fault::new("http", "status 404").code(404);
            failure(fault.output(json(r#"{"statusCode":404}"#)))
        })
        .play();
    let error = r#"{"kind":"http","code":"404","message":"status 404","action":"a","output":{"statusCode":404}}"#;
    assert_eq!(
        played.output(),
        format!(r#"{{"error":{error},"seen":{error},"after":"1"}}"#)
    );
    assert_eq!(played.calls("never"), 0);
}

#[test]
fn without_a_fault_nothing_is_handled() {
    let body = catching(vec![call("a")], vec![call("handle")]);
    let played = of_graph(&[], body).play();
    assert_eq!(played.calls("handle"), 0);
    assert_eq!(played.output(), r#"{"after":"1"}"#);
}

#[test]
fn a_handler_that_fails_fails() {
    let body = catching(vec![call("a")], vec![call("handle")]);
    let played = of_graph(&[], body).world(|_| fails("shell")).play();
    assert_eq!(played.error(), "shell: it was shell; action handle; line 0");
}

#[test]
fn a_loop_that_fails_deep_inside_is_caught_outside() {
    let inner = loop_while("inner", "@equals(1, 1)", 5, vec![call("a")]);
    let outer = loop_while("outer", "@equals(1, 1)", 5, vec![inner]);
    let body = catching(vec![outer], vec![call("handle")]);
    let played = of_graph(&[], body)
        .world(|call| {
            if call.name == "a" && call.n == 7 {
                fails("shell")
            } else {
                ok("1")
            }
        })
        .play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(played.calls("a"), 8);
    assert_eq!(played.calls("handle"), 1);
    let ends = ["outer", "outer#1/inner"].map(|path| played.loops[path].ended.unwrap().as_str());
    assert_eq!(ends, ["failed", "failed"]);
}

#[test]
fn a_catch_within_a_retry_counts_the_retrys_attempts() {
    let catch = StepKind::Catch {
        body: Block::Sequence(vec![call("a")]),
        error: Name::from("error"),
        handler: Block::Sequence(vec![call("handle")]),
    };
    let mut block = step(
        "block",
        StepKind::Block(Block::Sequence(vec![step("careful", catch)])),
    );
    block.retry = Some(RetryPolicy {
        is_default: false,
        backoff: Backoff::Fixed {
            interval: std::time::Duration::from_secs(1),
            jitter: windlass_model::model::Jitter::None,
        },
        count: template("@add(1, 1)"),
        on: Vec::new(),
        when: None,
        span: Default::default(),
    });
    let played = of_graph(&[], Block::Sequence(vec![block]))
        .world(|_| fails("shell"))
        .play();
    assert_eq!(
        played.requests(),
        [
            "0 a 1",
            "0 handle 1",
            "1000 a 2",
            "1000 handle 2",
            "2000 a 3",
            "2000 handle 3"
        ]
    );
}

#[test]
fn a_break_out_of_a_graph_ends_the_loop_around_it() {
    let mut inner = call_into("work", "n", AssignOp::Set);
    inner.break_when = Some(condition("@equals(variables('n'), 2)"));
    let nodes = vec![node(inner, &[("", "work")])];
    let block = step("block", StepKind::Block(graph("work", 10, nodes)));
    let outer = loop_while("outer", "@equals(1, 1)", 5, vec![block]);
    let played = of_graph(&[], Block::Sequence(vec![outer]))
        .world(|call| ok(&call.n.to_string()))
        .play();
    assert_eq!(played.output(), r#"{"n":2}"#);
    assert_eq!(played.loops["outer"].ended.unwrap().as_str(), "break");
}

#[test]
fn a_raise_is_a_fault_of_its_own_making() {
    let raise = StepKind::Raise {
        kind: Name::from("refused"),
        message: template("@concat('not ', 'good')"),
    };
    let played = of_graph(&[], Block::Sequence(vec![step("judge", raise)])).play();
    assert_eq!(played.error(), "refused: not good; action judge; line 0");
}

#[test]
fn an_answer_that_cannot_be_assigned_fails_its_action() {
    let body = Block::Sequence(vec![call_into("a", "x", AssignOp::Increment)]);
    let played = of_graph(&[], body).world(|_| ok("\"text\"")).play();
    assert_eq!(
        played.error(),
        "expression: `x` changes by a number, not by \"text\"; action a; line 0"
    );
}

#[test]
fn the_outputs_of_a_graph_are_those_of_its_nodes() {
    let nodes = vec![
        node(compose("a", "1"), &[("", "b")]),
        node(compose("b", "2"), &[("", "")]),
    ];
    let mut built = workflow(Dialect::Canvas, &[], graph("a", 9, nodes));
    built.outputs = Outputs::Actions;
    assert_eq!(Case::hir(&built).play().output(), r#"{"a":"1","b":"2"}"#);
}

#[test]
fn a_response_is_the_output() {
    let reply = step("reply", StepKind::Respond(template("@concat('a', 'b')")));
    let body = Block::Sequence(vec![reply, call("more")]);
    let mut built = workflow(Dialect::Azure, &[], body);
    built.outputs = Outputs::Actions;
    let played = Case::hir(&built).play();
    assert_eq!(played.output(), r#""ab""#);
    assert_eq!(played.calls("more"), 1);
}

#[test]
fn the_first_edge_without_a_condition_is_taken() {
    let took = |edges: &[(&str, &str)]| {
        let nodes = vec![
            node(compose("a", "1"), edges),
            node(set("b", "took", "b"), &[("", "")]),
            node(set("c", "took", "c"), &[("", "")]),
        ];
        of_graph(&[], graph("a", 9, nodes)).play().output()
    };
    assert_eq!(took(&[("", "b"), ("", "c")]), r#"{"took":"b"}"#);
    let later = [("", "b"), ("@equals(1, 1)", "c")];
    assert_eq!(took(&later), r#"{"took":"b"}"#);
    let earlier = [("@equals(1, 1)", "c"), ("", "b")];
    assert_eq!(took(&earlier), r#"{"took":"c"}"#);
}

/// A block that is left by a jump has succeeded, and its output contains what it did.
#[test]
fn a_block_that_is_left_by_a_jump_gives_its_output() {
    let mut inner = compose("inner", "7");
    inner.break_when = Some(condition("@equals(1, 1)"));
    let mut block = step("block", StepKind::Block(Block::Sequence(vec![inner])));
    block.output = Some(template("@variables('result')['inner']"));
    let body = Block::Sequence(vec![loop_while("l", "@equals(1, 1)", 5, vec![block])]);
    let rows = of_graph(&[], body).play().rows();
    assert_eq!(rows, [r#"l#0 Succeeded true {"block":"7"}"#]);
}

/// A branch of one step with the branch's name has that step's output; any other has a map of its steps' outputs.
#[test]
fn branches_give_their_steps_by_name() {
    let mut unnamed = step(
        "hidden",
        StepKind::Compose(template("@json('{\"same\": \"3\"}')")),
    );
    unnamed.anonymous = true;
    let branches = vec![
        ("a".into(), Block::Sequence(vec![compose("a", "1")])),
        ("left".into(), Block::Sequence(vec![compose("b", "2")])),
        // A step without its own name provides its output directly.
        ("same".into(), Block::Sequence(vec![unnamed])),
    ];
    let both = StepKind::Parallel {
        branches,
        isolated: false,
    };
    let body = Block::Sequence(vec![step("both", both)]);
    let mut built = workflow(Dialect::Canvas, &[], body);
    built.outputs = Outputs::Actions;
    let output = Case::hir(&built).play().output();
    let expected = r#"{"both":{"a":"1","left":{"b":"2"},"same":{"same":"3"}}}"#;
    assert_eq!(output, expected);
}

/// The last value is returned alone, even if it is a list.
#[test]
fn what_a_loop_keeps_of_its_iterations() {
    let collected_by = |take: CollectMode| {
        let ask = loop_while("l", "@equals(1, 1)", 3, vec![call("ask")]);
        let StepKind::Loop(mut spec) = ask.kind else {
            unreachable!();
        };
        spec.keep = vec![Keep {
            name: "it".into(),
            take,
            of: "ask".into(),
            value: template("@outputs('ask')"),
        }];
        let mut all = step("l", StepKind::Loop(spec));
        all.output = Some(template("@variables('result')['kept']['it']"));
        let mut built = workflow(Dialect::Canvas, &[], Block::Sequence(vec![all]));
        built.outputs = Outputs::Actions;
        let case = Case::hir(&built).world(|call| ok(&format!("[{}]", call.n)));
        case.play().output()
    };
    assert_eq!(collected_by(CollectMode::First), r#"{"l":[0]}"#);
    assert_eq!(collected_by(CollectMode::Last), r#"{"l":[2]}"#);
    assert_eq!(collected_by(CollectMode::All), r#"{"l":[[0],[1],[2]]}"#);
}

/// A cycle without a request does not delay other runs: it continues in the next transition.
#[test]
fn a_transition_goes_through_so_many_states_and_no_more() {
    let nodes = vec![
        node(set("a", "x", "1"), &[("", "b")]),
        node(set("b", "x", "2"), &[("", "a")]),
    ];
    let played = of_graph(&[], graph("a", 12_000, nodes)).play();
    assert!(played.error().contains("12000 steps"), "{}", played.error());
    let most = played.steps.iter().map(|step| step.changes.len()).max();
    assert!(played.steps.len() >= 3, "{}", played.steps.len());
    assert!(most.unwrap() < 50_000, "{most:?}");
}
