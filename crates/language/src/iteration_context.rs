//! The context in which expressions were evaluated in an iteration that has ended. It is restored from the store.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_engine::report::{
    IterationReport, StoredDetail, StripFilter, iteration_values, masked, strip,
};
use windlass_engine::{Context, Dialect, EngineError, Inspector, now};
use windlass_expression::{
    Binding, Budget, Comparison, Condition, Env, Object, Subject, Syntax, Template, Value,
};
use windlass_model::model::Name;

/// Maximum size of a value that is shown, in bytes of JSON.
const MAX_SHOWN: usize = 64 << 10;

/// The context in which expressions were evaluated in an iteration that has ended.
pub struct IterationContext {
    context: Context,
    /// The value from which `context` was made.
    pub(super) seen: Value,
    syntax: Syntax,
    /// Whether the store has all values of the iteration.
    whole: bool,
}

/// Loads the context of an iteration of a run, such as `outer#2/inner#7`.
///
/// # Errors
/// Errors of the store, for example if the run, the loop or the iteration does not exist.
pub fn load_iteration_context(
    inspector: &Inspector,
    run: &str,
    iteration: &str,
) -> Result<IterationContext, EngineError> {
    let report = iteration_values(inspector, run, iteration)?;
    let stored = inspector.load(run)?;
    let dialect = inspector.source(stored.header.program)?.dialect;
    let input = masked(&stored.state.input);
    let seen = iteration_value(&report, input, dialect);
    let context = Context::new(&seen, now().to_utc(), 0);
    let context = context.map_err(|error| EngineError::Input(error.to_string()))?;
    let syntax = match dialect {
        Dialect::Loom => Syntax::Loom,
        Dialect::Azure => Syntax::Azure,
        Dialect::Tea => Syntax::Jinja,
        Dialect::Canvas => Syntax::Canvas,
    };
    Ok(IterationContext {
        context,
        seen,
        syntax,
        whole: report.stored == StoredDetail::Whole,
    })
}

impl IterationContext {
    /// Sets the budget of later evaluations.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self {
            context: self.context.with_budget(budget),
            ..self
        }
    }

    /// Evaluates a template. Fails if its value is too large to be shown.
    ///
    /// # Errors
    /// The text is not a valid template, its evaluation fails with the iteration's stored data, or its value is too
    /// large.
    pub fn value(&self, template: &str) -> Result<Value, String> {
        let template = Template::parse(template, self.syntax);
        let template = template.map_err(|error| error.to_string())?;
        let value = template.eval(&self.context);
        let value = value.map_err(|error| error.to_string())?;
        match value.to_json().len() {
            size if size > MAX_SHOWN => Err(format!("the value has {size} bytes")),
            _ => Ok(value),
        }
    }
}

/// Makes the value of an iteration's context: its variables, the results of its actions, and its position in the
/// loops.
fn iteration_value(report: &IterationReport, input: Value, dialect: Dialect) -> Value {
    let variables = report
        .variables
        .clone()
        .unwrap_or_else(|| Value::object(Object::new()));
    let loops = report.path.split('/').filter_map(|part| {
        let (name, number) = part.rsplit_once('#')?;
        let index = Value::from(number.parse::<i64>().ok()?);
        Some((Name::from(name), Value::from_pairs([("index", index)])))
    });
    let records = report.actions.iter().map(|action| {
        let error = action.error.as_ref();
        let error = error.map(|message| Value::from_pairs([("message", Value::text(&**message))]));
        let record = Value::from_pairs([
            ("name", Value::text(&*action.action)),
            ("status", Value::text(action.status.as_str())),
            ("inputs", action.inputs.clone().unwrap_or_default()),
            ("outputs", action.outputs.clone().unwrap_or_default()),
            ("error", error.unwrap_or_default()),
        ]);
        (Name::from(&*action.action), record)
    });
    let number = i64::try_from(report.iteration).unwrap_or(i64::MAX);
    let mut named = match &variables {
        Value::Object(map) => Object::clone(map),
        _ => Object::new(),
    };
    for (name, value) in [
        ("loopIndex", number),
        ("loopCount", number.saturating_add(1)),
    ] {
        named.entry(Name::from(name)).or_insert(Value::from(value));
    }
    let mut state = match dialect {
        Dialect::Tea => named.clone(),
        _ => Object::new(),
    };
    if dialect == Dialect::Canvas {
        let outputs = report
            .actions
            .iter()
            .filter_map(|action| Some((Name::from(&*action.action), action.outputs.clone()?)));
        let outputs: Object = outputs.collect();
        state.insert(Name::from("nodes"), Value::object(outputs.clone()));
        state.insert(
            Name::from("iteration_count"),
            Value::from(number.saturating_add(1)),
        );
        state.extend(outputs);
    }
    let mode = match dialect {
        Dialect::Azure => "azure",
        Dialect::Loom | Dialect::Tea | Dialect::Canvas => "loom",
    };
    let run = Value::from_pairs([("name", Value::text(&*report.run))]);
    Value::from_pairs([
        ("vars", Value::object(named)),
        ("state", Value::object(state)),
        ("inputs", input),
        ("actions", Value::object(records.collect())),
        ("loops", Value::object(loops.collect())),
        ("workflow", Value::from_pairs([("run", run)])),
        ("mode", Value::text(mode)),
    ])
}

/// A condition that is evaluated for the stored iterations of a loop.
enum Test {
    Parsed(Condition),
    /// The object form of WDL.
    Object(Value),
}

