//! Values that workflows keep between their runs: each is written once through kills, never lost to another run, and
//! contained in every copy of the store.

use super::process::Place;
use crate::life::first_use::Folder;
use crate::serve::{Server, Start, answer, client, with};
use crate::support::sized;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The time up to which a file was read, as a value between runs.
const WATERMARK: &str = r#"
name: sync
inputs: { until: { type: string, default: "2026-02-01" } }
state: { since: "2026-01-01", total: 0 }
actions:
  fetch: { type: compose, inputs: "from @{state('since')} until @{inputs('until')}" }
  again: { type: compose, inputs: "{{ state.since }}/{{ lastRun.outputs.fetched if lastRun else 'never' }}" }
  keep: { type: setState, name: since, value: "@inputs('until')" }
  count: { type: setState, inputs: { name: total, value: "@add(state('total'), 1)" } }
outputs:
  fetched: "@outputs('fetch')"
  again: "@outputs('again')"
  since: "@state('since')"
  last: "@lastRun()"
"#;

fn succeeded(place: &Place, args: &[&str]) -> Value {
    place.json(&[args, &["-o", "json"]].concat())
}

fn fails(place: &Place, args: &[&str], code: i32, says: &[&str]) {
    let output = place.run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    says.iter()
        .for_each(|part| assert!(stderr.contains(part), "{part}: {stderr}"));
}

fn text(place: &Place, args: &[&str]) -> String {
    let output = place.run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

#[test]
fn a_run_begins_where_the_last_one_ended() {
    let place = Place::new();
    let file = place.file("sync.yaml", WATERMARK);
    let first = succeeded(&place, &["run", &file, "--id", "one"]);
    let output = &first;
    assert_eq!(
        output["fetched"], "from 2026-01-01 until 2026-02-01",
        "{first}"
    );
    assert_eq!(output["again"], "2026-01-01/never");
    assert_eq!(output["since"], "2026-02-01");
    assert_eq!(output["last"], Value::Null);
    let second = succeeded(&place, &["run", &file, "-i", "until=2026-03-01"]);
    let output = &second;
    assert_eq!(
        output["fetched"], "from 2026-02-01 until 2026-03-01",
        "{second}"
    );
    assert_eq!(
        output["again"],
        "2026-02-01/from 2026-01-01 until 2026-02-01"
    );
    let last = &output["last"];
    assert_eq!(last["id"], "one");
    assert_eq!(last["outputs"], first);
    assert_eq!(last["scheduledTime"], Value::Null);
    assert!(
        last["startTime"].as_str() <= last["endTime"].as_str(),
        "{last}"
    );
    assert_eq!(
        text(&place, &["state", "get", "sync", "since"]),
        "2026-03-01"
    );
    let total = succeeded(&place, &["state", "get", "sync", "total"]);
    assert_eq!((&total["value"], &total["version"]), (&json!(2), &json!(2)));
    let key = total["key"].as_str().unwrap();
    assert!(key.starts_with(total["run"].as_str().unwrap()), "{total}");
}

/// Waits for a signal between reading a value and writing it.
const SLOW: &str = r#"
name: slow
state: { n: 0 }
actions:
  read: { type: compose, inputs: "@state('n')" }
  go: { type: waitForSignal, signal: go, timeout: PT1M }
  write: { type: setState, name: n, value: "@add(outputs('read'), 10)" }
outputs: { n: "@state('n')" }
"#;

async fn put(server: &Server, name: &str, text: &str) {
    let request = server.ask(Method::PUT, &format!("/v1/workflows/{name}"));
    let request = request.header("content-type", "application/yaml");
    let (status, response) = answer(request.body(text.to_owned())).await;
    assert!(status < 300, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runs_at_once_the_later_write_conflicts() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let first = server.begin(SLOW, Value::Null).await;
    let second = server.begin(SLOW, Value::Null).await;
    for run in [&first, &second] {
        let go = json!({ "name": "go" });
        let (status, response) = server.post(&format!("/v1/runs/{run}/signal"), &go).await;
        assert_eq!(status, 200, "{response}");
        server.end(run).await;
    }
    let ended = server.end(&first).await;
    assert_eq!(ended["output"], json!({ "n": 10 }), "{ended}");
    let ended = server.end(&second).await;
    let error = &ended["error"];
    assert_eq!(error["kind"], "conflict", "{ended}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&first) && message.contains("version 1"),
        "{message}"
    );
    // The workflow arrived over TCP: the operator's workflow with the same name has a separate value.
    let (status, response) = server.get("/v1/state/slow/n").await;
    assert_eq!(
        (status, &response["type"]),
        (404, &json!("urn:windlass:unknown-state")),
        "{response}"
    );
    let (status, response) = server.get("/v1/state/slow/n?guest=true").await;
    assert_eq!(
        (status, &response["value"], &response["run"]),
        (200, &json!(10), &json!(first)),
        "{response}"
    );
}

/// Counts, and reads again if another run was faster.
const COUNTER: &str = r#"
name: counter
state: { n: 0 }
actions:
  more:
    type: until
    condition: "@equals(actions('write').status, 'Succeeded')"
    limit: { count: 1000, timeout: PT5M }
    actions:
      fresh: { type: getState, name: n }
      write:
        type: setState
        name: n
        value: "@add(state('n'), 1)"
        continue_on_error: true
outputs: { n: "@state('n')", read: "@outputs('fresh')" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_read_again_lose_no_write() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(server.begin(COUNTER, Value::Null).await);
    }
    let mut found = Vec::new();
    for run in &runs {
        let ended = server.end(run).await;
        found.push(ended["output"]["n"].as_i64().unwrap());
    }
    found.sort_unstable();
    assert_eq!(found, (1..=8).collect::<Vec<i64>>());
    let (_, response) = server.get("/v1/state/counter/n?guest=true").await;
    assert_eq!(
        (&response["value"], &response["version"]),
        (&json!(8), &json!(8)),
        "{response}"
    );
}

/// Writes many times; each value is one more.
const MANY: &str = r#"
name: many
state: { n: 0 }
actions:
  count:
    type: until
    condition: "@greaterOrEquals(state('n'), 600)"
    limit: { count: 600, timeout: PT5M }
    actions:
      write: { type: setState, name: n, value: "@add(state('n'), 1)" }
outputs: { n: "@state('n')" }
"#;

/// The process is killed at any moment. A repeated write is the same write, and none is lost.
#[test]
fn writes_survive_kills() {
    for (seed, store) in [(1, "sled"), (2, "fjall")] {
        let place = Place::new();
        let file = place.file("many.yaml", MANY);
        let mut random = StdRng::seed_from_u64(seed);
        let mut args = vec!["run", &file, "--id", "many", "-o", "json", "--store", store];
        let mut kills = 0;
        let output = loop {
            let mut child = place.command(&args).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.random_range(40..300)));
            if kills < sized(30, 10) && child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                kills += 1;
            }
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                break output;
            }
            let shown = place.run(&["status", "many", "--store", store]);
            if shown.status.success() {
                args = vec!["resume", "many", "-o", "json", "--store", store];
            }
        };
        let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(ended, json!({ "n": 600 }));
        assert!(kills > 2, "only {kills} kills");
        let stored = succeeded(&place, &["state", "get", "many", "n", "--store", store]);
        assert_eq!(
            (&stored["value"], &stored["version"]),
            (&json!(600), &json!(600)),
            "{stored}"
        );
    }
}

