//! The context of an attempt, such as the folder for relative paths, and whether the attempt may be a repetition. It is
//! a task-local value: the working directory of the engine's own process never changes.

use super::live::Listener;
use super::mask::Mask;
use super::state::SharedState;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_model::model::{self as trace, Origin, Request};

tokio::task_local! {
    static CURRENT: ExecutionContext;
}

/// The context in which the attempts of a run are made.
#[derive(Clone, Debug)]
pub(super) struct ExecutionContext {
    /// The folder in which the run was started, even if a process in another folder resumes the run. `None`: the
    /// working directory of the engine.
    pub folder: Option<Arc<Path>>,
    /// The origin of the program: the operator or a guest (a workflow from HTTP or MCP).
    pub origin: Origin,
    /// Whether the action has secure inputs or outputs. If so, its output is not logged.
    pub quiet: bool,
    /// Whether an earlier process, which no longer exists, may have begun this attempt. If true, data that exists
    /// already may be from that process.
    pub replayed: bool,
    /// Whether a called service receives the trace context of the call.
    pub traced: bool,
    /// The state directory of the engine. No action may write to the store in this directory.
    pub state: Option<Arc<Path>>,
    /// The storage for values that workflows share between runs. `None` if no store is available.
    pub shared: Option<Arc<dyn SharedState>>,
    /// Masks that find the secrets of the program and the secure values in the action's inputs.
    pub secrets: Vec<Arc<Mask>>,
    /// The listener for what commands print while they run.
    pub listener: Option<Listener>,
}

impl ExecutionContext {
    /// Runs the work of an attempt in this context.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

/// Returns the folder of the run whose action this task executes.
pub(super) fn folder() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.folder.clone()).ok().flatten()
}

/// Returns the origin of the program whose action this task executes.
pub(super) fn origin() -> Origin {
    let origin = CURRENT.try_with(|here| here.origin);
    origin.unwrap_or_default()
}

/// Returns the values that workflows share between runs, if a store is available.
pub(super) fn shared_state() -> Option<Arc<dyn SharedState>> {
    CURRENT.try_with(|here| here.shared.clone()).ok().flatten()
}

/// Returns true if the bytes contain a secret of the program or a secure value.
pub(super) fn holds_secret(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let found =
        |here: &ExecutionContext| here.secrets.iter().any(|mask| mask.contains_secret(&text));
    CURRENT.try_with(found).unwrap_or(false)
}

/// Returns true if the program has secrets, which are masked in outputs.
pub(super) fn has_secrets() -> bool {
    let found = |here: &ExecutionContext| here.secrets.iter().any(|mask| mask.has_secrets());
    CURRENT.try_with(found).unwrap_or(false)
}

/// Returns the listener for the output of this task's command, or `None` if the output could contain a secret or a
/// secure value.
pub(super) fn listener() -> Option<Listener> {
    let open = |here: &ExecutionContext| !here.quiet && here.secrets.is_empty();
    let listener = |here: &ExecutionContext| here.listener.clone().filter(|_| open(here));
    CURRENT.try_with(listener).ok().flatten()
}

/// Resolves a path of an action relative to the run's folder, unless the path is absolute.
pub(super) fn resolved(path: &str) -> PathBuf {
    match folder() {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}

/// Returns the trace context of the call, which a called service receives. `None` if spans are not collected.
pub(super) fn traceparent(request: &Request) -> Option<String> {
    let traced = CURRENT.try_with(|here| here.traced).unwrap_or(false);
    traced.then(|| trace::traceparent(&request.key, request.attempt))
}

/// Returns the state directory of the engine that this task belongs to.
pub(super) fn state() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.state.clone()).ok().flatten()
}

/// Returns true if the output of this task's action must not be logged.
pub(super) fn is_quiet() -> bool {
    CURRENT.try_with(|here| here.quiet).unwrap_or(false)
}

/// Returns true if an earlier process may have begun the attempt of this task. Also true outside of an attempt.
pub(super) fn may_be_replayed() -> bool {
    CURRENT.try_with(|here| here.replayed).unwrap_or(true)
}
