//! The journal of fjall is rewritten without the entries that are in tables, before fjall reads it. A kill or a power
//! cut meanwhile loses nothing.

use crate::life::process::Place;
use crate::store::contract::{commit, noise};
use crate::store::damage::copy;
use crate::store::kinds::alone_of;
use crate::store::power::{Done, all_is_durable, recorded_of, strace_works};
use crate::support::{alone, this_test_binary};
use std::fs;
use std::path::Path;
use std::process::Command;
use windlass_expression::Value;
use windlass_machine::Change;
use windlass_store::StoreKind;

/// A fjall store whose journal contains several megabytes that are in tables.
fn large(dir: &Path) {
    let mut writer = this_test_binary("store::power::writer");
    let ended = writer
        .envs([
            ("WINDLASS_STORE", "fjall"),
            ("WINDLASS_TEST_POWER_GROUPS", "40"),
        ])
        .env("WINDLASS_TEST_POWER_DIR", dir)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

fn journal(dir: &Path) -> u64 {
    fs::metadata(dir.join("store/fjall/0.jnl")).unwrap().len()
}

/// Everything that can be read of the runs in a store.
fn runs(dir: &Path) -> Vec<String> {
    let store = alone(|| windlass_store::open(dir, None)).unwrap();
    let listed = store.list(None, usize::MAX).unwrap();
    let of = |id: &str| {
        let stored = store.load(id).unwrap();
        let history = store.history(id, 0, usize::MAX).unwrap();
        format!("{stored:?} {history:?}")
    };
    listed.iter().map(|run| of(&run.id)).collect()
}

/// A command that opens the store to write to it, and changes no run.
fn prune(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(["prune", "--keep", "1000", "--state"])
        .arg(dir);
    command
}

#[test]
fn a_journal_is_opened_once_with_what_is_in_tables() {
    let place = Place::new();
    let dir = place.state();
    large(&dir);
    let whole = journal(&dir);
    let ended = alone_of(|| prune(&dir).output().unwrap());
    assert!(ended.status.success(), "{ended:?}");
    let left = journal(&dir);
    assert!(left + (1 << 20) < whole, "{left} of {whole} bytes");
    let expected = runs(&dir);
    assert_eq!(expected.len(), 24);
    assert_eq!(journal(&dir), left);
    assert_eq!(runs(&dir), expected);
}

#[test]
fn a_last_batch_that_lost_what_is_between_its_ends_is_cut_off() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    let text = noise(7, 50_000);
    let turn = |revision: u64| {
        let store = alone(|| windlass_store::open(&dir, Some(StoreKind::Fjall))).unwrap();
        let mut commit = commit("run", revision);
        commit.changes = vec![Change::set("text".into(), Value::text(text.clone()))];
        store.commit(&[commit]).unwrap()[0].as_ref().unwrap();
    };
    turn(0);
    // The power fails before the second one is acknowledged.
    let mark = fs::read(dir.join("store/mark")).unwrap();
    turn(1);
    fs::write(dir.join("store/mark"), mark).unwrap();
    let path = dir.join("store/fjall/0.jnl");
    let mut bytes = fs::read(&path).unwrap();
    let middle = &text.as_bytes()[25_000..25_512];
    let lost = bytes.windows(middle.len()).rposition(|at| at == middle);
    let lost = lost.expect("the text is not compressed");
    bytes[lost..lost + middle.len()].fill(0);
    fs::write(&path, bytes).unwrap();
    let store = alone(|| windlass_store::open(&dir, None)).unwrap();
    assert_eq!(store.header("run").unwrap().revision, 1);
    assert!(store.iterations("run", None, usize::MAX).is_ok());
}

/// The tables contain what is no longer in any journal.
#[test]
fn a_repair_keeps_what_is_in_tables() {
    let place = Place::new();
    let dir = place.state();
    large(&dir);
    let ended = alone_of(|| prune(&dir).output().unwrap());
    assert!(ended.status.success(), "{ended:?}");
    let revisions = || -> Vec<(String, u64)> {
        let store = alone(|| windlass_store::open(&dir, None)).unwrap();
        let listed = store.list(None, usize::MAX).unwrap().into_iter();
        listed
            .map(|run| (run.id.to_string(), run.revision))
            .collect()
    };
    let expected = revisions();
    let doctor = || alone_of(|| place.command(&["doctor", "--repair"]).output().unwrap());
    let fine = doctor();
    assert!(fine.status.success(), "{fine:?}");
    assert!(!dir.join("store.damaged-1").exists(), "nothing was damaged");
    fs::remove_file(dir.join("store/mark")).unwrap();
    let repaired = doctor();
    let stdout = String::from_utf8(repaired.stdout).unwrap();
    assert!(stdout.contains("24 runs are in the new store"), "{stdout}");
    assert_eq!(revisions(), expected);
}

#[test]
fn a_journal_killed_during_a_rewrite_has_all_records() {
    const CALLS: &str = "openat,write,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink";
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    large(&original);
    let state = place.path().join("state");
    copy(&original, &state);
    let expected = runs(&state);
    // The calls after that are those of fjall.
    let trace = place.path().join("trace");
    let traced = |state: &Path, inject: &[String]| {
        let _ = fs::remove_dir_all(state);
        copy(&original, state);
        let prune = prune(state);
        Command::new("strace")
            .args(["-f", "-o"])
            .arg(&trace)
            .args(["-e", &format!("trace={CALLS}")])
            .args(inject)
            .arg(prune.get_program())
            .args(prune.get_args())
            .output()
            .unwrap()
    };
    let whole = traced(&state, &[]);
    assert!(whole.status.success(), "{whole:?}");
    let calls = fs::read_to_string(&trace).unwrap();
    let renamed = calls.lines().position(|call| call.contains("0.new\", "));
    let renamed = renamed.expect("it was rewritten");
    let from = calls.lines().position(|call| call.contains("store/mark"));
    let from = from.expect("the store was opened");
    for at in (from..renamed).step_by(7).chain(renamed - 3..renamed + 4) {
        let inject = format!("inject={CALLS}:signal=KILL:when={}", at + 1);
        let killed = traced(&state, &[String::from("-e"), inject]);
        assert!(!killed.status.success(), "{at} of {renamed}: {killed:?}");
        assert_eq!(runs(&state), expected, "killed at {at} of {renamed}");
        assert!(journal(&state) < 5 << 20, "it is rewritten after all");
    }
}

#[test]
fn a_rewritten_journal_is_durable_before_it_is_in_place() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    large(&dir);
    let tables: Vec<_> = fs::read_dir(dir.join("store/fjall/keyspaces/1/tables"))
        .unwrap()
        .map(|table| table.unwrap().path())
        .collect();
    assert!(!tables.is_empty());
    let log = place.path().join("log");
    let done = recorded_of(&prune(&dir), &dir, &log, &[], &[0]);
    let fresh = dir.join("store/fjall/0.new");
    let renamed = |one: &Done| matches!(one, Done::Renamed(from, _) if *from == fresh);
    let renamed = done.iter().position(renamed).expect("it was rewritten");
    let before = &done[..renamed];
    let mut synced = before.iter().filter_map(|one| match one {
        Done::Synced(path, _) => Some(path),
        _ => None,
    });
    for table in tables {
        assert!(synced.clone().any(|path| *path == table), "{table:?}");
    }
    assert!(synced.any(|path| *path == fresh));
    all_is_durable(&done, "store/fjall/0.");
}
