//! Runs that cannot go on: they leave the indexes, so that no recovery looks at them again before
//! somebody asks, and their head says why. Nothing else of them changes.

use super::codec;
use super::commit::Entry;
use super::header::{Head, StoredHead};
use super::keys::{self, Family};
use super::kv::Kv;
use super::rows::{Rows, corrupt, lock};
use super::{PARKED_LABEL, Placement, Store, StoreError};
use crate::model::Name;

impl<K: Kv> Rows<K> {
    /// Moves a run to another index without a step of its own; see [`super::Store::park`].
    pub(super) fn park_run(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        self.usable()?;
        let Some((mut stored, crc)) = self.stored_head(run)? else {
            return Err(StoreError::UnknownRun(Name::from(run)));
        };
        writer.stage.clear();
        writer.heads.remove(run);
        let name = Name::from(run);
        let mut entry = Entry {
            run: &name,
            head: Head::of(&stored, crc),
            root: writer.root,
            stage: &mut writer.stage,
        };
        entry.place(Some(placement));
        let StoredHead { header, .. } = &mut stored;
        header.placement = placement;
        match reason {
            Some(reason) => header
                .labels
                .insert(PARKED_LABEL.to_owned(), reason.to_owned()),
            None => header.labels.remove(PARKED_LABEL),
        };
        let mut key = Vec::new();
        keys::of_run(&mut key, Family::Header, run);
        let put = entry
            .stage
            .put(
                |out| out.extend_from_slice(&key),
                |out| codec::encode(out, &stored),
            )
            .map_err(|error| corrupt(&error.to_string()))?;
        entry.root.drop(crc);
        entry.root.add(put.crc);
        writer.root = entry.root;
        self.make_durable(writer)
    }
}
