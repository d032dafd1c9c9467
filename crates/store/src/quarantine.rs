//! Quarantine of runs that cannot continue. Such a run is removed from the indexes, so that recovery does not load it
//! until a user requests this. A label in the run's header has the reason. Nothing else of the run changes.

use super::codec;
use super::commit::Entry;
use super::header::{KnownHeader, StoredHeader};
use super::keys::{self, Family};
use super::kv::Kv;
use super::rows::{Rows, corrupt, lock};
use super::{Placement, QUARANTINE_LABEL, Store, StoreError};
use windlass_model::model::Name;

impl<K: Kv> Rows<K> {
    /// Moves a run to another index without a step of the run; see [`super::Store::set_quarantine`].
    pub(super) fn set_quarantine_of(
        &self,
        run: &str,
        placement: Placement,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        self.check_writable()?;
        let Some((mut stored, crc)) = self.reader.stored_header(run)? else {
            return Err(StoreError::UnknownRun(Name::from(run)));
        };
        writer.batch.clear();
        writer.forget(run);
        let name = Name::from(run);
        let mut entry = Entry {
            run: &name,
            header: Box::new(KnownHeader::of(&stored, crc)),
            root: writer.root,
            batch: &mut writer.batch,
        };
        entry.place(Some(placement));
        let StoredHeader { header, .. } = &mut stored;
        header.placement = placement;
        match reason {
            Some(reason) => header
                .labels
                .insert(QUARANTINE_LABEL.to_owned(), reason.to_owned()),
            None => header.labels.remove(QUARANTINE_LABEL),
        };
        let mut key = Vec::new();
        keys::of_run(&mut key, Family::Header, run);
        let put = entry
            .batch
            .put(
                |out| out.extend_from_slice(&key),
                |out| codec::encode(out, &stored),
            )
            .map_err(|error| corrupt(&error.to_string()))?;
        entry.root.subtract_row(crc);
        entry.root.add_row(put.crc);
        writer.root = entry.root;
        writer.touched.push(name);
        self.make_durable(writer, || ())
    }
}
