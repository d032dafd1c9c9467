//! Whole transitions of a small loop, change by change: what one checkpoint holds.

use super::play::{Case, START, Step, ok};
use windlass::machine::{Change, Effect, Event, Frame, FrameKind, Wait};
use windlass::time::Timestamp;

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
        Change::VariableSet(name, value) => format!("{name} = {}", value.to_json()),
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
        Effect::Disarm { id } => format!("disarm timer {}", id.0),
        Effect::Finish(outcome) => format!("finish {}", outcome.status.as_str()),
        Effect::Continue => "continue".into(),
    }
}

fn told(step: &Step) -> String {
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
    let all: Vec<String> = played.steps.iter().map(told).collect();
    let expected = [
        "started
  the run began
  cursor 1
  done = false
  timer 2 for Deadline(ScopeId(1)) at 60s
  cursor 1 enters c1: loop poll
  the condition is false
  an iteration begins
  cursor 1 to s1
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
