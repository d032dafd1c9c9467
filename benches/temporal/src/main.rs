//! Windlass on Temporal compared with a bare program of Temporal's SDK, in turns on one dev server. Both loops send
//! their requests to the same server, which records the times of the requests.
//!
//! ```text
//! cargo build --release --features temporal       # the Windlass that is measured
//! tests/temporal/run …                            # installs the dev server
//! cargo run --release --manifest-path benches/temporal/Cargo.toml -- loops failover looks
//! ```
//!
//! `WINDLASS` and `WINDLASS_TEMPORAL` name other programs, and `TURNS` sets the number of turns.

mod bare;
mod poll_server;

use poll_server::PollServer;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, WorkflowStartOptions};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::workflowservice::v1 as service;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &*args {
        [word, port, queue] if word == "work" => bare::work(port.parse().unwrap(), queue).await,
        sections => {
            let bench = Bench::start().await;
            for section in sections {
                match &**section {
                    "loops" => bench.loops().await,
                    "failover" => bench.failover().await,
                    "looks" => bench.looks().await,
                    other => panic!("no section `{other}`: loops, failover, looks"),
                }
            }
        }
    }
}

/// A child process that is killed when this process ends.
struct Process(Child);

impl Process {
    fn start(program: &Path, args: &[&str]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.args(args).env_remove("WINDLASS_ENGINE");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if std::env::var("LOUD").is_err() {
            command.stderr(Stdio::null());
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Which of the two programs.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bare,
    Windlass,
}

/// The results of one turn.
struct Turn {
    /// Iterations per second.
    rate: f64,
    /// Events and bytes of the history, per iteration.
    events: f64,
    bytes: f64,
}

struct Bench {
    windlass: PathBuf,
    port: u16,
    poll_server: PollServer,
    dir: TempDir,
    client: Client,
    _server: Process,
}

impl Bench {
    async fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let of = |name: &str, default: &str| {
            let named = std::env::var_os(name).map(PathBuf::from);
            named.unwrap_or_else(|| root.join(default))
        };
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let database = dir.path().join("temporal.db").display().to_string();
        let [at, http, metrics] = [port, free_port(), free_port()].map(|port| port.to_string());
        let mut flags = vec!["server", "start-dev", "--headless", "--ip", "127.0.0.1"];
        flags.extend(["--log-level", "error", "--db-filename", &database]);
        flags.extend([
            "--port",
            &at,
            "--http-port",
            &http,
            "--metrics-port",
            &metrics,
        ]);
        let tool = of("WINDLASS_TEMPORAL", "target/temporal/bin/temporal");
        let server = Process::start(&tool, &flags);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // The server accepts connections shortly before its namespace exists.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Self {
            windlass: of("WINDLASS", "target/release/windlass"),
            port,
            poll_server: PollServer::start().await,
            dir,
            client: bare::client(port).await,
            _server: server,
        }
    }

