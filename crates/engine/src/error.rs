//! The errors of the use cases, as the caller sees them.

use super::ErrorCode;
use super::report::{CurrentWorkflow, StateReport};
use crate::scheduler::ScheduleError;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use windlass_draw::NoNode;
use windlass_expression::excerpt;
use windlass_source::diagnostic::{Diagnostics, did_you_mean};
use windlass_source::source::Bundle;
use windlass_store::{StoreError, StoreKind};

/// Why a use case failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the scheduler.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The input does not have the form that the workflow declares.
    #[error("{0}")]
    Input(String),
    /// An input without a default is missing. The second text says where it is declared.
    #[error("input `{0}` has no default and must be given{1}")]
    MissingInput(String, String),
    /// The caller's idempotency key was used for another run.
    #[error(
        "the idempotency key or `request_id` started run {0} with another input, other labels, another scheduled time or \
         another workflow"
    )]
    KeyReused(windlass_model::model::Name),
    /// Another run has the same key of `concurrency`.
    #[error(
        "skipped: run {run} has the same concurrency key{} and has not ended",
        in_backticks(key)
    )]
    SameKey {
        run: windlass_model::model::Name,
        key: String,
    },
    /// A run that waits for the run to be started has the same key of `concurrency`.
    #[error(
        "run {run} waits for it and has the same concurrency key{}",
        in_backticks(key)
    )]
    KeyOfCaller {
        run: windlass_model::model::Name,
        key: String,
    },
    /// A run that cannot be retried because of its status.
    #[error(
        "run {run} is {}: only one that failed, timed out or was cancelled is started again",
        status.as_str()
    )]
    NotRetried {
        run: windlass_model::model::Name,
        status: windlass_machine::RunStatus,
    },
    /// A position that a run cannot be retried from.
    #[error("run {run} cannot be retried from `{from}`: {why}")]
    NoPlace {
        run: windlass_model::model::Name,
        from: String,
        why: String,
    },
    /// A loop that a run does not have.
    #[error("run {run} has no loop `{path}`; it has {}", listed_names(known))]
    NoLoop {
        run: windlass_model::model::Name,
        /// The requested path or name.
        path: String,
        /// The paths of the loops that ran, and the names of the other loops.
        known: Vec<String>,
    },
    /// A node of a workflow's graph that does not exist, or that has no inner graph.
    #[error(
        "the graph has {} `{}`; {}",
        if .0.flat { "nothing in the node" } else { "no node" },
        .0.name,
        with_inside(.0)
    )]
    NoNode(NoNode),
    /// An iteration that a run does not have, or that is not stored.
    #[error(
        "run {run} has no stored iteration `{path}`; an iteration is a loop's path, `#` and a \
         number from 0, as in `poll#14`"
    )]
    NoIteration {
        run: windlass_model::model::Name,
        path: String,
    },
    /// An iteration whose values are not stored.
    #[error(
        "run {run}: the values of the iteration `{path}` are not stored, only its status, condition \
         and times"
    )]
    NoValues {
        run: windlass_model::model::Name,
        path: String,
    },
    /// An invalid page token.
    #[error("`{0}` is not a valid page token: use `next` from the previous page")]
    NoPage(String),
    /// An unknown name of a workflow.
    #[error("unknown workflow `{name}`{}", hint_suffix(hint))]
    NoWorkflow {
        name: windlass_model::model::Name,
        /// The name that was probably meant.
        hint: Option<String>,
    },
    /// A version that a stored workflow never had, or that is no longer stored.
    #[error(
        "the workflow `{name}` has no version `{version}`; a version is a hash of its list, or the first six \
         digits of it or more"
    )]
    NoVersion {
        name: windlass_model::model::Name,
        version: String,
    },
    /// The workflow that was to be replaced is no longer the one of this name.
    #[error("nothing was changed: {}", of_current(name, current.as_deref()))]
    WorkflowChanged {
        name: windlass_model::model::Name,
        /// The workflow that is stored now.
        current: Option<Box<CurrentWorkflow>>,
    },
    /// A value between runs that was never written or was deleted.
    #[error(
        "the workflow `{workflow}` has no stored state `{name}`{}",
        hint_suffix(hint)
    )]
    NoState {
        workflow: windlass_model::model::Name,
        name: windlass_model::model::Name,
        /// The name that was probably meant.
        hint: Option<String>,
    },
    /// The value between runs is not the one that the caller expects.
    #[error("nothing was written: {}", of_state(workflow, name, current.as_deref()))]
    StateChanged {
        workflow: windlass_model::model::Name,
        name: windlass_model::model::Name,
        /// The value that is stored now.
        current: Option<Box<StateReport>>,
    },
    /// No saved workflow of this name has a webhook.
    #[error("no saved workflow `{0}` has `triggers: {{ webhook: … }}`")]
    NoWebhook(String),
    /// A request to a webhook that is not signed with the secret of the webhook.
    #[error("{0}")]
    Unsigned(String),
    /// The secret of a webhook cannot be read.
    #[error("{0}")]
    NoWebhookSecret(String),
    /// The workflow cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The thread of the scheduler cannot be started.
    #[error("the scheduler's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The directory has no store.
    #[error("no store in {}", .0.display())]
    NoStore(std::path::PathBuf),
    /// The directory has a store already.
    #[error("there is a store in {} already: nothing was written", .0.display())]
    StoreExists(std::path::PathBuf),
    /// Another backup is being written to the directory.
    #[error("another backup is being written to {}: wait until it has ended", .0.display())]
    BackupRunning(std::path::PathBuf),
    /// The copy of a store cannot be written.
    #[error("no copy was made, because {} cannot be written: {error}", dir.display())]
    Destination {
        dir: std::path::PathBuf,
        #[source]
        error: io::Error,
    },
    /// An error of the other backend that has the runs.
    #[error("{0}")]
    Elsewhere(String),
    /// The other backend that has the runs does not answer. The same request may succeed later.
    #[error("{0}")]
    Outage(String),
    /// The configuration for sending spans is invalid.
    #[error("spans cannot be sent: {0}")]
    Otlp(String),
    /// Called outside a tokio runtime.
    #[error("an engine is opened inside a tokio runtime")]
    NoRuntime,
}

