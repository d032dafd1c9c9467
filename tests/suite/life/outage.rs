//! The disk is full, or no descriptor is left: what is acknowledged stays, what is not is refused,
//! and when there is room again the server goes on by itself.

use super::process::Place;
use crate::serve::Start;
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

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

/// No file of the process may be larger than this.
fn file_limit(pid: u32, bytes: &str) {
    let args = [format!("--pid={pid}"), format!("--fsize={bytes}:unlimited")];
    let set = Command::new("prlimit").args(args).status().unwrap();
    assert!(set.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_runs_until_there_is_room() {
    let place = Place::new();
    let state = place.state();
    // A signal that says "file too large" would end the process: a write shall fail instead, as
    // it does when a disk is full. What is ignored stays so through an exec.
    let mut start = Command::new("sh");
    let server = Start::new(&state).spawn_with(|command| {
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let envs: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        start.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
        start.arg(program).args(args).envs(envs);
        start.stdout(std::process::Stdio::null());
        start.stderr(std::process::Stdio::piped());
        start.process_group(0);
        std::mem::swap(command, &mut start);
    });
    let db = state.join("store").join("db");
    let size = std::fs::metadata(&db).unwrap().len();
    file_limit(server.child.id(), &(size + 400_000).to_string());

    let run = server.begin(GROWS, json!({ "to": 200 })).await;
    let mut refused = String::new();
    for _ in 0..1_000 {
        let body = json!({ "text": GROWS, "input": { "to": 200 } });
        let (status, told) = server.post("/v1/runs", &body).await;
        if status >= 500 {
            refused = told.to_string();
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        refused.contains("store"),
        "the disk was never full: {refused}"
    );
    // The server lives, and what it has can be looked at.
    let (status, listed) = server.get("/v1/runs").await;
    assert_eq!(status, 200, "{listed}");

    file_limit(server.child.id(), "unlimited");
    let mut outcome = json!(null);
    for _ in 0..300 {
        let asked = server.get(&format!("/v1/runs/{run}/result?wait=60")).await;
        outcome = asked.1;
        if asked.0 == 200 {
            break;
        }
        // The store is opened again after a while.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(outcome["status"], "Succeeded", "{outcome}");
    assert_eq!(outcome["output"], 200, "{outcome}");
}

/// Each iteration asks a server.
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
        // Fewer than are open: whatever is opened now fails.
        open_limit(pid, "3:");
        let fresh = reqwest::Client::builder().timeout(Duration::from_millis(300));
        let health = fresh
            .build()
            .unwrap()
            .get(format!("{}/healthz", server.url));
        assert!(health.send().await.is_err(), "there are descriptors left");
        open_limit(pid, "1024:");
        let (status, told) = server.get("/v1/runs").await;
        assert_eq!(status, 200, "{told}");
    }
    assert_eq!(server.end(&asks).await["output"], 100);
    assert_eq!(server.end(&grows).await["output"], 100);
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
