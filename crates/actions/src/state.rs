//! `setState` and `getState`: values that a workflow stores between its runs. The values are in the engine's store, so
//! the engine carries the request out, through [`SharedState`]. This module only refuses values with secrets.

use super::execution_context::{holds_secret, is_quiet, origin, shared_state};
use super::{Attempt, Executor};
use std::fmt;
use windlass_expression::Value;
use windlass_model::model::{Fault, Origin, Request, fault_kind};

/// Storage for the values that workflows share between runs.
pub trait SharedState: Send + Sync + 'static {
    /// Carries out a `getState` or `setState` request of a workflow of this origin. Blocks. When this returns, a write
    /// is durable.
    ///
    /// # Errors
    /// Returns a fault of kind [`fault_kind::CONFLICT`] if another run has changed the value. Also returns a fault for
    /// invalid inputs and for errors of the store.
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
