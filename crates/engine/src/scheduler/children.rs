//! Runs that other runs start and wait for (`type: workflow`). The id of a child run is made from the call that starts
//! it. So a call that is repeated after a crash finds the run that it started before. If the machine aborts the call,
//! the driver cancels the child run. After a crash, the engine cancels each child run whose parent no longer waits for
//! it (`launch.rs`).

use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock, Weak};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request, fault_kind, short_digest};
use windlass_store::MAX_RUN_ID;
use windlass_value::first_chars;

/// A label of child runs. Its value is the id of the parent: the run that waits for the child.
pub const PARENT_LABEL: &str = "windlass.parent";

/// A call of a `workflow` action.
pub struct ChildCall {
    pub parent: Name,
    /// The id of the run that the call starts.
    pub child: Name,
    pub request: Request,
}

impl ChildCall {
    pub fn new(parent: &Name, request: Request) -> Self {
        Self {
            parent: parent.clone(),
            child: child_id(parent, &request),
            request,
        }
    }
}

/// Returns the id of the run that a request starts. The id differs for each action, iteration and attempt.
pub fn child_id(parent: &str, request: &Request) -> Name {
    let Request { key, attempt, .. } = request;
    let digest = short_digest(&format!("{key} {attempt}"));
    let room = MAX_RUN_ID.saturating_sub(digest.len() + 2);
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let action = request.action.replace(|letter| !fits(letter), "-");
    let action = first_chars(&action, 40);
    let parent = first_chars(parent, room.saturating_sub(action.len()));
    Name::from(format!("{parent}.{action}-{digest}"))
}

/// Starts the runs of `workflow` actions, and waits until they end.
pub trait CallWorkflow: Send + Sync {
    /// Starts a run, waits for its end and returns its output. A repeated call waits for the run that the first call
    /// started.
    fn call(self: Arc<Self>, call: ChildCall) -> BoxFuture<'static, Result<Value, Fault>>;
}

/// Starts child runs with the engine that `set` received. The reference is weak, so that it does not keep the engine
/// alive.
#[derive(Clone, Default)]
pub struct WorkflowCaller(Arc<OnceLock<Weak<dyn CallWorkflow>>>);

impl WorkflowCaller {
    pub fn set(&self, caller: &Arc<dyn CallWorkflow>) {
        // This cannot fail: each engine has its own cell and sets it once.
        let _ = self.0.set(Arc::downgrade(caller));
    }

    pub async fn call(&self, call: ChildCall) -> Result<Value, Fault> {
        match self.0.get().map(Weak::upgrade) {
            Some(Some(caller)) => caller.call(call).await,
            // The engine is stopping. Never return: the next process repeats the call.
            Some(None) => std::future::pending().await,
            None => {
                let message = "this engine cannot start workflows of other workflows";
                Err(Fault::new(fault_kind::WORKFLOW, message))
            }
        }
    }
}
