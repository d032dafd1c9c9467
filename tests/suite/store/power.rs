//! Power cuts, in two ways. In the first, the system calls of a writer are recorded with strace and replayed up to any
//! point, with unsynced writes dropped, retained, torn or reordered. In the second, the image of an ext4 file system is
//! copied at the moment when a commit is acknowledged, and mounted again. Each time the store opens, and every
//! acknowledged commit exists.
//!
//! `WINDLASS_POWER_CUTS` cuts at more points. Without strace, or without the permission to mount, the test reports that
//! and ends.

use crate::store::contract::{commit, iteration, noise};
use crate::store::damage::{Dice, log_of, open_again, used};
use crate::support::{kind, lacking, open_store, seen, sized, this_test_binary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, HistoryKind, RunState};
use windlass_store::{Placement, Store, StoreKind};
use windlass_value::time::Timestamp;

const DIR: &str = "WINDLASS_TEST_POWER_DIR";
const GROUPS: &str = "WINDLASS_TEST_POWER_GROUPS";
const RUNS: u64 = 24;

fn id(n: u64) -> String {
    format!("run-{n}")
}

/// A text that contains its run and revision: short, long, longer than a page of the database, or longer than a group
/// of commits.
fn text(run: u64, revision: u64) -> String {
    let size = match (run + revision) % 9 {
        0 => 20_000,
        1 if (run + revision) % 27 == 1 => 300_000,
        1 => 150_000,
        2 => 3_000,
        _ => 60,
    };
    noise(run << 32 | revision, size)
}

fn next(state: &mut RunState, run: u64, revision: u64) -> windlass_store::Commit {
    let number = i64::try_from(revision + 1).unwrap();
    let mut commit = commit(&id(run), revision);
    commit.changes = vec![
        Change::set("revision".into(), Value::from(number)),
        Change::set("text".into(), Value::text(text(run, revision + 1))),
    ];
    commit
        .changes
        .iter()
        .for_each(|change| state.apply(change).unwrap());
    commit.iterations = vec![iteration("loop", revision, number)];
    commit.history = vec![HistoryEvent {
        at: Timestamp(number),
        what: HistoryKind::RunStarted,
    }];
    if run.is_multiple_of(2) {
        commit.header.placement = Placement::Due(Timestamp(number));
    }
    commit.snapshot = (number % 7 == 0).then(|| state.clone());
    commit
}

/// Commits groups of some runs, prints each acknowledged group, and continues after a line of input.
#[test]
#[ignore = "the process whose power is cut"]
fn writer() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let groups: u64 = std::env::var(GROUPS).unwrap().parse().unwrap();
    let store = open_store(Path::new(&dir)).unwrap();
    let mut states: Vec<(u64, RunState)> = (0..RUNS)
        .map(|run| {
            let hash = crate::store::contract::hash(1);
            (0, RunState::new(id(run).as_str().into(), hash))
        })
        .collect();
    let mut input = BufReader::new(std::io::stdin());
    for group in 0..groups {
        let those: Vec<u64> = match group % 4 {
            0 => (0..RUNS).collect(),
            1 => vec![group % RUNS],
            _ => (0..RUNS)
                .filter(|run| (run + group).is_multiple_of(5))
                .collect(),
        };
        let commits: Vec<_> = those
            .iter()
            .map(|run| {
                let (revision, state) = &mut states[usize::try_from(*run).unwrap()];
                let commit = next(state, *run, *revision);
                *revision += 1;
                commit
            })
            .collect();
        for outcome in store.commit(&commits).unwrap() {
            outcome.unwrap();
        }
        let revisions: Vec<String> = states.iter().map(|(n, _)| n.to_string()).collect();
        // One write, so that a line is never split.
        let line = format!("ACK {}\n", revisions.join(" "));
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        input.read_line(&mut String::new()).unwrap();
    }
}

const CROWD: u64 = 40;

/// Commits from many threads at once. Each commit is as large as one group may be before it is synced.
#[test]
#[ignore = "the process that is recorded"]
fn crowd() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let store = open_store(Path::new(&dir)).unwrap();
    std::thread::scope(|scope| {
        for run in 0..CROWD {
            let store = &store;
            scope.spawn(move || {
                for revision in 0..2 {
                    let mut commit = commit(&id(run), revision);
                    let text = Value::text(noise(run << 32 | revision, 120_000));
                    commit.changes = vec![Change::set("text".into(), text)];
                    store.commit(&[commit]).unwrap()[0].as_ref().unwrap();
                }
            });
        }
    });
}