    fn engine(&self, queue: &str) -> String {
        format!("temporal://127.0.0.1:{}/default?queue={queue}", self.port)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.poll_server.port)
    }

    fn windlass(&self, args: &[&str], queue: &str) -> Output {
        let mut command = Command::new(&self.windlass);
        command.args(args).args(["--engine", &self.engine(queue)]);
        command.env_remove("WINDLASS_ENGINE").output().unwrap()
    }

    fn worker(&self, kind: Kind, queue: &str, flags: &[&str]) -> Process {
        match kind {
            Kind::Bare => {
                let me = std::env::current_exe().unwrap();
                Process::start(&me, &["work", &self.port.to_string(), queue])
            }
            Kind::Windlass => {
                let engine = self.engine(queue);
                let args = [&["worker", "--engine", &engine][..], flags].concat();
                Process::start(&self.windlass, &args)
            }
        }
    }

    /// Starts a loop of `times` iterations that request `path`.
    async fn begin(&self, kind: Kind, queue: &str, id: &str, times: u32, path: &str) {
        let url = self.url(path);
        if kind == Kind::Bare {
            let options = WorkflowStartOptions::new(queue, id).build();
            let begun = self
                .client
                .start_workflow(bare::Asking::run, (times, url), options);
            begun.await.unwrap();
            return;
        }
        let file = self.dir.path().join(format!("{id}.yaml"));
        std::fs::write(&file, workflow(times, &url)).unwrap();
        let file = file.display().to_string();
        let done = self.windlass(&["run", &file, "--detach", "--id", id], queue);
        assert!(done.status.success(), "{done:?}");
    }

    /// Starts `loops` loops, which wait until the worker starts, and measures them.
    async fn turn(&self, kind: Kind, loops: u32, times: u32) -> Turn {
        let queue = format!("q{}", unique());
        let path = format!("/{queue}");
        let id = |one: u32| format!("{queue}-{one}");
        for one in 0..loops {
            self.begin(kind, &queue, &id(one), times, &path).await;
        }
        let worker = self.worker(kind, &queue, &[]);
        let count = (loops * times) as usize;
        let hits = self.poll_server.wait(&path, count).await;
        // The last results must still reach the history.
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(worker);
        let took = (hits[count - 1] - hits[0]).as_secs_f64();
        let (events, bytes) = self.history(&id(0)).await;
        Turn {
            rate: (count - 1) as f64 / took,
            events: events as f64 / f64::from(times),
            bytes: bytes as f64 / f64::from(times),
        }
    }

    /// The number of events and of bytes in a history.
    async fn history(&self, id: &str) -> (i64, i64) {
        let request = service::DescribeWorkflowExecutionRequest {
            namespace: String::from("default"),
            execution: Some(WorkflowExecution {
                workflow_id: id.to_owned(),
                run_id: String::new(),
            }),
        };
        let mut service = self.client.connection().workflow_service();
        let described = service.describe_workflow_execution(request.into_request());
        let info = described.await.unwrap().into_inner();
        let info = info.workflow_execution_info.unwrap();
        (info.history_length, info.history_size_bytes)
    }

    async fn loops(&self) {
        let turns = std::env::var("TURNS").map_or(3, |turns| turns.parse().unwrap());
        println!(
            "| loops | bare a second | Windlass a second | ratio | events, bytes an iteration: bare | Windlass |"
        );
        println!("|---|---|---|---|---|---|");
        for (loops, times) in [(1, 300), (100, 20)] {
            let (mut bare, mut ours) = (Vec::new(), Vec::new());
            for turn in 0..turns {
                let one = self.turn(Kind::Bare, loops, times).await;
                let two = self.turn(Kind::Windlass, loops, times).await;
                eprintln!(
                    "{loops} loops, turn {turn}: {:.1} and {:.1}",
                    one.rate, two.rate
                );
                bare.push(one);
                ours.push(two);
            }
            let rates = |turns: &[Turn]| median(turns.iter().map(|turn| turn.rate).collect());
            let ratios = bare
                .iter()
                .zip(&ours)
                .map(|(bare, ours)| ours.rate / bare.rate);
            println!(
                "| {loops} | {:.1} | {:.1} | {:.2} | {:.2}, {:.0} | {:.2}, {:.0} |",
                rates(&bare),
                rates(&ours),
                median(ratios.collect()),
                bare[0].events,
                bare[0].bytes,
                ours[0].events,
                ours[0].bytes,
            );
        }
    }

    /// Measures the time from `kill -9` of a worker until another worker starts the action again, and until it starts
    /// the next action.
    async fn failover(&self) {
        println!("| worker | again after, s | next effect after, s |");
        println!("|---|---|---|");
        let tuned = ["--heartbeat", "1s", "--sticky", "1s"];
        for (name, flags) in [("default", &[][..]), ("tuned", &tuned)] {
            let (mut again, mut next) = (Vec::new(), Vec::new());
            for round in 0..5_u64 {
                let queue = format!("q{}", unique());
                let path = format!("/held/{queue}");
                let first = self.worker(Kind::Windlass, &queue, flags);
                self.begin(Kind::Windlass, &queue, &queue, 3, &path).await;
                self.poll_server.wait(&path, 1).await;
                let second = self.worker(Kind::Windlass, &queue, flags);
                // The second worker is connected by then. The time differs per round, so that the kill meets the
                // heartbeats at different points.
                tokio::time::sleep(Duration::from_millis(2_000 + 370 * round)).await;
                let killed = Instant::now();
                drop(first);
                let hits = self.poll_server.wait(&path, 3).await;
                again.push((hits[1] - killed).as_secs_f64());
                next.push((hits[2] - killed).as_secs_f64());
                drop(second);
            }
            println!("| {name} | {} | {} |", range(&again), range(&next));
        }
    }

    /// How long commands take to read a run of 1,000 iterations while no worker runs.
    async fn looks(&self) {
        let queue = format!("q{}", unique());
        let path = format!("/{queue}");
        let worker = self.worker(Kind::Windlass, &queue, &[]);
        self.begin(Kind::Windlass, &queue, &queue, 2_000, &path)
            .await;
        self.poll_server.wait(&path, 1_000).await;
        drop(worker);
        println!("| command | median of 10, ms |");
        println!("|---|---|");
        for command in ["status", "history"] {
            let mut took = Vec::new();
            for _ in 0..10 {
                let begun = Instant::now();
                let done = self.windlass(&[command, &queue, "-o", "json"], &queue);
                took.push(begun.elapsed().as_secs_f64() * 1e3);
                assert!(done.status.success(), "{done:?}");
            }
            println!("| {command} | {:.0} |", median(took));
        }
        let mut took = Vec::new();
        for _ in 0..10 {
            let begun = Instant::now();
            let done = Command::new(&self.windlass).arg("--version").output();
            took.push(begun.elapsed().as_secs_f64() * 1e3);
            assert!(done.unwrap().status.success());
        }
        println!("| --version | {:.0} |", median(took));
    }
}

/// A loop whose iterations request a URL.
fn workflow(times: u32, url: &str) -> String {
    format!(
        r#"
name: bench
variables: {{ n: 0 }}
actions:
  count:
    type: until
    condition: "@equals(variables('n'), {times})"
    limit: {{ count: 1000000, timeout: PT1H }}
    actions:
      ask: {{ type: http, inputs: {{ uri: "{url}" }} }}
      next: {{ type: incrementVariable, name: n }}
"#
    )
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn unique() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The minimum, the median and the maximum.
fn range(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    format!("{:.1} ({least:.1} to {most:.1})", median(sorted))
}
