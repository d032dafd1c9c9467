//! Events (the input of the machine, named in the past tense), effects (its output, named in the imperative), and the
//! machine's reports to the history.

use super::change::Change;
use super::record::LoopEnd;
use super::state::{EffectId, LoopState, Outcome, RunState, TimerId};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request, Status};
use windlass_value::time::Timestamp;

/// Key of the run's scheduled time in its environment, as `Env::schedule` returns it. No variable has this name.
pub const SCHEDULE: &str = "=schedule";

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Started {
        input: Value,
        /// An object with the values that the program reads from outside: environment variables, the workflow's values
        /// between runs, and its last run.
        /// Facts about the start have names that no environment variable can have ([`SCHEDULE`]).
        environment: Value,
    },
    /// The run was started from a point of another run: see [`super::rewind()`].
    Restored(Box<RunState>),
    /// An executor completed an effect.
    EffectCompleted {
        id: EffectId,
        result: Result<Value, Fault>,
    },
    /// A timer is due.
    TimerFired {
        id: TimerId,
    },
    /// A signal was received.
    Signalled(super::signal::Signal),
    PauseRequested,
    /// The pause ended.
    Resumed,
    CancelRequested,
    /// The run's state exceeds the limit: the run cannot continue.
    StateTooLarge {
        /// Size of the encoded state, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The last transition ended with [`Effect::Continue`], and its step is durable now.
    Continued,
}

impl Event {
    /// Returns true if each value in the event has at most about this many bytes.
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

/// An effect: what a driver must do when the step that requests it is durable. Only a safe request (one without side
/// effects) may start before.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Carry out a request.
    Start { id: EffectId, request: Request },
    /// Abort an effect. If it completes nevertheless, the completion is ignored.
    Abort { id: EffectId },
    /// Fire a timer at its due time.
    Arm { id: TimerId, due_at: Timestamp },
    /// Remove a timer.
    Disarm {
        id: TimerId,
        /// The due time of the timer.
        due_at: Timestamp,
    },
    /// The run has ended.
    Finish(Outcome),
    /// Send [`Event::Continued`].
    Continue,
}

/// The proof that a step is durable, such as a store's receipt.
/// Only code that makes steps durable may use the trait [`sealed::Sealed`], so no other type can be a proof.
///
/// ```compile_fail
/// struct Forged;
/// impl windlass_machine::Durable for Forged {}
/// ```
pub trait Durable: sealed::Sealed {}

/// Only `store` and `temporal` implement [`Durable`] and make values of such types (`tests/suite/architecture.rs`).
pub mod sealed {
    pub trait Sealed {}
}

/// One step of a run: its changes and, once they are durable, its effects.
#[must_use = "a transition that is not stored and released loses the run's next step"]
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Transition {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The new entries of the history.
    pub history: Vec<HistoryEvent>,
    /// The iterations that ended.
    pub iterations: Vec<IterationRow>,
    /// The loops that changed, in their new state, without the records of their last iteration.
    pub loops: Vec<LoopState>,
    pub(super) effects: Vec<Effect>,
}

impl Transition {
    /// Returns the effects. `_durable` proves that the step is durable.
    #[must_use]
    pub fn release(self, _durable: &impl Durable) -> Vec<Effect> {
        self.effects
    }

    /// Removes and returns the requests that may start before the step is durable. The step is then stored together
    /// with the next one. So this returns `None` if the step must not wait. That is the case if it reaches a limit, if
    /// it has a request that is not safe ([`Request::is_safe`]), or if one of its timers is due before `until`. Also
    /// returns `None` if the step has no requests. Call this only for a step whose events will all be redelivered. Then
    /// everything that its requests depend on is already durable.
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

    /// Returns true if a loop reaches a limit in this step.
    #[must_use]
    pub fn reaches_limit(&self) -> bool {
        let is_limit = |event: &HistoryEvent| matches!(event.what, HistoryKind::LoopLimit { .. });
        self.history.iter().any(is_limit)
    }

