//! Prints a tree. Parsing the printed text results in the same tree.

use super::ast::{Expr, Node, Step};
use crate::Value;
use std::fmt;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Literal(value) => literal(value, f),
            Node::Template(template) => f.write_str(&template.source().to_json()),
            Node::Call(function, arguments) => call(function.name, arguments, f),
            Node::Refused(refused) => call(&refused.name, &refused.arguments, f),
            Node::Path(base, steps) => {
                write!(f, "{base}")?;
                steps.iter().try_for_each(|step| write!(f, "{step}"))
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.safe { "?" } else { "" };
        match self.key.literal_text() {
            Some(name) if is_name(name) => write!(f, "{mark}.{name}"),
            _ => write!(f, "{mark}[{}]", self.key),
        }
    }
}

fn call(name: &str, arguments: &[Expr], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{name}(")?;
    for (index, argument) in arguments.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{argument}")?;
    }
    f.write_str(")")
}

fn literal(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
        // `{:?}` writes the point or the exponent, so that a double stays a double.
        Value::Float(float) => write!(f, "{float:?}"),
        other => f.write_str(&other.to_json()),
    }
}

/// Returns true if a text is allowed after a dot.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(super::parser::starts_name) && letters.all(super::parser::in_name)
}
