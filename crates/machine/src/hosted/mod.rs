//! A run on a host (a driver of the machine). This file has what every host needs, independent of how the host stores
//! steps and executes effects. It uses no task, no store and no clock: the host passes the time, makes each step
//! durable, and executes the effects of a released step.
//!
//! ```text
//!   event, now ─▶ handle_event ─▶ Transition ─▶ the host makes it durable ─▶ release(receipt) ─▶ effects
//! ```

mod size;

pub use size::state_size;

use crate::program::Program;
use crate::{
    Budget, Bug, Change, Durable, Effect, EffectId, Event, RunState, RunStatus, Transition,
    advance_into,
};
use size::Size;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_model::model::Name;
use windlass_value::time::Timestamp;

/// A run in the memory of a host.
pub struct RunHost {
    program: Arc<Program>,
    state: RunState,
    /// The time of the last event.
    at: Timestamp,
    /// The effects that this host executes.
    in_flight: BTreeSet<EffectId>,
    /// Effects with smaller ids than this were requested before this host loaded the run.
    first_own: EffectId,
    size: Size,
}

impl RunHost {
    /// Creates a run that is about to start.
    #[must_use]
    pub fn new(id: Name, program: Arc<Program>) -> Self {
        let state = RunState::new(id, program.hash);
        Self::restored(program, state, Timestamp(i64::MIN), 0)
    }

    /// Creates a run from a stored state. `at` is the time of the last event, and `bytes` the size of the state.
    /// The state is measured again when about `bytes` further bytes have been recorded. If `bytes` is 0, it is measured
    /// soon.
    #[must_use]
    pub fn restored(program: Arc<Program>, state: RunState, at: Timestamp, bytes: u64) -> Self {
        Self {
            first_own: EffectId(state.next_id),
            program,
            state,
            at,
            in_flight: BTreeSet::new(),
            size: Size::of(bytes),
        }
    }