/// The store of a directory opens, and contains what was acknowledged.
fn verify(dir: &Path, acknowledged: &[u64], when: &str) {
    let seen = match StoreKind::of(dir).is_some() {
        true => seen(dir).unwrap_or_else(|error| panic!("{when}: {error}")),
        false => None,
    };
    // If it does not open, the caller reports the panic with `when`.
    let store = open_again(dir);
    // A read-only command sees what the database finds.
    if let Some(seen) = seen {
        let [seen, found] =
            [&seen as &dyn Store, &*store].map(|store| store.list(None, usize::MAX));
        assert_eq!(seen.unwrap(), found.unwrap(), "{when}");
    }
    for (run, least) in (0..).zip(acknowledged) {
        if *least == 0 {
            continue;
        }
        let name = id(run);
        let stored = store
            .load(&name)
            .unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
        let revision = stored.header.revision;
        assert!(
            revision >= *least,
            "{when}: {name} is at {revision}, not {least}"
        );
        let found = stored.state.variables.get("text").and_then(Value::as_str);
        assert_eq!(found, Some(text(run, revision).as_str()), "{when}: {name}");
        let history = store.history(&name, 0, usize::MAX).unwrap();
        assert_eq!(history.len() as u64, revision, "{when}: {name}");
        let rows = store.iterations(&name, None, usize::MAX).unwrap();
        assert_eq!(rows.len() as u64, revision, "{when}: {name}");
    }
    // The store can be written to.
    let mut fresh = commit("after-the-cut", 0);
    fresh.header.revision = match store.header("after-the-cut") {
        Ok(header) => header.revision + 1,
        Err(_) => 1,
    };
    store.commit(&[fresh]).unwrap()[0].as_ref().unwrap();
}

fn acknowledged(line: &str) -> Option<Vec<u64>> {
    let (_, numbers) = line.split_once("ACK ")?;
    numbers.split_whitespace().map(|n| n.parse().ok()).collect()
}

fn cuts(default: usize) -> usize {
    let given = std::env::var("WINDLASS_POWER_CUTS").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(default)
}

// ── recorded system calls ───────────────────────────────────────────────────────────────────

/// What a process did to its files.
#[derive(Debug)]
pub enum Done {
    /// The name was created; its directory is not synced.
    Made(PathBuf),
    MadeDirectory(PathBuf),
    Wrote(PathBuf, u64, Vec<u8>),
    Cut(PathBuf, u64),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
    /// Everything done to this file or directory before the event with this number is durable.
    Synced(PathBuf, usize),
    Acknowledged(Vec<u64>),
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.split("\\x")
        .skip(1)
        .map(|pair| digit(pair.as_bytes()[0]) * 16 + digit(pair.as_bytes()[1]))
        .collect()
}

/// The parts of `…"\x61\x62"…` that are in quotes.
fn quoted(text: &str) -> Vec<Vec<u8>> {
    text.split('"').skip(1).step_by(2).map(unhex).collect()
}

/// The path of a descriptor that is written `3<\x2f…>`.
fn path_of(text: &str) -> PathBuf {
    let inner = text.split_once('<').map_or("", |(_, rest)| rest);
    let inner = inner.split_once('>').map_or("", |(inner, _)| inner);
    PathBuf::from(String::from_utf8(unhex(inner)).unwrap())
}

fn last_number(arguments: &str) -> u64 {
    let last = arguments.rsplit(',').next().unwrap().trim();
    last.trim_end_matches(')').parse().unwrap()
}

