//! What every store must do, tested with each of them.

use crate::support::alone;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;
use windlass_expression::Value;
use windlass_machine::program::ProgramHash;
use windlass_machine::{
    Change, HistoryEvent, HistoryKind, IterationRow, LoopEnd, LoopState, Records, RunState,
    RunStatus,
};
use windlass_model::model::{Dialect, Name, Origin, Status};
use windlass_source::source::{Bundle, SourceFile};
use windlass_store::{
    Commit, EndedIteration, MemoryStore, Placement, ProgramSource, Retention, RunHeader, Store,
    StoreError, StoreKind, StoreOptions, StoredWorkflow, open_with,
};
use windlass_value::time::Timestamp;

/// Opens a store in a directory. A store in memory loses its content when it is closed.
type Open = fn(&Path) -> Arc<dyn Store>;

const KEEP: Retention = Retention {
    iterations: 20,
    events: 50,
    ended_loops: 3,
    compact_every: 8,
};

fn on_disk(dir: &Path, kind: StoreKind) -> Arc<dyn Store> {
    let options = StoreOptions {
        retention: KEEP,
        ..StoreOptions::default()
    };
    open_with(dir, Some(kind), options).unwrap()
}

fn sled(dir: &Path) -> Arc<dyn Store> {
    on_disk(dir, StoreKind::Sled)
}

#[cfg(feature = "fjall")]
fn fjall(dir: &Path) -> Arc<dyn Store> {
    on_disk(dir, StoreKind::Fjall)
}

fn memory(_: &Path) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(KEEP))
}

