//! A run that failed is retried from an action or an iteration, with the state of that time: over HTTP, on the command
//! line, through a kill, and after its journal was shortened.

use super::process::Place;
use crate::serve::Server;
use crate::support::serve;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A service with a part that is broken until it is repaired, and that can delay its answers.
#[derive(Clone)]
struct World {
    /// The keys of the calls, in order.
    keys: Arc<Mutex<Vec<String>>>,
    calls: watch::Sender<usize>,
    mended: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl World {
    fn new() -> Self {
        Self {
            keys: Arc::default(),
            calls: watch::channel(0).0,
            mended: watch::channel(false).0,
            open: watch::channel(true).0,
        }
    }

    async fn serve(&self) -> String {
        let router = Router::new().route("/{what}/{n}", post(call));
        serve(router.with_state(self.clone())).await
    }

    /// The keys of the calls since the last `take`, without their run: `poll#3/fetch`.
    fn take(&self) -> Vec<String> {
        let keys = std::mem::take(&mut *self.keys.lock().unwrap());
        let own = |key: &String| key.split_once('/').unwrap().1.to_owned();
        keys.iter().map(own).collect()
    }
}

/// The broken part is `fetch` of iteration 3.
async fn call(
    State(world): State<World>,
    Path((what, n)): Path<(String, u64)>,
    headers: HeaderMap,
) -> Response {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    world.keys.lock().unwrap().push(key);
    world.calls.send_modify(|calls| *calls += 1);
    let mut open = world.open.subscribe();
    open.wait_for(|open| *open).await.unwrap();
    if what == "fetch" && n == 3 && !*world.mended.borrow() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    Json(json!({ "n": n })).into_response()
}

/// Five iterations of three steps. The fourth iteration fails at its second step.
const POLL: &str = r#"
name: poll
inputs: { base: { type: string } }
variables: { total: 0, n: 0 }
actions:
  first: { type: http, method: POST, uri: "@{inputs('base')}/first/0" }
  poll:
    type: until
    condition: "@equals(variables('n'), 5)"
    limit: { count: 20, timeout: PT1H }
    actions:
      note: { type: http, method: POST, uri: "@{inputs('base')}/note/@{variables('n')}" }
      fetch:
        type: http
        method: POST
        uri: "@{inputs('base')}/fetch/@{variables('n')}"
        timeout: PT1M
        retry: { type: fixed, interval: PT0.01S, count: 1, on: [http] }
      add: { type: incrementVariable, name: total, value: "@body('fetch').n" }
      next: { type: incrementVariable, name: n, value: 1 }
outputs: { total: "@variables('total')", n: "@variables('n')" }
"#;

/// A run that has failed because of the broken part.
struct Failed {
    world: World,
    place: Place,
    server: Server,
    run: String,
}

impl Failed {
    /// Starts the run, sends it signals, and waits for its end.
    async fn of(workflow: &str, signals: &[&str]) -> Self {
        let world = World::new();
        let base = world.serve().await;
        let place = Place::new();
        let server = Server::start(&place.state());
        let run = server.begin(workflow, json!({ "base": base })).await;
        for name in signals {
            let path = format!("/v1/runs/{run}/signal");
            let (status, response) = server.post(&path, &json!({ "name": name })).await;
            assert_eq!(status, 200, "{response}");
        }
        let outcome = server.end(&run).await;
        assert_eq!(outcome["status"], "Failed", "{outcome}");
        assert_eq!(outcome["error"]["action"], "fetch", "{outcome}");
        Self {
            world,
            place,
            server,
            run,
        }
    }