/// Test of a condition in the iterations of a past loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConditionTest {
    /// Number of iterations in which the condition was checked.
    pub tried: u64,
    /// Number of iterations in which it was not checked: their variables are not stored, they are after the first
    /// 2,000, or the test exceeded its budget.
    pub skipped: u64,
    /// Number, from 0, of the iteration after which the loop would have stopped. Absent if it would not have stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<u64>,
    /// Number, from 0, of the last ended iteration of the run's loop. Absent if no iteration has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// Last checked iterations, at most 100.
    pub rows: Vec<TestedIteration>,
    /// Message of the first error of the condition in an iteration. Absent if it never failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Value of a condition in one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestedIteration {
    /// Number of the iteration, from 0.
    pub iteration: u64,
    /// Value of the condition. Null if its evaluation failed.
    pub value: Option<bool>,
    /// Values that the condition reads, by name. Empty for a condition that is an object.
    pub values: BTreeMap<String, Value>,
}

/// Maximum number of iterations in which the condition is checked.
const MAX_TRIED: u64 = 2_000;
/// Maximum number of iterations that are listed.
const MAX_LISTED: usize = 100;

/// Evaluates a condition in the iterations of a loop, such as `outer#2/inner`.
/// It stops after the first iteration after which the loop would have stopped. `stops_when` is the value that stops
/// the loop. By default this is false for a loop that continues while its condition holds, and true for any other
/// loop.
///
/// # Errors
/// Errors of the store, for example if the run or the loop does not exist, or the error of an invalid condition.
pub fn test_condition(
    inspector: &Inspector,
    run: &str,
    loop_path: &str,
    condition: &Value,
    stops_when: Option<bool>,
    budget: &Budget,
) -> Result<ConditionTest, EngineError> {
    let filter = StripFilter {
        path: loop_path.to_owned(),
        from: None,
        to: None,
        buckets: 1,
    };
    let whole = strip(inspector, run, &filter)?;
    let is_while = ["while", "while_loop", "loop"].contains(&&*whole.kind.to_lowercase());
    let stops_when = stops_when.unwrap_or(!is_while);
    let mut outcome = ConditionTest {
        ended_at: whole.iterations.checked_sub(1),
        ..ConditionTest::default()
    };
    let mut test = None;
    for iteration in 0..whole.iterations.min(MAX_TRIED) {
        let found = load_iteration_context(inspector, run, &format!("{loop_path}#{iteration}"));
        if budget.is_exceeded() || budget.is_called_off() {
            outcome.skipped += whole.iterations.min(MAX_TRIED) - iteration;
            break;
        }
        let Some(past) = found.ok().filter(|past| past.whole) else {
            outcome.skipped += 1;
            continue;
        };
        let past = past.with_budget(budget.lend());
        let test = match &test {
            Some(test) => test,
            None => test.insert(past.read(condition).map_err(EngineError::Input)?),
        };
        outcome.tried += 1;
        let value = past.evaluate(test);
        if let (Err(error), None) = (&value, &outcome.error) {
            outcome.error = Some(error.clone());
        }
        if outcome.rows.len() == MAX_LISTED {
            outcome.rows.remove(0);
        }
        let values = match test {
            Test::Parsed(condition) => condition.reads(&past.context).into_iter().collect(),
            Test::Object(_) => BTreeMap::new(),
        };
        budget.settle(past.context.budget());
        let value = value.ok();
        outcome.rows.push(TestedIteration {
            iteration,
            value,
            values,
        });
        if value == Some(stops_when) {
            outcome.stopped_at = Some(iteration);
            return Ok(outcome);
        }
    }
    outcome.skipped += whole.iterations.saturating_sub(MAX_TRIED);
    Ok(outcome)
}

impl IterationContext {
    /// Parses a condition in the notation of the workflow's format.
    fn read(&self, written: &Value) -> Result<Test, String> {
        if let Some(text) = written.as_str() {
            let condition = Condition::parse(text, self.syntax);
            return condition
                .map(Test::Parsed)
                .map_err(|error| error.to_string());
        }
        let (output, operator) = (written.get("output"), written.get("operator"));
        let (Some(output), Some(operator)) = (
            output.and_then(Value::as_str),
            operator.and_then(Value::as_str),
        ) else {
            return Ok(Test::Object(written.clone()));
        };
        let known = Comparison::ALL.iter().find(|one| one.as_str() == operator);
        let known = known.ok_or_else(|| format!("unknown operator `{operator}`"))?;
        let (node, port) = output.split_once('.').unwrap_or((output, ""));
        let quoted = |name: &str| name.replace('\'', "''");
        let value = match port {
            "" => format!("@outputs('{}')", quoted(node)),
            port => format!("@outputs('{}')?['{}']", quoted(node), quoted(port)),
        };
        let value = Template::parse(&value, Syntax::Loom).map_err(|error| error.to_string())?;
        let with = written.get("value").cloned().unwrap_or_default();
        let compare = Binding::Compare(value, *known, with, Name::from(output));
        let condition = Condition::from_template(Template::binding(compare));
        condition
            .map(Test::Parsed)
            .map_err(|error| error.to_string())
    }

    fn evaluate(&self, test: &Test) -> Result<bool, String> {
        match test {
            Test::Parsed(condition) => {
                let holds = condition.holds(&self.context);
                holds.map_err(|error| error.to_string())
            }
            Test::Object(written) => {
                let value = self.context.evaluate(Subject::Condition, written);
                let value = value.map_err(|error| error.to_string())?;
                Ok(value == Value::Bool(true))
            }
        }
    }
}
