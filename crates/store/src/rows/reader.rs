//! Reads the rows of a store: joins the pieces of a record, checks the record, and decodes it. Code that has only a
//! [`RowReader`] cannot write.

use super::super::codec::{self, BadRecord};
use super::super::header::StoredHeader;
use super::super::keys::{self, Family};
use super::super::kv::{Kv, KvError, prefixed};
use super::super::{StoreError, StoredRun};
use super::{Retention, corrupt, damaged, is_full, lock, unknown};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use windlass_expression::{Sealer, Sealing};

/// Reads the rows of a database.
pub struct RowReader<K: Kv> {
    pub(super) kv: K,
    pub(crate) retention: Retention,
    /// A reader locks this (shared) while it copies rows that belong together. A writer locks it exclusively to apply a
    /// group (writes of several commits together).
    pub(super) gate: RwLock<()>,
    /// The error of a failed write. While it is set, nothing can be written; opening the store again clears it.
    pub(super) failed: Mutex<Option<String>>,
    /// Seals and opens secure values.
    pub(super) key: OnceLock<Arc<dyn Sealer>>,
    /// The name of the store in errors.
    pub(super) name: String,
}

impl<K: Kv> RowReader<K> {
    pub(super) fn new(kv: K, retention: Retention, name: &str) -> Self {
        Self {
            kv,
            retention,
            gate: RwLock::new(()),
            failed: Mutex::new(None),
            key: OnceLock::new(),
            name: name.to_owned(),
        }
    }

