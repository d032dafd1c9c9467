//! Values that workflows store between their runs. A writer passes the version that it has read. While the store's
//! writer is locked, this version is compared with the stored version. A write is durable when it returns.

use super::codec;
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::rows::{RowReader, Rows, lock};
use super::{MAX_RUN_ID, Store, StoreError};
use bincode::{Decode, Encode};
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_model::model::{Name, Origin, sha256_of_parts};
use windlass_value::time::Timestamp;

/// Number of a value's last writes that are remembered, to recognise a repeated write. A run repeats a write if the
/// process ended before the run stored the write's result. So at most a few other writes are between a write and its
/// repetition.
const MAX_REMEMBERED: usize = 32;

/// The owner of a value. If a guest (whose workflow did not come from the operator) and the operator have workflows of
/// the same name, these have different values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct StateOwner {
    pub guest: bool,
    /// The name of the workflow.
    pub workflow: Name,
}

impl StateOwner {
    #[must_use]
    pub fn new(origin: Origin, workflow: Name) -> Self {
        Self {
            guest: origin == Origin::Guest,
            workflow,
        }
    }
}

/// A value that a workflow stores between its runs.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StateEntry {
    pub owner: StateOwner,
    pub name: Name,
    /// `None` if the value was deleted. The version number remains after a deletion, so that a writer that has read an
    /// earlier version cannot overwrite a later value.
    pub value: Option<Value>,
    /// Number of writes of the value.
    pub version: u64,
    pub written_at: Timestamp,
    /// The run that wrote the value; `None` if a person wrote it.
    pub run: Option<Name>,
    /// The idempotency key of the action that wrote the value.
    pub key: Option<String>,
    /// The last writes of runs: for each version, the bytes that identify the write (see [`StateWriter::mark`]).
    writes: BTreeMap<u64, [u8; 8]>,
}

/// The condition for changing a value.
#[derive(Clone, Debug, PartialEq)]
pub enum StateCondition {
    /// Change any value.
    Always,
    /// Change the value only if it has this version (0 if it was never written or was deleted), or if the writing run
    /// itself wrote the current version.
    Version(u64),
    /// Change the value only if it is equal to this one.
    Value(Value),
}

/// A write of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct StateWrite {
    pub owner: StateOwner,
    pub name: Name,
    /// The new value; `None` deletes the value.
    pub value: Option<Value>,
    pub expected: StateCondition,
    pub at: Timestamp,
    /// The action that writes; `None` if a person writes.
    pub by: Option<StateWriter>,
}

/// The action of a run that writes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWriter {
    pub run: Name,
    /// The action's idempotency key.
    pub key: String,
    /// When the run began. A new run may have the id of a deleted run, so the id alone does not identify the run.
    pub started_at: String,
}

impl StateWriter {
    /// Returns the bytes with which a repeated write is recognised.
    fn mark(&self) -> [u8; 8] {
        let whole = sha256_of_parts(&[self.key.as_bytes(), self.started_at.as_bytes()]);
        whole.first_chunk().copied().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum StateOutcome {
    /// The value is durable, with this version. If the write is a repetition, this is the version of the first write.
    Written(u64),
    /// Nothing was written, because the stored value is not the expected one. Contains the stored entry, if there is
    /// one.
    Conflict(Option<Box<StateEntry>>),
}

impl StateWrite {
    /// Returns true if the write may replace the stored value.
    fn is_expected(&self, found: Option<&StateEntry>) -> bool {
        match &self.expected {
            StateCondition::Always => true,
            StateCondition::Value(value) => {
                found.and_then(|found| found.value.as_ref()) == Some(value)
            }
            StateCondition::Version(version) => {
                let own = |found: &StateEntry| {
                    let writer = self.by.as_ref().map(|writer| &writer.run);
                    found.run.is_some() && found.run.as_ref() == writer
                };
                let (stored, deleted) =
                    found.map_or((0, true), |found| (found.version, found.value.is_none()));
                stored == *version || (*version == 0 && deleted) || found.is_some_and(own)
            }
        }
    }
}

impl<K: Kv> RowReader<K> {
    /// Returns the values of one workflow or of all workflows, ordered by name.
    pub(super) fn read_state(
        &self,
        of: Option<&StateOwner>,
    ) -> Result<Vec<StateEntry>, StoreError> {
        let mut prefix = Vec::new();
        match of {
            Some(owner) => keys::workflow_state(&mut prefix, owner, None),
            None => prefix.push(Family::State.byte()),
        }
        let _reading = self.hold_groups();
        let rows = self.records(prefixed(&prefix));
        let entries = rows.map(|row| {
            let (key, first) = row?;
            self.value(key.as_ref(), first.as_ref(), codec::decode::<StateEntry>)
        });
        entries.collect()
    }
}

impl<K: Kv> Rows<K> {
    /// Writes a value; see [`super::Store::write_state`].
    pub(super) fn put_state(&self, write: &StateWrite) -> Result<StateOutcome, StoreError> {
        let lengths = [write.name.len(), write.owner.workflow.len()];
        if lengths.into_iter().any(|bytes| bytes > MAX_RUN_ID) {
            return Err(StoreError::Rejected {
                run: write.owner.workflow.clone(),
                reason: format!("a name of its state has more than {MAX_RUN_ID} bytes"),
            });
        }
        let mut name = Vec::new();
        keys::workflow_state(&mut name, &write.owner, Some(&write.name));
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        let found: Option<StateEntry> = self
            .reader
            .read(|key| key.extend_from_slice(&name), codec::decode)?;
        let mark = write.by.as_ref().map(StateWriter::mark);
        if let (Some(found), Some(mark)) = (&found, mark) {
            let mut writes = found.writes.iter();
            if let Some((version, _)) = writes.find(|(_, known)| **known == mark) {
                return Ok(StateOutcome::Written(*version));
            }
        }
        if !write.is_expected(found.as_ref()) {
            return Ok(StateOutcome::Conflict(found.map(Box::new)));
        }
        let version = found.as_ref().map_or(0, |found| found.version) + 1;
        let mut writes = found.map(|found| found.writes).unwrap_or_default();
        writes.extend(mark.map(|mark| (version, mark)));
        while writes.len() > MAX_REMEMBERED {
            writes.pop_first();
        }
        let entry = StateEntry {
            owner: write.owner.clone(),
            name: write.name.clone(),
            value: write.value.clone(),
            version,
            written_at: write.at,
            run: write.by.as_ref().map(|writer| writer.run.clone()),
            key: write.by.as_ref().map(|writer| writer.key.clone()),
            writes,
        };
        writer.batch.clear();
        let replaced = self
            .reader
            .replace_shared(&mut writer.batch, &name, &entry)?;
        replaced.count_in(&mut writer.root);
        self.make_durable(writer, || ())?;
        Ok(StateOutcome::Written(version))
    }
}
