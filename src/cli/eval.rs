//! `windlass eval`: tries an expression, a template or a condition in a context.

use super::args::EvalArgs;
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::{self, Screen};
use crate::engine::expression::{Context, Subject, evaluate_line};
use crate::engine::{Value, now};
use std::io::BufRead;
use std::path::Path;

/// The command.
pub fn eval(screen: Screen, args: &EvalArgs) -> Result<Exit, Failure> {
    if args.batch {
        return batch();
    }
    let Some(text) = &args.expression else {
        let message = "give an expression, or --batch to read one a line from standard input";
        return Err(Failure::Usage(String::from(message)));
    };
    let context = match &args.context {
        Some(path) => inputs::parse(path, &inputs::read(path)?)?,
        None => Value::Null,
    };
    let (subject, value) = match (args.template, args.condition) {
        // JSON is a structure of templates, or an object-form condition; anything else is text.
        (true, _) => (Subject::Template, structure(text)),
        (_, true) => (Subject::Condition, structure(text)),
        _ => (Subject::Expression, Value::from(text.as_str())),
    };
    let now = now();
    let outcome = Context::new(&context, now.to_utc(), seed(now.0))
        .and_then(|context| context.evaluate(subject, &value));
    match outcome {
        Ok(value) => {
            output::print(&value.to_json())?;
            Ok(Exit::Succeeded)
        }
        Err(error) => {
            screen.fail(&error.report(), error.hint());
            Ok(Exit::Invalid)
        }
    }
}

fn batch() -> Result<Exit, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::Unreadable {
            path: Path::new("-").display().to_string(),
            error,
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let now = now();
        output::print(&evaluate_line(&line, now.to_utc(), seed(now.0)).to_json())?;
    }
    Ok(Exit::Succeeded)
}

fn structure(text: &str) -> Value {
    match Value::from_json(text) {
        Ok(value @ (Value::Array(_) | Value::Object(_) | Value::Bool(_))) => value,
        _ => Value::from(text),
    }
}

fn seed(now: i64) -> u64 {
    now.unsigned_abs()
}
