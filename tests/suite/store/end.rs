//! The end of the log, in stores whose segments were reused. After the last acknowledged group there may be torn
//! writes, old data, or damage, and the store opens with everything that was acknowledged. Damage before that is
//! refused only if the database would discard something that was acknowledged. To check that, the database is opened
//! directly, without the checks before it.
//!
//! `WINDLASS_END_POINTS` tries more places, `WINDLASS_DAMAGE_SEED` others.

use crate::store::contract::{commit, hash, noise};
use crate::store::damage::{Dice, from_env};
use crate::support::{alone, sized};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use windlass_engine::doctor::repair;
use windlass_expression::Value;
use windlass_machine::{Change, HistoryEvent, HistoryKind, RunState};
use windlass_store::{Placement, ReadStore, Retention, SledStore, Store, StoreError, StoreOptions};
use windlass_value::time::Timestamp;

const SEGMENT: usize = 2 << 20;
const RUNS: u64 = 5;

fn id(run: u64) -> String {
    format!("run-{run}")
}

fn text(run: u64, revision: u64) -> String {
    let size = [20_000, 400, 9_000][usize::try_from((run + revision) % 3).unwrap()];
    noise(run << 32 | revision, size)
}

/// A writer whose old rows are soon deleted, so that segments become free while it runs.
struct Writer {
    store: SledStore,
    states: Vec<(u64, RunState)>,
}

impl Writer {
    fn new(dir: &Path) -> Self {
        let options = StoreOptions {
            retention: Retention {
                events: 20,
                compact_every: 8,
                ..Retention::default()
            },
            ..StoreOptions::default()
        };
        let states = (0..RUNS).map(|run| (0, RunState::new(id(run).into(), hash(1))));
        Self {
            store: SledStore::open_with(dir, options).unwrap(),
            states: states.collect(),
        }
    }

    /// Commits a group of some of the runs.
    fn group(&mut self, number: u64) {
        let mut group = Vec::new();
        for (run, (revision, state)) in (0..).zip(&mut self.states) {
            if (run + number).is_multiple_of(3) {
                continue;
            }
            let mut commit = commit(&id(run), *revision);
            *revision += 1;
            let long = Value::text(text(run, *revision));
            commit.changes = vec![Change::set("text".into(), long)];
            commit
                .changes
                .iter()
                .for_each(|change| state.apply(change).unwrap());
            commit.history = vec![HistoryEvent {
                at: Timestamp(0),
                what: HistoryKind::RunStarted,
            }];
            let due = Timestamp(i64::try_from(*revision).unwrap());
            commit.header.placement = Placement::Due(due);
            commit.snapshot = revision.is_multiple_of(5).then(|| state.clone());
            group.push(commit);
        }
        for outcome in self.store.commit(&group).unwrap() {
            outcome.unwrap();
        }
    }
}

/// A store's files as a process leaves them that is killed between two groups.
struct Moment {
    files: BTreeMap<String, Vec<u8>>,
    /// The acknowledged revision of each run.
    revisions: Vec<u64>,
}

impl Moment {
    /// How often the mark was synced: once per 32 groups.
    fn synced_marks(&self) -> u64 {
        u64::from_le_bytes(self.files["mark"][..8].try_into().unwrap()) / 32
    }

    fn of(dir: &Path, writer: &Writer) -> Self {
        let entries = fs::read_dir(dir.join("store")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.is_file()).map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        });
        Self {
            files: files.collect(),
            revisions: writer
                .states
                .iter()
                .map(|(revision, _)| *revision)
                .collect(),
        }
    }

    fn log(&self) -> &[u8] {
        &self.files["db"]
    }

    /// Where the newest segment begins.
    fn newest(&self) -> usize {
        let numbers = self.log().chunks(SEGMENT).map(|segment| {
            let place = segment.get(4..12).map(|bytes| bytes.try_into().unwrap());
            let place = place.map_or(-1, |bytes| i64::from_le_bytes(bytes) ^ i64::MAX);
            // A header at another place is not a segment.
            let header = place % SEGMENT as i64 == 0 && place < 1 << 40;
            if header { place } else { -1 }
        });
        let newest = numbers.enumerate().max_by_key(|(_, place)| *place);
        newest.unwrap().0 * SEGMENT
    }

    /// Copies the files with another log and mark.
    fn lay_out(&self, dir: &Path, log: &[u8], mark: &[u8]) {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("store/blobs")).unwrap();
        for (name, bytes) in &self.files {
            let bytes = match name.as_str() {
                "db" => log,
                "mark" => mark,
                _ => bytes,
            };
            fs::write(dir.join("store").join(name), bytes).unwrap();
        }
    }
}

