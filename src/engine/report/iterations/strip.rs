//! How the iterations of a loop ended, in at most so many cells: one for each where they are enough,
//! else for as many as it takes. The counts of the cells always add up to those of the whole.

use super::LoopView;
use crate::engine::{EngineError, Inspector};
use crate::model::Status;
use crate::store::EndedIteration;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;

/// So many numbers of failed iterations are listed.
const MAX_FAILED: usize = 1_000;

/// So many failures are told apart by their messages.
const MAX_MESSAGES: usize = 20;

/// The largest number of cells.
pub const MAX_CELLS: u64 = 10_000;

/// Which part of a loop is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripFilter {
    /// The loop's path.
    pub path: String,
    /// The first iteration.
    pub from: Option<u64>,
    /// The one behind the last.
    pub to: Option<u64>,
    /// So many cells at most.
    pub buckets: u64,
}

/// How iterations ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// They did what they should.
    pub succeeded: u64,
    /// They did not.
    pub failed: u64,
    /// A deadline cut them.
    pub timed_out: u64,
    /// They were cancelled.
    pub cancelled: u64,
    /// Their turn never came.
    pub skipped: u64,
    /// Of all of these, those in which an action took more than one attempt.
    pub retried: u64,
}

/// Iterations that are shown as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StripCell {
    /// The first of them.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
    /// How they ended.
    #[serde(flatten)]
    pub totals: Totals,
    /// The shortest, in milliseconds; none when none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<u64>,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<u64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// What the condition gave, of a single iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
}

/// Failures with the same message, but for its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureCount {
    /// What happened, with `#` for each number.
    pub message: String,
    /// In how many iterations.
    pub count: u64,
    /// The first of those.
    pub first: u64,
    /// The last of those.
    pub last: u64,
}

/// How the iterations of a loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StripReport {
    /// The run.
    pub run: String,
    /// The loop's path.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// What people call it, where that is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its authored type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many iterations have ended.
    pub iterations: u64,
    /// How many may run; the number of items of a foreach while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// Whether one is under way.
    pub running: bool,
    /// The first iteration that is shown, from 0.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
    /// Whether each cell is one iteration.
    pub exact: bool,
    /// Of how many iterations nothing is kept.
    pub forgotten: u64,
    /// How they ended.
    pub totals: Totals,
    /// The same in parts.
    pub cells: Vec<StripCell>,
    /// The first 1,000 that failed or were out of time.
    pub failed: Vec<u64>,
    /// Whether there are more of those.
    pub failed_more: bool,
    /// Their messages, the most frequent first; 20 at most.
    pub messages: Vec<FailureCount>,
}

/// How the iterations of a loop ended.
///
/// # Errors
/// Store errors. There is no such run or loop.
pub fn strip(
    inspector: &Inspector,
    run: &str,
    filter: &StripFilter,
) -> Result<StripReport, EngineError> {
    let view = LoopView::load(inspector, run, &filter.path)?;
    let (from, to, ended) = view.between(filter.from, filter.to);
    let width = (to - from)
        .div_ceil(filter.buckets.clamp(1, MAX_CELLS))
        .max(1);
    let mut cells = Vec::new();
    let mut rest = ended;
    let mut at = from;
    while at < to {
        let end = at.saturating_add(width).min(to);
        let (here, after) = rest.split_at(rest.partition_point(|one| one.iteration < end));
        cells.push(StripCell::new(at, end, here));
        (rest, at) = (after, end);
    }
    let failures = || ended.iter().filter(|one| is_failure(one.status));
    let failed: Vec<u64> = failures()
        .map(|one| one.iteration)
        .take(MAX_FAILED)
        .collect();
    Ok(StripReport {
        run: view.header.id.to_string(),
        exact: width == 1,
        forgotten: (to - from).saturating_sub(ended.len() as u64),
        totals: Totals::of(ended),
        failed_more: failures().nth(failed.len()).is_some(),
        messages: messages(failures()),
        loop_path: view.path,
        title: view.title,
        kind: view.kind,
        iterations: view.count,
        max_iterations: view.max_iterations,
        running: view.running,
        from,
        to,
        cells,
        failed,
    })
}

fn is_failure(status: Status) -> bool {
    matches!(status, Status::Failed | Status::TimedOut)
}

pub(super) fn duration_ms(one: &EndedIteration) -> u64 {
    let duration = one.ended_at.since(one.started_at).as_millis();
    u64::try_from(duration).unwrap_or(u64::MAX)
}

impl Totals {
    fn of(ended: &[EndedIteration]) -> Self {
        let mut totals = Self::default();
        for one in ended {
            *match one.status {
                Status::Succeeded => &mut totals.succeeded,
                Status::Failed => &mut totals.failed,
                Status::TimedOut => &mut totals.timed_out,
                Status::Cancelled => &mut totals.cancelled,
                Status::Skipped => &mut totals.skipped,
            } += 1;
            totals.retried += u64::from(one.attempts > 1);
        }
        totals
    }
}

impl StripCell {
    fn new(from: u64, to: u64, ended: &[EndedIteration]) -> Self {
        let sum: u64 = ended.iter().map(duration_ms).fold(0, u64::saturating_add);
        let single = ended.first().filter(|_| to - from == 1);
        Self {
            from,
            to,
            totals: Totals::of(ended),
            min_ms: ended.iter().map(duration_ms).min(),
            mean_ms: sum.checked_div(ended.len() as u64),
            max_ms: ended.iter().map(duration_ms).max(),
            condition: single.and_then(|one| one.condition),
        }
    }
}

/// A message with `#` for each number: what failed in the same way with another id is the same failure.
fn without_numbers(message: &str) -> String {
    let mut alike = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter.is_ascii_digit() {
            true if alike.ends_with('#') => {}
            true => alike.push('#'),
            false => alike.push(letter),
        }
    }
    alike
}

fn messages<'a>(failures: impl Iterator<Item = &'a EndedIteration>) -> Vec<FailureCount> {
    let mut counts: HashMap<String, FailureCount> = HashMap::new();
    for (message, one) in failures.filter_map(|one| Some((one.error.as_deref()?, one))) {
        let alike = without_numbers(message);
        let count = counts
            .entry(alike)
            .or_insert_with_key(|alike| FailureCount {
                message: alike.clone(),
                count: 0,
                first: one.iteration,
                last: one.iteration,
            });
        count.count += 1;
        count.last = one.iteration;
    }
    let mut counts: Vec<FailureCount> = counts.into_values().collect();
    counts.sort_by_key(|one| (u64::MAX - one.count, one.first));
    counts.truncate(MAX_MESSAGES);
    counts
}
