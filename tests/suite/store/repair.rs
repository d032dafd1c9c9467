//! A damaged store is reported with the affected runs, and repaired. The new store contains what was written, what is
//! lost is named, and the damaged store stays unchanged.
//!
//! `WINDLASS_REPAIR_POINTS` damages more places.

use crate::store::contract::{commit, hash, noise, source};
use crate::store::damage::{
    Dice, RUNS, copy, damage, database, files, from_env, id, log_of, open_again, sample,
};
use crate::store::kinds::alone_of;
use crate::store::power::strace_works;
use crate::support::{alone, kind, open_store, sized};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use windlass_engine::doctor::{examine, repair};
use windlass_machine::{RunState, RunStatus};
use windlass_store::{Placement, StoreKind, StoredWorkflow};
use windlass_value::time::Timestamp;

/// Every state of each run of the sample, by revision.
fn states_of(dir: &Path) -> BTreeMap<String, (u64, RunState)> {
    let store = open_again(dir);
    (0..RUNS)
        .map(|n| {
            let stored = store.load(&id(n)).unwrap();
            (id(n), (stored.header.revision, stored.state))
        })
        .collect()
}

/// The value that the sample gave to `n` at a revision.
fn number(state: &RunState) -> i64 {
    let number = state.variables.get("n").and_then(|n| n.as_int());
    number.unwrap()
}

/// The results for the damaged stores of one kind of damage.
#[derive(Debug, Default)]
struct Tally {
    places: usize,
    healthy: usize,
    /// Every run is as new as before.
    whole: usize,
    /// Stores whose runs are parked.
    still: usize,
    retained: usize,
    /// The retained runs that are as new as before.
    newest: usize,
    lost: usize,
    /// Damage that made more than one run older, or lost it.
    several: usize,
}

#[test]
fn what_a_repair_keeps_is_what_was_written() {
    let points = from_env("WINDLASS_REPAIR_POINTS", sized(40, 15));
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 104_729);
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    sample(&original, true);
    let expected = states_of(&original);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for point in 0..points {
        let place = dir.path().join(format!("point-{point}"));
        copy(&original, &place);
        let files = files(&place);
        let file = match dice.roll(3) {
            0 => files[dice.roll(files.len() as u64) as usize].clone(),
            _ => log_of(&place),
        };
        let how = damage(&file, &mut dice);
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let kind = match name.as_str() {
            "db" | "0.jnl" => format!("log, {}", how.split(' ').next().unwrap()),
            // Without the mark it is unknown whether the end of the log is complete.
            "mark" => String::from("mark"),
            _ => String::from("next to the log"),
        };
        let what = format!("{name} {how}");
        let tally = tallies.entry(kind.clone()).or_default();
        tally.places += 1;
        let found = alone(|| examine(&place)).unwrap();
        if found.unreadable.is_empty() {
            assert_eq!(found.runs, RUNS as u64, "{what}");
            tally.healthy += 1;
            fs::remove_dir_all(&place).unwrap();
            continue;
        }
        let before = content(&place.join("store"));
        let repaired = alone(|| repair(&place));
        let Ok(repaired) = repaired else {
            // Nothing in it can be read, so it stays unchanged.
            assert_eq!(before, content(&place.join("store")), "{what}");
            assert_eq!(kind, "log, cut", "{what}: {repaired:?}");
            tally.lost += RUNS;
            fs::remove_dir_all(&place).unwrap();
            continue;
        };
        assert_eq!(before, content(Path::new(&repaired.old)), "{what}");
        let again = alone(|| examine(&place)).unwrap();
        // The same if a program is lost: its run is retained, and reports it.
        assert_eq!(again.unreadable, [], "{what}: the new store is whole");
        assert_eq!(again.runs, repaired.retained.len() as u64, "{what}");
        let store = open_again(&place);
        let newest_before = tally.newest;
        let all: BTreeSet<&String> = repaired.retained.iter().chain(&repaired.lost).collect();
        assert_eq!(
            all.len(),
            repaired.retained.len() + repaired.lost.len(),
            "{what}"
        );
        assert!(
            all.iter().all(|run| expected.contains_key(*run)),
            "{what}: {all:?}"
        );
        for run in &repaired.retained {
            let stored = store.load(run).unwrap();
            let (revision, state) = &expected[run];
            if stored.header.revision == *revision {
                assert_eq!(stored.state, *state, "{what}: {run}");
                tally.newest += 1;
            } else {
                // An older state, complete as it was then, and the run reports that.
                assert!(repaired.stand_still, "{what}: {run}");
                let then = i64::try_from(stored.header.revision).unwrap() - 1;
                assert_eq!(number(&stored.state), then, "{what}: {run}");
            }
        }
        if repaired.stand_still {
            assert_eq!(store.runnable().unwrap(), [], "{what}");
            assert_eq!(
                store.due(None, Timestamp(i64::MAX), 99).unwrap(),
                [],
                "{what}"
            );
        }
        let lost = RUNS - repaired.retained.len();
        let without = repaired.unreadable.iter();
        let without = without.filter(|one| one.what == "its program").count();
        let whole = lost == 0 && !repaired.stand_still && without == 0;
        assert!(whole || kind != "next to the log", "{what}: {repaired:?}");
        // A flipped bit has one message about what is lost.
        let places = repaired.unreadable.iter();
        let places = places
            .filter(|one| one.what == "a place in the log")
            .count();
        assert!(kind != "log, bit" || places <= 1, "{what}: {repaired:?}");
        tally.several += usize::from(tally.newest - newest_before + 1 < RUNS);
        tally.whole += usize::from(whole);
        tally.still += usize::from(repaired.stand_still);
        tally.retained += repaired.retained.len();
        tally.lost += lost;
        if !whole {
            let unreadable = &repaired.unreadable;
            println!("{what}: {:?} lost; {unreadable:?}", repaired.lost);
        }
        drop(store);
        fs::remove_dir_all(&place).unwrap();
    }
    println!("{points} places in a store of {RUNS} runs:");
    for (kind, tally) in &tallies {
        println!("{kind}: {tally:?}");
    }
    // Except in a page that several runs share, a flipped bit costs at most the run that it hits.
    let bits = &tallies["log, bit"];
    assert!(bits.several * 4 <= bits.places, "{bits:?}");
}

