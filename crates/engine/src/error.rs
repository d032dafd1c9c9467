//! What can go wrong with a use case, as the caller sees it.

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
    /// The scheduler.
    #[error(transparent)]
    Schedule(ScheduleError),
    /// The input is not what the workflow declares.
    #[error("{0}")]
    Input(String),
    /// An input without a default is missing, and where it is declared.
    #[error("input `{0}` has no default and must be given{1}")]
    MissingInput(String, String),
    /// The caller's key began another run.
    #[error("the idempotency key began run {0} with another input, other labels or another text")]
    KeyReused(windlass_model::model::Name),
    /// Another run has the same key of `concurrency`.
    #[error("skipped: run {run} has the same concurrency key `{key}` and has not ended")]
    SameKey {
        run: windlass_model::model::Name,
        key: String,
    },
    /// A run that is not started again.
    #[error(
        "run {run} is {}: only one that failed, timed out or was cancelled is started again",
        status.as_str()
    )]
    NotRetried {
        run: windlass_model::model::Name,
        /// What it is doing.
        status: windlass_machine::RunStatus,
    },
    /// A place that a run cannot be retried from.
    #[error("run {run} cannot be retried from `{from}`: {why}")]
    NoPlace {
        run: windlass_model::model::Name,
        /// The place.
        from: String,
        /// Why not.
        why: String,
    },
    /// A loop that a run does not have.
    #[error("run {run} has no loop `{path}`; it has {}", listed_names(known))]
    NoLoop {
        run: windlass_model::model::Name,
        /// The requested path or name.
        path: String,
        /// The paths of those that ran, and the names of the others.
        known: Vec<String>,
    },
    /// A node of a workflow's graph that is not there, or has no inside.
    #[error(
        "the graph has {} `{}`; {}",
        if .0.flat { "nothing in the node" } else { "no node" },
        .0.name,
        with_inside(.0)
    )]
    NoNode(NoNode),
    /// An iteration that a run does not have, or of which nothing is stored.
    #[error(
        "run {run} has no stored iteration `{path}`; an iteration is a loop's path, `#` and a \
         number from 0, as in `poll#14`"
    )]
    NoIteration {
        run: windlass_model::model::Name,
        /// The requested path.
        path: String,
    },
    /// A place in a list that is none.
    #[error("`{0}` is not a valid page token: use `next` from the previous page")]
    NoPage(String),
    /// A name that no workflow is stored under.
    #[error("unknown workflow `{name}`{}", hint_suffix(hint))]
    NoWorkflow {
        name: windlass_model::model::Name,
        /// What was meant.
        hint: Option<String>,
    },
    /// A version that a stored workflow never had, or that is not stored any more.
    #[error(
        "the workflow `{name}` has no version `{version}`; a version is a hash of its list, or the first six \
         digits of it or more"
    )]
    NoVersion {
        /// The workflow.
        name: windlass_model::model::Name,
        /// The requested version.
        version: String,
    },
    /// The name now has another workflow than the one that was to be replaced.
    #[error(
        "{}: put it again when what changed is part of it", 
        of_current(name, current.as_deref())
    )]
    WorkflowChanged {
        name: windlass_model::model::Name,
        /// What is stored there now.
        current: Option<Box<CurrentWorkflow>>,
    },
    /// A value between runs that was never written, or was deleted.
    #[error(
        "the workflow `{workflow}` has no stored state `{name}`{}",
        hint_suffix(hint)
    )]
    NoState {
        workflow: windlass_model::model::Name,
        name: windlass_model::model::Name,
        /// What was meant.
        hint: Option<String>,
    },
    /// A value between runs is another one than the caller expects.
    #[error("nothing was written: {}", of_state(workflow, name, current.as_deref()))]
    StateChanged {
        workflow: windlass_model::model::Name,
        name: windlass_model::model::Name,
        /// What is stored there now.
        current: Option<Box<StateReport>>,
    },
    /// No saved workflow of this name has a webhook.
    #[error("no saved workflow `{0}` has `triggers: {{ webhook: … }}`")]
    NoWebhook(String),
    /// A request to a webhook that is not signed by its secret.
    #[error("{0}")]
    Unsigned(String),
    /// The secret of a webhook cannot be read.
    #[error("{0}")]
    NoWebhookSecret(String),
    /// A signal that nothing in a run's workflow waits for.
    #[error(
        "run {run} waits for no signal `{name}`; its workflow waits for {}{}",
        listed_names(known),
        did_you_mean_suffix(name, known)
    )]
    NoSignal {
        run: windlass_model::model::Name,
        /// The signal that was sent.
        name: windlass_model::model::Name,
        /// Those that its workflow waits for.
        known: Vec<String>,
    },
    /// The workflow.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no thread to be had.
    #[error("the scheduler's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// There is no store in the directory.
    #[error("no store in {}", .0.display())]
    NoStore(std::path::PathBuf),
    /// There is a store already where one was to be put.
    #[error("there is a store in {} already: nothing was written", .0.display())]
    StoreExists(std::path::PathBuf),
    /// The engine of others that has the runs.
    #[error("{0}")]
    Elsewhere(String),
    /// Spans cannot be sent as configured.
    #[error("spans cannot be sent: {0}")]
    Otlp(String),
    /// Called outside a tokio runtime.
    #[error("an engine is opened inside a tokio runtime")]
    NoRuntime,
}

