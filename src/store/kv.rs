//! What the store's rows need of a database: sorted keys, atomic groups of writes, and a way to
//! make them durable. Fulfilled by `memory` and `sled`; nothing of either is seen beyond this.

use super::write_batch::WriteBatch;
use super::{MemoryStore, StoreError};
use std::ops::Bound;

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

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError>;

    /// Keys and values in order. Ends with its first error.
    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Self::Bytes>> + '_;

    /// Writes all or, after a crash, nothing. Durable only after `flush` and `sync`.
    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError>;

    /// Hands all that was applied to the operating system.
    fn flush(&self) -> Result<(), KvError>;

    /// Makes all that was flushed durable, and remembers beside the data that groups up to this
    /// number are.
    fn sync(&self, group: u64) -> Result<(), KvError>;

    /// Opens it again after a write that failed: what was not synced may be there or not.
    fn reopen(&self) -> Result<(), StoreError>;

    /// What is on disk, and durable, while it takes no writes; none when that cannot be told.
    fn durable_snapshot(&self) -> Option<MemoryStore>;

    /// The last group that `sync` remembered, as far as it is known: 0 when it is not.
    fn synced(&self) -> u64;

    /// What `synced` gives also after a power cut, at least.
    fn marked(&self) -> u64 {
        0
    }

    /// Whether it is still where it was opened.
    fn in_place(&self) -> Result<(), KvError> {
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
