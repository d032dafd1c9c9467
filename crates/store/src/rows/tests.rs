//! Tests: which directories a store accepts as a store, and what it does after a failed sync.

use super::super::memory::Memory;
use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use windlass_expression::Value;
use windlass_machine::{RunState, RunStatus};
use windlass_model::model::{Dialect, Origin};
use windlass_source::source::{Bundle, SourceFile};

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

/// A disk on which one sync fails.
#[derive(Default)]
struct Failing {
    memory: Memory,
    fails: AtomicBool,
    /// The number of the sync that fails, from 1; 0 if no sync fails.
    fails_after: AtomicUsize,
    /// While this is locked, a sync waits.
    held: Mutex<()>,
    /// Size in bytes of each applied group.
    applied: Mutex<Vec<usize>>,
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
        lock(&self.applied).push(batch.len());
        self.memory.apply(batch)
    }

    fn flush(&self) -> Result<(), KvError> {
        self.memory.flush()
    }

    fn sync(&self, group: u64) -> Result<(), KvError> {
        drop(lock(&self.held));
        let left = self.fails_after.load(Ordering::SeqCst);
        self.fails_after
            .store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 1 || self.fails.swap(false, Ordering::SeqCst) {
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

/// The data of the failed sync may be lost, although the next sync would succeed.
#[test]
fn after_a_sync_that_failed_nothing_is_taken_before_the_store_is_opened_again() {
    let store = Rows::recover(Failing::default(), Retention::default(), "here").unwrap();
    let commit = || store.make_durable(lock(&store.writer), || ());
    commit().unwrap();
    store.reader.kv.fails.store(true, Ordering::SeqCst);
    assert!(matches!(commit(), Err(StoreError::Io(_))));
    for _ in 0..2 {
        assert!(matches!(commit(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.sweep(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.runnable(), Err(StoreError::Failed { .. })));
        assert!(matches!(store.load("r"), Err(StoreError::Failed { .. })));
        assert!(matches!(store.check(), Err(StoreError::Failed { .. })));
    }
    let group = store.reader.kv.synced();
    store.reopen().unwrap();
    assert!(store.runnable().unwrap().is_empty());
    commit().unwrap();
    assert_eq!(store.reader.kv.synced(), group + 1);
}

/// A reader can read a group (writes of several commits together) before it is durable, but `wait_durable` returns only
/// after it is durable.
#[test]
fn what_was_read_is_settled_when_its_group_is_durable() {
    const MOMENT: Duration = Duration::from_millis(50);
    for fails in [false, true] {
        let store = Rows::recover(Failing::default(), Retention::default(), "here").unwrap();
        let commit = || store.make_durable(lock(&store.writer), || ());
        commit().unwrap();
        store.wait_durable(store.epoch()).unwrap();
        store.reader.kv.fails.store(fails, Ordering::SeqCst);
        let held = lock(&store.reader.kv.held);
        let durable = store.reader.kv.synced();
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
        // Data that was read before the store was opened again may be lost.
        let before = store.epoch();
        store.reopen().unwrap();
        assert!(matches!(
            store.wait_durable(before),
            Err(StoreError::Failed { .. })
        ));
        store.wait_durable(store.epoch()).unwrap();
    }
}

/// This holds for each call of a database that may fail first when its files are missing, and for each of its errors.
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

fn commit(run: &str, revision: u64, text: &str) -> Commit {
    let program = ProgramHash([1; 32]);
    let bundle = Bundle {
        files: vec![SourceFile {
            path: String::from("a.yaml"),
            text: String::from("name: a"),
        }],
    };
    Commit {
        header: RunHeader {
            id: Name::from(run),
            workflow: Name::from("a"),
            program,
            status: RunStatus::Running,
            revision,
            snapshot: 0,
            started_at: Timestamp(1),
            updated_at: Timestamp(1),
            placement: Placement::Runnable,
            labels: BTreeMap::new(),
        },
        changes: vec![Change::set(Name::from("text"), Value::text(text))],
        loops: Vec::new(),
        iterations: Vec::new(),
        history: Vec::new(),
        snapshot: None,
        program: Some(ProgramSource {
            bundle,
            dialect: Dialect::Loom,
            max_count: 1,
            max_timeout_ms: 1,
            origin: Origin::Operator,
            folder: None,
        }),
    }
}

/// Returns a text that compression does not make shorter.
fn noise(bytes: usize) -> String {
    let mut state = 7_u64;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'0' + u8::try_from((state >> 33) % 64).unwrap())
    };
    (0..bytes).map(|_| letter()).collect()
}

fn store() -> Rows<Failing> {
    Rows::recover(Failing::default(), Retention::default(), "here").unwrap()
}

fn commit_all(store: &Rows<Failing>, group: &[Commit]) {
    let stored = store.commit(group).unwrap();
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
}

fn text_of(store: &Rows<Failing>, run: &str) -> Value {
    let state = store.load(run).unwrap().state;
    state.variables.get("text").cloned().unwrap_or_default()
}

/// Other commits are written between the groups of a long commit. A reader sees nothing of it before its last group.
#[test]
fn a_long_commit_is_stored_in_groups_and_appears_at_once() {
    const BYTES: usize = 3 << 20;
    let store = store();
    commit_all(&store, &[commit("long", 1, "x")]);
    let mut long = commit("long", 2, &noise(BYTES));
    let mut state = RunState::new(Name::from("long"), long.header.program);
    for change in &long.changes {
        state.apply(change).unwrap();
    }
    long.snapshot = Some(state);
    let before = store.reader.kv.synced();
    lock(&store.reader.kv.applied).clear();
    commit_all(&store, &[commit("short", 1, "x"), long.clone()]);
    let groups = lock(&store.reader.kv.applied).clone();
    let most = Failing::MAX_UNSYNCED;
    assert!(groups.len() > 2 * BYTES / most, "{}", groups.len());
    assert!(groups.iter().all(|bytes| *bytes < most), "{groups:?}");
    assert_eq!(store.reader.kv.synced() - before, groups.len() as u64);
    assert_eq!(text_of(&store, "long"), Value::text(noise(BYTES)));
    assert_eq!(store.check().unwrap().issues, []);
    // A second commit of the same revision is refused, and the stored one remains.
    let late = commit("long", 2, &noise(BYTES / 2));
    let late = store.commit(&[late]).unwrap();
    assert!(
        matches!(late[..], [Err(StoreError::Conflict { .. })]),
        "{late:?}"
    );
    assert_eq!(text_of(&store, "long"), Value::text(noise(BYTES)));
}

/// Two commits of the same revision would write their pieces under the same keys.
#[test]
fn pieces_of_another_commit_are_not_taken_for_those_of_this_one() {
    let store = store();
    commit_all(&store, &[commit("run", 1, "x")]);
    let (own, other) = (noise(1 << 20), noise(1 << 20).to_lowercase());
    let encoded = [&own, &other].map(|text| {
        let commit = commit("run", 2, text);
        let mut encoded = encode_group(std::slice::from_ref(&commit), usize::MAX, &mut None);
        let mut encoded = encoded.remove(0).unwrap();
        store.write_further_pieces(&commit, &mut encoded).unwrap();
        (commit, encoded)
    });
    // If both wrote their pieces, each would replace pieces of the other. So only one may.
    let writes = encoded.each_ref().map(|(_, one)| one.written.is_some());
    assert_eq!(writes, [true, false]);
    let mut writer = lock(&store.writer);
    for (index, (commit, encoded)) in encoded.iter().enumerate() {
        writer.begin();
        let put = store.reader.put_commit(&mut writer, commit, encoded);
        assert_eq!(put.is_ok(), index == 0, "{put:?}");
        if put.is_ok() {
            store.make_durable(writer, || ()).unwrap();
            writer = lock(&store.writer);
        }
    }
    drop(writer);
    assert_eq!(text_of(&store, "run"), Value::text(own));
}

#[test]
fn a_first_commit_that_failed_leaves_nothing() {
    let store = store();
    for fails_at in [1, 2] {
        store
            .reader
            .kv
            .fails_after
            .store(fails_at, Ordering::SeqCst);
        let first = commit("run", 1, &noise(1 << 20));
        assert_eq!(store.commit(&[first]).is_err(), fails_at == 1);
        store.reader.kv.fails_after.store(0, Ordering::SeqCst);
        store.reopen().unwrap();
        assert_eq!(store.check().unwrap().issues, []);
    }
}

#[test]
fn a_long_commit_that_failed_in_between_leaves_nothing_that_is_read() {
    let store = store();
    commit_all(&store, &[commit("run", 1, "one")]);
    for fails_at in [1, 2, 5] {
        store
            .reader
            .kv
            .fails_after
            .store(fails_at, Ordering::SeqCst);
        let long = commit("run", 2, &noise(1 << 20));
        assert!(store.commit(&[long]).is_err());
        store.reopen().unwrap();
        assert_eq!(store.header("run").unwrap().revision, 1);
        assert_eq!(store.check().unwrap().issues, []);
    }
    // The run continues with other, shorter data. The stored pieces of the long commit do not affect it.
    for (revision, bytes) in [(2, 300_000), (3, 10)] {
        commit_all(&store, &[commit("run", revision, &noise(bytes))]);
        assert_eq!(text_of(&store, "run"), Value::text(noise(bytes)));
        assert_eq!(store.check().unwrap().issues, []);
    }
    store.delete("run").unwrap();
    let left = store
        .reader
        .rows(prefixed(&[Family::Changes.byte()]))
        .count();
    assert_eq!(left, 0);
}
