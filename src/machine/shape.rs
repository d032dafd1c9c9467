//! What a step makes of its own output, and what a loop keeps of its iterations for that. It
//! never ends or starts anything.

use super::advance::Stepper;
use super::change::Change;
use super::env::View;
use super::evaluate::{Faulty, computed};
use super::record::{Output, Reading};
use super::state::{CursorId, LoopState};
use crate::expression::{Object, Template, Value};
use crate::model::{Status, Take};
use crate::program::{ActionId, LoopSpec};
use std::sync::Arc;

impl<'a> Stepper<'a> {
    /// What an action that succeeded gives: its own output, or what its step makes of it.
    pub fn shaped(&self, cursor: CursorId, action: ActionId, output: Output) -> Faulty<Output> {
        let Some(template) = self.shape_of(action) else {
            return Ok(output);
        };
        let own = self.read(cursor, &output);
        self.shape(cursor, template, &own).map(Output::Value)
    }

    /// The same for a loop, whose own output has what was kept of its iterations.
    pub fn shaped_loop(
        &self,
        cursor: CursorId,
        action: ActionId,
        output: Output,
        kept: &Value,
    ) -> Faulty<Output> {
        let Some(template) = self.shape_of(action) else {
            return Ok(output);
        };
        let mut own = match self.read(cursor, &output) {
            Value::Object(map) => Arc::unwrap_or_clone(map),
            _ => Object::new(),
        };
        own.insert("kept".into(), kept.clone());
        let own = Value::object(own);
        self.shape(cursor, template, &own).map(Output::Value)
    }

    /// The template for an action's output, when it has one.
    pub fn shape_of(&self, action: ActionId) -> Option<&'a Template> {
        let program = self.program;
        program.action(action)?.output.as_ref()
    }

    /// Evaluates such a template for an output.
    pub fn shape(&self, cursor: CursorId, template: &Template, own: &Value) -> Faulty<Value> {
        let view = View {
            bound: Some(("result", own)),
            ..self.view(cursor)
        };
        computed(view.value(template))
    }

    /// An output's value, read where the cursor's records lie.
    pub fn read(&self, cursor: CursorId, output: &Output) -> Value {
        let home = self.run.cursors.get(&self.run.home(cursor));
        let reading = |records| Reading {
            program: self.program,
            variables: self.run.variables_of(cursor),
            records,
            row: false,
        };
        home.map(|home| reading(&home.records).output(output))
            .unwrap_or_default()
    }

    /// At the end of an iteration that succeeded.
    pub fn keep(&mut self, cursor: CursorId, depth: u32, spec: &LoopSpec) -> Faulty<()> {
        for one in &spec.keep {
            let ran = self
                .run
                .cursors
                .get(&self.run.home(cursor))
                .and_then(|home| home.records.get(&one.of))
                .is_some_and(|record| record.status == Status::Succeeded);
            let wanted = match one.take {
                Take::First => ran && !self.has_kept(cursor, depth, &one.name),
                Take::Last => ran,
                Take::All => true,
            };
            if !wanted {
                continue;
            }
            let value = if ran {
                self.eval(cursor, &one.value)?
            } else {
                Value::Null
            };
            self.emit(Change::IterationKept {
                cursor,
                depth,
                name: one.name.clone(),
                value,
                append: one.take == Take::All,
            });
        }
        Ok(())
    }

    fn has_kept(&self, cursor: CursorId, depth: u32, name: &str) -> bool {
        self.kept(cursor, depth)
            .is_some_and(|kept| kept.get(name).is_some())
    }

    fn kept(&self, cursor: CursorId, depth: u32) -> Option<&Value> {
        let frames = &self.run.cursors.get(&cursor)?.frames;
        match &frames.get(depth as usize)?.kind {
            super::state::FrameKind::Loop(LoopState { kept, .. }) => Some(kept),
            _ => None,
        }
    }
}
