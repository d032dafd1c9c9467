//! The status of a run: its loops with the values that their conditions read, what the run does at the moment, and what
//! changed between the last iterations (docs/reference/cli.md).

use super::budget::BudgetReport;
use super::change::{Changed, changes, same};
use super::current_activity::{CurrentActivity, ForkReport, current_activities, forks};
use super::summary::{is_zero, shown_labels};
use super::view::{RunView, shown};
use super::{OutcomeReport, PauseReport};
use crate::launch::calls_workflows;
use crate::turns::{awaited_run, stopped_child};
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_expression::{Budget, Value};
use windlass_machine::program::{ScopeId, ScopeKind};
use windlass_machine::{CursorId, LoopState, RunStatus, environment};
use windlass_model::model::{Status, TURN_SIGNAL};
use windlass_value::time::Timestamp;

/// Number of the last iterations that are compared to find how long the result is unchanged. If all of them have the
/// same result, the next number is tried.
const LOOK_BACK: [usize; 3] = [2, 32, 1_000];

/// Maximum units of work for evaluating what a condition reads.
const READ_WORK: u64 = 100_000;

/// Everything that `status` shows of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusReport {
    /// Time when this report was made.
    pub at: Timestamp,
    /// Id of the run.
    pub run: String,
    /// Name of the workflow.
    pub workflow: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Whether a process executes the run. That process owns the store, and started, resumed or recovered the run.
    pub owned: bool,
    /// Reason why the store accepts no writes. Until it does, no run continues; writes are tried again automatically.
    /// Absent if the store accepts writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<String>,
    /// Time when the run was started.
    pub started_at: Timestamp,
    /// Time of its last commit.
    pub updated_at: Timestamp,
    /// Number of commits of the run. All of them are durable.
    pub commit: u64,
    /// Path of the workflow file, as the start named it. Null if the files cannot be read.
    pub file: Option<String>,
    /// Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub program: String,
    /// Format of the workflow: `loom`, `azure`, `tea` or `canvas`. Null if the files cannot be read.
    pub dialect: Option<String>,
    /// Number of actions that failed without failing the run, because their failures were handled. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_actions: u64,
    /// Labels of the run, by name.
    pub labels: BTreeMap<String, String>,
    /// Time and reason of its pause. Null if it is not paused.
    pub pause: Option<PausedSince>,
    /// How the run ended. Null if it has not ended.
    pub outcome: Option<OutcomeReport>,
    /// Time when its first timer fires. Null if no timer is armed.
    pub next_due_at: Option<Timestamp>,
    /// Loops that the run is in, outermost first.
    pub loops: Vec<LoopReport>,
    /// Foreaches, parallels and graphs of actions that the run is in, outermost first.
    pub forks: Vec<ForkReport>,
    /// Current activity of each branch.
    pub doing: Vec<CurrentActivity>,
    /// Whether the workflow starts runs of other workflows. They have the label `windlass.parent` with the id of this
    /// run. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_runs: bool,
}

/// Time and reason of a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PausedSince {
    /// Time when the run paused.
    pub since: Timestamp,
    /// Reason of the pause.
    #[serde(flatten)]
    pub pause: PauseReport,
}

/// One loop that a run is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopReport {
    /// Path of the loop in the run: `outer#2/inner`.
    pub path: String,
    /// Name of the loop.
    pub name: String,
    /// Display name, if it differs from the name. Otherwise null.
    pub title: Option<String>,
    /// Type of the loop, as its file has it: `until`, `while`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Number, from 1, of the iteration that runs, or else of the last one that ended. 0 before the first one.
    pub iteration: u64,
    /// Number of iterations that have ended.
    pub iterations_completed: u64,
    /// Maximum number of iterations.
    pub max_iterations: u64,
    /// What the actions of the loop used of its limits `tokens` and `cost`. Absent without such limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// Time when the run entered the loop.
    pub started_at: Timestamp,
    /// Time when the loop times out. Null if it has no timeout.
    pub deadline: Option<Timestamp>,
    /// Time when the next iteration begins. Null unless the loop waits between two iterations.
    pub next_due_at: Option<Timestamp>,
    /// Condition of the loop. Null if the workflow cannot be compiled.
    pub condition: Option<ConditionReport>,
    /// Last iteration that ended. Null if no ended iteration is stored.
    pub last: Option<LastIteration>,
}

/// Condition of a loop, with the values that it reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConditionReport {
    /// Text of the condition, as its file has it.
    pub text: String,
    /// Value of the condition at its last check. Null if it was not checked.
    pub value: Option<bool>,
    /// Variables and parts that the condition reads, with their current values. During an iteration, outputs are those
    /// of the iteration before it.
    pub reads: Vec<Read>,
}

/// One value that a condition reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Read {
    /// Name of the variable, or text of the part of the expression.
    pub name: String,
    /// Current value.
    pub value: Value,
}

/// The last iteration of a loop that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastIteration {
    /// Number of the iteration, from 1.
    pub iteration: u64,
    /// How the iteration ended.
    pub status: Status,
    /// Time when the iteration ended.
    pub ended_at: Timestamp,
    /// Outputs of its actions, by name.
    pub result: Value,
    /// First 8 differences from the result of the iteration before it, without headers of HTTP responses.
    pub changed: Vec<Changed>,
    /// Number of iterations directly before it with the same result.
    pub unchanged: u64,
}

/// Returns the status of a run. `at` is the current time.
///
/// # Errors
/// Returns store errors, including the error for an unknown run.
pub fn status(
    inspector: &Inspector,
    run: &str,
    at: Timestamp,
) -> Result<StatusReport, EngineError> {
    inspector.read_batch(|inspector| read(inspector, run, at))
}

