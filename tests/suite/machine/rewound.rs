//! Runs that are retried from an earlier place, without a store: what the new run keeps of the old one, and what it
//! starts again. `life/retry.rs` does the same from outside.

use super::build::{call, of_graph, template};
use super::play::{Case, Played, START, fails, ok};
use std::time::Duration;
use windlass_machine::{Change, FrameKind, Rewound, RunState, Target, TimerPurpose, Wait, rewind};
use windlass_model::hir::{Block, RetryPolicy};
use windlass_model::model::{Backoff, Name};
use windlass_source::source::Span;
use windlass_value::time::Timestamp;

const LATER: Duration = Duration::from_secs(3_600);

fn start(case: &Case) -> RunState {
    RunState::new(Name::from("run"), case.program.hash)
}

fn changes(played: &Played) -> Vec<Change> {
    let steps = played.steps.iter();
    steps.flat_map(|step| step.changes.clone()).collect()
}

fn rewound(case: &Case, changes: &[Change], place: &str) -> RunState {
    let place = Target::Path(place.to_owned());
    let now = START.plus(LATER);
    match rewind(
        &case.program,
        &start(case),
        changes,
        &place,
        &"new".into(),
        now,
    )
    .unwrap()
    {
        Rewound::State(state) => *state,
        other => panic!("{place:?}: {other:?}"),
    }
}

fn seconds(at: Timestamp) -> i64 {
    (at.0 - START.0) / 1_000
}

/// When `last` begins, 100 s after the start, `slow` is in flight and `sleep` has 500 s left.
fn branches() -> Case {
    Case::yaml(
        "
actions:
  both:
    type: parallel
    actions:
      one:
        type: scope
        actions:
          wait: { type: wait, interval: PT100S }
          last: { type: shell, run: x }
      slow: { type: shell, run: x }
      sleep: { type: wait, interval: PT600S }
",
    )
    .world(|call| match call.name {
        "slow" => ok("1").after(5_000),
        _ => fails("shell").after(50),
    })
}

#[test]
fn what_is_in_flight_has_the_keys_of_the_new_run() {
    let case = branches();
    let state = rewound(&case, &changes(&case.play()), "last");
    let keys: Vec<&str> = state
        .effects
        .values()
        .map(|one| &*one.request.key)
        .collect();
    assert_eq!(keys, ["new/slow"]);
    assert_eq!(&*state.id, "new");
}

/// The hour that has passed since then does not count for the run.
#[test]
fn what_waited_has_as_long_to_wait_as_it_had_then() {
    let case = branches();
    let state = rewound(&case, &changes(&case.play()), "last");
    let due: Vec<i64> = state
        .timers
        .values()
        .map(|one| seconds(one.due_at))
        .collect();
    assert_eq!(due, [3_600 + 500]);
}

#[test]
fn an_action_has_all_of_its_attempts_and_all_of_its_time() {
    let mut ask = call("ask");
    ask.timeout = Some(template("PT40S"));
    ask.retry = Some(RetryPolicy {
        is_default: false,
        count: template("@add(1, 1)"),
        backoff: Backoff::Fixed {
            interval: Duration::from_secs(7),
            jitter: windlass_model::model::Jitter::None,
        },
        on: Vec::new(),
        when: None,
        span: Span::default(),
    });
    let body = Block::Sequence(vec![call("first"), ask]);
    let case = of_graph(&[], body).world(|call| match call.name {
        "first" => ok("1").after(10),
        _ => fails("shell"),
    });
    let state = rewound(&case, &changes(&case.play()), "ask");
    let cursor = state.cursors.values().next().unwrap();
    assert_eq!(cursor.wait, Wait::Ready);
    let tried = cursor.frames.iter().find_map(|frame| match &frame.kind {
        FrameKind::Try(tried) => Some(tried),
        _ => None,
    });
    let tried = tried.unwrap();
    assert_eq!((tried.attempt, tried.max_attempts), (1, 3));
    assert_eq!((&tried.last_fault, tried.next_due_at), (&None, None));
    let timers: Vec<_> = state.timers.values().collect();
    assert!(matches!(timers[0].purpose, TimerPurpose::Deadline(_)));
    assert_eq!(seconds(timers[0].due_at), 3_600 + 40);
    assert_eq!(timers.len(), 1);
}

/// A retry can be retried from a place inside itself, but not from a place before its start.
#[test]
fn a_run_that_was_taken_up_is_taken_up_again() {
    let case = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 9, timeout: PT2H }
    actions:
      look: { type: shell, run: x }
      more: { type: shell, run: x }
