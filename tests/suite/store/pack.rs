//! The records of many commits are packed into a few rows, and everything is read as if each had its own row.

use crate::store::contract::{commit, hash, iteration, noise};
use crate::store::damage::{database, open_again};
use crate::support::{alone, kind, open_store};
use std::path::Path;
use windlass_engine::doctor::{examine, repair};
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, HistoryKind, RunState};
use windlass_store::{Commit, Store, StoreKind};
use windlass_value::time::Timestamp;

const COMMITS: u64 = 300;

/// The commit with a long record, which is not packed.
const LONG: u64 = 100;

fn of(state: &mut RunState, revision: u64) -> Commit {
    let number = i64::try_from(revision + 1).unwrap();
    let size = if revision + 1 == LONG { 20_000 } else { 50 };
    let mut commit = commit("run", revision);
    commit.changes = vec![
        Change::set("n".into(), Value::from(number)),
        Change::set("text".into(), Value::text(noise(revision, size))),
    ];
    let changes = commit.changes.iter();
    changes.for_each(|change| state.apply(change).unwrap());
    commit.iterations = vec![iteration("loop", revision, number)];
    commit.history = vec![HistoryEvent {
        at: Timestamp(number),
        what: HistoryKind::RunStarted,
    }];
    commit.snapshot = (number % 20 == 0).then(|| state.clone());
    commit
}

fn filled(dir: &Path) -> RunState {
    let store = open_store(dir).unwrap();
    let mut state = RunState::new("run".into(), hash(1));
    for revision in 0..COMMITS {
        let next = of(&mut state, revision);
        store.commit(&[next]).unwrap()[0].as_ref().unwrap();
    }
    state
}

fn rows(store: &dyn Store) -> usize {
    let mut rows = 0;
    let mut count = |row: windlass_store::RawRow| {
        assert_eq!(row.error, None);
        rows += usize::from(row.what.starts_with("changes ") && row.record.is_some());
    };
    store.raw(Some("run"), &mut count).unwrap();
    rows
}

/// Everything that is reported of the commits up to `last`.
fn reads_as_before(store: &dyn Store, last: u64) {
    let instants = |events: Vec<(u64, HistoryEvent)>| -> Vec<(u64, u64)> {
        let events = events.into_iter();
        let instant = |at: Timestamp| u64::try_from(at.0).unwrap();
        events
            .map(|(number, event)| (number, instant(event.at)))
            .collect()
    };
    let expected =
        |from: u64, to: u64| -> Vec<(u64, u64)> { (from..=to).map(|n| (n, n)).collect() };
    let all = store.history("run", 0, usize::MAX).unwrap();
    assert_eq!(instants(all), expected(1, last));
    for after in [1, 30, 63, 64, 65, last - 2] {
        let page = store.history("run", after, 10).unwrap();
        assert_eq!(
            instants(page),
            expected(after + 1, last.min(after + 10)),
            "{after}"
        );
    }
    let iterations = store.iterations("run", None, usize::MAX).unwrap();
    let numbers: Vec<u64> = iterations.iter().map(|row| row.iteration).collect();
    assert_eq!(numbers, (0..last).collect::<Vec<_>>());
    let back = store.changes_back("run", last - 20, 60).unwrap();
    let numbers: Vec<u64> = back.iter().map(|(revision, _)| *revision).collect();
    assert_eq!(numbers, (last - 79..=last - 20).rev().collect::<Vec<_>>());
    assert!(back.iter().all(|(_, changes)| changes.len() == 2));
    let known = store.iterations_of("run", "loop").unwrap();
    let places = (0..last).map(|iteration| (iteration, known.one(iteration).unwrap().row));
    let places: Vec<_> = places.collect();
    let whole = store.whole_rows("run", "loop", &places).unwrap();
    assert_eq!(whole.len() as u64, last);
}

#[test]
fn many_records_lie_in_few_rows_and_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let state = filled(dir.path());
    let store = open_again(dir.path());
    let rows = rows(&*store);
    // The commits after the last pack and the long one have separate rows.
    assert!(rows < 64 + 20 + 12, "{rows} rows");
    reads_as_before(&*store, COMMITS);
    assert_eq!(store.load("run").unwrap().state, state);
    let found = store.check().unwrap();
    assert_eq!((found.whole, found.issues), (1, vec![]));
}

/// An older head points to the middle of a pack.
#[test]
fn a_pack_that_extends_beyond_the_head_is_split() {
    if kind() == StoreKind::Fjall {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut state = RunState::new("run".into(), hash(1));
    let mut go_on = |revisions: std::ops::Range<u64>| {
        let store = open_again(dir.path());
        for revision in revisions {
            let mut next = of(&mut state, revision);
            // The remaining head has no snapshot, because one of its time would have been deleted.
            next.snapshot = next.snapshot.filter(|_| revision + 1 == 120);
            store.commit(&[next]).unwrap()[0].as_ref().unwrap();
        }
    };
    go_on(0..90);
    let head = database(dir.path()).get(b"rrun\0").unwrap().unwrap();
    alone(|| open_store(dir.path()).map(drop)).unwrap();
    go_on(90..COMMITS);
    let db = database(dir.path());
    let packed = db.scan_prefix(b"zrun\0").keys().map(Result::unwrap);
    let ends: Vec<u8> = packed.map(|key| key[key.len() - 1]).collect();
    assert!(!ends.contains(&90), "it is packed");
    db.insert(b"rrun\0", head).unwrap();
    db.flush().unwrap();
    drop(db);
    alone(|| repair(dir.path())).unwrap();
    let found = alone(|| examine(dir.path())).unwrap();
    assert_eq!((found.runs, found.unreadable), (1, vec![]));
    reads_as_before(&*open_again(dir.path()), 90);
}
