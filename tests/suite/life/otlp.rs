//! Spans of runs, sent to a collector that decodes them with the protocol's types.

use super::process::Place;
use crate::serve::PATIENCE;
use crate::support::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode as Code};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

const NESTED: &str = r#"
name: traced
inputs: { base: { type: string } }
variables: { n: 0 }
actions:
  outer:
    type: doUntil
    condition: "@greaterOrEquals(variables('n'), 4)"
    actions:
      inner:
        type: doUntil
        condition: "@equals(mod(variables('n'), 2), 0)"
        actions:
          call:
            type: http
            inputs: { uri: "@{inputs('base')}/work?n=@{variables('n')}" }
            retry: { type: fixed, count: 3, interval: 10ms }
          more: { type: incrementVariable, name: n }
"#;

const ONCE: &str = r#"
name: once
inputs: { base: { type: string } }
actions:
  own: { type: http, inputs: { uri: "@{inputs('base')}/work?n=10", headers: { traceparent: mine } } }
  usual: { type: http, inputs: { uri: "@{inputs('base')}/work?n=11" } }
  told: { type: shell, run: 'echo "${TRACEPARENT-none}"' }
outputs: "@trim(outputs('told').stdout)"
"#;

type Parents = Arc<Mutex<Vec<(u32, String)>>>;

/// A server that fails once and hangs once. Returns its address, the headers that it received, and a channel that
/// reports the hang.
async fn worker() -> (String, Parents, mpsc::Receiver<()>) {
    let parents = Parents::default();
    let (hangs, hanging) = mpsc::channel(1);
    let seen = Arc::clone(&parents);
    let work = move |Query(query): Query<BTreeMap<String, u32>>, headers: HeaderMap| async move {
        let n = query["n"];
        let parent = headers.get("traceparent");
        let parent = parent.map_or("", |value| value.to_str().unwrap());
        let before = {
            let mut seen = seen.lock().unwrap();
            seen.push((n, parent.to_owned()));
            seen.iter().filter(|(other, _)| *other == n).count() - 1
        };
        match (n, before) {
            (1, 0) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            (2, 0) => {
                hangs.send(()).await.unwrap();
                std::future::pending::<Response>().await
            }
            _ => "done".into_response(),
        }
    };
    let router = Router::new().route("/work", get(work));
    (serve(router).await, parents, hanging)
}

/// A collector, and the spans that it received.
async fn collector() -> (String, Arc<Mutex<Vec<Span>>>) {
    let spans = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&spans);
    let take = move |headers: HeaderMap, body: Bytes| async move {
        assert_eq!(headers["x-token"], "a b");
        let export: ExportTraceServiceRequest = serde_json::from_slice(&body).unwrap();
        for resource in export.resource_spans {
            let scopes = resource.scope_spans.into_iter();
            taken
                .lock()
                .unwrap()
                .extend(scopes.flat_map(|scope| scope.spans));
        }
        "{}"
    };
    let router = Router::new().route("/v1/traces", post(take));
    (serve(router).await, spans)
}