    /// Fails after a failed write, until the store is opened again.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match &*lock(&self.failed) {
            Some(reason) => Err(StoreError::Failed {
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Converts an error of a read. If a write failed before, returns that failure instead, because the store is not
    /// damaged.
    fn unread(&self, what: impl std::fmt::Display, error: KvError) -> StoreError {
        match (self.check_writable(), error) {
            (Err(failed), _) => failed,
            (Ok(()), error @ KvError::Closed) => error.into(),
            // A write failed, and this reader received the error before the writer recorded it.
            (Ok(()), KvError::Io(error)) if is_full(&error) => StoreError::Failed {
                reason: error.to_string(),
            },
            (Ok(()), error) => corrupt(&format!("{what}: {error}")),
        }
    }

    /// Prevents groups from being applied while the guard exists. Use it only for copying rows. Do not get a second
    /// guard on the same thread: if a writer waits for the first guard, the second one would cause a deadlock.
    pub(crate) fn hold_groups(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows this thread to seal and open secure values while the guard exists.
    pub(super) fn sealing_guard(&self) -> Sealing {
        Sealing::with(self.key.get().cloned())
    }

    /// Returns the value of a key. An error is returned as the database reports it.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<K::Bytes>, KvError> {
        self.kv.get(key)
    }

    pub(crate) fn row(&self, key: &[u8]) -> Result<Option<K::Bytes>, StoreError> {
        let row = self.kv.get(key);
        row.map_err(|error| self.unread(keys::describe(key), error))
    }

    /// Copies and decodes the record under a key, if there is one.
    pub(crate) fn read<T>(
        &self,
        key: impl FnOnce(&mut Vec<u8>),
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<Option<T>, StoreError> {
        let record = self.copy_at(key)?;
        record.map(|record| record.decode(decode)).transpose()
    }

    /// Does the same as [`RowReader::read`], for a caller that prevents groups from being applied.
    pub(crate) fn read_locked<T>(
        &self,
        key: impl FnOnce(&mut Vec<u8>),
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<Option<T>, StoreError> {
        let record = self.record_at(key)?;
        record.map(|record| record.decode(decode)).transpose()
    }

    /// Does the same as [`RowReader::read`]. Returns `None` if the record has another checksum than the given one.
    pub(crate) fn read_with_crc<T>(
        &self,
        key: impl FnOnce(&mut Vec<u8>),
        crc: u32,
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<Option<T>, StoreError> {
        let record = self.copy_at(key)?.filter(|record| record.crc == crc);
        record.map(|record| record.decode(decode)).transpose()
    }

    pub(super) fn copy_at(
        &self,
        key: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<Record>, StoreError> {
        let _reading = self.hold_groups();
        self.record_at(key)
    }

    /// Copies the record under a key, if there is one. The caller prevents groups from being applied meanwhile.
    pub(crate) fn record_at(
        &self,
        key: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<Record>, StoreError> {
        let mut name = Vec::with_capacity(64);
        key(&mut name);
        let first = self.row(&name)?;
        first.map(|first| self.record(&(name, first))).transpose()
    }

    /// Copies a record. The caller has read its key and first piece.
    pub(crate) fn record(
        &self,
        (key, first): &(impl AsRef<[u8]>, K::Bytes),
    ) -> Result<Record, StoreError> {
        let (key, first) = (key.as_ref(), first.as_ref());
        Ok(Record {
            key: key.to_vec(),
            crc: codec::crc_of(first),
            value: self.whole(key, first)?.into_owned(),
        })
    }

    /// Decodes a record whose first piece the caller has read.
    pub(crate) fn value<T>(
        &self,
        key: &[u8],
        first: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<T, StoreError> {
        let whole = self.whole(key, first)?;
        decode(&whole).map_err(|error| damaged(key, &error))
    }

    /// Returns the bytes of a record whose first piece the caller has read.
    pub(super) fn whole<'a>(
        &self,
        key: &[u8],
        first: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, StoreError> {
        let bad = |error: BadRecord| damaged(key, &error);
        let piece = codec::check(key, first).map_err(bad)?;
        let body = first.get(piece.body).unwrap_or_default();
        let Some((further, crc)) = piece.further else {
            return Ok(Cow::Borrowed(body));
        };
        let mut whole = Vec::with_capacity((usize::from(further) + 1) * codec::MAX_PIECE);
        whole.extend_from_slice(body);
        for number in 1..=u32::from(further) {
            let mut name = key.to_vec();
            keys::piece(&mut name, number);
            let piece = self.row(&name)?;
            let piece = piece.ok_or_else(|| bad(BadRecord::Piece(number)))?;
            let piece = piece.as_ref();
            let checked = codec::check(&name, piece).map_err(|e| damaged(&name, &e))?;
            whole.extend_from_slice(piece.get(checked.body).unwrap_or_default());
        }
        codec::check_whole(&whole, crc).map_err(bad)?;
        Ok(Cow::Owned(whole))
    }

    /// Returns the first piece of each record in a range, in the order of the keys.
    pub(crate) fn records(
        &self,
        range: super::super::kv::Range,
    ) -> impl DoubleEndedIterator<Item = Result<(K::Bytes, K::Bytes), StoreError>> + '_ {
        self.rows(range).filter(|row| match row {
            Ok((key, _)) => keys::parse(key.as_ref()).is_none_or(|parsed| parsed.piece == 0),
            Err(_) => true,
        })
    }

    /// Returns at most `limit` records of a family, ordered by name. The first one is the first name that sorts after
    /// `after`.
    pub(crate) fn page<T>(
        &self,
        family: Family,
        write_key: impl FnOnce(&mut Vec<u8>, &str),
        after: Option<&str>,
        limit: usize,
        decode: impl Fn(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<Vec<T>, StoreError> {
        let (mut from, to) = prefixed(&[family.byte()]);
        if let Some(after) = after {
            let mut key = Vec::new();
            write_key(&mut key, after);
            from = Bound::Excluded(key);
        }
        let _reading = self.hold_groups();
        let page = self.records((from, to)).take(limit).map(|row| {
            let (key, first) = row?;
            self.value(key.as_ref(), first.as_ref(), &decode)
        });
        page.collect()
    }

    /// Returns the rows in a range, in the order of the keys.
    pub(crate) fn rows(
        &self,
        range: super::super::kv::Range,
    ) -> impl DoubleEndedIterator<Item = Result<(K::Bytes, K::Bytes), StoreError>> + '_ {
        let from = match &range.0 {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Vec::new(),
        };
        self.kv.range(range).map(move |row| {
            row.map_err(|error| {
                let what = format_args!("rows from {}", from.escape_ascii());
                self.unread(what, error)
            })
        })
    }

    /// Returns a run's header and the checksum of its row.
    pub(crate) fn stored_header(
        &self,
        run: &str,
    ) -> Result<Option<(StoredHeader, u32)>, StoreError> {
        let _reading = self.hold_groups();
        self.stored_header_locked(run)
    }

    /// Does the same as [`RowReader::stored_header`], for a caller that prevents groups from being applied.
    pub(crate) fn stored_header_locked(
        &self,
        run: &str,
    ) -> Result<Option<(StoredHeader, u32)>, StoreError> {
        let record = self.record_at(|key| keys::of_run(key, Family::Header, run))?;
        let decoded = |record: Record| Ok((record.decode(codec::decode)?, record.crc));
        record.map(decoded).transpose()
    }

    pub(super) fn stored_run(&self, run: &str) -> Result<StoredRun, StoreError> {
        let mut copied = self.copy_run(run)?;
        let (mut state, snapshot_bytes) = copied.start()?;
        let mut folded = Ok(());
        let tail_bytes = copied.tail(|changes| {
            let mut changes = changes.iter();
            if folded.is_ok() {
                folded = changes.try_for_each(|change| state.apply(change));
            }
        })?;
        folded.map_err(|bug| StoreError::replay_failed(run, &bug))?;
        Ok(StoredRun {
            header: copied.header,
            state,
            tail_bytes,
            snapshot_bytes,
        })
    }

    pub(crate) fn known(&self, run: &str) -> Result<StoredHeader, StoreError> {
        match self.stored_header(run)? {
            Some((head, _)) => Ok(head),
            None => Err(unknown(run)),
        }
    }
}

/// A stored record, joined from its pieces.
pub(crate) struct Record {
    pub key: Vec<u8>,
    /// The checksum of the record's first piece.
    crc: u32,
    pub value: Vec<u8>,
}

impl Record {
    pub fn decode<T>(
        &self,
        decode: impl FnOnce(&[u8]) -> Result<T, BadRecord>,
    ) -> Result<T, StoreError> {
        decode(&self.value).map_err(|error| damaged(&self.key, &error))
    }
}
