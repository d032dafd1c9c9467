//! Loops whose steps cost only their checkpoint.

use crate::floor::{self, Shape};
use crate::usage::{cpu_us, memory, size_of, written};
use crate::{directory, kind, on_sled, report};
use std::path::Path;
use std::time::{Duration, Instant};
use windlass_engine::scheduler::Update;
use windlass_engine::{Engine, Run, Value};

/// A workflow that counts down from `count`, with one assignment in each iteration.
pub fn spin(count: u64) -> String {
    format!(
        "name: spin
variables: {{ n: 0 }}
actions:
  spin:
    type: until
    condition: \"@equals(variables('n'), -1)\"
    limit: {{ count: {count}, timeout: PT24H }}
    on_limit: continue
    actions:
      step: {{ type: incrementVariable, name: n, value: 1 }}
outputs: \"@variables('n')\"
"
    )
}

/// An engine without limits.
pub fn engine(at: &Path) -> Engine {
    Engine::builder()
        .store(kind())
        .max_count(u64::MAX)
        .max_timeout(Duration::from_secs(1 << 30))
        .open(at)
        .unwrap()
}

/// Runs a future on a new runtime.
pub fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// One loop, compared with the floors.
pub fn one() {
    const COUNT: usize = 10_000;
    let at = directory();
    let (seconds, cpu) = on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("spin.yaml", &spin(COUNT as u64)).unwrap();
        let (start, before) = (Instant::now(), cpu_us());
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        assert_eq!(
            run.result::<Value>().await.unwrap(),
            Value::Int(COUNT as i64)
        );
        let seconds = start.elapsed().as_secs_f64();
        let cpu = cpu_us() - before;
        engine.stop().await;
        (seconds, cpu)
    });
    let shape = Shape::of(at.path());
    let rate = COUNT as f64 / seconds;
    let raw = floor::raw(&shape, COUNT, 1);
    report("iterations a second", format!("{rate:.0}"), None);
    report(
        "CPU an iteration",
        format!("{:.0} µs", cpu / COUNT as f64),
        None,
    );
    report("bytes a commit", shape.bytes().to_string(), None);
    report("raw floor, commits a second", format!("{raw:.0}"), None);
    if on_sled() {
        let store = floor::store(&shape, COUNT, 1, 1, 1).rate;
        report("store floor, commits a second", format!("{store:.0}"), None);
        let ratio = rate / store;
        report(
            "of the store floor",
            format!("{ratio:.2}"),
            Some((ratio >= 0.85, "at least 0.85")),
        );
    }
    let ratio = rate / raw;
    report(
        "of the raw floor",
        format!("{ratio:.2}"),
        (!on_sled()).then_some((ratio >= 0.8, "at least 0.8")),
    );
}

/// A thousand loops at the same time.
pub fn many() {
    const RUNS: usize = 1_000;
    const COUNT: usize = 100;
    let at = directory();
    let (seconds, cpu) = on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("spin.yaml", &spin(COUNT as u64)).unwrap();
        let (start, before) = (Instant::now(), cpu_us());
        let mut starts = tokio::task::JoinSet::new();
        let engine = std::sync::Arc::new(engine);
        for _ in 0..RUNS {
            let (engine, workflow) = (engine.clone(), workflow.clone());
            starts.spawn(async move { engine.start(&workflow, Value::Null).await.unwrap() });
        }
        let handles: Vec<Run> = starts.join_all().await;
        for handle in handles {
            assert_eq!(
                handle.result::<Value>().await.unwrap(),
                Value::Int(COUNT as i64)
            );
        }
        let seconds = start.elapsed().as_secs_f64();
        let cpu = cpu_us() - before;
        engine.stop().await;
        (seconds, cpu)
    });
    let shape = Shape::of(at.path());
    let commits = RUNS * COUNT;
    let group = (commits / shape.groups as usize).max(1);
    let rate = commits as f64 / seconds;
    // The floor commits for as many runs in turn, so that the database has the same number of rows in the same number
    // of places.
    let raw = floor::raw(&shape, commits, group);
    let each = cpu / commits as f64;
    report("iterations a second", format!("{rate:.0}"), None);
    report("commits a group", group.to_string(), None);
    report("bytes a commit", shape.bytes().to_string(), None);
    report(
        "CPU an iteration",
        format!("{each:.0} µs"),
        Some((each < 40.0, "under 40 µs")),
    );
    report("raw floor at that size", format!("{raw:.0}"), None);
    if !on_sled() {
        return;
    }
    let store = floor::store(&shape, commits, group, RUNS, 1);
    let two = floor::store(&shape, commits, group, RUNS, 2);
    for (what, floor) in [("", &store), (", two groups at a time", &two)] {
        report(
            &format!("store floor at that size{what}"),
            format!("{:.0}", floor.rate),
            None,
        );
        report("  CPU a commit", format!("{:.0} µs", floor.cpu), None);
    }
    let ratio = rate / store.rate;
    report(
        "of the store floor",
        format!("{ratio:.2}"),
        Some((ratio >= 0.75, "at least 0.75")),
    );
    report(
        "of the store floor, two groups at a time",
        format!("{:.2}", rate / two.rate),
        None,
    );
}