/// Returns the state directory if it has a store.
pub(super) fn existing(dir: &Path) -> Result<&Path, EngineError> {
    if StoreKind::of(dir).is_some() {
        return Ok(dir);
    }
    match fs::read_dir(dir.join("store")) {
        // The directory cannot be read, so it is not known whether it has a store.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::NotADirectory
            ) =>
        {
            let path = dir.display().to_string();
            Err(StoreError::Unopened { path, error }.into())
        }
        _ => Err(EngineError::NoStore(dir.to_owned())),
    }
}

impl EngineError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => of_store(error),
            Self::Schedule(error) => of_schedule(error),
            Self::Input(_) | Self::MissingInput(..) => ErrorCode::RefusedInput,
            Self::KeyReused(_) => ErrorCode::KeyReused,
            Self::SameKey { .. } | Self::KeyOfCaller { .. } => ErrorCode::SameKey,
            Self::NotRetried { .. } => ErrorCode::NotRetried,
            Self::NoPlace { .. } => ErrorCode::NoPlace,
            Self::NoWebhook(_) => ErrorCode::NotFound,
            Self::Unsigned(_) => ErrorCode::Unsigned,
            Self::NoLoop { .. } | Self::NoNode(_) | Self::NoPage(_) => ErrorCode::BadRequest,
            Self::NoIteration { .. } | Self::NoValues { .. } | Self::NoVersion { .. } => {
                ErrorCode::NotFound
            }
            Self::NoWorkflow { .. } => ErrorCode::UnknownWorkflow,
            Self::WorkflowChanged { .. } => ErrorCode::WorkflowChanged,
            Self::NoState { .. } => ErrorCode::UnknownState,
            Self::StateChanged { .. } => ErrorCode::StateChanged,
            Self::Load(error) => error.code(),
            Self::NoStore(_) => ErrorCode::NoStore,
            Self::StoreExists(_) => ErrorCode::StoreExists,
            Self::BackupRunning(_) => ErrorCode::BackupRunning,
            Self::Destination { .. } => ErrorCode::Store,
            Self::Otlp(_) => ErrorCode::BadRequest,
            Self::Elsewhere(_) | Self::Outage(_) | Self::NoWebhookSecret(_) => {
                ErrorCode::Unavailable
            }
            Self::Thread(_) | Self::NoRuntime => ErrorCode::Internal,
        }
    }

    /// Returns whether the disk is full: the caller may wait for free space and try again.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        let error = match self {
            Self::Store(error) => error,
            Self::Schedule(ScheduleError::Store(error)) => &**error,
            _ => return false,
        };
        match error {
            StoreError::Io(error) | StoreError::Unopened { error, .. } => is_full(error),
            _ => false,
        }
    }
}

