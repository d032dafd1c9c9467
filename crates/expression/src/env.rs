//! What an expression may read: one trait, implemented by a run and by `windlass eval`.
//! Lookups return values and not references, because cloning a [`Value`] is cheap.

use super::{Budget, Value};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The mode of evaluation, for the rules in which Loom and Logic Apps differ (docs/reference/loom.md,
/// docs/reference/expressions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Loom. A nested `@` is accepted. If an action has no body, `body('x')` is its whole output.
    #[default]
    Loom,
    /// A Logic Apps definition.
    Azure,
}

/// The members of [`Env::schedule`]: the scheduled time of the run, and the scheduled times before and after it.
pub const SCHEDULE_MEMBERS: [&str; 3] = ["time", "previousTime", "nextTime"];

/// The members of a loop in Jinja: `loop.index`, `loops.outer.index` (docs/reference/loom.md).
pub const LOOP_MEMBERS: [&str; 6] = ["index", "count", "result", "started_at", "feedback", "item"];

/// The result of a lookup of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    Found(T),
    /// The action exists in the workflow, and has not run yet.
    NotRun,
    /// The action does not exist. The names of the existing actions are for the hint.
    Unknown(Vec<String>),
}

/// The record of one action, as `actions('x')` returns it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ActionView {
    pub name: String,
    /// Succeeded, Failed, Skipped, TimedOut, Cancelled, Running.
    pub status: String,
    /// A status code such as `OK` or `NotFound`, if there is one.
    pub code: Value,
    /// The evaluated inputs.
    pub inputs: Value,
    pub outputs: Value,
    /// The error: `{kind, code, message}`, or null.
    pub error: Value,
    /// The time when the action started, as RFC 3339 text, or null.
    pub start_time: Value,
    /// The time when the action ended, as RFC 3339 text, or null.
    pub end_time: Value,
    /// `trackingId`: the idempotency key, which is sent to the called service. Null outside of a run.
    pub tracking_id: Value,
    /// `clientTrackingId`: the id of the run.
    pub client_tracking_id: Value,
}

/// The members of an action, as `actions('x')` returns them.
pub const ACTION_MEMBERS: [&str; 10] = [
    "name",
    "status",
    "code",
    "inputs",
    "outputs",
    "error",
    "startTime",
    "endTime",
    "trackingId",
    "clientTrackingId",
];

impl ActionView {
    /// Returns the whole record as an object, with the key names of Logic Apps.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let values = [
            Value::from(self.name.as_str()),
            Value::from(self.status.as_str()),
            self.code.clone(),
            self.inputs.clone(),
            self.outputs.clone(),
            self.error.clone(),
            self.start_time.clone(),
            self.end_time.clone(),
            self.tracking_id.clone(),
            self.client_tracking_id.clone(),
        ];
        Value::from_pairs(ACTION_MEMBERS.into_iter().zip(values))
    }
}