/// A text that compression does not shorten.
pub fn noise(length: usize) -> String {
    let mut number = 0x9E37_79B9_7F4A_7C15_u64;
    let mut letter = || {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // The letters a to p: they mean nothing in YAML or in an expression.
        char::from(b'a' + u8::try_from(number >> 60).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

/// The number of iterations of 1 KB each.
const GROWS: usize = 1_000;

/// A loop that appends 1 KB in each iteration, of a text without repetitions. It runs in a new store and then again in
/// the same store, because the database first fills the first segment of a new log.
pub fn growing() {
    let text = format!(
        "name: growing
variables: {{ all: [] }}
actions:
  grow:
    type: until
    condition: \"@equals(length(variables('all')), -1)\"
    limit: {{ count: {GROWS}, timeout: PT24H }}
    on_limit: continue
    actions:
      step: {{ type: appendToArrayVariable, name: all, value: \"{}\" }}
outputs: \"@length(variables('all'))\"
",
        noise(1024)
    );
    let at = directory();
    let mut before = written("wchar");
    let grown = on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("growing.yaml", &text).unwrap();
        let mut grown = Vec::new();
        for _ in 0..2 {
            let cpu = cpu_us();
            let mut run = engine.start(&workflow, Value::Null).await.unwrap();
            let mut times = vec![Instant::now()];
            while let Some(update) = run.next().await {
                match update {
                    // A subscriber that reads too slowly misses updates.
                    Update::Step(step) => {
                        times.resize(step.header.revision as usize + 1, Instant::now());
                    }
                    _ => break,
                }
            }
            let cpu = (cpu_us() - cpu) / GROWS as f64;
            report("CPU an iteration", format!("{cpu:.0} µs"), None);
            let now = written("wchar");
            grown.push((times, now - std::mem::replace(&mut before, now)));
        }
        engine.stop().await;
        grown
    });
    for (what, grown) in ["a new store", "a store in use"].iter().zip(&grown) {
        weigh(what, grown, true);
    }
    if on_sled() {
        let bare = floor::growing(&Shape::of(at.path()), GROWS);
        weigh("the bare database, new", &bare, false);
    }
    report(
        "the store at the end",
        format!("{} KiB", size_of(at.path()) / 1024),
        None,
    );
}

/// Compares the cost of the last commits of a growing run with that of the first ones, and the bytes written with the
/// data.
fn weigh(what: &str, (times, bytes): &(Vec<Instant>, u64), has_targets: bool) {
    let spent = |from: usize, to: usize| (times[to] - times[from]).as_secs_f64();
    // The first commit fills caches and is left out. Both parts have the same length.
    let ratio = spent(GROWS - 101, GROWS - 1) / spent(1, 101);
    report(
        &format!("{what}: last 100 against first"),
        format!("{ratio:.2}"),
        has_targets.then_some((ratio <= 1.2, "at most 1.2")),
    );
    let times = *bytes as f64 / (GROWS * 1024) as f64;
    report(
        &format!("{what}: bytes against the data"),
        format!("{times:.1}"),
        has_targets.then_some((times <= 3.0, "at most 3.0")),
    );
}

/// How often the memory and the disk of a long loop are measured.
const LOOKS: u64 = 1_000;

/// One long loop: the highest use of memory and disk in each tenth of it. The use varies, because the log fills up and
/// is shortened again.
pub fn flat() {
    let count: u64 = std::env::var("WINDLASS_BENCH_FLAT")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(200_000);
    let at = directory();
    let tenths = on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("spin.yaml", &spin(count)).unwrap();
        let mut run = engine.start(&workflow, Value::Null).await.unwrap();
        let mut looks = 0;
        let mut most = (0, 0);
        let mut tenths = Vec::new();
        while let Some(update) = run.next().await {
            let Update::Step(step) = update else { break };
            let steps = step.header.revision;
            if steps < (looks + 1) * count / LOOKS {
                continue;
            }
            looks = steps * LOOKS / count;
            most = (most.0.max(memory()), most.1.max(size_of(at.path())));
            if looks >= (tenths.len() as u64 + 1) * LOOKS / 10 {
                let (memory, disk) = (most.0 / 1024, most.1 / 1024);
                println!(
                    "  {steps:>10} iterations: at most {memory} KiB of memory, {disk} KiB on disk"
                );
                tenths.push(std::mem::take(&mut most));
            }
        }
        engine.stop().await;
        tenths
    });
    let (early, late) = (tenths[1], tenths[tenths.len() - 1]);
    for (what, growth) in [
        ("memory", late.0 as f64 / early.0 as f64),
        ("disk", late.1 as f64 / early.1 as f64),
    ] {
        report(
            &format!("{what}: the last tenth against the second"),
            format!("{growth:.3}"),
            Some((growth <= 1.05, "at most 1.05")),
        );
    }
}
