//! A run's state as `dump` shows it: nothing is left out, and what refers to the program has the
//! names of the program.

use super::super::view::{RunView, shown};
use super::super::{ErrorReport, OutcomeReport, PauseReport, PausedSince};
use super::types::{LinkDump, StateDump};
use serde::Serialize;
use windlass_expression::Value;
use windlass_machine::program::ActionId;
use windlass_machine::{
    BranchState, Cursor, CursorId, DeadlineState, EffectId, Frame, FrameKind, GraphState,
    IsolatedState, ItemState, LoopState, Output, PendingEffect, Records, RunState, TimerPurpose,
    Wait,
};
use windlass_model::model::{LinkKind, sha256};
use windlass_value::hex;

/// The members of an object, in this order.
macro_rules! members {
    ($($name:ident: $value:expr),* $(,)?) => {
        vec![$((stringify!($name), Value::from($value))),*]
    };
}

/// SHA-256 over the encoded state.
pub(super) fn checksum(state: &RunState) -> Option<String> {
    let bytes = bincode::encode_to_vec(state, bincode::config::standard()).ok()?;
    Some(format!("sha256:{}", hex(&sha256(&bytes))))
}

// ── a run's state ───────────────────────────────────────────────────────────────────────────────

pub(super) fn state(view: &RunView, loops: &[LoopState]) -> StateDump {
    let run = view.state();
    StateDump {
        input: shown(&run.input),
        next_id: run.next_id,
        variables: shown(&run.variables),
        response: run.response.as_ref().map(shown).unwrap_or_default(),
        pause: run.paused.as_ref().map(|(since, reason)| PausedSince {
            since: *since,
            pause: PauseReport::new(reason),
        }),
        outcome: run
            .outcome
            .as_ref()
            .map(|outcome| OutcomeReport::new(outcome, view.bundle(), loops, Some(run))),
        cursors: list(&run.cursors, |(id, one)| cursor(view, *id, one)),
        effects: list(&run.effects, |(id, one)| effect(*id, one)),
        timers: list(&run.timers, |(id, timer)| {
            let (purpose, scope) = match timer.purpose {
                TimerPurpose::Delay => ("delay", None),
                TimerPurpose::Retry => ("retry", None),
                TimerPurpose::Sleep | TimerPurpose::SleepSince(_) => ("sleep", None),
                TimerPurpose::Deadline(scope) => ("deadline", Some(view.scope_name(scope))),
            };
            Value::from_pairs(members! {
                id: number(id.0),
                cursor: number(timer.cursor.0),
                due_at: timer.due_at.to_string(),
                purpose: purpose,
                scope: scope,
            })
        }),
        signals: list(&run.signals, |(name, payload)| {
            Value::from_pairs(members! { name: &**name, payload: shown(payload) })
        }),
    }
}

