//! The fields of a panel with their values. A form can show them without knowing the format.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A field of a panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Field {
    /// Its id in the panel.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where it is in the text: a JSON pointer.
    pub pointer: String,
    /// How it is edited.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// What it is; null: it is not set.
    pub value: Value,
    /// What it is when it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The most that the operator allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// Of a table, whose value is a list of rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Of a condition that is made of known parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a field is edited.
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

/// Something that a field may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// What is shown.
    pub label: String,
    /// The type of a port.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Column {
    /// The key of its values in a row.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// How it is edited.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// What it may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// The parts of a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parts {
    /// The ports that may be compared, each with its type.
    pub output: Vec<Choice>,
    /// How they may be compared.
    pub operator: Vec<Choice>,
    /// What a port of some types may be compared with.
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

    /// Sets the field's pointer, and the value at that pointer.
    pub(super) fn at(mut self, document: &Value, pointer: String) -> Self {
        self.value = document.pointer(&pointer).cloned().unwrap_or_default();
        self.pointer = pointer;
        self
    }
}
