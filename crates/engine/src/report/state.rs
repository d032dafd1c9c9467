//! A value that a workflow has between its runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_store::StateEntry;
use windlass_value::time::Timestamp;

/// A value of a workflow between its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateReport {
    /// The name of the workflow: its own, as runs have it.
    pub workflow: String,
    /// The name of the value.
    pub name: String,
    pub value: Value,
    /// How often it was written.
    pub version: u64,
    /// When it was written.
    pub written_at: Timestamp,
    /// The run that wrote it; without one a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The idempotency key of the action that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it belongs to workflows that arrived over TCP.
    #[serde(default)]
    #[schema(required)]
    pub guest: bool,
}

impl StateReport {
    /// Makes the report of a stored value. Returns `None` if the value was deleted.
    #[must_use]
    pub fn new(entry: &StateEntry) -> Option<Self> {
        Some(Self {
            workflow: entry.owner.workflow.to_string(),
            name: entry.name.to_string(),
            value: entry.value.clone()?,
            version: entry.version,
            written_at: entry.written_at,
            run: entry.run.as_ref().map(ToString::to_string),
            key: entry.key.clone(),
            guest: entry.owner.guest,
        })
    }
}
