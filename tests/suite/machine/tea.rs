//! The loops of The Edge Agent on virtual time. Each is played again with a crash before and after every commit, and
//! reaches the same state with the same requests. What a budget has spent stays spent.

use super::play::{Answer, Case, Outside, Played, fails, json, ok};
use windlass_machine::{HistoryKind, RunStatus};

/// How often an action was requested, without repetitions after a crash.
fn request_count(played: &Played, name: &str) -> usize {
    let named = played.started.iter().filter(|one| one.name == name);
    let keys: std::collections::BTreeSet<String> =
        named.map(|one| one.request.key.clone()).collect();
    keys.len()
}

fn ends(played: &Played) -> Vec<(String, u64, String)> {
    let ends = played.history.iter().filter_map(|event| match &event.what {
        HistoryKind::LoopEnd {
            node_name,
            iterations_completed,
            exit_reason,
            ..
        } => Some((
            node_name.to_string(),
            *iterations_completed,
            exit_reason.to_string(),
        )),
        _ => None,
    });
    ends.collect()
}

const WHILE: &str = r#"
name: while
initial_state: {n: 0}
nodes:
  - name: refine
    type: while_loop
    max_iterations: 5
    condition: "state.n < 100"
    body:
      - {name: work, run: "return {'n': state['n'] + 1}"}
"#;

