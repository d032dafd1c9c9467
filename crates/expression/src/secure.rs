//! Evaluates expressions that read secure values.
//! A value that was computed from a secure value is secure, too.

use super::template::{Kind, key_text};
use super::{ActionView, Budget, Condition, Env, EvalError, Lookup, Object, Template, Value};
use chrono::{DateTime, Utc};
use std::cell::Cell;

/// The message if an evaluation that read secure values fails. The original message may contain these values.
const FAILED: &str = "an expression that reads secure values failed";

impl Template {
    /// Evaluates this template in an environment with secure values.
    /// A value that was computed from a secure value is secure, too. In a map or a list, only those members become
    /// secure that were computed from one.
    pub fn eval_secure(&self, env: &dyn Env) -> Result<Value, EvalError> {
        match &*self.0 {
            Kind::Array(items) => {
                let values: Result<Vec<Value>, EvalError> =
                    items.iter().map(|item| item.eval_secure(env)).collect();
                return values.map(Value::array);
            }
            Kind::Object(members) => {
                let mut map = Object::with_capacity(members.len());
                for (key, value) in members {
                    let key = key.eval_secure(env)?;
                    let hidden = matches!(key, Value::Secure(_));
                    let value = value.eval_secure(env)?;
                    map.insert(super::shared_key(&key_text(&key.revealed())), value);
                    if hidden {
                        return Ok(self.eval(&RevealingEnv::new(env))?.secure());
                    }
                }
                return Ok(Value::object(map));
            }
            _ => {}
        }
        let revealing = RevealingEnv::new(env);
        let value = self.eval(&revealing);
        match revealing.read.get() {
            false => value,
            true => value.map(Value::secure).map_err(hidden),
        }
    }
}

impl Condition {
    /// Returns true if the condition holds in an environment with secure values.
    pub fn holds_secure(&self, env: &dyn Env) -> Result<bool, EvalError> {
        let revealing = RevealingEnv::new(env);
        let holds = self.holds(&revealing);
        match revealing.read.get() {
            false => holds,
            true => holds.map_err(hidden),
        }
    }
}

fn hidden(error: EvalError) -> EvalError {
    EvalError {
        message: FAILED.to_owned(),
        missing: None,
        ..error
    }
}

/// An environment that returns the content of secure values, and records that a secure value was read.
struct RevealingEnv<'a> {
    env: &'a dyn Env,
    read: Cell<bool>,
}

impl<'a> RevealingEnv<'a> {
    fn new(env: &'a dyn Env) -> Self {
        Self {
            env,
            read: Cell::new(false),
        }
    }

    fn open(&self, value: Value) -> Value {
        // The result is ignored: if this exceeds the budget, the next charge of the evaluation fails.
        let _ = self.env.budget().charge(value.nodes() / 4);
        if !value.has_secure() {
            return value;
        }
        self.read.set(true);
        value.revealed()
    }

    fn record(&self, record: ActionView) -> ActionView {
        ActionView {
            inputs: self.open(record.inputs),
            outputs: self.open(record.outputs),
            ..record
        }
    }
}

fn found<T>(lookup: Lookup<T>, open: impl FnOnce(T) -> T) -> Lookup<T> {
    match lookup {
        Lookup::Found(value) => Lookup::Found(open(value)),
        other => other,
    }
}

impl Env for RevealingEnv<'_> {
    fn outer(&self) -> Option<&dyn Env> {
        Some(self.env)
    }
    fn variable(&self, name: &str) -> Option<Value> {
        self.env.variable(name).map(|value| self.open(value))
    }
    fn action(&self, name: &str) -> Lookup<ActionView> {
        found(self.env.action(name), |record| self.record(record))
    }
    fn action_outputs(&self, name: &str) -> Lookup<Value> {
        found(self.env.action_outputs(name), |value| self.open(value))
    }
    fn inputs(&self) -> Value {
        self.open(self.env.inputs())
    }
    fn state(&self, name: &str) -> Option<Value> {
        self.env.state(name).map(|value| self.open(value))
    }
    fn last_run(&self) -> Value {
        self.open(self.env.last_run())
    }
    fn parameter(&self, name: &str) -> Option<Value> {
        self.env.parameter(name).map(|value| self.open(value))
    }
    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.env.item(of).map(|value| self.open(value))
    }
    fn previous(&self, action: &str, of: Option<&str>) -> Option<Value> {
        let value = self.env.previous(action, of);
        value.map(|value| self.open(value))
    }
    fn result(&self, scope: &str) -> Lookup<Value> {
        found(self.env.result(scope), |value| self.open(value))
    }
    fn trigger(&self) -> Value {
        self.open(self.env.trigger())
    }
    fn current_action(&self) -> Option<ActionView> {
        let record = self.env.current_action();
        record.map(|record| self.record(record))
    }
    fn root(&self, name: &str) -> Option<Value> {
        self.env.root(name).map(|value| self.open(value))
    }
    fn budget(&self) -> &Budget {
        self.env.budget()
    }
    fn now(&self) -> DateTime<Utc> {
        self.env.now()
    }
    fn random(&self) -> u64 {
        self.env.random()
    }
}
