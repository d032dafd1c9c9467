//! Follows a run: what happened so far and what happens from now on, as plain data that a socket can transfer. A
//! follower never changes the run, and may join at any time.

use super::report::{OutcomeReport, PauseReport};
use super::{EngineError, Inspector, Run};
use crate::scheduler::{OutputLine, Update};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass_actions::OutputStream;
use windlass_machine::program::Program;
use windlass_machine::{
    HistoryEvent, HistoryKind, LoopState, Outcome, PendingEffect, RunState, RunStatus,
    innermost_iteration,
};
use windlass_model::model::Status;
use windlass_source::source::Bundle;
use windlass_value::time::Timestamp;

/// Number of events that are read at a time.
const PAGE: usize = 200;

/// What a follower of a run receives. `Finished` and `Stuck` are the last notices. Without
/// [`Follower::through_pauses`], `Paused` is also a last notice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// A durable step, or the state of the run when it was first read.
    Step {
        /// The status of the run.
        status: RunStatus,
        /// The loops that changed.
        loops: Vec<LoopState>,
        /// The actions in loops that began in the step.
        began: Vec<ActionBegan>,
        /// The attempt that failed in the step, if another one follows.
        retry: Option<Retry>,
    },
    /// An event of the history. Only for followers that request events.
    Event {
        /// The position of the event in the history, from 1.
        sequence: u64,
        event: HistoryEvent,
    },
    /// A command of the run printed a line. The line is not stored.
    Printed {
        action: String,
        /// The stream that the line was printed to.
        stream: OutputStream,
        text: String,
    },
    Paused {
        pause: PauseReport,
    },
    Finished {
        outcome: Box<OutcomeReport>,
    },
    /// The engine cannot continue the run now. The stored state of the run is intact.
    Stuck {
        /// Whether the store is the cause.
        store: bool,
        message: String,
    },
}

/// A failed attempt that is followed by another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The name of the action or block.
    pub action: String,
    /// The error of the attempt.
    pub error: String,
    /// When the next attempt begins.
    pub next_at: Timestamp,
}

impl Retry {
    fn of(event: &HistoryEvent) -> Option<Self> {
        match &event.what {
            HistoryKind::RetryScheduled {
                node_name,
                error,
                next_at,
                ..
            } => Some(Self {
                action: node_name.to_string(),
                error: error.clone(),
                next_at: *next_at,
            }),
            _ => None,
        }
    }
}

/// An action in a loop that began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionBegan {
    /// The path of the innermost loop that encloses the action.
    pub path: String,
    /// The action's title if it has one, else its name.
    pub action: String,
}

impl ActionBegan {
    /// Returns the action that an event reports as begun, if it is in a loop.
    fn of(event: &HistoryEvent) -> Option<Self> {
        match &event.what {
            HistoryKind::ActionStarted {
                node_name,
                path: Some(path),
                ..
            } => Some(Self {
                path: path.clone(),
                action: node_name.to_string(),
            }),
            _ => None,
        }
    }

    /// Returns the action of an effect in flight, if it is in a loop.
    fn in_flight(program: &Program, run: &RunState, effect: &PendingEffect) -> Option<Self> {
        let (path, _) = innermost_iteration(program, run, effect.cursor)?;
        Some(Self {
            path,
            action: effect.request.action.to_string(),
        })
    }
}

/// What a follower sends first.
#[derive(Clone, Copy)]
pub(super) enum FirstNotice {
    /// The current state of the run.
    CurrentState,
    /// The first update of the handle, which has received all updates since the run started. Not the current state: a
    /// follower would receive it before the steps that led to it.
    FirstStep,
}

/// What a follower sends after all stored events.
enum FollowState {
    /// The current state of the run, which it reads from the store.
    ReadCurrent {
        is_last: bool,
    },
    Report(Update),
}