macro_rules! contract {
    ($($name:ident),* $(,)?) => {
        mod in_memory {
            $(#[test] fn $name() { super::$name(&super::Bench::new(super::memory)); })*
        }
        mod on_disk {
            $(#[test] fn $name() { super::$name(&super::Bench::new(super::sled)); })*
        }
        #[cfg(feature = "fjall")]
        mod in_fjall {
            $(#[test] fn $name() { super::$name(&super::Bench::new(super::fjall)); })*
        }
    };
}

contract!(
    an_empty_store_has_nothing,
    a_run_comes_back_as_it_was_committed,
    a_wrong_revision_is_refused_and_the_others_stand,
    a_commit_that_does_not_fit_leaves_nothing,
    due_runs_come_in_order,
    a_parked_run_is_in_no_index,
    a_reopened_store_continues,
    placements_move_a_run_between_the_indexes,
    runs_are_listed_in_pages,
    ten_thousand_runs_are_listed,
    a_snapshot_replaces_what_came_before,
    a_snapshot_of_another_run_or_program_is_refused,
    a_loop_is_shown_without_what_only_the_run_reads,
    large_values_come_back,
    values_of_all_kinds_come_back_whatever_makes_their_bytes_fewer,
    history_is_numbered_and_paged,
    old_rows_are_let_go,
    every_iteration_leaves_a_few_bytes,
    nested_loops_do_not_pile_up,
    what_an_early_loop_left_outlasts_a_later_one,
    iterations_of_one_loop_or_of_all,
    a_deleted_run_leaves_nothing,
    programs_stay_while_a_run_pins_them,
    runs_with_similar_ids_are_distinguished,
    two_writers_at_once,
    commits_do_not_wait_for_a_run_that_is_decoded,
    what_is_in_several_pieces_is_read_whole_while_it_changes,
    workflows_are_saved_under_their_names,
);

struct Bench {
    _dir: tempfile::TempDir,
    store: Arc<dyn Store>,
}

impl Bench {
    fn new(open: Open) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        Self { _dir: dir, store }
    }
}

pub fn hash(n: u8) -> ProgramHash {
    ProgramHash([n; 32])
}

pub fn source(text: &str) -> ProgramSource {
    ProgramSource {
        bundle: Bundle {
            files: vec![SourceFile {
                path: String::from("a.yaml"),
                text: text.to_owned(),
            }],
        },
        dialect: Dialect::Loom,
        max_count: 5_000,
        max_timeout_ms: 1,
        origin: Origin::Operator,
        folder: None,
    }
}

/// The next commit of a run that is at `revision`.
pub fn commit(run: &str, revision: u64) -> Commit {
    Commit {
        header: RunHeader {
            id: run.into(),
            workflow: "poll".into(),
            program: hash(1),
            status: RunStatus::Running,
            revision: revision + 1,
            snapshot: 0,
            started_at: Timestamp(1_000),
            updated_at: Timestamp(1_000 + i64::try_from(revision).unwrap()),
            placement: Placement::Runnable,
            labels: BTreeMap::from([(String::from("team"), String::from("blue"))]),
        },
        changes: vec![set("n", i64::try_from(revision).unwrap())],
        loops: Vec::new(),
        iterations: Vec::new(),
        history: Vec::new(),
        snapshot: None,
        program: (revision == 0).then(|| source("text")),
    }
}

fn set(name: &str, value: impl Into<Value>) -> Change {
    Change::set(name.into(), value.into())
}

fn at(run: &str, revision: u64, placement: Placement) -> Commit {
    let mut commit = commit(run, revision);
    commit.header.placement = placement;
    commit
}

pub fn ok(store: &dyn Store, commit: Commit) {
    for outcome in store.commit(&[commit]).unwrap() {
        outcome.unwrap();
    }
}

pub fn loop_state(path: &str, iteration: u64, ended: bool) -> LoopState {
    LoopState {
        path: path.to_owned(),
        kind: "until".into(),
        title: None,
        collected: Value::Null,
        iteration,
        max_iterations: 100,
        budget: 100,
        timeout_ms: None,
        started_at: Timestamp(5),
        deadline: Some(Timestamp(500)),
        deadline_timer: None,
        iteration_started_at: None,
        next_due_at: None,
        last_condition: Some(false),
        last_status: Some(Status::Succeeded),
        last: Records::new(),
        ended: ended.then_some(LoopEnd::Condition),
        pages: BTreeMap::new(),
    }
}

pub fn iteration(path: &str, iteration: u64, ended_at: i64) -> IterationRow {
    IterationRow {
        path: path.to_owned(),
        iteration,
        condition: Some(true),
        status: Status::Succeeded,
        result: Value::from(i64::try_from(iteration).unwrap()),
        started_at: Timestamp(ended_at - 1),
        ended_at: Timestamp(ended_at),
    }
}

/// A text that compression does not shorten.
pub fn noise(seed: u64, length: usize) -> String {
    let mut number = seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut letter = || {
        // xorshift64*
        number ^= number >> 12;
        number ^= number << 25;
        number ^= number >> 27;
        let high = number.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 58;
        char::from(b'0' + u8::try_from(high).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

fn signalled(n: u64) -> HistoryEvent {
    HistoryEvent {
        at: Timestamp(i64::try_from(n).unwrap()),
        what: HistoryKind::Signalled {
            name: n.to_string().into(),
        },
    }
}

fn a_snapshot_of_another_run_or_program_is_refused(bench: &Bench) {
    let store = &*bench.store;
    let ours = || RunState::new("run".into(), hash(1));
    for (number, state) in [
        RunState::new("other".into(), hash(1)),
        RunState::new("run".into(), hash(2)),
        ours(),
    ]
    .into_iter()
    .enumerate()
    {
        let expected = (state == ours()).then(|| state.clone());
        let mut next = commit("run", number as u64);
        next.snapshot = Some(state);
        ok(store, next);
        match (store.load("run"), expected) {
            (Ok(stored), Some(state)) => assert_eq!(stored.state, state),
            (Err(StoreError::Corrupt { what }), None) => {
                assert_eq!(what, "the snapshot of run run is another run's");
            }
            (other, _) => panic!("{number}: {other:?}"),
        }
    }
}

/// The last iteration's record, stored values and the pages that were read may be large, and are parts of the run's own
/// changes.
fn a_loop_is_shown_without_what_only_the_run_reads(bench: &Bench) {
    let store = &*bench.store;
    let plain = loop_state("poll", 1, false);
    let mut paged = plain.clone();
    paged.pages = BTreeMap::from([(7, 0)]);
    let mut keeping = plain.clone();
    keeping.collected = Value::from("long");
    for (number, row) in [paged, keeping].into_iter().enumerate() {
        let mut next = commit("run", number as u64);
        next.loops = vec![row];
        ok(store, next);
        assert_eq!(store.loops("run").unwrap(), std::slice::from_ref(&plain));
    }
}

fn an_empty_store_has_nothing(bench: &Bench) {
    let store = &*bench.store;
    assert!(matches!(store.header("x"), Err(StoreError::UnknownRun(run)) if &*run == "x"));
    assert!(matches!(store.load("x"), Err(StoreError::UnknownRun(_))));
    assert!(matches!(store.loops("x"), Err(StoreError::UnknownRun(_))));
    assert!(matches!(
        store.history("x", 0, 9),
        Err(StoreError::UnknownRun(_))
    ));
    assert!(matches!(
        store.iterations("x", None, 9),
        Err(StoreError::UnknownRun(_))
    ));
    assert!(matches!(store.delete("x"), Err(StoreError::UnknownRun(_))));
    assert!(matches!(
        store.program(hash(1)),
        Err(StoreError::Corrupt { .. })
    ));
    assert_eq!(store.list(None, 10).unwrap(), []);
    assert_eq!(store.runnable().unwrap(), []);
    assert_eq!(store.due(None, Timestamp(i64::MAX), 10).unwrap(), []);
    assert_eq!(store.commit(&[]).unwrap().len(), 0);
    assert_eq!(store.sweep().unwrap(), 0);
}

fn a_run_comes_back_as_it_was_committed(bench: &Bench) {
    let store = &*bench.store;
    let mut state = RunState::new("a".into(), hash(1));
    let mut tail = 0;
    for revision in 0..30 {
        let mut commit = commit("a", revision);
        commit.changes.push(Change::set(
            format!("v{revision}").into(),
            Value::array(vec![Value::Null, Value::from(1.5)]),
        ));
        commit.loops.push(loop_state("loop", revision, false));
        commit.iterations.push(iteration("loop", revision, 10));
        commit.history.push(signalled(revision));
        commit
            .changes
            .iter()
            .for_each(|change| state.apply(change).unwrap());
        let header = commit.header.clone();
        let outcome = store.commit(&[commit]).unwrap().remove(0).unwrap();
        assert_eq!(outcome.receipt.revision(), revision + 1);
        assert_eq!(outcome.snapshot_bytes, None);
        tail += outcome.change_bytes;
        let stored = store.load("a").unwrap();
        assert_eq!(stored.header, header);
        assert_eq!(stored.state, state);
        assert_eq!(stored.tail_bytes, tail);
        assert_eq!(stored.snapshot_bytes, 0);
        assert_eq!(store.header("a").unwrap(), header);
    }
    assert_eq!(store.program(hash(1)).unwrap(), source("text"));
    assert_eq!(
        store.loops("a").unwrap(),
        [loop_state("loop", 29, false)],
        "one row, the last"
    );
}

fn a_wrong_revision_is_refused_and_the_others_stand(bench: &Bench) {
    let store = &*bench.store;
    ok(store, commit("a", 0));
    let group = [
        commit("b", 0),
        commit("a", 0),
        commit("a", 2),
        commit("c", 1),
        commit("d", 0),
        commit("a", 1),
        commit("a", 2),
    ];
    let outcomes = store.commit(&group).unwrap();
    assert_eq!(outcomes.len(), 7);
    let twice = &outcomes[6];
    assert!(
        matches!(twice, Err(StoreError::Rejected { .. })),
        "{twice:?}"
    );
    assert!(outcomes[0].is_ok() && outcomes[4].is_ok() && outcomes[5].is_ok());
    let conflict = |at: usize| match &outcomes[at] {
        Err(StoreError::Conflict {
            run,
            expected,
            found,
        }) => (run.to_string(), *expected, *found),
        other => panic!("{other:?}"),
    };
    assert_eq!(conflict(1), (String::from("a"), 0, 1));
    assert_eq!(conflict(2), (String::from("a"), 2, 1));
    assert_eq!(conflict(3), (String::from("c"), 1, 0));
    assert_eq!(store.header("a").unwrap().revision, 2);
    assert_eq!(store.header("b").unwrap().revision, 1);
    assert_eq!(store.header("d").unwrap().revision, 1);
    assert!(store.header("c").is_err());
    // A group that is refused as a whole changes nothing either.
    let refused = store.commit(&[commit("a", 7)]).unwrap();
    assert!(refused[0].is_err());
    assert_eq!(store.load("a").unwrap().header.revision, 2);
}

fn a_commit_that_does_not_fit_leaves_nothing(bench: &Bench) {
    let store = &*bench.store;
    let deep = (0..500).fold(Value::Null, |inner, _| Value::array(vec![inner]));
    let mut bad = commit("bad", 0);
    bad.header.program = hash(9);
    bad.changes.push(set("deep", deep));
    let long = commit(&"x".repeat(129), 0);
    let empty = commit("", 0);
    let outcomes = store
        .commit(&[commit("a", 0), bad, long, empty, commit("b", 0)])
        .unwrap();
    let fits: Vec<bool> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(_) => true,
            Err(StoreError::Rejected { .. }) => false,
            Err(other) => panic!("{other}"),
        })
        .collect();
    assert_eq!(fits, [true, false, false, false, true]);
    let reasons = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let reasons: Vec<String> = reasons.skip(1).map(ToString::to_string).collect();
    assert!(reasons[0].contains("longer than 128 bytes"), "{reasons:?}");
    assert!(reasons[1].contains("empty"), "{reasons:?}");
    let ids: Vec<_> = store.list(None, 9).unwrap();
    assert_eq!(ids.len(), 2);
    assert!(store.program(hash(9)).is_err());
    let mut good = commit("bad", 0);
    good.header.program = hash(9);
    ok(store, good);
    assert_eq!(store.program(hash(9)).unwrap(), source("text"));
}

fn due_runs_come_in_order(bench: &Bench) {
    let store = &*bench.store;
    let times = [5_000, 70, -3, 70, 1 << 40, 0, 256, 255];
    let group: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(n, at_ms)| at(&format!("r{n}"), 0, Placement::Due(Timestamp(*at_ms))))
        .collect();
    store.commit(&group).unwrap();
    let due = |now, limit| -> Vec<(i64, String)> {
        let due = store.due(None, Timestamp(now), limit).unwrap();
        due.into_iter()
            .map(|(at, run)| (at.0, run.to_string()))
            .collect()
    };
    let expected: Vec<(i64, String)> = [
        (-3, "r2"),
        (0, "r5"),
        (70, "r1"),
        (70, "r3"),
        (255, "r7"),
        (256, "r6"),
        (5_000, "r0"),
        (1 << 40, "r4"),
    ]
    .map(|(at, run)| (at, String::from(run)))
    .to_vec();
    assert_eq!(due(i64::MAX, 100), expected);
    assert_eq!(due(255, 100), expected[..5]);
    assert_eq!(due(254, 100), expected[..4]);
    assert_eq!(due(i64::MAX, 3), expected[..3]);
    assert_eq!(due(-4, 100), []);
    let behind = |at, run: &str, until| -> Vec<String> {
        let after = (Timestamp(at), Name::from(run));
        let due = store.due(Some(&after), Timestamp(until), 2).unwrap();
        due.into_iter().map(|(_, run)| run.to_string()).collect()
    };
    assert_eq!(behind(70, "r1", i64::MAX), ["r3", "r7"]);
    assert_eq!(behind(70, "r2", 70), ["r3"], "after one that is not there");
    assert_eq!(behind(70, "r3", 70), Vec::<String>::new());
    assert_eq!(behind(71, "r1", 70), Vec::<String>::new(), "after the end");
    assert_eq!(store.runnable().unwrap(), []);
}

fn placements_move_a_run_between_the_indexes(bench: &Bench) {
    let store = &*bench.store;
    let seen = || {
        let due: Vec<_> = store.due(None, Timestamp(i64::MAX), 9).unwrap();
        let due: Vec<i64> = due.into_iter().map(|(at, _)| at.0).collect();
        (due, store.runnable().unwrap().len())
    };
    ok(store, at("a", 0, Placement::Runnable));
    assert_eq!(seen(), (vec![], 1));
    ok(store, at("a", 1, Placement::Runnable));
    assert_eq!(seen(), (vec![], 1));
    ok(store, at("a", 2, Placement::Due(Timestamp(7))));
    assert_eq!(seen(), (vec![7], 0));
    ok(store, at("a", 3, Placement::Due(Timestamp(9))));
    assert_eq!(seen(), (vec![9], 0));
    ok(store, at("a", 4, Placement::Idle));
    assert_eq!(seen(), (vec![], 0));
    ok(store, at("a", 5, Placement::Due(Timestamp(3))));
    store.delete("a").unwrap();
    assert_eq!(seen(), (vec![], 0));
}

fn runs_are_listed_in_pages(bench: &Bench) {
    let store = &*bench.store;
    let ids = ["a", "a#1", "aa", "b", "é", "z"];
    let mut group: Vec<_> = ids.iter().map(|id| commit(id, 0)).collect();
    group.reverse();
    store.commit(&group).unwrap();
    let page = |after: Option<&str>, limit| -> Vec<String> {
        let page = store.list(after, limit).unwrap();
        page.into_iter().map(|head| head.id.to_string()).collect()
    };
    assert_eq!(page(None, 99), ["a", "a#1", "aa", "b", "z", "é"]);
    assert_eq!(page(None, 2), ["a", "a#1"]);
    assert_eq!(page(Some("a#1"), 2), ["aa", "b"]);
    assert_eq!(page(Some("a0"), 1), ["aa"], "after one that is not there");
    assert_eq!(page(Some("é"), 2), Vec::<String>::new());
}

fn ten_thousand_runs_are_listed(bench: &Bench) {
    let store = &*bench.store;
    let ids: Vec<String> = (0..10_000).map(|n| format!("run-{n:05}")).collect();
    for chunk in ids.chunks(1_000) {
        let group: Vec<_> = chunk
            .iter()
            .map(|id| at(id, 0, Placement::Due(Timestamp(1))))
            .collect();
        let outcomes = store.commit(&group).unwrap();
        assert!(outcomes.iter().all(Result::is_ok));
    }
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.list(after.as_deref(), 999).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.to_string());
        seen.extend(page.into_iter().map(|head| head.id.to_string()));
    }
    assert_eq!(seen, ids);
    assert_eq!(
        store.due(None, Timestamp(1), usize::MAX).unwrap().len(),
        10_000
    );
}

