//! The laws of docs/architecture.md as assertions.

use super::play::Played;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_machine::program::Program;
use windlass_machine::{Change, Effect, EffectId, Event, RunState, TimerId, Transition, advance};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

/// What a store would have: all changes so far, applied.
pub struct Books {
    pub folded: RunState,
    last_id: u64,
}

impl Books {
    pub fn new(state: RunState) -> Self {
        Self {
            folded: state,
            last_id: 0,
        }
    }

    /// Stores one transition that led to `state`.
    pub fn keep(&mut self, transition: &Transition, state: &RunState) {
        for change in &transition.changes {
            self.new_id(change);
            self.folded.apply(change).unwrap();
        }
        assert_eq!(self.folded, *state, "the journal is the state (law 7)");
        assert_eq!(again(&transition.changes), transition.changes);
        assert_eq!(again(state), *state, "what is stored reads back the same");
        assert_eq!(again(&transition.iterations), transition.iterations);
        assert_eq!(again(&transition.history), transition.history);
        // A row that an interruption from outside wrote is not a boundary of the loop itself.
        let own = transition
            .iterations
            .iter()
            .filter(|row| row.status != Status::Cancelled);
        let mut ended: Vec<&str> = own.map(|row| &*row.path).collect();
        ended.sort_unstable();
        let all = ended.len();
        ended.dedup();
        let items = transition.changes.iter();
        let items = items.filter(|change| matches!(change, Change::BranchEnded { .. }));
        let shared = all - ended.len();
        assert!(
            shared <= items.count().saturating_sub(1).min(49),
            "one iteration boundary a loop, and few items of a foreach (law 5)"
        );
        if state.outcome.is_some() {
            assert!(state.effects.is_empty() && state.timers.is_empty() && state.ready.is_empty());
        }
        let ready = state
            .cursors
            .iter()
            .filter(|(_, cursor)| cursor.wait.is_ready());
        let ready = ready.map(|(id, _)| *id).collect();
        assert_eq!(
            state.ready, ready,
            "the ready cursors are those that are ready"
        );
    }

    fn new_id(&mut self, change: &Change) {
        let id = match change {
            Change::CursorSpawned(id, _) => id.0,
            Change::EffectRequested(id, _) => id.0,
            Change::TimerArmed(id, _) => id.0,
            _ => return,
        };
        assert!(id > self.last_id, "id {id} was used before (law 4)");
        self.last_id = id;
    }
}

/// Encodes and decodes with the store's encoding.
fn again<T: bincode::Encode + bincode::Decode<()>>(value: &T) -> T {
    let config = bincode::config::standard();
    let bytes = bincode::encode_to_vec(value, config).unwrap();
    let (back, read) = bincode::decode_from_slice(&bytes, config).unwrap();
    assert_eq!(read, bytes.len());
    back
}

/// A repeated completion or timer, immediate or late, has no effect (law 4).
pub fn means_nothing_again(program: &Program, state: &RunState, now: Timestamp, event: &Event) {
    if !matches!(
        event,
        Event::EffectCompleted { .. } | Event::TimerFired { .. }
    ) {
        return;
    }
    let ready = !state.ready.is_empty();
    if state.paused.is_none() && ready {
        // Any event continues what is ready: the step stopped at an iteration's boundary.
        return;
    }
    for late in [0, 3_600] {
        let mut again = state.clone();
        let now = now.plus(Duration::from_secs(late));
        let step = advance(program, &mut again, now, event.clone()).unwrap();
        assert!(step.is_empty(), "{event:?} came twice: {step:?}");
        assert_eq!(again, *state, "{event:?} came twice");
    }
}

/// A driver holds exactly what it would start after a crash.
pub fn driver_holds_what_is_outstanding(
    state: &RunState,
    effects: &BTreeMap<EffectId, Option<Timestamp>>,
    timers: &BTreeMap<TimerId, Timestamp>,
    continues: bool,
) {
    if state.paused.is_some() {
        return;
    }
    let mut held: Vec<Effect> = Vec::new();
    for id in effects.keys() {
        let request = state.effects.get(id);
        let request = request.map(|effect| {
            let variables = state.visible_variables(effect.cursor);
            effect.request.with_state(&variables)
        });
        let request = request.unwrap_or_else(|| panic!("nothing waits for effect {id:?}"));
        held.push(Effect::Start { id: *id, request });
    }
    for (id, due_at) in timers {
        let (id, due_at) = (*id, *due_at);
        held.push(Effect::Arm { id, due_at });
    }
    if continues {
        held.push(Effect::Continue);
    }
    let outstanding: Vec<Effect> = state.outstanding().collect();
    assert_eq!(held, outstanding);
}

/// A play with crashes came to the same end in the same way, and repeated at most one effect per crash.
pub fn same(calm: &Played, crashed: &Played) {
    assert_eq!(calm.state, crashed.state);
    assert_eq!(calm.history, crashed.history);
    assert_eq!(calm.iterations, crashed.iterations);
    assert_eq!(calm.loops, crashed.loops);
    assert_eq!(calm.started, crashed.started);
    for (id, starts) in &crashed.starts {
        assert!(
            *starts <= 1 + crashed.crashes,
            "{id:?} started {starts} times"
        );
    }
}

/// A play with crashes, also during a pause, came to the same end, possibly later.
pub fn same_end(calm: &Played, crashed: &Played) {
    assert_eq!(calm.status(), crashed.status());
    let end = |played: &Played| {
        let outcome = played.state.outcome.clone();
        outcome.map(|outcome| (outcome.output, outcome.error))
    };
    assert_eq!(end(calm), end(crashed));
}

/// A play that was paused for a time came to the same end, later by that time.
pub fn same_but_later(calm: &Played, paused: &Played, later: Duration) {
    let (one, other) = (calm.outcome(), paused.outcome());
    assert_eq!(one.status, other.status);
    assert_eq!(one.output, other.output);
    let fault = |error: &windlass_machine::RunError| error.fault.clone();
    assert_eq!(
        one.error.as_ref().map(fault),
        other.error.as_ref().map(fault)
    );
    assert_eq!(calm.keys(), paused.keys());
    assert_eq!(calm.rows(), paused.rows());
    assert_eq!(one.at.plus(later), other.at, "the clock stood still");
}

/// The result of an ended run: no active loops, and iterations in order.
pub fn ended_well(played: &Played) {
    if played.state.outcome.is_none() {
        return;
    }
    for row in played.loops.values() {
        assert!(row.ended.is_some(), "loop {} still runs", row.path);
    }
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    // The items of a foreach, which has no row itself, may run concurrently.
    let rows = played.iterations.iter();
    for row in rows.filter(|row| played.loops.contains_key(&row.path)) {
        let before = last.insert(&row.path, row.iteration);
        // A loop that is retried as a whole starts again.
        assert!(
            row.iteration == 0 || before == Some(row.iteration - 1),
            "iteration {} of {} came after {before:?}",
            row.iteration,
            row.path
        );
    }
    assert!(played.state.ready.is_empty());
}
