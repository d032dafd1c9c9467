//! The times that a user notices: processes of the real binary, from start to end.

use crate::usage::percentile;
use crate::{directory, kind, report};
use axum::Router;
use axum::routing::get;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_windlass");

fn windlass(state: &Path, words: &[&str]) -> Child {
    Command::new(BINARY)
        .args(words)
        .env("WINDLASS_STATE", state)
        .env("WINDLASS_STORE", kind().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wall_ms(rounds: usize, mut once: impl FnMut() -> Child) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let ended = once().wait().unwrap();
            assert!(ended.success());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    percentile(&mut times, 0.5)
}

/// Measures starts, restarts after a kill, and commands that read a store.
pub fn all() {
    after_a_kill();
    let at = directory();
    let file = at.path().join("one.yaml");
    std::fs::write(&file, crate::loops::spin(1)).unwrap();
    let file = file.to_str().unwrap();
    // On a file system in memory a sync costs nothing, so that the rest is Windlass's own time.
    let memory = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    let fresh = |at: &Path| {
        let state = at.join("state");
        let _ = std::fs::remove_dir_all(&state);
        windlass(&state, &["run", file])
    };
    let run = wall_ms(20, || fresh(memory.path()));
    report(
        "run of one iteration, without the disk",
        format!("{run:.1} ms"),
        Some((run < 25.0, "under 25 ms")),
    );
    let run = wall_ms(20, || fresh(at.path()));
    report(
        "run of one iteration, a new store on disk",
        format!("{run:.1} ms"),
        None,
    );
    let state = memory.path().join("state");
    let _ = windlass(&state, &["run", file, "--id", "one"]).wait();
    let status = wall_ms(20, || windlass(&state, &["status", "one"]));
    report(
        "status on a cold store, without the disk",
        format!("{status:.1} ms"),
        Some((status < 15.0, "under 15 ms")),
    );
    let version = wall_ms(20, || windlass(&state, &["--version"]));
    report(
        "--version, for comparison",
        format!("{version:.1} ms"),
        None,
    );
    let size = std::fs::metadata(BINARY).unwrap().len() as f64 / 1e6;
    report(
        "the binary",
        format!("{size:.1} MB"),
        Some((size < 25.0, "under 25 MB")),
    );
}

/// From the start of a process after a SIGKILL to its first new request.
fn after_a_kill() {
    let (url, requests) = counting_server();
    let at = directory();
    let file = at.path().join("polls.yaml");
    let text = format!(
        "name: polls
actions:
  poll:
    type: until
    condition: \"@equals(body('check').status, 'complete')\"
    limit: {{ count: 1000, timeout: PT1H }}
    actions:
      check: {{ type: http, inputs: {{ method: GET, uri: '{url}' }} }}
"
    );
    std::fs::write(&file, text).unwrap();
    let state = at.path().join("state");
    let mut child = windlass(&state, &["run", file.to_str().unwrap()]);
    let wait = Duration::from_secs(10);
    let mut times = Vec::new();
    for _ in 0..20 {
        for _ in 0..10 {
            requests.recv_timeout(wait).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        while requests.try_recv().is_ok() {}
        let start = Instant::now();
        child = windlass(&state, &["resume"]);
        let first = requests.recv_timeout(wait).unwrap();
        times.push((first - start).as_secs_f64() * 1e3);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let worst = percentile(&mut times, 1.0);
    let median = percentile(&mut times, 0.5);
    report(
        "first request after SIGKILL, median of 20",
        format!("{median:.1} ms"),
        Some((median < 50.0, "under 50 ms")),
    );
    report(
        "first request after SIGKILL, worst of 20",
        format!("{worst:.1} ms"),
        None,
    );
}

fn counting_server() -> (String, Receiver<Instant>) {
    let (seen, requests) = channel();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        crate::loops::on_runtime(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let router = Router::new().route(
                "/job",
                get(move || {
                    let _ = seen.send(Instant::now());
                    async {
                        (
                            [("content-type", "application/json")],
                            r#"{"status":"running"}"#,
                        )
                    }
                }),
            );
            axum::serve(listener, router).await.unwrap();
        });
    });
    (format!("http://{}/job", receiver.recv().unwrap()), requests)
}