fn a_snapshot_replaces_what_came_before(bench: &Bench) {
    let store = &*bench.store;
    let mut state = RunState::new("a".into(), hash(1));
    for revision in 0..25 {
        let mut commit = commit("a", revision);
        commit
            .changes
            .iter()
            .for_each(|change| state.apply(change).unwrap());
        let snapshot = revision % 10 == 4;
        commit.snapshot = snapshot.then(|| state.clone());
        let outcome = store.commit(&[commit]).unwrap().remove(0).unwrap();
        assert_eq!(outcome.snapshot_bytes.is_some(), snapshot);
        let stored = store.load("a").unwrap();
        assert_eq!(stored.state, state);
        if snapshot {
            assert_eq!(stored.tail_bytes, 0);
            assert_eq!(Some(stored.snapshot_bytes), outcome.snapshot_bytes);
        }
    }
    let stored = store.load("a").unwrap();
    assert_eq!((stored.header.revision, stored.header.snapshot), (25, 25));
}

/// A commit that contains a text twice: in a change, and as the result of an iteration.
fn commit_of_text(revision: u64, text: &str) -> Commit {
    Commit {
        changes: vec![set("text", text)],
        iterations: vec![IterationRow {
            result: Value::from(text),
            ..iteration("loop", revision, 1)
        }],
        ..commit("a", revision)
    }
}

