//! A workflow that is stored under a name.

use super::{DiagnosticReport, LoopLimits, diagnostics, loop_limits};
use crate::Workflow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_machine::RunStatus;
use windlass_machine::program::Program;
use windlass_model::model::{Input, InputKind};
use windlass_store::StoredWorkflow;
use windlass_value::time::Timestamp;

/// One stored workflow in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    /// Name under which the workflow is stored.
    pub name: String,
    /// Format of the workflow: `loom`, `azure`, `tea` or `canvas`.
    pub dialect: String,
    /// Path of its file, as the request named it.
    pub file: String,
    /// Time when this version was stored.
    pub stored_at: Timestamp,
}

impl WorkflowSummary {
    /// Makes the summary of a stored workflow.
    #[must_use]
    pub fn new(stored: &StoredWorkflow) -> Self {
        let file = stored.source.bundle.file(0);
        Self {
            name: stored.name.to_string(),
            dialect: stored.source.dialect.as_str().to_owned(),
            file: file.map(|file| file.path.clone()).unwrap_or_default(),
            stored_at: stored.stored_at,
        }
    }
}

/// A stored workflow with its inputs, and the limits of its loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowReport {
    /// Name under which the workflow is stored.
    pub name: String,
    /// Name that the file declares, else the name from the file's path.
    pub title: String,
    /// Format of the workflow: `loom`, `azure`, `tea` or `canvas`.
    pub dialect: String,
    /// Time when this version was stored.
    pub stored_at: Timestamp,
    /// Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub program: String,
    /// Inputs of the workflow.
    pub inputs: Vec<InputReport>,
    /// Limits of its loops, in the order of the file.
    pub loops: Vec<LoopLimits>,
    /// Warnings about the workflow. They do not prevent its runs.
    pub warnings: Vec<DiagnosticReport>,
    /// Files of the workflow: its own file first, then the files that it names.
    pub files: Vec<FileReport>,
}

/// The versions of a stored workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionsReport {
    /// Versions, newest first: the current one, and at most 50 former ones.
    pub versions: Vec<VersionReport>,
}

/// One version of a stored workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionReport {
    /// SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub version: String,
    /// Time when this version was stored.
    pub stored_at: Timestamp,
    /// Whether this is the current version, which new runs use.
    pub current: bool,
    /// Number of stored runs of this version, by status.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub runs: BTreeMap<RunStatus, u64>,
}

/// The workflow that is stored under a name at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CurrentWorkflow {
    /// SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits.
    pub version: String,
    /// Text of its file.
    pub text: String,
}

/// An input that a workflow declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InputReport {
    /// Name of the input.
    pub name: String,
    /// Type of the input: `any`, `string`, `integer`, `number`, `boolean`, `array` or `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the input is for. Absent if the workflow does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a start must pass a value.
    pub required: bool,
    /// Value that is used if a start passes none. Null if the input is required.
    pub default: Value,
}

/// A file of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileReport {
    /// Path of the file, as the request or the workflow named it.
    pub path: String,
    /// Text of the file.
    pub text: String,
}

impl WorkflowReport {
    /// Makes the report of a stored workflow that was compiled.
    #[must_use]
    pub fn new(stored: &StoredWorkflow, workflow: &Workflow) -> Self {
        let (program, bundle) = (workflow.program(), workflow.bundle());
        Self {
            name: stored.name.to_string(),
            title: program.name.to_string(),
            dialect: stored.source.dialect.as_str().to_owned(),
            stored_at: stored.stored_at,
            program: program.hash.to_string(),
            inputs: inputs(program),
            loops: loop_limits(program),
            warnings: diagnostics(workflow.warnings(), bundle),
            files: bundle.files.iter().map(FileReport::new).collect(),
        }
    }
}

/// Returns the inputs that a workflow declares.
#[must_use]
pub fn inputs(program: &Program) -> Vec<InputReport> {
    program.inputs.iter().map(InputReport::new).collect()
}

impl InputReport {
    fn new(input: &Input) -> Self {
        let kind = match input.kind {
            InputKind::Any => "any",
            InputKind::String => "string",
            InputKind::Integer => "integer",
            InputKind::Number => "number",
            InputKind::Boolean => "boolean",
            InputKind::Array => "array",
            InputKind::Object => "object",
        };
        Self {
            name: input.name.to_string(),
            kind: kind.to_owned(),
            description: input.description.clone(),
            required: input.default.is_none(),
            default: input.default.clone().unwrap_or_default(),
        }
    }
}

impl FileReport {
    pub(super) fn new(file: &windlass_source::source::SourceFile) -> Self {
        Self {
            path: file.path.clone(),
            text: file.text.clone(),
        }
    }
}
