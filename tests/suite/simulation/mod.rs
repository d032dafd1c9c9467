//! Simulation. Workflows generated from a seed run on virtual time with the real machine, the real driver and the real
//! code of the store, on a disk that loses what was not synced. Each runs undisturbed first. Then the process dies
//! before a group of commits, after it, or after its effects have started, or the store refuses the group. The end, the
//! history and the requests must be the same.
//!
//! A rule decides what may differ: a run for which an answer and a timer came at the same instant (their order
//! decides), and a run that crashed while it was paused (what was in flight starts again at the resume). The other
//! checks still apply to them: what is stored is what was acknowledged, no effect starts before its step, at most one
//! repetition per crash, exact limits, and nothing is left behind or hangs.
//!
//! `WINDLASS_SEEDS=from..to` plays other seeds. A seed that failed is printed with its program.

pub mod author;
mod books;
mod medium;
mod play;
mod world;
mod written;

use crate::support::{kind, sized};
use books::Crash;
use play::{START, Script, play, same};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What was simulated.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<&'static str, usize>,
    plays: usize,
    crashes: usize,
    groups: usize,
    early: usize,
    compared: usize,
    exempt: usize,
    hours: f64,
    cut: usize,
}

impl Tally {
    fn played(&mut self, played: &play::Played) {
        self.plays += 1;
        self.crashes += played.crashes;
        self.groups += played.groups;
        self.early += played.early;
        self.cut += usize::from(played.cut);
        self.hours += (played.now.0 - START.0) as f64 / 3_600_000.0;
    }
}

fn simulate(seed: u64, tally: &mut Tally) {
    let script = Script::new(seed);
    let calm = play(&script, None, Box::new(|_, _| None), false);
    tally.played(&calm);
    for book in calm.runs.values() {
        *tally
            .statuses
            .entry(book.state.status().as_str())
            .or_default() += 1;
    }
    let disturb = |plan: books::Plan, in_pauses: bool, tally: &mut Tally| {
        let disturbed = play(&script, None, plan, in_pauses);
        tally.played(&disturbed);
        let compared = same(&calm, &disturbed);
        tally.compared += compared;
        tally.exempt += calm.runs.len() - compared;
    };
    // At every group, in each way.
    let every = |group: usize, tries: usize| match tries {
        0 => Some(Crash::Before),
        1 => Some(Crash::Refused),
        2 => Some([Crash::After, Crash::Dispatched, Crash::Written][group % 3]),
        _ => None,
    };
    disturb(Box::new(every), seed.is_multiple_of(4), tally);
    if seed.is_multiple_of(2) {
        return;
    }
    disturb(sometimes(seed), false, tally);
}

/// A crash at a fourth of the groups.
fn sometimes(seed: u64) -> books::Plan {
    let mut random = StdRng::seed_from_u64(seed ^ 2);
    Box::new(move |_: usize, tries: usize| {
        let crashes = [
            Crash::Before,
            Crash::Written,
            Crash::After,
            Crash::Dispatched,
            Crash::Refused,
        ];
        let crash = crashes[random.random_range(0..5)];
        (tries < 3 && random.random_range(0..4) == 0).then_some(crash)
    })
}

/// The number of tests that share the seeds, so that they use all cores.
const PARTS: u64 = 8;

/// The seeds of a part. `tests/run --all` plays all of them; before a merge a fifth is played.
fn seeds(part: u64) -> std::ops::Range<u64> {
    let given = std::env::var("WINDLASS_SEEDS").ok();
    let (from, to) = match given.as_deref().and_then(|text| text.split_once("..")) {
        Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
        None => (0, sized(1_000, 200)),
    };
    let at = |part: u64| from + (to - from) * part / PARTS;
    at(part)..at(part + 1)
}

#[allow(clippy::disallowed_methods, reason = "it reports how long it took")]
fn same_end_for_seeds_of(part: u64) {
    let mut tally = Tally::default();
    let began = Instant::now();
    let mut failed = Vec::new();
    let seeds = seeds(part);
    for seed in seeds.clone() {
        let tried = catch_unwind(AssertUnwindSafe(|| simulate(seed, &mut tally)));
        if tried.is_err() {
            println!("seed {seed} failed");
            failed.push(seed);
        }
        if failed.len() >= 20 {
            break;
        }
    }
    if let Some(seed) = failed.first() {
        let script = Script::new(*seed);
        println!("{}", script.describe());
        panic!(
            "seeds {failed:?} failed; WINDLASS_SEEDS={seed}..{} is above",
            seed + 1
        );
    }
    let count = seeds.end - seeds.start;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{count} seeds in {took:.1} s, {:.0} a second: {} simulations, {:.0} simulated hours, \
         {} commit groups, {} early calls, {} crashes, {} runs compared, {} exempt, {} cut; {:?}",
        count as f64 / took,
        tally.plays,
        tally.hours,
        tally.groups,
        tally.early,
        tally.crashes,
        tally.compared,
        tally.exempt,
        tally.cut,
        tally.statuses,
    );
    // Only if there are enough of them to be significant.
    if count >= 20 {
        let succeeded = tally.statuses.get("Succeeded").copied().unwrap_or_default();
        let enough = usize::try_from(count).unwrap() / 5;
        assert!(succeeded > enough, "{:?}", tally.statuses);
        assert!(tally.early > enough / 2, "{} early calls", tally.early);
        assert!(tally.exempt * 3 < tally.compared, "too many are exempt");
    }
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_1() {
    same_end_for_seeds_of(0);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_2() {
    same_end_for_seeds_of(1);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_3() {
    same_end_for_seeds_of(2);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_4() {
    same_end_for_seeds_of(3);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_5() {
    same_end_for_seeds_of(4);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_6() {
    same_end_for_seeds_of(5);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_7() {
    same_end_for_seeds_of(6);
}

#[test]
fn a_crash_anywhere_reaches_the_same_end_part_8() {
    same_end_for_seeds_of(7);
}

/// The test above keeps the store in memory. Here it is in files, and each process opens what the previous one left.
#[test]
fn what_dies_on_a_database_comes_to_the_same_end() {
    let seeds: u64 = sized(100, 40);
    let mut crashes = 0;
    for seed in 0..seeds {
        let script = Script::new(seed);
        let calm = play(&script, None, Box::new(|_, _| None), false);
        let disturbed = play(&script, Some(kind()), sometimes(seed), false);
        same(&calm, &disturbed);
        crashes += disturbed.crashes;
    }
    assert!(crashes as u64 > seeds * 3 / 2, "{crashes} crashes");
}
