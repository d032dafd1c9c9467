//! The data that servers and clients exchange: requests, problems, and the path of the control socket. Answers are the
//! reports of the engine.

mod problem;
mod socket;

pub use problem::{MEDIA_TYPE, Problem};
pub use socket::{NAME as SOCKET_NAME, StateDirectory};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_engine::report::{StateReport, StatusFilter, WorkflowSummary};
use windlass_engine::{HandlerTarget, OutputStream, RunStatus, StateCondition, Timestamp, Value};

/// A run to start: of a stored workflow, or of one in the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The name of a stored workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The text of a workflow, YAML or JSON, instead of a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the text's file is called, for diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The files that the text names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileText>,
    /// Reads the text as this format: `loom`, `azure`, `tea`, `canvas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The run's id, instead of one made from the workflow's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The input.
    #[serde(default)]
    pub input: Value,
    /// What answers for handlers, connectors and actions of the text that nothing here answers, as
    /// `POST /v1/language/stubs` makes it. It is not stored: a run that a restart interrupts lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub stubs: Option<Value>,
    /// What the run is marked with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The scheduled time of the run, as `schedule('time')` returns it (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_time: Option<Timestamp>,
    /// What is taken over the control socket only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub local: Option<LocalStart>,
}

/// Options of a start that only the operator's processes may set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalStart {
    /// Maximum count of loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// Maximum timeout of loops, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<u64>,
    /// Handlers in addition to those of the workflow and of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<(String, HandlerTarget)>,
    /// The folder of the relative paths in the workflow's actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether the workflow is untrusted: it has the rights of a workflow that is received over TCP.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guest: bool,
}

/// A further file of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Its path from the workflow's folder.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A workflow in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowText {
    /// Its text, YAML or JSON.
    pub text: String,
    /// What its file is called, for diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The files that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileText>,
    /// Reads it as this format: `loom`, `azure`, `tea`, `canvas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// A page of workflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowList {
    /// The workflows, by name.
    pub workflows: Vec<WorkflowSummary>,
    /// Where the next page begins, when there may be more.
    pub next: Option<String>,
}

/// Values that workflows have between their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateList {
    /// The values, by workflow and name.
    pub values: Vec<StateReport>,
}

/// A value that a workflow gets between its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateValue {
    /// What it is then.
    pub value: Value,
    /// Only if it has this version; 0: only if it was never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// Only if it has this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
}

impl StateValue {
    /// Returns the condition of the write; none if the request has two conditions.
    #[must_use]
    pub fn condition(&self) -> Option<StateCondition> {
        match (self.if_version, &self.expect) {
            (None, None) => Some(StateCondition::Always),
            (Some(version), None) => Some(StateCondition::Version(version)),
            (None, Some(value)) => Some(StateCondition::Value(value.clone())),
            (Some(_), Some(_)) => None,
        }
    }
}

/// What a run does, in a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunState {
    /// The run.
    pub run: String,
    /// What it is doing.
    pub status: RunStatus,
}

/// How a run is started again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRun {
    /// The new run's id, instead of one made from the workflow's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The action or iteration from which it continues, with its state at that time: `fetch`, `poll#14`,
    /// `poll#14/fetch`, or `failed`, the action that failed the run. None: its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// One command to many runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRuns {
    /// What is done.
    #[serde(rename = "do")]
    pub verb: BulkVerb,
    /// The runs, at most 1,000.
    pub runs: Vec<String>,
}

/// What is done to runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkVerb {
    /// As `pause` of a run.
    Pause,
    /// As `resume` of a run.
    Resume,
    /// As `cancel` of a run.
    Cancel,
    /// As `retry` of a run, from its beginning.
    Retry,
}

/// What a command to many runs did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkReport {
    /// The runs that it was done to.
    pub done: Vec<BulkDone>,
    /// The others.
    pub failed: Vec<BulkFailed>,
}

/// What commands of a run that run now have printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PrintedReport {
    /// Their last lines, of each command in order.
    pub lines: Vec<PrintedLine>,
}

/// A line that a command printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PrintedLine {
    /// The action.
    pub action: String,
    /// Where: standard output or standard error.
    #[schema(value_type = String)]
    pub stream: OutputStream,
    /// The line, without its end.
    pub text: String,
}

/// A run that a command was done to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkDone {
    /// The run.
    pub run: String,
    /// What it does then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The run that it is retried as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_run: Option<String>,
}

/// A run that a command could not be done to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailed {
    /// The run.
    pub run: String,
    /// The word of the problem's type: `unknown-run`, `run-ended`, …
    pub code: String,
    /// Why.
    pub detail: String,
}

/// How a session begins without a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginSession {
    /// A ticket of `windlass ui`: good once, for a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// A ticket for the console. Over the control socket only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The ticket.
    pub ticket: String,
    /// The console's URL with the ticket.
    pub url: String,
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// Its name.
    pub name: String,
    /// What it carries.
    #[serde(default)]
    pub payload: Value,
    /// Of one that answers the wait that a report shows: `received` there. When that wait is over, the signal is
    /// refused; without this, it is stored for the next wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// An id that the sender makes, for one that may be sent again: of several with the same id, the run receives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Signal {
    /// Converts to the engine's signal, with its sender.
    #[must_use]
    pub fn sent_by(self, sender: &str) -> windlass_engine::Signal {
        windlass_engine::Signal {
            by: Some(sender.into()),
            received: self.received,
            id: self.id.map(Into::into),
            ..windlass_engine::Signal::new(self.name.into(), self.payload)
        }
    }
}

/// A run that a webhook started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookStart {
    /// Its id.
    pub run: String,
}

/// Runs that continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// Their ids.
    pub runs: Vec<String>,
}

/// Which runs are forgotten: of those that have ended, the ones that everything here applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRuns {
    /// Only those that ended longer ago than this, as an ISO 8601 duration. This, `keep`, `labels`
    /// or `status` is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// Not the newest of each workflow, up to this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
    /// Only runs of this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Only runs with all of these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Only runs that ended so; `SucceededWithFailures`: those that succeeded although actions of them failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub status: Vec<StatusFilter<RunStatus>>,
    /// Forgets nothing, and reports what it would forget.
    #[serde(default)]
    pub dry_run: bool,
}

/// The target of a backup. Over the control socket only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupTo {
    /// The state directory of the copy, an absolute path.
    pub dir: String,
}

/// The process that owns a store. Over the control socket only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Whether the process runs until it is stopped. Otherwise, it ends with its own runs.
    pub serves: bool,
}
