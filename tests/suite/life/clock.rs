//! Time is measured by elapsed time: setting the clock back delays nothing, and setting it forward makes timers due.
//! Real processes, with a library that sets the clock of a process.

use super::process::{Following, Place};
use crate::serve::Start;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// The library of Debian's `faketime`; `tests/run` installs it.
fn library() -> PathBuf {
    let found = std::fs::read_dir("/usr/lib").unwrap().find_map(|entry| {
        let path = entry.unwrap().path().join("faketime/libfaketimeMT.so.1");
        path.is_file().then_some(path)
    });
    found.expect("libfaketime is there: apt-get install faketime")
}

/// A place whose processes have a clock of their own.
struct Clock {
    place: Place,
}

impl Clock {
    fn new() -> Self {
        let clock = Self {
            place: Place::new(),
        };
        clock.set("+0s");
        clock
    }

    fn file(&self) -> PathBuf {
        self.place.dir.path().join("clock")
    }

    /// Sets the clock of the processes to this offset from the machine's clock, including those that already run.
    fn set(&self, offset: &str) {
        let new = self.place.dir.path().join("clock.new");
        std::fs::write(&new, offset).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        self.fake(&mut command);
        command
    }

    /// Makes the command use the clock of this place.
    fn fake(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", library())
            .env("FAKETIME_TIMESTAMP_FILE", self.file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    fn follow(&self, args: &[&str]) -> Following {
        Following::of(self.command(args))
    }

    /// A workflow that waits for this number of seconds.
    fn nap(&self, seconds: u32) -> String {
        let text = format!(
            "name: nap\nactions:\n  before: {{ type: compose, inputs: 1 }}\n  \
             nap: {{ type: wait, interval: {{ unit: Second, count: {seconds} }} }}\n  \
             after: {{ type: compose, inputs: 2 }}\noutputs: \"@outputs('after')\"\n"
        );
        self.place.file("nap.yaml", &text)
    }
}

#[test]
fn a_clock_that_is_set_back_delays_nothing() {
    // The short wait stays in memory, the long one does not.
    for seconds in [2, 7] {
        let clock = Clock::new();
        let file = clock.nap(seconds);
        let mut run = clock.follow(&["run", &file]);
        run.until("TimerSet", "nap");
        clock.set("-3600s");
        assert_eq!(run.result(), json!(2), "{seconds}");
    }
}

#[test]
fn a_clock_that_is_set_forward_makes_due() {
    let clock = Clock::new();
    let file = clock.nap(7200);
    let mut run = clock.follow(&["run", &file]);
    run.until("TimerSet", "nap");
    clock.set("+7300s");
    assert_eq!(run.result(), json!(2));
}

#[test]
fn a_clock_that_was_set_back_between_two_processes_delays_nothing() {
    for (seconds, resume) in [(2, &["resume", "r"][..]), (7, &["resume"])] {
        let clock = Clock::new();
        let file = clock.nap(seconds);
        clock.set("+3600s");
        let mut run = clock.follow(&["run", &file, "--id", "r"]);
        run.until("TimerSet", "nap");
        run.kill();
        clock.set("+0s");
        assert_eq!(clock.follow(resume).result(), json!(2), "{seconds}");
    }
}

#[test]
fn a_run_without_a_terminal_says_each_minute_what_it_waits_for() {
    let clock = Clock::new();
    let file = clock.nap(130);
    let mut command = clock.place.command(&["run", &file, "--id", "r"]);
    command
        .env("LD_PRELOAD", library())
        .env("FAKETIME", "+0 x20");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let stderr = String::from_utf8(ran.stderr).unwrap();
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("run r  nap (wait)  until in "))
        .collect();
    assert_eq!(lines.len(), 2, "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_browser_ends_after_thirty_days() {
    let clock = Clock::new();
    let state = clock.place.state();
    let server = Start::new(&state)
        .token("token")
        .spawn_with(|command| clock.fake(command));
    let session = server.ask(Method::POST, "/v1/session");
    let session = session.bearer_auth("token").send().await.unwrap();
    let cookie = session.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    for (offset, wanted) in [("+2591900s", 200), ("+2592100s", 401)] {
        clock.set(offset);
        let call = server.ask(Method::GET, "/v1/me").header("cookie", cookie);
        assert_eq!(call.send().await.unwrap().status(), wanted, "{offset}");
    }
}

#[tokio::test]
async fn all_runs_that_wait_are_followed_to_their_ends() {
    const CLIENTS: usize = 10;
    // More than the 1,024 runs that a client follows at once.
    const RUNS: usize = 103 * CLIENTS;
    let clock = Clock::new();
    let state = clock.place.state();
    let server = Start::new(&state).spawn();
    let text = std::fs::read_to_string(clock.nap(3_600)).unwrap();
    let body = json!({ "text": text });
    let start = async || {
        for _ in 0..RUNS / CLIENTS {
            assert_eq!(server.post("/v1/runs", &body).await.0, 201);
        }
    };
    join_all((0..CLIENTS).map(|_| start())).await;
    server.stop();
    clock.set("+7200s");
    let resumed = clock.command(&["resume", "-o", "jsonl"]).output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    let stdout = String::from_utf8(resumed.stdout).unwrap();
    assert_eq!(stdout.lines().count(), RUNS);
}
