//! Rate limits of calls over all runs of a store, with a server that counts and refuses.

use super::first_use::Folder;
use super::paginate;
use crate::support::serve;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use windlass_engine::report::status;
use windlass_engine::{Engine, Timestamp, Value, now};

/// A server with a quota of `count` requests in every interval of length `per`. Requests arrive late on a busy machine,
/// so the rates of the tests allow the same number in a much longer interval.
#[derive(Clone)]
struct Quota {
    count: usize,
    per: Duration,
    /// Whether a refusal omits the time of the next attempt.
    hides_time: bool,
    seen: Arc<Mutex<Seen>>,
    /// The number of requests after which to notify.
    reached: Arc<(usize, Notify)>,
}

#[derive(Default)]
struct Seen {
    accepted: Vec<Timestamp>,
    refused: usize,
}

impl Quota {
    fn new(count: usize, per: Duration, reached: usize) -> Self {
        Self {
            count,
            per,
            hides_time: false,
            seen: Arc::default(),
            reached: Arc::new((reached, Notify::new())),
        }
    }

    async fn start(&self) -> String {
        serve(Router::new().fallback(answer).with_state(self.clone())).await
    }

    /// How many requests were accepted and refused.
    fn counts(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap();
        (seen.accepted.len(), seen.refused)
    }
}

async fn answer(State(quota): State<Quota>) -> Response {
    let now = now();
    let mut seen = quota.seen.lock().unwrap();
    let recent = seen.accepted.iter().rev();
    let recent = recent.take_while(|at| now.since(**at) < quota.per).count();
    let is_accepted = recent < quota.count;
    match is_accepted {
        true => seen.accepted.push(now),
        false => seen.refused += 1,
    }
    let (reached, notify) = &*quota.reached;
    if seen.accepted.len() == *reached {
        notify.notify_one();
    }
    match is_accepted {
        true => StatusCode::OK.into_response(),
        false => {
            if quota.hides_time {
                return StatusCode::TOO_MANY_REQUESTS.into_response();
            }
            let seconds = quota.per.as_secs().max(1).to_string();
            (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)]).into_response()
        }
    }
}

