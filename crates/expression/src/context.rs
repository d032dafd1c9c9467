//! The pure part of `windlass eval`.
//! It makes an environment from a JSON context, and evaluates an expression, a template, a condition or a line of a
//! batch. It reads no file and no clock: the time is an argument.

use super::secret::callback_secret;
use super::template::{is_jinja, is_wdl};
use super::wdl::eval::{find_member, same_name};
use super::{
    ActionView, Budget, Condition, Env, EvalError, LAST_RUN, Lookup, Mode, Object, ParseError,
    Syntax, Template, Value,
};
use chrono::{DateTime, Utc};
use std::cell::Cell;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;
use windlass_value::did_you_mean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Text: an expression with or without its `@`, or a template.
    Expression,
    /// Any JSON value whose strings are templates.
    Template,
    /// A condition: text, the object form, or a boolean. Its value is a boolean.
    Condition,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TryError {
    /// The text is not a valid expression.
    #[error("{error}")]
    Parse {
        error: ParseError,
        /// The whole string with the mistake. It is shown above the caret.
        text: String,
    },
    #[error("{0}")]
    Eval(#[from] EvalError),
    /// The context or the line of a batch is not valid.
    #[error("{0}")]
    Context(String),
}

impl TryError {
    /// Returns the string with the mistake, and the mistake's offset and length in bytes.
    #[must_use]
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        match self {
            Self::Parse { error, text } => Some((text, error.offset, error.length)),
            Self::Eval(error) => Some((&error.text, error.offset, error.length)),
            Self::Context(_) => None,
        }
    }

    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Parse { error, .. } => error.hint.as_deref(),
            Self::Eval(_) | Self::Context(_) => None,
        }
    }

    /// Returns the message, the line of the text and a caret under the mistake.
    #[must_use]
    pub fn report(&self) -> String {
        let mut out = self.to_string();
        if let Some((text, offset, length)) = self.place() {
            let before = text.get(..offset).unwrap_or(text);
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let line = text.get(start..).unwrap_or_default();
            let line = line.lines().next().unwrap_or_default();
            let column = before.get(start..).map_or(0, UnicodeWidthStr::width);
            let blamed = text.get(offset..).unwrap_or_default();
            let blamed = blamed.get(..length.min(blamed.len())).unwrap_or(blamed);
            let width = blamed.lines().next().map_or(1, UnicodeWidthStr::width);
            let carets = "^".repeat(width.max(1));
            out.push_str(&format!("\n  {line}\n  {}{carets}", " ".repeat(column)));
        }
        if let Some(hint) = self.hint() {
            out.push_str(&format!("\n  hint: {hint}"));
        }
        out
    }
}

/// The keys of a context (docs/reference/expressions.md).
const KEYS: [&str; 20] = [
    "vars", "params", "inputs", "actions", "trigger", "item", "loops", "results", "workflow",
    "schedule", "current", "now", "mode", "env", "secrets", "state", "loop", "settings", "data",
    LAST_RUN,
];

/// Other names of keys, which are the names in expressions.
const ALIASES: [(&str, &str); 2] = [("variables", "vars"), ("parameters", "params")];

/// Returns the members of a context under their names in [`KEYS`]. Refuses an unknown key.
fn known_members(given: &Object) -> Result<Object, TryError> {
    let mut members = Object::with_capacity(given.len());
    for (key, value) in given {
        let alias = ALIASES.iter().find(|(alias, _)| **alias == **key);
        let name = alias.map_or(&**key, |(_, name)| *name);
        if !KEYS.contains(&name) {
            let known = KEYS.iter().chain(ALIASES.iter().map(|(alias, _)| alias));
            let hint = did_you_mean(key, known.copied()).map(|near| format!("; {near}"));
            return Err(TryError::Context(format!(
                "unknown key `{key}` in the context{} (expected one of: {})",
                hint.unwrap_or_default(),
                KEYS.join(", ")
            )));
        }
        if members.insert(name.into(), value.clone()).is_some() {
            let message = format!("the context has `{name}` twice, under two names");
            return Err(TryError::Context(message));
        }
    }
    Ok(members)
}

