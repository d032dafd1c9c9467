//! Conditions: text, or WDL's object form. WDL must return a boolean; a Jinja value is true or false by Python's rules.

use super::jinja::{Flavor, Jinja, TemplateCache, single_expression};
use super::template::{Kind, Template, blame, is_jinja, is_wdl};
use super::wdl::ast::{AstSpan, Expr, Node};
use super::wdl::eval::{Ctx, describe};
use super::wdl::functions;
use super::{Env, EvalError, ParseError, Reference, Syntax, Value};
use std::sync::Arc;
use windlass_value::did_you_mean;

/// A test whose result is true or false. A clone is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    test: Arc<Test>,
    negated: bool,
    reading: ReadMode,
}

/// How a value of a Jinja expression becomes true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// By the rules of Python.
    /// The field is the result of the condition if an operator does not accept its operands. With `None`, this is an
    /// error.
    Truth(Option<bool>),
    /// By the text of the value: empty text and some words are false.
    /// If an operator does not accept its operands, the result is false.
    Words,
}

#[derive(Debug, PartialEq)]
struct Test {
    text: String,
    kind: TestKind,
}

#[derive(Debug, PartialEq)]
enum TestKind {
    /// WDL or a constant, which must return a boolean.
    Template(Template),
    /// A Jinja expression, by the rules of Python. The flag is true if the author negated the condition with a
    /// leading `!`.
    Jinja(Arc<Jinja>, bool),
    /// WDL's object form.
    Object(Expr),
}

