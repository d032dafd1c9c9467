//! Workflows that are stored under a name, so that runs can be started by it. A run is pinned to
//! the program it was started with, never to a name.

use super::codec;
use super::keys::{self, Family};
use super::kv::{Kv, prefixed};
use super::rows::{Rows, corrupt, lock};
use super::{ProgramSource, Store, StoreError, StoredWorkflow, WorkflowVersion};
use std::ops::Bound;

impl<K: Kv> Rows<K> {
    /// Keeps a workflow under its name, instead of the one that was there. False when there was
    /// none. `former` and `gone` are as of [`Store::replace_workflow`].
    pub(super) fn put_named(
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
        let old = self.crc_at(|key| key.extend_from_slice(&name))?;
        self.remove_under(&mut writer.batch, &name)?;
        let put = writer
            .batch
            .put(
                |key| key.extend_from_slice(&name),
                |out| codec::encode(out, workflow),
            )
            .map_err(|error| corrupt(&error.to_string()))?;
        for version in gone {
            let mut key = Vec::new();
            keys::former_workflow(&mut key, &workflow.name, version);
            self.remove_under(&mut writer.batch, &key)?;
        }
        if let Some((version, source)) = former {
            let kept = writer.batch.put(
                |key| keys::former_workflow(key, &workflow.name, version),
                |out| codec::encode(out, source),
            );
            kept.map_err(|error| corrupt(&error.to_string()))?;
        }
        old.into_iter().for_each(|crc| writer.root.drop(crc));
        writer.root.add(put.crc);
        self.make_durable(writer, || ())?;
        Ok(old.is_some())
    }

    /// Deletes a workflow and its former texts; false if the name has none.
    pub(super) fn remove_named(&self, workflow: &str) -> Result<bool, StoreError> {
        let mut name = Vec::new();
        keys::workflow(&mut name, workflow);
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        let Some(old) = self.crc_at(|key| key.extend_from_slice(&name))? else {
            return Ok(false);
        };
        writer.batch.clear();
        self.remove_under(&mut writer.batch, &name)?;
        let mut former = Vec::new();
        keys::former_workflows(&mut former, workflow);
        self.remove_under(&mut writer.batch, &former)?;
        writer.root.drop(old);
        self.make_durable(writer, || ())?;
        Ok(true)
    }

    /// The former texts of a workflow, the oldest first.
    pub(super) fn former_of(&self, workflow: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        let mut prefix = Vec::new();
        keys::former_workflows(&mut prefix, workflow);
        let _reading = self.reading();
        let versions = self.records(prefixed(&prefix)).map(|row| {
            let (key, _) = row?;
            let version = keys::parse(key.as_ref()).and_then(|parsed| parsed.version);
            version.ok_or_else(|| corrupt(&keys::describe(key.as_ref())))
        });
        versions.collect()
    }

    /// The workflow of a name.
    pub(super) fn named(&self, workflow: &str) -> Result<Option<StoredWorkflow>, StoreError> {
        let _reading = self.reading();
        self.read(|key| keys::workflow(key, workflow), codec::decode)
    }

    /// Workflows in the order of their names, after `after`.
    pub(super) fn all_named(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredWorkflow>, StoreError> {
        let (all, to) = prefixed(&[Family::Workflow.byte()]);
        let from = match after {
            Some(workflow) => {
                let mut key = Vec::new();
                keys::workflow(&mut key, workflow);
                Bound::Excluded(key)
            }
            None => all,
        };
        let _reading = self.reading();
        self.records((from, to))
            .take(limit)
            .map(|row| {
                let (key, first) = row?;
                self.value(key.as_ref(), first.as_ref(), codec::decode)
            })
            .collect()
    }
}