/// An environment whose values are from a JSON context (docs/reference/expressions.md).
#[derive(Debug)]
pub struct Context {
    members: Object,
    mode: Mode,
    now: DateTime<Utc>,
    random: Cell<u64>,
    budget: Budget,
}

impl Context {
    /// Reads a context: an object with any of the keys `vars` `params` `inputs` `actions` `trigger` `item` `loops`
    /// `results` `workflow` `schedule` `current` `state` `loop` `settings` `data` `env` `secrets` `now` `mode`.
    /// `variables` and `parameters` are other names of the first two. Null is an empty context. `now` is the time if
    /// the context has none; `seed` starts the generator for `rand` and `guid`.
    pub fn new(context: &Value, now: DateTime<Utc>, seed: u64) -> Result<Self, TryError> {
        let members = match context {
            Value::Null => Object::new(),
            Value::Object(map) => known_members(map)?,
            _ => return Err(TryError::Context("the context must be an object".into())),
        };
        let now = match members.get("now") {
            None | Some(Value::Null) => now,
            Some(given) => given.as_str().and_then(read_time).ok_or_else(|| {
                TryError::Context("`now` in the context must be an RFC 3339 time".into())
            })?,
        };
        let mode = match members.get("mode").map(|mode| (mode, mode.as_str())) {
            None | Some((Value::Null, _) | (_, Some("loom"))) => Mode::Loom,
            Some((_, Some("azure"))) => Mode::Azure,
            Some(_) => {
                let message = "`mode` in the context must be `loom` or `azure`";
                return Err(TryError::Context(message.into()));
            }
        };
        Ok(Self {
            members,
            mode,
            now,
            random: Cell::new(seed),
            budget: Budget::default(),
        })
    }

