//! SIGKILL during commits: what was acknowledged exists, and every commit is complete.
//!
//! The test starts its own binary again as a writer that reports each acknowledged commit. It kills the writer at a
//! random moment, repeatedly on the same store. `WINDLASS_KILLS` sets the number of kills.

use crate::store::contract::{commit, iteration, noise};
use crate::store::damage::{Dice, everything, open_again};
use crate::support::{kind, open_store, seen, sized};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, HistoryKind, RunState};
use windlass_store::{Placement, Store, StoreKind};
use windlass_value::time::Timestamp;

const DIR: &str = "WINDLASS_TEST_KILL_DIR";
const RUNS: usize = 8;

/// Not a test of its own: the process that is killed.
#[test]
fn store_kill_writer() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let store = open_store(Path::new(&dir)).unwrap();
    std::thread::scope(|scope| {
        // Two writers, so that groups overlap.
        for half in 0..2 {
            let store = &*store;
            scope.spawn(move || write_for_ever(store, half));
        }
    });
}

fn write_for_ever(store: &dyn Store, half: usize) {
    let ids = (0..RUNS).filter(|n| n % 2 == half).map(id);
    let mut states: Vec<(u64, RunState)> = ids
        .map(|id| match store.load(&id) {
            Ok(stored) => (stored.header.revision, stored.state),
            Err(_) => (
                0,
                RunState::new(id.as_str().into(), crate::store::contract::hash(1)),
            ),
        })
        .collect();
    loop {
        let group: Vec<_> = states
            .iter_mut()
            .map(|(revision, state)| {
                let next = step(state, *revision);
                *revision += 1;
                next
            })
            .collect();
        for outcome in store.commit(&group).unwrap() {
            outcome.unwrap();
        }
        let acknowledged: String = states
            .iter()
            .map(|(revision, state)| format!("{} {revision}\n", state.id))
            .collect();
        // One write, so that a line is never split.
        std::io::stdout()
            .write_all(acknowledged.as_bytes())
            .unwrap();
    }
}

fn id(n: usize) -> String {
    format!("run-{n}")
}

/// Everything that a commit writes contains its revision.
fn step(state: &mut RunState, revision: u64) -> windlass_store::Commit {
    let next = i64::try_from(revision + 1).unwrap();
    let mut commit = commit(&state.id, revision);
    let size = match revision % 24 {
        23 => 300_000,
        other => [40, 300, 20_000][usize::try_from(other % 3).unwrap()],
    };
    commit.changes = vec![
        Change::set("revision".into(), Value::from(next)),
        Change::set("text".into(), Value::from(noise(revision, size))),
    ];
    commit
        .changes
        .iter()
        .for_each(|change| state.apply(change).unwrap());
    commit.iterations = vec![iteration("loop", revision, next)];
    commit.history = vec![HistoryEvent {
        at: Timestamp(next),
        what: HistoryKind::RunStarted,
    }];
    commit.header.placement = Placement::Due(Timestamp(next));
    commit.snapshot = (next % 40 == 0).then(|| state.clone());
    commit
}

#[test]
fn acknowledged_commits_survive_sigkill() {
    let rounds: u64 = std::env::var("WINDLASS_KILLS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(sized(8, 4));
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(0x5EED);
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..rounds {
        let kill_after = 1 + dice.roll(400);
        for (run, revision) in write_and_kill(dir.path(), kill_after) {
            acknowledged.insert(run, revision);
        }
        let store = open_store(dir.path()).unwrap();
        for (run, revision) in &acknowledged {
            verify(&*store, run, *revision);
        }
    }
    assert_eq!(acknowledged.len(), RUNS);
    if kind() == StoreKind::Sled {
        let blobs = std::fs::read_dir(dir.path().join("store/blobs")).unwrap();
        assert_eq!(blobs.count(), 0);
    }
}

#[test]
fn who_only_looks_at_what_a_kill_left_sees_what_the_database_finds() {
    let mut dice = Dice(0x1005);
    let mut without_database = 0;
    for _ in 0..8 {
        // The log is small enough to be checked.
        let dir = tempfile::tempdir().unwrap();
        write_and_kill(dir.path(), 1 + dice.roll(40));
        let seen = seen(dir.path()).unwrap();
        let store = open_again(dir.path());
        if let Some(seen) = seen {
            let [seen, found] = [&seen as &dyn Store, &*store].map(everything);
            assert_eq!(format!("{seen:?}"), format!("{found:?}"));
            without_database += 1;
        }
    }
    println!("{without_database} of 8 were read without the database");
    assert!(without_database > 0 || kind() == StoreKind::Fjall);
}

/// Starts the writer, kills it after `lines` lines, and returns the last acknowledged revision of each run.
fn write_and_kill(dir: &Path, lines: u64) -> BTreeMap<String, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "store::kill::store_kill_writer",
            "--nocapture",
            "-q",
        ])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut seen = BTreeMap::new();
    let mut count = 0;
    let mut line = String::new();
    while out.read_line(&mut line).unwrap() > 0 {
        let words = line.trim().split_once(' ');
        let revision = words.and_then(|(run, n)| Some((run.to_owned(), n.parse().ok()?)));
        if let Some((run, revision)) = revision.filter(|_| line.starts_with("run-")) {
            seen.insert(run, revision);
            count += 1;
        }
        line.clear();
        if count == lines {
            // Lines that are in the pipe already count too, so it is read to its end.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(count >= lines, "the writer ended by itself");
    seen
}

/// The acknowledged revision or a later one exists, and all rows of a commit agree.
fn verify(store: &dyn Store, run: &str, acknowledged: u64) {
    let stored = store.load(run).unwrap();
    let revision = stored.header.revision;
    assert!(
        revision >= acknowledged,
        "{run}: {revision} < {acknowledged}"
    );
    let last = i64::try_from(revision).unwrap();
    assert_eq!(
        stored.state.variables.get("revision"),
        Some(&Value::from(last))
    );
    let rows = store.iterations(run, Some("loop"), 1).unwrap();
    assert_eq!(rows[0].iteration + 1, revision);
    let history = store.history(run, revision - 1, 10).unwrap();
    assert_eq!(history.len(), 1, "one event a commit");
    assert_eq!(history[0].0, revision);
    let due: Vec<_> = store.due(None, Timestamp(i64::MAX), usize::MAX).unwrap();
    let due: Vec<_> = due.iter().filter(|(_, name)| &**name == run).collect();
    assert_eq!(due, [&(Timestamp(last), run.into())]);
}
