//! A store of format 1 becomes one of this format when it is first opened to be written to. Whoever
//! is killed on the way leaves the old or the new one, and each is whole.

use crate::store::damage::{copy, database, everything};
use crate::store::power::{Done, all_is_durable, recorded_of, strace_works};
use crate::support::{alone, this_test_binary};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use windlass_engine::doctor::repair;
use windlass_store::{SledStore, open_read_only};

const DIR: &str = "WINDLASS_TEST_MIGRATE_DIR";
const STORES: [&str; 2] = ["store-1", "changes-1"];

/// A golden store of format 1, in a state directory of its own.
fn old(name: &str) -> tempfile::TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let place = tempfile::tempdir().unwrap();
    let store = golden.join(name).join("store");
    copy(&store, &place.path().join("store"));
    place
}

/// Everything that is in a store, read without the database.
fn looked_at(dir: &Path) -> String {
    let store = alone(|| open_read_only(dir)).unwrap();
    format!("{:?}", everything(&store.expect("it is small and whole")))
}

/// The same by the database, which migrates it.
fn opened(dir: &Path) -> String {
    let store = alone(|| SledStore::open(dir)).unwrap();
    assert_eq!(store.check().unwrap().issues, []);
    format!("{:?}", everything(&store))
}

/// The format that the row `m` of a store names.
fn format_of(store: &Path) -> u8 {
    let place = tempfile::tempdir().unwrap();
    copy(store, &place.path().join("store"));
    let row = database(place.path()).get(b"m").unwrap().unwrap();
    row[row.len() - 5]
}

#[test]
#[ignore = "it is the process that is killed"]
fn migrator() {
    if let Some(dir) = std::env::var_os(DIR) {
        SledStore::open(Path::new(&dir)).unwrap();
    }
}

#[test]
fn a_store_of_format_1_is_migrated_and_stays_beside_the_new_one() {
    for name in STORES {
        let place = old(name);
        let (store, retained) = (
            place.path().join("store"),
            place.path().join("store.format-1"),
        );
        let before = looked_at(place.path());
        assert_eq!(format_of(&store), 1, "whoever only looks changes nothing");
        assert_eq!(opened(place.path()), before, "{name}");
        assert_eq!((format_of(&store), format_of(&retained)), (2, 1));
        assert_eq!(looked_at(place.path()), before, "{name}");
        // The old one is whole: with it in its place it is done once more.
        fs::remove_dir_all(&store).unwrap();
        copy(&retained, &store);
        assert_eq!(opened(place.path()), before, "{name}");
        assert_eq!(format_of(&place.path().join("store.format-1-1")), 1);
    }
}

#[test]
fn a_migration_that_is_killed_leaves_one_of_the_two() {
    if !strace_works() {
        return;
    }
    let expected = looked_at(old("store-1").path());
    let (mut kills, mut found) = (0, [0, 0]);
    for call in [
        "fsync",
        "fdatasync",
        "renameat2",
        "rename",
        "unlinkat",
        "unlink",
        "pwrite64",
    ] {
        let mut when = 1;
        loop {
            let place = old("store-1");
            let command = this_test_binary("store::migrate::migrator");
            let inject = format!("inject={call}:signal=SIGKILL:when={when}");
            let ended = Command::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &inject])
                .arg(command.get_program())
                .args(command.get_args())
                .env(DIR, place.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            let format = format_of(&place.path().join("store"));
            assert!(format == 1 || format == 2, "{call} {when}");
            found[usize::from(format) - 1] += 1;
            assert_eq!(opened(place.path()), expected, "{call} {when}");
            let left = fs::read_dir(place.path()).unwrap();
            let mut left = left.map(|entry| entry.unwrap().file_name());
            assert!(
                left.all(|name| !name.to_string_lossy().starts_with("store.new-")),
                "{call} {when}"
            );
            if ended.success() {
                break;
            }
            kills += 1;
            when += 1 + when / 4;
        }
    }
    println!("{kills} kills; the old one was there {} times", found[0]);
    assert!(
        kills > 10 && found[0] > 0 && found[1] > 0,
        "{kills} {found:?}"
    );
}

#[test]
fn a_migrated_store_is_durable_before_it_is_in_its_place() {
    if !strace_works() {
        return;
    }
    let place = old("store-1");
    let log = tempfile::tempdir().unwrap();
    let mut command = this_test_binary("store::migrate::migrator");
    command.env(DIR, place.path());
    let done = recorded_of(&command, place.path(), &log.path().join("log"), &[], &[0]);
    let renamed = |to: &Path| {
        let mut done = done.iter();
        done.position(|one| matches!(one, Done::Renamed(_, renamed) if renamed == to))
    };
    let copied = done.iter().position(
        |one| matches!(one, Done::Renamed(from, _) if from.to_string_lossy().contains("store.new-")),
    );
    all_is_durable(&done[..copied.expect("it was copied")], "/store.new-");
    let kept = renamed(&place.path().join("store.format-1")).expect("the old one is kept");
    let synced = |path: &Path, after: usize| {
        let mut done = done.iter();
        done.any(|one| matches!(one, Done::Synced(synced, upto) if synced == path && *upto > after))
    };
    assert!(synced(place.path(), kept), "the names are not durable");
}

/// A repair of a damaged store of format 1 makes one of this format.
#[test]
fn a_damaged_store_of_format_1_is_repaired() {
    let place = old("store-1");
    let db = place.path().join("store/db");
    let mut bytes = fs::read(&db).unwrap();
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 1;
    fs::write(&db, bytes).unwrap();
    let repaired = alone(|| repair(place.path())).unwrap();
    assert!(repaired.kept.len() >= 3, "{repaired:?}");
    assert_eq!(format_of(&place.path().join("store")), 2);
    opened(place.path());
}
