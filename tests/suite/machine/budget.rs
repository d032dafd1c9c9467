//! What a transition may compute: it stops at its budget, and an expression that exceeds the budget is an ordinary
//! fault.

use super::play::{Case, Played};
use windlass_machine::RunStatus;

const HEAVY: &str = "@length(string(createArray(range(0, 100000), range(0, 100000))))";

fn heavy(rest: &str) -> String {
    format!(
        r#"
variables: {{ text: "" }}
actions:
  look:
    type: query
    inputs: {{ from: "@range(0, 100000)", where: "@greater({}, 0)" }}
{rest}"#,
        HEAVY.trim_start_matches('@')
    )
}

fn quick(text: &str) -> Played {
    let mut case = Case::yaml(text);
    case.quick = true;
    case.play()
}

#[test]
fn a_step_that_exceeds_its_budget_fails_and_is_caught() {
    let played = quick(&heavy(""));
    let outcome = played.state.outcome.clone().unwrap();
    let error = outcome.error.unwrap();
    assert!(
        error.fault.message.contains("more work than one step"),
        "{}",
        error.fault.message
    );
    assert_eq!(&*error.fault.kind, "expression");
    assert_eq!(error.action.as_deref(), Some("look"));
    let caught = heavy("  after: { type: compose, inputs: done, runAfter: { look: [Failed] } }\n");
    let played = quick(&caught);
    assert_eq!(played.state.status(), RunStatus::Succeeded);
}

#[test]
fn a_transition_ends_when_it_was_enough() {
    let mut text = String::from("actions:\n");
    for number in 0..20 {
        let one = format!(
            "  a{number}: {{ type: compose, inputs: \"@length(string(range(0, 20000)))\" }}\n"
        );
        text.push_str(&one);
    }
    let played = Case::yaml(&text).play_with(&mut |_, _| None);
    assert_eq!(played.state.status(), RunStatus::Succeeded);
    assert!(
        played.steps.len() >= 5,
        "{} transitions",
        played.steps.len()
    );
}

#[test]
fn values_that_lie_in_themselves_again_and_again_are_refused() {
    let mut text = String::from("variables: { v: x }\nactions:\n");
    for number in 0..60 {
        let one = format!(
            "  a{number}: {{ type: setVariable, inputs: {{ name: v, value: {{ a: \"@variables('v')\", b: \"@variables('v')\" }} }} }}\n"
        );
        text.push_str(&one);
    }
    let played = quick(&text);
    let error = played.state.outcome.clone().unwrap().error.unwrap();
    assert_eq!(&*error.fault.kind, "too_large", "{}", error.fault.message);
}
