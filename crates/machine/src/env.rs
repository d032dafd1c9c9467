//! What an expression can read of a run, from the position of a cursor.

use super::event::SCHEDULE;
use super::record::{RecordReader, Records};
use super::state::{CursorId, FrameKind, LoopState, RunState};
use crate::program::{Program, Scope};
use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::time::Duration;
use windlass_expression::{
    ActionView, Budget, Condition, Env, EvalError, LAST_RUN, Lookup, Mode, Object,
    SCHEDULE_MEMBERS, Template, Value, callback_mark, environment_secret, secret_mark,
};
use windlass_model::model::{CallbackClaim, Name, STATE_VARIABLE, Status};
use windlass_value::time::Timestamp;

/// Name of a loop's feedback (the values that its condition read) in the values that the loop collects. No name in a
/// workflow file begins with `$`.
pub(super) const FEEDBACK: &str = "$feedback";

/// Returns the values that a loop's condition can read from the position of a cursor. For code that reads a run outside
/// of a transition.
pub fn environment<'a>(
    program: &'a Program,
    run: &'a RunState,
    cursor: CursorId,
    now: Timestamp,
    budget: &'a Budget,
) -> impl Env + 'a {
    View {
        now,
        missing_as_null: true,
        ..View::of(program, run, cursor, budget)
    }
}

/// Returns the innermost loop or foreach that a cursor is in: its path, and its iteration or the index of its item,
/// from 0.
#[must_use]
pub fn innermost_iteration(
    program: &Program,
    run: &RunState,
    cursor: CursorId,
) -> Option<(String, u64)> {
    let budget = Budget::default();
    View::of(program, run, cursor, &budget).innermost_iteration()
}

/// A loop or foreach that encloses a cursor.
pub(super) enum Enclosing<'a> {
    Loop(&'a Scope, CursorId, &'a LoopState),
    Item {
        fork: &'a Scope,
        index: u32,
        item: &'a Value,
        entered_at: Timestamp,
    },
}

/// The environment of one evaluation.
pub(super) struct View<'a> {
    pub program: &'a Program,
    pub run: &'a RunState,
    pub cursor: CursorId,
    pub now: Timestamp,
    /// In a loop's condition, an action that has not run yet reads as null.
    pub missing_as_null: bool,
    /// A further variable, such as the `result` of an effect.
    pub bound: Option<(&'a str, &'a Value)>,
    /// The random generator of the transition, seeded at its first use. `None` if the run is read outside of a
    /// transition.
    pub random: Option<&'a RefCell<Option<StdRng>>>,
    /// What `secret('NAME')` returns.
    pub secrets: Secrets,
    /// The budget of work for the evaluation.
    pub budget: &'a Budget,
}

/// How an evaluation replaces secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    /// With an error, because only the inputs of an action may contain a secret.
    Refused,
    Marked,
    /// With empty text. The result is then computed only from the rest of the template.
    Blank,
}

/// The variables that every loop provides to its body (docs/reference/loops.md).
#[derive(Clone, Copy)]
enum LoopVariable {
    Index,
    Count,
    Result,
    StartTime,
    Feedback,
}

const LOOP_VARIABLES: [(&str, LoopVariable); 5] = [
    ("loopIndex", LoopVariable::Index),
    ("loopCount", LoopVariable::Count),
    ("loopResult", LoopVariable::Result),
    ("loopStartTime", LoopVariable::StartTime),
    ("loopFeedback", LoopVariable::Feedback),
];

impl<'a> View<'a> {
    /// Returns the view for code that reads a run outside of a transition.
    pub fn of(
        program: &'a Program,
        run: &'a RunState,
        cursor: CursorId,
        budget: &'a Budget,
    ) -> Self {
        Self {
            program,
            run,
            cursor,
            now: run.started_at,
            missing_as_null: false,
            bound: None,
            random: None,
            secrets: Secrets::Refused,
            budget,
        }
    }

    /// Evaluates a template. If the program has secure values, a value that is computed from one of them is secure,
    /// too.
    pub fn value(&self, template: &Template) -> Result<Value, EvalError> {
        match self.program.secure {
            true => template.eval_secure(self),
            false => template.eval(self),
        }
    }

    /// Evaluates a condition.
    pub fn holds(&self, condition: &Condition) -> Result<bool, EvalError> {
        match self.program.secure {
            true => condition.holds_secure(self),
            false => condition.holds(self),
        }
    }

    fn action_names(&self) -> Vec<String> {
        let names = self.program.actions.iter();
        let named = names.filter(|action| !action.anonymous);
        named.map(|action| action.name.to_string()).collect()
    }

    /// Returns one of the values that were stored when the run began, such as an environment variable.
    fn started_with(&self, name: &str) -> Option<Value> {
        let (_, root) = self.lineage().last()?;
        match &root.frames.first()?.kind {
            FrameKind::Root { environment } => environment.get(name).cloned(),
            _ => None,
        }
    }

