//! Jinja templates and expressions, through minijinja with Python's methods. What they read is
//! handed over lazily: one name costs that name, whatever the size of the state.

mod engine;
mod object;
mod roots;

use self::engine::{ENGINE, SOURCE_NAME};
use super::{Env, EvalError, ParseError, Reference, Value};
use minijinja::{Environment, Expression};
use roots::Root;
use std::sync::Arc;

/// A compiled template or expression.
pub(crate) struct Jinja {
    /// The string as it was given.
    text: Arc<str>,
    /// Where the source that was compiled begins in it.
    offset: usize,
    /// How long that source is.
    length: usize,
    roots: Vec<Root>,
    body: Body,
}

enum Body {
    /// One expression: its value, whatever its type.
    Value(Expression<'static, 'static>),
    /// Anything else gives text. An engine of its own owns the compiled template; the filters
    /// are shared.
    Text(Environment<'static>),
}

impl std::fmt::Debug for Jinja {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Jinja").field(&self.text).finish()
    }
}

impl PartialEq for Jinja {
    fn eq(&self, other: &Self) -> bool {
        let kind = |jinja: &Self| matches!(jinja.body, Body::Value(_));
        self.text == other.text && self.offset == other.offset && kind(self) == kind(other)
    }
}

impl Jinja {
    /// A template: one single `{{ … }}` keeps the type of its value, anything else gives text.
    pub(crate) fn template(text: &str) -> Result<Self, ParseError> {
        if let Some((start, end)) = single_expression(text) {
            return Self::expression_in(text, start, end);
        }
        let mut engine = ENGINE.clone();
        engine
            .add_template_owned(SOURCE_NAME, text.to_owned())
            .map_err(|error| parse_error(&error, text, 0))?;
        let roots = match engine.get_template(SOURCE_NAME) {
            Ok(template) => roots::collect(&template.undeclared_variables(true)),
            Err(error) => return Err(parse_error(&error, text, 0)),
        };
        Ok(Self {
            text: text.into(),
            offset: 0,
            length: text.len(),
            roots,
            body: Body::Text(engine),
        })
    }

    /// A bare expression.
    pub(crate) fn expression(text: &str) -> Result<Self, ParseError> {
        Self::expression_in(text, 0, text.len())
    }

    fn expression_in(text: &str, start: usize, end: usize) -> Result<Self, ParseError> {
        let source = text.get(start..end).unwrap_or_default();
        let engine: &'static Environment<'static> = &ENGINE;
        let expression = engine
            .compile_expression_owned(source.to_owned())
            .map_err(|error| parse_error(&error, text, start))?;
        Ok(Self {
            text: text.into(),
            offset: start,
            length: source.len(),
            roots: roots::collect(&expression.undeclared_variables(true)),
            body: Body::Value(expression),
        })
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn references(&self) -> Vec<Reference> {
        self.roots.iter().flat_map(Root::references).collect()
    }

    pub(crate) fn eval(&self, env: &dyn Env) -> Result<Value, EvalError> {
        let value = match &self.body {
            Body::Value(expression) => expression
                .eval(roots::context(&self.roots, env))
                .map_err(|error| self.eval_error(&error, env))?,
            Body::Text(engine) => {
                let rendered = engine
                    .get_template(SOURCE_NAME)
                    .and_then(|template| template.render(roots::context(&self.roots, env)))
                    .map_err(|error| self.eval_error(&error, env))?;
                return Ok(Value::text(rendered));
            }
        };
        object::from_jinja(&value).map_err(|error| self.eval_error(&error, env))
    }

    /// Whether the value is true as Python has it: empty, zero and None are not.
    pub(crate) fn holds(&self, env: &dyn Env) -> Result<bool, EvalError> {
        match &self.body {
            Body::Value(expression) => {
                let value = expression
                    .eval(roots::context(&self.roots, env))
                    .map_err(|error| self.eval_error(&error, env))?;
                if value.is_undefined() {
                    return Err(self.undefined(env));
                }
                Ok(value.is_true())
            }
            Body::Text(_) => Ok(self
                .eval(env)?
                .as_str()
                .is_some_and(|text| !text.is_empty())),
        }
    }

    fn undefined(&self, env: &dyn Env) -> EvalError {
        let error = minijinja::Error::from(minijinja::ErrorKind::UndefinedError);
        self.eval_error(&error, env)
    }

    fn eval_error(&self, error: &minijinja::Error, env: &dyn Env) -> EvalError {
        let range = error
            .range()
            .filter(|range| range.end <= self.length && range.start < range.end);
        let (offset, length) = match range {
            Some(range) => (self.offset + range.start, range.len()),
            None => (self.offset, self.length.max(1)),
        };
        EvalError {
            message: engine::message(error, &self.roots, env),
            offset,
            length,
            text: self.text.to_string(),
        }
    }
}

/// Where the expression of a text that is one single `{{ … }}` begins and ends.
fn single_expression(text: &str) -> Option<(usize, usize)> {
    let start = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{")?.strip_suffix("}}")?;
    let closed = inner.strip_prefix('-').unwrap_or(inner);
    let body = closed.strip_suffix('-').unwrap_or(closed);
    let first = start + 2 + (inner.len() - closed.len());
    // `{{ a }} {{ b }}` also begins and ends so: the braces must not close before the end.
    let mut quote = None;
    let mut escaped = false;
    let mut depth = 0_i32;
    let mut previous = ' ';
    for letter in body.chars() {
        match quote {
            Some(open) => {
                if escaped {
                    escaped = false;
                } else if letter == '\\' {
                    escaped = true;
                } else if letter == open {
                    quote = None;
                }
            }
            None => match letter {
                '\'' | '"' => quote = Some(letter),
                '{' => depth += 1,
                '}' if depth == 0 => return None,
                '}' => depth -= 1,
                '%' if previous == '{' => return None,
                _ => {}
            },
        }
        previous = letter;
    }
    (quote.is_none() && depth == 0).then_some((first, first + body.len()))
}

fn parse_error(error: &minijinja::Error, text: &str, offset: usize) -> ParseError {
    let (start, length) = match error.range() {
        Some(range) if offset + range.start < text.len() => (
            offset + range.start,
            range.len().min(text.len() - offset - range.start),
        ),
        _ => (offset, text.len() - offset),
    };
    let hint = engine::parse_hint(text, error);
    ParseError {
        message: engine::plain(error),
        offset: start,
        length: length.max(1),
        hint,
    }
}
