//! What an expression may read: one trait, implemented by a run and by `windlass eval`. Cloning a [`Value`] is cheap,
//! so lookups return values, not references.

use super::{Budget, Value};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The rules of evaluation where Loom and Azure differ (docs/reference/loom.md, docs/reference/expressions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A nested `@` is accepted. `body('x')` of an action without a body is its whole output.
    #[default]
    Loom,
    /// A Logic Apps definition.
    Azure,
}

/// The members of [`Env::schedule`]: the scheduled time of the run, and those before and after it.
pub const SCHEDULE_MEMBERS: [&str; 3] = ["time", "previousTime", "nextTime"];

/// The result of a lookup of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    Found(T),
    /// The action exists in the workflow and has not run at this point.
    NotRun,
    /// The name does not exist; the existing names are for the hint.
    Unknown(Vec<String>),
}

/// The record of one action as `actions('x')` shows it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ActionView {
    pub name: String,
    /// Succeeded, Failed, Skipped, TimedOut, Cancelled, Running.
    pub status: String,
    /// A status code such as `OK` or `NotFound`, if there is one.
    pub code: Value,
    /// The rendered inputs.
    pub inputs: Value,
    pub outputs: Value,
    /// The error: `{kind, code, message}`, or null.
    pub error: Value,
    /// When it started and ended, as RFC 3339 text, or null.
    pub start_time: Value,
    pub end_time: Value,
    /// `trackingId`: the idempotency key, which the callee receives; null without a run.
    pub tracking_id: Value,
    /// `clientTrackingId`: the run.
    pub client_tracking_id: Value,
}

impl ActionView {
    /// Returns the whole record as an object, with the key names of Logic Apps.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::from_pairs([
            ("name", Value::from(self.name.as_str())),
            ("status", Value::from(self.status.as_str())),
            ("code", self.code.clone()),
            ("inputs", self.inputs.clone()),
            ("outputs", self.outputs.clone()),
            ("error", self.error.clone()),
            ("startTime", self.start_time.clone()),
            ("endTime", self.end_time.clone()),
            ("trackingId", self.tracking_id.clone()),
            ("clientTrackingId", self.client_tracking_id.clone()),
        ])
    }
}

/// The environment of an evaluation. Every method is pure within one evaluation, except [`Env::random`], which advances
/// a seeded generator, so that a run can be replayed.
pub trait Env {
    /// Returns the enclosing environment, which answers what this one does not.
    fn outer(&self) -> Option<&dyn Env> {
        None
    }
    fn mode(&self) -> Mode {
        self.outer().map_or(Mode::Loom, |outer| outer.mode())
    }
    /// Returns a workflow variable, or a loop variable such as `loopIndex` or `outer_loopIndex`; the case is ignored.
    fn variable(&self, name: &str) -> Option<Value> {
        self.outer()?.variable(name)
    }
    /// Returns the names of [`Env::variable`], for hints.
    fn variable_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.variable_names())
            .unwrap_or_default()
    }
    /// Returns the record of an action; the name's case is ignored.
    fn action(&self, name: &str) -> Lookup<ActionView> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.action(name))
    }
    /// Returns only the outputs of an action, for `body('x')` and `outputs('x')`. Override this if the whole record is
    /// expensive.
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
    /// Returns true if the outputs of an action are the list of its outputs in the iterations of a foreach.
    fn is_iterated(&self, name: &str) -> bool {
        self.outer().is_some_and(|outer| outer.is_iterated(name))
    }
    /// Returns a value that is stored between the runs of the workflow. If the workflow declares none, returns a
    /// variable.
    fn state(&self, name: &str) -> Option<Value> {
        self.outer()?.state(name)
    }
    /// Returns the names of [`Env::state`], for hints.
    fn state_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.state_names())
            .unwrap_or_default()
    }
    /// Returns the last run of the workflow that succeeded, or null.
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
    /// Returns the output of an action in the previous iteration: of the named enclosing loop, or of the innermost loop
    /// with a previous iteration. Returns `None` if the action did not run in it.
    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        self.outer()?.previous(action, of)
    }
    /// `result('scope')`: returns an array with the records of the actions directly inside a scope.
    fn result(&self, scope: &str) -> Lookup<Value> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.result(scope))
    }
    /// Returns the trigger's record: `{name, status, inputs, outputs: {headers, body}}`, or null.
    fn trigger(&self) -> Value {
        self.outer()
            .map(|outer| outer.trigger())
            .unwrap_or_default()
    }
    /// `workflow()`: returns `{name, id, run: {name, id}, …}`.
    fn workflow(&self) -> Value {
        self.outer()
            .map(|outer| outer.workflow())
            .unwrap_or_default()
    }
    /// `schedule('time')`: returns `{time, previousTime, nextTime}`, each null in a run that no schedule started.
    fn schedule(&self) -> Value {
        self.outer()
            .map(|outer| outer.schedule())
            .unwrap_or_default()
    }
    /// `action()`: returns the record of the action whose inputs or conditions are being evaluated.
    fn current_action(&self) -> Option<ActionView> {
        self.outer()?.current_action()
    }
    /// Returns the value of any other top-level name in a Jinja template: `state`, `loop`, `loops`, `variables`,
    /// `inputs`, a key of the state, a port.
    fn root(&self, name: &str) -> Option<Value> {
        self.outer()?.root(name)
    }
    /// Returns the names of [`Env::root`], for hints.
    fn root_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.root_names())
            .unwrap_or_default()
    }
    /// Returns true if a missing member below this top-level name is None (TEA). Otherwise, and for a member that
    /// begins with `_`, it is an error.
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
    /// `env('NAME')`: returns a variable of the operator's environment, if the engine allows the variable.
    fn env_var(&self, name: &str) -> Option<String> {
        self.outer()?.env_var(name)
    }
    /// `secret('NAME')`: returns a placeholder that only an action resolves; never the secret itself.
    fn secret(&self, name: &str) -> Option<Value> {
        self.outer()?.secret(name)
    }
    /// `callbackUrl('SIGNAL')`: returns a placeholder, which only an action resolves, for an address that is valid for
    /// the duration `valid`.
    fn callback_url(&self, signal: &str, valid: Duration) -> Option<Value> {
        self.outer()?.callback_url(signal, valid)
    }
    /// Returns true inside a loop's condition, where the record of an action that has not run is null.
    fn missing_as_null(&self) -> bool {
        self.outer().is_some_and(|outer| outer.missing_as_null())
    }
    /// Returns the remaining work of the evaluation. Nested environments have the same budget.
    fn budget(&self) -> &Budget;
    /// Returns the time of the event that caused this evaluation.
    fn now(&self) -> DateTime<Utc>;
    /// Returns the next number of a generator seeded by run and step.
    fn random(&self) -> u64;
}
