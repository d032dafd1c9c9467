//! Loops that wait: what they cost, how fast they resume, and how late their timers fire. Engines that are killed or
//! whose memory is measured run in child processes: this program, started with `child`.

use crate::loops::{engine, on_runtime};
use crate::usage::{memory, percentile, size_of};
use crate::{directory, kind, on_sled, report};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_engine::{Engine, Value, now};

const RUNS: usize = 100_000;

/// A workflow that finishes one iteration and then waits for the duration of its input `delay`.
const WAITS: &str = "
name: waits
inputs: { delay: { type: string } }
actions:
  wait:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 10, timeout: PT10H }
    delay: \"@inputs('delay')\"
    actions:
      step: { type: compose, inputs: 1 }
";

fn delay(text: &str) -> Value {
    Value::from_pairs([("delay", Value::text(text))])
}

async fn start_all(engine: &Arc<Engine>, runs: usize, text: &str, input: Value) {
    let workflow = engine.load_text("waits.yaml", text).unwrap();
    let mut starts = JoinSet::new();
    for n in 0..runs {
        let (engine, workflow, input) = (engine.clone(), workflow.clone(), input.clone());
        starts.spawn(async move { drop(engine.start(&workflow, input).await.unwrap()) });
        if n % 2_000 == 1_999 {
            while starts.join_next().await.is_some() {}
        }
    }
    while starts.join_next().await.is_some() {}
}

/// Prints the memory of the bare database after it has read the given families of rows.
fn bare(at: &Path, families: &[u8]) {
    let db = crate::floor::open(&at.join("store"));
    let mut rows = 0_u64;
    for family in families {
        for row in db.scan_prefix([*family]) {
            row.unwrap();
            rows += 1;
        }
    }
    println!("bare {rows} {}", memory());
    std::thread::sleep(Duration::from_secs(3600));
}

/// The rows of the timers of waiting runs.
const TIMERS: &[u8] = b"t";
/// The rows that are checked when a store is opened: workflows, heads, timers and indexes.
const CHECKED: &[u8] = b"wrtq";

/// `child empty|fill|recover|timers|checked DIR N`.
pub fn child(words: &[String]) {
    if words[0] == "client" {
        return crate::polls::client(words);
    }
    let at = Path::new(&words[1]);
    let runs: usize = words[2].parse().unwrap();
    match &*words[0] {
        "timers" => return bare(at, TIMERS),
        "checked" => return bare(at, CHECKED),
        _ => {}
    }
    on_runtime(async {
        let start = Instant::now();
        let engine = Arc::new(engine(at));
        match &*words[0] {
            "fill" => {
                start_all(&engine, runs, WAITS, delay("PT1H")).await;
                let workflow = engine.load_text("waits.yaml", WAITS).unwrap();
                let run = engine.start(&workflow, delay("PT8S")).await.unwrap();
                drop(run);
                // The first iteration is finished when the wait is stored.
                tokio::time::sleep(Duration::from_millis(200)).await;
                println!("filled {}", memory());
            }
            "recover" => {
                let workflow = engine.load_text("waits.yaml", WAITS).unwrap();
                let found = engine.recover(false).await.unwrap();
                let ready = start.elapsed().as_secs_f64();
                let held = memory();
                // The engine is ready when it can start a run.
                drop(engine.start(&workflow, delay("PT1H")).await.unwrap());
                let works = start.elapsed().as_secs_f64();
                println!("recovered {} {ready} {works} {held}", found.len());
            }
            _ => println!("empty {}", memory()),
        }
        // Until the parent kills it.
        tokio::time::sleep(Duration::from_secs(3600)).await;
    });
}

/// Runs a child process until it has printed its line, then kills it. Returns the numbers in the line.
pub fn child_figures(words: &[&str]) -> Vec<f64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .env("WINDLASS_STORE", kind().to_string())
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line.split_whitespace()
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect()
}

