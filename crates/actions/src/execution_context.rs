//! What an attempt knows of where it is made: the folder that relative paths are from, and whether it
//! may have been made before. It never changes the folder of the engine's own process, and never
//! says what an attempt left.

use super::live::Listener;
use super::mask::Mask;
use super::state::SharedState;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_model::model::{self as trace, Origin, Request};

tokio::task_local! {
    static CURRENT: ExecutionContext;
}

/// Where the attempts of a run are made.
#[derive(Clone, Debug)]
pub(super) struct ExecutionContext {
    /// The folder in which the run was started, even if another process resumes it; none: the engine's own.
    pub folder: Option<Arc<Path>>,
    /// Whose program it is.
    pub origin: Origin,
    /// Something of the action is secure: what it says besides goes into no log.
    pub quiet: bool,
    /// Whether a process that no longer exists may have made the attempt before: then data that is
    /// already there may come from that attempt.
    pub replayed: bool,
    /// Whether the callee receives the trace context of the call.
    pub traced: bool,
    /// The state directory of the engine, in whose store no action writes.
    pub state: Option<Arc<Path>>,
    /// Where values of workflows between their runs are.
    pub shared: Option<Arc<dyn SharedState>>,
    /// Find the secrets of the program, and what is secure in the action's inputs.
    pub secrets: Vec<Arc<Mask>>,
    /// The listener for what commands print while they run.
    pub listener: Option<Listener>,
}

impl ExecutionContext {
    /// Does the work of an attempt here.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

/// The folder of the run whose action this task works on.
pub(super) fn folder() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.folder.clone()).ok().flatten()
}

/// Whose program the action of this task belongs to.
pub(super) fn origin() -> Origin {
    let origin = CURRENT.try_with(|here| here.origin);
    origin.unwrap_or_default()
}

/// Where values of workflows between their runs are, if a store is available.
pub(super) fn shared_state() -> Option<Arc<dyn SharedState>> {
    CURRENT.try_with(|here| here.shared.clone()).ok().flatten()
}

/// Whether there is a secret of the program, or something secure, in this.
pub(super) fn holds_secret(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let found = |here: &ExecutionContext| here.secrets.iter().any(|mask| mask.finds(&text));
    CURRENT.try_with(found).unwrap_or(false)
}

/// The listener for what the command of this task prints; none, where a secret or something secure could be
/// in it.
pub(super) fn listener() -> Option<Listener> {
    let open = |here: &ExecutionContext| !here.quiet && here.secrets.is_empty();
    let listener = |here: &ExecutionContext| here.listener.clone().filter(|_| open(here));
    CURRENT.try_with(listener).ok().flatten()
}

/// A path of an action, from the run's folder unless it is absolute.
pub(super) fn resolved(path: &str) -> PathBuf {
    match folder() {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}

/// The trace context of the call, for the callee; none unless spans are collected.
pub(super) fn traceparent(request: &Request) -> Option<String> {
    let traced = CURRENT.try_with(|here| here.traced).unwrap_or(false);
    traced.then(|| trace::traceparent(&request.key, request.attempt))
}

/// The state directory of the engine that this task works for.
pub(super) fn state() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.state.clone()).ok().flatten()
}

/// Whether what the action of this task says is not to be logged.
pub(super) fn is_quiet() -> bool {
    CURRENT.try_with(|here| here.quiet).unwrap_or(false)
}

/// Whether the attempt of this task may have been made before. Who does not say so, does not know.
pub(super) fn made_before() -> bool {
    CURRENT.try_with(|here| here.replayed).unwrap_or(true)
}
