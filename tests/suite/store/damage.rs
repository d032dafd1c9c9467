//! Damage: bytes of a store's files are flipped, zeroed and cut at many places. A store may refuse to open, or a read
//! may fail, with an error that reports it. What is read without an error is what was written. Nothing panics.

use crate::store::contract::{commit, hash, iteration, loop_state, noise, source};
use crate::support::{alone, kind, open_store, open_store_with, seen, sized};
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, HistoryKind, RunState};
use windlass_store::{
    MemoryStore, Placement, ReadStore, Retention, Store, StoreError, StoreKind, StoreOptions,
    StoredWorkflow, raw_record,
};
use windlass_value::time::Timestamp;

/// Pseudo-random numbers for the places.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % below.max(1)
    }
}

/// Everything that a store returns: the answer to each query, or its error.
pub fn everything(store: &dyn Store) -> Vec<Result<String, StoreError>> {
    fn text<T: Debug>(answer: Result<T, StoreError>) -> Result<String, StoreError> {
        answer.map(|answer| format!("{answer:?}"))
    }
    let mut out = vec![
        text(store.list(None, usize::MAX)),
        text(store.due(None, Timestamp(i64::MAX), usize::MAX)),
        text(store.runnable()),
        text(store.program(hash(1))),
    ];
    for run in (0..RUNS).map(id) {
        out.push(text(store.header(&run)));
        out.push(text(store.load(&run)));
        out.push(text(store.loops(&run)));
        out.push(text(store.iterations(&run, None, usize::MAX)));
        out.push(text(store.history(&run, 0, usize::MAX)));
    }
    out
}

pub const RUNS: usize = 12;

pub fn id(n: usize) -> String {
    format!("run-{n}")
}

/// Opens a store that was just closed.
pub fn open_again(dir: &Path) -> Arc<dyn Store> {
    alone(|| open_store(dir)).unwrap()
}

/// Creates a store with some of everything, and closes it.
pub fn sample(dir: &Path, reopen: bool) -> Vec<String> {
    // Few events are retained, so the first commits are discarded.
    let options = StoreOptions {
        retention: Retention {
            events: 25,
            compact_every: 8,
            ..Retention::default()
        },
        ..StoreOptions::default()
    };
    let mut store = open_store_with(dir, options).unwrap();
    let mut states: Vec<RunState> = (0..RUNS)
        .map(|n| RunState::new(id(n).into(), hash(1)))
        .collect();
    for revision in 0..60_u64 {
        if reopen && revision % 25 == 24 {
            // The database writes an index of its log when it opens.
            drop(store);
            store = alone(|| open_store_with(dir, options)).unwrap();
        }
        let group: Vec<_> = states
            .iter_mut()
            .enumerate()
            .map(|(n, state)| {
                let mut commit = commit(&state.id, revision);
                let size = if (revision + n as u64).is_multiple_of(13) {
                    30_000
                } else {
                    200
                };
                let text = noise(revision, size);
                commit.changes = vec![
                    Change::set("text".into(), Value::from(text)),
                    Change::set("n".into(), Value::from(revision as i64)),
                ];
                commit.iterations = vec![iteration("loop", revision, revision as i64)];
                commit.loops = vec![loop_state("loop", revision, false)];
                commit.history = vec![HistoryEvent {
                    at: Timestamp(revision as i64),
                    what: HistoryKind::RunStarted,
                }];
                if n % 3 == 0 {
                    commit.header.placement = Placement::Due(Timestamp(revision as i64));
                }
                commit
                    .changes
                    .iter()
                    .for_each(|change| state.apply(change).unwrap());
                commit.snapshot = (revision % 16 == 15).then(|| state.clone());
                commit
            })
            .collect();
        for outcome in store.commit(&group).unwrap() {
            outcome.unwrap();
        }
    }
    let answers = everything(&*store);
    answers.into_iter().map(Result::unwrap).collect()
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            // Preallocated space is a hole.
            let content = fs::read(entry.path()).unwrap();
            fs::write(&to, &content[..used(&content)]).unwrap();
            let file = fs::OpenOptions::new().write(true).open(to).unwrap();
            file.set_len(content.len() as u64).unwrap();
        }
    }
}

