//! Branches with their own variables (TEA's parallel edges), on virtual time. Each play is repeated with a crash before
//! and after every commit, and reaches the same state with the same requests.

use super::build::{call, compose, of_graph, step};
use super::play::{Answer, Call, Case, fails, json, ok};
use windlass_expression::Value;
use windlass_machine::{Change, Output, RunStatus};
use windlass_model::hir::{Block, Step, StepKind};

const FAN: &str = r#"
name: fan
initial_state: {n: 1, seen: [0], text: a}
nodes:
  - {name: start, uses: setVariable, with: {name: doc, value: "a long document"}}
  - {name: left, uses: shell, with: {run: "left {{ state.n }}"}, output: n}
  - name: twice
    type: while_loop
    max_iterations: 2
    condition: "true"
    body:
      - {name: keep, uses: appendToArrayVariable, with: {name: seen, value: "{{ state.n }}"}}
      - {name: more, uses: incrementVariable, with: {name: n}}
  - {name: script, run: "state['n'] *= 2"}
  - {name: right, uses: shell, with: {run: "right {{ state.n }}"}, output: n}
  - {name: tell, uses: appendToStringVariable, with: {name: text, value: "b{{ state.n }}"}}
  - {name: join, fan_in: true, run: "return {'results': parallel_results}"}
edges:
  - {from: start, to: left}
  - {from: start, to: right}
  - {from: left, to: twice}
  - {from: twice, to: script}
  - {from: script, to: join}
  - {from: right, to: tell}
  - {from: tell, to: join}
  - {from: join, to: __end__}
"#;