/// Every file of a directory.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Flips a bit in every copy of a text in a store's files; returns the number of copies.
fn hit(dir: &Path, text: &[u8], dice: &mut Dice) -> usize {
    let mut hits = 0;
    for file in files(dir) {
        let mut bytes = fs::read(&file).unwrap();
        let places: Vec<usize> = (0..bytes.len().saturating_sub(text.len()))
            .filter(|at| bytes[*at..].starts_with(text))
            .collect();
        for at in &places {
            bytes[at + dice.roll(text.len() as u64) as usize] ^= 1 << dice.roll(8);
        }
        if !places.is_empty() {
            fs::write(&file, bytes).unwrap();
            hits += places.len();
        }
    }
    hits
}

/// Whatever is lost, including data that several runs need, the repaired store opens, is complete, and can be copied.
#[test]
fn a_repaired_store_always_opens() {
    let points = from_env("WINDLASS_REPAIR_POINTS", 40) / 2;
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 7_919);
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    sample(&original, false);
    // A program that shares no part with other rows.
    let text = noise(77, 64);
    let store = open_again(&original);
    for (run, status) in [
        ("lost", RunStatus::Running),
        ("ended", RunStatus::Succeeded),
    ] {
        let mut one = commit(run, 0);
        one.header.program = hash(7);
        one.header.status = status;
        if status.is_final() {
            one.header.placement = Placement::Idle;
        }
        one.program = Some(source(&text));
        store.commit(&[one]).unwrap()[0].as_ref().unwrap();
    }
    drop(store);
    let mut without = 0;
    for point in 0..points {
        let place = dir.path().join(format!("point-{point}"));
        copy(&original, &place);
        let mut what = format!("{} hits", hit(&place, text.as_bytes(), &mut dice));
        if point % 2 == 1 {
            let files = files(&place);
            let file = &files[dice.roll(files.len() as u64) as usize];
            what += &format!(", {} {}", file.display(), damage(file, &mut dice));
        }
        let Ok(repaired) = alone(|| repair(&place)) else {
            // Nothing in it can be read.
            continue;
        };
        without += usize::from(
            repaired
                .unreadable
                .iter()
                .any(|one| one.what == "its program"),
        );
        let again = alone(|| examine(&place)).unwrap();
        assert_eq!(again.unreadable, [], "{what}: {repaired:?}");
        let copied_store = dir.path().join(format!("copy-{point}"));
        let store = open_again(&place);
        let copied = store.backup(&copied_store).unwrap();
        assert_eq!(copied.issues, [], "{what}");
        if repaired.retained.iter().any(|run| run == "lost") && store.program(hash(7)).is_err() {
            // The run is parked and reports why. It resumes when a run of the same file has stored the program again.
            let header = store.header("lost").unwrap();
            assert_eq!(header.placement, Placement::Idle, "{what}");
            assert!(
                header.labels["windlass.parked"].contains("was lost"),
                "{header:?}"
            );
            let mut one = commit("brings-it", 0);
            one.header.program = hash(7);
            one.program = Some(source(&text));
            store.commit(&[one]).unwrap()[0].as_ref().unwrap();
            store.program(hash(7)).unwrap();
        }
        drop(store);
        fs::remove_dir_all(&place).unwrap();
        fs::remove_dir_all(&copied_store).unwrap();
    }
    println!("{points} stores repaired, {without} without a program");
    assert!(without > 0);
}

