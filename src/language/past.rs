//! What the expressions of an iteration saw that has ended: made from what is kept of it.

use crate::engine::report::{IterationReport, iteration_values, masked};
use crate::engine::{Context, Dialect, EngineError, Inspector, now};
use crate::expression::{Object, Syntax, Template, Value};
use crate::model::Name;

/// Longer values are not shown, in bytes of JSON.
const MAX_SHOWN: usize = 64 << 10;

/// An iteration that has ended, as expressions see it.
pub struct Past {
    context: Context,
    syntax: Syntax,
}

/// An iteration of a run: `outer#2/inner#7`.
///
/// # Errors
/// Store errors. There is no such run, loop or iteration.
pub fn past(inspector: &Inspector, run: &str, iteration: &str) -> Result<Past, EngineError> {
    let report = iteration_values(inspector, run, iteration)?;
    let stored = inspector.load(run)?;
    let dialect = inspector.source(stored.header.program)?.dialect;
    let input = masked(&stored.state.input);
    let context = Context::new(&seen(&report, input, dialect), now().to_utc(), 0);
    let context = context.map_err(|error| EngineError::Input(error.to_string()))?;
    let syntax = match dialect {
        Dialect::Loom => Syntax::Loom,
        Dialect::Azure => Syntax::Azure,
        Dialect::Tea => Syntax::Jinja,
        Dialect::Canvas => Syntax::Graph,
    };
    Ok(Past { context, syntax })
}

impl Past {
    /// The value of a template; what is wrong, or how large it is, as text.
    ///
    /// # Errors
    /// It is none, or fails with what is kept of the iteration.
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

/// The context of an iteration: its variables, what its actions gave, and where it was.
fn seen(report: &IterationReport, input: Value, dialect: Dialect) -> Value {
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
