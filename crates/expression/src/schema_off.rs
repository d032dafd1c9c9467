//! Replaces `schema` in a build without the feature `schema`.
//! Every schema is refused, with the reason.

use super::{Budget, Value};

/// A type without values, because this build cannot make a schema.
#[derive(Debug, PartialEq)]
pub enum Schema {}

impl Schema {
    pub fn read(_: &Value) -> Result<Self, String> {
        Err(String::from(
            "this build of Windlass checks no JSON Schema: feature `schema`",
        ))
    }

    pub fn check_draft_7(_: &Value) -> Result<(), String> {
        Ok(())
    }

    pub fn source(&self) -> &Value {
        match *self {}
    }

    pub fn check(&self, _: &Value, _: &Budget) -> Result<(), String> {
        match *self {}
    }
}