/// The state directory, when there is a store in it.
pub(super) fn existing(dir: &Path) -> Result<&Path, EngineError> {
    if StoreKind::of(dir).is_some() {
        return Ok(dir);
    }
    match fs::read_dir(dir.join("store")) {
        // Whether there is one cannot be seen.
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
    /// Its kind.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => of_store(error),
            Self::Schedule(error) => of_schedule(error),
            Self::Input(_) | Self::MissingInput(..) => ErrorCode::RefusedInput,
            Self::KeyReused(_) => ErrorCode::KeyReused,
            Self::SameKey { .. } => ErrorCode::SameKey,
            Self::NotRetried { .. } => ErrorCode::NotRetried,
            Self::NoPlace { .. } => ErrorCode::NoPlace,
            Self::NoSignal { .. } => ErrorCode::NoSignal,
            Self::NoWebhook(_) => ErrorCode::NotFound,
            Self::Unsigned(_) => ErrorCode::Unsigned,
            Self::NoLoop { .. } | Self::NoNode(_) | Self::NoPage(_) => ErrorCode::BadRequest,
            Self::NoIteration { .. } | Self::NoVersion { .. } => ErrorCode::NotFound,
            Self::NoWorkflow { .. } => ErrorCode::UnknownWorkflow,
            Self::WorkflowChanged { .. } => ErrorCode::WorkflowChanged,
            Self::NoState { .. } => ErrorCode::UnknownState,
            Self::StateChanged { .. } => ErrorCode::StateChanged,
            Self::Load(error) => error.code(),
            Self::NoStore(_) => ErrorCode::NoStore,
            Self::StoreExists(_) => ErrorCode::StoreExists,
            Self::Otlp(_) => ErrorCode::BadRequest,
            Self::Elsewhere(_) | Self::NoWebhookSecret(_) => ErrorCode::Unavailable,
            Self::Thread(_) | Self::NoRuntime => ErrorCode::Internal,
        }
    }

    /// Whether the disk has no room: who waits for some may try again.
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

/// Whether a disk refuses because it, or what its user may have of it, is full.
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
        ScheduleError::Unloadable { .. } => ErrorCode::NotLoaded,
        ScheduleError::Sealed(_) => ErrorCode::Store,
        ScheduleError::Ended { .. } => ErrorCode::RunEnded,
        ScheduleError::Exists(_) => ErrorCode::RunExists,
        ScheduleError::NoSignal { .. } => ErrorCode::NoSignal,
        ScheduleError::RefusedAnswer { .. } => ErrorCode::RefusedAnswer,
        ScheduleError::Answered { .. } => ErrorCode::Answered,
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
        | StoreError::Gone { .. }
        | StoreError::Io(_)
        | StoreError::Conflict { .. }
        | StoreError::Failed { .. } => ErrorCode::Store,
    }
}

impl From<ScheduleError> for EngineError {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::NoSignal { run, name, known } => Self::NoSignal {
                run,
                name,
                known: known.iter().map(ToString::to_string).collect(),
            },
            other => Self::Schedule(other),
        }
    }
}

impl From<NoNode> for EngineError {
    fn from(error: NoNode) -> Self {
        Self::NoNode(error)
    }
}

/// The nodes that can be requested instead.
fn with_inside(error: &NoNode) -> String {
    let known = listed_names(&error.known);
    let meant = did_you_mean_suffix(&error.name, &error.known);
    format!("those with an inside are {known}{meant}")
}

/// What a name was meant to be, to be put behind a sentence.
fn did_you_mean_suffix(name: &str, known: &[String]) -> String {
    hint_suffix(&did_you_mean(name, known))
}

fn hint_suffix(hint: &Option<String>) -> String {
    let hint = hint.as_ref();
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn of_current(name: &str, current: Option<&CurrentWorkflow>) -> String {
    match current {
        Some(current) => format!("the workflow `{name}` is {} by now", current.version),
        None => format!("the workflow `{name}` no longer exists"),
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

/// The first of several names.
fn listed_names(names: &[String]) -> String {
    const SHOWN: usize = 20;
    if names.is_empty() {
        return String::from("none");
    }
    let first = names.iter().take(SHOWN);
    let mut text = first.map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len().saturating_sub(SHOWN)));
    }
    text
}

/// Why a workflow was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// The file.
        path: String,
        #[source]
        error: std::io::Error,
    },
    /// The file is refused.
    #[error("{}", diagnostics.render(bundle, false))]
    Refused {
        /// All of its mistakes, and what only looks wrong.
        diagnostics: Diagnostics,
        /// What was read, for rendering them.
        bundle: Bundle,
    },
}

impl LoadError {
    /// Its kind. A file that is there but too large, or no text, is an invalid workflow.
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