/// 100,000 loops that wait for an hour.
pub fn many() {
    let (at, other) = (directory(), directory());
    let text = at.path().to_str().unwrap();
    let runs = RUNS.to_string();
    let empty = child_figures(&["empty", other.path().to_str().unwrap(), "0"])[0];
    let disk = size_of(at.path());
    let start = Instant::now();
    let filled = child_figures(&["fill", text, &runs])[0];
    report(
        "runs started a second",
        format!("{:.0}", RUNS as f64 / start.elapsed().as_secs_f64()),
        None,
    );
    report(
        "memory of the one that started them",
        format!("{:.0} B each", (filled - empty) / RUNS as f64),
        None,
    );
    let each = (size_of(at.path()) - disk) as f64 / RUNS as f64;
    report(
        "disk of a waiting loop",
        format!("{each:.0} B"),
        Some((each < 2048.0, "under 2 KiB")),
    );
    let back = child_figures(&["recover", text, "0"]);
    report(
        "ready after SIGKILL",
        format!("{:.2} s", back[1]),
        Some((back[1] < 1.0, "under 1 s")),
    );
    report(
        "takes a new run after SIGKILL",
        format!("{:.2} s", back[2]),
        None,
    );
    let each = (back[3] - empty) / RUNS as f64;
    report(
        "memory of a waiting loop after it",
        format!("{each:.0} B"),
        None,
    );
    if !on_sled() {
        return;
    }
    // The floors: the bare database on the same store.
    let none = child_figures(&["checked", other.path().to_str().unwrap(), "0"])[1];
    let timers = (child_figures(&["timers", text, "0"])[1] - none) / RUNS as f64;
    report(
        "  the bare database, with the rows of timers",
        format!("{timers:.0} B"),
        None,
    );
    let checked = (child_figures(&["checked", text, "0"])[1] - none) / RUNS as f64;
    report(
        "  the bare database, with all that is checked",
        format!("{checked:.0} B"),
        None,
    );
    let own = each - checked;
    report(
        "  beyond that",
        format!("{own:.0} B"),
        Some((own < 100.0, "under 100 B")),
    );
}

/// 10,000 timers that are due in the same second.
pub fn lag() {
    const TIMERS: usize = 10_000;
    let text = "
name: timers
inputs: { at: { type: string } }
actions:
  wait: { type: wait, inputs: { until: \"@inputs('at')\" } }
  told: { type: activity, inputs: { activityType: told, input: 1 } }
";
    let at = directory();
    let (seen, fired) = std::sync::mpsc::channel();
    let mut lags = on_runtime(async {
        let engine = Engine::builder()
            .store(kind())
            .register("told", move |_, _: Value| {
                let _ = seen.send(now());
                async { Ok(Value::Null) }
            })
            .open(at.path())
            .unwrap();
        let engine = Arc::new(engine);
        let due = now().plus(Duration::from_secs(12));
        let workflow = engine.load_text("timers.yaml", text).unwrap();
        let mut starts = JoinSet::new();
        for n in 0..TIMERS {
            let (engine, workflow) = (engine.clone(), workflow.clone());
            // The timers are spread over one second.
            let at = due.plus(Duration::from_micros(n as u64 * 100));
            let input = Value::from_pairs([("at", Value::text(at.to_string()))]);
            starts.spawn(async move { drop(engine.start(&workflow, input).await.unwrap()) });
        }
        starts.join_all().await;
        assert!(
            now() < due,
            "the machine is too slow to start them all before they are due"
        );
        let mut lags = Vec::new();
        for _ in 0..TIMERS {
            let fired = tokio::task::block_in_place(|| fired.recv_timeout(Duration::from_secs(30)));
            lags.push(fired.unwrap());
        }
        engine.stop().await;
        // Timers fire in the order in which they are due, so the n-th time is compared with the n-th timer.
        lags.sort();
        let lag = |(n, fired): (usize, windlass_engine::Timestamp)| {
            let due = due.plus(Duration::from_micros(n as u64 * 100));
            fired.since(due).as_secs_f64() * 1e3
        };
        lags.into_iter().enumerate().map(lag).collect::<Vec<f64>>()
    });
    let p99 = percentile(&mut lags, 0.99);
    let median = percentile(&mut lags, 0.5);
    report(
        "from due to the effect, median",
        format!("{median:.1} ms"),
        None,
    );
    report(
        "from due to the effect, p99",
        format!("{p99:.1} ms"),
        Some((p99 < 50.0, "under 50 ms")),
    );
}
