//! Assignments: every change of a variable. For an append, the journal and the memory grow only by the appended part.

use super::bug::StepResult;
use super::change::VariableChange;
use super::env::View;
use super::evaluate::number;
use super::record::Output;
use super::state::CursorId;
use super::transition::VariableHandler;
use crate::program::Assignment;
use rust_decimal::Decimal;
use std::sync::Arc;
use windlass_expression::{Value, text_inside};
use windlass_model::model::{AssignOp, Fault, InputKind, Name, fault_kind};

impl VariableHandler<'_, '_> {
    /// Executes assignments. Returns the result of the last one as the output for a record.
    pub fn assign(
        &mut self,
        cursor: CursorId,
        assignments: &[Assignment],
        bound: Option<(&str, &Value)>,
    ) -> StepResult<Option<Output>> {
        let mut last = None;
        for one in assignments {
            let read = self.read();
            let view = View {
                bound,
                ..read.view(cursor)
            };
            let value = view.computed(&one.value)?;
            // The value is the input and output of an action that only assigns, so it is secure if that input or output
            // is. For a call that also assigns (`bound`), the value is neither.
            let value = match bound {
                None => read.seal_if_secure(read.state_of(cursor)?, value),
                Some(_) => value,
            };
            last = Some(self.assign_one(cursor, one, value)?);
        }
        Ok(last)
    }

    fn assign_one(
        &mut self,
        cursor: CursorId,
        one: &Assignment,
        value: Value,
    ) -> StepResult<Output> {
        let name = self.variable_key(cursor, &one.variable);
        let negative = one.op == AssignOp::Decrement;
        match one.op {
            AssignOp::Set => {
                let value = self.fitted(cursor, &name, value)?;
                self.change(cursor, VariableChange::Set(name.clone(), value))?;
            }
            AssignOp::Increment | AssignOp::Decrement => {
                let sum = self.sum(cursor, &name, &value, negative)?;
                let sum = self.fitted(cursor, &name, sum)?;
                self.change(cursor, VariableChange::Set(name.clone(), sum))?;
            }
            AssignOp::AppendToArray => return self.append_element(cursor, name, value),
            AssignOp::AppendToString => return self.append_text(cursor, name, &value),
            AssignOp::MergeAll => {
                self.merge_all(cursor, &value)?;
                return Ok(Output::Value(Value::Null));
            }
            AssignOp::ReplaceAll => {
                self.replace_all(cursor, &value)?;
                return Ok(Output::Value(Value::Null));
            }
            AssignOp::RemoveAll => {
                self.remove_all(cursor, &value)?;
                return Ok(Output::Value(Value::Null));
            }
        }
        Ok(Output::Variable(name))
    }

    /// Returns the value of a variable. Returns `None` if it is null, or if it is missing and the format creates
    /// missing variables.
    fn non_null_value(&self, cursor: CursorId, name: &Name) -> Result<Option<&Value>, Fault> {
        let value = self.read().run.variable_of(cursor, name);
        if value.is_none() && !self.read().program.rules.creates_variables {
            let message = format!("variable `{name}` is not initialized");
            return Err(Fault::new(fault_kind::EXPRESSION, message));
        }
        Ok(value.filter(|value| !value.is_null()))
    }

    fn sum(
        &self,
        cursor: CursorId,
        name: &Name,
        by: &Value,
        negative: bool,
    ) -> Result<Value, Fault> {
        let zero = Value::Int(0);
        let current = self.non_null_value(cursor, name)?.unwrap_or(&zero);
        let secure = current.has_secure() || by.has_secure();
        let (current, by) = (&current.revealed(), &by.revealed());
        if number(current).is_none() {
            return Err(wrong_type(name, "a number", current));
        }
        if number(by).is_none() {
            let by = if secure {
                by.clone().secure()
            } else {
                by.clone()
            };
            let message = format!("`{name}` changes by a number, not by {}", by.to_json());
            return Err(Fault::new(fault_kind::EXPRESSION, message));
        }
        let sum = add(current, by, negative).ok_or_else(|| {
            let message = format!("variable `{name}` would leave the range of numbers");
            Fault::new(fault_kind::EXPRESSION, message)
        })?;
        Ok(if secure { sum.secure() } else { sum })
    }

