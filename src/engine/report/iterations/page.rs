//! The iterations of a loop, page by page.

use super::{Kept, LoopView, at_pointer, bounded};
use crate::engine::report::change::same;
use crate::engine::{EngineError, Inspector};
use crate::expression::Value;
use crate::machine::IterationRow;
use crate::model::Status;
use crate::store::{EndedIteration, Place};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;

/// So many rows are read at a time.
const READ: usize = 128;

/// Which iterations are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationsFilter {
    /// The loop's path.
    pub path: String,
    /// The first iteration.
    pub from: Option<u64>,
    /// The one behind the last.
    pub to: Option<u64>,
    /// Only those that ended so; none: however they ended.
    pub status: Vec<Status>,
    /// Only those with another value at this JSON pointer into the result than the one before; headers of
    /// HTTP answers do not count.
    pub changed: Option<String>,
    /// Only those with this in their result or error, in whatever case.
    pub text: Option<String>,
    /// The newest first.
    pub newest_first: bool,
    /// So many at most.
    pub limit: usize,
}

/// A page of iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationsReport {
    /// The run.
    pub run: String,
    /// The loop's path.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// The iterations.
    pub iterations: Vec<IterationEntry>,
    /// Where the next page begins: its `from`, or its `to` when the newest come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An iteration in a page. Its result is null where it is not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationEntry {
    /// Its row.
    #[serde(flatten)]
    pub row: IterationRow,
    /// The most attempts that one of its actions took.
    pub attempts: u32,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much of it is kept.
    pub kept: Kept,
}

/// A page of the iterations of a loop.
///
/// # Errors
/// Store errors. There is no such run or loop.
pub fn iterations(
    inspector: &Inspector,
    run: &str,
    filter: &IterationsFilter,
) -> Result<IterationsReport, EngineError> {
    let view = LoopView::load(inspector, run, &filter.path)?;
    let (_, _, ended) = view.between(filter.from, filter.to);
    let wanted =
        |one: &&EndedIteration| filter.status.is_empty() || filter.status.contains(&one.status);
    let mut left: Vec<&EndedIteration> = ended.iter().filter(wanted).collect();
    if filter.newest_first {
        left.reverse();
    }
    let by_value = filter.changed.is_some() || filter.text.is_some();
    let mut page = Vec::new();
    let mut next = None;
    for part in left.chunks(if by_value {
        READ
    } else {
        filter.limit.saturating_add(1)
    }) {
        let rows = Rows::read(inspector, &view, part, filter.changed.is_some())?;
        for one in part {
            if !rows.has(one, filter) {
                continue;
            }
            if page.len() == filter.limit {
                next = Some(one.iteration.saturating_add(u64::from(filter.newest_first)));
                break;
            }
            page.push(rows.entry(&view, one));
        }
        if next.is_some() {
            break;
        }
    }
    Ok(IterationsReport {
        run: view.header.id.to_string(),
        loop_path: view.path,
        iterations: page,
        next,
    })
}

/// What iterations gave.
struct Rows(HashMap<u64, Value>);

impl Rows {
    fn read(
        inspector: &Inspector,
        view: &LoopView,
        part: &[&EndedIteration],
        with_earlier: bool,
    ) -> Result<Self, EngineError> {
        let mut places: Vec<(u64, Place)> = Vec::with_capacity(part.len());
        for one in part {
            places.push((one.iteration, one.row));
            let earlier = one.iteration.checked_sub(1).filter(|_| with_earlier);
            let earlier = earlier.and_then(|earlier| view.one(earlier));
            places.extend(earlier.map(|one| (one.iteration, one.row)));
        }
        places.sort_by_key(|(iteration, _)| *iteration);
        places.dedup();
        let rows = view.rows(inspector, &places)?;
        Ok(Self(
            rows.into_iter()
                .map(|row| (row.iteration, row.result))
                .collect(),
        ))
    }

    fn has(&self, one: &EndedIteration, filter: &IterationsFilter) -> bool {
        let result = self.0.get(&one.iteration);
        let changed = filter.changed.as_deref().is_none_or(|pointer| {
            let earlier = one.iteration.checked_sub(1);
            let earlier = earlier.and_then(|earlier| self.0.get(&earlier));
            // Where one of the two is not kept, nobody knows.
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

    fn entry(&self, view: &LoopView, one: &EndedIteration) -> IterationEntry {
        let result = self.0.get(&one.iteration);
        let kept = match result {
            Some(_) => view.kept(one),
            None => Kept::Summary,
        };
        IterationEntry {
            row: IterationRow {
                path: view.path.clone(),
                iteration: one.iteration,
                condition: one.condition,
                status: one.status,
                result: result
                    .map(|result| bounded(result, "/result"))
                    .unwrap_or_default(),
                started_at: one.started_at,
                ended_at: one.ended_at,
            },
            attempts: one.attempts,
            duration_ms: super::strip::duration_ms(one),
            error: one.error.as_deref().map(str::to_owned),
            kept,
        }
    }
}