#[test]
fn a_person_reads_and_writes_values() {
    let place = Place::new();
    let set = |args: &[&str]| succeeded(&place, &[&["state", "set", "sync"], args].concat());
    assert_eq!(set(&["since", "2026-05-01"])["version"], 1);
    assert_eq!(
        set(&["total", "7", "--json", "--if-version", "0"])["value"],
        7
    );
    assert_eq!(
        set(&["total", "-8", "--json", "--expect", "7"])["version"],
        2
    );
    let changed = &["version 2", "the value -8"];
    let stale = [
        "state",
        "set",
        "sync",
        "total",
        "9",
        "--json",
        "--if-version",
        "1",
    ];
    fails(&place, &stale, 2, changed);
    fails(
        &place,
        &[
            "state", "set", "sync", "total", "9", "--json", "--expect", "7",
        ],
        2,
        changed,
    );
    fails(
        &place,
        &["state", "set", "sync", "total", "9"],
        2,
        &["`total` is integer, and `9` is text", "--json"],
    );
    fails(
        &place,
        &["state", "set", "sync", "total", "nine", "--json"],
        2,
        &["not valid JSON"],
    );
    fails(
        &place,
        &["state", "get", "sync", "sinse"],
        2,
        &["did you mean `since`?"],
    );
    let listed = text(&place, &["state", "list"]);
    assert!(
        listed.contains("sync") && listed.contains("2026-05-01"),
        "{listed}"
    );
    let file = place.file("sync.yaml", WATERMARK);
    let warning = |args: &[&str]| {
        let output = place.run(&[&["state", "set"], args].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let unsaved = warning(&["snyc", "sinse", "1"]);
    assert!(
        unsaved.contains("warning: no saved workflow has the name `snyc`"),
        "{unsaved}"
    );
    text(&place, &["workflow", "put", "nightly", &file]);
    for (args, says) in [
        (["snyc", "since", "1"], "did you mean `sync`?"),
        (
            ["sync", "sinse", "1"],
            "declares no state `sinse`; did you mean `since`?",
        ),
    ] {
        let warned = warning(&args);
        assert!(warned.contains(says), "{warned}");
    }
    let number = place.file(
        "counter.yaml",
        "name: counter\nstate: { n: 0 }\nactions: { a: { type: setState, inputs: { name: n, value: 1 } } }\n",
    );
    text(&place, &["workflow", "put", "counter", &number]);
    fails(
        &place,
        &["state", "set", "counter", "n", "3"],
        2,
        &["`n` is integer, and `3` is text", "--json"],
    );
    // A run has the workflow, although it is not saved.
    let plain = place.file(
        "plain.yaml",
        "name: plain\nactions: { a: { type: compose, inputs: 1 } }\n",
    );
    assert!(place.run(&["run", &plain]).status.success());
    assert_eq!(warning(&["plain", "n", "1"]), "");
    // It is stored now, so some run may read it.
    assert_eq!(warning(&["sync", "sinse", "2"]), "");
    let ran = succeeded(&place, &["run", &file]);
    assert_eq!(ran["fetched"], "from 2026-05-01 until 2026-02-01");
    fails(
        &place,
        &["state", "delete", "sync", "since", "--if-version", "1"],
        2,
        &["version 2"],
    );
    text(&place, &["state", "delete", "sync", "since"]);
    fails(
        &place,
        &["state", "delete", "sync", "since"],
        2,
        &["no stored state"],
    );
    // The value starts again from the initial one, and the version continues to count.
    let ran = succeeded(&place, &["run", &file]);
    assert_eq!(ran["fetched"], "from 2026-01-01 until 2026-02-01");
    let stored = succeeded(&place, &["state", "get", "sync", "since"]);
    assert_eq!(stored["version"], 4, "{stored}");
    // The version 0 also means a deleted value.
    text(&place, &["state", "delete", "sync", "since"]);
    assert_eq!(
        set(&["since", "2026-06-01", "--if-version", "0"])["version"],
        6
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_for_its_values() {
    let place = Place::new();
    let token = place.file("full", "full-token-of-the-test");
    let state = place.state();
    let server = Start::new(&state)
        .roles(
            place.dir.path(),
            &[
                ("admin", "full-token-of-the-test"),
                ("view", "look-token-of-the-test"),
            ],
        )
        .spawn();
    // The commands on this machine send their requests to the owner.
    let written = succeeded(&place, &["state", "set", "sync", "since", "2026-05-01"]);
    assert_eq!(written["version"], 1);
    let ask = |method: Method, path: &str, token: &str| {
        let request = client().request(method, format!("{}{path}", server.url));
        request.bearer_auth(format!("{token}-token-of-the-test"))
    };
    let (status, response) = answer(ask(Method::GET, "/v1/state?workflow=sync", "look")).await;
    assert_eq!(
        (status, &response["values"][0]["value"]),
        (200, &json!("2026-05-01")),
        "{response}"
    );
    let body = json!({ "value": "2026-06-01", "if_version": 1 });
    let put = |token| with(ask(Method::PUT, "/v1/state/sync/since", token), &body);
    assert_eq!(answer(put("look")).await.0, 403);
    let (status, response) = answer(put("full")).await;
    assert_eq!(
        (status, &response["version"]),
        (200, &json!(2)),
        "{response}"
    );
    let (status, response) = answer(put("full")).await;
    assert_eq!(
        (status, &response["state"]["value"]),
        (412, &json!("2026-06-01")),
        "{response}"
    );
    let stale = ask(Method::PUT, "/v1/state/sync/since?if_version=1", "full");
    let (status, response) = answer(with(stale, &json!({ "value": "lost" }))).await;
    assert_eq!(status, 412, "{response}");
    for (method, body) in [
        (Method::DELETE, json!({ "if_version": 1 })),
        (Method::GET, json!(null)),
    ] {
        let query = if method == Method::GET {
            "?if_version=1"
        } else {
            ""
        };
        let path = format!("/v1/state/sync/since{query}");
        let mut request = ask(method, &path, "full");
        if !body.is_null() {
            request = with(request, &body);
        }
        let (status, response) = answer(request).await;
        assert_eq!(status, 400, "{response}");
    }
    // The same over TCP.
    let remote = ["--server", &server.url, "--token-file", &token];
    let get = [&["state", "get", "sync", "since"][..], &remote].concat();
    assert_eq!(text(&place, &get), "2026-06-01");
    let delete = [&["state", "delete", "sync", "since"][..], &remote].concat();
    text(&place, &delete);
    assert_eq!(
        answer(ask(Method::GET, "/v1/state/sync/since", "look"))
            .await
            .0,
        404
    );
    // A guest's workflow does not see the value of the operator's workflow.
    succeeded(&place, &["state", "set", "guest", "n", "41", "--json"]);
    let mine = SLOW
        .replace("name: slow", "name: guest")
        .replace("  go: {", "  # {");
    let begin = json!({ "text": mine });
    let (status, response) = answer(with(ask(Method::POST, "/v1/runs", "full"), &begin)).await;
    assert!(status < 300, "{response}");
    let result = format!(
        "/v1/runs/{}/result?wait=30",
        response["run"].as_str().unwrap()
    );
    let (_, response) = answer(ask(Method::GET, &result, "full")).await;
    assert_eq!(response["output"], json!({ "n": 10 }), "{response}");
}

/// The time of the schedule, and the run of the previous time.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_run_knows_the_time_of_the_last_one() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let tick = "
name: tick
schedule: { cron: '* * * * * *', overlap: skip }
actions: { a: { type: compose, inputs: '@lastRun()?.scheduledTime' } }
outputs: '@outputs(''a'')'
";
    put(&server, "tick", tick).await;
    for _ in 0..600 {
        let (_, listed) = server.get("/v1/runs?limit=500&status=succeeded").await;
        let runs = listed["runs"].as_array().cloned().unwrap_or_default();
        if let [newest, .., _] = runs.as_slice() {
            let run = newest["run"].as_str().unwrap();
            let ended = server.end(run).await;
            let time = ended["output"].as_str().unwrap();
            let digits: String = time.chars().filter(char::is_ascii_digit).take(14).collect();
            let ids = runs
                .iter()
                .map(|run| run["run"].as_str().unwrap().replace('T', ""));
            assert!({ ids }.any(|id| id.contains(&digits)), "{time}: {listed}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it started no two runs");
}

#[test]
fn values_are_in_every_copy_of_a_store() {
    let place = Place::new();
    let file = place.file("sync.yaml", WATERMARK);
    succeeded(&place, &["run", &file]);
    let stored = || text(&place, &["state", "get", "sync", "since"]);
    let pruned = place.run(&["prune", "--status", "Succeeded"]);
    assert!(pruned.status.success(), "{pruned:?}");
    assert_eq!(stored(), "2026-02-01");
    // Its last run was pruned.
    let ran = succeeded(&place, &["run", &file, "-i", "until=2026-03-01"]);
    assert_eq!(ran["last"], Value::Null);
    let copy = place.dir.path().join("copy");
    text(&place, &["backup", copy.to_str().unwrap()]);
    let other = Place::new();
    text(&other, &["restore", copy.to_str().unwrap()]);
    assert_eq!(
        text(&other, &["state", "get", "sync", "since"]),
        "2026-03-01"
    );
    for store in ["fjall", "sled"] {
        let in_store = |args: &[&str]| {
            let mut command = other.command(args);
            command.env("WINDLASS_STORE", store).output().unwrap()
        };
        let to = other.run(&["migrate", "--to", store]);
        assert!(
            to.status.success() || String::from_utf8_lossy(&to.stderr).contains(store),
            "{to:?}"
        );
        let value = in_store(&["state", "get", "sync", "since"]);
        assert_eq!(value.stdout, b"2026-03-01\n", "{store}: {value:?}");
    }
    let repaired = place.run(&["doctor", "--repair"]);
    assert!(repaired.status.success(), "{repaired:?}");
    assert_eq!(stored(), "2026-03-01");
    let ran = succeeded(&place, &["run", &file, "-i", "until=2026-04-01"]);
    assert_eq!(ran["fetched"], "from 2026-03-01 until 2026-04-01");
}

/// A retry from a place before a write replaces what the original run wrote, but not what another run wrote.
#[test]
fn a_retry_writes_over_its_own_run_only() {
    let place = Place::new();
    let text = r#"
name: fails
inputs: { fail: { default: true } }
state: { n: 0 }
actions:
  start: { type: compose, inputs: "@state('n')" }
  write: { type: setState, name: n, value: "@add(outputs('start'), 1)" }
  end: { type: shell, run: "test -e now" }
outputs: { n: "@state('n')" }
"#;
    let file = place.file("fails.yaml", text);
    let failed = place.run(&["run", &file, "--id", "first"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let retried = ["retry", "first", "--from", "write", "--id", "second"];
    let failed = place.run(&retried);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let stored = succeeded(&place, &["state", "get", "fails", "n"]);
    assert_eq!(
        (&stored["value"], &stored["version"]),
        (&json!(1), &json!(2)),
        "{stored}"
    );
    succeeded(&place, &["state", "set", "fails", "n", "5", "--json"]);
    fails(
        &place,
        &["retry", "first", "--from", "write"],
        1,
        &["was changed since", "a person wrote version 3"],
    );
    // From its first action, it begins with the current values.
    let failed = place.run(&["retry", "first", "--from", "start"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let stored = succeeded(&place, &["state", "get", "fails", "n"]);
    assert_eq!(stored["value"], 6, "{stored}");
}

#[test]
fn mistakes_are_found_when_a_file_is_read() {
    let place = Place::new();
    for (text, says) in [
        (
            "state: { since: 1 }\nactions: { a: { type: compose, inputs: \"@state('sinse')\" } }",
            &["does not declare `sinse`", "did you mean `since`?"][..],
        ),
        (
            "state: { since: 1 }\nactions: { a: { type: compose, inputs: '{{ state.sinse }}' } }",
            &["does not declare `sinse`", "did you mean `since`?"],
        ),
        (
            "state: { since: 1 }\nactions: { a: { type: setState, name: sinse, value: 1 } }",
            &["does not declare `sinse`", "did you mean `since`?"],
        ),
        (
            "actions: { a: { type: setState, name: n, value: 1 } }",
            &["does not declare `n`"],
        ),
        (
            "state: { n: 1 }\nactions: { a: { type: setState, name: n } }",
            &["needs `value`"],
        ),
        (
            "state: { n: '@utcNow()' }\nactions: {}",
            &["not a constant"],
        ),
        ("state: [n]\nactions: {}", &["`state`"]),
    ] {
        let file = place.file("bad.yaml", text);
        fails(&place, &["validate", &file], 3, says);
    }
}

/// In a file with values between runs, `state` does not mean the variables. Variables and files of variables work as
/// before.
#[test]
fn variables_and_files_are_apart_from_state() {
    let place = Place::new();
    let rows = place.dir.path().join("rows.jsonl");
    let text = format!(
        r#"
name: both
state: {{ n: 1 }}
variables: {{ v: 2 }}
actions:
  one: {{ type: appendFile, path: {rows:?}, row: {{ n: "{{{{ state.n }}}}", v: "{{{{ variables.v }}}}" }} }}
  more: {{ type: setState, name: n, value: 5 }}
  two: {{ type: appendFile, path: {rows:?}, row: {{ n: "{{{{ state.n }}}}", v: "@variables('v')" }} }}
"#
    );
    let file = place.file("both.yaml", &text);
    succeeded(&place, &["run", &file]);
    let written = std::fs::read_to_string(&rows).unwrap();
    assert_eq!(written, "{\"n\":1,\"v\":2}\n{\"n\":5,\"v\":2}\n");
    let file = place.file("both.yaml", &text.replace("variables.v", "state.v"));
    fails(
        &place,
        &["validate", &file],
        3,
        &["the variable is `variables.v`"],
    );
}

#[test]
fn no_secret_is_stored_as_state() {
    let place = Place::new();
    let text = r#"
name: leak
state: { n: null }
actions: { a: { type: setState, name: n, value: "@secret('token')" } }
"#;
    let file = place.file("leak.yaml", text);
    let mut command = place.command(&["run", &file]);
    let output = command
        .env("WINDLASS_SECRET_token", "hush-hush")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr.contains("cannot be stored as state"), "{stderr}");
    let stored = super::process::bytes_of(&place.state());
    assert!(!stored.windows(9).any(|part| part == b"hush-hush"));
}

const CASES: &str = r#"
cases:
  - name: with the initial values
    expect:
      output: { fetched: from 2026-01-01 until 2026-02-01, again: 2026-01-01/never, since: "2026-02-01", last: null }
      state: { since: "2026-02-01", total: 1 }
  - name: with those of the case
    state: { total: 5 }
    last_run: { outputs: { fetched: all } }
    expect: { state: { total: 6 }, calls: { keep: 1 } }
  - name: another run is faster
    answers: { keep: { error: { kind: conflict, message: another run wrote it } } }
    expect: { status: Failed, error: conflict }
"#;

#[test]
fn a_test_plays_on_values_of_its_own() {
    let folder = Folder::new();
    folder.file("sync.yaml", WATERMARK);
    folder.file("sync.test.yaml", CASES);
    let ran = folder.run(&["test", "sync.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