    /// Returns this context with another budget.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    fn syntax(&self) -> Syntax {
        match self.mode {
            Mode::Loom => Syntax::Loom,
            Mode::Azure => Syntax::Azure,
        }
    }

    /// Returns a member of one of the context's maps, ignoring the case of the name.
    fn look_up(&self, map: &str, name: &str) -> Option<&Value> {
        find_member(self.members.get(map)?.as_object()?, name)
    }

    fn names(&self, map: &str) -> Vec<String> {
        let map = self.members.get(map).and_then(Value::as_object);
        map.map(|map| map.keys().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn top(&self, name: &str) -> Value {
        self.members.get(name).cloned().unwrap_or_default()
    }

    /// Evaluates `value` as `subject`: an expression, a template or a condition.
    pub fn evaluate(&self, subject: Subject, value: &Value) -> Result<Value, TryError> {
        match subject {
            Subject::Expression => match value.as_str() {
                Some(text) => Ok(self.expression(text)?.eval(self)?),
                None => self.evaluate(Subject::Template, value),
            },
            Subject::Template => Ok(template(value, self.syntax())?.eval(self)?),
            Subject::Condition => {
                let condition = match value.as_str() {
                    Some(text) => {
                        Condition::parse(text, self.syntax()).map_err(|error| parse(error, text))?
                    }
                    None => Condition::from_template(template(value, self.syntax())?)
                        .map_err(|error| parse(error, &value.to_json()))?,
                };
                Ok(Value::Bool(condition.holds(self)?))
            }
        }
    }

    /// Parses an expression.
    /// A text that contains an expression is a template. Any other text is WDL. If it cannot be parsed as WDL and the
    /// mode is Loom, it is Jinja.
    fn expression(&self, text: &str) -> Result<Template, TryError> {
        let syntax = self.syntax();
        let templated = match syntax {
            Syntax::Azure => text.starts_with('@') || text.contains("@{"),
            Syntax::Loom | Syntax::Jinja | Syntax::Canvas => {
                text.starts_with('@') || is_wdl(text) || is_jinja(text)
            }
        };
        if templated {
            return Template::parse(text, syntax).map_err(|error| parse(error, text));
        }
        Template::parse(&format!("@{text}"), syntax).or_else(|mut error| {
            let jinja = (syntax == Syntax::Loom)
                .then(|| Template::parse(&format!("{{{{ {text} }}}}"), Syntax::Jinja));
            if let Some(Ok(template)) = jinja {
                return Ok(template);
            }
            error.offset = error.offset.saturating_sub(1);
            error.hint = None;
            Err(parse(error, text))
        })
    }
}

/// Evaluates one line of `--batch`: an object with `expr`, `template` or `cond`, and the keys of the context.
/// Returns `{"value": …}` or `{"error": …}`.
#[must_use]
pub fn evaluate_line(line: &str, now: DateTime<Utc>, seed: u64) -> Value {
    match try_line(line, now, seed) {
        Ok(value) => Value::from_pairs([("value", value)]),
        Err(error) => Value::from_pairs([("error", Value::text(error.to_string()))]),
    }
}

fn try_line(line: &str, now: DateTime<Utc>, seed: u64) -> Result<Value, TryError> {
    let request = Value::from_json(line)
        .map_err(|error| TryError::Context(format!("the line is not valid JSON: {error}")))?;
    let subjects = [
        ("expr", Subject::Expression),
        ("template", Subject::Template),
        ("cond", Subject::Condition),
    ];
    let subject = subjects
        .into_iter()
        .find_map(|(key, subject)| Some((key, subject, request.get(key)?)));
    let (Some((key, subject, value)), Some(map)) = (subject, request.as_object()) else {
        let message = "the line must be an object with `expr`, `template` or `cond`";
        return Err(TryError::Context(message.into()));
    };
    let mut context = map.clone();
    context.retain(|name, _| **name != *key);
    Context::new(&Value::object(context), now, seed)?.evaluate(subject, value)
}

fn parse(error: ParseError, text: &str) -> TryError {
    TryError::Parse {
        error,
        text: text.to_owned(),
    }
}

/// Parses a template from a JSON value. Every string in it is a template, including the keys of objects.
fn template(value: &Value, syntax: Syntax) -> Result<Template, TryError> {
    match value {
        Value::String(text) => Template::parse(text, syntax).map_err(|error| parse(error, text)),
        Value::Array(items) => {
            let items: Result<Vec<Template>, TryError> =
                items.iter().map(|item| template(item, syntax)).collect();
            Ok(Template::array(items?))
        }
        Value::Object(map) => {
            let members: Result<Vec<(Template, Template)>, TryError> = map
                .iter()
                .map(|(key, value)| {
                    let key = Template::parse(key, syntax).map_err(|error| parse(error, key))?;
                    Ok((key, template(value, syntax)?))
                })
                .collect();
            Ok(Template::object(members?))
        }
        other => Ok(Template::constant(other.clone())),
    }
}

fn read_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.with_timezone(&Utc))
}

fn view(name: &str, record: &Value) -> ActionView {
    let field = |key: &str| record.get(key).cloned().unwrap_or_default();
    let word = |key: &str, default: &str| {
        let found = record.get(key).and_then(Value::as_str);
        found.unwrap_or(default).to_owned()
    };
    ActionView {
        name: word("name", name),
        status: word("status", "Succeeded"),
        code: field("code"),
        inputs: field("inputs"),
        outputs: field("outputs"),
        error: field("error"),
        start_time: field("startTime"),
        end_time: field("endTime"),
        tracking_id: field("trackingId"),
        client_tracking_id: field("clientTrackingId"),
    }
}

