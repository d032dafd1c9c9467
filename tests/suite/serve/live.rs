//! The latest state of many runs as a stream: what is sent, how often, and what a client gets after it reconnects.

use super::events::{Event, Events};
use super::{COUNT, SLEEP, Server, Start};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The next event of this name; stores the last id of all events read.
async fn next(events: &mut Events, name: &str, id: &mut Option<String>) -> Event {
    loop {
        let event = events.next().await.expect("the stream goes on");
        *id = event.id.clone().or(id.take());
        if event.name == name {
            return event;
        }
    }
}

/// Reads until a row of this run fits; returns all rows read.
async fn until(
    events: &mut Events,
    id: &mut Option<String>,
    run: &str,
    fits: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let event = next(events, "rows", id).await;
        let rows = event.data.as_array().unwrap().clone();
        let done = rows.iter().any(|row| row["run"] == run && fits(row));
        all.extend(rows);
        if done {
            return all;
        }
    }
}

fn is(status: &'static str) -> impl Fn(&Value) -> bool {
    move |row| row["status"] == status
}

fn runs(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["run"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_gets_the_latest_and_no_more_often_than_requested() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let before = server.begin(SLEEP, json!(null)).await;
    let mut id = None;
    let mut events = Events::at(&server, "/v1/events?max_hz=5", None).await;
    let hello = next(&mut events, "hello", &mut id).await;
    assert_eq!(hello.data["access"], "admin");
    assert_eq!(hello.data["resumed"], false);
    assert_eq!(hello.data["version"], env!("CARGO_PKG_VERSION"));
    assert!(id.is_some(), "a client that breaks off now misses nothing");
    let begun = Instant::now();
    let run = server.begin(COUNT, json!({ "to": 900 })).await;
    server.end(&run).await;
    let rows = until(&mut events, &mut id, &run, is("Succeeded")).await;
    assert!(
        runs(&rows).iter().all(|reported| *reported == run),
        "{before} did not change: {rows:?}"
    );
    let most = begun.elapsed().as_secs_f64() * 5.0 + 2.0;
    assert!(
        rows.len() as f64 <= most,
        "{} rows for 900 iterations",
        rows.len()
    );
    let last = rows.last().unwrap();
    assert_eq!(last["loop"]["iterations_completed"], 900);
    assert_eq!(last["loop"]["recent"], "s".repeat(24));
    // The server's own answer is the same.
    let (_, list) = server
        .get(&format!("/v1/runs?detail=true&runs={run}"))
        .await;
    assert_eq!(list["runs"][0], *last);
    for wrong in [
        "max_hz=0",
        "max_hz=NaN",
        "max_hz=1000",
        "after=7",
        "colour=red",
    ] {
        assert_eq!(
            server.get(&format!("/v1/events?{wrong}")).await.0,
            400,
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnecting_client_gets_what_changed_also_from_another_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let mut slept = Vec::new();
    for _ in 0..3 {
        slept.push(server.begin(SLEEP, json!(null)).await);
    }
    let command = async |server: &Server, run: &str, verb: &str| {
        let (status, _) = server
            .post(&format!("/v1/runs/{run}/{verb}"), &json!(null))
            .await;
        assert_eq!(status, 200);
    };
    let mut id = None;
    let mut events = Events::at(&server, "/v1/events?max_hz=50", None).await;
    next(&mut events, "hello", &mut id).await;
    command(&server, &slept[0], "pause").await;
    until(&mut events, &mut id, &slept[0], is("Paused")).await;
    drop(events);

    command(&server, &slept[1], "pause").await;
    command(&server, &slept[1], "resume").await;
    let mut events = Events::at(&server, "/v1/events", id.as_deref()).await;
    let mut known = id.clone();
    let hello = next(&mut events, "hello", &mut known).await;
    assert_eq!(hello.data["resumed"], true);
    let rows = next(&mut events, "rows", &mut known).await.data;
    assert_eq!(runs(rows.as_array().unwrap()), [&slept[1]]);
    assert_eq!(rows[0]["status"], "Waiting");

    // The server is killed with unsent changes, and the next one sends them.
    drop(events);
    command(&server, &slept[2], "cancel").await;
    server.kill();
    let server = Server::start(dir.path());
    let path = format!("/v1/events?after={}", known.as_deref().unwrap());
    let mut events = Events::at(&server, &path, None).await;
    let again = next(&mut events, "hello", &mut known).await;
    assert_eq!(again.data["resumed"], false);
    assert_ne!(
        again.data["server_started_at"],
        hello.data["server_started_at"]
    );
    let rows = until(&mut events, &mut known, &slept[2], is("Cancelled")).await;
    let mut reported = runs(&rows);
    reported.sort_unstable();
    reported.dedup();
    assert_eq!(reported.len(), rows.len(), "none is sent twice");
    // A forgotten run disappears from the list.
    server.post("/v1/prune", &json!({ "keep": 0 })).await;
    let gone = next(&mut events, "gone", &mut known).await;
    assert_eq!(gone.data, json!([slept[2]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_is_lost_over_kills() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path());
    let mut id = None;
    let mut events = Events::at(&server, "/v1/events?max_hz=50", None).await;
    next(&mut events, "hello", &mut id).await;
    let mut known = std::collections::BTreeMap::new();
    let mut begun = Vec::new();
    for kill in 0..3 {
        for _ in 0..20 {
            begun.push(server.begin(COUNT, json!({ "to": 3 })).await);
        }
        // Some events have been read, and some are in transit when the server is killed.
        until(&mut events, &mut id, &begun[kill * 20 + 5], |_| true)
            .await
            .iter()
            .for_each(|row| drop(known.insert(row["run"].to_string(), row["commit"].clone())));
        server.kill();
        server = Server::start(dir.path());
        events = Events::at(&server, "/v1/events?max_hz=50", id.as_deref()).await;
    }
    for run in &begun {
        server.end(run).await;
    }
    let last = server.begin(COUNT, json!({ "to": 1 })).await;
    let rows = until(&mut events, &mut id, &last, is("Succeeded")).await;
    for row in rows {
        known.insert(row["run"].to_string(), row["commit"].clone());
    }
    let (_, list) = server.get("/v1/runs?limit=100").await;
    let there = list["runs"].as_array().unwrap();
    assert_eq!(there.len(), 61);
    for run in there {
        assert_eq!(
            known.get(&run["run"].to_string()),
            Some(&run["commit"]),
            "{run}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn named_runs_are_sent_with_their_statuses() {
    let dir = tempfile::tempdir().unwrap();
    let roles = [("admin", "secret"), ("view", "look-only")];
    let state = dir.path().join("state");
    let server = Start::new(&state).roles(dir.path(), &roles).spawn();
    let as_full = async |path: &str, body: Value| {
        let request = server
            .ask(reqwest::Method::POST, path)
            .bearer_auth("secret");
        super::answer(super::with(request, &body)).await.1
    };
    let one = as_full("/v1/runs", json!({ "text": SLEEP })).await["run"].clone();
    let other = as_full("/v1/runs", json!({ "text": SLEEP })).await["run"].clone();
    let (one, other) = (one.as_str().unwrap(), other.as_str().unwrap());
    let session = server.ask(reqwest::Method::POST, "/v1/session");
    let session = session.bearer_auth("look-only").send().await.unwrap();
    let cookie = session.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let both = format!("/v1/events?runs=*,{other}");
    let request = server
        .ask(reqwest::Method::GET, &both)
        .bearer_auth("secret");
    let mut both = Events::from(request.send().await.unwrap());
    let path = format!("/v1/events?runs={one},nobody");
    let request = server
        .ask(reqwest::Method::GET, &path)
        .header("cookie", cookie);
    let mut events = Events::from(request.send().await.unwrap());
    let mut id = None;
    let hello = next(&mut events, "hello", &mut id).await;
    assert_eq!(hello.data["access"], "view");
    let gone = next(&mut events, "gone", &mut id).await;
    assert_eq!(gone.data, json!(["nobody"]));
    assert_eq!(next(&mut events, "run", &mut id).await.data["run"], one);
    let status = next(&mut events, "status", &mut id).await;
    assert_eq!(status.data["doing"][0]["waits_for"], "sleep");
    as_full(&format!("/v1/runs/{other}/cancel"), json!(null)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    as_full(&format!("/v1/runs/{one}/cancel"), json!(null)).await;
    let row = next(&mut events, "run", &mut id).await;
    assert_eq!(
        (&row.data["run"], &row.data["status"]),
        (&json!(one), &json!("Cancelled"))
    );
    let status = next(&mut events, "status", &mut id).await;
    assert_eq!(status.data["outcome"]["status"], "Cancelled");
    // A list and a run in one stream.
    assert_eq!(
        next(&mut both, "status", &mut None).await.data["run"],
        other
    );
    let rows = next(&mut both, "rows", &mut None).await.data;
    assert_eq!(rows[0]["run"], other);
    assert_eq!(
        next(&mut both, "status", &mut None).await.data["status"],
        "Cancelled"
    );
    assert_eq!(next(&mut both, "rows", &mut None).await.data[0]["run"], one);
    assert!(status.id.is_some());
    // The stream ends with the server, so that the client reconnects.
    server.signal(nix::sys::signal::Signal::SIGTERM);
    while events.next().await.is_some() {}
}
