//! What is stored of the iterations of one loop. A commit's record has the rows of those that it ended,
//! and the events that report attempts and failures; what outlasts the records is in the retained rows.

use super::StoreError;
use super::cells::{IterationFacts, has_error};
use super::journal::{self, Line};
use super::journal_walk::Order;
use super::kv::Kv;
use super::loop_iterations::LoopIterations;
use super::rows::RowReader;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use windlass_machine::{
    Change, HistoryEvent, HistoryKind, IterationRow, LoopState, failed_actions,
};
use windlass_model::model::{Status, path_part};
use windlass_value::time::Timestamp;

/// An iteration that ended, without what it gave.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedIteration {
    pub iteration: u64,
    /// How it ended.
    pub status: Status,
    /// What the authored condition gave.
    pub condition: Option<bool>,
    /// When it began.
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// The most attempts that one of its actions took, from 1.
    pub attempts: u32,
    /// The last failure of one of its actions.
    pub error: Option<Arc<str>>,
    pub row: RowLocation,
}

impl EndedIteration {
    /// Whether it succeeded although an action of it failed.
    #[must_use]
    pub fn has_handled_failure(&self) -> bool {
        self.status == Status::Succeeded && self.error.is_some()
    }
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastStatus {
    pub iteration: u64,
    pub status: Status,
    /// Whether an action of it failed.
    pub has_failure: bool,
}

/// Where the row of an iteration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// In the record of this commit.
    Commit(u64),
    /// Among the rows that are retained of earlier commits.
    Retained,
}

/// What one commit did, and what it has to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRecord {
    /// What changed; nothing where an earlier version stored a snapshot with it.
    pub changes: Vec<Change>,
    /// What the history reports.
    pub history: Vec<HistoryEvent>,
}