#[test]
fn a_repaired_store_continues() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let before = {
        let store = open_again(dir.path());
        store.history("run-0", 0, 999).unwrap()
    };
    let repaired = alone(|| repair(dir.path())).unwrap();
    assert_eq!(repaired.retained.len(), RUNS);
    assert!(!repaired.stand_still, "nothing was wrong with it");
    assert_eq!(repaired.unreadable, []);
    let store = open_again(dir.path());
    assert_eq!(store.program(hash(1)).unwrap().max_count, 5_000);
    let header = store.header("run-0").unwrap();
    assert!(matches!(header.placement, Placement::Due(_)));
    assert_eq!(store.due(None, Timestamp(i64::MAX), 99).unwrap().len(), 4);
    assert_eq!(store.runnable().unwrap().len(), 8);
    let next = commit("run-0", header.revision);
    store.commit(&[next]).unwrap()[0].as_ref().unwrap();
    assert!((25..60).contains(&before.len()), "{}", before.len());
    assert_eq!(store.history("run-0", 0, 999).unwrap(), before);
    drop(store);
    drop(open_again(dir.path()));
}

fn named(name: &str, text: &str) -> StoredWorkflow {
    StoredWorkflow {
        name: name.into(),
        source: source(text),
        stored_at: Timestamp(7),
        schedule: None,
    }
}

#[test]
fn saved_workflows_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let (short, long) = (named("short", "one"), named("long", &noise(1, 100_000)));
    let store = open_again(dir.path());
    store.replace_workflow(&short, None, &[]).unwrap();
    store.replace_workflow(&long, None, &[]).unwrap();
    drop(store);
    let old = dir.path().display();
    for number in 1..=3 {
        let repaired = alone(|| repair(dir.path())).unwrap();
        assert_eq!(repaired.old, format!("{old}/store.damaged-{number}"));
        assert_eq!(repaired.unreadable, []);
        assert!(!repaired.stand_still, "nothing was wrong with it");
        let store = open_again(dir.path());
        assert_eq!(store.workflow("short").unwrap().as_ref(), Some(&short));
        assert_eq!(store.workflow("long").unwrap().as_ref(), Some(&long));
    }

    // A run that is lost in part is reported, and the others are complete.
    let db = database(dir.path());
    let rows = db.iter().keys().map(Result::unwrap);
    let pieces: Vec<_> = rows.filter(|key| key.starts_with(b"wlong\0")).collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    db.remove(&pieces[1]).unwrap();
    db.flush().unwrap();
    drop(db);
    let found = alone(|| examine(dir.path())).unwrap();
    let unreadable: Vec<&str> = found.unreadable.iter().map(|one| &*one.what).collect();
    assert_eq!(unreadable, ["a workflow"]);
    let repaired = alone(|| repair(dir.path())).unwrap();
    let unreadable: Vec<&str> = repaired.unreadable.iter().map(|one| &*one.what).collect();
    assert_eq!(unreadable, ["a program or workflow"]);
    let store = open_again(dir.path());
    assert_eq!(store.workflow("short").unwrap().as_ref(), Some(&short));
    assert_eq!(store.workflow("long").unwrap(), None);
}

