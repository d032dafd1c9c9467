//! What comes into the machine (events, past tense), what it wants done (effects, imperative),
//! and what it reports to the history.

use super::change::Change;
use super::record::LoopEnd;
use super::state::{EffectId, LoopState, Outcome, RunState, TimerId};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request, Status};
use windlass_value::time::Timestamp;

/// What an environment has in addition to variables: the scheduled time of the run, as `Env::schedule` returns it.
pub const SCHEDULE: &str = "=schedule";

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run was started.
    Started {
        input: Value,
        /// What the program reads of the environment, of its state between runs and of its last run, and what is known
        /// of the start under names that no variable has ([`SCHEDULE`]): an object.
        environment: Value,
    },
    /// The run was started where another one had come to: see [`super::rewind()`].
    Restored(Box<RunState>),
    /// An executor is done.
    EffectCompleted {
        id: EffectId,
        result: Result<Value, Fault>,
    },
    /// A timer's due time has come.
    TimerFired {
        id: TimerId,
    },
    /// Someone sent a signal.
    Signalled(super::signal::Signal),
    PauseRequested,
    /// The pause is over.
    Resumed,
    CancelRequested,
    /// The run's state is larger than it may be: it cannot continue.
    StateTooLarge {
        /// How large it is, as it is stored.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The last transition stopped before it was done; its step is durable now.
    Continued,
}

impl Event {
    /// Whether what it brings has no more than about this many bytes.
    #[must_use]
    pub fn fits_in_bytes(&self, bytes: usize) -> bool {
        match self {
            Self::Started { input, .. } => input.fits_in_bytes(bytes),
            Self::EffectCompleted {
                result: Ok(given), ..
            } => given.fits_in_bytes(bytes),
            Self::EffectCompleted {
                result: Err(fault), ..
            } => {
                let output = fault.output.as_ref();
                output.is_none_or(|output| output.fits_in_bytes(bytes))
            }
            Self::Signalled(signal) => signal.payload.fits_in_bytes(bytes),
            Self::Restored(_) => false,
            Self::TimerFired { .. }
            | Self::PauseRequested
            | Self::Resumed
            | Self::CancelRequested
            | Self::StateTooLarge { .. }
            | Self::Continued => true,
        }
    }
}

/// Something a driver must do, once the step that asks for it is durable. Only a safe request may leave before.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Carry out a request.
    Start { id: EffectId, request: Request },
    /// Cut it; its completion is of no interest.
    Abort { id: EffectId },
    /// Fire a timer when its time comes.
    Arm { id: TimerId, due_at: Timestamp },
    /// Forget a timer.
    Disarm {
        id: TimerId,
        /// When it was to fire.
        due_at: Timestamp,
    },
    /// The run has ended.
    Finish(Outcome),
    /// Send [`Event::Continued`].
    Continue,
}

/// The word of those who keep steps that one is durable: a store's receipt. Only who keeps steps names
/// what it is sealed with, so that no other type can have it.
///
/// ```compile_fail
/// struct Forged;
/// impl windlass_machine::Durable for Forged {}
/// ```
pub trait Durable: sealed::Sealed {}

/// Who implements it, and what makes a value of such a type, is the store's business alone
/// (`tests/suite/architecture.rs`).
pub mod sealed {
    pub trait Sealed {}
}

/// One step of a run: what changed and, once that is durable, what is to be done.
#[must_use = "a transition that is not stored and released loses the run's next step"]
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Transition {
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// What the history reports about it.
    pub history: Vec<HistoryEvent>,
    /// The iterations that ended.
    pub iterations: Vec<IterationRow>,
    /// The loops that changed, as they are now, without the records of their last iteration.
    pub loops: Vec<LoopState>,
    pub(super) effects: Vec<Effect>,
}

impl Transition {
    /// The effects, released by the durability of their step.
    #[must_use]
    pub fn release(self, _durable: &impl Durable) -> Vec<Effect> {
        self.effects
    }

    /// Takes out what leaves before the step is durable, if it may be stored with the next one, but before `until`:
    /// it reaches no limit, and asks for safe requests ([`Request::is_safe`]) and for timers that are not due by
    /// then. For a step to which only events led that come again: all that its requests follow from is durable.
    pub fn take_idempotent(&mut self, until: Timestamp) -> Option<Vec<Effect>> {
        let waits = |effect: &Effect| match effect {
            Effect::Start { request, .. } => request.is_safe(),
            Effect::Arm { due_at, .. } => *due_at >= until,
            Effect::Disarm { .. } => true,
            Effect::Abort { .. } | Effect::Finish(_) | Effect::Continue => false,
        };
        if self.reaches_limit() || !self.effects.iter().all(waits) {
            return None;
        }
        let starts = |effect: &mut Effect| matches!(effect, Effect::Start { .. });
        let safe: Vec<Effect> = self.effects.extract_if(.., starts).collect();
        (!safe.is_empty()).then_some(safe)
    }

    /// Whether a loop reaches a limit in it.
    #[must_use]
    pub fn reaches_limit(&self) -> bool {
        let is_limit = |event: &HistoryEvent| matches!(event.what, HistoryKind::LoopLimit { .. });
        self.history.iter().any(is_limit)
    }

    /// This step and then the next one, as one: for events that came while a commit was in flight.
    pub fn join(&mut self, next: Self) {
        // Mostly there is one event.
        if self.is_empty() && self.history.is_empty() {
            *self = next;
            return;
        }
        self.changes.extend(next.changes);
        self.history.extend(next.history);
        self.iterations.extend(next.iterations);
        self.loops.extend(next.loops);
        next.effects
            .into_iter()
            .for_each(|effect| self.add_effect(effect));
    }

