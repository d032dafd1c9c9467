//! Assigns many variables at once. If a value does not change, nothing is stored. If an array only has new elements at
//! its end, only these are stored (docs/architecture.md, law 6). This file evaluates no expression.

use super::bug::MachineResult;
use super::change::VariableChange;
use super::state::CursorId;
use super::transition::VariableHandler;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::{Name, RUN_VARIABLES};

impl VariableHandler<'_, '_> {
    /// Sets a variable for each member of a map, except [`RUN_VARIABLES`]. If the value is not a map, does nothing.
    pub fn merge_all(&mut self, cursor: CursorId, value: &Value) -> MachineResult {
        let mut members = members(value).filter(|(name, _)| !is_of_run(name));
        members.try_for_each(|(name, value)| self.set(cursor, name, value))
    }

    /// Replaces all variables by the members of a map. If the value is not a map, does nothing.
    pub fn replace_all(&mut self, cursor: CursorId, value: &Value) -> MachineResult {
        let Value::Object(map) = value else {
            return Ok(());
        };
        let known = members(self.read().run.variables_of(cursor)).map(|(name, _)| name);
        let gone = known.filter(|name| !map.contains_key(*name) && !is_of_run(name));
        let gone: Vec<Name> = gone.cloned().collect();
        for name in gone {
            self.change(cursor, VariableChange::Removed(name))?;
        }
        self.merge_all(cursor, value)
    }

    /// Removes the variables that a list names. Ignores elements that are not names, and a value that is not a list.
    pub fn remove_all(&mut self, cursor: CursorId, value: &Value) -> MachineResult {
        let names = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let names = names.iter().filter_map(Value::as_str);
        for name in names.filter(|name| !is_of_run(name)) {
            let name = self.variable_key(cursor, &Name::from(name));
            if self.read().run.variables_of(cursor).get(&name).is_some() {
                self.change(cursor, VariableChange::Removed(name))?;
            }
        }
        Ok(())
    }

    fn set(&mut self, cursor: CursorId, name: &Name, value: &Value) -> MachineResult {
        let name = self.variable_key(cursor, name);
        let grown = match (self.read().run.variables_of(cursor).get(&name), value) {
            (Some(old), new) if identical(old, new) => return Ok(()),
            (Some(Value::Array(old)), Value::Array(new)) => more(old, new),
            _ => None,
        };
        match grown {
            Some(elements) => elements.into_iter().try_for_each(|element| {
                let change = VariableChange::ElementAppended(name.clone(), element);
                self.change(cursor, change)
            }),
            None => self.change(cursor, VariableChange::Set(name, value.clone())),
        }
    }

    /// Returns the name under which a variable is stored, which may differ in case.
    pub fn variable_key(&self, cursor: CursorId, name: &Name) -> Name {
        let read = self.read();
        let Value::Object(map) = read.run.variables_of(cursor) else {
            return name.clone();
        };
        if map.contains_key(name) || read.program.rules.case_sensitive {
            return name.clone();
        }
        let same = map.keys().find(|key| key.eq_ignore_ascii_case(name));
        same.unwrap_or(name).clone()
    }
}

fn is_of_run(name: &str) -> bool {
    RUN_VARIABLES.contains(&name)
}

fn members(value: &Value) -> impl Iterator<Item = (&Name, &Value)> {
    value.as_object().into_iter().flat_map(Object::iter)
}

/// Returns the elements that `new` has after those of `old`. Returns `None` if `new` does not begin with all elements
/// of `old`, or if `old` is empty.
fn more(old: &[Value], new: &[Value]) -> Option<Vec<Value>> {
    let (begins, rest) = new.split_at_checked(old.len())?;
    let grew = !old.is_empty() && old.iter().zip(begins).all(|(a, b)| identical(a, b));
    grew.then(|| rest.to_vec())
}

/// Compares values including the kinds of numbers: 1 is not 1.0 here.
fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            let same = || a.iter().zip(b.iter()).all(|(a, b)| identical(a, b));
            Arc::ptr_eq(a, b) || a.len() == b.len() && same()
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a)| b.get(key).is_some_and(|b| identical(a, b));
            Arc::ptr_eq(a, b) || a.len() == b.len() && a.iter().all(same)
        }
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, identical, more};

    fn value(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn a_number_of_another_kind_is_another_value() {
        assert!(!identical(&value("1"), &value("1.0")));
        assert!(!identical(
            &value("[1, {\"a\": 1}]"),
            &value("[1, {\"a\": 1.0}]")
        ));
        assert!(identical(
            &value("[1, {\"a\": [2.5]}]"),
            &value("[1, {\"a\": [2.5]}]")
        ));
        assert!(!identical(&value("{\"a\": 1}"), &value("{\"b\": 1}")));
        assert!(!identical(&Value::Float(0.0), &Value::Float(-0.0)));
    }

    #[test]
    fn only_a_list_that_begins_the_same_has_grown() {
        let more = |old: &str, new: &str| {
            let (old, new) = (value(old), value(new));
            more(old.as_array().unwrap(), new.as_array().unwrap())
        };
        assert_eq!(more("[1, 2]", "[1, 2, 3]"), Some(vec![Value::Int(3)]));
        assert_eq!(more("[1, 2]", "[1, 9, 3]"), None);
        assert_eq!(more("[1, 2]", "[1]"), None);
        assert_eq!(more("[]", "[1]"), None);
    }
}
