//! Work that computes for long, on threads that may: a task that computes holds up every other one, and no timeout
//! ends it. A caller that no longer waits for it cancels it.

use super::execution_context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use windlass_expression::Budget;
use windlass_model::model::{Fault, Origin, fault_kind};

/// Maximum number of concurrent computations; the others wait. More threads would only take the processors from
/// everything else.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Of them, those of guests: one is left to the operator.
static GUESTS: Semaphore = Semaphore::const_new(1);

/// Cancels the work when no caller waits for it.
struct CancelFlag(Arc<AtomicBool>);

impl Drop for CancelFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work with a budget of its own.
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
        // It keeps its place until it ends, even when no caller waits for it.
        let _place = (guest, place);
        work(&Budget::default().until(flag))
    });
    done.await.unwrap_or_else(|error| {
        let message = format!("the computation failed: {error}");
        Err(Fault::new(fault_kind::HANDLER, message))
    })
}