/// The length of the content without the preallocated space at its end.
pub fn used(content: &[u8]) -> usize {
    const PAGE: usize = 4096;
    // Whole pages are compared, because a journal has much preallocated space.
    let mut pages = content.chunks(PAGE);
    let last = pages.rposition(|page| *page != [0; PAGE][..page.len()]);
    let upto = last.map_or(0, |last| content.len().min((last + 1) * PAGE));
    let last = content[..upto].iter().rposition(|byte| *byte != 0);
    last.map_or(0, |at| at + 1)
}

/// The file that a store's database appends to.
pub fn log_of(dir: &Path) -> PathBuf {
    dir.join(match kind() {
        StoreKind::Sled => "store/db",
        StoreKind::Fjall => "store/fjall/0.jnl",
    })
}

/// The files of a store's database, including those in folders.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![dir.join("store")]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                // A lock file has no content to damage.
                false if path.metadata().unwrap().len() == 0 => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
}

pub fn damage(path: &Path, dice: &mut Dice) -> String {
    let mut bytes = fs::read(path).unwrap();
    let length = match path.extension() {
        Some(journal) if journal == "jnl" => used(&bytes),
        _ => bytes.len(),
    };
    let at = dice.roll(length as u64) as usize;
    let what = match dice.roll(10) {
        0 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let from = at / 4096 * 4096;
            let to = (from + 4096).min(bytes.len());
            bytes[from..to].fill(0);
            format!("zeroed {from}..{to}")
        }
        2 => {
            let to = (at + 64).min(bytes.len());
            bytes[at..to]
                .iter_mut()
                .for_each(|byte| *byte = dice.roll(256) as u8);
            format!("noise {at}..{to}")
        }
        _ => {
            let bit = dice.roll(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of {at}")
        }
    };
    fs::write(path, bytes).unwrap();
    what
}

/// The result of one damaged place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Refused,
    FoundOnReading,
    Harmless,
}

#[test]
fn rot_is_found_or_harmless() {
    let points = from_env("WINDLASS_DAMAGE_POINTS", sized(60, 40));
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 7919);
    let dir = tempfile::tempdir().unwrap();
    // A store whose log has an index, and one whose log is read from the beginning.
    let originals = [false, true].map(|reopen| {
        let original = dir.path().join(format!("original-{reopen}"));
        let expected = sample(&original, reopen);
        (original, expected)
    });
    let mut seen: BTreeMap<(String, Verdict, String), u64> = BTreeMap::new();
    for point in 0..points {
        let (original, expected) = &originals[usize::try_from(point % 2).unwrap()];
        let place = dir.path().join(format!("point-{point}"));
        copy(original, &place);
        let files = files(&place);
        // Most of the bytes are in the log.
        let file = if dice.roll(4) > 0 {
            log_of(&place)
        } else {
            files[dice.roll(files.len() as u64) as usize].clone()
        };
        let what = damage(&file, &mut dice);
        let (verdict, error) = examine(&place, expected, &format!("{} {what}", file.display()));
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let error: String = error.chars().filter(|c| !c.is_ascii_digit()).collect();
        *seen.entry((name, verdict, error)).or_default() += 1;
        fs::remove_dir_all(&place).unwrap();
    }
    for ((file, verdict, error), times) in &seen {
        println!("{times:5} {file} {verdict:?} {error}");
    }
    let times = |verdict| -> u64 {
        let those = seen.iter().filter(|((_, v, _), _)| *v == verdict);
        those.map(|(_, times)| times).sum()
    };
    assert!(times(Verdict::Refused) + times(Verdict::FoundOnReading) > 0);
    assert!(times(Verdict::Harmless) > 0);
}