/// Simulates a log without its end: the mark is that of the group after its last one.
fn lose_the_end(mark: &Path) {
    let bytes = fs::read(mark).unwrap();
    let next = u64::from_le_bytes(bytes[..8].try_into().unwrap()) + 1;
    let sum = crc32fast::hash(&next.to_le_bytes());
    fs::write(mark, [&next.to_le_bytes()[..], &sum.to_le_bytes()].concat()).unwrap();
}

fn windlass(state: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .arg("--state")
        .arg(state)
        .output()
        .unwrap()
}

#[test]
fn the_command_line_reports_and_repairs() {
    let dir = tempfile::tempdir().unwrap();
    let fine = windlass(dir.path(), &["doctor"]);
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
    sample(dir.path(), false);
    let fine = windlass(dir.path(), &["doctor"]);
    let stdout = String::from_utf8_lossy(&fine.stdout).into_owned();
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
    assert!(
        stdout.contains("12 runs, all of them can be read"),
        "{stdout}"
    );
    assert!(stdout.contains("a file was written and synced"), "{stdout}");

    // What was acknowledged is missing.
    lose_the_end(&dir.path().join("store/mark"));
    for command in [&["list"][..], &["dump"], &["resume"], &["status", "run-1"]] {
        let refused = windlass(dir.path(), command);
        assert_eq!(refused.status.code(), Some(8), "{command:?}: {refused:?}");
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        for hint in ["dump", "doctor --repair"] {
            let hint = format!("`windlass {hint} --state {}`", dir.path().display());
            let shown = command[0] != "dump" || hint.contains("doctor");
            assert!(!shown || stderr.contains(&hint), "{command:?}: {stderr}");
        }
    }
    // It does not open, but its content can be read; nothing in it changes.
    let before = content(&dir.path().join("store"));
    let dump = windlass(dir.path(), &["dump", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&dump.stdout).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), 12, "{dump:?}");
    let wrong = &report["unreadable"][0];
    assert_eq!(wrong["what"], "the store as a whole", "{wrong}");
    assert_eq!(content(&dir.path().join("store")), before);
    let raw = windlass(dir.path(), &["dump", "run-1", "--raw", "-o", "jsonl"]);
    assert_eq!(raw.status.code(), Some(0), "{raw:?}");
    let stdout = String::from_utf8(raw.stdout).unwrap();
    for part in [
        "header of run run-1",
        "StoredHead",
        "changes 60 of run run-1",
    ] {
        assert!(stdout.contains(part), "no {part} in {stdout}");
    }
    assert!(!stdout.contains("of run run-2"), "{stdout}");
    // The output contains nothing that only a repair would print.
    assert!(!stdout.contains("windlass.parked"), "{stdout}");
    let bad = windlass(dir.path(), &["doctor", "-o", "json"]);
    assert_eq!(bad.status.code(), Some(8), "{bad:?}");
    let summary: serde_json::Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert!(
        !summary["store"]["unreadable"]
            .as_array()
            .unwrap()
            .is_empty()
    );

    let repaired = windlass(dir.path(), &["doctor", "--repair"]);
    let stdout = String::from_utf8_lossy(&repaired.stdout).into_owned();
    assert!(stdout.contains("the damaged one is"), "{repaired:?}");
    assert!(stdout.contains("acknowledged"), "{stdout}");
    assert!(dir.path().join("store.damaged-1/mark").exists());
    let list = windlass(dir.path(), &["list", "-o", "json"]);
    assert_eq!(list.status.code(), Some(0), "{list:?}");
    let stderr = String::from_utf8_lossy(&list.stderr).into_owned();
    assert!(!stderr.contains("no run moves"), "{stderr}");
    // The runs are parked, and stay so: the message names some.
    let none = windlass(dir.path(), &["resume"]);
    let stderr = String::from_utf8_lossy(&none.stderr).into_owned();
    let resume = format!("`windlass resume --state {} RUN`", dir.path().display());
    for part in ["12 parked runs (run-", ", …)", &resume] {
        assert!(stderr.contains(part), "no {part} in {stderr}");
    }
    let dump = windlass(dir.path(), &["doctor"]);
    assert_eq!(dump.status.code(), Some(0), "{dump:?}");
}