",
    )
    .world(|call| match (call.name, call.n) {
        ("more", 2) => fails("shell"),
        _ => ok("1"),
    });
    let played = case.play();
    let all = changes(&played);
    for place in ["poll#2", "poll#2/look", "look", "poll#2/more"] {
        let once = rewound(&case, &all, place);
        let began = [Change::Restored(Box::new(once.clone()))];
        let twice = rewound(&case, &began, place);
        assert_eq!(twice, once, "{place}");
        let elsewhere = Target::Path(String::from("poll#1"));
        let now = START.plus(LATER);
        let id = Name::from("new");
        let none = rewind(&case.program, &start(&case), &began, &elsewhere, &id, now).unwrap();
        assert_eq!(none, Rewound::Nowhere, "{place}");
    }
    // If an action begins in the middle of an iteration of the retry, that iteration is not offered as a place.
    let middle = rewound(&case, &all, "poll#2/more");
    let began = [Change::Restored(Box::new(middle))];
    let iteration = Target::Path(String::from("poll#2"));
    let now = START.plus(LATER);
    let id = Name::from("new");
    let found = rewind(&case.program, &start(&case), &began, &iteration, &id, now).unwrap();
    assert_eq!(found, Rewound::Nowhere);
}

/// The place of a failure is given by action and iteration, while other branches have continued.
#[test]
fn an_action_is_found_where_it_stood_and_not_where_another_one_did() {
    let case = branches();
    let all = changes(&case.play());
    let at = |place: Target| {
        let now = START.plus(LATER);
        let id = Name::from("new");
        match rewind(&case.program, &start(&case), &all, &place, &id, now).unwrap() {
            Rewound::State(state) => *state,
            other => panic!("{place:?}: {other:?}"),
        }
    };
    for name in ["wait", "last", "slow"] {
        let by_path = at(Target::Path(name.to_owned()));
        assert_eq!(at(Target::Action(name.into(), None)), by_path, "{name}");
    }
}

/// After the journal was shortened, only the effects at the place itself remain in flight.
#[test]
fn what_is_in_flight_elsewhere_is_not_the_place() {
    let case = branches();
    let played = case.play();
    let mut begun = start(&case);
    let first = played.steps.first().unwrap();
    first
        .changes
        .iter()
        .for_each(|change| begun.apply(change).unwrap());
    assert_eq!(begun.effects.len(), 1);
    let (now, id) = (START.plus(LATER), Name::from("new"));
    let at = |place: &str| {
        let place = Target::Path(place.to_owned());
        rewind(&case.program, &begun, &[], &place, &id, now).unwrap()
    };
    assert_eq!(at("last"), Rewound::Nowhere);
    let Rewound::State(state) = at("slow") else {
        panic!("it had begun");
    };
    assert_eq!(state.effects.len(), 0, "it has not called yet");
    // The same while the run is paused: a wait keeps the time that it had left.
    let sleeps: Vec<i64> = state
        .timers
        .values()
        .map(|one| seconds(one.due_at))
        .collect();
    assert_eq!(sleeps, [3_600 + 100, 3_600 + 600]);
}

/// The last event before an attempt may be the entry of its scope.
#[test]
fn an_attempt_of_a_block_begins_when_it_is_entered() {
    let case = Case::yaml(
        "
actions:
  both:
    type: parallel
    actions:
      outer:
        type: scope
        retry: { type: fixed, interval: PT7S, count: 1 }
        actions:
          inner: { type: scope, actions: { a: { type: shell, run: x } } }
      sleep: { type: wait, interval: PT600S }
",
    )
    .world(|_| fails("shell"));
    let state = rewound(&case, &changes(&case.play()), "a");
    let due: Vec<i64> = state
        .timers
        .values()
        .map(|one| seconds(one.due_at))
        .collect();
    assert_eq!(due, [3_600 + 600 - 7]);
}

/// The branches of one fork exist at the same time, and a branch of a parallel is not an iteration.
#[test]
fn an_iteration_begins_before_the_branches_in_it_and_those_are_there_together() {
    let case = Case::yaml(
        "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    actions:
      first: { type: shell, run: x }
      both:
        type: parallel
        actions:
          a: { type: shell, run: x }
          b: { type: shell, run: x }
          c: { type: shell, run: x }
",
    );
    let all = changes(&case.play());
    let iteration = rewound(&case, &all, "poll#1");
    let cursors: Vec<_> = iteration.cursors.values().collect();
    assert_eq!((cursors.len(), iteration.effects.len()), (1, 0));
    assert_eq!(cursors[0].wait, Wait::Ready);
    let branch = rewound(&case, &all, "b");
    let keys = branch.effects.values().map(|one| &*one.request.key);
    assert_eq!(keys.collect::<Vec<_>>(), ["new/poll#1/a"]);
    assert_eq!(branch.cursors.len(), 4);
}