impl Condition {
    /// Parses a condition from text: WDL, or a Jinja expression without braces.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, ParseError> {
        Self::parse_cached(text, syntax, &TemplateCache::default())
    }

    /// Like [`Self::parse`], with a cache that all texts of a file share.
    pub fn parse_cached(
        text: &str,
        syntax: Syntax,
        cache: &TemplateCache,
    ) -> Result<Self, ParseError> {
        let kind = match syntax {
            Syntax::Azure => wdl(text, syntax)?,
            Syntax::Loom if is_wdl(text) => wdl(text, syntax)?,
            Syntax::Loom => jinja(text, Flavor::Strict, cache)?,
            Syntax::Jinja => jinja(text, Flavor::Tea, cache)?,
            Syntax::Canvas => jinja(text, Flavor::Canvas, cache)?,
        };
        Ok(Self::of(text.to_owned(), kind))
    }

    /// Makes a condition from a template.
    /// The template is WDL's object form, `{and: [{greater: [a, b]}, …]}`, whose leaves are already parsed; or a
    /// boolean; or a single template.
    pub fn from_template(template: Template) -> Result<Self, ParseError> {
        let source = template.source();
        let kind = match &*template.0 {
            Kind::Constant(Value::Object(_)) | Kind::Object(_) => {
                TestKind::Object(call(object_call(&template), &source)?)
            }
            Kind::Constant(Value::Bool(_)) => TestKind::Template(template.clone()),
            Kind::Constant(other) => {
                return Err(shape(format!(
                    "a condition returns a boolean; {} does not",
                    describe(other)
                )));
            }
            Kind::Array(_) => return Err(shape("a condition cannot be a list".into())),
            Kind::Whole(..)
            | Kind::Parts(..)
            | Kind::Jinja(_)
            | Kind::Data(_)
            | Kind::Binding(_) => TestKind::Template(template.clone()),
        };
        let text = match source.as_str() {
            Some(text) => text.to_owned(),
            None => source.to_json(),
        };
        Ok(Self::of(text, kind))
    }

    #[must_use]
    pub fn never() -> Self {
        let never = Template::constant(Value::Bool(false));
        Self::of(String::from("false"), TestKind::Template(never))
    }

    fn of(text: String, kind: TestKind) -> Self {
        Self {
            test: Arc::new(Test { text, kind }),
            negated: false,
            reading: ReadMode::Truth(None),
        }
    }

    /// Returns the negated condition. Its text, for people, is unchanged.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negated = !self.negated;
        self
    }

    /// Sets the result for the case that an operator does not accept its operands, such as none in a comparison with
    /// a number.
    #[must_use]
    pub fn with_ill_typed(mut self, holds: bool) -> Self {
        self.reading = ReadMode::Truth(Some(holds));
        self
    }

    /// Changes the rules to those for text: empty text and the words false, 0, no and none are false.
    #[must_use]
    pub fn truth_by_words(mut self) -> Self {
        self.reading = ReadMode::Words;
        self
    }

    /// Returns the text that was parsed, for `status` and diagrams. A negated condition has the same text.
    #[must_use]
    pub fn text(&self) -> String {
        self.test.text.clone()
    }

    /// Returns what the condition may read, sorted and without duplicates.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        match &self.test.kind {
            TestKind::Template(template) => template.collect(&mut found),
            TestKind::Jinja(jinja, _) => found = jinja.references(),
            TestKind::Object(expr) => super::reference::collect(expr, &mut found),
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns the calls that always fail: see [`Template::refused_calls`].
    #[must_use]
    pub fn refused_calls(&self) -> Vec<ParseError> {
        match &self.test.kind {
            TestKind::Template(template) => template.refused_calls(),
            TestKind::Jinja(..) | TestKind::Object(_) => Vec::new(),
        }
    }

    /// Returns what the condition reads from a run, in the author's words, with the values.
    /// This is for `status`. A read that fails is omitted.
    #[must_use]
    pub fn reads(&self, env: &dyn Env) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        match &self.test.kind {
            TestKind::Template(template) => template.reads(env, &mut found),
            TestKind::Jinja(jinja, _) => {
                super::reads::of_references(&jinja.references(), env, &mut found);
            }
            TestKind::Object(expr) => super::reads::of_wdl(expr, env, &mut found),
        }
        found
    }

    /// Returns true if the condition holds in `env`.
    pub fn holds(&self, env: &dyn Env) -> Result<bool, EvalError> {
        let value = match &self.test.kind {
            TestKind::Jinja(jinja, flipped) => {
                let holds = jinja.is_true(env, self.reading)?;
                return Ok((holds != *flipped) != self.negated);
            }
            TestKind::Template(template) => match &*template.0 {
                Kind::Jinja(jinja) => {
                    return Ok(jinja.is_true(env, self.reading)? != self.negated);
                }
                _ => template.eval(env)?,
            },
            TestKind::Object(expr) => {
                let mut ctx = Ctx::new(env);
                ctx.eval(expr)
                    .map_err(|fail| blame(*ctx.explain(fail), &self.test.text))?
            }
        };
        match value {
            Value::Bool(value) => Ok(value != self.negated),
            other => Err(EvalError {
                message: format!("a condition returns a boolean, not {}", describe(&other)),
                offset: 0,
                length: self.test.text.len().max(1),
                text: self.test.text.clone(),
                missing: None,
            }),
        }
    }
}

/// Returns true if a text is a Jinja template whose value is a text: it is more than a single `{{ … }}`. As a condition,
/// such a text is true unless it is empty.
fn is_text_template(text: &str) -> bool {
    is_jinja(text) && single_expression(text).is_none()
}

/// Returns `@f()` for a text that is only `@{f()}`, whose value is a text.
#[must_use]
pub fn interpolated_condition(text: &str) -> Option<String> {
    let inside = text.trim().strip_prefix("@{")?.strip_suffix('}')?;
    (!inside.contains('}') && is_wdl(text)).then(|| format!("@{inside}"))
}