    /// Returns the variables that the cursor uses.
    fn variables(&self) -> &'a Value {
        self.run.variables_of(self.cursor)
    }

    /// Returns a reader for records of a cursor or of its loops.
    fn reading(&self, records: &'a Records) -> RecordReader<'a> {
        RecordReader {
            program: self.program,
            records,
        }
    }

    /// Returns the records that expressions at this cursor can read, those of the nearest cursor first.
    pub fn visible(&self) -> impl Iterator<Item = RecordReader<'a>> {
        self.lineage()
            .filter(|(_, cursor)| cursor.owns_records)
            .map(|(_, cursor)| self.reading(&cursor.records))
    }

    /// Returns the mark of a secret, if expressions may read secrets.
    fn marked(&self, mark: impl FnOnce() -> String) -> Option<String> {
        match self.secrets {
            Secrets::Refused => None,
            Secrets::Marked => Some(mark()),
            Secrets::Blank => Some(String::new()),
        }
    }

    fn loop_variable(&self, name: &str) -> Option<Value> {
        let (prefix, which) = LOOP_VARIABLES.iter().find_map(|(known, which)| {
            let (prefix, end) = name.split_at_checked(name.len().checked_sub(known.len())?)?;
            end.eq_ignore_ascii_case(known).then_some((prefix, *which))
        })?;
        let enclosing = match prefix.strip_suffix('_') {
            None if prefix.is_empty() => self.enclosing().next()?,
            None => return None,
            Some(loop_name) => self.named(loop_name)?,
        };
        Some(self.loop_value(&enclosing, which))
    }

    fn loop_value(&self, enclosing: &Enclosing<'a>, which: LoopVariable) -> Value {
        match (enclosing, which) {
            (_, LoopVariable::Index) => Value::Int(enclosing.index()),
            (_, LoopVariable::Count) => Value::Int(enclosing.index().saturating_add(1)),
            (Enclosing::Loop(scope, cursor, state), LoopVariable::Result) => {
                self.last_result(scope, *cursor, state)
            }
            (Enclosing::Loop(_, _, state), LoopVariable::Feedback) => {
                state.collected.get(FEEDBACK).cloned().unwrap_or_default()
            }
            (Enclosing::Item { .. }, LoopVariable::Result | LoopVariable::Feedback) => Value::Null,
            (Enclosing::Loop(_, _, state), LoopVariable::StartTime) => {
                Value::text(state.started_at.to_string())
            }
            (Enclosing::Item { entered_at, .. }, LoopVariable::StartTime) => {
                Value::text(entered_at.to_string())
            }
        }
    }

    /// Returns the outputs of the last iteration that has ended; null during the first iteration.
    fn last_result(&self, scope: &'a Scope, cursor: CursorId, state: &'a LoopState) -> Value {
        self.last_records(cursor, state)
            .map(|records| self.reading(records).actions(&scope.children))
            .unwrap_or_default()
    }

    /// Returns the records of the last iteration that has ended; `None` during the first iteration.
    fn last_records(&self, cursor: CursorId, state: &'a LoopState) -> Option<&'a Records> {
        if state.iteration == 0 {
            return None;
        }
        if state.iteration_started_at.is_some() {
            return Some(&state.last);
        }
        let owner = self.run.cursors.get(&self.run.record_owner(cursor))?;
        Some(&owner.records)
    }

    /// Returns the request that started the run.
    /// The run's input is the body of the request. If the input has `headers`, `queries` or `relativePathParameters`,
    /// it is the whole request instead.
    fn trigger_outputs(&self) -> Value {
        const PARTS: [&str; 3] = ["headers", "queries", "relativePathParameters"];
        const WINDOW: [&str; 3] = ["windowStartTime", "windowEndTime", "sequenceNumber"];
        let input = &self.run.input;
        let is_request = self.program.trigger.is_some()
            && input.as_object().is_some_and(|map| {
                let part = |key: &str| PARTS.contains(&key);
                map.keys().any(|key| part(key))
                    && map.iter().all(|(key, value)| {
                        &**key == "body" || (part(key) && value.as_object().is_some())
                    })
            });
        if !is_request {
            let headers = Value::object(Object::new());
            let mut outputs = Object::new();
            outputs.insert("headers".into(), headers);
            outputs.insert("body".into(), input.clone());
            // The values of a SlidingWindow trigger are next to the body.
            for key in WINDOW {
                let part = self.program.trigger.as_ref().and_then(|_| input.get(key));
                if let Some(part) = part {
                    outputs.insert(key.into(), part.clone());
                }
            }
            return Value::object(outputs);
        }
        let mut outputs = input.as_object().cloned().unwrap_or_default();
        for (key, default) in [
            ("headers", Value::object(Object::new())),
            ("body", Value::Null),
        ] {
            if !outputs.contains_key(key) {
                outputs.insert(key.into(), default);
            }
        }
        Value::object(outputs)
    }

    fn loop_object(&self, enclosing: &Enclosing<'a>) -> Value {
        let of = |which| self.loop_value(enclosing, which);
        let mut map = Object::new();
        map.insert(Name::from("index"), of(LoopVariable::Index));
        map.insert(Name::from("count"), of(LoopVariable::Count));
        map.insert(Name::from("result"), of(LoopVariable::Result));
        map.insert(Name::from("started_at"), of(LoopVariable::StartTime));
        map.insert(Name::from("feedback"), of(LoopVariable::Feedback));
        if let Enclosing::Item { item, .. } = enclosing {
            map.insert(Name::from("item"), (*item).clone());
        }
        Value::object(map)
    }
}

