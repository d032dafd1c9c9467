//! JSON Schema for parseJson.
//! Nothing is fetched, so a `$ref` must refer to a place inside the schema.

use super::schema_work::{Documents, MAX_CHECKS_TO_LIST_ERRORS};
use super::{Budget, Value};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use std::fmt;
use windlass_value::shortened;

/// Maximum number of characters of a message. It is limited because the validator's message quotes the value.
const MAX_MESSAGE: usize = 300;

/// A compiled schema.
pub struct Schema {
    source: Value,
    schema: serde_json::Value,
    validator: Validator,
}

/// Two schemas are equal if their sources are equal.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.source.to_json())
    }
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// The reason why the schema is not valid.
    pub fn read(source: &Value) -> Result<Self, String> {
        let schema = json(source)?;
        Documents::new(vec![("", &schema)]).check_patterns()?;
        // With this regular expression engine, the time of a match is proportional to the text, whatever the pattern
        // is.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(&schema).or_else(|error| {
            // The designer of Logic Apps writes keywords of draft 4 without `$schema`, so draft 4 is tried as well.
            let fourth = options.clone().with_draft(Draft::Draft4);
            // Formats are not validated, as is the default in later drafts.
            let fourth = fourth.should_validate_formats(false);
            let has_draft = schema.get("$schema").is_some();
            let fourth = (!has_draft).then(|| fourth.build(&schema).ok()).flatten();
            fourth.ok_or_else(|| shortened(&error_text(&error, "the schema"), MAX_MESSAGE))
        })?;
        Ok(Self {
            source: source.clone(),
            schema,
            validator,
        })
    }

    /// Checks that a schema is a valid schema of draft 7. References are not resolved.
    ///
    /// # Errors
    /// The reason why the schema is not valid.
    pub fn check_draft_7(source: &Value) -> Result<(), String> {
        let schema = json(source)?;
        let checked = jsonschema::draft7::meta::validate(&schema);
        checked.map_err(|error| shortened(&error_text(&error, "the schema"), MAX_MESSAGE))
    }

    /// Returns the schema as its author wrote it.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Checks that a value is valid.
    ///
    /// # Errors
    /// The first mismatch with its path, or that the check would exceed the budget.
    pub fn check(&self, value: &Value, budget: &Budget) -> Result<(), String> {
        let charged = budget.charge(value.nodes());
        charged.map_err(|exceeded| exceeded.to_string())?;
        let value = json(value)?;
        let work = Documents::new(vec![("", &self.schema)]).charge(&value, budget);
        let work = work.map_err(|why| why.to_string())?;
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        if work > MAX_CHECKS_TO_LIST_ERRORS {
            return Err(String::from(
                "the schema has too many ways to say what does not fit",
            ));
        }
        let checked = self.validator.validate(&value);
        checked.map_err(|error| shortened(&error_text(&error, "the value"), MAX_MESSAGE))
    }
}

fn error_text(error: &ValidationError<'_>, whole: &str) -> String {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { whole } else { &path };
    format!("{place}: {error}")
}

fn json(value: &Value) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
