//! Runs long computations on threads for blocking work. On a worker thread of the async runtime, a computation would
//! delay every other task, and no timeout could end it. If the caller no longer waits, the computation is cancelled.

use super::execution_context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use windlass_expression::Budget;
use windlass_model::model::{Fault, Origin, fault_kind};

/// Maximum number of concurrent computations. Further ones wait. With more threads, computations would only slow down
/// everything else.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Maximum number of concurrent computations for guests (workflows from HTTP or MCP). It is one less than the number of
/// slots, so that one slot is always left for the operator.
static GUESTS: Semaphore = Semaphore::const_new(1);

/// Cancels the work on drop. It is dropped when no caller waits for the work any more.
struct CancelFlag(Arc<AtomicBool>);

impl Drop for CancelFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work on another thread, with a budget of its own.
pub(super) async fn compute<T, F>(work: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: FnOnce(&Budget) -> Result<T, Fault> + Send + 'static,
{
    let flag = Arc::new(AtomicBool::new(false));
    let _waited_for = CancelFlag(Arc::clone(&flag));
    // The semaphores are never closed.
    let guest = match execution_context::origin() {
        Origin::Guest => Some(GUESTS.acquire().await),
        Origin::Operator => None,
    };
    let place = PLACES.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        // The work holds its slots until it ends, even if no caller waits for it any more.
        let _place = (guest, place);
        work(&Budget::default().until(flag))
    });
    done.await.unwrap_or_else(|error| {
        let message = format!("the computation failed: {error}");
        Err(Fault::new(fault_kind::HANDLER, message))
    })
}
