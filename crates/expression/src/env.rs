//! What an expression may read: one trait, implemented by a run and by `windlass eval`.
//!
//! Cloning a [`Value`] costs a counter, so lookups return values, not references.

use super::{Budget, Value};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Which rules apply where Loom and Azure differ (docs/reference/loom.md, docs/reference/expressions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A nested `@` is accepted, `body('x')` of an action without a body is its whole output.
    #[default]
    Loom,
    /// A Logic Apps definition.
    Azure,
}

/// The members of [`Env::schedule`]: the scheduled time of the run, and those before and after it.
pub const SCHEDULE_MEMBERS: [&str; 3] = ["time", "previousTime", "nextTime"];

/// What is known of an action by the time an expression asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    Found(T),
    /// It exists in the workflow and has not run here yet.
    NotRun,
    /// No such name; the names that exist, for the hint.
    Unknown(Vec<String>),
}

/// One action's record as `actions('x')` shows it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ActionView {
    pub name: String,
    /// Succeeded, Failed, Skipped, TimedOut, Cancelled, Running.
    pub status: String,
    /// A status code such as `OK` or `NotFound`, when there is one.
    pub code: Value,
    /// What it was given, rendered.
    pub inputs: Value,
    pub outputs: Value,
    /// Its error: `{kind, code, message}`, or null.
    pub error: Value,
    /// When it started and ended, as RFC 3339 text, or null.
    pub start_time: Value,
    pub end_time: Value,
    /// What the action's work bears where it arrives, as `trackingId`: its idempotency key; null
    /// where there is no run.
    pub tracking_id: Value,
    /// The run, as `clientTrackingId`.
    pub client_tracking_id: Value,
}

impl ActionView {
    /// The whole record as an object, with the key names of Logic Apps.
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

/// The environment of an evaluation. Every method is pure within one evaluation, but for
/// [`Env::random`], which advances a seeded generator so that a run can be replayed.
pub trait Env {
    /// The environment that answers what this one does not.
    fn outer(&self) -> Option<&dyn Env> {
        None
    }
    fn mode(&self) -> Mode {
        self.outer().map_or(Mode::Loom, |outer| outer.mode())
    }
    /// A workflow variable, a loop variable such as `loopIndex` or `outer_loopIndex`; without case.
    fn variable(&self, name: &str) -> Option<Value> {
        self.outer()?.variable(name)
    }
    /// The names [`Env::variable`] knows, for hints.
    fn variable_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.variable_names())
            .unwrap_or_default()
    }
    /// An action's record, by name without case.
    fn action(&self, name: &str) -> Lookup<ActionView> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.action(name))
    }
    /// Only the outputs of an action: what `body('x')` and `outputs('x')` need. Override it where
    /// making the whole record costs more.
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
    /// Whether the outputs of an action are the list of those of the iterations of a foreach.
    fn is_iterated(&self, name: &str) -> bool {
        self.outer().is_some_and(|outer| outer.is_iterated(name))
    }
    /// A value between the runs of the workflow; a variable if the workflow declares no such values.
    fn state(&self, name: &str) -> Option<Value> {
        self.outer()?.state(name)
    }
    /// The names [`Env::state`] knows, for hints.
    fn state_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.state_names())
            .unwrap_or_default()
    }
    /// The last run of the workflow that succeeded, or null.
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
    /// The current item of the named foreach, or of the innermost one.
    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.outer()?.item(of)
    }
    /// The iteration number, from 0, of the named loop around this place.
    fn iteration_index(&self, of: &str) -> Option<i64> {
        self.outer()?.iteration_index(of)
    }
    /// What an action gave in the iteration before the current one: of the named loop around this
    /// place, or of the innermost loop that has such an iteration. None when it did not run there.
    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        self.outer()?.previous(action, of)
    }
    /// `result('scope')`: the records of the actions directly inside a scope, an array.
    fn result(&self, scope: &str) -> Lookup<Value> {
        let unknown = || Lookup::Unknown(Vec::new());
        self.outer()
            .map_or_else(unknown, |outer| outer.result(scope))
    }
    /// The trigger's record: `{name, status, inputs, outputs: {headers, body}}`, or null.
    fn trigger(&self) -> Value {
        self.outer()
            .map(|outer| outer.trigger())
            .unwrap_or_default()
    }
    /// `workflow()`: `{name, id, run: {name, id}, …}`.
    fn workflow(&self) -> Value {
        self.outer()
            .map(|outer| outer.workflow())
            .unwrap_or_default()
    }
    /// `schedule('time')`: `{time, previousTime, nextTime}`, each null in a run that no schedule started.
    fn schedule(&self) -> Value {
        self.outer()
            .map(|outer| outer.schedule())
            .unwrap_or_default()
    }
    /// `action()`: the record of the action whose inputs or conditions are being evaluated.
    fn current_action(&self) -> Option<ActionView> {
        self.outer()?.current_action()
    }
    /// A name at the top of a Jinja template that is none of the above: `state`, `loop`,
    /// `loops`, `variables`, `inputs`, a state key, a port.
    fn root(&self, name: &str) -> Option<Value> {
        self.outer()?.root(name)
    }
    /// The names [`Env::root`] knows, for hints.
    fn root_names(&self) -> Vec<String> {
        self.outer()
            .map(|outer| outer.root_names())
            .unwrap_or_default()
    }
    /// Whether a member that a name at the top, or anything below it, does not have is None: TEA.
    /// A member that begins with `_` is never forgiven.
    fn absent_is_none(&self, root: &str) -> bool {
        let of_state = root == "state";
        self.outer()
            .map_or(of_state, |outer| outer.absent_is_none(root))
    }
    /// Which attempt of the innermost retry around this place runs, from 1.
    fn attempt(&self) -> u32 {
        self.outer().map_or(1, |outer| outer.attempt())
    }
    /// How many attempts an action took; 0 when it did not run.
    fn attempts_of(&self, action: &str) -> u32 {
        self.outer().map_or(0, |outer| outer.attempts_of(action))
    }
    /// `env('NAME')`, from the operator's environment, if the engine allows the variable.
    fn env_var(&self, name: &str) -> Option<String> {
        self.outer()?.env_var(name)
    }
    /// `secret('NAME')`: a placeholder that only an action resolves; never the secret itself.
    fn secret(&self, name: &str) -> Option<Value> {
        self.outer()?.secret(name)
    }
    /// `callbackUrl('SIGNAL')`: a placeholder for an address that is valid for so long; only an action resolves it.
    fn callback_url(&self, signal: &str, valid: Duration) -> Option<Value> {
        self.outer()?.callback_url(signal, valid)
    }
    /// True inside a loop's condition, where an action that has not run reads as null.
    fn missing_as_null(&self) -> bool {
        self.outer().is_some_and(|outer| outer.missing_as_null())
    }
    /// What the evaluation may still do. What lies around another environment has that one's.
    fn budget(&self) -> &Budget;
    /// The evaluator's clock: the time of the event that caused this evaluation.
    fn now(&self) -> DateTime<Utc>;
    /// The next number of a generator seeded by run and step.
    fn random(&self) -> u64;
}
