//! Evaluates a tree. Values are shared: reading one member of a large body never copies the body. Work and output are
//! charged, and an expression that exceeds a limit fails.

use super::ast::{AstSpan, Expr, Node, Step};
use super::functions::{Args, Run};
use super::text::text_size;
use crate::error::Missing;
use crate::{Budget, BudgetExceeded, Env, EvalError, MAX_DEPTH, Mode, Object, Value};
use windlass_value::{did_you_mean, members, shortened};

/// Maximum number of nodes that one expression evaluates and elements that it inspects.
pub(crate) const MAX_STEPS: usize = 2_000_000;
/// Maximum size in bytes of the new text and elements of one expression.
pub(crate) const MAX_BYTES: usize = 32 << 20;

/// Why an evaluation stopped.
#[derive(Debug)]
pub(crate) struct Fail {
    pub message: String,
    pub place: Option<AstSpan>,
    /// The index of the argument to blame, from 0, until the call adds its position.
    pub argument: Option<usize>,
    /// The error of a nested template, with its own text and position.
    pub nested_error: Option<Box<EvalError>>,
    /// The missing value, if that is the reason.
    pub missing: Option<Missing>,
}

impl Fail {
    pub(crate) fn new(message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            message: message.into(),
            place: None,
            argument: None,
            nested_error: None,
            missing: None,
        })
    }

    /// Makes the failure to read a missing value; [`Ctx::path`] adds its path.
    fn missing(message: String) -> Box<Self> {
        let mut fail = Self::new(message);
        fail.missing = Some(Missing::default());
        fail
    }

    pub(crate) fn argument(index: usize, message: impl Into<String>) -> Box<Self> {
        let mut fail = Self::new(message);
        fail.argument = Some(index);
        fail
    }

    /// Returns this failure, blamed on an argument.
    pub(crate) fn blame(mut self: Box<Self>, index: usize) -> Box<Self> {
        self.argument = Some(index);
        self
    }
}

impl From<BudgetExceeded> for Box<Fail> {
    fn from(exceeded: BudgetExceeded) -> Self {
        Fail::new(exceeded.to_string())
    }
}

pub(crate) type Outcome<T = Value> = Result<T, Box<Fail>>;

pub(crate) struct Ctx<'e> {
    pub env: &'e dyn Env,
    budget: &'e Budget,
    steps: usize,
    bytes: usize,
    /// Whether the last value is the null of an action that has not run.
    unrun: bool,
    /// The name of the first action that was read as null.
    unrun_name: Option<String>,
}

impl<'e> Ctx<'e> {
    pub(crate) fn new(env: &'e dyn Env) -> Self {
        Self {
            env,
            budget: env.budget(),
            steps: 0,
            bytes: 0,
            unrun: false,
            unrun_name: None,
        }
    }

