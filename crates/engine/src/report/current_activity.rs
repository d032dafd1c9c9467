//! What each branch of a run waits for at the moment, and how many branches of its forks have ended.

use super::question::QuestionReport;
use super::summary::is_zero;
use super::view::{RunView, shown};
use crate::scheduler::{RateLimitWait, child_id};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_actions::follow_up_address;
use windlass_expression::Value;
use windlass_machine::program::ScopeKind;
use windlass_machine::{
    ActiveForeach, BranchState, CursorId, FrameKind, TimerPurpose, Wait, innermost_iteration,
};
use windlass_model::model::{Fault, Request, WORKFLOW};
use windlass_value::time::Timestamp;

/// Maximum number of items of one foreach that are listed.
const MANY_LANES: usize = 200;

/// A foreach, a parallel or a graph of actions that runs: its branches run concurrently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForkReport {
    /// Name of the step.
    pub name: String,
    /// Type of the step: `foreach`, `parallel` or `dag`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of branches that have ended.
    pub ended: u64,
    /// Number of ended branches that failed. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Number of branches that run.
    pub running: u64,
    /// Number of all branches.
    pub total: u64,
    /// Path of a foreach: `outer#2/each`. Absent for other types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Innermost iteration or item that contains it: `outer#2/each#7`. Absent outside of loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Items of a foreach that are in flight, at most 200. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneReport>,
}

/// An item of a foreach that is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaneReport {
    /// Index of the item, from 0.
    pub item: u64,
    /// Path of the item: `each#3`. Activities in it have this path, or a longer one, as `inside`.
    pub path: String,
    /// Time when the item began.
    pub since: Timestamp,
    /// Number, from 1, of the attempt that runs or is waited for. Absent if no attempt is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// What one branch of a run does or waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CurrentActivity {
    /// Path of the innermost loop around it. Null outside of loops.
    #[serde(rename = "loop")]
    pub loop_path: Option<String>,
    /// Innermost iteration or item that contains it: `outer#2/each#7`. Absent outside of loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Name of the action.
    pub action: String,
    /// Display name, if it differs from the name. Otherwise null.
    pub title: Option<String>,
    /// Type of the action, as its file has it. Null if it is unknown.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// What it waits for: `call` (its call in flight), `retry` (the next attempt), `delay` (the next iteration),
    /// `sleep`, `signal`, `limit` (a resume after a limit), or `next` if it continues at once.
    pub waits_for: String,
    /// Time when the call started, or when the question was put. Null for other waits, and while the call has not
    /// started.
    pub since: Option<Timestamp>,
    /// Whether the call waits to start because the maximum of concurrent effects is reached (`--max-effects`). Absent
    /// if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Whether the run waits for memory of the server (`--max-guest-memory`). Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_memory: bool,
    /// Position of the call in the queue of its host. Absent if it is not in such a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitWait>,
    /// Time when a delay, a sleep or a wait for the next attempt ends, or when a wait for a signal times out. Otherwise
    /// null.
    pub due_at: Option<Timestamp>,
    /// HTTP method of the call. Null for other actions.
    pub method: Option<String>,
    /// URL of an HTTP call. Null for other actions.
    pub uri: Option<String>,
    /// Command of a shell action, name of a handler, or name of the called workflow. Otherwise null.
    pub detail: Option<String>,
    /// Idempotency key of the call. Null for other waits.
    pub key: Option<String>,
    /// Id of the run that a `workflow` action waits for. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Name of the signal that it waits for. Otherwise null.
    pub signal: Option<String>,
    /// Number of signals of this name that the run received before. Send it as `received` of a signal, so that the
    /// signal answers no later wait. Absent unless it waits for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Question that the signal answers. Absent if the signal has no form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionReport>,
    /// Run whose end it waits for: one with the same concurrency key, or a child run that is paused or parked. Otherwise
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_run: Option<AwaitedRun>,
    /// Number, from 1, of the attempt that runs or is waited for. Null if neither a call nor a retry is involved.
    pub attempt: Option<u32>,
    /// Maximum number of attempts. Null if the action is not retried.
    pub max_attempts: Option<u32>,
    /// Failure of the attempt before. Null for a first attempt, and if the action is not retried.
    pub last_error: Option<LastError>,
}

/// A run whose end another run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AwaitedRun {
    /// Id of the run.
    pub run: String,
    /// Reason why the awaited run does not continue until it is resumed. Absent if it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stop>,
}

/// Why a run does not continue until it is resumed: it is `paused`, it is `parked` (the label `windlass.parked` has the
/// reason), or it is `left` because no process executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The run is paused.
    Paused,
    /// The run is parked.
    Parked,
    /// No process executes the run.
    Left,
}

