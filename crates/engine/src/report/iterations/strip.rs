//! How the iterations of a loop ended, in a limited number of cells. If there are enough cells, each iteration has a
//! cell of its own. If not, a cell has several consecutive iterations. The counts of all cells always add up to the
//! totals.

use super::super::BudgetReport;
use super::LoopView;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;
use windlass_model::model::Status;
use windlass_store::EndedIteration;

/// Maximum number of failed iterations that are listed with their numbers.
const MAX_FAILED: usize = 1_000;

/// Maximum number of different messages that are listed.
const MAX_MESSAGES: usize = 20;

/// Maximum number of different messages that are counted.
const MAX_KINDS: usize = 4_096;

/// Maximum number of cells.
pub const MAX_CELLS: u64 = 10_000;

/// Selects a part of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripFilter {
    /// The loop's path.
    pub path: String,
    /// The number of the first iteration. `None`: 0.
    pub from: Option<u64>,
    /// The number after the last iteration. `None`: the number of ended iterations.
    pub to: Option<u64>,
    /// Maximum number of cells.
    pub buckets: u64,
}

/// Numbers of iterations, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// Number of iterations that succeeded, also with handled failures.
    pub succeeded: u64,
    /// Number of succeeded iterations in which an action failed and the failure was handled.
    pub succeeded_with_failures: u64,
    /// Number of iterations that failed.
    pub failed: u64,
    /// Number of iterations that timed out.
    pub timed_out: u64,
    /// Number of iterations that were cancelled.
    pub cancelled: u64,
    /// Number of iterations that were skipped.
    pub skipped: u64,
    /// Number of iterations, of any status, in which an action had more than one attempt.
    pub retried: u64,
}

/// A group of consecutive iterations, with their counts and durations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StripCell {
    /// Number of the first iteration of the cell, from 0.
    pub from: u64,
    /// Number of the iteration after the last one of the cell.
    pub to: u64,
    /// Counts of the iterations in the cell.
    #[serde(flatten)]
    pub totals: Totals,
    /// Shortest duration of an iteration in milliseconds. Absent if no iteration of the cell is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<u64>,
    /// Mean duration of the iterations in milliseconds. Absent if no iteration of the cell is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<u64>,
    /// Longest duration of an iteration in milliseconds. Absent if no iteration of the cell is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// Value of the condition before the iteration, if each cell is one iteration and the loop checks its condition
    /// first. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
}

/// Failures whose messages differ only in their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureCount {
    /// Message of the failures, with `#` for each number except status and exit codes.
    pub message: String,
    /// Number of iterations with such a failure.
    pub count: u64,
    /// Number of the first of these iterations, from 0.
    pub first: u64,
    /// Number of the last of these iterations, from 0.
    pub last: u64,
}

/// How the iterations of a loop ended, as counts in cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StripReport {
    /// Id of the run.
    pub run: String,
    /// Path of the loop: `outer#2/inner`.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// Display name, if it differs from the name. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Type of the loop, as its file has it: `until`, `foreach`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of iterations that have ended, including those that are no longer stored. Of a foreach, the highest index of an
    /// ended item, plus 1.
    pub iterations: u64,
    /// Maximum number of iterations. Of a running foreach, the number of its items; absent if the foreach has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// What the loop's actions used of its limits `tokens` and `cost`. Absent without such limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// Whether an iteration is running.
    pub running: bool,
    /// Number of the first reported iteration, from 0.
    pub from: u64,
    /// Number of the iteration after the last reported one.
    pub to: u64,
    /// Whether each cell is one iteration.
    pub exact: bool,
    /// Number of iterations in the reported range that are no longer stored.
    pub forgotten: u64,
    /// Counts of all stored iterations in the reported range.
    pub totals: Totals,
    /// Cells of the reported range. Their counts add up to `totals`.
    pub cells: Vec<StripCell>,
    /// Numbers, from 0, of the iterations that failed or timed out: the first 1,000 of the reported range.
    pub failed: Vec<u64>,
    /// Whether more than these 1,000 iterations failed or timed out.
    pub failed_more: bool,
    /// Messages of the failures, the most frequent first; at most 20. Includes iterations that succeeded although an
    /// item or an action failed.
    pub messages: Vec<FailureCount>,
}

/// Returns how the iterations of a loop ended.
///
/// # Errors
/// Returns store errors, or an error for an unknown run or loop.
pub fn strip(
    inspector: &Inspector,
    run: &str,
    filter: &StripFilter,
) -> Result<StripReport, EngineError> {
    let view = LoopView::load(inspector, run, &filter.path)?;
    let (from, to) = view.clamp_range(filter.from, filter.to);
    let width = (to - from)
        .div_ceil(filter.buckets.clamp(1, MAX_CELLS))
        .max(1);
    let mut builder = StripBuilder::new(from, to, width);
    for block in view.of.blocks(from, to, false) {
        block.iter().for_each(|one| builder.add(one));
    }
    Ok(StripReport {
        run: view.header.id.to_string(),
        exact: width == 1,
        forgotten: (to - from).saturating_sub(builder.all.count),
        totals: builder.all.totals,
        failed_more: builder.failed_more,
        messages: builder.messages(),
        loop_path: view.path,
        title: view.title,
        kind: view.kind,
        iterations: view.count,
        max_iterations: view.max_iterations,
        budgets: view
            .of
            .state
            .as_ref()
            .map(BudgetReport::of)
            .unwrap_or_default(),
        running: view.running,
        from,
        to,
        cells: builder.cells.into_iter().map(Bucket::cell).collect(),
        failed: builder.failed,
    })
}

