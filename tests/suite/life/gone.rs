//! The state directory disappears while its process runs. What the process then writes goes to files that no process
//! finds again, so it reports that, ends, and acknowledges nothing more.

use super::process::Place;
use crate::serve::{COUNT, PATIENCE, SLEEP, Server, client, with};
use crate::support::kind;
use reqwest::Method;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use windlass_store::StoreKind;

/// The time until it is noticed.
const NOTICED: Duration = Duration::from_secs(5);

/// How the directory disappears: it is deleted, moved, or replaced by an empty one, as under a mount.
const WAYS: [&str; 3] = ["deleted", "moved", "replaced"];

fn take_away(state: &Path, how: &str) {
    let elsewhere = state.with_extension("elsewhere");
    match how {
        "deleted" => fs::remove_dir_all(state).unwrap(),
        "moved" => fs::rename(state, elsewhere).unwrap(),
        _ => {
            fs::rename(state, elsewhere).unwrap();
            fs::create_dir(state).unwrap();
        }
    }
}

/// Waits for the end of a process; returns its status and the time.
#[allow(clippy::disallowed_methods)] // A test may look at the clock.
fn end(child: &mut Child) -> (ExitStatus, Duration) {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, began.elapsed());
        }
        assert!(began.elapsed() < PATIENCE, "it goes on without its store");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The server refuses to start a run, because the run could not be found again.
async fn begins_no_run(server: &Server, what: &str) {
    let body = json!({ "text": COUNT, "input": {} });
    let request = with(server.ask(Method::POST, "/v1/runs"), &body);
    let status = request.send().await.map(|answer| answer.status().as_u16());
    assert!(
        status.as_ref().map_or(true, |status| *status >= 500),
        "{what}: {status:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_store_went_away_acknowledges_nothing_and_ends() {
    for how in WAYS {
        let place = Place::new();
        let state = place.state();
        let mut server = Server::start(&state);
        server.begin(SLEEP, json!({})).await;
        take_away(&state, how);
        // This is refused immediately, even before the loss is noticed.
        begins_no_run(&server, how).await;
        let response = client().get(format!("{}/readyz", server.url)).send().await;
        let status = response.map(|answer| answer.status().as_u16());
        assert!(
            status.as_ref().map_or(true, |status| *status == 503),
            "{how}: {status:?}"
        );
        let (status, after) = end(&mut server.child);
        assert_eq!(status.code(), Some(8), "{how}");
        // The process waits briefly for what is in flight.
        assert!(after < 2 * NOTICED, "{how}: after {after:?}");
        let (_, stderr) = server.ended();
        assert!(stderr.contains("the store is gone"), "{how}: {stderr}");
        assert!(!state.join("store").exists(), "{how}: another one was made");
    }
}

/// Writes go to a file that cannot be found again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_log_went_away_acknowledges_nothing_and_ends() {
    let parts: &[&str] = match kind() {
        StoreKind::Sled => &["store/db"],
        StoreKind::Fjall => &["store/fjall/0.jnl", "store/fjall/keyspaces"],
    };
    for part in parts {
        for put_back in [false, true] {
            let place = Place::new();
            let state = place.state();
            let mut server = Server::start(&state);
            server.begin(SLEEP, json!({})).await;
            let (path, aside) = (state.join(part), state.join("aside"));
            fs::rename(&path, &aside).unwrap();
            if put_back && aside.is_file() {
                // As a program does that restores files.
                fs::copy(&aside, &path).unwrap();
            }
            begins_no_run(&server, part).await;
            let (status, _) = end(&mut server.child);
            assert_eq!(status.code(), Some(8), "{part}");
            let (_, stderr) = server.ended();
            assert!(stderr.contains("the store is gone"), "{part}: {stderr}");
        }
    }
}

/// Nothing is written meanwhile, so the process must check for itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_nothing_notices_too() {
    let place = Place::new();
    let mut server = Server::start(&place.state());
    server.begin(SLEEP, json!({})).await;
    take_away(&place.state(), "replaced");
    let (status, after) = end(&mut server.child);
    assert_eq!(status.code(), Some(8));
    assert!(after < 2 * NOTICED, "after {after:?}");
}

#[test]
fn a_run_whose_store_went_away_ends() {
    for how in WAYS {
        let place = Place::new();
        let file = place.file("sleep.yaml", SLEEP);
        let mut run = place.follow(&["run", &file]);
        run.until("TimerSet", "nap");
        take_away(&place.state(), how);
        let (status, after) = end(&mut run.child);
        let stderr = run.stderr_text();
        assert_eq!(status.code(), Some(8), "{how}: {stderr}");
        assert!(after < 2 * NOTICED, "{how}: after {after:?}");
        assert!(stderr.contains("the store is gone"), "{how}: {stderr}");
        let hint = "put the directory of --state back";
        assert!(stderr.contains(hint), "{how}: {stderr}");
        assert!(!stderr.contains("the run continues"), "{how}: {stderr}");
        assert!(
            !place.state().join("store").exists(),
            "{how}: another one was made"
        );
    }
}
