//! How a run ends, and its output.

use super::bug::{MachineResult, StepResult, split_fault};
use super::change::VariableChange;
use super::env::View;
use super::evaluate::text;
use super::failure::{failure_of, failure_value};
use super::record::Output;
use super::state::{CursorId, Outcome, RunError};
use super::transition::{EndHandler, Next};
use crate::program::{Outputs, ScopeId, State};
use windlass_expression::{Template, Value};
use windlass_model::model::{FAILURE, Fault, Name, NamedSpan, OWN_KEYS, Status, fault_kind};

/// Maximum size in bytes of a run's result. A store can read much larger values, so every stored result can be read
/// again.
const MAX_RESULT: usize = 256 << 20;

impl<'a> EndHandler<'_, 'a> {
    /// Ends the root scope. If the workflow has an ending (steps that follow its body, such as `on_failure`), the
    /// variable [`FAILURE`] says how the body failed.
    pub fn conclude(&mut self, cursor: CursorId) -> MachineResult<Next> {
        if self.read().program.ending.is_none() {
            return self.succeed(cursor, false);
        }
        let failure = self.read().run.variables.get(FAILURE);
        let failure = failure.map(|value| value.clone().revealed());
        match failure.and_then(|failure| failure_of(&failure)) {
            Some((Status::Cancelled, error)) if &*error.fault.kind == fault_kind::CANCELLED => {
                self.finish(Status::Cancelled, Value::Null, None)
            }
            Some((status, error)) => self.finish(status, Value::Null, Some(error)),
            None => self.succeed(cursor, true),
        }
    }

    /// Ends a run that has reached its end. The run succeeds if its output can be computed. The output is not computed
    /// by an action, so nothing in the workflow retries or catches a fault of the computation.
    fn succeed(&mut self, cursor: CursorId, missing_as_null: bool) -> MachineResult<Next> {
        let outputs = self.outputs(cursor, missing_as_null);
        match split_fault(outputs.and_then(|output| Ok(check_result_size(output)?)))? {
            Ok(output) => self.finish(Status::Succeeded, output, None),
            Err(fault) => {
                let place = self.failing_output(cursor, missing_as_null)?;
                self.finish_with_fault("output", place, fault)
            }
        }
    }

    /// Finds the first output that cannot be computed.
    fn failing_output(
        &self,
        cursor: CursorId,
        missing_as_null: bool,
    ) -> MachineResult<Option<&'a NamedSpan>> {
        let read = self.read();
        let program = read.program;
        let Outputs::Template(template) = &program.outputs else {
            return Ok(None);
        };
        let view = self.outputs_view(cursor, missing_as_null)?;
        Ok(program.places.outputs.iter().find(|place| {
            let value = match &*place.name {
                "" => Some(template),
                name => template.part_of(name),
            };
            value.is_some_and(|value| view.computed_result(value).is_err())
        }))
    }

    fn outputs_view(&self, cursor: CursorId, missing_as_null: bool) -> MachineResult<View<'_>> {
        let read = self.read();
        let at = match missing_as_null {
            true => cursor,
            false => read.run.root()?.0,
        };
        Ok(View {
            missing_as_null,
            ..read.view(at)
        })
    }

    /// Computes the output of the run.
    /// If `missing_as_null` is true, an action that has not run reads as null, because the run ended early.
    fn outputs(&self, cursor: CursorId, missing_as_null: bool) -> StepResult<Value> {
        let read = self.read();
        if let Some(response) = &read.run.response {
            return Ok(response.clone());
        }
        match &read.program.outputs {
            Outputs::Template(template) => {
                let view = self.outputs_view(cursor, missing_as_null)?;
                Ok(view.computed_result(template)?)
            }
            Outputs::State => Ok(without_own_keys(&read.run.variables)),
            Outputs::Actions => {
                let (_, root) = read.run.root()?;
                let children = &read.scope(ScopeId(0))?.children;
                Ok(read.reading(&root.records).whole(children)?)
            }
        }
    }

    pub fn terminate(
        &mut self,
        cursor: CursorId,
        state: &State,
        status: Status,
        error: &Option<Template>,
    ) -> StepResult<Next> {
        let detail = match error {
            Some(error) => self.read().eval(cursor, error)?,
            None => Value::Null,
        };
        let (output, now) = (Output::Value(detail.clone()), self.read().now);
        let mut records = self.records();
        records.record(cursor, state.action, Status::Succeeded, output, None, now)?;
        if status == Status::Succeeded {
            return Ok(match self.end_body(cursor, status, None)? {
                Some(next) => next,
                None => self.succeed(cursor, true)?,
            });
        }
        let message = detail.get("message").map_or_else(
            || format!("`{}` ended the run as {}", state.name, status.as_str()),
            text,
        );
        let mut fault = Fault::new(fault_kind::TERMINATED, message);
        fault.code = detail.get("code").map(|code| Name::from(text(code)));
        let error = self.read().locate_fault(cursor, fault)?;
        Ok(match self.end_body(cursor, status, Some(&error))? {
            Some(next) => next,
            None => self.finish(status, Value::Null, Some(error))?,
        })
    }

    /// Begins the workflow's ending, if the workflow has one and the run ends in its body. Otherwise returns `None`.
    fn end_body(
        &mut self,
        cursor: CursorId,
        status: Status,
        error: Option<&RunError>,
    ) -> MachineResult<Option<Next>> {
        let read = self.read();
        let Some(ending) = read.program.ending else {
            return Ok(None);
        };
        if !read.is_in_body(cursor)? {
            return Ok(None);
        }
        let target = match status {
            Status::Failed => ending.failed,
            _ => ending.ended,
        };
        let next = self.movement().jump_to(cursor, target)?;
        if let Some(error) = error {
            let root = self.read().run.root()?.0;
            self.set_failure(root, error, status)?;
        }
        Ok(Some(next))
    }

    /// Stores how the body ended, for the workflow's ending.
    pub fn set_failure(
        &mut self,
        root: CursorId,
        error: &RunError,
        status: Status,
    ) -> MachineResult {
        let failure = failure_value(error, status);
        let mut variables = self.variables();
        variables.change(root, VariableChange::Set(Name::from(FAILURE), failure))
    }

    /// Ends the run with the fault of a value that does not belong to an action, such as an output. The fault names the
    /// value and its position.
    pub fn finish_with_fault(
        &mut self,
        what: &str,
        place: Option<&NamedSpan>,
        fault: Fault,
    ) -> MachineResult<Next> {
        let mut fault = fault;
        if let Some(NamedSpan { name, .. }) = place {
            fault.message = match &**name {
                "" => format!("{what}s: {}", fault.message),
                _ => format!("{what} `{name}`: {}", fault.message),
            };
        }
        let spot = place.map(|place| (place.span.file, place.span.line));
        let error = RunError {
            fault,
            action: None,
            iteration: None,
            place: spot.filter(|(_, line)| *line > 0),
        };
        self.finish(Status::Failed, Value::Null, Some(error))
    }

    /// Ends the run, and cancels all of its pending work.
    pub fn finish(
        &mut self,
        status: Status,
        output: Value,
        error: Option<RunError>,
    ) -> MachineResult<Next> {
        // A run that is cancelled before it began has no root cursor.
        if let Ok((root, _)) = self.read().run.root() {
            self.movement().cancel(root, 0, Status::Cancelled)?;
        }
        let read = self.read();
        // If the run does not succeed, its output is the response that was recorded earlier.
        let output = match status {
            Status::Succeeded => output,
            _ => read.run.response.clone().unwrap_or_default(),
        };
        let at = read.now;
        self.record_outcome(Outcome {
            status,
            output,
            error,
            at,
        })
    }
}

/// Returns the run's state as a value, without the keys that only Windlass uses.
fn without_own_keys(state: &Value) -> Value {
    let own = |name: &str| name.starts_with(OWN_KEYS);
    match state {
        Value::Object(members) if members.keys().any(|name| own(name)) => {
            let members = members.iter().filter(|(name, _)| !own(name));
            Value::object(
                members
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Returns a run's result, or a fault if the result has more than [`MAX_RESULT`] bytes.
fn check_result_size(result: Value) -> Result<Value, Fault> {
    if result.fits_in_bytes(MAX_RESULT) {
        return Ok(result);
    }
    let message = format!(
        "the result of the run is larger than {} MiB: choose with `outputs` what it returns",
        MAX_RESULT >> 20
    );
    Err(Fault::new(fault_kind::TOO_LARGE, message))
}
