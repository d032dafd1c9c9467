//! Sends spans of runs to a collector: OTLP over HTTP, as JSON (opentelemetry.io/docs/specs/otlp). Runs never wait for
//! the collector. Spans that it does not accept in time are dropped, and their number is logged.

use super::EngineError;
use crate::scheduler::{SpanSink, TraceSpan};
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use windlass_model::model::{SpanSubject, trace_id};

/// Maximum number of spans that wait for their request.
const WAITING: usize = 8_192;
/// Maximum number of spans in one request.
const BATCH: usize = 512;

/// Time for which the first span of a request waits for others.
const GATHER: Duration = Duration::from_millis(500);

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of all remaining requests together when the engine stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// The collector of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTarget {
    /// The URL of the collector, with its path.
    pub url: String,
    /// Headers of each request, for example a token.
    pub headers: Vec<(String, String)>,
    /// The value of the attribute `service.name`.
    pub service: String,
}

impl OtlpTarget {
    /// Reads the environment variables that OpenTelemetry defines. Returns `None` if they name no collector, or disable
    /// the export.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let either = |name: &str| {
            let own = set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
            own.or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        if set("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return None;
        }
        let of_all = |base: String| format!("{}/v1/traces", base.trim_end_matches('/'));
        let url = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT").map(of_all))?;
        let headers = either("HEADERS").unwrap_or_default();
        let pairs = headers.split(',').filter_map(|pair| pair.split_once('='));
        let plain = |text: &str| {
            percent_decode_str(text.trim())
                .decode_utf8_lossy()
                .into_owned()
        };
        Some(Self {
            url,
            headers: pairs
                .map(|(name, text)| (plain(name), plain(text)))
                .collect(),
            service: set("OTEL_SERVICE_NAME").unwrap_or_else(|| String::from("windlass")),
        })
    }
}

/// Sends spans in the background.
pub(super) struct Exporter {
    spans: mpsc::Sender<TraceSpan>,
    dropped: Arc<AtomicU64>,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
}

