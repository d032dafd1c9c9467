//! JSON Schema validation: reports the errors of a value with their paths. The messages are those of Python's library,
//! which workflows of The Edge Agent compare and pass to models. Other documents that a schema refers to are part of
//! the inputs: nothing is read from disk or fetched.

mod coerce;
mod messages;

pub(super) use coerce::coerced;
pub(super) use messages::repr_of;

use super::inputs::{Inputs, invalid, mismatch};
use super::{Attempt, Executor};
use crate::compute::compute;
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::error::Error;
use windlass_expression::{Budget, Documents as SchemaDocuments, MAX_CHECKS_TO_LIST_ERRORS, Value};
use windlass_model::model::{Fault, Request, fault_kind};

/// The URI of the schema itself. The URI of another document is this URI followed by its path.
const BASE: &str = "workflow:///";

/// Characters that a path must escape in a URI.
const UNSAFE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Maximum number of errors that are reported for one value.
const MAX_ERRORS: usize = 1000;

/// Maximum number of backtracking steps of a pattern with look-around, for one text.
const MAX_BACKTRACKS: usize = 20_000;

pub(super) struct Schema {
    validator: Validator,
    schema: Json,
    /// The other documents that the schema refers to, by their URIs.
    documents: BTreeMap<String, Json>,
}

struct Documents(BTreeMap<String, Json>);

#[derive(Debug, thiserror::Error)]
#[error("the schema refers to `{0}`, which is not there")]
struct MissingDocument(String);

impl Retrieve for Documents {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Json, Box<dyn Error + Send + Sync>> {
        let uri = uri.as_str();
        let uri = uri.split('#').next().unwrap_or(uri);
        self.0
            .get(uri)
            .cloned()
            .ok_or_else(|| MissingDocument(shown(uri)).into())
    }
}

/// Returns a URI in the form in which its author wrote it.
fn shown(uri: &str) -> String {
    let path = uri.strip_prefix(BASE).unwrap_or(uri);
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

impl Schema {
    /// Reads the schema of an action's inputs: `schema`, which may refer to `schemas`.
    pub(super) fn of(inputs: Inputs<'_>) -> Result<Self, Fault> {
        let schema = inputs
            .get("schema")
            .ok_or_else(|| invalid("`schema` is missing"))?;
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err(mismatch("schema", "a map", schema));
        }
        let documents = inputs.members("schemas")?.into_iter();
        let documents: BTreeMap<String, Json> = documents
            .map(|(path, document)| {
                let path = path.strip_prefix("./").unwrap_or(path);
                let uri = format!("{BASE}{}", utf8_percent_encode(path, UNSAFE));
                (uri, json(document))
            })
            .collect();
        let schema = json(schema);
        let all = documents.iter().map(|(path, part)| (path.as_str(), part));
        let all = std::iter::once((BASE, &schema)).chain(all).collect();
        SchemaDocuments::new(all)
            .check_patterns()
            .map_err(invalid)?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft7)
            .with_base_uri(BASE)
            .with_retriever(Documents(documents.clone()))
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS))
            // Python's library does not check formats by default, either.
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|error| refused(&error))?;
        Ok(Self {
            validator,
            schema,
            documents,
        })
    }

    /// Returns the errors of a value, each as `{path, message, schema_path}`.
    ///
    /// # Errors
    /// Returns a fault if the validation would need more work than the budget allows.
    pub(super) fn errors(&self, value: &Value, budget: &Budget) -> Result<Vec<Value>, Fault> {
        let heavy = |why: String| Fault::new(fault_kind::TOO_LARGE, why);
        let charged = budget.charge(value.nodes());
        charged.map_err(|exceeded| heavy(exceeded.to_string()))?;
        let value = json(value);
        let documents = self.documents.iter();
        let documents = documents.map(|(path, document)| (path.as_str(), document));
        let all = std::iter::once((BASE, &self.schema)).chain(documents);
        let work = SchemaDocuments::new(all.collect()).charge(&value, budget);
        let work = work.map_err(|why| heavy(why.to_string()))?;
        if self.validator.is_valid(&value) {
            return Ok(Vec::new());
        }
        if work > MAX_CHECKS_TO_LIST_ERRORS {
            return Err(heavy(String::from(
                "the value does not fit, and the schema has too many ways to say what does not",
            )));
        }
        let errors = self.validator.iter_errors(&value).take(MAX_ERRORS);
        Ok(errors.flat_map(|error| described(&error)).collect())
    }
}

