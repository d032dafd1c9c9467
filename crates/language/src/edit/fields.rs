//! The fields of a panel, with their values.
//! A form can show the fields without knowing the format of the workflow.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A field of a panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Field {
    /// Id of the field in the panel.
    pub id: String,
    /// Label of the field.
    pub label: String,
    /// Description of the field. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// JSON pointer to the value in the text.
    pub pointer: String,
    /// Type of the control that edits the field.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Value of the field. Null if the text does not set it.
    pub value: Value,
    /// Value that is used if the text sets none. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Values to choose from. Absent without a list of values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Maximum value that the operator allows. Absent without a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// Columns of a table. Absent for other types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Possible parts of a condition. Absent for other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// What is wrong with the value. Absent if nothing is known to be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Type of the control that edits a field. A `table` is a list of rows; `code` is a text of several lines, or any value
/// as YAML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A text on one line.
    #[default]
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Bool,
    /// A duration: `30s`, `PT30S`.
    Duration,
    /// One of its choices.
    Choice,
    /// An expression or a template.
    Expression,
    /// A condition: text, or `{output, operator, value}` where it has parts.
    Condition,
    /// The name of a file next to the workflow.
    File,
    /// Rows, with a value for each column.
    Table,
    /// A text of several lines, or any value as YAML.
    Code,
}

/// A possible value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// Label of the value.
    pub label: String,
    /// Type of the port that the value names. Absent for other values.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Column {
    /// Key of the column in each row.
    pub id: String,
    /// Label of the column.
    pub label: String,
    /// Type of the control that edits the column.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Values to choose from. Absent without a list of values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// Possible parts of a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parts {
    /// Ports that can be compared, with their types.
    pub output: Vec<Choice>,
    /// Operators that can compare them.
    pub operator: Vec<Choice>,
    /// Values to compare with, each with the type of port that it belongs to.
    pub value: Vec<Choice>,
}

impl Choice {
    pub(super) fn of(value: impl Into<String>) -> Self {
        let value = value.into();
        Self {
            label: value.clone(),
            value,
            kind: None,
        }
    }

    pub(super) fn called(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::of(value)
        }
    }
}

impl Field {
    pub(super) fn new(id: &str, label: &str, kind: FieldKind) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            kind,
            ..Self::default()
        }
    }

    pub(super) fn help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }

    pub(super) fn usual(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    pub(super) fn choices<'c>(mut self, choices: impl IntoIterator<Item = &'c str>) -> Self {
        self.choices = choices.into_iter().map(Choice::of).collect();
        self
    }

    /// Returns the field with its pointer set, and with the value at that pointer.
    pub(super) fn at(mut self, document: &Value, pointer: String) -> Self {
        self.value = document.pointer(&pointer).cloned().unwrap_or_default();
        self.pointer = pointer;
        self
    }
}
