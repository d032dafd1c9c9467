//! The limits on runs at the same time and on sizes; and that a run which cannot continue delays no other run.

use super::process::Place;
use crate::serve::{COUNT, Server, Start};
use crate::simulation::author::Author;
use crate::store::contract::{commit, ok};
use crate::store::damage::open_again;
use crate::support::{open_store, serve};
use axum::Router;
use axum::extract::State;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_engine::scheduler::Rates;
use windlass_engine::scheduler::{self, Loaded, Loader, Scheduler};
use windlass_engine::{Engine, EngineError, Limits, RunFailure, ScheduleError, Value};
use windlass_machine::Event;
use windlass_machine::compile::compile;
use windlass_machine::program::{Caps, ProgramHash};
use windlass_store::{MemoryStore, ProgramSource, ReadStore};

/// How many requests are being answered now, and the maximum so far.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

async fn slow(State(crowd): State<Arc<Crowd>>) -> &'static str {
    let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
    crowd.most.fetch_max(now, Ordering::SeqCst);
    // Long enough for all concurrent requests to arrive.
    tokio::time::sleep(Duration::from_millis(20)).await;
    crowd.now.fetch_sub(1, Ordering::SeqCst);
    ANSWER
}

/// The answer of a model and of every other service.
const ANSWER: &str = r#"{"choices": [{"message": {"role": "assistant", "content": "done"}}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_gets_at_most_the_maximum_of_calls_of_all_runs() {
    for action in [
        "{ type: http, uri: \"BASE/\" }",
        "{ type: ai, inputs: { model: m, prompt: hello, base_url: \"BASE/v1\", api_key: k } }",
        "{ type: activity, inputs: { activityType: there } }",
    ] {
        let crowd = Arc::<Crowd>::default();
        let router = Router::new().fallback(slow).with_state(crowd.clone());
        let base = serve(router).await;
        let limits = Limits {
            effects_per_host: 3,
            ..Limits::default()
        };
        let engine = Engine::builder().limits(limits).in_memory().unwrap();
        let text = "
handlers: { there: { url: \"BASE/handler\" } }
actions:
  all:
    type: foreach
    foreach: \"@range(0, 40)\"
    concurrency: 40
    actions: { call: ACTION }
outputs: \"@length(body('all'))\"
";
        let text = text.replace("ACTION", action).replace("BASE", &base);
        let workflow = engine.load_text("host.yaml", &text).unwrap();
        let run = engine.start(&workflow, Value::Null).await.unwrap();
        assert_eq!(
            run.result::<Value>().await.unwrap(),
            Value::from(40_i64),
            "{action}"
        );
        assert_eq!(crowd.most.load(Ordering::SeqCst), 3, "{action}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_only_for_what_has_begun() {
    let limits = Limits {
        effects: 1,
        ..Limits::default()
    };
    let engine = Engine::builder()
        .register("long", |_, _: Value| async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            Ok(Value::Null)
        })
        .register("short", |_, _: Value| async { Ok(Value::from(1_i64)) })
        .limits(limits)
        .in_memory()
        .unwrap();
    let text = "
actions:
  both:
    type: parallel
    branches:
      a: { actions: { long: { type: activity, inputs: { activityType: long } } } }
      b: { actions: { short: { type: activity, timeout: PT0.3S, inputs: { activityType: short } } } }
outputs: \"@outputs('short')\"
";
    let workflow = engine.load_text("time.yaml", text).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    assert_eq!(run.result::<Value>().await.unwrap(), Value::from(1_i64));
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_what_is_taken_a_start_is_refused() {
    let release = Arc::new(Notify::new());
    let waits = release.clone();
    let limits = Limits {
        live_runs: 1,
        ..Limits::default()
    };
    let engine = Engine::builder()
        .register("wait", move |_, _: Value| {
            let waits = waits.clone();
            async move {
                waits.notified().await;
                Ok(Value::Null)
            }
        })
        .limits(limits)
        .in_memory()
        .unwrap();
    let text = "actions: { a: { type: activity, inputs: { activityType: wait } } }";
    let workflow = engine.load_text("busy.yaml", text).unwrap();
    let first = engine.start(&workflow, Value::Null).await.unwrap();
    let refused = engine.start(&workflow, Value::Null).await;
    let busy = EngineError::Schedule(ScheduleError::Busy);
    assert_eq!(refused.err().unwrap().to_string(), busy.to_string());
    release.notify_one();
    first.result::<Value>().await.unwrap();
    let second = engine.start(&workflow, Value::Null).await.unwrap();
    release.notify_one();
    second.result::<Value>().await.unwrap();
}

fn fault_of(failure: &RunFailure) -> String {
    match failure {
        RunFailure::Ended {
            error: Some(error), ..
        } => format!("{}: {}", error.fault.kind, error.fault.message),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_and_a_state_are_bounded() {
    let limits = Limits {
        state_bytes: 2 << 20,
        ..Limits::default()
    };
    let engine = Engine::builder()
        .register("large", |context, _: Value| async move {
            let bytes = usize::try_from(context.input.as_int().unwrap()).unwrap();
            Ok(Value::text("x".repeat(bytes)))
        })
        .limits(limits)
        .in_memory()
        .unwrap();
    let one =
        "actions: { a: { type: activity, inputs: { activityType: large, input: 42000000 } } }";
    let workflow = engine.load_text("result.yaml", one).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    let failed = fault_of(&run.result::<Value>().await.unwrap_err());
    assert!(
        failed.starts_with("too_large: what the action gave"),
        "{failed}"
    );

    let many = "
variables: { all: [] }
actions:
  grow:
    type: until
    condition: '@false'
    limit: { count: 1000 }
    actions:
      a: { type: activity, inputs: { activityType: large, input: 100000 } }
      keep: { type: appendToArrayVariable, name: all, value: \"@outputs('a')\" }
";
    let workflow = engine.load_text("state.yaml", many).unwrap();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    let failed = fault_of(&run.result::<Value>().await.unwrap_err());
    assert!(
        failed.starts_with("too_large: the state of the run has"),
        "{failed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_loaded_is_parked_and_the_others_go_on() {
    let place = Place::new();
    {
        // A program that no version of the engine can read.
        let store = open_store(&place.state()).unwrap();
        ok(&*store, commit("broken", 0));
    }
    let server = Server::start(&place.state());
    let run = server.begin(COUNT, json!({})).await;
    assert_eq!(server.end(&run).await["status"], "Succeeded");

    let mut reason = serde_json::Value::Null;
    for _ in 0..600 {
        let status = place.json(&["status", "broken", "-o", "json"]);
        reason = status["labels"]["windlass.parked"].clone();
        if reason.is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let error = reason.as_str().unwrap_or_default();
    let (_, stderr) = server.stop();
    assert!(error.contains("cannot be loaded"), "{reason} {stderr}");

    // After a restart it is not read before a request.
    let store = open_again(&place.state());
    assert!(store.runnable().unwrap().is_empty());
    drop(store);
    let resumed = place.run(&["resume", "broken"]);
    assert_eq!(resumed.status.code(), Some(3), "{resumed:?}");
}

/// A program that makes the engine panic when it is read, together with valid programs.
struct Fragile;

impl Loader for Fragile {
    fn load(&self, _: ProgramHash, _: &ProgramSource) -> Result<Loaded, String> {
        panic!("it stumbles over this program");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_the_engine_panics_over_is_parked_after_three_tries() {
    let store = Arc::new(MemoryStore::default());
    ok(&*store, commit("broken", 0));
    let tasks = tokio::runtime::Handle::current();
    let scheduler = Scheduler::new(
        store.clone(),
        Arc::new(Fragile),
        tasks,
        Limits::default(),
        Rates::default(),
        false,
        None,
    )
    .unwrap();
    scheduler.recover(false).await.unwrap();
    let mut parked = None;
    for _ in 0..600 {
        let labels = store.header("broken").unwrap().labels;
        parked = labels.get("windlass.parked").cloned();
        if parked.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let reason = parked.expect("the run is parked");
    assert!(
        reason.contains("the engine failed at its program"),
        "{reason}"
    );
    assert!(store.runnable().unwrap().is_empty());
    // A request for it gets the error, and the scheduler continues to run.
    let refused = scheduler.deliver("broken", Event::Resumed).await;
    assert!(refused.is_err());
    assert!(scheduler.recover(false).await.unwrap().is_empty());
    scheduler.stop().await;
}

/// The driver's thread has ended: the server must be notified, because no run continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_dies_is_reported() {
    let caps = Caps {
        count: u64::MAX,
        timeout: Duration::from_secs(3600),
    };
    let program = compile(&Author::workflow(0), ProgramHash([1; 32]), caps).unwrap();
    let scheduler = Scheduler::new(
        Arc::new(MemoryStore::default()),
        Arc::new(Fragile),
        tokio::runtime::Handle::current(),
        Limits::default(),
        Rates::default(),
        false,
        Some(Arc::new(|_| {
            panic!("spans are reported on the driver's thread")
        })),
    )
    .unwrap();
    let start = scheduler::Start {
        run: "traced".into(),
        loaded: Loaded {
            program: Arc::new(program),
            registry: Arc::default(),
        },
        source: commit("traced", 0).program.unwrap(),
        input: Value::Null,
        environment: Value::Null,
        from: None,
        labels: BTreeMap::new(),
        watcher: None,
        saved: BTreeMap::new(),
    };
    let started = scheduler.start(start).await;
    let cancelled = scheduler.deliver("traced", Event::CancelRequested).await;
    assert!(cancelled.is_err(), "{started:?}");
    scheduler.ended().await;
}

/// The machine panics over this run where `panic-in-one-run` is planted (tests/faults): it is
/// parked, and no other run is affected.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is about a planted panic"]
async fn a_panic_in_one_run_affects_no_other_run() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(server.begin(COUNT, json!({ "to": 400 })).await);
    }
    let fragile = json!({ "text": COUNT, "input": { "to": 400 }, "run": "fragile" });
    let (status, response) = server.post("/v1/runs", &fragile).await;
    for _ in 0..3 {
        others.push(server.begin(COUNT, json!({ "to": 400 })).await);
    }
    for run in &others {
        assert_eq!(server.end(run).await["output"], 400);
    }
    let mut parked = None;
    for _ in 0..600 {
        let (_, status) = server.get("/v1/runs/fragile").await;
        parked = status["labels"]["windlass.parked"]
            .as_str()
            .map(str::to_owned);
        if parked.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let reason = parked.unwrap_or_else(|| panic!("{status}: {response}: it is not parked"));
    assert!(reason.contains("planted"), "{reason}");
    let (status, _) = server.stop();
    assert!(status.success());
}

/// A loop without a delay, an effect or an end.
const SPIN: &str = "
name: spin
variables: { n: 0 }
actions:
  turn:
    type: until
    condition: '@false'
    limit: { count: 1000000, timeout: PT1H }
    actions: { more: { type: incrementVariable, name: n, value: 1 } }
";

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_spin_do_not_delay_others() {
    let place = Place::new();
    let state = place.state();
    let server = Start::new(&state).args(&["--max-count", "1000000"]).spawn();
    let mut spinning = Vec::new();
    for _ in 0..4 {
        spinning.push(server.begin(SPIN, json!({})).await);
    }
    for _ in 0..5 {
        let run = server.begin(COUNT, json!({})).await;
        assert_eq!(server.end(&run).await["output"], 20);
    }
    for run in spinning {
        let (_, status) = server.get(&format!("/v1/runs/{run}")).await;
        assert_eq!(status["status"], "Running", "{status}");
        let (code, response) = server
            .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await;
        assert_eq!(
            (code, &response["status"]),
            (200, &json!("Cancelled")),
            "{response}"
        );
    }
}

/// Lists nested to this depth, as JSON.
async fn nested(uri: axum::http::Uri) -> axum::response::Response {
    use axum::response::IntoResponse as _;
    let depth: usize = uri.path().trim_start_matches('/').parse().unwrap();
    let body = format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
    ([("content-type", "application/json")], body).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nests_too_deep_is_a_fault_and_never_text() {
    let base = serve(Router::new().fallback(nested)).await;
    let report = tokio::task::spawn_blocking(move || {
        let place = Place::new();
        let http = |depth| format!("{{ type: http, uri: \"{base}/{depth}\" }}");
        let lists = |depth| format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
        let shell = |depth| format!("{{ type: shell, run: \"echo '{}'\" }}", lists(depth));
        let kinds: [&dyn Fn(usize) -> String; 2] = [&http, &shell];
        for (kind, action) in kinds.into_iter().enumerate() {
            for depth in [1, 63, 64, 65, 95, 96, 97, 128, 129, 5_000] {
                let text = format!(
                    "actions:\n\
                     \x20 loop:\n\
                     \x20   type: doUntil\n\
                     \x20   condition: \"@equals(1, 1)\"\n\
                     \x20   actions:\n\
                     \x20     a: {}\n\
                     \x20     b: {{ type: compose, inputs: {{ x: \"@body('a')\" }} }}\n",
                    action(depth)
                );
                let file = place.file("deep.yaml", &text);
                let id = format!("r{kind}-{depth}");
                let output = place.run(&["run", &file, "--id", &id, "-o", "json"]);
                let whole: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                if depth > 63 {
                    assert_eq!(whole["error"]["kind"], "too_large", "{depth} {whole}");
                    let message = whole["error"]["message"].as_str().unwrap();
                    assert!(message.contains("nests deeper than 64 levels"), "{message}");
                    continue;
                }
                assert!(output.status.success(), "{depth} {output:?}");
                let body: serde_json::Value = serde_json::from_str(&lists(depth)).unwrap();
                let result = &whole["loop"]["result"];
                assert_eq!(result["a"]["body"], body, "{depth} {whole}");
                assert_eq!(result["b"]["x"], body, "{depth} {whole}");
                let history = place.json(&["history", &id, "-o", "json"]).to_string();
                assert!(history.contains(&lists(depth)), "{depth} {history}");
            }
        }
    });
    report.await.unwrap();
}

/// For a name that is not a variable, the report shows the values of the loop's block.
#[test]
fn a_condition_is_reported_with_all_that_it_reads() {
    let place = Place::new();
    let file = place.file(
        "reads.yaml",
        "
name: reads
actions:
  each:
    type: foreach
    foreach: [4]
    actions:
      poll:
        type: until
        condition: \"{{ item == 5 and workflow.name == 'other' and loops.poll.count > 2 }}\"
        limit: { count: 1, timeout: PT1H }
        on_limit: pause
        actions:
          a: { type: compose, inputs: 1 }
",
    );
    let paused = place.run(&["run", &file, "--id", "r", "-o", "json"]);
    let paused: serde_json::Value = serde_json::from_slice(&paused.stdout).unwrap();
    assert_eq!(
        (&paused["run"], &paused["status"]),
        (&json!("r"), &json!("Paused"))
    );
    assert_eq!(paused["pause"]["reason"], "limit", "{paused}");
    let status = place.json(&["status", "r", "-o", "json"]);
    let condition = &status["loops"][0]["condition"];
    assert_eq!(condition["value"], false, "{status}");
    let reads = condition["reads"].as_array().unwrap();
    let value = |name: &str| {
        let read = reads.iter().find(|read| read["name"] == name);
        read.unwrap_or_else(|| panic!("{name}: {condition}"))["value"].clone()
    };
    assert_eq!(value("item"), 4);
    assert_eq!(value("workflow")["name"], "reads");
}

/// An expression does not parse a command's output that is JSON of many small values: the output stays text.
#[test]
fn text_of_many_small_values_stays_text() {
    let place = Place::new();
    let heavy = "printf '[{}'; yes ',{}' | head -c 4000000 | tr -d '\\\\n'; printf '] '; echo .";
    let cut = "@substring(body('list'), 0, sub(length(body('list')), 1))";
    for (name, inside) in [
        (
            "parseJson",
            format!("{{ type: parseJson, inputs: {{ content: \"{cut}\" }} }}"),
        ),
        (
            "json",
            format!("{{ type: compose, inputs: \"@json({})\" }}", &cut[1..]),
        ),
        (
            "fromjson",
            String::from(
                "{ type: compose, inputs: \"{{ actions.list.outputs.body[:-1] | fromjson }}\" }",
            ),
        ),
    ] {
        let text =
            format!("actions:\n  list: {{ type: shell, run: \"{heavy}\" }}\n  values: {inside}\n");
        let file = place.file("heavy.yaml", &text);
        let ran = place.run(&["run", &file, "-o", "json"]);
        let stdout = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status.code(), Some(1), "{name}: {stdout} {ran:?}");
        let of = "values would need about";
        assert!(
            stdout.contains(of) || stdout.contains("values of the content would"),
            "{name}: {stdout}"
        );
    }
}