/// Reads strace's log in the order in which calls ended. A sync covers what had ended when it started.
fn recorded(log: &str, dir: &Path) -> Vec<Done> {
    let mut done: Vec<Done> = Vec::new();
    // Per thread: the call that has started, and the number of events at that time.
    let mut begun: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let (call, before) = if let Some(head) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (head.trim_end().to_owned(), done.len()));
            continue;
        } else if call.starts_with("<...") {
            let tail = call.split_once("resumed>").unwrap().1;
            let (head, before) = begun.remove(thread).unwrap();
            (head + tail, before)
        } else {
            (call.to_owned(), done.len())
        };
        let Some((call, result)) = call.rsplit_once(" = ") else {
            continue;
        };
        let Some((name, arguments)) = call.split_once('(') else {
            continue;
        };
        if result.starts_with('-') || result.starts_with('?') {
            continue;
        }
        let quoted = || quoted(arguments);
        let named = |n: usize| {
            let bytes = quoted().into_iter().nth(n).unwrap();
            let path = PathBuf::from(String::from_utf8(bytes).unwrap());
            if path.is_absolute() {
                path
            } else {
                path_of(arguments).join(path)
            }
        };
        let event = match name {
            "openat" if arguments.contains("O_CREAT") => Done::Made(named(0)),
            "mkdir" | "mkdirat" => Done::MadeDirectory(named(0)),
            "pwrite64" => {
                let data = quoted().remove(0);
                Done::Wrote(path_of(arguments), last_number(arguments), data)
            }
            "write" => {
                let data = quoted().remove(0);
                let text = String::from_utf8_lossy(&data).into_owned();
                match text.contains("ACK ") {
                    true => Done::Acknowledged(acknowledged(&text).unwrap()),
                    // Files that are written once, from their beginning: sled's configuration and index.
                    false => {
                        let path = path_of(arguments);
                        let end = done.iter().map(|one| match one {
                            Done::Wrote(other, at, data) if *other == path => {
                                at + data.len() as u64
                            }
                            _ => 0,
                        });
                        let end = end.max().unwrap_or(0);
                        Done::Wrote(path, end, data)
                    }
                }
            }
            "ftruncate" => Done::Cut(path_of(arguments), last_number(arguments)),
            "rename" | "renameat" | "renameat2" => Done::Renamed(named(0), named(1)),
            "unlink" | "unlinkat" => Done::Removed(named(0)),
            // sync_file_range does not make anything durable.
            "fsync" | "fdatasync" => Done::Synced(path_of(arguments), before),
            _ => continue,
        };
        let inside = match &event {
            Done::Made(path)
            | Done::MadeDirectory(path)
            | Done::Wrote(path, ..)
            | Done::Cut(path, _)
            | Done::Renamed(path, _)
            | Done::Removed(path)
            | Done::Synced(path, _) => path.starts_with(dir),
            Done::Acknowledged(_) => true,
        };
        if inside {
            done.push(event);
        }
    }
    done
}

/// What a power cut does to unsynced writes.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Dropped,
    Kept,
    /// Only the last write remains.
    Last,
    /// Each sector remains or is lost independently.
    Torn,
}

/// The files after a power cut that follows this number of events.
fn after_cut(done: &[Done], fate: Fate, dice: &mut Dice) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    // For each path, the number of the event up to which it is durable.
    let mut synced: BTreeMap<&Path, usize> = BTreeMap::new();
    for event in done {
        if let Done::Synced(path, before) = event {
            let known = synced.entry(path).or_default();
            *known = (*known).max(*before);
        }
    }
    let upto = |path: &Path| synced.get(path).copied().unwrap_or(0);
    // Names are created and removed in order, as a file system's journal records them: up to some point after the last
    // durable one.
    let names_durable = done.iter().enumerate().filter(|(at, event)| match event {
        Done::Made(path) | Done::MadeDirectory(path) | Done::Removed(path) => {
            path.parent().is_some_and(|parent| upto(parent) > *at) || upto(path) > *at
        }
        Done::Renamed(_, path) => path.parent().is_some_and(|parent| upto(parent) > *at),
        _ => false,
    });
    let names_durable = names_durable.map(|(at, _)| at + 1).max().unwrap_or(0);
    let names = match fate {
        Fate::Dropped => names_durable,
        Fate::Kept | Fate::Last => done.len(),
        Fate::Torn => {
            let more = done.len() - names_durable;
            names_durable + usize::try_from(dice.roll(more as u64 + 1)).unwrap()
        }
    };
    let mut files: BTreeMap<PathBuf, Option<Vec<u8>>> = BTreeMap::new();
    for (at, event) in done.iter().enumerate() {
        match event {
            Done::Made(path) if at < names => {
                files
                    .entry(path.clone())
                    .or_insert_with(|| Some(Vec::new()));
            }
            Done::MadeDirectory(path) if at < names => {
                files.insert(path.clone(), None);
            }
            Done::Renamed(from, to) if at < names => {
                let those: Vec<PathBuf> = files
                    .keys()
                    .filter(|path| path.starts_with(from))
                    .cloned()
                    .collect();
                for path in those {
                    let inside = path.strip_prefix(from).unwrap();
                    // `join` with an empty path would end in a slash.
                    let new = match inside.as_os_str().is_empty() {
                        true => to.clone(),
                        false => to.join(inside),
                    };
                    let file = files.remove(&path).unwrap();
                    files.insert(new, file);
                }
            }
            Done::Removed(path) if at < names => {
                files.remove(path);
            }
            Done::Cut(path, length) => {
                if let Some(Some(file)) = files.get_mut(path)
                    && (at < upto(path) || !matches!(fate, Fate::Dropped))
                {
                    file.resize(usize::try_from(*length).unwrap(), 0);
                }
            }
            Done::Wrote(path, offset, data) => {
                let Some(Some(file)) = files.get_mut(path) else {
                    continue;
                };
                let durable = at < upto(path);
                let last = !done[at + 1..]
                    .iter()
                    .any(|later| matches!(later, Done::Wrote(other, ..) if other == path));
                let is_written = |dice: &mut Dice| match fate {
                    _ if durable => true,
                    Fate::Dropped => false,
                    Fate::Kept => true,
                    Fate::Last => last,
                    Fate::Torn => dice.roll(2) == 0,
                };
                write_sectors(file, *offset, data, dice, is_written);
            }
            _ => {}
        }
    }
    files
}

