//! What actions did: their attempts, inputs and outputs. It is read from the stored history (events) and the stored
//! journal (changes).

use super::{is_loop, last_name, split};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};
use windlass_expression::Value;
use windlass_machine::program::{Program, Scope, ScopeKind};
use windlass_machine::{Change, HistoryEvent, HistoryKind, printable};
use windlass_model::model::{Fault, Status, name_of_part, path_part};
use windlass_store::{CommitRecord, EndedIteration, iteration_of};
use windlass_value::time::Timestamp;

/// The status of an iteration or action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// The iteration or action has not ended.
    Running,
    #[serde(untagged)]
    Ended(Status),
}

impl Progress {
    /// Returns the word of the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Ended(status) => status.as_str(),
        }
    }
}

impl PartialSchema for Progress {
    fn schema() -> RefOr<Schema> {
        let ended = Status::ALL.map(Self::Ended);
        let words = [Self::Running].into_iter().chain(ended).map(Self::as_str);
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .enum_values(Some(words))
            .into()
    }
}

impl ToSchema for Progress {}

/// What is stored of one action of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionReport {
    /// Path of the action in the run: `outer#2/inner#7/fetch`.
    pub path: String,
    /// Name of the action.
    pub action: String,
    /// Names of the blocks and choices that enclose the action within its loop, outermost first. Absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Index of the item, from 0, if the innermost loop of the action is a foreach. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// Status of the action: `Running`, or how it ended.
    pub status: Progress,
    /// Time when its first attempt began. Absent if it is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time when it ended. Absent while it runs, and if it is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Idempotency key of its call. Absent if the action made no call, or the key is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Attempts of the action, the first one first. Empty if they are not stored.
    pub attempts: Vec<AttemptReport>,
    /// Inputs of its last attempt. Absent if they are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Outputs of the action. Absent if they are null or not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Value>,
    /// Message of its failure. Absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ActionReport {
    /// Makes the report of an action that runs, and of which only the name and the position are known.
    pub(super) fn new(path: String, action: &str, scopes: Vec<String>) -> Self {
        Self {
            path,
            action: action.to_owned(),
            scopes,
            item: None,
            status: Progress::Running,
            started_at: None,
            ended_at: None,
            key: None,
            attempts: Vec::new(),
            inputs: None,
            outputs: None,
            error: None,
        }
    }
}

/// One attempt of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptReport {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Time when the attempt began.
    pub started_at: Timestamp,
    /// Time when the attempt ended. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Message of its failure. Absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Selects the actions that are reported.
#[derive(Clone, Copy)]
pub enum ActionLogScope<'a> {
    /// Actions of one iteration. The fields are the path of its loop, its number, and its stored entry if it has ended.
    Iteration(&'a str, u64, Option<&'a EndedIteration>),
    /// Actions outside of all loops.
    Outermost,
}

impl ActionLogScope<'_> {
    /// Returns the path of the innermost iteration of an event, if this is the selected iteration or is inside of it.
    /// For an event outside of all loops the path is empty.
    fn place_of_event(
        self,
        at: Timestamp,
        path: Option<&str>,
        iteration: Option<u64>,
    ) -> Option<String> {
        let (of, own, ended) = match self {
            Self::Outermost => return path.is_none().then(String::new),
            Self::Iteration(of, own, ended) => (of, own, ended),
        };
        let (path, iteration) = (path?, iteration?);
        let number = iteration_of(of, path, iteration)?;
        let within = ended.is_none_or(|ended| (ended.started_at..=ended.ended_at).contains(&at));
        (number == own && within).then(|| format!("{path}#{iteration}"))
    }

    /// Returns whether an event is of an action in this scope, or of a timer. Events of timers do not say which action
    /// they belong to.
    pub fn includes(self, event: &HistoryEvent) -> bool {
        match &event.what {
            HistoryKind::ActionStarted {
                path, iteration, ..
            }
            | HistoryKind::ActionEnded {
                path, iteration, ..
            } => self
                .place_of_event(event.at, path.as_deref(), *iteration)
                .is_some(),
            HistoryKind::TimerSet { .. } => true,
            _ => false,
        }
    }
}

/// Collects what the actions of a scope did.
pub struct ActionLog<'a> {
    program: Option<&'a Program>,
    of: ActionLogScope<'a>,
    pub actions: Vec<ActionReport>,
}

/// What the journal has about a call.
struct Call<'a> {
    key: &'a str,
    attempt: u32,
    inputs: &'a Value,
    answer: Option<(&'a Value, &'a Option<Fault>)>,
}

impl<'a> ActionLog<'a> {
    pub fn new(program: Option<&'a Program>, of: ActionLogScope<'a>) -> Self {
        Self {
            program,
            of,
            actions: Vec::new(),
        }
    }

