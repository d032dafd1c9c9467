//! Lists the iterations of a loop in pages.

use super::{LoopView, StoredDetail, at_pointer, shorten_large};
use crate::report::StatusFilter;
use crate::report::change::same;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_machine::IterationRow;
use windlass_model::model::Status;
use windlass_store::EndedIteration;

/// Number of iterations that are read at a time.
const READ: usize = 128;

/// Selects the iterations for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationsFilter {
    /// The loop's path.
    pub path: String,
    /// The number of the first iteration. `None`: 0.
    pub from: Option<u64>,
    /// The number after the last iteration. `None`: the number of ended iterations.
    pub to: Option<u64>,
    /// Only iterations with one of these statuses. Empty: iterations of any status.
    pub status: Vec<StatusFilter<Status>>,
    /// Only iterations whose result differs from the previous one at this JSON pointer. Headers of HTTP responses are
    /// ignored.
    pub changed: Option<String>,
    /// Only iterations with this text in their result or error, ignoring case.
    pub text: Option<String>,
    pub newest_first: bool,
    /// Maximum number of iterations.
    pub limit: usize,
}

/// A page of the iterations of one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationsReport {
    /// Id of the run.
    pub run: String,
    /// Path of the loop: `outer#2/inner`.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// Iterations of the page, in the requested order.
    pub iterations: Vec<IterationEntry>,
    /// Start of the next page: the value for its `from`, or for its `to` with `order=desc`. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Number of iterations that were left out of the page, because the values that `changed` or
    /// `text` reads are not stored.
    #[serde(default, skip_serializing_if = "crate::report::summary::is_zero")]
    pub not_stored: u64,
}

/// One iteration in a page. `result` is null if it is not stored, and shortened if it is over 64 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationEntry {
    /// Path, number, status, times and result of the iteration.
    #[serde(flatten)]
    pub row: IterationRow,
    /// Highest number of attempts of one of its actions, at least 1.
    pub attempts: u32,
    /// Duration of the iteration in milliseconds.
    pub duration_ms: u64,
    /// Message of its failure. If it succeeded with failures, the message of the last one. Absent without a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much of the iteration is stored.
    pub stored: StoredDetail,
}

/// Returns a page of the iterations of a loop.
///
/// # Errors
/// Returns store errors, or an error for an unknown run or loop.
pub fn iterations(
    inspector: &Inspector,
    run: &str,
    filter: &IterationsFilter,
) -> Result<IterationsReport, EngineError> {
    let view = LoopView::load(inspector, run, &filter.path)?;
    let (from, to) = view.clamp_range(filter.from, filter.to);
    let accepts = |status: &StatusFilter<Status>, one: &EndedIteration| {
        status.accepts(one.status, one.has_handled_failure())
    };
    let wanted = |one: &EndedIteration| {
        filter.status.is_empty() || filter.status.iter().any(|status| accepts(status, one))
    };
    let by_value = filter.changed.is_some() || filter.text.is_some();
    let most = if by_value {
        READ
    } else {
        filter.limit.saturating_add(1)
    };
    let mut page = Vec::new();
    let mut next = None;
    let mut not_stored = 0;
    'blocks: for block in view.of.blocks(from, to, filter.newest_first) {
        let mut left: Vec<IterationWithPrevious> = (0..)
            .zip(&block)
            .filter(|(_, one)| wanted(one))
            .map(|(at, one)| IterationWithPrevious::new(&view, filter, &block, at, one))
            .collect();
        if filter.newest_first {
            left.reverse();
        }
        for part in left.chunks(most) {
            let rows = Rows::read(inspector, &view, part)?;
            for IterationWithPrevious { one, .. } in part {
                if !rows.matches(one, filter) {
                    not_stored += u64::from(rows.lack(one, filter));
                    continue;
                }
                if page.len() == filter.limit {
                    next = Some(one.iteration.saturating_add(u64::from(filter.newest_first)));
                    break 'blocks;
                }
                page.push(rows.entry(&view, one));
            }
        }
    }
    Ok(IterationsReport {
        run: view.header.id.to_string(),
        loop_path: view.path,
        iterations: page,
        next,
        not_stored,
    })
}