fn in_backticks(key: &str) -> String {
    match key {
        "" => String::new(),
        key => format!(" `{key}`"),
    }
}

/// Returns whether the disk or the user's quota on it is full.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

fn of_schedule(error: &ScheduleError) -> ErrorCode {
    match error {
        ScheduleError::Store(error) => of_store(error),
        ScheduleError::Unloadable { .. } | ScheduleError::Sealed(_) => ErrorCode::NotLoaded,
        ScheduleError::Ended { .. } => ErrorCode::RunEnded,
        ScheduleError::Exists(_) => ErrorCode::RunExists,
        ScheduleError::NoSignal { .. } => ErrorCode::NoSignal,
        ScheduleError::RefusedAnswer { .. } => ErrorCode::RefusedAnswer,
        ScheduleError::Answered { .. } => ErrorCode::Answered,
        ScheduleError::SignalIdReused { .. } => ErrorCode::KeyReused,
        ScheduleError::Broken { .. } => ErrorCode::Internal,
        ScheduleError::Busy => ErrorCode::Busy,
        ScheduleError::Stopped => ErrorCode::Unavailable,
    }
}

fn of_store(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::UnknownRun(_) => ErrorCode::UnknownRun,
        StoreError::Rejected { .. } => ErrorCode::RefusedInput,
        StoreError::Locked { .. }
        | StoreError::Foreign { .. }
        | StoreError::OtherKind { .. }
        | StoreError::Unopened { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Unreadable(_)
        | StoreError::Gone { .. }
        | StoreError::Io(_)
        | StoreError::Conflict { .. }
        | StoreError::Failed { .. } => ErrorCode::Store,
    }
}

impl From<NoNode> for EngineError {
    fn from(error: NoNode) -> Self {
        Self::NoNode(error)
    }
}

/// Lists the nodes that can be requested instead.
fn with_inside(error: &NoNode) -> String {
    let known = listed_names(&error.known);
    let meant = did_you_mean_suffix(&error.name, &error.known);
    format!("those with an inside are {known}{meant}")
}

/// Returns a hint to what a name was meant to be, for the end of a sentence.
pub(super) fn did_you_mean_suffix(name: &str, known: &[impl AsRef<str>]) -> String {
    hint_suffix(&did_you_mean(name, known.iter().map(AsRef::as_ref)))
}

/// Returns a hint for the end of a sentence.
pub(super) fn hint_suffix(hint: &Option<String>) -> String {
    let hint = hint.as_ref();
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// Returns the end of a list that is not complete. `separator` precedes it.
pub(super) fn and_more(separator: &str, more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!("{separator}and {more} more"),
    }
}

fn of_current(name: &str, current: Option<&CurrentWorkflow>) -> String {
    match current {
        Some(current) => {
            format!("the workflow `{name}` has the version {}", current.version)
        }
        None => format!("the workflow `{name}` does not exist"),
    }
}

fn of_state(workflow: &str, name: &str, current: Option<&StateReport>) -> String {
    match current {
        Some(current) => format!(
            "the state `{name}` of `{workflow}` has version {} and the value {}",
            current.version,
            excerpt(&current.value)
        ),
        None => format!("the workflow `{workflow}` has no stored state `{name}`"),
    }
}

/// Lists the first of several names.
pub(super) fn listed_names(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 20;
    if names.is_empty() {
        return String::from("none");
    }
    let first: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = and_more(" ", names.len().saturating_sub(SHOWN));
    format!("{}{more}", first.join(", "))
}

/// Why a workflow cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        path: String,
        #[source]
        error: std::io::Error,
    },
    #[error("{}", diagnostics.render(bundle, false))]
    Refused {
        /// All of its errors and warnings.
        diagnostics: Diagnostics,
        /// The files that were read, for rendering the diagnostics.
        bundle: Bundle,
    },
}

impl LoadError {
    /// Returns the kind of the error. A file that exists but is too large or not text is an invalid workflow.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { .. } => ErrorCode::RefusedWorkflow,
            Self::Unreadable { error, .. } => match error.kind() {
                ErrorKind::InvalidData | ErrorKind::FileTooLarge => ErrorCode::RefusedWorkflow,
                _ => ErrorCode::BadRequest,
            },
        }
    }
}