/// The result of the Python executor.
fn python(state: &str, result: &str) -> String {
    format!(r#"{{"result": {result}, "returned": true, "state": {state}, "locals": {{}}}}"#)
}

#[test]
fn a_while_loop_has_its_iterations_and_no_more() {
    let played = Case::yaml(WHILE)
        .world(|call| {
            let seen = call.inputs.get("globals").unwrap().get("state").unwrap();
            let n = seen.get("n").unwrap().as_int().unwrap();
            ok(&python(&seen.to_json(), &format!(r#"{{"n": {}}}"#, n + 1)))
        })
        .play();
    assert_eq!(played.output(), r#"{"n":5}"#);
    assert_eq!(request_count(&played, "work"), 5);
    let end = ("refine".into(), 5, "max_iterations_reached".into());
    assert_eq!(ends(&played), [end]);
}

#[test]
fn a_script_gets_the_state_and_the_journal_does_not() {
    let played = Case::yaml(WHILE)
        .input(r#"{"doc": "a long document"}"#)
        .world(|call| {
            let seen = call.inputs.get("globals").unwrap().get("state").unwrap();
            assert_eq!(seen.get("doc"), Some(&json(r#""a long document""#)));
            let n = seen.get("n").unwrap().as_int().unwrap();
            ok(&python(&seen.to_json(), &format!(r#"{{"n": {}}}"#, n + 1)))
        })
        .play();
    let steps = played.steps.iter();
    let counts = steps.map(|step| {
        format!("{:?}", step.changes)
            .matches("a long document")
            .count()
    });
    // As input, as a variable and as the run's output; no iteration stores it again.
    assert_eq!(counts.sum::<usize>(), 3);
    assert_eq!(request_count(&played, "work"), 5);
}

#[test]
fn a_failure_in_a_body_ends_the_run_at_once() {
    let played = Case::yaml(WHILE)
        .world(|call| match call.n {
            2 => fails("script"),
            n => ok(&python(&format!(r#"{{"n": {n}}}"#), "null")),
        })
        .play();
    assert_eq!(played.status(), RunStatus::Failed);
    assert_eq!(request_count(&played, "work"), 3);
    assert!(played.error().contains("work"), "{}", played.error());
    assert!(played.error().contains("refine"), "{}", played.error());
}

const RETRY: &str = r#"
name: retry
initial_state: {doc: 0}
nodes:
  - name: check
    uses: retry.loop
    with:
      validate: data.validate
      validate_args: {data: "{{ state.doc }}", schema: {}}
      correct: fix
      max_retries: 3
      retry_delay: 60
  - {name: end, goto: __end__}
  - {name: fix, uses: shell, with: {run: "fix {{ state._retry_count }}"}, output: {doc: "{{ result.body }}"}}
"#;

#[test]
fn retries_are_corrections_between_validations() {
    let played = Case::yaml(RETRY)
        .world(|call| match call.name {
            "check.validate" => {
                // The arguments are rendered again before each validation.
                assert_eq!(call.inputs.get("data"), Some(&json(&call.n.to_string())));
                let valid = call.n >= 2;
                ok(&format!(
                    r#"{{"valid": {valid}, "errors": ["e{}"]}}"#,
                    call.n
                ))
            }
            "check.fix" => {
                let run = call.inputs.get("run").unwrap().as_str().unwrap();
                assert_eq!(run, format!("fix {}", call.n));
                ok(&format!(r#"{{"body": {}}}"#, call.n + 1))
            }
            other => panic!("{other}"),
        })
        .play();
    assert_eq!(request_count(&played, "check.validate"), 3);
    assert_eq!(request_count(&played, "check.fix"), 2);
    assert_eq!(
        json(&played.output()),
        json(
            r#"{"doc": 2, "_retry_count": 2, "_retry_result": {"valid": true, "errors": ["e2"]},
                "_retry_errors": [], "_retry_exhausted": false, "valid": true, "errors": ["e2"]}"#
        )
    );
    // A minute after each correction, and none after the last validation.
    let last = played.started.last().unwrap();
    assert_eq!((last.at_ms, &*last.name), (120_000, "check.validate"));
}

#[test]
fn a_retry_that_is_never_valid_is_exhausted() {
    let played = Case::yaml(RETRY)
        .world(|call| match call.name {
            "check.validate" => ok(r#"{"valid": false, "errors": ["no"]}"#),
            _ => ok(&format!(r#"{{"body": {}}}"#, call.n + 1)),
        })
        .play();
    assert_eq!(request_count(&played, "check.validate"), 4);
    assert_eq!(request_count(&played, "check.fix"), 3);
    assert_eq!(ends(&played), [("check".into(), 4, "count".into())]);
    let state = json(&played.output());
    assert_eq!(state.get("_retry_exhausted"), Some(&json("true")));
    assert_eq!(state.get("_retry_errors"), Some(&json(r#"["no"]"#)));
}

#[test]
fn a_corrector_that_fails_ends_the_loop() {
    let played = Case::yaml(RETRY)
        .world(|call| match call.name {
            "check.validate" => ok(r#"{"valid": false, "errors": ["no"]}"#),
            _ => fails("shell"),
        })
        .play();
    assert_eq!(played.status(), RunStatus::Succeeded);
    assert_eq!(request_count(&played, "check.validate"), 1);
    assert_eq!(
        json(&played.output()),
        json(
            r#"{"doc": 0, "_retry_count": 0, "_retry_exhausted": false, "valid": false,
                "_retry_result": {"valid": false, "errors": ["no"], "correction_error": "it was shell"},
                "_retry_errors": ["no", {"message": "Correction node 'fix' failed: it was shell",
                                         "type": "correction_error"}]}"#
        )
    );
}

#[test]
fn a_validator_that_fails_is_a_bad_validation() {
    let played = Case::yaml(RETRY)
        .world(|call| match (call.name, call.n) {
            ("check.validate", 0) => fails("input"),
            ("check.validate", _) => ok(r#"{"valid": true, "errors": []}"#),
            _ => ok(r#"{"body": 1}"#),
        })
        .play();
    assert_eq!(request_count(&played, "check.validate"), 2);
    let state = json(&played.output());
    assert_eq!(state.get("_retry_count"), Some(&json("1")));
    // The state contains no data about the handling of faults.
    let keys = state.as_object().unwrap().keys();
    assert!(keys.into_iter().all(|key| !key.contains("windlass")));
}

const REFLECTION: &str = r#"
name: reflection
initial_state: {topic: loops, hint: none}
nodes:
  - name: write
    uses: reflection.loop
    with:
      generator: {action: shell, run: "write {{ state.hint }} {{ state.reflection_iteration }}"}
      evaluator: {type: schema, schema: {type: object}}
      corrector: {action: json.parse, text: "{{ state.reflection_errors | tojson }}"}
      max_iterations: 3
"#;

/// A play of a reflection: what is generated, judged and corrected in each iteration.
fn reflected(best: &'static [&'static str]) -> Played {
    Case::yaml(REFLECTION)
        .world(move |call| match call.name {
            "write.generator" => ok(&format!(r#"{{"body": {}}}"#, call.n)),
            "write.evaluator" => {
                let judged = call.inputs.get("data").unwrap();
                assert_eq!(judged, &json(&format!(r#"{{"body": {}}}"#, call.n)));
                ok(best[call.n])
            }
            "write.corrector" => ok(&format!(r#"{{"hint": "h{}"}}"#, call.n)),
            other => panic!("{other}"),
        })
        .play()
}

const BAD: &str = r#"{"valid": false, "score": 0.4, "errors": ["bad"], "suggestions": []}"#;
const WORSE: &str = r#"{"valid": false, "score": 0.2, "errors": ["worse"], "suggestions": []}"#;
const GOOD: &str = r#"{"valid": true, "score": 0.3, "errors": [], "suggestions": []}"#;

#[test]
fn reflection_corrects_until_it_is_valid() {
    let played = reflected(&[BAD, GOOD]);
    let commands: Vec<String> = played
        .started
        .iter()
        .filter(|one| one.name == "write.generator")
        .map(|one| one.request.inputs.get("run").unwrap().to_json())
        .collect();
    // The second iteration read the corrector's map.
    assert_eq!(commands, [r#""write none 1""#, r#""write h0 2""#]);
    assert_eq!(request_count(&played, "write.corrector"), 1);
    assert_eq!(
        json(&played.output()),
        json(
            r#"{"topic": "loops", "hint": "none", "reflection_iteration": 2,
                "reflection_output": {"body": 1}, "reflection_errors": [],
                "reflection_history": [
                  {"iteration": 1, "output": {"body": 0}, "score": 0.4, "valid": false, "errors": ["bad"]},
                  {"iteration": 2, "output": {"body": 1}, "score": 0.3, "valid": true, "errors": []}],
                "reflection_best": {"body": 1}, "reflection_best_score": 0.3,
                "success": true, "valid": true, "body": 1}"#
        )
    );
}

#[test]
fn reflection_is_bounded_and_gives_the_best() {
    let played = reflected(&[WORSE, BAD, BAD]);
    assert_eq!(request_count(&played, "write.generator"), 3);
    assert_eq!(request_count(&played, "write.evaluator"), 3);
    assert_eq!(request_count(&played, "write.corrector"), 2);
    assert_eq!(ends(&played), [("write".into(), 3, "count".into())]);
    let state = json(&played.output());
    assert_eq!(
        state.get("reflection_output"),
        Some(&json(r#"{"body": 1}"#))
    );
    assert_eq!(state.get("reflection_best_score"), Some(&json("0.4")));
    assert_eq!(state.get("exhausted"), Some(&json("true")));
    assert_eq!(state.get("hint"), Some(&json(r#""none""#)));
}

/// A judge that ignored the file's server would send its request to another one.
#[test]
fn every_question_to_a_model_goes_where_the_settings_say() {
    let file = r#"
name: judged
settings: {llm: {model: m, base_url: "http://own"}}
nodes:
  - name: write
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: hi}
      evaluator: {type: llm, prompt: "is it good?", model: judge}
      max_iterations: 1
"#;
    let played = Case::yaml(file)
        .world(|call| match call.name {
            "write.generator" => ok(r#"{"content": "hello"}"#),
            _ => ok(GOOD),
        })
        .play();
    let requests = played.started.iter().map(|one| {
        let of = |key: &str| one.request.inputs.get(key).cloned().unwrap_or_default();
        (of("model").to_json(), of("base_url").to_json())
    });
    let own = |model: &str| (format!("\"{model}\""), r#""http://own""#.to_owned());
    assert_eq!(requests.collect::<Vec<_>>(), [own("m"), own("judge")]);
}

#[test]
fn a_schema_validates_the_answer_of_the_model() {
    let file = r#"
name: judged
nodes:
  - name: write
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: hi, model: m}
      evaluator: {type: schema, schema: {type: object}}
      max_iterations: 1
"#;
    for (message, judged) in [
        (r#"{\"age\": 3}"#, r#"{"age": 3}"#),
        (r#"\n```json\n{\"age\": 3}\n```\n"#, r#"{"age": 3}"#),
        ("I cannot do that.", r#""I cannot do that.""#),
        ("``` I cannot", r#""``` I cannot""#),
    ] {
        let answer = format!(r#"{{"content": "{message}", "usage": null}}"#);
        let played = Case::yaml(file)
            .world(move |call| match call.name {
                "write.generator" => ok(&answer),
                _ => ok(GOOD),
            })
            .play();
        let inputs = &played.started.last().unwrap().request.inputs;
        assert_eq!(inputs.get("data"), Some(&json(judged)), "{message}");
    }
}

#[test]
fn a_generator_that_fails_is_a_round() {
    let played = Case::yaml(REFLECTION)
        .world(|call| match (call.name, call.n) {
            ("write.generator", 0) => fails("shell"),
            ("write.generator", _) => ok(r#"{"body": 0}"#),
            ("write.evaluator", _) => ok(GOOD),
            other => panic!("{other:?}"),
        })
        .play();
    assert_eq!(request_count(&played, "write.generator"), 2);
    assert_eq!(request_count(&played, "write.corrector"), 0);
    let state = json(&played.output());
    let history = state.get("reflection_history").unwrap().as_array().unwrap();
    assert_eq!(
        history[0],
        json(
            r#"{"iteration": 1, "output": null, "score": 0.0, "valid": false,
                "errors": [{"message": "Generator failed: it was shell"}]}"#
        )
    );
}

#[test]
fn a_pause_anywhere_in_a_loop_changes_nothing() {
    let mut case = Case::yaml(RETRY).world(|call| match call.name {
        "check.validate" => ok(&format!(r#"{{"valid": {}, "errors": []}}"#, call.n >= 1)),
        _ => ok(r#"{"body": 1}"#),
    });
    case.play_paused_everywhere();
    case.play_cancelled_everywhere();
}

const ENVIRONMENT: &str = r#"
name: environment
initial_state: {n: 0}
nodes:
  - name: refine
    type: while_loop
    max_iterations: 3
    condition: "env.MODE == 'fast'"
    body:
      - {name: work, uses: shell, with: {run: "{{ env.MODE }} {{ env.API_KEY }}"}, output: n}
"#;

#[test]
fn the_environment_is_that_of_the_start_and_has_no_keys() {
    let played = Case::yaml(ENVIRONMENT)
        .environment(r#"{"MODE": "fast"}"#)
        .world(|call| {
            // The executor adds the key itself.
            let run = call.inputs.get("run").unwrap().as_str().unwrap();
            assert!(run.starts_with("fast \u{E0F0}"), "{run}");
            ok(&call.n.to_string())
        })
        .play();
    assert_eq!(request_count(&played, "work"), 3);
    assert_eq!(played.output(), r#"{"n":2}"#);
}

#[test]
fn the_history_has_the_names_of_nodes_and_an_end_for_each_start() {
    let played = Case::yaml(RETRY)
        .world(|call| match (call.name, call.n) {
            ("check.validate", 0) => ok(r#"{"valid": false, "errors": []}"#),
            ("check.validate", _) => Answer::Never,
            _ => ok(r#"{"body": 1}"#),
        })
        .at(100, Outside::Cancel)
        .play();
    assert_eq!(played.status(), RunStatus::Cancelled);
    let story = played.story();
    let count_of = |what: &str| story.iter().filter(|line| line.starts_with(what)).count();
    for (event, node, times) in [
        ("ActionStarted", "check", 2),
        // Of both validations, and of the node as a whole, which was interrupted.
        ("ActionEnded", "check", 3),
        ("ActionStarted", "fix", 1),
        ("ActionEnded", "fix", 1),
        ("LoopStart", "check", 1),
        ("LoopEnd", "check", 1),
    ] {
        let line = format!("{event} node_name=\"{node}\"");
        assert_eq!(count_of(&line), times, "{line}: {story:#?}");
    }
    assert_eq!(count_of("ActionStarted"), 3, "{story:#?}");
    assert!(!story.iter().any(|line| line.contains("node_name=\"check.")));
}
