//! What a `waitForSignal` asks people, and which answers it accepts.

use super::Name;
use std::fmt;
use std::sync::Arc;
use windlass_expression::{Budget, Object, Schema, Template, Value};
use windlass_value::time::Timestamp;

/// The member of an answer that has the selected choice.
pub const CHOICE: &str = "choice";

/// The member of an answer that has the name of its sender.
pub const ANSWERED_BY: &str = "answeredBy";

/// The budget for checking an answer, in units of work: some 5 ms.
const WORK: u64 = 100_000;

/// A signal that a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct AwaitedSignal {
    pub name: Name,
    /// The question to people. Without a question, any payload is accepted.
    pub question: Option<Arc<Question>>,
}

impl AwaitedSignal {
    /// Returns a signal that accepts any payload.
    #[must_use]
    pub fn any(name: Name) -> Self {
        Self {
            name,
            question: None,
        }
    }
}

/// A question to people.
#[derive(Debug, PartialEq)]
pub struct Question {
    /// The text of the question, evaluated when the wait begins.
    pub title: Option<Template>,
    /// Which answers are accepted.
    pub form: Form,
}

/// Which answers a question accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// The choices. If there are none, an answer has no choice.
    pub choices: Vec<Name>,
    /// The JSON Schema of the members other than the choice.
    pub schema: Option<Arc<Schema>>,
}

impl Form {
    /// Returns an answer in the form that the run receives. If there are choices or a schema, this is always an
    /// object.
    /// An answer that is a text counts as the choice.
    ///
    /// # Errors
    /// The error says why the answer is not accepted, and which answers are.
    pub fn accept(&self, answer: &Value) -> Result<Value, String> {
        let is_free = self.choices.is_empty() && self.schema.is_none();
        let mut members = match answer {
            Value::Object(members) => (**members).clone(),
            free if is_free => return Ok(free.clone()),
            Value::Null => Object::new(),
            Value::String(choice) if !self.choices.is_empty() => {
                Object::from_iter([(CHOICE.into(), Value::text(&**choice))])
            }
            other => {
                return Err(format!(
                    "the answer is {}, not an object{}",
                    other.kind(),
                    self.example()
                ));
            }
        };
        // The engine records the sender, so an answer must not be able to name another one.
        members.shift_remove(ANSWERED_BY);
        let choice = match self.choices.is_empty() {
            true => None,
            false => Some(self.choice(members.shift_remove(CHOICE))?),
        };
        let fields = Value::object(members);
        if let Some(schema) = &self.schema {
            schema.check(&fields, &Budget::of(WORK))?;
        }
        let Some(choice) = choice else {
            return Ok(fields);
        };
        let mut answer = Object::from_iter([(CHOICE.into(), Value::text(choice))]);
        answer.extend(fields.as_object().cloned().unwrap_or_default());
        Ok(Value::object(answer))
    }

    fn choice(&self, given: Option<Value>) -> Result<&str, String> {
        let known = || format!("the choices are {}", self.choices.join(", "));
        let Some(given) = given.filter(|given| *given != Value::Null) else {
            return Err(format!("the answer has no `{CHOICE}`: {}", known()));
        };
        let mut choices = self.choices.iter();
        let found = choices.find(|choice| given.as_str() == Some(choice));
        found
            .map(|choice| &**choice)
            .ok_or_else(|| format!("{} is not a choice: {}", given.to_json(), known()))
    }

    fn example(&self) -> String {
        self.choices
            .first()
            .map(|choice| format!("; for example {{\"{CHOICE}\": \"{choice}\"}}"))
            .unwrap_or_default()
    }
}

/// The data that the URL of a callback contains in addition to the run and the signal. Its signature covers all of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackClaim {
    /// Number of such signals that the run had received, or had stopped waiting for, when the address was made.
    pub received: u64,
    /// The time when the address expires.
    pub expires_at: Timestamp,
}

impl fmt::Display for CallbackClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.received, self.expires_at.0)
    }
}

impl CallbackClaim {
    /// Parses the text that `Display` of this type writes. Returns `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (received, expires_at) = text.split_once('/')?;
        Some(Self {
            received: received.parse().ok()?,
            expires_at: Timestamp(expires_at.parse().ok()?),
        })
    }
}