    pub fn read(&mut self, records: &[CommitRecord]) {
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

    fn event(&mut self, event: &HistoryEvent) {
        match &event.what {
            HistoryKind::ActionStarted {
                node_name,
                attempt,
                key,
                path,
                iteration,
            } => {
                let Some(inside) = self
                    .of
                    .place_of_event(event.at, path.as_deref(), *iteration)
                else {
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
                let rest = plain(at.map_or(name, |(_, rest)| rest));
                let scopes = self.scopes(&name_of_part(last_name(&rest)));
                self.actions.push(ActionReport {
                    item: self.item(path.as_deref(), *iteration),
                    started_at: Some(event.at),
                    key: Some(key.clone()),
                    attempts: vec![begun],
                    ..ActionReport::new(join(&inside, &rest), node_name, scopes)
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
                let Some(inside) = self
                    .of
                    .place_of_event(event.at, path.as_deref(), *iteration)
                else {
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
                // The event of a loop's end has the loop's own path, and not that of the iteration around it.
                let own = path
                    .as_deref()
                    .filter(|path| last_name(path) == path_part(node_name));
                if matches!(self.of, ActionLogScope::Iteration(of, ..) if own == Some(of)) {
                    return;
                }
                let place = own.map_or_else(|| join(&inside, &path_part(node_name)), str::to_owned);
                self.actions.push(ActionReport {
                    item: self.item(path.as_deref(), *iteration),
                    status: Progress::Ended(*status),
                    ended_at: Some(event.at),
                    error: error.clone(),
                    ..ActionReport::new(place, node_name, self.scopes(node_name))
                });
            }
            _ => {}
        }
    }

    fn scopes(&self, action: &str) -> Vec<String> {
        let program = self.program;
        program.map_or_else(Vec::new, |program| scopes(program, action))
    }

    /// Returns the index of an item of a foreach.
    fn item(&self, path: Option<&str>, iteration: Option<u64>) -> Option<u64> {
        let name = name_of_part(last_name(path?));
        let mut scopes = self.program?.scopes.iter();
        let each = |kind: &ScopeKind| matches!(kind, ScopeKind::ForEach { .. });
        let is_item = scopes.any(|scope| each(&scope.kind) && *scope.name == *name);
        iteration.filter(|_| is_item)
    }
}

/// Decodes a path that was escaped for an idempotency key. Characters that paths themselves escape remain escaped.
fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = (byte == b'%').then(|| {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        });
        match escaped.flatten() {
            Some(own @ (b'/' | b'#' | b'%' | b'~')) => {
                bytes.extend_from_slice(format!("%{own:02X}").as_bytes());
            }
            Some(other) => bytes.push(other),
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn join(inside: &str, name: &str) -> String {
    let slash = if inside.is_empty() { "" } else { "/" };
    format!("{inside}{slash}{name}")
}

/// Returns the names of the scopes that enclose an action within its innermost loop, outermost first.
pub fn scopes(program: &Program, action: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let id = program.find_action(action);
    let mut next = id.and_then(|id| program.action(id)).map(|one| one.scope);
    while let Some(scope) = next.and_then(|id| program.scope(id)) {
        if is_loop(&scope.kind) {
            break;
        }
        // Ignore the scopes that an action has of its own, for its retries and its deadline.
        let own = scope.action.is_none() || *scope.name == *action;
        if !own && found.last().is_none_or(|last| *last != *scope.name) {
            found.push(scope.name.to_string());
        }
        next = scope.parent;
    }
    found.reverse();
    found
}

/// Adds the actions without an event: those that succeeded and made no call.
pub fn complete(actions: &mut Vec<ActionReport>, result: &Value, program: &Program, path: &str) {
    let name = split(path).map_or(path, |(loop_path, _)| last_name(loop_path));
    let mut scopes = program.scopes.iter().filter(|scope| is_loop(&scope.kind));
    if let Some(scope) = scopes.rfind(|scope| *scope.name == *name) {
        add_children(actions, result, program, scope, path);
    }
}

/// Adds the actions in a scope. The result of a scope is a map of its actions' outputs. If the scope has a single
/// action without a name, the result is the output of that action.
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
        let at = format!("{path}/{}", path_part(&action.name));
        match actions.iter_mut().find(|one| one.path == at) {
            Some(one) => one.outputs = Some(output.clone()),
            None if action.anonymous => {}
            None => actions.push(ActionReport {
                status: Progress::Ended(Status::Succeeded),
                outputs: Some(output.clone()),
                ..ActionReport::new(at, &action.name, scopes(program, &action.name))
            }),
        }
        let blocks = program.scopes.iter().filter(|inner| {
            // The inner actions of an action have greater ids than the action.
            let after = inner.children.iter().all(|child| child > id);
            inner.action == Some(*id) && !is_loop(&inner.kind) && after
        });
        for inner in blocks {
            add_children(actions, output, program, inner, path);
        }
    }
}
