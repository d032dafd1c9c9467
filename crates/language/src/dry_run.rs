//! A dry run of one action.
//! It returns the request that the action would send, or the action's result. Nothing is sent.

use super::iteration_context::IterationContext;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_engine::report::masked;
use windlass_engine::{Context, Dialect, Workflow, now};
use windlass_expression::{Budget, Object, Value};
use windlass_machine::program::Op;
use windlass_model::model::Name;

/// Result of a dry run of an action. Nothing was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tried)]
pub struct DryRunResult {
    /// Request that the action would send, as `executor` and `inputs`. Secrets are masked. Absent if the action sends
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// Result of an action that sends nothing. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Message of its failure. Absent if it does not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The values that an action reads in a dry run. They are used in addition to those of a run's iteration.
#[derive(Clone, Debug, Default)]
pub struct DryRunInput {
    /// Inputs by name. They replace those of the iteration.
    pub inputs: Option<Value>,
    /// Variables by name. They replace those of the iteration.
    pub variables: Option<Value>,
    /// Outputs by the name of the action. They replace those of the iteration.
    pub outputs: Option<Value>,
}

/// Executes the action at a path such as `poll/check` without sending anything.
///
/// # Errors
/// A message if the action does not exist, or only contains other actions.
pub fn try_action(
    workflow: &Workflow,
    node: &str,
    past: Option<&IterationContext>,
    given: &DryRunInput,
    budget: Budget,
) -> Result<DryRunResult, String> {
    let program = workflow.program();
    let name = node.rsplit('/').next().unwrap_or(node);
    let mut states = program.states.iter().filter(|state| {
        let action = state.action.and_then(|id| program.actions.get(id.index()));
        action.is_some_and(|action| &*action.name == name)
    });
    let state =
        states.find(|state| matches!(state.op, Op::Call(..) | Op::Compose(_) | Op::Assign { .. }));
    let state = state.ok_or_else(|| format!("no action `{name}` that can be tried"))?;
    let secrets = match &state.op {
        Op::Call(_, secrets) => secrets.as_slice(),
        _ => &[],
    };
    let context = Context::new(
        &dry_run_context(workflow, past, given, secrets),
        now().to_utc(),
        0,
    );
    let context = context
        .map_err(|error| error.to_string())?
        .with_budget(budget);
    let value = |template: &windlass_expression::Template| {
        let value = template.eval(&context);
        value
            .map(|value| masked(&value))
            .map_err(|error| error.to_string())
    };
    let tried = match &state.op {
        Op::Call(call, _) => value(&call.inputs).map(|inputs| DryRunResult {
            request: Some(Value::from_pairs([
                ("executor", Value::text(&*call.executor)),
                ("inputs", inputs),
            ])),
            ..DryRunResult::default()
        }),
        Op::Compose(template) => value(template).map(|result| DryRunResult {
            result: Some(result),
            ..DryRunResult::default()
        }),
        Op::Assign { assignments, .. } => {
            let values = assignments
                .iter()
                .map(|one| Ok((one.variable.clone(), value(&one.value)?)));
            let values: Result<Object, String> = values.collect();
            values.map(|values| DryRunResult {
                result: Some(Value::object(values)),
                ..DryRunResult::default()
            })
        }
        _ => Err(format!("`{name}` does nothing itself")),
    };
    Ok(tried.unwrap_or_else(|error| DryRunResult {
        error: Some(error),
        ..DryRunResult::default()
    }))
}

/// Makes the context of the dry run: that of the iteration, in which the values of `given` replace its own.
fn dry_run_context(
    workflow: &Workflow,
    past: Option<&IterationContext>,
    given: &DryRunInput,
    secrets: &[Name],
) -> Value {
    let azure = workflow.program().format == Dialect::Azure.as_str();
    let mode = if azure { "azure" } else { "loom" };
    let start = || Value::from_pairs([("mode", Value::text(mode))]);
    let seen = past.map_or_else(start, |past| past.seen.clone());
    let mut members = seen.as_object().cloned().unwrap_or_default();
    let records = given.outputs.as_ref().and_then(Value::as_object);
    let records = records.into_iter().flatten().map(|(name, outputs)| {
        let record = Value::from_pairs([
            ("name", Value::text(&**name)),
            ("status", Value::text("Succeeded")),
            ("outputs", outputs.clone()),
        ]);
        (name.clone(), record)
    });
    let records = Value::object(records.collect());
    let initial = workflow.program().state_values.iter().cloned();
    let initial = Value::from_pairs(initial);
    for (member, more) in [
        ("inputs", given.inputs.as_ref()),
        ("vars", given.variables.as_ref()),
        ("state", Some(&initial)),
        ("state", given.variables.as_ref()),
        ("actions", Some(&records)),
    ] {
        let more = more.and_then(Value::as_object);
        let own = members.get(member).and_then(Value::as_object).cloned();
        let mut all = own.unwrap_or_default();
        all.extend(
            more.into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        members.insert(Name::from(member), Value::object(all));
    }
    // A dry run reads no secrets, so each is replaced by `***`.
    let hidden = secrets
        .iter()
        .map(|name| (name.clone(), Value::text("***")));
    members.insert(Name::from("secrets"), Value::object(hidden.collect()));
    Value::object(members)
}
