//! What the model does not have. It refuses a workflow that uses it, and the test counts those.

use windlass_model::hir::{Block, Loop, Outputs, Step, StepKind, Wait, Workflow};
use windlass_model::model::{AssignOp, Backoff, Delay, Jitter, OnMissing, Test};

/// # Errors
/// The first thing that is not in the model.
pub fn check(workflow: &Workflow) -> Result<(), String> {
    let ends = [&workflow.on_failure, &workflow.on_finish, &workflow.cleanup];
    let ends = ends.iter().any(|block| !block.is_empty()) || workflow.at_success.is_some();
    refuse(&[
        (ends, "what is done at the end"),
        (
            !workflow.state.is_empty() || workflow.last_run,
            "state between runs",
        ),
        (!workflow.types.is_empty(), "types of variables"),
        (!workflow.secure.is_empty(), "secure values"),
        (workflow.outputs == Outputs::State, "the state as output"),
        (
            matches!(workflow.body, Block::Graph(_)),
            "a graph with goto",
        ),
    ])?;
    workflow.steps().into_iter().try_for_each(step)
}

fn refuse(all: &[(bool, &str)]) -> Result<(), String> {
    match all.iter().find(|(is_used, _)| *is_used) {
        Some((_, what)) => Err(format!("not in the model: {what}")),
        None => Ok(()),
    }
}

fn step(step: &Step) -> Result<(), String> {
    let is_graph = |block: &&Block| matches!(block, Block::Graph(_));
    let waits = step.retry.as_ref().map(|retry| &retry.backoff);
    refuse(&[
        (step.output.is_some(), "an output that is mapped"),
        (step.expect.is_some(), "expect"),
        (
            step.follow_up.is_some() || step.is_repeat,
            "a step in parts",
        ),
        (
            step.retry
                .as_ref()
                .is_some_and(|retry| !retry.on.is_empty()),
            "`on` of a retry",
        ),
        (waits.is_some_and(is_random), "jitter"),
        (step.blocks().iter().any(is_graph), "a graph with goto"),
    ])?;
    match &step.kind {
        StepKind::Call(call) => refuse(&[
            (call.attempt_timeout.is_some(), "a timeout of one attempt"),
            (!call.then.is_empty(), "assignments of a call"),
        ]),
        StepKind::Assign(assign) => {
            let mut all = assign.assignments.iter();
            let of_many = [
                AssignOp::MergeAll,
                AssignOp::ReplaceAll,
                AssignOp::RemoveAll,
            ];
            refuse(&[
                (assign.output.is_some(), "the output of an assignment"),
                (
                    all.any(|one| of_many.contains(&one.op)),
                    "an assignment to many",
                ),
            ])
        }
        StepKind::Wait(wait) => {
            refuse(&[(matches!(wait, Wait::Until(_)), "a wait until an instant")])
        }
        StepKind::AwaitSignal(awaited) => refuse(&[(awaited.question.is_some(), "a question")]),
        StepKind::Loop(spec) => a_loop(spec),
        StepKind::Parallel { isolated, .. } => refuse(&[(*isolated, "isolated branches")]),
        StepKind::Respond(_) => refuse(&[(true, "a response")]),
        StepKind::Catch { .. } => refuse(&[(true, "a try with a variable")]),
        StepKind::Terminate { .. }
        | StepKind::Compose(_)
        | StepKind::Block(_)
        | StepKind::If { .. }
        | StepKind::Switch { .. }
        | StepKind::ForEach(_)
        | StepKind::Raise { .. }
        | StepKind::Nothing => Ok(()),
    }
}

fn a_loop(spec: &Loop) -> Result<(), String> {
    let (by_server, is_spread) = match &spec.delay {
        Some(Delay::Server { .. }) => (true, false),
        Some(Delay::Backoff(own)) => (false, is_random(own)),
        Some(Delay::Every(_)) | None => (false, false),
    };
    refuse(&[
        (spec.tokens.is_some() || spec.cost.is_some(), "budgets"),
        (spec.on_missing != OnMissing::Fail, "on_missing"),
        (!spec.keep.is_empty(), "collected values"),
        (spec.feedback, "feedback"),
        (spec.test == Test::AfterAsNext, "this check"),
        (by_server, "a delay by the server"),
        (is_spread, "jitter"),
    ])
}

/// The jitter of a wait comes from a seed of the machine.
fn is_random(backoff: &Backoff) -> bool {
    match backoff {
        Backoff::Fixed { jitter, .. } | Backoff::Exponential { jitter, .. } => {
            *jitter != Jitter::None
        }
        Backoff::AzureExponential { .. } => true,
    }
}