impl AwaitedRun {
    /// Returns the reason of the wait as text for users. `resume` is the command that continues the awaited run.
    #[must_use]
    pub fn text(&self, resume: &str) -> String {
        let turn = "waits for its turn";
        let Some(stopped) = self.stopped else {
            return format!("{turn}: run {} has the same concurrency key", self.run);
        };
        format!(
            "{turn}: run {} has the same concurrency key and {}; `{resume}` continues it",
            self.run,
            stopped.text()
        )
    }
}

impl Stop {
    /// Returns the reason as text for users, to follow the id of the run.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Paused => "is paused",
            Self::Parked => "is parked",
            Self::Left => "is executed by no process",
        }
    }
}

/// Failure of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastError {
    /// Kind of the error: `http`, `timeout`, `shell`, …
    pub kind: String,
    /// HTTP status or exit code. Null for other errors.
    pub code: Option<String>,
    /// Message of the error, in one line.
    pub message: String,
    /// Time of the failure.
    pub at: Timestamp,
}

impl LastError {
    fn new((fault, at): &(Fault, Timestamp)) -> Self {
        Self {
            kind: fault.kind.to_string(),
            code: fault.code.as_ref().map(ToString::to_string),
            message: fault.message.clone(),
            at: *at,
        }
    }
}

/// Reports the forks of a run. `doing` is what each branch does: the result of [`current_activities`].
pub(super) fn forks(view: &RunView, doing: &[CurrentActivity]) -> Vec<ForkReport> {
    let program = view.program.as_deref();
    let each = program.map(|program| windlass_machine::active_foreaches(program, view.state()));
    let each: Vec<ActiveForeach<'_>> = each.into_iter().flatten().collect();
    let cursors = view.state().cursors.iter();
    let frames = cursors.flat_map(|(id, cursor)| cursor.frames.iter().map(move |one| (*id, one)));
    let reports = frames.filter_map(|(cursor, frame)| {
        let each = each.iter().find(|fork| fork.cursor == cursor);
        let FrameKind::Fork(fork) = &frame.kind else {
            return None;
        };
        let kind = match view.scope(frame.scope).map(|scope| &scope.kind) {
            Some(ScopeKind::Parallel { .. }) => "parallel",
            Some(ScopeKind::Dag { .. }) => "dag",
            _ => "foreach",
        };
        let count = |wanted: fn(&BranchState) -> bool| {
            fork.branches.iter().filter(|branch| wanted(branch)).count() as u64
        };
        Some(ForkReport {
            name: view.scope_name(frame.scope),
            kind: kind.to_owned(),
            ended: count(|branch| matches!(branch, BranchState::Ended(_))),
            failed: count(
                |branch| matches!(branch, BranchState::Ended(one) if one.error.is_some()),
            ),
            running: count(|branch| matches!(branch, BranchState::Running(_))),
            total: fork.branches.len() as u64,
            path: each.map(ActiveForeach::path),
            inside: inside(view, cursor),
            lanes: each.map(|fork| lanes(fork, doing)).unwrap_or_default(),
        })
    });
    reports.collect()
}

fn lanes(fork: &ActiveForeach<'_>, doing: &[CurrentActivity]) -> Vec<LaneReport> {
    let path = fork.path();
    let lane = |(item, since): (u32, Timestamp)| {
        let path = format!("{path}#{item}");
        let own = |one: &&CurrentActivity| one.inside.as_ref() == Some(&path);
        LaneReport {
            item: u64::from(item),
            since,
            attempt: doing.iter().find(own).and_then(|one| one.attempt),
            path,
        }
    };
    fork.items_in_flight().take(MANY_LANES).map(lane).collect()
}

pub(super) fn current_activities(view: &RunView) -> Vec<CurrentActivity> {
    let cursors = view.state().cursors.iter();
    cursors
        .filter_map(|(id, cursor)| Some((*id, at_place(view, *id)?, &cursor.wait)))
        .filter_map(|(id, place, wait)| waits(view, id, place, wait))
        .collect()
}

/// Describes the position of a cursor, without what it waits for.
fn at_place(view: &RunView, id: CursorId) -> Option<CurrentActivity> {
    let cursor = view.state().cursors.get(&id)?;
    let state = view.state_of(cursor.at);
    let action = state.and_then(|state| view.action(state.action?));
    let retried = view.frames(id).find_map(|frame| match &frame.kind {
        FrameKind::Try(state) if state.max_attempts > 1 => Some(state),
        _ => None,
    });
    let around = view.frames(id).find_map(|frame| match &frame.kind {
        FrameKind::Loop(state) => Some(state.path.clone()),
        _ => None,
    });
    Some(CurrentActivity {
        loop_path: around,
        inside: inside(view, id),
        action: state.map_or_else(|| cursor.at.to_string(), |state| state.name.to_string()),
        title: action.and_then(|action| Some(action.title.as_ref()?.to_string())),
        kind: action.map(|action| action.label.to_string()),
        waits_for: String::from("next"),
        waits_for_memory: view.queued.waits_for_memory,
        attempt: retried.map(|state| state.attempt),
        max_attempts: retried.map(|state| state.max_attempts),
        last_error: retried
            .and_then(|state| state.last_fault.as_deref())
            .map(LastError::new),
        ..CurrentActivity::default()
    })
}

