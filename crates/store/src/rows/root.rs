//! The root of a store: the number of the last group, and a checksum over headers and indexes. This file creates the
//! root of a new store, and checks an existing root before the store is used.

use super::durable::Durability;
use super::{FORMAT, Retention, RowReader, Rows, corrupt, damaged};
use crate::StoreError;
use crate::codec;
use crate::commit::Writer;
use crate::feed::Feed;
use crate::header::Root;
use crate::keys::{self, Family};
use crate::kv::{Kv, prefixed};
use crate::snapshot::Snapshots;
use bincode::{Decode, Encode};
use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock};
use std::thread;

const MAGIC: &str = "windlass store";

/// The value under the key `m`.
#[derive(Debug, Encode, Decode)]
pub(crate) struct Meta {
    pub(super) magic: String,
    pub(super) format: u32,
}

impl Meta {
    /// Returns the value that this version of the engine writes.
    pub fn current() -> Self {
        Self {
            magic: MAGIC.to_owned(),
            format: FORMAT,
        }
    }
}

impl<K: Kv> Rows<K> {
    pub(crate) fn fresh(kv: K, retention: Retention, name: &str) -> Self {
        Self::of(RowReader::new(kv, retention, name), Root::default())
    }

    fn of(reader: RowReader<K>, root: Root) -> Self {
        Self {
            reader,
            writer: Mutex::new(Writer::new(root)),
            writer_queue: Mutex::new(()),
            durability: Durability::new(root.group),
            feed: Feed::default(),
            on_failure: OnceLock::new(),
            snapshots: Snapshots::default(),
        }
    }

    /// Opens a store on a map. If the map has rows, checks them. If it is empty, makes it a store.
    pub(crate) fn recover(kv: K, retention: Retention, path: &str) -> Result<Self, StoreError> {
        let reader = RowReader::new(kv, retention, path);
        let root = match reader.checked_root()? {
            Some(root) => {
                // A process that was killed may have left data that is not synced.
                if reader.kv.synced() < root.group {
                    reader.kv.sync(root.group)?;
                }
                root
            }
            None => {
                let mut writer = Writer::default();
                writer.put_meta(&Meta::current(), &K::padding_rows())?;
                reader.kv.apply(&writer.batch)?;
                reader.kv.flush()?;
                reader.kv.sync(0)?;
                Root::default()
            }
        };
        Ok(Self::of(reader, root))
    }

    /// Does the same as [`Self::recover`], but never changes the map. Returns `None` if the map is empty.
    pub(crate) fn found(
        kv: K,
        retention: Retention,
        path: &str,
    ) -> Result<Option<Self>, StoreError> {
        let reader = RowReader::new(kv, retention, path);
        let root = reader.checked_root()?;
        Ok(root.map(|root| Self::of(reader, root)))
    }
}

impl<K: Kv> RowReader<K> {
    /// Returns the root if its checksum matches the rows. Returns `None` if the map is empty.
    pub(crate) fn checked_root(&self) -> Result<Option<Root>, StoreError> {
        let Some(root) = self.root()? else {
            return Ok(None);
        };
        let acknowledged = self.kv.synced();
        if let Some(error) = ends_too_early(acknowledged, root.group) {
            return Err(error);
        }
        if let Some(error) = older_mark(acknowledged, self.last_marked()?) {
            return Err(error);
        }
        if self.checksum(None)? != root.checksum {
            return Err(corrupt(
                "heads or indexes of runs are not those of the last group",
            ));
        }
        Ok(Some(root))
    }

    /// Refuses a store of another format. Accepts a store whose row with the format is missing.
    pub(crate) fn check_format(&self) -> Result<(), StoreError> {
        let reason = match self.meta()? {
            Some(meta) if meta.magic != MAGIC => String::from("other magic"),
            Some(meta) if meta.format != FORMAT => {
                let found = meta.format;
                format!("its format is {found}, and this version of windlass reads {FORMAT}")
            }
            Some(_) | None => return Ok(()),
        };
        Err(self.foreign(reason))
    }

    fn foreign(&self, reason: String) -> StoreError {
        StoreError::Foreign {
            path: self.name.clone(),
            reason,
        }
    }

    fn meta(&self) -> Result<Option<Meta>, StoreError> {
        self.read_locked(|key| keys::single(key, Family::Meta), codec::decode)
    }

    /// Returns the root of a store of this format. Returns `None` if the map is empty.
    pub(crate) fn root(&self) -> Result<Option<Root>, StoreError> {
        self.check_format()?;
        match self.meta()? {
            Some(_) => self
                .read_locked(|key| keys::single(key, Family::Root), codec::decode::<Root>)?
                .ok_or_else(|| corrupt("the root is missing"))
                .map(Some),
            None if self.kv.synced() > 0 => Err(corrupt("all that was acknowledged is missing")),
            None => match self.rows(prefixed(&[])).next().transpose()? {
                Some(_) => Err(self.foreign(String::from("it holds other data"))),
                None => Ok(None),
            },
        }
    }

    /// Returns the last mark (number of the last durable group) that was synced before the last group.
    pub(crate) fn last_marked(&self) -> Result<u64, StoreError> {
        let marked = self.read_locked(
            |key| keys::single(key, Family::Marked),
            codec::decode::<u64>,
        )?;
        Ok(marked.unwrap_or(0))
    }

    /// Computes the checksum of workflows, their stored values, headers and indexes. Leaves out the rows of the run
    /// `without`.
    pub(crate) fn checksum(&self, without: Option<&str>) -> Result<u64, StoreError> {
        let values =
            || self.checksum_of(&[Family::Workflow, Family::State, Family::Header], without);
        let keys = || self.checksum_of(&[Family::Due, Family::Runnable], without);
        // Two threads: for a million runs there are two million rows, and a restart waits until all are read.
        let sums = thread::scope(
            |scope| match thread::Builder::new().spawn_scoped(scope, keys) {
                Ok(keys) => [
                    values(),
                    keys.join().unwrap_or_else(|panic| resume_unwind(panic)),
                ],
                Err(_) => [values(), keys()],
            },
        );
        let [values, keys] = sums;
        Ok(values?.wrapping_add(keys?))
    }

    fn checksum_of(&self, families: &[Family], without: Option<&str>) -> Result<u64, StoreError> {
        let mut root = Root::default();
        for family in families {
            for row in self.rows(prefixed(&[family.byte()])) {
                let (key, value) = row?;
                let key = key.as_ref();
                let parsed = keys::parse(key).ok_or_else(|| damaged(key, &"an unknown key"))?;
                if parsed.piece > 0 || without.is_some() && parsed.run.as_deref() == without {
                    continue;
                }
                root.add_row(match family {
                    Family::Workflow | Family::State | Family::Header => {
                        codec::crc_of(value.as_ref())
                    }
                    _ => codec::crc_of_key(key),
                });
            }
        }
        Ok(root.checksum)
    }
}

/// Returns an error if the last stored group is older than the last acknowledged group.
pub(crate) fn ends_too_early(acknowledged: u64, last: u64) -> Option<StoreError> {
    let what = format!("group {acknowledged} was acknowledged, and the last one found is {last}");
    (last < acknowledged).then(|| corrupt(&what))
}

/// Returns an error if the mark is older than a mark that was synced before.
pub(crate) fn older_mark(acknowledged: u64, marked: u64) -> Option<StoreError> {
    let what = format!(
        "its mark `store/mark` is of another time: it names group {acknowledged} as the last one, \
         and had named {marked}"
    );
    (acknowledged < marked).then(|| corrupt(&what))
}
