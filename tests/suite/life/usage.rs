//! The budget of a loop, seen from outside: a model and commands that report their usage, `kill -9` in the middle, and
//! what commands show of it.

use super::first_use::Folder;
use super::process::Place;
use super::stall::limits_are_refused;
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A model that uses 4,100 tokens for each answer.
const ANSWER: &str = r#"{
    "choices": [{ "message": { "role": "assistant", "content": "not yet" } }],
    "usage": { "prompt_tokens": 4000, "completion_tokens": 100, "total_tokens": 4100 }
}"#;

async fn model(State(requests): State<Arc<AtomicUsize>>) -> &'static str {
    requests.fetch_add(1, Ordering::SeqCst);
    ANSWER
}

/// In its second iteration, it waits after the answer until a file exists.
const AGENT: &str = r#"
name: agent
actions:
  work:
    type: doUntil
    condition: "@equals(body('test'), 'done')"
    limit: { count: 100, tokens: 20000 }
    on_limit: ON_LIMIT
    actions:
      ask: { type: ai, model: m, prompt: work, base_url: "BASE/v1", inputs: { api_key: k } }
      hold:
        type: shell
        run: "[ $N -ne 2 ] || { touch FOLDER/held; while [ ! -e FOLDER/go ]; do sleep 0.01; done; }"
        env: { N: "@variables('loopCount')" }
      test: { type: shell, run: echo no }
outputs: { end: "@outputs('work').reason", iterations: "@outputs('work').iterations" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_survives_kill_in_the_middle_and_ends_the_loop_in_its_iteration() {
    let requests = Arc::<AtomicUsize>::default();
    let base = serve(Router::new().fallback(model).with_state(requests.clone())).await;
    let place = Place::new();
    let text = AGENT
        .replace("BASE", &base)
        .replace("ON_LIMIT", "continue")
        .replace("FOLDER", place.dir.path().to_str().unwrap());
    let file = place.file("agent.yaml", &text);
    let run = place.follow(&["run", &file, "--id", "agent-1"]);
    let held = place.dir.path().join("held");
    while !held.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    run.kill();

    let status = place.json(&["status", "agent-1", "-o", "json"]);
    let budgets = json!([
        { "budget": "tokens", "used": 8200, "limit": 20000, "text": "tokens 8,200 of 20,000" }
    ]);
    assert_eq!(status["loops"][0]["budgets"], budgets, "{status}");
    let shown = place.run(&["status", "agent-1"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("iteration 2/100  tokens 8,200 of 20,000"),
        "{shown}"
    );

    std::fs::write(place.dir.path().join("go"), "").unwrap();
    let ended = place.json(&["resume", "agent-1", "-o", "json"]);
    // The fifth answer makes 20,500 tokens. No answer is requested twice.
    assert_eq!(ended, json!({ "end": "tokens", "iterations": 5 }));
    assert_eq!(requests.load(Ordering::SeqCst), 5);
    let shown = place.run(&["status", "agent-1"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("loop `work` ended at its tokens limit, after 5 iterations"),
        "{shown}"
    );
    let used = "budget    loop `work` used tokens 20,500 of 20,000";
    assert!(shown.contains(used), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_that_pauses_at_its_budget_gets_the_same_again() {
    let requests = Arc::<AtomicUsize>::default();
    let base = serve(Router::new().fallback(model).with_state(requests.clone())).await;
    let place = Place::new();
    std::fs::write(place.dir.path().join("go"), "").unwrap();
    let text = AGENT
        .replace("BASE", &base)
        .replace("ON_LIMIT", "pause")
        .replace("FOLDER", place.dir.path().to_str().unwrap());
    let file = place.file("agent.yaml", &text);
    place.run(&["run", &file, "--id", "agent-1"]);
    let budgets = |status: &Value| status["loops"][0]["budgets"][0]["text"].clone();
    let status = place.json(&["status", "agent-1", "-o", "json"]);
    assert_eq!(budgets(&status), "tokens 20,500 of 20,000");
    assert_eq!(status["pause"]["limit"], "tokens", "{status}");
    place.run(&["resume", "agent-1"]);
    let status = place.json(&["status", "agent-1", "-o", "json"]);
    assert_eq!(budgets(&status), "tokens 41,000 of 40,500");
    assert_eq!(requests.load(Ordering::SeqCst), 10);
}

#[test]
fn a_command_reports_what_it_cost() {
    let folder = Folder::new();
    let file = folder.file(
        "w.yaml",
        r#"
actions:
  work:
    type: doUntil
    condition: "@equals(body('agent').done, true)"
    limit: { count: 20, tokens: 9000, cost: 2.5 }
    actions:
      agent:
        type: shell
        run: "echo >> calls; echo '{\"done\": false, \"usage\": {\"tokens\": 1000, \"cost\": 0.9}}'"
"#,
    );
    let file = file.to_str().unwrap();
    let message = "loop `work` was not done within its budget: cost 2.7 of 2.5";
    folder.run(&["run", file]).left(4, &[message]);
    assert_eq!(folder.lines("calls"), 3);
    let table = folder.run(&["validate", file]);
    assert!(table.out.contains("20, 9000 tokens, cost 2.5"), "{table:?}");
}

#[test]
fn budgets_that_cannot_be_are_refused_with_their_place() {
    limits_are_refused(&[
        ("{ tokens: 0 }", "or an expression, this is 0"),
        ("{ tokens: -5 }", "or an expression, this is -5"),
        ("{ tokens: 2.5 }", "`tokens` must be a whole number from 1"),
        ("{ tokens: many }", "`tokens` must be a whole number from 1"),
        ("{ tokens: [1] }", "`tokens` must be a whole number from 1"),
        ("{ cost: 0 }", "`cost` must be a number above 0"),
        ("{ cost: -2.5 }", "`cost` must be a number above 0"),
        ("{ cost: much }", "`cost` must be a number above 0"),
        ("{ cost: true }", "`cost` must be a number above 0"),
    ]);
}
