//! `windlass bench`: measures how fast loops run on this machine and disk.
//! Everything is measured from outside. The loops run in server processes of this program, and send requests to a
//! small server in the process of the command.

mod process;
mod target;
mod waiting;

use super::args::{BenchArgs, BenchSection, Global};
use super::exit::{Exit, Failure};
use super::output::{self, Format, Screen};
use clap::ValueEnum;
use process::{Scratch, Server};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use target::Target;
use tokio::task::JoinSet;
use tokio::time::sleep;
use windlass_engine::{PutIf, StoreKind, Value};
use windlass_server::api::{StartRun, WorkflowText};
use windlass_server::client::ClientError;

/// Interval between the requests of each loop of `polls`.
const PERIOD: Duration = Duration::from_secs(1);

/// How long the command waits for a request. If none arrives in this time, the measurement fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum number of concurrent requests that start a run.
const STARTS: usize = 64;

/// Number of repetitions of a measurement. Their median is reported.
const ROUNDS: usize = 10;

/// The number of loops in `throughput`.
const LOOPS: u32 = 1_000;
/// The number of iterations of each of these loops.
const ITERATIONS: u32 = 20;

/// `gaps` measures the iterations of a long loop after this iteration.
const FAR: u32 = 1_000_000;

/// A measured value.
#[derive(Clone, Debug, Serialize)]
struct BenchResult {
    section: BenchSection,
    figure: String,
    value: f64,
    unit: &'static str,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    store: String,
    cores: usize,
    figures: Vec<BenchResult>,
}

/// The options of the command, and the values that were measured so far.
struct Bench<'a> {
    at: &'a Path,
    store: StoreKind,
    args: &'a BenchArgs,
    section: BenchSection,
    figures: Vec<BenchResult>,
}

pub async fn bench(global: &Global, screen: Screen, args: &BenchArgs) -> Result<Exit, Failure> {
    let store = global.store.unwrap_or_default();
    let scratch = Scratch::new(&args.dir).map_err(Failure::Machine)?;
    let mut bench = Bench {
        at: scratch.path(),
        store,
        args,
        section: BenchSection::Start,
        figures: Vec::new(),
    };
    for &section in BenchSection::value_variants() {
        if !args.sections.is_empty() && !args.sections.contains(&section) {
            continue;
        }
        screen.say(format!("measuring {section} on {store} …"));
        bench.section = section;
        match section {
            BenchSection::Start => bench.start().await?,
            BenchSection::Gaps => bench.gaps().await?,
            BenchSection::Throughput => bench.throughput().await?,
            BenchSection::Polls => bench.polls().await?,
            BenchSection::Waiting => bench.waiting().await?,
            BenchSection::Recovery => bench.recovery().await?,
        }
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        store: store.to_string(),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        figures: bench.figures,
    };
    match args.output.output {
        Format::Table => output::print(table(&report))?,
        Format::Jsonl => output::list(Format::Jsonl, &report.figures)?,
        format => output::document(format, &report)?,
    }
    Ok(Exit::Succeeded)
}

