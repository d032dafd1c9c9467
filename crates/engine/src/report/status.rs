//! The status of a run: its loops with what their conditions read, what it does at the moment, and what changed last
//! (docs/reference/cli.md).

use super::budget::BudgetReport;
use super::change::{Changed, changes, same};
use super::current_activity::{CurrentActivity, ForkReport, current_activities, forks};
use super::summary::{is_zero, shown_labels};
use super::view::{RunView, shown};
use super::{OutcomeReport, PauseReport};
use crate::launch::calls_workflows;
use crate::turns::awaited_run;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_expression::{Budget, Value};
use windlass_machine::program::{ScopeId, ScopeKind};
use windlass_machine::{CursorId, LoopState, RunStatus, environment};
use windlass_model::model::{Status, TURN_SIGNAL};
use windlass_value::time::Timestamp;

/// Number of last iterations to compare. If all of them have the same result, the next number is tried.
const LOOK_BACK: [usize; 3] = [2, 32, 1_000];

/// Units of work for evaluating what a condition reads.
const READ_WORK: u64 = 100_000;

/// Everything `status` shows of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusReport {
    /// When this was made.
    pub at: Timestamp,
    /// The run.
    pub run: String,
    /// The workflow's name.
    pub workflow: String,
    /// What it is doing.
    pub status: RunStatus,
    /// Whether a process executes it: one that owns the store, and that started, resumed or recovered the run.
    pub owned: bool,
    /// Why the store accepts no writes. Until it does, no run continues; it is tried again automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When its last commit was made.
    pub updated_at: Timestamp,
    /// How many commits it has; all of them are durable.
    pub commit: u64,
    /// The workflow file as it was named.
    pub file: Option<String>,
    /// What it was compiled from, as a hash.
    pub program: String,
    /// The format of the file.
    pub dialect: Option<String>,
    /// How many of its actions failed without failing it: their failures were handled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_actions: u64,
    /// What it was marked with.
    pub labels: BTreeMap<String, String>,
    /// Since when and why it is paused.
    pub pause: Option<PausedSince>,
    /// How it ended.
    pub outcome: Option<OutcomeReport>,
    /// When its first timer fires.
    pub next_due_at: Option<Timestamp>,
    /// The loops it is in, outermost first.
    pub loops: Vec<LoopReport>,
    /// The foreaches, parallels and DAGs it is in, outermost first.
    pub forks: Vec<ForkReport>,
    /// What each of its branches does right now.
    pub doing: Vec<CurrentActivity>,
    /// Whether it starts runs of other workflows. They have the label `windlass.parent` with its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_runs: bool,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PausedSince {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    #[serde(flatten)]
    pub pause: PauseReport,
}

/// A loop that a run is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopReport {
    /// Its place in the run: `outer#2/inner`.
    pub path: String,
    /// Its name.
    pub name: String,
    /// What people call it, where that is not the name.
    pub title: Option<String>,
    /// Its authored type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The iteration that runs, or the last one that ended, from 1.
    pub iteration: u64,
    /// How many have ended.
    pub iterations_completed: u64,
    /// How many may run.
    pub max_iterations: u64,
    /// What its actions used of the limits `tokens` and `cost`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetReport>,
    /// When it was entered.
    pub started_at: Timestamp,
    /// When it is cut.
    pub deadline: Option<Timestamp>,
    /// When the next iteration begins, while it delays.
    pub next_due_at: Option<Timestamp>,
    /// Its condition.
    pub condition: Option<ConditionReport>,
    /// Its last iteration that ended.
    pub last: Option<LastIteration>,
}

/// A loop's condition and why it is what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConditionReport {
    /// As written.
    pub text: String,
    /// Its value at its last check.
    pub value: Option<bool>,
    /// What it reads, with the values of now.
    pub reads: Vec<Read>,
}

/// Something a condition reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Read {
    /// A variable's name, or the part of the expression.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// The last iteration of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastIteration {
    /// From 1.
    pub iteration: u64,
    /// How it ended.
    pub status: Status,
    /// When.
    pub ended_at: Timestamp,
    /// What it gave.
    pub result: Value,
    /// What differs from the iteration before; headers of HTTP answers do not count.
    pub changed: Vec<Changed>,
    /// For how many iterations the result has been the same.
    pub unchanged: u64,
}

/// Returns the status of a run. `at` is the current time.
///
/// # Errors
/// Returns store errors, also for an unknown run.
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

/// Reports a condition with the values that it read when it was last checked. During an iteration, these are the
/// outputs of the previous iteration's actions.
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
    // Loop variables are those of this loop, and not of a loop inside it.
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
    // Values that are expensive to compute are omitted.
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
        // The run may have continued since its state was read.
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
