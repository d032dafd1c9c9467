//! Templates: any JSON value whose strings may be expressions.
//! A template is parsed once when the workflow is loaded, and evaluated many times. A clone is cheap.

use super::binding::Binding;
use super::data::Data;
use super::jinja::{Flavor, Jinja, TemplateCache};
use super::secret::SecretShorthand;
use super::wdl::ast::{AstSpan, Expr, RefusedCall};
use super::wdl::eval::{Ctx, Fail};
use super::wdl::parser::parse_at;
use super::wdl::text::push_text;
use super::{Env, EvalError, Object, ParseError, Reference, Value};
use super::{reads, reference};
use std::sync::Arc;
use windlass_value::first_chars;

/// In which language the text of a template is written (docs/reference/expressions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Syntax {
    /// WDL if the text begins with a single `@` or contains `@{`. Jinja if it contains `{{` or `{%`.
    #[default]
    Loom,
    /// WDL only, for Logic Apps definitions. `{{` is plain text.
    Azure,
    /// Jinja only, for TEA. `@` is plain text.
    Jinja,
    /// Like [`Self::Jinja`], but values inside of a text are written as JSON. For canvases.
    Canvas,
}

/// Any JSON value whose strings may be templates. A clone is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(pub(super) Arc<Kind>);

/// What a template is: a value, an expression in one of the languages, or a list or map of templates.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Constant(Value),
    /// `@expression`: its value may have any type.
    Whole(Arc<str>, Expr),
    /// Text with `@{…}` in it.
    Parts(Arc<str>, Vec<TemplatePart>),
    Jinja(Arc<Jinja>),
    /// A data operation (`select`, `join`, …), whose parts are templates.
    Data(Box<Data>),
    /// A read of a value by a path, without a language.
    Binding(Box<Binding>),
    Array(Vec<Template>),
    Object(Vec<(Template, Template)>),
}

#[derive(Debug, PartialEq)]
pub(super) enum TemplatePart {
    Text(String),
    Expr(Expr),
}

