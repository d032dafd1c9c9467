//! `windlass eval`: evaluates an expression (docs/reference/cli.md).

use super::args::EvalArgs;
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::{self, Screen};
use std::io::BufRead;
use windlass_engine::{Context, Subject, TryError, Value, evaluate_line, now};
use windlass_expression::text_condition;

pub fn eval(screen: Screen, args: &EvalArgs) -> Result<Exit, Failure> {
    let context = match &args.context {
        None => Value::Null,
        Some(path) => inputs::parse(path, &inputs::read(path)?)?,
    };
    if args.batch {
        return batch();
    }
    let text = args.expression.as_deref().unwrap_or_default();
    if text.trim().is_empty() {
        let message = "missing expression, for example: windlass eval \"add(1, 2)\"";
        return Err(Failure::Usage(message.to_owned()));
    }
    // A Loom file cannot have this condition either.
    if args.condition
        && let Some((what, hint)) = text_condition(text)
    {
        screen.fail(&format!("the condition {what}"), Some(&hint));
        return Ok(Exit::Invalid);
    }
    let (subject, value) = subject(args, text);
    let at = now().to_utc();
    let evaluated =
        Context::new(&context, at, seed()).and_then(|context| context.evaluate(subject, &value));
    match evaluated {
        Ok(value) => {
            output::document(args.output.output, &value)?;
            Ok(Exit::Succeeded)
        }
        Err(error @ TryError::Context(_)) => Err(Failure::Usage(error.to_string())),
        Err(error) => {
            screen.fail(&error.report(), None);
            Ok(Exit::Invalid)
        }
    }
}

/// Returns the kind of the text, and its value.
/// A template or a condition may be JSON. Then the value is the parsed JSON.
fn subject(args: &EvalArgs, text: &str) -> (Subject, Value) {
    let structured = |keep: fn(&Value) -> bool| {
        let value = Value::from_json(text).ok().filter(keep);
        value.unwrap_or_else(|| Value::text(text))
    };
    if args.template {
        let keep = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
        (Subject::Template, structured(keep))
    } else if args.condition {
        let keep = |value: &Value| matches!(value, Value::Object(_) | Value::Bool(_));
        (Subject::Condition, structured(keep))
    } else {
        (Subject::Expression, Value::text(text))
    }
}

fn batch() -> Result<Exit, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::Unreadable {
            path: String::from("-"),
            error,
        })?;
        if line.trim().is_empty() {
            continue;
        }
        output::print_exact(evaluate_line(&line, now().to_utc(), seed()).to_json())?;
    }
    Ok(Exit::Succeeded)
}

/// Returns the seed of `rand` and `guid`. It is different at each call.
pub(super) fn seed() -> u64 {
    let time = u64::try_from(now().0).unwrap_or_default();
    time.rotate_left(20) ^ u64::from(std::process::id())
}
