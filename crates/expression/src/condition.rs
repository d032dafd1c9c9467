//! Conditions: text, or WDL's object form. What they give must be a boolean; Jinja's truth is
//! Python's.

use super::jinja::{Flavor, Jinja, TemplateCache};
use super::template::{Kind, Template, blame, is_jinja, is_wdl};
use super::wdl::ast::{AstSpan, Expr, Node};
use super::wdl::eval::{Ctx, describe};
use super::wdl::functions;
use super::{Env, EvalError, ParseError, Reference, Syntax, Value};
use std::sync::Arc;
use windlass_value::did_you_mean;

/// A test that gives true or false. A clone costs a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    test: Arc<Test>,
    negated: bool,
    /// What its value says.
    reading: ReadMode,
}

/// What a value of Jinja says as a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Its truth. Where operators do not take the kinds of their values, that counts as this; none: it is
    /// an error.
    Truth(Option<bool>),
    /// Its text: nothing and some words are false, and so is what operators do not take.
    Words,
}

#[derive(Debug, PartialEq)]
struct Test {
    text: String,
    kind: TestKind,
}

#[derive(Debug, PartialEq)]
enum TestKind {
    /// WDL or a constant: must give a boolean.
    Template(Template),
    /// Jinja: true as Python has it; negated where it was written with `!`.
    Jinja(Arc<Jinja>, bool),
    /// The object form.
    Object(Expr),
}

impl Condition {
    /// A condition from text: WDL, or a bare Jinja expression.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, ParseError> {
        Self::parse_cached(text, syntax, &TemplateCache::default())
    }

    /// The same as one of the texts of a file.
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
            Syntax::Graph => jinja(text, Flavor::Graph, cache)?,
        };
        Ok(Self::of(text.to_owned(), kind))
    }

    /// A condition from a value: WDL's object form, `{and: [{greater: [a, b]}, …]}`, already
    /// parsed to templates at its leaves; a boolean; or one template.
    pub fn from_template(template: Template) -> Result<Self, ParseError> {
        let source = template.source();
        let kind = match &*template.0 {
            Kind::Constant(Value::Object(map)) => {
                let mut members = map.iter();
                let only = members.next().filter(|_| map.len() == 1);
                let only = only.map(|(name, value)| (&**name, constant_arguments(name, value)));
                TestKind::Object(call(only, &source)?)
            }
            Kind::Object(members) => TestKind::Object(call(object_call(members), &source)?),
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

    /// Its opposite: the tree is negated, never the text.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negated = !self.negated;
        self
    }

    /// What it counts as where it compares or computes what cannot be, such as none and a number.
    #[must_use]
    pub fn with_ill_typed(mut self, holds: bool) -> Self {
        self.reading = ReadMode::Truth(Some(holds));
        self
    }

    /// Its text counts, in which nothing and the words false, 0, no and none are false.
    #[must_use]
    pub fn truth_by_words(mut self) -> Self {
        self.reading = ReadMode::Words;
        self
    }

    /// The text it was parsed from, for `status` and diagrams; also of a negated one.
    #[must_use]
    pub fn text(&self) -> String {
        self.test.text.clone()
    }

    /// What it may read: each once, in order.
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

    /// The calls in it that no function takes: see [`Template::refused_calls`].
    #[must_use]
    pub fn refused_calls(&self) -> Vec<ParseError> {
        match &self.test.kind {
            TestKind::Template(template) => template.refused_calls(),
            TestKind::Jinja(..) | TestKind::Object(_) => Vec::new(),
        }
    }

    /// What it reads from a run, as its author wrote it, each with its value: for `status`. What
    /// fails to evaluate is left out.
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

    /// Whether it holds in `env`.
    pub fn holds(&self, env: &dyn Env) -> Result<bool, EvalError> {
        let value = match &self.test.kind {
            TestKind::Jinja(jinja, flipped) => {
                let holds = jinja.holds(env, self.reading)?;
                return Ok((holds != *flipped) != self.negated);
            }
            TestKind::Template(template) => match &*template.0 {
                Kind::Jinja(jinja) => {
                    return Ok(jinja.holds(env, self.reading)? != self.negated);
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

/// TEA: a name alone is a key of the state, and what is not there is false.
fn is_key(text: &str) -> bool {
    const CONSTANTS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];
    let starts = |letter: char| letter.is_alphabetic() || letter == '_';
    text.starts_with(starts)
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_')
        && !CONSTANTS.contains(&text)
}

/// A mistake in the shape of a condition.
fn shape(message: String) -> ParseError {
    ParseError {
        message,
        offset: 0,
        length: 1,
        hint: None,
    }
}

type Call<'t> = (&'t str, Result<Vec<Expr>, ParseError>);

/// `{function: [arguments]}` with one member.
fn object_call(members: &[(Template, Template)]) -> Option<Call<'_>> {
    match members {
        [(name, arguments)] => {
            let name = name.as_constant()?.as_str()?;
            Some((name, template_arguments(name, arguments)))
        }
        _ => None,
    }
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

/// Functions that take no object.
const TAKE_NO_OBJECT: [&str; 7] = [
    "and",
    "or",
    "not",
    "greater",
    "greaterOrEquals",
    "less",
    "lessOrEquals",
];

/// Whether an argument of a function may be an object that is a value. Else an object of one member calls a
/// function, be its name misspelt. `equals` with a number or a text takes none: it would never hold.
fn takes_objects<'v>(of: &str, mut constants: impl Iterator<Item = &'v Value>) -> bool {
    if of.eq_ignore_ascii_case("equals") {
        return constants.all(|value| matches!(value, Value::Object(_) | Value::Null));
    }
    let mut none = TAKE_NO_OBJECT.iter();
    !none.any(|known| known.eq_ignore_ascii_case(of))
}

fn template_arguments(of: &str, template: &Template) -> Result<Vec<Expr>, ParseError> {
    match &*template.0 {
        Kind::Array(items) => {
            let constants = items.iter().filter_map(Template::as_constant);
            let objects = takes_objects(of, constants);
            items.iter().map(|item| operand(item, objects)).collect()
        }
        Kind::Constant(value) => constant_arguments(of, value),
        _ => Ok(vec![operand(template, takes_objects(of, [].iter()))?]),
    }
}

fn operand(template: &Template, objects: bool) -> Result<Expr, ParseError> {
    match &*template.0 {
        Kind::Constant(value) => constant_operand(value, objects),
        Kind::Object(members) => match object_call(members) {
            Some((name, arguments)) if !objects || functions::find(name).is_some() => {
                call(Some((name, arguments)), &Value::Null)
            }
            _ => Ok(node(Node::Template(template.clone()))),
        },
        _ => Ok(node(Node::Template(template.clone()))),
    }
}

fn constant_arguments(of: &str, value: &Value) -> Result<Vec<Expr>, ParseError> {
    match value {
        Value::Array(items) => {
            let objects = takes_objects(of, items.iter());
            let items = items.iter();
            items.map(|item| constant_operand(item, objects)).collect()
        }
        other => Ok(vec![constant_operand(other, takes_objects(of, [].iter()))?]),
    }
}

fn constant_operand(value: &Value, objects: bool) -> Result<Expr, ParseError> {
    let only = value
        .as_object()
        .filter(|map| map.len() == 1)
        .and_then(|map| map.first());
    match only {
        Some((name, arguments)) if !objects || functions::find(name).is_some() => {
            call(Some((name, constant_arguments(name, arguments))), value)
        }
        _ => Ok(node(Node::Literal(value.clone()))),
    }
}