/// Writes the sectors of a write that survive.
fn write_sectors(
    file: &mut Vec<u8>,
    offset: u64,
    data: &[u8],
    dice: &mut Dice,
    mut is_written: impl FnMut(&mut Dice) -> bool,
) {
    const SECTOR: usize = 512;
    let mut at = usize::try_from(offset).unwrap();
    let mut rest = data;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((SECTOR - at % SECTOR).min(rest.len()));
        if is_written(dice) {
            if file.len() < at + now.len() {
                file.resize(at + now.len(), 0);
            }
            file[at..at + now.len()].copy_from_slice(now);
        }
        at += now.len();
        rest = later;
    }
}

/// Writes files to a new directory.
fn lay_out(files: &BTreeMap<PathBuf, Option<Vec<u8>>>, from: &Path, to: &Path) {
    for (path, content) in files {
        let place = to.join(path.strip_prefix(from).unwrap());
        match content {
            None => fs::create_dir_all(place).unwrap(),
            Some(content) => {
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                // Preallocated space is a hole.
                fs::write(&place, &content[..used(content)]).unwrap();
                let file = fs::OpenOptions::new().write(true).open(place).unwrap();
                file.set_len(content.len() as u64).unwrap();
            }
        }
    }
}

/// Prints the last events before a cut.
fn tell(done: &[Done]) {
    for (at, one) in done.iter().enumerate().skip(done.len().saturating_sub(40)) {
        match one {
            Done::Wrote(path, offset, data) => {
                println!(
                    "{at} wrote {} at {offset}: {} bytes",
                    path.display(),
                    data.len()
                );
            }
            Done::Acknowledged(_) => println!("{at} acknowledged"),
            other => println!("{at} {other:?}"),
        }
    }
}

/// Whether strace can trace here; prints a message if it cannot.
pub fn strace_works() -> bool {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        lacking("no strace here that may trace");
    }
    works
}

/// Records a writer of `groups` groups in `dir`.
fn record(dir: &Path, log: &Path, groups: u64) -> Vec<Done> {
    let mut writer = this_test_binary("store::power::writer");
    writer.env(DIR, dir).env(GROUPS, groups.to_string());
    recorded_of(&writer, dir, log, &[], &[0])
}

/// Records what a command does in `dir` until it ends with one of these exit codes; `more` are further options of
/// strace.
pub fn recorded_of(
    command: &Command,
    dir: &Path,
    log: &Path,
    more: &[&str],
    ends: &[i32],
) -> Vec<Done> {
    let envs = command.get_envs();
    let output = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "4000000", "-e"])
        .arg(
            "trace=openat,mkdir,mkdirat,pwrite64,write,ftruncate,rename,renameat,renameat2,\
             unlink,unlinkat,fsync,fdatasync",
        )
        .args(more)
        .arg("-o")
        .arg(log)
        .arg(command.get_program())
        .args(command.get_args())
        .envs(envs.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ended = output.status.code().filter(|code| ends.contains(code));
    assert!(ended.is_some(), "{output:?}");
    recorded(&fs::read_to_string(log).unwrap(), dir)
}