pub(super) fn duration_ms(one: &EndedIteration) -> u64 {
    let duration = one.ended_at.since(one.started_at).as_millis();
    u64::try_from(duration).unwrap_or(u64::MAX)
}

/// The counts of the iterations in a cell.
#[derive(Clone, Default)]
struct Bucket {
    from: u64,
    to: u64,
    totals: Totals,
    count: u64,
    sum_ms: u64,
    shortest_and_longest_ms: Option<(u64, u64)>,
    condition: Option<bool>,
}

impl Bucket {
    fn add(&mut self, one: &EndedIteration) {
        *match one.status {
            Status::Succeeded => &mut self.totals.succeeded,
            Status::Failed => &mut self.totals.failed,
            Status::TimedOut => &mut self.totals.timed_out,
            Status::Cancelled => &mut self.totals.cancelled,
            Status::Skipped => &mut self.totals.skipped,
        } += 1;
        self.totals.succeeded_with_failures += u64::from(one.has_handled_failure());
        self.totals.retried += u64::from(one.attempts > 1);
        let took = duration_ms(one);
        let (shortest, longest) = self.shortest_and_longest_ms.unwrap_or((took, took));
        self.shortest_and_longest_ms = Some((shortest.min(took), longest.max(took)));
        self.sum_ms = self.sum_ms.saturating_add(took);
        self.count += 1;
        self.condition = one.condition.filter(|_| self.to - self.from == 1);
    }

    fn cell(self) -> StripCell {
        let (min_ms, max_ms) = self.shortest_and_longest_ms.unzip();
        StripCell {
            from: self.from,
            to: self.to,
            totals: self.totals,
            min_ms,
            mean_ms: self.sum_ms.checked_div(self.count),
            max_ms,
            condition: self.condition,
        }
    }
}

/// Counts the iterations of a strip. Its memory does not grow with the number of iterations.
struct StripBuilder {
    from: u64,
    width: u64,
    all: Bucket,
    cells: Vec<Bucket>,
    failed: Vec<u64>,
    failed_more: bool,
    counts: HashMap<String, FailureCount>,
}

impl StripBuilder {
    fn new(from: u64, to: u64, width: u64) -> Self {
        let starts = (0..(to - from).div_ceil(width)).map(|cell| from + cell * width);
        let bucket = |from: u64| Bucket {
            from,
            to: from.saturating_add(width).min(to),
            ..Bucket::default()
        };
        Self {
            from,
            width,
            all: Bucket::default(),
            cells: starts.map(bucket).collect(),
            failed: Vec::new(),
            failed_more: false,
            counts: HashMap::new(),
        }
    }

    fn add(&mut self, one: &EndedIteration) {
        self.all.add(one);
        let cell = one.iteration.saturating_sub(self.from) / self.width;
        let cell = usize::try_from(cell).ok();
        if let Some(cell) = cell.and_then(|cell| self.cells.get_mut(cell)) {
            cell.add(one);
        }
        if one.status.is_failure() {
            match self.failed.len() < MAX_FAILED {
                true => self.failed.push(one.iteration),
                false => self.failed_more = true,
            }
        }
        if let Some(message) = one.error.as_deref() {
            self.count(without_numbers(message), one.iteration);
        }
    }

    fn count(&mut self, message: String, iteration: u64) {
        if self.counts.len() >= MAX_KINDS && !self.counts.contains_key(&message) {
            return;
        }
        let count = self
            .counts
            .entry(message)
            .or_insert_with_key(|message| FailureCount {
                message: message.clone(),
                count: 0,
                first: iteration,
                last: iteration,
            });
        count.count += 1;
        count.last = iteration;
    }

    /// Returns the most frequent messages, sorted by their counts.
    fn messages(&mut self) -> Vec<FailureCount> {
        let counts = std::mem::take(&mut self.counts);
        let mut counts: Vec<FailureCount> = counts.into_values().collect();
        counts.sort_by_key(|one| (u64::MAX - one.count, one.first));
        counts.truncate(MAX_MESSAGES);
        counts
    }
}

/// Replaces each number of a message by `#`, except a status or exit code. So failures that differ only in an id count
/// as the same failure.
fn without_numbers(message: &str) -> String {
    let mut alike = String::with_capacity(message.len());
    let mut is_code = false;
    for letter in message.chars() {
        if !letter.is_ascii_digit() {
            is_code = false;
            alike.push(letter);
            continue;
        }
        is_code |= alike.ends_with("answered ") || alike.ends_with("exit code ");
        if is_code {
            alike.push(letter);
        } else if !alike.ends_with('#') {
            alike.push('#');
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn ids_are_masked_and_codes_are_not() {
        for (message, alike) in [
            (
                "GET http://h:80/items/17 answered 503",
                "GET http://h:#/items/# answered 503",
            ),
            (
                "page 12 ended with exit code 137 after 5 s",
                "page # ended with exit code 137 after # s",
            ),
        ] {
            assert_eq!(without_numbers(message), alike);
        }
    }
}
