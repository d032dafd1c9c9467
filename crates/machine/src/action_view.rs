//! What an expression can read of actions: their statuses, codes and outputs, by the rules of the format. The result is
//! the same for all functions of the expression language.

use super::env::View;
use super::failure::fault_value;
use super::record::LoopEnd;
use super::record::{ActionRecord, Output, RecordReader, Records};
use crate::program::{ActionId, Scope, ScopeId, ScopeKind};
use windlass_expression::{ActionView, Value};
use windlass_model::model::{
    ASYNC_PATTERN, CONNECTOR_HOST, HANDLER_NAMES, Name, Status, UnrunActionValue,
};

impl<'a> View<'a> {
    pub fn action_view(
        &self,
        id: ActionId,
        record: &ActionRecord,
        from: RecordReader<'a>,
    ) -> ActionView {
        let outputs = from.output(&record.output);
        let gives_inputs = self.program.action(id).is_some_and(|one| one.gives_inputs);
        ActionView {
            name: self.name_of(id),
            status: record.status.as_str().to_owned(),
            code: code_of(record, self.program.rules.http_codes),
            inputs: match gives_inputs {
                true => outputs.clone(),
                false => definition_inputs(&record.inputs),
            },
            outputs,
            error: record.error.as_deref().map(fault_value).unwrap_or_default(),
            start_time: Value::text(record.started_at.to_string()),
            end_time: Value::text(record.ended_at.to_string()),
            tracking_id: Value::text(format!("{}/{id}", self.run.id)),
            client_tracking_id: Value::text(&*self.run.id),
        }
    }

    /// Returns true if a scope that encloses the action ended without running it. By the rules of some formats, such an
    /// action reads as skipped. By the rules of others, it reads as cancelled, but only if the scope timed out. Reading
    /// any other action that has not run is an error.
    pub fn is_left_unrun(&self, id: ActionId) -> bool {
        let skips = match self.program.rules.unrun_value {
            UnrunActionValue::Error => return false,
            UnrunActionValue::Cancelled => false,
            UnrunActionValue::Skipped => true,
        };
        let ended = |(scope_id, scope): (ScopeId, &Scope)| {
            let foreach = matches!(scope.kind, ScopeKind::ForEach { .. });
            let record = scope
                .action
                .filter(|_| scope.action_range.contains(&id.0) && !foreach);
            let record = record.and_then(|action| self.record_of(action));
            record.is_some_and(|record| skips || has_timed_out(record) && !self.is_inside(scope_id))
        };
        (0..).map(ScopeId).zip(&self.program.scopes).any(ended)
    }

    fn is_inside(&self, scope: ScopeId) -> bool {
        self.frames().any(|(_, frame)| frame.scope == scope)
    }

    fn name_of(&self, id: ActionId) -> String {
        let action = self.program.action(id);
        action.map_or_else(String::new, |action| action.name.to_string())
    }

    fn record_of(&self, action: ActionId) -> Option<&'a ActionRecord> {
        self.visible()
            .find_map(|from| from.records.get(&action).map(|found| &**found))
    }

    pub fn skipped_view(&self, id: ActionId) -> ActionView {
        let (status, code) = match self.program.rules.unrun_value {
            UnrunActionValue::Skipped => (Status::Skipped, "ActionSkipped"),
            UnrunActionValue::Cancelled | UnrunActionValue::Error => {
                (Status::Cancelled, "ActionFailed")
            }
        };
        ActionView {
            name: self.name_of(id),
            status: status.as_str().to_owned(),
            code: Value::from(code),
            ..ActionView::default()
        }
    }

    pub fn scope_records(&self, scope: &'a Scope) -> Option<Value> {
        let action = scope.action?;
        let from = self.visible().find(|from| {
            let has = |child| from.records.contains_key(child);
            has(&action) || scope.children.iter().any(has)
        })?;
        let of_foreach: Option<Vec<&'a Records>> =
            match from.records.get(&action).map(|record| &record.output) {
                Some(Output::Iterations { records, .. }) => {
                    Some(records.iter().map(|(_, records)| records).collect())
                }
                _ => None,
            };
        if let Some(iterations) = &of_foreach
            && self.program.rules.lists_iterations
        {
            let entry = |child: &ActionId| {
                let views = self.views(*child, from, iterations);
                let outputs = views.iter().map(ActionView::to_value).collect();
                Value::from_pairs([
                    ("name", Value::text(self.name_of(*child))),
                    ("outputs", Value::array(outputs)),
                ])
            };
            return Some(Value::array(scope.children.iter().map(entry).collect()));
        }
        let sources: Vec<&'a Records> = of_foreach.unwrap_or_else(|| vec![from.records]);
        let mut list = Vec::new();
        for records in sources {
            let from = RecordReader { records, ..from };
            for child in &scope.children {
                if let Some(record) = records.get(child) {
                    list.push(self.action_view(*child, record, from).to_value());
                } else if self.is_left_unrun(*child) {
                    list.push(self.skipped_view(*child).to_value());
                }
            }
        }
        Some(Value::array(list))
    }
}

