//! What an expression sees of a run, from where one cursor stands.

use super::fault::fault_value;
use super::record::{ActionRecord, Output, Reading, Records};
use super::state::{Cursor, CursorId, Frame, FrameKind, LoopState, RunState};
use crate::expression::{
    ActionView, Env, Lookup, Mode, Object, Value, environment_secret, secret_mark,
};
use crate::model::{Dialect, Name, Status, Test};
use crate::program::{ActionId, Program, Scope, ScopeKind};
use crate::time::Timestamp;
use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fmt::Write;

/// What a loop's condition sees from where a cursor stands, for those who look at a run.
pub fn environment<'a>(
    program: &'a Program,
    run: &'a RunState,
    cursor: CursorId,
    now: Timestamp,
) -> impl Env + 'a {
    View {
        program,
        run,
        cursor,
        now,
        forgiving: true,
        bound: None,
        random: None,
        secrets: Secrets::Refused,
    }
}

/// The environment of one evaluation.
pub(super) struct View<'a> {
    pub program: &'a Program,
    pub run: &'a RunState,
    pub cursor: CursorId,
    pub now: Timestamp,
    /// In a loop's condition, an action that has not run yet reads as null.
    pub forgiving: bool,
    /// One more variable: an effect's `result`.
    pub bound: Option<(&'a str, &'a Value)>,
    /// The transition's generator, seeded when it is first drawn from; none for those who only
    /// look.
    pub random: Option<&'a RefCell<Option<StdRng>>>,
    /// What `secret('NAME')` gives.
    pub secrets: Secrets,
}

/// What an evaluation makes of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    /// Nothing: only what goes to an action may hold one.
    Refused,
    /// Their marks.
    Marked,
    /// Empty text: what is left is what the rest of the template makes of its data.
    Blank,
}

/// The variables that every loop gives to its inside (seed: loom-loops.md, "Loop Context
/// Variables").
#[derive(Clone, Copy)]
enum LoopVariable {
    Index,
    Count,
    Result,
    StartTime,
}

const LOOP_VARIABLES: [(&str, LoopVariable); 4] = [
    ("loopindex", LoopVariable::Index),
    ("loopcount", LoopVariable::Count),
    ("loopresult", LoopVariable::Result),
    ("loopstarttime", LoopVariable::StartTime),
];

/// A loop or foreach around a cursor.
enum Around<'a> {
    Loop(&'a Scope, CursorId, &'a LoopState),
    Item {
        fork: &'a Scope,
        index: u32,
        item: &'a Value,
        entered_at: Timestamp,
    },
}

impl<'a> View<'a> {
    // ── where it stands ─────────────────────────────────────────────────────────────────────

    /// This cursor and those it was forked from, innermost first.
    fn lineage(&self) -> impl Iterator<Item = (CursorId, &'a Cursor)> {
        let run = self.run;
        let mut next = Some(self.cursor);
        std::iter::from_fn(move || {
            let id = next?;
            let cursor = run.cursors.get(&id)?;
            next = cursor.parent;
            Some((id, cursor))
        })
    }

    /// The frames around this place, innermost first.
    fn frames(&self) -> impl Iterator<Item = (CursorId, &'a Frame)> {
        self.lineage()
            .flat_map(|(id, cursor)| cursor.frames.iter().rev().map(move |frame| (id, frame)))
    }

    fn around(&self) -> impl Iterator<Item = Around<'a>> + '_ {
        let program = self.program;
        self.frames()
            .filter_map(move |(cursor, frame)| match &frame.kind {
                FrameKind::Loop(state) => {
                    Some(Around::Loop(program.scope(frame.scope)?, cursor, state))
                }
                FrameKind::Branch { index, item } => Some(Around::Item {
                    fork: self.foreach_of(frame)?,
                    index: *index,
                    item,
                    entered_at: frame.entered_at,
                }),
                _ => None,
            })
    }

