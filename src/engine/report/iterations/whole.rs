//! One iteration with all that is kept of it: what its actions were given and gave, attempt by attempt,
//! and the variables at its end.

use super::{Kept, LoopView, at_pointer, bounded, last_name, split};
use crate::engine::report::view::shown;
use crate::engine::{EngineError, Inspector};
use crate::expression::Value;
use crate::machine::{Change, HistoryEvent, HistoryKind, printable, variables_at};
use crate::model::{Fault, Status};
use crate::program::{Program, Scope, ScopeKind};
use crate::store::{CommitRecord, EndedIteration, Journal, Place, StoreError, iteration_of};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;

/// How an iteration or action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// It is under way.
    Running,
    /// It ended.
    #[serde(untagged)]
    Ended(Status),
}

/// One iteration. A value over 64 KiB is `{"$large": {bytes, preview, pointer}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationReport {
    /// The run.
    pub run: String,
    /// The iteration: `outer#2/inner#7`.
    pub path: String,
    /// The loop's path.
    #[serde(rename = "loop")]
    pub loop_path: String,
    /// Its number, from 0.
    pub iteration: u64,
    /// How it ended, or `Running`.
    #[schema(value_type = String)]
    pub status: Progress,
    /// What the condition gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The most attempts that one of its actions took.
    pub attempts: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much of it is kept.
    pub kept: Kept,
    /// The outputs of its actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The variables at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// What it did, as far as the history has it.
    pub actions: Vec<ActionReport>,
    /// When it, or its loop before it, waited.
    pub waits: Vec<WaitReport>,
}

/// An action of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionReport {
    /// Where: `outer#2/inner#7/fetch`.
    pub path: String,
    /// Its name.
    pub action: String,
    /// The index of the innermost foreach's item, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// How it ended, or `Running`.
    #[schema(value_type = String)]
    pub status: Progress,
    /// When its first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The idempotency key of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its attempts.
    pub attempts: Vec<AttemptReport>,
    /// What it was given, in its last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An attempt of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptReport {
    /// From 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A time in which nothing was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitReport {
    /// Since when.
    pub from: Timestamp,
    /// Until when.
    pub to: Timestamp,
    /// `delay` before the iteration, `retry` between two attempts, or `sleep`.
    pub kind: String,
}

/// One iteration.
///
/// # Errors
/// Store errors. There is no such run, loop or iteration.
pub fn iteration(
    inspector: &Inspector,
    run: &str,
    path: &str,
) -> Result<IterationReport, EngineError> {
    let mut report = whole(inspector, run, path)?;
    let cut = |value: &mut Option<Value>, pointer: String| {
        *value = value.as_ref().map(|value| bounded(value, pointer));
    };
    cut(&mut report.result, String::from("/result"));
    if let Some(Value::Object(variables)) = &report.variables {
        let member = |(name, value): (&std::sync::Arc<str>, &Value)| {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            (
                name.clone(),
                bounded(value, format_args!("/variables/{escaped}")),
            )
        };
        report.variables = Some(Value::object(variables.iter().map(member).collect()));
    }
    for (index, action) in report.actions.iter_mut().enumerate() {
        cut(&mut action.inputs, format!("/actions/{index}/inputs"));
        cut(&mut action.outputs, format!("/actions/{index}/outputs"));
    }
    Ok(report)
}

/// A value of an iteration, all of it; none when there is none at this place.
///
/// # Errors
/// As [`iteration`].
pub fn iteration_value(
    inspector: &Inspector,
    run: &str,
    path: &str,
    pointer: &str,
) -> Result<Option<Value>, EngineError> {
    let report = whole(inspector, run, path)?;
    let (first, rest) = split_pointer(pointer);
    let (value, rest) = match first {
        "result" => (report.result, rest),
        "variables" => (report.variables, rest),
        "actions" => {
            let (index, rest) = split_pointer(rest);
            let (part, rest) = split_pointer(rest);
            let index = index.parse().unwrap_or(usize::MAX);
            let action = report.actions.into_iter().nth(index);
            let value = action.and_then(|action| match part {
                "inputs" => action.inputs,
                "outputs" => action.outputs,
                _ => None,
            });
            (value, rest)
        }
        _ => (None, rest),
    };
    Ok(value.and_then(|value| at_pointer(&value, rest).map(shown)))
}