/// Each answer of a damaged store is what was written, or an error that reports damage; returns the first error.
fn answers(store: &dyn Store, expected: &[String], what: &str) -> Option<String> {
    let answers = everything(store);
    assert_eq!(answers.len(), expected.len());
    let mut first = None;
    for (answer, expected) in answers.into_iter().zip(expected) {
        match answer {
            Ok(answer) => assert!(
                answer == *expected,
                "{what}: a wrong answer without an error"
            ),
            Err(error @ StoreError::Corrupt { .. }) => {
                first.get_or_insert(error.to_string());
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    first
}

/// Reads a damaged store without opening it, then opens it, and runs every query.
fn examine(place: &Path, expected: &[String], what: &str) -> (Verdict, String) {
    if let Ok(Some(seen)) = seen(place) {
        answers(&seen, expected, what);
    }
    let store = match alone(|| open_store(place)) {
        Ok(store) => store,
        Err(error @ StoreError::Corrupt { .. }) => return (Verdict::Refused, error.to_string()),
        Err(error @ StoreError::Foreign { .. }) if what.starts_with("m ") => {
            return (Verdict::Refused, error.to_string());
        }
        Err(error) => panic!("{what}: {error}"),
    };
    match answers(&*store, expected, what) {
        Some(error) => (Verdict::FoundOnReading, error),
        None => (Verdict::Harmless, String::new()),
    }
}

pub fn from_env(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// Opens the database directly, without the checks of its rows.
pub fn database(dir: &Path) -> sled::Db {
    for _ in 0..100_000 {
        let config = sled::Config::new().segment_size(2 << 20);
        match config.path(dir.join("store")).open() {
            Ok(db) => return db,
            // Another test that starts a process holds the lock for a moment.
            Err(_) => std::thread::yield_now(),
        }
    }
    panic!("the database does not open");
}

#[test]
fn a_row_that_the_database_gives_wrong_or_not_at_all_is_found() {
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 31);
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    let expected = sample(&original, false);
    let keys: Vec<sled::IVec> = {
        let db = database(&original);
        db.iter().keys().map(Result::unwrap).collect()
    };
    let mut found: BTreeMap<char, [u64; 2]> = BTreeMap::new();
    // Each family, and many rows of the large ones.
    let mut chosen: Vec<&sled::IVec> = Vec::new();
    for family in b"mgrszktqp" {
        let those: Vec<&sled::IVec> = keys.iter().filter(|key| key[0] == *family).collect();
        for _ in 0..6.min(those.len()) {
            chosen.push(those[dice.roll(those.len() as u64) as usize]);
        }
    }
    for (number, key) in chosen.into_iter().enumerate() {
        let place = dir.path().join(format!("row-{number}"));
        copy(&original, &place);
        let db = database(&place);
        let mut value = db.get(key).unwrap().unwrap().to_vec();
        let removed = number % 3 == 0 || value.is_empty();
        if removed {
            db.remove(key).unwrap();
        } else {
            let at = dice.roll(value.len() as u64) as usize;
            value[at] ^= 1 << dice.roll(8);
            db.insert(key, value).unwrap();
        }
        db.flush().unwrap();
        drop(db);
        let what = format!("{} removed: {removed}", key.escape_ascii());
        let (verdict, _) = examine(&place, &expected, &what);
        // Changes before a snapshot are deleted, and every remaining row is checked.
        assert_ne!(verdict, Verdict::Harmless, "{what}");
        found.entry(char::from(key[0])).or_default()[usize::from(removed)] += 1;
        fs::remove_dir_all(&place).unwrap();
    }
    println!("found, changed and removed by family: {found:?}");
    assert_eq!(found.len(), 9);
}

/// Its rows in the indexes are unknown: they are searched, and the rest of the store is checked.
#[test]
fn a_run_that_cannot_be_read_can_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    for run in ["run-3", "run-4"] {
        let db = database(dir.path());
        let key = [b"r", run.as_bytes(), b"\0"].concat();
        let mut head = db.get(&key).unwrap().unwrap().to_vec();
        let middle = head.len() / 2;
        head[middle] ^= 1;
        db.insert(&key, head).unwrap();
        db.flush().unwrap();
        drop(db);
        let store = open_again(dir.path());
        let read = store.header(run);
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
        store.delete(run).unwrap();
        let read = store.header(run);
        assert!(matches!(read, Err(StoreError::UnknownRun(_))), "{read:?}");
        let due = store.due(None, Timestamp(i64::MAX), usize::MAX).unwrap();
        assert!(due.iter().all(|(_, name)| &**name != run), "{due:?}");
        let runnable = store.runnable().unwrap();
        assert!(runnable.iter().all(|name| &**name != run), "{runnable:?}");
    }
    let store = open_again(dir.path());
    assert_eq!(store.list(None, usize::MAX).unwrap().len(), RUNS - 2);
    let left = store
        .due(None, Timestamp(i64::MAX), usize::MAX)
        .unwrap()
        .len();
    assert_eq!(left + store.runnable().unwrap().len(), RUNS - 2);
}

#[test]
fn stores_that_were_never_finished_are_swept_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let gone = dir.path().join(format!("store.new-{}", gone.id()));
    // A process with id 1 always exists.
    let other = dir.path().join("store.new-1");
    let another = dir.path().join("store.newest");
    for place in [&gone, &other, &another] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("db"), "unfinished").unwrap();
    }
    drop(open_store(dir.path()).unwrap());
    let own = dir.path().join(format!("store.new-{}", std::process::id()));
    assert!(!gone.exists() && !own.exists());
    assert!(other.exists() && another.exists());
    // A store that another process created meanwhile.
    fs::create_dir(&gone).unwrap();
    drop(open_again(dir.path()));
    assert!(!gone.exists() && other.exists());
}

