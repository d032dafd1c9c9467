//! Counters of the driver: atomics that any thread may read at any time. No decision depends on them.
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use windlass_machine::HistoryKind;
use windlass_model::model::{FAILED_ENDINGS, Name};
use windlass_store::Commit;
use windlass_value::time::Timestamp;

/// Maximum number of workflows with their own counters. All other workflows share the label `other`. The number is
/// limited because callers choose the names, and each name costs memory here and in the system that collects the
/// metrics.
const WORKFLOWS: usize = 100;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct WorkflowLabels {
    workflow: Name,
}

/// Maximum number of pairs of a workflow and a host with counters of their own.
const PAIRS: usize = 500;

/// A commit that took this long is logged.
const SLOW_COMMIT: Duration = Duration::from_secs(1);

/// The label for all workflows or hosts without their own counters.
const OTHER: &str = "other";

/// The labels of failed calls.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct CallLabels {
    workflow: Name,
    host: Name,
}

/// The labels of runs that ended.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct EndedLabels {
    workflow: Name,
    status: &'static str,
}

/// The counters of one driver. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Steps that became durable.
    pub commits: Counter,
    /// How long a group of commits took to become durable, in seconds.
    pub commit_seconds: Histogram,
    /// Number of commits in a group.
    pub group_size: Histogram,
    /// Groups that the store refused.
    pub failed_commits: Counter,
    /// Timers that are armed in memory.
    pub timers: Gauge,
    /// How long after its due time a timer fired, in seconds.
    pub timer_lag_seconds: Histogram,
    pub runs_in_memory: Gauge,
    /// Approximate memory of the runs of guests (workflows from HTTP or MCP), in bytes.
    pub guest_memory_bytes: Gauge,
    /// Runs of guests that wait on disk until there is memory for them.
    pub runs_waiting_for_memory: Gauge,
    pub effects_in_flight: Gauge,
    /// Effects that were started, including those that were repeated after a crash.
    pub effects: Counter,
    /// Failed attempts that are followed by another one.
    pub retries: Counter,
    /// Iterations of loops that ended.
    pub iterations: Family<WorkflowLabels, Counter>,
    pub runs_started: Family<WorkflowLabels, Counter>,
    pub runs_finished: Family<EndedLabels, Counter>,
    /// Blocks `on_failure` and `on_finish` that failed. Their alerts may be lost.
    pub failed_endings: Family<WorkflowLabels, Counter>,
    /// Calls that failed, by the host that they were sent to.
    pub failed_calls: Family<CallLabels, Counter>,
    /// Scheduled times for which no run exists.
    pub missed_times: Family<WorkflowLabels, Counter>,
    /// Time from the start of a run to its end, in seconds.
    pub run_seconds: Family<WorkflowLabels, Histogram>,
    /// The workflows that have counters of their own.
    workflows: Arc<Mutex<HashSet<Name>>>,
    /// The pairs of a workflow and a host that have counters of their own.
    pairs: Arc<Mutex<HashSet<CallLabels>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            // From 100 µs to 26 s.
            commit_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 19)),
            group_size: Histogram::new(exponential_buckets(1.0, 2.0, 13)),
            failed_commits: Counter::default(),
            timers: Gauge::default(),
            // From 1 ms to 17 min.
            timer_lag_seconds: Histogram::new(exponential_buckets(0.001, 4.0, 11)),
            runs_in_memory: Gauge::default(),
            guest_memory_bytes: Gauge::default(),
            runs_waiting_for_memory: Gauge::default(),
            effects_in_flight: Gauge::default(),
            effects: Counter::default(),
            retries: Counter::default(),
            iterations: Family::default(),
            runs_started: Family::default(),
            runs_finished: Family::default(),
            failed_endings: Family::default(),
            failed_calls: Family::default(),
            missed_times: Family::default(),
            // From 100 ms to 29 days.
            run_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.1, 4.0, 13))
            }),
            workflows: Arc::default(),
            pairs: Arc::default(),
        }
    }
}

