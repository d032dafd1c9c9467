//! Pause, resume, cancel and signals, at every point.

use super::play::{Answer, Case, Outside, START, fails, json, ok};
use std::time::Duration;
use windlass_machine::{Event, RunState, RunStatus, Signal, advance};
use windlass_model::model::Name;

/// All constructs in one workflow: nested loops, a delay, retries, a foreach, a parallel, a wait, a timeout.
fn everything() -> Case {
    Case::yaml(
        "
variables: { seen: [] }
actions:
  poll:
    type: until
    condition: \"@equals(outputs('check'), 3)\"
    limit: { timeout: PT10M }
    delay: PT10S
    actions:
      check:
        type: shell
        run: x
        retry: { type: exponential, interval: PT2S, count: 3 }
      inner:
        type: while
        condition: \"@less(variables('loopIndex'), 2)\"
        actions:
          push: { type: appendToArrayVariable, name: seen, value: \"@variables('poll_loopIndex')\" }
          nap: { type: wait, interval: PT1S }
  each:
    type: foreach
    foreach: [1, 2, 3]
    concurrency: 2
    actions:
      a: { type: shell, run: x }
      b: { type: wait, interval: PT3S }
  fork:
    type: parallel
    branches:
      left: { actions: { c: { type: shell, run: x }, d: { type: wait, interval: PT5S } } }
      right: { actions: { e: { type: shell, run: x } } }
outputs: { seen: \"@variables('seen')\", fork: \"@outputs('fork')\" }
",
    )
    .world(|call| match (call.name, call.n) {
        ("check", 1) => fails("shell"),
        ("check", n) => ok(&n.to_string()),
        _ => ok("1"),
    })
}

#[test]
fn everything_comes_to_its_end() {
    let played = everything().play();
    assert_eq!(
        played.output(),
        r#"{"seen":[0,0,1,1,2,2],"fork":{"left":{"c":1,"d":null},"right":{"e":1}}}"#
    );
}

#[test]
fn a_pause_anywhere_only_makes_it_later() {
    everything().play_paused_everywhere();
}

#[test]
fn a_cancel_anywhere_leaves_nothing() {
    everything().play_cancelled_everywhere();
}

#[test]
fn a_pause_holds_delays_and_deadlines() {
    let case = |resume: u64| {
        Case::yaml(
            "
actions:
  poll:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { timeout: PT25S }
    delay: PT10S
    actions: { check: { type: shell, run: x } }
",
        )
        .at(14, Outside::Pause)
        .at(resume, Outside::Resume)
        .play()
    };
    let played = case(114);
    assert_eq!(
        played.requests(),
        ["0 check 1", "10000 check 1", "120000 check 1"]
    );
    assert_eq!(played.took_ms(), 125_000);
    assert_eq!(played.status(), RunStatus::TimedOut);
}

#[test]
fn what_fails_in_a_pause_is_retried_after_it() {
    let case = |count: u32| {
        Case::yaml(&format!(
            "
actions:
  a: {{ type: shell, run: x, retry: {{ type: fixed, interval: PT30S, count: {count} }} }}
"
        ))
        .world(|call| {
            if call.n == 0 {
                fails("shell").after(20)
            } else {
                ok("1")
            }
        })
        .at(10, Outside::Pause)
        .at(100, Outside::Resume)
        .play()
    };
    let played = case(1);
    assert_eq!(played.requests(), ["0 a 1", "130000 a 2"]);
    assert_eq!(played.status(), RunStatus::Succeeded);
    // Without a retry, the run fails when it resumes, not during the pause.
    let played = case(0);
    assert_eq!(played.took_ms(), 100_000);
    assert_eq!(played.status(), RunStatus::Failed);
}

#[test]
fn what_is_in_flight_continues_in_a_pause() {
    let played = Case::yaml("actions: { a: { type: shell, run: x }, b: { type: shell, run: x } }")
        .world(|_| ok("1").after(20))
        .at(10, Outside::Pause)
        .at(15, Outside::Resume)
        .play();
    assert_eq!(played.requests(), ["0 a 1", "20000 b 1"]);
    assert!(played.starts.values().all(|starts| *starts == 1));
}

#[test]
fn a_second_pause_and_a_resume_of_what_runs_do_nothing() {
    let played = Case::yaml("actions: { a: { type: wait, interval: PT60S } }")
        .at(1, Outside::Resume)
        .at(10, Outside::Pause)
        .at(20, Outside::Pause)
        .at(30, Outside::Resume)
        .at(40, Outside::Resume)
        .play();
    assert_eq!(played.took_ms(), 80_000);
}

#[test]
fn a_paused_run_can_be_cancelled() {
    let played = Case::yaml("actions: { a: { type: shell, run: x } }")
        .world(|_| Answer::Never)
        .at(1, Outside::Pause)
        .at(2, Outside::Cancel)
        .play();
    assert_eq!(played.status(), RunStatus::Cancelled);
    assert_eq!(played.took_ms(), 2000);
}

#[test]
fn a_wait_began_before_it_ended() {
    let yaml = "
actions:
  nap: { type: wait, interval: PT90S }
  cut: { type: scope, timeout: PT3S, continue_on_error: true, actions: { long: { type: wait, interval: PT1H } } }
outputs:
  nap: \"@dateDifference(actions('nap').startTime, actions('nap').endTime)\"
  cut: \"@dateDifference(actions('long').startTime, actions('long').endTime)\"
";
    assert_eq!(
        Case::yaml(yaml).play().output(),
        r#"{"nap":"00:01:30","cut":"00:00:03"}"#
    );
}

/// A step that waits for a signal.
fn waiting(more: &str) -> Case {
    Case::yaml(&format!(
        "
actions:
  before: {{ type: shell, run: x }}
  approval: {{ type: waitForSignal, {more} signal: approved }}
  after: {{ type: compose, inputs: \"@outputs('approval')\" }}
outputs: \"@outputs('after')\"
"
    ))
    .world(|_| ok("1").after(5))
}

#[test]
fn a_signal_after_the_wait() {
    let played = waiting("")
        .at(60, Outside::Signal("approved", json("{\"by\": 7}")))
        .play();
    assert_eq!(played.output(), r#"{"by":7}"#);
    assert_eq!(played.took_ms(), 60_000);
}

#[test]
fn a_signal_before_the_wait_is_stored() {
    let case = waiting("")
        .at(1, Outside::Signal("other", json("0")))
        .at(2, Outside::Signal("approved", json("1")))
        .at(3, Outside::Signal("approved", json("2")));
    let played = case.play();
    assert_eq!(played.output(), "1");
    assert_eq!(played.took_ms(), 5000);
}

#[test]
fn a_wait_for_a_signal_has_an_end() {
    let played = waiting("timeout: PT20S,").play();
    assert_eq!(
        played.error(),
        "timeout: `approval` was not done within its timeout of 20s; action approval; line 4"
    );
    assert_eq!(played.took_ms(), 25_000);
}

#[test]
fn a_run_that_waits_for_a_signal_waits() {
    let played = waiting("").play();
    assert_eq!(played.status(), RunStatus::Waiting);
    assert_eq!(played.now, START.plus(Duration::from_secs(5)));
    let paused = waiting("")
        .at(10, Outside::Pause)
        .at(20, Outside::Signal("approved", json("1")))
        .at(30, Outside::Resume)
        .play();
    assert_eq!(paused.took_ms(), 30_000);
}

#[test]
fn a_run_that_has_ended_stays_as_it_ended() {
    let case = everything();
    let played = case.play();
    let name = Name::from("go");
    let payload = json("1");
    let late = [
        Event::PauseRequested,
        Event::Resumed,
        Event::CancelRequested,
        Event::Continued,
        Event::Signalled(Signal::new(name, payload)),
    ];
    for event in late {
        let mut state = played.state.clone();
        let transition = advance(&case.program, &mut state, played.now, event.clone()).unwrap();
        assert_eq!(transition.changes, [], "{event:?}");
        assert_eq!(state, played.state, "{event:?}");
    }
}

#[test]
fn after_a_pause_a_loop_says_when_it_continues() {
    let played = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 3)\"
    limit: { timeout: PT25S }
    delay: PT10S
    actions: { check: { type: shell, run: x } }
",
    )
    .at(14, Outside::Pause)
    .at(16, Outside::Resume)
    .play();
    let mut state = RunState::new(played.state.id.clone(), played.state.program);
    for step in &played.steps {
        step.changes
            .iter()
            .for_each(|change| state.apply(change).unwrap());
        if step.event == Event::Resumed {
            break;
        }
    }
    let next: Vec<_> = state.loops().map(|(_, _, one)| one.next_due_at).collect();
    assert_eq!(next, [Some(START.plus(Duration::from_secs(22)))]);
}

/// A process that finds a paused run starts nothing of it and waits for nothing.
#[test]
fn a_paused_run_has_nothing_outstanding() {
    let case = Case::yaml("actions: { a: { type: wait, interval: PT100S } }");
    let paused = case.at(5, Outside::Pause).play();
    assert_eq!(paused.status(), RunStatus::Paused);
    assert_eq!(paused.state.timers.len(), 1);
    assert_eq!(paused.state.outstanding().count(), 0);
    let mut unpaused = paused.state.clone();
    unpaused.paused = None;
    assert_eq!(unpaused.outstanding().count(), 1);
}
