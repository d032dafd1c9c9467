//! The medium of a simulated store, and what is found on it after the process died. In memory, that is what was synced;
//! in a database on disk, the files as they are then.

use crate::store::damage::copy;
use crate::support::alone;
use std::sync::Arc;
use tempfile::TempDir;
use windlass_store::{MemoryStore, Retention, Store, StoreKind, StoreOptions};

pub enum Medium {
    Memory(Arc<MemoryStore>),
    Database(Arc<dyn Store>, TempDir, StoreOptions),
}

impl Medium {
    /// An empty store.
    pub fn new(kind: Option<StoreKind>, retention: Retention) -> Self {
        let Some(kind) = kind else {
            return Self::Memory(Arc::new(MemoryStore::new(retention)));
        };
        let options = StoreOptions {
            retention,
            ..StoreOptions::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let store = windlass_store::open_with(dir.path(), Some(kind), options).unwrap();
        Self::Database(store, dir, options)
    }

    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Database(store, ..) => store.clone(),
        }
    }

    /// What the next process finds.
    pub fn after_death(self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(Arc::new(store.after_power_cut().unwrap())),
            Self::Database(_, left, options) => {
                let dir = tempfile::tempdir().unwrap();
                copy(left.path(), dir.path());
                let store = alone(|| windlass_store::open_with(dir.path(), None, options)).unwrap();
                Self::Database(store, dir, options)
            }
        }
    }
}
