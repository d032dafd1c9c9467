//! The types of nodes that can be added, each with the smallest valid value.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;
use utoipa::ToSchema;
use windlass_engine::Dialect;

/// A type of node that can be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeType {
    /// Type, as files have it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Display name of the type.
    pub title: String,
    /// Description of what such a node does.
    pub description: String,
    /// Smallest valid node of the type, without its name.
    pub value: Value,
}

/// The node types of all formats, by the word of the format.
static TYPES: LazyLock<HashMap<String, Vec<NodeType>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("types.json")).unwrap_or_default());

/// Returns the node types of a format.
#[must_use]
pub fn types(dialect: Dialect) -> Vec<NodeType> {
    TYPES.get(dialect.as_str()).cloned().unwrap_or_default()
}

pub(super) fn smallest(dialect: Dialect, kind: &str) -> Option<Value> {
    let types = types(dialect);
    let mut types = types.into_iter();
    types
        .find(|one| one.kind.eq_ignore_ascii_case(kind))
        .map(|one| one.value)
}
