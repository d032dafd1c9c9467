//! Loops that poll once a second: `windlass bench polls` of the real binary, compared with a bare client that sends the
//! same requests, and with the bare database that writes the same commits.

use crate::floor::{self, Shape};
use crate::http::server;
use crate::loops::{engine, on_runtime};
use crate::usage::cpu_us;
use crate::waiting::child_figures;
use crate::{directory, kind, on_sled, report};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_engine::Value;

const LOOPS: [u32; 4] = [1_000, 6_000, 10_000, 15_000];

/// How long the bare client polls.
const SECONDS: u64 = 10;

/// The number of commits of the bare database, and how many of them form one group.
const COMMITS: usize = 50_000;
const GROUP: usize = 8;

pub fn all() {
    let mut best: f64 = 0.0;
    for loops in LOOPS {
        let figures = measured(loops);
        let figure = |name: &str| {
            let name = format!("{loops} loops, {name}");
            let found = figures.iter().find(|one| one["figure"] == name.as_str());
            found.map_or(f64::NAN, |one| one["value"].as_f64().unwrap())
        };
        let (rate, late) = (figure("polls a second"), figure("late p99"));
        let (cpu, memory) = (figure("CPU a poll"), figure("memory a loop"));
        let aims = match (loops, on_sled()) {
            (10_000, true) => Some((9_500.0, 100.0, 120.0)),
            (10_000, false) => Some((9_950.0, 50.0, 80.0)),
            _ => None,
        };
        let most = |value: f64, aim: f64| (value <= aim, format!("at most {aim:.0}"));
        let report_figure = |what: &str, value: String, aim: Option<(bool, String)>| {
            let aim = aim.as_ref().map(|(met, aim)| (*met, aim.as_str()));
            report(&format!("{loops} loops: {what}"), value, aim);
        };
        let least = aims.map(|(least, _, _)| (rate >= least, format!("at least {least:.0}")));
        let flat = format!("0.95 of {best:.0}");
        let least = match loops {
            15_000 => Some((rate >= 0.95 * best, flat)),
            _ => least,
        };
        report_figure("polls a second", format!("{rate:.0}"), least);
        let aim = aims.map(|(_, aim, _)| most(late, aim));
        report_figure("late, p99", format!("{late:.0} ms"), aim);
        let aim = aims.map(|(_, _, aim)| most(cpu, aim));
        report_figure("CPU a poll", format!("{cpu:.0} µs"), aim);
        let aim = aims.map(|_| most(memory, 10.0));
        report_figure("memory a loop", format!("{memory:.1} KB"), aim);
        let started = figure("started a second");
        report_figure("starts a second", format!("{started:.0}"), None);
        let (slow, quick) = (
            figure("polls of the slowest loop"),
            figure("polls of the quickest loop"),
        );
        report_figure(
            "polls of one loop",
            format!("{slow:.0} to {quick:.0}"),
            None,
        );
        let look = figure("a look, p99");
        report_figure(
            "a look, p99",
            format!("{look:.0} ms"),
            Some(most(look, 500.0)),
        );
        best = best.max(rate);
    }
    floors();
}

fn measured(loops: u32) -> Vec<serde_json::Value> {
    let at = directory();
    let done = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "bench",
            "polls",
            "-o",
            "json",
            "--loops",
            &loops.to_string(),
        ])
        .args(["--store", &kind().to_string(), "--dir"])
        .arg(at.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    report["figures"].as_array().unwrap().clone()
}

fn floors() {
    let url = server();
    let bare = child_figures(&["client", &url, "10000"]);
    report(
        "a bare client, polls a second",
        format!("{:.0}", bare[0]),
        None,
    );
    report(
        "a bare client, CPU a poll",
        format!("{:.0} µs", bare[1]),
        None,
    );
    if !on_sled() {
        return;
    }
    let floor = floor::store(&shape(&url), COMMITS, GROUP, 10_000, 1);
    report(
        "the bare database, commits a second",
        format!("{:.0}", floor.rate),
        None,
    );
    report(
        "the bare database, CPU a commit",
        format!("{:.0} µs", floor.cpu),
        None,
    );
}

/// The rows of a poll's commit.
fn shape(url: &str) -> Shape {
    let text = format!(
        "name: polls
actions:
  poll:
    type: until
    condition: \"@equals(body('check').status, 'complete')\"
    limit: {{ count: 100, timeout: PT1H }}
    on_limit: continue
    actions:
      check: {{ type: http, inputs: {{ method: GET, uri: '{url}' }} }}
"
    );
    let at = directory();
    on_runtime(async {
        let engine = engine(at.path());
        let workflow = engine.load_text("polls.yaml", &text).unwrap();
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        run.result::<Value>().await.unwrap();
        engine.stop().await;
    });
    Shape::of(at.path())
}

/// `child client URL N`: N tasks poll once a second over persistent connections. Prints the polls per second and the
/// CPU time of one poll.
pub fn client(words: &[String]) {
    let (url, loops) = (words[1].clone(), words[2].parse::<u64>().unwrap());
    on_runtime(async move {
        let client = reqwest::Client::new();
        let mut tasks = JoinSet::new();
        let begun = Instant::now() + Duration::from_secs(1);
        for number in 0..loops {
            let (client, url) = (client.clone(), url.clone());
            let first = begun + Duration::from_micros(1_000_000 * number / loops);
            tasks.spawn(async move {
                for second in 0..SECONDS {
                    tokio::time::sleep_until((first + Duration::from_secs(second)).into()).await;
                    let answer = client.get(&url).send().await.unwrap();
                    let body: serde_json::Value =
                        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
                    assert_eq!(body["status"], "running");
                }
            });
        }
        let before = cpu_us();
        while tasks.join_next().await.is_some() {}
        let polls = (loops * SECONDS) as f64;
        let took = begun.elapsed().as_secs_f64();
        println!("client {} {}", polls / took, (cpu_us() - before) / polls);
    });
}
