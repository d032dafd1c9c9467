//! Following a run: what happened so far and what happens from now on, as plain data that a
//! socket can carry. It never changes the run, and it may join at any time.

use super::report::{OutcomeReport, PauseReport};
use super::{EngineError, Inspector, Run};
use crate::machine::{HistoryEvent, HistoryKind, LoopState, Outcome, RunStatus};
use crate::model::Status;
use crate::scheduler::Update;
use crate::source::Bundle;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// So many events are read at a time.
const PAGE: usize = 1_000;

/// What one who follows a run is told. After `Finished` or `Stuck` nothing more comes, nor after
/// `Paused` unless it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A durable step, or where the run stood when it was first looked at.
    Step {
        /// What it is doing.
        status: RunStatus,
        /// The loops that changed.
        loops: Vec<LoopState>,
        /// The actions that began, those in a loop.
        #[serde(default)]
        began: Vec<Began>,
    },
    /// The history went on; only for those who asked for it.
    Event {
        /// Its place in the history, from 1.
        sequence: u64,
        /// What happened.
        event: HistoryEvent,
    },
    /// The run stands still.
    Paused {
        /// Why.
        pause: PauseReport,
    },
    /// The run ended.
    Finished {
        /// How.
        outcome: OutcomeReport,
    },
    /// The engine cannot go on with it now; it is safe in the store.
    Stuck {
        /// Whether the store is to blame.
        store: bool,
        /// Why.
        message: String,
    },
}

/// An action of a loop that began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The path of the innermost loop around it.
    pub path: String,
    /// What people call it: its title, where it has one, else its name.
    pub action: String,
}

impl Began {
    /// The action that an event tells of. Its key is `run/loop#iteration/…/action`.
    fn of(event: &HistoryEvent) -> Option<Self> {
        match &event.what {
            HistoryKind::ActionStarted { node_name, key, .. } => Self::at(node_name, key),
            _ => None,
        }
    }

    fn at(action: &str, key: &str) -> Option<Self> {
        let place = percent_encoding::percent_decode_str(key)
            .decode_utf8()
            .ok()?;
        let (_, path) = place.split_once('/')?;
        // A step of the format's own is told under the name of the node that it belongs to.
        let around = path.strip_suffix(action);
        let around = around.and_then(|around| around.strip_suffix('/'));
        let (path, _) = around.unwrap_or(path).rsplit_once('#')?;
        Some(Self {
            path: path.to_owned(),
            action: action.to_owned(),
        })
    }
}

/// Follows one run.
pub struct Follower {
    handle: Run,
    inspector: Inspector,
    /// The last event that was told; none: events are not asked for.
    told: Option<u64>,
    ready: VecDeque<Notice>,
    looked: bool,
    done: bool,
    /// Whether it goes on behind a pause.
    patient: bool,
    /// What people call actions, where that is not their name; none before it is needed.
    titles: Option<HashMap<String, String>>,
}

impl Follower {
    /// Follows from here on; with `events`, also the history after that sequence number.
    pub(super) fn new(handle: Run, inspector: Inspector, events: Option<u64>) -> Self {
        Self {
            handle,
            inspector,
            told: events,
            ready: VecDeque::new(),
            looked: false,
            done: false,
            patient: false,
            titles: None,
        }
    }

    /// The same, but it goes on behind a pause: until the run has ended, or stops being moved.
    #[must_use]
    pub fn through_pauses(mut self) -> Self {
        self.patient = true;
        self
    }

