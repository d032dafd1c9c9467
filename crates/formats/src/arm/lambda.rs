//! Functions of deployment expressions with a lambda, such as `map(array, lambda('x', lambdaVariables('x')))`.

use super::compute::{Deployment, NoValue, Outcome};
use super::expression::Expr;
use super::functions::{as_text, function_name, resolve_stand_in};
use std::sync::Arc;
use windlass_expression::{Object, Value};

impl Deployment<'_, '_> {
    /// Calls a function with a lambda. Returns `None` for any other function.
    pub(super) fn call_with_lambda(
        &mut self,
        name: &str,
        lower: &str,
        arguments: &[Expr],
    ) -> Outcome<Option<Value>> {
        Ok(Some(match (lower, arguments) {
            ("lambdavariables", [variable]) => {
                let variable = as_text(&self.eval(variable)?);
                let frame = self.frames.last();
                let mut known = frame
                    .into_iter()
                    .flat_map(|frame| frame.lambdas.iter().rev());
                let found = known.find(|(own, _)| own.eq_ignore_ascii_case(&variable));
                let value = found.map(|(_, value)| value.clone());
                value.ok_or_else(|| format!("no lambda around it has the variable `{variable}`"))?
            }
            ("map", [items, lambda]) => {
                let items = self.items_of(name, items)?.into_iter();
                let mapped: Outcome<Vec<Value>> = items
                    .zip(0..)
                    .map(|(item, index)| self.apply(name, lambda, &[item, Value::Int(index)]))
                    .collect();
                Value::array(mapped?)
            }
            ("filter", [items, lambda]) => {
                let mut chosen = Vec::new();
                for (item, index) in self.items_of(name, items)?.into_iter().zip(0..) {
                    if self.holds(name, lambda, &[item.clone(), Value::Int(index)])? {
                        chosen.push(item);
                    }
                }
                Value::array(chosen)
            }
            ("reduce", [items, first, lambda]) => {
                let items = self.items_of(name, items)?;
                let mut result = self.eval(first)?;
                for (item, index) in items.into_iter().zip(0..) {
                    result = self.apply(name, lambda, &[result, item, Value::Int(index)])?;
                }
                result
            }
            ("sort", [items, lambda]) => {
                let items = self.items_of(name, items)?;
                Value::array(self.sorted(name, lambda, items)?)
            }
            ("toobject", [items, key, value @ ..]) => {
                let mut made = Object::new();
                for item in self.items_of(name, items)? {
                    let key = as_text(&self.apply(name, key, std::slice::from_ref(&item))?);
                    let value = match value.first() {
                        Some(value) => self.apply(name, value, &[item])?,
                        None => item,
                    };
                    made.insert(Arc::from(key), value);
                }
                Value::object(made)
            }
            _ => return Ok(None),
        }))
    }

    /// Evaluates the array of a function. An array that only a deployment knows is empty here.
    fn items_of(&mut self, name: &str, items: &Expr) -> Outcome<Vec<Value>> {
        let before = self.seen;
        match resolve_stand_in(self.eval(items)?) {
            Value::Array(items) => Ok(Arc::unwrap_or_clone(items)),
            _ if self.seen.since(before).is_uncertain() => Ok(Vec::new()),
            other => Err(NoValue::Reason(format!(
                "`{name}` needs an array, and has {}",
                other.kind()
            ))),
        }
    }

    /// Evaluates the body of a lambda. It has a variable for each of the first values.
    fn apply(&mut self, name: &str, lambda: &Expr, values: &[Value]) -> Outcome<Value> {
        let parts = match lambda {
            Expr::Call(called, parts) if function_name(called) == "lambda" => parts.as_slice(),
            _ => &[],
        };
        let (body, variables) = match parts.split_last() {
            Some((body, variables)) if variables.len() <= values.len() => (body, variables),
            _ => {
                let most = values.len();
                let why = format!("`{name}` needs a lambda with {most} variables at most");
                return Err(NoValue::Reason(why));
            }
        };
        let mut bound = Vec::with_capacity(variables.len());
        for (variable, value) in variables.iter().zip(values) {
            bound.push((as_text(&self.eval(variable)?), value.clone()));
        }
        let enclosing = self.frames.last().map_or(0, |frame| frame.lambdas.len());
        if let Some(frame) = self.frames.last_mut() {
            frame.lambdas.append(&mut bound);
        }
        let value = self.eval(body);
        if let Some(frame) = self.frames.last_mut() {
            frame.lambdas.truncate(enclosing);
        }
        self.count_value(resolve_stand_in(value?))
    }

    /// Evaluates a lambda that returns true or false. A value that only a deployment knows counts as false here.
    fn holds(&mut self, name: &str, lambda: &Expr, values: &[Value]) -> Outcome<bool> {
        let before = self.seen;
        match self.apply(name, lambda, values)? {
            Value::Bool(holds) => Ok(holds),
            _ if self.seen.since(before).is_uncertain() => Ok(false),
            other => Err(NoValue::Reason(format!(
                "the lambda of `{name}` must return true or false, not {}",
                other.kind()
            ))),
        }
    }

    /// Sorts items with a lambda that returns true if its first item precedes its second. The sort is stable.
    fn sorted(&mut self, name: &str, lambda: &Expr, items: Vec<Value>) -> Outcome<Vec<Value>> {
        let mut sorted: Vec<Value> = Vec::with_capacity(items.len());
        for item in items {
            let mut failed = None;
            let at = sorted.partition_point(|other| {
                match self.holds(name, lambda, &[item.clone(), other.clone()]) {
                    Ok(precedes) => !precedes,
                    Err(why) => {
                        failed = Some(why);
                        true
                    }
                }
            });
            if let Some(why) = failed {
                return Err(why);
            }
            sorted.insert(at, item);
        }
        Ok(sorted)
    }
}