/// A file with `count` concurrent calls.
fn calls(count: usize, url: &str, more: &str) -> String {
    format!(
        "{more}
actions:
  each:
    type: foreach
    foreach: \"@range(0, {count})\"
    concurrency: 50
    actions:
      call: {{ type: http, inputs: {{ uri: \"{url}/@{{item()}}\" }}, retry: {{ type: fixed, count: 20, interval: 1s }} }}
"
    )
}

/// The host of an address, without its port.
const HOST: &str = "127.0.0.1";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_or_a_flag_keeps_the_quota_of_a_server() {
    for by_flag in [false, true] {
        let folder = Folder::new();
        let quota = Quota::new(10, Duration::from_millis(400), 0);
        let url = quota.start().await;
        let rates = format!("rates: {{ {HOST}: 10/1s }}");
        folder.file("w.yaml", calls(45, &url, if by_flag { "" } else { &rates }));
        let flag = format!("{HOST}=10/1s");
        let mut line = vec!["run", "w.yaml"];
        if by_flag {
            line.extend(["--rate", &flag]);
        }
        tokio::task::block_in_place(|| folder.run(&line).left(0, &[]));
        assert_eq!(quota.counts(), (45, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_is_enforced_through_a_kill() {
    let folder = Folder::new();
    // The whole quota is used immediately, and the process is killed.
    let quota = Quota::new(20, Duration::from_millis(2_000), 20);
    let url = quota.start().await;
    folder.file(
        "w.yaml",
        calls(30, &url, &format!("rates: {{ {HOST}: 20/3s }}")),
    );
    let line = ["run", "w.yaml", "--id", "r"];
    let mut child = folder.start(&line);
    quota.reached.1.notified().await;
    child.kill().unwrap();
    child.wait().unwrap();
    tokio::task::block_in_place(|| folder.run(&["resume", "r"]).left(0, &[]));
    let (accepted, refused) = quota.counts();
    assert!(accepted >= 30, "{accepted}");
    assert_eq!(refused, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_makes_the_other_calls_wait() {
    for hides_time in [false, true] {
        let folder = Folder::new();
        let quota = Quota {
            hides_time,
            ..Quota::new(40, Duration::from_secs(3600), 40)
        };
        let url = quota.start().await;
        folder.file("w.yaml", calls(160, &url, ""));
        let mut child = folder.start(&["run", "w.yaml", "--id", "r"]);
        quota.reached.1.notified().await;
        let waits = || loop {
            let status = folder.run(&["status", "r"]).left(0, &[]).out;
            if status.contains(&format!("waits for the rate limit of {HOST}")) {
                return;
            }
        };
        tokio::task::block_in_place(waits);
        child.kill().unwrap();
        child.wait().unwrap();
        let (accepted, refused) = quota.counts();
        assert_eq!(accepted, 40);
        // Each of the 50 concurrent calls is refused at most once. Without a time in the refusal, more calls try again
        // after a second.
        assert!(refused >= 1 && (hides_time || refused <= 50), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_explains_who_waits_for_a_rate_limit() {
    let folder = Folder::new();
    let quota = Quota::new(1, Duration::from_secs(3600), 1);
    let url = quota.start().await;
    folder.file(
        "w.yaml",
        calls(5, &url, &format!("rates: {{ {HOST}: 1/h }}")),
    );
    let mut child = folder.start(&["run", "w.yaml", "--id", "r"]);
    quota.reached.1.notified().await;
    // The calls queue after the first one was answered.
    let report = tokio::task::block_in_place(|| {
        loop {
            let out = folder.run(&["status", "r", "-o", "json"]).left(0, &[]).out;
            let report: Json = serde_json::from_str(&out).unwrap();
            let text = out.matches("rate_limit").count();
            if text == 4 {
                return report;
            }
        }
    });
    let mut positions: HashMap<u64, String> = HashMap::new();
    for doing in report["doing"].as_array().unwrap() {
        if let Some(wait) = doing.get("rate_limit").filter(|wait| !wait.is_null()) {
            let host = wait["host"].as_str().unwrap().to_owned();
            positions.insert(wait["position"].as_u64().unwrap(), host);
        }
    }
    let mut places: Vec<u64> = positions.keys().copied().collect();
    places.sort_unstable();
    assert_eq!(json!(places), json!([1, 2, 3, 4]));
    assert!(positions.values().all(|host| host.starts_with(HOST)));
    let text = tokio::task::block_in_place(|| folder.run(&["status", "r"]).left(0, &[]).out);
    assert!(
        text.contains(&format!("waits for the rate limit of {HOST}")),
        "{text}"
    );
    // One branch represents all four, in any order of the queue.
    let places = ["1", "2", "3", "4"].map(|place| format!(", number {place} in line"));
    assert!(places.iter().any(|place| text.contains(place)), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_name_a_rate_count_against_it_and_not_against_their_hosts() {
    for by_flag in [false, true] {
        let folder = Folder::new();
        let quota = Quota::new(10, Duration::from_millis(400), 0);
        let url = quota.start().await;
        let port = url.rsplit_once(':').unwrap().1;
        let by_name = format!("http://localhost:{port}");
        let text = calls(
            45,
            "@{if(equals(mod(item(), 2), 0), 'FIRST', 'SECOND')}",
            "",
        );
        let text = text.replace("FIRST", &url).replace("SECOND", &by_name);
        let text = text.replace(
            "@{item()}\"",
            "@{item()}\", rate: \"@{concat('quota-', 'A')}\"",
        );
        // The hosts have rates that would not allow a second call.
        let rates = "rates: { quota-a: 10/1s, 127.0.0.1: 1/h, localhost: 1/h }";
        folder.file(
            "w.yaml",
            format!("{}{text}", if by_flag { "" } else { rates }),
        );
        let mut line = vec!["run", "w.yaml"];
        if by_flag {
            line.extend(["--rate", "quota-a=10/1s", "--rate", "127.0.0.1=1/h"]);
        }
        tokio::task::block_in_place(|| folder.run(&line).left(0, &[]));
        assert_eq!(quota.counts(), (45, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_waits_for_the_rate_that_it_names_also_after_a_kill() {
    let folder = Folder::new();
    let quota = Quota::new(1, Duration::from_secs(3600), 1);
    let url = quota.start().await;
    folder.file(
        "w.yaml",
        format!(
            "rates: {{ spent: 1/h }}
defaults: {{ rate: spent }}
actions:
  call: {{ type: http, uri: \"{url}\" }}
  free: {{ type: http, uri: \"{url}/free\", rate: null, check: false }}
  command: {{ type: shell, run: \"touch done\", rate: Spent }}
"
        ),
    );
    let mut child = folder.start(&["run", "w.yaml", "--id", "r"]);
    quota.reached.1.notified().await;
    let waits = || loop {
        let status = folder.run(&["status", "r"]).left(0, &[]).out;
        if status.contains("command (shell touch done)  waits for the rate limit of spent") {
            return;
        }
    };
    tokio::task::block_in_place(waits);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = folder.start(&["resume", "r"]);
    tokio::task::block_in_place(waits);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.path().join("done").exists());
    let (accepted, refused) = quota.counts();
    assert_eq!((accepted, refused), (1, 1), "`free` has no rate");
}

#[test]
fn names_of_rates_are_checked() {
    let folder = Folder::new();
    let call = |rates: &str, rate: &str| {
        let call = "type: http, uri: \"http://127.0.0.1:1/\"";
        folder.file(
            "w.yaml",
            format!("rates: {{ {rates} }}\nactions: {{ a: {{ {call}, rate: {rate} }} }}\n"),
        );
        folder.run(&["validate", "w.yaml"])
    };
    let checked =
        call("quota-b: 1/s", "quota-a").left(0, &["nothing counts against the rate `quota-b`"]);
    assert!(checked.err.contains("quota-b.example.com"), "{checked:?}");
    for (rates, rate) in [
        (
            "Quota-A: 1/s, localhost: 1/s, api.example.com: 1/s",
            "quota-a",
        ),
        ("quota-b: 1/s", "\"@{workflow().name}\""),
        ("api.example.com: 1/s", "by-flag"),
    ] {
        let checked = call(rates, rate).left(0, &[]);
        assert!(!checked.err.contains("nothing counts"), "{checked:?}");
    }
    for wrong in ["\"*.example.com\"", "https://api.example.com", "a/b", "a b"] {
        let checked = call(&format!("{wrong}: 1/s"), "quota-a");
        checked.left(3, &["is not a host or the name of a rate"]);
        call("localhost: 1/s", wrong).left(3, &["is not a host or the name of a rate"]);
    }
    call("localhost: 1/s", "\"\"").left(3, &["it is empty"]);
    folder
        .run(&["poll", "--rate", "*.example.com=1/s", "--", "true"])
        .left(2, &["`*` matches nothing"]);
}

#[test]
fn files_of_limits_that_are_over_are_removed() {
    let folder = Folder::new();
    let rates = folder.path().join("state/rates");
    let write = |name: &str, numbers: [i64; 5]| {
        let path = rates.join(name);
        std::fs::create_dir_all(&rates).unwrap();
        std::fs::write(&path, numbers.map(i64::to_be_bytes).concat()).unwrap();
        let changed = u64::try_from(now().0).unwrap() - 7_200_000;
        let changed = std::time::UNIX_EPOCH + Duration::from_millis(changed);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(changed).unwrap();
    };
    let (hour, now) = (3_600_000, now().0);
    write(
        "over_443",
        [now - 3 * hour, 5, 1_000, 1_000, now - 3 * hour],
    );
    write("day_443", [0, 0, 0, 24 * hour, now - 3 * hour]);
    write("blocked_443", [now + hour, 0, 0, 0, 0]);
    write("broken_443.new", [0; 5]);
    folder.run(&["poll", "--", "true"]).left(0, &[]);
    let names = std::fs::read_dir(&rates).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["blocked_443", "day_443"]);
}

#[test]
fn wrong_rates_are_refused() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "rates: { api.example.com: fast }\nactions: { a: { type: compose, inputs: 1 } }\n",
    );
    folder
        .run(&["validate", "w.yaml"])
        .left(3, &["`fast` is not a rate", "100/1s"]);
    folder
        .run(&["run", "w.yaml", "--rate", "https://x=1/s"])
        .left(2, &["is not a host or the name of a rate"]);
}

/// A server that answers with 503 while it is down. In another mode it holds its requests, and answers each when the
/// test releases it.
#[derive(Clone)]
struct Fragile {
    state: Arc<Mutex<FragileState>>,
    changed: Arc<Notify>,
    answers: Arc<Semaphore>,
}

#[derive(Default)]
struct FragileState {
    is_up: bool,
    holds: bool,
    /// How many requests it has held so far, and how many it holds now.
    arrived: usize,
    held: usize,
}

async fn fragile(State(server): State<Fragile>) -> StatusCode {
    let is_held = {
        let mut state = server.state.lock().unwrap();
        if state.is_up {
            return StatusCode::OK;
        }
        if state.holds {
            state.arrived += 1;
            state.held += 1;
        }
        state.holds
    };
    if is_held {
        server.changed.notify_one();
        server.answers.acquire().await.unwrap().forget();
        server.state.lock().unwrap().held -= 1;
    }
    StatusCode::SERVICE_UNAVAILABLE
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_at_a_time_tries_a_host_that_is_down() {
    const RUNS: usize = 20;
    let server = Fragile {
        state: Arc::default(),
        changed: Arc::default(),
        answers: Arc::new(Semaphore::new(0)),
    };
    let router = Router::new().fallback(fragile).with_state(server.clone());
    let url = serve(router).await;
    let engine = Engine::builder().in_memory().unwrap();
    let text = format!(
        "actions:
  call: {{ type: http, inputs: {{ uri: \"{url}\" }}, retry: {{ type: fixed, count: 100000, interval: 10ms }} }}"
    );
    let workflow = engine.load_text("w.yaml", &text).unwrap();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(engine.start(&workflow, Value::Null).await.unwrap());
    }
    let waits = |id: &str| {
        let report = status(engine.inspector(), id, now()).unwrap();
        let doing = report.doing.first();
        let wait = doing.and_then(|doing| doing.rate_limit.clone());
        wait.is_some_and(|wait| wait.failures.is_some())
    };
    let in_line = || runs.iter().filter(|run| waits(run.id())).count();
    while in_line() < RUNS - 1 {
        tokio::task::yield_now().await;
    }
    server.state.lock().unwrap().holds = true;
    for number in 1..=3 {
        while server.state.lock().unwrap().arrived < number {
            server.changed.notified().await;
        }
        while in_line() < RUNS - 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.state.lock().unwrap().held, 1);
        server.answers.add_permits(1);
    }
    server.state.lock().unwrap().is_up = true;
    server.answers.add_permits(RUNS);
    for run in runs {
        run.result::<Value>().await.unwrap();
    }
    engine.stop().await;
}

#[test]
fn commands_say_what_they_wait_for() {
    let asks = Folder::new();
    asks.file(
        "w.yaml",
        "name: asks\nactions:\n  approved:\n    type: waitForSignal\n    inputs: { signal: go }\n",
    );
    let mut asks_command = asks.command(&["run", "w.yaml", "-v"]);
    let mut asking = asks_command.stderr(Stdio::piped()).spawn().unwrap();
    let folder = Folder::new();
    let (base, requested) =
        paginate::serve(|_| (429, vec![("retry-after", "600".to_owned())], json!(null)));
    let learns = folder.run(&["poll", "--url", &base, "--times", "1", "--every", "10ms"]);
    learns.left(4, &["429"]);
    let line = [
        "poll",
        "--url",
        &base,
        "--until",
        "body.done",
        "--timeout",
        "60s",
    ];
    let mut waits = folder.command(&line);
    let mut waits = waits.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waits.stderr.take().unwrap()).lines();
    let expected = format!("waits for the rate limit of {HOST}");
    assert!(lines.any(|line| line.unwrap().contains(&expected)));
    waits.kill().unwrap();
    waits.wait().unwrap();
    assert_eq!(requested.lock().unwrap().len(), 1);
    let mut lines = BufReader::new(asking.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("waits for signal `go`")));
    asking.kill().unwrap();
    asking.wait().unwrap();
}

#[test]
fn a_line_says_whose_environment_its_command_has() {
    let folder = Folder::new();
    let command = ["sh", "-c", "touch began; cat fifo"];
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let owner = [&["try", "--"][..], &command].concat();
    let mut owner = folder.start(&owner);
    folder.wait_for(|files| files.iter().any(|file| file == "began"));
    let joined = folder.run(&["try", "--", "true"]);
    joined.left(
        0,
        &["note: another process owns the store and executes the run"],
    );
    std::fs::write(&fifo, "").unwrap();
    assert!(owner.wait().unwrap().success());
}