#[test]
fn runs_that_may_be_older_than_they_were_stand_still() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let store = open_again(dir.path());
    let mut last = commit("run-0", store.header("run-0").unwrap().revision);
    last.header.status = RunStatus::Succeeded;
    last.header.placement = Placement::Idle;
    store.commit(&[last]).unwrap()[0].as_ref().unwrap();
    drop(store);
    lose_the_end(&dir.path().join("store/mark"));
    let repaired = alone(|| repair(dir.path())).unwrap();
    assert!(repaired.stand_still);
    assert_eq!(repaired.retained.len(), RUNS);
    let store = open_again(dir.path());
    assert_eq!(store.runnable().unwrap(), []);
    assert_eq!(store.due(None, Timestamp(i64::MAX), 99).unwrap(), []);
    for header in store.list(None, 99).unwrap() {
        // A run that has ended does not need to be parked.
        let parked = header.labels.contains_key("windlass.parked");
        assert_eq!(parked, &*header.id != "run-0", "{header:?}");
    }
}

/// An older head replaces a lost one, and the run is cut to its state at that time.
#[test]
fn what_a_run_did_after_the_head_that_is_left_is_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let (key, before) = {
        let db = database(dir.path());
        let key = [b"r", &b"run-5"[..], b"\0"].concat();
        let head = db.get(&key).unwrap().unwrap();
        (key, head)
    };
    let was = {
        let store = open_again(dir.path());
        let was = store.load("run-5").unwrap();
        for revision in 0..3 {
            let next = commit("run-5", was.header.revision + revision);
            store.commit(&[next]).unwrap()[0].as_ref().unwrap();
        }
        was
    };
    let db = database(dir.path());
    db.insert(&key, before).unwrap();
    db.flush().unwrap();
    drop(db);
    let repaired = alone(|| repair(dir.path())).unwrap();
    assert!(repaired.stand_still, "the root does not vouch for the head");
    assert_eq!((repaired.retained.len(), repaired.lost.len()), (RUNS, 0));
    let store = open_again(dir.path());
    let now = store.load("run-5").unwrap();
    assert_eq!(now.header.revision, was.header.revision);
    assert_eq!(now.state, was.state);
    // The run continues from there as if nothing had followed.
    let next = commit("run-5", was.header.revision);
    store.commit(&[next]).unwrap()[0].as_ref().unwrap();
    drop(store);
    let found = alone(|| examine(dir.path())).unwrap();
    assert_eq!((found.runs, found.unreadable), (RUNS as u64, Vec::new()));
}

/// Commits before a snapshot are only shown: the run is complete without them.
#[test]
fn a_commit_before_the_snapshot_that_is_lost_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    sample(dir.path(), false);
    let (was, events) = {
        let store = open_again(dir.path());
        let events = store.history("run-5", 0, 999).unwrap();
        (store.load("run-5").unwrap(), events)
    };
    let prefix = [b"z", &b"run-5"[..], b"\0"].concat();
    let db = database(dir.path());
    let keys: Vec<_> = db.scan_prefix(&prefix).keys().map(Result::unwrap).collect();
    assert!(keys.len() > 20, "{}", keys.len());
    db.remove(&keys[2]).unwrap();
    db.flush().unwrap();
    drop(db);
    // The newest commits can be read.
    let (looked_at, last) = (tempfile::tempdir().unwrap(), was.header.revision);
    copy(dir.path(), looked_at.path());
    let newest = alone(|| open_again(looked_at.path()).changes_back("run-5", last, 3));
    assert_eq!(newest.unwrap().len(), 3);
    let repaired = alone(|| repair(dir.path())).unwrap();
    assert!(!repaired.unreadable.is_empty());
    let found = alone(|| examine(dir.path())).unwrap();
    assert_eq!((found.runs, found.unreadable), (RUNS as u64, Vec::new()));
    let store = open_again(dir.path());
    let now = store.load("run-5").unwrap();
    assert_eq!(
        (now.header.revision, &now.state),
        (was.header.revision, &was.state)
    );
    let left = store.history("run-5", 0, 999).unwrap();
    assert!(left.len() < events.len() && events.ends_with(&left));
    assert!(!left.is_empty());
}