    fn named(&self, name: &str) -> Option<Around<'a>> {
        self.around()
            .find(|around| around.name().eq_ignore_ascii_case(name))
    }

    /// The path of a loop with this name entered here: the iterations of what is around it.
    pub fn path_of(&self, name: &str) -> String {
        let mut path = self.path();
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        path
    }

    /// `outer#2/inner#0`: names and current iterations, from 0; `~2` is the second visit of a
    /// graph's node.
    pub fn path(&self) -> String {
        let program = self.program;
        let frames: Vec<&Frame> = self.frames().map(|(_, frame)| frame).collect();
        let mut path = String::new();
        for frame in frames.into_iter().rev() {
            let slash = if path.is_empty() { "" } else { "/" };
            let _ = match &frame.kind {
                FrameKind::Loop(state) => match program.scope(frame.scope) {
                    Some(scope) => write!(path, "{slash}{}#{}", scope.name, state.iteration),
                    None => Ok(()),
                },
                FrameKind::Branch { index, .. } => match self.foreach_of(frame) {
                    Some(fork) => write!(path, "{slash}{}#{index}", fork.name),
                    None => Ok(()),
                },
                FrameKind::Graph { visit, .. } if *visit > 1 => write!(path, "{slash}~{visit}"),
                _ => Ok(()),
            };
        }
        path
    }

    /// The foreach that the branch with this frame belongs to, if it is a foreach.
    fn foreach_of(&self, branch: &Frame) -> Option<&'a Scope> {
        let parent = self.program.scope(branch.scope)?.parent?;
        let fork = self.program.scope(parent)?;
        matches!(fork.kind, ScopeKind::ForEach { .. }).then_some(fork)
    }

    /// The idempotency key of a step here: run, loop path, iteration and step, without the
    /// attempt (spec: architecture.md, law 4). Printable ASCII, so that it fits a header.
    pub fn key(&self, step: &str) -> String {
        printable(&format!("{}/{}", self.run.id, self.path_of(step)))
    }

    /// The innermost loop around this place: its path, and its iteration from 0.
    pub fn innermost_iteration(&self) -> Option<(String, u64)> {
        self.around().next().map(|around| match around {
            Around::Loop(scope, _, state) => (state.path.clone(), current(scope, state)),
            Around::Item { index, .. } => {
                // The path of an item ends with its index; nothing after it has a `#`.
                let path = self.path();
                let own = path.rsplit_once('#').map_or(&*path, |(own, _)| own);
                (own.to_owned(), u64::from(index))
            }
        })
    }

    /// A seed from run, place and `salt`: the same after a crash.
    pub fn seed(&self, salt: &str) -> u64 {
        let digest = Sha256::digest(format!("{}/{}", self.key(salt), self.run.next_id));
        digest
            .iter()
            .take(8)
            .fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }

    fn action_names(&self) -> Vec<String> {
        let names = self.program.actions.iter();
        let named = names.filter(|action| !action.anonymous);
        named.map(|action| action.name.to_string()).collect()
    }

    // ── what is there ───────────────────────────────────────────────────────────────────────

    /// The variables that can be seen from here.
    fn variables(&self) -> &'a Value {
        self.run.variables_of(self.cursor)
    }

    /// Reads records of a cursor, or of its loops.
    fn reading(&self, cursor: CursorId, records: &'a Records) -> Reading<'a> {
        Reading {
            program: self.program,
            variables: self.run.variables_of(cursor),
            records,
            row: false,
        }
    }

    /// The records this cursor can see, nearest first.
    fn visible(&self) -> impl Iterator<Item = Reading<'a>> {
        self.lineage()
            .filter(|(_, cursor)| cursor.owns_records)
            .map(|(id, cursor)| self.reading(id, &cursor.records))
    }

    fn loop_variable(&self, name: &str) -> Option<Value> {
        let lower = name.to_ascii_lowercase();
        let (suffix, which) = LOOP_VARIABLES
            .iter()
            .find(|(suffix, _)| lower.ends_with(suffix))?;
        let prefix = name.get(..name.len() - suffix.len())?;
        let around = match prefix.strip_suffix('_') {
            None if prefix.is_empty() => self.around().next()?,
            None => return None,
            Some(loop_name) => self.named(loop_name)?,
        };
        Some(self.loop_value(&around, *which))
    }

    fn loop_value(&self, around: &Around<'a>, which: LoopVariable) -> Value {
        match (around, which) {
            (_, LoopVariable::Index) => Value::Int(around.index()),
            (_, LoopVariable::Count) => Value::Int(around.index().saturating_add(1)),
            (Around::Loop(scope, cursor, state), LoopVariable::Result) => {
                self.last_result(scope, *cursor, state)
            }
            (Around::Item { .. }, LoopVariable::Result) => Value::Null,
            (Around::Loop(_, _, state), LoopVariable::StartTime) => {
                Value::text(state.started_at.to_string())
            }
            (Around::Item { entered_at, .. }, LoopVariable::StartTime) => {
                Value::text(entered_at.to_string())
            }
        }
    }

    /// The outputs of the last iteration that ended; null at first.
    fn last_result(&self, scope: &'a Scope, cursor: CursorId, state: &'a LoopState) -> Value {
        self.last_records(cursor, state)
            .map(|records| self.reading(cursor, records).actions(&scope.children))
            .unwrap_or_default()
    }

    /// The records of the last iteration that ended; none at first.
    fn last_records(&self, cursor: CursorId, state: &'a LoopState) -> Option<&'a Records> {
        if state.iteration == 0 {
            return None;
        }
        if state.iteration_started_at.is_some() {
            return Some(&state.last);
        }
        let home = self.run.cursors.get(&self.run.home(cursor))?;
        Some(&home.records)
    }

    fn loop_object(&self, around: &Around<'a>) -> Value {
        let of = |which| self.loop_value(around, which);
        let mut map = Object::new();
        map.insert(Name::from("index"), of(LoopVariable::Index));
        map.insert(Name::from("count"), of(LoopVariable::Count));
        map.insert(Name::from("result"), of(LoopVariable::Result));
        map.insert(Name::from("started_at"), of(LoopVariable::StartTime));
        if let Around::Item { item, .. } = around {
            map.insert(Name::from("item"), (*item).clone());
        }
        Value::object(map)
    }

    fn action_view(&self, id: ActionId, record: &ActionRecord, from: Reading<'a>) -> ActionView {
        let name = self
            .program
            .action(id)
            .map(|action| action.name.to_string());
        ActionView {
            name: name.unwrap_or_default(),
            status: record.status.as_str().to_owned(),
            code: code_of(record, self.program.dialect),
            inputs: record.inputs.clone(),
            outputs: from.output(&record.output),
            error: record.error.as_ref().map(fault_value).unwrap_or_default(),
            start_time: Value::text(record.started_at.to_string()),
            end_time: Value::text(record.ended_at.to_string()),
            tracking_id: Value::text(format!("{}/{id}", self.run.id)),
            client_tracking_id: Value::text(&*self.run.id),
        }
    }

    /// Azure: an action that was not run by what is around it, and never will be, because that has
    /// ended: it counts as skipped. In the house format it has no record, which is an error.
    fn passed_over(&self, id: ActionId) -> bool {
        let ended = |scope: &Scope| {
            let around =
                scope.inner.contains(&id.0) && !matches!(scope.kind, ScopeKind::ForEach { .. });
            around && scope.action.is_some_and(|action| self.has_record(action))
        };
        self.program.dialect == Dialect::Azure && self.program.scopes.iter().any(ended)
    }

    fn has_record(&self, action: ActionId) -> bool {
        self.visible()
            .any(|from| from.records.contains_key(&action))
    }

    fn skipped_view(&self, id: ActionId) -> ActionView {
        let name = self
            .program
            .action(id)
            .map(|action| action.name.to_string());
        ActionView {
            name: name.unwrap_or_default(),
            status: Status::Skipped.as_str().to_owned(),
            code: Value::from("ActionSkipped"),
            ..ActionView::default()
        }
    }

    fn scope_records(&self, scope: &'a Scope) -> Option<Value> {
        let action = scope.action?;
        let from = self.visible().find(|from| {
            let has = |child| from.records.contains_key(child);
            has(&action) || scope.children.iter().any(has)
        })?;
        let of_foreach = match from.records.get(&action).map(|record| &record.output) {
            Some(Output::Iterations { records, .. }) => {
                Some(records.iter().map(|(_, records)| records).collect())
            }
            _ => None,
        };
        let sources: Vec<&'a Records> = of_foreach.unwrap_or_else(|| vec![from.records]);
        let mut list = Vec::new();
        for records in sources {
            let from = Reading { records, ..from };
            for child in &scope.children {
                if let Some(record) = records.get(child) {
                    list.push(self.action_view(*child, record, from).to_value());
                } else if self.passed_over(*child) {
                    list.push(self.skipped_view(*child).to_value());
                }
            }
        }
        Some(Value::array(list))
    }
}

