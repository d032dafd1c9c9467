//! What an agent can try before it starts a workflow: a whole workflow with stubs, or one expression.
//! Nothing is sent to other services. The agents of a server are not trusted. So the number of steps of a trial and
//! the number of concurrent trials are limited.

use crate::cli::{eval, inputs, test};
use rmcp::model::JsonObject;
use serde_json::Value as Json;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use windlass_engine::{
    Context, LoadError, LoadOptions, Object, SimulationSpec, Stubs, Subject, TryError, Value,
    load_text, now, simulate,
};

/// Limits the number of concurrent trials. Further trials wait.
static TRIALS: Semaphore = Semaphore::const_new(2);

/// Maximum time that a trial waits until it may run. After that, it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum number of steps of a simulation.
const MAX_STEPS: usize = 5_000;

#[derive(Clone, Copy)]
pub enum Trial {
    /// Simulate a workflow with stubs, on a virtual clock.
    Test,
    /// Evaluate an expression.
    Evaluate,
}

/// Executes a trial on a thread where blocking is allowed.
///
/// # Errors
/// A message for the agent about a mistake in the text, the stubs or the expression.
pub async fn run(trial: Trial, given: JsonObject) -> Result<String, String> {
    let place = tokio::time::timeout(PATIENCE, TRIALS.acquire()).await;
    let place = place.map_err(|_| String::from("other trials run: try again"))?;
    let handle = Handle::current();
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        match trial {
            Trial::Test => handle.block_on(test_workflow(&given)),
            Trial::Evaluate => evaluate(&given),
        }
    });
    done.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn test_workflow(given: &JsonObject) -> Result<String, String> {
    let stubs = match given.get("stubs").filter(|stubs| !stubs.is_null()) {
        Some(stubs) => {
            Stubs::read(&value(stubs)?, "stubs").map_err(|why| format!("`stubs`: {why}"))?
        }
        None => Stubs::default(),
    };
    let word = |name: &str| given.get(name).and_then(Json::as_str).map(str::to_owned);
    let dialect = word("dialect").map(|word| inputs::dialect(&word));
    let dialect = dialect.transpose().map_err(|error| error.to_string())?;
    let options = LoadOptions {
        dialect,
        siblings: stubs.values,
        handlers: stubs.handlers,
        ..LoadOptions::default()
    };
    let text = word("text").unwrap_or_default();
    let workflow = match load_text("workflow.yaml", text, &options) {
        Err(LoadError::Refused {
            diagnostics,
            bundle,
        }) => {
            return Err(diagnostics.render(&bundle, false).trimmed().to_string());
        }
        loaded => loaded.map_err(|error| error.to_string())?,
    };
    let input = match given.get("inputs").filter(|inputs| !inputs.is_null()) {
        Some(inputs) => value(inputs)?,
        None => stubs.input.unwrap_or(Value::Null),
    };
    let map = |name: &str| -> Result<Object, String> {
        let given = given.get(name).map(value).transpose()?;
        Ok(given
            .as_ref()
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default())
    };
    let spec = SimulationSpec {
        input,
        signals: test::signals(given.get("signals").map(value).transpose()?.as_ref())?,
        awaited: stubs.signals,
        state: map("state")?,
        at: word("at"),
        max_steps: Some(MAX_STEPS),
        now: now(),
        ..SimulationSpec::default()
    };
    let report = simulate(&workflow, &spec).await;
    let report = report.map_err(|error| error.to_string())?;
    let warnings = test::unused_stubs(&workflow).map(|warning| format!("warning: {warning}\n"));
    let text = format!("{}{}", warnings.collect::<String>(), test::text(&report));
    let is_there = report.stopped.is_none() || !report.steps.is_empty() || !report.next.is_empty();
    match spec.at.is_none() || is_there {
        true => Ok(text),
        false => Err(text),
    }
}

fn evaluate(given: &JsonObject) -> Result<String, String> {
    let expression = given
        .get("expression")
        .and_then(Json::as_str)
        .filter(|text| !text.trim().is_empty())
        .ok_or("`expression` is empty: write for example `add(1, 2)`")?;
    let context = given
        .get("context")
        .map(value)
        .transpose()?
        .unwrap_or(Value::Null);
    let context = Context::new(&context, now().to_utc(), eval::seed());
    let evaluated =
        context.and_then(|context| context.evaluate(Subject::Expression, &Value::text(expression)));
    match evaluated {
        Ok(value) => Ok(value.to_json()),
        Err(TryError::Context(why)) => Err(format!("`context`: {why}")),
        Err(error) => Err(error.report().to_string()),
    }
}

fn value(json: &Json) -> Result<Value, String> {
    Value::from_json(&json.to_string()).map_err(|error| error.to_string())
}
