//! The values of texts without quotes in YAML. For the core schema of YAML 1.2, the crate serde_yaml determines the
//! value of each word. For YAML 1.1, [`super::yaml_1_1`] does.

use super::mistakes::out_of_range;
use super::{Kind, Mistake, Schema, Span, yaml_1_1};
use serde_yaml::Value;

/// Returns the value of a text without quotes and tags; `None` if it is text.
///
/// # Errors
/// The word is a number that cannot be stored.
pub(super) fn value(word: &str, schema: Schema, span: Span) -> Result<Option<Kind>, Mistake> {
    let core = core(word, span)?;
    match (&core, schema) {
        // These values are the same in both schemas.
        (Some(Kind::Null | Kind::Bool(_)), _) | (_, Schema::Core) => Ok(core),
        (_, Schema::Yaml11) => yaml_1_1::value(word, span),
    }
}

/// Returns the value of a text with a tag of the core schema: `!!int "5"` is 5.
///
/// # Errors
/// The text does not fit the tag.
pub(super) fn tagged(tag: &str, text: &str, span: Span) -> Result<Option<Kind>, Mistake> {
    if !matches!(tag, "int" | "float" | "bool" | "null") {
        return Ok(None);
    }
    if tag == "int" && text.parse::<i64>().is_err() && text.parse::<i128>().is_ok() {
        return Err(out_of_range(text, span));
    }
    let quoted = serde_json::Value::from(text);
    match serde_yaml::from_str(&format!("!!{tag} {quoted}")) {
        Ok(value) => kind(&value, text, span),
        Err(error) => {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            Err(Mistake::new("tag", span, message).hint("remove the tag, or correct the value"))
        }
    }
}

fn core(word: &str, span: Span) -> Result<Option<Kind>, Mistake> {
    if word.is_empty() {
        return Ok(Some(Kind::Null));
    }
    if !may_be_value(word) {
        return Ok(None);
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits == "0" || digits.starts_with(|first: char| ('1'..='9').contains(&first)) {
        // A fast path: most numbers are read here, without serde_yaml.
        if let Ok(number) = word.parse() {
            return Ok(Some(Kind::Int(number)));
        }
    }
    match serde_yaml::from_str(word) {
        Ok(value) => kind(&value, word, span),
        Err(_) => Err(out_of_range(word, span)),
    }
}

/// Returns true if the word may be something other than text. Only such words are passed to serde_yaml, which reads
/// each of them as one word.
fn may_be_value(word: &str) -> bool {
    let begins = word.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    let named = || {
        ["null", "true", "false"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(word))
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    let one_word =
        || word.bytes().all(is_part) && word.bytes().any(|byte| byte.is_ascii_alphanumeric());
    word == "~" || (begins && one_word()) || named()
}

fn has_digit(word: &str) -> bool {
    word.contains(|letter: char| letter.is_ascii_digit())
}

fn kind(value: &Value, word: &str, span: Span) -> Result<Option<Kind>, Mistake> {
    let number = match value {
        Value::Null => return Ok(Some(Kind::Null)),
        Value::Bool(value) => return Ok(Some(Kind::Bool(*value))),
        Value::Number(number) => number,
        // Refused, because serde_yaml would silently read a number that is too large as text.
        _ if has_digit(word) && word.parse().is_ok_and(f64::is_infinite) => {
            return Err(out_of_range(word, span));
        }
        _ => return Ok(None),
    };
    match (number.as_i64(), number.as_f64()) {
        (Some(number), _) => Ok(Some(Kind::Int(number))),
        (None, _) if number.is_u64() => Err(out_of_range(word, span)),
        (None, Some(number)) if number.is_finite() => Ok(Some(Kind::Float(number))),
        (None, _) => {
            let what = "infinity and not-a-number are not valid values of a workflow";
            Err(Mistake::new("number", span, what).hint("quote it if it is meant as text"))
        }
    }
}