/// What all idempotency keys of a run begin with.
pub(super) fn key_of_run(run: &str) -> String {
    printable(&format!("{run}/"))
}

/// Printable ASCII; what is none is written as its bytes.
fn printable(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => key.push(char::from(byte)),
            _ => {
                let _ = write!(key, "%{byte:02X}");
            }
        }
    }
    key
}

impl Around<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Loop(scope, ..) | Self::Item { fork: scope, .. } => &scope.name,
        }
    }

    fn index(&self) -> i64 {
        match self {
            Self::Loop(scope, _, state) => i64::try_from(current(scope, state)).unwrap_or(i64::MAX),
            Self::Item { index, .. } => i64::from(*index),
        }
    }
}

/// Which iteration of a loop this is. Between two, a loop that looks before an iteration is at the
/// next one, and one that looks after it still at the last: `doUntil` with `loopCount` equal to 3
/// runs three times.
fn current(scope: &Scope, state: &LoopState) -> u64 {
    let after = matches!(&scope.kind, ScopeKind::Loop(spec) if spec.test == Test::After);
    if after && state.iteration_started_at.is_none() {
        return state.iteration.saturating_sub(1);
    }
    state.iteration
}

/// `code` as Logic Apps shows it: the words of the HTTP status, or of the action's status. The
/// house format keeps a code as it came.
fn code_of(record: &ActionRecord, dialect: Dialect) -> Value {
    let failed = record
        .error
        .as_ref()
        .and_then(|fault| fault.code.as_deref());
    let answered = match &record.output {
        Output::Value(output) if dialect == Dialect::Azure => {
            let code = output.get("statusCode").and_then(Value::as_int);
            code.and_then(status_words)
        }
        _ => None,
    };
    if let Some(words) = answered {
        return Value::from(words);
    }
    match (failed, record.status) {
        (Some(code), _) => Value::from(code),
        (None, Status::Succeeded) => Value::from("OK"),
        (None, Status::Skipped) => Value::from("ActionSkipped"),
        (None, _) => Value::from("ActionFailed"),
    }
}

