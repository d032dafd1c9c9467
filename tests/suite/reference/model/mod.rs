//! The reference model: what `docs/reference/loops.md` says, as a program to read.
//!
//! It interprets the tree that a format made of its file. A loop of the workflow is a loop of Rust here, a step an
//! `async` function, and whatever ends a block early drops the function that runs it. It has no store, no speed and
//! no code of `crates/machine`: what both do alike is what the page says.
//!
//! - `loops`: "One iteration", "What a loop returns", "Limits"
//! - `steps`: "Failures in the body", "break_when and continue_when", "Retries"
//! - `branches`: "foreach, parallel, runAfter"
//! - `clock`: "Checkpoints", "Pause, resume, cancel": events, steps and time
//! - `records`, `view`: "Variables of a loop", and what else expressions read
//! - `subset`: what the model does not have, and refuses

mod branches;
mod clock;
mod loops;
mod records;
mod steps;
mod subset;
mod view;

use clock::Clock;
pub use clock::{Arrival, Reply};
use records::Place;
use std::cell::RefCell;
use windlass_expression::Value;
use windlass_model::hir::{Outputs, Workflow};
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

/// How a step or a block ended.
type Flow = Result<(), Stop>;

/// Why it ended early.
enum Stop {
    /// `break_when` was true: for the innermost loop or foreach.
    Break,
    /// `continue_when` was true: the same.
    Continue,
    Failed(Box<Failure>),
}

/// A fault on its way out.
#[derive(Clone)]
struct Failure {
    fault: Fault,
    /// The innermost action that it is from, with its line, and the iteration of the innermost loop around that.
    action: Name,
    line: u32,
    iteration: Option<(String, u64)>,
    /// It left a block, a loop or a retry: a retry of a block repeats any failure.
    through: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub status: Status,
    pub output: Value,
    /// Kind, action, iteration and line of the fault.
    pub error: Option<String>,
}

/// An iteration or an item that ended.
#[derive(Debug)]
pub struct Row {
    /// Its path, such as `outer#2/inner#0`.
    pub iteration: String,
    pub status: Status,
    pub condition: Option<bool>,
    pub result: Value,
}

/// All that a run did.
#[derive(Debug, Default)]
pub struct Story {
    /// What happened, in order.
    pub lines: Vec<String>,
    pub rows: Vec<Row>,
    /// The requests that were sent: when, key, attempt, inputs.
    pub requests: Vec<String>,
    pub variables: Value,
    /// None: it waits for something that never arrives.
    pub ended: Option<Ended>,
}

/// A run of a workflow.
struct Run<'s> {
    workflow: &'s Workflow,
    clock: Clock,
    variables: RefCell<Value>,
    story: RefCell<Story>,
}

/// Plays a workflow: `world` answers a request by the action's name and how many were sent before, and
/// `arrivals` are what else arrives, with its time.
///
/// # Errors
/// What the workflow uses that is not in the model.
pub fn play(
    workflow: &Workflow,
    start: Timestamp,
    world: &dyn Fn(&str, usize) -> Reply,
    arrivals: &[(Timestamp, Arrival)],
) -> Result<Story, String> {
    subset::check(workflow)?;
    let run = Run {
        workflow,
        clock: Clock::new(start),
        variables: RefCell::new(Value::from_pairs::<&str>([])),
        story: RefCell::default(),
    };
    let story = run.play(world, arrivals);
    let variables = run.variables.take();
    Ok(Story { variables, ..story })
}

impl Run<'_> {
    async fn body(&self) -> Ended {
        let place = Place::root();
        self.note("run");
        for (name, initial) in &self.workflow.variables {
            match self.eval(&place, initial) {
                Ok(value) => self.set_variable(name, value),
                Err(fault) => return Ended::new(Status::Failed, Some(fault.kind.to_string())),
            }
        }
        match self.block(&place, &self.workflow.body).await {
            Err(Stop::Failed(failure)) => Ended::failed(failure.fault.status(), &failure),
            Ok(()) | Err(Stop::Break | Stop::Continue) => self.succeed(&place, false),
        }
    }

    /// What the run returns. `early`: a `terminate` ends it, and what has not run reads as null.
    fn succeed(&self, place: &Place, early: bool) -> Ended {
        let output = match &self.workflow.outputs {
            Outputs::Template(template) => self.eval_with(place, template, early),
            Outputs::Actions | Outputs::State => {
                Ok(place.outermost().outputs(self.workflow.body.steps()))
            }
        };
        match output {
            Ok(output) => Ended {
                output,
                ..Ended::new(Status::Succeeded, None)
            },
            Err(fault) => Ended::new(Status::Failed, Some(fault.kind.to_string())),
        }
    }

    /// A line of the story.
    fn note(&self, what: impl AsRef<str>) {
        let line = format!("{} {}", self.clock.now.get().0, what.as_ref());
        self.story.borrow_mut().lines.push(line);
    }

    fn row(&self, iteration: String, status: Status, condition: Option<bool>, result: Value) {
        let row = Row {
            iteration,
            status,
            condition,
            result,
        };
        self.story.borrow_mut().rows.push(row);
    }
}

impl Ended {
    fn new(status: Status, error: Option<String>) -> Self {
        let output = Value::Null;
        Self {
            status,
            output,
            error,
        }
    }

    fn failed(status: Status, failure: &Failure) -> Self {
        let Failure {
            fault,
            action,
            line,
            ..
        } = failure;
        let within = records::within(failure.iteration.as_ref());
        let error = format!("{} of {action}{within} at line {line}", fault.kind);
        Self::new(status, Some(error))
    }
}

/// Does something when it is dropped, unless that is over.
struct OnDrop<F: FnMut()>(Option<F>);

impl<F: FnMut()> OnDrop<F> {
    fn over(mut self) {
        self.0 = None;
    }
}

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|act| act());
    }
}
