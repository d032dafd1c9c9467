//! `setState` and `getState`: values of a workflow between its runs. They belong to the engine's store, so the
//! driver that has one carries the request out; this file only keeps secrets out of it.

use super::execution_context::{holds_secret, is_quiet, origin, shared_state};
use super::{Attempt, Executor};
use std::fmt;
use windlass_expression::Value;
use windlass_model::model::{Fault, Origin, Request, fault_kind};

/// Where values of workflows between their runs are.
pub trait SharedState: Send + Sync + 'static {
    /// Reads or writes one, as a request of `getState` or `setState` of a workflow of this origin says. Blocks. A
    /// write is durable when this returns.
    ///
    /// # Errors
    /// [`fault_kind::CONFLICT`] when another run has written it, and faults about its inputs and the store.
    fn execute(&self, origin: Origin, request: &Request) -> Result<Value, Fault>;
}

impl fmt::Debug for dyn SharedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedState")
    }
}

pub(super) struct StateAction;

impl Executor for StateAction {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let Some(state) = shared_state() else {
                let what = "values between runs need the store of an engine";
                return Err(Fault::new(fault_kind::STORE, what));
            };
            if is_quiet() || holds_secret(request.inputs.to_json().as_bytes()) {
                let what = "a secret or secure value cannot be stored as state";
                return Err(Fault::new(fault_kind::SECRET, what));
            }
            let (origin, request) = (origin(), request.clone());
            let done = tokio::task::spawn_blocking(move || state.execute(origin, &request));
            match done.await {
                Ok(outcome) => outcome,
                Err(error) => Err(Fault::new(fault_kind::STORE, error.to_string()).transient()),
            }
        })
    }
}
