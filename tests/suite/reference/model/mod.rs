//! The reference model: what `docs/reference/loops.md` says, as a program to read.
//!
//! It interprets the tree that a format made of its file. A loop of the workflow is a loop of Rust here, a step an
//! `async` function, and whatever ends a block early drops the function that runs it. It has no store, no speed and
//! no code of `crates/machine`, so what both do alike is what the page says.
//!
//! - `loops`: "One iteration", "Limits", "What a loop returns"
//! - `steps`: "Failures in the body", "Retries", "break_when and continue_when"
//! - `branches`: "foreach, parallel, runAfter"
//! - `clock`: "Checkpoints", "Pause, resume, cancel": events, steps, and time
//! - `records`, `view`: "Variables of a loop", and what expressions read
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
use records::Tree;
use std::cell::RefCell;
use windlass_expression::Value;
use windlass_model::hir::{Outputs, Workflow};
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

/// How a step or a block ended, for what is around it.
pub(super) enum Flow {
    Next,
    /// `break_when` was true: for the innermost loop or foreach.
    Break,
    /// `continue_when` was true: the same.
    Continue,
    Failed(Failure),
}

/// A fault on its way out.
#[derive(Clone)]
pub(super) struct Failure {
    pub fault: Fault,
    /// The innermost action that it is from, with its line, and the iteration of the innermost loop around that.
    pub action: Name,
    pub line: u32,
    pub iteration: Option<(String, u64)>,
    /// It left a block, a loop or a retry: a retry of a block repeats any failure.
    pub through: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
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
    /// What happened, in order, a line each.
    pub lines: Vec<String>,
    pub rows: Vec<Row>,
    /// The requests that were sent: when, key, attempt.
    pub requests: Vec<String>,
    pub variables: Value,
    /// None: it waits for something that never arrives.
    pub ended: Option<Ended>,
}

/// A run of a workflow.
pub(super) struct Run<'a> {
    workflow: &'a Workflow,
    tree: Tree<'a>,
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
        tree: Tree::of(workflow),
        clock: Clock::new(start),
        variables: RefCell::new(Value::object(Default::default())),
        story: RefCell::default(),
    };
    let story = run.play(world, arrivals);
    let variables = run.variables.take();
    Ok(Story { variables, ..story })
}

impl Run<'_> {
    /// The whole run, as a step of its own would be.
    async fn body(&self) -> Ended {
        let place = records::Place::root();
        self.note("run");
        for (name, initial) in &self.workflow.variables {
            match self.eval(&place, initial) {
                Ok(value) => self.set_variable(name, value),
                Err(fault) => return Ended::unplaced(&fault),
            }
        }
        match self.block(&place, &self.workflow.body).await {
            Flow::Failed(failure) => Ended::failed(&failure, failure.fault.status()),
            Flow::Next | Flow::Break | Flow::Continue => self.succeed(&place, false),
        }
    }

    /// What the run returns. `early`: a `terminate` ends it, and what has not run reads as null.
    fn succeed(&self, place: &records::Place, early: bool) -> Ended {
        let output = match &self.workflow.outputs {
            Outputs::Template(template) => self.eval_with(place, template, early),
            Outputs::Actions | Outputs::State => Ok(self.tree.top_outputs(self.workflow, place)),
        };
        match output {
            Ok(output) => Ended {
                status: Status::Succeeded,
                output,
                error: None,
            },
            Err(fault) => Ended::unplaced(&fault),
        }
    }

    /// A line of the story.
    fn note(&self, what: impl AsRef<str>) {
        let line = format!("{} {}", self.clock.now().0, what.as_ref());
        self.story.borrow_mut().lines.push(line);
    }
}

impl Ended {
    fn failed(failure: &Failure, status: Status) -> Self {
        let iteration = failure.iteration.as_ref();
        let iteration = iteration.map(|(path, at)| format!(" in {path}#{at}"));
        let Failure { fault, action, .. } = failure;
        let line = failure.line;
        Self {
            status,
            output: Value::Null,
            error: Some(format!(
                "{} of {action}{} at line {line}",
                fault.kind,
                iteration.unwrap_or_default()
            )),
        }
    }

    /// A variable or an output that cannot be computed: no action is at fault.
    fn unplaced(fault: &Fault) -> Self {
        Self {
            status: Status::Failed,
            output: Value::Null,
            error: Some(fault.kind.to_string()),
        }
    }
}