/// The first part of a pointer, and the rest with its slash.
fn split_pointer(pointer: &str) -> (&str, &str) {
    let inner = pointer.strip_prefix('/').unwrap_or(pointer);
    inner.split_at(inner.find('/').unwrap_or(inner.len()))
}

/// The same with all of its values, secrets not masked yet.
pub(super) fn whole(
    inspector: &Inspector,
    run: &str,
    path: &str,
) -> Result<IterationReport, EngineError> {
    let missing = |run: &str| EngineError::NoIteration {
        run: crate::model::Name::from(run),
        path: path.to_owned(),
    };
    let (loop_path, number) = split(path).ok_or_else(|| missing(run))?;
    let view = LoopView::load(inspector, run, loop_path)?;
    let ended = view.one(number);
    let last = match ended.map(|one| one.row) {
        Some(Place::Commit(number)) => Some(number),
        Some(Place::Retained) => Some(0),
        None => None,
    };
    let state = view.of.state.as_ref();
    let current = state.filter(|state| state.iteration == number);
    let began = current.and_then(|state| state.iteration_started_at);
    let began = ended.map(|one| one.started_at).or(began);
    let since = began.unwrap_or(view.header.started_at);
    let records = match last {
        Some(0) => Vec::new(),
        last => inspector.commits_between(run, since, last)?,
    };
    let mut acted = Acted::new(&view, number, ended);
    acted.read(&records);
    let mut actions = acted.actions;
    let first = actions.iter().filter_map(|action| action.started_at).min();
    // An iteration that has not ended is one that is under way.
    let started_at = match (began.or(first), ended) {
        (Some(at), _) if ended.is_some() || view.running => at,
        _ => return Err(missing(run)),
    };
    let rows = match ended {
        Some(one) => view.rows(inspector, &[(number, one.row)])?,
        None => Vec::new(),
    };
    let result = rows.into_iter().next_back().map(|row| row.result);
    let kept = match ended {
        Some(_) if result.is_none() => Kept::Summary,
        Some(one) => view.kept(one),
        None => Kept::Whole,
    };
    let variables = match kept {
        Kept::Whole => variables(inspector, &view, number)?,
        Kept::Row | Kept::Summary => None,
    };
    if let (Some(result), Some(program)) = (&result, view.program.as_deref()) {
        complete(&mut actions, result, program, path);
    }
    let attempts = actions.iter().flat_map(|action| &action.attempts);
    let attempts = attempts.map(|one| one.attempt).max().unwrap_or(1);
    Ok(IterationReport {
        run: view.header.id.to_string(),
        path: path.to_owned(),
        loop_path: loop_path.to_owned(),
        iteration: number,
        status: ended.map_or(Progress::Running, |one| Progress::Ended(one.status)),
        condition: ended.and_then(|one| one.condition),
        started_at,
        ended_at: ended.map(|one| one.ended_at),
        attempts: ended.map_or(attempts, |one| one.attempts),
        error: ended.and_then(|one| one.error.as_deref().map(str::to_owned)),
        kept: match (kept, &variables) {
            (Kept::Whole, None) => Kept::Row,
            (kept, _) => kept,
        },
        result,
        variables,
        waits: waits(&view, number, started_at, &actions, &records),
        actions,
    })
}

fn variables(
    inspector: &Inspector,
    view: &LoopView,
    number: u64,
) -> Result<Option<Value>, EngineError> {
    let Some(program) = view.program.as_deref() else {
        return Ok(None);
    };
    let Journal {
        header,
        start,
        changes,
    } = inspector.journal(&view.header.id)?;
    let found = variables_at(program, &start, &changes, &view.path, number);
    Ok(found.map_err(|bug| StoreError::unfolded(&header.id, &bug))?)
}

/// Adds the actions that no event tells of: those without a call that succeeded.
fn complete(actions: &mut Vec<ActionReport>, result: &Value, program: &Program, path: &str) {
    let name = split(path).map_or(path, |(loop_path, _)| last_name(loop_path));
    let mut scopes = program
        .scopes
        .iter()
        .filter(|scope| super::is_loop(&scope.kind));
    if let Some(scope) = scopes.rfind(|scope| *scope.name == *name) {
        add_children(actions, result, program, scope, path);
    }
}