/// The environment of an evaluation.
/// Within one evaluation, every method returns the same value for the same arguments. The exception is
/// [`Env::random`], which advances a seeded generator, so that a run can be replayed.
pub trait Env {
    /// Returns the enclosing environment. It is used for everything that this environment does not define.
    fn outer(&self) -> Option<&dyn Env> {
        None
    }
    fn mode(&self) -> Mode {
        self.outer().map_or(Mode::Loom, |outer| outer.mode())
    }
    /// Returns a variable of the workflow, or of a loop such as `loopIndex` or `outer_loopIndex`, ignoring the case
    /// of the name.
    fn variable(&self, name: &str) -> Option<Value> {
        self.outer()?.variable(name)
    }
    /// Returns the names that [`Env::variable`] knows, for hints.
    fn variable_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.variable_names())
            .unwrap_or_default()
    }
    /// Returns the record of an action, ignoring the case of the name.
    fn action(&self, name: &str) -> Lookup<ActionView> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.action(name))
    }
    /// Returns only the outputs of an action, for `body('x')` and `outputs('x')`.
    /// Implement this if making the whole record is expensive.
    fn action_outputs(&self, name: &str) -> Lookup<Value> {
        if let Some(outer) = self.outer() {
            return outer.action_outputs(name);
        }
        match self.action(name) {
            Lookup::Found(view) => Lookup::Found(view.outputs),
            Lookup::NotRun => Lookup::NotRun,
            Lookup::Unknown(known) => Lookup::Unknown(known),
        }
    }
    /// Returns true if a reference to an action evaluates to the list of its outputs in the iterations of a foreach.
    fn is_iterated(&self, name: &str) -> bool {
        self.outer().is_some_and(|outer| outer.is_iterated(name))
    }
    /// Returns a value that the workflow stores between its runs.
    /// If the workflow declares no such values, returns a variable.
    fn state(&self, name: &str) -> Option<Value> {
        self.outer()?.state(name)
    }
    /// Returns the names that [`Env::state`] knows, for hints.
    fn state_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.state_names())
            .unwrap_or_default()
    }
    /// Returns the last successful run of the workflow, or null if there was none.
    fn last_run(&self) -> Value {
        self.outer()
            .map(|outer| outer.last_run())
            .unwrap_or_default()
    }
    fn inputs(&self) -> Value {
        self.outer().map(|outer| outer.inputs()).unwrap_or_default()
    }
    fn parameter(&self, name: &str) -> Option<Value> {
        self.outer()?.parameter(name)
    }
    /// Returns the current item of the named foreach, or of the innermost one.
    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.outer()?.item(of)
    }
    /// Returns the iteration number, from 0, of the named enclosing loop.
    fn iteration_index(&self, of: &str) -> Option<i64> {
        self.outer()?.iteration_index(of)
    }
    /// Returns the output of an action in the previous iteration of the named enclosing loop.
    /// Without a name, the loop is the innermost one that has a previous iteration. Returns `None` if the action did
    /// not run in that iteration.
    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        self.outer()?.previous(action, of)
    }
    /// Implements `result('scope')`: returns an array with the records of the actions directly inside a scope.
    fn result(&self, scope: &str) -> Lookup<Value> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.result(scope))
    }
    /// Returns the trigger's record, `{name, status, inputs, outputs: {headers, body}}`, or null if there is no
    /// trigger.
    fn trigger(&self) -> Value {
        self.outer()
            .map(|outer| outer.trigger())
            .unwrap_or_default()
    }
    /// Implements `workflow()`: returns `{name, id, run: {name, id}, …}`.
    fn workflow(&self) -> Value {
        self.outer()
            .map(|outer| outer.workflow())
            .unwrap_or_default()
    }
    /// Implements `schedule('time')`: returns `{time, previousTime, nextTime}`.
    /// Each is null in a run that no schedule started.
    fn schedule(&self) -> Value {
        self.outer()
            .map(|outer| outer.schedule())
            .unwrap_or_default()
    }
    /// Implements `action()`: returns the record of the action whose inputs or conditions are being evaluated.
    fn current_action(&self) -> Option<ActionView> {
        self.outer()?.current_action()
    }
    /// Returns the value of a top-level name in a Jinja template that the other methods do not define.
    /// Such a name is `state`, `loop`, `loops`, `variables`, `inputs`, a key of the state, or a port.
    fn root(&self, name: &str) -> Option<Value> {
        self.outer()?.root(name)
    }
    /// Returns the names that [`Env::root`] knows, for hints.
    fn root_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.root_names())
            .unwrap_or_default()
    }
    /// Returns true if a missing member below this top-level name evaluates to None, as in TEA.
    /// If false, it is an error. A missing member whose name begins with `_` is always an error.
    fn absent_is_none(&self, root: &str) -> bool {
        let of_state = root == "state";
        self.outer()
            .map_or(of_state, |outer| outer.absent_is_none(root))
    }
    /// Returns the number of the current attempt of the innermost enclosing retry, from 1.
    fn attempt(&self) -> u32 {
        self.outer().map_or(1, |outer| outer.attempt())
    }
    /// Returns the number of attempts of an action; 0 if it did not run.
    fn attempts_of(&self, action: &str) -> u32 {
        self.outer().map_or(0, |outer| outer.attempts_of(action))
    }
    /// Implements `env('NAME')`: returns a variable of the operator's environment, if the engine allows reading it.
    fn env_var(&self, name: &str) -> Option<String> {
        self.outer()?.env_var(name)
    }
    /// Implements `secret('NAME')`: returns a placeholder, never the secret. Only an action replaces the placeholder.
    fn secret(&self, name: &str) -> Option<Value> {
        self.outer()?.secret(name)
    }
    /// Implements `callbackUrl('SIGNAL')`: returns a placeholder for an address. Only an action replaces the
    /// placeholder.
    /// The address is valid for the duration `valid`.
    fn callback_url(&self, signal: &str, valid: Duration) -> Option<Value> {
        self.outer()?.callback_url(signal, valid)
    }
    /// Returns true inside the condition of a loop. There, the record of an action that has not run is null instead
    /// of an error.
    fn missing_as_null(&self) -> bool {
        self.outer().is_some_and(|outer| outer.missing_as_null())
    }
    /// Returns the budget of the evaluation. An environment inside another one has the same budget.
    fn budget(&self) -> &Budget;
    /// Returns the time of the event that caused this evaluation.
    fn now(&self) -> DateTime<Utc>;
    /// Returns the next number of a generator seeded by run and step.
    fn random(&self) -> u64;
}
