//! A run on a host: what every driver of the machine needs, whatever keeps its steps and carries out
//! its effects. No task, no store and no clock: the host says what time it is, makes each step
//! durable, and does what a released step asks for.
//!
//! ```text
//!   event, now ─▶ on ─▶ Transition ─▶ the host makes it durable ─▶ release(receipt) ─▶ effects
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
    /// The time of its last event.
    at: Timestamp,
    /// The effects that this host carries out.
    in_flight: BTreeSet<EffectId>,
    /// Effects with smaller ids were requested before this host had the run.
    first_own: EffectId,
    size: Size,
}

impl RunHost {
    /// A run that is about to start.
    #[must_use]
    pub fn new(id: Name, program: Arc<Program>) -> Self {
        let state = RunState::new(id, program.hash);
        Self::restored(program, state, Timestamp(i64::MIN), 0)
    }

    /// A run as it was recorded at `at`, with a state of `bytes` bytes. The state is weighed again when as much
    /// has been recorded; with 0 bytes it is weighed soon.
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

    /// What it runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What it does.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.state.status()
    }

    /// The time of an event: never before the run's last one, should the clock go back.
    #[must_use]
    pub fn event_time(&self, now: Timestamp) -> Timestamp {
        now.max(self.at)
    }

    /// Whether an effect may have been begun by a host that no longer exists.
    #[must_use]
    pub fn is_replayed(&self, id: EffectId) -> bool {
        id < self.first_own
    }

    /// The first effect that this host requested.
    #[must_use]
    pub fn first_own(&self) -> EffectId {
        self.first_own
    }

    /// This host had the run before, and requested the effects from `first_own` on.
    pub fn continue_from(&mut self, first_own: EffectId) {
        self.first_own = first_own;
    }

    /// Advances the run by an event. A timer that is not due does nothing: it was armed before its due
    /// time moved. `changes` is an empty buffer for what changes.
    ///
    /// # Errors
    /// The run contradicts itself. What is in memory of it is no longer valid.
    pub fn handle_event(
        &mut self,
        changes: Vec<Change>,
        event: Event,
        now: Timestamp,
    ) -> Result<Transition, Bug> {
        self.handle_event_within(changes, event, now, &Budget::default())
    }

    /// The same with another budget. Where that is exceeded for good, what this gives is of no use, and what is in
    /// memory of the run neither: [`RunHost::take_over`].
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
                // Its room as well.
                self.in_flight.clear();
            }
        }
    }

    /// Lends its state to someone who carries out an event elsewhere.
    pub fn lend_for(&mut self, event: &Event) -> RunState {
        self.forget_completed(event);
        self.into_state()
    }

    /// Takes its state out.
    pub fn into_state(&mut self) -> RunState {
        let none = RunState::new(self.state.id.clone(), self.program.hash);
        std::mem::replace(&mut self.state, none)
    }

    /// Continues with a state that was advanced elsewhere.
    pub fn take_over(&mut self, state: RunState, at: Timestamp) {
        self.state = state;
        self.at = self.event_time(at);
    }

    /// What a host must do now that a step is durable: nothing that it does already.
    pub fn release(&mut self, step: Transition, durable: &impl Durable) -> Vec<Effect> {
        self.track_in_flight(step.release(durable))
    }

    /// Whether an event comes again, and says the same, if its step is lost: a timer, or that rows are in a file.
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

    /// Whether what an event reports changed nothing anywhere, so that it may happen again with another outcome: a
    /// timer, the answer to a safe request, that rows are in a file, or the next boundary of a loop.
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

    /// What a host does before a step is durable, if it may hold it until then: [`Transition::take_idempotent`].
    pub fn release_idempotent(
        &mut self,
        step: &mut Transition,
        until: Timestamp,
    ) -> Option<Vec<Effect>> {
        let safe = step.take_idempotent(until)?;
        Some(self.track_in_flight(safe))
    }

    /// What a host must do that has just taken over a run: all that is in flight or armed.
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

    /// Counts bytes that were recorded for its steps.
    pub fn add_recorded_bytes(&mut self, bytes: u64) {
        self.size.add(bytes);
    }

    /// Its whole state was recorded, in this many bytes.
    pub fn set_snapshot_bytes(&mut self, bytes: u64) {
        self.size.set_bytes(bytes);
    }

    /// At most about how many bytes of memory its state takes.
    pub fn memory(&mut self) -> u64 {
        self.size.memory(&self.state)
    }

    /// About how many bytes of memory its state takes. To measure that costs as much as to encode it.
    pub fn measure_memory(&mut self) -> u64 {
        self.size.measure(&self.state)
    }

    /// How many bytes its state has, when it is time to weigh it: at the latest when it may have
    /// doubled.
    pub fn weigh(&mut self) -> Option<u64> {
        self.size.weigh(&self.state)
    }

    /// The event that ends a run whose state has more bytes than `limit`, as far as it was weighed.
    #[must_use]
    pub fn state_too_large_event(&self, limit: u64) -> Option<Event> {
        let bytes = self.size.bytes();
        let ends = bytes > limit && !self.status().is_final();
        ends.then_some(Event::StateTooLarge { bytes, limit })
    }
}