    /// The same, and then the service is repaired.
    async fn and_mended(workflow: &str, signals: &[&str]) -> Self {
        let failed = Self::of(workflow, signals).await;
        failed.world.take();
        failed.world.mended.send_replace(true);
        failed
    }
}

async fn retry(server: &Server, run: &str, body: Value) -> (u16, Value) {
    server.post(&format!("/v1/runs/{run}/retry"), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_action_or_an_iteration_with_the_state_of_then() {
    let Failed {
        world,
        place: _place,
        server,
        run,
    } = Failed::of(POLL, &[]).await;
    assert_eq!(world.take().len(), 1 + 3 * 2 + 1 + 2);

    // The service is still broken, so the retry fails at the same place after all of its attempts.
    let (status, again) = retry(&server, &run, json!({ "from": "failed" })).await;
    assert_eq!(status, 201, "{again}");
    let again = again["run"].as_str().unwrap().to_owned();
    assert_eq!(server.end(&again).await["status"], "Failed");
    assert_eq!(world.take(), ["poll#3/fetch", "poll#3/fetch"]);

    world.mended.send_replace(true);
    let whole = |from: u64| {
        let steps = |n| [format!("poll#{n}/note"), format!("poll#{n}/fetch")];
        (from..5).flat_map(steps).collect::<Vec<String>>()
    };
    for (of, from, expected) in [
        (&run, "failed", whole(3)[1..].to_vec()),
        (&run, "fetch", whole(3)[1..].to_vec()),
        (&run, "poll#3", whole(3)),
        (&run, "poll#1/fetch", whole(1)[1..].to_vec()),
        (&run, "poll#0", whole(0)),
        (&run, "poll", whole(0)),
        (&run, "first", [vec!["first".to_owned()], whole(0)].concat()),
        // A retry can be retried, also from the place where it started.
        (&again, "failed", whole(3)[1..].to_vec()),
        (&again, "poll#3/fetch", whole(3)[1..].to_vec()),
    ] {
        let (status, response) = retry(&server, of, json!({ "from": from })).await;
        assert_eq!(status, 201, "{from}: {response}");
        let new = response["run"].as_str().unwrap();
        let outcome = server.end(new).await;
        assert_eq!(outcome["status"], "Succeeded", "{from}: {outcome}");
        assert_eq!(outcome["output"], json!({ "total": 10, "n": 5 }), "{from}");
        // The effect is a new one: its key names the new run.
        let first = world.keys.lock().unwrap()[0].clone();
        assert!(first.starts_with(&format!("{new}/")), "{first}");
        assert_eq!(world.take(), expected, "{from}");
        let (_, status) = server.get(&format!("/v1/runs/{new}")).await;
        assert_eq!(status["labels"]["windlass.retry_of"], **of, "{status}");
    }
    for from in ["poll#4", "nobody", "poll#3/nobody", "oll#3", ""] {
        let (status, refused) = retry(&server, &run, json!({ "from": from })).await;
        let kind = json!("urn:windlass:no-place");
        assert_eq!(
            (status, &refused["type"]),
            (409, &kind),
            "{from}: {refused}"
        );
        let misspelt = refused["detail"]
            .as_str()
            .unwrap()
            .ends_with("did you mean `poll`?");
        assert_eq!(misspelt, from == "oll#3", "{refused}");
    }
    // The old run is unchanged.
    let (_, status) = server.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(status["status"], "Failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_the_retried_part_changes_nothing() {
    let Failed {
        world,
        place,
        server,
        run,
    } = Failed::and_mended(POLL, &[]).await;
    world.open.send_replace(false);
    let before = *world.calls.borrow();
    let (status, response) =
        retry(&server, &run, json!({ "from": "poll#3", "run": "again" })).await;
    assert_eq!(status, 201, "{response}");
    let mut calls = world.calls.subscribe();
    calls.wait_for(|calls| *calls > before).await.unwrap();
    // Kills before its first step has ended, and again in the middle.
    server.kill();
    let server = Server::start(&place.state());
    calls.wait_for(|calls| *calls > before + 1).await.unwrap();
    world.open.send_replace(true);
    calls.wait_for(|calls| *calls > before + 2).await.unwrap();
    server.kill();
    let server = Server::start(&place.state());
    let outcome = server.end("again").await;
    assert_eq!(outcome["output"], json!({ "total": 10, "n": 5 }));
    let mut keys = world.take();
    assert_eq!(keys[..2], ["poll#3/note", "poll#3/note"], "{keys:?}");
    keys.dedup();
    let expected = ["poll#3/note", "poll#3/fetch", "poll#4/note", "poll#4/fetch"];
    assert_eq!(keys, expected);
}

/// Items of a foreach, two at a time, while another step takes long.
const EACH: &str = r#"
name: each
inputs: { base: { type: string } }
actions:
  both:
    type: parallel
    branches:
      items:
        actions:
          each:
            type: foreach
            foreach: [0, 1, 2, 3, 4]
            concurrency: 1
            actions:
              note: { type: http, method: POST, uri: "@{inputs('base')}/note/@{item()}" }
              fetch: { type: http, method: POST, uri: "@{inputs('base')}/fetch/@{item()}" }
      long:
        actions:
          other: { type: waitForSignal, signal: go }
outputs: "@outputs('both')"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn from_an_item_while_another_branch_waits() {
    let Failed {
        world,
        place: _place,
        server,
        run,
    } = Failed::and_mended(EACH, &["go"]).await;
    for (from, expected) in [
        (
            "failed",
            vec!["each#3/fetch", "each#4/note", "each#4/fetch"],
        ),
        (
            "each#3",
            vec!["each#3/note", "each#3/fetch", "each#4/note", "each#4/fetch"],
        ),
    ] {
        let (status, response) = retry(&server, &run, json!({ "from": from })).await;
        assert_eq!(status, 201, "{response}");
        let new = response["run"].as_str().unwrap();
        // The other branch may not have received its signal by then.
        let signal = format!("/v1/runs/{new}/signal");
        server.post(&signal, &json!({ "name": "go" })).await;
        let outcome = server.end(new).await;
        assert_eq!(outcome["status"], "Succeeded", "{from}: {outcome}");
        assert_eq!(world.take(), expected, "{from}");
        let items = outcome["output"]["items"]["each"].as_array().unwrap();
        assert_eq!(items.len(), 5, "{outcome}");
    }
}

/// Makes enough steps between its requests that a snapshot shortens the journal meanwhile.
const LARGE: &str = r#"
name: large
inputs: { base: { type: string } }
variables: { n: 0, steps: 0, all: [] }
actions:
  poll:
    type: until
    condition: "@equals(variables('n'), 4)"
    limit: { count: 20, timeout: PT1H }
    actions:
      spin:
        type: until
        condition: "@greaterOrEquals(variables('loopIndex'), 400)"
        limit: { count: 500, timeout: PT1H }
        actions:
          step: { type: incrementVariable, name: steps, value: 1 }
      grow: { type: appendToArrayVariable, name: all, value: "@variables('n')" }
      fetch: { type: http, method: POST, uri: "@{inputs('base')}/fetch/@{variables('n')}" }
      next: { type: incrementVariable, name: n, value: 1 }
outputs: "@length(variables('all'))"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn discarded_work_is_reported_and_the_failed_action_is_stored() {
    let Failed {
        world,
        place: _place,
        server,
        run,
    } = Failed::and_mended(LARGE, &[]).await;
    let (_, dump) = server.get(&format!("/v1/runs/{run}/dump")).await;
    let snapshot = &dump["runs"][0]["header"]["snapshot"];
    assert!(snapshot.as_u64().unwrap() > 0, "no snapshot: {snapshot}");
    let (status, refused) = retry(&server, &run, json!({ "from": "poll#0" })).await;
    assert_eq!(status, 409, "{refused}");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("are not stored one by one"), "{detail}");
    let (status, response) = retry(&server, &run, json!({ "from": "failed" })).await;
    assert_eq!(status, 201, "{response}");
    let outcome = server.end(response["run"].as_str().unwrap()).await;
    assert_eq!(outcome["output"], 4, "{}", outcome["error"]);
    assert_eq!(world.take(), ["poll#3/fetch"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_command_line_alone_next_to_a_server_and_remotely() {
    let Failed {
        world,
        place,
        server,
        run,
    } = Failed::and_mended(POLL, &[]).await;
    let url = server.url.clone();
    let mut server = Some(server);
    for remote in [true, false, false] {
        let mut args = vec!["retry", &run, "--from", "failed", "-o", "json"];
        if remote {
            args.extend(["--server", &url]);
        }
        let output = if remote {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
            command.args(&args).output().unwrap()
        } else {
            // The run arrived over HTTP, so without a server the command's flags decide what it may do.
            let mut command = place.command(&args);
            let command = command.env("WINDLASS_ALLOW_PRIVATE_NETWORK", "true");
            command.output().unwrap()
        };
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report, json!({ "total": 10, "n": 5 }));
        assert_eq!(world.take()[0], "poll#3/fetch");
        let nowhere = place.run(&["retry", &run, "--from", "poll#7"]);
        assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
        if !remote && let Some(server) = server.take() {
            assert!(server.stop().0.success());
        }
    }
}