fn large_values_come_back(bench: &Bench) {
    let store = &*bench.store;
    let mut state = RunState::new("a".into(), hash(1));
    // Around the sizes at which a record is split, and much larger.
    let sizes = [5_500, 5_580, 5_593, 5_600, 11_186, 65_536, 1 << 20];
    let mut revision = 0;
    for size in sizes {
        for snapshot in [false, true] {
            let text = noise(revision, size);
            let mut commit = commit_of_text(revision, &text);
            commit
                .changes
                .iter()
                .for_each(|change| state.apply(change).unwrap());
            commit.snapshot = snapshot.then(|| state.clone());
            ok(store, commit);
            revision += 1;
            assert_eq!(store.load("a").unwrap().state, state);
            let last = store.iterations("a", Some("loop"), 1).unwrap();
            assert_eq!(last[0].result, Value::from(text));
        }
    }
    assert_eq!(store.iterations("a", None, 99).unwrap().len(), 14);
    let mut big = commit("b", 0);
    big.header.program = hash(2);
    big.program = Some(source(&"program ".repeat(100_000)));
    ok(store, big);
    assert_eq!(
        store.program(hash(2)).unwrap(),
        source(&"program ".repeat(100_000))
    );
}

/// Records are plain, compressed quickly or deflated, depending on their length and content.
fn values_of_all_kinds_come_back_whatever_makes_their_bytes_fewer(bench: &Bench) {
    let store = &*bench.store;
    let mut state = RunState::new("a".into(), hash(1));
    let mut revision = 0;
    for size in (200..2_800).step_by(130) {
        let noise = noise(revision, size);
        // Repetitions, few different letters, and letters that all differ.
        let other: String = ('\u{100}'..).take(size / 2).collect();
        for text in ["ab".repeat(size / 2), noise, other] {
            let commit = commit_of_text(revision, &text);
            commit
                .changes
                .iter()
                .for_each(|change| state.apply(change).unwrap());
            ok(store, commit);
            revision += 1;
            assert_eq!(store.load("a").unwrap().state, state);
            let last = store.iterations("a", Some("loop"), 1).unwrap();
            assert_eq!(last[0].result, Value::from(text));
        }
    }
}

