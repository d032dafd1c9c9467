//! A question to users, as a form shows it.

use super::view::RunView;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::{Object, Value};
use windlass_machine::Wait;
use windlass_model::model::{CHOICE, CallbackClaim, Form};

/// A question to people, whose answer is a signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuestionReport {
    /// Text of the question. Null if it has none, and while the run does not wait for the answer.
    pub title: Option<String>,
    /// Possible choices. The answer has one of them as `choice`. Empty if it needs none.
    pub choices: Vec<String>,
    /// Fields of the form: the other members of the answer.
    pub fields: Vec<FormField>,
    /// JSON Schema of these members. Absent if the question has no fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
}

/// A field of a form: one member of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FormField {
    /// Name of the member.
    pub name: String,
    /// Label for people.
    pub label: String,
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Possible values, if the type is `options`. Otherwise absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Value>,
    /// Whether the answer must have the member.
    pub required: bool,
    /// Value with which the form begins. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// Type of the value of a field: `options` is one of a list of values, `json` is any JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FormFieldKind)]
pub enum FieldKind {
    Text,
    Boolean,
    Integer,
    Number,
    /// One of a list of values.
    Options,
    /// Any JSON.
    Json,
}

impl QuestionReport {
    pub(super) fn new(title: Option<&str>, form: &Form) -> Self {
        let schema = form.schema.as_ref().map(|schema| schema.source().clone());
        Self {
            title: title.map(str::to_owned),
            choices: form.choices.iter().map(ToString::to_string).collect(),
            fields: schema.as_ref().map(fields).unwrap_or_default(),
            schema,
        }
    }

    /// Makes an answer from the texts that a user entered: `choice`, and each field. A field without text is omitted.
    ///
    /// # Errors
    /// Returns the first field whose text is invalid, and what the field needs.
    pub fn answer(
        &self,
        choice: Option<&str>,
        text_of: impl Fn(&FormField) -> Option<String>,
    ) -> Result<Value, String> {
        let mut answer = Object::new();
        if let Some(choice) = choice {
            answer.insert(CHOICE.into(), Value::text(choice));
        }
        for field in &self.fields {
            let text = text_of(field).unwrap_or_default();
            if let Some(value) = field.parse(&text)? {
                answer.insert(field.name.as_str().into(), value);
            }
        }
        Ok(Value::object(answer))
    }
}

/// Returns the form's fields that a JSON Schema describes, in the order of the schema.
fn fields(schema: &Value) -> Vec<FormField> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Object::iter);
    let fields = properties.map(|(name, of)| {
        let (kind, options) = kind(of);
        let label = of.get("title").and_then(Value::as_str);
        FormField {
            name: name.to_string(),
            label: label.unwrap_or(name).to_owned(),
            kind,
            options,
            required: is_required(name),
            default: of.get("default").cloned(),
        }
    });
    fields.collect()
}

fn kind(schema: &Value) -> (FieldKind, Vec<Value>) {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return (FieldKind::Options, options.to_vec());
    }
    let kind = match schema.get("type").and_then(Value::as_str) {
        Some("string") => FieldKind::Text,
        Some("boolean") => FieldKind::Boolean,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        _ => FieldKind::Json,
    };
    (kind, Vec::new())
}

impl FormField {
    /// Converts the text that a user entered. Returns `None` for an empty text if the field is not required.
    ///
    /// # Errors
    /// Returns what the field needs instead.
    pub fn parse(&self, text: &str) -> Result<Option<Value>, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() && !self.required {
            return Ok(None);
        }
        let parsed = Value::from_json(trimmed).ok();
        let (value, wanted) = match self.kind {
            FieldKind::Text if trimmed.is_empty() => (None, String::from("a text")),
            FieldKind::Text => return Ok(Some(Value::text(text))),
            FieldKind::Boolean => (boolean(trimmed), String::from("yes or no")),
            FieldKind::Integer => (
                parsed.filter(|value| matches!(value, Value::Int(_))),
                String::from("a whole number"),
            ),
            FieldKind::Number => (
                parsed.filter(|value| {
                    matches!(value, Value::Int(_) | Value::Float(_) | Value::Decimal(_))
                }),
                String::from("a number"),
            ),
            FieldKind::Options => (self.option(trimmed, parsed.as_ref()), self.options_text()),
            FieldKind::Json => (parsed, String::from("JSON")),
        };
        let missing = || format!("`{}` needs {wanted}", self.label);
        value.ok_or_else(missing).map(Some)
    }

    fn option(&self, text: &str, parsed: Option<&Value>) -> Option<Value> {
        let mut options = self.options.iter();
        let found = options.find(|option| option.as_str() == Some(text) || parsed == Some(*option));
        found.cloned()
    }

    fn options_text(&self) -> String {
        let options: Vec<String> = self.options.iter().map(field_text).collect();
        format!("one of {}", options.join(", "))
    }
}

fn boolean(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" => Some(Value::Bool(true)),
        "false" | "no" | "n" | "off" => Some(Value::Bool(false)),
        _ => None,
    }
}

/// Returns the question that a callback address answers. `None` if the run has ended or if the address is not valid any
/// more.
///
/// # Errors
/// Returns store errors, including the error for an unknown run.
pub fn callback_question(
    inspector: &Inspector,
    run: &str,
    signal: &str,
    claim: CallbackClaim,
) -> Result<Option<QuestionReport>, EngineError> {
    let view = RunView::load(inspector, run)?;
    let state = view.state();
    if state.status().is_final() || state.received(signal) != claim.received {
        return Ok(None);
    }
    let titles = state
        .cursors
        .values()
        .filter_map(|cursor| match &cursor.wait {
            Wait::Question(question) if *question.signal == *signal => question.title.as_deref(),
            _ => None,
        });
    let form = view
        .program
        .as_deref()
        .and_then(|program| program.form(signal));
    // The form belongs to the signal, so it is known even if the run does not wait for the signal yet.
    Ok(Some(form.map_or_else(QuestionReport::default, |form| {
        QuestionReport::new(titles.into_iter().next(), form)
    })))
}

/// Formats a value for a form: a text without quotes.
#[must_use]
pub fn field_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_json(), str::to_owned)
}
