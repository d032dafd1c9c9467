//! Functions of deployment expressions with a lambda, such as `map(array, lambda('x', lambdaVariables('x')))`.

use super::compute::{Deployment, NoValue, Outcome};
use super::expression::Expr;
use super::functions::{as_text, function_name, resolve_stand_in};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_expression::{Object, Value};

/// Returns the arguments of a function, whose number was checked before.
pub(super) fn exactly<const COUNT: usize>(arguments: &[Expr]) -> Outcome<&[Expr; COUNT]> {
    arguments.try_into().map_err(|_| wrong_count())
}

fn wrong_count() -> NoValue {
    NoValue::Reason(String::from("a function has a wrong number of arguments"))
}

impl Deployment<'_, '_> {
    pub(super) fn lambda_variable(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let [variable] = exactly(arguments)?;
        let variable = as_text(&self.eval(variable)?);
        let frame = self.frames.last().into_iter();
        let mut known = frame.flat_map(|frame| frame.lambdas.iter().rev());
        let found = known.find(|(own, _)| own.eq_ignore_ascii_case(&variable));
        let value = found.map(|(_, value)| value.clone());
        Ok(value.ok_or_else(|| format!("no lambda around it has the variable `{variable}`"))?)
    }

    pub(super) fn map(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [items, lambda] = exactly(arguments)?;
        let items = self.items_of(name, items)?.into_iter().zip(0..);
        let mapped: Outcome<Vec<Value>> = items
            .map(|(item, index)| self.apply(name, lambda, &[item, Value::Int(index)]))
            .collect();
        Ok(Value::array(mapped?))
    }

    pub(super) fn map_values(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [object, lambda] = exactly(arguments)?;
        let mut mapped = Object::new();
        for (key, value) in self.members_of(name, object)? {
            mapped.insert(key, self.apply(name, lambda, &[value])?);
        }
        Ok(Value::object(mapped))
    }

    pub(super) fn filter(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [items, lambda] = exactly(arguments)?;
        let mut chosen = Vec::new();
        for (item, index) in self.items_of(name, items)?.into_iter().zip(0..) {
            if self.holds(name, lambda, &[item.clone(), Value::Int(index)])? {
                chosen.push(item);
            }
        }
        Ok(Value::array(chosen))
    }

    /// Returns an object that has an array of items for each key that the lambda returns.
    pub(super) fn group_by(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [items, lambda] = exactly(arguments)?;
        let mut groups: Vec<(String, Vec<Value>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (item, index) in self.items_of(name, items)?.into_iter().zip(0..) {
            let key = as_text(&self.apply(name, lambda, &[item.clone(), Value::Int(index)])?);
            let place = *places.entry(key.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, group)) => group.push(item),
                None => groups.push((key, vec![item])),
            }
        }
        let groups = groups.into_iter();
        let groups = groups.map(|(key, group)| (Arc::from(key), Value::array(group)));
        Ok(Value::object(groups.collect()))
    }

    pub(super) fn reduce(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [items, first, lambda] = exactly(arguments)?;
        let items = self.items_of(name, items)?;
        let mut result = self.eval(first)?;
        for (item, index) in items.into_iter().zip(0..) {
            result = self.apply(name, lambda, &[result, item, Value::Int(index)])?;
        }
        Ok(result)
    }

    pub(super) fn sort(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let [items, lambda] = exactly(arguments)?;
        let items = self.items_of(name, items)?;
        Ok(Value::array(self.sorted(name, lambda, items)?))
    }

    pub(super) fn make_object(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let (items, key, value) = match arguments {
            [items, key] => (items, key, None),
            [items, key, value] => (items, key, Some(value)),
            _ => return Err(wrong_count()),
        };
        let mut made = Object::new();
        for item in self.items_of(name, items)? {
            let key = as_text(&self.apply(name, key, std::slice::from_ref(&item))?);
            let value = match value {
                Some(value) => self.apply(name, value, &[item])?,
                None => item,
            };
            made.insert(Arc::from(key), value);
        }
        Ok(Value::object(made))
    }

    /// Evaluates the object of a function. An object that only a deployment knows is empty here.
    fn members_of(&mut self, name: &str, object: &Expr) -> Outcome<Object> {
        let before = self.seen;
        match resolve_stand_in(self.eval(object)?) {
            Value::Object(members) => Ok(Arc::unwrap_or_clone(members)),
            _ if self.seen.since(before).is_uncertain() => Ok(Object::new()),
            other => Err(NoValue::Reason(format!(
                "`{name}` needs an object, and has {}",
                other.kind()
            ))),
        }
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
