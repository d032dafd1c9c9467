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

/// One workflow in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    /// The name under which it is stored.
    pub name: String,
    /// The format it is read as.
    pub dialect: String,
    /// Its file, as it was named.
    pub file: String,
    /// When it was put there.
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

/// A workflow, its inputs, and the limits of its loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowReport {
    /// The name under which it is stored.
    pub name: String,
    /// The name that its file declares, else one from the file's path.
    pub title: String,
    /// The format it is read as.
    pub dialect: String,
    /// When it was put there.
    pub stored_at: Timestamp,
    /// What it is compiled from, as a hash.
    pub program: String,
    /// Its inputs.
    pub inputs: Vec<InputReport>,
    /// What bounds its loops.
    pub loops: Vec<LoopLimits>,
    /// What looks wrong in it, though it runs.
    pub warnings: Vec<DiagnosticReport>,
    /// Its files: the workflow first, then those that it names.
    pub files: Vec<FileReport>,
}

/// The versions of a stored workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionsReport {
    /// The newest first: the current one, and at least the 50 before it.
    pub versions: Vec<VersionReport>,
}

/// A version of a stored workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionReport {
    /// What it is compiled from, as a hash.
    pub version: String,
    /// When it was put there.
    pub stored_at: Timestamp,
    /// Whether it is the one that is started now.
    pub current: bool,
    /// How many of its runs do what.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub runs: BTreeMap<RunStatus, u64>,
}

/// The workflow that is stored under a name now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CurrentWorkflow {
    /// What it is compiled from, as a hash.
    pub version: String,
    /// The text of its file.
    pub text: String,
}

/// An input that a workflow declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InputReport {
    /// Its name.
    pub name: String,
    /// `any`, `string`, `integer`, `number`, `boolean`, `array` or `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it is when it is not given.
    pub default: Value,
}

/// A file of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileReport {
    /// Its path, as it was named.
    pub path: String,
    /// Its text.
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

/// Returns the inputs that a workflow accepts.
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
