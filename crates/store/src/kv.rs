//! What the store needs from a database: sorted keys, atomic batches of writes, and a way to make them durable.
//! `memory`, `sled` and `fjall` implement it, and the rows of a store use them only through this trait.

use super::disk::DiskKv;
use super::write_batch::WriteBatch;
use super::{MemoryStore, StoreError};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A range of keys.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Why a database call failed.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// The database's files are damaged.
    #[error("{0}")]
    Corrupt(String),
    /// The disk is full or reports an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A file of the database was deleted or replaced since it was opened.
    #[error("{0} was deleted, replaced or hidden by a mount")]
    Gone(String),
    /// The database is closed: opening it again after a failed write has not succeeded yet.
    #[error("it is not open")]
    Closed,
}

/// A sorted map of bytes.
pub trait Kv: Send + Sync + 'static {
    /// The type of a key or a value that the database returns.
    type Bytes: AsRef<[u8]>;

    /// The database of a backup on disk.
    type Backup: DiskKv;

    /// Maximum number of applied bytes that are not durable. A larger group (writes of several commits together) is
    /// made durable in several steps.
    const MAX_UNSYNCED: usize;

    /// Returns the padding rows of a new store or copy. They have no value. They separate other rows, so that a change
    /// of one row writes fewer of the others again.
    fn padding_rows() -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError>;

    /// Returns the keys in a range and their values, in order. The iterator ends after its first error.
    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Self::Bytes>> + '_;

    /// Writes a batch. After a crash, the database has all of the batch or nothing of it. The batch is durable only
    /// after `flush` and `sync`.
    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError>;

    /// Hands everything that was applied to the operating system.
    fn flush(&self) -> Result<(), KvError>;

    /// Makes all flushed data durable. Also records, next to the data, that all groups up to the number `group` are
    /// durable.
    fn sync(&self, group: u64) -> Result<(), KvError>;

    /// Opens the database again after a failed write. Data that was not synced before may be missing.
    fn reopen(&self) -> Result<(), StoreError>;

    /// Returns the durable data while the database accepts no writes. Returns `None` if it cannot be determined which
    /// data is durable.
    fn durable_snapshot(&self) -> Option<MemoryStore>;

    /// Returns the last group that `sync` recorded; 0 if it is not known.
    fn synced(&self) -> u64;

    /// Returns the lowest group that `synced` can return after a power cut: the mark is synced only once in several
    /// groups.
    fn mark_floor(&self) -> u64 {
        0
    }

    /// Fails if the database's files are not at the path where they were opened.
    fn check_present(&self) -> Result<(), KvError> {
        Ok(())
    }
}

/// A key and its value.
pub type KvRow<B> = Result<(B, B), KvError>;

/// Returns the range of all keys that begin with `prefix`.
pub fn prefixed(prefix: &[u8]) -> Range {
    let end = super::keys::after(prefix);
    let end = if end.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Excluded(end)
    };
    (Bound::Included(prefix.to_vec()), end)
}

/// Calls a database. If the call panics, returns [`KvError::Corrupt`].
pub fn guard<T, E>(call: impl FnOnce() -> Result<T, E>) -> Result<T, KvError>
where
    KvError: From<E>,
{
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(KvError::from),
        Err(panic) => {
            let what = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("it does not say why");
            Err(KvError::Corrupt(format!("the database gave up: {what}")))
        }
    }
}

/// A database's iterator that handles panics, and ends after its first error.
pub struct GuardedIter<I> {
    iter: Option<I>,
    /// The error of creating the iterator. It is returned as the first item.
    failed: Option<KvError>,
}

impl<I> GuardedIter<I> {
    pub fn of(iter: Result<I, KvError>) -> Self {
        let (iter, failed) = match iter {
            Ok(iter) => (Some(iter), None),
            Err(error) => (None, Some(error)),
        };
        Self { iter, failed }
    }

    fn step<B, E>(
        &mut self,
        step: impl FnOnce(&mut I) -> Option<Result<(B, B), E>>,
    ) -> Option<KvRow<B>>
    where
        KvError: From<E>,
    {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let iter = self.iter.as_mut()?;
        match guard(|| step(iter).transpose()) {
            Ok(row) => row.map(Ok),
            Err(error) => {
                self.iter = None;
                Some(Err(error))
            }
        }
    }
}

impl<I, B, E> Iterator for GuardedIter<I>
where
    I: Iterator<Item = Result<(B, B), E>>,
    KvError: From<E>,
{
    type Item = KvRow<B>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }
}

impl<I, B, E> DoubleEndedIterator for GuardedIter<I>
where
    I: DoubleEndedIterator<Item = Result<(B, B), E>>,
    KvError: From<E>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }
}
