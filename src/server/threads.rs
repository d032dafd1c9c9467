//! Work of requests that blocks or computes for long: on a few threads, however many clients ask.
//! A thread keeps what it once allocated, and more of them than processors read nothing sooner.
//! Nothing here knows what the work is.

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// So many at a time; the others wait.
static PLACES: Semaphore = Semaphore::const_new(8);

/// Does the work where it may block.
///
/// # Errors
/// When it panicked.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    // The semaphore is never closed: an error says nothing.
    let _place = PLACES.acquire().await;
    tokio::task::spawn_blocking(work).await
}
