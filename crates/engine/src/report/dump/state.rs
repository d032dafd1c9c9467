//! A run's state as `dump` shows it: nothing is left out, and what refers to the program has the
//! names of the program.

use super::super::view::{RunView, shown};
use super::super::{ErrorReport, OutcomeReport, PauseReport, PausedSince};
use super::types::{
    BranchDump, CursorDump, EffectDump, FaultDump, FrameDump, FrameKindDump, LinkDump, RecordDump,
    SignalDump, StateDump, TimerDump, WaitDump,
};
use windlass_expression::Value;
use windlass_machine::program::ActionId;
use windlass_machine::{
    ActionRecord, BranchState, Cursor, CursorId, DeadlineState, Frame, FrameKind, GraphState,
    IsolatedState, ItemState, LoopState, Output, PendingEffect, Records, RunState, TimerPurpose,
    Wait,
};
use windlass_model::model::{LinkKind, sha256};

/// SHA-256 over the encoded state.
pub(super) fn checksum(state: &RunState) -> Option<String> {
    let bytes = bincode::encode_to_vec(state, bincode::config::standard()).ok()?;
    let digest = sha256(&bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("sha256:{digits}"))
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
        cursors: run
            .cursors
            .iter()
            .map(|(id, one)| cursor(view, *id, one))
            .collect(),
        effects: run
            .effects
            .iter()
            .map(|(id, one)| effect(id.0, one))
            .collect(),
        timers: run
            .timers
            .iter()
            .map(|(id, timer)| {
                let (purpose, scope) = match timer.purpose {
                    TimerPurpose::Delay => ("delay", None),
                    TimerPurpose::Retry => ("retry", None),
                    TimerPurpose::Sleep | TimerPurpose::SleepSince(_) => ("sleep", None),
                    TimerPurpose::Deadline(scope) => ("deadline", Some(view.scope_name(scope))),
                };
                TimerDump {
                    id: id.0,
                    cursor: timer.cursor.0,
                    due_at: timer.due_at,
                    purpose: purpose.to_owned(),
                    scope,
                }
            })
            .collect(),
        signals: run
            .signals
            .iter()
            .map(|(name, payload)| SignalDump {
                name: name.to_string(),
                payload: shown(payload),
            })
            .collect(),
    }
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

fn cursor(view: &RunView, id: CursorId, cursor: &Cursor) -> CursorDump {
    CursorDump {
        id: id.0,
        at: cursor.at.0,
        step: view.state_of(cursor.at).map(|state| state.name.to_string()),
        parent: cursor.parent.map(|parent| parent.0),
        wait: match &cursor.wait {
            Wait::Ready => WaitDump::Nothing,
            Wait::Effect(id) => WaitDump::Effect { id: id.0 },
            Wait::Timer(id) => WaitDump::Timer { id: id.0 },
            Wait::Signal(name) => WaitDump::Signal {
                name: name.to_string(),
            },
            Wait::Branches => WaitDump::Branches,
            Wait::Budget => WaitDump::Budget,
            Wait::Faulted { error, .. } => WaitDump::Fault {
                message: error.fault.message.clone(),
            },
        },
        frames: cursor.frames.iter().map(|one| frame(view, one)).collect(),
        records: records(view, &cursor.records),
        owns_records: cursor.owns_records,
    }
}