    /// Charges work: nodes, or elements that a function inspects.
    pub(crate) fn charge_work(&mut self, steps: usize) -> Outcome<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(Fail::new(format!(
                "the expression needs more than {MAX_STEPS} steps"
            )));
        }
        Ok(self.budget.charge(steps)?)
    }

    /// Charges a text that a function reads once.
    pub(crate) fn charge_scan(&mut self, text: &str) -> Outcome<()> {
        // A text that is not ASCII is read letter by letter.
        let each = if text.is_ascii() { 64 } else { 8 };
        Ok(self.budget.charge(text.len() / each)?)
    }

    /// Charges a text that a function parses byte by byte, such as JSON.
    pub(crate) fn charge_parse(&mut self, text: &str) -> Outcome<()> {
        Ok(self.budget.charge(text.len() / 4)?)
    }

    /// Charges output before it is made.
    pub(crate) fn charge_output(&mut self, bytes: usize) -> Outcome<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            return Err(Fail::new(format!(
                "the expression produces more than {} MiB",
                MAX_BYTES >> 20
            )));
        }
        Ok(self.budget.charge(bytes / 32)?)
    }

    /// Charges a value before it is written as text.
    pub(crate) fn charge_rendering(&mut self, value: &Value) -> Outcome<()> {
        let bytes = text_size(value);
        self.charge_output(bytes)?;
        match value {
            Value::Array(_) | Value::Object(_) => Ok(self.budget.charge(bytes / 16)?),
            _ => Ok(()),
        }
    }

    /// Charges a new value. A value that is in the run already is only shared, and costs nothing.
    pub(crate) fn charge_value(&mut self, value: &Value) -> Outcome<()> {
        Ok(self.budget.charge(value.fresh_nodes())?)
    }

    /// Charges new elements of a list or a map.
    pub(crate) fn charge_elements(&mut self, count: usize) -> Outcome<()> {
        self.charge_work(count)?;
        self.charge_output(count.saturating_mul(size_of::<Value>()))
    }

    /// Charges a text that a function made, and returns it as a value.
    pub(crate) fn text(&mut self, text: impl Into<String>) -> Outcome {
        let text = text.into();
        self.charge_output(text.len())?;
        Ok(Value::text(text))
    }

    /// Returns a new container. It fails if the value nests so deep that the store could not read it.
    pub(crate) fn nested(&mut self, value: Value) -> Outcome {
        let mut level: Vec<&Value> = vec![&value];
        for _ in 0..=MAX_DEPTH {
            self.charge_work(level.len())?;
            level = level
                .into_iter()
                .flat_map(|value| -> Box<dyn Iterator<Item = &Value>> {
                    match value {
                        Value::Array(items) => Box::new(items.iter()),
                        Value::Object(map) => Box::new(map.values()),
                        _ => Box::new(std::iter::empty()),
                    }
                })
                .filter(|value| matches!(value, Value::Array(_) | Value::Object(_)))
                .collect();
            if level.is_empty() {
                return Ok(value);
            }
        }
        Err(Fail::new(format!(
            "the value nests deeper than {MAX_DEPTH} levels"
        )))
    }

    /// Returns null for an action that has not run, in an evaluation that allows this.
    pub(crate) fn unrun(&mut self, name: &str) -> Value {
        self.unrun = true;
        if self.unrun_name.is_none() {
            self.unrun_name = Some(name.to_owned());
        }
        Value::Null
    }

    /// Adds to an error that an action which has not run may be the cause.
    pub(crate) fn explain(&self, mut fail: Box<Fail>) -> Box<Fail> {
        if let Some(name) = &self.unrun_name {
            fail.message = format!(
                "{}; action `{name}` has not run yet, so it reads as null",
                fail.message
            );
        }
        fail
    }

    pub(crate) fn eval(&mut self, expr: &Expr) -> Outcome {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.charge_work(0)?;
        }
        self.budget.charge(1)?;
        self.unrun = false;
        match &expr.node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Refused(refused) => {
                let hint = refused.hint.as_deref();
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let mut fail = Fail::new(format!("{}{hint}", refused.why));
                fail.place = Some(expr.place);
                Err(fail)
            }
            Node::Path(base, steps) => self.path(base, steps),
            Node::Template(template) => template.eval(self.env).map_err(|error| {
                let mut fail = Fail::new(error.message.clone());
                fail.nested_error = Some(Box::new(error));
                fail
            }),
            Node::Call(function, arguments) => {
                let outcome = match function.run {
                    Run::Lazy(run) => run(self, arguments),
                    Run::Eager(run) => {
                        let mut values = Vec::with_capacity(arguments.len());
                        for argument in arguments {
                            values.push(self.eval(argument)?);
                        }
                        self.unrun = false;
                        if function.charges_text_arguments {
                            for text in values.iter().filter_map(Value::as_str) {
                                self.charge_scan(text)?;
                            }
                        }
                        run(self, &Args { function, values })
                    }
                };
                outcome.map_err(|mut fail| {
                    if fail.place.is_none() {
                        let blamed = fail.argument.and_then(|index| arguments.get(index));
                        fail.place = Some(blamed.map_or(expr.place, |argument| argument.place));
                    }
                    fail
                })
            }
        }
    }

    /// Charges a search for a name without regard to case.
    pub(crate) fn charge_search(&mut self, map: &Object, name: &str) -> Outcome<()> {
        let each = if name.is_ascii() { 1 } else { 1 + name.len() };
        self.charge_work((map.len() / 8).saturating_mul(each))
    }

    /// Charges the search for a name, if a map does not have the exact name.
    fn charge_look_up(&mut self, base: &Value, name: &str) -> Outcome<()> {
        match base {
            Value::Object(map) if !map.contains_key(name) => self.charge_search(map, name),
            _ => Ok(()),
        }
    }

    fn path(&mut self, base: &Expr, steps: &[Step]) -> Outcome {
        let mut value = self.eval(base)?;
        let unrun = self.unrun;
        for (at, step) in steps.iter().enumerate() {
            let found = match step.key.literal_text() {
                Some(name) if !unrun => {
                    self.charge_look_up(&value, name)?;
                    self.member(&value, name, step.safe)
                }
                Some(_) => Ok(Value::Null),
                None => {
                    let key = self.eval(&step.key)?;
                    if unrun {
                        Ok(Value::Null)
                    } else {
                        match key.as_str() {
                            Some(name) => {
                                self.charge_look_up(&value, name)?;
                                self.member(&value, name, step.safe)
                            }
                            None => item(&value, &key, step.safe),
                        }
                    }
                }
            };
            value = found.map_err(|mut fail| {
                fail.place = Some(step.place);
                if let Some(missing) = &mut fail.missing {
                    *missing = missing_step(base, steps, at, &value);
                }
                fail
            })?;
        }
        self.unrun = unrun;
        Ok(value)
    }
}