    #[must_use]
    pub fn state(&self) -> &RunState {
        &self.state
    }

    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.state.status()
    }

    /// Returns the time to use for an event. This is `now`, but never before the run's last event, even if the clock
    /// was set back.
    #[must_use]
    pub fn event_time(&self, now: Timestamp) -> Timestamp {
        now.max(self.at)
    }

    /// Returns true if another host may have started the effect before this one loaded the run.
    #[must_use]
    pub fn is_replayed(&self, id: EffectId) -> bool {
        id < self.first_own
    }

    /// Returns the smallest effect id that this host itself has requested or will request.
    #[must_use]
    pub fn first_own(&self) -> EffectId {
        self.first_own
    }

    /// Continues in place of the host that had the run before. `first_own` is the smallest effect id that this host
    /// itself requested.
    pub fn continue_from(&mut self, first_own: EffectId) {
        self.first_own = first_own;
    }

    /// Advances the run by an event. The event of a timer that is not due does nothing: its due time moved after the
    /// timer was armed. `changes` is an empty buffer, which the transition uses for its changes.
    ///
    /// # Errors
    /// The run contradicts itself. The state in memory is invalid.
    pub fn handle_event(
        &mut self,
        changes: Vec<Change>,
        event: Event,
        now: Timestamp,
    ) -> Result<Transition, Bug> {
        self.handle_event_within(changes, event, now, &Budget::default())
    }

    /// Does the same as [`RunHost::handle_event`], within the given budget of work. If the work exceeds the budget and
    /// also its reserve for handling the fault, neither the transition nor the state in memory is valid. Then use
    /// [`RunHost::take_over`].
    ///
    /// # Errors
    /// As [`RunHost::handle_event`].
    pub fn handle_event_within(
        &mut self,
        changes: Vec<Change>,
        event: Event,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Transition, Bug> {
        let now = self.event_time(now);
        self.forget_completed(&event);
        if let Event::TimerFired { id } = &event {
            let timer = self.state.timers.get(id);
            if timer.is_some_and(|timer| timer.due_at > now) {
                return Ok(Transition::default());
            }
        }
        self.at = now;
        let step = advance_into(changes, &self.program, &mut self.state, now, event, budget);
        self.state.shrink_to_fit();
        step
    }

    fn forget_completed(&mut self, event: &Event) {
        if let Event::EffectCompleted { id, .. } = event {
            self.in_flight.remove(id);
            if self.in_flight.is_empty() {
                // This releases the memory of the set.
                self.in_flight.clear();
            }
        }
    }

    /// Moves the state out, so that another thread can compute the event.
    pub fn lend_for(&mut self, event: &Event) -> RunState {
        self.forget_completed(event);
        self.into_state()
    }

    /// Moves the state out. The host then has an empty state.
    pub fn into_state(&mut self) -> RunState {
        let none = RunState::new(self.state.id.clone(), self.program.hash);
        std::mem::replace(&mut self.state, none)
    }

    /// Continues with a state that another thread has advanced.
    pub fn take_over(&mut self, state: RunState, at: Timestamp) {
        self.state = state;
        self.at = self.event_time(at);
    }

    /// Returns the effects of a step that is durable now. Leaves out effects that this host already executes.
    pub fn release(&mut self, step: Transition, durable: &impl Durable) -> Vec<Effect> {
        self.track_in_flight(step.release(durable))
    }

    /// Returns true for an event that will be delivered again, with the same content, if its step is lost. Such events
    /// are timers, and notices that an append has written its rows to a file.
    #[must_use]
    pub fn is_redelivered(&self, event: &Event) -> bool {
        match event {
            Event::TimerFired { .. } => true,
            Event::EffectCompleted { id, result } if result.is_ok() => {
                let effect = self.state.effects.get(id);
                effect.is_some_and(|effect| effect.request.appends())
            }
            _ => false,
        }
    }

    /// Returns true if the work that an event reports had no side effects. So the work may be repeated, even with
    /// another outcome.
    /// Such events are timers, answers to safe requests, notices that an append has written its rows to a file, and
    /// [`Event::Continued`].
    #[must_use]
    pub fn is_side_effect_free(&self, event: &Event) -> bool {
        match event {
            Event::Continued => true,
            Event::EffectCompleted { id, .. } => {
                let effect = self.state.effects.get(id);
                effect.is_some_and(|effect| effect.request.is_safe()) || self.is_redelivered(event)
            }
            _ => self.is_redelivered(event),
        }
    }

    /// Returns the requests that a host may start before the step is durable; see [`Transition::take_idempotent`].
    pub fn release_idempotent(
        &mut self,
        step: &mut Transition,
        until: Timestamp,
    ) -> Option<Vec<Effect>> {
        let safe = step.take_idempotent(until)?;
        Some(self.track_in_flight(safe))
    }

    /// Returns the effects that a host must execute after it has loaded a run: it starts all effects in flight and arms
    /// all timers.
    pub fn outstanding(&mut self) -> Vec<Effect> {
        let outstanding = self.state.outstanding().collect();
        self.track_in_flight(outstanding)
    }

    fn track_in_flight(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        effects.retain(|effect| match effect {
            Effect::Start { id, .. } => self.in_flight.insert(*id),
            Effect::Abort { id } => self.in_flight.remove(id),
            Effect::Finish(_) => {
                self.in_flight.clear();
                true
            }
            Effect::Arm { .. } | Effect::Disarm { .. } | Effect::Continue => true,
        });
        effects
    }

    /// Adds the number of bytes that were stored for steps of the run.
    pub fn add_recorded_bytes(&mut self, bytes: u64) {
        self.size.add(bytes);
    }

    /// Sets the size of the state to the size of a snapshot that was just stored.
    pub fn set_snapshot_bytes(&mut self, bytes: u64) {
        self.size.set_bytes(bytes);
    }

    /// Returns an upper estimate of the state's memory, in bytes.
    pub fn memory(&mut self) -> u64 {
        self.size.memory(&self.state)
    }

    /// Measures the state's memory, in bytes. This costs as much as encoding the state.
    pub fn measure_memory(&mut self) -> u64 {
        self.size.measure(&self.state)
    }

    /// Measures the size of the state in bytes if it may have doubled since it was last measured. Otherwise returns
    /// `None`.
    pub fn weigh(&mut self) -> Option<u64> {
        self.size.weigh(&self.state)
    }

    /// Returns the event that ends a run whose state had more than `limit` bytes when it was last measured.
    #[must_use]
    pub fn state_too_large_event(&self, limit: u64) -> Option<Event> {
        let bytes = self.size.bytes();
        let ends = bytes > limit && !self.status().is_final();
        ends.then_some(Event::StateTooLarge { bytes, limit })
    }
}
