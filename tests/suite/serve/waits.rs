//! What is reported of a run that waits: for a slot for its call, for its next attempt, or for active items of a
//! foreach.

use super::events::Events;
use super::{PATIENCE, SLEEP, Server, Start, windlass};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Calls once.
const CALL: &str = r#"
name: call
inputs: { base: { type: string } }
actions:
  ask: { type: http, uri: "@{inputs('base')}/held/1" }
"#;

/// Calls repeatedly, each time after a delay.
const POLL: &str = r#"
name: poll
inputs: { base: { type: string } }
actions:
  poll:
    type: until
    condition: "@equals(body('ask').done, false)"
    limit: { count: 3, timeout: PT1H }
    on_limit: continue
    delay: 1ms
    actions:
      ask: { type: http, uri: "@{inputs('base')}/held/1" }
"#;

/// The second attempt is due in an hour.
const AGAIN: &str = r#"
name: again
inputs: { base: { type: string } }
actions:
  ask:
    type: http
    uri: "@{inputs('base')}/busy/1"
    retry: { type: fixed, count: 3, interval: PT1H }
"#;

/// Three items at a time; the item `bad` fails.
const ITEMS: &str = r#"
name: items
inputs: { base: { type: string }, items: { type: array } }
actions:
  each:
    type: foreach
    foreach: "@inputs('items')"
    concurrency: 3
    actions:
      nap: { type: wait, interval: { unit: Second, count: 0 } }
      ask: { type: http, uri: "@{inputs('base')}/@{item()}", runAfter: { nap: [Succeeded] } }
"#;

/// A server: the answer to `held` waits until the test allows it; `busy` and `bad` are refused.
struct Outside {
    base: String,
    let_go: watch::Sender<usize>,
}

#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn outside() -> Outside {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (let_go, _) = watch::channel(0);
    let state = let_go.clone();
    let answer = async |State(gate): State<watch::Sender<usize>>,
                        Path((kind, _)): Path<(String, String)>| match &*kind {
        "held" => {
            let _ = gate.subscribe().wait_for(|left| *left > 0).await;
            gate.send_modify(|left| *left -= 1);
            (StatusCode::OK, Json(json!({ "done": true })))
        }
        "busy" => (StatusCode::SERVICE_UNAVAILABLE, Json(json!("later"))),
        _ => (StatusCode::BAD_REQUEST, Json(json!("no"))),
    };
    let router = Router::new()
        .route("/{kind}/{n}", get(answer))
        .with_state(state);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Outside { base, let_go }
}

/// Polls a run's status until it fits.
async fn until(server: &Server, run: &str, fits: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..PATIENCE.as_millis() / 20 {
        let (_, status) = server.get(&format!("/v1/runs/{run}")).await;
        if fits(&status) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("run {run} never came there");
}

fn calls(status: &Value) -> bool {
    status["doing"][0]["waits_for"] == "call"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_call_is_distinguished() {
    let outside = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--max-effects", "1"]).spawn();
    let input = json!({ "base": outside.base });
    let first = server.begin(CALL, input.clone()).await;
    let running = until(&server, &first, calls).await;
    let doing = &running["doing"][0];
    assert!(
        doing["since"].is_string() && doing.get("queued").is_none(),
        "{doing}"
    );
    let second = server.begin(CALL, input).await;
    let waiting = until(&server, &second, |status| {
        status["doing"][0]["queued"] == true
    })
    .await;
    let doing = &waiting["doing"][0];
    assert_eq!(doing["waits_for"], "call");
    assert!(doing["since"].is_null(), "{doing}");
    let row = async || {
        let path = format!("/v1/runs?detail=true&runs={second}");
        server.get(&path).await.1["runs"][0]["waits_for"].clone()
    };
    assert_eq!(row().await["queued"], true);
    let shown = windlass(dir.path(), &["status", &second]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("queued: the maximum number of calls is running"),
        "{shown}"
    );
    // The start of a call is not a step of the run, but it is reported.
    let mut events = Events::at(&server, &format!("/v1/events?runs={second}"), None).await;
    let mut next = async || loop {
        let event = events.next().await.unwrap();
        if event.name == "status" {
            return event.data["doing"][0].clone();
        }
    };
    assert_eq!(next().await["queued"], true);
    outside.let_go.send_modify(|left| *left += 1);
    let begun = next().await;
    assert_eq!(begun["waits_for"], "call");
    assert!(
        begun.get("queued").is_none() && begun["since"].is_string(),
        "{begun}"
    );
    assert!(row().await["since"].is_string());
    outside.let_go.send_modify(|left| *left += 1);
    assert_eq!(server.end(&second).await["status"], "Succeeded");
}

/// Its step is stored together with the answer, unless the answer takes long.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_poll_is_reported_to_other_processes() {
    let outside = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).spawn();
    let run = server.begin(POLL, json!({ "base": outside.base })).await;
    for iteration in 0..2 {
        let asks = |status: &Value| {
            calls(status) && status["doing"][0]["inside"] == format!("poll#{iteration}")
        };
        let status = until(&server, &run, asks).await;
        assert!(status["doing"][0]["since"].is_string(), "{status}");
        outside.let_go.send_modify(|left| *left += 1);
    }
    outside.let_go.send_modify(|left| *left += 7);
    assert_eq!(server.end(&run).await["status"], "Succeeded");
}

