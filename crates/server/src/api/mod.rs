//! The data that servers and clients exchange: requests, problems, and the path of the control socket.
//! The answers to requests are the reports of the engine.

mod problem;
mod socket;

pub use problem::{MEDIA_TYPE, Problem};
pub use socket::{NAME as SOCKET_NAME, StateDirectory};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_engine::report::{StateReport, StatusFilter, WorkflowSummary};
use windlass_engine::{HandlerTarget, OutputLine, RunStatus, StateCondition, Timestamp, Value};

/// A run to start, of a stored workflow (`workflow`) or of a workflow in the request (`text`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// Name of a stored workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Text of a workflow, YAML or JSON, instead of `workflow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// File name of the text, for diagnostics. Only with `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Further files that the text names. Only with `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. Only with `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Id of the run. If absent, an id is made from the workflow's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Id of this request, chosen by the caller. The request can then be repeated: if it has already started `run`, it
    /// succeeds again. Another request with the id is refused (422, `key-reused`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Input of the run. If null or absent, the `input` of `stubs`, if they have one.
    #[serde(default)]
    pub input: Value,
    /// Stubs that answer for handlers, connectors and actions of the text, in the form that `POST /v1/language/stubs`
    /// returns. Only with `text`. Stubs are not stored: after a restart of the server, the run continues without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub stubs: Option<Value>,
    /// Labels of the run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Scheduled time of the run, RFC 3339. `schedule('time')` returns it in the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_time: Option<Timestamp>,
    /// Options that are accepted only over the control socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub local: Option<LocalStart>,
}

/// Options of a start that only the operator's processes may set, over the control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalStart {
    /// Maximum number of iterations that a loop of the workflow may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// Maximum timeout that a loop of the workflow may have, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<u64>,
    /// Handlers in addition to those of the workflow and of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<(String, HandlerTarget)>,
    /// The folder to which the relative paths in the workflow's actions refer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether the workflow is a guest (not trusted). It then has only the rights of a workflow that is received over
    /// TCP.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guest: bool,
}

/// A further file of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Path of the file, relative to the folder of the workflow.
    pub path: String,
    /// Text of the file.
    pub text: String,
}

/// A workflow in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowText {
    /// Text of the workflow, YAML or JSON.
    pub text: String,
    /// File name of the text, for diagnostics. If absent, a name such as `workflow.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Further files that the text names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileText>,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// A page of stored workflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowList {
    /// Workflows, sorted by name.
    pub workflows: Vec<WorkflowSummary>,
    /// Value for `after` of the next page, which may be empty. Null if this page is not full.
    pub next: Option<String>,
}

/// Values that workflows store between their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateList {
    /// Values, sorted by workflow and name.
    pub values: Vec<StateReport>,
}

/// New value that a workflow stores between its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateValue {
    /// The new value.
    pub value: Value,
    /// Writes only if the stored value has this version (0: never written, or deleted). Not together with `expect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// Writes only if this value is stored. Not together with `if_version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
}

impl StateValue {
    /// Returns the condition of the write, or `None` if the request has two conditions, which is an error.
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

/// Status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunState {
    /// Id of the run.
    pub run: String,
    /// Status of the run.
    pub status: RunStatus,
}

/// Options of a retry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRun {
    /// Id of the new run. If absent, an id is made from the workflow's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Action or iteration from which the new run continues, with the state at that time: `fetch`, `poll#14`,
    /// `poll#14/fetch`; `failed`: the action that the run failed at; `failed-items`: the failed items of the only
    /// foreach that had any; `failed-items/PATH`: those of this foreach. If absent, the new run starts at the
    /// beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// As for a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// One command for many runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRuns {
    /// Command to execute.
    #[serde(rename = "do")]
    pub verb: BulkVerb,
    /// Ids of the runs, at most 1,000.
    pub runs: Vec<String>,
}

/// Command for many runs. `retry` starts from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkVerb {
    /// Like `pause` of one run.
    Pause,
    /// Like `resume` of one run.
    Resume,
    /// Like `cancel` of one run.
    Cancel,
    /// Like `retry` of one run, from its beginning.
    Retry,
}

/// Result of a command for many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkReport {
    /// Runs for which the command succeeded.
    pub done: Vec<BulkDone>,
    /// Runs for which the command failed.
    pub failed: Vec<BulkFailed>,
}

/// Recent output of the running commands of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PrintedReport {
    /// Last lines of each running command, in order.
    pub lines: Vec<OutputLine>,
}

/// A run for which a command succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkDone {
    /// Id of the run.
    pub run: String,
    /// Status after the command. Absent for `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Id of the new run of a `retry`. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_run: Option<String>,
}

/// A run for which a command failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailed {
    /// Id of the run.
    pub run: String,
    /// Word of the error type: `unknown-run`, `run-ended`, …
    pub code: String,
    /// Message of the error.
    pub detail: String,
}

/// Alternative to a token at the beginning of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginSession {
    /// Ticket of `windlass ui`. It is valid once, for one minute.
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

/// A signal for a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// Name of the signal.
    pub name: String,
    /// Payload of the signal.
    #[serde(default)]
    pub payload: Value,
    /// Value of `received` of the wait that the signal answers. If that wait is over, the signal is refused. If absent,
    /// the signal is stored for the next wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Id that the sender chooses, so that the signal can be sent again: the run receives a repeated signal once.
    /// Another signal with the id is refused (422, `key-reused`). May be absent.
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
    /// Id of the run.
    pub run: String,
}

/// Result of resuming all runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// Ids of the resumed runs.
    pub runs: Vec<String>,
}

/// Which ended runs are deleted: those that all of these conditions select. At least one of `older_than`, `keep`,
/// `labels` and `status` is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRuns {
    /// Only runs that ended longer ago than this ISO 8601 duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// Number of newest runs of each workflow that are not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
    /// Only runs of this workflow, or of one of several, with commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Only runs with all of these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Only runs with one of these statuses. `SucceededWithFailures` selects succeeded runs in which actions failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub status: Vec<StatusFilter<RunStatus>>,
    /// Deletes nothing, and returns what would be deleted.
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
    /// The version of Windlass that the process runs.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// Whether the process is a server, which runs until it is stopped. Any other owner ends when its own runs have
    /// ended.
    pub serves: bool,
    /// Whether the process releases the store to a server that requests it.
    pub releases: bool,
    /// Whether the process encrypts secure values in the store.
    pub encrypts: bool,
}
