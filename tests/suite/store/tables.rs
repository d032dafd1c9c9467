//! The files around fjall's tables may be missing, wrong or too many. Then the store is refused before fjall opens it,
//! because fjall would remove the tables or end the process. A repair needs only the tables.

use crate::store::damage::{copy, files};
use crate::support::sized;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LOOP: &str = r#"
actions:
  go:
    type: foreach
    foreach: "@range(0, COUNT)"
    concurrency: 1
    actions:
      work: { type: shell, run: "head -c 60000 /dev/urandom | base64 -w0" }
"#;

fn windlass(state: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .arg("--state")
        .arg(state)
        .env("TMPDIR", state.join("nowhere"))
        .env_remove("WINDLASS_STORE")
        .output()
        .unwrap()
}

/// A store with two runs; the first one is in tables.
fn sample(place: &Path) -> PathBuf {
    let (dir, file) = (place.join("state"), place.join("w.yaml"));
    // Every copy of a store takes time: a table has about 4 MiB, and 24 iterations fill two or more.
    let text = LOOP.replace("COUNT", &sized(80, 24).to_string());
    fs::write(&file, text).unwrap();
    for id in ["first", "second"] {
        let file = file.to_str().unwrap();
        let ran = windlass(&dir, &["run", file, "--id", id, "--store", "fjall"]);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    }
    dir
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let tables = dir.join("store/fjall/keyspaces/1/tables");
    let mut tables: Vec<_> = fs::read_dir(tables).into_iter().flatten().collect();
    let mut tables: Vec<_> = tables
        .drain(..)
        .map(|table| table.unwrap().path())
        .collect();
    tables.sort();
    tables
}

/// A change to the folder of the database, the text that is reported for it, and the exit code of a repair.
type Damage = (fn(&Path), &'static str, i32);

#[test]
fn a_store_without_what_lies_around_its_tables_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let sample = sample(place.path());
    assert!(tables(&sample).len() > 1, "{:?}", files(&sample));
    let damages: [Damage; 9] = [
        (
            |db| fs::remove_file(db.join("keyspaces/1/current")).unwrap(),
            "`keyspaces/1/current` is missing",
            8,
        ),
        (
            |db| fs::remove_dir_all(db.join("keyspaces/0")).unwrap(),
            "`keyspaces/0/current` is missing",
            0,
        ),
        (
            |db| fs::rename(db.join("keyspaces/0"), db.join("keyspaces/5")).unwrap(),
            "`keyspaces/5` is not of this store",
            0,
        ),
        (
            |db| fs::remove_file(db.join("version")).unwrap(),
            "`version` is missing",
            0,
        ),
        (
            |db| fs::write(db.join("version"), b"FJL\x02").unwrap(),
            "`version` is not what was written",
            0,
        ),
        (
            |db| fs::create_dir(db.join("keyspaces/1.bak")).unwrap(),
            "`keyspaces/1.bak` is not of this store",
            0,
        ),
        (
            |db| fs::create_dir(db.join("keyspaces/11")).unwrap(),
            "`keyspaces/11` is not of this store",
            0,
        ),
        (
            |db| fs::create_dir(db.join("keyspaces/0/tables/9")).unwrap(),
            "`keyspaces/0/tables/9` is not a regular file",
            0,
        ),
        (
            |db| fs::write(db.join("keyspaces/1/current"), b"v1").unwrap(),
            "`keyspaces/1/current` is not what was written",
            8,
        ),
    ];
    let every = sized(1, 3);
    let damages = damages.into_iter().enumerate().step_by(every);
    for (number, (damage, message, code)) in damages {
        let dir = place.path().join(number.to_string());
        copy(&sample, &dir);
        damage(&dir.join("store/fjall"));
        let before = tables(&dir);
        for command in [&["list"][..], &["doctor"], &["resume"]] {
            let refused = windlass(&dir, command);
            assert_eq!(refused.status.code(), Some(8), "{message}: {refused:?}");
            let bytes = [refused.stdout, refused.stderr].concat();
            let printed = String::from_utf8_lossy(&bytes);
            assert!(printed.contains(message), "{command:?}: {printed}");
            assert!(!printed.contains("panicked"), "{printed}");
        }
        assert_eq!(tables(&dir), before, "{message}");
        let repaired = windlass(&dir, &["doctor", "--repair"]);
        assert_eq!(
            repaired.status.code(),
            Some(code),
            "{message}: {repaired:?}"
        );
        let stdout = String::from_utf8_lossy(&repaired.stdout).into_owned();
        assert!(
            stdout.contains("2 runs are in the new store"),
            "{message}: {stdout}"
        );
        let fine = windlass(&dir, &["doctor"]);
        assert_eq!(fine.status.code(), Some(0), "{message}: {fine:?}");
    }
}

#[test]
fn a_table_that_is_damaged_costs_nothing_of_the_others() {
    let place = tempfile::tempdir().unwrap();
    let sample = sample(place.path());
    let count = tables(&sample).len();
    let (mut tried, mut whole) = (0, 0);
    for number in (0..count).step_by(sized(1, 4)) {
        tried += 1;
        let dir = place.path().join(number.to_string());
        copy(&sample, &dir);
        let table = tables(&dir).swap_remove(number);
        fs::remove_file(&table).unwrap();
        let refused = windlass(&dir, &["list"]);
        assert_eq!(refused.status.code(), Some(8), "{refused:?}");
        let repaired = windlass(&dir, &["doctor", "--repair", "-o", "json"]);
        assert_eq!(repaired.status.code(), Some(8), "{repaired:?}");
        let report: serde_json::Value = serde_json::from_slice(&repaired.stdout).unwrap();
        let name = table.file_name().unwrap().to_str().unwrap();
        let unreadable = report["repair"]["unreadable"].to_string();
        assert!(unreadable.contains(&format!("table {name}: ")), "{report}");
        whole += report["repair"]["retained"].as_array().unwrap().len();
    }
    // A run is lost with its table; the other run is not.
    assert!(whole >= tried, "{whole} of {tried} copies with two runs");
}