/// Two moments, three groups apart, in a store whose newest segment was used before; and the end of the log at the
/// second moment.
fn moments(dir: &Path) -> (Moment, Moment, usize) {
    let mut writer = Writer::new(dir);
    let mut number = 0;
    let mut groups = |writer: &mut Writer, count: u64| {
        for _ in 0..count {
            writer.group(number);
            number += 1;
        }
        Moment::of(dir, writer)
    };
    groups(&mut writer, 300);
    for _ in 0..100 {
        let first = groups(&mut writer, 7);
        let second = groups(&mut writer, 3);
        let third = groups(&mut writer, 1);
        let newest = second.newest();
        let (before, after) = (second.log(), third.log());
        // The mark must not be synced between them, because then the log of the second would not match the mark of the
        // first.
        if first.synced_marks() != second.synced_marks() {
            continue;
        }
        if first.newest() != newest || third.newest() != newest || before.len() < newest + SEGMENT {
            continue;
        }
        let end = (newest..newest + SEGMENT).find(|at| before[*at] != after[*at]);
        let Some(end) = end.filter(|end| end + 300_000 < newest + SEGMENT) else {
            continue;
        };
        let old = before[end..newest + SEGMENT].iter();
        if old.filter(|byte| **byte != 0).count() > 200_000 {
            return (first, second, end);
        }
    }
    panic!("no segment is used again");
}

/// Opens a store that was just closed.
fn open(dir: &Path) -> Result<SledStore, StoreError> {
    alone(|| SledStore::open(dir))
}

/// Opens it with the database itself, which panics on some damaged logs.
fn opened_by_the_database(dir: &Path) {
    let config = sled::Config::new().segment_size(SEGMENT);
    let config = config.path(dir.join("store"));
    for _ in 0..100_000 {
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("lock") => {
                std::thread::yield_now();
            }
            _ => return,
        }
    }
    panic!("the database stays locked");
}

/// Checks that everything acknowledged exists and that nothing that exists is wrong; the error says what is missing. A
/// text is never another one than was written.
fn acknowledged_is_there(store: &SledStore, revisions: &[u64]) -> Result<(), String> {
    for (run, least) in (0..).zip(revisions) {
        let stored = store.load(&id(run)).map_err(|error| error.to_string())?;
        let revision = stored.header.revision;
        let found = stored.state.variables.get("text").and_then(Value::as_str);
        assert_eq!(found, Some(text(run, revision).as_str()), "run {run}");
        if revision < *least {
            return Err(format!("run {run} is at {revision}, not {least}"));
        }
    }
    let wrong = store.check().map_err(|error| error.to_string())?.issues;
    let wrong = wrong.first().map(|one| format!("{one:?}"));
    wrong.map_or(Ok(()), Err)
}

/// Damages the log at some place in a range; also describes the damage.
fn damaged(log: &[u8], range: &Range<usize>, dice: &mut Dice) -> (Vec<u8>, String) {
    let mut log = log.to_vec();
    let at = range.start + dice.roll(range.len() as u64) as usize;
    let to = |length: usize| (at + length).min(range.end);
    let what = match dice.roll(5) {
        0 => {
            log[at..to(64)].fill_with(|| dice.roll(256) as u8);
            format!("noise at {at}")
        }
        1 => {
            log[at..to(4096)].fill(0);
            format!("zeroed at {at}")
        }
        2 => {
            log[at..range.end].fill(0);
            format!("zeroed from {at} on")
        }
        _ => {
            let bit = dice.roll(8);
            log[at] ^= 1 << bit;
            format!("bit {bit} at {at}")
        }
    };
    (log, what)
}

/// Individual sectors of the second log, and the others of the first.
fn torn(first: &[u8], second: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut log = second.to_vec();
    let most = dice.roll(3);
    for (to, from) in log.chunks_mut(512).zip(first.chunks(512)) {
        if to != from && dice.roll(4) <= most {
            to.copy_from_slice(from);
        }
    }
    log
}

#[test]
fn damage_behind_what_was_acknowledged_is_no_reason_to_refuse() {
    let points = from_env("WINDLASS_END_POINTS", sized(40, 16));
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 6_151);
    let place = tempfile::tempdir().unwrap();
    let (first, second, end) = moments(&place.path().join("writer"));
    let newest = second.newest();
    let begin = (newest..end).find(|at| first.log()[*at] != second.log()[*at]);
    let begin = begin.expect("three groups were written");
    let elsewhere = (0..newest).chain(newest + SEGMENT..first.log().len());
    let same = |at: usize| first.log().get(at) == second.log().get(at);
    assert!(elsewhere.clone().all(same), "all of it is in one segment");
    let dir = place.path().join("cut");
    let mut tried: BTreeMap<&str, u64> = BTreeMap::new();
    for point in 0..points {
        let (mark, revisions, kind, (log, what)) = match point % 4 {
            // Not acknowledged: three groups that the mark does not cover.
            0 => {
                let log = torn(first.log(), second.log(), &mut dice);
                (
                    &first.files["mark"],
                    &first.revisions,
                    "torn",
                    (log, String::from("torn")),
                )
            }
            1 | 2 => {
                let log = damaged(second.log(), &(begin..end), &mut dice);
                (
                    &first.files["mark"],
                    &first.revisions,
                    "not acknowledged",
                    log,
                )
            }
            _ => {
                let log = damaged(second.log(), &(end..newest + SEGMENT), &mut dice);
                (
                    &second.files["mark"],
                    &second.revisions,
                    "of an earlier use",
                    log,
                )
            }
        };
        second.lay_out(&dir, &log, mark);
        // Twice: the second process opens what the first one left.
        for turn in 0..2 {
            let store = open(&dir).unwrap_or_else(|error| panic!("{kind}, {what}: {error}"));
            if turn == 0 {
                let there = acknowledged_is_there(&store, revisions);
                there.unwrap_or_else(|error| panic!("{kind}, {what}: {error}"));
            }
            let mut next = commit("after", turn);
            next.program = None;
            store.commit(&[next]).unwrap()[0].as_ref().unwrap();
        }
        *tried.entry(kind).or_default() += 1;
    }
    println!(
        "a log of {} segments, the newest is the {}th: {tried:?}",
        second.log().len() / SEGMENT,
        newest / SEGMENT + 1
    );
}

