//! A store in memory, for tests and for runs that need no durability. It writes the same records as a store on disk,
//! into a sorted map. Nothing is durable, but the map remembers which writes were not synced. So a simulation can
//! remove these writes, as a power cut does.

use super::StoreError;
use super::kv::{Kv, KvError, KvRow, Range};
use super::rows::{Retention, Rows};
use super::sled::Sled;
use super::write_batch::WriteBatch;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

type Bytes = Arc<[u8]>;

/// A sorted map in memory.
#[derive(Debug, Default)]
pub struct Memory {
    held: RwLock<MemoryState>,
}

#[derive(Clone, Debug, Default)]
struct MemoryState {
    rows: BTreeMap<Bytes, Bytes>,
    /// The previous value of each key that was written since the last sync, in the order of the writes.
    before: Vec<(Bytes, Option<Bytes>)>,
    /// The last group that was synced.
    synced: u64,
}

/// A store that loses everything when it is dropped.
pub type MemoryStore = Rows<Memory>;

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(retention: Retention) -> Self {
        Self::recover(Memory::default(), retention, NAME)
            .unwrap_or_else(|_| Self::fresh(Memory::default(), retention, NAME))
    }

    /// Returns the store that a new process would find after a power cut: it has everything that was synced, and
    /// nothing else.
    pub fn after_power_cut(&self) -> Result<Self, StoreError> {
        let mut held = self.database().read().clone();
        held.forget_unsynced();
        let held = RwLock::new(held);
        Self::recover(Memory { held }, self.reader.retention, NAME)
    }
}

/// The name of the store in errors.
const NAME: &str = "memory";

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Retention::default())
    }
}

impl MemoryState {
    fn forget_unsynced(&mut self) {
        for (key, value) in self.before.drain(..).rev() {
            match value {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}

impl Memory {
    /// Creates a map with these rows. All of them are treated as synced, up to the group `synced`.
    pub(super) fn of(rows: BTreeMap<Vec<u8>, Vec<u8>>, synced: u64) -> Self {
        let rows = rows.into_iter();
        let rows = rows.map(|(key, value)| (Bytes::from(key), Bytes::from(value)));
        let held = MemoryState {
            rows: rows.collect(),
            before: Vec::new(),
            synced,
        };
        Self {
            held: RwLock::new(held),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, MemoryState> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, MemoryState> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kv for Memory {
    type Bytes = Bytes;
    type Backup = Sled;
    const MAX_UNSYNCED: usize = 128 * 1024;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError> {
        Ok(self.read().rows.get(key).cloned())
    }

    fn range(&self, range: Range) -> impl DoubleEndedIterator<Item = KvRow<Self::Bytes>> + '_ {
        let (from, to) = &range;
        let range = (
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        );
        let found: Vec<_> = self
            .read()
            .rows
            .range::<[u8], _>(range)
            .map(|(key, value)| Ok((key.clone(), value.clone())))
            .collect();
        found.into_iter()
    }

    fn apply(&self, batch: &WriteBatch) -> Result<(), KvError> {
        let mut held = self.write();
        for (key, value) in batch.ops() {
            let key = Bytes::from(key);
            let old = match value {
                Some(value) => held.rows.insert(key.clone(), Arc::from(value)),
                None => held.rows.remove(&key),
            };
            held.before.push((key, old));
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), KvError> {
        Ok(())
    }

    fn sync(&self, group: u64) -> Result<(), KvError> {
        let mut held = self.write();
        held.before.clear();
        held.synced = group;
        Ok(())
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.write().forget_unsynced();
        Ok(())
    }

    fn durable_snapshot(&self) -> Option<MemoryStore> {
        None
    }

    fn synced(&self) -> u64 {
        self.read().synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(memory: &Memory, key: &[u8], value: &[u8]) {
        let mut batch = WriteBatch::default();
        batch.copy(key, value);
        memory.apply(&batch).unwrap();
    }

    /// A power cut removes exactly the writes since the last sync.
    #[test]
    fn what_was_not_synced_is_forgotten() {
        let memory = Memory::default();
        put(&memory, b"a", b"one");
        put(&memory, b"b", b"one");
        memory.sync(7).unwrap();
        assert_eq!(memory.synced(), 7);
        put(&memory, b"a", b"two");
        put(&memory, b"a", b"three");
        put(&memory, b"c", b"one");
        let mut batch = WriteBatch::default();
        batch.remove(|key| key.extend_from_slice(b"b"));
        memory.apply(&batch).unwrap();
        memory.reopen().unwrap();
        let value = |key: &[u8]| memory.get(key).unwrap().map(|value| value.to_vec());
        assert_eq!(value(b"a"), Some(b"one".to_vec()));
        assert_eq!(value(b"b"), Some(b"one".to_vec()));
        assert_eq!(value(b"c"), None);
        assert_eq!(memory.synced(), 7);
    }
}
