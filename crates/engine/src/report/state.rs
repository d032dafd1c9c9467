//! A value that a workflow has between its runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_store::StateEntry;
use windlass_value::time::Timestamp;

/// A value that a workflow stores between its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateReport {
    /// Name of the workflow, as its runs have it.
    pub workflow: String,
    /// Name of the value.
    pub name: String,
    pub value: Value,
    /// Number of times that the value was written.
    pub version: u64,
    /// Time of the last write.
    pub written_at: Timestamp,
    /// Id of the run that wrote the value. Absent if a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Idempotency key of the action that wrote the value. Absent if no action did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the value belongs to guest workflows, which are received over TCP.
    pub guest: bool,
    /// Why no saved workflow reads the value. Only in the answer to a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
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
            unread: None,
        })
    }
}
