//! Workflows that are stored under a name. Runs can be started by this name. A run is pinned to the program with which
//! it started, never to the name.

use super::codec;
use super::header::Root;
use super::keys;
use super::kv::{Kv, prefixed};
use super::rows::{RowReader, Rows, corrupt, lock};
use super::write_batch::WriteBatch;
use super::{ProgramSource, Store, StoreError, StoredWorkflow, WorkflowVersion};
use bincode::Encode;

/// The checksums of a row before and after it is replaced. The row does not belong to a run.
pub(super) struct ReplacedRow {
    old: Option<u32>,
    new: u32,
}

impl ReplacedRow {
    /// Replaces the old checksum in the root's sum by the new one.
    pub fn count_in(&self, root: &mut Root) {
        self.old.into_iter().for_each(|crc| root.subtract_row(crc));
        root.add_row(self.new);
    }
}

impl<K: Kv> RowReader<K> {
    /// Puts two things into a batch: a row that does not belong to a run, and the removal of the old row with all its
    /// pieces.
    pub(super) fn replace_shared<T: Encode>(
        &self,
        batch: &mut WriteBatch,
        name: &[u8],
        value: &T,
    ) -> Result<ReplacedRow, StoreError> {
        let old = self.crc_at(|key| key.extend_from_slice(name))?;
        self.remove_under(batch, name)?;
        let put = batch.put(
            |key| key.extend_from_slice(name),
            |out| codec::encode(out, value),
        );
        let put = put.map_err(|error| corrupt(&error.to_string()))?;
        Ok(ReplacedRow { old, new: put.crc })
    }

    /// Returns the former texts of a workflow, the oldest first.
    pub(super) fn former_of(&self, workflow: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        let mut prefix = Vec::new();
        keys::former_workflows(&mut prefix, workflow);
        let _reading = self.hold_groups();
        let versions = self.records(prefixed(&prefix)).map(|row| {
            let (key, _) = row?;
            let version = keys::parse(key.as_ref()).and_then(|parsed| parsed.version);
            version.ok_or_else(|| corrupt(&keys::describe(key.as_ref())))
        });
        versions.collect()
    }
}

impl<K: Kv> Rows<K> {
    /// Stores a workflow under its name and replaces the old one. Returns false if the name was new. For `former` and
    /// `gone` see [`Store::replace_workflow`].
    pub(super) fn put_workflow(
        &self,
        workflow: &StoredWorkflow,
        former: Option<(&WorkflowVersion, &ProgramSource)>,
        gone: &[WorkflowVersion],
    ) -> Result<bool, StoreError> {
        let mut name = Vec::new();
        keys::workflow(&mut name, &workflow.name);
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        writer.batch.clear();
        let replaced = self
            .reader
            .replace_shared(&mut writer.batch, &name, workflow)?;
        for version in gone {
            let mut key = Vec::new();
            keys::former_workflow(&mut key, &workflow.name, version);
            self.reader.remove_under(&mut writer.batch, &key)?;
        }
        if let Some((version, source)) = former {
            let written = writer.batch.put(
                |key| keys::former_workflow(key, &workflow.name, version),
                |out| codec::encode(out, source),
            );
            written.map_err(|error| corrupt(&error.to_string()))?;
        }
        replaced.count_in(&mut writer.root);
        self.make_durable(writer, || ())?;
        Ok(replaced.old.is_some())
    }

    /// Deletes a workflow and its former texts. Returns false if the name was not stored.
    pub(super) fn remove_workflow_rows(&self, workflow: &str) -> Result<bool, StoreError> {
        let mut name = Vec::new();
        keys::workflow(&mut name, workflow);
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        let Some(old) = self.reader.crc_at(|key| key.extend_from_slice(&name))? else {
            return Ok(false);
        };
        writer.batch.clear();
        self.reader.remove_under(&mut writer.batch, &name)?;
        let mut former = Vec::new();
        keys::former_workflows(&mut former, workflow);
        self.reader.remove_under(&mut writer.batch, &former)?;
        writer.root.subtract_row(old);
        self.make_durable(writer, || ())?;
        Ok(true)
    }
}