/// The process that created it was killed, or the power failed, before it was complete: nothing in it was acknowledged.
#[test]
fn an_unfinished_store_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    fs::create_dir_all(store.join("blobs")).unwrap();
    fs::write(store.join("making"), "").unwrap();
    fs::write(store.join("db"), noise(1, 30_000)).unwrap();
    fs::write(store.join("conf"), "half of it").unwrap();
    assert_eq!(StoreKind::of(dir.path()), None);
    {
        // The process that creates it holds its lock.
        let file = fs::File::open(store.join("making")).unwrap();
        let maker = Flock::lock(file, FlockArg::LockExclusive).unwrap();
        let refused = open_store(dir.path()).map(drop);
        assert!(
            matches!(refused, Err(StoreError::Locked { .. })),
            "{refused:?}"
        );
        drop(maker);
    }
    // A process that another test starts holds this test's lock for a moment.
    let made = open_again(dir.path());
    made.commit(&[commit("r1", 0)]).unwrap().remove(0).unwrap();
    drop(made);
    assert!(StoreKind::of(dir.path()).is_some() && !store.join("making").exists());
    let again = open_again(dir.path());
    assert_eq!(again.header("r1").unwrap().revision, 1);
}

#[test]
fn a_store_that_another_one_has_open_is_locked_and_one_that_cannot_be_read_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path()).unwrap();
    let second = open_store(dir.path()).map(drop);
    assert!(
        matches!(second, Err(StoreError::Locked { .. })),
        "{second:?}"
    );
    drop(store);
    drop(open_again(dir.path()));
    let db = dir.path().join("store/db");
    fs::remove_file(&db).unwrap();
    fs::create_dir(&db).unwrap();
    let unreadable = open_store(dir.path()).map(drop);
    assert!(
        matches!(unreadable, Err(StoreError::Io(_))),
        "{unreadable:?}"
    );
}