/// The result of a scope is a map of what its actions gave; of a single anonymous one, what that gave.
fn add_children(
    actions: &mut Vec<ActionReport>,
    result: &Value,
    program: &Program,
    scope: &Scope,
    path: &str,
) {
    for id in &scope.children {
        let Some(action) = program.action(*id) else {
            continue;
        };
        let output = match action.anonymous {
            true => Some(result),
            false => result.get(&action.name),
        };
        let Some(output) = output else {
            continue;
        };
        let at = format!("{path}/{}", action.name);
        match actions.iter_mut().find(|one| one.path == at) {
            Some(one) => one.outputs = Some(output.clone()),
            None if action.anonymous => {}
            None => actions.push(ActionReport {
                path: at,
                action: action.name.to_string(),
                item: None,
                status: Progress::Ended(Status::Succeeded),
                started_at: None,
                ended_at: None,
                key: None,
                attempts: Vec::new(),
                inputs: None,
                outputs: Some(output.clone()),
                error: None,
            }),
        }
        let blocks = program.scopes.iter().filter(|inner| {
            // What is inside of an action comes after it.
            let after = inner.children.iter().all(|child| child > id);
            inner.action == Some(*id) && !super::is_loop(&inner.kind) && after
        });
        for inner in blocks {
            add_children(actions, output, program, inner, path);
        }
    }
}

fn waits(
    view: &LoopView,
    number: u64,
    started_at: Timestamp,
    actions: &[ActionReport],
    records: &[CommitRecord],
) -> Vec<WaitReport> {
    let wait = |from: Timestamp, to: Timestamp, kind: &str| WaitReport {
        from,
        to,
        kind: kind.to_owned(),
    };
    let mut waits = Vec::new();
    let is_foreach = view.of.state.is_none();
    let before = number.checked_sub(1).filter(|_| !is_foreach);
    let before = before.and_then(|before| view.one(before));
    if let Some(before) = before.filter(|before| before.ended_at < started_at) {
        waits.push(wait(before.ended_at, started_at, "delay"));
    }
    for action in actions {
        for (one, next) in action.attempts.iter().zip(action.attempts.iter().skip(1)) {
            let ended = one.ended_at.filter(|ended| *ended < next.started_at);
            waits.extend(ended.map(|ended| wait(ended, next.started_at, "retry")));
        }
    }
    // Items run side by side, and the event does not say in which of them it was.
    let ended_at = view.one(number).map(|one| one.ended_at);
    let own = |event: &&HistoryEvent| {
        event.at >= started_at && ended_at.is_none_or(|end| event.at <= end) && !is_foreach
    };
    for event in records
        .iter()
        .flat_map(|record| &record.history)
        .filter(own)
    {
        if let HistoryKind::TimerSet { due_at, .. } = &event.what {
            let end = ended_at.map_or(*due_at, |end| end.min(*due_at));
            waits.push(wait(event.at, end, "sleep"));
        }
    }
    waits.sort_by_key(|wait| wait.from);
    waits
}

/// What the actions of an iteration did.
struct Acted<'a> {
    view: &'a LoopView,
    number: u64,
    ended: Option<&'a EndedIteration>,
    actions: Vec<ActionReport>,
}

/// What is known of a call.
struct Call<'a> {
    key: &'a str,
    attempt: u32,
    inputs: &'a Value,
    answer: Option<(&'a Value, &'a Option<Fault>)>,
}

impl<'a> Acted<'a> {
    fn new(view: &'a LoopView, number: u64, ended: Option<&'a EndedIteration>) -> Self {
        Self {
            view,
            number,
            ended,
            actions: Vec::new(),
        }
    }

    fn read(&mut self, records: &[CommitRecord]) {
        for event in records.iter().flat_map(|record| &record.history) {
            self.event(event);
        }
        let mut calls: HashMap<u64, Call<'_>> = HashMap::new();
        for change in records.iter().flat_map(|record| &record.changes) {
            match change {
                Change::EffectRequested(id, effect) => {
                    let call = Call {
                        key: &effect.request.key,
                        attempt: effect.request.attempt,
                        inputs: &effect.request.inputs,
                        answer: None,
                    };
                    calls.insert(id.0, call);
                }
                Change::EffectEnded {
                    id, output, error, ..
                } => {
                    if let Some(call) = calls.get_mut(&id.0) {
                        call.answer = Some((output, error));
                    }
                }
                _ => {}
            }
        }
        for action in &mut self.actions {
            let own = |call: &&Call<'_>| Some(call.key) == action.key.as_deref();
            let last = calls.values().filter(own).max_by_key(|call| call.attempt);
            if let Some(call) = last {
                action.inputs = Some(call.inputs.clone());
                let output = call.answer.map(|(output, _)| output);
                action.outputs = output.filter(|output| !output.is_null()).cloned();
            }
        }
    }

