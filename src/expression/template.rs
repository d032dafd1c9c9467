//! Templates and conditions: parsed once when the workflow is loaded, evaluated many times.

use super::{Env, EvalError, ParseError, Value};

/// How the text of a template is to be read (spec: expressions.md, "Which one").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Syntax {
    /// WDL where it begins with `@` or holds `@{`, Jinja where it holds `{{` or `{%`.
    #[default]
    Loom,
    /// WDL only; `{{` is plain text. A Logic Apps definition.
    Azure,
    /// Jinja only; `@` is plain text. TEA and canvas.
    Jinja,
}

/// Any JSON value whose strings may be templates.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    constant: Value,
}

/// Something an expression mentions by a literal name; for linking, lints and hints.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// `variables('x')`, Jinja `variables.x`.
    Variable(String),
    /// `body('x')`, `outputs('x')`, `actions('x')`, Jinja `actions.x`.
    Action(String),
    /// `result('scope')`.
    Scope(String),
    /// `inputs('x')`, `inputs.x`.
    Input(String),
    /// `items('loop')`, `iterationIndexes('loop')`.
    Loop(String),
    /// `parameters('x')`.
    Parameter(String),
    /// A Jinja name at the top that is none of these.
    Root(String),
    /// A call or a computed name: anything may be read.
    Anything,
}

impl Template {
    /// Parses one string.
    ///
    /// # Errors
    /// [`ParseError`] with the place inside `text`.
    pub fn parse(text: &str, _syntax: Syntax) -> Result<Self, ParseError> {
        Ok(Self {
            constant: Value::text(text),
        })
    }

    /// A template that is always this value; nothing inside is parsed.
    #[must_use]
    pub fn constant(value: Value) -> Self {
        Self { constant: value }
    }

    /// A list of templates.
    #[must_use]
    pub fn array(items: Vec<Template>) -> Self {
        Self::constant(Value::array(
            items.into_iter().map(|item| item.constant).collect(),
        ))
    }

    /// A map of templates; a key may itself be a template that gives text.
    #[must_use]
    pub fn object(members: Vec<(Template, Template)>) -> Self {
        let pairs = members.into_iter().map(|(key, value)| {
            (
                key.constant.as_str().unwrap_or_default().to_owned(),
                value.constant,
            )
        });
        Self::constant(Value::from_pairs(pairs))
    }

    /// The value, when nothing has to be evaluated for it.
    #[must_use]
    pub fn as_constant(&self) -> Option<&Value> {
        Some(&self.constant)
    }

    /// What it may read.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        Vec::new()
    }

    /// The value of this template in `env`.
    ///
    /// # Errors
    /// [`EvalError`] with the place inside the string to blame.
    pub fn eval(&self, _env: &dyn Env) -> Result<Value, EvalError> {
        Ok(self.constant.clone())
    }
}

/// A test that gives true or false.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    template: Template,
}

impl Condition {
    /// A condition from text: WDL, or a bare Jinja expression.
    ///
    /// # Errors
    /// [`ParseError`] with the place inside `text`.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, ParseError> {
        Template::parse(text, syntax).map(|template| Self { template })
    }

    /// A condition from WDL's object form, `{and: [{greater: [a, b]}, …]}`, already parsed to
    /// templates at its leaves.
    ///
    /// # Errors
    /// [`ParseError`] when the shape is none.
    pub fn from_template(template: Template) -> Result<Self, ParseError> {
        Ok(Self { template })
    }

    /// Its opposite: the tree is negated, never the text.
    #[must_use]
    pub fn negated(self) -> Self {
        self
    }

    /// The text it was parsed from, for `status` and diagrams.
    #[must_use]
    pub fn text(&self) -> String {
        self.template.constant.to_json()
    }

    /// What it may read.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        self.template.references()
    }

    /// Whether it holds in `env`.
    ///
    /// # Errors
    /// [`EvalError`], also when the value is no boolean where one is required.
    pub fn holds(&self, env: &dyn Env) -> Result<bool, EvalError> {
        Ok(matches!(self.template.eval(env)?, Value::Bool(true)))
    }
}
