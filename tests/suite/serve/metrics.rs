//! `/metrics` and `/openapi.json`.

use super::{COUNT, SLEEP, Server};
use crate::app;
use crate::support::serve;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A call that fails twice.
const FLAKY: &str = r#"
name: flaky
inputs: { base: { type: string } }
actions:
  fetch:
    type: http
    inputs: { uri: "@{inputs('base')}/flaky?fails=2&key=k" }
    retry: { type: fixed, count: 4, interval: PT0.05S }
"#;

/// Each series with its value.
async fn scrape(server: &Server) -> HashMap<String, f64> {
    let request = server.ask(Method::GET, "/metrics");
    let request = request.header(
        "accept",
        "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
    );
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = response.text().await.unwrap();
    assert!(text.ends_with("# EOF\n"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted() {
    let base = serve(app::router(app::Options::default())).await;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let counting = server.begin(COUNT, json!({ "to": 20 })).await;
    let flaky = server.begin(FLAKY, json!({ "base": base })).await;
    let hang = FLAKY.replace("/flaky?fails=2&key=k", "/hang");
    let hanging = server.begin(&hang, json!({ "base": base })).await;
    let sleeping = server.begin(SLEEP, json!(null)).await;
    server.end(&counting).await;
    assert_eq!(server.end(&flaky).await["status"], "Succeeded");

    let seen = scrape(&server).await;
    let of = |name: &str| {
        *seen
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {seen:?}"))
    };
    let runs = |status: &str| of(&format!("windlass_runs{{status=\"{status}\"}}"));
    assert_eq!(
        (runs("Succeeded"), runs("Running"), runs("Waiting")),
        (2.0, 1.0, 1.0)
    );
    assert_eq!(runs("Failed"), 0.0);
    assert_eq!(of("windlass_sleeping_runs"), 1.0);
    let sum = |name: &str| -> f64 {
        let of = seen.iter().filter(|(key, _)| key.starts_with(name));
        of.map(|(_, value)| value).sum()
    };
    assert_eq!(
        of("windlass_loop_iterations_total{workflow=\"count\"}"),
        20.0
    );
    assert_eq!(of("windlass_retries_total"), 2.0);
    assert_eq!(of("windlass_effects_total"), 4.0);
    assert_eq!(of("windlass_effects_in_flight"), 1.0);
    assert_eq!(sum("windlass_runs_started_total{workflow="), 4.0);
    assert_eq!(sum("windlass_runs_finished_total{workflow="), 2.0);
    assert!(of("windlass_commits_total") >= 24.0);
    let groups = of("windlass_commit_seconds_count");
    assert!(groups > 0.0 && groups <= of("windlass_commits_total"));
    assert_eq!(
        of("windlass_commit_group_size_sum"),
        of("windlass_commits_total")
    );
    assert!(of("windlass_commit_seconds_sum") > 0.0);
    // Two waits before the next attempts.
    assert_eq!(of("windlass_timer_lag_seconds_count"), 2.0);
    assert!(of("windlass_timer_lag_seconds_sum") < 10.0);

    // An interrupted call is no longer in flight. The census is repeated after its pause.
    for run in [hanging, sleeping] {
        let path = format!("/v1/runs/{run}/cancel");
        assert_eq!(super::answer(server.ask(Method::POST, &path)).await.0, 200);
    }
    let mut seen = HashMap::new();
    for _ in 0..10_000 {
        seen = scrape(&server).await;
        if seen["windlass_runs{status=\"Cancelled\"}"] == 2.0 {
            break;
        }
    }
    assert_eq!(seen["windlass_runs{status=\"Cancelled\"}"], 2.0);
    assert_eq!(seen["windlass_effects_in_flight"], 0.0);
    assert_eq!(seen["windlass_sleeping_runs"], 0.0);
}

/// The names of the metrics in a text.
fn names(text: &str) -> std::collections::BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("windlass_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_and_the_dashboard_ask_for_what_there_is() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/monitoring");
    let rules = format!("{folder}/windlass.rules.yml");
    let checked = std::process::Command::new("promtool")
        .args(["check", "rules", &rules])
        .output();
    let checked = checked.expect("promtool is in the Debian package prometheus");
    let out = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success() && out.contains("7 rules found"),
        "{checked:?}"
    );
    let tests = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/suite/serve/rules.test.yml"
    );
    let tested = std::process::Command::new("promtool")
        .args(["test", "rules", tests])
        .output()
        .unwrap();
    assert!(tested.status.success(), "{tested:?}");

    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let counting = server.begin(COUNT, json!({ "to": 2 })).await;
    server.end(&counting).await;
    let seen = scrape(&server).await;
    let lost = seen.get("windlass_failed_endings_total{workflow=\"count\"}");
    assert_eq!(lost, Some(&0.0), "{seen:?}");
    // A counter per workflow exists after its first count.
    let fails = "actions: { a: { type: terminate, inputs: { runStatus: Failed } } }\n\
                 on_failure: { type: compose, inputs: \"@int('x')\" }\n";
    let failing = server.begin(fails, json!({})).await;
    server.end(&failing).await;
    let text = server
        .ask(Method::GET, "/metrics")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let there = names(&text);
    let dashboard = std::fs::read_to_string(format!("{folder}/windlass.json")).unwrap();
    let _: Value = serde_json::from_str(&dashboard).unwrap();
    for wanted in [&dashboard, &std::fs::read_to_string(rules).unwrap()] {
        let wanted = names(wanted);
        assert!(wanted.len() > 4, "{wanted:?}");
        for name in wanted {
            assert!(there.contains(name), "{name} is none of {there:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_the_one_in_the_docs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let (status, served) = server.get("/openapi.json").await;
    assert_eq!(status, 200);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
    if std::env::var_os("WINDLASS_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&served).unwrap();
        std::fs::write(path, text + "\n").unwrap();
    }
    let documented: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(
        served == documented,
        "docs/openapi.json is not what is served (WINDLASS_BLESS=1 writes it)"
    );
    // Every reference has a target.
    let text = served.to_string();
    for (at, mark) in text.match_indices("\"#/components/schemas/") {
        let name = text[at + mark.len()..].split('"').next().unwrap();
        assert!(served["components"]["schemas"][name].is_object(), "{name}");
    }
}

/// A call that fails.
const BROKEN: &str = r#"
name: broken
inputs: { base: { type: string } }
actions:
  fetch:
    type: http
    inputs: { uri: "@{inputs('base')}/flaky?fails=9&key=broken" }
    retry: { type: none }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn promtool_accepts_the_metrics() {
    let base = serve(app::router(app::Options::default())).await;
    let host = base.strip_prefix("http://").unwrap().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let counting = server.begin(COUNT, json!({ "to": 2 })).await;
    server.end(&counting).await;
    let broken = server.begin(BROKEN, json!({ "base": base })).await;
    assert_eq!(server.end(&broken).await["status"], "Failed");
    let response = server.ask(Method::GET, "/metrics").send().await.unwrap();
    let kind = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    let mut promtool = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("promtool is in the Debian package prometheus");
    let mut input = promtool.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
    drop(input);
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success(), "{checked:?}\n{text}");

    let seen = scrape(&server).await;
    let failed = format!("windlass_failed_calls_total{{workflow=\"broken\",host=\"{host}\"}}");
    assert_eq!(seen.get(&failed), Some(&1.0), "{seen:?}");
    let pid = server.child.id();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count();
    assert!(
        (seen["process_open_fds"] - files as f64).abs() < 10.0,
        "{seen:?}"
    );
    assert!(seen["process_max_fds"] >= seen["process_open_fds"]);
    let resident = server.resident_kib() as f64 * 1_024.0;
    let ratio = seen["process_resident_memory_bytes"] / resident;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(seen["process_cpu_seconds_total"] > 0.0);
    let process = std::fs::metadata(format!("/proc/{pid}")).unwrap();
    let since = process
        .modified()
        .unwrap()
        .duration_since(std::time::UNIX_EPOCH);
    let difference = since.unwrap().as_secs_f64() - seen["process_start_time_seconds"];
    assert!(difference.abs() < 60.0, "{difference}");
}

/// A waiting run is not in memory, also after a command that changes nothing in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_changes_nothing_leaves_no_run_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let sleeping = server.begin(SLEEP, json!(null)).await;
    for _ in 0..2 {
        let path = format!("/v1/runs/{sleeping}/pause");
        let answer = super::answer(server.ask(Method::POST, &path)).await;
        assert_eq!(answer.0, 200);
    }
    let mut in_memory = f64::NAN;
    for _ in 0..1_000 {
        in_memory = scrape(&server).await["windlass_runs_in_memory"];
        if in_memory == 0.0 {
            break;
        }
    }
    assert_eq!(in_memory, 0.0);
}
