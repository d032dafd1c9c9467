//! A full disk, files at their maximum size, and too few descriptors: the error is clear (exit code 8), nothing
//! acknowledged is lost, nothing is damaged, and the run continues when there is space.

use crate::store::contract::{commit, noise};
use crate::support::{alone, lacking, open_store};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use windlass_engine::doctor::examine;
use windlass_engine::{EngineError, Inspector};
use windlass_expression::Value;
use windlass_machine::Change;
use windlass_store::StoreError;

/// A file system that cannot be remounted so many times is in use. Each attempt takes some milliseconds.
const REMOUNTS: usize = 5_000;

/// A small file system in memory; unmounted when it is dropped.
struct Small(PathBuf);

impl Small {
    fn new(at: &Path, kib: u64) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={kib}k");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .output();
        done.is_ok_and(|output| output.status.success())
            .then(|| Self(at.to_owned()))
    }

    fn again(&self, how: &str) {
        // A closed database may still have files open for a moment: in its own threads, and in a process that another
        // test is starting.
        for _ in 0..REMOUNTS {
            let done = Command::new("mount")
                .args(["-o", &format!("remount,{how}")])
                .arg(&self.0)
                .output();
            if done.unwrap().status.success() {
                return;
            }
        }
        panic!("{} is in use", self.0.display());
    }

    /// Each reader sees what was acknowledged, including readers that open the store read-only.
    fn is_seen(&self, acknowledged: u64) {
        for how in ["rw", "ro"] {
            self.again(how);
            match alone(|| Inspector::open(&self.0)) {
                // There may be a store without space for a run.
                Ok(seen) if acknowledged == 0 && seen.header("run-1").is_err() => {}
                Ok(seen) => {
                    let revision = seen.header("run-1").unwrap().revision;
                    assert!(
                        revision >= acknowledged,
                        "{how}: {revision} < {acknowledged}"
                    );
                    seen.load("run-1").unwrap();
                }
                Err(error) => assert_eq!(acknowledged, 0, "{how}: {error}"),
            }
        }
        self.again("rw");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let (mut refused, mut commits) = (0, 0);
    // The disk is full at another commit each time; the smallest disk has no space for a store. The log of the largest
    // is read without the database only if the database does not open it.
    for kib in [64, 2_200, 4_300, 4_420, 4_540, 4_660, 6_500, 6_700, 9_000] {
        let Some(small) = Small::new(&place.path().join(kib.to_string()), kib) else {
            return lacking("no right to mount a small file system here");
        };
        let mut acknowledged = 0;
        let error = match alone(|| open_store(&small.0)) {
            Err(error) => error,
            Ok(store) => loop {
                let mut next = commit("run-1", acknowledged);
                next.changes = vec![Change::set(
                    "text".into(),
                    Value::text(noise(acknowledged, 40_000)),
                )];
                match store.commit(&[next]) {
                    Ok(outcome) => {
                        outcome[0].as_ref().unwrap();
                        acknowledged += 1;
                    }
                    Err(error) => break error,
                }
                assert!(acknowledged < 2_000, "it never became full");
            },
        };
        assert!(
            matches!(error, StoreError::Io(_) | StoreError::Failed { .. }),
            "{kib} KiB: {error:?}"
        );
        // A full disk is not damage: no message recommends a repair. The database's own threads hold the lock for a
        // moment, too.
        match alone(|| examine(&small.0)) {
            Ok(found) => assert_eq!(found.unreadable, [], "{kib} KiB"),
            Err(EngineError::Store(StoreError::Io(_)) | EngineError::NoStore(_)) => {}
            Err(error) => panic!("{kib} KiB: {error:?}"),
        }
        assert!(!error.to_string().contains("Os {"), "{error}");
        refused += 1;
        commits += acknowledged;
        small.is_seen(acknowledged);
        small.again(&format!("size={}k", 64 << 10));
        let store =
            alone(|| open_store(&small.0)).unwrap_or_else(|error| panic!("{kib} KiB: {error}"));
        if acknowledged > 0 {
            let stored = store.load("run-1").unwrap();
            let revision = stored.header.revision;
            assert!(revision >= acknowledged, "{revision} < {acknowledged}");
            let found = store.check().unwrap();
            assert_eq!(found.issues, [], "{kib} KiB");
            acknowledged = revision;
        }
        store.commit(&[commit("run-1", acknowledged)]).unwrap()[0]
            .as_ref()
            .unwrap();
    }
    println!("{refused} disks became full, behind {commits} acknowledged commits");
}

