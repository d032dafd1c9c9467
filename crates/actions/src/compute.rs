//! Work that computes for long, on threads that may: a task that computes holds up every other one, and no timeout
//! ends it. A caller that no longer waits for it cancels it.

use super::{execution_context, lower_priority};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::{Semaphore, oneshot};
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
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("the computation failed: {error}");
        Err(Fault::new(fault_kind::HANDLER, message))
    };
    let (result, done) = oneshot::channel();
    // A thread of its own: the priority of one that is shared could not be raised again.
    let started = thread::Builder::new().spawn(move || {
        lower_priority();
        // It keeps its place until it ends, even when no caller waits for it.
        let _place = (guest, place);
        // Without a receiver no caller waits for it.
        let _ = result.send(work(&Budget::default().until(flag)));
    });
    if let Err(error) = started {
        return failed(&error);
    }
    let ended = done.await;
    ended.unwrap_or_else(|_| failed(&"it panicked"))
}
