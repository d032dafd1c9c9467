//! Schedules: runs start automatically, once for each time, also if the server is killed. `run` ignores a schedule.

use super::process::Place;
use crate::serve::{Server, Start, answer, client};
use crate::store::damage::open_again;
use chrono::{DateTime, NaiveDateTime, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use windlass_engine::now;
use windlass_store::ScheduleState;
use windlass_value::time::Timestamp;

pub const EVERY_SECOND: &str = "
name: tick
schedule: { cron: '* * * * * *', overlap: allow }
actions: { a: { type: compose, inputs: 1 } }
";

pub async fn put(server: &Server, name: &str, text: &str) {
    let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
    let request = request.header("content-type", "application/yaml");
    let (status, response) = answer(request.body(text.to_owned())).await;
    assert!(status < 300, "{response}");
}

pub async fn runs(server: &Server) -> Vec<Value> {
    let (status, listed) = server.get("/v1/runs?limit=500").await;
    assert_eq!(status, 200, "{listed}");
    listed["runs"].as_array().unwrap().clone()
}

/// Waits until there are at least `count` runs.
pub async fn at_least(server: &Server, count: usize) -> Vec<Value> {
    for _ in 0..600 {
        let found = runs(server).await;
        if found.len() >= count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no {count} runs: {:?}", runs(server).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_starts_each_time_once_and_survives_kills() {
    let place = Place::new();
    let server = Server::start(&place.state());
    put(&server, "tick", EVERY_SECOND).await;
    at_least(&server, 2).await;
    server.kill();
    let server = Server::start(&place.state());
    let before = runs(&server).await.len();
    let found = at_least(&server, before + 2).await;
    let times: Vec<&str> = found
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    let distinct: BTreeSet<&&str> = times.iter().collect();
    assert_eq!(distinct.len(), times.len(), "{times:?}");
    for run in &found {
        assert_eq!(run["labels"]["windlass.schedule"], "tick", "{run}");
    }
    // A deleted workflow starts no more runs.
    let gone = client().delete(format!("{}/v1/workflows/tick", server.url));
    assert!(gone.send().await.unwrap().status().is_success());
    let (status, _) = server.get("/v1/workflows/tick").await;
    assert_eq!(status, 404);
}

/// A definition as Logic Apps export it that recurs every second until `end`.
fn recurring(end: Option<&str>) -> String {
    let mut recurrence = json!({ "frequency": "Second", "interval": 1 });
    if let Some(end) = end {
        recurrence["startTime"] = json!("2020-01-01T00:00:00Z");
        recurrence["endTime"] = json!(end);
    }
    let definition = json!({ "definition": {
        "contentVersion": "1.0.0.0",
        "triggers": { "every": { "type": "Recurrence", "recurrence": recurrence } },
        "actions": { "a": { "type": "Compose", "inputs": 1, "runAfter": {} } },
    }});
    definition.to_string()
}

/// The scheduled second of each run, and the second in which it was started.
fn slots(runs: &[Value]) -> BTreeMap<i64, i64> {
    let mut found = BTreeMap::new();
    for run in runs {
        let id = run["run"].as_str().unwrap();
        let time = id.rsplit("-at-").next().unwrap();
        let slot = NaiveDateTime::parse_from_str(time, "%Y%m%dT%H%M%SZ").unwrap();
        let started = run["started_at"].as_str().unwrap();
        let started = DateTime::parse_from_rfc3339(started).unwrap();
        let before = found.insert(slot.and_utc().timestamp(), started.timestamp());
        assert_eq!(before, None, "twice: {id}");
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recurrence_continues_after_kills_and_fires_no_time_twice() {
    let place = Place::new();
    let mut server = Server::start(&place.state());
    let request = server.ask(Method::PUT, "/v1/workflows/recur");
    let request = request.header("content-type", "application/json");
    let (status, response) = answer(request.body(recurring(None))).await;
    assert_eq!(status, 201, "{response}");
    for _ in 0..3 {
        let before = runs(&server).await.len();
        at_least(&server, before + 2).await;
        server.kill();
        server = Server::start(&place.state());
    }
    let before = runs(&server).await.len();
    let found = at_least(&server, before + 3).await;
    let slots = slots(&found);
    for (slot, started) in &slots {
        // On schedule: in its second, or less than a minute later if the server was restarted meanwhile.
        assert!((0..60).contains(&(started - slot)), "{slots:?}");
    }
    // After the last restart, runs start every second.
    let last: Vec<i64> = slots.keys().rev().take(3).copied().collect();
    assert!(last[0] - last[2] <= 4, "{slots:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recurrence_ends_at_its_end() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let put_workflow = |name: &str, body: String| {
        let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
        answer(
            request
                .header("content-type", "application/json")
                .body(body),
        )
    };
    let over = put_workflow("over", recurring(Some("2021-01-01T00:00:00Z"))).await;
    assert_eq!(over.0, 201, "{}", over.1);
    let lasts = put_workflow("lasts", recurring(Some("2999-01-01T00:00:00Z"))).await;
    assert_eq!(lasts.0, 201, "{}", lasts.1);
    let found = at_least(&server, 3).await;
    assert!(
        found.iter().all(|run| run["workflow"] == "lasts"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_still_runs_is_not_joined_by_another() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let waits = "
name: long
schedule: '* * * * * *'
actions: { a: { type: waitForSignal, signal: go } }
";
    put(&server, "long", waits).await;
    put(&server, "tick", EVERY_SECOND).await;
    // While one schedule continues, the other has one active run and starts no second one.
    let found = at_least(&server, 4).await;
    let of = |name: &str| {
        let those = found.iter().filter(|run| run["workflow"] == name);
        those.count()
    };
    assert_eq!(of("long"), 1, "{found:?}");
    assert!(of("tick") >= 3, "{found:?}");
}

pub fn of<'a>(found: &'a [Value], name: &str) -> Vec<&'a Value> {
    let those = found.iter().filter(|run| run["workflow"] == name);
    those.collect()
}

/// Waits until the schedule named `tick` has fired again. All other schedules have been checked by then.
pub async fn after_a_tick(server: &Server) -> Vec<Value> {
    let ticks = |found: &[Value]| of(found, "tick").len();
    let before = ticks(&runs(server).await);
    for _ in 0..600 {
        let found = runs(server).await;
        if ticks(&found) >= before + 2 {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the clock has stopped: {:?}", runs(server).await);
}

/// Makes the saved workflows an hour old, as after an hour without a server.
pub fn an_hour_later(state: &Path, name: &str) {
    let store = open_again(state);
    let hour = 3_600_000;
    let mut stored = store.workflow(name).unwrap().unwrap();
    stored.stored_at = Timestamp(stored.stored_at.0 - hour);
    if let Some(schedule) = &mut stored.schedule {
        schedule.until = Timestamp(schedule.until.0 - hour);
    }
    assert!(store.replace_workflow(&stored, None, &[]).unwrap());
}

/// Changes the saved workflows as a clock that was an hour ahead would have left them.
fn an_hour_ahead(state: &Path, name: &str, too_late: bool) {
    let store = open_again(state);
    let hour = 3_600_000;
    let mut stored = store.workflow(name).unwrap().unwrap();
    if too_late {
        stored.stored_at = Timestamp(now().0 + hour);
    }
    stored.schedule = Some(ScheduleState {
        until: Timestamp(now().0 + hour),
        ..ScheduleState::default()
    });
    assert!(store.replace_workflow(&stored, None, &[]).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_ahead_stops_no_schedule() {
    let place = Place::new();
    let server = Server::start(&place.state());
    for name in ["decided", "kept", "recurs"] {
        let text = match name {
            "recurs" => recurring(None),
            _ => EVERY_SECOND.to_owned(),
        };
        put(&server, name, &text).await;
    }
    at_least(&server, 3).await;
    server.kill();
    an_hour_ahead(&place.state(), "decided", false);
    an_hour_ahead(&place.state(), "kept", true);
    an_hour_ahead(&place.state(), "recurs", true);
    let server = Server::start(&place.state());
    let of_each = |found: &[Value]| {
        let of = |name: &str| {
            let those = found.iter();
            those
                .filter(|run| run["labels"]["windlass.schedule"] == *name)
                .count()
        };
        ["decided", "kept", "recurs"].map(of)
    };
    let before = of_each(&runs(&server).await);
    for _ in 0..600 {
        let after = of_each(&runs(&server).await);
        if before
            .iter()
            .zip(after)
            .all(|(before, after)| after > before + 1)
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!(
        "a schedule has stopped: {before:?}, {:?}",
        of_each(&runs(&server).await)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_skipped_or_made_up_for_once() {
    let place = Place::new();
    let server = Server::start(&place.state());
    // Once a day, at the time that was half an hour ago.
    let at = Timestamp(now().0 - 1_800_000).to_utc();
    let daily = |name: &str, rules: &str| {
        format!(
            "name: {name}\nschedule: {{ cron: '{} * * *'{rules} }}\n\
             actions: {{ a: {{ type: compose, inputs: 1 }} }}\n",
            at.format("%M %H")
        )
    };
    let rules = [
        ("plain", ""),
        ("once", ", missed: run_once"),
        ("queue", ", overlap: queue"),
    ];
    for (name, more) in rules {
        put(&server, name, &daily(name, more)).await;
    }
    put(&server, "tick", EVERY_SECOND).await;
    let found = after_a_tick(&server).await;
    assert_eq!(found.len(), of(&found, "tick").len(), "{found:?}");
    server.kill();
    for (name, _) in rules {
        an_hour_later(&place.state(), name);
    }
    for _ in 0..2 {
        let server = Server::start(&place.state());
        let found = after_a_tick(&server).await;
        assert_eq!(of(&found, "plain").len(), 0, "{found:?}");
        assert_eq!(of(&found, "queue").len(), 0, "{found:?}");
        let made_up = of(&found, "once");
        let id = format!("once-at-{}00Z", at.format("%Y%m%dT%H%M"));
        assert_eq!(made_up.len(), 1, "{made_up:?}");
        assert_eq!(made_up[0]["run"], json!(id));
        server.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_starts_once_when_the_one_before_has_ended() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let waits = "
name: long
schedule: { cron: '* * * * * *', overlap: queue }
actions: { a: { type: waitForSignal, signal: go } }
";
    put(&server, "long", waits).await;
    put(&server, "tick", EVERY_SECOND).await;
    let found = after_a_tick(&server).await;
    assert_eq!(of(&found, "long").len(), 1, "{found:?}");
    server.kill();
    let server = Server::start(&place.state());
    let found = after_a_tick(&server).await;
    let long = of(&found, "long");
    assert_eq!(long.len(), 1, "{found:?}");
    let first = long[0]["run"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{first}/signal");
    let (status, response) = server.post(&path, &json!({ "name": "go" })).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(server.end(&first).await["status"], "Succeeded");
    let mut listed = Vec::new();
    for _ in 0..600 {
        listed = runs(&server).await;
        if of(&listed, "long").len() > 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Only one of the missed times was started, and the next run has it as its previous time.
    assert_eq!(of(&listed, "long").len(), 2, "{listed:?}");
    let found = after_a_tick(&server).await;
    assert_eq!(of(&found, "long").len(), 2, "{found:?}");
}

/// Its due times cannot provide the input.
#[test]
fn a_schedule_whose_runs_need_an_input_is_refused() {
    let place = Place::new();
    let text = "schedule: '30 2 * * *'\ninputs: { day: { type: string } }\n\
                actions: { a: { type: compose, inputs: \"@inputs('day')\" } }\n";
    let file = place.file("needs.yaml", text);
    let put = place.run(&["workflow", "put", "needs", &file]);
    let stderr = String::from_utf8_lossy(&put.stderr).into_owned();
    assert_eq!(put.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("the input `day` has no default"),
        "{stderr}"
    );
    let run = place.run(&["run", &file, "-i", "day=monday"]);
    assert!(run.status.success(), "{run:?}");
}

/// The clock was ahead and was set back: the times in between were decided already, so nothing starts at them.
#[test]
fn times_that_are_decided_are_not_announced() {
    let place = Place::new();
    let text = "schedule: '30 2 * * *'\nactions: { a: { type: compose, inputs: 1 } }\n";
    let file = place.file("nightly.yaml", text);
    let put = place.run(&["workflow", "put", "nightly", &file]);
    assert!(put.status.success(), "{put:?}");
    let until = Timestamp(now().0 + 3 * 24 * 3_600_000);
    let store = open_again(&place.state());
    let mut stored = store.workflow("nightly").unwrap().unwrap();
    stored.schedule = Some(ScheduleState {
        until,
        ..ScheduleState::default()
    });
    assert!(store.replace_workflow(&stored, None, &[]).unwrap());
    drop(store);
    let printed = place.run(&["schedule", "next", "nightly", "-o", "json"]);
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let first = report["next"][0].as_str().unwrap().parse::<DateTime<Utc>>();
    assert!(first.unwrap().timestamp_millis() > until.0, "{report}");
}

#[test]
fn run_pays_no_attention_to_a_schedule() {
    let place = Place::new();
    let file = place.file(
        "yearly.yaml",
        "schedule: { cron: '0 0 1 1 *', timezone: Europe/Berlin, missed: run_once }\n\
         actions: { a: { type: compose, inputs: 5 } }\noutputs: \"@outputs('a')\"",
    );
    let output = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(output.stdout, b"5\n", "{output:?}");
}

#[test]
fn next_of_a_schedule_that_has_ended_names_its_end() {
    let place = Place::new();
    let file = place.file("over.json", &recurring(Some("2021-01-01T00:00:00Z")));
    let next = place.run(&["schedule", "next", &file]);
    let stderr = String::from_utf8_lossy(&next.stderr);
    let expected = "over.json has no further times: every second, from 2020-01-01 00:00:00, until \
                    2021-01-01 00:00:00 (UTC)";
    assert!(stderr.contains(expected), "{stderr}");
    assert!(next.status.success(), "{next:?}");
    let text = "schedule: '0 0 0 1 1 * 2020'\nactions: { a: { type: compose, inputs: 1 } }\n";
    let file = place.file("past.yaml", text);
    let checked = place.run(&["validate", &file]);
    let stderr = String::from_utf8_lossy(&checked.stderr);
    assert!(
        stderr.contains("all of its times are in the past"),
        "{stderr}"
    );
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_cannot_start_says_why_and_is_logged_once() {
    let place = Place::new();
    let state = place.state();
    let shell = "
name: sh
schedule: '* * * * * *'
actions: { a: { type: shell, run: 'true' } }
";
    let server = Start::new(&state).args(&["--allow-shell"]).spawn();
    put(&server, "sh", shell).await;
    put(&server, "tick", EVERY_SECOND).await;
    server.stop();
    let server = Start::new(&state).args(&["--max-runs", "1"]).spawn();
    let before = runs(&server).await.len();
    at_least(&server, before + 2).await;
    let (_, report) = server.get("/v1/workflows/sh/schedule").await;
    let why = report["cannot_start"].as_str().unwrap_or_default();
    assert!(why.contains("--allow-shell"), "{report}");
    let listed = place.run(&["schedule", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("cannot start: `a` may not"), "{listed}");

    // A full server misses times, too.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let text = format!("actions: {{ a: {{ type: http, uri: '{uri}', retry: none }} }}");
    let body = json!({ "text": text });
    // A scheduled run may have the only place.
    while server.post("/v1/runs", &body).await.0 != 201 {}
    server.log_until("its time is late");
    let (_, report) = server.get("/v1/workflows/tick/schedule").await;
    assert_eq!(report["cannot_start"], "engine at capacity, retry later");
    // The pending call fails.
    drop(listener);
    let line = server.log_until("scheduled times have no run");
    assert!(line.contains("engine at capacity"), "{line}");
    let (_, report) = server.get("/v1/workflows/tick/schedule").await;
    assert_eq!(report["cannot_start"], json!(null), "{report}");
    let (_, log) = server.stop();
    let count = log.matches("its schedule cannot be read").count();
    assert_eq!(count, 1, "{log}");
}
