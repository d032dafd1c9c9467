//! JSON Schema, as parseJson checks it. It fetches nothing: a `$ref` leads inside the schema.

use super::schema_work::{Documents, MAX_CHECKS_TO_LIST_ERRORS};
use super::{Budget, Value};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use std::fmt;
use windlass_value::shortened;

/// Maximum number of characters of the validator's message: it quotes the value.
const MAX_MESSAGE: usize = 300;

/// A schema, read once.
pub struct Schema {
    source: Value,
    schema: serde_json::Value,
    validator: Validator,
}

/// By what its author wrote.
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
    /// What is wrong with it.
    pub fn read(source: &Value) -> Result<Self, String> {
        let schema = json(source)?;
        Documents::new(vec![("", &schema)]).check_patterns()?;
        // Takes time in proportion to the text, whatever the pattern.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(&schema).or_else(|error| {
            // Designers write the words of draft 4, and do not say so.
            let fourth = options.clone().with_draft(Draft::Draft4);
            // As in the later ones.
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

    /// The schema as its author wrote it.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Whether a value is as the schema says.
    ///
    /// # Errors
    /// The first thing that is not, with its path; that it takes more work than the budget has.
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