fn history_is_numbered_and_paged(bench: &Bench) {
    let store = &*bench.store;
    let mut next = 1;
    for (revision, count) in [3_u64, 0, 1, 5, 0, 2].into_iter().enumerate() {
        let mut commit = commit("a", revision as u64);
        commit.history = (next..next + count).map(signalled).collect();
        next += count;
        ok(store, commit);
    }
    let all: Vec<_> = (1..12).map(|n| (n, signalled(n))).collect();
    assert_eq!(store.history("a", 0, 99).unwrap(), all);
    for after in 0..12_u64 {
        for limit in 0..12 {
            let from = usize::try_from(after).unwrap().min(all.len());
            let to = (from + limit).min(all.len());
            assert_eq!(store.history("a", after, limit).unwrap(), all[from..to]);
        }
    }
    assert_eq!(store.history("a", u64::MAX, 9).unwrap(), []);
}

fn old_rows_are_let_go(bench: &Bench) {
    let store = &*bench.store;
    for revision in 0..400 {
        let mut commit = commit("a", revision);
        commit.loops.push(loop_state("loop", revision, false));
        let mut row = iteration("loop", revision, i64::try_from(revision).unwrap());
        if revision % 3 == 0 {
            row.result = Value::from(noise(revision, 20_000));
        }
        commit.iterations.push(row);
        commit.history = vec![signalled(2 * revision + 1), signalled(2 * revision + 2)];
        // What a run needs to resume is never discarded.
        commit.snapshot = (revision % 6 == 5).then(|| RunState::new("a".into(), hash(1)));
        ok(store, commit);
    }
    let rows = store.iterations("a", None, usize::MAX).unwrap();
    let numbers: Vec<u64> = rows.iter().map(|row| row.iteration).collect();
    assert!((20..=29).contains(&numbers.len()), "{}", numbers.len());
    let first = 400 - numbers.len() as u64;
    assert_eq!(numbers, (first..400).collect::<Vec<_>>());
    let history = store.history("a", 0, usize::MAX).unwrap();
    assert!((50..=68).contains(&history.len()), "{}", history.len());
    let first = 801 - history.len() as u64;
    let expected: Vec<_> = (first..=800).map(|n| (n, signalled(n))).collect();
    assert_eq!(history, expected);
    assert_eq!(store.loops("a").unwrap(), [loop_state("loop", 399, false)]);
}

fn every_iteration_leaves_a_few_bytes(bench: &Bench) {
    const EACH: u64 = 40;
    let store = &*bench.store;
    let ended = |n: u64| {
        let at = i64::try_from(n + 10).unwrap() * 1_000;
        let mut row = iteration("loop", n, at);
        if n % 50 == 7 {
            row.status = Status::Failed;
        }
        row
    };
    let called = |n: u64, attempt: u32, error: Option<String>| {
        let (path, iteration) = (Some(String::from("loop")), Some(n));
        let what = HistoryKind::ActionEnded {
            node_name: "ask".into(),
            status: Status::Failed,
            error,
            attempt,
            path,
            iteration,
        };
        let at = Timestamp(i64::try_from(n).unwrap() * 1_000);
        HistoryEvent { at, what }
    };
    let mut retried = Vec::new();
    for revision in 0..250 {
        let mut commit = commit("a", revision);
        for n in revision * EACH..(revision + 1) * EACH {
            commit.iterations.push(ended(n));
            if n % 50 == 7 {
                commit
                    .history
                    .push(called(n, 3, Some(format!("no {}", n % 100))));
            }
        }
        // A run that ends with the next commit.
        let next = (revision + 1) * EACH;
        if next % 50 != 7 && revision < 249 {
            commit.history.push(called(next, 2, None));
            retried.push(next);
        }
        commit.history.push(signalled(revision));
        commit
            .loops
            .push(loop_state("loop", (revision + 1) * EACH, false));
        commit.snapshot = (revision % 6 == 5).then(|| RunState::new("a".into(), hash(1)));
        ok(store, commit);
    }
    let found = all_of(store, "loop");
    assert_eq!(found.len(), 10_000);
    for (n, one) in (0..).zip(&found) {
        let row = ended(n);
        assert_eq!((one.iteration, one.status), (n, row.status));
        assert_eq!(
            (one.started_at, one.ended_at),
            (row.started_at, row.ended_at)
        );
        assert_eq!(one.condition, row.condition);
        let failed = row.status == Status::Failed;
        let attempts = match failed {
            true => 3,
            false => 1 + u32::from(retried.contains(&n)),
        };
        assert_eq!(one.attempts, attempts, "iteration {n}");
        let error = failed.then(|| format!("no {}", n % 100));
        assert_eq!(one.error.as_deref(), error.as_deref());
    }
    let places: Vec<_> = found.iter().map(|one| (one.iteration, one.row)).collect();
    let whole = store.whole_rows("a", "loop", &places).unwrap();
    let whole: BTreeMap<u64, _> = whole.into_iter().map(|row| (row.iteration, row)).collect();
    let is_retained = |n: u64| n < 100 || n % 50 == 7 || n >= 9_980;
    for n in (0..10_000).filter(|n| is_retained(*n)) {
        assert_eq!(whole.get(&n), Some(&ended(n)), "iteration {n}");
    }
    assert!(whole.len() < 2_000, "{}", whole.len());
    store.delete("a").unwrap();
    ok(store, commit("a", 0));
    assert_eq!(all_of(store, "loop"), []);
}

