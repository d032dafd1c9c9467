//! Reads everything in a store. Reports each part that cannot be read, and the run that the part belongs to. This file
//! never changes a store.

use super::codec;
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::rows::{Rows, corrupt};
use super::{
    ProgramSource, QUARANTINE_LABEL, ReadStore, RunHeader, StateEntry, Store, StoreError,
    StoredWorkflow,
};
use std::collections::BTreeSet;
use windlass_model::model::Name;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntegrityReport {
    /// Number of runs that can be read in full.
    pub whole: u64,
    /// The parts of the store that cannot be read.
    pub issues: Vec<Issue>,
}

/// A part of the store that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Issue {
    /// The run that the part belongs to; `None` if it belongs to no single run.
    pub run: Option<Name>,
    pub what: &'static str,
    /// Why the part cannot be read.
    pub error: String,
}

impl IntegrityReport {
    pub(super) fn note(&mut self, run: Option<&Name>, what: &'static str, error: &StoreError) {
        self.issues.push(Issue {
            run: run.cloned(),
            what,
            error: error.to_string(),
        });
    }

    fn note_failed(
        &mut self,
        run: Option<&Name>,
        what: &'static str,
        read: Result<(), StoreError>,
    ) {
        if let Err(error) = read {
            self.note(run, what, &error);
        }
    }
}

impl<K: Kv> Rows<K> {
    /// Reads everything. The report contains each part that cannot be read.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if a write failed before.
    pub fn check(&self) -> Result<IntegrityReport, StoreError> {
        self.check_writable()?;
        let mut found = IntegrityReport::default();
        let mut runs: BTreeSet<Name> = BTreeSet::new();
        for row in self.reader.rows(prefixed(&[])) {
            let (key, value) = match row {
                Ok(row) => row,
                Err(error) => {
                    found.note(None, "a page of the database", &error);
                    break;
                }
            };
            let key = key.as_ref();
            let parsed = keys::parse(key);
            let run = parsed.as_ref().and_then(|parsed| parsed.run.as_deref());
            let run = run.map(Name::from);
            // A long commit stores pieces of its values before its own group. If the commit then failed, these pieces
            // remain, so they do not prove that their run exists.
            let is_first = parsed.as_ref().is_some_and(|parsed| parsed.piece == 0);
            let bare = parsed
                .as_ref()
                .is_some_and(|parsed| parsed.family.has_no_value());
            match codec::check(key, value.as_ref()) {
                Err(error) if !bare => {
                    let error = corrupt(&format!("{}: {error}", keys::describe(key)));
                    found.note(run.as_ref(), "a row", &error);
                }
                _ => {}
            }
            runs.extend(run.filter(|_| is_first));
        }
        for run in &runs {
            self.check_run(run, &mut found);
        }
        self.check_shared(&mut found);
        Ok(found)
    }

    fn check_run(&self, run: &Name, found: &mut IntegrityReport) {
        let before = found.issues.len();
        let header = match self.header(run) {
            Ok(header) => header,
            Err(error) => return found.note(Some(run), "its header", &error),
        };
        let ended = self
            .reader
            .known(run)
            .and_then(|head| self.reader.check_archive(run, &head.bounds));
        found.note_failed(Some(run), "its state", self.load(run).map(drop));
        found.note_failed(Some(run), "its program", self.check_program(&header));
        self.check_rows(run, ended, found);
        found.whole += u64::from(found.issues.len() == before);
    }

    /// Reads the loops, the iterations and the events of a run. `ended` is the result of reading the ended iterations.
    pub(super) fn check_rows(
        &self,
        run: &Name,
        ended: Result<(), StoreError>,
        found: &mut IntegrityReport,
    ) {
        let iterations = self.iterations(run, None, usize::MAX).map(drop);
        let events = self.history(run, 0, usize::MAX).map(drop);
        found.note_failed(Some(run), "its loops", self.loops(run).map(drop));
        found.note_failed(Some(run), "its iterations", iterations);
        found.note_failed(Some(run), "its ended iterations", ended);
        found.note_failed(Some(run), "its events", events);
    }

    /// Reads the rows that do not belong to a run.
    fn check_shared(&self, found: &mut IntegrityReport) {
        for (family, what) in [
            (Family::Program, "a program"),
            (Family::Workflow, "a workflow"),
            (Family::FormerWorkflow, "a former text of a workflow"),
            (Family::State, "the state of a workflow"),
        ] {
            for row in self.reader.records(prefixed(&[family.byte()])) {
                let read = row.and_then(|(key, first)| {
                    self.check_named(family, key.as_ref(), first.as_ref())
                });
                found.note_failed(None, what, read);
            }
        }
    }

    /// Reads a record of a family whose rows do not belong to a run.
    pub(super) fn check_named(
        &self,
        family: Family,
        key: &[u8],
        first: &[u8],
    ) -> Result<(), StoreError> {
        match family {
            Family::Program | Family::FormerWorkflow => self
                .reader
                .value(key, first, codec::decode::<ProgramSource>)
                .map(drop),
            Family::Workflow => self
                .reader
                .value(key, first, codec::decode::<StoredWorkflow>)
                .map(drop),
            Family::State => self
                .reader
                .value(key, first, codec::decode::<StateEntry>)
                .map(drop),
            _ => Ok(()),
        }
    }

    /// Reads a run's program. If a repair has lost the program, the run has a label with this reason, and the missing
    /// program is not an issue.
    fn check_program(&self, header: &RunHeader) -> Result<(), StoreError> {
        let known = header.labels.contains_key(QUARANTINE_LABEL);
        let key = |key: &mut Vec<u8>| keys::program(key, header.program);
        if known && self.reader.read(key, |_| Ok(()))?.is_none() {
            return Ok(());
        }
        self.program(header.program).map(drop)
    }
}