    /// Checks a value against the declared type of a variable, as in Logic Apps, and returns the value to store.
    /// Null becomes the empty value of the type. Except for a string and an array, only the first value may be null.
    fn fitted(&self, cursor: CursorId, name: &Name, value: Value) -> Result<Value, Fault> {
        let mut declared = self.read().program.types.iter();
        let Some((_, kind)) = declared.find(|(typed, _)| typed.eq_ignore_ascii_case(name)) else {
            return Ok(value);
        };
        let revealed = value.revealed();
        if kind.accepts(&revealed) {
            return Ok(value);
        }
        let is_first = self.read().run.variable_of(cursor, name).is_none();
        let has_empty = matches!(kind, InputKind::String | InputKind::Array);
        if revealed.is_null() && (is_first || has_empty) {
            return Ok(kind.empty_value());
        }
        let message = format!(
            "variable `{name}` was declared to hold {}: it cannot take a value of the type {}",
            kind.described(),
            value.kind()
        );
        Err(Fault::new(fault_kind::EXPRESSION, message))
    }

    fn append_element(
        &mut self,
        cursor: CursorId,
        variable: Name,
        more: Value,
    ) -> StepResult<Output> {
        let name = variable.clone();
        let change = match self.non_null_value(cursor, &variable)? {
            Some(Value::Array(_)) => VariableChange::ElementAppended(name, more),
            Some(secure @ Value::Secure(_)) => match secure.clone().into_shared() {
                Value::Array(mut items) => {
                    Arc::make_mut(&mut items).push(more.clone());
                    self.change(cursor, VariableChange::Set(name, Value::Array(items)))?;
                    return Ok(Output::Value(more));
                }
                other => return Err(wrong_type(&variable, "an array", &other).into()),
            },
            None => {
                let first = self.fitted(cursor, &name, Value::array(vec![more]))?;
                VariableChange::Set(name, first)
            }
            Some(other) => return Err(wrong_type(&variable, "an array", other).into()),
        };
        self.change(cursor, change)?;
        Ok(Output::LastOf(variable))
    }

    fn append_text(
        &mut self,
        cursor: CursorId,
        variable: Name,
        value: &Value,
    ) -> StepResult<Output> {
        let known = self.non_null_value(cursor, &variable)?;
        if value.has_secure() || known.is_some_and(Value::has_secure) {
            let known = known
                .map(Value::revealed)
                .unwrap_or_else(|| Value::text(""));
            let Value::String(before) = &known else {
                return Err(wrong_type(&variable, "a string", &known).into());
            };
            let more = text_inside(&value.revealed());
            let whole = Value::text(format!("{before}{more}")).secure();
            self.change(cursor, VariableChange::Set(variable, whole))?;
            return Ok(Output::Value(Value::text(more).secure()));
        }
        let (name, more) = (variable.clone(), text_inside(value));
        let change = match known {
            Some(Value::String(_)) => VariableChange::TextAppended(name, more.clone()),
            None => {
                let first = self.fitted(cursor, &name, Value::text(more.clone()))?;
                VariableChange::Set(name, first)
            }
            Some(other) => return Err(wrong_type(&variable, "a string", other).into()),
        };
        self.change(cursor, change)?;
        let more = Value::text(more);
        Ok(Output::Appended { variable, more })
    }
}

fn wrong_type(name: &Name, wanted: &str, value: &Value) -> Fault {
    let message = format!("variable `{name}` is not {wanted} but {}", value.kind());
    Fault::new(fault_kind::EXPRESSION, message)
}

/// Returns the sum, or the difference if `negative` is true. Returns `None` if no number of this kind is large enough
/// for it.
fn add(current: &Value, by: &Value, negative: bool) -> Option<Value> {
    let exact = |value: &Value| match value {
        Value::Int(int) => Some(Decimal::from(*int)),
        Value::Decimal(decimal) => Some(**decimal),
        _ => None,
    };
    if let (Value::Int(a), Value::Int(b)) = (current, by) {
        let sum = if negative {
            a.checked_sub(*b)
        } else {
            a.checked_add(*b)
        };
        return sum.map(Value::Int);
    }
    if let (Some(a), Some(b)) = (exact(current), exact(by)) {
        let sum = if negative {
            a.checked_sub(b)
        } else {
            a.checked_add(b)
        };
        return sum.map(Value::from);
    }
    let (a, b) = (number(current)?, number(by)?);
    let sum = if negative { a - b } else { a + b };
    sum.is_finite().then_some(Value::Float(sum))
}