impl Exporter {
    /// Starts the background task. Call this inside a tokio runtime.
    #[allow(
        clippy::disallowed_methods,
        reason = "the task only watches: no run depends on it"
    )]
    pub fn start(target: OtlpTarget) -> Result<Self, EngineError> {
        let bad = |what: String| EngineError::Otlp(what);
        let url = reqwest::Url::parse(&target.url)
            .map_err(|error| bad(format!("{} is not a valid URL: {error}", target.url)))?;
        // The parser of URLs would use the first part of the path as a missing host.
        let host = target.url.split_once("://").map_or("", |(_, rest)| rest);
        if !matches!(url.scheme(), "http" | "https") || host.starts_with('/') || host.is_empty() {
            let what = "is not the URL of a collector (expected e.g. `http://127.0.0.1:4318`)";
            return Err(bad(format!("{} {what}", target.url)));
        }
        let mut headers = HeaderMap::new();
        for (name, text) in &target.headers {
            let name = HeaderName::try_from(name);
            let (Ok(name), Ok(text)) = (name, HeaderValue::try_from(text)) else {
                return Err(bad(String::from(
                    "OTEL_EXPORTER_OTLP_HEADERS has no usable header",
                )));
            };
            headers.insert(name, text);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(PATIENCE)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        let (spans, queue) = mpsc::channel(WAITING);
        let (flushes, flush_requests) = mpsc::channel(1);
        let dropped = Arc::new(AtomicU64::new(0));
        let task = SendTask {
            client,
            url,
            service: target.service,
            dropped: Arc::clone(&dropped),
        };
        tokio::spawn(task.run(queue, flush_requests));
        Ok(Self {
            spans,
            dropped,
            flushes,
        })
    }

    pub fn sink(&self) -> SpanSink {
        let (spans, dropped) = (self.spans.clone(), Arc::clone(&self.dropped));
        Arc::new(move |span| {
            if spans.try_send(span).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Waits at most [`FAREWELL`] until all reported spans have been sent.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let flushed = async {
            let _ = self.flushes.send(done).await;
            let _ = sent.await;
        };
        if timeout(FAREWELL, flushed).await.is_err() {
            tracing::warn!("the collector of OTLP does not answer: its last spans are lost");
        }
    }
}

struct SendTask {
    client: reqwest::Client,
    url: reqwest::Url,
    service: String,
    dropped: Arc<AtomicU64>,
}

impl SendTask {
    async fn run(
        self,
        mut queue: mpsc::Receiver<TraceSpan>,
        mut flushes: mpsc::Receiver<oneshot::Sender<()>>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let flush = tokio::select! {
                biased;
                got = queue.recv_many(&mut batch, BATCH) => match got {
                    0 => return,
                    BATCH => None,
                    _ => tokio::select! {
                        () = sleep(GATHER) => None,
                        flush = flushes.recv() => flush,
                    },
                },
                flush = flushes.recv() => flush,
            };
            while batch.len() < BATCH
                && let Ok(span) = queue.try_recv()
            {
                batch.push(span);
            }
            self.send(&mut batch).await;
            let Some(done) = flush else {
                continue;
            };
            while let Ok(span) = queue.try_recv() {
                batch.push(span);
                if batch.len() == BATCH {
                    self.send(&mut batch).await;
                }
            }
            self.send(&mut batch).await;
            // An error is ignored: the caller may no longer wait for the flush.
            let _ = done.send(());
        }
    }

    async fn send(&self, batch: &mut Vec<TraceSpan>) {
        let spans: Vec<Value> = batch.drain(..).map(|span| encoded(&span)).collect();
        if spans.is_empty() {
            return;
        }
        let count = spans.len() as u64;
        let scope = json!({ "name": "windlass", "version": env!("CARGO_PKG_VERSION") });
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [attribute("service.name", &self.service)] },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] });
        let sent = self
            .client
            .post(self.url.clone())
            .body(body.to_string())
            .send()
            .await;
        let why = match sent.and_then(reqwest::Response::error_for_status) {
            Ok(_) => None,
            Err(error) => Some(error.without_url().to_string()),
        };
        let lost = self.dropped.swap(0, Ordering::Relaxed) + why.as_ref().map_or(0, |_| count);
        if lost > 0 {
            let why = why.unwrap_or_else(|| String::from("it is slower than the runs"));
            tracing::warn!(lost, "the collector of OTLP did not take spans: {why}");
        }
    }
}

/// Encodes a span as the JSON that OTLP defines.
fn encoded(span: &TraceSpan) -> Value {
    let run = &*span.run;
    let nanoseconds = |at: windlass_value::time::Timestamp| format!("{}000000", at.0.max(0));
    let own = std::iter::once(("windlass.run", run));
    let others = span.attributes.iter().map(|(name, text)| (*name, &**text));
    let attributes: Vec<Value> = own
        .chain(others)
        .map(|(name, text)| attribute(name, text))
        .collect();
    let status = match &span.error {
        Some(message) => json!({ "code": 2, "message": message }),
        None => json!({ "code": 1 }),
    };
    let parent = span.parent.as_ref().map(|parent| parent.id(run));
    let links = span.caller.iter().map(
        |caller| json!({ "traceId": trace_id(caller), "spanId": SpanSubject::Run.id(caller) }),
    );
    json!({
        "traceId": trace_id(run),
        "spanId": span.of.id(run),
        "parentSpanId": parent.unwrap_or_default(),
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": nanoseconds(span.started_at),
        "endTimeUnixNano": nanoseconds(span.ended_at.max(span.started_at)),
        "attributes": attributes,
        "links": links.collect::<Vec<_>>(),
        "status": status,
    })
}

fn attribute(name: &str, text: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": text } })
}
