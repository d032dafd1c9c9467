//! A loop whose time runs out, in a real process with a real server that hangs: the outcome does not depend on where
//! the loop was interrupted. Also, a store whose run contains a cycle can be inspected.

use super::process::Place;
use crate::store::contract::{commit, ok};
use crate::support::{open_store, serve};
use axum::Router;
use axum::extract::{Path, Query};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use windlass_machine::program::StateId;
use windlass_machine::{Change, Cursor, CursorId, Records, Wait};

/// Answers the first iteration, and hangs in the second one if the loop is interrupted during the call.
async fn busy(
    Path(at): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> axum::Json<Value> {
    if at == "flight" && query["n"] == "1" {
        std::future::pending::<()>().await;
    }
    axum::Json(json!({ "state": "busy" }))
}

const POLL: &str = "
inputs: { base: { type: string }, at: { type: string } }
actions:
  poll:
    type: until
    condition: \"@equals(body('check')?.state, 'done')\"
    limit: { timeout: PT4S }
    delay: \"@if(equals(inputs('at'), 'delay'), 'PT1H', 'PT0S')\"
    actions:
      check: { type: http, uri: \"@{inputs('base')}/@{inputs('at')}?n=@{variables('loopIndex')}\" }
      rest: { type: wait, interval: \"@if(and(equals(inputs('at'), 'middle'), equals(variables('loopIndex'), 1)), 'PT1H', 'PT0S')\" }
      last: { type: compose, inputs: \"@variables('loopIndex')\" }
  expired:
    type: compose
    runAfter: { poll: [TimedOut] }
    inputs:
      iterations: \"@outputs('poll').iterations\"
      reason: \"@outputs('poll').reason\"
      result: \"@outputs('poll').result.check.body\"
      check: \"@body('check')\"
      last: \"@outputs('last')\"
outputs: \"@outputs('expired')\"
";

/// Runs it and interrupts it at `at`. With `killed`, the process is killed before the deadline, and another process
/// continues the run afterwards.
#[allow(clippy::disallowed_methods)] // A deadline passes on the clock of this machine.
fn outcome(base: &str, at: &str, killed: bool) -> Value {
    let place = Place::new();
    let file = place.file("poll.yaml", POLL);
    let (at, base) = (format!("at={at}"), format!("base={base}"));
    let args = ["run", &file, "--id", "poll", "-i", &at, "-i", &base];
    let mut run = place.follow(&args);
    let started = Instant::now();
    if !killed {
        return run.result();
    }
    while run.until("LoopIteration", "poll")["iteration"] != 0 {}
    run.until("ActionEnded", "check");
    if at == "at=flight" {
        run.until("ActionStarted", "check");
    }
    run.kill();
    let deadline = Duration::from_secs(5);
    std::thread::sleep(deadline.saturating_sub(started.elapsed()));
    place.follow(&["resume", "poll"]).result()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_loop_that_timed_out_is_the_same_wherever_the_cut_fell() {
    let router = Router::new().route("/{at}", axum::routing::get(busy));
    let base = serve(router).await;
    let cuts = [
        ("delay", false),
        ("flight", false),
        ("middle", false),
        ("delay", true),
        ("flight", true),
    ];
    let runs = cuts.map(|(at, killed)| {
        let base = base.clone();
        tokio::task::spawn_blocking(move || outcome(&base, at, killed))
    });
    for (run, cut) in runs.into_iter().zip(cuts) {
        assert_eq!(
            run.await.unwrap(),
            json!({
                "iterations": 1,
                "reason": "timeout",
                "result": { "state": "busy" },
                "check": { "state": "busy" },
                "last": 0,
            }),
            "{cut:?}"
        );
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // Only the clock shows an endless walk.
fn a_run_whose_cursor_forked_itself_can_be_looked_at() {
    let place = Place::new();
    let itself = |parent: u64| Cursor {
        at: StateId(0),
        parent: Some(CursorId(parent)),
        wait: Wait::Ready,
        frames: Vec::new(),
        records: Records::new(),
        owns_records: false,
    };
    {
        let store = open_store(&place.state()).unwrap();
        let mut broken = commit("broken", 0);
        broken.changes = vec![
            Change::CursorSpawned(CursorId(7), itself(7)),
            Change::CursorSpawned(CursorId(8), itself(9)),
            Change::CursorSpawned(CursorId(9), itself(8)),
        ];
        ok(&*store, broken);
    }
    for look in ["status", "dump", "history"] {
        let mut command = place.command(&[look, "broken", "-o", "json"]);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > patience {
                child.kill().unwrap();
                panic!("{look} walks for ever");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
