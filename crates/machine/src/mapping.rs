//! Output mapping: computes the output of a step from the step's own output. The own output of a loop includes the
//! values that the loop has collected. Nothing here ends or starts anything.

use super::apply::last_of;
use super::env::View;
use super::reader::Reader;
use super::record::{Output, RecordReader, Records};
use super::state::CursorId;
use crate::program::ActionId;
use std::sync::Arc;
use windlass_expression::{Object, Template, Value};
use windlass_model::model::{Fault, Name};

impl<'r, 'a> Reader<'r, 'a> {
    /// Returns the output of an action that succeeded. This is its own output, or the mapped output if the step maps
    /// outputs.
    pub fn map_step_output(
        self,
        cursor: CursorId,
        action: ActionId,
        output: Output,
    ) -> Result<Output, Fault> {
        let Some(template) = self.mapping_of(action) else {
            return Ok(output);
        };
        let own = self.output_value(cursor, &output);
        self.map_output(cursor, template, &own).map(Output::Value)
    }

    /// Does the same as `map_step_output`, for a loop, whose own output includes the collected values.
    pub fn map_loop_output(
        self,
        cursor: CursorId,
        action: ActionId,
        output: Output,
        collected: &Value,
    ) -> Result<Output, Fault> {
        let Some(template) = self.mapping_of(action) else {
            return Ok(output);
        };
        let mut own = match self.output_value(cursor, &output) {
            Value::Object(map) => Arc::unwrap_or_clone(map),
            _ => Object::new(),
        };
        own.insert("kept".into(), collected.clone());
        let own = Value::object(own);
        self.map_output(cursor, template, &own).map(Output::Value)
    }

    /// Returns the template that maps an action's output, if it has one.
    pub fn mapping_of(self, action: ActionId) -> Option<&'a Template> {
        let program = self.program;
        program.action(action)?.output.as_ref()
    }

    /// Evaluates a template that maps an output. In it, `result` is the action's own output.
    pub fn map_output(
        self,
        cursor: CursorId,
        template: &Template,
        own: &Value,
    ) -> Result<Value, Fault> {
        let view = View {
            bound: Some(("result", own)),
            ..self.view(cursor)
        };
        view.computed(template)
    }

    /// Returns the value of an output. References are read from the variables and records that the cursor uses.
    pub fn output_value(self, cursor: CursorId, output: &Output) -> Value {
        let variable = |name: &Name| self.run.variable_of(cursor, name);
        match output {
            Output::Variable(name) => variable(name).cloned().unwrap_or_default(),
            Output::LastOf(name) => last_of(variable(name)),
            output => {
                let owner = self.run.cursors.get(&self.run.record_owner(cursor));
                let value = owner.map(|owner| self.reading(&owner.records).output(output));
                value.unwrap_or_default()
            }
        }
    }

    /// Returns a reader for records that a cursor can see.
    pub fn reading<'s>(self, records: &'s Records) -> RecordReader<'s>
    where
        'a: 's,
    {
        RecordReader {
            program: self.program,
            records,
        }
    }
}
