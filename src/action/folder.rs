//! The folder that relative paths of an action are from: the one its run was started in, wherever
//! it goes on. It never changes the folder of the engine's own process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

tokio::task_local! {
    static FOLDER: Option<Arc<Path>>;
}

/// Does the work with this folder; without one, paths are from the engine's own.
pub(super) async fn within<F: Future>(folder: Option<Arc<Path>>, work: F) -> F::Output {
    FOLDER.scope(folder, work).await
}

/// The folder of the run whose action this task works on.
pub(super) fn current() -> Option<Arc<Path>> {
    FOLDER.try_with(Clone::clone).ok().flatten()
}

/// A path of an action, from the run's folder unless it is absolute.
pub(super) fn resolved(path: &str) -> PathBuf {
    match current() {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}