impl Ctx<'_> {
    /// Returns a member by its name. In Azure, a name with slashes that no member has is a path to a nested member:
    /// `outputs('x')?['body/value']`.
    fn member(&mut self, base: &Value, name: &str, safe: bool) -> Outcome {
        let way = name.contains('/') && self.env.mode() == Mode::Azure;
        let deeper = |map: &Object| find_member(map, name).is_none();
        if !(way && base.as_object().is_some_and(deeper)) {
            return member(base, name, safe);
        }
        let mut value = base.clone();
        for part in name.split('/') {
            self.charge_look_up(&value, part)?;
            value = member(&value, part, safe)?;
        }
        Ok(value)
    }
}

/// Returns the missing step of a path. `value` is the value of the steps before it.
fn missing_step(base: &Expr, steps: &[Step], at: usize, value: &Value) -> Missing {
    let mut object = base.to_string();
    let mut path = object.clone();
    for step in steps.iter().take(at + 1) {
        object.clone_from(&path);
        path.push_str(&step.to_string());
    }
    let members = value
        .as_object()
        .map(|map| map.keys().map(|key| key.to_string()).collect());
    Missing {
        path,
        object: members.map(|members| (object, members)),
    }
}

/// Returns true if two names are equal without regard to case.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// Returns a member of a map by its name without regard to case. The exact name has precedence.
pub(crate) fn find_member<'m>(map: &'m Object, name: &str) -> Option<&'m Value> {
    map.get(name).or_else(|| {
        map.iter()
            .find(|(key, _)| same_name(key, name))
            .map(|(_, value)| value)
    })
}

/// Evaluates `base.name` or `base['name']`.
fn member(base: &Value, name: &str, safe: bool) -> Outcome {
    match base {
        Value::Object(map) => match find_member(map, name) {
            Some(value) => Ok(value.clone()),
            None if safe => Ok(Value::Null),
            None => {
                let hint = did_you_mean(name, map.keys()).unwrap_or_else(|| {
                    let there = members(map.keys().map(|key| &**key));
                    format!("write `?` before it if it may be missing; {there}")
                });
                Err(Fail::missing(format!(
                    "the object has no member `{name}`; {hint}"
                )))
            }
        },
        Value::Null if safe => Ok(Value::Null),
        Value::Null => Err(Fail::missing(format!(
            "null has no member `{name}`; write `?` before it if null is expected"
        ))),
        Value::Array(_) => Err(Fail::new(format!(
            "an array has no member `{name}`; its elements are selected by number"
        ))),
        other => Err(Fail::new(format!(
            "{} has no member `{name}`",
            describe(other)
        ))),
    }
}

/// Evaluates `base[key]` with a key that is not text.
fn item(base: &Value, key: &Value, safe: bool) -> Outcome {
    let Some(index) = key.as_int() else {
        return Err(Fail::new(format!(
            "a member is selected by text or a whole number, not by {}",
            describe(key)
        )));
    };
    match base {
        Value::Array(items) => {
            let found = usize::try_from(index)
                .ok()
                .and_then(|index| items.get(index));
            match found {
                Some(value) => Ok(value.clone()),
                None if safe => Ok(Value::Null),
                None => Err(Fail::missing(format!(
                    "index {index} is out of range: the array has {} elements",
                    items.len()
                ))),
            }
        }
        Value::Null if safe => Ok(Value::Null),
        Value::Null => Err(Fail::missing(format!(
            "null has no element {index}; write `?` before it if null is expected"
        ))),
        other => Err(Fail::new(format!(
            "{} has no element {index}; only arrays have",
            describe(other)
        ))),
    }
}

/// Describes a value in an error message: its kind, and the value itself if it is short.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Int(value) => format!("the integer {value}"),
        Value::Float(_) | Value::Decimal(_) => format!("the number {}", value.to_json()),
        Value::String(text) => format!("the text '{}'", shortened(text, 40)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(map) => format!("an object of {}", map.len()),
        Value::Secure(_) => "a secure value".into(),
    }
}