/// The shells take ten and five seconds; the scripts are computed here.
fn world(call: &Call<'_>) -> Answer {
    let globals = call.inputs.get("globals");
    let state = globals.and_then(|globals| globals.get("state")).cloned();
    let state = state.unwrap_or_default();
    let script = |result: &str, state: &Value| {
        let state = state.to_json();
        ok(&format!(
            r#"{{"result": {result}, "returned": true, "state": {state}, "locals": {{}}}}"#
        ))
    };
    let run = call.inputs.get("run").and_then(Value::as_str);
    match (call.name, run) {
        ("left", Some("left 1")) => ok("10").after(10),
        ("right", Some("right 1")) => ok("20").after(5),
        ("script", _) => {
            // The other branch's changes to its state are not visible here.
            assert_eq!(state.get("text"), Some(&json(r#""a""#)));
            let n = state.get("n").unwrap().as_int().unwrap();
            let mut changed = state.as_object().unwrap().clone();
            changed.insert("n".into(), Value::Int(n * 2));
            script("{}", &Value::object(changed)).after(3)
        }
        ("join", _) => {
            let results = globals.unwrap().get("parallel_results").unwrap().to_json();
            script(&format!(r#"{{"results": {results}}}"#), &state)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn branches_overlap_and_each_has_its_own_state() {
    let played = Case::yaml(FAN).world(world).play();
    let state = json(&played.output());
    let results = json(
        r#"[{"n": 24, "seen": [0, 10, 11], "text": "a", "doc": "a long document"},
            {"n": 20, "seen": [0], "text": "ab20", "doc": "a long document"}]"#,
    );
    assert_eq!(state.get("results"), Some(&results));
    // Nothing of a branch is merged.
    let own = ["n", "seen", "text"].map(|key| state.get(key).unwrap().to_json());
    assert_eq!(own, ["1", "[0]", r#""a""#]);
    // Both started at the same time; the longer branch takes ten and three seconds.
    let begun = |name: &str| {
        let began = played.started.iter().find(|one| one.name == name);
        began.unwrap().at_ms
    };
    assert_eq!(
        (begun("left"), begun("right"), begun("join")),
        (0, 0, 13_000)
    );
}

#[test]
fn the_journal_has_no_copies_of_the_state() {
    let played = Case::yaml(FAN).world(world).play();
    let mut copies = 0;
    let mut appended = 0;
    for change in played.steps.iter().flat_map(|step| &step.changes) {
        let text = format!("{change:?}");
        match change {
            Change::CursorSpawned(..) => assert!(!text.contains("a long document"), "{text}"),
            Change::VariableChanged { owner: Some(_), .. } => {
                assert!(!text.contains("a long document"), "{text}");
                appended += usize::from(text.contains("ElementAppended"));
            }
            _ => {}
        }
        copies += usize::from(text.contains("a long document"));
    }
    assert_eq!(appended, 2, "an append costs the element");
    // The copies: the first assignment, the final states of the two branches, their list, its part in the inputs and
    // the output of the joining script, and the end.
    assert!(copies <= 10, "{copies}");
}

#[test]
fn a_failure_waits_for_the_other_branch_and_ends_the_run() {
    let played = Case::yaml(FAN)
        .world(|call| match call.name {
            "right" => fails("shell").after(5),
            _ => world(call),
        })
        .play();
    assert_eq!(played.status(), RunStatus::Failed);
    assert!(played.error().contains("right"), "{}", played.error());
    assert_eq!(played.calls("script"), 1, "the other branch is not cut");
    assert_eq!(played.calls("join"), 0);
}

#[test]
fn a_pause_or_an_end_anywhere_in_branches_leaves_nothing() {
    // During a pause, actions in flight continue.
    let mut case = Case::yaml(FAN).world(|call| world(call).after(0));
    case.play_paused_everywhere();
    case.play_cancelled_everywhere();
}

const NESTED: &str = r#"
name: nested
initial_state: {n: 1}
nodes:
  - {name: start}
  - {name: a, uses: setVariable, with: {name: n, value: 2}}
  - {name: a1, uses: incrementVariable, with: {name: n, value: 10}}
  - {name: a2, uses: incrementVariable, with: {name: n, value: 20}}
  - {name: inner, run: "return {'inner': parallel_results}"}
  - {name: b, uses: setVariable, with: {name: n, value: 3}}
  - {name: outer, run: "return {'outer': parallel_results}"}
edges:
  - {from: start, to: a, type: parallel, fan_in: outer}
  - {from: start, to: b, type: parallel, fan_in: outer}
  - {from: a, to: a1, type: parallel, fan_in: inner}
  - {from: a, to: a2, type: parallel, fan_in: inner}
  - {from: a1, to: inner}
  - {from: a2, to: inner}
  - {from: inner, to: outer}
  - {from: b, to: outer}
  - {from: outer, to: __end__}
"#;

#[test]
fn branches_nest() {
    let played = Case::yaml(NESTED)
        .world(|call| {
            let globals = call.inputs.get("globals").unwrap();
            let results = globals.get("parallel_results").unwrap().to_json();
            let state = globals.get("state").unwrap().to_json();
            ok(&format!(
                r#"{{"result": {{"{}": {results}}}, "returned": true, "state": {state}, "locals": {{}}}}"#,
                call.name
            ))
        })
        .play();
    assert_eq!(
        json(&played.output()),
        json(
            r#"{"n": 1, "parallel_results": [{"n": 2, "parallel_results": [{"n": 12}, {"n": 22}], "inner": [{"n": 12}, {"n": 22}]}, {"n": 3}], "outer": [{"n": 2, "parallel_results": [{"n": 12}, {"n": 22}], "inner": [{"n": 12}, {"n": 22}]}, {"n": 3}]}"#
        )
    );
}

fn apart(branches: Vec<(&str, Vec<Step>)>) -> Case {
    let named = branches.into_iter();
    let branches = named.map(|(name, steps)| (name.into(), Block::Sequence(steps)));
    let branches = StepKind::Parallel {
        branches: branches.collect(),
        isolated: true,
    };
    of_graph(&[], Block::Sequence(vec![step("both", branches)]))
}

/// The branches' records are deleted with them, so a record of the whole block would refer to nothing.
#[test]
fn branches_of_which_one_failed_give_nothing() {
    let case = apart(vec![("one", vec![call("one")]), ("two", vec![call("two")])]);
    let played = case
        .world(|call| match call.name {
            "one" => fails("shell"),
            _ => ok("2"),
        })
        .play();
    let root = played.state.cursors.values().next().unwrap();
    let record = root.records.values().next().unwrap();
    assert_eq!(record.output, Output::Value(Value::Null));
}

#[test]
fn a_fault_that_a_branch_catches_is_a_variable_of_that_branch() {
    let caught = StepKind::Catch {
        body: Block::Sequence(vec![call("one")]),
        error: "fault".into(),
        handler: Block::Sequence(vec![compose("told", "@variables('fault')['kind']")]),
    };
    let case = apart(vec![
        ("one", vec![step("try", caught)]),
        ("two", vec![call("two")]),
    ]);
    let played = case
        .world(|call| match call.name {
            "one" => fails("shell"),
            _ => ok("2").after(1),
        })
        .play();
    assert_eq!(played.status(), RunStatus::Succeeded, "{}", played.output());
    // The branches' variables are deleted with them.
    assert_eq!(played.output(), "{}");
}