    /// Appends the next step to this one. Used for events that arrived while a commit was in flight.
    pub fn join(&mut self, next: Self) {
        // In most cases there is only one event, and this step is still empty.
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

    /// Adds an effect. If an effect is requested and aborted in the same step, it never starts. The abort is added
    /// nevertheless: a resume requests effects again that may have been started before.
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

    /// Returns true if the step has neither changes nor effects, so that nothing needs to be stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.effects.is_empty()
    }
}

/// An entry of a run's history.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// When the event happened.
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: HistoryKind,
}

impl HistoryEvent {
    /// Returns true if an attempt failed and another follows.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self.what, HistoryKind::RetryScheduled { .. })
    }
}

/// Returns the actions that ended with an error in the events of one step, with the error of each.
/// Leaves out actions that will run again because an enclosing scope is retried.
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
            // The error begins with the failure. After it, the error may say why the retry's condition could not be
            // computed.
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
        /// How the run ended.
        status: Status,
    },
    RunPaused {
        /// Why the run is paused.
        reason: String,
    },
    /// The run continues.
    RunResumed,
    /// An attempt was requested.
    ActionStarted {
        /// The action.
        node_name: Name,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The idempotency key of the action.
        key: String,
        /// The path of the innermost loop or foreach that the action is in.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The iteration of that loop, or the index of the foreach's item, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    ActionEnded {
        /// The action.
        node_name: Name,
        /// How the action ended.
        status: Status,
        /// Why the action failed; `None` if it did not fail.
        error: Option<String>,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The path of the innermost loop or foreach that the action is in; for a loop, its own path.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The iteration of that loop, or the index of the foreach's item, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u64>,
    },
    /// An attempt failed and another follows.
    RetryScheduled {
        /// The action or block.
        node_name: Name,
        /// The attempt that failed.
        attempt: u32,
        /// When the next attempt begins.
        next_at: Timestamp,
        /// Why the attempt failed.
        error: String,
    },
    /// A loop was entered.
    LoopStart {
        /// The loop.
        node_name: Name,
        path: String,
        /// Maximum number of iterations.
        max_iterations: u64,
    },
    /// An iteration of a loop. If the loop checks its condition before an iteration, this is reported when the
    /// iteration begins. If it checks after an iteration, this is reported when the iteration has ended. In TEA (The
    /// Edge Agent), each check of a loop is reported.
    LoopIteration {
        /// The loop.
        node_name: Name,
        path: String,
        /// The iteration that follows, or followed, the condition; from 0.
        iteration: u64,
        /// Result of the authored condition.
        condition_result: Option<bool>,
    },
    /// A loop reached a limit.
    LoopLimit {
        /// The loop.
        node_name: Name,
        path: String,
        /// Which limit was reached.
        limit: LoopEnd,
    },
    /// A loop ended.
    LoopEnd {
        /// The loop.
        node_name: Name,
        path: String,
        /// Number of iterations that ended.
        iterations_completed: u64,
        /// Why the loop ended.
        exit_reason: Name,
    },
    /// A timer was armed.
    TimerSet {
        /// The step that sleeps.
        node_name: Name,
        /// When the timer fires.
        due_at: Timestamp,
    },
    /// A signal was received from an unknown sender.
    Signalled { name: Name },
    /// A signal was received.
    Answered {
        name: Name,
        /// The sender.
        by: Name,
    },
}

/// The row of an ended iteration.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
pub struct IterationRow {
    /// The loop's path.
    pub path: String,
    /// Number of the iteration, from 0.
    pub iteration: u64,
    /// Result of the authored condition before the iteration; `None` if it was not checked.
    pub condition: Option<bool>,
    /// How the iteration ended.
    pub status: Status,
    /// The outputs of the actions in the iteration.
    pub result: Value,
    /// When the iteration began.
    pub started_at: Timestamp,
    /// When the iteration ended.
    pub ended_at: Timestamp,
}

impl RunState {
    /// Returns what a driver must do again after a crash: start the effects in flight, arm the timers, continue if a
    /// cursor is ready. Returns nothing while the run is paused or has ended.
    pub fn outstanding(&self) -> impl Iterator<Item = Effect> + '_ {
        let live = self.outcome.is_none() && self.paused.is_none();
        let starts = self.effects.iter().map(|(id, effect)| Effect::Start {
            id: *id,
            request: effect
                .request
                .with_state(&self.visible_variables(effect.cursor)),
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