const WORKFLOW: &str = "
name: grows
inputs: { to: { type: integer } }
variables: { seen: [] }
actions:
  each:
    type: until
    condition: \"@greaterOrEquals(variables('loopIndex'), inputs('to'))\"
    limit: { count: 100 }
    actions:
      keep: { type: appendToArrayVariable, inputs: { name: seen, value: \"@variables('loopIndex')\" } }
      long: { type: compose, inputs: \"@replace(string(range(0, 4000)), ',', '-')\" }
outputs: { count: \"@length(variables('seen'))\" }
";

/// The words before a command that run it under a resource limit.
fn limited(limit: &str) -> Vec<String> {
    ["prlimit", limit].map(String::from).into()
}

/// How a disturbed command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbed {
    Fine,
    Refused,
}

/// Runs a workflow in its own store inside a command that disturbs it, and then without the command. It ends as an
/// undisturbed one does, and nothing in the store is damaged. None if the command does not exist here.
pub fn continues_after(around: &[String], place: &Path, rounds: u32) -> Option<Disturbed> {
    let file = place.join("grows.yaml");
    fs::write(&file, WORKFLOW).unwrap();
    let state = place.join("state");
    let (file, state) = (file.to_str().unwrap(), state.to_str().unwrap());
    let input = format!("to={rounds}");
    let run = [
        "run", file, "--id", "r", "-i", &input, "-o", "json", "--state", state,
    ];
    let (program, words) = around.split_first().unwrap();
    // A command that hangs is killed, and fails the test.
    let disturbed = Command::new(program)
        .args(words)
        .args(["timeout", "-s", "KILL", "120"])
        .arg(env!("CARGO_BIN_EXE_windlass"))
        .args(run)
        .output()
        .ok()?;
    let stderr = String::from_utf8_lossy(&disturbed.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{around:?}: {stderr}");
    let wanted = serde_json::json!({ "count": rounds });
    let result = |output: &Output| {
        let result = serde_json::from_slice::<serde_json::Value>(&output.stdout);
        result.unwrap_or_else(|error| panic!("{around:?}: {error}: {output:?}"))
    };
    let came = match disturbed.status.code() {
        Some(0) => {
            assert_eq!(result(&disturbed), wanted, "{around:?}");
            Disturbed::Fine
        }
        Some(8 | 1) => {
            assert!(stderr.contains("error"), "{around:?}: {stderr}");
            Disturbed::Refused
        }
        other => panic!("{around:?}: {other:?}: {stderr}"),
    };
    // However it ended, it comes to its end when there is space.
    let windlass = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(args).output().unwrap()
    };
    let resume = ["resume", "r", "-o", "json", "--state", state];
    let output = windlass(&resume);
    let known = !matches!(output.status.code(), Some(2));
    let output = if known { output } else { windlass(&run) };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let ended = stderr.contains("has ended") || stderr.contains("already");
    if !ended {
        assert_eq!(output.status.code(), Some(0), "{around:?}: {output:?}");
        assert_eq!(result(&output), wanted, "{around:?}");
    }
    let doctor = windlass(&["doctor", "-o", "json", "--state", state]);
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let unreadable = &report["store"]["unreadable"];
    assert_eq!(*unreadable, serde_json::json!([]), "{around:?}");
    Some(came)
}

/// Under some limits the command succeeds, under others it is refused; the numbers are printed.
fn continues_after_each(limits: &[String]) {
    let mut refused = 0;
    for limit in limits {
        let place = tempfile::tempdir().unwrap();
        match continues_after(&limited(limit), place.path(), 60) {
            None => return lacking("no prlimit here"),
            Some(Disturbed::Fine) => {}
            Some(Disturbed::Refused) => refused += 1,
        }
    }
    println!("{refused} of {} were refused and went on", limits.len());
    assert!(refused > 0);
}

#[test]
fn files_that_may_not_grow_stop_a_run_and_no_more() {
    let mib = |tenths: u64| format!("--fsize={}", tenths * (1 << 20) / 10);
    continues_after_each(&[1, 19, 21, 30, 41].map(mib));
}

#[test]
fn too_few_descriptors_are_an_error_and_no_more() {
    continues_after_each(&[6, 12, 20, 32, 40].map(|files| format!("--nofile={files}")));
}

#[test]
fn too_little_memory_and_too_few_threads_are_an_error_and_no_more() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    for (limit, named) in [
        // The code of a test build needs more than 128 MB of address space.
        ("--as=200000000", "ulimit -v"),
        ("--as=1000000000", "ulimit -v"),
        ("--nproc=1", "ulimit -u"),
        ("--nproc=4", "ulimit -u"),
    ] {
        for command in ["run", "list", "serve"] {
            let mut limited = Command::new("timeout");
            // Root is not limited in its threads.
            limited.args(["60", "setpriv", "--reuid", "65533", "--clear-groups"]);
            limited.args(["prlimit", limit, env!("CARGO_BIN_EXE_windlass"), command]);
            if command == "run" {
                limited.arg("flow.yaml");
            }
            let output = limited.arg("--state").arg(&state).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{limit} {command}: {stderr}");
            assert!(stderr.contains(named), "{limit} {command}: {stderr}");
        }
    }
}