#[test]
fn what_was_synced_is_there_whatever_became_of_the_rest() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    let done = record(&dir, &place.path().join("log"), 40);
    let acks = done
        .iter()
        .filter(|one| matches!(one, Done::Acknowledged(_)));
    assert_eq!(acks.count(), 40);
    // After each sync and each acknowledgement, and just before it.
    let mut points: Vec<usize> = done
        .iter()
        .enumerate()
        .filter(|(_, one)| matches!(one, Done::Synced(..) | Done::Acknowledged(_)))
        .flat_map(|(at, _)| [at, at + 1])
        .collect();
    points.dedup();
    let all = points.len() * 4;
    let every = all.div_ceil(cuts(sized(120, 48))).max(1);
    let mut dice = Dice(0xC07);
    let mut tried = 0;
    for (number, point) in points.into_iter().enumerate() {
        let before = &done[..point];
        let known = before.iter().rev().find_map(|one| match one {
            Done::Acknowledged(revisions) => Some(revisions.as_slice()),
            _ => None,
        });
        let fates = [Fate::Dropped, Fate::Kept, Fate::Last, Fate::Torn];
        for (turn, fate) in fates.into_iter().enumerate() {
            if !(number * 4 + turn).is_multiple_of(every) {
                continue;
            }
            let files = after_cut(before, fate, &mut dice);
            // A new directory, so that it contains nothing that could not be removed of the last one.
            let cut = place.path().join(format!("cut-{tried}"));
            lay_out(&files, &dir, &cut);
            let when = format!("cut behind event {point} of {}, {fate:?}", done.len());
            let verified =
                std::panic::catch_unwind(|| verify(&cut, known.unwrap_or_default(), &when));
            if verified.is_err() {
                tell(before);
                panic!("{when}");
            }
            let _ = fs::remove_dir_all(&cut);
            tried += 1;
        }
    }
    let writes = done
        .iter()
        .filter(|one| matches!(one, Done::Wrote(..)))
        .count();
    let syncs = done
        .iter()
        .filter(|one| matches!(one, Done::Synced(..)))
        .count();
    println!("{writes} writes and {syncs} syncs recorded, {tried} of {all} power cuts tried");
}

/// Unsynced writes must be in at most two segments of the log. With three, a power cut that preserves the last and
/// loses the previous one leaves a log that the database refuses.
#[test]
fn many_writers_at_once_leave_no_more_unsynced_than_one() {
    const SEGMENT: u64 = 2 << 20;
    // fjall has no segments.
    if kind() == StoreKind::Fjall || !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    let mut crowd = this_test_binary("store::power::crowd");
    crowd.env(DIR, &dir);
    // A sync takes so long that all other threads arrive meanwhile.
    let slow = ["-e", "inject=fdatasync:delay_enter=50000"];
    let done = recorded_of(&crowd, &dir, &place.path().join("log"), &slow, &[0]);
    let db = dir.join("store/db");
    // The segments of the log with something that is not known to be durable, by event.
    let mut unsynced: Vec<(usize, u64)> = Vec::new();
    let (mut syncs, mut most) = (0, 0);
    for (at, one) in done.iter().enumerate() {
        match one {
            Done::Wrote(path, offset, _) if *path == db => unsynced.push((at, offset / SEGMENT)),
            Done::Synced(path, upto) if *path == db => {
                syncs += 1;
                unsynced.retain(|(at, _)| at >= upto);
            }
            _ => {}
        }
        let segments: BTreeSet<u64> = unsynced.iter().map(|(_, segment)| *segment).collect();
        most = most.max(segments.len());
    }
    println!("{most} segments were not synced at most, at {syncs} syncs");
    assert!(syncs >= 4, "nothing was recorded");
    assert!(most <= 2, "{most} segments were not synced");
}