    /// The last event that was told.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told.unwrap_or(0)
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.handle.id()
    }

    /// The next notice; none when nothing more comes.
    ///
    /// # Errors
    /// Store errors.
    pub async fn next(&mut self) -> Result<Option<Notice>, EngineError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(Some(notice));
            }
            if self.done {
                return Ok(None);
            }
            if !self.looked {
                self.looked = true;
                self.look()?;
                continue;
            }
            match self.handle.next().await {
                Some(update) => self.take(update)?,
                None => {
                    // The engine stopped, or the run ended before it was watched.
                    self.done = true;
                    self.look()?;
                }
            }
        }
    }

    /// Where the run stands in the store.
    fn look(&mut self) -> Result<(), EngineError> {
        let state = self.inspector.load(self.handle.id())?.state;
        self.catch_up()?;
        if let Some(outcome) = &state.outcome {
            return self.finished(outcome);
        }
        if let Some((_, reason)) = &state.paused {
            let pause = PauseReport::new(reason);
            return self.paused(pause);
        }
        let loops = state.loops().map(|(_, _, row)| row.row()).collect();
        let status = state.status();
        let running = state.effects.values().map(|effect| &effect.request);
        let began = running.filter_map(|request| Began::at(&request.action, &request.key));
        let began = began.collect();
        self.step(status, loops, began);
        Ok(())
    }

    fn take(&mut self, update: Update) -> Result<(), EngineError> {
        match update {
            Update::Step(step) => {
                self.catch_up()?;
                let began = step.history.iter().filter_map(Began::of).collect();
                self.step(step.header.status, step.loops, began);
                Ok(())
            }
            Update::Paused(reason) => {
                self.catch_up()?;
                let pause = PauseReport::new(&reason);
                self.paused(pause)
            }
            Update::Finished(outcome) => {
                self.catch_up()?;
                self.finished(&outcome)
            }
            Update::Stuck(error) => {
                let store = matches!(error, crate::scheduler::ScheduleError::Store(_));
                let message = error.to_string();
                self.last(Notice::Stuck { store, message })
            }
        }
    }

    fn step(&mut self, status: RunStatus, loops: Vec<LoopState>, mut began: Vec<Began>) {
        for one in &mut began {
            if let Some(title) = self.titles().get(&one.action) {
                one.action.clone_from(title);
            }
        }
        self.ready.push_back(Notice::Step {
            status,
            loops,
            began,
        });
    }

    /// A program that cannot be read has no titles.
    fn titles(&mut self) -> &HashMap<String, String> {
        let (handle, inspector) = (&self.handle, &self.inspector);
        self.titles.get_or_insert_with(|| {
            let program = inspector.header(handle.id()).ok().and_then(|header| {
                let source = inspector.source(header.program).ok()?;
                inspector.program(header.program, &source).ok()
            });
            let actions = program.iter().flat_map(|program| &program.actions);
            let titles = actions.filter_map(|action| {
                let title = action.title.as_ref()?;
                Some((action.name.to_string(), title.to_string()))
            });
            titles.collect()
        })
    }

    fn paused(&mut self, pause: PauseReport) -> Result<(), EngineError> {
        if self.patient {
            self.ready.push_back(Notice::Paused { pause });
            return Ok(());
        }
        self.last(Notice::Paused { pause })
    }

    fn last(&mut self, notice: Notice) -> Result<(), EngineError> {
        self.ready.push_back(notice);
        self.done = true;
        Ok(())
    }

    fn finished(&mut self, outcome: &Outcome) -> Result<(), EngineError> {
        let bundle = self.bundle();
        let loops = self.inspector.loops(self.handle.id())?;
        // Only of a run that did not succeed something is told of its variables.
        let run = match outcome.status {
            Status::Succeeded | Status::Skipped => None,
            _ => self.inspector.load(self.handle.id()).ok(),
        };
        let variables = run.map(|run| run.state.variables).unwrap_or_default();
        let outcome = OutcomeReport::new(outcome, bundle.as_ref(), &loops, &variables);
        self.last(Notice::Finished { outcome })
    }

    /// For the places in an error; without it the error is told without them.
    fn bundle(&self) -> Option<Bundle> {
        let header = self.inspector.header(self.handle.id()).ok()?;
        Some(self.inspector.source(header.program).ok()?.bundle)
    }

    /// Tells the events that were stored since the last one told: from the store, so that none is
    /// missed or told twice however late this follower joined.
    fn catch_up(&mut self) -> Result<(), EngineError> {
        let Some(mut told) = self.told else {
            return Ok(());
        };
        loop {
            let page = self.inspector.history(self.handle.id(), told, PAGE)?;
            let full = page.len() == PAGE;
            for (sequence, event) in page {
                told = sequence;
                self.ready.push_back(Notice::Event { sequence, event });
            }
            self.told = Some(told);
            if !full {
                return Ok(());
            }
        }
    }
}
