//! What an attempt knows of where it is made: the folder that relative paths are from, and whether it
//! may have been made before. It never changes the folder of the engine's own process, and never
//! says what an attempt left.

use super::secrets::Mask;
use std::path::{Path, PathBuf};
use std::sync::Arc;

tokio::task_local! {
    static CURRENT: Surroundings;
}

/// Where the attempts of a run are made.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The folder the run was started in, wherever it goes on; none: the engine's own.
    pub folder: Option<Arc<Path>>,
    /// Whether a process that is no more may have made the attempt before: then what it left may be
    /// its own.
    pub again: bool,
    /// The state directory of the engine, in whose store no action writes.
    pub state: Option<Arc<Path>>,
    /// Finds the secrets of the program.
    pub secrets: Option<Arc<Mask>>,
}

impl Surroundings {
    /// Does the work of an attempt here.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

/// The folder of the run whose action this task works on.
pub(super) fn folder() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.folder.clone()).ok().flatten()
}

/// Whether there is a secret of the program in this.
pub(super) fn holds_secret(bytes: &[u8]) -> bool {
    let secrets = CURRENT.try_with(|here| here.secrets.clone()).ok().flatten();
    secrets.is_some_and(|secrets| secrets.finds(&String::from_utf8_lossy(bytes)))
}

/// A path of an action, from the run's folder unless it is absolute.
pub(super) fn resolved(path: &str) -> PathBuf {
    match folder() {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}

/// The state directory of the engine that this task works for.
pub(super) fn state() -> Option<Arc<Path>> {
    CURRENT.try_with(|here| here.state.clone()).ok().flatten()
}

/// Whether the attempt of this task may have been made before. Who does not say so, does not know.
pub(super) fn made_before() -> bool {
    CURRENT.try_with(|here| here.again).unwrap_or(true)
}
