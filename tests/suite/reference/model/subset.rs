//! What the model does not have. It refuses a workflow that uses it, and the test counts those.

use windlass_expression::{Reference, Template};
use windlass_model::hir::{Assign, Block, Loop, Outputs, Step, StepKind, Wait, Workflow};
use windlass_model::model::{AssignOp, Backoff, Delay, Jitter, OnMissing, Status, Test};

/// # Errors
/// The first thing that is not in the model.
pub fn check(workflow: &Workflow) -> Result<(), String> {
    let ends = [&workflow.on_failure, &workflow.on_finish, &workflow.cleanup];
    refuse(
        ends.iter().any(|block| !block.is_empty()),
        "steps at the end",
    )?;
    refuse(workflow.at_success.is_some(), "a call at the end")?;
    refuse(
        !workflow.state.is_empty() || workflow.last_run,
        "state between runs",
    )?;
    refuse(!workflow.types.is_empty(), "types of variables")?;
    refuse(!workflow.secure.is_empty(), "secure values")?;
    refuse(workflow.outputs == Outputs::State, "the state as output")?;
    workflow.steps().into_iter().try_for_each(step)?;
    workflow.blocks().into_iter().try_for_each(block)
}

fn refuse(is_used: bool, what: &str) -> Result<(), String> {
    match is_used {
        true => Err(format!("not in the model: {what}")),
        false => Ok(()),
    }
}

fn block(all: &Block) -> Result<(), String> {
    refuse(matches!(all, Block::Graph(_)), "a graph with goto")
}

fn step(step: &Step) -> Result<(), String> {
    refuse(step.output.is_some(), "an output that is mapped")?;
    refuse(step.expect.is_some(), "expect")?;
    refuse(
        step.follow_up.is_some() || step.is_repeat,
        "a step in parts",
    )?;
    if let Some(retry) = &step.retry {
        refuse(!retry.on.is_empty(), "`on` of a retry")?;
        backoff(&retry.backoff)?;
    }
    step.blocks().into_iter().try_for_each(block)?;
    match &step.kind {
        StepKind::Call(call) => {
            refuse(call.attempt_timeout.is_some(), "a timeout of one attempt")?;
            refuse(!call.then.is_empty(), "assignments of a call")?;
            template(&call.inputs)
        }
        StepKind::Compose(value) => template(value),
        StepKind::Assign(assign) => assignments(assign),
        StepKind::Wait(Wait::Until(_)) => refuse(true, "a wait until an instant"),
        StepKind::AwaitSignal(awaited) => refuse(awaited.question.is_some(), "a question"),
        StepKind::Loop(spec) => a_loop(spec),
        StepKind::Parallel { isolated, .. } => refuse(*isolated, "isolated branches"),
        StepKind::Respond(_) => refuse(true, "a response"),
        StepKind::Terminate { status, .. } => {
            let known = [Status::Succeeded, Status::Failed, Status::Cancelled];
            refuse(!known.contains(status), "this end of a run")
        }
        StepKind::Wait(Wait::For(_))
        | StepKind::Block(_)
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::ForEach(_)
        | StepKind::Catch { .. }
        | StepKind::Raise { .. }
        | StepKind::Nothing => Ok(()),
    }
}

fn a_loop(spec: &Loop) -> Result<(), String> {
    refuse(spec.tokens.is_some() || spec.cost.is_some(), "budgets")?;
    refuse(spec.on_missing != OnMissing::Fail, "on_missing")?;
    refuse(!spec.keep.is_empty(), "collected values")?;
    refuse(spec.feedback, "feedback")?;
    refuse(spec.test == Test::AfterAsNext, "this check")?;
    match &spec.delay {
        Some(Delay::Server { .. }) => refuse(true, "a delay by the server"),
        Some(Delay::Backoff(own)) => backoff(own),
        Some(Delay::Every(_)) | None => Ok(()),
    }
}

/// The jitter of a wait comes from a seed of the machine.
fn backoff(backoff: &Backoff) -> Result<(), String> {
    let is_random = match backoff {
        Backoff::Fixed { jitter, .. } | Backoff::Exponential { jitter, .. } => {
            *jitter != Jitter::None
        }
        Backoff::AzureExponential { .. } => true,
    };
    refuse(is_random, "jitter")
}

fn assignments(assign: &Assign) -> Result<(), String> {
    refuse(assign.output.is_some(), "the output of an assignment")?;
    let of_many = |op| {
        matches!(
            op,
            AssignOp::MergeAll | AssignOp::ReplaceAll | AssignOp::RemoveAll
        )
    };
    let mut all = assign.assignments.iter();
    refuse(all.any(|one| of_many(one.op)), "an assignment to many")
}

/// What a request reads that the view of the model does not show.
fn template(template: &Template) -> Result<(), String> {
    let shown = |reference: &Reference| {
        matches!(
            reference,
            Reference::Variable(_)
                | Reference::Action(_)
                | Reference::Items(_)
                | Reference::Item
                | Reference::Loop(_)
        )
    };
    refuse(
        !template.references().iter().all(shown),
        "what an expression reads",
    )
}