    /// Adds an effect. What is requested and called off in one step never starts; it is called
    /// off all the same, for after a resume it may have been requested before.
    pub(super) fn add_effect(&mut self, effect: Effect) {
        match &effect {
            Effect::Abort { id } => self
                .effects
                .retain(|one| !matches!(one, Effect::Start { id: started, .. } if started == id)),
            Effect::Disarm { id, .. } => self
                .effects
                .retain(|one| !matches!(one, Effect::Arm { id: armed, .. } if armed == id)),
            Effect::Start { .. } | Effect::Arm { .. } | Effect::Finish(_) | Effect::Continue => {}
        }
        self.effects.push(effect);
    }

    /// Whether nothing came of the event, so that nothing needs to be stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.effects.is_empty()
    }
}

/// A line of a run's history.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: HistoryKind,
}

impl HistoryEvent {
    /// Whether an attempt failed and another follows.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self.what, HistoryKind::RetryScheduled { .. })
    }
}

/// The actions of these events, those of one step, that ended with an error, with the error of each: not those that are
/// repeated because what is around them is retried.
pub fn failed_actions(events: &[HistoryEvent]) -> impl Iterator<Item = (&HistoryKind, &str)> {
    events.iter().enumerate().filter_map(|(at, event)| {
        let HistoryKind::ActionEnded {
            error: Some(failure),
            ..
        } = &event.what
        else {
            return None;
        };
        let repeats = |later: &HistoryEvent| match &later.what {
            // The reason why a condition of the retry could not be computed may follow.
            HistoryKind::RetryScheduled { error, .. } => error.starts_with(failure.as_str()),
            _ => false,
        };
        let is_retried = events.iter().skip(at + 1).any(repeats);
        (!is_retried).then_some((&event.what, failure.as_str()))
    })
}

#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum HistoryKind {
    /// The run began.
    RunStarted,
    /// The run ended.
    RunFinished {
        /// How.
        status: Status,
    },
    RunPaused {
        /// Why.
        reason: String,
    },
    /// It continues.
    RunResumed,
    /// An attempt was requested.
    ActionStarted {
        /// The action.
        node_name: Name,
        /// From 1.
        attempt: u32,
        /// Its idempotency key.
        key: String,
        /// The path of the innermost loop or foreach that it is in.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The iteration of that, or the index of its item, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    ActionEnded {
        /// The action.
        node_name: Name,
        /// How.
        status: Status,
        /// Why, when it failed.
        error: Option<String>,
        /// Which attempt it was, from 1.
        attempt: u32,
        /// The path of the innermost loop or foreach that it is in; of a loop, its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The iteration of that, or the index of its item, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    /// An attempt failed and another follows.
    RetryScheduled {
        /// The action or block.
        node_name: Name,
        /// The attempt that failed.
        attempt: u32,
        /// When the next begins.
        next_at: Timestamp,
        /// Why it failed.
        error: String,
    },
    /// A loop was entered.
    LoopStart {
        /// The loop.
        node_name: Name,
        path: String,
        /// Its count limit.
        max_iterations: u64,
    },
    /// An iteration of a loop: where the condition is checked before it, when it begins; else
    /// when it has ended. In TEA each check of a loop is reported.
    LoopIteration {
        /// The loop.
        node_name: Name,
        path: String,
        /// From 0: the iteration that follows, or followed, the condition.
        iteration: u64,
        /// What the authored condition gave.
        condition_result: Option<bool>,
    },
    /// A loop reached a limit.
    LoopLimit {
        /// The loop.
        node_name: Name,
        path: String,
        /// Which one.
        limit: LoopEnd,
    },
    /// A loop ended.
    LoopEnd {
        /// The loop.
        node_name: Name,
        path: String,
        /// How many iterations ended.
        iterations_completed: u64,
        /// Why.
        exit_reason: Name,
    },
    /// A timer was armed.
    TimerSet {
        /// The step that sleeps.
        node_name: Name,
        /// When it fires.
        due_at: Timestamp,
    },
    /// A signal was received from an unknown sender.
    Signalled { name: Name },
    /// A signal was received.
    Answered {
        name: Name,
        /// Who sent it.
        by: Name,
    },
}

/// The row of an ended iteration.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct IterationRow {
    /// The loop's path.
    pub path: String,
    /// From 0.
    pub iteration: u64,
    /// What the authored condition gave before it; none where it was not checked.
    pub condition: Option<bool>,
    /// How it ended.
    pub status: Status,
    /// The outputs of its actions.
    pub result: Value,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
}

impl RunState {
    /// What a driver must do again after a crash: start the effects in flight, arm the timers,
    /// continue where a cursor is ready. Nothing while the run is paused or has ended.
    pub fn outstanding(&self) -> impl Iterator<Item = Effect> + '_ {
        let live = self.outcome.is_none() && self.paused.is_none();
        let starts = self.effects.iter().map(|(id, effect)| Effect::Start {
            id: *id,
            request: effect.request.with_state(self.variables_of(effect.cursor)),
        });
        let timers = self.timers.iter().map(|(id, timer)| Effect::Arm {
            id: *id,
            due_at: timer.due_at,
        });
        let continuation = self.has_ready_cursor().then_some(Effect::Continue);
        starts
            .chain(timers)
            .chain(continuation)
            .filter(move |_| live)
    }
}
