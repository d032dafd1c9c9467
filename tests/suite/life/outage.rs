//! The disk is full, or no file descriptor is left. What was acknowledged stays, everything else is refused, and the
//! server continues automatically when there is space again.

use super::process::Place;
use super::schedules::{at_least, put};
use crate::serve::{COUNT, PATIENCE, SLEEP, Server, Start, answer, with};
use crate::store::damage::log_of;
use crate::store::power::strace_works;
use crate::support::lacking;
use reqwest::Method;
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass_model::model::sha256;
use windlass_value::hex;

/// Each iteration stores some tens of kilobytes that do not compress.
const GROWS: &str = r#"
name: grows
inputs: { to: { type: integer } }
variables: { n: 0, pad: "" }
actions:
  loop:
    type: until
    condition: "@greaterOrEquals(variables('n'), inputs('to'))"
    limit: { count: 1000, timeout: PT1H }
    delay: PT0.01S
    actions:
      pad: { type: setVariable, name: pad, value: "@{join(range(variables('n'), 6000), '-')}" }
      more: { type: incrementVariable, name: n }
outputs: "@variables('n')"
"#;

/// Runs a command through another one, whose words precede it.
fn within(command: &mut Command, words: &[&str]) {
    let (first, rest) = words.split_first().unwrap();
    let mut around = Command::new(first);
    around.args(rest).arg(command.get_program());
    around.args(command.get_args());
    let envs = command.get_envs();
    around.envs(envs.filter_map(|(name, value)| Some((name, value?))));
    around.stdout(Stdio::null()).stderr(Stdio::piped());
    around.process_group(0);
    *command = around;
}