impl Metrics {
    /// Commits a group (commits that are written together), and counts its time and its size.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long it took decides nothing"
    )]
    pub(super) fn group<T, E>(
        &self,
        size: usize,
        commit: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let began = Instant::now();
        let outcome = commit();
        let took = began.elapsed();
        self.commit_seconds.observe(took.as_secs_f64());
        if took >= SLOW_COMMIT {
            let seconds = took.as_secs_f64();
            tracing::warn!(seconds, steps = size, "a commit was slow");
        }
        match &outcome {
            Ok(_) => {
                let size = u32::try_from(size).unwrap_or(u32::MAX);
                self.group_size.observe(f64::from(size));
                self.commits.inc_by(u64::from(size));
            }
            Err(_) => {
                self.failed_commits.inc();
            }
        }
        outcome
    }

    /// Counts what happened in a durable step of a run: iterations, retries, the end.
    pub(super) fn step(
        &self,
        workflow: &Name,
        started_at: Timestamp,
        commit: &Commit,
        iterations: u64,
    ) {
        if iterations > 0 {
            let of = self.of(workflow);
            self.iterations.get_or_create(&of).inc_by(iterations);
        }
        for event in &commit.history {
            match event.what {
                HistoryKind::RetryScheduled { .. } => {
                    self.retries.inc();
                }
                HistoryKind::RunStarted => {
                    self.runs_started.get_or_create(&self.of(workflow)).inc();
                }
                HistoryKind::RunFinished { status } => {
                    let of = self.of(workflow);
                    let took = event.at.since(started_at).as_secs_f64();
                    self.run_seconds.get_or_create(&of).observe(took);
                    let labels = &commit.header.labels;
                    let failed = FAILED_ENDINGS
                        .iter()
                        .filter(|name| labels.contains_key(**name));
                    let failed = failed.count() as u64;
                    if failed > 0 {
                        self.failed_endings.get_or_create(&of).inc_by(failed);
                    }
                    let (workflow, status) = (of.workflow, status.as_str());
                    let ended = EndedLabels { workflow, status };
                    self.runs_finished.get_or_create(&ended).inc();
                }
                _ => {}
            }
        }
    }

    fn of(&self, workflow: &Name) -> WorkflowLabels {
        let mut known = self
            .workflows
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_new =
            !known.contains(workflow) && known.len() < WORKFLOWS && known.insert(workflow.clone());
        let workflow = if is_new || known.contains(workflow) {
            workflow.clone()
        } else {
            OTHER.into()
        };
        let labels = WorkflowLabels { workflow };
        if is_new {
            // Prometheus notices a first failure only if the counter was 0 before.
            drop(self.failed_endings.get_or_create(&labels));
        }
        labels
    }

    /// Counts a failed call of a workflow to a host.
    pub(super) fn failed_call(&self, workflow: &Name, host: &Name) {
        let WorkflowLabels { workflow } = self.of(workflow);
        let mut labels = CallLabels {
            workflow,
            host: host.clone(),
        };
        let mut known = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&labels) {
            match known.len() < PAIRS {
                true => drop(known.insert(labels.clone())),
                false => labels.host = OTHER.into(),
            }
        }
        drop(known);
        self.failed_calls.get_or_create(&labels).inc();
    }

    /// Counts scheduled times of a workflow for which no run exists.
    pub(crate) fn missed(&self, workflow: &Name, times: u64) {
        let of = self.of(workflow);
        self.missed_times.get_or_create(&of).inc_by(times);
    }

    /// Records how late a timer fired.
    pub(super) fn fired(&self, due_at: Timestamp, now: Timestamp) {
        self.timer_lag_seconds
            .observe(now.since(due_at).as_secs_f64());
    }

    /// Sets the gauges of what is in memory. `guests` is the bytes that guests' runs use, and the number of runs that
    /// wait for memory.
    pub(super) fn set_in_memory(&self, runs: usize, timers: usize, guests: (u64, usize)) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (bytes, waiting) = guests;
        self.guest_memory_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.runs_waiting_for_memory.set(count(waiting));
        self.runs_in_memory.set(count(runs));
        self.timers.set(count(timers));
    }

    /// Counts an effect. It is in flight until the returned guard is dropped.
    pub(super) fn effect(&self) -> InFlight {
        self.effects.inc();
        self.effects_in_flight.inc();
        InFlight(self.effects_in_flight.clone())
    }
}

pub(super) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
