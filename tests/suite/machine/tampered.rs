//! A stored run that contains a cycle: every traversal of it ends.

use super::play::{Case, START};
use windlass_machine::program::{ActionId, Program};
use windlass_machine::{
    BranchState, CursorId, Event, FrameKind, Output, RunState, RunStatus, advance,
};
use windlass_model::model::Name;

fn begun(text: &str) -> (Program, RunState) {
    let program = Case::yaml(text).program;
    let mut run = RunState::new(Name::from("run"), program.hash);
    let started = Event::Started {
        input: Default::default(),
        environment: Default::default(),
    };
    let _ = advance(&program, &mut run, START, started).unwrap();
    (program, run)
}

#[test]
fn a_fork_that_is_its_own_branch_can_be_cut() {
    let (program, mut run) = begun(
        "
actions:
  both:
    type: parallel
    actions: { a: { type: shell, run: x }, b: { type: shell, run: y } }
",
    );
    let (root, cursor) = run.cursors.iter_mut().next().unwrap();
    let own = *root;
    for frame in &mut cursor.frames {
        if let FrameKind::Fork(fork) = &mut frame.kind {
            fork.branches[0] = BranchState::Running(own);
        }
    }
    let bug = advance(&program, &mut run, START, Event::CancelRequested).unwrap_err();
    assert_eq!(bug.to_string(), format!("branch {} is its own fork", own.0));
}

#[test]
fn a_record_that_is_made_of_itself_can_be_read() {
    let (program, mut run) = begun(
        "
actions:
  a: { type: scope, actions: { x: { type: compose, inputs: 1 } } }
  b: { type: shell, run: y }
",
    );
    let root = run.cursors.values_mut().next().unwrap();
    let record = root.records.get_mut(&ActionId(0)).unwrap();
    record.output = Output::Actions(vec![ActionId(0), ActionId(1)]);
    let id = *run.effects.keys().next().unwrap();
    let answer = Event::EffectCompleted {
        id,
        result: Ok(Default::default()),
    };
    let _ = advance(&program, &mut run, START, answer).unwrap();
    assert_eq!(run.status(), RunStatus::Succeeded);
    let outcome = run.outcome.unwrap();
    assert_eq!(outcome.output.to_json(), r#"{"a":{"x":1},"b":null}"#);
}

#[test]
fn cursors_that_forked_each_other_are_walked_once() {
    let (program, mut run) = begun(
        "
actions:
  each:
    type: foreach
    foreach: [1, 2]
    actions: { a: { type: shell, run: \"echo\", env: { I: \"@string(item())\" } } }
",
    );
    let ids: Vec<CursorId> = run.cursors.keys().copied().collect();
    for (id, cursor) in &mut run.cursors {
        cursor.parent = ids.iter().copied().find(|other| other != id).or(Some(*id));
    }
    let effects: Vec<_> = run.effects.keys().copied().collect();
    for id in effects {
        let result = Ok(Default::default());
        let answer = Event::EffectCompleted { id, result };
        let _ = advance(&program, &mut run, START, answer).unwrap();
    }
    let _ = advance(&program, &mut run, START, Event::CancelRequested).unwrap();
    assert!(run.status().is_final());
}
