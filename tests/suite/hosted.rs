//! A run in a host that is neither a scheduler nor a store: this test.

use crate::machine::play::Case;
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::Value;
use windlass_machine::hosted::RunHost;
use windlass_machine::{Effect, EffectId, Event, RunStatus, TimerId};
use windlass_value::time::Timestamp;

const LOOP: &str = "
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: \"@greaterOrEquals(variables('n'), 50)\"
    actions:
      ask: { type: http, inputs: { method: GET, uri: 'http://a.test/' } }
      count: { type: incrementVariable, name: n }
";

const SLEEP: &str = "
actions:
  sleep: { type: wait, interval: PT1M }
";

fn at(seconds: u64) -> Timestamp {
    Timestamp(1_700_000_000_000).plus(Duration::from_secs(seconds))
}

fn hosted(text: &str) -> RunHost {
    let program = Arc::new(Case::yaml(text).program);
    RunHost::new("r".into(), program)
}

/// Delivers an event, and immediately confirms that its step is durable.
fn deliver(run: &mut RunHost, event: Event, now: Timestamp) -> Vec<Effect> {
    let step = run.handle_event(Vec::new(), event, now).unwrap();
    run.release(step, &super::machine::play::receipt())
}

fn start() -> Event {
    Event::Started {
        input: Value::Null,
        environment: Value::Null,
    }
}

fn started(effects: &[Effect]) -> Vec<EffectId> {
    let starts = effects.iter().filter_map(|effect| match effect {
        Effect::Start { id, .. } => Some(*id),
        _ => None,
    });
    starts.collect()
}

fn armed(effects: &[Effect]) -> Option<(TimerId, Timestamp)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Arm { id, due_at } => Some((*id, *due_at)),
        _ => None,
    })
}

#[test]
fn an_effect_starts_once_a_host_and_again_on_the_next() {
    let mut run = hosted(LOOP);
    let effects = deliver(&mut run, start(), at(0));
    let [first] = started(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert!(!run.is_replayed(first));
    assert_eq!(started(&run.outstanding()), [], "it is in flight here");
    let mut next = RunHost::restored(run.program().clone(), run.state().clone(), at(0), 0);
    assert_eq!(started(&next.outstanding()), [first]);
    assert!(next.is_replayed(first), "the first host may have begun it");
    assert_eq!(started(&next.outstanding()), []);
}

#[test]
fn time_does_not_go_back() {
    let mut run = hosted(SLEEP);
    deliver(&mut run, Event::PauseRequested, at(0));
    deliver(&mut run, start(), at(100));
    assert_eq!(run.event_time(at(50)), at(100));
    let mut run = hosted(SLEEP);
    deliver(&mut run, start(), at(100));
    deliver(&mut run, Event::PauseRequested, at(50));
    let effects = deliver(&mut run, Event::Resumed, at(110));
    let (_, due) = armed(&effects).expect("the wait goes on");
    assert_eq!(due, at(170), "ten seconds of pause, not sixty");
}

#[test]
fn a_timer_that_was_moved_does_not_fire_early() {
    let mut run = hosted(SLEEP);
    let effects = deliver(&mut run, start(), at(0));
    let (timer, due) = armed(&effects).expect("it waits");
    assert_eq!(due, at(60));
    deliver(&mut run, Event::PauseRequested, at(10));
    deliver(&mut run, Event::Resumed, at(40));
    // A host that cannot disarm a timer fires the one that it armed first.
    let early = run
        .handle_event(Vec::new(), Event::TimerFired { id: timer }, at(60))
        .unwrap();
    assert!(early.is_empty());
    assert_eq!(run.status(), RunStatus::Waiting);
    deliver(&mut run, Event::TimerFired { id: timer }, at(90));
    assert_eq!(run.status(), RunStatus::Succeeded);
}

#[test]
fn a_state_is_too_large_once_it_was_weighed() {
    let mut run = hosted(LOOP);
    let effects = deliver(&mut run, start(), at(0));
    let [id] = started(&effects)[..] else {
        panic!("{effects:?}");
    };
    let result = Ok(Value::from("x".repeat(400_000)));
    deliver(&mut run, Event::EffectCompleted { id, result }, at(1));
    assert_eq!(
        run.state_too_large_event(100_000),
        None,
        "nothing was recorded"
    );
    run.add_recorded_bytes(400_000);
    let bytes = run.weigh().expect("it may have doubled");
    assert!(bytes > 400_000);
    assert_eq!(run.weigh(), None, "it was weighed");
    assert!(run.state_too_large_event(bytes).is_none());
    let event = run.state_too_large_event(100_000).expect("it is larger");
    deliver(&mut run, event, at(2));
    assert_eq!(run.status(), RunStatus::Failed);
}