/// Returns a member of an entry in `loops: {name: {item, index}}`.
/// An entry of another form is the item itself. If it is a whole number, it is also the index.
fn of_loop(entry: &Value, key: &str) -> Option<Value> {
    let described = entry.as_object().is_some_and(|map| {
        !map.is_empty() && map.keys().all(|key| matches!(&**key, "item" | "index"))
    });
    if described {
        entry.get(key).cloned()
    } else if key == "item" || matches!(entry, Value::Int(_)) {
        Some(entry.clone())
    } else {
        None
    }
}

impl Env for Context {
    fn mode(&self) -> Mode {
        self.mode
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.look_up("vars", name).cloned()
    }

    fn variable_names(&self) -> Vec<String> {
        self.names("vars")
    }

    fn action(&self, name: &str) -> Lookup<ActionView> {
        let map = self.members.get("actions").and_then(Value::as_object);
        let found = map.and_then(|map| map.iter().find(|(key, _)| same_name(key, name)));
        match found {
            Some((_, Value::Null)) => Lookup::NotRun,
            Some((key, record)) => Lookup::Found(view(key, record)),
            None => Lookup::Unknown(self.names("actions")),
        }
    }

    fn action_outputs(&self, name: &str) -> Lookup<Value> {
        match self.look_up("actions", name) {
            Some(Value::Null) => Lookup::NotRun,
            Some(record) => Lookup::Found(record.get("outputs").cloned().unwrap_or_default()),
            None => Lookup::Unknown(self.names("actions")),
        }
    }

    fn state(&self, name: &str) -> Option<Value> {
        self.look_up("state", name).cloned()
    }

    fn state_names(&self) -> Vec<String> {
        self.names("state")
    }

    fn last_run(&self) -> Value {
        self.top(LAST_RUN)
    }

    fn inputs(&self) -> Value {
        self.top("inputs")
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        self.look_up("params", name).cloned()
    }

    fn item(&self, of: Option<&str>) -> Option<Value> {
        match of {
            Some(name) => of_loop(self.look_up("loops", name)?, "item"),
            None => self.members.get("item").cloned(),
        }
    }

    fn iteration_index(&self, of: &str) -> Option<i64> {
        of_loop(self.look_up("loops", of)?, "index")?.as_int()
    }

    fn result(&self, scope: &str) -> Lookup<Value> {
        match self.look_up("results", scope) {
            Some(Value::Null) => Lookup::NotRun,
            Some(records) => Lookup::Found(records.clone()),
            None => Lookup::Unknown(self.names("results")),
        }
    }

    fn trigger(&self) -> Value {
        self.top("trigger")
    }

    fn workflow(&self) -> Value {
        self.top("workflow")
    }

    fn schedule(&self) -> Value {
        self.top("schedule")
    }

    fn current_action(&self) -> Option<ActionView> {
        let record = self
            .members
            .get("current")
            .filter(|record| !record.is_null())?;
        Some(view("", record))
    }

    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "state" | "loop" | "loops" | "settings" | "data" | LAST_RUN => {
                self.members.get(name).cloned()
            }
            "variables" => self.members.get("vars").cloned(),
            "inputs" | "actions" | "trigger" | "workflow" | "schedule" | "item" | "env"
            | "secrets" | "parameters" => None,
            name => {
                let maps = ["state", "vars"].into_iter();
                let mut maps = maps.filter_map(|map| self.members.get(map)?.as_object());
                maps.find_map(|map| map.get(name)).cloned()
            }
        }
    }

    fn root_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.members.keys().map(ToString::to_string).collect();
        names.extend(self.names("state"));
        names.extend(self.names("vars"));
        names
    }

    fn env_var(&self, name: &str) -> Option<String> {
        let value = self.members.get("env")?.get(name)?;
        value.as_str().map(str::to_owned)
    }

    fn secret(&self, name: &str) -> Option<Value> {
        self.members.get("secrets")?.get(name).cloned()
    }

    fn callback_url(&self, signal: &str, _valid: Duration) -> Option<Value> {
        self.secret(&callback_secret(signal))
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Returns the next number of SplitMix64: a sequence that depends only on the seed.
    fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