/// Returns when the innermost timeout that encloses a cursor expires.
fn deadline(view: &RunView, id: CursorId) -> Option<Timestamp> {
    view.frames(id).find_map(|frame| match &frame.kind {
        FrameKind::Deadline(state) => view
            .state()
            .timers
            .get(&state.timer)
            .map(|timer| timer.due_at),
        _ => None,
    })
}

/// Returns the innermost iteration or item that encloses a cursor.
fn inside(view: &RunView, id: CursorId) -> Option<String> {
    let program = view.program.as_deref()?;
    let (path, number) = innermost_iteration(program, view.state(), id)?;
    Some(format!("{path}#{number}"))
}

fn waits(
    view: &RunView,
    id: CursorId,
    place: CurrentActivity,
    wait: &Wait,
) -> Option<CurrentActivity> {
    let word = |word: &str| word.to_owned();
    Some(match wait {
        Wait::Ready | Wait::Faulted { .. } => place,
        Wait::Branches => return None,
        Wait::Budget => CurrentActivity {
            waits_for: word("limit"),
            ..place
        },
        Wait::Signal(name) => CurrentActivity {
            waits_for: word("signal"),
            signal: Some(name.to_string()),
            received: Some(view.state().received(name)),
            due_at: deadline(view, id),
            ..place
        },
        Wait::Question(question) => {
            let program = view.program.as_deref();
            let form = program.and_then(|program| program.form(&question.signal));
            CurrentActivity {
                waits_for: word("signal"),
                signal: Some(question.signal.to_string()),
                received: Some(view.state().received(&question.signal)),
                since: Some(question.since),
                due_at: deadline(view, id),
                question: form.map(|form| QuestionReport::new(question.title.as_deref(), form)),
                ..place
            }
        }
        Wait::Timer(timer) => {
            let timer = view.state().timers.get(timer)?;
            let tried = retried_action(view, id);
            let (action, kind) = match timer.purpose {
                TimerPurpose::Retry => tried.unwrap_or((place.action, place.kind)),
                _ => (place.action, place.kind),
            };
            CurrentActivity {
                waits_for: word(timer.purpose.as_str()),
                due_at: Some(timer.due_at),
                attempt: place.attempt.map(|attempt| match timer.purpose {
                    TimerPurpose::Retry => attempt.saturating_add(1),
                    _ => attempt,
                }),
                action,
                kind,
                ..place
            }
        }
        Wait::Effect(id) => {
            let began = view.queued.began(*id);
            let effect = view.state().effects.get(id)?;
            let request = &effect.request;
            let text = |key: &str| {
                request
                    .inputs
                    .get(key)
                    .map(shown)
                    .as_ref()
                    .map(Value::to_text)
            };
            let http = &*request.executor == "http";
            CurrentActivity {
                waits_for: word("call"),
                action: request.action.to_string(),
                since: began.unwrap_or(Some(effect.requested_at)),
                queued: began == Some(None),
                rate_limit: view.queued.rate_wait(*id),
                key: Some(request.key.clone()),
                child: request
                    .calls_workflow()
                    .then(|| child_id(&view.stored.header.id, request).to_string()),
                method: http.then(|| text("method").unwrap_or_else(|| word("GET"))),
                uri: http.then(|| called_address(request)).flatten(),
                detail: [
                    "run",
                    "command",
                    "activityType",
                    "actorType",
                    "runnerType",
                    WORKFLOW,
                ]
                .into_iter()
                .find_map(text)
                .filter(|_| !http),
                attempt: place.attempt.or(Some(request.attempt)),
                ..place
            }
        }
    })
}

/// Returns the address of an HTTP call: of a page, of a long operation, or the input `uri`.
fn called_address(request: &Request) -> Option<String> {
    let request = Request {
        inputs: shown(&request.inputs),
        ..request.clone()
    };
    let uri = || Some(request.inputs.get("uri")?.to_text());
    follow_up_address(&request).or_else(uri)
}

/// Returns the step that is retried. While a retry waits, its cursor is before that step.
fn retried_action(view: &RunView, id: CursorId) -> Option<(String, Option<String>)> {
    let scope = view.frames(id).find_map(|frame| match &frame.kind {
        FrameKind::Try(_) => view.scope(frame.scope),
        _ => None,
    })?;
    let body = view.state_of(scope.body)?;
    let label = body.action.and_then(|action| view.action(action));
    Some((
        scope.name.to_string(),
        label.map(|action| action.label.to_string()),
    ))
}