impl Template {
    /// Parses one string. Text without an expression is a constant.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, ParseError> {
        Self::parse_cached(text, syntax, &TemplateCache::default())
    }

    /// Like [`Self::parse`], with a cache that all texts of a file share.
    pub fn parse_cached(
        text: &str,
        syntax: Syntax,
        cache: &TemplateCache,
    ) -> Result<Self, ParseError> {
        if let Some(shorthand) = SecretShorthand::of(text, syntax) {
            return Self::parse_text(&shorthand.text, syntax, cache).map_err(|error| {
                let place = shorthand.original_range(error.offset..error.offset + error.length);
                ParseError {
                    offset: place.start,
                    length: place.len().max(1),
                    ..error
                }
            });
        }
        Self::parse_text(text, syntax, cache)
    }

    fn parse_text(text: &str, syntax: Syntax, cache: &TemplateCache) -> Result<Self, ParseError> {
        match syntax {
            Syntax::Azure => wdl(text, false),
            Syntax::Jinja => jinja(text, Flavor::Tea, cache),
            Syntax::Canvas => jinja(text, Flavor::Canvas, cache),
            Syntax::Loom if is_wdl(text) || text.starts_with("@@") => wdl(text, true),
            Syntax::Loom => jinja(text, Flavor::Strict, cache),
        }
    }

    /// Makes a template that always has this value. Nothing in the value is parsed.
    #[must_use]
    pub fn constant(value: Value) -> Self {
        Self(Arc::new(Kind::Constant(value)))
    }

    /// Makes a list of templates. If all of them are constants, the list is a constant.
    #[must_use]
    pub fn array(items: Vec<Template>) -> Self {
        let constants: Option<Vec<Value>> = items
            .iter()
            .map(|item| item.as_constant().cloned())
            .collect();
        match constants {
            Some(values) => Self::constant(Value::array(values)),
            None => Self(Arc::new(Kind::Array(items))),
        }
    }

    /// Makes a map of templates.
    /// A key may be a template that returns text. If all keys and values are constants, the map is a constant; of
    /// equal keys, the last one is used.
    #[must_use]
    pub fn object(members: Vec<(Template, Template)>) -> Self {
        let constants: Option<Object> = members
            .iter()
            .map(|(key, value)| {
                let key = key_text(key.as_constant()?);
                Some((Arc::from(key), value.as_constant()?.clone()))
            })
            .collect();
        match constants {
            Some(map) => Self::constant(Value::object(map)),
            None => Self(Arc::new(Kind::Object(members))),
        }
    }

    /// Returns an object with further members. A template that is not an object is returned unchanged.
    #[must_use]
    pub fn with_members(&self, more: Vec<(Template, Template)>) -> Self {
        let mut members = match &*self.0 {
            Kind::Object(members) => members.clone(),
            Kind::Constant(Value::Object(map)) => {
                let pairs = map.iter();
                let pairs = pairs.map(|(key, value)| {
                    let key = Self::constant(Value::text(&**key));
                    (key, Self::constant(value.clone()))
                });
                pairs.collect()
            }
            _ => return self.clone(),
        };
        members.extend(more);
        Self::object(members)
    }

    /// Returns the value if the template is a constant.
    #[must_use]
    pub fn as_constant(&self) -> Option<&Value> {
        match &*self.0 {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the source as text, as its author wrote it.
    #[must_use]
    pub fn source_text(&self) -> String {
        self.source().to_text()
    }

    /// Returns the template as its author wrote it: every expression is its text.
    #[must_use]
    pub fn source(&self) -> Value {
        match &*self.0 {
            Kind::Constant(value) => value.clone(),
            Kind::Whole(text, _) | Kind::Parts(text, _) => Value::text(&**text),
            Kind::Jinja(jinja) => Value::text(&**jinja.text()),
            Kind::Data(data) => data.source(),
            Kind::Binding(binding) => binding.source(),
            Kind::Array(items) => Value::array(items.iter().map(Self::source).collect()),
            Kind::Object(members) => Value::from_pairs(
                members
                    .iter()
                    .map(|(key, value)| (key_text(&key.source()), value.source())),
            ),
        }
    }

    /// Returns what the template may read, sorted and without duplicates.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.sort();
        found.dedup();
        found
    }

    /// Returns the WDL expressions in a text, in order. Other templates have none.
    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let (whole, parts): (Option<&Expr>, &[TemplatePart]) = match &*self.0 {
            Kind::Whole(_, expr) => (Some(expr), &[]),
            Kind::Parts(_, parts) => (None, parts),
            _ => (None, &[]),
        };
        let within = parts.iter().filter_map(|part| match part {
            TemplatePart::Expr(expr) => Some(expr),
            TemplatePart::Text(_) => None,
        });
        whole.into_iter().chain(within)
    }

    /// Returns the calls that fail whenever they are evaluated, because the function does not accept the arguments.
    /// Each is returned with the reason, a hint, and its position in the text.
    #[must_use]
    pub fn refused_calls(&self) -> Vec<ParseError> {
        let mut found = Vec::new();
        self.expressions()
            .for_each(|expr| reference::collect_refused(expr, &mut found));
        let error = |(refused, place): (&RefusedCall, AstSpan)| ParseError {
            message: refused.why.clone(),
            offset: place.offset as usize,
            length: place.length as usize,
            hint: refused.hint.clone(),
        };
        found.into_iter().map(error).collect()
    }

    /// Returns the members of a top-level name that the template reads.
    /// Returns an empty list if the name of a member is computed or the top-level name is not read. Only Jinja texts,
    /// and lists and maps of them, are searched.
    #[must_use]
    pub fn members_of(&self, root: &str) -> Vec<String> {
        let mut found = match &*self.0 {
            Kind::Jinja(jinja) => jinja.members_of(root).to_vec(),
            Kind::Array(items) => items
                .iter()
                .flat_map(|item| item.members_of(root))
                .collect(),
            Kind::Object(members) => members
                .iter()
                .flat_map(|(key, value)| [key.members_of(root), value.members_of(root)])
                .flatten()
                .collect(),
            Kind::Constant(_)
            | Kind::Whole(..)
            | Kind::Parts(..)
            | Kind::Data(_)
            | Kind::Binding(_) => Vec::new(),
        };
        found.sort();
        found.dedup();
        found
    }

    /// Returns true if the template reads this environment variable without a default.
    /// Only Jinja texts, and lists and maps of them, are searched.
    #[must_use]
    pub fn needs_variable(&self, name: &str) -> bool {
        match &*self.0 {
            Kind::Jinja(jinja) => jinja
                .env_vars_without_default()
                .iter()
                .any(|bare| bare == name),
            Kind::Array(items) => items.iter().any(|item| item.needs_variable(name)),
            Kind::Object(members) => members
                .iter()
                .any(|(key, value)| key.needs_variable(name) || value.needs_variable(name)),
            Kind::Constant(_)
            | Kind::Whole(..)
            | Kind::Parts(..)
            | Kind::Data(_)
            | Kind::Binding(_) => false,
        }
    }

    /// Adds everything that the template reads from a run, with the values.
    pub(super) fn reads(&self, env: &dyn Env, found: &mut Vec<(String, Value)>) {
        match &*self.0 {
            Kind::Constant(_) => {}
            Kind::Whole(..) | Kind::Parts(..) => self
                .expressions()
                .for_each(|expr| reads::of_wdl(expr, env, found)),
            Kind::Binding(binding) => match binding.read(env) {
                Some(read) => found.push(read),
                None => reads::of_references(&self.references(), env, found),
            },
            Kind::Jinja(_) | Kind::Data(_) | Kind::Array(_) | Kind::Object(_) => {
                reads::of_references(&self.references(), env, found);
            }
        }
    }

    pub(super) fn collect(&self, found: &mut Vec<Reference>) {
        match &*self.0 {
            Kind::Constant(_) => {}
            Kind::Whole(..) | Kind::Parts(..) => self
                .expressions()
                .for_each(|expr| reference::collect(expr, found)),
            Kind::Jinja(jinja) => found.extend(jinja.references()),
            Kind::Data(data) => data.collect(found),
            Kind::Binding(binding) => binding.collect(found),
            Kind::Array(items) => items.iter().for_each(|item| item.collect(found)),
            Kind::Object(members) => {
                for (key, value) in members {
                    key.collect(found);
                    value.collect(found);
                }
            }
        }
    }

    /// Evaluates the template in `env`.
    pub fn eval(&self, env: &dyn Env) -> Result<Value, EvalError> {
        match &*self.0 {
            Kind::Constant(value) => Ok(value.clone()),
            Kind::Whole(text, expr) => {
                let mut ctx = Ctx::new(env);
                ctx.eval(expr)
                    .map_err(|fail| blame(*ctx.explain(fail), text))
            }
            Kind::Parts(text, parts) => {
                let mut ctx = Ctx::new(env);
                render(&mut ctx, parts).map_err(|fail| blame(*ctx.explain(fail), text))
            }
            Kind::Jinja(jinja) => jinja.eval(env),
            Kind::Data(data) => data.eval(env),
            Kind::Binding(binding) => binding.eval(env),
            Kind::Array(items) => {
                let values: Result<Vec<Value>, EvalError> =
                    items.iter().map(|item| item.eval(env)).collect();
                env.budget().charge(items.len())?;
                values.map(Value::array)
            }
            Kind::Object(members) => {
                env.budget().charge(members.len())?;
                let mut map = Object::with_capacity(members.len());
                for (key, value) in members {
                    let key = super::shared_key(&key_text(&key.eval(env)?));
                    map.insert(key, value.eval(env)?);
                }
                Ok(Value::object(map))
            }
        }
    }
}