fn json(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

fn refused(error: &ValidationError<'static>) -> Fault {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(this) = cause {
        if let Some(missing) = this.downcast_ref::<MissingDocument>() {
            return invalid(missing.to_string());
        }
        cause = this.source();
    }
    let words = error.to_string();
    // Find the message of [`MissingDocument`] in the text, because the library adds other text around it.
    match words.find("the schema refers to `") {
        Some(from) => invalid(words.get(from..).unwrap_or_default()),
        None => invalid(format!("`schema` is not a valid JSON Schema: {words}")),
    }
}

fn described(error: &ValidationError<'_>) -> Vec<Value> {
    let path: Vec<String> = error.instance_path().segments().map(|s| text(&s)).collect();
    let schema_path = error
        .evaluation_path()
        .segments()
        .map(|segment| match segment {
            LocationSegment::Index(index) => Value::Int(i64::try_from(index).unwrap_or(i64::MAX)),
            LocationSegment::Property(name) => Value::text(name.as_ref()),
        });
    let schema_path = Value::array(schema_path.collect());
    let messages = messages::messages(error).into_iter();
    let errors = messages.map(|message| {
        Value::from_pairs([
            ("path", Value::text(path.join("."))),
            ("message", Value::text(message)),
            ("schema_path", schema_path.clone()),
        ])
    });
    errors.collect()
}

fn text(segment: &LocationSegment<'_>) -> String {
    match segment {
        LocationSegment::Index(index) => index.to_string(),
        LocationSegment::Property(name) => name.to_string(),
    }
}

/// Returns the errors without their positions in the schema.
fn without_schema_path(errors: Vec<Value>) -> Value {
    let strip = |error: Value| match error {
        Value::Object(map) => {
            let members = map.iter().filter(|(key, _)| &***key != "schema_path");
            Value::object(
                members
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        other => other,
    };
    Value::array(errors.into_iter().map(strip).collect())
}

/// `data.validate`: maps `{data, schema}` to `{valid, errors, success}`.
pub(super) struct DataValidate;

impl Executor for DataValidate {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        let request = request.clone();
        Box::pin(compute(move |budget| {
            let inputs = Inputs::of(&request)?;
            if inputs.get("schema").is_none() {
                return Ok(Value::from_pairs([
                    ("success", Value::Bool(false)),
                    ("error", Value::text("Schema is required")),
                    ("error_type", Value::text("validate")),
                ]));
            }
            let schema = Schema::of(inputs)?;
            let errors = match inputs.get("data") {
                Some(data) => schema.errors(data, budget)?,
                None => vec![Value::from_pairs([
                    ("path", Value::text("")),
                    ("message", Value::text("Data is None")),
                ])],
            };
            Ok(Value::from_pairs([
                ("valid", Value::Bool(errors.is_empty())),
                ("errors", without_schema_path(errors)),
                ("success", Value::Bool(true)),
            ]))
        }))
    }
}

/// `validate.schema`: with `data`, validates it and returns `{valid, errors}`. Without `data`, checks `schema` itself
/// and returns `{schema, valid}`, with `error` if the schema is not valid.
pub(super) struct ValidateSchema;

impl Executor for ValidateSchema {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        let request = request.clone();
        Box::pin(compute(move |budget| {
            let inputs = Inputs::of(&request)?;
            let is_given = |key: &str| request.inputs.get(key).is_some();
            let data = ["data", "output"].into_iter().find(|key| is_given(key));
            if let Some(data) = data {
                let data = inputs.get(data).unwrap_or(&Value::Null);
                let errors = Schema::of(inputs)?.errors(data, budget)?;
                return Ok(Value::from_pairs([
                    ("valid", Value::Bool(errors.is_empty())),
                    ("errors", without_schema_path(errors)),
                ]));
            }
            let schema = inputs.get("schema").cloned().unwrap_or_default();
            Ok(match Schema::of(inputs) {
                Ok(_) => Value::from_pairs([("schema", schema), ("valid", Value::Bool(true))]),
                Err(fault) => Value::from_pairs([
                    ("schema", Value::Null),
                    ("valid", Value::Bool(false)),
                    ("error", Value::text(fault.message)),
                ]),
            })
        }))
    }
}
