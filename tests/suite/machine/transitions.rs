//! Whole transitions of a small loop, change by change: the content of each checkpoint.

use super::build::{call, loop_while, of_graph};
use super::play::{Case, START, Step, ok};
use windlass_expression::Value;
use windlass_machine::{
    Change, Effect, Event, Frame, FrameKind, RunState, Transition, VariableChange, Wait, advance,
};
use windlass_model::hir::{Block, StepKind};
use windlass_model::model::OnLimit;
use windlass_value::time::Timestamp;

fn seconds(at: Timestamp) -> String {
    format!("{}s", (at.0 - START.0) / 1000)
}

fn event(event: &Event) -> String {
    match event {
        Event::Started { .. } => "started".into(),
        Event::EffectCompleted { id, .. } => format!("effect {} completed", id.0),
        Event::TimerFired { id } => format!("timer {} fired", id.0),
        other => format!("{other:?}"),
    }
}

fn change(change: &Change) -> String {
    match change {
        Change::Started { .. } => "the run began".into(),
        Change::VariableChanged {
            owner: None,
            change: VariableChange::Set(name, value),
        } => format!("{name} = {}", value.to_json()),
        Change::ActionBegan { cursor, action } => format!("cursor {} begins {action}", cursor.0),
        Change::CursorSpawned(id, _) => format!("cursor {}", id.0),
        Change::Moved(id, to) => format!("cursor {} to {to}", id.0),
        Change::Waits(id, Wait::Timer(timer)) => {
            format!("cursor {} waits for timer {}", id.0, timer.0)
        }
        Change::Waits(id, Wait::Effect(effect)) => {
            format!("cursor {} waits for effect {}", id.0, effect.0)
        }
        Change::Entered(id, Frame { scope, kind, .. }) => {
            let kind = match kind {
                FrameKind::Loop(state) => format!("loop {}", state.path),
                other => format!("{other:?}"),
            };
            format!("cursor {} enters {scope}: {kind}", id.0)
        }
        Change::Popped(id, keep) => format!("cursor {} keeps {keep} frames", id.0),
        Change::EffectRequested(id, effect) => format!("effect {}: {}", id.0, effect.request.key),
        Change::EffectEnded { id, output, .. } => {
            format!("effect {} gave {}", id.0, output.to_json())
        }
        Change::TimerArmed(id, timer) => {
            format!(
                "timer {} for {:?} at {}",
                id.0,
                timer.purpose,
                seconds(timer.due_at)
            )
        }
        Change::TimerDropped(id) => format!("timer {} is over", id.0),
        Change::ConditionSeen { value, .. } => format!("the condition is {value}"),
        Change::IterationBegan { .. } => "an iteration begins".into(),
        Change::IterationEnded { status, .. } => format!("an iteration ends {}", status.as_str()),
        Change::IterationCancelled { .. } => "an iteration is cut".into(),
        Change::LoopDelayed { due_at, .. } => format!("the next is due at {}", seconds(*due_at)),
        Change::LoopEnded { end, .. } => format!("the loop ends: {}", end.as_str()),
        Change::Recorded { action, status, .. } => format!("{action} is {}", status.as_str()),
        Change::Finished(outcome) => format!("the run ends {}", outcome.status.as_str()),
        other => format!("{other:?}"),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Start { id, request } => format!("start effect {}: {}", id.0, request.action),
        Effect::Abort { id } => format!("abort effect {}", id.0),
        Effect::Arm { id, due_at } => format!("arm timer {} for {}", id.0, seconds(*due_at)),
        Effect::Disarm { id, .. } => format!("disarm timer {}", id.0),
        Effect::Finish(outcome) => format!("finish {}", outcome.status.as_str()),
        Effect::Continue => "continue".into(),
    }
}

fn step_text(step: &Step) -> String {
    let mut text = format!("{}\n", event(&step.event));
    step.changes
        .iter()
        .for_each(|one| text += &format!("  {}\n", change(one)));
    step.effects
        .iter()
        .for_each(|one| text += &format!("→ {}\n", effect(one)));
    text
}

#[test]
fn a_loop_of_two_iterations() {
    let played = Case::yaml(
        "
variables: { done: false }
actions:
  poll:
    type: until
    condition: \"@equals(outputs('check'), 1)\"
    limit: { count: 5, timeout: PT1M }
    delay: PT10S
    actions:
      check: { type: shell, run: x }
",
    )
    .world(|call| ok(&call.n.to_string()))
    .play();
    let all: Vec<String> = played.steps.iter().map(step_text).collect();
    let expected = [
        "started
  the run began
  cursor 1
  done = false
  cursor 1 begins a0
  timer 2 for Deadline(ScopeId(1)) at 60s
  cursor 1 enters c1: loop poll
  the condition is false
  an iteration begins
  cursor 1 to s1
  cursor 1 begins a1
  effect 3: run/poll#0/check
  cursor 1 waits for effect 3
→ arm timer 2 for 60s
→ start effect 3: check
",
        "effect 3 completed
  effect 3 gave 0
  cursor 1 to s2
  an iteration ends Succeeded
  the condition is false
  timer 4 for Delay at 10s
  the next is due at 10s
  cursor 1 waits for timer 4
→ arm timer 4 for 10s
",
        "timer 4 fired
  timer 4 is over
  an iteration begins
  cursor 1 to s1
  cursor 1 begins a1
  effect 5: run/poll#1/check
  cursor 1 waits for effect 5
→ start effect 5: check
",
        "effect 5 completed
  effect 5 gave 1
  cursor 1 to s2
  an iteration ends Succeeded
  the condition is true
  the loop ends: condition
  a0 is Succeeded
  timer 2 is over
  cursor 1 keeps 1 frames
  cursor 1 to s3
  cursor 1 keeps 0 frames
  the run ends Succeeded
→ disarm timer 2
→ finish Succeeded
",
    ];
    for (got, expected) in all.iter().zip(expected) {
        assert_eq!(got, expected);
    }
    assert_eq!(all.len(), expected.len());
}

