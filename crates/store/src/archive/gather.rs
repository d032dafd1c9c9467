//! Collects all stored data about the iterations of one loop. The record of a commit has the rows of the iterations
//! that the commit ended, and events about their attempts and failures. What remains of removed records is in the run's
//! retained rows and in the archive.

use super::facts::{IterationFacts, has_error, reported_facts};
use super::loop_iterations::LoopIterations;
use crate::StoreError;
use crate::journal::CommitReport;
use crate::journal_walk::Order;
use crate::kv::Kv;
use crate::rows::RowReader;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use windlass_machine::{HistoryEvent, IterationRow, LoopState};
use windlass_model::model::Status;
use windlass_value::time::Timestamp;

/// An ended iteration, without the results of its actions.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedIteration {
    pub iteration: u64,
    /// How the iteration ended.
    pub status: Status,
    /// The result of the authored condition.
    pub condition: Option<bool>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// The highest number of attempts of one of its actions; 1 if no action was called.
    pub attempts: u32,
    /// The last failure of one of its actions.
    pub error: Option<Arc<str>>,
    pub row: RowLocation,
}

impl EndedIteration {
    /// Returns true if the iteration succeeded although an action in it failed.
    #[must_use]
    pub fn has_handled_failure(&self) -> bool {
        self.status == Status::Succeeded && self.error.is_some()
    }
}

/// The location of an iteration's whole row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// In the record of this commit.
    Commit(u64),
    /// In the retained rows, or in the archive.
    Retained,
}

impl<K: Kv> RowReader<K> {
    /// Collects what is stored of a loop's iterations.
    pub(crate) fn gather_iterations(
        &self,
        run: &str,
        path: &str,
    ) -> Result<LoopIterations, StoreError> {
        let header = self.known(run)?;
        let retained = self.retained_rows(run, &header.bounds)?;
        let mut found = LoopGatherer {
            path,
            ..LoopGatherer::default()
        };
        found.loops(retained.loops);
        found.rows(retained.iterations, RowLocation::Retained);
        let before = std::mem::take(&mut found.ended);
        found.facts = retained.archive.facts_of_unfinished(path);
        // Read the cells before the records. If a commit replaces the cells meanwhile, they look damaged. Then `walk`
        // fails as well, and the caller reads everything again.
        let cells = self.archived_cells(run, &retained.archive, path)?;
        let all = (header.bounds.first, header.header.revision);
        self.walk(
            run,
            all,
            Order::OldestFirst,
            CommitReport::decode,
            |number, report| {
                found.events(&report.history);
                found.loops(report.loops);
                found.rows(report.iterations, RowLocation::Commit(number));
                ControlFlow::Continue(())
            },
        )?;
        Ok(LoopIterations::new(
            path,
            found.state,
            before,
            cells,
            found.ended,
        ))
    }

    /// Returns the whole rows of these iterations of a loop. If a row is no longer at its location, it is left out.
    pub(crate) fn read_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError> {
        let header = self.known(run)?;
        let mut found = Vec::with_capacity(wanted.len());
        let mut removed = Vec::new();
        for (iteration, place) in wanted {
            let own = |row: &IterationRow| row.iteration == *iteration && row.path == path;
            if let RowLocation::Commit(number) = *place
                && number >= header.bounds.first
            {
                let at = (number, number);
                self.walk(
                    run,
                    at,
                    Order::OldestFirst,
                    CommitReport::decode,
                    |_, report| {
                        found.extend(report.iterations.into_iter().rfind(own));
                        ControlFlow::Continue(())
                    },
                )?;
                continue;
            }
            removed.push(*iteration);
        }
        if !removed.is_empty() {
            let retained = self.retained_rows(run, &header.bounds)?;
            // If the loop was entered several times, the rows of the last entry must be last in the result.
            found.extend(self.archived_rows(run, &retained.archive, path, &removed)?);
            let mut rows = retained.iterations;
            rows.retain(|row| row.path == path && removed.contains(&row.iteration));
            found.extend(rows);
        }
        Ok(found)
    }
}

/// Collects what the records of a run report about one loop.
#[derive(Default)]
struct LoopGatherer<'a> {
    path: &'a str,
    facts: HashMap<u64, IterationFacts>,
    state: Option<LoopState>,
    ended: Vec<EndedIteration>,
}

impl LoopGatherer<'_> {
    fn loops(&mut self, rows: Vec<LoopState>) {
        let own = rows.into_iter().rfind(|row| row.path == self.path);
        self.state = own.or_else(|| self.state.take());
    }

    fn rows(&mut self, rows: Vec<IterationRow>, place: RowLocation) {
        for row in rows.into_iter().filter(|row| row.path == self.path) {
            let facts = self.facts.remove(&row.iteration).unwrap_or_default();
            let ended = EndedIteration {
                iteration: row.iteration,
                status: row.status,
                condition: row.condition,
                started_at: row.started_at,
                ended_at: row.ended_at,
                attempts: facts.attempts.max(1),
                error: facts.error.filter(|_| has_error(row.status)).map(Arc::from),
                row: place,
            };
            self.ended.push(ended);
        }
    }

    fn events(&mut self, events: &[HistoryEvent]) {
        for fact in reported_facts(events).filter(|fact| fact.path == self.path) {
            self.facts.entry(fact.iteration).or_default().add(&fact);
        }
    }
}