/// Polls a run's result until it is available, because the store is opened again after some time.
pub async fn outcome(server: &Server, run: &str) -> serde_json::Value {
    let mut last = json!(null);
    for _ in 0..300 {
        let response = server.get(&format!("/v1/runs/{run}/result?wait=1")).await;
        last = response.1;
        if response.0 == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    last
}

/// Limits the size of every file that the process writes.
fn file_limit(pid: u32, bytes: &str) {
    let args = [format!("--pid={pid}"), format!("--fsize={bytes}:unlimited")];
    let set = Command::new("prlimit").args(args).status().unwrap();
    assert!(set.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_runs_until_there_is_room() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    let db = state.join("store").join("db");
    let size = std::fs::metadata(&db).unwrap().len();
    file_limit(server.child.id(), &(size + 400_000).to_string());

    let run = server.begin(GROWS, json!({ "to": 200 })).await;
    let mut refused = String::new();
    for _ in 0..1_000 {
        let body = json!({ "text": GROWS, "input": { "to": 200 } });
        let (status, response) = server.post("/v1/runs", &body).await;
        if status >= 500 {
            refused = response.to_string();
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        refused.contains("store"),
        "the disk was never full: {refused}"
    );
    // The server runs, and its data can be read.
    let (status, listed) = server.get("/v1/runs").await;
    assert_eq!(status, 200, "{listed}");
    let (status, dump) = server.get("/v1/dump").await;
    assert_eq!((status, &dump["unreadable"]), (200, &json!([])), "{dump}");
    for path in ["", "/history", "/dump"] {
        let (status, response) = server.get(&format!("/v1/runs/{run}{path}")).await;
        assert_eq!(status, 200, "{path}: {response}");
    }
    let shown = place.run(&["status", &run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("stopped   no run continues: the store stopped"),
        "{shown}"
    );

    file_limit(server.child.id(), "unlimited");
    let outcome = outcome(&server, &run).await;
    assert_eq!(outcome["status"], "Succeeded", "{outcome}");
    assert_eq!(outcome["output"], 200, "{outcome}");
}

const WAITS: &str = "actions: { w: { type: wait, inputs: PT8S } }";

/// Limits the files of the server, and puts workflows until one is refused. No run notices the failure.
async fn refuse_a_put(server: &Server, place: &Place) {
    let db = place.state().join("store").join("db");
    let size = std::fs::metadata(&db).unwrap().len();
    file_limit(server.child.id(), &(size + 100_000).to_string());
    for number in 0..200 {
        // Text that does not compress.
        let noise: Vec<String> = (0..2_000)
            .map(|at: u32| hex(&sha256(format!("{number} {at}").as_bytes())))
            .collect();
        let text = format!("{WAITS} # {}", noise.join(""));
        let put = server.ask(Method::PUT, &format!("/v1/workflows/w{number}"));
        if answer(with(put, &json!({ "text": text }))).await.0 >= 500 {
            return;
        }
    }
    panic!("the disk was never full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_continues_after_another_writer_was_refused() {
    let place = Place::new();
    let server = Start::new(&place.state()).spawn();
    let run = server.begin(WAITS, json!({})).await;
    refuse_a_put(&server, &place).await;
    file_limit(server.child.id(), "unlimited");
    let outcome = outcome(&server, &run).await;
    assert_eq!(outcome["status"], "Succeeded", "{outcome}");
}

/// No run has a step that could find out that the store refuses writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_no_run_writes_is_opened_again_and_wakes_its_schedules() {
    let place = Place::new();
    let server = Start::new(&place.state()).spawn();
    // While the first run sleeps, each scheduled time is only decided.
    let text = format!("{SLEEP}schedule: {{ cron: '* * * * * *', overlap: skip }}\n");
    put(&server, "sleep", &text).await;
    let first = at_least(&server, 1).await;
    refuse_a_put(&server, &place).await;
    server.log_until("the schedules cannot be read");
    file_limit(server.child.id(), "unlimited");
    let mut tries = 0;
    while server.get("/readyz").await.0 != 200 {
        tries += 1;
        assert!(tries < 150, "the store is never opened again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let run = first[0]["run"].as_str().unwrap();
    server
        .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
        .await;
    // Schedules that were not woken sleep for longer than the test waits.
    at_least(&server, 2).await;
}

/// A server of which strace makes some calls fail; also returns the file with the traced calls. The store is created
/// before, so that creating it does not fail.
pub fn disturbed(place: &Place, traced: &str, failing: &str) -> (Server, PathBuf) {
    let state = place.state();
    assert!(Start::new(&state).spawn().stop().0.success());
    let log = place.dir.path().join("log");
    let (traced, failing) = (format!("trace={traced}"), format!("inject={failing}"));
    let to = log.to_str().unwrap();
    let words = [
        "strace", "-D", "-f", "-y", "-o", to, "-e", &traced, "-e", &failing,
    ];
    let server = Start::new(&state).spawn_with(|command| within(command, &words));
    (server, log)
}

/// After a failed sync, the pages that were to be written stay in memory as if they were on the disk. The database is
/// opened again only after the system has dropped them from its cache.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_sync_the_server_continues_with_what_the_disk_has() {
    if !strace_works() {
        return;
    }
    let place = Place::new();
    let (server, log) = disturbed(&place, "fdatasync,fadvise64", "fdatasync:error=EIO:when=5");
    let run = server.begin(GROWS, json!({ "to": 30 })).await;
    let outcome = outcome(&server, &run).await;
    assert_eq!(outcome["status"], "Succeeded", "{outcome}");
    assert_eq!(outcome["output"], 30, "{outcome}");
    drop(server);
    let log = std::fs::read_to_string(&log).unwrap();
    let failed = log.find("(INJECTED)").expect("no sync failed");
    let written = log_of(&place.state());
    let forgotten = log[failed..].lines().any(|line| {
        line.contains(&format!("{}>", written.display())) && line.contains("POSIX_FADV_DONTNEED")
    });
    assert!(forgotten, "{}", &log[failed..]);
}

/// If the server's output is not read, the line that reports the failure must not end a thread.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_cannot_be_logged_stops_nothing() {
    if !strace_works() {
        return;
    }
    let place = Place::new();
    let state = place.state();
    assert!(Start::new(&state).spawn().stop().0.success());
    let server = Start::new(&state).spawn_with(|command| {
        let failing = "inject=fdatasync:error=EIO:when=5";
        let traced = [
            "strace",
            "-D",
            "-f",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync",
        ];
        within(command, &[&traced[..], &["-e", failing]].concat());
        // The reader of standard error ends at the line with the server's address.
        let script = "exec \"$@\" 2> >(sed '/^ready at/q' >&2)";
        within(command, &["bash", "-c", script, "bash"]);
    });
    let run = server.begin(GROWS, json!({ "to": 30 })).await;
    let outcome = outcome(&server, &run).await;
    assert_eq!(outcome["output"], 30, "{outcome}");
}

/// Each client gets the error of the disk: a store that cannot be opened again is not reported as damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_for_ever_is_called_that() {
    if !strace_works() {
        return;
    }
    let place = Place::new();
    let (server, _) = disturbed(&place, "fdatasync", "fdatasync:error=EIO:when=5+");
    assert_eq!(server.get("/readyz").await.0, 200);
    let run = server.begin(GROWS, json!({ "to": 30 })).await;
    let mut seen = (0, json!(null));
    for _ in 0..600 {
        seen = server.get("/v1/runs").await;
        if seen.0 == 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seen.0, 503, "{}", seen.1);
    let of_run = server.get(&format!("/v1/runs/{run}/history")).await;
    let ready = server.get("/readyz").await;
    for (status, message) in [seen, of_run, ready] {
        let message = message.to_string();
        assert_eq!(status, 503, "{message}");
        assert!(message.contains("Input/output error"), "{message}");
        assert!(!message.contains("damaged"), "{message}");
    }
    let (_, stderr) = server.stop();
    assert!(stderr.contains("the store refused"), "{stderr}");
    assert!(stderr.contains("Input/output error"), "{stderr}");
}

/// Each iteration sends a request to a server.
const ASKS: &str = r#"
name: asks
inputs: { base: { type: string } }
variables: { n: 0 }
actions:
  loop:
    type: until
    condition: "@greaterOrEquals(variables('n'), 100)"
    limit: { count: 200, timeout: PT1H }
    delay: PT0.01S
    actions:
      ask:
        type: http
        inputs: { uri: "@{inputs('base')}/echo", queries: { n: "@variables('n')" }, headers: { connection: close } }
        retry: { type: fixed, count: 1000, interval: PT0.05S }
      more: { type: incrementVariable, name: n }
outputs: "@variables('n')"
"#;

/// How many files of the process may be open.
fn open_limit(pid: u32, files: &str) {
    let args = [format!("--pid={pid}"), format!("--nofile={files}")];
    let set = Command::new("prlimit").args(args).status().unwrap();
    assert!(set.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_runs_wait_for_some() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).spawn();
    let app = crate::app::router(crate::app::Options::default());
    let base = crate::support::serve(app).await;
    let grows = server.begin(GROWS, json!({ "to": 100 })).await;
    let asks = server.begin(ASKS, json!({ "base": base })).await;
    let pid = server.child.id();
    for _ in 0..3 {
        // The limit is below the number of open files, so opening any further one fails.
        open_limit(pid, "3:");
        let fresh = reqwest::Client::builder().timeout(Duration::from_millis(300));
        let health = fresh
            .build()
            .unwrap()
            .get(format!("{}/healthz", server.url));
        assert!(health.send().await.is_err(), "there are descriptors left");
        open_limit(pid, "1024:");
        // A new connection is needed, because an open one does not need the listener.
        let fresh = reqwest::Client::builder().timeout(Duration::from_secs(15));
        let health = fresh.build().unwrap();
        let health = health.get(format!("{}/healthz", server.url)).send().await;
        assert_eq!(health.expect("the server does not answer").status(), 200);
        // A database that opens files when it writes must first be opened again.
        for _ in 0..PATIENCE.as_millis() / 50 {
            if server.get("/v1/runs").await.0 == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (status, response) = server.get("/v1/runs").await;
        assert_eq!(status, 200, "{response}");
    }
    assert_eq!(server.end(&asks).await["output"], 100);
    assert_eq!(server.end(&grows).await["output"], 100);
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// The content of a file in `/proc` for every thread of a process.
fn threads(process: u32, file: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let files = tasks.flatten().map(|task| task.path().join(file));
    files
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}

/// A tracer that detaches from its process when it is dropped.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A group can be read as soon as its write to the disk has started, and a power cut may still lose it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_reported_before_it_is_durable() {
    if !strace_works() {
        return;
    }
    let place = Place::new();
    let server = Server::start(&place.state());
    let process = server.child.id();
    let tracer = Command::new("strace")
        .args(["-f", "-q", "-e", "trace=fdatasync", "-o", "/dev/null"])
        .args(["-e", "inject=fdatasync:delay_enter=600s"])
        .args(["-p", &process.to_string()])
        .spawn();
    let mut tracer = Tracer(tracer.unwrap());
    let untraced = |status: &String| status.contains("TracerPid:\t0\n");
    while threads(process, "status").iter().any(untraced) {
        if tracer.0.try_wait().unwrap().is_some() {
            return lacking("strace may not look at another process here");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let body = json!({ "text": COUNT, "run": "held" });
    let begun = with(server.ask(reqwest::Method::POST, "/v1/runs"), &body);
    let mut begun = Box::pin(answer(begun));
    let nothing = tokio::time::timeout(Duration::from_millis(500), &mut begun).await;
    assert!(nothing.is_err(), "{nothing:?}");
    let sync = format!("{} ", nix::libc::SYS_fdatasync);
    let syncs = |call: &String| call.starts_with(&sync);
    while !threads(process, "syscall").iter().any(syncs) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for path in ["", "/result", "/history", "/dump"] {
        let path = format!("/v1/runs/held{path}");
        let pending = tokio::time::timeout(Duration::from_millis(500), server.get(&path));
        if let Ok(response) = pending.await {
            panic!("{path}: {response:?}");
        }
    }
    drop(tracer);
    assert_eq!(begun.await.0, 201);
    assert_eq!(server.end("held").await["output"], 20);
}

/// A user who may read a store's files can inspect what a killed process of another user left in it.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_user_left_can_be_looked_at() {
    let other = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]);
        command.arg(env!("CARGO_BIN_EXE_windlass")).args(args);
        command.output()
    };
    if !other(&["--version"]).is_ok_and(|output| output.status.success()) {
        return lacking("no other user can run commands here");
    }
    let place = Place::new();
    let server = Server::start(&place.state());
    let run = server.begin(COUNT, json!({ "to": 3 })).await;
    server.end(&run).await;
    let state = place.state();
    let readable = Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(place.dir.path())
        .status();
    assert!(readable.unwrap().success());
    let status = ["status", &run, "--state", state.to_str().unwrap()];
    let live = other(&status).unwrap();
    let stderr = String::from_utf8_lossy(&live.stderr).into_owned();
    assert!(stderr.contains("control.sock cannot be used"), "{stderr}");
    let socket = state.join("control.sock");
    assert!(stderr.contains(socket.to_str().unwrap()), "{stderr}");
    assert!(stderr.contains("hint: --state must name"), "{stderr}");
    server.kill();
    let log = state.join("audit.jsonl");
    let hidden = Command::new("chmod").arg("0600").arg(&log).status();
    assert!(hidden.unwrap().success());
    let audit = other(&["audit", "--state", state.to_str().unwrap()]).unwrap();
    let stderr = String::from_utf8_lossy(&audit.stderr).into_owned();
    assert!(stderr.contains("cannot be opened"), "{stderr}");
    assert!(!stderr.contains("free disk space"), "{stderr}");
    let left = other(&status).unwrap();
    assert!(left.status.success(), "{left:?}");
    assert!(
        String::from_utf8_lossy(&left.stdout).contains("succeeded"),
        "{left:?}"
    );
    // Damage is reported as damage, and not as missing permissions.
    let db = log_of(&state);
    let mut bytes = std::fs::read(&db).unwrap();
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&db, bytes).unwrap();
    let damaged = other(&status).unwrap();
    let stderr = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(stderr.contains("the store is damaged"), "{stderr}");
}