#[test]
fn what_is_refused_would_have_been_lost() {
    let points = from_env("WINDLASS_END_POINTS", sized(40, 16));
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 12_289);
    let place = tempfile::tempdir().unwrap();
    let (first, second, end) = moments(&place.path().join("writer"));
    let newest = second.newest();
    let dir = place.path().join("damaged");
    let mark = &second.files["mark"];
    let (mut refused, mut found, mut harmless) = (0, 0, 0);
    for point in 0..points {
        let range = match point % 3 {
            0 => 0..second.log().len(),
            1 => newest..newest + SEGMENT,
            // The last groups, and what follows them.
            _ => end.saturating_sub(200_000).max(newest)..end + 1_000,
        };
        let (log, what) = match point % 12 {
            11 => (
                torn(first.log(), second.log(), &mut dice),
                String::from("torn"),
            ),
            _ => damaged(second.log(), &range, &mut dice),
        };
        second.lay_out(&dir, &log, mark);
        match open(&dir) {
            Ok(store) => match acknowledged_is_there(&store, &second.revisions) {
                Ok(()) => harmless += 1,
                Err(_) => found += 1,
            },
            Err(StoreError::Corrupt { what: why }) => {
                refused += 1;
                // Without the earlier checks: does the database open it?
                second.lay_out(&dir, &log, mark);
                opened_by_the_database(&dir);
                let lost = match open(&dir) {
                    Ok(store) => acknowledged_is_there(&store, &second.revisions).is_err(),
                    Err(_) => true,
                };
                assert!(lost, "{what}: nothing would have been lost: {why}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    println!("{refused} refused, {found} found on reading, {harmless} harmless");
    assert!(refused > 0 && harmless > 0);
}

#[test]
fn what_lies_behind_a_flipped_bit_comes_back() {
    let points = from_env("WINDLASS_END_POINTS", sized(40, 16)) / 2;
    let mut dice = Dice(from_env("WINDLASS_DAMAGE_SEED", 1) * 24_593);
    let place = tempfile::tempdir().unwrap();
    let (first, second, end) = moments(&place.path().join("writer"));
    let newest = second.newest();
    let begin = (newest..end).find(|at| first.log()[*at] != second.log()[*at]);
    let groups = begin.unwrap()..end;
    let dir = place.path().join("damaged");
    let (mut refused, mut whole, mut last) = (0, 0, 0);
    for _ in 0..points {
        let at = groups.start + dice.roll(groups.len() as u64) as usize;
        let mut log = second.log().to_vec();
        log[at] ^= 1 << dice.roll(8);
        second.lay_out(&dir, &log, &second.files["mark"]);
        let what = format!("byte {at} of {groups:?}");
        // A read-only open comes first, as usual.
        match open(&dir) {
            Ok(store) => {
                acknowledged_is_there(&store, &second.revisions).expect(&what);
                continue;
            }
            Err(StoreError::Corrupt { .. }) => refused += 1,
            Err(error) => panic!("{what}: {error}"),
        }
        let repaired = alone(|| repair(&dir)).expect(&what);
        let store = open(&dir).expect(&what);
        let behind = (0..).zip(&second.revisions).filter_map(|(run, newest)| {
            let is_retained = repaired.retained.contains(&id(run));
            let found = || store.header(&id(run)).expect(&what).revision;
            let behind = if is_retained {
                newest - found()
            } else {
                *newest
            };
            (behind > 0).then_some(behind)
        });
        let behind: Vec<u64> = behind.collect();
        // A group is recognised by its end. If that is damaged, the last group is lost, which is reported. Other damage
        // costs only the run that it hits.
        let without_its_end = repaired
            .unreadable
            .iter()
            .any(|one| one.what == "the end of the log");
        if without_its_end {
            let one_group = behind.iter().all(|behind| *behind == 1);
            assert!(one_group && repaired.stand_still, "{what}: {repaired:?}");
            last += 1;
        } else {
            assert!(behind.len() <= 1, "{what}: {behind:?}, {repaired:?}");
        }
        whole += usize::from(behind.is_empty());
    }
    println!(
        "{refused} of {points} were refused, {whole} of those came back whole, {last} without the \
         last group"
    );
    assert!(refused > 0);
}