fn all_of(store: &dyn Store, path: &str) -> Vec<EndedIteration> {
    let found = store.iterations_of("a", path).unwrap();
    let back = found.blocks(0, u64::MAX, true).flatten();
    let mut back: Vec<EndedIteration> = back.collect();
    let all: Vec<EndedIteration> = found.blocks(0, u64::MAX, false).flatten().collect();
    back.sort_by_key(|one| one.iteration);
    assert_eq!(all, back, "in both directions");
    assert_eq!(found.last(), all.last().map(|one| one.iteration));
    for at in [all.len() / 2, all.len().saturating_sub(1)] {
        let one = all.get(at).cloned();
        assert_eq!(one.as_ref().and_then(|one| found.one(one.iteration)), one);
    }
    all
}

fn nested_loops_do_not_pile_up(bench: &Bench) {
    let store = &*bench.store;
    let mut revision = 0;
    for outer in 0..100 {
        let path = format!("outer#{outer}/inner");
        for inner in 0..3 {
            let mut commit = commit("a", revision);
            commit.loops = vec![
                loop_state(&path, inner + 1, inner == 2),
                loop_state("outer", outer, false),
            ];
            commit.iterations = vec![iteration(&path, inner, i64::try_from(revision).unwrap())];
            commit.snapshot = (revision % 6 == 5).then(|| RunState::new("a".into(), hash(1)));
            ok(store, commit);
            revision += 1;
        }
    }
    let loops = store.loops("a").unwrap();
    let paths: Vec<&str> = loops.iter().map(|row| row.path.as_str()).collect();
    assert!((4..=8).contains(&paths.len()), "{paths:?}");
    assert_eq!(paths[0], "outer");
    assert!(paths.contains(&"outer#99/inner") && paths.contains(&"outer#97/inner"));
    for outer in 0..100 {
        let path = format!("outer#{outer}/inner");
        let ended = all_of(store, &path);
        let numbers: Vec<u64> = ended.iter().map(|one| one.iteration).collect();
        assert_eq!(numbers, [0, 1, 2], "{path}");
    }
    let rows = store.iterations("a", None, usize::MAX).unwrap();
    assert!((20..=29).contains(&rows.len()), "{}", rows.len());
    let last = rows.last().unwrap();
    assert_eq!((&*last.path, last.iteration), ("outer#99/inner", 2));
    let own = store.iterations("a", Some("outer#98/inner"), 9).unwrap();
    assert_eq!(own.len(), 3);
    // A run that has not ended is never pruned, however many others have ended since.
    ok(store, {
        let mut commit = commit("b", 0);
        commit.loops = vec![loop_state("each#0/inner", 1, false)];
        commit
    });
    for n in 1..50 {
        let mut commit = commit("b", n);
        commit.loops = vec![loop_state(&format!("each#{n}/inner"), 1, true)];
        commit.snapshot = (n % 6 == 5).then(|| RunState::new("b".into(), hash(1)));
        ok(store, commit);
    }
    let loops = store.loops("b").unwrap();
    assert_eq!(loops[0].path, "each#0/inner");
    assert!(loops.len() < 13);
}

fn what_an_early_loop_left_outlasts_a_later_one(bench: &Bench) {
    let store = &*bench.store;
    for revision in 0..400 {
        let mut commit = commit("a", revision);
        let (path, n) = match revision {
            0..30 => ("early", revision),
            _ => ("late", revision - 30),
        };
        commit.loops = vec![loop_state(path, n, revision == 29)];
        commit.iterations = vec![iteration(path, n, i64::try_from(revision).unwrap())];
        commit.history = vec![signalled(2 * revision + 1), signalled(2 * revision + 2)];
        commit.snapshot = (revision % 5 == 4).then(|| RunState::new("a".into(), hash(1)));
        ok(store, commit);
        if revision % 150 == 149 {
            // What was only in memory is lost.
            alone(|| store.reopen()).unwrap();
        }
    }
    let numbers = |path: Option<&str>, limit: usize| -> Vec<u64> {
        let rows = store.iterations("a", path, limit).unwrap();
        rows.into_iter().map(|row| row.iteration).collect()
    };
    assert_eq!(numbers(Some("early"), 99), (10..30).collect::<Vec<_>>());
    assert_eq!(numbers(Some("late"), 99), (350..370).collect::<Vec<_>>());
    assert_eq!(numbers(None, 99).len(), 40);
    assert_eq!(numbers(None, 99)[..20], (10..30).collect::<Vec<_>>());
    assert_eq!(numbers(None, 25).len(), 25);
    let loops = [
        loop_state("early", 29, true),
        loop_state("late", 369, false),
    ];
    assert_eq!(store.loops("a").unwrap(), loops);
    assert!(store.history("a", 0, 999).unwrap().len() < 120);
}

fn iterations_of_one_loop_or_of_all(bench: &Bench) {
    let store = &*bench.store;
    // Loop, iteration, and time of its end: two branches interleaved, and a clock that was set back in one.
    let rows = [
        ("left", 0, 10),
        ("right", 0, 11),
        ("left", 1, 12),
        ("left", 2, 5),
        ("right", 1, 13),
        ("left", 3, 14),
    ];
    for (revision, (path, n, ended_at)) in (0..).zip(rows) {
        let mut commit = commit("a", revision);
        commit.iterations = vec![iteration(path, n, ended_at)];
        ok(store, commit);
    }
    let seen = |path: Option<&str>, limit| -> Vec<(String, u64)> {
        let rows = store.iterations("a", path, limit).unwrap();
        rows.into_iter()
            .map(|row| (row.path, row.iteration))
            .collect()
    };
    let named = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        rows.iter().map(|(p, n)| (String::from(*p), *n)).collect()
    };
    let all = [
        ("left", 0),
        ("right", 0),
        ("left", 1),
        ("left", 2),
        ("right", 1),
        ("left", 3),
    ];
    assert_eq!(seen(None, 99), named(&all));
    assert_eq!(seen(None, 2), named(&all[4..]));
    assert_eq!(seen(Some("left"), 2), named(&[("left", 2), ("left", 3)]));
    assert_eq!(
        seen(Some("right"), 99),
        named(&[("right", 0), ("right", 1)])
    );
    assert_eq!(seen(Some("righ"), 99), named(&[]));
    assert_eq!(seen(Some("left"), 0), named(&[]));
}