/// Whatever happens to the calls that replace one store by another, the old one stays.
#[test]
fn a_store_that_another_one_replaces_is_never_lost() {
    const CALLS: &str = "rename,renameat,renameat2";
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let [old, new, backup] = ["old", "new", "backup"].map(|name| place.path().join(name));
    for dir in [&old, &new] {
        let store = open_store(dir).unwrap();
        let run = dir.file_name().unwrap().to_str().unwrap();
        store.commit(&[commit(run, 0)]).unwrap()[0]
            .as_ref()
            .unwrap();
    }
    let made = alone_of(|| windlass(&new, &["backup", backup.to_str().unwrap()]));
    assert!(made.status.success(), "{made:?}");
    let has = |dir: &Path, run: &str| {
        let state = place.path().join("look");
        let _ = fs::remove_dir_all(&state);
        copy(dir, &state.join("store"));
        let store = alone(|| open_store(&state));
        store.is_ok_and(|store| store.header(run).is_ok())
    };
    for how in ["error=ENOSPC", "error=EINVAL", "signal=KILL"] {
        for at in 1.. {
            let state = place.path().join("state");
            let _ = fs::remove_dir_all(&state);
            copy(&old, &state);
            let ended = Command::new("strace")
                .args(["-f", "-o", "/dev/null", "-e", &format!("trace={CALLS}")])
                .args(["-e", &format!("inject={CALLS}:{how}:when={at}")])
                .args([env!("CARGO_BIN_EXE_windlass"), "restore", "--replace"])
                .args([&backup, Path::new("--state"), &state])
                .output()
                .unwrap();
            // It removes what other processes left.
            let _ = alone_of(|| windlass(&state, &["list"]));
            let entries = fs::read_dir(&state).unwrap();
            let mut entries = entries.map(|entry| entry.unwrap().path());
            assert!(
                entries.any(|dir| dir.is_dir() && has(&dir, "old")),
                "{how} at {at}: {ended:?}"
            );
            let now = if ended.status.success() { "new" } else { "old" };
            let now = has(&state.join("store"), now);
            assert!(now || how == "signal=KILL", "{how} at {at}: {ended:?}");
            if ended.status.success() {
                assert!(at > 2, "nothing was injected");
                break;
            }
        }
    }
}

#[test]
fn a_store_without_readable_parts_is_not_repaired_again() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let file = dir.path().join("w.yaml");
    fs::write(&file, "actions: { a: { type: compose, inputs: 1 } }").unwrap();
    let ran = crate::serve::windlass(&state, &["run", file.to_str().unwrap()]);
    assert!(ran.status.success(), "{ran:?}");
    let suggests_only_a_backup = |command: &[&str]| {
        let refused = crate::serve::windlass(&state, command);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(8), "{command:?}: {stderr}");
        assert!(
            stderr.contains("windlass restore BACKUP --replace"),
            "{command:?}: {stderr}"
        );
        assert!(!stderr.contains("doctor --repair"), "{command:?}: {stderr}");
    };
    for file in files(&state) {
        fs::write(file, "no record").unwrap();
    }
    suggests_only_a_backup(&["doctor", "--repair"]);
    // The log is missing.
    if kind() == StoreKind::Sled {
        fs::remove_file(state.join("store/db")).unwrap();
        for command in [
            &["list"][..],
            &["dump"],
            &["doctor"],
            &["doctor", "--repair"],
        ] {
            suggests_only_a_backup(command);
        }
    }
}