/// After a server was stopped, the call that it waited for can be seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_is_cut_by_a_stop_is_stored() {
    let outside = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path()).args(&["--grace", "1s"]).spawn();
    let run = server.begin(POLL, json!({ "base": outside.base })).await;
    until(&server, &run, calls).await;
    outside.let_go.send_modify(|left| *left += 1);
    // The first call is answered, and the second one has arrived.
    while *outside.let_go.borrow() > 0 || outside.let_go.receiver_count() != 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(server.ended().0.success());
    let status = windlass(dir.path(), &["status", &run, "-o", "json"]).stdout;
    let status: Value = serde_json::from_slice(&status).unwrap();
    assert!(calls(&status), "{status}");
    assert_eq!(status["doing"][0]["inside"], "poll#1");
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_attempts_the_next_one_is_reported() {
    let outside = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(AGAIN, json!({ "base": outside.base })).await;
    let status = until(&server, &run, |status| {
        status["doing"][0]["waits_for"] == "retry"
    })
    .await;
    let doing = &status["doing"][0];
    assert_eq!(
        (&doing["attempt"], &doing["max_attempts"]),
        (&json!(2), &json!(4)),
        "{doing}"
    );
    assert_eq!(doing["last_error"]["code"], "503");
}

#[tokio::test(flavor = "multi_thread")]
async fn items_under_way_have_lanes_and_a_failed_foreach_says_so() {
    let outside = outside().await;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let items = json!(["held/0", "held/1", "held/2", "held/3", "bad/4"]);
    let run = server
        .begin(ITEMS, json!({ "base": outside.base, "items": items }))
        .await;
    let three = |status: &Value| {
        let doing = status["doing"].as_array().into_iter().flatten();
        doing.filter(|one| one["waits_for"] == "call").count() == 3
    };
    let status = until(&server, &run, three).await;
    let fork = &status["forks"][0];
    assert_eq!((&fork["path"], &fork["total"]), (&json!("each"), &json!(5)));
    let lanes = fork["lanes"].as_array().unwrap();
    let inside = |doing: &Value| doing["inside"].as_str().unwrap().to_owned();
    let doing: Vec<String> = status["doing"]
        .as_array()
        .unwrap()
        .iter()
        .map(inside)
        .collect();
    for (item, lane) in lanes.iter().enumerate() {
        assert_eq!(lane["item"], item);
        assert_eq!(lane["path"], format!("each#{item}"));
        assert!(lane["since"].is_string() && lane["attempt"] == 1, "{lane}");
        assert!(doing.contains(&format!("each#{item}")), "{doing:?}");
        let path = format!("/v1/runs/{run}/iteration?path=each%23{item}");
        let (code, one) = server.get(&path).await;
        assert_eq!((code, &one["status"]), (200, &json!("Running")), "{one}");
        assert_eq!(one["started_at"], lane["since"]);
        assert_eq!(
            one["waits"].as_array().unwrap().len(),
            1,
            "its own sleep: {one}"
        );
        assert_eq!(one["waits"][0]["kind"], "sleep");
    }
    assert_eq!(lanes.len(), 3);
    outside.let_go.send_replace(4);
    assert_eq!(server.end(&run).await["status"], "Failed");
    let (_, loops) = server.get(&format!("/v1/runs/{run}/loops")).await;
    assert_eq!(loops["loops"][0]["status"], "failed", "{loops}");
    let run = server
        .begin(ITEMS, json!({ "base": outside.base, "items": [] }))
        .await;
    assert_eq!(server.end(&run).await["status"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_take_several_workflows_and_flags_may_be_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for name in ["one", "two", "a, b"] {
        let text = SLEEP.replace("name: sleep", &format!("name: \"{name}\""));
        server.begin(&text, json!(null)).await;
    }
    for (names, total) in [("one,two", 2), ("two", 1), ("a,%20b", 1), ("one,nobody", 1)] {
        let (_, list) = server
            .get(&format!("/v1/runs?workflow={names}&facets=1"))
            .await;
        assert_eq!(list["total"], total, "{names}: {list}");
        assert_eq!(list["facets"]["workflow"].as_object().unwrap().len(), 3);
    }
    let body = json!({ "text": SLEEP });
    for (flag, drawn) in [("1", true), ("true", true), ("0", false)] {
        let (status, found) = server
            .post(&format!("/v1/validate?graph={flag}"), &body)
            .await;
        assert_eq!(status, 200, "{found}");
        assert_eq!(found["graph"].is_object(), drawn);
    }
    assert_eq!(server.post("/v1/validate?graph=yes", &body).await.0, 400);
}

/// Asks two questions with a form.
const APPROVALS: &str = "
name: approvals
actions:
  first: { type: waitForSignal, signal: go, choices: [a, b] }
  second: { type: waitForSignal, signal: go, choices: [a, b] }
outputs: \"@createArray(outputs('first').choice, outputs('second').choice)\"
";

/// Two people answer the same question: only one answer is accepted. A repeated answer changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_the_wait_that_its_sender_saw_and_is_received_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(APPROVALS, json!({})).await;
    let path = format!("/v1/runs/{run}");
    let seen = async |wanted: u64| loop {
        let (_, report) = server.get(&path).await;
        if report["doing"][0]["received"] == wanted {
            break;
        }
        assert!(report["status"] != "Succeeded", "{report}");
    };
    let answer = |choice: &str, received: Option<u64>, id: Option<&str>| json!({ "name": "go", "payload": { "choice": choice }, "received": received, "id": id });
    let signal = format!("{path}/signal");
    seen(0).await;
    let (one, other) = (answer("a", Some(0), None), answer("b", Some(0), None));
    let (one, other) = tokio::join!(server.post(&signal, &one), server.post(&signal, &other));
    let mut codes = [one.0, other.0];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409], "{one:?} {other:?}");
    let refused = if one.0 == 409 { one.1 } else { other.1 };
    assert_eq!(refused["type"], "urn:windlass:answered", "{refused}");
    seen(1).await;
    let last = answer("a", Some(1), Some("signal-7"));
    assert_eq!(server.post(&signal, &last).await.0, 200);
    let outcome = server.end(&run).await;
    assert_eq!(outcome["output"][1], "a", "{outcome}");
    // The answer to the request may have been lost.
    let (status, again) = server.post(&signal, &last).await;
    assert_eq!((status, &again["status"]), (200, &json!("Succeeded")));
    let new = answer("a", None, Some("signal-8"));
    assert_eq!(
        server.post(&signal, &new).await.1["type"],
        "urn:windlass:run-ended"
    );
    let bad = answer("a", None, Some("no id"));
    assert_eq!(server.post(&signal, &bad).await.0, 400);
}
