//! Jinja templates and expressions, evaluated by minijinja with Python's methods.
//! A value is converted for minijinja only when it is read, so the cost of a read does not depend on the size of the
//! state.

mod arguments;
mod cache;
mod complexity;
mod engine;
mod filters;
mod foreign;
mod free_variables;
mod names;
mod object;
mod operators;
mod python;
mod reference;
mod rewrite;
mod session;
mod text;

pub use self::cache::TemplateCache;
pub use self::foreign::name_hint as foreign_name_hint;
pub use self::python::quoted as python_quoted;
pub(crate) use self::reference::{JINJA_NAMES, JinjaName};

use self::engine::{ENGINE, SOURCE_NAME};
use super::condition::ReadMode;
use super::{Env, EvalError, ParseError, Reference, Value};
use foreign::operator_hint;
use free_variables::FreeVariable;
use minijinja::{Environment, Error, Expression};
use rewrite::{RewriteError, RewrittenTemplate};
use session::Evaluation;
use std::sync::Arc;

/// The rules of evaluation, which differ between formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flavor {
    /// A missing member is an error, except in `state`.
    Strict,
    /// TEA: a missing member of one of TEA's own names evaluates to None.
    Tea,
    /// Canvases: like [`Self::Tea`], but values inside of a text are written as JSON.
    Canvas,
}

pub(crate) struct Jinja {
    /// The whole string that the author wrote.
    text: Arc<str>,
    /// Offset and length in bytes of the compiled part of the string.
    offset: usize,
    length: usize,
    flavor: Flavor,
    free: Vec<FreeVariable>,
    body: Body,
    /// Maps positions in the rewritten text to the author's text. Empty if the template reads nothing.
    rewritten: RewrittenTemplate,
}