/// Returns true if a text in Loom is WDL: it begins with a single `@`, or contains `@{`, unless Jinja's `{{` or `{%`
/// follows the `@`. A text that begins with `@@` is plain text.
#[must_use]
pub fn is_wdl(text: &str) -> bool {
    // No expression begins with a brace, but an expression or a block of Jinja may follow an `@`.
    let mut parts = text.split("@{").skip(1);
    let has_expression = parts.any(|part| !part.starts_with(['{', '%']));
    let one_at = text.starts_with('@') && !text.starts_with("@@") && !text.starts_with("@{");
    one_at || (has_expression && !text.starts_with("@@"))
}

/// Returns true if a text is a Jinja template.
/// A comment `{#` alone does not make it one, because shells use `${#list}`.
pub(super) fn is_jinja(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

pub(super) fn key_text(key: &Value) -> String {
    let mut text = String::new();
    push_text(&mut text, key);
    text
}

fn jinja(text: &str, flavor: Flavor, cache: &TemplateCache) -> Result<Template, ParseError> {
    if !is_jinja(text) {
        return Ok(Template::constant(Value::text(text)));
    }
    let compiled = cache.compile(text, flavor, false)?;
    Ok(Template(Arc::new(Kind::Jinja(compiled))))
}

/// Returns a hint about `rest`: the text after an expression, where the string should end.
fn after_an_expression(rest: &str, or_jinja: bool) -> String {
    let rest = rest.trim_start();
    let instead = [
        ("==", "equals(a, b)"),
        ("!=", "not(equals(a, b))"),
        (">=", "greaterOrEquals(a, b)"),
        ("<=", "lessOrEquals(a, b)"),
        (">", "greater(a, b)"),
        ("<", "less(a, b)"),
        ("&&", "and(a, b)"),
        ("and ", "and(a, b)"),
        ("||", "or(a, b)"),
        ("or ", "or(a, b)"),
        ("+", "add(a, b), or concat(a, b) for text"),
        ("-", "sub(a, b)"),
        ("*", "mul(a, b)"),
        ("/", "div(a, b)"),
        ("%", "mod(a, b)"),
    ];
    let found = instead
        .iter()
        .find(|(operator, _)| rest.starts_with(operator));
    match found {
        Some((operator, instead)) => {
            let or = if or_jinja {
                "; or Jinja, without `@`"
            } else {
                ""
            };
            format!("`{}` is unknown here: write {instead}{or}", operator.trim())
        }
        None => "inside text, write an expression as `@{…}`".into(),
    }
}

/// Parses a text in WDL: of Loom, or of a Logic Apps definition (see [`parse_at`]).
fn wdl(text: &str, is_loom: bool) -> Result<Template, ParseError> {
    // A single `@` is the letter itself, because it is not followed by an expression.
    if text == "@" {
        return Ok(Template::constant(Value::text(text)));
    }
    if let Some(literal) = text.strip_prefix('@').filter(|rest| rest.starts_with('@')) {
        return Ok(Template::constant(Value::text(literal)));
    }
    if text.starts_with('@') && !text.starts_with("@{") {
        let (expr, end) = parse_at(text, 1, is_loom).map_err(|mut error| {
            error.hint = error.hint.or_else(|| {
                let hint = "text that begins with `@` is an expression, see docs/reference/expressions.md; \
                            write `@@` for the letter";
                Some(hint.into())
            });
            error
        })?;
        let rest = text.get(end..).unwrap_or_default();
        if !rest.is_empty() {
            return Err(ParseError {
                message: format!(
                    "expected the end of the expression, found `{}`",
                    first_chars(rest, 20)
                ),
                offset: end,
                length: rest.len(),
                hint: Some(after_an_expression(rest, is_loom)),
            });
        }
        return Ok(Template(Arc::new(Kind::Whole(text.into(), expr))));
    }
    let parts = parts(text, is_loom)?;
    match parts.as_slice() {
        [] => Ok(Template::constant(Value::text(text))),
        [TemplatePart::Text(only)] => Ok(Template::constant(Value::text(only.as_str()))),
        _ => Ok(Template(Arc::new(Kind::Parts(text.into(), parts)))),
    }
}

/// Parses text with expressions in `@{…}`; `@@{` is the text `@{`.
fn parts(text: &str, is_loom: bool) -> Result<Vec<TemplatePart>, ParseError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("@{")) {
        let open = at + found;
        let before = text.get(at..open).unwrap_or_default();
        if let Some(prefix) = before.strip_suffix('@') {
            literal.push_str(prefix);
            literal.push_str("@{");
            at = open + 2;
            continue;
        }
        literal.push_str(before);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
        }
        let (expr, end) = parse_at(text, open + 2, is_loom)?;
        if !text.get(end..).is_some_and(|rest| rest.starts_with('}')) {
            let rest = text.get(end..).unwrap_or_default();
            let (message, length) = match rest.chars().next() {
                Some(letter) => (
                    format!("expected `}}`, found `{letter}`"),
                    letter.len_utf8(),
                ),
                None => ("this `@{` has no closing `}`".to_owned(), 1),
            };
            let offset = if rest.is_empty() { open } else { end };
            let hint = Some("write `@@{` for the letters themselves".to_owned());
            return Err(ParseError {
                message,
                offset,
                length,
                hint,
            });
        }
        parts.push(TemplatePart::Expr(expr));
        at = end + 1;
    }
    literal.push_str(text.get(at..).unwrap_or_default());
    if !literal.is_empty() {
        parts.push(TemplatePart::Text(literal));
    }
    Ok(parts)
}

fn render(ctx: &mut Ctx<'_>, parts: &[TemplatePart]) -> Result<Value, Box<Fail>> {
    let mut out = String::new();
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Expr(expr) => {
                let value = ctx.eval(expr)?;
                ctx.charge_rendering(&value)?;
                push_text(&mut out, &value);
            }
        }
    }
    Ok(Value::text(out))
}

/// Makes the error of a template from a failure in one of its strings.
pub(super) fn blame(fail: Fail, text: &str) -> EvalError {
    if let Some(nested_error) = fail.nested_error {
        return *nested_error;
    }
    let whole = AstSpan {
        offset: 0,
        length: u32::try_from(text.len()).unwrap_or(u32::MAX),
    };
    let place = fail.place.unwrap_or(whole);
    EvalError {
        message: fail.message,
        offset: place.offset as usize,
        length: (place.length as usize).max(1),
        missing: fail.missing.map(Box::new),
        text: text.to_owned(),
    }
}