/// A store that lost all of its rows is not treated as a new one.
#[test]
fn a_store_whose_rows_are_all_gone_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let db = database(dir.path());
    db.clear().unwrap();
    db.flush().unwrap();
    drop(db);
    for _ in 0..2 {
        match alone(|| open_store(dir.path())).map(drop) {
            Err(StoreError::Corrupt { what }) => {
                assert_eq!(what, "all that was acknowledged is missing");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// No query returns it, so only a read of every row finds it.
#[test]
fn an_orphaned_row_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let whole = open_again(dir.path()).check().unwrap();
    assert_eq!(whole.issues, []);
    let db = database(dir.path());
    db.insert(b"zz", b"noise").unwrap();
    db.flush().unwrap();
    drop(db);
    let found = open_again(dir.path()).check().unwrap();
    assert_eq!(found.issues.len(), 1, "{found:?}");
    let error = &found.issues[0].error;
    assert!(error.contains("an unknown record zz"), "{error}");
    assert_eq!(found.whole, whole.whole);
}

/// Each piece is valid, but they belong to two records.
#[test]
fn pieces_of_two_records_are_not_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let put = |seed: u64| {
        let workflow = StoredWorkflow {
            name: "long".into(),
            source: source(&noise(seed, 20_000)),
            stored_at: Timestamp(1),
            schedule: None,
        };
        open_again(dir.path())
            .replace_workflow(&workflow, None, &[])
            .unwrap();
    };
    put(1);
    let db = database(dir.path());
    // The last of several pieces.
    let rows = db.iter().map(Result::unwrap);
    let mut pieces = rows.filter(|(key, _)| key.windows(4).any(|part| part == b"long"));
    let (first, (key, old)) = (pieces.next().unwrap(), pieces.last().unwrap());
    assert!(key.starts_with(&first.0));
    drop(db);
    put(2);
    let whole = open_again(dir.path()).workflow("long").unwrap().unwrap();
    assert_eq!(whole.source, source(&noise(2, 20_000)));
    let db = database(dir.path());
    assert_ne!(db.insert(&key, old.clone()).unwrap().unwrap(), old);
    db.flush().unwrap();
    drop(db);
    let mixed = open_again(dir.path()).workflow("long");
    assert!(
        matches!(&mixed, Err(StoreError::Corrupt { .. })),
        "{mixed:?}"
    );
}

/// The number of the last durable group, which is stored next to the database.
fn last_group(dir: &Path) -> u64 {
    let mark = fs::read(dir.join("store/mark")).unwrap();
    u64::from_le_bytes(mark[..8].try_into().unwrap())
}

/// A power cut may preserve the end of unsynced writes and lose the middle, so they must not be longer than the
/// database can recover from.
#[test]
fn a_large_group_is_made_durable_in_several() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path()).unwrap();
    let group = |revision: u64, size: usize| -> Vec<_> {
        let runs = (0..4).map(id);
        runs.map(|run| {
            let mut commit = commit(&run, revision);
            let text = Value::from(noise(revision, size));
            commit.changes = vec![Change::set("text".into(), text)];
            commit
        })
        .collect()
    };
    for (revision, size, groups) in [(0, 100, 1), (1, 100_000, 2), (2, 200_000, 4), (3, 100, 1)] {
        let before = last_group(dir.path());
        for outcome in store.commit(&group(revision, size)).unwrap() {
            outcome.unwrap();
        }
        assert_eq!(last_group(dir.path()) - before, groups, "{size} bytes each");
    }
}

