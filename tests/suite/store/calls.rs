//! Single system calls of the store. An interrupted read is repeated, each error is reported by its name, and another
//! process that creates the same store at the same time is not an error. strace makes the calls fail, interrupts them
//! and delays them.

use crate::life::process::Place;
use crate::store::power::strace_works;
use serde_json::json;
use std::fs;
use std::process::{Command, Output};

const WORKFLOW: &str = "
name: counts
variables: { n: 0 }
actions:
  each:
    type: until
    condition: \"@equals(variables('n'), 20)\"
    actions:
      more: { type: incrementVariable, name: n }
outputs: \"@variables('n')\"
";

/// A place with a store that has a run; none if tracing is impossible here.
fn traced() -> Option<(Place, String)> {
    if !strace_works() {
        return None;
    }
    let place = Place::new();
    let file = place.file("counts.yaml", WORKFLOW);
    Some((place, file))
}

fn words(log: &str, calls: &str, how: &str) -> [String; 7] {
    let injected = format!("inject={calls}:{how}");
    let traced = format!("trace={calls}");
    ["-f", "-o", log, "-e", &traced, "-e", &injected].map(String::from)
}

/// Runs a command with some failing calls; returns its output and strace's log. A command that hangs is killed.
fn disturbed(place: &Place, args: &[&str], calls: &str, how: &str) -> (Output, String) {
    let log = place.dir.path().join("log");
    let command = place.command(args);
    let output = Command::new("timeout")
        .args(["-s", "KILL", "120", "strace"])
        .args(words(log.to_str().unwrap(), calls, how))
        .arg(command.get_program())
        .args(command.get_args())
        .output()
        .unwrap();
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("(INJECTED)"), "{calls} {how}: nothing failed");
    (output, log)
}

const RENAMES: &str = "rename,renameat,renameat2";

#[test]
fn a_read_that_is_interrupted_is_done_again_and_one_that_fails_is_an_error() {
    let Some((place, file)) = traced() else {
        return;
    };
    assert!(place.run(&["run", &file]).status.success());
    let doctor = ["doctor", "-o", "json"];
    // The end of the log is read in a few hundred parts, and twice if it seems to be damaged.
    let (output, _) = disturbed(&place, &doctor, "pread64", "error=EINTR:when=20+40");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["store"]["unreadable"], json!([]), "{output:?}");
    let (output, _) = disturbed(&place, &doctor, "pread64", "error=EIO:when=20+");
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("Input/output error"), "{stdout}");
}

#[test]
fn a_store_that_cannot_be_put_in_its_place_is_an_error_of_that() {
    let Some((place, file)) = traced() else {
        return;
    };
    let (output, _) = disturbed(&place, &["run", &file], RENAMES, "error=EIO");
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("Input/output error"), "{stderr}");
    // The directory is valid; the fault is the disk's.
    assert!(stderr.contains("the store cannot write"), "{stderr}");
    assert!(stderr.contains("the disk fails"), "{stderr}");
    let left = fs::read_dir(place.state()).unwrap().count();
    assert_eq!(left, 0, "what was not finished is swept away");
}

#[test]
fn a_lock_that_cannot_be_had_is_not_one_that_another_process_has() {
    let Some((place, file)) = traced() else {
        return;
    };
    assert!(place.run(&["run", &file]).status.success());
    let (output, _) = disturbed(&place, &["run", &file], "flock", "error=ENOLCK");
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("No locks available"), "{stderr}");
    assert!(stderr.contains("files cannot be locked there"), "{stderr}");
    assert!(!stderr.contains("in use by another process"), "{stderr}");
}

/// The process that traces another one.
fn tracer(process: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line.unwrap().trim().parse().unwrap()
}

/// Two processes create the same store. The first is held just before it renames its own into place, and finds the
/// other's when it continues.
#[test]
fn a_store_that_another_process_made_meanwhile_is_taken() {
    let Some((place, file)) = traced() else {
        return;
    };
    let log = place.dir.path().join("log");
    let held = words(log.to_str().unwrap(), RENAMES, "delay_enter=600s");
    let command = place.command(&["run", &file, "--id", "first"]);
    let mut first = Command::new("strace")
        .arg("-D")
        .args(held)
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let fresh = place.state().join(format!("store.new-{}", first.id()));
    let made = (0..6_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        fresh.join("making").exists()
    });
    assert!(made, "the first has not made its store");
    let second = place.run(&["run", &file, "--id", "second"]);
    assert!(second.status.success(), "{second:?}");
    assert!(fresh.exists(), "the first went on by itself");
    // Without its tracer it continues.
    let tracer = nix::unistd::Pid::from_raw(tracer(first.id()).try_into().unwrap());
    nix::sys::signal::kill(tracer, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(first.wait().unwrap().success());
    let listed = place.json(&["list", "-o", "json"]).to_string();
    assert!(
        listed.contains("first") && listed.contains("second"),
        "{listed}"
    );
    assert!(!fresh.exists());
}

/// After a query for a file's times, Linux updates them at the next write, and then each sync has more to write.
#[test]
fn between_commits_no_file_of_the_store_is_queried_for_its_times() {
    for store in ["sled", "fjall"] {
        let Some((place, file)) = traced() else {
            return;
        };
        let log = place.dir.path().join("log");
        let command = place.command(&["run", &file, "--store", store]);
        let output = Command::new("strace")
            .args(["-f", "-e", "trace=statx,newfstatat,fstat", "-o"])
            .arg(&log)
            .arg(command.get_program())
            .args(command.get_args())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let log = fs::read_to_string(log).unwrap();
        let of_store: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("/store/"))
            .collect();
        let of_commit = |line: &&str| line.contains("/store/mark\"") && line.contains("STATX_INO,");
        let first = of_store.iter().position(of_commit).unwrap();
        let last = of_store.iter().rposition(of_commit).unwrap();
        let between = &of_store[first..=last];
        assert!(between.len() >= 20, "{log}");
        let times: Vec<&&str> = between
            .iter()
            .filter(|line| !line.contains("STATX_INO,"))
            .collect();
        assert!(times.is_empty(), "{store}: {times:?}");
    }
}
