//! The permissions of a store: only its user can read it, and no action can write to it. A file that an action writes
//! elsewhere survives a power cut, with its name.

use super::process::Place;
use crate::serve::COUNT;
use crate::store::damage::files;
use crate::store::power::{Done, recorded_of, strace_works};
use crate::support::kind;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use windlass_store::StoreKind;

const APPEND: &str = r#"
name: append
inputs: { file: { type: string } }
actions:
  add: { type: appendFile, path: "@inputs('file')", row: 1 }
"#;

/// Everything below a directory except sockets, with its mode.
fn modes(dir: &Path) -> Vec<(String, u32)> {
    let mut found = vec![(dir.display().to_string(), mode(dir))];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        } else {
            found.push((path.display().to_string(), mode(&path)));
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_new_state_directory_is_its_users_alone() {
    let place = Place::new();
    let file = place.file("count.yaml", COUNT);
    // Two runs: the second process writes an index and a mark of its own.
    for _ in 0..2 {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "umask 022; exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_windlass"));
        command.args(["run", &file, "--state"]).arg(place.state());
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let found = modes(&place.state());
        assert!(found.len() > 5, "{found:?}");
        for (path, mode) in found {
            let is_folder = Path::new(&path).is_dir();
            assert_eq!(
                mode,
                if is_folder { 0o700 } else { 0o600 },
                "{path}: {mode:o}"
            );
        }
    }
}

#[test]
fn no_action_writes_in_the_store() {
    let place = Place::new();
    let (count, append) = (
        place.file("count.yaml", COUNT),
        place.file("append.yaml", APPEND),
    );
    let done = place.run(&["run", &count]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let (dir, store) = (place.dir.path(), place.state().join("store"));
    symlink(&store, dir.join("folder")).unwrap();
    symlink(store.join("mark"), dir.join("link")).unwrap();
    symlink(store.join("nothing"), dir.join("dangling")).unwrap();
    fs::hard_link(store.join("mark"), dir.join("hard")).unwrap();
    let folder = match kind() {
        StoreKind::Sled => "blobs",
        StoreKind::Fjall => "fjall",
    };
    let mark = || fs::metadata(store.join("mark")).unwrap().len();
    // Every file of the database, at any depth.
    let linked: Vec<_> = (0..)
        .zip(files(&place.state()))
        .map(|(number, file)| {
            let link = dir.join(format!("hard-{number}"));
            fs::hard_link(file, &link).unwrap();
            link
        })
        .collect();
    // fjall has at least one more file, below its folder, that is never replaced.
    let least = if kind() == StoreKind::Fjall { 3 } else { 2 };
    let named = [
        store.join("mark"),
        store.join("new"),
        store.join("../store").join(folder).join("new"),
        dir.join("folder/new"),
        dir.join("link"),
        dir.join("dangling"),
        dir.join("hard"),
    ];
    let mut refused = 0;
    for path in named.iter().chain(&linked) {
        let input = format!("file={}", path.display());
        let failed = place.run(&["run", &append, "-i", &input]);
        // A database replaces some of its files. A link to a replaced file leads to an unused one.
        if linked.contains(path) && fs::metadata(path).unwrap().nlink() == 1 {
            continue;
        }
        refused += 1;
        let stderr = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{input}: {stderr}");
        assert!(
            stderr.contains("is in the engine's own store"),
            "{input}: {stderr}"
        );
        assert_eq!(mark(), 12, "{input}");
        assert!(
            !store.join("new").exists() && !store.join("nothing").exists(),
            "{input}"
        );
    }
    assert!(refused >= named.len() + least, "{refused}");
    // A file outside of the store may be written.
    let input = format!("file={}", place.state().join("rows.jsonl").display());
    let done = place.run(&["run", &append, "-i", &input]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let fine = place.run(&["doctor"]);
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
}

/// Acknowledged rows are in a file whose name is durable.
#[test]
fn the_name_of_a_new_file_is_durable_before_its_rows_are() {
    assert!(strace_works(), "this test needs strace");
    let place = Place::new();
    let folder = place.dir.path().join("out");
    fs::create_dir(&folder).unwrap();
    let sink = folder.join("rows.jsonl");
    let append = place.file("append.yaml", APPEND);
    let input = format!("file={}", sink.display());
    let run = place.command(&["run", &append, "-i", &input]);
    let log = place.dir.path().join("log");
    let done = recorded_of(&run, &folder, &log, &[], &[0]);
    let made = done
        .iter()
        .position(|one| matches!(one, Done::Made(path) if *path == sink));
    let made = made.unwrap_or_else(|| panic!("it was not made: {done:?}"));
    let synced = |which: &Path| {
        done.iter().position(
            |one| matches!(one, Done::Synced(path, upto) if path == which && *upto > made),
        )
    };
    assert!(
        synced(&folder).is_some(),
        "its name is not durable: {done:?}"
    );
    assert!(
        synced(&folder) < synced(&sink),
        "its rows come first: {done:?}"
    );
}