impl<'a> View<'a> {
    /// Returns the records of the iterations of the innermost foreach that encloses an action, and a reader for these
    /// records. Returns `None` before this foreach has ended, and in formats that do not list iterations.
    pub fn iterations_around(&self, id: ActionId) -> Option<(RecordReader<'a>, Vec<&'a Records>)> {
        if !self.program.rules.lists_iterations {
            return None;
        }
        let around = self.program.scopes.iter().filter(|scope| {
            matches!(scope.kind, ScopeKind::ForEach { .. }) && scope.action_range.contains(&id.0)
        });
        let innermost = around.max_by_key(|scope| scope.action_range.start)?;
        let action = innermost.action?;
        self.visible()
            .find_map(|from| match &from.records.get(&action)?.output {
                Output::Iterations { records, .. } => {
                    let records = records.iter().map(|(_, records)| records);
                    Some((from, records.collect()))
                }
                _ => None,
            })
    }

    /// Returns one view of the action for each of the given iterations that has a record of it.
    fn views(
        &self,
        id: ActionId,
        from: RecordReader<'a>,
        iterations: &[&'a Records],
    ) -> Vec<ActionView> {
        let view = |records: &&'a Records| {
            let record = records.get(&id)?;
            Some(self.action_view(id, record, RecordReader { records, ..from }))
        };
        iterations.iter().filter_map(view).collect()
    }

    /// Returns the view of an action inside a foreach that has ended. The outputs of the view are a list: one for each
    /// iteration in which the action ran.
    pub fn iterated_view(&self, id: ActionId) -> Option<ActionView> {
        let (from, iterations) = self.iterations_around(id)?;
        let views = self.views(id, from, &iterations);
        let ran = |view: &&ActionView| view.status != Status::Skipped.as_str();
        let has = |status: Status| views.iter().find(|view| view.status == status.as_str());
        let worst = [Status::Failed, Status::TimedOut, Status::Succeeded];
        let worst = worst.into_iter().find_map(has);
        let (status, code) = worst.map_or_else(
            || (Status::Skipped.as_str().to_owned(), "ActionSkipped".into()),
            |view| (view.status.clone(), view.code.clone()),
        );
        let outputs = views.iter().filter(ran).map(|view| view.outputs.clone());
        Some(ActionView {
            name: self.name_of(id),
            status,
            code,
            outputs: Value::array(outputs.collect()),
            ..ActionView::default()
        })
    }
}

fn has_timed_out(record: &ActionRecord) -> bool {
    let limited = matches!(
        record.output,
        Output::Loop {
            end: LoopEnd::Timeout,
            ..
        }
    );
    limited || record.status == Status::TimedOut
}

/// Returns the code of the action's fault. If the action has no fault, returns the word for its status. If `http_codes`
/// is true and the answer has an HTTP status, returns the word for this status instead.
fn code_of(record: &ActionRecord, http_codes: bool) -> Value {
    let failed = record
        .error
        .as_ref()
        .and_then(|fault| fault.code.as_deref());
    let answered = match &record.output {
        Output::Value(output) if http_codes => {
            let code = output.get("statusCode").and_then(Value::as_int);
            code.and_then(status_words)
        }
        _ => None,
    };
    if let Some(words) = answered {
        return Value::from(words);
    }
    // If the action is a scope, its fault has the code of the inner action that failed.
    let is_scope = matches!(record.output, Output::Actions(_));
    match (failed, record.status) {
        (Some(code), _) if !(http_codes && is_scope) => Value::from(code),
        (_, Status::Succeeded) => Value::from("OK"),
        (_, Status::Skipped) => Value::from("ActionSkipped"),
        _ => Value::from("ActionFailed"),
    }
}

/// Returns the name of an HTTP status in .NET, as in Logic Apps.
fn status_words(code: i64) -> Option<&'static str> {
    Some(match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "NoContent",
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "UnprocessableEntity",
        429 => "TooManyRequests",
        500 => "InternalServerError",
        501 => "NotImplemented",
        502 => "BadGateway",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        _ => return None,
    })
}

/// Returns the inputs of an executor without the inputs that a format has added.
fn without_own(inputs: &Value) -> Value {
    let own = [ASYNC_PATTERN, "page_base"];
    match inputs {
        Value::Object(given) if own.iter().any(|key| given.contains_key(*key)) => {
            let given = given.iter().filter(|(key, _)| !own.contains(&&***key));
            Value::object(
                given
                    .map(|(key, value)| (Name::clone(key), value.clone()))
                    .collect(),
            )
        }
        _ => inputs.clone(),
    }
}

/// Returns the inputs as they are in the workflow's definition. For a connector's action, these are nested in the
/// inputs that select the handler.
fn definition_inputs(inputs: &Value) -> Value {
    let named = inputs.get("connectorType").is_some() && inputs.get(HANDLER_NAMES).is_some();
    let given = inputs.get("input").and_then(Value::as_object);
    let Some(given) = given.filter(|_| named) else {
        return without_own(inputs);
    };
    if let (3, Some(whole)) = (given.len(), given.get("inputs")) {
        return whole.clone();
    }
    let host = inputs.get(CONNECTOR_HOST).filter(|host| !host.is_null());
    let host = host.map(|host| (Name::from(CONNECTOR_HOST), host.clone()));
    let own = given
        .iter()
        .filter(|(key, _)| !matches!(&***key, "connector" | "operation"))
        .map(|(key, value)| (Name::clone(key), value.clone()));
    Value::object(host.into_iter().chain(own).collect())
}