fn list<T>(all: impl IntoIterator<Item = T>, dump: impl FnMut(T) -> Value) -> Value {
    Value::array(all.into_iter().map(dump).collect())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A report as it is serialised.
fn encoded(report: impl Serialize + 'static) -> Value {
    Value::encode(report).unwrap_or_default()
}

/// Which values go from where to where, as its program says.
pub(super) fn links(view: &RunView) -> Vec<LinkDump> {
    let links = view.program.iter().flat_map(|program| &program.links);
    let word = |kind: LinkKind| match kind {
        LinkKind::Edge => "edge",
        LinkKind::Outer => "outer",
        LinkKind::Previous => "previous",
        LinkKind::Result => "result",
    };
    links
        .map(|link| LinkDump {
            from: link.from.as_ref().map(ToString::to_string),
            output: link.output.to_string(),
            to: link.to.to_string(),
            input: link.input.to_string(),
            kind: word(link.kind).to_owned(),
            when: link.when.as_ref().map(ToString::to_string),
        })
        .collect()
}

fn cursor(view: &RunView, id: CursorId, cursor: &Cursor) -> Value {
    let wait = match &cursor.wait {
        Wait::Ready => members! { for: "nothing" },
        Wait::Effect(id) => members! { for: "effect", id: number(id.0) },
        Wait::Timer(id) => members! { for: "timer", id: number(id.0) },
        Wait::Signal(name) => members! { for: "signal", name: &**name },
        Wait::Question(asked) => members! {
            for: "signal",
            name: &*asked.signal,
            title: asked.title.as_deref(),
            since: asked.since.to_string(),
        },
        Wait::Branches => members! { for: "branches" },
        Wait::Budget => members! { for: "budget" },
        Wait::Faulted { error, .. } => members! { for: "fault", message: &*error.fault.message },
    };
    Value::from_pairs(members! {
        id: number(id.0),
        at: cursor.at.0,
        step: view.state_of(cursor.at).map(|state| &*state.name),
        parent: cursor.parent.map(|parent| number(parent.0)),
        wait: Value::from_pairs(wait),
        frames: list(&cursor.frames, |one| frame(view, one)),
        records: records(view, &cursor.records),
        owns_records: cursor.owns_records,
    })
}

fn frame(view: &RunView, frame: &Frame) -> Value {
    let kind = match &frame.kind {
        FrameKind::Plain => members! { frame: "plain" },
        FrameKind::Graph(GraphState { steps, visit, .. }) => {
            members! { frame: "graph", steps: *steps, visit: *visit }
        }
        FrameKind::Loop(state) => members! {
            frame: "loop",
            state: encoded(state.row()),
            last: records(view, &state.last),
            kept: shown(&state.collected),
        },
        FrameKind::Try(state) => members! {
            frame: "try",
            attempt: state.attempt,
            max_attempts: state.max_attempts,
            last_fault: state.last_fault.as_deref().map(|(fault, at)| {
                Value::from_pairs(members! {
                    kind: &*fault.kind,
                    code: fault.code.as_deref(),
                    message: &*fault.message,
                    at: at.to_string(),
                })
            }),
            next_due_at: state.next_due_at.map(|at| at.to_string()),
        },
        FrameKind::Deadline(DeadlineState { timer, after_ms }) => members! {
            frame: "deadline", timer: number(timer.0), after_ms: number(*after_ms)
        },
        FrameKind::Fork(fork) => members! {
            frame: "fork",
            items: shown(&fork.items),
            branches: list(&fork.branches, |one| branch(view, one)),
            started: fork.started,
            running: fork.running,
            closed: fork.closed,
        },
        FrameKind::Branch(ItemState { index, item }) => {
            members! { frame: "branch", index: *index, item: shown(item) }
        }
        FrameKind::Root { environment } => {
            members! { frame: "root", environment: shown(environment) }
        }
        FrameKind::Isolated(IsolatedState { index, variables }) => {
            members! { frame: "apart", index: *index, variables: shown(variables) }
        }
    };
    let mut all = members! {
        scope: frame.scope.0,
        name: view.scope_name(frame.scope),
        entered_at: frame.entered_at.to_string(),
    };
    all.extend(kind);
    Value::from_pairs(all)
}

fn branch(view: &RunView, branch: &BranchState) -> Value {
    let error = |error| encoded(ErrorReport::new(error, view.bundle()));
    Value::from_pairs(match branch {
        BranchState::Pending => members! { branch: "pending" },
        BranchState::Running(cursor) => members! { branch: "running", cursor: number(cursor.0) },
        BranchState::Ended(outcome) => members! {
            branch: "ended",
            status: outcome.status.as_str(),
            error: outcome.error.as_ref().map(error),
            records: records(view, &outcome.records),
        },
    })
}

fn records(view: &RunView, records: &Records) -> Value {
    list(records.iter(), |(action, record)| {
        Value::from_pairs(members! {
            action: view.action_name(*action),
            status: record.status.as_str(),
            inputs: shown(&record.inputs),
            output: stored_output(view, &record.output),
            error: record.error.as_ref().map(|fault| &*fault.message),
            started_at: record.started_at.to_string(),
            ended_at: record.ended_at.to_string(),
            attempts: record.attempts,
        })
    })
}

/// An output as it is stored: `{value}`, or where it is read from: `{variable, appended}`,
/// `{actions}`,
/// `{iterations, status, reason, actions}`, `{items, actions}`, `{branches}`.
fn stored_output(view: &RunView, output: &Output) -> Value {
    let names =
        |actions: &[ActionId]| list(actions, |action| Value::from(view.action_name(*action)));
    Value::from_pairs(match output {
        Output::Value(value) => members! { value: shown(value) },
        Output::Variable(name) | Output::LastOf(name) => members! { variable: &**name },
        Output::Appended { variable, more } => {
            members! { variable: &**variable, appended: shown(more) }
        }
        Output::Actions(actions) => members! { actions: names(actions) },
        Output::Loop {
            iterations,
            status,
            end,
            body,
        } => members! {
            iterations: number(*iterations),
            status: status.as_str(),
            reason: end.as_str(),
            actions: names(body),
        },
        Output::Iterations { records, body } => {
            members! { items: number(records.len() as u64), actions: names(body) }
        }
        Output::Branches(branches) => {
            let pairs = branches.iter();
            let pairs = pairs.map(|(name, actions)| (name.clone(), names(actions)));
            members! { branches: Value::from_pairs(pairs) }
        }
    })
}

fn effect(id: EffectId, effect: &PendingEffect) -> Value {
    let request = &effect.request;
    Value::from_pairs(members! {
        id: number(id.0),
        cursor: number(effect.cursor.0),
        action: &*request.action,
        executor: &*request.executor,
        key: &*request.key,
        attempt: request.attempt,
        timeout_ms: request.timeout_ms.map(number),
        requested_at: effect.requested_at.to_string(),
        inputs: shown(&request.inputs),
    })
}