fn a_deleted_run_leaves_nothing(bench: &Bench) {
    let store = &*bench.store;
    for (run, snapshot) in [("a", true), ("ab", false)] {
        for revision in 0..5 {
            let mut commit = commit(run, revision);
            commit.changes = vec![set("big", noise(revision, 30_000))];
            commit.loops.push(loop_state("loop", revision, false));
            commit.iterations.push(iteration("loop", revision, 1));
            commit.history.push(signalled(revision));
            commit.snapshot =
                (snapshot && revision == 3).then(|| RunState::new(run.into(), hash(1)));
            ok(store, commit);
        }
    }
    let other = store.load("ab").unwrap();
    store.delete("a").unwrap();
    assert!(matches!(store.load("a"), Err(StoreError::UnknownRun(_))));
    assert_eq!(store.runnable().unwrap().len(), 1);
    assert_eq!(store.load("ab").unwrap(), other);
    assert_eq!(store.loops("ab").unwrap().len(), 1);
    // The same id again starts from nothing.
    ok(store, commit("a", 0));
    assert_eq!(store.load("a").unwrap().header.revision, 1);
    assert_eq!(store.loops("a").unwrap(), []);
    assert_eq!(store.iterations("a", None, 99).unwrap(), []);
    assert_eq!(store.history("a", 0, 99).unwrap(), []);
}

fn programs_stay_while_a_run_pins_them(bench: &Bench) {
    let store = &*bench.store;
    for (run, program) in [("a", 1), ("b", 2), ("c", 2)] {
        let mut commit = commit(run, 0);
        commit.header.program = hash(program);
        commit.program = Some(source(&"long ".repeat(5_000 * usize::from(program))));
        ok(store, commit);
    }
    assert_eq!(store.sweep().unwrap(), 0);
    store.delete("a").unwrap();
    store.delete("b").unwrap();
    assert!(store.program(hash(1)).is_ok());
    assert_eq!(store.sweep().unwrap(), 1);
    assert!(store.program(hash(1)).is_err());
    assert_eq!(
        store.program(hash(2)).unwrap(),
        source(&"long ".repeat(10_000))
    );
    let mut again = commit("a", 0);
    again.program = Some(source("again"));
    ok(store, again);
    assert_eq!(store.program(hash(1)).unwrap(), source("again"));
}

fn runs_with_similar_ids_are_distinguished(bench: &Bench) {
    let store = &*bench.store;
    let ids = ["a", "a\0", "a\0b", "a\u{1}", "aa", "a#1", "a/b"];
    for (n, id) in (1..).zip(ids) {
        for revision in 0..n {
            let mut commit = commit(id, revision);
            commit.loops.push(loop_state("l", n, false));
            commit.iterations.push(iteration("l", revision, 1));
            commit.history.push(signalled(revision));
            ok(store, commit);
        }
    }
    for (n, id) in (1_u64..).zip(ids) {
        assert_eq!(store.load(id).unwrap().header.revision, n);
        assert_eq!(store.loops(id).unwrap(), [loop_state("l", n, false)]);
        let count = usize::try_from(n).unwrap();
        assert_eq!(store.iterations(id, None, 99).unwrap().len(), count);
        assert_eq!(store.iterations(id, Some("l"), 99).unwrap().len(), count);
        assert_eq!(store.history(id, 0, 99).unwrap().len(), count);
    }
    assert_eq!(store.list(None, 99).unwrap().len(), ids.len());
}

fn workflows_are_saved_under_their_names(bench: &Bench) {
    let store = &bench.store;
    let workflow = |name: &str, text: &str, at: i64| StoredWorkflow {
        name: name.into(),
        source: source(text),
        stored_at: Timestamp(at),
        schedule: None,
    };
    let names = |after: Option<&str>, limit: usize| -> Vec<String> {
        let found = store.workflows(after, limit).unwrap();
        found.iter().map(|one| one.name.to_string()).collect()
    };
    assert_eq!(store.workflow("a").unwrap(), None);
    assert!(names(None, 9).is_empty());
    let long = workflow("b", &"x".repeat(100_000), 1);
    assert!(!store.replace_workflow(&long, None, &[]).unwrap());
    assert!(
        !store
            .replace_workflow(&workflow("a", "one", 2), None, &[])
            .unwrap()
    );
    assert!(
        !store
            .replace_workflow(&workflow("a\0b", "two", 3), None, &[])
            .unwrap()
    );
    assert_eq!(store.workflow("b").unwrap(), Some(long));
    assert_eq!(names(None, 2), ["a", "a\0b"]);
    assert_eq!(names(Some("a\0b"), 2), ["b"]);
    // A shorter value replaces a long one completely, and no run is affected.
    store.commit(&[commit("a", 0)]).unwrap();
    let short = workflow("b", "y", 4);
    assert!(store.replace_workflow(&short, None, &[]).unwrap());
    assert_eq!(store.workflow("b").unwrap(), Some(short));
    assert!(store.remove_workflow("a").unwrap());
    assert!(!store.remove_workflow("a").unwrap());
    assert_eq!(names(None, 9), ["a\0b", "b"]);
    assert_eq!(store.list(None, 9).unwrap().len(), 1);
    store.sweep().unwrap();
    assert_eq!(names(None, 9), ["a\0b", "b"]);
}

