//! The output of `dump` matches `docs/dump.schema.json`, whatever a run does and whatever its format is. Its YAML is
//! equal to its JSON.

use super::process::Place;
use crate::serve::{Server, Start};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Runs that do not change: the id, what the run waits for, and its workflow.
const STATES: [(&str, &str, &str); 10] = [
    (
        "sleeps",
        "Waiting",
        "variables: { n: 0, ids: [s0, c0, a0, 0] }\nactions:\n  poll:\n    type: until\n    description: Poll\n    condition: '@false'\n    \
         delay: PT1H\n    limit: { count: 5, timeout: PT9H }\n    actions:\n      \
         more: { type: incrementVariable, inputs: { name: n, value: 1 } }\n",
    ),
    (
        "signal",
        "Waiting",
        "actions:\n  first: { type: waitForSignal, signal: first, timeout: PT1H }\n  \
         later: { type: waitForSignal, signal: later }\n",
    ),
    (
        "retries",
        "Waiting",
        "actions:\n  a:\n    type: shell\n    run: echo no >&2; exit 3\n    timeout: PT1M\n    \
         retry: { type: fixed, count: 4, interval: PT1H }\n",
    ),
    (
        "limit",
        "Paused",
        "variables: { n: 0 }\nactions:\n  poll:\n    type: until\n    condition: '@false'\n    on_limit: pause\n    \
         limit: { count: 2, timeout: PT1H }\n    actions:\n      \
         more: { type: incrementVariable, inputs: { name: n, value: 1 } }\n",
    ),
    (
        "branches",
        "Running",
        "actions:\n  each:\n    type: foreach\n    foreach: [1, 2, 3, 4]\n    concurrency: 2\n    actions:\n      \
         a:\n        type: shell\n        run: '[ \"$N\" = 1 ] || sleep 1000'\n        env: { N: '@{item()}' }\n        timeout: PT20M\n",
    ),
    (
        "caught",
        "Running",
        "actions:\n  bad: { type: shell, run: exit 4 }\n  \
         after: { type: compose, inputs: 1, runAfter: { bad: [Failed] } }\n  \
         long: { type: shell, run: sleep 1000, runAfter: { after: [Succeeded] } }\n",
    ),
    (
        "failed",
        "Failed",
        "variables: { n: 0 }\nactions:\n  poll:\n    type: until\n    condition: '@false'\n    \
         limit: { count: 2, timeout: PT1H }\n    actions:\n      \
         more: { type: incrementVariable, inputs: { name: n, value: 1 } }\n",
    ),
    (
        "late",
        "TimedOut",
        "actions:\n  a: { type: shell, run: sleep 1000, timeout: PT0.2S, retry: { type: none } }\n",
    ),
    (
        "continues",
        "Succeeded",
        "variables: { n: 0 }\nactions:\n  poll:\n    type: until\n    condition: '@false'\n    on_limit: continue\n    \
         limit: { count: 2, timeout: PT1H }\n    actions:\n      \
         more: { type: incrementVariable, inputs: { name: n, value: 1 } }\n",
    ),
    (
        "cancelled",
        "Cancelled",
        "variables: { n: 0 }\nactions:\n  poll:\n    type: until\n    condition: '@false'\n    delay: PT1H\n    limit: { count: 5, timeout: PT9H }\n    actions:\n      more: { type: incrementVariable, inputs: { name: n, value: 1 } }\n",
    ),
];