fn frame(view: &RunView, frame: &Frame) -> FrameDump {
    let kind = match &frame.kind {
        FrameKind::Plain => FrameKindDump::Plain,
        FrameKind::Graph(GraphState { steps, visit, .. }) => FrameKindDump::Graph {
            steps: *steps,
            visit: *visit,
        },
        FrameKind::Loop(state) => FrameKindDump::Loop {
            state: Box::new(state.row()),
            last: records(view, &state.last),
            kept: shown(&state.collected),
        },
        FrameKind::Try(state) => FrameKindDump::Try {
            attempt: state.attempt,
            max_attempts: state.max_attempts,
            last_fault: state.last_fault.as_deref().map(|(fault, at)| FaultDump {
                kind: fault.kind.to_string(),
                code: fault.code.as_ref().map(ToString::to_string),
                message: fault.message.clone(),
                at: *at,
            }),
            next_due_at: state.next_due_at,
        },
        FrameKind::Deadline(DeadlineState { timer, after_ms }) => FrameKindDump::Deadline {
            timer: timer.0,
            after_ms: *after_ms,
        },
        FrameKind::Fork(fork) => FrameKindDump::Fork {
            items: shown(&fork.items),
            branches: fork.branches.iter().map(|one| branch(view, one)).collect(),
            started: fork.started,
            running: fork.running,
            closed: fork.closed,
        },
        FrameKind::Branch(ItemState { index, item }) => FrameKindDump::Branch {
            index: *index,
            item: shown(item),
        },
        FrameKind::Root { environment } => FrameKindDump::Root {
            environment: shown(environment),
        },
        FrameKind::Isolated(IsolatedState { index, variables }) => FrameKindDump::Apart {
            index: *index,
            variables: shown(variables),
        },
    };
    FrameDump {
        scope: frame.scope.0,
        name: view.scope_name(frame.scope),
        entered_at: frame.entered_at,
        kind,
    }
}

fn branch(view: &RunView, branch: &BranchState) -> BranchDump {
    match branch {
        BranchState::Pending => BranchDump::Pending,
        BranchState::Running(cursor) => BranchDump::Running { cursor: cursor.0 },
        BranchState::Ended(outcome) => BranchDump::Ended {
            status: outcome.status,
            error: outcome
                .error
                .as_ref()
                .map(|error| ErrorReport::new(error, view.bundle())),
            records: records(view, &outcome.records),
        },
    }
}

fn records(view: &RunView, records: &Records) -> Vec<RecordDump> {
    let dump = |action: &ActionId, record: &ActionRecord| RecordDump {
        action: view.action_name(*action),
        status: record.status,
        inputs: shown(&record.inputs),
        output: stored_output(view, &record.output),
        error: record.error.as_ref().map(|fault| fault.message.clone()),
        started_at: record.started_at,
        ended_at: record.ended_at,
        attempts: record.attempts,
    };
    let all = records.iter();
    all.map(|(action, record)| dump(action, record)).collect()
}

/// An output as it is stored: `{value}`, or where it is read from: `{variable, appended}`,
/// `{actions}`,
/// `{iterations, status, reason, actions}`, `{items, actions}`, `{branches}`.
fn stored_output(view: &RunView, output: &Output) -> Value {
    let names = |actions: &[ActionId]| {
        let names = actions.iter().map(|id| Value::from(view.action_name(*id)));
        Value::array(names.collect())
    };
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    match output {
        Output::Value(value) => Value::from_pairs([("value", shown(value))]),
        Output::Variable(name) | Output::LastOf(name) => {
            Value::from_pairs([("variable", Value::from(&**name))])
        }
        Output::Appended { variable, more } => Value::from_pairs([
            ("variable", Value::from(&**variable)),
            ("appended", shown(more)),
        ]),
        Output::Actions(actions) => Value::from_pairs([("actions", names(actions))]),
        Output::Loop {
            iterations,
            status,
            end,
            body,
        } => Value::from_pairs([
            ("iterations", number(*iterations)),
            ("status", Value::from(status.as_str())),
            ("reason", Value::from(end.as_str())),
            ("actions", names(body)),
        ]),
        Output::Iterations { records, body } => Value::from_pairs([
            ("items", number(records.len() as u64)),
            ("actions", names(body)),
        ]),
        Output::Branches(branches) => {
            let pairs = branches
                .iter()
                .map(|(name, actions)| (name.clone(), names(actions)));
            Value::from_pairs([("branches", Value::from_pairs(pairs))])
        }
    }
}

fn effect(id: u64, effect: &PendingEffect) -> EffectDump {
    let request = &effect.request;
    EffectDump {
        id,
        cursor: effect.cursor.0,
        action: request.action.to_string(),
        executor: request.executor.to_string(),
        key: request.key.clone(),
        attempt: request.attempt,
        timeout_ms: request.timeout_ms,
        requested_at: effect.requested_at,
        inputs: shown(&request.inputs),
    }
}
