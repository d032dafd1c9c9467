//! The same random workflows run in the machine and in a reference model of `docs/reference/loops.md`, with the same
//! answers, pauses, resumes, signals and cancels. Both must report the same history with its virtual times, requests,
//! rows of iterations, variables and end.
//!
//! `WINDLASS_SEEDS=from..to` plays other seeds. A seed that failed is printed with its program and the first
//! difference.

mod author;
mod azure;
mod compare;
mod model;

use crate::machine::play::{Answer, Case, Outside, START, read};
use crate::support::sized;
use model::{Event, Story};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use windlass_model::hir::Workflow;

/// Plays a workflow in the machine, without crashes.
fn by_machine(seed: u64, workflow: &Workflow) -> Story {
    let mut case =
        Case::hir(workflow).world(move |call| match author::answer(seed, call.name, call.n) {
            None => Answer::Never,
            Some((after, answer)) => Answer::Is(after, answer),
        });
    for (at, arrival) in author::arrivals(seed) {
        let outside = match arrival {
            Event::Pause => Outside::Pause,
            Event::Resume => Outside::Resume,
            Event::Cancel => Outside::Cancel,
            Event::Signal(_, payload) => Outside::Signal("go", payload),
            Event::Answer(_) | Event::Timer => continue,
        };
        case = case.at(at, outside);
    }
    compare::story_of(&case.play_with(&mut |_, _| None))
}

fn by_model(seed: u64, workflow: &Workflow) -> Story {
    let arrivals = author::arrivals(seed).into_iter();
    let events = arrivals.map(|(at, event)| (START.plus(Duration::from_secs(at)), event));
    let mut sent: BTreeMap<String, usize> = BTreeMap::new();
    let mut world = |name: &str| {
        let before = sent.entry(name.to_owned()).or_default();
        *before += 1;
        author::answer(seed, name, *before - 1)
    };
    model::play(workflow, START, &mut world, events.collect())
}

/// What was played.
#[derive(Default)]
struct Tally {
    with_jitter: u64,
    ends: BTreeMap<&'static str, u64>,
    lines: usize,
}

/// Plays a seed in both; returns the first difference.
fn difference(seed: u64, text: &str, tally: &mut Tally) -> Option<String> {
    // The machine draws such waits from its own seed.
    if text.contains("jitter: full") {
        tally.with_jitter += 1;
        return None;
    }
    let mut workflow = read(text);
    if seed.is_multiple_of(5) {
        azure::convert(&mut workflow.body);
    }
    let model = by_model(seed, &workflow);
    tally.lines += model.lines.len();
    let end = model.ended.as_ref().map(|ended| ended.0.as_str());
    *tally.ends.entry(end.unwrap_or("waits")).or_default() += 1;
    compare::difference(&by_machine(seed, &workflow), &model)
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("WINDLASS_SEEDS").ok();
    match given.as_deref().and_then(|text| text.split_once("..")) {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => 0..sized(20_000, 300),
    }
}

#[test]
fn the_machine_does_what_the_model_does() {
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    for seed in seeds() {
        let text = author::workflow(seed);
        let tried = catch_unwind(AssertUnwindSafe(|| difference(seed, &text, &mut tally)));
        let found = match tried {
            Ok(None) => continue,
            Ok(Some(found)) => found,
            Err(_) => String::from("a panic"),
        };
        if failed.is_empty() {
            println!("seed {seed}:\n{text}\n{found}");
        }
        failed.push(seed);
        if failed.len() >= 20 {
            break;
        }
    }
    let (with_jitter, played) = (tally.with_jitter, tally.ends.values().sum::<u64>());
    let lines = tally.lines;
    println!(
        "{played} workflows, {lines} lines, {:?}; {with_jitter} with jitter",
        tally.ends
    );
    if let Some(seed) = failed.first() {
        let next = seed + 1;
        panic!("seeds {failed:?} differ; WINDLASS_SEEDS={seed}..{next} is above");
    }
    let count = seeds().end - seeds().start;
    if count >= 100 {
        let enough = played * 10 >= count * 9;
        assert!(enough, "{played} of {count} were compared");
        for end in ["Succeeded", "Failed", "Cancelled"] {
            assert!(tally.ends.get(end).is_some_and(|runs| runs * 50 > count));
        }
    }
}