enum Body {
    /// A single expression, whose value may have any type.
    Value(Expression<'static, 'static>),
    /// Any other template. It returns text.
    /// The compiled template belongs to its own engine, but all engines share the filters.
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
    /// Compiles a text.
    /// If `bare` is true, the whole text is one expression. Otherwise, a single `{{ … }}` returns a value of any
    /// type, and any other text returns text.
    fn compile(text: &str, flavor: Flavor, bare: bool) -> Result<Self, ParseError> {
        let all = (0, text.len());
        let single = match bare {
            true => Some(all),
            false => single_expression(text),
        };
        let (start, end) = single.unwrap_or(all);
        let source = text.get(start..end).unwrap_or_default();
        let fail = |error: Error| parse_error(&error, text, start);
        let rewritten = match single {
            Some(_) => rewrite::expression(source),
            None => rewrite::template(source, engine::syntax()),
        };
        let mut rewritten = rewritten.map_err(|mistake| parse_mistake(mistake, text, start))?;
        let compiled = std::mem::take(&mut rewritten.text);
        let (body, names) = if single.is_some() {
            let engine: &'static Environment<'static> = &ENGINE;
            let expression = engine.compile_expression_owned(compiled).map_err(fail)?;
            let names = match &rewritten.dotted {
                None => expression.undeclared_variables(true),
                Some(dotted) => {
                    let dotted = engine.compile_expression(dotted).map_err(fail)?;
                    dotted.undeclared_variables(true)
                }
            };
            (Body::Value(expression), names)
        } else {
            let mut engine = ENGINE.clone();
            if flavor == Flavor::Canvas {
                engine::write_json(&mut engine);
            }
            engine
                .add_template_owned(SOURCE_NAME, compiled)
                .map_err(fail)?;
            let template = engine.get_template(SOURCE_NAME).map_err(fail)?;
            let names = match &rewritten.dotted {
                None => template.undeclared_variables(true),
                Some(dotted) => {
                    let dotted = engine.template_from_str(dotted).map_err(fail)?;
                    dotted.undeclared_variables(true)
                }
            };
            (Body::Text(engine), names)
        };
        // Only the analysis needs these, and a compiled template stays in memory.
        rewritten.dotted = None;
        let literals = std::mem::take(&mut rewritten.literals);
        let methods = std::mem::take(&mut rewritten.methods);
        let mut free = free_variables::collect(&names, &literals, &methods);
        free_variables::environment(&mut free, rewritten.environment.take());
        Ok(Self {
            text: text.into(),
            offset: start,
            length: source.len(),
            flavor,
            free,
            body,
            rewritten,
        })
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn references(&self) -> Vec<Reference> {
        self.free
            .iter()
            .flat_map(FreeVariable::references)
            .collect()
    }

    /// Returns the environment variables that are read without a default.
    pub(crate) fn env_vars_without_default(&self) -> &[String] {
        &self.rewritten.without_default
    }

    /// Returns the members of this top-level name that are read by a name in the text.
    pub(crate) fn members_of(&self, root: &str) -> &[String] {
        free_variables::members_of_root(&self.free, root)
    }

    pub(crate) fn eval(&self, env: &dyn Env) -> Result<Value, EvalError> {
        let _evaluation = Evaluation::begin(env.budget());
        self.run(env).map_err(|error| self.eval_error(&error, env))
    }

    fn run(&self, env: &dyn Env) -> Result<Value, Error> {
        let context = free_variables::context(&self.free, env, self.flavor);
        match &self.body {
            Body::Value(expression) => {
                let value = expression.eval(context)?;
                if value.is_undefined() && self.absent_is_none() {
                    return Ok(Value::Null);
                }
                object::from_jinja(&value)
            }
            Body::Text(engine) => {
                let mut out = LimitedBuffer(Vec::new());
                let template = engine.get_template(SOURCE_NAME)?;
                template.render_captured_to(context, &mut out)?;
                Ok(Value::text(String::from_utf8_lossy(&out.0).into_owned()))
            }
        }
    }

    /// Returns true if an undefined result evaluates to None. This needs TEA or a canvas, a text that reads a member,
    /// and only top-level names whose missing members evaluate to None.
    fn absent_is_none(&self) -> bool {
        let source = self.text.get(self.offset..self.offset + self.length);
        let lenient = |root: &FreeVariable| root.lenient(self.flavor);
        self.flavor != Flavor::Strict
            && self.free.iter().all(lenient)
            && source.is_some_and(|source| source.contains(['.', '[']))
    }

    /// Returns true if the value is true by the rules of `reading`.
    /// By the rules of Python, empty values, zero and None are false.
    pub(crate) fn is_true(&self, env: &dyn Env, reading: ReadMode) -> Result<bool, EvalError> {
        let Body::Value(expression) = &self.body else {
            let text = self.eval(env)?;
            let text = text.as_str().unwrap_or_default();
            return Ok(match reading {
                ReadMode::Truth(_) => !text.is_empty(),
                ReadMode::Words => is_yes(text),
            });
        };
        let _evaluation = Evaluation::begin(env.budget());
        let context = free_variables::context(&self.free, env, self.flavor);
        let truth = expression.eval(context).and_then(|value| {
            if value.is_undefined() && !self.absent_is_none() {
                return Err(Error::from(minijinja::ErrorKind::UndefinedError));
            }
            Ok(match reading {
                ReadMode::Truth(_) => value.is_true(),
                ReadMode::Words => is_yes(&value.to_string()),
            })
        });
        let ill_typed = match reading {
            ReadMode::Truth(ill_typed) => ill_typed,
            ReadMode::Words => Some(false),
        };
        truth.or_else(|error| match ill_typed {
            Some(holds) if operators::is_ill_typed(&error) => Ok(holds),
            _ => Err(self.eval_error(&error, env)),
        })
    }

    fn eval_error(&self, error: &Error, env: &dyn Env) -> EvalError {
        let place = error
            .range()
            .and_then(|range| self.rewritten.original_range(&range));
        let source = self.text.get(self.offset..).unwrap_or_default();
        let (offset, length) = match place {
            Some(range) if range.end <= self.length => {
                // The range that minijinja reports includes an opening bracket before the piece, which is removed
                // here.
                let piece = source.get(range.clone()).unwrap_or_default();
                let open = piece.matches('(').count();
                let closed = piece.matches(')').count();
                let extra = piece.bytes().take_while(|byte| *byte == b'(').count();
                let extra = extra.min(open.saturating_sub(closed));
                (self.offset + range.start + extra, range.len() - extra)
            }
            _ => (self.offset, self.length),
        };
        let piece = self.text.get(offset..offset + length).unwrap_or_default();
        let (message, missing) = engine::describe(error, &self.text, piece, &self.free, env);
        EvalError {
            message,
            missing: missing.map(Box::new),
            offset,
            length: length.max(1),
            text: self.text.to_string(),
        }
    }
}

/// A buffer for the result of an evaluation. It fails if the result exceeds the maximum size.
struct LimitedBuffer(Vec<u8>);

impl std::io::Write for LimitedBuffer {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + part.len() > session::MAX_BYTES {
            return Err(std::io::Error::other("the template produces too much"));
        }
        self.0.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the range of the expression if a text is a single `{{ … }}`.
pub(super) fn single_expression(text: &str) -> Option<(usize, usize)> {
    let start = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{")?.strip_suffix("}}")?;
    let closed = inner.strip_prefix('-').unwrap_or(inner);
    let body = closed.strip_suffix('-').unwrap_or(closed);
    let first = start + 2 + (inner.len() - closed.len());
    // `{{ a }} {{ b }}` also begins and ends with braces. So check that no braces close before the end.
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

fn parse_mistake(mistake: RewriteError, text: &str, offset: usize) -> ParseError {
    match mistake {
        RewriteError::Engine(error) => parse_error(&error, text, offset),
        RewriteError::Name(unknown) => ParseError {
            message: unknown.message,
            offset: (offset + unknown.range.start).min(text.len()),
            length: unknown.range.len().max(1),
            hint: unknown.hint,
        },
    }
}

fn parse_error(error: &Error, text: &str, offset: usize) -> ParseError {
    let (start, length) = match error.range() {
        Some(range) if offset + range.start < text.len() => (
            offset + range.start,
            range.len().min(text.len() - offset - range.start),
        ),
        _ => (offset, text.len() - offset),
    };
    let hint = engine::comment_hint(error)
        .or_else(|| complexity::hint(error))
        .or_else(|| engine::parse_hint(text))
        .or_else(|| operator_hint(text, start).map(str::to_owned));
    ParseError {
        message: complexity::parser_limit(error).unwrap_or_else(|| engine::plain(error)),
        offset: start,
        length: length.max(1),
        hint,
    }
}

/// Returns true if a text is not empty and not a word for false.
fn is_yes(text: &str) -> bool {
    let word = text.trim().to_lowercase();
    !["", "false", "0", "no", "none"].contains(&word.as_str())
}