impl<K: Kv> RowReader<K> {
    /// What is stored of a loop's iterations.
    pub(super) fn gather_iterations(
        &self,
        run: &str,
        path: &str,
    ) -> Result<LoopIterations, StoreError> {
        let header = self.known(run)?;
        let retained = self.retained_rows(run, &header.bounds)?;
        let mut found = LoopGatherer::new(path);
        found.loops(retained.loops);
        found.rows(retained.iterations, RowLocation::Retained);
        let before = std::mem::take(&mut found.ended);
        let begun = retained.ended.facts_of_unfinished(path);
        found
            .begun
            .extend(begun.map(|(iteration, told)| (iteration, told.clone())));
        // Before the walk: cells of another commit look like damaged ones, and the walk notices that commit.
        let cells = self.archived_cells(run, &retained.ended, path)?;
        let all = (header.bounds.first, header.header.revision);
        self.walk(
            run,
            all,
            Order::OldestFirst,
            Line::decode,
            |number, line| {
                found.events(&line.history);
                found.loops(line.loops);
                found.rows(line.iterations, RowLocation::Commit(number));
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

    /// The whole rows of these iterations of a loop, as far as they are where they were found.
    pub(super) fn read_rows(
        &self,
        run: &str,
        path: &str,
        wanted: &[(u64, RowLocation)],
    ) -> Result<Vec<IterationRow>, StoreError> {
        let header = self.known(run)?;
        let mut found = Vec::with_capacity(wanted.len());
        let mut let_go = Vec::new();
        for (iteration, place) in wanted {
            let own = |row: &IterationRow| row.iteration == *iteration && row.path == path;
            if let RowLocation::Commit(number) = *place
                && number >= header.bounds.first
            {
                let at = (number, number);
                self.walk(run, at, Order::OldestFirst, Line::decode, |_, line| {
                    found.extend(line.iterations.into_iter().rfind(own));
                    ControlFlow::Continue(())
                })?;
                continue;
            }
            let_go.push(*iteration);
        }
        if !let_go.is_empty() {
            let retained = self.retained_rows(run, &header.bounds)?;
            // Those of the last entry of the loop come last.
            found.extend(self.archived_rows(run, &retained.ended, path, &let_go)?);
            let mut rows = retained.iterations;
            rows.retain(|row| row.path == path && let_go.contains(&row.iteration));
            found.extend(rows);
        }
        Ok(found)
    }

    /// The commits up to `last` that were made since `since`, contain something that is wanted, and are
    /// still there; the oldest first.
    pub(super) fn read_commits(
        &self,
        run: &str,
        since: Timestamp,
        last: Option<u64>,
        wanted: &dyn Fn(&HistoryEvent) -> bool,
    ) -> Result<Vec<CommitRecord>, StoreError> {
        let header = self.known(run)?;
        let newest = header.header.revision;
        let all = (
            header.bounds.first,
            last.map_or(newest, |last| last.min(newest)),
        );
        let mut found = Vec::new();
        let read = |bytes: &[u8]| {
            let line = Line::decode(bytes)?;
            let changes = match line.history.iter().any(wanted) {
                true => Some(journal::changes(bytes)?.1),
                false => None,
            };
            Ok((line.history, changes))
        };
        self.walk(
            run,
            all,
            Order::NewestFirst,
            read,
            |_, (history, changes)| {
                let before = history.iter().any(|event| event.at < since);
                found.extend(changes.map(|changes| CommitRecord { changes, history }));
                match before {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
        found.reverse();
        Ok(found)
    }

    /// The changes of the `limit` commits up to `last`, with their numbers, as far as they are still
    /// there; the newest first.
    pub(super) fn read_back(
        &self,
        run: &str,
        last: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<Change>)>, StoreError> {
        let header = self.known(run)?;
        let all = (header.bounds.first, last.min(header.header.revision));
        let mut found = Vec::new();
        let read = |bytes: &[u8]| Ok(journal::changes(bytes)?.1);
        self.walk(run, all, Order::NewestFirst, read, |number, changes| {
            found.push((number, changes));
            match found.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(found)
    }
}

/// Puts together what the records of a run say of one loop.
struct LoopGatherer<'a> {
    path: &'a str,
    begun: HashMap<u64, IterationFacts>,
    state: Option<LoopState>,
    ended: Vec<EndedIteration>,
}

impl<'a> LoopGatherer<'a> {
    fn new(path: &'a str) -> Self {
        Self {
            path,
            begun: HashMap::new(),
            state: None,
            ended: Vec::new(),
        }
    }

    fn loops(&mut self, rows: Vec<LoopState>) {
        let own = rows.into_iter().rfind(|row| row.path == self.path);
        self.state = own.or_else(|| self.state.take());
    }

    fn rows(&mut self, rows: Vec<IterationRow>, place: RowLocation) {
        for row in rows.into_iter().filter(|row| row.path == self.path) {
            let begun = self.begun.remove(&row.iteration).unwrap_or_default();
            let ended = EndedIteration {
                iteration: row.iteration,
                status: row.status,
                condition: row.condition,
                started_at: row.started_at,
                ended_at: row.ended_at,
                attempts: begun.attempts.max(1),
                error: begun.error.filter(|_| has_error(row.status)).map(Arc::from),
                row: place,
            };
            self.ended.push(ended);
        }
    }

    fn events(&mut self, events: &[HistoryEvent]) {
        let attempts = events.iter().map(|event| (&event.what, None));
        let failures = failed_actions(events).map(|(what, error)| (what, Some(error)));
        for (what, error) in attempts.chain(failures) {
            let Some((path, iteration, attempt)) = action_facts(what) else {
                continue;
            };
            let Some(iteration) = iteration_of(self.path, path, iteration) else {
                continue;
            };
            let begun = self.begun.entry(iteration).or_default();
            begun.attempts = begun.attempts.max(attempt);
            if let Some(error) = error {
                begun.error = Some(error.to_owned());
            }
        }
    }
}

/// The iterations that an event about this one belongs to: itself, then those around it.
pub fn enclosing_iterations(path: &str, iteration: u64) -> impl Iterator<Item = (&str, u64)> {
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
pub fn action_facts(event: &HistoryKind) -> Option<(&str, u64, u32)> {
    let (name, path, iteration, attempt) = match event {
        HistoryKind::ActionStarted {
            node_name,
            path: Some(path),
            iteration: Some(iteration),
            attempt,
            ..
        } => (node_name, path, *iteration, *attempt),
        HistoryKind::ActionEnded {
            node_name,
            path: Some(path),
            iteration: Some(iteration),
            attempt,
            ..
        } => (node_name, path, *iteration, *attempt),
        _ => return None,
    };
    let own = path.rsplit('/').next() == Some(&*path_part(name));
    let mut around = enclosing_iterations(path, iteration);
    let (path, iteration) = around.nth(usize::from(own))?;
    Some((path, iteration, attempt))
}
