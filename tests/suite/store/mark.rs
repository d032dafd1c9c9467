//! The mark, which names the last acknowledged group next to the log. In a complete store a mark is damage if it is
//! missing, if it is not what was written, or if it is of another time; so is a mark without its log. All commands
//! refuse such a store by name, also those that only read.

use crate::life::process::Place;
use crate::serve::COUNT;
use crate::store::contract::commit;
use crate::store::damage::{Dice, copy, from_env, open_again};
use crate::support::{alone, kind, sized};
use std::fs;
use std::path::Path;
use windlass_engine::doctor::{examine, repair};
use windlass_store::{SledStore, Store, StoreError, StoreKind, open_read_only};

/// A store to which three processes have written one run each; returns the mark that each left.
fn three_runs(place: &Place) -> Vec<Vec<u8>> {
    let file = place.file("count.yaml", COUNT);
    let runs = ["one", "two", "three"];
    let marks = runs.map(|run| {
        let done = place.run(&["run", &file, "--id", run]);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        fs::read(place.state().join("store/mark")).unwrap()
    });
    marks.into()
}

/// The command is refused because of the store, with this reason.
fn refused(place: &Place, args: &[&str], why: &str) {
    let output = place.run(args);
    let bytes = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&bytes).into_owned();
    assert_eq!(output.status.code(), Some(8), "{args:?}: {printed}");
    assert!(printed.contains(why), "{args:?}: {printed}");
}

fn refused_by_all(place: &Place, why: &str) {
    let file = place.file("count.yaml", COUNT);
    for args in [
        &["list"][..],
        &["status", "one"],
        &["history", "one"],
        &["doctor"],
        &["resume"],
        &["run", &file],
        &["prune", "--keep", "0"],
    ] {
        refused(place, args, why);
    }
}

#[test]
fn a_mark_that_is_not_what_was_written_is_damage() {
    let place = Place::new();
    let marks = three_runs(&place);
    let mark = place.state().join("store/mark");
    let good = marks.last().unwrap();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        bytes
    };
    fs::remove_file(&mark).unwrap();
    refused_by_all(
        &place,
        "store/mark`, which names the last acknowledged group, is missing",
    );
    // No new mark was created meanwhile.
    assert!(!mark.exists());
    for (bytes, why) in [
        (flipped(0), "is not what was written"),
        (flipped(11), "is not what was written"),
        (vec![0; 12], "is not what was written"),
        (Vec::new(), "is not as long as it was written"),
        (good[..8].to_vec(), "is not as long as it was written"),
        (marks[0].clone(), "is of another time"),
    ] {
        fs::write(&mark, &bytes).unwrap();
        for args in [&["list"][..], &["doctor"], &["resume"]] {
            refused(&place, args, why);
        }
        assert_eq!(fs::read(&mark).unwrap(), bytes);
    }
    fs::write(&mark, good).unwrap();
    assert_eq!(
        place
            .json(&["list", "-o", "json"])
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_mark_without_its_log_is_damage() {
    let place = Place::new();
    three_runs(&place);
    let db = place.state().join("store/db");
    let away = place.dir.path().join("db");
    fs::rename(&db, &away).unwrap();
    refused_by_all(&place, "its log `store/db` and `store/fjall` are missing");
    refused(
        &place,
        &["doctor", "--repair"],
        "its log `store/db` and `store/fjall` are missing",
    );
    assert!(!db.exists());
    fs::rename(&away, &db).unwrap();
    let fine = place.run(&["doctor"]);
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
}

#[test]
fn damage_without_a_place_names_the_files_of_sled() {
    if kind() != StoreKind::Sled {
        return;
    }
    let place = Place::new();
    three_runs(&place);
    let conf = place.state().join("store/conf");
    let mut bytes = fs::read(&conf).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&conf, bytes).unwrap();
    refused(&place, &["doctor"], "it does not open");
    refused(&place, &["doctor"], "`store/conf`");
}

/// A store with many groups, and the mark as it was 100 groups earlier.
fn long_ago(dir: &Path) -> Vec<u8> {
    let store = SledStore::open(dir).unwrap();
    let mut before = Vec::new();
    for revision in 0..200 {
        if revision == 100 {
            before = fs::read(dir.join("store/mark")).unwrap();
        }
        store.commit(&[commit("run", revision)]).unwrap()[0]
            .as_ref()
            .unwrap();
    }
    before
}

/// A log without its end looks as complete as one that was never longer: only the mark shows the difference. So the
/// content of such a store must never be shown as complete.
#[test]
fn a_log_that_lost_its_end_is_found_whatever_became_of_its_mark() {
    let points = from_env("WINDLASS_MARK_POINTS", sized(24, 12));
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 3_571);
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    let before = long_ago(&original);
    let log = fs::read(original.join("store/db")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let good = fs::read(original.join("store/mark")).unwrap();
    for point in 0..points {
        let dir = place.path().join("cut");
        let _ = fs::remove_dir_all(&dir);
        copy(&original, &dir);
        let mut cut = log.clone();
        // Only the last groups are removed: a log as old as the old mark would match it.
        let from = end - dice.roll(end / 10);
        cut[usize::try_from(from).unwrap()..].fill(0);
        fs::write(dir.join("store/db"), cut).unwrap();
        let mark = dir.join("store/mark");
        let how = match point % 4 {
            0 => fs::remove_file(&mark).map(|()| "missing"),
            1 => fs::write(&mark, &before).map(|()| "older"),
            2 => {
                let mut bytes = good.clone();
                bytes[dice.roll(12) as usize] ^= 1 << dice.roll(8);
                fs::write(&mark, bytes).map(|()| "flipped")
            }
            _ => Ok("as it was"),
        };
        let what = format!(
            "the log is cut at {from} of {end}, the mark is {}",
            how.unwrap()
        );
        assert!(
            !matches!(alone(|| open_read_only(&dir)), Ok(Some(_))),
            "{what}"
        );
        let found = alone(|| examine(&dir)).unwrap();
        assert!(!found.unreadable.is_empty(), "{what}");
        let opened = alone(|| SledStore::open(&dir)).map(drop);
        assert!(
            matches!(opened, Err(StoreError::Corrupt { .. })),
            "{what}: {opened:?}"
        );
        // The remaining runs are reported as older than they were.
        let repaired = alone(|| repair(&dir)).unwrap();
        assert!(repaired.stand_still, "{what}");
        assert_eq!(open_again(&dir).list(None, 9).unwrap().len(), 1, "{what}");
    }
}