fn check(schema: &jsonschema::Validator, dump: &Value) {
    let wrong: Vec<String> = schema
        .iter_errors(dump)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn until(server: &Server, run: &str, status: &str) {
    for _ in 0..1_200 {
        let (_, response) = server.get(&format!("/v1/runs/{run}")).await;
        if response["status"] == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{run} never is {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_is_as_its_schema_says_in_every_state() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = std::fs::read_to_string(top.join("docs/dump.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let place = Place::new();
    let dump = |args: &[&str]| {
        let all = [&["dump", "--iterations", "all"], args].concat();
        place.run(&all).stdout
    };
    let handlers = place.file("handlers.yaml", "greet: { command: [cat] }\n");
    let server = Start::new(&place.state())
        .args(&["--handlers", &handlers, "--grace", "0s"])
        .spawn();

    let lacks = "actions:\n  nap: { type: wait, interval: { unit: Second, count: 2 } }\n  \
                 a: { type: activity, inputs: { activityType: greet } }\n";
    let mut all: Vec<(&str, &str)> = STATES.iter().map(|(id, _, text)| (*id, *text)).collect();
    all.push((
        "stands",
        "actions: { a: { type: shell, run: sleep 1; exit 1 } }\n",
    ));
    for (id, text) in all {
        let file = place.file(&format!("{id}.yaml"), text);
        let run = place.run(&["run", &file, "--id", id, "--detach", "--label", "a=yes"]);
        assert!(run.status.success(), "{id}: {run:?}");
    }
    // A fault during a pause takes effect when the run resumes.
    assert!(place.run(&["pause", "stands"]).status.success());
    assert!(place.run(&["cancel", "cancelled"]).status.success());
    let payload = ["--payload", "{\"by\": [1.5, null]}"];
    let sent = place.run(&["signal", "signal", "later", payload[0], payload[1]]);
    assert!(sent.status.success(), "{sent:?}");

    // Every other format, with the files of its own tests, during the run and afterwards.
    let mut begun = BTreeSet::new();
    for (format, step) in [("canvas", 3), ("tea", 8), ("azure", 1)] {
        let entries = std::fs::read_dir(top.join("tests").join(format)).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.into_iter().step_by(step) {
            let file = match path.is_dir() {
                true => path.join("workflow.yaml"),
                false => path,
            };
            let file = file.to_str().unwrap();
            // Some need inputs, or are refused.
            if place.run(&["run", file, "--detach"]).status.success() {
                begun.insert(format);
            }
        }
        check(
            &schema,
            &serde_json::from_slice(&dump(&["-o", "json"])).unwrap(),
        );
    }
    assert_eq!(begun.len(), 3, "{begun:?}");
    for (id, status, _) in STATES {
        until(&server, id, status).await;
    }
    let live: Value = serde_json::from_slice(&dump(&["-o", "json"])).unwrap();
    check(&schema, &live);
    let file = place.file("lacks.yaml", lacks);
    let run = place.run(&["run", &file, "--id", "lacks", "--detach"]);
    assert!(run.status.success(), "{run:?}");
    server.kill();

    // Without its handler the run is parked.
    let server = Start::new(&place.state()).args(&["--grace", "0s"]).spawn();
    for _ in 0..1_200 {
        let (_, response) = server.get("/v1/runs/lacks").await;
        if response["labels"]["windlass.parked"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let parked: Value = serde_json::from_slice(&dump(&["lacks", "-o", "json"])).unwrap();
    check(&schema, &parked);
    assert!(
        parked["runs"][0]["header"]["labels"]["windlass.parked"].is_string(),
        "{parked}"
    );
    assert!(server.stop().0.success());

    let left: Value = serde_json::from_slice(&dump(&["-o", "json"])).unwrap();
    check(&schema, &left);
    let yaml: Value = serde_yaml::from_slice(&dump(&["-o", "yaml"])).unwrap();
    assert_eq!(yaml["runs"], left["runs"]);
    let text = String::from_utf8(dump(&["sleeps", "-o", "yaml"])).unwrap();
    assert!(text.contains("a: \"yes\""), "{text}");
    assert!(text.contains("\"n\": 1"), "{text}");
    // Ids of the program have names, and data is never mistaken for an id.
    let runs = live["runs"].as_array().unwrap();
    let sleeps = runs.iter().find(|run| run["header"]["run"] == "sleeps");
    let state = &sleeps.unwrap()["state"];
    let at = state["cursors"]["1"]["at"].as_str().unwrap();
    assert!(at.starts_with('s') && at.ends_with(" poll"), "{state}");
    assert_eq!(state["variables"]["ids"], json!(["s0", "c0", "a0", 0]));
    // The dump contains what the runs above were made for.
    let whole = left.to_string();
    for part in [
        r#""wait":{"signal":"#,
        r#""wait":{"timer":"#,
        r#""wait":{"effect":"#,
        r#""wait":"budget""#,
        r#""wait":"branches""#,
        r#""kind":{"try":"#,
        r#""kind":{"loop":"#,
        r#""kind":{"fork":"#,
        r#"{"ended":{"#,
        r#""pending""#,
        r#"{"limit":["poll","count"]}"#,
        r#""purpose":"retry""#,
        r#""purpose":"delay""#,
        r#""purpose":{"deadline":"c"#,
        r#""ended":"cancelled""#,
        r#""wait":{"faulted":"#,
        r#""last_fault":[{"#,
        r#""links":[{"#,
        r#""signals":[["later","#,
    ] {
        assert!(whole.contains(part), "no {part}");
    }
}

#[test]
fn short_waits_are_listed_and_counts_are_of_all() {
    let place = Place::new();
    let text = "actions: { a: { type: wait, interval: { unit: Second, count: 3 } } }\n";
    let file = place.file("short.yaml", text);
    for id in ["one", "two", "three"] {
        let mut run = place.follow(&["run", &file, "--id", id]);
        run.until("TimerSet", "a");
        run.kill();
    }
    for run in place.json(&["list", "-o", "json"]).as_array().unwrap() {
        assert!(run["next_due_at"].is_string(), "{run}");
    }
    let listed = place.run(&["list", "--limit", "1"]);
    let stderr = String::from_utf8(listed.stderr).unwrap();
    assert!(stderr.contains("and 2 more"), "{stderr}");
    assert!(stderr.contains("3 here"), "{stderr}");
    // The same while the run is in memory.
    let server = Server::start(&place.state());
    let (_, page) = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(server.get("/v1/runs?limit=1"));
    assert_eq!((&page["unfinished"], &page["more"]), (&json!(3), &json!(2)));
    assert!(page["runs"][0]["next_due_at"].is_string(), "{page}");
}

#[test]
fn history_says_what_it_no_longer_has() {
    let place = Place::new();
    let file = place.file("count.yaml", crate::serve::COUNT);
    let count = [
        "run",
        &file,
        "--id",
        "r",
        "-i",
        "to=2600",
        "--max-count",
        "5000",
    ];
    let text = crate::serve::COUNT.replace("count: 1000,", "count: 5000,");
    place.file("count.yaml", &text);
    let run = place.run(&count);
    assert!(run.status.success(), "{run:?}");
    let report = place.json(&[
        "history",
        "r",
        "--events",
        "--iterations",
        "all",
        "-o",
        "json",
    ]);
    let stored = report["iterations"].as_array().unwrap().len() as u64;
    let gone = report["forgotten"].as_u64().unwrap();
    assert!(gone > 0, "{stored}");
    assert_eq!(stored + gone, 2600);
    assert_eq!(report["iterations"][0]["iteration"], gone);
    let stderr_bytes = place.run(&["history", "r"]).stderr;
    let stderr = String::from_utf8(stderr_bytes).unwrap();
    assert!(
        stderr.contains(&format!("the first {gone} iterations are not listed")),
        "{stderr}"
    );
    let export = format!("`windlass export --state {} r`", place.state().display());
    assert!(stderr.contains(&export), "{stderr}");
    // A run with few iterations lacks nothing in its report.
    let few = place.run(&["run", &file, "--id", "few", "--max-count", "5000"]);
    assert!(few.status.success(), "{few:?}");
    let report = place.json(&["history", "few", "--events", "-o", "json"]);
    assert_eq!(
        (&report["forgotten"], &report["forgotten_events"]),
        (&json!(0), &json!(0))
    );
}