/// Follows one run.
pub struct Follower {
    handle: Run,
    inspector: Inspector,
    printed: mpsc::Receiver<OutputLine>,
    /// The sequence number of the last event that was sent. `None` if events are not requested.
    last_sent: Option<u64>,
    ready: VecDeque<Notice>,
    /// What is sent after all stored events. Events are read a page at a time, and the next page only when the client
    /// has received the last one.
    next: Option<FollowState>,
    done: bool,
    /// Whether the follower continues after the run was paused.
    follows_through_pauses: bool,
    /// The run's program. The outer `None`: it was not read yet. The inner `None`: it cannot be read.
    program: Option<Option<Arc<Program>>>,
}

impl Follower {
    /// Makes a follower that begins with `begin`. With `events`, it also sends the history after this sequence number.
    pub(super) fn new(
        handle: Run,
        inspector: Inspector,
        events: Option<u64>,
        printed: mpsc::Receiver<OutputLine>,
        begin: FirstNotice,
    ) -> Self {
        let next = match begin {
            FirstNotice::CurrentState => Some(FollowState::ReadCurrent { is_last: false }),
            FirstNotice::FirstStep => None,
        };
        Self {
            handle,
            inspector,
            printed,
            last_sent: events,
            ready: VecDeque::new(),
            next,
            done: false,
            follows_through_pauses: false,
            program: None,
        }
    }

    /// Continues through pauses, until the run has ended or its engine stops.
    #[must_use]
    pub fn through_pauses(mut self) -> Self {
        self.follows_through_pauses = true;
        self
    }

    /// Receives no steps, except those with a failed attempt. It is for a caller that does not show steps, because
    /// waking the caller costs as much as the step.
    #[must_use]
    pub fn without_steps(self) -> Self {
        self.handle.only_end();
        self
    }