fn traced(place: &Place, args: &[&str], collector: &str) -> Command {
    let mut command = place.command(args);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%20b");
    command
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_one_trace_also_through_a_kill() {
    let (place, (base, parents, mut hangs)) = (Place::new(), worker().await);
    let (collector, spans) = collector().await;
    let (file, base) = (place.file("traced.yaml", NESTED), format!("base={base}"));
    let run = ["run", &file, "--id", "t", "-i", &base];
    let mut first = traced(&place, &run, &collector).spawn().unwrap();
    let hangs = tokio::time::timeout(PATIENCE, hangs.recv()).await;
    hangs.expect("the third call never came").unwrap();
    // Spans that have ended are exported soon, before the end of the run.
    while spans.lock().unwrap().len() < 6 {
        tokio::task::yield_now().await;
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let second = tokio::task::block_in_place(|| {
        let mut again = traced(&place, &["resume", "t"], &collector);
        again.output().unwrap()
    });
    assert!(second.status.success(), "{second:?}");

    let spans = spans.lock().unwrap().clone();
    let ids: BTreeSet<String> = spans.iter().map(|span| hex(&span.span_id)).collect();
    assert_eq!((ids.len(), spans.len()), (12, 12), "{spans:#?}");
    let traces: BTreeSet<String> = spans.iter().map(|span| hex(&span.trace_id)).collect();
    assert_eq!(traces.len(), 1);
    let named = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no span {name}: {spans:#?}"))
    };
    let parent_of = |span: &Span| {
        let parent = spans.iter().find(|one| one.span_id == span.parent_span_id);
        parent.map_or("", |parent| &parent.name).to_owned()
    };
    assert!(named("traced").parent_span_id.is_empty());
    for (name, parent) in [
        ("outer#0", "traced"),
        ("outer#1", "traced"),
        ("outer#0/inner#0", "outer#0"),
        ("outer#1/inner#1", "outer#1"),
    ] {
        let span = named(name);
        assert_eq!(parent_of(span), parent, "{name}");
        let around = named(parent);
        assert!(
            around.start_time_unix_nano <= span.start_time_unix_nano,
            "{name}"
        );
        assert!(
            span.end_time_unix_nano <= around.end_time_unix_nano,
            "{name}"
        );
    }
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "call").collect();
    let inside: Vec<String> = calls.iter().map(|span| parent_of(span)).collect();
    let expected = [
        "outer#0/inner#0",
        "outer#0/inner#1",
        "outer#0/inner#1",
        "outer#1/inner#0",
        "outer#1/inner#1",
    ];
    assert_eq!(inside, expected);
    let failed = |span: &Span| span.status.as_ref().unwrap().code == Code::Error as i32;
    let failures: Vec<bool> = calls.iter().map(|span| failed(span)).collect();
    assert_eq!(failures, [false, true, false, false, false]);

    // The called service knows the attempt: the interrupted attempt is repeated with the same span id.
    let parents = parents.lock().unwrap().clone();
    let parent_ids: Vec<String> = parents.iter().map(|(_, parent)| parent.clone()).collect();
    let trace = traces.first().unwrap();
    let mut sent = calls
        .iter()
        .map(|span| format!("00-{trace}-{}-01", hex(&span.span_id)));
    let sent: [String; 5] = std::array::from_fn(|_| sent.next().unwrap());
    let [a, b, c, d, e] = sent;
    assert_eq!(parent_ids, [a, b, c, d.clone(), d, e]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authors_own_header_stays_and_nothing_is_sent_without_a_collector() {
    let (place, (base, parents, _hangs)) = (Place::new(), worker().await);
    let (collector, _) = collector().await;
    let (file, base) = (place.file("once.yaml", ONCE), format!("base={base}"));
    let args = ["run", &file, "-i", &base];
    for collects in [true, false] {
        let ran = tokio::task::block_in_place(|| match collects {
            true => traced(&place, &args, &collector).output().unwrap(),
            false => place.run(&args),
        });
        assert!(ran.status.success(), "{ran:?}");
        let stdout = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(stdout.contains("00-"), collects, "{stdout}");
        let parent_ids: Vec<String> = parents.lock().unwrap().drain(..).map(|one| one.1).collect();
        let [own, usual] = parent_ids.try_into().unwrap();
        assert_eq!((&*own, usual.starts_with("00-")), ("mine", collects));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_or_is_gone_delays_no_run() {
    let place = Place::new();
    let hang = post(std::future::pending::<Response>);
    let hanging = serve(Router::new().route("/v1/traces", hang)).await;
    let file = place.file(
        "n.yaml",
        "actions: { n: { type: foreach, foreach: '@range(0, 200)', actions: { e: { type: shell, run: 'true' } } } }",
    );
    for collector in [&*hanging, "http://127.0.0.1:1"] {
        let ran = tokio::task::block_in_place(|| {
            traced(&place, &["run", &file], collector).output().unwrap()
        });
        assert!(ran.status.success(), "{ran:?}");
    }
    for (endpoint, message) in [
        ("nowhere", "nowhere/v1/traces is not a valid URL"),
        ("ftp://x", "ftp://x/v1/traces is not the URL of a collector"),
        ("http://", "http:/v1/traces is not the URL of a collector"),
    ] {
        let ran = traced(&place, &["run", &file], endpoint).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_span_of_a_child_run_has_a_link_to_its_caller() {
    let place = Place::new();
    let (collector, spans) = collector().await;
    place.file(
        "child.yaml",
        "name: child\nactions: { a: { type: compose, inputs: 1 } }\n",
    );
    let file = place.file(
        "caller.yaml",
        "name: caller\nactions: { call: { type: workflow, workflow: child.yaml } }\n",
    );
    let ran = tokio::task::block_in_place(|| {
        traced(&place, &["run", &file], &collector)
            .output()
            .unwrap()
    });
    assert!(ran.status.success(), "{ran:?}");
    let spans = spans.lock().unwrap().clone();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (caller, child) = (named("caller"), named("child"));
    assert!(caller.links.is_empty());
    assert_eq!(child.links.len(), 1);
    assert_eq!(child.links[0].trace_id, caller.trace_id);
    assert_eq!(child.links[0].span_id, caller.span_id);
}
