//! Reads the state of a run. Changes nothing.

use super::{Cursor, CursorId, Frame, FrameKind, LoopState, RunState, RunStatus};
use crate::bug::{Bug, MachineResult};
use crate::program::ScopeId;
use crate::record::Records;
use std::sync::Arc;
use windlass_expression::Value;
use windlass_model::model::{
    FAILED_ENDINGS, FAILURE, OWN_KEYS, RECEIVED_VARIABLE, RUN_VARIABLES, SIGNAL_IDS_VARIABLE,
    Status, fault_kind,
};
use windlass_value::time::Timestamp;

impl RunState {
    /// Returns true if the run was cancelled and its cleanup still runs.
    #[must_use]
    pub fn is_cancelling(&self) -> bool {
        let failure = self.variables.get(FAILURE);
        let is = |key: &str, word: &str| {
            failure.and_then(|failure| failure.get(key)?.as_str()) == Some(word)
        };
        self.outcome.is_none()
            && is("status", Status::Cancelled.as_str())
            && is("kind", fault_kind::CANCELLED)
    }

    /// Returns a label for each of `on_failure` and `on_finish` that failed. Returns nothing before the run has ended.
    pub fn failed_endings(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let failed = |name: &&str| {
            // Checked first, because each step calls this, and most runs have not ended.
            self.outcome.is_some()
                && self
                    .variables
                    .get(name)
                    .is_some_and(|error| !error.is_null())
        };
        let labels = FAILED_ENDINGS.into_iter().filter(failed);
        labels.map(|name| (name.to_owned(), "failed".to_owned()))
    }

    /// Returns the status that follows from the run's outcome, pause and effects.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.outcome {
            Some(outcome) => match outcome.status {
                Status::Succeeded | Status::Skipped => RunStatus::Succeeded,
                Status::Failed => RunStatus::Failed,
                Status::TimedOut => RunStatus::TimedOut,
                Status::Cancelled => RunStatus::Cancelled,
            },
            None if self.paused.is_some() => RunStatus::Paused,
            None if self.effects.is_empty() && !self.has_ready_cursor() => RunStatus::Waiting,
            None => RunStatus::Running,
        }
    }

    /// Returns true if a cursor can continue without an event.
    #[must_use]
    pub fn has_ready_cursor(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of signals with this name that the run received.
    /// If the signal has a form or a callback address, waits that ended without an answer are counted as well.
    #[must_use]
    pub fn received(&self, signal: &str) -> u64 {
        let counts = self.variables.get(RECEIVED_VARIABLE);
        let count = counts.and_then(|counts| counts.get(signal)?.as_int());
        count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0)
    }

    /// Returns the ids and digests of the last signals that the run received. Signals without an id are left out. An
    /// earlier version stored no digests.
    pub fn signal_ids(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let ids = self.variables.get(SIGNAL_IDS_VARIABLE);
        let ids = ids.and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(
            |stored| match stored.as_array().map(|pair| pair.as_slice()) {
                Some([id, digest]) => Some((id.as_str()?, digest.as_str())),
                _ => Some((stored.as_str()?, None)),
            },
        )
    }

    /// Returns the due time of the timer that fires first.
    #[must_use]
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.timers.values().map(|timer| timer.due_at).min()
    }

    pub(crate) fn cursor(&self, id: CursorId) -> MachineResult<&Cursor> {
        let found = self.cursors.get(&id).map(|cursor| &**cursor);
        found.ok_or_else(|| Bug::new(format!("the run has no cursor {}", id.0)))
    }

    /// Returns the cursor that has no parent.
    pub(crate) fn root(&self) -> MachineResult<(CursorId, &Cursor)> {
        let mut cursors = self.cursors.iter();
        let root = cursors.find(|(_, one)| one.parent.is_none());
        let root = root.map(|(id, cursor)| (*id, &**cursor));
        root.ok_or_else(|| Bug::new("the run has no root"))
    }

    pub(crate) fn frame(&self, id: CursorId, depth: usize) -> MachineResult<&Frame> {
        let found = self.cursor(id)?.frames.get(depth);
        found.ok_or_else(|| Bug::new(format!("cursor {} has no frame {depth}", id.0)))
    }

    /// Returns the records that `cursor` writes to.
    pub(crate) fn records_of(&self, cursor: CursorId) -> MachineResult<&Records> {
        Ok(&self.cursor(self.record_owner(cursor))?.records)
    }

    /// Returns the cursor that owns the records of `cursor`.
    #[must_use]
    pub fn record_owner(&self, cursor: CursorId) -> CursorId {
        let mut at = cursor;
        while let Some(here) = self.cursors.get(&at) {
            match here.forked_by(at) {
                Some(parent) if !here.owns_records => at = parent,
                Some(_) | None => break,
            }
        }
        at
    }

    /// Returns the cursor whose variables `cursor` uses; `None` if these are the variables of the run.
    #[must_use]
    pub fn variable_owner(&self, cursor: CursorId) -> Option<CursorId> {
        let mut at = cursor;
        loop {
            let here = self.cursors.get(&at)?;
            if here.own_variables().is_some() {
                return Some(at);
            }
            at = here.forked_by(at)?;
        }
    }

    /// Returns the variables that a cursor uses: always an object.
    #[must_use]
    pub fn variables_of(&self, cursor: CursorId) -> &Value {
        let branch = self.variable_owner(cursor);
        let branch = branch.and_then(|id| self.cursors.get(&id));
        let own = branch.and_then(|cursor| cursor.own_variables());
        own.unwrap_or(&self.variables)
    }

    /// Returns a variable that a cursor uses. [`RUN_VARIABLES`] are always those of the run.
    pub(crate) fn variable_of(&self, cursor: CursorId, name: &str) -> Option<&Value> {
        let variables = match RUN_VARIABLES.contains(&name) {
            true => &self.variables,
            false => self.variables_of(cursor),
        };
        variables.get(name)
    }

    /// Returns the variables that expressions and scripts at a cursor read together, without those that only Windlass
    /// uses.
    #[must_use]
    pub fn visible_variables(&self, cursor: CursorId) -> Value {
        let mut variables = self.variables_of(cursor).clone();
        if let Value::Object(map) = &mut variables {
            let own = RUN_VARIABLES
                .iter()
                .filter(|name| name.starts_with(OWN_KEYS));
            for name in own {
                // Only a map that has the variable is copied.
                if map.contains_key(*name) {
                    Arc::make_mut(map).shift_remove(*name);
                }
            }
        }
        variables
    }

    /// Returns all loops that cursors are in: cursor by cursor, and for each cursor the outermost loop first.
    pub fn loops(&self) -> impl Iterator<Item = (CursorId, ScopeId, &LoopState)> {
        self.cursors.iter().flat_map(|(id, cursor)| {
            cursor.frames.iter().filter_map(|frame| match &frame.kind {
                FrameKind::Loop(state) => Some((*id, frame.scope, &**state)),
                _ => None,
            })
        })
    }
}