/// Two events that arrive during a commit are stored as one step, which contains both transitions completely.
#[test]
fn two_transitions_are_joined_to_one_that_has_all_of_both() {
    let case = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    limit: { count: 9, timeout: PT2H }
    delay: PT5S
    actions:
      look: { type: shell, run: x }
  after: { type: wait, interval: PT1S }
",
    );
    let mut run = RunState::new("run".into(), case.program.hash);
    let mut now = START;
    let mut event = Event::Started {
        input: Value::Null,
        environment: Value::Null,
    };
    // Each transition of the run, in order.
    let mut all: Vec<Transition> = Vec::new();
    while run.outcome.is_none() && all.len() < 100 {
        let next = advance(&case.program, &mut run, now, event).unwrap();
        now = now.plus(std::time::Duration::from_secs(1));
        let outstanding: Vec<Effect> = run.outstanding().collect();
        let called = outstanding.iter().find_map(|effect| match effect {
            Effect::Start { id, .. } => Some(*id),
            _ => None,
        });
        event = match (called, outstanding.last()) {
            (Some(id), _) => Event::EffectCompleted {
                id,
                result: Ok(Value::Null),
            },
            (None, Some(Effect::Arm { id, .. })) => Event::TimerFired { id: *id },
            (None, _) => Event::Continued,
        };
        all.push(next);
    }
    assert!(run.outcome.is_some(), "{} transitions", all.len());
    // A transition that only reports something, and one that only changes something.
    let (mut reporting, mut changed) = (Transition::default(), Transition::default());
    reporting.history = all[0].history.clone();
    changed.changes = all[0].changes.clone();
    all.extend([reporting, changed, Transition::default()]);
    for one in &all {
        for other in &all {
            let mut joined = one.clone();
            joined.join(other.clone());
            let both = [one, other];
            let changes = both.iter().flat_map(|one| one.changes.clone());
            assert_eq!(joined.changes, changes.collect::<Vec<_>>());
            let history = both.iter().flat_map(|one| one.history.clone());
            assert_eq!(joined.history, history.collect::<Vec<_>>());
            let rows = both.iter().flat_map(|one| one.iterations.clone());
            assert_eq!(joined.iterations, rows.collect::<Vec<_>>());
            let loops = both.iter().flat_map(|one| one.loops.clone());
            assert_eq!(joined.loops, loops.collect::<Vec<_>>());
        }
    }
}

/// A loop is visible from its entry, before anything has started and before its condition was evaluated.
#[test]
fn a_loop_is_reported_when_it_is_entered() {
    // The count is 0, so its condition is not evaluated.
    let mut step = loop_while("poll", "@equals(1, 1)", 0, vec![call("look")]);
    if let StepKind::Loop(spec) = &mut step.kind {
        spec.on_limit = OnLimit::Pause;
    }
    let case = of_graph(&[], Block::Sequence(vec![step]));
    let mut run = RunState::new("run".into(), case.program.hash);
    let started = Event::Started {
        input: Value::Null,
        environment: Value::Null,
    };
    let first = advance(&case.program, &mut run, START, started).unwrap();
    let entered = run.loops().map(|(_, _, state)| state.path.clone());
    let mut reported: Vec<String> = first.loops.iter().map(|row| row.path.clone()).collect();
    reported.sort();
    let mut entered: Vec<String> = entered.collect();
    entered.sort();
    assert!(!entered.is_empty());
    assert_eq!(reported, entered);
}

/// Items with small results end together. The end of a failed item is a boundary like that of an iteration.
#[test]
fn an_item_that_fails_ends_in_a_transition_of_its_own() {
    let played = Case::yaml(
        "
actions:
  each:
    type: foreach
    foreach: [2, 1, 0]
    actions: { part: { type: compose, inputs: \"@div(2, item())\" } }
",
    )
    .play();
    let ends = played.steps.iter().map(|step| {
        let all = step.changes.iter();
        all.filter(|change| matches!(change, Change::BranchEnded { .. }))
            .count()
    });
    let ends: Vec<usize> = ends.filter(|ends| *ends > 0).collect();
    assert_eq!(ends, [2, 1]);
}