    /// The place of an event in this iteration, and the path of the iteration that it is directly in.
    fn place(&self, at: Timestamp, path: Option<&str>, iteration: Option<u64>) -> Option<String> {
        let (path, iteration) = (path?, iteration?);
        let number = iteration_of(&self.view.path, path, iteration)?;
        let within = self
            .ended
            .is_none_or(|ended| (ended.started_at..=ended.ended_at).contains(&at));
        (number == self.number && within).then(|| format!("{path}#{iteration}"))
    }

    fn event(&mut self, event: &HistoryEvent) {
        match &event.what {
            HistoryKind::ActionStarted {
                node_name,
                attempt,
                key,
                path,
                iteration,
            } => {
                let Some(inside) = self.place(event.at, path.as_deref(), *iteration) else {
                    return;
                };
                let begun = AttemptReport {
                    attempt: *attempt,
                    started_at: event.at,
                    ended_at: None,
                    error: None,
                };
                let mut known = self.actions.iter_mut();
                if let Some(action) = known.find(|one| one.key.as_deref() == Some(key)) {
                    action.attempts.push(begun);
                    action.status = Progress::Running;
                    (action.ended_at, action.error) = (None, None);
                    return;
                }
                let name = key.rsplit('/').next().unwrap_or_default();
                let at = key.split_once(&*format!("{}/", printable(&inside)));
                let rest = at.map_or(name, |(_, rest)| rest);
                self.actions.push(ActionReport {
                    path: format!("{inside}/{}", plain(rest)),
                    action: node_name.to_string(),
                    item: self.item(path.as_deref(), *iteration),
                    status: Progress::Running,
                    started_at: Some(event.at),
                    ended_at: None,
                    key: Some(key.clone()),
                    attempts: vec![begun],
                    inputs: None,
                    outputs: None,
                    error: None,
                });
            }
            HistoryKind::ActionEnded {
                node_name,
                status,
                error,
                attempt,
                path,
                iteration,
            } => {
                let Some(inside) = self.place(event.at, path.as_deref(), *iteration) else {
                    return;
                };
                let inside_of = |one: &&mut ActionReport| {
                    *one.action == **node_name
                        && one.status == Progress::Running
                        && one.path.starts_with(&*inside)
                };
                let mut known = self.actions.iter_mut();
                if let Some(action) = known.rfind(inside_of) {
                    if let Some(last) = action.attempts.last_mut() {
                        last.attempt = *attempt;
                        last.ended_at = Some(event.at);
                        last.error.clone_from(error);
                    }
                    action.status = Progress::Ended(*status);
                    action.ended_at = Some(event.at);
                    action.error.clone_from(error);
                    return;
                }
                // The end of a loop is told with the loop's own path.
                let own = path
                    .as_deref()
                    .filter(|path| last_name(path) == &**node_name);
                if own == Some(&*self.view.path) {
                    return;
                }
                self.actions.push(ActionReport {
                    path: own.map_or_else(|| format!("{inside}/{node_name}"), str::to_owned),
                    action: node_name.to_string(),
                    item: self.item(path.as_deref(), *iteration),
                    status: Progress::Ended(*status),
                    started_at: None,
                    ended_at: Some(event.at),
                    key: None,
                    attempts: Vec::new(),
                    inputs: None,
                    outputs: None,
                    error: error.clone(),
                });
            }
            _ => {}
        }
    }

    /// The index of an item of a foreach.
    fn item(&self, path: Option<&str>, iteration: Option<u64>) -> Option<u64> {
        let name = last_name(path?);
        let mut scopes = self.view.program.as_deref()?.scopes.iter();
        let each = |kind: &ScopeKind| matches!(kind, ScopeKind::ForEach { .. });
        let is_item = scopes.any(|scope| each(&scope.kind) && *scope.name == *name);
        iteration.filter(|_| is_item)
    }
}

/// A path that was written into a key.
fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = (byte == b'%').then(|| {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        });
        bytes.push(escaped.flatten().unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