fn table(report: &Report) -> String {
    let rows = report.figures.iter().map(|one| {
        let digits = if one.value >= 100.0 { 0 } else { 2 };
        let value = format!("{:.digits$} {}", one.value, one.unit);
        vec![one.section.to_string(), one.figure.clone(), value]
    });
    output::table(&["SECTION", "FIGURE", "VALUE"], rows)
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
fn clock() -> Instant {
    Instant::now()
}

/// A loop without a delay that ends after `count` iterations.
/// It sends no requests between iteration 1,100 and iteration 1,000,000.
const STEPS: &str = "
name: steps
inputs: { url: { type: string }, count: { type: integer } }
actions:
  steps:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: \"@inputs('count')\", timeout: P1D }
    on_limit: continue
    actions:
      near_or_far:
        type: if
        expression: \"@or(less(iterationIndexes('steps'), 1100), greaterOrEquals(iterationIndexes('steps'), 1000000))\"
        actions:
          check: { type: http, inputs: { method: GET, uri: \"@inputs('url')\" } }
";

const POLLS: &str = "
name: polls
inputs: { url: { type: string } }
actions:
  poll:
    type: until
    condition: \"@equals(body('check').status, 'complete')\"
    limit: { count: 1000000, timeout: P1D }
    delay: PT1S
    actions:
      check: { type: http, inputs: { method: GET, uri: \"@inputs('url')\" } }
";

const SPIN: &str = "
name: spin
inputs: { url: { type: string }, count: { type: integer } }
actions:
  spin:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: \"@inputs('count')\", timeout: P1D }
    on_limit: continue
    actions:
      step: { type: compose, inputs: 1 }
  done: { type: http, inputs: { method: GET, uri: \"@inputs('url')\" } }
";

fn input(url: &str, count: u32) -> Value {
    Value::from_pairs([
        ("url", Value::text(url)),
        ("count", Value::from(i64::from(count))),
    ])
}

impl Bench<'_> {
    fn add_figure(&mut self, figure: impl Into<String>, value: f64, unit: &'static str) {
        let (section, figure) = (self.section, figure.into());
        self.figures.push(BenchResult {
            section,
            figure,
            value,
            unit,
        });
    }

    fn median_and_worst(&mut self, what: &str, times: &mut [f64]) {
        for (name, share) in [("median", 0.5), ("worst", 1.0)] {
            self.add_figure(format!("{what}, {name}"), quantile(times, share), "ms");
        }
    }

    /// Starts a server on a new store, and stores this workflow on it.
    async fn serve(&self, scratch: &Scratch, workflow: &str) -> Result<Server, Failure> {
        let server = self.restart_server(scratch)?;
        self.put(&server, workflow).await?;
        Ok(server)
    }

    /// Stores the workflow that later runs of the server have.
    async fn put(&self, server: &Server, workflow: &str) -> Result<(), Failure> {
        let text = WorkflowText {
            text: workflow.to_owned(),
            ..WorkflowText::default()
        };
        let put = server.client.put_workflow("bench", &text, &PutIf::Always);
        put.await?;
        Ok(())
    }

    fn restart_server(&self, scratch: &Scratch) -> Result<Server, Failure> {
        Server::start(&scratch.path().join("state"), self.store).map_err(Failure::Machine)
    }

    fn scratch(&self) -> Result<Scratch, Failure> {
        Scratch::new(self.at).map_err(Failure::Machine)
    }

    /// Measures two times.
    /// One is from the request to start a run to its first step, on a server that is already running. The other is
    /// from the start of a server on a new store.
    async fn start(&mut self) -> Result<(), Failure> {
        let target = start_target()?;
        let scratch = self.scratch()?;
        let server = self.serve(&scratch, STEPS).await?;
        let mut warm = Vec::new();
        for _ in 0..2 * ROUNDS {
            let begun = clock();
            started(&server, input(&target.url, 1)).await?;
            warm.push(millis(next_request(&target)? - begun));
        }
        drop(server);
        let mut cold = Vec::new();
        for _ in 0..ROUNDS {
            let scratch = self.scratch()?;
            let begun = clock();
            let server = self.serve(&scratch, STEPS).await?;
            started(&server, input(&target.url, 1)).await?;
            cold.push(millis(next_request(&target)? - begun));
        }
        self.median_and_worst("from the request to the first step", &mut warm);
        self.median_and_worst("from no process to the first step", &mut cold);
        Ok(())
    }

    /// Measures the time from one step of a loop to the next. In it, an answer arrives, a commit is made, and a
    /// request is sent.
    async fn gaps(&mut self) -> Result<(), Failure> {
        let target = start_target()?;
        let scratch = self.scratch()?;
        let server = self.serve(&scratch, STEPS).await?;
        let last = if self.args.long { FAR + 20 } else { 1_020 };
        started(&server, input(&target.url, last)).await?;
        let mut times = Vec::new();
        for _ in 0..1_020 {
            times.push(next_request(&target)?);
        }
        for first in [1, 101, 1_001] {
            self.window(
                &format!("{first} to {}", first + 19),
                times.iter().skip(first - 1),
            );
        }
        if self.args.long {
            // The requests before iteration 1,100 also arrive, so they are read here.
            for _ in 1_020..1_100 {
                next_request(&target)?;
            }
            // The iterations without requests need minutes. Then the next request arrives.
            let first = loop {
                match target.next(PERIOD) {
                    Some(first) => break first,
                    None => server.client.ready().await?,
                }
            };
            let mut far = vec![first];
            for _ in 1..20 {
                far.push(next_request(&target)?);
            }
            self.window("1,000,001 to 1,000,020", far.iter());
        }
        Ok(())
    }

    fn window<'t>(&mut self, which: &str, times: impl Iterator<Item = &'t Instant>) {
        let times: Vec<Instant> = times.take(20).copied().collect();
        let pairs = times.iter().zip(times.iter().skip(1));
        let mut gaps: Vec<f64> = pairs.map(|(one, next)| millis(*next - *one)).collect();
        let average = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
        self.add_figure(format!("steps {which}, average"), average, "ms");
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let value = quantile(&mut gaps, share);
            self.add_figure(format!("steps {which}, {name}"), value, "ms");
        }
    }

    /// Measures many short loops at the same time, which are started over HTTP.
    async fn throughput(&mut self) -> Result<(), Failure> {
        let target = start_target()?;
        let scratch = self.scratch()?;
        let server = self.serve(&scratch, SPIN).await?;
        let (begun, cpu) = (clock(), server.cpu_us());
        let inputs = (0..LOOPS).map(|_| input(&target.url, ITERATIONS));
        start_all(&server, inputs).await?;
        let started = clock() - begun;
        for _ in 0..LOOPS {
            next_request(&target)?;
        }
        let ended = (clock() - begun).as_secs_f64();
        let iterations = f64::from(LOOPS * ITERATIONS);
        self.add_figure(
            "loops started a second",
            f64::from(LOOPS) / started.as_secs_f64(),
            "/s",
        );
        self.add_figure(
            format!("iterations a second of {LOOPS} loops, with their starts"),
            iterations / ended,
            "/s",
        );
        if let (Some(before), Some(after)) = (cpu, server.cpu_us()) {
            self.add_figure(
                "CPU an iteration, with starts",
                (after - before) / iterations,
                "µs",
            );
        }
        Ok(())
    }

    /// Measures loops that each send a request once a second.
    async fn polls(&mut self) -> Result<(), Failure> {
        for loops in self.args.loops.clone() {
            let target = start_target()?;
            let scratch = self.scratch()?;
            let server = self.serve(&scratch, POLLS).await?;
            let empty = server.memory();
            let begun = clock();
            let url = |n: u32| Value::text(format!("{}/poll/{n}", target.url));
            let inputs = (0..loops).map(|n| Value::from_pairs([("url", url(n))]));
            let one = start_all(&server, inputs).await?;
            let starts = clock() - begun;
            while target.begun() < loops as usize {
                server.client.ready().await?;
                sleep(Duration::from_millis(50)).await;
            }
            // Wait until the starts of the runs no longer influence the measurement.
            sleep(3 * PERIOD).await;
            target.take();
            let (begun, cpu) = (clock(), server.cpu_us());
            let mut looks = Vec::new();
            while clock() - begun < self.args.seconds.0 {
                let started = clock();
                server.client.status(&one).await?;
                looks.push(millis(clock() - started));
                sleep(Duration::from_millis(100)).await;
            }
            let seconds = (clock() - begun).as_secs_f64();
            let cpu = cpu.zip(server.cpu_us());
            let mut window = target.take();
            let polls = window.late.len() as f64;
            let name = |what: &str| format!("{loops} loops, {what}");
            self.add_figure(
                name("started a second"),
                f64::from(loops) / starts.as_secs_f64(),
                "/s",
            );
            self.add_figure(name("polls a second"), polls / seconds, "/s");
            for (what, share) in [("late p50", 0.5), ("late p99", 0.99), ("late, worst", 1.0)] {
                self.add_figure(name(what), quantile(&mut window.late, share), "ms");
            }
            self.add_figure(
                name("polls of the slowest loop"),
                f64::from(window.least),
                "",
            );
            self.add_figure(
                name("polls of the quickest loop"),
                f64::from(window.most),
                "",
            );
            self.add_figure(name("a read, p99"), quantile(&mut looks, 0.99), "ms");
            if let Some((before, after)) = cpu {
                self.add_figure(name("CPU a poll"), (after - before) / polls, "µs");
                self.add_figure(name("cores"), (after - before) / seconds / 1e6, "");
            }
            if let (Some(empty), Some(now)) = (empty, server.memory()) {
                self.add_figure(name("memory"), now / 1e6, "MB");
                self.add_figure(
                    name("memory a loop"),
                    (now - empty) / f64::from(loops) / 1e3,
                    "KB",
                );
            }
        }
        Ok(())
    }

    /// Measures the time from the start of a process to the next step, after a SIGKILL.
    async fn recovery(&mut self) -> Result<(), Failure> {
        let target = start_target()?;
        let scratch = self.scratch()?;
        let mut server = self.serve(&scratch, STEPS).await?;
        started(&server, input(&target.url, 1_000)).await?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            for _ in 0..20 {
                next_request(&target)?;
            }
            drop(server);
            target.forget();
            let begun = clock();
            server = self.restart_server(&scratch)?;
            times.push(millis(next_request(&target)? - begun));
        }
        self.median_and_worst("from SIGKILL to the next step", &mut times);
        Ok(())
    }
}

fn start_target() -> Result<Target, Failure> {
    Target::begin(PERIOD).map_err(Failure::Machine)
}

fn next_request(target: &Target) -> Result<Instant, Failure> {
    let none = || Failure::Machine(io::Error::other("no request arrived within two minutes"));
    target.next(PATIENCE).ok_or_else(none)
}

fn start_of(input: Value) -> StartRun {
    StartRun {
        workflow: Some(String::from("bench")),
        input,
        ..StartRun::default()
    }
}

async fn started(server: &Server, input: Value) -> Result<String, Failure> {
    Ok(server.client.start(&start_of(input)).await?)
}

/// Starts runs, many at a time. Returns the id of the last run.
async fn start_all(
    server: &Server,
    inputs: impl Iterator<Item = Value>,
) -> Result<String, Failure> {
    let mut starts: JoinSet<Result<String, ClientError>> = JoinSet::new();
    let mut last = String::new();
    let mut inputs = inputs.fuse();
    loop {
        for input in inputs.by_ref().take(STARTS - starts.len()) {
            let client = server.client.clone();
            starts.spawn(async move { client.start(&start_of(input)).await });
        }
        let Some(done) = starts.join_next().await else {
            return Ok(last);
        };
        let cut = |_| Failure::Machine(io::Error::other("a start was cut off"));
        last = done.map_err(cut)??;
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the quantile of the values at `share` (from 0 to 1): this part of the values is below it.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share).ceil() as usize;
    values
        .get(place.clamp(1, values.len().max(1)) - 1)
        .copied()
        .unwrap_or_default()
}