fn read(inspector: &Inspector, run: &str, at: Timestamp) -> Result<StatusReport, EngineError> {
    let view = RunView::load(inspector, run)?;
    let (header, state) = (&view.stored.header, view.state());
    let pause = state.paused.as_ref().map(|(since, reason)| PausedSince {
        since: *since,
        pause: PauseReport::new(reason),
    });
    let outcome = match &state.outcome {
        None => None,
        Some(outcome) => {
            let loops = inspector.loops(run)?;
            Some(OutcomeReport::new(
                outcome,
                view.bundle(),
                &loops,
                Some(state),
            ))
        }
    };
    let mut doing = current_activities(&view);
    let is_turn = |doing: &&mut CurrentActivity| doing.signal.as_deref() == Some(TURN_SIGNAL);
    if let Some(turn) = doing.iter_mut().find(is_turn) {
        turn.awaits_run = awaited_run(inspector, header)?;
    }
    for doing in &mut doing {
        if let Some(child) = &doing.child {
            doing.awaits_run = stopped_child(inspector, child);
        }
    }
    Ok(StatusReport {
        at,
        run: header.id.to_string(),
        workflow: header.workflow.to_string(),
        status: state.status(),
        owned: inspector.executes(run),
        outage: inspector
            .check_writable()
            .err()
            .map(|error| error.to_string()),
        started_at: header.started_at,
        updated_at: header.updated_at,
        commit: header.revision,
        file: view.file(),
        program: header.program.to_string(),
        dialect: view
            .source
            .as_ref()
            .map(|source| source.dialect.as_str().to_owned()),
        failed_actions: header.failed_actions(),
        labels: shown_labels(header),
        pause,
        outcome,
        next_due_at: state.next_due_at(),
        loops: loops(inspector, &view, at)?,
        forks: forks(&view, &doing),
        doing,
        starts_runs: view.program.as_deref().is_some_and(calls_workflows),
    })
}

// ── loops ───────────────────────────────────────────────────────────────────────────────────────

fn loops(
    inspector: &Inspector,
    view: &RunView,
    at: Timestamp,
) -> Result<Vec<LoopReport>, EngineError> {
    let mut reports = Vec::new();
    for (cursor, scope, state) in view.state().loops() {
        let running = u64::from(state.iteration_started_at.is_some());
        reports.push(LoopReport {
            path: state.path.clone(),
            name: view.scope_name(scope),
            title: state.title.as_ref().map(ToString::to_string),
            kind: state.kind.to_string(),
            iteration: state.iteration.saturating_add(running),
            iterations_completed: state.iteration,
            max_iterations: state.max_iterations,
            budgets: BudgetReport::of(state),
            started_at: state.started_at,
            deadline: state.deadline,
            next_due_at: state.next_due_at,
            condition: condition(view, cursor, scope, state, at),
            last: last_iteration(inspector, &view.stored.header.id, state)?,
        });
    }
    Ok(reports)
}

/// Reports a condition with the values that it reads. During an iteration, outputs of actions are those of the previous
/// iteration, as in the last check of the condition.
fn condition(
    view: &RunView,
    cursor: CursorId,
    scope: ScopeId,
    state: &LoopState,
    at: Timestamp,
) -> Option<ConditionReport> {
    let program = view.program.as_ref()?;
    let ScopeKind::Loop(_, spec) = &program.scope(scope)?.kind else {
        return None;
    };
    let mut run = view.state().clone();
    // Evaluate the condition at the level of this loop: a loop inside of it has other loop variables.
    if let Some(here) = run.cursors.get_mut(&cursor) {
        let depth = here.frames.iter().position(|frame| frame.scope == scope);
        here.frames
            .truncate(depth.map_or(usize::MAX, |depth| depth + 1));
    }
    let home = run.record_owner(cursor);
    if let Some(home) = run.cursors.get_mut(&home) {
        for (action, record) in &state.last {
            home.records
                .entry(*action)
                .or_insert_with(|| record.clone());
        }
    }
    // With this budget, values that are expensive to compute are omitted.
    let budget = Budget::to_give_up(READ_WORK);
    let env = environment(program, &run, cursor, at, &budget);
    let reads = spec
        .stop_when
        .reads(&env)
        .into_iter()
        .map(|(name, value)| Read {
            name,
            value: shown(&value),
        });
    Some(ConditionReport {
        text: spec.condition_text.clone(),
        value: state.last_condition,
        reads: reads.collect(),
    })
}

fn last_iteration(
    inspector: &Inspector,
    run: &str,
    state: &LoopState,
) -> Result<Option<LastIteration>, EngineError> {
    let mut found = None;
    for limit in LOOK_BACK {
        let mut rows = inspector.iterations(run, Some(&state.path), limit)?;
        let all = rows.len() < limit;
        // Omit later iterations: the run may have continued after its state was read.
        rows.retain(|row| row.iteration < state.iteration);
        let Some((last, before)) = rows.split_last() else {
            if all {
                break;
            }
            continue;
        };
        let alike = before
            .iter()
            .rev()
            .take_while(|row| same(&row.result, &last.result))
            .count();
        let changed = before
            .last()
            .map(|row| changes(&row.result, &last.result))
            .unwrap_or_default();
        found = Some(LastIteration {
            iteration: last.iteration.saturating_add(1),
            status: last.status,
            ended_at: last.ended_at,
            result: shown(&last.result),
            changed,
            unchanged: alike as u64,
        });
        if alike < before.len() || all {
            break;
        }
    }
    Ok(found)
}