#[test]
fn every_row_is_reported_as_stored() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let store = open_again(dir.path());
    let workflow = StoredWorkflow {
        name: "long".into(),
        source: source(&noise(1, 20_000)),
        stored_at: Timestamp(1),
        schedule: None,
    };
    store.replace_workflow(&workflow, None, &[]).unwrap();
    let raw_rows = |run: Option<&str>| {
        let mut rows = Vec::new();
        store.raw(run, &mut |row| rows.push(row)).unwrap();
        rows
    };
    let all = raw_rows(None);
    let (mut bare, mut further) = (0, 0);
    for row in &all {
        assert_eq!(row.error, None, "{}", row.what);
        let is_bare = ["due ", "runnable ", "padding"]
            .iter()
            .any(|word| row.what.starts_with(word));
        let is_further = row.what.contains(", piece ");
        assert_eq!(row.record.is_none(), is_bare || is_further, "{}", row.what);
        bare += usize::from(is_bare);
        further += usize::from(is_further);
    }
    assert!(bare >= RUNS && further > 4, "{bare} and {further}");
    let records = |what: &str| {
        let those = all.iter().filter(|row| row.what.starts_with(what));
        those
            .filter_map(|row| row.record.clone())
            .collect::<Vec<_>>()
    };
    for (what, says) in [
        ("format", "windlass store"),
        ("root", "checksum"),
        ("program", "max_count: 5000"),
        ("workflow", "a.yaml"),
        ("header", "\"poll\""),
        ("snapshot", "RunState"),
        ("changes", "CommitReport {"),
        ("retained rows", "IterationRow"),
    ] {
        let records = records(what);
        assert!(!records.is_empty(), "{what}");
        assert!(
            records.iter().all(|text| text.contains(says)),
            "{what}: {}",
            records[0]
        );
    }
    let ours =
        |what: &str| what.ends_with(" of run run-3") || what.contains(" of run run-3, piece");
    let expected: Vec<_> = all.iter().filter(|row| ours(&row.what)).cloned().collect();
    assert_eq!(raw_rows(Some("run-3")), expected);
    assert!(expected.len() > 10);
    drop(store);
    let db = database(dir.path());
    // The same in bytes: a version and the number of further pieces before them, and a checksum after them.
    let head = all
        .iter()
        .find(|row| row.what == "header of run run-3")
        .unwrap();
    let value = db.get(b"rrun-3\0").unwrap().unwrap();
    let body = &value[3..value.len() - 4];
    let text = head.record.clone().unwrap();
    assert_eq!(raw_record(b'r', body), Some(Ok(text)));
    assert!(matches!(raw_record(b'r', &body[..1]), Some(Err(_))));
    assert_eq!(raw_record(b't', body), None);
    assert_eq!(raw_record(b'?', body), None);
    let rows = db.iter().map(Result::unwrap).map(|(key, value)| {
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        (key, value.len() as u64)
    });
    let listed: Vec<_> = all.into_iter().map(|row| (row.key, row.bytes)).collect();
    assert_eq!(listed, rows.collect::<Vec<_>>());
}

/// A repetition in a commit is written once, but the size of a run is counted as it is after reading.
#[test]
fn a_commit_that_repeats_itself_is_written_short_and_counted_long() {
    let store = MemoryStore::new(Retention::default());
    let mut next = commit("run", 0);
    let text = "the same again and ".repeat(5_000);
    next.changes = vec![Change::set("text".into(), Value::from(text))];
    let mut receipts = store.commit(&[next]).unwrap();
    let receipt = receipts.remove(0).unwrap();
    let mut written = 0;
    store
        .raw(Some("run"), &mut |row| {
            written += u64::from(row.what.starts_with("changes ")) * row.bytes;
        })
        .unwrap();
    assert!((1..5_000).contains(&written), "{written}");
    let read = store.load("run").unwrap().tail_bytes;
    assert!((95_000..96_000).contains(&read), "{read}");
    assert_eq!(receipt.change_bytes, read);
}

/// After the snapshot the run continues without them, but its history reports that they are missing.
#[test]
fn events_that_are_missing_are_not_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    sample(&original, false);
    let keys: Vec<sled::IVec> = {
        let db = database(&original);
        let keys = db.scan_prefix(b"zrun-3\0").keys().map(Result::unwrap);
        // The last snapshot is of revision 48.
        keys.take_while(|key| key.as_ref() <= b"zrun-3\0\0\0\0\0\0\0\0\x30".as_slice())
            .collect()
    };
    assert!(!keys.is_empty());
    for (number, key) in keys.into_iter().enumerate() {
        let dir = place.path().join(number.to_string());
        copy(&original, &dir);
        let db = database(&dir);
        db.remove(key).unwrap();
        db.flush().unwrap();
        drop(db);
        let store = open_again(&dir);
        store.load("run-3").unwrap();
        match store.history("run-3", 0, usize::MAX) {
            Err(StoreError::Corrupt { what }) => assert!(what.contains("missing"), "{what}"),
            other => panic!("{number}: {other:?}"),
        }
    }
}
