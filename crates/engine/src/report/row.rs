//! A run in a list with a short description: its loop, what it waits for, why it failed.

use super::current_activity::current_activities;
use super::outcome::ErrorReport;
use super::view::RunView;
use super::{CurrentActivity, PauseReport, PausedSince, RunSummary};
use crate::inspect::DetailVersion;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_machine::{LoopState, RunStatus};
use windlass_model::model::{Name, Status};
use windlass_store::{LastStatus, RunHeader};
use windlass_value::time::Timestamp;

/// Maximum number of iterations whose statuses a list shows.
const RECENT: usize = 24;

/// Maximum number of commits that are searched for these iterations. It is larger than their number, because one
/// iteration of an outer loop has many commits.
const FAR: u64 = 512;

/// One run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunRow {
    /// Status, times and labels of the run.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Current activity of the run. Only with `detail=true`.
    #[serde(flatten)]
    pub detail: RunDetail,
}

/// Current activity of a run in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// Outermost loop that the run is in, else the last one that it was in. Absent if it entered no loop.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub outermost: Option<LoopCell>,
    /// What the run does or waits for; with several branches, the first one. Absent if the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<CurrentActivity>,
    /// Time and reason of its pause. Absent if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedSince>,
    /// Reason why the run did not succeed. Absent if it succeeded or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// Time at which the first timer fires. A short wait is only in the run's state.
    #[serde(skip)]
    next_due_at: Option<Timestamp>,
}

/// A loop of a run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopCell {
    /// Path of the loop in the run: `outer#2/inner`.
    pub path: String,
    /// Name of the loop.
    pub name: String,
    /// Display name, if it differs from the name. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number, from 1, of the iteration that runs, or else of the last one that ended. 0 before the first one.
    pub iteration: u64,
    /// Number of iterations that have ended.
    pub iterations_completed: u64,
    /// Maximum number of iterations.
    pub max_iterations: u64,
    /// Statuses of the last iterations, at most 24, as one letter each, oldest first: `s` succeeded, `w` succeeded with
    /// failures, `f` failed, `t` timed out, `c` cancelled, `k` skipped.
    pub recent: String,
    /// When it was entered.
    #[serde(skip)]
    started_at: Option<Timestamp>,
}

impl RunRow {
    /// Makes the row of a list from a run's header. For a short wait, also reads the time of its end from the run's
    /// state.
    pub(super) fn brief(inspector: &Inspector, header: &RunHeader) -> Self {
        let mut summary = RunSummary::new(header);
        if header.status == RunStatus::Waiting && summary.next_due_at.is_none() {
            // An error is ignored: if the run cannot be read, `status` reports that.
            let stored = inspector.load(&header.id).ok();
            summary.next_due_at = stored.and_then(|stored| stored.state.next_due_at());
        }
        let detail = RunDetail::default();
        Self { summary, detail }
    }

    /// Makes the row of a list from a run's header, with the run's current activity.
    pub(super) fn whole(inspector: &Inspector, header: &RunHeader) -> Self {
        let queued = inspector.queued(&header.id).version;
        let made = inspector.detail(&header.id, (header.revision, queued), |before| {
            detail(inspector, header, before)
        });
        // An error is ignored: if the run cannot be read, `status` reports that.
        let detail = made.map_or_else(|_| RunDetail::default(), Arc::unwrap_or_clone);
        let mut summary = RunSummary::new(header);
        summary.next_due_at = summary.next_due_at.or(detail.next_due_at);
        Self { summary, detail }
    }
}

/// Returns the rows of these runs with their current activities, in the order of `runs`. Runs that do not exist are
/// omitted.
///
/// # Errors
/// Returns store errors.
pub fn rows(inspector: &Inspector, runs: &[Name]) -> Result<Vec<RunRow>, EngineError> {
    inspector.read_batch(|inspector| {
        let headers = inspector.headers(runs)?.into_iter().flatten();
        let rows = headers.map(|header| RunRow::whole(inspector, &header));
        Ok(rows.collect())
    })
}

/// Makes the detail of a run. `before` is the previous detail of the run, if it is known: parts that did not change are
/// copied from it.
fn detail(
    inspector: &Inspector,
    header: &RunHeader,
    before: Option<&RunDetail>,
) -> Result<(DetailVersion, RunDetail), EngineError> {
    let view = RunView::brief(inspector, inspector.load(&header.id)?);
    let state = view.state();
    let outermost = state
        .loops()
        .min_by_key(|(_, _, state)| state.path.matches('/').count());
    let cell = match outermost {
        Some((_, scope, state)) => Some((view.scope_name(scope), state.row())),
        None => last_loop(inspector.loops(&header.id)?),
    };
    let before = before.and_then(|before| before.outermost.as_ref());
    let cell = cell
        .map(|(name, state)| LoopCell::new(inspector, &header.id, name, &state, before))
        .transpose()?;
    let pause = state.paused.as_ref().map(|(since, reason)| PausedSince {
        since: *since,
        pause: PauseReport::new(reason),
    });
    let outcome = state.outcome.as_ref();
    let detail = RunDetail {
        outermost: cell,
        waits_for: match header.status.is_final() {
            true => None,
            false => current_activities(&view).into_iter().next(),
        },
        pause,
        error: outcome.and_then(|outcome| ErrorReport::of(outcome, None)),
        next_due_at: state.next_due_at(),
    };
    Ok(((view.stored.header.revision, view.queued.version), detail))
}

/// Returns the loop that began last, of those that are not inside another loop.
fn last_loop(loops: Vec<LoopState>) -> Option<(String, LoopState)> {
    let outer = loops.into_iter().filter(|state| !state.path.contains('/'));
    let last = outer.max_by_key(|state| state.started_at)?;
    Some((last.path.clone(), last))
}

impl LoopCell {
    fn new(
        inspector: &Inspector,
        run: &str,
        name: String,
        state: &LoopState,
        before: Option<&Self>,
    ) -> Result<Self, EngineError> {
        let running = u64::from(state.iteration_started_at.is_some());
        let same = |before: &&Self| {
            (before.path.as_str(), before.started_at) == (&state.path, Some(state.started_at))
                && before.iterations_completed <= state.iteration
        };
        let before = before.filter(same);
        let known = before.map_or(0, |before| before.iterations_completed);
        let first = known.max(state.iteration.saturating_sub(RECENT as u64));
        let mut recent = String::new();
        if first == known {
            recent.extend(before.map(|before| before.recent.as_str()));
        }
        if first < state.iteration {
            let wanted = first..state.iteration;
            let last = inspector.last_statuses(run, &state.path, wanted, FAR)?;
            recent.extend(last.iter().rev().map(letter));
        }
        // Each letter is one byte, so this removes whole letters.
        recent.drain(..recent.len().saturating_sub(RECENT));
        Ok(Self {
            path: state.path.clone(),
            name,
            title: state.title.as_ref().map(ToString::to_string),
            iteration: state.iteration.saturating_add(running),
            iterations_completed: state.iteration,
            max_iterations: state.max_iterations,
            recent,
            started_at: Some(state.started_at),
        })
    }
}

fn letter(one: &LastStatus) -> char {
    match one.status {
        Status::Succeeded if one.has_failure => 'w',
        Status::Succeeded => 's',
        Status::Failed => 'f',
        Status::TimedOut => 't',
        Status::Cancelled => 'c',
        Status::Skipped => 'k',
    }
}
