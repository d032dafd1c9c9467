//! A store in memory, for tests and for runs that may be forgotten. It writes the same records
//! as the one on disk and keeps them in a sorted map; nothing here is durable.

use super::kv::{Kv, KvError, KvRow, Range};
use super::rows::{Retention, Rows};
use super::stage::Stage;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

type Bytes = Arc<[u8]>;

/// A sorted map in memory.
#[derive(Debug, Default)]
pub struct Memory {
    rows: RwLock<BTreeMap<Bytes, Bytes>>,
}

/// A store that forgets everything when it is dropped.
pub type MemoryStore = Rows<Memory>;

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(retention: Retention) -> Self {
        Self::fresh(Memory::default(), retention)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Retention::default())
    }
}

impl Kv for Memory {
    type Bytes = Bytes;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.get(key).cloned())
    }

    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Self::Bytes>> + '_ {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = &range;
        let range = (
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        );
        let found: Vec<_> = rows
            .range::<[u8], _>(range)
            .map(|(key, value)| Ok((key.clone(), value.clone())))
            .collect();
        found.into_iter()
    }

    fn apply(&self, stage: &Stage) -> Result<(), KvError> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in stage.ops() {
            match value {
                Some(value) => rows.insert(Arc::from(key), Arc::from(value)),
                None => rows.remove(key),
            };
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), KvError> {
        Ok(())
    }

    fn sync(&self, _group: u64) -> Result<(), KvError> {
        Ok(())
    }

    fn synced(&self) -> u64 {
        0
    }
}
