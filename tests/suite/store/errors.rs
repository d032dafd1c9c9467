//! Errors of the disk at each system call: strace makes it fail once, or from then on. Either a clear error is reported
//! or the run continues automatically. Nothing is damaged, and the run ends as an undisturbed one does.
//!
//! `WINDLASS_ERRORS` sets the number of places of each kind.

use crate::store::damage::from_env;
use crate::store::full::{Disturbed, continues_after};
use crate::store::power::strace_works;
use std::collections::BTreeMap;
use std::fs;

/// What fails, and how. A short write is not an error: the rest must follow.
const ERRORS: [(&str, &str); 5] = [
    ("fdatasync", "error=EIO"),
    ("pwrite64", "error=EIO"),
    ("pwrite64", "error=ENOSPC"),
    ("fsync,ftruncate,rename,renameat2", "error=EIO"),
    ("openat", "error=EMFILE"),
];

/// Runs a workflow in which a thread's `when`th call of a kind fails (`3`), or all from there on (`3+`). Also returns
/// strace's log.
fn fails_at(calls: &str, how: &str, when: &str) -> (Option<Disturbed>, String) {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let words = [
        "strace",
        "-f",
        "-o",
        log.to_str().unwrap(),
        "-e",
        &format!("trace={calls}"),
        "-e",
        &format!("inject={calls}:{how}:when={when}"),
    ];
    let came = continues_after(&words.map(String::from), place.path(), 8);
    (came, fs::read_to_string(&log).unwrap())
}

#[test]
fn an_error_of_the_disk_at_any_call_loses_nothing() {
    if !strace_works() {
        return;
    }
    let places = usize::try_from(from_env("WINDLASS_ERRORS", 3)).unwrap();
    for (calls, how) in ERRORS {
        // strace counts per thread; these calls are made by the busiest one.
        let (_, undisturbed) = fails_at(calls, how, "60000");
        let mut made: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
        for line in undisturbed.lines() {
            let (thread, call) = line.split_once(' ').unwrap_or_default();
            let (count, those) = made.entry(thread).or_default();
            *count += 1;
            // Files of the system are not tested here.
            if calls != "openat" || call.contains("/state/") {
                those.push(*count);
            }
        }
        let those = made.into_values().map(|(_, those)| those);
        let those = those.max_by_key(Vec::len).unwrap();
        let all = those.len();
        let mut counts = [0, 0, 0, 0];
        for at in 0..places.min(all) {
            let at = those[at * all / places.min(all)];
            for (from, when) in [(0, at.to_string()), (2, format!("{at}+"))] {
                let (came, log) = fails_at(calls, how, &when);
                if log.contains("INJECTED") {
                    counts[from + usize::from(came == Some(Disturbed::Refused))] += 1;
                }
            }
        }
        let [fine, refused, fine_for_ever, refused_for_ever] = counts;
        println!(
            "{calls} {how}, {} of about {all} calls: once: {fine} went on, {refused} were refused; \
             for ever: {fine_for_ever} went on, {refused_for_ever} were refused",
            places.min(all)
        );
        assert!(fine + refused > 0, "{calls}: none failed once");
        assert!(refused_for_ever > 0, "{calls}: none was refused");
    }
}

/// An error while a thread waits for the end of a group. For one in a few of these writes, the database does not wake
/// the waiting thread.
#[test]
fn a_write_that_takes_long_and_then_fails_is_heard_of() {
    if !strace_works() {
        return;
    }
    let how = "error=EIO:delay_enter=100000";
    let mut failed = 0;
    for at in 2..12 {
        let (came, log) = fails_at("pwrite64", how, &at.to_string());
        if log.contains("INJECTED") {
            assert!(came.is_some(), "{at}");
            failed += 1;
        }
    }
    assert!(failed > 5, "{failed} writes failed");
}