/// Returns what is wrong with a condition of Loom whose value is a text, and how to write it.
#[must_use]
pub fn text_condition(text: &str) -> Option<(&'static str, String)> {
    if let Some(meant) = interpolated_condition(text) {
        let what = "is a text, and a condition returns a boolean";
        return Some((what, format!("write {meant}")));
    }
    if is_wdl(text) || !is_text_template(text) {
        return None;
    }
    let meant = without_braces(text);
    let meant = meant.filter(|meant| Condition::parse(meant, Syntax::Loom).is_ok());
    let hint = match meant {
        Some(meant) => format!("a condition has no braces: {meant}"),
        None => String::from("a condition is one expression: variables.n > 5"),
    };
    Some(("is a text, and a text is true unless it is empty", hint))
}

/// Returns the condition that an author probably means by a template with text around its expressions, for example
/// `n > 5` for `{{ n }} > 5`. Returns `None` for other templates,
/// and for those with blocks or comments.
#[must_use]
pub fn without_braces(text: &str) -> Option<String> {
    if text.contains("{%") || text.contains("{#") || !is_text_template(text) {
        return None;
    }
    let (mut meant, mut rest, mut has_text) = (String::new(), text, false);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}")?;
        let inside = inside.trim();
        // A value in quotes, as in a shell: '{{ status }}' == 'done'.
        let quote = before
            .chars()
            .next_back()
            .filter(|last| "'\"".contains(*last));
        let quoted =
            quote.and_then(|quote| Some((before.strip_suffix(quote)?, after.strip_prefix(quote)?)));
        let (before, after) = quoted.unwrap_or((before, after));
        has_text |= !before.trim().is_empty() || quoted.is_some();
        let is_path = |char: char| char.is_alphanumeric() || "_.[]'\"".contains(char);
        meant.push_str(before);
        match inside.chars().all(is_path) {
            true => meant.push_str(inside),
            false => meant.extend(["(", inside, ")"]),
        }
        rest = after;
    }
    has_text |= !rest.trim().is_empty();
    meant.push_str(rest);
    (has_text && rest.len() < text.len()).then(|| meant.trim().to_owned())
}

fn wdl(text: &str, syntax: Syntax) -> Result<TestKind, ParseError> {
    let template = Template::parse(text, syntax)?;
    match template.as_constant() {
        None | Some(Value::Bool(_)) => Ok(TestKind::Template(template)),
        Some(_) => Err(ParseError {
            message: "the condition is plain text".into(),
            offset: 0,
            length: text.len().max(1),
            hint: Some(match Template::parse(&format!("@{text}"), syntax) {
                Ok(_) => format!("did you mean `@{text}`?"),
                Err(_) => "for example @equals(variables('x'), 1)".to_owned(),
            }),
        }),
    }
}

fn jinja(text: &str, flavor: Flavor, cache: &TemplateCache) -> Result<TestKind, ParseError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(shape("the condition is empty".into()));
    }
    let compiled = |text: &str, bare, flipped| {
        let compiled = cache.compile(text, flavor, bare)?;
        Ok(TestKind::Jinja(compiled, flipped))
    };
    if is_jinja(text) {
        return compiled(text, false, false);
    }
    let word = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let (bare, flipped) = match trimmed.strip_prefix('!') {
        Some(bare) => (bare.trim_start(), true),
        None => (trimmed, false),
    };
    if flavor == Flavor::Tea && is_key(bare) {
        let key = format!("state.get('{bare}', false)");
        return compiled(&key, true, flipped);
    }
    match trimmed.strip_prefix('!').map(str::trim_start) {
        Some(name) if word(name) => {
            let start = text.len() - text.trim_start().len();
            let skipped = start + trimmed.len() - name.len();
            let blank = " ".repeat(skipped);
            compiled(&format!("{blank}{name}"), true, true)
        }
        _ => compiled(text, true, false),
    }
}

/// Returns true if a text is a single name. In TEA, this is a key of the state, and a missing key is false.
fn is_key(text: &str) -> bool {
    const CONSTANTS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];
    let starts = |letter: char| letter.is_alphabetic() || letter == '_';
    text.starts_with(starts)
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_')
        && !CONSTANTS.contains(&text)
}

