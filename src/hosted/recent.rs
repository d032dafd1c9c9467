//! The last of what a run did, for a host whose records cannot be read at any time.

use crate::machine::{HistoryEvent, IterationRow, Transition};
use std::collections::VecDeque;

/// The last iterations and lines of history of a run; of each so many at most.
#[derive(Debug, Default)]
pub struct Recent {
    most: usize,
    iterations: VecDeque<IterationRow>,
    history: VecDeque<HistoryEvent>,
    events: u64,
}

#[allow(dead_code, reason = "the scheduler's records can be read")]
impl Recent {
    pub(super) fn of(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, step: &Transition) {
        if self.most == 0 {
            return;
        }
        self.events += step.history.len() as u64;
        self.history.extend(step.history.iter().cloned());
        self.iterations.extend(step.iterations.iter().cloned());
        let many = self.history.len().saturating_sub(self.most);
        self.history.drain(..many);
        let many = self.iterations.len().saturating_sub(self.most);
        self.iterations.drain(..many);
    }

    /// The last iterations, in the order they ended.
    pub fn iterations(&self) -> impl Iterator<Item = &IterationRow> {
        self.iterations.iter()
    }

    /// The last lines of the history, each with its number from 1.
    pub fn history(&self) -> impl Iterator<Item = (u64, &HistoryEvent)> {
        let before = self.events - self.history.len() as u64;
        (before + 1..).zip(&self.history)
    }
}
