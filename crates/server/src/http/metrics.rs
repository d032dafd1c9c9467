//! `/metrics`, for Prometheus: the engine's counters, the runs of the store by status, and the process.

use super::process_metrics;
use crate::api::Problem;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::report::RunCounts;
use windlass_engine::{Engine, ErrorCode, RunStatus};

pub(super) const OPEN_METRICS: &str = "application/openmetrics-text";
pub(super) const OPEN_METRICS_1: &str =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PLAIN_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counts of runs are reused for this time at least.
const FRESH: Duration = Duration::from_secs(1);
/// If counting takes long, the counts are reused for this multiple of that time.
const REST: u32 = 20;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByStatus {
    status: &'static str,
}

/// The metrics of the server.
pub(super) struct Metrics {
    registry: Registry,
    runs: Family<ByStatus, Gauge>,
    asleep: Gauge,
    counted: Mutex<Option<CountTime>>,
}

/// When the runs were last counted, and how long the counting lasted.
struct CountTime {
    at: Instant,
    took: Duration,
}

impl Metrics {
    pub fn new(engine: &Engine) -> Self {
        let mut registry = Registry::with_prefix("windlass");
        let (runs, asleep) = (Family::<ByStatus, Gauge>::default(), Gauge::default());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version", version);
        registry.register("runs", "Runs in the store by what they do", runs.clone());
        registry.register(
            "sleeping_runs",
            "Runs that sleep for long: rows of the store's timer index",
            asleep.clone(),
        );
        let of = engine.metrics();
        let mut seconds = |name: &str, help: &str, metric| {
            registry.register_with_unit(name, help, Unit::Seconds, metric);
        };
        seconds(
            "commit",
            "How long a group of steps took to become durable",
            of.commit_seconds.clone(),
        );
        seconds(
            "timer_lag",
            "How long after its due time a timer fired",
            of.timer_lag_seconds.clone(),
        );
        registry.register_with_unit(
            "run_duration",
            "How long the runs that ended took from their start",
            Unit::Seconds,
            of.run_seconds.clone(),
        );
        let size = of.group_size.clone();
        registry.register("commit_group_size", "How many steps one commit held", size);
        for (name, help, counter) in [
            ("commits", "Steps that were made durable", &of.commits),
            (
                "failed_commits",
                "Groups that the store refused",
                &of.failed_commits,
            ),
            ("effects", "Effects that were started", &of.effects),
            (
                "retries",
                "Attempts that failed and are followed by another",
                &of.retries,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, by_workflow) in [
            (
                "loop_iterations",
                "Iterations of loops that ended",
                &of.iterations,
            ),
            ("runs_started", "Runs that were started", &of.runs_started),
            (
                "failed_endings",
                "on_failure and on_finish of runs that failed, such as alerts that were not \
                 delivered",
                &of.failed_endings,
            ),
            (
                "missed_scheduled_times",
                "Scheduled times that have no run because no server was there",
                &of.missed_times,
            ),
        ] {
            registry.register(name, help, by_workflow.clone());
        }
        let calls = of.failed_calls.clone();
        registry.register("failed_calls", "Calls that failed", calls);
        let ended = of.runs_finished.clone();
        registry.register("runs_finished", "Runs that ended", ended);
        for (name, help, gauge) in [
            ("timers", "Timers that are armed in memory", &of.timers),
            (
                "runs_in_memory",
                "Runs that are in memory",
                &of.runs_in_memory,
            ),
            (
                "guest_memory_bytes",
                "Estimated memory of the runs of guest workflows",
                &of.guest_memory_bytes,
            ),
            (
                "runs_waiting_for_memory",
                "Runs of guest workflows that wait on disk for memory",
                &of.runs_waiting_for_memory,
            ),
            (
                "effects_in_flight",
                "Effects that are carried out",
                &of.effects_in_flight,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        Self {
            registry,
            runs,
            asleep,
            counted: Mutex::default(),
        }
    }

    pub fn is_fresh(&self) -> bool {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted
            .as_ref()
            .is_some_and(|last| last.at.elapsed() < FRESH.max(last.took * REST))
    }

    pub fn take(&self, counts: &RunCounts, took: Duration) {
        for status in RunStatus::ALL {
            let label = ByStatus {
                status: status.as_str(),
            };
            self.runs
                .get_or_create(&label)
                .set(signed(counts.of(status)));
        }
        self.asleep.set(signed(counts.sleeping));
        let at = Instant::now();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted = Some(CountTime { at, took });
    }

    /// Returns the metrics in the format of OpenMetrics.
    pub fn open_metrics(&self) -> Result<String, Problem> {
        let mut text = String::new();
        let encoded = encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &process_metrics::registry()))
            .and_then(|()| encode_eof(&mut text));
        encoded.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        Ok(text)
    }
}

/// Converts OpenMetrics to the older text format of Prometheus, in which a metric has the name of its series.
pub(super) fn plain_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (end, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                let _ = writeln!(text, "# HELP {name}{end} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{end} {kind}");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
