//! An environment with further top-level names for templates.
//! The value of a name is computed when it is first read, at most once. If this fails, the template that reads the
//! name fails.

use super::Name;
use crate::{Budget, Env, EvalError, Template, Value};
use chrono::{DateTime, Utc};
use std::cell::RefCell;

pub(super) struct ScopedEnv<'a> {
    env: &'a dyn Env,
    names: &'a [(Name, Template)],
    values: RefCell<Vec<Option<Value>>>,
    mistake: RefCell<Option<EvalError>>,
}

impl<'a> ScopedEnv<'a> {
    pub fn new(env: &'a dyn Env, names: &'a [(Name, Template)]) -> Self {
        Self {
            env,
            names,
            values: RefCell::new(vec![None; names.len()]),
            mistake: RefCell::new(None),
        }
    }

    pub fn eval(&self, body: &Template) -> Result<Value, EvalError> {
        let value = body.eval(self);
        // If the value of a name failed, its error is reported, because it is the cause of the reader's error.
        match self.mistake.take() {
            Some(mistake) => Err(mistake),
            None => value,
        }
    }

    fn bound(&self, name: &str) -> Option<Value> {
        let index = self.names.iter().position(|(bound, _)| **bound == *name)?;
        if let Some(Some(known)) = self.values.borrow().get(index) {
            return Some(known.clone());
        }
        let (_, template) = self.names.get(index)?;
        match template.eval(self) {
            Ok(value) => {
                if let Some(place) = self.values.borrow_mut().get_mut(index) {
                    *place = Some(value.clone());
                }
                Some(value)
            }
            Err(error) => {
                self.mistake.borrow_mut().get_or_insert(error);
                None
            }
        }
    }
}

impl Env for ScopedEnv<'_> {
    fn outer(&self) -> Option<&dyn Env> {
        Some(self.env)
    }
    fn root(&self, name: &str) -> Option<Value> {
        if self.names.iter().any(|(bound, _)| **bound == *name) {
            return self.bound(name);
        }
        self.env.root(name)
    }
    fn root_names(&self) -> Vec<String> {
        let own = self.names.iter().map(|(name, _)| name.to_string());
        own.chain(self.env.root_names()).collect()
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
