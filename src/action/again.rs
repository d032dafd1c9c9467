//! Whether an attempt may have been made before, by a process that is no more: then what it left
//! may be its own. It never says what an attempt left.

tokio::task_local! {
    static AGAIN: bool;
}

/// Does the work as an attempt that may, or may not, have been made before.
pub(super) async fn within<F: Future>(again: bool, work: F) -> F::Output {
    AGAIN.scope(again, work).await
}

/// Whether the attempt of this task may have been made before. Who does not say so, does not know.
pub(super) fn possible() -> bool {
    AGAIN.try_with(|again| *again).unwrap_or(true)
}
