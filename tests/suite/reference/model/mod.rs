//! The reference model: `docs/reference/loops.md` as a readable program.
//!
//! It interprets the tree that a format made of its file. A loop of the workflow is a Rust loop, a step is an `async`
//! function, and a wait of the workflow is an `.await`. When a block ends early, all waits in it return
//! [`Stop::Aborted`] immediately, which leaves the block as a failure does. The model has no store, is not fast, and
//! uses no code of `crates/machine`. What both do in the same way is therefore what the page describes.
//!
//! - `loops`: "One iteration", "What a loop returns", "Limits"
//! - `steps`: "Failures in the body", "break_when and continue_when", "Retries"
//! - `branches`: "foreach, parallel, runAfter"
//! - `clock`: "Checkpoints", "Pause, resume, cancel": events, turns and time
//! - `place`, `view`: "Variables of a loop", and what else expressions read
//!
//! The model has no budgets, no feedback, no collected values, no graph with goto, and no actions at the end of a run.
//! It has no jitter, because the machine draws it from its own seed.

mod branches;
mod clock;
mod loops;
mod place;
mod steps;
mod view;

use clock::{Branch, Clock, Wait, race};
pub use clock::{Event, Reply, play};
use place::{Place, Records, Round};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::hir::{Block, Outputs, Step, StepKind, Workflow};
use windlass_model::model::{Backoff, Fault, Name, Status, fault_kind};
use windlass_value::time::Timestamp;

/// How a step or a block ended.
type Flow<T = ()> = Result<T, Stop>;

/// An active block or branch.
type Running<'s> = Pin<Box<dyn Future<Output = Flow> + 's>>;

/// Why a block ended early.
#[derive(Clone)]
enum Stop {
    /// `break_when` was true: for the innermost loop or foreach.
    Break,
    /// `continue_when` was true: the same.
    Continue,
    /// A deadline, a jump or the end of the run ended the surrounding block.
    Aborted,
    Failed(Box<Failure>),
}

/// A fault that has not been handled yet.
#[derive(Clone)]
struct Failure {
    fault: Fault,
    /// The innermost action in which it happened.
    action: Name,
    /// "The run's error names the action, the iteration of the innermost loop, and the line."
    error: String,
}

/// An iteration or an item that ended: its path, such as `outer#2/inner#0`, status, condition and result.
pub type Row = (String, Status, Option<bool>, Value);

/// Everything that a run did.
#[derive(Debug, Default)]
pub struct Story {
    /// What happened, in order.
    pub lines: Vec<String>,
    pub rows: Vec<Row>,
    /// The requests that were sent: time, key, attempt, inputs.
    pub requests: Vec<String>,
    pub variables: Object,
    /// Status, output and error; none if the run waits for something that never happens.
    pub ended: Option<(Status, Value, Option<String>)>,
}

/// A run of a workflow.
struct Run<'s> {
    workflow: &'s Workflow,
    clock: Clock,
    story: RefCell<Story>,
}

impl Run<'_> {
    async fn body(&self) {
        let place = Place::root(self);
        self.note("run");
        for (name, initial) in &self.workflow.variables {
            let value = place.eval(initial).unwrap_or_default();
            let variables = &mut self.story.borrow_mut().variables;
            variables.insert(name.clone(), value);
        }
        match place.block(&self.workflow.body).await {
            Err(Stop::Aborted) => return,
            Ok(()) | Err(Stop::Break | Stop::Continue) => self.succeed(&place, false),
            Err(Stop::Failed(failure)) => {
                self.end(failure.fault.status(), Err(Stop::Failed(failure)));
            }
        }
        // Waits until it is aborted.
        let _ = place.until(|| false).await;
    }

    /// Ends the run as Succeeded with its output. `early` means that a `terminate` ends it, so what has not run reads
    /// as null.
    fn succeed(&self, place: &Place<'_>, early: bool) {
        let output = match &self.workflow.outputs {
            Outputs::Template(template) => place.eval_with(template, early),
            Outputs::Actions | Outputs::State => {
                let root = place.around().last().unwrap_or(place);
                Ok(root.outputs(&self.workflow.body))
            }
        };
        self.end(exact_status(&output), output);
    }

    fn end(&self, status: Status, ended: Flow<Value>) {
        let (output, error) = match ended {
            Ok(output) => (output, None),
            Err(Stop::Failed(failure)) => (Value::Null, Some(failure.error)),
            Err(_) => (Value::Null, None),
        };
        self.story.borrow_mut().ended = Some((status, output, error));
    }

    fn has_ended(&self) -> bool {
        self.story.borrow().ended.is_some()
    }

    /// Adds a line to the story.
    fn note(&self, what: impl Display) {
        let line = format!("{} {what}", self.clock.now.get().0);
        self.story.borrow_mut().lines.push(line);
    }
}

/// The status of a block. A jump out of it ends it as Succeeded.
fn status(ended: &Flow) -> Status {
    match ended {
        Err(Stop::Failed(_)) => Status::Failed,
        ended => exact_status(ended),
    }
}

/// The status of an action: that of its fault.
fn exact_status<T>(ended: &Flow<T>) -> Status {
    match ended {
        Ok(_) | Err(Stop::Break | Stop::Continue) => Status::Succeeded,
        Err(Stop::Aborted) => Status::Cancelled,
        Err(Stop::Failed(failure)) => failure.fault.status(),
    }
}