fn two_writers_at_once(bench: &Bench) {
    const ROUNDS: u64 = 60;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &bench.store;
            scope.spawn(move || {
                for revision in 0..ROUNDS {
                    let group: Vec<_> = (0..5)
                        .map(|n| commit(&format!("{writer}-{n}"), revision))
                        .collect();
                    let outcomes = store.commit(&group).unwrap();
                    assert!(outcomes.iter().all(Result::is_ok));
                }
            });
        }
        // A reader never sees a part of a commit.
        let store = &bench.store;
        scope.spawn(move || {
            for _ in 0..200 {
                for head in store.list(None, 99).unwrap() {
                    store.load(&head.id).unwrap();
                }
            }
        });
    });
    let runs = store_revisions(&*bench.store);
    assert_eq!(runs.len(), 20);
    assert!(runs.values().all(|revision| *revision == ROUNDS));
}

fn commits_do_not_wait_for_a_run_that_is_decoded(bench: &Bench) {
    const COMMITS: u64 = 5;
    for revision in 0..COMMITS {
        let mut commit = commit("a", revision);
        commit.history = vec![signalled(revision)];
        ok(&*bench.store, commit);
    }
    let others = AtomicU64::new(0);
    let found = bench
        .store
        .commits_between("a", Timestamp(i64::MIN), None, &|_| {
            let revision = others.fetch_add(1, Ordering::SeqCst);
            let (store, (done, written)) = (Arc::clone(&bench.store), mpsc::channel());
            std::thread::spawn(move || {
                ok(&*store, commit("b", revision));
                done.send(()).unwrap();
            });
            let written = written.recv_timeout(Duration::from_secs(60));
            written.expect("the commit waits for the reader");
            true
        });
    assert_eq!(found.unwrap().len() as u64, COMMITS);
    assert_eq!(others.into_inner(), COMMITS);
}

fn what_is_in_several_pieces_is_read_whole_while_it_changes(bench: &Bench) {
    const ROUNDS: u64 = 100;
    let labelled = |revision: u64| {
        let mut commit = commit("a", revision);
        let label = noise(
            revision,
            60_000 + 20_000 * usize::try_from(revision % 4).unwrap(),
        );
        commit.header.labels.insert(String::from("long"), label);
        commit
    };
    let store = &*bench.store;
    ok(store, labelled(0));
    let (begin, writing) = (Barrier::new(2), AtomicBool::new(true));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            begin.wait();
            for revision in 1..ROUNDS {
                ok(store, labelled(revision));
            }
            writing.store(false, Ordering::SeqCst);
        });
        begin.wait();
        while writing.load(Ordering::SeqCst) {
            let header = store.header("a").unwrap();
            let expected = labelled(header.revision - 1).header.labels;
            assert!(
                header.labels == expected,
                "not those of {}",
                header.revision
            );
        }
    });
    assert_eq!(store.header("a").unwrap().revision, ROUNDS);
}

fn store_revisions(store: &dyn Store) -> BTreeMap<String, u64> {
    let runs = store.list(None, usize::MAX).unwrap();
    runs.into_iter()
        .map(|head| (head.id.to_string(), head.revision))
        .collect()
}

fn a_parked_run_is_in_no_index(bench: &Bench) {
    let store = &*bench.store;
    ok(store, at("a", 0, Placement::Runnable));
    ok(store, at("b", 0, Placement::Due(Timestamp(70))));
    for run in ["a", "b"] {
        store
            .set_quarantine(run, Placement::Idle, Some("why"))
            .unwrap();
    }
    assert!(store.runnable().unwrap().is_empty());
    assert_eq!(store.due(None, Timestamp(i64::MAX), 9).unwrap(), []);
    let header = store.header("a").unwrap();
    assert_eq!(header.labels["windlass.parked"], "why");
    assert_eq!((header.revision, header.placement), (1, Placement::Idle));
    // The run is runnable again, and continues.
    store
        .set_quarantine("a", Placement::Runnable, None)
        .unwrap();
    assert_eq!(store.runnable().unwrap(), ["a".into()]);
    assert_eq!(store.header("a").unwrap().labels.len(), 1);
    ok(store, at("a", 1, Placement::Due(Timestamp(90))));
    let due = store.due(None, Timestamp(i64::MAX), 9).unwrap();
    assert_eq!(due, [(Timestamp(90), "a".into())]);
    let behind = store.due(Some(&due[0]), Timestamp(i64::MAX), 9).unwrap();
    assert_eq!(behind, []);
    let unknown = store.set_quarantine("c", Placement::Idle, None);
    assert!(
        matches!(unknown, Err(StoreError::UnknownRun(_))),
        "{unknown:?}"
    );
}

fn a_reopened_store_continues(bench: &Bench) {
    let store = &*bench.store;
    ok(store, commit("a", 0));
    alone(|| store.reopen()).unwrap();
    assert_eq!(store.load("a").unwrap().header.revision, 1);
    ok(store, commit("a", 1));
    alone(|| store.reopen()).unwrap();
    assert_eq!(store.header("a").unwrap().revision, 2);
}