/// A file system does not order names. Each directory on the path to a new store is synced after its name was created,
/// and so is the directory that contains the store.
#[test]
fn the_names_on_the_way_to_a_new_store_are_durable_before_anything_is_acknowledged() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("one").join("two").join("state");
    let mut writer = this_test_binary("store::power::writer");
    writer.env(DIR, &dir).env(GROUPS, "1");
    let done = recorded_of(&writer, place.path(), &place.path().join("log"), &[], &[0]);
    let first = done
        .iter()
        .position(|one| matches!(one, Done::Acknowledged(_)));
    let before = &done[..first.unwrap()];
    let mut names = Vec::new();
    for (at, one) in before.iter().enumerate() {
        let (Done::MadeDirectory(name) | Done::Renamed(_, name)) = one else {
            continue;
        };
        // Names inside the store exist since it was renamed into place.
        if !dir.join("store").starts_with(name) {
            continue;
        }
        let parent = name.parent().unwrap();
        let synced = before[at..]
            .iter()
            .any(|later| matches!(later, Done::Synced(path, upto) if path == parent && *upto > at));
        assert!(synced, "the name {} is not durable", name.display());
        names.push(name.clone());
    }
    let on_the_way = [&place.path().join("one"), dir.parent().unwrap(), &dir];
    let expected: Vec<PathBuf> = on_the_way
        .into_iter()
        .map(Path::to_path_buf)
        .chain([dir.join("store")])
        .collect();
    assert_eq!(names, expected);
}

/// Runs resume from what is found, and effects start. It must survive the next power cut.
#[test]
fn what_a_process_left_is_durable_before_anything_is_made_of_it() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    record(&dir, &place.path().join("first"), 3);
    let second = record(&dir, &place.path().join("second"), 0);
    let first = second.iter().find(|one| match one {
        Done::Wrote(path, ..) | Done::Cut(path, _) | Done::Synced(path, _) => {
            path.starts_with(dir.join("store"))
        }
        _ => false,
    });
    let first = first.expect("it is opened");
    assert!(
        matches!(first, Done::Synced(path, _) if *path == log_of(&dir)),
        "{first:?}"
    );
}

/// A repaired store replaces the damaged one only after all of it is durable.
#[test]
fn a_repaired_store_is_durable_before_it_is_in_its_place() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    record(&dir, &place.path().join("first"), 3);
    // A flipped bit in the middle of the log is damage.
    let db = log_of(&dir);
    let mut bytes = fs::read(&db).unwrap();
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 1;
    fs::write(&db, bytes).unwrap();
    let mut repair = Command::new(env!("CARGO_BIN_EXE_windlass"));
    repair.args(["doctor", "--repair", "--state"]).arg(&dir);
    // Exit code 8: a run was lost, as happens if the bit is in a page that contains nothing else of it.
    let done = recorded_of(&repair, &dir, &place.path().join("log"), &[], &[0, 8]);
    let moved = done.iter().position(|one| match one {
        Done::Renamed(from, _) => from.starts_with(&dir) && from.parent() == Some(&*dir),
        _ => false,
    });
    let before = &done[..moved.expect("it was repaired")];
    all_is_durable(before, "/store.new-");
}

/// A backup is renamed into place when all of it is durable, and its command ends when its name is durable.
#[test]
fn a_backup_is_durable_before_it_is_in_its_place() {
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("state");
    record(&dir, &place.path().join("first"), 3);
    let dest = place.path().join("backups/today");
    let mut backup = Command::new(env!("CARGO_BIN_EXE_windlass"));
    backup.arg("backup").arg(&dest).arg("--state").arg(&dir);
    let done = recorded_of(&backup, place.path(), &place.path().join("log"), &[], &[0]);
    let moved = done
        .iter()
        .position(|one| matches!(one, Done::Renamed(_, to) if *to == dest.join("store")));
    let moved = moved.expect("it was copied");
    all_is_durable(&done[..moved], "/store.new-");
    for folder in [dest.as_path(), dest.parent().unwrap(), place.path()] {
        let synced = done.iter().any(
            |one| matches!(one, Done::Synced(synced, upto) if synced == folder && *upto > moved),
        );
        assert!(synced, "names in {} are not durable", folder.display());
    }
}