/// A status as .NET names it.
fn status_words(code: i64) -> Option<&'static str> {
    Some(match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "NoContent",
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "UnprocessableEntity",
        429 => "TooManyRequests",
        500 => "InternalServerError",
        501 => "NotImplemented",
        502 => "BadGateway",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        _ => return None,
    })
}

impl Env for View<'_> {
    fn mode(&self) -> Mode {
        self.program.dialect.mode()
    }

    fn variable(&self, name: &str) -> Option<Value> {
        if let Some((bound, value)) = self.bound
            && bound == name
        {
            return Some(value.clone());
        }
        let map = self.variables().as_object()?;
        if let Some(value) = map.get(name) {
            return Some(value.clone());
        }
        self.loop_variable(name).or_else(|| {
            if self.program.dialect == Dialect::Tea {
                return None;
            }
            let same = map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            same.map(|(_, value)| value.clone())
        })
    }

    fn variable_names(&self) -> Vec<String> {
        let own = self.variables().as_object();
        let own = own
            .into_iter()
            .flat_map(|map| map.keys().map(ToString::to_string));
        let loops = ["loopIndex", "loopCount", "loopResult", "loopStartTime"];
        own.chain(loops.map(str::to_owned)).collect()
    }

    fn action(&self, name: &str) -> Lookup<ActionView> {
        let Some(id) = self.program.find_action(name) else {
            return Lookup::Unknown(self.action_names());
        };
        let found = self.visible().find_map(|from| {
            let record = from.records.get(&id)?;
            Some(self.action_view(id, record, from))
        });
        let found = found.or_else(|| self.passed_over(id).then(|| self.skipped_view(id)));
        found.map_or(Lookup::NotRun, Lookup::Found)
    }

    fn action_outputs(&self, name: &str) -> Lookup<Value> {
        let Some(id) = self.program.find_action(name) else {
            return Lookup::Unknown(self.action_names());
        };
        let found = self.visible().find_map(|from| {
            let record = from.records.get(&id)?;
            Some(from.output(&record.output))
        });
        let found = found.or_else(|| self.passed_over(id).then_some(Value::Null));
        found.map_or(Lookup::NotRun, Lookup::Found)
    }

    fn inputs(&self) -> Value {
        self.run.input.clone()
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        let parameters = self.program.parameters.iter();
        parameters
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
            .next()
    }

    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.around().find_map(|around| match around {
            Around::Item { fork, item, .. } => {
                let wanted = of.is_none_or(|name| fork.name.eq_ignore_ascii_case(name));
                wanted.then(|| item.clone())
            }
            Around::Loop(..) => None,
        })
    }

    fn iteration_index(&self, of: &str) -> Option<i64> {
        self.named(of).map(|around| around.index())
    }

    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        let action = self.program.find_action(action)?;
        self.around().find_map(|around| match around {
            Around::Loop(scope, cursor, state)
                if of.is_none_or(|name| scope.name.eq_ignore_ascii_case(name)) =>
            {
                let records = self.last_records(cursor, state)?;
                let record = records.get(&action)?;
                let ran = record.status == Status::Succeeded;
                ran.then(|| self.reading(cursor, records).output(&record.output))
            }
            Around::Loop(..) | Around::Item { .. } => None,
        })
    }

    fn result(&self, scope: &str) -> Lookup<Value> {
        let Some(scope) = self
            .program
            .find_scope(scope)
            .and_then(|id| self.program.scope(id))
        else {
            let scopes = self
                .program
                .scopes
                .iter()
                .filter(|scope| scope.action.is_some());
            return Lookup::Unknown(scopes.map(|scope| scope.name.to_string()).collect());
        };
        self.scope_records(scope)
            .map_or(Lookup::NotRun, Lookup::Found)
    }

    fn trigger(&self) -> Value {
        let outputs = Value::from_pairs([("body", self.run.input.clone())]);
        let name = self.program.trigger.as_deref().unwrap_or("manual");
        Value::from_pairs([
            ("name", Value::from(name)),
            ("status", Value::from(Status::Succeeded.as_str())),
            ("outputs", outputs),
        ])
    }

    fn workflow(&self) -> Value {
        let run = Value::from_pairs([
            ("id", Value::from(&*self.run.id)),
            ("name", Value::from(&*self.run.id)),
        ]);
        Value::from_pairs([
            ("id", Value::from(self.run.program.to_string())),
            ("name", Value::from(&*self.program.name)),
            ("run", run),
        ])
    }

    fn current_action(&self) -> Option<ActionView> {
        let state = self.program.state(self.run.cursors.get(&self.cursor)?.at)?;
        Some(ActionView {
            name: state.name.to_string(),
            status: String::from("Running"),
            ..ActionView::default()
        })
    }

    fn root(&self, name: &str) -> Option<Value> {
        if let Some((bound, value)) = self.bound
            && bound == name
        {
            return Some(value.clone());
        }
        if let Some(value) = self.parameter(name) {
            return Some(value);
        }
        match name {
            "state" | "variables" => Some(self.variables().clone()),
            "inputs" => Some(self.run.input.clone()),
            // No variable stands before the environment.
            "env" if self.program.dialect == Dialect::Tea => None,
            "item" => self.item(None),
            "workflow" => Some(self.workflow()),
            "loop" => self.around().next().map(|around| self.loop_object(&around)),
            "loops" => {
                Some(Value::from_pairs(self.around().map(|around| {
                    (Name::from(around.name()), self.loop_object(&around))
                })))
            }
            _ => self.variables().get(name).cloned(),
        }
    }

    fn root_names(&self) -> Vec<String> {
        let fixed = [
            "state",
            "variables",
            "inputs",
            "item",
            "workflow",
            "loop",
            "loops",
        ];
        let variables = self.variables().as_object();
        let variables = variables
            .into_iter()
            .flat_map(|map| map.keys().map(ToString::to_string));
        fixed
            .into_iter()
            .map(str::to_owned)
            .chain(variables)
            .collect()
    }

    fn absent_is_none(&self, root: &str) -> bool {
        root == "state" || self.program.dialect == Dialect::Tea
    }

    fn env_var(&self, name: &str) -> Option<String> {
        if self
            .program
            .environment_secrets
            .iter()
            .any(|key| **key == *name)
        {
            return match self.secrets {
                Secrets::Refused => None,
                Secrets::Marked => Some(secret_mark(&environment_secret(name))),
                Secrets::Blank => Some(String::new()),
            };
        }
        let (_, root) = self.lineage().last()?;
        match &root.frames.first()?.kind {
            FrameKind::Root { environment } => environment.get(name)?.as_str().map(str::to_owned),
            _ => None,
        }
    }

    fn secret(&self, name: &str) -> Option<Value> {
        match self.secrets {
            Secrets::Refused => None,
            Secrets::Marked => Some(Value::text(secret_mark(name))),
            Secrets::Blank => Some(Value::text("")),
        }
    }

    fn forgives_unrun_actions(&self) -> bool {
        self.forgiving
    }

    fn now(&self) -> DateTime<Utc> {
        self.now.to_utc()
    }

    fn random(&self) -> u64 {
        let here = self.run.cursors.get(&self.cursor);
        let state = here.and_then(|here| self.program.state(here.at));
        let name = state.map_or("", |state| &*state.name);
        let seeded = || StdRng::seed_from_u64(self.seed(name));
        match self.random {
            Some(random) => random.borrow_mut().get_or_insert_with(seeded).next_u64(),
            None => seeded().next_u64(),
        }
    }
}
