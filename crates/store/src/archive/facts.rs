//! The facts that history events report about iterations: attempts and failures of their actions.

use bincode::{Decode, Encode};
use windlass_machine::{HistoryEvent, HistoryKind, failed_actions};
use windlass_model::model::{Status, path_part};

/// The facts that events reported about an iteration.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct IterationFacts {
    /// The highest number of attempts of one of the iteration's actions; 0 if no action was called.
    pub attempts: u32,
    /// The last failure of an action.
    pub error: Option<String>,
}

impl IterationFacts {
    pub fn add(&mut self, fact: &ReportedFact<'_>) {
        self.attempts = self.attempts.max(fact.attempt);
        if let Some(error) = fact.error {
            self.error = Some(error.to_owned());
        }
    }
}

/// Returns true if the last error of an action is stored for this status. An iteration can succeed although an action
/// in it failed.
pub fn has_error(status: Status) -> bool {
    status.is_failure() || status == Status::Succeeded
}

/// A fact that an event reports about an iteration.
pub struct ReportedFact<'e> {
    pub path: &'e str,
    pub iteration: u64,
    pub attempt: u32,
    pub error: Option<&'e str>,
}

/// Returns the repeated attempts and the failures that events report. Each is returned for its own iteration and again
/// for every enclosing iteration.
pub fn reported_facts(events: &[HistoryEvent]) -> impl Iterator<Item = ReportedFact<'_>> {
    let attempts = events.iter().map(|event| (&event.what, None));
    let failures = failed_actions(events).map(|(what, error)| (what, Some(error)));
    attempts.chain(failures).flat_map(|(what, error)| {
        let facts = action_facts(what).filter(|(.., attempt)| *attempt > 1 || error.is_some());
        facts
            .into_iter()
            .flat_map(move |(path, iteration, attempt)| {
                enclosing_iterations(path, iteration).map(move |(path, iteration)| ReportedFact {
                    path,
                    iteration,
                    attempt,
                    error,
                })
            })
    })
}

/// Returns the given iteration, then the iterations of the enclosing loops.
fn enclosing_iterations(path: &str, iteration: u64) -> impl Iterator<Item = (&str, u64)> {
    let around = path.rmatch_indices('#').filter_map(move |(at, _)| {
        let number = path.get(at + 1..)?.split('/').next()?;
        Some((path.get(..at)?, number.parse().ok()?))
    });
    std::iter::once((path, iteration)).chain(around)
}

/// Returns the iteration of the loop `of` that contains the iteration `iteration` of the loop `path`. `path` is `of`
/// itself, or a loop inside `of`.
#[must_use]
pub fn iteration_of(of: &str, path: &str, iteration: u64) -> Option<u64> {
    let mut around = enclosing_iterations(path, iteration);
    around.find(|(path, _)| *path == of).map(|one| one.1)
}

/// Returns the loop path, iteration and attempt of an event about an action in an iteration; `None` for other events.
/// An event about a loop as a whole belongs to the iteration of the enclosing loop.
fn action_facts(event: &HistoryKind) -> Option<(&str, u64, u32)> {
    let (HistoryKind::ActionStarted {
        node_name,
        path: Some(path),
        iteration: Some(iteration),
        attempt,
        ..
    }
    | HistoryKind::ActionEnded {
        node_name,
        path: Some(path),
        iteration: Some(iteration),
        attempt,
        ..
    }) = event
    else {
        return None;
    };
    let own = path.rsplit('/').next() == Some(&*path_part(node_name));
    let mut around = enclosing_iterations(path, *iteration);
    let (path, iteration) = around.nth(usize::from(own))?;
    Some((path, iteration, *attempt))
}