/// An iteration, and the iteration before it if the two are compared.
struct IterationWithPrevious {
    one: EndedIteration,
    earlier: Option<EndedIteration>,
}

impl IterationWithPrevious {
    /// Makes the pair for the iteration at this position in a block of iterations.
    fn new(
        view: &LoopView,
        filter: &IterationsFilter,
        block: &[EndedIteration],
        at: usize,
        one: &EndedIteration,
    ) -> Self {
        let number = one.iteration.checked_sub(1);
        let number = number.filter(|_| filter.changed.is_some());
        let before = |number| match at.checked_sub(1).and_then(|at| block.get(at)) {
            Some(before) if before.iteration == number => Some(before.clone()),
            _ => view.of.one(number),
        };
        Self {
            one: one.clone(),
            earlier: number.and_then(before),
        }
    }
}

/// The results of iterations, by the number of the iteration.
struct Rows(HashMap<u64, Value>);

impl Rows {
    fn read(
        inspector: &Inspector,
        view: &LoopView,
        part: &[IterationWithPrevious],
    ) -> Result<Self, EngineError> {
        let wanted = part
            .iter()
            .flat_map(|pair| pair.earlier.iter().chain([&pair.one]));
        let mut wanted: Vec<&EndedIteration> = wanted.collect();
        wanted.sort_by_key(|one| one.iteration);
        wanted.dedup_by_key(|one| one.iteration);
        let rows = view.rows(inspector, &wanted)?;
        Ok(Self(
            rows.into_iter()
                .map(|row| (row.iteration, row.result))
                .collect(),
        ))
    }

    fn matches(&self, one: &EndedIteration, filter: &IterationsFilter) -> bool {
        let result = self.0.get(&one.iteration);
        let changed = filter.changed.as_deref().is_none_or(|pointer| {
            let earlier = one.iteration.checked_sub(1);
            let earlier = earlier.and_then(|earlier| self.0.get(&earlier));
            // If one of the two results is not stored, it is not known whether they differ.
            let (Some(result), Some(earlier)) = (result, earlier) else {
                return false;
            };
            let at = |value| at_pointer(value, pointer).cloned().unwrap_or_default();
            !same(&at(result), &at(earlier))
        });
        let text = filter.text.as_deref().is_none_or(|text| {
            let text = text.to_lowercase();
            let within = |more: &str| more.to_lowercase().contains(&text);
            one.error.as_deref().is_some_and(within)
                || result.is_some_and(|result| within(&super::shown(result).to_json()))
        });
        changed && text
    }

    /// Returns whether a result that the filter reads is not stored.
    fn lack(&self, one: &EndedIteration, filter: &IterationsFilter) -> bool {
        let lacks = |number| !self.0.contains_key(&number);
        let earlier = one.iteration.checked_sub(1);
        let compared = filter.changed.as_ref().and(earlier);
        compared.is_some_and(|earlier| lacks(earlier) || lacks(one.iteration))
            || filter.text.is_some() && lacks(one.iteration)
    }

    fn entry(&self, view: &LoopView, one: &EndedIteration) -> IterationEntry {
        let result = self.0.get(&one.iteration);
        let retention = match result {
            Some(_) => view.retention_of(one),
            None => StoredDetail::Summary,
        };
        IterationEntry {
            row: IterationRow {
                path: view.path.clone(),
                iteration: one.iteration,
                condition: one.condition,
                status: one.status,
                result: result
                    .map(|result| shorten_large(result, "/result"))
                    .unwrap_or_default(),
                started_at: one.started_at,
                ended_at: one.ended_at,
            },
            attempts: one.attempts,
            duration_ms: super::strip::duration_ms(one),
            error: one.error.as_deref().map(str::to_owned),
            stored: retention,
        }
    }
}
