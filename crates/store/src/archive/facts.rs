//! What events report about iterations: attempts and failures of their actions.

use bincode::{Decode, Encode};
use windlass_machine::{HistoryEvent, HistoryKind, failed_actions};
use windlass_model::model::{Status, path_part};

/// What the events reported about an iteration.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct IterationFacts {
    /// The most attempts that one of its actions took; 0: no action was called.
    pub attempts: u32,
    /// The last failure.
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

/// Whether an iteration that ended so is one that went wrong.
pub fn is_failure(status: Status) -> bool {
    matches!(status, Status::Failed | Status::TimedOut)
}

/// Whether the last failure of an iteration that ended so is stored: also of one that succeeded all the same.
pub fn has_error(status: Status) -> bool {
    is_failure(status) || status == Status::Succeeded
}

/// What an event reports about an iteration.
pub struct ReportedFact<'e> {
    /// The path of the loop.
    pub path: &'e str,
    pub iteration: u64,
    pub attempt: u32,
    pub error: Option<&'e str>,
}

/// The further attempts and the failures that events report, for every iteration around them.
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

/// The iterations that an event about this one belongs to: itself, then those around it.
fn enclosing_iterations(path: &str, iteration: u64) -> impl Iterator<Item = (&str, u64)> {
    let around = path.rmatch_indices('#').filter_map(move |(at, _)| {
        let number = path.get(at + 1..)?.split('/').next()?;
        Some((path.get(..at)?, number.parse().ok()?))
    });
    std::iter::once((path, iteration)).chain(around)
}

/// The iteration of the loop `of` to which an event about `iteration` of the loop `path` belongs:
/// `path` is that loop itself, or one inside of it.
#[must_use]
pub fn iteration_of(of: &str, path: &str, iteration: u64) -> Option<u64> {
    let mut around = enclosing_iterations(path, iteration);
    around.find(|(path, _)| *path == of).map(|one| one.1)
}

/// What an event reports about an action in an iteration: the loop's path, the iteration, and the attempt.
/// What it reports about a loop itself belongs to the iteration around that.
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