/// Everything that was written below a directory whose path contains `part` was synced later, or is deleted.
pub fn all_is_durable(before: &[Done], part: &str) {
    let is_new = |path: &Path| path.to_string_lossy().contains(part);
    let mut files = 0;
    for (at, one) in before.iter().enumerate() {
        let (path, what) = match one {
            Done::Wrote(path, ..) | Done::Cut(path, _) => (path.as_path(), "its bytes"),
            Done::Made(path) => (path.parent().unwrap(), "the name of a file"),
            Done::Renamed(_, to) => (to.parent().unwrap(), "the name of a file"),
            _ => continue,
        };
        if !is_new(path) {
            continue;
        }
        // A file that was renamed meanwhile is synced under its new name.
        let renamed = before[at..].iter().find_map(|later| match later {
            Done::Renamed(from, to) if from == path => Some(to.as_path()),
            _ => None,
        });
        let gone = before[at..]
            .iter()
            .any(|later| matches!(later, Done::Removed(removed) if removed == path));
        let path = renamed.unwrap_or(path);
        let synced = before[at..].iter().any(
            |later| matches!(later, Done::Synced(synced, upto) if synced == path && *upto > at),
        );
        assert!(synced || gone, "{}: {what} are not durable", path.display());
        files += 1;
    }
    assert!(files > 0, "nothing was written: {before:?}");
}

#[test]
fn a_power_cut_that_is_replayed_drops_what_was_not_synced() {
    let path = PathBuf::from("/d/f");
    let done = [
        Done::Made(path.clone()),
        Done::Synced(PathBuf::from("/d"), 1),
        Done::Wrote(path.clone(), 0, vec![1; 1024]),
        Done::Synced(path.clone(), 3),
        Done::Wrote(path.clone(), 512, vec![2; 1024]),
    ];
    let mut dice = Dice(1);
    let file = |fate: Fate, dice: &mut Dice| after_cut(&done, fate, dice)[&path].clone().unwrap();
    assert_eq!(file(Fate::Dropped, &mut dice), vec![1; 1024]);
    let written = file(Fate::Kept, &mut dice);
    assert_eq!((written.len(), written[511], written[512]), (1536, 1, 2));
    let torn: Vec<usize> = (0..20).map(|_| file(Fate::Torn, &mut dice).len()).collect();
    assert!(torn.contains(&1024) && torn.contains(&1536));
}

// ── an ext4 file system ─────────────────────────────────────────────────────────────────────

/// A mounted image; unmounted when it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(image: &Path, at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let done = Command::new("mount")
            .args(["-o", "loop"])
            .args([image, at])
            .output();
        done.is_ok_and(|output| output.status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A process that is killed when it is dropped, however the test ended.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Copies an image as it was at one moment; returns how many copies had to be discarded. The system may write to a
/// mounted image at any time, whereas a power cut takes no time.
fn copy_of_a_moment(image: &Path, copy: &Path) -> u32 {
    for torn in 0..50 {
        fs::copy(image, copy).unwrap();
        if same(image, copy) {
            return torn;
        }
    }
    panic!("the image does not stand still");
}

fn same(one: &Path, other: &Path) -> bool {
    let [mut one, mut other] = [one, other].map(|path| fs::File::open(path).unwrap());
    let [mut a, mut b] = [(); 2].map(|()| vec![0; 1 << 20]);
    loop {
        let read = one.read(&mut a).unwrap();
        if read == 0 {
            return true;
        }
        other.read_exact(&mut b[..read]).unwrap();
        if a[..read] != b[..read] {
            return false;
        }
    }
}

#[test]
fn an_ext4_image_copied_at_an_acknowledgement_has_what_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(&image)
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        return lacking("no mkfs.ext4 here");
    }
    let Some(mounted) = Mounted::new(&image, &place.path().join("mount")) else {
        return lacking("no right to mount an image here");
    };
    let groups = u64::try_from(cuts(sized(40, 16))).unwrap().min(400);
    let mut writer = Writer(
        this_test_binary("store::power::writer")
            .env(DIR, mounted.0.join("state"))
            .env(GROUPS, (groups + 1).to_string())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut go_on = writer.0.stdin.take().unwrap();
    let lines = BufReader::new(writer.0.stdout.take().unwrap());
    let (mut tried, mut torn) = (0, 0);
    for line in lines.lines() {
        let Some(revisions) = acknowledged(&line.unwrap()) else {
            continue;
        };
        // What the file system has not written yet is in no image: it is lost.
        let cut = place.path().join("cut");
        torn += copy_of_a_moment(&image, &cut);
        let again = Mounted::new(&cut, &place.path().join("again")).expect("it mounts again");
        verify(
            &again.0.join("state"),
            &revisions,
            &format!("image {tried}"),
        );
        tried += 1;
        if tried == groups {
            break;
        }
        go_on.write_all(b"\n").unwrap();
    }
    assert_eq!(tried, groups);
    println!("{tried} images copied at an acknowledgement and mounted again, {torn} torn copies");
}