/// Makes the error for a condition of the wrong shape.
fn shape(message: String) -> ParseError {
    ParseError {
        message,
        offset: 0,
        length: 1,
        hint: None,
    }
}

type Call<'t> = (&'t str, Result<Vec<Expr>, ParseError>);

/// Returns the call that `{function: [arguments]}`, a map with one member, represents.
fn object_call(template: &Template) -> Option<Call<'_>> {
    let (name, arguments) = match &*template.0 {
        Kind::Object(members) => match &**members {
            [(name, arguments)] => (name.as_constant()?.as_str()?, arguments.clone()),
            _ => return None,
        },
        Kind::Constant(Value::Object(map)) if map.len() == 1 => {
            let (name, arguments) = map.first()?;
            (&**name, Template::constant(arguments.clone()))
        }
        _ => return None,
    };
    Some((name, template_arguments(name, &arguments)))
}

fn call(found: Option<Call<'_>>, source: &Value) -> Result<Expr, ParseError> {
    let Some((name, arguments)) = found else {
        let keys: Vec<&str> = source
            .as_object()
            .map(|map| map.keys().map(|key| &**key).collect())
            .unwrap_or_default();
        if keys.is_empty() {
            return Err(ParseError {
                hint: Some(
                    r#"a condition is an object with one function: {"equals": [1, 2]}"#.into(),
                ),
                ..shape("the condition is empty".into())
            });
        }
        return Err(ParseError {
            hint: Some("combine several with `and` or `or`".into()),
            ..shape(format!(
                "a condition has one function; here are: {}",
                keys.join(", ")
            ))
        });
    };
    let Some(function) = functions::find(name) else {
        return Err(ParseError {
            hint: did_you_mean(name, functions::names()),
            ..shape(format!("unknown function `{name}` in the condition"))
        });
    };
    let arguments = arguments?;
    match function.arity_error(arguments.len()) {
        Some(message) => Err(shape(message)),
        None => Ok(node(Node::Call(function, arguments))),
    }
}

fn node(node: Node) -> Expr {
    Expr {
        node,
        place: AstSpan::default(),
    }
}

/// Functions whose arguments are never objects as values.
const TAKE_NO_OBJECT: [&str; 7] = [
    "and",
    "or",
    "not",
    "greater",
    "greaterOrEquals",
    "less",
    "lessOrEquals",
];

/// Returns true if an argument of this function may be an object as a value. Otherwise, an object with one member is a
/// call, so a misspelt function is reported. If another argument of `equals` is a number or a text, an object is not a
/// possible value either, because `equals` would then never be true.
fn takes_objects<'v>(of: &str, mut constants: impl Iterator<Item = &'v Value>) -> bool {
    if of.eq_ignore_ascii_case("equals") {
        return constants.all(|value| matches!(value, Value::Object(_) | Value::Null));
    }
    let mut none = TAKE_NO_OBJECT.iter();
    !none.any(|known| known.eq_ignore_ascii_case(of))
}

fn template_arguments(of: &str, template: &Template) -> Result<Vec<Expr>, ParseError> {
    let items = match &*template.0 {
        Kind::Array(items) => items.clone(),
        Kind::Constant(Value::Array(items)) => {
            items.iter().cloned().map(Template::constant).collect()
        }
        _ => return Ok(vec![operand(template, takes_objects(of, [].iter()))?]),
    };
    let objects = takes_objects(of, items.iter().filter_map(Template::as_constant));
    items.iter().map(|item| operand(item, objects)).collect()
}

fn operand(template: &Template, objects: bool) -> Result<Expr, ParseError> {
    match (object_call(template), &*template.0) {
        (Some((name, arguments)), _) if !objects || functions::find(name).is_some() => {
            call(Some((name, arguments)), &Value::Null)
        }
        (_, Kind::Constant(value)) => Ok(node(Node::Literal(value.clone()))),
        _ => Ok(node(Node::Template(template.clone()))),
    }
}
