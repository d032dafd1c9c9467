//! What the store's rows need of a database: sorted keys, atomic groups of writes, and a way to
//! make them durable. Fulfilled by `memory`, `sled` and `fjall`; nothing of
//! them is seen beyond this.

use super::disk::Disk;
use super::write_batch::WriteBatch;
use super::{MemoryStore, StoreError};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A range of keys.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Why a database could not do it.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// Its files are not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// The disk is full or refuses.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A file of it is not where it was opened any more, but another one, or nothing.
    #[error("{0} was deleted, replaced or hidden by a mount")]
    Gone(String),
    /// It could not be opened again after a write that failed, so far.
    #[error("it is not open")]
    Closed,
}

/// A sorted map of bytes.
pub trait Kv: Send + Sync + 'static {
    /// A key or a value as it is held.
    type Bytes: AsRef<[u8]>;

    /// The database of a copy of it on disk.
    type Backup: Disk;

    /// Maximum number of applied bytes that are not durable. A group with more becomes durable in several steps.
    const MAX_UNSYNCED: usize;

    /// Rows that a new store gets, and a copy of a store in this database: they have no value, and separate others so
    /// that each change writes less.
    fn padding() -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError>;

    /// Keys and values in order. Ends with its first error.
    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Self::Bytes>> + '_;

    /// Writes all or, after a crash, nothing. Durable only after `flush` and `sync`.
    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError>;

    /// Hands all that was applied to the operating system.
    fn flush(&self) -> Result<(), KvError>;

    /// Makes all that was flushed durable, and records next to the data that the groups up to this
    /// number are durable.
    fn sync(&self, group: u64) -> Result<(), KvError>;

    /// Opens it again after a write that failed: what was not synced may be there or not.
    fn reopen(&self) -> Result<(), StoreError>;

    /// What is durable on disk, while it accepts no writes; none when that cannot be determined.
    fn durable_snapshot(&self) -> Option<MemoryStore>;

    /// The last group that `sync` remembered, as far as it is known: 0 when it is not.
    fn synced(&self) -> u64;

    /// What `synced` gives also after a power cut, at least.
    fn marked(&self) -> u64 {
        0
    }

    /// Whether it is still where it was opened.
    fn check_present(&self) -> Result<(), KvError> {
        Ok(())
    }
}

/// A key and its value.
pub type KvRow<B> = Result<(B, B), KvError>;

/// All keys that begin with `prefix`.
pub fn prefixed(prefix: &[u8]) -> Range {
    let end = super::keys::after(prefix);
    let end = if end.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Excluded(end)
    };
    (Bound::Included(prefix.to_vec()), end)
}

/// Calls a database; what it panics with is damage.
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

/// The iterator of a database, guarded; it ends with its first error.
pub struct GuardedIter<I> {
    iter: Option<I>,
    /// There was none from the start.
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