    /// Returns the sequence number of the last event that was sent.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        self.last_sent.unwrap_or(0)
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.handle.id()
    }

    /// Returns the next notice. `None` after the last one.
    ///
    /// # Errors
    /// Returns store errors.
    pub async fn next(&mut self) -> Result<Option<Notice>, EngineError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(Some(notice));
            }
            if self.done {
                return Ok(None);
            }
            if self.next.is_some() {
                while let Ok(printed) = self.printed.try_recv() {
                    self.ready.push_back(notice_of(printed));
                }
                if !self.catch_up()? {
                    self.report()?;
                }
                continue;
            }
            // Send printed lines before the step that follows from them.
            let update = tokio::select! {
                biased;
                Some(printed) = self.printed.recv() => return Ok(Some(notice_of(printed))),
                update = self.handle.next() => update,
            };
            self.next = Some(match update {
                Some(update) => FollowState::Report(update),
                // The updates ended: the engine stopped, or the run ended before the handle received updates.
                None => FollowState::ReadCurrent { is_last: true },
            });
        }
    }

    fn report(&mut self) -> Result<(), EngineError> {
        match self.next.take() {
            None => Ok(()),
            Some(FollowState::Report(update)) => self.take(update),
            Some(FollowState::ReadCurrent { is_last }) => {
                self.done |= is_last;
                self.read_current()
            }
        }
    }

    /// Reads the run's current state from the store, and prepares the notices for it.
    fn read_current(&mut self) -> Result<(), EngineError> {
        let state = self.inspector.load(self.handle.id())?.state;
        // The run may have continued after the last read of events. Send the events up to this state first.
        while self.catch_up()? {}
        if let Some(outcome) = &state.outcome {
            return self.finished(outcome);
        }
        if let Some((_, reason)) = &state.paused {
            let pause = PauseReport::new(reason);
            return self.paused(pause);
        }
        let loops = state.loops().map(|(_, _, row)| row.row()).collect();
        let status = state.status();
        let program = self.program();
        let in_flight = state.effects.values().filter_map(|effect| {
            let program = program.as_ref()?;
            ActionBegan::in_flight(program, &state, effect)
        });
        let began = in_flight.collect();
        self.step(status, loops, began, None);
        Ok(())
    }

    fn take(&mut self, update: Update) -> Result<(), EngineError> {
        match update {
            Update::Step(step) => {
                let step = Arc::unwrap_or_clone(step);
                let began = step.history.iter().filter_map(ActionBegan::of).collect();
                let mut retries = step.history.iter().filter_map(Retry::of);
                let retry = retries.next();
                self.step(step.header.status, step.loops, began, retry);
                Ok(())
            }
            Update::Paused(reason) => {
                let pause = PauseReport::new(&reason);
                self.paused(pause)
            }
            Update::Finished(outcome) => self.finished(&outcome),
            Update::Stuck(error) => {
                let store = matches!(error, crate::scheduler::ScheduleError::Store(_));
                let message = error.to_string();
                self.end_with(Notice::Stuck { store, message })
            }
        }
    }

    fn step(
        &mut self,
        status: RunStatus,
        loops: Vec<LoopState>,
        mut began: Vec<ActionBegan>,
        retry: Option<Retry>,
    ) {
        for one in &mut began {
            let program = self.program();
            let action = program.iter().find_map(|program| {
                let id = program.find_action(&one.action)?;
                program.action(id)?.title.clone()
            });
            if let Some(title) = action {
                one.action = title.to_string();
            }
        }
        self.ready.push_back(Notice::Step {
            status,
            loops,
            began,
            retry,
        });
    }

    /// Returns the run's program, if it can be read.
    fn program(&mut self) -> Option<Arc<Program>> {
        let (handle, inspector) = (&self.handle, &self.inspector);
        let program = self.program.get_or_insert_with(|| {
            let header = inspector.header(handle.id()).ok()?;
            inspector.program_of(header.program)
        });
        program.clone()
    }

    fn paused(&mut self, pause: PauseReport) -> Result<(), EngineError> {
        if self.follows_through_pauses {
            self.ready.push_back(Notice::Paused { pause });
            return Ok(());
        }
        self.end_with(Notice::Paused { pause })
    }

    fn end_with(&mut self, notice: Notice) -> Result<(), EngineError> {
        self.ready.push_back(notice);
        self.done = true;
        Ok(())
    }

    fn finished(&mut self, outcome: &Outcome) -> Result<(), EngineError> {
        let bundle = self.bundle();
        let loops = self.inspector.loops(self.handle.id())?;
        // Read the state only if the report needs it: it may be large, and the reports of most successful runs do not.
        let succeeded = matches!(outcome.status, Status::Succeeded | Status::Skipped);
        let lists = succeeded
            && self
                .program()
                .is_some_and(|program| program.lists_failed_items());
        let run = match !succeeded || lists {
            true => Some(self.inspector.load(self.handle.id())?.state),
            false => None,
        };
        let outcome = OutcomeReport::new(outcome, bundle.as_ref(), &loops, run.as_ref());
        let outcome = Box::new(outcome);
        self.end_with(Notice::Finished { outcome })
    }

    /// Returns the sources for the positions in an error. `None` if they cannot be read: then the error is reported
    /// without positions.
    fn bundle(&self) -> Option<Bundle> {
        let header = self.inspector.header(self.handle.id()).ok()?;
        Some(self.inspector.source(header.program).ok()?.bundle)
    }

    /// Reads the next page of events from the store, so that this follower misses no event and sends none twice,
    /// however late it joined. Returns whether there may be more.
    fn catch_up(&mut self) -> Result<bool, EngineError> {
        let Some(last) = self.last_sent else {
            return Ok(false);
        };
        let page = self.inspector.history(self.handle.id(), last, PAGE)?;
        let is_full = page.len() == PAGE;
        for (sequence, event) in page {
            self.last_sent = Some(sequence);
            self.ready.push_back(Notice::Event { sequence, event });
        }
        Ok(is_full)
    }
}

fn notice_of(printed: OutputLine) -> Notice {
    Notice::Printed {
        action: printed.action.to_string(),
        stream: printed.stream,
        text: printed.text,
    }
}
