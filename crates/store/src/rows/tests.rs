//! What a store takes for its own, and what it does after a sync that failed.

use super::super::memory::Memory;
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

fn with(meta: &Meta) -> Result<Rows<Memory>, StoreError> {
    let kv = Memory::default();
    let mut writer = Writer::default();
    writer.put_meta(meta, &[]).unwrap();
    kv.apply(&writer.batch).unwrap();
    Rows::recover(kv, Retention::default(), "here")
}

#[test]
fn a_store_of_others_and_one_of_a_later_version_are_refused() {
    assert!(with(&Meta::current()).is_ok());
    let refused = |meta: &Meta| match with(meta) {
        Err(StoreError::Foreign { reason, .. }) => reason,
        other => panic!("{:?}", other.map(drop)),
    };
    let others = Meta {
        magic: String::from("another store"),
        ..Meta::current()
    };
    assert_eq!(refused(&others), "other magic");
    let later = Meta {
        format: FORMAT + 1,
        ..Meta::current()
    };
    assert!(refused(&later).contains("its format is 3"));
}

/// A disk of which one sync fails.
#[derive(Default)]
struct Failing {
    memory: Memory,
    fails: AtomicBool,
    /// A sync waits for as long as this is locked.
    held: Mutex<()>,
}

impl Kv for Failing {
    type Bytes = <Memory as Kv>::Bytes;
    type Backup = crate::sled::Sled;
    const MAX_UNSYNCED: usize = 128 * 1024;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes>, KvError> {
        self.memory.get(key)
    }

    fn range(
        &self,
        range: super::super::kv::Range,
    ) -> impl DoubleEndedIterator<Item = super::super::kv::KvRow<Self::Bytes>> + '_ {
        self.memory.range(range)
    }

    fn apply(&self, batch: &super::super::write_batch::WriteBatch) -> Result<(), KvError> {
        self.memory.apply(batch)
    }

    fn flush(&self) -> Result<(), KvError> {
        self.memory.flush()
    }

    fn sync(&self, group: u64) -> Result<(), KvError> {
        drop(lock(&self.held));
        if self.fails.swap(false, Ordering::SeqCst) {
            return Err(KvError::Io(std::io::Error::other("it failed")));
        }
        self.memory.sync(group)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.memory.reopen()
    }

    fn durable_snapshot(&self) -> Option<super::super::MemoryStore> {
        None
    }

    fn synced(&self) -> u64 {
        self.memory.synced()
    }
}

/// What the failed sync was to write may be lost, and the next one would succeed.
#[test]
fn after_a_sync_that_failed_nothing_is_taken_before_the_store_is_opened_again() {
    let store = Rows::recover(Failing::default(), Retention::default(), "here").unwrap();
    let commit = || store.make_durable(lock(&store.writer), || ());
    commit().unwrap();
    store.table.kv.fails.store(true, Ordering::SeqCst);
    assert!(matches!(commit(), Err(StoreError::Io(_))));
    for _ in 0..2 {
        assert!(matches!(commit(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.sweep(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.runnable(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.load("r"), Err(StoreError::Failed { .. })));
        assert!(matches!(store.check(), Err(StoreError::Failed { .. })));
    }
    let group = store.table.kv.synced();
    store.reopen().unwrap();
    assert!(store.runnable().unwrap().is_empty());
    commit().unwrap();
    assert_eq!(store.table.kv.synced(), group + 1);
}

/// A reader sees a group that is on its way to disk, and learns that it is settled only when it is durable.
#[test]
fn what_was_read_is_settled_when_its_group_is_durable() {
    const MOMENT: Duration = Duration::from_millis(50);
    for fails in [false, true] {
        let store = Rows::recover(Failing::default(), Retention::default(), "here").unwrap();
        let commit = || store.make_durable(lock(&store.writer), || ());
        commit().unwrap();
        store.wait_durable(store.epoch()).unwrap();
        store.table.kv.fails.store(fails, Ordering::SeqCst);
        let held = lock(&store.table.kv.held);
        let durable = store.table.kv.synced();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(commit);
            while store.durability.applied() == durable {
                std::thread::yield_now();
            }
            scope.spawn(|| tell.send(store.wait_durable(store.epoch())).unwrap());
            assert!(told.recv_timeout(MOMENT).is_err(), "it is not durable yet");
            drop(held);
            let settled = told.recv().unwrap();
            assert_eq!(settled.is_err(), fails, "{settled:?}");
        });
        // What was read before it was opened again may be gone.
        let before = store.epoch();
        store.reopen().unwrap();
        assert!(matches!(
            store.wait_durable(before),
            Err(StoreError::Failed { .. })
        ));
        store.wait_durable(store.epoch()).unwrap();
    }
}

/// Whichever call of a database fails first when its files went away, and however.
#[test]
fn a_commit_to_a_store_that_was_moved_says_that_it_is_gone() {
    fn check<K: Kv>(open: impl Fn(&std::path::Path) -> Rows<K>) {
        let dir = tempfile::tempdir().unwrap();
        let (state, elsewhere) = (dir.path().join("state"), dir.path().join("elsewhere"));
        let store = open(&state);
        let commit = || store.make_durable(lock(&store.writer), || ());
        commit().unwrap();
        std::fs::rename(&state, elsewhere).unwrap();
        let refused = commit();
        assert!(
            matches!(refused, Err(StoreError::Gone { .. })),
            "{refused:?}"
        );
    }
    check(|dir| crate::SledStore::open(dir).unwrap());
    #[cfg(feature = "fjall")]
    check(|dir| crate::fjall::FjallStore::open_with(dir, crate::StoreOptions::default()).unwrap());
}