impl Env for View<'_> {
    fn mode(&self) -> Mode {
        self.program.rules.mode
    }

    fn variable(&self, name: &str) -> Option<Value> {
        if let Some((bound, value)) = self.bound
            && bound == name
        {
            return Some(value.clone());
        }
        if let Some(value) = self.run.variable_of(self.cursor, name) {
            return Some(value.clone());
        }
        let map = self.variables().as_object()?;
        self.loop_variable(name).or_else(|| {
            let mut all = map.iter().filter(|_| !self.program.rules.case_sensitive);
            let same = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
            same.map(|(_, value)| value.clone())
        })
    }

    fn variable_names(&self) -> Vec<String> {
        let own = self.variables().as_object();
        let own = own
            .into_iter()
            .flat_map(|map| map.keys().map(ToString::to_string));
        let loops = LOOP_VARIABLES.iter().map(|(name, _)| (*name).to_owned());
        let inside = self.loop_variable("loopIndex").is_some();
        own.chain(loops.filter(|_| inside)).collect()
    }

    fn action(&self, name: &str) -> Lookup<ActionView> {
        let Some(id) = self.program.find_action(name) else {
            return Lookup::Unknown(self.action_names());
        };
        let found = self.visible().find_map(|from| {
            let record = from.records.get(&id)?;
            Some(self.action_view(id, record, from))
        });
        let found = found.or_else(|| self.iterated_view(id));
        let found = found.or_else(|| self.is_left_unrun(id).then(|| self.skipped_view(id)));
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
        let found = found.or_else(|| Some(self.iterated_view(id)?.outputs));
        let found = found.or_else(|| self.is_left_unrun(id).then_some(Value::Null));
        found.map_or(Lookup::NotRun, Lookup::Found)
    }

    fn is_iterated(&self, name: &str) -> bool {
        let id = self.program.find_action(name);
        id.is_some_and(|id| {
            let own = self.visible().any(|from| from.records.contains_key(&id));
            !own && self.iterations_around(id).is_some()
        })
    }

    fn state(&self, name: &str) -> Option<Value> {
        if self.program.state_values.is_empty() {
            return self.variable(name);
        }
        let known = self.variables().get(STATE_VARIABLE)?.get(name)?;
        Some(known.get("value").cloned().unwrap_or_default())
    }

    fn state_names(&self) -> Vec<String> {
        let names = self
            .program
            .state_values
            .iter()
            .map(|(name, _)| name.to_string());
        names.collect()
    }

    fn last_run(&self) -> Value {
        self.started_with(LAST_RUN).unwrap_or_default()
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
        self.enclosing().find_map(|one| match one {
            Enclosing::Item { fork, item, .. } => {
                let wanted = of.is_none_or(|name| fork.name.eq_ignore_ascii_case(name));
                wanted.then(|| item.clone())
            }
            Enclosing::Loop(..) => None,
        })
    }

    fn iteration_index(&self, of: &str) -> Option<i64> {
        self.named(of).map(|one| one.index())
    }

    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        let action = self.program.find_action(action)?;
        self.enclosing().find_map(|one| match one {
            Enclosing::Loop(scope, cursor, state)
                if of.is_none_or(|name| scope.name.eq_ignore_ascii_case(name)) =>
            {
                let records = self.last_records(cursor, state)?;
                let record = records.get(&action)?;
                let ran = record.status == Status::Succeeded;
                ran.then(|| self.reading(records).output(&record.output))
            }
            Enclosing::Loop(..) | Enclosing::Item { .. } => None,
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
        let trigger = self.program.trigger.as_ref();
        let name = trigger.map_or("manual", |trigger| &*trigger.name);
        let id = Value::from(&*self.run.id);
        let started_at = Value::text(self.run.started_at.to_string());
        let mut trigger = vec![
            ("name", Value::from(name)),
            ("status", Value::from(Status::Succeeded.as_str())),
            ("code", Value::from("OK")),
            ("inputs", Value::Null),
            ("outputs", self.trigger_outputs()),
            ("startTime", started_at.clone()),
            ("endTime", started_at.clone()),
            ("scheduledTime", started_at),
            ("trackingId", id.clone()),
            ("clientTrackingId", id.clone()),
            ("originHistoryName", id),
        ];
        if self.program.trigger.is_some() {
            // No server has this address. Nothing needs to call it, because a handler or a stub returns the answer as
            // the result of its action.
            let url = format!("https://callback.invalid/{}", self.run.id);
            trigger.push(("callbackUrl", Value::text(url)));
        }
        Value::from_pairs(trigger)
    }

    fn workflow(&self) -> Value {
        let run = &*self.run.id;
        let resource = self
            .program
            .trigger
            .as_ref()
            .map(|trigger| &trigger.workflow);
        let Some(resource) = resource.and_then(Value::as_object) else {
            let run = [("id", run), ("name", run)].map(|(key, id)| (key, Value::from(id)));
            return Value::from_pairs([
                ("id", Value::from(self.run.program.to_string())),
                ("name", Value::from(&*self.program.name)),
                ("run", Value::from_pairs(run)),
            ]);
        };
        let of = |key: &str| {
            resource
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let run = [
            ("id", Value::text(format!("{}/runs/{run}", of("id")))),
            ("name", Value::from(run)),
            ("type", Value::text(format!("{}/runs", of("type")))),
        ];
        let mut all = resource.clone();
        all.insert("run".into(), Value::from_pairs(run));
        Value::object(all)
    }

    fn schedule(&self) -> Value {
        let nothing = || Value::from_pairs(SCHEDULE_MEMBERS.map(|name| (name, Value::Null)));
        self.started_with(SCHEDULE).unwrap_or_else(nothing)
    }

    fn attempt(&self) -> u32 {
        self.current_attempt()
    }

    fn attempts_of(&self, action: &str) -> u32 {
        let id = self.program.find_action(action);
        let found = self.visible().find_map(|from| from.records.get(&id?));
        found.map_or(0, |record| record.attempts)
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
            "state" if !self.program.state_values.is_empty() => {
                let names = self.program.state_values.iter().map(|(name, _)| name);
                let state = names.filter_map(|name| Some((name.clone(), self.state(name)?)));
                Some(Value::from_pairs(state))
            }
            "state" | "variables" => Some(self.run.visible_variables(self.cursor)),
            LAST_RUN if self.program.last_run => Some(self.last_run()),
            "inputs" => Some(self.run.input.clone()),
            // In a format without this variable, `env` is the object of environment variables.
            "env" if !self.program.rules.env_variable => None,
            "item" => self.item(None),
            "workflow" => Some(self.workflow()),
            "loop" => self.enclosing().next().map(|one| self.loop_object(&one)),
            "loops" => Some(Value::from_pairs(
                self.enclosing()
                    .map(|one| (Name::from(one.name()), self.loop_object(&one))),
            )),
            _ => self.run.variable_of(self.cursor, name).cloned(),
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
        root == "state" || self.program.rules.missing_is_null
    }

    fn env_var(&self, name: &str) -> Option<String> {
        if self
            .program
            .environment_secrets
            .iter()
            .any(|key| **key == *name)
        {
            return self.marked(|| secret_mark(&environment_secret(name)));
        }
        self.started_with(name)?.as_str().map(str::to_owned)
    }

    fn secret(&self, name: &str) -> Option<Value> {
        self.marked(|| secret_mark(name)).map(Value::text)
    }

    fn callback_url(&self, signal: &str, valid: Duration) -> Option<Value> {
        let mark = || {
            let claim = CallbackClaim {
                received: self.run.received(signal),
                expires_at: self.now.plus(valid),
            };
            callback_mark(signal, &claim.to_string())
        };
        self.marked(mark).map(Value::text)
    }

    fn missing_as_null(&self) -> bool {
        self.missing_as_null
    }

    fn budget(&self) -> &Budget {
        self.budget
    }

    fn now(&self) -> DateTime<Utc> {
        self.now.to_utc()
    }

    fn random(&self) -> u64 {
        let here = self.run.cursors.get(&self.cursor);
        let state = here.and_then(|here| self.program.state(here.at));
        let name = state.map_or("", |state| &*state.name);
        // The start time is a part of the seed, because another store may have a run with the same id.
        let salt = format!("{name}/{}", self.run.started_at.0);
        let seeded = || StdRng::seed_from_u64(self.seed(&salt));
        match self.random {
            Some(random) => random.borrow_mut().get_or_insert_with(seeded).next_u64(),
            None => seeded().next_u64(),
        }
    }
}
