//! Copies of a store, made while a server is busy and without a server: they contain what was acknowledged, and runs
//! resume from them. A copy that another tool made opens, or is refused with a message.

use super::process::Place;
use super::prune::fill;
use crate::serve::{COUNT, SLEEP, Server};
use crate::store::damage::copy;
use crate::support::{kind, lacking};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use windlass_store::StoreKind;

/// A loop with fifty iterations per second.
const BUSY: &str = r#"
name: busy
variables: { n: 0 }
actions:
  grow:
    type: until
    condition: "@greaterOrEquals(variables('n'), 100000)"
    limit: { count: 5000, timeout: PT1H }
    delay: PT0.02S
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
"#;

/// The binary on another state directory than the place's.
fn at(state: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(args).arg("--state").arg(state);
    command.env_remove("WINDLASS_SERVER").output().unwrap()
}

/// The counter of the only run in a dump.
fn count(dump: &Value) -> u64 {
    let count = &dump["runs"][0]["state"]["variables"]["n"];
    count.as_u64().unwrap_or_else(|| panic!("{dump}"))
}

fn runs(state: &Path) -> Vec<Value> {
    let listed = at(state, &["list", "-o", "json", "--limit", "all"]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_server_has_what_was_acknowledged() {
    let place = Place::new();
    // The data makes the copy slow enough that runs make steps meanwhile.
    fill(&place.state(), 100, 3);
    let server = Server::start(&place.state());
    let mut begun = Vec::new();
    for _ in 0..20 {
        begun.push(server.begin(BUSY, json!({})).await);
    }
    for round in 0..5 {
        let ended = server
            .begin(
                &COUNT.replace("name: count", "name: kept"),
                json!({ "to": 2 }),
            )
            .await;
        assert_eq!(server.end(&ended).await["status"], "Succeeded");
        begun.push(ended);
        // Some runs are forgotten while others are copied.
        let forgotten = server.begin(COUNT, json!({ "to": 1 })).await;
        server.end(&forgotten).await;
        // The command runs in another folder than the server.
        let name = format!("backup-{round}");
        let begin = || {
            let mut command = place.command(&["backup", &name, "-o", "json"]);
            command.current_dir(place.dir.path()).spawn().unwrap()
        };
        // A second backup to the same directory is refused, and does not disturb the first one.
        let mut commands = [begin(), begin()];
        let (status, _) = server
            .post("/v1/prune", &json!({ "keep": 1, "workflow": "count" }))
            .await;
        assert_eq!(status, 200);
        let mut ended = commands.each_mut().map(|one| one.wait().unwrap().code());
        ended.sort_unstable();
        assert_eq!(ended, [Some(0), Some(2)]);
        let dest = place.dir.path().join(name);
        let fine = at(&dest, &["doctor"]);
        assert_eq!(fine.status.code(), Some(0), "{fine:?}");
        let listed = runs(&dest);
        let there = |run: &String| listed.iter().any(|one| one["run"] == **run);
        assert!(begun.iter().all(there), "{begun:?}: {listed:?}");
    }
    let again = place.run(&[
        "backup",
        place.dir.path().join("backup-0").to_str().unwrap(),
    ]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    server.kill();

    // The runs resume from the copy.
    let dest = place.dir.path().join("backup-4");
    let copied = at(&dest, &["dump", &begun[0], "-o", "json"]);
    let before = count(&serde_json::from_slice(&copied.stdout).unwrap());
    let server = Server::start(&dest);
    for _ in 0..500 {
        let (_, run) = server.get(&format!("/v1/runs/{}/dump", begun[0])).await;
        if count(&run) > before + 3 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the run makes no progress");
}

#[test]
fn a_copy_is_restored_and_replaces_only_what_is_named() {
    let place = Place::new();
    let file = place.file("count.yaml", COUNT);
    for id in ["one", "two"] {
        let done = place.run(&["run", &file, "--id", id]);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
    }
    let dest = place.dir.path().join("deep/backup");
    let printed = place.run(&["backup", dest.to_str().unwrap()]);
    let stdout = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    assert!(stdout.contains("2 runs copied to"), "{stdout}");
    assert_eq!(runs(&dest), runs(&place.state()));
    let three = place.run(&["run", &file, "--id", "three"]);
    assert_eq!(three.status.code(), Some(0), "{three:?}");

    let refused = place.run(&["restore", dest.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--replace"), "{stderr}");
    assert_eq!(runs(&place.state()).len(), 3);

    let replaced = place.json(&["restore", dest.to_str().unwrap(), "--replace", "-o", "json"]);
    assert_eq!(replaced["runs"], 2, "{replaced}");
    assert!(
        replaced["old"]
            .as_str()
            .unwrap()
            .ends_with("store.replaced-1"),
        "{replaced}"
    );
    assert_eq!(runs(&place.state()), runs(&dest));
    let elsewhere = place.dir.path().join("elsewhere");
    let made = at(&elsewhere, &["restore", dest.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert_eq!(runs(&elsewhere), runs(&dest));
    let next = at(&elsewhere, &["run", &file]);
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    let left: Vec<_> = fs::read_dir(&elsewhere)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["store"]);

    // A copy that cannot be read leaves nothing at the destination.
    fs::remove_file(dest.join("store/mark")).unwrap();
    let nowhere = place.dir.path().join("nowhere");
    let damaged = at(&nowhere, &["restore", dest.to_str().unwrap()]);
    assert_eq!(damaged.status.code(), Some(8), "{damaged:?}");
    let stderr = String::from_utf8_lossy(&damaged.stderr).into_owned();
    let repair = format!("`windlass doctor --repair --state {}`", dest.display());
    let what = format!("the backup in {} is damaged", dest.display());
    for part in [&what, &repair] {
        assert!(stderr.contains(part), "no {part} in {stderr}");
    }
    assert!(!nowhere.join("store").exists());
    let missing = at(&nowhere, &["restore", "/nowhere"]);
    let stderr = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        stderr.contains("name the directory of a backup"),
        "{stderr}"
    );
    assert!(!stderr.contains("--state"), "{stderr}");
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
}

/// All files of a folder, with their content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of_one = |path: PathBuf| match path.is_dir() {
        true => content(&path),
        false => BTreeMap::from([(path.clone(), fs::read(path).unwrap())]),
    };
    paths.flat_map(of_one).collect()
}

/// fjall writes when it opens a database, and truncates a damaged journal.
#[test]
fn a_command_that_only_reads_leaves_a_migrated_store_and_its_copies_as_they_are() {
    // With four commits each, some rows are in tables.
    for commits in [4, 1] {
        let place = Place::new();
        fill(&place.state(), 60, commits);
        let migrated = place.run(&["migrate", "--to", "fjall"]);
        assert_eq!(migrated.status.code(), Some(0), "{migrated:?}");
        let dest = place.dir.path().join("backup");
        let made = place.run(&["backup", dest.to_str().unwrap()]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        read_only(&dest, 0);
        if commits == 4 {
            continue;
        }
        let journal = dest.join("store/fjall/0.jnl");
        let whole = fs::read(&journal).unwrap();
        let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
        for damaged in [40, end / 2, end - 2] {
            let mut bytes = whole.clone();
            bytes[damaged] ^= 4;
            fs::write(&journal, bytes).unwrap();
            read_only(&dest, 8);
        }
        let repaired = at(&dest, &["doctor", "--repair", "-o", "json"]);
        let repaired: Value = serde_json::from_slice(&repaired.stdout).unwrap();
        // The damage is in the last rows.
        assert!(runs(&dest).len() > 55, "{repaired}");
    }
}

/// A command that only reads removes the copies that killed ones have left, and no others.
#[test]
fn copies_of_killed_commands_are_removed() {
    let place = Place::new();
    fill(&place.state(), 2, 4);
    let migrated = place.run(&["migrate", "--to", "fjall"]);
    assert_eq!(migrated.status.code(), Some(0), "{migrated:?}");
    let [left, used] = ["windlass-copy-1-left", "windlass-copy-999999999-used"].map(|name| {
        let copy = place.state().join(name);
        fs::create_dir(&copy).unwrap();
        (fs::File::create(copy.join("lock")).unwrap(), copy)
    });
    // In another container, the id of a process that lives may be that of none here, and the other way round.
    used.0.lock().unwrap();
    let listed = place.run(&["list"]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    assert!(!left.1.exists() && used.1.exists());
}

/// All commands that only read end with this code and change no file.
fn read_only(dest: &Path, code: i32) {
    let before = content(dest);
    let restored = tempfile::tempdir().unwrap();
    let source = dest.to_str().unwrap();
    for (state, args) in [
        (dest, &["list"][..]),
        (dest, &["status", "run-1"]),
        (dest, &["dump"]),
        (dest, &["dump", "--raw"]),
        (dest, &["doctor"]),
        (restored.path(), &["restore", source]),
    ] {
        let output = at(state, args);
        // `--raw` shows what can be read.
        let raw = args.contains(&"--raw");
        let ended = output.status.code();
        assert!(raw || ended == Some(code), "{args:?}: {output:?}");
        assert!(content(dest) == before, "{args:?}");
    }
}

#[test]
fn files_that_root_makes_belong_to_the_owner_of_the_directory() {
    let place = Place::new();
    fill(&place.state(), 3, 4);
    let owner = 65534;
    let given = Command::new("chown")
        .args(["-R", &owner.to_string()])
        .arg(place.dir.path())
        .status();
    if !given.unwrap().success() {
        return lacking("only root can give files away");
    }
    let dest = place.dir.path().join("backup");
    let file = place.file("count.yaml", COUNT);
    for args in [
        &["backup", dest.to_str().unwrap()][..],
        &["run", &file, "-i", "to=2"],
        &["prune", "--keep", "1", "--compact"],
        &["restore", dest.to_str().unwrap(), "--replace"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        for path in content(&place.state()).keys() {
            let uid = fs::metadata(path).unwrap().uid();
            assert_eq!(uid, owner, "{args:?}: {}", path.display());
        }
    }
    // A file that root has made before.
    let log = place.state().join("audit.jsonl");
    std::os::unix::fs::chown(&log, Some(0), None).unwrap();
    let doctor = Command::new("setpriv")
        .args(["--reuid", &owner.to_string(), "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_windlass"))
        .args(["doctor", "--state", place.state().to_str().unwrap()])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&doctor.stdout);
    assert_eq!(doctor.status.code(), Some(8), "{doctor:?}");
    assert!(stdout.contains(log.to_str().unwrap()), "{stdout}");

    // Without permission, a file is not damaged.
    let mark = place.state().join("store/mark");
    let hidden = Command::new("chmod").arg("000").arg(&mark).status();
    assert!(hidden.unwrap().success());
    let repair = Command::new("setpriv")
        .args(["--reuid", &owner.to_string(), "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_windlass"))
        .args(["doctor", "--repair", "--state"])
        .arg(place.state())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&repair.stderr);
    assert_eq!(repair.status.code(), Some(8), "{repair:?}");
    assert!(stderr.contains("`chmod u+rwX"), "{stderr}");
    assert!(mark.exists(), "{repair:?}");
}

#[test]
fn a_store_is_not_its_own_backup() {
    let place = Place::new();
    let file = place.file("w.yaml", "actions: { a: { type: compose, inputs: 1 } }\n");
    assert!(place.run(&["run", &file]).status.success());
    let state = place.state().display().to_string();
    let inside = format!("{state}/store/backup");
    for refused in [
        &["restore", &state, "--replace"][..],
        &["backup", &inside],
        &["backup", &file],
    ] {
        let output = place.run(refused);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let unwritable = place.run(&["backup", "/proc/x"]);
    let stderr = String::from_utf8_lossy(&unwritable.stderr);
    assert_eq!(unwritable.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("/proc/x cannot be written"), "{stderr}");
    assert!(!stderr.contains("--state"), "{stderr}");
    let made = place.dir.path().join("copy");
    let made = made.to_str().unwrap();
    assert!(place.run(&["backup", made]).status.success());
    // A failed restore has no run to resume.
    for (state, code, what) in [
        (&*file, 2, " is not a directory"),
        ("/proc/x", 8, "/proc/x cannot be written"),
    ] {
        let restored = at(Path::new(state), &["restore", made]);
        let stderr = String::from_utf8_lossy(&restored.stderr);
        assert_eq!(restored.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
        assert!(!stderr.contains("hint"), "{stderr}");
    }
    assert!(place.run(&["doctor"]).status.success());
    let missing = place.dir.path().join("missing");
    for command in ["doctor", "audit", "list"] {
        let output = at(&missing, &[command]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_is_not_replaced() {
    let (place, other) = (Place::new(), Place::new());
    let server = Server::start(&place.state());
    server.begin(SLEEP, json!({})).await;
    let dest = other.dir.path().join("backup");
    let printed = place.run(&["backup", dest.to_str().unwrap()]);
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    for args in [
        &["restore", dest.to_str().unwrap(), "--replace"][..],
        &["prune", "--compact"],
    ] {
        let refused = place.run(args);
        assert_eq!(refused.status.code(), Some(8), "{args:?}: {refused:?}");
    }
    let from = place.state();
    let refused = other.run(&["restore", from.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("`windlass backup DEST"), "{stderr}");
    let (status, _) = server.get("/v1/runs").await;
    assert_eq!(status, 200);
}

/// Files that are copied one after the other, in any order, while the store writes to them. A copy that opens has what
/// was acknowledged when the first file was copied; one that does not open is refused with a message that explains how
/// to copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_copy_of_a_live_store_opens_or_is_refused_with_a_word() {
    let place = Place::new();
    let server = Server::start(&place.state());
    for _ in 0..8 {
        server.begin(BUSY, json!({})).await;
    }
    let store = place.state().join("store");
    let (mut opened, mut refused) = (0, 0);
    for turn in 0..12 {
        let done = server.begin(COUNT, json!({ "to": 2 })).await;
        server.end(&done).await;
        let to = place.dir.path().join(format!("copy-{turn}"));
        fs::create_dir_all(to.join("store")).unwrap();
        let mut names: Vec<_> = fs::read_dir(&store)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        let first = turn % names.len();
        names.rotate_left(first);
        if turn % 2 == 1 {
            names.reverse();
        }
        for name in &names {
            let from = store.join(name);
            match from.is_dir() {
                true => copy(&from, &to.join("store").join(name)),
                false => drop(fs::copy(&from, to.join("store").join(name)).unwrap()),
            }
            if turn % 3 == 0 {
                // Something is acknowledged between the copies of two files.
                let more = server.begin(COUNT, json!({ "to": 1 })).await;
                server.end(&more).await;
            }
        }
        let listed = at(&to, &["status", &done]);
        let stderr = String::from_utf8_lossy(&listed.stderr).into_owned();
        match listed.status.code() {
            Some(0) => opened += 1,
            Some(8) if stderr.contains("windlass backup") => refused += 1,
            _ => panic!("{names:?}: {listed:?}"),
        }
    }
    println!("{opened} opened, {refused} were refused");
    // The files of a copy of a busy fjall store almost never match.
    assert!(refused > 0 && (opened > 0 || kind() == StoreKind::Fjall));
}
