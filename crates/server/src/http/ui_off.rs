//! Replaces the console in a build without the feature `ui`.

use crate::api::Problem;
use windlass_engine::ErrorCode;

/// Returns false, because without the console there are no such paths.
pub(super) fn is_console_path(_path: &str) -> bool {
    false
}

/// Returns false, because without the console there are no such paths.
pub(super) fn is_shell(_path: &str) -> bool {
    false
}

pub(super) async fn redirect() -> Problem {
    shell().await
}

pub(super) async fn file() -> Problem {
    shell().await
}

pub(super) async fn shell() -> Problem {
    let detail = "this build has no console: the feature `ui` is off";
    Problem::new(ErrorCode::NotFound, detail)
}
